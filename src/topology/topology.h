/* SPDX-License-Identifier: Apache-2.0 */
/* Paths between the devices of a machine, and per ordered pair whether one can reach the other's
 * memory. Pure. */
#pragma once

#include "machine/machine.h"

/* As nvidia-smi topo -m names them, nearest first. */
enum path_class {
	PATH_SELF,
	PATH_NVLINK, /* NV<n> */
	PATH_PIX,
	PATH_PXB,
	PATH_PHB,
	PATH_NODE,
	PATH_SYS,
	PATH_UNKNOWN,
	PATH_CLASS_N,
};

enum endpoint_kind { ENDPOINT_GPU, ENDPOINT_NIC };

/* GPUs first, then RDMA devices that sit on PCI, both in the machine's order. */
struct endpoint {
	enum endpoint_kind kind;
	size_t index; /* in machine.gpus or machine.rdma */
	const struct pci_function *pci;
	const char *name; /* "GPU0", "NIC0" */
};

/* The links of the verdict chain, in the order in which a packet meets them. */
enum chain_step {
	CHAIN_DEVICE,      /* both ends can be used at all */
	CHAIN_PATH,        /* NVLink up, or a PCIe path is known */
	CHAIN_SWITCH,      /* ACS at the divergence ports */
	CHAIN_HOST_BRIDGE, /* does it forward peer traffic */
	CHAIN_IOMMU,
	CHAIN_EXPOSURE, /* BAR1, mailbox, NVLink: is the target's memory visible at all */
	CHAIN_DRIVER,   /* does the driver allow it */
	CHAIN_NCCL,     /* would NCCL use it: policy, not hardware */
	CHAIN_OBSERVED, /* what tests and logs showed; outweighs the others */
	CHAIN_STEP_N,
};

enum chain_state {
	CHAIN_NA, /* this step does not lie on the path */
	CHAIN_OK,
	CHAIN_POSSIBLE, /* may hurt; seen to in other machines */
	CHAIN_UNKNOWN,
	CHAIN_BAD,
};

/*
 * Why a step is in its state: a stable word for JSON, rules and tests. The sentence for people is
 * made on demand by chain_explain.
 */
