# SPDX-License-Identifier: Apache-2.0
# machine: switch4
# The unit at a real boot: what it did, and when.
. /lib.sh

every_acs >/tmp/acs
same "cleared at the eight ports, no other bit" /root/acs-cleared /tmp/acs
is "it was the unit" "$(property ActiveState onehop-acs.service) $(property Result onehop-acs.service)" \
    "active success"
is "nothing failed at boot" "$(systemctl --failed --plain --no-legend)" ""
is "the journal has a line for each port" "$(acs_journal)" \
    "$(for port in 22:00.0 22:01.0 62:00.0 62:01.0 a2:00.0 a2:01.0 ca:00.0 ca:01.0; do
        echo "set ACS control of $port from 001d to 0011"
    done)"

like "ordered before what ordinary services wait for" " $(property Before onehop-acs.service) " "* sysinit.target *"
like "ordered behind the files that it reads" " $(property After onehop-acs.service) " "* local-fs.target *"
is "udev was waited for" "$(property ExecStartPre onehop-acs.service | grep -c 'udevadm.*status=0')" 1
done=$(property ExecMainExitTimestampMonotonic onehop-acs.service)
check "it ended before that" test "$done" -gt 0 -a "$done" -le "$(property ActiveEnterTimestampMonotonic sysinit.target)"
check "and before the display manager began" \
    test "$done" -le "$(property ExecMainStartTimestampMonotonic display-manager.service)"
is "which saw the bits cleared" "$(cat /run/seen)" 0011
is "no circle in the order" "$(journalctl -b -o cat | grep -i 'ordering cycle')" ""
echo "# ms: the unit's end $((done / 1000)), udev's start" \
    "$(($(property ExecMainStartTimestampMonotonic systemd-udevd.service) / 1000)), all up" \
    "$(($(property ActiveEnterTimestampMonotonic basic.target) / 1000))"

onehop check --json >/tmp/onehop.json
is "check" "$(outcome acs-redirect) $(outcome fix-in-effect)" "ok ok"

# From the next boot on the GPUs of the last switch are for virtual machines.
printf '%s\n' 'options vfio-pci ids=10de:2231' 'softdep nvidia pre: vfio-pci' >/etc/modprobe.d/guests.conf
echo vfio-pci >/etc/modules-load.d/guests.conf
