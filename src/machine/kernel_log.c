/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel log's lines about GPUs, PCI, IOMMU and RDMA, classified and assigned to devices. */
#include "machine/kernel_log.h"

#include "base/alloc.h"
#include "base/text.h"
#include "machine/read.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 4000 }; /* the newest ones; a flood of AER lines may be endless */

/* ---- what a line starts with ---- */

/* Every strip_ function returns the text after the prefix, NULL if the line has no such prefix. */

/* /dev/kmsg: "6,1234,567890,-;text", the third field in us. */
static const char *strip_kmsg(const char *s, int64_t *ret_time_us)
{
	long long time_us;
	int n = 0;

	if (!isdigit((unsigned char)*s))
		return NULL;
	if (sscanf(s, "%*5u,%*20u,%18lld,%*[^;\n];%n", &time_us, &n) != 1 || !n)
		return NULL;
	*ret_time_us = time_us;
	return s + n;
}

/* journalctl -o short-monotonic: "HOST kernel: text" behind the time; returns the text. */
static const char *behind_host(const char *s)
{
	static const char mark[] = " kernel: ";
	const char *name = s + strspn(s, " ");
	size_t n = strcspn(name, " :");

	return n && text_starts_with(name + n, mark) ? name + n + strlen(mark) : s;
}

/*
 * Up to `most` digits; false: there are none. Every line of a log is looked at, and sscanf takes
 * most of the time.
 */
static bool read_digits(const char **s, unsigned most, int64_t *ret)
{
	unsigned n = 0;

	for (*ret = 0; n < most && isdigit((unsigned char)**s); n++)
		*ret = *ret * 10 + (*(*s)++ - '0');
	return n > 0;
}

/* "[ 1234.567890] text", also with the caller: "[ 1234.567890][ T567] text". */
static const char *strip_seconds(const char *s, int64_t *ret_time_us)
{
	enum { SECONDS = 12, FRACTION = 6 };
	int64_t seconds, us;
	int caller = 0;

	if (*s != '[')
		return NULL;
	s += 1 + strspn(s + 1, " ");
	if (!read_digits(&s, SECONDS, &seconds) || *s++ != '.' || !read_digits(&s, FRACTION, &us) ||
	    *s++ != ']')
		return NULL;
	*ret_time_us = seconds * 1000000 + us;
	if (*s == '[')
		(void)sscanf(s, "[ %*1[TC]%*9u]%n", &caller);
	return behind_host(s + caller);
}

/* dmesg -d and -e: "[ 1234.567890 <    0.000009>] text", "[  +0.000009] text" */
static const char *strip_delta(const char *s, int64_t *ret_time_us)
{
	int n = 0;

	(void)ret_time_us;
	if (*s != '[')
		return NULL;
	(void)sscanf(s, "[%*[ 0-9.] <%*[ 0-9.]>]%n", &n);
	if (!n)
		(void)sscanf(s, "[ +%*[0-9.]]%n", &n);
	return n ? s + n : NULL;
}

/* dmesg -H: "[Nov22 09:40] text" */
static const char *strip_minute(const char *s, int64_t *ret_time_us)
{
	int n = 0;

	(void)ret_time_us;
	if (*s != '[')
		return NULL;
	(void)sscanf(s, "[%*3[A-Za-z]%*2u %*2u:%*2u]%n", &n);
	return n ? s + n : NULL;
}

/* dmesg --time-format iso: "2026-11-22T09:40:35,123456+00:00 text" */
static const char *strip_iso(const char *s, int64_t *ret_time_us)
{
	int n = 0;

	(void)ret_time_us;
	if (!isdigit((unsigned char)*s))
		return NULL;
	(void)sscanf(s, "%*4u-%*2u-%*2uT%*2u:%*2u:%*2u,%*6u%*1[+-]%*2u:%*2u %n", &n);
	return n ? s + n : NULL;
}

