/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/claims.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ingest/claims_impl.h"
#include "ingest/part.h"
#include "machine/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct claims *claims_new(const char *name)
{
	struct claims *c = xcalloc(1, sizeof(*c));

	c->arena = arena_new();
	c->map = source_new_map(name);
	source_set_stated(c->map, "not in the text");
	c->name = arena_strdup(c->arena, name);
	c->times = source_new_map(name);
	return c;
}

void claims_free(struct claims *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->line_file_n; i++)
		strbuf_done(&c->line_files[i].text);
	source_free(c->map);
	source_free(c->times);
	arena_free(c->arena);
	free(c);
}

/* ---- one answer ---- */

static const char *place(struct claims *c, struct claim_at at)
{
	return arena_printf(c->arena, "%s:%u", at.file, at.line);
}

struct text_time claims_time_of(const struct claims *c, const char *path)
{
	const struct source_entry *e = source_entry_of(c->times, path, SOURCE_FILE);
	struct text_time t = {0};

	if (e)
		memcpy(&t, e->data, sizeof(t));
	return t;
}

static void add_disagreement(struct claims *c, const char *path, struct rival first,
			     struct rival second, bool settled)
{
	*ARENA_PUSH(c->arena, c->disagreements, c->disagreement_n) = (struct disagreement){
		.path = arena_strdup(c->arena, path),
		.first = first,
		.second = second,
		.settled = settled,
	};
}

/* Both answers are dropped, because either could be right. */
static void disagree(struct claims *c, const char *path, struct rival was, struct rival is)
{
	add_disagreement(c, path, was, is, false);
	source_drop(c->map, path);
	source_put_origin(c->map, path,
			  arena_printf(c->arena, "the texts disagree: %s and %s", was.at, is.at));
}

static void put(struct claims *c, const char *path, enum source_kind kind, int error,
		const char *data, size_t size)
{
	if (error)
		source_put_error(c->map, path, kind, error);
	else if (kind == SOURCE_LINK)
		source_put_link(c->map, path, data);
	else
		source_put_file(c->map, path, data, size);
}

/* `more` goes on where `less` ends, at the end of a word or line. */
static bool goes_on(const char *less, size_t n, const char *more, size_t more_n)
{
	while (n && less[n - 1] == '\n')
		n--;
	return n && n < more_n && memcmp(less, more, n) == 0 && strchr(" \n", more[n]);
}

/*
 * `uname -a` gives the release alone, /proc/version the compiler too, and the log of Ubuntu's
 * kernel the package: they agree. Of anything else the rest of a line is another statement.
 */
static bool is_shortened(const char *path, const struct source_entry *old, const char *data,
			 size_t size)
{
	return claims_is_shortened(path) && !old->error &&
	       (goes_on(old->data, old->size, data, size) ||
		goes_on(data, size, old->data, old->size));
}

struct answer {
	enum source_kind kind;
	int error;
	const char *data;
	size_t size;
	struct claim_at at;
};

static void take(struct claims *c, const char *path, const struct answer *x)
{
	put(c, path, x->kind, x->error, x->data, x->size);
	source_put_origin(c->map, path, place(c, x->at));
	if (x->at.time.s || claims_time_of(c, path).s)
		source_put_file(c->times, path, (const char *)&x->at.time, sizeof(x->at.time));
}

/* The first line of what was said; bytes have no end of their own. */
static struct rival rival(struct claims *c, int error, const char *data, size_t size,
			  const char *at, struct text_time time)
{
	enum { SHOWN = 63 };
	const char *end = error ? NULL : memchr(data, '\n', size);
	const size_t n = end ? (size_t)(end - data) : size;

	return (struct rival){error ? "none" : arena_strndup(c->arena, data, n < SHOWN ? n : SHOWN),
			      arena_strdup(c->arena, at), time};
}

/*
 * What both texts may say in turn is true of the newer one; what no time changes tells machines
 * apart.
 */
static void settle(struct claims *c, const char *path, const struct source_entry *old,
		   const struct answer *x)
{
	const struct text_time was_time = claims_time_of(c, path);
	const int order =
		claims_is_of_one_machine(path) ? 0 : text_time_order(x->at.time, was_time);
	const struct rival was =
		rival(c, old->error, old->data, old->size, source_origin(c->map, path), was_time);
	const struct rival is = rival(c, x->error, x->data, x->size, place(c, x->at), x->at.time);

	if (!order) {
		disagree(c, path, was, is);
		return;
	}
	add_disagreement(c, path, order > 0 ? was : is, order > 0 ? is : was, true);
	if (order > 0)
		take(c, path, x);
}

void claims_add_doubt(struct claims *c, const char *path, const struct source_entry *first,
		      const struct source_entry *second)
{
	const struct source_entry *const both[] = {first, second};
	struct rival r[2];

	for (size_t i = 0; i < 2; i++) {
		const char *at = source_origin(c->map, both[i]->path);

		r[i] = rival(c, 0, both[i]->data, both[i]->size, at ? at : "",
			     claims_time_of(c, both[i]->path));
	}
	add_disagreement(c, path, r[0], r[1], false);
}

