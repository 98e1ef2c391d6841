# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# cmdline: iommu=pt
# note: What setpci leaves: redirect is off at every port that had it,
# note: while the IOMMU groups still are those of before.
for port in 20:00.0 22:00.0 22:01.0 22:02.0 60:00.0 62:00.0; do
    setpci -s $port ECAP_ACS+6.w=0011
done
