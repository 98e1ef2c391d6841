/* SPDX-License-Identifier: Apache-2.0 */
/* main() alone, so that tests can link everything else. */
#include "cli/command.h"

int main(int argc, char **argv)
{
	return cli_main(argc, argv);
}
