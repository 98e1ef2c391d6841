/* SPDX-License-Identifier: Apache-2.0 */
/*
 * managed stock|patched: what a release's nvidia-uvm does with managed memory of two GPUs that are peers: whether
 * it uses the peer at all, and if so, where its page-table entries and copy commands lead. The functions are the
 * release's own (managed.sh takes them out of its files); what they call is here, without effect or recorded.
 *
 * The rule that all of it is checked by: what UVM allows itself leads to the peer's memory.
 *
 * Defines that managed.sh finds in the sources:
 *   PARENT_PEERS      peers are found by their parents (565 and later)
 *   PHYS_ADDRESS      a function makes a peer's address (575 and later)
 *   BAR1_LINK         BAR1 is a kind of link of its own (590 and later)
 *   SYS_NON_COHERENT  there is that aperture (580 and later)
 *   TURING_CE         Turing has copy engine code of its own (595)
 *   BIGGEST_PAGE_1    the largest page is asked of the tree alone
 *   UNMAP_INVALIDATES what is cached of a peer is dropped when it is unmapped
 */
#include "nvmisc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define UVM_ASSERT(...)     ((void)0)
#define UVM_ASSERT_MSG(...) ((void)0)
#define BUILD_BUG_ON(...)   ((void)0)
#define noinline            __attribute__((noinline))
#define MODULE_INFO(...)    struct unused_module_info

#include "types.inc"

#include "hwref/hopper/gh100/dev_mmu.h"
#include "hwref/turing/tu102/dev_mmu.h"

#include "clc5b5.h"
#include "clc6b5.h"
#include "clc8b5.h"

/* ---- what the functions know of the world ---- */

typedef NvU32 NV_STATUS;
enum { NV_OK, NV_ERR_INVALID_DEVICE, NV_ERR_NOT_COMPATIBLE };
typedef enum {
	UVM_PROT_NONE,
	UVM_PROT_READ_ONLY,
	UVM_PROT_READ_WRITE,
	UVM_PROT_READ_WRITE_ATOMIC
} uvm_prot_t;
enum {
	UVM_MMU_PTE_FLAGS_CACHED = 1,
	UVM_MMU_PTE_FLAGS_ACCESS_COUNTERS_DISABLED = 2,
	UVM_MMU_PTE_FLAGS_MASK = 3,
};
enum {
	NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_GH100 = 0x180,
	NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_AD100 = 0x190
};
#ifndef NV_MMU_PTE_KIND_GENERIC_MEMORY
#define NV_MMU_PTE_KIND_GENERIC_MEMORY 6
#endif

typedef struct {
	NvU32 value;
} uvm_gpu_id_t;
typedef unsigned long uvm_processor_mask_t;
struct list_head {
	int unused;
};
#define LIST_HEAD(name) struct list_head name = {0}

typedef struct {
	uvm_gpu_id_t id;
	uvm_gpu_peer_copy_mode_t peer_copy_mode;
	struct {
		NvU32 gpuArch;
	} rm_info;
	struct {
		NvU64 fabric_memory_window_start;
	} nvswitch_info;
	struct {
		NvU64 peer_gpa_memory_window_start;
	} peer_address_info;
} uvm_parent_gpu_t;

typedef struct {
	bool ready;
	NvU64 base;
	uvm_aperture_t aperture;
	NvU64 offset;
} uvm_gpu_identity_mapping_t;

typedef struct {
	uvm_gpu_id_t id;
	uvm_parent_gpu_t *parent;
	struct {
		NvU64 size, max_allocatable_address;
	} mem_info;
	int address_space_tree;
	uvm_gpu_identity_mapping_t peer_mapping;
} uvm_gpu_t;

