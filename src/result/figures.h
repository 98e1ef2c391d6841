/* SPDX-License-Identifier: Apache-2.0 */
/* struct figures: what a test or benchmark measured, as a flat list of rows. */
#pragma once

#include "result/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

/* The most GPUs that a text may have; a matrix of that many is 65536 cells. */
#define FIGURES_MAX_GPUS 256

struct figure {
	const char *what;            /* name of a metric; or one that only a later version knows */
	const struct metric *metric; /* NULL: unknown to this version */
	const char *unit;
	bool higher_is_better;
	int initiator, target; /* indexes in gpus; -1: the host, or all */
	uint64_t bytes;        /* message size; 0: none */
	double median;
	/*
	 * 95 % interval of the median; equal to it: unknown. With fewer than
	 * FIGURE_INTERVAL_SAMPLES samples: the least and the most seen
	 */
	double low, high;
	unsigned samples; /* 0: unknown */
	double expected;  /* what the path should give, 0: unknown */
	const char *from; /* "file:line" */
	/* For checks of onehop test. */
	const char *kind;    /* what was wrong: "shifted"; "": nothing */
	const char *pattern; /* which access pattern, or arm of the all-reduce; "": plain copies */
	const char *when;    /* time of an earlier run that this row comes from; "": figures.when */
	/*
	 * For transfers by a NIC between host memory and the target's (-1: the host's own); "": no
	 * NIC.
	 */
	const char *nic;    /* "mlx5_0" */
	const char *peer;   /* between two hosts: the other NIC, "gpu02:mlx5_0"; "": one host */
	const char *memory; /* how it accessed the target's: "dma-buf", "peer-memory", "host" */
	unsigned queues;    /* queue pairs at once in each direction; 0: one */
	unsigned depth;     /* messages in flight in each of them; 0: 128 */
	const char *
		path; /* class of the path between this host's NIC and its memory, "PIX"; "": unknown */
	const char *algorithm; /* of libonehop, "piped-2"; "": none, or unknown */
	const int *among;      /* GPUs that a test of several used */
	size_t among_n;        /* 0: all GPUs of the result */
};

/* kind of a pair whose data is right but whose copies are far too slow. */
#define FIGURE_SLOW "slow"

/* The number of values needed to have some on both sides of the median in 95 % of all cases. */
#define FIGURE_INTERVAL_SAMPLES 6

/* A bridge or port above a GPU. */
struct figure_port {
	const char *pci;
	int acs; /* ACS control register; -1: unknown */
};

struct figure_gpu {
	const char *pci, *name;       /* "0000:41:00.0", "NVIDIA H200"; NULL: unknown */
	int nvml_index, cuda_ordinal; /* -1: unknown */
	struct figure_port *ports;    /* from the GPU up; NULL: unknown */
	size_t port_n;
};

struct figures {
	struct arena *arena;     /* owns everything below */
	const char *name;        /* the file, or "" */
	const char *tool;        /* "onehop test", "p2pBandwidthLatencyTest", "nccl-tests" */
	const char *when, *note; /* "" when there is none */
	const char *program;     /* the onehop that measured: "0.1.0"; "": unknown */
	const char *conditions[CONDITION_TEXTS]; /* "": unknown */
	struct figure_gpu *gpus;
	size_t gpu_n;
	struct figure *rows;
	size_t row_n;
	unsigned runs;         /* of the same measurements, merged into one; 0: not merged yet */
	const char **troubles; /* sentences: what was ignored, and why */
	size_t trouble_n;
};

/*
 * In an arena, which is theirs from here on; without memory it is jumped out of every function
 * (base/arena.h).
 */
struct figures *figures_new_in(struct arena *arena, const char *name, const char *tool);
struct figures *figures_new(const char *name,
			    const char *tool); /* for the program, which ends without memory */
void figures_free(struct figures *f);          /* NULL does nothing */
/* Appends GPUs without any facts until there are n. */
void figures_need_gpus(struct figures *f, size_t n);
/*
 * Appends a GPU; "" means unknown. Without an address the ordinal is dropped, because it does not
 * identify a GPU.
 */
void figures_add_gpu(struct figures *f, const char *pci, const char *name, int cuda_ordinal);
/*
 * Appends a row of one value, with unit and direction of its metric; the caller sets the rest. The
 * name is copied. Valid until the next row is added.
 */
struct figure *figures_add(struct figures *f, const char *what, int initiator, int target,
			   double value);
/* "x.json: figures[3]: shifted, pattern reread": where a row was read, and what it shows. */
const char *figure_place(const struct figures *f, const struct figure *row, const char *list,
			 size_t index);
/*
 * The check passed but has a kind of failure. Only FIGURE_SLOW is allowed for a check that passed.
 */
bool figure_contradicts(const struct figure *row);
void figures_trouble(struct figures *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A model made them, and nothing was measured. */
bool figures_are_predicted(const struct figures *f);
/* low and high are the 95 % interval of the median, not the least and the most seen. */
bool figure_has_interval(const struct figure *row);
/* A check of data, or of a test as a whole, that failed. */
bool figure_is_failure(const struct figure *row);
/*
 * False if the value is 0, which means "not measured" for rates and times. Yes-or-no values are
 * always measured.
 */
bool figure_measured(const struct figure *row);
/*
 * Rows of the same measurement become one: median, least and most of the values, "no" if one of
 * several yes-or-no values is no. Rows that were not measured are removed. The order stays.
 */
void figures_merge(struct figures *f);

/*
 * Adds the rows of an earlier result that this one does not replace. A row replaces rows of the
 * same measurement of the same pair or GPU, a check replaces all rows of that pair or GPU; a test
 * of several GPUs replaces the same test of the same GPUs or of some of them. GPUs are matched by
 * address.
 */
void figures_keep_earlier(struct figures *f, const struct figures *earlier);

/* Whether a GPU can be the same model then and now; an unknown model can. */
bool figure_gpu_is(const struct figure_gpu *then, const struct figure_gpu *now);
/*
 * The first condition that has changed. gpus[i] is the GPU of `now` for GPU i of `then`; -1:
 * ignored. Unknown conditions count as unchanged; `surely`: an unknown driver or boot counts as
 * changed. Keeps pointers to texts of both.
 */
struct changed figures_changed(const struct figures *then, const struct figures *now,
			       const int *gpus, bool surely);

/* The index of the GPU with this address; -1: none, or NULL was asked for. */
int figures_gpu_at(const struct figures *f, const char *pci);
/* By what is measured, and between which ends; 0: the same measurement. */
int figure_order(const struct figure *x, const struct figure *y);
/* Between the same NICs and hosts, in the same memory, with as many queues and messages. */
bool figure_same_way(const struct figure *a, const struct figure *b);
/* NULL: no such measurement. */
const struct figure *figures_find(const struct figures *f, const char *what, int initiator,
				  int target, uint64_t bytes);