/* dmesg -T: "[Mon Jan  5 10:11:12 2026] text" */
static const char *strip_date(const char *s, int64_t *ret_time_us)
{
	int n = 0;

	(void)ret_time_us;
	if (*s != '[')
		return NULL;
	(void)sscanf(s, "[%*3[A-Za-z] %*3[A-Za-z] %*2u %*2u:%*2u:%*2u %*4u]%n", &n);
	return n ? s + n : NULL;
}

/* dmesg -x: "kern  :warn  : [...] text" */
static const char *strip_facility(const char *s, int64_t *ret_time_us)
{
	int n = 0;

	(void)ret_time_us;
	if (*s != 'k')
		return NULL;
	(void)sscanf(s, "kern%*[ ]:%*[a-z]%n", &n);
	s += n + strspn(s + n, " ");
	return n && *s == ':' ? s + 1 : NULL;
}

/* dmesg -r and klogctl: "<6>text" */
static const char *strip_priority(const char *s, int64_t *ret_time_us)
{
	int n = 0;

	(void)ret_time_us;
	if (*s != '<')
		return NULL;
	(void)sscanf(s, "<%*4u>%n", &n);
	return n ? s + n : NULL;
}

/* "1736244000.123456 ", the seconds of journalctl -o short-unix */
static bool is_unix_time(const char *s)
{
	const size_t n = strspn(s, "0123456789");

	return n >= 9 && s[n] == '.' && s[n + 1 + strspn(s + n + 1, "0123456789")] == ' ';
}

/* syslog and journal: "Jan  5 10:11:12 HOST kernel: text", or with an ISO date or seconds. */
static const char *strip_syslog(const char *s, int64_t *ret_time_us)
{
	const char *kernel;

	(void)ret_time_us;
	if (!isalnum((unsigned char)*s))
		return NULL;
	kernel = strstr(s, " kernel: ");
	if (!kernel || kernel - s > 100 ||
	    (!memchr(s, ':', (size_t)(kernel - s)) && !is_unix_time(s)))
		return NULL;
	return kernel + strlen(" kernel: ");
}

/* Outermost first: a journal line may carry a time stamp of its own behind "kernel:". */
static const char *(*const strips[])(const char *, int64_t *) = {
	strip_kmsg,    strip_priority, strip_facility, strip_iso,    strip_syslog,
	strip_seconds, strip_date,     strip_delta,    strip_minute,
};

static const char *strip(const char *s, int64_t *ret_time_us)
{
	*ret_time_us = -1;
	for (size_t i = 0; i < ARRAY_LEN(strips); i++) {
		const char *rest = strips[i](s, ret_time_us);

		if (rest)
			s = rest + strspn(rest, " ");
	}
	return s;
}

/* ---- what a line is ---- */

/*
 * The first row whose words, in that order, are all in the line. `skip`: not worth reporting,
 * whatever else is in it. `begins`: the first of them begins the message; elsewhere it is quoted.
 */
