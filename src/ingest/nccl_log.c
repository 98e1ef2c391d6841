/* SPDX-License-Identifier: Apache-2.0 */
/* A NCCL log as a whole: opening it, its words, and why a pair does not use P2P. */
#include "ingest/nccl_log_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "ingest/log_text.h"
#include "ingest/text.h"

#include <errno.h>
#include <string.h>

/* ---- words ---- */

const char *nccl_way_word(enum nccl_way way)
{
	static const char *const words[NCCL_WAY_N] = {
		[NCCL_WAY_NONE] = "none",         [NCCL_WAY_DIRECT] = "direct",
		[NCCL_WAY_PEER] = "peer",         [NCCL_WAY_RELAYED] = "relayed",
		[NCCL_WAY_HOST] = "host",         [NCCL_WAY_NIC_GDR] = "nic-gdr",
		[NCCL_WAY_NIC_HOST] = "nic-host",
	};

	return words[way];
}

const char *nccl_reason_word(enum nccl_reason reason)
{
	static const char *const words[NCCL_REASON_N] = {
		[NCCL_REASON_NONE] = "none",           [NCCL_REASON_ENVIRONMENT] = "environment",
		[NCCL_REASON_LEVEL] = "level",         [NCCL_REASON_DRIVER] = "driver",
		[NCCL_REASON_CONTAINER] = "container", [NCCL_REASON_UNKNOWN] = "unknown",
	};

	return words[reason];
}

bool nccl_way_is_p2p(enum nccl_way way)
{
	return way == NCCL_WAY_DIRECT || way == NCCL_WAY_PEER || way == NCCL_WAY_RELAYED;
}

/* ---- pairs ---- */

const struct nccl_pair *nccl_log_pair(const struct nccl_log *l, size_t from, size_t to)
{
	return &l->pairs[from * l->device_n + to];
}

enum nccl_way nccl_pair_way(const struct nccl_pair *p)
{
	for (int way = NCCL_WAY_N - 1; way > NCCL_WAY_NONE; way--) {
		if (p->connections[way])
			return (enum nccl_way)way;
	}
	return NCCL_WAY_NONE;
}

/* Without host names in the lines, SHM and P2P still show that there is only one host. */
bool nccl_log_same_host(const struct nccl_log *l, size_t from, size_t to)
{
	const struct nccl_pair *p = nccl_log_pair(l, from, to);

	if (*l->devices[from].host && *l->devices[to].host)
		return strcmp(l->devices[from].host, l->devices[to].host) == 0;
	return p->connections[NCCL_WAY_DIRECT] || p->connections[NCCL_WAY_PEER] ||
	       p->connections[NCCL_WAY_RELAYED] || p->connections[NCCL_WAY_HOST];
}

bool nccl_log_one_host(const struct nccl_log *l)
{
	for (size_t i = 1; i < l->device_n; i++)
		if (strcmp(l->devices[i].host, l->devices[0].host) != 0)
			return false;
	return true;
}

bool nccl_log_is_of(const struct nccl_log *l, size_t device, const char *host)
{
	return host ? strcmp(l->devices[device].host, host) == 0 : nccl_log_one_host(l);
}

/* ---- why not ---- */

static const struct nccl_log_setting *setting(const struct nccl_log *l, const char *name)
{
	for (size_t i = 0; i < l->setting_n; i++) {
		if (strcmp(l->settings[i].name, name) == 0)
			return &l->settings[i];
	}
	return NULL;
}

static bool setting_is(const struct nccl_log_setting *s, const char *value)
{
	return s && strcmp(s->value, value) == 0;
}

static void give_reason(struct nccl_pair *p, enum nccl_reason reason, bool certain,
			unsigned evidence)
{
	size_t n = 0;

	if (p->reason == NCCL_REASON_NONE) {
		p->reason = reason;
		p->certain = certain;
	}
	while (n < 4 && p->evidence[n] && p->evidence[n] != evidence)
		n++;
	if (n < 4 && evidence)
		p->evidence[n] = evidence;
}

/*
 * NCCL_P2P_DISABLE outweighs the level and only 1 disables. A level is the reason only if the
 * driver would have allowed the pair; SYS allows all.
 */
