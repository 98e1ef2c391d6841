/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_unlock_delivery.h"

#include "base/strbuf.h"
#include "base/text.h"
#include "report/report_impl.h"
#include "report/report_json_impl.h"
#include "unlock/download.h"

#include <string.h>

/* ---- how it is installed ---- */

static const char *const way_sentences[DELIVERY_WAY_N] = {
	[DELIVER_OPTIONS] = "set module options; the driver is unchanged",
	[DELIVER_INTO_DKMS] =
		"as a patch in the driver's DKMS tree; DKMS applies it for each kernel. No file of the tree is changed",
	[DELIVER_OWN_DKMS] =
		"as a separate DKMS tree. DKMS builds it for each kernel, and its modules have priority over the driver's",
};

static void add_tree(struct document *out, const struct delivery *d)
{
	const struct dkms_tree *t = &d->dkms;

	if (d->way == DELIVER_OPTIONS || !t->name)
		return;
	document_item(out, STYLE_STRONG, 0, "DKMS:", "%s/%s in /%s%s%s%s", t->name, t->version,
		      t->folder, t->package ? ", package " : "", t->package ? t->package : "",
		      t->whole ? "; contains the whole release, so DKMS also builds the core" : "");
}

/* ---- checks ---- */

static const struct {
	const char *label, *word;
	enum style style;
} states[CHECK_STATE_N] = {
	[CHECK_GOOD] = {"ok", "good", STYLE_GOOD},
	[CHECK_BAD] = {"BAD", "bad", STYLE_BAD},
	[CHECK_NOTE] = {"note", "note", STYLE_WARN},
};

static void add_check(struct document *out, const struct delivery_check *c)
{
	document_styled_item(out, states[c->state].style, STYLE_PLAIN, 2, states[c->state].label,
			     "%s: %s", c->what, c->found);
	if (c->remedy && c->state != CHECK_GOOD)
		document_verbatim(out, 6, c->remedy);
}

static void add_blocked(struct document *out, const struct delivery *d)
{
	size_t bad = 0;

	for (size_t i = 0; i < d->check_n; i++)
		bad += d->checks[i].state == CHECK_BAD;
	if (!d->blocked)
		return;
	document_paragraph(
		out, STYLE_BAD, 0,
		"Not possible yet: %zu of %zu checks failed (marked BAD). Fix those first.", bad,
		d->check_n);
	document_blank(out);
}

void report_delivery(struct document *out, const struct delivery_report *r)
{
	const struct delivery *d = r->delivery;

	add_machine_line(out, r->machine);
	document_blank(out);
	add_blocked(out, d);
	document_heading(out, "Installing the edited driver");
	document_item(out, STYLE_STRONG, 0, "Driver:", "%s, for kernel %s",
		      d->release ? d->release : "release unknown",
		      d->kernel ? d->kernel : "unknown");
	document_item(out, STYLE_STRONG, 0, "How:", "%s", way_sentences[d->way]);
	add_tree(out, d);
	document_blank(out);
	for (size_t i = 0; i < d->check_n; i++)
		add_check(out, &d->checks[i]);
	if (!d->blocked) /* the plan follows */
		document_blank(out);
}

/* ---- afterwards ---- */

/* A unit is named once, however many of its processes hold something. */
static bool is_named(const struct delivery *d, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (d->holders[k].unit && strcmp(d->holders[k].unit, d->holders[i].unit) == 0)
			return true;
	return false;
}

static void add_commands(const struct delivery *d, struct strbuf *b)
{
	for (size_t i = 0; i < d->holder_n; i++) {
		const struct gpu_holder *h = &d->holders[i];

		if (h->unit && !is_named(d, i))
			strbuf_printf(b, "sudo systemctl stop %s\n", h->unit);
		else if (!h->unit)
			strbuf_printf(b, "# stop %s (pid %d)\n", h->name, h->pid);
	}
	strbuf_puts(b, "sudo modprobe -r nvidia_drm nvidia_modeset nvidia_uvm nvidia\n"
		       "sudo modprobe nvidia\n");
}

