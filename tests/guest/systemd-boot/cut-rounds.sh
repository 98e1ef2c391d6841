# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091
#
# In the guest of systemd-boot/cut.sh: several rounds of fix and undo, then of trials, confirmed and not, of entries on
# a FAT partition that logs each write. Before and after each command a mark goes into that log; after it the
# entries are in /out/entries/N, the journal is in /out/state/N, and the command in /out/N.command.
. /lib.sh
. /host/tree.sh

disk=/dev/vda number=0
variables=/sys/firmware/efi/efivars of_loader=4a67b082-0a4c-41cf-b6c7-440b29bb8c4f

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
    echo "$*" >"/out/$number.command"
    mark start "$number" 0 "$@"
    status=0
    chroot /mnt "$@" >"/out/$number.log" 2>&1 || status=$?
    mark end "$number"
    keep
    is "$number: $*: status" $status 0
    [ $status = 0 ] || sed 's/^/#   /' "/out/$number.log"
}

# ---- trials: the guest has no UEFI, so its variables and bootctl are stand-ins ----

utf16() {
    for text; do
        # shellcheck disable=SC2059 # the text is made for printf
        printf "$(printf %s "$text" | sed 's/./&\\000/g')\\000\\000"
    done
}

# variable NAME TEXT...
variable() {
    name=$1
    shift
    { printf '\006\000\000\000' && utf16 "$@"; } >"/mnt$variables/$name-$of_loader"
}

make_loader() {
    mount -t tmpfs -o mode=755 tmpfs /mnt/sys/firmware || return 1
    mkdir -p "/mnt$variables"
    variable LoaderInfo "systemd-boot 252.39"
    printf '\006\000\000\000\377\003\000\000\000\000\000\000' >"/mnt$variables/LoaderFeatures-$of_loader"
    variable LoaderEntries "$ID-6.1.0-57-amd64.conf" "$ID-6.1.0-56-amd64.conf" other.conf
    variable LoaderEntrySelected "$ID-6.1.0-57-amd64.conf"
    cat >/mnt/usr/sbin/bootctl <<EOF
#!/bin/sh
to=$variables/LoaderEntryOneShot-$of_loader
[ -n "\$2" ] || exec rm -f "\$to"
{ printf '\\007\\000\\000\\000' && printf "\$(printf %s "\$2" | sed 's/./&\\\\000/g')\\\\000\\\\000"; } >"\$to"
EOF
    chmod 755 /mnt/usr/sbin/bootctl
}

# Files instead of the kernel's, so that a boot can have another command line.
make_proc() {
    chroot /mnt cat /proc/self/mountinfo >/tmp/mountinfo
    umount /mnt/proc && mount -t tmpfs -o mode=755 tmpfs /mnt/proc || return 1
    mkdir -p /mnt/proc/self /mnt/proc/sys/kernel/random
    for file in cpuinfo iomem modules version; do
        cat /proc/$file >/mnt/proc/$file
    done
    { cat /tmp/mountinfo && echo "999 1 0:99 / $variables rw - efivarfs efivarfs rw"; } >/mnt/proc/self/mountinfo
}

# boot WORD...: what systemd-boot does, and the command line of the boot after it
boot() {
    rm -f "/mnt$variables/LoaderEntryOneShot-$of_loader"
    echo "root=/dev/vda2 ro quiet $*" >/mnt/proc/cmdline
    cat /proc/sys/kernel/random/uuid >/mnt/proc/sys/kernel/random/boot_id
}

# chosen NAME: the entry that systemd-boot would start once
chosen() {
    is "$number: the next boot's entry" "$({ tr -d '\000\006\007' <"/mnt$variables/LoaderEntryOneShot-$of_loader"; } 2>/dev/null)" "$1"
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
for _ in 1 2; do
    step onehop fix iommu-translating --apply
    is "$number: each entry has it" "$(grep -l iommu=pt /mnt/boot/loader/entries/*.conf | wc -l)" 2
    step onehop undo
done
make_loader && make_proc || exit 1
for confirmed in no yes; do
    boot
    step onehop fix iommu-translating --trial --apply
    chosen _-onehop-trial.conf
    is "$number: no other entry has it" "$(grep -l iommu=pt /mnt/boot/loader/entries/*.conf)" /mnt/boot/loader/entries/_-onehop-trial.conf
    if [ $confirmed = yes ]; then
        boot iommu=pt panic=30
        step onehop fix --confirm
        is "$number: each entry has it" "$(grep -l iommu=pt /mnt/boot/loader/entries/*.conf | wc -l)" 2
    fi
    step onehop undo
    chosen ""
done
is "no copy is left" "$(find /mnt/boot -name '*onehop*')" ""
