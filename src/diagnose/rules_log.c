/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about what the kernel log tells: Xid, AER, IOMMU faults, BARs, the driver's own lines. */
#include "base/alloc.h"
#include "base/text.h"
#include "diagnose/rules.h"
#include "machine/usable.h"
#include "machine/xid.h"

#include <inttypes.h>
#include <string.h>

/* ---- lines that say the same of the same device ---- */

struct log_group {
	const struct pci_function *pci;
	int64_t code;         /* -1: none */
	const char *severity; /* AER's word */
	size_t n;             /* events; AER writes several lines for one */
	const struct log_line *first, *last;
};

struct log_groups {
	struct log_group *groups;
	size_t n;
};

typedef bool (*log_filter)(const struct rule *rule, const struct log_line *l);

/* Only some lines contain AER's bits, so they tell no groups apart. */
static int64_t group_code(const struct log_line *l)
{
	return l->kind == LOG_AER ? -1 : fact_or(l->code, -1);
}

static struct log_group *find_group(struct log_groups *all, const struct log_line *l)
{
	for (size_t i = 0; i < all->n; i++) {
		struct log_group *g = &all->groups[i];

		if (g->pci == l->pci && g->code == group_code(l) &&
		    !strcmp(g->severity, l->severity ? l->severity : ""))
			return g;
	}
	return NULL;
}

static bool is_event(const struct log_line *l)
{
	return l->kind != LOG_AER || strstr(l->text, "PCIe Bus Error");
}

static struct log_groups collect(struct rule_run *run, log_filter wanted)
{
	struct log_groups all = {0};

	FOR_EACH_IN(struct log_line, l, run->m->log, run->m->log_n)
	{
		struct log_group *g;

		if (!wanted(run->rule, l))
			continue;
		g = find_group(&all, l);
		if (!g) {
			g = ARENA_PUSH(run->d->arena, all.groups, all.n);
			*g = (struct log_group){.pci = l->pci,
						.code = group_code(l),
						.severity = l->severity ? l->severity : "",
						.first = l};
		}
		g->n += is_event(l);
		g->last = l;
	}
	return all;
}

/*
 * "once", "3 times, last 3742.9 s after boot"; where lines were left out "at least 3 times", and
 * the last may not be it.
 */
static const char *how_often(struct rule_run *run, const struct log_group *g)
{
	const struct machine *m = run->m;
	const char *least = m->log_lacks_older || m->log_lacks_some ? "at least " : "";
	const char *n = g->n <= 1 ? run_text(run, "%sonce", least)
				  : run_text(run, "%s%zu times", least, g->n);

	if (g->last->time_us < 0 || (g->n > 1 && m->log_lacks_some))
		return n;
	return run_text(run, "%s, %s%.1f s after boot", n, g->n <= 1 ? "" : "last ",
			(double)g->last->time_us / 1e6);
}

static void show_lines(struct rule_run *run, struct finding *f, const struct log_group *g)
{
	finding_evidence(run, f, NULL, "kernel log", "%s", g->first->text);
	if (g->last != g->first)
		finding_evidence(run, f, NULL, "kernel log, last", "%s", g->last->text);
	f->pci = g->pci;
}

/* ---- the devices that lines name ---- */

static const struct gpu *gpu_of(struct rule_run *run, const struct pci_function *f)
{
	FOR_EACH_GPU (g, run)
		if (f && g->pci == f)
			return g;
	return NULL;
}

static const char *nic_of(struct rule_run *run, const struct pci_function *f)
{
	FOR_EACH_RDMA (d, run)
		if (f && d->pci == f)
			return d->name;
	return NULL;
}

static bool is_above(const struct pci_function *bridge, const struct pci_function *f)
{
	for (; f; f = f->parent)
		if (f == bridge)
			return true;
	return false;
}

/* A GPU, an RDMA device, or a bridge on the way to one. */
static bool carries_peers(struct rule_run *run, const struct pci_function *f)
{
	if (!f)
		return false;
	FOR_EACH_GPU (g, run)
		if (is_above(f, g->pci))
			return true;
	FOR_EACH_RDMA (d, run)
		if (is_above(f, d->pci))
			return true;
	return false;
}

static struct subject subject_of(struct rule_run *run, const struct pci_function *f)
{
	const struct gpu *g = gpu_of(run, f);
	const char *nic = nic_of(run, f);

	if (!f)
		return SUBJECT(HOST, "kernel log");
	if (g)
		return subject_gpu(run, g);
	if (nic)
		return subject_device(run, SUBJECT_NIC, nic, f);
	return pci_is_bridge(f) ? subject_device(run, SUBJECT_PORT, "port", f)
				: subject_device(run, SUBJECT_DEVICE, "device", f);
}

