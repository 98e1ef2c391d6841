/* SPDX-License-Identifier: Apache-2.0 */
/* What several reports say in the same way; for report_*.c only. */
#pragma once

#include "report/report.h"
#include "session/device_choice.h"

/* Endpoints beyond which a matrix no longer helps and is summed up by groups. */
#define MATRIX_MAX_CHECK 10 /* GPUs, in 80 columns */
#define MATRIX_MAX_TOPO  40 /* GPUs and NICs, in blocks of columns */

/* The anchor of an ordered pair, from the names of its ends; the same from run to run. */
#define PAIR_ANCHOR "%s-%s"

/* "256 MiB", "24 GiB" when it is a whole number of them; "?" for an unknown fact. */
const char *bytes_format(struct fact_int bytes, char *buf, size_t size);

/* "Recorded machine: NAME (origin: real)" for a recording, nothing for a live one. */
void add_recorded(struct document *out, const struct machine *m);
/* What the recording says of itself besides; nothing for a live machine. */
void add_recording_note(struct document *out, const struct machine *m);
/* The parts of the texts that it was read from; nothing for any other machine. */
void add_texts_read(struct document *out, const struct machine *m, bool verbose);
/* GPUs, board, CPU, driver and kernel, in one line. */
void add_machine_line(struct document *out, const struct machine *m);
/*
 * A line for pairs of GPUs that the driver's resource manager connects alike, where it was asked.
 */
void add_connections(struct document *out, enum style style, const char *label,
		     const struct machine *m);
/* A line that maps GPU numbers where NVML or CUDA count otherwise. */
void add_numbering(struct document *out, const struct machine *m);

/* Characters of "GPU0" in "GPU0 0000:41:00.0". */
int short_length(const char *name);
struct summary;
/* Six cells: median, low, high, least, most, samples. */
void add_summary_cells(struct document *out, const struct summary *v);
/* That n simulated devices were used: size_t. */
#define SIMULATED_NOTICE                                                                           \
	"SIMULATED DEVICES: %zu, made of threads and memory of this host, not GPUs. The results "  \
	"below say nothing about any GPU."
void add_simulated(struct document *out, size_t n);
struct rdma_failure;

/* What failed, and where its cause is known, what to do, why and where to look; whether it is. */
bool add_rdma_cause(struct document *out, const struct rdma_failure *f);
/* A line for each device that was left out. */
void add_skips(struct document *out, const struct device_skip *skips, size_t n);
/*
 * Rows 0 .. rows-1, columns first .. last-1; `long_labels` puts the PCI address next to the name.
 */
void add_matrix(struct document *out, const struct topology *t, size_t rows, size_t first,
		size_t last, bool long_labels);
/*
 * "+ direct, x blocked": the marks that occur among the first n endpoints, and what rows and
 * columns are.
 */
void add_matrix_legend(struct document *out, const struct topology *t, size_t n);
/* The matrix's place for many GPUs: how many ordered pairs of each class have which verdict. */
void add_class_summary(struct document *out, const struct topology *t);

/* Both parts of report_check: what text shows; what only pages show, behind it. */
void report_check_body(struct document *out, const struct diagnosis *d,
		       const struct check_fixes *fixes, bool verbose);
void report_check_details(struct document *out, const struct diagnosis *d, bool verbose);

/* ---- pages ---- */

/* "8 x NVIDIA GeForce RTX 4090, NVIDIA driver 570.86.10": the start of the machine's line. */
void put_gpus_and_driver(struct strbuf *out, const struct machine *m);
/* The title of a page about a machine; `what`: of which report. */
void add_machine_head(struct document *out, const struct machine *m, const char *what);
/* The findings of check, to which the drawing links. */
void add_page_findings(struct document *out, const struct diagnosis *d);
/* The section with the drawing. */
void add_drawing(struct document *out, const struct diagnosis *d);
/* Beyond what a text's width holds: the whole matrix, for pages only. */
void add_page_matrix(struct document *out, const struct topology *t);
/* The body of report_compare, for a page that has a title. */
void report_comparison(struct document *out, const struct comparison *c);
