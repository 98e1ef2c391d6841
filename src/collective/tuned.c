/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/tuned.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "collective/operation.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define HEADER    "onehop-tune 1"
#define LAST_LINE "end"
#define UNKNOWN   "-"

static const char *const kind_words[TUNED_KIND_N] = {
	[TUNED_HOST] = "host",
	[TUNED_DIRECT] = "direct",
	[TUNED_MIXED] = "mixed",
};

struct reader {
	const char *at, *end; /* what is left of the line, of the text */
	unsigned line;
	bool ended;
	struct tuned t;
};

/* ---- words ---- */

static bool at_line_end(const struct reader *r)
{
	return *r->at == '\n';
}

/*
 * One blank is before each word but the first. The newline that ends the line is known to be there.
 */
static int read_word(struct reader *r, const char *what, char *buf, size_t size)
{
	size_t n = 0;

	if (*r->at == ' ')
		r->at++;
	while (isgraph((unsigned char)r->at[n]))
		n++;
	if (n == 0)
		return err_set(EINVAL, "the %s is missing", what);
	if (n >= size)
		return err_set(EINVAL, "the %s has more than %zu characters", what, size - 1);
	if (r->at[n] != ' ' && r->at[n] != '\n')
		return err_set(EINVAL, "the %s contains a character that is not printable ASCII",
			       what);
	memset(buf, 0, size);
	memcpy(buf, r->at, n);
	r->at += n;
	return 0;
}

static int read_known(struct reader *r, const char *what, char *buf)
{
	int e = read_word(r, what, buf, TUNED_WORD_SIZE);

	if (e == 0 && strcmp(buf, UNKNOWN) == 0)
		memset(buf, 0, TUNED_WORD_SIZE);
	return e;
}

static int read_number(struct reader *r, const char *what, uint64_t least, uint64_t most,
		       uint64_t *ret)
{
	char word[TUNED_WORD_SIZE];
	uint64_t value = 0;
	int e = read_word(r, what, word, sizeof(word));

	if (e < 0)
		return e;
	if (text_to_count(word, &value) < 0 || value < least || value > most)
		return err_set(EINVAL, "the %s must be a number from %llu to %llu, not '%s'", what,
			       (unsigned long long)least, (unsigned long long)most, word);
	*ret = value;
	return 0;
}

/* The row of a table of words. */
static int read_choice(struct reader *r, const char *what, const char *(*word_of)(unsigned),
		       unsigned n, unsigned *ret)
{
	char word[TUNED_WORD_SIZE];
	int e = read_word(r, what, word, sizeof(word));

	if (e < 0)
		return e;
	for (*ret = 0; *ret < n; (*ret)++)
		if (strcmp(word, word_of(*ret)) == 0)
			return 0;
	return err_set(EINVAL, "there is no %s '%s'", what, word);
}

static const char *kind_at(unsigned i)
{
	return kind_words[i];
}

static const char *operation_at(unsigned i)
{
	return operation_word((enum operation)i);
}

static const char *algorithm_at(unsigned i)
{
	return algorithm_word((enum algorithm)i);
}

/* ---- lines ---- */

static int read_measured(struct reader *r)
{
	char word[TUNED_WORD_SIZE];
	int e = *r->t.date ? err_set(EINVAL, "there is a second date")
			   : read_word(r, "date", word, sizeof(word));

	if (e < 0)
		return e;
	if (!date_is_one(word))
		return err_set(EINVAL, "'%s' is not a date like 2026-01-31T10:20:30Z", word);
	memcpy(r->t.date, word, sizeof(r->t.date));
	return 0;
}

static int read_driver(struct reader *r)
{
	if (*r->t.identity.driver)
		return err_set(EINVAL, "there is a second driver");
	return read_known(r, "driver's version", r->t.identity.driver);
}

static int check_other_devices(const struct tuned_identity *id)
{
	const char *key = id->device[id->n].key;

	for (unsigned i = 0; *key && i < id->n; i++)
		if (strcmp(id->device[i].key, key) == 0)
			return err_set(EINVAL, "there is a second device %s", key);
	return 0;
}

