/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over a machine and its topology; each says ok, bad, not applicable or unknown, with
 * evidence. Pure. */
#pragma once

#include "base/severity.h"
#include "change/change.h"
#include "topology/topology.h"

#include <stdarg.h>

/* The remedy of a finding that is only good to know; reports leave it out. */
#define NOTHING_TO_DO "nothing to do"

enum verdict { VERDICT_NA, VERDICT_OK, VERDICT_UNKNOWN, VERDICT_BAD, VERDICT_N };
enum confidence { CONFIDENCE_CERTAIN, CONFIDENCE_LIKELY, CONFIDENCE_POSSIBLE, CONFIDENCE_N };

/* What a rule needs to be judged at all; where it is missing the verdict is unknown, with that
 * reason. */
enum rule_needs {
	NEEDS_GPU = 1 << 0,          /* at least one GPU, else not applicable */
	NEEDS_TWO_GPUS = 1 << 1,     /* else not applicable */
	NEEDS_RDMA = 1 << 2,         /* at least one RDMA device, else not applicable */
	NEEDS_CONFIG_SPACE = 1 << 3, /* registers beyond 64 bytes: root */
	NEEDS_NVML = 1 << 4,
	NEEDS_LOG = 1 << 5,    /* the kernel log */
	NEEDS_DRIVER = 1 << 6, /* the nvidia module is loaded, else not applicable */
};

/* How directly a finding stands in the way of peer traffic; orders findings before severity does.
 */
enum blocks {
	BLOCKS_NOTHING, /* good to know */
	BLOCKS_SPEED,   /* works, slower than it could */
	BLOCKS_SOME,    /* some pairs or directions, or correctness is in doubt */
	BLOCKS_ALL,     /* nothing can work before this is mended */
	BLOCKS_RUN,     /* ended a run: what somebody came to ask about */
	BLOCKS_N
};

struct rule_run;

/*
 * A row. `title` is the good state as a sentence; the finding's own sentence says what is wrong.
 * `remedy` may hold the exact command or firmware setting; a probe can replace it per finding.
 */
struct rule {
	const char *id; /* stable, greppable: "acs-redirect" */
	const char *title;
	const char *why; /* what it costs otherwise */
	const char *remedy;
	const char *reference; /* specification, kernel document, driver source, incident */
	enum severity severity;
	enum blocks blocks;
	bool predicts;  /* says that peers cannot; a copy that did outweighs it */
	unsigned needs; /* enum rule_needs */
	enum verdict (*probe)(struct rule_run *run); /* adds findings when bad */
	/* Adds the changes that would make the rule hold, given that it does not; NULL: nothing that
	 * this program could change. Pure, as the probe is. */
	void (*propose)(struct rule_run *run, struct change_set *out);
	/* What tells rows with the same probe or proposal apart; the function says what it is. */
	int number;
	const char *text;
};

struct finding {
	const struct rule *rule;
	enum severity severity; /* the rule's, unless the probe lowered it */
	enum confidence confidence;
	const char *subject;  /* "GPU0 0000:41:00.0", "port 0000:22:00.0", "/etc/nccl.conf:3"; one
				 thing */
	const char *sentence; /* what is wrong, with the value read */
	const char *remedy;
	const char **evidence; /* "LnkSta of 0000:41:00.0: 8.0 GT/s x8", one fact and where it was
				  read */
	size_t evidence_n;
	size_t pairs; /* ordered GPU pairs that it concerns, 0: none in particular */
	const bool
		*pair_map; /* which: gpu_n squared, row initiator; NULL: those of `pci`, or all */
	const struct pci_function *pci;    /* what it is about; NULL: no one device */
	const struct pci_function **named; /* further devices that it names, for drawings */
	size_t named_n;
};

/* How each rule came out, whether or not it found anything. */
struct outcome {
	const struct rule *rule;
	enum verdict verdict;
	const char *what;     /* for unknown: what could not be seen: "the link of 0000:41:00.0" */
	const char *why;      /* the same with the reason, where one is known */
	bool root_would_tell; /* unknown only for want of root */
};

