# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091
# machine: switch2
# The unit loads nvidia-peermem at each boot, after the driver and the RDMA stack.
# Then kernel parameters, for one boot first: no display is connected here.
. /lib.sh

# began UNIT: when, in microseconds since the kernel started
began() { systemctl show -P ExecMainStartTimestampMonotonic "$1"; }

peermem() {
    check "loaded" test -d /sys/module/nvidia_peermem
    is "the unit was started" "$(systemctl is-active onehop-peermem.service)" active
    is "nothing failed at boot" "$(systemctl --failed --plain --no-legend)" ""
    like "the unit comes after the modules of the system" \
        " $(systemctl show -P After onehop-peermem.service) " "* systemd-modules-load.service *"
    check "and did" test "$(began onehop-peermem.service)" -gt "$(began systemd-modules-load.service)"
    onehop check --json >/tmp/onehop.json
    is "check: peermem-not-loaded" "$(outcome peermem-not-loaded)" ok
    is "check: fix-in-effect" "$(found fix-in-effect)" ""

    run "undo" 0 onehop undo
    sed 's/^/#   /' /tmp/said
    is "undo: every file as it was" "$(files | diff /root/files -)" ""
    like "undo: the unit is gone" "$(systemctl is-enabled onehop-peermem.service 2>&1)" "*No such file*"
    is "nothing left of it" "$(find /etc/systemd -name 'onehop-*')" ""
}

if [ -e /etc/systemd/system/onehop-peermem.service ]; then
    peermem
else
    skip "nvidia-peermem at each boot" "not fixed before"
fi

# What a healthy boot is compared with; broken.service comes with the next one.
install -m 755 /job/onehop /usr/bin/onehop
[ -e /root/cmdline ] || cat /proc/cmdline >/root/cmdline
cp /boot/grub/grub.cfg /root/grub.cfg
echo '# mine' >/boot/grub/custom.cfg
files >/root/files
run "trial" 0 onehop fix acs-redirect iommu-translating --apply
sed 's/^/#   /' /tmp/said
said "trial: the way back in one line" "*does not have these parameters*"
same "trial: the menu as it is stays" /root/grub.cfg /boot/grub/grub.cfg
check "trial: GRUB's own script is well formed" grub-script-check /boot/grub/custom.cfg
is "trial: mine is still there" "$(head -n 1 /boot/grub/custom.cfg)" "# mine"
is "trial: no drop-in yet" "$(find /etc/default/grub.d -name '*onehop*')" ""
is "trial: for the next boot" "$(grub-editenv - list | grep next_entry)" next_entry=onehop-trial
last_fix >/root/trial
is "trial: history" "$(applied "$(cat /root/trial)")" on-trial
onehop check --json >/tmp/onehop.json
like "trial: check" "$(sentence fix-in-effect)" "*on trial: the next boot uses it once*"
run "trial: no other fix meanwhile" 2 onehop fix nccl-env --apply
printf '[Service]\nType=oneshot\nExecStart=/bin/false\n[Install]\nWantedBy=multi-user.target\n' \
    >/etc/systemd/system/broken.service
systemctl enable broken.service 2>/dev/null
