/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_made_tree DIR RELEASE: the made-up sources of a release, for scripted tests of the program.
 */
#include "made_tree.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	struct made_tree tree = {0};

	if (argc != 3) {
		fprintf(stderr, "usage: write_made_tree DIR RELEASE\n");
		return 2;
	}
	made_up(&tree, ERA_535);
	made_write(&tree, argv[1], argv[2]);
	made_done(&tree);
	made_forget();
	return 0;
}
