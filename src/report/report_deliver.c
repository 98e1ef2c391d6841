/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_deliver.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "machine/machine.h"
#include "unlock/download.h"

static void add_option(struct strbuf *b, const char *option, const char *value)
{
	if (!value)
		return;
	strbuf_printf(b, " %s ", option);
	strbuf_shell_word(b, value);
}

/* "onehop unlock --sources DIR --apply": the command that applies this plan. */
static const char *apply_words(const struct deliver_session *d)
{
	const struct deliver_choice *o = d->o;
	AUTO_STRBUF struct strbuf b = {0};
	AUTO_FREE char *mirror = o->mirror ? download_hide(o->mirror, o->mirror) : NULL;

	strbuf_puts(&b, "onehop unlock");
	add_option(&b, "--sources", o->sources);
	if (o->download)
		strbuf_puts(&b, " --download");
	add_option(&b, "--mirror", mirror);
	add_option(&b, "--kernel", o->kernel);
	strbuf_puts(&b, o->image ? " --image --apply" : " --apply");
	return arena_strdup(d->machine->arena, strbuf_str(&b));
}

static struct plan_report plan_of(const struct deliver_session *d, bool verbose)
{
	struct plan_report r = plan_report_of(d->plan, d->machine, d->fix);

	r.apply_words = d->o->apply ? NULL : apply_words(d);
	r.verbose = verbose;
	return r;
}

static struct delivery_report delivery_of(const struct deliver_session *d)
{
	return (struct delivery_report){.delivery = d->delivery,
					.machine = d->machine,
					.image = d->o->image,
					.work = deliver_session_has_steps(d) &&
						!d->delivery->blocked};
}

void report_deliver(struct document *out, const struct deliver_session *d, bool verbose)
{
	const struct delivery_report delivery = delivery_of(d);
	const struct plan_report plan = plan_of(d, verbose);

	report_delivery(out, &delivery);
	/* A plan that cannot be applied would only hide what has to be fixed first. */
	if (!d->delivery->blocked)
		report_plan(out, &plan);
	report_delivery_after(out, &delivery);
}

json_t *report_deliver_json(const struct deliver_session *d, const struct fix_outcome *done)
{
	const struct delivery_report delivery = delivery_of(d);
	const struct plan_report plan = plan_of(d, false);

	return report_delivery_json(&delivery, report_plan_json(&plan, done));
}
