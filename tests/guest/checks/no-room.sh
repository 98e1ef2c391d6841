# SPDX-License-Identifier: Apache-2.0
# machine: no-room
# The kernel forgets the size of a BAR that it found no place for.
. /lib.sh

is "first GPU: no BAR at all" "$(sys 01:00.0 resource | sort -u)" \
    "0x0000000000000000 0x0000000000000000 0x0000000000000000"
is "second GPU: no BAR 0" "$(sys 02:00.0 resource | head -n 1)" \
    "0x0000000000000000 0x0000000000000000 0x0000000000000000"
like "kernel says so" "$(dmesg)" "*02:00.0: BAR 0*failed to assign*"

onehop_checks 1 || exit 0
is "onehop: GPUs without an address" "$(found bar-assigned)" "01:00.0 02:00.0"
is "onehop: the log" "$(outcome bar-assignment)" bad
