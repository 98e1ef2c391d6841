/* SPDX-License-Identifier: Apache-2.0 */
/* Pair figures in the exact layouts of p2pBandwidthLatencyTest and of nvbandwidth's JSON. */
#include "report/report_p2p.h"

#include "base/strbuf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* NULL: no such cell. Of several sizes the last counts. */
static const struct p2p_cell *find_cell(const struct p2p_report *r, const char *word, int initiator,
					int target)
{
	const struct p2p_cell *found = NULL;

	for (size_t i = 0; i < r->result->cell_n; i++) {
		const struct p2p_cell *c = &r->result->cells[i];

		if (strcmp(c->quantity->word, word) == 0 && c->initiator == initiator &&
		    c->target == target)
			found = c;
	}
	return found && found->value.n ? found : NULL;
}

/* Both ways is measured once for two cells. */
static const struct p2p_cell *find_either(const struct p2p_report *r, const char *word, int i,
					  int j)
{
	const struct p2p_cell *c = find_cell(r, word, i, j);

	return c || strncmp(word, "both", 4) != 0 ? c : find_cell(r, word, j, i);
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
	strbuf_puts(out, "\n***NOTE: In case a device doesn't have P2P access to other one, it "
			 "falls back to normal memcopy procedure.\nSo you can see lesser "
			 "Bandwidth (GB/s) and unstable Latency (us) in those cases.\n\n");
}

/* 0: not measured. Where P2P is not to be had the peer copies through the host, whatever its title says. */
static double value_of(const struct p2p_report *r, const char *word, int i, int j, bool enqueue)
{
	const struct p2p_cell *c = find_either(r, word, i, j);
	char staged[32];

	if (!c) {
		snprintf(staged, sizeof(staged), "%s" FIGURE_STAGED,
			 strcmp(word, "latency-read") == 0 ? "latency-write"
			 : strcmp(word, "read-ce") == 0    ? "write-ce"
							   : word);
		c = find_either(r, staged, i, j);
	}
	return !c ? 0 : enqueue ? c->enqueue_us : c->value.median;
}

/* The peer measures everything; what onehop did not is no 0.00. */
static void add_value(struct strbuf *out, double value)
{
	if (value > 0)
		strbuf_printf(out, "%6.02f ", value);
	else
		strbuf_printf(out, "%6s ", "-");
}

static void add_values(const struct p2p_report *r, const char *corner, const char *word,
		       bool enqueue, struct strbuf *out)
{
	strbuf_puts(out, corner);
	for (size_t j = 0; j < r->n; j++)
		strbuf_printf(out, "%6zu ", j);
	strbuf_putc(out, '\n');
	for (size_t i = 0; i < r->n; i++) {
		strbuf_printf(out, "%6zu ", i);
		for (size_t j = 0; j < r->n; j++)
			add_value(out, value_of(r, word, (int)i, (int)j, enqueue));
		strbuf_putc(out, '\n');
	}
}

static bool was_measured(const struct p2p_report *r, const char *word)
{
	for (size_t i = 0; i < r->result->cell_n; i++)
		if (strcmp(r->result->cells[i].quantity->word, word) == 0)
			return true;
	return false;
}

static const struct {
	const char *title, *word;
	bool latency, on_demand; /* the peer's --p2p_read */
} matrices[] = {
	{"Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n", "write-ce-staged", 0, 0},
	{"Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n", "write-ce", 0, 0},
	{"Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)\n", "read-ce", 0, 1},
	{"Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n", "both-ce-staged", 0, 0},
	{"Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n", "both-ce", 0, 0},
	{"P2P=Disabled Latency Matrix (us)\n", "latency-write-staged", 1, 0},
	{"P2P=Enabled Latency (P2P Writes) Matrix (us)\n", "latency-write", 1, 0},
	{"P2P=Enabled Latency (P2P Reads) Matrix (us)\n", "latency-read", 1, 1},
};

void format_p2p_test(const struct p2p_report *r, struct strbuf *out)
{
	strbuf_puts(out, "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n");
	add_devices(r, out);
	add_connectivity(r, out);
	for (size_t i = 0; i < sizeof(matrices) / sizeof(*matrices); i++) {
		if (matrices[i].on_demand && !was_measured(r, matrices[i].word))
			continue;
		strbuf_puts(out, matrices[i].title);
		add_values(r, matrices[i].latency ? "   GPU" : "   D\\D", matrices[i].word, false,
			   out);
		if (!matrices[i].latency)
			continue;
		strbuf_putc(out, '\n');
		add_values(r, "   CPU", matrices[i].word, true, out);
	}
	strbuf_puts(out, "\nNOTE: The CUDA Samples are not meant for performance measurements. "
			 "Results may vary when GPU Boost is enabled.\n");
}

/* ---- nvbandwidth ---- */

