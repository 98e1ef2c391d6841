/* SPDX-License-Identifier: Apache-2.0 */
/* What the paths of answers, and answers that are numbers, are called in messages. */
#include "base/alloc.h"
#include "base/array.h"
#include "base/text.h"
#include "ingest/claims_impl.h"
#include "ingest/part_kinds.h"
#include "machine/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Answers about a device are named by the last part of their path. */
static const struct answer_words {
	const char *key, *words;
	enum {
		LASTING,
		MOMENTARY, /* changes while a machine runs, so two outputs of one machine may differ */
		OF_ONE_MACHINE, /* changes only with the hardware: outputs that differ may be of two machines */
	} lasts;
	bool bytes; /* not a line of text */
} answers[] = {
	{"bar1_bytes", "the size of BAR1", LASTING, false},
	{"vram_bytes", "the memory", LASTING, false},
	{"uuid", "the UUID", OF_ONE_MACHINE, false},
	{"vbios", "the video BIOS", LASTING, false},
	{"mig_enabled", "MIG mode", LASTING, false},
	{"numa_node", "the NUMA node", LASTING, false},
	{"iommu_group", "the IOMMU group", LASTING, false},
	{"vendor", "the vendor ID", OF_ONE_MACHINE, false},
	{"device", "the device ID", OF_ONE_MACHINE, false},
	{"resource", "the BARs", LASTING, true},
	{"config", "the configuration space", LASTING, true},
	{"secondary_bus", "the bus below", LASTING, false},
	{"subordinate_bus", "the last bus below", LASTING, false},
	{"performance_state", "the performance state", MOMENTARY, false},
	{"pcie_gen", "the PCIe generation in use", MOMENTARY, false},
	{"pcie_width", "the PCIe width in use", MOMENTARY, false},
	{"current_link_speed", "the link speed in use", MOMENTARY, false},
	{"current_link_width", "the link width in use", MOMENTARY, false},
	{"model", "the model", OF_ONE_MACHINE, false},
	{"address", "the address", OF_ONE_MACHINE, false},
	{"class", "the class", OF_ONE_MACHINE, false},
};

static const struct answer_words *find_answer(const char *path)
{
	const char *key = strrchr(path, '/');

	for (size_t i = 0; key && i < ARRAY_LEN(answers); i++)
		if (strcmp(answers[i].key, key + 1) == 0)
			return &answers[i];
	return NULL;
}

bool claims_is_momentary(const char *path)
{
	const struct answer_words *w = find_answer(path);

	return w && w->lasts == MOMENTARY;
}

bool claims_is_of_one_machine(const char *path)
{
	const struct answer_words *w = find_answer(path);

	return (w && w->lasts == OF_ONE_MACHINE) || text_starts_with(path, "pair/level/") ||
	       text_starts_with(path, "identity/") || text_starts_with(path, "cpu/");
}

/* "bar1_bytes": the name of an answer that is not listed, in words. */
static const char *key_words(struct arena *a, const char *path)
{
	const struct answer_words *w = find_answer(path);
	const char *slash = strrchr(path, '/');
	char *words;

	if (w)
		return w->words;
	words = arena_printf(a, "the %s", slash ? slash + 1 : path);
	for (char *s = words; *s; s++)
		if (*s == '_' || *s == '-')
			*s = ' ';
	return words;
}

/* "0000:41:00.0", "GPU3"; outputs that do not name their GPUs list them in an order. */
static const char *device_words(struct arena *a, const char *device)
{
	const size_t n = strcspn(device, "/");

	if (*device == '#')
		return arena_printf(a, "GPU%.*s", (int)n - 1, device + 1);
	if (*device == '~')
		return "a GPU that is listed without its address";
	return arena_strndup(a, device, n);
}

static const char *pair_words(struct arena *a, const char *rest)
{
	char key[24];
	unsigned from, to;

	if (sscanf(rest, "%23[^/]/%u/%u", key, &from, &to) != 3)
		return rest;
	if (strcmp(key, "level") == 0)
		return arena_printf(a, "the distance between GPU%u and GPU%u", from, to);
	if (strcmp(key, "nvlinks") == 0)
		return arena_printf(a, "NVLink between GPU%u and GPU%u", from, to);
	return arena_printf(a, "the driver's answer on P2P (%s) from GPU%u to GPU%u",
			    text_starts_with(key, "p2p-") ? key + 4 : key, from, to);
}

