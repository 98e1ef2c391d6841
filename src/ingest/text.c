/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/text.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "ingest/issue_json.h"
#include "ingest/nccl_log.h"
#include "ingest/nccl_tests.h"
#include "ingest/nvbandwidth_text.h"
#include "ingest/p2p_test.h"
#include "ingest/pasted.h"
#include "ingest/result_json.h"
#include "ingest/vllm_cache.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A log may hold the table of the run that wrote it, so the table comes first. */
const struct text_kind text_kinds[] = {
	{"vLLM's cache of peer access", "onehop compare", vllm_cache_recognise, vllm_cache_parse},
	{"a page of GitHub as JSON", "onehop check --from", issue_json_recognise, NULL},
	{"a result as JSON", "onehop compare", result_json_recognise, result_json_parse},
	{"the output of p2pBandwidthLatencyTest", "onehop compare", p2p_test_recognise,
	 p2p_test_parse},
	{"the output of nccl-tests", "onehop compare", nccl_tests_recognise, nccl_tests_parse},
	{"the output of nvbandwidth", "onehop compare", nvbandwidth_recognise, nvbandwidth_parse},
	{"a debug log of NCCL", "onehop log", nccl_log_recognise, NULL},
	{"a text with outputs of other tools", "onehop check --from", pasted_recognise, NULL},
	{0},
};

int text_refuse(const char *text, size_t size, const char *path, const char *wanted)
{
	for (const struct text_kind *k = text_kinds; k->what; k++) {
		if (k->recognise(text, size) &&
		    (k->to_figures != result_json_parse || result_json_is_result(text, size)))
			return err_set(EINVAL, "%s: is %s, not %s: use %s", path, k->what, wanted,
				       k->use);
	}
	return content_refuse(path, text, size, wanted);
}

/* ---- reading ---- */

static int read_fd(int fd, const char *path, size_t max, text_sink sink, void *to)
{
	char buf[65536];
	size_t size = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		size += (size_t)n;
		if (size > max)
			return err_set(EFBIG, "%s: is larger than %zu MiB%s", path, max >> 20,
				       max >= SOURCE_MAX_FILE && max < INGEST_MAX_TEXT
					       ? "; onehop check --from reads texts of up to 2 GiB"
					       : "");
		sink(to, buf, (size_t)n);
	}
	return n < 0 ? file_unreadable(errno, path) : 0;
}

static void add_to_strbuf(void *to, const char *data, size_t n)
{
	strbuf_add(to, data, n);
}

static bool is_standard_input(const char *path)
{
	return strcmp(path, "-") == 0;
}

const char *text_file_name(const char *path)
{
	return is_standard_input(path) ? "standard input" : path;
}

/* A file without a name, and so without an end; -1: there is no room for one. */
static int open_spool(void)
{
	const char *folder = getenv("TMPDIR");

	return open(folder && *folder == '/' ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC,
		    0600);
}

/* Standard input that is read again: some commands read it for the diagnosis and for the plan. */
struct kept_input {
	int fd;             /* -1: it is in memory */
	struct strbuf text; /* of which no more than INGEST_MAX_LOG */
	bool complete;
};

struct input_copy {
	struct kept_input *kept;
	text_sink sink;
	void *to;
	bool failed;
};

static bool spool(int fd, const char *data, size_t n)
{
	while (n) {
		ssize_t k = write(fd, data, n);

		if (k <= 0)
			return false;
		data += k;
		n -= (size_t)k;
	}
	return true;
}

static void copy_piece(void *to, const char *data, size_t n)
{
	struct input_copy *c = to;

	if (c->kept->fd >= 0)
		c->failed |= !spool(c->kept->fd, data, n);
	else if (c->kept->text.len + n <= INGEST_MAX_LOG)
		strbuf_add(&c->kept->text, data, n);
	else
		c->failed = true;
	c->sink(c->to, data, n);
}

