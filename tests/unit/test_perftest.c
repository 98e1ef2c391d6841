/* SPDX-License-Identifier: Apache-2.0 */
/* rdma/perftest.c: the bytes of perftest's protocol, as its releases 6.06 and 6.29 send them. */
#include "base/array.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "rdma/perftest.h"
#include "report/report_rdma.h"

#include <errno.h>
#include <string.h>

#include <cmocka.h>

static void the_hello_is_a_release(void **state)
{
	char hello[PERFTEST_HELLO], release[PERFTEST_HELLO];

	(void)state;
	perftest_put_hello(hello);
	assert_memory_equal(hello, "6.06\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_true(peer_is_perftest(hello, sizeof(hello), release));
	assert_string_equal(release, "6.06");
}

static void releases_are_decimal_fractions(void **state)
{
	(void)state;
	assert_true(perftest_is_spoken("5.70"));
	assert_true(perftest_is_spoken("5.8"));
	assert_true(perftest_is_spoken("6.06"));
	assert_true(perftest_is_spoken("6.29"));
	assert_true(perftest_is_spoken("10.1"));
	assert_false(perftest_is_spoken("5.69"));
	assert_false(perftest_is_spoken("5.6"));
	assert_false(perftest_is_spoken("4.5"));
}

static void sizes_and_mtu(void **state)
{
	static const struct {
		unsigned bytes;
		char code;
	} rows[] = {{256, '1'}, {512, '2'}, {1024, '3'}, {2048, '4'}, {4096, '5'}};
	uint8_t sizes[PERFTEST_SIZES_BYTES];
	char mtu[PERFTEST_MTU_BYTES];
	unsigned back = 0;

	(void)state;
	perftest_put_sizes(sizes);
	assert_memory_equal(sizes, "\0\0\x10\0\0\0\0\x40", sizeof(sizes));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		perftest_put_mtu(rows[i].bytes, mtu);
		assert_int_equal(mtu[0], rows[i].code);
		assert_int_equal(mtu[1], 0);
		assert_int_equal(perftest_take_mtu(mtu, &back), 0);
		assert_int_equal(back, rows[i].bytes);
	}
	assert_int_equal(perftest_take_mtu("0", &back), -EPROTO);
	assert_int_equal(perftest_take_mtu("6", &back), -EPROTO);
	assert_int_equal(perftest_take_mtu("33", &back), -EPROTO);
}

static const struct perftest_keys some = {
	.lid = 0,
	.reads_max = 0x80,
	.number = 0x18,
	.packet = 0xd52909,
	.key = 0x94b,
	.at = 0x7f594c7cc000,
	.gid = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [14] = 2, [15] = 15}},
};
/* As ib_write_bw sends it. */
static const char with_gid[] = "0000:0080:000018:d52909:0000094b:00007f594c7cc000:"
			       "00:00:00:00:00:00:00:00:00:00:ff:ff:0a:00:02:0f:00000000:";
static const char without_gid[] = "0001:0010:000018:d52909:0000094b:00007f594c7cc000:00000000";

static void keys_are_as_perftest_writes_them(void **state)
{
	char bytes[PERFTEST_KEYS_BYTES];
	struct perftest_keys k = some, back;

	(void)state;
	assert_int_equal(sizeof(with_gid), PERFTEST_KEYS_BYTES);
	assert_int_equal(sizeof(without_gid), PERFTEST_KEYS_NO_GID);
	perftest_put_keys(&some, true, bytes);
	assert_memory_equal(bytes, with_gid, sizeof(with_gid));
	assert_int_equal(perftest_take_keys(bytes, true, &back), 0);
	assert_int_equal(back.number, 0x18);
	assert_int_equal(back.packet, 0xd52909);
	assert_int_equal(back.reads_max, 0x80);
	assert_int_equal(back.key, 0x94b);
	assert_true(back.at == 0x7f594c7cc000);
	assert_memory_equal(back.gid.raw, some.gid.raw, 16);
	k.lid = 1;
	k.reads_max = 16;
	perftest_put_keys(&k, false, bytes);
	assert_memory_equal(bytes, without_gid, sizeof(without_gid));
	assert_int_equal(perftest_take_keys(bytes, false, &back), 0);
	assert_int_equal(back.lid, 1);
	assert_int_equal(back.gid.raw[15], 0);
}

