/* SPDX-License-Identifier: Apache-2.0 */
/* What a diagnosis comes to: a sentence for pairs of GPUs, one for GPUs and NICs. */
#include "base/strbuf.h"
#include "diagnose/rules.h"

#include <inttypes.h>
#include <stdio.h>

/* Steps in the order in which the sentence names them: what a person mends first. */
/* clang-format off */
static const struct {
	enum chain_step step;
	const char *blocked_by, *unknown, *possible;
} steps[] = {
	{CHAIN_DEVICE, "unusable devices", "the devices' state", "devices"},
	{CHAIN_DRIVER, "the driver", "what the driver allows", "what the driver makes of P2P"},
	{CHAIN_EXPOSURE, "BAR1", "the size of BAR1", "BAR1"},
	{CHAIN_SWITCH, "ACS redirect", "ACS", "ACS on root ports"},
	{CHAIN_IOMMU, "the IOMMU", "the IOMMU", "the IOMMU"},
	{CHAIN_HOST_BRIDGE, "the host bridge", "whether the host bridge forwards", "the CPUs between them"},
	{CHAIN_PATH, "a missing path", "NVLink or the PCIe path", "NVLink that is down"},
	{CHAIN_OBSERVED, "failed tests", "what tests showed", NULL},
};
/* clang-format on */

#define STEP_N (sizeof(steps) / sizeof(steps[0]))

/* What is counted over a set of paths. */
struct tally {
	size_t pairs;
	size_t by_verdict[PAIR_VERDICT_N];
	size_t bad[CHAIN_STEP_N];
	size_t unknown[CHAIN_STEP_N], possible[CHAIN_STEP_N]; /* of undecided, of suspect pairs */
	size_t nvlink, pcie;                                  /* of direct pairs */
	size_t refused;      /* of direct pairs: NCCL would not use them */
	size_t driverless;   /* of blocked pairs: no driver is loaded */
	size_t overruled;    /* bad links that a copy contradicts */
	size_t fast;         /* of suspect pairs: copies were fast, nobody checked their data */
	size_t doubted;      /* of suspect pairs: a test of their GPUs failed */
	size_t contradicted; /* of suspect pairs: the driver refuses, and NCCL used P2P */
	size_t no_gain;      /* of suspect pairs: copies were no faster with P2P on than off */
	size_t slow;         /* of suspect pairs: a test called their copies far too slow */
	int nvlinks_min, nvlinks_max;
	int64_t bar1_min, bar1_max; /* of those that BAR1 blocks */
};

static void tally_step(struct tally *y, const struct path *p, enum chain_step s)
{
	const struct chain_link *l = &p->chain[s];

	if (p->verdict != PAIR_BLOCKED && l->state == CHAIN_BAD) {
		y->overruled += s != CHAIN_NCCL; /* seen to copy all the same */
		return;
	}
	y->bad[s] += l->state == CHAIN_BAD;
	y->driverless += l->state == CHAIN_BAD && l->reason == REASON_DRIVER_ABSENT;
	y->unknown[s] += l->state == CHAIN_UNKNOWN && p->verdict == PAIR_UNDECIDED;
	y->possible[s] += l->state == CHAIN_POSSIBLE && p->verdict == PAIR_SUSPECT &&
			  p->chain[CHAIN_OBSERVED].reason != REASON_OBSERVED_FAST &&
			  p->chain[CHAIN_OBSERVED].reason != REASON_OBSERVED_SLOW;
	if (l->state != CHAIN_BAD || l->reason != REASON_BAR1_SMALL)
		return;
	if (!y->bar1_max || l->value < y->bar1_min)
		y->bar1_min = l->value;
	if (l->value > y->bar1_max)
		y->bar1_max = l->value;
}

/* The driver refuses the pair, and only a log of NCCL keeps it from being blocked. */
static bool seen_by_nccl_alone(const struct path *p)
{
	return p->verdict == PAIR_SUSPECT && path_nccl_contradicts_driver(p) &&
	       p->chain[CHAIN_OBSERVED].reason != REASON_OBSERVED_FAST;
}

