/* SPDX-License-Identifier: Apache-2.0 */
/* ingest/text_reduce.c: what is kept of a large text, and that its report says what is not. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ingest/kept_text.h"
#include "ingest/nccl_log.h"
#include "ingest/pasted.h"
#include "ingest/text_reduce.h"
#include "pasted_machine.h"

#include <cmocka.h>
#include <string.h>

/* ---- texts ---- */

static void add_ranks(struct strbuf *out)
{
	for (int r = 0; r < 4; r++)
		strbuf_printf(out,
			      "node1:%d:%d [%d] NCCL INFO comm 0x%d0 rank %d nranks 4 cudaDev %d "
			      "nvmlDev %d busId %d000 commId 0xa - Init COMPLETE\n",
			      100 + r, 200 + r, r, r + 1, r, r, r, r + 1);
}

/* Connection i: each rank's to the next, channel by channel. */
static void add_connection(struct strbuf *out, size_t i, const char *via)
{
	const int from = (int)(i % 4), to = (from + 1) % 4;

	strbuf_printf(out, "node1:%d:%d [%d] NCCL INFO Channel %02zu/0 : %d[%d] -> %d[%d] via %s\n",
		      100 + from, 200 + from, from, i / 4 % 32, from, from, to, to, via);
}

/* More than a piece of a text, so that it is reduced. */
enum { MANY = 200000 };

static void add_connections(struct strbuf *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_connection(out, i, "P2P/CUMEM");
}

#define FUNCTION(address, width)                                                                   \
	address " 3D controller [0302]: NVIDIA Corporation Device [10de:2330] (rev a1)\n"          \
		"\tControl: I/O- Mem+ BusMaster+\n"                                                \
		"\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n"                             \
		"\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16\n"                                  \
		"\t\tLnkSta:\tSpeed 32GT/s, Width x" width "\n\n"

static void repeat(struct strbuf *out, const char *text, size_t n)
{
	while (n--)
		strbuf_puts(out, text);
}

/* ---- what is kept ---- */

struct reduced {
	struct arena *arena;
	struct text_reducer r;
};

static void reduce(struct reduced *x, const struct strbuf *text)
{
	x->arena = arena_new();
	x->r = text_reducer(x->arena);
	text_reduce_add(&x->r, text->text, text->len);
	text_reduce_end(&x->r);
}

static void done(struct reduced *x)
{
	text_reduce_free(&x->r);
	arena_free(x->arena);
}

/* The number of kept lines that hold `word`; *ret_all: of those that they stand for too. */
static size_t count(const struct text_reducer *r, const char *word, size_t *ret_all)
{
	size_t n = 0;

	*ret_all = 0;
	for (size_t i = 0; i < r->n; i++)
		if (strstr(r->lines[i].text, word)) {
			n++;
			*ret_all += 1 + r->lines[i].alike;
		}
	return n;
}

static size_t bytes_kept(const struct text_reducer *r)
{
	size_t size = 0;

	for (size_t i = 0; i < r->n; i++)
		size += strlen(r->lines[i].text) + sizeof(r->lines[i]);
	return size;
}

static void connections_are_counted(void **state)
{
	CLEANUP(done) struct reduced x = {0};
	AUTO_STRBUF struct strbuf text = {0};
	size_t n, all;

	(void)state;
	add_ranks(&text);
	add_connections(&text, MANY);
	add_connection(&text, 2, "SHM/direct/direct");
	add_connections(&text, MANY);
	reduce(&x, &text);
	n = count(&x.r, " via P2P/CUMEM", &all);
	assert_int_equal(n, 4);
	assert_int_equal(all, 2 * MANY);
	n = count(&x.r, " via SHM", &all);
	assert_int_equal(n, 1);
	assert_int_equal(x.r.left_out, 0);
	assert_true(x.r.n < 100);
}