/* ---- Xid ---- */

static bool is_half_unlock(const struct log_line *l)
{
	return log_line_proof(l) == PROOF_PEER_KIND;
}

/* number: enum xid_class. */
static bool wants_xid(const struct rule *rule, const struct log_line *l)
{
	const struct xid *x;

	if (l->kind != LOG_XID || is_half_unlock(l))
		return false;
	x = fact_known(l->code) ? xid_find(l->code.value) : NULL;
	return (int)(x ? x->class : XID_OTHER) == rule->number;
}

/*
 * The log shows that the GPU was lost, and NVML answers for it: the pairs are doubtful, not
 * blocked.
 */
static bool is_back(struct rule_run *run, const struct pci_function *gpu)
{
	FOR_EACH_GPU_PAIR (i, j, run) {
		const struct chain_link *l = &topology_path(run->t, i, j)->chain[CHAIN_DEVICE];

		if (l->reason == REASON_DEVICE_FAILED && l->state == CHAIN_POSSIBLE && l->at == gpu)
			return true;
	}
	return false;
}

/* Texts are of moments that nothing puts in order. */
static const char *back_meaning(const struct rule_run *run)
{
	return run->m->text_part_n
		       ? "nvidia-smi also lists the GPU; whether it did so before or after this error is "
			 "unknown"
		       : "the GPU responds to NVML again, but it may fail again";
}

static void report_known_xid(struct rule_run *run, const struct log_group *g, const struct xid *x)
{
	bool back = log_line_proof(g->last) && is_back(run, g->pci);
	const char *meaning = back ? back_meaning(run) : x->meaning;
	const char *peer = back ? NULL : x->peer;
	struct finding *f =
		finding_add(run, CONFIDENCE_CERTAIN, subject_of(run, g->pci),
			    "Xid %" PRId64 " (%s) %s: %s%s%s", g->code, x->name, how_often(run, g),
			    meaning, peer ? "; " : "", peer ? peer : "");

	f->severity = x->severity;
	finding_remedy(run, f, "%s", x->remedy);
	show_lines(run, f, g);
}

static void report_unknown_xid(struct rule_run *run, const struct log_group *g)
{
	const char *number =
		g->code < 0 ? "Xid without a number" : run_text(run, "Xid %" PRId64, g->code);
	struct finding *f = finding_add(
		run, CONFIDENCE_POSSIBLE, subject_of(run, g->pci),
		"%s %s: onehop does not know this code, so whether it affects peer traffic "
		"is unknown",
		number, how_often(run, g));

	show_lines(run, f, g);
}

static enum verdict probe_xid(struct rule_run *run)
{
	struct log_groups all = collect(run, wants_xid);

	for (size_t i = 0; i < all.n; i++) {
		const struct xid *x = xid_find(all.groups[i].code);

		if (x)
			report_known_xid(run, &all.groups[i], x);
		else
			report_unknown_xid(run, &all.groups[i]);
	}
	return VERDICT_OK;
}

/* ---- an edit of the driver that was not finished ---- */

static bool wants_half_unlock(const struct rule *rule, const struct log_line *l)
{
	(void)rule;
	return is_half_unlock(l);
}

/* A page table entry's field got a value that it cannot hold. */
static const struct log_line *field_overflow(struct rule_run *run)
{
	FOR_EACH_IN(struct log_line, l, run->m->log, run->m->log_n)
	if (strstr(l->text, "nvAssertFailed") && strstr(l->text, "field_desc.h"))
		return l;
	return NULL;
}

static void report_half_unlock(struct rule_run *run, const struct log_group *g,
			       const struct log_line *overflow)
{
	const struct gpu *gpu = gpu_of(run, g->pci);
	const char *lacks = unlock_lacks(run, gpu, overflow != NULL);
	struct finding *f = finding_add(
		run, CONFIDENCE_LIKELY, subject_of(run, g->pci),
		"Xid %" PRId64
		" with %s %s: P2P is enabled, but the page table entries for the peer are of "
		"a kind that the hardware rejects; copies report success and change "
		"nothing%s%s",
		g->code, xid_find(g->code)->proof_text, how_often(run, g), lacks ? ": " : "",
		lacks ? lacks : "");

	show_lines(run, f, g);
	if (overflow)
		finding_evidence(run, f, NULL, "kernel log", "%s", overflow->text);
	evidence_unlock(run, f, gpu);
}

