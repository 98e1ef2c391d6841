# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091
# machine: switch2
# The boot after a trial that was not confirmed: as before. The next fix clears it up, and tries again.
. /lib.sh

is "kernel command line as at first" "$(sed 's/^BOOT_IMAGE=[^ ]* //' /proc/cmdline)" "$(sed 's/^BOOT_IMAGE=[^ ]* //' /root/cmdline)"
is "groups translate" "$(group_types)" "DMA-FQ "
is "ACS on" "$(acs 22:00.0) $(acs 22:01.0)" "001d 001d"
is "nothing failed at boot" "$(systemctl --failed --plain --no-legend)" ""
onehop check --json >/tmp/onehop.json
like "check" "$(sentence fix-in-effect)" "*was not confirmed*"
run "history" 0 onehop history
said "history: what became of it" "*on trial, not confirmed*"
run "confirm: too late" 2 onehop fix --confirm

grub-editenv - set next_entry=mine
run "the next boot is somebody's: refused" 2 onehop fix iommu-translating --trial
said "with the reason" "GRUB is already set to start \"mine\" at the next boot"
grub-editenv - unset next_entry

onehop fix acs-redirect iommu-translating | grep '^[0-9]*\.  ' >/tmp/shown
check "the plan that is shown has steps" test -s /tmp/shown
run "fix" 0 onehop fix acs-redirect iommu-translating --apply
grep '^[0-9]*\.  ' /tmp/said >/tmp/carried-out
same "fix: the plan was shown before" /tmp/shown /tmp/carried-out
sed 's/^/#   /' /tmp/said
said "fix: what was left is taken back first" "*of fix $(cat /root/trial)*was not confirmed*"
is "history: the first" "$(applied "$(cat /root/trial)")" undone
is "history: the second" "$(applied "$(last_fix)")" on-trial
is "for the next boot" "$(grub-editenv - list | grep next_entry)" next_entry=onehop-trial