enum chain_reason {
	REASON_NONE,
	REASON_DEVICES_USABLE,
	REASON_DEVICE_UNKNOWN,      /* at: its driver is unknown */
	REASON_DEVICE_OFF_BUS,      /* at: the device, also in the next; see enum device_fault */
	REASON_DEVICE_ASLEEP,       /* wakes when it is used */
	REASON_DEVICE_SET_ASIDE,    /* text: the driver that holds it for a guest */
	REASON_DEVICE_OTHER_DRIVER, /* text: the driver */
	REASON_DEVICE_NO_DRIVER,
	REASON_DEVICE_EXCLUDED,
	REASON_DEVICE_PROHIBITED,       /* by the compute mode */
	REASON_DEVICE_FABRIC_NOT_READY, /* value: enum fabric_state */
	REASON_DEVICE_MIG,              /* GPU-GPU: instances have no P2P */
	REASON_DEVICE_FABRIC_UNKNOWN,   /* at: NVML did not tell, in these two */
	REASON_DEVICE_MIG_UNKNOWN,
	REASON_DEVICE_UNDRIVEN,     /* these kernel modules do not drive the chip */
	REASON_DEVICE_NO_PORT,      /* at: a NIC without an active port */
	REASON_DEVICE_PORT_UNKNOWN, /* at: a NIC; nobody could see whether it has one */
	REASON_DEVICE_FAILED,       /* at: a GPU; value: enum log_proof */
	REASON_NVLINK_UP,           /* value: bonded links */
	REASON_NVLINK_DOWN,         /* the GPU has links, none of the pair's is active */
	REASON_NVLINK_UNKNOWN,      /* the cards may have NVLink, and nobody could ask */
	REASON_PATH_UNKNOWN,
	REASON_COMMON_BRIDGE, /* at: it */
	REASON_THROUGH_HOST,  /* no common bridge */
	REASON_ACS_CLEAR,
	REASON_ACS_REQUEST_REDIRECT,    /* at: initiator-side port, value: ACSCtl */
	REASON_ACS_COMPLETION_REDIRECT, /* at: target-side port, value: ACSCtl; reads only */
	/*
	 * RR/CR/EC on a root port without a common bridge; at: it, value: ACSCtl, value2: enum
	 * acs_cost
	 */
	REASON_ACS_ROOT_PORT,
	REASON_ACS_UNREADABLE,    /* at: port; needs root; value2: enum acs_cost if it is set */
	REASON_HOST_BRIDGE_KNOWN, /* on NVIDIA's CPU list (reads and writes) */
	REASON_HOST_BRIDGE_WRITES_ONLY, /* not on it: writes go, reads are refused by the driver */
	REASON_HOST_BRIDGE_UNKNOWN,     /* cannot tell from CPU and bridge IDs */
	REASON_HOST_BRIDGE_NO_P2P,      /* text: the chipset; GPU-NIC */
	REASON_CROSS_SOCKET,            /* at: none; the path crosses CPU sockets or NUMA nodes */
	REASON_IOMMU_OFF,
	REASON_IOMMU_IDENTITY,
	/*
	 * at: the initiator, whose group translates; value: what makes it bad, enum iommu_evidence
	 */
	REASON_IOMMU_TRANSLATING,
	/* at: the initiator; the log shows faults although nothing translates */
	REASON_IOMMU_FAULTS,
	REASON_IOMMU_UNKNOWN,
	REASON_EXPOSED_NVLINK,
	REASON_EXPOSED_MAILBOX, /* the card has mailboxes: a small BAR1 does not matter */
	REASON_EXPOSED_BAR1,    /* BAR1 covers the VRAM */
	REASON_BAR1_SMALL,      /* at: target, value: BAR1 bytes, value2: VRAM bytes, 0: unknown */
	REASON_BAR1_SHIFTED,    /* at: target; see support_console_shifts */
	REASON_BAR1_SHIFT_UNKNOWN, /* at: target */
	REASON_EXPOSURE_UNKNOWN,
	REASON_DRIVER_OK,
	REASON_DRIVER_STATUS,     /* value: enum p2p_status, value2: enum p2p_cap that it is for */
	REASON_DRIVER_GEFORCE,    /* the same, on cards for which it has no P2P over PCIe at all */
	REASON_DRIVER_FORCED,     /* allowed by ForceP2P although no mechanism is there */
	REASON_DRIVER_MAILBOX,    /* allowed through mailboxes that these cards lack */
	REASON_DRIVER_KEYS,       /* allowed by keys of one card: registry_keys_one_sided */
	REASON_DRIVER_GENERATION, /* CUDA refuses pairs of two generations; at: the target */
	REASON_DRIVER_MAPPING,    /* the kernel log shows that peer mappings failed */
	REASON_DRIVER_ABSENT,
	REASON_DRIVER_LIBRARY, /* CUDA's library is of another release: driver_library_fit */
	REASON_DRIVER_UNKNOWN,
	REASON_GPU_UNSUPPORTED, /* GPU-NIC: GeForce has no GPUDirect RDMA */
	REASON_RDMA_GPU_OLD,    /* at: a GPU older than GPUDirect RDMA */
	REASON_RDMA_NIC_OLD,    /* at: a NIC that nothing gives access to GPU memory */
	REASON_RDMA_READY,      /* GPU-NIC: nvidia-peermem registered or dma-buf possible */
	REASON_RDMA_NO_PEERMEM,
	/* at: NIC, text: its driver, which cannot register dma-buf; and no nvidia-peermem */
	REASON_RDMA_NIC_DRIVER,
	REASON_RDMA_NIC_DRIVER_UNKNOWN, /* the same, but unknown */
	/* at: NIC, text: its driver; whether it takes memory from nvidia-peermem */
	REASON_RDMA_PEERMEM_UNKNOWN,
	/* One way of registration, in a preflight (topology/preflight.h) */
	REASON_DMA_BUF_READY,
	REASON_DMA_BUF_IOMMU,       /* at: NIC, whose IOMMU translates */
	REASON_DMA_BUF_KERNEL,      /* Linux before 5.12 */
	REASON_DMA_BUF_MODULES,     /* the driver does not export: the proprietary modules */
	REASON_DMA_BUF_UNKNOWN,     /* of the kernel or the driver */
	REASON_DMA_BUF_NIC,         /* at: NIC, text: its driver */
	REASON_DMA_BUF_NIC_UNKNOWN, /* the same */
	REASON_PEERMEM_READY,
	REASON_PEERMEM_ABSENT,
	REASON_PEERMEM_UNREGISTERED, /* loaded, and no client of the RDMA core as far as is seen */
	REASON_PEERMEM_UNKNOWN,
	/* Either way */
	REASON_RDMA_GATE, /* at: GPU, text: chipset or NULL; errno 524 */
	REASON_RDMA_GATE_UNKNOWN,
	REASON_NCCL_USES,
	REASON_NCCL_LEVEL,     /* value: enum nccl_path of the pair, value2: of the limit */
	REASON_NCCL_DISABLED,  /* NCCL_P2P_DISABLE=1 */
	REASON_NCCL_DEPENDS,   /* another NCCL version decides otherwise; version unknown */
	REASON_NCCL_SEEN,      /* a log shows that NCCL uses it; value, value2 as above */
	REASON_NCCL_STAGED,    /* a log shows that NCCL does not; the same */
	REASON_OBSERVED_WORKS, /* the owner checked the data */
	/*
	 * CUDA allowed access and copies were as fast as the path: value: MB/s. The data was not
	 * checked
	 */
	REASON_OBSERVED_FAST,
	/* copies with P2P on were no faster than with P2P off: value: MB/s */
	REASON_OBSERVED_NO_GAIN,
	REASON_OBSERVED_SLOW,   /* a test called its copies far too slow */
	REASON_OBSERVED_DOUBTS, /* a test of several pairs at once, or of a GPU, failed */
	REASON_OBSERVED_FAILS,
	REASON_N,
};

