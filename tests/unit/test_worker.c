/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices in a process of their own do what local ones do, and can be got rid of when they do not.
 */
#include "device/worker.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "device/worker_protocol.h"
#include "kernels/pattern.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_US  60000000 /* nothing should take as long */
#define SHORT_US 100000   /* for what must time out */
#define WORDS    4096u    /* of each buffer, 8 bytes each */
#define BYTES    (WORDS * 8)
#define MEMORY   (1u << 20)

static struct device_request request_of(size_t n, int first_number)
{
	struct device_request r = {.kind = DEVICE_HOST, .n = n, .host.memory_bytes = MEMORY};

	for (size_t i = 0; i < n; i++)
		r.number[i] = first_number + (int)i;
	return r;
}

static struct device_set *open_worker(const struct device_request *r)
{
	struct device_set *s = NULL;

	if (worker_open(getenv("ONEHOP"), r, -1, &s) < 0)
		fail_msg("%s", err_msg());
	return s;
}

static struct device_set *open_two(void)
{
	const struct device_request r = request_of(2, 0);

	return open_worker(&r);
}

static struct memory must_alloc(struct device_set *s, int device, enum memory_kind kind,
				uint64_t size)
{
	struct memory m = {0};

	assert_int_equal(s->ops->alloc(s, device, kind, size, &m), 0);
	return m;
}

static struct stream must_stream(struct device_set *s, int device)
{
	struct stream t = {0};

	assert_int_equal(s->ops->stream_new(s, device, &t), 0);
	return t;
}

static bool is_child(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) >= 0 || errno != ECHILD;
}

/* The process that this one has started and that has not been waited for; there is just one. */
static pid_t only_child(void)
{
	DIR *d = opendir("/proc");
	pid_t found = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		AUTO_FCLOSE FILE *f = NULL;
		char path[300];
		int pid, parent;

		snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		f = fopen(path, "re");
		if (!f || fscanf(f, "%d (%*[^)]) %*c %d", &pid, &parent) != 2 || parent != getpid())
			continue;
		assert_int_equal(found, 0);
		found = pid;
	}
	closedir(d);
	assert_true(found > 0);
	return found;
}

