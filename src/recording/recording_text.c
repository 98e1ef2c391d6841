/* SPDX-License-Identifier: Apache-2.0 */
/* machine.txt and config-space.txt: the text forms of a recording, read and written
 * (docs/recording.md). */
#include "recording/recording_text.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/pci.h"
#include "recording/recording.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define FIRST_LINE "onehop recording 1"
#define DEVICES    "sys/bus/pci/devices"

/* Errors that a recording may hold; others are written as numbers. */
static const struct {
	const char *name;
	int error;
} error_names[] = {
	{"ENOENT", ENOENT}, {"EACCES", EACCES}, {"EPERM", EPERM},     {"EIO", EIO},
	{"EINVAL", EINVAL}, {"ENODEV", ENODEV}, {"ENOTDIR", ENOTDIR}, {"EOPNOTSUPP", EOPNOTSUPP},
	{"EBUSY", EBUSY},   {"EFBIG", EFBIG},   {"ELOOP", ELOOP},     {"ENXIO", ENXIO},
};

static int error_of(const char *name)
{
	uint64_t number;

	for (size_t i = 0; i < sizeof(error_names) / sizeof(*error_names); i++)
		if (strcmp(error_names[i].name, name) == 0)
			return error_names[i].error;
	return text_to_u64(name, &number) == 0 && number && number < 4096 ? (int)number : 0;
}

static void put_error(struct strbuf *out, int error)
{
	for (size_t i = 0; i < sizeof(error_names) / sizeof(*error_names); i++)
		if (error_names[i].error == error) {
			strbuf_puts(out, error_names[i].name);
			return;
		}
	strbuf_printf(out, "%d", error);
}

/* ---- escapes ---- */

static void put_escaped(struct strbuf *out, const char *s, size_t n, const char *also)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '\\')
			strbuf_puts(out, "\\\\");
		else if ((c < 0x20 && c != '\t') || c >= 0x7f || strchr(also, c))
			strbuf_printf(out, "\\x%02x", c);
		else
			strbuf_putc(out, (char)c);
	}
}

