/* SPDX-License-Identifier: Apache-2.0 */
#include "result/metric.h"

#include "base/text.h"

#include <string.h>

/*
 * Noise: p2pBandwidthLatencyTest repeats 5 times without warming up, and two of its runs differ by
 * 5 to 10 %; its latency of host-staged copies jumps between two levels that are a factor of 1.8
 * apart within one run (11.4 and 20.3 us on the same machine). Collectives: two runs of nccl-tests.
 */
/* clang-format off */
#define METRIC(word_, title_) .word = word_, .name = word_, .title = title_
#define OFF(word_, title_)    .word = word_, .name = word_ METRIC_STAGED, .title = title_, .staged = true

#define YES_NO(of)   .shape = SHAPE_YES_NO, .unit = of, .higher_is_better = true
#define RATE(shape_) .shape = shape_, .unit = "GB/s", .higher_is_better = true, .noise = 0.10, .noise_hosted = 0.10
#define SPAN(shape_) .shape = shape_, .unit = "us", .noise = 0.25, .noise_hosted = 1.00
#define LOAD(shape_) .shape = shape_, .unit = "ns", .noise = 0.10, .noise_hosted = 0.10, .read = true, .by_kernel = true
#define TRAFFIC(of)  RATE(SHAPE_TRAFFIC), .traffic = of
/* Loads or stores of a kernel; reads of a copy engine. */
#define SM .by_kernel = true
#define READ .read = true

#define P2P_TEST(...)    .peers[PEER_P2P_TEST] = {__VA_ARGS__}
#define NVBANDWIDTH(...) .peers[PEER_NVBANDWIDTH] = {__VA_ARGS__}

#define COLLECTIVE_ROWS(kind, word_, title_, program, ...)                                         \
	{.word = word_ kind, .name = word_ kind, .title = title_, __VA_ARGS__,                     \
	 .shape = SHAPE_COLLECTIVE, .noise = 0.03, .noise_hosted = 0.03,                           \
	 .collective = word_, .peers[PEER_NCCL_TESTS] = {0, program}},                                   \
	{.word = word_ kind, .name = word_ kind METRIC_STAGED, .title = title_, __VA_ARGS__,       \
	 .shape = SHAPE_COLLECTIVE, .noise = 0.03, .noise_hosted = 0.03, .staged = true,           \
	 .collective = word_, .peers[PEER_NCCL_TESTS] = {0, program}}
#define COLLECTIVE(word, title, program)                                                           \
	COLLECTIVE_ROWS("-bus", word, title ", bus bandwidth", program, .unit = "GB/s",            \
			.higher_is_better = true),                                                 \
	COLLECTIVE_ROWS("-time", word, title ", time", program, .unit = "us")

/* Of batches that ran in turn with NCCL's. */
#define AGAINST_NCCL_ROW(suffix, word_, title_, ...)                                                \
	{METRIC(word_ suffix, title_), __VA_ARGS__, .shape = SHAPE_COLLECTIVE, .noise = 0.03, .noise_hosted = 0.03}, \
	{OFF(word_ suffix, title_), __VA_ARGS__, .shape = SHAPE_COLLECTIVE, .noise = 0.03, .noise_hosted = 0.03}
#define AGAINST_NCCL(word, title)                                                                   \
	AGAINST_NCCL_ROW(METRIC_AGAINST_TIME, word, title ", NCCL's time in the same run", .unit = "us"),      \
	AGAINST_NCCL_ROW(METRIC_AGAINST_RATIO, word, title ", time over NCCL's", .unit = "x")

