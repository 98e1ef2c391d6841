/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/p2p_test.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/text.h"
#include "ingest/text.h"
#include "result/figures.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The heading of a matrix, as printed, and what it holds. */
struct title {
	const char *text;
	const struct metric *metric;
};

struct parser {
	struct figures *f;
	const struct text_line *lines;
	size_t line_n, at;
};

/* The heading of a matrix, of this or an older version; NULL: the text holds none of them. */
static const char *heading_in(const struct metric *m, const char *text, size_t size)
{
	const char *headings[] = {m->peers[PEER_P2P_TEST].name, m->peers[PEER_P2P_TEST].more};

	for (size_t i = 0; i < sizeof(headings) / sizeof(*headings); i++)
		if (headings[i] && memmem(text, size, headings[i], strlen(headings[i])))
			return headings[i];
	return NULL;
}

/* Longer headings contain shorter ones, so the first match in the table is not enough. */
static struct title find_title(const char *line)
{
	struct title best = {0};

	for (size_t i = 0; i < metric_n; i++) {
		const char *text = heading_in(&metrics[i], line, strlen(line));

		if (text && (!best.text || strlen(text) > strlen(best.text)))
			best = (struct title){text, &metrics[i]};
	}
	return best;
}

/* "Device=0 CANNOT Access Peer Device=5", above the matrices */
#define ACCESS_LINE "Access Peer Device="
/* "> Peer access from NVIDIA H200 (GPU0) -> NVIDIA H200 (GPU1) : Yes" of simpleP2P */
#define SIMPLE_LINE "Peer access from "

/*
 * "[TensorRT-LLM][WARNING] Device 0 peer access Device 1 is not available." and "RuntimeError:
 * Can't enable access between nodes 0 and 1" of TensorRT-LLM, by CUDA's numbers, of pairs without
 * access alone.
 */
#define REFUSED_LINE " peer access Device "
#define NODES_LINE   "Can't enable access between nodes "

static bool has_text(const char *text, size_t size, const char *what)
{
	return memmem(text, size, what, strlen(what));
}

static bool has_refusal(const char *text, size_t size)
{
	return (has_text(text, size, REFUSED_LINE) && has_text(text, size, " is not avai")) ||
	       has_text(text, size, NODES_LINE);
}

bool p2p_test_is_refusal(const char *line)
{
	return has_refusal(line, strlen(line));
}

static bool has_simple_line(const char *text, size_t size)
{
	const char *s = memmem(text, size, SIMPLE_LINE, strlen(SIMPLE_LINE));
	const size_t rest = s ? (size_t)(text + size - s) : 0;

	return s && memmem(s, rest, " (GPU", strlen(" (GPU")) &&
	       memmem(s, rest, ") -> ", strlen(") -> "));
}

bool p2p_test_recognise(const char *text, size_t size)
{
	if (has_text(text, size, ACCESS_LINE) || has_simple_line(text, size) ||
	    has_refusal(text, size))
		return true;
	if (!has_text(text, size, "Matrix")) /* every heading has it */
		return false;
	for (size_t i = 0; i < metric_n; i++)
		if (heading_in(&metrics[i], text, size))
			return true;
	return false;
}

/*
 * " D\D 0 1" or " GPU 0 1": the number of columns; 0: it is something else.
 */
static size_t count_columns(const char *line, const char *corner)
{
	const char *s = strstr(line, corner);
	size_t n = 0;

	if (!s)
		return 0;
	for (s += strlen(corner); n <= FIGURES_MAX_GPUS; n++) {
		char *end;
		unsigned long column = strtoul(s, &end, 10);

		if (end == s)
			return s[strspn(s, " ")] ? 0 : n;
		if (column != n)
			return 0;
		s = end;
	}
	return 0;
}

/* Where the numbers of row i start, after "     3 " and any prefix from a paste. */
static const char *row_cells(const char *line, size_t i)
{
	char label[24];
	const char *s = line;

	snprintf(label, sizeof(label), "%zu", i);
	s += strspn(s, " >|");
	return text_starts_with(s, label) && (s[strlen(label)] == ' ' || !s[strlen(label)])
		       ? s + strlen(label)
		       : NULL;
}

/* "-" means not measured, in a matrix that onehop printed. */
#define NOT_MEASURED (-1)

