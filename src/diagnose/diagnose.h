/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over a machine and its topology; each says ok, bad, not applicable or unknown, with
 * evidence. Pure. */
#pragma once

#include "base/severity.h"
#include "change/change.h"
#include "topology/topology.h"

#include <stdarg.h>
#include <stddef.h>

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
	NEEDS_TREE = 1 << 7,   /* the bridges above every GPU: a text may show some of them */
	NEEDS_SETTINGS =
		1 << 8,         /* all variables of the environment: a text may show some of them */
	NEEDS_CMDLINE = 1 << 9, /* all parameters of the kernel: a text may be cut */
};

/* How directly a finding blocks peer traffic; orders findings before severity does.
 */
enum blocks {
	BLOCKS_NOTHING, /* good to know */
	BLOCKS_SPEED,   /* works, slower than it could */
	BLOCKS_SOME,    /* some pairs or directions, or correctness is doubtful */
	BLOCKS_ALL,     /* nothing can work before this is fixed */
	BLOCKS_RUN,     /* ended a run: what somebody came to ask about */
	BLOCKS_N
};

struct rule_run;
struct strbuf;

/*
 * What a probe judges. The runner (scope.c) calls it for each in turn, with that in its struct
 * rule_run.
 */
enum rule_scope {
	SCOPE_MACHINE, /* once */
	SCOPE_GPU,
	SCOPE_PAIR, /* ordered, of GPUs */
	SCOPE_NIC,  /* an RDMA device */
	SCOPE_PORT, /* of an RDMA device */
	SCOPE_LINK, /* PCIe, between a GPU or NIC and its root port; one that devices share once */
	SCOPE_N
};

/*
 * A fact of each GPU without which a rule that finds nothing is unknown; made by GPU_FACT and
 * PCI_FACT.
 */
struct rule_fact {
	const char *what; /* "the compute mode"; NULL: there is none */
	size_t at;        /* in struct gpu, or in its struct pci_function */
	bool is_text, of_pci;
};

#define RULE_FACT(type, field, words, pci)                                                         \
	{                                                                                          \
		.what = (words), .at = offsetof(struct type, field),                               \
		.is_text = _Generic(((struct type *)NULL)->field, struct fact_str                  \
				    : true, struct fact_int                                        \
				    : false),                                                      \
		.of_pci = (pci),                                                                   \
	}
#define GPU_FACT(field, words) RULE_FACT(gpu, field, words, false)
#define PCI_FACT(field, words) RULE_FACT(pci_function, field, words, true)

/* When it is to be repaired, among findings that are as severe. */
enum repair_turn {
	/* The whole module, or a boot with the changes made so far: other remedies fail without. */
	TURN_START = -2,
	TURN_EARLY = -1, /* the remedies of other rules need it repaired */
	TURN_ANY = 0,
	TURN_LAST = 1, /* optional: may not help, or is needless once others are repaired */
};

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
	bool predicts; /* says that peers cannot; a copy that did outweighs it */
	enum chain_reason
		reason; /* how a pair's chain says the same at the same device; REASON_NONE: it does not */
	enum repair_turn turn;
	unsigned needs; /* enum rule_needs */
	enum rule_scope scope;
	/* Adds findings when bad. A pair that is BAD without one is kept for `report`. */
	enum verdict (*probe)(struct rule_run *run);
	/*
	 * SCOPE_PAIR: adds the finding of all the pairs that were kept; the run is at the first of
	 * them.
	 */
	void (*report)(struct rule_run *run);
	struct rule_fact fact; /* that it needs of each GPU to be OK */
	bool one_is_enough;    /* OK for one outweighs unknown for the others */
	bool ends_runs;        /* what it finds ends or hangs every run that meets it */
	/* Adds findings for what lines of tools and logs report, whether or not `needs` are met; NULL:
	 * none do. */
	void (*heard)(struct rule_run *run);
	/* Adds the changes that would make the rule hold, given that it does not; NULL: nothing that
	 * this program could change. Pure, as the probe is. */
	void (*propose)(struct rule_run *run, struct change_set *out);
	/* What tells rows with the same probe or proposal apart; the function says what it is. */
	int number;
	const char *text;
	const void *argument;
};

/* What a finding is about. */
enum subject_kind {
	SUBJECT_HOST,   /* CPU, kernel, firmware, limits, container */
	SUBJECT_DRIVER, /* NVIDIA's modules and libraries */
	SUBJECT_MODULE, /* another module or package: nvidia-peermem, OFED */
	SUBJECT_GPU,
	SUBJECT_GPUS, /* several, or what they have in common */
	SUBJECT_PAIR, /* two GPUs */
	SUBJECT_PORT, /* a PCI bridge */
	SUBJECT_NIC,  /* an RDMA device, or a port of one */
	SUBJECT_NICS,
	SUBJECT_DEVICE, /* another PCI function */
	SUBJECT_NCCL,
	SUBJECT_LIBRARY, /* another communication library */
	SUBJECT_SETTING, /* a variable of one of these, and where it is set */
	SUBJECT_FILE,    /* and its line */
	SUBJECT_FIX,     /* of onehop's journal */
	SUBJECT_RESULT,  /* what tests, benchmarks and logs showed */
	SUBJECT_KIND_N
};

