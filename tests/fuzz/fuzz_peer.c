/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another host sends to onehop bench rdma: any bytes, as lines; what is accepted has one
 * spelling.
 */
#include "base/strbuf.h"
#include "rdma/peer_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_line(const char *line, size_t n)
{
	AUTO_STRBUF struct strbuf once = {0}, twice = {0};
	struct peer_message m, again;

	if (peer_parse(line, n, &m) < 0)
		return;
	peer_format(&m, &once);
	if (once.len > PEER_LINE_MAX || peer_parse(once.text, once.len - 1, &again) < 0)
		abort();
	peer_format(&again, &twice);
	if (strcmp(once.text, twice.text) != 0 || memcmp(m.v, again.v, sizeof(m.v)) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;
	char release[PERFTEST_HELLO];

	peer_is_perftest(at, size, release);
	while (at < end) {
		const char *feed = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((feed ? feed : end) - at);

		take_line(at, n);
		at += n + 1;
	}
	return 0;
}
