/* SPDX-License-Identifier: Apache-2.0 */
/* onehop bench p2p on the host back end: whole command lines, and the devices they choose. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "result/figures_json.h"
#include "session/devices.h"
#include "session/stop.h"

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define QUICK " --size 64K --time 0.001"

struct result {
	int code;
	char *out, *err;
};

static char *take_text(FILE *f)
{
	AUTO_STRBUF struct strbuf b = {0};
	char part[4096];
	size_t n;

	rewind(f);
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		strbuf_add(&b, part, n);
	fclose(f);
	return xstrdup(strbuf_str(&b));
}

/* A command line, split at blanks, in a process of its own; `stop`: it is told to stop at once. */
static struct result run(const char *line, bool stop)
{
	AUTO_FREE char *copy = xstrdup(line);
	char program[] = "onehop", *argv[32] = {program}, *rest = copy, *word;
	FILE *out = tmpfile(), *err = tmpfile();
	struct result r;
	int argc = 1, status;
	pid_t pid;

	while ((word = strsep(&rest, " ")) && argc < 31)
		argv[argc++] = word;
	assert_true(out && err);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(fileno(out), STDOUT_FILENO);
		dup2(fileno(err), STDERR_FILENO);
		if (stop) {
			stop_signals_open();
			raise(SIGINT);
		}
		status = cli_main(argc, argv);
		fflush(NULL);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	r.code = WEXITSTATUS(status);
	r.out = take_text(out);
	r.err = take_text(err);
	return r;
}

static void done(struct result *r)
{
	free(r->out);
	free(r->err);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in:\n%s", part, text);
}

static void assert_says(const char *line, int code, const char *out, const char *err)
{
	struct result r CLEANUP(done) = run(line, false);

	assert_has(r.out, out);
	assert_has(r.err, err);
	assert_int_equal(r.code, code);
}

/* ---- results ---- */

static void test_report(void **state)
{
	(void)state;
	assert_says("bench p2p --device host:2" QUICK, 0, "SIMULATED DEVICES: 2,", "");
	assert_says("bench p2p --device host:2" QUICK, 0, "correct in all 13 checked cells", "");
	assert_says("bench p2p --device host:2 --only write-ce,staged --no-verify" QUICK, 0,
		    "No data was checked", "");
	assert_says("bench p2p --device host:3 --only write-ce --pairs 0->1,1-2" QUICK, 0,
		    "correct in all 3 checked cells", "");
	assert_says("bench p2p --device host:2 --only write-ce --sweep" QUICK, 0,
		    "copies of 16 KiB", "");
	assert_says("bench p2p --device host:1 --all" QUICK, 0, "within a device", "");
	assert_says("bench p2p --device host --from tests/machines/made-up-switch --only both-ce "
		    "--verbose" QUICK,
		    0, "Recorded machine: tests/machines/made-up-switch", "");
}

static void test_json(void **state)
{
	struct result r CLEANUP(done) =
		run("bench p2p --device host:2 --only both-ce,h2d-ce --json" QUICK, false);
	json_t *json = json_loads(r.out, 0, NULL);
	struct figures *f;

	(void)state;
	assert_int_equal(r.code, 0);
	assert_non_null(json);
	assert_int_equal(figures_from_json(json, "test", &f), 0);
	assert_int_equal(f->gpu_n, 2);
	assert_int_equal(f->row_n, 4);
	assert_non_null(figures_find(f, "both-ce", 1, 0, 65536));
	assert_has(r.err, "simulated devices (threads and memory of this host)");
	figures_free(f);
	json_decref(json);
}

static void test_peers_layouts(void **state)
{
	struct result r CLEANUP(done) =
		run("bench p2p --device host:2 --format nvbandwidth-json" QUICK, false);
	json_t *json = json_loads(r.out, 0, NULL);
	const json_t *tests = json_object_get(json_object_get(json, "nvbandwidth"), "testcases");

	(void)state;
	assert_int_equal(r.code, 0);
	assert_int_equal(json_array_size(tests), 9);
	json_decref(json);
	assert_says("bench p2p --device host:2 --format p2pBandwidthLatencyTest" QUICK, 0,
		    "P2P=Enabled Latency (P2P Writes) Matrix (us)\n   GPU     0      1 \n",
		    "simulated devices (threads and memory of this host)");
	assert_says("bench p2p --device host:2 --format p2pBandwidthLatencyTest" QUICK, 0,
		    "   CPU     0      1 \n", "");
}

