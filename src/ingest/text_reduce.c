/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/text_reduce.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "ingest/nccl_log.h"
#include "ingest/part.h"
#include "ingest/part_kinds.h"

#include <stdlib.h>
#include <string.h>

/* Lines above a part that may be its command, and below it that show where it ends. */
enum { LINES_ABOVE = 8, LINES_BELOW = 2 };

struct text_reducer text_reducer(struct arena *a)
{
	return (struct text_reducer){.arena = a,
				     .split = {.arena = a, .drop_encoded = true, .squeeze = true},
				     .piece_limit = REDUCE_AT};
}

/* ---- lines that no decoder reads ---- */

/* FNV-1a */
static uint64_t hash_of(const char *s)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3;
	return h ? h : 1;
}

/* How often the message was seen before in this boot; 0 too if too many differ to be counted. */
static unsigned times_seen(struct text_reducer *r, const char *message)
{
	const uint64_t h = hash_of(message);

	if (!r->seen)
		r->seen = xcalloc(SEEN_SLOTS, sizeof(*r->seen));
	for (size_t i = 0; i < SEEN_SLOTS; i++) {
		struct seen_message *s = &r->seen[(h + i) % SEEN_SLOTS];

		if (s->hash == h)
			return s->count++;
		if (s->hash)
			continue;
		if (r->seen_n < SEEN_SLOTS / 2) {
			*s = (struct seen_message){h, 1};
			r->seen_n++;
		}
		return 0;
	}
	return 0;
}

static void forget_messages(struct text_reducer *r)
{
	if (r->seen)
		memset(r->seen, 0, SEEN_SLOTS * sizeof(*r->seen));
	r->seen_n = 0;
}

/* A line of the kernel log that matters, and that may be left out because of those before it. */
static bool is_surplus(struct text_reducer *r, const struct text_line *l)
{
	if (times_seen(r, kernel_line_message(l)) >= MOST_ALIKE) {
		r->repeated++;
		return true;
	}
	if (r->relevant_n >= MOST_RELEVANT) {
		r->lost = true;
		return true;
	}
	r->relevant_n++;
	return false;
}

static bool is_dropped(struct text_reducer *r, const struct text_line *l, enum kernel_line_use use)
{
	if (use == KERNEL_LINE_BOOT)
		forget_messages(r);
	if (use == KERNEL_LINE_READ)
		return is_surplus(r, l);
	return use == KERNEL_LINE_UNREAD ||
	       (use == KERNEL_LINE_NONE && nccl_log_line_is_unread(l->text));
}

/*
 * Lines of one log: of the kernel's of one host, or of NCCL's. The first of a run stays as it is, so that the log begins
 * where it began; the others become one line. Those before `from` were looked at with an earlier piece.
 */
static size_t drop_unread(struct text_reducer *r, struct text_line *lines, size_t from, size_t n)
{
	enum kernel_line_use last = KERNEL_LINE_NONE;
	size_t kept = from;
	unsigned run = 0; /* lines of the run that are kept: 2 at most */

	for (size_t i = from; i < n; i++) {
		const struct text_line l = lines[i];
		const bool empty = line_is_short(&l);
		const enum kernel_line_use use = empty ? KERNEL_LINE_NONE : kernel_line_use(&l);
		const bool dropped = !empty && is_dropped(r, &l, use);

		if (!dropped || (last == KERNEL_LINE_NONE) != (use == KERNEL_LINE_NONE) ||
		    (run && use && kernel_line_is_of_other(&lines[kept - 1], &l)))
			run = 0;
		last = use;
		if (dropped && run == 2) {
			lines[kept - 1].number = l.number;
			continue;
		}
		run += dropped;
		lines[kept++] = l;
	}
	return kept;
}

/* ---- lines of no part ---- */

/* Where what has to be kept for the next piece begins: a part that may go on, or a command. */
static size_t carry_from(const struct text_line *lines, size_t n, const struct part *parts,
			 size_t part_n)
{
	size_t from = n > LINES_ABOVE ? n - LINES_ABOVE : 0;

	for (size_t i = part_n; i-- > 0;) {
		size_t start = (size_t)(parts[i].lines - lines);

		if (start + parts[i].n + LINES_BELOW < from)
			break;
		from = start > LINES_ABOVE ? start - LINES_ABOVE : 0;
	}
	return from;
}

