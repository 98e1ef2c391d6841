/* SPDX-License-Identifier: Apache-2.0 */
/* From the counts of a check kernel to the kind of wrong, and to the words for it. */
#include "bench/verify.h"

#include "base/text.h"
#include "kernels/pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORD sizeof(u64)

static const char *const way_words[WAY_N] = {"write-copy", "write-kernel", "read-copy",
					     "read-kernel"};
static const char *const way_texts[WAY_N] = {"write by copy engine", "write by kernel",
					     "read by copy engine", "read by kernel"};
static const char *const wrong_words[WRONG_N] = {
	[WRONG_NOTHING] = "nothing", [WRONG_REFUSED] = "refused", [WRONG_HANG] = "hang",
	[WRONG_DIED] = "died",       [WRONG_FAULT] = "fault",     [WRONG_MIRROR] = "mirror",
	[WRONG_LOST] = "lost",       [WRONG_ZEROS] = "zeros",     [WRONG_OLD] = "old-data",
	[WRONG_FOREIGN] = "foreign", [WRONG_SHIFTED] = "shifted", [WRONG_PARTIAL] = "partial",
	[WRONG_OUTSIDE] = "outside", [WRONG_GARBAGE] = "garbage", [WRONG_STALL] = "stall",
	[WRONG_SLOW] = "slow",       [WRONG_ENDED] = "run-ended",
};

const char *way_word(enum way w)
{
	return way_words[w];
}

const char *way_text(enum way w)
{
	return way_texts[w];
}

const char *wrong_word(enum wrong_kind k)
{
	return wrong_words[k];
}

enum wrong_kind wrong_parse(const char *word)
{
	int k = 0;

	while (k < WRONG_N && strcmp(wrong_words[k], word) != 0)
		k++;
	return (enum wrong_kind)k;
}

const char *pair_state_word(enum pair_state s)
{
	static const char *const words[PAIR_STATE_N] = {
		[PAIR_NOT_RUN] = "not-run",       [PAIR_RIGHT] = "ok",
		[PAIR_WRONG] = "failed",          [PAIR_NOT_TESTED] = "not-tested",
		[PAIR_INCOMPLETE] = "incomplete",
	};

	return words[s];
}

/* ---- kinds ---- */

/*
 * Small transfers that land elsewhere leave nothing in their range to tell; they show in what
 * lies around it.
 */
static bool found_beside(const struct range_check *c, struct wrong *w)
{
	const struct check_report *before = &c->reports[PART_BEFORE];
	const struct check_report *behind = &c->reports[PART_BEHIND];

	if (before->wrong && before->any_old_tag == c->data_tag) {
		w->shift_bytes = -(int64_t)((c->words[PART_BEFORE] - before->first_wrong) * WORD);
	} else if (behind->wrong && behind->any_old_tag == c->data_tag) {
		w->shift_bytes = (int64_t)((c->words[PART_RANGE] + behind->first_wrong) * WORD);
	} else {
		return false;
	}
	return true;
}

/* Wrong from the first wrong word to the end, without a gap. */
static bool is_tail(const struct check_report *r, uint64_t words)
{
	return r->first_wrong > 0 && r->last_wrong == words - 1 &&
	       r->wrong == words - r->first_wrong;
}

static u64 rounds_ago(const struct range_check *c)
{
	u64 now = pattern_tag_round(c->data_tag);
	u64 then = pattern_tag_round(c->reports[PART_RANGE].any_old_tag);

	return (now - then) % PATTERN_ROUNDS;
}

/* What most of the wrong words are. */
static enum wrong_kind most_of(const struct check_report *r)
{
	const struct {
		u64 n;
		enum wrong_kind kind;
	} counts[] = {{r->displaced, WRONG_SHIFTED}, {r->poison, WRONG_LOST},
		      {r->zero, WRONG_ZEROS},        {r->old - r->poison, WRONG_OLD},
		      {r->foreign, WRONG_FOREIGN},   {r->other, WRONG_GARBAGE}};
	size_t best = 0;

	for (size_t i = 1; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (counts[i].n > counts[best].n)
			best = i;
	return counts[best].kind;
}

static enum wrong_kind kind_of_range(const struct range_check *c, struct wrong *w)
{
	const struct check_report *r = &c->reports[PART_RANGE];

	if (r->displaced) {
		w->shift_bytes = -r->any_shift * (int64_t)WORD;
		w->shifts_differ = r->shifts_differ;
		return WRONG_SHIFTED;
	}
	if (r->poison == r->wrong && found_beside(c, w))
		return WRONG_SHIFTED;
	if (r->wrong < w->words && (r->poison == r->wrong || is_tail(r, w->words)))
		return WRONG_PARTIAL;
	return most_of(r);
}

struct wrong classify(const struct range_check *c)
{
	const struct check_report *r = &c->reports[PART_RANGE];
	struct wrong w = {.words = c->words[PART_RANGE], .wrong_words = r->wrong};

	if (r->wrong) {
		w.from_bytes = r->first_wrong * WORD;
		w.kind = kind_of_range(c, &w);
	} else if (c->reports[PART_BEFORE].wrong || c->reports[PART_BEHIND].wrong) {
		w.wrong_words = c->reports[PART_BEFORE].wrong + c->reports[PART_BEHIND].wrong;
		w.kind = WRONG_OUTSIDE;
	}
	if (w.kind == WRONG_OLD)
		w.rounds_ago = rounds_ago(c);
	return w;
}

/* ---- sentences ---- */

void wrong_say(const struct wrong *w, char *buf, size_t size)
{
	const char *amounts = w->shifts_differ ? " and by other amounts" : "";

	switch (w->kind) {
	case WRONG_MIRROR:
		snprintf(buf, size,
			 "the data is not in the owner's memory, but the writer reads it back");
		break;
	case WRONG_LOST:
		snprintf(buf, size, "nothing arrived");
		break;
	case WRONG_ZEROS:
		snprintf(buf, size, "zeros from byte %" PRIu64 " on", w->from_bytes);
		break;
	case WRONG_OLD:
		if (!w->rounds_ago)
			snprintf(buf, size, "old data");
		else if (w->rounds_ago == 1)
			snprintf(buf, size, "old data, of the round before");
		else
			snprintf(buf, size, "old data, written %" PRIu64 " rounds ago",
				 (uint64_t)w->rounds_ago);
		break;
	case WRONG_FOREIGN:
		snprintf(buf, size, "another pair's data");
		break;
	case WRONG_SHIFTED:
		snprintf(buf, size, "the data is %+" PRId64 " bytes from its place%s",
			 w->shift_bytes, amounts);
		break;
	case WRONG_PARTIAL:
		snprintf(buf, size, "right up to byte %" PRIu64 ", then not written",
			 w->from_bytes);
		break;
	case WRONG_OUTSIDE:
		snprintf(buf, size, "right, but %" PRIu64 " %s around it %s overwritten",
			 w->wrong_words, text_plural(w->wrong_words, "word", "words"),
			 text_plural(w->wrong_words, "was", "were"));
		break;
	default:
		snprintf(buf, size, "%" PRIu64 " of %" PRIu64 " words are wrong", w->wrong_words,
			 w->words);
	}
}
