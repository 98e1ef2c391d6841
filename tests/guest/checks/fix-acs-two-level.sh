# SPDX-License-Identifier: Apache-2.0
# machine: two-level
# iommu: amd
# Switches below a switch: the ports of both levels that lie between GPUs, and whom onehop refuses.
. /lib.sh
have_onehop || exit 0

every_acs >/tmp/acs-first
sed 's/^\(0[24]:0[01].0\) 001d$/\1 0011/' /tmp/acs-first >/tmp/acs-cleared
is "four are to change" "$(grep -c 0011 /tmp/acs-cleared)" 4

# ---- a user without rights ----

as_user 'onehop fix' >/tmp/said 2>&1
is "user: plan: exit status" $? 1
said "user: plan: the IOMMU" "iommu=pt"
as_user 'onehop fix acs-redirect' >/tmp/said 2>&1
check "user: plan for ACS: unknown is not said to be well" test $? != 0
as_user 'onehop fix acs-redirect --now --apply' >/tmp/said 2>&1
is "user: apply: exit status" $? 2
said "user: apply: who could" "root"
as_user 'onehop undo' >/tmp/said 2>&1
is "user: undo: exit status" $? 2
as_user 'onehop history' >/tmp/said 2>&1
is "user: history: exit status" $? 0
check "user: no state is left" test ! -e /var/lib/onehop
every_acs >/tmp/acs
same "user: nothing happens" /tmp/acs-first /tmp/acs

# ---- root ----

plan "plan" 1 acs-redirect --now
is "plan: ports" "$(planned register)" "02:00.0=0011 02:01.0=0011 04:00.0=0011 04:01.0=0011"
run "apply" 0 onehop fix acs-redirect --now --apply
every_acs >/tmp/acs
same "apply: those bits of those ports, no others" /tmp/acs-cleared /tmp/acs
onehop check --json >/tmp/onehop.json
is "apply: check" "$(outcome acs-redirect) $(outcome fix-in-effect)" "ok ok"
run "plan to undo" 0 onehop undo --dry-run
every_acs >/tmp/acs
same "plan to undo: nothing happens" /tmp/acs-cleared /tmp/acs
as_user 'onehop history' >/tmp/said 2>&1
said "user: is told that only root sees what was done" "*only root may read which fixes were made*"

# Somebody else sets a bit meanwhile: it stays, only the bits that were cleared are put back.
setpci -s 02:00.0 ECAP_ACS+6.w=0013
run "undo" 0 onehop undo
sed 's/^\(02:00.0\) 001d$/\1 001f/' /tmp/acs-first >/tmp/acs-other
every_acs >/tmp/acs
same "undo: every bit is back, another's stays" /tmp/acs-other /tmp/acs
