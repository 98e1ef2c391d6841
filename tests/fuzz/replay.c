/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzzer once over each file of a folder; stands in for libFuzzer's main(). */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_one(struct source *s, const char *name)
{
	AUTO_FREE char *data = NULL;
	size_t size;

	if (source_read(s, &data, &size, "./%s", name) < 0) {
		fprintf(stderr, "%s: cannot be read\n", name);
		return 1;
	}
	LLVMFuzzerTestOneInput((const uint8_t *)data, size);
	return 0;
}

int main(int argc, char **argv)
{
	struct source *s = NULL;
	char **names = NULL;
	size_t n = 0;
	int bad = 0;

	if (argc != 2 || source_open_root(argv[1], NULL, NULL, &s) < 0 ||
	    source_list(s, &names, &n, ".") < 0 || n == 0) {
		fprintf(stderr, "usage: replay FOLDER with at least one file (%s)\n", err_msg());
		source_free(s);
		return 2;
	}
	for (size_t i = 0; i < n; i++)
		bad |= run_one(s, names[i]);
	source_free_names(names, n);
	source_free(s);
	return bad;
}
