/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the journal; journal_read.c reads it. */
#include "session/journal.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/state.h"
#include "base/strbuf.h"
#include "bench/pattern.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Of 50 ms each. */
#define LOCK_TRIES 20

/* ---- files ---- */

/* Runs with simulated devices never touch the journal of real GPUs. */
int test_state_path(const struct test_identity *i, bool make, const char *end, char **ret)
{
	AUTO_FREE char *folder = NULL;
	int r = 0;

	if (make)
		r = state_folder_make(&folder);
	else
		folder = state_folder();
	if (r >= 0 && !folder)
		r = state_missing();
	if (r >= 0)
		*ret = xprintf("%s/test-run%s%s", folder, strcmp(i->device, "host") ? "" : "-host",
			       end);
	return r;
}

/* A worker that a killed run was just starting holds the lock until it is another program. */
static int lock_soon(int fd)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	int r = file_lock(fd);

	for (int i = 0; r == -EBUSY && i < LOCK_TRIES; i++) {
		nanosleep(&pause, NULL);
		r = file_lock(fd);
	}
	return r;
}

int test_journal_lock(const struct test_identity *i, int *ret_fd)
{
	AUTO_FREE char *path = NULL;
	AUTO_CLOSE int fd = -1;
	int r = test_state_path(i, true, ".lock", &path);

	if (r < 0)
		return r;
	r = fd = state_open_regular(path, O_RDWR | O_CREAT);
	if (r < 0)
		return r;
	r = lock_soon(fd);
	if (r == -EBUSY)
		return err_set(EBUSY, "another onehop test is running: it holds %s", path);
	if (r < 0)
		return err_sys(-r, "lock %s", path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* ---- lines ---- */

/* One line, on disk when this returns, or not at all: a part of one would damage what follows. */
static int put_text(struct test_journal *j, const char *text)
{
	off_t end = lseek(j->fd, 0, SEEK_END);
	size_t n = strlen(text);
	ssize_t written = write(j->fd, text, n);
	int e = written < 0 ? errno : written != (ssize_t)n ? ENOSPC : 0;

	if (!e && fdatasync(j->fd) < 0)
		e = errno;
	if (!e)
		return 0;
	if (end >= 0 && ftruncate(j->fd, end) < 0)
		e = errno; /* the reader notices the part */
	j->failed = true;
	return state_refuse(e, "write", j->path);
}

static int put_line(struct test_journal *j, json_t *line)
{
	AUTO_FREE char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	AUTO_FREE char *whole = text ? xprintf("%s\n", text) : NULL;

	json_decref(line);
	if (!whole)
		return err_set(EINVAL, "a line of %s cannot be written as JSON", j->path);
	return put_text(j, whole);
}

static json_t *start_line(const struct test_identity *i, const char *event)
{
	json_t *names = json_array(), *options = json_array();
	char date[DATE_SIZE];

	date_now(date);
	for (size_t k = 0; k < i->n; k++)
		json_array_append_new(names, json_string(i->names[k]));
	for (size_t k = 0; k < i->option_n; k++)
		json_array_append_new(options, json_string(i->options[k]));
	return json_pack("{s:s, s:i, s:s, s:o, s:b, s:s, s:s, s:s, s:o}", "event", event, "version",
			 TEST_JOURNAL_VERSION, "device", i->device, "options", options,
			 "include_suspects", (int)i->include_suspects, "driver_version", i->driver,
			 "boot_id", i->boot_id, "date", date, "devices", names);
}

static json_t *suspect_line(const struct test_mark *m)
{
	json_t *o = json_pack("{s:s, s:s, s:s}", "event", "suspect", "phase",
			      test_phase_word(m->phase), "date", m->date);

	if (*m->initiator) {
		json_object_set_new(o, "initiator", json_string(m->initiator));
		json_object_set_new(o, "target", json_string(m->target));
	}
	return o;
}

static json_t *step_line(const struct test_journal *j, const char *event,
			 const struct test_step *step)
{
	json_t *o = json_pack("{s:s, s:s}", "event", event, "phase", test_phase_word(step->phase));

	if (step->initiator >= 0) {
		json_object_set_new(o, "initiator",
				    json_string(j->identity->names[step->initiator]));
		json_object_set_new(o, "target", json_string(j->identity->names[step->target]));
	}
	return o;
}

int test_journal_begins(struct test_journal *j, const struct test_step *step)
{
	return put_line(j, step_line(j, "begin", step));
}

static json_t *patterns_json(const struct pair_result *p)
{
	json_t *done = json_array();

	for (int k = PATTERN_NONE + 1; k < PATTERN_N; k++)
		if (p->patterns[k].done)
			json_array_append_new(done, json_string(pattern_rows[k].name));
	return done;
}

/* A line that cannot be written only means that the pair counts as not tested. */
void test_journal_ended(struct test_journal *j, const struct test_step *step)
{
	json_t *o = step_line(j, "end", step);
	const struct pair_result *p = step->result;

	if (p) {
		json_object_set_new(o, "state", json_string(pair_state_word(p->state)));
		json_object_set_new(o, "kind", json_string(wrong_word(p->kind)));
		json_object_set_new(o, "sentence", json_string(p->sentence));
		json_object_set_new(o, "gbps", json_real(p->copy_gbps));
		json_object_set_new(o, "round_trips", json_integer((json_int_t)p->round_trip.n));
		json_object_set_new(o, "median_ns", json_real(p->round_trip.median_ns));
		json_object_set_new(o, "p99_ns", json_real(p->round_trip.p99_ns));
		json_object_set_new(o, "max_ns", json_real(p->round_trip.max_ns));
		json_object_set_new(o, "pattern", json_string(pattern_rows[p->pattern].name));
		json_object_set_new(o, "patterns", patterns_json(p));
	}
	put_line(j, o);
}

/* ---- beginning and end ---- */

static void release(struct test_journal *j)
{
	if (j->fd >= 0)
		close(j->fd);
	free(j->path);
	*j = TEST_JOURNAL_NONE;
}

void test_journal_close(struct test_journal *j, bool complete)
{
	if (complete && !j->failed && j->fd >= 0)
		put_line(j, json_pack("{s:s}", "event", "done"));
	release(j);
}

/*
 * A pipe, a link or a folder in the place of the journal is the user's mistake: it is not replaced.
 */
static int check_place(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return state_not_regular(path);
	return 0;
}

/*
 * A second name, so that a power cut leaves the journal under the first or under both. FAT has no
 * second names.
 */
static int keep(const char *path, const char *kept)
{
	if (unlink(kept) < 0 && errno != ENOENT)
		return state_refuse(errno, "replace", kept);
	if (link(path, kept) == 0 || errno == ENOENT || rename(path, kept) == 0)
		return 0;
	return state_refuse(errno, "write", kept);
}

/* What was begun must be found after a power cut: the name too has to be on disk. */
static int sync_folder(const char *path)
{
	AUTO_FREE char *folder = xstrndup(path, (size_t)(strrchr(path, '/') - path));
	AUTO_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL)) /* EINVAL: the file system has none */
		return state_refuse(errno, "write", folder);
	return 0;
}

