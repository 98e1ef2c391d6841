# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091
#
# In the guest of systemd-boot/cut.sh: several rounds of fix and undo, of entries on a FAT partition
# that logs each write. Before and after each command a mark goes into that log; after it the entries
# are in /out/entries/N, and the journal is in /out/state/N.
. /lib.sh
. /host/tree.sh

disk=/dev/vda number=0

# mark TEXT: behind the file system and past the page cache; no flush, which would help what is tested
mark() {
    printf '%-511s\n' "mark $*" |
        dd-direct of="$disk" bs=512 seek=$((MIB * 2048)) count=1 iflag=fullblock oflag=direct conv=notrunc status=none ||
        echo "FAIL - mark $*"
}

keep() {
    mkdir -p "/out/entries/$number" "/out/state/$number"
    cp /mnt/boot/loader/entries/* "/out/entries/$number/"
    [ ! -d /mnt/var/lib/onehop ] || cp -r /mnt/var/lib/onehop "/out/state/$number/"
}

# step COMMAND...: in the tree
step() {
    number=$((number + 1))
    mark start "$number" 0 "$@"
    status=0
    chroot /mnt "$@" >"/out/$number.log" 2>&1 || status=$?
    mark end "$number"
    keep
    is "$number: $*: status" $status 0
    [ $status = 0 ] || sed 's/^/#   /' "/out/$number.log"
}

modprobe -a virtio_pci virtio_blk
for module in fat vfat nls_cp437 nls_ascii; do
    insmod "/host/modules/$module.ko" || exit 1
done
mount -t tmpfs -o mode=755 tmpfs /mnt
cp -r /host/tree/. /mnt/ && chown -R 0:0 /mnt
# As systemd mounts it. Written back within a tenth of a second, so that there are many states.
echo 10 >/proc/sys/vm/dirty_writeback_centisecs
echo 10 >/proc/sys/vm/dirty_expire_centisecs
mount -t vfat -o umask=0077 "$disk" /mnt/boot && bind || exit 1
mkdir -p /mnt/boot/loader/entries
cp /host/esp/loader/entries/000* /mnt/boot/loader/entries/
cp -r /host/esp/. /mnt/boot/
# Places in the folder before all others, which are free again: new names go there, and fsck.fat empties
# the later of two names that have the same blocks.
rm /mnt/boot/loader/entries/000*
sync
sleep 1
keep
# From here on all of that is on disk: sync alone has not told the disk so.
dd-direct if=/dev/null of="$disk" conv=notrunc,fsync status=none
mark end 0
for _ in 1 2 3; do
    step onehop fix iommu-translating --apply
    is "$number: each entry has it" "$(grep -l iommu=pt /mnt/boot/loader/entries/*.conf | wc -l)" 2
    step onehop undo
done
is "no copy is left" "$(find /mnt/boot -name '*onehop*')" ""
