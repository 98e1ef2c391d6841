# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# cmdline: intel_iommu=off
. /lib.sh
have_onehop || exit 0

plan "plan" 1
is "no register" "$(planned register)" ""
is "no parameter" "$(parameters)" ""
