# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# cmdline: intel_iommu=on
# Without a boot loader in the guest a person is told the exact words; in a system image with Debian's
# GRUB they become a drop-in.
. /lib.sh
have_onehop || exit 0

plan "plan" 1
is "registers" "$(planned register)" "22:00.0=0011 22:01.0=0011"
is "parameters" "$(parameters)" "iommu=pt pci=disable_acs_redir=0000:22:00.0;0000:22:01.0 "

image=/tmp/image
mkdir -p $image/etc/default $image/boot/grub $image/usr/sbin $image/var/lib
cat >$image/etc/os-release <<'END'
ID=debian
VERSION_ID="12"
END
cat >$image/etc/default/grub <<'END'
GRUB_DEFAULT=0
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX=""
END
echo '# made by grub-mkconfig' >$image/boot/grub/grub.cfg
printf '#!/bin/sh\nexec grub-mkconfig -o /boot/grub/grub.cfg "$@"\n' >$image/usr/sbin/update-grub
# Debian's reads the drop-ins; it is not run here.
# shellcheck disable=SC2016
echo 'for x in ${sysconfdir}/default/grub.d/*.cfg ; do if [ -e "${x}" ]; then . "${x}"; fi; done' >$image/usr/sbin/grub-mkconfig
chmod 755 $image/usr/sbin/*
tree() { (cd $image && find . -path ./var/lib/onehop -prune -o -type f -exec md5sum {} + -exec stat -c '%n %A %u %g' {} + | sort); }
tree >/tmp/tree-first

run "image: plan" 1 onehop fix iommu-translating --root $image
tree >/tmp/tree
same "image: plan: nothing is changed" /tmp/tree-first /tmp/tree
run "image: apply" 0 onehop fix iommu-translating --root $image --apply
said "image: apply: what is left to do in it" "update-grub"
# shellcheck source=/dev/null
is "image: the kernel's command line" \
    "$(. $image/etc/default/grub; . $image/etc/default/grub.d/99-onehop.cfg; echo "$GRUB_CMDLINE_LINUX|$GRUB_CMDLINE_LINUX_DEFAULT")" \
    "|quiet iommu=pt"
like "image: the drop-in says whose it is" "$(head -n 1 $image/etc/default/grub.d/99-onehop.cfg)" "*onehop*undo*"
check "image: nothing of this host" test ! -e /var/lib/onehop -a ! -e /etc/default
run "image: undo" 0 onehop undo --root $image
tree >/tmp/tree
same "image: as it was" /tmp/tree-first /tmp/tree
