/* SPDX-License-Identifier: Apache-2.0 */
/* --html and --markdown: pages to pass on, with identifiers replaced. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/date.h"
#include "base/strbuf.h"
#include "recording/recording.h"
#include "report/document.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

bool page_wanted(const struct common_options *c)
{
	return c->html || c->markdown;
}

struct document *new_document(const struct common_options *c)
{
	return page_wanted(c) ? document_new_page() : document_new();
}

bool page_replaces_text(const struct common_options *c)
{
	return c->markdown || (c->html && strcmp(c->html, "-") == 0);
}

static void redact(void *redaction, const char *text, struct strbuf *out)
{
	redaction_text(redaction, text, out);
}

void this_host(char *buf, size_t size)
{
	if (gethostname(buf, size) < 0)
		buf[0] = '\0';
	buf[size - 1] = '\0';
}

/* The name of this host is replaced too, because a report about it may hold it. */
static struct redaction *page_redaction(const struct common_options *c)
{
	char host[HOST_NAME_MAX + 1] = "";

	if (c->command->names_hosts)
		return redaction_new("");
	this_host(host, sizeof(host));
	return redaction_new(host);
}

/* "Made by onehop 0.1.0 (onehop check) at 2026-01-31T10:20:30Z. Identifiers are replaced." */
static char *made_by(const struct common_options *c)
{
	char when[DATE_SIZE];

	date_to_state(when);
	return xprintf(
		"Made by onehop %s (onehop %s)%s%s. %s", ONEHOP_VERSION, c->command->name,
		*when ? " at " : "", when,
		c->keep_identifiers ? "Identifiers are shown as they were read."
		: c->command->names_hosts
			? "Serial numbers, UUIDs and network addresses are replaced by stand-ins."
			: "Serial numbers, UUIDs, network addresses and host names are "
			  "replaced by stand-ins.");
}

/*
 * A page replaces a page or an empty file only: FILE may be the recording that is read. 0, or the
 * exit status with the sentence printed.
 */
static int check_place(const char *path)
{
	static const char start[] = "<!DOCTYPE html>";
	char found[sizeof(start) - 1];
	struct stat st;
	FILE *f;
	size_t n;

	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || !st.st_size)
		return EXIT_OK;
	f = fopen(path, "re");
	if (!f)
		return fail(EXIT_REFUSED, "--html: %s: %s", path, strerror(errno));
	n = fread(found, 1, sizeof(found), f);
	fclose(f);
	if (n == sizeof(found) && strncasecmp(found, start, n) == 0)
		return EXIT_OK;
	return fail(EXIT_REFUSED, "--html: %s is not an HTML page, and is left as it is", path);
}

int print_pages(const struct document *d, const struct common_options *c)
{
	AUTO_FREE char *made = made_by(c);
	struct redaction *r = c->keep_identifiers ? NULL : page_redaction(c);
	struct page_format format = {made, r ? redact : NULL, r};
	AUTO_STRBUF struct strbuf html = {0}, markdown = {0};
	int result = EXIT_OK;

	if (c->html)
		result = check_place(c->html);
	if (c->html && result == EXIT_OK) {
		document_write_html(d, &format, &html);
		result = save_text(&html, c->html);
	}
	if (c->markdown && result == EXIT_OK) {
		document_write_markdown(d, &format, &markdown);
		result = print_text(&markdown, EXIT_OK);
	}
	redaction_free(r);
	return result;
}
