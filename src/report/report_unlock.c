/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `onehop unlock --tree` prints: the state of the tree, the edits and their reasons, the next
 * step.
 */
#include "report/report_unlock.h"

#include "base/strbuf.h"
#include "base/text.h"
#include "report/report_json_impl.h"

#include <inttypes.h>
#include <string.h>

/* ---- sentences ---- */

static void add_release(struct strbuf *b, const struct unlock *u)
{
	const struct era_name *e = &era_names[u->era];

	if (u->version)
		strbuf_printf(b, "%s, ", u->version);
	strbuf_printf(b, "kind %s (%s to %s)", e->name, e->first, e->last);
}

/* What the run found, or did. */
static void add_state(struct strbuf *b, const struct unlock *u, enum unlock_mode mode)
{
	static const char *const found[UNLOCK_STATE_N] = {
		[UNLOCK_STOCK] = "as released",
		[UNLOCK_PATCHED] = "patched by onehop",
		[UNLOCK_STARTED] = "a run of onehop was interrupted",
	};
	size_t edited = 0;

	for (size_t i = 0; i < u->n; i++)
		edited += u->files[i].is_after;
	if (mode == UNLOCK_APPLY && u->replaced)
		strbuf_printf(b, "patched: %zu %s replaced%s", u->replaced,
			      text_plural(u->replaced, "file", "files"),
			      u->taken_back ? ", after reverting the edits of an earlier onehop"
			      : u->state == UNLOCK_STARTED ? ", which completes an interrupted run"
							   : "");
	else if (mode == UNLOCK_APPLY)
		strbuf_puts(b, "already patched by onehop: nothing to do");
	else if (mode == UNLOCK_REVERT && u->replaced)
		strbuf_printf(b, "reverted: %zu %s restored", u->replaced,
			      text_plural(u->replaced, "file", "files"));
	else if (mode == UNLOCK_REVERT)
		strbuf_puts(b, "not edited by onehop: nothing to revert");
	else if (u->state == UNLOCK_STOCK && !u->tried)
		strbuf_puts(b, "not edited by onehop; hashes of NVIDIA's release are unknown");
	else if (u->state == UNLOCK_STOCK && u->changed)
		strbuf_printf(b, "changed: differs from the release in %s", u->changed);
	else
		strbuf_puts(b, found[u->state]);
	if (mode < UNLOCK_APPLY && u->state == UNLOCK_STARTED)
		strbuf_printf(
			b,
			": %zu of %zu files edited; to complete it: --apply; to undo it: --revert",
			edited, u->n);
	else if (mode < UNLOCK_APPLY && u->state == UNLOCK_STOCK && u->has_manifest)
		strbuf_puts(b, "; a run of onehop was interrupted before it changed anything");
	else if (mode < UNLOCK_APPLY && u->other_edits)
		strbuf_puts(b, u->newer_edits
				       ? ", but by a later version: use that version"
				       : ", but by an earlier version: --apply replaces its edits");
}

/* How the tree copes with pci_resize_resource, which has three or four arguments. */
static const char *resize_words(const struct unlock *u)
{
	return u->asks_kernel
		       ? "any: the tree itself tests how many arguments pci_resize_resource has"
		       : "any: the edited tree compiles with three or four arguments of pci_resize_resource";
}

/* ---- text ---- */

static void report_files(struct document *out, const struct unlock *u)
{
	document_table(out, 2, 2, 2);
	for (size_t i = 0; i < u->n; i++) {
		document_row(out);
		document_cell(out, STYLE_PLAIN, "%zu %s", u->files[i].n,
			      text_plural(u->files[i].n, "edit", "edits"));
		document_cell(out, STYLE_PLAIN, "%s", u->files[i].path);
	}
}