static size_t count_fds_of(pid_t pid)
{
	char path[64];
	size_t n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static size_t count_fds(void)
{
	return count_fds_of(getpid());
}

/* ---- the pattern, written and checked by kernels ---- */

static int fill(struct device_set *s, struct stream t, const struct memory *m, u64 tag)
{
	struct fill_args args = {.words = m->size / 8, .tag = tag};
	const struct launch l = {KERNEL_fill, 2, 1, &args, sizeof(args)};
	int r = s->ops->address(s, m, t.device, &args.target);

	return r < 0 ? r : s->ops->launch(s, t, &l);
}

static int check(struct device_set *s, struct stream t, const struct memory *m, u64 tag,
		 struct check_report *ret)
{
	struct check_args args = {.words = m->size / 8, .tag = tag};
	const struct launch l = {KERNEL_check, 2, 1, &args, sizeof(args)};
	struct memory report = {0};
	int r = s->ops->alloc(s, t.device, MEMORY_DEVICE, sizeof(*ret), &report);

	*ret = (struct check_report){.first_wrong = CHECK_NONE};
	if (r == 0)
		r = s->ops->write(s, &report, 0, ret, sizeof(*ret));
	if (r == 0)
		r = s->ops->address(s, m, t.device, &args.origin);
	if (r == 0)
		r = s->ops->address(s, &report, t.device, &args.report);
	if (r == 0)
		r = s->ops->launch(s, t, &l);
	if (r == 0)
		r = s->ops->wait(s, t, LONG_US);
	if (r == 0)
		r = s->ops->read(s, &report, 0, ret, sizeof(*ret));
	if (report.id)
		s->ops->free(s, &report);
	return r;
}

static u64 wrong_words(struct device_set *s, struct stream t, const struct memory *m, u64 tag)
{
	struct check_report report = {0};

	if (check(s, t, m, tag, &report) < 0)
		fail_msg("%s", err_msg());
	return report.wrong;
}

/* ---- the same as local ---- */

/* Everything that a set of two devices answers, but for addresses and times. */
struct story {
	struct device_set *s;
	struct strbuf text;
	uint32_t random;
	struct memory memory[4]; /* of device 0, 0, 1, and the host's */
	struct stream streams[2];
	struct event events[2];
	struct graph graph;
};

static uint32_t draw(struct story *y, uint32_t below)
{
	y->random = y->random * 1664525 + 1013904223;
	return (y->random >> 8) % below;
}

static void tell(struct story *y, const char *op, int r)
{
	strbuf_printf(&y->text, "%s %d %s\n", op, r, r < 0 ? err_msg() : "");
}

static void tell_memory(struct story *y, const struct memory *m)
{
	strbuf_printf(&y->text, "\tid %lu size %lu device %d owner %d kind %u\n", m->id, m->size,
		      m->device, m->owner, m->kind);
}

static void tell_bytes(struct story *y, const unsigned char *p, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum = sum * 31 + p[i];
	strbuf_printf(&y->text, "\t%08x\n", sum);
}

static void story_begin(struct story *y)
{
	static const enum memory_kind kinds[] = {MEMORY_DEVICE, MEMORY_EXPORTABLE, MEMORY_DEVICE,
						 MEMORY_PINNED};
	static const int devices[] = {0, 0, 1, 0};
	const struct device_ops *o = y->s->ops;

	strbuf_printf(&y->text, "n %zu caps %x\n", y->s->n, y->s->caps & ~DEVICE_NATIVE);
	for (size_t i = 0; i < y->s->n; i++)
		strbuf_printf(&y->text, "%s %d %d %lu\n", y->s->info[i].name, y->s->info[i].number,
			      y->s->info[i].ordinal, y->s->info[i].memory_bytes);
	for (int i = 0; i < 4; i++) {
		tell(y, "alloc", o->alloc(y->s, devices[i], kinds[i], BYTES, &y->memory[i]));
		tell_memory(y, &y->memory[i]);
	}
	for (int i = 0; i < 2; i++) {
		tell(y, "stream_new", o->stream_new(y->s, i, &y->streams[i]));
		tell(y, "event_new", o->event_new(y->s, i, &y->events[i]));
	}
}

/* What must fail, and why. */
static void story_of_errors(struct story *y)
{
	const struct device_ops *o = y->s->ops;
	const struct memory none = {.id = 999, .size = 8};
	const struct memory_export nothing = {.kind = EXPORT_FD, .size = 8, .fd = -1};
	struct memory m;
	struct memory_export e;
	struct stream t;
	uint64_t address;
	unsigned char bytes[16];
	bool can = false;

	tell(y, "alloc", o->alloc(y->s, 0, MEMORY_DEVICE, 2 * MEMORY, &m));
	tell(y, "alloc", o->alloc(y->s, 7, MEMORY_DEVICE, 8, &m));
	tell(y, "alloc", o->alloc(y->s, 0, MEMORY_IMPORTED, 8, &m));
	tell(y, "free", o->free(y->s, &none));
	tell(y, "address", o->address(y->s, &y->memory[0], 1, &address));
	tell(y, "export", o->export(y->s, &y->memory[0], EXPORT_FD, &e));
	tell(y, "export", o->export(y->s, &y->memory[1], EXPORT_IPC, &e));
	tell(y, "import", o->import(y->s, 0, &nothing, &m));
	tell(y, "read", o->read(y->s, &y->memory[0], BYTES - 8, bytes, 16));
	tell(y, "write", o->write(y->s, &y->memory[0], BYTES, bytes, 1));
	tell(y, "stream_new", o->stream_new(y->s, -1, &t));
	tell(y, "can_access", o->can_access(y->s, 0, 1, &can));
	strbuf_printf(&y->text, "\t%d\n", can);
	tell(y, "can_access", o->can_access(y->s, 0, 0, &can));
	tell(y, "peer_access", o->peer_access(y->s, 0, 5, true));
}

static void random_write(struct story *y)
{
	unsigned char bytes[512];
	uint32_t n = 1 + draw(y, sizeof(bytes)), offset = draw(y, BYTES);

	memset(bytes, (int)draw(y, 256), n);
	tell(y, "write", y->s->ops->write(y->s, &y->memory[draw(y, 4)], offset, bytes, n));
}

static void random_read(struct story *y)
{
	AUTO_FREE unsigned char *bytes = calloc(1, BYTES);
	uint32_t offset = draw(y, BYTES);
	int r = y->s->ops->read(y->s, &y->memory[draw(y, 4)], offset, bytes, BYTES - offset);

	tell(y, "read", r);
	tell_bytes(y, bytes, BYTES);
}

static void random_copy(struct story *y)
{
	const struct memory *target = &y->memory[draw(y, 4)], *origin = &y->memory[draw(y, 4)];
	uint32_t n = 1 + draw(y, BYTES / 2), to = draw(y, BYTES / 2), from = draw(y, BYTES / 2);

	if (target == origin)
		return;
	tell(y, "copy", y->s->ops->copy(y->s, y->streams[draw(y, 2)], target, to, origin, from, n));
}

static void random_fill(struct story *y)
{
	uint32_t i = draw(y, 3);

	tell(y, "fill", fill(y->s, y->streams[i / 2], &y->memory[i], draw(y, 100)));
}

static void random_check(struct story *y)
{
	struct check_report report = {0};
	uint32_t i = draw(y, 3);

	tell(y, "check", check(y->s, y->streams[i / 2], &y->memory[i], draw(y, 100), &report));
	tell_bytes(y, (unsigned char *)&report, offsetof(struct check_report, any_old_tag));
}

static void random_event(struct story *y)
{
	uint32_t i = draw(y, 2);

	tell(y, "event_record", y->s->ops->event_record(y->s, y->streams[i], y->events[i]));
	tell(y, "event_wait", y->s->ops->event_wait(y->s, y->streams[!i], y->events[i]));
}

static void random_peer(struct story *y)
{
	uint32_t i = draw(y, 2);

	tell(y, "peer_access", y->s->ops->peer_access(y->s, (int)i, !i, draw(y, 2)));
}

static void random_graph(struct story *y)
{
	const struct device_ops *o = y->s->ops;
	uint32_t i = draw(y, 2);

	tell(y, "capture_begin", o->capture_begin(y->s, y->streams[i]));
	tell(y, "fill", fill(y->s, y->streams[i], &y->memory[2 * i], draw(y, 100)));
	tell(y, "capture_end", o->capture_end(y->s, y->streams[i], &y->graph));
	for (uint32_t n = draw(y, 3); n; n--)
		tell(y, "graph_launch", o->graph_launch(y->s, y->streams[i], y->graph));
	tell(y, "wait", o->wait(y->s, y->streams[i], LONG_US));
	tell(y, "graph_free", o->graph_free(y->s, y->graph));
}

/* Waits after each step, so that reads see the same in both. */
static void random_step(struct story *y)
{
	static void (*const steps[])(struct story *) = {random_write, random_read,  random_copy,
							random_fill,  random_check, random_event,
							random_peer,  random_graph};

	steps[draw(y, sizeof(steps) / sizeof(steps[0]))](y);
	for (int i = 0; i < 2; i++)
		tell(y, "wait", y->s->ops->wait(y->s, y->streams[i], LONG_US));
}

static void story_end(struct story *y)
{
	const struct device_ops *o = y->s->ops;
	double us = -1;

	for (int i = 0; i < 2; i++)
		tell(y, "event_record", o->event_record(y->s, y->streams[0], y->events[i]));
	tell(y, "wait", o->wait(y->s, y->streams[0], LONG_US));
	tell(y, "event_elapsed", o->event_elapsed(y->s, y->events[0], y->events[1], &us));
	strbuf_printf(&y->text, "\t%d\n", us >= 0);
	us = -1;
	tell(y, "enqueue_time", o->enqueue_time(y->s, &us));
	strbuf_printf(&y->text, "\t%d\n", us >= 0);
	for (int i = 0; i < 2; i++) {
		tell(y, "event_free", o->event_free(y->s, y->events[i]));
		tell(y, "stream_free", o->stream_free(y->s, y->streams[i]));
	}
	for (int i = 0; i < 4; i++)
		tell(y, "free", o->free(y->s, &y->memory[i]));
	tell(y, "free", o->free(y->s, &y->memory[0]));
}

static void run_story(struct story *y, struct device_set *s, uint32_t seed)
{
	*y = (struct story){.s = s, .random = seed};
	story_begin(y);
	story_of_errors(y);
	for (int i = 0; i < 150; i++)
		random_step(y);
	story_end(y);
	device_close(s);
}

static void test_as_local(void **state)
{
	const struct device_request r = request_of(2, 5);
	struct story here, there;
	struct device_set *local;

	(void)state;
	for (uint32_t seed = 1; seed <= 4; seed++) {
		assert_int_equal(device_open(&r, &local), 0);
		run_story(&here, local, seed);
		run_story(&there, open_worker(&r), seed);
		assert_non_null(strstr(strbuf_str(&here.text), "capture_end 0"));
		assert_string_equal(strbuf_str(&here.text), strbuf_str(&there.text));
		strbuf_done(&here.text);
		strbuf_done(&there.text);
	}
}

static void test_not_across_processes(void **state)
{
	struct device_set *s = open_two();
	struct memory m;
	struct stream t;
	void *native;

	(void)state;
	assert_int_equal(s->caps & DEVICE_NATIVE, 0);
	assert_int_equal(s->ops->wrap(s, 0, (uint64_t)&m, 8, &m), -ENOTSUP);
	assert_int_equal(s->ops->stream_wrap(s, 0, &t, &t), -ENOTSUP);
	assert_int_equal(s->ops->make_current(s, 0), -ENOTSUP);
	assert_int_equal(s->ops->stream_native(s, must_stream(s, 0), &native), -ENOTSUP);
	device_close(s);
}

static void test_too_large(void **state)
{
	struct device_set *s = open_two();
	struct memory m = must_alloc(s, 0, MEMORY_DEVICE, 2 * WORKER_PAYLOAD_MAX);
	AUTO_FREE char *bytes = calloc(1, WORKER_PAYLOAD_MAX + 1);
	const struct launch l = {KERNEL_fill, 1, 1, bytes, WORKER_LAUNCH_MAX + 1};

	(void)state;
	assert_int_equal(s->ops->write(s, &m, 0, bytes, WORKER_PAYLOAD_MAX + 1), -EINVAL);
	assert_int_equal(s->ops->read(s, &m, 0, bytes, WORKER_PAYLOAD_MAX + 1), -EINVAL);
	assert_int_equal(s->ops->launch(s, must_stream(s, 0), &l), -EINVAL);
	memset(bytes, 7, WORKER_PAYLOAD_MAX);
	assert_int_equal(s->ops->write(s, &m, WORKER_PAYLOAD_MAX, bytes, WORKER_PAYLOAD_MAX), 0);
	memset(bytes, 0, WORKER_PAYLOAD_MAX);
	assert_int_equal(s->ops->read(s, &m, WORKER_PAYLOAD_MAX, bytes, WORKER_PAYLOAD_MAX), 0);
	assert_int_equal(bytes[0] + bytes[WORKER_PAYLOAD_MAX - 1], 14);
	device_close(s);
}

/* ---- two workers ---- */

static void test_export_and_import(void **state)
{
	const struct device_request of_a = request_of(1, 0), of_b = request_of(1, 1);
	struct device_set *a = open_worker(&of_a), *b = open_worker(&of_b);
	struct memory owned = must_alloc(a, 0, MEMORY_EXPORTABLE, BYTES), seen;
	struct memory mine = must_alloc(b, 0, MEMORY_DEVICE, BYTES);
	struct stream ta = must_stream(a, 0), tb = must_stream(b, 0);
	struct memory_export e;
	size_t fds = count_fds();

	(void)state;
	assert_int_equal(a->ops->export(a, &owned, EXPORT_FD, &e), 0);
	assert_int_equal(count_fds(), fds + 1);
	assert_int_equal(b->ops->import(b, 0, &e, &seen), 0);
	close(e.fd);
	assert_int_equal(seen.owner, 0);
	assert_int_equal(seen.kind, MEMORY_IMPORTED);

	/* b writes, the owner looks; then b reads what the owner wrote. */
	assert_int_equal(fill(a, ta, &owned, 1), 0);
	assert_int_equal(a->ops->wait(a, ta, LONG_US), 0);
	assert_int_equal(fill(b, tb, &mine, 2), 0);
	assert_int_equal(wrong_words(a, ta, &owned, 2), WORDS);
	assert_int_equal(b->ops->copy(b, tb, &seen, 0, &mine, 0, BYTES), 0);
	assert_int_equal(b->ops->wait(b, tb, LONG_US), 0);
	assert_int_equal(wrong_words(a, ta, &owned, 2), 0);
	assert_int_equal(fill(a, ta, &owned, 3), 0);
	assert_int_equal(a->ops->wait(a, ta, LONG_US), 0);
	assert_int_equal(b->ops->copy(b, tb, &mine, 0, &seen, 0, BYTES), 0);
	assert_int_equal(wrong_words(b, tb, &mine, 3), 0);
	device_close(a);
	device_close(b);
}

/* Neither process keeps what went over. */
static void test_exports_leave_nothing(void **state)
{
	struct device_set *s = open_two();
	struct memory m = must_alloc(s, 0, MEMORY_EXPORTABLE, BYTES), seen;
	size_t here = count_fds(), there = count_fds_of(only_child());
	struct memory_export e;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(s->ops->export(s, &m, EXPORT_FD, &e), 0);
		assert_int_equal(s->ops->import(s, 1, &e, &seen), 0);
		close(e.fd);
		assert_int_equal(s->ops->free(s, &seen), 0);
	}
	/* The worker closes what it sent after it has answered: one more answer, and it has. */
	assert_int_equal(s->ops->wait(s, must_stream(s, 0), LONG_US), 0);
	assert_int_equal(count_fds_of(only_child()), there);
	assert_int_equal(count_fds(), here);
	device_close(s);
}

