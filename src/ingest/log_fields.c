/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd src/shared/logs-show.c, output_verbose and output_export; systemd's "Journal Export
 * Formats".
 */
#include "ingest/log_fields.h"

#include "base/text.h"
#include "ingest/log_entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_BYTES = 8, LONGEST_VALUE = 1 << 20 };

/* ---- fields ---- */

/* A message need not be UTF-8. */
static void set_field(struct log_fields *f, const char *key, const char *value, size_t n)
{
	if (log_entry_uses(key))
		json_object_set_new(f->entry, key, json_stringn_nocheck(value, n));
}

/* Another line of the last value. */
static void add_to_last(struct log_fields *f, const char *s, size_t n)
{
	const json_t *so_far = json_object_get(f->entry, f->last);
	AUTO_STRBUF struct strbuf text = {0};

	if (!json_is_string(so_far) || json_string_length(so_far) + n > LONGEST_VALUE)
		return;
	strbuf_add(&text, json_string_value(so_far), json_string_length(so_far));
	strbuf_putc(&text, ' ');
	strbuf_add(&text, s, n);
	set_field(f, f->last, text.text, text.len);
}

/* "KEY=": the length of the name; 0: it is something else. */
static size_t read_key(const char *s, size_t n, char end, char key[LOG_FIELD_SIZE + 1])
{
	const char *stop = end ? memchr(s, end, n) : s + n;

	if (!stop || stop == s || stop - s > LOG_FIELD_SIZE)
		return 0;
	text_copy(key, LOG_FIELD_SIZE + 1, s, (size_t)(stop - s));
	return log_entry_is_key(key) ? (size_t)(stop - s) : 0;
}

/* Without the indentation of -o verbose, which pages lose, other NAME=VALUE would look the same. */
static bool is_of_journal(const char *key)
{
	static const char *const begins[] = {"_",     "MESSAGE", "PRIORITY", "SYSLOG_",
					     "CODE_", "JOB_",    "UNIT",     "INVOCATION_ID"};

	return text_starts_with_any(key, begins, sizeof(begins) / sizeof(begins[0]));
}

/* ---- values with line breaks ---- */

/* Little-endian. */
static uint64_t size_of(const struct strbuf *b, size_t bytes)
{
	uint64_t size = 0;

	for (size_t i = bytes; i-- > 0;)
		size = size << 8 | (unsigned char)b->text[i];
	return size;
}

/* A page has lost the NULs of the size, and with them those of its bytes that do not print. */
static void end_loose(struct log_fields *f)
{
	const size_t n = f->binary.len - 1; /* without the last line's end */
	size_t at = 0;

	for (size_t bytes = 1; bytes <= 2 && bytes < n; bytes++)
		if (size_of(&f->binary, bytes) == n - bytes)
			at = bytes;
	while (at < n && (unsigned char)f->binary.text[at] < ' ')
		at++;
	set_field(f, f->last, f->binary.text + at, n - at);
	f->value = LOG_FIELDS_TEXT;
}

static void add_binary(struct log_fields *f, const char *s, size_t n)
{
	if (f->binary.len + n > LONGEST_VALUE)
		return;
	strbuf_add(&f->binary, s, n);
	strbuf_putc(&f->binary, '\n');
}

/* The size may contain line breaks too, as 10 and 2570 do. */
static void take_binary(struct log_fields *f, const char *raw, size_t n)
{
	enum { LOW_BYTES = 2 };
	uint64_t size;

	add_binary(f, raw, n);
	if (f->binary.len <= LOW_BYTES)
		return;
	size = f->binary.len > SIZE_BYTES ? size_of(&f->binary, SIZE_BYTES) : UINT64_MAX;
	if (size > LONGEST_VALUE - SIZE_BYTES - 1) {
		f->value = LOG_FIELDS_LOOSE;
	} else if (f->binary.len > SIZE_BYTES + size) {
		set_field(f, f->last, f->binary.text + SIZE_BYTES, (size_t)size);
		f->value = LOG_FIELDS_TEXT;
	}
}

/* ---- where a message begins and ends ---- */

static void begin(struct log_fields *f, int in)
{
	f->in = in;
	f->entry = json_object();
	f->indent = 0;
	f->last[0] = '\0';
}

void log_fields_end(struct log_fields *f, struct strbuf *ret)
{
	if (f->value == LOG_FIELDS_LOOSE)
		end_loose(f);
	if (f->in)
		log_entry_write(ret, f->entry);
	log_fields_done(f);
}

void log_fields_done(struct log_fields *f)
{
	json_decref(f->entry);
	strbuf_done(&f->binary);
	*f = (struct log_fields){0};
}

