/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fleet as JSON and back (docs/json.md): so results of racks can be merged without their files.
 */
#include "fleet/fleet.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const char *const cause_words[CAUSE_N] = {
	[CAUSE_FAILED] = "failed", [CAUSE_HOST] = "host", [CAUSE_GPU] = "gpu",
	[CAUSE_GPU_FROM] = "gpu-from", [CAUSE_GPU_TO] = "gpu-to", [CAUSE_PAIR] = "pair",
	[CAUSE_WAY] = "direction",
};
static const char *const rank_words[RANK_N] = {
	[RANK_CITED] = "evidence", [RANK_RULE] = "rule", [RANK_PAIR] = "pair",
	[RANK_VERSION] = "version", [RANK_OTHER] = "other",
};
/* clang-format on */

/* ---- writing ---- */

static json_t *names_json(const char *const *names, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_string(names[i]));
	return a;
}

static json_t *or_null(const char *s)
{
	return s && *s ? json_string(s) : json_null();
}

static json_t *gpu_json(int gpu)
{
	return gpu < 0 ? json_null() : json_integer(gpu);
}

static json_t *keys_json(const struct fleet *f)
{
	json_t *a = json_array();

	for (size_t i = 0; i < f->key_n; i++)
		json_array_append_new(a, json_pack("{s:s, s:s}", "fact", f->keys[i].row->word,
						   "slot", f->keys[i].slot));
	return a;
}

static json_t *figure_keys_json(const struct fleet *f)
{
	json_t *a = json_array();

	for (size_t i = 0; i < f->figure_key_n; i++) {
		const struct figure_key *k = &f->figure_keys[i];

		json_array_append_new(
			a, json_pack("{s:s, s:o, s:o, s:I, s:s, s:s, s:s, s:s, s:b, s:i}", "what",
				     k->what, "initiator", gpu_json(k->initiator), "target",
				     gpu_json(k->target), "bytes", (json_int_t)k->bytes, "nic",
				     k->nic, "peer", k->peer, "memory", k->memory, "unit", k->unit,
				     "higher_is_better", (int)k->higher_is_better, "queues",
				     (int)k->queues));
	}
	return a;
}

/*
 * Facts that are not as on the group's first host, by the number of the fact: text, or null for
 * unknown.
 */
static json_t *differs_json(const struct fleet *f, const struct fleet_host *h,
			    const unsigned *reference)
{
	AUTO_FREE unsigned *values = fleet_values(f, h);
	json_t *a = json_array();

	for (unsigned k = 1; k <= f->key_n; k++)
		if (values[k] != reference[k])
			json_array_append_new(a, json_pack("[I, o]", (json_int_t)k - 1,
							   or_null(numbered_text(&f->words,
										 values[k]))));
	return a;
}

static json_t *readings_json(const struct fleet_host *h)
{
	json_t *a = json_array();

	for (size_t i = 0; i < h->reading_n; i++) {
		const struct fleet_reading *r = &h->readings[i];

		json_array_append_new(a, json_pack("[I, f, f, f, f]", (json_int_t)r->key - 1,
						   r->median, r->low, r->high, r->expected));
	}
	return a;
}

static json_t *failures_json(const struct fleet_host *h)
{
	json_t *a = json_array();

	for (size_t i = 0; i < h->failure_n; i++)
		json_array_append_new(a, json_pack("{s:s, s:s, s:o, s:o}", "what",
						   h->failures[i].what, "kind", h->failures[i].kind,
						   "initiator", gpu_json(h->failures[i].initiator),
						   "target", gpu_json(h->failures[i].target)));
	return a;
}

static json_t *findings_json(const struct fleet_host *h)
{
	json_t *a = json_array();

	for (size_t i = 0; i < h->finding_n; i++)
		json_array_append_new(a, json_pack("{s:s, s:s, s:o}", "rule", h->findings[i].rule,
						   "severity", h->findings[i].severity, "pci",
						   or_null(h->findings[i].address)));
	return a;
}

