/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ib_write_bw, ib_write_lat and the others of perftest: the NIC, the GPU whose memory it used, and
 * the rate or the time (src/perftest_parameters.c and .h, src/cuda_memory.c; 4.5 to 6.29).
 */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/text.h"
#include "machine/observed.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Smaller messages measure the rate of messages, not that of the path. */
#define LEAST_BYTES 4096

/*
 * " RDMA_Write BW Test" of ib_write_bw, "RDMA_Read Bidirectional Post List BW Test"
 */
static bool is_title(const char *s)
{
	static const char *const tests[] = {"RDMA_Write ", "RDMA_Read ", "Send ", "Atomic "};

	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		if (text_starts_with(s, tests[i]))
			return text_ends_with(s, " Test") &&
			       (strstr(s, " BW ") || strstr(s, " Latency "));
	return false;
}

/* What is printed above the title with --use_cuda. */
static bool is_of_cuda(const char *s)
{
	static const char *const starts[] = {
		"Listing all CUDA devices", "CUDA device ",
		"Picking device No.",       "Picking GPU number ",
		"Finding PCIe BUS ",        "[pid = ",
		"creating CUDA Ctx",        "making it the current CUDA Ctx",
		"cuMemAlloc() of ",         "allocated ",
		"using DMA-BUF for GPU",    "There are ",
	};

	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		if (text_starts_with(s, starts[i]))
			return true;
	return false;
}

/* The page may begin behind the first lines of it; "allocated ..." alone may be of any program. */
static bool begins_of_cuda(const char *s)
{
	return text_starts_with(s, "initializing CUDA") ||
	       text_starts_with(s, "Listing all CUDA") || text_starts_with(s, "CUDA device ") ||
	       text_starts_with(s, "Picking ") || text_starts_with(s, "[pid = ");
}

/* A frame, the heading or a row of the table, or " Link type       : IB". */
static bool is_of_table(const char *s)
{
	return *s == '-' || *s == '#' || isdigit((unsigned char)*s) || strstr(s, " : ") ||
	       strstr(s, ": ") || text_starts_with(s, "Conflicting CPU");
}

size_t perftest_match(struct part *p, const struct text_line *lines, size_t n)
{
	const char *title = NULL;
	size_t end = 0;

	for (size_t i = 0; i < n; i++) {
		const char *s = line_text(&lines[i]);

		if (line_is_blank(&lines[i]) && i && !title)
			continue;
		if (is_title(s) && title)
			break;
		if (is_title(s))
			title = s;
		else if (title ? !is_of_table(s)
			       : !(i ? is_of_cuda(s) || *s == '-' : begins_of_cuda(s)))
			break;
		end = i + 1;
	}
	if (title)
		snprintf(p->about, sizeof(p->about), "%.*s", (int)sizeof(p->about) - 1, title);
	return title ? end : 0;
}

/* The value behind a key that may be the second of its line. */
static const char *second_value(const struct text_line *l, const char *key)
{
	const char *s = strstr(l->text, key);

	if (!s)
		return NULL;
	s += strlen(key) + strspn(s + strlen(key), " ");
	return *s == ':' ? s + 1 + strspn(s + 1, " ") : NULL;
}

/* "Device         : mlx5_0"; false: the line does not name it. */
static bool read_device(const struct text_line *l, char name[NIC_NAME_SIZE])
{
	const char *s = second_value(l, " Device");
	size_t n = s ? strcspn(s, " ") : 0;

	return nic_name_read(s, n, name);
}

/* Of the machine only the NIC: neither its port nor the domain of a GPU's address is named. */
void perftest_decode(const struct part *p, struct claims *c)
{
	char name[NIC_NAME_SIZE];

	for (size_t i = 0; i < p->n; i++)
		if (read_device(&p->lines[i], name))
			claim(c, CLAIM_AT(p, &p->lines[i]), "", "nic/%s/named", name);
}

/* ---- rates and times ---- */

struct table {
	char nic[NIC_NAME_SIZE];
	bool of_gpu; /* it used memory of a GPU */
	int gpu;     /* which; -1: unknown */
	bool usable; /* one port, and no atomic operations */
	bool both_ways;
	bool reads;     /* of the peer's memory */
	double unit;    /* of its rates, in GB/s; 0: it has none */
	size_t time_at; /* the column of its times; 0: it has none */
	double best;    /* GB/s in one direction, or microseconds; 0: none */
	uint64_t bytes;
	const struct text_line *line;
};

