# SPDX-License-Identifier: Apache-2.0
# The tree on a disk, for rounds.sh and next.sh; behind lib.sh.

# Programs and the kernel's folders are the guest's own, not on the disk.
bound="bin lib lib64 usr/bin usr/lib usr/share dev proc sys"

bind() {
    for folder in $bound; do
        mkdir -p "/$folder" "/mnt/$folder"
        mount --bind "/$folder" "/mnt/$folder" || return 1
    done
}

unmount() {
    for folder in $bound; do
        umount "/mnt/$folder" || return 1
    done
    umount /mnt
}

load_modules() { modprobe -a virtio_pci virtio_blk crc32c_generic ext4; }
