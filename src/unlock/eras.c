/* SPDX-License-Identifier: Apache-2.0 */
/* The tables: what tells the eras apart, the places, the edits. */
#include "unlock/eras.h"

#include "support/release.h"

#include <stdlib.h>

/* clang-format off */
#define NV       "src/nvidia/src/kernel/"
#define SLOTS    SWITCH_FILE
#define GP100    NV "gpu/bus/arch/pascal/kern_bus_gp100.c"
#define GH100    NV "gpu/bus/arch/hopper/kern_bus_gh100.c"
#define TU102    NV "gpu/bus/arch/turing/kern_bus_tu102.c"
#define GM107    NV "gpu/bus/arch/maxwell/kern_bus_gm107.c"
#define KERN_BUS NV "gpu/bus/kern_bus.c"
#define BIF      NV "gpu/bif/kernel_bif.c"
#define CAPS     NV "platform/p2p/p2p_caps.c"
#define GPU_OPS  NV "rmapi/nv_gpu_ops.c"
#define GMMU_FMT "src/nvidia/src/libraries/mmu/gmmu_fmt.c"
#define VIDMEM   NV "mem_mgr/video_mem.c"
#define PHYSMEM  NV "mem_mgr/phys_mem.c"
#define NV_PCI   MARKER_FILE
#define UVM      KERNEL_OPEN "nvidia-uvm/"
#define UVM_GPU  UVM "uvm_gpu.c"
#define UVM_GPU_H UVM "uvm_gpu.h"
#define UVM_VA   UVM "uvm_va_space.c"
#define UVM_MMU  UVM "uvm_mmu.c"
#define UVM_EXT  UVM "uvm_map_external.c"

#define BAR1_LINK "UVM_GPU_LINK_PCIE_BAR1"

const struct feature features[] = {
	{SLOTS, NULL, "pThis->__kbusNeedStaticBar1Mapping__ = &",
		"a static BAR1 that asks whether it is needed", ERAS(ERA_535, ERA_535)},
	{SLOTS, NULL, "pThis->__kbusIsBar1P2PCapable__ = &",
		"a static BAR1 for capable chips only", ERAS(ERA_545, ERA_545)},
	{TU102, "kbusIsStaticBar1Supported_TU102", "kbusIsStaticBar1Supported_TU102(",
		"a static BAR1 for Turing and later", ERAS(ERA_565, ERA_590)},
	{BIF, "_kbifInitRegistryOverrides", "pcieP2PType =",
		"a PCIe P2P type of its own", ERAS(ERA_575, ERA_590)},
	{GPU_OPS, "nvGpuOpsBuildExternalAllocPtes", "NvBool isBar1P2PSupported",
		"page-table entries through BAR1", ERAS(ERA_580, ERA_590)},
	{GH100, "kbusIsPcieBar1P2PMappingSupported_GH100", "PDB_PROP_KBUS_SUPPORT_BAR1_P2P_BY_DEFAULT",
		"BAR1 P2P by default on some chips", ERAS(ERA_590, ERA_590)},
};
const size_t feature_n = sizeof(features) / sizeof(features[0]);

const struct condition_test condition_tests[WHEN_N] = {
	/* Releases that ask have a call with the fourth argument next to the other, in an #if. */
	[WHEN_NOT_ASKED] = {NV_PCI, "nv_resize_pcie_bars",
		"pci_resize_resource(pci_dev, NV_GPU_BAR1, requested_size, 0)", false},
	[WHEN_BAR1_LINK] = {UVM_GPU_H, NULL, BAR1_LINK, true},
	[WHEN_NO_BAR1_LINK] = {UVM_GPU_H, NULL, BAR1_LINK, false},
	[WHEN_UNMAP_INVALIDATES] = {UVM_EXT, NULL, "uvm_mmu_l2_invalidate(mapped_gpu, aperture)", true},
};

/* An era is recognised by what the sources hold, never by a number; these are for people. */
const struct era_name era_names[ERA_N] = {
	[ERA_535] = {"535", "535.43.02", "535.288.01"},
	[ERA_545] = {"545", "545.23.06", "560.35.03"},
	[ERA_565] = {"565", "565.57.01", "570.211.01"},
	[ERA_575] = {"575", "575.51.02", "575.64.05"},
	[ERA_580] = {"580", "580.65.06", "580.142"},
	[ERA_590] = {"590", "590.44.01", "595.45.04"},
};

static const struct release *release_of(enum era e)
{
	return release_find((int)strtol(era_names[e].name, NULL, 10));
}

bool era_is_before_all(const char *release)
{
	return release && !release_find((int)strtol(release, NULL, 10))->keys;
}

const char *era_keys(enum era e)
{
	return release_of(e)->keys;
}

bool era_untested(enum era e)
{
	return release_of(e)->untested;
}

