/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takeover CASE: an application's use of NCCL through the shim, which is part of this program, with
 * ranks that are threads and devices of the host back end; the real NCCL is a stand-in
 * (ONEHOP_NCCL_LIBRARY). All results are checked against sums made here. The stand-in counts the
 * collectives that reach it. TAP.
 */
#include "rig.h"

#include "nccl/comms.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned number;
static bool failed;

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
	__has_feature(address_sanitizer)
#define SANITIZED true
#else
#define SANITIZED false
#endif

static void check(bool right, const char *what)
{
	printf("%sok %u - %s\n", right ? "" : "not ", ++number, what);
	failed |= !right;
}

/* ---- cases ---- */

static void all_operations(struct rank *r)
{
	for (int o = 0; o < RIG_OPERATIONS; o++)
		for (int type = 0; type < 10; type++)
			for (int op = 0; op < (o <= RIG_REDUCE_SCATTER ? 5 : 1); op++)
				rig_check(r, rig_run(r, 0, (enum rig_operation)o,
						     1 + (size_t)(type * 37 + op), type, op,
						     (type + op) % r->n, op & 1));
}

static void sizes_and_streams(struct rank *r)
{
	static const size_t counts[] = {0, 1, 2, 1000, 20000, 70000};

	for (size_t i = 0; i < 24; i++)
		rig_check(r, rig_run(r, (int)(i % RIG_STREAMS),
				     (enum rig_operation)(i % RIG_OPERATIONS), counts[i % 6], 7, 0,
				     0, false));
}

/* Small sums of float32 and nothing else, between two ranks. */
static void what_is_faster(struct rank *r)
{
	rig_check(r, rig_run(r, 0, RIG_ALL_REDUCE, 1000, 7, 0, 0, false));
}

static void what_is_not(struct rank *r)
{
	rig_check(r, rig_run(r, 0, RIG_ALL_REDUCE, 270000, 7, 0, 0, false)); /* 1.03 MiB */
	rig_check(r, rig_run(r, 0, RIG_ALL_REDUCE, 1000, 8, 0, 0, false));
	rig_check(r, rig_run(r, 0, RIG_ALL_REDUCE, 1000, 7, 2, 0, false));
	rig_check(r, rig_run(r, 0, RIG_ALL_GATHER, 1000, 7, 0, 0, false));
}

/*
 * So that it costs NCCL next to nothing. The stand-in refuses a call of that size, and takes no
 * lock.
 */
static void what_is_not_quickly(struct rank *r)
{
	const unsigned long before = rig_locks();

	rig_check(r, ncclGroupStart());
	if (ncclAllReduce(NULL, NULL, (size_t)1 << 40, 8, 0, r->comm, r->native[0]) == NCCL_SUCCESS)
		rig_fail(r, "a call that is too large is not refused");
	rig_check(r, ncclGroupEnd());
	if (rig_locks() != before)
		rig_fail(r, "a call that is passed on takes a lock");
	atomic_fetch_add(&r->rig->calls, 1);
}

static void of_nothing(struct rank *r)
{
	rig_check(r, rig_run(r, 0, RIG_ALL_REDUCE, 0, 7, 0, 0, false));
}

static void groups(struct rank *r)
{
	struct rig_use *a, *b, *c;

	ncclGroupStart();
	a = rig_start(r, 0, RIG_ALL_REDUCE, 100, 7, 0, 0, false);
	ncclGroupStart();
	b = rig_start(r, 1, RIG_BROADCAST, 100, 2, 0, r->n - 1, false);
	ncclGroupEnd();
	c = rig_start(r, 0, RIG_ALL_GATHER, 100, 1, 0, 0, false);
	rig_check(r, ncclGroupEnd());
	rig_finish(r, a);
	rig_finish(r, b);
	rig_finish(r, c);
}

