# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The steps of .ci/run that are more than one command; run in the root of the checkout.

. .ci/parts.sh

shell_scripts() {
	files | while read -r file; do
		case $file in
		*.sh | *.bash) echo "$file" ;;
		*) head -c 64 "$file" | head -n 1 | grep -Eaq '^#! ?/(usr/)?bin/(env )?(ba|da)?sh' && echo "$file" ;;
		esac
	done || true
}

# test_counts FOLDER: real counts of the last `meson test` there, single checks where a test tells them
test_counts() {
	python3 - "$1/meson-logs/testlog.junit.xml" <<'END'
import sys
import xml.etree.ElementTree

total = {"tests": 0, "failed": 0, "skipped": 0}
for suite in xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testsuite"):
    number = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
    total["tests"] += number["tests"]
    total["failed"] += number["failures"] + number["errors"]
    total["skipped"] += number["skipped"]
total["passed"] = total["tests"] - total["failed"] - total["skipped"]
print("{passed} passed, {failed} failed, {skipped} skipped".format(**total))
END
}

# A build folder of its own for gcc's warnings would be the same build again.
make_test() {
	local status=0
	CC=gcc make test OPTIONS=-Dwerror=true || status=$?
	test_counts build
	return $status
}

# build COMPILER FOLDER OPTION...: with the tests, unless the options say otherwise
build() {
	local compiler=$1 folder=$2
	shift 2
	set -- -Dtests=enabled "$@"
	if [ -f "$folder/build.ninja" ]; then
		meson configure "$folder" "$@"
	else
		CC=$compiler meson setup "$folder" "$@"
	fi
	meson compile -C "$folder"
}

# meson_test FOLDER [OPTION...]
meson_test() {
	local status=0 folder=$1
	shift
	ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:abort_on_error=0 \
		UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
		meson test -C "$folder" --no-rebuild --print-errorlogs --timeout-multiplier 3 "$@" || status=$?
	test_counts "$folder"
	return $status
}

# thread_sanitizer COMPILER FOLDER: 77 where the kernel's address space randomisation leaves no room for its shadow
thread_sanitizer() {
	local status=0 probe=./$2.probe
	echo 'int main(void) { return 0; }' | "$1" -fsanitize=thread -x c - -o "$probe" && "$probe" || status=77
	rm -f "$probe"
	return "$status"
}

# thread_tests FOLDER: what runs in threads, under ThreadSanitizer
thread_tests() {
	local status=0 threaded=(base confine gpu device_host device_fake device_cuda kernels
		bench_p2p p2p worker rendezvous verify bench_nccl onehop pairs)
	local tests collective=('each_algorithm*' 'sums_in_levels*')
	local shim=(shim_takeover_all shim_takeover_thread shim_takeover_table shim_random_all_1 shim_random_all_2 shim_random_on_3)
	thread_sanitizer gcc "$1" || return
	[ -f "$1/build.ninja" ] || CC=gcc meson setup "$1" -Dtests=enabled -Db_sanitize=thread
	meson compile -C "$1" onehop nvml_standin nvml_standin_old cuda_standin cuda_standin_old nccl_standin \
		nccl_standin_old takeover libnccl.so.takeover shim_standin test_collective "${threaded[@]/#/test_}"
	meson test -C "$1" --no-rebuild --print-errorlogs --timeout-multiplier 5 "${threaded[@]}" "${shim[@]}" || status=$?
	test_counts "$1"
	for tests in "${collective[@]}"; do
		COLLECTIVE_TESTS=$tests "$1/tests/unit/test_collective" || status=$?
	done
	return $status
}

# build_bare FOLDER: with what is needed at least; no kernels for GPUs are in it. Only what depends on that is built
# again in FOLDER.
build_bare() {
	build gcc "$1" -Dwerror=true -Dgpu_kernels=disabled -Dtests=disabled
	"$1/onehop" --version
	! grep -aq '[.]visible [.]entry' "$1/onehop"
}