/* ---- errors of what is only enqueued ---- */

static void enqueue_nonsense(struct device_set *s, struct stream t, const struct memory *m)
{
	assert_int_equal(s->ops->copy(s, t, m, 0, m, BYTES, 16), 0);
}

static void test_late_errors(void **state)
{
	struct device_set *s = open_two();
	struct memory m = must_alloc(s, 0, MEMORY_DEVICE, BYTES), made = {0};
	struct stream t = must_stream(s, 0);
	struct graph g = {0};
	char first[256];

	(void)state;
	assert_true(s->ops->read(s, &m, BYTES, first, 16) == -EINVAL);
	snprintf(first, sizeof(first), "%s", err_msg());

	enqueue_nonsense(s, t, &m);
	assert_int_equal(fill(s, t, &(struct memory){.id = 999, .size = 8}, 1), -EINVAL);
	assert_string_equal(err_msg(), first); /* the copy's, not the address's */
	assert_int_equal(s->ops->wait(s, t, LONG_US), 0);

	enqueue_nonsense(s, t, &m);
	assert_int_equal(s->ops->wait(s, t, LONG_US), -EINVAL);
	assert_string_equal(err_msg(), first);
	assert_int_equal(s->ops->wait(s, t, LONG_US), 0);

	/* Nothing is made that nobody knows of: what is left fits exactly, twice. */
	for (int i = 0; i < 2; i++) {
		enqueue_nonsense(s, t, &m);
		assert_int_equal(s->ops->alloc(s, 0, MEMORY_DEVICE, MEMORY - BYTES, &made),
				 -EINVAL);
		assert_int_equal(made.id, 0);
		assert_int_equal(s->ops->alloc(s, 0, MEMORY_DEVICE, MEMORY - BYTES, &made), 0);
		assert_int_equal(s->ops->free(s, &made), 0);
		made.id = 0;
	}

	/* A capture ends all the same. */
	assert_int_equal(s->ops->capture_begin(s, t), 0);
	enqueue_nonsense(s, t, &m);
	assert_int_equal(s->ops->capture_end(s, t, &g), -EINVAL);
	assert_int_equal(g.id, 0);
	assert_int_equal(s->ops->capture_begin(s, t), 0);
	assert_int_equal(fill(s, t, &m, 9), 0);
	assert_int_equal(s->ops->capture_end(s, t, &g), 0);
	assert_int_equal(s->ops->graph_launch(s, t, g), 0);
	assert_int_equal(wrong_words(s, t, &m, 9), 0);
	device_close(s);
}