static int read_standard_input(size_t max, text_sink sink, void *to)
{
	static struct kept_input kept;
	struct input_copy copy = {.kept = &kept, .sink = sink, .to = to};
	int r;

	if (kept.complete && kept.fd < 0) {
		sink(to, strbuf_str(&kept.text), kept.text.len);
		return 0;
	}
	if (kept.complete) {
		if (lseek(kept.fd, 0, SEEK_SET) < 0)
			return file_unreadable(errno, text_file_name("-"));
		return read_fd(kept.fd, text_file_name("-"), max, sink, to);
	}
	kept.fd = open_spool();
	r = read_fd(STDIN_FILENO, text_file_name("-"), max, copy_piece, &copy);
	if (r == 0 && copy.failed)
		r = err_set(EFBIG, "%s: is too large to be kept", text_file_name("-"));
	kept.complete = r == 0;
	return r;
}

int text_read_pieces(const char *path, size_t max, text_sink sink, void *to)
{
	AUTO_CLOSE int fd = -1;

	if (is_standard_input(path))
		return read_standard_input(max, sink, to);
	fd = file_open(path);
	return fd < 0 ? fd : read_fd(fd, path, max, sink, to);
}

int text_read_file(const char *path, size_t max, struct strbuf *ret)
{
	return text_read_pieces(path, max, add_to_strbuf, ret);
}

/* ---- cleaning ---- */

/* The bytes of an escape sequence that starts here: "\033[1;31m"; 0: none does. */
static size_t escape_length(const char *s, const char *end)
{
	const char *p = s;

	if (*p++ != '\033')
		return 0;
	if (p < end && *p == '[')
		for (p++; p < end && (unsigned char)*p < 0x40; p++)
			if (*p == '\n')
				return (size_t)(p - s);
	return (size_t)(p - s) + (p < end && *p != '\n');
}

/* "1;36": codes of colours and styles, and no number that a sentence may have in brackets. */
static bool is_style(const char *s, const char *end)
{
	while (s < end) {
		unsigned code = 0;

		for (; s < end && isdigit((unsigned char)*s) && code < 1000; s++)
			code = 10 * code + (unsigned)(*s - '0');
		if ((s < end && *s != ';') || code > 107 || (code >= 10 && code <= 20))
			return false;
		s += s < end;
	}
	return true;
}

/*
 * "[1;36m", "^[[0m" or "\x1b[0m": what remains of an escape sequence of colours where a page shows
 * its first byte in another way, or not at all. 0: none starts here.
 */
static size_t shown_escape_length(const char *s, const char *end)
{
	static const char *const shown[] = {"^[[", "\xef\xbf\xbd[", "\\x1b[", "\\u001b[", "\\033["};
	enum { LONGEST = 16 };
	const char *p = s + 1, *stop;

	if (*s != '[' && *s != '^' && *s != '\\' && *s != '\xef')
		return 0;
	for (size_t i = 0; *s != '[' && i < ARRAY_LEN(shown); i++)
		if ((size_t)(end - s) > strlen(shown[i]) &&
		    memcmp(s, shown[i], strlen(shown[i])) == 0)
			p = s + strlen(shown[i]);
	if (p[-1] != '[')
		return 0;
	for (stop = p;
	     stop < end && stop - p < LONGEST && (isdigit((unsigned char)*stop) || *stop == ';');)
		stop++;
	if (stop == p || stop >= end || *stop != 'm' || (stop + 1 < end && stop[1] == ']') ||
	    !is_style(p, stop))
		return 0;
	return (size_t)(stop + 1 - s);
}

/* Characters that web pages and word processors use instead of blanks and quotes. */
static const struct {
	const char *bytes, *plain;
} look_alikes[] = {
	{"\xc2\xa0", " "},     /* no-break space */
	{"\xef\xbb\xbf", ""},  /* byte order mark */
	{"\xe2\x80\x8b", ""},  /* zero width space */
	{"\xe2\x80\x98", "'"}, /* quotes */
	{"\xe2\x80\x99", "'"}, {"\xe2\x80\x9c", "\""}, {"\xe2\x80\x9d", "\""},
};

