/* SPDX-License-Identifier: Apache-2.0 */
/* What a perftest of another host sends: any bytes; what is accepted comes back the same. */
#include "rdma/perftest.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_keys(const char *bytes, bool with_gid)
{
	char once[PERFTEST_KEYS_BYTES], twice[PERFTEST_KEYS_BYTES];
	struct perftest_keys k, again;

	if (perftest_take_keys(bytes, with_gid, &k) < 0)
		return;
	perftest_put_keys(&k, with_gid, once);
	if (perftest_take_keys(once, with_gid, &again) < 0)
		abort();
	perftest_put_keys(&again, with_gid, twice);
	if (memcmp(once, twice, sizeof(once)) != 0 || k.at != again.at || k.key != again.key)
		abort();
}

static void take_report(const uint8_t *bytes)
{
	uint8_t once[PERFTEST_REPORT_BYTES];
	struct perftest_report r;

	if (perftest_take_report(bytes, &r) < 0)
		return;
	perftest_put_report(&r, once);
	if (memcmp(once, bytes, sizeof(once)) != 0)
		abort();
}

/* Each decoder gets the input cut, or filled with zeros, to its size. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char bytes[PERFTEST_KEYS_BYTES] = {0}, release[PERFTEST_HELLO];
	unsigned mtu;

	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	if (peer_is_perftest(bytes, PERFTEST_HELLO, release))
		perftest_is_spoken(release);
	perftest_take_mtu(bytes, &mtu);
	take_keys(bytes, true);
	take_keys(bytes, false);
	take_report((const uint8_t *)bytes);
	return 0;
}
