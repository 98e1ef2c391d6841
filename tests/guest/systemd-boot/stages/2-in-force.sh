# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091
# machine: switch2
# After the reboot it is in force. A kernel comes, and is there when the fix is undone; another comes then.
. /lib.sh

first=$(cat /root/first)
like "kernel has iommu=pt" " $(cat /proc/cmdline) " "* iommu=pt *"
is "groups pass through" "$(group_types)" "identity "
onehop check --json >/tmp/onehop.json
is "check: fix-in-effect" "$(outcome fix-in-effect)" ok
run "fix again: nothing to do" 0 onehop fix iommu-translating

run "a kernel comes" 0 add_kernel 6.1.0-91-test
is "a kernel comes: it has the word" "$(with iommu=pt)" "$first ${first%-"$(uname -r)".conf}-6.1.0-91-test.conf "
run "undo" 0 onehop undo --yes
sed 's/^/#   /' /tmp/said
is "undo: no entry has the word" "$(with iommu=pt)" ""
same "undo: the entry is as it was" "/root/loader/entries/$first" "/efi/loader/entries/$first"
same "undo: the rescue entry too" /root/loader/entries/rescue.conf /efi/loader/entries/rescue.conf
is "undo: the line stays, since /proc/cmdline has the word" "$(cat /etc/kernel/cmdline)" \
    "root=LABEL=root rw quiet console=ttyS0 no_timer_check panic=-1"
run "another kernel comes" 0 add_kernel 6.1.0-92-test
is "another kernel comes: without the word" "$(with iommu=pt)" ""
is "nothing of it is left" "$(find /efi -name '*onehop*')" ""
check "the next boot is a rescue boot" bootctl set-oneshot rescue.conf
