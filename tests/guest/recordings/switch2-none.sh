# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# note: The same machine without an IOMMU: ACS is clear.
# note: The good twin of the other guest-switch2 machines.