static void report_edit(struct document *out, const struct unlock_file *f, size_t i)
{
	const struct unlock_edit *row = &f->rows[i];
	const struct edit *e = &f->edits[i];

	document_blank(out);
	document_paragraph(out, STYLE_STRONG, 2, "%s, line %u%s%s", row->row->id, row->line,
			   row->row->function ? ", " : "",
			   row->row->function ? row->row->function : "");
	document_paragraph(out, STYLE_PLAIN, 4, "%s.", row->row->why);
	if (e->to > e->from)
		document_paragraph(out, STYLE_PLAIN, 4, "Instead of %.*s:", (int)(e->to - e->from),
				   f->before.data + e->from);
	document_verbatim(out, 6, row->row->text + strspn(row->row->text, "\n"));
}

static void report_edits(struct document *out, const struct unlock *u)
{
	for (size_t i = 0; i < u->n; i++) {
		document_blank(out);
		document_heading(out, "%s", u->files[i].path);
		for (size_t k = 0; k < u->files[i].n; k++)
			report_edit(out, &u->files[i], k);
	}
}

static void report_checks(struct document *out, const struct unlock *u)
{
	document_blank(out);
	document_heading(out, "Places searched for, and how often each was found");
	document_table(out, 2, 3, 2);
	for (size_t i = 0; i < u->check_n; i++) {
		const struct anchor *a = u->checks[i].row;

		document_row(out);
		document_cell(out, STYLE_PLAIN, "%s", a->id);
		document_cell(out, STYLE_PLAIN, "%u of %u", u->checks[i].found, a->count);
		document_cell(out, STYLE_DIM, "%s", a->text ? "edited" : "unchanged");
	}
}

static void report_next(struct document *out, const struct unlock *u, enum unlock_mode mode)
{
	document_blank(out);
	if (mode == UNLOCK_APPLY)
		document_paragraph(
			out, STYLE_PLAIN, 0,
			"The edits alone do not enable P2P. It also needs these registry keys: %s. To undo: onehop unlock --tree %s --revert",
			era_keys(u->era), u->tree.dir);
	else if (u->state == UNLOCK_STOCK && mode == UNLOCK_PLAN)
		document_paragraph(
			out, STYLE_PLAIN, 0,
			"Nothing was written. To see each edit: --explain. As a patch: --diff. To edit the tree: --apply.");
}

static void report_changed(struct document *out, const struct unlock *u)
{
	if (u->changed)
		document_styled_item(
			out, STYLE_WARN, STYLE_PLAIN, 0, "Caution:",
			"apart from onehop's edits, the tree differs from NVIDIA's release %s in %s. The places of the edits are as expected. The other differences are not judged: they can be a package's patches, or files of another release. If neither you nor a package made them, unpack the release again.",
			u->version, u->changed);
}

static void report_tried(struct document *out, const struct unlock *u)
{
	if (!u->tried)
		document_styled_item(
			out, STYLE_WARN, STYLE_PLAIN, 0, "Caution:",
			"untested with this release (%s): the places of the edits match the releases of this kind, but onehop does not know NVIDIA's files of it, so it cannot tell whether they were changed.",
			u->version ? u->version : "version.mk names none");
	if (era_untested(u->era))
		document_styled_item(out, STYLE_WARN, STYLE_PLAIN, 0, "Caution:",
				     "edited drivers of this kind are untested on any card.");
}

void report_unlock(struct document *out, const struct unlock *u, enum unlock_mode mode)
{
	AUTO_STRBUF struct strbuf release = {0};
	AUTO_STRBUF struct strbuf state = {0};

	add_state(&state, u, mode);
	document_item(out, STYLE_STRONG, 0, "Tree:", "%s", u->tree.dir);
	if (mode != UNLOCK_REVERT) {
		add_release(&release, u);
		document_item(out, STYLE_STRONG, 0, "Release:", "%s", strbuf_str(&release));
	}
	document_item(out, STYLE_STRONG, 0, "State:", "%s", strbuf_str(&state));
	if (mode == UNLOCK_REVERT)
		return;
	report_changed(out, u);
	report_tried(out, u);
	document_item(out, STYLE_STRONG, 0, "Kernel:", "%s", resize_words(u));
	document_item(out, STYLE_STRONG, 0, "Edits:", "%zu in %zu %s; %zu %s checked", u->edit_n,
		      u->n, text_plural(u->n, "file", "files"), u->check_n,
		      text_plural(u->check_n, "place", "places"));
	if (mode == UNLOCK_EXPLAIN) {
		report_edits(out, u);
		report_checks(out, u);
	} else {
		report_files(out, u);
	}
	report_next(out, u, mode);
}