typedef struct {
	NvU64 ref_count;
	uvm_gpu_link_type_t link_type;
	bool is_indirect_peer;
	NvU8 peer_ids[2];
	NvU64 bar1_p2p_dma_base_address[2], bar1_p2p_dma_size[2];
	bool bar1_p2p_pcie_atomics_enabled[2];
} peer_caps_t;
typedef peer_caps_t uvm_gpu_peer_t, uvm_parent_gpu_peer_t;

typedef struct {
	struct {
		int big_page_size;
	} page_tables;
} uvm_gpu_va_space_t;
typedef struct {
	int unused;
} uvm_va_range_t;

enum { GPUS = 2, PROCESSORS = 1 + GPUS };

typedef struct {
	int lock;
	uvm_processor_mask_t registered_gpus;
	unsigned long enabled_peers;
	uvm_processor_mask_t can_access[PROCESSORS], accessible_from[PROCESSORS],
		can_copy_from[PROCESSORS], has_nvlink[PROCESSORS], has_fast_link[PROCESSORS],
		has_native_atomics[PROCESSORS], indirect_peers[PROCESSORS];
} uvm_va_space_t;

static struct {
	peer_caps_t peers[1];
} g_uvm_global;
static bool smc_peers;

static uvm_gpu_peer_t *uvm_gpu_peer_caps(const uvm_gpu_t *a, const uvm_gpu_t *b)
{
	return g_uvm_global.peers;
}
static uvm_parent_gpu_peer_t *parent_gpu_peer_caps(const uvm_parent_gpu_t *a,
						   const uvm_parent_gpu_t *b)
{
	return g_uvm_global.peers;
}
static uvm_gpu_link_type_t uvm_parent_gpu_peer_link_type(uvm_parent_gpu_t *a, uvm_parent_gpu_t *b)
{
	return g_uvm_global.peers[0].link_type;
}
static bool uvm_gpus_are_smc_peers(const uvm_gpu_t *a, const uvm_gpu_t *b)
{
	return smc_peers;
}
static bool uvm_gpus_are_nvswitch_connected(const uvm_gpu_t *a, const uvm_gpu_t *b)
{
	return false;
}
static bool uvm_parent_gpus_are_nvswitch_connected(const uvm_parent_gpu_t *a,
						   const uvm_parent_gpu_t *b)
{
	return false;
}
static bool uvm_parent_gpus_are_direct_connected(const uvm_parent_gpu_t *a,
						 const uvm_parent_gpu_t *b)
{
	return false;
}
static bool uvm_parent_gpus_are_nvlink_direct_connected(const uvm_parent_gpu_t *a,
							const uvm_parent_gpu_t *b)
{
	return false;
}

#define uvm_id_value(id)        ((id).value)
#define uvm_parent_id_value(id) ((id).value)
#define uvm_id_cmp(a, b)        ((int)(a).value - (int)(b).value)
#define uvm_parent_id_cmp(a, b) uvm_id_cmp(a, b)
#define uvm_gpu_name(gpu)       "a GPU"

typedef struct {
	uvm_aperture_t aperture;
	NvU64 address;
} uvm_gpu_phys_address_t;
static uvm_gpu_phys_address_t uvm_gpu_phys_address(uvm_aperture_t aperture, NvU64 address)
{
	return (uvm_gpu_phys_address_t){aperture, address};
}

static void processor_mask_array_set(uvm_processor_mask_t *masks, uvm_gpu_id_t of, uvm_gpu_id_t id)
{
	masks[of.value] |= 1ul << id.value;
}
static void processor_mask_array_clear(uvm_processor_mask_t *masks, uvm_gpu_id_t of,
				       uvm_gpu_id_t id)
{
	masks[of.value] &= ~(1ul << id.value);
}
static bool uvm_processor_mask_test(const uvm_processor_mask_t *mask, uvm_gpu_id_t id)
{
	return *mask >> id.value & 1;
}
static bool va_space_check_processors_masks(uvm_va_space_t *space)
{
	return true;
}

