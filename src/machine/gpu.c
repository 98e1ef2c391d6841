/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs: NVIDIA's display functions of the PCI tree, what the driver's files and NVML say of them.
 */
#include "machine/gpu_impl.h"

#include "base/alloc.h"
#include "base/text.h"

#include <string.h>

#define GPUS "proc/driver/nvidia/gpus"

/* m->pci is sorted by address, so the GPUs are sorted too. */
static void find_gpus(struct machine *m)
{
	for (size_t i = 0; i < m->pci_n; i++) {
		struct gpu *g;

		if (!pci_is_gpu(&m->pci[i]))
			continue;
		g = ARENA_PUSH(m->arena, m->gpus, m->gpu_n);
		g->index = m->gpu_n - 1;
		g->pci = &m->pci[i];
	}
	if (m->gpu_n && m->gpu_n <= MACHINE_MOST_GPUS)
		m->pairs = arena_alloc(m->arena, m->gpu_n * m->gpu_n, sizeof(*m->pairs));
}

/* ---- /proc/driver/nvidia/gpus/ADDRESS/information ---- */

/* A GPU that has not been opened yet shows question marks. */
static struct fact_str information_str(struct reader *r, struct fact_str text, const char *key)
{
	char buf[256];

	if (!fact_known(text))
		return fact_str_unknown(text.from);
	if (!nvidia_driver_value(text.value, key, buf, sizeof(buf)))
		return fact_str_unknown(arena_printf(r->m->arena, "no '%s' in %s", key, text.from));
	if (strchr(buf, '?'))
		return fact_str_unknown(
			arena_printf(r->m->arena, "not read from the card yet: %s", text.from));
	return fact_str(arena_strdup(r->m->arena, buf), text.from);
}

static struct fact_int information_int(struct reader *r, struct fact_str text, const char *key)
{
	struct fact_str s = information_str(r, text, key);
	int64_t value;

	if (!fact_known(s))
		return fact_int_unknown(s.from);
	if (text_to_i64(s.value, &value) < 0 || value < 0)
		return fact_int_unknown(
			arena_printf(r->m->arena, "'%s' in %s is not a number", key, s.from));
	return fact_int(value, s.from);
}

/* "N/A" when the GPU runs without GSP firmware, else its version. */
static struct fact_int information_gsp(struct reader *r, struct fact_str text)
{
	struct fact_str s = information_str(r, text, "GPU Firmware");

	if (!fact_known(s))
		return fact_int_unknown(s.from);
	return fact_int(strcmp(s.value, "N/A") != 0, s.from);
}

/* The file exists only where GPU memory is a NUMA node of the host. */
static struct fact_int numa_id(struct reader *r, const struct gpu *g)
{
	struct fact_str text = read_text(r, GPUS "/%s/numa_status", g->pci->name);

	if (fact_absent(text))
		return fact_int_absent(text.from);
	return information_int(r, text, "Node");
}

static void read_information(struct reader *r, struct gpu *g)
{
	struct fact_str text = read_text(r, GPUS "/%s/information", g->pci->name);

	if (fact_absent(text))
		text = fact_str_unknown(arena_printf(r->m->arena,
						     "the nvidia module does not drive it: no %s",
						     text.from));
	g->model = information_str(r, text, "Model");
	g->uuid = information_str(r, text, "GPU UUID");
	g->vbios = information_str(r, text, "Video BIOS");
	g->excluded = information_str(r, text, "GPU Excluded");
	if (!fact_known(g->model) && source_stated(r->s))
		g->model = read_str(r, "sys/bus/pci/devices/%s/stated/model", g->pci->name);
	g->minor = information_int(r, text, "Device Minor");
	g->gsp_firmware = information_gsp(r, text);
	if (fact_known(text))
		g->numa_id = numa_id(r, g);
}

/* Without the driver the folder is empty, so the GPUs are not read one by one. */
static void read_all_information(struct reader *r)
{
	struct machine *m = r->m;
	char **names;
	size_t n;

	m->driver.gpus_in_proc = read_list(r, &names, &n, GPUS);
	source_free_names(names, n);
	for (size_t i = 0; i < m->gpu_n; i++) {
		struct gpu *g = &m->gpus[i];

		if (!fact_is(m->driver.loaded, 0)) {
			read_information(r, g);
			continue;
		}
		g->model = g->uuid = g->vbios = g->excluded =
			fact_str_unknown("the nvidia module is not loaded");
		g->minor = g->gsp_firmware = fact_int_unknown("the nvidia module is not loaded");
	}
}

/* ---- device nodes ---- */

static struct fact_int count_nodes(struct reader *r)
{
	const struct machine *m = r->m;
	int64_t count = 0;

	for (size_t i = 0; i < m->gpu_n; i++) {
		struct fact_int minor = m->gpus[i].minor, node;

		if (!fact_known(minor))
			return fact_int_unknown(minor.from);
		node = read_exists(r, "dev/nvidia%lld", (long long)minor.value);
		if (fact_unknown(node))
			return node;
		count += node.value;
	}
	return fact_int(count, "/dev");
}

/* ---- BAR1 ---- */

/* As the PCI tree shows it, until NVML's value replaces it. */
static struct fact_int bar1_from_pci(const struct gpu *g)
{
	const char *from = g->pci->bars_from;

	if (!g->pci->bars_known)
		return fact_int_unknown(from);
	if (!pci_gpu_bar1(g->pci)->size)
		return fact_int_absent(from);
	return fact_int((int64_t)pci_gpu_bar1(g->pci)->size, from);
}

void gpu_read(struct reader *r)
{
	struct machine *m = r->m;

	find_gpus(m);
	if (m->gpu_n > MACHINE_MOST_GPUS)
		return; /* refused by the caller; there are no pairs */
	nvidia_driver_read(r);
	read_all_information(r);
	m->driver.device_nodes = count_nodes(r);
	for (size_t i = 0; i < m->gpu_n; i++)
		m->gpus[i].bar1_bytes = bar1_from_pci(&m->gpus[i]);
	nvml_decode(r);
	rm_decode(r);
	nvml_decode_missing_p2p(r);
	bar1_p2p_read(r);
	cuda_order(r);
}
