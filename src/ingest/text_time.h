/* SPDX-License-Identifier: Apache-2.0 */
/* When an output was made, as far as its text shows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct text_time {
	int64_t s; /* since 1970; of a clock whose time zone is not shown, as if that were UTC; 0: unknown */
	bool zoned; /* the time zone is known */
};

enum { TEXT_TIME_SIZE = 24 };

/*
 * The time that a line begins with: as date(1) and nvidia-smi print it, or as ISO 8601 has it; log
 * lines have it in brackets. {0}: none, or one without a year. *ret_rest, if wanted: what is behind
 * it.
 */
struct text_time text_time_at(const char *s, const char **ret_rest);
/*
 * > 0: a is newer than b, < 0: older; 0: unknown. Where one has no time zone, the two clocks may be
 * apart by as much as time zones are.
 */
int text_time_order(struct text_time a, struct text_time b);
/* "2026-11-22 09:40:35", with " UTC" if the zone is known. */
const char *text_time_words(struct text_time t, char buf[TEXT_TIME_SIZE]);
