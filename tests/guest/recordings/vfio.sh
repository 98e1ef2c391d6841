# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# note: One H100 is bound to vfio-pci,
# note: the other to pci-stub.
modprobe vfio-pci
modprobe pci-stub
bind() {
    echo "$2" >"/sys/bus/pci/devices/$1/driver_override"
    echo "$1" >"/sys/bus/pci/drivers/$2/bind"
}
bind 0000:23:00.0 vfio-pci
bind 0000:24:00.0 pci-stub