struct subject {
	enum subject_kind kind;
	const char *name; /* what sentences call it: "GPU0", "port 0000:22:00.0", "driver" */
	/* what tells it from others of that name: "0000:41:00.0"; NULL: nothing */
	const char *detail;
	const struct pci_function *pci; /* NULL: no one device */
};

#define SUBJECT(what, called) ((struct subject){.kind = SUBJECT_##what, .name = (called)})

/*
 * In the texts of a finding these stand for devices, so that findings that say the same of
 * different devices are known by their texts: the subject's name, its PCI address, the first device
 * of `named`.
 */
#define ABOUT        "\1"
#define ABOUT_PCI    "\2"
#define OTHER_DEVICE "\3"

/* A fact that a finding rests on. */
struct evidence {
	const char *what;  /* "LnkSta of 0000:41:00.0" */
	const char *value; /* "8.0 GT/s x8"; NULL: `what` says it all */
	/* what it would be if the rule held; NULL: no one value, or it is */
	const char *expected;
	const char *from; /* where it was read; NULL: `what` says so */
};

/* A variable of a communication library that a finding asks for. */
struct finding_variable {
	const struct variable *variable; /* diagnose/variables.h */
	const char *value;
};

struct finding {
	const struct rule *rule;
	enum severity severity; /* the rule's, unless the probe lowered it */
	enum confidence confidence;
	struct subject about;
	const char *subject;  /* it in words: "GPU0 0000:41:00.0", "/etc/nccl.conf:3" */
	const char *sentence; /* what is wrong, with the value read */
	const char *remedy;
	/* The finding is only good to know: its remedy says so, and no change is proposed. */
	bool nothing_to_do;
	bool follows; /* of a run: something else on the machine may be the cause */
	int place;    /* among all: those with a lower one come first */
	/*
	 * The same two with ABOUT and the others in place of devices; equal for findings that say
	 * the same.
	 */
	const char *sentence_form, *remedy_form;
	struct evidence *evidence;
	size_t evidence_n;
	size_t pairs; /* ordered GPU pairs that it concerns, 0: none in particular */
	/* which: gpu_n squared, row initiator; NULL: those of `pci`, or all */
	const bool *pair_map;
	/* the subject's, or the first device; NULL: no one device */
	const struct pci_function *pci;
	const struct pci_function **named; /* further devices that it names, for drawings */
	size_t named_n;
	/* what is set and should not be so; NULL: it is of something else */
	const struct setting *setting;
	struct finding_variable *variables; /* to set, so that it no longer holds */
	size_t variable_n;
};

/* How each rule came out, whether or not it found anything. */
struct outcome {
	const struct rule *rule;
	enum verdict verdict;
	const char *what;     /* for unknown: what could not be seen: "the link of 0000:41:00.0" */
	const char *why;      /* the same with the reason, where one is known */
	bool root_would_tell; /* unknown only because root is missing */
	bool cut_off;         /* unknown only because a text is cut off where it would state it */
};

