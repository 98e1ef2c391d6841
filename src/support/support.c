/* SPDX-License-Identifier: Apache-2.0 */
#include "support/support.h"

#include <stdio.h>

/* ---- the table ---- */

#define CLASS(c) (1U << (c))
#define KIND(k)  (1U << (k))

#define GEFORCE CLASS(CARD_GEFORCE)
#define OTHERS  (CLASS(CARD_PROFESSIONAL) | CLASS(CARD_DATA_CENTRE))
#define MINING  CLASS(CARD_MINING)
#define ANYONE  (GEFORCE | OTHERS | MINING)

#define PROPRIETARY KIND(MODULE_PROPRIETARY)
#define STOCK       KIND(MODULE_OPEN)
#define EDITED      KIND(MODULE_EDITED)
#define OPEN        (STOCK | EDITED)
#define ANY_KIND    (PROPRIETARY | OPEN)

#define LAST 9999 /* release */

#define OWN_GSP    "NVIDIA driver README, \"Open Linux Kernel Modules\": Turing and later"
#define BLACKWELL  "NVIDIA driver README, \"Open Linux Kernel Modules\": Blackwell and later"
#define P2P_CAPS   "p2p_caps.c; the card's firmware answers for its model"
#define STATIC     "kern_bus_tu102.c kbusIsStaticBar1Supported"
#define HAL        "g_kern_bus_nvoc.c: function table by chip, 535 to 595"
#define PTE        "nv_gpu_ops.c nvGpuOpsBuildExternalAllocPtes"
#define UVM        "nvidia-uvm uvm_gpu.c: UVM_GPU_LINK_PCIE_BAR1 from 590 on"
#define TOO_OLD    "the driver is older than this chip"
#define CMP_REPORT "WU-CVGL/cluster-setup docs/05_GPU_P2P_GeForce_and_CMP.md"

/*
 * The first row that fits decides. Where the chain, the rules and the unlock differed before there was
 * this table, the comment above the row says what decided.
 */
