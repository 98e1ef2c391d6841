# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# modules: yes
# note: nvidia-peermem is installed and not loaded, and the NIC's port is down.
# note: nvidia, nvidia-peermem, mlx5_core and the interface are stand-ins (tests/guest/modules/).
. /lib.sh
install_modules nvidia.ko peer_api.ko standin_rdma.ko api/nvidia-peermem.ko
modprobe nvidia
modprobe standin_rdma no_link=1