static void splits(struct rank *r)
{
	struct ncclComm *parent = r->comm, *child = NULL, *twin = NULL;
	const int n = r->n, me = r->me;

	rig_check(r, ncclCommSplit(parent, me % 2, -me, &child, NULL));
	rig_check(r, ncclCommSplit(parent, 0, me, &twin, NULL));
	rig_set(r, child);
	all_operations(r);
	rig_set(r, twin);
	what_is_faster(r);
	if (me % 2)
		ncclCommDestroy(parent);
	ncclCommDestroy(child);
	if (me % 2 == 0)
		ncclCommDestroy(parent);
	what_is_faster(r);
	r->comm = twin;
	r->n = n;
	r->me = me;
}

/* Without its last rank, and then without another one, after the parent was aborted. */
static void shrinks(struct rank *r)
{
	struct ncclComm *parent = r->comm, *child = NULL;
	int last = r->n - 1, first = 0;

	if (r->me == last)
		return;
	rig_check(r, ncclCommShrink(parent, &last, 1, &child, NULL, 0));
	rig_set(r, child);
	all_operations(r);
	rig_check(r, ncclCommDestroy(parent));
	r->comm = NULL;
	if (r->me == 0) {
		rig_check(r, ncclCommDestroy(child));
		return;
	}
	rig_check(r, ncclCommShrink(child, &first, 1, &r->comm, NULL, 1));
	rig_check(r, ncclCommAbort(child));
	if (r->comm)
		rig_set(r, r->comm);
	all_operations(r);
}

static void no_color(struct rank *r)
{
	struct ncclComm *parent = r->comm, *child = NULL;

	rig_check(r, ncclCommSplit(parent, r->me == 0 ? -1 : 1, r->me, &child, NULL));
	if (r->me == 0 && child)
		rig_fail(r, "a rank without a color has a communicator");
	if (child) {
		rig_set(r, child);
		what_is_faster(r);
		ncclCommDestroy(child);
	}
	rig_set(r, parent);
	what_is_faster(r);
}

/* The last rank never calls: the others wait until they abort. */
static void aborts(struct rank *r)
{
	struct rig_use *u;
	int status = NCCL_SUCCESS;

	if (r->me == r->n - 1) {
		rig_check(r, ncclCommAbort(r->comm));
		r->comm = NULL;
		return;
	}
	u = rig_start(r, 0, RIG_ALL_REDUCE, 1000, 7, 0, 0, false);
	ncclCommGetAsyncError(r->comm, &status);
	rig_check(r, status);
	rig_check(r, ncclCommAbort(r->comm));
	rig_drop(r, u); /* the stream ends: the kernel gave up */
	r->comm = NULL;
}

/*
 * The last rank gives another count: all get an error with both calls, and what they enqueued ends.
 */
static void disagrees(struct rank *r)
{
	const size_t count = r->me == r->n - 1 ? 1001 : 1000;
	struct rig_use *u = rig_start(r, 0, RIG_ALL_REDUCE, count, 7, 0, 0, false);
	const struct timespec pause = {.tv_nsec = 1000000};
	int status = NCCL_SUCCESS;

	for (int i = 0; i < 30000 && status == NCCL_SUCCESS; i++) {
		rig_check(r, ncclCommGetAsyncError(r->comm, &status));
		nanosleep(&pause, NULL);
	}
	if (status != NCCL_INVALID_USAGE ||
	    !strstr(ncclGetLastError(r->comm), "all_reduce(1000 float32, sum)") ||
	    !strstr(ncclGetLastError(r->comm), "all_reduce(1001 float32, sum)"))
		rig_fail(r, ncclGetLastError(r->comm));
	rig_check(r, ncclCommAbort(r->comm));
	rig_drop(r, u);
	r->comm = NULL;
}

static void destroys(struct rank *r)
{
	struct rig_use *u = rig_start(r, 0, RIG_ALL_REDUCE, 60000, 7, 0, 0, false);

	rig_check(r, ncclCommDestroy(r->comm)); /* waits for what is under way */
	rig_finish(r, u);
	r->comm = NULL;
}

