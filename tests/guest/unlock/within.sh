# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What works in a system's folder, behind ../disk.sh.

# within FOLDER COMMAND...: in it, with mounts, processes and device files of its own
within() { within_unshared '--pid --fork --uts' "$@"; }

# within_host FOLDER COMMAND...: the same with the processes of this machine, so that it is no container
within_host() { within_unshared '' "$@"; }

# within_unshared OPTIONS FOLDER COMMAND...: with these options of unshare
within_unshared() {
    local options=$1 root=$2
    shift 2
    # shellcheck disable=SC2016,SC2086 # that shell expands them; several options
    unshare --mount $options --propagation private sh -euc '
        root=$1
        shift
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount -o remount,bind,ro "$root/sys"
        mount -t tmpfs -o mode=755 tmpfs "$root/dev"
        for name in null zero full random urandom tty; do
            touch "$root/dev/$name"
            mount --bind "/dev/$name" "$root/dev/$name"
        done
        ln -s /proc/self/fd "$root/dev/fd"
        mkdir "$root/dev/shm" "$root/dev/pts"
        mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
        ln -s pts/ptmx "$root/dev/ptmx"
        mount -t tmpfs -o mode=755 tmpfs "$root/run"
        mount --bind "$(realpath /etc/resolv.conf)" "$root/etc/resolv.conf"
        exec chroot "$root" env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' - "$root" "$@" </dev/null
}

# version_of FOLDER PACKAGE: the newest that its archives have
version_of() { within "$1" apt-cache show "$2" | sed -n 's/^Version: //p' | head -n 1; }

# kernels_of FOLDER REGEX: kernels' packages whose whole name that is, the oldest first
kernels_of() { within "$1" apt-cache pkgnames linux-image- | grep -xE -e "$2" | sort -V; }

# chroot_stage FOLDER STAGE: its checks in it, to standard output; status 0 if it came to its end. lib.sh is
# not in / there, as in a guest: boot images get all that is called /lib*.
chroot_stage() {
    local root=$1 stage=$2 name start=$SECONDS
    name=$(basename "$stage" .sh)
    mkdir -p "$root/job"
    # shellcheck disable=SC2154 # see disk.sh
    cat "$guest/lib.sh" "$common" >"$root/job/lib.sh"
    cp "$stage" "$root/job/run"
    # shellcheck disable=SC2154
    cp "$onehop" "$root/usr/bin/onehop"
    # shellcheck disable=SC2154
    within "$root" sh /job/run 2>&1 | tee "$dir/$name.lines" |
        sed -u "s/^\(ok\|FAIL\|skip\) - /&$name: /; /^stage-end\$/d"
    rm -r "$root/job"
    say "$name: $((SECONDS - start)) s"
    grep -q '^stage-end' "$dir/$name.lines" && return 0
    echo "FAIL - $name: it did not come to its end"
    return 1
}
