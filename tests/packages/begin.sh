# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # what the scripts that read this use
#
# How the scripts of this folder begin: . begin.sh LEAST "$@", with at least so many arguments, or the usage at their head is
# printed. Sets packages, top, guest and work, the folder that the first argument names; `arguments` are the others.

set -euo pipefail
shopt -s inherit_errexit

packages=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$packages/../.." && pwd)
guest=$packages/../guest
[ $# -gt "$1" ] || { sed -n "/^# $(basename "$0") /,/^\$/s/^# \\{0,1\\}//p" "$0" >&2; exit 2; }
export PATH=$PATH:/usr/sbin:/sbin
mkdir -p "$2"
work=$(cd "$2" && pwd)
arguments=("${@:3}")
# shellcheck source=tests/guest/disk.sh
. "$guest/disk.sh"
# shellcheck source=tests/guest/unlock/within.sh
. "$guest/unlock/within.sh"

# check NAME COMMAND...: COMMAND succeeds; what it says is in $dir/said
check() {
    local name=$1
    shift
    if "$@" >"$dir/said" 2>&1; then
        echo "ok - $name"
    else
        echo "FAIL - $name: $(tail -n 3 "$dir/said" | tr '\n' ' ')"
    fi
}
