/* SPDX-License-Identifier: Apache-2.0 */
/* A run of bench p2p: devices chosen, measured, the figures kept. */
#pragma once

#include "bench/p2p.h"
#include "session/link_watch.h"
#include "session/session.h"

/* How it is printed decides what is measured unless a person says it. */
enum p2p_layout { P2P_LAYOUT_OWN, P2P_LAYOUT_P2P_TEST, P2P_LAYOUT_NVBANDWIDTH };

/* The options as a person writes them. */
struct p2p_request {
	struct device_options devices;
	const char *from, *pairs, *only, *size, *time;
	enum p2p_layout layout;
	bool all, sweep, no_verify;
};

#define P2P_SIZES 32

struct p2p_session {
	const struct p2p_request *o;
	const struct session_ear *ear;
	struct session_pace pace;
	struct devices devices;
	struct device_set *set;   /* NULL: none is open */
	bool *access;             /* n squared: what the driver says */
	struct p2p_result result; /* of what was measured until the end */
	struct figures *figures;  /* of the result; NULL: nothing was run */
	struct link_seen *links;  /* NULL for simulated devices */
	char *ended;              /* why before its time; NULL: it did not */
	double start_s, run_s;

	/* ---- what to measure ---- */
	struct p2p_options run;
	const struct metric **metrics;
	uint64_t sizes[P2P_SIZES];
	struct pair *pairs;
};

/*
 * 0, -EINVAL and others that refuse; no device may be left. p2p_session_done whatever the answer.
 */
int p2p_session_begin(struct p2p_session *s, const struct p2p_request *o,
		      const struct session_ear *ear);
/*
 * *ret_refused: the request is impossible, though the devices work. 0 or a negative errno with a
 * sentence.
 */
int p2p_session_run(struct p2p_session *s, bool *ret_refused);
void p2p_session_done(struct p2p_session *s);

/*
 * What --only accepts: groups, then metrics. The array is the caller's to free, the words are not.
 */
const char **p2p_only_words(size_t *ret_n);