static void mark_used(bool *used, size_t n, const struct text_line *lines, const struct part *parts,
		      size_t part_n)
{
	for (size_t i = 0; i < part_n; i++) {
		size_t start = (size_t)(parts[i].lines - lines);
		size_t end = start + parts[i].n + LINES_BELOW;

		start = start > LINES_ABOVE ? start - LINES_ABOVE : 0;
		for (size_t k = start; k < end && k < n; k++)
			used[k] = true;
	}
}

static void keep_line(struct text_reducer *r, const struct text_line *l)
{
	const size_t size = strlen(l->text);

	*ARENA_PUSH(r->arena, r->lines, r->n) =
		(struct text_line){arena_strndup(r->arena, l->text, size), l->number};
	r->kept_bytes += size + sizeof(*l);
}

/* A run of unused lines separates parts as each of them did. */
static void keep_used(struct text_reducer *r, const struct text_line *lines, size_t n,
		      const bool *used)
{
	static char unused[] = "...";

	for (size_t i = 0; i < n; i++) {
		if (used[i])
			keep_line(r, &lines[i]);
		else if (r->n && r->lines[r->n - 1].text == unused)
			r->lines[r->n - 1].number = lines[i].number;
		else
			*ARENA_PUSH(r->arena, r->lines, r->n) =
				(struct text_line){unused, lines[i].number};
	}
}

/* The next piece begins with what this one did not end. */
static void begin_piece(struct text_reducer *r, const struct text_line *lines, size_t n)
{
	struct arena *next = arena_new();
	struct text_splitter *s = &r->split;

	s->arena = next;
	s->lines = NULL;
	s->n = 0;
	s->encoded = NULL;
	r->piece_bytes = 0;
	for (size_t i = 0; i < n; i++) {
		size_t size = strlen(lines[i].text);

		*ARENA_PUSH(next, s->lines, s->n) =
			(struct text_line){arena_strndup(next, lines[i].text, size),
					   lines[i].number};
		r->piece_bytes += size + sizeof(*lines);
	}
	/* A part that is as long as the piece is not searched again and again. */
	r->piece_limit = 2 * r->piece_bytes > REDUCE_AT ? 2 * r->piece_bytes : REDUCE_AT;
	arena_free(r->piece);
	r->piece = next;
}

static void reduce(struct text_reducer *r)
{
	struct arena *scratch = arena_new();
	struct text_line *lines = r->split.lines;
	AUTO_FREE bool *used = NULL;
	struct part *parts;
	size_t part_n, n, from;

	parts_peel(lines, r->split.n);
	n = drop_unread(r, lines, r->carried, r->split.n);
	used = xcalloc(n + 1, sizeof(*used));
	parts = parts_find(scratch, "", lines, n, &part_n);
	from = carry_from(lines, n, parts, part_n);
	mark_used(used, n, lines, parts, part_n);
	keep_used(r, lines, from, used);
	r->carried = n - from;
	begin_piece(r, lines + from, n - from);
	arena_free(scratch);
}

/* ---- the text ---- */

void text_reduce_add(struct text_reducer *r, const char *data, size_t n)
{
	enum { STEP = 1 << 16 };

	while (n) {
		size_t k = n < STEP ? n : STEP;

		const size_t before = r->split.n;

		text_split_add(&r->split, data, k);
		r->piece_bytes += k + (r->split.n - before) * sizeof(*r->lines);
		if (r->piece_bytes >= r->piece_limit)
			reduce(r);
		data += k;
		n -= k;
	}
}

void text_reduce_end(struct text_reducer *r)
{
	text_split_end(&r->split);
	if (!r->piece) {
		r->lines = r->split.lines;
		r->n = r->split.n;
		return;
	}
	parts_peel(r->split.lines, r->split.n);
	r->split.n = drop_unread(r, r->split.lines, r->carried, r->split.n);
	for (size_t i = 0; i < r->split.n; i++)
		*ARENA_PUSH(r->arena, r->lines, r->n) = r->split.lines[i];
	r->split.n = 0;
	free(r->seen);
	r->seen = NULL;
}

void text_reduce_free(struct text_reducer *r)
{
	text_split_end(&r->split);
	free(r->seen);
	r->seen = NULL;
	arena_free(r->piece);
	r->piece = NULL;
}

size_t text_reduce_size(const struct text_reducer *r)
{
	return r->kept_bytes + (r->piece ? r->piece_bytes : 0);
}