/* ---- workers that die or hang ---- */

static void test_killed_from_outside(void **state)
{
	struct device_set *s = open_two();
	struct memory m = must_alloc(s, 0, MEMORY_DEVICE, BYTES);
	pid_t pid = only_child();
	char byte;

	(void)state;
	assert_int_equal(getpgid(pid), pid);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(s->ops->read(s, &m, 0, &byte, 1), -EOWNERDEAD);
	assert_non_null(strstr(err_msg(), "(devices 0 1) was killed by signal 9 (Killed), "));
	assert_true(strstr(err_msg(), "by a person or a program") ||
		    strstr(err_msg(), "ran out of memory"));
	assert_false(is_child(pid));
	assert_int_equal(s->ops->copy(s, (struct stream){0}, &m, 0, &m, 0, 1), -EOWNERDEAD);
	assert_int_equal(worker_kill(s, LONG_US), 0);
	assert_int_equal(s->ops->copy(s, (struct stream){0}, &m, 0, &m, 0, 1), -ESRCH);
	device_close(s);
}

/* A sanitizer would report them in the worker, which then exits. */
static void let_signals_kill(void)
{
	static const char *const options[] = {"ASAN_OPTIONS", "TSAN_OPTIONS"};

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		const char *now = getenv(options[i]);
		AUTO_FREE char *with =
			xprintf("%s:handle_segv=0:handle_sigbus=0:handle_abort=0", now ? now : "");

		assert_int_equal(setenv(options[i], with, 1), 0);
	}
}

