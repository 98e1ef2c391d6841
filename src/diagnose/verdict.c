/* SPDX-License-Identifier: Apache-2.0 */
/* What a diagnosis comes to: a sentence for pairs of GPUs, one for GPUs and NICs. */
#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/rules.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

/* Steps in the order in which the verdict names them: what a person fixes first. */
/* clang-format off */
static const struct {
	enum chain_step step;
	bool plural; /* of the obstacle */
	const char *obstacle, *unknown, *possible;
} steps[] = {
	{CHAIN_DEVICE, true, "unusable devices", "the state of the devices", "the devices"},
	{CHAIN_DRIVER, false, "the driver", "the driver's answer", "the driver's P2P mechanism"},
	{CHAIN_EXPOSURE, false, "BAR1", "the size of BAR1", "BAR1"},
	{CHAIN_SWITCH, false, "ACS redirect", "ACS", "ACS on root ports"},
	{CHAIN_IOMMU, false, "the IOMMU", "the IOMMU", "the IOMMU"},
	{CHAIN_HOST_BRIDGE, false, "the host bridge", "the host bridge", "the CPUs between them"},
	{CHAIN_PATH, false, "a missing path", "NVLink or the PCIe path", "NVLink that is down"},
	{CHAIN_OBSERVED, true, "failed tests", "test results", NULL},
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
	size_t geforce;      /* of a GPU and a NIC: the card has no GPUDirect RDMA */
	size_t overruled;    /* bad links that a copy contradicts */
	size_t fast;         /* of suspect pairs: copies were fast, their data was not checked */
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
	y->geforce += l->state == CHAIN_BAD && l->reason == REASON_GPU_UNSUPPORTED;
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

/* "all 56", "both" or "14" */
static void put_share(struct strbuf *b, size_t n, size_t all)
{
	char text[TEXT_ALL_SIZE];

	if (n == all && n > 1)
		strbuf_puts(b, text_all(n, text));
	else
		strbuf_printf(b, "%zu", n);
}

static void put_bytes(struct strbuf *b, int64_t bytes)
{
	if (bytes >= INT64_C(1) << 30)
		strbuf_printf(b, "%" PRId64 " GiB", bytes >> 30);
	else
		strbuf_printf(b, "%" PRId64 " MiB", bytes >> 20);
}

static void put_obstacle(struct strbuf *b, const struct tally *y, size_t k)
{
	if (steps[k].step == CHAIN_DRIVER && y->driverless) {
		strbuf_puts(b, "the missing driver");
		return;
	}
	strbuf_puts(b, steps[k].obstacle);
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

/* ". The driver blocks all 56; so does BAR1 (256 MiB); failed tests block 14" */
static void put_blocked(struct strbuf *b, const struct tally *y)
{
	size_t last = 0, first;

	for (size_t k = 0; k < STEP_N; k++) {
		size_t n = y->bad[steps[k].step];

		if (!n || !y->by_verdict[PAIR_BLOCKED])
			continue;
		strbuf_puts(b, last ? "; " : ". ");
		first = b->len;
		if (n == last)
			strbuf_puts(b, steps[k].plural ? "so do " : "so does ");
		put_obstacle(b, y, k);
		if (!last)
			b->text[first] = (char)toupper((unsigned char)b->text[first]);
		if (n != last) {
			strbuf_puts(b, steps[k].plural ? " block " : " blocks ");
			put_share(b, n, y->pairs);
		}
		last = n;
	}
}

/* ". Unknown: ACS, the IOMMU" */
static void put_unknown(struct strbuf *b, const struct tally *y)
{
	const char *before = ". Unknown: ";

	for (size_t k = 0; k < STEP_N; k++) {
		if (!y->unknown[steps[k].step])
			continue;
		strbuf_printf(b, "%s%s", before, steps[k].unknown);
		before = ", ";
	}
}

/* ". Possible obstacles: the IOMMU, BAR1" */
static void put_possible(struct strbuf *b, const struct tally *y)
{
	size_t n = 0;

	for (size_t k = 0; k < STEP_N; k++)
		n += y->possible[steps[k].step] && steps[k].possible;
	if (n)
		strbuf_puts(b, text_plural(n, ". Possible obstacle: ", ". Possible obstacles: "));
	for (size_t k = 0; k < STEP_N; k++)
		if (y->possible[steps[k].step] && steps[k].possible)
			strbuf_printf(b, "%s%s", steps[k].possible, --n ? ", " : "");
}

/* Suspect pairs that no other sentence names. */
static size_t count_doubtful(const struct tally *y)
{
	return y->by_verdict[PAIR_SUSPECT] - y->fast - y->doubted - y->contradicted - y->slow;
}

/* ". WORDS on 14": what tests showed of some pairs */
static void put_seen(struct strbuf *b, const struct tally *y, size_t n, const char *words)
{
	if (!n)
		return;
	strbuf_printf(b, ". %s on ", words);
	put_share(b, n, y->pairs);
}

static void put_seen_kinds(struct strbuf *b, const struct tally *y)
{
	if (y->by_verdict[PAIR_DIRECT])
		put_seen(b, y, y->fast, "Copies as fast as P2P");
	if (y->fast)
		strbuf_puts(b, ", but their data was not checked (run onehop test)");
	put_seen(b, y, y->no_gain, "Copies no faster with P2P on than with P2P off");
	put_seen(b, y, y->slow, "Copies much slower than expected");
	put_seen(b, y, y->doubted, "Data doubtful after a failed test");
	put_seen(b, y, y->contradicted, "NCCL used P2P that the driver refuses");
	if (y->contradicted)
		strbuf_puts(b, " (run onehop test)");
}

/* NCCL's settings are policy and do not block a pair. */
static void put_refused(struct strbuf *b, const struct tally *y)
{
	if (y->refused && y->refused == y->by_verdict[PAIR_DIRECT])
		strbuf_puts(b, " (NCCL's settings exclude them)");
	else if (y->refused)
		strbuf_printf(b, " (NCCL's settings exclude %zu)", y->refused);
}

/* "4 of 12 pairs direct over PCIe, 2 doubtful, 6 undecided" */
static void put_counts(struct strbuf *b, const struct tally *y)
{
	size_t direct = y->by_verdict[PAIR_DIRECT];

	if (direct && direct == y->pairs)
		put_share(b, direct, y->pairs);
	else
		strbuf_printf(b, "%zu of %zu", direct ? direct : y->fast, y->pairs);
	strbuf_printf(b, " %s %s", text_plural(y->pairs, "pair", "pairs"),
		      direct || !y->fast ? "direct" : "copy as fast as P2P");
	if (y->nvlink) {
		strbuf_printf(b, " over NVLink (NV%d", y->nvlinks_min);
		if (y->nvlinks_max != y->nvlinks_min)
			strbuf_printf(b, " to NV%d", y->nvlinks_max);
		strbuf_puts(b, y->pcie ? ") and PCIe" : ")");
	} else if (y->pcie) {
		strbuf_puts(b, " over PCIe");
	}
	put_refused(b, y);
	if (count_doubtful(y))
		strbuf_printf(b, ", %zu doubtful", count_doubtful(y));
	if (y->by_verdict[PAIR_UNDECIDED])
		strbuf_printf(b, ", %zu undecided", y->by_verdict[PAIR_UNDECIDED]);
}

static void put_tally(struct strbuf *b, const struct tally *y)
{
	put_counts(b, y);
	put_seen_kinds(b, y);
	put_blocked(b, y);
	put_possible(b, y);
	put_unknown(b, y);
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

/*
 * A warning that the counts of direct pairs do not show: one about some pairs, slow ones for
 * instance, or about all.
 */
static bool is_caveat(const struct finding *f)
{
	return finding_contradicts(f) || (f->severity > SEVERITY_INFO && f->pairs);
}

/* What findings say against pairs whose paths are fine, or unknown: ". But see gpu-mig". */
static void put_caveats(struct strbuf *b, const struct diagnosis *d)
{
	const struct rule *last = NULL;
	size_t n = 0;

	for (size_t i = 0; i < d->finding_n && n < CAVEATS_NAMED; i++) {
		const struct finding *f = &d->findings[i];

		if (!is_caveat(f) || f->rule == last)
			continue;
		strbuf_printf(b, "%s%s", n++ ? ", " : ". But see ", f->rule->id);
		last = f->rule;
	}
}

static void put_gpus(struct strbuf *b, const struct diagnosis *d)
{
	const struct topology *t = d->topology;
	struct tally y = tally_pairs(t, ENDPOINT_GPU);

	strbuf_puts(b, "GPU P2P: ");
	if (t->gpu_n == 1)
		strbuf_puts(b, fact_unknown(t->machine->pci_listed)
				       ? "only one GPU is named, so no pair can be judged"
				       : "only one GPU, so no pairs");
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
	/* Nothing is wrong then, and nothing can be done. */
	if (y.geforce == y.pairs && y.by_verdict[PAIR_BLOCKED] == y.pairs)
		strbuf_puts(b, "not available on GeForce cards (see gdr-geforce)");
	else
		put_tally(b, &y);
}

static void put_no_gpu(struct strbuf *b, const struct machine *m)
{
	if (fact_known(m->pci_listed))
		strbuf_puts(b, "No NVIDIA GPU found");
	else if (m->pci_n)
		strbuf_puts(b, "Undecided: the text lists no NVIDIA GPU");
	else
		strbuf_printf(b, "Undecided: PCI devices could not be listed (%s)",
			      m->pci_listed.from ? m->pci_listed.from : "not collected");
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

enum verdict diagnosis_nic_verdict(const struct diagnosis *d)
{
	struct tally y = tally_pairs(d->topology, ENDPOINT_NIC);

	if (y.geforce == y.pairs)
		return VERDICT_NA;
	if (y.by_verdict[PAIR_BLOCKED])
		return VERDICT_BAD;
	return y.by_verdict[PAIR_DIRECT] == y.pairs ? VERDICT_OK : VERDICT_UNKNOWN;
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

bool diagnosis_judged_any(const struct diagnosis *d)
{
	struct pair_counts c;

	topology_count(d->topology, &c);
	if (c.pairs)
		return c.by_verdict[PAIR_UNDECIDED] < c.pairs;
	return d->topology->endpoint_n > 0;
}

static bool pairs_were_decided(const struct diagnosis *d)
{
	struct pair_counts c;

	topology_count(d->topology, &c);
	return !c.pairs || (!c.by_verdict[PAIR_UNDECIDED] && c.by_verdict[PAIR_SUSPECT] < c.pairs);
}

enum verdict diagnosis_judge(const struct diagnosis *d, int least, bool unexplained)
{
	if (unexplained && least <= SEVERITY_ERROR)
		return VERDICT_BAD;
	for (size_t i = 0; i < d->finding_n; i++)
		if ((int)d->findings[i].severity >= least)
			return VERDICT_BAD;
	return diagnosis_judged_any(d) && pairs_were_decided(d) ? VERDICT_OK : VERDICT_UNKNOWN;
}
