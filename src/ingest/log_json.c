/* SPDX-License-Identifier: Apache-2.0 */
/*
 * util-linux sys-utils/dmesg.c and lib/jsonwrt.c, 2.37 to 2.40; systemd src/shared/logs-show.c, 219
 * to 257.
 */
#include "ingest/log_json.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ingest/log_entry.h"

#include <string.h>

/* ---- one message ---- */

/* "[    1.234567] msg"; other forms of time are texts. */
static bool add_dmesg(struct strbuf *out, const json_t *entry)
{
	const json_t *time = json_object_get(entry, "time");
	const char *text = json_string_value(time);

	if (json_is_number(time))
		strbuf_printf(out, "[%12.6f] ", json_number_value(time));
	else if (text && *text)
		strbuf_printf(out, *text == '[' || strchr(text, 'T') ? "%s " : "[%s] ", text);
	else
		strbuf_puts(out, "<6>"); /* as dmesg -r */
	return log_entry_add_value(out, json_object_get(entry, "msg"));
}

/* ---- lines ---- */

static bool is_one_of(const char *key, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return false;
}

static bool is_field_of_dmesg(const char *key)
{
	static const char *const keys[] = {"pri", "fac", "time", "msg", "caller"};

	return is_one_of(key, keys, ARRAY_LEN(keys));
}

/* Other programs have such names too, but no object of theirs begins with one of these. */
static bool begins_entry(const char *key)
{
	static const char *const keys[] = {"__CURSOR",
					   "__REALTIME_TIMESTAMP",
					   "__MONOTONIC_TIMESTAMP",
					   "__SEQNUM",
					   "_BOOT_ID",
					   "_MACHINE_ID",
					   "_HOSTNAME",
					   "_TRANSPORT",
					   "_SOURCE_MONOTONIC_TIMESTAMP",
					   "_SOURCE_BOOTTIME_TIMESTAMP",
					   "_RUNTIME_SCOPE",
					   "_KERNEL_SUBSYSTEM",
					   "_KERNEL_DEVICE",
					   "_UDEV_SYSNAME",
					   "PRIORITY",
					   "SYSLOG_FACILITY",
					   "SYSLOG_IDENTIFIER",
					   "MESSAGE"};

	return is_one_of(key, keys, ARRAY_LEN(keys));
}

/* A page may quote the log. */
static void trim(const char **line, size_t *n)
{
	while (*n && strchr(" \t\r", (*line)[*n - 1]) && (*line)[*n - 1])
		--*n;
	while (*n && strchr(" \t>", **line) && **line) {
		++*line;
		--*n;
	}
}

static bool starts_with(const char *line, size_t n, const char *start)
{
	return n >= strlen(start) && memcmp(line, start, strlen(start)) == 0;
}

/* Nothing but brackets: what is between messages. */
static bool is_frame(const char *line, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!line[i] || !strchr("{}[], ", line[i]))
			return false;
	return true;
}

/* What json-sse has in front of a message, and jq -c in front of all of them. */
static void skip_heading(const char **line, size_t *n)
{
	static const char *const headings[] = {"data: ", "{\"dmesg\":", "["};

	for (size_t i = 0; i < ARRAY_LEN(headings); i++)
		if (starts_with(*line, *n, headings[i])) {
			*line += strlen(headings[i]);
			*n -= strlen(headings[i]);
			trim(line, n);
		}
}

/* "pri" and "msg" alone: other programs have objects with such names too. */
static bool is_of_dmesg(const json_t *v)
{
	const char *key;
	json_t *value;

	if (!json_object_get(v, "pri") || !json_object_get(v, "msg"))
		return false;
	json_object_foreach ((json_t *)v, key, value)
		if (!is_field_of_dmesg(key))
			return false;
	return true;
}

static bool add_object(struct strbuf *ret, const json_t *v)
{
	const size_t before = ret->len;
	bool said;

	if (before)
		strbuf_putc(ret, '\n');
	said = is_of_dmesg(v) ? add_dmesg(ret, v)
			      : json_object_get(v, "MESSAGE") && log_entry_write(ret, v);
	if (!said)
		ret->len = before;
	return json_object_get(v, "MESSAGE") || said;
}

