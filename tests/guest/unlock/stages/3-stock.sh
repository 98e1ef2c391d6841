# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2154 # /root/names
#
# After a reboot, through GRUB: the driver is the package's own.
. /lib.sh
. /root/names

is "kernel" "$(uname -r)" "$kernel"
run "probe of the module" 1 onehop unlock --probe "$(modinfo -n nvidia-current-open)"
is "no mark" "$(modinfo -F onehop nvidia-current-open)" ""
dmesg -C
modprobe nvidia-current-open 2>/dev/null
like "the driver was loaded, and looked for cards" "$(dmesg)" "*NVRM*"
is "no option is left" "$(modprobe --show-depends nvidia-current-open | grep -c ForceP2P)" 0
is "no file of ours is left" "$(find /etc /usr/src/nvidia-* /var/lib/dkms -name '*onehop*')" ""
run "undo again: nothing left" 2 onehop undo
onehop unlock >/tmp/said 2>&1
sed 's/^/#   /' /tmp/said
said "status: the module on disk is the stock one" "on disk: has only stubs for"