static json_t *slots_json(const struct fleet_host *h)
{
	json_t *o = json_object();

	for (size_t i = 0; i < h->slot_n; i++)
		json_object_set_new(o, h->slots[i].slot, json_string(h->slots[i].address));
	return o;
}

static json_t *host_json(const struct fleet *f, const struct fleet_host *h,
			 const unsigned *reference)
{
	return json_pack("{s:s, s:I, s:b, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "name", h->name,
			 "documents", (json_int_t)h->documents, "checked", (int)h->checked, "root",
			 h->root < 0 ? json_null() : json_boolean(h->root), "lists",
			 (json_int_t)h->families, "differs", differs_json(f, h, reference),
			 "figures", readings_json(h), "failures", failures_json(h), "findings",
			 findings_json(h), "devices", slots_json(h));
}

static json_t *outlier_json(const struct fleet_outlier *o)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:s, s:I, s:o}", "fact", o->row->word,
			 "rank", rank_words[o->rank], "hosts", names_json(o->hosts, o->host_n),
			 "slots", names_json(o->slots, o->slot_n), "pci", or_null(o->address),
			 "value", o->value, "usual", o->usual, "usual_hosts",
			 (json_int_t)o->usual_n, "rule", or_null(o->rule));
}

static json_t *split_json(const struct fleet_split *s)
{
	json_t *shares = json_array();

	for (size_t i = 0; i < s->share_n; i++)
		json_array_append_new(shares,
				      json_pack("{s:s, s:o}", "value", s->shares[i].value, "hosts",
						names_json(s->shares[i].hosts,
							   s->shares[i].host_n)));
	return json_pack("{s:s, s:s, s:I, s:o}", "fact", s->row->word, "slot", s->slot,
			 "more_slots", (json_int_t)s->more, "values", shares);
}

static json_t *slow_json(const struct fleet_slow *s)
{
	json_t *whats = json_array();

	for (size_t i = 0; i < s->figure_n; i++)
		json_array_append_new(whats, json_string(s->figures[i].what));
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:I, s:o}", "host", s->host,
			 "cause", cause_words[s->cause], "gpu", gpu_json(s->a), "peer",
			 gpu_json(s->b), "figures", whats, "change", s->change, "value",
			 s->value > 0 ? json_real(s->value) : json_null(), "usual",
			 s->usual > 0 ? json_real(s->usual) : json_null(), "unit", or_null(s->unit),
			 "others", (json_int_t)s->others, "kind", or_null(s->kind));
}

static json_t *figure_split_json(const struct fleet_figure_split *s)
{
	json_t *shares = json_array();

	for (size_t i = 0; i < 2; i++)
		json_array_append_new(shares,
				      json_pack("{s:f, s:o}", "value", s->values[i], "hosts",
						names_json(s->hosts[i], s->host_n[i])));
	return json_pack("{s:s, s:s, s:o, s:o, s:I, s:o}", "what", s->what, "unit", s->unit,
			 "initiator", gpu_json(s->initiator), "target", gpu_json(s->target),
			 "more_pairs", (json_int_t)s->more, "values", shares);
}

static json_t *blind_json(const struct fleet_blind *b)
{
	return json_pack("{s:o, s:I, s:b}", "hosts", names_json(b->hosts, b->host_n), "facts",
			 (json_int_t)b->facts, "without_root", (int)b->no_root);
}

#define ARRAY_OF(make, items, n)                                                                   \
	({                                                                                         \
		json_t *list_ = json_array();                                                      \
		for (size_t i_ = 0; i_ < (n); i_++)                                                \
			json_array_append_new(list_, make(&(items)[i_]));                          \
		list_;                                                                             \
	})

static json_t *devices_json(const struct fleet_devices *d)
{
	return json_pack("{s:s, s:s, s:I}", "kind", d->nic ? "nic" : "gpu", "name", d->name,
			 "count", (json_int_t)d->n);
}

