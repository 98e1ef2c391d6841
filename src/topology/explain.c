/* SPDX-License-Identifier: Apache-2.0 */
/* Words for classes, steps, states and reasons, and the sentence that explains a link of a chain.
 */
#include "topology/topology_impl.h"

#include "base/strbuf.h"
#include "base/text.h"
#include "machine/usable.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORD(table, i) ((size_t)(i) < sizeof(table) / sizeof(*(table)) ? (table)[i] : "?")

const char *path_class_word(enum path_class c)
{
	static const char *const words[PATH_CLASS_N] = {"X",   "NV",   "PIX", "PXB",
							"PHB", "NODE", "SYS", "?"};

	return WORD(words, c);
}

const char *path_class_name(const struct path *p, char *buf, size_t size)
{
	if (p->class == PATH_NVLINK)
		snprintf(buf, size, "NV%d", (int)p->nvlinks.value);
	else
		snprintf(buf, size, "%s", path_class_word(p->class));
	return buf;
}

const char *chain_step_word(enum chain_step s)
{
	static const char *const words[CHAIN_STEP_N] = {
		"device",   "path",   "switch", "host-bridge", "iommu",
		"exposure", "driver", "nccl",   "observed",
	};

	return WORD(words, s);
}

const char *chain_state_word(enum chain_state s)
{
	static const char *const words[] = {"not-applicable", "ok", "possible", "unknown", "bad"};

	return WORD(words, s);
}

const char *pair_verdict_word(enum pair_verdict v)
{
	static const char *const words[PAIR_VERDICT_N] = {"direct", "suspect", "blocked",
							  "undecided"};

	return WORD(words, v);
}

const char *pair_verdict_text(enum pair_verdict v)
{
	static const char *const texts[PAIR_VERDICT_N] = {
		[PAIR_DIRECT] = "direct",
		[PAIR_SUSPECT] = "doubtful",
		[PAIR_BLOCKED] = "blocked",
		[PAIR_UNDECIDED] = "undecided",
	};

	return texts[v];
}

