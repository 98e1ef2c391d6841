/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many hosts side by side: of each, what can be compared with others, read from the JSON of check,
 * test and bench. Then who differs from hosts of the same hardware, in facts and in figures.
 */
#pragma once

#include "fleet/numbered.h"
#include "result/figures.h"

#include <jansson.h>

/* Fewer hosts of the same hardware have no majority, and no usual value. */
#define FLEET_ENOUGH 5
/* A value that this share of the hosts has is what the others should have. */
#define FLEET_MAJORITY 0.8
/* Both halves of a group that measures two things have at least this share, and so many hosts. */
#define FLEET_SPLIT       0.2
#define FLEET_SPLIT_LEAST FLEET_ENOUGH
/* Slower than the others by less than this share is nothing. */
#define FLEET_FLOOR 0.05
/*
 * Slower by less than this many standard deviations, estimated from the median absolute deviation,
 * neither. With many figures it is more, so that none of a healthy fleet passes it by chance.
 */
#define FLEET_SIGMAS 3.5

/* ---- what is compared ---- */

/* What matters first. */
enum fact_rank {
	RANK_CITED, /* evidence of a finding on that host */
	RANK_RULE,
	RANK_PAIR, /* whether GPUs reach each other */
	RANK_VERSION,
	RANK_OTHER,
	RANK_N
};

/* The part of a machine that has a fact. */
enum fact_place {
	PLACE_GPU,
	PLACE_PORT, /* a GPU's or NIC's own PCI function, and the bridges above */
	PLACE_NIC,
	PLACE_NIC_PORT,
	PLACE_DRIVER,
	PLACE_KERNEL,
	PLACE_PEERMEM,
	PLACE_LIMITS,
	PLACE_CPU,
	PLACE_WORD, /* a parameter of the kernel */
	PLACE_NCCL, /* a variable */
	PLACE_PAIR,
	PLACE_RULE,
	PLACE_N
};

enum fact_form { FORM_PLAIN, FORM_ACS, FORM_BYTES, FORM_LANES, FORM_SPEED };

struct fact_row {
	const char *word;   /* unique: "port-acs" */
	const char *member; /* of the JSON; NULL: the place decides */
	const char *title;  /* "ACSCtl" */
	enum fact_place place;
	enum fact_rank rank;
	enum fact_form form;
	const char *cited_by; /* rules that begin so give this fact as evidence; NULL: none */
};

/* Ends with a NULL word. */
extern const struct fact_row fact_rows[];
const struct fact_row *fact_row_find(const char *word); /* NULL: none */
/* Rows of places whose members are names, and not known before. */
extern const struct fact_row fact_row_word, fact_row_nccl, fact_row_rule, fact_row_verdict,
	fact_row_class;

/* A fact of a place: "ACSCtl" of "2 above GPU3". */
struct fact_key {
	const struct fact_row *row;
	const char *slot; /* "": the host has one */
};

struct fleet_fact {
	unsigned key;   /* in fleet.keys, from 1 */
	unsigned value; /* in fleet.words */
};

/* A measurement of a place, the same on all hosts. */
struct figure_key {
	const char *what;
	const struct metric *metric; /* NULL: unknown to this version */
	int initiator, target; /* GPUs in the order of their addresses; -1: the host, or all */
	uint64_t bytes;
	const char *nic, *peer, *memory; /* "" without a NIC */
	unsigned queues;                 /* as in struct figure */
	bool higher_is_better;
	const char *unit;
};

struct fleet_reading {
	unsigned key; /* in fleet.figure_keys, from 1 */
	double median, low, high;
	double expected; /* 0: unknown */
};

/* What a test found wrong, whatever other hosts show. */
struct fleet_failure {
	const char *what, *kind;
	int initiator, target;
};

struct fleet_finding {
	const char *rule, *severity;
	const char *address; /* of a device that it names; "": it names none */
};

struct fleet_slot {
	const char *slot, *address; /* "GPU3", "0000:41:00.0" */
};

/* Equal devices in a row. */
struct fleet_devices {
	const char *name;
	unsigned n; /* 0: there are none of that kind */
	bool nic;
};

