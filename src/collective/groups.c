// SPDX-License-Identifier: Apache-2.0
#include "collective/groups.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each rank's group, if those that are at least that near to each other are one. */
static void divide(unsigned n, const enum nearness *near, enum nearness least, struct groups *ret)
{
	*ret = (struct groups){0};
	for (unsigned i = 0; i < n; i++) {
		unsigned first = 0;

		while (first < i && near[first * n + i] < least)
			first++;
		ret->of[i] = first < i ? ret->of[first] : (uint8_t)ret->n++;
	}
}

static unsigned count(uint32_t mask)
{
	return (unsigned)__builtin_popcount(mask);
}

static bool are_equal(const struct groups *g, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (count(groups_mates(g, n, i)) != g->size - 1)
			return false;
	return true;
}

static bool are_known(unsigned n, const enum nearness *near)
{
	bool known = true;

	for (unsigned i = 0; i < n * n; i++)
		known &= near[i] != NEAR_UNKNOWN;
	return known;
}

void groups_make(unsigned n, const enum nearness *near, struct groups *ret)
{
	const bool known = are_known(n, near);

	for (enum nearness least = NEAR_NVLINK; known && least > NEAR_FAR; least--) {
		divide(n, near, least, ret);
		ret->size = n / ret->n;
		if (ret->n > 1 && ret->size > 1 && are_equal(ret, n))
			return;
	}
	*ret = (struct groups){0};
}

void groups_share(unsigned n, const enum nearness *near, struct groups *ret)
{
	groups_make(n, near, ret);
	if (ret->n == 0 && are_known(n, near))
		divide(n, near, NEAR_SOCKET, ret);
	if (ret->n == 1)
		divide(n, near, NEAR_SWITCH, ret);
	ret->size = 0;
	if (ret->n < 2 || ret->n == n)
		*ret = (struct groups){0};
}

uint32_t groups_mates(const struct groups *g, unsigned ranks, unsigned rank)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < ranks; i++)
		if (i != rank && g->of[i] == g->of[rank])
			mask |= 1u << i;
	return mask;
}

unsigned groups_place(const struct groups *g, unsigned rank)
{
	return count(groups_mates(g, rank, rank));
}

uint32_t groups_counterparts(const struct groups *g, unsigned ranks, unsigned rank)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < ranks; i++)
		if (g->of[i] != g->of[rank] && groups_place(g, i) == groups_place(g, rank))
			mask |= 1u << i;
	return mask;
}

enum nearness nearness_of(enum shared s, int socket, int other)
{
	static const enum nearness levels[] = {
		[SHARED_UNKNOWN] = NEAR_UNKNOWN, [SHARED_NOTHING] = NEAR_FAR,
		[SHARED_NODE] = NEAR_SOCKET,     [SHARED_ROOT_PORT] = NEAR_SWITCH,
		[SHARED_NVLINK] = NEAR_NVLINK,
	};

	return s < SHARED_NODE && socket >= 0 && socket == other ? NEAR_SOCKET : levels[s];
}

/* ---- of the kernel ---- */

/* Where a device is below /sys/devices: "pci0000:40/0000:40:01.1/..."; "" unknown. */
static void find_branch(const char *sysfs, const char *pci, char *ret)
{
	char path[PATH_MAX], full[PATH_MAX];
	const char *at;

	ret[0] = '\0';
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%.15s", sysfs, pci);
	if (!pci[0] || !realpath(path, full))
		return;
	at = strstr(full, "/pci");
	if (at)
		snprintf(ret, PATH_MAX, "%s", at + 1);
}

/*
 * Of "pci0000:40/0000:40:01.1/..." the first part is a host bridge, and the second a root port if
 * more follows.
 */
static enum shared shared_of(const char *a, const char *b)
{
	unsigned parts = 0;

	if (!a[0] || !b[0])
		return SHARED_UNKNOWN;
	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		parts += a[i] == '/';
	return parts > 1 ? SHARED_ROOT_PORT : parts ? SHARED_NODE : SHARED_NOTHING;
}

/* The first number in a file; -1: none. */
static int read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	int number = -1;

	if (f && fscanf(f, "%d", &number) != 1)
		number = -1;
	if (f)
		fclose(f);
	return number;
}

/* Of the CPUs next to a device; -1: unknown. A socket may have several NUMA nodes. */
static int find_socket(const char *sysfs, const char *pci)
{
	char path[PATH_MAX];
	int cpu;

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%.15s/local_cpulist", sysfs, pci);
	cpu = read_number(path);
	if (cpu < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%d/topology/physical_package_id",
		 sysfs, cpu);
	return read_number(path);
}

void groups_near(unsigned n, const char (*pci)[16], unsigned me, const char *sysfs,
		 enum nearness *ret)
{
	const int socket = find_socket(sysfs, pci[me]);
	char mine[PATH_MAX], other[PATH_MAX];

	find_branch(sysfs, pci[me], mine);
	for (unsigned i = 0; i < n; i++) {
		find_branch(sysfs, pci[i], other);
		ret[i] = nearness_of(shared_of(mine, other), socket, find_socket(sysfs, pci[i]));
	}
}
