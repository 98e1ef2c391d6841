/* SPDX-License-Identifier: Apache-2.0 */
#include "check_text.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void assert_has(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text ? text : "(nothing)");
}

void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("there should be no \"%s\" in:\n%s", part, text);
}

char *flat(const char *text)
{
	struct strbuf b = {0};
	bool blank = false;

	for (; *text; text++) {
		blank = blank || *text == ' ' || *text == '\n';
		if (*text == ' ' || *text == '\n')
			continue;
		if (blank && b.len)
			strbuf_putc(&b, ' ');
		strbuf_putc(&b, *text);
		blank = false;
	}
	return b.text ? b.text : xstrdup("");
}

char *file_text(const char *path)
{
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	AUTO_STRBUF struct strbuf b = {0};
	char part[4096];
	size_t n;

	if (!f)
		fail_msg("%s cannot be opened", path);
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		strbuf_add(&b, part, n);
	return xstrdup(strbuf_str(&b));
}

/* "      + options nvidia X=1": a line of a file, whose text is not onehop's. */
static bool is_of_a_file(const char *line)
{
	size_t indent = strspn(line, " ");

	return indent > 5 && (strchr("+-", line[indent]) ? line[indent + 1] == ' ' : true);
}

#define LETTERS "abcdefghijklmnopqrstuvwxyz"

/*
 * What stands behind "1. ", "- ", "Cost: " or "Must contain: "; "Do these yourself:" is a heading.
 */
static const char *behind_label(const char *line)
{
	const char *text = line + strspn(line, " ");
	size_t digits = strspn(text, "0123456789");
	bool capital = *text >= 'A' && *text <= 'Z';
	size_t word = capital + strspn(text + capital, LETTERS);
	size_t letters = word + strspn(text + word, LETTERS " ");
	bool heading = capital && letters > word && strcmp(text + letters, ":") == 0;
	const char *end = digits && text[digits] == '.'                 ? text + digits
			  : letters && text[letters] == ':' && !heading ? text + letters
			  : *text == '-'                                ? text
									: NULL;

	return end ? end + 1 + strspn(end + 1, " ") : text;
}

static bool has_leftover(const char *line)
{
	static const char *const parts[] = {"()",     "[]", "( ",   " )",  "  ",  " ,",
					    "; ;",    ",,", ";;",   ", ;", ": ;", ": ,",
					    "(null)", "``", "...;", "\"\""};
	static const char *const ends[] = {",", ";", " ", "("};
	const char *text = behind_label(line);

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(text, parts[i]))
			return true;
	/* A command has a line of its own, and the sentence goes on behind it. */
	for (size_t i = 0; *text != '`' && i < sizeof(ends) / sizeof(ends[0]); i++)
		if (text_ends_with(text, ends[i]))
			return true;
	return *line &&
	       (!*text || strncmp(text, "...", 3) == 0 || text_starts_with(text, "and more "));
}

char *leftover(const char *text)
{
	AUTO_FREE char *copy = xstrdup(text);

	for (char *rest = copy, *line; (line = strsep(&rest, "\n"));)
		if (!is_of_a_file(line) && has_leftover(line))
			return xstrdup(line);
	return NULL;
}

static bool starts_command(const char *text)
{
	static const char *const starts[] = {
		"modprobe nv",
		"modprobe -",
		"nvidia-smi -",
		"systemctl ",
		"setpci -s",
		"dkms re",
		"dkms in",
		"dkms bu",
		"dkms au",
		"dracut -",
		"update-initramfs -",
		"grubby --",
		"grub-mkconfig -",
		"rm /",
		"grub2-mkconfig -",
		"kernelstub -",
		"apt install",
		"apt-get ",
		"dnf install",
		"rpm-ostree ",
		"proxmox-boot-tool ",
		"journalctl -",
		"mokutil --",
		"onehop undo",
		"onehop fix --",
		"mount -",
		"echo ",
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (strncmp(text, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

const char *bare_command(const char *text)
{
	bool quoted = false;

	for (const char *s = text; *s; s++) {
		quoted ^= *s == '`';
		if (!quoted && (s == text || strchr(" (", s[-1])) && starts_command(s))
			return s;
	}
	return NULL;
}
