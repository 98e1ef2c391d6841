/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/symptom.h"

#include "base/array.h"
#include "support/card.h"

#include <string.h>

#define SYMPTOM(s) (1U << SYMPTOM_##s)

const char *const symptom_words[] = {"hang", "wrong-data", "slow", "crash", "refused", NULL};

/*
 * In the order of how often each is the cause where nothing is known; the confirmed causes of
 * tests/incidents and of the references of the rules. `rules`: what shows or excludes it; none: no
 * fact of a machine can, so it is never left out. `signs`: what shows it too, and excludes nothing.
 * PEERS_OVER_PCIE: only where the driver does not refuse the pair, whose copies go through host
 * memory then.
 */
static const struct cause {
	const char *id, *cause;
	unsigned symptoms;
	enum {
		ANY_PAIR,
		OVER_PCIE,
		OVER_NVLINK,
		PEERS_OVER_PCIE
	} over; /* pairs that it concerns */
	const char *rules[8], *signs[9];
	struct question decide;
} causes[] = {
	{"iommu",
	 "an IOMMU translates peer traffic, and blocks or slows it",
	 SYMPTOM(HANG) | SYMPTOM(WRONG_DATA) | SYMPTOM(SLOW),
	 PEERS_OVER_PCIE,
	 {"iommu-translating"},
	 {"iommu-fault"},
	 {"sudo dmesg | grep -i -e DMAR -e AMD-Vi -e 'IO_PAGE_FAULT'",
	  "faults during a run prove it; the same run after a boot with iommu=pt decides"}},
	{"acs",
	 "ACS sends peer requests up to the CPU",
	 SYMPTOM(HANG) | SYMPTOM(WRONG_DATA) | SYMPTOM(SLOW),
	 PEERS_OVER_PCIE,
	 {"acs-redirect", "acs-completion-redirect", "acs-root-port"},
	 {"aer-uncorrected"},
	 {"sudo lspci -vvv",
	  "whether ACSCtl of a port above the GPUs has ReqRedir+ or CmpltRedir+"}},
	{"no-mechanism",
	 "the driver allows P2P that the cards or the edit of the driver do not support",
	 SYMPTOM(HANG) | SYMPTOM(WRONG_DATA) | SYMPTOM(CRASH),
	 PEERS_OVER_PCIE,
	 {"p2p-forced", "p2p-mailbox"},
	 {"p2p-keys-one-side", "unlock-half-done", "peer-misaligned", "bar1-windows",
	  "unlock-console", "kernel-lockup", "p2p-geforce"},
	 {"onehop test", "copies and checks the data of every pair, and names those that fail"}},
	{"custom-kernels",
	 "an inference engine's own all-reduce, or managed memory, uses peer mappings in a way that an "
	 "edited driver does not support",
	 SYMPTOM(WRONG_DATA) | SYMPTOM(CRASH),
	 PEERS_OVER_PCIE,
	 {"custom-all-reduce", "uvm-managed"},
	 {NULL},
	 {"VLLM_DISABLE_CUSTOM_ALL_REDUCE=1 YOUR_COMMAND",
	  "right data without it: the engine's own all-reduce is the cause (SGLang: "
	  "--disable-custom-all-reduce)"}},
	{"bar1",
	 "BAR1 does not cover the memory of a card that needs it for P2P",
	 SYMPTOM(REFUSED) | SYMPTOM(CRASH) | SYMPTOM(SLOW),
	 OVER_PCIE,
	 {"bar1-small", "bar-assigned"},
	 {"bar1-vbios", "bar1-firmware", "bar1-window", "bar1-resize", "bar1-high",
	  "bar-assignment", "bar-invalid"},
	 {"nvidia-smi -q -d MEMORY", "BAR1 Total must be at least FB Total"}},
	{"driver-refuses",
	 "the driver or CUDA refuses P2P for these cards or this machine",
	 SYMPTOM(REFUSED) | SYMPTOM(SLOW),
	 ANY_PAIR,
	 {"p2p-geforce", "p2p-chipset", "p2p-gpu", "p2p-generation", "p2p-topology", "p2p-regkey",
	  "p2p-not-supported"},
	 {"driver-open-modules", "p2p-force-type", "observed-refused"},
	 {"nvidia-smi topo -p2p r", "the driver's answer for each pair, with its reason"}},
	{"driver",
	 "NVIDIA's driver is not loaded, or does not drive a GPU",
	 SYMPTOM(REFUSED) | SYMPTOM(CRASH),
	 ANY_PAIR,
	 {"driver-loaded", "driver-bound"},
	 {"gpu-listed", "gpu-excluded", "gpu-passed-through", "driver-start"},
	 {"cat /proc/driver/nvidia/version; lspci -k -d 10de:",
	  "whether the driver is loaded, and which driver is in use for each GPU"}},
	{"gpu-mode",
	 "a GPU is in a mode without peers: MIG or exclusive compute mode",
	 SYMPTOM(REFUSED) | SYMPTOM(CRASH),
	 ANY_PAIR,
	 {"gpu-mig", "gpu-compute-mode"},
	 {NULL},
	 {"nvidia-smi -q -d COMPUTE,MIG", "the modes of each GPU"}},
	{"fabric",
	 "the NVSwitch fabric is not set up, or NVLinks are down",
	 SYMPTOM(HANG) | SYMPTOM(CRASH) | SYMPTOM(REFUSED) | SYMPTOM(SLOW),
	 OVER_NVLINK,
	 {"nvswitch-fabric", "nvlink-up"},
	 {"fabric-manager-version", "nvswitch-sxid"},
	 {"nvidia-smi nvlink -s; nvidia-smi -q",
	  "which links are up, and whether each GPU is registered"}},
	{"nccl-settings",
	 "a variable or NCCL's default keeps it from using P2P or the right NIC",
	 SYMPTOM(SLOW) | SYMPTOM(REFUSED),
	 ANY_PAIR,
	 {"nccl-level", "nccl-p2p-disabled"},
	 {"nccl-level-name", "nccl-level-number", "nccl-shm-disabled", "nccl-unknown-variable",
	  "nccl-topo-file", "nccl-ib-disabled", "nccl-ib-hca", "nccl-gdr-level",
	  "observed-nvlink-unused"},
	 {"NCCL_DEBUG=INFO YOUR_COMMAND 2>&1 | grep NCCL",
	  "how NCCL connects each pair of GPUs, and why not by P2P"}},
	{"link",
	 "a PCIe link is narrower or slower than card and slot support",
	 SYMPTOM(SLOW),
	 OVER_PCIE,
	 {"link-width", "link-speed"},
	 {"link-even", "gpu-behind-chipset", "payload-size", "aer-corrected", "observed-slow"},
	 {"sudo lspci -vvv | grep -e LnkCap: -e LnkSta:",
	  "compare the two under load: idle links are slower by design"}},
	{"path",
	 "the path leads through a CPU, or from one socket to another",
	 SYMPTOM(SLOW) | SYMPTOM(HANG),
	 OVER_PCIE,
	 {"cross-socket", "host-bridge"},
	 {NULL},
	 {"onehop bench p2p", "the rate of each pair, next to what its path can carry"}},
	{"gpu-fault",
	 "a GPU failed: it fell off the bus, or has a memory or firmware error",
	 SYMPTOM(HANG) | SYMPTOM(CRASH) | SYMPTOM(WRONG_DATA),
	 ANY_PAIR,
	 {"xid-bus", "xid-memory", "xid-firmware"},
	 {"xid-nvlink", "xid-fault", "xid-other", "gpu-alive", "aer-uncorrected"},
	 {"sudo dmesg | grep -i xid",
	  "an Xid at the time of the failure names the GPU and the fault"}},
	{"shared-memory",
	 "/dev/shm has no room or is not writable, or memory cannot be locked",
	 SYMPTOM(CRASH),
	 ANY_PAIR,
	 {"shm-size", "shm-writable"},
	 {"memlock"},
	 {"df -h /dev/shm; ls -ld /dev/shm; ulimit -l", "in the container of the job"}},
	{"versions",
	 "modules, libraries and kernel are not of one version",
	 SYMPTOM(CRASH) | SYMPTOM(REFUSED),
	 ANY_PAIR,
	 {"driver-library-version", "driver-module-current"},
	 {"api-mismatch", "module-symbols", "module-refused", "module-torn"},
	 {"cat /proc/driver/nvidia/version; modinfo -F version nvidia; nvidia-smi -L",
	  "three times the same version"}},
	{"nic",
	 "a NIC does not reach GPU memory, or its port is not usable",
	 SYMPTOM(HANG) | SYMPTOM(SLOW) | SYMPTOM(CRASH),
	 ANY_PAIR,
	 {"rdma-port-down", "peermem-not-loaded"},
	 {"roce-gid", "nccl-gid-index", "gdr-export", "gdr-geforce", "nic-far", "nic-assignment",
	  "dma-buf", "rdma-port-slow"},
	 {"onehop bench rdma", "checks the data between each NIC and GPU, and names what fails"}},
	{"program",
	 "the program: ranks that call different collectives, or use a buffer that is still in use",
	 SYMPTOM(HANG) | SYMPTOM(WRONG_DATA) | SYMPTOM(CRASH),
	 ANY_PAIR,
	 {NULL},
	 {NULL},
	 {"NCCL_P2P_DISABLE=1 YOUR_COMMAND",
	  "if it still fails without P2P, the GPUs' paths are not the cause; compare the last "
	  "operation of each rank"}},
};