/* All of a message in one line, or all messages (jq -c). False: it is something else. */
static bool read_objects(const char *line, size_t n, struct strbuf *ret)
{
	bool found = false;

	skip_heading(&line, &n);
	if (!memmem(line, n, "\"MESSAGE\"", 9) && !memmem(line, n, "\"msg\"", 5))
		return false;
	while (starts_with(line, n, "{")) {
		json_error_t e;
		json_t *v = json_loadb(line, n, JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, &e);

		if (!v)
			break;
		found |= add_object(ret, v);
		json_decref(v);
		for (line += e.position, n -= (size_t)e.position; n && strchr(" ,", *line) && *line;
		     n--)
			line++;
	}
	return found;
}

enum { KEY_SIZE = 48 };

/* `"KEY" : VALUE,`: the key; false: it is something else. */
static bool read_key(const char *line, size_t n, char key[KEY_SIZE])
{
	const char *end = n && *line == '"' ? memchr(line + 1, '"', n - 1) : NULL;
	size_t at;

	if (!end || end - line > KEY_SIZE)
		return false;
	at = (size_t)(end + 1 - line);
	while (at < n && line[at] == ' ')
		at++;
	text_copy(key, KEY_SIZE, line + 1, (size_t)(end - line - 1));
	return at < n && line[at] == ':';
}

/* The same as an object; NULL: the value is not whole. */
static json_t *read_field(const char *line, size_t n)
{
	AUTO_STRBUF struct strbuf text = {0};

	strbuf_putc(&text, '{');
	strbuf_add(&text, line, n - (line[n - 1] == ','));
	strbuf_putc(&text, '}');
	return json_loadb(text.text, text.len, JSON_ALLOW_NUL, NULL);
}

/* What a message is made of; there are many others. */
static bool is_used(const char *key)
{
	return log_entry_uses(key) || strcmp(key, "time") == 0 || strcmp(key, "msg") == 0;
}

/* False: it is not of the messages that the lines above began, nor begins one. */
static bool take_field(struct log_json *j, const char *line, size_t n)
{
	char key[KEY_SIZE];
	json_t *field;

	if (!read_key(line, n, key) || !(j->in == LOG_JSON_DMESG     ? is_field_of_dmesg(key)
					 : j->in == LOG_JSON_JOURNAL ? log_entry_is_key(key)
								     : begins_entry(key)))
		return false;
	j->in = j->in ? j->in : LOG_JSON_JOURNAL;
	j->entry = j->entry ? j->entry : json_object();
	field = is_used(key) ? read_field(line, n) : NULL;
	if (field)
		json_object_update(j->entry, field);
	json_decref(field);
	return true;
}

/* The brace that ends a message. */
static enum log_json_line end_message(struct log_json *j, struct strbuf *ret)
{
	const bool said =
		j->in == LOG_JSON_DMESG ? add_dmesg(ret, j->entry) : log_entry_write(ret, j->entry);

	json_decref(j->entry);
	j->entry = NULL;
	return said ? LOG_JSON_TEXT : LOG_JSON_EMPTY;
}

static enum log_json_line read_line(struct log_json *j, const char *line, size_t n,
				    struct strbuf *ret)
{
	if (j->in && is_frame(line, n))
		return j->entry && memchr(line, '}', n) ? end_message(j, ret) : LOG_JSON_EMPTY;
	if (take_field(j, line, n))
		return LOG_JSON_EMPTY;
	log_json_done(j);
	if (starts_with(line, n, "\"dmesg\"") && line[n - 1] == '[') {
		j->in = LOG_JSON_DMESG;
		return LOG_JSON_EMPTY;
	}
	if (!read_objects(line, n, ret))
		return LOG_JSON_OTHER;
	return ret->len ? LOG_JSON_TEXT : LOG_JSON_EMPTY;
}

enum log_json_line log_json_line(struct log_json *j, const char *line, size_t n, struct strbuf *ret)
{
	trim(&line, &n);
	if (!n || (!j->in && !strchr("{[\"d", *line)))
		return LOG_JSON_OTHER;
	return read_line(j, line, n, ret);
}

void log_json_done(struct log_json *j)
{
	json_decref(j->entry);
	*j = (struct log_json){0};
}