/* clang-format off */
static const struct row {
	int cc_first, cc_last;
	unsigned classes;
	int from, to; /* releases */
	unsigned kinds;
	enum mechanism way, mechanism;
	const char *why, *reference;
} rows[] = {
	/* Up to Volta; TITAN V and Quadro GV100 count as professional, and no GeForce has a GV100. */
	{0, 61, ANYONE, 0, LAST, PROPRIETARY, MECHANISM_MAILBOX, MECHANISM_MAILBOX,
	 "it has mailboxes, which the driver uses", P2P_CAPS},
	{62, 72, OTHERS, 0, LAST, PROPRIETARY, MECHANISM_MAILBOX, MECHANISM_MAILBOX,
	 "it has mailboxes, which the driver uses", P2P_CAPS},
	{0, 61, ANYONE, 0, LAST, OPEN, MECHANISM_MAILBOX, MECHANISM_NONE,
	 "the open modules do not support this chip", OWN_GSP},
	{62, 72, OTHERS, 0, LAST, OPEN, MECHANISM_MAILBOX, MECHANISM_NONE,
	 "the open modules do not support this chip", OWN_GSP},

	/* CMP cards answer for themselves: keys were refused, and forcing hung the host. */
	{75, 86, MINING, 0, LAST, ANY_KIND, MECHANISM_UNKNOWN, MECHANISM_UNKNOWN,
	 "P2P support of CMP cards differs by model; ForceP2P hung a host with one",
	 CMP_REPORT},

	/* GeForce 20: BAR1 ends at 256 MiB. Without Resizable BAR the static map of 565 does not help. */
	{75, 75, GEFORCE, 0, LAST, ANY_KIND, MECHANISM_NONE, MECHANISM_NONE,
	 "the driver has no P2P over PCIe for it, and without Resizable BAR its BAR1 "
	 "cannot cover the memory", STATIC},
	{75, 75, OTHERS, 0, LAST, ANY_KIND, MECHANISM_MAILBOX, MECHANISM_MAILBOX,
	 "it has mailboxes, which the driver uses", P2P_CAPS},

	/* Data centre and workstation. Forcing BAR1 takes their mailbox away (kern_bus_gm107.c). */
	{80, 80, OTHERS, 0, LAST, ANY_KIND, MECHANISM_MAILBOX, MECHANISM_MAILBOX,
	 "it has mailboxes, which the driver uses", P2P_CAPS},
	{86, 86, OTHERS, 0, LAST, ANY_KIND, MECHANISM_MAILBOX, MECHANISM_MAILBOX,
	 "it has mailboxes, which the driver uses", P2P_CAPS},
	{89, 89, OTHERS, 0, LAST, ANY_KIND, MECHANISM_MAILBOX, MECHANISM_MAILBOX,
	 "it has mailboxes, which the driver uses", P2P_CAPS},
	{90, 90, OTHERS, 0, LAST, ANY_KIND, MECHANISM_MAILBOX, MECHANISM_MAILBOX,
	 "it has mailboxes, which the driver uses; registry keys can select BAR1", P2P_CAPS "; " HAL},
	{100, 100, OTHERS, 0, 559, OPEN, MECHANISM_MAILBOX, MECHANISM_NONE, TOO_OLD, HAL},
	{103, 103, OTHERS, 0, 574, OPEN, MECHANISM_MAILBOX, MECHANISM_NONE, TOO_OLD, HAL},
	{120, 120, OTHERS, 0, 569, OPEN, MECHANISM_MAILBOX, MECHANISM_NONE, TOO_OLD, HAL},
	{121, 121, OTHERS, 0, 574, OPEN, MECHANISM_MAILBOX, MECHANISM_NONE, TOO_OLD, HAL},
	{100, 103, OTHERS, 0, LAST, OPEN, MECHANISM_MAILBOX, MECHANISM_MAILBOX,
	 "it has mailboxes, which the driver uses; registry keys can select BAR1", P2P_CAPS "; " HAL},
	{120, 121, OTHERS, 0, LAST, OPEN, MECHANISM_MAILBOX, MECHANISM_MAILBOX,
	 "the driver allows P2P for it; registry keys can select BAR1 from 580 on", P2P_CAPS "; " HAL},
	{100, 121, OTHERS, 0, LAST, PROPRIETARY, MECHANISM_MAILBOX, MECHANISM_NONE,
	 "only the open modules support this chip", BLACKWELL},

	/* GeForce 30 and 40: no mailbox, and stubs in the function table of every release. By chip, not
	 * from 80 on: no GeForce has a GA100, and of a chip to come nothing is known. */
	{86, 89, GEFORCE, 0, LAST, PROPRIETARY, MECHANISM_BAR1, MECHANISM_NONE,
	 "the proprietary modules have no BAR1 P2P for it and the card has no mailbox", HAL},
	{86, 89, GEFORCE, 0, LAST, EDITED, MECHANISM_BAR1, MECHANISM_BAR1,
	 "the loaded module supports P2P through BAR1 for it", HAL},
	{86, 89, GEFORCE, 0, LAST, STOCK, MECHANISM_BAR1, MECHANISM_BAR1_EDIT,
	 "the loaded module has only stubs for BAR1 P2P on it, and the card has no "
	 "mailbox", HAL},

	/* GeForce 50. Not 120 alone: GB20B and GB20C (121) have the same functions. With the proprietary
	 * modules it has nothing, whatever the release: they do not drive it. */
	{120, 121, GEFORCE, 0, LAST, PROPRIETARY, MECHANISM_BAR1, MECHANISM_NONE,
	 "the proprietary modules do not support this chip, and the card has no "
	 "mailbox", BLACKWELL},
	{120, 120, GEFORCE, 0, 569, OPEN, MECHANISM_BAR1, MECHANISM_NONE, TOO_OLD, HAL},
	{121, 121, GEFORCE, 0, 574, OPEN, MECHANISM_BAR1, MECHANISM_NONE, TOO_OLD, HAL},
	{120, 121, GEFORCE, 0, 579, OPEN, MECHANISM_BAR1, MECHANISM_NONE,
	 "before driver 580 page table entries of this chip have a format that no "
	 "edit covers", PTE},
	{120, 121, GEFORCE, 580, 589, OPEN, MECHANISM_BAR1, MECHANISM_BAR1_PART,
	 "before driver 590 the unified-memory module does not support BAR1 peers", UVM},
	{120, 121, GEFORCE, 590, LAST, OPEN, MECHANISM_BAR1, MECHANISM_BAR1,
	 "the driver supports P2P through BAR1 for it", HAL "; " UVM},
};
/* clang-format on */

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct support nothing_known = {
	.why = "no rule is known for this chip and class",
};

