/* SPDX-License-Identifier: Apache-2.0 */
/* A page while it is written; for document_html.c and page_picture.c only. */
#pragma once

#include "base/strbuf.h"
#include "report/document_impl.h"

/* Groups in groups. */
#define PAGE_MAX_DEPTH 8

struct page_id {
	const char *id; /* NULL: a free place */
	bool used;      /* written: a second one of that name is not */
};

struct page {
	struct strbuf *out;
	const struct page_format *format;
	struct page_id *ids; /* a hash table */
	size_t id_room;
};

/* Adds n bytes of a text of a document, filtered and escaped. */
void page_text(struct page *p, const char *s, size_t n);

/* The figures of a matrix, a coloured cell each. */
void picture_heat(struct page *p, const struct block *b);
void picture_chart(struct page *p, const struct block *b);