/* A name ends at a blank, and must not look like a comment, a section or a listing. */
static void put_name(struct strbuf *out, const char *name, size_t n)
{
	put_escaped(out, name, n ? 1 : 0, " \t#[*");
	put_escaped(out, name + 1, n ? n - 1 : 0, " \t");
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Appends the n escaped bytes at s, and a NUL that is not counted. */
static int put_unescaped(struct strbuf *out, const char *s, size_t n)
{
	strbuf_add(out, "", 0);
	for (size_t i = 0; i < n; i++) {
		if (s[i] != '\\') {
			strbuf_putc(out, s[i]);
		} else if (i + 1 < n && s[i + 1] == '\\') {
			strbuf_putc(out, '\\');
			i++;
		} else if (i + 3 < n && s[i + 1] == 'x' && hex_digit(s[i + 2]) >= 0 &&
			   hex_digit(s[i + 3]) >= 0) {
			strbuf_putc(out, (char)(hex_digit(s[i + 2]) << 4 | hex_digit(s[i + 3])));
			i += 3;
		} else {
			return -EINVAL;
		}
	}
	return 0;
}

/* ---- reading machine.txt ---- */

struct parser {
	const char *file;
	unsigned line;
	struct source *map;
	struct strbuf folder; /* of the current section, unescaped */
	struct strbuf path;   /* of the entry at hand */
	struct strbuf block;  /* text of a "NAME:" entry while its lines come */
	bool in_block, in_section;
};

static int bad_line(const struct parser *p, const char *what)
{
	return err_set(EINVAL, "%s:%u: %s", p->file, p->line, what);
}

static int set_path(struct parser *p, const char *name, size_t n)
{
	p->path.len = 0;
	strbuf_printf(&p->path, "%s%s", strbuf_str(&p->folder), p->folder.len ? "/" : "");
	if (n == 0 || put_unescaped(&p->path, name, n) < 0)
		return bad_line(p, "a name is missing or has a broken escape");
	if (strlen(p->path.text) != p->path.len)
		return bad_line(p, "a name holds a NUL byte");
	if (!path_is_clean(p->path.text))
		return bad_line(p, "a name has an empty, '.' or '..' part");
	return 0;
}

static void end_block(struct parser *p)
{
	if (p->in_block)
		source_put_file(p->map, p->path.text, strbuf_str(&p->block), p->block.len);
	p->in_block = false;
}

static int parse_section(struct parser *p, const char *line, size_t n)
{
	if (n < 2 || line[n - 1] != ']')
		return bad_line(p, "a section is written [FOLDER]");
	p->in_section = true;
	p->folder.len = 0;
	if (put_unescaped(&p->folder, line + 1, n - 2) < 0)
		return bad_line(p, "the folder's name has a broken escape");
	if (strlen(p->folder.text) != p->folder.len)
		return bad_line(p, "the folder's name holds a NUL byte");
	if (p->folder.text[0] == '/')
		return bad_line(p, "a folder's name starts without a slash");
	if (p->folder.len && !path_is_clean(p->folder.text))
		return bad_line(p, "the folder's name has an empty, '.' or '..' part");
	return 0;
}

static int parse_error(struct parser *p, enum source_kind kind, const char *path, const char *name)
{
	int error = error_of(name);

	if (!error)
		return bad_line(p, "unknown error name");
	source_put_error(p->map, path, kind, error);
	return 0;
}

/* Adds one name to a listing, which holds a name a line (base/source.h). */
static int add_listed(struct parser *p, struct strbuf *names, const char *name, size_t n)
{
	size_t start = names->len;

	if (put_unescaped(names, name, n) < 0)
		return bad_line(p, "a listed name has a broken escape");
	if (strlen(names->text + start) != names->len - start ||
	    strpbrk(names->text + start, "\n/"))
		return bad_line(p, "a listed name holds a NUL byte, a newline or a slash");
	strbuf_putc(names, '\n');
	return 0;
}

/* "* name name" or "* ! ERRNO" */
static int parse_list(struct parser *p, const char *line, size_t n)
{
	AUTO_STRBUF struct strbuf names = {0};
	size_t i = 1;
	int r = 0;

	if (!p->folder.len)
		return bad_line(p, "a listing outside any section");
	if (n > 4 && memcmp(line, "* ! ", 4) == 0) {
		AUTO_FREE char *name = xstrndup(line + 4, n - 4);

		return parse_error(p, SOURCE_LIST, p->folder.text, name);
	}
	while (r == 0 && i < n) {
		size_t start;

		while (i < n && line[i] == ' ')
			i++;
		start = i;
		while (i < n && line[i] != ' ')
			i++;
		if (i > start)
			r = add_listed(p, &names, line + start, i - start);
	}
	if (r == 0)
		source_put_list(p->map, p->folder.text, strbuf_str(&names));
	return r;
}

/* What stands between name and value; the leftmost one counts. */
static const struct mark {
	const char *text;
	enum { MARK_TEXT, MARK_LINK, MARK_ERROR } kind;
} marks[] = {
	{" = ", MARK_TEXT},
	{" -> ", MARK_LINK},
	{" ! ", MARK_ERROR},
};

static const struct mark *find_mark(const char *line, size_t n, size_t *ret_at)
{
	for (size_t at = 1; at < n; at++)
		for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
			size_t k = strlen(marks[i].text);

			if (at + k <= n && memcmp(line + at, marks[i].text, k) == 0) {
				*ret_at = at;
				return &marks[i];
			}
		}
	return NULL;
}

