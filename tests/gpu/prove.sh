#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# onehop test and bench on a machine with NVIDIA GPUs: all is well there, and what is out of order is said.
#
#	tests/gpu/prove.sh FOLDER
#
# FOLDER holds "onehop" and "device_smoke" with the shared libraries that they need. Reports go to $OUT
# (default: a new folder). No setting of a GPU is changed. Ends with "N passed, N failed, N skipped".
# shellcheck source=tests/gpu/lib.sh
. "$(dirname "$0")/lib.sh"
export NCCL_NVLS_ENABLE=0 XDG_STATE_HOME=$work/state
mkdir -p "$out"
gpus=$(nvidia-smi -L | wc -l)

# expect NAME STATUS PATTERN COMMAND...: its exit status, and a pattern in what it prints
expect() {
	local name=$1 status=$2 pattern=$3 got=0
	shift 3
	"$@" >"$work/said" 2>&1 || got=$?
	if [ $got -eq "$status" ] && grep -Eq -- "$pattern" "$work/said"; then
		pass "$name"
	else
		fail "$name: status $got instead of $status, or no \"$pattern\" in:"
		cat "$work/said"
	fi
}

# Nothing of onehop is left running, neither process nor work on a GPU.
nothing_left() {
	sleep 0.5
	if pgrep -x onehop >/dev/null || nvidia-smi --query-compute-apps=pid --format=csv,noheader | grep -q .; then
		fail "$1: something is left"
		pgrep -ax onehop
		nvidia-smi --query-compute-apps=pid,name --format=csv,noheader
	else
		pass "$1: nothing is left"
	fi
}

# A GPU that somebody uses: memory taken with plain allocations, until killed.
hold() {
	local gpu=$1 free_mib=$2 python
	for python in python3 /opt/*/.venv/bin/python3; do
		"$python" -c 'import torch' 2>/dev/null && break
	done
	"$python" - "$gpu" "$free_mib" <<'END' &
import sys, time, torch
gpu, left = int(sys.argv[1]), int(sys.argv[2]) << 20
torch.cuda.set_device(gpu)
free, _ = torch.cuda.mem_get_info(gpu)
held = torch.empty(max(free - left, 1 << 20), dtype=torch.uint8, device=f"cuda:{gpu}")
open(f"/tmp/held.{gpu}", "w").close()
time.sleep(120)
END
	holder=$!
	for _ in $(seq 200); do
		[ -e "/tmp/held.$gpu" ] && return
		sleep 0.1
	done
	fail "no GPU could be held busy"
}

release() {
	kill "$holder" 2>/dev/null
	wait "$holder" 2>/dev/null
	rm -f /tmp/held.*
}

section 'devices'
if "$folder/device_smoke"; then pass device_smoke; else fail device_smoke; fi

section 'what a person sees'
onehop test
echo "exit $?"
onehop bench p2p
echo "exit $?"
onehop check | tail -3

section "test, $gpus GPUs"
expect 'every pair is right' 0 'Correct data over' onehop test
expect 'the same as JSON' 0 '"schema"|"version"' onehop test --json
nothing_left 'after a test'

section 'a GPU hidden'
expect 'CUDA_VISIBLE_DEVICES=0 leaves one GPU: no pair' 3 . env CUDA_VISIBLE_DEVICES=0 "$folder/onehop" test
cat "$work/said"

# during SECONDS WHAT STATUS PATTERN COMMAND...: starts the command, does WHAT to it after some time;
# STATUS is one or several, as 1|3
during() {
	local seconds=$1 what=$2 status=$3 pattern=$4 got=0 run
	shift 4
	"$folder/onehop" "$@" >"$work/said" 2>&1 &
	run=$!
	sleep "$seconds"
	case $what in
	stop) kill -INT $run ;;
	kill) pkill -9 -f 'onehop worker' ;;
	esac
	wait $run || got=$?
	if [[ $got =~ ^($status)$ ]] && grep -Eq -- "$pattern" "$work/said"; then
		pass "$* after $seconds s, $what: status $got, \"$pattern\""
	else
		fail "$* after $seconds s, $what: status $got instead of $status, or no \"$pattern\" in:"
		cat "$work/said"
	fi
	nothing_left "$* after $what"
}

section 'a worker killed, and Ctrl-C'
# 3: with four GPUs the workers are still opening them then, and no pair was tested.
during 0.75 kill '1|3' 'died|killed|ended' test
during 2.5 kill 1 'signal 9|killed' bench p2p --all
during 2.5 stop 2 'GB/s' bench p2p --all
during 0.4 stop 2 . test

section 'GPU 0 in use by another process'
hold 0 100000
onehop test
echo "exit $?"
onehop bench p2p --only write-ce
echo "exit $?"
release

section 'GPU 0 without free memory'
hold 0 300
onehop test --include-busy
echo "exit $?"
onehop bench p2p --include-busy --only write-ce --size 512M
echo "exit $?"
release
nothing_left 'at the end'

counts