/* A checked copy of which the target holds nothing, where no mapping can be right but BAR1's. */
static bool is_lost(struct rule_run *run, const struct observed *o)
{
	static const char *const kinds[] = {"zeros", "lost", "mirror"};
	const struct machine *m = run->m;

	if (o->kind != OBSERVED_PEER_COPY || o->ok || o->initiator < 0 || o->target < 0 ||
	    !o->text || !fact_is(card_needs_bar1(&m->gpus[o->target]), 1) ||
	    path_is_nvlink(topology_path(run->t, (size_t)o->initiator, (size_t)o->target)))
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(o->text, kinds[i]))
			return true;
	return false;
}

/* Nothing faulted; a mapping that leads elsewhere does not have to. */
static void report_zeros(struct rule_run *run)
{
	struct pair_set lost = pair_set_new(run);
	const struct observed *first = NULL;
	const struct gpu *target;
	const char *lacks;
	struct finding *f;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (!is_lost(run, o))
			continue;
		pair_set_add(&lost, (size_t)o->initiator, (size_t)o->target);
		first = first ? first : o;
	}
	if (!first)
		return;
	target = &run->m->gpus[first->target];
	lacks = unlock_lacks(run, target, false);
	f = finding_add(run, CONFIDENCE_POSSIBLE, SUBJECT(DRIVER, "nvidia module"),
			"the driver allows P2P, but no checked copy arrived: %s%s%s",
			pair_set_text(run, &lost), lacks ? "; " : "", lacks ? lacks : "");
	finding_names_pairs(run, f, &lost);
	finding_evidence(run, f, first->from,
			 run_text(run, "GPU%d->GPU%d", first->initiator, first->target), "%s",
			 first->text);
	evidence_unlock(run, f, target);
}

static enum verdict probe_half_unlock(struct rule_run *run)
{
	struct log_groups all = collect(run, wants_half_unlock);
	const struct log_line *overflow = field_overflow(run);

	for (size_t i = 0; i < all.n; i++)
		report_half_unlock(run, &all.groups[i], overflow);
	if (!all.n && !overflow)
		report_zeros(run);
	if (!all.n && overflow) {
		struct finding *f = finding_add(
			run, CONFIDENCE_POSSIBLE, SUBJECT(DRIVER, "nvidia module"),
			"the driver wrote a value that does not fit into its page table entry field: "
			"the peer's address does not fit the mapping kind that was chosen");

		finding_evidence(run, f, NULL, "kernel log", "%s", overflow->text);
	}
	return VERDICT_OK;
}

/* ---- NVSwitch ---- */

static bool wants_sxid(const struct rule *rule, const struct log_line *l)
{
	(void)rule;
	return l->kind == LOG_FABRIC && strstr(l->text, "SXid");
}

static enum verdict probe_sxid(struct rule_run *run)
{
	struct log_groups all = collect(run, wants_sxid);

	for (size_t i = 0; i < all.n; i++) {
		const struct log_group *g = &all.groups[i];
		bool fatal = strstr(g->last->text, "Fatal") && !strstr(g->last->text, "Non-fatal");
		struct finding *f =
			finding_add(run, CONFIDENCE_CERTAIN,
				    g->pci ? subject_device(run, SUBJECT_DEVICE, "NVSwitch", g->pci)
					   : SUBJECT(GPUS, "NVSwitch"),
				    "SXid %" PRId64 " %s: the switch reported a %s error", g->code,
				    how_often(run, g), fatal ? "fatal" : "non-fatal");

		if (!fatal)
			f->severity = SEVERITY_WARNING;
		show_lines(run, f, g);
	}
	return VERDICT_OK;
}

/* ---- AER ---- */

#define MANY_CORRECTED 10

static bool wants_corrected(const struct rule *rule, const struct log_line *l)
{
	(void)rule;
	return l->kind == LOG_AER && l->severity && !strcmp(l->severity, "corrected");
}

static bool wants_uncorrected(const struct rule *rule, const struct log_line *l)
{
	return l->kind == LOG_AER && !wants_corrected(rule, l);
}

static enum verdict probe_aer_corrected(struct rule_run *run)
{
	struct log_groups all = collect(run, wants_corrected);

	for (size_t i = 0; i < all.n; i++) {
		const struct log_group *g = &all.groups[i];
		struct finding *f =
			finding_add(run, CONFIDENCE_CERTAIN, subject_of(run, g->pci),
				    "corrected PCIe errors %s: packets were retransmitted",
				    how_often(run, g));

		if (g->n < MANY_CORRECTED || !carries_peers(run, g->pci))
			f->severity = SEVERITY_INFO;
		show_lines(run, f, g);
		if (g->pci && fact_known(g->pci->link_speed))
			finding_evidence(run, f, NULL, "link",
					 "%" PRId64 ".%" PRId64 " GT/s, trained to x%" PRId64,
					 g->pci->link_speed.value / 1000,
					 g->pci->link_speed.value % 1000 / 100,
					 fact_or(g->pci->link_width, 0));
	}
	return VERDICT_OK;
}

