/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of unlock that brings an edited driver, or its options, into a system: what is there and
 * missing, the sources, their build, the plan. The steps that a caller may want to show something
 * between are functions of their own.
 */
#pragma once

#include "session/change_session.h"
#include "session/machine_choice.h"
#include "session/session.h"
#include "unlock/delivery.h"
#include "unlock/requirements.h"

/* The pairs are judged as onehop check does. */
#define UNLOCK_PARTS (MACHINE_TO_JUDGE | MACHINE_MODULE_FILE)

/* The options as a person writes them. */
struct deliver_choice {
	const char *sources; /* NULL: options alone, or download */
	bool download;       /* fetch the sources, where they are needed */
	const char *mirror;  /* to fetch them from; NULL: NVIDIA's repository */
	const char *kernel;  /* NULL: the one that runs */
	bool image, apply;
};

struct deliver_session {
	const struct deliver_choice *o;
	const struct machine_choice *from;
	struct change_session *fix; /* its journal is read */
	const struct session_ear *ear;
	struct session_pace pace; /* of the download */
	bool to_log;              /* the progress of a build is lines in a log: few of them */
	char *sources;            /* absolute path, present or future */
	struct source *source;
	struct machine *machine;
	const struct unlock_requirements *requirements;
	struct delivery *delivery; /* NULL: nothing has to be delivered */
	bool again;                /* an earlier edit was undone, and everything was read again */
	char *core;                /* once it is built */
	size_t core_size;
	struct plan *plan; /* NULL while the delivery is blocked after an earlier edit was undone */
	unsigned waited;   /* seconds for the server's answer */
	double shown_s;    /* build time of the current part when progress was last shown */
};

/* Reads, judges and plans. deliver_session_done whatever the answer; nothing was changed. */
enum ending deliver_session_begin(struct deliver_session *d);
/* Fetches the sources, and plans again with them. */
enum ending deliver_session_fetch(struct deliver_session *d);
/*
 * Edits the sources and builds the driver's core, where that is needed, and plans again. Changes no
 * system.
 */
enum ending deliver_session_build(struct deliver_session *d);
/*
 * Undoes earlier edits, reads the system again and plans again; the delivery may be blocked then.
 */
enum ending deliver_session_undo_earlier(struct deliver_session *d);
void deliver_session_done(struct deliver_session *d);

/* The plan has steps. */
bool deliver_session_has_steps(const struct deliver_session *d);