/* Signals for what a process did itself are not blamed on anybody else. */
static void test_ends_by_itself(void **state)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGABRT};
	const struct device_request r = request_of(1, 0);

	(void)state;
	let_signals_kill();
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		struct device_set *s = open_worker(&r);
		char says[64];

		assert_int_equal(kill(only_child(), faults[i]), 0);
		assert_int_equal(s->ops->free(s, &(struct memory){0}), -ESRCH);
		snprintf(says, sizeof(says), "(device 0) was killed by signal %d (", faults[i]);
		assert_non_null(strstr(err_msg(), says));
		assert_null(strstr(err_msg(), "outside"));
		device_close(s);
	}
}

/* A signal that has no words of its own, and is no reason to have none. */
static void test_ended_by_real_time_signal(void **state)
{
	struct device_set *s = open_two();

	(void)state;
	assert_int_equal(kill(only_child(), SIGRTMIN), 0);
	assert_int_equal(worker_kill(s, LONG_US), 0);
	assert_int_equal(s->ops->free(s, &(struct memory){0}), -ESRCH);
	assert_non_null(strstr(err_msg(), "(Real-time signal 0)"));
	device_close(s);
}

/* The transfer never ends: the worker says so in time, and can be killed. */
static void test_transfer_hangs(void **state)
{
	struct device_request r = request_of(2, 0);
	struct device_set *s;
	struct memory m, other;
	struct stream t;
	pid_t pid;

	(void)state;
	r.host.fault = (struct fault){FAULT_HANG, -1, -1};
	s = open_worker(&r);
	pid = only_child();
	m = must_alloc(s, 0, MEMORY_DEVICE, BYTES);
	other = must_alloc(s, 1, MEMORY_DEVICE, BYTES);
	t = must_stream(s, 0);
	assert_int_equal(s->ops->peer_access(s, 0, 1, true), 0);
	assert_int_equal(s->ops->copy(s, t, &other, 0, &m, 0, BYTES), 0);
	assert_int_equal(s->ops->wait(s, t, SHORT_US), -ETIMEDOUT);
	assert_int_equal(worker_kill(s, LONG_US), 0);
	assert_false(is_child(pid));
	assert_int_equal(s->ops->wait(s, t, SHORT_US), -ESRCH);
	device_close(s);
}

