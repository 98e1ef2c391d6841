/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources that are fetched: from servers and over networks that are as they should be, and from
 * others.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "fix/host.h"
#include "made_tree.h"
#include "skip.h"
#include "unlock/download.h"
#include "unlock/known_sources.h"
#include "unlock/source_hash.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RELEASE "535.99.01"

/* ---- a list of releases in place of the program's ---- */

static char own_hash[SHA256_TEXT];
static const struct known_source own = {RELEASE, own_hash};

const struct known_source *known_source_table(size_t *ret_n)
{
	*ret_n = 1;
	return &own;
}

const struct known_source *known_source_find(const char *release)
{
	return strcmp(release, RELEASE) == 0 ? &own : NULL;
}

/* ---- a system, a release, a server ---- */

struct rig {
	char dir[64];
	char *root, *tree, *part;
	struct fix_host host;
	struct arena *arena;
	int port, to_server;
	pid_t server;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

/* Random bytes, so that it is as large packed: several times what a connection is cut off after. */
static void put_release(const struct rig *r)
{
	char big[12001];
	unsigned x = 1;

	for (size_t i = 0; i < sizeof(big) - 1; i++) {
		x = x * 1103515245 + 12345;
		big[i] = (char)(x >> 16 & 0x7f ? x >> 16 & 0x7f : '\n');
	}
	made_put(r->tree, "version.mk", "NVIDIA_VERSION = " RELEASE "\n", 27);
	made_put(r->tree, "src/nvidia/big.c", big, sizeof(big) - 1);
	made_put(r->tree, "kernel-open/empty.h", "", 0);
}

static void start_server(struct rig *r)
{
	char *const argv[] = {(char *)"release_server", r->tree, (char *)RELEASE, NULL};
	posix_spawn_file_actions_t files;
	int in[2], out[2];
	char line[16] = "";
	ssize_t n;

	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
	assert_int_equal(posix_spawn(&r->server, "tests/unit/release_server", &files, NULL, argv,
				     environ),
			 0);
	posix_spawn_file_actions_destroy(&files);
	close(in[0]);
	close(out[1]);
	n = read(out[0], line, sizeof(line) - 1);
	close(out[0]);
	assert_true(n > 0);
	r->port = atoi(line); /* NOLINT: a test */
	r->to_server = in[1];
}

static int make_rig(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	struct tree t;

	snprintf(r->dir, sizeof(r->dir), "%s/onehop-download-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(r->dir));
	r->root = xprintf("%s/root", r->dir);
	r->tree = xprintf("%s/release", r->dir);
	r->part = xprintf("%s/" SOURCES_FOLDER "/" RELEASE ".part", r->root);
	r->arena = arena_new();
	assert_int_equal(mkdir(r->root, 0755), 0);
	put_release(r);
	assert_int_equal(tree_open(r->tree, &t), 0);
	assert_int_equal(source_hash(&t, own_hash), 0);
	tree_close(&t);
	assert_int_equal(fix_host_open(r->root, &r->host), 0);
	start_server(r);
	*state = r;
	return 0;
}

static int remove_rig(void **state)
{
	struct rig *r = *state;

	unsetenv("http_proxy");
	unsetenv("no_proxy");
	close(r->to_server);
	waitpid(r->server, NULL, 0);
	fix_host_close(&r->host);
	nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	arena_free(r->arena);
	free(r->root);
	free(r->tree);
	free(r->part);
	free(r);
	return 0;
}

/* ---- fetching ---- */

static const struct download_watch nobody = {0};

static struct download *download_by(struct rig *r, const char *program, const char *way)
{
	AUTO_FREE char *url = xprintf("http://127.0.0.1:%d/%s", r->port, way);
	AUTO_FREE char *folder = xprintf("%s/" SOURCES_FOLDER "/" RELEASE, r->root);

	return download_of(RELEASE, program, url, folder, r->arena);
}

static int fetch_by(struct rig *r, const char *program, const char *way)
{
	return download_fetch(&r->host, download_by(r, program, way), &nobody);
}

static bool is_here(const char *program)
{
	AUTO_FREE char *path = host_program(program);

	return path != NULL;
}

#define SKIP_WITHOUT(program)                                                                      \
	do {                                                                                       \
		if (!is_here(program))                                                             \
			SKIP(program " is not installed");                                         \
	} while (0)

/* "GET cut bytes=3000-\n..." */
static char *requests(const struct rig *r)
{
	AUTO_FREE char *path = xprintf("%s/requests", r->dir);
	FILE *f = fopen(path, "re");
	char *text = xcalloc(1, 1 << 16);

	if (f) {
		assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
		fclose(f);
	}
	return text;
}

static void expect_request(const struct rig *r, const char *line, bool there)
{
	AUTO_FREE char *all = requests(r);

	if (!strstr(all, line) == there)
		fail_msg("'%s' %s:\n%s", line, there ? "lacks" : "should not be", all);
}

/* The tree is the release, and nothing else is left in the folder. */
static void expect_release(const struct rig *r)
{
	AUTO_FREE char *folder = xprintf("%s/" SOURCES_FOLDER "/" RELEASE, r->root);
	AUTO_FREE char *lock = xprintf("%s/" SOURCES_FOLDER "/.lock", r->root);
	char hash[SHA256_TEXT];
	struct stat st;
	struct tree t;

	assert_int_equal(tree_open(folder, &t), 0);
	assert_int_equal(source_hash(&t, hash), 0);
	assert_string_equal(hash, own_hash);
	assert_int_equal(fstat(t.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	tree_close(&t);
	assert_int_equal(access(r->part, F_OK), -1);
	assert_int_equal(access(lock, F_OK), -1);
}

/* Neither a folder nor a lock is left. */
static void expect_nothing(const struct rig *r)
{
	AUTO_FREE char *folder = xprintf("%s/" CACHE_FOLDER, r->root);

	assert_int_equal(access(folder, F_OK), -1);
}

/* Nothing is there that a later run would take for a tree. */
static void expect_no_release(const struct rig *r)
{
	AUTO_FREE char *folder = xprintf("%s/" SOURCES_FOLDER "/" RELEASE, r->root);

	assert_int_equal(access(folder, F_OK), -1);
}

static void expect_refused(struct rig *r, const char *program, const char *way, const char *why)
{
	int e = fetch_by(r, program, way);

	if (e != -EINVAL || !strstr(err_msg(), why))
		fail_msg("%s, %s: %d, '%s' lacks '%s'", program, way, e, err_msg(), why);
	assert_non_null(strstr(err_msg(), "it was removed"));
	expect_nothing(r);
}

static const char *const getters[] = {"curl", "wget"};

#define GETTERS (sizeof(getters) / sizeof(getters[0]))

static void each_program_fetches_a_release(void **state)
{
	struct rig *r = *state;
	static const char *const ways[] = {"whole", "redirect", "slow"};

	for (size_t i = 0; i < GETTERS; i++) {
		for (size_t k = 0; k < 3 && is_here(getters[i]); k++) {
			AUTO_FREE char *tree = xprintf("%s/" SOURCES_FOLDER "/" RELEASE, r->root);

			if (fetch_by(r, getters[i], ways[k]) < 0)
				fail_msg("%s, %s: %s", getters[i], ways[k], err_msg());
			expect_release(r);
			nftw(tree, remove_one, 16, FTW_DEPTH | FTW_PHYS);
		}
	}
}

static void what_is_there_is_not_fetched_again(void **state)
{
	struct rig *r = *state;

	SKIP_WITHOUT("curl");
	assert_int_equal(fetch_by(r, "curl", "whole"), 0);
	assert_int_equal(fetch_by(r, "curl", "missing"), 0);
	expect_request(r, "missing", false);
	expect_release(r);
}

/* A connection that ends every 3000 bytes: each next one asks for the rest. */
static void cut_off_is_gone_on_with(void **state)
{
	struct rig *r = *state;

	for (size_t i = 0; i < GETTERS; i++) {
		AUTO_FREE char *tree = xprintf("%s/" SOURCES_FOLDER "/" RELEASE, r->root);
		AUTO_FREE char *log = xprintf("%s/requests", r->dir);

		if (!is_here(getters[i]))
			continue;
		remove(log);
		if (fetch_by(r, getters[i], "cut") < 0)
			fail_msg("%s: %s", getters[i], err_msg());
		expect_release(r);
		expect_request(r, "GET cut -\n", true);
		expect_request(r, "GET cut bytes=3000-\n", true);
		expect_request(r, "GET cut bytes=9000-\n", true);
		nftw(tree, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	}
}

/* A server that cannot go on: from the start again. */
static void without_ranges_it_starts_again(void **state)
{
	struct rig *r = *state;

	SKIP_WITHOUT("curl");
	assert_int_equal(fetch_by(r, "curl", "once"), 0);
	expect_request(r, "GET once bytes=3000-\n", true);
	expect_release(r);
}

static void without_ranges_wget_starts_again(void **state)
{
	struct rig *r = *state;

	SKIP_WITHOUT("wget");
	assert_int_equal(fetch_by(r, "wget", "once"), 0);
	expect_release(r);
}

/* What another run, or another server, left may not be the beginning of this archive. */
static void a_wrong_beginning_is_dropped(void **state)
{
	struct rig *r = *state;

	SKIP_WITHOUT("curl");
	made_put(r->part, "archive", "not the beginning", 17);
	made_put(r->part, "tree/left.c", "", 0);
	assert_int_equal(chmod(r->part, 0700), 0);
	assert_int_equal(fetch_by(r, "curl", "whole"), 0);
	expect_request(r, "GET whole bytes=17-\n", true);
	expect_request(r, "GET whole -\n", true);
	expect_release(r);
}

static void what_is_not_the_release_is_refused(void **state)
{
	struct rig *r = *state;
	static const struct {
		const char *way, *why;
	} rows[] = {
		{"other", "is not release " RELEASE " as NVIDIA published it"},
		{"changed", "is not release " RELEASE " as NVIDIA published it"},
		{"added", "is not release " RELEASE " as NVIDIA published it"},
		{"outside", "is not the path of a file in a release"},
		{"garbage", "is not a whole archive"},
		{"half", "is not a whole archive"},
	};

	for (size_t i = 0; i < GETTERS; i++)
		for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]) && is_here(getters[i]); k++)
			expect_refused(r, getters[i], rows[k].way, rows[k].why);
}

static void no_tag_and_no_server(void **state)
{
	struct rig *r = *state;
	static const struct {
		const char *program, *fetched, *asked;
	} rows[] = {{"curl", "404", "404"}, {"wget", "404", "Remote file does not exist"}};

	for (size_t i = 0; i < 2; i++) {
		struct download *d = download_by(r, rows[i].program, "missing");

		if (!is_here(rows[i].program))
			continue;
		assert_int_equal(fetch_by(r, rows[i].program, "missing"), -EIO);
		assert_non_null(strstr(err_msg(), rows[i].fetched));
		assert_int_equal(download_ask(d, &nobody), -EIO);
		if (!strstr(err_msg(), rows[i].asked))
			fail_msg("'%s' lacks '%s'", err_msg(), rows[i].asked);
		d->url = "http://127.0.0.1:1/nobody";
		assert_int_equal(download_ask(d, &nobody), -EIO);
		assert_int_equal(download_fetch(&r->host, d, &(struct download_watch){0}), -EIO);
		expect_nothing(r);
	}
}

static void the_server_is_asked_for_the_size(void **state)
{
	struct rig *r = *state;

	for (size_t i = 0; i < GETTERS; i++) {
		struct download *d = download_by(r, getters[i], "redirect");
		struct download *silent = download_by(r, getters[i], "slow");

		if (!is_here(getters[i]))
			continue;
		assert_int_equal(download_ask(d, &nobody), 0);
		assert_true(d->bytes > 9000 && d->bytes < 13000); /* 7 bits of 8 of 12000 */
		assert_int_equal(download_ask(silent, &nobody), 0);
		assert_int_equal(silent->bytes, 0);
	}
	expect_request(r, "GET", false);
}

/* A size that no release has is refused, and not repeated. */
static void a_made_up_size_is_refused(void **state)
{
	struct rig *r = *state;
	static const char *const ways[] = {"huge", "absurd"};

	for (size_t i = 0; i < GETTERS * 2; i++) {
		const char *program = getters[i / 2], *way = ways[i % 2];
		struct download *d = download_by(r, program, way);
		int e;

		if (!is_here(program))
			continue;
		e = download_ask(d, &nobody);
		if (e == 0 || d->bytes)
			fail_msg("%s, %s: %d, %jd bytes", program, way, e, (intmax_t)d->bytes);
		if (strstr(err_msg(), "5000") || strstr(err_msg(), "9999"))
			fail_msg("%s, %s: %s", program, way, err_msg());
		if (strcmp(way, "huge") == 0)
			assert_int_equal(e, -EFBIG);
	}
}

/*
 * Of curl, the reason stands in the middle of a header that is longer than what it writes at once.
 */
static void redirects_without_end_are_named(void **state)
{
	struct rig *r = *state;

	SKIP_WITHOUT("curl");
	assert_int_equal(download_ask(download_by(r, "curl", "loop"), &nobody), -EIO);
	if (!strstr(err_msg(), "curl failed with status 47: curl: (47) Maximum"))
		fail_msg("%s", err_msg());
	assert_null(strstr(err_msg(), "http"));
}

static void sizes_are_never_zero(void **state)
{
	static const struct {
		int64_t bytes;
		const char *text;
	} rows[] = {{312, "312 bytes"},
		    {99999, "99999 bytes"},
		    {100000, "0.1 MB"},
		    {14200000, "14.2 MB"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_STRBUF struct strbuf b = {0};

		download_add_size(rows[i].bytes, &b);
		assert_string_equal(strbuf_str(&b), rows[i].text);
	}
}

static bool stop(void *context, int64_t bytes)
{
	(void)context;
	(void)bytes;
	return false;
}

/* Whoever waits is heard while the server says nothing. */
static void a_silent_server_is_waited_for_aloud(void **state)
{
	struct rig *r = *state;
	const struct download_watch w = {.progress = stop};

	SKIP_WITHOUT("curl");
	assert_int_equal(download_ask(download_by(r, "curl", "silent"), &w), -ECANCELED);
}

/* ---- proxies ---- */

static void proxies_of_the_environment_are_used(void **state)
{
	struct rig *r = *state;
	AUTO_FREE char *proxy = xprintf("http://127.0.0.1:%d", r->port);

	for (size_t i = 0; i < GETTERS; i++) {
		AUTO_FREE char *tree = xprintf("%s/" SOURCES_FOLDER "/" RELEASE, r->root);
		struct download *d = download_by(r, getters[i], "whole");

		if (!is_here(getters[i]))
			continue;
		d->url = "http://release.invalid/whole";
		setenv("http_proxy", proxy, 1);
		if (download_fetch(&r->host, d, &(struct download_watch){0}) < 0)
			fail_msg("%s: %s", getters[i], err_msg());
		expect_release(r);
		nftw(tree, remove_one, 16, FTW_DEPTH | FTW_PHYS);
		setenv("http_proxy", "http://127.0.0.1:1", 1);
		assert_int_equal(fetch_by(r, getters[i], "whole"), -EIO);
		setenv("no_proxy", "127.0.0.1", 1);
		if (fetch_by(r, getters[i], "whole") < 0)
			fail_msg("%s: %s", getters[i], err_msg());
		nftw(tree, remove_one, 16, FTW_DEPTH | FTW_PHYS);
		unsetenv("http_proxy");
		unsetenv("no_proxy");
	}
}

/* ---- git ---- */

static void shell(const struct rig *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void shell(const struct rig *r, const char *format, ...)
{
	AUTO_STRBUF struct strbuf b = {0};
	char *argv[] = {(char *)"sh", (char *)"-ec", NULL, NULL};
	int status;
	pid_t pid;
	va_list ap;

	strbuf_printf(&b, "cd %s\n", r->dir);
	va_start(ap, format);
	strbuf_vprintf(&b, format, ap);
	va_end(ap);
	argv[2] = b.text;
	assert_int_equal(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void make_repository(const struct rig *r)
{
	shell(r, "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b\n"
		 "export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n"
		 "git init -q release && cd release && git add -A && git commit -qm " RELEASE "\n"
		 "git tag " RELEASE "\n"
		 "mv .git ../repository && git --git-dir ../repository config core.bare true\n");
}

static void git_fetches_a_release(void **state)
{
	struct rig *r = *state;

	SKIP_WITHOUT("git");
	make_repository(r);
	assert_int_equal(download_ask(download_by(r, "git", "git"), &nobody), 0);
	if (fetch_by(r, "git", "git") < 0)
		fail_msg("%s", err_msg());
	expect_release(r);
}

struct seen {
	int64_t most;
	unsigned calls;
};

static bool until_something_is_there(void *context, int64_t bytes)
{
	struct seen *s = context;

	if (bytes > s->most)
		s->most = bytes;
	return !s->most && ++s->calls < 10;
}

/* What git fetches lies beside the archive: it is told of, and counts towards the limit. */
static void what_git_fetches_is_measured(void **state)
{
	struct rig *r = *state;
	struct seen seen = {0};
	const struct download_watch w = {until_something_is_there, &seen};

	SKIP_WITHOUT("git");
	assert_int_equal(download_fetch(&r->host, download_by(r, "git", "stall"), &w), -ECANCELED);
	assert_true(seen.most > 0);
}

static void git_refuses_too(void **state)
{
	struct rig *r = *state;

	SKIP_WITHOUT("git");
	assert_int_equal(fetch_by(r, "git", "missing"), -EIO);
	assert_int_equal(access(r->part, F_OK), -1);
	made_put(r->tree, "src/nvidia/GNUmakefile", "all:\n", 5);
	make_repository(r);
	expect_refused(r, "git", "git", "as NVIDIA published it");
	shell(r, "git --git-dir repository tag -d " RELEASE " >/dev/null\n");
	assert_int_equal(download_ask(download_by(r, "git", "git"), &nobody), -EIO);
	assert_non_null(strstr(err_msg(), "has no tag of this release"));
	assert_int_equal(fetch_by(r, "git", "git"), -EIO);
	assert_non_null(strstr(err_msg(), "fatal: "));
	expect_no_release(r);
}

/* ---- this side ---- */

/* Somebody who could write there could put another tree in between. */
static void a_folder_that_others_write_to_is_refused(void **state)
{
	struct rig *r = *state;
	AUTO_FREE char *folder = xprintf("%s/" SOURCES_FOLDER, r->root);

	SKIP_WITHOUT("curl");
	made_put(folder, "x", "", 0);
	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(fetch_by(r, "curl", "whole"), -EPERM);
	expect_request(r, "GET", false);
}

static int check_fetched(struct rig *r)
{
	AUTO_FREE char *folder = xprintf("%s/" SOURCES_FOLDER "/" RELEASE, r->root);

	return download_check(&r->host, RELEASE, folder);
}

/* Root runs the makefile of what was fetched earlier. */
static void what_was_fetched_is_checked_again(void **state)
{
	struct rig *r = *state;
	AUTO_FREE char *folder = xprintf("%s/" SOURCES_FOLDER "/" RELEASE, r->root);
	AUTO_FREE char *added = xprintf("%s/src/nvidia/GNUmakefile", folder);

	SKIP_WITHOUT("curl");
	assert_int_equal(fetch_by(r, "curl", "whole"), 0);
	assert_int_equal(check_fetched(r), 0);
	made_put(folder, "src/nvidia/GNUmakefile", "all:\n", 5);
	assert_int_equal(check_fetched(r), -EINVAL);
	assert_non_null(strstr(err_msg(), "was changed after it was downloaded"));
	assert_int_equal(unlink(added), 0);
	assert_int_equal(check_fetched(r), 0);
	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(check_fetched(r), -EPERM);
}

/* An edit and a build belong there; a file that is edited counts as it was. */
static void an_edit_of_what_was_fetched_is_known(void **state)
{
	struct rig *r = *state;
	AUTO_FREE char *folder = xprintf("%s/" SOURCES_FOLDER "/" RELEASE, r->root);
	static const char hash[] =
		"0000000000000000000000000000000000000000000000000000000000000000";
	AUTO_FREE char *manifest = xprintf(
		"{\"manifest\": 1, \"files\": [{\"path\": \"version.mk\", \"before\": \"%s\", "
		"\"after\": \"%s\"}]}",
		hash, hash);

	SKIP_WITHOUT("curl");
	assert_int_equal(fetch_by(r, "curl", "whole"), 0);
	made_put(folder, "src/nvidia/_out/a.o", "x", 1);
	made_put(folder, ".onehop/build.log", "x", 1);
	assert_int_equal(check_fetched(r), 0);
	made_put(folder, ".onehop/old/version.mk", "NVIDIA_VERSION = " RELEASE "\n", 27);
	made_put(folder, "version.mk", "edited", 6);
	assert_int_equal(check_fetched(r), -EINVAL);
	made_put(folder, ".onehop/manifest.json", manifest, strlen(manifest));
	assert_int_equal(check_fetched(r), 0);
	made_put(folder, ".onehop/old/version.mk", "other", 5);
	assert_int_equal(check_fetched(r), -EINVAL);
}

/* It is named for what it is, and neither followed nor removed. */
static void a_link_for_the_part_is_refused(void **state)
{
	struct rig *r = *state;
	AUTO_FREE char *folder = xprintf("%s/" SOURCES_FOLDER, r->root);
	AUTO_FREE char *away = xprintf("%s/away", r->dir);
	AUTO_FREE char *says = xprintf("%s is a symbolic link, not a folder: remove it", r->part);
	struct stat st;

	SKIP_WITHOUT("curl");
	assert_int_equal(mkdir(away, 0755), 0);
	made_put(away, "archive", "x", 1);
	made_put(folder, ".lock", "", 0);
	assert_int_equal(symlink(away, r->part), 0);
	assert_int_equal(fetch_by(r, "curl", "whole"), -EINVAL);
	if (!strstr(err_msg(), says))
		fail_msg("'%s' lacks '%s'", err_msg(), says);
	expect_request(r, "GET", false);
	assert_int_equal(lstat(r->part, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(unlink(r->part), 0);
	made_put(folder, RELEASE ".part", "x", 1);
	assert_int_equal(fetch_by(r, "curl", "whole"), -EINVAL);
	assert_non_null(strstr(err_msg(), ".part is a file, not a folder"));
	assert_int_equal(unlink(r->part), 0);
	assert_int_equal(fetch_by(r, "curl", "whole"), 0);
	expect_release(r);
}

/* The server never ends its answer. */
static void stopped_it_can_be_run_again(void **state)
{
	struct rig *r = *state;
	const struct download_watch w = {.progress = stop};

	SKIP_WITHOUT("curl");
	assert_int_equal(download_fetch(&r->host, download_by(r, "curl", "stall"), &w), -ECANCELED);
	expect_no_release(r);
	assert_int_equal(fetch_by(r, "curl", "whole"), 0);
	expect_release(r);
}

static void unknown_releases_are_not_fetched(void **state)
{
	struct rig *r = *state;
	AUTO_FREE char *url = xprintf("http://127.0.0.1:%d/whole", r->port);
	struct download *d = download_of("535.99.02", "curl", url, "/nowhere", r->arena);
	const struct download_watch w = {.progress = stop};

	assert_null(d->hash);
	assert_int_equal(download_fetch(&r->host, d, &w), -ENOENT);
	expect_request(r, "GET", false);
}

/* A server that refuses, one that sends what is no release: neither sentence has the password. */
static void a_password_is_not_shown(void **state)
{
	struct rig *r = *state;
	static const char *const ways[] = {"missing", "changed", "garbage"};
	static const char *const programs[] = {"curl", "wget", "git"};

	for (size_t i = 0; i < 3 * 3; i++) {
		AUTO_FREE char *url =
			xprintf("http://mona:s3cret@127.0.0.1:%d/%s", r->port, ways[i % 3]);
		AUTO_FREE char *folder = xprintf("%s/" SOURCES_FOLDER "/" RELEASE, r->root);
		struct download *d = download_of(RELEASE, programs[i / 3], url, folder, r->arena);

		assert_non_null(strstr(d->url, "mona:s3cret@"));
		assert_non_null(strstr(d->shown, "http://***@127.0.0.1"));
		if (!is_here(programs[i / 3]))
			continue;
		assert_true(download_fetch(&r->host, d, &nobody) < 0);
		if (strstr(err_msg(), "s3cret") || strstr(err_msg(), "mona"))
			fail_msg("%s, %s: %s", programs[i / 3], ways[i % 3], err_msg());
	}
}

static void names_and_passwords_are_hidden(void **state)
{
	static const struct {
		const char *text, *url, *shown;
	} rows[] = {
		{"https://u:p@host/x", "https://u:p@host/x", "https://***@host/x"},
		{"https://token@host/x", "https://token@host/x", "https://***@host/x"},
		{"https://a@b:p@host/x", "https://a@b:p@host/x", "https://***@host/x"},
		{"https://host/x@y", "https://host/x@y", "https://host/x@y"},
		{"no 'http://u:p@h/', nor u:p", "http://u:p@h/z", "no 'http://***@h/', nor ***"},
		{"nothing", "http://u:p@h/z", "nothing"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_FREE char *shown = download_hide(rows[i].text, rows[i].url);

		assert_string_equal(shown, rows[i].shown);
	}
}

static void addresses(void **state)
{
	static const char *const good[] = {"https://github.com/NVIDIA/open-gpu-kernel-modules",
					   "http://[::1]:8080/x", "https://u:p@mirror/x~y"};
	static const char *const bad[] = {"",
					  "file:///etc/passwd",
					  "-o",
					  "ext::sh -c x",
					  "ssh://host/x",
					  "https://a b",
					  "http://a\n",
					  "https://a;b"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(download_is_url(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(download_is_url(bad[i]));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_rig, remove_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_program_fetches_a_release),
		TEST(what_is_there_is_not_fetched_again),
		TEST(cut_off_is_gone_on_with),
		TEST(without_ranges_it_starts_again),
		TEST(without_ranges_wget_starts_again),
		TEST(a_wrong_beginning_is_dropped),
		TEST(what_is_not_the_release_is_refused),
		TEST(no_tag_and_no_server),
		TEST(the_server_is_asked_for_the_size),
		TEST(a_made_up_size_is_refused),
		TEST(redirects_without_end_are_named),
		TEST(sizes_are_never_zero),
		TEST(a_silent_server_is_waited_for_aloud),
		TEST(proxies_of_the_environment_are_used),
		TEST(git_fetches_a_release),
		TEST(what_git_fetches_is_measured),
		TEST(git_refuses_too),
		TEST(a_folder_that_others_write_to_is_refused),
		TEST(what_was_fetched_is_checked_again),
		TEST(an_edit_of_what_was_fetched_is_known),
		TEST(a_link_for_the_part_is_refused),
		TEST(stopped_it_can_be_run_again),
		TEST(unknown_releases_are_not_fetched),
		TEST(a_password_is_not_shown),
		cmocka_unit_test(names_and_passwords_are_hidden),
		cmocka_unit_test(addresses),
	};

	/* Of whoever runs the tests: what is served here is not behind them. */
	for (const char *const *v = (const char *const[]){"http_proxy", "https_proxy", "all_proxy",
							  "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
							  "no_proxy", "NO_PROXY", NULL};
	     *v; v++)
		unsetenv(*v);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