/* One pair, one index. */
#define uvm_gpu_peer_table_index(a, b)      0
#define uvm_gpu_pair_index(a, b)            0
#define test_bit(bit, map)                  (*&(map) >> (bit)&1)
#define __set_bit(bit, map)                 ((map) |= 1ul << (bit))
#define __clear_bit(bit, map)               ((map) &= ~(1ul << (bit)))
#define uvm_assert_rwsem_locked_write(lock) ((void)0)
#define uvm_assert_mutex_locked(lock)       ((void)0)
#define uvm_gpu_va_space_get(space, gpu)    ((uvm_gpu_va_space_t *)NULL)
#define uvm_for_each_va_range(range, space) for ((range) = NULL; (range);)
#define uvm_va_range_disable_peer(...)      ((void)0)
#define uvm_va_range_enable_peer(...)       NV_OK
#define enable_egm_peers(...)               ((void)0)
#define disable_egm_peers(...)              ((void)0)
#define list_empty(list)                    true

#define MiB                       (1ull << 20)
#define UVM_PMM_ALLOC_FLAGS_EVICT 0
#define UVM_PEER_IDENTITY_VA_SIZE (1ull << 40)
#define UVM_ALIGN_UP(value, to)   (((value) + (to)-1) / (to) * (to))
#ifdef BIGGEST_PAGE_1
#define uvm_mmu_biggest_page_size(tree) (2 * MiB)
#endif
#define mmu_biggest_page_size(tree, aperture) (2 * MiB)

static uvm_gpu_identity_mapping_t *uvm_gpu_get_peer_mapping(uvm_gpu_t *gpu, uvm_gpu_id_t id)
{
	return &gpu->peer_mapping;
}
static NV_STATUS create_identity_mapping(uvm_gpu_t *gpu, uvm_gpu_identity_mapping_t *mapping,
					 NvU64 size, uvm_aperture_t aperture, NvU64 offset,
					 NvU64 page_size, int flags)
{
	*mapping = (uvm_gpu_identity_mapping_t){true, 0, aperture, offset};
	return NV_OK;
}

#ifdef UNMAP_INVALIDATES
typedef int uvm_membar_t;
typedef struct {
	int lock, tree;
} uvm_ext_gpu_range_tree_t;
typedef struct {
	uvm_va_range_t va_range;
	unsigned long mapped_gpus;
} uvm_va_range_external_t;
typedef struct {
	int tracker;
	struct {
		int rb_node;
	} node;
	void *mem_handle;
	uvm_gpu_t *gpu, *owning_gpu;
	bool need_l2_invalidate_at_unmap, is_egm, is_sysmem;
	struct {
		void *ranges;
	} pt_range_vec;
	int deferred_free;
} uvm_ext_gpu_map_t;
enum { UVM_DEFERRED_FREE_OBJECT_TYPE_EXTERNAL_ALLOCATION };

static uvm_ext_gpu_range_tree_t range_tree_of_all;
static uvm_aperture_t invalidated;
static NV_STATUS uvm_mmu_l2_invalidate(uvm_gpu_t *gpu, uvm_aperture_t aperture)
{
	invalidated = aperture;
	return NV_OK;
}
#define uvm_tracker_wait_deinit(tracker)          0
#define RB_EMPTY_NODE(node)                       0
#define uvm_kvfree(pointer)                       ((void)0)
#define uvm_ext_gpu_range_tree(range, gpu)        (&range_tree_of_all)
#define uvm_range_tree_remove(tree, node)         ((void)0)
#define va_range_downgrade_membar(range, map)     0
#define uvm_page_table_range_vec_clear_ptes(v, m) ((void)(m))
#define uvm_page_table_range_vec_deinit(v)        ((void)0)
#define uvm_gpu_retain(gpu)                       ((void)0)
#define uvm_deferred_free_object_add(...)         ((void)0)
#define uvm_ext_gpu_map_free_internal(map)        ((void)0)
#define uvm_range_tree_empty(tree)                false
#define uvm_processor_mask_clear_atomic(mask, id) ((void)0)
#endif

