/* SPDX-License-Identifier: Apache-2.0 */
/* docs/support.md: what each card can do with which driver, made from the table of src/support/. */
#include "report/report_support.h"

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "support/support.h"

#include <string.h>

/* The releases that were tried, and one behind them for what is to come. */
struct releases {
	int of[32];
	size_t n;
};

static struct releases tried_releases(void)
{
	struct releases r = {.n = 0};

	for (int release = 0; release <= release_newest(); release++)
		if (release_tried(release) && r.n < sizeof(r.of) / sizeof(r.of[0]))
			r.of[r.n++] = release;
	return r;
}

static const char *answer(const struct support *s)
{
	static const char *const answers[MECHANISM_N] = {
		[MECHANISM_UNKNOWN] = "not known",
		[MECHANISM_NONE] = "no",
		[MECHANISM_MAILBOX] = "yes, as installed",
		[MECHANISM_BAR1] = "yes, with registry keys",
		[MECHANISM_BAR1_EDIT] = "after an edit (`onehop unlock`), with registry keys",
		[MECHANISM_BAR1_PART] = "in part",
	};

	return answers[s->mechanism];
}

static bool same_answer(const struct support *a, const struct support *b)
{
	return a->mechanism == b->mechanism && !strcmp(a->why, b->why);
}

/* "535 to 580", and the last row goes on for releases to come. */
static void add_span(const struct releases *r, size_t first, size_t last, struct strbuf *out)
{
	if (first == 0 && last + 1 == r->n)
		strbuf_puts(out, "all");
	else if (last + 1 == r->n)
		strbuf_printf(out, "%d and later", r->of[first]);
	else if (first == 0)
		strbuf_printf(out, "up to %d", r->of[last]);
	else if (first == last)
		strbuf_printf(out, "%d", r->of[first]);
	else
		strbuf_printf(out, "%d to %d", r->of[first], r->of[last]);
}

/* "all | yes, as installed | why": one line for each answer of one kind of modules. */
static void add_kind(const struct chip *c, int class, enum module_kind kind,
		     const struct releases *r, struct strbuf *out)
{
	for (size_t first = 0, last; first < r->n; first = last + 1) {
		struct support s =
			support_find(c->compute_capability, class, r->of[first], 1U << kind);

		for (last = first; last + 1 < r->n; last++) {
			struct support next = support_find(c->compute_capability, class,
							   r->of[last + 1], 1U << kind);

			if (!same_answer(&s, &next))
				break;
		}
		add_span(r, first, last, out);
		strbuf_printf(out, " | %s | %s |\n", answer(&s), s.why);
	}
}

static void add_lines(const char *start, const char *lines, struct strbuf *out)
{
	for (size_t n; *lines; lines += n + 1) {
		n = strcspn(lines, "\n");
		strbuf_printf(out, "%s%.*s\n", start, (int)n, lines);
	}
}

/* The rows of a class without its name; nothing is known of a class that has no such card. */
static void add_class(const struct chip *c, int class, const struct releases *r, struct strbuf *out)
{
	AUTO_STRBUF struct strbuf proprietary = {0}, open = {0}, edited = {0};

	if (!support_find(c->compute_capability, class, r->of[0], 1U << MODULE_OPEN).chip_tried)
		return;
	add_kind(c, class, MODULE_PROPRIETARY, r, &proprietary);
	add_kind(c, class, MODULE_OPEN, r, &open);
	add_kind(c, class, MODULE_EDITED, r, &edited);
	if (!strcmp(strbuf_str(&proprietary), strbuf_str(&open))) {
		add_lines("any | ", strbuf_str(&open), out);
		return;
	}
	add_lines("proprietary | ", strbuf_str(&proprietary), out);
	add_lines("open | ", strbuf_str(&open), out);
	if (strcmp(strbuf_str(&edited), strbuf_str(&open)) != 0)
		add_lines("open, edited | ", strbuf_str(&edited), out);
}

/* Classes with the same rows stand together. */
static void add_classes(const struct chip *c, const struct releases *r, struct strbuf *out)
{
	struct strbuf rows[CARD_CLASS_N] = {{0}};

	for (int k = 0; k < CARD_CLASS_N; k++)
		add_class(c, k, r, &rows[k]);
	for (int k = 0; k < CARD_CLASS_N; k++) {
		AUTO_STRBUF struct strbuf start = {0};

		if (!rows[k].len)
			continue;
		strbuf_printf(&start, "| %s", card_class_word((enum card_class)k));
		for (int other = k + 1; other < CARD_CLASS_N; other++)
			if (!strcmp(strbuf_str(&rows[k]), strbuf_str(&rows[other]))) {
				strbuf_printf(&start, ", %s",
					      card_class_word((enum card_class)other));
				rows[other].len = 0;
			}
		strbuf_puts(&start, " | ");
		add_lines(strbuf_str(&start), strbuf_str(&rows[k]), out);
	}
	for (int k = 0; k < CARD_CLASS_N; k++)
		strbuf_done(&rows[k]);
}

