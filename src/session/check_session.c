/* SPDX-License-Identifier: Apache-2.0 */
#include "session/check_session.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "ingest/ingest.h"
#include "machine/machine.h"

#include <errno.h>

static void unload(struct check_session *s)
{
	machine_free(s->machine);
	source_free(s->source);
	s->machine = NULL;
	s->source = NULL;
}

/* A log of several hosts is read as a whole, and then tells nothing about a machine. */
static bool is_bare(const struct machine *m)
{
	return m->text_part_n && !m->gpu_n && !m->pci_n;
}

int check_session_read(struct check_session *s, const struct check_choice *o,
		       const struct machine_choice *from, struct arena *a, struct texts *ret_hosts)
{
	*s = (struct check_session){.o = o, .from = *from};
	int r = machine_choice_read_source(from, MACHINE_TO_JUDGE, &s->machine, &s->source);
	AUTO_FREE char *why = r < 0 ? xstrdup(err_msg()) : NULL;

	*ret_hosts = (struct texts){0};
	if (from->host || (r < 0 ? r != -EXDEV : !is_bare(s->machine)))
		return r;
	if (o->whole)
		return r < 0 ? err_set(EINVAL, "%s", why) : r;
	if (ingest_hosts(from->from.items, from->from.n, a, ret_hosts) < 0 || ret_hosts->n < 2) {
		*ret_hosts = (struct texts){0};
		return r < 0 ? err_set(-r, "%s", why) : r;
	}
	unload(s);
	return 0;
}

/* ---- judging ---- */

static void drop_ignored(struct diagnosis *d, const struct texts *ignored)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->finding_n; i++)
		if (!texts_have(ignored, d->findings[i].rule->id))
			d->findings[kept++] = d->findings[i];
	d->finding_n = kept;
}

/* A requirement decides alone, unless findings were asked for too. */
int check_threshold(const struct check_choice *o)
{
	return o->fail_on ? o->fail_on - 1 : SEVERITY_WARNING;
}

static enum verdict weigh(const struct check_session *s, enum verdict findings)
{
	enum verdict required = s->requirements.verdict;

	if (required == VERDICT_NA)
		return findings;
	return s->o->fail_on && required == VERDICT_OK && findings == VERDICT_BAD ? findings
										  : required;
}

int check_session_judge(struct check_session *s)
{
	int least = check_threshold(s->o);
	bool unexplained;

	s->topology = topology_new(s->machine);
	s->diagnosis = diagnose(s->topology);
	unexplained = diagnosis_unexplained(s->diagnosis);
	drop_ignored(s->diagnosis, &s->o->ignore);
	if (s->o->require.n &&
	    judge_requirements(s->topology, &s->o->require, s->o->gpus, &s->requirements) < 0)
		return -EINVAL;
	s->verdict = weigh(s, diagnosis_judge(s->diagnosis, least, unexplained));
	return 0;
}

int check_session_plan(const struct check_session *s, struct planned *ret)
{
	const struct planning how = {
		.from = &s->from,
		/* The live host's own source keeps answers; the plan reads files again. */
		.source = s->from.from.n ? s->source : NULL,
		.lifetime = CHANGE_LASTING};

	return planned_make(&how, s->diagnosis, ret);
}

void check_session_done(struct check_session *s)
{
	if (s->diagnosis)
		diagnosis_free(s->diagnosis);
	if (s->topology)
		topology_free(s->topology);
	unload(s);
}
