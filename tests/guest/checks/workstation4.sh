# SPDX-License-Identifier: Apache-2.0
# machine: workstation4
# iommu: none
. /lib.sh

for gpu in 01:00.0 02:00.0 03:00.0 04:00.0; do
    is "BAR 1 of $gpu" "$(bar $gpu 1)" 256
    is "sizes offered by $gpu, 64M to 32G" "$(sys $gpu resource1_resize)" 000000000000ffc0
done
is "audio function" "$(sys 01:00.1 class)" 0x040300

if onehop_checks 1; then
    is "onehop: room, but nobody enlarged BAR 1" "$(found bar1-small)" "01:00.0"
    is "onehop: windows too small" "$(found bar1-window)" "03:00.0 04:00.0"
fi

# To 2^N MiB.  By dd, which names the error; the shell's echo does not.
resize() { echo "$2" | dd of="/sys/bus/pci/devices/0000:$1/resource1_resize"; }
check "room: BAR 1 grows" resize 01:00.0 15
is "room: 32G" "$(bar 01:00.0 1)" 32768
check "room: and shrinks" resize 01:00.0 8
is "room: 256M" "$(bar 01:00.0 1)" 256
check "room: and grows again" resize 01:00.0 15
like "no room: refused" "$(resize 03:00.0 15 2>&1)" "*No space left on device*"
is "no room: still 256M" "$(bar 03:00.0 1)" 256

if have onehop; then
    onehop check --json >/tmp/onehop.json
    is "onehop: only the second GPU is left" "$(found bar1-small)" 02:00.0
fi
