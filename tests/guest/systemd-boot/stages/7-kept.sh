# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091,SC2154
# machine: switch2
# The boot after a trial that was confirmed has the parameter, as all later ones. Then it is undone.
. /lib.sh

like "kernel has iommu=pt" " $(cat /proc/cmdline) " "* iommu=pt *"
like "by the usual entry" "$(variable LoaderEntrySelected)" "*-6.1.0-92-test.conf"
is "nothing failed at boot" "$(systemctl --failed --plain --no-legend)" ""
run "undo" 0 onehop undo --yes
sed 's/^/#   /' /tmp/said
is "undo: every file as it was, but for the line" "$(changed)" "/etc/kernel/cmdline "
is "undo: that stays without the word" "$(grep -c iommu=pt /etc/kernel/cmdline)" 0
is "nothing of it is left" "$(find /efi -name '*onehop*')" ""