static json_t *group_json(const struct fleet *f, const struct fleet_group *g)
{
	AUTO_FREE unsigned *reference = fleet_values(f, g->hosts[0]);
	json_t *facts = json_array(), *hosts = json_array();

	for (unsigned k = 1; k <= f->key_n; k++)
		if (reference[k])
			json_array_append_new(facts,
					      json_pack("[I, s]", (json_int_t)k - 1,
							numbered_text(&f->words, reference[k])));
	for (size_t i = 0; i < g->host_n; i++)
		json_array_append_new(hosts, host_json(f, g->hosts[i], reference));
	return json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "hardware",
			 g->hardware->name, "devices",
			 ARRAY_OF(devices_json, g->hardware->devices, g->hardware->device_n),
			 "platform", g->hardware->platform, "like",
			 or_null(g->like ? g->like->hardware->name : NULL), "outliers",
			 ARRAY_OF(outlier_json, g->outliers, g->outlier_n), "splits",
			 ARRAY_OF(split_json, g->splits, g->split_n), "slow",
			 ARRAY_OF(slow_json, g->slow, g->slow_n), "figure_splits",
			 ARRAY_OF(figure_split_json, g->figure_splits, g->figure_split_n),
			 "not_seen", ARRAY_OF(blind_json, g->blind, g->blind_n), "first_host",
			 facts, "hosts", hosts);
}

void fleet_json(const struct fleet *f, json_t *head)
{
	json_t *groups = json_array();

	for (size_t i = 0; i < f->group_n; i++)
		json_array_append_new(groups, group_json(f, &f->groups[i]));
	json_object_set_new(head, "facts", keys_json(f));
	json_object_set_new(head, "figures", figure_keys_json(f));
	json_object_set_new(head, "groups", groups);
	json_object_set_new(head, "missing", names_json(f->missing, f->missing_n));
	json_object_set_new(head, "troubles", names_json(f->troubles.items, f->troubles.n));
}

/* ---- reading ---- */

/* Tables of the document, as numbers of the fleet; 0: this version does not know it. */
struct tables {
	unsigned *keys, *figures;
	size_t key_n, figure_n;
	/*
	 * By number of the fact: its value on the host that is read, and on the first host of the
	 * group. 0: unknown.
	 */
	unsigned *values, *first;
	/* The facts that one of the two has, those of the first host in front. */
	unsigned *list;
	size_t list_n, first_n;
	bool *listed; /* by number: it is in the list */
	size_t fact_n;
};

static const char *text_of(const json_t *o, const char *member)
{
	const char *s = json_string_value(json_object_get(o, member));

	return s ? s : "";
}

static int gpu_of(const json_t *o, const char *member)
{
	const json_t *v = json_object_get(o, member);
	json_int_t i = json_is_integer(v) ? json_integer_value(v) : -1;

	return i >= 0 && i < FIGURES_MAX_GPUS ? (int)i : -1;
}

static void read_keys(struct fleet *f, const json_t *list, struct tables *t)
{
	const json_t *o;
	size_t i;

	t->key_n = json_array_size(list);
	t->keys = xcalloc(t->key_n + 1, sizeof(*t->keys));
	json_array_foreach (list, i, o) {
		const struct fact_row *row = fact_row_find(text_of(o, "fact"));

		t->keys[i] = row ? fleet_key(f, row, text_of(o, "slot")) : 0;
	}
}

static void read_figure_keys(struct fleet *f, const json_t *list, struct tables *t)
{
	const json_t *o;
	size_t i;

	t->figure_n = json_array_size(list);
	t->figures = xcalloc(t->figure_n + 1, sizeof(*t->figures));
	json_array_foreach (list, i, o) {
		struct figure_key key = {
			.what = text_of(o, "what"),
			.metric = metric_find(text_of(o, "what")),
			.initiator = gpu_of(o, "initiator"),
			.target = gpu_of(o, "target"),
			.bytes = (uint64_t)json_integer_value(json_object_get(o, "bytes")),
			.nic = text_of(o, "nic"),
			.peer = text_of(o, "peer"),
			.memory = text_of(o, "memory"),
			.queues = (unsigned)json_integer_value(json_object_get(o, "queues")),
			.unit = text_of(o, "unit"),
			.higher_is_better = json_is_true(json_object_get(o, "higher_is_better"))};

		t->figures[i] = fleet_figure_key(f, &key);
	}
}

