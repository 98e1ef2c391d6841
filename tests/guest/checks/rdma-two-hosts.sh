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
waited=0
until grep -q "52:54:00:00:00:0$HOST" /sys/class/net/*/address || [ $waited -ge 20 ]; do
	waited=$((waited + 1))
	sleep 1
done
card=$(basename "$(dirname "$(grep -l "52:54:00:00:00:0$HOST" /sys/class/net/*/address)")")
[ -e "/sys/class/net/$card/address" ] || {
	echo "FAIL - host $HOST: no network card on the cable"
	exit
}
ip link set "$card" up
ip addr add "10.0.0.$HOST/24" dev "$card"
rdma link add rxe0 type rxe netdev "$card"
port=/sys/class/infiniband/rxe0/ports/1
waited=0
until grep -q ACTIVE $port/state && grep -q "ffff:0a00:000$HOST" $port/gids/1; do
	[ $waited -lt 60 ] || break
	waited=$((waited + 1))
	sleep 1
done
before=$(rdma resource)

# reports N: how many the listener has printed
reports() { [ "$(grep -c '^Measured by' /tmp/listener)" -ge "$1" ]; }

if [ "$HOST" = 1 ]; then
	onehop bench rdma --device host:1 --nics rxe0 --listen 10.0.0.1 >/tmp/listener 2>/tmp/listener.err &
	listener=$!
	waited=0
	until reports 3; do
		[ $waited -lt 200 ] || break
		waited=$((waited + 1))
		sleep 1
	done
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
until onehop bench rdma --device host:1 --nics rxe0 --time 0.1 --depth 8 --only write,read 10.0.0.1 >/tmp/said 2>&1; do
	if [ $waited -ge 60 ] || ! grep -q 'cannot reach' /tmp/said; then
		break
	fi
	waited=$((waited + 1))
	sleep 1
done
said 'host 2: reached' 'All pairs of NICs reach each other: 1 of 1'
said 'host 2: checked by the owner' 'correct in both measurements'
grep -q 'correct in both' /tmp/said || sed 's/^/#   /' /tmp/said

onehop bench rdma --device host:1 --nics rxe0 --time 60 --depth 8 --only write 10.0.0.1 >/tmp/client 2>/tmp/client.err &
client=$!
waited=0
until grep -q 'reach each other' /tmp/client.err || [ $waited -ge 60 ]; do
	waited=$((waited + 1))
	sleep 1
done
kill -KILL $client
wait $client

# Jumbo frames at one end only: the connection takes the smaller MTU.
ip link set "$card" mtu 9000
run 'host 2: another MTU at one end' 0 onehop bench rdma --device host:1 --nics rxe0 --time 0.1 --depth 8 \
	--only latency --no-verify 10.0.0.1
said 'host 2: reached all the same' 'All pairs of NICs reach each other: 1 of 1'
is 'host 2: nothing is left in the NIC' "$(rdma resource)" "$before"
