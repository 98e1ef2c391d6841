/* SPDX-License-Identifier: Apache-2.0 */
/* Reads two formats of the first release, which nothing writes any more. */
#include "result/figures_json_old.h"

#include "base/alloc.h"
#include "base/err.h"

#include <errno.h>
#include <string.h>

/* ---- what test --json printed ---- */

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static int number_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < 65536
		       ? (int)json_integer_value(v)
		       : -1;
}

bool old_test_recognise(const json_t *json)
{
	return json_is_object(json_object_get(json, "onehop")) &&
	       strcmp(text_of(json, "command"), "test") == 0;
}

/* Simulated GPUs of a recorded machine have the addresses of its GPUs. */
static bool is_of_gpus(const json_t *json)
{
	return strcmp(text_of(json, "device"), "cuda") == 0;
}

/* A GPU that could not be opened cannot be tested: that fails too. */
static void add_own_memory(struct figures *f, size_t i, const json_t *device)
{
	const json_t *own = json_object_get(device, "own_memory");
	const char *state = text_of(own, "state"), *trouble = text_of(device, "trouble");
	bool failed = *trouble || strcmp(state, "failed") == 0;

	if (!failed && strcmp(state, "ok") != 0)
		return;
	figures_add(f, METRIC_GPU_VERIFIED, (int)i, (int)i, !failed)->from =
		arena_printf(f->arena, "%s: devices[%zu]%s%s", f->name, i, failed ? ": " : "",
			     *trouble ? trouble : text_of(own, "kind"));
}

static void add_device(struct figures *f, size_t i, const json_t *device, bool gpus)
{
	const char *pci = text_of(device, "pci");

	figures_need_gpus(f, i + 1);
	f->gpus[i].name = arena_strdup(f->arena, text_of(device, "name"));
	add_own_memory(f, i, device);
	if (!gpus)
		return;
	f->gpus[i].pci = *pci ? arena_strdup(f->arena, pci) : NULL;
	f->gpus[i].nvml_index = number_of(device, "nvml_index");
	f->gpus[i].cuda_ordinal = number_of(device, "cuda_ordinal");
}

