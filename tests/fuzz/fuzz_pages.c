/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTML, Markdown, SVG and CSV about hostile input: once as every kind of text of a document, once
 * as a recorded machine. Whatever it holds, the only markup in them is that of the writers, and no
 * cell is a formula.
 */
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "recording/recording.h"
#include "report/csv.h"
#include "report/report.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the writers write themselves; each word between blanks. */
static const char tags[] =
	" html head meta title style body main h1 h2 h3 p nav a div span table thead tbody tr th td details "
	"summary figure figcaption pre code br footer svg rect text path g ";
static const char attributes[] =
	" lang charset http-equiv content name class id href scope tabindex xmlns role width height viewBox "
	"font-family font-size font-weight fill stroke stroke-width stroke-dasharray x y rx d text-anchor "
	"transform aria-label ";
static const char *const references[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;", NULL};
static const char *const markdown_tags[] = {"<!-- -->",   "<br>",       "<details><summary>",
					    "</summary>", "</details>", "<sub>",
					    "</sub>",     NULL};

static void fail(const char *what, const char *at)
{
	fprintf(stderr, "%s: %.80s\n", what, at);
	abort();
}

/* The length of that of `all` with which s begins; 0: it begins with none. */
static size_t begins_with(const char *s, const char *const *all)
{
	for (; *all; all++)
		if (strncmp(s, *all, strlen(*all)) == 0)
			return strlen(*all);
	return 0;
}

static size_t word_in(const char *s, const char *words)
{
	char word[32];
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '-')
		n++;
	if (!n || n + 3 > sizeof(word))
		return 0;
	snprintf(word, sizeof(word), " %.*s ", (int)n, s);
	return strstr(words, word) ? n : 0;
}

/* Behind the attribute at s, which begins with a blank. */
static const char *check_attribute(const char *s)
{
	size_t n = word_in(s + 1, attributes);
	const char *value = s + 1 + n + 2;

	if (!n || strncmp(s + 1 + n, "=\"", 2) != 0)
		fail("an attribute", s);
	if (strncmp(s, " href=", 6) == 0 && *value != '#')
		fail("a link to elsewhere", s);
	n = strcspn(value, "\"<>");
	if (value[n] != '"')
		fail("an attribute without an end", s);
	return value + n + 1;
}

/* Behind the tag at s. */
static const char *check_tag(const char *s)
{
	bool end = s[1] == '/';
	const char *name = s + 1 + end;
	size_t n = word_in(name, tags);

	if (!n)
		fail("a tag", s);
	for (s = name + n; *s == ' ' && !end;)
		s = check_attribute(s);
	s += *s == '/';
	if (*s != '>')
		fail("a tag without an end", name);
	return s + 1;
}

static void check_character(const char *s)
{
	unsigned char c = (unsigned char)*s;

	if (c == '>' || (c < ' ' && c != '\n') || c == 0x7f)
		fail("a character", s);
	if (c == '&' && !begins_with(s, references))
		fail("a reference", s);
}

/* HTML and SVG. */
static void check_markup(const char *s)
{
	static const char doctype[] = "<!DOCTYPE html>", style[] = "<style>";

	while (*s) {
		if (strncmp(s, doctype, strlen(doctype)) == 0)
			s += strlen(doctype);
		else if (strncmp(s, style, strlen(style)) == 0)
			s = strstr(s, "</style>");
		else if (*s == '<')
			s = check_tag(s);
		else
			check_character(s++);
	}
}

/* Behind the fenced block that begins at s. */
static const char *skip_fence(const char *s)
{
	size_t fence = strspn(s, "`"), n;

	for (const char *line = strchr(s, '\n'); line; line = strchr(line + 1, '\n')) {
		n = strspn(line + 1, "`");
		if (n >= fence && (line[1 + n] == '\n' || !line[1 + n]))
			return line + 1 + n;
	}
	fail("a fence without an end", s);
	return s;
}

/* Behind the code in backquotes at s. */
static const char *skip_code(const char *s)
{
	size_t n = strcspn(s + 1, "`\n");

	if (s[1 + n] != '`')
		fail("code without an end", s);
	return s + n + 2;
}

/* Behind the summary whose text begins at s: HTML, in which Markdown means nothing. */
static const char *skip_summary(const char *s)
{
	while (strncmp(s, "</summary>\n", 11) != 0) {
		size_t n = *s == '<' ? begins_with(s, markdown_tags) : 0;

		if (*s == '\n' || (*s == '<' && !n))
			fail("a tag in a summary", s);
		if (!n)
			check_character(s);
		s += n ? n : 1;
	}
	return s + 10;
}

/*
 * A line that begins with a comment is HTML as a whole: neither code nor a backslash holds in it.
 */
static void check_markdown(const char *all)
{
	static const char summary[] = "<details><summary>";

	for (const char *s = all; *s;) {
		bool begins = s == all || s[-1] == '\n';

		if (begins && strncmp(s, "<!--", 4) == 0)
			fail("a line of HTML", s);
		if (strncmp(s, "```", 3) == 0 && begins) {
			s = skip_fence(s);
		} else if (strncmp(s, summary, strlen(summary)) == 0) {
			s = skip_summary(s + strlen(summary));
		} else if (*s == '`') {
			s = skip_code(s);
		} else if (*s == '\\' && s[1]) {
			s += 2;
		} else if (*s == '<') {
			size_t n = begins_with(s, markdown_tags);

			if (!n)
				fail("a tag in Markdown", s);
			s += n;
		} else {
			/* Ours are in the tags above, and the mark of a quotation. */
			if (*s != '>' || (s != all && s[-1] != '\n'))
				check_character(s);
			s++;
		}
	}
}

