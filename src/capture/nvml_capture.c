/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks NVML of a live machine and writes down what it answers, as nvml.json:
 *
 *	{"library": "13.580.159.04", "driver": "580.159.04", "cuda_version": 13000,
 *	 "gpus": [{"index": 0, "address": "0000:41:00.0", "model": "NVIDIA H200", ...,
 *	           "link_count": 18, "switch_links": 18,
 *	           "links": [{"state": 1, "version": 6}, ...]}],
 *	 "common_ancestor": [[null, 50], [null, null]],
 *	 "p2p": {"read": [[null, 0], [null, null]], ...}}
 *
 * A value that NVML refuses is {"refused": 3, "says": "Not Supported"}; one that was not asked for
 * is missing, or null in a matrix, whose rows and columns are positions in "gpus". What is the same
 * both ways is asked once, above the diagonal. When NVML was not opened the document is
 * {"unavailable": "a sentence"}.
 */
#include "capture/capture_impl.h"
#include "machine/nvml_api.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/confine.h"
#include "base/dl.h"
#include "base/err.h"
#include "base/parallel.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "machine/gpu_impl.h"
#include "machine/machine.h"
#include "machine/read.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>

#define LIBRARY     "libnvidia-ml.so.1"
#define MAX_DEVICES 4096

/* NVML's calls wait for the driver, up to 7 ms each, and wait side by side just as well. */
#define THREADS 16

struct device {
	struct nvml_device *handle; /* NULL: that index was refused */
	json_t *facts;
	bool unnamed_links; /* it has links that NVML names no other end of */
	bool all_on_switch; /* it has links, and all that are up end in switches */
};

struct capture {
	struct source *s; /* the machine's files */
	struct nvml_api nvml;
	unsigned parts;
	struct device *devices;
	unsigned device_n;
};

/* The result code of a call; that of a function that this NVML does not have is its own. */
#define ASK(c, member, ...)                                                                        \
	((c)->nvml.member ? (c)->nvml.member(__VA_ARGS__) : NVML_FUNCTION_NOT_FOUND)

/* ---- may it be opened? ---- */

static bool exists(struct source *s, const char *path)
{
	AUTO_FREE char *target = NULL;
	int e = source_read_link(s, &target, "%s", path);

	return e == 0 || e == -EINVAL; /* there, but no link */
}

static bool has_modprobe(struct source *s)
{
	return exists(s, "usr/bin/nvidia-modprobe") || exists(s, "sbin/nvidia-modprobe") ||
	       exists(s, "usr/sbin/nvidia-modprobe");
}

/* The device node that a GPU of /proc/driver/nvidia/gpus needs and lacks. */
static bool lacks_node(struct source *s, const char *gpu, char *node, size_t size)
{
	AUTO_FREE char *text = NULL;
	char minor[16], excluded[16];
	size_t n;

	if (source_read(s, &text, &n, "proc/driver/nvidia/gpus/%s/information", gpu) < 0 ||
	    !nvidia_driver_value(text, "Device Minor", minor, sizeof(minor)))
		return false;
	if (nvidia_driver_value(text, "GPU Excluded", excluded, sizeof(excluded)) &&
	    strcmp(excluded, "Yes") == 0)
		return false;
	snprintf(node, size, "dev/nvidia%s", minor);
	return !exists(s, node);
}

static char *first_missing_node(struct source *s)
{
	char **gpus = NULL;
	char *missing = NULL;
	char node[64];
	size_t n = 0;

	if (!exists(s, "dev/nvidiactl"))
		return xstrdup("dev/nvidiactl");
	/* A container that shows some of the GPUs has their nodes only, and no nvidia-modprobe. */
	if (!has_modprobe(s) || source_list(s, &gpus, &n, "proc/driver/nvidia/gpus") < 0)
		return NULL;
	for (size_t i = 0; i < n && !missing; i++)
		if (lacks_node(s, gpus[i], node, sizeof(node)))
			missing = xstrdup(node);
	source_free_names(gpus, n);
	return missing;
}

/*
 * Opening NVML loads the module and makes device nodes (through nvidia-modprobe) where they are
 * missing. Looking must change nothing, so both have to be there. NULL, or why it stays closed.
 */
