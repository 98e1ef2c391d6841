# SPDX-License-Identifier: Apache-2.0
# Completion of onehop for bash; made by tools/generate.
_onehop()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	local command=${COMP_WORDS[1]} words=

	COMPREPLY=()
	case $command in -*) command=check ;; esac
	if [ "$command" = bench ]; then
		command="$command ${COMP_WORDS[2]}"
		if [ "$COMP_CWORD" = 2 ]; then
			COMPREPLY=($(compgen -W 'p2p nccl rdma' -- "$cur"))
			return
		fi
	fi
	case $command,$prev in
	'check',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'check',--pid) return ;;
	'check',--observed) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'check',--fail-on) COMPREPLY=($(compgen -W 'info warning error never' -- "$cur")); return ;;
	'check',--ignore) COMPREPLY=($(compgen -W "$(onehop check --list 2>/dev/null | cut -d' ' -f1)" -- "$cur")); return ;;
	'check',--require) COMPREPLY=($(compgen -W 'direct rdma' -- "$cur")); return ;;
	'check',--gpus) return ;;
	'check',--explain) COMPREPLY=($(compgen -W "$(onehop check --list 2>/dev/null | cut -d' ' -f1)" -- "$cur")); return ;;
	'check',--width) return ;;
	'fix',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'fix',--root) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'fix',--observed) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'fix',--iommu) COMPREPLY=($(compgen -W 'pt off' -- "$cur")); return ;;
	'fix',--width) return ;;
	'undo',--root) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'undo',--width) return ;;
	'history',--root) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'history',--width) return ;;
	'unlock',--sources) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'unlock',--mirror) return ;;
	'unlock',--kernel) return ;;
	'unlock',--probe) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'unlock',--tree) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'unlock',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'unlock',--observed) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'unlock',--width) return ;;
	'test',--device) return ;;
	'test',--gpus) return ;;
	'test',--memory) return ;;
	'test',--deadline) return ;;
	'test',--long) return ;;
	'test',--inject) return ;;
	'test',--width) return ;;
	'topo',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'topo',--pid) return ;;
	'topo',-p2p) COMPREPLY=($(compgen -W 'r w n a p' -- "$cur")); return ;;
	'topo',--svg) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'topo',--observed) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'topo',--width) return ;;
	'record',--note) return ;;
	'record',--pid) return ;;
	'record',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'record',--width) return ;;
	'bench p2p',--device) return ;;
	'bench p2p',--gpus) return ;;
	'bench p2p',--memory) return ;;
	'bench p2p',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench p2p',--pairs) return ;;
	'bench p2p',--only) return ;;
	'bench p2p',--size) return ;;
	'bench p2p',--time) return ;;
	'bench p2p',--format) COMPREPLY=($(compgen -W 'p2pBandwidthLatencyTest nvbandwidth-json' -- "$cur")); return ;;
	'bench p2p',--width) return ;;
	'bench nccl',--op) COMPREPLY=($(compgen -W 'all-reduce all-gather reduce-scatter broadcast reduce all-to-all send-recv' -- "$cur")); return ;;
	'bench nccl',--min) return ;;
	'bench nccl',--max) return ;;
	'bench nccl',--factor) return ;;
	'bench nccl',--step) return ;;
	'bench nccl',--iterations) return ;;
	'bench nccl',--warmup) return ;;
	'bench nccl',--type) COMPREPLY=($(compgen -W 'int8 uint8 int32 uint32 int64 uint64 half float double bfloat16' -- "$cur")); return ;;
	'bench nccl',--redop) COMPREPLY=($(compgen -W 'sum prod max min avg' -- "$cur")); return ;;
	'bench nccl',--root) return ;;
	'bench nccl',--graph) return ;;
	'bench nccl',--device) return ;;
	'bench nccl',--gpus) return ;;
	'bench nccl',--memory) return ;;
	'bench nccl',--count) return ;;
	'bench nccl',--nccl) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench nccl',--budget) return ;;
	'bench nccl',--deadline) return ;;
	'bench nccl',--format) COMPREPLY=($(compgen -W 'nccl-tests' -- "$cur")); return ;;
	'bench nccl',--width) return ;;
	'bench rdma',--device) return ;;
	'bench rdma',--gpus) return ;;
	'bench rdma',--memory) return ;;
	'bench rdma',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench rdma',--nics) return ;;
	'bench rdma',--only) return ;;
	'bench rdma',--memory-by) return ;;
	'bench rdma',--size) return ;;
	'bench rdma',--queues) return ;;
	'bench rdma',--depth) return ;;
	'bench rdma',--time) return ;;
	'bench rdma',--format) COMPREPLY=($(compgen -W 'perftest perftest-6.06' -- "$cur")); return ;;
	'bench rdma',--width) return ;;
	'compare',--pair) return ;;
	'compare',--width) return ;;
	'log',--width) return ;;
	'env',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'env',--pid) return ;;
	'env',--script) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'env',--observed) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'env',--format) COMPREPLY=($(compgen -W 'json conf k8s' -- "$cur")); return ;;
	'env',--rankfile) COMPREPLY=($(compgen -W 'mpirun srun' -- "$cur")); return ;;
	'env',--explain) return ;;
	'env',--width) return ;;
	'help',--width) return ;;
	help,help) COMPREPLY=($(compgen -W 'check fix undo history unlock test topo record bench compare log env help' -- "$cur")); return ;;
	esac
	case $command in
	'check') words=' --from --pid --observed --no-observed --fail-on --ignore --require --gpus --ask --explain --list --json --no-color --width -v --verbose -q --quiet -h --help' ;;
	'fix') words=' --apply --dry-run -y --yes --from --root --observed --no-observed --iommu --now --kept --trial --no-trial --confirm --json --no-color --width -v --verbose -h --help' ;;
	'undo') words=' --dry-run --forget -y --yes --root --json --no-color --width -v --verbose -h --help' ;;
	'history') words=' --root --json --no-color --width -v --verbose -h --help' ;;
	'unlock') words=' --sources --download --mirror --apply --kernel --image --by-hand --support --probe --tree --explain --diff --revert --from --observed --no-observed --json --no-color --width -v --verbose -h --help' ;;
	'test') words=' --device --gpus --include-busy --memory --deadline --long --atomics --compressible --host-memory --resume --inject --json --no-color --width -v --verbose -h --help' ;;
	'topo') words=' --from --pid -m --matrix -p2p --svg --observed --no-observed --json --no-color --width -h --help' ;;
	'record') words=' --note --keep-identifiers --pid --from --no-color --width -h --help' ;;
	'bench p2p') words=' --device --gpus --include-busy --memory --from --pairs --only --all --size --sweep --time --no-verify --format --json --no-color --width -v --verbose -h --help' ;;
	'bench nccl') words=' --op -b --min -e --max -f --factor -i --step -n --iterations -w --warmup -d --type -o --redop -r --root -G --graph --no-verify --device --gpus --include-busy --memory -g --count --processes --alone --p2p-off --nccl --once --budget --deadline --format -v --verbose --json --no-color --width -h --help' ;;
	'bench rdma') words=' --device --gpus --include-busy --memory --from --list --nics --all --only --memory-by --size --sweep --queues --depth --time --no-relaxed-ordering --no-verify --format --json --no-color --width -v --verbose -h --help' ;;
	'compare') words=' --pair -v --verbose --json --no-color --width -h --help' ;;
	'log') words=' -v --verbose --json --no-color --width -h --help' ;;
	'env') words=' --from --pid --script --observed --no-observed --shell --format --rankfile --explain --json --no-color --width -v --verbose -h --help' ;;
	'help') words=' --no-color --width -h --help' ;;
	esac
	if [ "$COMP_CWORD" = 1 ]; then
		case $cur in -*) words+=' --version' ;; *) words='check fix undo history unlock test topo record bench compare log env help' ;; esac
	fi
	if [ "$command" = record ] && [[ $cur != -* ]]; then
		COMPREPLY=($(compgen -f -- "$cur"))
	else
		COMPREPLY=($(compgen -W "$words" -- "$cur"))
	fi
}
complete -o filenames -F _onehop onehop
