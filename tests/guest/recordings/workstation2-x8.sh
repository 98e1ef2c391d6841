# SPDX-License-Identifier: Apache-2.0
# machine: workstation2-x8
# note: Two RTX 3090; the first trained at x8 and 8 GT/s in a x16 slot (a fault),
# note: the second is at x16 and 2.5 GT/s because it is idle (none).
