/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-smi nvlink -e and -c, 470 to 580: what each NVLink counted, and what it can do. */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/array.h"
#include "base/text.h"
#include "machine/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * Errors after which a link had to be trained again come first: the others are repaired by sending
 * once more.
 */
static const struct counter {
	const char *name,
		*older; /* "Link 0: Recovery Errors: 1"; of 470 "Link 0: 1 recovery errors" */
	enum tool_message message;
} counters[] = {
	{"Recovery Errors", "recovery errors", MESSAGE_NVLINK_RETRAINED},
	{"Replay Errors", "replay errors", MESSAGE_NVLINK_REPEATED},
	{"CRC Errors", "CRC errors", MESSAGE_NVLINK_REPEATED},
	{"CRC FLIT Errors", "CRC FLIT errors", MESSAGE_NVLINK_REPEATED},
};

/* NULL: another line. */
static const struct counter *read_counter(const char *s, unsigned *ret_link, uint64_t *ret)
{
	int end = 0;

	if (sscanf(s, "Link %2u: %n", ret_link, &end) != 1 || !end || *ret_link >= GPU_NVLINKS)
		return NULL;
	s += end;
	for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
		const struct counter *c = &counters[i];
		const size_t n = strlen(c->name);

		if (text_starts_with(s, c->name) && sscanf(s + n, ": %19" SCNu64, ret) == 1)
			return c;
		end = 0;
		if (sscanf(s, "%19" SCNu64 " %n", ret, &end) == 1 && end &&
		    strcmp(s + end, c->older) == 0)
			return c;
	}
	return NULL;
}

/* "Link 0, P2P is supported: true", "Link 0, SLI is supported: false" */
static bool is_capability(const char *s)
{
	unsigned link;
	int end = 0;

	return sscanf(s, "Link %2u, %n", &link, &end) == 1 && end &&
	       (text_ends_with(s, " supported: true") || text_ends_with(s, " supported: false"));
}

static bool is_of_link(const char *s)
{
	unsigned link;
	uint64_t n;

	return text_starts_with(s, "Link ") && (is_capability(s) || read_counter(s, &link, &n));
}

/* The first line of a link, which may be below the name of its GPU. */
static bool begins(const struct text_line *lines, size_t n)
{
	size_t i = smi_names_gpu(line_text(&lines[0])) ? 1 : 0;

	while (i < n && i && line_is_blank(&lines[i]))
		i++;
	return i < n && is_of_link(line_text(&lines[i]));
}

size_t smi_counters_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 0, gpus = 0;

	if (!begins(lines, n))
		return 0;
	for (size_t i = 0; i < n; i++) {
		const char *s = line_text(&lines[i]);

		if (line_is_blank(&lines[i]))
			continue;
		if (smi_names_gpu(s)) {
			if (!begins(lines + i, n - i))
				break;
			gpus++;
		} else if (!is_of_link(s)) {
			break;
		}
		end = i + 1;
	}
	if (gpus)
		snprintf(p->about, sizeof(p->about), "%zu %s", gpus,
			 text_plural(gpus, "GPU", "GPUs"));
	return end;
}

void smi_counters_decode(const struct part *p, struct claims *c)
{
	for (size_t i = 0; i < p->n; i++)
		if (smi_names_gpu(line_text(&p->lines[i])))
			smi_claim_listed(p, c, &p->lines[i]);
}

/* The worst line of a GPU for each message: 36 links of 8 GPUs may all have counted something. */
struct worst {
	const struct text_line *line[MESSAGE_NVLINK_NO_P2P + 1];
	uint64_t count[MESSAGE_NVLINK_NO_P2P + 1];
};

static void note(struct worst *w, enum tool_message message, const struct text_line *l,
		 uint64_t count)
{
	if (!count || count <= w->count[message])
		return;
	w->count[message] = count;
	w->line[message] = l;
}

/* `gpu`: -1 if the page does not name it. */
static void report(const struct part *p, struct machine *m, const struct worst *w, int gpu)
{
	for (size_t i = 0; i < ARRAY_LEN(w->line); i++)
		if (w->line[i])
			message_add(m, p, w->line[i], (enum tool_message)i, gpu);
}

void smi_counters_observe(const struct part *p, struct machine *m)
{
	struct worst worst = {0};
	unsigned number, link;
	int gpu = -1;
	uint64_t n;

	for (size_t i = 0; i < p->n; i++) {
		const char *s = line_text(&p->lines[i]);
		const struct counter *c;

		if (smi_names_gpu(s)) {
			report(p, m, &worst, gpu);
			worst = (struct worst){0};
			gpu = sscanf(s, "GPU %3u:", &number) == 1 ? message_gpu(m, number) : -1;
		} else if ((c = read_counter(s, &link, &n))) {
			note(&worst, c->message, &p->lines[i], n);
		} else if (text_ends_with(s, ", P2P is supported: false")) {
			note(&worst, MESSAGE_NVLINK_NO_P2P, &p->lines[i], 1);
		}
	}
	report(p, m, &worst, gpu);
}
