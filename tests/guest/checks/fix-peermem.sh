# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# modules: yes
# cmdline: printk.devkmsg=on
# nvidia-peermem loaded and nv_peer_mem unloaded by onehop, and back.  The modules are stand-ins.
. /lib.sh
have_onehop || exit 0

# loaded: which of those that matter are
loaded() { cut -d ' ' -f 1 /proc/modules | grep -x -e nvidia -e nvidia_peermem -e nv_peer_mem -e standin_rdma | sort | tr '\n' ' '; }
faults() { onehop check --json >/tmp/onehop.json; json '[.findings[].rule | select(startswith("peermem-"))] | unique | join(" ")'; }

# ---- a module that the kernel refuses: what was done before is taken back ----

install_modules nvidia.ko standin_rdma.ko peer_api.ko nv_peer_mem.ko other/nvidia-peermem.ko
modprobe nvidia closed=1
modprobe -a standin_rdma peer_api
before=$(loaded)
is "refused: what check says first" "$(faults)" peermem-not-loaded
run "refused" 4 onehop fix peermem-not-loaded --now --apply
said "refused: in modprobe's words" "Invalid argument"
is "refused: nothing is loaded" "$(loaded)" "$before"
is "refused: now check knows the cause" "$(faults)" peermem-symbols
is "refused: journal" "$(applied 1)" failed-undone

# ---- load ----

remove_modules
forget_log
install_modules nvidia.ko standin_rdma.ko peer_api.ko nv_peer_mem.ko api/nvidia-peermem.ko
modprobe nvidia closed=1
modprobe -a standin_rdma peer_api
plan "load: plan" 1 peermem-not-loaded --now
run "load" 0 onehop fix peermem-not-loaded --now --apply
is "load: it is" "$(loaded)" "nvidia nvidia_peermem standin_rdma "
is "load: it is registered" "$(cat /sys/kernel/mm/memory_peers/nv_mem/version)" 1.3
run "load again" 0 onehop fix peermem-not-loaded --now --apply
run "load: undo" 0 onehop undo
is "load: undo: it is gone, the driver stays" "$(loaded)" "$before"

# ---- the old module in its place ----

modprobe nv_peer_mem
modprobe nvidia-peermem 2>/dev/null
before=$(loaded)
is "conflict: the old one has the name" "$before" "nv_peer_mem nvidia standin_rdma "
is "conflict: check" "$(faults | tr ' ' '\n' | grep conflict)" peermem-conflict
find /etc | sort >/tmp/etc-first
run "conflict: plan" 1 onehop fix peermem-conflict
said "conflict: the package is named" "nvidia-peer-memory"
run "conflict" 0 onehop fix peermem-conflict --apply
is "conflict: they have changed places" "$(loaded)" "nvidia nvidia_peermem standin_rdma "
is "conflict: the driver ran all the time" "$(grep -c Open /proc/driver/nvidia/version)" 0
is "conflict: it is registered" "$(cat /sys/kernel/mm/memory_peers/nv_mem/version)" 1.3
like "conflict: the old one does not come back" "$(cat /etc/modprobe.d/onehop.conf)" "*nv_peer_mem*"
like "conflict: by modprobe either" "$(modprobe nv_peer_mem 2>&1; loaded)" "*nvidia nvidia_peermem standin_rdma "
run "conflict: undo" 0 onehop undo
is "conflict: undo: as before" "$(loaded)" "$before"
is "conflict: undo: the driver ran all the time" "$(grep -c Open /proc/driver/nvidia/version)" 0
find /etc -type f | sort >/tmp/etc
grep -vxF -f /tmp/etc-first /tmp/etc >/tmp/etc-new
is "conflict: undo: no file is left" "$(cat /tmp/etc-new)" ""