static const struct outcome *outcome_of(const struct diagnosis *d, const char *rule)
{
	for (size_t i = 0; i < d->outcome_n; i++)
		if (strcmp(d->outcomes[i].rule->id, rule) == 0)
			return &d->outcomes[i];
	return NULL;
}

/*
 * A finding with a map of pairs concerns those; any other may concern every pair, unless it is
 * about a third GPU.
 */
static bool concerns(const struct diagnosis *d, const struct finding *f, int a, int b)
{
	const struct machine *m = d->topology->machine;

	if (a < 0)
		return true;
	if (f->pair_map)
		return f->pair_map[(size_t)a * m->gpu_n + (size_t)b] ||
		       f->pair_map[(size_t)b * m->gpu_n + (size_t)a];
	return f->about.kind != SUBJECT_GPU || !f->pci || f->pci == m->gpus[a].pci ||
	       f->pci == m->gpus[b].pci;
}

static unsigned weight(const struct finding *f)
{
	return (unsigned)f->severity * CONFIDENCE_N + (CONFIDENCE_N - 1 - (unsigned)f->confidence);
}

/* The strongest finding of a rule above information that concerns the pair; NULL: there is none. */
static const struct finding *strongest(const struct diagnosis *d, const char *rule, int a, int b,
				       const struct finding *best)
{
	for (size_t i = 0; i < d->finding_n; i++) {
		const struct finding *f = &d->findings[i];

		if (strcmp(f->rule->id, rule) == 0 && f->severity > SEVERITY_INFO &&
		    concerns(d, f, a, b) && (!best || weight(f) > weight(best)))
			best = f;
	}
	return best;
}

