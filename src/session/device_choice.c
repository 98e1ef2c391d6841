/* SPDX-License-Identifier: Apache-2.0 */
#include "session/device_choice.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "machine/usable.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- why not ---- */

static const char *driven_by_other(struct arena *a, const struct machine *m, const struct gpu *g)
{
	if (gpu_has_fault(m, g, DEVICE_SET_ASIDE))
		return arena_printf(a, "bound to %s, for use by a virtual machine",
				    g->pci->driver.value);
	if (gpu_has_fault(m, g, DEVICE_OTHER_DRIVER))
		return arena_printf(a, "bound to %s", g->pci->driver.value);
	return fact_absent(g->pci->driver) ? "no driver is bound to it" : NULL;
}

static const char *is_excluded(struct arena *a, const struct machine *m, const struct gpu *g)
{
	(void)a;
	return gpu_has_fault(m, g, DEVICE_EXCLUDED) ? "excluded by the driver's settings" : NULL;
}

static const char *in_other_mode(struct arena *a, const struct machine *m, const struct gpu *g)
{
	const struct compute_mode *mode = gpu_compute_mode(g);

	(void)m;
	return mode ? arena_printf(a, "its compute mode is %s: %s", mode->word, mode->who) : NULL;
}

static const char *is_split(struct arena *a, const struct machine *m, const struct gpu *g)
{
	(void)a;
	return gpu_has_fault(m, g, DEVICE_MIG) ? "MIG is on: instances have no peer access" : NULL;
}

static const char *is_hidden(struct arena *a, const struct machine *m, const struct gpu *g)
{
	(void)m;
	if (fact_known(g->cuda_ordinal))
		return NULL;
	if (fact_absent(g->cuda_ordinal))
		return arena_printf(a, "hidden from CUDA (%s)", g->cuda_ordinal.from);
	return arena_printf(a, "its number in CUDA is unknown%s%s",
			    g->cuda_ordinal.from ? ": " : "",
			    g->cuda_ordinal.from ? g->cuda_ordinal.from : "");
}

static const char *is_busy(struct arena *a, const struct machine *m, const struct gpu *g)
{
	int64_t n = fact_or(g->process_n, 0);

	(void)m;
	if (n <= 0)
		return NULL;
	return arena_printf(a, "in use by %" PRId64 " process%s; --include-busy uses it anyway", n,
			    n > 1 ? "es" : "");
}

static const struct {
	const char *(*why)(struct arena *a, const struct machine *m, const struct gpu *g);
	bool busy;
} reasons[] = {
	{driven_by_other, false}, {is_excluded, false}, {in_other_mode, false},
	{is_split, false},        {is_hidden, false},   {is_busy, true},
};

static const char *why_not(struct arena *a, const struct machine *m, const struct gpu *g,
			   bool include_busy)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		const char *why = reasons[i].busy && include_busy ? NULL : reasons[i].why(a, m, g);

		if (why)
			return why;
	}
	return NULL;
}

/* ---- names ---- */

static bool is_number(const char *word, uint64_t number)
{
	uint64_t value;

	return text_to_count(word, &value) == 0 && value == number;
}

static bool is_address(const char *word, const char *address)
{
	struct pci_address wanted, is;

	return pci_address_parse(word, &wanted) == 0 && pci_address_parse(address, &is) == 0 &&
	       pci_address_compare(wanted, is) == 0;
}

static bool is_numbered(const char *word, const char *prefix, struct fact_int number)
{
	return text_starts_with(word, prefix) && fact_known(number) && number.value >= 0 &&
	       is_number(word + strlen(prefix), (uint64_t)number.value);
}

static const char *prefix_of(const struct gpu *g)
{
	return g ? "GPU" : "host";
}

bool device_is_named(const char *word, size_t number, const struct gpu *g)
{
	const char *prefix = prefix_of(g);

	if (text_starts_with(word, prefix))
		return is_number(word + strlen(prefix), number);
	if (is_number(word, number))
		return true;
	return g && (is_address(word, g->pci->name) || is_numbered(word, "nvml:", g->nvml_index) ||
		     is_numbered(word, "cuda:", g->cuda_ordinal));
}