static bool was_dropped(const struct claims *c, const char *path)
{
	for (size_t i = 0; i < c->disagreement_n; i++)
		if (!c->disagreements[i].settled && strcmp(c->disagreements[i].path, path) == 0)
			return true;
	return false;
}

/* Said again: true until then. Without a time nothing shows when it was true last. */
static void repeat(struct claims *c, const char *path, struct text_time t)
{
	const struct text_time was = claims_time_of(c, path);

	if (was.s && (!t.s || text_time_order(t, was) > 0))
		source_put_file(c->times, path, (const char *)&t, sizeof(t));
}

/* A repeated statement adds nothing; the first one is the source, of shortened ones the longest. */
static void answer(struct claims *c, const char *path, struct answer x)
{
	const struct source_entry *old = source_entry_of(c->map, path, x.kind);

	if (c->answer_n >= CLAIMS_MAX || c->disagreement_n >= CLAIMS_MAX_DISAGREEMENTS) {
		c->too_many = true;
		return;
	}
	if (!old && was_dropped(c, path))
		return;
	if (!old) {
		c->answer_n++;
		take(c, path, &x);
	} else if (old->error == x.error &&
		   (x.error || (old->size == x.size && memcmp(old->data, x.data, x.size) == 0))) {
		repeat(c, path, x.at.time);
	} else if (x.error || !is_shortened(path, old, x.data, x.size)) {
		settle(c, path, old, &x);
	} else {
		repeat(c, path, x.at.time);
		x.at.time = claims_time_of(c, path);
		if (x.size > old->size)
			take(c, path, &x);
	}
}

#define PATH(c, fmt)                                                                               \
	({                                                                                         \
		va_list ap_;                                                                       \
		va_start(ap_, fmt);                                                                \
		const char *s_ = arena_vprintf((c)->arena, fmt, ap_);                              \
		va_end(ap_);                                                                       \
		s_;                                                                                \
	})

void claim(struct claims *c, struct claim_at at, const char *value, const char *path, ...)
{
	answer(c, PATH(c, path), (struct answer){SOURCE_FILE, 0, value, strlen(value), at});
}

void claim_number(struct claims *c, struct claim_at at, int64_t value, const char *path, ...)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	answer(c, PATH(c, path), (struct answer){SOURCE_FILE, 0, text, strlen(text), at});
}

void claim_bytes(struct claims *c, struct claim_at at, const char *data, size_t size,
		 const char *path, ...)
{
	answer(c, PATH(c, path), (struct answer){SOURCE_FILE, 0, data, size, at});
}

void claim_link(struct claims *c, struct claim_at at, const char *target, const char *path, ...)
{
	answer(c, PATH(c, path), (struct answer){SOURCE_LINK, 0, target, strlen(target), at});
}

void claim_absent(struct claims *c, struct claim_at at, const char *path, ...)
{
	answer(c, PATH(c, path), (struct answer){SOURCE_FILE, ENOENT, "", 0, at});
}

/* ---- what is cut off ---- */

static void add_gap(struct claims *c, const char *path, const char *at)
{
	if (c->gap_n >= CLAIMS_MAX) {
		c->too_many = true;
		return;
	}
	*ARENA_PUSH(c->arena, c->gaps, c->gap_n) = (struct claim_gap){path, at};
}

void claim_cut(struct claims *c, struct claim_at at, const char *path, ...)
{
	add_gap(c, PATH(c, path), place(c, at));
}

void claim_whole(struct claims *c, const char *path, ...)
{
	add_gap(c, PATH(c, path), NULL);
}

void claim_extent(struct claims *c, const struct part *p, size_t from, size_t to, const char *path,
		  ...)
{
	const unsigned line = part_cut_in(p, from, to);

	add_gap(c, PATH(c, path),
		line ? place(c, (struct claim_at){.file = p->file, .line = line}) : NULL);
}

/* ---- files of lines ---- */

static struct line_file *line_file(struct claims *c, const char *path)
{
	struct line_file *f;

	for (size_t i = 0; i < c->line_file_n; i++)
		if (strcmp(c->line_files[i].path, path) == 0)
			return &c->line_files[i];
	f = ARENA_PUSH(c->arena, c->line_files, c->line_file_n);
	f->path = path;
	return f;
}

void claim_line(struct claims *c, struct claim_at at, const char *line, const char *path, ...)
{
	struct line_file *f = line_file(c, PATH(c, path));

	if (f->n >= CLAIMS_MAX_LINES) {
		c->too_many = true;
		return;
	}
	if (!*line)
		return;
	f->at = f->at ? f->at : place(c, at);
	f->n++;
	strbuf_puts(&f->text, line);
	strbuf_putc(&f->text, '\n');
}

/* ---- functions and GPUs ---- */