static char *reason_to_stay_out(struct source *s)
{
	AUTO_FREE char *version = NULL, *node = NULL;
	size_t size;
	int e = source_read(s, &version, &size, "proc/driver/nvidia/version");

	if (e == -ENOENT)
		return xstrdup("the nvidia module is not loaded");
	if (e < 0)
		return xprintf("/proc/driver/nvidia/version cannot be read: %s", strerror(-e));
	node = first_missing_node(s);
	if (node)
		return xprintf("/%s is missing, and opening NVML would try to make it", node);
	return NULL;
}

/* ---- opening it ---- */

/* Newest names first, then the older ones where those are missing. */
static int load(const char *library, struct nvml_api *ret)
{
	/* clang-format off */
#define NEWEST(member, symbol, older, params) {symbol, offsetof(struct nvml_api, member), false},
#define OLDER(member, symbol, older, params) {older, offsetof(struct nvml_api, member), false},
#define FALL_BACK(member, symbol, older, params) if (!ret->member) ret->member = old.member;
	/* clang-format on */
	static const struct dl_symbol newest[] = {
		NVML_SYMBOLS(NEWEST){"nvmlErrorString", offsetof(struct nvml_api, error_string),
				     false},
	};
	static const struct dl_symbol older[] = {NVML_SYMBOLS(OLDER)};
	struct nvml_api old = {0};
	int r = dl_load(library, newest, sizeof(newest) / sizeof(*newest), ret);

	if (r < 0)
		return r;
	r = dl_load(library, older, sizeof(older) / sizeof(*older), &old);
	if (r < 0)
		return r;
	NVML_SYMBOLS(FALL_BACK)
	if (!ret->init || !ret->count || !ret->by_index || !ret->pci)
		return err_set(ENOSYS, "%s is too old: it lacks what every driver since 2013 has",
			       library);
	return 0;
}

static const char *result_name(const struct capture *c, int result)
{
	const char *says = c->nvml.error_string ? c->nvml.error_string(result) : NULL;

	return says ? says : "an unnamed result";
}

static json_t *unavailable(const char *why)
{
	return json_pack("{s:s}", "unavailable", why);
}

/* ---- answers ---- */

static json_t *refusal(const struct capture *c, int result)
{
	return json_pack("{s:i, s:s}", "refused", result, "says", result_name(c, result));
}

static json_t *number(const struct capture *c, int result, long long value)
{
	return result == NVML_SUCCESS ? json_integer(value) : refusal(c, result);
}

static void put_number(const struct capture *c, json_t *to, const char *key, int result,
		       long long value)
{
	json_object_set_new(to, key, number(c, result, value));
}

static void put_text(const struct capture *c, json_t *to, const char *key, int result,
		     const char *value)
{
	json_object_set_new(to, key,
			    result == NVML_SUCCESS ? json_string(value) : refusal(c, result));
}

/* ---- one GPU ---- */

static void put_address(const struct capture *c, json_t *to, const char *key, int result,
			const struct nvml_pci *pci)
{
	AUTO_FREE char *address = xprintf("%04x:%02x:%02x.0", pci->domain, pci->bus, pci->device);

	put_text(c, to, key, result, address);
}

static void put_total(const struct capture *c, json_t *to, const char *key, int result,
		      const struct nvml_memory *memory)
{
	if (result == NVML_SUCCESS && memory->total > LLONG_MAX) /* NVML_VALUE_NOT_AVAILABLE */
		result = NVML_NOT_SUPPORTED;
	put_number(c, to, key, result, (long long)memory->total);
}

#define MAX_PROCESSES 256

typedef int process_call(struct nvml_device *d, unsigned *n, struct nvml_process *ret);

/* Appends one kind of processes to *n that are listed already, each pid once. */
static int list_processes(process_call *call, struct nvml_device *d, struct nvml_process *list,
			  unsigned *n)
{
	struct nvml_process got[MAX_PROCESSES] = {0};
	unsigned got_n = MAX_PROCESSES;
	int result = call ? call(d, &got_n, got) : NVML_FUNCTION_NOT_FOUND;

	if (result != NVML_SUCCESS)
		return result;
	for (unsigned i = 0; i < got_n && i < MAX_PROCESSES; i++) {
		unsigned k = 0;

		while (k < *n && list[k].pid != got[i].pid)
			k++;
		if (k == *n)
			list[(*n)++] = got[i];
	}
	return NVML_SUCCESS;
}

