# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091
# machine: switch2
# As it was installed: the entry is edited, the others and the rescue entry are not.
. /lib.sh

install -m 755 /job/onehop /usr/bin/onehop
first=$(basename /efi/loader/entries/*-"$(uname -r)".conf)
echo "$first" >/root/first
is "the loader is systemd-boot" "$(bootctl status 2>/dev/null | grep -c 'Product: systemd-boot')" 1
is "the boot partition is FAT" "$(stat -f -c %T /efi)" msdos
is "groups translate" "$(group_types)" "DMA-FQ "
check "there is no /etc/kernel/cmdline" test ! -e /etc/kernel/cmdline
cp -r /efi/loader /root/loader
files >/root/files

run "plan" 1 onehop fix iommu-translating
is "plan: changes nothing" "$(changed)" ""
run "fix" 0 onehop fix iommu-translating --apply --no-trial
sed 's/^/#   /' /tmp/said
is "fix: files that changed" "$(changed | sed 's,/efi/loader/entries/,,')" "$first /etc/kernel/cmdline "
is "fix: the entry has it" "$(with iommu=pt)" "$first "
is "fix: nothing else of the entry changed" "$(sed 's/ iommu=pt//' "/efi/loader/entries/$first" | diff - "/root/loader/entries/$first")" ""
is "fix: what later kernels get" "$(cat /etc/kernel/cmdline)" "root=LABEL=root rw quiet console=ttyS0 no_timer_check panic=-1 iommu=pt"
onehop check --json >/tmp/onehop.json
is "before the reboot: fix-in-effect" "$(outcome fix-in-effect)" bad