/* Stands for a worker whose driver does not come back from being opened. */
static void start_silent(char *path, size_t size, struct device_set **ret)
{
	static const char text[] = "#!/bin/sh\nexec sleep 1000\n";
	const struct device_request r = request_of(2, 0);
	int fd;

	snprintf(path, size, "/tmp/onehop-silent-XXXXXX");
	fd = mkstemp(path);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, 0700), 0);
	close(fd);
	assert_int_equal(worker_open_start(path, &r, ret), 0);
}

static void test_worker_hangs(void **state)
{
	struct device_set *s;
	char path[64], says[64];
	pid_t pid;

	(void)state;
	start_silent(path, sizeof(path), &s);
	pid = only_child();
	assert_int_equal(worker_open_finish(s, -1, SHORT_US), -ETIMEDOUT);
	snprintf(says, sizeof(says), "open: no answer from worker %d (devices 0 1)", (int)pid);
	assert_non_null(strstr(err_msg(), says));
	assert_int_equal(s->ops->free(s, &(struct memory){0}), -ETIMEDOUT);
	assert_non_null(strstr(err_msg(), "in an earlier call: open"));
	assert_int_equal(worker_kill(s, LONG_US), 0);
	assert_false(is_child(pid));
	assert_int_equal(s->ops->free(s, &(struct memory){0}), -ESRCH);
	device_close(s);
	remove(path);
}

