/* SPDX-License-Identifier: Apache-2.0 */
/* A confined thread can look and start threads; it cannot start programs or change files. */
#include "base/confine.h"
#include "base/parallel.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct tried {
	int looked, made, removed, wrote, linked, forked, ran;
	atomic_size_t threads;
};

static int error_of(long r)
{
	return r < 0 ? errno : 0;
}

static void count(void *context, size_t i)
{
	struct tried *t = context;

	(void)i;
	atomic_fetch_add(&t->threads, 1);
}

static void try_everything(void *context)
{
	struct tried *t = context;
	pid_t child;

	t->looked = error_of(open("/proc/version", O_RDONLY | O_CLOEXEC));
	t->made = error_of(open("/tmp/onehop-confined", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	t->removed = error_of(unlink("/tmp/onehop-not-there"));
	t->wrote = error_of(open("/dev/null", O_WRONLY | O_CLOEXEC));
	t->linked = error_of(symlink("/proc", "/tmp/onehop-confined"));
	child = fork();
	t->forked = error_of(child);
	if (child == 0)
		_exit(0);
	t->ran = error_of(execl("/bin/true", "true", (char *)NULL));
	parallel_for(8, 4, count, t);
}

static void only_looking_is_left(void **state)
{
	struct tried t = {0};
	int fd;

	(void)state;
	confine_call(try_everything, &t);
	assert_int_equal(t.looked, 0);
	assert_int_equal(t.threads, 8);
	assert_int_equal(t.made, EPERM);
	assert_int_equal(t.removed, EPERM);
	assert_int_equal(t.wrote, EPERM);
	assert_int_equal(t.linked, EPERM);
	assert_int_equal(t.forked, EPERM);
	assert_int_equal(t.ran, EPERM);
	/* This thread is as free as before. */
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
}

static void jobs_run_once_each(void **state)
{
	struct tried t = {0};

	(void)state;
	parallel_for(1000, 16, count, &t);
	assert_int_equal(t.threads, 1000);
	parallel_for(0, 16, count, &t);
	assert_int_equal(t.threads, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_looking_is_left),
		cmocka_unit_test(jobs_run_once_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