# ptx FILE...: what the driver will compile, compiled for the first GPUs that may be met and the newest
ptx() {
	local gpu known file tried=0
	known=$(PATH=$PATH:/usr/local/cuda/bin ptxas --help 2>/dev/null) || { echo 'no ptxas'; return 77; }
	for gpu in sm_70 sm_75 sm_80 sm_90 sm_120; do
		grep -q "'$gpu'" <<<"$known" || continue
		echo "$gpu"
		for file; do
			PATH=$PATH:/usr/local/cuda/bin ptxas --warning-as-error --warn-on-spills --gpu-name "$gpu" \
				--output-file /dev/null "$file"
		done
		tried=$((tried + 1))
	done
	[ "$tried" != 0 ]
}

# header_alone HEADER: compiles, whatever is included before it
header_alone() {
	local compiler status=0
	for compiler in gcc clang; do
		echo "#include \"${1#src/}\"" |
			"$compiler" -x c -std=gnu17 -D_GNU_SOURCE -I. -Isrc -Wall -Wextra -Werror -fsyntax-only - || {
			echo "error: $1 does not compile alone with $compiler"
			status=1
		}
	done
	return $status
}

# headers_alone JOBS
headers_alone() {
	export -f header_alone
	# shellcheck disable=SC2016 # expanded there
	printf '%s\n' src/*/*.h kernels/*.h | xargs -P "$1" -n 1 bash -c 'header_alone "$0"'
}

clang_format() {
	# tests/guest holds QEMU devices, in QEMU's style
	files 'kernels/*.[ch]' 'src/*.[ch]' 'plugins/*.[ch]' 'tests/*.[ch]' ':!tests/guest' ':!tests/fuzz/corpus' | xargs clang-format --dry-run -Werror
}

shell_check() {
	local file dialect status=0
	while read -r file; do
		dialect=()
		case $file in
		*.bash) dialect=(--shell=bash --exclude=SC2207) ;; # COMPREPLY=($(compgen ...)) is the idiom
		tests/guest/*) grep -qE '^#!|shellcheck shell=' "$file" || dialect=(--shell=dash) ;; # read by a guest's script
		esac
		shellcheck -x -e SC1091 "${dialect[@]}" "$file" || status=1
	done < <(shell_scripts)
	return $status
}

# tidy_due FOLDER: "HASH SOURCE" of what clang-tidy has not passed as it is, by .ci/tidied or by an earlier step here
tidy_due() {
	if [[ " ${ONEHOP_CI:-} " == *' tidy '* || ${ONEHOP_CI:-} = all ]]; then
		cat "$1/tidy-inputs"
	else
		grep -vxFf <(tidied .ci/tidied "$1/tidied") "$1/tidy-inputs" || [ $? = 1 ]
	fi
}

# clang_tidy FOLDER JOBS: the sources of the program that are due, as they are compiled in FOLDER, largest first
clang_tidy() {
	local due left
	.ci/tidy-inputs "$1" >"$1/tidy-inputs"
	due=$(tidy_due "$1")
	left=$(($(wc -l <"$1/tidy-inputs") - $(grep -c . <<<"$due" || true)))
	[ "$left" = 0 ] || echo "left out: $left sources, unchanged since they passed (ONEHOP_CI=tidy .ci/run)"
	# shellcheck disable=SC2016 # expanded there
	[ -z "$due" ] || xargs -P "$2" -n 2 sh -c 'clang-tidy -p "$0" --quiet "$2" && echo "$1 $2" >>"$0/tidied"' "$1" <<<"$due"
	! tidy_passed "$1" | grep -qvxFf .ci/tidied || echo 'for the record: tidy'
}

# build_fuzzers FOLDER: and no tests, which never run in this build
build_fuzzers() {
	build clang "$1" -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false -Dtests=disabled
}

# fuzz_one PROGRAM OPTION...: a fuzzer over its corpus, which stays as it is; its log on failure. libFuzzer's usual
# schedule takes half of the time itself (-entropic=0 is another).
fuzz_one() {
	local program=$1 name found limit=5 status=0
	shift
	name=$(basename "$program")
	found=$(mktemp -d)
	[ "$name" != fuzz_shim ] || limit=60 # its threads wait for each other
	if UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 "$program" -entropic=0 -timeout="$limit" -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
		-artifact_prefix="$found/crash-" "$@" "$found" "tests/fuzz/corpus/${name#fuzz_}" >"$found.log" 2>&1; then
		echo "ok $name: $(sed -n 's/.*number_of_executed_units: *//p' "$found.log") inputs"
		sed -n 's/^decoder: \([1-9]\)/	\1/p' "$found.log"
	else
		status=1
		echo "FAIL $name, its input in base64:"
		cat "$found"/crash-* | base64 | head -c 4000
		tail -n 30 "$found.log"
	fi
	rm -rf "$found" "$found.log"
	return $status
}

