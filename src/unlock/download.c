/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/download.h"

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/host.h"
#include "unlock/known_sources.h"
#include "unlock/source_hash.h"
#include "unlock/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASK_DEADLINE_S   30
#define FETCH_DEADLINE_S (4 * 3600)
#define TRIES            8
/*
 * Ten times the largest release's, 25 MB: a server that sends more than that sends something else. By git
 * the largest takes 155 MB, its archive without compression among them.
 */
#define ARCHIVE_MAX  ((int64_t)256 << 20)
#define SOURCES_LOCK SOURCES_FOLDER "/.lock"
#define CLONE_DEPTH  8 /* git's objects lie 3 deep */

/* ---- the programs ---- */

/* Stand for what is put in their place. */
#define URL     "<url>"
#define TAG     "<tag>"
#define ARCHIVE "<archive>"
#define CLONE   "<clone>" /* a folder next to the archive */

/* Slower than 1000 bytes/s for a minute counts as cut off. */
#define CURL "curl", "-fsSL", "--proto", "=http,https"
/* A server that ends a connection behind its redirect would leave the next request on it unanswered. */
#define WGET "wget", "--tries=1", "--timeout=60", "--no-http-keep-alive"
/* Its archive has the files as they were committed, whatever a person's configuration says of line ends. */
#define GIT                                                                                        \
	"git", "-c", "protocol.allow=never", "-c", "protocol.http.allow=always", "-c",             \
		"protocol.https.allow=always", "-c", "http.lowSpeedLimit=1000", "-c",              \
		"http.lowSpeedTime=60", "-c", "core.autocrlf=false"
#define WORDS_MAX 32

static const struct program {
	const char *name;
	const char *error;  /* how its error messages begin */
	const char *silent; /* what it means when it fails without a message; NULL: unknown */
	const char *path;   /* behind the repository's address */
	const char *ask[WORDS_MAX];   /* for the answer's head alone */
	const char *fetch[WORDS_MAX]; /* an archive that is there in part is gone on with */
	const char *pack[WORDS_MAX];  /* makes the archive of what came; none: that came */
} programs[] = {
	{"curl",
	 "curl: ",
	 NULL,
	 "/archive/refs/tags/" TAG ".tar.gz",
	 {CURL, "--connect-timeout", "20", "-I", URL},
	 {CURL, "--connect-timeout", "30", "--speed-limit", "1000", "--speed-time", "60", "-C", "-",
	  "-o", ARCHIVE, URL},
	 {NULL}},
	{"wget",
	 "wget: ",
	 NULL,
	 "/archive/refs/tags/" TAG ".tar.gz",
	 {WGET, "--spider", "-S", URL},
	 {WGET, "-nv", "-c", "-O", ARCHIVE, URL},
	 {NULL}},
	{"git",
	 "fatal: ",
	 "the repository has no tag of this release",
	 "",
	 {GIT, "ls-remote", "--exit-code", "--tags", URL, TAG},
	 {GIT, "clone", "--quiet", "--bare", "--depth", "1", "--branch", TAG, URL, CLONE},
	 {GIT, "--git-dir", CLONE, "archive", "--format=tar", "--prefix=release/", "-o", ARCHIVE,
	  TAG}},
};

#define PROGRAMS (sizeof(programs) / sizeof(programs[0]))

void download_add_size(int64_t bytes, struct strbuf *out)
{
	if (bytes < 100000) /* would be 0.0 MB */
		strbuf_printf(out, "%lld bytes", (long long)bytes);
	else
		strbuf_printf(out, "%.1f MB", (double)bytes / 1e6);
}

const char *const download_programs[] = {"curl", "wget", "git", NULL};

static const struct program *program_of(const char *name)
{
	for (size_t i = 0; name && i < PROGRAMS; i++)
		if (strcmp(programs[i].name, name) == 0)
			return &programs[i];
	return NULL;
}

