/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-smi's table, its list (-L) and its NVLinks (nvlink -s). */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/text.h"
#include "machine/machine.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

static bool is_frame(const char *s)
{
	return *s == '|' || *s == '+' || text_starts_with(s, "\xe2\x94") /* box lines */ ||
	       text_starts_with(s, "\xe2\x95");
}

/* "Driver Version: 550.90.07": the word behind the key. */
static bool word_behind(const char *s, const char *key, char *buf, size_t size)
{
	const char *p = strstr(s, key);

	if (!p)
		return false;
	p += strlen(key);
	p += strspn(p, " ");
	text_copy(buf, size, p, strcspn(p, " |"));
	return *buf != '\0';
}

/* "|   0  NVIDIA GeForce RTX 4090        Off |   00000000:01:00.0 Off |                  Off |" */
struct table_row {
	unsigned index;
	char model[64];
	char address[24];
	char display[8]; /* "On", "Off", "N/A" */
	char persistence[8];
};

static bool read_row(const char *s, struct table_row *ret)
{
	const char *bar = *s == '|' ? strchr(s + 1, '|') : NULL;
	char *end, left[96], *p;
	unsigned long index;
	size_t n;

	if (!bar || (size_t)(bar - s) > sizeof(left))
		return false;
	text_copy(left, sizeof(left), s + 1, (size_t)(bar - s - 1));
	p = text_trim(left);
	index = strtoul(p, &end, 10);
	if (end == p || *end != ' ' || index > 255)
		return false;
	*ret = (struct table_row){.index = (unsigned)index};
	p = text_trim(end);
	if (sscanf(bar + 1, " %23[0-9A-Fa-f:.] %7s", ret->address, ret->display) < 1 ||
	    !strchr(ret->address, ':'))
		return false;
	n = strlen(p);
	for (const char *const *w = (const char *const[]){"Off", "On", "N/A", NULL}; *w; w++)
		if (text_ends_with(p, *w)) {
			text_copy(ret->persistence, sizeof(ret->persistence), *w, strlen(*w));
			n -= strlen(*w);
			break;
		}
	while (n && p[n - 1] == ' ')
		n--;
	text_copy(ret->model, sizeof(ret->model), p, n);
	return true;
}

size_t smi_table_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 0, gpus = 0;
	struct table_row row;

	if (!is_frame(line_text(&lines[0])))
		return 0;
	/* "| NVIDIA-SMI 550.90.07   Driver Version: 550.90.07   CUDA Version: 12.4     |" */
	for (size_t i = 0; i < 2 && i < n && !end; i++)
		if (is_frame(line_text(&lines[i])) && strstr(lines[i].text, "NVIDIA-SMI"))
			end = i + 1;
	if (!end && !(is_frame(line_text(&lines[0])) && read_row(line_text(&lines[0]), &row)))
		return 0;
	end = 0;
	while (end < n &&
	       (is_frame(line_text(&lines[end])) || (line_is_blank(&lines[end]) && end + 1 < n &&
						     is_frame(line_text(&lines[end + 1]))))) {
		gpus += read_row(line_text(&lines[end]), &row);
		end++;
	}
	p->cut = !strstr(lines[end - 1].text, "-+") && !strstr(lines[end - 1].text, "\xe2\x95\xaf");
	p->ended = !p->cut;
	p->cut_at = p->cut ? lines[end - 1].number : 0;
	snprintf(p->about, sizeof(p->about), "%zu %s", gpus, text_plural(gpus, "GPU", "GPUs"));
	return end;
}

/* "13.0" is 13000, as NVML gives it. */
static int64_t cuda_number(const char *s)
{
	unsigned major, minor;

	return sscanf(s, "%3u.%2u", &major, &minor) == 2
		       ? major * INT64_C(1000) + minor * INT64_C(10)
		       : -1;
}

static void claim_row(const struct part *p, struct claims *c, const struct text_line *l,
		      const struct table_row *row)
{
	struct claim_at at = CLAIM_AT(p, l);

	claim_gpu_at(c, at, row->index, row->address);
	/* Long names end in "..."; other texts about the same card complete them. */
	if (*row->model && !strstr(row->model, ".."))
		claim(c, at, row->model, "gpu/#%u/model", row->index);
	if (!strcmp(row->display, "On") || !strcmp(row->display, "Off"))
		claim_number(c, at, !strcmp(row->display, "On"), "gpu/#%u/display_active",
			     row->index);
	if (!strcmp(row->persistence, "On") || !strcmp(row->persistence, "Off"))
		claim_number(c, at, !strcmp(row->persistence, "On"), "gpu/#%u/persistence",
			     row->index);
}