static void what_are_no_keys_is_refused(void **state)
{
	static const struct {
		size_t at;
		char put;
	} rows[] = {{0, 'x'},   {0, '\0'}, {0, ':'},   {4, ' '},   {4, '1'},  {5, '1'},
		    {49, '\0'}, {50, '-'}, {98, '\0'}, {106, '0'}, {107, '0'}};
	struct perftest_keys k;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char bytes[PERFTEST_KEYS_BYTES];

		memcpy(bytes, with_gid, sizeof(bytes));
		bytes[rows[i].at] = rows[i].put;
		if (rows[i].at == 106) /* the last colon is a digit: the number is too large */
			memset(bytes + 98, 'f', 9);
		if (perftest_take_keys(bytes, true, &k) != -EPROTO)
			fail_msg("row %zu is accepted", i);
	}
}

static void a_report_comes_back(void **state)
{
	const struct perftest_report r = {65536, 5000, 31.5, 30.25, 0.000484};
	struct perftest_report back;
	uint8_t bytes[PERFTEST_REPORT_BYTES];
	double nan = __builtin_nan("");

	(void)state;
	perftest_put_report(&r, bytes);
	assert_memory_equal(bytes, "\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\x13\x88", 16);
	assert_memory_equal(bytes + 16, "\x40\x3f\x80\0\0\0\0\0", 8);
	assert_int_equal(perftest_take_report(bytes, &back), 0);
	assert_true(back.bytes == 65536 && back.messages == 5000);
	assert_true(back.average_mib == 30.25 && back.peak_mib == 31.5);
	perftest_put_report(&(struct perftest_report){.average_mib = nan}, bytes);
	assert_int_equal(perftest_take_report(bytes, &back), -EPROTO);
	perftest_put_report(&(struct perftest_report){.peak_mib = -1}, bytes);
	assert_int_equal(perftest_take_report(bytes, &back), -EPROTO);
}

/* ---- what its programs print ---- */

/* 2^30 bytes a second are 1024 MiB, and 16384 messages of 64 KiB. */
static const struct rdma_cell rates = {.value = {.n = 9, .median = 1.073741824, .max = 2.147483648},
				       .messages = 5000};
static const struct rdma_cell times = {
	.value = {.n = 1000, .median = 1.25, .min = 1, .max = 9.5},
	.mean = 1.5,
	.deviation = 0.25,
	.p99 = 2,
	.p999 = 3.75,
	.messages = 1000,
};

static void tables_are_as_perftest_prints_them(void **state)
{
	static const struct {
		enum rdma_measure measure;
		enum perftest_release release;
		uint64_t bytes;
		const struct rdma_cell *cell;
		const char *title, *heading, *row;
	} rows[] = {
		{RDMA_WRITE, PERFTEST_6_29, 65536, &rates, "RDMA_Write BW Test",
		 " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n",
		 " 65536      5000             2048.00            1024.00\t\t     0.016384\n"},
		{RDMA_READ, PERFTEST_6_06, 65536, &rates, "RDMA_Read BW Test",
		 " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n",
		 " 65536      5000             2048.00            1024.00\t\t   0.016384\n"},
		{RDMA_LATENCY_SEND, PERFTEST_6_29, 2, &times, "Send Latency Test",
		 " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n",
		 " 2       1000          1.00           9.50         1.25     \t       1.50        \t0.25   \t\t2.00    \t\t3.75   \n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct perftest_table t = {.measure = rows[i].measure,
						 .device = "mlx5_0",
						 .bytes = rows[i].bytes,
						 .cell = rows[i].cell};
		struct strbuf out = {0}, want = {0};
		char rule[89];

		memset(rule, '-', 87);
		memcpy(rule + 87, "\n", 2);
		strbuf_printf(
			&want,
			"%s                    %s\n Dual-port       : OFF\t\tDevice         : mlx5_0\n%s%s%s%s",
			rule, rows[i].title, rule, rows[i].heading, rows[i].row, rule);
		format_perftest_table(&t, rows[i].release, &out);
		assert_string_equal(strbuf_str(&out), strbuf_str(&want));
		strbuf_done(&out);
		strbuf_done(&want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hello_is_a_release),
		cmocka_unit_test(releases_are_decimal_fractions),
		cmocka_unit_test(sizes_and_mtu),
		cmocka_unit_test(keys_are_as_perftest_writes_them),
		cmocka_unit_test(what_are_no_keys_is_refused),
		cmocka_unit_test(a_report_comes_back),
		cmocka_unit_test(tables_are_as_perftest_prints_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
