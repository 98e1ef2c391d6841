# SPDX-License-Identifier: Apache-2.0
# machine: chipset
# iommu: amd
. /lib.sh

is "first GPU: link" "$(link 01:00.0)" "16.0x16 of 16.0x16"
is "second GPU: link" "$(link 04:00.0)" "16.0x4 of 16.0x16"
is "chipset port: link" "$(link 03:00.0)" "16.0x4 of 16.0x4"
is "chipset: no ACS capability" "$(acs 03:00.0)" none
check "first GPU: isolated from its port" test "$(group 01:00.0)" != "$(group 00:02.0)"
is "second GPU: not isolated from its port" "$(group 04:00.0)" "$(group 03:00.0)"

onehop_checks 1 || exit 0
is "onehop: the GPU behind the chipset" "$(found gpu-behind-chipset)" 04:00.0
is "onehop: class" "$(classes)" "01=PHB"
is "onehop: no switch redirects" "$(outcome acs-redirect)" ok
is "onehop: IOMMU" "$(outcome iommu-translating)" bad
