/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/figures_open.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "ingest/text.h"
#include "machine/figures.h"

#include <errno.h>

int figures_parse(const char *text, size_t size, const char *name, struct figures **ret)
{
	struct figures *f;

	for (const struct text_kind *k = text_kinds; k->what; k++) {
		int r;

		if (!k->to_figures || !k->recognise(text, size))
			continue;
		r = k->to_figures(text, size, name, &f);
		if (r < 0)
			return r;
		figures_merge(f);
		*ret = f;
		return 0;
	}
	return text_refuse(text, size, name,
			   "the output of p2pBandwidthLatencyTest, nccl-tests, nvbandwidth -j or "
			   "onehop");
}

int figures_open(const char *path, struct figures **ret)
{
	AUTO_STRBUF struct strbuf text = {0};
	int r = text_read_file(path, SOURCE_MAX_FILE, &text);

	if (r < 0)
		return r;
	if (!text.len)
		return err_set(EINVAL, "%s: is empty", path);
	return figures_parse(strbuf_str(&text), text.len, path, ret);
}
