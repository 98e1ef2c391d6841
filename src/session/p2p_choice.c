/* SPDX-License-Identifier: Apache-2.0 */
/* What bench p2p measures, from what a person asked for. */
#include "session/p2p_session_impl.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

#define DEFAULT_BYTES (512ull << 20)
#define HOST_BYTES    (4ull << 20)
#define PEER_BYTES    160000000ull /* p2pBandwidthLatencyTest's */
#define SWEEP_FROM    4096ull
#define SWEEP_FACTOR  4

/* What --only calls several metrics at once. */
static const struct {
	const char *name;
	unsigned shapes; /* a bit each */
	bool staged;
} groups[] = {
	{"bandwidth", 1 << SHAPE_PAIR, false},
	{"latency",
	 1 << SHAPE_CHASE | 1 << SHAPE_CHASE_HOST | 1 << SHAPE_ROUND_TRIP | 1 << SHAPE_TINY, false},
	{"host", 1 << SHAPE_HOST | 1 << SHAPE_CHASE_HOST, false},
	{"staged", ~0u, true},
	{"patterns", 1 << SHAPE_TRAFFIC, false},
};

/* `words`: names of metrics and groups, blank-separated. */
static bool is_chosen(const struct metric *m, const char *words)
{
	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		if (text_has_word(words, groups[i].name) && m->staged == groups[i].staged &&
		    groups[i].shapes >> m->shape & 1)
			return true;
	return text_has_word(words, m->name);
}

/* The defaults of a format; reads are the peer's --p2p_read. */
static bool is_wanted(const struct metric *m, enum p2p_layout layout)
{
	if (layout == P2P_LAYOUT_P2P_TEST)
		return m->peers[PEER_P2P_TEST].place && !m->read;
	return m->standard && (layout == P2P_LAYOUT_OWN || m->peers[PEER_NVBANDWIDTH].place);
}

static bool is_known(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		if (strcmp(groups[i].name, word) == 0)
			return true;
	return p2p_metric_find(word) != NULL;
}

const char **p2p_only_words(size_t *ret_n)
{
	const char **names = xcalloc(metric_n + ARRAY_LEN(groups), sizeof(*names));
	AUTO_FREE const struct metric **all = xcalloc(metric_n, sizeof(*all));
	size_t n = 0, measured = p2p_metrics(all);

	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		names[n++] = groups[i].name;
	for (size_t i = 0; i < measured; i++)
		names[n++] = all[i]->name;
	*ret_n = n;
	return names;
}

static int no_word(const char *word)
{
	size_t n;
	AUTO_FREE const char **names = p2p_only_words(&n);
	const char *nearest = nearest_name(word, names, n);

	if (nearest)
		return err_set(EINVAL, "--only: no measurement '%s'; did you mean %s?", word,
			       nearest);
	return err_set(EINVAL, "--only: no measurement '%s' (see: man onehop-bench-p2p)", word);
}

/* "a,b" as "a b", each known. */
static int check_words(const char *list, char **ret)
{
	AUTO_FREE char *words = xstrdup(list);

	for (char *at = words, *end; at; at = end ? end + 1 : NULL) {
		end = strchr(at, ',');
		if (end)
			*end = '\0';
		if (!is_known(at))
			return no_word(at);
		if (end)
			*end = ' ';
	}
	*ret = TAKE_PTR(words);
	return 0;
}

/*
 * In the table's order, which is that of the report. Where a peer's layout has an order of its own,
 * what goes without peer access comes first: turning it off again takes longer than a round.
 */
static void choose_words(struct p2p_session *s, const char *words)
{
	AUTO_FREE const struct metric **all = xcalloc(metric_n, sizeof(*all));
	size_t n = p2p_metrics(all);

	s->metrics = xcalloc(n, sizeof(*s->metrics));
	for (int staged = s->o->layout == P2P_LAYOUT_P2P_TEST; staged >= 0; staged--)
		for (size_t i = 0; i < n; i++) {
			if (s->o->layout == P2P_LAYOUT_P2P_TEST && all[i]->staged != staged)
				continue;
			if (s->o->all ||
			    (words ? is_chosen(all[i], words) : is_wanted(all[i], s->o->layout)))
				s->metrics[s->run.metric_n++] = all[i];
		}
	s->run.metrics = s->metrics;
}

