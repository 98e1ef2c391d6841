/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds what -j would have printed, so that one reader knows what the tests mean (result_json.h).
 */
#include "ingest/nvbandwidth_text.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/text.h"
#include "ingest/result_json.h"
#include "ingest/text.h"
#include "result/figures.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define RUNNING "Running "

struct parser {
	struct arena *arena;
	json_t *devices, *tests;
	const struct text_line *lines;
	size_t line_n, at;
	const char *test; /* that is running; NULL: none */
	json_t *rows;     /* of its matrices so far */
	bool printed;     /* it has a matrix; a test that is waived has none */
	const char *cut;  /* the first test that is incomplete; NULL: none */
};

/* ---- lines ---- */

static const struct metric *metric_named(const char *name, size_t length)
{
	for (size_t i = 0; i < metric_n; i++) {
		const char *test = metrics[i].peers[PEER_NVBANDWIDTH].name;

		if (test && strlen(test) == length && strncmp(test, name, length) == 0)
			return &metrics[i];
	}
	return NULL;
}

/* Of a line "Running NAME."; NULL: it is another line, or a test without a counterpart. */
static const struct metric *running(const char *line)
{
	size_t length = strlen(line);

	if (!text_starts_with(line, RUNNING) || line[length - 1] != '.')
		return NULL;
	return metric_named(line + strlen(RUNNING), length - strlen(RUNNING) - 1);
}

bool nvbandwidth_begins(const char *line)
{
	return text_starts_with(line, "nvbandwidth Version: ") || running(line);
}

/* "   0       N/A    276.07", and the numbers of the columns above it */
static bool is_row(const char *s)
{
	s += strspn(s, " ");
	return isdigit((unsigned char)*s) && strspn(s, " 0123456789.N/A") == strlen(s);
}

bool nvbandwidth_goes_on(const char *line)
{
	static const char *const begins[] = {
		"Built from Git",
		"CUDA Runtime Version",
		"CUDA Driver Version",
		"Driver Version",
		"Device ",
		RUNNING,
		"memcpy ",
		"memory ",
		"Device to Device",
		"SUM ",
		"NOTE: ",
		"Performance can vary",
		"Waived",
		"[ERROR]",
		"MPI ",
	};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (text_starts_with(line, begins[i]))
			return true;
	return !*line || is_row(line);
}

bool nvbandwidth_recognise(const char *text, size_t size)
{
	const char *s = text, *end = text + size;

	for (; (s = memmem(s, (size_t)(end - s), RUNNING, strlen(RUNNING))); s++) {
		const char *name = s + strlen(RUNNING);
		const char *stop = memchr(name, '.', (size_t)(end - name));

		if (stop && metric_named(name, (size_t)(stop - name)))
			return true;
	}
	return false;
}

/* ---- tests ---- */

/*
 * A matrix has a row for each GPU, three of them lie below each other where copies go both ways;
 * else one row.
 */
static bool is_complete(const struct metric *m, const json_t *rows)
{
	size_t columns = json_array_size(json_array_get(rows, 0));
	bool pairs = m->shape == SHAPE_PAIR || m->shape == SHAPE_CHASE;

	return columns && json_array_size(rows) == (!pairs         ? 1
						    : m->both_ways ? 3 * columns
								   : columns);
}

static void end_test(struct parser *p)
{
	const struct metric *m = p->test ? metric_named(p->test, strlen(p->test)) : NULL;

	if (m && is_complete(m, p->rows))
		json_array_append_new(p->tests, json_pack("{s:s, s:O}", "name", p->test,
							  "bandwidth_matrix", p->rows));
	else if (m && p->printed && !p->cut)
		p->cut = p->test;
	json_decref(p->rows);
	p->rows = NULL;
	p->test = NULL;
}

static void begin_test(struct parser *p, const struct metric *m)
{
	end_test(p);
	p->test = m->peers[PEER_NVBANDWIDTH].name;
	p->rows = json_array();
	p->printed = false;
}

static size_t count_words(const char *s)
{
	size_t n = 0;

	for (s += strspn(s, " "); *s; s += strspn(s, " ")) {
		n++;
		s += strcspn(s, " ");
	}
	return n;
}

/* Without the number in front, which is the row's: one more than the columns. */
static json_t *row_of(const char *s)
{
	json_t *row = json_array();

	s += strspn(s, " ");
	s += strcspn(s, " ");
	for (s += strspn(s, " "); *s; s += strspn(s, " ")) {
		size_t n = strcspn(s, " ");

		json_array_append_new(row, json_stringn(s, n));
		s += n;
	}
	return row;
}

/* The rows below the line of columns at p->at; what is not a whole row ends the matrix. */
static void read_matrix(struct parser *p)
{
	size_t columns = count_words(p->lines[p->at].text);

	p->printed = true;

	for (; p->at + 1 < p->line_n; p->at++) {
		const char *s = p->lines[p->at + 1].text;

		if (!is_row(s) || count_words(s) != columns + 1 ||
		    json_array_size(p->rows) >= 3 * columns)
			return;
		json_array_append_new(p->rows, row_of(s));
	}
}

/* What is not UTF-8 keeps its place without its name. */
static void add_device(struct parser *p, const char *s)
{
	json_t *device = json_string(s);

	json_array_append_new(p->devices, device ? device : json_string(""));
}

static void read_line(struct parser *p)
{
	const char *s = p->lines[p->at].text + strspn(p->lines[p->at].text, " ");
	const struct metric *m = running(s);

	if (m)
		begin_test(p, m);
	else if (text_starts_with(s, RUNNING))
		end_test(p);
	else if (text_starts_with(s, "Device ") && strchr(s, '('))
		add_device(p, s + strlen("Device "));
	else if (p->test && is_row(s))
		read_matrix(p);
}

int nvbandwidth_parse(const char *text, size_t size, const char *file, struct figures **ret)
{
	struct parser p = {.arena = arena_new(), .devices = json_array(), .tests = json_array()};
	json_t *json;
	int r;

	p.lines = text_lines(p.arena, text, size, &p.line_n);
	for (p.at = 0; p.at < p.line_n; p.at++)
		read_line(&p);
	end_test(&p);
	json = json_pack("{s:{s:o, s:o}}", "nvbandwidth", "GPU Device list", p.devices, "testcases",
			 p.tests);
	r = json ? nvbandwidth_figures(json, file, ret) : err_set(EINVAL, "%s: no test", file);
	if (r == 0 && p.cut)
		figures_trouble(*ret, "the matrix of %s is cut off", p.cut);
	if (r == 0 && !(*ret)->row_n) {
		r = err_set(EINVAL, "%s: no matrix of nvbandwidth is whole", file);
		figures_free(*ret);
	}
	json_decref(json);
	arena_free(p.arena);
	return r;
}