struct chain_link {
	enum chain_state state;
	enum chain_reason reason;
	const struct pci_function *at; /* the port or device it is about; NULL: none */
	int64_t value, value2;
	const char *from; /* where an observation was read; NULL in all other links */
	/*
	 * the transport that NCCL's log names, the driver that is bound, the chipset; NULL in all
	 * other links
	 */
	const char *text;
};

/*
 * What a redirect at a root port costs pairs that pass through the CPU in any case; all but
 * ACS_COSTS_NOTHING are possible.
 */
enum acs_cost {
	ACS_COSTS_NOTHING,     /* the IOMMU is off, or passes addresses through */
	ACS_COST_UNKNOWN,      /* nobody could tell what the IOMMU does */
	ACS_COSTS_TRANSLATION, /* rates fall */
	ACS_HUNG_ELSEWHERE,    /* NCCL was seen to hang on machines with this root port */
	ACS_FAILED_HERE,       /* peer access was seen to fail on this pair */
};

/* What lifts a translating IOMMU from possible to bad. */
enum iommu_evidence { IOMMU_NO_EVIDENCE, IOMMU_FAULT_LOGGED, IOMMU_COPY_FAILED };

enum pair_verdict {
	PAIR_DIRECT, /* every link ok, or a checked copy arrived whole */
	/*
	 * nothing bad, something possible; or copies were fast (OBSERVED_FAST) although a link is
	 * bad or unknown; or NCCL used P2P although the driver refuses it
	 */
	PAIR_SUSPECT,
	PAIR_BLOCKED,   /* a link is bad: first_bad */
	PAIR_UNDECIDED, /* nothing bad, something unknown that would decide */
	PAIR_VERDICT_N,
};