/* What was called before it in the group still runs. */
static void destroys_in_group(struct rank *r)
{
	struct rig_use *u;

	rig_check(r, ncclGroupStart());
	u = rig_start(r, 0, RIG_ALL_REDUCE, 60000, 7, 0, 0, false);
	rig_check(r, ncclCommDestroy(r->comm));
	rig_check(r, ncclGroupEnd());
	rig_finish(r, u);
	r->comm = NULL;
}

/* The stand-in lacks ncclGroupSimulateEnd, so the group goes on. */
static void simulates(struct rank *r)
{
	struct rig_use *u;

	rig_check(r, ncclGroupStart());
	u = rig_start(r, 0, RIG_ALL_REDUCE, 1000, 7, 0, 0, false);
	if (ncclGroupSimulateEnd(NULL) != NCCL_INVALID_USAGE)
		rig_fail(r, "ncclGroupSimulateEnd is there");
	rig_check(r, ncclGroupEnd());
	rig_finish(r, u);
}

/* NCCL is to say what it thinks of these. */
static void finalizes(struct rank *r)
{
	rig_check(r, ncclCommFinalize(r->comm));
	rig_check(r, rig_run(r, 0, RIG_ALL_REDUCE, 1000, 7, 0, 0, false));
}

/*
 * A child has none of its parent's communicators, whose locks and threads it lacks; the parent goes
 * on.
 */
static void forks(struct rank *r)
{
	int status = 1;
	pid_t pid;

	what_is_faster(r);
	pid = fork();
	if (pid == 0)
		_exit(atomic_load(&comms_engines) != 0 ||
		      strcmp(ncclGetLastError(r->comm), "standin: told to fail") != 0);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		rig_fail(r, "a child has communicators");
	what_is_faster(r);
}

/* ---- one thread, all ranks ---- */

static void one_thread(struct rig *g, bool all)
{
	struct ncclComm *comms[RIG_RANKS] = {NULL};
	struct nccl_id id;
	struct rig_use *uses[RIG_RANKS] = {NULL};

	ncclGetUniqueId(&id);
	if (all) {
		check(ncclCommInitAll(comms, g->n, NULL) == NCCL_SUCCESS, "CommInitAll");
	} else {
		ncclGroupStart();
		for (int i = 0; i < g->n; i++)
			ncclCommInitRank(&comms[i], g->n, id, i);
		check(ncclGroupEnd() == NCCL_SUCCESS, "CommInitRank of all ranks in one group");
	}
	for (int i = 0; i < g->n; i++)
		g->ranks[i].comm = comms[i];
	for (int round = 0; round < 20; round++) {
		ncclGroupStart();
		for (int i = 0; i < g->n; i++)
			uses[i] = rig_start(&g->ranks[i], 0,
					    (enum rig_operation)(round % RIG_OPERATIONS), 500, 7, 0,
					    0, round & 1);
		rig_check(&g->ranks[0], ncclGroupEnd());
		for (int i = 0; i < g->n; i++)
			rig_finish(&g->ranks[i], uses[i]);
	}
	for (int i = 0; i < g->n; i++)
		ncclCommDestroy(comms[i]);
}

/* ---- ranks that cannot or do not want ---- */

static void whole(struct rank *r)
{
	all_operations(r);
}

static void finish(struct rig *g, bool taken, const char *what)
{
	char text[160];

	check(!rig_failed(g), what);
	snprintf(text, sizeof(text), "%s: %s", what,
		 taken ? "all were taken over" : "all reached NCCL");
	check(taken ? rig_reached() == 0 : rig_reached() == rig_calls(g), text);
}

static void in_threads(int n, void (*what)(struct rank *r), bool taken, const char *name)
{
	struct rig *g = rig_new(n);

	rig_run_all(g, what, RIG_SHIM);
	finish(g, taken, name);
	rig_free(g);
}

/* What each of two processes does before it makes its communicator. */
struct pair {
	void (*before)(int rank, unsigned step);
	void (*what)(struct rank *r);
	unsigned step;
	enum rig_taken taken;
	bool killed; /* one is */
};

#define PAIR_S 20

