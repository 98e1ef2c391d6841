/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of onehop tune: any text is refused with a sentence, or is read, written and read again
 * as the same.
 */
#include "collective/tuned.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(void)
{
	if (strncmp(err_msg(), "fuzz:", 5) != 0)
		abort();
}

static void check_round_trip(const struct tuned *t)
{
	AUTO_FREE char *text = NULL;
	struct tuned again;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return;
	tuned_write(t, f);
	fclose(f);
	if (tuned_parse(text, n, "fuzz", &again) < 0 || memcmp(t, &again, sizeof(again)) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tuned t;

	if (tuned_parse((const char *)data, size, "fuzz", &t) < 0)
		check_refusal();
	else
		check_round_trip(&t);
	return 0;
}
