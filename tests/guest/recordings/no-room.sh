# SPDX-License-Identifier: Apache-2.0
# machine: no-room
# note: Two H100 whose large BAR does not fit into the address space:
# note: the kernel could not place the BARs, and the log says so.
