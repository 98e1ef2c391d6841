/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of one generation: all of them get the options, or none does. */
#include "unlock/candidate.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <string.h>

/*
 * ForceP2P of either card of a pair makes the driver say yes, and only the key of the first, whichever
 * that is, chooses BAR1 (p2p_caps.c, 535 to 595). So a card with mailboxes gets the keys too where one
 * of its generation goes through BAR1, and where a card cannot have them, none of its generation can.
 */

/* Peers over PCIe for CUDA, and both in NVIDIA's driver. */
static bool may_pair(const struct gpu *a, const struct gpu *b)
{
	return a != b && card_same_generation(a, b) && !candidate_is_linked(a, b) &&
	       strcmp(fact_str_or(a->pci->driver, "nvidia"), "nvidia") == 0 &&
	       strcmp(fact_str_or(b->pci->driver, "nvidia"), "nvidia") == 0;
}

bool requirement_joins_bar1_cards(struct machine *m, const struct gpu *g)
{
	if (support_of(m, g).mechanism != MECHANISM_MAILBOX)
		return false;
	for (size_t i = 0; i < m->gpu_n; i++)
		if (may_pair(g, &m->gpus[i]) && support_of(m, &m->gpus[i]).way == MECHANISM_BAR1)
			return true;
	return false;
}

static bool takes_keys(const struct card_requirement *c)
{
	return c->action <= ACTION_OPTIONS || c->action == ACTION_IN_FORCE;
}

/* Another card of the generation that has keys or gets them. */
static bool any_takes_keys(const struct unlock_requirements *n, const struct gpu *g)
{
	for (size_t i = 0; i < n->n; i++)
		if (may_pair(g, n->cards[i].gpu) && takes_keys(&n->cards[i]))
			return true;
	return false;
}

/* Of those that this card would reach, one that cannot have the keys. */
static const struct card_requirement *without_keys(const struct unlock_requirements *n,
						   const struct gpu *g)
{
	for (size_t i = 0; i < n->n; i++) {
		const struct card_requirement *c = &n->cards[i];

		if (may_pair(g, c->gpu) &&
		    (c->action == ACTION_REFUSED || c->action == ACTION_UNKNOWN))
			return c;
	}
	return NULL;
}

static struct card_requirement refused_by(const struct candidate *l, struct card_requirement c,
					  const struct card_requirement *other)
{
	struct arena *a = l->m->arena;

	c.action = ACTION_REFUSED;
	c.wants_options = false;
	c.id = "mixed";
	c.why = arena_printf(
		a,
		"GPU%zu is of the same generation and cannot have the options (%s): set for one card of a pair, they make the driver report P2P through a mailbox, which this card lacks",
		other->gpu->index, other->why);
	c.change = arena_printf(a, "GPU%zu: %s; or remove that card, or bind it to vfio-pci",
				other->gpu->index, other->change);
	c.reference = P2P_CAPS
		" _kp2pCapsCheckStatusOverridesForPcie, _kp2pCapsGetStatusOverPcieBar1; " KERNEL_BIF;
	return c;
}

/* One with mailboxes, which it keeps unless there is a card to reach through BAR1. */
static void judge_mailbox_card(const struct candidate *l, struct unlock_requirements *n, size_t i,
			       bool *bar1_way)
{
	struct card_requirement *c = &n->cards[i];

	if (takes_keys(c) && any_takes_keys(n, c->gpu)) {
		c->why = arena_printf(
			l->m->arena,
			"it has mailboxes, but other cards of its generation here have none, so it must use BAR1 as well; %s",
			c->why ? c->why : "");
	} else {
		bar1_way[i] = false;
		*c = requirement_judge_card(l, c->gpu);
	}
}

void requirement_judge_together(const struct candidate *l, struct unlock_requirements *n,
				bool *bar1_way)
{
	AUTO_FREE struct card_requirement *alone = xcalloc(n->n, sizeof(*alone));

	for (size_t i = 0; i < n->n; i++)
		alone[i] = n->cards[i];
	for (size_t i = 0; i < n->n; i++) {
		struct unlock_requirements before = {.cards = alone, .n = n->n};
		const struct gpu *g = alone[i].gpu;
		const struct card_requirement *other = without_keys(&before, g);
		bool edit = action_builds(alone[i].action);

		if (takes_keys(&alone[i]) && other &&
		    !(driver_denies_half_pairs(l->d, edit) && any_takes_keys(&before, g)))
			n->cards[i] = refused_by(l, alone[i], other);
	}
	for (size_t i = 0; i < n->n; i++)
		if (bar1_way[i] && support_of(l->m, alone[i].gpu).mechanism == MECHANISM_MAILBOX)
			judge_mailbox_card(l, n, i, bar1_way);
}