/* ---- JSON ---- */

static json_t *edits_json(const struct unlock_file *f)
{
	json_t *edits = json_array();

	for (size_t i = 0; i < f->n; i++) {
		const struct anchor *a = f->rows[i].row;
		const struct edit *e = &f->edits[i];

		json_array_append_new(edits, json_pack("{s:s, s:o, s:i, s:I, s:I, s:s, s:s}", "id",
						       a->id, "function", json_text(a->function),
						       "line", (int)f->rows[i].line, "from",
						       (json_int_t)e->from, "to", (json_int_t)e->to,
						       "text", e->text, "why", a->why));
	}
	return edits;
}

static json_t *files_json(const struct unlock *u)
{
	json_t *files = json_array();

	for (size_t i = 0; i < u->n; i++) {
		const struct unlock_file *f = &u->files[i];

		json_array_append_new(files,
				      json_pack("{s:s, s:b, s:o, s:o, s:o}", "path", f->path,
						"edited", f->is_after, "sha256_before",
						json_text(*f->before_hash ? f->before_hash : NULL),
						"sha256_after",
						json_text(*f->after_hash ? f->after_hash : NULL),
						"edits", edits_json(f)));
	}
	return files;
}

static json_t *checks_json(const struct unlock *u)
{
	json_t *checks = json_array();

	for (size_t i = 0; i < u->check_n; i++) {
		const struct anchor *a = u->checks[i].row;

		json_array_append_new(checks,
				      json_pack("{s:s, s:s, s:o, s:i, s:i}", "id", a->id, "file",
						a->file, "function", json_text(a->function),
						"expected", (int)a->count, "found",
						(int)u->checks[i].found));
	}
	return checks;
}

/* After a revert, which only reads the manifest, the facts of the tree are null. */
json_t *report_unlock_json(const struct unlock *u, enum unlock_mode mode)
{
	static const char *const done[] = {[UNLOCK_APPLY] = "apply", [UNLOCK_REVERT] = "revert"};
	bool planned = mode != UNLOCK_REVERT;
	json_t *o = json_head("unlock");
	AUTO_STRBUF struct strbuf diff = {0};

	json_object_set_new(o, "tree", json_text(u->tree.dir));
	json_object_set_new(o, "version", json_text(u->version));
	json_object_set_new(o, "changed", planned ? json_text(u->changed) : json_null());
	json_object_set_new(o, "tried", planned ? json_boolean(u->tried) : json_null());
	json_object_set_new(o, "untested",
			    planned ? json_boolean(era_untested(u->era)) : json_null());
	json_object_set_new(o, "era", json_text(planned ? era_names[u->era].name : NULL));
	json_object_set_new(o, "found", json_text(unlock_state_word(u->state)));
	json_object_set_new(o, "other_edits", json_boolean(u->other_edits));
	json_object_set_new(o, "taken_back", json_boolean(u->taken_back));
	json_object_set_new(o, "done", json_text(mode >= UNLOCK_APPLY ? done[mode] : NULL));
	json_object_set_new(o, "replaced", json_integer((json_int_t)u->replaced));
	json_object_set_new(o, "pci_resize_resource",
			    json_text(!planned         ? NULL
				      : u->asks_kernel ? "tree"
						       : "edit"));
	json_object_set_new(o, "options", json_text(planned ? era_keys(u->era) : NULL));
	json_object_set_new(o, "files", files_json(u));
	json_object_set_new(o, "checks", checks_json(u));
	if (mode == UNLOCK_DIFF) {
		unlock_diff(u, &diff);
		json_object_set_new(o, "diff", json_text(strbuf_str(&diff)));
	}
	return o;
}