/* {names} are filled from the link, see `holes`. */
/* clang-format off */
static const struct {
	const char *word, *sentence;
} reasons[REASON_N] = {
	[REASON_NONE] = {"none", "not on this path"},
	[REASON_DEVICES_USABLE] = {"devices-usable", "both devices are usable"},
	[REASON_DEVICE_UNKNOWN] = {"device-unknown", "which driver {at} is bound to is unknown"},
	[REASON_DEVICE_OFF_BUS] = {"device-off-bus",
		"{at} no longer responds: it has fallen off the bus"},
	[REASON_DEVICE_ASLEEP] = {"device-asleep",
		"{at} is in D3cold (powered off), so its registers cannot be read until it "
		"is used"},
	[REASON_DEVICE_SET_ASIDE] = {"device-set-aside",
		"{at} is bound to {text}, which reserves it for a virtual machine"},
	[REASON_DEVICE_OTHER_DRIVER] = {"device-other-driver",
		"{at} is bound to {text}, which is not NVIDIA's driver"},
	[REASON_DEVICE_NO_DRIVER] = {"device-no-driver", "no driver is bound to {at}"},
	[REASON_DEVICE_EXCLUDED] = {"device-excluded",
		"the driver's settings exclude {at} (NVreg_ExcludedGpus)"},
	[REASON_DEVICE_PROHIBITED] = {"device-prohibited",
		"the compute mode of {at} is prohibited: no process can use it"},
	[REASON_DEVICE_FABRIC_NOT_READY] = {"device-fabric-not-ready",
		"{at} is not registered with the NVSwitch fabric, so CUDA cannot start on it"},
	[REASON_DEVICE_FABRIC_UNKNOWN] = {"device-fabric-unknown",
		"unknown whether {at} is registered with the NVSwitch fabric"},
	[REASON_DEVICE_MIG_UNKNOWN] = {"device-mig-unknown",
		"unknown whether {at} is in MIG mode"},
	[REASON_DEVICE_MIG] = {"device-mig",
		"{at} is in MIG mode: MIG instances have no P2P"},
	[REASON_DEVICE_UNDRIVEN] = {"device-undriven",
		"the loaded kernel modules do not support {at}: its chip needs the other "
		"kind (open or proprietary)"},
	[REASON_DEVICE_NO_PORT] = {"device-no-port", "no port of {at} is active"},
	[REASON_DEVICE_PORT_UNKNOWN] = {"device-port-unknown",
		"unknown whether a port of {at} is active"},
	[REASON_DEVICE_FAILED] = {"device-failed",
		"the kernel log shows that {at} {failure}"},
	[REASON_NVLINK_UP] = {"nvlink-up", "{n} NVLinks connect the two GPUs"},
	[REASON_NVLINK_DOWN] = {"nvlink-down",
		"these GPUs should be connected through NVSwitches, but no NVLink between "
		"them is active"},
	[REASON_NVLINK_UNKNOWN] = {"nvlink-unknown",
		"unknown whether NVLink connects these GPUs: the cards may have it, but the "
		"driver could not be queried"},
	[REASON_PATH_UNKNOWN] = {"path-unknown", "the PCI tree above the two devices is unknown"},
	[REASON_COMMON_BRIDGE] = {"common-bridge", "both devices are below bridge {at}"},
	[REASON_THROUGH_HOST] = {"through-host",
		"the devices share no bridge: packets pass through the CPU's host bridge"},
	[REASON_ACS_CLEAR] = {"acs-clear", "no port on the path redirects peer traffic"},
	[REASON_ACS_REQUEST_REDIRECT] = {"acs-request-redirect",
		"ACSCtl of {at} is {acs}: {bits} sends peer requests up to the root complex"},
	[REASON_ACS_COMPLETION_REDIRECT] = {"acs-completion-redirect",
		"ACSCtl of {at} is {acs}: {bits} sends completions of peer reads up to the "
		"root complex"},
	[REASON_ACS_ROOT_PORT] = {"acs-root-port",
		"ACSCtl of root port {at} is {acs}: {bits}{cost}"},
	[REASON_ACS_UNREADABLE] = {"acs-unreadable",
		"ACSCtl of {at} is unknown (needs root)"},
	[REASON_HOST_BRIDGE_KNOWN] = {"host-bridge-known",
		"the driver lists this CPU as forwarding peer traffic between its root ports"},
	[REASON_HOST_BRIDGE_WRITES_ONLY] = {"host-bridge-writes-only",
		"the driver lists this CPU for peer writes between its root ports, but not "
		"for peer reads"},
	[REASON_HOST_BRIDGE_UNKNOWN] = {"host-bridge-unknown",
		"unknown whether this CPU forwards peer traffic between its root ports"},
	[REASON_HOST_BRIDGE_NO_P2P] = {"host-bridge-no-p2p",
		"{text} does not forward peer traffic between its root ports"},
	[REASON_CROSS_SOCKET] = {"cross-socket",
		"the path crosses the interconnect between CPU sockets, which is slower and "
		"on some machines blocks peer traffic"},
	[REASON_IOMMU_OFF] = {"iommu-off", "no IOMMU translates peer traffic"},
	[REASON_IOMMU_IDENTITY] = {"iommu-identity",
		"the IOMMU passes addresses through (identity)"},
	[REASON_IOMMU_TRANSLATING] = {"iommu-translating",
		"the IOMMU translates the addresses that {at} uses{evidence}"},
	[REASON_IOMMU_FAULTS] = {"iommu-faults",
		"the kernel log shows that the IOMMU blocked accesses by {at}"},
	[REASON_IOMMU_UNKNOWN] = {"iommu-unknown",
		"the IOMMU group type of {at} is unknown"},
	[REASON_EXPOSED_NVLINK] = {"exposed-nvlink", "NVLink gives access to all of the target's memory"},
	[REASON_EXPOSED_MAILBOX] = {"exposed-mailbox",
		"{at} has mailboxes for peer traffic, so the size of BAR1 does not matter"},
	[REASON_EXPOSED_BAR1] = {"exposed-bar1", "BAR1 of {at} gives access to its memory"},
	[REASON_BAR1_SMALL] = {"bar1-small",
		"BAR1 of {at} is {mib} MiB{vram}, and peers access its memory only through "
		"BAR1"},
	[REASON_BAR1_SHIFTED] = {"bar1-shifted",
		"a console occupies the start of BAR1 of {at}, and the loaded edited modules "
		"assume that the GPU's memory starts there"},
	[REASON_BAR1_SHIFT_UNKNOWN] = {"bar1-shift-unknown",
		"unknown whether a console shifts the memory of {at} in BAR1 (matters with "
		"the loaded edited modules)"},
	[REASON_EXPOSURE_UNKNOWN] = {"exposure-unknown",
		"model, BAR1 size or memory size of {at} is unknown"},
	[REASON_DRIVER_OK] = {"driver-ok", "the driver allows peer reads and writes"},
	[REASON_DRIVER_STATUS] = {"driver-status",
		"the driver reports {status} for peer {cap}s: {meaning}"},
	[REASON_DRIVER_GEFORCE] = {"driver-geforce",
		"the driver refuses P2P over PCIe on GeForce cards ({status})"},
	[REASON_DRIVER_FORCED] = {"driver-forced",
		"ForceP2P in RegistryDwords makes the driver allow peer access, but it has "
		"no P2P mechanism for this card"},
	[REASON_DRIVER_MAILBOX] = {"driver-mailbox",
		"the driver allows peer access through a mailbox, but this card has none"},
	[REASON_DRIVER_KEYS] = {"driver-keys",
		"the registry keys for P2P through BAR1 are set for only one card of the "
		"pair, so the driver uses BAR1 or a mailbox that does not exist"},
	[REASON_DRIVER_GENERATION] = {"driver-generation",
		"the GPUs are of different generations, and CUDA refuses such pairs"},
	[REASON_DRIVER_MAPPING] = {"driver-mapping",
		"the driver allows peer access, but the kernel log shows that mapping peer "
		"memory fails"},
	[REASON_DRIVER_ABSENT] = {"driver-absent", "the nvidia driver is not loaded"},
	[REASON_DRIVER_LIBRARY] = {"driver-library",
		"the CUDA library and the loaded nvidia driver have different releases, "
		"which works only with the compatibility package (cuda-compat)"},
	[REASON_DRIVER_UNKNOWN] = {"driver-unknown", "the driver's answer is unknown"},
	[REASON_GPU_UNSUPPORTED] = {"gpu-unsupported",
		"{at} is a GeForce card, and the driver has no GPUDirect RDMA for these"},
	[REASON_RDMA_GPU_OLD] = {"rdma-gpu-old", "{at} is too old for GPUDirect RDMA"},
	[REASON_RDMA_NIC_OLD] = {"rdma-nic-old",
		"{at} is ConnectX-3 or older, which neither nvidia-peermem nor dma-buf "
		"supports"},
	[REASON_RDMA_READY] = {"rdma-ready",
		"nvidia-peermem or dma-buf gives NICs access to GPU memory"},
	[REASON_RDMA_NO_PEERMEM] = {"rdma-no-peermem",
		"NICs have no access to GPU memory: nvidia-peermem is not registered and "
		"dma-buf is not possible"},
	[REASON_RDMA_NIC_DRIVER] = {"rdma-nic-driver",
		"the driver of {at} ({text}) cannot register dma-buf memory in this kernel, "
		"and nvidia-peermem is not registered"},
	[REASON_RDMA_NIC_DRIVER_UNKNOWN] = {"rdma-nic-driver-unknown",
		"unknown whether the driver of {at} ({text}) can register dma-buf memory; "
		"nvidia-peermem is not registered"},
	[REASON_RDMA_PEERMEM_UNKNOWN] = {"rdma-peermem-unknown",
		"unknown whether the driver of {at} ({text}) supports nvidia-peermem"},
	[REASON_DMA_BUF_READY] = {"dma-buf-ready",
		"the driver exports GPU memory as dma-buf, and the NIC's driver registers it"},
	[REASON_DMA_BUF_IOMMU] = {"dma-buf-iommu",
		"the IOMMU translates for {at}, and the driver's dma-buf holds addresses of BAR1 that are not "
		"translated: writes may be lost without an error"},
	[REASON_DMA_BUF_KERNEL] = {"dma-buf-kernel",
		"this kernel cannot register dma-buf memory (needs Linux 5.12)"},
	[REASON_DMA_BUF_MODULES] = {"dma-buf-modules",
		"the driver does not export GPU memory as dma-buf (needs the open kernel "
		"modules)"},
	[REASON_DMA_BUF_UNKNOWN] = {"dma-buf-unknown",
		"unknown whether the kernel and the driver support dma-buf for GPU memory"},
	[REASON_DMA_BUF_NIC] = {"dma-buf-nic",
		"the driver of {at} ({text}) cannot register dma-buf memory in this kernel"},
	[REASON_DMA_BUF_NIC_UNKNOWN] = {"dma-buf-nic-unknown",
		"unknown whether the driver of {at} ({text}) can register dma-buf memory"},
	[REASON_PEERMEM_READY] = {"peermem-ready",
		"nvidia-peermem is registered with the RDMA core"},
	[REASON_PEERMEM_ABSENT] = {"peermem-absent", "nvidia-peermem is not loaded"},
	[REASON_PEERMEM_UNREGISTERED] = {"peermem-unregistered",
		"nvidia-peermem is loaded, but not known to be registered with the RDMA core"},
	[REASON_PEERMEM_UNKNOWN] = {"peermem-unknown",
		"unknown whether nvidia-peermem is loaded"},
	[REASON_RDMA_GATE] = {"rdma-gate",
		"the driver refuses to export the memory of {at} to devices without a common "
		"bridge (errno 524)"},
	[REASON_RDMA_GATE_UNKNOWN] = {"rdma-gate-unknown",
		"unknown whether the driver exports the memory of {at} to devices without a "
		"common bridge"},
	[REASON_NCCL_USES] = {"nccl-uses",
		"NCCL uses this path: {path} is within its level {limit}"},
	[REASON_NCCL_LEVEL] = {"nccl-level",
		"NCCL does not use this path: {path} is beyond its level {limit}"},
	[REASON_NCCL_DISABLED] = {"nccl-disabled",
		"NCCL_P2P_DISABLE=1 disables peer access in NCCL"},
	[REASON_NCCL_DEPENDS] = {"nccl-depends",
		"unknown whether NCCL uses a {path} path: that depends on its version and "
		"the CPU vendor"},
	[REASON_NCCL_SEEN] = {"nccl-seen", "an NCCL run used this path: {text}{from}"},
	[REASON_NCCL_STAGED] = {"nccl-staged",
		"an NCCL run did not use this path: {text}{from}"},
	[REASON_OBSERVED_WORKS] = {"observed-works", "a test copy arrived with correct data{from}"},
	[REASON_OBSERVED_FAST] = {"observed-fast",
		"CUDA allowed peer access and copies reached {gbps} GB/s, the full rate of "
		"this path; their data was not checked{from}"},
	[REASON_OBSERVED_NO_GAIN] = {"observed-no-gain",
		"copies with P2P on reached {gbps} GB/s, no faster than with P2P off{from}"},
	[REASON_OBSERVED_SLOW] = {"observed-slow", "copies were much slower than expected{from}"},
	[REASON_OBSERVED_DOUBTS] = {"observed-doubts",
		"a test of these GPUs got wrong data or failed with an error{from}"},
	[REASON_OBSERVED_FAILS] = {"observed-fails", "transfers failed{from}"},
};
/* clang-format on */