/* All pairs in question, in both directions. */
static bool all_paths(const struct topology *t, int a, int b, bool (*is_it)(const struct path *p))
{
	if (a >= 0)
		return is_it(topology_path(t, (size_t)a, (size_t)b)) &&
		       is_it(topology_path(t, (size_t)b, (size_t)a));
	for (size_t i = 0; i < t->gpu_n; i++)
		for (size_t j = 0; j < t->gpu_n; j++)
			if (i != j && !is_it(topology_path(t, i, j)))
				return false;
	return t->gpu_n > 1;
}

/* The driver, or CUDA, answers that it refuses it, and nothing was seen that contradicts that. */
static bool without_peers(const struct path *p)
{
	enum chain_reason why = p->chain[CHAIN_DRIVER].reason;

	return (why == REASON_DRIVER_STATUS || why == REASON_DRIVER_GEFORCE ||
		why == REASON_DRIVER_GENERATION) &&
	       path_is_refused(p) && p->chain[CHAIN_OBSERVED].reason != REASON_OBSERVED_FAILS &&
	       !path_nccl_contradicts_driver(p);
}

static bool nvlink_or_no_peers(const struct path *p)
{
	return path_is_nvlink(p) || without_peers(p);
}

/* No card of the machine can have NVLink. */
static bool no_nvlink(const struct machine *m)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		if (!card_lacks_nvlink(&m->gpus[i]))
			return false;
	return m->gpu_n > 0;
}