static void put_processes(const struct capture *c, struct nvml_device *d, json_t *gpu)
{
	struct nvml_process list[2 * MAX_PROCESSES];
	unsigned n = 0;
	int result = list_processes(c->nvml.compute_processes, d, list, &n);
	int graphics = list_processes(c->nvml.graphics_processes, d, list, &n);

	/* Some cards have no list of graphics processes. The other list is still right. */
	if (result == NVML_SUCCESS && graphics != NVML_NOT_SUPPORTED)
		result = graphics;
	put_number(c, gpu, "process_n", result, n);
}

static void put_fabric(const struct capture *c, struct nvml_device *d, json_t *gpu)
{
	struct nvml_fabric_v2 f = {.version = NVML_VERSIONED(struct nvml_fabric_v2, 2)};
	struct nvml_fabric old = {0};
	int result = ASK(c, fabric_v2, d, &f), old_result;

	if (result != NVML_FUNCTION_NOT_FOUND) {
		put_number(c, gpu, "fabric_state", result, f.state);
		put_number(c, gpu, "fabric_status", result, f.status);
		put_number(c, gpu, "fabric_health", result, f.health_mask);
		return;
	}
	old_result = ASK(c, fabric, d, &old);
	put_number(c, gpu, "fabric_state", old_result, old.state);
	put_number(c, gpu, "fabric_status", old_result, old.status);
	put_number(c, gpu, "fabric_health", result, 0);
}

/* An idle GPU lowers its link's speed by itself, so that its state matters only then. */
static bool link_is_slow(const struct capture *c, const json_t *gpu)
{
	const char *address = json_string_value(json_object_get(gpu, "address"));
	AUTO_FREE char *now = NULL, *limit = NULL;
	size_t n;

	return address &&
	       source_read(c->s, &now, &n, "sys/bus/pci/devices/%s/current_link_speed", address) ==
		       0 &&
	       source_read(c->s, &limit, &n, "sys/bus/pci/devices/%s/max_link_speed", address) ==
		       0 &&
	       strcmp(now, limit) != 0;
}

static void put_state(const struct capture *c, struct nvml_device *d, json_t *gpu)
{
	struct nvml_memory memory = {0}, bar1 = {0};
	unsigned major = 0, minor = 0;
	int result;

	/* clang-format off */
#define TEXT(Y, member, symbol, none) { \
		char text[128] = ""; \
		result = ASK(c, member, d, text, sizeof(text) - 1); \
		put_text(c, gpu, #member, result, text); \
	}
#define NUMBER(Y, member, symbol, none) { \
		unsigned value = 0; \
		result = ASK(c, member, d, &value); \
		put_number(c, gpu, #member, result, value); \
	}
	/* clang-format on */
	NVML_TEXTS(TEXT, )
	NVML_NUMBERS(NUMBER, )
	if (c->parts & MACHINE_NVML_DETAILS) {
		NVML_DETAILS(NUMBER, )
	}
	if (c->parts & MACHINE_NVML_DETAILS || link_is_slow(c, gpu)) {
		NVML_LINK_DETAILS(NUMBER, )
	}
	result = ASK(c, compute_capability, d, &major, &minor);
	put_number(c, gpu, "compute_capability", result, 10LL * major + minor);
	result = ASK(c, mig_enabled, d, &major, &minor);
	put_number(c, gpu, "mig_enabled", result, major);
	result = ASK(c, gsp_firmware, d, &major, &minor);
	put_number(c, gpu, "gsp_firmware", result, major);
	result = ASK(c, memory, d, &memory);
	put_total(c, gpu, "vram_bytes", result, &memory);
	result = ASK(c, bar1, d, &bar1);
	put_total(c, gpu, "bar1_bytes", result, &bar1);
	put_processes(c, d, gpu);
	put_fabric(c, d, gpu);
}

/* ---- NVLink ---- */