const char *chain_reason_word(enum chain_reason r)
{
	return (unsigned)r < REASON_N ? reasons[r].word : "?";
}

/* ---- what fills the holes ---- */

static void fill_at(const struct chain_link *l, struct strbuf *out)
{
	strbuf_puts(out, l->at ? l->at->name : "the device");
}

static void fill_n(const struct chain_link *l, struct strbuf *out)
{
	strbuf_printf(out, "%" PRId64, l->value);
}

static void fill_gbps(const struct chain_link *l, struct strbuf *out)
{
	strbuf_printf(out, "%.3g", (double)l->value / 1000);
}

static void fill_acs(const struct chain_link *l, struct strbuf *out)
{
	strbuf_printf(out, "%04x", (unsigned)l->value);
}

/* The bits that the reason is about: for completions CR alone, for requests RR and EC. */
static void fill_bits(const struct chain_link *l, struct strbuf *out)
{
	int64_t concern = l->reason == REASON_ACS_REQUEST_REDIRECT      ? PCI_ACS_RR | PCI_ACS_EC
			  : l->reason == REASON_ACS_COMPLETION_REDIRECT ? PCI_ACS_CR
									: PCI_ACS_REDIRECTS;

	pci_acs_text(l->value & concern, out);
}

static void fill_cost(const struct chain_link *l, struct strbuf *out)
{
	static const char *const tails[] = {
		[ACS_COSTS_NOTHING] = ", which has no cost while no IOMMU translates",
		[ACS_COST_UNKNOWN] = "; the cost depends on the IOMMU, whose state is unknown",
		[ACS_COSTS_TRANSLATION] = ", which costs 3 to 9 GB/s while the IOMMU translates",
		[ACS_HUNG_ELSEWHERE] =
			"; on this chipset NCCL has hung until these bits were cleared",
		[ACS_FAILED_HERE] = ", and peer access failed in a test",
	};

	strbuf_puts(out, WORD(tails, l->value2));
}

