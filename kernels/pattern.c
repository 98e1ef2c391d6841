// SPDX-License-Identifier: Apache-2.0
/* Fills memory with the pattern, and classifies wrong words. */
#include "kernels/found.h"

KERNEL(fill)
{
	for (u64 i = grid_id(); i < a.words; i += grid_count())
		AT(u64, a.target + i * 8) = pattern_word(a.tag, a.first + i);
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
		found_wrong(&f, word, a.tag, a.first + i, a.first + a.words);
	}
	if (f.r.wrong)
		found_report(&f, a.report);
}