/* Exactly n numbers, nothing after them. */
static bool read_cells(const char *s, size_t n, double *ret)
{
	for (size_t j = 0; j < n; j++) {
		char *end;

		s += strspn(s, " ");
		if (*s == '-' && (s[1] == ' ' || !s[1])) {
			ret[j] = NOT_MEASURED;
			s++;
			continue;
		}
		ret[j] = strtod(s, &end);
		if (end == s || !isfinite(ret[j]) || ret[j] < 0)
			return false;
		s = end;
	}
	return !s[strspn(s, " ")];
}

static void add_row(struct parser *p, const struct title *t, size_t i, const double *cells,
		    size_t n)
{
	const char *from = arena_printf(p->f->arena, "%s:%u", p->f->name, p->lines[p->at].number);

	for (size_t j = 0; j < n; j++) {
		const char *what =
			i == j ? t->metric->peers[PEER_P2P_TEST].diagonal : t->metric->name;

		if (what && cells[j] >= 0)
			figures_add(p->f, what, (int)i, (int)j, cells[j])->from = from;
	}
}

/* The rows after the header line at p->at. */
static void read_matrix(struct parser *p, const struct title *t, size_t n)
{
	double *cells = arena_alloc(p->f->arena, n, sizeof(*cells));

	figures_need_gpus(p->f, n);
	for (size_t i = 0; i < n; i++) {
		const char *s = ++p->at < p->line_n ? row_cells(p->lines[p->at].text, i) : NULL;

		if (!s || !read_cells(s, n, cells)) {
			figures_trouble(p->f,
					"%s:%u: \"%s\" is incomplete: row %zu of %zu is invalid",
					p->f->name,
					p->lines[p->at < p->line_n ? p->at : p->line_n - 1].number,
					t->text, i, n);
			p->at -= p->at < p->line_n; /* it may be the next title */
			return;
		}
		add_row(p, t, i, cells, n);
	}
}

/* The header follows the title, possibly after an empty line. */
static void read_titled(struct parser *p, const struct title *t)
{
	for (size_t look = 0; look < 2 && p->at + 1 < p->line_n; look++) {
		const char *line = p->lines[p->at + 1].text;
		size_t n = count_columns(line, "D\\D");

		n = n ? n : count_columns(line, "GPU");
		if (!n && *line)
			break;
		p->at++;
		if (n) {
			read_matrix(p, t, n);
			return;
		}
	}
	figures_trouble(p->f, "%s:%u: no matrix follows \"%s\"", p->f->name, p->lines[p->at].number,
			t->text);
}

/* "Device: 0, NVIDIA H200, pciBusID: 4, pciDeviceID: 0, pciDomainID:0", numbers in hexadecimal */
static void read_device(struct parser *p, const char *line)
{
	unsigned index, bus, device, domain;
	const char *s = strstr(line, "Device: "), *comma, *pci;
	struct figure_gpu *g;

	if (!s || sscanf(s, "Device: %4u,", &index) != 1 || index >= FIGURES_MAX_GPUS)
		return;
	comma = strchr(s, ',');
	pci = strstr(s, ", pciBusID: ");
	if (!comma || !pci || pci <= comma ||
	    sscanf(pci, ", pciBusID: %2x, pciDeviceID: %2x, pciDomainID:%8x", &bus, &device,
		   &domain) != 3)
		return;
	figures_need_gpus(p->f, index + 1);
	g = &p->f->gpus[index];
	comma += 1 + strspn(comma + 1, " ");
	g->name = pci > comma ? arena_strndup(p->f->arena, comma, (size_t)(pci - comma)) : NULL;
	g->pci = arena_printf(p->f->arena, "%04x:%02x:%02x.0", domain, bus, device);
}

static bool has_metric(const struct figures *f, const char *what)
{
	for (size_t i = 0; i < f->row_n; i++)
		if (strcmp(f->rows[i].what, what) == 0)
			return true;
	return false;
}

static void add_access(struct parser *p, const struct text_line *line, unsigned from, unsigned to,
		       bool can)
{
	if (from == to || from >= FIGURES_MAX_GPUS || to >= FIGURES_MAX_GPUS)
		return;
	figures_need_gpus(p->f, (from > to ? from : to) + 1);
	figures_add(p->f, METRIC_ACCESS, (int)from, (int)to, can)->from =
		arena_printf(p->f->arena, "%s:%u", p->f->name, line->number);
}

