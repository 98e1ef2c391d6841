/* SPDX-License-Identifier: Apache-2.0 */
/* Pair figures in the exact layouts of p2pBandwidthLatencyTest and of nvbandwidth's JSON. */
#include "report/report_p2p.h"

#include "base/strbuf.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* NULL: not measured. Of several sizes the last counts. */
static const struct p2p_cell *find_cell(const struct p2p_report *r, const struct metric *m,
					int initiator, int target)
{
	const struct p2p_cell *found = NULL;

	for (size_t i = 0; i < r->result->cell_n; i++) {
		const struct p2p_cell *c = &r->result->cells[i];

		if (c->metric == m && c->initiator == initiator && c->target == target)
			found = c;
	}
	return found && found->value.n ? found : NULL;
}

/* A bidirectional metric is measured once for two cells. */
static const struct p2p_cell *find_either(const struct p2p_report *r, const struct metric *m, int i,
					  int j)
{
	const struct p2p_cell *c = find_cell(r, m, i, j);

	return c || !m->both_ways ? c : find_cell(r, m, j, i);
}

static void pci_of(const struct device_info *d, struct pci_address *ret)
{
	*ret = (struct pci_address){0};
	pci_address_parse(d->pci, ret);
}

/* ---- p2pBandwidthLatencyTest ---- */

static void add_connectivity(const struct p2p_report *r, struct strbuf *out)
{
	strbuf_puts(out, "P2P Connectivity Matrix\n     D\\D");
	for (size_t j = 0; j < r->n; j++)
		strbuf_printf(out, "%6zu", j);
	strbuf_putc(out, '\n');
	for (size_t i = 0; i < r->n; i++) {
		strbuf_printf(out, "%6zu\t", i);
		for (size_t j = 0; j < r->n; j++)
			strbuf_printf(out, "%6d", i == j || r->access[i * r->n + j]);
		strbuf_putc(out, '\n');
	}
}

static void add_devices(const struct p2p_report *r, struct strbuf *out)
{
	struct pci_address a;

	for (size_t i = 0; i < r->n; i++) {
		pci_of(&r->devices[i], &a);
		strbuf_printf(out,
			      "Device: %zu, %s, pciBusID: %x, pciDeviceID: %x, pciDomainID:%x\n", i,
			      r->devices[i].name, a.bus, a.device, a.domain);
	}
	for (size_t i = 0; i < r->n; i++)
		for (size_t j = 0; j < r->n; j++)
			if (i != j)
				strbuf_printf(out, "Device=%zu %s Access Peer Device=%zu\n", i,
					      r->access[i * r->n + j] ? "CAN" : "CANNOT", j);
	strbuf_puts(
		out,
		"\n***NOTE: In case a device doesn't have P2P access to other one, it falls back "
		"to normal memcopy procedure.\nSo you can see lesser Bandwidth (GB/s) and unstable "
		"Latency (us) in those cases.\n\n");
}

/*
 * 0: not measured. Without P2P the original tool copies through the host, also under its P2P
 * titles.
 */
static double value_of(const struct p2p_report *r, const struct metric *m, int i, int j,
		       bool enqueue)
{
	const struct p2p_cell *c = find_either(r, m, i, j);

	if (!c && m->off)
		c = find_either(r, metric_find(m->off), i, j);
	return !c ? 0 : enqueue ? c->enqueue_us : c->value.median;
}

/* The original tool measures everything. What onehop did not measure is "-", not 0.00. */
static void add_value(struct strbuf *out, double value)
{
	if (value > 0)
		strbuf_printf(out, "%6.02f ", value);
	else
		strbuf_printf(out, "%6s ", "-");
}

static void add_values(const struct p2p_report *r, const char *corner, const struct metric *m,
		       bool enqueue, struct strbuf *out)
{
	strbuf_puts(out, corner);
	for (size_t j = 0; j < r->n; j++)
		strbuf_printf(out, "%6zu ", j);
	strbuf_putc(out, '\n');
	for (size_t i = 0; i < r->n; i++) {
		strbuf_printf(out, "%6zu ", i);
		for (size_t j = 0; j < r->n; j++)
			add_value(out, value_of(r, m, (int)i, (int)j, enqueue));
		strbuf_putc(out, '\n');
	}
}

static bool was_measured(const struct p2p_report *r, const struct metric *m)
{
	for (size_t i = 0; i < r->result->cell_n; i++)
		if (r->result->cells[i].metric == m)
			return true;
	return false;
}

