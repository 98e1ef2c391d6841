/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the statements of texts into a source from which a machine is read. */
#include "ingest/claims_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/fact.h"
#include "machine/nvml_api.h"
#include "machine/pci.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES "sys/bus/pci/devices"

enum { MOST_SOCKETS = 64 };

/* The GPUs by nvidia-smi's number, then those without a known number. */
struct gpus {
	char by_number[CLAIMS_MAX_GPUS][PCI_ADDRESS_LEN]; /* "": there is no GPU with this number */
	size_t n;
	bool unplaced; /* some have no address in any text */
	char (*others)[PCI_ADDRESS_LEN];
	size_t other_n;
};

struct source_entry *claims_entries(const struct claims *c, const char *prefix, size_t *ret_n)
{
	struct source_entry *all = source_entries(c->map, ret_n);
	size_t n = 0;

	for (size_t i = 0; i < *ret_n; i++)
		if (text_starts_with(all[i].path, prefix))
			all[n++] = all[i];
	*ret_n = n;
	return all;
}

/* ---- which GPU is which ---- */

static const char *stated_text(const struct claims *c, const char *path)
{
	const struct source_entry *e = source_entry_of(c->map, path, SOURCE_FILE);

	return e && !e->error ? e->data : NULL;
}

/* Some output of the driver's tools names it; lspci does not count. */
static bool is_listed(const struct claims *c, const char *address)
{
	char path[64];

	snprintf(path, sizeof(path), "gpu/%s/listed", address);
	return stated_text(c, path) != NULL;
}

/*
 * The addresses of GPUs: "gpu/0000:41:00.0/listed", and what lspci lists as NVIDIA's of a display
 * class.
 */
static size_t collect_addresses(struct claims *c, char (*ret)[PCI_ADDRESS_LEN], size_t max)
{
	AUTO_FREE struct source_entry *entries = NULL;
	size_t n, count = 0;
	char path[128];

	entries = claims_entries(c, "function/", &n);
	for (size_t i = 0; i < n && count < max; i++) {
		const char *name = entries[i].path + strlen("function/"), *vendor, *class;

		snprintf(path, sizeof(path), DEVICES "/%s/vendor", name);
		vendor = stated_text(c, path);
		snprintf(path, sizeof(path), DEVICES "/%s/class", name);
		class = stated_text(c, path);
		if (!is_listed(c, name) &&
		    !(vendor && !strcmp(vendor, "0x10de") && class &&
		      (text_starts_with(class, "0x0300") || text_starts_with(class, "0x0302"))))
			continue;
		text_copy(ret[count++], PCI_ADDRESS_LEN, name, strlen(name));
	}
	return count;
}

static bool has_number(const struct gpus *g, const char *address)
{
	for (size_t i = 0; i < g->n; i++)
		if (strcmp(g->by_number[i], address) == 0)
			return true;
	return false;
}

static const struct source_entry *stated_entry(const struct claims *c, const char *folder,
					       const char *name, const char *key)
{
	const struct source_entry *e;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s/%s", folder, name, key);
	e = source_entry_of(c->map, path, SOURCE_FILE);
	return e && !e->error ? e : NULL;
}

/*
 * "4090" of "NVIDIA GeForce RTX 4090": letters and digits with a digit among them, but not the size
 * of its memory.
 */
static size_t name_word(const char **s)
{
	for (;;) {
		size_t n = 0;
		bool digit = false;

		while (**s && !isalnum((unsigned char)**s))
			(*s)++;
		while (isalnum((unsigned char)(*s)[n]))
			digit |= isdigit((unsigned char)(*s)[n++]) != 0;
		if (!n || (digit && n > 1 && strncasecmp(*s + n - 2, "GB", 2) != 0))
			return n;
		*s += n;
	}
}

/*
 * Tools write a name in several ways, and some only its beginning; two without a number may be the
 * same.
 */
static bool may_be_same_model(const char *a, const char *b)
{
	size_t words = 0, n, k;

	for (const char *s = a; (n = name_word(&s)); s += n)
		for (const char *t = b; (k = name_word(&t)); t += k, words++)
			if (strncasecmp(s, t, n < k ? n : k) == 0)
				return true;
	return !words;
}

/*
 * What a tool of the driver calls the GPU of this number or address, and lspci the one at the other
 * address.
 */
static bool is_other_model(const struct claims *c, const struct source_entry *model,
			   const char *address)
{
	const struct source_entry *other = stated_entry(c, DEVICES, address, "stated/model");

	return model && other && !may_be_same_model(model->data, other->data);
}