/* A new communicator may be of other GPUs: its connections are not those of the one before. */
static void connections_of_another_communicator(void **state)
{
	CLEANUP(done) struct reduced x = {0};
	AUTO_STRBUF struct strbuf text = {0};
	size_t all;

	(void)state;
	add_ranks(&text);
	add_connections(&text, MANY);
	strbuf_puts(&text,
		    "node1:100:200 [0] NCCL INFO comm 0x90 rank 0 nranks 2 cudaDev 0 nvmlDev "
		    "0 busId 1000 commId 0xb - Init COMPLETE\n");
	add_connection(&text, 0, "P2P/CUMEM");
	reduce(&x, &text);
	assert_int_equal(count(&x.r, " via P2P/CUMEM", &all), 5);
	assert_int_equal(all, MANY + 1);
}

static void functions_are_kept_when_they_change(void **state)
{
	CLEANUP(done) struct reduced x = {0};
	AUTO_STRBUF struct strbuf text = {0};
	size_t all;

	(void)state;
	repeat(&text, FUNCTION("01:00.0", "16") FUNCTION("02:00.0", "16"), 15000);
	strbuf_puts(&text, FUNCTION("01:00.0", "8"));
	repeat(&text, FUNCTION("01:00.0", "16") FUNCTION("02:00.0", "16"), 15000);
	reduce(&x, &text);
	/* The second time it is what changed last. */
	assert_int_equal(count(&x.r, "01:00.0 3D", &all), 3);
	assert_int_equal(count(&x.r, "02:00.0 3D", &all), 1);
	assert_int_equal(count(&x.r, "Width x8", &all), 1);
}

static void outputs_of_two_hosts_are_both_kept(void **state)
{
	CLEANUP(done) struct reduced x = {0};
	AUTO_STRBUF struct strbuf text = {0};
	size_t all;

	(void)state;
	for (int i = 0; i < 20000; i++)
		strbuf_printf(&text, "root@gpu%d:~# lspci -vv\n%s", i % 2 + 1,
			      FUNCTION("01:00.0", "16"));
	reduce(&x, &text);
	assert_int_equal(count(&x.r, "01:00.0 3D", &all), 2);
	assert_true(count(&x.r, "root@gpu1", &all) > 0);
	assert_true(count(&x.r, "root@gpu2", &all) > 0);
}

#define ERROR "RuntimeError: CUDA error: an illegal memory access was encountered\n"

static void errors_are_counted(void **state)
{
	CLEANUP(done) struct reduced x = {0};
	AUTO_STRBUF struct strbuf text = {0};
	size_t all;

	(void)state;
	repeat(&text,
	       "Traceback (most recent call last):\n  File \"/opt/train.py\", line 10, in main\n" ERROR,
	       60000);
	reduce(&x, &text);
	assert_int_equal(count(&x.r, "RuntimeError", &all), 1);
	assert_int_equal(all, 60000);
	assert_true(x.r.n < 100);
}

/* Lines that differ without end. */
static void add_endless(struct strbuf *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		strbuf_printf(out,
			      "node1:100:200 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via "
			      "P2P/CUMEM/%zu\n",
			      i);
}

static void what_differs_without_end_is_limited(void **state)
{
	CLEANUP(done) struct reduced x = {0};
	AUTO_STRBUF struct strbuf text = {0};
	size_t all;

	(void)state;
	add_endless(&text, 500000);
	strbuf_puts(&text, ERROR);
	reduce(&x, &text);
	assert_true(text.len > 2 * MOST_LOGGED);
	assert_true(bytes_kept(&x.r) <= MOST_LOGGED + MOST_FAILURES);
	assert_int_equal(count(&x.r, " via ", &all) + x.r.left_out, 500000);
	assert_true(x.r.left_out > 0 && text_reduce_lost(&x.r));
	assert_int_equal(x.r.first_left_out, 500001 - x.r.left_out);
	/* What comes last in a log has room of its own. */
	assert_int_equal(count(&x.r, "RuntimeError", &all), 1);
}