void format_p2p_test(const struct p2p_report *r, struct strbuf *out)
{
	const struct metric *m;

	strbuf_puts(out, "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n");
	add_devices(r, out);
	add_connectivity(r, out);
	for (unsigned i = 1; (m = metric_at(PEER_P2P_TEST, i)); i++) {
		bool latency = m->shape == SHAPE_TINY;

		if (m->read && !was_measured(r, m)) /* the original tool's --p2p_read */
			continue;
		strbuf_printf(out, "%s (%s)\n", m->peers[PEER_P2P_TEST].name, m->unit);
		add_values(r, latency ? "   GPU" : "   D\\D", m, false, out);
		if (!latency)
			continue;
		strbuf_putc(out, '\n');
		add_values(r, "   CPU", m, true, out);
	}
	strbuf_puts(
		out,
		"\nNOTE: The CUDA Samples are not meant for performance measurements. Results may "
		"vary when GPU Boost is enabled.\n");
}

/* ---- nvbandwidth ---- */

/*
 * Quoted like by its JSON library; other bytes than ASCII, which GPU names do not contain, as
 * \uXXXX.
 */
static void add_string(struct strbuf *out, const char *s)
{
	strbuf_putc(out, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			strbuf_printf(out, "\\%c", *s);
		else if (*s >= ' ' && *s < 0x7f)
			strbuf_putc(out, *s);
		else
			strbuf_printf(out, "\\u%04x", (unsigned char)*s);
	}
	strbuf_putc(out, '"');
}

/* A line of `tabs`; `key` NULL: an element of a list. The line is left open. */
static void begin(struct strbuf *out, int tabs, const char *key)
{
	for (int i = 0; i < tabs; i++)
		strbuf_putc(out, '\t');
	if (key)
		strbuf_printf(out, "\"%s\" : ", key);
}

/* An object or list opens on a line of its own. */
static void begin_nested(struct strbuf *out, int tabs, const char *key, char bracket)
{
	if (key) {
		begin(out, tabs, key);
		strbuf_putc(out, '\n');
	}
	begin(out, tabs, NULL);
	strbuf_printf(out, "%c\n", bracket);
}

static void add_member(struct strbuf *out, int tabs, const char *key, const char *value, bool last)
{
	begin(out, tabs, key);
	add_string(out, value);
	strbuf_puts(out, last ? "\n" : ",\n");
}

/*
 * Of both ways it reports first what the second of the pair moves, then what the first does, then
 * the sum, and appends all three to one matrix. `part`: 0 to 2; one way has part 2 alone.
 */
static double nvb_value(const struct p2p_report *r, const struct metric *m, int part, int i, int j)
{
	const struct p2p_cell *c = find_either(r, m, i, j);
	double forth;

	if (!c)
		return NAN;
	forth = c->initiator == i ? c->share : 1 - c->share;
	return c->value.median * (part == 2 ? 1 : part == 1 ? forth : 1 - forth);
}

struct nvb_sum {
	double sum;
	size_t cells;
};

/* The matrix has one row, for the CPU. */
static bool is_of_host(const struct metric *m)
{
	return m->shape == SHAPE_HOST || m->shape == SHAPE_CHASE_HOST;
}

static void add_row(const struct p2p_report *r, const struct metric *m, int part, int i, bool last,
		    struct strbuf *out, struct nvb_sum *sum)
{
	begin_nested(out, 5, NULL, '[');
	for (size_t j = 0; j < r->n; j++) {
		double v = is_of_host(m) ? nvb_value(r, m, part, (int)j, -1)
					 : nvb_value(r, m, part, i, (int)j);
		char text[32] = "N/A";

		if (!isnan(v)) {
			snprintf(text, sizeof(text), "%g", v);
			sum->sum += part == 2 ? v : 0;
		}
		begin(out, 6, NULL);
		strbuf_printf(out, "\"%s\"%s\n", text, j + 1 < r->n ? "," : "");
	}
	begin(out, 5, NULL);
	strbuf_puts(out, last ? "]\n" : "],\n");
}

/* %.17g, with ".0" added to what would look like an integer. */
static void add_real(struct strbuf *out, double v)
{
	char text[40];

	snprintf(text, sizeof(text), "%.17g", v);
	strbuf_printf(out, "%s%s", text, strpbrk(text, ".en") ? "" : ".0");
}

static void add_matrix_members(const struct p2p_report *r, const struct metric *m,
			       struct strbuf *out)
{
	int first = m->both_ways ? 0 : 2, rows = is_of_host(m) ? 1 : (int)r->n;
	struct nvb_sum sum = {0};

