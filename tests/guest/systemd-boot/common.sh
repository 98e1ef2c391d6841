# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091,SC2034
# What the stages use, behind lib.sh.


# files: what a fix may change, with checksums
files() { find /etc /efi -xdev -type f -exec md5sum {} + | sort -k 2; }

# changed: the files of them that are not as /root/files says
changed() { files | diff /root/files - | sed -n 's/^[<>] [0-9a-f]*  //p' | sort -u | tr '\n' ' '; }

# with WORD: the entries that have it
with() { (cd /efi/loader/entries && grep -l -e "^options.* $1\( \|\$\)" -- *.conf | tr '\n' ' '); }

# variable NAME: the text of a variable of the boot loader's; nothing if it is not there. What goes are
# the attributes, and what UTF-16 has between ASCII characters.
variable() { { tr -d '\000-\007' <"/sys/firmware/efi/efivars/$1-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"; } 2>/dev/null; }

# The entry of a trial boot.
trial=_-onehop-trial.conf

# add_kernel VERSION: as its package does; the kernel is that which runs
add_kernel() { kernel-install add "$1" "/boot/vmlinuz-$(uname -r)" "/boot/initrd.img-$(uname -r)"; }
