/* SPDX-License-Identifier: Apache-2.0 */
/* bench/nccl*: sizes, counts and rates; libraries that are missing or broken; whole runs on the host
 * back end with a stand-in for NCCL, right, wrong, failing and hanging, and with libonehop. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "bench/collective_figures.h"
#include "bench/collective_impl.h"
#include "kernels/typed.h"

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

/* ---- sizes ---- */

static void plans_end(void **state)
{
	struct collective_plan p = {.min_bytes = 8, .max_bytes = 128, .factor = 2, .iterations = 1};

	(void)state;
	assert_int_equal(collective_plan_sizes(&p, p.max_bytes), 5);
	assert_int_equal(collective_plan_check(&p), 0);
	p.factor = 0;
	assert_int_equal(collective_plan_check(&p), -EINVAL);
	p.step = 40;
	assert_int_equal(collective_plan_sizes(&p, p.max_bytes), 4);
	p.max_bytes = UINT64_MAX - 1;
	p.step = UINT64_MAX / 2;
	assert_int_equal(collective_plan_sizes(&p, p.max_bytes), 2);
	p.step = 1;
	assert_int_equal(collective_plan_check(&p), -EINVAL);
	assert_non_null(strstr(err_msg(), "sizes"));
	p = (struct collective_plan){.min_bytes = 9, .max_bytes = 8, .factor = 2, .iterations = 1};
	assert_int_equal(collective_plan_check(&p), -EINVAL);
}

/* ---- counts and rates, against nccl-tests' own sources (src/NAME.cu) ---- */