/* -1: none has the name. */
static int find_device(const struct figures *f, const char *name)
{
	for (size_t i = 0; i < f->gpu_n; i++)
		if (strcmp(f->gpus[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* A single copy of a test is not a benchmark, unless the test itself found it far too slow. */
static void add_pair(struct figures *f, size_t k, const json_t *pair)
{
	int i = find_device(f, text_of(pair, "initiator"));
	int j = find_device(f, text_of(pair, "target"));
	const char *state = text_of(pair, "state"), *kind = text_of(pair, "kind");
	const char *pattern = text_of(pair, "pattern");
	bool ok = strcmp(state, "ok") == 0, slow = strcmp(kind, "slow") == 0;
	bool refused = strcmp(kind, "refused") == 0;
	const json_t *gbps = json_object_get(pair, "copy_gbps");
	const json_t *ns = json_object_get(json_object_get(pair, "round_trip"), "median_ns");
	struct figure *row;
	const char *from;

	if (i < 0 || j < 0 || i == j || (!ok && strcmp(state, "failed") != 0))
		return;
	from = arena_printf(f->arena, "%s: pairs[%zu]%s%s%s%s", f->name, k, *kind ? ": " : "", kind,
			    *pattern ? ", pattern " : "", pattern);
	row = figures_add(f, refused ? METRIC_ACCESS : METRIC_PAIR_VERIFIED, i, j, ok || slow);
	row->from = from;
	row->kind = arena_strdup(f->arena, kind);
	row->pattern = arena_strdup(f->arena, pattern);
	if (ok || slow)
		figures_add(f, METRIC_PAIR_RATE, i, j, !slow)->from = from;
	if (slow && json_is_number(gbps))
		figures_add(f, METRIC_WRITE_CE, i, j, json_number_value(gbps))->from = from;
	if (json_is_number(ns) && json_number_value(ns) > 0)
		figures_add(f, METRIC_ROUND_TRIP_SINGLE, i, j, json_number_value(ns) / 1e3)->from =
			from;
}

/* Over P2P, and through host memory, which shows whether the GPUs themselves are right. */
static void add_all_reduce(struct figures *f, size_t k, const json_t *arm)
{
	const char *state = text_of(arm, "state");
	bool ok = strcmp(state, "ok") == 0;
	bool refused = strcmp(text_of(arm, "kind"), "refused") == 0; /* so says a pair */

	if (ok || (strcmp(state, "failed") == 0 && !refused))
		figures_add(f, METRIC_ALL_VERIFIED, -1, -1, ok)->from =
			arena_printf(f->arena, "%s: all_reduce[%zu], %s%s%s", f->name, k,
				     text_of(arm, "arm"), ok ? "" : ": ", text_of(arm, "kind"));
}

int old_test_read(const json_t *json, const char *file, struct figures **ret)
{
	struct figures *f = figures_new(file, "onehop test");
	const json_t *item;
	size_t i;

	if (!is_of_gpus(json))
		f->note = "a test of simulated devices";
	json_array_foreach (json_object_get(json, "devices"), i, item)
		if (i < FIGURES_MAX_GPUS)
			add_device(f, i, item, is_of_gpus(json));
	json_array_foreach (json_object_get(json, "pairs"), i, item)
		add_pair(f, i, item);
	if (f->row_n)
		json_array_foreach (json_object_get(json, "all_reduce"), i, item)
			add_all_reduce(f, i, item);
	if (!f->row_n) {
		figures_free(f);
		return err_set(EINVAL, "%s: is of onehop test, and no pair in it was tested", file);
	}
	*ret = f;
	return 0;
}

/* ---- what observed.json was ---- */

bool old_kept_recognise(const json_t *json)
{
	return json_is_array(json_object_get(json, "pairs")) && !json_object_get(json, "command") &&
	       !json_object_get(json, "schema");
}

/* The index of the GPU with this address, added if missing; -1: too many GPUs. */
static int kept_gpu(struct figures *f, const char *pci)
{
	int gpu = figures_gpu_at(f, pci);

	if (gpu >= 0 || !*pci || f->gpu_n == FIGURES_MAX_GPUS)
		return gpu;
	figures_add_gpu(f, pci, "", -1);
	return (int)f->gpu_n - 1;
}

/* "refused" is about access; everything else is about the data. */
static void read_kept_pair(struct figures *f, size_t k, const json_t *pair)
{
	static const struct {
		const char *key, *what;
	} values[] = {{"latency_us", METRIC_ROUND_TRIP_SINGLE}, {"gbps", METRIC_WRITE_CE}};
	int i = kept_gpu(f, text_of(pair, "initiator")), j = kept_gpu(f, text_of(pair, "target"));
	const json_t *ok = json_object_get(pair, "ok");
	bool refused = strcmp(text_of(pair, "kind"), "refused") == 0;
	const char *kind, *pattern, *from;
	struct figure *row;

	if (i < 0 || j < 0 || i == j || !json_is_boolean(ok))
		return;
	row = figures_add(f, refused ? METRIC_ACCESS : METRIC_PAIR_VERIFIED, i, j,
			  json_is_true(ok));
	row->kind = kind = arena_strdup(f->arena, text_of(pair, "kind"));
	row->pattern = pattern = arena_strdup(f->arena, text_of(pair, "pattern"));
	row->from = from = figure_place(f, row, "pairs", k);
	if (figure_contradicts(row)) {
		figures_trouble(f, "pairs[%zu] is 'ok' but has the failure kind '%s'", k,
				row->kind);
		f->row_n--;
		return;
	}
	for (size_t v = 0; v < sizeof(values) / sizeof(*values); v++) {
		double value = json_number_value(json_object_get(pair, values[v].key));
		struct figure *measured;

		if (!(value > 0))
			continue;
		measured = figures_add(f, values[v].what, i, j, value);
		measured->kind = kind;
		measured->pattern = pattern;
		measured->from = from;
	}
}

/* A test of several GPUs as a whole, or of one by itself. */
static void read_kept_whole(struct figures *f, const char *list, size_t k, const json_t *whole)
{
	bool alone = strcmp(list, "own_memory") == 0;
	const json_t *names = json_object_get(whole, "gpus"), *ok = json_object_get(whole, "ok");
	size_t n = json_array_size(names);
	int *among = arena_alloc(f->arena, n + 1, sizeof(*among));
	struct figure *row;

	for (size_t i = 0; i < n; i++) {
		const char *name = json_string_value(json_array_get(names, i));

		among[i] = name ? kept_gpu(f, name) : -1;
		if (among[i] < 0)
			return;
	}
	if (!n || n > f->gpu_n || (alone && n != 1) || !json_is_boolean(ok))
		return;
	row = figures_add(f, alone ? METRIC_GPU_VERIFIED : METRIC_ALL_VERIFIED,
			  alone ? among[0] : -1, alone ? among[0] : -1, json_is_true(ok));
	row->kind = arena_strdup(f->arena, text_of(whole, "kind"));
	row->pattern = arena_strdup(f->arena, text_of(whole, "arm"));
	row->from = figure_place(f, row, list, k);
	row->among = among;
	row->among_n = alone ? 0 : n;
}

#define KEPT_MAX 100000

static void read_kept_list(struct figures *f, const json_t *json, const char *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach (json_object_get(json, list), i, item)
		if (i < KEPT_MAX && strcmp(list, "pairs") == 0)
			read_kept_pair(f, i, item);
		else if (i < KEPT_MAX)
			read_kept_whole(f, list, i, item);
}

int old_kept_read(const json_t *json, const char *file, struct figures **ret)
{
	const json_t *version = json_object_get(json, "version");
	struct figures *f;

	if (!json_is_integer(version) || json_integer_value(version) != 1)
		return err_set(EINVAL, "%s: is not of version 1", file);
	f = figures_new(file, "onehop test");
	f->when = arena_strdup(f->arena, text_of(json, "date"));
	f->conditions[CONDITION_BOOT] = arena_strdup(f->arena, text_of(json, "boot_id"));
	f->conditions[CONDITION_DRIVER] = arena_strdup(f->arena, text_of(json, "driver_version"));
	read_kept_list(f, json, "pairs");
	read_kept_list(f, json, "own_memory");
	read_kept_list(f, json, "all_reduce");
	*ret = f;
	return 0;
}
