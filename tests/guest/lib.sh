#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # jq has variables too
#
# What the scripts in checks/ and recordings/ use; /lib.sh in the guest.  One line of output per
# check: "ok - NAME", "FAIL - NAME: why" or "skip - NAME: why".  None of the
# check functions ends the script.

# is NAME GOT WANT
is() {
    if [ "$2" = "$3" ]; then echo "ok - $1"; else echo "FAIL - $1: got '$2', want '$3'"; fi
}

# like NAME GOT PATTERN (of the shell)
like() {
    # shellcheck disable=SC2254 # a pattern is meant
    case $2 in
    $3) echo "ok - $1" ;;
    *) echo "FAIL - $1: got '$2', want '$3'" ;;
    esac
}

# check NAME COMMAND...: COMMAND succeeds
check() {
    name=$1
    shift
    if output=$("$@" 2>&1); then
        echo "ok - $name"
    else
        echo "FAIL - $name: status $?: $(echo "$output" | tr '\n' ' ')"
    fi
}

# run NAME STATUS COMMAND...: COMMAND ends with that exit status; what it says is in /tmp/said, and
# shown if the status is another
run() {
    name=$1 want=$2
    shift 2
    "$@" >/tmp/said 2>&1
    got=$?
    is "$name: exit status" $got "$want"
    [ "$got" = "$want" ] || sed 's/^/#   /' /tmp/said
}

# said NAME PATTERN: and it says that, whatever way its lines are wrapped
said() { like "$1" "$(tr -s '\n ' ' ' </tmp/said)" "*$2*"; }

# same NAME FILE FILE: two files are alike
same() { check "$1" diff "$2" "$3"; }

# skip NAME WHY
skip() { echo "skip - $1: $2"; }

# await SECONDS COMMAND...: until COMMAND succeeds, or that long; 0 if it did
await() {
    tries=$(($1 * 10))
    shift
    until "$@"; do
        [ $tries -gt 0 ] || return 1
        tries=$((tries - 1))
        sleep 0.1
    done
}

# have COMMAND
have() { command -v "$1" >/dev/null; }

# as_user COMMAND: by sh, as a user without rights
as_user() { su -s /bin/sh user -c "$1"; }

# ---- reading the machine; a device is BB:DD.F ----

sys() { cat "/sys/bus/pci/devices/0000:$1/$2"; }

# acs DEVICE: its ACS control register, or "none"
acs() { setpci -s "$1" ECAP_ACS+6.w 2>/dev/null || echo none; }

# acs_ports: those that have the register; the first call looks, and remembers
acs_ports() {
    [ -e /tmp/acs-ports ] || for port in $(lspci -n | sed -n 's/^\([^ ]*\) 0604: .*/\1/p'); do
        [ "$(acs "$port")" = none ] || echo "$port"
    done >/tmp/acs-ports
    cat /tmp/acs-ports
}

# every_acs: "DEVICE VALUE" of each of them, one line each
every_acs() {
    set --
    for port in $(acs_ports); do
        set -- "$@" -s "$port" ECAP_ACS+6.w
    done
    setpci -v "$@" | sed 's/^0000:\([^ ]*\) .* = /\1 /'
}

# link DEVICE: current and possible link, "8.0x8 of 16.0x16"
link() {
    echo "$(sys "$1" current_link_speed)x$(sys "$1" current_link_width) of" \
        "$(sys "$1" max_link_speed)x$(sys "$1" max_link_width)" | sed 's, GT/s[ PCIe]*,,g'
}

# bar DEVICE N: size of a BAR in MiB
bar() {
    sys "$1" resource | sed -n "$(($2 + 1))p" | {
        read -r start end _
        echo $(((end - start + 1) >> 20))
    }
}

# group DEVICE: number of its IOMMU group, or "none"
group() {
    path=$(readlink "/sys/bus/pci/devices/0000:$1/iommu_group") || path=none
    echo "${path##*/}"
}