static bool is_chip_row(const struct row *r, int64_t cc, int class)
{
	return cc >= r->cc_first && cc <= r->cc_last && class >= 0 && r->classes & CLASS(class);
}

/* Of an unknown release holds what holds for all. */
static bool is_release_row(const struct row *r, int release)
{
	return release < 0 ? !r->from && r->to == LAST : release >= r->from && release <= r->to;
}

static struct support of_row(const struct row *r)
{
	return (struct support){.mechanism = r->mechanism,
				.way = r->way,
				.chip_tried = true,
				.why = r->why,
				.reference = r->reference};
}

/* Of one kind of modules. */
static struct support find_one(int64_t cc, int class, int release, unsigned kind)
{
	struct support s = nothing_known;

	for (size_t i = 0; i < ROWS; i++) {
		const struct row *r = &rows[i];

		if (!is_chip_row(r, cc, class) || !(r->kinds & kind))
			continue;
		if (is_release_row(r, release))
			return of_row(r);
		/* The release is unknown: the card's own way is. */
		if (release < 0 && s.way == MECHANISM_UNKNOWN)
			s = (struct support){.way = r->way,
					     .chip_tried = true,
					     .why = "the driver's release is unknown"};
	}
	return s;
}

struct support support_find(int64_t compute_capability, int class, int release, unsigned kinds)
{
	struct support s = nothing_known;
	bool first = true;

	for (unsigned k = 0; k < MODULE_KIND_N; k++) {
		struct support other;

		if (!(kinds & KIND(k)))
			continue;
		other = find_one(compute_capability, class, release, KIND(k));
		if (first)
			s = other;
		else if (other.mechanism != s.mechanism) {
			s.mechanism = MECHANISM_UNKNOWN;
			s.why = "only an edited open module has BAR1 P2P for it, and whether this one is "
				"edited is unknown";
		}
		first = false;
	}
	s.release_tried = release_tried(release);
	return s;
}

/* ---- of a machine ---- */

/* Only the open modules' functions can be edited; where none are named, they could not be seen. */
unsigned support_module_kinds(const struct nvidia_driver *d)
{
	if (fact_is(d->flavor, DRIVER_PROPRIETARY))
		return PROPRIETARY;
	if (fact_is(d->bar1_p2p.loaded, 1))
		return EDITED;
	if (fact_is(d->bar1_p2p.loaded, 0))
		return STOCK;
	return fact_known(d->flavor) ? OPEN : ANY_KIND;
}

/* A chip that is not in the table, by what the modules hold: functions that are real for every chip
 * are real for this one too. */
static struct support by_content(struct support s, const struct gpu *g, unsigned kinds)
{
	if (s.chip_tried || kinds != EDITED || !fact_is(card_is_geforce(g), 1))
		return s;
	s.way = s.mechanism = MECHANISM_BAR1;
	s.why = "the loaded module supports P2P through BAR1 on every chip; this chip was "
		"not tested";
	s.reference = HAL;
	return s;
}

struct support support_of(const struct machine *m, const struct gpu *g)
{
	unsigned kinds = support_module_kinds(&m->driver);
	struct support s = support_find(fact_or(card_compute_capability(g), -1),
					(int)fact_or(card_class(g), -1),
					driver_branch(m->driver.module_version), kinds);

