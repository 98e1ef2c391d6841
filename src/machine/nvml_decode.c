/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.json into facts. The document is untrusted: every value is checked. */
#include "machine/gpu_impl.h"

#include "base/alloc.h"
#include "machine/nvml_api.h"

#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#define DOCUMENT     NVML_DOCUMENT
#define P2P_DOCUMENT "nvml-p2p.json"
#define ON_SWITCH    "NVML field NVSWITCH_CONNECTED_LINK_COUNT"

struct decode {
	struct reader *r;
	json_t *doc;
	const char *why; /* why a value is not there */
};

/* What is asked below the path may be cut off there. */
static struct decode below(const struct decode *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static struct decode below(const struct decode *d, const char *fmt, ...)
{
	struct decode ret = *d;
	const char *path, *gap;
	va_list ap;

	va_start(ap, fmt);
	path = arena_vprintf(d->r->m->arena, fmt, ap);
	va_end(ap);
	gap = read_gap(d->r, path);
	if (gap)
		ret.why = gap;
	return ret;
}

/* ---- values ---- */

static bool refused(const json_t *v, long long *ret_code, const char **ret_says)
{
	const json_t *code = json_object_get(v, "refused");

	if (!json_is_integer(code))
		return false;
	*ret_code = json_integer_value(code);
	*ret_says = json_string_value(json_object_get(v, "says"));
	if (!*ret_says)
		*ret_says = "refused";
	return true;
}

/* {"value": 24564, "from": "paste.md:41"}: a text states it. */
static const json_t *stated(struct arena *a, const json_t *v, const char **call)
{
	const json_t *value = json_object_get(v, "value");
	const char *from = json_string_value(json_object_get(v, "from"));

	if (!value || !from)
		return v;
	*call = arena_strdup(a, from);
	return value;
}

/*
 * A fact from a value of the document. `call` is the function that NVML was asked by, `none` what
 * its "Not Supported" means.
 */
static struct fact_int decode_int(const struct decode *d, const json_t *v, const char *call,
				  enum fact_state none)
{
	struct arena *a = d->r->m->arena;
	const char *says;
	long long code;

	v = stated(a, v, &call);
	if (!v || json_is_null(v))
		return fact_int_unknown(d->why);
	if (json_is_integer(v) && json_integer_value(v) >= 0)
		return fact_int(json_integer_value(v), call);
	if (!refused(v, &code, &says))
		return fact_int_unknown(arena_printf(a, "%s: not a number in " DOCUMENT, call));
	if (code == NVML_NOT_SUPPORTED && none == FACT_ABSENT)
		return fact_int_absent(call);
	return fact_int_unknown(arena_printf(a, "%s: %s", call, says));
}

/* Names must be one line: a newline in the output could pass for a line of onehop's. */
static const char *decode_line(struct arena *a, const json_t *v)
{
	char *text = arena_strdup(a, json_string_value(v));

	for (char *p = text; (p = strpbrk(p, "\r\n")); p++)
		*p = ' ';
	return text;
}

static struct fact_str decode_str(const struct decode *d, const json_t *v, const char *call,
				  enum fact_state none)
{
	struct arena *a = d->r->m->arena;
	const char *says;
	long long code;

	v = stated(a, v, &call);
	if (!v || json_is_null(v))
		return fact_str_unknown(d->why);
	if (json_is_string(v))
		return fact_str(decode_line(a, v), call);
	if (!refused(v, &code, &says))
		return fact_str_unknown(arena_printf(a, "%s: not a text in " DOCUMENT, call));
	if (code == NVML_NOT_SUPPORTED && none == FACT_ABSENT)
		return fact_str_absent(call);
	return fact_str_unknown(arena_printf(a, "%s: %s", call, says));
}

/* Only enum values that this program knows may index tables. */
static void limit(const struct decode *d, struct fact_int *f, int64_t max)
{
	if (fact_known(*f) && f->value > max)
		*f = fact_int_unknown(arena_printf(d->r->m->arena, "%s: %lld is not a known value",
						   f->from, (long long)f->value));
}

/* A value from the driver's files stays unless NVML has one. */
#define MERGE(old, new)                                                                            \
	do {                                                                                       \
		__typeof__(old) *old_ = &(old), new_ = (new);                                      \
		if (new_.state == FACT_KNOWN ||                                                    \
		    (old_->state == FACT_UNKNOWN &&                                                \
		     (new_.state == FACT_ABSENT || fact_why_says_more(new_.from, old_->from))))    \
			*old_ = new_;                                                              \
	} while (0)

/* ---- one GPU ---- */

struct row {
	const char *key;
	size_t offset; /* of the fact in struct gpu */
	const char *call;
	enum fact_state none;
};

/* clang-format off */
#define ROW(Y, member, symbol, none) {#member, offsetof(struct gpu, member), symbol, FACT_##none},
static const struct row int_rows[] = {
	NVML_NUMBERS(ROW, )
	NVML_DETAILS(ROW, )
	NVML_LINK_DETAILS(ROW, )
	NVML_TWO_NUMBERS(ROW, )
	NVML_OTHERS(ROW, )
};
static const struct row str_rows[] = {
	NVML_TEXTS(ROW, )
};
/* clang-format on */

#define FACT_AT(type, g, row) (*(type *)((char *)(g) + (row)->offset))

/* The driver gives this answer to every query that needs the GPU itself. */
static struct fact_int decode_lost(const json_t *answers)
{
	const json_t *v;
	const char *key, *says;
	long long code;

	json_object_foreach ((json_t *)answers, key, v)
		if (refused(v, &code, &says) && code == NVML_GPU_IS_LOST)
			return fact_int(1, "NVML: GPU is lost");
	return fact_int_unknown("NVML does not report it lost");
}

static void decode_gpu(const struct decode *d, const json_t *v, struct gpu *g)
{
	g->lost = decode_lost(v);
	for (const struct row *w = int_rows; w < int_rows + sizeof(int_rows) / sizeof(*w); w++)
		MERGE(FACT_AT(struct fact_int, g, w),
		      decode_int(d, json_object_get(v, w->key), w->call, w->none));
	for (const struct row *w = str_rows; w < str_rows + sizeof(str_rows) / sizeof(*w); w++)
		MERGE(FACT_AT(struct fact_str, g, w),
		      decode_str(d, json_object_get(v, w->key), w->call, w->none));
	limit(d, &g->performance_state, 15);
	limit(d, &g->compute_mode, 3);
	limit(d, &g->fabric_state, FABRIC_COMPLETED);
	if (fact_is_not(g->fabric_state, FABRIC_COMPLETED))
		g->fabric_status = fact_int_unknown("the registration has not completed");
}

static struct fact_str decode_remote(const struct decode *d, const json_t *v)
{
	struct fact_str f = decode_str(d, v, "nvmlDeviceGetNvLinkRemotePciInfo", FACT_UNKNOWN);
	char buf[PCI_ADDRESS_LEN];
	struct pci_address a;

	if (!fact_known(f))
		return f;
	/* NVML gives an NVSwitch that this machine does not show the address ffffffff:ff:ff.0. */
	if (pci_address_parse(f.value, &a) < 0)
		return fact_str_unknown("the other end has no PCI address on this machine");
	f.value = arena_strdup(d->r->m->arena, pci_address_format(a, buf));
	return f;
}

static void decode_link(const struct decode *d, const json_t *v, struct nvlink *ret)
{
	ret->active =
		decode_int(d, json_object_get(v, "state"), "nvmlDeviceGetNvLinkState", FACT_ABSENT);
	if (fact_known(ret->active))
		ret->active.value = ret->active.value > 0;
	ret->version = decode_int(d, json_object_get(v, "version"), "nvmlDeviceGetNvLinkVersion",
				  FACT_ABSENT);
	ret->remote_type = decode_int(d, json_object_get(v, "remote_type"),
				      "nvmlDeviceGetNvLinkRemoteDeviceType", FACT_UNKNOWN);
	ret->remote = decode_remote(d, json_object_get(v, "remote"));
}

/* How many links are up; absent when the GPU has none at all. */
static struct fact_int count_active(const struct gpu *g, struct fact_int link_count)
{
	int64_t up = 0, present = 0;

	for (unsigned i = 0; i < g->nvlink_n; i++) {
		const struct nvlink *l = &g->nvlinks[i];

		if (fact_unknown(l->active))
			return l->active;
		present += fact_known(l->active);
		up += fact_is(l->active, 1);
	}
	if (present)
		return fact_int(up, "nvmlDeviceGetNvLinkState");
	if (fact_is_not(link_count, 0))
		return fact_int_unknown("NVML counts NVLinks but reports the state of none");
	return fact_unknown(link_count) ? link_count : fact_int_absent(link_count.from);
}

/* `address`: of the GPU, below which a text may be cut off. */
static void decode_links(const struct decode *d, const json_t *v, struct gpu *g,
			 const char *address)
{
	const char *gap =
		read_gap(d->r, arena_printf(d->r->m->arena, DOCUMENT "/%s/link", address));
	const json_t *links = json_object_get(v, "links");
	struct fact_int count = decode_int(d, json_object_get(v, "link_count"),
					   "NVML field NVLINK_LINK_COUNT", FACT_ABSENT);
	struct fact_int on_switch =
		decode_int(d, json_object_get(v, "switch_links"), ON_SWITCH, FACT_ABSENT);
	size_t n = json_array_size(links);

	g->nvlink_n = n < GPU_NVLINKS ? (unsigned)n : GPU_NVLINKS;
	for (unsigned i = 0; i < g->nvlink_n; i++) {
		g->nvlinks[i].index = i;
		decode_link(d, json_array_get(links, i), &g->nvlinks[i]);
	}
	g->nvlink_active = n && gap ? fact_int_unknown(gap) : count_active(g, count);
	if (!fact_known(g->nvlink_active) || fact_or(on_switch, 0) < g->nvlink_active.value)
		return;
	for (unsigned i = 0; i < g->nvlink_n; i++)
		if (fact_is(g->nvlinks[i].active, 1) && !fact_known(g->nvlinks[i].remote_type))
			g->nvlinks[i].remote_type = fact_int(NVLINK_REMOTE_SWITCH, ON_SWITCH);
}

static void decode_device(const struct decode *d, const json_t *v, struct gpu *g)
{
	char address[PCI_ADDRESS_LEN];
	struct decode of;

	pci_address_format(g->pci->address, address);
	of = below(d, DOCUMENT "/%s", address);
	decode_gpu(&of, v, g);
	decode_links(&of, v, g, address);
}

/* ---- which entry is which GPU ---- */

static struct gpu *find_gpu(const struct machine *m, struct pci_address a)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		if (pci_address_compare(m->gpus[i].pci->address, a) == 0)
			return &m->gpus[i];
	return NULL;
}

