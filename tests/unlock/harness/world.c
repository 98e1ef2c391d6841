/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs, and what the driver's objects call that is not among the objects. */
#include "world.h"

/* The driver has headers of its own for all of these. */
void *calloc(unsigned long, unsigned long);
void free(void *);
void *memset(void *, int, unsigned long);
void *memcpy(void *, const void *, unsigned long);
int printf(const char *, ...);
char *getenv(const char *);

struct world world;
static OBJSYS system_object;
OBJSYS *g_pSys = &system_object;

#ifdef CHILDREN_NAMED
#define ENGINES(gpu) ((gpu)->children.named)
#else
#define ENGINES(gpu) (*(gpu))
#endif

/* Indirect calls go through these in the driver. */
#define THUNK(reg)                                                                                 \
	__asm__(".globl __x86_indirect_thunk_" #reg "\n__x86_indirect_thunk_" #reg ": jmp "        \
		"*%" #reg)
THUNK(rax);
THUNK(rbx);
THUNK(rcx);
THUNK(rdx);
THUNK(rsi);
THUNK(rdi);
THUNK(rbp);
THUNK(r8);
THUNK(r9);
THUNK(r10);
THUNK(r11);
THUNK(r12);
THUNK(r13);
THUNK(r14);
THUNK(r15);

struct card *world_card(const OBJGPU *gpu)
{
	for (int i = 0; i < WORLD_GPUS; i++)
		if (world.cards[i].gpu == gpu)
			return &world.cards[i];
	return NULL;
}

NvU64 world_memory_at(const struct card *owner, NvU64 address)
{
	NvU64 offset = address - (world.setup.iova ? owner->iova : owner->bar1_bus);

	if (offset < owner->mapped_bar1 || offset >= owner->mapped_bar1 + owner->mapped_size)
		return NV_U64_MAX;
	return owner->mapped_memory + (offset - owner->mapped_bar1);
}

/* ---- memory, messages, locks ---- */

void *_portMemAllocNonPagedUntracked(NvLength length)
{
	return calloc(1, length);
}

void *portMemAllocNonPaged(NvLength length)
{
	return calloc(1, length);
}

void portMemFree(void *p)
{
	free(p);
}

void *portMemSet(void *p, NvU8 value, NvLength length)
{
	return memset(p, value, length);
}

void *portMemCopy(void *to, NvLength to_length, const void *from, NvLength from_length)
{
	(void)to_length;
	return memcpy(to, from, from_length);
}

void nvDbg_Printf(const char *file, int line, const char *function, int level, const char *format,
		  ...)
{
	if (getenv("HARNESS_VERBOSE"))
		printf("# driver: %s:%d %s: %s", file, line, function, format);
	(void)level;
}

static void assertion(const char *what, const char *file, NvU32 line)
{
	world.asserts++;
	if (getenv("HARNESS_VERBOSE"))
		printf("# driver's assertion: %s:%u %s\n", file, line, what);
}

void nvAssertFailedNoLog(const char *what, const char *file, NvU32 line)
{
	assertion(what, file, line);
}

void nvAssertOkFailedNoLog(NvU32 status, const char *what, const char *file, NvU32 line)
{
	(void)status;
	assertion(what, file, line);
}

void nvCheckFailedNoLog(NvU32 level, const char *what, const char *file, NvU32 line)
{
	(void)level, (void)what, (void)file, (void)line;
}

void nvCheckOkFailedNoLog(NvU32 level, NvU32 status, const char *what, const char *file, NvU32 line)
{
	(void)level, (void)status, (void)what, (void)file, (void)line;
}

NvBool nvDbgBreakpointEnabled(void)
{
	return NV_FALSE;
}

NvU64 osGetPageSize(void)
{
	return 4 * KiB;
}

void portSyncRwLockAcquireRead(PORT_RWLOCK *lock)
{
	(void)lock;
}

void portSyncRwLockReleaseRead(PORT_RWLOCK *lock)
{
	(void)lock;
}

/* No registry key is set: what they would set is set in the objects. */
NV_STATUS osReadRegistryDword(OBJGPU *gpu, const char *name, NvU32 *value)
{
	(void)gpu, (void)name, (void)value;
	return NV_ERR_OBJECT_NOT_FOUND;
}

/* Each object is of the class that it is asked to be. */
Dynamic *__nvoc_dynamicCast(Dynamic *object, const NVOC_CLASS_INFO *class)
{
	(void)class;
	return object;
}

/* Engines ask what GPU they belong to; the only ones that do are of the one that makes entries. */
Dynamic *objFindAncestor_IMPL(Dynamic *object, NVOC_CLASS_ID class)
{
	(void)object, (void)class;
	return (Dynamic *)world.cards[0].gpu;
}

OBJGPU *gpuEngineGetGpu(Object *object)
{
	(void)object;
	return world.cards[0].gpu;
}

/* ---- other GPUs, the system ---- */

OBJGPU *gpumgrGetNextGpu(NvU32 mask, NvU32 *start)
{
	for (NvU32 i = *start; i < WORLD_GPUS; i++) {
		if (mask & (1u << i)) {
			*start = i + 1;
			return world.cards[i].gpu;
		}
	}
	*start = WORLD_GPUS;
	return NULL;
}

NvU32 gpumgrGetSubDeviceCount(NvU32 mask)
{
	return (NvU32)__builtin_popcount(mask);
}

NvBool gpumgrCheckIndirectPeer_IMPL(OBJGPU *a, OBJGPU *b)
{
	(void)a, (void)b;
	return NV_FALSE;
}

RmPhysAddr gpumgrGetGpuPhysFbAddr(OBJGPU *gpu)
{
	return world_card(gpu)->bar1_bus;
}

NV_STATUS vgpuGetCallingContextGfid(OBJGPU *gpu, NvU32 *gfid)
{
	(void)gpu;
	*gfid = 0;
	return NV_OK;
}

NvU32 gpuGetPhysAddrWidth_TU102(OBJGPU *gpu, NV_ADDRESS_SPACE space)
{
	(void)gpu, (void)space;
	return 47;
}

NvBool kmigmgrIsMIGNvlinkP2PSupported_IMPL(OBJGPU *gpu, struct KernelMIGManager *manager)
{
	(void)gpu, (void)manager;
	return NV_TRUE;
}

NvU32 kfifoGetMaxChannelsInSystem_IMPL(OBJGPU *gpu, struct KernelFifo *fifo)
{
	(void)gpu, (void)fifo;
	return 2048;
}

void kfifoGetUserdSizeAlign_GM107(struct KernelFifo *fifo, NvU32 *size, NvU32 *shift)
{
	(void)fifo;
	if (size)
		*size = 512;
	if (shift)
		*shift = 9;
}

/* No NVLink, whatever form the mask of its links has */
void *knvlinkGetDiscoveredLinkMask_IMPL(OBJGPU *gpu, struct KernelNvlink *nvlink)
{
	(void)gpu, (void)nvlink;
	return NULL;
}

KernelFifo *gpuGetKernelFifoShared_IMPL(OBJGPU *gpu)
{
	return ENGINES(gpu).pKernelFifo;
}

NvBool gpuIsCCFeatureEnabled_IMPL(OBJGPU *gpu)
{
	(void)gpu;
	return NV_FALSE;
}

NvBool hypervisorIsVgxHyper_IMPL(void)
{
	return NV_FALSE;
}

/* ---- memory of the GPUs ---- */

NvU64 memmgrGetClientFbAddrSpaceSize_IMPL(OBJGPU *gpu, MemoryManager *manager)
{
	(void)gpu, (void)manager;
	return world.setup.fb_size;
}

NV_STATUS memmgrGetKindComprForGpu_KERNEL(MemoryManager *manager, MEMORY_DESCRIPTOR *memory,
					  OBJGPU *gpu, NvU64 offset, NvU32 *kind,
					  COMPR_INFO *compression)
{
	(void)manager, (void)gpu, (void)offset;
	*kind = memory->_pteKind;
	memset(compression, 0, sizeof(*compression));
	compression->kind = *kind;
	if (*kind == NV_MMU_PTE_KIND_GENERIC_MEMORY_COMPRESSIBLE) {
		compression->compPageShift = 18;
		compression->bPhysBasedComptags = NV_TRUE;
		compression->compTagLineMin = 1;
	}
	return NV_OK;
}

/* Tags of compression are the hardware's own matter; entries have the line 1. */
const MEMORY_SYSTEM_STATIC_CONFIG *kmemsysGetStaticConfig_IMPL(OBJGPU *gpu,
							       KernelMemorySystem *system)
{
	static MEMORY_SYSTEM_STATIC_CONFIG config;

	(void)gpu, (void)system;
	config.bUseRawModeComptaglineAllocation = NV_TRUE;
	return &config;
}

NV_STATUS vgpuIsCallingContextPlugin(OBJGPU *gpu, NvBool *is_plugin)
{
	(void)gpu;
	*is_plugin = NV_FALSE;
	return NV_OK;
}

NvU32 memmgrGetHwPteKindFromSwPteKind_TU102(OBJGPU *gpu, MemoryManager *manager, NvU32 kind)
{
	(void)gpu, (void)manager;
	return kind;
}

const GMMU_FMT *gvaspaceGetGmmuFmt_IMPL(OBJGVASPACE *space, OBJGPU *gpu)
{
	(void)space, (void)gpu;
	return world.format;
}

/* BAR1: what is mapped at a fixed place goes there, all else behind the console. */
static NV_STATUS map_in_bar1(OBJGPU *gpu, MEMORY_DESCRIPTOR *memory, NvU64 *offset, NvU64 length,
			     NvU32 flags)
{
	struct card *c = world_card(gpu);

	if (!(flags & BUS_MAP_FB_FLAGS_MAP_OFFSET_FIXED))
		*offset = RM_ALIGN_UP(world.setup.console_size, 2 * MiB);
	if (*offset + length > world.setup.bar1_size)
		return NV_ERR_NO_MEMORY;
	c->mapped_memory = memory->_pteArray[0];
	c->mapped_bar1 = *offset;
	c->mapped_size = length;
	return NV_OK;
}

#ifdef MAP_FB_OFFSETS
NV_STATUS kbusMapFbAperture_GM107(OBJGPU *gpu, KernelBus *bus, PMEMORY_DESCRIPTOR memory,
				  NvU64 start, NvU64 *offset, NvU64 *length, NvU32 flags,
				  Device *device)
{
	(void)bus, (void)start, (void)device;
	return map_in_bar1(gpu, memory, offset, *length, flags);
}
#endif

NV_STATUS kbusMapFbApertureSingle_IMPL(OBJGPU *gpu, KernelBus *bus, PMEMORY_DESCRIPTOR memory,
				       NvU64 start, NvU64 *offset, NvU64 *length, NvU32 flags,
				       Device *device)
{
	(void)bus, (void)start, (void)device;
	return map_in_bar1(gpu, memory, offset, *length, flags);
}

/* The IOMMU: a GPU's BAR1 is seen by all others at the same place. */
NV_STATUS memdescMapIommu(PMEMORY_DESCRIPTOR memory, NvU32 space)
{
	IOVAMAPPING *mapping;
	struct card *owner = world_card(memory->pGpu);

	if (!world.setup.iova)
		return NV_OK;
	mapping = calloc(1, sizeof(*mapping));
	mapping->iovaspaceId = space;
	mapping->iovaArray[0] = memory->_pteArray[0] - owner->bar1_bus + owner->iova;
	mapping->pNext = memory->_pIommuMappings;
	memory->_pIommuMappings = mapping;
	return NV_OK;
}

void memdescUnmapIommu(PMEMORY_DESCRIPTOR memory, NvU32 space)
{
	IOVAMAPPING **at = &memory->_pIommuMappings;

	while (*at && (*at)->iovaspaceId != space)
		at = &(*at)->pNext;
	if (*at)
		*at = (*at)->pNext;
}

/* ---- other kinds of connections are counted ---- */

#define CONNECTION(function, counter)                                                              \
	NV_STATUS function(OBJGPU *a, KernelBus *ba, OBJGPU *b, KernelBus *bb, NvU32 *pa,          \
			   NvU32 *pb, NvU32 attributes)                                            \
	{                                                                                          \
		(void)a, (void)ba, (void)b, (void)bb, (void)pa, (void)pb, (void)attributes;        \
		world.counter++;                                                                   \
		return NV_OK;                                                                      \
	}
#define END_OF_CONNECTION(function, counter)                                                       \
	NV_STATUS function(OBJGPU *a, KernelBus *ba, OBJGPU *b, KernelBus *bb, NvU32 pa, NvU32 pb, \
			   NvU32 attributes)                                                       \
	{                                                                                          \
		(void)a, (void)ba, (void)b, (void)bb, (void)pa, (void)pb, (void)attributes;        \
		world.counter++;                                                                   \
		return NV_OK;                                                                      \
	}

CONNECTION(kbusCreateP2PMappingForNvlink_GP100, made_nvlink)
CONNECTION(kbusCreateP2PMappingForMailbox_GM200, made_mailbox)
END_OF_CONNECTION(kbusRemoveP2PMappingForNvlink_GP100, removed_nvlink)
END_OF_CONNECTION(kbusRemoveP2PMappingForMailbox_GM200, removed_mailbox)

/* ---- the devices of a session, from 580 on ---- */

/* Every field of the device's description that is read is the architecture, or equals it here. */
static NvU32 device_words[1024];
static NODE device_node = {.Data = device_words};

NV_STATUS btreeEnumStart(NvU64 key, PNODE *node, PNODE root)
{
	(void)key, (void)root;
	for (unsigned i = 0; i < sizeof(device_words) / sizeof(*device_words); i++)
		device_words[i] = world.chip->architecture << 4;
	*node = &device_node;
	return NV_OK;
}

NV_STATUS btreeEnumNext(PNODE *node, PNODE root)
{
	(void)root;
	*node = NULL;
	return NV_OK;
}

/* ---- making ---- */

#if DRIVER_ERA >= 580
#define OWNERS GpuHalspecOwner *, RmHalspecOwner *
#else
#define OWNERS RmHalspecOwner *
#endif
void __nvoc_init_funcTable_KernelBus(KernelBus *, OWNERS);
void __nvoc_init_dataField_KernelBus(KernelBus *, OWNERS);
void __nvoc_init_funcTable_KernelGmmu(KernelGmmu *, OWNERS);
void __nvoc_init_dataField_KernelGmmu(KernelGmmu *, OWNERS);

static OBJEHEAP heap;

static OBJEHEAP *get_heap(OBJVASPACE *space)
{
	(void)space;
	return &heap;
}

static OBJVASPACE *make_space(void)
{
	OBJVASPACE *space = calloc(1, sizeof(*space));

#if HEAP_IN_VTABLE == 2
	struct NVOC_METADATA__OBJVASPACE *metadata = calloc(1, sizeof(*metadata));

	*(void **)&metadata->vtable.__vaspaceGetHeap__ = (void *)get_heap;
	space->__nvoc_metadata_ptr = metadata;
#elif HEAP_IN_VTABLE == 1
	struct NVOC_VTABLE__OBJVASPACE *table = calloc(1, sizeof(*table));

	*(void **)&table->__vaspaceGetHeap__ = (void *)get_heap;
	space->__nvoc_vtable = table;
#else
	space->__vaspaceGetHeap__ = get_heap;
#endif
	return space;
}

#ifdef NEED_INVALIDATE_SLOT
static NvBool no_invalidation(OBJGPU *gpu, KernelMemorySystem *system, NvBool is_volatile,
			      NvU32 aperture)
{
	(void)gpu, (void)system, (void)is_volatile, (void)aperture;
	return NV_FALSE;
}
#endif

/* The function tables: the driver's, for this chip and a kernel that works with firmware. */
static void make_tables(OBJGPU *gpu, KernelBus *bus, KernelGmmu *gmmu)
{
	RmHalspecOwner *owner = &gpu->__nvoc_base_RmHalspecOwner;

#if DRIVER_ERA >= 580
	ChipHal *chip = &gpu->__nvoc_base_GpuHalspecOwner.chipHal;
#else
	ChipHal *chip = &owner->chipHal;
#endif

	__nvoc_init_halspec_ChipHal(chip, world.chip->architecture, world.chip->implementation, 0);
	__nvoc_init_halspec_RmVariantHal(&owner->rmVariantHal, 2);
#if DRIVER_ERA >= 580
	__nvoc_init_funcTable_KernelBus(bus, &gpu->__nvoc_base_GpuHalspecOwner, owner);
	__nvoc_init_dataField_KernelBus(bus, &gpu->__nvoc_base_GpuHalspecOwner, owner);
	__nvoc_init_funcTable_KernelGmmu(gmmu, &gpu->__nvoc_base_GpuHalspecOwner, owner);
	__nvoc_init_dataField_KernelGmmu(gmmu, &gpu->__nvoc_base_GpuHalspecOwner, owner);
#else
	__nvoc_init_funcTable_KernelBus(bus, owner);
	__nvoc_init_dataField_KernelBus(bus, owner);
	__nvoc_init_funcTable_KernelGmmu(gmmu, owner);
	__nvoc_init_dataField_KernelGmmu(gmmu, owner);
#endif
#ifdef MAILBOX_SLOT
	bus->__kbusCreateP2PMappingForMailbox__ = kbusCreateP2PMappingForMailbox_GM200;
	bus->__kbusRemoveP2PMappingForMailbox__ = kbusRemoveP2PMappingForMailbox_GM200;
#endif
}

static MemoryManager *make_memory(void)
{
	MemoryManager *manager = calloc(1, sizeof(*manager));

	manager->Ram.fbUsableMemSize = world.setup.fb_size;
	manager->Ram.fbAddrSpaceSizeMb = world.setup.fb_size / MiB;
#ifdef IS_KIND_SLOT
	manager->__memmgrIsKind__ = memmgrIsKind_TU102;
#endif
#ifdef HW_KIND_SLOT
	manager->__memmgrGetHwPteKindFromSwPteKind__ = memmgrGetHwPteKindFromSwPteKind_TU102;
	manager->__memmgrGetSwPteKindFromHwPteKind__ = memmgrGetSwPteKindFromHwPteKind_TU102;
#endif
	return manager;
}

static KernelFifo *make_fifo(void)
{
	KernelFifo *fifo = calloc(1, sizeof(*fifo));

#ifdef USERD_SLOT
	fifo->__kfifoGetUserdSizeAlign__ = kfifoGetUserdSizeAlign_GM107;
#endif
	return fifo;
}

#ifdef C2C_SLOT
static NvBool no_c2c(OBJGPU *a, KernelBif *bif, OBJGPU *b)
{
	(void)a, (void)bif, (void)b;
	return NV_FALSE;
}
#endif

static int has_options(NvU32 index)
{
	return world.setup.options >> index & 1;
}

static KernelBif *make_bif(NvU32 index)
{
	KernelBif *bif = calloc(1, sizeof(*bif));

#ifdef C2C_SLOT
	bif->__kbifIsC2CP2PSupported__ = no_c2c;
#endif
	bif->p2pOverride = has_options(index) ? 0x11 : BIF_P2P_NOT_OVERRIDEN;
#if DRIVER_ERA >= 565
	if (has_options(index))
		bif->p2pOverride = 0x211;
#endif
	bif->forceP2PType = NV_REG_STR_RM_FORCE_P2P_TYPE_DEFAULT;
#if DRIVER_ERA >= 575
	bif->pcieP2PType = has_options(index) ? 1 : NV_REG_STR_RM_PCIEP2P_TYPE_DEFAULT;
#else
	if (has_options(index))
		bif->forceP2PType = 2;
#endif
	return bif;
}

static void make_bus(KernelBus *bus, NvU32 index)
{
	bus->totalPciBars = 2;
	bus->pciBarSizes[1] = world.setup.bar1_size;
	bus->bar1[0].pVAS = make_space();
	/* As _kbusRequiresP2PMailboxBar1_GM107 decides; where it is does not matter here */
	bus->p2pPcie.writeMailboxBar1Addr =
		has_options(index) ? PCIE_P2P_INVALID_WRITE_MAILBOX_ADDR : 64 * KiB;
	bus->bar1[0].apertureLength = world.setup.bar1_size;
#if DRIVER_ERA >= 565
	bus->bar1[0].mappableLength = world.setup.bar1_size;
#endif
#if DRIVER_ERA == 565
	bus->staticBar1ForceType = NV_REG_STR_RM_FORCE_STATIC_BAR1_DEFAULT;
#elif DRIVER_ERA == 575
	bus->staticBar1ForceType = has_options(index) ? 2 : NV_REG_STR_RM_FORCE_STATIC_BAR1_DEFAULT;
#elif DRIVER_ERA >= 580
	bus->staticBar1ForceType = NV_REG_STR_RM_FORCE_STATIC_BAR1_AUTO;
#endif
}

static void make_card(NvU32 index)
{
	struct card *c = &world.cards[index];
	OBJGPU *gpu = calloc(1, sizeof(*gpu));
	KernelGmmu *gmmu = calloc(1, sizeof(*gmmu));
	KernelMemorySystem *system = calloc(1, sizeof(*system));

	c->gpu = gpu;
	c->bus = calloc(1, sizeof(*c->bus));
	c->bif = make_bif(index);
	c->bar1_bus = world.setup.bar1_bus + index * world.setup.bar1_size;
	c->iova = world.setup.iova + index * world.setup.bar1_size;
	gpu->gpuInstance = index;
	gpu->gpuId = world.chip->architecture << 4;
	gpu->chipInfo.platformId = world.chip->architecture << 4;
	gpu->busInfo.iovaspaceId = index + 1;
#ifdef WIDTH_SLOT
	gpu->__gpuGetPhysAddrWidth__ = gpuGetPhysAddrWidth_TU102;
#endif
	make_tables(gpu, c->bus, gmmu);
	make_bus(c->bus, index);
	ENGINES(gpu).pKernelBus = c->bus;
	ENGINES(gpu).pKernelBif = c->bif;
	ENGINES(gpu).pKernelGmmu = gmmu;
	ENGINES(gpu).pMemoryManager = make_memory();
	ENGINES(gpu).pKernelMemorySystem = system;
	ENGINES(gpu).pKernelMIGManager = (void *)gpu;
	ENGINES(gpu).pKernelFifo = make_fifo();
#ifdef NEED_INVALIDATE_SLOT
	system->__kmemsysNeedInvalidateGpuCacheOnMap__ = (void *)no_invalidation;
	system->__kmemsysNeedInvalidateGpuCacheOnUnmap__ = (void *)no_invalidation;
#endif
}

void world_make(const struct chip *chip, const struct world_setup *setup)
{
	KernelGmmu *gmmu;

	memset(&world, 0, sizeof(world));
	world.chip = chip;
	world.setup = *setup;
	heap.rangeHi = setup->bar1_size - 4 * KiB - 1;
	for (NvU32 i = 0; i < WORLD_GPUS; i++)
		make_card(i);
	gmmu = ENGINES(world.cards[0].gpu).pKernelGmmu;
	kgmmuConstructEngine_IMPL(world.cards[0].gpu, gmmu, 0);
	world.format = kgmmuFmtGet(gmmu, chip->pte_version, 64 * KiB);
}

/* As kbusInitBar1_GM107 does. */
NV_STATUS world_static_bar1(struct card *c)
{
#if DRIVER_ERA == 535
	kbusSetupBar1P2PCapability_HAL(c->gpu, c->bus);
	if (!kbusNeedStaticBar1Mapping_HAL(c->gpu, c->bus))
		return NV_ERR_NOT_SUPPORTED;
	return kbusEnableStaticBar1Mapping_HAL(c->gpu, c->bus, world.setup.console_size, 0);
#elif DRIVER_ERA == 545
	if (!kbusIsBar1P2PCapable_HAL(c->gpu, c->bus, 0))
		return NV_ERR_NOT_SUPPORTED;
	return kbusEnableStaticBar1Mapping_HAL(c->gpu, c->bus, 0);
#else
	NV_STATUS status;

#ifdef STATIC_BAR1_BOOL
	status = kbusIsStaticBar1Supported_HAL(c->gpu, c->bus, 0) ? NV_OK : NV_ERR_NOT_SUPPORTED;
#else
	status = kbusIsStaticBar1Supported_HAL(c->gpu, c->bus, 0, world.setup.console_size, 0);
#endif
	if (status != NV_OK)
		return status;
#if DRIVER_ERA >= 580
	return kbusEnableStaticBar1Mapping_HAL(c->gpu, c->bus, 0,
					       RM_ALIGN_UP(world.setup.console_size, 512 * MiB));
#else
	return kbusEnableStaticBar1Mapping_HAL(c->gpu, c->bus, 0);
#endif
#endif
}
