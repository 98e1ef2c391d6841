/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_caller.h"

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "machine/machine.h"

#include <string.h>

#ifndef ONEHOP_VERSION
#define ONEHOP_VERSION "unknown"
#endif

/*
 * Slurm drains a node whose prolog fails, so unknown does not fail there. It ignores the exit code
 * of HealthCheckProgram, whose script decides by the line. node-problem-detector takes 0, 1 and
 * anything else for OK, problem and unknown, and cuts the message at 80 bytes by default.
 */
/* clang-format off */
const struct caller callers[] = {
	{"slurm-prolog", 0, 1, 1, 0, 80, 1, false},
	{"slurm-health", 0, 1, 1, 0, 80, 1, false},
	{"nhc", 0, 1, 1, 0, 80, 1, false},
	{"npd", 0, 1, 2, 2, 80, 1, false},
	{"kubernetes", 0, 1, 1, 0, 80, 10, false},
	{"prometheus", 0, 0, 0, 0, 80, 1, true},
};
const char *const caller_words[] = {
	"slurm-prolog", "slurm-health", "nhc", "npd", "kubernetes", "prometheus", NULL,
};
/* clang-format on */

int caller_code(const struct caller *c, enum verdict v, bool required)
{
	if (v == VERDICT_OK)
		return c->ok;
	if (v == VERDICT_BAD)
		return c->finding;
	return required ? c->unknown : c->unrequired;
}

/* ---- the line ---- */