bool claim_function(struct claims *c, struct claim_at at, const char *address,
		    char ret_name[static PCI_ADDRESS_LEN])
{
	const size_t before = c->answer_n;
	struct pci_address a;

	/*
	 * One more than a machine may have: it is refused for that, and the others only take
	 * memory.
	 */
	if (c->function_n > MACHINE_MOST_FUNCTIONS || pci_address_parse(address, &a) < 0 ||
	    a.domain == PCI_NO_ADDRESS)
		return false;
	pci_address_format(a, ret_name);
	c->has_addresses = true;
	claim(c, at, "", "function/%s", ret_name);
	c->function_n += c->answer_n - before;
	return true;
}

bool claims_has_addresses(const struct claims *c)
{
	return c->has_addresses;
}

void claim_gpu(struct claims *c, struct claim_at at, unsigned index)
{
	if (index < CLAIMS_MAX_GPUS)
		claim(c, at, "", "gpu/#%u/listed", index);
}

void claim_gpu_at(struct claims *c, struct claim_at at, unsigned index, const char *address)
{
	char name[PCI_ADDRESS_LEN];

	if (index >= CLAIMS_MAX_GPUS || !claim_function(c, at, address, name))
		return;
	claim_gpu(c, at, index);
	claim(c, at, name, "gpu/#%u/address", index);
	claim_nvidia(c, at, name);
}

/*
 * nvidia-smi lists only NVIDIA GPUs. It does not show whether their class is 0300 or 0302, and no
 * reader distinguishes the two.
 */
void claim_nvidia(struct claims *c, struct claim_at at, const char *address)
{
	claim(c, at, "0x10de", "sys/bus/pci/devices/%s/vendor", address);
	claim(c, at, "", "gpu/%s/listed", address);
}

/* ---- what texts disagree about ---- */

/* "'256 MiB'", with its time where that decides */
static const char *value_words(struct arena *a, const struct disagreement *d, const struct rival *r)
{
	char time[TEXT_TIME_SIZE];
	const char *value = claims_value_words(a, d->path, r->value);

	if (!d->settled)
		return *value ? arena_printf(a, "'%s'", value) : "";
	return arena_printf(a, "%s%s%s(%s, %s)", *value ? "'" : "", value, *value ? "' " : "",
			    r->at, text_time_words(r->time, time));
}

/* "disagree about the size of BAR1 of GPU0: '256 MiB' and '32768 MiB'" */
static const char *what_differs(struct arena *a, const struct disagreement *d)
{
	const char *subject = claims_path_words(a, d->path);
	const char *first = value_words(a, d, &d->first);
	const char *second = value_words(a, d, &d->second);

	if (d->settled)
		return arena_printf(a, "show %s at two times: %s and then %s; the newer one counts",
				    subject, first, second);
	return *first || *second
		       ? arena_printf(a, "disagree about %s: %s and %s", subject, first, second)
		       : arena_printf(a, "disagree about %s", subject);
}

/* What the texts are shown to be of different machines by; NULL: nothing. */
static const struct disagreement *first_of_machines(const struct claims *c)
{
	for (size_t i = 0; i < c->disagreement_n; i++)
		if (!c->disagreements[i].settled &&
		    claims_is_of_one_machine(c->disagreements[i].path))
			return &c->disagreements[i];
	return NULL;
}

static size_t count_open(const struct claims *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->disagreement_n; i++)
		n += !c->disagreements[i].settled && !claims_is_momentary(c->disagreements[i].path);
	return n;
}

/* All that differs is one finding then: it is not about values. */
static void add_machines(const struct claims *c, struct machine *m, const struct disagreement *d)
{
	const size_t more = count_open(c) - 1;
	const char *others =
		more ? arena_printf(m->arena, "; %zu other %s", more,
				    text_plural(more, "value differs", "values differ"))
		     : "";

	*ARENA_PUSH(m->arena, m->troubles, m->trouble_n) = (struct trouble){
		.where = arena_printf(m->arena, "%s and %s", d->first.at, d->second.at),
		.what = arena_printf(m->arena, "may be of different machines: they %s%s",
				     what_differs(m->arena, d), others),
		.remedy =
			"give the outputs of each machine by itself; onehop treats what differs as "
			"unknown, and the rest as of one machine",
	};
}

void claims_add_disagreements(const struct claims *c, struct machine *m)
{
	const struct disagreement *machines = first_of_machines(c);

	if (machines)
		add_machines(c, m, machines);
	for (size_t i = 0; i < c->disagreement_n; i++) {
		const struct disagreement *d = &c->disagreements[i];

		if (claims_is_momentary(d->path) || (machines && !d->settled))
			continue;
		*ARENA_PUSH(m->arena, m->troubles, m->trouble_n) = (struct trouble){
			.where = arena_printf(m->arena, "%s and %s", d->first.at, d->second.at),
			.what = what_differs(m->arena, d),
			.settled = d->settled,
			.remedy =
				d->settled
					? NULL
					: "give outputs of one machine, taken at one time; onehop "
					  "treats the value as unknown",
		};
	}
	if (c->too_many)
		*ARENA_PUSH(m->arena, m->troubles, m->trouble_n) = (struct trouble){
			.where = arena_strdup(m->arena, c->name),
			.what = "describes more devices than any machine has; the rest is ignored",
		};
}
