/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drawing of a machine with a mark at every device that a finding names; parts of a page about
 * a machine.
 */
#include "report/report_impl.h"

#include "base/strbuf.h"

#include <string.h>

/*
 * "tests/machines/h200x4" is h200x4; the host itself has no name here, as it could identify its
 * owner.
 */
static void put_name(struct strbuf *b, const struct machine *m)
{
	const char *name = machine_place(m);
	size_t n = strlen(name);

	while (n > 1 && name[n - 1] == '/')
		n--;
	while (n && memchr(name, '/', n - 1))
		name++, n--;
	strbuf_add(b, name, n);
}

static void machine_title(const struct machine *m, struct strbuf *out)
{
	put_name(out, m);
	strbuf_puts(out, ": ");
	put_gpus_and_driver(out, m);
}

void report_drawing(const struct diagnosis *d, bool in_page, struct strbuf *out)
{
	AUTO_STRBUF struct strbuf title = {0};
	struct drawing_request request = {.in_page = in_page};

	machine_title(d->topology->machine, &title);
	request.title = strbuf_str(&title);
	request.notes = diagnosis_notes(d, &request.note_n);
	topology_draw_svg(d->topology, &request, out);
}

/* ---- for pages ---- */

void add_drawing(struct document *out, const struct diagnosis *d)
{
	AUTO_STRBUF struct strbuf svg = {0};

	if (!document_is_page(out))
		return;
	report_drawing(d, true, &svg);
	document_section(out, "drawing", "Drawing");
	document_drawing(out, strbuf_str(&svg));
}

void add_machine_head(struct document *out, const struct machine *m, const char *what)
{
	AUTO_STRBUF struct strbuf title = {0};

	if (!document_is_page(out))
		return;
	machine_title(m, &title);
	document_title(out, "%s: %s", what, strbuf_str(&title));
}
