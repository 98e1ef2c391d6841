# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091,SC2154
# machine: switch2
# The boot after a trial that was not confirmed: as before, although the trial's entry is still there. The next
# fix clears it up, and tries again.
. /lib.sh

is "kernel has not iommu=pt" "$(grep -c iommu=pt /proc/cmdline)" 0
is "groups translate" "$(group_types)" "DMA-FQ "
check "the trial's entry is still in the menu" test -e "/efi/loader/entries/$trial"
like "systemd-boot started another by itself" "$(variable LoaderEntrySelected)" "*-6.1.0-92-test.conf"
is "nothing failed at boot" "$(systemctl --failed --plain --no-legend)" ""
onehop check --json >/tmp/onehop.json
like "check" "$(sentence fix-in-effect)" "*was not confirmed*"
run "confirm: too late" 2 onehop fix --confirm

bootctl set-oneshot rescue.conf
run "the next boot is somebody's: refused" 2 onehop fix iommu-translating --trial
said "with the reason" "systemd-boot is already set to start \"rescue.conf\" at the next boot"
bootctl set-oneshot ""

mount -o remount,ro /sys/firmware/efi/efivars
run "the variables cannot be written: refused" 2 onehop fix iommu-translating --trial
said "with the reason" "mounted read-only"
mount -o remount,rw /sys/firmware/efi/efivars

onehop fix iommu-translating | grep '^[0-9]*\.  ' >/tmp/shown
check "the plan that is shown has steps" test -s /tmp/shown
run "fix" 0 onehop fix iommu-translating --apply
grep '^[0-9]*\.  ' /tmp/said >/tmp/carried-out
same "fix: the plan was shown before" /tmp/shown /tmp/carried-out
sed 's/^/#   /' /tmp/said
said "fix: what was left is taken back first" "*of fix $(cat /root/trial)*was not confirmed*"
is "history: the first" "$(applied "$(cat /root/trial)")" undone
is "history: the second" "$(applied "$(last_fix)")" on-trial
is "for the next boot" "$(variable LoaderEntryOneShot)" "$trial"
run "undo: the trial that waits" 0 onehop undo --yes
is "undo: every file as it was" "$(changed)" ""
is "undo: the variable is gone" "$(variable LoaderEntryOneShot)" ""
run "fix again" 0 onehop fix iommu-translating --apply --trial
