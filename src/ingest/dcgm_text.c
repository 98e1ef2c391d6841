/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What dcgmi prints: diag (dcgmi/Diag.cpp of DCGM 2 to 4), health, and nvlink --link-status
 * (dcgmi/Nvlink.cpp).
 */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/machine.h"
#include "machine/observed.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- tables ---- */

static bool is_frame(const struct text_line *l)
{
	return *line_text(l) == '|' || *line_text(l) == '+';
}

/* A title, or the heading of a group of tests: pastes often begin there. */
static bool is_title(const struct text_line *l)
{
	static const char *const groups[] = {"-----  Metadata  --", "-----  Deployment  --",
					     "-----  Hardware  --", "-----  Integration  --",
					     "-----  Stress  --"};

	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		if (strstr(l->text, groups[i]))
			return true;
	return *line_text(l) == '|' &&
	       (strstr(l->text, "Health Monitor Report") ||
		(strstr(l->text, "Diagnostic ") && strstr(l->text, "Result")));
}

size_t dcgm_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 0;

	if (!is_frame(&lines[0]) || !(is_title(&lines[0]) || (n > 1 && is_title(&lines[1]))))
		return 0;
	while (end < n && is_frame(&lines[end]))
		end++;
	p->cut = *line_text(&lines[end - 1]) != '+';
	return end;
}

/* ---- diag ---- */

/* One test of a table: its result, on which GPUs, and its warnings. */
struct test {
	const char *name;
	const struct text_line *line;
	bool failed;
	enum { OF_RESULT, OF_WARNING, OF_NOTE } rows; /* what the last row was of */
	int gpus[64];                                 /* those that failed; none: not shown */
	size_t gpu_n;
	struct strbuf warnings;
};

static void add_gpu(struct test *t, int gpu)
{
	if (gpu >= 0 && t->gpu_n < ARRAY_LEN(t->gpus))
		t->gpus[t->gpu_n++] = gpu;
}

/*
 * "Fail", "Fail - All", "Fail - GPU: 0", "Fail - GPUs: 0, 2"; DCGM 4 has a row "GPU0: Fail" for
 * each GPU.
 */
static void read_result(struct test *t, const struct machine *m, const char *s)
{
	unsigned number;
	int end = 0;

	if (sscanf(s, "GPU%4u: Fail%n", &number, &end) == 1 && end) {
		add_gpu(t, message_gpu(m, number));
		return;
	}
	if (!text_starts_with(s, "Fail") || isalpha((unsigned char)s[4]))
		return;
	t->failed = true;
	s = strchr(s, ':');
	while (s && *s) {
		s += strcspn(s, "0123456789");
		if (sscanf(s, "%4u", &number) == 1)
			add_gpu(t, message_gpu(m, number));
		s += strspn(s, "0123456789");
	}
}

/* "'s NvLink link 3 is currently down", without blanks: the length; 0: something else. */
static size_t down_length(const char *s)
{
	int n = 0;

	(void)sscanf(s,
		     "'sNvLinklink%*2u"
		     "iscurrentlydown%n",
		     &n);
	return (size_t)n;
}

/*
 * The warnings speak of nothing but NVLinks that are down, which is what DCGM calls a failure of
 * its test of PCIe on cards without NVLink (NVIDIA/DCGM#49). Rows are wrapped at any character, so
 * blanks do not count.
 */
static bool only_links(const char *warnings)
{
	static const char advice[] = "RunafielddiagnosticontheGPU";
	AUTO_STRBUF struct strbuf text = {0};
	bool any = false;
	const char *s;

	for (s = warnings; *s; s++)
		if (*s != ' ')
			strbuf_putc(&text, *s);
	for (s = strbuf_str(&text); *s;) {
		size_t n = down_length(s);

		any |= n > 0;
		if (!n && text_starts_with(s, "GPU"))
			n = strlen("GPU") + strspn(s + strlen("GPU"), "0123456789:");
		if (!n && text_starts_with(s, advice))
			n = strlen(advice);
		n = n ? n : strspn(s, ".,");
		if (!n)
			return any && !strchr(s, '.'); /* the rest is cut off */
		s += n;
	}
	return any;
}

static void end_test(const struct part *p, struct machine *m, struct test *t)
{
	const char *said = text_trim(arena_strdup(m->arena, strbuf_str(&t->warnings)));
	const char *at = t->line ? arena_printf(m->arena, "%s:%u", p->file, t->line->number) : "";

	if (t->failed && only_links(said)) {
		message_add(m, p, t->line, MESSAGE_NVLINK_DOWN, t->gpu_n ? t->gpus[0] : -1);
	} else if (t->failed) {
		const char *what = arena_printf(m->arena, "dcgmi diag: %s%s%.160s", t->name,
						*said ? ": " : "", said);

		observed_add_failed_test(m, t->gpu_n ? t->gpus : NULL,
					 t->gpu_n ? t->gpu_n : message_all_gpus(m), what, at);
	}
	strbuf_done(&t->warnings);
	*t = (struct test){0};
}