/* The GPU of entry v; NULL, with a trouble, if it is not one of this machine. */
static struct gpu *match_gpu(const struct decode *d, const json_t *v, size_t index)
{
	struct arena *a = d->r->m->arena;
	const char *where = arena_printf(a, "NVML GPU %zu", index);
	const char *text = json_string_value(json_object_get(v, "address"));
	struct pci_address address;
	const char *says;
	struct gpu *g;
	long long code;

	if (refused(v, &code, &says)) {
		read_trouble(d->r, where, "NVML cannot open it: %s", says);
		return NULL;
	}
	if (!text || pci_address_parse(text, &address) < 0) {
		read_trouble(d->r, where, "has no PCI address in " DOCUMENT);
		return NULL;
	}
	g = find_gpu(d->r->m, address);
	if (!g)
		read_trouble(d->r, where, "is at %s, where /sys shows no NVIDIA GPU",
			     arena_strdup(a, text));
	else if (fact_known(g->nvml_index)) {
		read_trouble(d->r, where, "has the address %s, which GPU %lld already has",
			     g->pci->name, (long long)g->nvml_index.value);
		g = NULL;
	}
	return g;
}

static struct fact_int decode_lists_all(const struct decode *d)
{
	static const char path[] = "stated/all-gpus";
	const bool listed = json_is_array(json_object_get(d->doc, "gpus"));
	const char *gap;