static bool tells_acs_violation(struct rule_run *run, const struct pci_function *f)
{
	FOR_EACH_IN(struct log_line, l, run->m->log, run->m->log_n)
	if (l->kind == LOG_AER && l->pci == f && strstr(l->text, "ACSViol"))
		return true;
	return false;
}

static enum verdict probe_aer_uncorrected(struct rule_run *run)
{
	struct log_groups all = collect(run, wants_uncorrected);

	for (size_t i = 0; i < all.n; i++) {
		const struct log_group *g = &all.groups[i];
		bool acs = tells_acs_violation(run, g->pci);
		struct finding *f =
			finding_add(run, CONFIDENCE_CERTAIN, subject_of(run, g->pci),
				    "%s PCIe errors %s: %s",
				    *g->severity ? g->severity : "uncorrected", how_often(run, g),
				    acs ? "a port rejected packets because of ACS"
					: "packets and their data were lost or corrupted");

		if (!carries_peers(run, g->pci))
			f->severity = SEVERITY_INFO;
		else if (!strcmp(g->severity, "nonfatal"))
			f->severity = SEVERITY_WARNING;
		show_lines(run, f, g);
	}
	return VERDICT_OK;
}

/* ---- IOMMU ---- */

static bool wants_iommu_fault(const struct rule *rule, const struct log_line *l)
{
	(void)rule;
	return l->kind == LOG_IOMMU_FAULT;
}

/* What the blocked device is: a text that lists none may be about a GPU. */
static const struct fault_kind {
	const char *device, *effect;
	enum severity severity;
	enum confidence confidence;
} fault_of_peer = {"this device",
		   ": its peer traffic passes through the IOMMU, which has no mapping for it; "
		   "writes vanish and reads return nothing",
		   SEVERITY_ERROR, CONFIDENCE_LIKELY},
  fault_of_unlisted = {"a device that is not listed",
		       "; if it is a GPU or a NIC, the IOMMU has no mapping for its peer traffic: "
		       "writes vanish and reads return nothing",
		       SEVERITY_WARNING, CONFIDENCE_POSSIBLE},
  fault_of_other = {"this device", "", SEVERITY_INFO, CONFIDENCE_CERTAIN},
  fault_of_unknown = {"a device that is not listed", "", SEVERITY_INFO, CONFIDENCE_CERTAIN};

static const struct fault_kind *fault_kind(struct rule_run *run, const struct pci_function *f)
{
	if (gpu_of(run, f) || nic_of(run, f))
		return &fault_of_peer;
	if (f)
		return &fault_of_other;
	return fact_unknown(run->m->pci_listed) ? &fault_of_unlisted : &fault_of_unknown;
}

static void report_iommu_fault(struct rule_run *run, const struct log_group *g)
{
	const struct fault_kind *k = fault_kind(run, g->pci);
	struct finding *f = finding_add(run, k->confidence, subject_of(run, g->pci),
					"the IOMMU blocked accesses by %s %s%s", k->device,
					how_often(run, g), k->effect);

	f->severity = k->severity;
	show_lines(run, f, g);
	if (g->pci && fact_known(g->pci->iommu_type))
		finding_evidence(run, f, NULL,
				 run_text(run, "IOMMU group type of %s", g->pci->name), "%s",
				 g->pci->iommu_type.value);
}

static enum verdict probe_iommu_fault(struct rule_run *run)
{
	struct log_groups all = collect(run, wants_iommu_fault);

	for (size_t i = 0; i < all.n; i++)
		report_iommu_fault(run, &all.groups[i]);
	return VERDICT_OK;
}

/* ---- BARs ---- */

/* I/O ports: 64 KiB never suffice for many bridges, and no GPU or NIC needs them. */
static bool wants_bar(const struct rule *rule, const struct log_line *l)
{
	(void)rule;
	return l->kind == LOG_BAR && !text_starts_with(l->text, "NVRM") && !strstr(l->text, "[io ");
}

/* The kernel often tries again with success; what counts is whether every BAR has an address now.
 */
static bool bars_fine(const struct pci_function *f)
{
	if (!f->bars_known)
		return false;
	for (size_t i = 0; i < sizeof(f->bars) / sizeof(f->bars[0]); i++)
		if (pci_bar_lacks_address(f, i))
			return false;
	return true;
}

static bool is_at_or_below(const struct pci_function *f, const struct pci_function *top)
{
	while (f && f != top)
		f = f->parent;
	return f;
}