static long long field_value(const struct nvml_field *f)
{
	switch ((enum nvml_value_type)f->type) {
	case NVML_VALUE_DOUBLE:
		return (long long)f->value.d;
	case NVML_VALUE_UINT:
		return f->value.u;
	case NVML_VALUE_ULONG:
		return (long long)f->value.ul;
	case NVML_VALUE_ULONGLONG:
	case NVML_VALUE_LONGLONG:
		return f->value.ll;
	case NVML_VALUE_INT:
		return f->value.i;
	case NVML_VALUE_USHORT:
		return f->value.us;
	}
	return f->value.ll;
}

/* Many values in one call; a call that is refused as a whole refuses each. */
static void ask_fields(const struct capture *c, struct nvml_device *d, struct nvml_field *f, int n)
{
	int result = n ? ASK(c, fields, d, n, f) : NVML_SUCCESS;

	for (int i = 0; result != NVML_SUCCESS && i < n; i++)
		f[i].result = result;
}

struct link_answer {
	int result, version_result;
	long long state, version;
};

/*
 * Through one call for all links and for how many end in switches, since NVML asks the driver once
 * a call; drivers that do not know these fields are asked link by link. Returns the number of
 * links.
 */
static unsigned ask_links(const struct capture *c, struct nvml_device *d, unsigned n,
			  struct link_answer ret[GPU_NVLINKS], struct nvml_field *ret_on_switch)
{
	bool versions = c->parts & MACHINE_NVML_STATE;
	struct nvml_field f[1 + 2 * GPU_NVLINKS] = {{.id = NVML_FIELD_SWITCH_LINK_COUNT}};
	const struct nvml_field *state = f + 1, *version = f + 1 + n;
	unsigned k = n ? n : GPU_NVLINKS; /* 0: unknown, the first refusal is the end */

	for (unsigned i = 0; i < n; i++) {
		f[1 + i] = (struct nvml_field){.id = NVML_FIELD_LINK_STATE, .scope = i};
		f[1 + n + i] = (struct nvml_field){.id = NVML_FIELD_LINK_VERSION, .scope = i};
	}
	ask_fields(c, d, f, (int)(1 + (versions ? 2 * n : n)));
	*ret_on_switch = f[0];
	for (unsigned i = 0; i < k; i++) {
		struct link_answer *a = &ret[i];
		unsigned v = 0;

		*a = (struct link_answer){state[i].result, version[i].result,
					  field_value(&state[i]), field_value(&version[i])};
		if (!n || a->result != NVML_SUCCESS) {
			a->result = ASK(c, link_state, d, i, &v);
			a->state = v;
		}
		if (!n && a->result != NVML_SUCCESS)
			return i;
		if (versions && (!n || a->version_result != NVML_SUCCESS)) {
			a->version_result = ASK(c, link_version, d, i, &v);
			a->version = v;
		}
	}
	return k;
}

/* True if the answers name the other end: as a switch, or by its PCI address. */
static bool put_remote(const struct capture *c, struct nvml_device *d, unsigned link, json_t *to)
{
	struct nvml_pci pci = {0};
	unsigned type = NVLINK_REMOTE_UNKNOWN;
	int result = ASK(c, link_remote_type, d, link, &type);
	bool named = result == NVML_SUCCESS && type == NVLINK_REMOTE_SWITCH;

	put_number(c, to, "remote_type", result, type);
	result = ASK(c, link_remote_pci, d, link, &pci);
	put_address(c, to, "remote", result, &pci);
	/* In virtual machines the address is ffffffff:ff:ff.0. */
	return named || (result == NVML_SUCCESS && pci.domain != UINT_MAX);
}

