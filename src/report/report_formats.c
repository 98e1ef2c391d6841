/* SPDX-License-Identifier: Apache-2.0 */
/* What onehop reads, as a table. */
#include "report/report.h"

#include "base/strbuf.h"
#include "ingest/ingest.h"

#include <string.h>

void report_formats(struct document *out)
{
	struct ingest_format f;

	document_paragraph(
		out, STYLE_PLAIN, 0,
		"What --from reads: these files, and the outputs of these tools anywhere in a "
		"text. - is standard input.");
	document_blank(out);
	document_table(out, 2, 2, 2);
	for (size_t i = 0; ingest_format_at(i, &f); i++) {
		document_row(out);
		document_cell(out, STYLE_STRONG, "%s", f.name);
		if (strcmp(f.use, "--from") == 0)
			document_cell(out, STYLE_PLAIN, "%s", f.gives);
		else
			document_cell(out, STYLE_PLAIN, "%s (%s)", f.gives, f.use);
	}
}

void report_formats_markdown(struct strbuf *out)
{
	struct ingest_format f;

	strbuf_puts(out, "| format | read by | gives |\n|---|---|---|\n");
	for (size_t i = 0; ingest_format_at(i, &f); i++)
		strbuf_printf(out, "| %s | `%s` | %s |\n", f.name, f.use, f.gives);
}