# group_types: the different types of all groups, or nothing
group_types() { cat /sys/kernel/iommu_groups/*/type 2>/dev/null | sort -u | tr '\n' ' '; }

iommus() { ls /sys/class/iommu; }

# ---- onehop ----

# snapshot: what a program that only looks leaves as it is
snapshot() {
    cd /sys/bus/pci/devices || return
    md5sum ./*/config ./*/resource
    cat ./*/enable ./*/power_state
    stat -c %N ./*/driver ./*/iommu_group 2>/dev/null
    cat /proc/modules /proc/cmdline /sys/kernel/iommu_groups/*/type 2>/dev/null
    find /dev /etc /home /lib/modules /root /run /var -xdev | sort
    cd /
}

# onehop_checks STATUS [TOPO-STATUS]: run it once, with that exit status; then
# json FILTER reads its report with jq.  Fails, after saying "skip", if this run
# has no onehop to test.
onehop_checks() {
    if ! have onehop; then
        skip "onehop check" "no binary given"
        return 1
    fi
    snapshot >/tmp/before
    onehop check --json >/tmp/onehop.json 2>/tmp/onehop.err
    is "onehop check: exit status" $? "$1"
    onehop topo --json >/tmp/topo.json
    is "onehop topo: exit status" $? "${2:-0}"
    snapshot >/tmp/after
    check "onehop changes nothing" diff /tmp/before /tmp/after
    is "onehop check: no complaint" "$(cat /tmp/onehop.err)" ""
    check "onehop check: valid JSON" jq -e . /tmp/onehop.json
    check "onehop topo: valid JSON" jq -e . /tmp/topo.json
}

# onehop_checks_as_user: onehop_checks, without rights; a finding is expected
onehop_checks_as_user() {
    as_user 'onehop check --json' >/tmp/onehop.json 2>/tmp/onehop.err
    is "user: onehop check: exit status" $? 1
    check "user: onehop check: valid JSON" jq -e . /tmp/onehop.json
    as_user 'onehop topo --json' >/tmp/topo.json
    is "user: onehop topo: exit status" $? 0
    check "user: onehop record" as_user 'onehop record /tmp/user.tar.gz'
    as_user 'onehop check --json --from /tmp/user.tar.gz' >/tmp/replayed.json
    is "user: the recording is judged alike" "$(jq -c .rules /tmp/replayed.json)" "$(json -c .rules)"
}

json() { jq -r "$@" /tmp/onehop.json; }

# found RULE: the devices (else the subjects) that it finds fault with
found() {
    json --arg rule "$1" '[.findings[] | select(.rule == $rule) | (.pci // .subject) | sub("^0000:"; "")]
        | sort | join(" ")'
}

# outcome RULE: ok, bad, unknown or not-applicable; why RULE: why it is unknown
outcome() { json --arg rule "$1" '.rules[] | select(.id == $rule) | .outcome'; }
why() { json --arg rule "$1" '.rules[] | select(.id == $rule) | .why'; }

# sentence RULE: of its first finding
sentence() { json --arg rule "$1" '[.findings[] | select(.rule == $rule)][0].sentence'; }

# classes: of each pair of GPUs, by onehop topo: "01=PIX ..."
classes() {
    jq -r '[.pairs[] | select(.initiator < .target) | (.initiator + .target | gsub("GPU"; "")) + "=" + .class]
        | join(" ")' /tmp/topo.json
}

# ---- onehop fix ----

# have_onehop: fails, after saying "skip", if this run has no onehop to test
have_onehop() { have onehop || { skip "onehop fix" "no binary given"; return 1; }; }

# plan NAME STATUS ARGUMENT...: onehop fix only plans, with that exit status, and changes nothing;
# the text is in /tmp/said, and the JSON is what planned, by_hand and parameters read
plan() {
    name=$1 want=$2
    shift 2
    snapshot >/tmp/before
    run "$name" "$want" onehop fix "$@"
    onehop fix --json "$@" >/tmp/plan.json
    snapshot >/tmp/after
    same "$name: nothing is changed" /tmp/before /tmp/after
}