static void put_links(const struct capture *c, struct device *device)
{
	struct nvml_device *d = device->handle;
	json_t *gpu = device->facts;
	struct nvml_field n = {.id = NVML_FIELD_LINK_COUNT}, switches = {0};
	struct link_answer answers[GPU_NVLINKS];
	json_t *links = json_array();
	unsigned link_n = 0;
	long long up = 0, on_switch = 0, count;

	ask_fields(c, d, &n, 1);
	count = n.result == NVML_SUCCESS ? field_value(&n) : 0;
	put_number(c, gpu, "link_count", n.result, count);
	if (count > GPU_NVLINKS)
		count = GPU_NVLINKS;
	if (count > 0 || n.result != NVML_SUCCESS) {
		link_n = ask_links(c, d, (unsigned)count, answers, &switches);
		put_number(c, gpu, "switch_links", switches.result, field_value(&switches));
		on_switch = switches.result == NVML_SUCCESS ? field_value(&switches) : 0;
	}
	for (unsigned i = 0; i < link_n; i++)
		up += answers[i].result == NVML_SUCCESS && answers[i].state > 0;
	/* Where every link ends in a switch, what a link's other end is says nothing more. */
	device->all_on_switch = up && on_switch >= up;
	for (unsigned i = 0; i < link_n; i++) {
		const struct link_answer *a = &answers[i];
		json_t *link = json_object();

		put_number(c, link, "state", a->result, a->state);
		if (c->parts & MACHINE_NVML_STATE)
			put_number(c, link, "version", a->version_result, a->version);
		if (a->result == NVML_SUCCESS && a->state > 0 && on_switch < up)
			device->unnamed_links |= !put_remote(c, d, i, link);
		json_array_append_new(links, link);
	}
	json_object_set_new(gpu, "links", links);
}

static void ask_gpu(void *context, size_t index)
{
	struct capture *c = context;
	struct device *device = &c->devices[index];
	struct nvml_pci pci = {0};
	int result = c->nvml.by_index((unsigned)index, &device->handle);

	device->facts = json_pack("{s:i}", "index", (int)index);
	if (result != NVML_SUCCESS || !device->handle) {
		device->handle = NULL;
		json_object_update_missing_new(device->facts, refusal(c, result));
		return;
	}
	result = c->nvml.pci(device->handle, &pci);
	put_address(c, device->facts, "address", result, &pci);
	if (c->parts & MACHINE_NVML_STATE)
		put_state(c, device->handle, device->facts);
	if (c->parts & MACHINE_NVML_LINKS)
		put_links(c, device);
}

/* ---- pairs ---- */

/* Whether the pair of devices i and j is asked about. */
typedef bool pair_filter(const struct capture *c, unsigned i, unsigned j);

/* What is asked of a pair: a result code and a value. */
typedef int pair_call(const struct capture *c, unsigned i, unsigned j, int what, int *ret);

struct pair_answer {
	unsigned i, j;
	int result, value;
};

struct pair_question {
	const struct capture *c;
	pair_call *call;
	int what;
	struct pair_answer *answers;
};

static void ask_pair(void *context, size_t index)
{
	struct pair_question *q = context;
	struct pair_answer *a = &q->answers[index];

	a->result = q->call(q->c, a->i, a->j, q->what, &a->value);
}

static size_t list_pairs(const struct capture *c, pair_filter *wanted, struct pair_answer *ret)
{
	size_t n = 0;

	for (unsigned i = 0; i < c->device_n; i++)
		for (unsigned j = i + 1; j < c->device_n; j++)
			if (c->devices[i].handle && c->devices[j].handle && wanted(c, i, j))
				ret[n++] = (struct pair_answer){.i = i, .j = j};
	return n;
}

static json_t *null_matrix(unsigned n)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < n; i++) {
		json_t *row = json_array();

		for (unsigned j = 0; j < n; j++)
			json_array_append_new(row, json_null());
		json_array_append_new(rows, row);
	}
	return rows;
}

/* Rows of first GPUs; null where nothing is asked. */
static json_t *ask_pairs(const struct capture *c, pair_filter *wanted, pair_call *call, int what)
{
	AUTO_FREE struct pair_answer *answers =
		xcalloc((size_t)c->device_n * c->device_n, sizeof(*answers));
	struct pair_question q = {c, call, what, answers};
	size_t n = list_pairs(c, wanted, answers);
	json_t *rows = null_matrix(c->device_n);

	parallel_for(n, THREADS, ask_pair, &q);
	for (size_t k = 0; k < n; k++)
		json_array_set_new(json_array_get(rows, answers[k].i), answers[k].j,
				   number(c, answers[k].result, answers[k].value));
	return rows;
}

