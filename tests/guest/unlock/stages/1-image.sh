# SPDX-License-Identifier: Apache-2.0
# In a chroot, where an image is prepared: the plan, and all of it carried out. No card is looked at.
. /job/lib.sh

kernel=$(modinfo -F vermagic "$(find /lib/modules -name virtio_blk.ko | head -n 1)" | cut -d' ' -f1)
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' /usr/src/nvidia-current-open-*/dkms.conf)
tree=nvidia-current-open/$version
module=/lib/modules/$kernel/updates/dkms/nvidia-current-open.ko
# state: what DKMS says of the kernel
state() { dkms status "$tree" -k "$kernel" | sed 's/.*: //'; }
printf 'kernel=%s version=%s tree=%s module=%s\n' "$kernel" "$version" "$tree" "$module" >/root/names

is "before: the driver's package has built and installed its modules" "$(state)" installed
run "before: probe of the module" 1 onehop unlock --probe "$module"
unlock_files >/root/files
md5sum /lib/modules/"$kernel"/updates/dkms/* >/root/modules

run "plan" 1 onehop unlock --sources /usr/src/driver --kernel "$kernel" --image
sed 's/^/#   /' /tmp/said
unlock_files | diff /root/files - >/tmp/difference
is "plan: changes nothing" "$(cat /tmp/difference)" ""

run "apply" 0 onehop unlock --sources /usr/src/driver --kernel "$kernel" --image --apply
sed 's/^/#   /' /tmp/said
is "apply: DKMS has it installed" "$(state)" installed
run "apply: probe of the module" 0 onehop unlock --probe "$module"
is "apply: files that are new or changed" \
    "$(unlock_files | diff /root/files - | sed -n 's/^[<>] [0-9a-f]*  //p' | sort -u | tr '\n' ' ')" \
    "/etc/dkms/nvidia-current-open-$version.conf /etc/modprobe.d/onehop.conf /usr/src/nvidia-current-open-$version/nvidia/nv-kernel-onehop.o_binary /usr/src/nvidia-current-open-$version/patches/onehop-p2p.patch "
is "apply: no file of the driver's package changed" \
    "$(dpkg --verify nvidia-open-kernel-dkms nvidia-open-kernel-support)" ""
check "apply: the modules fit that kernel" \
    test "$(modinfo -F vermagic "$module" | cut -d' ' -f1)" = "$kernel"
run "history" 0 onehop history
is "history: applied" "$(applied 1)" applied
run "apply again: nothing to do" 0 onehop unlock --sources /usr/src/driver --kernel "$kernel" --image --apply

# The same as the first onehop brought it in: nvidia-uvm is as released, the mark is "unlock 1". Its journal says so too.
uvm=${module%.ko}-uvm.ko
fix=/var/lib/onehop/fixes/1
sum() { sha256sum "$1" | cut -d' ' -f1; }
for file in "/usr/src/nvidia-current-open-$version/patches/onehop-p2p.patch" "$fix"/new-*; do
    grep -aq '^+++ b/nvidia-uvm/' "$file" || continue
    awk '/^--- /{keep = $0 !~ /nvidia-uvm/} NR == 1 {keep = 1} keep' "$file" | sed 's/"unlock 2"/"unlock 1"/' >/tmp/patch
    sed -i "s/\\b$(stat -c %s "$file")\\b/$(stat -c %s /tmp/patch)/; s/$(sum "$file")/$(sum /tmp/patch)/; /\"plan_sha256\"/d" "$fix/plan.json"
    cat /tmp/patch >"$file"
done
rm -r "/var/lib/dkms/$tree/$kernel"
run "earlier edit: built" 0 dkms build "$tree" -k "$kernel"
run "earlier edit: installed" 0 dkms install --force "$tree" -k "$kernel"
is "earlier edit: its mark" "$(modinfo -F onehop "$module")" "unlock 1"
run "earlier edit: it has no gate for managed memory" 1 onehop unlock --probe "$uvm"
run "earlier edit: replaced" 0 onehop unlock --sources /usr/src/driver --kernel "$kernel" --image --apply
sed 's/^/#   /' /tmp/said
run "replaced: the gate is there" 0 onehop unlock --probe "$uvm"
is "replaced: its mark" "$(modinfo -F onehop "$module")" "unlock 2"
is "replaced: the earlier one is undone" "$(applied 1)" undone
is "replaced: today's is applied" "$(applied 2)" applied
echo stage-end