uvm_aperture_t uvm_gpu_peer_aperture(uvm_gpu_t *, uvm_gpu_t *);
bool uvm_parent_gpus_are_bar1_peers(const uvm_parent_gpu_t *, const uvm_parent_gpu_t *);
bool onehop_is_bar1_peer(uvm_gpu_t *, uvm_gpu_t *);
bool onehop_managed_p2p_unsupported(uvm_gpu_t *, uvm_gpu_t *);

#include "functions.inc"

/* ---- where entries and commands lead ---- */

enum architecture {
	TURING = 0x160,
	AMPERE = 0x170,
	HOPPER = 0x180,
	ADA = 0x190,
	BLACKWELL = 0x1a0
};
static const struct {
	const char *name;
	enum architecture number;
} architectures[] = {
	{"Turing", TURING}, {"Ampere", AMPERE},       {"Ada", ADA},
	{"Hopper", HOPPER}, {"Blackwell", BLACKWELL},
};
enum { ARCHITECTURES = sizeof(architectures) / sizeof(architectures[0]) };

static bool is_version_3(enum architecture a)
{
	return a == HOPPER || a == BLACKWELL;
}

enum target { OWN_MEMORY, PEER_MEMORY, ON_THE_BUS };
static const char *const target_names[] = {"own memory", "peer", "bus"};

struct place {
	enum target target;
	NvU64 where; /* a peer's ID, or an address on the bus */
};

/* By the formats' fields: the aperture in bits 2:1, of version 2 the peer in 35:33, of 3 in 63:61. */
static struct place place_of_entry(enum architecture a, NvU64 pte)
{
	static const enum target targets[] = {OWN_MEMORY, PEER_MEMORY, ON_THE_BUS, ON_THE_BUS};
	struct place p = {targets[pte >> 1 & 3], 0};

	if (p.target == PEER_MEMORY)
		p.where = is_version_3(a) ? pte >> 61 : pte >> 33 & 7;
	if (p.target == ON_THE_BUS)
		p.where = is_version_3(a) ? (pte >> 12 & ((1ull << 40) - 1)) << 12
					  : (pte >> 8 & ((1ull << 46) - 1)) << 12;
	return p;
}

static struct place place_of_address(enum architecture a, uvm_gpu_phys_address_t at)
{
	return place_of_entry(a, (is_version_3(a) ? make_pte_hopper
						  : make_pte_turing)(at.aperture, at.address,
								     UVM_PROT_READ_WRITE, 0));
}

/* Targets of a copy engine: 0 own memory, 1 and 2 the system's, 3 a peer's with its ID in 8:6. */
static struct place place_of_copy(enum architecture a, uvm_gpu_phys_address_t at)
{
	NvU32 mode = (is_version_3(a) ? ce_aperture_hopper : ce_aperture_ampere)(at.aperture);
	NvU32 target = DRF_VAL(C6B5, _SET_SRC_PHYS_MODE, _TARGET, mode);

	if (target == NVC6B5_SET_SRC_PHYS_MODE_TARGET_PEERMEM)
		return (struct place){PEER_MEMORY,
				      DRF_VAL(C6B5, _SET_SRC_PHYS_MODE, _PEER_ID, mode)};
	if (target == NVC6B5_SET_SRC_PHYS_MODE_TARGET_LOCAL_FB)
		return (struct place){OWN_MEMORY, 0};
	return (struct place){ON_THE_BUS, at.address};
}

static uvm_gpu_phys_address_t address_of(uvm_gpu_t *gpu, uvm_gpu_t *peer, NvU64 address)
{
#ifdef PHYS_ADDRESS
	return uvm_gpu_peer_phys_address(peer, address, gpu);
#else
	return uvm_gpu_phys_address(uvm_gpu_peer_aperture(gpu, peer), address);
#endif
}