	if (listed && (!source_stated(d->r->s) || fact_is(read_int(d->r, path), 1)))
		return fact_int(1, DOCUMENT);
	gap = read_gap(d->r, path);
	if (gap || !listed)
		return fact_int_unknown(gap ? gap : d->why);
	return fact_int_unknown("the text may not show all GPUs that nvidia-smi lists");
}

/* nvml_index doubles as the position in the document: NVML's indexes have no gaps. */
static void decode_gpus(struct decode *d)
{
	const json_t *gpus = json_object_get(d->doc, "gpus");
	struct machine *m = d->r->m;
	size_t n = json_array_size(gpus);

	m->driver.nvml_lists_all = decode_lists_all(d);
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(gpus, i);
		struct gpu *g = json_is_null(v) ? NULL : match_gpu(d, v, i);

		if (!g)
			continue;
		g->nvml_index = fact_int((int64_t)i, "nvmlDeviceGetHandleByIndex");
		decode_device(d, v, g);
	}
	for (size_t i = 0; i < m->gpu_n; i++) {
		struct gpu *g = &m->gpus[i];
		struct decode none = *d;

		if (fact_known(g->nvml_index))
			continue;
		if (fact_known(m->driver.nvml_lists_all))
			none.why = arena_printf(m->arena, "NVML does not list %s", g->pci->name);
		else
			none.why = FACT_WHY(m->driver.nvml_lists_all);
		g->nvml_index = fact_int_unknown(none.why);
		decode_device(&none, NULL, g);
	}
}

