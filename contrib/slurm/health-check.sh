#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# HealthCheckProgram= of slurm.conf. Slurm ignores its exit code, so it drains the node itself; it only resumes a node
# that it drained. It also runs before the node is registered, when scontrol would wait for the controller: hence timeout.

onehop=${ONEHOP:-/usr/bin/onehop}
scontrol=${SCONTROL:-/usr/bin/scontrol}
node=${SLURMD_NODENAME:-$(/bin/hostname -s)}

reason_now() {
	timeout 10 "$scontrol" --oneliner show node "$node" 2>/dev/null | sed -n 's/.* Reason=\(.*\)/\1/p'
}

if line=$("$onehop" check --for slurm-health --deadline 20 --fail-on error); then
	# Nothing is wrong, or nothing could be judged: then the line says so, and the node stays as it is.
	[ -z "$line" ] || exit 0
	case $(reason_now) in
	onehop:*) timeout 10 "$scontrol" update NodeName="$node" State=RESUME ;;
	esac
else
	[ -n "$line" ] || exit 0
	case $(reason_now) in
	'') timeout 10 "$scontrol" update NodeName="$node" State=DRAIN Reason="onehop: $line" ;;
	esac
fi