static bool judge_environment(const struct nccl_log *l, struct nccl_pair *p)
{
	const struct nccl_log_setting *disable = setting(l, "NCCL_P2P_DISABLE");
	const struct nccl_log_setting *level = setting(l, "NCCL_P2P_LEVEL");
	bool limits = level && !setting_is(level, "SYS") && !setting_is(level, "4") &&
		      !setting_is(level, "5");

	if (setting_is(disable, "1"))
		give_reason(p, NCCL_REASON_ENVIRONMENT, true, disable->line);
	else if (limits && p->check.cuda != 0 && !l->refusals.n)
		give_reason(p, NCCL_REASON_ENVIRONMENT,
			    p->check.cuda == 1 || setting_is(level, "LOC"), level->line);
	return p->reason != NCCL_REASON_NONE;
}

/* Through a network device although SHM is possible: the two ranks do not share a /dev/shm. */
static bool judge_network(const struct nccl_log *l, struct nccl_pair *p)
{
	const struct nccl_log_setting *shm = setting(l, "NCCL_SHM_DISABLE");

	if (nccl_pair_way(p) < NCCL_WAY_NIC_GDR || setting_is(shm, "1"))
		return false;
	give_reason(p, NCCL_REASON_CONTAINER, false, p->line);
	return true;
}

/* The number of ordered pairs in the host, and how many of them use P2P. */
static size_t count_p2p(const struct nccl_log *l, size_t from, size_t *ret_pairs)
{
	size_t p2p = 0;

	*ret_pairs = 0;
	for (size_t i = 0; i < l->device_n; i++) {
		if (strcmp(l->devices[i].host, l->devices[from].host) != 0)
			continue;
		for (size_t j = 0; j < l->device_n; j++) {
			if (i == j || !nccl_log_same_host(l, i, j))
				continue;
			++*ret_pairs;
			p2p += nccl_way_is_p2p(nccl_pair_way(nccl_log_pair(l, i, j)));
		}
	}
	return p2p;
}

static void judge_pair(const struct nccl_log *l, struct nccl_pair *p, size_t host_pairs,
		       size_t host_p2p)
{
	if (judge_environment(l, p) || judge_network(l, p))
		return;
	if (l->refusals.n)
		give_reason(p, NCCL_REASON_DRIVER, host_pairs <= 2, l->refusals.items[0].line);
	if (p->check.cuda == 0) /* of all pairs at least one, which of two GPUs is certain */
		give_reason(p, NCCL_REASON_DRIVER, host_pairs <= 2, p->check.line);
	else if (p->check.cuda == 1)
		give_reason(p, NCCL_REASON_LEVEL, true, p->check.line);
	else if (host_p2p && p->reason == NCCL_REASON_NONE)
		give_reason(p, NCCL_REASON_LEVEL, false, p->line);
	give_reason(p, NCCL_REASON_UNKNOWN, false, p->line);
}

static void nccl_log_judge(struct nccl_log *l)
{
	for (size_t i = 0; i < l->device_n; i++) {
		size_t pairs, p2p = count_p2p(l, i, &pairs);

		for (size_t j = 0; j < l->device_n; j++) {
			struct nccl_pair *p = &l->pairs[i * l->device_n + j];
			enum nccl_way way = nccl_pair_way(p);

			if (i != j && way != NCCL_WAY_NONE && !nccl_way_is_p2p(way) &&
			    nccl_log_same_host(l, i, j))
				judge_pair(l, p, pairs, p2p);
		}
	}
}

void nccl_log_count(const struct nccl_log *l, struct nccl_log_counts *ret)
{
	*ret = (struct nccl_log_counts){0};
	for (size_t i = 0; i < l->device_n * l->device_n; i++) {
		const struct nccl_pair *p = &l->pairs[i];
		enum nccl_way way = nccl_pair_way(p);

		if (way == NCCL_WAY_NONE)
			continue;
		if (nccl_log_same_host(l, i / l->device_n, i % l->device_n)) {
			ret->pairs++;
			ret->p2p += nccl_way_is_p2p(way);
			ret->reasons[p->reason]++;
		} else {
			ret->across++;
			ret->gdr += way == NCCL_WAY_NIC_GDR;
		}
	}
}

