/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop unlock` prints for a machine: its cards, what each needs, and the manual steps. */
#include "report/report_unlock.h"

#include "base/strbuf.h"
#include "report/report_impl.h"
#include "report/report_json_impl.h"
#include "support/support.h"

#include <string.h>

static const struct {
	const char *label, *sentence;
	enum style style;
} words[ACTION_N] = {
	[ACTION_REPLACE] =
		{"replace",
		 "The running modules have a harmful edit. Replace them with the current edit.",
		 STYLE_BAD},
	[ACTION_PATCH] =
		{"edit the driver",
		 "P2P is possible on this machine. Missing: an edited driver and module options.",
		 STYLE_WARN},
	[ACTION_REBUILD] =
		{"rebuild",
		 "P2P works until the next boot. Then the edited modules must be built and installed again.",
		 STYLE_WARN},
	[ACTION_RELOAD] = {"load",
			   "The edited modules are installed but not loaded. Reboot to load them.",
			   STYLE_WARN},
	[ACTION_OPTIONS] = {"set options",
			    "P2P is possible on this machine. Missing: only module options.",
			    STYLE_WARN},
	[ACTION_REFUSED] = {"blocked",
			    "Blocked: something else has to change first (see the cards).",
			    STYLE_BAD},
	[ACTION_UNKNOWN] = {"unknown", "Unknown: not enough could be read (see the cards).",
			    STYLE_WARN},
	[ACTION_IN_FORCE] = {"in effect", "P2P is in effect. To check the data: onehop test",
			     STYLE_GOOD},
	[ACTION_NOTHING] = {"nothing", "P2P needs no unlock on these cards.", STYLE_GOOD},
};

/* Cards with the same text. */
static bool is_alike(const struct card_requirement *a, const struct card_requirement *b)
{
	return a->action == b->action && strcmp(a->why, b->why) == 0 &&
	       strcmp(a->obstacle ? a->obstacle : "", b->obstacle ? b->obstacle : "") == 0 &&
	       strcmp(fact_str_or(a->gpu->model, ""), fact_str_or(b->gpu->model, "")) == 0;
}

static bool is_first_of_kind(const struct unlock_requirements *n, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (is_alike(&n->cards[k], &n->cards[i]))
			return false;
	return true;
}

/* "GPU0, GPU1, GPU3" */
static void add_numbers(struct strbuf *b, const struct unlock_requirements *n, size_t first)
{
	for (size_t i = first; i < n->n; i++)
		if (is_alike(&n->cards[first], &n->cards[i]))
			strbuf_printf(b, "%sGPU%zu", b->len ? ", " : "", n->cards[i].gpu->index);
}

static void report_card(struct document *out, const struct unlock_requirements *n, size_t i)
{
	const struct card_requirement *c = &n->cards[i];
	AUTO_STRBUF struct strbuf numbers = {0};
	char name[256];

	add_numbers(&numbers, n, i);
	document_styled_item(out, STYLE_STRONG, c->obstacle ? STYLE_BAD : words[c->action].style, 2,
			     c->obstacle ? "blocked" : words[c->action].label, "%s (%s): %s%s%s.",
			     strbuf_str(&numbers),
			     fact_known(c->gpu->model)
				     ? c->gpu->model.value
				     : pci_device_name(c->gpu->pci, name, sizeof(name)),
			     c->why, c->obstacle ? ", but " : "", c->obstacle ? c->obstacle : "");
	if (c->obstacle)
		document_item(out, STYLE_DIM, 4, "To change:", "see `onehop check`.");
	if (c->change)
		document_item(out, STYLE_DIM, 4,
			      c->action == ACTION_UNKNOWN ? "To find out:" : "To change:", "%s.",
			      c->change);
	if (c->reference && c->action != ACTION_NOTHING)
		document_item(out, STYLE_DIM, 4, "See:", "%s", c->reference);
}

/* Of one probe: "has it", "stubs" ... */
static const char *probe_words(struct fact_int f)
{
	if (fact_is(f, 1))
		return "has BAR1 P2P for every chip";
	if (fact_is(f, 0))
		return "has only stubs for chips before Hopper";
	return fact_absent(f) ? "has no such function" : "unknown";
}

static void report_probe(struct document *out, const struct machine *m)
{
	const struct bar1_p2p *p = &m->driver.bar1_p2p;
	AUTO_STRBUF struct strbuf b = {0};

	if (fact_is(m->driver.loaded, 0))
		strbuf_puts(&b, "not loaded");
	else if (fact_unknown(p->loaded))
		strbuf_printf(&b, "loaded: could not be read (%s)", FACT_WHY(p->loaded));
	else
		strbuf_printf(&b, "loaded: %s", probe_words(p->loaded));
	if (!fact_unknown(p->installed))
		strbuf_printf(&b, "; on disk: %s", probe_words(p->installed));
	if (fact_known(p->mark))
		strbuf_printf(&b, ", edited by onehop (%s)", p->mark.value);
	document_item(out, STYLE_STRONG, 0, "Module:", "%s", strbuf_str(&b));
}

static const char *gate_words(struct fact_int f)
{
	if (fact_absent(f))
		return "missing";
	return fact_is(f, 1) ? "has the gate for managed memory"
			     : "lacks the gate for managed memory";
}

static bool any_needs_gate(const struct unlock_requirements *n)
{
	for (size_t i = 0; i < n->n; i++)
		if (card_needs_uvm_gate(n->cards[i].gpu))
			return true;
	return false;
}

/* For a driver that is edited, loaded or on disk. */
static void report_gate(struct document *out, const struct machine *m,
			const struct unlock_requirements *n)
{
	const struct nvidia_driver *d = &m->driver;
	const struct uvm_gate *g = &d->uvm_gate;
	AUTO_STRBUF struct strbuf b = {0};

	if (!any_needs_gate(n) ||
	    !(fact_is(d->bar1_p2p.loaded, 1) || fact_is(d->bar1_p2p.installed, 1)))
		return;
	if (fact_unknown(g->loaded))
		strbuf_printf(&b, "loaded nvidia_uvm: could not be read (%s)", FACT_WHY(g->loaded));
	else
		strbuf_printf(&b, "loaded nvidia_uvm: %s", gate_words(g->loaded));
	if (!fact_unknown(g->installed))
		strbuf_printf(&b, "; on disk: %s", gate_words(g->installed));
	document_item(out, STYLE_STRONG, 0, "Managed:", "%s", strbuf_str(&b));
}

static void report_steps(struct document *out, const char *heading,
			 const struct requirement_step *steps, size_t n)
{
	if (!n)
		return;
	document_blank(out);
	document_heading(out, "%s", heading);
	for (size_t i = 0; i < n; i++) {
		AUTO_STRBUF struct strbuf what = {0};

		/* Not wrapped, so that it can be pasted into a shell. */
		strbuf_printf(&what, "# %s", steps[i].what);
		document_verbatim(out, 2, strbuf_str(&what));
		if (steps[i].text)
			document_verbatim(out, 2, steps[i].text);
	}
}

/* The commands by which onehop does the steps itself. */
static const struct requirement_step with_download[] = {
	{"download, check, edit and build the sources, install the modules, set the options",
	 "sudo onehop unlock --download --apply"},
	{"only show the plan", "onehop unlock --download"},
};
static const struct requirement_step from_sources = {
	"edit, build, install, set the options (without --apply: only show the plan)",
	"sudo onehop unlock --sources open-gpu-kernel-modules --apply"};
static const struct requirement_step options_alone = {"set the options (to undo: onehop undo)",
						      "sudo onehop unlock --apply"};

static const char to_unlock[] = "To unlock this machine";

static void report_patching(struct document *out, const struct unlock_requirements *n)
{
	if (n->can_download)
		report_steps(out, to_unlock, with_download,
			     sizeof(with_download) / sizeof(with_download[0]));
	report_steps(out,
		     n->can_download ? "Without network access: get the sources on another machine"
				     : "Get the sources of this release",
		     n->sources, n->source_n);
	report_steps(out, "Then", &from_sources, 1);
}

/* False: onehop does nothing of this itself. */
static bool report_by_onehop(struct document *out, const struct unlock_requirements *n)
{
	if (action_builds(n->action))
		report_patching(out, n);
	else if (n->action == ACTION_OPTIONS)
		report_steps(out, to_unlock, &options_alone, 1);
	return action_builds(n->action) || n->action == ACTION_OPTIONS;
}

static void report_plan(struct document *out, const struct unlock_requirements *n, bool by_hand)
{
	const bool by_onehop = n->step_n && report_by_onehop(out, n);

	if (n->options && n->action != ACTION_REFUSED && n->action != ACTION_UNKNOWN) {
		document_blank(out);
		document_heading(out, "Options for module %s", n->module);
		document_verbatim(out, 2, n->options);
	}
	if (!n->step_n)
		return;
	if (!by_hand && by_onehop) {
		document_blank(out);
		document_paragraph(out, STYLE_PLAIN, 0,
				   "To see the commands for a manual installation: --by-hand");
		return;
	}
	report_steps(out, by_onehop ? "Or manually" : "Do these yourself", n->steps, n->step_n);
	report_steps(out, "To undo the manual steps", n->back, n->back_n);
}

/* What the verdict rests on: the modules, and how the driver connects the pairs. */
static void report_loaded(struct document *out, const struct machine *m,
			  const struct unlock_requirements *n)
{
	document_blank(out);
	if (n->action != ACTION_NOTHING)
		report_probe(out, m);
	report_gate(out, m, n);
	add_connections(out, STYLE_STRONG, "Driver:", m);
}

void report_unlock_requirements(struct document *out, const struct machine *m,
				const struct unlock_requirements *n, bool by_hand)
{
	const bool done_in_vain = n->obstacle && n->action >= ACTION_IN_FORCE;

	add_recorded(out, m);
	add_machine_line(out, m);
	document_blank(out);
	if (m->gpu_n < 2) {
		document_paragraph(out, STYLE_PLAIN, 0, "%s: there is no pair of GPUs to connect.",
				   m->gpu_n ? "One NVIDIA GPU" : "No NVIDIA GPU was found");
		return;
	}
	document_paragraph(
		out, done_in_vain ? STYLE_BAD : words[n->action].style, 0, "%s",
		done_in_vain
			? "No edit and no option helps: something else blocks P2P (see the cards)."
			: words[n->action].sentence);
	document_blank(out);
	document_heading(out, "PCIe peer-to-peer, per card");
	for (size_t i = 0; i < n->n; i++)
		if (is_first_of_kind(n, i))
			report_card(out, n, i);
	if (n->caution_n)
		document_blank(out);
	for (size_t i = 0; i < n->caution_n; i++)
		document_styled_item(out, STYLE_WARN, STYLE_PLAIN, 0, "Caution:", "%s.",
				     n->cautions[i]);
	report_plan(out, n, by_hand);
	report_loaded(out, m, n);
}

/* ---- JSON ---- */

static json_t *cards_json(const struct unlock_requirements *n)
{
	json_t *cards = json_array();

	for (size_t i = 0; i < n->n; i++) {
		const struct card_requirement *c = &n->cards[i];

		json_array_append_new(cards,
				      json_pack("{s:I, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o}",
						"gpu", (json_int_t)c->gpu->index, "pci",
						json_pci_name(c->gpu->pci), "model",
						json_text(fact_str_or(c->gpu->model, NULL)), "need",
						action_word(c->action), "rule", c->id, "why",
						json_text(c->why), "change", json_text(c->change),
						"reference", json_text(c->reference), "obstacle",
						json_text(c->obstacle)));
	}
	return cards;
}

static json_t *steps_json(const struct requirement_step *steps, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list,
				      json_pack("{s:o, s:o}", "what", json_text(steps[i].what),
						"commands", json_text(steps[i].text)));
	return list;
}

static json_t *settings_json(const struct unlock_requirements *n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n->setting_n; i++) {
		const struct requirement_option *o = &n->settings[i];

		json_array_append_new(list,
				      json_pack("{s:o, s:o, s:o}", "parameter",
						json_text(o->parameter), "key", json_text(o->key),
						"value", json_text(o->value)));
	}
	return list;
}

json_t *report_unlock_requirements_json(const struct machine *m,
					const struct unlock_requirements *n)
{
	const struct bar1_p2p *p = &m->driver.bar1_p2p;
	json_t *o = json_head("unlock"), *cautions = json_array();

	for (size_t i = 0; i < n->caution_n; i++)
		json_array_append_new(cautions, json_text(n->cautions[i]));
	json_object_set_new(o, "release", json_text(n->release));
	json_object_set_new(o, "need", json_text(action_word(n->action)));
	json_object_set_new(o, "cards", cards_json(n));
	json_object_set_new(o, "module",
			    json_pack("{s:o, s:o, s:o}", "loaded", json_fact_int(p->loaded),
				      "installed", json_fact_int(p->installed), "mark",
				      json_text(fact_str_or(p->mark, NULL))));
	json_object_set_new(o, "uvm_gate",
			    json_pack("{s:o, s:o}", "loaded",
				      json_fact_int(m->driver.uvm_gate.loaded), "installed",
				      json_fact_int(m->driver.uvm_gate.installed)));
	json_object_set_new(o, "options", json_text(n->options));
	json_object_set_new(o, "options_set", json_boolean(n->options_set));
	json_object_set_new(o, "settings", settings_json(n));
	json_object_set_new(o, "cautions", cautions);
	json_object_set_new(o, "can_download", json_boolean(n->can_download));
	json_object_set_new(o, "sources", steps_json(n->sources, n->source_n));
	json_object_set_new(o, "steps", steps_json(n->steps, n->step_n));
	json_object_set_new(o, "back", steps_json(n->back, n->back_n));
	return o;
}
