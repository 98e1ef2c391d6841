/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_env.h"

#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/advice.h"
#include "ingest/shell_script.h"
#include "report/report_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_COLUMN = 10 };

static const enum style severity_styles[SEVERITY_N] = {
	[SEVERITY_INFO] = STYLE_PLAIN,
	[SEVERITY_WARNING] = STYLE_WARN,
	[SEVERITY_ERROR] = STYLE_BAD,
};

/* ---- what to set ---- */

static void add_measured(struct document *out, const struct observed *o)
{
	document_styled_item(out, STYLE_DIM, STYLE_DIM, LABEL_COLUMN, "seen",
			     "GPU%d->GPU%d: %.3g GB/s with P2P, %.3g without (%s)", o->initiator,
			     o->target, o->value, o->off, o->from);
}

static void add_variable(struct document *out, const char *label, const struct advice_variable *v)
{
	struct strbuf state AUTO_STRBUF = {0};

	if (v->set)
		strbuf_printf(&state, " (already set: %s)", v->set->from);
	if (!v->sure)
		strbuf_puts(&state, " (possible: it depends on unknown facts)");
	document_item(out, STYLE_STRONG, 0, label, "%s=%s%s", v->variable->name, v->value,
		      strbuf_str(&state));
	for (size_t i = 0; i < v->finding_n; i++) {
		struct strbuf why AUTO_STRBUF = {0};

		finding_statement(v->findings[i], &why);
		document_item(out, STYLE_STRONG, LABEL_COLUMN, "why ", "%s [%s]", strbuf_str(&why),
			      v->findings[i]->rule->id);
	}
	if (v->measured)
		add_measured(out, v->measured);
}

static void add_library(struct document *out, const struct advice *a, enum library l)
{
	char label[LABEL_COLUMN];
	bool any = false;

	snprintf(label, sizeof(label), "%-8s", library_name(l));
	for (size_t i = 0; i < a->variable_n; i++) {
		const struct advice_variable *v = &a->variables[i];

		if (library_of_variable(v->variable->name) != l)
			continue;
		add_variable(out, any ? "        " : label, v);
		any = true;
	}
	if (!any)
		document_item(
			out, STYLE_STRONG, 0, label, "%s",
			l == LIBRARY_GLOO
				? "not judged: it uses the address that this host's name resolves to (with "
				  "several networks, set GLOO_SOCKET_IFNAME to the device in the one that all "
				  "machines share)"
				: "nothing to set");
}

static void add_version(struct document *out, const struct machine *m)
{
	char buf[32];

	if (fact_known(m->nccl.version))
		document_paragraph(out, STYLE_PLAIN, 0, "NCCL %s (%s)",
				   nccl_version_format(nccl_version_number(m->nccl.version.value),
						       buf, sizeof(buf)),
				   fact_str_or(m->nccl.library, FACT_WHY(m->nccl.version)));
	else
		document_paragraph(
			out, STYLE_DIM, 0,
			"NCCL's version is unknown (%s): the following applies to current versions",
			FACT_WHY(m->nccl.version));
}

/* ---- what is set ---- */

/*
 * "job.sh:5: NAME=VALUE ...", or "NAME=VALUE (job.sh:5): ..." where the sentence does not say it.
 */
static void add_subject(struct strbuf *b, const struct finding *f)
{
	if (text_starts_with(f->sentence, f->setting->name))
		strbuf_printf(b, "%s: ", f->setting->from);
	else
		strbuf_printf(b, "%s=%s (%s): ", f->setting->name, f->setting->value,
			      f->setting->from);
}

static void add_setting(struct document *out, const struct finding *f, bool verbose)
{
	struct strbuf text AUTO_STRBUF = {0};
	char label[LABEL_COLUMN];

	add_subject(&text, f);
	strbuf_puts(&text, f->sentence);
	if (f->confidence != CONFIDENCE_CERTAIN)
		strbuf_printf(&text, " (%s)", confidence_word(f->confidence));
	snprintf(label, sizeof(label), "%-7s", severity_word(f->severity));
	document_item(out, severity_styles[f->severity], 0, label, "%s [%s]", strbuf_str(&text),
		      f->rule->id);
	if (f->remedy && *f->remedy)
		document_item(out, STYLE_STRONG, LABEL_COLUMN - 1, "do  ", "%s", f->remedy);
	if (verbose && f->rule->why)
		document_item(out, STYLE_STRONG, LABEL_COLUMN - 1, "why ", "%s", f->rule->why);
}