static void fill_mib(const struct chain_link *l, struct strbuf *out)
{
	strbuf_printf(out, "%" PRId64, l->value >> 20);
}

static void fill_vram(const struct chain_link *l, struct strbuf *out)
{
	if (l->value2 > 0)
		strbuf_printf(out, " for %" PRId64 " MiB of memory", l->value2 >> 20);
}

static void fill_status(const struct chain_link *l, struct strbuf *out)
{
	strbuf_puts(out, p2p_status_code(l->value));
}

static void fill_meaning(const struct chain_link *l, struct strbuf *out)
{
	static const char *const meanings[P2P_STATUS_N] = {
		[P2P_OK] = "allowed",
		[P2P_CHIPSET_NOT_SUPPORTED] = "the CPU or chipset is not on the driver's list",
		[P2P_GPU_NOT_SUPPORTED] = "no peer access with this GPU",
		[P2P_TOPOLOGY_NOT_SUPPORTED] =
			"the driver does not support the path between the two",
		[P2P_DISABLED_BY_REGKEY] = "disabled by a registry key",
		[P2P_NOT_SUPPORTED] = "not supported between these two GPUs",
		[P2P_STATUS_UNKNOWN] = "unknown to the driver",
	};

	strbuf_puts(out, WORD(meanings, l->value));
}

