# SPDX-License-Identifier: Apache-2.0
# machine: chipset
# user: yes
# note: Software RDMA (rdma_rxe) on lo and on a network card without a link, recorded by a user
# note: who may lock 64 KiB of memory.
modprobe crc32_generic
modprobe -a e1000e rdma_rxe
ip link set lo up
rdma link add rxe0 type rxe netdev lo
rdma link add rxe1 type rxe netdev eth0
ulimit -l 64