/* GPUs of a text that gives their models but not their numbers. */
static void decode_unnumbered(const struct decode *d)
{
	const json_t *gpus = json_object_get(d->doc, "unnumbered");

	for (size_t i = 0; i < json_array_size(gpus); i++) {
		const json_t *v = json_array_get(gpus, i);
		struct gpu *g = match_gpu(d, v, i);

		if (!g)
			continue;
		g->nvml_index = fact_int_unknown("no text gives its number");
		decode_device(d, v, g);
	}
}

/* ---- pairs ---- */

static const json_t *cell(const json_t *rows, struct fact_int i, struct fact_int j)
{
	if (!fact_known(i) || !fact_known(j))
		return NULL;
	return json_array_get(json_array_get(rows, (size_t)i.value), (size_t)j.value);
}

/* Answers that are the same in both directions are queried once. */
static const json_t *either_cell(const json_t *rows, struct fact_int i, struct fact_int j)
{
	const json_t *v = cell(rows, i, j);

	return v && !json_is_null(v) ? v : cell(rows, j, i);
}

/* A matrix of a part of the document has a pair in two cells, and both may be cut off. */
static struct decode below_cells(const struct decode *d, const char *part, const char *matrix,
				 const struct gpu *a, const struct gpu *b)
{
	const long long i = a->nvml_index.value, j = b->nvml_index.value;
	struct decode ret = *d;

	if (!source_stated(d->r->s) || !fact_known(a->nvml_index) || !fact_known(b->nvml_index))
		return ret;
	ret = below(&ret, DOCUMENT "/%s%s/%lld/%lld", part, matrix, j, i);
	return below(&ret, DOCUMENT "/%s%s/%lld/%lld", part, matrix, i, j);
}

