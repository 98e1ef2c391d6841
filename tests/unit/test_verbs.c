/* SPDX-License-Identifier: Apache-2.0 */
/*
 * src/rdma/ against the stand-in of libibverbs: what works leaves nothing behind, and each thing
 * that can fail is caught, named, and told apart from the others.
 */
#include "rdma/loopback.h"
#include "rdma/rdma_worker.h"

#include "base/array.h"
#include "base/err.h"
#include "skip.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- the layouts are the library's ---- */

#if __has_include(<infiniband/verbs.h>)
#define verbs_context theirs_extended_context /* the library has one of that name */
#include <infiniband/verbs.h>
#undef verbs_context

#define SAME_SIZE(name)                                                                            \
	_Static_assert(sizeof(struct verbs_##name) == sizeof(struct ibv_##name), #name)
#define SAME_PLACE(name, member)                                                                   \
	_Static_assert(offsetof(struct verbs_##name, member) ==                                    \
			       offsetof(struct ibv_##name, member),                                \
		       #name "." #member)
#define SAME_PLACE_AS(name, member, theirs)                                                        \
	_Static_assert(offsetof(struct verbs_##name, member) ==                                    \
			       offsetof(struct ibv_##name, theirs),                                \
		       #name "." #member)

SAME_SIZE(device);
SAME_PLACE(device, name);
SAME_PLACE(device, dev_name);
SAME_SIZE(device_attr);
SAME_PLACE(device_attr, max_qp_init_rd_atom);
SAME_PLACE(device_attr, phys_port_cnt);
SAME_SIZE(port_attr);
SAME_PLACE(port_attr, link_layer);
SAME_PLACE(port_attr, active_speed);
SAME_SIZE(gid_entry);
SAME_PLACE(gid_entry, gid_type);
SAME_SIZE(mr);
SAME_PLACE(mr, rkey);
SAME_SIZE(qp_init_attr);
SAME_PLACE(qp_init_attr, qp_type);
SAME_SIZE(ah_attr);
SAME_PLACE(ah_attr, is_global);
SAME_SIZE(qp_attr);
SAME_PLACE(qp_attr, retry_cnt);
SAME_PLACE(qp_attr, ah_attr);
SAME_PLACE(qp, qp_num);
SAME_PLACE(qp, send_cq);
SAME_PLACE(cq, cqe);
SAME_SIZE(sge);
SAME_SIZE(send_wr);
SAME_PLACE(send_wr, imm_data);
SAME_PLACE_AS(send_wr, rdma.remote_addr, wr.rdma.remote_addr);
SAME_PLACE_AS(send_wr, rdma.rkey, wr.rdma.rkey);
SAME_SIZE(recv_wr);
SAME_PLACE(recv_wr, sg_list);
SAME_PLACE(context, ops.post_recv);
SAME_SIZE(wc);
SAME_PLACE(wc, vendor_err);
SAME_SIZE(async_event);
SAME_PLACE(async_event, event_type);
SAME_PLACE(context, ops.poll_cq);
SAME_PLACE(context, ops.post_send);
SAME_PLACE(context, async_fd);
_Static_assert(sizeof(struct verbs_context_ops) == sizeof(struct ibv_context_ops), "context_ops");
SAME_PLACE(context, abi_compat);

/* Both count from the context, which comes last. */
#define SAME_BEFORE_CONTEXT(member)                                                                \
	_Static_assert(offsetof(struct verbs_extension, context) -                                 \
				       offsetof(struct verbs_extension, member) ==                 \
			       offsetof(struct theirs_extended_context, context) -                 \
				       offsetof(struct theirs_extended_context, member),           \
		       #member)
SAME_BEFORE_CONTEXT(query_device_ex);
SAME_BEFORE_CONTEXT(sz);
SAME_PLACE(device_attr_ex, odp_caps);
SAME_PLACE(device_attr_ex, odp_caps.per_transport_caps.rc_odp_caps);

static void numbers_are_the_librarys(void **state)
{
	static const int pairs[][2] = {
		{VERBS_PORT_ACTIVE, IBV_PORT_ACTIVE},
		{VERBS_PORT_DEFER, IBV_PORT_ACTIVE_DEFER},
		{VERBS_LINK_ETHERNET, IBV_LINK_LAYER_ETHERNET},
		{VERBS_QPT_RC, IBV_QPT_RC},
		{VERBS_QPS_RTS, IBV_QPS_RTS},
		{VERBS_QP_AV, IBV_QP_AV},
		{VERBS_QP_MAX_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC},
		{VERBS_QP_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER},
		{VERBS_QP_SQ_PSN, IBV_QP_SQ_PSN},
		{VERBS_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC},
		{VERBS_QP_DEST_QPN, IBV_QP_DEST_QPN},
		{VERBS_WR_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM},
		{VERBS_WR_SEND, IBV_WR_SEND},
		{VERBS_WR_READ, IBV_WR_RDMA_READ},
		{VERBS_SIGNALED, IBV_SEND_SIGNALED},
		{VERBS_INLINE, IBV_SEND_INLINE},
		{VERBS_RELAXED_ORDERING, IBV_ACCESS_RELAXED_ORDERING},
		{VERBS_ON_DEMAND, IBV_ACCESS_ON_DEMAND},
		{VERBS_ODP, IBV_ODP_SUPPORT},
		{VERBS_ODP_RECV, IBV_ODP_SUPPORT_RECV},
		{VERBS_ODP_READ, IBV_ODP_SUPPORT_READ},
		{VERBS_WC_RNR_RETRY_EXC, IBV_WC_RNR_RETRY_EXC_ERR},
		{VERBS_EVENT_DEVICE_FATAL, IBV_EVENT_DEVICE_FATAL},
		{VERBS_EVENT_GID_CHANGE, IBV_EVENT_GID_CHANGE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		if (pairs[i][0] != pairs[i][1])
			fail_msg("row %zu: %d, and the library has %d", i, pairs[i][0],
				 pairs[i][1]);
}
#else
static void numbers_are_the_librarys(void **state)
{
	(void)state;
	SKIP("libibverbs' header is not installed");
}
#endif

/* ---- running ---- */

static struct verbs verbs;
static int (*live)(void);
static int (*registered)(int relaxed);

static int load(void **state)
{
	void *lib;

	(void)state;
	if (verbs_load(&verbs) < 0)
		fail_msg("%s", err_msg());
	lib = dlopen(VERBS_LIBRARY, RTLD_NOW);
	live = (int (*)(void))dlsym(lib, "verbs_standin_live");
	registered = (int (*)(int))dlsym(lib, "verbs_standin_registered");
	assert_non_null(live);
	assert_non_null(registered);
	return 0;
}

#define MEASURES_ALL ((1u << RDMA_MEASURE_N) - 1)

/* Of simulated devices, so small that a test is done at once. */
static struct loopback_job *job_of(enum region_way way)
{
	struct loopback_job *j = calloc(1, sizeof(*j));

	*j = (struct loopback_job){
		.device = "mlx5_0",
		.port = 1,
		.way = way,
		.measures = MEASURES_ALL,
		.window = 4 << 20,
		.load = {.bytes = 65536,
			 .latency_bytes = 8,
			 .verify = true,
			 .depth = 16,
			 .queues = 1,
			 .stopping = {.relative = 0.5,
				      .budget_s = 60,
				      .min_samples = 6,
				      .max_samples = 6},
			 .sample_us = 100,
			 .limit_us = 60000000,
			 .pair = 5},
		.gpu_limit_us = 60000000,
	};
	if (!region_is_host(way)) {
		j->gpu.kind = DEVICE_HOST;
		j->gpu.n = 1;
		j->gpu.number[0] = 3;
		j->gpu.host.fault.initiator = j->gpu.host.fault.target = -1;
		j->gpu.host.memory_bytes = 32 << 20;
	}
	return j;
}

/* Nothing may be left of a run, whatever became of it. */
static void run(const char *plan, const struct loopback_job *j, struct loopback_result *ret)
{
	setenv("VERBS_STANDIN", plan, 1);
	loopback_run(&verbs, NULL, j, ret);
	if (live() != 0)
		fail_msg("%s: %d objects are left", plan, live());
}

static void all_is_right(void **state)
{
	struct loopback_result r;

	(void)state;
	for (int way = 0; way < REGION_WAY_N; way++) {
		struct loopback_job *j = job_of((enum region_way)way);

		run("", j, &r);
		assert_int_equal(r.failure.step, RDMA_STEP_NONE);
		assert_int_equal(r.window, j->window);
		for (int m = 0; m < RDMA_MEASURE_N; m++) {
			const struct rdma_cell *c = &r.cells[m];
			bool watched = rdma_is_round_trip((enum rdma_measure)m) &&
				       !region_is_host((enum region_way)way);

			assert_int_equal(c->done, !watched);
			if (watched)
				continue;
			if (c->failure.step)
				fail_msg("%s %d: %s", region_way_word((enum region_way)way), m,
					 c->failure.text);
			assert_true(c->value.n > 0 && c->value.median > 0);
			assert_int_equal(c->data, RDMA_DATA_RIGHT);
		}
		assert_int_equal(r.cells[RDMA_WRITE].checked_bytes, 2 * j->window);
		assert_int_equal(r.cells[RDMA_BOTH].checked_bytes, 4 * j->window);
		free(j);
	}
}

static void check_failure(const char *plan, const struct rdma_failure *f, enum rdma_step step,
			  int code, const char *word)
{
	const struct rdma_cause *c = rdma_cause_of(f);

	if (f->step != step || f->code != code)
		fail_msg("%s: %s %d (%s)", plan, rdma_step_text(f->step), f->code, f->text);
	if (!c || strcmp(c->word, word) != 0)
		fail_msg("%s: cause %s", plan, c ? c->word : "unknown");
	assert_true(*f->text);
}

/* What comes back is compared with what was sent, in each kind of round trip. */
static void a_round_trip_with_wrong_data_is_found(void **state)
{
	(void)state;
	for (int m = RDMA_LATENCY_WRITE; m < RDMA_LATENCY_READ; m++) {
		struct loopback_job *j = job_of(REGION_HOST);
		struct loopback_result r;

		j->measures = 1u << m;
		run("write-flip", j, &r);
		if (r.cells[m].failure.step != RDMA_STEP_DATA || r.cells[m].data != RDMA_DATA_WRONG)
			fail_msg("%d: %s", m, r.cells[m].failure.text);
		free(j);
	}
}

/*
 * From one word to the largest message, whole and odd: two of each are checked from the first byte
 * to the last.
 */
static void latencies_of_all_sizes_are_checked(void **state)
{
	static const uint64_t sizes[] = {2, 7, 8, 9, 220, 221, 4096, 65537, 8 << 20};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (int way = 0; way < REGION_WAY_N; way++) {
			struct loopback_job *j = job_of((enum region_way)way);
			struct loopback_result r;

			j->measures &= ~(1u << RDMA_WRITE | 1u << RDMA_READ | 1u << RDMA_BOTH);
			j->window = 8 << 20;
			j->load.bytes = j->load.latency_bytes = sizes[i];
			j->load.trips = 3;
			run("", j, &r);
			for (int m = RDMA_LATENCY_WRITE; m < RDMA_MEASURE_N; m++) {
				const struct rdma_cell *c = &r.cells[m];

				if (c->failure.step)
					fail_msg("%llu bytes: %s", (unsigned long long)sizes[i],
						 c->failure.text);
				if (!c->done)
					continue;
				assert_true(c->value.n > 0);
				assert_int_equal(c->data, RDMA_DATA_RIGHT);
				assert_int_equal(c->checked_bytes, 2 * sizes[i]);
			}
			free(j);
		}
}

/* Far from the last bytes, which are looked at in each round trip. */
static void wrong_data_within_a_latency_is_found(void **state)
{
	static const struct {
		const char *plan;
		enum rdma_measure measure;
		const char *word;
	} rows[] = {
		{"write-flips", RDMA_LATENCY_WRITE, "garbage"},
		{"write-flips", RDMA_LATENCY_IMMEDIATE, "garbage"},
		{"write-flips", RDMA_LATENCY_SEND, "garbage"},
		{"read-lost", RDMA_LATENCY_READ, "completed-but-absent"},
		{"read-zeros", RDMA_LATENCY_READ, "zeros"},
		{"read-stale", RDMA_LATENCY_READ, "stale"},
		{"read-torn", RDMA_LATENCY_READ, "garbage"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct loopback_job *j = job_of(REGION_HOST);
		const struct rdma_cell *c;
		struct loopback_result r;

		j->measures = 1u << rows[i].measure;
		j->load.latency_bytes = 65536;
		run(rows[i].plan, j, &r);
		c = &r.cells[rows[i].measure];
		assert_int_equal(c->data, RDMA_DATA_WRONG);
		assert_int_equal(c->value.n, 0);
		check_failure(rows[i].plan, &c->failure, RDMA_STEP_DATA, (int)c->wrong.kind,
			      rows[i].word);
		free(j);
	}
}

/* Receive requests that the error flushed come first, and are not the cause. */
static void a_round_trip_that_fails_names_the_cause(void **state)
{
	(void)state;
	for (int m = RDMA_LATENCY_WRITE; m < RDMA_LATENCY_READ; m++) {
		struct loopback_job *j = job_of(REGION_HOST);
		struct loopback_result r;

		j->measures = 1u << m;
		run("status=12", j, &r);
		assert_int_equal(r.cells[m].failure.step, RDMA_STEP_COMPLETION);
		assert_int_equal(r.cells[m].failure.code, VERBS_WC_RETRY_EXC);
		free(j);
	}
}

/*
 * The clock of a kernel that asks a device for the time: each reading takes so long, and nothing
 * else takes any. 0: not so.
 */
static _Thread_local uint64_t slow_clock_ns;
static _Thread_local uint64_t slow_now_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *ret); /* NOLINT: the linker's name */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret); /* NOLINT: the linker's name */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret) /* NOLINT: the linker's name */
{
	if (!slow_clock_ns)
		return __real_clock_gettime(clock, ret);
	slow_now_ns += slow_clock_ns;
	*ret = (struct timespec){(time_t)(slow_now_ns / 1000000000),
				 (long)(slow_now_ns % 1000000000)};
	return 0;
}

static void the_clock_is_no_part_of_a_latency(void **state)
{
	struct loopback_job *j = job_of(REGION_HOST);
	struct loopback_result r;

	(void)state;
	j->measures = 1u << RDMA_LATENCY_READ;
	j->load.trips = 10;
	j->load.verify = false; /* which waits by the clock */
	slow_clock_ns = 10000;
	run("", j, &r);
	slow_clock_ns = 0;
	assert_int_equal(r.cells[RDMA_LATENCY_READ].value.n, 10);
	assert_true(r.cells[RDMA_LATENCY_READ].value.median == 0);
	free(j);
}

/* As many as perftest makes, whose first ones are slower too; and fewer where each takes long. */
static void as_many_latencies_as_there_is_time_for(void **state)
{
	static const struct {
		uint64_t clock_ns, bytes;
		size_t n;
	} rows[] = {{10000, 8, 1024}, {10000, 1 << 20, 6}, {60000000, 8, 6}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct loopback_job *j = job_of(REGION_HOST);
		struct loopback_result r;

		j->measures = 1u << RDMA_LATENCY_READ;
		j->load.verify = false; /* which waits by the clock */
		j->load.latency_bytes = rows[i].bytes;
		slow_clock_ns = rows[i].clock_ns;
		run("", j, &r);
		slow_clock_ns = 0;
		assert_int_equal(r.cells[RDMA_LATENCY_READ].value.n, rows[i].n);
		free(j);
	}
}

/* 1 GB/s is 1e9 bytes a second: 16 messages in flight, in the time of one reading of the clock. */
static void a_rate_is_in_GB_of_1e9_bytes(void **state)
{
	struct loopback_job *j = job_of(REGION_HOST);
	struct loopback_result r;

	(void)state;
	j->measures = 1u << RDMA_WRITE | 1u << RDMA_READ | 1u << RDMA_BOTH;
	j->load.verify = false; /* which waits by the clock */
	slow_clock_ns = 1000000;
	run("", j, &r);
	slow_clock_ns = 0;
	for (int m = RDMA_WRITE; m <= RDMA_BOTH; m++) {
		double bytes = (m == RDMA_BOTH ? 2 : 1) * 16 * 65536.0;

		assert_true(fabs(r.cells[m].value.median - bytes / 1e-3 / 1e9) < 1e-9);
	}
	free(j);
}

static void several_queues_share_the_window(void **state)
{
	struct loopback_job *j = job_of(REGION_DMABUF);
	struct loopback_result r;

	(void)state;
	j->load.queues = 4;
	run("", j, &r);
	for (int m = RDMA_WRITE; m <= RDMA_BOTH; m++)
		assert_int_equal(r.cells[m].data, RDMA_DATA_RIGHT);
	free(j);
}

/*
 * Both sides have two memories each. Whoever looks at a message's last byte registers them again,
 * without it.
 */
static void ordering_is_relaxed_for_rates_only(void **state)
{
	static const struct {
		enum region_way way;
		bool asked;
		unsigned measures;
		int relaxed, strict;
	} rows[] = {
		{REGION_HOST, true, 1u << RDMA_WRITE, 4, 0},
		{REGION_DMABUF, true, 1u << RDMA_WRITE, 4, 0},
		{REGION_PEER, true, 1u << RDMA_READ, 4, 0},
		{REGION_HOST, true, 1u << RDMA_WRITE | 1u << RDMA_LATENCY_WRITE, 4, 4},
		{REGION_HOST, false, 1u << RDMA_WRITE | 1u << RDMA_LATENCY_WRITE, 0, 4},
		{REGION_DMABUF, false, 1u << RDMA_WRITE, 0, 4},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct loopback_job *j = job_of(rows[i].way);
		struct loopback_result r;

		j->measures = rows[i].measures;
		j->relaxed = rows[i].asked;
		run("", j, &r);
		assert_int_equal(registered(true), rows[i].relaxed);
		assert_int_equal(registered(false), rows[i].strict);
		free(j);
	}
}

/* ---- what fails before data moves ---- */

static const struct {
	const char *plan;
	enum region_way way;
	enum rdma_step step;
	int code;
	const char *word; /* of the cause */
} refusals[] = {
	{"open=13", REGION_HOST, RDMA_STEP_OPEN, EACCES, "no-rights"},
	{"open=1", REGION_HOST, RDMA_STEP_OPEN, EPERM, "no-rights-in-container"},
	{"state=1", REGION_HOST, RDMA_STEP_PORT, VERBS_PORT_DOWN, "port-down"},
	{"state=2", REGION_HOST, RDMA_STEP_PORT, VERBS_PORT_INIT, "no-subnet-manager"},
	{"state=5", REGION_HOST, RDMA_STEP_PORT, VERBS_PORT_DEFER, "port-defer"},
	{"no-gid", REGION_HOST, RDMA_STEP_GID, ENODATA, "no-gid"},
	{"reg=12", REGION_HOST, RDMA_STEP_REGISTER_HOST, ENOMEM, "memlock"},
	{"reg=14", REGION_DMABUF, RDMA_STEP_REGISTER_HOST, EFAULT, "no-pages"},
	{"reg=22", REGION_PEER, RDMA_STEP_REGISTER_HOST, EINVAL, "bad-arguments"},
	{"no-paging", REGION_ON_DEMAND, RDMA_STEP_REGISTER_HOST, EINVAL, "no-on-demand-paging"},
	{"peer=14", REGION_PEER, RDMA_STEP_REGISTER_PEER, EFAULT, "no-peer-memory"},
	{"peer=12", REGION_PEER, RDMA_STEP_REGISTER_PEER, ENOMEM, "peer-memory-mapping"},
	{"peer=22", REGION_PEER, RDMA_STEP_REGISTER_PEER, EINVAL, "peer-memory-refused"},
	{"dmabuf=93", REGION_DMABUF, RDMA_STEP_REGISTER_DMABUF, EPROTONOSUPPORT,
	 "kernel-without-dmabuf"},
	{"dmabuf=95", REGION_DMABUF, RDMA_STEP_REGISTER_DMABUF, EOPNOTSUPP, "nic-without-dmabuf"},
	{"dmabuf=524", REGION_DMABUF, RDMA_STEP_REGISTER_DMABUF, 524, "topology-refused"},
	{"dmabuf=12", REGION_DMABUF, RDMA_STEP_REGISTER_DMABUF, ENOMEM, "bar1-full"},
	{"dmabuf=22", REGION_DMABUF, RDMA_STEP_REGISTER_DMABUF, EINVAL, "bad-range"},
	{"dmabuf=14", REGION_DMABUF, RDMA_STEP_REGISTER_DMABUF, EFAULT, "attach-failed"},
	{"rtr=110", REGION_HOST, RDMA_STEP_RTR, ETIMEDOUT, "no-neighbour"},
	{"rtr=22", REGION_HOST, RDMA_STEP_RTR, EINVAL, "bad-path"},
	{"rtr=61", REGION_HOST, RDMA_STEP_RTR, ENODATA, "gid-gone"},
};

static void each_refusal_is_named(void **state)
{
	struct loopback_result r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		struct loopback_job *j = job_of(refusals[i].way);

		run(refusals[i].plan, j, &r);
		check_failure(refusals[i].plan, &r.failure, refusals[i].step, refusals[i].code,
			      refusals[i].word);
		for (int m = 0; m < RDMA_MEASURE_N; m++)
			assert_false(r.cells[m].done);
		free(j);
	}
}

/* Half as much, and half of that, until it fits; and it says how much that was. */
static void a_limit_on_memory_makes_the_window_smaller(void **state)
{
	struct loopback_job *j = job_of(REGION_DMABUF);
	struct loopback_result r;

	(void)state;
	run("lock=5000000", j, &r);
	assert_int_equal(r.failure.step, RDMA_STEP_NONE);
	assert_int_equal(r.window, 2 << 20);
	assert_int_equal(r.cells[RDMA_WRITE].data, RDMA_DATA_RIGHT);
	run("lock=100000", j, &r);
	check_failure("lock=100000", &r.failure, RDMA_STEP_REGISTER_HOST, ENOMEM, "memlock");
	free(j);
}

/* What is paged on demand is not locked. */
static void a_limit_on_memory_is_none_for_what_is_paged(void **state)
{
	struct loopback_job *j = job_of(REGION_ON_DEMAND);
	struct loopback_result r;

	(void)state;
	run("lock=100000", j, &r);
	assert_int_equal(r.failure.step, RDMA_STEP_NONE);
	assert_int_equal(r.window, j->window);
	assert_int_equal(r.cells[RDMA_WRITE].data, RDMA_DATA_RIGHT);
	free(j);
}

static void paging_is_what_the_nic_says(void **state)
{
	struct nic_port ports[PORTS_MAX];

	(void)state;
	setenv("VERBS_STANDIN", "nics=2 no-paging@mlx5_1", 1);
	assert_int_equal(ports_list(&verbs, ports), 2);
	assert_int_equal(ports[0].pages, 1);
	assert_int_equal(ports[1].pages, 0);
}

static void the_probe_of_dma_bufs(void **state)
{
	static const struct {
		const char *plan;
		int takes;
	} rows[] = {{"", 1}, {"dmabuf=93", 0}, {"dmabuf=95", 0}, {"dmabuf=524", 1}};
	struct nic_port ports[PORTS_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		setenv("VERBS_STANDIN", rows[i].plan, 1);
		assert_int_equal(ports_list(&verbs, ports), 1);
		assert_int_equal(ports[0].takes_dmabuf, rows[i].takes);
		assert_int_equal(live(), 0);
	}
}

/* ---- what fails while data moves ---- */

static const struct {
	const char *plan;
	enum rdma_step step;
	int code;
	const char *word;
} breaks[] = {
	{"status=2", RDMA_STEP_COMPLETION, 2, "local-queue"},
	{"status=4", RDMA_STEP_COMPLETION, 4, "local-access"},
	{"status=9", RDMA_STEP_COMPLETION, 9, "remote-request"},
	{"status=10", RDMA_STEP_COMPLETION, 10, "remote-access"},
	{"status=11", RDMA_STEP_COMPLETION, 11, "remote-operation"},
	{"status=12", RDMA_STEP_COMPLETION, 12, "no-answer"},
	{"status=13", RDMA_STEP_COMPLETION, 13, "no-receive"},
	{"silent", RDMA_STEP_WAIT, ETIMEDOUT, "silence"},
};

static void each_break_is_named(void **state)
{
	struct loopback_result r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(breaks); i++) {
		struct loopback_job *j = job_of(REGION_DMABUF);

		j->measures = 1 << RDMA_WRITE | 1 << RDMA_READ;
		if (breaks[i].step == RDMA_STEP_WAIT)
			j->load.limit_us = 100000;
		run(breaks[i].plan, j, &r);
		assert_int_equal(r.failure.step, RDMA_STEP_NONE);
		/* The second has queues of its own: the first's error does not end it. */
		for (int m = RDMA_WRITE; m <= RDMA_READ; m++) {
			check_failure(breaks[i].plan, &r.cells[m].failure, breaks[i].step,
				      breaks[i].code, breaks[i].word);
			assert_int_equal(r.cells[m].value.n, 0);
			assert_int_equal(r.cells[m].data, RDMA_DATA_NOT_CHECKED);
		}
		free(j);
	}
}

static void what_the_nic_reports_is_told(void **state)
{
	struct loopback_job *j = job_of(REGION_DMABUF);
	struct loopback_result r;

	(void)state;
	j->measures = 1 << RDMA_WRITE;
	run("status=4 event=8", j, &r);
	assert_int_equal(r.cells[RDMA_WRITE].failure.vendor, 0x81);
	assert_non_null(strstr(r.cells[RDMA_WRITE].failure.text, "vendor error 0x81"));
	assert_non_null(
		strstr(r.cells[RDMA_WRITE].failure.text, "reports: local catastrophic error"));
	free(j);
}

/* ---- what completes, and is wrong ---- */

static const struct {
	const char *kind, *word, *says;
} wrongs[] = {
	{"lost", "completed-but-absent", "nothing arrived"},
	{"stale", "stale", "old data, of the round before"},
	{"shift", "displaced", "+2097152 bytes from its place"},
	{"torn", "torn", "right up to byte 65472, then not written"},
	{"flip", "garbage", "4 of 524288 words"},
	{"zeros", "zeros", "zeros from byte 0 on"},
	{"outside", "outside", "right, but 1 word around it was overwritten"},
};

/* In the one direction it is found, and the other is judged by itself. */
static void wrong_data_is_found_in_its_direction(void **state)
{
	static const char *const directions[] = {"write", "read"};
	struct loopback_result r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrongs) * 2; i++) {
		int way = (int)i % 2, other = !way;
		struct loopback_job *j = job_of(i % 3 ? REGION_DMABUF : REGION_PEER);
		char plan[32];

		snprintf(plan, sizeof(plan), "%s-%s", directions[way], wrongs[i / 2].kind);
		run(plan, j, &r);
		check_failure(plan, &r.cells[way].failure, RDMA_STEP_DATA,
			      (int)r.cells[way].wrong.kind, wrongs[i / 2].word);
		if (!strstr(r.cells[way].failure.text, wrongs[i / 2].says))
			fail_msg("%s: %s", plan, r.cells[way].failure.text);
		assert_int_equal(r.cells[way].data, RDMA_DATA_WRONG);
		assert_int_equal(r.cells[way].value.n, 0);
		assert_int_equal(r.cells[RDMA_BOTH].data, RDMA_DATA_WRONG);
		/*
		 * The flush of a write is a read, which brings what lies beside: nothing of it is
		 * checked.
		 */
		if (r.cells[other].data != RDMA_DATA_RIGHT)
			fail_msg("%s: the other way: %s", plan, r.cells[other].failure.text);
		free(j);
	}
}

/* What has completed and is still on its way is pushed before the owner looks. */
static void late_data_is_flushed(void **state)
{
	struct loopback_job *j = job_of(REGION_DMABUF);
	struct loopback_result r;

	(void)state;
	run("write-unflushed", j, &r);
	assert_int_equal(r.cells[RDMA_WRITE].data, RDMA_DATA_RIGHT);
	run("read-unflushed", j, &r); /* that no read pushes: the host's own memory */
	assert_int_equal(r.cells[RDMA_READ].data, RDMA_DATA_WRONG);
	free(j);
}

static void without_verification_wrong_data_is_timed(void **state)
{
	struct loopback_job *j = job_of(REGION_DMABUF);
	struct loopback_result r;

	(void)state;
	j->load.verify = false;
	run("write-lost", j, &r);
	assert_int_equal(r.cells[RDMA_WRITE].data, RDMA_DATA_NOT_CHECKED);
	assert_true(r.cells[RDMA_WRITE].value.n > 0);
	free(j);
}

/*
 * A port that sends to itself has no firewall on its way, and one that has lost its link no other
 * cause.
 */
static void what_else_is_known_changes_the_cause(void **state)
{
	static const struct {
		const char *plan, *word, *cause;
	} rows[] = {
		{"status=12", "no-answer", "sends to itself"},
		{"status=12 event=10", "link-down", "lost its link"},
		{"silent", "silence", "sends to itself"},
		{"status=4", "local-access", "memory of its own host"},
		{"write-stale", "stale", "an earlier round"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct loopback_job *j = job_of(REGION_HOST);
		const struct rdma_failure *f;
		struct loopback_result r;

		j->measures = 1 << RDMA_WRITE;
		j->load.limit_us = 100000;
		run(rows[i].plan, j, &r);
		f = &r.cells[RDMA_WRITE].failure;
		assert_non_null(rdma_cause_of(f));
		assert_string_equal(rdma_failure_word(f), rows[i].word);
		assert_non_null(strstr(rdma_cause_of(f)->cause, rows[i].cause));
		assert_null(strstr(rdma_cause_of(f)->remedy, "GPU"));
		assert_null(strstr(rdma_cause_of(f)->remedy, "4791"));
		free(j);
	}
}

/* A large message may only be slow, a small one not. */
static void a_wait_in_vain_says_which_links_are_too_slow(void **state)
{
	static const struct {
		enum rdma_measure measure;
		uint64_t bytes;
		const char *says; /* NULL: nothing of that */
	} rows[] = {
		{RDMA_WRITE, 8 << 20, "slower than 83.9 MB/s takes longer for 8388608 bytes"},
		{RDMA_LATENCY_READ, 1 << 20,
		 "slower than 10.5 MB/s takes longer for 1048576 bytes"},
		{RDMA_LATENCY_WRITE, 1 << 20,
		 "slower than 21.0 MB/s takes longer for 2097152 bytes"},
		{RDMA_WRITE, 16384, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct loopback_job *j = job_of(REGION_HOST);
		const struct rdma_failure *f;
		struct loopback_result r;

		j->measures = 1u << rows[i].measure;
		j->window = 8 << 20;
		j->load.bytes = j->load.latency_bytes = rows[i].bytes;
		j->load.limit_us = 100000;
		run("silent", j, &r);
		f = &r.cells[rows[i].measure].failure;
		assert_int_equal(f->step, RDMA_STEP_WAIT);
		if (rows[i].says ? !strstr(f->text, rows[i].says) : !!strstr(f->text, "slower"))
			fail_msg("%s", f->text);
		free(j);
	}
}

/* ---- tables ---- */

static void causes_are_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < rdma_cause_n; i++) {
		const struct rdma_cause *c = &rdma_causes[i];

		assert_true(*c->word && *c->cause && *c->evidence && *c->remedy);
		assert_ptr_equal(rdma_cause_of(
					 &(struct rdma_failure){.step = c->step, .code = c->code}),
				 c);
		for (size_t k = 0; k < i; k++)
			if (strcmp(rdma_causes[k].word, c->word) == 0)
				fail_msg("two causes are called %s", c->word);
	}
	for (int s = 0; s < RDMA_STEP_N; s++)
		assert_true(*rdma_step_text((enum rdma_step)s));
	assert_null(rdma_cause_of(&(struct rdma_failure){.step = RDMA_STEP_RTR, .code = 7}));
	for (size_t i = 0; i < rdma_special_n; i++) {
		const struct rdma_special *s = &rdma_specials[i];
		const struct rdma_cause *c = &s->cause;

		assert_true(s->about && *c->word && *c->cause && *c->evidence && *c->remedy);
		assert_ptr_equal(rdma_cause_of(&(struct rdma_failure){.step = c->step,
								      .code = c->code,
								      .about = s->about}),
				 c);
	}
}

/* Payload of facts that are calculated by hand: 400 GbE, 200 Gb/s InfiniBand. */
static void payload_rates(void **state)
{
	static const struct {
		double line;
		unsigned mtu;
		enum verbs_link_layer layer;
		double gbps;
	} rows[] = {
		{10, 1024, VERBS_LINK_ETHERNET, 1.16},     {100, 1024, VERBS_LINK_ETHERNET, 11.57},
		{100, 4096, VERBS_LINK_ETHERNET, 12.25},   {400, 4096, VERBS_LINK_ETHERNET, 49.0},
		{100, 2048, VERBS_LINK_INFINIBAND, 12.34}, {400, 4096, VERBS_LINK_INFINIBAND, 49.7},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct nic_port p = {.line_gbps = rows[i].line,
				     .mtu = rows[i].mtu,
				     .link_layer = rows[i].layer,
				     .has_gid = true};

		memcpy(p.gid.entry.gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\x02\x0f", 16);
		if (fabs(port_payload_gbps(&p) - rows[i].gbps) > 0.006 * rows[i].gbps)
			fail_msg("row %zu: %g", i, port_payload_gbps(&p));
	}
}

/* ---- addresses ---- */

#define V4      "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\x02\x0f"
#define V4_AUTO "\0\0\0\0\0\0\0\0\0\0\xff\xff\xa9\xfe\x02\x0f"
#define V6      "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
#define V6_LINK "\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
#define NOTHING "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

static const struct {
	const char *name;
	struct {
		int type;
		const char *raw;
	} table[4];
	size_t n;
	bool infiniband;
	int index; /* -1: none */
	const char *reason;
} choices[] = {
	{"as mlx5 has them",
	 {{1, V6_LINK}, {2, V6_LINK}, {1, V4}, {2, V4}},
	 4,
	 false,
	 3,
	 "RoCE v2, a routable IPv4 address"},
	{"as irdma has them",
	 {{2, V6_LINK}, {2, V4}},
	 2,
	 false,
	 1,
	 "RoCE v2, a routable IPv4 address"},
	{"IPv6 only",
	 {{1, V6_LINK}, {2, V6_LINK}, {1, V6}, {2, V6}},
	 4,
	 false,
	 3,
	 "RoCE v2, a routable IPv6 address"},
	{"no address but its own",
	 {{1, V6_LINK}, {2, V6_LINK}},
	 2,
	 false,
	 1,
	 "RoCE v2, link-local: it reaches only this network"},
	{"169.254 is link-local",
	 {{2, V4_AUTO}, {2, V6}},
	 2,
	 false,
	 1,
	 "RoCE v2, a routable IPv6 address"},
	{"v1 alone", {{1, V4}}, 1, false, 0, "the only one: RoCE v1, a routable IPv4 address"},
	{"the first of two equal ones",
	 {{2, V4}, {2, V4}},
	 2,
	 false,
	 0,
	 "RoCE v2, a routable IPv4 address"},
	{"empty ones do not count",
	 {{2, NOTHING}, {1, V6_LINK}},
	 2,
	 false,
	 1,
	 "the only one: RoCE v1, link-local: it reaches only this network"},
	{"none", {{2, NOTHING}}, 1, false, -1, ""},
	{"InfiniBand",
	 {{0, V6_LINK}, {0, V6}},
	 2,
	 true,
	 0,
	 "InfiniBand: index 0 is the port's own"},
};

static void addresses_are_chosen_with_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
		struct verbs_gid_entry e[4] = {0};
		struct gid_choice c = {0};
		bool found;

		for (uint32_t k = 0; k < choices[i].n; k++) {
			e[k].gid_index = k;
			e[k].gid_type = (uint32_t)choices[i].table[k].type;
			memcpy(e[k].gid.raw, choices[i].table[k].raw, 16);
		}
		found = gid_choose(e, choices[i].n, choices[i].infiniband, &c);
		if (found != (choices[i].index >= 0) ||
		    (found && (int)c.entry.gid_index != choices[i].index) ||
		    strcmp(c.reason, choices[i].reason) != 0)
			fail_msg("%s: %d, %s", choices[i].name, found ? (int)c.entry.gid_index : -1,
				 c.reason);
	}
}

#define V4_NEAR "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\x02\x4f"
#define V4_FAR  "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x09\x02\x0f"

static size_t take_table(const char *const *raws, struct verbs_gid_entry ret[static 2])
{
	size_t n = 0;

	for (; n < 2 && raws[n]; n++) {
		ret[n] = (struct verbs_gid_entry){.gid_index = (uint32_t)n,
						  .gid_type = VERBS_GID_ROCE_V2};
		memcpy(ret[n].gid.raw, raws[n], 16);
	}
	return n;
}

/* What either would take by itself is not what the two can use. */
static void addresses_of_two_ports_are_chosen_together(void **state)
{
	static const struct {
		const char *own[2], *far[2];
		int index[2]; /* -1: none fit */
		const char *reason;
	} rows[] = {
		{{V4_FAR, V4},
		 {V4_NEAR},
		 {1, 0},
		 "RoCE v2, a routable IPv4 address; both are of one network"},
		{{V4_FAR}, {V4_NEAR}, {0, 0}, "RoCE v2, a routable IPv4 address; of two networks"},
		{{V4, V6},
		 {V6},
		 {1, 0},
		 "RoCE v2, a routable IPv6 address; both are of one network"},
		{{V6_LINK, V4_FAR},
		 {V6_LINK, V4_NEAR},
		 {1, 1},
		 "RoCE v2, a routable IPv4 address; of two networks"},
		{{V4}, {V6}, {-1, -1}, ""},
		{{V6_LINK}, {V6}, {-1, -1}, ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct verbs_gid_entry own[2], far[2], chosen = {0};
		struct gid_choice c = {0};
		size_t own_n = take_table(rows[i].own, own), far_n = take_table(rows[i].far, far);
		bool found = gid_choose_pair(own, own_n, far, far_n, false, &c, &chosen);

		if (found != (rows[i].index[0] >= 0) ||
		    (found && ((int)c.entry.gid_index != rows[i].index[0] ||
			       (int)chosen.gid_index != rows[i].index[1])) ||
		    strcmp(c.reason, rows[i].reason) != 0)
			fail_msg("row %zu: %u and %u, %s", i, c.entry.gid_index, chosen.gid_index,
				 c.reason);
	}
}

/* ---- workers ---- */

static void run_by_worker(struct rdma_worker *w, const char *device, struct loopback_result *ret)
{
	struct loopback_job *j = job_of(REGION_DMABUF);

	j->measures = 1 << RDMA_WRITE;
	snprintf(j->device, sizeof(j->device), "%s", device);
	if (rdma_worker_begin(w, getenv("ONEHOP"), j) < 0)
		fail_msg("%s", err_msg());
	while (!rdma_worker_finish(w, ret))
		;
	free(j);
}

/* What ends one process leaves the others, and the next job gets a new one. */
/* Whatever it is worth, and what would be chosen instead. */
static void an_address_can_be_forced(void **state)
{
	static const struct verbs_gid_entry table[] = {
		{.gid.raw = {0xfe, 0x80, [15] = 1}, .gid_index = 0, .gid_type = VERBS_GID_ROCE_V2},
		{.gid.raw = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		 .gid_index = 1,
		 .gid_type = VERBS_GID_ROCE_V2},
		{.gid_index = 2, .gid_type = VERBS_GID_ROCE_V2},
	};
	struct gid_choice c;

	(void)state;
	assert_true(gid_force(table, ARRAY_LEN(table), false, 0, &c));
	assert_int_equal(c.entry.gid_index, 0);
	assert_non_null(strstr(c.reason, "link-local"));
	assert_non_null(strstr(c.reason, "without --gid it would be index 1"));
	assert_true(gid_force(table, ARRAY_LEN(table), false, 1, &c));
	assert_null(strstr(c.reason, "without"));
	assert_false(gid_force(table, ARRAY_LEN(table), false, 2, &c));
	assert_false(gid_force(table, ARRAY_LEN(table), false, 3, &c));
}

static void a_worker_that_dies_is_told_and_replaced(void **state)
{
	struct rdma_worker one = RDMA_WORKER_NONE, two = RDMA_WORKER_NONE;
	struct port_listing *l = calloc(1, sizeof(*l));
	struct loopback_result r;

	(void)state;
	setenv("VERBS_STANDIN", "nics=2 die@mlx5_0", 1);
	assert_int_equal(rdma_worker_list(&one, getenv("ONEHOP"), l), 0);
	assert_int_equal(l->n, 2);
	assert_string_equal(l->ports[1].device, "mlx5_1");
	run_by_worker(&one, "mlx5_0", &r);
	assert_int_equal(r.failure.step, RDMA_STEP_WORKER);
	assert_int_equal(r.failure.code, ESRCH);
	assert_non_null(strstr(r.failure.text, "signal 6"));
	run_by_worker(&two, "mlx5_1", &r);
	assert_int_equal(r.cells[RDMA_WRITE].data, RDMA_DATA_RIGHT);
	run_by_worker(&one, "mlx5_1", &r);
	assert_int_equal(r.cells[RDMA_WRITE].data, RDMA_DATA_RIGHT);
	rdma_worker_end(&one);
	rdma_worker_end(&two);
	free(l);
}

static void a_worker_that_hangs_is_killed(void **state)
{
	struct rdma_worker w = RDMA_WORKER_NONE;
	struct loopback_job *j = job_of(REGION_DMABUF);
	struct loopback_result r;

	(void)state;
	setenv("VERBS_STANDIN", "stuck", 1);
	assert_int_equal(rdma_worker_begin(&w, getenv("ONEHOP"), j), 0);
	rdma_worker_give_up(&w, &r);
	assert_int_equal(r.failure.code, ETIMEDOUT);
	assert_int_equal(w.pid, 0);
	free(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_the_librarys),
		cmocka_unit_test(all_is_right),
		cmocka_unit_test(a_round_trip_with_wrong_data_is_found),
		cmocka_unit_test(latencies_of_all_sizes_are_checked),
		cmocka_unit_test(wrong_data_within_a_latency_is_found),
		cmocka_unit_test(a_round_trip_that_fails_names_the_cause),
		cmocka_unit_test(the_clock_is_no_part_of_a_latency),
		cmocka_unit_test(as_many_latencies_as_there_is_time_for),
		cmocka_unit_test(a_rate_is_in_GB_of_1e9_bytes),
		cmocka_unit_test(ordering_is_relaxed_for_rates_only),
		cmocka_unit_test(several_queues_share_the_window),
		cmocka_unit_test(each_refusal_is_named),
		cmocka_unit_test(a_limit_on_memory_makes_the_window_smaller),
		cmocka_unit_test(a_limit_on_memory_is_none_for_what_is_paged),
		cmocka_unit_test(paging_is_what_the_nic_says),
		cmocka_unit_test(the_probe_of_dma_bufs),
		cmocka_unit_test(each_break_is_named),
		cmocka_unit_test(what_the_nic_reports_is_told),
		cmocka_unit_test(wrong_data_is_found_in_its_direction),
		cmocka_unit_test(late_data_is_flushed),
		cmocka_unit_test(without_verification_wrong_data_is_timed),
		cmocka_unit_test(what_else_is_known_changes_the_cause),
		cmocka_unit_test(a_wait_in_vain_says_which_links_are_too_slow),
		cmocka_unit_test(causes_are_whole),
		cmocka_unit_test(payload_rates),
		cmocka_unit_test(addresses_are_chosen_with_a_reason),
		cmocka_unit_test(addresses_of_two_ports_are_chosen_together),
		cmocka_unit_test(an_address_can_be_forced),
		cmocka_unit_test(a_worker_that_dies_is_told_and_replaced),
		cmocka_unit_test(a_worker_that_hangs_is_killed),
	};

	if (!getenv("ONEHOP")) { /* or each worker would be this test again */
		fprintf(stderr, "ONEHOP names the program that is started as worker\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, load, NULL);
}