/* All of them read these; curl takes http_proxy in small letters alone. */
static const char *const proxies[] = {
	"http_proxy",  "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY",
	"HTTPS_PROXY", "ALL_PROXY",   "NO_PROXY",  NULL,
};

/* ---- what is fetched ---- */

bool download_is_url(const char *url)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/[]@!$&()*+,=%";

	return (text_starts_with(url, "https://") || text_starts_with(url, "http://")) &&
	       !url[strspn(url, plain)];
}

/* "NAME:PASSWORD" of an address; 0: it has none. */
static size_t secret_in(const char *url, const char **ret)
{
	const char *host = strstr(url, "://"), *at = NULL;
	size_t n;

	host = host ? host + strlen("://") : url;
	n = strcspn(host, "/");
	at = memrchr(host, '@', n);
	*ret = host;
	return at ? (size_t)(at - host) : 0;
}

char *download_hide(const char *text, const char *url)
{
	AUTO_STRBUF struct strbuf b = {0};
	const char *secret, *found;
	size_t n = secret_in(url, &secret);

	while (n && (found = memmem(text, strlen(text), secret, n))) {
		strbuf_add(&b, text, (size_t)(found - text));
		strbuf_puts(&b, "***");
		text = found + n;
	}
	strbuf_puts(&b, text);
	return xstrdup(strbuf_str(&b));
}

/* A word with its <...> replaced; the caller frees. */
static char *put_in(const char *word, const char *const (*values)[2])
{
	for (; (*values)[0]; values++) {
		const char *at = strstr(word, (*values)[0]);

		if (at)
			return xprintf("%.*s%s%s", (int)(at - word), word, (*values)[1],
				       at + strlen((*values)[0]));
	}
	return xstrdup(word);
}

struct download *download_of(const char *release, const char *program, const char *repository,
			     const char *folder, struct arena *a)
{
	const char *const values[][2] = {{TAG, release}, {NULL, NULL}};
	const struct known_source *known = known_source_find(release);
	const struct program *p = program_of(program);
	AUTO_FREE char *path = put_in(p ? p->path : "", values);
	AUTO_FREE char *shown = NULL;
	struct download *d = arena_alloc(a, 1, sizeof(*d));

	d->release = arena_strdup(a, release);
	d->hash = known ? known->hash : NULL;
	d->program = p ? p->name : NULL;
	d->url = arena_printf(a, "%s%s", repository, path);
	shown = download_hide(d->url, d->url);
	d->shown = arena_strdup(a, shown);
	d->folder = arena_strdup(a, folder);
	return d;
}

/* ---- running them ---- */

struct command {
	char *words[WORDS_MAX + 1];
};

static void command_done(struct command *c)
{
	for (char **w = c->words; *w; w++)
		free(*w);
}

/* `part`: the folder of what is fetched; NULL: nothing is written. */
static void make_command(const char *const *words, const struct download *d, const char *part,
			 struct command *ret)
{
	AUTO_FREE char *archive = xprintf("%s/archive", part ? part : "");
	AUTO_FREE char *clone = xprintf("%s/clone", part ? part : "");
	const char *const values[][2] = {
		{URL, d->url}, {TAG, d->release}, {ARCHIVE, archive}, {CLONE, clone}, {NULL, NULL}};

	for (size_t i = 0; words[i]; i++)
		ret->words[i] = put_in(words[i], values);
}

/*
 * Other lines can follow the error message of curl or git (headers of an answer, advice), and
 * curl's can begin in the middle of a header. So the last text that begins as theirs do is the
 * reason: "curl: (22) ...", "fatal: ...". Otherwise it is the last line.
 */
