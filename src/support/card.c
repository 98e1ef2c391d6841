/* SPDX-License-Identifier: Apache-2.0 */
#include "support/card.h"

#include "base/array.h"

#include <string.h>

#define NOT_LISTED "a PCI device id that is not in the list of chips"

/* ---- chips ---- */

/*
 * NVLink rates as NCCL's topology model has them (src/graph/topo.h); 18 links of an H200 are
 * measured at 361 to 396 GB/s against 371 here. Blackwell is driven by the open modules alone, and
 * what is older than Turing by the proprietary ones (NVIDIA driver README, "Open Linux Kernel
 * Modules"). NVML reports the fabric from Hopper on (nvml.h, nvmlDeviceGetGpuFabricInfo); MIG as
 * its User Guide lists the GPUs. The addresses: g_gpu_arch_nvoc.c gpuarchGetSystemPhysAddrWidth, 47
 * bits to Ada and 52 from Hopper on; a system on a chip has fewer, gpuarchGetDmaAddrWidth.
 */
/* clang-format off */
static const struct chip chips[] = {
	{ 60, "Pascal (GP100)",             CHIP_PROPRIETARY, false, false, false, 47, 18.0},
	{ 61, "Pascal (GP102 to GP108)",    CHIP_PROPRIETARY, false, false, false, 47,  0.0},
	{ 70, "Volta (GV100)",              CHIP_PROPRIETARY, true,  false, false, 47, 20.0},
	{ 75, "Turing (TU102 to TU117)",    CHIP_EITHER,      false, false, false, 47, 20.0},
	{ 80, "Ampere (GA100)",             CHIP_EITHER,      true,  false, true,  47, 20.0},
	{ 86, "Ampere (GA102 to GA107)",    CHIP_EITHER,      false, false, false, 47, 12.0},
	{ 89, "Ada (AD102 to AD107)",       CHIP_EITHER,      false, false, false, 47,  0.0},
	{ 90, "Hopper (GH100)",             CHIP_EITHER,      true,  true,  true,  52, 20.6},
	{100, "Blackwell (GB100, GB102)",   CHIP_OPEN,        true,  true,  true,  52, 40.1},
	{103, "Blackwell (GB110)",          CHIP_OPEN,        true,  true,  true,  52, 40.1},
	{120, "Blackwell (GB202 to GB207)", CHIP_OPEN,        false, false, true,  52,  0.0},
	{121, "Blackwell (GB20B)",          CHIP_OPEN,        false, false, false, 40,  0.0},
};
/* clang-format on */

#define CHIPS (sizeof(chips) / sizeof(chips[0]))

const struct chip *chip_table(size_t *ret_n)
{
	*ret_n = CHIPS;
	return chips;
}

/* NULL: a chip that is not in the table. */
static const struct chip *chip_find(int64_t compute_capability)
{
	for (size_t i = 0; i < CHIPS; i++)
		if (chips[i].compute_capability == compute_capability)
			return &chips[i];
	return NULL;
}

/* ---- by device id ---- */

/* How a block of device ids is divided. */
enum id_block {
	DATA_CENTRE_IDS,
	GRAPHICS_IDS, /* blocks of 0x80 ids, of which the first 0x30 are GeForce */
	MIXED_IDS,    /* in no order */
};

/* As pci.ids lists them. With NVLink: some cards, GA102's RTX 3090 and not its RTX 3080. */
/* clang-format off */
static const struct ids {
	uint16_t first, last;
	uint8_t compute_capability;
	bool nvlink;
	enum id_block block;
} ids[] = {
	{0x1b00, 0x1d7f,  61, false, MIXED_IDS},       /* GP102 to GP108 */
	{0x1d80, 0x1dff,  70, true,  DATA_CENTRE_IDS}, /* GV100 */
	{0x1e00, 0x1eff,  75, true,  MIXED_IDS},       /* TU102, TU104 */
	{0x1f00, 0x1fff,  75, false, MIXED_IDS},       /* TU106, TU117 */
	{0x2080, 0x20ff,  80, true,  DATA_CENTRE_IDS}, /* GA100 */
	{0x2180, 0x21ff,  75, false, MIXED_IDS},       /* TU116, TU117 */
	{0x2200, 0x227f,  86, true,  GRAPHICS_IDS},    /* GA102 */
	{0x2300, 0x237f,  90, true,  DATA_CENTRE_IDS}, /* GH100 */
	{0x2400, 0x25ff,  86, false, GRAPHICS_IDS},    /* GA103 to GA107 */
	{0x2680, 0x28ff,  89, false, GRAPHICS_IDS},    /* AD10x */
	{0x2900, 0x29ff, 100, true,  DATA_CENTRE_IDS}, /* GB100, GB102 */
	{0x2b80, 0x2fff, 120, false, GRAPHICS_IDS},    /* GB20x */
	{0x3180, 0x31ff, 103, true,  DATA_CENTRE_IDS}, /* GB110 */
};
/* clang-format on */

