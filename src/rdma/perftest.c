/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/perftest.h"

#include "base/array.h"
#include "base/err.h"
#include "rdma/measure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST_MAJOR 5
#define OLDEST_MINOR 70 /* "5.70", compared as a decimal fraction: 5.8 is newer */
#define CYCLE_BUFFER 4096
#define CACHE_LINE   64
#define FIGURE_MAX                                                                                 \
	(RDMA_RATE_MOST * 1e3) /* MB/s; as millions of messages a second it is no less absurd */

/* ---- releases ---- */

bool perftest_is_spoken(const char *release)
{
	char *end;
	long hundredths = strtol(release, &end, 10) * 100;

	if (*end == '.' && end[1]) {
		hundredths += (end[1] - '0') * 10L;
		if (end[2] >= '0' && end[2] <= '9')
			hundredths += end[2] - '0';
	}
	return hundredths >= OLDEST_MAJOR * 100 + OLDEST_MINOR;
}

void perftest_put_hello(char ret[static PERFTEST_HELLO])
{
	memset(ret, 0, PERFTEST_HELLO);
	snprintf(ret, PERFTEST_HELLO, "%s", PERFTEST_RELEASE);
}

/* ---- numbers, the highest byte first ---- */

static void put_number(uint64_t v, size_t n, uint8_t *ret)
{
	for (size_t i = 0; i < n; i++)
		ret[i] = (uint8_t)(v >> 8 * (n - 1 - i));
}

static uint64_t take_number(const uint8_t *in, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | in[i];
	return v;
}

void perftest_put_sizes(uint8_t ret[static PERFTEST_SIZES_BYTES])
{
	put_number(CYCLE_BUFFER, 4, ret);
	put_number(CACHE_LINE, 4, ret + 4);
}

/* ---- MTU: a digit, as enum ibv_mtu numbers the sizes from 256 on ---- */

#define MTU_LEAST 256u
#define MTU_CODES 5

void perftest_put_mtu(unsigned bytes, char ret[static PERFTEST_MTU_BYTES])
{
	unsigned code = 1;

	while (code < MTU_CODES && MTU_LEAST << code <= bytes)
		code++;
	ret[0] = (char)('0' + code);
	ret[1] = '\0';
}

int perftest_take_mtu(const char in[static PERFTEST_MTU_BYTES], unsigned *ret_bytes)
{
	if (in[0] < '1' || in[0] > '0' + MTU_CODES || in[1])
		return err_set(EPROTO, "the peer sent an MTU that does not exist");
	*ret_bytes = MTU_LEAST << (in[0] - '1');
	return 0;
}

/* ---- keys: hexadecimal numbers with colons between them ---- */

enum {
	FIELD_LID,
	FIELD_READS,
	FIELD_NUMBER,
	FIELD_PACKET,
	FIELD_KEY,
	FIELD_AT,
	FIELD_GID,
	FIELD_SRQ = FIELD_GID + 16,
	FIELD_N
};

static const uint64_t field_max[FIELD_N] = {
	[FIELD_LID] = 0xffff,
	[FIELD_READS] = PERFTEST_READS_MAX,
	[FIELD_NUMBER] = 0xffffff,
	[FIELD_PACKET] = 0xffffff,
	[FIELD_KEY] = UINT32_MAX,
	[FIELD_AT] = UINT64_MAX,
	[FIELD_GID... FIELD_SRQ - 1] = 0xff,
	[FIELD_SRQ] = UINT32_MAX,
};

static const unsigned char field_digits[FIELD_N] = {
	[FIELD_LID] = 4,
	[FIELD_READS] = 4,
	[FIELD_NUMBER] = 6,
	[FIELD_PACKET] = 6,
	[FIELD_KEY] = 8,
	[FIELD_AT] = 16,
	[FIELD_GID... FIELD_SRQ - 1] = 2,
	[FIELD_SRQ] = 8,
};

static bool has_field(unsigned field, bool with_gid)
{
	return with_gid || field < FIELD_GID || field >= FIELD_SRQ;
}

size_t perftest_keys_bytes(bool with_gid)
{
	return with_gid ? PERFTEST_KEYS_BYTES : PERFTEST_KEYS_NO_GID;
}