/*
 * Marks what the list names of n GPUs, or of simulated devices (NULL); no list names all. `option`:
 * what takes the list, for messages.
 */
static int take_list(const char *option, const char *list, size_t n, const struct gpu *gpus,
		     bool *wanted)
{
	AUTO_FREE char *copy = list ? xstrdup(list) : NULL;
	const char *prefix = prefix_of(gpus);
	char *rest = copy, *word;

	for (size_t i = 0; !list && i < n; i++)
		wanted[i] = true;
	while ((word = strsep(&rest, ","))) {
		bool found = false;

		for (size_t i = 0; i < n; i++) {
			if (!device_is_named(word, i, gpus ? &gpus[i] : NULL))
				continue;
			if (wanted[i])
				return err_set(EINVAL, "%s names %s%zu twice", option, prefix, i);
			wanted[i] = found = true;
		}
		if (!found)
			return err_set(EINVAL,
				       "%s: there is no device '%s'; there are %s0 to %s%zu",
				       option, word, prefix, prefix, n - 1);
	}
	return 0;
}

/* ---- devices ---- */

static void add_gpu(struct device_choice *c, const struct machine *m, const struct gpu *g,
		    bool include_busy)
{
	const char *name = arena_printf(c->arena, "GPU%zu %s", g->index, g->pci->name);
	const char *why = why_not(c->arena, m, g, include_busy);

	if (why && c->skip_n < DEVICE_MAX) {
		c->skips[c->skip_n++] = (struct device_skip){name, why};
	} else if (!why && c->n < DEVICE_MAX) {
		c->names[c->n] = name;
		c->keys[c->n] = arena_strdup(c->arena, g->pci->name);
		c->numbers[c->n] = (int)g->index;
		c->ordinals[c->n++] = (int)g->cuda_ordinal.value;
	}
}

int name_gpus(const struct machine *m, const char *option, const char *list, bool *ret_wanted)
{
	if (list && !m->gpu_n)
		return err_set(EINVAL, "%s: this machine has no NVIDIA GPU", option);
	return take_list(option, list, m->gpu_n, m->gpus, ret_wanted);
}

int name_pair(const struct machine *m, const char *option, const char *list, int ret[2])
{
	AUTO_FREE bool *wanted = xcalloc(m->gpu_n + 1, sizeof(*wanted));
	size_t n = 0;

	if (name_gpus(m, option, list, wanted) < 0)
		return -EINVAL;
	for (size_t i = 0; i < m->gpu_n; i++)
		if (wanted[i] && n++ < 2)
			ret[n - 1] = (int)i;
	return n == 2 ? 0
		      : err_set(EINVAL, "%s %s: a pair is two GPUs, and these are %zu", option,
				list, n);
}

int choose_gpus(const struct machine *m, const char *list, bool include_busy,
		struct device_choice *ret)
{
	AUTO_FREE bool *wanted = xcalloc(m->gpu_n + 1, sizeof(*wanted));
	struct device_choice c = {0};
	int r = name_gpus(m, "--gpus", list, wanted);

	if (r < 0)
		return r;
	c.arena = arena_new();
	for (size_t i = 0; i < m->gpu_n; i++)
		if (wanted[i])
			add_gpu(&c, m, &m->gpus[i], include_busy);
	*ret = c;
	return 0;
}

int choose_simulated(size_t n, const char *list, struct device_choice *ret)
{
	bool wanted[DEVICE_MAX] = {0};
	struct device_choice c = {0};
	int r = n && n <= DEVICE_MAX
			? take_list("--gpus", list, n, NULL, wanted)
			: err_set(EINVAL, "--device host:N: N must be 1 to %d", DEVICE_MAX);

	if (r < 0)
		return r;
	c.arena = arena_new();
	for (size_t i = 0; i < n; i++) {
		if (!wanted[i])
			continue;
		c.names[c.n] = c.keys[c.n] = arena_printf(c.arena, "host%zu", i);
		c.numbers[c.n] = (int)i;
		c.ordinals[c.n++] = -1;
	}
	*ret = c;
	return 0;
}

void device_choice_done(struct device_choice *c)
{
	if (c->arena)
		arena_free(c->arena);
	*c = (struct device_choice){0};
}