const struct metric metrics[] = {
	{METRIC(METRIC_ACCESS, "P2P possible"), YES_NO("pairs"), .observed = OBSERVED_PEER_ACCESS, P2P_TEST(0, "P2P Connectivity Matrix")},
	{METRIC(METRIC_PAIR_VERIFIED, "data right at the owner"), YES_NO("pairs"), .observed = OBSERVED_PEER_COPY, .must_hold = true},
	{METRIC(METRIC_GPU_VERIFIED, "own memory of a GPU"), YES_NO("checks"), .must_hold = true},
	{METRIC(METRIC_ALL_VERIFIED, "all GPUs at once"), YES_NO("checks"), .must_hold = true},
	{METRIC(METRIC_NCCL_P2P, "P2P in NCCL"), YES_NO("pairs"), .observed = OBSERVED_NCCL_TRANSPORT},
	{METRIC(METRIC_PAIR_RATE, "rate of a tested copy"), YES_NO("pairs"), .observed = OBSERVED_RATE},

	{METRIC(METRIC_WRITE_CE, "write, CE"), RATE(SHAPE_PAIR), .standard = true, .observed = OBSERVED_BANDWIDTH,
	 .heading = "one way, write, copy engine", .off = METRIC_WRITE_CE METRIC_STAGED,
	 P2P_TEST(2, "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix", "Unidirectional P2P=Enabled Bandwidth Matrix"),
	 NVBANDWIDTH(4, "device_to_device_memcpy_write_ce", "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)")},
	{OFF(METRIC_WRITE_CE, "write, CE"), RATE(SHAPE_PAIR),
	 .heading = "one way, P2P off: through the host",
	 P2P_TEST(1, "Unidirectional P2P=Disabled Bandwidth Matrix", .diagonal = METRIC_LOCAL_COPY)},
	{METRIC(METRIC_READ_CE, "read, CE"), RATE(SHAPE_PAIR), READ, .standard = true, .observed = OBSERVED_BANDWIDTH,
	 .heading = "one way, read, copy engine", .off = METRIC_WRITE_CE METRIC_STAGED,
	 P2P_TEST(3, "Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix"),
	 NVBANDWIDTH(3, "device_to_device_memcpy_read_ce", "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)")},
	{METRIC("both-ce", "both ways, CE"), RATE(SHAPE_PAIR), .both_ways = true, .standard = true, .observed = OBSERVED_BOTH_WAYS,
	 .heading = "both ways, write, copy engine", .off = "both-ce" METRIC_STAGED,
	 P2P_TEST(5, "Bidirectional P2P=Enabled Bandwidth Matrix"),
	 NVBANDWIDTH(5, "device_to_device_bidirectional_memcpy_write_ce", "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)")},
	{OFF("both-ce", "both ways, CE"), RATE(SHAPE_PAIR), .both_ways = true,
	 .heading = "both ways, P2P off: through the host",
	 P2P_TEST(4, "Bidirectional P2P=Disabled Bandwidth Matrix")},
	{METRIC("write-sm", "write, SM"), RATE(SHAPE_PAIR), SM, .standard = true,
	 .heading = "one way, write, stores of a kernel",
	 NVBANDWIDTH(11, "device_to_device_memcpy_write_sm", "memcpy SM GPU(row) <- GPU(column) bandwidth (GB/s)")},
	{METRIC("read-sm", "read, SM"), RATE(SHAPE_PAIR), READ, SM, .standard = true,
	 .heading = "one way, read, loads of a kernel",
	 NVBANDWIDTH(9, "device_to_device_memcpy_read_sm", "memcpy SM GPU(row) -> GPU(column) bandwidth (GB/s)")},
	{METRIC("both-sm", "both ways, SM"), RATE(SHAPE_PAIR), .both_ways = true, SM,
	 .heading = "both ways, write, stores of kernels",
	 NVBANDWIDTH(12, "device_to_device_bidirectional_memcpy_write_sm", "memcpy SM GPU(row) <-> GPU(column) Total bandwidth (GB/s)")},

	{METRIC(METRIC_LATENCY_WRITE, "period of tiny writes"), SPAN(SHAPE_TINY), .observed = OBSERVED_LATENCY,
	 .heading = "period of queued copies of 16 bytes", .off = METRIC_LATENCY_WRITE METRIC_STAGED,
	 P2P_TEST(7, "P2P=Enabled Latency (P2P Writes) Matrix", "P2P=Enabled Latency Matrix")},
	{OFF(METRIC_LATENCY_WRITE, "period of tiny writes"), SPAN(SHAPE_TINY),
	 .heading = "period of queued copies of 16 bytes, P2P off",
	 P2P_TEST(6, "P2P=Disabled Latency Matrix")},
	{METRIC(METRIC_LATENCY_READ, "period of tiny reads"), SPAN(SHAPE_TINY), READ,
	 .heading = "the same, with reads", .off = METRIC_LATENCY_WRITE METRIC_STAGED,
	 P2P_TEST(8, "P2P=Enabled Latency (P2P Reads) Matrix")},
	{METRIC(METRIC_ROUND_TRIP, "flag round trip"), SPAN(SHAPE_ROUND_TRIP), SM, .standard = true, .observed = OBSERVED_LATENCY,
	 .heading = "flag to the other GPU and back"},
	{METRIC(METRIC_ROUND_TRIP_SINGLE, "single flag round trip"), SPAN(SHAPE_ROUND_TRIP), SM, .observed = OBSERVED_LATENCY},
	{METRIC("latency-chase", "pointer chase"), LOAD(SHAPE_CHASE), .standard = true,
	 .heading = "load from the other's memory (pointer chase)",
	 NVBANDWIDTH(10, "device_to_device_latency_sm", "Device to Device Latency SM GPU(row) <-> GPU(column) (ns)")},
	{METRIC("latency-host", "pointer chase, host memory"), LOAD(SHAPE_CHASE_HOST), .standard = true,
	 .heading = "load from the host's memory (pointer chase)",
	 NVBANDWIDTH(6, "host_device_latency_sm", "memory latency SM CPU(row) <-> GPU(column) (ns)")},

	{METRIC("h2d-ce", "host to device, CE"), RATE(SHAPE_HOST), READ, .standard = true,
	 .heading = "host to device, copy engine",
	 NVBANDWIDTH(1, "host_to_device_memcpy_ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)")},
	{METRIC("d2h-ce", "device to host, CE"), RATE(SHAPE_HOST), .standard = true,
	 .heading = "device to host, copy engine",
	 NVBANDWIDTH(2, "device_to_host_memcpy_ce", "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)")},
	{METRIC("h2d-sm", "host to device, SM"), RATE(SHAPE_HOST), READ, SM,
	 .heading = "host to device, loads of a kernel",
	 NVBANDWIDTH(7, "host_to_device_memcpy_sm", "memcpy SM CPU(row) -> GPU(column) bandwidth (GB/s)")},
	{METRIC("d2h-sm", "device to host, SM"), RATE(SHAPE_HOST), SM,
	 .heading = "device to host, stores of a kernel",
	 NVBANDWIDTH(8, "device_to_host_memcpy_sm", "memcpy SM CPU(row) <- GPU(column) bandwidth (GB/s)")},
	{METRIC(METRIC_LOCAL_COPY, "copy within a GPU"), RATE(SHAPE_LOCAL),
	 .heading = "within a device, read plus write",
	 NVBANDWIDTH(0, "device_local_copy")},

	{METRIC("pairs-ce", "disjoint pairs at once, copy engine"), TRAFFIC(TRAFFIC_PAIRS),
	 .heading = "disjoint pairs at once, copy engine"},
	{METRIC("all-to-all-ce", "all to all, copy engine"), TRAFFIC(TRAFFIC_ALL_TO_ALL),
	 .heading = "all to all, copy engine"},
	{METRIC("all-to-all-sm", "all to all, SM"), TRAFFIC(TRAFFIC_ALL_TO_ALL), SM,
	 .heading = "all to all, stores of kernels"},
	{METRIC("n-to-1-ce", "all others to one, copy engine"), TRAFFIC(TRAFFIC_N_TO_1),
	 .heading = "all others to one, copy engine"},
	{METRIC("1-to-n-ce", "one to all others, copy engine"), TRAFFIC(TRAFFIC_1_TO_N),
	 .heading = "one to all others, copy engine"},

	COLLECTIVE("all-reduce", "all-reduce", "all_reduce"),
	COLLECTIVE("all-gather", "all-gather", "all_gather"),
	COLLECTIVE("reduce-scatter", "reduce-scatter", "reduce_scatter"),
	COLLECTIVE("broadcast", "broadcast", "broadcast"),
	COLLECTIVE("reduce", "reduce", "reduce"),
	COLLECTIVE("all-to-all", "all-to-all", "alltoall"),
	COLLECTIVE("all-to-all-v", "all-to-all, uneven", "alltoallv"),
	COLLECTIVE("gather", "gather", "gather"),
	COLLECTIVE("scatter", "scatter", "scatter"),
	COLLECTIVE("send-recv", "send and receive", "sendrecv"),
	COLLECTIVE("hypercube", "hypercube", "hypercube"),
	{METRIC("barrier-time", "barrier, time"), .unit = "us", .shape = SHAPE_COLLECTIVE, .noise = 0.03, .noise_hosted = 0.03,
	 .collective = "barrier"},
	{OFF("barrier-time", "barrier, time"), .unit = "us", .shape = SHAPE_COLLECTIVE, .noise = 0.03, .noise_hosted = 0.03,
	 .collective = "barrier"},

	AGAINST_NCCL("all-reduce", "all-reduce"),
	AGAINST_NCCL("all-gather", "all-gather"),
	AGAINST_NCCL("reduce-scatter", "reduce-scatter"),
	AGAINST_NCCL("broadcast", "broadcast"),
	AGAINST_NCCL("reduce", "reduce"),
	AGAINST_NCCL("all-to-all", "all-to-all"),

	{METRIC(METRIC_NIC_REACHES, "NIC reaches a NIC of another host"), YES_NO("checks"), .must_hold = true},
	{METRIC(METRIC_NIC_WRITE_VERIFIED, "NIC writes, data right at the owner"), YES_NO("checks"), .must_hold = true},
	{METRIC(METRIC_NIC_READ_VERIFIED, "NIC reads, data right"), YES_NO("checks"), READ, .must_hold = true},
	{METRIC(METRIC_NIC_BOTH_VERIFIED, "NIC writes and reads at once, data right"), YES_NO("checks"), .both_ways = true, .must_hold = true},
	{METRIC(METRIC_NIC_WRITE, "NIC writes"), RATE(SHAPE_NIC)},
	{METRIC(METRIC_NIC_READ, "NIC reads"), RATE(SHAPE_NIC), READ},
	{METRIC(METRIC_NIC_BOTH, "NIC writes and reads at once"), RATE(SHAPE_NIC), .both_ways = true},
	{METRIC(METRIC_NIC_LATENCY_WRITE, "NIC write, there and back, half"), SPAN(SHAPE_NIC)},
	{METRIC(METRIC_NIC_LATENCY_IMMEDIATE, "NIC write with immediate, there and back, half"), SPAN(SHAPE_NIC)},
	{METRIC(METRIC_NIC_LATENCY_SEND, "NIC send, there and back, half"), SPAN(SHAPE_NIC)},
	{METRIC(METRIC_NIC_LATENCY_READ, "NIC read until complete"), SPAN(SHAPE_NIC), READ},
};
/* clang-format on */
const size_t metric_n = sizeof(metrics) / sizeof(*metrics);