/* ---- what is inserted ---- */

/* Hopper and later, page-table entries of version 3: Ada's number is behind Hopper's. */
#define FROM_HOPPER_ON(gpu) \
	"((gpuGetChipArch(" gpu ") >= GPU_ARCHITECTURE_HOPPER) && " \
	"(gpuGetChipArch(" gpu ") != GPU_ARCHITECTURE_ADA))"

#define DISPATCH(verb) \
	"// onehop: PCIe through BAR1, as chips from Hopper on have it\n" \
	"if (FLD_TEST_DRF(_P2PAPI, _ATTRIBUTES, _CONNECTION_TYPE, _PCIE_BAR1, attributes))\n" \
	"{\n" \
	"    return kbus" verb "P2PMappingForBar1P2P_HAL(pGpu0, pKernelBus0, pGpu1, pKernelBus1, attributes);\n" \
	"}\n" \
	"\n"

#define PTE_LOCALS \
	"\n// onehop: where a peer's memory begins on the bus, its first mapped byte, and how much is mapped" \
	"\nNvU64 onehopBase = 0, onehopStart = 0, onehopSize = 0;"

/*
 * The base is the peer's BAR1 as this GPU sees it: a bus address, or an I/O virtual one. 535 maps
 * memory from behind the console on, at the offset that it has in memory; later ones map it from its start.
 */
#define PTE_BASE(start, refuse) \
	"\n" \
	"\n// onehop: memory of a GPU that is mapped to this one through PCIe BAR1" \
	"\nif ((aperture == GMMU_APERTURE_PEER) &&" \
	"\n    (memdescGetAddressSpace(pMemDesc) == ADDR_FBMEM) &&" \
	"\n    (pMemDesc->pGpu != pMappingGpu) &&" \
	"\n    kbusHasPcieBar1P2PMapping_HAL(pMappingGpu, GPU_GET_KERNEL_BUS(pMappingGpu)," \
	"\n                                  pMemDesc->pGpu, GPU_GET_KERNEL_BUS(pMemDesc->pGpu)))" \
	"\n{" \
	refuse \
	"\n    status = kbusGetBar1P2PDmaInfo_HAL(pMappingGpu, pMemDesc->pGpu," \
	"\n                                       GPU_GET_KERNEL_BUS(pMemDesc->pGpu)," \
	"\n                                       &onehopBase, &onehopSize);" \
	"\n    if (status != NV_OK)" \
	"\n        return status;" \
	"\n    if ((onehopBase == NV_U64_MAX) || (onehopSize == 0))" \
	"\n        return NV_ERR_INVALID_STATE;" \
	start \
	"\n    if (((onehopBase - onehopStart) & (mappingPageSize - 1)) != 0)" \
	"\n        return NV_ERR_INVALID_ADDRESS;" \
	"\n    // Before Blackwell, no peer takes atomics from outside" \
	"\n    aperture = (gpuGetChipArch(pMemDesc->pGpu) > GPU_ARCHITECTURE_ADA) ?" \
	"\n               GMMU_APERTURE_SYS_COH : GMMU_APERTURE_SYS_NONCOH;" \
	"\n}"

#define PTE_START_535 \
	"\n    onehopStart = GPU_GET_KERNEL_BUS(pMemDesc->pGpu)->bar1[GPU_GFID_PF].staticBar1.base;"

/*
 * The static mapping is of the uncompressed kind: a peer would read compressed bytes. And in entries of version
 * 2 the line of compression tags replaces bits 40 and up of the address: it would lead into the host's memory.
 */
#define PTE_COMPRESSED \
	"\n    if (memmgrIsKind_HAL(pMemoryManager, FB_IS_KIND_COMPRESSIBLE, kind))" \
	"\n        return NV_ERR_NOT_SUPPORTED;"
#define PTE_COMPRESSED_2 \
	"\n    if ((pFmt->version <= GMMU_FMT_VERSION_2) &&" \
	"\n        memmgrIsKind_HAL(pMemoryManager, FB_IS_KIND_COMPRESSIBLE, kind))" \
	"\n        return NV_ERR_NOT_SUPPORTED;"

#define PTE_ADDRESSES \
	"if (onehopSize != 0)\n" \
	"{\n" \
	"    for (iter = 0; iter < pteCount; iter++)\n" \
	"    {\n" \
	"        if ((physicalAddresses[iter] < onehopStart) ||\n" \
	"            (physicalAddresses[iter] - onehopStart + mappingPageSize > onehopSize))\n" \
	"        {\n" \
	"            status = NV_ERR_INVALID_ADDRESS;\n" \
	"            goto done;\n" \
	"        }\n" \
	"        physicalAddresses[iter] = physicalAddresses[iter] - onehopStart + onehopBase;\n" \
	"    }\n" \
	"}\n" \
	"else\n"

