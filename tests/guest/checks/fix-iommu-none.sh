# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: none
. /lib.sh
have_onehop || exit 0

plan "plan" 1
is "no register" "$(planned register)" ""
is "no parameter" "$(parameters)" ""
run "what is well" 0 onehop fix acs-redirect iommu-translating
run "what is well: apply" 0 onehop fix acs-redirect iommu-translating --apply
check "what is well: no state is left" test ! -e /var/lib/onehop