static void errors_that_differ_are_limited(void **state)
{
	CLEANUP(done) struct reduced x = {0};
	AUTO_STRBUF struct strbuf text = {0};

	(void)state;
	for (int i = 0; i < 60000; i++)
		strbuf_printf(&text,
			      "[rank%d]: Watchdog caught collective operation timeout: "
			      "WorkNCCL(SeqNum=%d, OpType=ALLREDUCE) ran for 600060 milliseconds\n",
			      i % 8, i);
	strbuf_puts(&text, FUNCTION("01:00.0", "16"));
	reduce(&x, &text);
	assert_true(bytes_kept(&x.r) <= 2 * MOST_FAILURES);
	assert_true(x.r.left_out > 0);
}

/*
 * Lines about GPUs that all differ, each between two that are not read: of these only one is kept.
 */
static void a_kernel_log_is_limited(void **state)
{
	CLEANUP(done) struct reduced x = {0};
	AUTO_STRBUF struct strbuf text = {0};
	size_t all, n;

	(void)state;
	for (int i = 0; i < 100000; i++)
		strbuf_printf(&text,
			      "[%d.000001] usb 1-1: new high-speed USB device number %d\n"
			      "[%d.000002] usb 1-1: New USB device found, idVendor=0b1f, %d\n"
			      "[%d.000003] NVRM: Xid (PCI:0000:%02x:00): 31, pid=%d, Ch 0000%04x\n",
			      i, i, i, i, i, i % 16, i, i % 65536);
	reduce(&x, &text);
	n = count(&x.r, "Xid", &all);
	assert_true(n > 40000 && text_reduce_lost(&x.r));
	assert_true(count(&x.r, "usb", &all) <= n + 100); /* a piece begins with two */
	assert_true(bytes_kept(&x.r) <= 2 * MOST_RELEVANT);
}

/* A flood of one error leaves room for another that comes last. */
static void a_flood_leaves_room(void **state)
{
	CLEANUP(done) struct reduced x = {0};
	AUTO_STRBUF struct strbuf text = {0};
	size_t all;

	(void)state;
	for (int i = 0; i < 120000; i++)
		strbuf_printf(&text,
			      "[%d.000003] NVRM: Xid (PCI:0000:01:00): 31, pid=%d, Ch 0000%04x, "
			      "MMU Fault: ENGINE GRAPHICS faulted\n",
			      i, i, i % 65536);
	strbuf_puts(&text, "[120000.000003] NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=python, "
			   "GPU has fallen off the bus, and the line is as long as the others are, "
			   "so that it is not the one that just fits.\n");
	reduce(&x, &text);
	assert_int_equal(count(&x.r, "): 31,", &all), MOST_OF_START);
	assert_int_equal(count(&x.r, "): 79,", &all), 1);
	assert_true(text_reduce_lost(&x.r));
}

/* ---- what is reported ---- */

static struct machine *machine_of(const struct strbuf *text)
{
	const char *one = text->text;

	return machine_of_texts(&one, 1);
}

static void a_pair_counts_all_of_its_connections(void **state)
{
	CLEANUP(done) struct reduced x = {0};
	AUTO_STRBUF struct strbuf text = {0};
	struct nccl_log *l;
	const struct nccl_pair *pair;

	(void)state;
	add_ranks(&text);
	add_connections(&text, MANY);
	add_connection(&text, 2, "SHM/direct/direct");
	reduce(&x, &text);
	assert_int_equal(nccl_log_parse_lines(x.r.lines, x.r.n, "log", &l), 0);
	pair = nccl_log_pair(l, 2, 3);
	assert_int_equal(pair->connections[NCCL_WAY_PEER], MANY / 4);
	assert_int_equal(pair->connections[NCCL_WAY_HOST], 1);
	assert_int_equal(pair->line, 7);
	assert_int_equal(nccl_pair_way(pair), NCCL_WAY_HOST);
	assert_int_equal(l->lines, MANY + 5);
	nccl_log_free(l);
}