/*
 * From 580 on the driver adds the base itself, and asks for no end: what BAR1 maps of memory is whole pages of 2 MiB,
 * so the last part of memory may have no address there, and what follows the mapping in BAR1 is another's.
 */
#define BOUND(count) \
	"// onehop: memory that BAR1 does not map has no address on the bus\n" \
	"for (iter = 0; iter < " count "; iter++)\n" \
	"{\n" \
	"    if ((physicalAddresses[iter] >= dmaSize) ||\n" \
	"        (dmaSize - physicalAddresses[iter] < mappingPageSize))\n" \
	"    {\n" \
	"        status = NV_ERR_INVALID_ADDRESS;\n" \
	"        goto done;\n" \
	"    }\n" \
	"}\n"

#define PTE(what, eras, start, refuse) \
	{"pte-base", GPU_OPS, "nvGpuOpsBuildExternalAllocPtes", \
		"vol = nvGpuOpsGetExternalAllocVolatility($args);@", 1, eras, WHEN_ALWAYS, \
		PTE_BASE(start, refuse), what}

/*
 * Where options say BAR1 the driver reserves no mailbox. A pair that cannot use BAR1 either was said to work
 * through mailboxes all the same, if it was forced; the driver then takes them to be at the address ~0.
 */
#define NO_MAILBOX(says_bar1) \
	"// onehop: GPUs whose options say BAR1 have no mailbox\n" \
	"static NvBool onehopLacksMailbox(NvU32 gpuMask)\n" \
	"{\n" \
	"    NvU32   gpuInstance = 0;\n" \
	"    OBJGPU *pGpu;\n" \
	"\n" \
	"    while ((pGpu = gpumgrGetNextGpu(gpuMask, &gpuInstance)) != NULL)\n" \
	"    {\n" \
	"        if ((GPU_GET_KERNEL_BIF(pGpu)->" says_bar1 ") &&\n" \
	"            (GPU_GET_KERNEL_BUS(pGpu)->p2pPcie.writeMailboxBar1Addr == PCIE_P2P_INVALID_WRITE_MAILBOX_ADDR))\n" \
	"        {\n" \
	"            return NV_TRUE;\n" \
	"        }\n" \
	"    }\n" \
	"    return NV_FALSE;\n" \
	"}\n" \
	"\n"

#define NO_MAILBOX_ANSWER \
	"\nelse if (onehopLacksMailbox(gpuMask))" \
	"\n{" \
	"\n    *pP2PWriteCapStatus = NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED;" \
	"\n    *pP2PReadCapStatus = NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED;" \
	"\n    *pConnectivity = P2P_CONNECTIVITY_UNKNOWN;" \
	"\n}"

#define CAPS_MAPPED \
	"// onehop: whether memory of all of them is mapped for peers\n" \
	"static NvBool onehopAllMapped(NvU32 gpuMask)\n" \
	"{\n" \
	"    NvU32   gpuInstance = 0;\n" \
	"    OBJGPU *pFirstGpu = gpumgrGetNextGpu(gpuMask, &gpuInstance);\n" \
	"    OBJGPU *pGpuPeer;\n" \
	"\n" \
	"    gpuInstance = (gpumgrGetSubDeviceCount(gpuMask) > 1) ? gpuInstance : 0;\n" \
	"    while ((pGpuPeer = gpumgrGetNextGpu(gpuMask, &gpuInstance)) != NULL)\n" \
	"    {\n" \
	"        if (!kbusIsPcieBar1P2PMappingSupported_HAL(pFirstGpu, GPU_GET_KERNEL_BUS(pFirstGpu),\n" \
	"                                                   pGpuPeer, GPU_GET_KERNEL_BUS(pGpuPeer)))\n" \
	"        {\n" \
	"            return NV_FALSE;\n" \
	"        }\n" \
	"    }\n" \
	"    return NV_TRUE;\n" \
	"}\n" \
	"\n"

#define RESIZE_FUNCTION "@static int nv_resize_pcie_bars(struct pci_dev *pci_dev) {"

/*
 * The compiler chooses by the type of the kernel's function. The call is made through that very type, never
 * through a cast, so a kernel where it is neither does not compile; the branch that is not chosen would call
 * a null pointer of the other type, and leaves nothing in the object.
 */
