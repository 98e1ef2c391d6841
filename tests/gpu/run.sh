#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# onehop beside nvidia-smi on a machine with NVIDIA GPUs: same bytes, less time, nothing changed.
#
#	tests/gpu/run.sh FOLDER
#
# FOLDER holds the program "onehop", and where it was built elsewhere the shared libraries that it
# needs and their ld-linux-x86-64.so.2. Recordings and reports go to $OUT (default: a new folder).
# Reads only; no setting of a GPU is changed. Ends with "N passed, N failed, N skipped".
# shellcheck source=tests/gpu/lib.sh
. "$(dirname "$0")/lib.sh"
runs=21

# helper NAME: builds tests/gpu/NAME.c unless the folder brought it.
helper() {
	[ -x "$folder/$1" ] && cp "$folder/$1" "$work/$1" && return
	cc -O2 -std=gnu17 -D_GNU_SOURCE -o "$work/$1" "$here/$1.c" -ldl 2>"$work/cc.log" ||
		{ cat "$work/cc.log"; return 1; }
}

# ---- time ----

# Milliseconds that a command takes, by the wall clock.
time_ms() {
	local start=$EPOCHREALTIME end
	"$@" >/dev/null 2>&1
	end=$EPOCHREALTIME
	awk -v a="$start" -v b="$end" 'BEGIN { printf "%.3f\n", (b - a) * 1000 }'
}