struct path {
	enum path_class class;
	enum path_class pci_class;  /* the same without NVLink; a NIC's is its class */
	enum path_class tree_class; /* computed from the tree alone, to compare with NVML's */
	/*
	 * bonded links of the pair, 0: none. Unknown: the pair may have NVLink, and `class` is that
	 * over PCIe
	 */
	struct fact_int nvlinks;
	const struct pci_function *common; /* lowest bridge above both, NULL: none or unknown */
	/* child of common, or root port, on the initiator's side */
	const struct pci_function *initiator_port;
	const struct pci_function *target_port;
	/* the function whose link is slowest on the PCIe way */
	const struct pci_function *bottleneck;
	struct fact_int bottleneck_speed, bottleneck_width; /* MT/s, lanes */
	double link_gbps; /* raw rate of the bottleneck, 0: unknown */
	/* what a good copy should bring from the initiator to the target, 0: unknown */
	double expected_gbps;
	bool socket_bound; /* limited by the link between the CPU sockets, this way */
	struct chain_link chain[CHAIN_STEP_N];
	enum pair_verdict verdict;
	enum chain_step first_bad; /* CHAIN_STEP_N: none */
};

struct topology {
	const struct machine *machine;
	struct endpoint *endpoints;
	size_t endpoint_n, gpu_n;
	struct path *paths; /* endpoint_n squared, row initiator; the diagonal is PATH_SELF */
	struct arena *arena;
};

/* Never fails: what is unknown in the machine is unknown in the paths. The machine must outlive it.
 */
struct topology *topology_new(const struct machine *m);
/* The same with classes of paths alone, as a matrix shows them: no rates and no verdicts. */
struct topology *topology_classes(const struct machine *m);
void topology_free(struct topology *t);

const struct path *topology_path(const struct topology *t, size_t initiator, size_t target);

/* The way that the data of a measured pair took: what is read comes from the target. */
const struct path *topology_data_path(const struct topology *t, const struct observed *o);

/* Between an endpoint and the host's memory: bottleneck, link_gbps and expected_gbps; the rest is
 * zero. */
void topology_host_rate(const struct topology *t, size_t endpoint, struct path *ret);

/* The packets of the pair go over NVLink. */
static inline bool path_is_nvlink(const struct path *p)
{
	return p->class == PATH_NVLINK;
}

/* The CPU socket that a function belongs to; -1: unknown. */
int topology_socket(const struct machine *m, const struct pci_function *f);

/* "X", "NV18", "PIX", ... into buf; "?" when unknown. */
const char *path_class_name(const struct path *p, char *buf, size_t size);
const char *path_class_word(enum path_class c);
const char *chain_step_word(enum chain_step s);     /* "switch" */
const char *chain_state_word(enum chain_state s);   /* "bad" */
const char *chain_reason_word(enum chain_reason r); /* "acs-request-redirect" */
const char *
pair_verdict_word(enum pair_verdict v); /* "direct", "suspect", "blocked", "undecided" */
/* The same for people: "direct", "doubtful", "blocked", "undecided". */
const char *pair_verdict_text(enum pair_verdict v);
/* Copies between the two go through host memory, as far as is known: their rate says nothing of the
 * path. */
bool path_is_refused(const struct path *p);
/* The driver refuses the pair, and a log shows that NCCL connected it by P2P: one of the two is not of this
 * state of the machine. */
bool path_nccl_contradicts_driver(const struct path *p);
/*
 * CUDA does not even start on this machine: the driver is not loaded, or its library is another
 * one's.
 */
bool path_driver_is_out(const struct path *p);
/* One sentence that names port, register and value read. */
const char *chain_explain(const struct path *p, const struct chain_link *l, char *buf, size_t size);

/* ---- counts that the last lines and rules use ---- */

struct pair_counts {
	size_t pairs; /* ordered GPU-GPU pairs */
	size_t by_verdict[PAIR_VERDICT_N];
	/* pairs for which this step is bad, whether or not another is too */
	size_t bad_at[CHAIN_STEP_N];
};

