#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh WORKDIR DISTRIBUTION...
#
# The Debian packages of what is committed, in clean systems of these distributions (bookworm, trixie, noble): built,
# inspected by lintian, built again under other circumstances and compared, tested by autopkgtest, installed over an older
# version, used, removed and purged while a fix is in effect, and after it; of bookworm's, the container. The systems are
# kept in WORKDIR/packages-DISTRIBUTION and copied for each run. Needs root and the distributions' archives.
#
# One line a check; the last line is "N passed, N failed, N skipped".  Exit status 0: nothing failed; 77: nothing could be
# checked.

# shellcheck source=tests/packages/begin.sh
. "$(dirname "$0")/begin.sh" 2 "$@"
PACKAGES="mmdebstrap curl git make buildah"
CLEAN="apt systemd procps"                               # of the system that packages are installed in
BUILT="build-essential lintian faketime locales hostname"  # with what debian/control names
TESTED="autopkgtest gcc libc6-dev pkg-config man-db bash-completion" # of the one where they are tested

what=packages
# shellcheck source=tests/guest/unlock/archive.sh
. "$guest/unlock/archive.sh"

# make_systems: clean, build and tested, of the distribution whose facts were read
make_systems() {
    local list
    read -r -d '' -a list <<<"$CLEAN $KEYRING" || true
    { cat "$top/debian/control" && echo "$CLEAN $BUILT $TESTED"; } >"$dir/wanted"
    ! cmp -s "$dir/wanted" "$dir/made" || return 0
    rm -rf "$dir/clean" "$dir/build" "$dir/tested"
    say "making the systems"
    archive >"$dir/clean.list"
    find_keyring
    bootstrap "$dir/clean" "$keyring" "${list[@]}"
    touch "$dir/clean/etc/resolv.conf"
    cp -a "$dir/clean" "$dir/build"
    cp -a "$dir/clean" "$dir/tested"
    # Waited for, each stops at what fails.
    build_system >"$dir/build.log" 2>&1 & wait $! || nothing "no packages to build with, see $dir/build.log"
    within "$dir/tested" sh -euc "apt-get -qq update && apt-get -qq -y --no-install-recommends install $TESTED" \
        >"$dir/tested.log" 2>&1 || nothing "no packages to test with, see $dir/tested.log"
    mv "$dir/wanted" "$dir/made"
}

# build_system: what debian/control says is needed
build_system() {
    mkdir -p "$dir/build/job/onehop"
    cp -r "$top/debian" "$dir/build/job/onehop"
    within "$dir/build" sh -euc 'apt-get -qq update && apt-get -qq -y --no-install-recommends install '"$BUILT"'
        apt-get -qq -y --no-install-recommends build-dep /job/onehop'
    rm -r "$dir/build/job"
}

# stage WITHIN SYSTEM NAME: a script of stages/, in the system, with what lies in $dir/job
stage() {
    local start=$SECONDS root=$dir/$2
    rm -rf "$root/job"
    cp -r "$dir/job" "$root/job"
    cat "$guest/lib.sh" "$packages/common.sh" >"$root/job/lib.sh"
    cp "$packages/stages/$3.sh" "$root/job/run"
    "$1" "$root" sh /job/run 2>&1 | tee "$dir/$3.lines" | sed -u "s/^\(ok\|FAIL\|skip\) - /&$name, $3: /; /^stage-end\$/d"
    say "$name, $3: $((SECONDS - start)) s"
    grep -q '^stage-end' "$dir/$3.lines" && return 0
    echo "FAIL - $name, $3: it did not come to its end"
    return 1
}

# fresh_trial SYSTEM: a copy of it
fresh_trial() {
    rm -rf "$dir/trial"
    cp -a "$dir/$1" "$dir/trial"
}

# fix_stage: where this machine is a container, onehop changes nothing
fix_stage() {
    [ "$(readlink /proc/self/ns/pid)" = 'pid:[4026531836]' ] || { echo "skip - $name: a fix in effect: this machine is a container"; return 0; }
    stage within_host trial fix
}

# container_finds_bar1: in container_checks, whose store and id these are
container_finds_bar1() {
    local said status=0
    said=$(buildah "${store[@]}" run --volume "$top/tests/machines/rtx4090x8-before:/machine:ro" "$id" onehop check --from /machine 2>&1) || status=$?
    echo "status $status: ${said::300}"
    [ "$status" = 1 ] && [[ $said == *'BAR1 of all 8 GPUs is 256 MiB'* ]]
}

# container_checks: contrib/container/Containerfile, made of the clean system in place of the image that it names, which a registry
# would have; programs in it run in a chroot, because not every machine lets a container have namespaces of its own
container_checks() {
    local store=(--root "$dir/container/root" --runroot "$dir/container/run" --storage-driver vfs) base id
    export BUILDAH_ISOLATION=chroot
    rm -rf "$dir/container"
    mkdir -p "$dir/container/context"
    cp "$dir"/debs/*.deb "$dir/container/context"
    base=$(sed -n 's/^FROM //p' "$top/contrib/container/Containerfile")
    id=$(buildah "${store[@]}" from scratch)
    buildah "${store[@]}" add --quiet "$id" "$dir/clean" / >/dev/null
    buildah "${store[@]}" commit --quiet "$id" "docker.io/library/$base" >/dev/null
    check "$name, container: the image is made" buildah "${store[@]}" bud --pull-never --network host --tag onehop \
        --file "$top/contrib/container/Containerfile" "$dir/container/context"
    buildah "${store[@]}" images onehop >/dev/null 2>&1 || return 0
    id=$(buildah "${store[@]}" from --pull-never localhost/onehop)
    check "$name, container: checks a recorded machine" container_finds_bar1
    check "$name, container: does not run as root" test "$(buildah "${store[@]}" run "$id" id -un)" = nobody
    rm -rf "$dir/container"
}

# distribution NAME: all of it
distribution() {
    name=$1 dir=$work/packages-$1
    [ -f "$guest/unlock/distributions/$name" ] || nothing "no facts about '$name'"
    # shellcheck source=tests/guest/unlock/distributions/trixie
    . "$guest/unlock/distributions/$name"
    SOURCE=
    mkdir -p "$dir"
    make_systems
    rm -rf "$dir/job"
    mkdir "$dir/job"
    cp "$work/onehop.tar.gz" "$dir/job"
    rm -rf "$dir/debs"
    stage within build build || return 0
    mv "$dir/build/job/debs" "$dir/debs"
    cp -r "$dir/debs" "$dir/job/debs"
    stage within build again || true
    cp -r "$work/source" "$dir/job/source"
    cp -r "$work/machine" "$dir/job/machine"
    fresh_trial tested
    stage within trial autopkgtest || true
    fresh_trial clean
    ! stage within trial install || fix_stage || true
    rm -rf "$dir/trial"
    [ "$name" != bookworm ] || container_checks || echo "FAIL - $name, container: buildah"
}

[ "$(id -u)" = 0 ] || nothing "needs root"
install_packages
rm -rf "$work/source" "$work/machine"
make -s -C "$top" dist "DIST=$work" >/dev/null
mv "$work"/onehop-*.tar.gz "$work/onehop.tar.gz"
mkdir "$work/source"
tar -xf "$work/onehop.tar.gz" -C "$work/source" --strip-components=1
# Two GPUs below a switch whose ports redirect peer requests: something to fix.
"$packages/machine" "$top/tests/machines/guest-switch2-intel" "$work/machine"
lines=$work/packages.lines
: >"$lines"
for name in "${arguments[@]}"; do
    distribution "$name" | tee -a "$lines" || [ $? = 77 ]
done
count_lines "$lines"
