// SPDX-License-Identifier: Apache-2.0
#include "kernels/native_team.h"

#include <pthread.h>

struct native_team {
	u32 threads; /* 0: not all could be started */
	pthread_barrier_t barrier;
	u32 votes[NATIVE_THREADS_MAX]; /* by thread */

	/* held until all were started, or not */
	pthread_mutex_t gate;
	const struct native_block *block;
	void (*run)(const void *args);
	const void *args;
};

struct member {
	struct native_team *team;
	u32 id;
};

u32 native_team_size(const struct native_team *t)
{
	return t->threads;
}

void native_team_meet(struct native_team *t)
{
	pthread_barrier_wait(&t->barrier);
}

u32 native_team_first(struct native_team *t, u32 mine)
{
	u32 value;

	t->votes[native_block.thread] = mine;
	native_team_meet(t);
	value = t->votes[0];
	native_team_meet(t); /* before the next votes */
	return value;
}

u32 native_team_any(struct native_team *t, u32 mine)
{
	u32 any = 0;

	t->votes[native_block.thread] = mine;
	native_team_meet(t);
	for (u32 i = 0; i < t->threads; i++)
		any |= t->votes[i];
	native_team_meet(t);
	return any != 0;
}

static void run_member(struct native_team *t, u32 id)
{
	native_block = *t->block;
	native_block.thread = id;
	native_block.team = t->threads ? t : NULL;
	t->run(t->args);
	native_block.team = NULL;
}

static void *start_member(void *argument)
{
	const struct member *m = argument;

	pthread_mutex_lock(&m->team->gate);
	pthread_mutex_unlock(&m->team->gate);
	if (m->team->threads)
		run_member(m->team, m->id);
	return NULL;
}

void native_team_run(const struct native_block *block, u32 threads, void (*run)(const void *args),
		     const void *args)
{
	struct native_team t = {.gate = PTHREAD_MUTEX_INITIALIZER,
				.block = block,
				.run = run,
				.args = args};
	struct member members[NATIVE_THREADS_MAX];
	pthread_t ids[NATIVE_THREADS_MAX];
	u32 started = 1;

	pthread_mutex_lock(&t.gate);
	for (; started < threads && started < NATIVE_THREADS_MAX; started++) {
		members[started] = (struct member){&t, started};
		if (pthread_create(&ids[started], NULL, start_member, &members[started]) != 0)
			break;
	}
	if (started == threads && pthread_barrier_init(&t.barrier, NULL, threads) == 0)
		t.threads = threads;
	pthread_mutex_unlock(&t.gate);
	run_member(&t, 0);
	while (--started)
		pthread_join(ids[started], NULL);
	if (t.threads)
		pthread_barrier_destroy(&t.barrier);
}
