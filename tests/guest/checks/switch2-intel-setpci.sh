# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# cmdline: intel_iommu=on
# Clearing ACS at run time, and what brings it back.
. /lib.sh

is "ACS on" "$(acs 22:00.0)" 001d
count_groups() { find /sys/kernel/iommu_groups -mindepth 1 -maxdepth 1 | wc -l; }
groups=$(count_groups)
for port in 22:00.0 22:01.0; do
    setpci -s $port ECAP_ACS+6.w=0
    is "ACS cleared: $port" "$(acs $port)" 0000
done
is "groups do not follow" "$(count_groups)" "$groups"

if onehop_checks 1; then
    is "onehop: no switch redirects" "$(outcome acs-redirect)" ok
    like "onehop: the root ports still do" "$(sentence acs-root-port)" "2 root ports (0000:20:00.0, 0000:60:00.0)*"
fi

echo 1 >/sys/bus/pci/devices/0000:21:00.0/remove
is "switch removed" "$(ls -d /sys/bus/pci/devices/0000:22:00.0 2>/dev/null)" ""
echo 1 >/sys/bus/pci/rescan
is "after a rescan: ACS on again" "$(acs 22:00.0)" 001d
