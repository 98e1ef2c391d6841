# SPDX-License-Identifier: Apache-2.0
# machine: nogpu
# iommu: intel
# cmdline: lockdown=integrity
# As with Secure Boot: setpci fails, and says so with exit status 0.
# shellcheck shell=dash source=tests/guest/lib.sh
. /lib.sh

is "lockdown" "$(sed 's/.*\[\(.*\)\].*/\1/' /sys/kernel/security/lockdown)" integrity
is "no display device" "$(lspci -d ::03xx)$(lspci -d 10de:)" ""
is "ACS on" "$(acs 00:02.0)" 001d
is "no ACS capability" "$(acs 00:03.0)" none
like "setpci fails" "$(setpci -s 00:02.0 ECAP_ACS+6.w=0 2>&1)" "*Operation not permitted*"
is "ACS still on" "$(acs 00:02.0)" 001d

onehop_checks 3 3 || exit 0
is "onehop: nothing is found" "$(json '.findings | length')" 0
is "onehop: lockdown" "$(json .machine.kernel.lockdown)" integrity
