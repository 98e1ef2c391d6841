# SPDX-License-Identifier: Apache-2.0
# machine: switch4-moved
# Somebody put a switch in and another one elsewhere: no port but those that were planned is touched.
. /lib.sh

# The ports of the first fix have other devices below them; the same cards are at other addresses.
is "as it was meant: a network card's port has the old address" "$(cat /sys/bus/pci/devices/0000:23:00.0/vendor)" 0x15b3
is "ports at addresses of the fix, of other cards" "$(acs 22:00.0) $(acs 22:01.0)" "001d 001d"
is "ports whose cards have other addresses now" "$(acs 26:00.0) $(acs 26:01.0)" "001d 001d"
is "the same addresses, in another slot" "$(acs 62:00.0) $(acs 62:01.0)" "001d 001d"
is "what is as it was" "$(acs a2:00.0) $(acs a2:01.0)" "0011 0011"

# What the others say of that switch goes by whether vfio-pci took its device.
guests='' kept=0011
driver=$(basename "$(readlink -f /sys/bus/pci/devices/0000:cb:00.0/driver)")
case $driver in
vfio-pci) guests=1 kept=001d ;;
*) skip "a virtual machine's device" "cb:00.0 has $driver, and not vfio-pci" ;;
esac
is "those of a switch with such a device, or without" "$(acs ca:00.0) $(acs ca:01.0)" "$kept $kept"

is "the unit failed" "$(systemctl --failed --plain --no-legend | cut -d' ' -f1)" onehop-acs.service
is "the journal says of each port why" "$(acs_journal)" "$(
    for port in 22:00.0=15b3:1021 22:01.0=1b36:0010; do
        echo "${port%%=*}: ACS+6 stays as it is: below that port is ${port#*=} now, not 10de:2684"
    done
    for slot in 00.0 01.0; do
        echo "62:$slot is another port now: at pci0000:60/01.0/00.0/$slot, not at pci0000:60/00.0/00.0/$slot"
    done
    for port in a2:00.0 a2:01.0; do
        echo "set ACS control of $port from 001d to 0011"
    done
    for port in ca:00.0 ca:01.0; do
        [ -n "$guests" ] || echo "set ACS control of $port from 001d to 0011"
        [ -z "$guests" ] || echo "$port: ACS+6 stays as it is: cb:00.0 below the same switch is bound to vfio-pci, and can be a virtual machine's, which ACS keeps from other devices"
    done
)"
is "what comes after it came up all the same" "$(cat /run/seen)" 001d

onehop check --json >/tmp/onehop.json
is "check: ports that redirect" "$(found acs-redirect)" "26:00.0 26:01.0 62:00.0 62:01.0${guests:+ ca:00.0 ca:01.0}"
is "check: a fix is not in effect" "$(outcome fix-in-effect)" bad

rm /etc/modprobe.d/guests.conf /etc/modules-load.d/guests.conf
# The way out: take it back, and fix the machine as it is now.
every_acs | sed '/^\(a2\|ca\):/s/0011/001d/' >/tmp/acs-want
run "undo" 0 onehop undo
sed 's/^/#   /' /tmp/said
rm -f /tmp/acs-ports
every_acs >/tmp/acs
same "undo: bits of the ports that are what they were" /tmp/acs-want /tmp/acs
is "undo: every file as it was" "$(changed)" ""
is "undo: no unit is left" "$(systemctl is-enabled onehop-acs.service 2>&1 | grep -c enabled) $(find /etc/systemd -name 'onehop-*')" "0 "
onehop fix acs-redirect --now --json >/tmp/plan.json
is "and a plan for the machine as it is now" "$(planned register)" "26:00.0=0011 26:01.0=0011 62:00.0=0011 62:01.0=0011 a2:00.0=0011 a2:01.0=0011$([ -n "$guests" ] || echo " ca:00.0=0011 ca:01.0=0011")"
