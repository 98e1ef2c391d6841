/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest/nccl_log*.c: forms of the lines from NCCL 2.18 to 2.30, interleaving, verdicts and
 * reasons. The logs are made up after the formats in NCCL's sources; hosts, addresses and numbers
 * are invented.
 */
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "build_machine.h"
#include "diagnose/run_failure.h"
#include "ingest/nccl_log.h"
#include "json_schema.h"
#include "machine/machine.h"
#include "report/report.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

static struct nccl_log *parsed(const char *text)
{
	struct nccl_log *l = NULL;

	if (nccl_log_parse(text, strlen(text), "log", &l) < 0)
		fail_msg("%s", err_msg());
	return l;
}

#define P(rank)  "node1:10" #rank ":20" #rank " [" #rank "] NCCL INFO "
#define SAME_PID "node1:100:200 "

/* Init lines of two processes with a GPU each, as 2.19 and later write them. */
#define INIT(how)                                                                                  \
	P(0)                                                                                       \
	"ncclCommInitRank comm 0xa0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId "        \
	"0x77 - Init " how "\n" P(1) "ncclCommInitRank comm 0xa1 rank 1 nranks 2 cudaDev 1 "       \
				     "nvmlDev 1 busId 100250 commId "                              \
				     "0x77 - Init " how "\n"

static void assert_way(const struct nccl_log *l, size_t i, size_t j, enum nccl_way way)
{
	const struct nccl_pair *p = nccl_log_pair(l, i, j);

	if (nccl_pair_way(p) != way)
		fail_msg("%zu -> %zu: %s instead of %s", i, j, nccl_way_word(nccl_pair_way(p)),
			 nccl_way_word(way));
}

static void assert_reason(const struct nccl_log *l, size_t i, size_t j, enum nccl_reason reason,
			  bool certain)
{
	const struct nccl_pair *p = nccl_log_pair(l, i, j);

	if (p->reason != reason || p->certain != certain)
		fail_msg("%zu -> %zu: %s, certain %d, instead of %s", i, j,
			 nccl_reason_word(p->reason), p->certain, nccl_reason_word(reason));
}

/* ---- transports ---- */

