/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the kernel log, in any of the forms that it is shown in. */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "machine/kernel_log.h"
#include "machine/machine.h"

#include <stdio.h>
#include <string.h>

/*
 * Without a time stamp only lines that no other program writes; the driver's messages continue
 * without one.
 */
static bool is_bare(const char *s)
{
	return text_starts_with(s, "NVRM: ") || text_starts_with(s, "pcieport ") ||
	       text_starts_with(s, "DMAR: ") || text_starts_with(s, "AMD-Vi: ");
}

/*
 * "[1613602600.236562] [host1:23725:0] cuda_ipc_cache.c:114 UCX ERROR ...": UCX's stamp has the
 * same form.
 */
static bool is_of_ucx(const char *s)
{
	return *s == '[' && strstr(s, "  UCX  ");
}

static bool is_log_line(const struct text_line *l)
{
	const char *s = line_text(l);

	return (kernel_log_has_stamp(s) && !is_of_ucx(s)) || is_bare(s);
}

/* The first lines of the kernel; a quotation in another program's line does not count. */
static const char *boot_value(const struct text_line *l, const char *key)
{
	const char *message = kernel_log_message(line_text(l));

	return text_starts_with(message, key) ? message + strlen(key) : NULL;
}

/* What a break cut off the last line of the log. */
static bool is_rest(const struct part *p, size_t i)
{
	return p->torn && i && i + 1 == p->n && !is_log_line(&p->lines[i]);
}

/* "[    0.000000] Linux version": the log begins at boot. */
bool kernel_line_is_first(const struct text_line *l)
{
	return boot_value(l, "Linux version ") != NULL;
}

/* x86 prints the boot loader's command line first; every architecture prints the effective one. */
static const char *const cmdline_keys[] = {"Kernel command line: ", "Command line: "};

static bool is_boot_line(const struct text_line *l)
{
	return kernel_line_is_first(l) || boot_value(l, cmdline_keys[0]) ||
	       boot_value(l, cmdline_keys[1]);
}

/*
 * "Nov 22 09:40:35 HOST kernel: " of the journal and of syslog: the length of the name; 0: it has
 * none.
 */
static size_t host_of_line(const struct text_line *l, const char **ret)
{
	const char *start = line_text(l), *mark = strstr(start, " kernel: "), *s = mark;

	if (!mark || kernel_log_message(start) <= mark)
		return 0;
	while (s > start && s[-1] != ' ')
		s--;
	*ret = s;
	return s > start ? (size_t)(mark - s) : 0;
}

bool kernel_lines_host(const struct part *p, char *buf, size_t size)
{
	const char *host;
	size_t n = host_of_line(&p->lines[0], &host);

	text_copy(buf, size, n ? host : "", n);
	return n > 0;
}

/* "-- Boot 6d2c... --", "-- Reboot --": what journalctl prints between boots. */
static bool is_separator(const struct text_line *l)
{
	return text_starts_with(line_text(l), "-- Boot ") ||
	       text_starts_with(line_text(l), "-- Reboot --");
}

/* The lines of another host are another log. */
bool kernel_line_is_of_other(const struct text_line *first, const struct text_line *l)
{
	const char *a, *b;
	size_t n = host_of_line(first, &a), k = n ? host_of_line(l, &b) : 0;

	return k && (n != k || memcmp(a, b, n) != 0);
}

size_t kernel_lines_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 1, end_number;

	if (!is_log_line(&lines[0]))
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (line_is_blank(&lines[i]) || is_separator(&lines[i]))
			continue;
		if (!is_log_line(&lines[i]) || kernel_line_is_of_other(&lines[0], &lines[i]))
			break;
		end = i + 1;
	}
	p->cut = !kernel_line_is_first(&lines[0]);
	p->torn = lines[end - 1].open;
	if (end < n && is_boot_line(&lines[end - 1]) &&
	    cmdline_goes_on(&lines[end - 1], &lines[end])) {
		p->torn = true;
		end++;
	}
	/* One line may stand for many of a large log. */
	end_number = lines[end - 1].number - lines[0].number + 1;
	snprintf(p->about, sizeof(p->about), "%zu %s%s", end_number,
		 text_plural(end_number, "line", "lines"), p->cut ? ", not from its start" : "");
	return end;
}

/* Which lines of a large log are kept is decided before it is one part (text_reduce.c). */
struct text_unit kernel_lines_unit(const struct text_line *lines, size_t n)
{
	(void)lines;
	(void)n;
	return (struct text_unit){.n = 1};
}

/* dmesg -T and some forms of the journal print a date. */
static struct claim_at at(const struct part *p, const struct text_line *l)
{
	struct claim_at at = CLAIM_AT(p, l);
	const struct text_time own = text_time_at(line_text(l), NULL);

	if (own.s)
		at.time = own;
	return at;
}

/* "Linux version 6.8.0-45-generic (buildd@host) (gcc ...) #45-Ubuntu SMP" */
static void claim_version(const struct part *p, struct claims *c, const struct text_line *l)
{
	if (kernel_line_is_first(l))
		claim(c, at(p, l), kernel_log_message(line_text(l)), "proc/version");
}

/*
 * The vendor and the product are one text there. Bare machines of a cloud have its name as vendor
 * too.
 */
static void claim_guest(const struct part *p, struct claims *c, const struct text_line *l,
			const char *board)
{
	const char *name = strstr(board, ".metal") ? NULL : hypervisor_of_dmi(board, board);

	if (name)
		claim(c, at(p, l), name, "cpu/guest");
}

