/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/machine.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "machine/pci_impl.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static const struct {
	unsigned parts; /* any of these asks for it */
	void (*read)(struct reader *r);
} readers[] = {
	{MACHINE_PCI | MACHINE_CONFIG_SPACE, pci_read_all},
	{MACHINE_NUMA, numa_read},
	{MACHINE_HOST, host_read_all},
	{MACHINE_BOOT, boot_read},
	{MACHINE_HOST, modules_read},
	{MACHINE_GUESTS, guest_claims_read},
	{MACHINE_RDMA, rdma_read},
	{MACHINE_LOG, kernel_log_read},
	{MACHINE_HOST, nccl_read},
	{MACHINE_HOST, applied_read},
	{MACHINE_GPUS | MACHINE_NVML_ANY | MACHINE_RM, gpu_read}, /* late: it waits for NVML */
	{MACHINE_RDMA, rdma_read_levels},
	{MACHINE_OBSERVED, observed_read},
};

static const char *virtual_file(struct reader *r, const char *name)
{
	AUTO_FREE char *text = NULL;
	size_t size;

	if (source_read(r->s, &text, &size, "%s", name) < 0)
		return "";
	return arena_strdup(r->m->arena, text_trim(text));
}

/* What the recording says of itself; a live source has no such files. */
static void read_origin(struct reader *r)
{
	struct machine *m = r->m;

	m->source_name = arena_strdup(m->arena, source_name(r->s));
	m->recorded = strcmp(m->source_name, "/") != 0;
	m->note = m->recorded ? virtual_file(r, "note.txt") : "";
	m->recorded_by = m->recorded ? virtual_file(r, "recorded-by.txt") : "";
}

/* Privilege is judged by what it brought: a GPU's or bridge's config space beyond 64 bytes. */
static void judge_privilege(struct machine *m)
{
	m->root = fact_int_unknown("no configuration space was read");
	for (size_t i = 0; i < m->pci_n; i++) {
		const struct pci_function *f = &m->pci[i];

		if (f->config_size > 64)
			m->root = fact_int(1, "configuration space beyond 64 bytes");
		else if (f->config_size == 64 && !fact_known(m->root))
			m->root = fact_int(0, "configuration space ends at 64 bytes");
	}
}

/* ---- NVML and RM in the background ---- */

struct driver_answer {
	char *text;
	size_t size;
	int error;
	bool wanted;
};

struct driver_wait {
	pthread_t thread;
	bool joined;
	struct source *s;
	struct driver_answer nvml, rm;
};

static void ask(struct source *s, const char *name, struct driver_answer *a)
{
	if (a->wanted)
		a->error = source_read(s, &a->text, &a->size, "%s", name);
}

/* RM last: it lists GPUs that are started, and NVML starts them and keeps them open. */
static void *ask_driver(void *argument)
{
	struct driver_wait *w = argument;

	ask(w->s, "nvml.json", &w->nvml);
	ask(w->s, "rm.json", &w->rm);
	return NULL;
}

static void start_driver(struct reader *r, struct driver_wait *w)
{
	*w = (struct driver_wait){.s = r->s};
	w->nvml.wanted = r->request->parts & MACHINE_NVML_ANY;
	w->rm.wanted = r->request->parts & MACHINE_RM;
	if ((w->nvml.wanted || w->rm.wanted) &&
	    pthread_create(&w->thread, NULL, ask_driver, w) == 0)
		r->wait = w;
}

static void join_driver(struct driver_wait *w)
{
	if (!w->joined)
		pthread_join(w->thread, NULL);
	w->joined = true;
}

static struct fact_str take(struct reader *r, struct driver_answer *a, const char *name)
{
	AUTO_FREE char *text = NULL;
	const char *why;

	join_driver(r->wait);
	text = TAKE_PTR(a->text);
	if (text)
		return fact_str(arena_strndup(r->m->arena, text, a->size), name);
	why = read_why(r, a->error ? a->error : -ENODATA, name);
	return why ? fact_str_unknown(why) : fact_str_absent(name);
}

struct fact_str read_nvml(struct reader *r)
{
	return r->wait && r->wait->nvml.wanted ? take(r, &r->wait->nvml, "nvml.json")
					       : read_text(r, "nvml.json");
}

struct fact_str read_rm(struct reader *r)
{
	return r->wait && r->wait->rm.wanted ? take(r, &r->wait->rm, "rm.json")
					     : read_text(r, "rm.json");
}

/* What nobody took goes. */
static void end_driver(struct reader *r)
{
	if (!r->wait)
		return;
	join_driver(r->wait);
	free(r->wait->nvml.text);
	free(r->wait->rm.text);
}

/* Its caller refuses it (ingest.c); until then nothing is read that grows with the square. */
static bool is_too_large(const struct machine *m)
{
	return m->gpu_n > MACHINE_MOST_GPUS || m->pci_n > MACHINE_MOST_FUNCTIONS;
}

struct machine *machine_read(struct source *s, const struct machine_request *request)
{
	struct machine *m = xcalloc(1, sizeof(*m));
	struct reader r = {.m = m, .s = s, .request = request};
	struct driver_wait wait;

	m->arena = arena_new();
	start_driver(&r, &wait);
	read_origin(&r);
	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++)
		if (request->parts & readers[i].parts && !is_too_large(m))
			readers[i].read(&r);
	end_driver(&r);
	pci_name_without_address(m);
	judge_privilege(m);
	return m;
}

const struct gpu *machine_gpu_at(const struct machine *m, const char *pci)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		if (strcmp(m->gpus[i].pci->name, pci) == 0)
			return &m->gpus[i];
	return NULL;
}

void machine_free(struct machine *m)
{
	if (!m)
		return;
	arena_free(m->arena);
	free(m);
}

const struct gpu_pair *machine_pair(const struct machine *m, size_t initiator, size_t target)
{
	return &m->pairs[initiator * m->gpu_n + target];
}

const struct module *machine_module(const struct machine *m, const char *name)
{
	for (size_t i = 0; i < m->module_n; i++)
		if (strcmp(m->modules[i].name, name) == 0)
			return &m->modules[i];
	return NULL;
}

static const struct setting *find_setting(const struct setting *settings, size_t n,
					  const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (settings[i].in_force && strcmp(settings[i].name, name) == 0)
			return &settings[i];
	return NULL;
}

const struct setting *machine_setting(const struct machine *m, const char *name)
{
	const struct setting *s = find_setting(m->nccl.settings, m->nccl.setting_n, name);

	return s ? s : find_setting(m->settings, m->setting_n, name);
}

const char *p2p_status_code(int64_t status)
{
	static const char *const codes[P2P_STATUS_N] = {
		[P2P_OK] = "OK",
		[P2P_CHIPSET_NOT_SUPPORTED] = "CNS",
		[P2P_GPU_NOT_SUPPORTED] = "GNS",
		[P2P_TOPOLOGY_NOT_SUPPORTED] = "TNS",
		[P2P_DISABLED_BY_REGKEY] = "DR",
		[P2P_NOT_SUPPORTED] = "NS",
		[P2P_STATUS_UNKNOWN] = "U",
	};

	return status >= 0 && status < P2P_STATUS_N ? codes[status] : "U";
}

const char *machine_place(const struct machine *m)
{
	return m->recorded && m->source_name ? m->source_name : "this machine";
}
