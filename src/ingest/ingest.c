/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/ingest.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/texts.h"
#include "capture/live.h"
#include "ingest/archive_pages.h"
#include "ingest/kept_text.h"
#include "ingest/log_fields.h"
#include "ingest/part.h"
#include "ingest/part_hosts.h"
#include "ingest/pasted.h"
#include "ingest/text.h"
#include "machine/machine.h"
#include "recording/recording.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* As Windows writes texts. Of its characters of two bytes the NUL is dropped later on. */
static bool is_utf16(const char *head, size_t n)
{
	return n > 2 && (!memcmp(head, "\xff\xfe", 2) || !memcmp(head, "\xfe\xff", 2));
}

/* Archives are larger than texts and begin with bytes that no text has, so a look at the start is
 * enough. */
static bool looks_like_text(int fd)
{
	char head[512];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	return n > 0 && (!content_fault(head, (size_t)n) || is_utf16(head, (size_t)n) ||
			 log_fields_begin(head, (size_t)n));
}

/* Ends a refusal with what can be read instead. */
static int add_hint(int refused, const void *head, size_t n)
{
	AUTO_FREE char *why = xstrdup(err_msg());
	const char *instead = content_instead(head, n);

	err_say("%s; %s", why, instead ? instead : "onehop --formats lists what is read");
	return refused;
}

static int refuse_text(const struct pasted_text *x, const char *name)
{
	const char *head = strbuf_str(&x->head);
	int r;

	if (!x->head.len)
		return text_refuse(head, 0, name, "a recording");
	r = x->issue ? err_set(EINVAL,
			       "%s: is a page of GitHub; nothing that its author wrote has an "
			       "output that onehop reads",
			       name)
		     : text_refuse(head, x->head.len, name,
				   "a recording or a text with outputs that onehop reads");
	return strstr(err_msg(), ": use onehop ") ? r : add_hint(r, head, x->head.len);
}

/*
 * A text is split into parts; one without a known part is refused with a message that says what it
 * is.
 */
static int open_text(const char *path, struct pasted *t)
{
	const char *name = text_file_name(path);
	struct pasted_text *x = pasted_begin(t);
	int r = text_read_pieces(path, INGEST_MAX_TEXT, pasted_feed, x);

	if (r == 0 && !pasted_end(t, name, x))
		r = refuse_text(x, name);
	pasted_drop(x);
	return r;
}

static int add_file_hint(int refused, const char *path)
{
	AUTO_CLOSE int fd = file_open(path);
	char head[512];
	ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);

	return n > 0 ? add_hint(refused, head, (size_t)n) : refused;
}

/*
 * An archive that is not a recording may hold texts; otherwise the error of recording_open is
 * reported.
 */
static int open_pages(const char *path, struct pasted *t, int refused)
{
	AUTO_FREE char *why = xstrdup(err_msg());
	size_t parts = 0;
	int r = archive_pages_add(path, t, &parts);

	if (r == 0 && parts)
		return 0;
	if ((r == -EFBIG || r == -E2BIG || r == -EBADMSG) && refused != -EFBIG)
		return r;
	err_say("%s%s", why,
		r == 0 && refused == -EINVAL ? ", nor has it a text with outputs that onehop reads"
					     : "");
	return r == 0 && refused == -EINVAL ? add_file_hint(refused, path) : refused;
}

/* A recording of texts is read as those texts. */
static int open_recording(const char *path, struct pasted *t, struct source **ret)
{
	AUTO_FREE char *texts = NULL;
	struct source *s;
	size_t size;
	int r = recording_open(path, &s);

	if (r < 0)
		return r;
	if (source_read(s, &texts, &size, RECORDING_TEXTS) < 0) {
		*ret = s;
		return 0;
	}
	source_free(s);
	return kept_texts_add(texts, path, t);
}

