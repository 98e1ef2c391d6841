/* SPDX-License-Identifier: Apache-2.0 */
/* What bench rdma measures, from what a person asked for. */
#include "session/rdma_session_impl.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_BYTES     65536 /* perftest's */
#define LATENCY_BYTES  8     /* a flag, as collectives wait for */
#define SIZE_MAX_BYTES (8ull << 20)
#define SWEEP_FROM     2ull
#define BUDGET_S       0.3

/* ---- words ---- */

/* What --only and --memory-by name, each some bits. */
struct word {
	const char *name;
	unsigned bits;
	bool asked; /* only where it is named */
};

static const struct word measure_words[] = {
	{"write", 1 << RDMA_WRITE},
	{"read", 1 << RDMA_READ},
	{"both", 1 << RDMA_BOTH},
	{"latency", 1 << RDMA_LATENCY_WRITE | 1 << RDMA_LATENCY_READ},
	{"send", 1 << RDMA_LATENCY_SEND, true},
	{"immediate", 1 << RDMA_LATENCY_IMMEDIATE, true},
};
static const struct word way_words[] = {
	{"host", 1 << REGION_HOST},
	{"dma-buf", 1 << REGION_DMABUF},
	{"peer-memory", 1 << REGION_PEER},
	{"on-demand", 1 << REGION_ON_DEMAND, true},
};

static const char **names_of(const struct word *words, size_t n)
{
	const char **names = xcalloc(n, sizeof(*names));

	for (size_t i = 0; i < n; i++)
		names[i] = words[i].name;
	return names;
}

const char **rdma_only_words(size_t *ret_n)
{
	*ret_n = ARRAY_LEN(measure_words);
	return names_of(measure_words, ARRAY_LEN(measure_words));
}

const char **rdma_memory_words(size_t *ret_n)
{
	*ret_n = ARRAY_LEN(way_words);
	return names_of(way_words, ARRAY_LEN(way_words));
}

static int no_word(const char *option, const char *word, const struct word *words, size_t n)
{
	AUTO_FREE const char **names = names_of(words, n);
	const char *nearest = nearest_name(word, names, n);

	if (nearest)
		return err_set(EINVAL, "%s: no '%s'; did you mean %s?", option, word, nearest);
	return err_set(EINVAL, "%s: no '%s' (see: man onehop-bench-rdma)", option, word);
}

/* A list with commas; NULL: all of them that need not be asked for. */
static int parse_words(const char *option, const char *list, const struct word *words, size_t n,
		       unsigned *ret)
{
	AUTO_FREE char *copy = list ? xstrdup(list) : NULL;
	char *rest = copy, *each;

	*ret = 0;
	for (size_t i = 0; !list && i < n; i++)
		*ret |= words[i].asked ? 0 : words[i].bits;
	while ((each = strsep(&rest, ","))) {
		size_t i = 0;

		while (i < n && strcmp(words[i].name, each) != 0)
			i++;
		if (i == n)
			return no_word(option, each, words, n);
		*ret |= words[i].bits;
	}
	return 0;
}

/*
 * Of all that is measured; only where nothing is asked for have rates and latencies sizes of their
 * own.
 */
static int choose_sizes(struct rdma_session *s)
{
	uint64_t bytes = SIZE_MAX_BYTES;
	int r = s->o->size ? parse_bytes("--size", s->o->size, &bytes) : 0;

	if (r < 0)
		return r;
	if (bytes < SWEEP_FROM || bytes > SIZE_MAX_BYTES)
		return err_set(EINVAL, "--size must be 2 to 8M, not '%s'", s->o->size);
	for (uint64_t b = SWEEP_FROM; s->o->sweep && b < bytes; b *= 2)
		s->sizes[s->size_n++] = (struct rdma_size){b, b};
	s->sizes[s->size_n++] = s->o->sweep || s->o->size
					? (struct rdma_size){bytes, bytes}
					: (struct rdma_size){RATE_BYTES, LATENCY_BYTES};
	return 0;
}

static int choose_pace(struct rdma_session *s)
{
	double seconds = BUDGET_S;
	int r = s->o->time ? parse_seconds("--time", s->o->time, &seconds) : 0;

	if (r < 0)
		return r;
	s->stopping = (struct stopping){.relative = STOPPING_RELATIVE,
					.budget_s = seconds,
					.min_samples = STOPPING_MIN_SAMPLES,
					.max_samples = 100000};
	return 0;
}

static int check_number(const char *option, int value, int most)
{
	return value < 0 || value > most
		       ? err_set(EINVAL, "%s must be a number from 1 to %d", option, most)
		       : 0;
}

