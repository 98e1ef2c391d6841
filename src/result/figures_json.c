/* SPDX-License-Identifier: Apache-2.0 */
/* Unknown values are omitted. */
#include "result/figures_json.h"

#include "base/alloc.h"
#include "base/err.h"
#include "result/figures_json_old.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* Members of the result as a whole. */
static const struct {
	const char *key;
	size_t at;
} heads[] = {
	{"tool", offsetof(struct figures, tool)},
	{"onehop_version", offsetof(struct figures, program)},
	{"when", offsetof(struct figures, when)},
	{"note", offsetof(struct figures, note)},
	{"boot_id", offsetof(struct figures, conditions[CONDITION_BOOT])},
	{"driver_version", offsetof(struct figures, conditions[CONDITION_DRIVER])},
	{"driver_registry", offsetof(struct figures, conditions[CONDITION_REGISTRY])},
	{"kernel", offsetof(struct figures, conditions[CONDITION_KERNEL])},
	{"bios", offsetof(struct figures, conditions[CONDITION_BIOS])},
};

#define HEAD_N (sizeof(heads) / sizeof(*heads))

static const char **head_of(struct figures *f, size_t i)
{
	return (const char **)((char *)f + heads[i].at);
}

/* ---- writing ---- */

static void set_text(json_t *o, const char *key, const char *s)
{
	if (s && *s)
		json_object_set_new(o, key, json_string(s)); /* broken UTF-8: omitted */
}

static void set_index(json_t *o, const char *key, int i)
{
	if (i >= 0)
		json_object_set_new(o, key, json_integer(i));
}

static json_t *ports_to_json(const struct figure_gpu *g)
{
	json_t *ports = json_array();

	for (size_t i = 0; i < g->port_n; i++) {
		json_t *o = json_object();

		set_text(o, "pci", g->ports[i].pci);
		set_index(o, "acs", g->ports[i].acs);
		json_array_append_new(ports, o);
	}
	return ports;
}

static json_t *gpu_to_json(const struct figure_gpu *g)
{
	json_t *o = json_object();

	set_text(o, "pci", g->pci);
	set_text(o, "name", g->name);
	set_index(o, "nvml_index", g->nvml_index);
	set_index(o, "cuda_ordinal", g->cuda_ordinal);
	if (g->port_n)
		json_object_set_new(o, "ports", ports_to_json(g));
	return o;
}

static json_t *among_to_json(const struct figure *r)
{
	json_t *gpus = json_array();

	for (size_t i = 0; i < r->among_n; i++)
		json_array_append_new(gpus, json_integer(r->among[i]));
	return gpus;
}

static json_t *row_to_json(const struct figure *r)
{
	json_t *o = json_pack("{s:s, s:s, s:b}", "what", r->what, "unit", r->unit,
			      "higher_is_better", (int)r->higher_is_better);

	set_index(o, "initiator", r->initiator);
	set_index(o, "target", r->target);
	if (r->bytes)
		json_object_set_new(o, "bytes", json_integer((json_int_t)r->bytes));
	json_object_set_new(o, "median", json_real(r->median));
	if (r->low < r->high) {
		json_object_set_new(o, "low", json_real(r->low));
		json_object_set_new(o, "high", json_real(r->high));
	}
	if (r->samples)
		json_object_set_new(o, "samples", json_integer(r->samples));
	if (r->expected > 0)
		json_object_set_new(o, "expected", json_real(r->expected));
	set_text(o, "from", r->from);
	set_text(o, "kind", r->kind);
	set_text(o, "pattern", r->pattern);
	set_text(o, "when", r->when);
	set_text(o, "nic", r->nic);
	set_text(o, "peer", r->peer);
	set_text(o, "memory", r->memory);
	if (r->queues)
		json_object_set_new(o, "queues", json_integer(r->queues));
	if (r->depth)
		json_object_set_new(o, "depth", json_integer(r->depth));
	set_text(o, "path", r->path);
	set_text(o, "algorithm", r->algorithm);
	if (r->among_n)
		json_object_set_new(o, "gpus", among_to_json(r));
	return o;
}

json_t *figures_to_json(const struct figures *f)
{
	json_t *o = json_pack("{s:s, s:i}", "schema", FIGURES_SCHEMA, "version",
			      FIGURES_SCHEMA_VERSION);
	json_t *gpus = json_array(), *rows = json_array();

	for (size_t i = 0; i < HEAD_N; i++)
		set_text(o, heads[i].key, *head_of((struct figures *)f, i));
	for (size_t i = 0; i < f->gpu_n; i++)
		json_array_append_new(gpus, gpu_to_json(&f->gpus[i]));
	for (size_t i = 0; i < f->row_n; i++)
		json_array_append_new(rows, row_to_json(&f->rows[i]));
	json_object_set_new(o, "gpus", gpus);
	json_object_set_new(o, "figures", rows);
	return o;
}

/* ---- reading ---- */

/* Takes members out of one object; the first one of a wrong type makes the whole invalid. */
struct reader {
	struct figures *f;
	const json_t *object;
	const char *where; /* "gpus", "figures" */
	size_t index;
	int error;
};