/* One argument of --from: texts go to `t`, anything else is opened as the source. */
static int open_one(const char *path, struct pasted *t, struct source **ret)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int r;

	if (strcmp(path, "-") == 0)
		return open_text(path, t);
	fd = file_open(path);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return file_unreadable(errno, path);
	if (S_ISREG(st.st_mode) && looks_like_text(fd))
		return open_text(path, t);
	r = open_recording(path, t, ret);
	return r < 0 && S_ISREG(st.st_mode) ? open_pages(path, t, r) : r;
}

static int has_no_hosts(const char *path, const char *host)
{
	return err_set(EINVAL,
		       "%s: a recording is of one machine, so --host %s has nothing to choose",
		       path, host);
}

/*
 * Several texts describe one machine, that of `host` (NULL: of all of them); a recording is a
 * machine by itself.
 */
static int open_all(const char *const *paths, size_t n, const char *host, struct pasted *t,
		    struct source **ret)
{
	for (size_t i = 0; i < n; i++) {
		int r = open_one(paths[i], t, ret);

		if (r == 0 && *ret && n > 1) {
			source_free(*ret);
			*ret = NULL;
			r = err_set(
				EINVAL,
				"%s: is a recording of a whole machine; only texts can be combined",
				paths[i]);
		}
		if (r < 0)
			return r;
	}
	if (!*ret) {
		int r = pasted_choose(t, host);

		if (r < 0)
			return r;
		*ret = pasted_source(t);
	} else if (host) {
		source_free(*ret);
		*ret = NULL;
		return has_no_hosts(paths[0], host);
	}
	return 0;
}

static struct pasted *new_pasted(const char *const *paths, size_t n, const char *host)
{
	const char *files = n == 1 ? text_file_name(paths[0]) : "several texts";
	AUTO_FREE char *name = host ? xprintf("%s in %s", host, files) : xstrdup(files);

	return pasted_new(name);
}

int ingest_open_all(const char *const *paths, size_t n, const char *host, struct source **ret)
{
	struct pasted *t = new_pasted(paths, n, host);
	int r;

	*ret = NULL;
	r = open_all(paths, n, host, t, ret);
	pasted_free(t);
	return r;
}

int ingest_hosts(const char *const *paths, size_t n, struct arena *a, struct texts *ret)
{
	struct pasted *t = new_pasted(paths, n, NULL);
	struct source *s = NULL;
	struct text_hosts hosts = {0};
	int r = open_all(paths, n, NULL, t, &s);

	*ret = (struct texts){0};
	source_free(s);
	if (r == 0 || r == -EXDEV) {
		pasted_hosts(t, &hosts);
		r = 0;
	}
	for (size_t i = 0; i < hosts.n; i++)
		texts_add(a, ret, arena_strdup(a, hosts.items[i].name));
	pasted_free(t);
	return r;
}

/* ---- machines ---- */

static int check_size(const struct machine *m, const char *from)
{
	if (m->pci_n > MACHINE_MOST_FUNCTIONS)
		return err_set(E2BIG, "%s: too many PCI functions (%zu, limit %d)", from, m->pci_n,
			       (int)MACHINE_MOST_FUNCTIONS);
	if (m->gpu_n > MACHINE_MOST_GPUS)
		return err_set(E2BIG, "%s: too many GPUs (%zu, limit %d)", from, m->gpu_n,
			       (int)MACHINE_MOST_GPUS);
	return 0;
}

/* The machine of a source; texts add more to it. */
static int read_machine(struct source *s, const struct machine_request *request, struct pasted *t,
			const char *from, struct machine **ret)
{
	struct machine *m = machine_read(s, request);
	int r = from ? check_size(m, from) : 0;

	if (r == 0 && t)
		pasted_complete(t, m);
	if (r < 0)
		machine_free(m);
	else
		*ret = m;
	return r;
}

int ingest_machine_source(const char *const *from, size_t n, const char *host, int pid,
			  unsigned parts, struct source *ahead, struct machine **ret,
			  struct source **ret_source)
{
	struct machine_request request = {.parts = parts, .pid = pid};
	struct source *s = NULL;
	struct pasted *t = NULL;
	int r;