void caller_line(struct strbuf *out, const struct caller *c, const char *text)
{
	size_t n = strlen(text), max = n > c->line_max ? c->line_max - 3 : n;

	for (size_t i = 0; i < max; i++)
		strbuf_putc(out, text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
	strbuf_puts(out, n > max ? "...\n" : "\n");
}

static void add_finding(struct strbuf *out, const struct caller *c, const struct finding *f)
{
	AUTO_STRBUF struct strbuf text = {0};

	strbuf_printf(&text, "%s: %s", f->rule->id, f->sentence);
	caller_line(out, c, strbuf_str(&text));
}

/* What was required and is not so; what nobody explains. */
static void add_pairs(struct strbuf *out, const struct caller *c, const struct diagnosis *d,
		      const struct requirements *r, const char *prefix)
{
	AUTO_STRBUF struct strbuf text = {0};
	char sentence[512];

	for (size_t i = 0; i < REQUIREMENT_N && !text.len; i++) {
		const struct requirement_result *q = &r->each[i];

		if (q->asked && q->verdict != VERDICT_OK)
			strbuf_printf(&text, "%srequire-%s: %zu of %zu pairs are direct", prefix,
				      requirement_words[i], q->direct, q->pairs);
	}
	if (!text.len)
		strbuf_printf(&text, "%s%s", prefix,
			      diagnosis_verdict(d, sentence, sizeof(sentence)));
	caller_line(out, c, strbuf_str(&text));
}

/*
 * The most severe rule that could not be judged and says why, of equals the first; NULL: there is
 * none.
 */
static const struct outcome *worst_unknown(const struct diagnosis *d)
{
	const struct outcome *worst = NULL;

	for (size_t i = 0; i < d->outcome_n; i++) {
		const struct outcome *o = &d->outcomes[i];

		if (o->verdict == VERDICT_UNKNOWN && o->why &&
		    (!worst || o->rule->severity > worst->rule->severity))
			worst = o;
	}
	return worst;
}

/* Why nothing could be judged. */
static void add_unknown(struct strbuf *out, const struct caller *c, const struct diagnosis *d,
			const struct requirements *r)
{
	const struct outcome *worst = worst_unknown(d);
	AUTO_STRBUF struct strbuf text = {0};

	if (!worst) {
		add_pairs(out, c, d, r, "unknown: ");
		return;
	}
	strbuf_printf(&text, "unknown: %s: %s", worst->rule->id, worst->why);
	caller_line(out, c, strbuf_str(&text));
}

void report_caller(struct strbuf *out, const struct caller *c, const struct diagnosis *d,
		   const struct requirements *r, enum verdict v, int threshold)
{
	size_t lines = 0;

	if (v == VERDICT_OK)
		return;
	if (v != VERDICT_BAD) {
		add_unknown(out, c, d, r);
		return;
	}
	for (size_t i = 0; i < d->finding_n && lines < c->lines; i++) {
		if ((int)d->findings[i].severity < threshold)
			continue;
		add_finding(out, c, &d->findings[i]);
		lines++;
	}
	if (!lines)
		add_pairs(out, c, d, r, "");
}

/* ---- metrics ---- */

static void family(struct strbuf *out, const char *name, const char *help)
{
	strbuf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* `NAME="VALUE"`, with what the format escapes; other control characters become '?'. */
static void label(struct strbuf *out, const char *separator, const char *name, const char *value)
{
	strbuf_printf(out, "%s%s=\"", separator, name);
	for (; value && *value; value++) {
		if (*value == '\\' || *value == '"')
			strbuf_putc(out, '\\');
		strbuf_putc(out, (unsigned char)*value < ' ' || *value == 0x7f ? '?' : *value);
	}
	strbuf_putc(out, '"');
}

static const char *known(struct fact_str f)
{
	return fact_known(f) ? f.value : "";
}

static void add_info(struct strbuf *out, const struct machine *m)
{
	family(out, "onehop_info", "Versions on this host; the value is always 1.");
	strbuf_puts(out, "onehop_info");
	label(out, "{", "version", ONEHOP_VERSION);
	label(out, ",", "driver", known(m->driver.module_version));
	label(out, ",", "kernel", known(m->kernel.release));
	strbuf_puts(out, "} 1\n");
}

static void add_pairs_metrics(struct strbuf *out, const struct topology *t)
{
	struct pair_counts c;

	topology_count(t, &c);
	family(out, "onehop_pairs", "Ordered pairs of GPUs by verdict.");
	for (int v = 0; v < PAIR_VERDICT_N; v++) {
		strbuf_puts(out, "onehop_pairs");
		label(out, "{", "verdict", pair_verdict_word((enum pair_verdict)v));
		strbuf_printf(out, "} %zu\n", c.by_verdict[v]);
	}
	if (t->gpu_n < 2)
		return;
	family(out, "onehop_pair_direct",
	       "1 if the initiator accesses the target's memory directly, 0 if that is blocked; "
	       "no series if it is doubtful or unknown.");
	for (size_t i = 0; i < t->gpu_n; i++) {
		for (size_t j = 0; j < t->gpu_n; j++) {
			enum pair_verdict v = topology_path(t, i, j)->verdict;

			if (i == j || (v != PAIR_DIRECT && v != PAIR_BLOCKED))
				continue;
			strbuf_puts(out, "onehop_pair_direct");
			label(out, "{", "initiator", t->endpoints[i].pci->name);
			label(out, ",", "target", t->endpoints[j].pci->name);
			strbuf_printf(out, "} %d\n", v == PAIR_DIRECT);
		}
	}
}

static void add_rules(struct strbuf *out, const struct diagnosis *d, enum verdict which,
		      const char *name, const char *help)
{
	bool any = false;

	for (size_t i = 0; i < d->outcome_n; i++) {
		if (d->outcomes[i].verdict != which)
			continue;
		if (!any)
			family(out, name, help);
		any = true;
		strbuf_puts(out, name);
		label(out, "{", "rule", d->outcomes[i].rule->id);
		label(out, ",", "severity", severity_word(d->outcomes[i].rule->severity));
		strbuf_puts(out, "} 1\n");
	}
}

static void add_rule_counts(struct strbuf *out, const struct diagnosis *d)
{
	static const char *const states[VERDICT_N] = {[VERDICT_NA] = "not_applicable",
						      [VERDICT_OK] = "ok",
						      [VERDICT_UNKNOWN] = "unknown",
						      [VERDICT_BAD] = "bad"};
	size_t n[VERDICT_N] = {0};

	for (size_t i = 0; i < d->outcome_n; i++)
		n[d->outcomes[i].verdict]++;
	family(out, "onehop_rules", "Rules by outcome.");
	for (int v = 0; v < VERDICT_N; v++) {
		strbuf_puts(out, "onehop_rules");
		label(out, "{", "state", states[v]);
		strbuf_printf(out, "} %zu\n", n[v]);
	}
}

static struct fact_int gpu_bar1(const struct gpu *g)
{
	return g->bar1_bytes;
}

static struct fact_int gpu_memory(const struct gpu *g)
{
	return g->vram_bytes;
}

static struct fact_int gpu_width(const struct gpu *g)
{
	return g->pci->link_width;
}

static struct fact_int gpu_width_max(const struct gpu *g)
{
	return g->pci->link_width_max;
}

/* Of each GPU; GPUs of which it is unknown have no series. */
static const struct {
	const char *name, *help;
	struct fact_int (*value)(const struct gpu *g);
} gpu_gauges[] = {
	{"onehop_gpu_memory_bytes", "Memory of the GPU.", gpu_memory},
	{"onehop_gpu_bar1_bytes", "Size of BAR1, through which peers access the memory.", gpu_bar1},
	{"onehop_gpu_link_width_lanes", "Lanes of the PCIe link that are in use.", gpu_width},
	{"onehop_gpu_link_width_max_lanes", "Lanes that the GPU supports.", gpu_width_max},
};

static void add_gpu_gauge(struct strbuf *out, const struct machine *m, size_t which)
{
	bool any = false;

	for (size_t i = 0; i < m->gpu_n; i++) {
		struct fact_int v = gpu_gauges[which].value(&m->gpus[i]);

		if (!fact_known(v))
			continue;
		if (!any)
			family(out, gpu_gauges[which].name, gpu_gauges[which].help);
		any = true;
		strbuf_puts(out, gpu_gauges[which].name);
		label(out, "{", "pci_bus_id", m->gpus[i].pci->name);
		strbuf_printf(out, "} %lld\n", (long long)v.value);
	}
}

static void add_gpus(struct strbuf *out, const struct machine *m)
{
	if (m->gpu_n)
		family(out, "onehop_gpu_info", "GPUs of this host; the value is always 1.");
	for (size_t i = 0; i < m->gpu_n; i++) {
		const struct gpu *g = &m->gpus[i];

		strbuf_puts(out, "onehop_gpu_info");
		label(out, "{", "pci_bus_id", g->pci->name);
		label(out, ",", "uuid", known(g->uuid));
		label(out, ",", "model", known(g->model));
		strbuf_puts(out, "} 1\n");
	}
	for (size_t i = 0; i < sizeof(gpu_gauges) / sizeof(gpu_gauges[0]); i++)
		add_gpu_gauge(out, m, i);
}

void report_metrics(struct strbuf *out, const struct diagnosis *d, long long now)
{
	add_info(out, d->topology->machine);
	add_gpus(out, d->topology->machine);
	add_pairs_metrics(out, d->topology);
	add_rule_counts(out, d);
	add_rules(out, d, VERDICT_BAD, "onehop_rule_bad", "Rules that do not hold.");
	add_rules(out, d, VERDICT_UNKNOWN, "onehop_rule_unknown",
		  "Rules that could not be judged.");
	family(out, "onehop_last_run_timestamp_seconds", "When this was measured.");
	strbuf_printf(out, "onehop_last_run_timestamp_seconds %lld\n", now);
}