/* CMP cards lie among the others (pci.ids). */
static const uint16_t mining_ids[] = {0x1e09, 0x1f0b, 0x2082, 0x20c2, 0x2189, 0x220d, 0x248a};

static const struct ids *find_ids(const struct gpu *g)
{
	int64_t id = fact_or(g->pci->device, -1);

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (id >= ids[i].first && id <= ids[i].last)
			return &ids[i];
	return NULL;
}

static bool is_mining_id(int64_t id)
{
	for (size_t i = 0; i < sizeof(mining_ids) / sizeof(mining_ids[0]); i++)
		if (id == mining_ids[i])
			return true;
	return false;
}

static struct fact_int class_by_id(const struct gpu *g)
{
	static const char from[] = "PCI device id";
	const struct ids *i = find_ids(g);
	int64_t id = fact_or(g->pci->device, -1);

	if (!i)
		return fact_int_unknown(NOT_LISTED);
	if (is_mining_id(id))
		return fact_int(CARD_MINING, from);
	if (i->block == MIXED_IDS)
		return fact_int_unknown("PCI device ids of this chip do not tell its class");
	if (i->block == DATA_CENTRE_IDS)
		return fact_int(CARD_DATA_CENTRE, from);
	return fact_int((id & 0x7f) < 0x30 ? CARD_GEFORCE : CARD_PROFESSIONAL, from);
}

/* ---- by name ---- */

/* The first word behind "NVIDIA " of data-centre cards that are not called Tesla. */
static const char *const data_centre_words[] = {
	"A2",   "A10",  "A10G", "A16",   "A30",   "A40",   "A100", "A800", "B100",
	"B200", "B300", "GB10", "GB200", "GB300", "GH200", "H20",  "H100", "H200",
	"H800", "L2",   "L4",   "L20",   "L40",   "L40S",  "T4",   "T4G",
};

static bool is_data_centre_name(const char *model)
{
	const char *word = strncmp(model, "NVIDIA ", 7) == 0 ? model + 7 : model;
	size_t n = strcspn(word, " -");

	if (strstr(model, "Tesla") || strstr(model, "Server Edition"))
		return true;
	if (strstr(model, " Active")) /* "A800 40GB Active", a card for workstations */
		return false;
	for (size_t i = 0; i < sizeof(data_centre_words) / sizeof(data_centre_words[0]); i++)
		if (strlen(data_centre_words[i]) == n && !strncmp(word, data_centre_words[i], n))
			return true;
	return false;
}

static enum card_class class_by_name(const char *model)
{
	if (strstr(model, "GeForce"))
		return CARD_GEFORCE;
	if (strstr(model, "CMP "))
		return CARD_MINING;
	return is_data_centre_name(model) ? CARD_DATA_CENTRE : CARD_PROFESSIONAL;
}

/*
 * The chip by what a card is sold as, for texts that give no device id. Longer words first: "RTX A" is a
 * name of Ampere's, "Ada" comes behind others, "Blackwell" follows "RTX PRO".
 */
static const struct {
	const char *words;
	uint8_t compute_capability;
} names[] = {
	{"Blackwell", 120}, {"RTX PRO ", 120}, {"Ada Generation", 89},
	{"RTX 50", 120},    {"RTX 40", 89},    {"RTX 30", 86},
	{"RTX 20", 75},     {"GTX 16", 75},    {"GTX 10", 61},
	{"Quadro RTX", 75}, {"TITAN RTX", 75}, {"TITAN V", 70},
	{"RTX A", 86},      {"GB300", 103},    {"B300", 103},
	{"GB200", 100},     {"B200", 100},     {"B100", 100},
	{"GH200", 90},      {"H100", 90},      {"H200", 90},
	{"H800", 90},       {"H20", 90},       {"A100", 80},
	{"A800", 80},       {"A30", 80},       {"A40", 86},
	{"A10", 86},        {"A16", 86},       {"L40", 89},
	{"L20", 89},        {"L4", 89},        {"V100", 70},
	{"T4", 75},         {"P100", 60},      {"P40", 61},
	{"GB10", 121},
};

