/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of rules, one a topic, and what probes share; for rules*.c and diagnose.c only. */
#pragma once

#include "diagnose/diagnose.h"
#include "machine/usable.h"
#include "support/support.h"

/* Rows of each topic, in its own file; behind the last is one without an id. */
extern const struct rule rules_driver[];
extern const struct rule rules_unlock[];
extern const struct rule rules_pcie[];
extern const struct rule rules_routing[];
extern const struct rule rules_uplink[];
extern const struct rule rules_nvlink[];
extern const struct rule rules_host[];
extern const struct rule rules_fix[];
extern const struct rule rules_log[];
extern const struct rule rules_peermem[];
extern const struct rule rules_rdma[];
extern const struct rule rules_nccl[];
extern const struct rule rules_nccl_net[];
extern const struct rule rules_nccl_values[];
extern const struct rule rules_nccl_bugs[];
extern const struct rule rules_nccl_topo[];
extern const struct rule rules_libraries[];
extern const struct rule rules_observed[];

/* While it is made; findings stay where they are so that probes may keep pointers to them. */
struct diagnosis_builder {
	struct diagnosis d;
	struct finding **found;
	size_t found_n;
};

/* ---- walking ---- */

/* clang-format off */
#define FOR_EACH_IN(type, x, array, n) \
	for (const type *x = (array); x && x < (array) + (n); x++)
#define FOR_EACH_GPU(g, run) FOR_EACH_IN(struct gpu, g, (run)->m->gpus, (run)->m->gpu_n)
#define FOR_EACH_PCI(f, run) FOR_EACH_IN(struct pci_function, f, (run)->m->pci, (run)->m->pci_n)
#define FOR_EACH_RDMA(d, run) FOR_EACH_IN(struct rdma_device, d, (run)->m->rdma, (run)->m->rdma_n)
/* Of all rules; only once the probes are through, that is: while proposing. */
#define FOR_EACH_FINDING(f, run) \
	FOR_EACH_IN(struct finding, f, (run)->d->findings, (run)->d->finding_n)
/* Ordered GPU pairs without the diagonal: i initiates, j is the target. */
#define FOR_EACH_GPU_PAIR(i, j, run) \
	for (size_t i = 0; i < (run)->m->gpu_n; i++) \
		for (size_t j = 0; j < (run)->m->gpu_n; j++) \
			if (i != j)
/* clang-format on */

/*
 * scope.c: calls the probe of the run's rule for whatever it is about, and says what that comes to.
 */
enum verdict rule_judge(struct rule_run *run);

/* The link between a function and the port above it, seen from both ends. */
struct wire {
	const struct pci_function *lower, *port;
	const struct gpu *gpu; /* whose link it is; NULL: a NIC's, or one that several share */
	const char *name;      /* "GPU0", "switch" */
};

/* Whether the machine has what these enum rule_needs ask for: OK, not applicable or unknown (diagnose.c).
 * For a probe that knows another way to its answer. */
enum verdict rule_needs_met(struct rule_run *run, unsigned wanted);

/* rules_pcie.c: what to do for a BAR that found no room, where the row's remedy is not the next step:
 * the host's in a guest, the firmware's where pci=realloc is set already. */
void bar_room_remedy(struct rule_run *run, struct finding *f);

/* For GPUDirect RDMA: a NIC on PCI, and (rules_peermem.c) a GPU that may do it besides. */
bool has_pci_nic(struct rule_run *run);
bool gdr_wanted(struct rule_run *run);
/* Peer memory serves a driver without it: NICs get GPU memory as dma-buf (rules_peermem.c). */
bool gdr_by_dma_buf(struct rule_run *run);
#define PEERMEM_SOURCE "kernel-open/nvidia-peermem of NVIDIA/open-gpu-kernel-modules"
#define GDR_NEEDS      (NEEDS_GPU | NEEDS_RDMA | NEEDS_DRIVER)

/* onehop fix has made this change, and the machine was not started since (rules_fix.c). */
bool fix_pending(const struct rule_run *run, enum applied_kind kind, const char *target);

/* Every two GPUs are joined by NVLink; false for fewer than two (rules_host.c). */
bool all_pairs_nvlink(const struct rule_run *run);

/* An active port whose GIDs count (rules_rdma.c). */
bool port_is_roce(const struct rdma_port *p);

/*
 * What NCCL_IB_DISABLE and NCCL_IB_HCA have NCCL do with a port of an RDMA device
 * (rules_nccl_net.c).
 */