static void what_is_left_out_is_reported(void **state)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct machine *m;

	(void)state;
	add_ranks(&text);
	add_endless(&text, 500000);
	m = machine_of(&text);
	assert_true(has_trouble(m, "says more than is kept; from line "));
	assert_false(fact_known(m->nccl.ended));
	for (size_t i = 0; i < m->text_part_n; i++)
		assert_true(!m->text_parts[i].name || m->text_parts[i].cut);
	machine_free(m);
}

static void repetitions_are_reported(void **state)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct machine *m;

	(void)state;
	add_ranks(&text);
	add_connections(&text, MANY);
	m = machine_of(&text);
	assert_int_equal(m->text_part_n, 1);
	assert_string_equal(m->text_parts[0].about, "8 lines; 199996 repetitions");
	assert_int_equal(m->text_parts[0].last, MANY + 4);
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
}

/* Ranks whose lines are left out may wait elsewhere. */
static void waits_of_some_ranks_are_not_compared(void **state)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct machine *m;

	(void)state;
	for (int i = 0; i < 300; i++)
		strbuf_printf(&text,
			      "[rank%d]: Watchdog caught collective operation timeout: "
			      "WorkNCCL(SeqNum=7, OpType=ALLREDUCE) ran for 600060 milliseconds\n",
			      i);
	m = machine_of(&text);
	assert_true(
		has_trouble(m, "more different errors or warnings of a run than are kept; 44 "));
	for (size_t i = 0; i < m->observed_n; i++)
		if (m->observed[i].kind == OBSERVED_RUN_FAILURE)
			assert_int_equal(m->observed[i].failure.waits, RUN_WAITS_UNKNOWN);
	machine_free(m);
}

/* Its last line is where it was. */
static void a_recording_keeps_the_numbers(void **state)
{
	AUTO_STRBUF struct strbuf text = {0}, kept = {0};
	struct pasted *t = pasted_new("log");
	size_t lines = 0;

	(void)state;
	add_ranks(&text);
	add_connections(&text, MANY);
	add_connection(&text, 2, "SHM/direct/direct");
	pasted_add(t, "log", text.text, text.len);
	pasted_keep(t, &kept);
	for (const char *s = strbuf_str(&kept); (s = strchr(s, '\n')); s++)
		lines++;
	assert_int_equal(lines, 1 + 4 + MANY + 1);
	assert_non_null(strstr(strbuf_str(&kept), "via SHM/direct/direct\n"));
	pasted_free(t);
}

/* A recording of a text that lost lines does not prove more than the text. */
static void a_recording_keeps_the_limits(void **state)
{
	AUTO_STRBUF struct strbuf text = {0}, kept = {0}, again = {0};
	struct pasted *t = pasted_new("log"), *u = pasted_new("recording");

	(void)state;
	add_ranks(&text);
	add_endless(&text, 200000);
	pasted_add(t, "log", text.text, text.len);
	pasted_keep(t, &kept);
	assert_non_null(strstr(strbuf_str(&kept), "= log\n! "));
	assert_int_equal(kept_texts_add(strbuf_str(&kept), "recording", u), 0);
	pasted_keep(u, &again);
	assert_memory_equal(kept.text, again.text, 20);
	pasted_free(t);
	pasted_free(u);
}

/* ---- lines of several hosts ---- */

/* What a host printed, each line behind its name; noise makes the text large. */
static void add_host(struct strbuf *out, const char *host, const char *lines, size_t noise)
{
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, lines))
		strbuf_printf(out, "%s: %.*s\n", host, (int)n, line);
	for (size_t i = 0; i < noise; i++)
		strbuf_printf(out, "%s: [%8zu.000000] usb 1-1: new device number %zu\n", host, i,
			      i);
}

#define LIST_OF(model) "GPU 0: " model " (UUID: GPU-1)\nGPU 1: " model " (UUID: GPU-2)\n"

/*
 * As pdsh prints them: hosts that come later than the first piece are found too, and lines keep
 * their numbers.
 */