static void find_reason(const struct program *p, const char *said, char *ret, size_t size)
{
	const char *at = NULL;

	for (const char *next = strstr(said, p->error); next; next = strstr(next + 1, p->error))
		at = next;
	if (at) {
		AUTO_FREE char *line = xstrndup(at, strcspn(at, "\n"));

		text_last_line(line, ret, size);
	} else {
		text_last_line(said, ret, size);
	}
	if (!*ret && p->silent)
		text_copy(ret, size, p->silent, strlen(p->silent));
}

/* Runs it for `d`; what it said is added to `said`. 0, or a negative errno with a sentence. */
static int run(const struct command *c, const struct download *d, const struct child_watch *watch,
	       struct strbuf *said)
{
	AUTO_FREE char *path = host_program(c->words[0]);
	AUTO_CLOSE int output = memfd_create("onehop", MFD_CLOEXEC);
	AUTO_FREE char *text = NULL;
	AUTO_FREE char *shown = NULL;
	struct child_watch w = *watch;
	char reason[200];
	size_t size = 0;
	int status = 0, r;

	if (!path)
		return err_set(ENOENT, "there is no program %s on this system", c->words[0]);
	if (output < 0)
		return err_sys(errno, "a file for what %s says", c->words[0]);
	w.output = output;
	w.keep = proxies;
	r = child_run_watched(path, (const char *const *)c->words, &w, &status);
	if (r < 0)
		return r;
	if (lseek(output, 0, SEEK_SET) == 0 &&
	    fd_read_all(output, CHILD_OUTPUT_MAX, &text, &size) == 0)
		strbuf_add(said, text, strlen(text));
	if (status == 0)
		return 0;
	find_reason(program_of(d->program), strbuf_str(said), reason, sizeof(reason));
	shown = download_hide(reason, d->url);
	return err_set(EIO, "%s failed with status %d%s%s", c->words[0], status, *shown ? ": " : "",
		       shown);
}

/* ---- asking ---- */

/* A number that no 64 bits hold is as absurd as the largest that they hold. -1: not a number. */
static int64_t size_in(const char *text)
{
	uint64_t value;

	text += strspn(text, " \t");
	if (!*text || text[strspn(text, "0123456789")])
		return -1;
	return text_to_u64(text, &value) == 0 && value <= INT64_MAX ? (int64_t)value : INT64_MAX;
}

/* Of the last answer: those before it redirected. 0: it does not say. */
static int64_t content_length(const char *heads)
{
	static const char field[] = "content-length:";
	const char *line = NULL;
	int64_t found = 0;
	size_t n;

	while (text_next_line(&line, &n, heads)) {
		AUTO_FREE char *copy = xstrndup(line, n);
		const char *text = text_trim(copy + strspn(copy, " \t"));

		if (text_starts_with(text, "HTTP/"))
			found = 0;
		if (strncasecmp(text, field, strlen(field)) == 0 &&
		    size_in(text + strlen(field)) >= 0)
			found = size_in(text + strlen(field));
	}
	return found;
}

/* A size that the server announces is never repeated here: it is not a fact about the release. */
static int refuse_size(void)
{
	return err_set(EFBIG,
		       "the server announces more than %d MB, so it is not a release's archive",
		       (int)(ARCHIVE_MAX >> 20));
}

static bool on_waiting(void *context)
{
	const struct download_watch *w = context;

	return !w->progress || w->progress(w->context, 0);
}

int download_ask(struct download *d, const struct download_watch *w)
{
	const struct program *p = program_of(d->program);
	struct download_watch copy = *w;
	const struct child_watch watch = {.deadline_s = ASK_DEADLINE_S,
					  .tick = on_waiting,
					  .context = &copy};
	CLEANUP(command_done) struct command c = {0};
	AUTO_STRBUF struct strbuf said = {0};
	int64_t bytes;
	int r;

	if (!p)
		return err_set(ENOENT, "none of curl, wget and git is installed");
	make_command(p->ask, d, NULL, &c);
	r = run(&c, d, &watch, &said);
	if (r < 0)
		return r;
	bytes = content_length(strbuf_str(&said));
	if (bytes > ARCHIVE_MAX)
		return refuse_size();
	d->bytes = bytes;
	return 0;
}

