#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# kernel-install.sh WORKDIR ONEHOP
#
# Fixes and undoes entries of systemd-boot that a newer kernel-install than Debian 12's (252) writes: Debian 13's, unpacked
# below WORKDIR and run with its own libraries. Nothing is installed. It runs tests/unit/test_fix_options next to ONEHOP.
#
# One line a check; the last line is "N passed, N failed, N skipped". Exit status 0: nothing failed; 77: nothing could
# be checked.

set -euo pipefail

MIRROR=http://deb.debian.org/debian
SUITE=trixie

[ $# = 2 ] || { sed -n '/^# kernel-install.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
dir=$1/kernel-install-$SUITE
program=$(dirname "$2")/tests/unit/test_fix_options
[ -x "$program" ] || { echo "kernel-install.sh: no program $program" >&2; exit 2; }

skip() {
	echo "# $1"
	echo '0 passed, 0 failed, 1 skipped'
	exit 77
}

unpack() {
	command -v mmdebstrap >/dev/null || apt-get -qq install -y mmdebstrap >/dev/null || return
	rm -rf "$dir.part"
	mmdebstrap --quiet --variant=extract --include=systemd "$SUITE" "$dir.part" "$MIRROR" && mv "$dir.part" "$dir"
}

mkdir -p "$1"
[ -d "$dir" ] || unpack >&2 || skip "systemd of $SUITE could not be fetched from $MIRROR"
lib=$dir/usr/lib/x86_64-linux-gnu
loader=$lib/ld-linux-x86-64.so.2
[ -x "$loader" ] || skip 'its libraries are for another kind of processor'
run="env KERNEL_INSTALL_PLUGINS=$dir/usr/lib/kernel/install.d/90-loaderentry.install"
run="$run $loader --library-path $lib:$lib/systemd $dir/usr/bin/kernel-install"
echo "# $($run --version | head -n 1)"
export ONEHOP_KERNEL_INSTALL=$run CMOCKA_MESSAGE_OUTPUT=TAP
status=0
"$program" | tee "$dir.log" || status=$?
# The last line of cmocka's is of the group.
failed=$(grep -c '^not ok [0-9]' "$dir.log" || true)
echo "$(grep -c '^ok [0-9]' "$dir.log" || true) passed, $failed failed, 0 skipped"
exit "$status"
