# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# modules: yes
# note: nvidia-peermem was built without the peer-memory interface: modprobe fails with EINVAL, the log is silent.
# note: nvidia, nvidia-peermem and mlx5_core are stand-ins (tests/guest/modules/).
. /lib.sh
install_modules nvidia.ko standin_rdma.ko bare/nvidia-peermem.ko
modprobe -a nvidia standin_rdma
modprobe nvidia-peermem
