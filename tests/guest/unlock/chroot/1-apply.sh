# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=dash disable=SC1091,SC2154 # of driver_names
#
# The plan, and all of it carried out, where an image is prepared.
. /job/lib.sh
driver_names

echo "# DKMS $(dkms --version | sed 's/^dkms-//'), $tree, kernel $kernel, $(gcc --version | head -n 1)"
is "before: the driver's package has built and installed its modules" "$(state "$kernel")" installed
run "before: probe of the module" 1 onehop unlock --probe "$(module "$kernel")"
system_list >/root/before
check "before: the list is one" test "$(wc -l </root/before)" -gt 1000

run "plan" 1 deliver
is "plan: changes nothing" "$(changed /root/before)" ""

start=$(date +%s)
run "apply" 0 deliver --apply
tail -n 4 /tmp/said | sed 's/^/#   /'
echo "# apply: $(($(date +%s) - start)) s"
is "apply: what DKMS says" "$(state "$kernel")" installed
echo "# the kernel loads $(module "$kernel")"
run "apply: probe of the module" 0 onehop unlock --probe "$(module "$kernel")"
is "apply: its mark" "$(modinfo -k "$kernel" -F onehop "$driver")" "unlock 2"
is "apply: nvidia-uvm's mark" "$(modinfo -k "$kernel" -F onehop "$driver-uvm")" "managed 1"
is "apply: it is for that kernel" "$(modinfo -k "$kernel" -F vermagic "$driver" | cut -d' ' -f1)" "$kernel"
check "apply: the option" grep -q ForceP2P /etc/modprobe.d/onehop.conf
is "apply: files that are new or changed, but for DKMS's, modules and boot images" \
    "$(changed /root/before | tr ' ' '\n' | grep -v -e '^/lib/modules/' -e '^/var/lib/dkms/' -e '^/boot/initrd.img-' -e '/patches$' | tr '\n' ' ')" \
    "/etc/dkms/$dkms_name-$version.conf /etc/modprobe.d/onehop.conf /usr/src/$dkms_name-$version/nvidia/nv-kernel-onehop.o_binary /usr/src/$dkms_name-$version/patches/onehop-p2p.patch "
# shellcheck disable=SC2086 # words
is "apply: no file of the driver's packages changed" "$(dpkg --verify $packages)" ""
is "apply: history" "$(applied 1)" applied
run "apply again" 0 deliver --apply
tail -n 4 /tmp/said | sed 's/^/#   /'
is "apply again: nothing was to do" "$(onehop history --json | jq '.fixes | length')" 1
echo stage-end