#define RESIZE_HELPER \
	"#if defined(NV_PCI_REBAR_GET_POSSIBLE_SIZES_PRESENT)\n" \
	"// onehop: in newer kernels a fourth argument names BARs that must not move: none\n" \
	"static inline int onehop_resize_resource(struct pci_dev *pci_dev, int bar, int size)\n" \
	"{\n" \
	"    typedef int (*three_arguments)(struct pci_dev *, int, int);\n" \
	"    typedef int (*four_arguments)(struct pci_dev *, int, int, int);\n" \
	"    enum { four = __builtin_types_compatible_p(__typeof__(&pci_resize_resource), four_arguments) };\n" \
	"\n" \
	"    return __builtin_choose_expr(four,\n" \
	"        __builtin_choose_expr(four, &pci_resize_resource, (four_arguments)NULL)(pci_dev, bar, size, 0),\n" \
	"        __builtin_choose_expr(four, (three_arguments)NULL, &pci_resize_resource)(pci_dev, bar, size));\n" \
	"}\n" \
	"#endif\n" \
	"\n"

/* ---- managed memory ---- */

/*
 * The managed-memory driver makes page-table entries and copies of its own, and has no way to write down a
 * peer that is behind BAR1: up to 580 it gets a peer id that is none (255 in the 8 bits that it has for one),
 * from 590 on an aperture that only Hopper and later can encode. What it writes then leads into the GPU's own
 * memory, or to another peer. So such a pair is enabled, for mappings that the core makes, but managed memory
 * does not use it. No option switches this off: there is no card on which the stock code is right.
 */
#define MANAGED_DECLARATION \
	"\n\n// onehop: True if memory of the peer is reached through its BAR1" \
	"\nbool onehop_is_bar1_peer(uvm_gpu_t *gpu, uvm_gpu_t *peer);" \
	"\n\n// onehop: True if managed memory cannot be reached from one of the two GPUs on the other, although they" \
	"\n// are peers. Mappings that the core makes (cudaMalloc, IPC, cuMem) do not ask." \
	"\nbool " MANAGED_FUNCTION "(uvm_gpu_t *gpu0, uvm_gpu_t *gpu1);"

#define MANAGED_DEFINITION(is_bar1_peer, can_encode) \
	"// Made by onehop unlock\n" \
	"MODULE_INFO(onehop, \"managed 1\");\n" \
	"\n" \
	"bool onehop_is_bar1_peer(uvm_gpu_t *gpu, uvm_gpu_t *peer)\n" \
	"{\n" \
	is_bar1_peer \
	"}\n" \
	"\n" \
	"// onehop: whether this GPU's page-table entries and copies can name a peer through BAR1\n" \
	"static bool onehop_can_encode(uvm_gpu_t *gpu)\n" \
	"{\n" \
	can_encode \
	"}\n" \
	"\n" \
	"// Not inlined: by its name in the symbols one sees that the module has it\n" \
	"noinline bool " MANAGED_FUNCTION "(uvm_gpu_t *gpu0, uvm_gpu_t *gpu1)\n" \
	"{\n" \
	"    return onehop_is_bar1_peer(gpu0, gpu1) && !(onehop_can_encode(gpu0) && onehop_can_encode(gpu1));\n" \
	"}\n" \
	"\n"

/* Such a peer has no id: the aperture computed from that does not exist, and no GPU can name it. */
#define BAR1_PEER_BY_ID \
	"    return uvm_gpu_peer_aperture(gpu, peer) >= UVM_APERTURE_MAX ||\n" \
	"           uvm_gpu_peer_aperture(peer, gpu) >= UVM_APERTURE_MAX;\n"
#define CAN_ENCODE_NEITHER "    return false;\n"

#define BAR1_PEER_BY_LINK "    return uvm_parent_gpus_are_bar1_peers(gpu->parent, peer->parent);\n"
#define CAN_ENCODE_FROM_HOPPER_ON /* Ada's number is behind Hopper's */ \
	"    return gpu->parent->rm_info.gpuArch >= NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_GH100 &&\n" \
	"           gpu->parent->rm_info.gpuArch != NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_AD100;\n"

#define MANAGED(is_bar1_peer, can_encode, when) \
	{"managed-predicate", UVM_GPU, NULL, \
		"@uvm_aperture_t uvm_gpu_peer_aperture(uvm_gpu_t *local_gpu, uvm_gpu_t *remote_gpu) {", 1, ALL_ERAS, \
		when, MANAGED_DEFINITION(is_bar1_peer, can_encode), \
		"tells which peers managed memory cannot use; its name and the mark tell that the module knows"}

/* ---- rows ---- */

#define ANOTHER "another change is in this tree"

#define SLOT(name, eras) \
	{name, SLOTS, NULL, "pThis->__" name "__ = &@" name "_$6@;", 1, eras, WHEN_ALWAYS, name "_GH100", \
		"other chips get the function that Hopper and Blackwell have"}, \
	{name "_GH100", SLOTS, NULL, "pThis->__" name "__ = &" name "_GH100;", 1, eras, WHEN_ALWAYS, NULL, \
		"Hopper's function, and nobody else's yet"}

#define STOCK(id, file, function, pattern, count, eras) \
	{id, file, function, pattern, count, eras, WHEN_ALWAYS, NULL, ANOTHER}

