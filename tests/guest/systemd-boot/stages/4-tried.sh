# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091,SC2154
# machine: switch2
# The trial boot: systemd-boot's own entry for one boot. It is not healthy, so nothing confirms it.
. /lib.sh

like "kernel has iommu=pt" " $(cat /proc/cmdline) " "* iommu=pt *"
is "groups pass through" "$(group_types)" "identity "
is "systemd-boot says that it started the trial's entry" "$(variable LoaderEntrySelected)" "$trial"
is "and has removed the variable" "$(variable LoaderEntryOneShot)" ""
until_ended onehop-trial.service
is "the unit did not confirm it" "$(property Result onehop-trial.service)" exit-code
like "and says why" "$(journalctl -b -u onehop-trial.service -o cat)" "*broken.service failed, and had not before the trial*"
is "history" "$(applied "$(cat /root/trial)")" on-trial
onehop check --json >/tmp/onehop.json
like "check" "$(sentence fix-in-effect)" "*on trial in this boot*"
systemctl disable broken.service 2>/dev/null
rm /etc/systemd/system/broken.service