/* The only GPU with this bus and device; the domain is not printed. -1: none. */
static int gpu_on_bus(const struct machine *m, unsigned bus, unsigned device)
{
	int found = -1;

	for (size_t i = 0; i < m->gpu_n; i++) {
		const struct pci_address *a = &m->gpus[i].pci->address;

		if (a->domain == PCI_NO_ADDRESS || a->bus != bus || a->device != device)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

/*
 * "Picking device No. 0" and "CUDA device 0: PCIe address is 17:00" above it; "Finding PCIe BUS
 * 0000:17:00.0".
 */
static int read_gpu(const struct part *p, const struct machine *m)
{
	unsigned picked, number, bus, device;
	const char *s;

	for (size_t i = 0; i < p->n; i++) {
		s = line_text(&p->lines[i]);
		if (sscanf(s, "Finding PCIe BUS %*8x:%2x:%2x", &bus, &device) == 2)
			return gpu_on_bus(m, bus, device);
		if (sscanf(s, "Picking device No. %4u", &picked) != 1)
			continue;
		for (size_t k = 0; k < i; k++)
			if (sscanf(line_text(&p->lines[k]),
				   "CUDA device %4u: PCIe address is %2x:%2x", &number, &bus,
				   &device) == 3 &&
			    number == picked)
				return gpu_on_bus(m, bus, device);
	}
	return -1;
}

/* The number of the column with this heading, a word; 0: there is none. */
static size_t column_of(const char *s, const char *heading)
{
	const char *at = strstr(s, heading);
	size_t n = 0;

	for (s += strspn(s, " "); at && s < at; n++) {
		s += strcspn(s, " ");
		s += strspn(s, " ");
	}
	return at ? n : 0;
}

/*
 * " #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]": what it calls MB/sec are
 * MiB/s.
 */
static void read_heading(struct table *t, const char *s)
{
	const char *unit = strstr(s, "BW average[");

	t->time_at = column_of(s, "t_typical[usec]");
	if (!t->time_at) /* of a test that ran for a given time */
		t->time_at = column_of(s, "t_avg[usec]");
	if (!unit || strstr(s, "#sl"))
		t->unit = 0;
	else
		t->unit = text_starts_with(unit + strlen("BW average["), "Gb") ? 0.125
									       : 1048576 / 1e9;
}

static void read_row(struct table *t, const struct text_line *l)
{
	uint64_t bytes, iterations;
	double peak, average;

	if (sscanf(line_text(l), "%19" SCNu64 " %19" SCNu64 " %31lf %31lf", &bytes, &iterations,
		   &peak, &average) != 4 ||
	    bytes < LEAST_BYTES || !(average > 0 && average < 1e7))
		return;
	average *= t->unit / (t->both_ways ? 2 : 1);
	if (average <= t->best)
		return;
	t->best = average;
	t->bytes = bytes;
	t->line = l;
}

/*
 * " 2 1000 0.86 3.20 0.90": the smallest message, which comes first.
 */
static void read_time(struct table *t, const struct text_line *l)
{
	const char *s = line_text(l);
	char *end;
	const uint64_t bytes = strtoull(s, &end, 10);
	double us;

	for (size_t i = 0; i < t->time_at; i++) {
		s += strcspn(s, " ");
		s += strspn(s, " ");
	}
	us = strtod(s, &end);
	if (t->best > 0 || end == s || !(us > 0 && us < 1e7))
		return;
	t->best = us;
	t->bytes = bytes;
	t->line = l;
}

static void read_table(const struct part *p, struct table *t)
{
	t->of_gpu = strstr(p->command, "--use_cuda");
	for (size_t i = 0; i < p->n; i++) {
		const struct text_line *l = &p->lines[i];
		const char *s = line_text(l), *ports = second_value(l, "Dual-port");

		read_device(l, t->nic);
		if (is_title(s)) {
			t->both_ways = strstr(s, "Bidirectional ");
			t->usable = !text_starts_with(s, "Atomic ");
			t->reads = text_starts_with(s, "RDMA_Read ");
		}
		t->of_gpu |= text_starts_with(s, "Picking ") || text_starts_with(s, "[pid = ") ||
			     strstr(s, "GPU buffer");
		t->usable &= !ports || text_starts_with(ports, "OFF");
		if (*s == '#')
			read_heading(t, s);
		else if (t->time_at && isdigit((unsigned char)*s))
			read_time(t, l);
		else if (t->unit > 0 && isdigit((unsigned char)*s))
			read_row(t, l);
	}
}

void perftest_observe(const struct part *p, struct machine *m)
{
	struct table t = {.gpu = read_gpu(p, m)};
	struct observed *o;

	read_table(p, &t);
	if (!*t.nic || !t.usable || !(t.best > 0))
		return;
	o = observed_add(m, OBSERVED_MESSAGE, t.gpu, -1,
			 arena_printf(m->arena, "%s:%u", p->file, t.line->number));
	if (t.time_at)
		o->message = t.of_gpu ? MESSAGE_NIC_TIME_GPU : MESSAGE_NIC_TIME_HOST;
	else
		o->message = t.of_gpu ? MESSAGE_NIC_RATE_GPU : MESSAGE_NIC_RATE_HOST;
	o->pulled = t.reads;
	o->text = arena_strdup(m->arena, t.nic);
	o->value = t.best;
	o->bytes = t.bytes;
}