/* Ctrl-C while the driver hangs: nothing is read, so that others who look see it too. */
static void test_stopped_while_opening(void **state)
{
	struct device_set *s;
	int ends[2];
	char path[64], byte;
	pid_t pid;

	(void)state;
	start_silent(path, sizeof(path), &s);
	pid = only_child();
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(worker_open_finish(s, ends[0], LONG_US), -EINTR);
	assert_string_equal(err_msg(), "stopped while opening devices 0 1");
	assert_int_equal(read(ends[0], &byte, 1), 1);
	device_close(s); /* kills it */
	assert_false(is_child(pid));
	close(ends[0]);
	close(ends[1]);
	remove(path);
}

/*
 * Nor can one that takes nothing any more hold the parent up in a call that has no answer. A worker
 * that is stopped stands for it.
 */
static void test_worker_takes_nothing(void **state)
{
	struct device_set *s = open_two();
	struct memory m = must_alloc(s, 0, MEMORY_DEVICE, BYTES);
	pid_t pid = only_child();
	int r = 0, calls = 0;

	(void)state;
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	for (; r == 0 && calls < 1000000; calls++)
		r = s->ops->copy(s, (struct stream){0}, &m, 0, &m, 0, 1);
	assert_int_equal(r, -ETIMEDOUT);
	assert_true(calls > 1);
	device_close(s); /* kills it */
	assert_false(is_child(pid));
}

/* ---- the parent dies ---- */

