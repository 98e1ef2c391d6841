/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces that reports share: the machine in one line, its devices, the pair matrix. */
#include "report/report_impl.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "bench/statistics.h"
#include "machine/container.h"
#include "result/figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* "GPU0 0000:41:00.0" */
static const char *endpoint_label(const struct endpoint *e, char *buf, size_t size)
{
	snprintf(buf, size, "%s %s", e->name, e->pci ? e->pci->name : "(no PCI device)");
	return buf;
}

const char *bytes_format(struct fact_int bytes, char *buf, size_t size)
{
	const int64_t mib = 1 << 20, gib = 1 << 30;

	if (!fact_known(bytes))
		snprintf(buf, size, "?");
	else if (bytes.value >= gib && bytes.value % gib == 0)
		snprintf(buf, size, "%" PRId64 " GiB", bytes.value / gib);
	else
		snprintf(buf, size, "%" PRId64 " MiB", bytes.value / mib);
	return buf;
}

/* clang-format off */
static const struct {
	const char *mark;
	enum style style;
} marks[PAIR_VERDICT_N] = {
	[PAIR_DIRECT]    = {"+", STYLE_GOOD},
	[PAIR_SUSPECT]   = {"~", STYLE_WARN},
	[PAIR_BLOCKED]   = {"x", STYLE_BAD},
	[PAIR_UNDECIDED] = {"?", STYLE_WARN},
};
/* clang-format on */

/* ---- the machine ---- */

/* "origin: real" of "origin: real (published at ...)", the first line of a note; 0: it has none. */
static size_t origin_length(const char *note)
{
	return text_starts_with(note, "origin: ") ? strcspn(note, "(\n") : 0;
}

static void add_note(struct document *out, const char *note)
{
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, note))
		if (n)
			document_paragraph(out, STYLE_DIM, 2, "%.*s", (int)n, line);
}

void add_recorded(struct document *out, const struct machine *m)
{
	static const char elsewhere[] = "not this host";
	const char *note = m->note ? m->note : "";
	size_t n = origin_length(note), words = n;
	AUTO_FREE char *line = NULL;

	if (!m->recorded)
		return;
	if (m->text_part_n) {
		document_paragraph(out, STYLE_PLAIN, 0, "Machine of %s", m->source_name);
		return;
	}
	while (words && note[words - 1] == ' ')
		words--;
	/* In one line at any width, so that the path can be copied. */
	line = xprintf("Recorded machine: %s (%.*s)", m->source_name,
		       (int)(words ? words : strlen(elsewhere)), words ? note : elsewhere);
	document_verbatim(out, 0, line);
}

void add_recording_note(struct document *out, const struct machine *m)
{
	const char *note = m->recorded && m->note ? m->note : "";

	add_note(out, note + origin_length(note));
}

static void add_part(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add_part(struct strbuf *b, const char *fmt, ...)
{
	va_list ap;

	if (b->len)
		strbuf_puts(b, ", ");
	va_start(ap, fmt);
	strbuf_vprintf(b, fmt, ap);
	va_end(ap);
}

static const char *const flavor_notes[] = {
	[DRIVER_PROPRIETARY] = " (proprietary modules)",
	[DRIVER_OPEN] = " (open modules)",
	[DRIVER_NOUVEAU] = " (nouveau)",
	[DRIVER_NOVA] = " (nova)",
};

static const char *flavor_note(struct fact_int flavor)
{
	bool named = fact_known(flavor) && flavor.value >= 0 &&
		     (size_t)flavor.value < sizeof(flavor_notes) / sizeof(flavor_notes[0]);

	return named ? flavor_notes[flavor.value] : "";
}

static void add_driver_part(struct strbuf *b, const struct nvidia_driver *d)
{
	if (fact_known(d->module_version) && fact_is(d->loaded, 0))
		add_part(b, "NVIDIA driver %s%s installed, not loaded", d->module_version.value,
			 flavor_note(d->flavor));
	else if (fact_known(d->module_version))
		add_part(b, "NVIDIA driver %s%s", d->module_version.value, flavor_note(d->flavor));
	else if (fact_is(d->loaded, 0) || fact_absent(d->loaded))
		add_part(b, "no NVIDIA driver loaded");
	else
		add_part(b, "NVIDIA driver version unknown");
}

static bool model_unknown(const struct gpu *g)
{
	return !fact_known(g->model) && !(fact_known(g->pci->vendor) && fact_known(g->pci->device));
}

static size_t count_unknown_models(const struct machine *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->gpu_n; i++)
		n += model_unknown(&m->gpus[i]);
	return n;
}

/*
 * "8 x NVIDIA GeForce RTX 4090", a run of equal models at a time; "3 of unknown model" of 4 last.
 */
