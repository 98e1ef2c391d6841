# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# machine: nogpu
# rdma: yes
# programs: tc
# limit: 600
# hosts: 2
#
# onehop bench rdma between two guests over soft RoCE whose network is broken in one way after another: the sentence that the
# user gets, and within which time. Host 1 listens, and host 2 breaks its own end.
# shellcheck source=/dev/null
. /lib.sh
export NO_COLOR=1
modprobe crc32_generic
modprobe -a virtio_pci virtio_net rdma_rxe ib_uverbs sch_prio sch_netem sch_tbf cls_u32 dummy
ip link set lo up
card=$(cable_card)
soft_roce rxe0 "$card" "10.0.0.$HOST"
before=$(rdma resource)

if [ "$HOST" = 1 ]; then
	onehop bench rdma --device host:1 --memory-by host --nics rxe0 --listen 10.0.0.1 >/tmp/listener 2>/tmp/listener.err &
	listener=$!
	# The other host says when it is done, on the cable.
	nc -l -p 18601 >/tmp/done
	kill -INT $listener
	wait $listener
	is 'host 1: nothing is left in the NIC' "$(rdma resource)" "$before"
	is 'host 1: no port is left' "$(grep -c ':48A8 .* 0A ' /proc/net/tcp)" 0 # in the state LISTEN
	exit
fi

# begin: a run that is broken in the middle; of all sizes, so that it cannot be done before
begin() {
	sent=$(packets rxe0)
	onehop bench rdma --device host:1 --memory-by host --nics rxe0 --depth 8 --time 60 --only write --sweep 10.0.0.1 >/tmp/said 2>/tmp/err &
	client=$!
	under_way rxe0 "$sent"
}

now() { cut -d . -f 1 /proc/uptime; }

# measure NAME STATUS ARGUMENT...: how long it took is in $took
measure() {
	what=$1 want=$2
	shift 2
	start=$(now)
	run "$what" "$want" onehop bench rdma --device host:1 --memory-by host --nics rxe0 --depth 8 --time 0.2 "$@" 10.0.0.1
	took=$(($(now) - start))
}

# within NAME SECONDS
within() {
	if [ "$took" -le "$2" ]; then echo "ok - $1"; else echo "FAIL - $1: $took s"; fi
}

waited=0
until onehop bench rdma --device host:1 --memory-by host --nics rxe0 --time 0.1 --depth 8 --only latency 10.0.0.1 >/tmp/said 2>&1 ||
	[ $waited -ge 60 ] || ! grep -q 'cannot reach' /tmp/said; do
	waited=$((waited + 1))
	sleep 1
done
said 'at first all is well' 'All pairs of NICs reach each other: 1 of 1'

# rate OUTPUT: GB/s of the first rail
unshaped=$(onehop bench rdma --device host:1 --memory-by host --nics rxe0 --depth 8 --time 0.3 --only write --no-verify --json 10.0.0.1 2>/dev/null |
	jq '.figures[] | select(.what == "nic-write") | .median * 1e6 | floor')

# ---- a link that is shaped to 10 Mbit/s = 1.25 MB/s ----
tc qdisc add dev "$card" root tbf rate 10mbit burst 32k latency 400ms
shaped=$(onehop bench rdma --device host:1 --memory-by host --nics rxe0 --depth 8 --time 0.3 --only write --no-verify --size 4K --json 10.0.0.1 2>/dev/null |
	jq '.figures[] | select(.what == "nic-write") | .median * 1e6 | floor')
measure 'a shaped link: as expected when told' 0 --only write --no-verify --size 4K --expect 0.00125
said 'a shaped link: and says so' 'Rates as expected, 0.00125 GB/s'
measure 'a shaped link: below the unshaped rate' 1 --only write --no-verify --size 4K --expect "0.$(printf '%06d' "$unshaped")"
said 'a shaped link: and says that' 'Rates below what is expected'
tc qdisc del dev "$card" root
# 64 MiB take longer than a listener waits for a peer that asks for nothing.
tc qdisc add dev "$card" root tbf rate 20mbit burst 32k latency 400ms
measure 'a slow link: its data is checked all the same' 0 --only write --memory-by host
said 'a slow link: and is right' 'correct in'
measure 'a slow link: messages that would take too long' 0 --only write,latency --size 8M --expect 0.0025
said 'a slow link: are left out' 'left out, because at this rate'
measure 'a slow link: messages that take too long, where nobody has said so' 1 --only write --no-verify --size 8M
said 'a slow link: it may be slow' 'a link slower than 2.8 MB/s takes longer'
tc qdisc del dev "$card" root
echo "# write, kB/s: $unshaped unshaped, $shaped at 10 Mbit/s"
# a fifth more, because the bucket's 32 KiB are in the samples
if [ "${shaped:-0}" -gt 0 ] && [ "$shaped" -le 1500 ]; then
	echo 'ok - a shaped link: no more than it carries'
