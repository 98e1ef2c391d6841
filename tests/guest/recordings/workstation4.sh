# SPDX-License-Identifier: Apache-2.0
# machine: workstation4
# note: Four RTX 4090 on root ports of their own, BAR1 256 MiB, resizable up to 32 GiB;
# note: there is room for that below the first two ports and none below the others.
