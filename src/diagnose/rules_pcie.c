/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about PCI Express itself: links, slots, BAR1 and the windows above it. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/rules.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* ---- links ---- */

static int64_t smaller_known(struct fact_int a, struct fact_int b)
{
	if (!fact_known(a) || !fact_known(b) || a.value <= 0 || b.value <= 0)
		return 0;
	return a.value < b.value ? a.value : b.value;
}

static struct fact_int first_known(struct fact_int a, struct fact_int b)
{
	return fact_known(a) ? a : b;
}

/* What this end can: config space counts, the kernel's file repeats it. */
static struct fact_int speed_cap(const struct pci_function *f)
{
	return first_known(f->link_speed_cap, f->link_speed_max);
}

static struct fact_int width_cap(const struct pci_function *f)
{
	return first_known(f->link_width_cap, f->link_width_max);
}

static const char *ends_text(struct rule_run *run, const struct wire *w)
{
	char lower[64], port[64];

	return run_text(run, "%s can do %s, port %s can do %s", w->lower->name,
			pci_link_format(speed_cap(w->lower), width_cap(w->lower), lower,
					sizeof(lower)),
			w->port->name,
			pci_link_format(speed_cap(w->port), width_cap(w->port), port,
					sizeof(port)));
}

/* In a virtual machine the port above a device is the emulator's, and so are its link figures. */
static bool is_virtual(struct rule_run *run)
{
	return fact_known(run->m->kernel.hypervisor);
}

static struct finding *wire_finding(struct rule_run *run, const struct wire *w,
				    const char *sentence)
{
	enum confidence c = is_virtual(run) ? CONFIDENCE_POSSIBLE : CONFIDENCE_CERTAIN;
	struct finding *f =
		finding_add(run, c,
			    subject_device(run,
					   pci_is_gpu(w->lower)      ? SUBJECT_GPU
					   : pci_is_bridge(w->lower) ? SUBJECT_PORT
								     : SUBJECT_NIC,
					   w->name, w->lower),
			    "%s%s", sentence,
			    is_virtual(run) ? " (as the virtual machine shows it)" : "");

	if (is_virtual(run))
		f->severity = SEVERITY_INFO;
	f->pairs = w->gpu ? 2 * (run->m->gpu_n - 1) : 0;
	evidence_text(run, f, NULL, ends_text(run, w));
	evidence_int(run, f, run_text(run, "current width of %s", w->lower->name),
		     w->lower->link_width);
	finding_expects(f, run_text(run, "%" PRId64,
				    smaller_known(width_cap(w->lower), width_cap(w->port))));
	evidence_int(run, f, run_text(run, "current speed of %s, MT/s", w->lower->name),
		     w->lower->link_speed);
	return f;
}

/* UNKNOWN where the link could not be looked at. */
static enum verdict is_seen(struct rule_run *run, int64_t can, struct fact_int now)
{
	if (!fact_unknown(now) && (can || now.value <= 0))
		return VERDICT_OK;
	return rule_unknown(run,
			    fact_unknown(now) ? FACT_WHY(now)
					      : "the maximum of its ends is unknown",
			    "the link of %s", run->wire->lower->name);
}

static bool is_below(struct fact_int now, int64_t can)
{
	return can && fact_known(now) && now.value > 0 && now.value < can;
}

static enum verdict probe_width(struct rule_run *run)
{
	const struct wire *w = run->wire;
	int64_t can = smaller_known(width_cap(w->lower), width_cap(w->port));
	struct fact_int now = first_known(w->lower->link_width, w->port->link_width);

	if (is_below(now, can))
		wire_finding(run, w,
			     run_text(run,
				      ABOUT " runs at x%" PRId64
					    ", but both ends support x%" PRId64,
				      now.value, can));
	return is_seen(run, can, now);
}

/* P0 to P2 are the states under load; in others the card lowers its link's speed by itself. */
static bool is_busy(const struct wire *w)
{
	return !w->gpu ||
	       (fact_known(w->gpu->performance_state) && w->gpu->performance_state.value <= 2);
}

/* A port whose target is below what both ends can was set so, mostly by firmware, idle or not. */
static bool is_held_back(const struct wire *w, int64_t can)
{
	return fact_known(w->port->link_speed_target) && w->port->link_speed_target.value > 0 &&
	       w->port->link_speed_target.value < can;
}

static void report_speed(struct rule_run *run, const struct wire *w, int64_t now, int64_t can)
{
	bool held = is_held_back(w, can);
	const char *told = held ? run_text(run, "; port %s is limited to %.1f GT/s", w->port->name,
					   (double)w->port->link_speed_target.value / 1000)
				: "";
	struct finding *f =
		wire_finding(run, w,
			     run_text(run,
				      ABOUT " runs at %.1f GT/s, but both ends support %.1f GT/s%s",
				      (double)now / 1000, (double)can / 1000, told));

	evidence_int(run, f, run_text(run, "LnkCtl2 target speed of %s, MT/s", w->port->name),
		     w->port->link_speed_target);
	if (w->gpu)
		evidence_int(run, f, "performance state", w->gpu->performance_state);
}

static enum verdict probe_speed(struct rule_run *run)
{
	const struct wire *w = run->wire;
	int64_t can = smaller_known(speed_cap(w->lower), speed_cap(w->port));
	struct fact_int now = first_known(w->lower->link_speed, w->port->link_speed);

	if (!is_below(now, can))
		return is_seen(run, can, now);
	if (!is_busy(w) && !is_held_back(w, can))
		return rule_unknown(run, "it may be idle now",
				    "the speed of the link of %s under load", w->name);
	report_speed(run, w, now.value, can);
	return VERDICT_BAD;
}

/* ---- chipset ---- */

/* Bridges of chipsets by vendor and device id, as pci.ids lists them. */
static const struct chipset {
	uint16_t vendor, first, last;
	const char *name;
} chipsets[] = {
	{0x1022, 0x43b0, 0x43b4, "AMD 300 series chipset"},
	{0x1022, 0x43c6, 0x43c7, "AMD 400 series chipset"},
	{0x1022, 0x43e9, 0x43ea, "AMD 500 series chipset"},
	{0x1022, 0x43f4, 0x43f5, "AMD 600 series chipset"},
	{0x1022, 0x57a3, 0x57a4, "AMD X570 chipset"},
	{0x1022, 0x57ad, 0x57ad, "AMD X570 chipset"},
	{0x8086, 0x8c10, 0x8c1f, "Intel 8 series chipset"},
	{0x8086, 0x8c90, 0x8c9f, "Intel 9 series chipset"},
	{0x8086, 0x8d10, 0x8d1f, "Intel C610/X99 chipset"},
	{0x8086, 0xa110, 0xa11f, "Intel 100 series chipset"},
	{0x8086, 0xa167, 0xa16a, "Intel 100 series chipset"},
	{0x8086, 0xa190, 0xa19f, "Intel C620 chipset"},
	{0x8086, 0xa1e7, 0xa1ea, "Intel C620 chipset"},
	{0x8086, 0xa290, 0xa29f, "Intel 200 series chipset"},
	{0x8086, 0xa2e7, 0xa2ee, "Intel 200 series chipset"},
	{0x8086, 0xa32c, 0xa343, "Intel 300 series chipset"},
	{0x8086, 0x06a8, 0x06bf, "Intel 400 series chipset"},
	{0x8086, 0xa392, 0xa39f, "Intel 400 series chipset"},
	{0x8086, 0x43b0, 0x43c7, "Intel 500 series chipset"},
	{0x8086, 0x7ab0, 0x7acf, "Intel 600 series chipset"},
	{0x8086, 0x7a30, 0x7a4b, "Intel 700 series chipset"},
};

