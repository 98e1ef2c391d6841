# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# modules: yes
# note: nvidia-peermem was built with the peer-memory interface and the running kernel has none: unknown symbol.
# note: All of these modules are stand-ins (tests/guest/modules/), the refusal is the kernel's.
. /lib.sh
install_modules nvidia.ko standin_rdma.ko api/nvidia-peermem.ko
modprobe -a nvidia standin_rdma
modprobe nvidia-peermem