static void add_unread(struct document *out, const struct env_unread *u)
{
	struct strbuf names AUTO_STRBUF = {0};

	for (size_t i = 0; i < u->n; i++)
		if (!u->settings[i].value)
			strbuf_printf(&names, "%s%s (line %u)", names.len ? ", " : "",
				      u->settings[i].name, u->settings[i].line);
	if (names.len)
		document_item(out, STYLE_DIM, 0,
			      "Not read:", "%s: their values are known only when %s runs",
			      strbuf_str(&names), u->file);
}

static void add_settings(struct document *out, const struct diagnosis *d, const struct advice *a,
			 const struct env_unread *unread, bool verbose)
{
	const struct machine *m = d->topology->machine;

	document_blank(out);
	if (a->setting_n)
		document_heading(out, "Settings to change");
	for (size_t i = 0; i < a->setting_n; i++)
		add_setting(out, a->settings[i], verbose);
	if (!a->setting_n)
		document_paragraph(
			out, STYLE_PLAIN, 0, "%s.",
			m->nccl.setting_n || m->setting_n ? "No setting is known to be wrong"
			: fact_known(m->environment)
				? "No variable of these libraries is set"
				: "Which variables are set is unknown: the environment was not recorded");
	add_unread(out, unread);
	if (m->nccl.conf_missing)
		document_item(out, STYLE_WARN, 0, "Not there:",
			      "%s, which NCCL_CONF_FILE names: NCCL reads neither that file nor "
			      "~/.nccl.conf",
			      m->nccl.conf_missing);
}

/* ---- the NIC of each GPU ---- */

static const char *way_word(const struct chain_link *l)
{
	static const char *const words[] = {
		[CHAIN_NA] = "-",      [CHAIN_OK] = "yes", [CHAIN_POSSIBLE] = "maybe",
		[CHAIN_UNKNOWN] = "?", [CHAIN_BAD] = "no",
	};

	return words[l->state];
}

static void add_nic_row(struct document *out, const struct advice_nic *n)
{
	document_row(out);
	document_cell(out, STYLE_STRONG, "GPU%zu", n->gpu->index);
	if (fact_known(n->gpu->cuda_ordinal))
		document_cell(out, STYLE_PLAIN, "%" PRId64, n->gpu->cuda_ordinal.value);
	else
		document_cell(out, STYLE_PLAIN, "?");
	if (!n->nic) {
		document_cell(out, STYLE_DIM, "none active");
		return;
	}
	if (n->port)
		document_cell(out, STYLE_PLAIN, "%s:%u", n->nic->name, n->port);
	else
		document_cell(out, STYLE_PLAIN, "%s", n->nic->name);
	document_cell(out, STYLE_PLAIN, "%s", path_class_word(n->class));
	document_cell(out, STYLE_PLAIN, "%zu", n->equal);
	document_cell(out, STYLE_PLAIN, "%s", way_word(&n->preflight.dma_buf));
	document_cell(out, STYLE_PLAIN, "%s", way_word(&n->preflight.peermem));
	document_cell(out, STYLE_PLAIN, "%s", port_address_word(n->preflight.address));
}

/* Neither way works, and for the same reason. */
static bool fail_alike(const struct preflight *p)
{
	return p->dma_buf.state != CHAIN_OK && p->peermem.state != CHAIN_OK &&
	       p->dma_buf.reason == p->peermem.reason;
}

/* Why a way does not work, once for all GPUs that have the reason. */
static void add_way(struct document *out, const struct advice *a, size_t gpu_n, const char *label,
		    bool dma_buf)
{
	for (size_t i = 0; i < gpu_n; i++) {
		const struct preflight *p = &a->nics[i].preflight;
		const struct chain_link *l = dma_buf ? &p->dma_buf : &p->peermem;
		char why[512];
		size_t k = 0;

		if (!a->nics[i].nic || l->state == CHAIN_OK || (!dma_buf && fail_alike(p)))
			continue;
		while (k < i && (!a->nics[k].nic ||
				 (dma_buf ? a->nics[k].preflight.dma_buf.reason
					  : a->nics[k].preflight.peermem.reason) != l->reason))
			k++;
		if (k == i)
			document_item(out, STYLE_PLAIN, 0,
				      fail_alike(p) ? "dma-buf, peermem:" : label, "%s",
				      chain_explain(NULL, l, why, sizeof(why)));
	}
}

