# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# machine: nogpu
# rdma: yes
# hosts: 2
#
# onehop bench rdma between two guests over soft RoCE: host 1 listens, host 2 measures. As docs/rdma.md says.
# shellcheck source=/dev/null
. /lib.sh
export NO_COLOR=1
modprobe crc32_generic
modprobe -a virtio_pci virtio_net rdma_rxe ib_uverbs
ip link set lo up
card=$(cable_card)
soft_roce rxe0 "$card" "10.0.0.$HOST"
before=$(rdma resource)

# reports N: how many the listener has printed
reports() { [ "$(grep -c '^Measured by' /tmp/listener)" -ge "$1" ]; }

if [ "$HOST" = 1 ]; then
	onehop bench rdma --device host:1 --memory-by host --nics rxe0 --listen 10.0.0.1 >/tmp/listener 2>/tmp/listener.err &
	listener=$!
	await 200 reports 3
	kill -INT $listener
	wait $listener
	tr -s '\n ' ' ' </tmp/listener >/tmp/said
	said 'host 1: the report of a whole run' 'correct in both measurements'
	said 'host 1: and of one that was killed' 'Incomplete: '
	is 'host 1: nothing is left in the NIC' "$(rdma resource)" "$before"
	is 'host 1: no port is left' "$(grep -c ':48A8 .* 0A ' /proc/net/tcp)" 0 # in the state LISTEN
	exit
fi

waited=0
until onehop bench rdma --device host:1 --memory-by host --nics rxe0 --time 0.1 --depth 8 --only write,read 10.0.0.1 >/tmp/said 2>&1; do
	if [ $waited -ge 60 ] || ! grep -q 'cannot reach' /tmp/said; then
		break
	fi
	waited=$((waited + 1))
	sleep 1
done
said 'host 2: reached' 'All pairs of NICs reach each other: 1 of 1'
said 'host 2: checked by the owner' 'correct in both measurements'
grep -q 'correct in both' /tmp/said || sed 's/^/#   /' /tmp/said

sent=$(packets rxe0)
# All sizes, so that it cannot be done before it is killed.
onehop bench rdma --device host:1 --memory-by host --nics rxe0 --time 60 --depth 8 --only write --sweep 10.0.0.1 >/tmp/client 2>/tmp/client.err &
client=$!
under_way rxe0 "$sent"
kill -KILL $client
wait $client

# Jumbo frames at one end only: the connection takes the smaller MTU.
ip link set "$card" mtu 9000
run 'host 2: another MTU at one end' 0 onehop bench rdma --device host:1 --memory-by host --nics rxe0 --time 0.1 --depth 8 \
	--only latency --no-verify 10.0.0.1
said 'host 2: reached all the same' 'All pairs of NICs reach each other: 1 of 1'
is 'host 2: nothing is left in the NIC' "$(rdma resource)" "$before"
