/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of /proc and the output of small tools: one machine's kernel, driver, modules, limits and
 * variables.
 */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/observed.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t count_while(const struct text_line *lines, size_t n,
			  bool (*belongs)(const struct text_line *l))
{
	size_t end = 0;

	while (end < n && belongs(&lines[end]))
		end++;
	return end;
}

/* The lines of a part as one text. */
static void add_lines(struct strbuf *out, const struct part *p)
{
	for (size_t i = 0; i < p->n; i++)
		strbuf_printf(out, "%s\n", line_text(&p->lines[i]));
}

/* ---- /proc/cmdline ---- */

static bool command_is(const struct part *p, const char *words)
{
	return strstr(p->command, words) != NULL;
}

/* "iommu=pt", "quiet": as nearly all parameters are spelled. */
static bool is_parameter(const char *word)
{
	return islower((unsigned char)*word) && word[strcspn(word, "$#:<>[](){}|")] == '\0' &&
	       word[strlen(word) - 1] != '.';
}

/* The words behind the first one, which may be the rest of a parameter, are parameters. */
bool cmdline_goes_on(const struct text_line *l, const struct text_line *below)
{
	enum { NARROWEST = 40, MOST = 256 };
	const char *words[MOST];
	struct arena *a;
	size_t n;
	bool goes_on;

	if (strlen(l->text) < NARROWEST || line_is_blank(below) || line_is_skipped(below))
		return false;
	a = arena_new();
	n = line_words(a, below, words, MOST);
	goes_on = !strpbrk(words[0], "$#<>[]|") && (n > 1 || is_parameter(words[0]));
	for (size_t i = 1; i < n; i++)
		goes_on &= is_parameter(words[i]);
	arena_free(a);
	return goes_on;
}

/*
 * A line that begins with another parameter may have lost its start, unless the command is above
 * it.
 */
size_t cmdline_match(struct part *p, const struct text_line *lines, size_t n)
{
	const char *s = line_text(&lines[0]);
	bool begins = text_starts_with(s, "BOOT_IMAGE=") || text_starts_with(s, "initrd=");
	bool asked = command_is(p, "/proc/cmdline") && strchr(s, '=') && !strchr(s, '$');
	size_t end = 1;

	if (!begins && !asked && !(text_starts_with(s, "root=") && strchr(s, ' ')))
		return 0;
	while (end < n && cmdline_goes_on(&lines[end - 1], &lines[end]))
		end++;
	p->cut = (!begins && !asked) || end > 1 || lines[end - 1].open;
	return end;
}

/* "root=UUID=...": one machine has it, and clones of its disk. */
static void claim_root(struct claims *c, struct claim_at at, const char *words)
{
	static const char *const starts[] = {"root=UUID=", "root=PARTUUID="};

	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		const char *s = strstr(words, starts[i]);

		if (s && (s == words || s[-1] == ' ')) {
			AUTO_FREE char *id = xstrndup(s, strcspn(s, " "));

			claim(c, at, id, "identity/root");
			return;
		}
	}
}

void claim_cmdline_words(struct claims *c, struct claim_at at, const char *words, bool whole)
{
	claim_root(c, at, words);
	if (whole) {
		claim(c, at, words, "proc/cmdline");
		return;
	}
	claim_line(c, at, words, "stated/cmdline-part");
	claim_cut(c, at, "proc/cmdline");
}

/* The words of a row but those at a break, which may be halves of one. */
static void claim_row_words(const struct part *p, struct claims *c, size_t row)
{
	const struct text_line *l = &p->lines[row];
	const char *s = line_text(l), *end = s + strlen(s);

	if (row)
		s += strcspn(s, " ");
	if (row + 1 < p->n || l->open)
		while (end > s && end[-1] != ' ')
			end--;
	if (end > s) {
		AUTO_FREE char *whole = xstrndup(s, (size_t)(end - s));

		claim_cmdline_words(c, CLAIM_AT(p, l), text_trim(whole), false);
	}
}

void cmdline_decode(const struct part *p, struct claims *c)
{
	if (!p->cut)
		claim_cmdline_words(c, CLAIM_AT(p, &p->lines[0]), line_text(&p->lines[0]), true);
	for (size_t i = 0; p->cut && i < p->n; i++)
		claim_row_words(p, c, i);
}