static int parse_value(struct parser *p, const struct mark *mark, const char *value, size_t n)
{
	AUTO_STRBUF struct strbuf text = {0};

	if (put_unescaped(&text, value, n) < 0)
		return bad_line(p, "the value has a broken escape");
	switch (mark->kind) {
	case MARK_TEXT:
		strbuf_putc(&text, '\n');
		source_put_file(p->map, p->path.text, text.text, text.len);
		return 0;
	case MARK_LINK:
		if (text_starts_with(strbuf_str(&text), "! "))
			return parse_error(p, SOURCE_LINK, p->path.text, text.text + 2);
		source_put_link(p->map, p->path.text, strbuf_str(&text));
		return 0;
	case MARK_ERROR:
	default:
		return parse_error(p, SOURCE_FILE, p->path.text, strbuf_str(&text));
	}
}

static int start_block(struct parser *p, const char *name, size_t n)
{
	p->block.len = 0;
	p->in_block = true;
	return set_path(p, name, n);
}

static int drop_entry(struct parser *p, const char *name, size_t n)
{
	int r = set_path(p, name, n);

	if (r == 0)
		source_drop(p->map, p->path.text);
	return r;
}

/* Blanks in names are escaped, so the first mark is the one that ends the name. */
static int parse_entry(struct parser *p, const char *line, size_t n)
{
	size_t at = n, value;
	const struct mark *mark = find_mark(line, n, &at);
	int r;

	if (!mark && line[n - 1] == ':')
		return start_block(p, line, n - 1);
	if (!mark && n > 2 && line[0] == '-' && line[1] == ' ')
		return drop_entry(p, line + 2, n - 2);
	if (!mark && n > 2 && memcmp(line + n - 2, " =", 2) == 0) { /* an empty line of text */
		mark = &marks[0];
		at = n - 2;
	}
	if (!mark)
		return bad_line(
			p, "neither 'NAME = TEXT', 'NAME:', 'NAME -> TARGET' nor 'NAME ! ERRNO'");
	r = set_path(p, line, at);
	if (r < 0)
		return r;
	value = at + strlen(mark->text);
	return parse_value(p, mark, value < n ? line + value : "", value < n ? n - value : 0);
}

static int parse_line(struct parser *p, const char *line, size_t n)
{
	if (p->in_block && n && line[0] == '\t') {
		if (put_unescaped(&p->block, line + 1, n - 1) < 0)
			return bad_line(p, "the text has a broken escape");
		strbuf_putc(&p->block, '\n');
		return 0;
	}
	end_block(p);
	if (n == 0 || line[0] == '#')
		return 0;
	if (line[0] == '[')
		return parse_section(p, line, n);
	if (line[0] == '*')
		return parse_list(p, line, n);
	if (!p->in_section && text_starts_with(line, "base "))
		return 0; /* recording.c has followed it */
	return parse_entry(p, line, n);
}

static int check_first_line(struct parser *p, const char *text, size_t size)
{
	size_t n = strlen(FIRST_LINE);

	p->line = 1;
	if (size < n || memcmp(text, FIRST_LINE, n) != 0 || (text[n] && text[n] != '\n'))
		return bad_line(p, "is not a recording: the first line is not '" FIRST_LINE "'");
	if (strlen(text) != size)
		return err_set(EINVAL, "%s: is not text: it holds a NUL byte", p->file);
	return 0;
}

int recording_parse(const char *text, size_t size, const char *file, struct source *map)
{
	struct parser p = {.file = file, .map = map};
	const char *line = NULL;
	size_t n;
	int r = check_first_line(&p, text, size);

	p.line = 0;
	while (r == 0 && text_next_line(&line, &n, text)) {
		p.line++;
		if (p.line > 1)
			r = parse_line(&p, line, n);
	}
	if (r == 0)
		end_block(&p);
	strbuf_done(&p.folder);
	strbuf_done(&p.path);
	strbuf_done(&p.block);
	return r;
}

bool recording_base(const char *text, char *buf, size_t size)
{
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, text)) {
		if (n && line[0] == '[')
			return false;
		if (n > 5 && memcmp(line, "base ", 5) == 0) {
			text_copy(buf, size, line + 5, n - 5);
			return true;
		}
	}
	return false;
}

/* ---- writing machine.txt ---- */