/* ---- fetching ---- */

struct fetching {
	const struct download *d;
	const struct program *program;
	const struct download_watch *w;
	char *folder;        /* SOURCES_FOLDER, absolute */
	struct tree sources; /* that, which its messages name */
	char *part;          /* "RELEASE.part", in it */
	char *part_shown;    /* and absolute */
	bool resumed;        /* the archive is of several answers */
	bool too_large;
};

static void fetching_done(struct fetching *f)
{
	tree_close(&f->sources);
	free(f->folder);
	free(f->part);
	free(f->part_shown);
}

/* The archive's bytes; 0: it is not there. */
static int64_t have(const struct fetching *f)
{
	AUTO_FREE char *path = xprintf("%s/archive", f->part);
	struct stat st;

	return fstatat(f->sources.fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size : 0;
}

static int drop(const struct fetching *f, const char *name)
{
	AUTO_FREE char *path = xprintf("%s/%s", f->part, name);

	return tree_remove(&f->sources, path);
}

/* Of the files in a folder, which may change meanwhile; 0: it is not there. */
static int64_t bytes_in(int parent, const char *name, unsigned depth)
{
	AUTO_CLOSE int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char **names = NULL;
	size_t n = 0;
	struct stat st;
	int64_t sum = 0;

	if (fd < 0 || fd_list(fd, &names, &n) < 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode))
			sum += st.st_size;
		else if (S_ISDIR(st.st_mode) && depth)
			sum += bytes_in(fd, names[i], depth - 1);
	}
	source_free_names(names, n);
	return sum;
}

/* The archive's, and those of what it is made of. */
static int64_t bytes_fetched(const struct fetching *f)
{
	AUTO_FREE char *clone = xprintf("%s/clone", f->part);

	return have(f) + bytes_in(f->sources.fd, clone, CLONE_DEPTH);
}

static bool tell(void *context)
{
	struct fetching *f = context;
	int64_t bytes = bytes_fetched(f);

	f->too_large |= bytes > ARCHIVE_MAX;
	return !f->too_large && (!f->w->progress || f->w->progress(f->w->context, bytes));
}

static int run_words(struct fetching *f, const char *const *words)
{
	const struct child_watch watch = {.deadline_s = FETCH_DEADLINE_S,
					  .tick = tell,
					  .context = f};
	CLEANUP(command_done) struct command c = {0};
	AUTO_STRBUF struct strbuf said = {0};
	int r;

	if (!*words)
		return 0;
	make_command(words, f->d, f->part_shown, &c);
	r = run(&c, f->d, &watch, &said);
	if (bytes_fetched(f) > ARCHIVE_MAX) /* it may have ended within the last second */
		f->too_large = true;
	if (f->too_large)
		return err_set(EFBIG,
			       "%s sent more than %d MB: this is not the archive of a release",
			       f->d->shown, (int)(ARCHIVE_MAX >> 20));
	return r;
}

static int fetch_once(struct fetching *f)
{
	int r = drop(f, "clone");

	if (r == 0)
		r = run_words(f, f->program->fetch);
	if (r == 0)
		r = run_words(f, f->program->pack);
	return r < 0 ? r : drop(f, "clone");
}

/*
 * An answer that was cut off is gone on with as long as more comes. A server that cannot do that, or has
 * nothing behind what is there, gets another start.
 */
static int fetch_archive(struct fetching *f)
{
	int r = -EIO;

	for (unsigned i = 0; i < TRIES; i++) {
		int64_t before = have(f);

		f->resumed = before > 0;
		r = fetch_once(f);
		if (r == 0 || r == -ECANCELED)
			return r;
		if (r == -EFBIG || (have(f) <= before && drop(f, "archive") < 0))
			return r;
		if (!before && !have(f))
			return r;
	}
	return r;
}

