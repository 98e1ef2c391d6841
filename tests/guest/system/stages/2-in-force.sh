# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# After the reboot: what was promised is in force. Then it is taken back.
. /lib.sh

for word in iommu=pt 'pci=disable_acs_redir=0000:22:00.0;0000:22:01.0'; do
    like "kernel has $word" " $(cat /proc/cmdline) " "* $word *"
done
is "groups pass through" "$(group_types)" "identity "
is "ACS clear by the kernel, at these ports only" \
    "$(acs 20:00.0) $(acs 22:00.0) $(acs 22:01.0) $(acs 22:02.0)" "001d 0011 0011 001d"
is "nothing failed at boot" "$(systemctl --failed --plain --no-legend)" ""

onehop check --json >/tmp/onehop.json
for rule in acs-redirect iommu-translating fix-in-effect; do
    is "check: $rule" "$(outcome $rule)" ok
done
run "fix again: nothing to do" 0 onehop fix acs-redirect iommu-translating
run "history" 0 onehop history
is "history: applied" "$(applied 1)" applied

run "undo" 0 onehop undo
sed 's/^/#   /' /tmp/said
is "undo: every file as it was" "$(files | diff /root/files -)" ""
is "undo: ACS stays until the reboot, which is due" "$(acs 22:00.0) $(acs 22:01.0)" "0011 0011"
is "undo: history" "$(applied 1)" undone
run "undo again: nothing left" 2 onehop undo
