/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/candidate.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"

#include <inttypes.h>

#define GIB ((int64_t)1 << 30)

/* ---- sentences ---- */

/* "32 GiB", and "24 GiB" for the 24564 MiB that are left of it. */
static const char *size_words(struct machine *m, int64_t bytes)
{
	if (bytes < GIB)
		return arena_printf(m->arena, "%" PRId64 " MiB", bytes >> 20);
	return arena_printf(m->arena, "%" PRId64 " GiB", (bytes + GIB - 1) / GIB);
}

static const char *fill_in(struct candidate *l, const char *text)
{
	char *out = NULL;
	size_t n = 0;

	if (!text)
		return NULL;
	for (const char *s = text; *s; s++) {
		const char *add = NULL, letter[2] = {*s, '\0'};

		if (*s == '%' && s[1] == 's')
			add = l->text;
		else if (*s == '%' && s[1] == 'V')
			add = fact_known(l->g->vram_bytes)
				      ? size_words(l->m, l->g->vram_bytes.value)
				      : "size not known";
		else if (*s == '%' && s[1] == 'B')
			add = fact_known(l->g->bar1_bytes)
				      ? size_words(l->m, l->g->bar1_bytes.value)
				      : "not mapped";
		else if (*s == '%' && s[1] == 'L')
			add = size_words(l->m, l->bar1.largest);
		else if (*s == '%' && s[1] == 'D')
			add = fact_str_or(l->d->module_version, "of this version");
		s += add != NULL;
		for (const char *c = add ? add : letter; *c; c++)
			*ARENA_PUSH(l->m->arena, out, n) = *c;
	}
	*ARENA_PUSH(l->m->arena, out, n) = '\0';
	return out;
}

/* ---- a card ---- */

/* The tables of a card, in their order; of each pair of one that they call in force. */
static const struct requirement_rows *const card_tables[] = {&requirement_card_rows,
							     &requirement_bar1_rows,
							     &requirement_module_rows, NULL};
static const struct requirement_rows *const pair_tables[] = {&requirement_pair_rows, NULL};
static const struct requirement_rows *const boot_tables[] = {&requirement_boot_rows, NULL};

/* By the first of the rows that holds; one always does. */
static const struct requirement_row *first_row(const struct requirement_rows *const *tables,
					       struct candidate *l)
{
	for (; *tables; tables++)
		for (size_t i = 0; i < (*tables)->n; i++)
			if ((*tables)->rows[i].holds(l))
				return &(*tables)->rows[i];
	return NULL;
}

static struct card_requirement judge(const struct candidate *all, const struct gpu *g,
				     const struct requirement_rows *const *tables)
{
	struct candidate l = *all;
	const struct nvidia_driver *d = &l.m->driver;
	const struct requirement_row *row;

	l.g = g;
	l.s = support_of(l.m, g);
	if (candidate_through_bar1(&l, g) && l.s.way != MECHANISM_BAR1)
		l.s = support_through_bar1(l.m, g);
	l.bar1 = support_bar1(g);
	row = first_row(tables, &l);
	return (struct card_requirement){.gpu = g,
					 .action = row->action,
					 .wants_options = row->action <= ACTION_OPTIONS ||
							  (l.by_itself &&
							   fact_is(registry_keys_good(d, g), 1)),
					 .id = row->id,
					 .why = fill_in(&l, row->why),
					 .change = fill_in(&l, row->change),
					 .reference = row->reference};
}

/* What is in force now may be lost at the next boot. */
static void judge_after_boot(const struct candidate *all, struct card_requirement *c)
{
	struct candidate l = *all;

	l.g = c->gpu;
	if (candidate_lost_at_boot(&l))
		*c = judge(all, c->gpu, boot_tables);
}

struct card_requirement requirement_judge_card(const struct candidate *all, const struct gpu *g)
{
	return judge(all, g, card_tables);
}

/* ---- what is no matter of edits and options ---- */

/* What keeps a pair from P2P, or was logged to, by the chain; NULL: nothing. */
static const struct chain_link *obstacle(const struct path *p)
{
	if (p->verdict == PAIR_BLOCKED)
		return &p->chain[p->first_bad];
	return candidate_mapping_fails(p) ? &p->chain[CHAIN_DRIVER] : NULL;
}