/* A bridge's window is as good as what is behind it. */
static bool bars_fine_from(struct rule_run *run, const struct pci_function *top)
{
	const struct machine *m = run->m;

	for (size_t i = 0; i < m->pci_n; i++)
		if (is_at_or_below(&m->pci[i], top) && !bars_fine(&m->pci[i]))
			return false;
	return top;
}

static enum verdict probe_bar_assignment(struct rule_run *run)
{
	struct log_groups all = collect(run, wants_bar);

	for (size_t i = 0; i < all.n; i++) {
		const struct log_group *g = &all.groups[i];
		bool fine = bars_fine_from(run, g->pci);
		struct finding *f = finding_add(
			run, fine ? CONFIDENCE_POSSIBLE : CONFIDENCE_CERTAIN,
			subject_of(run, g->pci),
			fine ? "the kernel found no room for a BAR or window %s; every BAR has an address "
			       "now, perhaps with a smaller size"
			     : "the kernel found no room for a BAR or window %s",
			how_often(run, g));

		if (fine || !carries_peers(run, g->pci))
			f->severity = SEVERITY_INFO;
		bar_room_remedy(run, f);
		show_lines(run, f, g);
	}
	return VERDICT_OK;
}

/* ---- lines that are known by their text ---- */

/* A row's argument. */
struct log_sign {
	enum log_proof proof; /* PROOF_NONE: by its text */
	const char *texts[4]; /* any of them */
	const char *not_text; /* unless the line holds this */
	enum confidence confidence;
	const char *sentence; /* followed by how often */
};

static bool wants_sign(const struct rule *rule, const struct log_line *l)
{
	const struct log_sign *s = rule->argument;

	if (s->proof)
		return log_line_proof(l) == s->proof;
	if (s->not_text && strstr(l->text, s->not_text))
		return false;
	for (size_t i = 0; i < sizeof(s->texts) / sizeof(s->texts[0]); i++)
		if (s->texts[i] && strstr(l->text, s->texts[i]))
			return true;
	return false;
}

/* A line without a device begins what the next ones say of theirs. */
static bool names_a_device(const struct log_groups *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->groups[i].pci)
			return true;
	return false;
}

static enum verdict probe_sign(struct rule_run *run)
{
	const struct log_sign *s = run->rule->argument;
	struct log_groups all = collect(run, wants_sign);
	bool named = names_a_device(&all);

	for (size_t i = 0; i < all.n; i++) {
		const struct log_group *g = &all.groups[i];
		struct finding *f;

		if (!g->pci && named)
			continue;
		f = finding_add(run, s->confidence, subject_of(run, g->pci), "%s (%s)", s->sentence,
				how_often(run, g));
		show_lines(run, f, g);
	}
	return VERDICT_OK;
}

/* number: enum tool_message; text: what happened to the module. */
static void heard_refusal(struct rule_run *run)
{
	const struct observed *o = message_heard(run, (enum tool_message)run->rule->number);

	if (o)
		evidence_text(run,
			      finding_add(run, CONFIDENCE_LIKELY, SUBJECT(HOST, "kernel"),
					  "the " ABOUT " rejected a module %s", run->rule->text),
			      o->from, o->text);
}

/* ---- the table ---- */

#define XID_CATALOG "NVIDIA Xid catalog, docs.nvidia.com/deploy/xid-errors"

/* ---- boots ---- */

static void heard_boots(struct rule_run *run)
{
	enum { SHOWN = 8 };
	struct finding *f = NULL;
	size_t n = 0;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (o->kind != OBSERVED_MESSAGE || o->message != MESSAGE_BOOT_DIFFERS)
			continue;
		if (!f)
			f = finding_add(run, CONFIDENCE_POSSIBLE, SUBJECT(HOST, "kernel log"),
					"its last two boots differ: if P2P worked before, this may "
					"be why it does not now");
		if (n++ < SHOWN)
			evidence_text(run, f, o->from, o->text);
	}
	if (n > SHOWN)
		evidence_text(run, f, NULL, run_text(run, "%zu more", n - SHOWN));
}

/* The kernel's own log is of one boot; a text may have lost the others. */
static enum verdict probe_boots(struct rule_run *run)
{
	return run->m->text_part_n ? VERDICT_NA : VERDICT_OK;
}

