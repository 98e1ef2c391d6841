/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of topology/ share; for topology/ only. */
#pragma once

#include "machine/usable.h"
#include "support/nic.h"
#include "support/support.h"
#include "topology/preflight.h"
#include "topology/topology.h"

/* The NVLinks of one GPU, remote ends resolved. */
struct gpu_links {
	const struct pci_function *peer[GPU_NVLINKS]; /* active links to another GPU: that GPU */
	unsigned peer_n;
	int to_switch;      /* active links to an NVSwitch */
	int unnamed;        /* active links whose other end NVML does not name (virtual machines) */
	bool exist;         /* the GPU has links, up or not */
	struct fact_int up; /* how many are active; 0 where the card has none at all */
};

/* What was seen of a pair; NULL: nothing. `nccl`: the worst transport that a log shows; `rate`: the
 * best. */
struct observation {
	const struct observed *works, *fails, *access, *rate, *nccl;
	const struct observed *slow;   /* its copies were far too slow for a test */
	const struct observed *doubts; /* a test of several pairs at once, or of a GPU, failed */
};

/* What the driver's registry keys make of a GPU. */
struct forced {
	bool p2p, bar1;
};

/* What a NIC's driver registers of a GPU's memory. */
struct nic_facts {
	struct fact_int dma_buf, peermem;
};

/* What the driver makes of NICs that want a GPU's memory. */
struct rdma_facts {
	struct fact_int geforce, supported, exports; /* supported: card_has_gdr */
	enum grdma_gate below_bridge, apart;         /* with a bridge in common, and without */
	const char *chipset;                         /* chipset_without_p2p */
};

struct rdma_facts rdma_facts_of(const struct machine *m, const struct gpu *g);
struct nic_facts nic_facts_of(const struct machine *m, const struct pci_function *nic);

/* A GPU and a NIC that wants its memory. */
struct gdr_pair {
	const struct machine *m;
	const struct gpu *g;
	const struct rdma_facts *gpu;
	const struct pci_function *nic_pci;
	const struct nic_facts *nic;
	enum grdma_gate gate; /* for where the two are */
};

/* The three links of a preflight (preflight.c); the rest of it is zero. */
struct preflight preflight_judge(const struct gdr_pair *p);
/*
 * The DMA function of a Direct NIC, which may be this one's, below a bridge of the GPU's; NULL:
 * none.
 */
const struct pci_function *direct_nic_beside(const struct machine *m, const struct gpu *g,
					     const struct pci_function *nic);

/* What holds for all pairs of a machine, looked up once. */
struct path_facts {
	const struct machine *m;
	struct gpu_links *links;      /* per GPU */
	struct support *cards;        /* per GPU */
	struct forced *forced;        /* per GPU */
	struct observation *observed; /* (gpu_n + 1) squared; index 0 stands for "all" */
	bool *iommu_faults;           /* per PCI function */
	struct rdma_facts *rdma;      /* per GPU; machines with NICs only */
	struct nic_facts *nics;       /* per PCI function of a NIC */
	bool *undriven;               /* per GPU: support_undriven */
	enum log_proof *failed;       /* per PCI function: PROOF_GPU_... */
	bool mapping_failed;          /* the log shows a PROOF_PEER_... */
	unsigned *faults;             /* per PCI function of an endpoint: device_faults */
	enum library_fit library;     /* driver_library_fit */
	bool nvswitch;                /* the GPUs are meant to talk through NVSwitches */
	enum nccl_path p2p_level, gdr_level;
	bool p2p_level_sure, nccl_disabled;
};

/* NULL for a NIC. */
const struct gpu *endpoint_gpu(const struct machine *m, const struct endpoint *e);

void path_facts_collect(struct arena *arena, const struct machine *m, struct path_facts *ret);
struct observation path_facts_observation(const struct path_facts *s, size_t initiator,
					  size_t target);
/* NUMA nodes of a socket, 0: unknown. */
unsigned nodes_per_socket(const struct machine *m);

/* Fill the parts of a path; the endpoints are `t`'s. */
void path_classify(const struct path_facts *s, const struct endpoint *a, const struct endpoint *b,
		   struct path *p);
void path_rate(const struct path_facts *s, const struct endpoint *a, const struct endpoint *b,
	       struct path *p);
/* GB/s that a copy through host memory may reach at most, 0: unknown. */
double staged_rate_limit(const struct path_facts *s, const struct endpoint *a,
			 const struct endpoint *b);
void path_chain(const struct path_facts *s, const struct endpoint *a, const struct endpoint *b,
		struct path *p);

/* One physical link, named by the function at its lower end. */
struct wire {
	const struct pci_function *lower;
	struct fact_int speed, width;
	double gbps; /* 0: unknown */
	bool idle;   /* speed is what both ends can: the GPU has lowered it for now */
};

/* Whether a link ends at this function from above: not for root and downstream ports. */
bool has_wire(const struct pci_function *f);
/* `g`: the GPU that the function is, NULL: none. */
struct wire wire_above(const struct pci_function *f, const struct gpu *g);
/* What both ends of the link above f can, as far as known. */
struct fact_int wire_speed_limit(const struct pci_function *f);
struct fact_int wire_width_limit(const struct pci_function *f);
