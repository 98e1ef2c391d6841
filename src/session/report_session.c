/* SPDX-License-Identifier: Apache-2.0 */
#include "session/report_session.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "ingest/figures_open.h"
#include "ingest/observe.h"
#include "ingest/text.h"
#include "machine/machine.h"
#include "machine/observed.h"
#include "result/figures.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static void add_result(struct report_session *s, struct figures *f)
{
	*ARENA_PUSH(s->arena, s->results, s->result_n) = f;
}

/* Its content decides; folders and archives are machines. */
static int read_one(struct report_session *s, const char *path, struct texts *machines)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct figures *f;
	struct stat st;
	int r;

	/* Standard input is read once: it is a result. */
	if (strcmp(path, "-") != 0) {
		if (stat(path, &st) < 0)
			return err_set(errno, "%s: %s", path, strerror(errno));
		if (!S_ISREG(st.st_mode) || text_read_file(path, SOURCE_MAX_FILE, &text) < 0 ||
		    !figures_recognise(strbuf_str(&text), text.len)) {
			*ARENA_PUSH(s->arena, machines->items, machines->n) = path;
			return 0;
		}
	}
	r = figures_open(path, &f);
	if (r == 0)
		add_result(s, f);
	return r;
}

/* What runs on this machine left in its state folder, which recordings have too. */
static void add_kept(struct report_session *s)
{
	for (size_t i = 0; i < KEPT_RUN_N; i++) {
		AUTO_FREE char *text = NULL;
		struct figures *f;
		size_t size;

		if (source_read(s->check.source, &text, &size, "%s", kept_runs[i].file) >= 0 &&
		    figures_parse(text, size, kept_runs[i].file, &f) == 0)
			add_result(s, f);
	}
}

static bool is_behind(const struct figures *f, const struct figures *g)
{
	int r = strcmp(f->tool, g->tool);

	return r > 0 || (r == 0 && strcmp(f->when, g->when) > 0);
}

/* Those without a date stay in the order in which they were named. */
static void sort_results(struct report_session *s)
{
	for (size_t i = 1; i < s->result_n; i++) {
		struct figures *f = s->results[i];
		size_t k = i;

		for (; k && is_behind(s->results[k - 1], f); k--)
			s->results[k] = s->results[k - 1];
		s->results[k] = f;
	}
}

/* The newest of each tool counts: an older failure may have been repaired. */
bool report_session_newest(const struct report_session *s, size_t i)
{
	return i + 1 == s->result_n || strcmp(s->results[i]->tool, s->results[i + 1]->tool) != 0;
}

/* Results of other machines, and of simulated devices, are shown all the same. */
static void observe_results(struct report_session *s)
{
	for (size_t i = 0; i < s->result_n; i++)
		if (report_session_newest(s, i) &&
		    figures_observe(s->results[i], s->check.machine) < 0)
			*ARENA_PUSH(s->arena, s->left_out.items, s->left_out.n) =
				arena_strdup(s->arena, err_msg());
}

/* Nothing was named, or a machine was. */
static int read_machine(struct report_session *s, const struct machine_choice *from)
{
	struct texts none;
	int r = check_session_read(&s->check, &s->choice, from, s->arena, &none);

	if (r < 0)
		return r;
	sort_results(s);
	observe_results(s);
	add_kept(s);
	return check_session_judge(&s->check);
}

int report_session_read(struct report_session *s, const struct machine_choice *from,
			const char *const *paths, size_t n)
{
	struct machine_choice choice = *from;
	struct texts machines = {0};
	int r = 0;

	*s = (struct report_session){.arena = arena_new(), .choice = {.whole = true}};
	for (size_t i = 0; i < from->from.n; i++)
		*ARENA_PUSH(s->arena, machines.items, machines.n) = from->from.items[i];
	for (size_t i = 0; i < n && r == 0; i++)
		r = read_one(s, paths[i], &machines);
	choice.from = machines;
	if (r == 0 && (machines.n || !n))
		r = read_machine(s, &choice);
	sort_results(s);
	return r;
}

void report_session_done(struct report_session *s)
{
	for (size_t i = 0; i < s->result_n; i++)
		figures_free(s->results[i]);
	check_session_done(&s->check);
	arena_free(s->arena);
}