static void tally_path(struct tally *y, const struct path *p)
{
	y->pairs++;
	y->by_verdict[p->verdict]++;
	y->fast += p->verdict == PAIR_SUSPECT &&
		   p->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_FAST;
	y->doubted += p->verdict == PAIR_SUSPECT &&
		      p->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_DOUBTS;
	y->contradicted += seen_by_nccl_alone(p);
	y->no_gain += p->verdict == PAIR_SUSPECT &&
		      p->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_NO_GAIN;
	y->slow += p->verdict == PAIR_SUSPECT &&
		   p->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_SLOW;
	for (enum chain_step s = 0; s < CHAIN_STEP_N; s++)
		tally_step(y, p, s);
	if (p->verdict != PAIR_DIRECT)
		return;
	y->refused += p->chain[CHAIN_NCCL].state == CHAIN_BAD;
	if (p->class != PATH_NVLINK) {
		y->pcie++;
		return;
	}
	if (!y->nvlink++ || p->nvlinks.value < y->nvlinks_min)
		y->nvlinks_min = (int)p->nvlinks.value;
	if (p->nvlinks.value > y->nvlinks_max)
		y->nvlinks_max = (int)p->nvlinks.value;
}

/* " on all" or " on 14" */
static void put_share(struct strbuf *b, size_t n, size_t all)
{
	if (n == all)
		strbuf_puts(b, " on all");
	else
		strbuf_printf(b, " on %zu", n);
}

static void put_bytes(struct strbuf *b, int64_t bytes)
{
	if (bytes >= INT64_C(1) << 30)
		strbuf_printf(b, "%" PRId64 " GiB", bytes >> 30);
	else
		strbuf_printf(b, "%" PRId64 " MiB", bytes >> 20);
}

static void put_blocked_by(struct strbuf *b, const struct tally *y, size_t k)
{
	if (steps[k].step == CHAIN_DRIVER && y->driverless) {
		strbuf_puts(b, "by the missing driver");
		return;
	}
	strbuf_printf(b, "by %s", steps[k].blocked_by);
	if (steps[k].step != CHAIN_EXPOSURE || y->bar1_max <= 0)
		return;
	strbuf_puts(b, " (");
	put_bytes(b, y->bar1_min);
	if (y->bar1_max != y->bar1_min) {
		strbuf_puts(b, " to ");
		put_bytes(b, y->bar1_max);
	}
	strbuf_putc(b, ')');
}

/* "; blocked by the driver on all, and by BAR1 (256 MiB) on 14" */
static void put_blocked(struct strbuf *b, const struct tally *y)
{
	const char *before = "; blocked ";

	if (!y->by_verdict[PAIR_BLOCKED])
		return;
	for (size_t k = 0; k < STEP_N; k++) {
		size_t n = y->bad[steps[k].step];

		if (!n)
			continue;
		strbuf_puts(b, before);
		put_blocked_by(b, y, k);
		put_share(b, n, y->pairs);
		before = ", and ";
	}
}

/* "; undecided on 14; not known: ACS, the IOMMU" */
static void put_undecided(struct strbuf *b, const struct tally *y)
{
	const char *before = "; not known: ";

	if (!y->by_verdict[PAIR_UNDECIDED])
		return;
	strbuf_puts(b, "; undecided");
	put_share(b, y->by_verdict[PAIR_UNDECIDED], y->pairs);
	for (size_t k = 0; k < STEP_N; k++) {
		if (!y->unknown[steps[k].step])
			continue;
		strbuf_printf(b, "%s%s", before, steps[k].unknown);
		before = ", ";
	}
}

/* "; doubtful on 14: the IOMMU and BAR1 may be in the way" */
static void put_doubtful(struct strbuf *b, const struct tally *y)
{
	size_t named = y->fast + y->doubted + y->contradicted + y->slow;
	size_t n = y->by_verdict[PAIR_SUSPECT] - named;
	const char *before = ": ";

	if (!n)
		return;
	strbuf_puts(b, "; doubtful");
	put_share(b, n, y->pairs);
	for (size_t k = 0; k < STEP_N; k++) {
		if (!y->possible[steps[k].step] || !steps[k].possible)
			continue;
		strbuf_printf(b, "%s%s", before, steps[k].possible);
		before = " and ";
	}
	if (before[0] != ':')
		strbuf_puts(b, " may be in the way");
}

