/* SPDX-License-Identifier: Apache-2.0 */
/* Measured results: any text, and what was read compared with itself and written as JSON. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "ingest/figures_open.h"
#include "result/comparison.h"
#include "result/figures_json.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A result was measured under its own conditions. */
static void assert_unchanged(const struct figures *f)
{
	AUTO_FREE int *same = xcalloc(f->gpu_n + 1, sizeof(*same));

	for (size_t i = 0; i < f->gpu_n; i++)
		same[i] = (int)i;
	if (figures_changed(f, f, same, false).what != CONDITION_N)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct figures *f, *again;
	json_t *json;

	strbuf_add(&text, (const char *)data, size);
	if (figures_parse(strbuf_str(&text), text.len, "all_reduce", &f) < 0)
		return 0;
	comparison_free(comparison_new(f, f));
	assert_unchanged(f);
	json = figures_to_json(f);
	if (figures_from_json(json, "again", &again) == 0)
		figures_free(again);
	json_decref(json);
	figures_free(f);
	return 0;
}