static bool is_elsewhere(const struct diagnosis *d, const struct cause *c, int a, int b)
{
	switch (c->over) {
	case OVER_PCIE:
		return all_paths(d->topology, a, b, path_is_nvlink);
	case PEERS_OVER_PCIE:
		return all_paths(d->topology, a, b, nvlink_or_no_peers);
	case OVER_NVLINK:
		return no_nvlink(d->topology->machine);
	case ANY_PAIR:
		break;
	}
	return false;
}

/* What the facts say of one cause; false: they exclude it. */
static bool weigh_cause(const struct diagnosis *d, const struct cause *c, int a, int b,
			struct suspect *ret)
{
	*ret = (struct suspect){.id = c->id, .cause = c->cause, .decide = c->decide};
	if (is_elsewhere(d, c, a, b))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(c->rules) && c->rules[i]; i++) {
		const struct outcome *o = outcome_of(d, c->rules[i]);

		ret->finding = strongest(d, c->rules[i], a, b, ret->finding);
		if (o && o->verdict == VERDICT_UNKNOWN && !ret->open)
			ret->open = o;
	}
	for (size_t i = 0; i < ARRAY_LEN(c->signs) && c->signs[i]; i++)
		ret->finding = strongest(d, c->signs[i], a, b, ret->finding);
	return !c->rules[0] || ret->finding || ret->open;
}

/* What a finding shows comes first; the table's order decides the rest. */
static int compare_suspects(const struct suspect *x, const struct suspect *y)
{
	unsigned a = x->finding ? 1 + weight(x->finding) : 0;
	unsigned b = y->finding ? 1 + weight(y->finding) : 0;

	return (a < b) - (a > b);
}

static void insert(struct suspect *list, size_t n, const struct suspect *s)
{
	while (n && compare_suspects(&list[n - 1], s) > 0) {
		list[n] = list[n - 1];
		n--;
	}
	list[n] = *s;
}

size_t diagnosis_suspects(const struct diagnosis *d, enum symptom s, int a, int b,
			  struct suspect ret[static SUSPECTS_MAX])
{
	size_t n = 0;

	_Static_assert(ARRAY_LEN(causes) <= SUSPECTS_MAX, "a caller's array holds every cause");
	for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
		struct suspect one;

		if (causes[i].symptoms & (1U << s) && weigh_cause(d, &causes[i], a, b, &one))
			insert(ret, n++, &one);
	}
	return n;
}

const char *symptom_rule(size_t index)
{
	for (size_t i = 0; i < ARRAY_LEN(causes); i++)
		for (size_t k = 0; k < ARRAY_LEN(causes[i].rules) + ARRAY_LEN(causes[i].signs);
		     k++) {
			const char *rule =
				k < ARRAY_LEN(causes[i].rules)
					? causes[i].rules[k]
					: causes[i].signs[k - ARRAY_LEN(causes[i].rules)];

			if (rule && !index--)
				return rule;
		}
	return NULL;
}
