# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# cmdline: intel_iommu=on iommu=pt
# iommu=pt leaves ACS set.
. /lib.sh
have_onehop || exit 0

plan "plan" 1
is "registers" "$(planned register)" "22:00.0=0011 22:01.0=0011"
is "parameters" "$(parameters)" "pci=disable_acs_redir=0000:22:00.0;0000:22:01.0 "
run "IOMMU: nothing to do" 0 onehop fix iommu-translating
