/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks NVIDIA's resource manager of a live machine how GPUs reach each other, without CUDA and
 * NVML, and writes down what it answers, as rm.json:
 *
 *	{"gpus": ["0000:41:00.0", "0000:61:00.0"],
 *	 "pairs": [{"gpus": [0, 1], "caps": 8263, "status": [0, 0, 5, 5, 5, 5, 0, 5, 0],
 *	            "peer_ids": [0, 0]}]}
 *
 * "gpus" are those that the driver has started: asking starts none. A pair stands for both
 * directions, since RM answers for the set of the two. What RM refuses is
 * {"gpus": [0, 1], "refused": 31}; when it was not asked at all the document is
 * {"unavailable": "a sentence"}.
 */
#include "capture/capture_impl.h"
#include "machine/rm_api.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/parallel.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "machine/pci.h"
#include "machine/read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

/* Calls wait for the driver, as NVML's do. */
#define THREADS 16

struct rm_gpu {
	uint32_t id;
	char address[PCI_ADDRESS_LEN];
};

struct rm_pair {
	unsigned a, b; /* places in rm.gpus */
	int result;    /* enum rm_status, or a negative errno */
	uint32_t caps, peer_ids[2];
	uint8_t status[RM_INDEX_N];
};

struct rm {
	const struct rm_device *device;
	uint32_t client;
	size_t caps_size; /* of the parameters of RM_GET_P2P_CAPS_V2 in this release */
	struct rm_gpu gpus[RM_MAX_GPUS];
	unsigned gpu_n;
	struct rm_pair *pairs;
	size_t pair_n;
};

static json_t *unavailable(const char *why)
{
	return json_pack("{s:s}", "unavailable", why);
}

/* ---- calls ---- */

static int call(const struct rm *rm, unsigned long request, void *argument)
{
	int r;

	do
		r = rm->device->call(rm->device->context, request, argument);
	while (r == -EINTR);
	return r;
}

/* RM_OK, another status of RM's, or a negative errno. */
static int control(const struct rm *rm, enum rm_command command, void *parameters, size_t size)
{
	struct rm_control c = {
		.client = rm->client,
		.object = rm->client,
		.command = command,
		.parameters = (uintptr_t)parameters,
		.parameters_size = (uint32_t)size,
	};
	int r = call(rm, RM_IOCTL_CONTROL, &c);

	if (r < 0)
		return r;
	return c.status <= INT32_MAX ? (int)c.status : -EPROTO;
}

/* A client, which is what commands to the whole driver are for. */
static int open_client(struct rm *rm)
{
	struct rm_alloc a = {.class = RM_CLASS_CLIENT};
	int r = call(rm, RM_IOCTL_ALLOC, &a);

	if (r < 0)
		return r;
	if (a.status != RM_OK)
		return a.status <= INT32_MAX ? (int)a.status : -EPROTO;
	rm->client = a.object;
	return 0;
}

static char *failure(const char *what, int result)
{
	return result < 0 ? xprintf("%s: %s", what, strerror(-result))
			  : xprintf("%s: status 0x%x", what, (unsigned)result);
}

/* ---- GPUs ---- */

static int add_gpu(struct rm *rm, uint32_t id)
{
	struct rm_pci_info info = {.gpu = id};
	struct rm_gpu *g = &rm->gpus[rm->gpu_n];
	int r = control(rm, RM_GET_PCI_INFO, &info, sizeof(info));

	if (r != RM_OK)
		return r;
	if (info.bus > 0xff || info.slot > 0x1f)
		return -EPROTO;
	g->id = id;
	pci_address_format((struct pci_address){.domain = info.domain,
						.bus = (uint8_t)info.bus,
						.device = (uint8_t)info.slot},
			   g->address);
	rm->gpu_n++;
	return RM_OK;
}

/* NULL, or why they are unknown. */
static char *find_gpus(struct rm *rm)
{
	struct rm_attached_ids ids;
	int r;

	memset(&ids, 0xff, sizeof(ids));
	r = control(rm, RM_GET_ATTACHED_IDS, &ids, sizeof(ids));
	if (r != RM_OK)
		return failure("GPU_GET_ATTACHED_IDS", r);
	for (size_t i = 0; i < RM_MAX_GPUS && ids.gpus[i] != RM_NO_GPU; i++) {
		r = add_gpu(rm, ids.gpus[i]);
		if (r != RM_OK)
			return failure("GPU_GET_PCI_INFO", r);
	}
	return NULL;
}

/* ---- pairs ---- */

static void ask_pair(const struct rm *rm, struct rm_pair *p)
{
	struct rm_p2p_caps caps = {.gpus = {rm->gpus[p->a].id, rm->gpus[p->b].id}, .gpu_n = 2};

	p->result = control(rm, RM_GET_P2P_CAPS_V2, &caps, rm->caps_size);
	if (p->result != RM_OK)
		return;
	p->caps = caps.caps;
	memcpy(p->status, caps.status, sizeof(p->status));
	p->peer_ids[0] = caps.peer_ids[1]; /* a's number for b, of a 2 x 2 matrix */
	p->peer_ids[1] = caps.peer_ids[2];
}

static bool is_wrong_size(int status)
{
	return status == RM_INVALID_PARAM_STRUCT || status == RM_INVALID_ARGUMENT;
}

/* RM takes the size of its own release only: this pair tells which that is. Where it seems to take
 * neither, what it says to the newest one counts. */
