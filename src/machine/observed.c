/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop test` found on this machine since it was started: observed.json into facts. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "machine/read.h"

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
	for (size_t i = 0; i < m->gpu_n; i++)
		if (strcmp(m->gpus[i].pci->name, address) == 0)
			return (int)i;
	return -1;
}

static struct observed *add(struct reader *r, enum observed_kind kind, int initiator, int target,
			    const char *from)
{
	struct observed *o = ARENA_PUSH(r->m->arena, r->m->observed, r->m->observed_n);

	o->kind = kind;
	o->initiator = initiator;
	o->target = target;
	o->text = "";
	o->from = from;
	return o;
}

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
	o = add(r, refused ? OBSERVED_PEER_ACCESS : OBSERVED_PEER_COPY, initiator, target, from);
	o->ok = json_is_true(ok);
	o->text = arena_strdup(r->m->arena, kind);
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		double value = json_number_value(json_object_get(pair, values[i].key));

		if (value <= 0)
			continue;
		o = add(r, values[i].kind, initiator, target, from);
		o->ok = true;
		o->value = value;
	}
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
	}
	json_decref(doc);
}