static const char *nic_words(struct arena *a, const char *rest)
{
	const int n = (int)strcspn(rest, "/");
	unsigned gpu;

	if (sscanf(rest + n, "/level/%u", &gpu) == 1)
		return arena_printf(a, "the distance between %.*s and GPU%u", n, rest, gpu);
	return arena_printf(a, "the name of %.*s", n, rest);
}

static const char *gpu_words(struct arena *a, const char *rest)
{
	unsigned link;
	const char *path = strchr(rest, '/');

	if (!path)
		return strcmp(rest, "driver") == 0 ? "the driver's version" : "the CUDA version";
	if (sscanf(path, "/link/%2u/state", &link) == 1)
		return arena_printf(a, "NVLink %u of %s", link, device_words(a, rest));
	return arena_printf(a, "%s of %s", key_words(a, path), device_words(a, rest));
}

static const char *function_words(struct arena *a, const char *rest)
{
	return arena_printf(a, "%s of %s", key_words(a, rest), device_words(a, rest));
}

static const char *variable_words(struct arena *a, const char *rest)
{
	(void)a;
	return rest;
}

static const char *cpu_words(struct arena *a, const char *rest)
{
	return arena_printf(a, "the CPU's %s", rest);
}

static const struct {
	const char *begin;
	const char *words;
	bool shortened; /* some tools print only its beginning */
	/* Instead: of what follows. */
	const char *(*of)(struct arena *a, const char *rest);
} paths[] = {
	{"proc/version", "the kernel's version", true, NULL},
	{"proc/cmdline", "the kernel's command line", false, NULL},
	{"proc/modules", "the loaded modules", false, NULL},
	{"proc/driver/nvidia/version", "the driver's version", true, NULL},
	{"proc/driver/nvidia/params", "the driver's parameters", false, NULL},
	{"identity/root", "the root file system", false, NULL},
	{"identity/board", "the board", false, NULL},
	{"identity/matrix", "the number of GPUs in a matrix", false, NULL},
	{"identity/models", "the models of the GPUs", false, NULL},
	{"identity/addresses", "the addresses of the GPUs", false, NULL},
	{"environment/", NULL, false, variable_words},
	{"cpu/", NULL, false, cpu_words},
	{"pair/", NULL, false, pair_words},
	{"nic/", NULL, false, nic_words},
	{"gpu/", NULL, false, gpu_words},
	{"sys/bus/pci/devices/", NULL, false, function_words},
};

bool claims_is_shortened(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (paths[i].shortened && strcmp(path, paths[i].begin) == 0)
			return true;
	return false;
}

const char *claims_path_words(struct arena *a, const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (text_starts_with(path, paths[i].begin))
			return paths[i].words ? paths[i].words
					      : paths[i].of(a, path + strlen(paths[i].begin));
	return path;
}

/* ---- values ---- */

/* Numbers as the tool prints them. */
const char *claims_value_words(struct arena *a, const char *path, const char *value)
{
	const struct answer_words *w = find_answer(path);
	int64_t n;

	if (w && w->bytes)
		return "";
	if (strchr(value, '/') && strstr(path, "/iommu_group"))
		return arena_strdup(a, strrchr(value, '/') + 1);
	if (text_to_i64(value, &n) < 0)
		return value;
	if (strstr(path, "/level/"))
		return smi_level_word(n);
	if (text_starts_with(path, "pair/p2p-"))
		return p2p_status_code(n);
	if (text_starts_with(path, "pair/nvlinks/"))
		return n ? arena_printf(a, "NV%" PRId64, n) : "none";
	if (strstr(path, "_bytes"))
		return arena_printf(a, "%" PRId64 " MiB", n >> 20);
	return strstr(path, "/link/") ? n ? "up" : "down" : value;
}
