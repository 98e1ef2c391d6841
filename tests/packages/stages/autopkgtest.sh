# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=dash disable=SC1091,SC2154 # lib.sh
#
# debian/tests, by autopkgtest where the packages are installed.
. /job/lib.sh

apt update
check "all packages are installed" apt install "$debs"/*.deb
autopkgtest --output-dir /tmp/results "$debs"/*.deb /job/source -- null >/tmp/said 2>&1
status=$?
for name in recorded host-backend library fix; do
    line=$(sed -n "s/^$name  *//p" /tmp/results/summary)
    case $name in
    fix) like "autopkgtest: $name needs a machine of its own" "$line" 'SKIP*' ;;
    *) like "autopkgtest: $name" "$line" 'PASS*' ;;
    esac
done
like "autopkgtest: exit status" "$status" '[02]' # 2: some were skipped
[ "$status" = 0 ] || [ "$status" = 2 ] || tail -n 40 /tmp/said | sed 's/^/#   /'

# A user's own look.
check "man finds the manual" sh -c 'man -w onehop && man onehop-check >/dev/null'
check "bash completes the commands" bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader onehop 2>/dev/null
    . /usr/share/bash-completion/completions/onehop; complete -p onehop'
echo stage-end
