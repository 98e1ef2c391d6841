# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: amd
. /lib.sh

is "IOMMU" "$(iommus)" ivhd0
is "group types" "$(group_types)" "DMA "
is "ACS on: root port" "$(acs 20:00.0)" 001d
is "ACS on: switch port" "$(acs 22:00.0)" 001d

onehop_checks 1 || exit 0
is "onehop: ports that redirect" "$(found acs-redirect)" "22:00.0 22:01.0"
is "onehop: the IOMMU translates" "$(found iommu-translating)" "IOMMU ivhd0"
