# SPDX-License-Identifier: Apache-2.0
# machine: workstation4
# iommu: none
# Two GPUs whose BAR 1 can grow, two whose root ports have no room.
# shellcheck shell=dash source=tests/guest/lib.sh
. /lib.sh
have_onehop || exit 0

bars() { for gpu in 01:00.0 02:00.0 03:00.0 04:00.0; do bar $gpu 1; done | tr '\n' ' '; }
is "at the start" "$(bars)" "256 256 256 256 "

plan "no room" 1 bar1-window
is "no room: nothing to try" "$(planned bar-size)" ""
is "no room: parameter" "$(parameters)" "pci=realloc "
like "no room: the host's window" "$(by_hand)" "*on the host*X-PciMmio64Mb*"

plan "plan" 1 bar1-small --now
is "plan: where there is room" "$(planned bar-size)" "01:00.0=32768 02:00.0=32768"
is "plan: the capability offers it, so nothing is the host's" "$(by_hand)" ""
run "apply" 0 onehop fix bar1-small --now --apply
is "apply: they grow" "$(bars)" "32768 32768 256 256 "
onehop check --json >/tmp/onehop.json
is "apply: check" "$(outcome bar1-small)" ok
run "apply again" 0 onehop fix bar1-small --now --apply
is "apply again: no second fix" "$(onehop history --json | jq '.fixes | length')" 1
run "undo" 0 onehop undo
is "undo: they shrink" "$(bars)" "256 256 256 256 "
