/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver makes of a card that has all it needs, pair by pair. */
#include "unlock/candidate.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"

/* Another card that it is to reach through BAR1. */
static bool is_peer(const struct candidate *l, size_t i)
{
	const struct gpu *g = &l->m->gpus[i];
	struct fact_int c = candidate_connection(l, i);

	return g != l->g && l->by_itself[i] == ACTION_IN_FORCE && card_same_generation(l->g, g) &&
	       !candidate_is_linked(l->g, g) && !fact_is(c, RM_CONNECTION_NVLINK) &&
	       !fact_is(c, RM_CONNECTION_NVLINK_INDIRECT) && !fact_is(c, RM_CONNECTION_C2C);
}

/* Another card that it is to reach, and that lacks the options. */
static bool lacks_options(struct candidate *l)
{
	AUTO_STRBUF struct strbuf names = {0};

	for (size_t i = 0; i < l->m->gpu_n; i++)
		if (candidate_wants_peer(l, i) && l->by_itself[i] == ACTION_OPTIONS)
			strbuf_printf(&names, "%sGPU%zu", names.len ? ", " : "", i);
	l->text = arena_strdup(l->m->arena, strbuf_str(&names));
	return names.len > 0;
}

static bool is_mailbox(struct fact_int c)
{
	return fact_is(c, RM_CONNECTION_MAILBOX);
}

static bool is_none(struct fact_int c)
{
	return fact_is(c, RM_CONNECTION_NONE);
}

static bool is_not_known(struct fact_int c)
{
	return !fact_known(c);
}

static bool is_bar1(struct fact_int c)
{
	return fact_is(c, RM_CONNECTION_BAR1);
}

/* Names the peers that it is connected with so: "its peers", or "GPU1, GPU3" of more. */
static bool some_peers(struct candidate *l, bool (*is_so)(struct fact_int c))
{
	AUTO_STRBUF struct strbuf names = {0};
	size_t n = 0, peers = 0;
	const char *why = NULL;

	for (size_t i = 0; i < l->m->gpu_n; i++) {
		struct fact_int c = candidate_connection(l, i);

		peers += is_peer(l, i);
		if (!is_peer(l, i) || !is_so(c))
			continue;
		strbuf_printf(&names, "%sGPU%zu", n++ ? ", " : "", i);
		why = fact_known(c) ? NULL : FACT_WHY(c);
	}
	l->text = arena_printf(l->m->arena, "%s%s%s%s",
			       n < peers ? strbuf_str(&names)
			       : n == 1  ? "its peer"
					 : "its peers",
			       why ? " (" : "", why ? why : "", why ? ")" : "");
	return n > 0;
}

static bool copy_fails(const struct candidate *l, size_t i)
{
	size_t g = l->g->index;

	return topology_path(l->t, g, i)->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_FAILS ||
	       topology_path(l->t, i, g)->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_FAILS;
}

/* Names the peers. */
static bool copies_fail(struct candidate *l)
{
	AUTO_STRBUF struct strbuf names = {0};

	for (size_t i = 0; i < l->m->gpu_n; i++)
		if (is_peer(l, i) && copy_fails(l, i))
			strbuf_printf(&names, "%sGPU%zu", names.len ? ", " : "", i);
	l->text = arena_strdup(l->m->arena, strbuf_str(&names));
	return names.len > 0;
}

static bool peers_through_mailbox(struct candidate *l)
{
	return some_peers(l, is_mailbox);
}

static bool peers_not_connected(struct candidate *l)
{
	return some_peers(l, is_none);
}

static bool peers_not_known(struct candidate *l)
{
	return some_peers(l, is_not_known);
}

static bool peers_through_bar1(struct candidate *l)
{
	return some_peers(l, is_bar1);
}

static bool lacks_keys(struct candidate *l)
{
	return candidate_needs_no_keys(l) && !fact_is(registry_keys_good(l->d, l->g), 1);
}

#define EQUIPPED "the running module has BAR1 P2P for it and the options are set"

/*
 * Of cards that the rows above call in force: what the driver makes of it, pair by pair. That it says
 * BAR1 counts behind a look into its module only, since stock 545 to 570 say so with nothing mapped.
 */
static const struct requirement_row rows[] = {
	{"proven", candidate_is_proven, ACTION_IN_FORCE,
	 "onehop test found correct data between it and its peers%s", NULL, RM_CAPS},
	{"copies-fail", copies_fail, ACTION_REFUSED,
	 "the running module has BAR1 P2P for it, but copies between it and %s failed",
	 "see `onehop check` for possible causes (observed-fails); after a change run `onehop test` again",
	 NULL},
	{"in-force", lacks_keys, ACTION_IN_FORCE,
	 "the running module has BAR1 P2P for it, and the driver connects it to its peers through BAR1 without options",
	 NULL, RM_CAPS},
	{"peers-options", lacks_options, ACTION_OPTIONS,
	 EQUIPPED
	 ", but not for %s: with options for one card of a pair, the order of the cards decides whether the driver uses BAR1",
	 NULL, P2P_CAPS " _kp2pCapsCheckStatusOverridesForPcie, _kp2pCapsGetStatusOverPcieBar1"},
	{"peers-mailbox", peers_through_mailbox, ACTION_REFUSED,
	 EQUIPPED
	 ", but the driver connects it to %s through a mailbox, which it does not have: data is lost",
	 "see onehop check for why the driver does not use BAR1 (p2p-mailbox); until that is fixed, remove ForceP2P from NVreg_RegistryDwords",
	 RM_CAPS},
	{"peers-none", peers_not_connected, ACTION_REFUSED,
	 EQUIPPED ", but the driver does not connect it to %s",
	 "see onehop check and the kernel log (NVRM) for why the driver does not use BAR1",
	 RM_CAPS},
	{"peers-unknown", peers_not_known, ACTION_UNKNOWN,
	 EQUIPPED "; how the driver connects it to %s is unknown",
	 "run onehop unlock on the machine itself, or onehop test", RM_CAPS},
	{"in-force", peers_through_bar1, ACTION_IN_FORCE,
	 EQUIPPED ", and the driver connects it to its peers through BAR1", NULL, RM_CAPS},
	{"in-force", candidate_always, ACTION_IN_FORCE, EQUIPPED, NULL, NVOC},
};

const struct requirement_rows requirement_pair_rows = {rows, sizeof(rows) / sizeof(rows[0])};
