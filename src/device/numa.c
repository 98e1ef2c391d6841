/* SPDX-License-Identifier: Apache-2.0 */
#include "device/numa.h"

#include "base/cleanup.h"

#include <limits.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>

#define NODES_MAX 1024
#define WORD_BITS (CHAR_BIT * sizeof(unsigned long))

int numa_node(const char *root, const char *pci)
{
	AUTO_FCLOSE FILE *f = NULL;
	char path[PATH_MAX];
	int node;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/numa_node", root, pci);
	f = fopen(path, "re");
	return f && fscanf(f, "%d", &node) == 1 && node < NODES_MAX ? node : -1;
}

bool numa_prefer(int node)
{
	unsigned long nodes[NODES_MAX / WORD_BITS] = {0};
	int policy;

	if (node < 0 || syscall(SYS_get_mempolicy, &policy, NULL, 0ul, NULL, 0ul) < 0 ||
	    policy != MPOL_DEFAULT)
		return false;
	nodes[(size_t)node / WORD_BITS] = 1ul << (size_t)node % WORD_BITS;
	/* The kernel reads one bit less than the number that it gets. */
	return syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, NODES_MAX + 1ul) == 0;
}

void numa_prefer_none(void)
{
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0ul);
}
