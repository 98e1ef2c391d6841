/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs, sockets and NUMA nodes. */
#include "machine/host_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CPUS  "sys/devices/system/cpu"
#define NODES "sys/devices/system/node"

/* ---- CPUs ---- */

static const struct {
	const char *id; /* CPUID's vendor */
	enum cpu_vendor vendor;
} cpu_vendors[] = {
	{"GenuineIntel", CPU_INTEL},   {"AuthenticAMD", CPU_AMD}, {"HygonGenuine", CPU_HYGON},
	{"CentaurHauls", CPU_ZHAOXIN}, {"Shanghai", CPU_ZHAOXIN},
};

const char *cpu_value(struct reader *r, const char *text, const char *key)
{
	const char *value;
	size_t n;

	if (!text_after(text, key, &value, &n) || !n || *value != ':')
		return "";
	value++;
	n--;
	while (n && *value == ' ') {
		value++;
		n--;
	}
	return arena_strndup(r->m->arena, value, n);
}

static struct fact_int cpu_number(struct reader *r, struct fact_str text, const char *key)
{
	int64_t v;

	if (!fact_known(text))
		return INT_LIKE(text);
	if (text_to_i64(cpu_value(r, text.value, key), &v) < 0)
		return fact_int_unknown("not shown in proc/cpuinfo");
	return fact_int(v, text.from);
}

static struct fact_int cpu_vendor(struct reader *r, struct fact_str text)
{
	const char *id;

	if (!fact_known(text))
		return INT_LIKE(text);
	id = cpu_value(r, text.value, "vendor_id\t");
	for (size_t i = 0; i < ARRAY_LEN(cpu_vendors); i++)
		if (strcmp(id, cpu_vendors[i].id) == 0)
			return fact_int(cpu_vendors[i].vendor, text.from);
	if (*cpu_value(r, text.value, "CPU implementer\t"))
		return fact_int(CPU_ARM, text.from);
	return fact_int(CPU_OTHER, text.from);
}

enum { CPU_MAX = 8192 }; /* the most that Linux can be built for on x86 */

struct cpu_set {
	uint64_t bits[CPU_MAX / 64];
};

/* "0-15,32-47" into a set; returns how many, or -EINVAL. */
static int64_t parse_cpulist(const char *s, struct cpu_set *set)
{
	int64_t count = 0;

	memset(set, 0, sizeof(*set));
	while (*s) {
		unsigned first, last;
		int n = 0;

		if (sscanf(s, "%u%n", &first, &n) != 1)
			return -EINVAL;
		s += n;
		last = first;
		n = 0;
		if (*s == '-' && sscanf(s, "-%u%n", &last, &n) != 1)
			return -EINVAL;
		s += n;
		if (last < first || last >= CPU_MAX || (*s && *s != ','))
			return -EINVAL;
		s += *s == ',';
		for (unsigned cpu = first; cpu <= last; cpu++) {
			count += !(set->bits[cpu / 64] >> cpu % 64 & 1);
			set->bits[cpu / 64] |= 1ull << cpu % 64;
		}
	}
	return count;
}

static int first_cpu(const struct cpu_set *set)
{
	for (int i = 0; i < CPU_MAX / 64; i++)
		if (set->bits[i])
			return i * 64 + __builtin_ctzll(set->bits[i]);
	return -1;
}

/* Removes one CPU's whole package at a time, so that only one file per socket is read. */
static int64_t count_packages(struct reader *r, struct cpu_set *left)
{
	struct cpu_set package;
	int64_t sockets = 0;

	for (int cpu = first_cpu(left); cpu >= 0; cpu = first_cpu(left)) {
		struct fact_str list = read_str(r, CPUS "/cpu%d/topology/core_siblings_list", cpu);

		if (!fact_known(list) || parse_cpulist(list.value, &package) <= 0 ||
		    !(package.bits[cpu / 64] >> cpu % 64 & 1))
			return -1;
		for (size_t i = 0; i < ARRAY_LEN(left->bits); i++)
			left->bits[i] &= ~package.bits[i];
		sockets++;
	}
	return sockets ? sockets : -1;
}

/* Sockets from a complete /proc/cpuinfo, which a user may have sent: distinct physical ids. */
static int64_t count_physical_ids(const char *text)
{
	uint64_t seen = 0;
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, text)) {
		unsigned id;
		char buf[64];

		text_copy(buf, sizeof(buf), line, n);
		if (sscanf(buf, "physical id : %u", &id) == 1 && id < 64)
			seen |= 1ull << id;
	}
	return seen ? __builtin_popcountll(seen) : -1;
}

void cpu_read(struct reader *r, struct fact_str cpuinfo)
{
	struct cpu *c = &r->m->cpu;
	struct cpu_set online;
	const char *name = "";
	int64_t sockets = -1, threads = -1;

	c->vendor = cpu_vendor(r, cpuinfo);
	c->family = cpu_number(r, cpuinfo, "cpu family\t");
	c->model = cpu_number(r, cpuinfo, "model\t");
	c->name = STR_LIKE(cpuinfo);
	if (fact_known(cpuinfo))
		name = cpu_value(r, cpuinfo.value, "model name\t");
	if (fact_known(cpuinfo))
		c->name = *name ? fact_str(name, cpuinfo.from)
				: fact_str_unknown("not shown in proc/cpuinfo");
	c->online = read_str(r, CPUS "/online");
	if (fact_known(c->online))
		threads = parse_cpulist(c->online.value, &online);
	c->threads = threads > 0 ? fact_int(threads, c->online.from)
				 : fact_int_unknown("not shown in " CPUS "/online");
	if (threads > 0)
		sockets = count_packages(r, &online);
	c->sockets = fact_int(sockets, CPUS "/cpu*/topology/core_siblings_list");
	if (sockets < 0 && fact_known(cpuinfo))
		c->sockets = fact_int(count_physical_ids(cpuinfo.value), cpuinfo.from);
	if (c->sockets.value < 0)
		c->sockets = fact_int_unknown("no CPU topology in sysfs");
}

/* ---- NUMA nodes ---- */

/* "Node 0 MemTotal:       65789012 kB" */
static struct fact_int node_memory(struct reader *r, unsigned id)
{
	struct fact_str text = read_text(r, NODES "/node%u/meminfo", id);
	const char *at;
	long long kib;

	if (!fact_known(text))
		return INT_LIKE(text);
	at = strstr(text.value, "MemTotal:");
	if (!at || sscanf(at, "MemTotal: %lld kB", &kib) != 1)
		return fact_int_unknown("meminfo has no MemTotal");
	return fact_int(kib, text.from);
}

static int by_id(const void *a, const void *b)
{
	const struct numa_node *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

void numa_read(struct reader *r)
{
	struct machine *m = r->m;
	char **names;
	size_t n;

	read_list(r, &names, &n, NODES);
	for (size_t i = 0; i < n; i++) {
		struct numa_node *node;
		uint64_t id;

		if (strncmp(names[i], "node", 4) != 0 || text_to_u64(names[i] + 4, &id) < 0 ||
		    id > UINT16_MAX)
			continue;
		node = ARENA_PUSH(m->arena, m->nodes, m->node_n);
		node->id = (unsigned)id;
		node->cpus = read_str(r, NODES "/node%u/cpulist", node->id);
		node->memory_kib = node_memory(r, node->id);
	}
	source_free_names(names, n);
	if (m->node_n)
		qsort(m->nodes, m->node_n, sizeof(*m->nodes), by_id);
}
