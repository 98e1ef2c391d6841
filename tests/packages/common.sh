# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
#
# What the stages use, behind lib.sh.

export DEBIAN_FRONTEND=noninteractive
debs=/job/debs

# apt COMMAND...
apt() { apt-get -qq -y --no-install-recommends "$@"; }

# older: the packages with a lower version, in /job/older
older() {
    mkdir -p /job/older
    for deb in "$debs"/*.deb; do
        rm -rf /tmp/deb
        dpkg-deb -R "$deb" /tmp/deb
        sed -i 's/^Version: .*/Version: 0.0.9/; s/(= 0[0-9.]*)/(= 0.0.9)/' /tmp/deb/DEBIAN/control
        dpkg-deb -b /tmp/deb "/job/older/$(basename "$deb")" >/dev/null
    done
    rm -rf /tmp/deb
}

version() { dpkg-query -W -f '${Version}' onehop; }

# state_of PACKAGE: as dpkg has it; "" if it does not know it
state_of() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null; }

# system_list: path, kind, mode, size or target of all that a package could leave, less what dpkg, apt, and systemd note
system_list() {
    find / -xdev \( -path /job -o -path /proc -o -path /sys -o -path /tmp -o -path /var/lib/dpkg -o -path /var/lib/apt \
        -o -path /var/cache/apt -o -path /var/cache/ldconfig -o -path /var/log -o -path /etc/ld.so.cache -o -path /dev -o -path /run \) -prune \
        -o -type d -printf '%p %y %m\n' -o -printf '%p %y %m %s %l\n' | LC_ALL=C sort
}

# units_to_start: links that make systemd start a unit of onehop
units_to_start() { find /etc/systemd/system -name 'onehop*' -path '*.wants/*' | sort | tr '\n' ' '; }
