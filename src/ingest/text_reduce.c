/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/text_reduce.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
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
				     .piece_limit = REDUCE_AT,
				     .piece_least = REDUCE_AT};
}

static struct text_room *room_of(struct text_reducer *r)
{
	return r->room ? r->room : &r->own;
}

/* ---- lines that no decoder reads ---- */

/* How often the text was seen before in this boot; 0 too if too many differ to be counted. */
static unsigned times_seen(struct seen_messages *seen, const char *text, size_t n)
{
	const uint64_t found = text_hash(TEXT_HASH_START, text, n), h = found ? found : 1;

	if (!seen->slots)
		seen->slots = xcalloc(SEEN_SLOTS, sizeof(*seen->slots));
	for (size_t i = 0; i < SEEN_SLOTS; i++) {
		struct seen_message *s = &seen->slots[(h + i) % SEEN_SLOTS];

		if (s->hash == h)
			return s->count++;
		if (s->hash)
			continue;
		if (seen->n < SEEN_SLOTS / 2) {
			*s = (struct seen_message){h, 1};
			seen->n++;
		}
		return 0;
	}
	return 0;
}

static void forget_messages(struct seen_messages *seen)
{
	if (seen->slots)
		memset(seen->slots, 0, SEEN_SLOTS * sizeof(*seen->slots));
	seen->n = 0;
}

/*
 * "NVRM: Xid (PCI:0000:01:00): 31, " says which error of which device it is: a flood of one must
 * not take the room of what comes after it.
 */
static bool is_of_flood(struct text_reducer *r, const char *message)
{
	enum { START = 32 };

	return times_seen(&r->starts, message, strnlen(message, START)) >= MOST_OF_START;
}

/* A line of the kernel log that matters, and that may be left out because of those before it. */
static bool is_surplus(struct text_reducer *r, const struct text_line *l)
{
	const size_t size = strlen(l->text) + sizeof(*l);
	const char *message = kernel_line_message(l);

	if (times_seen(&r->seen, message, strlen(message)) >= MOST_ALIKE) {
		r->repeated++;
		return true;
	}
	if (is_of_flood(r, message) || room_of(r)->relevant_bytes + size > MOST_RELEVANT) {
		r->lost = true;
		return true;
	}
	room_of(r)->relevant_bytes += size;
	return false;
}

static bool is_dropped(struct text_reducer *r, const struct text_line *l, enum kernel_line_use use)
{
	if (use == KERNEL_LINE_BOOT) {
		forget_messages(&r->seen);
		forget_messages(&r->starts);
	}
	if (use == KERNEL_LINE_READ)
		return is_surplus(r, l);
	return use == KERNEL_LINE_UNREAD ||
	       (use == KERNEL_LINE_NONE && nccl_log_line_is_unread(l->text));
}

/* A run of unread lines of the kernel log does not begin it: a line of the log is above it. */
static bool is_within_log(enum kernel_line_use above, enum kernel_line_use use,
			  const struct text_line *kept, const struct text_line *l)
{
	return above == KERNEL_LINE_READ && use == KERNEL_LINE_UNREAD &&
	       !kernel_line_is_of_other(kept, l);
}

/* A line that stands for a run says nothing itself; its time and its host stay. */
static void drop_message(const struct text_line *l)
{
	static const char instead[] = "not kept";
	char *message = l->text + (kernel_line_message(l) - l->text);

	if (strlen(message) >= sizeof(instead))
		memcpy(message, instead, sizeof(instead));
}

/*
 * Lines of one log: of the kernel's of one host, or of NCCL's. The first of a run stays as it is
 * where the log may begin with it; the others become one line. Those before `from` were looked at
 * with an earlier piece.
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
		if (!run && kept > from && is_within_log(last, use, &lines[kept - 1], &l))
			run = 1;
		last = use;
		if (dropped && run == 2) {
			lines[kept - 1].number = l.number;
			continue;
		}
		run += dropped;
		if (dropped && use == KERNEL_LINE_READ)
			drop_message(&l);
		lines[kept++] = l;
	}
	return kept;
}

/* ---- units that repeat others ---- */

static struct seen_unit *unit_slot(struct seen_unit *units, size_t size, uint64_t subject)
{
	size_t i = subject % size;

	while (units[i].subject && units[i].subject != subject)
		i = (i + 1) % size;
	return &units[i];
}

static void grow_units(struct text_reducer *r)
{
	const size_t size = r->unit_size ? 2 * r->unit_size : 1024;
	struct seen_unit *units = xcalloc(size, sizeof(*units));

	for (size_t i = 0; i < r->unit_size; i++)
		if (r->units[i].subject)
			*unit_slot(units, size, r->units[i].subject) = r->units[i];
	free(r->units);
	r->units = units;
	r->unit_size = size;
}