/* In a process of its own, which never returns: says which worker it has, and waits in it. */
static void be_parent(int out, bool waits)
{
	struct device_request r = request_of(2, 0);
	struct device_set *s = NULL;
	struct memory m = {0}, other = {0};
	struct stream t = {0};
	pid_t pid;

	r.host.fault = (struct fault){FAULT_HANG, -1, -1};
	if (worker_open(getenv("ONEHOP"), &r, -1, &s) < 0)
		_exit(1);
	s->ops->alloc(s, 0, MEMORY_DEVICE, BYTES, &m);
	s->ops->alloc(s, 1, MEMORY_DEVICE, BYTES, &other);
	s->ops->stream_new(s, 0, &t);
	s->ops->peer_access(s, 0, 1, true);
	s->ops->copy(s, t, &other, 0, &m, 0, BYTES);
	pid = only_child();
	if (write(out, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	if (waits)
		s->ops->wait(s, t, UINT64_MAX);
	else
		pause();
	_exit(1);
}

/*
 * How a worker ended whose parent was killed, pause_ms after it said what it does next; this
 * process inherits it.
 */
static int end_of_orphan(bool waits, useconds_t pause_ms)
{
	int ends[2], status;
	pid_t parent, worker = 0;

	assert_int_equal(pipe(ends), 0);
	parent = fork();
	if (parent == 0)
		be_parent(ends[1], waits);
	assert_int_equal(read(ends[0], &worker, sizeof(worker)), sizeof(worker));
	usleep(1000 * pause_ms);
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(waitpid(parent, &status, 0), parent);
	assert_int_equal(waitpid(worker, &status, 0), worker);
	close(ends[0]);
	close(ends[1]);
	return status;
}

static void test_parent_dies(void **state)
{
	useconds_t pause_ms = 1;
	int status;

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	/* Idle: it ends by itself. */
	status = end_of_orphan(false, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/*
	 * In the midst of a call that does not end: by force. Killed too early, the parent never
	 * called.
	 */
	do {
		status = end_of_orphan(true, pause_ms);
		pause_ms *= 4;
	} while (WIFEXITED(status) && pause_ms < 10000);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

/* A worker outlives the thread that started it. */
static void *open_in_thread(void *context)
{
	return (void)context, open_two();
}

static void test_thread_ends(void **state)
{
	pthread_t thread;
	void *set = NULL;
	struct device_set *s;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, open_in_thread, NULL), 0);
	pthread_join(thread, &set);
	s = set;
	must_alloc(s, 0, MEMORY_DEVICE, BYTES);
	device_close(s);
}

/* ---- start and end ---- */

static void test_side_by_side(void **state)
{
	struct device_set *sets[3];
	size_t fds = count_fds();

	(void)state;
	for (int i = 0; i < 3; i++) {
		const struct device_request r = request_of(1, i);

		assert_int_equal(worker_open_start(getenv("ONEHOP"), &r, &sets[i]), 0);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(worker_open_finish(sets[i], -1, LONG_US), 0);
		assert_int_equal(sets[i]->n, 1);
		assert_int_equal(sets[i]->info[0].number, i);
		assert_string_equal(sets[i]->ops->name, "worker");
	}
	for (int i = 0; i < 3; i++)
		device_close(sets[i]);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(count_fds(), fds);
}

static void test_cannot_start(void **state)
{
	struct device_request r = request_of(1, 0);
	struct device_set *s = NULL;
	size_t fds = count_fds();

	(void)state;
	assert_int_equal(worker_open("/nonexistent/onehop", &r, -1, &s), -ENOENT);
	assert_int_equal(worker_open("/bin/false", &r, -1, &s), -ESRCH);
	assert_non_null(strstr(err_msg(), "exit status 1"));
	/* What the devices say comes over: more than a device can have. */
	r.host.memory_bytes = UINT64_MAX / 4;
	assert_int_equal(worker_open(getenv("ONEHOP"), &r, -1, &s), device_open(&r, &s));
	assert_int_equal(worker_open(getenv("ONEHOP"), &r, -1, &s), -EINVAL);
	assert_non_null(strstr(err_msg(), "a simulated device can have at most"));
	r.n = DEVICE_MAX + 1;
	assert_int_equal(worker_open(getenv("ONEHOP"), &r, -1, &s), -EINVAL);
	assert_null(s);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_out_of_memory(void **state)
{
	struct device_set *s = open_two();
	struct memory all = must_alloc(s, 0, MEMORY_DEVICE, MEMORY), more;

	(void)state;
	assert_int_equal(s->ops->alloc(s, 0, MEMORY_DEVICE, 8, &more), -ENOMEM);
	assert_non_null(strstr(err_msg(), "no memory left"));
	assert_int_equal(s->ops->free(s, &all), 0);
	must_alloc(s, 0, MEMORY_DEVICE, 8);
	device_close(s);
}

/* ---- what is no call ---- */

static int serve_bytes(const void *bytes, size_t n)
{
	int ends[2], r;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(send(ends[0], bytes, n, 0), n);
	shutdown(ends[0], SHUT_WR);
	r = worker_serve_calls(ends[1], NULL);
	close(ends[0]);
	close(ends[1]);
	return r;
}

static void test_malformed_calls(void **state)
{
	struct {
		struct worker_call call;
		char more[16];
	} c = {.call = {.op = WORKER_alloc}};

	(void)state;
	assert_int_equal(serve_bytes(&c, sizeof(c.call)), 0); /* answered: nothing is open */
	assert_int_equal(serve_bytes(&c, sizeof(c.call) - 1), -EPROTO);
	assert_int_equal(serve_bytes(&c, sizeof(c)), -EPROTO);
	c.call.payload = sizeof(c.more);
	assert_int_equal(serve_bytes(&c, sizeof(c)), -EPROTO); /* alloc has none */
	c.call.op = WORKER_OP_N;
	c.call.payload = 0;
	assert_int_equal(serve_bytes(&c, sizeof(c.call)), -EPROTO);
	assert_int_equal(worker_serve(STDIN_FILENO), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_local),
		cmocka_unit_test(test_not_across_processes),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_export_and_import),
		cmocka_unit_test(test_exports_leave_nothing),
		cmocka_unit_test(test_late_errors),
		cmocka_unit_test(test_killed_from_outside),
		cmocka_unit_test(test_ends_by_itself),
		cmocka_unit_test(test_ended_by_real_time_signal),
		cmocka_unit_test(test_transfer_hangs),
		cmocka_unit_test(test_worker_hangs),
		cmocka_unit_test(test_stopped_while_opening),
		cmocka_unit_test(test_worker_takes_nothing),
		cmocka_unit_test(test_parent_dies),
		cmocka_unit_test(test_thread_ends),
		cmocka_unit_test(test_side_by_side),
		cmocka_unit_test(test_cannot_start),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_malformed_calls),
	};

	if (!getenv("ONEHOP")) { /* or each worker would be this test again */
		fprintf(stderr, "ONEHOP names the program that is started as worker\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