/* Both end in time, and all calls were right. */
static bool run_pair(const struct pair *p)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	struct nccl_id id;
	pid_t pids[2];
	int right = 0, ended = 0, killed = 0, status;

	ncclGetUniqueId(&id);
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			p->before(i, p->step);
			_exit(rig_process(&id, i, 2, p->what, p->taken));
		}
	}
	for (int i = 0; ended < 2 && i < PAIR_S * 200; i++) {
		while (waitpid(-1, &status, WNOHANG) > 0) {
			ended++;
			right += status == 0;
			killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		}
		nanosleep(&pause, NULL);
	}
	for (int k = 0; ended < 2 && k < 2; k++)
		kill(pids[k], SIGKILL);
	while (wait(&status) > 0)
		;
	return ended == 2 && right == 2 - p->killed && killed == p->killed;
}

static void nothing(int rank, unsigned step)
{
	(void)rank;
	(void)step;
}

static void turn_off(int rank, unsigned step)
{
	(void)step;
	if (rank == 1)
		setenv("ONEHOP_SHIM", "off", 1);
}

static void go_elsewhere(int rank, unsigned step)
{
	(void)step;
	if (rank == 1 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		_exit(1);
}

static bool can_go_elsewhere(void)
{
	const pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0);
	waitpid(pid, &status, 0);
	return status == 0;
}

static void use_up_memory(int rank, unsigned step)
{
	(void)step;
	rig_trouble.little_memory = rank == 1;
}

static void forbid(int rank, unsigned step)
{
	(void)step;
	if (rank == 1) {
		setenv("NCCL_P2P_DISABLE", "1", 1);
		setenv("NCCL_SHM_DISABLE", "1", 1);
	}
}

static void refuse_memory(int rank, unsigned step)
{
	if (rank == (int)(step & 1))
		rig_trouble.allocation = 1 + step / 2;
}

static void limit_files(int rank, unsigned step)
{
	(void)step;
	rig_trouble.small_files = rank == 1;
}

static void refuse_descriptors(int rank, unsigned step)
{
	if (rank == (int)(step & 1))
		rig_trouble.descriptors = 3 + step / 2;
}

static void in_processes(void (*before)(int rank, unsigned step), enum rig_taken taken,
			 const char *what)
{
	if (SANITIZED)
		printf("ok %u # SKIP a sanitizer's own memory is not limited with the rest\n",
		       ++number);
	else
		check(run_pair(&(struct pair){before, all_operations, 0, taken, false}), what);
}

/*
 * What is left of the communicator is destroyed, as by a program that does not know of the death.
 */
static void ends_between_calls(struct rank *r)
{
	what_is_faster(r);
	if (r->me == 1)
		raise(SIGKILL);
}

/* The call never ends, so the communicator is aborted. */
static void ends_before_a_call(struct rank *r)
{
	struct rig_use *u;

	ends_between_calls(r);
	u = rig_start(r, 0, RIG_ALL_REDUCE, 1000, 7, 0, 0, false);
	rig_check(r, ncclCommAbort(r->comm));
	rig_drop(r, u);
	r->comm = NULL;
}

static void case_killed(void)
{
	check(run_pair(&(struct pair){nothing, ends_between_calls, 0, RIG_ALL, true}),
	      "the other process was killed: ncclCommDestroy ends");
	check(run_pair(&(struct pair){nothing, ends_before_a_call, 0, RIG_ALL, true}),
	      "the other process was killed: ncclCommAbort ends a call that waits for it");
}

/*
 * Each step of a start fails on one rank: all take over, or none does, and nobody waits for ever.
 */
static void each_step(void (*before)(int rank, unsigned step), unsigned n, const char *what)
{
	unsigned right = 0;

	if (SANITIZED) {
		printf("ok %u # SKIP a sanitizer's own memory is not refused\n", ++number);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		const bool one =
			run_pair(&(struct pair){before, what_is_faster, i, RIG_ALL_OR_NONE, false});

		if (!one)
			printf("# step %u\n", i);
		right += one;
	}
	check(right == n, what);
}