/* The last one about the subject, perhaps a new one; NULL: there are too many subjects. */
static struct seen_unit *seen_unit(struct text_reducer *r, uint64_t subject)
{
	struct seen_unit *s;

	if (2 * r->unit_n >= r->unit_size && r->unit_n < MOST_UNITS)
		grow_units(r);
	s = unit_slot(r->units, r->unit_size, subject);
	if (s->subject)
		return s;
	if (r->unit_n == MOST_UNITS)
		return NULL;
	r->unit_n++;
	*s = (struct seen_unit){.subject = subject, .kept = SIZE_MAX};
	return s;
}

/* ---- which lines are kept ---- */

enum line_use {
	USE_NONE,
	USE_NEAR, /* around a part: perhaps its command, or where it ends */
	USE_KEPT,
	USE_REPEATED,
	USE_LEFT_OUT,
};

static size_t size_of(const struct text_line *lines, size_t n)
{
	size_t size = 0;

	for (size_t i = 0; i < n; i++)
		size += strlen(lines[i].text) + sizeof(*lines);
	return size;
}

/*
 * Takes room for it; false: there is not enough. How much is kept of a kernel log was decided
 * before.
 */
static bool take_room(struct text_reducer *r, const struct part *p, const struct text_unit *u,
		      size_t size)
{
	const bool logged = p->kind->observed == PART_LOG;
	const size_t most = u->failure ? MOST_FAILURES : logged ? MOST_LOGGED : MOST_KEPT;
	struct text_room *room = room_of(r);
	size_t *used = u->failure ? &room->failure_bytes
		       : logged   ? &room->logged_bytes
				  : &room->kept_bytes;

	if (p->kind->keeps_some)
		return true;
	if (*used + size > most)
		return false;
	*used += size;
	return true;
}

static void leave_out(struct text_reducer *r, unsigned line, size_t n)
{
	if (!r->left_out)
		r->first_left_out = line;
	r->left_out += n;
}

/* Of the same command, with the same prompt; of a log, about the same communicators. */
static uint64_t context_of(const struct text_reducer *r, const struct part *p)
{
	return p->kind->observed == PART_LOG ? r->series : r->command;
}

/* What the unit at the line `at` of the part becomes. */
static enum line_use use_unit(struct text_reducer *r, const struct part *p, size_t at,
			      const struct text_unit *u)
{
	const struct text_line *lines = p->lines + at;
	const size_t size = size_of(lines, u->n);
	const uint64_t context = context_of(r, p);
	struct seen_unit *s =
		u->subject ? seen_unit(r, text_hash(u->subject, &context, sizeof(context)) | 1)
			   : NULL;

	if (s && s->kept != SIZE_MAX && s->says == u->says) {
		r->kept_units[s->kept].alike++;
		return USE_REPEATED;
	}
	if (!take_room(r, p, u, size)) {
		leave_out(r, lines[0].number, u->n);
		return USE_LEFT_OUT;
	}
	if (s) {
		s->says = u->says;
		s->kept = r->kept_unit_n;
		*ARENA_PUSH(r->arena, r->kept_units, r->kept_unit_n) =
			(struct kept_unit){.line = lines[u->n - 1].number};
	}
	return USE_KEPT;
}

/* Those of one part; a log is one part of many, which take long to tell apart. */
struct part_units {
	const struct part *part; /* NULL: of none */
	struct text_unit *items;
	size_t n;
};

static void find_units(struct part_units *ret, const struct part *p, struct arena *a)
{
	ret->part = p;
	for (size_t at = 0; at < p->n; at += ret->items[ret->n - 1].n)
		*ARENA_PUSH(a, ret->items, ret->n) = part_unit(p, at);
}

/* Units of a part up to the line `to` of the piece. */
static void use_part(struct text_reducer *r, const struct text_line *lines, size_t to,
		     const struct part *p, const struct part_units *known, enum line_use *use)
{
	const struct text_unit *next = known->part == p ? known->items : NULL;
	const size_t start = (size_t)(p->lines - lines);
	bool kept = false;

	if (!(r->goes_on && start == 0))
		r->command = text_hash(TEXT_HASH_START, p->command, strlen(p->command));
	for (size_t at = 0; at < p->n && start + at < to;) {
		const struct text_unit u = next ? *next++ : part_unit(p, at);
		const enum line_use is = use_unit(r, p, at, &u);

		r->series += u.begins;
		kept |= is == USE_KEPT;
		for (size_t i = 0; i < u.n; i++)
			use[start + at + i] = is;
		at += u.n;
	}
	if (!kept)
		return;
	for (size_t i = start > LINES_ABOVE ? start - LINES_ABOVE : 0;
	     i < start + p->n + LINES_BELOW && i < to; i++)
		use[i] = use[i] == USE_NONE ? USE_NEAR : use[i];
}