static const struct source_entry *model_of_number(struct claims *c, size_t number)
{
	return stated_entry(c, "gpu", arena_printf(c->arena, "#%zu", number), "model");
}

/* NVML numbers GPUs by address, so equal counts of numbers and addresses match in order. */
static void number_by_order(struct claims *c, struct gpus *g, char (*addresses)[PCI_ADDRESS_LEN],
			    size_t n)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->by_number[i][0] ||
		    (i < n && is_other_model(c, model_of_number(c, i), addresses[i])))
			return;
	for (size_t i = 0; n == g->n && i < n; i++)
		memcpy(g->by_number[i], addresses[i], PCI_ADDRESS_LEN);
}

/* A number gets a placeholder address if nothing shows its real one. */
static void stand_in(struct claims *c, struct gpus *g)
{
	for (size_t i = 0; i < g->n; i++) {
		char path[64];
		struct pci_address a = {.domain = PCI_NO_ADDRESS, .bus = (uint8_t)i};

		snprintf(path, sizeof(path), "gpu/#%zu/listed", i);
		if (g->by_number[i][0] || !stated_text(c, path))
			continue;
		g->unplaced = true;
		pci_address_format(a, g->by_number[i]);
		claim(c, CLAIM_NOWHERE, "", "function/%s", g->by_number[i]);
		claim(c, CLAIM_NOWHERE, "0x10de", DEVICES "/%s/vendor", g->by_number[i]);
		claim_whole(c, DEVICES "/%s", g->by_number[i]);
	}
}

static void find_numbers(struct claims *c, struct gpus *g)
{
	AUTO_FREE struct source_entry *entries = NULL;
	size_t n;

	entries = claims_entries(c, "gpu/#", &n);
	for (size_t i = 0; i < n; i++) {
		char *end;
		unsigned long number = strtoul(entries[i].path + strlen("gpu/#"), &end, 10);

		if (number >= CLAIMS_MAX_GPUS)
			continue;
		if (number >= g->n)
			g->n = number + 1;
		if (!strcmp(end, "/address") && entries[i].data)
			text_copy(g->by_number[number], PCI_ADDRESS_LEN, entries[i].data,
				  entries[i].size);
	}
}

/* ---- GPUs that are not of one machine ---- */

static void doubt_model(struct claims *c, const struct source_entry *model, const char *address)
{
	claims_add_doubt(c, "identity/models", model,
			 stated_entry(c, DEVICES, address, "stated/model"));
}

/* Those without an address are none of those that have only an address, if their names differ. */
static void doubt_models(struct claims *c, const struct gpus *g)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct source_entry *model = model_of_number(c, i);

		if (!model)
			model = stated_entry(c, "gpu", g->by_number[i], "model");
		if (is_other_model(c, model, g->by_number[i])) {
			doubt_model(c, model, g->by_number[i]);
			return;
		}
		for (size_t k = 0; g->unplaced && k < g->other_n; k++)
			if (is_other_model(c, model, g->others[k])) {
				doubt_model(c, model, g->others[k]);
				return;
			}
	}
}

/* The driver's tools list several GPUs, and lspci several others. */
static void doubt_addresses(struct claims *c, char (*addresses)[PCI_ADDRESS_LEN], size_t n)
{
	const struct source_entry *listed = NULL, *other = NULL;
	size_t listed_n = 0, other_n = 0;

	for (size_t i = 0; i < n; i++) {
		const bool is = is_listed(c, addresses[i]);

		if (is && stated_entry(c, DEVICES, addresses[i], "class"))
			return; /* both show it */
		listed_n += is;
		other_n += !is;
		if (is)
			listed = stated_entry(c, "gpu", addresses[i], "listed");
		else
			other = stated_entry(c, DEVICES, addresses[i], "class");
	}
	if (listed_n > 1 && other_n > 1 && stated_text(c, "stated/all-gpus"))
		claims_add_doubt(c, "identity/addresses", listed, other);
}

/* ---- all GPUs ---- */

static void find_gpus(struct claims *c, struct gpus *g)
{
	char(*addresses)[PCI_ADDRESS_LEN] = arena_alloc(c->arena, CLAIMS_MAX_GPUS, PCI_ADDRESS_LEN);
	size_t n = collect_addresses(c, addresses, CLAIMS_MAX_GPUS);

	find_numbers(c, g);
	doubt_addresses(c, addresses, n);
	number_by_order(c, g, addresses, n);
	stand_in(c, g);
	g->others = arena_alloc(c->arena, n + 1, PCI_ADDRESS_LEN);
	for (size_t i = 0; i < n; i++)
		if (!has_number(g, addresses[i]) && (g->unplaced || is_listed(c, addresses[i])))
			memcpy(g->others[g->other_n++], addresses[i], PCI_ADDRESS_LEN);
	doubt_models(c, g);
}