static void add_nics(struct document *out, const struct diagnosis *d, const struct advice *a)
{
	static const char *const heads[] = {"",     "CUDA",    "NIC",     "path",
					    "near", "dma-buf", "peermem", "address"};
	size_t n = d->topology->gpu_n;

	if (!a->nics)
		return;
	document_blank(out);
	document_heading(out, "The NIC of each GPU");
	document_table(out, 0, sizeof(heads) / sizeof(heads[0]), 2);
	document_titles(out, heads);
	for (size_t i = 0; i < n; i++)
		add_nic_row(out, &a->nics[i]);
	document_blank(out);
	add_way(out, a, n, "dma-buf:", true);
	add_way(out, a, n, "peermem:", false);
	for (size_t i = 0; i < n; i++)
		if (a->nics[i].preflight.direct)
			document_paragraph(
				out, STYLE_PLAIN, 0,
				"GPU%zu: %s, the DMA function of a Direct NIC, is below the "
				"same switch",
				i, a->nics[i].preflight.direct->name);
	document_paragraph(
		out, STYLE_DIM, 0,
		"near: how many active NICs are equally near. NCCL, UCX and NVSHMEM select "
		"the nearest by themselves.");
}

void report_env(struct document *out, const struct diagnosis *d, const struct advice *a,
		const struct env_unread *unread, bool verbose)
{
	const struct machine *m = d->topology->machine;

	add_recorded(out, m);
	add_machine_line(out, m);
	add_version(out, m);
	document_blank(out);
	for (int l = 0; l < LIBRARY_N; l++)
		add_library(out, a, (enum library)l);
	add_settings(out, d, a, unread, verbose);
	add_nics(out, d, a);
}

/* ---- one variable ---- */

static void add_versions(struct document *out, const struct variable *v)
{
	struct strbuf b AUTO_STRBUF = {0};
	char buf[32];

	if (v->since)
		strbuf_printf(&b, "from NCCL %s on",
			      nccl_version_format(v->since, buf, sizeof(buf)));
	if (v->until)
		strbuf_printf(&b, "%suntil %s, which removed it", b.len ? ", " : "",
			      nccl_version_format(v->until, buf, sizeof(buf)));
	if (v->deprecated)
		strbuf_printf(&b, "%sdeprecated since %s", b.len ? ", " : "",
			      nccl_version_format(v->deprecated, buf, sizeof(buf)));
	if (v->note)
		strbuf_printf(&b, "%s%s", b.len ? "; " : "", v->note);
	if (b.len)
		document_item(out, STYLE_STRONG, 0, "versions:", "%s", strbuf_str(&b));
}

static void add_normal(struct document *out, const struct variable_use *u)
{
	char buf[32];

	if (u->before)
		document_item(out, STYLE_STRONG, 0, "default: ", "%s; %s before NCCL %s", u->normal,
			      u->before, nccl_version_format(u->changed, buf, sizeof(buf)));
	else if (u->normal)
		document_item(out, STYLE_STRONG, 0, "default: ", "%s", u->normal);
}

void report_variable(struct document *out, const struct variable *v)
{
	const struct variable_use *u = v->use;

	document_heading(out, "%s (%s, %s)", v->name, library_name(library_of_variable(v->name)),
			 variable_kind_word(v->kind));
	document_blank(out);
	if (u) {
		document_item(out, STYLE_STRONG, 0, "does:    ", "%s", u->does);
		document_item(out, STYLE_STRONG, 0, "needed:  ", "%s",
			      u->needed ? u->needed : "never, as far as onehop knows");
		if (u->harms)
			document_item(out, STYLE_STRONG, 0, "harms:   ", "%s", u->harms);
		add_normal(out, u);
	} else {
		document_paragraph(out, STYLE_PLAIN, 0,
				   "%s reads it; onehop knows no machine that needs it.",
				   library_name(library_of_variable(v->name)));
	}
	add_versions(out, v);
}
