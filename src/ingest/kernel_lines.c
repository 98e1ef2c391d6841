/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the kernel log, in any of the forms that it is shown in. */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/text.h"
#include "machine/kernel_log.h"

#include <stdio.h>
#include <string.h>

/* Without a stamp only what no other program writes; the driver's messages go on without one. */
static bool is_bare(const char *s)
{
	return text_starts_with(s, "NVRM: ") || text_starts_with(s, "pcieport ") ||
	       text_starts_with(s, "DMAR: ") || text_starts_with(s, "AMD-Vi: ");
}

static bool is_log_line(const struct text_line *l)
{
	const char *s = line_text(l);

	return kernel_log_has_stamp(s) || is_bare(s);
}

/* "[    0.000000] Linux version": the log begins with the machine. */
static bool is_first(const struct text_line *l)
{
	return strstr(l->text, "Linux version ") != NULL;
}

size_t kernel_lines_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 1;

	if (!is_log_line(&lines[0]))
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (line_is_blank(&lines[i]))
			continue;
		if (!is_log_line(&lines[i]))
			break;
		end = i + 1;
	}
	p->cut = !is_first(&lines[0]);
	snprintf(p->about, sizeof(p->about), "%zu %s%s", end, text_plural(end, "line", "lines"),
		 p->cut ? ", not from its start" : "");
	return end;
}

/* "Linux version 6.8.0-45-generic (buildd@host) (gcc ...) #45-Ubuntu SMP", "Command line: BOOT_IMAGE=..." */
static void claim_boot_lines(const struct part *p, struct claims *c, const struct text_line *l)
{
	const char *version = strstr(l->text, "Linux version ");
	const char *line = strstr(l->text, "Kernel command line: ");

	if (version)
		claim(c, CLAIM_AT(p, l), version, "proc/version");
	if (line)
		claim(c, CLAIM_AT(p, l), line + strlen("Kernel command line: "), "proc/cmdline");
}

/* "NVRM: Xid (PCI:0000:01:00): 79, ...": a GPU of NVIDIA's, whatever else the text shows. */
static void claim_xid_gpu(const struct part *p, struct claims *c, const struct text_line *l)
{
	const char *at = strstr(l->text, "Xid (PCI:");
	char address[24], name[20];

	if (!at || strstr(l->text, "SXid"))
		return;
	at += strlen("Xid (PCI:");
	snprintf(address, sizeof(address), "%.*s.0", (int)strcspn(at, ").\n") % 16, at);
	if (claim_function(c, CLAIM_AT(p, l), address, name))
		claim_nvidia(c, CLAIM_AT(p, l), name);
}

/* Of a log that says nothing of GPUs the file is there, and empty. */
void kernel_lines_decode(const struct part *p, struct claims *c)
{
	claim_line(c, CLAIM_AT(p, &p->lines[0]), "", "kernel-log.txt");
	if (!p->cut)
		claim_number(c, CLAIM_AT(p, &p->lines[0]), 1, "stated/whole-kernel-log");
	for (size_t i = 0; i < p->n; i++) {
		const struct text_line *l = &p->lines[i];

		if (line_is_blank(l))
			continue;
		if (kernel_log_is_relevant(line_text(l), strlen(line_text(l))))
			claim_line(c, CLAIM_AT(p, l), line_text(l), "kernel-log.txt");
		claim_boot_lines(p, c, l);
		claim_xid_gpu(p, c, l);
	}
}