/* clang-format off */
static const struct mark {
	const char *first, *second;
	enum log_kind kind;
	bool skip, begins;
} marks[] = {
	/* Lines of a healthy start that would match below. */
	{"AER: enabled with IRQ", "",                     LOG_OTHER, true},
	{"ommand line: ", "",                             LOG_OTHER, true},
	{"_OSC: ", "",                                    LOG_OTHER, true},

	{"NVRM: ", "Xid (",                               LOG_XID, false, true},
	{"NVRM: BAR", " is 0M",                           LOG_BAR, false, true},
	{"NVRM: ", "I/O region assigned to your NVIDIA",  LOG_BAR, false, true},
	{"SXid (", "",                                    LOG_FABRIC, false},
	{"nvidia-nvswitch", "",                           LOG_FABRIC, false},
	{"NVSwitch", "",                                  LOG_FABRIC, false},
	{"abric", "anager",                               LOG_FABRIC, false},
	{"nv_peer_mem", "",                               LOG_PEERMEM, false},
	{"nv_mem_client", "",                             LOG_PEERMEM, false},
	{"nvidia-peermem", "",                            LOG_PEERMEM, false},
	{"nvidia_peermem", "",                            LOG_PEERMEM, false},
	{"peer_memory_client", "",                        LOG_PEERMEM, false},
	{"peerdirect", "",                                LOG_PEERMEM, false},
	{"memory_peers", "",                              LOG_PEERMEM, false},
	{"gdrdrv", "",                                    LOG_PEERMEM, false},
	{"NVRM: ", "",                                    LOG_NVRM, false, true},

	{"AER: ", "",                                     LOG_AER, false},
	{"PCIe Bus Error: ", "",                          LOG_AER, false},
	{"error status/mask=", "",                        LOG_AER, false},
	{"] ACSViol ", "",                                LOG_AER, false},

	{"DMAR", "fault",                                 LOG_IOMMU_FAULT, false},
	{"DMAR", "PTE Write access is not set",           LOG_IOMMU_FAULT, false},
	{"AMD-Vi: ", "Event logged",                      LOG_IOMMU_FAULT, false},
	{"IO_PAGE_FAULT", "",                             LOG_IOMMU_FAULT, false},
	{"arm-smmu", "event",                             LOG_IOMMU_FAULT, false},

	{"BAR ", "can't assign",                          LOG_BAR, false},
	{"BAR ", "failed to assign",                      LOG_BAR, false},
	{"BAR ", "no space",                              LOG_BAR, false},
	{"BAR ", "can't claim",                           LOG_BAR, false},
	{"bridge window ", "can't assign",                LOG_BAR, false},
	{"bridge window ", "failed to assign",            LOG_BAR, false},
	{"bridge window ", "can't claim",                 LOG_BAR, false},
	{"failed to assign", "BAR",                       LOG_BAR, false},

	{"disagrees about version of symbol", "",         LOG_MODULE, false},
	{"Unknown symbol", "",                            LOG_MODULE, false},
	{"nknown parameter", "",                          LOG_MODULE, false},
	{"odule verification failed", "",                 LOG_MODULE, false},
	{"unsigned module", "",                           LOG_MODULE, false},
	{"Loading of ", "is rejected",                    LOG_MODULE, false},
	{"Key was rejected", "",                          LOG_MODULE, false},
	{"module with invalid ELF", "",                   LOG_MODULE, false},
	{"version magic", "",                             LOG_MODULE, false},
	{"Lockdown: ", "",                                LOG_MODULE, false},
	{"ernel is locked down", "",                      LOG_MODULE, false},

	{"pcie_acs_override", "",                         LOG_ACS, false},
	{"ACS ", "",                                      LOG_ACS, false},

	/* The surroundings. */
	{"DMAR", "",                                      LOG_OTHER, false},
	{"AMD-Vi: ", "",                                  LOG_OTHER, false},
	{"iommu: ", "",                                   LOG_OTHER, false},
	{"esizable BAR", "",                              LOG_OTHER, false},
	{"mlx5_core ", "",                                LOG_OTHER, false},
	{"infiniband ", "",                               LOG_OTHER, false},
	{"nvidia", "",                                    LOG_OTHER, false},
	{"nvlink", "",                                    LOG_OTHER, false},
	{"nouveau ", "",                                  LOG_OTHER, false},
	{"NovaCore ", "",                                 LOG_OTHER, false},
};
/* clang-format on */

/* "systemd[1]: text": written to the kernel log by a program, which may quote anything. */
static bool is_of_program(const char *text)
{
	size_t n = strcspn(text, "[: "),
	       digits = text[n] == '[' ? strspn(text + n + 1, "0123456789") : 0;

	return n && digits && text_starts_with(text + n + 1 + digits, "]: ");
}