	return by_content(s, g, kinds);
}

struct support support_through_bar1(const struct machine *m, const struct gpu *g)
{
	unsigned kinds = support_module_kinds(&m->driver);
	struct support s = support_find(fact_or(card_compute_capability(g), -1), CARD_GEFORCE,
					driver_branch(m->driver.module_version), kinds);

	return s.way == MECHANISM_BAR1 ? s : nothing_known;
}

bool support_undriven(const struct machine *m, const struct gpu *g)
{
	const struct chip *c = card_chip(g);
	enum chip_modules want = c ? c->modules : CHIP_EITHER;

	if (want == CHIP_EITHER || fact_known(g->nvml_index) || fact_is(m->driver.loaded, 0) ||
	    !fact_known(m->driver.flavor))
		return false;
	return (m->driver.flavor.value == DRIVER_OPEN) != (want == CHIP_OPEN);
}

static enum mechanism way_of(const struct gpu *g)
{
	int64_t cc = fact_or(card_compute_capability(g), -1);
	int class = (int)fact_or(card_class(g), -1);

	for (size_t i = 0; i < ROWS; i++)
		if (is_chip_row(&rows[i], cc, class))
			return rows[i].way;
	return MECHANISM_UNKNOWN;
}

struct fact_int card_needs_bar1(const struct gpu *g)
{
	struct fact_int class = card_class(g), cc = card_compute_capability(g);
	enum mechanism way = way_of(g);

	if (!fact_known(class))
		return class;
	if (!fact_known(cc))
		return cc;
	if (way == MECHANISM_UNKNOWN)
		return fact_int_unknown("no rule is known for this chip");
	return fact_int(way == MECHANISM_BAR1, class.from);
}

/* Of a card whose chip is unknown the class says it, where it is none of the market's. */
static struct fact_int is_denied_as_geforce(const struct gpu *g)
{
	struct fact_int needs = card_needs_bar1(g), geforce = card_is_geforce(g);

	return !fact_known(needs) && fact_is(geforce, 0) ? geforce : needs;
}

struct fact_int support_geforce_denial(const struct gpu *a, const struct gpu *b, enum p2p_status s)
{
	struct fact_int one = is_denied_as_geforce(a), other = is_denied_as_geforce(b);

	if (s != P2P_CHIPSET_NOT_SUPPORTED && s != P2P_GPU_NOT_SUPPORTED && s != P2P_NOT_SUPPORTED)
		return fact_int(0, one.from);
	return fact_is(one, 0) || fact_is(other, 1) ? one : other;
}

int support_native_from(const struct gpu *g)
{
	int64_t cc = fact_or(card_compute_capability(g), -1);
	int class = (int)fact_or(card_class(g), -1);

	for (size_t i = 0; i < ROWS; i++)
		if (is_chip_row(&rows[i], cc, class) && rows[i].kinds & STOCK &&
		    rows[i].mechanism == MECHANISM_BAR1)
			return rows[i].from;
	return 0;
}

/* ---- BAR1 ---- */

#define MIB ((int64_t)1 << 20)

/* No card that depends on BAR1 has as little memory as the BAR1 that it starts with. */
#define BAR1_AT_START (256 * MIB)

static int64_t power_of_two(int64_t n)
{
	int64_t p = MIB;

	while (p < n && p < (int64_t)1 << 62)
		p <<= 1;
	return p;
}

/* Bit n of the capability: 2^n MiB. The largest BAR has 2^63 bytes. */
#define BAR1_OFFERS 43

static bool is_offered(const struct gpu *g, unsigned n)
{
	return (uint64_t)fact_or(g->pci->rebar_sizes, 0) >> n & 1;
}

static int64_t largest_offer(const struct gpu *g)
{
	unsigned n = BAR1_OFFERS;

	while (n-- > 0)
		if (is_offered(g, n))
			return MIB << n;
	return 0;
}