else
	echo "FAIL - a shaped link: ${shaped:-nothing} kB/s of 1500"
fi

# ---- a firewall that drops UDP port 4791, and TCP passes ----
tc qdisc add dev "$card" root handle 1: prio
tc filter add dev "$card" parent 1: protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff flowid 1:3
tc qdisc add dev "$card" parent 1:3 handle 30: netem loss 100%
measure 'a firewall: exit status' 1 --only write
tc qdisc del dev "$card" root
said 'a firewall: not reached' 'Not all pairs of NICs reach each other: 0 of 1'
said 'a firewall: the port is named' 'UDP port 4791'
within 'a firewall: known within 10 s' 10

# ---- it comes back without a new listener ----
measure 'afterwards it works again' 0 --only latency

# ---- a firewall in the middle of a run ----
begin
tc qdisc add dev "$card" root handle 1: prio
tc filter add dev "$card" parent 1: protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff flowid 1:3
tc qdisc add dev "$card" parent 1:3 handle 30: netem loss 100%
start=$(now)
wait $client
is 'packets that are lost in the middle: exit status' $? 1
took=$(($(now) - start))
tc qdisc del dev "$card" root
within 'packets that are lost in the middle: known within 10 s' 10
said 'packets that are lost in the middle: what was done is there' 'All pairs of NICs reach each other: 1 of 1'
said 'packets that are lost in the middle: the port is named' 'UDP port 4791'

# ---- a port whose address is of another network, without a route ----
ip link add dummy0 type dummy
soft_roce rxe1 dummy0 10.9.0.2
start=$(now)
run 'an address of another network: exit status' 1 onehop bench rdma --device host:1 --memory-by host --nics rxe1 --only write 10.0.0.1
took=$(($(now) - start))
said 'an address of another network: both are named' '10.9.0.2 and 10.0.0.1 are addresses of two networks'
within 'an address of another network: known within 10 s' 10
rdma link delete rxe1
ip link del dummy0

# ---- an address that --gid asks for: one of a kind that the other host does not have, and one that is not there ----
ip addr add fd00::2/64 dev "$card"
await 60 grep -q ^fd00: "$(roce_port rxe0)/gids/2"
measure 'an index of another kind: exit status' 1 --only write --gid 2
said 'an index of another kind: the reason' 'no addresses of one type and family, and --gid leaves no other'
within 'an index of another kind: known within 10 s' 10
measure 'an index that is empty: exit status' 2 --only write --gid 9
said 'an index that is empty: the reason' 'no port has an address with that index'
measure 'the index that would be chosen: exit status' 0 --only latency --gid 1
ip addr del fd00::2/64 dev "$card"

# ---- an address that is removed in the middle ----
begin
ip addr del 10.0.0.2/24 dev "$card"
start=$(now)
wait $client
is 'an address that goes away in the middle: exit status' $? 1
took=$(($(now) - start))
within 'an address that goes away in the middle: known within 10 s' 10
said 'an address that goes away in the middle: the reason' 'the NIC reports: GID table change'
ip addr add 10.0.0.2/24 dev "$card"
await 60 roce_is_ready rxe0 10.0.0.2

# ---- a port that goes down in the middle ----
begin
ip link set "$card" down
start=$(now)
wait $client
is 'a link that goes down: exit status' $? 1
took=$(($(now) - start))
within 'a link that goes down: known within 10 s' 10
said 'a link that goes down: the reason' 'the NIC reports: port error'
ip link set "$card" up
ip addr add 10.0.0.2/24 dev "$card" 2>/dev/null
sleep 3
is 'host 2: nothing is left in the NIC' "$(rdma resource)" "$before"
echo bye | nc 10.0.0.1 18601
