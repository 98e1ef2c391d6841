/* SPDX-License-Identifier: Apache-2.0 */
/* Releases of NCCL with a bug that its makers name, on machines like this one. */
#include "diagnose/rules.h"
#include "diagnose/rules_nccl.h"
#include "support/card.h"

/* ---- which machines a bug concerns; each answer is 1, 0 or unknown ---- */

/* GeForce RTX 50 and RTX PRO Blackwell */
static struct fact_int has_compute_12_0(struct rule_run *run)
{
	struct fact_int answer = fact_int(0, "compute capability");

	FOR_EACH_GPU (g, run) {
		struct fact_int capability = card_compute_capability(g);

		if (fact_is(capability, 120))
			return fact_int(1, capability.from);
		if (!fact_known(capability))
			answer = fact_int_unknown(FACT_WHY(capability));
	}
	return answer;
}

static struct fact_int has_arm_cpu(struct rule_run *run)
{
	struct fact_int vendor = run->m->cpu.vendor;

	return fact_known(vendor) ? fact_int(vendor.value == CPU_ARM, vendor.from) : vendor;
}

/* A NIC below a switch with a GPU that shares it with no other. */
static struct fact_int has_nic_beside_one_gpu(struct rule_run *run)
{
	struct fact_int answer = fact_int(0, "PCI tree");

	if (!run->m->rdma_n)
		return fact_unknown(run->m->rdma_listed) ? run->m->rdma_listed : answer;
	for (size_t nic = run->t->gpu_n; nic < run->t->endpoint_n; nic++) {
		size_t beside = 0, unknown = 0;

		for (size_t g = 0; g < run->t->gpu_n; g++) {
			enum path_class class = topology_path(run->t, g, nic)->class;

			beside += class == PATH_PIX || class == PATH_PXB;
			unknown += class == PATH_UNKNOWN;
		}
		if (beside == 1 && !unknown)
			return fact_int(1, "PCI tree");
		if (unknown)
			answer = fact_int_unknown("the PCI tree above GPUs and NICs");
	}
	return answer;
}

/* ---- bugs ---- */

/* Each has been reported or fixed by NCCL's makers at `source`. */
static const struct nccl_bug {
	int from, below; /* releases that have it */
	struct fact_int (*concerns)(struct rule_run *run);
	const char *what, *remedy, *source;
} bugs[] = {
	{22501, 22602, has_compute_12_0,
	 "its kernels need more shared memory than GPUs of compute capability 12.0 have, so that "
	 "operations fail or give wrong results",
	 "use NCCL 2.26.2 or later",
	 "https://github.com/NVIDIA/nccl/issues/1637, "
	 "https://github.com/NVIDIA/nccl-tests/issues/291"},
	{21801, 21802, has_nic_beside_one_gpu,
	 "where a NIC shares a PCI switch with only one GPU, its tree algorithm sends data through "
	 "the CPU, where LL128 can corrupt it",
	 "use a later release, or set NCCL_PROTO=^LL128 or NCCL_IB_PCI_RELAXED_ORDERING=0",
	 "https://docs.nvidia.com/deeplearning/nccl/release-notes/rel_2-18-1.html"},
	{22902, 22903, has_arm_cpu,
	 "it can hang on Arm processors if it was built with a gcc before 10",
	 "use NCCL 2.29.3 or later", "https://github.com/NVIDIA/nccl/releases/tag/v2.29.3-1"},
};

static bool has_bug(const struct nccl_bug *b, int version)
{
	return version >= b->from && version < b->below;
}

static void report(struct rule_run *run, const struct nccl_bug *b, int version)
{
	struct finding *f = finding_add(run, CONFIDENCE_POSSIBLE, SUBJECT(NCCL, "NCCL"),
					"%s has a known bug: %s", nccl_text(run, version), b->what);

	finding_remedy(run, f, "%s", b->remedy);
	evidence_nccl(run, f);
	finding_evidence(run, f, NULL, "reported in", "%s", b->source);
}

/* The release matters only for machines that some bug may concern. */
static enum verdict probe_bug(struct rule_run *run)
{
	int version = nccl_version(run);
	enum verdict otherwise = VERDICT_OK;

	for (size_t i = 0; i < sizeof(bugs) / sizeof(bugs[0]); i++) {
		const struct nccl_bug *b = &bugs[i];
		struct fact_int concerns = b->concerns(run);

		if (fact_is(concerns, 0) || (version && !has_bug(b, version)))
			continue;
		if (!version)
			otherwise =
				rule_unknown(run, FACT_WHY(run->m->nccl.version), "NCCL's version");
		else if (fact_is(concerns, 1))
			report(run, b, version);
		else
			otherwise = rule_unknown(run, FACT_WHY(concerns),
						 "whether a bug of %s concerns this machine",
						 nccl_text(run, version));
	}
	return otherwise;
}

const struct rule rules_nccl_bugs[] = {
	{
		.id = "nccl-known-bug",
		.title = "NCCL's release has no known bug that concerns this machine",
		.why = "Some releases hang, fail or corrupt data on certain machines, and a later "
		       "release does not.",
		.remedy = "use a later release of NCCL; frameworks ship their own",
		.reference = "NCCL release notes; NVIDIA/nccl#1637, NVIDIA/nccl-tests#291",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU,
		.probe = probe_bug,
	},
	{0},
};
