/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of hosts with the same hardware: what most have, and who differs. */
#include "fleet/fleet.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "fleet/host_names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A value of a host of the group. */
struct entry {
	unsigned key, value, host;
};

/*
 * A host that lacks more than this share of the facts that most know is reported as one that was
 * not seen well.
 */
#define MUCH_UNKNOWN 0.1

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->host < y->host ? -1 : x->host > y->host;
}

/* The values of one key. */
struct share {
	const struct entry *first;
	size_t n;
};

/* How a fact is spread over a group. */
struct spread {
	struct share *shares;
	size_t n, known, most; /* most: the share with the most hosts */
};

static void spread_of(const struct entry *e, size_t n, struct arena *scratch, struct spread *ret)
{
	*ret = (struct spread){.known = n};
	for (size_t i = 0; i < n; i++) {
		if (!i || e[i].value != e[i - 1].value)
			ARENA_PUSH(scratch, ret->shares, ret->n)->first = &e[i];
		ret->shares[ret->n - 1].n++;
	}
	for (size_t i = 0; i < ret->n; i++)
		if (ret->shares[i].n > ret->shares[ret->most].n)
			ret->most = i;
}

static bool has_majority(const struct spread *s)
{
	return s->known >= FLEET_ENOUGH &&
	       (double)s->shares[s->most].n >= FLEET_MAJORITY * (double)s->known;
}

/* ---- outliers ---- */

static bool cites(const struct fact_row *row, const char *slot, const char *address,
		  const struct fleet_finding *f)
{
	if (row->place == PLACE_RULE)
		return strcmp(f->rule, slot) == 0;
	if (!row->cited_by || !text_starts_with(f->rule, row->cited_by))
		return false;
	return !*address || strcmp(f->address, address) == 0;
}

/* The rule of a finding of the host that this fact is evidence for; NULL: none. */
static const char *cited_rule(const struct fleet_host *h, const struct fact_key *key)
{
	const char *address = fleet_address(h, key->slot);

	for (size_t i = 0; i < h->finding_n; i++)
		if (cites(key->row, key->slot, address, &h->findings[i]))
			return h->findings[i].rule;
	return NULL;
}

/* A row of a host that differs from its group. */
struct difference {
	const struct fact_key *key;
	const struct fleet_host *host;
	const char *value, *usual; /* of fleet.words: equal texts are one */
	size_t usual_n;
	const char *rule;
};

static enum fact_rank rank_of(const struct difference *d)
{
	return d->rule && d->key->row->place != PLACE_RULE ? RANK_CITED : d->key->row->rank;
}

static int compare_differences(const void *a, const void *b)
{
	const struct difference *x = a, *y = b;
	int r = (int)rank_of(x) - (int)rank_of(y);

	r = r ? r : strcmp(x->key->row->word, y->key->row->word);
	r = r ? r : strcmp(x->rule ? x->rule : "", y->rule ? y->rule : "");
	r = r ? r : strcmp(x->value, y->value);
	r = r ? r : strcmp(x->usual, y->usual);
	r = r ? r : host_names_compare(x->host->name, y->host->name);
	r = r ? r : strcmp(x->host->name, y->host->name);
	return r ? r : host_names_compare(x->key->slot, y->key->slot);
}

/* Whether both are one thing that a host, or several, have in several slots. */
static bool same_thing(const struct difference *x, const struct difference *y)
{
	return x->key->row == y->key->row && x->value == y->value && x->usual == y->usual &&
	       (x->rule == y->rule || (x->rule && y->rule && strcmp(x->rule, y->rule) == 0)) &&
	       (x->key->row->place != PLACE_RULE && x->key->row->place != PLACE_WORD &&
				x->key->row->place != PLACE_NCCL
			? true
			: strcmp(x->key->slot, y->key->slot) == 0);
}

/* Of one host: n differences that are one thing. */
static struct fleet_outlier outlier_of(struct fleet *f, const struct difference *d, size_t n)
{
	struct fleet_outlier o = {.row = d->key->row,
				  .rank = rank_of(d),
				  .address = fleet_address(d->host, d->key->slot),
				  .value = d->value,
				  .usual = d->usual,
				  .usual_n = d->usual_n,
				  .rule = d->rule};

	for (size_t i = 0; i < n; i++) {
		*ARENA_PUSH(f->arena, o.slots, o.slot_n) = d[i].key->slot;
		if (d[i].usual_n < o.usual_n)
			o.usual_n = d[i].usual_n;
	}
	*ARENA_PUSH(f->arena, o.hosts, o.host_n) = d->host->name;
	return o;
}

