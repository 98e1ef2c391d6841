# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091,SC2154
# machine: switch2
# A trial boot that is as healthy as the one before: onehop's unit makes the parameters stay.
. /lib.sh

like "kernel has iommu=pt" " $(cat /proc/cmdline) " "* iommu=pt *"
is "by the trial's entry" "$(variable LoaderEntrySelected)" "$trial"
until_state "$(last_fix)" applied
journalctl -b -u onehop-trial.service -o cat | sed 's/^/#   /'
is "history" "$(applied "$(last_fix)")" applied
is "every entry of this system has it, the rescue entry has not" "$(with iommu=pt | wc -w) $(with iommu=pt | grep -c rescue)" "3 0"
is "no panic= of the trial's stays" "$(grep -l panic=30 /efi/loader/entries/*.conf /etc/kernel/cmdline)" ""
check "the trial's entry is gone" test ! -e "/efi/loader/entries/$trial"
is "no unit is left" "$(find /etc/systemd -name 'onehop-*')" ""
is "nothing failed" "$(systemctl --failed --plain --no-legend)" ""
onehop check --json >/tmp/onehop.json
for rule in iommu-translating fix-in-effect; do
    is "check: $rule" "$(outcome $rule)" ok
done
run "confirm again: nothing is on trial" 2 onehop fix --confirm
