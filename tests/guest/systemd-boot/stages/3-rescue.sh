# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091
# machine: switch2
# A rescue boot: its own words get into no entry, and a fix and its undo work there.
. /lib.sh

like "it is the rescue entry" " $(cat /proc/cmdline) " "* onehop.rescue *"
is "groups translate: the fix is undone" "$(group_types)" "DMA-FQ "
rm /etc/kernel/cmdline
files >/root/files
run "fix" 0 onehop fix iommu-translating --apply
is "fix: every entry of this system has it, the rescue entry has not" "$(with iommu=pt | wc -w) $(with iommu=pt | grep -c rescue)" "3 0"
is "fix: nothing of the rescue boot is kept" "$(grep -l onehop.rescue /etc/kernel/cmdline /efi/loader/entries/*.conf)" "/efi/loader/entries/rescue.conf"
run "undo" 0 onehop undo --yes
is "undo: every file as it was" "$(changed)" ""