/* The number of bytes at s that are replaced by the plain character *to; 0: none. */
static size_t plain_length(const char *s, const char *end, char **to)
{
	if ((unsigned char)*s < 0xc2)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(look_alikes); i++) {
		size_t n = strlen(look_alikes[i].bytes);

		if ((size_t)(end - s) >= n && memcmp(s, look_alikes[i].bytes, n) == 0) {
			*to = mempcpy(*to, look_alikes[i].plain, strlen(look_alikes[i].plain));
			return n;
		}
	}
	return 0;
}

/* It stays as it is, and nothing that is replaced begins with it. */
static bool is_ordinary(char c)
{
	return c >= ' ' && c < 0x7f && c != '[' && c != '^' && c != '\\';
}

static size_t ordinary_length(const char *s, const char *end)
{
	const char *start = s;

	while (s < end && is_ordinary(*s))
		s++;
	return (size_t)(s - start);
}

/*
 * Copies without terminal control sequences; returns the new end. *ret_again: the rest may form
 * another one.
 */
static char *clean(const char *text, size_t size, char *to, bool *ret_again)
{
	const char *end = text + size;

	*ret_again = false;
	for (const char *s = text; s < end; s++) {
		size_t n = ordinary_length(s, end);

		memmove(to, s, n); /* the text may be cleaned where it is */
		to += n;
		s += n;
		if (s == end)
			break;
		n = escape_length(s, end);
		if (!n) {
			n = shown_escape_length(s, end);
			*ret_again |= n > 0;
		}
		n = n ? n : plain_length(s, end, &to);
		if (n)
			s += n - 1;
		else if (*s == '\r' || *s == '\t')
			*to++ = ' ';
		else if (*s)
			*to++ = *s;
	}
	return to;
}

/* ---- splitting ---- */

/*
 * Dumps that are encoded in letters and digits make up most of a bug report. No tool begins with a
 * word as long as this.
 */
static bool is_encoded(const char *s, size_t n)
{
	enum { LONGEST_WORD = 60 };
	size_t start = 0, end;

	while (start < n && s[start] == ' ')
		start++;
	end = start;
	while (end < n && end - start < LONGEST_WORD &&
	       (isalnum((unsigned char)s[end]) || s[end] == '/' || s[end] == '+'))
		end++;
	return end - start == LONGEST_WORD;
}

static void push_line(struct text_splitter *s, char *text)
{
	*ARENA_PUSH(s->arena, s->lines, s->n) =
		(struct text_line){.text = text, .number = s->number};
}

static void add_encoded(struct text_splitter *s)
{
	if (s->n && s->encoded && s->lines[s->n - 1].text == s->encoded) {
		s->lines[s->n - 1].number = s->number;
		return;
	}
	if (!s->encoded)
		s->encoded = arena_strdup(s->arena, "...");
	push_line(s, s->encoded);
}

/*
 * Of a run of empty lines two are kept; a text that is given line by line has one for each line of
 * others.
 */
static bool add_empty(struct text_splitter *s)
{
	if (!s->squeeze || s->n < 2 || *s->lines[s->n - 1].text || *s->lines[s->n - 2].text)
		return false;
	s->lines[s->n - 1].number = s->number;
	return true;
}

/* Cleaned, without blanks at its end. */
static void clean_line(struct strbuf *to, const char *line, size_t n)
{
	bool again;

	to->len = 0;
	strbuf_add(to, line, n);
	strbuf_putc(to, '\0');
	to->len = (size_t)(clean(line, n, to->text, &again) - to->text);
	while (again)
		to->len = (size_t)(clean(to->text, to->len, to->text, &again) - to->text);
	while (to->len && to->text[to->len - 1] == ' ')
		to->len--;
}