struct diagnosis {
	const struct topology *topology;
	struct arena *arena;
	struct finding *findings; /* what to repair first comes first */
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
/* NULL: no such rule. Here for tests. */
const struct rule *rule_find(const char *id);
/* The same of what a person wrote: NULL with a sentence, "no rule 'ID'; did you mean ...?". */
const struct rule *rule_named(const char *id);
/* How a rule that there is came out. */
const struct outcome *diagnosis_outcome(const struct diagnosis *d, const char *rule);

struct propose_options {
	const char *const *rules; /* ids; only what these find */
	size_t rule_n;            /* 0: all rules */
	bool iommu_off;           /* off rather than pass-through */
	/* of MACHINE_GUESTS: whose devices the next boot's files give away; NULL: not read */
	const struct machine *files;
};

/*
 * What would resolve the findings, in their order. What is only good to know (SEVERITY_INFO) is
 * resolved if its rule is named, or if its rule says so itself. Changes of the rules that are named
 * are not `apart`. A finding whose rule proposes nothing becomes a CHANGE_BY_HAND with its remedy,
 * unless there is nothing to do. Pure; all texts are in the set's arena.
 */
void diagnosis_propose(const struct diagnosis *d, const struct propose_options *o,
		       struct change_set *out);

/*
 * Of pairs of GPU and NIC: all are direct, some are blocked, or neither; NA: there are none, or
 * none can ever be.
 */
enum verdict diagnosis_nic_verdict(const struct diagnosis *d);

/*
 * What it comes to, for pairs of GPUs and for GPUs with NICs ("" without NICs):
 * "GPU P2P: 0 of 56 pairs direct; blocked by the driver on all, and by BAR1 (256 MiB) on all".
 */
const char *diagnosis_verdict_with(const struct diagnosis *d, enum endpoint_kind other, char *buf,
				   size_t size);
/* Both sentences. */
const char *diagnosis_verdict(const struct diagnosis *d, char *buf, size_t size);

/*
 * Errors and warnings as a drawing wants them, each at each device that it names. In the diagnosis'
 * arena.
 */
const struct draw_note *diagnosis_notes(const struct diagnosis *d, size_t *ret_n);

/*
 * It says that pairs of GPUs do not work or are not to be trusted, whatever their paths look like.
 */
bool finding_contradicts(const struct finding *f);
/* Pairs are blocked, and no finding of severity warning or above says why. */
bool diagnosis_unexplained(const struct diagnosis *d);

/* No finding before it is of the same rule. */
bool finding_is_first_of_rule(const struct diagnosis *d, size_t i);
/* False: there was nothing to judge, or GPU pairs of which not one could be decided. */
bool diagnosis_judged_any(const struct diagnosis *d);
/*
 * BAD: there is a finding of severity `least` or above (an int: past the last is never), or
 * `unexplained`, pairs are blocked and no rule said so, which must not pass for well at a threshold
 * that would have caught the finding. OK only if all pairs of GPUs are decided, and not all of them
 * doubtful: a script that goes on after it would rely on paths that are unknown.
 */
enum verdict diagnosis_judge(const struct diagnosis *d, int least, bool unexplained);

/*
 * "GPU0 0000:41:00.0 is bound to vfio-pci", "driver: ...": the sentence, with the whole subject
 * once.
 */
void finding_statement(const struct finding *f, struct strbuf *out);

const char *severity_word(enum severity s);
const char *verdict_word(enum verdict v);
const char *confidence_word(enum confidence c);
const char *subject_word(enum subject_kind k); /* "gpu", "setting", ... */

/* ---- for probes (rules_*.c) ---- */

struct rule_run {
	const struct machine *m;
	const struct topology *t;
	const struct rule *rule;
	struct diagnosis *d;
	struct outcome *outcome;
	const struct propose_options *options; /* while proposing, else NULL */
	bool found;                            /* set by finding_add and by propose */
	/* What the runner is at, by the rule's scope; NULL: the scope has none. */
	const struct gpu *gpu;
	const struct path *path; /* of GPUs, by index: */
	size_t initiator, target;
	const struct pair_set *pairs; /* that `report` is about */
	const struct rdma_device *nic;
	const struct rdma_port *port;
	const struct wire *wire;
};

/* Adds a finding of the run's rule; the sentence is formatted. Never NULL. */
struct finding *finding_add(struct rule_run *run, enum confidence c, struct subject about,
			    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/*
 * The same about what the runner is at: a GPU with all its pairs, the NIC, the port, the driver
 * where it is pairs, whose finding names them.
 */
struct finding *finding_here(struct rule_run *run, enum confidence c, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* `from`: where the value was read; NULL: `what` says so. */
void finding_evidence(struct rule_run *run, struct finding *f, const char *from, const char *what,
		      const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The evidence that was added last would have this value if the rule held. */
void finding_expects(struct finding *f, const char *value);
void finding_remedy(struct rule_run *run, struct finding *f, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The finding is only good to know. */
void finding_needs_nothing(struct finding *f);
/* Puts the devices into the texts, once the finding is whole. */
void finding_finish(struct arena *a, const struct machine *m, struct finding *f);
/* The finding names this device too; once f->pci is set. NULL: none. */
void finding_names(struct rule_run *run, struct finding *f, const struct pci_function *pci);
/* Setting this variable of the table resolves the finding; onehop env lists it. */
void finding_sets(struct rule_run *run, struct finding *f, const char *name, const char *value);
/*
 * "return rule_unknown(run, FACT_WHY(fact), "the link of %s", ...)": what could not be seen. `why`:
 * the reason of its fact; NULL: none is known.
 */
enum verdict rule_unknown(struct rule_run *run, const char *why, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* BAD if the run has added a finding, else `otherwise`. */
enum verdict rule_verdict(const struct rule_run *run, enum verdict otherwise);
struct subject subject_gpu(struct rule_run *run, const struct gpu *g);
/* `name`: of an RDMA device; "port", "device": the address is added to the name. */
struct subject subject_device(struct rule_run *run, enum subject_kind kind, const char *name,
			      const struct pci_function *f);
const char *subject_text(struct rule_run *run, struct subject s);
