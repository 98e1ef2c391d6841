/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of tune: times of libonehop's algorithms on these devices, as a table in the state folder;
 * and who reads it.
 */
#pragma once

#include "bench/collective_bench.h"
#include "session/session.h"

#include <limits.h>

/* The options as a person writes them; 0: the default. */
struct tune_choice {
	struct device_options devices;
	int budget_s, deadline_s;
};

struct tune_session {
	const struct tune_choice *o;
	const struct session_ear *ear;
	struct session_pace pace;
	struct devices devices;
	struct collective_run run;
	struct tuned table;
	bool measured[TUNED_KIND_N]; /* kinds of paths that the table has times of */
	unsigned sizes;              /* of the table that were measured, of each kind */
	char path[PATH_MAX];         /* of the table; "": not saved */
	double run_s;

	/* ---- while it runs ---- */
	enum tuned_kind kind;
	double kind_began_s;
};

/*
 * 0 or a negative errno with a sentence: refused. No device may be left. tune_session_done whatever
 * the answer.
 */
int tune_session_begin(struct tune_session *s, const struct tune_choice *o,
		       const struct session_ear *ear);
/* 0, or as collective_run; then no table is saved. -EIO: an algorithm gave wrong data. */
int tune_session_run(struct tune_session *s);
void tune_session_done(struct tune_session *s);

/* ---- the saved table ---- */

/* What decides between libonehop's algorithms. */
struct tune_use {
	bool found;         /* table holds for the devices */
	struct tuned table; /* with found */
	char path[PATH_MAX];
	unsigned simulated; /* how many of them; 0: GPUs, or not known */
	/* without found: why the table that is there is not used; "": there is none */
	char why[PATH_MAX + TUNED_WHY_SIZE + 64];
};

/*
 * The saved table for the first n of the devices, as ranks. 0; -EINVAL with a sentence that names
 * file and line: it is damaged; another negative errno: it cannot be read. Then nothing is found.
 */
int tune_find(const struct devices *d, unsigned n, struct tune_use *ret);

/*
 * The same for GPUs of a machine: the saved table, if all of its devices are among them, known by
 * their UUIDs.
 */
int tune_find_of(const struct topology *t, struct tune_use *ret);