	add_member(out, 4, "bandwidth_description", m->peers[PEER_NVBANDWIDTH].more, false);
	begin_nested(out, 4, "bandwidth_matrix", '[');
	for (int part = first; part < 3; part++)
		for (int i = 0; i < rows; i++)
			add_row(r, m, part, i, part == 2 && i + 1 == rows, out, &sum);
	begin(out, 4, NULL);
	strbuf_puts(out, "],\n");
	add_member(out, 4, "name", m->peers[PEER_NVBANDWIDTH].name, false);
	add_member(out, 4, "status", "Passed", false);
	begin(out, 4, "sum");
	add_real(out, sum.sum);
	strbuf_putc(out, '\n');
}

/* The first wrong cell of a metric; NULL: none. */
static const struct p2p_cell *find_wrong(const struct p2p_report *r, const struct metric *m)
{
	for (size_t i = 0; i < r->result->cell_n; i++) {
		const struct p2p_cell *c = &r->result->cells[i];

		if (c->metric == m && c->data == P2P_WRONG)
			return c;
	}
	return NULL;
}

static bool has_figures(const struct p2p_report *r, const struct metric *m)
{
	for (size_t i = 0; i < r->result->cell_n; i++)
		if (r->result->cells[i].metric == m && r->result->cells[i].value.n)
			return true;
	return false;
}

static void add_test(const struct p2p_report *r, const struct metric *m, struct strbuf *out)
{
	const struct p2p_cell *wrong = find_wrong(r, m);

	begin_nested(out, 3, NULL, '{');
	if (wrong) {
		AUTO_STRBUF struct strbuf b = {0};

		strbuf_printf(&b, "Data of device %d for device %d is wrong in %lu %s",
			      wrong->initiator, wrong->target, (unsigned long)wrong->wrong_words,
			      text_plural(wrong->wrong_words, "word", "words"));
		add_member(out, 4, "error", strbuf_str(&b), false);
		add_member(out, 4, "name", m->peers[PEER_NVBANDWIDTH].name, false);
		add_member(out, 4, "status", "Error", true);
	} else if (has_figures(r, m)) {
		add_matrix_members(r, m, out);
	} else {
		add_member(out, 4, "name", m->peers[PEER_NVBANDWIDTH].name, false);
		add_member(out, 4, "status", "Waived", true);
	}
}

static void add_tests(const struct p2p_report *r, struct strbuf *out)
{
	const struct metric *m;
	bool first = true;

	begin(out, 2, "testcases");
	for (unsigned i = 1; (m = metric_at(PEER_NVBANDWIDTH, i)); i++) {
		if (!was_measured(r, m))
			continue;
		if (first) {
			strbuf_putc(out, '\n');
			begin_nested(out, 2, NULL, '[');
		} else {
			begin(out, 3, NULL);
			strbuf_puts(out, "},\n");
		}
		first = false;
		add_test(r, m, out);
	}
	if (first) {
		strbuf_puts(out, "[],\n");
		return;
	}
	begin(out, 3, NULL);
	strbuf_puts(out, "}\n");
	begin(out, 2, NULL);
	strbuf_puts(out, "],\n");
}

static void add_device_list(const struct p2p_report *r, const char *host_name, struct strbuf *out)
{
	struct pci_address a;

	begin_nested(out, 2, "GPU Device list", '[');
	for (size_t i = 0; i < r->n; i++) {
		AUTO_STRBUF struct strbuf b = {0};

		pci_of(&r->devices[i], &a);
		strbuf_printf(&b, "%zu: %s (%08x:%02x:%02x): (%s)", i, r->devices[i].name, a.domain,
			      a.bus, a.device, host_name);
		begin(out, 3, NULL);
		add_string(out, strbuf_str(&b));
		strbuf_puts(out, i + 1 < r->n ? ",\n" : "\n");
	}
	begin(out, 2, NULL);
	strbuf_puts(out, "],\n");
}

/* "version" is that of the layout; "git_version" names onehop. */
void format_nvbandwidth(const struct p2p_report *r, const char *host_name, struct strbuf *out)
{
	const struct nvidia_driver *d = r->machine && !r->simulated ? &r->machine->driver : NULL;

	strbuf_puts(out, "{\n");
	begin_nested(out, 1, "nvbandwidth", '{');
	begin(out, 2, "CUDA Runtime Version");
	strbuf_printf(out, "%d,\n", d ? (int)fact_or(d->cuda_version, 0) : 0);
	add_member(out, 2, "Driver Version", d ? fact_str_or(d->module_version, "unknown") : "none",
		   false);
	add_device_list(r, host_name, out);
	add_member(out, 2, "git_version", "onehop " ONEHOP_VERSION, false);
	add_tests(r, out);
	add_member(out, 2, "version", "v0.8", true);
	strbuf_puts(out, "\t}\n}\n\n");
}