/* ---- checks ---- */

static bool patched;
static int passed, failed;

static void check(bool good, const char *what, const char *pair)
{
	printf("%s - managed memory: %s: %s\n", good ? "ok" : "FAIL", pair, what);
	*(good ? &passed : &failed) += 1;
}

/* How the two GPUs are connected, and the truth about it. */
struct pair {
	const char *name;
	enum architecture a, b;
	uvm_gpu_link_type_t link;
	NvU8 ids[2];
	NvU64 base; /* where the peer's memory begins on the bus; 0: not through BAR1 */
	bool atomics;
	bool smc;
};

static uvm_parent_gpu_t parents[GPUS];
static uvm_gpu_t gpus[GPUS];
static uvm_va_space_t space;

static uvm_gpu_peer_copy_mode_t copy_mode(enum architecture a)
{
	return a == TURING ? UVM_GPU_PEER_COPY_MODE_VIRTUAL : UVM_GPU_PEER_COPY_MODE_PHYSICAL;
}

static void make(const struct pair *p)
{
	const enum architecture numbers[GPUS] = {p->a, p->b};

	memset(&space, 0, sizeof(space));
	memset(&g_uvm_global, 0, sizeof(g_uvm_global));
	smc_peers = p->smc;
	for (NvU32 i = 0; i < GPUS; i++) {
		parents[i] =
			(uvm_parent_gpu_t){.id = {i + 1}, .peer_copy_mode = copy_mode(numbers[i])};
		parents[i].rm_info.gpuArch = numbers[i];
		gpus[i] = (uvm_gpu_t){.id = {i + 1}, .parent = &parents[i]};
		gpus[i].mem_info.size = gpus[i].mem_info.max_allocatable_address = 1024 * MiB;
		space.registered_gpus |= 1ul << (i + 1);
	}
	g_uvm_global.peers[0] = (peer_caps_t){.ref_count = 1,
					      .link_type = p->link,
					      .peer_ids = {p->ids[0], p->ids[1]}};
	for (int i = 0; p->base && i < GPUS; i++) {
		g_uvm_global.peers[0].bar1_p2p_dma_base_address[i] =
			p->base + (NvU64)i * 0x800000000;
		g_uvm_global.peers[0].bar1_p2p_dma_size[i] = 0x800000000;
		g_uvm_global.peers[0].bar1_p2p_pcie_atomics_enabled[i] = p->atomics;
	}
}

/* Where memory of the peer is for GPU i. */
static struct place truth(const struct pair *p, int i, NvU64 address)
{
	if (p->smc)
		return (struct place){OWN_MEMORY, 0};
	if (p->base)
		return (struct place){ON_THE_BUS, p->base + (NvU64)i * 0x800000000 + address};
	return (struct place){PEER_MEMORY, p->ids[i]};
}

static bool same(const char *what, struct place found, struct place wanted)
{
	bool good = found.target == wanted.target && found.where == wanted.where;

	if (!good)
		printf("# %s: leads to %s 0x%llx, not to %s 0x%llx\n", what,
		       target_names[found.target], (unsigned long long)found.where,
		       target_names[wanted.target], (unsigned long long)wanted.where);
	return good;
}

static bool allows(const uvm_processor_mask_t *masks, int of, int other)
{
	return masks[gpus[of].id.value] >> gpus[other].id.value & 1;
}