static int read_device(struct reader *r)
{
	struct tuned_identity *id = &r->t.identity;
	int e;

	if (id->n == COLLECTIVE_RANKS_MAX)
		return err_set(EINVAL, "there are more than %d devices", COLLECTIVE_RANKS_MAX);
	e = read_known(r, "device's name", id->device[id->n].key);
	if (e == 0)
		e = read_known(r, "device's UUID", id->device[id->n].uuid);
	if (e == 0)
		e = check_other_devices(id);
	id->n += e == 0;
	return e;
}

static int read_path(struct reader *r)
{
	struct tuned_identity *id = &r->t.identity;
	const uint64_t most = id->n ? id->n - 1 : 0;
	uint64_t i = 0, j = 0;
	int e = read_number(r, "first device of a path", 0, most, &i);

	if (e == 0)
		e = read_number(r, "second device of a path", 0, most, &j);
	if (e < 0)
		return e;
	if (i == j)
		return err_set(EINVAL, "a path from device %llu to itself", (unsigned long long)i);
	if (*id->path[i][j])
		return err_set(EINVAL, "there is a second path from device %llu to device %llu",
			       (unsigned long long)i, (unsigned long long)j);
	return read_known(r, "class of the path", id->path[i][j]);
}

static int read_size(struct reader *r, unsigned *ret)
{
	uint64_t bytes = 0;
	int e = read_number(r, "size", tuned_size(0), tuned_size(TUNED_SIZES - 1), &bytes);

	if (e < 0)
		return e;
	for (*ret = 0; *ret < TUNED_SIZES; (*ret)++)
		if (tuned_size(*ret) == bytes)
			return 0;
	return err_set(EINVAL, "%llu bytes is not a size of the table; those are 16, 64, ... %llu",
		       (unsigned long long)bytes, (unsigned long long)tuned_size(TUNED_SIZES - 1));
}

static int check_algorithm(enum operation o, enum algorithm a)
{
	return operation_can_use(o, a) ? 0
				       : err_set(EINVAL, "%s cannot run as %s", operation_word(o),
						 algorithm_word(a));
}

static int read_time(struct reader *r)
{
	unsigned kind = 0, operation = 0, size = 0, algorithm = 0;
	uint32_t *cell;
	uint64_t ns = 0;
	int e = read_choice(r, "kind of path", kind_at, TUNED_KIND_N, &kind);

	if (e == 0)
		e = read_choice(r, "operation", operation_at, OPERATION_N, &operation);
	if (e == 0)
		e = read_size(r, &size);
	while (e == 0) {
		e = read_choice(r, "algorithm", algorithm_at, ALGORITHM_N, &algorithm);
		if (e == 0)
			e = check_algorithm((enum operation)operation, (enum algorithm)algorithm);
		if (e == 0)
			e = read_number(r, "time", 1, UINT32_MAX, &ns);
		if (e < 0)
			return e;
		cell = &r->t.times[kind].ns[operation][algorithm][size];
		if (*cell)
			return err_set(EINVAL, "there is a second time of %s",
				       algorithm_at(algorithm));
		*cell = (uint32_t)ns;
		if (at_line_end(r))
			break;
	}
	return e;
}

static int read_end(struct reader *r)
{
	r->ended = true;
	return 0;
}

static const struct {
	const char *word;
	int (*read)(struct reader *r);
} lines[] = {
	{"measured", read_measured}, {"driver", read_driver}, {"device", read_device},
	{"path", read_path},         {"time", read_time},     {LAST_LINE, read_end},
};

static const char *line_at(unsigned i)
{
	return lines[i].word;
}

