# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# The unit loads nvidia-peermem at each boot, after the driver and the RDMA stack.
. /lib.sh

if [ ! -e /etc/systemd/system/onehop-peermem.service ]; then
    skip "nvidia-peermem at each boot" "not fixed before"
    exit 0
fi
check "loaded" test -d /sys/module/nvidia_peermem
is "the unit was started" "$(systemctl is-active onehop-peermem.service)" active
is "nothing failed at boot" "$(systemctl --failed --plain --no-legend)" ""
like "the unit comes after the modules of the system" \
    " $(systemctl show -P After onehop-peermem.service) " "* systemd-modules-load.service *"
# began UNIT: when, in microseconds since the kernel started
began() { systemctl show -P ExecMainStartTimestampMonotonic "$1"; }
check "and did" test "$(began onehop-peermem.service)" -gt "$(began systemd-modules-load.service)"
onehop check --json >/tmp/onehop.json
is "check: peermem-not-loaded" "$(outcome peermem-not-loaded)" ok
is "check: fix-in-effect" "$(found fix-in-effect)" ""

run "undo" 0 onehop undo
sed 's/^/#   /' /tmp/said
is "undo: every file as it was" "$(files | diff /root/files -)" ""
like "undo: the unit is gone" "$(systemctl is-enabled onehop-peermem.service 2>&1)" "*No such file*"
is "nothing left of it" "$(find /etc/systemd -name 'onehop-*')" ""
