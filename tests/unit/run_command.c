/* SPDX-License-Identifier: Apache-2.0 */
#include "run_command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "check_text.h"
#include "cli/command.h"

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int redirect_stream(FILE *stream, const char *path)
{
	int saved, fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);

	assert_true(fd >= 0);
	fflush(stream);
	saved = fcntl(fileno(stream), F_DUPFD_CLOEXEC, 10);
	dup2(fd, fileno(stream));
	close(fd);
	return saved;
}

void restore_stream(FILE *stream, int saved)
{
	fflush(stream);
	dup2(saved, fileno(stream));
	close(saved);
}

void on_terminal(FILE *stream, void (*show)(void *context), void *context, char *buf, size_t size)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), saved;
	size_t at = 0;
	ssize_t n;

	assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	saved = redirect_stream(stream, ptsname(master));
	show(context);
	restore_stream(stream, saved);
	/* Until EIO: nobody writes any more. */
	while (at < size - 1 && (n = read(master, buf + at, size - 1 - at)) > 0)
		at += (size_t)n;
	buf[at] = '\0';
	close(master);
}

int run_line(const char *line)
{
	AUTO_FREE char *copy = xstrdup(line);
	char program[] = "onehop", *argv[32] = {program}, *words = copy, *word;
	int argc = 1;

	while ((word = strsep(&words, " ")) && argc < 31)
		if (*word)
			argv[argc++] = word;
	return cli_main(argc, argv);
}

struct result run_command(const char *line)
{
	char folder[] = "/tmp/onehop-test-XXXXXX";
	AUTO_FREE char *out = NULL, *err = NULL;
	int saved_out, saved_err;
	struct result r;

	assert_non_null(mkdtemp(folder));
	out = xprintf("%s/out", folder);
	err = xprintf("%s/err", folder);
	saved_out = redirect_stream(stdout, out);
	saved_err = redirect_stream(stderr, err);
	r.code = run_line(line);
	restore_stream(stdout, saved_out);
	restore_stream(stderr, saved_err);
	r.out = file_text(out);
	r.err = file_text(err);
	unlink(out);
	unlink(err);
	rmdir(folder);
	return r;
}

void result_done(struct result *r)
{
	free(r->out);
	free(r->err);
}