static void add_gpu_parts(struct strbuf *b, const struct machine *m)
{
	size_t unknown = count_unknown_models(m);
	char name[128];

	if (!m->gpu_n && m->text_part_n && !fact_is(m->pci_listed, 1))
		add_part(b, "no GPU in the text");
	else if (!m->gpu_n)
		add_part(b, m->pci_n || fact_is(m->pci_listed, 1)
				    ? "no NVIDIA GPU"
				    : "PCI devices could not be listed");
	for (size_t i = 0, n; i < m->gpu_n; i += n) {
		const struct gpu *g = &m->gpus[i];
		const char *model = fact_str_or(g->model, NULL);

		n = 1;
		if (model_unknown(g))
			continue;
		for (; i + n < m->gpu_n; n++) {
			const char *next = fact_str_or(m->gpus[i + n].model, NULL);

			if (!model != !next || (model && strcmp(model, next) != 0) ||
			    (!model && m->gpus[i + n].pci->device.value != g->pci->device.value))
				break;
		}
		if (!model)
			model = pci_device_name(g->pci, name, sizeof(name));
		add_part(b, "%zu x %s", n, model);
	}
	if (unknown == m->gpu_n && unknown)
		add_part(b, "%zu %s of unknown model", unknown,
			 text_plural(unknown, "GPU", "GPUs"));
	else if (unknown)
		add_part(b, "%zu %s of unknown model", unknown,
			 text_plural(unknown, "other GPU", "other GPUs"));
}

void put_gpus_and_driver(struct strbuf *out, const struct machine *m)
{
	AUTO_STRBUF struct strbuf b = {0};

	add_gpu_parts(&b, m);
	add_driver_part(&b, &m->driver);
	strbuf_puts(out, strbuf_str(&b));
}

void add_machine_line(struct document *out, const struct machine *m)
{
	struct strbuf b AUTO_STRBUF = {0};
	char sign[64];

	add_gpu_parts(&b, m);
	if (fact_known(m->kernel.board))
		add_part(&b, "%s", m->kernel.board.value);
	if (fact_known(m->cpu.name) && fact_known(m->cpu.sockets) && m->cpu.sockets.value > 1)
		add_part(&b, "%" PRId64 " x %s", m->cpu.sockets.value, m->cpu.name.value);
	else if (fact_known(m->cpu.name))
		add_part(&b, "%s", m->cpu.name.value);
	add_driver_part(&b, &m->driver);
	if (fact_known(m->kernel.release))
		add_part(&b, "Linux %s", m->kernel.release.value);
	if (fact_str_is(m->kernel.hypervisor, "virtual")) /* of a make that nobody can tell */
		add_part(&b, "virtual machine");
	else if (fact_known(m->kernel.hypervisor))
		add_part(&b, "virtual machine (%s)", m->kernel.hypervisor.value);
	if (container_is_guess(m))
		add_part(&b, "possibly a container (%s)", container_sign(m, sign, sizeof(sign)));
	else if (fact_known(m->kernel.container))
		add_part(&b, "container (%s)", m->kernel.container.value);
	document_paragraph(out, STYLE_PLAIN, 0, "%s", strbuf_str(&b));
}

static bool numbered_otherwise(const struct gpu *g)
{
	return fact_is_not(g->nvml_index, (int64_t)g->index) ||
	       fact_is_not(g->cuda_ordinal, (int64_t)g->index) || fact_absent(g->cuda_ordinal);
}

static void add_number(struct strbuf *b, const char *comma, const char *who, struct fact_int number)
{
	if (fact_known(number))
		strbuf_printf(b, "%s %s %" PRId64, comma, who, number.value);
	else if (fact_absent(number))
		strbuf_printf(b, "%s hidden from %s", comma, who);
}

void add_numbering(struct document *out, const struct machine *m)
{
	struct strbuf b AUTO_STRBUF = {0};

	for (size_t i = 0; i < m->gpu_n; i++) {
		if (!numbered_otherwise(&m->gpus[i]))
			continue;
		strbuf_printf(&b, "%sGPU%zu is", b.len ? "; " : "", i);
		add_number(&b, "", "nvidia-smi", m->gpus[i].nvml_index);
		add_number(&b, fact_known(m->gpus[i].nvml_index) ? "," : "", "CUDA",
			   m->gpus[i].cuda_ordinal);
	}
	if (b.len)
		document_paragraph(out, STYLE_WARN, 0,
				   "Other tools number the GPUs differently (here: PCI order): %s.",
				   strbuf_str(&b));
}

/* ---- devices of a test or measurement ---- */

int short_length(const char *name)
{
	return (int)strcspn(name, " ");
}