/* The number of the fact or figure that a row begins with; 0: none. */
static unsigned row_key(const json_t *row, const unsigned *keys, size_t n)
{
	const json_t *number = json_array_get(row, 0);
	json_int_t i = json_is_integer(number) ? json_integer_value(number) : -1;

	return i >= 0 && (size_t)i < n ? keys[i] : 0;
}

/* Sets values[key] of each row; null: unknown. */
static void read_values(struct fleet *f, const json_t *rows, struct tables *t)
{
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		unsigned key = row_key(row, t->keys, t->key_n);
		const char *value = json_string_value(json_array_get(row, 1));

		if (!key)
			continue;
		if (!t->listed[key])
			t->list[t->list_n++] = key;
		t->listed[key] = true;
		t->values[key] = value ? numbered_number(&f->words, value) : 0;
	}
}

static double number_at(const json_t *row, size_t i)
{
	return json_number_value(json_array_get(row, i));
}

static void read_readings(struct fleet *f, struct fleet_host *h, const json_t *rows,
			  const struct tables *t)
{
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		unsigned key = row_key(row, t->figures, t->figure_n);

		if (key && number_at(row, 1) > 0)
			fleet_set_reading(f, h,
					  (struct fleet_reading){key, number_at(row, 1),
								 number_at(row, 2),
								 number_at(row, 3),
								 number_at(row, 4)});
	}
}

static void read_lists(struct fleet *f, struct fleet_host *h, const json_t *o)
{
	const char *slot;
	json_t *x;
	size_t i;

	h->failure_n = 0;
	json_array_foreach (json_object_get(o, "failures"), i, x) {
		*ARENA_PUSH(f->arena, h->failures, h->failure_n) =
			(struct fleet_failure){fleet_keep(f, text_of(x, "what")),
					       fleet_keep(f, text_of(x, "kind")),
					       gpu_of(x, "initiator"), gpu_of(x, "target")};
	}
	json_array_foreach (json_object_get(o, "findings"), i, x) {
		*ARENA_PUSH(f->arena, h->findings, h->finding_n) =
			(struct fleet_finding){fleet_keep(f, text_of(x, "rule")),
					       fleet_keep(f, text_of(x, "severity")),
					       fleet_keep(f, text_of(x, "pci"))};
	}
	json_object_foreach (json_object_get(o, "devices"), slot, x) {
		if (json_is_string(x))
			*ARENA_PUSH(f->arena, h->slots, h->slot_n) =
				(struct fleet_slot){fleet_keep(f, slot),
						    fleet_keep(f, json_string_value(x))};
	}
}

/* Back to what the first host of the group has, of which the keys that are listed first are. */
static void forget_differences(struct tables *t, const json_t *rows)
{
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		unsigned key = row_key(row, t->keys, t->key_n);

		t->values[key] = t->first[key];
	}
	while (t->list_n > t->first_n)
		t->listed[t->list[--t->list_n]] = false;
}

/* `first` of the tables: the facts of the group's first host, by number. */
static void read_host(struct fleet *f, const json_t *o, const struct fleet_hardware *hardware,
		      struct tables *t)
{
	struct fleet_host *h = fleet_host(f, text_of(o, "name"));
	const json_t *differs = json_object_get(o, "differs");
	const json_t *root = json_object_get(o, "root");
	json_int_t families = json_integer_value(json_object_get(o, "lists"));

	read_values(f, differs, t);
	fleet_forget_facts(h);
	h->documents += (size_t)json_integer_value(json_object_get(o, "documents"));
	h->checked |= json_is_true(json_object_get(o, "checked"));
	h->families = (unsigned)families & (FAMILY_WORDS | FAMILY_NCCL);
	h->root = json_is_boolean(root) ? json_is_true(root) : -1;
	h->hardware = hardware;
	for (size_t i = 0; i < t->list_n; i++)
		if (t->values[t->list[i]])
			*ARENA_PUSH(f->arena, h->facts, h->fact_n) =
				(struct fleet_fact){t->list[i], t->values[t->list[i]]};
	forget_differences(t, differs);
	read_readings(f, h, json_object_get(o, "figures"), t);
	read_lists(f, h, o);
}

