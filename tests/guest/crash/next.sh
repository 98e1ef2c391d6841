# SPDX-License-Identifier: Apache-2.0
#
# In the second guest of crash/run.sh: the boot after the power cut. Each further disk is in a state
# that a cut left in the middle of a command; the next command has to end well, and undo has to bring
# back the first tree.
. /lib.sh
. /host/tree.sh

# like_first NAME: but for second names that are kept for the boot loader until another boot
like_first() {
    for folder in boot etc; do
        (cd "/mnt/$folder" && find . -type f ! -name '*.onehop-old*' -exec md5sum {} + | sort -k 2) >/tmp/now
        (cd "/host/first/$folder" && find . -type f -exec md5sum {} + | sort -k 2) >/tmp/first
        same "$1: /$folder is as it was at first" /tmp/first /tmp/now
    done
}

# undo_all: until there is nothing left to undo
undo_all() {
    for _ in 1 2 3 4; do
        chroot /mnt onehop undo >/tmp/said 2>&1 || return
    done
}

load_modules || exit 1
again=yes
for disk in /dev/vd?; do
    cut="cut at $(cat "/sys/block/${disk#/dev/}/serial")"
    check "$cut: it can be mounted" mount -t ext4 -o noatime "$disk" /mnt
    rm -f /mnt/tmp/grub-script-check-fails
    bind
    run "$cut: history" 0 chroot /mnt onehop history
    if [ "$again" = yes ]; then
        run "$cut: fix" 0 chroot /mnt onehop fix acs-redirect --apply
        is "$cut: fix: ACS" "$(acs 22:00.0) $(acs 22:01.0)" "0011 0011"
        check "$cut: fix: grub.cfg has it" grep -q disable_acs_redir=0000:22:00.0 /mnt/boot/grub/grub.cfg
        again=no
    else
        again=yes
    fi
    undo_all
    is "$cut: ACS after undo" "$(acs 22:00.0) $(acs 22:01.0)" "001d 001d"
    like_first "$cut: undo"
    unmount
done