static int64_t best_offer(const struct gpu *g, const struct bar1_state *b)
{
	for (unsigned n = 0; n < BAR1_OFFERS; n++)
		if (is_offered(g, n) && MIB << n >= b->wanted)
			return MIB << n;
	return b->largest;
}

static enum bar1_cover cover_of(const struct bar1_state *b, const struct gpu *g)
{
	bool memory_known = fact_known(g->vram_bytes) && g->vram_bytes.value > 0;

	if (memory_known)
		return b->size >= g->vram_bytes.value ? BAR1_COVERS : BAR1_TOO_SMALL;
	/* The largest that the card offers may still be less than its memory. */
	return b->size <= BAR1_AT_START || b->size < b->largest ? BAR1_TOO_SMALL
								: BAR1_COVER_UNKNOWN;
}

struct bar1_state support_bar1(const struct gpu *g)
{
	struct bar1_state b = {.largest = largest_offer(g)};

	b.wanted = fact_known(g->vram_bytes) && g->vram_bytes.value > 0
			   ? power_of_two(g->vram_bytes.value)
			   : b.largest;
	b.best = best_offer(g, &b);
	if (fact_unknown(g->bar1_bytes)) {
		b.why = "the size of BAR1 is unknown";
		return b;
	}
	b.size = fact_or(g->bar1_bytes, 0);
	b.cover = cover_of(&b, g);
	if (b.cover == BAR1_COVER_UNKNOWN)
		b.why = "the size of its memory is unknown";
	return b;
}

static struct fact_int edit_shifts(const struct nvidia_driver *d)
{
	const struct bar1_p2p *p = &d->bar1_p2p;

	if (!driver_release(d)->console_shifts)
		return fact_int(0, d->module_version.from);
	if (!fact_is(p->loaded, 1))
		return p->loaded;
	return fact_unknown(p->mark) ? fact_int_unknown(p->mark.from)
				     : fact_int(fact_absent(p->mark), p->mark.from);
}

struct fact_int support_console_shifts(const struct nvidia_driver *d, const struct gpu *g)
{
	struct fact_int shifts = edit_shifts(d), console = card_has_console(g);

	return fact_is(shifts, 1) || fact_is(console, 0) ? console : shifts;
}

bool support_may_misreport(const struct nvidia_driver *d, const struct gpu *g)
{
	enum { ADA = 89, FIRST_RELEASE = 520, FIXED_RELEASE = 525, FIXED_MINOR = 105 };
	int release = 0, minor = 0;

	if (!fact_is(card_is_geforce(g), 1) || !fact_is(card_compute_capability(g), ADA))
		return false;
	if (!fact_known(d->module_version))
		return true;
	return sscanf(d->module_version.value, "%5d.%5d", &release, &minor) == 2 &&
	       release >= FIRST_RELEASE &&
	       (release < FIXED_RELEASE || (release == FIXED_RELEASE && minor < FIXED_MINOR));
}

enum forcing support_forcing(const struct support *s, const struct bar1_state *b)
{
	if (s->way == MECHANISM_MAILBOX)
		return FORCING_FINE;
	if (s->way != MECHANISM_BAR1)
		return FORCING_DOUBTFUL;
	if (s->mechanism == MECHANISM_NONE || s->mechanism == MECHANISM_BAR1_EDIT ||
	    b->cover == BAR1_TOO_SMALL)
		return FORCING_LOSES_DATA;
	return s->mechanism == MECHANISM_BAR1 ? FORCING_FINE : FORCING_DOUBTFUL;
}

/* ---- managed memory ---- */

/* Hopper's and later page tables name such a peer: uvm_hopper_mmu.c against uvm_turing_mmu.c. */
bool card_needs_uvm_gate(const struct gpu *g)
{
	enum { HOPPER = 90 };
	struct fact_int cc = card_compute_capability(g);

	return fact_known(cc) && cc.value < HOPPER;
}

struct fact_int driver_uvm_gate(const struct nvidia_driver *d)
{
	return fact_absent(d->uvm_gate.loaded) ? d->uvm_gate.installed : d->uvm_gate.loaded;
}