static void wrong(struct reader *r, const char *key, const char *wanted)
{
	if (r->error == 0)
		r->error = err_set(EINVAL, "%s: %s[%zu]: %s is not %s", r->f->name, r->where,
				   r->index, key, wanted);
}

/* Names and dates are printed within lines: an untrusted file must not add lines of its own. */
static const char *one_line(struct arena *a, const char *text)
{
	char *copy = arena_strdup(a, text);

	for (char *s = copy; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = ' ';
	return copy;
}

static const char *take_text(struct reader *r, const char *key)
{
	const json_t *v = json_object_get(r->object, key);

	if (v && !json_is_string(v))
		wrong(r, key, "a text");
	return json_is_string(v) ? one_line(r->f->arena, json_string_value(v)) : NULL;
}

static int64_t take_integer(struct reader *r, const char *key, int64_t absent, int64_t max)
{
	const json_t *v = json_object_get(r->object, key);
	int64_t n = json_is_integer(v) ? json_integer_value(v) : absent;

	if (v && (!json_is_integer(v) || n < 0 || n > max)) {
		wrong(r, key, "a whole number in its range");
		return absent;
	}
	return n;
}

static double take_number(struct reader *r, const char *key, double absent)
{
	const json_t *v = json_object_get(r->object, key);

	if (v && !json_is_number(v))
		wrong(r, key, "a number");
	return json_is_number(v) ? json_number_value(v) : absent;
}

static const char *text_or(const char *text, const char *otherwise)
{
	return text ? text : otherwise;
}

/* More than any path to a GPU has. */
#define MAX_PORTS 64

static void read_ports(struct reader *r, struct figure_gpu *g)
{
	const json_t *ports = json_object_get(r->object, "ports"), *port;
	struct reader each = {.f = r->f, .where = "ports"};

	if (!ports)
		return;
	if (!json_is_array(ports) || json_array_size(ports) > MAX_PORTS) {
		wrong(r, "ports", "a list of ports");
		return;
	}
	g->ports = arena_alloc(r->f->arena, json_array_size(ports) + 1, sizeof(*g->ports));
	json_array_foreach (ports, each.index, port) {
		each.object = port;
		g->ports[each.index] = (struct figure_port){
			.pci = text_or(take_text(&each, "pci"), ""),
			.acs = (int)take_integer(&each, "acs", -1, UINT16_MAX),
		};
	}
	g->port_n = json_array_size(ports);
	r->error = r->error ? r->error : each.error;
}

static void read_gpu(struct reader *r)
{
	struct figure_gpu *g;

	figures_need_gpus(r->f, r->index + 1);
	g = &r->f->gpus[r->index];
	g->pci = take_text(r, "pci");
	g->name = take_text(r, "name");
	g->nvml_index = (int)take_integer(r, "nvml_index", -1, INT_MAX);
	g->cuda_ordinal = (int)take_integer(r, "cuda_ordinal", -1, INT_MAX);
	read_ports(r, g);
}

static void read_among(struct reader *r, struct figure *row)
{
	const json_t *gpus = json_object_get(r->object, "gpus"), *gpu;
	int *among = arena_alloc(r->f->arena, r->f->gpu_n + 1, sizeof(*among));
	size_t i;

	if (!gpus)
		return;
	if (!json_is_array(gpus) || json_array_size(gpus) > r->f->gpu_n) {
		wrong(r, "gpus", "a list of some of the GPUs");
		return;
	}
	json_array_foreach (gpus, i, gpu) {
		among[i] = (int)json_integer_value(gpu);
		if (!json_is_integer(gpu) || json_integer_value(gpu) < 0 ||
		    json_integer_value(gpu) >= (json_int_t)r->f->gpu_n)
			wrong(r, "gpus", "a list of indexes of GPUs");
	}
	row->among = among;
	row->among_n = json_array_size(gpus);
}

/*
 * The table of metrics defines unit and direction. A file that contradicts it means something else.
 */
static void check_metric(struct reader *r, const struct metric *m, const char *unit)
{
	const json_t *higher = json_object_get(r->object, "higher_is_better");

	if (higher && !json_is_boolean(higher))
		wrong(r, "higher_is_better", "true or false");
	if (!m || r->error < 0)
		return;
	if (unit && strcmp(unit, m->unit) != 0)
		r->error = err_set(EINVAL, "%s: %s[%zu]: %s is in %s, and this says '%s'",
				   r->f->name, r->where, r->index, m->name, m->unit, unit);
	else if (higher && json_is_true(higher) != m->higher_is_better)
		r->error =
			err_set(EINVAL, "%s: %s[%zu]: of %s %s is better, and this says otherwise",
				r->f->name, r->where, r->index, m->name,
				m->higher_is_better ? "more" : "less");
}

/*
 * Older results of `onehop test` give its round trips, which it times one by one, the name of those
 * of `bench p2p`.
 */
static const char *take_what(struct reader *r)
{
	const char *what = take_text(r, "what");

	if (what && strcmp(what, METRIC_ROUND_TRIP) == 0 && strcmp(r->f->tool, "onehop test") == 0)
		return METRIC_ROUND_TRIP_SINGLE;
	return what;
}

static void read_row(struct reader *r)
{
	const char *what = take_what(r), *unit = take_text(r, "unit");
	const char *from = take_text(r, "from"), *kind = take_text(r, "kind");
	const char *pattern = take_text(r, "pattern"), *when = take_text(r, "when");
	const char *nic = take_text(r, "nic"), *peer = take_text(r, "peer"),
		   *memory = take_text(r, "memory");
	int64_t last = (int64_t)r->f->gpu_n - 1;
	double median = take_number(r, "median", NAN);
	struct figure *row;

	if (!what || !*what || !isfinite(median)) {
		wrong(r, "what or median", "there");
		return;
	}
	row = figures_add(r->f, what, (int)take_integer(r, "initiator", -1, last),
			  (int)take_integer(r, "target", -1, last), median);
	check_metric(r, row->metric, unit);
	if (!row->metric) {
		row->unit = text_or(unit, "");
		row->higher_is_better =
			json_is_true(json_object_get(r->object, "higher_is_better"));
	}
	row->bytes = (uint64_t)take_integer(r, "bytes", 0, INT64_MAX);
	row->low = fmin(take_number(r, "low", median), median);
	row->high = fmax(take_number(r, "high", median), median);
	row->samples = (unsigned)take_integer(r, "samples", 0, UINT_MAX);
	row->expected = fmax(take_number(r, "expected", 0), 0);
	row->kind = text_or(kind, "");
	row->pattern = text_or(pattern, "");
	row->when = text_or(when, "");
	row->nic = text_or(nic, "");
	row->peer = text_or(peer, "");
	row->memory = text_or(memory, "");
	row->queues = (unsigned)take_integer(r, "queues", 0, UINT_MAX);
	row->depth = (unsigned)take_integer(r, "depth", 0, UINT_MAX);
	row->path = text_or(take_text(r, "path"), "");
	row->algorithm = text_or(take_text(r, "algorithm"), "");
	read_among(r, row);
	row->from = from ? from : figure_place(r->f, row, r->where, r->index);
	if (figure_contradicts(row)) {
		figures_trouble(r->f, "%s[%zu] passed but has the failure kind '%s'", r->where,
				r->index, row->kind);
		r->f->row_n--;
	}
}

/* Each element of the array `where`, up to max of them. */
static int read_array(struct figures *f, const json_t *json, const char *where, size_t max,
		      void (*read)(struct reader *r))
{
	const json_t *array = json_object_get(json, where);
	struct reader r = {.f = f, .where = where};

	if (!json_is_array(array) || json_array_size(array) > max)
		return err_set(EINVAL, "%s: \"%s\" must be an array of at most %zu entries",
			       f->name, where, max);
	for (; r.error == 0 && r.index < json_array_size(array); r.index++) {
		r.object = json_array_get(array, r.index);
		if (json_is_object(r.object))
			read(&r);
		else
			wrong(&r, "it", "an object");
	}
	return r.error;
}

static bool is_figures(const json_t *json)
{
	const char *schema = json_string_value(json_object_get(json, "schema"));

	return schema && strcmp(schema, FIGURES_SCHEMA) == 0;
}

#define MAX_ROWS 100000

static int read_figures(const json_t *json, const char *name, struct figures **ret)
{
	const json_t *version = json_object_get(json, "version");
	struct figures *f;
	int r;

	/* Version 1 is the first release's: the meaning of its members has not changed. */
	if (!json_is_integer(version) || json_integer_value(version) < 1 ||
	    json_integer_value(version) > FIGURES_SCHEMA_VERSION)
		return err_set(EINVAL, "%s: is of no version of \"" FIGURES_SCHEMA "\" up to %d",
			       name, FIGURES_SCHEMA_VERSION);
	f = figures_new(name, "unknown tool");
	for (size_t i = 0; i < HEAD_N; i++) {
		const char *text = json_string_value(json_object_get(json, heads[i].key));

		if (text)
			*head_of(f, i) = one_line(f->arena, text);
	}
	r = read_array(f, json, "gpus", FIGURES_MAX_GPUS, read_gpu);
	if (r == 0)
		r = read_array(f, json, "figures", MAX_ROWS, read_row);
	if (r < 0)
		figures_free(f);
	else
		*ret = f;
	return r;
}

/* ---- whatever form ---- */

/*
 * The output of onehop test has its result in a member of its own; that of the first release did
 * not.
 */
static const json_t *result_in(const json_t *json)
{
	const json_t *result = json_object_get(json, "result");

	return is_figures(json) ? json : is_figures(result) ? result : NULL;
}

bool figures_json_recognise(const json_t *json)
{
	return result_in(json) || old_test_recognise(json) || old_kept_recognise(json);
}

int figures_from_json(const json_t *json, const char *name, struct figures **ret)
{
	const json_t *result = result_in(json);

	if (result)
		return read_figures(result, name, ret);
	if (old_test_recognise(json))
		return old_test_read(json, name, ret);
	if (old_kept_recognise(json))
		return old_kept_read(json, name, ret);
	return err_set(EINVAL, "%s: is not a result of onehop", name);
}
