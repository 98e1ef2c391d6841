# SPDX-License-Identifier: Apache-2.0
#
# In the guest of crash/run.sh: several rounds of fix and undo, in a tree on a disk that logs each
# write. Before and after each command a mark goes into that log, and the tree as the command left it
# into /out/trees/N.
. /lib.sh
. /host/tree.sh

disk=/dev/vda number=0

# put_tree: on the disk for good, as a system that was installed long ago
put_tree() {
    mount -t ext4 "$disk" /mnt && cp -r /host/tree/. /mnt/ && chown -R 0:0 /mnt && bind &&
        chroot /mnt grub-mkconfig -o /boot/grub/grub.cfg && unmount
}

# mark TEXT: behind the file system and past the page cache (busybox's dd cannot); no flush, which
# would help what is tested
mark() {
    printf '%-511s\n' "mark $*" |
        dd-direct of="$disk" bs=512 seek=$((MIB * 2048)) count=1 iflag=fullblock oflag=direct conv=notrunc status=none ||
        echo "FAIL - mark $*"
}

# keep: the tree as it is now
keep() {
    mkdir -p "/out/trees/$number"
    (cd /mnt && tar -cf - boot etc) | tar -xpf - -C "/out/trees/$number"
}

# step STATUS COMMAND...: in the tree
step() {
    want=$1 number=$((number + 1))
    shift
    mark start "$number" "$want" "$@"
    status=0
    chroot /mnt "$@" >"/out/$number.log" 2>&1 || status=$?
    mark end "$number"
    keep
    is "$number: $*: status" $status "$want"
    [ $status = "$want" ] || sed 's/^/#   /' "/out/$number.log"
}

# careless: a writer that does it the wrong way, to see that such a thing is seen
careless() {
    number=$((number + 1))
    mark start "$number" 0 "a careless writer"
    for generation in 1 2 3; do
        yes "generation $generation" | dd bs=4096 count=5 iflag=fullblock of=/mnt/etc/careless 2>/dev/null
        sleep 1.2
    done
    mark end "$number"
    keep
}

load_modules || exit 1
put_tree || exit 1
# Metadata go from the journal to their places within a tenth of a second and not after half a minute,
# so that many states are between the two.
echo 10 >/proc/sys/vm/dirty_writeback_centisecs
echo 10 >/proc/sys/vm/dirty_expire_centisecs
# Strict: data are not written early because a file is replaced by rename or truncation.
mount -t ext4 -o noatime,commit=1,noauto_da_alloc "$disk" /mnt && bind || exit 1
keep
mark end 0
# Both fixes change the same files.
for _ in 1 2 3; do
    step 0 onehop fix acs-redirect --apply
    step 0 onehop fix iommu-translating --apply
    step 0 onehop undo
    step 0 onehop undo
done
# One that fails at its last step, and takes itself back.
touch /mnt/tmp/grub-script-check-fails
step 4 onehop fix acs-redirect --apply
careless
unmount