static const struct chipset *chipset_of(const struct pci_function *f)
{
	int64_t vendor = fact_or(f->vendor, -1), device = fact_or(f->device, -1);

	for (size_t i = 0; i < sizeof(chipsets) / sizeof(chipsets[0]); i++)
		if (vendor == chipsets[i].vendor && device >= chipsets[i].first &&
		    device <= chipsets[i].last)
			return &chipsets[i];
	return NULL;
}

static const struct pci_function *chipset_above(const struct gpu *g, const struct chipset **ret)
{
	for (const struct pci_function *f = g->pci->parent; f; f = f->parent)
		if ((*ret = chipset_of(f)))
			return f;
	return NULL;
}

static const struct pci_function *root_port(const struct pci_function *f)
{
	while (f->parent)
		f = f->parent;
	return f;
}

static enum verdict probe_chipset_slot(struct rule_run *run)
{
	const struct gpu *g = run->gpu;
	const struct chipset *c = NULL;
	const struct pci_function *at = chipset_above(g, &c), *root = root_port(g->pci);
	bool narrow = root != g->pci && fact_or(width_cap(root), 16) <= 4 && !is_virtual(run);
	struct finding *f;

	if (!at && !narrow)
		return VERDICT_OK;
	if (at)
		f = finding_here(run, CONFIDENCE_CERTAIN,
				 ABOUT
				 " is behind the %s (bridge " OTHER_DEVICE
				 "), whose link to the CPU it shares with USB, disks and network",
				 c->name);
	else
		f = finding_here(run, CONFIDENCE_POSSIBLE,
				 "root port " OTHER_DEVICE " over " ABOUT " has %" PRId64
				 " lanes: a chipset slot or an M.2 adapter, not a graphics slot",
				 width_cap(root).value);
	at = at ? at : root;
	finding_names(run, f, at);
	finding_evidence(run, f, NULL, run_text(run, "bridge %s", at->name), "%04x:%04x",
			 (unsigned)fact_or(at->vendor, 0), (unsigned)fact_or(at->device, 0));
	evidence_int(run, f, run_text(run, "lanes of root port %s", root->name), width_cap(root));
	return VERDICT_BAD;
}

/* ---- BAR1 ---- */

/*
 * Why a card's BAR1 does not cover its memory; one row of rules each. Of BAR1_UNUSED the size does
 * not matter.
 */
enum bar1_cause {
	BAR1_UNUSED,
	BAR1_FINE,
	BAR1_UNKNOWN,
	BAR1_VBIOS,
	BAR1_FIRMWARE,
	BAR1_WINDOW,
	BAR1_OTHER
};

struct bar1 {
	const struct gpu *gpu;
	enum bar1_cause cause;
	enum confidence confidence;
	struct bar1_state state;
	const struct pci_function *bridge; /* with the window that is too small */
	uint64_t window, need;
	const char *why; /* with BAR1_UNKNOWN */
	const struct resize_failure *failure;
	const struct log_line *log; /* that shows it */
};

/* What a kernel log says of a BAR1 that was to be enlarged (kernel-open/nvidia/nv-pci.c
 * nv_resize_pcie_bars, drivers/pci/setup-res.c). */
static const struct resize_failure {
	const char *mark;
	bool of_gpu; /* the line names the device */
	bool no_room;
	const char *says;
} resize_failures[] = {
	{"No address space to allocate resized BAR1", false, true, "found no room for it"},
	{"BAR resize resource not supported", false, false,
	 "was rejected: the kernel keeps the addresses that the firmware assigned"},
	{"BAR resizing failed with error `-524`", false, false,
	 "was rejected: the kernel keeps the addresses that the firmware assigned"},
	{"BAR resizing failed with error `-2`", false, true,
	 "found no room for it: other devices use the windows of the bridges above"},
	{"BAR resizing failed with error", false, false, "was rejected by the kernel"},
	{"no space", true, true, "found no room for it"},
	{"can't assign", true, true, "found no room for it"},
	{"failed to assign", true, true, "found no room for it"},
};

static bool shows_failure(const struct log_line *l, const struct resize_failure *r,
			  const struct gpu *g)
{
	if (!strstr(l->text, r->mark))
		return false;
	return r->of_gpu ? l->pci == g->pci && strstr(l->text, "BAR 1") : true;
}

/* The driver is set to enlarge BAR1, and the log shows that it failed. */
static void find_failure(struct rule_run *run, struct bar1 *b)
{
	FOR_EACH_IN(struct log_line, l, run->m->log, run->m->log_n)
	for (size_t i = 0; i < sizeof(resize_failures) / sizeof(resize_failures[0]); i++)
		if (!b->failure && shows_failure(l, &resize_failures[i], b->gpu)) {
			b->failure = &resize_failures[i];
			b->log = l;
		}
}

/* The rows that the driver prints when it gave up; it names no device. */
static const struct resize_failure *driver_gave_up(const struct log_line *l)
{
	for (size_t i = 0; i < sizeof(resize_failures) / sizeof(resize_failures[0]); i++)
		if (!resize_failures[i].of_gpu && strstr(l->text, resize_failures[i].mark))
			return &resize_failures[i];
	return NULL;
}

/* Prefetchable memory of a card besides BAR1. */
static uint64_t other_prefetchable(const struct gpu *g)
{
	const struct pci_bar *bar1 = pci_gpu_bar1(g->pci);
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(g->pci->bars) / sizeof(g->pci->bars[0]); i++)
		if (&g->pci->bars[i] != bar1 && g->pci->bars[i].prefetchable)
			sum += g->pci->bars[i].size;
	return sum;
}

/* What a bridge's window must hold so that every card below it that needs a large BAR1 gets it. */
static uint64_t window_need(struct rule_run *run, const struct pci_function *bridge, bool grown)
{
	uint64_t sum = 0;

	FOR_EACH_GPU (g, run) {
		struct bar1_state b = support_bar1(g);

		if (!pci_is_below(g->pci, bridge))
			continue;
		sum += other_prefetchable(g) +
		       (uint64_t)(grown && b.wanted > b.size ? b.wanted : b.size);
	}
	return sum;
}

/* The topmost bridge whose prefetchable window is too small, and the root port; NULL: all fit. */
static const struct pci_function *tight_bridge(struct rule_run *run, const struct gpu *g,
					       bool *ret_known)
{
	const struct pci_function *tight = NULL;

	*ret_known = g->pci->parent != NULL;
	for (const struct pci_function *b = g->pci->parent; b; b = b->parent) {
		if (!b->windows_known)
			*ret_known = false;
		else if (b->prefetch_window.size < window_need(run, b, true))
			tight = b;
	}
	return tight;
}

/* Firmware that leaves a root port's window just as large as the small BARs did not resize. */
static bool window_just_holds(struct rule_run *run, const struct pci_function *bridge)
{
	return !bridge->parent &&
	       bridge->prefetch_window.size < 2 * window_need(run, bridge, false);
}

