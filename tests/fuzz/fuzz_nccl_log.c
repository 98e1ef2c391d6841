/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's debug log: any text. */
#include "base/strbuf.h"
#include "ingest/nccl_log.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct nccl_log_counts counts;
	struct nccl_log *l;

	strbuf_add(&text, (const char *)data, size);
	if (nccl_log_parse(strbuf_str(&text), text.len, "fuzz", &l) < 0)
		return 0;
	nccl_log_count(l, &counts);
	nccl_log_free(l);
	return 0;
}