# fuzz FOLDER JOBS SECONDS
fuzz() {
	local fuzzer results bad ok
	results=$(mktemp)
	for fuzzer in "$1"/tests/fuzz/fuzz_* "$1"/tests/shim/fuzz_*; do
		[ -f "$fuzzer" ] || continue
		while [ "$(jobs -rp | wc -l)" -ge "$2" ]; do
			wait -n || true
		done
		fuzz_one "$fuzzer" -max_total_time="$3" >>"$results" &
	done
	wait
	cat "$results"
	ok=$(grep -c '^ok ' "$results" || true)
	bad=$(grep -c '^FAIL ' "$results" || true)
	rm -f "$results"
	echo "$ok passed, $bad failed, 0 skipped"
	[ "$bad" = 0 ] && [ "$ok" != 0 ]
}

# fuzz_decoders FOLDER INPUTS: each decoder of the table of parts by itself, so that each has as many; not a step
fuzz_decoders() {
	local fuzzer=$1/tests/fuzz/fuzz_decoders name status=0
	"$fuzzer" -runs=0 2>&1 | sed -n 's/^decoder: .* read: //p' >"$1/decoders"
	while read -r name; do
		FUZZ_DECODER=$name fuzz_one "$fuzzer" -runs="$2" -max_len=1024 || status=1
	done <"$1/decoders"
	return $status
}

# fuzz_threads FOLDER SECONDS: random sequences of calls to the shim under ThreadSanitizer, where thread_tests run
fuzz_threads() {
	thread_sanitizer clang "$1" || return
	[ -f "$1/build.ninja" ] || CC=clang meson setup "$1" -Dfuzz=true -Db_sanitize=thread -Db_lundef=false -Dtests=disabled
	meson compile -C "$1" fuzz_shim
	fuzz_one "$1/tests/shim/fuzz_shim" -max_total_time="$2" -keep_seed=1 -len_control=0
}

# generated_texts ONEHOP: what tools/generate writes is what is committed
generated_texts() {
	local copy status=0
	copy=$(mktemp -d)
	files | tar -cT - | tar -xC "$copy"
	"$copy/tools/generate" "$PWD/$1"
	files | while read -r file; do
		diff -u "$file" "$copy/$file" || exit 1
	done || status=1
	rm -rf "$copy"
	return $status
}

# guests WORKDIR ONEHOP
# guests SCRIPT WORKDIR ONEHOP: a script below tests/
guests() {
	[ -e "$2" ] || { echo 'no guests were prepared'; return 77; }
	"tests/$1" "$2" "$3"
}

# soak_collective FOLDER: up to a million random operations on simulated devices under the sanitizers of that build
soak_collective() {
	[ -f "$1/build.ninja" ] || CC=gcc meson setup "$1" -Dtests=enabled -Db_sanitize=address,undefined
	ninja -C "$1" tests/gpu/collective
	ASAN_OPTIONS=quarantine_size_mb=1 "$1/tests/gpu/collective" host 4 soak 1000000 120 | tail -n 2
	return "${PIPESTATUS[0]}"
}

# same_places ONEHOP FOLDER: what onehop edits in a driver's sources, found again by Coccinelle
same_places() {
	local tree
	tools/install-deps oracle || return 77
	tree=$(tests/unlock/sources.sh "$2") || return
	tests/unlock/oracle "$1" "$tree"
}

# edited_module ONEHOP FOLDER: a driver's module, stock and edited, loaded by a kernel
edited_module() {
	[ -e "$2" ] || { echo 'no guests were prepared'; return 77; }
	tests/unlock/module/run.sh "$1" "$2"
}

clean_checkout() {
	local changed
	changed=$(git status --porcelain --untracked-files=all)
	[ "$changed" = "${CI_STATUS_BEFORE-}" ] || {
		echo 'These files were left, or changed:'
		diff <(echo "${CI_STATUS_BEFORE-}") <(echo "$changed")
		return 1
	}
}
