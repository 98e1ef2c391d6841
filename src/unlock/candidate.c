/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/candidate.h"

bool candidate_is_linked(const struct gpu *a, const struct gpu *b)
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

size_t candidate_linked(const struct candidate *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->m->gpu_n; i++)
		n += &l->m->gpus[i] != l->g && candidate_is_linked(l->g, &l->m->gpus[i]);
	return n;
}

bool candidate_through_bar1(const struct candidate *l, const struct gpu *g)
{
	return l->bar1_way[g->index];
}

struct fact_int candidate_mechanism(const struct candidate *l)
{
	static const char from[] = "the functions of the module that runs, and its release";

	if (l->s.mechanism == MECHANISM_BAR1)
		return fact_int(1, from);
	if (l->s.mechanism == MECHANISM_UNKNOWN)
		return fact_int_unknown(l->s.why);
	return fact_int(0, from);
}

bool candidate_says_ok(const struct candidate *l, size_t i)
{
	const struct gpu_pair *p = machine_pair(l->m, l->g->index, i);

	return fact_is(p->p2p[P2P_WRITE], P2P_OK) && fact_is(p->p2p[P2P_READ], P2P_OK);
}

struct fact_int candidate_connection(const struct candidate *l, size_t i)
{
	return machine_pair(l->m, l->g->index, i)->rm.connection;
}

bool candidate_mapping_fails(const struct path *p)
{
	return p->chain[CHAIN_DRIVER].reason == REASON_DRIVER_MAPPING && p->verdict != PAIR_DIRECT;
}

/* ---- peers ---- */

bool candidate_wants_peer(const struct candidate *l, size_t i)
{
	const struct gpu *g = &l->m->gpus[i];

	return g != l->g && candidate_through_bar1(l, g) && card_same_generation(l->g, g) &&
	       !candidate_is_linked(l->g, g);
}

/* All peers, of which there are some. */
static bool all_peers(const struct candidate *l, bool (*is_so)(const struct candidate *l, size_t i))
{
	size_t n = 0;

	for (size_t i = 0; i < l->m->gpu_n; i++) {
		if (!candidate_wants_peer(l, i))
			continue;
		if (!is_so(l, i))
			return false;
		n++;
	}
	return n > 0;
}

static bool arrives(const struct candidate *l, size_t i)
{
	size_t g = l->g->index;

	return topology_path(l->t, g, i)->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_WORKS &&
	       topology_path(l->t, i, g)->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_WORKS;
}

static bool driver_uses_bar1(const struct candidate *l, size_t i)
{
	return candidate_says_ok(l, i) && driver_means_bar1(l->m, l->g->index, i);
}

bool candidate_needs_no_keys(struct candidate *l)
{
	return fact_is(candidate_mechanism(l), 1) && all_peers(l, driver_uses_bar1);
}

/* ---- edits ---- */

bool candidate_lost_at_boot(struct candidate *l)
{
	int native = support_native_from(l->g);

	return candidate_through_bar1(l, l->g) && driver_loses_edit(l->d) &&
	       !(native && driver_branch(l->d->module_version) >= native);
}

static bool runs_without_gate(const struct candidate *l)
{
	return fact_is(candidate_mechanism(l), 1) && fact_is(driver_uvm_gate(l->d), 0);
}

/* The next boot, or the first program that loads nvidia_uvm, runs them. */
static bool installed_without_gate(const struct candidate *l)
{
	return candidate_through_bar1(l, l->g) && fact_is(l->d->bar1_p2p.installed, 1) &&
	       fact_is(l->d->uvm_gate.installed, 0);
}

bool candidate_lacks_gate(struct candidate *l)
{
	if (!runs_without_gate(l))
		l->text = "the modules on disk are edited,";
	else if (fact_is(registry_keys_good(l->d, l->g), 1) || candidate_needs_no_keys(l))
		l->text = "in effect, but";
	else
		l->text = "the running module is edited,";
	return card_needs_uvm_gate(l->g) && (runs_without_gate(l) || installed_without_gate(l));
}

bool candidate_edit_is_old(struct candidate *l)
{
	l->text = fact_str_or(l->d->bar1_p2p.mark, "");
	return candidate_through_bar1(l, l->g) && card_needs_uvm_gate(l->g) &&
	       fact_is(l->d->bar1_p2p.installed, 1) && fact_is(driver_edit_is_old(l->d), 1);
}

bool candidate_is_proven(struct candidate *l)
{
	bool harms = candidate_lacks_gate(l) || candidate_edit_is_old(l);

	l->text =
		l->bar1.cover == BAR1_TOO_SMALL ? ", although BAR1 does not cover the memory" : "";
	return all_peers(l, arrives) && !harms;
}

bool candidate_works_with_some(struct candidate *l)
{
	size_t i = 0;

	while (i < l->m->gpu_n && !(candidate_wants_peer(l, i) && arrives(l, i)))
		i++;
	return i < l->m->gpu_n && fact_is(candidate_mechanism(l), 1) && !candidate_lacks_gate(l) &&
	       !candidate_edit_is_old(l);
}

bool candidate_always(struct candidate *l)
{
	(void)l;
	return true;
}
