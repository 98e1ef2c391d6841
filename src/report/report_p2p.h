/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop bench p2p` prints: for people, as figures, and in two peers' layouts. */
#pragma once

#include "bench/p2p_figures.h"
#include "report/report.h"
#include "session/p2p_session.h"

struct p2p_report {
	bool simulated;                /* of simulated devices */
	const struct machine *machine; /* this host, or the recorded one whose links are followed */
	const char *const *names;      /* of the devices: "GPU0 0000:41:00.0", "host0" */
	const struct device_info *devices;
	size_t n;
	const bool *access; /* n squared, row initiator: what the driver says; NULL: not asked */
	const struct paths *paths;
	const struct p2p_result *result;
	const struct figures *figures; /* of the result; for report_p2p alone */
	const struct link_seen *links; /* n; NULL: not collected */
	const struct device_skip *skips;
	size_t skip_n;
	const char *ended; /* why before its time; NULL: it did not */
	double start_s, run_s;
	bool verbose;
};

/* Of a session that ran; keeps it by pointer. */
struct p2p_report p2p_report_of(const struct p2p_session *s, bool verbose);
void report_p2p(struct document *out, const struct p2p_report *r);

/*
 * Byte for byte what the peers would print with these figures in their places. Wants device_info,
 * access and result alone; the second wants the machine too, for versions, which may be NULL.
 */
void format_p2p_test(const struct p2p_report *r, struct strbuf *out);
void format_nvbandwidth(const struct p2p_report *r, const char *host_name, struct strbuf *out);
