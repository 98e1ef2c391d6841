# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: amd
# cmdline: amd_iommu=off
# No IOMMU, yet ACS is on.
. /lib.sh

is "no IOMMU" "$(iommus)" ""
is "no groups" "$(group_types)" ""
is "ACS stays on: root port" "$(acs 20:00.0)" 001d
is "ACS stays on: switch port" "$(acs 22:00.0)" 001d

onehop_checks 1 || exit 0
is "onehop: ports that redirect" "$(found acs-redirect)" "22:00.0 22:01.0"
is "onehop: no IOMMU" "$(outcome iommu-translating)" ok
