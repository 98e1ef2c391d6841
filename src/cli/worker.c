/* SPDX-License-Identifier: Apache-2.0 */
/* The hidden commands that onehop starts itself with: devices, ranks of NCCL, and libibverbs, in processes that
 * can be killed. */
#include "cli/command.h"

#include "base/child.h"
#include "base/err.h"
#include "base/text.h"
#include "bench/collective_bench.h"
#include "device/worker.h"
#include "rdma/rdma_worker.h"

#include <limits.h>
#include <stdint.h>

struct worker_options {
	struct common_options common;
};

static const struct option worker_table[] = {COMMON_HELP(struct worker_options), OPTIONS_END};

static int run_worker(const void *options, const char *const *args)
{
	uint64_t fd = 3;

	(void)options;
	if (args[0] && (text_to_u64(args[0], &fd) < 0 || fd > INT_MAX))
		return fail(EXIT_REFUSED, "'%s' is not a file descriptor", args[0]);
	return worker_serve((int)fd) < 0 ? fail(EXIT_REFUSED, "worker: %s", err_msg()) : EXIT_OK;
}

const struct command command_worker = {
	.name = "worker",
	.args = "[FD]",
	.summary = "serve devices to the onehop that started this",
	.about =
		"Opens devices and does what comes over the socket FD (3). onehop starts it itself.",
	.options = worker_table,
	.size = sizeof(struct worker_options),
	.max_args = 1,
	.run = run_worker,
	.hidden = true,
};

/* ---- ranks of NCCL ---- */

struct nccl_worker_options {
	struct common_options common;
};

static const struct option nccl_worker_table[] = {COMMON_HELP(struct nccl_worker_options),
						  OPTIONS_END};

/* What fails is said over the socket. */
static int run_nccl_worker(const void *options, const char *const *args)
{
	(void)options;
	(void)args;
	return nccl_serve(CHILD_SOCKET) < 0 ? fail(EXIT_REFUSED, "%s", err_msg()) : EXIT_OK;
}

const struct command command_nccl_worker = {
	.name = NCCL_WORKER_COMMAND,
	.args = "",
	.summary = "call NCCL for the onehop that started this",
	.about = "Measures what comes over the socket 3. onehop starts it itself.",
	.options = nccl_worker_table,
	.size = sizeof(struct nccl_worker_options),
	.run = run_nccl_worker,
	.hidden = true,
};

/* ---- libibverbs ---- */

struct rdma_worker_options {
	struct common_options common;
};

static const struct option rdma_worker_table[] = {COMMON_HELP(struct rdma_worker_options),
						  OPTIONS_END};

static int run_rdma_worker(const void *options, const char *const *args)
{
	(void)options;
	(void)args;
	return rdma_serve(CHILD_SOCKET) < 0 ? fail(EXIT_REFUSED, "%s", err_msg()) : EXIT_OK;
}

const struct command command_rdma_worker = {
	.name = RDMA_WORKER_COMMAND,
	.args = "",
	.summary = "call libibverbs for the onehop that started this",
	.about =
		"Lists NICs and moves data through them as the socket 3 says. onehop starts it itself.",
	.options = rdma_worker_table,
	.size = sizeof(struct rdma_worker_options),
	.run = run_rdma_worker,
	.hidden = true,
};