static int common_ancestor(const struct capture *c, unsigned i, unsigned j, int what, int *ret)
{
	(void)what;
	return ASK(c, common_ancestor, c->devices[i].handle, c->devices[j].handle, ret);
}

/*
 * Of the unordered pair: the driver answers for the set of the two
 * (NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2 takes a mask of GPUs), so the other direction has the
 * same answer, and each costs 2 ms.
 */
static int p2p_status(const struct capture *c, unsigned i, unsigned j, int cap, int *ret)
{
	return ASK(c, p2p_status, c->devices[i].handle, c->devices[j].handle, cap, ret);
}

static bool every_pair(const struct capture *c, unsigned i, unsigned j)
{
	(void)c, (void)i, (void)j;
	return true;
}

/*
 * GPUs that reach each other through NVSwitch do without the common ancestor, whose first answer
 * costs 14 ms: their class is NV<n> whatever lies between them on PCIe. There writing is as
 * reading is, and atomics are there.
 */
static bool not_joined_by_switch(const struct capture *c, unsigned i, unsigned j)
{
	return !(c->devices[i].all_on_switch && c->devices[j].all_on_switch);
}

/* Where links have no named other ends, only the driver tells whether they join the two. */
static bool both_have_unnamed_links(const struct capture *c, unsigned i, unsigned j)
{
	return c->devices[i].unnamed_links && c->devices[j].unnamed_links;
}

/* Of which pairs a capability is asked, NULL: of none. */
static pair_filter *p2p_question(const struct capture *c, int cap)
{
	static pair_filter *const deciding[P2P_CAP_N] = {
		[P2P_READ] = every_pair,
		[P2P_WRITE] = not_joined_by_switch,
		[P2P_NVLINK] = both_have_unnamed_links,
		[P2P_ATOMICS] = not_joined_by_switch,
		[P2P_PCI] = not_joined_by_switch,
	};
	bool unnamed = false;

	if (c->parts & MACHINE_P2P(cap))
		return every_pair;
	if (c->parts & MACHINE_RM) /* one answer of RM's holds all capabilities of a pair */
		return NULL;
	if (c->parts & MACHINE_NVML_P2P)
		return deciding[cap];
	for (unsigned i = 0; i < c->device_n; i++)
		unnamed |= c->devices[i].unnamed_links;
	return cap == P2P_NVLINK && unnamed ? both_have_unnamed_links : NULL;
}

static void put_p2p(const struct capture *c, json_t *doc)
{
	static const char *const caps[P2P_CAP_N] = NVML_P2P_KEYS;
	json_t *p2p = json_object();

	for (int cap = 0; cap < P2P_CAP_N; cap++) {
		pair_filter *wanted = p2p_question(c, cap);

		if (wanted)
			json_object_set_new(p2p, caps[cap], ask_pairs(c, wanted, p2p_status, cap));
	}
	if (json_object_size(p2p))
		json_object_set_new(doc, "p2p", p2p);
	else
		json_decref(p2p);
}

/* ---- the document ---- */

static void put_versions(const struct capture *c, json_t *doc)
{
	char text[128] = "";
	int result = ASK(c, library_version, text, sizeof(text) - 1), cuda = 0;

	put_text(c, doc, "library", result, text);
	result = ASK(c, driver_version, text, sizeof(text) - 1);
	put_text(c, doc, "driver", result, text);
	if (!(c->parts & MACHINE_NVML_STATE))
		return;
	result = ASK(c, cuda_version, &cuda); /* maps libcuda to ask it */
	put_number(c, doc, "cuda_version", result, cuda);
}

static json_t *ask_all(struct capture *c)
{
	json_t *doc = json_object(), *gpus = json_array();

	put_versions(c, doc);
	json_object_seed(0); /* before threads make objects */
	parallel_for(c->device_n, THREADS, ask_gpu, c);
	for (unsigned i = 0; i < c->device_n; i++)
		json_array_append_new(gpus, c->devices[i].facts);
	json_object_set_new(doc, "gpus", gpus);
	if (c->parts & MACHINE_NVML_LINKS)
		json_object_set_new(doc, "common_ancestor",
				    ask_pairs(c, not_joined_by_switch, common_ancestor, 0));
	put_p2p(c, doc);
	return doc;
}