void add_summary_cells(struct document *out, const struct summary *v)
{
	const double values[] = {v->median, v->low, v->high, v->min, v->max};

	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		document_cell(out, STYLE_PLAIN, isnan(values[i]) ? "-" : "%.4g", values[i]);
	document_cell(out, STYLE_PLAIN, "%zu", v->n);
}

void add_simulated(struct document *out, size_t n)
{
	document_paragraph(out, STYLE_WARN, 0, SIMULATED_NOTICE, n);
}

void add_skips(struct document *out, const struct device_skip *skips, size_t n)
{
	for (size_t i = 0; i < n; i++)
		document_styled_item(out, STYLE_WARN, STYLE_PLAIN, 0, "skipped", "%s: %s",
				     skips[i].name, skips[i].reason);
}

/* ---- the matrix ---- */

static void add_matrix_cell(struct document *out, const struct topology *t, size_t i, size_t j)
{
	const struct path *p = topology_path(t, i, j);
	bool nics = t->endpoints[i].kind == ENDPOINT_NIC && t->endpoints[j].kind == ENDPOINT_NIC;
	char name[16];

	if (i == j)
		document_cell(out, STYLE_DIM, "X");
	else if (nics)
		document_cell(out, STYLE_DIM, "%s", path_class_name(p, name, sizeof(name)));
	else
		document_cell(out, marks[p->verdict].style, "%s %s",
			      path_class_name(p, name, sizeof(name)), marks[p->verdict].mark);
	if (i != j)
		document_cell_anchor(out, PAIR_ANCHOR, t->endpoints[i].name, t->endpoints[j].name);
}

void add_page_matrix(struct document *out, const struct topology *t)
{
	if (!document_is_page(out) || t->gpu_n < 2)
		return;
	document_begin(out, GROUP_PAGE, STYLE_PLAIN, NULL, "%s", "");
	add_matrix(out, t, t->gpu_n, 0, t->gpu_n, true);
	add_matrix_legend(out, t, t->gpu_n);
	document_end(out);
}

void add_matrix(struct document *out, const struct topology *t, size_t rows, size_t first,
		size_t last, bool long_labels)
{
	char label[64];

	document_matrix(out, 1 + last - first, 1);
	document_row(out);
	document_cell(out, STYLE_DIM, "%s", "");
	for (size_t j = first; j < last; j++)
		document_cell(out, STYLE_DIM, "%s", t->endpoints[j].name);
	for (size_t i = 0; i < rows; i++) {
		const struct endpoint *e = &t->endpoints[i];

		document_row(out);
		document_cell(out, STYLE_PLAIN, "%s",
			      long_labels ? endpoint_label(e, label, sizeof(label)) : e->name);
		for (size_t j = first; j < last; j++)
			add_matrix_cell(out, t, i, j);
	}
}

void add_matrix_legend(struct document *out, const struct topology *t, size_t n)
{
	size_t seen[PAIR_VERDICT_N] = {0};
	struct strbuf b AUTO_STRBUF = {0};

	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < n; j++) {
			bool judged = i != j && (i < t->gpu_n || j < t->gpu_n);

			if (judged)
				seen[topology_path(t, i, j)->verdict]++;
		}
	}
	for (int v = 0; v < PAIR_VERDICT_N; v++) {
		if (seen[v])
			add_part(&b, "%s %s", marks[v].mark,
				 pair_verdict_text((enum pair_verdict)v));
	}
	if (b.len)
		document_caption(out, "%s. Row: initiator; column: owner of the memory.",
				 strbuf_str(&b));
}

void add_class_summary(struct document *out, const struct topology *t)
{
	size_t counts[PATH_CLASS_N][PAIR_VERDICT_N] = {0};

	for (size_t i = 0; i < t->gpu_n; i++) {
		for (size_t j = 0; j < t->gpu_n; j++) {
			const struct path *p = topology_path(t, i, j);

			if (i != j)
				counts[p->class][p->verdict]++;
		}
	}
	document_table(out, 0, 1 + PAIR_VERDICT_N, 2);
	document_row(out);
	document_cell(out, STYLE_DIM, "ordered GPU pairs");
	for (int v = 0; v < PAIR_VERDICT_N; v++)
		document_cell(out, STYLE_DIM, "%s", pair_verdict_text((enum pair_verdict)v));
	for (int c = 0; c < PATH_CLASS_N; c++) {
		size_t all = 0;

		for (int v = 0; v < PAIR_VERDICT_N; v++)
			all += counts[c][v];
		if (!all)
			continue;
		document_row(out);
		document_cell(out, STYLE_PLAIN, "%s (%zu)", path_class_word(c), all);
		for (int v = 0; v < PAIR_VERDICT_N; v++)
			document_cell(out, counts[c][v] ? marks[v].style : STYLE_DIM, "%zu",
				      counts[c][v]);
	}
}
