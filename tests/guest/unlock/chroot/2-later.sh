# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=dash disable=SC1091,SC2154 # of driver_names
#
# The distribution's next kernel comes, by its package: DKMS builds the edited driver for it. And it goes.
. /job/lib.sh
driver_names

installed() { dpkg-query -W -f '${Package}\n' | sort; }

if [ -z "$later" ]; then
    skip "a later kernel" "the archive has one alone"
else
    installed >/tmp/installed
    # shellcheck disable=SC2086 # words
    apt-get -y --no-install-recommends --no-download install $later_packages >/tmp/later.log 2>&1
    is "a later kernel: its packages, and what they build" "$?" 0
    is "a later kernel: what DKMS says" "$(state "$later")" installed
    run "a later kernel: probe of the module" 0 onehop unlock --probe "$(module "$later")"
    is "a later kernel: the mark" "$(modinfo -k "$later" -F onehop "$driver")" "unlock 2"
    run "a later kernel: the first one's module" 0 onehop unlock --probe "$(module "$kernel")"
    # shellcheck disable=SC2046 # words
    check "a later kernel: it goes again" apt-get -y purge $(installed | comm -13 /tmp/installed -)
    [ -z "$(state "$later")" ] || tail -n 30 /tmp/later.log | sed 's/^/#   /'
fi
echo stage-end
