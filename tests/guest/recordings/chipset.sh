# SPDX-License-Identifier: Apache-2.0
# machine: chipset
# iommu: amd
# note: A second RTX 3090 behind the chipset: x4, no ACS there,
# note: one IOMMU group with everything else behind it.