/* ---- one GPU under several names ---- */

void claims_move(struct claims *c, const struct source_entry *e, const char *to)
{
	const char *origin = source_origin(c->map, e->path);
	const char *colon = origin ? strrchr(origin, ':') : NULL;
	struct claim_at at = {.file = "", .time = claims_time_of(c, e->path)};

	if (colon) {
		at.file = arena_strndup(c->arena, origin, (size_t)(colon - origin));
		at.line = (unsigned)strtoul(colon + 1, NULL, 10);
	}
	if (e->error)
		claim_absent(c, at, "%s", to);
	else
		claim(c, at, e->data, "%s", to);
}

/* "gpu/#3/bar1_bytes" is "gpu/0000:41:00.0/bar1_bytes". */
static void move_to_addresses(struct claims *c, const struct gpus *g)
{
	AUTO_FREE struct source_entry *entries = NULL;
	size_t n;

	entries = claims_entries(c, "gpu/#", &n);
	for (size_t i = 0; i < n; i++) {
		char *key;
		unsigned long number = strtoul(entries[i].path + strlen("gpu/#"), &key, 10);

		if (number < g->n && g->by_number[number][0])
			claims_move(c, &entries[i],
				    arena_printf(c->arena, "gpu/%s%s", g->by_number[number], key));
	}
}

/*
 * "gpu/~bar1-2/bar1_bytes": the third of blocks that do not name their GPU, if there is one for
 * each.
 */
static void move_unnamed(struct claims *c, const struct gpus *g)
{
	static const char *const kinds[] = {"bar1-", "fb-"};
	size_t total = 0;

	for (size_t i = 0; i < g->n; i++)
		total += g->by_number[i][0] != '\0';
	for (size_t k = 0; k < 2; k++) {
		AUTO_FREE struct source_entry *entries = NULL;
		const char *prefix = arena_printf(c->arena, "gpu/~%s", kinds[k]);
		size_t n;

		entries = claims_entries(c, prefix, &n);
		if (!n || n != total + g->other_n || (total && g->other_n))
			continue;
		for (size_t i = 0; i < n; i++) {
			const char *key = strchr(entries[i].path + strlen(prefix), '/');

			claims_move(c, &entries[i],
				    arena_printf(c->arena, "gpu/%s%s",
						 total ? g->by_number[i] : g->others[i], key));
		}
	}
}

/* ---- nvml.json ---- */

static json_t *value_of(struct claims *c, const struct source_entry *e)
{
	const char *from = source_origin(c->map, e->path);
	static const char *const texts[] = {"model", "uuid", "vbios", "driver"};
	const char *slash = strrchr(e->path, '/');
	bool text = false;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		text |= strcmp(slash + 1, texts[i]) == 0;
	if (e->error)
		return json_pack("{siss}", "refused", 3, "says", "Not Supported");
	return json_pack("{soss}", "value",
			 text ? json_stringn(e->data, e->size)
			      : json_integer(strtoll(e->data, NULL, 10)),
			 "from", from ? from : "");
}

/* "gpu/0000:41:00.0/link/03/state" goes into its list, everything else by its key. */
static void put_key(struct claims *c, json_t *gpu, const struct source_entry *e, const char *key)
{
	json_t *links = json_object_get(gpu, "links"), *value = value_of(c, e);
	unsigned link;
	int end = 0;

	if (!value)
		return;
	if (sscanf(key, "link/%2u/state%n", &link, &end) != 1 || !end) {
		json_object_set_new(gpu, key, value);
		return;
	}
	if (!links) {
		links = json_array();
		json_object_set_new(gpu, "links", links);
	}
	while (json_array_size(links) <= link)
		json_array_append_new(links, json_object());
	json_object_set_new(json_array_get(links, link), "state", value);
}

/* `entries`: all of "gpu/". */
static json_t *gpu_json(struct claims *c, const char *address, const struct source_entry *entries,
			size_t n)
{
	const char *prefix = arena_printf(c->arena, "gpu/%s/", address);
	json_t *gpu = json_pack("{ss}", "address", address);

	for (size_t i = 0; i < n; i++) {
		const char *key = entries[i].path + strlen(prefix);

		if (!text_starts_with(entries[i].path, prefix))
			continue;
		if (strcmp(key, "numa_node") == 0)
			claims_move(c, &entries[i],
				    arena_printf(c->arena, DEVICES "/%s/numa_node", address));
		else if (strcmp(key, "listed") != 0 && strcmp(key, "address") != 0)
			put_key(c, gpu, &entries[i], key);
	}
	claim_number(c, CLAIM_NOWHERE, 1, DEVICES "/%s/stated/gpu", address);
	return gpu;
}