/* On some other root port the firmware did make room: it is not switched off. */
static bool firmware_resizes(struct rule_run *run)
{
	FOR_EACH_GPU (g, run) {
		const struct pci_function *root = root_port(g->pci);

		if (root != g->pci && root->windows_known &&
		    root->prefetch_window.size >= window_need(run, root, true) &&
		    (uint64_t)support_bar1(g).wanted > 256 * MIB)
			return true;
	}
	return false;
}

static bool below_4g(const struct gpu *g)
{
	const struct pci_bar *bar = g->pci->bars_known ? pci_gpu_bar1(g->pci) : NULL;

	return bar && bar->assigned && bar->size && bar->start + bar->size <= 4 * GIB;
}

static void judge_windows(struct rule_run *run, struct bar1 *b)
{
	bool known;

	b->bridge = tight_bridge(run, b->gpu, &known);
	b->cause = BAR1_OTHER;
	b->confidence = known && b->state.largest ? CONFIDENCE_LIKELY : CONFIDENCE_POSSIBLE;
	if (below_4g(b->gpu)) {
		b->cause = BAR1_FIRMWARE;
		b->confidence = CONFIDENCE_CERTAIN;
	} else if (b->bridge) {
		b->cause = window_just_holds(run, b->bridge) && !firmware_resizes(run)
				   ? BAR1_FIRMWARE
				   : BAR1_WINDOW;
		b->confidence = CONFIDENCE_LIKELY;
	} else if (fact_is(run->m->driver.resizable_bar, 1)) {
		find_failure(run, b);
		if (b->failure) {
			b->cause = b->failure->no_room ? BAR1_WINDOW : BAR1_OTHER;
			b->confidence = CONFIDENCE_LIKELY;
		}
	}
	if (b->bridge) {
		b->window = b->bridge->prefetch_window.size;
		b->need = window_need(run, b->bridge, true);
	}
}

/* What hides whether BAR1 covers the memory; NULL: nothing. A BAR without an address is another
 * rule's. */
static const char *bar1_unknown(const struct gpu *g, const struct bar1_state *b)
{
	if (!fact_known(card_needs_bar1(g)))
		return fact_known(card_class(g)) ? FACT_WHY(card_needs_bar1(g))
						 : "its model is unknown";
	return b->size ? b->why : "the size of BAR1 is unknown";
}

/* Every other GPU is of another generation, so that CUDA pairs it with none. */
static bool lacks_partner(struct rule_run *run, const struct gpu *g)
{
	FOR_EACH_GPU (other, run)
		if (other != g && !card_other_generation(g, other))
			return false;
	return run->m->gpu_n > 1;
}

static struct bar1 judge_bar1(struct rule_run *run, const struct gpu *g)
{
	struct bar1 b = {.gpu = g, .state = support_bar1(g)};
	const struct bar1_state *state = &b.state;

	if (fact_is(card_needs_bar1(g), 0) || lacks_partner(run, g))
		return b;
	b.why = bar1_unknown(g, state);
	if (b.why) {
		b.cause = BAR1_UNKNOWN;
	} else if (state->cover == BAR1_COVERS) {
		b.cause = BAR1_FINE;
	} else if (fact_absent(g->pci->rebar_sizes)) {
		b.cause = BAR1_VBIOS;
		b.confidence = is_virtual(run) ? CONFIDENCE_POSSIBLE : CONFIDENCE_CERTAIN;
	} else if (state->largest && (state->largest < state->wanted ||
				      (!is_virtual(run) && state->largest <= state->size))) {
		/* A guest is offered no more than its present size, whatever the card has. */
		b.cause = BAR1_VBIOS;
		b.confidence = is_virtual(run) ? CONFIDENCE_POSSIBLE : CONFIDENCE_CERTAIN;
	} else {
		judge_windows(run, &b);
	}
	return b;
}

static const char *vbios_sentence(struct rule_run *run, const struct bar1 *b)
{
	if (!b->state.largest)
		return is_virtual(run) ? "the virtual machine shows no Resizable BAR capability"
				       : "the card shows no Resizable BAR capability at all";
	return run_text(run,
			is_virtual(run) ? "the virtual machine offers %s at most"
					: "its video BIOS offers %s at most",
			run_bytes(run, (uint64_t)b->state.largest));
}

static const char *firmware_sentence(struct rule_run *run, const struct bar1 *b)
{
	if (below_4g(b->gpu))
		return "it was placed below 4 GiB: Above 4G Decoding is disabled in the firmware "
		       "setup";
	return run_text(run,
			"the firmware gave the root port above a window of %s, just enough for the "
			"small BAR1 (%s needed): Resizable BAR is disabled in the firmware setup",
			run_bytes(run, b->window), run_bytes(run, b->need));
}

/* NVreg_EnableResizableBar=1 is in force, and BAR1 is as small as it was. */
static const char *failed_sentence(struct rule_run *run, const struct bar1 *b)
{
	return run_text(run,
			"the driver is set to enlarge it (NVreg_EnableResizableBar=1), which %s",
			b->failure->says);
}

static const char *window_sentence(struct rule_run *run, const struct bar1 *b)
{
	if (!b->bridge)
		return failed_sentence(run, b);
	return run_text(run,
			"the prefetchable window of bridge " OTHER_DEVICE
			" is %s, but %s is needed below it",
			run_bytes(run, b->window), run_bytes(run, b->need));
}

static const char *other_sentence(struct rule_run *run, const struct bar1 *b)
{
	if (b->failure)
		return failed_sentence(run, b);
	if (fact_is(run->m->driver.resizable_bar, 1))
		return "NVreg_EnableResizableBar=1 is already in effect, but the driver did not "
		       "enlarge it";
	if (b->confidence != CONFIDENCE_POSSIBLE)
		return "card and bridges have room for more, but it was not enlarged";
	return "unknown whether the video BIOS, the firmware setup or a bridge keeps it "
	       "small";
}

static const char *(*const bar1_sentences[])(struct rule_run *, const struct bar1 *) = {
	[BAR1_VBIOS] = vbios_sentence,
	[BAR1_FIRMWARE] = firmware_sentence,
	[BAR1_WINDOW] = window_sentence,
	[BAR1_OTHER] = other_sentence,
};

static void bar1_evidence(struct rule_run *run, struct finding *f, const struct bar1 *b)
{
	const struct pci_function *p = b->gpu->pci;

	finding_evidence(run, f, b->gpu->bar1_bytes.from ? b->gpu->bar1_bytes.from : "PCI resource",
			 run_text(run, "BAR1 of %s", p->name), "%s",
			 run_bytes(run, (uint64_t)b->state.size));
	if (fact_known(b->gpu->vram_bytes))
		finding_expects(f, run_text(run, "%s or more",
					    run_bytes(run, (uint64_t)b->gpu->vram_bytes.value)));
	if (fact_known(b->gpu->vram_bytes))
		finding_evidence(run, f, b->gpu->vram_bytes.from ? b->gpu->vram_bytes.from : "NVML",
				 run_text(run, "memory of %s", p->name), "%s",
				 run_bytes(run, (uint64_t)b->gpu->vram_bytes.value));
	if (b->state.largest)
		finding_evidence(run, f, p->rebar_sizes.from ? p->rebar_sizes.from : "config space",
				 run_text(run, "largest size in the Resizable BAR capability of %s",
					  p->name),
				 "%s", run_bytes(run, (uint64_t)b->state.largest));
	else
		evidence_int(run, f, run_text(run, "Resizable BAR capability of %s", p->name),
			     p->rebar_sizes);
	if (b->bridge)
		finding_evidence(run, f, NULL,
				 run_text(run, "prefetchable window of bridge %s", b->bridge->name),
				 "%s", run_bytes(run, b->window));
	if (fact_is(run->m->driver.resizable_bar, 1))
		evidence_int(run, f, "EnableResizableBar", run->m->driver.resizable_bar);
	if (b->log)
		finding_evidence(run, f, NULL, "kernel log", "%s", b->log->text);
}

