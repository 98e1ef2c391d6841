/* SPDX-License-Identifier: Apache-2.0 */
/* A fleet as a list of hosts, and its groups of the same hardware. */
#include "fleet/fleet.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "fleet/host_names.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct fleet *fleet_new(void)
{
	struct arena *a = arena_new();
	struct fleet *f = arena_alloc(a, 1, sizeof(*f));

	f->arena = a;
	f->words.arena = f->key_words.arena = f->figure_words.arena = f->host_words.arena = a;
	f->expected.arena = f->troubles.arena = a;
	return f;
}

void fleet_free(struct fleet *f)
{
	if (!f)
		return;
	numbered_done(&f->words);
	numbered_done(&f->key_words);
	numbered_done(&f->figure_words);
	numbered_done(&f->host_words);
	numbered_done(&f->expected);
	numbered_done(&f->troubles);
	arena_free(f->arena);
}

/*
 * Names of files may hold line feeds, which would begin a line of the report. Different names stay
 * different.
 */
static void put_line(struct strbuf *out, const char *name)
{
	for (const char *s = name; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			strbuf_printf(out, "\\x%02x", (unsigned)*s);
		else
			strbuf_putc(out, *s);
}

const char *fleet_keep(struct fleet *f, const char *text)
{
	return numbered_text(&f->words, numbered_number(&f->words, text));
}

struct fleet_host *fleet_host(struct fleet *f, const char *given)
{
	static const struct fleet_hardware unknown = {.name = "unknown hardware",
						      .platform = "unknown hardware"};
	AUTO_STRBUF struct strbuf name = {0};
	unsigned number;
	struct fleet_host *h;

	put_line(&name, given);
	number = numbered_number(&f->host_words, strbuf_str(&name));
	if (number <= f->host_n)
		return f->hosts[number - 1];
	h = arena_alloc(f->arena, 1, sizeof(*h));
	*h = (struct fleet_host){.name = numbered_text(&f->host_words, number),
				 .root = -1,
				 .hardware = &unknown};
	*ARENA_PUSH(f->arena, f->hosts, f->host_n) = h;
	return h;
}

void fleet_trouble(struct fleet *f, const char *fmt, ...)
{
	AUTO_STRBUF struct strbuf text = {0};
	va_list ap;

	va_start(ap, fmt);
	put_line(&text, arena_vprintf(f->arena, fmt, ap));
	va_end(ap);
	numbered_number(&f->troubles, strbuf_str(&text));
}

void fleet_expect(struct fleet *f, const char *host)
{
	numbered_number(&f->expected, host);
}

/* ---- keys ---- */

unsigned fleet_key(struct fleet *f, const struct fact_row *row, const char *slot)
{
	AUTO_FREE char *text = xprintf("%s %s", row->word, slot);
	unsigned number = numbered_number(&f->key_words, text);

	if (number > f->key_n)
		*ARENA_PUSH(f->arena, f->keys, f->key_n) =
			(struct fact_key){row, numbered_text(&f->key_words, number) +
						       strlen(row->word) + 1};
	return number;
}

unsigned fleet_figure_key(struct fleet *f, const struct figure_key *key)
{
	AUTO_FREE char *text = xprintf("%s %d %d %llu %s %s %s %u", key->what, key->initiator,
				       key->target, (unsigned long long)key->bytes, key->nic,
				       key->peer, key->memory, key->queues);
	unsigned number = numbered_number(&f->figure_words, text);
	struct figure_key *k;

	if (number > f->figure_key_n) {
		k = ARENA_PUSH(f->arena, f->figure_keys, f->figure_key_n);
		*k = *key;
		k->what = arena_strdup(f->arena, key->what);
		k->nic = arena_strdup(f->arena, key->nic);
		k->peer = arena_strdup(f->arena, key->peer);
		k->memory = arena_strdup(f->arena, key->memory);
		k->unit = arena_strdup(f->arena, key->unit);
	}
	return number;
}

void fleet_set_fact(struct fleet *f, struct fleet_host *h, const struct fact_row *row,
		    const char *slot, const char *value)
{
	*ARENA_PUSH(f->arena, h->facts, h->fact_n) =
		(struct fleet_fact){fleet_key(f, row, slot), numbered_number(&f->words, value)};
}

/* The place of the key's reading, or the free one where it belongs. */
static unsigned *reading_place(const struct fleet_host *h, unsigned key)
{
	size_t i = (size_t)key * 2654435761U & (h->reading_table_n - 1);

	while (h->reading_table[i] && h->readings[h->reading_table[i] - 1].key != key)
		i = (i + 1) & (h->reading_table_n - 1);
	return &h->reading_table[i];
}

/* Keeps at least half of the table free. */
static void grow_readings(struct fleet *f, struct fleet_host *h)
{
	if (h->reading_n * 2 < h->reading_table_n)
		return;
	h->reading_table_n = h->reading_table_n ? h->reading_table_n * 2 : 64;
	h->reading_table = arena_alloc(f->arena, h->reading_table_n, sizeof(*h->reading_table));
	for (size_t i = 0; i < h->reading_n; i++)
		*reading_place(h, h->readings[i].key) = (unsigned)i + 1;
}

void fleet_set_reading(struct fleet *f, struct fleet_host *h, struct fleet_reading reading)
{
	unsigned *place;

	grow_readings(f, h);
	place = reading_place(h, reading.key);
	if (*place) {
		h->readings[*place - 1] = reading;
		return;
	}
	*ARENA_PUSH(f->arena, h->readings, h->reading_n) = reading;
	*place = (unsigned)h->reading_n;
}

void fleet_forget_facts(struct fleet_host *h)
{
	h->fact_n = h->finding_n = h->slot_n = 0;
	h->families = 0;
	h->root = -1;
}

unsigned *fleet_values(const struct fleet *f, const struct fleet_host *h)
{
	unsigned *values = xcalloc(f->key_n + 1, sizeof(*values));

	for (size_t i = 0; i < h->fact_n; i++)
		values[h->facts[i].key] = h->facts[i].value;
	return values;
}

const char *fleet_address(const struct fleet_host *h, const char *slot)
{
	for (size_t i = 0; i < h->slot_n; i++)
		if (strcmp(h->slots[i].slot, slot) == 0)
			return h->slots[i].address;
	return "";
}

/* ---- groups ---- */

static int by_name(const void *a, const void *b)
{
	const struct fleet_host *x = *(struct fleet_host *const *)a;
	const struct fleet_host *y = *(struct fleet_host *const *)b;
	int r = host_names_compare(x->name, y->name);

	return r ? r : strcmp(x->name, y->name);
}

/* By hardware, then by name. */
static int by_hardware(const void *a, const void *b)
{
	const struct fleet_host *x = *(struct fleet_host *const *)a;
	const struct fleet_host *y = *(struct fleet_host *const *)b;
	int r = strcmp(x->hardware->name, y->hardware->name);

	return r ? r : by_name(a, b);
}

static int by_size(const void *a, const void *b)
{
	const struct fleet_group *x = a, *y = b;

	if (x->host_n != y->host_n)
		return x->host_n > y->host_n ? -1 : 1;
	return strcmp(x->hardware->name, y->hardware->name);
}

static void make_groups(struct fleet *f)
{
	struct fleet_group *g = NULL;

	qsort(f->hosts, f->host_n, sizeof(*f->hosts), by_hardware);
	for (size_t i = 0; i < f->host_n; i++) {
		if (!g || strcmp(g->hardware->name, f->hosts[i]->hardware->name) != 0) {
			g = ARENA_PUSH(f->arena, f->groups, f->group_n);
			g->hardware = f->hosts[i]->hardware;
		}
		*ARENA_PUSH(f->arena, g->hosts, g->host_n) = f->hosts[i];
	}
	if (f->group_n)
		qsort(f->groups, f->group_n, sizeof(*f->groups), by_size);
	qsort(f->hosts, f->host_n, sizeof(*f->hosts), by_name);
}

/*
 * A few hosts that lack a device, or have one more, are no other kind of host. Groups come by size.
 */
static void find_odd(struct fleet_group *g, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t j = 0; j < i && !g[i].like; j++) {
			size_t all = g[i].host_n + g[j].host_n;

			if (fleet_hardware_alike(g[i].hardware, g[j].hardware) &&
			    all >= FLEET_ENOUGH &&
			    (double)g[j].host_n >= FLEET_MAJORITY * (double)all)
				g[i].like = &g[j];
		}
}

static void find_missing(struct fleet *f)
{
	for (size_t i = 0; i < f->expected.n; i++)
		if (!numbered_find(&f->host_words, f->expected.items[i]))
			*ARENA_PUSH(f->arena, f->missing, f->missing_n) = f->expected.items[i];
}

void fleet_compare(struct fleet *f)
{
	find_missing(f);
	if (!f->host_n)
		return;
	make_groups(f);
	find_odd(f->groups, f->group_n);
	for (size_t i = 0; i < f->group_n; i++) {
		fleet_compare_facts(f, &f->groups[i]);
		fleet_compare_figures(f, &f->groups[i]);
	}
}

bool fleet_has_outliers(const struct fleet *f)
{
	for (size_t i = 0; i < f->group_n; i++)
		if (f->groups[i].outlier_n || f->groups[i].slow_n || f->groups[i].like)
			return true;
	return f->missing_n > 0;
}