static void hosts_in_front_of_lines(void **state)
{
	static const char *const names[] = {"gpu7", "gpu8", "gpu12"};
	AUTO_STRBUF struct strbuf text = {0};

	(void)state;
	strbuf_puts(&text, "$ pdsh -w gpu[7-8,12] 'nvidia-smi -L; dmesg'\n");
	add_host(&text, "gpu7", LIST_OF("NVIDIA H200"), MANY / 2);
	add_host(&text, "gpu8", LIST_OF("NVIDIA A100"), MANY / 2);
	add_host(&text, "gpu12", LIST_OF("NVIDIA A40"), 1);
	strbuf_puts(&text, "gpu12: [    9.000000] NVRM: Xid (PCI:0000:01:00): 79, pid=1\n");
	for (size_t i = 0; i < 3; i++) {
		struct machine *m = machine_of_host(text.text, text.len, names[i]);

		assert_int_equal(m->gpu_n, i == 2 ? 3 : 2);
		assert_int_equal(m->log_n, i == 2);
		assert_string_equal(fact_str_or(m->gpus[i == 2].model, ""), i == 0 ? "NVIDIA H200"
									    : i == 1
										    ? "NVIDIA A100"
										    : "NVIDIA A40");
		if (i == 1)
			assert_string_equal(m->gpus[0].model.from, "a:100004");
		assert_int_equal(m->trouble_n, 0);
		machine_free(m);
	}
}

/* As clush -b prints them, some for several hosts. */
static void hosts_above_their_lines(void **state)
{
	AUTO_STRBUF struct strbuf text = {0};

	(void)state;
	strbuf_puts(&text,
		    "---------------\ngpu[7,9] (2)\n---------------\n" LIST_OF("NVIDIA H200"));
	for (size_t i = 0; i < MANY; i++)
		strbuf_printf(&text, "[%8zu.000000] usb 1-1: new device number %zu\n", i, i);
	strbuf_puts(&text, "---------------\ngpu8\n---------------\n" LIST_OF("NVIDIA A100"));
	strbuf_puts(&text, "---------------\ngpu[7-9] (3)\n---------------\n"
			   "nvidia_peermem         16384  0\n");
	for (int i = 7; i < 10; i++) {
		const char name[] = {'g', 'p', 'u', (char)('0' + i), '\0'};
		struct machine *m = machine_of_host(text.text, text.len, name);

		assert_string_equal(m->gpus[0].model.value, i == 8 ? "NVIDIA A100" : "NVIDIA H200");
		assert_true(fact_is(m->peermem.loaded, 1));
		machine_free(m);
	}
}

/* A kernel log has names with numbers in front of its lines, too. */
static void names_that_are_no_hosts(void **state)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct machine *m;

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		strbuf_printf(&text, "ata%zu: SATA link down\n", i % 8);
	strbuf_puts(&text, LIST_OF("NVIDIA H200"));
	m = machine_of(&text);
	assert_int_equal(m->gpu_n, 2);
	machine_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_are_counted),
		cmocka_unit_test(connections_of_another_communicator),
		cmocka_unit_test(functions_are_kept_when_they_change),
		cmocka_unit_test(outputs_of_two_hosts_are_both_kept),
		cmocka_unit_test(errors_are_counted),
		cmocka_unit_test(what_differs_without_end_is_limited),
		cmocka_unit_test(a_kernel_log_is_limited),
		cmocka_unit_test(a_flood_leaves_room),
		cmocka_unit_test(errors_that_differ_are_limited),
		cmocka_unit_test(a_pair_counts_all_of_its_connections),
		cmocka_unit_test(what_is_left_out_is_reported),
		cmocka_unit_test(repetitions_are_reported),
		cmocka_unit_test(waits_of_some_ranks_are_not_compared),
		cmocka_unit_test(a_recording_keeps_the_numbers),
		cmocka_unit_test(a_recording_keeps_the_limits),
		cmocka_unit_test(hosts_in_front_of_lines),
		cmocka_unit_test(hosts_above_their_lines),
		cmocka_unit_test(names_that_are_no_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
