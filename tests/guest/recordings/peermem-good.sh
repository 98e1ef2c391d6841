# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# modules: yes
# note: nvidia-peermem is loaded and registered, a NIC is near; the good twin of the guest-peermem machines.
# note: nvidia, nvidia-peermem, mlx5_core and the interface are stand-ins (tests/guest/modules/).
. /lib.sh
install_modules nvidia.ko peer_api.ko standin_rdma.ko api/nvidia-peermem.ko
modprobe -a standin_rdma nvidia-peermem