enum nccl_use {
	NCCL_LEAVES,  /* switched off, excluded, or not on the list */
	NCCL_MAY_USE, /* nothing is said of it: used when it is active */
	NCCL_NAMES,   /* on the list */
};
enum nccl_use nccl_port_use(const struct rule_run *run, const struct rdma_device *d, unsigned port);

/* OK, or unknown where the generation of some GPU is: of an unknown card no rule on kinds of cards is ok
 * (rules_driver.c). */
enum verdict generations_known(struct rule_run *run);
/* The driver is made to say yes for a card that cannot, and that is seen (rules_driver.c). */
bool p2p_forced_for_certain(struct rule_run *run, const struct gpu *g);
/* What keeps an edit of the driver from working on GPU g, whose peer mappings fault; NULL: nothing
 * tells. `overflow`: an address did not fit a page table entry (rules_unlock.c). */
const char *unlock_lacks(struct rule_run *run, const struct gpu *g, bool overflow);
/* Adds what is known of the edit, for a card that needs one. */
void evidence_unlock(struct rule_run *run, struct finding *f, const struct gpu *g);

/* ---- text in the diagnosis' arena (evidence.c) ---- */

const char *run_text(struct rule_run *run, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "256 MiB", "32 GiB", "1.5 GiB" */
const char *run_bytes(struct rule_run *run, uint64_t bytes);
/* One evidence line from a fact: "NAME: VALUE (FROM)", or "NAME: unknown (WHY)". */
void evidence_int(struct rule_run *run, struct finding *f, const char *name, struct fact_int fact);
void evidence_str(struct rule_run *run, struct finding *f, const char *name, struct fact_str fact);
/* What says it all by itself; `from` may be NULL. */
void evidence_text(struct rule_run *run, struct finding *f, const char *from, const char *what);
/* "GPU0->GPU1: VALUE (seen in FILE)" of what was observed of a pair. */
void evidence_observed(struct rule_run *run, struct finding *f, const struct observed *o,
		       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The driver's registry keys: for all, and those per device where there are any. */
void evidence_registry(struct rule_run *run, struct finding *f);
/*
 * The same in words: "yes" or "no", "256 MiB", and the value's word among n (a number without one).
 */
void evidence_yes_no(struct rule_run *run, struct finding *f, const char *name,
		     struct fact_int fact);
void evidence_bytes(struct rule_run *run, struct finding *f, const char *name,
		    struct fact_int fact);
void evidence_word(struct rule_run *run, struct finding *f, const char *name, struct fact_int fact,
		   const char *const *words, size_t n);
/* Appends an item to a list "a, b, c"; list may be NULL. */
const char *run_list(struct rule_run *run, const char *list, const char *item);

/* The list of n GPUs, or "all 8 GPUs". */
const char *gpu_list_text(struct rule_run *run, const char *names, size_t n);

/* The first line of a tool that reports this; NULL: none does. */
const struct observed *message_heard(const struct rule_run *run, enum tool_message message);

/* A set of ordered GPU pairs that one finding is about. */
struct pair_set {
	bool *in; /* gpu_n * gpu_n, row initiator */
	size_t gpu_n, n;
};

struct pair_set pair_set_new(struct rule_run *run);
void pair_set_add(struct pair_set *s, size_t initiator, size_t target);
bool pair_set_in(const struct pair_set *s, size_t initiator, size_t target);
/*
 * The finding concerns these pairs, and names their GPUs; none where these are all pairs of more
 * than two.
 */
void finding_names_pairs(struct rule_run *run, struct finding *f, const struct pair_set *s);
/* "all 56 pairs", "GPU0 and GPU1 (both ways)", "3 of 12 pairs (GPU0->GPU1, GPU0->GPU2, ...)" */
const char *pair_set_text(struct rule_run *run, const struct pair_set *s);

/* ---- proposing (propose.c); what is said lives in the change set's arena ---- */

/* A finding of the run's rule is more than good to know, or the rule was named by the user. */
bool propose_wanted(const struct rule_run *run);
/* Adds a change as the run's rule's. */
void propose(struct rule_run *run, struct change_set *out, struct change c);
/* What has to change, and how: one sentence. */
void propose_by_hand(struct rule_run *run, struct change_set *out, const char *what,
		     const char *fmt, ...) __attribute__((format(printf, 4, 5)));
