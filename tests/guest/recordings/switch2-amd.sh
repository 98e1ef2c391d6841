# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: amd
# note: The same machine with AMD's IOMMU, translating; its group type is DMA,
# note: not DMA-FQ.