/* ---- a resize that the log shows ---- */

/*
 * "nvidia 0000:01:00.0: BAR 1 [mem ...]: releasing": the driver begins to enlarge BAR1 of this
 * device.
 */
static bool begins_resize(const struct log_line *l)
{
	return l->pci && strstr(l->text, "BAR 1") && strstr(l->text, "releasing");
}

static const struct gpu *gpu_at(struct rule_run *run, const struct pci_function *f)
{
	FOR_EACH_GPU (g, run)
		if (f && g->pci == f)
			return g;
	return NULL;
}

/* It covers the memory now: made so by the firmware, or by a later attempt. */
static bool bar1_covers(const struct gpu *g)
{
	return g && support_bar1(g).cover == BAR1_COVERS;
}

/* A rule about BAR1 of this GPU, or of some GPU where none is named, rests on the failure. */
static bool failure_explained(struct rule_run *run, const struct gpu *named)
{
	FOR_EACH_GPU (g, run)
		if ((!named || g == named) && judge_bar1(run, g).failure)
			return true;
	return false;
}

static void report_resize(struct rule_run *run, const struct resize_failure *failure,
			  const struct log_line *begin, const struct log_line *end)
{
	const struct gpu *g = gpu_at(run, begin ? begin->pci : NULL);
	bool fine = bar1_covers(g);
	struct finding *f =
		finding_add(run, CONFIDENCE_CERTAIN,
			    g ? subject_gpu(run, g) : SUBJECT(HOST, "kernel log"),
			    "the driver's attempt to enlarge BAR1%s %s%s", g ? "" : " of a GPU",
			    failure->says, fine ? "; BAR1 covers the memory now" : "");

	if (fine || failure_explained(run, g))
		f->severity = SEVERITY_INFO;
	evidence_text(run, f, "kernel log", end->text);
	if (begin)
		evidence_text(run, f, "kernel log", begin->text);
	if (failure->no_room)
		bar_room_remedy(run, f);
	else
		finding_remedy(
			run, f,
			"in the firmware setup enable \"Above 4G Decoding\" and \"Re-Size BAR "
			"Support\" (or \"Resizable BAR\"): the firmware then assigns the large "
			"BAR1 itself");
}

/* One finding for each device, or one for all where no line names the device. */
static enum verdict probe_resize(struct rule_run *run)
{
	const struct log_line *begin = NULL;
	const struct pci_function *reported = NULL;
	bool any = false;

	FOR_EACH_IN(struct log_line, l, run->m->log, run->m->log_n)
	{
		const struct resize_failure *failure = driver_gave_up(l);

		if (begins_resize(l))
			begin = l;
		if (!failure || (any && reported == (begin ? begin->pci : NULL)))
			continue;
		report_resize(run, failure, begin, l);
		reported = begin ? begin->pci : NULL;
		any = true;
	}
	return rule_verdict(run, VERDICT_OK);
}

/* ---- what to do about it, when something is set already ---- */

#define FIRMWARE_SETTINGS "\"Above 4G Decoding\" and \"Re-Size BAR Support\" (or \"Resizable BAR\")"

#define GUEST_WINDOW "OVMF: -fw_cfg name=opt/ovmf/X-PciMmio64Mb,string=262144"

#define HOST_REMEDY                                                                                \
	"first, on the host of this virtual machine: give the card a BAR1 as large "               \
	"as its memory (Resizable BAR in the host's firmware setup, or "                           \
	"/sys/bus/pci/devices/ADDRESS/resource1_resize before the guest starts), and "             \
	"the guest room for it (" GUEST_WINDOW ")"

/* What to do for room in the bridges where pci=realloc is set already; NULL: it is not. */
static const char *without_realloc(struct rule_run *run)
{
	const char *cmdline = fact_str_or(run->m->kernel.cmdline, "");

	if (!text_has_word(cmdline, "pci=realloc") && !text_has_word(cmdline, "pci=realloc=on"))
		return NULL;
	return "pci=realloc is already on the kernel command line, so the firmware must "
	       "provide the room: enable " FIRMWARE_SETTINGS
	       ", raise \"MMIO High Size\" (\"MMIOH\") if there is one, or update the "
	       "firmware; below a hot-plug port use pci=hpmmioprefsize=64G";
}

void bar_room_remedy(struct rule_run *run, struct finding *f)
{
	const char *set = without_realloc(run);

	if (is_virtual(run))
		finding_remedy(
			run, f,
			"first, on the host of this virtual machine: give the guest a larger window "
			"for PCI devices (" GUEST_WINDOW ")%s",
			set ? "" : "; then boot the guest's kernel with pci=realloc=on");
	else if (set)
		finding_remedy(run, f, "%s", set);
}

/* A line of modprobe.d asks the driver to enlarge BAR1; NULL: none. */
static const struct modprobe_line *resize_option(const struct rule_run *run)
{
	FOR_EACH_IN(struct modprobe_line, l, run->m->modprobe, run->m->modprobe_n)
	if (l->kind == MODPROBE_OPTIONS && strstr(l->text, "NVreg_EnableResizableBar=1"))
		return l;
	return NULL;
}

#define UNREAD_LOG                                                                                 \
	"the kernel log, which was not read, shows what stopped the driver (\"BAR 1: no "          \
	"space\", \"NVRM: BAR resizing\")"

/*
 * The driver tried, and BAR1 is as small as before. The firmware is blamed only if its rule is not
 * OK.
 */
static void failed_remedy(struct rule_run *run, struct finding *f, const struct bar1 *b)
{
	const bool again = b->state.best > b->state.size;
	const bool unseen = !b->failure && !fact_is(run->m->log_read, 1);
	const bool firmware = !again || b->confidence == CONFIDENCE_POSSIBLE;

	finding_remedy(run, f, "%s%s%s%s%s",
		       again ? "stop the programs that use the GPUs, unbind the nvidia driver and "
			       "run `onehop fix bar1-small --apply`, which enlarges BAR1 until the "
			       "next reboot"
			     : "",
		       again && (firmware || unseen) ? ". If that fails, " : "",
		       firmware ? "in the firmware setup enable " FIRMWARE_SETTINGS : "",
		       firmware && unseen ? "; " : "", unseen ? UNREAD_LOG : "");
}

