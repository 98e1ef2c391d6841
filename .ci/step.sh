# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Runs the steps of .ci/run, counts them, and sums up; after parts.sh.

work=$(mktemp -d) # of this run
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
left_out=()                 # "title: reason"
for_record=()               # parts that .ci/record takes, by what their step printed
beside_names=() beside_pid= # steps that run while others do, and the last of them
declare -A part_status=()   # of parts whose steps ran: ok, or what stands against recording them

count() {
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# files_of NAME: the path of a step's files, less their endings
files_of() {
	echo "$work/$(tr -c 'a-z0-9\n' - <<<"$1")"
}

# run_step NAME SECONDS COMMAND...: runs it in a shell of its own, within a time limit; leaves NAME.log and NAME.ended
run_step() {
	local limit=$2 start=$SECONDS status=0 path
	path=$(files_of "$1")
	shift 2
	timeout --kill-after=10 "$limit" bash -c "set -eu; . .ci/steps.sh; \"\$@\"" step "$@" >"$path.log" 2>&1 || status=$?
	echo "$status $((SECONDS - start)) $limit" >"$path.ended"
}

# judge NAME: counts a step that ran, and prints its line. It is one check, unless its last line is "N passed,
# N failed, N skipped". Status 77 means skipped. Its lines "left out: REASON" and "for the record: PART" go into the
# summary. Returns the status.
judge() {
	local name=$1 path status=1 seconds=0 limit=0 last word
	path=$(files_of "$name")
	read -r status seconds limit <"$path.ended"
	last=$(tail -n 1 "$path.log")
	if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		count "${BASH_REMATCH[@]:1}"
		[ "$status" = 0 ] || [ "${BASH_REMATCH[2]}" != 0 ] || count 0 1 0
	else
		case $status in
		0) count 1 0 0 ;;
		77) count 0 0 1 && left_out+=("$name: ${last:-skipped}") ;;
		*) count 0 1 0 ;;
		esac
		last=
	fi
	case $status in
	0) word=ok ;;
	77) word=SKIPPED ;;
	124 | 137) word="FAILED (after $limit s)" ;;
	*) word=FAILED ;;
	esac
	summarise "$name" "$path.log"
	printf '%-8s %4d s  %s%s\n' "$word" "$seconds" "$name" "${last:+: $last}"
	[ "$status" = 0 ] || explain "$path.log" | sed 's/^/    | /'
	return "$status"
}

# step NAME SECONDS COMMAND...
step() {
	run_step "$@"
	judge "$1"
}

# beside NAME SECONDS COMMAND...: a step that keeps one core busy at most. It runs while the steps after it do, one
# such step after the other, until `join`.
beside() {
	local before=${beside_pid:-}
	(
		trap - EXIT # the folder of this run stays
		# shellcheck disable=SC2016 # tail ends when that process has
		[ -z "$before" ] || tail --pid="$before" -f /dev/null
		run_step "$@"
	) &
	beside_pid=$!
	beside_names+=("$1")
}

# join: waits for the steps put beside, and judges them
join() {
	local name
	[ "${#beside_names[@]}" = 0 ] || echo "beside           on one core, during the steps above:"
	wait
	for name in "${beside_names[@]}"; do
		judge "$name"
	done
	beside_names=() beside_pid=
}

# summarise NAME LOG: notes what a step has to say in the summary
summarise() {
	local line
	while read -r line; do
		case $line in
		'left out: '*) left_out+=("$1: ${line#*: }") ;;
		'for the record: '*) for_record+=("${line#*: }") ;;
		esac
	done < <(grep -aE '^(left out|for the record): ' "$2")
}

# explain LOG: the lines that name what failed, what these tests printed (meson rules it off), then the end
explain() {
	grep -aE '^(FAIL|not ok)|(error|FAILED|Error):|▶.*FAIL' "$1" | head -n 30
	sed -n '/^―.*✀/,/^―*$/{/^―/!p}' "$1" | head -n 60
	echo ...
	tail -n 40 "$1"
}

# slow PART NAME SECONDS COMMAND...: a step that runs when its part is due (.ci/parts)
slow() {
	local part=$1 name=$2 status=0 why late=
	shift
	if why=$(part_due "$part") && { [ "$why" = 'on request' ] || late=$(part_fits "$part" "$SECONDS"); }; then
		echo "slow             $name: $part, $why"
		step "$@" || status=$?
		[ "$status" = 0 ] && [ "${part_status[$part]:-ok}" = ok ] && part_status[$part]=ok || part_status[$part]=no
	else
		count 0 0 1
		printf '%-8s %4d s  %s\n' SKIPPED 0 "$name"
		[ -z "$late" ] || part_status[$part]=no
		left_out+=("$name: $why${late:+, but $late} (ONEHOP_CI=$part .ci/run)")
	fi
}

# What was left out and what is to be recorded, then the line that others read.
sum_up() {
	local part record=${for_record[*]/#/ }
	for part in "${!part_status[@]}"; do
		[ "${part_status[$part]}" != ok ] || [ "$(sed -n "s/^$part //p" .ci/passed)" = "$(part_hash "$part")" ] || record+=" $part"
	done
	[ "${#left_out[@]}" = 0 ] || printf 'left out  %s\n' "${left_out[@]}"
	[ -z "$record" ] || echo "passed    to have it on record: .ci/record$record"
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}
