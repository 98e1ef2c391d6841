# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# In the guest, behind /lib.sh: both modules are loaded, and say alike that there is no card.

# messages: the kernel's since the last call, without times
messages() {
    dmesg | sed 's/^\[[^]]*\] *//' >/tmp/all
    tail -n "+$((seen + 1))" /tmp/all
    seen=$(wc -l </tmp/all)
}

seen=0
messages >/tmp/before
for module in stock edited; do
    insmod "/modules/$module.ko" >/tmp/said 2>&1
    is "$module: insmod: no such device" "$?:$(cat /tmp/said)" "1:insmod: ERROR: could not insert module /modules/$module.ko: No such device"
    messages >"/tmp/$module"
    like "$module: it says that there is no GPU" "$(grep NVRM "/tmp/$module")" "NVRM: No NVIDIA GPU found."
    is "$module: no symbol, relocation or version is wrong" \
        "$(grep -iE 'unknown symbol|disagrees|relocation|invalid|BUG|WARNING|Oops' "/tmp/$module")" ""
    is "$module: it is gone again" "$(grep -c '^nvidia ' /proc/modules)" 0
done
# The first one is the first that taints the kernel.
for module in stock edited; do
    grep -v taint "/tmp/$module" >"/tmp/$module.said"
done
same "both say the same" /tmp/stock.said /tmp/edited.said