/* What hosts have to have in common to be compared. */
struct fleet_hardware {
	const char *name; /* all of it in words: "8 x NVIDIA H200, no NIC, AMD EPYC 9554" */
	struct fleet_devices *devices; /* GPUs, then NICs */
	size_t device_n;
	const char *platform; /* CPU, board, virtual machine */
};

/* Lists that a host has as a whole: what is not in them is absent. */
enum fleet_family { FAMILY_WORDS = 1, FAMILY_NCCL = 2 };

struct fleet_host {
	const char *name;
	size_t documents;
	bool checked; /* one of them was a check, a recording or texts */
	unsigned families;
	int root; /* 1, 0; -1: unknown */
	const struct fleet_hardware *hardware;
	struct fleet_fact *facts;
	size_t fact_n;
	struct fleet_reading *readings;
	size_t reading_n;
	unsigned *reading_table; /* hash table of their numbers, from 1, by key; a power of two */
	size_t reading_table_n;
	struct fleet_failure *failures;
	size_t failure_n;
	struct fleet_finding *findings;
	size_t finding_n;
	struct fleet_slot *slots;
	size_t slot_n;
};

/* ---- what is found ---- */

struct fleet_outlier {
	const struct fact_row *row;
	enum fact_rank rank;
	const char **hosts; /* that have this value, in the same slots */
	size_t host_n;
	const char **slots;
	size_t slot_n;
	const char *address; /* of the first slot on the first host; "": none */
	const char *value, *usual;
	size_t usual_n;   /* hosts that have it, in the slot where they are fewest */
	const char *rule; /* whose evidence it is; NULL: none */
};

struct fleet_share {
	const char *value;
	const char **hosts;
	size_t host_n;
};

/* A fact without a majority. */
struct fleet_split {
	const struct fact_row *row;
	const char *slot;
	size_t more; /* other slots that split alike */
	struct fleet_share *shares;
	size_t share_n;
};

/* Smallest part of the host that explains which figures are low. */
enum figure_cause {
	CAUSE_FAILED,   /* a check of data failed */
	CAUSE_HOST,     /* all figures */
	CAUSE_GPU,      /* all of a GPU, both ways */
	CAUSE_GPU_FROM, /* all that it starts */
	CAUSE_GPU_TO,   /* all that reach it */
	CAUSE_PAIR,     /* both ways */
	CAUSE_WAY,      /* one ordered pair */
	CAUSE_N
};

/* One measurement of those that are low together; of several pairs, the medians. */
struct fleet_slow_figure {
	const char *what; /* name of the metric */
	double change, value, usual;
	const char *unit;
};

struct fleet_slow {
	enum figure_cause cause;
	const char *host;
	int a, b; /* GPUs; -1: none */
	struct fleet_slow_figure *figures;
	size_t figure_n;
	double change;       /* the worst of them: -0.08 is 8 % worse than the others */
	double value, usual; /* of the worst single figure; 0: none */
	const char *unit;
	size_t others; /* hosts that it is compared with; 0: compared with what the path should give */
	const char *kind; /* of a failure */
};

/* A measurement with two usual values. */
struct fleet_figure_split {
	const char *what, *unit;
	int initiator, target;
	size_t more;      /* other pairs that split alike */
	double values[2]; /* medians, the better first */
	const char **hosts[2];
	size_t host_n[2];
};

/* Hosts of which facts are unknown that most others have. */
struct fleet_blind {
	const char **hosts;
	size_t host_n;
	size_t facts; /* the most of them */
	bool no_root;
};

struct fleet_group {
	const struct fleet_hardware *hardware;
	/* A larger group with the same devices, but another number of them; NULL: none */
	const struct fleet_group *like;
	const struct fleet_host **hosts;
	size_t host_n;
	struct fleet_outlier *outliers;
	size_t outlier_n;
	struct fleet_split *splits;
	size_t split_n;
	struct fleet_slow *slow;
	size_t slow_n;
	struct fleet_figure_split *figure_splits;
	size_t figure_split_n;
	struct fleet_blind *blind;
	size_t blind_n;
};