static void test_stopped(void **state)
{
	struct result r CLEANUP(done) = run("bench p2p --device host:2" QUICK, true);

	(void)state;
	assert_int_equal(r.code, 2);
	assert_string_equal(r.err, "onehop: stopped while opening devices 0 1\n");
}

/* ---- usage ---- */

static void test_refused(void **state)
{
	(void)state;
	assert_says("bench p2p --device host:0", 2, "", "host:N with N from 1 to 64");
	assert_says("bench p2p --device host", 2, "", "host:N");
	assert_says("bench p2p --from tests/machines/made-up-switch", 2, "", "--device host");
	assert_says("bench p2p --device host:3 --from tests/machines/made-up-switch", 2, "",
		    "more than the recorded machine has: 2");
	assert_says("bench p2p --device host:2 --only write-c", 2, "", "did you mean write-ce?");
	assert_says("bench p2p --device host:2 --only write-ce --all", 2, "",
		    "cannot be used together");
	assert_says("bench p2p --device host:2 --json --format nvbandwidth-json", 2, "",
		    "cannot be used with --format");
	assert_says("bench p2p --device host:2 --size 8", 2, "", "too small: the minimum is 32");
	assert_says("bench p2p --device host:2 --size 4M --memory 4M", 2, "", "exceed --memory");
	assert_says("bench p2p --device host:2 --time 0", 2, "",
		    "--time must be a number of seconds");
	assert_says("bench p2p --device host:2 --pairs 0", 2, "", "--pairs: a pair must be");
	assert_says("bench p2p --device host:2 --pairs 0-2", 2, "", "'2' is not one of");
	assert_says("bench p2p --device host:2 --pairs host0-0", 2, "", "the same device twice");
	assert_says("bench p2p --device host:2 --pairs 0-1,1->0", 2, "", "twice");
}

static void test_bytes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes; /* 0: refused */
	} cases[] = {{"4096", 4096},   {"4K", 4096}, {"1.5m", 3 << 19},  {"2G", 2ull << 30},
		     {".5g", 1 << 29}, {"1", 1},     {"1T", 1ull << 40}, {"1024t", 1ull << 50},
		     {"1025T", 0},     {"", 0},      {"K", 0},           {"4KB", 0},
		     {"-1", 0},        {"nan", 0},   {"inf", 0},         {"99999999G", 0},
		     {"4 K", 0},       {"4 ", 0},    {" 4", 0},          {"0", 0},
		     {"1e3", 0},       {"0x10", 0},  {"1.2.3", 0},       {"+1K", 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t bytes = 0;

		assert_int_equal(parse_bytes("--size", cases[i].text, &bytes) == 0,
				 cases[i].bytes != 0);
		assert_int_equal(bytes, cases[i].bytes);
	}
}

/* Whatever bytes: no crash, and what is taken is a size. */
static void test_any_bytes(void **state)
{
	unsigned seed = 1;
	uint64_t bytes;
	char text[6];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		for (size_t k = 0; k < sizeof(text) - 1; k++) {
			seed = seed * 1103515245 + 12345;
			text[k] = "0123456789.eExXkKmMgGtTpPnaif+- "[seed >> 16 & 31];
		}
		text[(seed >> 8) % sizeof(text)] = '\0';
		text[sizeof(text) - 1] = '\0';
		if (parse_bytes("--size", text, &bytes) == 0)
			assert_true(bytes >= 1 && bytes <= 1ull << 50);
	}
}

/* The command starts this very program as its worker. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report),        cmocka_unit_test(test_json),
		cmocka_unit_test(test_peers_layouts), cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_refused),       cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_any_bytes),
	};

	if (argc > 1)
		return cli_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
