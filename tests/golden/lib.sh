# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What golden and tools/bless share. The working directory is the source root.

machines=tests/machines
golden=tests/golden
figures=tests/figures

list_machines() {
	local note
	for note in "$machines"/*/note.txt; do
		basename "$(dirname "$note")"
	done
}

# list_views MACHINE: "VIEW ARGUMENT..." a line, those that are compared for it
list_views() {
	local view arguments section=
	while read -r view arguments; do
		case $view in
		'#'*) continue ;;
		'['*) section="$view $arguments" && continue ;;
		esac
		case $section:$1 in
		'[all machines]':*) ;;
		'[all but'*:made-up-*) continue ;;
		'[where'*) [ -e "$golden/$1.$view" ] || continue ;;
		esac
		echo "$view $arguments"
	done <"$golden/views"
}

# show ONEHOP SOURCE ARGUMENT...: both outputs and the exit status, as golden files hold them
show() {
	local onehop=$1 source=$2 status=0
	shift 2
	env -u COLUMNS -u NO_COLOR LC_ALL=C TERM=dumb SOURCE_DATE_EPOCH=1700000000 "$onehop" "$@" --from "$source" 2>&1 || status=$?
	echo "[exit status $status]"
}

# list_results: "NAME ARGUMENT..." a line: what commands print for results of tests (tests/figures)
list_results() {
	grep -v '^#' "$golden/results"
}

# show_result ONEHOP ARGUMENT...: as show, for a command that reads files below tests/figures
show_result() {
	local onehop=$1 status=0
	shift
	(cd "$figures" && env -u COLUMNS -u NO_COLOR LC_ALL=C TERM=dumb "$onehop" "$@" 2>&1) || status=$?
	echo "[exit status $status]"
}
