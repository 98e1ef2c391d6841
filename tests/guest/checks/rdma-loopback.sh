# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# machine: nogpu
# rdma: yes
#
# onehop bench rdma over the kernel's soft RoCE: host memory, one port to itself. What it cannot do (dma-buf)
# answers as the kernel does, not as the stand-in of libibverbs.
# shellcheck source=/dev/null
. /lib.sh
export NO_COLOR=1
modprobe crc32_generic
modprobe -a e1000e rdma_rxe ib_uverbs
ip link set lo up
soft_roce rxe0 eth0 10.0.2.15
before=$(rdma resource)

run 'the list' 0 onehop bench rdma --device host:1 --list
said 'its address, and why' '10.0.2.15, index 1: RoCE v2, a routable IPv4 address'
said 'no dma-buf: the driver was asked' 'refused to register a dma-buf'
run 'one port to itself' 0 onehop bench rdma --device host:1 --time 0.2
said 'all data is right' 'correct in all 9 measurements'
run 'sends and writes with immediate' 0 onehop bench rdma --device host:1 --time 0.1 --only send,immediate
said 'a send' 'nic-latency-send'
said 'a write with immediate' 'nic-latency-immediate'
run 'perftest-6.06' 0 onehop bench rdma --device host:1 --time 0.1 --memory-by host --format perftest-6.06
said 'its table' 'RDMA_Read Latency Test'
run 'dma-buf all the same' 1 onehop bench rdma --device host:1 --memory-by dma-buf
said 'the answer of the real library' 'error 95'
said 'and its cause' "the NIC's driver or its library cannot register dma-bufs"
run 'on-demand paging all the same' 1 onehop bench rdma --device host:1 --memory-by on-demand
said 'the answer of the real library to that' 'error 22'
said 'and that it was known' 'This was expected: the NIC has no on-demand paging'
run 'latencies of other sizes' 0 onehop bench rdma --device host:1 --time 0.1 --memory-by host --only latency,send,immediate --size 9000
said 'checked' 'correct in all 4 measurements'
run 'a limit of 64 KiB' 1 su -s /bin/sh user -c 'ulimit -l 64; onehop bench rdma --device host:1 --memory-by host'
said 'how much is wanted' 'this process may lock 65536'
is 'nothing is left in the NIC' "$(rdma resource)" "$before"
ip link set eth0 down
sleep 1
run 'the link is down' 3 onehop bench rdma --device host:1
said 'the port is left out' 'rxe0 is skipped: the port is DOWN'