/* "; copies as fast as P2P on 14, their data unchecked (onehop test checks it)" */
static void put_fast(struct strbuf *b, const struct tally *y)
{
	if (!y->fast)
		return;
	if (y->by_verdict[PAIR_DIRECT]) {
		strbuf_puts(b, "; copies as fast as P2P");
		put_share(b, y->fast, y->pairs);
	} else {
		strbuf_puts(b, " copy as fast as P2P");
	}
	strbuf_puts(b, ", their data unchecked (onehop test checks it)");
}

/* "; copies no faster with P2P on than with P2P off on all" */
static void put_no_gain(struct strbuf *b, const struct tally *y)
{
	if (!y->no_gain)
		return;
	strbuf_puts(b, "; copies no faster with P2P on than with P2P off");
	put_share(b, y->no_gain, y->pairs);
}

/* "; copies far too slow on 2" */
static void put_slow(struct strbuf *b, const struct tally *y)
{
	if (!y->slow)
		return;
	strbuf_puts(b, "; copies far too slow");
	put_share(b, y->slow, y->pairs);
}

/* "; P2P in NCCL on 8, which the driver refuses (onehop test settles it)" */
static void put_contradicted(struct strbuf *b, const struct tally *y)
{
	if (!y->contradicted)
		return;
	strbuf_puts(b, "; P2P in NCCL");
	put_share(b, y->contradicted, y->pairs);
	strbuf_puts(b, ", which the driver refuses (onehop test settles it)");
}

/* "; data doubtful after a failed test on all" */
static void put_doubted(struct strbuf *b, const struct tally *y)
{
	if (!y->doubted)
		return;
	strbuf_puts(b, "; data doubtful after a failed test");
	put_share(b, y->doubted, y->pairs);
}

static void put_direct(struct strbuf *b, const struct tally *y)
{
	size_t direct = y->by_verdict[PAIR_DIRECT];

	strbuf_printf(b, "%zu of %zu pairs", direct ? direct : y->fast, y->pairs);
	if (direct || !y->fast) /* else the copies are named next */
		strbuf_puts(b, " direct");
	if (y->nvlink) {
		strbuf_printf(b, " over NVLink (NV%d", y->nvlinks_min);
		if (y->nvlinks_max != y->nvlinks_min)
			strbuf_printf(b, " to NV%d", y->nvlinks_max);
		strbuf_puts(b, y->pcie ? ") and PCIe" : ")");
	} else if (y->pcie) {
		strbuf_puts(b, " over PCIe");
	}
}

/* Policy, not hardware: told apart from what blocks. */
static void put_refused(struct strbuf *b, const struct tally *y)
{
	size_t direct = y->by_verdict[PAIR_DIRECT];

	if (y->refused && y->refused == direct)
		strbuf_puts(b, ", none of which NCCL would use by its settings");
	else if (y->refused)
		strbuf_printf(b, ", %zu of which NCCL would not use by its settings", y->refused);
}

static void put_tally(struct strbuf *b, const struct tally *y)
{
	put_direct(b, y);
	put_refused(b, y);
	put_fast(b, y);
	put_no_gain(b, y);
	put_slow(b, y);
	put_doubted(b, y);
	put_contradicted(b, y);
	put_blocked(b, y);
	put_undecided(b, y);
	put_doubtful(b, y);
}

static bool wanted_kind(const struct topology *t, size_t i, size_t j, enum endpoint_kind target)
{
	return i != j && t->endpoints[i].kind == ENDPOINT_GPU && t->endpoints[j].kind == target;
}

/* Of all ordered pairs from a GPU to a GPU, or of all GPU and NIC pairs (from the NIC's side). */
static struct tally tally_pairs(const struct topology *t, enum endpoint_kind other)
{
	struct tally y = {0};