static const struct mark *find_mark(const char *text)
{
	const bool of_program = is_of_program(text);

	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		const char *at = strstr(text, marks[i].first);

		/* Of programs only the fabric manager, or systemd about it, is of interest. */
		if (!at || (marks[i].begins && at != text) ||
		    (of_program && marks[i].kind != LOG_FABRIC))
			continue;
		if (strstr(at + strlen(marks[i].first), marks[i].second))
			return marks[i].skip ? NULL : &marks[i];
	}
	return NULL;
}

/* A copy of at most KERNEL_LOG_LINE_MAX - 1 bytes, control characters replaced: they would reach a
 * terminal. */
static void copy_line(char buf[static KERNEL_LOG_LINE_MAX], const char *line, size_t n)
{
	text_copy(buf, KERNEL_LOG_LINE_MAX, line, n);
	for (char *p = buf; *p; p++)
		if (iscntrl((unsigned char)*p))
			*p = *p == '\t' ? ' ' : '?';
}

bool kernel_log_has_stamp(const char *line)
{
	int64_t time_us;

	return strip(line, &time_us) != line + strspn(line, " ");
}

const char *kernel_log_message(const char *line)
{
	int64_t time_us;

	return strip(line, &time_us);
}

bool kernel_log_is_relevant(const char *line, size_t n)
{
	char buf[KERNEL_LOG_LINE_MAX];
	int64_t time_us;

	if (n && *line == ' ') /* /dev/kmsg's " SUBSYSTEM=pci" lines */
		return false;
	copy_line(buf, line, n);
	return find_mark(strip(buf, &time_us)) != NULL;
}

/* ---- which device it names ---- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/*
 * An address at s: "0000:01:00.0", "01:00.0", and NVRM's "0000:01:00" and "00000000:01:00" without
 * a function. Returns its length, 0 for none.
 */
static size_t address_at(const char *s, struct pci_address *ret)
{
	size_t n = strspn(s, "0123456789abcdefABCDEF:");
	char buf[PCI_ADDRESS_LEN];

	while (n && s[n - 1] == ':') /* the colon behind it */
		n--;
	if (n < 5 || n > 14)
		return 0;
	if (s[n] == '.' && s[n + 1] >= '0' && s[n + 1] <= '7' && !is_word(s[n + 2])) {
		text_copy(buf, sizeof(buf), s, n + 2);
		return pci_address_parse(buf, ret) == 0 ? n + 2 : 0;
	}
	if (n < 10 || is_word(s[n])) /* without a function only where the domain is there too */
		return 0;
	snprintf(buf, sizeof(buf), "%.*s.0", (int)n, s);
	return pci_address_parse(buf, ret) == 0 ? n : 0;
}

static bool find_address(const char *text, struct pci_address *ret)
{
	for (const char *p = text; *p; p++) {
		bool inside = p > text && is_word(p[-1]);
		bool nvrm = p - text >= 4 && memcmp(p - 4, "PCI:", 4) == 0;

		if ((!inside || nvrm) && isxdigit((unsigned char)*p) && address_at(p, ret))
			return true;
	}
	return false;
}

/* The device that the line is about follows these words; the port before them only reports it. */
static const char *const subjects[] = {"error received: ", "error message received from "};

static struct pci_function *find_device(const struct machine *m, const char *text)
{
	struct pci_address address;

	for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
		const char *at = strstr(text, subjects[i]);

		if (at && find_address(at + strlen(subjects[i]), &address))
			return pci_find(m, address);
	}
	return find_address(text, &address) ? pci_find(m, address) : NULL;
}

/* ---- what else it says ---- */

/* "Xid (PCI:0000:01:00): 31, ..." and "SXid (PCI:0000:c1:00.0): 12028, ..." */
static struct fact_int xid_code(const char *text)
{
	const char *at = strstr(text, "Xid (");
	unsigned code;

	if (at)
		at = strstr(at, "): ");
	if (!at || sscanf(at + 3, "%9u", &code) != 1)
		return fact_int_unknown("the line shows no number");
	return fact_int(code, "kernel log");
}

