# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # dir, as in ../disk.sh
#
# The archive of a distribution, of which a file in distributions/ says:
# MIRROR SUITES COMPONENTS: its archive
# KEYRING, KEYRING_FILE: package of the keys that sign it, and its file in /usr/share/keyrings
# KEYRING_DEB, KEYRING_SHA256: where that package is below MIRROR, if the system here may not have it
# SOURCE: a source package that is wanted of it; empty: none

# archive: lines of a sources.list
archive() {
    local suite
    for suite in $SUITES; do
        echo "deb $MIRROR $suite $COMPONENTS"
        [ -z "$SOURCE" ] || echo "deb-src $MIRROR $suite contrib"
    done
}

# find_keyring: the file that the archive is checked with, here
find_keyring() {
    keyring=/usr/share/keyrings/$KEYRING_FILE
    [ ! -f "$keyring" ] || return 0
    [ -n "${KEYRING_DEB:-}" ] || nothing "no $keyring"
    curl -fsS -o "$dir/keyring.deb" "$MIRROR/$KEYRING_DEB" || nothing "no $MIRROR/$KEYRING_DEB"
    echo "$KEYRING_SHA256  $dir/keyring.deb" | sha256sum --quiet -c || nothing "not the known $KEYRING_DEB"
    dpkg-deb --fsys-tarfile "$dir/keyring.deb" | tar -xO ".$keyring" >"$dir/$KEYRING_FILE"
    keyring=$dir/$KEYRING_FILE
}