/* ---- /proc/driver/nvidia ---- */

size_t driver_version_match(struct part *p, const struct text_line *lines, size_t n)
{
	(void)p;
	if (!text_starts_with(line_text(&lines[0]), "NVRM version:"))
		return 0;
	return n > 1 && text_starts_with(line_text(&lines[1]), "GCC version:") ? 2 : 1;
}

void driver_version_decode(const struct part *p, struct claims *c)
{
	AUTO_STRBUF struct strbuf text = {0};

	add_lines(&text, p);
	claim(c, CLAIM_AT(p, &p->lines[0]), strbuf_str(&text), "proc/driver/nvidia/version");
}

/* "ResmanDebugLevel: 4294967295": one-word names, some of which occur only in this file. */
static bool is_param(const struct text_line *l)
{
	const char *s = line_text(l);
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return n > 3 && s[n] == ':' && isupper((unsigned char)*s) && (s[n + 1] == ' ' || !s[n + 1]);
}

/*
 * "RegistryDwords: "a=1;b=" that a terminal or the end of a text broke: the number of the line; 0:
 * there is none.
 */
static unsigned unclosed_quote(const struct text_line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *open = strchr(lines[i].text, '"');

		if (open && !strchr(open + 1, '"'))
			return lines[i].number;
	}
	return 0;
}

size_t driver_params_match(struct part *p, const struct text_line *lines, size_t n)
{
	static const char *const firsts[] = {"ResmanDebugLevel:", "RmLogonRC:", "EnableMSI:",
					     "RegistryDwords:"};
	size_t end;

	for (size_t i = 0; i < ARRAY_LEN(firsts); i++) {
		if (!text_starts_with(line_text(&lines[0]), firsts[i]))
			continue;
		end = count_while(lines, n, is_param);
		p->cut = end <
			 /* the file has more keys; one that is missing in an excerpt is unknown */
			 20;
		p->cut_at = unclosed_quote(lines, end);
		return end;
	}
	return 0;
}

void driver_params_decode(const struct part *p, struct claims *c)
{
	AUTO_STRBUF struct strbuf text = {0};

	add_lines(&text, p);
	if (!p->cut)
		claim(c, CLAIM_AT(p, &p->lines[0]), strbuf_str(&text), "proc/driver/nvidia/params");
}

static bool is_information(const struct text_line *l)
{
	static const char *const keys[] = {
		"Model:",        "IRQ:",          "GPU UUID:",     "Video BIOS:",
		"Bus Type:",     "DMA Size:",     "DMA Mask:",     "Bus Location:",
		"Device Minor:", "GPU Firmware:", "GPU Excluded:",
	};

	return text_starts_with_any(line_text(l), keys, ARRAY_LEN(keys));
}

size_t gpu_information_match(struct part *p, const struct text_line *lines, size_t n)
{
	(void)p;
	if (!text_starts_with(line_text(&lines[0]), "Model:"))
		return 0;
	n = count_while(lines, n, is_information);
	return n > 2 ? n : 0;
}

void gpu_information_decode(const struct part *p, struct claims *c)
{
	AUTO_STRBUF struct strbuf text = {0};
	char name[20];

	for (size_t i = 0; i < p->n; i++) {
		const char *location = line_value(&p->lines[i], "Bus Location");

		if (!location || !claim_function(c, CLAIM_AT(p, &p->lines[i]), location, name))
			continue;
		claim_nvidia(c, CLAIM_AT(p, &p->lines[i]), name);
		add_lines(&text, p);
		claim(c, CLAIM_AT(p, &p->lines[0]), strbuf_str(&text),
		      "proc/driver/nvidia/gpus/%s/information", name);
		return;
	}
}

/* ---- lsmod ---- */

/* "nvidia_uvm           4915200  2 nvidia_peermem": name, size, users, and by whom. */
static bool read_module(const struct text_line *l, char name[64], unsigned long *ret_size,
			unsigned *ret_users, char by[512])
{
	int end = 0;
	const char *s = line_text(l), *number = s;

	while (isalnum((unsigned char)*number) || *number == '_')
		number++;
	if (isdigit((unsigned char)*s) || *number != ' ' ||
	    !isdigit((unsigned char)number[strspn(number, " ")]))
		return false; /* as on nearly every line of a log */
	if (sscanf(s, "%63[A-Za-z0-9_] %12lu %6u%n", name, ret_size, ret_users, &end) != 3 ||
	    !end || (s[end] && s[end] != ' ') || *ret_size < 4096)
		return false;
	s += end + strspn(s + end, " ");
	text_copy(by, 512, s, strlen(s));
	return !strpbrk(s, " .:;|");
}