struct fleet {
	struct arena *arena; /* owns everything below but the tables of numbers */
	struct numbered words, key_words, figure_words;
	struct fact_key *keys;
	size_t key_n;
	struct figure_key *figure_keys;
	size_t figure_key_n;
	struct fleet_host **hosts; /* in the order of their names after fleet_compare */
	size_t host_n;
	struct numbered host_words;
	struct fleet_group *groups; /* the largest first */
	size_t group_n;
	struct numbered expected; /* names of hosts of which there should be results */
	const char **missing;     /* those of which there are none */
	size_t missing_n;
	struct numbered troubles; /* files that could not be read, and why */
};

struct fleet *fleet_new(void);
void fleet_free(struct fleet *f); /* NULL does nothing */
/* The host of that name, new if there is none. */
struct fleet_host *fleet_host(struct fleet *f, const char *name);
/* There should be results of this host. */
void fleet_expect(struct fleet *f, const char *host);
void fleet_trouble(struct fleet *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- filling it ---- */

/* JSON of check. Facts of an earlier one of the same host are replaced. -EINVAL with a sentence. */
int fleet_add_check(struct fleet *f, const char *host, const json_t *check);
/* Figures of one run. Earlier ones of the same measurement are replaced. */
void fleet_add_figures(struct fleet *f, const char *host, const struct figures *figures);
/* What fleet_json wrote. -EINVAL with a sentence. */
int fleet_add_fleet(struct fleet *f, const json_t *fleet);

unsigned fleet_key(struct fleet *f, const struct fact_row *row, const char *slot);
unsigned fleet_figure_key(struct fleet *f, const struct figure_key *key);
/* Sets a fact, or replaces it. */
void fleet_set_fact(struct fleet *f, struct fleet_host *h, const struct fact_row *row,
		    const char *slot, const char *value);
void fleet_set_reading(struct fleet *f, struct fleet_host *h, struct fleet_reading reading);
/* The text, kept once in the fleet's memory. */
const char *fleet_keep(struct fleet *f, const char *text);
/* Adds devices to what fleet_hardware is to keep. */
void fleet_hardware_add(struct fleet *f, struct fleet_hardware *hardware, bool nic, unsigned n,
			const char *name);
/* Kept, and given its name. */
const struct fleet_hardware *fleet_hardware(struct fleet *f, struct fleet_hardware hardware);
/* Whether at most the numbers of devices differ. */
bool fleet_hardware_alike(const struct fleet_hardware *a, const struct fleet_hardware *b);
/* The host as it was before any document, but for its name. */
void fleet_forget_facts(struct fleet_host *h);

/* ---- comparing ---- */

/* Fills groups and missing. */
void fleet_compare(struct fleet *f);
/* Whether a host differs from a majority, is slow or failed. */
bool fleet_has_outliers(const struct fleet *f);

/* A fact of a host at two times; "unknown" where it is. */
struct fleet_change {
	const struct fact_row *row;
	const char *slot, *address; /* "": none */
	const char *was, *is;
};
/* In the fleet's memory; both are hosts of it. */
struct fleet_change *fleet_changes(struct fleet *f, const struct fleet_host *before,
				   const struct fleet_host *now, size_t *ret_n);
/*
 * The kernel log in what check prints now, and the index of its first line that what it printed
 * before lacks.
 */
size_t fleet_new_log(const json_t *before, const json_t *now, const json_t **ret_lines);

/* New reference; all that fleet_add_fleet needs, and what was found. `head` is kept. */
void fleet_json(const struct fleet *f, json_t *head);

/* ---- for the files of this folder ---- */

/* The value of each key on a host, to be freed; 0: unknown. */
unsigned *fleet_values(const struct fleet *f, const struct fleet_host *h);
/* Of the device in that slot; "": none. */
const char *fleet_address(const struct fleet_host *h, const char *slot);

void fleet_compare_facts(struct fleet *f, struct fleet_group *g);
void fleet_compare_figures(struct fleet *f, struct fleet_group *g);

/* A figure of a host, relative to its group. */
struct fleet_cell {
	const struct figure_key *key;
	double change; /* -0.08: 8 % worse than usual; better ones are above 0 */
	double limit;  /* a change below minus this is an outlier */
	double value, usual;
	bool sure; /* the usual value is outside the host's own interval */
	size_t others;
};
/* Adds what explains the low cells of one host; `cells` are of one metric and size. */
void fleet_decompose(struct fleet *f, struct fleet_group *g, const struct fleet_host *h,
		     struct fleet_cell *cells, size_t n);
