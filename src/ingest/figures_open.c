/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/figures_open.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "ingest/text.h"
#include "result/figures.h"

#include <errno.h>

bool figures_recognise(const char *text, size_t size)
{
	for (const struct text_kind *k = text_kinds; k->what; k++)
		if (k->to_figures && k->recognise(text, size))
			return true;
	return false;
}

int figures_parse_each(const char *text, size_t size, const char *name, struct figures **ret)
{
	for (const struct text_kind *k = text_kinds; k->what; k++)
		if (k->to_figures && k->recognise(text, size))
			return k->to_figures(text, size, name, ret);
	return text_refuse(
		text, size, name,
		"the output of p2pBandwidthLatencyTest, nccl-tests, nvbandwidth -j or onehop");
}

int figures_parse(const char *text, size_t size, const char *name, struct figures **ret)
{
	int r = figures_parse_each(text, size, name, ret);

	if (r == 0)
		figures_merge(*ret);
	return r;
}

int figures_open(const char *path, struct figures **ret)
{
	AUTO_STRBUF struct strbuf text = {0};
	int r = text_read_file(path, SOURCE_MAX_FILE, &text);

	return r < 0 ? r : figures_parse(strbuf_str(&text), text.len, text_file_name(path), ret);
}