/*
 * Longer texts go on in the next row, from this very character on. Cells of that table are not
 * wider than the second figure.
 */
#define TEXT_WIDTH 45
#define CELL_WIDTH 48

/*
 * "| PCIe | Fail - All |": both cells, in the arena; false: a frame or a title.
 */
static bool read_cells(struct arena *a, const struct text_line *l, const char **ret_name,
		       const char **ret_value)
{
	const char *s = line_text(l), *bar = *s == '|' ? strchr(s + 1, '|') : NULL, *end;
	size_t n;

	end = bar ? strrchr(s, '|') : NULL;
	if (!bar || end == bar)
		return false;
	*ret_name = text_trim(arena_strndup(a, s + 1, (size_t)(bar - s - 1)));
	n = end > bar + 2 ? (size_t)(end - bar - 2) : 0;
	*ret_value = arena_strndup(a, bar + 2, n > TEXT_WIDTH && n <= CELL_WIDTH ? TEXT_WIDTH : n);
	return !strchr(*ret_name, '=') && !text_starts_with(*ret_name, "---");
}

static void read_row(const struct part *p, struct machine *m, const struct text_line *l,
		     struct test *t)
{
	const char *name, *value;

	if (!read_cells(m->arena, l, &name, &value)) {
		end_test(p, m, t);
		return;
	}
	if (text_starts_with(name, "Warning") || text_starts_with(name, "Error"))
		t->rows = OF_WARNING;
	else if (text_starts_with(name, "Info"))
		t->rows = OF_NOTE;
	else if (*name) {
		end_test(p, m, t);
		t->name = name;
		t->line = l;
	}
	if (!t->line)
		return;
	if (t->rows == OF_WARNING)
		strbuf_puts(&t->warnings, value);
	else if (t->rows == OF_RESULT)
		read_result(t, m, value + strspn(value, " "));
}

/*
 * Of dcgmi health, whose rows name a monitor and end in a sentence, only the links: what else it
 * reports the driver tells too.
 */
static void read_health(const struct part *p, struct machine *m, const struct text_line *l)
{
	const char *link = strstr(l->text, "'s NvLink link "), *gpu = link;
	unsigned number;

	while (gpu && gpu > l->text && strncmp(gpu, "GPU ", 4) != 0)
		gpu--;
	if (link && strstr(link, "is currently down") && sscanf(gpu, "GPU %3u's", &number) == 1)
		message_add(m, p, l, MESSAGE_NVLINK_DOWN, message_gpu(m, number));
}

void dcgm_observe(const struct part *p, struct machine *m)
{
	struct test t = {0};
	bool health = false;

	for (size_t i = 0; i < p->n; i++)
		health |= strstr(p->lines[i].text, "Health Monitor Report") != NULL;
	for (size_t i = 0; i < p->n; i++)
		if (health)
			read_health(p, m, &p->lines[i]);
		else
			read_row(p, m, &p->lines[i], &t);
	end_test(p, m, &t);
}

/* ---- nvlink --link-status ---- */

/* "gpuId 0:" */
static bool read_gpu_id(const struct text_line *l, unsigned *ret)
{
	int end = 0;

	return sscanf(line_text(l), "gpuId %3u:%n", ret, &end) == 1 && end &&
	       !line_text(l)[end + strspn(line_text(l) + end, " ")];
}

/* "U U D D X _": up, down, disabled, not supported; one for each link */
static bool is_states(const struct text_line *l)
{
	return *line_text(l) && strspn(line_text(l), "UDX_ ") == strlen(line_text(l));
}

size_t dcgm_links_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 0, gpus = 0;
	unsigned number;

	while (end + 1 < n && read_gpu_id(&lines[end], &number) && is_states(&lines[end + 1])) {
		gpus++;
		for (end++; end < n && is_states(&lines[end]); end++)
			;
	}
	snprintf(p->about, sizeof(p->about), "%zu %s", gpus, text_plural(gpus, "GPU", "GPUs"));
	return end;
}

void dcgm_links_decode(const struct part *p, struct claims *c)
{
	unsigned number = 0, link = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct text_line *l = &p->lines[i];

		if (read_gpu_id(l, &number)) {
			claim_gpu(c, CLAIM_AT(p, l), number);
			claim_whole(c, "gpu/#%u/link", number); /* a line has all */
			link = 0;
			continue;
		}
		for (const char *s = line_text(l); *s; s++) {
			if (*s == ' ')
				continue;
			if (*s != '_' && link < GPU_NVLINKS)
				claim_number(c, CLAIM_AT(p, l), *s == 'U',
					     "gpu/#%u/link/%02u/state", number, link);
			link++;
		}
	}
}
