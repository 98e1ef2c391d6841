/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bench nccl and bench collective share: options, the run, exit codes. They differ in what
 * they print.
 */
#pragma once

#include "cli/command.h"
#include "cli/device_options.h"
#include "report/report_collective.h"

/* clang-format off */
/* Options of every run of collectives, into the member `request` of TYPE. */
#define COLLECTIVE_OPTION(TYPE, member) offsetof(TYPE, request.member)
#define COLLECTIVE_SIZES(TYPE) \
	{"min", 'b', OPTION_TEXT, COLLECTIVE_OPTION(TYPE, min), "SIZE", "from this size on (8); K, M, G are binary", NULL, 0, 0, 0}, \
	{"max", 'e', OPTION_TEXT, COLLECTIVE_OPTION(TYPE, max), "SIZE", "up to this size (128M; 1M with simulated devices)", NULL, 0, 0, 0}, \
	{"factor", 'f', OPTION_NUMBER, COLLECTIVE_OPTION(TYPE, factor), "N", "multiply the size by this each time (2)", NULL, 0, 0, 0}, \
	{"step", 'i', OPTION_TEXT, COLLECTIVE_OPTION(TYPE, step), "SIZE", "increase the size by this each time", NULL, 0, 0, 0}, \
	{"iterations", 'n', OPTION_NUMBER, COLLECTIVE_OPTION(TYPE, iterations), "N", "operations in a batch (20)", NULL, 0, 0, 0}, \
	{"warmup", 'w', OPTION_NUMBER, COLLECTIVE_OPTION(TYPE, warmup), "N", "warm-up operations of each doubled size before the measurement (1)", NULL, 0, 0, 0}, \
	{"type", 'd', OPTION_CHOICE, COLLECTIVE_OPTION(TYPE, type), "TYPE", "type of the elements (float)", nccl_type_words, 0, 0, 0}, \
	{"redop", 'o', OPTION_CHOICE, COLLECTIVE_OPTION(TYPE, redop), "OP", "reduction operation (sum)", nccl_reduce_op_words, 0, 0, 0}, \
	{"root", 'r', OPTION_TEXT, COLLECTIVE_OPTION(TYPE, root), "RANK", "root rank of a broadcast or reduce (0)", NULL, 0, 0, 0}, \
	{"graph", 'G', OPTION_NUMBER, COLLECTIVE_OPTION(TYPE, graph), "N", "capture a batch in a CUDA graph and launch it N times", NULL, 0, 0, 0}, \
	{"no-verify", 0, OPTION_FLAG, COLLECTIVE_OPTION(TYPE, no_verify), NULL, "do not check results", NULL, 0, 0, 0}
#define COLLECTIVE_RUN(TYPE, budget_help) \
	DEVICE_OPTIONS(TYPE), \
	{"count", 'g', OPTION_NUMBER, COLLECTIVE_OPTION(TYPE, count), "N", "use the first N of them; under a launcher, of each process (1)", NULL, 0, 0, 0}, \
	{"processes", 0, OPTION_FLAG, COLLECTIVE_OPTION(TYPE, processes), NULL, "use one process per GPU instead of one for all", NULL, 0, 0, 0}, \
	{"alone", 0, OPTION_FLAG, COLLECTIVE_OPTION(TYPE, alone), NULL, "do not join other processes of mpirun, srun or torchrun", NULL, 0, 0, 0}, \
	{"p2p-off", 0, OPTION_FLAG, COLLECTIVE_OPTION(TYPE, p2p_off), NULL, "also measure without P2P, to show what P2P gains", NULL, 0, 0, 0}, \
	{"nccl", 0, OPTION_FILE, COLLECTIVE_OPTION(TYPE, library), "FILE", "use this libnccl.so.2 instead of the one that is found", NULL, 0, 0, 0}, \
	{"once", 0, OPTION_FLAG, COLLECTIVE_OPTION(TYPE, once), NULL, "measure one batch each, like nccl-tests, instead of until the result is " \
		"stable", NULL, 0, 0, 0}, \
	{"budget", 0, OPTION_NUMBER, COLLECTIVE_OPTION(TYPE, budget_s), "SECONDS", budget_help, NULL, 0, 0, 0}, \
	{"deadline", 0, OPTION_NUMBER, COLLECTIVE_OPTION(TYPE, deadline_s), "SECONDS", "kill a step that takes longer (60)", NULL, 0, 0, 0}
/* clang-format on */

/* How a command prints a run. */
struct collectives_print {
	bool lines_only; /* the lines of the table and nothing else */
	bool both_arms;  /* the lines of the run without P2P too */
	const struct common_options *common;
	const struct collective_layout *layout;
};

/* The exit code. */
int collectives_run(const struct collective_choice *choice, const struct collectives_print *print);
/*
 * The same of libonehop's, alone or in turn with NCCL: its algorithms, the ratios, the data at each
 * size in one place.
 */
int collectives_compare(struct collective_choice choice, const struct common_options *common);
/* That of a run which ended with this error. */
enum exit_code collectives_code(int err);