/* Unlike the marks of people, these do not say that lines of an output are missing. */
static char unused[] = "???", repeated[] = "";

bool line_is_repeated(const struct text_line *l)
{
	return l->text == repeated;
}

static bool is_mark(const struct text_line *l)
{
	return l->text == unused || l->text == repeated;
}

/* A line that stands for a run of them. Where both kinds alternate, two lines stand for all. */
static void keep_mark(struct text_reducer *r, char *mark, unsigned number)
{
	const struct text_line *last = r->lines + r->n;

	if ((r->n > 1 && is_mark(last - 1) && is_mark(last - 2)) || (r->n && last[-1].text == mark))
		r->lines[r->n - 1].number = number;
	else
		*ARENA_PUSH(r->arena, r->lines, r->n) = (struct text_line){mark, number, 0, false};
}

/* A run of unused lines separates parts as each of them did. */
static void keep_used(struct text_reducer *r, const struct text_line *lines, size_t n,
		      const enum line_use *use)
{
	for (size_t i = 0; i < n; i++) {
		const struct text_line *l = &lines[i];

		if (use[i] == USE_REPEATED)
			keep_mark(r, repeated, l->number);
		else if (use[i] == USE_KEPT || use[i] == USE_NEAR)
			*ARENA_PUSH(r->arena, r->lines, r->n) =
				(struct text_line){arena_strdup(r->arena, l->text), l->number, 0,
						   l->open};
		else
			keep_mark(r, unused, l->number);
	}
}

/* ---- the next piece ---- */

/* A part that is larger than any output of one unit ends here. */
enum { MOST_CARRIED = 8 << 20 };

/*
 * What has to be kept for the next piece: a unit that may go on, and lines that may be a command.
 */
struct carry {
	size_t from;  /* the first line */
	size_t below; /* the first of them that are below a part */
	bool goes_on; /* they begin within a part */
	bool too_long;
};

/* `before`: where the part above the last one ends. */
static struct carry carry_part(const struct text_line *lines, size_t n, const struct part *p,
			       const struct part_units *units, size_t before)
{
	const size_t start = (size_t)(p->lines - lines);
	const size_t unit = p->kind->unit ? p->n - units->items[units->n - 1].n : 0;

	if (size_of(lines + start + unit, n - start - unit) > MOST_CARRIED)
		return (struct carry){.from = n, .too_long = true};
	if (unit)
		return (struct carry){.from = start + unit, .goes_on = true};
	return (struct carry){.from = start > before + LINES_ABOVE ? start - LINES_ABOVE : before};
}

static struct carry find_carry(const struct text_line *lines, size_t n, const struct part *parts,
			       size_t part_n, const struct part_units *units)
{
	const struct part *last = part_n ? &parts[part_n - 1] : NULL;
	const size_t above = n > LINES_ABOVE ? n - LINES_ABOVE : 0;
	const size_t end = last ? (size_t)(last->lines - lines) + last->n : 0;
	const size_t from = above > end ? above : end;

	if (last && end + LINES_BELOW >= n)
		return carry_part(lines, n, last, units,
				  part_n > 1 ? (size_t)(last[-1].lines - lines) + last[-1].n : 0);
	return (struct carry){.from = from,
			      .below = last && from < end + LINES_BELOW ? end + LINES_BELOW - from
									: 0};
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
	for (size_t i = 0; i < n; i++)
		*ARENA_PUSH(next, s->lines, s->n) =
			(struct text_line){arena_strdup(next, lines[i].text), lines[i].number, 0,
					   lines[i].open};
	r->carried = n;
	r->piece_bytes = size_of(lines, n);
	/* A part that is as long as the piece is not searched again and again. */
	r->piece_limit = 2 * r->piece_bytes > r->piece_least ? 2 * r->piece_bytes : r->piece_least;
	arena_free(r->piece);
	r->piece = next;
}

/* ---- lines of several hosts ---- */

static void reduce(struct text_reducer *r, bool last);

/* All hosts together take no more memory than a text of one. */
static struct text_reducer *new_host(struct text_reducer *r)
{
	enum { SHARE = 16 };
	struct text_reducer *h = arena_alloc(r->arena, 1, sizeof(*h));

