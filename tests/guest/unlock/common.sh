# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2154,SC2034 # what driver_names reads is assigned there, and used by the stages
#
# What the stages use, behind lib.sh.

# unlock_files: what bringing a driver in may change, with checksums, but for what DKMS keeps
unlock_files() {
    find /etc/dkms /etc/modprobe.d /etc/modules-load.d /etc/initramfs-tools \
        /usr/src/nvidia-current-open-* -xdev -type f -exec md5sum {} + | sort -k 2
}

# ---- in another distribution: chroot/ ----

places="/etc /usr/src /lib/modules/ /var/lib/dkms /boot"

# of_image FILE: what is in a boot image; the image itself has the times at which it was made
of_image() {
    rm -rf /tmp/image
    mkdir /tmp/image
    unmkinitramfs "$1" /tmp/image
    (cd /tmp/image && find . -printf '%p %y %m %l\n' && find . -type f -exec sha256sum {} +) | sort | sha256sum
}

# system_list: path, kind, mode, owner, size, target, and content, of all that taking back has to bring back
system_list() {
    # shellcheck disable=SC2086 # words
    {
        find $places -xdev \( -type d -o -name 'initrd.img-*' \) -printf '%p %y %m %u:%g\n'
        find $places -xdev ! -type d ! -name 'initrd.img-*' -printf '%p %y %m %u:%g %s %l\n'
        find $places -xdev -type f ! -name 'initrd.img-*' -exec sha256sum {} + | sed 's/\([^ ]*\)  \(.*\)/\2 \1/'
    } | sort
    for image in /boot/initrd.img-*; do
        [ ! -e "$image" ] || echo "$image $(of_image "$image")"
    done
}

# changed FILE: paths of what is not as in that list, one line
changed() { system_list | diff "$1" - | sed -n 's/^[<>] \([^ ]*\) .*/\1/p' | sort -u | tr '\n' ' '; }

# state KERNEL: what DKMS says of the driver there
state() { dkms status "$tree" -k "$1" | sed 's/.*: //'; }

# driver_names: what the stages of chroot/ call things: kernel, later ("" if there is none), driver
# (nvidia.ko, as DKMS installs it), packages; with tree (NAME/VERSION of DKMS) and version
driver_names() {
    later=
    . /root/names
    version=$(find "/var/lib/dkms/$dkms_name" -mindepth 1 -maxdepth 1 -type d -printf '%f\n')
    tree=$dkms_name/$version
}

# module KERNEL: the file that it loads
module() { modinfo -k "$1" -n "$driver"; }

# deliver OPTION...
deliver() { onehop unlock --sources /root/driver --kernel "$kernel" --image "$@"; }
