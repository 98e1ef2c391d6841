/* SPDX-License-Identifier: Apache-2.0 */
/* Which results were weighed, how old they are, and which no longer hold. */
#include "report/report_impl.h"

#include "base/strbuf.h"
#include "base/text.h"

#include <inttypes.h>

static const char *const condition_texts[CONDITION_N] = {
	[CONDITION_DRIVER] = "the driver", [CONDITION_REGISTRY] = "the driver's registry keys",
	[CONDITION_KERNEL] = "the kernel", [CONDITION_BIOS] = "the BIOS",
	[CONDITION_GPU] = "a GPU",
};

/* "the driver changed: 570.1 before, 580.2 now" */
static void put_changed(struct strbuf *b, const struct weighed *w)
{
	if (w->changed.what == CONDITION_BOOT)
		strbuf_puts(b, *w->changed.was ? "the machine was rebooted since"
					       : "it does not record which boot it is from");
	else if (w->changed.what == CONDITION_WIRING)
		strbuf_printf(b, "the ports above %s have changed since, at %s", w->changed.is,
			      w->changed.was);
	else
		strbuf_printf(b, "%s changed: %s before, %s now", condition_texts[w->changed.what],
			      *w->changed.was ? w->changed.was : "unknown",
			      *w->changed.is ? w->changed.is : "unknown");
}

static void put_age(struct strbuf *b, int64_t s)
{
	static const struct {
		int64_t s;
		const char *one, *many;
	} units[] = {{86400, "day", "days"}, {3600, "hour", "hours"}, {60, "minute", "minutes"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (s >= units[i].s) {
			strbuf_printf(b, ", %" PRId64 " %s old", s / units[i].s,
				      text_plural((size_t)(s / units[i].s), units[i].one,
						  units[i].many));
			return;
		}
	if (s >= 0)
		strbuf_puts(b, ", less than a minute old");
}

/* Results of the store; of files that a person named only what makes them doubtful. */
static void add_one(struct document *out, const struct weighed *w)
{
	bool changed = w->changed.what < CONDITION_N, stale = w->kept && (changed || w->ahead);
	struct strbuf b AUTO_STRBUF = {0};

	if (!w->kept && !changed)
		return;
	strbuf_printf(&b, "%s%s%s", w->run.tool, *w->run.when ? " of " : "", w->run.when);
	put_age(&b, w->age_s);
	strbuf_printf(&b, ", in %s", *w->from ? w->from : "the recording");
	if (stale || changed)
		strbuf_puts(&b, stale ? ": ignored: " : ": used as requested, but ");
	if (changed)
		put_changed(&b, w);
	else if (stale)
		strbuf_puts(&b, "its date is in the future");
	else if (!w->observed_n)
		strbuf_puts(&b, ": contains nothing about these GPUs");
	if (stale)
		strbuf_puts(&b, "; run it again");
	document_item(out, stale || changed ? STYLE_WARN : STYLE_DIM, 0,
		      stale ? "Stale:   " : "Results: ", "%s", strbuf_str(&b));
}

void report_weighed(struct document *out, const struct machine *m)
{
	for (size_t i = 0; i < m->weighed_n; i++)
		add_one(out, &m->weighed[i]);
}
