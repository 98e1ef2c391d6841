# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091,SC2154
# machine: switch2
# A rescue boot: its own words get into no entry, and a fix and its undo work there. Then a trial boot is
# set; broken.service comes with it.
. /lib.sh

install -m 755 /job/onehop /usr/bin/onehop
like "it is the rescue entry" " $(cat /proc/cmdline) " "* onehop.rescue *"
is "groups translate: the fix is undone" "$(group_types)" "DMA-FQ "
rm /etc/kernel/cmdline
files >/root/files
run "fix" 0 onehop fix iommu-translating --apply --no-trial
is "fix: every entry of this system has it, the rescue entry has not" "$(with iommu=pt | wc -w) $(with iommu=pt | grep -c rescue)" "3 0"
is "fix: nothing of the rescue boot is kept" "$(grep -l onehop.rescue /etc/kernel/cmdline /efi/loader/entries/*.conf)" "/efi/loader/entries/rescue.conf"
run "undo" 0 onehop undo --yes
is "undo: every file as it was" "$(changed)" ""

files >/root/files
run "trial" 0 onehop fix iommu-translating --apply
sed 's/^/#   /' /tmp/said
said "trial: the way back in one line" "*does not have these parameters*"
is "trial: files that changed" "$(changed | tr ' ' '\n' | grep -v '^/etc/systemd/' | tr '\n' ' ')" "/efi/loader/entries/$trial /etc/kernel/cmdline "
is "trial: kernel-install's line is there, without the word" "$(grep -c iommu=pt /etc/kernel/cmdline)" 0
is "trial: no other entry has the word" "$(with iommu=pt)" "$trial "
is "trial: for the next boot" "$(variable LoaderEntryOneShot)" "$trial"
is "trial: bootctl, which sorts as systemd-boot does, has it last" \
    "$(bootctl list --json=short | jq -r .id | grep '\.conf$' | tail -n 1)" "$trial"
last_fix >/root/trial
is "trial: history" "$(applied "$(cat /root/trial)")" on-trial
onehop check --json >/tmp/onehop.json
like "trial: check" "$(sentence fix-in-effect)" "*on trial: the next boot uses it once*"
printf '[Service]\nType=oneshot\nExecStart=/bin/false\n[Install]\nWantedBy=multi-user.target\n' \
    >/etc/systemd/system/broken.service
systemctl enable broken.service 2>/dev/null