/* "device [10de:2204] error status/mask=00001000/00002000" */
static struct fact_int aer_code(const char *text)
{
	static const char mark[] = "error status/mask=";
	const char *at = strstr(text, mark);
	unsigned bits;

	if (!at || sscanf(at + strlen(mark), "%8x", &bits) != 1)
		return fact_int_unknown("the line shows no error bits");
	return fact_int(bits, "kernel log");
}

/* Kernels wrote "Uncorrected" before they wrote "Uncorrectable", so the kind in parentheses counts.
 */
static const char *aer_severity(const char *text)
{
	static const struct {
		const char *word, *severity;
	} words[] = {
		{"Non-Fatal", "nonfatal"}, {"onfatal", "nonfatal"},    {"(Fatal)", "fatal"},
		{"Fatal error", "fatal"},  {"Corrected", "corrected"}, {"Correctable", "corrected"},
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(text, words[i].word))
			return words[i].severity;
	return "";
}

static void add_line(struct reader *r, const struct mark *mark, int64_t time_us, const char *text)
{
	struct machine *m = r->m;
	const struct log_line *before = m->log_n ? &m->log[m->log_n - 1] : NULL;
	bool goes_on = before && before->kind == LOG_AER;
	struct pci_function *before_pci = goes_on ? before->pci : NULL;
	const char *before_severity = goes_on ? before->severity : "";
	struct log_line *l = ARENA_PUSH(m->arena, m->log, m->log_n);

	*l = (struct log_line){
		.kind = mark->kind,
		.time_us = time_us,
		.pci = find_device(m, text),
		.severity = "",
		.text = arena_strdup(m->arena, text),
	};
	if (l->kind == LOG_XID || strstr(text, "SXid ("))
		l->code = xid_code(text);
	if (l->kind != LOG_AER)
		return;
	l->code = aer_code(text);
	l->severity = aer_severity(text);
	/* The line with the bits follows the one with the severity; one that has none at all, such
	 * as "AER: device recovery successful", reports no error. */
	if (!*l->severity && l->pci == before_pci)
		l->severity = before_severity;
	if (!*l->severity)
		l->kind = LOG_OTHER;
}

/* ---- all of it ---- */

/* Keeps the newest relevant lines; most logs are short enough to skip this. */
static size_t count_surplus(const char *log)
{
	const char *line = NULL;
	size_t n, lines = 0, count = 0;

	while (text_next_line(&line, &n, log))
		lines++;
	if (lines <= LINES_MAX)
		return 0;
	for (line = NULL; text_next_line(&line, &n, log);)
		count += kernel_log_is_relevant(line, n);
	return count > LINES_MAX ? count - LINES_MAX : 0;
}

void kernel_log_read(struct reader *r)
{
	struct fact_str log = read_text(r, "kernel-log.txt");
	const char *line = NULL;
	size_t n, skip;

	r->m->log_read = (struct fact_int){1, log.state, log.from};
	if (fact_known(log) && source_stated(r->s) &&
	    !fact_is(read_int(r, "stated/whole-kernel-log"), 1)) {
		const char *gap = read_gap(r, "stated/whole-kernel-log");

		r->m->log_read = fact_int_unknown(
			gap ? gap : "the text holds only a part of the kernel log");
	}
	if (!fact_known(log)) {
		r->m->log_read.value = 0;
		return;
	}
	skip = count_surplus(log.value);
	r->m->log_lacks_older = skip > 0;
	while (text_next_line(&line, &n, log.value)) {
		char buf[KERNEL_LOG_LINE_MAX];
		const struct mark *mark;
		const char *text;
		int64_t time_us;

		if (n && *line == ' ')
			continue;
		copy_line(buf, line, n);
		text = strip(buf, &time_us);
		mark = find_mark(text);
		if (!mark)
			continue;
		if (skip)
			skip--;
		else
			add_line(r, mark, time_us, text);
	}
}