/* All pairs that have one, and the sentence of the first. */
static const char *obstacle_words(const struct candidate *l, const struct card_requirement *c)
{
	AUTO_STRBUF struct strbuf names = {0};
	const struct path *first = NULL;
	size_t n = 0, g = c->gpu->index;
	char why[512];

	if (c->action != ACTION_IN_FORCE && c->action != ACTION_NOTHING)
		return NULL;
	for (size_t i = 0; i < l->m->gpu_n; i++) {
		const struct path *out = topology_path(l->t, g, i);
		const struct path *p = i != g && obstacle(out) ? out : topology_path(l->t, i, g);

		if (i == g || !obstacle(p))
			continue;
		strbuf_printf(&names, "%sGPU%zu", n++ ? ", " : "", i);
		first = first ? first : p;
	}
	if (!first)
		return NULL;
	return arena_printf(l->m->arena, "the way to %s is %s: %s",
			    n < l->m->gpu_n - 1 ? strbuf_str(&names) : "every other GPU",
			    pair_verdict_text(first->verdict),
			    chain_explain(first, obstacle(first), why, sizeof(why)));
}

static void judge_cards(struct machine *m, struct unlock_requirements *n)
{
	AUTO_FREE enum unlock_action *by_itself = xcalloc(m->gpu_n, sizeof(*by_itself));
	AUTO_FREE bool *bar1_way = xcalloc(m->gpu_n, sizeof(*bar1_way));
	struct topology *t = topology_new(m);
	struct candidate all = {.m = m,
				.d = &m->driver,
				.release = driver_release(&m->driver),
				.bar1_way = bar1_way,
				.t = t,
				.text = ""};

	for (size_t i = 0; i < m->gpu_n; i++)
		bar1_way[i] = support_of(m, &m->gpus[i]).way == MECHANISM_BAR1 ||
			      requirement_joins_bar1_cards(m, &m->gpus[i]);
	for (size_t i = 0; i < m->gpu_n; i++)
		*ARENA_PUSH(m->arena, n->cards, n->n) = requirement_judge_card(&all, &m->gpus[i]);
	requirement_judge_together(&all, n, bar1_way);
	for (size_t i = 0; i < n->n; i++)
		by_itself[i] = n->cards[i].action;
	all.by_itself = by_itself;
	for (size_t i = 0; i < n->n; i++)
		if (by_itself[i] == ACTION_IN_FORCE)
			n->cards[i] = judge(&all, &m->gpus[i], pair_tables);
	for (size_t i = 0; i < n->n; i++)
		if (n->cards[i].action == ACTION_IN_FORCE)
			judge_after_boot(&all, &n->cards[i]);
	for (size_t i = 0; i < n->n; i++) {
		n->cards[i].obstacle = obstacle_words(&all, &n->cards[i]);
		n->obstacle |= n->cards[i].obstacle != NULL;
	}
	topology_free(t);
}

const struct unlock_requirements *unlock_requirements(struct machine *m)
{
	struct unlock_requirements *n = arena_alloc(m->arena, 1, sizeof(*n));

	n->action = m->gpu_n ? ACTION_NOTHING : ACTION_UNKNOWN;
	n->release = fact_str_or(m->driver.module_version, NULL);
	judge_cards(m, n);
	for (size_t i = 0; i < n->n; i++)
		if (n->cards[i].action < n->action)
			n->action = n->cards[i].action;
	n->judged = m->gpu_n > 1 && n->action != ACTION_UNKNOWN;
	if (m->gpu_n > 1) {
		requirement_options(m, n);
		requirement_steps(m, n);
	}
	return n;
}

const char *action_word(enum unlock_action n)
{
	static const char *const words[ACTION_N] = {
		[ACTION_REPLACE] = "replace", [ACTION_PATCH] = "patch",
		[ACTION_REBUILD] = "rebuild", [ACTION_RELOAD] = "reload",
		[ACTION_OPTIONS] = "options", [ACTION_REFUSED] = "refused",
		[ACTION_UNKNOWN] = "unknown", [ACTION_IN_FORCE] = "in-force",
		[ACTION_NOTHING] = "nothing",
	};

	return words[n];
}
