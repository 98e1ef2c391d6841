/* SPDX-License-Identifier: Apache-2.0 */
#include "session/tune_session.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/state.h"
#include "collective/operation.h"
#include "session/store.h"
#include "topology/topology.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_BUDGET_S = 8, DEFAULT_DEADLINE_S = 60 };

/* Of the largest buffer. Simulated devices are slow, and small. */
#define MAX_BYTES      (64ul << 20)
#define MAX_BYTES_HOST (256ul << 10)

static const char *file_of(const struct devices *d)
{
	return devices_are_simulated(d) ? "tune-simulated.txt" : "tune.txt";
}

/* ---- what a table depends on ---- */

static void copy_word(const char *from, char *to)
{
	size_t n = 0;

	for (; n + 1 < TUNED_WORD_SIZE && isgraph((unsigned char)from[n]); n++)
		to[n] = from[n];
	to[n] = '\0';
}

/*
 * Simulated devices may follow a recorded machine; that machine's driver and UUIDs are not theirs.
 */
static void identify(const struct devices *d, unsigned n, struct tuned_identity *ret)
{
	const unsigned chosen = (unsigned)d->chosen.n, most = n < chosen ? n : chosen,
		       known = most < COLLECTIVE_RANKS_MAX ? most : COLLECTIVE_RANKS_MAX;
	const struct machine *m = devices_are_simulated(d) ? NULL : d->machine;

	*ret = (struct tuned_identity){.n = n};
	if (m)
		copy_word(fact_str_or(m->driver.module_version, ""), ret->driver);
	for (unsigned i = 0; i < known; i++) {
		const struct gpu *g = m ? devices_gpu(d, i) : NULL;

		copy_word(d->chosen.keys[i], ret->device[i].key);
		if (g)
			copy_word(fact_str_or(g->uuid, ""), ret->device[i].uuid);
		for (unsigned j = 0; j < known; j++)
			if (i != j && m)
				copy_word(paths_pair(d->paths, i, j)->class, ret->path[i][j]);
	}
}

/* ---- the saved table ---- */

static int read_text(const char *path, char **ret, size_t *ret_size)
{
	AUTO_CLOSE int fd = state_open(path);
	int r = fd < 0 ? fd : fd_read_all(fd, TUNED_TEXT_MAX, ret, ret_size);

	return fd < 0 || r >= 0 ? r : state_refuse(-r, "read", path);
}

static int read_table(const char *path, struct tuned *ret)
{
	AUTO_FREE char *text = NULL;
	size_t size = 0;
	int r = read_text(path, &text, &size);

	return r < 0 ? r : tuned_parse(text, size, path, ret);
}

/* Reads the table, if there is one: *ret_read. */
static int read_saved(const char *file, struct tune_use *ret, bool *ret_read)
{
	AUTO_FREE char *folder = state_folder();
	int r;

	*ret = (struct tune_use){0};
	*ret_read = false;
	if (!folder)
		return 0;
	snprintf(ret->path, sizeof(ret->path), "%s/%s", folder, file);
	if (access(ret->path, F_OK) < 0 && errno == ENOENT)
		return 0;
	r = read_table(ret->path, &ret->table);
	if (r < 0)
		snprintf(ret->why, sizeof(ret->why), "%s", err_msg());
	*ret_read = r == 0;
	return r;
}

static void compare(struct tune_use *u, const struct tuned_identity *now)
{
	char why[TUNED_WHY_SIZE];

	u->found = !tuned_differs(&u->table.identity, now, why);
	if (!u->found)
		snprintf(u->why, sizeof(u->why), "%s does not apply: %s", u->path, why);
}

int tune_find(const struct devices *d, unsigned n, struct tune_use *ret)
{
	struct tuned_identity now;
	bool found;
	int r = read_saved(file_of(d), ret, &found);

	ret->simulated = devices_are_simulated(d) ? n : 0;
	if (!found)
		return r;
	identify(d, n, &now);
	compare(ret, &now);
	return 0;
}

/* The endpoint of the GPU with that UUID; gpu_n: none is known to have it. */
static size_t gpu_with(const struct topology *t, const char *uuid)
{
	size_t i = 0;

	while (i < t->gpu_n) {
		const struct gpu *g = &t->machine->gpus[t->endpoints[i].index];

		if (*uuid && strcmp(fact_str_or(g->uuid, ""), uuid) == 0)
			break;
		i++;
	}
	return i;
}

int tune_find_of(const struct topology *t, struct tune_use *ret)
{
	const struct tuned_identity *then = &ret->table.identity;
	size_t gpu[COLLECTIVE_RANKS_MAX];
	struct tuned_identity now;
	bool found;
	int r = read_saved("tune.txt", ret, &found);

	if (!found)
		return r;
	now = *then;
	copy_word(fact_str_or(t->machine->driver.module_version, ""), now.driver);
	for (unsigned i = 0; i < then->n; i++) {
		gpu[i] = gpu_with(t, then->device[i].uuid);
		if (gpu[i] == t->gpu_n) {
			snprintf(ret->why, sizeof(ret->why), "%s is of other GPUs", ret->path);
			return 0;
		}
		copy_word(t->endpoints[gpu[i]].pci->name, now.device[i].key);
	}
	for (unsigned i = 0; i < then->n; i++)
		for (unsigned j = 0; j < then->n; j++)
			if (i != j)
				path_class_name(topology_path(t, gpu[i], gpu[j]), now.path[i][j],
						sizeof(now.path[i][j]));
	compare(ret, &now);
	return 0;
}