static void read_refusal(struct parser *p, const struct text_line *line)
{
	const char *s = strstr(line->text, REFUSED_LINE);
	unsigned from, to;
	int end = 0;

	if (s) {
		while (s > line->text && isdigit((unsigned char)s[-1]))
			s--;
		if (sscanf(s, "%4u" REFUSED_LINE "%4u is not avai%n", &from, &to, &end) == 2 && end)
			add_access(p, line, from, to, false);
		return;
	}
	s = strstr(line->text, NODES_LINE);
	if (s && sscanf(s, NODES_LINE "%4u and %4u", &from, &to) == 2)
		add_access(p, line, from, to, false);
}

static void read_access(struct parser *p, const struct text_line *line)
{
	unsigned from, to;
	char word[8];
	const char *s = strstr(line->text, "Device=");

	if (!s || sscanf(s, "Device=%4u %7[A-Z] " ACCESS_LINE "%4u", &from, word, &to) != 3 ||
	    (strcmp(word, "CAN") != 0 && strcmp(word, "CANNOT") != 0))
		return;
	add_access(p, line, from, to, strcmp(word, "CAN") == 0);
}

/* "NVIDIA H200 (GPU0)": its number; -1: no GPU. The name is kept. */
static int named_gpu(struct parser *p, const char *s, const char **ret_rest)
{
	const char *open = strstr(s, " (GPU");
	unsigned index;
	int n = 0;

	if (!open || sscanf(open, " (GPU%4u)%n", &index, &n) != 1 || !n ||
	    index >= FIGURES_MAX_GPUS)
		return -1;
	figures_need_gpus(p->f, index + 1);
	if (!p->f->gpus[index].name && open > s)
		p->f->gpus[index].name = arena_strndup(p->f->arena, s, (size_t)(open - s));
	*ret_rest = open + n;
	return (int)index;
}

static void read_simple_access(struct parser *p, const struct text_line *line)
{
	const char *s = strstr(line->text, SIMPLE_LINE);
	int from, to;

	if (!s || (from = named_gpu(p, s + strlen(SIMPLE_LINE), &s)) < 0 ||
	    !text_starts_with(s, " -> ") || (to = named_gpu(p, s + strlen(" -> "), &s)) < 0)
		return;
	if (text_starts_with(s, " : Yes") || text_starts_with(s, " : No"))
		add_access(p, line, (unsigned)from, (unsigned)to, text_starts_with(s, " : Yes"));
}

/* The lines above the matrices say what the matrix of access says; a paste may end before it. */
static void read_access_lines(struct parser *p)
{
	if (has_metric(p->f, METRIC_ACCESS))
		return;
	for (size_t i = 0; i < p->line_n; i++) {
		const char *s = p->lines[i].text;

		if (strstr(s, SIMPLE_LINE))
			read_simple_access(p, &p->lines[i]);
		else if (has_refusal(s, strlen(s)))
			read_refusal(p, &p->lines[i]);
		else
			read_access(p, &p->lines[i]);
	}
}

int p2p_test_parse(const char *text, size_t size, const char *file, struct figures **ret)
{
	struct parser p = {.f = figures_new(file, has_simple_line(text, size) ? "simpleP2P"
						  : has_refusal(text, size)
							  ? "TensorRT-LLM"
							  : "p2pBandwidthLatencyTest")};

	p.lines = text_lines(p.f->arena, text, size, &p.line_n);
	for (p.at = 0; p.at < p.line_n; p.at++) {
		const char *line = p.lines[p.at].text;
		struct title t = find_title(line);

		if (t.text)
			read_titled(&p, &t);
		else
			read_device(&p, line);
	}
	read_access_lines(&p);
	if (!p.f->row_n) {
		int r = err_set(EINVAL, "%s", p.f->trouble_n ? p.f->troubles[0] : "no GPU is left");

		figures_free(p.f);
		return r;
	}
	for (size_t i = 0; i < p.f->gpu_n; i++)
		p.f->gpus[i].cuda_ordinal = (int)i;
	*ret = p.f;
	return 0;
}