/* No nvmlShutdown: it takes 7 to 19 ms more than the kernel needs when the process ends. */
static json_t *ask_library(struct capture *c)
{
	json_t *doc;
	int result = c->nvml.init();

	if (result != NVML_SUCCESS) {
		AUTO_FREE char *why = xprintf("nvmlInit: %s", result_name(c, result));

		return unavailable(why);
	}
	result = c->nvml.count(&c->device_n);
	if (result != NVML_SUCCESS) {
		AUTO_FREE char *why = xprintf("nvmlDeviceGetCount: %s", result_name(c, result));

		doc = unavailable(why);
	} else {
		if (c->device_n > MAX_DEVICES)
			c->device_n = MAX_DEVICES;
		c->devices = xcalloc(c->device_n, sizeof(*c->devices));
		doc = ask_all(c);
		free(c->devices);
	}
	return doc;
}

struct session {
	const char *library;
	struct capture capture;
	json_t *doc;
};

static void open_and_ask(void *context)
{
	struct session *s = context;

	s->doc = load(s->library, &s->capture.nvml) < 0 ? unavailable(err_msg())
							: ask_library(&s->capture);
}

/*
 * As root the library would remake the links in /dev/char and could start nvidia-modprobe. It is
 * opened in a thread that can do neither.
 */
static json_t *capture(struct source *s, const char *library, unsigned parts)
{
	AUTO_FREE char *why = reason_to_stay_out(s);
	struct session session = {.library = library, .capture = {.s = s, .parts = parts}};

	if (why)
		return unavailable(why);
	confine_call(open_and_ask, &session);
	return session.doc;
}

/* ---- text ---- */

static bool holds_containers(json_t *v)
{
	const char *key;
	json_t *child;
	size_t i;

	json_object_foreach (v, key, child)
		if (json_is_object(child) || json_is_array(child))
			return true;
	json_array_foreach (v, i, child)
		if (json_is_object(child) || json_is_array(child))
			return true;
	return false;
}

#define LINE_WIDTH 100

/* One line for what fits one, so that people can read and compare recordings. */
static void print(json_t *v, unsigned depth, struct strbuf *out)
{
	AUTO_FREE char *flat = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
	const char *key, *separator = "";
	json_t *child;
	size_t i;

	if (!flat)
		return;
	if (strlen(flat) <= LINE_WIDTH || (json_is_array(v) && !holds_containers(v))) {
		strbuf_puts(out, flat);
		return;
	}
	strbuf_putc(out, json_is_object(v) ? '{' : '[');
	json_object_foreach (v, key, child) {
		strbuf_printf(out, "%s\n%*s\"%s\": ", separator, (int)depth + 1, "", key);
		print(child, depth + 1, out);
		separator = ",";
	}
	json_array_foreach (v, i, child) {
		strbuf_printf(out, "%s\n%*s", separator, (int)depth + 1, "");
		print(child, depth + 1, out);
		separator = ",";
	}
	strbuf_printf(out, "\n%*s%c", (int)depth, "", json_is_object(v) ? '}' : ']');
}

void nvml_capture_from(struct source *s, const char *library, unsigned parts, char **ret,
		       size_t *ret_size)
{
	struct strbuf out = {0};
	json_t *doc = capture(s, library, parts);

	if (!doc) /* a name that is not UTF-8 */
		doc = unavailable("NVML's answers cannot be written as JSON");
	print(doc, 0, &out);
	strbuf_putc(&out, '\n');
	json_decref(doc);
	*ret_size = out.len;
	*ret = out.text;
}

static int capture_live(unsigned parts, char **ret, size_t *ret_size)
{
	struct source *s;
	int r = source_open_root("/", NULL, NULL, &s);

	if (r < 0)
		return r;
	nvml_capture_from(s, LIBRARY, parts, ret, ret_size);
	source_free(s);
	return 0;
}

int nvml_capture(void *request, char **ret, size_t *ret_size)
{
	const struct machine_request *q = request;

	return capture_live(q->parts, ret, ret_size);
}

int nvml_capture_p2p(void *request, char **ret, size_t *ret_size)
{
	(void)request;
	return capture_live(MACHINE_P2P_ALL, ret, ret_size);
}