	if (n) {
		t = new_pasted(from, n, host);
		r = open_all(from, n, host, t, &s);
	} else {
		r = machine_open_live(&request, &s);
		if (r == 0 && ahead)
			s = source_new_over(s, ahead);
	}
	if (r == 0)
		r = read_machine(s, &request, t, n ? from[0] : NULL, ret);
	pasted_free(t);
	if (r < 0)
		source_free(s);
	else
		*ret_source = s;
	return r;
}

int ingest_machine(const char *const *from, size_t n, const char *host, int pid, unsigned parts,
		   struct machine **ret)
{
	struct source *s;
	int r = ingest_machine_source(from, n, host, pid, parts, NULL, ret, &s);

	if (r == 0)
		source_free(s);
	return r;
}

/* ---- recordings ---- */

/* Texts are kept as texts: files made from them could not express what is missing. */
static int keep_texts(const struct pasted *t, const char *from, struct source *map)
{
	AUTO_STRBUF struct strbuf text = {0};

	pasted_keep(t, &text);
	if (text.len > SOURCE_MAX_FILE)
		return err_set(EFBIG,
			       "%s: onehop reads %zu MiB of it; a recording holds %u MiB at most",
			       from, text.len >> 20, SOURCE_MAX_FILE >> 20);
	source_put_file(map, RECORDING_TEXTS, strbuf_str(&text), text.len);
	return 0;
}

static void read_all(struct source *s, const struct machine_request *request, struct source *map,
		     struct machine **ret)
{
	struct source *tee = source_new_tee(s, map);
	char host[256];

	*ret = machine_read(tee, request);
	/* Nothing else reads it; recording_redact needs it to know what to replace. */
	source_read_line(tee, host, sizeof(host), "proc/sys/kernel/hostname");
	source_free(tee);
}

static int record_texts(const char *const *from, size_t n, const char *host, struct pasted *t,
			const struct machine_request *request, struct source *map,
			struct machine **ret)
{
	struct source *s = NULL;
	int r = open_all(from, n, host, t, &s);

	if (r < 0)
		return r;
	if (!source_stated(s)) {
		read_all(s, request, map, ret);
		source_free(s);
		return 0;
	}
	r = keep_texts(t, from[0], map);
	if (r == 0)
		r = read_machine(s, request, t, from[0], ret);
	source_free(s);
	return r;
}

int ingest_record(const char *const *from, size_t n, const char *host, int pid, struct source *map,
		  struct machine **ret)
{
	struct machine_request request = {.parts = MACHINE_ALL, .pid = pid};
	struct source *live;
	struct pasted *t;
	int r;

	if (!n) {
		r = machine_open_live(&request, &live);
		if (r < 0)
			return r;
		read_all(live, &request, map, ret);
		source_free(live);
		return 0;
	}
	t = new_pasted(from, n, host);
	r = record_texts(from, n, host, t, &request, map, ret);
	pasted_free(t);
	return r;
}

/* ---- what is read ---- */

/* Besides the outputs of tools, which may be anywhere in a text. */
static const struct ingest_format whole_files[] = {
	{"recording of onehop record", "the whole machine", "--from"},
	{"copy of /sys and /proc", "what it has of the machine", "--from"},
	{"archive or compressed file",
	 "every text in it: gzip, bzip2, xz, zstd; tar, zip; nvidia-bug-report.log.gz, sosreport",
	 "--from"},
	{"issue of GitHub as JSON",
	 "the texts of the issue and of its author's comments, as the API and gh issue view --json give them",
	 "--from"},
	{"JSON of onehop", "results of test and bench", "--observed, compare"},
};

bool ingest_format_at(size_t i, struct ingest_format *ret)
{
	if (i < ARRAY_LEN(whole_files)) {
		*ret = whole_files[i];
		return true;
	}
	ret->use = "--from";
	return part_kind_at(i - ARRAY_LEN(whole_files), &ret->name, &ret->gives);
}