static int write_head(struct test_journal *j, const struct test_past *past)
{
	int r = put_line(j, start_line(j->identity, "start"));

	for (size_t k = 0; r == 0 && k < past->suspect_n; k++)
		r = put_line(j, suspect_line(&past->suspects[k]));
	return r;
}

int test_journal_start(const struct test_identity *i, const struct test_past *past,
		       struct test_journal *ret, char **ret_kept)
{
	struct test_journal j = {.fd = -1, .identity = i};
	AUTO_FREE char *kept = NULL, *fresh = NULL;
	bool keeps;
	int r = test_state_path(i, true, ".jsonl", &j.path);

	if (r >= 0)
		r = test_state_path(i, true, ".previous.jsonl", &kept);
	if (r >= 0)
		r = check_place(j.path);
	if (r < 0) {
		release(&j);
		return r;
	}
	keeps = !past->complete && access(j.path, F_OK) == 0;
	fresh = xprintf("%s.new", j.path);
	unlink(fresh);
	r = j.fd = state_open_regular(fresh, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
	if (r >= 0)
		r = write_head(&j, past);
	if (r == 0 && keeps)
		r = keep(j.path, kept);
	if (r == 0 && rename(fresh, j.path) < 0)
		r = state_refuse(errno, "write", j.path);
	if (r == 0)
		r = sync_folder(j.path);
	if (r < 0) {
		unlink(fresh);
		release(&j);
		return r;
	}
	*ret = j;
	*ret_kept = keeps ? TAKE_PTR(kept) : NULL;
	return 0;
}

/* The line that a power cut left incomplete must not run into the next one. */
static int end_torn_line(struct test_journal *j)
{
	char last = '\n';
	off_t end = lseek(j->fd, 0, SEEK_END);

	if (end > 0 && pread(j->fd, &last, 1, end - 1) < 0)
		return state_refuse(errno, "read", j->path);
	return last == '\n' ? 0 : put_text(j, "\n");
}

int test_journal_resume(const struct test_identity *i, struct test_journal *ret)
{
	struct test_journal j = {.fd = -1, .identity = i};
	int r = test_state_path(i, false, ".jsonl", &j.path);

	if (r == 0)
		r = j.fd = state_open_regular(j.path, O_RDWR | O_APPEND);
	if (r >= 0)
		r = end_torn_line(&j);
	if (r == 0)
		r = put_line(&j, start_line(i, "resume"));
	if (r < 0)
		release(&j);
	else
		*ret = j;
	return r;
}