static void add_holders(struct document *out, const struct delivery *d)
{
	AUTO_STRBUF struct strbuf names = {0}, commands = {0};

	for (size_t i = 0; i < d->holder_n; i++)
		strbuf_printf(&names, "%s%s (%d)", i ? ", " : "", d->holders[i].name,
			      d->holders[i].pid);
	document_item(
		out, STYLE_PLAIN, 2, "-",
		"The running modules stay in use until a reboot. To load the new ones without a reboot, first stop the programs that use the GPUs (%s), then:",
		d->holder_n ? strbuf_str(&names) : "none found");
	add_commands(d, &commands);
	document_verbatim(out, 4, strbuf_str(&commands));
	if (!d->holders_known)
		document_paragraph(
			out, STYLE_WARN, 4,
			"Programs of other users were not checked: run as root to include them.");
}

static bool signs(const struct delivery_report *r)
{
	return fact_is(r->machine->kernel.secure_boot, 1) && r->delivery->certificate &&
	       !r->delivery->enrolled;
}

void report_delivery_after(struct document *out, const struct delivery_report *r)
{
	AUTO_STRBUF struct strbuf import = {0};

	if (!r->work)
		return;
	document_blank(out);
	document_paragraph(out, STYLE_STRONG, 0, "Afterwards, do these yourself:");
	if (signs(r)) {
		document_item(
			out, STYLE_PLAIN, 2, "-",
			"Secure Boot is on, and DKMS signs the modules with its own key. Enroll this key in the firmware; the password that you choose is asked for on the console at the next boot:");
		strbuf_printf(&import, "sudo mokutil --import /%s\n", r->delivery->certificate);
		document_verbatim(out, 4, strbuf_str(&import));
	}
	if (r->image)
		document_item(
			out, STYLE_PLAIN, 2, "-",
			"The edited driver is in effect after the image boots. To check: onehop unlock");
	else
		add_holders(out, r->delivery);
	document_item(out, STYLE_PLAIN, 2, "-",
		      "Check that it is in effect and that data is correct:");
	document_verbatim(out, 4, "onehop unlock\nonehop test\n");
}

/* ---- JSON ---- */

static json_t *checks_json(const struct delivery *d)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->check_n; i++)
		json_array_append_new(list, json_pack("{s:o, s:o, s:s, s:o}", "what",
						      json_text(d->checks[i].what), "found",
						      json_text(d->checks[i].found), "state",
						      states[d->checks[i].state].word, "remedy",
						      json_text(d->checks[i].remedy)));
	return list;
}

static json_t *holders_json(const struct delivery *d)
{
	json_t *list = json_array();

	if (!d->holders_known && !d->holder_n) {
		json_decref(list);
		return json_null();
	}
	for (size_t i = 0; i < d->holder_n; i++)
		json_array_append_new(list, json_pack("{s:i, s:o, s:o}", "pid", d->holders[i].pid,
						      "name", json_text(d->holders[i].name), "unit",
						      json_text(d->holders[i].unit)));
	return list;
}

static json_t *tree_json(const struct delivery *d)
{
	const struct dkms_tree *t = &d->dkms;

	if (d->way == DELIVER_OPTIONS || !t->name)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:b, s:o}", "name", json_text(t->name), "version",
			 json_text(t->version), "folder", json_text(t->folder), "whole",
			 (int)t->whole, "package", json_text(t->package));
}

static json_t *download_json(const struct delivery *d)
{
	const struct download *w = d->download;

	if (!w)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:b}", "program", json_text(w->program), "url",
			 json_text(w->shown), "folder", json_text(w->folder), "bytes",
			 w->bytes ? json_integer((json_int_t)w->bytes) : json_null(), "known",
			 w->hash != NULL);
}

static json_t *earlier_json(const struct delivery *d)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->earlier_n; i++)
		json_array_append_new(list, json_integer(d->earlier[i]));
	return list;
}

