# SPDX-License-Identifier: Apache-2.0
# machine: nogpu
# iommu: intel
# note: No GPU at all, and nothing forged: two network cards.
# note: There is nothing to judge.
