# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2154 # of driver_names
#
# All is taken back, where nothing can be built.
. /job/lib.sh
driver_names

# build_tools: of the names by which they are called, the programs behind them
# shellcheck disable=SC2046 # words
build_tools() { readlink -f $(command -v cc gcc make ld ld.bfd as objcopy patch) | sort -u; }

build_tools >/tmp/tools
xargs chmod a-x </tmp/tools
check "undo: nothing can be built" test ! -x "$(readlink -f /usr/bin/gcc)"
run "undo" 0 onehop undo
tail -n 4 /tmp/said | sed 's/^/#   /'
xargs chmod a+x </tmp/tools
is "undo: all is as before" "$(changed /root/before)" ""
is "undo: what DKMS says" "$(state "$kernel")" installed
run "undo: probe of the module" 1 onehop unlock --probe "$(module "$kernel")"
is "undo: no mark" "$(modinfo -k "$kernel" -F onehop "$driver")" ""
is "undo: history" "$(applied 1)" undone
run "undo again: nothing left" 2 onehop undo
echo stage-end
