# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# cmdline: intel_iommu=on iommu=pt
# note: The same machine with an identity mapping: the IOMMU is fine,
# note: and ACS redirects all the same.