static int save(struct tune_session *s)
{
	AUTO_FREE char *folder = state_folder(), *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	bool whole;
	int r;

	if (!f)
		return err_sys(errno, "write the table");
	tuned_write(&s->table, f);
	whole = !ferror(f);
	if (fclose(f) != 0 || !whole)
		return err_set(ENOMEM, "no memory for the table");
	r = store_write(file_of(&s->devices), text);
	if (r == 0)
		snprintf(s->path, sizeof(s->path), "%s/%s", folder, file_of(&s->devices));
	return r;
}

/* ---- the run ---- */

static int check_devices(const struct devices *d)
{
	const size_t n = d->request.n;

	if (n == 1)
		return err_set(ENODEV, "tune needs at least 2 devices, and there is 1: with one, "
				       "libonehop has nothing to choose");
	if (n > COLLECTIVE_RANKS_MAX)
		return err_set(ENODEV, "libonehop has at most %d ranks, not %zu%s",
			       COLLECTIVE_RANKS_MAX, n,
			       devices_are_simulated(d) ? "" : "; choose devices with --gpus");
	return 0;
}

int tune_session_begin(struct tune_session *s, const struct tune_choice *o,
		       const struct session_ear *ear)
{
	int r;

	*s = (struct tune_session){.o = o, .ear = ear, .devices = DEVICES_NONE};
	r = session_begin(&o->devices, NULL, 0, &s->devices);
	if (r == 0)
		r = check_devices(&s->devices);
	s->run = (struct collective_run){
		.plan = {.engine = ENGINE_ONEHOP,
			 .type = ELEMENT_FLOAT32,
			 .factor = 2,
			 .min_bytes = tuned_size(0),
			 .max_bytes =
				 devices_are_simulated(&s->devices) ? MAX_BYTES_HOST : MAX_BYTES,
			 .iterations = 1,
			 .check = true,
			 .tune = true,
			 .memory_bytes = s->devices.memory_bytes},
		.devices = s->devices.request,
		.ranks = {.size = 1, .hosts = HOSTS_ONE},
		.limit_s = o->deadline_s ? o->deadline_s : DEFAULT_DEADLINE_S,
		.stop_fd = s->devices.stop_fd,
	};
	return r;
}

static void hear_step(void *context, const struct collective_step *step)
{
	struct tune_session *s = context;

	if (!step->bytes)
		session_tell(s->ear, SESSION_RUNS, "%s", step->text);
}

static void hear_start(void *context, const struct collective_start *start)
{
	struct tune_session *s = context;

	s->kind = tuned_kind_of(start->direct, start->mixed);
}

/*
 * A kind of paths ends when all is measured or its time is over: the share that is left of what
 * comes first.
 */
static double share_of_kind(const struct tune_session *s, const struct collective_tuned *t)
{
	double work = 1 - (double)t->done / t->total;
	double time = 1 - (clock_s() - s->kind_began_s) / fmax(s->run.plan.budget_s, 1);

	return fmax(fmin(work, time), 0.01); /* it may take longer than its time */
}

/* Without P2P comes last; where no pair has it, nothing else does. */
static double share_left(const struct tune_session *s, const struct collective_tuned *t)
{
	const double share = share_of_kind(s, t);

	if (s->kind != TUNED_HOST)
		return (1 + share) / 2;
	return s->measured[TUNED_DIRECT] || s->measured[TUNED_MIXED] ? share / 2 : share;
}

static void hear_tuned(void *context, const struct collective_tuned *t)
{
	struct tune_session *s = context;
	const double ns = t->us * 1e3;

	s->table.times[s->kind].ns[t->operation][t->algorithm][t->size] = ns < 1 ? 1
									  : ns < UINT32_MAX
										  ? (uint32_t)ns
										  : UINT32_MAX;
	s->measured[s->kind] = true;
	if (t->size >= s->sizes)
		s->sizes = t->size + 1;
	session_tell_left(s->ear, &s->pace, share_left(s, t), "%s, %s with pieces of %llu bytes",
			  s->kind == TUNED_HOST ? "without P2P" : "with P2P",
			  operation_word(t->operation), (unsigned long long)tuned_size(t->size));
}

/* A part of the time that is left. */
static int run_kind(struct tune_session *s, bool no_p2p, double began_s, unsigned parts)
{
	const struct nccl_listener listener = {.context = s,
					       .start = hear_start,
					       .step = hear_step,
					       .tuned = hear_tuned};
	const double budget_s = s->o->budget_s ? s->o->budget_s : DEFAULT_BUDGET_S;

	s->run.plan.no_p2p = no_p2p;
	s->run.plan.budget_s = (budget_s - (clock_s() - began_s)) / parts;
	if (s->run.plan.budget_s < 0)
		s->run.plan.budget_s = 0;
	s->run.arm = no_p2p;
	s->kind_began_s = clock_s();
	return collective_run(&s->run, &listener);
}

int tune_session_run(struct tune_session *s)
{
	const double began_s = clock_s();
	int r = run_kind(s, false, began_s, 2);

	/* Where no pair has P2P, that was without it already. */
	if (r == 0 && !s->measured[TUNED_HOST])
		r = run_kind(s, true, began_s, 1);
	s->run_s = clock_s() - began_s;
	if (r < 0)
		return r;
	date_now(s->table.date);
	identify(&s->devices, (unsigned)s->devices.request.n, &s->table.identity);
	return save(s);
}

void tune_session_done(struct tune_session *s)
{
	devices_done(&s->devices);
}