static void case_all(void)
{
	in_threads(2, whole, true, "two ranks, all operations");
	in_threads(3, whole, true, "three ranks, all operations");
	in_threads(2, sizes_and_streams, true, "sizes and streams");
	in_threads(2, groups, true, "groups");
	in_threads(4, splits, true, "splits");
	in_threads(3, no_color, true, "a split without a color");
	in_threads(4, shrinks, true, "shrinks");
	in_threads(2, aborts, true, "aborts");
	in_threads(3, disagrees, true, "ranks that disagree");
	in_threads(3, destroys, true, "destroys while calls are under way");
	in_threads(2, destroys_in_group, true, "destroys in a group");
	in_threads(2, simulates, true, "a group that cannot be simulated");
	in_threads(2, finalizes, false, "a call behind ncclCommFinalize");
	in_threads(3, forks, true, "forks between calls");
}

static void case_thread(void)
{
	for (int all = 0; all < 2; all++) {
		struct rig *g = rig_new(3);

		one_thread(g, all);
		finish(g, true, all ? "CommInitAll" : "one thread");
		rig_free(g);
	}
}

static void case_off(void)
{
	in_threads(2, whole, false, "turned off");
	in_threads(2, groups, false, "turned off, groups");
}

static void case_table(void)
{
	in_threads(2, what_is_faster, true, "what is faster");
	in_threads(2, what_is_not, false, "what is not");
	in_threads(2, what_is_not_quickly, false, "what is not, without a lock");
	in_threads(4, what_is_faster, true, "what is faster, 4 ranks");
	in_threads(4, what_is_not, false, "what is not, 4 ranks");
	in_threads(3, what_is_faster, false, "a number of ranks that was not measured");
}

/* What keeps NCCL from P2P, and from shared memory too. */
static void case_host(void)
{
	setenv("NCCL_P2P_DISABLE", "1", 1);
	in_threads(2, whole, true, "through the host's memory");
	in_threads(3, groups, true, "through the host's memory, groups");
	setenv("NCCL_SHM_DISABLE", "1", 1);
	in_threads(2, whole, false, "neither P2P nor shared memory");
	unsetenv("NCCL_P2P_DISABLE");
	in_threads(2, whole, true, "P2P without shared memory");
	unsetenv("NCCL_SHM_DISABLE");
}

static void case_start(void)
{
	in_processes(forbid, RIG_NONE,
		     "one of two processes may not use any memory of others: all reached NCCL");
	in_processes(limit_files, RIG_NONE,
		     "files of one of two processes must be small: all reached NCCL");
	each_step(refuse_memory, 84, "any allocation of a start fails on one rank");
	each_step(refuse_descriptors, 16, "any descriptor of a start fails on one rank");
}

static void case_processes(void)
{
	in_processes(nothing, RIG_ALL, "two processes: all were taken over");
}

/*
 * Ranks wait for each other for an hour (ONEHOP_SHIM_MEET_MS): these end because none waits for
 * what will not come.
 */
static void case_process_off(void)
{
	in_processes(turn_off, RIG_NONE,
		     "one of two processes has the shim turned off: all reached NCCL");
	if (can_go_elsewhere())
		in_processes(
			go_elsewhere, RIG_NONE,
			"one of two processes is in another network namespace: all reached NCCL");
	else
		printf("ok %u # SKIP no network namespaces here\n", ++number);
}

static void case_memory(void)
{
	in_processes(use_up_memory, RIG_NONE,
		     "one of two processes has no memory: all reached NCCL");
}

/* ---- what is said ---- */

/* The standard error, as a text. */
struct heard {
	FILE *file;
	int before;
	char text[16384];
};

static void listen(struct heard *h)
{
	h->file = tmpfile();
	h->before = dup(2);
	dup2(fileno(h->file), 2);
	setenv("NCCL_DEBUG", "INFO", 1);
}

static void hear(struct heard *h)
{
	dup2(h->before, 2);
	close(h->before);
	rewind(h->file);
	h->text[fread(h->text, 1, sizeof(h->text) - 1, h->file)] = '\0';
	fclose(h->file);
	unsetenv("NCCL_DEBUG");
}

