# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# modules: yes
# note: A line in modprobe.d runs /bin/false instead of loading nvidia-peermem.
# note: All of these modules are stand-ins (tests/guest/modules/).
. /lib.sh
install_modules nvidia.ko peer_api.ko standin_rdma.ko api/nvidia-peermem.ko
mkdir -p /etc/modprobe.d
echo 'install nvidia-peermem /bin/false' >/etc/modprobe.d/gpu.conf
modprobe -a nvidia standin_rdma
modprobe nvidia-peermem