static void small_remedy(struct rule_run *run, struct finding *f, const struct bar1 *b)
{
	const struct modprobe_line *l = resize_option(run);

	if (fact_is(run->m->driver.resizable_bar, 1))
		failed_remedy(run, f, b);
	else if (l)
		finding_remedy(
			run, f,
			"%s:%u already sets NVreg_EnableResizableBar=1, but the module was loaded "
			"without it: rebuild the initramfs and reboot",
			l->file, l->line);
	else if (is_virtual(run))
		finding_remedy(
			run, f,
			"put \"options nvidia NVreg_EnableResizableBar=1\" into "
			"/etc/modprobe.d/nvidia-rebar.conf, rebuild the initramfs and reboot: the "
			"driver then enlarges BAR1 when it starts, as far as the capability visible "
			"in this virtual machine allows. If BAR1 stays small, enlarge it on the host");
}

/*
 * Of a card that is passed through, QEMU shows the guest no Resizable BAR capability, or one with
 * the size that the host chose. So other sizes in it are available inside the guest, unless the
 * driver tried that to no avail.
 */
static bool host_decides(struct rule_run *run, const struct bar1 *b)
{
	bool offered = b->cause == BAR1_OTHER && b->state.best > b->state.size;

	return is_virtual(run) && (!offered || fact_is(run->m->driver.resizable_bar, 1));
}

static void bar1_remedy(struct rule_run *run, struct finding *f, const struct bar1 *b)
{
	if (host_decides(run, b))
		finding_remedy(run, f, "%s%s", HOST_REMEDY,
			       b->cause == BAR1_WINDOW && !without_realloc(run)
				       ? "; then boot the guest's kernel with pci=realloc=on"
				       : "");
	else if (b->cause == BAR1_OTHER)
		small_remedy(run, f, b);
	else if (b->cause == BAR1_WINDOW && without_realloc(run))
		finding_remedy(run, f, "%s", without_realloc(run));
}

/* Cards that one sentence fits are one finding: eight alike are one fault. */
static bool same_bar1(const struct bar1 *a, const struct bar1 *b)
{
	return a->cause == b->cause && a->confidence == b->confidence &&
	       a->state.size == b->state.size && a->state.wanted == b->state.wanted &&
	       a->window == b->window && a->need == b->need &&
	       (a->cause != BAR1_WINDOW || a->bridge == b->bridge) && a->failure == b->failure &&
	       a->state.largest == b->state.largest && below_4g(a->gpu) == below_4g(b->gpu);
}

static void report_bar1(struct rule_run *run, const struct bar1 *first, const struct bar1 *all,
			bool *done)
{
	size_t n = 0, others = run->m->gpu_n;
	const char *names = NULL;
	struct finding *f;

	for (size_t i = first->gpu->index; i < others; i++) {
		if (!same_bar1(first, &all[i]))
			continue;
		done[i] = true;
		names = n++ < 8 ? run_list(run, names, run_text(run, "GPU%zu", i)) : names;
	}
	names = gpu_list_text(run, names, n);
	f = finding_add(run, first->confidence,
			n == 1 ? subject_gpu(run, first->gpu) : SUBJECT(GPUS, "BAR1"),
			"%s of %s is %s%s: %s", n == 1 ? "BAR1" : ABOUT, n == 1 ? ABOUT : names,
			run_bytes(run, (uint64_t)first->state.size),
			fact_known(first->gpu->vram_bytes)
				? run_text(run, " but must cover %s of memory",
					   run_bytes(run, (uint64_t)first->gpu->vram_bytes.value))
				: ", less than the memory of any card of this kind",
			bar1_sentences[first->cause](run, first));
	f->pci = first->gpu->pci;
	if (first->cause == BAR1_WINDOW)
		finding_names(run, f, first->bridge);
	/* As targets alone: a card's own BAR1 is what others reach. */
	f->pairs = n * (others - 1);
	for (size_t i = first->gpu->index; i < others; i++) {
		if (!same_bar1(first, &all[i]))
			continue;
		finding_names(run, f, all[i].gpu->pci);
		bar1_evidence(run, f, &all[i]);
	}
	bar1_remedy(run, f, first);
}

/* ---- an address that peers cannot reach ---- */

static bool is_out_of_reach(const struct gpu *g, const struct gpu *peer)
{
	const struct pci_bar *bar = pci_gpu_bar1(g->pci);
	int bits = card_dma_bits(peer);

	return bar->size && bits && (bar->start + bar->size - 1) >> bits;
}

static void report_high(struct rule_run *run, const struct gpu *g, const struct gpu *peer)
{
	const struct pci_bar *bar = pci_gpu_bar1(g->pci);
	struct finding *f = finding_add(
		run, CONFIDENCE_LIKELY, subject_gpu(run, g),
		"BAR1 of " ABOUT " ends at 0x%" PRIx64
		", beyond the %d address bits of GPU%zu: the driver cannot map it for that "
		"card",
		bar->start + bar->size - 1, card_dma_bits(peer), peer->index);
	f->pairs = run->m->gpu_n - 1;
	finding_evidence(run, f, NULL, run_text(run, "BAR1 of %s", g->pci->name),
			 "0x%" PRIx64 " to 0x%" PRIx64 " (resource)", bar->start,
			 bar->start + bar->size - 1);
}

static enum verdict probe_bar1_high(struct rule_run *run)
{
	const struct gpu *unread = NULL;
	bool any = false;

	FOR_EACH_GPU (g, run) {
		bool reported = false;
		struct fact_int needed = card_needs_bar1(g);

		if (fact_unknown(needed) && !fact_known(g->model))
			unread = g;
		if (!fact_is(needed, 1))
			continue;
		any = true;
		if (!pci_gpu_bar1(g->pci)->size && !fact_absent(g->bar1_bytes))
			unread = g;
		FOR_EACH_GPU (peer, run) {
			if (peer == g || reported || !is_out_of_reach(g, peer))
				continue;
			report_high(run, g, peer);
			reported = true;
		}
	}
	if (unread && !run->found)
		return rule_unknown(run, NULL, "the address of BAR1 of GPU%zu", unread->index);
	return rule_verdict(run, any ? VERDICT_OK : VERDICT_NA);
}

/* Nothing can make it larger but another video BIOS, whatever memory the card has. */
static bool is_largest_offered(const struct bar1_state *b)
{
	return b->largest > 0 && b->size >= b->largest;
}

/* Why this row is not OK although no card is bad by it; NULL: it is. */
static const char *bar1_open(const struct bar1 *b, enum bar1_cause cause)
{
	if (b->cause == BAR1_UNKNOWN)
		return cause != BAR1_VBIOS && is_largest_offered(&b->state) ? NULL : b->why;
	/* Without the capability a cause that the log shows does not exclude the one before it. */
	if (fact_unknown(b->gpu->pci->rebar_sizes) &&
	    ((cause == BAR1_VBIOS && b->cause > BAR1_VBIOS) ||
	     (cause == BAR1_FIRMWARE && b->cause == BAR1_WINDOW)))
		return FACT_WHY(b->gpu->pci->rebar_sizes);
	if (cause != BAR1_OTHER && b->cause == BAR1_OTHER && b->confidence == CONFIDENCE_POSSIBLE)
		return "neither the capability nor the bridge windows were read";
	return NULL;
}

static enum verdict bar1_verdict(struct rule_run *run, const struct bar1 *all,
				 enum bar1_cause cause)
{
	bool any = false;

