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

# skip NAME WHY
skip() { echo "skip - $1: $2"; }

# have COMMAND
have() { command -v "$1" >/dev/null; }

# as_user COMMAND: by sh, as a user without rights
as_user() { su -s /bin/sh user -c "$1"; }

# ---- reading the machine; a device is BB:DD.F ----

sys() { cat "/sys/bus/pci/devices/0000:$1/$2"; }

# acs DEVICE: its ACS control register, or "none"
acs() { setpci -s "$1" ECAP_ACS+6.w 2>/dev/null || echo none; }

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

# ---- stand-in modules (modules/), at /modules if the script's header asks for them ----

# install_modules FILE...: where modprobe finds them
install_modules() {
    dir=/lib/modules/$(uname -r)/updates
    mkdir -p "$dir"
    (cd /modules && cp "$@" "$dir/")
    depmod
}
