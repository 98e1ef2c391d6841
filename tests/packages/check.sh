# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # dir: a folder of the script that reads this
#
# What the scripts check on the host.

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