static void ask_first(struct rm *rm)
{
	static const size_t sizes[] = {sizeof(struct rm_p2p_caps), RM_P2P_CAPS_SIZE_535,
				       sizeof(struct rm_p2p_caps)};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		rm->caps_size = sizes[i];
		ask_pair(rm, &rm->pairs[0]);
		if (!is_wrong_size(rm->pairs[0].result))
			return;
	}
}

static void ask_other(void *context, size_t i)
{
	const struct rm *rm = context;

	ask_pair(rm, &rm->pairs[i + 1]);
}

static void ask_pairs(struct rm *rm)
{
	size_t n = 0;

	rm->pair_n = rm->gpu_n * (rm->gpu_n - 1) / 2;
	rm->pairs = xcalloc(rm->pair_n, sizeof(*rm->pairs));
	for (unsigned a = 0; a < rm->gpu_n; a++)
		for (unsigned b = a + 1; b < rm->gpu_n; b++)
			rm->pairs[n++] = (struct rm_pair){.a = a, .b = b};
	ask_first(rm);
	parallel_for(rm->pair_n - 1, THREADS, ask_other, rm);
}

/* ---- the document ---- */

static json_t *pair_json(const struct rm_pair *p)
{
	json_t *o = json_pack("{s:[i, i]}", "gpus", (int)p->a, (int)p->b);
	json_t *status = json_array();

	if (p->result != RM_OK) {
		json_object_set_new(o, "refused", json_integer(p->result));
		json_decref(status);
		return o;
	}
	for (size_t i = 0; i < RM_INDEX_N; i++)
		json_array_append_new(status, json_integer(p->status[i]));
	json_object_set_new(o, "caps", json_integer(p->caps));
	json_object_set_new(o, "status", status);
	json_object_set_new(o, "peer_ids",
			    json_pack("[I, I]", (json_int_t)p->peer_ids[0],
				      (json_int_t)p->peer_ids[1]));
	return o;
}

static json_t *document(const struct rm *rm)
{
	json_t *gpus = json_array(), *pairs = json_array();

	for (unsigned i = 0; i < rm->gpu_n; i++)
		json_array_append_new(gpus, json_string(rm->gpus[i].address));
	for (size_t i = 0; i < rm->pair_n; i++)
		json_array_append_new(pairs, pair_json(&rm->pairs[i]));
	return json_pack("{s:o, s:o}", "gpus", gpus, "pairs", pairs);
}

static json_t *ask(const struct rm_device *device)
{
	struct rm rm = {.device = device};
	AUTO_FREE char *why = NULL;
	json_t *doc;
	int r = open_client(&rm);

	if (r != RM_OK) {
		why = failure("no client of the resource manager", r);
		return unavailable(why);
	}
	why = find_gpus(&rm);
	if (why)
		return unavailable(why);
	if (rm.gpu_n > 1)
		ask_pairs(&rm);
	doc = document(&rm);
	free(rm.pairs);
	return doc;
}

/*
 * Opening the node of a module that is not loaded would make the kernel load it, and looking must
 * change nothing.
 */
static json_t *capture(struct source *s, const struct rm_device *device)
{
	AUTO_FREE char *text = NULL, *why = NULL;
	json_t *doc;
	size_t size;
	int r = source_read(s, &text, &size, "proc/driver/nvidia/version");

	if (r == -ENOENT)
		return unavailable("the nvidia module is not loaded");
	if (r == 0)
		r = device->open(device->context);
	if (r < 0) {
		why = failure(text ? "/" RM_DEVICE : "/proc/driver/nvidia/version", r);
		return unavailable(why);
	}
	doc = ask(device);
	device->close(device->context);
	return doc;
}

/* A line a pair, so that people can read and compare recordings. */
static void print(const json_t *doc, struct strbuf *out)
{
	const json_t *pairs = json_object_get(doc, "pairs"), *pair;
	const char *before = "\n  ";
	size_t i;

	if (!json_array_size(pairs)) {
		AUTO_FREE char *all = json_dumps(doc, 0);

		strbuf_printf(out, "%s\n", all ? all : "{}");
		return;
	}
	AUTO_FREE char *gpus = json_dumps(json_object_get(doc, "gpus"), 0);

	strbuf_printf(out, "{\"gpus\": %s,\n \"pairs\": [", gpus ? gpus : "[]");
	json_array_foreach (pairs, i, pair) {
		AUTO_FREE char *line = json_dumps(pair, 0);

		strbuf_printf(out, "%s%s", before, line ? line : "{}");
		before = ",\n  ";
	}
	strbuf_puts(out, "\n ]}\n");
}

void rm_capture_from(struct source *s, const struct rm_device *device, char **ret, size_t *ret_size)
{
	json_t *doc = capture(s, device);
	struct strbuf out = {0};

	print(doc, &out);
	json_decref(doc);
	*ret_size = out.len;
	*ret = out.text;
}

/* ---- the live device ---- */

static int open_live(void *context)
{
	int *fd = context;

	*fd = open("/" RM_DEVICE, O_RDWR | O_CLOEXEC | O_NOCTTY);
	return *fd < 0 ? -errno : 0;
}

static int call_live(void *context, unsigned long request, void *argument)
{
	const int *fd = context;

	return ioctl(*fd, request, argument) < 0 ? -errno : 0;
}

static void close_live(void *context)
{
	const int *fd = context;

	close(*fd);
}

int rm_capture(void *request, char **ret, size_t *ret_size)
{
	int fd = -1;
	const struct rm_device device = {open_live, call_live, close_live, &fd};
	struct source *s;
	int r = source_open_root("/", NULL, NULL, &s);

	(void)request;
	if (r < 0)
		return r;
	rm_capture_from(s, &device, ret, ret_size);
	source_free(s);
	return 0;
}
