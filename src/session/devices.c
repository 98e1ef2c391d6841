/* SPDX-License-Identifier: Apache-2.0 */
#include "session/devices.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "ingest/ingest.h"
#include "session/lock.h"
#include "session/paths_of.h"
#include "session/stop.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* For wiring, and for who is left out. */
#define PARTS                                                                                      \
	(MACHINE_PCI | MACHINE_CONFIG_SPACE | MACHINE_GPUS | MACHINE_NVML | MACHINE_NVML_STATE |   \
	 MACHINE_NVML_LINKS | MACHINE_NVML_P2P | MACHINE_NUMA | MACHINE_HOST)

/* Tests and benchmarks would disturb each other. */
#define LOCK_NAME "onehop-test"

/* ---- words ---- */

int parse_bytes(const char *option, const char *text, uint64_t *ret)
{
	static const char units[] = "KkMmGgTt";
	size_t digits = strspn(text, "0123456789.");
	const char *unit = text[digits] ? strchr(units, text[digits]) : NULL;
	char *end;
	double bytes = ldexp(strtod(text, &end), unit ? 10 * (int)((unit - units) / 2 + 1) : 0);

	if (end != text + digits || (text[digits] && (!unit || text[digits + 1])) ||
	    !(bytes >= 1) || bytes > 0x1p50)
		return err_set(EINVAL, "%s must be a size such as 512, 4K, 1.5M or 2G, not '%s'",
			       option, text);
	*ret = (uint64_t)bytes;
	return 0;
}

int parse_seconds(const char *option, const char *text, double *ret)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end != text + strspn(text, "0123456789.") || *end || !(seconds > 0 && seconds <= 3600))
		return err_set(EINVAL, "%s must be a number of seconds up to 3600, not '%s'",
			       option, text);
	*ret = seconds;
	return 0;
}

/* "cuda", "host:4", "host" (as many as the machine that is followed has GPUs: n 0). */
static int parse_device(const char *word, enum device_kind *ret_kind, uint64_t *ret_n)
{
	*ret_n = 0;
	*ret_kind = strcmp(word, "cuda") == 0 ? DEVICE_CUDA : DEVICE_HOST;
	if (*ret_kind == DEVICE_CUDA || strcmp(word, "host") == 0)
		return 0;
	if (text_starts_with(word, "host:") && text_to_count(word + 5, ret_n) == 0 && *ret_n >= 1 &&
	    *ret_n <= DEVICE_MAX)
		return 0;
	return err_set(EINVAL, "--device must be cuda or host:N with N from 1 to %d, not '%s'",
		       DEVICE_MAX, word);
}

/* The index of the device that the word names (device_is_named); -EINVAL with a sentence. */
static int find_device(const struct devices *d, const char *word)
{
	for (size_t k = 0; k < d->request.n; k++)
		if (device_is_named(word, (size_t)d->request.number[k], devices_gpu(d, k)))
			return (int)k;
	return err_set(EINVAL, "'%s' is not one of the %zu in use", word, d->request.n);
}

int devices_find_pair(const struct devices *d, const char *text, struct pair *ret, bool *ret_both)
{
	const char *between = strchr(text, '-');
	AUTO_FREE char *first = xstrndup(text, between ? (size_t)(between - text) : 0);
	bool both = between && between[1] != '>';
	int i, j;

	if (!between || (both && !ret_both))
		return err_set(EINVAL, "a pair must be 0->1%s, not '%s'",
			       ret_both ? ", or 0-1 for both directions" : "", text);
	i = find_device(d, first);
	j = i < 0 ? i : find_device(d, between + (both ? 1 : 2));
	if (j < 0)
		return j;
	if (i == j)
		return err_set(EINVAL, "'%s' names the same device twice", text);
	*ret = (struct pair){(unsigned)i, (unsigned)j};
	if (ret_both)
		*ret_both = both;
	return 0;
}

/* ---- which ones ---- */

static bool any_unnumbered(const struct machine *m)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		if (fact_unknown(m->gpus[i].cuda_ordinal))
			return true;
	return false;
}

/*
 * GPUs of several models have an order of CUDA's own; in that of PCI each has a number known here.
 */
static int read_machine(const char *from, unsigned parts, struct devices *d)
{
	int r = ingest_machine(&from, from != NULL, NULL, 0, parts, &d->machine);

	if (r < 0 || d->machine->recorded || !any_unnumbered(d->machine))
		return r;
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	machine_free(d->machine);
	d->machine = NULL;
	return ingest_machine(&from, from != NULL, NULL, 0, parts, &d->machine);
}