/* "| 30%   35C    P8    20W / 450W |      1MiB / 24564MiB |      0%      Default |" */
static void claim_memory(const struct part *p, struct claims *c, const struct text_line *l,
			 unsigned index)
{
	const char *s = line_text(l), *bar = *s ? strchr(s + 1, '|') : NULL;
	const char *state = strstr(s, "C    P");
	uint64_t used, total;

	if (!bar || sscanf(bar + 1, " %" SCNu64 "MiB / %" SCNu64 "MiB", &used, &total) != 2 ||
	    total > (1 << 24))
		return;
	claim_number(c, CLAIM_AT(p, l), (int64_t)total << 20, "gpu/#%u/vram_bytes", index);
	if (state && isdigit((unsigned char)state[6]))
		claim_number(c, CLAIM_AT(p, l), strtol(state + 6, NULL, 10),
			     "gpu/#%u/performance_state", index);
}

/* `nvidia-smi -i 0` prints the table as if there were no other GPU. */
static bool shows_some(const struct part *p)
{
	return strstr(p->command, "nvidia-smi -i") || strstr(p->command, "nvidia-smi --id");
}

void smi_table_decode(const struct part *p, struct claims *c)
{
	bool in_row = false, whole = !p->cut && !shows_some(p), head = false;
	struct table_row row;
	unsigned gpus = 0;
	char word[32];

	for (size_t i = 0; i < p->n; i++) {
		const struct text_line *l = &p->lines[i];
		const char *s = line_text(l);

		if (word_behind(s, "Driver Version:", word, sizeof(word)) &&
		    isdigit((unsigned char)*word))
			claim(c, CLAIM_AT(p, l), word, "gpu/driver");
		if (word_behind(s, "CUDA Version:", word, sizeof(word)) && cuda_number(word) > 0)
			claim_number(c, CLAIM_AT(p, l), cuda_number(word), "gpu/cuda_version");
		if (in_row)
			claim_memory(p, c, l, row.index);
		head |= strstr(s, "NVIDIA-SMI") != NULL;
		in_row = read_row(s, &row);
		if (in_row) {
			claim_row(p, c, l, &row);
			claim_extent(c, p, i, i + 2 < p->n ? i + 2 : p->n, "gpu/#%u", row.index);
			whole &= row.index == gpus++;
		}
		if (strstr(s, "Processes:"))
			break;
	}
	if (whole && head && gpus)
		claim_number(c, CLAIM_AT(p, &p->lines[0]), 1, "stated/all-gpus");
}

/* ---- -L and nvlink -s ---- */

/* "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-...)"; without the UUID as collect_env prints it. */
static bool read_listed(const char *s, unsigned *ret_index, char *model, size_t size,
			const char **ret_uuid)
{
	const char *uuid;
	int end = 0;

	if (!text_starts_with(s, "GPU ") || sscanf(s, "GPU %3u: %n", ret_index, &end) != 1 || !end)
		return false;
	s += end;
	uuid = strstr(s, " (UUID: ");
	*ret_uuid = uuid ? uuid + strlen(" (UUID: ") : NULL;
	text_copy(model, size, s, uuid ? (size_t)(uuid - s) : strlen(s));
	if (text_ends_with(model, " ...")) /* of a progress line, not an abbreviated name */
		model[strlen(model) - strlen(" ...")] = '\0';
	return *model && *ret_index < 256 && !strchr(model, ':') && !text_starts_with(model, "GPU");
}

bool smi_names_gpu(const char *s)
{
	unsigned index;
	const char *uuid;
	char model[96];

	return read_listed(s, &index, model, sizeof(model), &uuid);
}

/*
 * The next GPU in the same line, as in the forms of issues, where line breaks get lost; NULL: none.
 */
static const char *next_listed(const char *uuid)
{
	const char *s = uuid ? strstr(uuid, ") GPU ") : NULL;

	return s ? s + strlen(") ") : NULL;
}