/* All that UVM allows GPU i with the other's memory leads there. */
static bool leads_home(const struct pair *p, int i)
{
	static const NvU64 addresses[] = {0, 64 * 1024, 513 * MiB};
	enum architecture a = i ? p->b : p->a;
	bool good = true;

	for (unsigned k = 0; k < sizeof(addresses) / sizeof(addresses[0]); k++) {
		uvm_gpu_phys_address_t at = address_of(&gpus[i], &gpus[!i], addresses[k]);
		struct place home = truth(p, i, addresses[k]);

		if (allows(space.can_access, i, !i) || allows(space.accessible_from, !i, i))
			good = same("page-table entry", place_of_address(a, at), home) && good;
		if (allows(space.can_copy_from, i, !i) &&
		    copy_mode(a) == UVM_GPU_PEER_COPY_MODE_PHYSICAL)
			good = same("copy", place_of_copy(a, at), home) && good;
		if (gpus[i].peer_mapping.ready) {
			at = uvm_gpu_phys_address(gpus[i].peer_mapping.aperture,
						  gpus[i].peer_mapping.offset + addresses[k]);
			good = same("map for copies", place_of_address(a, at), home) && good;
		}
	}
	return good;
}

static int count_allowed(void)
{
	int n = 0;

	for (int i = 0; i < GPUS; i++)
		n += allows(space.can_access, i, !i) + allows(space.accessible_from, i, !i) +
		     allows(space.can_copy_from, i, !i);
	return n;
}

/* Managed memory of the pair is to use P2P: where it can be encoded. */
static bool should_be_open(const struct pair *p)
{
#ifdef BAR1_LINK
	return !p->base || (is_version_3(p->a) && is_version_3(p->b));
#else
	return !p->base;
#endif
}

static void check_pair(const struct pair *p)
{
	bool open = should_be_open(p), maps = copy_mode(p->a) == UVM_GPU_PEER_COPY_MODE_VIRTUAL;
	NV_STATUS status;

	make(p);
	status = uvm_mmu_create_peer_identity_mappings(&gpus[0], &gpus[1]);
	status |= uvm_mmu_create_peer_identity_mappings(&gpus[1], &gpus[0]);
	check(status == NV_OK, "the pair is retained", p->name);
	status = enable_peers(&space, &gpus[0], &gpus[1]);
	check(status == NV_OK && space.enabled_peers,
	      "the pair is enabled, so external mappings keep P2P", p->name);
	check(count_allowed() == (open ? 6 : 0),
	      open ? "both GPUs may access and copy" : "neither GPU may access or copy", p->name);
	check(gpus[0].peer_mapping.ready == (open && maps),
	      open && maps ? "a map for copies" : "no map for copies", p->name);
	check(leads_home(p, 0) && leads_home(p, 1), "what is allowed leads to the peer's memory",
	      p->name);
	check(allows(space.has_native_atomics, 0, 1) ==
		      (p->link >= UVM_GPU_LINK_NVLINK_1 || p->smc),
	      "atomics only where NVLink or the GPU itself has them", p->name);
	disable_peers(&space, &gpus[0], &gpus[1], NULL);
	check(!space.enabled_peers && count_allowed() == 0, "and it ends", p->name);
}

static void check_unmapping(const struct pair *p)
{
#ifdef UNMAP_INVALIDATES
	for (int i = 0; i < 4; i++) {
		bool is_sysmem = i == 1, own = i == 2, egm = i == 3;
		uvm_ext_gpu_map_t map = {.gpu = &gpus[0],
					 .need_l2_invalidate_at_unmap = true,
					 .is_sysmem = is_sysmem,
					 .is_egm = egm,
					 .owning_gpu = is_sysmem ? NULL
						       : own     ? &gpus[0]
								 : &gpus[1]};
		uvm_va_range_external_t range = {{0}, 0};
		bool system = is_sysmem || (i == 0 && p->base);

		make(p);
		invalidated = UVM_APERTURE_MAX;
		uvm_ext_gpu_map_destroy(&range, &map, NULL);
		check(system ? invalidated == UVM_APERTURE_SYS : invalidated == UVM_APERTURE_PEER_0,
		      is_sysmem ? "cached system memory is dropped as such"
		      : egm     ? "cached EGM is dropped as a peer's"
		      : own     ? "own memory as ever"
		      : system  ? "cached memory behind BAR1 is dropped as the system's"
				: "cached peer memory is dropped as a peer's",
		      p->name);
	}
#endif
}