/* What messages of a log say, each on a line of its own. */
static void push_logged(struct text_splitter *s)
{
	AUTO_STRBUF struct strbuf text = {0};
	const char *line = strbuf_str(&s->logged), *end = line + s->logged.len, *stop;

	do {
		stop = memchr(line, '\n', (size_t)(end - line));
		stop = stop ? stop : end;
		clean_line(&text, line, (size_t)(stop - line));
		push_line(s, arena_strndup(s->arena, text.text, text.len));
		line = stop + 1;
	} while (stop < end);
	s->logged.len = 0;
}

/* True: the line is of a log as JSON, and is replaced by what it says. */
static bool read_log_json(struct text_splitter *s)
{
	switch (log_json_line(&s->log, s->scratch.text, s->scratch.len, &s->logged)) {
	case LOG_JSON_OTHER:
		return false;
	case LOG_JSON_EMPTY:
		s->scratch.len = 0;
		return false;
	case LOG_JSON_TEXT:
		push_logged(s);
	}
	return true;
}

/* A message is where its last line is. True: the line is of a message. */
static bool read_log_fields(struct text_splitter *s, const char *line, size_t n)
{
	const bool own =
		log_fields_line(&s->fields, line, n, s->scratch.text, s->scratch.len, &s->logged);

	if (s->logged.len)
		push_logged(s);
	return own;
}

static void end_log_fields(struct text_splitter *s)
{
	log_fields_end(&s->fields, &s->logged);
	if (s->logged.len)
		push_logged(s);
}

static void add_line(struct text_splitter *s, const char *line, size_t n)
{
	const bool encoded = s->drop_encoded && is_encoded(line, n);

	if (encoded)
		end_log_fields(s);
	else
		clean_line(&s->scratch, line, n);
	if (!encoded && read_log_fields(s, line, n))
		s->scratch.len = 0;
	s->number++;
	if (encoded) {
		add_encoded(s);
		return;
	}
	if (read_log_json(s) || (!s->scratch.len && add_empty(s)))
		return;
	push_line(s, arena_strndup(s->arena, s->scratch.text, s->scratch.len));
}

/* Of a line without an end, which no tool prints, the start is enough. */
static void add_partial(struct text_splitter *s, const char *data, size_t n)
{
	enum { LONGEST = 1 << 20 };
	const size_t room = s->partial.len < LONGEST ? LONGEST - s->partial.len : 0;

	strbuf_add(&s->partial, data, s->drop_encoded && n > room ? room : n);
}

void text_split_add(struct text_splitter *s, const char *data, size_t n)
{
	const char *end = data + n, *stop;

	for (; (stop = memchr(data, '\n', (size_t)(end - data))); data = stop + 1) {
		if (!s->partial.len) {
			add_line(s, data, (size_t)(stop - data));
			continue;
		}
		add_partial(s, data, (size_t)(stop - data));
		add_line(s, s->partial.text, s->partial.len);
		s->partial.len = 0;
	}
	if (data < end)
		add_partial(s, data, (size_t)(end - data));
}

void text_split_end(struct text_splitter *s)
{
	const bool open = s->partial.len;

	if (open)
		add_line(s, s->partial.text, s->partial.len);
	end_log_fields(s);
	if (open)
		s->lines[s->n - 1].open = true;
	strbuf_done(&s->partial);
	strbuf_done(&s->scratch);
	strbuf_done(&s->logged);
	log_json_done(&s->log);
	log_fields_done(&s->fields);
}

struct text_line *text_lines(struct arena *arena, const char *text, size_t size, size_t *ret_n)
{
	struct text_splitter s = {.arena = arena, .squeeze = true};

	text_split_add(&s, text, size);
	text_split_end(&s);
	*ret_n = s.n;
	return s.lines;
}