/*
 * p2pBandwidthLatencyTest times five copies of a pair. Six samples of one or more take as long, and
 * give an interval; through the host smaller copies are as fast.
 */
static void choose_pace(struct p2p_session *s)
{
	if (s->o->layout != P2P_LAYOUT_P2P_TEST)
		return;
	s->run.sample_us = 400;
	s->run.stopping.budget_s = 0.015;
	s->run.staged_bytes = s->o->size ? 0 : PEER_BYTES / 4;
}

static int choose_metrics(struct p2p_session *s)
{
	AUTO_FREE char *words = NULL;
	int r = 0;

	if (s->o->only && s->o->all)
		return err_set(EINVAL, "--only and --all cannot be used together");
	if (s->o->only)
		r = check_words(s->o->only, &words);
	if (r < 0)
		return r;
	choose_words(s, words);
	return 0;
}

static int add_pair(struct p2p_session *s, struct pair p)
{
	for (size_t i = 0; i < s->run.pair_n; i++)
		if (s->pairs[i].initiator == p.initiator && s->pairs[i].target == p.target)
			return err_set(EINVAL, "--pairs names a pair twice");
	s->pairs = xrealloc(s->pairs, s->run.pair_n + 1, sizeof(*s->pairs));
	s->pairs[s->run.pair_n++] = p;
	s->run.pairs = s->pairs;
	return 0;
}

static int choose_pairs(struct p2p_session *s)
{
	AUTO_FREE char *list = s->o->pairs ? xstrdup(s->o->pairs) : NULL;
	char *rest = list, *word;
	int r = 0;

	while (r == 0 && (word = strsep(&rest, ","))) {
		struct pair p = {0};
		bool both = false;

		r = devices_find_pair(&s->devices, word, &p, &both);
		r = r < 0 ? err_wrap(r, "--pairs") : add_pair(s, p);
		if (r == 0 && both)
			r = add_pair(s, (struct pair){p.target, p.initiator});
	}
	return r;
}

/* Two buffers of that size are needed on each device. */
static uint64_t default_bytes(const struct p2p_session *s)
{
	uint64_t bytes = devices_are_simulated(&s->devices)    ? HOST_BYTES
			 : s->o->layout == P2P_LAYOUT_P2P_TEST ? PEER_BYTES
							       : DEFAULT_BYTES;

	for (size_t i = 0; i < s->set->n; i++)
		if (s->set->info[i].free_bytes && s->set->info[i].free_bytes / 4 < bytes)
			bytes = s->set->info[i].free_bytes / 4;
	if (s->devices.memory_bytes && s->devices.memory_bytes / 2 < bytes)
		bytes = s->devices.memory_bytes / 2;
	return bytes;
}

static int choose_sizes(struct p2p_session *s)
{
	uint64_t bytes = default_bytes(s);
	int r = 0;

	if (s->o->size)
		r = parse_bytes("--size", s->o->size, &bytes);
	if (r == 0 && bytes < P2P_SIZE_MIN)
		r = err_set(EINVAL, "copies of %lu bytes are too small: the minimum is %d",
			    (unsigned long)bytes, P2P_SIZE_MIN);
	bytes = bytes / 16 * 16;
	if (r == 0 && s->devices.memory_bytes && bytes > s->devices.memory_bytes / 2)
		r = err_set(EINVAL,
			    "--size: two buffers of that size on each device exceed --memory");
	for (uint64_t b = SWEEP_FROM; r == 0 && s->o->sweep && b < bytes; b *= SWEEP_FACTOR)
		s->sizes[s->run.size_n++] = b;
	s->sizes[s->run.size_n++] = bytes;
	s->run.sizes = s->sizes;
	return r;
}

static int choose_time(struct p2p_session *s)
{
	return s->o->time ? parse_seconds("--time", s->o->time, &s->run.stopping.budget_s) : 0;
}

int p2p_choose_work(struct p2p_session *s)
{
	int r;

	p2p_options_default(&s->run);
	choose_pace(s);
	r = choose_metrics(s);
	return r < 0 ? r : choose_time(s);
}

int p2p_choose_copies(struct p2p_session *s)
{
	int r = choose_sizes(s);

	s->run.paths = s->devices.paths;
	s->run.verify = !s->o->no_verify;
	s->run.diagonal = s->o->layout == P2P_LAYOUT_P2P_TEST;
	return r < 0 ? r : choose_pairs(s);
}
