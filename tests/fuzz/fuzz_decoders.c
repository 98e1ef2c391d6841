/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One decoder over a text: the first line names its row of the table of parts, and of an unknown
 * name the first byte chooses. FUZZ_DECODER=NAME is that row alone. No machine is read from what it
 * states, which takes most of the time of fuzz_texts. At the end it says how many inputs each
 * decoder had, and in how many it found its output.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "ingest/claims.h"
#include "ingest/figures_open.h"
#include "ingest/nccl_log.h"
#include "ingest/part.h"
#include "result/figures.h"
#include "three_gpus.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The rows of the table. */
static struct decoder {
	const char *name;
	size_t inputs, read;
} * decoders;
static size_t decoder_n;

static void say_counts(void)
{
	for (size_t i = 0; i < decoder_n; i++)
		fprintf(stderr, "decoder: %zu inputs, %zu read: %s\n", decoders[i].inputs,
			decoders[i].read, decoders[i].name);
	free(decoders);
}

static void list_decoders(void)
{
	const char *name, *gives;

	while (part_kind_at(decoder_n, &name, &gives))
		decoder_n++;
	decoders = xcalloc(decoder_n, sizeof(*decoders));
	for (size_t i = 0; i < decoder_n; i++)
		part_kind_at(i, &decoders[i].name, &gives);
	atexit(say_counts);
}

/* The n characters; decoder_n: none has this name. */
static size_t decoder_named(const char *name, size_t n)
{
	size_t i = 0;

	while (i < decoder_n &&
	       (strlen(decoders[i].name) != n || memcmp(decoders[i].name, name, n) != 0))
		i++;
	return i;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *only = getenv("FUZZ_DECODER");

	(void)argc;
	(void)argv;
	list_decoders();
	if (!only || decoder_named(only, strlen(only)) < decoder_n)
		return 0;
	fprintf(stderr, "FUZZ_DECODER: no decoder is called %s\n", only);
	exit(2);
}

/* *text goes on behind what chose it. */
static size_t choose(const char **text, size_t *size)
{
	const char *only = getenv("FUZZ_DECODER"), *end = memchr(*text, '\n', *size);
	size_t n = end ? (size_t)(end - *text) : *size;
	size_t i = decoder_named(*text, n);

	if (i == decoder_n) {
		i = (unsigned char)**text % decoder_n;
		n = 0;
	}
	n += n < *size;
	*size -= n;
	*text += n;
	return only ? decoder_named(only, strlen(only)) : i;
}

static void observe(const struct part *p)
{
	struct machine m = {.arena = arena_new()};

	put_gpus(&m);
	list_gpus(&m);
	p->kind->observe(p, &m);
	arena_free(m.arena);
}

/* All that the row of the table can do with its output. */
static void read_part(const struct part *p, struct claims *c, struct arena *a)
{
	char host[256];

	for (size_t at = 0, n; at < p->n; at += n) {
		n = part_unit(p, at).n;
		if (!n || n > p->n - at)
			abort();
	}
	for (size_t i = 0; p->kind->keep && i < p->n; i++)
		p->kind->keep(p, &p->lines[i], a);
	if (p->kind->host)
		p->kind->host(p, host, sizeof(host));
	if (p->kind->decode)
		p->kind->decode(p, c);
	if (p->kind->observe)
		observe(p);
}

static void read_log(const struct part *p)
{
	struct nccl_log *l;

	if (nccl_log_recognise_lines(p->lines, p->n) &&
	    nccl_log_parse_lines(p->lines, p->n, "fuzz", &l) == 0)
		nccl_log_free(l);
}

static void read_figures(const struct part *p)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct figures *f;

	for (size_t i = 0; i < p->n; i++) {
		strbuf_puts(&text, p->lines[i].text);
		strbuf_putc(&text, '\n');
	}
	if (figures_recognise(text.text, text.len) &&
	    figures_parse_each(text.text, text.len, "fuzz", &f) == 0)
		figures_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct claims *c;
	struct arena *a;
	struct part *parts;
	struct text_line *lines;
	size_t line_n, part_n, i;

	if (!size)
		return 0;
	if (!decoders)
		list_decoders();
	i = choose(&text, &size);
	a = arena_new();
	c = claims_new("fuzz");
	lines = text_lines(a, text, size, &line_n);
	parts = parts_of_kind(a, i, "fuzz", lines, line_n, &part_n);
	for (size_t k = 0; k < part_n; k++) {
		read_part(&parts[k], c, a);
		if (parts[k].kind->observed == PART_LOG)
			read_log(&parts[k]);
		if (parts[k].kind->observed == PART_FIGURES)
			read_figures(&parts[k]);
	}
	decoders[i].inputs++;
	decoders[i].read += part_n != 0;
	claims_free(c);
	arena_free(a);
	return 0;
}
