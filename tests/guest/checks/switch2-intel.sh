# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# Debian's kernel turns VT-d on without being asked.
# shellcheck shell=dash source=tests/guest/lib.sh
. /lib.sh

is "IOMMU" "$(iommus)" dmar0
is "group types" "$(group_types)" "DMA-FQ "
for port in 20:00.0 22:00.0 22:01.0 22:02.0 60:00.0 62:00.0; do
    is "ACS on: $port" "$(acs $port)" 001d
done
is "no ACS capability: port of the NVMe drive" "$(acs 62:01.0)" none
check "H100: isolated from its port" test "$(group 23:00.0)" != "$(group 22:00.0)"
is "NVMe drive: in its port's group" "$(group 64:00.0)" "$(group 62:01.0)"
is "ConnectX-7: ATS on" "$(setpci -s 25:00.0 ECAP_ATS+6.w)" 8000

onehop_checks 1 || exit 0
# 22:02.0 and 62:00.0 redirect too, but lie between no two GPUs.
is "onehop: ports that redirect" "$(found acs-redirect)" "22:00.0 22:01.0"
# Nobody can ask whether NVLink joins the two, which would pass the switch by: possible, not bad.
# shellcheck disable=SC2016 # a variable of jq's
is "onehop: the pairs" "$(json '.links as $links | [.pairs[] | select(any($links[.chain[]]; .reason == "acs-request-redirect" and .state == "possible")) |
    .initiator + ">" + .target] | join(" ")')" "GPU0>GPU1 GPU1>GPU0"
like "onehop: root ports" "$(sentence acs-root-port)" "2 root ports (0000:20:00.0, 0000:60:00.0)*"
is "onehop: the IOMMU translates" "$(found iommu-translating)" "IOMMU dmar0"
is "onehop: classes" "$(classes)" "01=PIX 02=SYS 12=SYS"
is "onehop: I/O windows without room are no fault" "$(outcome bar-assignment)" ok

onehop_checks_as_user
is "user: ACS is unknown" "$(outcome acs-redirect) $(outcome acs-root-port)" "unknown unknown"
like "user: root would tell" "$(why acs-redirect)" "*needs root*"
is "user: the IOMMU translates" "$(found iommu-translating)" "IOMMU dmar0"
is "user: classes" "$(classes)" "01=PIX 02=SYS 12=SYS"
