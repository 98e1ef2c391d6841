/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines of texts a machine was read from. */
#include "report/report_impl.h"

#include "base/strbuf.h"
#include "base/text.h"

#include <string.h>

enum { FEW_PARTS = 8 }; /* without --verbose */

/* "nvidia-smi topo -m, 8 GPUs (lines 5-33, cut)" */
static void add_part(struct strbuf *b, const struct text_part *p)
{
	strbuf_printf(b, "%s%s%s (", p->name ? p->name : "nothing known", *p->about ? ": " : "",
		      p->about);
	if (p->first == p->last)
		strbuf_printf(b, "line %u", p->first);
	else
		strbuf_printf(b, "lines %u-%u", p->first, p->last);
	if (p->cut_at)
		strbuf_printf(b, ", cut off at line %u)", p->cut_at);
	else
		strbuf_puts(b, p->cut ? ", not all of it)" : ")");
}

static void add_file(struct document *out, const struct machine *m, size_t from, size_t n,
		     bool verbose)
{
	struct strbuf b AUTO_STRBUF = {0};
	size_t parts = 0, unused = 0;

	for (size_t i = from; i < from + n; i++) {
		const struct text_part *p = &m->text_parts[i];

		if (!p->name)
			unused += p->last - p->first + 1;
		if ((!p->name && !verbose) || (p->name && parts++ >= FEW_PARTS && !verbose))
			continue;
		strbuf_puts(&b, b.len ? "; " : "");
		add_part(&b, p);
	}
	if (parts > FEW_PARTS && !verbose)
		strbuf_printf(&b, "; and %zu more", parts - FEW_PARTS);
	if (unused && !verbose)
		strbuf_printf(&b, "; %zu %s not used", unused,
			      text_plural(unused, "line", "lines"));
	document_item(out, STYLE_PLAIN, 0, "Read:", "%s: %s", m->text_parts[from].file,
		      strbuf_str(&b));
	if (parts > FEW_PARTS && !verbose)
		document_hint(out, "-v shows all");
}

void add_texts_read(struct document *out, const struct machine *m, bool verbose)
{
	for (size_t i = 0, n; i < m->text_part_n; i += n) {
		for (n = 1; i + n < m->text_part_n &&
			    strcmp(m->text_parts[i + n].file, m->text_parts[i].file) == 0;
		     n++)
			;
		add_file(out, m, i, n, verbose);
	}
}