static json_t *rows(size_t n)
{
	json_t *all = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *row = json_array();

		for (size_t j = 0; j < n; j++)
			json_array_append_new(row, json_null());
		json_array_append_new(all, row);
	}
	return all;
}

/* "pair/level/0/3", "pair/p2p-read/0/3" */
static void put_pairs(struct claims *c, json_t *doc, size_t gpu_n)
{
	AUTO_FREE struct source_entry *entries = NULL;
	json_t *p2p = json_object();
	size_t n;

	json_object_set_new(doc, "p2p", p2p);
	entries = claims_entries(c, "pair/", &n);
	for (size_t i = 0; i < n; i++) {
		const char *s = entries[i].path + strlen("pair/");
		char key[32];
		unsigned row, column;
		json_t *in = doc, *matrix;

		if (sscanf(s, "%31[^/]/%3u/%3u", key, &row, &column) != 3 || row >= gpu_n ||
		    column >= gpu_n)
			continue;
		s = strcmp(key, "level") == 0 ? "common_ancestor" : key;
		if (text_starts_with(key, "p2p-")) {
			in = p2p;
			s = key + 4;
		}
		matrix = json_object_get(in, s);
		if (!matrix) {
			matrix = rows(gpu_n);
			json_object_set_new(in, s, matrix);
		}
		json_array_set_new(json_array_get(matrix, row), column, value_of(c, &entries[i]));
	}
}

static void put_of_all(struct claims *c, json_t *doc, const char *key)
{
	const char *path = arena_printf(c->arena, "gpu/%s", key);
	const struct source_entry *e = source_entry_of(c->map, path, SOURCE_FILE);

	if (e && !e->error)
		json_object_set_new(doc, key, value_of(c, e));
}

static void put_nvml(struct claims *c, const struct gpus *g)
{
	AUTO_FREE struct source_entry *entries = NULL;
	json_t *doc, *gpus = json_array(), *others = json_array();
	size_t n;
	char *text;

	entries = claims_entries(c, "gpu/", &n);
	doc = json_pack("{soso}", "gpus", gpus, "unnumbered", others);
	if (!g->n) { /* nvidia-smi did not list them */
		json_object_del(doc, "gpus");
		json_object_set_new(doc, "unavailable", json_string("not in the text"));
	}
	for (size_t i = 0; i < g->n; i++)
		json_array_append_new(gpus, g->by_number[i][0]
						    ? gpu_json(c, g->by_number[i], entries, n)
						    : json_null());
	for (size_t i = 0; i < g->other_n; i++)
		json_array_append_new(others, gpu_json(c, g->others[i], entries, n));
	put_of_all(c, doc, "driver");
	put_of_all(c, doc, "cuda_version");
	put_pairs(c, doc, g->n);
	text = json_dumps(doc, 0);
	source_put_file(c->map, NVML_DOCUMENT, text, strlen(text));
	free(text);
	json_decref(doc);
}

/* ---- the rest ---- */

static void put_functions(struct claims *c)
{
	AUTO_FREE struct source_entry *entries = NULL;
	AUTO_STRBUF struct strbuf names = {0};
	size_t n;

	entries = claims_entries(c, "function/", &n);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&names, "%s\n", entries[i].path + strlen("function/"));
	if (n)
		source_put_list(c->map, DEVICES, strbuf_str(&names));
}

static void put_line_files(struct claims *c)
{
	for (size_t i = 0; i < c->line_file_n; i++) {
		struct line_file *f = &c->line_files[i];

		source_put_file(c->map, f->path, strbuf_str(&f->text), f->text.len);
		if (f->at)
			source_put_origin(c->map, f->path, f->at);
		strbuf_done(&f->text);
	}
}

static void put_environment(struct claims *c)
{
	AUTO_FREE struct source_entry *entries = NULL;
	AUTO_STRBUF struct strbuf text = {0};
	size_t n;

	entries = claims_entries(c, "environment/", &n);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&text, "%s=%s\n", entries[i].path + strlen("environment/"),
			      entries[i].data);
	if (!n)
		return;
	source_put_file(c->map, "environment.txt", strbuf_str(&text), text.len);
	source_put_origin(c->map, "environment.txt", source_origin(c->map, entries[0].path));
}

/*
 * As lscpu ("hypervisor") names what /sys/hypervisor or DMI would show, or the kernel log ("guest",
 * which comes first).
 */
