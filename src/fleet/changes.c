/* SPDX-License-Identifier: Apache-2.0 */
/* One host at two times, by the facts that hosts are compared by. */
#include "fleet/fleet.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <string.h>

/* What a host lacks in a list that it has as a whole is absent. */
static const char *value_text(const struct fleet *f, const struct fleet_host *h,
			      const struct fact_row *row, unsigned value)
{
	bool listed = (row->place == PLACE_WORD && (h->families & FAMILY_WORDS)) ||
		      (row->place == PLACE_NCCL && (h->families & FAMILY_NCCL));

	if (value)
		return numbered_text(&f->words, value);
	return listed ? "absent" : "unknown";
}

struct fleet_change *fleet_changes(struct fleet *f, const struct fleet_host *before,
				   const struct fleet_host *now, size_t *ret_n)
{
	AUTO_FREE unsigned *was = fleet_values(f, before), *is = fleet_values(f, now);
	struct fleet_change *changes = NULL;

	*ret_n = 0;
	for (unsigned k = 1; k <= f->key_n; k++) {
		const struct fact_key *key = &f->keys[k - 1];
		const char *address = fleet_address(now, key->slot);

		if (was[k] == is[k])
			continue;
		*ARENA_PUSH(f->arena, changes, *ret_n) =
			(struct fleet_change){key->row, key->slot,
					      *address ? address : fleet_address(before, key->slot),
					      value_text(f, before, key->row, was[k]),
					      value_text(f, now, key->row, is[k])};
	}
	return changes;
}

static const json_t *log_of(const json_t *check)
{
	return json_object_get(json_object_get(check, "machine"), "log");
}

size_t fleet_new_log(const json_t *before, const json_t *now, const json_t **ret_lines)
{
	const json_t *old = log_of(before), *lines = *ret_lines = log_of(now);
	size_t n = json_array_size(old);

	for (size_t i = json_array_size(lines); n && i-- > 0;)
		if (json_equal(json_array_get(lines, i), json_array_get(old, n - 1)))
			return i + 1;
	return 0; /* the lines that were there before are gone */
}