static bool same_outlier(const struct fleet_outlier *a, const struct fleet_outlier *b)
{
	bool same = a->row == b->row && a->rank == b->rank && a->slot_n == b->slot_n &&
		    a->value == b->value && a->usual == b->usual && !a->rule == !b->rule &&
		    (!a->rule || strcmp(a->rule, b->rule) == 0);

	for (size_t i = 0; same && i < a->slot_n; i++)
		same = a->slots[i] == b->slots[i];
	return same;
}

/* Hosts with the same outlier share one line. */
static void add_outlier(struct fleet *f, struct fleet_group *g, const struct fleet_outlier *o)
{
	for (size_t i = 0; i < g->outlier_n; i++) {
		struct fleet_outlier *have = &g->outliers[i];

		if (same_outlier(have, o)) {
			*ARENA_PUSH(f->arena, have->hosts, have->host_n) = o->hosts[0];
			have->usual_n = o->usual_n < have->usual_n ? o->usual_n : have->usual_n;
			return;
		}
	}
	*ARENA_PUSH(f->arena, g->outliers, g->outlier_n) = *o;
}

static void add_outliers(struct fleet *f, struct fleet_group *g, struct difference *d, size_t n)
{
	size_t same;

	if (n)
		qsort(d, n, sizeof(*d), compare_differences);
	for (size_t i = 0; i < n; i += same) {
		struct fleet_outlier o;

		for (same = 1; i + same < n && d[i + same].host == d[i].host &&
			       same_thing(&d[i], &d[i + same]);)
			same++;
		o = outlier_of(f, &d[i], same);
		add_outlier(f, g, &o);
	}
}

/* ---- splits ---- */

static void add_share(struct fleet *f, const struct fleet_group *g, const struct share *from,
		      struct fleet_split *to)
{
	struct fleet_share *s = ARENA_PUSH(f->arena, to->shares, to->share_n);

	s->value = numbered_text(&f->words, from->first->value);
	for (size_t i = 0; i < from->n; i++)
		*ARENA_PUSH(f->arena, s->hosts, s->host_n) = g->hosts[from->first[i].host]->name;
}

static bool same_split(const struct fleet_split *a, const struct fleet_split *b)
{
	bool same = a->row == b->row && a->share_n == b->share_n && a->row->place != PLACE_RULE &&
		    a->row->place != PLACE_WORD && a->row->place != PLACE_NCCL;

	for (size_t i = 0; same && i < a->share_n; i++) {
		const struct fleet_share *x = &a->shares[i], *y = &b->shares[i];

		same = x->value == y->value && x->host_n == y->host_n &&
		       memcmp(x->hosts, y->hosts, x->host_n * sizeof(*x->hosts)) == 0;
	}
	return same;
}

static int compare_shares(const void *a, const void *b)
{
	const struct fleet_share *x = a, *y = b;

	if (x->host_n != y->host_n)
		return x->host_n > y->host_n ? -1 : 1;
	return strcmp(x->value, y->value);
}

static void add_split(struct fleet *f, struct fleet_group *g, const struct spread *s)
{
	const struct fact_key *key = &f->keys[s->shares[0].first->key - 1];
	struct fleet_split split = {.row = key->row, .slot = key->slot};

	for (size_t i = 0; i < s->n; i++)
		add_share(f, g, &s->shares[i], &split);
	qsort(split.shares, split.share_n, sizeof(*split.shares), compare_shares);
	for (size_t i = 0; i < g->split_n; i++) {
		if (same_split(&g->splits[i], &split)) {
			g->splits[i].more++;
			return;
		}
	}
	*ARENA_PUSH(f->arena, g->splits, g->split_n) = split;
}

static int compare_splits(const void *a, const void *b)
{
	const struct fleet_split *x = a, *y = b;
	int r = (int)x->row->rank - (int)y->row->rank;

	r = r ? r : strcmp(x->row->word, y->row->word);
	return r ? r : host_names_compare(x->slot, y->slot);
}

/* ---- what could not be seen ---- */

static void add_blind(struct fleet *f, struct fleet_group *g, const struct fleet_host *h,
		      size_t facts)
{
	struct fleet_blind *b = NULL;
	bool no_root = h->root == 0;

	for (size_t i = 0; i < g->blind_n && !b; i++)
		if (g->blind[i].no_root == no_root)
			b = &g->blind[i];
	if (!b)
		b = ARENA_PUSH(f->arena, g->blind, g->blind_n);
	b->no_root = no_root;
	b->facts = facts > b->facts ? facts : b->facts;
	*ARENA_PUSH(f->arena, b->hosts, b->host_n) = h->name;
}

