# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# cmdline: intel_iommu=off
. /lib.sh

is "no IOMMU" "$(iommus)" ""
is "no groups" "$(group_types)" ""
is "ACS off: root port" "$(acs 20:00.0)" 0000
is "ACS off: switch port" "$(acs 22:00.0)" 0000

onehop_checks 1 || exit 0
is "onehop: no port redirects" "$(outcome acs-redirect) $(outcome acs-root-port)" "ok ok"
is "onehop: no IOMMU" "$(outcome iommu-translating)" ok