static unsigned times(const char *text, const char *what)
{
	unsigned n = 0;

	for (const char *s = text; (s = strstr(s, what)); s += strlen(what))
		n++;
	return n;
}

/* The standard error becomes a pipe that ends a program which writes there. */
static void close_readers(void)
{
	int ends[2];

	if (pipe(ends) < 0)
		return;
	dup2(ends[1], 2);
	close(ends[0]);
	close(ends[1]);
}

/* Where NCCL_DEBUG_FILE cannot be opened, lines go to the standard error. */
static void case_says(void)
{
	struct heard h;

	setenv("NCCL_DEBUG_FILE", "/nonexistent/log", 1);
	listen(&h);
	in_threads(2, what_is_faster, true, "with a log that cannot be opened");
	in_threads(2, of_nothing, true, "a call of no element");
	close_readers();
	in_threads(2, what_is_faster, true, "with a log that nobody reads");
	dup2(fileno(h.file), 2);
	hear(&h);
	unsetenv("NCCL_DEBUG_FILE");
	check(strstr(h.text, "took over 0 calls, passed on 1\n"),
	      "a call that is passed on is counted");
	check(strstr(h.text, "takes over AllReduce, first with 1000 float32\n"),
	      "the first call is named");
	check(strstr(h.text, "took over 1 call, passed on 0\n"), "calls are counted");
}

/* Why two ranks are left to NCCL: `words` are said by one of them, and each says one line. */
struct reason {
	const char *what;
	struct rig_device device;
	const char *setting; /* of NCCL's, set to 1 */
	enum rig_way way;
	bool taken;
	unsigned lines; /* that leave everything to NCCL */
	const char *words;
};

static void left_for(const struct reason *r)
{
	struct rig *g = rig_new(2);
	struct heard h;
	char text[160];

	rig_trouble.device = r->device;
	if (r->setting)
		setenv(r->setting, "1", 1);
	listen(&h);
	rig_run_all(g, what_is_faster, r->way);
	hear(&h);
	if (r->setting)
		unsetenv(r->setting);
	rig_trouble.device = (struct rig_device){0};
	finish(g, r->taken, r->what);
	rig_free(g);
	snprintf(text, sizeof(text), "%s: one line of each rank says why", r->what);
	check(times(h.text, ": everything is left to NCCL: ") == r->lines &&
		      strstr(h.text, r->words),
	      text);
	if (!strstr(h.text, r->words))
		fprintf(stderr, "%s\n", h.text);
}

/* What waits for a rank that is announced and does not come. */
static void case_squatted(void)
{
	static const struct reason reason = {
		"somebody else has a rank's name", {0}, NULL, RIG_NAME_TAKEN, false, 2,
		"left to NCCL: after 0.3 s: "};

	left_for(&reason);
}