const struct rule rules_log[] = {
	{
		.id = "unlock-half-done",
		.title =
			"Peer mappings of an edited driver are of a kind that the hardware accepts",
		.why = "A driver edited to allow P2P must also write page table entries that suit "
		       "peer memory behind BAR1. If only the permission was edited, CUDA allows P2P "
		       "and copies look fast, but the data never arrives.",
		.remedy = "install an edit that covers the mapping for this driver version, or "
			  "reinstall NVIDIA's modules; do not use P2P until a data check passes",
		.reference = "tinygrad/open-gpu-kernel-modules (550.54.15-p2p); Xid 31",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.needs = NEEDS_LOG | NEEDS_GPU,
		.probe = probe_half_unlock,
	},
	{
		.id = "peer-misaligned",
		.title = "The driver can map every peer at the required alignment",
		.why = "An edited driver maps a peer's BAR1 in large pages. If the peer's memory is "
		       "not aligned to them, mapping fails and CUDA returns error 205.",
		.remedy =
			"use an edit that handles the offset; before that, set the IOMMU to off or "
			"pass-through and BAR1 to its full size, if they are not. Never just relax "
			"the check.",
		.reference = "tinygrad/open-gpu-kernel-modules#44, #48",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.needs = NEEDS_LOG | NEEDS_GPU,
		.probe = probe_sign,
		.argument =
			&(const struct log_sign){
				.proof = PROOF_PEER_MISALIGNED,
				.confidence = CONFIDENCE_CERTAIN,
				.sentence =
					"the driver refused to map a peer: the peer's memory is not aligned as this "
					"mapping requires (often to 512 MiB)",
			},
	},
	{
		.id = "iommu-fault",
		.title = "The IOMMU blocked no access by a GPU or RDMA device",
		.why = "A translating IOMMU has no mapping for a peer's address and drops the "
		       "access: data is lost without an error in the program, and a GPU may hang.",
		.remedy = "boot with iommu=pt (or amd_iommu=off, intel_iommu=off), and clear ACS "
			  "redirects so that peer traffic stays below its switch",
		.reference = "NVIDIA/cuda-samples#48; Linux Documentation/arch/x86/iommu.rst",
		.ends_runs = true,
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG,
		.probe = probe_iommu_fault,
	},
	{
		.id = "xid-bus",
		.title = "Every GPU stayed on its PCIe link (no Xid 79 or similar)",
		.why = "A GPU that drops off PCIe fails all its pairs, and every process that waits "
		       "for it hangs.",
		.remedy = "reseat the card, its riser and its power cables",
		.reference = XID_CATALOG,
		.ends_runs = true,
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG | NEEDS_GPU,
		.probe = probe_xid,
		.number = XID_BUS,
	},
	{
		.id = "xid-nvlink",
		.title = "The kernel log shows no NVLink errors (no Xid 74 or similar)",
		.why = "The driver disables a failing link; its pairs fall back to PCIe or fail.",
		.remedy = "check `nvidia-smi nvlink -s` and `-e`; reseat the bridge or check the "
			  "switches",
		.reference = XID_CATALOG,
		.ends_runs = true,
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG | NEEDS_GPU,
		.probe = probe_xid,
		.number = XID_NVLINK,
	},
	{
		.id = "nvswitch-sxid",
		.title = "The kernel log shows no NVSwitch errors (SXid)",
		.why = "A fatal switch error stops all traffic through that switch until GPUs and "
		       "switches are reset together.",
		.remedy =
			"look up the number in the Fabric Manager User Guide; after a fatal error "
			"reset GPUs and switches together (`nvidia-smi -r` without -i) and restart "
			"nvidia-fabricmanager",
		.reference = "NVIDIA Fabric Manager User Guide, SXid errors",
		.ends_runs = true,
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG,
		.probe = probe_sxid,
	},
	{
		.id = "xid-memory",
		.title = "The kernel log shows no GPU memory errors",
		.why = "Peers read wrong values from the GPU's memory as if they were good.",
		.remedy = "reset the GPU; if the error returns, have the card replaced",
		.reference = XID_CATALOG,
		.ends_runs = true,
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG | NEEDS_GPU,
		.probe = probe_xid,
		.number = XID_MEMORY,
	},
	{
		.id = "xid-firmware",
		.title =
			"The GPUs' system processors responded to the driver (no Xid 62, 119, 120 or "
			"similar)",
		.why = "With the open modules the GPU's system processor sets up peer mappings; a "
		       "GPU whose processor hangs blocks its peers too.",
		.remedy = "reset the GPU; update the driver within its branch",
		.reference = XID_CATALOG,
		.ends_runs = true,
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG | NEEDS_GPU,
		.probe = probe_xid,
		.number = XID_FIRMWARE,
	},
	{
		.id = "xid-fault",
		.title = "No GPU rejected a program's access (no Xid 13, 31 or similar)",
		.why = "Usually a bug in the program. A peer mapping that leads nowhere fails the "
		       "same way, so note the engine and the address in the line.",
		.remedy = "restart the program; if only peer copies fail, suspect the mapping",
		.reference = XID_CATALOG,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_LOG | NEEDS_GPU,
		.probe = probe_xid,
		.number = XID_FAULT,
	},
	{
		.id = "xid-other",
		.title = "The kernel log shows no other Xid",
		.why = "Display, video and power errors do not affect peer traffic by themselves, "
		       "but show that something is wrong with the card.",
		.remedy =
			"note the driver version and the whole line, and look it up in NVIDIA's Xid "
			"catalog",
		.reference = XID_CATALOG,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_LOG | NEEDS_GPU,
		.probe = probe_xid,
		.number = XID_OTHER,
	},
	{
		.id = "aer-uncorrected",
		.title = "No PCIe link lost packets (no uncorrected AER errors)",
		.why = "The data is lost, not retransmitted: copies hang or deliver wrong values.",
		.remedy =
			"reseat card and riser, clean the contacts, try a lower link speed in the "
			"firmware setup; for ACS violations see rule acs-redirect",
		.reference = "Linux Documentation/PCI/pcieaer-howto.rst; PCI Express 6.0, 6.2",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG,
		.probe = probe_aer_uncorrected,
	},
	{
		.id = "aer-corrected",
		.title = "PCIe links do not retransmit packets (few corrected AER errors)",
		.why = "Each corrected error costs a retransmission. Many mean a marginal riser, "
		       "slot or speed, and precede uncorrected errors.",
		.remedy =
			"reseat card and riser, use a shorter or better riser, or set the slot one "
			"generation lower in the firmware setup",
		.reference = "Linux Documentation/PCI/pcieaer-howto.rst",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_LOG,
		.probe = probe_aer_corrected,
	},
	{
		.id = "bar-assignment",
		.title = "The kernel found room for every BAR",
		.why = "A GPU with an unassigned BAR does not work; one whose BAR1 stayed small "
		       "cannot expose all of its memory to peers.",
		.remedy = "enable 'Above 4G Decoding' in the firmware setup, or boot with "
			  "pci=realloc=on (and pci=hpmmioprefsize=SIZE below hot-plug ports)",
		.reference = "Linux Documentation/admin-guide/kernel-parameters.txt (pci=realloc); "
			     "aikitoria/open-gpu-kernel-modules#9",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG,
		.probe = probe_bar_assignment,
	},
	{
		.id = "bar-invalid",
		.title = "The driver found an address in every GPU BAR",
		.why = "The driver ignores such a GPU, so CUDA cannot see it.",
		.remedy = "enable 'Above 4G Decoding' in the firmware setup, or boot with "
			  "pci=realloc=on",
		.reference = "kernel-open/nvidia/nv-pci.c of NVIDIA/open-gpu-kernel-modules",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG,
		.probe = probe_sign,
		.argument =
			&(const struct log_sign){
				.proof = PROOF_GPU_NO_BAR,
				.confidence = CONFIDENCE_CERTAIN,
				.sentence = "the driver found a GPU BAR without an address",
			},
	},
	{
		.id = "open-modules-card",
		.title = "The open modules of this release drive the cards",
		.why = "Early releases of the open modules (from 515 on) drive GeForce and workstation "
		       "cards only if told to: the card stays without a driver, and has no P2P.",
		.remedy =
			"install a current release, or the proprietary modules; or set "
			"NVreg_OpenRmEnableUnsupportedGpus=1 for nvidia in /etc/modprobe.d, and load the "
			"modules again",
		.reference = "README of driver 515, chapter 44 (Open Linux Kernel Modules); "
			     "NVIDIA/open-gpu-kernel-modules#230",
		.severity = SEVERITY_ERROR,
		.turn = TURN_EARLY, /* the driver then initializes the card */
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG,
		.probe = probe_sign,
		.argument =
			&(const struct log_sign){
				.texts = {"Open nvidia.ko is only ready for use on"},
				.confidence = CONFIDENCE_CERTAIN,
				.sentence =
					"the open modules refused a card that they do not support yet",
			},
	},
	{
		.id = "driver-start",
		.title = "The driver could initialize every GPU",
		.why = "A GPU that cannot be initialized has no P2P.",
		.remedy =
			"reboot; check that firmware files and module have the same version, then "
			"power and slot",
		.reference = "src/nvidia/arch/nvalloc/unix/src/osinit.c of "
			     "NVIDIA/open-gpu-kernel-modules",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG,
		.probe = probe_sign,
		.argument =
			&(const struct log_sign){
				.proof = PROOF_GPU_NOT_STARTED,
				.confidence = CONFIDENCE_CERTAIN,
				.sentence = "the driver could not initialize the GPU",
			},
	},
	{
		.id = "gpu-gone",
		.title = "The driver found every GPU on the bus",
		.why = "A GPU that does not answer when the driver starts is not listed by nvidia-smi, and "
		       "there is no Xid about it.",
		.remedy =
			"reseat card, riser and power cables, try another slot, watch the temperature; "
			"then switch the machine off and on",
		.reference = "NVIDIA/open-gpu-kernel-modules; NVIDIA/NVSentinel#155",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG,
		.probe = probe_sign,
		.argument =
			&(const struct log_sign){
				.texts = {"fallen off the bus and is not responding"},
				.confidence = CONFIDENCE_CERTAIN,
				.sentence =
					"a GPU did not answer the driver: it has fallen off the bus",
			},
	},
	{
		.id = "iova-leftover",
		.title = "The driver found no peer mappings that outlived their owner",
		.why = "Edited drivers map a peer's BAR1 through the IOMMU and may fail to unmap it "
		       "when a process exits. No harm from this is known.",
		.remedy = "to avoid such mappings, boot with iommu=pt",
		.reference = "tinygrad/open-gpu-kernel-modules#29, #38",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_LOG,
		.probe = probe_sign,
		.argument =
			&(const struct log_sign){
				.texts = {"left-over mappings in IOVAS"},
				.confidence = CONFIDENCE_CERTAIN,
				.sentence =
					"the driver found mappings of peer memory that outlived their owner",
			},
	},
	{
		.id = "api-mismatch",
		.title = "The driver's libraries match the kernel module",
		.why = "The module rejects libraries of any other version: CUDA and NVML do not "
		       "work until the versions match.",
		.remedy = "reboot, or unload and load the modules; after an update rebuild the "
			  "initramfs",
		.reference =
			"src/nvidia/arch/nvalloc/unix/src/osapi.c of NVIDIA/open-gpu-kernel-modules",
		.severity = SEVERITY_WARNING, /* the state now is another rule's */
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_LOG,
		.probe = probe_sign,
		.argument =
			&(const struct log_sign){
				.texts = {"API mismatch"},
				.confidence = CONFIDENCE_CERTAIN,
				.sentence =
					"the driver's libraries and kernel module have different versions",
			},
	},
	{
		.id = "module-refused",
		.title = "The kernel rejected no module because of its signature",
		.why = "A driver or nvidia-peermem that you built yourself is then not loaded.",
		.remedy =
			"sign the modules and enroll the key (`mokutil --import`), or disable Secure "
			"Boot in the firmware setup",
		.reference = "Linux Documentation/admin-guide/module-signing.rst",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG,
		.probe = probe_sign,
		.argument =
			&(const struct log_sign){
				.texts = {"unsigned module loading is restricted",
					  "Loading of unsigned module is rejected",
					  "Key was rejected by service",
					  "Loading of module with unavailable key is rejected"},
				.confidence = CONFIDENCE_LIKELY,
				.sentence = "the kernel rejected a module because of its signature",
			},
		.heard = heard_refusal,
		.number = MESSAGE_MODULE_UNSIGNED,
		.text = "because of its signature",
	},
	{
		.id = "module-symbols",
		.title = "Every loaded module matches the kernel and the modules that it needs",
		.why = "The module is not loaded; an older copy may be, or none.",
		.remedy = "rebuild the module for the running kernel (`dkms autoinstall`), run "
			  "`depmod -a` and update the initramfs",
		.reference = "Linux Documentation/kbuild/modules.rst",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_LOG,
		.probe = probe_sign,
		.argument =
			&(const struct log_sign){
				.texts = {"disagrees about version of symbol", "Unknown symbol"},
				/* rules_rdma.c tells those apart */
				.not_text = "peer_memory_client",
				.confidence = CONFIDENCE_CERTAIN,
				.sentence =
					"a module was rejected because it was built for another kernel or other "
					"modules",
			},
		.heard = heard_refusal,
		.number = MESSAGE_MODULE_MISFIT,
		.text = "because it was built for another kernel or other modules",
	},
	{
		.id = "boots-differ",
		.title = "The boots in a kernel log have the same kernel, driver, BARs and ACS",
		.why = "What worked at one boot and fails at the next was changed between them: an "
		       "update, a firmware setting, a kernel parameter.",
		.remedy = "if P2P worked at the earlier boot, go back on the difference, one at a "
			  "time, and run onehop test after each",
		.reference = "drivers/pci/probe.c and pci.c of Linux (BAR and ACS lines)",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_LOG,
		.probe = probe_boots,
		.heard = heard_boots,
	},
	{0},
};