void topology_count(const struct topology *t, struct pair_counts *ret);

/* ---- routing pieces, also used by rules ---- */

/* Whether ACS sends untranslated peer requests that enter at this port up to the CPU, and answers to
 * peer reads. */
bool acs_redirects_requests(struct fact_int acs_ctl);
bool acs_redirects_completions(struct fact_int acs_ctl);

/* The ports at which ACS sends packets of an ordered pair up to the CPU; NULL: none. */
struct redirection {
	const struct pci_function *requests;    /* on the initiator's side */
	const struct pci_function *completions; /* on the target's side: only reads have them */
	const struct pci_function *unread;      /* one that nobody could read */
};

struct redirection topology_redirection(const struct path *p);

/* NCCL's own distance scale, nearest first (its names; NODE of nvidia-smi is its PHB). */
enum nccl_path {
	NCCL_PATH_LOC,
	NCCL_PATH_NVL,
	NCCL_PATH_NVB,
	NCCL_PATH_C2C,
	NCCL_PATH_PIX,
	NCCL_PATH_PXB,
	NCCL_PATH_P2C,
	NCCL_PATH_PXN,
	NCCL_PATH_PHB,
	NCCL_PATH_SYS,
	NCCL_PATH_N,
};

const char *nccl_path_word(enum nccl_path p);
enum nccl_path nccl_path_of(const struct path *p); /* NCCL_PATH_N: unknown */
/*
 * The P2P level in force: NCCL_P2P_DISABLE, NCCL_P2P_LEVEL, else the default of that NCCL version
 * on this machine. Unknown version: the default of today's, and *ret_sure is false where they
 * differ.
 */
enum nccl_path nccl_p2p_level(const struct machine *m, bool *ret_sure);
/* Without NCCL_P2P_LEVEL. */
enum nccl_path nccl_p2p_default(const struct machine *m, bool *ret_sure);
bool nccl_p2p_disabled(const struct machine *m); /* by NCCL_P2P_DISABLE */
/* The same for GPUDirect RDMA between GPU and NIC: NCCL_NET_GDR_LEVEL, else PXB. */
enum nccl_path nccl_gdr_level(const struct machine *m);
/* Parses a level as NCCL does: exact upper-case name or legacy number; -1 when NCCL would ignore
 * it. */
int nccl_level_parse(const char *value);

/* ---- peer formats and drawing: text in, nothing printed ---- */

struct strbuf;

/* Byte for byte what `nvidia-smi topo -m` prints; without `underline` less its two escapes. */
void topology_format_matrix(const struct topology *t, bool underline, struct strbuf *out);
/* The same of `nvidia-smi topo -p2p CAP`. */
void topology_format_p2p(const struct topology *t, enum p2p_cap cap, bool underline,
			 struct strbuf *out);
/* What somebody else found wrong, for the drawing. */
struct draw_note {
	const struct pci_function *at; /* NULL: nowhere in particular */
	enum chain_state state;        /* CHAIN_BAD: an error, CHAIN_POSSIBLE: a warning */
	const char *rule;              /* its id, which is the anchor of its place in a page */
	const char *title;             /* what is wrong: a sentence with rule and device */
	enum chain_reason
		reason; /* of the link of a chain that says the same there; REASON_NONE: none */
};

struct drawing_request {
	const char *title; /* the machine's name, GPUs and driver; NULL: none */
	const struct draw_note *notes;
	size_t note_n;
	bool in_page; /* boxes have ids, "box-" and the address, and marks link to their anchors */
};

/*
 * A drawing of sockets, bridges, GPUs and NICs; what is wrong is marked where it is wrong, by the
 * rule's name. Notes of devices that are not drawn, and of none, are listed below; all are if it is
 * not in a page. Of many devices, what is the same as something drawn before is folded.
 */
void topology_draw_svg(const struct topology *t, const struct drawing_request *request,
		       struct strbuf *out);