/* "DMI: Supermicro SYS-421GE-TNRT/X13DEG-OA, BIOS 2.1 10/30/2023": the product and its board. */
static void claim_board(const struct part *p, struct claims *c, const struct text_line *l)
{
	const char *value = boot_value(l, "DMI: ");

	if (value && strstr(value, ", BIOS ")) {
		AUTO_FREE char *board = xstrndup(value, (size_t)(strstr(value, ", BIOS ") - value));

		claim(c, at(p, l), board, "identity/board");
		claim_guest(p, c, l, board);
	}
}

/* The kernel cuts its own lines, and the last line of a text may be cut or go on behind a break. */
static bool is_whole_value(const struct part *p, size_t i, const char *value)
{
	enum { LOG_LINE = 900 };

	return strlen(value) < LOG_LINE && !(p->torn && i + 1 + is_rest(p, p->n - 1) == p->n);
}

/* Of a line that is cut the last word may be a part of one. */
static void claim_value(const struct part *p, struct claims *c, size_t i, const char *value)
{
	const bool whole = is_whole_value(p, i, value);
	const char *last = strrchr(value, ' ');
	AUTO_FREE char *words = xstrndup(value, whole  ? strlen(value)
						: last ? (size_t)(last - value)
						       : 0);

	claim_cmdline_words(c, at(p, &p->lines[i]), words, whole);
}

/* The first of the keys that the log has: the boot loader's line may lack what was built in. */
static void claim_cmdline(const struct part *p, struct claims *c, size_t boot)
{
	for (size_t k = 0; k < ARRAY_LEN(cmdline_keys); k++) {
		bool found = false;

		for (size_t i = boot; i < p->n; i++) {
			const char *value = boot_value(&p->lines[i], cmdline_keys[k]);

			if (value)
				claim_value(p, c, i, value);
			found |= value != NULL;
		}
		if (found)
			return;
	}
}

/* "NVRM: Xid (PCI:0000:01:00): 79, ...": an NVIDIA GPU, whatever else the text shows. */
static void claim_xid_gpu(const struct part *p, struct claims *c, const struct text_line *l)
{
	const char *message = kernel_log_message(line_text(l));
	const char *xid = text_starts_with(message, "NVRM: ") ? strstr(message, "Xid (PCI:") : NULL;
	char address[24], name[20];

	if (!xid)
		return;
	xid += strlen("Xid (PCI:");
	snprintf(address, sizeof(address), "%.*s.0", (int)strcspn(xid, ").\n") % 16, xid);
	if (claim_function(c, at(p, l), address, name))
		claim_nvidia(c, at(p, l), name);
}

/*
 * "nvidia 0000:01:00.0: BAR 1 [mem ...]: releasing": the driver is bound to this function, and
 * nvidia is bound to nothing but GPUs.
 */
static void claim_resized_gpu(const struct part *p, struct claims *c, const struct text_line *l)
{
	const char *message = kernel_log_message(line_text(l));
	char address[24], name[20];
	int n = 0;

	if (sscanf(message, "nvidia %12[0-9a-f:.]: BAR 1%n", address, &n) != 1 || !n)
		return;
	if (claim_function(c, at(p, l), address, name))
		claim_nvidia(c, at(p, l), name);
}

const char *kernel_line_message(const struct text_line *l)
{
	return kernel_log_message(line_text(l));
}

/* A line of a debug log of NCCL can have a time in front too. */
enum kernel_line_use kernel_line_use(const struct text_line *l)
{
	const char *s = line_text(l);

	if (is_separator(l))
		return KERNEL_LINE_BOOT;
	if (!is_log_line(l) || strstr(s, "NCCL"))
		return KERNEL_LINE_NONE;
	if (is_boot_line(l) || kernel_line_is_of_boot(l))
		return KERNEL_LINE_BOOT;
	return kernel_log_is_relevant(s, strlen(s)) ? KERNEL_LINE_READ : KERNEL_LINE_UNREAD;
}

/* The kernel log is about the whole machine, and only some of it is read. */
const char *kernel_lines_keep(const struct part *p, const struct text_line *l, struct arena *a)
{
	const char *s = line_text(l);

	(void)a;
	if (is_separator(l) || is_rest(p, (size_t)(l - p->lines)))
		return is_separator(l) ? "-- Reboot --" /* a boot's id identifies the machine */
				       : l->text;
	return line_is_blank(l) || is_boot_line(l) || kernel_line_is_of_boot(l) ||
			       kernel_log_is_relevant(s, strlen(s))
		       ? l->text
		       : "[    0.000000] not kept";
}

/* Where the last boot of the log begins; what the boots before it ran no longer holds. */
static size_t last_boot(const struct part *p)
{
	size_t boot = 0;

	for (size_t i = 0; i < p->n; i++)
		if (kernel_line_is_first(&p->lines[i]))
			boot = i;
	return boot;
}

/* For a log without lines about GPUs the file exists and is empty. */
void kernel_lines_decode(const struct part *p, struct claims *c)
{
	size_t boot = last_boot(p);

	claim_line(c, CLAIM_AT(p, &p->lines[0]), "", "kernel-log.txt");
	if (!p->cut)
		claim_number(c, CLAIM_AT(p, &p->lines[0]), 1, "stated/whole-kernel-log");
	for (size_t i = 0; i < p->n; i++) {
		const struct text_line *l = &p->lines[i];

		if (line_is_blank(l) || is_rest(p, i))
			continue;
		if (kernel_log_is_relevant(line_text(l), strlen(line_text(l))))
			claim_line(c, at(p, l), line_text(l), "kernel-log.txt");
		if (i >= boot)
			claim_version(p, c, l);
		claim_board(p, c, l);
		claim_xid_gpu(p, c, l);
		claim_resized_gpu(p, c, l);
	}
	claim_cmdline(p, c, boot);
}
