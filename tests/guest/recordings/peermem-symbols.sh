# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# modules: yes
# note: nvidia-peermem was built for another OFED: the kernel refuses it for the version of a symbol.
# note: All of these modules are stand-ins (tests/guest/modules/), the refusal is the kernel's.
. /lib.sh
install_modules nvidia.ko peer_api.ko standin_rdma.ko other/nvidia-peermem.ko
modprobe -a standin_rdma peer_api
modprobe nvidia-peermem
