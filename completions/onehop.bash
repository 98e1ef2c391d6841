# SPDX-License-Identifier: Apache-2.0
# Completion of onehop for bash; made by tools/generate.
# The words of the program's list $2 that begin with $3.
_onehop_words()
{
	COMPREPLY=($(compgen -W "$("$1" completion "$2" 2>/dev/null | cut -f1)" -- "$3"))
}
# The same for the last word of a list with commas.
_onehop_list()
{
	local typed=

	case $3 in *,*) typed=${3%,*}, ;; esac
	_onehop_words "$1" "$2" "${3##*,}"
	COMPREPLY=("${COMPREPLY[@]/#/$typed}")
}
_onehop()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	local command=${COMP_WORDS[1]} words=

	COMPREPLY=()
	# --option=value is three words here.
	if [ "$cur" = = ]; then
		cur=
	elif [ "$prev" = = ]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	case $command in -*) command=check ;; esac
	if [ "$command" = bench ]; then
		command="$command ${COMP_WORDS[2]}"
		if [ "$COMP_CWORD" = 2 ]; then
			COMPREPLY=($(compgen -W 'p2p nccl collective rdma' -- "$cur"))
			return
		fi
	fi
	case $command,$prev in
	'check',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'check',--host) return ;;
	'check',--pid) return ;;
	'check',--observed) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'check',--fail-on) COMPREPLY=($(compgen -W 'info warning error never' -- "$cur")); return ;;
	'check',--ignore) _onehop_words "$1" rules "$cur"; return ;;
	'check',--require) COMPREPLY=($(compgen -W 'direct rdma' -- "$cur")); return ;;
	'check',--gpus) _onehop_list "$1" gpus "$cur"; return ;;
	'check',--symptom) COMPREPLY=($(compgen -W 'hang wrong-data slow crash refused' -- "$cur")); return ;;
	'check',--pair) _onehop_list "$1" gpus "$cur"; return ;;
	'check',--for) COMPREPLY=($(compgen -W 'slurm-prolog slurm-health nhc npd kubernetes prometheus' -- "$cur")); return ;;
	'check',--deadline) return ;;
	'check',--textfile) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'check',--explain) _onehop_words "$1" rules "$cur"; return ;;
	'check',--html) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'check',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'check',--width) return ;;
	'fix',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'fix',--host) return ;;
	'fix',--root) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'fix',--observed) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'fix',--iommu) COMPREPLY=($(compgen -W 'pt off' -- "$cur")); return ;;
	'fix',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'fix',--width) return ;;
	'undo',--root) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'undo',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'undo',--width) return ;;
	'history',--root) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'history',--format) COMPREPLY=($(compgen -W 'csv' -- "$cur")); return ;;
	'history',--html) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'history',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'history',--width) return ;;
	'unlock',--sources) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'unlock',--mirror) return ;;
	'unlock',--kernel) return ;;
	'unlock',--probe) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'unlock',--tree) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'unlock',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'unlock',--host) return ;;
	'unlock',--observed) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'unlock',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'unlock',--width) return ;;
	'test',--device) return ;;
	'test',--gpus) _onehop_list "$1" gpus "$cur"; return ;;
	'test',--memory) return ;;
	'test',--deadline) return ;;
	'test',--long) return ;;
	'test',--inject) _onehop_words "$1" faults "$cur"; return ;;
	'test',--html) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'test',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'test',--width) return ;;
	'topo',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'topo',--host) return ;;
	'topo',--pid) return ;;
	'topo',-p2p) COMPREPLY=($(compgen -W 'r w n a p' -- "$cur")); return ;;
	'topo',--svg) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'topo',--observed) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'topo',--format) COMPREPLY=($(compgen -W 'csv' -- "$cur")); return ;;
	'topo',--html) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'topo',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'topo',--width) return ;;
	'record',--note) return ;;
	'record',--pid) return ;;
	'record',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'record',--host) return ;;
	'record',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'record',--width) return ;;
	'bench p2p',--device) return ;;
	'bench p2p',--gpus) _onehop_list "$1" gpus "$cur"; return ;;
	'bench p2p',--memory) return ;;
	'bench p2p',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench p2p',--pairs) return ;;
	'bench p2p',--only) _onehop_list "$1" p2p-metrics "$cur"; return ;;
	'bench p2p',--size) return ;;
	'bench p2p',--time) return ;;
	'bench p2p',--format) COMPREPLY=($(compgen -W 'p2pBandwidthLatencyTest nvbandwidth-json csv' -- "$cur")); return ;;
	'bench p2p',--html) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench p2p',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'bench p2p',--width) return ;;
	'bench nccl',--op) COMPREPLY=($(compgen -W 'all-reduce all-gather reduce-scatter broadcast reduce all-to-all send-recv' -- "$cur")); return ;;
	'bench nccl',--shim-library) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench nccl',--min) return ;;
	'bench nccl',--max) return ;;
	'bench nccl',--factor) return ;;
	'bench nccl',--step) return ;;
	'bench nccl',--iterations) return ;;
	'bench nccl',--warmup) return ;;
	'bench nccl',--type) COMPREPLY=($(compgen -W 'int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2' -- "$cur")); return ;;
	'bench nccl',--redop) COMPREPLY=($(compgen -W 'sum prod max min avg' -- "$cur")); return ;;
	'bench nccl',--root) return ;;
	'bench nccl',--graph) return ;;
	'bench nccl',--device) return ;;
	'bench nccl',--gpus) _onehop_list "$1" gpus "$cur"; return ;;
	'bench nccl',--memory) return ;;
	'bench nccl',--count) return ;;
	'bench nccl',--nccl) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench nccl',--budget) return ;;
	'bench nccl',--deadline) return ;;
	'bench nccl',--format) COMPREPLY=($(compgen -W 'nccl-tests csv' -- "$cur")); return ;;
	'bench nccl',--html) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench nccl',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'bench nccl',--width) return ;;
	'bench collective',--op) COMPREPLY=($(compgen -W 'all-reduce all-gather reduce-scatter broadcast reduce all-to-all barrier' -- "$cur")); return ;;
	'bench collective',--against) COMPREPLY=($(compgen -W 'nccl nccl-symmetric' -- "$cur")); return ;;
	'bench collective',--min) return ;;
	'bench collective',--max) return ;;
	'bench collective',--factor) return ;;
	'bench collective',--step) return ;;
	'bench collective',--iterations) return ;;
	'bench collective',--warmup) return ;;
	'bench collective',--type) COMPREPLY=($(compgen -W 'int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2' -- "$cur")); return ;;
	'bench collective',--redop) COMPREPLY=($(compgen -W 'sum prod max min avg' -- "$cur")); return ;;
	'bench collective',--root) return ;;
	'bench collective',--graph) return ;;
	'bench collective',--device) return ;;
	'bench collective',--gpus) _onehop_list "$1" gpus "$cur"; return ;;
	'bench collective',--memory) return ;;
	'bench collective',--count) return ;;
	'bench collective',--nccl) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench collective',--budget) return ;;
	'bench collective',--deadline) return ;;
	'bench collective',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench collective',--host) return ;;
	'bench collective',--observed) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench collective',--format) COMPREPLY=($(compgen -W 'csv' -- "$cur")); return ;;
	'bench collective',--html) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench collective',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'bench collective',--width) return ;;
	'bench rdma',--device) return ;;
	'bench rdma',--gpus) _onehop_list "$1" gpus "$cur"; return ;;
	'bench rdma',--memory) return ;;
	'bench rdma',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench rdma',--as) COMPREPLY=($(compgen -W 'perftest' -- "$cur")); return ;;
	'bench rdma',--iterations) return ;;
	'bench rdma',--nics) _onehop_list "$1" nics "$cur"; return ;;
	'bench rdma',--gid) return ;;
	'bench rdma',--only) _onehop_list "$1" rdma-metrics "$cur"; return ;;
	'bench rdma',--memory-by) _onehop_list "$1" memory "$cur"; return ;;
	'bench rdma',--size) return ;;
	'bench rdma',--queues) return ;;
	'bench rdma',--depth) return ;;
	'bench rdma',--time) return ;;
	'bench rdma',--expect) return ;;
	'bench rdma',--format) COMPREPLY=($(compgen -W 'perftest perftest-6.06 csv' -- "$cur")); return ;;
	'bench rdma',--html) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'bench rdma',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'bench rdma',--width) return ;;
	'tune',--device) return ;;
	'tune',--gpus) _onehop_list "$1" gpus "$cur"; return ;;
	'tune',--memory) return ;;
	'tune',--budget) return ;;
	'tune',--deadline) return ;;
	'tune',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'tune',--width) return ;;
	'compare',--pair) return ;;
	'compare',--format) COMPREPLY=($(compgen -W 'csv' -- "$cur")); return ;;
	'compare',--html) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'compare',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'compare',--width) return ;;
	'report',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'report',--host) return ;;
	'report',--html) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'report',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'report',--width) return ;;
	'fleet',--hosts) return ;;
	'fleet',--format) COMPREPLY=($(compgen -W 'csv' -- "$cur")); return ;;
	'fleet',--html) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'fleet',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'fleet',--width) return ;;
	'log',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'log',--width) return ;;
	'env',--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'env',--host) return ;;
	'env',--pid) return ;;
	'env',--script) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'env',--observed) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'env',--format) COMPREPLY=($(compgen -W 'json conf k8s' -- "$cur")); return ;;
	'env',--rankfile) COMPREPLY=($(compgen -W 'mpirun srun' -- "$cur")); return ;;
	'env',--explain) _onehop_words "$1" variables "$cur"; return ;;
	'env',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'env',--width) return ;;
	'help',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'help',--width) return ;;
	'version',--color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
	'version',--width) return ;;
	help,help) COMPREPLY=($(compgen -W 'check fix undo history unlock test topo record bench tune compare report fleet log env help version completion' -- "$cur")); return ;;
	esac
	case $command in
	'check') words=' --from --host --pid --observed --no-observed --fail-on --ignore --require --gpus --ask --symptom --pair --for --deadline --textfile --watch --explain --list --json --html --markdown --keep-identifiers --color --width -v --verbose -q --quiet -h --help' ;;
	'fix') words=' --apply --dry-run -y --yes --from --host --root --observed --no-observed --iommu --now --kept --trial --no-trial --confirm --json --color --width -v --verbose -h --help' ;;
	'undo') words=' --dry-run --forget -y --yes --root --json --color --width -v --verbose -h --help' ;;
	'history') words=' --root --json --format --html --markdown --keep-identifiers --color --width -v --verbose -h --help' ;;
	'unlock') words=' --sources --download --mirror --apply --kernel --image --by-hand --support --probe --tree --explain --diff --revert --from --host --observed --no-observed --json --color --width -v --verbose -h --help' ;;
	'test') words=' --device --gpus --include-busy --memory --deadline --long --atomics --compressible --host-memory --resume --include-suspects --inject --json --html --markdown --keep-identifiers --color --width -v --verbose -h --help' ;;
	'topo') words=' --from --host --pid -m --matrix -p2p --svg --observed --no-observed --json --format --html --markdown --keep-identifiers --color --width -h --help' ;;
	'record') words=' --note --keep-identifiers --pid --from --host --color --width -h --help' ;;
	'bench p2p') words=' --device --gpus --include-busy --memory --from --pairs --only --all --size --sweep --time --no-verify --format --json --html --markdown --keep-identifiers --color --width -v --verbose -h --help' ;;
	'bench nccl') words=' --op --shim --shim-library -b --min -e --max -f --factor -i --step -n --iterations -w --warmup -d --type -o --redop -r --root -G --graph --no-verify --device --gpus --include-busy --memory -g --count --processes --alone --p2p-off --nccl --once --budget --deadline --format -v --verbose --json --html --markdown --keep-identifiers --color --width -h --help' ;;
	'bench collective') words=' --op --against --in-place -b --min -e --max -f --factor -i --step -n --iterations -w --warmup -d --type -o --redop -r --root -G --graph --no-verify --device --gpus --include-busy --memory -g --count --processes --alone --p2p-off --nccl --once --budget --deadline --simulate --from --host --observed --no-observed -v --verbose --json --format --html --markdown --keep-identifiers --color --width -h --help' ;;
	'bench rdma') words=' --device --gpus --include-busy --memory --from --listen --as --iterations --list --nics --gid --all --only --memory-by --size --sweep --queues --depth --time --expect --no-relaxed-ordering --no-verify --format --json --html --markdown --keep-identifiers --color --width -v --verbose -h --help' ;;
	'tune') words=' --device --gpus --include-busy --memory --budget --deadline -v --verbose --json --color --width -h --help' ;;
	'compare') words=' --pair -v --verbose --json --format --html --markdown --keep-identifiers --color --width -h --help' ;;
	'report') words=' --from --host --html --markdown --keep-identifiers --color --width -h --help' ;;
	'fleet') words=' --hosts -v --verbose --json --format --html --markdown --keep-identifiers --color --width -h --help' ;;
	'log') words=' -v --verbose --json --color --width -h --help' ;;
	'env') words=' --from --host --pid --script --observed --no-observed --shell --shim --format --rankfile --explain --json --color --width -v --verbose -h --help' ;;
	'help') words=' --color --width -h --help' ;;
	'version') words=' --color --width -h --help' ;;
	'completion') words=' -h --help' ;;
	esac
	case $COMP_CWORD,$cur in
	1,* | *,-*) ;;
	*) case $command in
	'fix') _onehop_words "$1" rules "$cur"; return ;;
	'undo') _onehop_words "$1" fixes "$cur"; return ;;
	'history') _onehop_words "$1" fixes "$cur"; return ;;
	'record') COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'compare') COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'report') COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'fleet') COMPREPLY=($(compgen -f -- "$cur")); return ;;
	'log') COMPREPLY=($(compgen -f -- "$cur")); return ;;
	esac ;;
	esac
	if [ "$COMP_CWORD" = 1 ]; then
		case $cur in -*) words+=' --version' ;; *) words='check fix undo history unlock test topo record bench tune compare report fleet log env help version completion' ;; esac
	fi
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o filenames -F _onehop onehop