	for (size_t i = 0; i < t->endpoint_n; i++)
		for (size_t j = 0; j < t->endpoint_n; j++)
			if (wanted_kind(t, i, j, other))
				tally_path(&y, other == ENDPOINT_NIC ? topology_path(t, j, i)
								     : topology_path(t, i, j));
	return y;
}

#define CAVEATS_NAMED 3

/* What findings say against pairs whose paths are fine, or not known: ", but see gpu-mig". */
static void put_caveats(struct strbuf *b, const struct diagnosis *d)
{
	const struct rule *last = NULL;
	size_t n = 0;

	for (size_t i = 0; i < d->finding_n && n < CAVEATS_NAMED; i++) {
		const struct finding *f = &d->findings[i];

		if (!finding_contradicts(f) || f->rule == last)
			continue;
		strbuf_printf(b, "%s%s", n++ ? ", " : ", but see ", f->rule->id);
		last = f->rule;
	}
}

static void put_gpus(struct strbuf *b, const struct diagnosis *d)
{
	const struct topology *t = d->topology;
	struct tally y = tally_pairs(t, ENDPOINT_GPU);

	strbuf_puts(b, "GPU P2P: ");
	if (t->gpu_n == 1)
		strbuf_puts(b, "1 GPU, so no pairs");
	else
		put_tally(b, &y);
	if (y.pairs && !y.overruled &&
	    y.by_verdict[PAIR_DIRECT] + y.by_verdict[PAIR_UNDECIDED] == y.pairs)
		put_caveats(b, d);
}

static void put_nics(struct strbuf *b, const struct topology *t)
{
	struct tally y = tally_pairs(t, ENDPOINT_NIC);

	if (!y.pairs)
		return;
	strbuf_puts(b, "GPUDirect RDMA: ");
	put_tally(b, &y);
}

static void put_no_gpu(struct strbuf *b, const struct machine *m)
{
	if (fact_known(m->pci_listed))
		strbuf_puts(b, "No NVIDIA GPU found, so there is nothing to judge");
	else if (m->pci_n)
		strbuf_puts(b, "Undecided: the text shows no NVIDIA GPU");
	else
		strbuf_printf(b, "Undecided: PCI devices could not be listed (%s)",
			      m->pci_listed.from ? m->pci_listed.from : "nobody looked");
}

/* Not a NIC, a NIC's driver, or a bridge on the way to one. */
static bool concerns_gpu_pairs(const struct finding *f)
{
	if (f->pairs)
		return true;
	return f->pci ? pci_is_gpu(f->pci) : !(f->rule->needs & NEEDS_RDMA);
}

bool finding_contradicts(const struct finding *f)
{
	return f->severity > SEVERITY_INFO && f->rule->blocks >= BLOCKS_SOME &&
	       concerns_gpu_pairs(f);
}

bool diagnosis_unexplained(const struct diagnosis *d)
{
	struct pair_counts counts;

	topology_count(d->topology, &counts);
	if (!counts.by_verdict[PAIR_BLOCKED])
		return false;
	for (size_t i = 0; i < d->finding_n; i++)
		if (d->findings[i].severity > SEVERITY_INFO)
			return false;
	return true;
}

const char *diagnosis_verdict_with(const struct diagnosis *d, enum endpoint_kind other, char *buf,
				   size_t size)
{
	AUTO_STRBUF struct strbuf b = {0};
	const struct topology *t = d->topology;

	if (t->gpu_n && other == ENDPOINT_NIC)
		put_nics(&b, t);
	else if (t->gpu_n)
		put_gpus(&b, d);
	else if (other == ENDPOINT_GPU)
		put_no_gpu(&b, t->machine);
	snprintf(buf, size, "%s", strbuf_str(&b));
	return buf;
}

const char *diagnosis_verdict(const struct diagnosis *d, char *buf, size_t size)
{
	char gpus[512], nics[512];

	diagnosis_verdict_with(d, ENDPOINT_GPU, gpus, sizeof(gpus));
	diagnosis_verdict_with(d, ENDPOINT_NIC, nics, sizeof(nics));
	snprintf(buf, size, "%s%s%s", gpus, *nics ? ". " : "", nics);
	return buf;
}
