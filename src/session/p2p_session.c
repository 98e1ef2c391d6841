/* SPDX-License-Identifier: Apache-2.0 */
#include "session/p2p_session_impl.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "bench/p2p_figures.h"
#include "device/worker.h"
#include "session/stop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define KILL_LIMIT_US 1000000

/* ---- while it runs ---- */

static void tell_progress(void *context, const struct metric *m, uint64_t bytes, size_t round,
			  size_t rounds, size_t left)
{
	struct p2p_session *s = context;
	char size[BYTES_TEXT_SIZE], copies[64] = "";

	if (bytes)
		snprintf(copies, sizeof(copies), " with copies of %s", bytes_text(bytes, size));
	session_tell_left(s->ear, &s->pace, (double)left, "%s%s, round %zu of %zu", m->name, copies,
			  round + 1, rounds);
}

static bool was_stopped(void *context)
{
	const struct p2p_session *s = context;

	return stop_signals_seen(s->devices.stop_fd);
}

static void look_at_links(void *context, const struct round *round)
{
	struct p2p_session *s = context;

	link_watch_look(s->links, s->set->info, s->devices.paths, round);
}

/* ---- running ---- */

int p2p_session_begin(struct p2p_session *s, const struct p2p_request *o,
		      const struct session_ear *ear)
{
	int r;

	*s = (struct p2p_session){.o = o, .ear = ear, .devices = DEVICES_NONE};
	r = p2p_choose_work(s);
	return r < 0 ? r : session_begin(&o->devices, o->from, 0, &s->devices);
}

static int open_set(struct p2p_session *s)
{
	double start = clock_s();
	int r = worker_open(NULL, &s->devices.request, s->devices.stop_fd, &s->set);

	s->start_s = clock_s() - start;
	for (size_t k = 0; r == 0 && k < s->set->n; k++)
		r = devices_check(&s->devices, k, s->set->info[k].ordinal, s->set->info[k].pci);
	return r;
}

static int ask_access(struct p2p_session *s)
{
	size_t n = s->set->n;
	int r = 0;

	s->access = xcalloc(n * n, sizeof(*s->access));
	for (size_t i = 0; i < n * n && r == 0; i++)
		if (i / n != i % n)
			r = s->set->ops->can_access(s->set, (int)(i / n), (int)(i % n),
						    &s->access[i]);
	return r;
}

static void watch_links(struct p2p_session *s)
{
	if (devices_are_simulated(&s->devices))
		return;
	s->links = xcalloc(s->set->n, sizeof(*s->links));
	for (size_t k = 0; k < s->set->n; k++)
		link_watch_limit(&s->links[k], devices_gpu(&s->devices, k));
}

static void measure(struct p2p_session *s)
{
	struct p2p_hooks hooks = {s, tell_progress, was_stopped, NULL};
	double start;

	watch_links(s);
	if (s->links)
		hooks.under_load = look_at_links;
	s->run.hooks = &hooks;
	start = clock_s();
	if (p2p_run(s->set, &s->run, &s->result) < 0)
		s->ended = xstrdup(err_msg());
	s->run_s = clock_s() - start;
	s->run.hooks = NULL;
}

int p2p_session_run(struct p2p_session *s, bool *ret_refused)
{
	int r = open_set(s);

	*ret_refused = r == -EINTR;
	if (r < 0)
		return r;
	r = p2p_choose_copies(s);
	if (r == 0)
		r = ask_access(s);
	*ret_refused = r < 0;
	if (r < 0)
		return r;
	measure(s);
	s->figures = p2p_figures(&s->result, s->devices.paths, s->set->info, s->set->n);
	if (devices_are_simulated(&s->devices))
		s->figures->note = SIMULATED_TEXT;
	session_keep(s->ear, &s->devices, s->devices.machine, s->figures);
	return 0;
}

/* Does not wait for calls that hang. */
void p2p_session_done(struct p2p_session *s)
{
	if (s->set && s->ended)
		worker_kill(s->set, KILL_LIMIT_US);
	device_close(s->set);
	devices_done(&s->devices);
	p2p_result_done(&s->result);
	figures_free(s->figures);
	free(s->metrics);
	free(s->pairs);
	free(s->access);
	free(s->links);
	free(s->ended);
}
