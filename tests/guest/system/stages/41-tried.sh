# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091
# machine: switch2
# The trial boot: GRUB's own one-shot entry, with the parameters. It is not healthy, so nothing confirms it.
. /lib.sh

for word in iommu=pt 'pci=disable_acs_redir=0000:22:00.0;0000:22:01.0' panic=; do
    like "kernel has $word" " $(cat /proc/cmdline) " "* $word*"
done
is "groups pass through" "$(group_types)" "identity "
is "ACS clear by the kernel" "$(acs 22:00.0) $(acs 22:01.0)" "0011 0011"
is "GRUB cleared its entry for the next boot" "$(grub-editenv - list | grep next_entry=.)" ""
until_ended onehop-trial.service
is "the unit did not confirm it" "$(property Result onehop-trial.service)" exit-code
like "and says why" "$(journalctl -b -u onehop-trial.service -o cat)" "*broken.service failed, and had not before the trial*"
is "history" "$(applied "$(cat /root/trial)")" on-trial
onehop check --json >/tmp/onehop.json
like "check" "$(sentence fix-in-effect)" "*on trial in this boot*"
systemctl disable broken.service 2>/dev/null
rm /etc/systemd/system/broken.service