static void add_nvlink(const struct chip *c, struct strbuf *out)
{
	const char *separator = "";

	strbuf_puts(out, "NVLink: ");
	for (int k = 0; k < CARD_CLASS_N; k++) {
		struct support s = support_find(c->compute_capability, k, release_newest(),
						1U << MODULE_PROPRIETARY | 1U << MODULE_OPEN);

		if (!s.chip_tried || !chip_has_nvlink(c, (enum card_class)k))
			continue;
		strbuf_printf(out, "%s%s", separator, card_class_word((enum card_class)k));
		separator = ", ";
	}
	strbuf_printf(out, "%s\n\n", *separator ? " (some models)" : "none");
}

static void add_chip(const struct chip *c, const struct releases *r, struct strbuf *out)
{
	strbuf_printf(out, "\n### %s, sm\\_%d\n\n", c->name, c->compute_capability);
	add_nvlink(c, out);
	strbuf_puts(out, "| cards | kernel modules | driver | P2P over PCIe | why |\n"
			 "|---|---|---|---|---|\n");
	add_classes(c, r, out);
}

/* ---- releases ---- */

static const char *yes_no(bool b)
{
	return b ? "yes" : "no";
}

static void add_keys(struct strbuf *out)
{
	const struct release *r;
	size_t n;

	strbuf_puts(
		out,
		"\n## Registry keys by release\n\n"
		"They stand in `NVreg_RegistryDwords` of module nvidia, for cards whose way is "
		"BAR1; `onehop unlock` prints and sets them.\nTo set them over a driver without "
		"the mechanism loses data: the driver then says yes, and copies go nowhere.\n\n"
		"| driver from | keys |\n|---|---|\n");
	r = release_table(&n);
	for (size_t i = 0; i < n; i++)
		if (r[i].keys)
			strbuf_printf(out, "| %d | `%s` |\n", r[i].from, r[i].keys);
}

static void add_traits(struct strbuf *out)
{
	const struct release *r;
	size_t n;

	strbuf_puts(
		out,
		"\n## What else differs by release\n\n"
		"| driver from | choosing BAR1 switches NVLink off | BAR1 must be larger than the "
		"memory | forced, the driver reports BAR1 with nothing mapped | a console shifts "
		"BAR1 under public edits | the driver maps BAR1 peers itself | unified memory "
		"knows BAR1 peers | edited, untested on any card |\n"
		"|---|---|---|---|---|---|---|---|\n");
	r = release_table(&n);
	for (size_t i = 0; i < n; i++)
		if (r[i].keys)
			strbuf_printf(out, "| %d | %s | %s | %s | %s | %s | %s | %s |\n", r[i].from,
				      yes_no(r[i].old_type), yes_no(r[i].cpu_needs_room),
				      yes_no(r[i].forced_caps), yes_no(r[i].console_shifts),
				      yes_no(r[i].bar1_entries), yes_no(r[i].uvm_bar1),
				      yes_no(r[i].untested));
}

static void add_tried(const struct releases *r, struct strbuf *out)
{
	for (size_t i = 0; i < r->n; i++)
		strbuf_printf(out, "%s%d", i ? ", " : "", r->of[i]);
}

void report_support_markdown(struct strbuf *out)
{
	struct releases r = tried_releases();
	const struct chip *chips;
	size_t n;

	strbuf_puts(
		out,
		"# What a card can do with which driver\n\n"
		"Made from the table in `src/support/` by `tools/generate`; do not edit. `onehop "
		"unlock` answers the same for the cards of a machine.\n\n"
		"- Cards with mailboxes do P2P over PCIe with any BAR1, as NVIDIA ships the "
		"driver.\n"
		"- Where P2P goes through BAR1, BAR1 must cover the card's memory (Resizable BAR), "
		"and CUDA's library pairs cards of one generation only.\n"
		"- A card with mailboxes next to a card of its generation that goes through BAR1 "
		"gets the registry keys too, and then goes through BAR1 as well: keys on one side "
		"of a pair lose data.\n"
		"- NVLink needs none of this.\n"
		"- Releases whose sources were read: ");
	add_tried(&r, out);
	strbuf_puts(
		out,
		". Another release or chip is judged by what the driver answers and by what its "
		"modules hold, and is said to be not tried.\n\n## Cards\n");
	chips = chip_table(&n);
	for (size_t i = 0; i < n; i++)
		add_chip(&chips[i], &r, out);
	add_keys(out);
	add_traits(out);
}
