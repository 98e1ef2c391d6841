/* SPDX-License-Identifier: Apache-2.0 */
/*
 * util-linux sys-utils/dmesg.c and lib/jsonwrt.c, 2.37 to 2.40; systemd src/shared/logs-show.c and
 * systemd.journal-fields(7), 219 to 257.
 */
#include "ingest/log_json.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* ---- one message ---- */

/* A line of a log has no others within it. */
static void add_message(struct strbuf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		strbuf_putc(out, s[i] == '\n' || s[i] == '\r' || !s[i] ? ' ' : s[i]);
}

/* Text; or its bytes as numbers, if it is not UTF-8. False: it is too long for journalctl, or not there. */
static bool add_value(struct strbuf *out, const json_t *v)
{
	const json_t *byte;
	size_t i;

	if (json_is_string(v)) {
		add_message(out, json_string_value(v), json_string_length(v));
		return true;
	}
	json_array_foreach ((json_t *)v, i, byte) {
		const char c = (char)(json_integer_value(byte) & 0xff);

		add_message(out, &c, 1);
	}
	return json_array_size(v) > 0;
}

/*
 * "__REALTIME_TIMESTAMP", in microseconds: "2026-11-22T09:40:35.123456+0000 " in front of a host's name, as journalctl prints
 * it, "2026-11-22T09:40:35,123456+00:00 " without one, as dmesg.
 */
static void add_time(struct strbuf *out, const json_t *entry, bool of_host)
{
	const char *text = json_string_value(json_object_get(entry, "__REALTIME_TIMESTAMP"));
	uint64_t us;
	char date[32];
	struct tm tm;
	time_t s;

	if (!text || text_to_u64(text, &us) < 0)
		return;
	s = (time_t)(us / 1000000);
	if (gmtime_r(&s, &tm) && strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
		strbuf_printf(out, of_host ? "%s.%06u+0000 " : "%s,%06u+00:00 ", date,
			      (unsigned)(us % 1000000));
}

/* A word that may be in front of a message; NULL: it has none such. */
static const char *word_of(const json_t *entry, const char *key)
{
	const char *s = json_string_value(json_object_get(entry, key));

	return s && *s && !strpbrk(s, " \t\r\n:[]") ? s : NULL;
}

/* "2026-11-22T09:40:35.123456+0000 HOST kernel: MESSAGE" */
static bool add_entry(struct strbuf *out, const json_t *entry)
{
	const char *transport = word_of(entry, "_TRANSPORT"), *host = word_of(entry, "_HOSTNAME");
	const char *name = word_of(entry, "SYSLOG_IDENTIFIER"), *pid = word_of(entry, "_PID");
	const bool kernel = transport && strcmp(transport, "kernel") == 0;

	add_time(out, entry, host);
	if (host)
		strbuf_printf(out, "%s ", host);
	if (kernel)
		strbuf_puts(out, host ? "kernel: " : "");
	else if (name)
		strbuf_printf(out, pid ? "%s[%s]: " : "%s: ", name, pid);
	return add_value(out, json_object_get(entry, "MESSAGE"));
}

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
	return add_value(out, json_object_get(entry, "msg"));
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

static bool is_field_of_journal(const char *key)
{
	return !key[strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")];
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

/* All of a message in one line. NULL: it is something else. */
static json_t *read_object(const char *line, size_t n)
{
	static const char event[] = "data: "; /* of json-sse */
	json_t *v;

	if (starts_with(line, n, event)) {
		line += strlen(event);
		n -= strlen(event);
	}
	if (!starts_with(line, n, "{") || !memmem(line, n, "\"MESSAGE\"", 9))
		return NULL;
	v = json_loadb(line, n - (line[n - 1] == ','), JSON_ALLOW_NUL, NULL);
	if (json_object_get(v, "MESSAGE"))
		return v;
	json_decref(v);
	return NULL;
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
	static const char *const keys[] = {"time",       "msg",
					   "MESSAGE",    "__REALTIME_TIMESTAMP",
					   "_TRANSPORT", "_HOSTNAME",
					   "_PID",       "SYSLOG_IDENTIFIER"};

	return is_one_of(key, keys, ARRAY_LEN(keys));
}

/* False: it is not of the messages that the lines above began, nor begins one. */
static bool take_field(struct log_json *j, const char *line, size_t n)
{
	char key[KEY_SIZE];
	json_t *field;

	if (!read_key(line, n, key) || !(j->in == LOG_JSON_DMESG     ? is_field_of_dmesg(key)
					 : j->in == LOG_JSON_JOURNAL ? is_field_of_journal(key)
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
		j->in == LOG_JSON_DMESG ? add_dmesg(ret, j->entry) : add_entry(ret, j->entry);

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
	j->entry = read_object(line, n);
	return j->entry ? end_message(j, ret) : LOG_JSON_OTHER;
}

enum log_json_line log_json_line(struct log_json *j, const char *line, size_t n, struct strbuf *ret)
{
	trim(&line, &n);
	if (!n || (!j->in && !strchr("{\"d", *line)))
		return LOG_JSON_OTHER;
	return read_line(j, line, n, ret);
}

void log_json_done(struct log_json *j)
{
	json_decref(j->entry);
	*j = (struct log_json){0};
}
