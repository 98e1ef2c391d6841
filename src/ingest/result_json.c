/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/result_json.h"

#include "base/alloc.h"
#include "base/err.h"
#include "ingest/nccl_tests.h"
#include "result/figures_json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool result_json_recognise(const char *text, size_t size)
{
	size_t at = 0;

	while (at < size && strchr(" \t\r\n", text[at]))
		at++;
	return at < size && text[at] == '{';
}

static bool has(const char *text, size_t size, const char *words)
{
	return memmem(text, size, words, strlen(words)) != NULL;
}

/* By the names of its parts: a document may be longer than its start. */
bool result_json_is_result(const char *text, size_t size)
{
	if (!result_json_recognise(text, size))
		return false;
	return has(text, size, "\"" FIGURES_SCHEMA "\"") ||
	       has(text, size, "\"command\": \"test\"") ||
	       has(text, size, "\"command\": \"bench") || has(text, size, "\"nvbandwidth\"") ||
	       (has(text, size, "\"boot_id\"") && has(text, size, "\"pairs\"")) ||
	       (has(text, size, "\"results\"") && has(text, size, "\"config\""));
}

static double number_of(const json_t *v)
{
	return json_is_number(v) ? json_number_value(v) : -1;
}

/* ---- nccl-tests -J ---- */

static bool is_nccl_tests(const json_t *json)
{
	return json_is_array(json_object_get(json, "results")) &&
	       json_is_object(json_object_get(json, "config"));
}

/* Wall clock and CPU time never occur together. */
static struct nccl_tests_result placement(const json_t *result, const char *name)
{
	const json_t *o = json_object_get(result, name), *time = json_object_get(o, "time");

	return (struct nccl_tests_result){
		.time_us = number_of(time ? time : json_object_get(o, "cpu_time")),
		.busbw = number_of(json_object_get(o, "bus_bw")),
		.wrong = number_of(json_object_get(o, "nwrong")),
	};
}

/* The collective is in the program's name only: args[0]. */
static const char *word_of_args(const json_t *json)
{
	const char *program = json_string_value(json_array_get(json_object_get(json, "args"), 0));

	return program ? nccl_tests_word(program) : NULL;
}

static void add_devices(struct figures *f, const json_t *devices)
{
	const json_t *d;
	size_t i;

	json_array_foreach (devices, i, d) {
		int64_t rank = json_integer_value(json_object_get(d, "rank"));
		const json_t *device = json_object_get(d, "device");

		if (rank < 0 || rank >= FIGURES_MAX_GPUS)
			continue;
		figures_need_gpus(f, (size_t)rank + 1);
		if (json_is_integer(device))
			f->gpus[rank].cuda_ordinal = (int)json_integer_value(device);
	}
}

static int parse_nccl_tests(const json_t *json, const char *file, struct figures **ret)
{
	const json_t *results = json_object_get(json, "results"), *result;
	const char *word = word_of_args(json);
	struct figures *f;
	size_t i;

	word = word ? word : nccl_tests_word(file);
	if (!word)
		return err_set(EINVAL, "%s: args[0] does not name the collective", file);
	f = figures_new(file, "nccl-tests");
	add_devices(f, json_object_get(json_object_get(json, "config"), "devices"));
	json_array_foreach (results, i, result) {
		double bytes = number_of(json_object_get(result, "size"));
		struct nccl_tests_result r[2] = {placement(result, "out_of_place"),
						 placement(result, "in_place")};

		if (bytes >= 1 && bytes < 1e18)
			nccl_tests_add(f, word, (uint64_t)bytes, r,
				       arena_printf(f->arena, "%s: results[%zu]", file, i));
	}
	*ret = f;
	return 0;
}

/* ---- nvbandwidth -j ---- */

/* NULL: a test without a counterpart in onehop. */
static const struct metric *metric_of_test(const char *name)
{
	for (size_t i = 0; i < metric_n; i++) {
		const char *test = metrics[i].peers[PEER_NVBANDWIDTH].name;

		if (test && strcmp(test, name) == 0)
			return &metrics[i];
	}
	return NULL;
}

/* A matrix of GPUs; otherwise one row of them. */
static bool has_pairs(const struct metric *m)
{
	return m->shape == SHAPE_PAIR || m->shape == SHAPE_CHASE;
}

/* Cells are texts, "N/A" among them. */
static double cell_value(const json_t *cell)
{
	const char *s = json_string_value(cell);
	char *end;
	double v = s ? strtod(s, &end) : number_of(cell);

	return (!s || end > s) && isfinite(v) && v > 0 ? v : -1;
}

static void add_cell(struct figures *f, const struct metric *m, int initiator, int target,
		     double value)
{
	int last = initiator > target ? initiator : target;

	if (value < 0 || last >= FIGURES_MAX_GPUS || (has_pairs(m) && initiator == target))
		return;
	figures_need_gpus(f, (size_t)last + 1);
	figures_add(f, m->name, initiator, target, value)->from =
		arena_printf(f->arena, "%s: %s", f->name, m->peers[PEER_NVBANDWIDTH].name);
}

