/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harness stock|patched OTHERS PEERS: what the driver's own object files do for two GPUs that are peers,
 * checked bit by bit. Page-table entries of memory that is reached in other ways than through a peer's BAR1
 * are written to the file OTHERS: stock and patched must agree on them. Those for BAR1 are written to
 * PEERS: all releases must agree on them.
 *
 * What entries must be is computed here, from the formats' fields; where an entry leads is followed
 * through the IOMMU and the mapping that the driver made in BAR1, back to the peer's memory.
 */
#include "world.h"

#include <stdarg.h>

typedef struct stream stream;
int printf(const char *, ...);
int vsnprintf(char *, unsigned long, const char *, va_list);
int strcmp(const char *, const char *);
char *getenv(const char *);
void *memset(void *, int, unsigned long);
stream *fopen(const char *, const char *);
int fprintf(stream *, const char *, ...);
int fclose(stream *);
int fflush(stream *);
void *calloc(unsigned long, unsigned long);
void *signal(int, void *);
void _exit(int);
long write(int, const void *, unsigned long);

static const struct chip chips[] = {
	{.name = "TU102", .architecture = 0x16, .implementation = 2, .pte_version = 2},
	{.name = "GA102", .architecture = 0x17, .implementation = 2, .pte_version = 2},
	{.name = "AD102", .architecture = 0x19, .implementation = 2, .pte_version = 2},
	{.name = "GH100",
	 .architecture = 0x18,
	 .implementation = 0,
	 .pte_version = 3,
	 .native = 1,
	 .has_512m = 1},
#ifdef HAVE_GB202
	{.name = "GB202",
	 .architecture = 0x1b,
	 .implementation = 2,
	 .pte_version = 3,
	 .native = 1,
	 .has_512m = 1,
	 .blackwell = 1},
#endif
};
enum { CHIP_N = sizeof(chips) / sizeof(chips[0]) };

static int patched;
static int failed, passed;
static stream *others, *peers;

