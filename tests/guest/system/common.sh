# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# What the stages use, behind lib.sh.

# files: what a fix may change, with checksums; but for second names of what the boot loader reads,
# which stay until another boot has been seen, and the block that GRUB writes itself
files() {
    find /etc /boot /usr/lib/systemd -xdev -type f ! -name '*.onehop-old*' ! -name grubenv -exec md5sum {} + | sort -k 2
    find /etc -xdev -type l -printf '%p -> %l\n' | sort
}

# changed: the files of them that are not as /root/files says, and links that came or went
changed() { files | diff /root/files - | sed -n 's/^[<>] \([0-9a-f]\{32\}  \)\{0,1\}//p' | sed 's/ ->.*//' | sort -u | tr '\n' ' '; }

# property NAME UNIT: what systemd says of it; times in microseconds since the kernel started
property() { systemctl show -P "$1" "$2"; }

# last_fix: its number
last_fix() { onehop history --json | jq -r '.fixes[-1].fix'; }

# until_ended UNIT: waits, five minutes at most, until what it runs came to its end
until_ended() {
    for _ in $(seq 150); do
        [ "$(property ExecMainExitTimestampMonotonic "$1")" = 0 ] || return 0
        sleep 2
    done
}

# until_state FIX STATE: waits, five minutes at most, until history says so
until_state() {
    for _ in $(seq 150); do
        [ "$(applied "$1")" != "$2" ] || return 0
        sleep 2
    done
}

# acs_journal: what the unit said at this boot
acs_journal() { journalctl -b -u onehop-acs.service -o cat | grep 'fix [0-9]' | sed 's/fix [0-9]*: //; s/^onehop: //; s/0000:\(..:..\..\)/\1/g'; }