/* The words begin a word of the model: "A10" is not in "RTX 4000A10". */
static bool begins_word(const char *model, const char *words)
{
	const char *at = strstr(model, words);

	return at && (at == model || at[-1] == ' ');
}

static struct fact_int capability_by_name(const struct gpu *g)
{
	for (size_t i = 0; fact_known(g->model) && i < ARRAY_LEN(names); i++)
		if (begins_word(g->model.value, names[i].words))
			return fact_int(names[i].compute_capability, g->model.from);
	return fact_int_unknown(NOT_LISTED);
}

/* ---- of a card ---- */

struct fact_int card_compute_capability(const struct gpu *g)
{
	const struct ids *i = find_ids(g);

	if (fact_known(g->compute_capability))
		return g->compute_capability;
	if (fact_known(g->pci->device))
		return i ? fact_int(i->compute_capability, "PCI device id")
			 : fact_int_unknown(NOT_LISTED);
	return capability_by_name(g);
}

const struct chip *card_chip(const struct gpu *g)
{
	return chip_find(fact_or(card_compute_capability(g), -1));
}

struct fact_int card_class(const struct gpu *g)
{
	return fact_known(g->model) ? fact_int(class_by_name(g->model.value), g->model.from)
				    : class_by_id(g);
}

struct fact_int card_is_geforce(const struct gpu *g)
{
	struct fact_int class = card_class(g);

	return fact_known(class) ? fact_int(class.value == CARD_GEFORCE, class.from) : class;
}

const char *card_class_word(enum card_class c)
{
	static const char *const words[CARD_CLASS_N] = {"GeForce", "professional", "data centre",
							"CMP"};

	return words[c];
}

int card_dma_bits(const struct gpu *g)
{
	const struct chip *c = card_chip(g);

	return c ? c->dma_bits : 0;
}

double card_nvlink_gbps(const struct gpu *g)
{
	const struct chip *c = card_chip(g);

	return c ? c->nvlink_gbps : 0;
}

/* No CMP card has it. */
bool chip_has_nvlink(const struct chip *c, enum card_class class)
{
	return c->nvlink_gbps > 0 && class != CARD_MINING;
}

/*
 * Fabric Manager User Guide, 1.6 (GPU baseboard topologies), and the data sheets. The first that fits counts: cards that
 * bridges join use fewer.
 */
static const struct {
	const char *model;
	unsigned links;
} boards[] = {
	{"NVL", 0},      {"PCIe", 0},  {"V100-SXM3", 6},       {"A100-SXM", 12},
	{"A800-SXM", 8}, {"H800", 8},  {"H100 80GB HBM3", 18}, {"H200", 18},
	{"B200", 18},    {"B300", 18},
};

unsigned card_board_links(const struct gpu *g)
{
	const char *model = fact_str_or(g->model, "");

	for (size_t i = 0; i < ARRAY_LEN(boards); i++)
		if (strstr(model, boards[i].model))
			return boards[i].links;
	return 0;
}

bool card_needs_nvlsm(const struct gpu *g)
{
	const struct chip *c = card_chip(g);

	return c && c->nvswitch && c->compute_capability >= 100;
}

bool card_lacks_nvlink(const struct gpu *g)
{
	const struct ids *i = find_ids(g);
	const struct chip *c = chip_find(fact_or(g->compute_capability, -1));
	int64_t class = fact_or(card_class(g), CARD_CLASS_N);

	return (i && !i->nvlink) || (c && !chip_has_nvlink(c, (enum card_class) class));
}

/* Chips of one generation have one compute capability, but for Turing's and Hopper's siblings. */
bool card_same_generation(const struct gpu *a, const struct gpu *b)
{
	struct fact_int x = card_compute_capability(a), y = card_compute_capability(b);

	return fact_known(x) && fact_known(y) && x.value == y.value;
}

bool card_other_generation(const struct gpu *a, const struct gpu *b)
{
	return fact_known(card_compute_capability(a)) && fact_known(card_compute_capability(b)) &&
	       !card_same_generation(a, b);
}

/* GPUDirect RDMA began with the second Kepler generation (CUDA documentation, GPUDirect RDMA). */
struct fact_int card_has_gdr(const struct gpu *g)
{
	struct fact_int cc = card_compute_capability(g);

	return fact_known(cc) ? fact_int(cc.value >= 35, cc.from) : cc;
}

struct fact_int card_has_console(const struct gpu *g)
{
	return fact_is(g->display_active, 1) ? g->display_active : g->pci->boot_vga;
}
