# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# cmdline: intel_iommu=on iommu=off
# note: Contradictory parameters: the kernel logs "DMAR: IOMMU enabled"
# note: and has no IOMMU.