static struct fact_int decode_level(const struct decode *d, const struct gpu *a,
				    const struct gpu *b)
{
	const json_t *rows = json_object_get(d->doc, "common_ancestor");
	const json_t *v = either_cell(rows, a->nvml_index, b->nvml_index);
	const struct decode cells = below_cells(d, "", "common_ancestor", a, b);
	struct fact_int f;

	f = decode_int(&cells, v, "nvmlDeviceGetTopologyCommonAncestor", FACT_UNKNOWN);
	limit(d, &f, NVML_LEVEL_SYSTEM);
	if (fact_known(f) && f.value % 10)
		f = fact_int_unknown("nvmlDeviceGetTopologyCommonAncestor: no known level");
	return f;
}

static bool is_on_switches(const struct gpu *g)
{
	if (fact_or(g->nvlink_active, 0) < 1)
		return false;
	for (unsigned i = 0; i < g->nvlink_n; i++)
		if (fact_is(g->nvlinks[i].active, 1) &&
		    !fact_is(g->nvlinks[i].remote_type, NVLINK_REMOTE_SWITCH))
			return false;
	return true;
}

/*
 * For GPUs on NVSwitches the driver allows both reads and writes, or neither (p2pGetCapsStatus in
 * p2p_caps.c: NVLink, or nothing), so only one of them is queried.
 */
static const char *const p2p_keys[P2P_CAP_N] = NVML_P2P_KEYS;

static const json_t *p2p_cell(const json_t *p2p, int cap, const struct gpu *a, const struct gpu *b)
{
	const json_t *rows = json_object_get(p2p, p2p_keys[cap]);
	const json_t *v = either_cell(rows, a->nvml_index, b->nvml_index);
	bool asked = v && !json_is_null(v);

	return !asked && cap == P2P_WRITE && is_on_switches(a) && is_on_switches(b)
		       ? p2p_cell(p2p, P2P_READ, a, b)
		       : v;
}

static void decode_p2p(const struct decode *d, const struct gpu *a, const struct gpu *b,
		       struct gpu_pair *ret)
{
	static const char *const calls[P2P_CAP_N] = {
		"nvmlDeviceGetP2PStatus READ",   "nvmlDeviceGetP2PStatus WRITE",
		"nvmlDeviceGetP2PStatus NVLINK", "nvmlDeviceGetP2PStatus ATOMICS",
		"nvmlDeviceGetP2PStatus PCI",
	};
	const json_t *p2p = json_object_get(d->doc, "p2p");

	for (int cap = 0; cap < P2P_CAP_N; cap++) {
		const struct decode cells = below_cells(d, "p2p/", p2p_keys[cap], a, b);

		ret->p2p[cap] =
			decode_int(&cells, p2p_cell(p2p, cap, a, b), calls[cap], FACT_UNKNOWN);
		limit(d, &ret->p2p[cap], P2P_STATUS_UNKNOWN);
	}
}

static void decode_pair(const struct decode *d, const struct gpu *a, const struct gpu *b,
			struct gpu_pair *ret)
{
	const struct decode cells = below_cells(d, "", "nvlinks", a, b);

	ret->common_ancestor = decode_level(d, a, b);
	ret->nvlinks = decode_int(&cells,
				  either_cell(json_object_get(d->doc, "nvlinks"), a->nvml_index,
					      b->nvml_index),
				  "nvidia-smi topo -m", FACT_UNKNOWN);
	decode_p2p(d, a, b, ret);
}

static void decode_pairs(const struct decode *d,
			 void (*decode)(const struct decode *d, const struct gpu *a,
					const struct gpu *b, struct gpu_pair *ret))
{
	const struct machine *m = d->r->m;

	for (size_t i = 0; i < m->gpu_n; i++)
		for (size_t j = 0; j < m->gpu_n; j++) {
			const struct gpu *a = &m->gpus[i], *b = &m->gpus[j];
			const struct gpu *missing = fact_known(a->nvml_index) ? b : a;
			struct decode pair = *d;

			if (i == j)
				continue;
			if (!fact_known(missing->nvml_index))
				pair.why = missing->nvml_index.from;
			decode(&pair, a, b, &m->pairs[i * m->gpu_n + j]);
		}
}

