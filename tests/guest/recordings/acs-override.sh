# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# cmdline: pcie_acs_override=downstream,multifunction
# note: The command line asks for an ACS override; a stock kernel ignores it without a word,
# note: and ACS stays on.
