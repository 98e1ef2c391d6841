/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/need_look.h"

bool look_is_linked(const struct gpu *a, const struct gpu *b)
{
	for (unsigned i = 0; i < a->nvlink_n; i++) {
		const struct nvlink *n = &a->nvlinks[i];
		struct pci_address at;

		if (fact_is(n->active, 1) && fact_known(n->remote) &&
		    pci_address_parse(n->remote.value, &at) == 0 &&
		    pci_address_compare(at, b->pci->address) == 0)
			return true;
	}
	return false;
}

size_t look_linked(const struct look *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->m->gpu_n; i++)
		n += &l->m->gpus[i] != l->g && look_is_linked(l->g, &l->m->gpus[i]);
	return n;
}

bool look_through_bar1(const struct look *l, const struct gpu *g)
{
	return l->bar1_way[g->index];
}

struct fact_int look_mechanism(const struct look *l)
{
	static const char from[] = "the functions of the module that runs, and its release";

	if (l->s.mechanism == MECHANISM_BAR1)
		return fact_int(1, from);
	if (l->s.mechanism == MECHANISM_UNKNOWN)
		return fact_int_unknown(l->s.why);
	return fact_int(0, from);
}

bool look_says_ok(const struct look *l, size_t i)
{
	const struct gpu_pair *p = machine_pair(l->m, l->g->index, i);

	return fact_is(p->p2p[P2P_WRITE], P2P_OK) && fact_is(p->p2p[P2P_READ], P2P_OK);
}

struct fact_int look_connection(const struct look *l, size_t i)
{
	return machine_pair(l->m, l->g->index, i)->rm.connection;
}

bool look_mapping_fails(const struct path *p)
{
	return p->chain[CHAIN_DRIVER].reason == REASON_DRIVER_MAPPING && p->verdict != PAIR_DIRECT;
}

/* ---- peers ---- */

bool look_wants_peer(const struct look *l, size_t i)
{
	const struct gpu *g = &l->m->gpus[i];

	return g != l->g && look_through_bar1(l, g) && card_same_generation(l->g, g) &&
	       !look_is_linked(l->g, g);
}

/* All peers, of which there are some. */
static bool all_peers(const struct look *l, bool (*is_so)(const struct look *l, size_t i))
{
	size_t n = 0;

	for (size_t i = 0; i < l->m->gpu_n; i++) {
		if (!look_wants_peer(l, i))
			continue;
		if (!is_so(l, i))
			return false;
		n++;
	}
	return n > 0;
}

static bool arrives(const struct look *l, size_t i)
{
	size_t g = l->g->index;

	return topology_path(l->t, g, i)->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_WORKS &&
	       topology_path(l->t, i, g)->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_WORKS;
}

static bool driver_uses_bar1(const struct look *l, size_t i)
{
	return look_says_ok(l, i) && driver_means_bar1(l->m, l->g->index, i);
}

bool look_needs_no_keys(struct look *l)
{
	return fact_is(look_mechanism(l), 1) && all_peers(l, driver_uses_bar1);
}

/* ---- edits ---- */

bool look_lacks_gate(struct look *l)
{
	l->text = fact_is(registry_keys_good(l->d, l->g), 1) || look_needs_no_keys(l)
			  ? "in force, but"
			  : "the module that runs is edited,";
	return fact_is(look_mechanism(l), 1) && card_needs_uvm_gate(l->g) &&
	       fact_is(driver_uvm_gate(l->d), 0);
}

bool look_edit_is_old(struct look *l)
{
	l->text = fact_str_or(l->d->bar1_p2p.mark, "");
	return look_through_bar1(l, l->g) && card_needs_uvm_gate(l->g) &&
	       fact_is(l->d->bar1_p2p.installed, 1) && fact_is(driver_edit_is_old(l->d), 1);
}

bool look_is_proven(struct look *l)
{
	bool harms = look_lacks_gate(l) || look_edit_is_old(l);

	l->text =
		l->bar1.cover == BAR1_TOO_SMALL ? ", although BAR1 does not cover the memory" : "";
	return all_peers(l, arrives) && !harms;
}

bool look_always(struct look *l)
{
	(void)l;
	return true;
}