/* "Link 0: 26.562 GB/s", "Link 0: <inactive>" */
static bool read_link(const char *s, unsigned *ret_link, bool *ret_up)
{
	int end = 0;

	if (!text_starts_with(s, "Link ") || sscanf(s, "Link %2u: %n", ret_link, &end) != 1 ||
	    !end || *ret_link >= GPU_NVLINKS)
		return false;
	*ret_up = isdigit((unsigned char)s[end]);
	return *ret_up ? strstr(s + end, "GB/s") != NULL : strstr(s + end, "nactive") != NULL;
}

/* "NVML: Unable to retrieve NVLink information as all links are inActive", instead of a list. */
static bool says_none_up(const char *s)
{
	return strstr(s, "all links are inActive");
}

static unsigned count_behind(const char *uuid)
{
	unsigned index, n = 0;
	char model[96];

	for (const char *s;
	     (s = next_listed(uuid)) && read_listed(s, &index, model, sizeof(model), &uuid);)
		n++;
	return n;
}

size_t smi_list_match(struct part *p, const struct text_line *lines, size_t n)
{
	unsigned index, link, gpus = 0, links = 0;
	size_t end = 0;
	const char *uuid;
	char model[96];
	bool up;

	if (!read_listed(line_text(&lines[0]), &index, model, sizeof(model), &uuid))
		return 0;
	for (size_t i = 0; i < n; i++) {
		const char *s = line_text(&lines[i]);

		if (read_listed(s, &index, model, sizeof(model), &uuid))
			gpus += 1 + count_behind(uuid);
		else if (read_link(s, &link, &up))
			links++;
		else if (*s && !says_none_up(s) && !text_starts_with(s, "MIG "))
			break;
		else if (!*s)
			continue;
		end = i + 1;
	}
	snprintf(p->about, sizeof(p->about), "%u %s%s", gpus, text_plural(gpus, "GPU", "GPUs"),
		 links ? " and their NVLinks" : "");
	return end;
}

/* How many links the GPUs of the part list. */
static unsigned links_of(const struct part *p)
{
	unsigned link, most = 0;
	bool up;

	for (size_t i = 0; i < p->n; i++)
		if (read_link(line_text(&p->lines[i]), &link, &up) && link >= most)
			most = link + 1;
	return most;
}

static void claim_link_state(const struct part *p, struct claims *c, const struct text_line *l,
			     unsigned index, unsigned link, bool up)
{
	claim_number(c, CLAIM_AT(p, l), up, "gpu/#%u/link/%02u/state", index, link);
}

/*
 * The lines below the name of a GPU, from `from` on: its links. The result is the line behind them.
 */
static size_t claim_links(const struct part *p, struct claims *c, size_t from, unsigned index)
{
	const unsigned most = links_of(p);
	unsigned link, found = 0, other;
	const char *uuid;
	char model[96];
	size_t i = from;
	bool up;

	for (; i < p->n; i++) {
		const struct text_line *l = &p->lines[i];
		const char *s = line_text(l);

		if (read_listed(s, &other, model, sizeof(model), &uuid))
			break;
		if (read_link(s, &link, &up)) {
			claim_link_state(p, c, l, index, link, up);
			found++;
		}
		for (link = 0; says_none_up(s) && link < (most ? most : 1); link++, found++)
			claim_link_state(p, c, l, index, link, false);
	}
	if (found)
		claim_extent(c, p, from, i, "gpu/#%u/link", index);
	return i;
}

unsigned smi_claim_listed(const struct part *p, struct claims *c, const struct text_line *l)
{
	const char *s = line_text(l), *uuid;
	unsigned index = 0;
	char model[96], word[64];

	while (s && read_listed(s, &index, model, sizeof(model), &uuid)) {
		claim_gpu(c, CLAIM_AT(p, l), index);
		claim(c, CLAIM_AT(p, l), text_trim(model), "gpu/#%u/model", index);
		s = next_listed(uuid);
		if (!uuid)
			continue;
		text_copy(word, sizeof(word), uuid, strcspn(uuid, ")"));
		claim(c, CLAIM_AT(p, l), word, "gpu/#%u/uuid", index);
	}
	return index;
}

/* A part begins with a GPU, and claim_links ends at one. */
void smi_list_decode(const struct part *p, struct claims *c)
{
	for (size_t i = 0; i < p->n;) {
		const unsigned index = smi_claim_listed(p, c, &p->lines[i]);

		i = claim_links(p, c, i + 1, index);
	}
}
