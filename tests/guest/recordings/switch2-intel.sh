# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# note: Two H100 below a switch and an RTX 4090 on another socket, as Debian leaves it: VT-d translates,
# note: and every ACS port has request and completion redirect set.
