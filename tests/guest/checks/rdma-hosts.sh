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
for i in 0 1; do
	ip link set eth$i up
	ip addr add 10.0.$i.15/24 dev eth$i
	rdma link add rxe$i type rxe netdev eth$i
	port=/sys/class/infiniband/rxe$i/ports/1
	waited=0
	until grep -q ACTIVE $port/state && grep -q ffff:0a00:0${i}0f $port/gids/1; do
		[ $waited -lt 60 ] || break
		waited=$((waited + 1))
		sleep 1
	done
done
before=$(rdma resource)

onehop bench rdma --device host:1 --nics rxe0 --listen 127.0.0.1:18600 >/tmp/listener 2>/tmp/listener.err &
listener=$!
until grep -q 'listening on' /tmp/listener.err; do sleep 1; done
run 'both ends' 0 onehop bench rdma --device host:1 --nics rxe0 --time 0.1 --depth 16 127.0.0.1
said 'every pair' 'All pairs of NICs reach each other: 1 of 1'
said 'checked by the owner' 'correct in all 3 measurements'
onehop bench rdma --device host:1 --nics rxe0 --time 60 --only write 127.0.0.1 >/tmp/client 2>/tmp/client.err &
client=$!
until grep -q 'reach each other' /tmp/client.err; do sleep 1; done
kill -KILL $client
wait $client
run 'after a client that was killed' 0 onehop bench rdma --device host:1 --nics rxe0 --time 0.1 --only read 127.0.0.1
is 'what it had done' "$(tr '\n' ' ' </tmp/listener | grep -c 'Incomplete: .*All pairs of NICs reach each other: 1 of 1')" 1
kill -INT $listener
wait $listener
is 'nothing is left in the NIC' "$(rdma resource)" "$before"
is 'no port is left' "$(grep -c ':48A8 .* 0A ' /proc/net/tcp)" 0 # in the state LISTEN