#define E535 ERAS(ERA_535, ERA_535)
#define E545 ERAS(ERA_545, ERA_545)

const struct anchor anchors[] = {
	/* The core's dispatch, in all eras */
	{"create-bar1", GP100, "kbusCreateP2PMapping_GP100",
		"@if (FLD_TEST_DRF(_P2PAPI, _ATTRIBUTES, _CONNECTION_TYPE, _PCIE, attributes))", 1, ALL_ERAS,
		WHEN_ALWAYS, DISPATCH("Create"), "Turing to Ada make BAR1 connections, not only mailboxes"},
	STOCK("create-bar1-absent", GP100, "kbusCreateP2PMapping_GP100", "_PCIE_BAR1", 0, ALL_ERAS),
	{"remove-bar1", GP100, "kbusRemoveP2PMapping_GP100",
		"@if (FLD_TEST_DRF(_P2PAPI, _ATTRIBUTES, _CONNECTION_TYPE, _PCIE, attributes))", 1, ALL_ERAS,
		WHEN_ALWAYS, DISPATCH("Remove"), "connections that were made so are taken down so"},
	STOCK("remove-bar1-absent", GP100, "kbusRemoveP2PMapping_GP100", "_PCIE_BAR1", 0, ALL_ERAS),

	/* Page-table entries: native from 580 on */
	{"pte-locals", GPU_OPS, "nvGpuOpsBuildExternalAllocPtes", "NV_STATUS status = NV_OK;@", 1,
		ERAS(ERA_535, ERA_575), WHEN_ALWAYS, PTE_LOCALS, "variables of the other two edits of this function"},
	PTE("peers through BAR1 get bus addresses; 535 maps memory from behind the console on, and "
	    "compressible memory is refused since BAR1 maps it uncompressed",
		E535, PTE_START_535, PTE_COMPRESSED),
	PTE("peers through BAR1 get bus addresses; compressible memory is refused since BAR1 maps it "
	    "uncompressed", E545, "", PTE_COMPRESSED),
	PTE("peers through BAR1 get bus addresses; NVLink and mailbox peers stay as they were; compressible memory is "
	    "refused before Hopper",
		ERAS(ERA_565, ERA_575), "", PTE_COMPRESSED_2),
	{"pte-compressed", GPU_OPS, "nvGpuOpsBuildExternalAllocPtes",
		"isCompressedKind = memmgrIsKind_HAL(pMemoryManager, FB_IS_KIND_COMPRESSIBLE, kind);@", 1,
		ERAS(ERA_580, ERA_590), WHEN_ALWAYS,
		"\n\n// onehop: tags of compression would replace bits 40 and up of the address on the bus"
		"\nif (isBar1P2PSupported && isCompressedKind && (pFmt->version <= GMMU_FMT_VERSION_2))"
		"\n    return NV_ERR_NOT_SUPPORTED;",
		"compressible memory is refused before Hopper: a peer's write would go to the host's memory"},
	STOCK("pte-tags", GPU_OPS, "nvGpuOpsBuildExternalAllocPtes", "kgmmuFieldSetKindCompTags(", 1, ALL_ERAS),
	{"pte-addresses", GPU_OPS, "nvGpuOpsBuildExternalAllocPtes",
		"@kgmmuEncodePhysAddrs(pKernelGmmu, aperture, physicalAddresses, fabricBaseAddress, pteCount);", 1,
		ERAS(ERA_535, ERA_575), WHEN_ALWAYS, PTE_ADDRESSES,
		"the base is added; what lies outside of the mapped part is an error, not a wrong address"},
	{"pte-bound", GPU_OPS, "nvGpuOpsBuildExternalAllocPtes",
		"@_nvGpuOpsEncodeBar1P2PAddrs(physicalAddresses, dmaBaseAddress, pteCount);", 1, ERAS(ERA_580, ERA_590),
		WHEN_ALWAYS, BOUND("pteCount"), "what lies outside of the mapped part is an error, not a wrong address"},
	{"address-bound", GPU_OPS, "nvGpuOpsBuildExternalAllocPhysAddrs",
		"@_nvGpuOpsEncodeBar1P2PAddrs(physicalAddresses, dmaBaseAddress, physAddrCount);", 1,
		ERAS(ERA_580, ERA_590), WHEN_ALWAYS, BOUND("physAddrCount"), "the same of addresses without entries"},
	STOCK("bound-places", GPU_OPS, NULL, "_nvGpuOpsEncodeBar1P2PAddrs(", 3, ERAS(ERA_580, ERA_590)),
	STOCK("pte-done", GPU_OPS, "nvGpuOpsBuildExternalAllocPtes", "done:", 1, ALL_ERAS),
	STOCK("address-done", GPU_OPS, "nvGpuOpsBuildExternalAllocPhysAddrs", "done:", 1, ERAS(ERA_580, ERA_590)),
	STOCK("pte-aperture", GPU_OPS, "nvGpuOpsBuildExternalAllocPtes",
		"gmmuFieldSetAperture(&pPteFmt->fldAperture, aperture, pte.v8)", 2, ALL_ERAS),
	STOCK("pte-peer", GPU_OPS, "nvGpuOpsBuildExternalAllocPtes", "if (aperture == GMMU_APERTURE_PEER)", 1,
		ALL_ERAS),
	STOCK("pte-bar1-address", GPU_OPS, NULL, "bar1BusAddr", 0, ALL_ERAS),
	STOCK("pte-address-field", GMMU_FMT, "gmmuFmtPtePhysAddrFld", "return &pPte->fldAddrPeer;", 1, ALL_ERAS),

	/* Alignment of a peer's BAR1, which a console moves */
	{"alignment", GH100, "_kbusCreateStaticBar1IOMMUMapping",
		"!NV_IS_ALIGNED64(peerDmaAddr, @RM_PAGE_SIZE_512M@)", 1,
		E535 | ERAS(ERA_565, ERA_575), WHEN_ALWAYS,
		FROM_HOPPER_ON("pSrcGpu") " ?\n"
		"                     RM_PAGE_SIZE_512M : RM_PAGE_SIZE_2M",
		"a console moves the mapping by a few MiB, which pages of 2 MiB allow; whether larger ones do is "
		"tested where their entries are made"},
	STOCK("alignment-512M", GH100, "_kbusCreateStaticBar1IOMMUMapping",
		"!NV_IS_ALIGNED64(peerDmaAddr, RM_PAGE_SIZE_512M)", 1, ALL_ERAS),

	/* What a pair is said to be able to do is what it can */
	{"caps-mapped", CAPS, NULL, "@static NV_STATUS _kp2pCapsGetStatusOverPcieBar1(", 1, ERAS(ERA_545, ERA_565),
		WHEN_ALWAYS, CAPS_MAPPED, "asked by the next"},
	{"caps-forced", CAPS, "_kp2pCapsGetStatusOverPcieBar1", "if (@_kp2pCapsCheckStatusOverridesForPcie(", 1,
		ERAS(ERA_545, ERA_565), WHEN_ALWAYS, "onehopAllMapped(gpuMask) && ",
		"ForceP2P does not say yes where no memory is mapped, as in 535 and from 575 on"},
	{"caps-mailbox", CAPS, NULL, "@NV_STATUS p2pGetCapsStatus(NvU32 gpuMask,", 1, ERAS(ERA_535, ERA_565),
		WHEN_ALWAYS, NO_MAILBOX("forceP2PType == NV_REG_STR_RM_FORCE_P2P_TYPE_BAR1P2P"), "asked by the next"},
	{"caps-mailbox", CAPS, NULL, "@NV_STATUS p2pGetCapsStatus(NvU32 gpuMask,", 1, ERAS(ERA_575, ERA_590),
		WHEN_ALWAYS, NO_MAILBOX("pcieP2PType == NV_REG_STR_RM_PCIEP2P_TYPE_BAR1"), "asked by the next"},
	{"caps-neither", CAPS, "p2pGetCapsStatus", "*pConnectivity = P2P_CONNECTIVITY_PCIE_BAR1; }@", 1, ALL_ERAS,
		WHEN_ALWAYS, NO_MAILBOX_ANSWER, "neither BAR1 nor a mailbox: not supported, instead of a mailbox that is not there"},

	/* A static BAR1 for Turing to Ada: native from 565 on */
	{"static-caps", CAPS, "_kp2pCapsGetStatusOverPcieBar1",
		"@NV_CHECK_OK_OR_RETURN(LEVEL_ERROR, _p2pCapsGetHostSystemStatusOverPcieBar1(", 1, E535, WHEN_ALWAYS,
		"// onehop: ForceP2P decides here too, as in later releases\n"
		"if (_kp2pCapsCheckStatusOverridesForPcie(gpuMask, pP2PWriteCapStatus, pP2PReadCapStatus))\n"
		"{\n"
		"    return NV_OK;\n"
		"}\n"
		"\n",
		"without it reads are refused on Intel's and older AMD's processors whatever ForceP2P says"},
	STOCK("static-caps-absent", CAPS, "_kp2pCapsGetStatusOverPcieBar1",
		"_kp2pCapsCheckStatusOverridesForPcie", 0, E535),
	{"static-map", GM107, "_kbusMapAperture_GM107", "if (@pKernelBus->bar1[gfid].bStaticBar1Enabled &&", 1, E535,
		WHEN_ALWAYS, FROM_HOPPER_ON("pGpu") " &&\n    ",
		"the CPU's mappings stay as they were before Hopper: the static ones want contiguous memory and "
		"kinds of Hopper's"},
	{"static-unmap", GM107, "_kbusUnmapAperture_GM107", "if (@pKernelBus->bar1[gfid].bStaticBar1Enabled &&", 1,
		E535, WHEN_ALWAYS, FROM_HOPPER_ON("pGpu") " &&\n    ", "what was mapped so is unmapped so"},
	{"static-video-memory", VIDMEM, NULL,
		"(vgpuGetCallingContextGfid(pGpu, &gfid) == NV_OK) && pKernelBus->bar1[gfid].bStaticBar1Enabled@)", 1, E535,
		WHEN_ALWAYS, " &&\n" FROM_HOPPER_ON("pGpu"), "compressible memory is allocated as it was before Hopper"},
	{"static-physical-memory", PHYSMEM, NULL,
		"if (bCompressedKind && pKernelBus->bar1[GPU_GFID_PF].bStaticBar1Enabled@)", 1, E535, WHEN_ALWAYS,
		" &&\n    " FROM_HOPPER_ON("pGpu"), "compressible memory is allocated as it was before Hopper"},
	{"static-enabled", KERN_BUS, "kbusIsStaticBar1Enabled_IMPL",
		"@return (@(vgpuGetCallingContextGfid(pGpu, &gfid) == NV_OK) &&", 1, E545, WHEN_ALWAYS,
		"// onehop: before Hopper it is for peers only, not for the CPU's mappings and compressible memory\n"
		"return (" FROM_HOPPER_ON("pGpu") " &&\n        ",
		"the CPU's mappings and compressible memory stay as they were before Hopper"},
	{"static-first", GH100, "kbusIsPcieBar1P2PMappingSupported_GH100",
		"!@kbusIsStaticBar1Enabled(pGpu0, pKernelBus0)@", 1, E545, WHEN_ALWAYS,
		"pKernelBus0->bar1[GPU_GFID_PF].bStaticBar1Enabled", "whether peers can use it is asked of the mapping itself"},
	{"static-second", GH100, "kbusIsPcieBar1P2PMappingSupported_GH100",
		"!@kbusIsStaticBar1Enabled(pGpu1, pKernelBus1)@", 1, E545, WHEN_ALWAYS,
		"pKernelBus1->bar1[GPU_GFID_PF].bStaticBar1Enabled", "and of the other GPU's"},
	STOCK("static-direct", GM107, NULL, "kbusEnableStaticBar1Mapping_GH100", 0, E535 | E545),
	STOCK("static-old-stub", SLOTS, NULL, "&kbusStaticMapFbAperture_$6", 1, E535),
	STOCK("static-old-stub-2", SLOTS, NULL, "&kbusStaticUnmapFbAperture_$6", 1, E535),
	STOCK("static-stub", SLOTS, NULL, "&kbusUpdateStaticBar1VAMapping_$6", 1, E545),
	STOCK("static-stub-2", SLOTS, NULL, "&kbusGetStaticFbAperture_$6", 1, E545),

	/* Managed memory does not use what it cannot encode */
	{"managed-declaration", UVM_GPU_H, NULL,
		"uvm_aperture_t uvm_gpu_peer_aperture(uvm_gpu_t *local_gpu, uvm_gpu_t *remote_gpu);@", 1, ALL_ERAS,
		WHEN_ALWAYS, MANAGED_DECLARATION, "asked in the two files below"},
	MANAGED(BAR1_PEER_BY_ID, CAN_ENCODE_NEITHER, WHEN_NO_BAR1_LINK),
	MANAGED(BAR1_PEER_BY_LINK, CAN_ENCODE_FROM_HOPPER_ON, WHEN_BAR1_LINK),
	{"managed-gate", UVM_VA, "enable_peers",
		"@processor_mask_array_set(va_space->can_access, gpu0->id, gpu1->id);", 1, ALL_ERAS, WHEN_ALWAYS,
		"// onehop: enabled, but managed memory goes through the host\n"
		"if (" MANAGED_FUNCTION "(gpu0, gpu1))\n"
		"    goto onehop_not_managed;\n"
		"\n",
		"neither GPU accesses or copies managed memory of the other; the pair is enabled all the same"},
	{"managed-enabled", UVM_VA, "enable_peers", "@UVM_ASSERT(va_space_check_processors_masks(va_space));", 1,
		ALL_ERAS, WHEN_ALWAYS, "onehop_not_managed:\n", "from here on all pairs are alike"},
	{"managed-identity", UVM_MMU, "uvm_mmu_create_peer_identity_mappings",
		"if (gpu->parent->peer_copy_mode != UVM_GPU_PEER_COPY_MODE_VIRTUAL || peer->mem_info.size == 0@)", 1,
		ALL_ERAS, WHEN_ALWAYS, " ||\n    " MANAGED_FUNCTION "(gpu, peer)",
		"no map of the peer's memory for copies, which would be of the wrong memory"},
	{"unmap-cache", UVM_EXT, "uvm_ext_gpu_map_destroy", "else if (ext_gpu_map->is_sysmem@)", 1, ALL_ERAS,
		WHEN_UNMAP_INVALIDATES,
		" ||\n    (ext_gpu_map->owning_gpu && ext_gpu_map->owning_gpu != mapped_gpu &&"
		"\n     onehop_is_bar1_peer(mapped_gpu, ext_gpu_map->owning_gpu))",
		"what a GPU has cached of a peer through BAR1 counts as the system's memory, not as a peer's"},
	STOCK("managed-absent", UVM_GPU, NULL, MANAGED_FUNCTION, 0, ALL_ERAS),
	STOCK("managed-declaration-absent", UVM_GPU_H, NULL, MANAGED_FUNCTION, 0, ALL_ERAS),
	STOCK("managed-gate-absent", UVM_VA, NULL, MANAGED_FUNCTION, 0, ALL_ERAS),
	STOCK("managed-identity-absent", UVM_MMU, NULL, MANAGED_FUNCTION, 0, ALL_ERAS),
	STOCK("managed-link", UVM_GPU_H, NULL, BAR1_LINK, 1, ERAS(ERA_590, ERA_590)),
	STOCK("managed-link-absent", UVM_GPU_H, NULL, BAR1_LINK, 0, ERAS(ERA_535, ERA_580)),
	STOCK("managed-copies", UVM_VA, "enable_peers", "processor_mask_array_set(va_space->can_copy_from,", 2, ALL_ERAS),
	STOCK("managed-access", UVM_VA, "enable_peers", "processor_mask_array_set(va_space->can_access,", 2, ALL_ERAS),
	STOCK("managed-accessible", UVM_VA, "enable_peers", "processor_mask_array_set(va_space->accessible_from,", 2,
		ALL_ERAS),

	/* The switch: the chips' function table */
	SLOT("kbusNeedStaticBar1Mapping", E535),
	SLOT("kbusSetupBar1P2PCapability", E535),
	SLOT("kbusIsBar1P2PCapable", E545),
	SLOT("kbusEnableStaticBar1Mapping", E535 | E545),
	SLOT("kbusDisableStaticBar1Mapping", E535 | E545),
	SLOT("kbusGetBar1P2PDmaInfo", ALL_ERAS),
	SLOT("kbusCreateP2PMappingForBar1P2P", ALL_ERAS),
	SLOT("kbusRemoveP2PMappingForBar1P2P", ALL_ERAS),
	SLOT("kbusHasPcieBar1P2PMapping", ALL_ERAS),
	SLOT("kbusIsPcieBar1P2PMappingSupported", ALL_ERAS),

	/* Policy stays where it was: in module options */
	STOCK("policy-override", BIF, "_kbifInitRegistryOverrides", "p2pOverride = BIF_P2P_NOT_OVERRIDEN", 1, ALL_ERAS),
	STOCK("policy-type", BIF, "_kbifInitRegistryOverrides", "forceP2PType = NV_REG_STR_RM_FORCE_P2P_TYPE_DEFAULT", 1,
		ALL_ERAS),
	STOCK("policy-pcie-type", BIF, "_kbifInitRegistryOverrides", "pcieP2PType = NV_REG_STR_RM_PCIEP2P_TYPE_DEFAULT",
		1, ERAS(ERA_575, ERA_590)),
	STOCK("policy-rebar", NV_PCI, "nv_resize_pcie_bars", "if (NVreg_EnableResizableBar == 0)", 1, ALL_ERAS),

	/* The kernel's side */
	{"marker", NV_PCI, NULL, RESIZE_FUNCTION, 1, ALL_ERAS, WHEN_ALWAYS,
		"// Made by onehop unlock\nMODULE_INFO(onehop, \"unlock 2\");\n\n",
		"modinfo -F onehop tells that the module is ours"},
	{"resize-helper", NV_PCI, NULL, RESIZE_FUNCTION, 1, ALL_ERAS, WHEN_NOT_ASKED, RESIZE_HELPER,
		"pci_resize_resource has a fourth argument in newer kernels; one tree compiles for both kinds"},
	{"resize", NV_PCI, "nv_resize_pcie_bars", "@pci_resize_resource@(pci_dev, NV_GPU_BAR1, requested_size)", 1,
		ALL_ERAS, WHEN_NOT_ASKED, "onehop_resize_resource", "with as many arguments as the kernel's has"},
};
const size_t anchor_n = sizeof(anchors) / sizeof(anchors[0]);
/* clang-format on */