static bool is_module(const struct text_line *l)
{
	char name[64], by[512];
	unsigned long size;
	unsigned users;

	return read_module(l, name, &size, &users, by);
}

static bool is_lsmod_header(const struct text_line *l)
{
	return text_starts_with(line_text(l), "Module ") && strstr(l->text, "Size  Used by");
}

/* Modules whose absence a rule asks for. */
static const char *const sought[] = {"nvidia", "nvidia_peermem", "nv_peer_mem"};

/* The word that "lsmod | grep WORD" looks for; false: another command, or another form of it. */
static bool grep_word(const char *command, char *buf, size_t size)
{
	const char *s = strstr(command, "lsmod"), *grep = s ? strstr(s, "grep ") : NULL;
	size_t n;

	if (!grep || s[strlen("lsmod") + strspn(s + strlen("lsmod"), " ")] != '|')
		return false;
	s = grep + strlen("grep ");
	if (text_starts_with(s, "-i "))
		s += 3;
	s += strspn(s, " \"'");
	n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");
	text_copy(buf, size, s, n);
	s += n + strspn(s + n, "\"'");
	return n >= 3 && n < size && !*s;
}

/* "$ uname -r", "root@box:~# ls": a prompt with a command behind it. */
static bool is_prompt(const struct text_line *l)
{
	const char *s = line_text(l), *mark = strpbrk(s, "$#");

	return mark && mark[1] == ' ' && mark[2] && !memchr(s, ' ', (size_t)(mark - s));
}

/* "$ lsmod | grep nv_peer_mem" with the next command right below it: no such module is loaded. */
size_t lsmod_none_match(struct part *p, const struct text_line *lines, size_t n)
{
	char word[40];

	if (n < 2 || !is_prompt(&lines[0]) || !is_prompt(&lines[1]) ||
	    !grep_word(line_text(&lines[0]), word, sizeof(word)))
		return 0;
	snprintf(p->about, sizeof(p->about), "no module with \"%s\"", word);
	return 1;
}

/*
 * Not a fact: the lines may be missing because the author left them out. The modules that the
 * command would have shown follow its line.
 */
void lsmod_none_observe(const struct part *p, struct machine *m)
{
	char word[40];

	if (!grep_word(line_text(&p->lines[0]), word, sizeof(word)))
		return;
	for (size_t i = 0; i < ARRAY_LEN(sought); i++) {
		struct observed *o;

		if (!strstr(sought[i], word))
			continue;
		o = observed_add(m, OBSERVED_MESSAGE, -1, -1,
				 arena_printf(m->arena, "%s:%u", p->file, p->lines[0].number));
		o->message = MESSAGE_MODULE_NOT_LISTED;
		o->text = sought[i];
	}
}

/* After a grep the header is missing, and a module that is not listed may be loaded. */
size_t lsmod_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t header = is_lsmod_header(&lines[0]) ? 1 : 0;
	size_t end = header + count_while(lines + header, n - header, is_module);

	if (end == header)
		return 0;
	p->cut = !header || command_is(p, "grep") || end < 12;
	snprintf(p->about, sizeof(p->about), "%zu %s%s", end - header,
		 text_plural(end - header, "module", "modules"), p->cut ? ", not all" : "");
	return end;
}

/* /proc/modules has the same words in another order, and more. */
void lsmod_decode(const struct part *p, struct claims *c)
{
	AUTO_STRBUF struct strbuf text = {0};

	for (size_t i = 0; i < p->n; i++) {
		char name[64], by[512];
		unsigned long size;
		unsigned users;

		if (!read_module(&p->lines[i], name, &size, &users, by))
			continue;
		if (p->cut)
			claim_number(c, CLAIM_AT(p, &p->lines[i]), users, "stated/modules/%s",
				     name);
		strbuf_printf(&text, "%s %lu %u %s%s Live 0x0\n", name, size, users, *by ? by : "-",
			      *by ? "," : "");
	}
	if (!p->cut)
		claim(c, CLAIM_AT(p, &p->lines[0]), strbuf_str(&text), "proc/modules");
}

