/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop test` found on this machine since it was started: observed.json into facts. */
#include "machine/observed.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "machine/read.h"
#include "result/figures.h"

#include <jansson.h>
#include <string.h>

#define DOCUMENT "observed.json"

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* -1: no GPU of this machine. */
static int gpu_index(const struct machine *m, const char *address)
{
	const struct gpu *g = machine_gpu_at(m, address);

	return g ? (int)g->index : -1;
}

/* ---- adding ---- */

struct observed *observed_add(struct machine *m, enum observed_kind kind, int initiator, int target,
			      const char *from)
{
	struct observed *o = ARENA_PUSH(m->arena, m->observed, m->observed_n);

	*o = (struct observed){.kind = kind,
			       .initiator = initiator,
			       .target = target,
			       .text = "",
			       .from = arena_strdup(m->arena, from)};
	return o;
}

static void add_failed_test(struct machine *m, int initiator, int target, const char *what,
			    const char *from)
{
	struct observed *o = observed_add(m, OBSERVED_RUN_FAILURE, initiator, target, from);

	o->failure = (struct run_failure){.kind = RUN_TEST_FAILED,
					  .rank = -1,
					  .code = -1,
					  .sequence = -1,
					  .what = arena_strdup(m->arena, what)};
}

void observed_add_failed_test(struct machine *m, const int *gpus, size_t n, const char *what,
			      const char *from)
{
	if (n >= m->gpu_n && n != 1) {
		add_failed_test(m, -1, -1, what, from);
		return;
	}
	if (n == 1)
		add_failed_test(m, gpus[0], -1, what, from);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			if (i != j)
				add_failed_test(m, gpus[i], gpus[j], what, from);
}

bool observed_is_failed_test(const struct observed *o)
{
	return o->kind == OBSERVED_RUN_FAILURE && o->failure.kind == RUN_TEST_FAILED;
}

void figures_number_gpus(struct figures *f, const struct machine *m)
{
	for (size_t i = 0; i < f->gpu_n; i++) {
		const struct gpu *g = f->gpus[i].pci ? machine_gpu_at(m, f->gpus[i].pci) : NULL;

		if (g)
			f->gpus[i].nvml_index = (int)fact_or(g->nvml_index, -1);
	}
}

/* ---- what onehop test kept ---- */

/* Refused is a matter of access; all else is one of the data. */
static void take_pair(struct reader *r, const json_t *pair, const char *when)
{
	int initiator = gpu_index(r->m, text_of(pair, "initiator"));
	int target = gpu_index(r->m, text_of(pair, "target"));
	const json_t *ok = json_object_get(pair, "ok");
	static const struct {
		const char *key;
		enum observed_kind kind;
	} values[] = {{"latency_us", OBSERVED_LATENCY}, {"gbps", OBSERVED_BANDWIDTH}};
	const char *kind = text_of(pair, "kind"), *pattern = text_of(pair, "pattern"), *from;
	bool refused = strcmp(kind, "refused") == 0;
	struct observed *o;

	if (initiator < 0 || target < 0 || initiator == target || !json_is_boolean(ok))
		return;
	from = arena_printf(r->m->arena, "onehop test%s%s%s%s%s%s", *when ? " of " : "", when,
			    *kind ? ": " : "", kind, *pattern ? ", pattern " : "", pattern);
	o = observed_add(r->m, refused ? OBSERVED_PEER_ACCESS : OBSERVED_PEER_COPY, initiator,
			 target, from);
	o->ok = json_is_true(ok);
	o->text = arena_strdup(r->m->arena, kind);
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		double value = json_number_value(json_object_get(pair, values[i].key));

		if (value <= 0)
			continue;
		o = observed_add(r->m, values[i].kind, initiator, target, from);
		o->ok = true;
		o->value = value;
	}
}

/* A test of several GPUs as a whole, or of one by itself. Of a GPU that is gone it says nothing. */
static void take_whole(struct reader *r, const json_t *whole, const char *what, const char *when)
{
	const json_t *names = json_object_get(whole, "gpus");
	size_t n = json_array_size(names);
	AUTO_FREE int *gpus = xcalloc(n + 1, sizeof(*gpus));
	const char *kind = text_of(whole, "kind");

	if (!n || n > r->m->gpu_n || !json_is_false(json_object_get(whole, "ok")))
		return;
	for (size_t i = 0; i < n; i++) {
		const char *name = json_string_value(json_array_get(names, i));

		gpus[i] = name ? gpu_index(r->m, name) : -1;
		if (gpus[i] < 0)
			return;
	}
	observed_add_failed_test(r->m, gpus, n, what,
				 arena_printf(r->m->arena, "onehop test%s%s%s%s",
					      *when ? " of " : "", when, *kind ? ": " : "", kind));
}

static void take_wholes(struct reader *r, const json_t *doc, const char *when)
{
	static const struct {
		const char *key, *figure;
	} lists[] = {{"own_memory", METRIC_GPU_VERIFIED}, {"all_reduce", METRIC_ALL_VERIFIED}};
	const json_t *whole;
	size_t i;

	for (size_t k = 0; k < sizeof(lists) / sizeof(*lists); k++)
		json_array_foreach (json_object_get(doc, lists[k].key), i, whole)
			take_whole(r, whole, metric_find(lists[k].figure)->title, when);
}

/* Only a slow pair is right and of a kind; whatever else says both says nothing. */
static bool contradicts(const json_t *pair)
{
	const char *kind = text_of(pair, "kind");

	return json_is_true(json_object_get(pair, "ok")) && *kind && strcmp(kind, "slow") != 0;
}

static bool is_readable(const json_t *doc)
{
	const json_t *version = json_object_get(doc, "version");

	return json_is_integer(version) && json_integer_value(version) == OBSERVED_VERSION;
}

/* Another driver or another start of the machine may route and map in other ways. */
static bool is_of_now(struct reader *r, const json_t *doc)
{
	struct fact_str boot = read_str(r, "proc/sys/kernel/random/boot_id");
	struct fact_str driver = r->m->driver.module_version;

	return fact_known(boot) && strcmp(boot.value, text_of(doc, "boot_id")) == 0 &&
	       fact_known(driver) && strcmp(driver.value, text_of(doc, "driver_version")) == 0;
}

void observed_read(struct reader *r)
{
	struct fact_str text = read_text(r, DOCUMENT);
	json_t *doc;

	if (!fact_known(text))
		return;
	doc = json_loads(text.value, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_array(json_object_get(doc, "pairs"))) {
		read_trouble(r, DOCUMENT,
			     "is not what onehop test writes; remove it, or test again");
	} else if (!is_readable(doc)) {
		read_trouble(r, DOCUMENT,
			     "is not of version %d, which this onehop reads; test again",
			     OBSERVED_VERSION);
	} else if (is_of_now(r, doc)) {
		const char *when = arena_strdup(r->m->arena, text_of(doc, "date"));
		size_t i;
		json_t *pair;

		json_array_foreach (json_object_get(doc, "pairs"), i, pair)
			if (contradicts(pair))
				read_trouble(r, DOCUMENT,
					     "pair %zu is 'ok' and of kind '%s' at once: left out",
					     i + 1,
					     arena_strdup(r->m->arena, text_of(pair, "kind")));
			else
				take_pair(r, pair, when);
		take_wholes(r, doc, when);
	}
	json_decref(doc);
}