/* ---- opening ---- */

bool nccl_log_recognise(const char *text, size_t size)
{
	return memmem(text, size, " NCCL INFO ", 11) || memmem(text, size, " NCCL WARN ", 11) ||
	       nccl_failure_recognise(text, size);
}

static struct nccl_log *new_log(const char *name)
{
	struct arena *arena = arena_new();
	struct nccl_log *l = arena_alloc(arena, 1, sizeof(*l));

	l->arena = arena;
	l->name = arena_strdup(arena, name);
	l->version = "";
	l->version_number = -1;
	l->check = (struct nccl_check){-1, -1, 0};
	return l;
}

/* Takes the lines, which are changed. */
static int read_lines(struct nccl_log *l, struct text_line *lines, size_t n, struct nccl_log **ret)
{
	int r = nccl_log_read(l, lines, n);

	if (r < 0) {
		nccl_log_free(l);
		return r;
	}
	nccl_log_judge(l);
	*ret = l;
	return 0;
}

int nccl_log_parse(const char *text, size_t size, const char *name, struct nccl_log **ret)
{
	struct text_line *lines;
	struct nccl_log *l;
	size_t n;

	if (!nccl_log_recognise(text, size))
		return text_refuse(text, size, name, "a debug log of NCCL (NCCL_DEBUG=INFO)");
	l = new_log(name);
	lines = text_lines(l->arena, text, size, &n);
	return read_lines(l, lines, n, ret);
}

bool nccl_log_recognise_lines(const struct text_line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (nccl_log_recognise(lines[i].text, strlen(lines[i].text)))
			return true;
	return false;
}

int nccl_log_parse_lines(const struct text_line *lines, size_t n, const char *name,
			 struct nccl_log **ret)
{
	struct text_line *copy;
	struct nccl_log *l;

	if (!nccl_log_recognise_lines(lines, n))
		return err_set(EINVAL, "%s: has no line of NCCL and no error of a run", name);
	l = new_log(name);
	copy = arena_alloc(l->arena, n, sizeof(*copy));
	memcpy(copy, lines, n * sizeof(*copy));
	return read_lines(l, copy, n, ret);
}

/* How the run ended may be in the lines behind this one. */
void nccl_log_mark_cut(struct nccl_log *l, unsigned line)
{
	l->cut_at = line;
}

/* Ranks may wait elsewhere, and the run may have ended, in lines that are not kept. */
void nccl_log_mark_lost(struct nccl_log *l)
{
	l->lost = true;
	l->open_end = "has more lines than are kept";
	for (size_t i = 0; i < l->failure_n; i++)
		l->failures[i].failure.waits = RUN_WAITS_UNKNOWN;
}

/* ---- a file ---- */

bool nccl_log_is_in(const struct log_text *t)
{
	return t->reduced ? nccl_log_recognise_lines(t->lines, t->n)
			  : nccl_log_recognise(strbuf_str(&t->text), t->text.len);
}

int nccl_log_of(const struct log_text *t, const char *name, struct nccl_log **ret)
{
	int r = t->reduced ? nccl_log_parse_lines(t->lines, t->n, name, ret)
			   : nccl_log_parse(strbuf_str(&t->text), t->text.len, name, ret);

	if (r < 0)
		return r;
	(*ret)->reduced = t->reduced;
	if (t->lost)
		nccl_log_mark_lost(*ret);
	return 0;
}

int nccl_log_open(const char *path, struct nccl_log **ret)
{
	CLEANUP(log_text_done) struct log_text t = {0};
	const char *name = text_file_name(path);
	int r = log_text_read(path, &t);

	if (r == 0 && !nccl_log_is_in(&t))
		r = text_refuse(strbuf_str(&t.head), t.head.len, name,
				"a debug log of NCCL (NCCL_DEBUG=INFO)");
	return r < 0 ? r : nccl_log_of(&t, name, ret);
}

void nccl_log_free(struct nccl_log *l)
{
	if (l)
		arena_free(l->arena);
}