json_t *report_delivery_json(const struct delivery_report *r, json_t *plan)
{
	const struct delivery *d = r->delivery;
	json_t *o =
		json_pack("{s:s, s:o, s:o, s:o, s:b, s:b, s:b}", "way", delivery_way_word(d->way),
			  "kernel", json_text(d->kernel), "release", json_text(d->release),
			  "sources", json_text(d->sources), "built", (int)d->built, "in_place",
			  (int)d->in_place, "blocked", (int)d->blocked);

	json_object_set_new(o, "download", download_json(d));
	json_object_set_new(o, "dkms", tree_json(d));
	json_object_set_new(o, "undone_first", earlier_json(d));
	json_object_set_new(o, "checks", checks_json(d));
	json_object_set_new(o, "holders", holders_json(d));
	json_object_set_new(plan, "command", json_string("unlock"));
	json_object_set_new(plan, "delivery", o);
	return plan;
}

/* ---- after undo ---- */

void report_left_builds(struct document *out, const struct left_build *left, size_t n)
{
	if (!n)
		return;
	document_blank(out);
	document_paragraph(
		out, STYLE_WARN, 0,
		"DKMS has built the edited modules for other kernels too. They stay until they are rebuilt, which needs a compiler. Without the options they behave like the driver's own.");
	for (size_t i = 0; i < n; i++) {
		document_item(out, STYLE_PLAIN, 2, "-", "%s, module %s:", left[i].kernel,
			      left[i].module);
		document_verbatim(out, 4, left[i].how);
	}
}

void report_left_sources(struct document *out, const char *folder)
{
	if (!folder)
		return;
	document_blank(out);
	document_paragraph(
		out, STYLE_PLAIN, 0,
		"The downloaded sources are still in %s. Nothing uses them; you can remove them.",
		folder);
}

json_t *report_left_json(const struct left_build *left, size_t n, const char *sources, json_t *undo)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "kernel",
						      json_text(left[i].kernel), "module",
						      json_text(left[i].module), "how",
						      json_text(left[i].how)));
	json_object_set_new(undo, "left_builds", list);
	json_object_set_new(undo, "left_sources", json_text(sources));
	return undo;
}

/* ---- one file ---- */

void report_probe_file(struct document *out, const struct probe *p)
{
	AUTO_STRBUF struct strbuf mark = {0};

	if (p->mark)
		strbuf_printf(&mark, "; edited by onehop (%s)", p->mark);
	if (p->kind == PROBE_UVM)
		document_paragraph(
			out, p->gate ? STYLE_GOOD : STYLE_BAD, 0, "%s: %s%s", p->file,
			p->gate ? "has the gate for managed memory: keeps it away from BAR1 peers before Hopper"
				: "no gate for managed memory: with an edited nvidia module, "
				  "managed memory on cards before Hopper goes to wrong addresses",
			strbuf_str(&mark));
	else if (p->every_chip)
		document_paragraph(out, STYLE_GOOD, 0, "%s: BAR1 P2P for every chip%s", p->file,
				   strbuf_str(&mark));
	else if (!p->real && !p->stubs)
		document_paragraph(out, STYLE_BAD, 0, "%s: has no BAR1 P2P functions%s", p->file,
				   strbuf_str(&mark));
	else
		document_paragraph(
			out, STYLE_BAD, 0,
			"%s: no BAR1 P2P for every chip: %u of 5 functions, and stubs in place of %u%s",
			p->file, p->real, p->stubs, strbuf_str(&mark));
}

json_t *report_probe_json(const struct probe *p)
{
	json_t *o = json_head("unlock");

	json_object_set_new(o, "probe",
			    json_pack("{s:o, s:s, s:b, s:i, s:i, s:b, s:o}", "file",
				      json_text(p->file), "module",
				      p->kind == PROBE_UVM ? "nvidia_uvm" : "nvidia", "every_chip",
				      (int)p->every_chip, "functions", (int)p->real, "stubs",
				      (int)p->stubs, "gate", (int)p->gate, "mark",
				      json_text(p->mark)));
	return o;
}
