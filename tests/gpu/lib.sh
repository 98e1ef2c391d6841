# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# What the scripts for machines with GPUs share; the first argument is the folder with the program.
set -u
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
folder=$(cd "${1:?usage: $0 FOLDER}" && pwd)
out=${OUT:-$(mktemp -d)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

# ---- the program ----

if [ -e "$folder/ld-linux-x86-64.so.2" ]; then
	onehop=("$folder/ld-linux-x86-64.so.2" --library-path "$folder:${LD_LIBRARY_PATH:-}"
		"$folder/onehop")
elif "$folder/onehop" --version >/dev/null 2>&1; then # found by an $ORIGIN rpath, or installed
	onehop=("$folder/onehop")
else
	onehop=(env "LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-}" "$folder/onehop")
fi

onehop() {
	"${onehop[@]}" "$@"
}

# ---- results ----

pass() {
	echo "PASS $*"
	passed=$((passed + 1))
}

fail() {
	echo "FAIL $*"
	failed=$((failed + 1))
}

skip() {
	echo "SKIP $*"
	skipped=$((skipped + 1))
}

section() {
	printf '\n== %s\n' "$*"
}

# The last line of a script.
counts() {
	printf '\n%d passed, %d failed, %d skipped\n' $passed $failed $skipped
	[ $failed -eq 0 ]
}
