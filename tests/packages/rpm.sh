#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# rpm.sh WORKDIR
#
# contrib/rpm/onehop.spec, linted, parsed and built with rpmbuild of this system and the macros in rpm.macros, which stand in
# for Fedora's: without a Fedora, its own macros, its compiler flags and the installed package are not tried.
#
# One line a check; the last line is "N passed, N failed, N skipped".  Exit status 0: nothing failed; 77: nothing could be
# checked.

# shellcheck source=tests/packages/begin.sh
. "$(dirname "$0")/begin.sh" 1 "$@"
what=rpm
PACKAGES="rpm rpmlint git make"
spec=$top/contrib/rpm/onehop.spec
dir=$work/rpm

build() { rpmbuild --macros "/usr/lib/rpm/macros:/usr/lib/rpm/platform/%{_target}/macros:$packages/rpm.macros" --nodeps --define "_topdir $dir" "$@" "$spec"; }

# says_how_to_undo PACKAGE: what removing it prints while a fix is in effect
says_how_to_undo() {
    local script
    script=$(rpm -qp --queryformat '%{PREUN}' "$1" | sed "s|/usr/share/onehop/before-removal|$dir/before-removal|")
    sed "s|/var/lib/onehop|$dir/state|" "$top/contrib/before-removal" >"$dir/before-removal"
    chmod 755 "$dir/before-removal"
    mkdir -p "$dir/state"
    echo 'fix 1 acs 0000:22:00.0 0011' >"$dir/state/in-force"
    sh -c "$script" preun 0 >"$dir/preun"
    grep -q 'run: onehop undo' "$dir/preun" && grep -q '^  fix 1 acs 0000:22:00.0' "$dir/preun" &&
        ! sh -c "$script" preun 1 | grep .
}

checks() {
    mkdir -p "$dir/SOURCES"
    make -s -C "$top" dist "DIST=$dir/SOURCES" >/dev/null
    check "rpmlint: no error" rpmlint "$spec"
    sed -n '/: [EW]: /s/^/# /p' "$dir/said"
    check "parsed" rpmspec -P "$spec"
    check "built, tested, and all files are in a package" build -bb
    check "three packages" test "$(find "$dir/RPMS" -name '*.rpm' ! -name '*debug*' | wc -l)" = 3
    check "removing it says how to undo what is in effect; an upgrade says nothing" says_how_to_undo "$dir"/RPMS/*/onehop-[0-9]*.rpm
}

install_packages
rm -rf "$dir"
mkdir -p "$dir"
checks | tee "$work/rpm.lines"
count_lines "$work/rpm.lines"
