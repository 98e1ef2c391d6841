/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/vllm_cache.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/text.h"
#include "ingest/text.h"
#include "result/figures.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * `"0->1": true`: the bytes that it takes, 0: it is something else.
 * vllm/distributed/device_communicators.
 */
static int read_pair(const char *s, unsigned *ret_from, unsigned *ret_to, bool *ret_ok)
{
	char word[8];
	int n = 0;

	if (sscanf(s, "\"%3u->%3u\": %7[a-z]%n", ret_from, ret_to, word, &n) != 3 || !n)
		return 0;
	*ret_ok = strcmp(word, "true") == 0;
	return *ret_ok || strcmp(word, "false") == 0 ? n : 0;
}

bool vllm_cache_begins(const char *s)
{
	unsigned from, to;
	bool ok;

	return *s == '"' && read_pair(s, &from, &to, &ok);
}

bool vllm_cache_recognise(const char *text, size_t size)
{
	const char *s = memmem(text, size, "->", 2);

	while (s > text && *s != '"')
		s--;
	return s && vllm_cache_begins(s);
}

static void read_line(struct figures *f, const struct text_line *l)
{
	unsigned from, to;
	bool ok;

	for (const char *s = l->text; (s = strchr(s, '"')); s++) {
		if (!read_pair(s, &from, &to, &ok) || from == to || from >= FIGURES_MAX_GPUS ||
		    to >= FIGURES_MAX_GPUS)
			continue;
		figures_need_gpus(f, (from > to ? from : to) + 1);
		figures_add(f, METRIC_PAIR_VERIFIED, (int)from, (int)to, ok)->from =
			arena_printf(f->arena, "%s:%u", f->name, l->number);
	}
}

int vllm_cache_parse(const char *text, size_t size, const char *file, struct figures **ret)
{
	struct figures *f = figures_new(file, "vLLM");
	struct text_line *lines;
	size_t n;

	lines = text_lines(f->arena, text, size, &n);
	for (size_t i = 0; i < n; i++)
		read_line(f, &lines[i]);
	if (!f->row_n) {
		figures_free(f);
		return err_set(EINVAL, "%s: names no pair of two GPUs", file);
	}
	if (*text == '{' && !memchr(text, '}', size))
		figures_trouble(f, "the rest: the file is cut off before its closing brace");
	for (size_t i = 0; i < f->gpu_n; i++)
		f->gpus[i].cuda_ordinal = (int)i;
	*ret = f;
	return 0;
}