static void put_hypervisor(struct claims *c, const struct source_entry *e)
{
	char *name = arena_strdup(c->arena, e->data);

	for (char *s = name; *s; s++)
		*s = (char)tolower((unsigned char)*s);
	source_put_file(c->map, "sys/hypervisor/type", name, strlen(name));
	source_put_origin(c->map, "sys/hypervisor/type", source_origin(c->map, e->path));
}

/* /proc/cpuinfo of one CPU, and the sockets of all. */
static void put_cpu(struct claims *c)
{
	AUTO_FREE struct source_entry *entries = NULL;
	AUTO_STRBUF struct strbuf text = {0};
	const char *origin = NULL;
	size_t n;

	entries = claims_entries(c, "cpu/", &n);
	for (size_t i = 0; i < n; i++) {
		const char *key = entries[i].path + strlen("cpu/");
		uint64_t sockets;

		if (strcmp(key, "hypervisor") == 0 || strcmp(key, "guest") == 0) {
			put_hypervisor(c, &entries[i]);
			continue;
		}
		origin = source_origin(c->map, entries[i].path);
		if (strcmp(key, "sockets") != 0)
			strbuf_printf(&text, "%s\t: %s\n", key, entries[i].data);
		else if (text_to_u64(entries[i].data, &sockets) == 0)
			for (uint64_t k = 0; k < sockets && k < MOST_SOCKETS; k++)
				strbuf_printf(&text, "physical id\t: %" PRIu64 "\n", k);
	}
	if (!origin)
		return;
	source_put_file(c->map, "proc/cpuinfo", strbuf_str(&text), text.len);
	source_put_origin(c->map, "proc/cpuinfo", origin);
}

static void drop_own(struct claims *c)
{
	static const char *const own[] = {"function/",    "gpu/", "pair/",    "nic/",
					  "environment/", "cpu/", "identity/"};

	for (size_t k = 0; k < sizeof(own) / sizeof(*own); k++) {
		AUTO_FREE struct source_entry *entries = NULL;
		size_t n;

		entries = claims_entries(c, own[k], &n);
		for (size_t i = 0; i < n; i++)
			source_drop(c->map, entries[i].path);
	}
}

/* ---- what is cut off ---- */

/* The address of a GPU by its number; NULL: there is none. */
static const char *address_of(const struct gpus *g, const char *number)
{
	const unsigned long i = strtoul(number, NULL, 10);

	return i < g->n && g->by_number[i][0] ? g->by_number[i] : NULL;
}

/* Of answers that become part of nvml.json (NVML_DOCUMENT); NULL: of a GPU that has no address. */
static const char *gap_path(struct claims *c, const struct gpus *g, const char *path)
{
	static const struct {
		const char *from, *to;
	} folders[] = {
		{"gpu/", NVML_DOCUMENT "/"},
		{"pair/level/", NVML_DOCUMENT "/common_ancestor/"},
		{"pair/p2p-", NVML_DOCUMENT "/p2p/"},
		{"pair/", NVML_DOCUMENT "/"},
	};

	if (text_starts_with(path, "gpu/#")) {
		const char *address = address_of(g, path + strlen("gpu/#"));

		return address ? arena_printf(c->arena, NVML_DOCUMENT "/%s", address) : NULL;
	}
	if (strcmp(path, "gpu") == 0)
		return NVML_DOCUMENT;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		if (text_starts_with(path, folders[i].from))
			return arena_printf(c->arena, "%s%s", folders[i].to,
					    path + strlen(folders[i].from));
	return path;
}

/*
 * The first place where something is cut off counts, and more than that another text has all of it.
 */
static void put_gaps(struct claims *c, const struct gpus *g)
{
	for (int cut = 0; cut < 2; cut++)
		for (size_t i = c->gap_n; i > 0; i--) {
			const struct claim_gap *gap = &c->gaps[i - 1];
			const char *path = gap_path(c, g, gap->path);

			if (!path || (gap->at != NULL) != cut)
				continue;
			source_put_gap(c->map, path,
				       cut ? arena_printf(c->arena, FACT_CUT "%s", gap->at) : "");
		}
}

struct source *claims_source(struct claims *c)
{
	struct gpus *g = arena_alloc(c->arena, 1, sizeof(*g));
	struct source *map = c->map;

	find_gpus(c, g);
	move_to_addresses(c, g);
	move_unnamed(c, g);
	if (g->n || g->other_n)
		put_nvml(c, g);
	claims_put_nics(c, g->by_number, g->n);
	put_functions(c);
	put_line_files(c);
	put_environment(c);
	put_cpu(c);
	drop_own(c);
	put_gaps(c, g);
	c->map = NULL;
	return map;
}
