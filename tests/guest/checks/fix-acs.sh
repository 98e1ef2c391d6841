# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091
# machine: switch2
# iommu: intel
# cmdline: iommu=pt
# Redirect bits cleared at the ports between two GPUs, set again by the kernel, and put back.
. /lib.sh
have_onehop || exit 0

every_acs >/tmp/acs-first
is "ports with ACS" "$(wc -l </tmp/acs-first)" 6
sed 's/^\(22:0[01].0\) 001d$/\1 0011/' /tmp/acs-first >/tmp/acs-cleared
is "two are to change" "$(grep -c 0011 /tmp/acs-cleared)" 2
configs() { (cd /sys/bus/pci/devices && md5sum ./*/config) | sort -k 2; }
configs >/tmp/configs-first

# ---- the plan ----

plan "plan" 1 acs-redirect --now
is "plan: ports" "$(planned register)" "22:00.0=0011 22:01.0=0011"
onehop check --json >/tmp/onehop.json
is "plan: as check found them" "$(found acs-redirect)" "22:00.0 22:01.0"
said "plan: what it costs" "Cost:*no longer isolated*"
check "plan: no state is left" test ! -e /var/lib/onehop

# ---- apply ----

run "apply" 0 onehop fix acs-redirect --now --apply
every_acs >/tmp/acs
same "apply: those bits of those ports, no others" /tmp/acs-cleared /tmp/acs
configs >/tmp/configs
is "apply: no other byte of configuration space" \
    "$(grep -vxF -f /tmp/configs-first /tmp/configs | sed 's,.* \./0000:\(.*\)/config,\1,' | tr '\n' ' ')" "22:00.0 22:01.0 "
onehop check --json >/tmp/onehop.json
is "apply: check" "$(outcome acs-redirect) $(outcome fix-in-effect)" "ok ok"
like "apply: the root ports still do" "$(sentence acs-root-port)" "2 root ports (0000:20:00.0, 0000:60:00.0)*"

run "apply again" 0 onehop fix acs-redirect --now --apply
is "apply again: no second fix" "$(onehop history --json | jq '.fixes | length')" 1
run "history" 0 onehop history
said "history: fix 1" "1*applied*"
run "history of it" 0 onehop history 1
said "history of it: the port" "0000:22:00.0"
is "in force" "$(sed 's/^\(fix 1\) [^ ]*/\1/' /var/lib/onehop/in-force | sort)" "fix 1 acs-now 0000:22:00.0 0011
fix 1 acs-now 0000:22:01.0 0011"

# ---- the kernel sets them again ----

echo 1 >/sys/bus/pci/devices/0000:21:00.0/remove
run "ports are gone: check" 1 onehop check
echo 1 >/sys/bus/pci/rescan
every_acs >/tmp/acs
same "after a rescan: set again" /tmp/acs-first /tmp/acs
onehop check --json >/tmp/onehop.json
is "after a rescan: check finds the ports" "$(found acs-redirect)" "22:00.0 22:01.0"
like "after a rescan: and that it was mended before" "$(sentence fix-in-effect)" "*0000:22:00.0*fix 1*"

run "fix again" 0 onehop fix acs-redirect --now --apply
every_acs >/tmp/acs
same "fix again: cleared" /tmp/acs-cleared /tmp/acs

# ---- undo ----

run "undo the first one first" 2 onehop undo 1
said "undo the first one first: says why" "2"
every_acs >/tmp/acs
same "undo the first one first: nothing happens" /tmp/acs-cleared /tmp/acs
run "undo" 0 onehop undo
is "undo: that was the second" "$(applied 1) $(applied 2)" "applied undone"
every_acs >/tmp/acs
same "undo: every bit is back" /tmp/acs-first /tmp/acs
run "undo the first" 0 onehop undo 1
every_acs >/tmp/acs
same "undo the first: as at the start" /tmp/acs-first /tmp/acs
is "nothing is in force" "$(grep -c . /var/lib/onehop/in-force)" 0
run "undo twice" 2 onehop undo 2
run "nothing is left to undo" 2 onehop undo

# ---- root ports: only if asked for by name ----

plan "plan of everything" 1 --now
is "plan of everything: no root port" "$(planned register)" "22:00.0=0011 22:01.0=0011"
run "root ports" 0 onehop fix acs-root-port --now --apply
every_acs >/tmp/acs
sed 's/^\([26]0:00.0\) 001d$/\1 0011/' /tmp/acs-first >/tmp/acs-root
same "root ports: those two" /tmp/acs-root /tmp/acs
run "root ports: undo" 0 onehop undo
every_acs >/tmp/acs
same "root ports: undone" /tmp/acs-first /tmp/acs
