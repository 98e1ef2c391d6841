#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# sources.sh DIR: the source of NVIDIA's open kernel modules as Debian 12 has it (535.261.03), unpacked in
# DIR/VERSION, whose path is printed. apt gets it and checks its signatures, with sources, lists and a cache
# of its own below DIR: what this system has for sources stays as it is. A second call gets nothing again.
#
# Exit status 77: it cannot be had here.

set -euo pipefail

PACKAGE=nvidia-open-gpu-kernel-modules
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

[ $# = 1 ] || { echo "usage: sources.sh DIR" >&2; exit 2; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)
skip() { echo "sources.sh: $*" >&2; exit 77; }

# The archive that this system gets its packages from, else Debian's own.
archive() {
	local uri
	# shellcheck disable=SC2016 # apt expands it
	uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Codename: bookworm' \
		2>/dev/null | head -n 1) || true
	echo "${uri:-http://deb.debian.org/debian}"
}

get_tarball() {
	local apt=$dir/apt
	command -v apt-get >/dev/null || skip "there is no apt here"
	[ -f "$KEYRING" ] || skip "there is no $KEYRING"
	mkdir -p "$apt"/{lists,cache/archives}/partial
	echo "deb-src [signed-by=$KEYRING] $(archive) bookworm contrib" >"$apt/sources.list"
	local options=(-qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
	(cd "$apt" && apt-get "${options[@]}" update && apt-get "${options[@]}" source --tar-only "$PACKAGE") \
		>"$apt/log" 2>&1 || skip "apt cannot get the source of $PACKAGE: $(tail -n 1 "$apt/log")"
}

for tree in "$dir"/5*/version.mk; do
	[ ! -f "$tree" ] || { dirname "$tree"; exit 0; }
done
get_tarball
tarball=$(echo "$dir/apt/${PACKAGE}"_*.orig.tar.xz)
[ -f "$tarball" ] || skip "apt brought no tarball of $PACKAGE"
version=${tarball##*_}
version=${version%.orig.tar.xz}
rm -rf "$dir/new"
mkdir "$dir/new"
tar -xf "$tarball" -C "$dir/new" --strip-components=1
mv "$dir/new" "$dir/$version"
rm -rf "$dir/apt"
echo "$dir/$version"