	FOR_EACH_GPU (g, run) {
		const char *open = bar1_open(&all[g->index], cause);

		any |= all[g->index].cause != BAR1_UNUSED;
		if (open && !run->found)
			return rule_unknown(run, open,
					    all[g->index].cause == BAR1_UNKNOWN
						    ? "whether BAR1 of GPU%zu is large enough"
						    : "what keeps BAR1 of GPU%zu small",
					    g->index);
	}
	return rule_verdict(run, any ? VERDICT_OK : VERDICT_NA);
}

/* number: enum bar1_cause. */
static enum verdict probe_bar1(struct rule_run *run)
{
	enum bar1_cause cause = (enum bar1_cause)run->rule->number;
	size_t n = run->m->gpu_n;
	struct bar1 *all = arena_alloc(run->d->arena, n, sizeof(*all));
	bool *done = arena_alloc(run->d->arena, n, sizeof(*done));

	for (size_t i = 0; i < n; i++)
		all[i] = judge_bar1(run, &run->m->gpus[i]);
	for (size_t i = 0; i < n; i++)
		if (all[i].cause == cause && !done[i])
			report_bar1(run, &all[i], all, done);
	return bar1_verdict(run, all, cause);
}

/* Other cards do without: good to know only where NICs register GPU memory. */
static void report_bar1_info(struct rule_run *run)
{
	FOR_EACH_GPU (g, run) {
		struct finding *f;

		if (!fact_is(card_needs_bar1(g), 0) || support_bar1(g).cover != BAR1_TOO_SMALL ||
		    !run->m->rdma_n || fact_is(card_is_geforce(g), 1))
			continue;
		f = finding_add(
			run, CONFIDENCE_CERTAIN, subject_gpu(run, g),
			"BAR1 of " ABOUT
			" is %s and does not cover the memory: this does not affect P2P on this "
			"card, but NICs can register no more than that",
			run_bytes(run, (uint64_t)support_bar1(g).size));
		f->severity = SEVERITY_INFO;
		evidence_bytes(run, f, "BAR1", g->bar1_bytes);
		evidence_bytes(run, f, "memory", g->vram_bytes);
	}
}

/* Of a single GPU no other row judges what is unknown: they are about pairs. */
static enum verdict judge_single(struct rule_run *run, enum verdict v)
{
	struct bar1 b;

	if (v != VERDICT_OK || run->m->gpu_n != 1)
		return v;
	b = judge_bar1(run, &run->m->gpus[0]);
	return b.cause == BAR1_UNKNOWN
		       ? rule_unknown(run, b.why, "whether BAR1 of GPU0 is large enough")
		       : v;
}

static enum verdict probe_bar1_small(struct rule_run *run)
{
	enum verdict v = judge_single(run, probe_bar1(run));

	report_bar1_info(run);
	return rule_verdict(run, v);
}

/* ---- what makes BAR1 larger ---- */

static bool nvidia_is_used(const struct rule_run *run)
{
	const struct nvidia_driver *d = &run->m->driver;

	return (fact_known(d->loaded) && d->loaded.value) || fact_known(d->installed_version);
}

static void propose_resize(struct rule_run *run, struct change_set *out, const struct gpu *g)
{
	const struct bar1_state b = support_bar1(g);

	if (b.best <= b.size)
		return;
	propose(run, out,
		(struct change){
			.kind = CHANGE_BAR_SIZE,
			.lifetime = CHANGE_NOW,
			.target = g->pci->name,
			.bar = (unsigned)fact_or(g->pci->rebar_bar, 1),
			.value = {(unsigned)(b.size / MIB), (unsigned)(b.best / MIB)},
			.reason = TEXTS("the other GPUs can then access all of its memory"),
		});
}

/* The driver enlarges BAR1 as it starts. It was already set, to no avail: no proposal. */
static void propose_driver_resizes(struct rule_run *run, struct change_set *out)
{
	struct fact_int now = run->m->driver.resizable_bar;

	if (!nvidia_is_used(run) || fact_is(now, 1))
		return;
	propose(run, out,
		(struct change){
			.kind = CHANGE_MODULE_OPTION,
			.lifetime = CHANGE_KEPT,
			.target = "nvidia",
			.name = "NVreg_EnableResizableBar",
			.new = "1",
			.reason = TEXTS("the driver then enlarges BAR1 each time it starts"),
		});
}

/* A guest's firmware has no such settings. */
static bool propose_host(struct rule_run *run, struct change_set *out)
{
	if (is_virtual(run))
		propose_by_hand(run, out, "the host", "%s", HOST_REMEDY);
	return is_virtual(run);
}

static void propose_bar1_small(struct rule_run *run, struct change_set *out)
{
	bool offered = false, host = false;

	FOR_EACH_GPU (g, run) {
		const struct bar1 b = judge_bar1(run, g);

		if (b.cause != BAR1_OTHER)
			continue;
		host |= host_decides(run, &b);
		if (host_decides(run, &b) || !b.state.largest)
			continue;
		offered = true;
		propose_resize(run, out, g);
	}
	if (host)
		propose_host(run, out);
	if (offered)
		propose_driver_resizes(run, out);
}

static void propose_bar1_firmware(struct rule_run *run, struct change_set *out)
{
	if (propose_host(run, out))
		return;
	propose_by_hand(
		run, out, "firmware setup",
		"enable " FIRMWARE_SETTINGS
		", disable CSM, and save; if the options are missing, look for newer firmware");
}

static void propose_bar1_window(struct rule_run *run, struct change_set *out)
{
	bool guest = propose_host(run, out);

	if (!without_realloc(run))
		propose(run, out,
			(struct change){
				.kind = CHANGE_KERNEL_PARAMETER,
				.lifetime = CHANGE_KEPT,
				.target = "pci=realloc",
				.opt_in = true,
				.reason = TEXTS(
					"the kernel then makes room for a large BAR1 in the windows of the bridges "
					"above"),
				.cost = TEXTS(
					"the kernel reassigns PCI addresses instead of keeping the firmware's; some "
					"boards then fail to boot"),
			});
	propose_driver_resizes(run, out);
	if (guest)
		return;
	propose_by_hand(
		run, out, "firmware setup",
		"enable " FIRMWARE_SETTINGS
		", and raise \"MMIO High Size\" if there is one: the firmware then makes the "
		"windows large enough itself");
}

/* ---- payload, atomics ---- */

static enum verdict probe_payload(struct rule_run *run)
{
	const struct pci_function *p = run->gpu->pci, *worst = NULL;
	int64_t can = fact_or(p->payload_max, 0);
	struct finding *f;

	if (!fact_known(p->payload))
		return rule_unknown(run, fact_is(run->m->root, 0) ? FACT_NEEDS_ROOT : NULL,
				    "DevCtl of no GPU could be read");
	for (const struct pci_function *b = p->parent; b; b = b->parent) {
		if (fact_known(b->payload) && fact_is_not(p->payload, b->payload.value))
			worst = b;
		if (!fact_known(b->payload_max))
			can = 0;
		else if (b->payload_max.value < can)
			can = b->payload_max.value;
	}
	if (worst)
		f = finding_add(run, CONFIDENCE_CERTAIN, subject_gpu(run, run->gpu),
				ABOUT " sends packets of up to %" PRId64
				      " bytes, but bridge " OTHER_DEVICE
				      " above it is set to %" PRId64,
				p->payload.value, worst->payload.value);
	else if (can > fact_or(p->payload, can))
		f = finding_add(run, CONFIDENCE_CERTAIN, subject_gpu(run, run->gpu),
				ABOUT " is set to packets of %" PRId64
				      " bytes, but it and all bridges above support %" PRId64,
				p->payload.value, can);
	else
		return VERDICT_OK;
	finding_names(run, f, worst);
	for (const struct pci_function *b = p; b; b = b->parent)
		finding_evidence(run, f, NULL, run_text(run, "DevCtl of %s", b->name),
				 "MPS %" PRId64 ", DevCap %" PRId64, fact_or(b->payload, -1),
				 fact_or(b->payload_max, -1));
	return VERDICT_BAD;
}

