/* SPDX-License-Identifier: Apache-2.0 */
/* What is unknown is not there. */
#include "result/figures_json.h"

#include "base/alloc.h"
#include "base/err.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* ---- writing ---- */

static void set_text(json_t *o, const char *key, const char *s)
{
	if (s && *s)
		json_object_set_new(o, key, json_string(s)); /* broken UTF-8: not there */
}

static void set_index(json_t *o, const char *key, int i)
{
	if (i >= 0)
		json_object_set_new(o, key, json_integer(i));
}

static json_t *gpu_to_json(const struct figure_gpu *g)
{
	json_t *o = json_object();

	set_text(o, "pci", g->pci);
	set_text(o, "name", g->name);
	set_index(o, "nvml_index", g->nvml_index);
	set_index(o, "cuda_ordinal", g->cuda_ordinal);
	return o;
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
	return o;
}

json_t *figures_to_json(const struct figures *f)
{
	json_t *o = json_pack("{s:s, s:i}", "schema", FIGURES_SCHEMA, "version",
			      FIGURES_SCHEMA_VERSION);
	json_t *gpus = json_array(), *rows = json_array();

	set_text(o, "tool", f->tool);
	set_text(o, "when", f->when);
	set_text(o, "note", f->note);
	for (size_t i = 0; i < f->gpu_n; i++)
		json_array_append_new(gpus, gpu_to_json(&f->gpus[i]));
	for (size_t i = 0; i < f->row_n; i++)
		json_array_append_new(rows, row_to_json(&f->rows[i]));
	json_object_set_new(o, "gpus", gpus);
	json_object_set_new(o, "figures", rows);
	return o;
}

/* ---- reading ---- */

/* Takes members out of one object; the first of a wrong type makes the whole no good. */
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

static const char *take_text(struct reader *r, const char *key)
{
	const json_t *v = json_object_get(r->object, key);

	if (v && !json_is_string(v))
		wrong(r, key, "a text");
	return json_is_string(v) ? arena_strdup(r->f->arena, json_string_value(v)) : NULL;
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

static void read_gpu(struct reader *r)
{
	struct figure_gpu *g;

	figures_need_gpus(r->f, r->index + 1);
	g = &r->f->gpus[r->index];
	g->pci = take_text(r, "pci");
	g->name = take_text(r, "name");
	g->nvml_index = (int)take_integer(r, "nvml_index", -1, INT_MAX);
	g->cuda_ordinal = (int)take_integer(r, "cuda_ordinal", -1, INT_MAX);
}

static void read_row(struct reader *r)
{
	const char *what = take_text(r, "what"), *unit = take_text(r, "unit");
	const char *from = take_text(r, "from");
	int64_t last = (int64_t)r->f->gpu_n - 1;
	double median = take_number(r, "median", NAN);
	struct figure *row;

	if (!what || !*what || !isfinite(median)) {
		wrong(r, "what or median", "there");
		return;
	}
	row = figures_add(r->f, what, (int)take_integer(r, "initiator", -1, last),
			  (int)take_integer(r, "target", -1, last), median);
	row->unit = unit ? unit : row->unit;
	if (json_is_boolean(json_object_get(r->object, "higher_is_better")))
		row->higher_is_better =
			json_is_true(json_object_get(r->object, "higher_is_better"));
	row->bytes = (uint64_t)take_integer(r, "bytes", 0, INT64_MAX);
	row->low = fmin(take_number(r, "low", median), median);
	row->high = fmax(take_number(r, "high", median), median);
	row->samples = (unsigned)take_integer(r, "samples", 0, UINT_MAX);
	row->expected = fmax(take_number(r, "expected", 0), 0);
	row->from = from ? from
			 : arena_printf(r->f->arena, "%s: %s[%zu]", r->f->name, r->where, r->index);
}

/* Each element of the array `where`, up to max of them. */
static int read_array(struct figures *f, const json_t *json, const char *where, size_t max,
		      void (*read)(struct reader *r))
{
	const json_t *array = json_object_get(json, where);
	struct reader r = {.f = f, .where = where};

	if (!json_is_array(array) || json_array_size(array) > max)
		return err_set(EINVAL, "%s: \"%s\" is no list, or too long a one", f->name, where);
	for (; r.error == 0 && r.index < json_array_size(array); r.index++) {
		r.object = json_array_get(array, r.index);
		if (json_is_object(r.object))
			read(&r);
		else
			wrong(&r, "it", "an object");
	}
	return r.error;
}

bool figures_json_recognise(const json_t *json)
{
	const char *schema = json_string_value(json_object_get(json, "schema"));

	return schema && strcmp(schema, FIGURES_SCHEMA) == 0;
}

#define MAX_ROWS 100000

int figures_from_json(json_t *json, const char *name, struct figures **ret)
{
	const json_t *version = json_object_get(json, "version");
	const char *tool = json_string_value(json_object_get(json, "tool"));
	const char *when = json_string_value(json_object_get(json, "when"));
	const char *note = json_string_value(json_object_get(json, "note"));
	struct figures *f;
	int r;

	if (!figures_json_recognise(json))
		return err_set(EINVAL, "%s: is not \"" FIGURES_SCHEMA "\"", name);
	if (!json_is_integer(version) || json_integer_value(version) != FIGURES_SCHEMA_VERSION)
		return err_set(EINVAL, "%s: is not version %d of \"" FIGURES_SCHEMA "\"", name,
			       FIGURES_SCHEMA_VERSION);
	f = figures_new(name, tool ? tool : "unknown tool");
	f->when = when ? arena_strdup(f->arena, when) : "";
	f->note = note ? arena_strdup(f->arena, note) : "";
	r = read_array(f, json, "gpus", FIGURES_MAX_GPUS, read_gpu);
	if (r == 0)
		r = read_array(f, json, "figures", MAX_ROWS, read_row);
	if (r < 0)
		figures_free(f);
	else
		*ret = f;
	return r;
}
