# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# cmdline: intel_iommu=on iommu=pt
. /lib.sh

is "IOMMU" "$(iommus)" dmar0
is "group types" "$(group_types)" "identity "
is "ACS stays on: root port" "$(acs 20:00.0)" 001d
is "ACS stays on: switch port" "$(acs 22:00.0)" 001d

onehop_checks 1 || exit 0
is "onehop: ports that redirect" "$(found acs-redirect)" "22:00.0 22:01.0"
is "onehop: an identity mapping is fine" "$(outcome iommu-translating)" ok