/* Simulated devices follow the GPUs of a recorded machine, or none. */
static int choose_host(const struct device_options *o, struct devices *d, uint64_t n)
{
	size_t gpus = d->machine ? d->machine->gpu_n : 0;

	n = n ? n : gpus;
	if (gpus && n > gpus)
		return err_set(EINVAL,
			       "--device host:%zu is more than the recorded machine has: %zu",
			       (size_t)n, gpus);
	return choose_simulated(n, o->gpus, &d->chosen);
}

static void fill_request(struct devices *d)
{
	d->request.n = d->chosen.n;
	for (size_t k = 0; k < d->chosen.n; k++) {
		d->request.ordinal[k] = d->chosen.ordinals[k];
		d->request.number[k] = d->chosen.numbers[k];
	}
}

static void follow_rates(struct devices *d)
{
	const int *number = d->request.number;

	for (unsigned i = 0; i < d->paths->device_n; i++)
		for (unsigned j = 0; j < d->paths->device_n; j++)
			if (i != j)
				d->request.host.link_gbps[number[i]][number[j]] =
					(float)paths_pair(d->paths, i, j)->expected_gbps;
}

/* ---- all of it ---- */

static int find_paths(struct devices *d)
{
	size_t gpus[DEVICE_MAX];
	int r;

	for (size_t k = 0; k < d->request.n; k++)
		gpus[k] = (size_t)d->request.number[k];
	if (!d->machine)
		return paths_new((unsigned)d->request.n, &d->paths);
	r = paths_of(d->topology, gpus, d->request.n, &d->paths);
	if (r == 0 && devices_are_simulated(d))
		follow_rates(d);
	return r;
}

/* Simulated devices that follow no machine need none. */
static int look(const char *from, unsigned parts, struct devices *d)
{
	int r;

	if (from && !devices_are_simulated(d))
		return err_set(EINVAL,
			       "--from needs --device host: a recording has no GPUs to use");
	if (!from && devices_are_simulated(d))
		return 0;
	r = read_machine(from, parts | PARTS, d);
	if (r == 0)
		d->topology = topology_new(d->machine);
	return r;
}

int devices_choose(const struct device_options *o, const char *from, unsigned parts,
		   struct devices *ret)
{
	uint64_t n;
	int r;

	*ret = DEVICES_NONE;
	/* First: threads of the driver's libraries would take the signals otherwise. */
	r = ret->stop_fd = stop_signals_open();
	if (r < 0)
		return r;
	r = parse_device(o->device ? o->device : "cuda", &ret->request.kind, &n);
	if (r == 0 && o->memory)
		r = parse_bytes("--memory", o->memory, &ret->memory_bytes);
	if (r == 0)
		r = look(from, parts, ret);
	if (r == 0)
		r = devices_are_simulated(ret)
			    ? choose_host(o, ret, n)
			    : choose_gpus(ret->machine, o->gpus, o->include_busy, &ret->chosen);
	if (r < 0)
		return r;
	fill_request(ret);
	return find_paths(ret);
}

int devices_lock(struct devices *d)
{
	bool any = !devices_are_simulated(d) && d->request.n;

	return any ? session_lock(LOCK_NAME, &d->lock) : 0;
}

void devices_unlock(struct devices *d)
{
	cleanup_close(&d->lock);
	d->lock = -1;
}

void devices_done(struct devices *d)
{
	cleanup_close(&d->lock);
	cleanup_close(&d->stop_fd);
	paths_free(d->paths);
	if (d->topology)
		topology_free(d->topology);
	if (d->machine)
		machine_free(d->machine);
	device_choice_done(&d->chosen);
	*d = DEVICES_NONE;
}

const struct gpu *devices_gpu(const struct devices *d, size_t k)
{
	return d->machine ? &d->machine->gpus[d->request.number[k]] : NULL;
}

int devices_check(const struct devices *d, size_t k, int ordinal, const char *pci)
{
	const struct gpu *g = devices_gpu(d, k);

	if (devices_are_simulated(d) || !*pci || strcmp(pci, g->pci->name) == 0)
		return 0;
	return err_set(
		ENXIO,
		"CUDA's device %d is %s and not GPU%zu, %s; set CUDA_DEVICE_ORDER=PCI_BUS_ID",
		ordinal, pci, g->index, g->pci->name);
}
