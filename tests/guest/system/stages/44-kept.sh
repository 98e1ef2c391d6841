# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091
# machine: switch2
# The boot after a trial that was confirmed has the parameters, as all later ones. Then it is undone.
. /lib.sh

for word in iommu=pt 'pci=disable_acs_redir=0000:22:00.0;0000:22:01.0'; do
    like "kernel has $word" " $(cat /proc/cmdline) " "* $word*"
done
is "by the usual entry" "$(grep -c panic=30 /proc/cmdline)" 0
is "nothing failed at boot" "$(systemctl --failed --plain --no-legend)" ""
run "undo" 0 onehop undo
sed 's/^/#   /' /tmp/said
is "undo: every file as it was" "$(changed)" ""