static void fill_cap(const struct chain_link *l, struct strbuf *out)
{
	static const char *const caps[P2P_CAP_N] = {"read", "write", "NVLink access", "atomic",
						    "PCI access"};

	strbuf_puts(out, WORD(caps, l->value2));
}

static void fill_path(const struct chain_link *l, struct strbuf *out)
{
	strbuf_puts(out, nccl_path_word((enum nccl_path)l->value));
}

static void fill_limit(const struct chain_link *l, struct strbuf *out)
{
	strbuf_puts(out, nccl_path_word((enum nccl_path)l->value2));
}

static void fill_from(const struct chain_link *l, struct strbuf *out)
{
	if (l->from)
		strbuf_printf(out, " (seen in %s)", l->from);
}

static void fill_text(const struct chain_link *l, struct strbuf *out)
{
	strbuf_puts(out, l->text ? l->text : "another");
}

static void fill_evidence(const struct chain_link *l, struct strbuf *out)
{
	static const char *const tails[] = {
		[IOMMU_NO_EVIDENCE] = ", which slows down or blocks peer traffic",
		[IOMMU_FAULT_LOGGED] = ", and the kernel log shows its faults",
		[IOMMU_COPY_FAILED] = ", and a copy that the driver allowed failed",
	};

	strbuf_puts(out, WORD(tails, l->value));
}

static void fill_failure(const struct chain_link *l, struct strbuf *out)
{
	static const char *const failures[] = {
		[PROOF_NONE] = "failed",
		[PROOF_GPU_LOST] = "fell off the bus",
		[PROOF_GPU_NOT_STARTED] = "could not be initialized",
		[PROOF_GPU_NO_BAR] = "has a BAR without an address",
	};

	strbuf_puts(out, WORD(failures, l->value));
}

static const struct {
	const char *name;
	void (*fill)(const struct chain_link *l, struct strbuf *out);
} holes[] = {
	{"{at}", fill_at},           {"{n}", fill_n},
	{"{acs}", fill_acs},         {"{bits}", fill_bits},
	{"{mib}", fill_mib},         {"{vram}", fill_vram},
	{"{status}", fill_status},   {"{cap}", fill_cap},
	{"{path}", fill_path},       {"{limit}", fill_limit},
	{"{from}", fill_from},       {"{evidence}", fill_evidence},
	{"{meaning}", fill_meaning}, {"{text}", fill_text},
	{"{cost}", fill_cost},       {"{gbps}", fill_gbps},
	{"{failure}", fill_failure},
};

/* Fills the hole that s starts with and returns what follows it. */
static const char *fill_hole(const struct chain_link *l, const char *s, struct strbuf *out)
{
	for (size_t i = 0; i < sizeof(holes) / sizeof(*holes); i++) {
		if (text_starts_with(s, holes[i].name)) {
			holes[i].fill(l, out);
			return s + strlen(holes[i].name);
		}
	}
	strbuf_putc(out, *s);
	return s + 1;
}

const char *chain_explain(const struct path *p, const struct chain_link *l, char *buf, size_t size)
{
	AUTO_STRBUF struct strbuf out = {0};
	const char *s = (unsigned)l->reason < REASON_N ? reasons[l->reason].sentence : "?";

	(void)p;
	while (*s) {
		size_t plain = strcspn(s, "{");

		strbuf_add(&out, s, plain);
		s += plain;
		if (*s)
			s = fill_hole(l, s, &out);
	}
	snprintf(buf, size, "%s", strbuf_str(&out));
	return buf;
}
