/* SPDX-License-Identifier: Apache-2.0 */
#include "run_command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "check_text.h"
#include "cli/command.h"

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int redirect_stream(FILE *stream, const char *path)
{
	int saved, fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

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

static int run_words(char *words)
{
	char program[] = "onehop", *argv[32] = {program}, *word;
	int argc = 1;

	while ((word = strsep(&words, " ")) && argc < 31)
		if (*word)
			argv[argc++] = word;
	return cli_main(argc, argv);
}

struct result run_command(const char *line)
{
	char folder[] = "/tmp/onehop-test-XXXXXX";
	AUTO_FREE char *copy = xstrdup(line), *out = NULL, *err = NULL;
	int saved_out, saved_err;
	struct result r;

	assert_non_null(mkdtemp(folder));
	out = xprintf("%s/out", folder);
	err = xprintf("%s/err", folder);
	saved_out = redirect_stream(stdout, out);
	saved_err = redirect_stream(stderr, err);
	r.code = run_words(copy);
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
