/* SPDX-License-Identifier: Apache-2.0 */
/* What several reports say in the same way; for report_*.c only. */
#pragma once

#include "report/report.h"
#include "session/device_choice.h"

/* Endpoints beyond which a matrix no longer helps and is summed up by groups. */
#define MATRIX_MAX_CHECK 10 /* GPUs, in 80 columns */
#define MATRIX_MAX_TOPO  40 /* GPUs and NICs, in blocks of columns */

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
/* A line for pairs of GPUs that the driver's resource manager connects alike, where it was asked. */
void add_connections(struct document *out, enum style style, const char *label,
		     const struct machine *m);
/* A line that maps GPU numbers where NVML or CUDA count otherwise. */
void add_numbering(struct document *out, const struct machine *m);

/* Characters of "GPU0" in "GPU0 0000:41:00.0". */
int short_length(const char *name);
/* That n simulated devices were used. */
void add_simulated(struct document *out, size_t n);
/* A line for each device that was left out. */
void add_skips(struct document *out, const struct device_skip *skips, size_t n);
/* Rows 0 .. rows-1, columns first .. last-1; `long_labels` puts the PCI address next to the name. */
void add_matrix(struct document *out, const struct topology *t, size_t rows, size_t first,
		size_t last, bool long_labels);
/* "+ direct, x blocked": the marks that occur among the first n endpoints, and what rows and columns are. */
void add_matrix_legend(struct document *out, const struct topology *t, size_t n);
/* The matrix's place for many GPUs: how many ordered pairs of each class have which verdict. */
void add_class_summary(struct document *out, const struct topology *t);