/* ---- what came ---- */

static int check_hash(const struct fetching *f, const struct tree *t)
{
	char hash[SHA256_TEXT];
	int r = source_hash(t, hash);

	if (r < 0 || strcmp(hash, f->d->hash) == 0)
		return r;
	return err_set(
		EINVAL,
		"what %s sent is not release %s as NVIDIA published it: the hash of its files is "
		"%s, not %s",
		f->d->shown, f->d->release, hash, f->d->hash);
}

static int unpack_into(const struct fetching *f, const char *folder)
{
	AUTO_FREE char *archive = xprintf("%s/archive", f->part);
	AUTO_CLOSE int fd = openat(f->sources.fd, archive, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct tree t;
	int r;

	if (fd < 0)
		return err_sys(errno, "%s/archive", f->part_shown);
	r = tree_open(folder, &t);
	if (r == 0)
		r = archive_unpack(fd, f->d->shown, &t);
	if (r == 0)
		r = check_hash(f, &t);
	tree_close(&t);
	return r;
}

static int unpack(const struct fetching *f)
{
	AUTO_FREE char *folder = xprintf("%s/tree", f->part_shown);
	int r = drop(f, "tree");

	if (r == 0 && mkdir(folder, 0755) < 0)
		r = err_sys(errno, "%s", folder);
	return r < 0 ? r : unpack_into(f, folder);
}

/* All of the tree is on disk before it has its name. */
static int publish(const struct fetching *f)
{
	AUTO_FREE char *from = xprintf("%s/tree", f->part);
	int r;

	if (syncfs(f->sources.fd) < 0)
		return err_sys(errno, "bring %s to disk", f->part_shown);
	r = tree_rename(&f->sources, from, f->d->release);
	return r < 0 ? r : tree_remove(&f->sources, f->part);
}

/* The sentence of the error stays. */
static int remove_part(const struct fetching *f, int r)
{
	AUTO_FREE char *why = xstrdup(err_msg());

	tree_remove(&f->sources, f->part);
	return err_set(-r, "%s; it was removed", why);
}

/* For the next run to go on with; without an archive nothing is. */
static int say_what_is_kept(const struct fetching *f, int r)
{
	int64_t bytes = have(f);
	AUTO_FREE char *why = xstrdup(err_msg());
	AUTO_STRBUF struct strbuf size = {0};

	download_add_size(bytes, &size);
	if (bytes)
		return err_set(
			-r,
			"%s; the %s received so far are kept in %s, and the next run continues there",
			why, strbuf_str(&size), f->part_shown);
	tree_remove(&f->sources, f->part);
	return err_set(-r, "%s", why);
}

static int fetch(struct fetching *f)
{
	int r = fetch_archive(f);

	if (r == 0)
		r = unpack(f);
	if (r == -EINVAL && f->resumed) { /* parts of two archives, maybe */
		r = drop(f, "archive");
		if (r == 0)
			r = fetch_archive(f);
		if (r == 0)
			r = unpack(f);
	}
	if (r == 0)
		return publish(f);
	return r == -EINVAL || r == -EFBIG ? remove_part(f, r) : say_what_is_kept(f, r);
}

/* ---- the folder ---- */

/*
 * The folder is made where it is missing; that only root and who runs this can write there is the host's to see to.
 * A run removes the lock when it ends: what was locked then may have no name any more.
 */
static int lock_sources(struct fix_host *h, int *ret)
{
	for (unsigned i = 0; i < TRIES; i++) {
		AUTO_CLOSE int fd = -1;
		struct stat st;
		int r = host_open_own(h, SOURCES_LOCK, &fd);

		if (r < 0)
			return r;
		if (file_lock(fd) < 0)
			break;
		if (fstat(fd, &st) == 0 && st.st_nlink) {
			*ret = TAKE_FD(fd);
			return 0;
		}
	}
	return err_set(EBUSY, "another onehop is downloading to /" SOURCES_FOLDER);
}

/* Nothing stays but what was fetched. The sentence of the error stays too. */
static int unlock_sources(struct fix_host *h, int r)
{
	AUTO_FREE char *why = xstrdup(err_msg());

	if (host_remove(h, SOURCES_LOCK) == 0 && host_remove_folder(h, SOURCES_FOLDER) == 0)
		host_remove_folder(h, CACHE_FOLDER);
	return r < 0 ? err_set(-r, "%s", why) : r;
}

/* A link is not followed: what is written in the part would go elsewhere. */
static int make_part(const struct fetching *f)
{
	struct stat st;

	if (mkdirat(f->sources.fd, f->part, 0700) == 0)
		return 0;
	if (errno != EEXIST || fstatat(f->sources.fd, f->part, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(errno, "%s", f->part_shown);
	if (S_ISDIR(st.st_mode))
		return 0;
	return err_set(EINVAL, "%s is %s, not a folder: remove it and try again", f->part_shown,
		       S_ISLNK(st.st_mode) ? "a symbolic link" : "a file");
}

static int open_sources(struct fix_host *h, const struct download *d, struct fetching *f)
{
	int r;

	f->folder = path_below(h->root, SOURCES_FOLDER);
	f->part = xprintf("%s.part", d->release);
	f->part_shown = xprintf("%s/%s", f->folder, f->part);
	r = tree_open(f->folder, &f->sources);
	return r < 0 ? r : make_part(f);
}

int download_fetch(struct fix_host *h, const struct download *d, const struct download_watch *w)
{
	CLEANUP(fetching_done)
	struct fetching f = {.d = d, .program = program_of(d->program), .w = w, .sources.fd = -1};
	AUTO_CLOSE int lock = -1;
	int r;

	if (!f.program || !d->hash)
		return err_set(ENOENT, "%s cannot be downloaded", d->release);
	r = lock_sources(h, &lock);
	if (r < 0)
		return r;
	r = open_sources(h, d, &f);
	if (r == 0)
		r = tree_has(&f.sources, d->release) ? tree_remove(&f.sources, f.part) : fetch(&f);
	return unlock_sources(h, r);
}

/* That only root and who runs this can write there is the host's to see to. */
static int check_folders(struct fix_host *h, const char *release)
{
	AUTO_FREE char *path = xprintf(SOURCES_FOLDER "/%s", release);
	char **names = NULL;
	size_t n = 0;
	int r = host_list(h, path, &names, &n);

	if (r == 0)
		source_free_names(names, n);
	return r == -ENOENT ? err_sys(ENOENT, "/%s", path) : r;
}

int download_check(struct fix_host *h, const char *release, const char *folder)
{
	const struct known_source *known = known_source_find(release);
	char hash[SHA256_TEXT];
	struct tree t;
	int r = check_folders(h, release);

	if (r < 0)
		return r;
	if (!known)
		return err_set(EINVAL, "%s: onehop does not know the sources of %s", folder,
			       release);
	r = tree_open(folder, &t);
	if (r == 0)
		r = source_hash_before(&t, hash);
	tree_close(&t);
	if (r < 0 || strcmp(hash, known->hash) == 0)
		return r;
	return err_set(
		EINVAL,
		"%s was changed after it was downloaded: it is not release %s as NVIDIA published it, "
		"with or without onehop's edits",
		folder, release);
}

const char *download_left(struct fix_host *h, struct arena *a)
{
	AUTO_FREE char *folder = path_below(h->root, SOURCES_FOLDER);
	char **names = NULL;
	size_t n = 0, trees = 0;

	if (host_list(h, SOURCES_FOLDER, &names, &n) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++)
		trees += names[i][0] != '.';
	source_free_names(names, n);
	return trees ? arena_strdup(a, folder) : NULL;
}
