/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collective/groups: groups of ranks by how near their GPUs are, and what the kernel's files say of
 * that.
 */
#include "collective/groups.h"

#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A row of letters for each rank: n NVLink, w switch, s socket, f far, ? unknown. */
static void make(const char *const *rows, unsigned n, struct groups *ret)
{
	static const char letters[] = "?fswn";
	enum nearness near[GROUPS_RANKS_MAX * GROUPS_RANKS_MAX];

	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < n; j++)
			near[i * n + j] = (enum nearness)(strchr(letters, rows[i][j]) - letters);
	groups_make(n, near, ret);
}

static void expect_groups(const char *const *rows, unsigned n, const char *groups)
{
	struct groups g;

	make(rows, n, &g);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(g.of[i], groups[i] - '0');
	assert_int_equal(g.n, groups[n - 1] - '0' + 1);
	assert_int_equal(g.n * g.size, n);
}

static void expect_none(const char *const *rows, unsigned n)
{
	struct groups g;

	make(rows, n, &g);
	assert_int_equal(g.n, 0);
	assert_int_equal(g.size, 0);
}

static void near_ranks_are_a_group(void **state)
{
	static const char *const sockets[] = {"nsff", "snff", "ffns", "ffsn"};
	static const char *const mixed_order[] = {"nfsf", "fnfs", "sfnf", "fsfn"};
	static const char *const switches[] = {"nwss", "wnss", "ssnw", "sswn"};
	static const char *const bridges[] = {"nnww", "nnww", "wwnn", "wwnn"};

	(void)state;
	expect_groups(sockets, 4, "0011");
	expect_groups(mixed_order, 4, "0101");
	expect_groups(switches, 4, "0011");
	expect_groups(bridges, 4, "0011");
}

static void others_are_in_none(void **state)
{
	static const char *const all_nvlink[] = {"nnnn", "nnnn", "nnnn", "nnnn"};
	static const char *const alone[] = {"nfff", "fnff", "ffnf", "fffn"};
	static const char *const unequal[] = {"nssf", "snsf", "ssnf", "fffn"};
	static const char *const unknown[] = {"nsff", "snff", "ffn?", "ff?n"};
	static const char *const pair[] = {"nf", "fn"};

	(void)state;
	expect_none(all_nvlink, 4);
	expect_none(alone, 4);
	expect_none(unequal, 4);
	expect_none(unknown, 4);
	expect_none(pair, 2);
}

static void mates_and_counterparts(void **state)
{
	static const char *const rows[] = {"nffs", "fnsf", "fsnf", "sffn"};
	struct groups g;

	(void)state;
	make(rows, 4, &g);
	assert_int_equal(groups_mates(&g, 4, 0), 1u << 3);
	assert_int_equal(groups_mates(&g, 4, 2), 1u << 1);
	assert_int_equal(groups_counterparts(&g, 4, 0), 1u << 1);
	assert_int_equal(groups_counterparts(&g, 4, 3), 1u << 2);
	assert_int_equal(groups_place(&g, 0), 0);
	assert_int_equal(groups_place(&g, 2), 1);
}

/* ---- a kernel's files ---- */

static void write_file(const char *root, const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *at = strchr(full + strlen(root) + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		mkdir(full, 0755);
		*at = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* A GPU at that place of the tree, next to these CPUs. */
static void add_gpu(const char *root, const char *way, const char *pci, const char *cpus)
{
	char path[256], target[256];

	snprintf(path, sizeof(path), "devices/%s/%s/local_cpulist", way, pci);
	write_file(root, path, cpus);
	write_file(root, "bus/pci/devices/none", "");
	snprintf(target, sizeof(target), "../../../devices/%s/%s", way, pci);
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", root, pci);
	assert_int_equal(symlink(target, path), 0);
}

/*
 * Two GPUs below a switch, one below another root port of that socket but another NUMA node, one on
 * the other socket, and one that the kernel does not show.
 */
static void what_the_kernel_shows(void **state)
{
	static const char pci[][16] = {"0000:03:00.0", "0000:04:00.0", "0000:21:00.0",
				       "0000:81:00.0", "0000:c1:00.0"};
	static const enum nearness right[] = {NEAR_SWITCH, NEAR_SWITCH, NEAR_SOCKET, NEAR_FAR,
					      NEAR_UNKNOWN};
	enum nearness near[ARRAY_LEN(pci)];
	char root[] = "/tmp/onehop-groups-XXXXXX", command[64];

	(void)state;
	assert_non_null(mkdtemp(root));
	add_gpu(root, "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0", pci[0], "0-7\n");
	add_gpu(root, "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0", pci[1], "0-7\n");
	add_gpu(root, "pci0000:20/0000:20:01.0", pci[2], "8-15\n");
	add_gpu(root, "pci0000:80/0000:80:01.0", pci[3], "16-31\n");
	write_file(root, "devices/system/cpu/cpu0/topology/physical_package_id", "0\n");
	write_file(root, "devices/system/cpu/cpu8/topology/physical_package_id", "0\n");
	write_file(root, "devices/system/cpu/cpu16/topology/physical_package_id", "1\n");
	groups_near(ARRAY_LEN(pci), pci, 0, root, near);
	for (size_t i = 0; i < ARRAY_LEN(pci); i++)
		assert_int_equal(near[i], right[i]);
	groups_near(ARRAY_LEN(pci), pci, 4, root, near);
	for (size_t i = 0; i < ARRAY_LEN(pci); i++)
		assert_int_equal(near[i], NEAR_UNKNOWN);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

/* The kernel's and a recording's answers go through it. */
static void what_is_shared_says_how_near(void **state)
{
	(void)state;
	assert_int_equal(nearness_of(SHARED_NVLINK, 0, 1), NEAR_NVLINK);
	assert_int_equal(nearness_of(SHARED_ROOT_PORT, -1, -1), NEAR_SWITCH);
	assert_int_equal(nearness_of(SHARED_NODE, -1, -1), NEAR_SOCKET);
	assert_int_equal(nearness_of(SHARED_NOTHING, 1, 1), NEAR_SOCKET);
	assert_int_equal(nearness_of(SHARED_NOTHING, 0, 1), NEAR_FAR);
	assert_int_equal(nearness_of(SHARED_NOTHING, -1, -1), NEAR_FAR);
	assert_int_equal(nearness_of(SHARED_UNKNOWN, -1, -1), NEAR_UNKNOWN);
	assert_int_equal(nearness_of(SHARED_UNKNOWN, 0, 0), NEAR_SOCKET);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_ranks_are_a_group),
		cmocka_unit_test(others_are_in_none),
		cmocka_unit_test(mates_and_counterparts),
		cmocka_unit_test(what_the_kernel_shows),
		cmocka_unit_test(what_is_shared_says_how_near),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
