/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's debug log: any text, and what of it becomes a fact of a machine with three GPUs. */
#include "base/strbuf.h"
#include "diagnose/run_failure.h"
#include "ingest/nccl_log.h"
#include "ingest/observe.h"
#include "three_gpus.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void observe(const struct nccl_log *l)
{
	struct machine m = {.arena = arena_new()};

	put_gpus(&m);
	list_gpus(&m);
	nccl_log_observe(l, &m);
	for (size_t i = 0; i < m.observed_n; i++)
		if (m.observed[i].kind == OBSERVED_RUN_FAILURE)
			run_failure_find(&m.observed[i].failure);
	arena_free(m.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct nccl_log_counts counts;
	struct nccl_log *l;

	strbuf_add(&text, (const char *)data, size);
	if (nccl_log_parse(strbuf_str(&text), text.len, "fuzz", &l) < 0)
		return 0;
	nccl_log_count(l, &counts);
	observe(l);
	nccl_log_free(l);
	return 0;
}