/* ---- modinfo ---- */

static bool is_modinfo(const struct text_line *l)
{
	const char *s = line_text(l);
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz_");

	return (n && s[n] == ':') || (*s && line_indent(l) >= 16);
}

size_t modinfo_match(struct part *p, const struct text_line *lines, size_t n)
{
	const char *file = line_value(&lines[0], "filename");

	if (!file || (*file != '/' && *file != '('))
		return 0;
	n = count_while(lines, n, is_modinfo);
	snprintf(p->about, sizeof(p->about), "%s",
		 strrchr(file, '/') ? strrchr(file, '/') + 1 : "");
	return n;
}

/* "nvidia" of "/lib/modules/6.8.0/updates/dkms/nvidia-uvm.ko.zst" is "nvidia_uvm". */
static bool module_name(const char *file, char *buf, size_t size)
{
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
	const char *end = strstr(name, ".ko");

	if (!end)
		return false;
	text_copy(buf, size, name, (size_t)(end - name));
	for (char *s = buf; *s; s++)
		if (*s == '-')
			*s = '_';
	return true;
}

void modinfo_decode(const struct part *p, struct claims *c)
{
	AUTO_STRBUF struct strbuf text = {0};
	const char *file = line_value(&p->lines[0], "filename");
	char name[64];

	if (!module_name(file, name, sizeof(name)))
		return;
	for (size_t i = 1; i < p->n; i++) {
		const char *s = line_text(&p->lines[i]), *colon = strchr(s, ':');

		if (colon && line_indent(&p->lines[i]) < 16 && !p->lines[i].open)
			strbuf_printf(&text, "%.*s=%s\n", (int)(colon - s), s,
				      colon + 1 + strspn(colon + 1, " "));
	}
	claim(c, CLAIM_AT(p, &p->lines[0]), file, "stated/module-files/%s", name);
	claim(c, CLAIM_AT(p, &p->lines[0]), strbuf_str(&text), "modinfo-%s.txt", name);
	claim_extent(c, p, 0, p->n, "stated/modinfo/%s", name);
}

/* ---- uname -a ---- */

/* "Linux HOST 6.8.0-45-generic #45-Ubuntu SMP ...": the third word. */
size_t uname_match(struct part *p, const struct text_line *lines, size_t n)
{
	const char *s = line_text(&lines[0]);

	(void)p;
	(void)n;
	return (text_starts_with(s, "Linux ") && strstr(s, " #") && strstr(s, " SMP")) ||
			       text_starts_with(s, "Linux version ")
		       ? 1
		       : 0;
}

bool uname_host(const struct part *p, char *buf, size_t size)
{
	const char *s = line_text(&p->lines[0]);

	if (text_starts_with(s, "Linux version "))
		return false;
	s += strlen("Linux ");
	text_copy(buf, size, s, strcspn(s, " "));
	return true;
}

void uname_decode(const struct part *p, struct claims *c)
{
	const char *s = line_text(&p->lines[0]);
	char release[128];

	if (text_starts_with(s, "Linux version ")) {
		claim(c, CLAIM_AT(p, &p->lines[0]), s, "proc/version");
		return;
	}
	s += strlen("Linux ");
	s += strcspn(s, " ");
	s += strspn(s, " ");
	snprintf(release, sizeof(release), "Linux version %.*s", (int)strcspn(s, " "), s);
	if (isdigit((unsigned char)*s))
		claim(c, CLAIM_AT(p, &p->lines[0]), release, "proc/version");
}

/* ---- environment variables ---- */