static int choose_expected(struct rdma_session *s)
{
	char *end;

	if (!s->o->expect)
		return 0;
	s->expect_gbps = strtod(s->o->expect, &end);
	if (end != s->o->expect + strspn(s->o->expect, "0123456789.") || *end ||
	    !(s->expect_gbps > 0 && s->expect_gbps < RDMA_RATE_MOST))
		return err_set(EINVAL, "--expect must be a rate in GB/s such as 24.5, not '%s'",
			       s->o->expect);
	return 0;
}

void rdma_expect_told(const struct rdma_session *s, double *write_gbps, double *read_gbps,
		      char *limit, size_t size)
{
	if (s->expect_gbps <= 0)
		return;
	*write_gbps = *read_gbps = s->expect_gbps;
	snprintf(limit, size, "what --expect says");
}

static int choose_gid(struct rdma_session *s)
{
	uint64_t index = 0;

	if (s->o->gid && (text_to_count(s->o->gid, &index) < 0 || index > UINT16_MAX))
		return err_set(EINVAL,
			       "--gid must be an index of the port's table of addresses, not '%s' "
			       "(see: onehop bench rdma --list)",
			       s->o->gid);
	s->gid = s->o->gid ? (int)index : -1;
	return 0;
}

/* Each port keeps that address alone, so that the other host is offered no other. */
int rdma_force_gid(struct rdma_session *s)
{
	size_t kept = 0;

	for (size_t i = 0; s->gid >= 0 && i < s->listing->n; i++) {
		struct nic_port *p = &s->listing->ports[i];

		p->has_gid = gid_force(p->gids, p->gid_n, p->link_layer == VERBS_LINK_INFINIBAND,
				       (unsigned)s->gid, &p->gid);
		p->gid_n = p->has_gid;
		p->gids[0] = p->gid.entry;
		kept += p->has_gid;
	}
	return s->gid < 0 || kept || !s->listing->n
		       ? 0
		       : err_set(EINVAL,
				 "--gid %d: no port has an address with that index (see: onehop "
				 "bench rdma --list)",
				 s->gid);
}

int rdma_choose_work(struct rdma_session *s)
{
	int r = parse_words("--only", s->o->only, measure_words, ARRAY_LEN(measure_words),
			    &s->measures);

	if (r == 0)
		r = parse_words("--memory-by", s->o->ways, way_words, ARRAY_LEN(way_words),
				&s->ways);
	if (s->o->listen && !s->o->ways) /* the other host asks */
		s->ways |= 1 << REGION_ON_DEMAND;
	if (r == 0)
		r = check_number("--queues", s->o->queues, STREAMS_MAX / 2);
	if (r == 0)
		r = check_number("--depth", s->o->depth, 4096);
	if (r == 0)
		r = s->o->iterations == 1 ? err_set(EINVAL, "--iterations must be 2 or more")
					  : check_number("--iterations", s->o->iterations, 1000000);
	if (r == 0)
		r = choose_expected(s);
	if (r == 0)
		r = choose_gid(s);
	if (r == 0)
		r = choose_sizes(s);
	return r < 0 ? r : choose_pace(s);
}

/* ---- ports ---- */

/* "mlx5_0", "mlx5_0/2", or the NIC's PCI address. */
static bool is_named(const struct rdma_session *s, size_t port, const char *word)
{
	const struct rdma_device *d = rdma_session_nic(s, port);
	char name[PORT_NAME];

	port_name(&s->listing->ports[port], name);
	return strcmp(word, name) == 0 || strcmp(word, s->listing->ports[port].device) == 0 ||
	       (d && d->pci && strcmp(word, d->pci->name) == 0);
}

static bool is_wanted(const struct rdma_session *s, size_t port)
{
	AUTO_FREE char *copy = s->o->nics ? xstrdup(s->o->nics) : NULL;
	char *rest = copy, *word;

	while ((word = strsep(&rest, ",")))
		if (is_named(s, port, word))
			return true;
	return !s->o->nics;
}

void rdma_judge_port(struct rdma_session *s, size_t port)
{
	s->skips[port] = (struct rdma_failure){0};
	if (is_wanted(s, port))
		port_is_usable(&s->listing->ports[port], &s->skips[port]);
	else
		rdma_fail(&s->skips[port], RDMA_STEP_PORT, 0, "not named by --nics");
}

static int choose_ports(struct rdma_session *s)
{
	AUTO_FREE char *copy = s->o->nics ? xstrdup(s->o->nics) : NULL;
	char *rest = copy, *word;

	while ((word = strsep(&rest, ","))) {
		bool found = false;

		for (size_t i = 0; i < s->listing->n; i++)
			found = found || is_named(s, i, word);
		if (!found)
			return err_set(EINVAL,
				       "--nics: no NIC '%s' (see: onehop bench rdma --list)", word);
	}
	for (size_t i = 0; i < s->listing->n; i++)
		rdma_judge_port(s, i);
	return 0;
}