/* A matrix of one row. With the host, -1, it is the GPU that moves the data, whichever way. */
static void add_single(struct figures *f, const struct metric *m, int gpu, double value)
{
	add_cell(f, m, gpu, m->shape == SHAPE_LOCAL ? gpu : -1, value);
}

/*
 * The row's GPU issues the copy, whatever way the description's arrow points. A bidirectional test
 * has three matrices below each other, one a direction and their sum.
 */
static void add_matrix(struct figures *f, const struct metric *m, const json_t *rows)
{
	size_t n = json_array_size(rows), i, j;
	size_t first = m->both_ways ? n / 3 * 2 : 0;
	const json_t *row, *cell;

	json_array_foreach (rows, i, row) {
		if (i < first)
			continue;
		json_array_foreach (row, j, cell) {
			if (has_pairs(m))
				add_cell(f, m, (int)(i - first), (int)j, cell_value(cell));
			else
				add_single(f, m, (int)j, cell_value(cell));
		}
	}
}

/* "Passed", "Waived", "Not Found", "Error"; before there was a status, every test had passed. */
static void add_status(struct figures *f, const char *name, const char *status, const char *error)
{
	bool failed = strcmp(status, "Error") == 0;

	if (failed || strcmp(status, "Passed") == 0)
		figures_add(f, METRIC_ALL_VERIFIED, -1, -1, !failed)->from =
			arena_printf(f->arena, "%s: %s%s%s", f->name, name,
				     failed && error ? ": " : "", failed && error ? error : "");
}

/* Values measured before a test failed are not results. */
static void add_testcase(struct figures *f, const json_t *test)
{
	const char *name = json_string_value(json_object_get(test, "name"));
	const char *status = json_string_value(json_object_get(test, "status"));
	const struct metric *metric = name ? metric_of_test(name) : NULL;

	if (name && status)
		add_status(f, name, status, json_string_value(json_object_get(test, "error")));
	if (metric && (!status || strcmp(status, "Error") != 0))
		add_matrix(f, metric, json_object_get(test, "bandwidth_matrix"));
}

/* "0: NVIDIA H200 (00000000:04:00): (host)" */
static void add_listed(struct figures *f, const json_t *list)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (list, i, entry) {
		const char *s = json_string_value(entry), *open = s ? strchr(s, '(') : NULL;
		unsigned domain, bus, device;
		struct figure_gpu *g;

		if (!open || i >= FIGURES_MAX_GPUS)
			continue;
		figures_need_gpus(f, i + 1);
		g = &f->gpus[i];
		g->cuda_ordinal = (int)i;
		if (sscanf(open, "(%8x:%2x:%2x)", &domain, &bus, &device) == 3)
			g->pci = arena_printf(f->arena, "%04x:%02x:%02x.0", domain, bus, device);
		s = strstr(s, ": ");
		if (s && s + 2 < open - 1)
			g->name = arena_strndup(f->arena, s + 2, (size_t)(open - 1 - (s + 2)));
	}
}

int nvbandwidth_figures(const json_t *json, const char *file, struct figures **ret)
{
	const json_t *nvb = json_object_get(json, "nvbandwidth"), *test;
	struct figures *f = figures_new(file, "nvbandwidth");
	size_t i;

	add_listed(f, json_object_get(nvb, "GPU Device list"));
	json_array_foreach (json_object_get(nvb, "testcases"), i, test)
		add_testcase(f, test);
	/* If a test failed, nvbandwidth writes the list next to the object (v0.8). */
	json_array_foreach (json_object_get(json, "testcases"), i, test)
		add_testcase(f, test);
	*ret = f;
	return 0;
}

static int not_json(const char *text, size_t size, const char *file, const json_error_t *error)
{
	json_t *first = json_loadb(text, size, JSON_DISABLE_EOF_CHECK, NULL);

	json_decref(first);
	if (first)
		return err_set(
			EINVAL,
			"%s:%d: a second result or other text follows the first; put each result "
			"into a file of its own",
			file, error->line);
	return err_set(EINVAL, "%s:%d: invalid JSON: %s", file, error->line, error->text);
}

int result_json_parse(const char *text, size_t size, const char *file, struct figures **ret)
{
	json_error_t error;
	json_t *json = json_loadb(text, size, 0, &error);
	int r;

	if (!json)
		return not_json(text, size, file, &error);
	if (figures_json_recognise(json))
		r = figures_from_json(json, file, ret);
	else if (is_nccl_tests(json))
		r = parse_nccl_tests(json, file, ret);
	else if (json_is_object(json_object_get(json, "nvbandwidth")))
		r = nvbandwidth_figures(json, file, ret);
	else
		r = err_set(EINVAL,
			    "%s: JSON, but not a result of onehop, nccl-tests -J or nvbandwidth -j",
			    file);
	json_decref(json);
	return r;
}
