# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# user: yes
# note: guest-switch2-intel, recorded by a user without rights: 64 bytes of configuration space,
# note: no ACS, no kernel log.