static int read_line(struct reader *r)
{
	unsigned i = 0;
	int e;

	if (r->ended)
		return err_set(EINVAL, "there is a line after '" LAST_LINE "'");
	e = read_choice(r, "kind of line", line_at, ARRAY_LEN(lines), &i);
	if (e == 0)
		e = lines[i].read(r);
	return e < 0 || at_line_end(r) ? e
				       : err_set(EINVAL, "there is more than belongs in the line");
}

/* ---- the text ---- */

static int read_header(struct reader *r)
{
	static const char header[] = HEADER "\n";
	const size_t n = sizeof(header) - 1;

	if ((size_t)(r->end - r->at) < n || memcmp(r->at, header, n) != 0)
		return err_set(EINVAL, "the first line must be '" HEADER "'");
	r->at += n - 1;
	return 0;
}

/* Whether a line is left; then the reader is at its start. */
static bool next_line(struct reader *r)
{
	r->line++;
	return ++r->at < r->end;
}

static int read_lines(struct reader *r)
{
	int e = read_header(r);

	while (e == 0 && next_line(r)) {
		const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));

		if (!newline)
			return err_set(EINVAL, "the text ends within the line");
		if (*r->at != '#')
			e = *r->at == ' ' ? err_set(EINVAL, "the line starts with a blank")
					  : read_line(r);
		if (e == 0)
			r->at = newline;
	}
	return e;
}

static int check_whole(const struct reader *r)
{
	if (!r->ended)
		return err_set(EINVAL, "the last line, '" LAST_LINE "', is missing");
	if (!*r->t.date)
		return err_set(EINVAL, "there is no date ('measured')");
	if (r->t.identity.n < 2)
		return err_set(EINVAL, "there must be at least 2 devices, not %u", r->t.identity.n);
	return 0;
}

int tuned_parse(const char *text, size_t size, const char *name, struct tuned *ret)
{
	struct reader r = {.at = text, .end = text + size, .line = 1};
	int e;

	memset(&r.t, 0, sizeof(r.t));
	e = read_lines(&r);
	if (e == 0)
		e = check_whole(&r);
	if (e < 0)
		return err_wrap(e, "%s:%u", name, r.line);
	*ret = r.t;
	return 0;
}

static int read_file(int fd, char *text, size_t room, size_t *ret)
{
	ssize_t n = 0;

	for (*ret = 0; *ret < room; *ret += (size_t)n) {
		n = read(fd, text + *ret, room - *ret);
		if (n <= 0)
			break;
	}
	return n < 0 ? -errno : *ret == room ? -EFBIG : 0;
}

int tuned_read(const char *path, struct tuned *ret)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	AUTO_FREE char *text = malloc(TUNED_TEXT_MAX);
	size_t size = 0;
	int r;

	if (fd < 0)
		return err_sys(errno, "cannot read %s", path);
	if (!text)
		return err_set(ENOMEM, "no memory to read %s", path);
	r = read_file(fd, text, TUNED_TEXT_MAX, &size);
	return r < 0 ? err_sys(-r, "cannot read %s", path) : tuned_parse(text, size, path, ret);
}

/* ---- writing ---- */

static const char *known(const char *word)
{
	return *word ? word : UNKNOWN;
}

static void write_identity(const struct tuned_identity *id, FILE *out)
{
	fprintf(out, "driver %s\n", known(id->driver));
	for (unsigned i = 0; i < id->n; i++)
		fprintf(out, "device %s %s\n", known(id->device[i].key), known(id->device[i].uuid));
	for (unsigned i = 0; i < id->n; i++)
		for (unsigned j = 0; j < id->n; j++)
			if (i != j)
				fprintf(out, "path %u %u %s\n", i, j, known(id->path[i][j]));
}

static void write_size(const struct tuned *t, unsigned kind, unsigned operation, unsigned size,
		       FILE *out)
{
	bool any = false;

	for (unsigned a = 0; a < ALGORITHM_N; a++) {
		const uint32_t ns = t->times[kind].ns[operation][a][size];

		if (ns && !any)
			fprintf(out, "time %s %s %llu", kind_at(kind), operation_at(operation),
				(unsigned long long)tuned_size(size));
		if (ns)
			fprintf(out, " %s %u", algorithm_at(a), ns);
		any |= ns != 0;
	}
	if (any)
		fputc('\n', out);
}

