# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=dash disable=SC1091,SC2154 # lib.sh
#
# Installed over an older version, used, and purged, without any fix.
. /job/lib.sh

apt update
older
apt install libpci3 >/dev/null 2>&1 # so that pci.ids and others, which stay, are no difference
check "an older version is installed" apt install /job/older/*.deb
is "its version" "$(version)" 0.0.9
check "the new one is installed over it" apt install "$debs"/*.deb
like "its version, then" "$(version)" '0.[1-9]*'
run "version" 0 onehop --version
is "no unit is enabled" "$(units_to_start)" ""
check "the units are valid" systemd-analyze verify --man=no onehop-metrics.service onehop-metrics.timer
mkdir -p /var/lib/prometheus/node-exporter
run "what the unit starts" 0 sh -c "$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/onehop-metrics.service)"
check "it writes metrics" grep -q '^onehop_info{' /var/lib/prometheus/node-exporter/onehop.prom
rm -r /var/lib/prometheus
check "the timer can be enabled" systemctl enable onehop-metrics.timer
is "then it is started at boot" "$(units_to_start)" "/etc/systemd/system/timers.target.wants/onehop-metrics.timer "
is "nothing is in the linker's path" "$(ldconfig -p | grep -c onehop)" 0
run "check" 3 onehop
said "check: the answer" 'No NVIDIA GPU'
run "test on threads of the CPU" 0 onehop test --device host:2
check "the results of tests are the user's, not the package's" test -d /root/.local/state/onehop

rm -rf /root/.local
check "removed" apt remove onehop onehop-nccl onehop-dev
check "removed: an enabled timer is a link to nothing, which systemd passes over" sh -c '[ -L /etc/systemd/system/timers.target.wants/onehop-metrics.timer ] && [ ! -e /etc/systemd/system/timers.target.wants/onehop-metrics.timer ]'
is "removed: says nothing about fixes" "$(apt install "$debs"/*.deb >/dev/null 2>&1; apt remove onehop 2>&1 | grep -c 'onehop fix')" 0
check "purged" apt purge onehop onehop-nccl onehop-dev
apt autoremove --purge >/dev/null 2>&1
is "dpkg does not know it" "$(state_of onehop)" ""
is "nothing is left" "$(find / -xdev \( -path /job -o -path /proc -o -path /sys -o -path /var/log \) -prune -o -iname '*onehop*' -print | tr '\n' ' ')" ""
echo stage-end
