# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091
# machine: switch2
# A server as it was installed: what is found, what a fix writes, and what it leaves alone.
. /lib.sh

install -m 755 /job/onehop /usr/bin/onehop
cat /proc/cmdline >/root/cmdline
stat -c %a /boot/grub/grub.cfg >/root/grub-mode
is "IOMMU" "$(iommus)" dmar0
is "groups translate" "$(group_types)" "DMA-FQ "
is "ACS on" "$(acs 22:00.0) $(acs 22:01.0)" "001d 001d"
is "nothing failed at boot" "$(systemctl --failed --plain --no-legend)" ""

onehop check --json >/tmp/onehop.json
is "check: ports that redirect" "$(found acs-redirect)" "22:00.0 22:01.0"
is "check: IOMMU" "$(found iommu-translating)" "IOMMU dmar0"

files >/root/files
run "plan" 1 onehop fix acs-redirect iommu-translating
files | diff /root/files - >/tmp/difference
is "plan: changes nothing" "$(cat /tmp/difference)" ""

run "fix" 0 onehop fix acs-redirect iommu-translating --no-trial --apply
sed 's/^/#   /' /tmp/said
is "fix: ACS clear now, at these ports only" \
    "$(acs 20:00.0) $(acs 22:00.0) $(acs 22:01.0) $(acs 22:02.0)" "001d 0011 0011 001d"
files | diff /root/files - | sed -n 's/^[<>] [0-9a-f]*  //p' | sort -u >/tmp/difference
is "fix: files that changed" "$(tr '\n' ' ' </tmp/difference)" \
    "/boot/grub/grub.cfg /etc/default/grub.d/99-onehop.cfg "
is "fix: what grub-mkconfig would make" "$(grub-mkconfig 2>/dev/null | diff - /boot/grub/grub.cfg)" ""
is "fix: nothing of it in recovery entries" \
    "$(grep -E '^[[:space:]]*linux.*single' /boot/grub/grub.cfg | grep -c -e iommu=pt -e disable_acs)" 0
check "fix: recovery entries are there" grep -Eq '^[[:space:]]*linux.*single' /boot/grub/grub.cfg
is "fix: permissions of grub.cfg" "$(stat -c %a /boot/grub/grub.cfg)" "$(cat /root/grub-mode)"

onehop check --json >/tmp/onehop.json
is "before the reboot: fix-in-effect" "$(outcome fix-in-effect)" bad
like "before the reboot: one is due" "$(sentence fix-in-effect)" "*boot*"
is "before the reboot: ACS is well" "$(outcome acs-redirect)" ok
is "before the reboot: the IOMMU still translates" "$(found iommu-translating)" "IOMMU dmar0"