static void case_reasons(void)
{
	static const struct reason reasons[] = {
		{"one rank is refused the other's memory",
		 {.rank = 1, .refused = true},
		 NULL,
		 RIG_SHIM,
		 true,
		 0,
		 "takes over all that it can, through the host's memory"},
		{"refused, and the host's memory is forbidden",
		 {.rank = 1, .refused = true},
		 "NCCL_SHM_DISABLE",
		 RIG_SHIM,
		 false,
		 2,
		 "left to NCCL: there is no P2P, and NCCL_SHM_DISABLE is set"},
		{"one device has no memory left",
		 {.rank = 1, .bytes = 4096},
		 NULL,
		 RIG_SHIM,
		 false,
		 2,
		 "rank 1 could not open its part of the communicator"},
		{"one device is a part of a GPU",
		 {.rank = 0, .name = "NVIDIA H100 MIG 1g.10gb"},
		 NULL,
		 RIG_SHIM,
		 false,
		 2,
		 "left to NCCL: NVIDIA H100 MIG 1g.10gb is a part of a GPU (MIG)"},
		{"one device shows a desktop",
		 {.rank = 1, .desktop = 1},
		 NULL,
		 RIG_SHIM,
		 false,
		 2,
		 "shows a desktop"},
		{"both ranks are on one GPU",
		 {.every = true, .pci = "0000:41:00.0"},
		 NULL,
		 RIG_SHIM,
		 false,
		 2,
		 "left to NCCL: onehop_open_exchange: ranks 0 and 1 are both on GPU 0000:41:00.0"},
		{"one rank has no shim",
		 {0},
		 NULL,
		 RIG_LAST_WITHOUT,
		 false,
		 1,
		 "left to NCCL: 1 of 2 ranks are elsewhere: on another host"},
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		left_for(&reasons[i]);
}

static struct ncclComm *split_off(struct rank *r, struct nccl_config *config)
{
	struct ncclComm *child = NULL;

	rig_check(r, ncclCommSplit(r->comm, 0, r->me, &child, config));
	return child;
}

/* A child has its parent's way unless it is told another one. */
static void splits_later(struct rank *r)
{
	struct ncclComm *parent = r->comm, *child = split_off(r, NULL);

	rig_set(r, child);
	all_operations(r);
	rig_check(r, ncclCommDestroy(child));
	rig_set(r, parent);
}

/* The parent may be taken over, the child not. */
static void splits_not_blocking(struct rank *r)
{
	struct nccl_config config = {sizeof(config), NCCL_CONFIG_MAGIC, 22809, 0};
	struct ncclComm *parent = r->comm, *child = split_off(r, &config);

	rig_set(r, child);
	all_operations(r);
	rig_check(r, ncclCommDestroy(child));
	rig_set(r, parent);
}

/* The new ranks would not know the parent, so all is left to NCCL. */
static void grows(struct rank *r)
{
	struct ncclComm *parent = r->comm, *child = NULL;
	static struct nccl_id id;

	if (r->me == 0)
		rig_check(r, ncclGetUniqueId(&id));
	pthread_barrier_wait(&r->rig->barrier);
	rig_check(r, ncclCommGrow(parent, r->n, &id, r->me, &child, NULL));
	rig_set(r, child);
	all_operations(r);
	rig_check(r, ncclCommDestroy(child));
	rig_set(r, parent);
}

/* What the program wants of them, the shim cannot do: it stays out of the way. */
static void case_left(void)
{
	struct rig *g = rig_new(2);

	rig_run_all(g, splits_later, RIG_NOT_BLOCKING);
	finish(g, false, "a split of one that does not block");
	rig_free(g);
	in_threads(2, splits_not_blocking, false, "a split that does not block");
	in_threads(2, grows, false, "ncclCommGrow");
	setenv("NCCL_COMM_BLOCKING", "0", 1);
	in_threads(2, whole, false, "NCCL_COMM_BLOCKING=0");
	unsetenv("NCCL_COMM_BLOCKING");
}

static void case_without(void)
{
	struct rig *g = rig_new(2);

	rig_run_all(g, whole, RIG_LAST_WITHOUT);
	finish(g, false, "a rank without the shim");
	rig_free(g);
	g = rig_new(3);
	rig_run_all(g, splits_later, RIG_LAST_WITHOUT);
	finish(g, false, "a split, with a rank without the shim");
	rig_free(g);
	g = rig_new(2);
	rig_run_all(g, whole, RIG_NOT_BLOCKING);
	finish(g, false, "communicators that do not block");
	rig_free(g);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"all", case_all},
		     {"thread", case_thread},
		     {"off", case_off},
		     {"table", case_table},
		     {"without", case_without},
		     {"host", case_host},
		     {"memory", case_memory},
		     {"start", case_start},
		     {"left", case_left},
		     {"killed", case_killed},
		     {"says", case_says},
		     {"reasons", case_reasons},
		     {"squatted", case_squatted},
		     {"processes", case_processes},
		     {"process_off", case_process_off}};

	for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(*cases); i++)
		if (strcmp(argv[1], cases[i].name) == 0)
			cases[i].run();
	if (argc == 4 && strcmp(argv[1], "random") == 0)
		check(rig_random((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3])), "random calls");
	printf("1..%u\n", number);
	return failed || number == 0;
}
