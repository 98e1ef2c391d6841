# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=dash disable=SC1091,SC2154 # lib.sh
#
# A fix is applied on a machine that /sys shows, and outlives an upgrade, removing and purging; then it is undone.
. /job/lib.sh

# registers: ACS control of the switch's ports
registers() {
    for port in 22:00.0 22:01.0; do
        md5sum <"/sys/bus/pci/devices/0000:$port/config"
    done
}

mount --bind /job/machine/sys /sys
apt update
older
check "an older version is installed" apt install /job/older/*.deb
registers >/tmp/before
system_list >/tmp/files
run "a fix" 0 onehop fix acs-redirect --apply
registers >/tmp/after
check "the registers changed" sh -c '! cmp -s /tmp/before /tmp/after'
is "a unit sets them at boot" "$(units_to_start)" "/etc/systemd/system/multi-user.target.wants/onehop-acs.service "

run "upgraded" 0 apt install "$debs"/*.deb
is "upgraded: says nothing of fixes" "$(grep -c 'onehop fix' /tmp/said)" 0
run "upgraded: the fix is known" 0 onehop history
said "upgraded: it is in effect" ' 1 20*applied'

cp -a /var/lib/onehop /tmp/journal
run "removed" 0 apt remove onehop
said "removed: how to undo it" 'install the package again and run: onehop undo'
said "removed: what is in effect" '0000:22:00.0 0011'
said "removed: the unit is named" 'onehop-acs.service starts onehop. systemd skips it'
check "removed: the journal is kept" diff -r /tmp/journal /var/lib/onehop
check "removed: the unit starts nothing that is missing" grep -q '^ConditionFileIsExecutable=/usr/bin/onehop' /etc/systemd/system/onehop-acs.service
run "purged" 0 apt purge onehop
said "purged: how to undo it" 'install the package again and run: onehop undo'
check "purged: the journal is kept" diff -r /tmp/journal /var/lib/onehop
is "purged: the state" "$(state_of onehop)" ""
is "no other unit starts onehop" "$(grep -rlE '^Exec[A-Za-z]*=.*/usr/bin/onehop' /etc/systemd/system /usr/lib/systemd/system /lib/systemd/system | sort -u | tr '\n' ' ')" \
    "/etc/systemd/system/onehop-acs.service "

check "installed again" apt install "$debs"/*.deb
run "undone" 0 onehop undo
registers >/tmp/after
same "undone: the registers are as before" /tmp/before /tmp/after
is "undone: nothing is in effect" "$(cat /var/lib/onehop/in-force 2>/dev/null)" ""
run "removed, then" 0 apt remove onehop
is "removed, then: nothing is said" "$(grep -c 'onehop fix' /tmp/said)" 0
run "purged, then" 0 apt purge onehop
said "purged, then: the records are kept" 'records of earlier changes'
rm -rf /var/lib/onehop
apt install --allow-downgrades /job/older/*.deb >/dev/null 2>&1
system_list >/tmp/files.after
same "nothing else is left" /tmp/files /tmp/files.after

# As on a machine whose administrator puts the shipped test to use.
apt install "$debs"/*.deb >/dev/null 2>&1
export AUTOPKGTEST_TMP=/tmp
run "the package's own test of a fix" 0 sh /job/source/debian/tests/fix
echo stage-end
