/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every card can do with every driver, as all who judge it answer: one text over the whole
 * matrix, compared with tests/support/matrix.txt. ONEHOP_BLESS=1 writes it; the diff is reviewed
 * like code.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "build_machine.h"
#include "check_text.h"
#include "judged.h"
#include "support/support.h"
#include "unlock/requirements.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN "tests/support/matrix.txt"
#define GIB    ((int64_t)1 << 30)

static const char from[] = "test";

/* ---- the matrix ---- */

/* 0: there is no such card; it is judged by its name then. */
static const struct card {
	int capability;
	const char *model;
	int device;
} cards[] = {
	{70, "NVIDIA GeForce (none of this chip)", 0},
	{70, "Quadro GV100", 0x1dba},
	{70, "Tesla V100-PCIE-32GB", 0x1db6},
	{75, "NVIDIA GeForce RTX 2080 Ti", 0x1e07},
	{75, "Quadro RTX 6000", 0x1e30},
	{75, "Tesla T4", 0x1eb8},
	{80, "NVIDIA GeForce (none of this chip)", 0},
	{80, "NVIDIA A800 40GB Active", 0x20f6},
	{80, "NVIDIA A100-PCIE-40GB", 0x20f1},
	{80, "NVIDIA CMP 170HX", 0x20c2},
	{86, "NVIDIA GeForce RTX 3090", 0x2204},
	{86, "NVIDIA RTX A6000", 0x2230},
	{86, "NVIDIA A40", 0x2235},
	{86, "NVIDIA CMP 90HX", 0x220d},
	{89, "NVIDIA GeForce RTX 4090", 0x2684},
	{89, "NVIDIA RTX 6000 Ada Generation", 0x26b1},
	{89, "NVIDIA L40S", 0x26b9},
	{90, "NVIDIA GeForce (none of this chip)", 0},
	{90, "NVIDIA RTX (none of this chip)", 0},
	{90, "NVIDIA H100 PCIe", 0x2331},
	{100, "NVIDIA GeForce (none of this chip)", 0},
	{100, "NVIDIA RTX (none of this chip)", 0},
	{100, "NVIDIA B200", 0x2901},
	{103, "NVIDIA GeForce (none of this chip)", 0},
	{103, "NVIDIA RTX (none of this chip)", 0},
	{103, "NVIDIA B300 SXM6 AC", 0x3182},
	{120, "NVIDIA GeForce RTX 5090", 0x2b85},
	{120, "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 0x2bb1},
	{120, "NVIDIA RTX PRO 6000 Blackwell Server Edition", 0x2bb5},
	{130, "NVIDIA GeForce (of a chip to come)", 0},
};

static const int releases[] = {530, 535, 545, 550, 555, 560, 565, 570, 575, 580, 590, 595, 610};

static const struct kind {
	const char *name;
	int flavor, loaded; /* of bar1_p2p; -1: it names no such function */
} kinds[] = {
	{"proprietary", DRIVER_PROPRIETARY, -1},
	{"open", DRIVER_OPEN, 0},
	{"edited", DRIVER_OPEN, 1},
};

/* `dwords`: NULL, those that this release should have. */
static const struct scenario {
	const char *name;
	enum p2p_status status;
	const char *dwords;
	int64_t bar1;
	int rm; /* enum rm_connection; RM_CONNECTION_N: not asked */
} scenarios[] = {
	{"no keys, CNS", P2P_CHIPSET_NOT_SUPPORTED, "", 128 * GIB, RM_CONNECTION_N},
	{"good keys, OK", P2P_OK, NULL, 128 * GIB, RM_CONNECTION_N},
	{"good keys, OK by BAR1", P2P_OK, NULL, 128 * GIB, RM_CONNECTION_BAR1},
	{"ForceP2P, OK by mailbox", P2P_OK, "ForceP2P=0x11", 128 * GIB, RM_CONNECTION_MAILBOX},
	{"RMPcieP2PType=1, OK", P2P_OK, "RMPcieP2PType=1", 128 * GIB, RM_CONNECTION_N},
	{"RMPcieP2PType=1, OK, BAR1 of 256 MiB", P2P_OK, "RMPcieP2PType=1", GIB / 4,
	 RM_CONNECTION_N},
	{"RMPcieP2PType=2, OK, BAR1 of 256 MiB", P2P_OK, "RMPcieP2PType=2", GIB / 4,
	 RM_CONNECTION_N},
	{"ForceP2P and RMForceP2PType=2, OK", P2P_OK, "ForceP2P=0x11;RMForceP2PType=2", 128 * GIB,
	 RM_CONNECTION_N},
	{"good keys, OK, BAR1 of 256 MiB", P2P_OK, NULL, GIB / 4, RM_CONNECTION_N},
};

#define N(array) (sizeof(array) / sizeof((array)[0]))

static struct machine *machine_of(const struct card *c, int release, const struct kind *k,
				  const struct scenario *s)
{
	struct machine *m = build_two_root_ports();
	const char *dwords = s->dwords ? s->dwords : release_find(release)->keys;

	for (size_t i = 0; i < m->gpu_n; i++) {
		struct gpu *g = &m->gpus[i];

		g->pci->device =
			c->device ? fact_int(c->device, from) : fact_int_unknown("not collected");
		g->vram_bytes = fact_int(24 * GIB, from);
		g->bar1_bytes = fact_int(s->bar1, from);
		g->pci->boot_vga = fact_int(0, from);
		build_model(g, c->model, c->capability);
	}
	build_status(m, P2P_READ, s->status);
	build_status(m, P2P_WRITE, s->status);
	for (size_t i = 0; i < m->gpu_n * m->gpu_n && s->rm != RM_CONNECTION_N; i++)
		m->pairs[i].rm.connection = fact_int(s->rm, from);
	m->driver.module_version = fact_str(arena_printf(m->arena, "%d.10.01", release), from);
	m->driver.flavor = fact_int(k->flavor, from);
	m->driver.bar1_p2p.loaded = m->driver.bar1_p2p.installed =
		k->loaded < 0 ? fact_int_absent(from) : fact_int(k->loaded, from);
	m->driver.bar1_p2p.mark = fact_str(EDIT_MARK, from);
	m->driver.registry_dwords = fact_str(dwords ? dwords : "", from);
	m->driver.registry_dwords_per_device = fact_str("", from);
	return m;
}

/* ---- the answers ---- */

static bool is_about_cards(const char *id)
{
	return !strncmp(id, "p2p-", 4) || !strncmp(id, "bar1-", 5) || !strcmp(id, "driver-open") ||
	       !strncmp(id, "force-", 6) || !strncmp(id, "unlock-", 7);
}

static void add_link(struct strbuf *out, const char *name, const struct chain_link *l)
{
	strbuf_printf(out, " %s=%s/%s", name, chain_state_word(l->state),
		      chain_reason_word(l->reason));
}

static void add_rules(struct strbuf *out, const struct diagnosis *d)
{
	const char *separator = " bad=";

	for (size_t i = 0; i < d->outcome_n; i++) {
		const struct outcome *o = &d->outcomes[i];

		if (o->verdict != VERDICT_BAD || !is_about_cards(o->rule->id))
			continue;
		strbuf_printf(out, "%s%s", separator, o->rule->id);
		separator = ",";
	}
}

static char *answers(const struct card *c, int release, const struct kind *k,
		     const struct scenario *s)
{
	struct judged j = judge_built(machine_of(c, release, k, s));
	const struct path *p = topology_path(j.t, 0, 1);
	struct strbuf out = {0};
	char *ret;

	strbuf_printf(&out, "need=%s", unlock_requirements(j.m)->cards[0].id);
	add_link(&out, "exposure", &p->chain[CHAIN_EXPOSURE]);
	add_link(&out, "driver", &p->chain[CHAIN_DRIVER]);
	add_rules(&out, j.d);
	ret = xstrdup(strbuf_str(&out));
	strbuf_done(&out);
	judged_done(&j);
	return ret;
}

/* ---- the text ---- */

/* "535-560 570", of those releases in the list that are marked. */
static void add_releases(struct strbuf *out, const bool *is_in)
{
	for (size_t i = 0; i < N(releases); i++) {
		size_t last = i;

		if (!is_in[i])
			continue;
		while (last + 1 < N(releases) && is_in[last + 1])
			last++;
		strbuf_printf(out, last > i ? " %d-%d" : " %d", releases[i], releases[last]);
		i = last;
	}
}

/* One line for each answer, with the modules and releases that give it. */
static void add_scenario(struct strbuf *out, const struct card *c, const struct scenario *s)
{
	char *all[N(kinds)][N(releases)];
	bool done[N(kinds)][N(releases)] = {{false}};

	for (size_t k = 0; k < N(kinds); k++)
		for (size_t r = 0; r < N(releases); r++)
			all[k][r] = answers(c, releases[r], &kinds[k], s);
	strbuf_printf(out, " %s\n", s->name);
	for (size_t k = 0; k < N(kinds); k++)
		for (size_t r = 0; r < N(releases); r++) {
			const char *answer = all[k][r];

			if (done[k][r])
				continue;
			strbuf_puts(out, " ");
			for (size_t l = k; l < N(kinds); l++) {
				bool same[N(releases)] = {false}, any = false;

				for (size_t i = 0; i < N(releases); i++) {
					same[i] = !done[l][i] && !strcmp(all[l][i], answer);
					done[l][i] |= same[i];
					any |= same[i];
				}
				if (any)
					strbuf_printf(out, "%s %s", l > k ? "," : "",
						      kinds[l].name);
				add_releases(out, same);
			}
			strbuf_printf(out, "\n    %s\n", answer);
		}
	for (size_t k = 0; k < N(kinds); k++)
		for (size_t r = 0; r < N(releases); r++)
			free(all[k][r]);
}

/* What the device id alone says, and what name and capability say. */
static void add_card(struct strbuf *out, const struct card *c)
{
	struct machine *m = machine_of(c, 580, &kinds[1], &scenarios[0]);
	struct gpu *g = &m->gpus[0];

	strbuf_printf(out, "\nsm_%d %s\n", c->capability, c->model);
	strbuf_printf(out, " by name: geforce=%d needs-bar1=%d\n",
		      (int)fact_or(card_is_geforce(g), -1), (int)fact_or(card_needs_bar1(g), -1));
	g->model = fact_str_unknown("not collected");
	g->compute_capability = fact_int_unknown("not collected");
	if (c->device)
		strbuf_printf(out, " by id %04x: sm_%d geforce=%d needs-bar1=%d\n",
			      (unsigned)c->device, (int)fact_or(card_compute_capability(g), -1),
			      (int)fact_or(card_is_geforce(g), -1),
			      (int)fact_or(card_needs_bar1(g), -1));
	build_free(m);
	for (size_t i = 0; i < N(scenarios); i++)
		add_scenario(out, c, &scenarios[i]);
}

static void add_keys(struct strbuf *out)
{
	strbuf_puts(out, "registry keys\n");
	for (size_t i = 0; i < N(releases); i++) {
		const char *dwords = release_find(releases[i])->keys;

		strbuf_printf(out, " %d %s\n", releases[i], dwords ? dwords : "none known");
	}
}

static void write_golden(const char *text)
{
	FILE *f = fopen(GOLDEN, "w");

	assert_non_null(f);
	assert_int_equal(fputs(text, f) < 0, 0);
	assert_int_equal(fclose(f), 0);
}

static void every_card_with_every_driver(void **state)
{
	struct strbuf out = {0};
	char *golden;

	(void)state;
	add_keys(&out);
	for (size_t i = 0; i < N(cards); i++)
		add_card(&out, &cards[i]);
	if (getenv("ONEHOP_BLESS"))
		write_golden(strbuf_str(&out));
	golden = file_text(GOLDEN);
	if (strcmp(golden, strbuf_str(&out)) != 0)
		fail_msg("answers differ from " GOLDEN ": ONEHOP_BLESS=1 %s, and look at the diff",
			 "build/tests/unit/test_support");
	free(golden);
	strbuf_done(&out);
}

/* ---- two cards of one generation ---- */

static bool has_keys(struct machine *m, const struct unlock_requirements *n, size_t i)
{
	AUTO_FREE char *own = xprintf("pci=%s;ForceP2P=0x", m->gpus[i].pci->name);

	return n->options && (!n->per_device || strstr(n->options, own));
}

/* Whatever cards, driver and modules: keys are planned for both or for neither, the same whichever
 * card comes first, and never one that keeps a card with a smaller BAR1 from starting. */
static void assert_keys_for_both(const struct card *a, const struct card *b, int release,
				 const struct kind *k, int64_t bar1)
{
	struct machine *m[2] = {machine_of(a, release, k, &scenarios[0]),
				machine_of(b, release, k, &scenarios[0])};
	enum unlock_action needs[2];

	for (size_t i = 0; i < 2; i++) {
		const struct card *other = i ? a : b;
		const struct unlock_requirements *n;

		build_model(&m[i]->gpus[1], other->model, other->capability);
		m[i]->gpus[1].pci->device = fact_int(other->device, from);
		m[i]->gpus[!i].bar1_bytes = fact_int(bar1, from);
		n = unlock_requirements(m[i]);
		needs[i] = n->action;
		if (has_keys(m[i], n, 0) != has_keys(m[i], n, 1) ||
		    (n->options && strstr(n->options, "RMForceStaticBar1=1")))
			fail_msg("%s and %s, %s %d: %s", m[i]->gpus[0].model.value,
				 m[i]->gpus[1].model.value, k->name, release, n->options);
	}
	assert_int_equal(needs[0], needs[1]);
	build_free(m[0]);
	build_free(m[1]);
}

static void keys_are_for_both_cards(void **state)
{
	(void)state;
	for (size_t a = 0; a < N(cards); a++)
		for (size_t b = a + 1; b < N(cards); b++)
			for (size_t r = 0; r < N(releases); r++)
				for (size_t k = 0; k < N(kinds); k++) {
					if (cards[a].capability != cards[b].capability)
						continue;
					assert_keys_for_both(&cards[a], &cards[b], releases[r],
							     &kinds[k], 64 * GIB);
					assert_keys_for_both(&cards[a], &cards[b], releases[r],
							     &kinds[k], GIB / 4);
				}
}

/* ---- the table itself ---- */

/* A card's way depends on neither release nor modules, and what a driver has is of that way. */
static void assert_consistent(const struct support *s, const struct support *first)
{
	static const enum mechanism ways[MECHANISM_N] = {
		[MECHANISM_MAILBOX] = MECHANISM_MAILBOX,
		[MECHANISM_BAR1] = MECHANISM_BAR1,
		[MECHANISM_BAR1_EDIT] = MECHANISM_BAR1,
		[MECHANISM_BAR1_PART] = MECHANISM_BAR1,
	};

	assert_int_equal(s->way, first->way);
	assert_true(s->chip_tried == first->chip_tried);
	if (ways[s->mechanism])
		assert_int_equal(s->way, ways[s->mechanism]);
	assert_non_null(s->why);
	assert_true(!s->chip_tried || s->reference);
}

static void every_row_fits_its_card(void **state)
{
	const struct chip *chips;
	size_t n;

	(void)state;
	chips = chip_table(&n);
	for (size_t c = 0; c < n; c++)
		for (int sold = 0; sold < CARD_CLASS_N; sold++) {
			struct support first =
				support_find(chips[c].compute_capability, sold, 595, 1);

			for (size_t r = 0; r < N(releases); r++)
				for (unsigned k = 0; k < MODULE_KIND_N; k++) {
					struct support s = support_find(chips[c].compute_capability,
									sold, releases[r], 1U << k);

					assert_consistent(&s, &first);
				}
		}
}

/* Of an unknown release holds what holds for all; of unseen modules, what holds for both kinds. */
static void what_is_not_known_stays_unknown(void **state)
{
	const unsigned open = 1U << MODULE_OPEN | 1U << MODULE_EDITED;
	struct support s;

	(void)state;
	s = support_find(89, CARD_GEFORCE, -1, 1U << MODULE_OPEN);
	assert_int_equal(s.mechanism, MECHANISM_BAR1_EDIT);
	s = support_find(89, CARD_GEFORCE, 580, open);
	assert_int_equal(s.mechanism, MECHANISM_UNKNOWN);
	assert_int_equal(s.way, MECHANISM_BAR1);
	s = support_find(120, CARD_GEFORCE, -1, open);
	assert_int_equal(s.mechanism, MECHANISM_UNKNOWN);
	assert_int_equal(s.way, MECHANISM_BAR1);
	s = support_find(120, CARD_GEFORCE, 610, open);
	assert_int_equal(s.mechanism, MECHANISM_BAR1);
	assert_false(s.release_tried);
	s = support_find(130, CARD_GEFORCE, 595, open);
	assert_int_equal(s.way, MECHANISM_UNKNOWN);
	assert_false(s.chip_tried);
}

/* ---- cards ---- */

static void classes_by_name_and_id(void **state)
{
	static const struct {
		const char *model;
		int device, class; /* -1: not known */
	} table[] = {
		{"NVIDIA GeForce RTX 4090", 0, CARD_GEFORCE},
		{"NVIDIA TITAN RTX", 0, CARD_PROFESSIONAL},
		{"NVIDIA A800 40GB Active", 0, CARD_PROFESSIONAL},
		{"NVIDIA A800-SXM4-80GB", 0, CARD_DATA_CENTRE},
		{"NVIDIA RTX A4000", 0, CARD_PROFESSIONAL},
		{"NVIDIA T400 4GB", 0, CARD_PROFESSIONAL},
		{"NVIDIA L40S", 0, CARD_DATA_CENTRE},
		{"NVIDIA CMP 170HX", 0, CARD_MINING},
		{NULL, 0x2684, CARD_GEFORCE},
		{NULL, 0x26b1, CARD_PROFESSIONAL},
		{NULL, 0x2330, CARD_DATA_CENTRE},
		{NULL, 0x20c2, CARD_MINING},
		{NULL, 0x1e07, -1}, /* Turing's ids are mixed */
		{NULL, 0x3f80, -1},
	};
	struct machine *m = build_two_root_ports();
	struct gpu *g = &m->gpus[0];

	(void)state;
	for (size_t i = 0; i < N(table); i++) {
		g->model = table[i].model ? fact_str(table[i].model, from)
					  : fact_str_unknown("not collected");
		g->pci->device = fact_int(table[i].device, from);
		assert_int_equal(fact_or(card_class(g), -1), table[i].class);
	}
	/* GA100 has NVLink; sold as CMP it has none, and without a name only its id tells. */
	g->compute_capability = fact_int(80, from);
	g->pci->device = fact_int(0x20c2, from);
	assert_true(card_lacks_nvlink(g));
	g->pci->device = fact_int(0x20b0, from);
	assert_false(card_lacks_nvlink(g));
	build_free(m);
}

/* ---- BAR1 ---- */

static void bar1_is_judged_once(void **state)
{
	static const struct {
		int64_t vram, bar1, sizes; /* -1: not known; BAR1 0: not mapped */
		enum bar1_cover cover;
	} table[] = {
		{24 * GIB, 32 * GIB, -1, BAR1_COVERS},
		{24 * GIB, GIB / 4, -1, BAR1_TOO_SMALL},
		{24 * GIB, 0, -1, BAR1_TOO_SMALL},
		{24 * GIB, -1, -1, BAR1_COVER_UNKNOWN},
		{-1, GIB / 4, -1, BAR1_TOO_SMALL},          /* no such card has so little memory */
		{-1, 8 * GIB, 0xff00, BAR1_TOO_SMALL},      /* up to 32 GiB are on offer */
		{-1, 32 * GIB, 0xff00, BAR1_COVER_UNKNOWN}, /* 48 GiB of memory are seen, too */
		{48 * GIB, 32 * GIB, 0xff00, BAR1_TOO_SMALL},
	};
	struct machine *m = build_two_root_ports();
	struct gpu *g = &m->gpus[0];

	(void)state;
	for (size_t i = 0; i < N(table); i++) {
		struct bar1_state b;

		g->vram_bytes = table[i].vram < 0 ? fact_int_unknown("not collected")
						  : fact_int(table[i].vram, from);
		g->bar1_bytes = table[i].bar1 < 0 ? fact_int_unknown("not collected")
				: table[i].bar1   ? fact_int(table[i].bar1, from)
						  : fact_int_absent(from);
		g->pci->rebar_sizes =
			table[i].sizes < 0 ? fact_int_absent(from) : fact_int(table[i].sizes, from);
		b = support_bar1(g);
		assert_int_equal(b.cover, table[i].cover);
		assert_true((b.why != NULL) == (b.cover == BAR1_COVER_UNKNOWN));
		assert_int_equal(b.best, table[i].sizes < 0 ? 0 : 32 * GIB);
	}
	g->vram_bytes = fact_int(10 * GIB, from); /* the smallest that is enough */
	assert_int_equal(support_bar1(g).best, 16 * GIB);
	build_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_card_with_every_driver),
		cmocka_unit_test(keys_are_for_both_cards),
		cmocka_unit_test(every_row_fits_its_card),
		cmocka_unit_test(what_is_not_known_stays_unknown),
		cmocka_unit_test(classes_by_name_and_id),
		cmocka_unit_test(bar1_is_judged_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