static enum verdict probe_atomics(struct rule_run *run)
{
	bool *seen = arena_alloc(run->d->arena, run->m->pci_n + 1, sizeof(*seen));

	FOR_EACH_GPU (g, run) {
		for (const struct pci_function *b = g->pci->parent; b; b = b->parent) {
			struct finding *f;

			if (seen[b->index] || !(fact_is(b->atomic_routing, 0) ||
						fact_is(b->atomic_egress_blocked, 1)))
				continue;
			seen[b->index] = true;
			f = finding_add(run, CONFIDENCE_CERTAIN,
					subject_device(run, SUBJECT_PORT, "port", b),
					fact_is(b->atomic_egress_blocked, 1)
						? ABOUT " above GPU%zu is set to block AtomicOps"
						: ABOUT " above GPU%zu does not route AtomicOps",
					g->index);
			evidence_yes_no(run, f, "DevCap2: AtomicOp routing", b->atomic_routing);
			finding_expects(f, "yes");
			evidence_yes_no(run, f, "DevCtl2: AtomicOp egress blocking",
					b->atomic_egress_blocked);
			finding_expects(f, "no");
		}
	}
	return rule_verdict(run, VERDICT_OK);
}

/* ---- BARs without an address ---- */

static enum verdict probe_assigned(struct rule_run *run)
{
	const struct pci_function *pci = run->gpu->pci;

	if (!pci->bars_known)
		return rule_unknown(run, NULL, "the BARs of GPU%zu could not be read",
				    run->gpu->index);
	for (size_t i = 0; i < 6; i++) {
		const struct pci_bar *bar = &pci->bars[i];
		struct finding *f;

		if (!pci_bar_lacks_address(pci, i))
			continue;
		f = finding_here(run, CONFIDENCE_CERTAIN,
				 "PCI BAR %zu of " ABOUT
				 " (%s) has no address: the driver cannot start the card",
				 i, bar->size ? run_bytes(run, bar->size) : "size unknown");
		bar_room_remedy(run, f);
		finding_evidence(run, f, NULL,
				 run_text(run, "/sys/bus/pci/devices/%s/resource, line %zu",
					  pci->name, i + 1),
				 "no start");
	}
	return VERDICT_OK;
}

/* ---- one narrow card among others ---- */

/* What is this much below the best is another width or generation. */
#define NARROW_SHARE 0.9

/* GB/s of GPU i's own way to the CPU, 0: unknown. */
static double own_rate(struct rule_run *run, size_t i)
{
	struct path p;

	topology_host_rate(run->t, i, &p);
	return p.expected_gbps;
}

/* Whether the card itself could do more than its way to the CPU gives. */
static bool is_held_narrow(const struct gpu *g, const struct path *p)
{
	return pci_link_gbps(fact_or(g->pci->link_speed_max, 0),
			     fact_or(g->pci->link_width_max, 0)) > p->link_gbps;
}

struct narrow {
	const char *names;
	size_t n;
	double best, least; /* GB/s */
};

/* False: the rate of a GPU is unknown. */
static bool find_narrow(struct rule_run *run, struct narrow *ret)
{
	*ret = (struct narrow){0};
	FOR_EACH_GPU (g, run)
		ret->best = fmax(ret->best, own_rate(run, g->index));
	ret->least = ret->best;
	FOR_EACH_GPU (g, run) {
		double rate = own_rate(run, g->index);

		if (rate <= 0)
			return false;
		if (rate >= NARROW_SHARE * ret->best)
			continue;
		ret->names = run_list(run, ret->names, run_text(run, "GPU%zu", g->index));
		ret->n++;
		ret->least = fmin(ret->least, rate);
	}
	return true;
}

/*
 * A ring goes at the pace of its slowest link; of two GPUs there is no ring without the narrow one.
 */
static enum verdict probe_even(struct rule_run *run)
{
	struct narrow x;
	struct finding *f;
	bool held = false;

	if (run->m->gpu_n < 3 || all_pairs_nvlink(run))
		return VERDICT_NA;
	if (!find_narrow(run, &x))
		return rule_unknown(run, NULL,
				    "the width or speed of a GPU's link could not be read");
	if (!x.n || run->m->gpu_n - x.n < 2)
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_CERTAIN, SUBJECT(GPUS, "rings"),
		"every ring through %s is limited to %.1f GB/s; the links of the other GPUs give "
		"%.1f",
		x.names, x.least, x.best);
	f->pairs = x.n * (2 * run->m->gpu_n - x.n - 1);
	FOR_EACH_GPU (g, run) {
		struct path p;
		char link[32];

		topology_host_rate(run->t, g->index, &p);
		if (p.expected_gbps >= NARROW_SHARE * x.best)
			continue;
		held = held || is_held_narrow(g, &p);
		finding_names(run, f, g->pci);
		finding_evidence(run, f, NULL, run_text(run, "GPU%zu", g->index), "%s at %s",
				 pci_link_format(p.bottleneck_speed, p.bottleneck_width, link,
						 sizeof(link)),
				 p.bottleneck->name);
	}
	if (!held) { /* cards of an older generation are as fast as they can be */
		f->severity = SEVERITY_INFO;
		finding_remedy(
			run, f,
			"exclude it from jobs that can run on the others alone (CUDA_VISIBLE_DEVICES)");
	}
	return VERDICT_BAD;
}

#define REBAR "PCIe 6.0, 7.8.6 (Resizable BAR)"

