# SPDX-License-Identifier: Apache-2.0
# Completion of onehop for bash; made by tools/generate.
_onehop()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	local command=${COMP_WORDS[1]} words=

	COMPREPLY=()
	case $command in -*) command=check ;; esac
	case $command,$prev in
	check,--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	check,--pid) return ;;
	check,--fail-on) COMPREPLY=($(compgen -W 'info warning error never' -- "$cur")); return ;;
	check,--ignore) COMPREPLY=($(compgen -W "$(onehop check --list 2>/dev/null | cut -d' ' -f1)" -- "$cur")); return ;;
	check,--explain) COMPREPLY=($(compgen -W "$(onehop check --list 2>/dev/null | cut -d' ' -f1)" -- "$cur")); return ;;
	check,--width) return ;;
	topo,--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	topo,--pid) return ;;
	topo,-p2p) COMPREPLY=($(compgen -W 'r w n a p' -- "$cur")); return ;;
	topo,--svg) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	topo,--width) return ;;
	record,--note) return ;;
	record,--pid) return ;;
	record,--from) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	record,--width) return ;;
	help,--width) return ;;
	help,help) COMPREPLY=($(compgen -W 'check topo record help' -- "$cur")); return ;;
	esac
	case $command in
	check) words=' --from --pid --fail-on --ignore --explain --list --json --no-color --width -v --verbose -h --help' ;;
	topo) words=' --from --pid -m --matrix -p2p --svg --json --no-color --width -h --help' ;;
	record) words=' --note --keep-identifiers --pid --from --no-color --width -h --help' ;;
	help) words=' --no-color --width -h --help' ;;
	esac
	if [ "$COMP_CWORD" = 1 ]; then
		case $cur in -*) words+=' --version' ;; *) words='check topo record help' ;; esac
	fi
	if [ "$command" = record ] && [[ $cur != -* ]]; then
		COMPREPLY=($(compgen -f -- "$cur"))
	else
		COMPREPLY=($(compgen -W "$words" -- "$cur"))
	fi
}
complete -o filenames -F _onehop onehop
