# SPDX-License-Identifier: Apache-2.0
# machine: split-room
# iommu: none
# There seems to be room for both, but the kernel says ENOSPC at the second: both stay as they were.
. /lib.sh
have_onehop || exit 0

bars() { for gpu in 01:00.0 01:00.1; do bar $gpu 1; done | tr '\n' ' '; }
is "at the start" "$(bars)" "256 256 "

plan "plan" 1 bar1-small --now
is "plan: both" "$(planned bar-size)" "01:00.0=32768 01:00.1=32768"
run "apply" 4 onehop fix bar1-small --now --apply
said "apply: which, and why" "FAILED: 0000:01:00.1: BAR 1*no room*"
said "apply: a remedy" "pci=realloc*firmware"
is "apply: both as before" "$(bars)" "256 256 "
like "it was the kernel" "$(dmesg)" "*01:00.1: BAR 1*no space*"
is "journal: it failed and is undone" "$(applied 1)" failed-undone
run "nothing is left to undo" 2 onehop undo