const struct metric *metric_find(const char *name)
{
	for (size_t i = 0; i < metric_n; i++)
		if (strcmp(metrics[i].name, name) == 0)
			return &metrics[i];
	return NULL;
}

const struct metric *metric_at(enum metric_peer peer, unsigned place)
{
	for (size_t i = 0; i < metric_n; i++)
		if (metrics[i].peers[peer].place == place)
			return &metrics[i];
	return NULL;
}

static bool is_named(const struct metric *m, const char *text, const char *behind)
{
	const char *program = m->peers[PEER_NCCL_TESTS].name;
	const char *at = program ? strstr(text, program) : NULL;

	return at && text_starts_with(at + strlen(program), behind);
}

/* "all_reduce" contains "reduce", so the longest match counts. */
const char *metric_collective(const char *text, const char *behind)
{
	const struct metric *found = NULL;

	for (size_t i = 0; i < metric_n; i++)
		if (is_named(&metrics[i], text, behind) &&
		    (!found || strlen(metrics[i].peers[PEER_NCCL_TESTS].name) >
				       strlen(found->peers[PEER_NCCL_TESTS].name)))
			found = &metrics[i];
	return found ? found->collective : NULL;
}

const struct metric *metric_against_nccl(const char *collective, const char *suffix, bool staged)
{
	const size_t n = strlen(collective);

	for (size_t i = 0; i < metric_n; i++)
		if (strncmp(metrics[i].word, collective, n) == 0 &&
		    strcmp(metrics[i].word + n, suffix) == 0 && metrics[i].staged == staged)
			return &metrics[i];
	return NULL;
}

const struct metric *metric_of_collective(const char *collective, bool rate, bool staged)
{
	for (size_t i = 0; i < metric_n; i++) {
		const struct metric *m = &metrics[i];

		if (m->collective && strcmp(m->collective, collective) == 0 &&
		    metric_is_rate(m) == rate && m->staged == staged)
			return m;
	}
	return NULL;
}