const struct rule rules_pcie[] = {
	{
		.id = "link-width",
		.title = "Every link is as wide as both ends support",
		.why = "Half the lanes give half the bandwidth for every transfer of the device.",
		.remedy =
			"power off and reseat the card and its riser, clean the contacts, try "
			"another slot or riser; in the firmware setup check slot bifurcation (x8/x8)",
		.reference = "PCIe 6.0, 7.5.3.6 and 7.5.3.8 (LnkCap, LnkSta)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TREE,
		.scope = SCOPE_LINK,
		.probe = probe_width,
	},
	{
		.id = "link-even",
		.title = "No GPU's link is slower than those of the others",
		.why = "Collectives over all GPUs run in rings at the pace of the slowest link: one "
		       "x8 card among x16 cards halves the rate of all.",
		.remedy =
			"move the card to a slot as wide as the others' (if link-width is a finding "
			"too, fix that first), or exclude it from jobs that can run on the others "
			"alone (CUDA_VISIBLE_DEVICES)",
		.reference =
			"WU-CVGL/cluster-setup docs/05_GPU_P2P_GeForce_and_CMP.md: 12.9 GB/s of "
			"all-reduce with an x8 card in the ring, 25.6 without",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS | NEEDS_TREE,
		.probe = probe_even,
	},
	{
		.id = "link-speed",
		.title = "Every link is as fast as both ends support, under load",
		.why = "Each generation below the maximum halves the bandwidth.",
		.remedy =
			"set the slot's PCIe generation to Auto or the highest in the firmware "
			"setup; if it already is, the signal is too poor: reseat the card, or use a "
			"shorter or better riser",
		.reference = "PCIe 6.0, 7.5.3.6, 7.5.3.8 and 7.5.3.19 (LnkCap, LnkSta, LnkCtl2)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TREE,
		.scope = SCOPE_LINK,
		.probe = probe_speed,
	},
	{
		.id = "gpu-behind-chipset",
		.title = "Every GPU is in a slot with CPU lanes",
		.why = "The chipset's link to the CPU has four or eight lanes for everything behind "
		       "it; peer traffic through it is slow, and many boards reject it.",
		.remedy =
			"move the card to a slot that the board's manual lists as connected to the "
			"CPU",
		.reference = "board manual, block diagram; pci.ids",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_GPU | NEEDS_TREE,
		.scope = SCOPE_GPU,
		.probe = probe_chipset_slot,
	},
	{
		.id = "bar-assigned",
		.title = "Every BAR of every GPU has an address",
		.why = "The driver cannot start a card with an unassigned BAR.",
		.remedy = "enable Above 4G Decoding in the firmware setup, or boot the kernel with "
			  "pci=realloc=on",
		.reference = "Documentation/admin-guide/kernel-parameters.txt, pci=realloc; "
			     "aikitoria/open-gpu-kernel-modules#9",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_GPU,
		.scope = SCOPE_GPU,
		.probe = probe_assigned,
	},
	{
		.id = "bar1-vbios",
		.turn = TURN_EARLY,
		.title = "The card's video BIOS offers a BAR1 that covers its memory",
		.why = "GeForce P2P goes through BAR1, which must cover all of the GPU's memory.",
		.remedy =
			"update the video BIOS with the card maker's tool for exactly this model; "
			"firmware settings and kernel parameters do not help",
		.reference = REBAR "; noonghunna/club-3090#734",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_bar1,
		.number = BAR1_VBIOS,
	},
	{
		.id = "bar1-firmware",
		.turn = TURN_EARLY,
		.title = "Resizable BAR is enabled in the firmware setup",
		.why = "GeForce P2P goes through BAR1, which must cover all of the GPU's memory.",
		.remedy = "in the firmware setup enable \"Above 4G Decoding\" and \"Re-Size BAR "
			  "Support\", disable CSM, and save; if the options are missing, look for "
			  "newer firmware",
		.reference = REBAR
		"; tinygrad/open-gpu-kernel-modules#16, aikitoria/open-gpu-kernel-modules#7",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS | NEEDS_TREE,
		.probe = probe_bar1,
		.number = BAR1_FIRMWARE,
		.propose = propose_bar1_firmware,
	},
	{
		.id = "bar1-window",
		.turn = TURN_EARLY,
		.title = "The bridges above each GPU have room for a BAR1 that covers its memory",
		.why = "A BAR cannot be larger than the window of any bridge above it; resizing "
		       "fails with \"no space\".",
		.remedy =
			"boot the kernel with pci=realloc=on (and pci=hpmmioprefsize=64G below a "
			"hot-plug port); in the firmware setup raise \"MMIO High Size\" if there is "
			"one",
		.reference = "Documentation/admin-guide/kernel-parameters.txt, pci=realloc and "
			     "hpmmioprefsize; drivers/pci/setup-res.c pci_resize_resource",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS | NEEDS_TREE,
		.probe = probe_bar1,
		.number = BAR1_WINDOW,
		.propose = propose_bar1_window,
	},
	{
		.id = "bar1-small",
		.turn = TURN_EARLY,
		.title = "BAR1 covers the memory of every GPU that needs it for P2P",
		.why = "GeForce P2P goes through BAR1, which must cover all of the GPU's memory.",
		.remedy =
			"enable \"Above 4G Decoding\" and \"Re-Size BAR Support\" in the firmware "
			"setup; put \"options nvidia NVreg_EnableResizableBar=1\" into "
			"/etc/modprobe.d/nvidia-rebar.conf, rebuild the initramfs and reboot: the "
			"driver then enlarges BAR1",
		.reference = REBAR "; kernel-open/nvidia/nv-pci.c nv_resize_pcie_bars",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.reason = REASON_BAR1_SMALL,
		.predicts = true,
		.needs = NEEDS_GPU,
		.probe = probe_bar1_small,
		.number = BAR1_OTHER,
		.propose = propose_bar1_small,
	},
	{
		.id = "bar1-resize",
		.turn = TURN_EARLY,
		.title = "The kernel enlarged BAR1 wherever the driver asked for it",
		.why = "The BAR1 stays as small as the firmware made it, and GeForce P2P needs one "
		       "that covers the GPU's memory.",
		.remedy = "boot the kernel with pci=realloc=on (and pci=hpmmioprefsize=64G below a "
			  "hot-plug port); in the firmware setup enable \"Above 4G Decoding\" and "
			  "\"Re-Size BAR Support\"",
		.reference = "kernel-open/nvidia/nv-pci.c nv_resize_pcie_bars; "
			     "drivers/pci/setup-res.c pci_resize_resource",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG,
		.probe = probe_resize,
	},
	{
		.id = "bar1-high",
		.title = "BAR1 is within reach of the other cards",
		.why = "Cards up to Ada have 47 address bits (128 TiB). They cannot map a BAR1 that "
		       "the firmware places beyond that.",
		.remedy =
			"in the firmware setup lower the base of the window for large BARs (\"MMIO "
			"High Base\", \"MMIOH Base\", \"Above 4G MMIO Base\") so that BAR1 ends "
			"below 128 TiB",
		.reference =
			"open-gpu-kernel-modules g_gpu_arch_nvoc.c gpuarchGetSystemPhysAddrWidth, "
			"kern_bus_gh100.c kbusCreateP2PMappingForBar1P2P",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_bar1_high,
	},
	{
		.id = "payload-size",
		.title = "The packet size on each GPU's path is uniform and as large as all its "
			 "devices support",
		.why = "Small packets spend more of the link on headers; a packet larger than a "
		       "port accepts is an error.",
		.remedy = "boot the kernel with pci=pcie_bus_perf (or pci=pcie_bus_safe)",
		.reference = "PCIe 6.0, 7.5.3.4 (DevCtl); "
			     "Documentation/admin-guide/kernel-parameters.txt, pci=pcie_bus_perf",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU | NEEDS_CONFIG_SPACE | NEEDS_TREE,
		.scope = SCOPE_GPU,
		.probe = probe_payload,
		.one_is_enough = true,
	},
	{
		.id = "atomics-routed",
		.title = "The ports above the GPUs route AtomicOps",
		.why = "Atomic operations on another GPU's memory over PCIe need every port on the "
		       "path to route them; copies and NCCL do not use them.",
		.remedy = "no change is needed unless a program uses peer atomics",
		.reference = "PCIe 6.0, 6.15 (AtomicOps), 7.5.3.15 (DevCap2)",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_TWO_GPUS | NEEDS_CONFIG_SPACE | NEEDS_TREE,
		.probe = probe_atomics,
	},
	{0},
};
