# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# machine: nogpu
# rdma: yes
#
# onehop bench rdma between two processes over the kernel's soft RoCE, each with its own end of a connection: real
# queue pairs, addresses and completions, instead of the stand-in of libibverbs. One guest is both hosts.
# shellcheck source=/dev/null
. /lib.sh
export NO_COLOR=1
modprobe crc32_generic
modprobe -a e1000e rdma_rxe ib_uverbs
ip link set lo up
soft_roce rxe0 eth0 10.0.0.15
soft_roce rxe1 eth1 10.0.1.15
before=$(rdma resource)

onehop bench rdma --device host:1 --memory-by host --nics rxe0 --listen 127.0.0.1:18600 >/tmp/listener 2>/tmp/listener.err &
listener=$!
await 60 listens 18600
run 'both ends' 0 onehop bench rdma --device host:1 --memory-by host --nics rxe0 --time 0.1 --depth 16 127.0.0.1
said 'every pair' 'All pairs of NICs reach each other: 1 of 1'
said 'checked by the owner' 'correct in all 5 measurements'
run 'sends and writes with immediate' 0 onehop bench rdma --device host:1 --memory-by host --nics rxe0 --time 0.1 --depth 16 --only send,immediate 127.0.0.1
said 'both are measured' 'us imm. us send'
sent=$(packets rxe0)
# All sizes, so that it cannot be done before it is killed.
onehop bench rdma --device host:1 --memory-by host --nics rxe0 --time 60 --depth 16 --only write --sweep 127.0.0.1 >/tmp/client 2>/tmp/client.err &
client=$!
under_way rxe0 "$sent"
kill -KILL $client
wait $client
run 'after a client that was killed' 0 onehop bench rdma --device host:1 --memory-by host --nics rxe0 --time 0.1 --only read 127.0.0.1
is 'what it had done' "$(tr '\n' ' ' </tmp/listener | grep -c 'Incomplete: .*All pairs of NICs reach each other: 1 of 1')" 1
kill -INT $listener
wait $listener
is 'nothing is left in the NIC' "$(rdma resource)" "$before"
is 'no port is left' "$(grep -c ':48A8 .* 0A ' /proc/net/tcp)" 0 # in the state LISTEN
