/* SPDX-License-Identifier: Apache-2.0 */
/* systemd src/shared/logs-show.c and systemd.journal-fields(7), 219 to 257. */
#include "ingest/log_entry.h"

#include "base/array.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* A line of a log has no others within it. */
static void add_message(struct strbuf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		strbuf_putc(out, s[i] == '\n' || s[i] == '\r' || !s[i] ? ' ' : s[i]);
}

/* A text that is not UTF-8 is given as bytes; journalctl gives none of one that is too long. */
bool log_entry_add_value(struct strbuf *out, const json_t *v)
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
 * "__REALTIME_TIMESTAMP", in microseconds: "2026-11-22T09:40:35.123456+0000 " in front of a host's
 * name, as journalctl prints it, "2026-11-22T09:40:35,123456+00:00 " without one, as dmesg.
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
bool log_entry_write(struct strbuf *out, const json_t *entry)
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
	return log_entry_add_value(out, json_object_get(entry, "MESSAGE"));
}

bool log_entry_is_key(const char *key)
{
	return !key[strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")];
}

bool log_entry_uses(const char *key)
{
	static const char *const keys[] = {"MESSAGE",    "__REALTIME_TIMESTAMP",
					   "_TRANSPORT", "_HOSTNAME",
					   "_PID",       "SYSLOG_IDENTIFIER"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return false;
}