static void every_transport(void **state)
{
	static const struct {
		const char *via;
		enum nccl_way way;
	} rows[] = {
		{"Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer", NCCL_WAY_DIRECT},
		{"Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer/read", NCCL_WAY_DIRECT},
		{"Channel 15/1 : 0[0] -> 1[1] via P2P/CUMEM", NCCL_WAY_PEER},
		{"Channel 15/1 : 0[0] -> 1[1] via P2P/CUMEM/read", NCCL_WAY_PEER},
		{"Channel 15/1 : 0[0] -> 1[1] via P2P/CUMEM/CE", NCCL_WAY_PEER},
		{"Channel 00/0 : 0[0] -> 1[1] via P2P/MNNVL", NCCL_WAY_PEER},
		{"Channel 00/0 : 0[0] -> 1[1] via P2P/IPC/read", NCCL_WAY_PEER},
		{"Channel 00/0 : 0[1000] -> 1[100250] via P2P/IPC", NCCL_WAY_PEER},
		{"Channel 00/0 : 0[0] -> 1[1] via P2P/indirect/2[2]", NCCL_WAY_RELAYED},
		{"Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", NCCL_WAY_HOST},
		{"Channel 00 : 0[0] -> 1[1] via SHM/CE/direct", NCCL_WAY_HOST},
		{"Channel 00 : 0[0] -> 1[1] via SHM/direct", NCCL_WAY_HOST},
		{"Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA", NCCL_WAY_NIC_GDR},
		{"Channel 00/0 : 0[0] -> 1[1] [send] via NET/IBext_v8/5(2)/GDRDMA(PCI)",
		 NCCL_WAY_NIC_GDR},
		{"Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0/Shared", NCCL_WAY_NIC_HOST},
		{"Channel 00/0 : 0[0] -> 1[1] via", NCCL_WAY_NONE},
		{"Channel 00/0 : 0[0] -> 1[1] via SH", NCCL_WAY_NONE},
		{"Channel 00/0 : 0[0] -> 1[", NCCL_WAY_NONE},
		{"Channel 00/02 :    0   1", NCCL_WAY_NONE},
		{"CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA", NCCL_WAY_NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		AUTO_STRBUF struct strbuf b = {0};
		struct nccl_log *l;

		strbuf_printf(&b, "%s" P(0) "%s\n", INIT("COMPLETE"), rows[i].via);
		l = parsed(strbuf_str(&b));
		assert_int_equal(l->device_n, 2);
		assert_way(l, 0, 1, rows[i].way);
		assert_way(l, 1, 0, NCCL_WAY_NONE);
		nccl_log_free(l);
	}
}

/* The receiving side writes it too, so both ends count for the same direction. */
static void receivers_lines(void **state)
{
	struct nccl_log *l = parsed(
		INIT("START") P(1) "Channel 00/0 : 0[0] -> 1[1] [receive] via NET/IB/0/GDRDMA\n");

	(void)state;
	assert_way(l, 0, 1, NCCL_WAY_NIC_GDR);
	assert_way(l, 1, 0, NCCL_WAY_NONE);
	assert_int_equal(nccl_log_pair(l, 0, 1)->line, 3);
	nccl_log_free(l);
}

static void mixed_ways_are_kept(void **state)
{
	struct nccl_log *l = parsed(INIT("COMPLETE") P(
		0) "Channel 00/0 : 0[0] -> 1[1] via "
		   "P2P/CUMEM\n" P(0) "Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\n" P(
			   0) "Channel 00 : 0[0] -> 1[1] "
			      "via SHM/direct/direct\n");
	const struct nccl_pair *p = nccl_log_pair(l, 0, 1);

	(void)state;
	assert_int_equal(p->connections[NCCL_WAY_PEER], 2);
	assert_int_equal(p->connections[NCCL_WAY_HOST], 1);
	assert_way(l, 0, 1, NCCL_WAY_HOST);
	assert_string_equal(p->transports, "P2P/CUMEM, SHM/direct/direct");
	nccl_log_free(l);
}

/* ---- who is who ---- */

static void ranks_and_devices(void **state)
{
	struct nccl_log *l = parsed("NCCL version 2.21.5+cuda12.4\n" INIT("COMPLETE"));

	(void)state;
	assert_string_equal(l->version, "2.21.5+cuda12.4");
	assert_int_equal(l->version_number, 22105);
	assert_int_equal(l->communicators, 1);
	assert_int_equal(l->ranks, 2);
	assert_string_equal(l->devices[0].host, "node1");
	assert_string_equal(l->devices[0].pci, "0000:01:00.0");
	assert_int_equal(l->devices[0].pid, 100);
	assert_string_equal(l->devices[1].pci, "0001:00:25.0");
	assert_int_equal(l->devices[1].nvml_index, 1);
	nccl_log_free(l);
}

/* What an excerpt without the init lines leaves. */
static void an_excerpt(void **state)
{
	struct nccl_log *l =
		parsed("node1:1:2 [0] NCCL INFO Channel 00 : 0[4] -> 1[7] via SHM/direct/direct\n"
		       "node1:2:3 [1] NCCL INFO Channel 00 : 1[7] -> 0[4] via SHM/direct/direct\n");

	(void)state;
	assert_int_equal(l->device_n, 2);
	assert_int_equal(l->devices[0].nvml_index, 4);
	assert_int_equal(l->devices[1].nvml_index, 7);
	assert_int_equal(l->devices[1].pid, -1);
	assert_way(l, 0, 1, NCCL_WAY_HOST);
	assert_way(l, 1, 0, NCCL_WAY_HOST);
	assert_true(nccl_log_same_host(l, 0, 1));
	assert_reason(l, 0, 1, NCCL_REASON_UNKNOWN, false);
	nccl_log_free(l);
}

/* Two hosts that number their GPUs alike; mpirun and quotes before the lines, colours, CRLF. */
static void two_hosts(void **state)
{
	struct nccl_log *l = parsed(
		"[1,0]<stdout>:nodeA:5:6 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 4 "
		"cudaDev 0 nvmlDev 0 busId 4000 commId 0x9 - Init START\r\n"
		"> nodeA:7:8 [1] NCCL INFO ncclCommInitRank comm 0x1 rank 1 nranks 4 cudaDev 1 "
		"nvmlDev 1 busId 5000 commId 0x9 - Init START\n"
		"\033[32m(Worker pid=5) nodeB:5:6 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 2 "
		"nranks 4 cudaDev 0 nvmlDev 0 busId 4000 commId 0x9 - Init START\033[0m\n"
		"nodeA:7:9 [1] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0\n"
		"nodeB:5:9 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [receive] via NET/IB/0\n"
		"nodeA:5:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
		"nodeB:5:9 [0] NCCL INFO Channel 00/0 : 2[0] -> 3[1] via P2P/CUMEM\n");
	struct nccl_log_counts c;

	(void)state;
	assert_int_equal(l->device_n, 4); /* rank 3 is known from a line of rank 2 only */
	assert_string_equal(l->devices[2].host, "nodeB");
	assert_string_equal(l->devices[3].host, "nodeB");
	assert_null(l->devices[3].pci);
	assert_way(l, 0, 1, NCCL_WAY_PEER);
	assert_way(l, 1, 2, NCCL_WAY_NIC_HOST);
	assert_way(l, 2, 3, NCCL_WAY_PEER);
	assert_int_equal(nccl_log_pair(l, 1, 2)->connections[NCCL_WAY_NIC_HOST], 2);
	assert_reason(l, 1, 2, NCCL_REASON_NONE, false); /* between hosts that is the way */
	nccl_log_count(l, &c);
	assert_int_equal(c.pairs, 2);
	assert_int_equal(c.p2p, 2);
	assert_int_equal(c.across, 1);
	nccl_log_free(l);
}

/* A second communicator of the same processes, the other way round: rank 0 is the second GPU. */
static void several_communicators(void **state)
{
	struct nccl_log *l = parsed(INIT("START") P(0) "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n" P(
		0) "ncclCommSplit "
		   "comm 0xb0 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 parent 0xa0 "
		   "splitCount 1 color 5 key 1 - Init START\n" P(
			   1) "ncclCommSplit comm 0xb1 rank 0 nranks 2 cudaDev 1 nvmlDev 1 "
			      "busId "
			      "100250 parent 0xa1 splitCount 1 color 5 key 0- Init START\n" P(
				      1) "Channel 00 : 0[1] -> 1[0] via SHM/direct/direct\n");

	(void)state;
	assert_int_equal(l->communicators, 2);
	assert_int_equal(l->device_n, 2);
	assert_way(l, 0, 1, NCCL_WAY_PEER);
	assert_way(l, 1, 0, NCCL_WAY_HOST);
	nccl_log_free(l);
}

/* Processes write into each other's lines: what is whole counts, halves do not. */
static void lines_run_into_each_other(void **state)
{
	struct nccl_log *l =
		parsed(INIT("COMPLETE") P(0) "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM" P(
			1) "Channel 00/0 : 1[1] "
			   "-> 0[0] via P2P/CUMEM\n" P(0) "Channel 01/0 : 0[0] -> 1" P(
				   1) "Channel 01/0 : 1[1] -> 0[0] "
				      "via P2P/CUMEM\n");

	(void)state;
	assert_int_equal(l->device_n, 2);
	assert_int_equal(nccl_log_pair(l, 0, 1)->connections[NCCL_WAY_PEER], 1);
	assert_int_equal(nccl_log_pair(l, 1, 0)->connections[NCCL_WAY_PEER], 2);
	assert_string_equal(nccl_log_pair(l, 0, 1)->transports, "P2P/CUMEM");
	nccl_log_free(l);
}

/* ---- why not ---- */

#define SHM_BOTH                                                                                   \
	P(0)                                                                                       \
	"Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n" P(                                     \
		1) "Channel 00 : 1[1] -> 0[0] via SHM/direct/direct\n"
#define NET_BOTH                                                                                   \
	P(0)                                                                                       \
	"Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0\n" P(                                 \
		1) "Channel 00/0 : 1[1] -> 0[0] [send] via NET/Socket/0\n"

static void reasons_by_version(void **state)
{
	static const struct {
		const char *text;
		enum nccl_reason reason;
		bool certain;
		unsigned evidence;
	} rows[] = {
		/* 2.18, 2.20: nothing tells */
		{INIT("COMPLETE") SHM_BOTH, NCCL_REASON_UNKNOWN, false, 3},
		{INIT("COMPLETE") P(
			 0) "P2P is disabled between connected GPUs 0 and 1. You can repress this "
			    "message with NCCL_IGNORE_DISABLED_P2P=1.\n" SHM_BOTH,
		 NCCL_REASON_DRIVER, true, 3},
		{INIT("COMPLETE") P(
			 0) "Could not enable P2P between dev 0(=1000) and dev 1(=2000)\n" SHM_BOTH,
		 NCCL_REASON_DRIVER, true, 3},
		/* 2.24 */
		{INIT("COMPLETE")
			 P(0) "Check P2P Type intraNodeP2pSupport 0 directMode 0\n" SHM_BOTH,
		 NCCL_REASON_UNKNOWN, false, 4},
		/* 2.27 */
		{INIT("COMPLETE") P(0) "Check P2P Type isAllDirectP2p 0 directMode 0\n" SHM_BOTH,
		 NCCL_REASON_UNKNOWN, false, 4},
		/* 2.28.9, 2.30 */
		{INIT("COMPLETE") P(
			 0) "Check P2P Type isAllDirectP2p 0 directMode 0 isAllCudaP2p 1\n" SHM_BOTH,
		 NCCL_REASON_LEVEL, true, 3},
		{INIT("COMPLETE") P(
			 1) "Check P2P Type isAllDirectP2p 0 directMode 0 isAllCudaP2p 0\n" SHM_BOTH,
		 NCCL_REASON_DRIVER, true, 3},
		/* the environment */
		{P(0) "NCCL_P2P_DISABLE set by environment to 1.\n" INIT("COMPLETE") SHM_BOTH,
		 NCCL_REASON_ENVIRONMENT, true, 1},
		{P(0) "NCCL_P2P_DISABLE set by environment to 0.\n" INIT("COMPLETE") SHM_BOTH,
		 NCCL_REASON_UNKNOWN, false, 4},
		{P(0) "NCCL_P2P_LEVEL set by environment to LOC\n" INIT("COMPLETE") SHM_BOTH,
		 NCCL_REASON_ENVIRONMENT, true, 1},
		{P(0) "NCCL_P2P_LEVEL set by environment to PIX\n" INIT("COMPLETE") SHM_BOTH,
		 NCCL_REASON_ENVIRONMENT, false, 1},
		{P(0) "NCCL_P2P_LEVEL set by environment to SYS\n" INIT("COMPLETE") P(
			 0) "Check P2P Type isAllDirectP2p 0 directMode 0 isAllCudaP2p 0\n" SHM_BOTH,
		 NCCL_REASON_DRIVER, true, 4},
		/* the network within one host */
		{INIT("COMPLETE") NET_BOTH, NCCL_REASON_CONTAINER, false, 3},
		{P(0) "NCCL_P2P_DISABLE set by environment to 1\n" INIT("COMPLETE") NET_BOTH,
		 NCCL_REASON_ENVIRONMENT, true, 1},
		{P(0) "NCCL_SHM_DISABLE set by environment to 1\n" INIT("COMPLETE") P(
			 0) "Check P2P Type isAllDirectP2p 0 directMode 0 isAllCudaP2p 1\n" NET_BOTH,
		 NCCL_REASON_LEVEL, true, 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct nccl_log *l = parsed(rows[i].text);

		if (nccl_log_pair(l, 0, 1)->reason != rows[i].reason)
			fail_msg("row %zu: %s", i,
				 nccl_reason_word(nccl_log_pair(l, 0, 1)->reason));
		assert_reason(l, 0, 1, rows[i].reason, rows[i].certain);
		assert_int_equal(nccl_log_pair(l, 0, 1)->evidence[0], rows[i].evidence);
		nccl_log_free(l);
	}
}

/*
 * Three GPUs, one pair by P2P: the driver offers it, so the distance is likely what keeps others.
 */
static void some_pairs_of_a_host(void **state)
{
	struct nccl_log *l =
		parsed(SAME_PID
		       "[0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer\n" SAME_PID
		       "[1] NCCL INFO Channel 00 : 1[1] -> 2[2] via SHM/direct/direct\n" SAME_PID
		       "[2] NCCL INFO Channel 00 : 2[2] -> 0[0] via SHM/direct/direct\n");

	(void)state;
	assert_reason(l, 0, 1, NCCL_REASON_NONE, false);
	assert_reason(l, 1, 2, NCCL_REASON_LEVEL, false);
	nccl_log_free(l);
}

/* ---- how it ended ---- */

static void assert_failure(const struct nccl_log_failure *x, enum run_failure_kind kind, int rank,
			   int code, const char *what, unsigned line)
{
	assert_int_equal(x->failure.kind, kind);
	assert_int_equal(x->failure.rank, rank);
	assert_int_equal(x->failure.code, code);
	assert_string_equal(x->failure.what, what);
	assert_int_equal(x->line, line);
}

#define WATCHDOG(rank, seq, op)                                                                    \
	"[rank" #rank "]:[E1122 10:07:08.412 ProcessGroupNCCL.cpp:685] [Rank " #rank               \
	"] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" #seq ", OpType=" op     \
	", NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600060 milliseconds\n"

/* Causes first, whatever the order of the lines; what repeats is counted. */
static void failures_in_order(void **state)
{
	struct nccl_log *l = parsed(INIT("COMPLETE") P(
		1) "comm 0xa1 rank 1 nranks 2 cudaDev 1 busId 100250 - Abort "
		   "COMPLETE\n" WATCHDOG(0, 1580, "ALLREDUCE") WATCHDOG(
			   0, 1580,
			   "ALLREDUCE") "[rank1]: torch.distributed.DistBackendError: NCCL "
					"error in: /x/NCCLUtils.cpp:77, unhandled cuda error (run "
					"with NCCL_DEBUG=INFO for details), NCCL version 2.26.2\n"
					"node1:101:201 [1] enqueue.cc:1595 NCCL WARN Cuda "
					"failure 'an illegal memory access was encountered'\n"
					"node1:101:201 [1] NCCL INFO Cuda failure 'unknown "
					"error'\n");

	(void)state;
	assert_int_equal(l->failure_n, 4);
	assert_failure(&l->failures[0], RUN_CUDA_ERROR, 1, 700,
		       "an illegal memory access was encountered", 7);
	assert_failure(&l->failures[1], RUN_NCCL_ERROR, 1, 1, "unhandled cuda error", 6);
	assert_failure(&l->failures[2], RUN_TIMED_OUT, 0, -1, "ALLREDUCE", 4);
	assert_true(l->failures[2].failure.sequence == 1580);
	assert_int_equal(l->failures[2].count, 2);
	assert_failure(&l->failures[3], RUN_ABORTED, 1, -1, "", 3);
	for (size_t i = 0; i < l->failure_n; i++)
		assert_string_equal(l->devices[l->failures[i].device].pci,
				    i == 2 ? "0000:01:00.0" : "0001:00:25.0");
	nccl_log_free(l);
}

/*
 * Whether ranks wait in the same collective tells a transfer that hangs from a program that is
 * wrong.
 */
static void time_outs_are_compared(void **state)
{
	static const struct {
		const char *text;
		enum run_waits waits;
	} logs[] = {
		{WATCHDOG(0, 7, "ALLREDUCE"), RUN_WAITS_UNKNOWN},
		{WATCHDOG(0, 7, "ALLREDUCE") WATCHDOG(0, 7, "ALLREDUCE"), RUN_WAITS_UNKNOWN},
		{WATCHDOG(0, 7, "ALLREDUCE") WATCHDOG(3, 7, "ALLREDUCE"), RUN_WAITS_SAME},
		{WATCHDOG(0, 7, "ALLREDUCE") WATCHDOG(3, 7, "BROADCAST"), RUN_WAITS_MIXED},
		{WATCHDOG(0, 7, "ALLREDUCE") WATCHDOG(3, 9, "ALLREDUCE"), RUN_WAITS_BEHIND},
		/* a rank of two groups, and groups that the lines name: each counts by itself */
		{WATCHDOG(0, 7, "ALLREDUCE") WATCHDOG(0, 9, "ALLREDUCE")
			 WATCHDOG(3, 9, "ALLREDUCE"),
		 RUN_WAITS_UNKNOWN},
		{WATCHDOG(0, 7, "ALLREDUCE") "[rank13]:[E218 ProcessGroupNCCL.cpp:616] [Rank 1] "
					     "Watchdog caught collective operation timeout: "
					     "WorkNCCL(SeqNum=9, OpType=ALLREDUCE)\n",
		 RUN_WAITS_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(logs) / sizeof(*logs); i++) {
		struct nccl_log *l = parsed(logs[i].text);

		assert_int_equal(l->failures[0].failure.waits, logs[i].waits);
		nccl_log_free(l);
	}
}

/* CUDA's errors as other programs print them. */
static void cuda_errors_of_others(void **state)
{
	static const struct {
		const char *line;
		int code;
	} lines[] = {
		{"RuntimeError: cuda runtime error (802) : system not yet initialized at /x/T.cpp:50",
		 802},
		{"CUDA error at a.cu:256 code=802(cudaErrorSystemNotReady) \"cudaSetDevice(0)\"",
		 802},
		{"[TensorRT-LLM][ERROR] CUDA runtime error in cudaIpcOpenMemHandle(x): peer access is "
		 "not supported between these two devices (/a/ipcUtils.cpp:90)",
		 217},
		{"[1613602600.236562] [dgx13:2:0]  cuda_ipc_cache.c:114  UCX  ERROR cuIpcOpenMemHandle() "
		 "failed: peer access is not supported between these two devices",
		 217},
		{"Training error: CUDA error: an illegal memory access was encountered", 700},
		{"[2025-05-03 23:03:33 TP1] Setup Custom allreduce failed with CUDART error: peer access "
		 "is not supported between these two devices. To silence this warning, specify x",
		 217},
		{"Failed: Cuda error /w/csrc/custom_all_reduce.cuh:307 'peer access is not supported "
		 "between these two devices'",
		 217},
		{"z-pc:9:9 [0] transport/p2p.cc:238 NCCL WARN failed to open CUDA IPC handle : 217 peer "
		 "access is not supported between these two devices",
		 217},
		{"UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run "
		 "some cuda functions? Error 802: system not yet initialized (Triggered at x.cpp:109.)",
		 802},
		{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", 2},
		{"RuntimeError: No CUDA GPUs are available", 100},
		{"RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment",
		 999},
		{"host1:9:9 [0] misc/strongstream.cc:60 NCCL WARN Cuda failure 'CUDA driver is a stub "
		 "library'",
		 34},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct nccl_log *l = parsed(lines[i].line);

		assert_int_equal(l->failures[0].failure.kind, RUN_CUDA_ERROR);
		assert_int_equal(l->failures[0].failure.code, lines[i].code);
		nccl_log_free(l);
	}
	assert_false(nccl_log_recognise("CUDA error: no", strlen("CUDA error: no")));
}

/* Lines of PyTorch or nccl-tests alone tell as much. */
static void failures_without_nccl(void **state)
{
	struct nccl_log *l = parsed(WATCHDOG(
		2, 7,
		"BROADCAST") "node1: Test NCCL failure common.cu:303 'remote process exited or "
			     "there was a network error'\n"
			     "node1: Test CUDA failure common.cu:941 'system not yet initialized'\n"
			     "RuntimeError: CUDA error: misaligned address\n");

	(void)state;
	assert_int_equal(l->failure_n, 4);
	assert_failure(&l->failures[0], RUN_CUDA_ERROR, -1, 802, "system not yet initialized", 3);
	assert_failure(&l->failures[1], RUN_CUDA_ERROR, -1, 716, "misaligned address", 4);
	assert_failure(&l->failures[2], RUN_NCCL_ERROR, -1, 6,
		       "remote process exited or there was a network error", 2);
	assert_failure(&l->failures[3], RUN_TIMED_OUT, 2, -1, "BROADCAST", 1);
	assert_int_equal(l->failures[3].device, -1);
	nccl_log_free(l);
}

/* How other programs than NCCL say that ranks wait, died or did not meet. */
static void failures_of_engines_and_launchers(void **state)
{
	static const struct {
		const char *line;
		enum run_failure_kind kind;
		const char *meaning;
	} lines[] = {
		{"[rank1]:[F1 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) Rank 1] "
		 "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
		 RUN_TIMED_OUT, "does not return"},
		{"(EngineCore_DP0 pid=333) ERROR [core.py:850] TimeoutError: RPC call to sample_tokens "
		 "timed out.",
		 RUN_TIMED_OUT, "a worker of the inference engine"},
		{"[2025-09-07 16:25:32 TP1] Scheduler watchdog timeout (self.watchdog_timeout=300, "
		 "self.soft=False)",
		 RUN_TIMED_OUT, "a worker of the inference engine"},
		{"  traceback : Signal 7 (SIGBUS) received by PID 1799", RUN_CRASHED, "/dev/shm"},
		{"  traceback : Signal 9 (SIGKILL) received by PID 1799", RUN_CRASHED,
		 "killed from outside"},
		{"RuntimeError: DataLoader worker (pid 12345) is killed by signal: Bus error. It is "
		 "possible that dataloader's workers are out of shared memory.",
		 RUN_CRASHED, "/dev/shm"},
		{"mpirun noticed that process rank 1 with PID 0 on node gpu7 exited on signal 7 (Bus error).",
		 RUN_CRASHED, "/dev/shm"},
		{"torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while "
		 "trying to connect to (10.0.0.1, 29500).",
		 RUN_UNREACHED, "did not reach"},
		{"RuntimeError: The server socket has failed to listen on any local network address.",
		 RUN_UNREACHED, "is in use"},
		{"Failed, NCCL error /app/tensorrt_llm/common/opUtils.cpp:45 'unhandled cuda error (run with "
		 "NCCL_DEBUG=INFO for details)'",
		 RUN_NCCL_ERROR, "a CUDA call within NCCL failed"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct nccl_log *l = parsed(lines[i].line);

		assert_int_equal(l->failure_n, 1);
		assert_int_equal(l->failures[0].failure.kind, lines[i].kind);
		assert_non_null(strstr(run_failure_find(&l->failures[0].failure)->meaning,
				       lines[i].meaning));
		nccl_log_free(l);
	}
	/* Of stopping the run. */
	assert_false(nccl_log_recognise("traceback : Signal 15 (SIGTERM) received by PID 1", 49));
}

/*
 * A traceback repeats the line of the program that raises the error, which does not say yet what
 * failed.
 */
static void source_in_tracebacks(void **state)
{
	static const char *const lines[] = {
		"    raise RuntimeError(f\"NCCL error: {error_str}\")",
		("(Worker pid=15) ERROR 04-14 13:46:59 [multiproc_executor.py:857]     raise "
		 "RuntimeError(f\"NCCL error: {error_str}\")"),
		"raise torch.distributed.DistBackendError(\"NCCL error in: \" + where)",
	};
	struct nccl_log *l = parsed(
		"    raise RuntimeError(f\"NCCL error: {error_str}\")\n"
		"RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)\n");

	(void)state;
	assert_int_equal(l->failure_n, 1);
	assert_failure(&l->failures[0], RUN_NCCL_ERROR, -1, 2, "unhandled system error", 2);
	nccl_log_free(l);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_true(nccl_line_is_source(lines[i]));
	assert_false(nccl_line_is_source("RuntimeError: NCCL error: invalid usage, or raise it"));
	assert_false(nccl_line_is_source("'raise E(x)\\nRuntimeError: NCCL error: invalid usage'"));
}

/*
 * The sentence below "Last error:" is the reason, whatever it says; what is no sentence of NCCL's
 * is none.
 */
static void last_errors(void **state)
{
	static const struct {
		const char *said, *what;
		int code, rank;
	} rows[] = {
		{"No NVML device handle. Skipping nvlink detection.",
		 "No NVML device handle. Skipping nvlink detection.", -1, -1},
		{"Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000",
		 "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000", 5, 0},
		{"Unknown NCCL Error", "internal error", 3, -1},
		{"Exception raised from throwNcclError at x.cpp:12 (most recent call first):",
		 "internal error", 3, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		AUTO_STRBUF struct strbuf text = {0};
		struct nccl_log *l;

		strbuf_printf(&text, "ncclInternalError: Internal check failed.\nLast error:\n%s\n",
			      rows[i].said);
		l = parsed(strbuf_str(&text));
		assert_int_equal(l->failure_n, 1);
		assert_failure(&l->failures[0], RUN_NCCL_ERROR, rows[i].rank, rows[i].code,
			       rows[i].what, rows[i].code == 3 ? 1 : 3);
		nccl_log_free(l);
	}
}

/*
 * Two ranks on one GPU are the same error, whatever result NCCL returns with it and however a page
 * has it: below "Last error:", behind it, in one line, above all others, or in a sentence.
 */
static void duplicate_gpus(void **state)
{
#define DUPLICATE "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000"
#define RESULT                                                                                     \
	"torch.distributed.DistBackendError: NCCL error in: ../csrc/ProcessGroupNCCL.cpp:1269, "   \
	"internal error, NCCL version 2.14.3"
	static const char *const texts[] = {
		RESULT "\nncclInternalError: Internal check failed.\nLast error:\n" DUPLICATE "\n",
		RESULT "\nncclInternalError: Internal check failed.\nLast error: " DUPLICATE "\n",
		"E  '" RESULT
		"\\nncclInternalError: Internal check failed.\\nLast error:\\n" DUPLICATE "\\n'\n",
		DUPLICATE "\n Last error:\nncclInternalError: Internal check failed.\n" RESULT "\n",
		"Why \"" DUPLICATE "\"?\nRuntimeError: NCCL Error 3: internal error\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct nccl_log *l = parsed(texts[i]);
		const struct run_failure *f = &l->failures[0].failure;

		if (!l->failure_n || f->code != 5 || f->rank != 1 ||
		    strcmp(f->what, DUPLICATE) != 0)
			fail_msg("%zu: %zu failures, '%s'", i, l->failure_n,
				 l->failure_n ? f->what : "");
		nccl_log_free(l);
	}
}

/* A NIC's event is no failure of the run: it may go on. */
static void events_of_nics(void **state)
{
	struct nccl_log *l = parsed(
		"node1:1:2 [0] transport/net_ib.cc:101 NCCL WARN NET/IB : mlx5_2:1 Got async event : "
		"port error\n"
		"node1:1:2 [0] NCCL INFO Using network IB\n");

	(void)state;
	assert_int_equal(l->failure_n, 0);
	nccl_log_free(l);
}

#define LAUNCHER                                                                                   \
	"[2026-11-24 10:00:34,590] [ERROR] [launch.py:321:sigkill_handler] ['python', '-u', "

static void launcher_of_deepspeed(void **state)
{
	static const struct {
		const char *line, *what; /* NULL: no failure */
	} lines[] = {
		{LAUNCHER "'t.py'] exits with return code = -11\n",
		 "signal 11 (Segmentation fault)"},
		{LAUNCHER "'t.py'] exits with return code = -9\n", "signal 9 (Killed)"},
		{LAUNCHER "'exits with return code = -'] exits with return code = -7\n",
		 "signal 7 (Bus error)"},
		{LAUNCHER "'t.py'] exits with return code = -15\n", NULL},
		{LAUNCHER "'t.py'] exits with return code = 1\n", NULL},
		{"backup: ['cp'] exits with return code = -9\n", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct nccl_log *l;

		if (!lines[i].what) {
			assert_false(nccl_log_recognise(lines[i].line, strlen(lines[i].line)));
			continue;
		}
		l = parsed(lines[i].line);
		assert_int_equal(l->failure_n, 1);
		assert_failure(&l->failures[0], RUN_CRASHED, -1, -1, lines[i].what, 1);
		nccl_log_free(l);
	}
}

static void unregistered_buffers_are_no_failures(void **state)
{
	struct nccl_log *l = parsed(INIT("COMPLETE") SAME_PID
				    "[0] register.cc:9 NCCL WARN rank 0 failed to register "
				    "userbuff 0x7f00 size 1024\n");

	(void)state;
	assert_int_equal(l->failure_n, 0);
	assert_int_equal(l->warnings.n, 1);
	nccl_log_free(l);
}

static void ends_are_seen(void **state)
{
#define LEFT(rank) P(rank) "comm 0xa" #rank " rank " #rank " nranks 2 - Destroy COMPLETE\n"
#define VERSION    P(0) "NCCL version 2.21.5+cuda12.4\n"
	static const struct {
		const char *text, *open_end; /* NULL: whole */
	} logs[] = {
		{VERSION INIT("COMPLETE") LEFT(0) LEFT(1), NULL},
		{VERSION INIT("COMPLETE") "# Avg bus bandwidth    : 21.5\n", NULL},
		{VERSION INIT("COMPLETE") LEFT(0), "ends before 1 of 2 ranks left NCCL"},
		{VERSION INIT("COMPLETE"), "ends before a rank left NCCL"},
		{INIT("COMPLETE") LEFT(0) LEFT(1), "begins after NCCL's start"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(logs) / sizeof(*logs); i++) {
		struct nccl_log *l = parsed(logs[i].text);

		if (logs[i].open_end)
			assert_string_equal(l->open_end, logs[i].open_end);
		else
			assert_null(l->open_end);
		nccl_log_free(l);
	}
#undef LEFT
#undef VERSION
}

static void warnings_are_no_failures(void **state)
{
	struct nccl_log *l = parsed(
		"n:1:2 [0] graph/xml.cc:402 NCCL WARN Missing \"iommu=pt\" from kernel command "
		"line which can lead to system instablity or hang!\n"
		"n:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1000 - Destroy "
		"COMPLETE\n");

	(void)state;
	assert_int_equal(l->failure_n, 0);
	assert_int_equal(l->warnings.n, 1);
	nccl_log_free(l);
}

/* ---- what else is in a log ---- */

static void the_shim_is_told_once(void **state)
{
	struct nccl_log *l = parsed(INIT(
		"COMPLETE") "node1:100:200 NCCL INFO onehop: comm 0x1 rank 0 nranks 2: takes over what it is faster at\n"
			    "node1:101:201 NCCL INFO onehop: comm 0x2 rank 1 nranks 2: takes over what it is faster at\n"
			    "node1:101:201 onehop.c:0 NCCL WARN onehop: ONEHOP_SHIM=x is not off, on or all: off\n");

	(void)state;
	assert_int_equal(l->shim.n, 1);
	assert_int_equal(l->shim.items[0].count, 2);
	assert_string_equal(l->shim.items[0].text, "takes over what it is faster at");
	assert_int_equal(l->warnings.n, 1);
	nccl_log_free(l);
}

/* Communicators, ranks and hosts add up; one rank was killed. */
static void the_shims_counts_add_up(void **state)
{
	struct nccl_log *l = parsed(INIT(
		"COMPLETE") "node1:100:200 NCCL INFO onehop: comm 0x1 rank 0 nranks 2: takes over what it is faster at\n"
			    "node1:101:201 NCCL INFO onehop: comm 0x1 rank 1 nranks 2: takes over what it is faster at\n"
			    "node1:100:200 NCCL INFO onehop: comm 0x2 rank 0 nranks 4: takes over what it is faster at\n"
			    "node2:100:200 NCCL INFO onehop: comm 0x1 rank 0 nranks 2: takes over what it is faster at\n"
			    "node1:100:200 NCCL INFO onehop: comm 0x1 rank 0: takes over AllReduce, first with 9 float32\n"
			    "node1:100:200 NCCL INFO onehop: comm 0x1 rank 0: took over 1 call, passed on 0\n"
			    "node1:101:201 NCCL INFO onehop: comm 0x1 rank 1: took over 20 calls, passed on 3\n"
			    "node2:100:200 NCCL INFO onehop: comm 0x1 rank 0: took over 0 calls, passed on 7\n"
			    "node2:100:200 NCCL INFO onehop: comm 0x1 rank 0: took over many calls\n");

	(void)state;
	assert_int_equal(l->shim.n, 3);
	assert_int_equal(l->shim_calls.begun, 4);
	assert_int_equal(l->shim_calls.ended, 3);
	assert_int_equal(l->shim_calls.taken, 21);
	assert_int_equal(l->shim_calls.passed, 10);
	assert_int_equal(l->shim_calls.least, 0);
	assert_int_equal(l->shim_calls.most, 20);
	nccl_log_free(l);
}

static void notes_and_settings(void **state)
{
	struct nccl_log *l = parsed(INIT("COMPLETE") P(
		0) "24 coll channels, 0 collnet channels, 0 nvls channels, 32 "
		   "p2p channels, 32 p2p channels per peer\n" P(
			   1) "24 coll channels, 0 collnet "
			      "channels, 0 nvls channels, 32 p2p channels, 32 p2p channels per "
			      "peer\n" P(0) "AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE "
					    "channel{Lo..Hi}={0..15}\n" P(
						    0) "NET/IB : No device "
						       "found.\n" P(
							       0) "NVLS multicast support is not "
								  "available on "
								  "dev 0\n"
								  "[2026-01-05 10:11:12] "
								  "node1:100:200 [0] "
								  "transport/nvls.cc:598 NCCL WARN "
								  "Cuda failure "
								  "1 'invalid argument'\n"
								  "node1:101:201 [1] "
								  "misc/shmutils.cc:72 NCCL "
								  "WARN Error: "
								  "failed to extend /dev/shm\n");

	(void)state;
	assert_int_equal(l->channels.n, 1);
	assert_int_equal(l->channels.items[0].count, 2);
	assert_int_equal(l->choices.n, 1);
	assert_int_equal(l->network.n, 1);
	assert_int_equal(l->nvls.n, 1);
	assert_int_equal(l->warnings.n, 0); /* both are failures */
	assert_int_equal(l->failure_n, 2);
	assert_failure(&l->failures[0], RUN_CUDA_ERROR, 0, 1, "invalid argument", 8);
	assert_failure(&l->failures[1], RUN_NCCL_ERROR, 1, -1, "Error: failed to extend /dev/shm",
		       9);
	assert_int_equal(l->lines, 9);
	nccl_log_free(l);
}

static void other_texts(void **state)
{
	static const char lspci[] = "00:00.0 Host bridge\n00: 22 10 80 14\n";
	struct nccl_log *l;

	(void)state;
	assert_int_equal(nccl_log_parse("hello", 5, "x", &l), -EINVAL);
	assert_string_equal(err_msg(), "x: a text, not a debug log of NCCL (NCCL_DEBUG=INFO)");
	assert_int_equal(nccl_log_parse(lspci, strlen(lspci), "x", &l), -EINVAL);
	assert_non_null(strstr(err_msg(), "use onehop check --from"));
}

static void too_many_gpus(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct nccl_log *l;

	(void)state;
	for (int i = 0; i <= NCCL_LOG_MAX_DEVICES; i++)
		strbuf_printf(
			&b,
			"n%d:1:2 [0] NCCL INFO comm 0x1 rank %d nranks 9999 cudaDev 0 nvmlDev 0 "
			"busId 1000 commId 0x1 - Init START\n",
			i, i);
	assert_int_equal(nccl_log_parse(strbuf_str(&b), b.len, "x", &l), -E2BIG);
}

/* ---- report, JSON, observations ---- */

static void report_names_variable_and_finding(void **state)
{
	struct nccl_log *l = parsed(INIT("COMPLETE") P(
		0) "Check P2P Type isAllDirectP2p 0 directMode 0 isAllCudaP2p 1\n" SHM_BOTH);
	struct document *out = document_new();
	AUTO_STRBUF struct strbuf text = {0};

	(void)state;
	report_log(out, l, true);
	document_write_text(out, &(struct text_format){.width = 200}, &text);
	assert_non_null(strstr(strbuf_str(&text), "NCCL_P2P_LEVEL=SYS"));
	assert_non_null(strstr(strbuf_str(&text), "nccl-level"));
	assert_non_null(strstr(strbuf_str(&text), "0 of 2 connected pairs within a host use P2P"));
	document_free(out);
	nccl_log_free(l);
}

/* Eight GPUs fit into 80 columns. */
static void matrix_of_eight(void **state)
{
	AUTO_STRBUF struct strbuf b = {0}, text = {0};
	struct document *out = document_new();
	struct nccl_log *l;

	(void)state;
	for (int i = 0; i < 8; i++) {
		strbuf_printf(
			&b,
			"n:1%d:2 [%d] NCCL INFO comm 0x1 rank %d nranks 8 cudaDev %d nvmlDev %d "
			"busId %x commId 0x1 - Init START\n",
			i, i, i, i, i, 0x1000 * (i + 1));
		for (int j = 0; j < 8; j++)
			if (i != j)
				strbuf_printf(
					&b,
					"n:1%d:3 [%d] NCCL INFO Channel 00/0 : %d[%d] -> %d[%d] "
					"[send] via NET/Socket/0\n",
					i, i, i, i, j, j);
	}
	l = parsed(strbuf_str(&b));
	report_log(out, l, true);
	document_write_text(out, &(struct text_format){0}, &text);
	for (const char *s = strbuf_str(&text); *s; s += strcspn(s, "\n") + 1) {
		if (strcspn(s, "\n") > 80)
			fail_msg("%.*s", (int)strcspn(s, "\n"), s);
		if (!strchr(s, '\n'))
			break;
	}
	document_free(out);
	nccl_log_free(l);
}

static void json_fits_its_schema(void **state)
{
	AUTO_STRBUF struct strbuf trouble = {0};
	struct nccl_log *l = parsed(
		P(0) "NCCL_P2P_DISABLE set by environment to 1\n" INIT("COMPLETE")
			SHM_BOTH WATCHDOG(0, 5, "ALLREDUCE") P(0) "NET/IB : No device found.\n");
	json_t *json = report_log_json(l);

	(void)state;
	json_schema_check(json, "log.schema.json", &trouble);
	assert_string_equal(strbuf_str(&trouble), "");
	json_decref(json);
	nccl_log_free(l);
}

/* One line of each kind that has a meaning of its own; tools/nccl-warnings counts them all. */
static void warnings_have_meanings(void **state)
{
	static const char *const warnings[][2] = {
		{"NET/IB : Got completion from peer 10.0.0.1<5> with status=IBV_WC_RETRY_EXC_ERR(12) "
		 "opcode=IBV_WC_SEND(0)",
		 "no answer from its peer"},
		{"NET/IB : Got completion from peer 10.0.0.1<5> with error 13, opcode 0, len 0",
		 "does not take what it is sent"},
		{"NET/IB: Got completion from peer 10.0.0.1<5> with status=4 opcode=1 len=0 vendor err 81",
		 "refused a transfer of its own rank"},
		{"NET/IB : Got completion from peer 10.0.0.1<5> with status=10 opcode=1 len=0",
		 "refused the access"},
		{"NET/IB: Got completion from peer x with status=IBV_WC_WR_FLUSH_ERR(5) opcode=x(1)",
		 "consequence of an earlier error"},
		{"Call to ibv_create_qp failed with error Cannot allocate memory",
		 "create a queue"},
		{"Call to ibv_modify_qp failed with 61 No data available",
		 "could not be connected"},
		{"Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401",
		 "NVLink multicast (NVLS)"},
		{"MNNVL (cliqueSize 8) is available but not working on this system.", "IMEX"},
		{"socketProgress: Connection closed by remote peer gpu8<41000>",
		 "another rank exited"},
		{"socketPollConnect: Connect to 10.0.0.1<41000> failed : Connection refused",
		 "could not connect to another"},
		{"Bootstrap : no socket interface found", "no network interface"},
		{"XML Topology has wrong version 3, 1 needed", "topology file"},
		{"Error: network IBext not found.", "NCCL_NET names a network"},
		{"CUDA Driver version found is 11000. Minimum requirement is 12000", "too old"},
		{"Error: failed to extend /dev/shm/nccl-x to 4096 bytes", "no room"},
		{"P2P is disabled between NVLINK connected GPUs 0 and 1. This should not be the "
		 "case given their connectivity, and is probably due to a hardware issue.",
		 "the driver refuses P2P"},
		{"socketPollConnect: Connect to 10.0.0.1<41000> returned 113(No route to host) errno "
		 "115(Operation now in progress)",
		 "could not connect to another"},
		{"NET/IB : Can't connect net devices with different link_layer. i=0 remMeta.ndevs=1",
		 "do not fit together"},
		{"cudaArch 1200 ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem 81920",
		 "not built for it"},
		{"MNNVL is not supported on this system", "NCCL_MNNVL_ENABLE=1"},
		{"Could not find any local path from gpu 0 to net.", "lacks NICs"},
		{"TOPO/NET : Only matched 1 devices, 2 requested from mlx5_0,mlx5_9",
		 "cannot be joined"},
		{"Net : No valid <IPv4_or_hostname>:<port> pair found", "NCCL_COMM_ID"},
		{"Net : No valid [IPv6]:port pair found", "NCCL_COMM_ID"},
		{"Failed to create CUDA context on device 0", "a second CUDA context"},
		{"NET/IB : mlx5_0:1 Got async error event: port error", "a NIC reported"},
		{"communicator encountered a fatal error (detected in ncclIbTest)",
		 "a NIC reported"},
		{"NET/IB : Attempted to connect incompatible devices: [0]mlx5_0:1/IB and [1]x:1/RoCE",
		 "do not fit together"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(warnings) / sizeof(*warnings); i++) {
		AUTO_STRBUF struct strbuf text = {0};
		struct nccl_log *l;

		strbuf_printf(&text, INIT("START") "node1:100:200 [0] file.cc:1 NCCL WARN %s\n",
			      warnings[i][0]);
		l = parsed(strbuf_str(&text));
		assert_int_equal(l->failure_n, 1);
		assert_non_null(
			strstr(run_failure_find(&l->failures[0].failure)->meaning, warnings[i][1]));
		nccl_log_free(l);
	}
}

/* What PyTorch says in general gives way to the warning below "Last error:". */
static void last_error(void **state)
{
	struct nccl_log *l = parsed(
		"[rank0]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, "
		"unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.29.3\n"
		"ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
		"Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error "
		"401 'the operation cannot be performed in the present state'.\n");

	(void)state;
	assert_int_equal(l->failure_n, 1);
	assert_int_equal(l->failures[0].line, 4);
	assert_int_equal(l->failures[0].failure.rank, 0);
	assert_non_null(strstr(run_failure_find(&l->failures[0].failure)->meaning, "NVLS"));
	nccl_log_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(warnings_have_meanings),
		cmocka_unit_test(failures_of_engines_and_launchers),
		cmocka_unit_test(last_error),
		cmocka_unit_test(every_transport),
		cmocka_unit_test(receivers_lines),
		cmocka_unit_test(mixed_ways_are_kept),
		cmocka_unit_test(ranks_and_devices),
		cmocka_unit_test(an_excerpt),
		cmocka_unit_test(two_hosts),
		cmocka_unit_test(several_communicators),
		cmocka_unit_test(lines_run_into_each_other),
		cmocka_unit_test(reasons_by_version),
		cmocka_unit_test(some_pairs_of_a_host),
		cmocka_unit_test(failures_in_order),
		cmocka_unit_test(failures_without_nccl),
		cmocka_unit_test(time_outs_are_compared),
		cmocka_unit_test(cuda_errors_of_others),
		cmocka_unit_test(warnings_are_no_failures),
		cmocka_unit_test(source_in_tracebacks),
		cmocka_unit_test(last_errors),
		cmocka_unit_test(duplicate_gpus),
		cmocka_unit_test(events_of_nics),
		cmocka_unit_test(launcher_of_deepspeed),
		cmocka_unit_test(unregistered_buffers_are_no_failures),
		cmocka_unit_test(ends_are_seen),
		cmocka_unit_test(the_shim_is_told_once),
		cmocka_unit_test(the_shims_counts_add_up),
		cmocka_unit_test(notes_and_settings),
		cmocka_unit_test(other_texts),
		cmocka_unit_test(too_many_gpus),
		cmocka_unit_test(report_names_variable_and_finding),
		cmocka_unit_test(matrix_of_eight),
		cmocka_unit_test(json_fits_its_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