/* Which of our figures stands in which of its tests. Order: as it numbers its tests. */
static const struct nvb_test {
	const char *name, *word, *description;
	bool host; /* one row, the CPU's */
} nvb_tests[] = {
	{"host_to_device_memcpy_ce", "h2d-ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
	 true},
	{"device_to_host_memcpy_ce", "d2h-ce", "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)",
	 true},
	{"device_to_device_memcpy_read_ce", "read-ce",
	 "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)", false},
	{"device_to_device_memcpy_write_ce", "write-ce",
	 "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)", false},
	{"device_to_device_bidirectional_memcpy_write_ce", "both-ce",
	 "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)", false},
	{"host_device_latency_sm", "latency-host",
	 "memory latency SM CPU(row) <-> GPU(column) (ns)", true},
	{"host_to_device_memcpy_sm", "h2d-sm", "memcpy SM CPU(row) -> GPU(column) bandwidth (GB/s)",
	 true},
	{"device_to_host_memcpy_sm", "d2h-sm", "memcpy SM CPU(row) <- GPU(column) bandwidth (GB/s)",
	 true},
	{"device_to_device_memcpy_read_sm", "read-sm",
	 "memcpy SM GPU(row) -> GPU(column) bandwidth (GB/s)", false},
	{"device_to_device_latency_sm", "latency-chase",
	 "Device to Device Latency SM GPU(row) <-> GPU(column) (ns)", false},
	{"device_to_device_memcpy_write_sm", "write-sm",
	 "memcpy SM GPU(row) <- GPU(column) bandwidth (GB/s)", false},
	{"device_to_device_bidirectional_memcpy_write_sm", "both-sm",
	 "memcpy SM GPU(row) <-> GPU(column) Total bandwidth (GB/s)", false},
};

/* As its JSON library writes strings: beyond ASCII as \uXXXX, which names of GPUs do not need. */
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
static double nvb_value(const struct p2p_report *r, const struct nvb_test *t, int part, int i,
			int j)
{
	const struct p2p_cell *c = find_either(r, t->word, i, j);
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

static void add_row(const struct p2p_report *r, const struct nvb_test *t, int part, int i,
		    bool last, struct strbuf *out, struct nvb_sum *sum)
{
	begin_nested(out, 5, NULL, '[');
	for (size_t j = 0; j < r->n; j++) {
		double v = t->host ? nvb_value(r, t, part, (int)j, -1)
				   : nvb_value(r, t, part, i, (int)j);
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

/* %.17g, and ".0" behind what would look like an integer. */
static void add_real(struct strbuf *out, double v)
{
	char text[40];

	snprintf(text, sizeof(text), "%.17g", v);
	strbuf_printf(out, "%s%s", text, strpbrk(text, ".en") ? "" : ".0");
}

static void add_matrix_members(const struct p2p_report *r, const struct nvb_test *t,
			       struct strbuf *out)
{
	int first = strncmp(t->word, "both", 4) == 0 ? 0 : 2, rows = t->host ? 1 : (int)r->n;
	struct nvb_sum sum = {0};

	add_member(out, 4, "bandwidth_description", t->description, false);
	begin_nested(out, 4, "bandwidth_matrix", '[');
	for (int part = first; part < 3; part++)
		for (int i = 0; i < rows; i++)
			add_row(r, t, part, i, part == 2 && i + 1 == rows, out, &sum);
	begin(out, 4, NULL);
	strbuf_puts(out, "],\n");
	add_member(out, 4, "name", t->name, false);
	add_member(out, 4, "status", "Passed", false);
	begin(out, 4, "sum");
	add_real(out, sum.sum);
	strbuf_putc(out, '\n');
}

/* The first wrong cell of a quantity; NULL: none. */
static const struct p2p_cell *find_wrong(const struct p2p_report *r, const char *word)
{
	for (size_t i = 0; i < r->result->cell_n; i++) {
		const struct p2p_cell *c = &r->result->cells[i];

		if (strcmp(c->quantity->word, word) == 0 && c->data == P2P_WRONG)
			return c;
	}
	return NULL;
}

static bool has_figures(const struct p2p_report *r, const char *word)
{
	for (size_t i = 0; i < r->result->cell_n; i++)
		if (strcmp(r->result->cells[i].quantity->word, word) == 0 &&
		    r->result->cells[i].value.n)
			return true;
	return false;
}

static void add_test(const struct p2p_report *r, const struct nvb_test *t, struct strbuf *out)
{
	const struct p2p_cell *wrong = find_wrong(r, t->word);

	begin_nested(out, 3, NULL, '{');
	if (wrong) {
		AUTO_STRBUF struct strbuf b = {0};

		strbuf_printf(&b, "Data of device %d for device %d is wrong in %lu words",
			      wrong->initiator, wrong->target, (unsigned long)wrong->wrong_words);
		add_member(out, 4, "error", strbuf_str(&b), false);
		add_member(out, 4, "name", t->name, false);
		add_member(out, 4, "status", "Error", true);
	} else if (has_figures(r, t->word)) {
		add_matrix_members(r, t, out);
	} else {
		add_member(out, 4, "name", t->name, false);
		add_member(out, 4, "status", "Waived", true);
	}
}

static void add_tests(const struct p2p_report *r, struct strbuf *out)
{
	bool first = true;

	begin(out, 2, "testcases");
	for (size_t i = 0; i < sizeof(nvb_tests) / sizeof(*nvb_tests); i++) {
		if (!was_measured(r, nvb_tests[i].word))
			continue;
		if (first) {
			strbuf_putc(out, '\n');
			begin_nested(out, 2, NULL, '[');
		} else {
			begin(out, 3, NULL);
			strbuf_puts(out, "},\n");
		}
		first = false;
		add_test(r, &nvb_tests[i], out);
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

/* "version" is that of the layout; who measured stands in "git_version". */
void format_nvbandwidth(const struct p2p_report *r, const char *host_name, struct strbuf *out)
{
	const struct nvidia_driver *d = r->machine && !r->stand_ins ? &r->machine->driver : NULL;

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
