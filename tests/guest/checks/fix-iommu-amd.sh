# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: amd
. /lib.sh
have_onehop || exit 0

plan "plan" 1
is "registers" "$(planned register)" "22:00.0=0011 22:01.0=0011"
is "parameters" "$(parameters)" "iommu=pt pci=disable_acs_redir=0000:22:00.0;0000:22:01.0 "
plan "off instead" 1 iommu-translating --iommu off
is "off instead: parameter" "$(parameters)" "amd_iommu=off "
