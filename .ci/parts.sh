# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Which slow steps are due: .ci/parts beside .ci/passed. The record is committed, so it holds in any
# checkout, however many commits ago a part changed; only a change of the files, or a person, makes steps run.

# files PATTERN...: what belongs to the repository, committed or not
files() {
	git ls-files -co --exclude-standard -- "$@" | while read -r file; do
		[ ! -f "$file" ] || echo "$file"
	done
}

# part_row PART: "WHEN MINUTES PATHSPEC..."
part_row() {
	sed -n "s/^$1 //p" .ci/parts
}

part_hash() {
	local row
	row=$(part_row "$1")
	# shellcheck disable=SC2086 # several pathspecs; set -f keeps the shell from expanding them
	(set -f && files ${row#* * }) | grep -v '[.]md$' | LC_ALL=C sort -u | xargs -rd '\n' sha256sum | sha256sum | cut -d ' ' -f 1
}

# part_due PART: 0 if its steps are to run now; prints why, or why not
part_due() {
	local row recorded
	row=$(part_row "$1")
	[ -n "$row" ] || { echo "no part '$1' in .ci/parts"; return 0; }
	recorded=$(sed -n "s/^$1 //p" .ci/passed)
	if [[ " ${ONEHOP_CI:-} " == *" $1 "* || ${ONEHOP_CI:-} = all ]]; then
		echo 'on request'
		return 0
	elif [ -z "$recorded" ]; then
		echo 'not in .ci/passed yet'
	elif [ "$recorded" = "$(part_hash "$1")" ]; then
		echo 'unchanged since it passed'
		return 1
	else
		echo 'changed since it passed'
	fi
	[ "${row%% *}" = changed ]
}

# part_fits PART SECONDS: 0 if its steps end in time when SECONDS of the run are over; else prints why not
part_fits() {
	local row minutes limit=${ONEHOP_CI_MINUTES:-80}
	row=$(part_row "$1") minutes=${row#* } minutes=${minutes%% *}
	[ $(($2 / 60 + minutes)) -gt "$limit" ] || return 0
	echo "$(($2 / 60)) of $limit minutes are over, and it takes $minutes"
	return 1
}

# part_record PART: what .ci/passed has to say once the part, as it is, passed
part_record() {
	local line
	line="$1 $(part_hash "$1")"
	sed -i "/^$1 /d" .ci/passed
	echo "$line" >>.ci/passed
}

# tidied FILE...: "HASH SOURCE" of what passed clang-tidy by these records, which need not exist
tidied() {
	cat "$@" 2>/dev/null | grep -E '^[0-9a-f]{20} ' || true
}

# tidy_passed FOLDER: what of the sources as they were when clang-tidy last ran there it has passed
tidy_passed() {
	grep -xFf <(tidied .ci/tidied "$1/tidied") "$1/tidy-inputs" | LC_ALL=C sort -k 2 || true
}

# tidy_record FOLDER: what .ci/tidied has to say after a run of clang-tidy there
tidy_record() {
	local passed
	passed=$(sed -n '/^#/p' .ci/tidied && tidy_passed "$1")
	echo "$passed" >.ci/tidied
}