/*
 * "Sun 2026-11-22 09:40:35.123456 UTC [s=0f..;i=1;b=..;m=..;t=64e2..;x=..]": the time is also in
 * the cursor.
 */
static bool begin_verbose(struct log_fields *f, const char *s, size_t n, struct strbuf *ret)
{
	const char *cursor = n && s[n - 1] == ']' ? memmem(s, n, " [s=", 4) : NULL;
	const char *time = cursor ? memmem(cursor, (size_t)(s + n - cursor), ";t=", 3) : NULL;
	char us[24];

	if (!time)
		return false;
	log_fields_end(f, ret);
	begin(f, LOG_FIELDS_VERBOSE);
	snprintf(us, sizeof(us), "%" PRIu64, (uint64_t)strtoull(time + 3, NULL, 16));
	set_field(f, "__REALTIME_TIMESTAMP", us, strlen(us));
	return true;
}

/* "__CURSOR=s=0f..." is the first field; somebody may have cut it off. */
static void begin_export(struct log_fields *f, const char *key, struct strbuf *ret)
{
	const bool cursor = strcmp(key, "__CURSOR") == 0;
	const bool time = strcmp(key, "__REALTIME_TIMESTAMP") == 0;

	if (f->in == LOG_FIELDS_VERBOSE || (!cursor && !time) ||
	    (f->in && time && !json_object_get(f->entry, key)))
		return;
	log_fields_end(f, ret);
	begin(f, LOG_FIELDS_EXPORT);
}

/* ---- lines ---- */

/* "> " of a quotation; the blanks behind it are those of the line. */
static void skip_quote(const char **s, size_t *n)
{
	for (;;) {
		const char *mark = *s;
		size_t left = *n;

		while (left && *mark == ' ') {
			mark++;
			left--;
		}
		if (!left || *mark != '>')
			return;
		*s = mark + 1;
		*n = left - 1;
		if (*n && **s == ' ') {
			++*s;
			--*n;
		}
	}
}

static size_t count_blanks(const char *s, size_t n)
{
	size_t blanks = 0;

	while (blanks < n && s[blanks] == ' ')
		blanks++;
	return blanks;
}

/* False: the line is not a field. */
static bool take_field(struct log_fields *f, const char *s, size_t n, struct strbuf *ret)
{
	const size_t indent = count_blanks(s, n);
	char key[LOG_FIELD_SIZE + 1];
	const size_t length = read_key(s + indent, n - indent, '=', key);

	if (!length)
		return false;
	if (f->value == LOG_FIELDS_LOOSE)
		end_loose(f);
	begin_export(f, key, ret);
	if (!f->in || (f->in == LOG_FIELDS_VERBOSE && !indent && !is_of_journal(key)))
		return false;
	set_field(f, key, s + indent + length + 1, n - indent - length - 1);
	text_copy(f->last, sizeof(f->last), key, length);
	f->value = LOG_FIELDS_TEXT;
	f->indent = indent;
	return true;
}

/* False: the line is neither more of the last value nor the name of one with line breaks. */
static bool take_more(struct log_fields *f, const char *s, size_t n)
{
	const size_t indent = count_blanks(s, n);
	char key[LOG_FIELD_SIZE + 1];

	if (!n)
		return false;
	if (f->value == LOG_FIELDS_LOOSE) {
		add_binary(f, s, n);
		return true;
	}
	if (f->in == LOG_FIELDS_EXPORT && read_key(s, n, '\0', key)) {
		text_copy(f->last, sizeof(f->last), key, n);
		f->value = LOG_FIELDS_BINARY;
		f->binary.len = 0;
		return true;
	}
	if (f->in == LOG_FIELDS_EXPORT || indent <= f->indent)
		return false;
	add_to_last(f, s + indent, n - indent);
	return true;
}

/* Most lines of a text are of no journal. */
static bool may_begin(const char *s, size_t n)
{
	return n && (s[n - 1] == ']' || *s == '_');
}

bool log_fields_begin(const char *text, size_t n)
{
	static const char first[] = "__CURSOR=";

	return n >= strlen(first) && memcmp(text, first, strlen(first)) == 0;
}

bool log_fields_line(struct log_fields *f, const char *raw, size_t raw_n, const char *plain,
		     size_t n, struct strbuf *ret)
{
	if (f->value == LOG_FIELDS_BINARY) {
		take_binary(f, raw, raw_n);
		return true;
	}
	skip_quote(&plain, &n);
	if (!f->in && !may_begin(plain, n))
		return false;
	if (begin_verbose(f, plain, n, ret) || take_field(f, plain, n, ret))
		return true;
	if (f->in && take_more(f, plain, n))
		return true;
	log_fields_end(f, ret);
	return false;
}
