# SPDX-License-Identifier: Apache-2.0
# What the stages use, behind lib.sh.

# files: what a fix may change, with checksums; but for second names of what the boot loader reads,
# which stay until another boot has been seen
files() {
    find /etc /boot /usr/lib/systemd -xdev -type f ! -name '*.onehop-old*' -exec md5sum {} + | sort -k 2
    find /etc -xdev -type l -printf '%p -> %l\n' | sort
}
