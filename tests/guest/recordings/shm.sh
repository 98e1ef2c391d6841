# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# note: /dev/shm has 16 MiB and
# note: the mount is read-only.
mount -o remount,size=16m,ro /dev/shm