static void check(int good, const char *format, ...)
{
	char name[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(name, sizeof(name), format, ap);
	va_end(ap);
	printf("%s - %s\n", good ? "ok" : "FAIL", name);
	*(good ? &passed : &failed) += 1;
}

/* Peers through BAR1 work on these, once our edits are there. */
static int has_bar1_p2p(const struct chip *c)
{
	return patched || c->native;
}

/* ---- page-table entries, from their formats' fields ---- */

enum aperture { VIDEO = 0, PEER = 1, SYSTEM_COHERENT = 2, SYSTEM = 3 };

struct entry {
	enum aperture aperture;
	NvU64 address;
	unsigned peer, kind;
	int is_volatile, read_only, atomics;
};

static NvU64 field(NvU64 value, int high, int low)
{
	return (value & ((2ull << (high - low)) - 1)) << low;
}

/* Pascal to Ada: what is on the bus has 46 bits for pages of 4 KiB, memory and peers have 25. */
static NvU64 encode_2(const struct entry *e)
{
	NvU64 pte = field(1, 0, 0) | field(e->aperture, 2, 1) | field(e->is_volatile, 3, 3) |
		    field(e->read_only, 6, 6) | field(!e->atomics, 7, 7) | field(e->kind, 63, 56);

	if (e->aperture == SYSTEM || e->aperture == SYSTEM_COHERENT)
		return pte | field(e->address >> 12, 53, 8);
	return pte | field(e->address >> 12, 32, 8) |
	       (e->aperture == PEER ? field(e->peer, 35, 33) : 0);
}

/* Hopper and later: one address for all, what may be done in five bits: 0x10 with the peer's... */
static NvU64 encode_3(const struct entry *e)
{
	unsigned pcf =
		0x10u | (e->is_volatile ? 1 : 0) | (e->read_only ? 4 : 0) | (e->atomics ? 0 : 8);

	return field(1, 0, 0) | field(e->aperture, 2, 1) | field(pcf, 7, 3) |
	       field(e->kind, 11, 8) | field(e->address >> 12, 51, 12) |
	       (e->aperture == PEER ? field(e->peer, 63, 61) : 0);
}

static NvU64 encode(const struct entry *e)
{
	return world.chip->pte_version == 2 ? encode_2(e) : encode_3(e);
}

/* The address on the bus of an entry for memory of the system. */
static NvU64 bus_address(NvU64 pte)
{
	if (world.chip->pte_version == 2)
		return (pte >> 8 & ((1ull << 46) - 1)) << 12;
	return pte & ((1ull << 52) - 1) & ~0xfffull;
}

/* ---- what is asked of the driver ---- */

struct request {
	struct card *mapper, *owner;
	NV_ADDRESS_SPACE space;
	NvU64 memory, page_size;
	NvU32 count;
	int is_peer, mapping; /* UvmGpuMappingType: 0 all, 2 no atomics, 3 read-only */
	NvU32 kind, cached;
};

enum { PEER_ID = 5, MAX_ENTRIES = 8 };

/* Functions of nv_gpu_ops.c that no header has. */
NV_STATUS nvGpuOpsBuildExternalAllocPtes(OBJVASPACE *,
#if DRIVER_ERA >= 580
					 struct gpuSession *,
#endif
					 OBJGPU *, MEMORY_DESCRIPTOR *, Memory *, NvU64, NvU64,
					 NvBool, NvBool,
#if DRIVER_ERA >= 580
					 NvBool,
#endif
					 NvU32, gpuExternalMappingInfo *);
#if DRIVER_ERA >= 580
NV_STATUS nvGpuOpsBuildExternalAllocPhysAddrs(OBJVASPACE *, struct gpuSession *, OBJGPU *,
					      MEMORY_DESCRIPTOR *, Memory *, NvU64, NvU64, NvBool,
					      NvBool, NvBool, NvU32, UvmGpuExternalPhysAddrInfo *);
#endif

static NV_STATUS describe(const struct request *r, MEMORY_DESCRIPTOR **ret_memory)
{
	MEMORY_DESCRIPTOR *memory = NULL;
	NV_STATUS status = memdescCreate(&memory, r->owner->gpu, r->count * r->page_size, 0,
					 NV_TRUE, r->space, NV_MEMORY_UNCACHED, MEMDESC_FLAGS_NONE);

	if (status != NV_OK)
		return status;
	memdescDescribe(memory, r->space, r->memory, r->count * r->page_size);
	memdescSetPageSize(memory, AT_GPU, r->page_size);
	memory->_pteKind = r->kind;
	memory->_gpuP2PCacheAttrib = r->cached ? NV_MEMORY_CACHED : NV_MEMORY_UNCACHED;
	memory->_gpuCacheAttrib = memory->_gpuP2PCacheAttrib;
	*ret_memory = memory;
	return NV_OK;
}

static char space[65536];

#if DRIVER_ERA >= 580
static char session[4096];

/* The callers ask for memory of other GPUs only. */
static int is_bar1(const struct request *r)
{
	return r->is_peer && r->space == ADDR_FBMEM &&
	       kbusHasPcieBar1P2PMapping_HAL(r->mapper->gpu, r->mapper->bus, r->owner->gpu,
					     r->owner->bus);
}
#endif

static NV_STATUS build(const struct request *r, NvU64 *ptes, NvU32 *ret_n)
{
	NvU64 buffer[2 * MAX_ENTRIES] = {0};
	gpuExternalMappingInfo info;
	MEMORY_DESCRIPTOR *memory = NULL;
	OBJGPU *mapper = r->mapper->gpu;
	NV_STATUS status = describe(r, &memory);

	if (status != NV_OK)
		return status;
	memset(&info, 0, sizeof(info));
	info.mappingType = r->mapping;
	info.pteBuffer = buffer;
	info.pteBufferSize = sizeof(buffer);
#if DRIVER_ERA >= 580
	status = nvGpuOpsBuildExternalAllocPtes((void *)space, (void *)session, mapper, memory,
						NULL, 0, 0, NV_FALSE, r->is_peer, is_bar1(r),
						PEER_ID, &info);
#else
	status = nvGpuOpsBuildExternalAllocPtes((void *)space, mapper, memory, NULL, 0, 0, NV_FALSE,
						r->is_peer, PEER_ID, &info);
#endif
	if (status != NV_OK)
		return status;
	for (NvU64 i = 0; i < info.numWrittenPtes && i < MAX_ENTRIES; i++)
		ptes[i] = buffer[i * info.pteSize / 8];
	*ret_n = info.numWrittenPtes;
	return NV_OK;
}

static NV_STATUS build_status(const struct request *r)
{
	NvU64 ptes[MAX_ENTRIES];
	NvU32 n;

	return build(r, ptes, &n);
}

#if DRIVER_ERA >= 580
/* Addresses without entries: the status; where all of them lead home. */
static NV_STATUS addresses(const struct request *r, int *ret_home)
{
	NvU64 buffer[MAX_ENTRIES] = {0};
	UvmGpuExternalPhysAddrInfo info;
	MEMORY_DESCRIPTOR *memory = NULL;
	NV_STATUS status = describe(r, &memory);

	*ret_home = 0;
	if (status != NV_OK)
		return status;
	memset(&info, 0, sizeof(info));
	info.physAddrBuffer = buffer;
	info.physAddrBufferSize = MAX_ENTRIES;
	status = nvGpuOpsBuildExternalAllocPhysAddrs((void *)space, (void *)session, r->mapper->gpu,
						     memory, NULL, 0, 0, NV_FALSE, r->is_peer,
						     is_bar1(r), PEER_ID, &info);
	if (status != NV_OK)
		return status;
	*ret_home = info.numWrittenPhysAddrs == r->count;
	for (NvU32 i = 0; i < r->count; i++)
		*ret_home = *ret_home &&
			    world_memory_at(r->owner, buffer[i]) == r->memory + i * r->page_size;
	return NV_OK;
}
#endif

/* Entries for BAR1: each is as its format has it, and leads to the memory that was asked for. */
static int entries_lead_home(const char *what, const struct request *r)
{
	NvU64 ptes[MAX_ENTRIES] = {0};
	NvU32 n = 0;
	NV_STATUS status = build(r, ptes, &n);
	NvU64 base = world.setup.iova ? r->owner->iova : r->owner->bar1_bus;
	int good = status == NV_OK && n == r->count;

	for (NvU32 i = 0; good && i < n; i++) {
		NvU64 memory = r->memory + i * r->page_size;
		struct entry e = {
			.aperture = world.chip->blackwell ? SYSTEM_COHERENT : SYSTEM,
			.address =
				base + r->owner->mapped_bar1 + (memory - r->owner->mapped_memory),
			.kind = r->kind,
			.is_volatile = !r->cached,
			.read_only = r->mapping == 3,
			.atomics = r->mapping < 2,
		};
		/* The driver decides itself where BAR1 is behind a console */
		if (!world.setup.console_size)
			fprintf(peers,
				"%s %s, memory 0x%llx mapping %d cached %u gpu %u: %016llx\n",
				world.chip->name, what, memory, r->mapping, r->cached,
				r->mapper->gpu->gpuInstance, ptes[i]);
		NvU64 end = world_memory_at(r->owner, bus_address(ptes[i]) + r->page_size - 1);

		good = ptes[i] == encode(&e) &&
		       world_memory_at(r->owner, bus_address(ptes[i])) == memory &&
		       end == memory + r->page_size - 1;
		if (!good)
			printf("# memory 0x%llx: entry %016llx, expected %016llx\n", memory,
			       ptes[i], encode(&e));
	}
	if (status != NV_OK || n != r->count)
		printf("# memory 0x%llx: status 0x%x, %u entries\n", r->memory, status, n);
	return good;
}

/* Entries for anything else: as the format has it, and listed. */
static int entries_are(const char *what, const struct request *r, enum aperture aperture)
{
	NvU64 ptes[MAX_ENTRIES] = {0};
	NvU32 n = 0;
	NV_STATUS status = build(r, ptes, &n);
	int good = status == NV_OK && n == r->count;

	for (NvU32 i = 0; i < n; i++) {
		struct entry e = {
			.aperture = aperture,
			.address = r->memory + i * r->page_size,
			.peer = PEER_ID,
			.kind = r->kind,
			.is_volatile = !r->cached,
			.read_only = r->mapping == 3,
			.atomics = r->mapping < 2,
		};
		fprintf(others, "%s %s page 0x%llx mapping %d: %016llx\n", world.chip->name, what,
			r->page_size, r->mapping, ptes[i]);
		if (ptes[i] != encode(&e)) {
			printf("# %s: entry %016llx, expected %016llx\n", what, ptes[i],
			       encode(&e));
			good = 0;
		}
	}
	if (status != NV_OK)
		printf("# %s: status 0x%x\n", what, status);
	return good;
}

/* ---- connections ---- */

static NV_STATUS connect(struct card *a, struct card *b, NvU32 type)
{
	NvU32 peer_a = 0, peer_b = 0;

	return kbusCreateP2PMapping_HAL(a->gpu, a->bus, b->gpu, b->bus, &peer_a, &peer_b,
					DRF_NUM(_P2PAPI, _ATTRIBUTES, _CONNECTION_TYPE, type));
}

static NV_STATUS disconnect(struct card *a, struct card *b, NvU32 type)
{
	return kbusRemoveP2PMapping_HAL(a->gpu, a->bus, b->gpu, b->bus, 0, 0,
					DRF_NUM(_P2PAPI, _ATTRIBUTES, _CONNECTION_TYPE, type));
}

static int has_connection(struct card *a, struct card *b)
{
	return kbusHasPcieBar1P2PMapping_HAL(a->gpu, a->bus, b->gpu, b->bus);
}

enum {
	MAILBOX_TYPE = 1,
	BAR1_TYPE = NV_P2PAPI_ATTRIBUTES_CONNECTION_TYPE_PCIE_BAR1,
	NVLINK_TYPE = NV_P2PAPI_ATTRIBUTES_CONNECTION_TYPE_NVLINK,
};

static const struct world_setup usual = {.fb_size = 24 * GiB,
					 .bar1_size = 32 * GiB,
					 .bar1_bus = 0x6000000000,
					 .options = ALL_GPUS};

/* The world with all static mappings; the status of the first that fails. */
static NV_STATUS start(const struct chip *chip, const struct world_setup *setup)
{
	NV_STATUS status = NV_OK;

	world_make(chip, setup);
	for (int i = 0; i < WORLD_GPUS && status == NV_OK; i++)
		status = world_static_bar1(&world.cards[i]);
	return status;
}

/* ---- checks ---- */

static void check_options(void)
{
	check(!strcmp(NV_REG_STR_CL_FORCE_P2P, "ForceP2P"), "option ForceP2P");
	check(!strcmp(NV_REG_STR_RM_FORCE_P2P_TYPE, "RMForceP2PType"), "option RMForceP2PType");
#if DRIVER_ERA < 575
	check(NV_REG_STR_RM_FORCE_P2P_TYPE_BAR1P2P == 2, "RMForceP2PType=2 is BAR1");
#else
	check(!strcmp(NV_REG_STR_RM_PCIEP2P_TYPE, "RMPcieP2PType") &&
		      NV_REG_STR_RM_PCIEP2P_TYPE_BAR1 == 1,
	      "RMPcieP2PType=1 is BAR1");
#endif
#if DRIVER_ERA == 575
	check(!strcmp(NV_REG_STR_RM_FORCE_STATIC_BAR1, "RMForceStaticBar1") &&
		      NV_REG_STR_RM_FORCE_STATIC_BAR1_AUTO == 2,
	      "RMForceStaticBar1=2 is automatic");
#endif
}

#define SLOT(name) (bus->__##name##__ == name##_GH100)

static void check_tables(const struct chip *chip)
{
	KernelBus *bus;
	int all, any;

	world_make(chip, &usual);
	bus = world.cards[0].bus;
	all = SLOT(kbusGetBar1P2PDmaInfo) && SLOT(kbusCreateP2PMappingForBar1P2P) &&
	      SLOT(kbusRemoveP2PMappingForBar1P2P) && SLOT(kbusHasPcieBar1P2PMapping) &&
	      SLOT(kbusIsPcieBar1P2PMappingSupported);
	any = SLOT(kbusGetBar1P2PDmaInfo) || SLOT(kbusCreateP2PMappingForBar1P2P) ||
	      SLOT(kbusRemoveP2PMappingForBar1P2P) || SLOT(kbusHasPcieBar1P2PMapping) ||
	      SLOT(kbusIsPcieBar1P2PMappingSupported);
#if DRIVER_ERA == 535
	all = all && SLOT(kbusNeedStaticBar1Mapping) && SLOT(kbusSetupBar1P2PCapability);
	any = any || SLOT(kbusNeedStaticBar1Mapping) || SLOT(kbusSetupBar1P2PCapability);
#endif
#if DRIVER_ERA == 545
	all = all && SLOT(kbusIsBar1P2PCapable);
	any = any || SLOT(kbusIsBar1P2PCapable);
#endif
#if DRIVER_ERA < 565
	all = all && SLOT(kbusEnableStaticBar1Mapping) && SLOT(kbusDisableStaticBar1Mapping);
	any = any || SLOT(kbusEnableStaticBar1Mapping) || SLOT(kbusDisableStaticBar1Mapping);
#endif
	check(has_bar1_p2p(chip) ? all : !any, "%s: the function table has %s functions for BAR1",
	      chip->name, has_bar1_p2p(chip) ? "all of Hopper's" : "none of Hopper's");
}

static NV_STATUS start_with(const struct chip *chip, NvU64 fb, NvU64 bar1, unsigned options)
{
	struct world_setup setup = usual;

	setup.fb_size = fb;
	setup.bar1_size = bar1;
	setup.options = options;
	return start(chip, &setup);
}

/* From 580 on static BAR1 is the driver's own decision; before, options decide. */
static void check_static_bar1(const struct chip *chip)
{
	int works = DRIVER_ERA >= 565 || has_bar1_p2p(chip);
	NV_STATUS off = start_with(chip, 24 * GiB, 32 * GiB, 0);

	check((start_with(chip, 24 * GiB, 32 * GiB, ALL_GPUS) == NV_OK) == works,
	      "%s: static BAR1, 24 GiB in 32 GiB: %s", chip->name, works ? "yes" : "no");
	check((off == NV_OK) == (DRIVER_ERA >= 580), "%s: static BAR1 without options: %s",
	      chip->name, DRIVER_ERA >= 580 ? "yes, as ever" : "no");
	check(start_with(chip, 24 * GiB, 256 * MiB, ALL_GPUS) != NV_OK,
	      "%s: no static BAR1 in 256 MiB", chip->name);
	check(start_with(chip, 48 * GiB, 32 * GiB, ALL_GPUS) != NV_OK,
	      "%s: no static BAR1 of 48 GiB in 32 GiB", chip->name);
#if DRIVER_ERA == 545
	if (start(chip, &usual) == NV_OK)
		check(kbusIsStaticBar1Enabled(world.cards[0].gpu, world.cards[0].bus) ==
			      chip->native,
		      "%s: the CPU's mappings use static BAR1: %s", chip->name,
		      chip->native ? "yes, as ever" : "no");
#endif
}

static void check_dispatch(const struct chip *chip)
{
	struct card *a = world.cards, *b = world.cards + 1;
	int bar1;

	start(chip, &usual);
	check(connect(a, b, MAILBOX_TYPE) == NV_OK && world.made_mailbox == 1 &&
		      !world.made_nvlink && disconnect(a, b, MAILBOX_TYPE) == NV_OK &&
		      world.removed_mailbox == 1 && !has_connection(a, b),
	      "%s: a mailbox connection is one", chip->name);
	check(connect(a, b, NVLINK_TYPE) == NV_OK && world.made_nvlink == 1 &&
		      world.made_mailbox == 1 && disconnect(a, b, NVLINK_TYPE) == NV_OK &&
		      world.removed_nvlink == 1 && !has_connection(a, b),
	      "%s: an NVLink connection is one", chip->name);
	bar1 = connect(a, b, BAR1_TYPE) == NV_OK && has_connection(a, b) && has_connection(b, a) &&
	       !has_connection(a, world.cards + 2) && world.made_mailbox == 1 &&
	       world.made_nvlink == 1;
	check(bar1 == has_bar1_p2p(chip), "%s: a BAR1 connection: %s", chip->name,
	      has_bar1_p2p(chip) ? "made" : "not to be had");
	if (!bar1)
		return;
	check(connect(a, b, BAR1_TYPE) == NV_OK && disconnect(a, b, BAR1_TYPE) == NV_OK &&
		      has_connection(a, b) && disconnect(a, b, BAR1_TYPE) == NV_OK &&
		      !has_connection(a, b) && disconnect(a, b, BAR1_TYPE) != NV_OK &&
		      world.removed_mailbox == 1 && world.removed_nvlink == 1,
	      "%s: BAR1 connections are counted, and end", chip->name);
	check(connect(a, a, BAR1_TYPE) != NV_OK, "%s: no BAR1 connection to itself", chip->name);
	a->bus->p2pPcie.peerNumberMask[1] = 1;
	check(connect(a, b, BAR1_TYPE) != NV_OK, "%s: no BAR1 connection beside a mailbox",
	      chip->name);
}

static const NvU64 page_sizes[] = {4 * KiB, 64 * KiB, 2 * MiB, 512 * MiB};

static int page_size_n(const struct chip *chip)
{
	return chip->has_512m ? 4 : 3;
}

/* All page sizes, kinds of access and places in memory, in both directions. */
static int try_entries(const struct chip *chip, const char *what, int *ret_n)
{
	static const NvU64 places[] = {1 * GiB, 0x12400000, 20 * GiB};
	static const int mappings[] = {0, 2, 3};
	int good = 1;

	for (int i = 0; i < page_size_n(chip) * 3 * 3 * 2 * 2; i++) {
		struct request r = {
			.mapper = &world.cards[i & 1],
			.owner = &world.cards[!(i & 1)],
			.space = ADDR_FBMEM,
			.cached = i >> 1 & 1,
			.mapping = mappings[i / 4 % 3],
			.memory = places[i / 12 % 3],
			.page_size = page_sizes[i / 36],
			.count = i / 36 == 3 ? 1 : 3,
			.is_peer = 1,
			.kind = NV_MMU_PTE_KIND_GENERIC_MEMORY,
		};
		if (r.memory & (r.page_size - 1))
			continue;
		good = entries_lead_home(what, &r) && good;
		*ret_n += (int)r.count;
	}
	return good;
}

static void check_entries(const struct chip *chip)
{
	static const struct {
		const char *what;
		NvU64 console, bus, iova;
	} cases[] = {
		{"BAR1 above 128 GiB", 0, 0x6000000000, 0},
		{"BAR1 below 128 GiB", 0, 0x1000000000, 0},
		{"BAR1 at 64 TiB", 0, 0x400000000000, 0},
		{"a console of 24 MiB", 24 * MiB, 0x6000000000, 0},
		{"a console of 5 MiB", 5 * MiB, 0x6000000000, 0},
		{"I/O virtual addresses", 0, 0x6000000000, 0xfc0000000000},
		{"I/O virtual addresses, a console of 24 MiB", 24 * MiB, 0x6000000000,
		 0xfc0000000000},
	};
	struct world_setup setup = usual;

	for (unsigned i = 0; has_bar1_p2p(chip) && i < sizeof(cases) / sizeof(cases[0]); i++) {
		NV_STATUS status, expected = NV_OK;
		int n = 0, good;

		setup.console_size = cases[i].console;
		setup.bar1_bus = cases[i].bus;
		setup.iova = cases[i].iova;
		status = start(chip, &setup);
		if (status == NV_OK)
			status = connect(world.cards, world.cards + 1, BAR1_TYPE);
		/* Hopper's test of 512 MiB stays; before 580 a console can make it fail */
		if (world.cards[0].mapped_bar1 % (512 * MiB) && (chip->native || DRIVER_ERA == 545))
			expected = NV_ERR_INVALID_ADDRESS;
		if (expected != NV_OK) {
			check(status == expected, "%s: %s: refused, as ever", chip->name,
			      cases[i].what);
			continue;
		}
		/* Stock entries for Hopper are for peers through BAR1 from 580 on only */
		if (status == NV_OK && !patched && DRIVER_ERA < 580)
			continue;
		good = status == NV_OK && world.asserts == 0 &&
		       try_entries(chip, cases[i].what, &n);
		check(good, "%s: %s: %d entries", chip->name, cases[i].what, n);
	}
}

/* Entries that are only listed: what a chip makes of compression is not known here. */
static int list_compressible(const struct chip *chip, struct card *mapper, struct card *owner,
			     const char *what)
{
	struct request r = {.mapper = mapper,
			    .owner = owner,
			    .space = ADDR_FBMEM,
			    .memory = 1 * GiB,
			    .page_size = 64 * KiB,
			    .count = 2,
			    .is_peer = mapper != owner,
			    .kind = NV_MMU_PTE_KIND_GENERIC_MEMORY_COMPRESSIBLE};
	NvU64 ptes[MAX_ENTRIES] = {0};
	NvU32 n = 0;
	NV_STATUS status = build(&r, ptes, &n);

	fprintf(others, "%s %s: status 0x%x\n", chip->name, what, status);
	for (NvU32 i = 0; i < n; i++)
		fprintf(others, "%s %s: %016llx\n", chip->name, what, ptes[i]);
	return (int)n;
}

/*
 * Compressible memory of a peer through BAR1: before Hopper the line of its tags would replace the upper bits of
 * the address, so it is refused; later it leads home.
 */
static void check_compressible(const struct chip *chip)
{
	static const NvU64 buses[] = {0x1000000000, 0x6000000000, 0x400000000000};
	struct world_setup setup = usual;
	int good = 1, n = 0;

	for (unsigned i = 0; i < 3 * sizeof(buses) / sizeof(buses[0]); i++) {
		struct request r = {.mapper = world.cards,
				    .owner = world.cards + 1,
				    .space = ADDR_FBMEM,
				    .memory = 1 * GiB,
				    .page_size = page_sizes[i % 3],
				    .count = 2,
				    .is_peer = 1,
				    .kind = NV_MMU_PTE_KIND_GENERIC_MEMORY_COMPRESSIBLE};
		NvU64 ptes[MAX_ENTRIES] = {0};
		NvU32 entries = 0;
		NV_STATUS status;

		setup.bar1_bus = buses[i / 3];
		if (start(chip, &setup) != NV_OK ||
		    connect(world.cards, world.cards + 1, BAR1_TYPE) != NV_OK ||
		    (!patched && DRIVER_ERA < 580))
			return;
		r.mapper = world.cards;
		r.owner = world.cards + 1;
		status = build(&r, ptes, &entries);
		n++;
		if (status == NV_ERR_NOT_SUPPORTED)
			continue;
		for (NvU32 k = 0; k < entries; k++) {
			NvU64 to = bus_address(ptes[k]);

			if (chip->pte_version != 2 &&
			    world_memory_at(r.owner, to) == r.memory + k * r.page_size)
				continue;
			good = 0;
			printf("# compressible memory 0x%llx behind BAR1 at 0x%llx: the entry "
			       "leads to 0x%llx\n",
			       r.memory + k * r.page_size, buses[i / 3], to);
		}
		good = good && status == NV_OK;
	}
	check(good, "%s: compressible memory of a peer through BAR1: %d times refused%s",
	      chip->name, n, chip->pte_version == 2 ? "" : ", or it leads home");
}

/* What must stay as it was, while the first two GPUs are peers through BAR1 (where that is to be had). */
static void check_others(const struct chip *chip)
{
	struct card *a = world.cards, *b = world.cards + 1, *c = world.cards + 2;
	int good = 1, n = 0;

	start(chip, &usual);
	connect(a, b, BAR1_TYPE);
	for (int i = 0; i < page_size_n(chip) * 3; i++) {
		static const int mappings[] = {0, 2, 3};
		struct request r = {
			.mapper = a,
			.owner = c,
			.space = ADDR_FBMEM,
			.memory = 1 * GiB,
			.page_size = page_sizes[i / 3],
			.count = 2,
			.is_peer = 1,
			.mapping = mappings[i % 3],
			.kind = NV_MMU_PTE_KIND_GENERIC_MEMORY,
		};
		good = entries_are("peer without BAR1", &r, PEER) && good;
		r.owner = b;
		r.space = ADDR_FABRIC_V2;
		good = entries_are("fabric", &r, PEER) && good;
		r.is_peer = 0;
		r.owner = a;
		r.space = ADDR_FBMEM;
		good = entries_are("own memory", &r, VIDEO) && good;
		r.space = ADDR_SYSMEM;
		r.memory = 0x7fc0000000;
		good = entries_are("system memory", &r, SYSTEM_COHERENT) && good;
		n += 8;
	}
	n += list_compressible(chip, a, c, "compressible memory of a peer without BAR1");
	n += list_compressible(chip, a, a, "own compressible memory");
	check(good, "%s: peers without BAR1, NVLink's fabric, own and system memory: %d entries",
	      chip->name, n);
	world_make(chip, &usual);
	struct request r = {.mapper = a,
			    .owner = b,
			    .space = ADDR_FBMEM,
			    .memory = 1 * GiB,
			    .page_size = 64 * KiB,
			    .count = 3,
			    .is_peer = 1,
			    .kind = NV_MMU_PTE_KIND_GENERIC_MEMORY};
	check(entries_are("peer before it is connected", &r, PEER),
	      "%s: a peer that is not connected", chip->name);
}

/*
 * Memory that is no multiple of 2 MiB: the last part of it is not mapped in BAR1, and what BAR1 has behind the mapping
 * is something else. It is refused, and so is a page of which only the start is mapped.
 */
static void check_end(const struct chip *chip)
{
	struct card *a = world.cards, *b = world.cards + 1;
	struct request r = {.mapper = a,
			    .owner = b,
			    .space = ADDR_FBMEM,
			    .page_size = 64 * KiB,
			    .count = 1,
			    .is_peer = 1,
			    .kind = NV_MMU_PTE_KIND_GENERIC_MEMORY};
	struct world_setup setup = usual;
	NvU64 end;

	setup.fb_size += 1 * MiB;
	if (!patched || !has_bar1_p2p(chip) || start(chip, &setup) != NV_OK ||
	    connect(a, b, BAR1_TYPE) != NV_OK)
		return;
	end = b->mapped_memory + b->mapped_size;
	for (int i = 0; i < 4; i++) {
		static const struct {
			const char *what;
			long from_end;
			NvU64 page_size;
			NvU32 count;
			int taken;
		} cases[] = {
			{"the last page that is mapped", -(64 << 10), 64 * KiB, 1, 1},
			{"the first page behind it", 0, 64 * KiB, 1, 0},
			{"both of them", -(64 << 10), 64 * KiB, 2, 0},
			{"a page of which the start is mapped", -(1 << 20), 2 * MiB, 1, 0},
		};
		NV_STATUS expected = cases[i].taken ? NV_OK : NV_ERR_INVALID_ADDRESS;

		r.memory = end + (NvU64)cases[i].from_end;
		r.page_size = cases[i].page_size;
		r.count = cases[i].count;
		check(build_status(&r) == expected &&
			      (!cases[i].taken || entries_lead_home("end", &r)),
		      "%s: the end of what is mapped, entries: %s: %s", chip->name, cases[i].what,
		      cases[i].taken ? "taken" : "refused");
#if DRIVER_ERA >= 580
		int home;

		check(addresses(&r, &home) == expected && home == cases[i].taken,
		      "%s: the end of what is mapped, addresses: %s: %s", chip->name, cases[i].what,
		      cases[i].taken ? "taken" : "refused");
#endif
	}
}

/* Our entries are refused where they would be wrong; the driver's own, from 580 on, test less. */
static void check_refusals(const struct chip *chip)
{
	struct card *a = world.cards, *b = world.cards + 1;
	struct request r = {.mapper = a,
			    .owner = b,
			    .space = ADDR_FBMEM,
			    .memory = 1 * GiB,
			    .page_size = 2 * MiB,
			    .count = 2,
			    .is_peer = 1,
			    .kind = NV_MMU_PTE_KIND_GENERIC_MEMORY};
	MEMORY_DESCRIPTOR *mapped;
	struct world_setup setup = usual;

	setup.iova = 0xfc0000000000;
	if (start(chip, &setup) != NV_OK || connect(a, b, BAR1_TYPE) != NV_OK ||
	    (!patched && DRIVER_ERA < 580))
		return;
	mapped = b->bus->bar1[0].staticBar1.pDmaMemDesc;
	mapped->Size = 0;
	check(build_status(&r) == NV_ERR_INVALID_STATE, "%s: nothing is mapped: refused",
	      chip->name);
	mapped->Size = b->mapped_size;
	mapped->_pIommuMappings->iovaArray[0] = NV_U64_MAX;
	check(build_status(&r) == NV_ERR_INVALID_STATE, "%s: the address is not known: refused",
	      chip->name);
#if DRIVER_ERA < 580
	mapped->_pIommuMappings->iovaArray[0] = b->iova + 64 * KiB;
	check(build_status(&r) == NV_ERR_INVALID_ADDRESS, "%s: pages of 2 MiB at 64 KiB: refused",
	      chip->name);
	r.page_size = 64 * KiB;
	check(build_status(&r) == NV_OK, "%s: pages of 64 KiB at 64 KiB: taken", chip->name);
#endif
#if DRIVER_ERA < 565
	r.kind = NV_MMU_PTE_KIND_GENERIC_MEMORY_COMPRESSIBLE;
	check(build_status(&r) == NV_ERR_NOT_SUPPORTED, "%s: compressible memory: refused",
	      chip->name);
#endif
#if DRIVER_ERA == 535
	setup.console_size = 24 * MiB;
	setup.iova = 0;
	if (chip->native || start(chip, &setup) != NV_OK || connect(a, b, BAR1_TYPE) != NV_OK)
		return;
	r.kind = NV_MMU_PTE_KIND_GENERIC_MEMORY;
	r.memory = 24 * MiB - 64 * KiB;
	check(build_status(&r) == NV_ERR_INVALID_ADDRESS, "%s: the console's memory: refused",
	      chip->name);
#endif
}

/* What the driver says of the first two GPUs. */
static NV_STATUS ask_caps(NvU8 *writes, NvU8 *reads, P2P_CONNECTIVITY *kind)
{
	*writes = *reads = 0;
	*kind = P2P_CONNECTIVITY_UNKNOWN;
#ifdef CAPS_ATOMICS
	NvU8 atomics = 0;

	return p2pGetCapsStatus(3, writes, reads, &atomics, kind);
#else
	return p2pGetCapsStatus(3, writes, reads, kind);
#endif
}

/* With the options for these GPUs alone it says yes, and that BAR1 carries it. */
static int says_bar1(const struct chip *chip, unsigned options)
{
	struct world_setup setup = usual;
	P2P_CONNECTIVITY kind;
	NvU8 writes, reads;

	setup.options = options;
	start(chip, &setup);
	return ask_caps(&writes, &reads, &kind) == NV_OK && writes == NV0000_P2P_CAPS_STATUS_OK &&
	       reads == NV0000_P2P_CAPS_STATUS_OK && kind == P2P_CONNECTIVITY_PCIE_BAR1 &&
	       world.cards[0].mapped_size && world.cards[1].mapped_size;
}

/* Why onehop gives the options to both cards of a pair, or to neither. */
static void check_one_side(const struct chip *chip)
{
	enum { FIRST = 1, SECOND = 2 };

	if (!has_bar1_p2p(chip) || (!patched && DRIVER_ERA == 535))
		return;
	check(says_bar1(chip, FIRST | SECOND), "%s: options for both cards: BAR1", chip->name);
	check(!says_bar1(chip, FIRST) || !says_bar1(chip, SECOND),
	      "%s: options for one card: which one it is decides, so that they are no good",
	      chip->name);
}

/*
 * Whatever cards have the options, in whichever order, and however large BAR1 is: a pair works through BAR1, and
 * then its memory is mapped there, or it is not supported. A card with the options has no mailbox.
 */
static void check_answers(const struct chip *chip)
{
	static const NvU64 bar1_sizes[] = {32 * GiB, 256 * MiB};
	struct world_setup setup = usual;

	for (unsigned i = 0; patched && i < 2 * 3; i++) {
		P2P_CONNECTIVITY kind;
		NvU8 writes, reads;
		NV_STATUS status;
		int bar1, refused, mapped;

		setup.bar1_size = bar1_sizes[i / 3];
		setup.options = i % 3 + 1;
		world_make(chip, &setup);
		for (int k = 0; k < WORLD_GPUS; k++)
			world_static_bar1(&world.cards[k]);
		mapped = world.cards[0].mapped_size && world.cards[1].mapped_size;
		status = ask_caps(&writes, &reads, &kind);
		bar1 = kind == P2P_CONNECTIVITY_PCIE_BAR1 && writes == NV0000_P2P_CAPS_STATUS_OK &&
		       reads == NV0000_P2P_CAPS_STATUS_OK;
		refused = kind == P2P_CONNECTIVITY_UNKNOWN && writes != NV0000_P2P_CAPS_STATUS_OK &&
			  reads != NV0000_P2P_CAPS_STATUS_OK;
		check(status == NV_OK && (mapped ? bar1 || refused : refused),
		      "%s: BAR1 of %llu MiB, options for %s: %s", chip->name, setup.bar1_size / MiB,
		      i % 3 == 2 ? "both"
		      : i % 3    ? "the second"
				 : "the first",
		      mapped ? "BAR1, or not supported" : "not supported");
	}
}

static void check_caps(const struct chip *chip)
{
	NvU8 writes, reads;
	P2P_CONNECTIVITY kind;
	NV_STATUS status;
	int said;

	start(chip, &usual);
	status = ask_caps(&writes, &reads, &kind);
	/* Stock 535 asks the processor whatever ForceP2P says */
	if (!patched && DRIVER_ERA == 535 && chip->native)
		return;
	/* 545 to 570 believe ForceP2P before they look whether BAR1 is mapped */
	said = has_bar1_p2p(chip) || DRIVER_ERA == 545 || DRIVER_ERA == 565;
	check(status == NV_OK && writes == NV0000_P2P_CAPS_STATUS_OK &&
		      reads == NV0000_P2P_CAPS_STATUS_OK &&
		      (kind == P2P_CONNECTIVITY_PCIE_BAR1) == said,
	      "%s: with the options, reads and writes are said to work through %s", chip->name,
	      said ? "BAR1" : "a mailbox");
}

/* A function that is not among the objects has the address 0. */
static void crashed(int number)
{
	static const char text[] =
		"FAIL - the driver called what is not here\n0 passed, 1 failed, 0 skipped\n";

	(void)number;
	fflush(NULL);
	_exit(write(1, text, sizeof(text) - 1) < 0 ? 2 : 1);
}

int main(int argc, char **argv)
{
	patched = argc == 4 && !strcmp(argv[1], "patched");
	others = argc == 4 ? fopen(argv[2], "w") : NULL;
	peers = argc == 4 ? fopen(argv[3], "w") : NULL;
	if (!others || !peers) {
		printf("usage: harness stock|patched OTHERS PEERS\n");
		return 2;
	}
	if (!getenv("HARNESS_VERBOSE"))
		signal(11, crashed);
	check_options();
	for (int i = 0; i < CHIP_N; i++) {
		check_tables(&chips[i]);
		check_static_bar1(&chips[i]);
		check_dispatch(&chips[i]);
		check_entries(&chips[i]);
		check_others(&chips[i]);
		check_end(&chips[i]);
		check_refusals(&chips[i]);
		check_compressible(&chips[i]);
		check_caps(&chips[i]);
		check_one_side(&chips[i]);
		check_answers(&chips[i]);
	}
	fclose(others);
	fclose(peers);
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	return failed != 0;
}
