/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread finds in place of the pattern, and how it is added to the report. */
#pragma once

#include "kernels/device.h"
#include "kernels/pattern.h"

/*
 * A word of noise also has a tag; a word whose place is this far (in words) beyond the buffer is
 * noise.
 */
#define FAR_BEHIND (1ul << 21)

/* What one thread found. */
struct found {
	struct check_report r;
	i64 shift; /* of the first displaced word */
};

/* `word` instead of word `expected` of pattern `tag`, in a buffer that ends before word `end`. */
static inline void found_wrong(struct found *f, u64 word, u64 tag, u64 expected, u64 end)
{
	const u64 its_tag = pattern_tag(word), index = pattern_index(word);
	const i64 shift = (i64)index - (i64)expected;

	if (word == 0) {
		f->r.zero++;
	} else if (its_tag == tag) {
		if (!f->r.displaced++)
			f->shift = shift;
		f->r.shifts_differ += shift != f->shift;
	} else if (index >= end + FAR_BEHIND) {
		f->r.other++;
	} else {
		const u32 same_pair = its_tag >> 8 == tag >> 8;

		f->r.old += same_pair;
		f->r.foreign += !same_pair;
		f->r.poison += its_tag == (tag | 1);
		f->r.any_old_tag = its_tag;
	}
}

/* Adds what this thread found to the report: one atomic a thread and counter. */
static inline void found_report(const struct found *f, u64 to)
{
#define ADD(field)                                                                                 \
	if (f->r.field)                                                                            \
	add_u64(to + OFFSET(field), f->r.field)
#define OFFSET(field) __builtin_offsetof(struct check_report, field)
	ADD(wrong);
	ADD(zero);
	ADD(old);
	ADD(foreign);
	ADD(displaced);
	ADD(other);
	ADD(poison);
	ADD(shifts_differ);
	min_u64(to + OFFSET(first_wrong), f->r.first_wrong);
	max_u64(to + OFFSET(last_wrong), f->r.last_wrong);
	if (f->r.old + f->r.foreign)
		store_u64(to + OFFSET(any_old_tag), f->r.any_old_tag);
	if (f->r.displaced)
		store_u64(to + OFFSET(any_shift), (u64)f->shift);
#undef OFFSET
#undef ADD
}
