# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the runs with a whole system on a disk share: making a root, a disk of it, and booting that.
# Of the one who sources it: guest (tests/guest), work (prepare.sh's folder), dir (its own folder
# there), onehop, PACKAGES, SIZE in MiB, LIMIT in seconds a boot, machine (a name in machines/),
# platform (options of QEMU before it), common (a file behind lib.sh), what (for "skip").

say() { echo "# $*"; }
nothing() {
    # shellcheck disable=SC2154 # what, as all in small letters that is not local: see above
    echo "skip - $what: $*"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
}

install_packages() {
    local missing=() p
    # shellcheck disable=SC2153
    for p in $PACKAGES; do
        dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    # shellcheck disable=SC2154
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 \
        install "${missing[@]}" >"$work/apt-disk.log" 2>&1 || nothing "no packages ${missing[*]}"
}

# make_root FOLDER COMPONENTS PACKAGE...: from the same archives as this machine's own packages
make_root() {
    local root=$1 components=$2
    shift 2
    # shellcheck disable=SC2016 # apt expands these
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' 'Origin: Debian' | sed "s/ main\$/ $components/" | sort -u >"$root.list"
    bootstrap "$root" "" "$@"
}

# bootstrap FOLDER KEYRING PACKAGE...: from the archives in FOLDER.list; KEYRING "": those that apt trusts
bootstrap() {
    local root=$1 keyring=$2 packages
    shift 2
    packages=$(IFS=, && echo "$*")
    mmdebstrap --variant=minbase --format=directory --dpkgopt=force-unsafe-io ${keyring:+"--keyring=$keyring"} \
        --include="$packages" '' "$root" "$root.list" \
        >"$root.log" 2>&1 || nothing "mmdebstrap failed, see $root.log"
}

# configure_root FOLDER: what an administrator would have written, and a unit that runs a stage at
# each boot
configure_root() {
    local root=$1
    echo 'LABEL=root / ext4 errors=remount-ro 0 1' >"$root/etc/fstab"
    echo forged >"$root/etc/hostname"
    # no_timer_check: an emulated machine on a busy host may take too long for that check. The
    # blacklist: real drivers must not take the forged devices from the stand-ins.
    cat >"$root/etc/default/grub" <<'END'
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX="console=ttyS0 no_timer_check panic=-1 modprobe.blacklist=mlx5_core,nouveau"
GRUB_TERMINAL=console
END
    # shellcheck disable=SC2154
    install -m 755 "$guest/system/stage" "$root/usr/local/sbin/stage"
    install -m 644 "$guest/system/stage.service" "$root/etc/systemd/system/stage.service"
    ln -sf ../stage.service "$root/etc/systemd/system/multi-user.target.wants/stage.service"
    # A login prompt would hang the line up.
    ln -sf /dev/null "$root/etc/systemd/system/serial-getty@ttyS0.service"
}

# make_disk FOLDER IMAGE
make_disk() {
    local root=$1 image=$2 offset=$((4096 * 512))
    rm -f "$image"
    truncate -s "${SIZE}M" "$image"
    printf 'label: gpt\nstart=2048, size=2048, type=21686148-6449-6E6F-744E-656564454649\nstart=4096, type=linux\n' |
        sfdisk -q "$image"
    mke2fs -q -F -b 4096 -t ext4 -L root -E offset=$offset -d "$root" "$image" \
        $(((SIZE * 1024 * 1024 - offset - 1024 * 1024) / 4096))
}

# boot DISK STAGE [option of QEMU...]: its lines to standard output; status 0 if it came to its end.
# What lies in $dir/extra goes with it.
boot() {
    local disk=$1 stage=$2 name job status=0 args start=$SECONDS
    shift 2
    # shellcheck disable=SC2154
    name=$(basename "$stage" .sh) job=$dir/job
    rm -rf "$job" "$job.tar"
    mkdir -p "$job"
    [ ! -d "$dir/extra" ] || cp -rT "$dir/extra" "$job"
    # shellcheck disable=SC2154
    cat "$guest/lib.sh" "$common" >"$job/lib.sh"
    # shellcheck disable=SC2154
    cp "$onehop" "$job/onehop"
    cp "$stage" "$job/run"
    tar -cf "$job.tar" -C "$job" .
    truncate -s %1M "$job.tar"
    # shellcheck disable=SC2154
    read -r -d '' -a args < <(sed 's/#.*//' "$guest/machines/$machine.args") || true
    # No KVM: it may be there and not able to run a kernel.
    # shellcheck disable=SC2154
    timeout -k 5 "$LIMIT" env "LD_PRELOAD=$work/p2pdev.so" qemu-system-x86_64 \
        -accel tcg,thread=multi "${platform[@]}" \
        -nodefaults -no-user-config -display none -no-reboot \
        -chardev "file,id=console,path=$dir/$name.console" -serial chardev:console \
        -chardev "file,id=lines,path=$dir/$name.lines" -serial chardev:lines "${args[@]}" \
        -drive "if=none,id=root,format=raw,file=$disk" -device virtio-blk-pci,drive=root,bus=pcie.0,addr=8,bootindex=1 \
        -drive "if=none,id=job,format=raw,readonly=on,file=$job.tar" \
        -device virtio-blk-pci,drive=job,bus=pcie.0,addr=9 "$@" </dev/null 2>"$dir/$name.qemu" || status=$?
    tr -d '\r' <"$dir/$name.lines" | sed "s/^\(ok\|FAIL\|skip\) - /&$name: /; /^stage-end\$/d"
    say "$name: $((SECONDS - start)) s"
    [ "$status" = 0 ] && grep -q '^stage-end' "$dir/$name.lines" && return 0
    tail -n 20 "$dir/$name.console" "$dir/$name.qemu" | sed 's/^/# /'
    echo "FAIL - $name: the boot did not come to its end (status of QEMU: $status)"
    return 1
}

# count_lines FILE: the last line of a run; its status: nothing failed
count_lines() {
    local n=() word
    for word in ok FAIL skip; do
        n+=("$(grep -c "^$word - " "$1" || true)")
    done
    echo "${n[0]} passed, ${n[1]} failed, ${n[2]} skipped"
    [ "${n[1]}" = 0 ]
}
