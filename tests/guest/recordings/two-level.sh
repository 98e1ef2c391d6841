# SPDX-License-Identifier: Apache-2.0
# machine: two-level
# iommu: intel
# note: Switches behind a switch: pairs of PIX and PXB class, ACS redirect at both levels.
# note: QEMU has no room for more than a few BARs of 128 GiB.
