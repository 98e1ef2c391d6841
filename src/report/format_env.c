/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of `onehop env` that programs read. */
#include "base/err.h"
#include "base/strbuf.h"
#include "diagnose/advice.h"
#include "report/report_env.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

void format_env_shell(const struct advice *a, struct strbuf *out)
{
	for (size_t i = 0; i < a->variable_n; i++) {
		const struct advice_variable *v = &a->variables[i];

		if (!v->sure)
			continue;
		strbuf_printf(out, "export %s=", v->variable->name);
		strbuf_shell_word(out, v->value);
		strbuf_putc(out, '\n');
	}
}

void format_env_conf(const struct advice *a, struct strbuf *out)
{
	for (size_t i = 0; i < a->variable_n; i++) {
		const struct advice_variable *v = &a->variables[i];

		if (v->sure && library_of_variable(v->variable->name) == LIBRARY_NCCL)
			strbuf_printf(out, "%s=%s\n", v->variable->name, v->value);
	}
}

/* YAML takes what JSON calls a string. */
static void add_quoted(struct strbuf *out, const char *s)
{
	strbuf_putc(out, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			strbuf_putc(out, '\\');
		strbuf_putc(out, *s);
	}
	strbuf_putc(out, '"');
}

void format_env_k8s(const struct advice *a, struct strbuf *out)
{
	bool any = false;

	for (size_t i = 0; i < a->variable_n; i++) {
		const struct advice_variable *v = &a->variables[i];

		if (!v->sure)
			continue;
		if (!any)
			strbuf_puts(out, "env:\n");
		any = true;
		strbuf_printf(out, "- name: %s\n  value: ", v->variable->name);
		add_quoted(out, v->value);
		strbuf_putc(out, '\n');
	}
	if (!any)
		strbuf_puts(out, "env: []\n");
}

/* ---- ranks ---- */

/* The GPU that CUDA counts as `ordinal`; if unknown, that of the number. */
static const struct gpu *gpu_of_rank(const struct machine *m, size_t ordinal)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		if (fact_is(m->gpus[i].cuda_ordinal, (int64_t)ordinal))
			return &m->gpus[i];
	return fact_known(m->gpus[ordinal].cuda_ordinal) ? NULL : &m->gpus[ordinal];
}

/*
 * The CPUs next to a GPU, as Linux writes lists of them: by its own list, else those of its NUMA
 * node.
 */
static const char *cpus_beside(const struct machine *m, const struct gpu *g)
{
	int64_t node = fact_or(g->pci->numa_node, -1);

	if (fact_known(g->pci->local_cpus) && *g->pci->local_cpus.value)
		return g->pci->local_cpus.value;
	for (size_t i = 0; node >= 0 && i < m->node_n; i++)
		if (m->nodes[i].id == (unsigned)node && fact_known(m->nodes[i].cpus))
			return m->nodes[i].cpus.value;
	return NULL;
}

static int for_each_rank(const struct topology *t, struct strbuf *out,
			 int (*add)(struct strbuf *out, size_t rank, const char *cpus))
{
	const struct machine *m = t->machine;

	if (!m->gpu_n)
		return err_set(ENODATA, "no NVIDIA GPU in %s, so there are no ranks",
			       machine_place(m));
	for (size_t rank = 0; rank < m->gpu_n; rank++) {
		const struct gpu *g = gpu_of_rank(m, rank);
		const char *cpus = g ? cpus_beside(m, g) : NULL;
		int r;

		if (!g)
			break; /* hidden from CUDA, as are those behind it */
		if (!cpus)
			return err_set(ENODATA, "the CPUs next to GPU%zu are unknown", g->index);
		r = add(out, rank, cpus);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_mpirun(struct strbuf *out, size_t rank, const char *cpus)
{
	strbuf_printf(out, "rank %zu=+n0 slot=%s\n", rank, cpus);
	return 0;
}

int format_env_mpirun(const struct topology *t, struct strbuf *out)
{
	strbuf_puts(
		out,
		"# mpirun --mca rmaps_rank_file_physical 1 --rankfile THIS_FILE (Open MPI 4): slots are\n"
		"# Linux's CPU numbers, those next to the GPU that CUDA counts as the rank\n");
	return for_each_rank(t, out, add_mpirun);
}

enum { CPU_MAX = 8192 };

/* "0-3,8" as the hexadecimal mask 0x10f. */
static int add_mask(struct strbuf *out, size_t rank, const char *cpus)
{
	unsigned char digits[CPU_MAX / 4] = {0};
	size_t top = 0;

	for (const char *p = cpus; *p;) {
		char *end;
		unsigned long first = strtoul(p, &end, 10), last = first;

		if (end == p)
			return err_set(EINVAL, "'%s' is not a list of CPUs", cpus);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (first > last || last >= CPU_MAX || (*end && *end != ','))
			return err_set(EINVAL, "'%s' is not a list of CPUs", cpus);
		for (unsigned long i = first; i <= last; i++)
			digits[i / 4] |= (unsigned char)(1u << i % 4);
		top = last / 4 > top ? last / 4 : top;
		p = end + (*end == ',');
	}
	strbuf_puts(out, rank ? ",0x" : "0x");
	for (size_t i = top + 1; i--;)
		strbuf_putc(out, "0123456789abcdef"[digits[i]]);
	return 0;
}

int format_env_srun(const struct topology *t, struct strbuf *out)
{
	struct strbuf masks AUTO_STRBUF = {0};
	int r = for_each_rank(t, &masks, add_mask);

	if (r < 0)
		return r;
	strbuf_printf(out, "--cpu-bind=mask_cpu:%s\n", strbuf_str(&masks));
	return 0;
}