void perftest_put_keys(const struct perftest_keys *k, bool with_gid,
		       char ret[static PERFTEST_KEYS_BYTES])
{
	uint64_t values[FIELD_N] = {k->lid, k->reads_max, k->number, k->packet, k->key, k->at};
	size_t used = 0;

	memset(ret, 0, PERFTEST_KEYS_BYTES);
	for (size_t i = 0; i < sizeof(k->gid.raw); i++)
		values[FIELD_GID + i] = k->gid.raw[i];
	for (unsigned i = 0; i < FIELD_N; i++) {
		char text[24];
		/* The last colon is there only with an address. */
		int n = snprintf(text, sizeof(text), "%0*llx%s", field_digits[i],
				 (unsigned long long)(values[i] & field_max[i]),
				 i + 1 < FIELD_N || with_gid ? ":" : "");

		if (!has_field(i, with_gid))
			continue;
		memcpy(ret + used, text, (size_t)n);
		used += (size_t)n;
	}
}

static int digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* One number and what follows it, up to the end of the text. */
static bool take_field(const char **at, const char *end, uint64_t max, uint64_t *ret)
{
	const char *from = *at;
	uint64_t v = 0;

	for (; *at < end && digit(**at) >= 0; (*at)++) {
		if (v >> 60)
			return false;
		v = v << 4 | (unsigned)digit(**at);
	}
	if (*at == from || v > max)
		return false;
	*ret = v;
	if (*at < end && **at == ':')
		(*at)++;
	else if (*at < end)
		return false;
	return true;
}

int perftest_take_keys(const char in[static PERFTEST_KEYS_BYTES], bool with_gid,
		       struct perftest_keys *ret)
{
	size_t size = perftest_keys_bytes(with_gid);
	const char *at = in, *end = memchr(in, '\0', size);
	uint64_t v[FIELD_N] = {0};
	bool good = end != NULL;

	for (unsigned i = 0; good && i < FIELD_N; i++)
		if (has_field(i, with_gid))
			good = at < end && take_field(&at, end, field_max[i], &v[i]);
	if (!good || at != end)
		return err_set(EPROTO,
			       "the peer sent an address that is not one of perftest's, or has %s",
			       with_gid ? "no GID" : "a GID");
	*ret = (struct perftest_keys){
		.lid = (unsigned)v[FIELD_LID],
		.reads_max = (unsigned)v[FIELD_READS],
		.number = (uint32_t)v[FIELD_NUMBER],
		.packet = (uint32_t)v[FIELD_PACKET],
		.key = (uint32_t)v[FIELD_KEY],
		.at = v[FIELD_AT],
	};
	for (size_t i = 0; i < sizeof(ret->gid.raw); i++)
		ret->gid.raw[i] = (uint8_t)v[FIELD_GID + i];
	return 0;
}

/* ---- the report ---- */

static uint64_t bits_of(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static bool take_figure(const uint8_t *in, double *ret)
{
	uint64_t bits = take_number(in, PERFTEST_REPORT_PART);

	memcpy(ret, &bits, sizeof(*ret));
	return isfinite(*ret) && *ret >= 0 && *ret < FIGURE_MAX;
}

void perftest_put_report(const struct perftest_report *r, uint8_t ret[static PERFTEST_REPORT_BYTES])
{
	const uint64_t parts[] = {r->bytes, r->messages, bits_of(r->peak_mib),
				  bits_of(r->average_mib), bits_of(r->rate_mpps)};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		put_number(parts[i], PERFTEST_REPORT_PART, ret + i * PERFTEST_REPORT_PART);
}

int perftest_take_report(const uint8_t in[static PERFTEST_REPORT_BYTES],
			 struct perftest_report *ret)
{
	struct perftest_report r = {
		.bytes = take_number(in, PERFTEST_REPORT_PART),
		.messages = take_number(in + PERFTEST_REPORT_PART, PERFTEST_REPORT_PART),
	};

	if (!take_figure(in + 2 * PERFTEST_REPORT_PART, &r.peak_mib) ||
	    !take_figure(in + 3 * PERFTEST_REPORT_PART, &r.average_mib) ||
	    !take_figure(in + 4 * PERFTEST_REPORT_PART, &r.rate_mpps) || r.bytes > INT64_MAX ||
	    r.messages > INT64_MAX)
		return err_set(EPROTO, "the peer reports figures that are not numbers");
	*ret = r;
	return 0;
}