# planned KIND: "TARGET=NEW ..." of the steps of that kind
planned() {
    jq -r --arg kind "$1" '[.steps[] | select(.kind == $kind) | (.target | sub("^0000:"; "")) + "=" + .new]
        | sort | join(" ")' /tmp/plan.json
}

# by_hand: what is left to a person, one line each
by_hand() { jq -r '.manual[] | .what + ": " + .how' /tmp/plan.json; }

# parameters: the kernel parameters that a person is told to add
parameters() {
    jq -r '.manual[] | select(.what | contains(" to the kernel command line")) | .how' /tmp/plan.json |
        grep -oE '[a-z_]*iommu=[a-z]+|pci=[a-z_]+=[0-9a-f:.;]+|pci=realloc' | sort -u | tr '\n' ' '
}

# applied N: what the journal says of fix N, "applied" or "undone"
applied() { onehop history --json | jq -r --argjson n "$1" '.fixes[] | select(.fix == $n) | .state'; }

# ---- soft RoCE ----

# roce_port NAME: of its only port, in sysfs
roce_port() { echo "/sys/class/infiniband/$1/ports/1"; }

# gid_of ADDRESS: IPv4, as it ends in a table of GIDs
gid_of() {
    echo "$1" | {
        IFS=. read -r a b c d
        printf 'ffff:%02x%02x:%02x%02x\n' "$a" "$b" "$c" "$d"
    }
}

roce_is_ready() {
    grep -q ACTIVE "$(roce_port "$1")/state" && grep -q "$(gid_of "$2")" "$(roce_port "$1")"/gids/[01] 2>/dev/null
}

# soft_roce NAME CARD ADDRESS: a NIC on a network card, once it has its address
soft_roce() {
    ip link set "$2" up
    ip addr add "$3/24" dev "$2"
    rdma link add "$1" type rxe netdev "$2"
    await 60 roce_is_ready "$1" "$3" || echo "FAIL - $1 has no address $3"
}

# cable_card: the network card on the cable between two guests
cable_card() {
    address=52:54:00:00:00:0$HOST
    await 20 grep -q "$address" /sys/class/net/*/address || echo "FAIL - host $HOST: no network card on the cable" >&2
    basename "$(dirname "$(grep -l "$address" /sys/class/net/*/address)")"
}

# packets NAME: that it has sent
packets() { cat "$(roce_port "$1")/hw_counters/sent_pkts"; }

# under_way NAME FROM: it has sent more than a test of reachability does. A run that is to be broken in
# the middle waits for this, and never for a time or for a line of progress: a fast machine prints none.
has_sent() { [ $(($(packets "$1") - $2)) -gt 500 ]; }
under_way() { await 60 has_sent "$@" || echo "FAIL - $1 sends nothing"; }

# listens PORT: some process accepts TCP connections there
listens() { grep -qi ":$(printf '%04x' "$1") .* 0A " /proc/net/tcp /proc/net/tcp6; }

# ---- stand-in modules (modules/), at /modules if the script's header asks for them ----

# install_modules FILE...: where modprobe finds them
install_modules() {
    dir=/lib/modules/$(uname -r)/updates
    mkdir -p "$dir"
    (cd /modules && cp "$@" "$dir/")
    depmod
}

# remove_modules: none is loaded or installed any more; install_modules comes next
remove_modules() {
    for module in nvidia_peermem nv_peer_mem standin_rdma peer_api nvidia; do
        rmmod $module 2>/dev/null
    done
    rm -rf "/lib/modules/$(uname -r)/updates"
}

# forget_log: the kernel's log has nothing of before; needs "printk.devkmsg=on" in the command line.
# dmesg -C would hide old lines from itself only.
forget_log() {
    line=$(printf '%0900d' 0)
    i=0
    while [ $i -lt 400 ]; do
        echo "$line"
        i=$((i + 1))
    done >/dev/kmsg
}