/* ---- the document ---- */

/*
 * A document that lists GPUs proves that NVML was loaded, even if its version is missing or was
 * refused.
 */
static struct fact_str decode_library(const struct decode *d)
{
	struct fact_str f = decode_str(d, json_object_get(d->doc, "library"),
				       "nvmlSystemGetNVMLVersion", FACT_UNKNOWN);

	if (!fact_known(f) && json_is_array(json_object_get(d->doc, "gpus")))
		return fact_str("of unknown version", DOCUMENT);
	return f;
}

static void decode_driver(const struct decode *d)
{
	struct nvidia_driver *driver = &d->r->m->driver;
	const struct decode release = below(d, DOCUMENT "/driver");
	const char *version;

	driver->nvml = decode_library(d);
	driver->cuda_version = decode_int(d, json_object_get(d->doc, "cuda_version"),
					  "nvmlSystemGetCudaDriverVersion", FACT_UNKNOWN);
	if (!fact_known(driver->module_version))
		MERGE(driver->module_version,
		      decode_str(&release, json_object_get(d->doc, "driver"),
				 "nvmlSystemGetDriverVersion", FACT_UNKNOWN));
	/* NVML has nothing to list without it. */
	if (fact_unknown(driver->loaded) &&
	    (json_array_size(json_object_get(d->doc, "gpus")) ||
	     json_array_size(json_object_get(d->doc, "unnumbered"))))
		driver->loaded = fact_int(1, driver->module_version.from);
	if (!fact_known(driver->nvml) || fact_known(driver->library_version))
		return;
	/* "13.580.159.04": CUDA's major version, then the driver's. */
	version = strchr(driver->nvml.value, '.');
	if (version && strchr(version + 1, '.'))
		driver->library_version = fact_str(version + 1, driver->nvml.from);
}

static const struct gpu_document document = {
	.name = DOCUMENT,
	.parts = MACHINE_NVML_ANY,
	.read = read_nvml,
	.whom = "NVML",
	.speaker = "NVML",
	.missing = "NVML: " DOCUMENT " is missing",
};

void nvml_decode(struct reader *r)
{
	struct decode d = {.r = r};

	d.doc = gpu_document(r, &document, &d.why);
	decode_driver(&d);
	decode_gpus(&d);
	decode_unnumbered(&d);
	decode_pairs(&d, decode_pair);
	json_decref(d.doc);
}

/* NVML lists both GPUs of some pair, and nothing shows yet whether one may read the other. */
static bool lacks_p2p(const struct machine *m)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		for (size_t j = 0; j < m->gpu_n; j++)
			if (i != j && fact_known(m->gpus[i].nvml_index) &&
			    fact_known(m->gpus[j].nvml_index) &&
			    fact_unknown(m->pairs[i * m->gpu_n + j].p2p[P2P_READ]))
				return true;
	return false;
}

static struct fact_str read_p2p(struct reader *r)
{
	return read_text(r, P2P_DOCUMENT);
}

void nvml_decode_missing_p2p(struct reader *r)
{
	static const struct gpu_document p2p_document = {
		.name = P2P_DOCUMENT,
		.parts = MACHINE_RM,
		.read = read_p2p,
		.whom = "NVML",
		.speaker = "NVML",
	};
	struct decode d = {.r = r};

	if (r->m->recorded || r->request->parts & MACHINE_P2P_ALL || !lacks_p2p(r->m))
		return;
	d.doc = gpu_document(r, &p2p_document, &d.why);
	if (d.doc)
		decode_pairs(&d, decode_p2p);
	json_decref(d.doc);
}