void tuned_write(const struct tuned *t, FILE *out)
{
	fputs(HEADER
	      "\n"
	      "# Written by onehop tune; run it again to replace this table.\n"
	      "# time PATH OPERATION BYTES, then ALGORITHM NANOSECONDS for each algorithm; PATH host: without P2P.\n",
	      out);
	fprintf(out, "measured %s\n", t->date);
	write_identity(&t->identity, out);
	for (unsigned k = TUNED_KIND_N; k-- > 0;)
		for (unsigned o = 0; o < OPERATION_N; o++)
			for (unsigned s = 0; s < TUNED_SIZES; s++)
				write_size(t, k, o, s, out);
	fputs(LAST_LINE "\n", out);
}

/* ---- whether it holds ---- */

static bool changed(const char *then, const char *now)
{
	return *then && *now && strcmp(then, now) != 0;
}

static bool device_differs(const struct tuned_identity *then, const struct tuned_identity *now,
			   unsigned i, char *why)
{
	if (changed(then->device[i].key, now->device[i].key)) {
		snprintf(why, TUNED_WHY_SIZE, "device %u was %s and is %s", i, then->device[i].key,
			 now->device[i].key);
		return true;
	}
	if (changed(then->device[i].uuid, now->device[i].uuid)) {
		snprintf(why, TUNED_WHY_SIZE, "device %s was %s and is %s",
			 known(now->device[i].key), then->device[i].uuid, now->device[i].uuid);
		return true;
	}
	return false;
}

static bool path_differs(const struct tuned_identity *then, const struct tuned_identity *now,
			 unsigned i, unsigned j, char *why)
{
	if (!changed(then->path[i][j], now->path[i][j]))
		return false;
	snprintf(why, TUNED_WHY_SIZE, "the path from device %u to device %u was %s and is %s", i, j,
		 then->path[i][j], now->path[i][j]);
	return true;
}

bool tuned_differs(const struct tuned_identity *then, const struct tuned_identity *now,
		   char why[static TUNED_WHY_SIZE])
{
	if (then->n != now->n) {
		snprintf(why, TUNED_WHY_SIZE, "it was measured with %u %s, and this run has %u",
			 then->n, text_plural(then->n, "device", "devices"), now->n);
		return true;
	}
	if (changed(then->driver, now->driver)) {
		snprintf(why, TUNED_WHY_SIZE, "the driver was %s and is %s", then->driver,
			 now->driver);
		return true;
	}
	for (unsigned i = 0; i < now->n; i++)
		if (device_differs(then, now, i, why))
			return true;
	for (unsigned i = 0; i < now->n; i++)
		for (unsigned j = 0; j < now->n; j++)
			if (path_differs(then, now, i, j, why))
				return true;
	return false;
}

static bool lacks(const struct tuned_times *t, enum operation o, enum algorithm wanted)
{
	bool others = false, there = false;

	for (unsigned s = 0; s < TUNED_SIZES; s++)
		for (unsigned a = 0; a < ALGORITHM_N; a++)
			*(a == wanted ? &there : &others) |= t->ns[o][a][s] != 0;
	return others && !there;
}

bool tuned_is_older(const struct tuned_times *t, const struct comm_facts *f)
{
	return (f->groups.n && lacks(t, OPERATION_ALL_REDUCE, PIPED_LEVELS)) ||
	       (f->direct && shares_links(f) && lacks(t, OPERATION_BROADCAST, PIPED_CHAIN));
}

void tuned_apply(const struct tuned *t, const struct tuned_identity *now, struct comm_facts *f)
{
	char why[TUNED_WHY_SIZE];

	if (t && !tuned_differs(&t->identity, now, why))
		f->times = t->times[tuned_kind_of(f->direct, f->mixed)];
}