static void counts_are_those_of_nccl_tests(void **state)
{
	static const struct {
		enum nccl_op op;
		uint64_t count, send, recv, send_offset, recv_offset;
	} right[] = {
		{NCCL_ALL_REDUCE, 250, 1000, 1000, 0, 0},
		{NCCL_BROADCAST, 250, 1000, 1000, 0, 0},
		{NCCL_REDUCE, 250, 1000, 1000, 0, 0},
		{NCCL_SEND_RECV, 250, 1000, 1000, 0, 0},
		{NCCL_ALL_GATHER, 80, 320, 960, 320, 0},
		{NCCL_REDUCE_SCATTER, 80, 960, 320, 0, 320},
		{NCCL_ALL_TO_ALL, 80, 960, 960, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		struct nccl_shape s;

		nccl_shape(right[i].op, 4, 3, 1000, &s);
		assert_int_equal(s.count, right[i].count);
		assert_int_equal(s.send_bytes, right[i].send);
		assert_int_equal(s.recv_bytes, right[i].recv);
		assert_int_equal(s.send_offset, right[i].send_offset);
		assert_int_equal(s.recv_offset, right[i].recv_offset);
		assert_true(s.bytes == (s.send_bytes > s.recv_bytes ? s.send_bytes : s.recv_bytes));
	}
}

static void rates_are_those_of_nccl_tests(void **state)
{
	static const double factors[NCCL_OP_N] = {
		[NCCL_ALL_REDUCE] = 1.5, [NCCL_ALL_GATHER] = 0.75, [NCCL_REDUCE_SCATTER] = 0.75,
		[NCCL_BROADCAST] = 1,    [NCCL_REDUCE] = 1,        [NCCL_ALL_TO_ALL] = 0.75,
		[NCCL_SEND_RECV] = 1,
	};

	(void)state;
	for (int op = 0; op < NCCL_BARRIER; op++) {
		struct collective_cell cell;
		struct nccl_shape s;

		nccl_shape((enum nccl_op)op, 4, 4, 1 << 20, &s);
		nccl_rates((enum nccl_op)op, &s, 4, 4, 100, &cell);
		assert_true(fabs(cell.algbw_gbps - 10.48576) < 1e-9);
		assert_true(fabs(cell.busbw_gbps - 10.48576 * factors[op]) < 1e-9);
	}
}

/* ---- the library ---- */

static const char *standin(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s.so", getenv("NVML_STANDIN_DIR"), name);
	return path;
}

static void libraries_are_named_when_they_fail(void **state)
{
	struct nccl_api api = {.version = 77};
	char text[16];

	(void)state;
	assert_int_equal(nccl_load("/nowhere/libnccl.so.2", &api), -ENOENT);
	assert_non_null(strstr(err_msg(), "/nowhere/libnccl.so.2"));
	assert_int_equal(nccl_load(standin("nvml_standin"), &api), -ENOSYS);
	assert_non_null(strstr(err_msg(), "ncclGetVersion"));
	assert_int_equal(api.version, 77);
	assert_int_equal(nccl_load(standin("nccl_standin"), &api), 0);
	assert_int_equal(api.version, 22809);
	assert_non_null(strstr(api.path, "nccl_standin.so"));
	assert_non_null(api.AlltoAll);
	assert_int_equal(nccl_load(standin("nccl_standin_old"), &api), 0);
	assert_null(api.AlltoAll);
	assert_null(api.MemAlloc);
	nccl_version_text(22809, text, sizeof(text));
	assert_string_equal(text, "2.28.9");
	nccl_version_text(2804, text, sizeof(text));
	assert_string_equal(text, "2.8.4");
}

/* ---- whole runs ---- */

struct heard {
	struct collective_start start;
	struct collective_rank ranks[16];
	size_t rank_n, step_n, connections;
	struct collective_row rows[16];
	size_t row_n;
	struct tuned_times times;
	unsigned done, total;
};

static void hear_rank(void *context, const struct collective_rank *r)
{
	struct heard *h = context;

	assert_true(h->rank_n < 16);
	h->ranks[h->rank_n++] = *r;
}

static void hear_start(void *context, const struct collective_start *s)
{
	((struct heard *)context)->start = *s;
}

static void hear_step(void *context, const struct collective_step *s)
{
	(void)s;
	((struct heard *)context)->step_n++;
}

static void hear_row(void *context, const struct collective_row *row)
{
	struct heard *h = context;

	assert_true(h->row_n < 16);
	h->rows[h->row_n++] = *row;
}

static void hear_log(void *context, const char *text, size_t n)
{
	struct heard *h = context;

	assert_int_equal(strlen(text), n);
	h->connections += strstr(text, "via P2P/CUMEM") != NULL;
}

static void hear_tuned(void *context, const struct collective_tuned *t)
{
	struct heard *h = context;

	assert_true(t->us > 0);
	assert_int_equal(h->times.ns[t->operation][t->algorithm][t->size], 0);
	assert_int_equal(t->done, h->done + 1);
	h->times.ns[t->operation][t->algorithm][t->size] = 1;
	h->done = t->done;
	h->total = t->total;
}

static struct collective_run make_run(size_t devices)
{
	struct collective_run run = {
		.plan = {.type = ELEMENT_FLOAT32,
			 .min_bytes = 1024,
			 .max_bytes = 4096,
			 .factor = 4,
			 .iterations = 3,
			 .warmup = 1,
			 .check = true,
			 .budget_s = 1},
		.devices = {.kind = DEVICE_HOST, .n = devices},
		.ranks = {.size = 1, .hosts = HOSTS_ONE},
		.library = standin("nccl_standin"),
		.program = getenv("ONEHOP"),
		.limit_s = 120,
		.stop_fd = -1,
	};

	for (size_t i = 0; i < devices; i++)
		run.devices.number[i] = (int)i;
	return run;
}

static int listen_to(const struct collective_run *run, struct heard *h)
{
	const struct nccl_listener listener = {h,        hear_rank, hear_start, hear_step,
					       hear_row, hear_log,  hear_tuned};

	*h = (struct heard){0};
	return collective_run(run, &listener);
}

static void assert_right(const struct collective_run *run, bool in_place_checked)
{
	struct heard h;

	if (listen_to(run, &h) != 0)
		fail_msg("%s: %s", nccl_op_words[run->plan.op], err_msg());
	assert_int_equal(h.rank_n, run->devices.n);
	assert_int_equal(h.row_n, 2);
	assert_int_equal(h.start.version,
			 collective_plan_uses(&run->plan, ENGINE_NCCL) ? 22809 : 0);
	for (size_t i = 0; i < h.rank_n; i++)
		assert_int_equal(h.ranks[i].rank, i);
	for (size_t i = 0; i < h.row_n; i++) {
		assert_true(h.rows[i].cell[0].time_us > 0);
		assert_true(h.rows[i].cell[1].time_us > 0);
		if (h.rows[i].cell[0].wrong != 0 ||
		    h.rows[i].cell[1].wrong != (in_place_checked ? 0 : -1))
			fail_msg("%s: %lld and %lld wrong", nccl_op_words[run->plan.op],
				 (long long)h.rows[i].cell[0].wrong,
				 (long long)h.rows[i].cell[1].wrong);
	}
}

static void every_operation_is_right(void **state)
{
	(void)state;
	for (int op = 0; op < NCCL_OP_N; op++) {
		struct collective_run run = make_run(3);

		run.plan.op = (enum nccl_op)op;
		if (op == NCCL_BARRIER) {
			assert_int_equal(collective_plan_check(&run.plan), -EINVAL);
			continue;
		}
		run.plan.root = nccl_op_has_root(run.plan.op) ? 1 : 0;
		assert_right(&run, nccl_op_checks_in_place(run.plan.op));
		run.processes = true;
		assert_right(&run, nccl_op_checks_in_place(run.plan.op));
	}
}

static void every_type_and_reduction_is_right(void **state)
{
	(void)state;
	for (int type = 0; type < ELEMENT_TYPE_N; type++) {
		for (int redop = 0; redop < REDUCE_OP_N; redop++) {
			struct collective_run run = make_run(2);

			run.plan.type = (enum element_type)type;
			run.plan.redop = (enum reduce_op)redop;
			assert_right(&run, true);
		}
	}
}

static void what_an_old_nccl_lacks(void **state)
{
	struct nccl_api api = {.version = 22305, .path = "/old.so"};

	(void)state;
	assert_int_equal(nccl_has_float8(&api), -ENOTSUP);
	assert_string_equal(err_msg(),
			    "NCCL 2.23.5 (/old.so) has no 8-bit floats; NCCL 2.24 and later have");
	assert_int_equal(nccl_has_windows(&api), -ENOTSUP);
	api.version = 22400;
	assert_int_equal(nccl_has_float8(&api), 0);
}

/* Without ncclAlltoAll, ncclMemAlloc and ncclGetLastError. */
static void an_old_library_will_do(void **state)
{
	struct collective_run run = make_run(3);

	(void)state;
	run.library = standin("nccl_standin_old");
	run.plan.op = NCCL_ALL_TO_ALL;
	assert_right(&run, false);
	run.plan.op = NCCL_ALL_REDUCE;
	assert_right(&run, true);
}

static void graphs_are_right(void **state)
{
	struct collective_run run = make_run(2);

	(void)state;
	run.plan.graph = 2;
	assert_right(&run, true);
}

/* ---- libonehop instead of NCCL ---- */

static struct collective_run make_own_run(size_t devices)
{
	struct collective_run run = make_run(devices);

	run.plan.engine = ENGINE_ONEHOP;
	run.library = "/nowhere.so";
	return run;
}

static void every_operation_of_libonehop_is_right(void **state)
{
	(void)state;
	for (int op = 0; op < NCCL_BARRIER; op++) {
		struct collective_run run = make_own_run(3);

		run.plan.op = (enum nccl_op)op;
		if (!nccl_op_is_ours(run.plan.op)) {
			assert_int_equal(collective_plan_check(&run.plan), -EINVAL);
			continue;
		}
		run.plan.root = nccl_op_has_root(run.plan.op) ? 1 : 0;
		run.plan.graph = op % 2 ? 2 : 0;
		assert_right(&run, nccl_op_checks_in_place(run.plan.op));
		run.processes = true;
		assert_right(&run, nccl_op_checks_in_place(run.plan.op));
	}
}

/* The way that was taken, the algorithm and the estimates it comes from. */
static void the_choice_is_reported(void **state)
{
	struct collective_run run = make_own_run(2);
	struct heard direct, host;

	(void)state;
	assert_int_equal(listen_to(&run, &direct), 0);
	assert_true(direct.start.direct);
	run.plan.no_p2p = true;
	assert_int_equal(listen_to(&run, &host), 0);
	assert_false(host.start.direct);
	for (size_t i = 0; i < direct.row_n; i++) {
		const struct collective_chosen *c = &direct.rows[i].chosen;

		assert_true(c->algorithm < ALGORITHM_N);
		for (int a = 0; a < ALGORITHM_N; a++)
			assert_false(c->us[a] < c->us[c->algorithm]);
		assert_true(host.rows[i].chosen.us[FLAGGED_ONE] > c->us[FLAGGED_ONE]);
	}
	run = make_own_run(2);
	run.devices.host.fault = (struct fault){FAULT_REFUSE, 0, 1};
	assert_int_equal(listen_to(&run, &host), 0);
	assert_false(host.start.direct);
	assert_int_equal(host.rows[0].cell[0].wrong, 0);
}

static void a_place_that_is_skipped_is_not_measured(void **state)
{
	struct collective_run run = make_own_run(2);
	struct heard h;

	(void)state;
	run.plan.skip[OUT_OF_PLACE] = true;
	assert_int_equal(listen_to(&run, &h), 0);
	assert_int_equal(h.rows[0].cell[OUT_OF_PLACE].batches, 0);
	assert_int_equal(h.rows[0].cell[OUT_OF_PLACE].wrong, -1);
	assert_int_equal(h.rows[0].cell[IN_PLACE].batches, 1);
	assert_int_equal(h.rows[0].cell[IN_PLACE].wrong, 0);
	assert_ptr_equal(nccl_faster(&h.rows[0]), &h.rows[0].cell[IN_PLACE]);
	run.plan.skip[IN_PLACE] = true;
	assert_int_equal(listen_to(&run, &h), -EINVAL);
}

/* As many batches of each, 30 at least, before a ratio counts as known. */
static void engines_are_measured_in_turn(void **state)
{
	struct collective_run run = make_own_run(2);
	const struct collective_ratio *ratio;
	struct heard h;

	(void)state;
	run.library = standin("nccl_standin");
	run.plan.against = true;
	run.plan.rival = ENGINE_NCCL;
	run.plan.max_bytes = 1024;
	run.plan.skip[IN_PLACE] = true;
	run.plan.relative = 0.01;
	run.plan.budget_s = 1000;
	run.plan.graph = 1;
	assert_int_equal(listen_to(&run, &h), 0);
	ratio = &h.rows[0].ratio[OUT_OF_PLACE];
	assert_in_range(ratio->samples, NCCL_RATIO_SAMPLES, UINT32_MAX);
	assert_int_equal(h.rows[0].cell[OUT_OF_PLACE].batches, ratio->samples);
	assert_int_equal(h.rows[0].other[OUT_OF_PLACE].batches, ratio->samples);
	assert_true(ratio->low <= ratio->median && ratio->median <= ratio->high);
	assert_true(ratio->low > 0);
	assert_int_equal(h.rows[0].cell[OUT_OF_PLACE].wrong, 0);
	assert_int_equal(h.rows[0].other[OUT_OF_PLACE].wrong, 0);
	assert_int_equal(h.rows[0].ratio[IN_PLACE].samples, 0);
}

static void a_rank_too_many_is_refused(void **state)
{
	struct collective_run run = make_own_run(COLLECTIVE_RANKS_MAX + 1);
	struct heard h;

	(void)state;
	assert_int_equal(listen_to(&run, &h), -EINVAL);
	assert_non_null(strstr(err_msg(), "at most 8 ranks"));
}

/* Repeats until it is settled or time is up; one batch has no interval. */
static void batches_are_counted(void **state)
{
	struct collective_run run = make_run(2);
	struct heard h;

	(void)state;
	run.plan.max_bytes = 1024;
	assert_int_equal(listen_to(&run, &h), 0);
	assert_int_equal(h.rows[0].cell[0].batches, 1);
	assert_true(isnan(h.rows[0].cell[0].low_us));
	run.plan.relative = 1000; /* settled as soon as there is an interval */
	run.plan.budget_s = 1000;
	assert_int_equal(listen_to(&run, &h), 0);
	assert_true(h.rows[0].cell[0].batches > 5);
	assert_true(h.rows[0].cell[0].narrow);
	assert_true(h.rows[0].cell[0].low_us <= h.rows[0].cell[0].time_us);
}

static void unchecked_is_not_right(void **state)
{
	struct collective_run run = make_run(2);
	struct heard h;

	(void)state;
	run.plan.check = false;
	assert_int_equal(listen_to(&run, &h), 0);
	assert_int_equal(h.rows[0].cell[0].wrong, -1);
}

/* Each process writes a log of its own. */
static void logs_are_heard(void **state)
{
	static char level[] = "NCCL_DEBUG=INFO", file[] = "NCCL_DEBUG_FILE=" NCCL_LOG_FILE;
	char *const variables[] = {level, file, NULL};
	struct collective_run run = make_run(2);
	struct heard h;

	(void)state;
	run.variables = variables;
	run.processes = true;
	assert_int_equal(listen_to(&run, &h), 0);
	assert_int_equal(h.connections, 2);
}

static int run_with_fault(const char *fault, double limit_s, bool processes, struct heard *h)
{
	AUTO_FREE char *variable = xprintf("NCCL_STANDIN_FAULT=%s", fault);
	char *const variables[] = {variable, NULL};
	struct collective_run run = make_run(2);

	run.variables = variables;
	run.limit_s = limit_s;
	run.processes = processes;
	return listen_to(&run, h);
}

static void a_wrong_element_is_found(void **state)
{
	struct heard h;

	(void)state;
	for (int processes = 0; processes < 2; processes++) {
		assert_int_equal(run_with_fault("wrong:5", 120, processes, &h), 0);
		for (int k = 0; k < 2; k++) {
			assert_int_equal(h.rows[0].cell[k].wrong, 1);
			assert_int_equal(h.rows[0].cell[k].wrong_rank, 1);
			assert_int_equal(h.rows[0].cell[k].wrong_index, 5);
		}
	}
}

/*
 * On a busy machine what comes before it may take as long, and is killed instead: then with a
 * longer limit.
 */
static void a_hang_is_killed_and_named(void **state)
{
	struct heard h;

	(void)state;
	for (int processes = 0; processes < 2; processes++) {
		double limit_s = 4;

		assert_int_equal(run_with_fault("hang:1024", limit_s, processes, &h), -ETIMEDOUT);
		while (!strstr(err_msg(), "4096 bytes") && limit_s < 100) {
			limit_s *= 4;
			assert_int_equal(run_with_fault("hang:1024", limit_s, processes, &h),
					 -ETIMEDOUT);
		}
		if (!strstr(err_msg(), "it took longer than") || !strstr(err_msg(), "all-reduce") ||
		    !strstr(err_msg(), "4096 bytes"))
			fail_msg("%s", err_msg());
	}
}

static void errors_are_nccls(void **state)
{
	struct heard h;

	(void)state;
	assert_int_equal(run_with_fault("error", 120, false, &h), -EIO);
	assert_string_equal(
		err_msg(),
		"all-reduce: internal error - please report this issue to the NCCL developers; "
		"standin: told to fail");
	assert_int_equal(run_with_fault("init", 120, false, &h), -EIO);
	assert_non_null(strstr(err_msg(), "ncclCommInitRank: unhandled system error"));
	assert_int_equal(h.row_n, 0);
}

static void what_cannot_run_is_refused(void **state)
{
	struct collective_run run = make_run(2);
	struct heard h;

	(void)state;
	run.library = "/nowhere.so";
	assert_int_equal(listen_to(&run, &h), -ENOENT);
	assert_non_null(strstr(err_msg(), "/nowhere.so"));
	run = make_run(2);
	run.plan.root = 2;
	assert_int_equal(listen_to(&run, &h), -EINVAL);
	run = make_run(2);
	run.plan.min_bytes = run.plan.max_bytes = 1ull << 40;
	assert_int_equal(listen_to(&run, &h), -ENOMEM);
	run = make_run(2);
	run.program = "/nowhere/onehop";
	assert_int_equal(listen_to(&run, &h), -ENOENT);
	run.program = "/bin/false"; /* dies without a word */
	assert_int_equal(listen_to(&run, &h), -ESRCH);
}

/* What does not fit is left out, and said. */
static void sizes_end_where_memory_does(void **state)
{
	struct collective_run run = make_run(2);
	struct heard h;

	(void)state;
	run.devices.host.memory_bytes = 1 << 20;
	run.plan.min_bytes = 1 << 16;
	run.plan.max_bytes = 1 << 30;
	run.plan.factor = 2;
	assert_int_equal(listen_to(&run, &h), 0);
	assert_true(h.start.max_bytes < 1 << 20 && h.start.max_bytes >= 1 << 16);
	assert_true(h.row_n > 0 && h.rows[h.row_n - 1].bytes <= h.start.max_bytes);
}

static void it_stops_when_told(void **state)
{
	struct collective_run run = make_run(2);
	AUTO_CLOSE int stop = eventfd(1, EFD_CLOEXEC);
	struct heard h;

	(void)state;
	run.stop_fd = stop;
	assert_int_equal(listen_to(&run, &h), -EINTR);
}

/* ---- the table of libonehop's choice ---- */

static struct collective_run make_tune_run(size_t devices)
{
	struct collective_run run = make_own_run(devices);

	run.plan.tune = true;
	run.plan.min_bytes = tuned_size(0);
	run.plan.max_bytes = 4 << 10;
	run.plan.budget_s = 3600;
	return run;
}

/* Pieces up to 1 KiB for each of 3 ranks; up to 4 KiB where there is one piece. */
static void every_algorithm_is_timed(void **state)
{
	struct collective_run run = make_tune_run(3);
	struct heard h;

	(void)state;
	assert_int_equal(listen_to(&run, &h), 0);
	assert_true(h.start.direct);
	assert_int_equal(h.done, h.total);
	for (unsigned o = 0; o < OPERATION_N; o++) {
		const bool pieces = o == OPERATION_REDUCE_SCATTER || o == OPERATION_ALL_GATHER ||
				    o == OPERATION_ALL_TO_ALL;

		for (unsigned s = 0; s < TUNED_SIZES; s++)
			assert_int_equal(h.times.ns[o][PIPED_ONE][s],
					 tuned_size(s) * (pieces ? 3 : 1) <= 4 << 10);
		assert_int_equal(h.times.ns[o][FLAGGED_ONE][0], 1);
		assert_int_equal(h.times.ns[o][PIPED_TWO][0], !pieces);
		assert_int_equal(h.times.ns[o][FLAGGED_TWO][0], !pieces);
	}
}

/* All of the smallest size are measured in any case; no size is measured in part. */
static void the_budget_ends_it_between_sizes(void **state)
{
	struct collective_run run = make_tune_run(2);
	struct heard h;

	(void)state;
	run.plan.budget_s = 0;
	run.plan.no_p2p = true;
	assert_int_equal(listen_to(&run, &h), 0);
	assert_false(h.start.direct);
	assert_true(h.done > 0 && h.done < h.total);
	for (unsigned o = 0; o < OPERATION_N; o++)
		for (unsigned s = 0; s < TUNED_SIZES; s++)
			assert_int_equal(h.times.ns[o][FLAGGED_ONE][s], s == 0);
}

/* What a wrong sum would end the run with. */
static void wrong_data_is_an_error(void **state)
{
	const struct collective_tuned t = {OPERATION_ALL_GATHER, PIPED_ONE, 4, 2.5, 1, 2};
	struct collective_cell cell = {.wrong = 0};

	(void)state;
	assert_int_equal(bench_tuned_check(&t, true, &cell), 0);
	cell = (struct collective_cell){.wrong = 12, .wrong_rank = 1, .wrong_index = 7};
	assert_int_equal(bench_tuned_check(&t, true, &cell), -EIO);
	assert_string_equal(err_msg(),
			    "all_gather by piped-1, without P2P: wrong data in 12 elements with "
			    "pieces of 4096 bytes; the first is element 7 of rank 1");
	cell.wrong = -1; /* not checked */
	assert_int_equal(bench_tuned_check(&t, false, &cell), -EIO);
}

static void a_table_decides(void **state)
{
	static struct tuned table = {.identity.n = 2};
	struct collective_run run = make_own_run(2);
	struct heard h;

	(void)state;
	for (int a = 0; a < PIPED_LEVELS; a++) { /* which needs groups */
		memset(table.times, 0, sizeof(table.times));
		for (unsigned s = 0; s < TUNED_SIZES; s++)
			for (int other = 0; other < ALGORITHM_N; other++)
				table.times[TUNED_DIRECT].ns[OPERATION_ALL_REDUCE][other][s] =
					other == a ? 1000 : 2000;
		run.tuned = &table;
		run.processes = a % 2;
		assert_int_equal(listen_to(&run, &h), 0);
		for (size_t i = 0; i < h.row_n; i++) {
			assert_int_equal(h.rows[i].chosen.algorithm, a);
			assert_true(h.rows[i].chosen.measured);
			assert_true(fabs(h.rows[i].chosen.us[a] - 1) < 1e-9);
			assert_int_equal(h.rows[i].cell[0].wrong, 0);
		}
	}
	table.identity.n = 3; /* of other devices */
	assert_int_equal(listen_to(&run, &h), 0);
	assert_false(h.rows[0].chosen.measured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_end),
		cmocka_unit_test(counts_are_those_of_nccl_tests),
		cmocka_unit_test(rates_are_those_of_nccl_tests),
		cmocka_unit_test(libraries_are_named_when_they_fail),
		cmocka_unit_test(every_operation_is_right),
		cmocka_unit_test(every_type_and_reduction_is_right),
		cmocka_unit_test(what_an_old_nccl_lacks),
		cmocka_unit_test(an_old_library_will_do),
		cmocka_unit_test(graphs_are_right),
		cmocka_unit_test(every_operation_of_libonehop_is_right),
		cmocka_unit_test(the_choice_is_reported),
		cmocka_unit_test(a_place_that_is_skipped_is_not_measured),
		cmocka_unit_test(engines_are_measured_in_turn),
		cmocka_unit_test(a_rank_too_many_is_refused),
		cmocka_unit_test(batches_are_counted),
		cmocka_unit_test(unchecked_is_not_right),
		cmocka_unit_test(logs_are_heard),
		cmocka_unit_test(a_wrong_element_is_found),
		cmocka_unit_test(a_hang_is_killed_and_named),
		cmocka_unit_test(errors_are_nccls),
		cmocka_unit_test(what_cannot_run_is_refused),
		cmocka_unit_test(sizes_end_where_memory_does),
		cmocka_unit_test(it_stops_when_told),
		cmocka_unit_test(every_algorithm_is_timed),
		cmocka_unit_test(the_budget_ends_it_between_sizes),
		cmocka_unit_test(wrong_data_is_an_error),
		cmocka_unit_test(a_table_decides),
	};

	if (!getenv("ONEHOP")) { /* or each worker would be this test again */
		fprintf(stderr, "ONEHOP names the program that is started as worker\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
