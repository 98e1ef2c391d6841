# SPDX-License-Identifier: Apache-2.0
# machine: switch4
# Where the boot loader is none that onehop can change, a unit clears ACS at each boot.
. /lib.sh

install -m 755 /job/onehop /usr/bin/onehop
# As where somebody wrote grub.cfg: it still starts this system.
dpkg --remove --force-depends grub2-common grub-common >/dev/null 2>&1
check "nothing here makes a grub.cfg" test ! -e /usr/sbin/grub-mkconfig
# Has a service's place that uses GPUs, and says what it finds.
cat >/etc/systemd/system/display-manager.service <<'END'
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'setpci -s 22:00.0 ECAP_ACS+6.w >/run/seen'
[Install]
WantedBy=multi-user.target
END
systemctl enable display-manager.service 2>/dev/null

every_acs >/root/acs-first
is "ACS on at all ports" "$(sort -u -k 2,2 /root/acs-first | wc -l) $(grep -c 001d /root/acs-first)" "1 12"
sed '/^\(22\|62\|a2\|ca\):/s/001d/0011/' /root/acs-first >/root/acs-cleared

files >/root/files
run "plan" 1 onehop fix acs-redirect
said "plan: a unit, and why" "kept by a systemd unit*boot loader"
run "fix" 0 onehop fix acs-redirect --apply
sed 's/^/#   /' /tmp/said
every_acs >/tmp/acs
same "fix: the eight ports between GPUs, no other bit" /root/acs-cleared /tmp/acs
is "fix: files that changed" "$(changed)" \
    "/etc/systemd/system/multi-user.target.wants/onehop-acs.service /etc/systemd/system/onehop-acs.service "
is "fix: the unit is sound" "$(systemd-analyze verify onehop-acs.service 2>&1)" ""
is "fix: the unit is enabled" "$(systemctl is-enabled onehop-acs.service)" enabled
onehop check --json >/tmp/onehop.json
is "fix: check" "$(outcome acs-redirect) $(outcome fix-in-effect)" "ok ok"

# A switch found anew, as after a reset or with hot plug: the kernel sets the bits; the unit can be asked.
echo 1 >/sys/bus/pci/devices/0000:21:00.0/remove
echo 1 >/sys/bus/pci/rescan
is "found anew: the kernel redirects" "$(acs 22:00.0) $(acs 22:01.0) $(acs 62:00.0)" "001d 001d 0011"
onehop check --json >/tmp/onehop.json
is "found anew: check says so" "$(outcome acs-redirect) $(outcome fix-in-effect)" "bad bad"
run "found anew: the unit, started again" 0 systemctl restart onehop-acs.service
every_acs >/tmp/acs
same "found anew: cleared again" /root/acs-cleared /tmp/acs

# Gone, and not back.
echo 1 >/sys/bus/pci/devices/0000:a1:00.0/remove
run "ports are gone: the unit fails" 1 systemctl restart onehop-acs.service
is "ports are gone: it names them" "$(acs_journal | tail -n 2)" "a2:00.0 is not there any more
a2:01.0 is not there any more"