static uvm_gpu_link_type_t bar1_link(void)
{
#ifdef BAR1_LINK
	return UVM_GPU_LINK_PCIE_BAR1;
#else
	return UVM_GPU_LINK_PCIE;
#endif
}

static void check_bar1(enum architecture a, enum architecture b, const char *name, bool atomics,
		       NvU8 id0, NvU8 id1)
{
	struct pair p = {.name = name,
			 .a = a,
			 .b = b,
			 .link = bar1_link(),
			 .ids = {id0, id1},
			 .base = 0x6000000000,
			 .atomics = atomics};

	/* Stock has no such peers before Hopper */
	if (!patched && !(is_version_3(a) && is_version_3(b)))
		return;
#ifndef BAR1_LINK
	if (!patched)
		return;
#endif
	check_pair(&p);
	if (patched)
		check_unmapping(&p);
}

static void check_architectures(int i, int k)
{
	enum architecture a = architectures[i].number, b = architectures[k].number;
	char name[160];

#define NAME(how)                                                                                  \
	(snprintf(name, sizeof(name), "%s and %s, %s", architectures[i].name,                      \
		  architectures[k].name, how),                                                     \
	 name)
	check_bar1(a, b, NAME("BAR1"), false, 255, 255);
#ifdef BAR1_LINK
	check_bar1(a, b, NAME("BAR1 with atomics"), true, 255, 255);
#else
	if (i == k) {
		check_bar1(a, b, NAME("BAR1, one has a peer ID"), false, 255, 3);
		check_bar1(a, b, NAME("BAR1, the other has a peer ID"), false, 3, 255);
	}
#endif
	if (i != k)
		return;
	for (NvU8 id = 0; id < 8; id++) {
		struct pair p = {.name = NAME("mailbox"),
				 .a = a,
				 .b = b,
				 .link = UVM_GPU_LINK_PCIE,
				 .ids = {id, 7 - id}};

		check_pair(&p);
		check_unmapping(&p);
	}
	struct pair p = {.name = NAME("NVLink"),
			 .a = a,
			 .b = b,
			 .link = UVM_GPU_LINK_NVLINK_3,
			 .ids = {2, 5}};

	check_pair(&p);
#undef NAME
#ifdef PARENT_PEERS
	struct pair smc = {.name = "parts of one GPU",
			   .a = HOPPER,
			   .b = HOPPER,
			   .link = UVM_GPU_LINK_INVALID,
			   .smc = true};

	check_pair(&smc);
#endif
}

#ifdef TURING_CE
/* Turing copies from peers by virtual addresses: its physical ones are its own memory and the system's. */
static void check_turing_copies(void)
{
	NvU32 own =
		DRF_VAL(C5B5, _SET_SRC_PHYS_MODE, _TARGET, ce_aperture_turing(UVM_APERTURE_VID));
	NvU32 system =
		DRF_VAL(C5B5, _SET_SRC_PHYS_MODE, _TARGET, ce_aperture_turing(UVM_APERTURE_SYS));

	check(own == NVC5B5_SET_SRC_PHYS_MODE_TARGET_LOCAL_FB &&
		      system == NVC5B5_SET_SRC_PHYS_MODE_TARGET_COHERENT_SYSMEM,
	      "copies to and from own and system memory", "Turing");
}
#endif

int main(int argc, char **argv)
{
	patched = argc == 2 && !strcmp(argv[1], "patched");
	if (argc != 2 || (!patched && strcmp(argv[1], "stock"))) {
		printf("usage: managed stock|patched\n");
		return 2;
	}
	for (int i = 0; i < ARCHITECTURES; i++)
		for (int k = 0; k < ARCHITECTURES; k++)
			check_architectures(i, k);
#ifdef TURING_CE
	check_turing_copies();
#endif
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	return failed != 0;
}