median() {
	sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# ---- same bytes ----

same_as_smi() {
	local name="topo $*" file=${*//[^a-z0-9]/}
	nvidia-smi topo "$@" >"$work/smi" 2>"$work/smi.err"
	onehop topo "$@" >"$work/own" 2>"$work/own.err"
	if [ -s "$work/smi" ] && cmp -s "$work/smi" "$work/own"; then
		pass "$name: the same $(wc -c <"$work/smi") bytes as nvidia-smi"
		return
	fi
	fail "$name differs from nvidia-smi's"
	cat "$work/own.err"
	diff <(cat -A "$work/smi") <(cat -A "$work/own") | head -40
	cp "$work/smi" "$out/smi-topo-${file// /-}.txt"
}

# ---- what a look must not change ----

# Device nodes, modules and their settings, NVIDIA's files in /proc, and new files where
# configuration and state live.
snapshot() {
	find /dev -maxdepth 2 -name 'nvidia*' -printf '%p %M %u %g %T@\n' 2>/dev/null | sort
	cut -d' ' -f1 /proc/modules 2>/dev/null | sort
	cat /proc/driver/nvidia/params /proc/driver/nvidia/version 2>/dev/null
	find /etc /var/lib /var/log "$HOME" -xdev -newer "$work/mark" -type f \
		-not -path "$work/*" -not -path "$out/*" 2>/dev/null | sort
	nvidia-smi --query-gpu=index,persistence_mode,compute_mode,power.limit,mig.mode.current \
		--format=csv,noheader
}

touch "$work/mark"
mkdir -p "$out"
gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
nvidia-smi -L | sed 's/ (UUID.*//'
cat /proc/driver/nvidia/version
uname -r

section "what a person sees"
onehop check
echo "exit $?"
onehop topo
onehop topo -m

section "the same bytes as nvidia-smi, $gpus GPUs"
same_as_smi -m
for cap in r w n a p; do
	same_as_smi -p2p "$cap"
done

# at_most SHARE WHAT MS: of nvidia-smi's time
at_most() {
	if awk -v own="$3" -v smi="$smi" -v share="$1" 'BEGIN { exit !(own <= share * smi) }'; then
		pass "$2 takes at most $1 of the time of nvidia-smi topo -m"
	elif [ "$gpus" -lt 4 ]; then
		skip "$2 takes more than $1 of the time of nvidia-smi topo -m, which is asked for from 4 GPUs on"
	else
		fail "$2 takes more than $1 of the time of nvidia-smi topo -m"
	fi
}

section "time beside nvidia-smi topo -m, median of $runs runs taken in turns, ms"
for _ in $(seq $runs); do
	time_ms nvidia-smi topo -m >>"$work/smi.ms"
	time_ms onehop topo -m >>"$work/own.ms"
	time_ms onehop check >>"$work/check-beside.ms"
done
smi=$(median "$work/smi.ms") own=$(median "$work/own.ms") beside=$(median "$work/check-beside.ms")
echo "nvidia-smi $smi  onehop topo -m $own  onehop check $beside"
at_most 0.40 'topo -m' "$own"
at_most 0.70 check "$beside"

section "time of check against NVML's own start, median of $runs runs taken in turns, ms"
if helper nvml_start && "$work/nvml_start"; then
	for _ in $(seq $runs); do
		time_ms "$work/nvml_start" >>"$work/start.ms"
		"$work/nvml_start" | sed 's/.*init \([0-9.]*\).*/\1/' >>"$work/init.ms"
		time_ms onehop check >>"$work/check.ms"
	done
	start=$(median "$work/start.ms") check=$(median "$work/check.ms")
	echo "a program that only starts and stops NVML $start (nvmlInit $(median "$work/init.ms"))  check $check"
	if awk -v a="$check" -v b="$start" 'BEGIN { exit !(a <= b + 50) }'; then
		pass "check ends within 50 ms of NVML's start"
	else
		fail "check needs more than 50 ms beyond NVML's start"
	fi
	section "what single NVML calls cost"
	"$work/nvml_start" calls
else
	skip "nvml_start cannot be built or started here"
fi

section "a recording tells the same"
if onehop record "$out/machine.tar.gz"; then
	onehop check -v >"$work/live.txt"
	live=$?
	onehop check -v --from "$out/machine.tar.gz" >"$work/recorded.txt"
	recorded=$?
	onehop check --json --from "$out/machine.tar.gz" >"$out/check-recorded.json"
	# A recording is labelled as one; all else is the same.
	sed -i '/^Recorded machine/,/^$/{/^Recorded machine/d;/^  recorded/d}' "$work/recorded.txt"
	if [ $live -eq $recorded ] && diff "$work/live.txt" "$work/recorded.txt" >"$work/diff"; then
		pass "check -v --from the recording says what the live check says (exit $live)"
	else
		fail "check --from the recording differs (exit $live live, $recorded recorded)"
		head -40 "$work/diff"
	fi
	onehop topo -m >"$work/live"
	onehop topo -m --from "$out/machine.tar.gz" >"$work/recorded"
	if cmp -s "$work/live" "$work/recorded"; then
		pass "topo -m --from the recording prints the same bytes"
	else
		fail "topo -m --from the recording differs"
		diff <(cat -A "$work/live") <(cat -A "$work/recorded") | head -20
	fi
	mkdir -p "$work/opened" && tar -xzf "$out/machine.tar.gz" -C "$work/opened" &&
		find "$work/opened" -type f -printf '%s %P\n'
	if grep -rqE "$(nvidia-smi --query-gpu=uuid --format=csv,noheader | paste -sd'|')" \
		"$work/opened"; then
		fail "the recording holds a GPU's UUID"
	else
		pass "the recording holds no GPU's UUID"
	fi
else
	fail "record"
fi

section "looking changes nothing"
snapshot >"$work/before"
onehop check >/dev/null
onehop topo >/dev/null
onehop topo -m >/dev/null
onehop topo -p2p r >/dev/null
snapshot >"$work/after"
if diff "$work/before" "$work/after"; then
	pass "device nodes, modules, driver parameters, GPU settings and files are as before" \
		"(proves it for what was looked at)"
else
	fail "something changed"
fi
# The kernel ends the program at the first forbidden call: that it ends well proves that neither it
# nor libnvidia-ml started a process or made, removed or opened for writing any file on this machine.
if helper confined; then
	# env would be a program of its own; a loader that was brought along takes the path itself.
	if [ "${onehop[0]}" = env ]; then
		confined=(env "${onehop[1]}" "$work/confined" "$folder/onehop")
	else
		confined=("$work/confined" "${onehop[@]}")
	fi
	for command in "check" "topo -m" "topo -p2p r"; do
		# shellcheck disable=SC2086
		onehop $command >"$work/free" 2>&1
		free=$?
		# shellcheck disable=SC2086
		"${confined[@]}" $command >"$work/bound" 2>&1
		bound=$?
		if [ $bound -eq 98 ]; then
			skip "$command: no system call filter here: $(tail -1 "$work/bound")"
		elif [ $bound -eq 99 ]; then
			fail "$command made a forbidden call: $(tail -1 "$work/bound")"
			dmesg 2>/dev/null | grep -i seccomp | tail -2
		elif [ $bound -eq $free ] && cmp -s "$work/free" "$work/bound"; then
			pass "$command starts no program and writes no file (kernel-enforced)"
		else
			fail "$command: differs when confined (exit $free, confined $bound)"
			diff "$work/free" "$work/bound" | head -20
		fi
	done
else
	skip "no compiler and no confined here"
fi

counts
