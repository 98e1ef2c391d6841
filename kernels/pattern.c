// SPDX-License-Identifier: Apache-2.0
/* Fills memory with the pattern and tells what is wrong with what is found there. */
#include "kernels/pattern.h"

#include "kernels/device.h"

/* A word of noise also has a tag; what claims a place this far (in words) behind the buffer is noise. */
#define FAR_BEHIND (1ul << 21)

KERNEL(fill)
{
	for (u64 i = grid_id(); i < a.words; i += grid_count())
		AT(u64, a.target + i * 8) = pattern_word(a.tag, a.first + i);
}

/* What one thread found. */
struct found {
	struct check_report r;
	i64 shift; /* of the first displaced word */
};

static inline void classify(struct found *f, const struct check_args *a, u64 word, u64 expected)
{
	const u64 tag = pattern_tag(word), index = pattern_index(word);
	const i64 shift = (i64)index - (i64)expected;

	if (word == 0) {
		f->r.zero++;
	} else if (tag == a->tag) {
		if (!f->r.displaced++)
			f->shift = shift;
		f->r.shifts_differ += shift != f->shift;
	} else if (index >= a->first + a->words + FAR_BEHIND) {
		f->r.other++;
	} else {
		const u32 same_pair = tag >> 8 == a->tag >> 8;

		f->r.old += same_pair;
		f->r.foreign += !same_pair;
		f->r.poison += tag == (a->tag | 1);
		f->r.any_old_tag = tag;
	}
}

/* Adds what this thread found to the report: one atomic a thread and counter. */
static inline void report(const struct found *f, u64 to)
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

KERNEL(check)
{
	struct found f = {{0}, 0};

	for (u64 i = grid_id(); i < a.words; i += grid_count()) {
		const u64 word = AT(const u64, a.origin + i * 8);

		if (word == pattern_word(a.tag, a.first + i))
			continue;
		if (!f.r.wrong++)
			f.r.first_wrong = i;
		f.r.last_wrong = i;
		classify(&f, &a, word, a.first + i);
	}
	if (f.r.wrong)
		report(&f, a.report);
}