/* `usual`: facts that most hosts know; `known`: how many of them each host knows. */
static void find_blind(struct fleet *f, struct fleet_group *g, size_t usual, const size_t *known)
{
	for (size_t i = 0; i < g->host_n; i++)
		if (g->hosts[i]->checked &&
		    (double)(usual - known[i]) > MUCH_UNKNOWN * (double)usual)
			add_blind(f, g, g->hosts[i], usual - known[i]);
}

/* ---- a group ---- */

struct comparison_run {
	struct fleet *fleet;
	struct fleet_group *group;
	struct arena *scratch;
	struct difference *differences;
	size_t difference_n;
	size_t usual, *known, checked;
};

/* Facts of rules and pairs follow from others: it is not new that they are unknown too. */
static bool counts_as_seen(const struct fact_row *row)
{
	return row->place < PLACE_WORD;
}

static void compare_key(struct comparison_run *c, const struct entry *e, size_t n)
{
	const struct fact_key *key = &c->fleet->keys[e->key - 1];
	struct spread s;

	spread_of(e, n, c->scratch, &s);
	if (counts_as_seen(key->row) && (double)n >= FLEET_MAJORITY * (double)c->checked &&
	    c->checked >= FLEET_ENOUGH) {
		c->usual++;
		for (size_t i = 0; i < n; i++)
			c->known[e[i].host]++;
	}
	if (s.n < 2)
		return;
	if (!has_majority(&s)) {
		add_split(c->fleet, c->group, &s);
		return;
	}
	for (size_t i = 0; i < s.n; i++) {
		for (size_t j = 0; i != s.most && j < s.shares[i].n; j++) {
			const struct entry *x = &s.shares[i].first[j];
			const struct fleet_host *h = c->group->hosts[x->host];

			*ARENA_PUSH(c->scratch, c->differences, c->difference_n) =
				(struct difference){key,
						    h,
						    numbered_text(&c->fleet->words, x->value),
						    numbered_text(&c->fleet->words,
								  s.shares[s.most].first->value),
						    s.shares[s.most].n,
						    cited_rule(h, key)};
		}
	}
}

static bool is_listed(const struct fact_row *row, const struct fleet_host *h)
{
	return (row == &fact_row_word && (h->families & FAMILY_WORDS)) ||
	       (row == &fact_row_nccl && (h->families & FAMILY_NCCL));
}

static void add_entry(struct arena *a, struct entry **list, size_t *n, struct entry e)
{
	*ARENA_PUSH(a, *list, *n) = e;
}

/* Hosts that list their parameters, and lack one that others have, have it absent. */
static void add_absent(struct comparison_run *c, struct entry **entries, size_t *n)
{
	struct fleet *f = c->fleet;
	unsigned absent = numbered_number(&f->words, "absent");
	uint8_t *seen = arena_alloc(c->scratch, f->key_n + 1, 1);
	size_t had = *n;

	for (size_t i = 0; i < had; i++)
		seen[(*entries)[i].key] = 1;
	for (unsigned h = 0; h < c->group->host_n; h++) {
		const struct fleet_host *host = c->group->hosts[h];
		uint8_t *own;

		if (!host->families)
			continue;
		own = xcalloc(f->key_n + 1, 1);
		for (size_t i = 0; i < host->fact_n; i++)
			own[host->facts[i].key] = 1;
		for (unsigned k = 1; k <= f->key_n; k++)
			if (seen[k] && !own[k] && is_listed(f->keys[k - 1].row, host))
				add_entry(c->scratch, entries, n, (struct entry){k, absent, h});
		free(own);
	}
}

void fleet_compare_facts(struct fleet *f, struct fleet_group *g)
{
	struct arena *scratch = arena_new();
	struct comparison_run c = {.fleet = f, .group = g, .scratch = scratch};
	struct entry *entries = NULL;
	size_t n = 0, same;

	c.known = arena_alloc(scratch, g->host_n, sizeof(*c.known));
	for (unsigned h = 0; h < g->host_n; h++) {
		c.checked += g->hosts[h]->checked;
		for (size_t i = 0; i < g->hosts[h]->fact_n; i++)
			add_entry(scratch, &entries, &n,
				  (struct entry){g->hosts[h]->facts[i].key,
						 g->hosts[h]->facts[i].value, h});
	}
	add_absent(&c, &entries, &n);
	if (n)
		qsort(entries, n, sizeof(*entries), compare_entries);
	for (size_t i = 0; i < n; i += same) {
		for (same = 1; i + same < n && entries[i + same].key == entries[i].key;)
			same++;
		compare_key(&c, &entries[i], same);
	}
	add_outliers(f, g, c.differences, c.difference_n);
	if (g->split_n)
		qsort(g->splits, g->split_n, sizeof(*g->splits), compare_splits);
	find_blind(f, g, c.usual, c.known);
	arena_free(scratch);
}
