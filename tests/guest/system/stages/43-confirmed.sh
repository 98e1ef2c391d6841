# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091
# machine: switch2
# A trial boot that is as healthy as the one before: onehop's unit makes the parameters stay.
. /lib.sh

like "kernel has the parameters" " $(cat /proc/cmdline) " "* iommu=pt *"
until_state "$(last_fix)" applied
journalctl -b -u onehop-trial.service -o cat | sed 's/^/#   /'
is "history" "$(applied "$(last_fix)")" applied
is "files that changed" "$(changed)" "/boot/grub/grub.cfg /etc/default/grub.d/99-onehop.cfg "
is "what grub-mkconfig would make" "$(grub-mkconfig 2>/dev/null | diff - /boot/grub/grub.cfg)" ""
is "the trial's entry is gone" "$(cat /boot/grub/custom.cfg)" "# mine"
is "no unit is left" "$(find /etc/systemd -name 'onehop-*')" ""
is "nothing failed" "$(systemctl --failed --plain --no-legend)" ""
onehop check --json >/tmp/onehop.json
for rule in acs-redirect iommu-translating fix-in-effect; do
    is "check: $rule" "$(outcome $rule)" ok
done
run "confirm again: nothing is on trial" 2 onehop fix --confirm