/* "a/b/c": folder "a/b", name "c". A listing belongs to the section of the folder itself. */
static size_t folder_length(const struct source_entry *e)
{
	const char *slash = strrchr(e->path, '/');

	if (e->kind == SOURCE_LIST)
		return strlen(e->path);
	return slash ? (size_t)(slash - e->path) : 0;
}

static void write_list(struct strbuf *out, const struct source_entry *e)
{
	const char *line = NULL;
	size_t n;

	strbuf_putc(out, '*');
	if (e->error) {
		strbuf_puts(out, " ! ");
		put_error(out, e->error);
	}
	while (!e->error && text_next_line(&line, &n, e->data)) {
		strbuf_putc(out, ' ');
		put_escaped(out, line, n, " \t!");
	}
	strbuf_putc(out, '\n');
}

/* Whether "NAME = TEXT" will do. A newline that is missing at the end is added: readers do not
 * care. */
static bool is_one_line(const struct source_entry *e)
{
	const char *newline = memchr(e->data, '\n', e->size);

	return e->size && (!newline || newline == e->data + e->size - 1);
}

static void write_text(struct strbuf *out, const struct source_entry *e)
{
	const char *end = e->data + e->size, *line = e->data;

	strbuf_puts(out, ":\n");
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t n = newline ? (size_t)(newline - line) : (size_t)(end - line);

		strbuf_putc(out, '\t');
		put_escaped(out, line, n, "");
		strbuf_putc(out, '\n');
		line += n + 1;
	}
}

static void write_entry(struct strbuf *out, const struct source_entry *e)
{
	const char *slash = strrchr(e->path, '/'), *name = slash ? slash + 1 : e->path;

	if (e->kind == SOURCE_LIST) {
		write_list(out, e);
		return;
	}
	put_name(out, name, strlen(name));
	if (e->error) {
		strbuf_puts(out, e->kind == SOURCE_LINK ? " -> ! " : " ! ");
		put_error(out, e->error);
		strbuf_putc(out, '\n');
	} else if (e->kind == SOURCE_LINK) {
		strbuf_puts(out, " -> ");
		put_escaped(out, e->data, e->size, "");
		strbuf_putc(out, '\n');
	} else if (is_one_line(e)) {
		strbuf_puts(out, " = ");
		put_escaped(out, e->data, e->size - (e->data[e->size - 1] == '\n'), "");
		strbuf_putc(out, '\n');
	} else {
		write_text(out, e);
	}
}

static int by_folder(const void *a, const void *b)
{
	const struct source_entry *x = a, *y = b;
	size_t n = folder_length(x), k = folder_length(y);
	int c = memcmp(x->path, y->path, n < k ? n : k);

	if (c || n != k)
		return c ? c : (n > k) - (n < k);
	if ((x->kind == SOURCE_LIST) != (y->kind == SOURCE_LIST))
		return x->kind == SOURCE_LIST ? -1 : 1;
	c = strcmp(x->path, y->path);
	return c ? c : (int)x->kind - (int)y->kind;
}

void recording_write(struct source_entry *entries, size_t n, struct strbuf *out)
{
	const char *folder = NULL;
	size_t length = 0;

	qsort(entries, n, sizeof(*entries), by_folder);
	strbuf_puts(out, FIRST_LINE "\n");
	for (size_t i = 0; i < n; i++) {
		const struct source_entry *e = &entries[i];
		size_t k = folder_length(e);

		if (!folder || k != length || memcmp(folder, e->path, k) != 0) {
			folder = e->path;
			length = k;
			strbuf_puts(out, "\n[");
			put_escaped(out, folder, k, "");
			strbuf_puts(out, "]\n");
		}
		write_entry(out, e);
	}
}

/* ---- config-space.txt, lspci's form ---- */

bool recording_is_config(const struct source_entry *e)
{
	return e->kind == SOURCE_FILE && !e->error && text_starts_with(e->path, DEVICES "/") &&
	       text_ends_with(e->path, "/config");
}