static void check_document(const struct document *d, const char *made)
{
	const struct page_format format = {.made = made};
	AUTO_STRBUF struct strbuf html = {0}, markdown = {0};

	document_write_html(d, &format, &html);
	check_markup(strbuf_str(&html));
	document_write_markdown(d, &format, &markdown);
	check_markdown(strbuf_str(&markdown));
	if (markdown.len > MARKDOWN_MAX)
		fail("too much Markdown", "");
}

/* Cells of CSV that hold these texts: quoted so that they end where they should, and no formula. */
static void check_csv(const char *s, size_t rows)
{
	size_t found = 0;

	while (*s) {
		bool quoted = *s == '"';

		s += quoted;
		if (*s && strchr("=+-@\t\r", *s) && !isdigit((unsigned char)s[1]))
			fail("a formula", s);
		while (quoted && (*s != '"' || s[1] == '"')) {
			if (!*s)
				fail("a cell without an end", s);
			s += 1 + (*s == '"');
		}
		s += quoted;
		for (; !quoted && *s != ',' && *s != '\n'; s++)
			if (!*s || *s == '"' || (unsigned char)*s < ' ')
				fail("a cell that should be quoted", s);
		if (*s != ',' && *s != '\n')
			fail("text behind a cell", s);
		found += *s++ == '\n';
	}
	if (found != rows)
		fail("rows of CSV", "");
}

static void check_cells(const char *text)
{
	AUTO_STRBUF struct strbuf out = {0};
	struct csv c = {&out, false};

	for (int i = 0; i < 2; i++) {
		csv_text(&c, text);
		csv_text(&c, text);
		csv_end(&c);
	}
	check_csv(strbuf_str(&out), 2);
}

static void add_tables(struct document *d, const char *s)
{
	document_matrix(d, 2, 2);
	document_unit(d, s);
	document_row(d);
	document_cell(d, STYLE_DIM, "%s", s);
	document_cell(d, STYLE_DIM, "%s", s);
	document_row(d);
	document_cell(d, STYLE_PLAIN, "%s", s);
	document_value(d, STYLE_BAD, 1, 2, "%s", s);
	document_cell_anchor(d, "%s", s);
}

static void add_charts(struct document *d, const char *s)
{
	static const struct chart_point p = {1, 2, 0.5, 1.5, 0.2, 3, STYLE_WARN};

	for (int i = 0; i < CHART_N; i++) {
		document_chart(d, (enum chart)i, s, "%s", s);
		document_point(d, &p, "%s", s);
	}
}

static void check_texts(const char *s)
{
	struct document *d = document_new_page();
	char made[40]; /* ours, and therefore short */

	snprintf(made, sizeof(made), "%s", s);
	document_title(d, "%s", s);
	document_lead(d, STYLE_BAD, "%s", s);
	document_section(d, s, "%s", s);
	document_section(d, "second", "%s", s);
	document_section(d, "third", "%s", s);
	document_heading(d, "%s", s);
	document_begin(d, GROUP_CARD, STYLE_WARN, s, "%s", s);
	document_paragraph(d, STYLE_PLAIN, 2, "%s", s);
	document_item(d, STYLE_BAD, 2, s, "%s", s);
	document_begin(d, GROUP_FOLD, STYLE_PLAIN, s, "%s", s);
	document_verbatim(d, 2, s);
	document_end(d);
	document_end(d);
	document_link(d, s, "%s", s);
	add_tables(d, s);
	add_charts(d, s);
	check_document(d, made);
	document_free(d);
}

static void check_machine(struct source *map)
{
	static const struct machine_request request = {.parts = MACHINE_TO_JUDGE};
	struct machine *m = machine_read(map, &request);
	struct topology *t = topology_new(m);
	struct diagnosis *judged = diagnose(t);
	struct document *d = document_new_page();
	AUTO_STRBUF struct strbuf svg = {0}, csv = {0};
	size_t n = t->endpoint_n;

	report_topology_csv(&csv, t);
	check_csv(strbuf_str(&csv), 1 + n * n - n);
	report_check(d, judged, NULL, true);
	check_document(d, NULL);
	report_drawing(judged, false, &svg);
	check_markup(strbuf_str(&svg));
	document_free(d);
	diagnosis_free(judged);
	topology_free(t);
	machine_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_STRBUF struct strbuf text = {0}, recording = {0};
	struct source *map = source_new_map("fuzz");

	strbuf_add(&text, (const char *)data, size);
	check_texts(strbuf_str(&text));
	check_cells(strbuf_str(&text));
	strbuf_puts(&recording, "onehop recording 1\n");
	strbuf_add(&recording, (const char *)data, size);
	if (recording_parse(recording.text, recording.len, "fuzz", map) == 0)
		check_machine(map);
	source_free(map);
	return 0;
}