struct diagnosis {
	const struct topology *topology;
	struct arena *arena;
	struct finding *findings; /* what blocks most first */
	size_t finding_n;
	struct outcome *outcomes; /* one per rule, in table order */
	size_t outcome_n;
};

/* Walks every row of every topic: NULL gives the first, the last gives NULL. */
const struct rule *rule_next(const struct rule *r);
#define FOR_EACH_RULE(r) for (const struct rule *r = NULL; ((r) = rule_next(r));)

/* Runs every rule. Never fails. */
struct diagnosis *diagnose(const struct topology *t);
void diagnosis_free(struct diagnosis *d);
const struct rule *rule_find(const char *id); /* NULL: no such rule */
/* How a rule that there is came out. */
const struct outcome *diagnosis_outcome(const struct diagnosis *d, const char *rule);

struct propose_options {
	const char *const *rules;    /* ids; only what these find */
	size_t rule_n;               /* 0: all rules */
	bool iommu_off;              /* off rather than pass-through */
	const struct machine *files; /* of MACHINE_GUESTS: whose devices the next boot's files give
					away; NULL: not read */
};

/*
 * What would resolve the findings, in their order. What is only good to know (SEVERITY_INFO) is
 * resolved if its rule is named, or if its rule says so itself. Changes of the rules that are named
 * are not `apart`. A finding whose rule proposes nothing becomes a CHANGE_BY_HAND with its remedy,
 * unless there is NOTHING_TO_DO. Pure; all texts are in the set's arena.
 */
void diagnosis_propose(const struct diagnosis *d, const struct propose_options *o,
		       struct change_set *out);

/*
 * What it comes to, for pairs of GPUs and for GPUs with NICs ("" without NICs):
 * "GPU P2P: 0 of 56 pairs direct; blocked by the driver on all, and by BAR1 (256 MiB) on all".
 */
const char *diagnosis_verdict_with(const struct diagnosis *d, enum endpoint_kind other, char *buf,
				   size_t size);
/* Both sentences. */
const char *diagnosis_verdict(const struct diagnosis *d, char *buf, size_t size);

/* It says that pairs of GPUs do not work or are not to be trusted, whatever their paths look like. */
bool finding_contradicts(const struct finding *f);
/* Pairs are blocked, and no finding of severity warning or above says why. */
bool diagnosis_unexplained(const struct diagnosis *d);

const char *severity_word(enum severity s);
const char *verdict_word(enum verdict v);
const char *confidence_word(enum confidence c);

/* ---- for probes (rules_*.c) ---- */

struct rule_run {
	const struct machine *m;
	const struct topology *t;
	const struct rule *rule;
	struct diagnosis *d;
	struct outcome *outcome;
	const struct propose_options *options; /* while proposing, else NULL */
	bool found;                            /* set by finding_add and by propose */
};

/* Adds a finding of the run's rule; the sentence is formatted. Never NULL. */
struct finding *finding_add(struct rule_run *run, enum confidence c, const char *subject,
			    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void finding_evidence(struct rule_run *run, struct finding *f, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void finding_remedy(struct rule_run *run, struct finding *f, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The finding names this device too; once f->pci is set. NULL: none. */
void finding_names(struct rule_run *run, struct finding *f, const struct pci_function *pci);
/*
 * "return rule_unknown(run, FACT_WHY(fact), "the link of %s", ...)": what could not be seen. `why`:
 * the reason of its fact; NULL: none is known.
 */
enum verdict rule_unknown(struct rule_run *run, const char *why, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* BAD if the run has added a finding, else `otherwise`. */
enum verdict rule_verdict(const struct rule_run *run, enum verdict otherwise);
/* "GPU0 0000:41:00.0" / "mlx5_0 0000:45:00.0" in the diagnosis' arena. */
const char *subject_gpu(struct rule_run *run, const struct gpu *g);
const char *subject_pci(struct rule_run *run, const char *what, const struct pci_function *f);
