# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# modules: yes
# cmdline: printk.devkmsg=on
# The faults that all end in "Invalid argument" when nvidia-peermem is loaded, one after the other,
# and one that ends in other words.  The modules are stand-ins, the refusals are the kernel's.
. /lib.sh

# start FILE...: as after a boot, with these modules installed and an RDMA device, nvidia-peermem not
# yet loaded
start() {
    remove_modules
    rm -rf /etc/modprobe.d /usr/src/ofa_kernel
    forget_log
    install_modules nvidia.ko standin_rdma.ko "$@"
    modprobe nvidia closed=1
    modprobe standin_rdma
}

# refused NAME ERROR RULE [OPTION...]: modprobe of $which fails like this, and onehop says it is that
refused() {
    name=$1 error=$2 rule=$3
    shift 3
    like "$name: modprobe" "$(modprobe "${which:-nvidia-peermem}" "$@" 2>&1)" "*$error*"
    have onehop || return 0
    onehop check --json >/tmp/onehop.json
    is "$name: onehop" "$(faults)" "$rule"
}

# faults: the rules about nvidia-peermem that find something
faults() { json '[.findings[].rule | select(startswith("peermem-"))] | unique | join(" ")'; }

EINVAL='Invalid argument'
have onehop || skip "onehop check" "no binary given"

start bare/nvidia-peermem.ko
refused "1 built without the interface" "$EINVAL" peermem-no-api
is "1: the log is silent" "$(dmesg | tail -n 5 | grep -ci peermem)" 0

start bare/nvidia-peermem.ko
mkdir -p /usr/src/ofa_kernel
refused "2 OFED of another kernel" "$EINVAL" peermem-ofed-kernel

# OFED's core for this kernel stands in the place of the kernel's own.
start bare/nvidia-peermem.ko
mkdir -p /usr/src/ofa_kernel
core=$(find "/lib/modules/$(uname -r)/kernel" -name 'ib_core.ko*')
cp "$core" "/lib/modules/$(uname -r)/updates/"
mv "$core" /tmp/
depmod
refused "2 built before OFED" "$EINVAL" peermem-before-ofed
mv "/tmp/${core##*/}" "$core"

start peer_api.ko nv_peer_mem.ko api/nvidia-peermem.ko
modprobe nv_peer_mem
refused "3 the old module holds the name" "$EINVAL" peermem-conflict

start peer_api.ko other/nvidia-peermem.ko
modprobe peer_api
refused "4 built for another OFED" "$EINVAL" peermem-symbols

start peer_api.ko api/nvidia-peermem.ko
refused "5 a parameter's value" "$EINVAL" peermem-modprobe peerdirect_support=7

start peer_api.ko api/nvidia-peermem.ko
mkdir -p /etc/modprobe.d
echo 'install nvidia-peermem /bin/false' >/etc/modprobe.d/gpu.conf
refused "6 an install line" "$EINVAL" peermem-modprobe

# Its twin: the words differ, the cause does too.
start api/nvidia-peermem.ko
refused "7 the kernel's own RDMA core" "Unknown symbol" peermem-inbox-core

start peer_api.ko nv_peer_mem.ko api/nvidia-peermem.ko
modprobe nvidia-peermem
which=nv_peer_mem refused "8 the old module comes second, which is well" "$EINVAL" ""

# What is mended is not held against the machine, though the log still tells of it.
start peer_api.ko other/nvidia-peermem.ko
modprobe peer_api
modprobe nvidia-peermem 2>/dev/null
modprobe nvidia-peermem peerdirect_support=7 2>/dev/null
install_modules api/nvidia-peermem.ko
modprobe nvidia-peermem peerdirect_support=7 2>/dev/null
check "9 mended: it loads" modprobe nvidia-peermem
! have onehop || onehop check --json >/tmp/onehop.json
! have onehop || is "9 mended: onehop" "$(faults)" ""