	*h = text_reducer(r->arena);
	h->room = room_of(r);
	h->piece_least = REDUCE_AT / SHARE;
	begin_piece(h, NULL, 0);
	return h;
}

/* The first piece shows whether there are any. */
static void begin_hosts(struct text_reducer *r)
{
	struct host_stream s;

	if (!host_stream_begin(&s, r->arena, r->split.lines, r->split.n))
		return;
	r->stream = arena_alloc(r->arena, 1, sizeof(s));
	*r->stream = s;
	r->hosts = arena_alloc(r->arena, MOST_TEXT_HOSTS + 1, sizeof(struct text_reducer *));
}

static void add_line(struct text_reducer *r, const struct text_line *l)
{
	struct text_splitter *s = &r->split;

	*ARENA_PUSH(s->arena, s->lines, s->n) =
		(struct text_line){arena_strdup(s->arena, l->text), l->number, l->alike, l->open};
	r->piece_bytes += strlen(l->text) + sizeof(*l);
	if (r->piece_bytes >= r->piece_limit)
		reduce(r, false);
}

static void share_out(struct text_reducer *r)
{
	for (size_t i = 0; i < r->split.n; i++) {
		size_t n;
		const size_t *hosts = host_stream_line(r->stream, &r->split.lines[i], &n);

		for (size_t k = 0; k < n; k++) {
			struct text_reducer **h = &r->hosts[hosts[k]];

			*h = *h ? *h : new_host(r);
			add_line(*h, &r->split.lines[i]);
		}
	}
	begin_piece(r, NULL, 0);
}

/* `last`: the text ends with this piece. */
static void reduce(struct text_reducer *r, bool last)
{
	struct arena *scratch = arena_new();
	struct text_line *lines = r->split.lines;
	AUTO_FREE enum line_use *use = NULL;
	struct part_units units = {0};
	struct part *parts;
	struct carry carry;
	size_t part_n, n;

	parts_peel(lines, r->split.n);
	if (r->by_host && !r->piece)
		begin_hosts(r);
	if (r->stream) {
		arena_free(scratch);
		share_out(r);
		return;
	}
	n = drop_unread(r, lines, r->carried, r->split.n);
	use = xcalloc(n + 1, sizeof(*use));
	for (size_t i = 0; i < r->below && i < n; i++)
		use[i] = USE_NEAR;
	parts = parts_find(scratch, "", lines, n, &part_n);
	if (part_n)
		find_units(&units, &parts[part_n - 1], scratch);
	carry = last ? (struct carry){.from = n} : find_carry(lines, n, parts, part_n, &units);
	for (size_t i = 0; i < part_n && parts[i].lines < lines + carry.from; i++)
		use_part(r, lines, carry.from, &parts[i], &units, use);
	keep_used(r, lines, carry.from, use);
	if (carry.too_long)
		leave_out(r, lines[n - 1].number, 1);
	r->goes_on = carry.goes_on;
	r->below = carry.below;
	begin_piece(r, lines + carry.from, n - carry.from);
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
			reduce(r, false);
		data += k;
		n -= k;
	}
}

static void free_tables(struct text_reducer *r)
{
	free(r->seen.slots);
	free(r->starts.slots);
	free(r->units);
	r->seen = r->starts = (struct seen_messages){0};
	r->units = NULL;
}

/* Both are in the order of the text. */
static void count_alike(struct text_reducer *r)
{
	size_t k = 0;

	for (size_t i = 0; i < r->n && k < r->kept_unit_n; i++)
		if (r->lines[i].number == r->kept_units[k].line)
			r->lines[i].alike = r->kept_units[k++].alike;
}

void text_reduce_end(struct text_reducer *r)
{
	text_split_end(&r->split);
	if (!r->piece) {
		r->lines = r->split.lines;
		r->n = r->split.n;
		return;
	}
	reduce(r, true);
	for (size_t i = 0; r->stream && i < r->stream->n; i++)
		if (r->hosts[i])
			text_reduce_end(r->hosts[i]);
	count_alike(r);
	free_tables(r);
}

void text_reduce_free(struct text_reducer *r)
{
	for (size_t i = 0; r->stream && i < r->stream->n; i++)
		if (r->hosts[i])
			text_reduce_free(r->hosts[i]);
	if (r->stream) {
		free(r->stream->heading);
		r->stream->heading = NULL;
	}
	text_split_end(&r->split);
	free_tables(r);
	arena_free(r->piece);
	r->piece = NULL;
}

bool text_reduce_lost(const struct text_reducer *r)
{
	return r->lost || r->left_out;
}
