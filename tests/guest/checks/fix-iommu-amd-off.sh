# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: amd
# cmdline: amd_iommu=off
# No IOMMU, yet ACS is on.
. /lib.sh
have_onehop || exit 0

plan "plan" 1
is "registers" "$(planned register)" "22:00.0=0011 22:01.0=0011"
is "parameters" "$(parameters)" "pci=disable_acs_redir=0000:22:00.0;0000:22:01.0 "