static bool is_zero(const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

/* The last row is always there: it tells how much of the space could be read. */
void recording_write_config(const struct source_entry *e, struct strbuf *out)
{
	const char *address = e->path + strlen(DEVICES "/");
	size_t n = e->size & ~(size_t)15;

	strbuf_printf(out, "%.*s\n", (int)strcspn(address, "/"), address);
	for (size_t at = 0; at < n; at += 16) {
		if (at + 16 < n && is_zero(e->data + at, 16))
			continue;
		strbuf_printf(out, "%02zx:", at);
		for (size_t i = 0; i < 16; i++)
			strbuf_printf(out, " %02x", (unsigned char)e->data[at + i]);
		strbuf_putc(out, '\n');
	}
	strbuf_putc(out, '\n');
}

struct dump {
	const char *file;
	unsigned line;
	struct source *map;
	bool in_device;
	char address[PCI_ADDRESS_LEN];
	char bytes[4096];
	size_t size;
	size_t devices;
};

static void end_device(struct dump *d)
{
	char path[sizeof(DEVICES) + PCI_ADDRESS_LEN + 8];

	if (d->in_device && d->size) {
		snprintf(path, sizeof(path), DEVICES "/%s/config", d->address);
		source_put_file(d->map, path, d->bytes, d->size);
		d->devices++;
	}
	d->in_device = false;
}

/* "41:00.0 VGA compatible controller: ..." starts a device; other words than an address are
 * skipped. */
static void start_device(struct dump *d, const char *line, size_t n)
{
	char word[32];
	struct pci_address a;

	text_copy(word, sizeof(word), line, strcspn(line, " \n") < n ? strcspn(line, " \n") : n);
	if (pci_address_parse(word, &a) < 0)
		return;
	end_device(d);
	pci_address_format(a, d->address);
	memset(d->bytes, 0, sizeof(d->bytes));
	d->size = 0;
	d->in_device = true;
}

/* "1a0: 00 11 .." with up to 16 bytes. */
static int parse_row(struct dump *d, const char *line, size_t n)
{
	size_t at = 0, i = 0, k = 0;

	while (i < n && hex_digit(line[i]) >= 0)
		at = at << 4 | (size_t)hex_digit(line[i++]);
	for (i++; i + 2 < n && line[i] == ' '; i += 3) {
		if (hex_digit(line[i + 1]) < 0 || hex_digit(line[i + 2]) < 0)
			break;
		if (k == 16 || at + k >= sizeof(d->bytes))
			return err_set(EINVAL, "%s:%u: bytes beyond configuration space", d->file,
				       d->line);
		d->bytes[at + k++] = (char)(hex_digit(line[i + 1]) << 4 | hex_digit(line[i + 2]));
	}
	if (!k)
		return err_set(EINVAL, "%s:%u: a row without bytes", d->file, d->line);
	if (at + k > d->size)
		d->size = at + k;
	return 0;
}

static bool is_row(const char *line, size_t n)
{
	size_t i = 0;

	while (i < n && i < 4 && hex_digit(line[i]) >= 0)
		i++;
	return (i == 2 || i == 3) && i + 3 < n && line[i] == ':' && line[i + 1] == ' ' &&
	       hex_digit(line[i + 2]) >= 0 && hex_digit(line[i + 3]) >= 0;
}

int recording_parse_config_space(const char *text, size_t size, const char *file,
				 struct source *map)
{
	AUTO_FREE struct dump *d = xcalloc(1, sizeof(*d));
	const char *line = NULL;
	size_t n;
	int r = 0;

	*d = (struct dump){.file = file, .map = map};
	if (strlen(text) != size)
		return err_set(EINVAL, "%s: is not text: it holds a NUL byte", file);
	while (r == 0 && text_next_line(&line, &n, text)) {
		d->line++;
		if (is_row(line, n) && d->in_device)
			r = parse_row(d, line, n);
		else if (n && !isspace((unsigned char)line[0]))
			start_device(d, line, n);
	}
	if (r < 0)
		return r;
	end_device(d);
	if (!d->devices)
		return err_set(EINVAL, "%s: holds no rows of configuration space", file);
	return 0;
}
