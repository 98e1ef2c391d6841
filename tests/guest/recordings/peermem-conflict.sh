# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# modules: yes
# note: nv_peer_mem was loaded first, so that nvidia-peermem could not register.
# note: All of these modules are stand-ins (tests/guest/modules/).
. /lib.sh
install_modules nvidia.ko peer_api.ko standin_rdma.ko api/nvidia-peermem.ko nv_peer_mem.ko
modprobe -a standin_rdma nv_peer_mem
modprobe nvidia-peermem
