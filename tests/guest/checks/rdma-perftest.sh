# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# machine: nogpu
# rdma: yes
# programs: ib_write_bw ib_read_bw ib_write_lat ib_send_lat
# limit: 480
#
# onehop bench rdma --as perftest over soft RoCE: this program as the client, and as the server, of the distribution's
# perftest. One guest is both hosts.
# shellcheck source=/dev/null
. /lib.sh
export NO_COLOR=1
modprobe crc32_generic
modprobe -a e1000e rdma_rxe ib_uverbs
ip link set lo up
soft_roce rxe0 eth0 10.0.0.15
before=$(rdma resource)
release=$(ib_write_bw --version | sed -n 's/^Version: //p')

# perftest_of MEASUREMENT: its command line
perftest_of() {
	case $1 in
	write) echo 'ib_write_bw -d rxe0 -t 16 -n 50' ;;
	read) echo 'ib_read_bw -d rxe0 -n 50' ;;
	latency) echo 'ib_write_lat -d rxe0 -n 200' ;;
	send) echo 'ib_send_lat -d rxe0 -n 200' ;;
	esac
}

# onehop_as MEASUREMENT ARGUMENT...
onehop_as() {
	only=$1
	shift
	onehop bench rdma --device host:1 --nics rxe0 --as perftest --only "$only" --iterations 200 --depth 16 "$@"
}

for what in write read latency send; do
	program=$(perftest_of $what)
	tool=${program%% *}
	# shellcheck disable=SC2086 # several words
	timeout 40 $program >/tmp/server 2>&1 &
	server=$!
	await 60 listens 18515
	run "client of $tool" 0 onehop_as $what --time 0.1 127.0.0.1
	said "client of $tool: names it" "$tool with perftest $release on 127.0.0.1"
	wait $server
	is "client of $tool: the server ended well" $? 0
	like "client of $tool: the server prints figures" "$(grep -E '^ [0-9]' /tmp/server)" ' *[0-9].[0-9]*'

	onehop_as $what --listen 127.0.0.1 >/tmp/said 2>&1 &
	server=$!
	await 60 listens 18515
	# shellcheck disable=SC2086 # several words
	timeout 40 $program 127.0.0.1 >/tmp/client 2>&1
	is "server of $tool: the client ended well" $? 0
	like "server of $tool: the client prints figures" "$(grep -E '^ [0-9]' /tmp/client)" ' *[0-9].[0-9]*'
	wait $server
	is "server of $tool: exit status" $? 0
	said "server of $tool: names it" "perftest $release on 127.0.0.1 with rxe0"
	case $what in latency | send) ;; *) said "server of $tool: what the client reports" 'It reports' ;; esac
	sleep 1
done

run 'nothing listens there: exit status' 1 onehop_as write 127.0.0.1:9
said 'nothing listens there' 'does ib_write_bw or the like run there?'
# A number of round trips, so that it cannot be done before: a bandwidth ends when its interval is narrow.
ib_write_lat -d rxe0 -n 1000000 >/tmp/server 2>&1 &
server=$!
await 60 listens 18515
sent=$(packets rxe0)
onehop bench rdma --device host:1 --nics rxe0 --as perftest --only latency --iterations 1000000 127.0.0.1 >/tmp/said 2>&1 &
client=$!
under_way rxe0 "$sent"
kill -KILL $server
start=$(cut -d . -f 1 /proc/uptime)
wait $client
is 'a server that is killed: exit status' $? 1
took=$(($(cut -d . -f 1 /proc/uptime) - start))
[ $took -le 10 ] && took=short
is 'a server that is killed: known within 10 s' "$took" short
said 'a server that is killed: the reason' 'failed'
is 'nothing is left in the NIC' "$(rdma resource)" "$before"
is 'no port is left' "$(grep -c ':4853 .* 0A ' /proc/net/tcp)" 0 # in the state LISTEN
