/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the conditions of a result with those of now. */
#include "base/text.h"
#include "result/figures.h"

#include <string.h>

/* Before 2021 the driver left out the maker's name. "GPU0" is onehop's own name for a GPU. */
bool figure_gpu_is(const struct figure_gpu *then, const struct figure_gpu *now)
{
	const char *was = then->name ? then->name : "", *is = now->name ? now->name : "";

	return !*was || !*is || text_starts_with(was, "GPU") || strstr(was, is) || strstr(is, was);
}

/* The port whose place or redirection has changed; NULL: none. */
static const char *changed_port(const struct figure_gpu *then, const struct figure_gpu *now)
{
	for (size_t i = 0; i < then->port_n; i++) {
		const struct figure_port *was = &then->ports[i],
					 *is = i < now->port_n ? &now->ports[i] : NULL;

		if (!is || strcmp(was->pci, is->pci) != 0 ||
		    (was->acs >= 0 && is->acs >= 0 && was->acs != is->acs))
			return was->pci;
	}
	return NULL;
}

static struct changed changed_gpu(const struct figure_gpu *then, const struct figure_gpu *now)
{
	const char *port = changed_port(then, now);

	if (!figure_gpu_is(then, now))
		return (struct changed){CONDITION_GPU, then->name, now->name};
	return port ? (struct changed){CONDITION_WIRING, port, now->pci} : CHANGED_NOTHING;
}

/* The first release recorded the driver and the boot. */
static bool is_needed(enum run_condition c)
{
	return c == CONDITION_DRIVER || c == CONDITION_BOOT;
}

struct changed figures_changed(const struct figures *then, const struct figures *now,
			       const int *gpus, bool surely)
{
	for (enum run_condition c = 0; c < CONDITION_TEXTS; c++) {
		const char *was = then->conditions[c], *is = now->conditions[c];
		bool known = *was && *is;

		if (known ? strcmp(was, is) != 0 : surely && is_needed(c))
			return (struct changed){c, was, is};
	}
	for (size_t i = 0; i < then->gpu_n; i++) {
		struct changed x = gpus[i] < 0 ? CHANGED_NOTHING
					       : changed_gpu(&then->gpus[i], &now->gpus[gpus[i]]);

		if (x.what < CONDITION_N)
			return x;
	}
	return CHANGED_NOTHING;
}
