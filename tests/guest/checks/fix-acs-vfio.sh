# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# cmdline: intel_iommu=on
# A GPU that is meant for a virtual machine: its isolation is not taken away.
. /lib.sh
have_onehop || exit 0

modprobe vfio-pci
echo vfio-pci >/sys/bus/pci/devices/0000:23:00.0/driver_override
echo 0000:23:00.0 >/sys/bus/pci/drivers/vfio-pci/bind
check "GPU is bound to vfio-pci" test -e /sys/bus/pci/drivers/vfio-pci/0000:23:00.0
every_acs >/tmp/acs-first

plan "plan" 1 acs-redirect --now
is "plan: no port is touched" "$(planned register)" ""
said "plan: says why" "vfio"
run "apply: left to a person" 1 onehop fix acs-redirect --now --apply
every_acs >/tmp/acs
same "apply: nothing happens" /tmp/acs-first /tmp/acs

echo 0000:23:00.0 >/sys/bus/pci/drivers/vfio-pci/unbind
plan "released: plan" 1 acs-redirect --now
is "released: both ports" "$(planned register)" "22:00.0=0011 22:01.0=0011"
