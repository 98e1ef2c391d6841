# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2154 # /root/names
#
# The first boot of the image: the edited driver is what the kernel loads. Then it is taken back,
# where there is no compiler.
. /lib.sh
. /root/names

check "grub-install" grub-install --target=i386-pc /dev/vda
check "update-grub" update-grub
is "kernel" "$(uname -r)" "$kernel"
run "probe of the module" 0 onehop unlock --probe "$module"
dmesg -C
# Without its user space Debian's files do not say which one "nvidia" is.
modprobe nvidia-current-open 2>/tmp/modprobe
dmesg | grep -e NVRM -e nvidia | sed 's/^/#   /'
sed 's/^/#   /' /tmp/modprobe
like "the driver was loaded, and looked for cards" "$(dmesg)" "*NVRM*"
is "no symbol was missing" "$(dmesg | grep -i -e 'unknown symbol' -e 'version magic' -e 'BUG:')" ""
# Its devices are shapes only, without an interrupt, so it goes again.
is "it found each card, and nothing more in them" \
    "$(dmesg | grep -c 'nvidia: probe of .* failed')" 4
like "the options go to it" "$(modprobe --show-depends nvidia-current-open)" "*ForceP2P=*"
onehop unlock >/tmp/said 2>&1
sed 's/^/#   /' /tmp/said
onehop check --json >/tmp/onehop.json
is "check: unlock-kept" "$(found unlock-kept)" ""
run "history" 0 onehop history
is "history: applied" "$(applied 2)" applied

# shellcheck disable=SC2046 # words
chmod a-x $(readlink -f /usr/bin/make /usr/bin/gcc /usr/bin/ld)
check "there is no compiler" test ! -x /usr/bin/gcc
run "undo without a compiler" 0 onehop undo
sed 's/^/#   /' /tmp/said
is "undo: every file as it was" "$(unlock_files | diff /root/files -)" ""
is "undo: the modules of before" "$(md5sum -c /root/modules 2>&1 | grep -v ': OK$')" ""
is "undo: what DKMS says" "$(dkms status "$tree" -k "$kernel" | sed 's/.*: //')" installed
run "undo: probe of the module" 1 onehop unlock --probe "$module"
is "undo: history" "$(applied 2)" undone
