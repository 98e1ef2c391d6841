# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# After the next reboot the machine is the one that it was. Then nvidia-peermem, with stand-ins.
. /lib.sh

is "kernel command line as at first" "$(sed 's/^BOOT_IMAGE=[^ ]* //' /proc/cmdline)" "$(sed 's/^BOOT_IMAGE=[^ ]* //' /root/cmdline)"
is "groups translate" "$(group_types)" "DMA-FQ "
is "ACS on" "$(acs 20:00.0) $(acs 22:00.0) $(acs 22:01.0) $(acs 22:02.0)" "001d 001d 001d 001d"
onehop check --json >/tmp/onehop.json
is "check: ports that redirect" "$(found acs-redirect)" "22:00.0 22:01.0"
is "check: no fix that is not in effect" "$(found fix-in-effect)" ""

if [ ! -e /job/modules/done ]; then
    skip "nvidia-peermem at each boot" "no stand-in modules"
    exit 0
fi
if [ "$(modinfo -F vermagic /job/modules/nvidia.ko | cut -d' ' -f1)" != "$(uname -r)" ]; then
    skip "nvidia-peermem at each boot" "the stand-in modules are another kernel's"
    exit 0
fi
# As packages of the driver and of OFED leave a machine: their own modules come by themselves.
echo 'options nvidia closed=1' >/etc/modprobe.d/drivers.conf
cp -r /job/modules /modules
install_modules nvidia.ko peer_api.ko standin_rdma.ko api/nvidia-peermem.ko
printf 'nvidia\nstandin_rdma\n' >/etc/modules-load.d/drivers.conf
modprobe nvidia
modprobe standin_rdma

onehop check --json >/tmp/onehop.json
is "check: nvidia-peermem is missed" "$(outcome peermem-not-loaded)" bad
files >/root/files
run "fix" 0 onehop fix peermem-not-loaded --apply
sed 's/^/#   /' /tmp/said
check "fix: loaded" test -d /sys/module/nvidia_peermem
is "fix: the unit is sound" "$(systemd-analyze verify onehop-peermem.service 2>&1)" ""
is "fix: the unit is enabled" "$(systemctl is-enabled onehop-peermem.service)" enabled
is "no second name of grub.cfg is left after another boot" "$(find /boot -name "*.onehop-old*")" ""