/* ---- pairs ---- */

static enum path_class class_of(const struct rdma_session *s, size_t port, size_t k)
{
	size_t endpoint = rdma_endpoint(s, port);

	return endpoint == PATHS_NOWHERE ? PATH_UNKNOWN
					 : topology_path(s->devices.topology, endpoint,
							 (size_t)s->devices.request.number[k])
						   ->class;
}

static bool is_used(const struct rdma_session *s, size_t port)
{
	return s->skips[port].step == RDMA_STEP_NONE;
}

/*
 * Of those at the least distance the one that the fewest have chosen, so that equal ones are
 * spread.
 */
static void choose_nearest(const struct rdma_session *s, bool *chosen, bool by_port)
{
	size_t gpus = s->devices.request.n, ports = s->listing->n;
	size_t n = by_port ? ports : gpus, others = by_port ? gpus : ports;
	AUTO_FREE size_t *taken = xcalloc(others + 1, sizeof(*taken));

	for (size_t i = 0; i < n; i++) {
		size_t best = others;

		if (by_port && !is_used(s, i))
			continue;
		for (size_t k = 0; k < others; k++) {
			size_t port = by_port ? i : k, gpu = by_port ? k : i;
			enum path_class class, least;

			if (!is_used(s, port))
				continue;
			class = class_of(s, port, gpu);
			least = best == others
					? class
					: class_of(s, by_port ? i : best, by_port ? best : i);
			if (best == others || class < least ||
			    (class == least && taken[k] < taken[best]))
				best = k;
		}
		if (best == others)
			continue;
		taken[best]++;
		chosen[by_port ? i * gpus + best : best * gpus + i] = true;
	}
}

const struct rdma_pair *rdma_nearest_gpu(const struct rdma_session *s, size_t port)
{
	const struct rdma_pair *best = NULL;

	for (size_t i = 0; i < s->pair_n; i++) {
		const struct rdma_pair *p = &s->pairs[i];

		if (p->port == port && p->gpu >= 0 &&
		    (!best ||
		     class_of(s, port, (size_t)p->gpu) < class_of(s, port, (size_t)best->gpu)))
			best = p;
	}
	return best;
}

/* Whether anything is measured that needs no CPU to look into the memory. */
static bool measures_gpus(const struct rdma_session *s)
{
	for (int m = 0; m < RDMA_MEASURE_N; m++)
		if (s->measures >> m & 1 && !rdma_is_round_trip((enum rdma_measure)m))
			return true;
	return false;
}

static void add_runs(struct rdma_session *s, struct rdma_pair *p)
{
	if (p->gpu >= 0 && !measures_gpus(s))
		return;
	for (int way = 0; way < REGION_WAY_N; way++)
		for (size_t k = 0; region_is_host((enum region_way)way) == (p->gpu < 0) &&
				   (s->ways >> way & 1) && k < s->size_n;
		     k++) {
			p->runs = xrealloc(p->runs, p->run_n + 1, sizeof(*p->runs));
			p->runs[p->run_n++] =
				(struct rdma_run){.way = (enum region_way)way,
						  .size = s->sizes[k],
						  .queues = rdma_many_queues(s),
						  .depth = rdma_other_depth((unsigned)s->o->depth)};
		}
}

static void add_pair(struct rdma_session *s, size_t port, int gpu)
{
	struct rdma_pair *p;

	s->pairs = xrealloc(s->pairs, s->pair_n + 1, sizeof(*s->pairs));
	p = &s->pairs[s->pair_n];
	*p = (struct rdma_pair){.port = port, .gpu = gpu};
	add_runs(s, p);
	if (!p->run_n)
		return;
	rdma_foresee(s, p);
	s->pair_n++;
}

int rdma_choose_pairs(struct rdma_session *s)
{
	size_t gpus = s->devices.request.n;
	AUTO_FREE bool *chosen = xcalloc(gpus * s->listing->n + 1, sizeof(*chosen));
	int r = choose_ports(s);

	if (r < 0)
		return r;
	choose_nearest(s, chosen, true);
	choose_nearest(s, chosen, false);
	for (size_t port = 0; port < s->listing->n; port++) {
		if (!is_used(s, port))
			continue;
		add_pair(s, port, -1);
		for (size_t k = 0; k < gpus; k++)
			if (s->o->all || chosen[port * gpus + k])
				add_pair(s, port, (int)k);
	}
	return 0;
}