/* A fleet of ten thousand hosts has a tenth of it. Each host repeats the facts of the first. */
enum { MOST_FACTS = 1 << 26 };

/* 0.1.0 wrote it in words alone: they say which hosts to compare, but not what the devices are. */
static const struct fleet_hardware *read_hardware(struct fleet *f, const json_t *g)
{
	const bool typed = json_is_string(json_object_get(g, "platform"));
	struct fleet_hardware hardware = {.platform = text_of(g, typed ? "platform" : "hardware")};
	const json_t *d;
	size_t i;

	json_array_foreach (json_object_get(g, "devices"), i, d) {
		json_int_t n = json_integer_value(json_object_get(d, "count"));

		fleet_hardware_add(f, &hardware, strcmp(text_of(d, "kind"), "nic") == 0,
				   n > 0 && n < INT32_MAX ? (unsigned)n : 0, text_of(d, "name"));
	}
	return fleet_hardware(f, hardware);
}

static int read_group(struct fleet *f, const json_t *g, struct tables *t)
{
	const json_t *hosts = json_object_get(g, "hosts"), *o;
	const struct fleet_hardware *hardware = read_hardware(f, g);
	size_t i;

	memset(t->values, 0, (f->key_n + 1) * sizeof(*t->values));
	memset(t->listed, 0, (f->key_n + 1) * sizeof(*t->listed));
	t->list_n = 0;
	read_values(f, json_object_get(g, "first_host"), t);
	memcpy(t->first, t->values, (f->key_n + 1) * sizeof(*t->first));
	t->first_n = t->list_n;
	t->fact_n += t->first_n * json_array_size(hosts);
	if (t->fact_n > MOST_FACTS)
		return err_set(EFBIG, "has more than %d facts of its hosts, more than a fleet has",
			       MOST_FACTS);
	json_array_foreach (hosts, i, o)
		if (*text_of(o, "name"))
			read_host(f, o, hardware, t);
	return 0;
}

static void tables_free(struct tables *t)
{
	free(t->keys);
	free(t->figures);
	free(t->values);
	free(t->first);
	free(t->list);
	free(t->listed);
}

/* What was said when it was made: it is still so, unless another result has the host. */
static void read_gaps(struct fleet *f, const json_t *fleet)
{
	const json_t *o;
	size_t i;

	json_array_foreach (json_object_get(fleet, "missing"), i, o)
		if (json_string_length(o))
			fleet_expect(f, json_string_value(o));
	json_array_foreach (json_object_get(fleet, "troubles"), i, o)
		if (json_string_length(o))
			fleet_trouble(f, "%s", json_string_value(o));
}

int fleet_add_fleet(struct fleet *f, const json_t *fleet)
{
	const json_t *groups = json_object_get(fleet, "groups"), *g;
	struct tables t = {0};
	size_t i;
	int r = 0;

	if (!json_is_array(groups) || !json_is_array(json_object_get(fleet, "facts")))
		return err_set(EINVAL,
			       "not a whole result of onehop fleet --json: it has no groups");
	read_keys(f, json_object_get(fleet, "facts"), &t);
	read_figure_keys(f, json_object_get(fleet, "figures"), &t);
	t.values = xcalloc(f->key_n + 1, sizeof(*t.values));
	t.first = xcalloc(f->key_n + 1, sizeof(*t.first));
	t.list = xcalloc(f->key_n + 1, sizeof(*t.list));
	t.listed = xcalloc(f->key_n + 1, sizeof(*t.listed));
	json_array_foreach (groups, i, g)
		r = r < 0 ? r : read_group(f, g, &t);
	tables_free(&t);
	read_gaps(f, fleet);
	return r;
}