static size_t name_length(const char *s)
{
	static const char *const names[] = {"NCCL_",
					    "CUDA_VISIBLE_DEVICES",
					    "CUDA_DEVICE_ORDER",
					    "NVIDIA_VISIBLE_DEVICES",
					    "UCX_",
					    "VLLM_",
					    "TORCH_NCCL_"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (text_starts_with(s, names[i])) {
			size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

			return s[n] == '=' ? n : 0;
		}
	return 0;
}

/* "NCCL_P2P_LEVEL=SYS", "export NCCL_DEBUG=INFO", "declare -x ..." */
static const char *variable_at(const struct text_line *l)
{
	static const char *const before[] = {"export ", "declare -x ", "- ", "set "};
	const char *s = line_text(l);

	for (size_t i = 0; i < ARRAY_LEN(before); i++)
		if (text_starts_with(s, before[i]))
			s += strlen(before[i]);
	return name_length(s) && !strchr(s, '$') ? s : NULL;
}

static bool is_variable(const struct text_line *l)
{
	return variable_at(l) != NULL;
}

static size_t match_variables(struct part *p, const struct text_line *lines, size_t n,
			      bool (*is_one)(const struct text_line *))
{
	n = count_while(lines, n, is_one);
	if (n)
		snprintf(p->about, sizeof(p->about), "%zu %s", n,
			 text_plural(n, "variable", "variables"));
	return n;
}

size_t environment_match(struct part *p, const struct text_line *lines, size_t n)
{
	return match_variables(p, lines, n, is_variable);
}

/*
 * Adds a value without its quotes and returns where it ends, as a shell splits words: a command,
 * another variable or a comment may follow. A list with blanks behind its commas, and a value that
 * begins with a blank, are mistakes worth seeing, so they are kept.
 */
static const char *read_value(const char *s, struct strbuf *ret)
{
	const bool whole = *s == ' ';
	char quote = '\0';

	for (; *s && (quote || *s != ' ' || whole || s[-1] == ','); s++) {
		const bool opens = !quote && (*s == '"' || *s == '\'');

		if (!opens && *s != quote)
			strbuf_putc(ret, *s);
		quote = opens ? *s : *s == quote ? '\0' : quote;
	}
	return s;
}

/* The first variable in the words at s; NULL: none. */
static const char *next_variable(const char *s)
{
	s += strspn(s, " ");
	return name_length(s) ? s : NULL;
}

/* Each by its name, so that two values of one variable are a disagreement. */
void environment_decode(const struct part *p, struct claims *c)
{
	for (size_t i = 0; i < p->n; i++) {
		const char *s = variable_at(&p->lines[i]);

		while (s) {
			AUTO_STRBUF struct strbuf value = {0};
			const size_t name = name_length(s);
			const char *end = read_value(s + name + 1, &value);

			claim(c, CLAIM_AT(p, &p->lines[i]), strbuf_str(&value), "environment/%.*s",
			      (int)name, s);
			s = next_variable(end);
		}
	}
}

/* ---- the launcher of DeepSpeed ---- */

/*
 * "[2024-09-08 23:02:49,632] [INFO] [launch.py:139:main] 0 NCCL_DEBUG=INFO"
 * (deepspeed/launcher/launch.py, 0.3 to 0.17): the rank of the node and each variable that has NCCL
 * in its name; "... Setting CUDA_VISIBLE_DEVICES=0,1" is what the ranks get.
 */
static const char *launched_variable(const struct text_line *l)
{
	static const char set[] = "Setting ";
	const char *s = strstr(l->text, "[launch.py:");
	size_t digits;

	s = s ? strstr(s, ":main] ") : NULL;
	if (!s)
		return NULL;
	s += strlen(":main] ");
	digits = strspn(s, "0123456789");
	if (digits && s[digits] == ' ')
		s += digits + 1;
	else if (text_starts_with(s, set))
		s += strlen(set);
	else
		return NULL;
	digits = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	return digits && s[digits] == '=' ? s : NULL;
}

static bool is_launched_variable(const struct text_line *l)
{
	return launched_variable(l) != NULL;
}

size_t deepspeed_match(struct part *p, const struct text_line *lines, size_t n)
{
	return match_variables(p, lines, n, is_launched_variable);
}

/* The value is the rest of the line: no shell reads it. */
void deepspeed_decode(const struct part *p, struct claims *c)
{
	for (size_t i = 0; i < p->n; i++) {
		const char *s = launched_variable(&p->lines[i]);
		const size_t name = s ? name_length(s) : 0;

		if (name)
			claim(c, CLAIM_AT(p, &p->lines[i]), s + name + 1, "environment/%.*s",
			      (int)name, s);
	}
}
