# SPDX-License-Identifier: Apache-2.0
# machine: workstation2-x8
# iommu: none
. /lib.sh

is "degraded GPU: link" "$(link 01:00.0)" "8.0x8 of 16.0x16"
is "degraded GPU's port: link" "$(link 00:02.0)" "8.0x8 of 16.0x16"
is "idle GPU: link" "$(link 02:00.0)" "2.5x16 of 16.0x16"
is "idle GPU's port: link" "$(link 00:03.0)" "2.5x16 of 16.0x16"
like "lspci says so" "$(lspci -s 01:00.0 -vv)" "*Width x8 (downgraded)*"

onehop_checks 1 || exit 0
is "onehop: narrow link" "$(found link-width)" 01:00.0
is "onehop: an idle link is no fault" "$(found link-speed)" ""
is "onehop: no Resizable BAR" "$(found bar1-vbios)" "01:00.0"
is "onehop: class" "$(classes)" "01=PHB"
