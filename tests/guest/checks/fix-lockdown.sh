# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# cmdline: iommu=pt lockdown=integrity
# As with Secure Boot, where no register can be written: onehop does not say that it wrote one.
. /lib.sh
have_onehop || exit 0

is "lockdown" "$(sed 's/.*\[\(.*\)\].*/\1/' /sys/kernel/security/lockdown)" integrity
every_acs >/tmp/acs-first
plan "plan" 1 acs-redirect
is "plan: no register" "$(planned register)" ""
is "plan: what can be done" "$(parameters)" "pci=disable_acs_redir=0000:22:00.0;0000:22:01.0 "
said "plan: says why" "lock"
run "apply: refused" 2 onehop fix acs-redirect --now --apply
said "apply: says why" "lock"
every_acs >/tmp/acs
same "apply: nothing happens" /tmp/acs-first /tmp/acs
