/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices a list names, who is left out and why; and the line that says what is running. */
#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "build_machine.h"
#include "cli/progress.h"
#include "run_command.h"
#include "session/devices.h"
#include "session/stop.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* ---- choice ---- */

/* Four GPUs; NVML counts from the other end, CUDA sees the last two only. */
static struct machine *numbered_machine(void)
{
	struct machine *m = build_root_ports(4, 1, 1);

	for (size_t i = 0; i < 4; i++) {
		m->gpus[i].nvml_index =
			(struct fact_int){.state = FACT_KNOWN, .value = 3 - (int64_t)i};
		m->gpus[i].cuda_ordinal =
			(struct fact_int){.state = i < 2 ? FACT_ABSENT : FACT_KNOWN,
					  .value = i < 2 ? 0 : (int64_t)i - 2,
					  .from = "CUDA_VISIBLE_DEVICES=2,3"};
	}
	return m;
}

static void assert_chosen(const struct machine *m, const char *list, bool include_busy,
			  const char *numbers)
{
	struct device_choice c;
	char is[64] = "";

	if (choose_gpus(m, list, include_busy, &c) < 0)
		fail_msg("%s: %s", list ? list : "all", err_msg());
	for (size_t i = 0; i < c.n; i++)
		snprintf(is + strlen(is), sizeof(is) - strlen(is), "%s%d=%d", i ? " " : "",
			 c.numbers[i], c.ordinals[i]);
	assert_string_equal(is, numbers);
	device_choice_done(&c);
}

static void gpus_have_four_names(void **state)
{
	struct machine *m = numbered_machine();
	const char *address = m->gpus[3].pci->name;

	(void)state;
	assert_chosen(m, NULL, false, "2=0 3=1");
	assert_chosen(m, "3", false, "3=1");
	assert_chosen(m, "GPU3,GPU2", false, "2=0 3=1");
	assert_chosen(m, address, false, "3=1");
	assert_true(text_starts_with(address, "0000:"));
	assert_chosen(m, address + 5, false, "3=1");
	assert_chosen(m, "nvml:0", false, "3=1");
	assert_chosen(m, "nvml:1,cuda:1", false, "2=0 3=1");
	assert_chosen(m, "nvml:3", false, "");
	build_free(m);
}

static void assert_refused(const struct machine *m, const char *list, const char *why)
{
	struct device_choice c;

	assert_int_equal(choose_gpus(m, list, false, &c), -EINVAL);
	assert_string_equal(err_msg(), why);
}

static void what_names_none_is_refused(void **state)
{
	static const char *const none[] = {"4",     "",    "nvml:4", "cuda:2", "nvml:",  "nvml:-1",
					   "host0", "GPU", "GPU04x", "cuda:",  "09:00.0"};
	struct machine *m = numbered_machine(), *empty = build_machine();

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		AUTO_FREE char *why =
			xprintf("--gpus: there is no device '%s'; there are GPU0 to GPU3", none[i]);

		assert_refused(m, none[i], why);
	}
	assert_refused(m, "2,", "--gpus: there is no device ''; there are GPU0 to GPU3");
	assert_refused(m, "2,cuda:0", "--gpus names GPU2 twice");
	assert_refused(empty, "0", "--gpus: this machine has no NVIDIA GPU");
	build_free(empty);
	build_free(m);
}

static void others_gpus_are_left_out(void **state)
{
	struct machine *m = numbered_machine();
	struct device_choice c;

	(void)state;
	m->gpus[3].process_n = (struct fact_int){.state = FACT_KNOWN, .value = 2};
	assert_int_equal(choose_gpus(m, NULL, false, &c), 0);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.skip_n, 3);
	assert_string_equal(c.skips[0].reason, "hidden from CUDA (CUDA_VISIBLE_DEVICES=2,3)");
	assert_string_equal(c.skips[2].reason,
			    "in use by 2 processes; --include-busy uses it anyway");
	device_choice_done(&c);
	assert_chosen(m, NULL, true, "2=0 3=1");
	build_free(m);
}

static void simulated_devices_have_two_names(void **state)
{
	struct device_choice c;

	(void)state;
	assert_int_equal(choose_simulated(4, "host2,0", &c), 0);
	assert_int_equal(c.n, 2);
	assert_string_equal(c.names[1], "host2");
	assert_int_equal(c.ordinals[1], -1);
	device_choice_done(&c);
	assert_int_equal(choose_simulated(2, "cuda:0", &c), -EINVAL);
	assert_int_equal(choose_simulated(2, "GPU0", &c), -EINVAL);
	assert_int_equal(choose_simulated(0, NULL, &c), -EINVAL);
}

/* ---- pairs ---- */

static void assert_pair(const struct devices *d, const char *text, unsigned i, unsigned j,
			bool both)
{
	struct pair p;
	bool is_both;

	if (devices_find_pair(d, text, &p, &is_both) < 0)
		fail_msg("%s: %s", text, err_msg());
	assert_int_equal(p.initiator, i);
	assert_int_equal(p.target, j);
	assert_int_equal(is_both, both);
}

static void pairs_are_of_devices_in_use(void **state)
{
	static const char *const none[] = {"2",    "2->",   "->2", "2->2",     "0->2",
					   "2->4", "2-3-2", "2>3", "cuda:0-2", ""};
	static const char *const two[] = {"2-3", "x", ""}; /* where one direction is wanted */
	struct devices d = {.machine = numbered_machine(),
			    .request = {.kind = DEVICE_CUDA, .n = 2, .number = {2, 3}}};
	struct pair p;
	bool both;

	(void)state;
	assert_pair(&d, "2->3", 0, 1, false);
	assert_pair(&d, "GPU3-GPU2", 1, 0, true);
	assert_pair(&d, "cuda:1->nvml:1", 1, 0, false);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(devices_find_pair(&d, none[i], &p, &both), -EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(two); i++) {
		assert_int_equal(devices_find_pair(&d, two[i], &p, NULL), -EINVAL);
		assert_non_null(strstr(err_msg(), "a pair must be 0->1, not '"));
	}
	assert_int_equal(devices_find_pair(&d, "2->3", &p, NULL), 0);
	build_free(d.machine);
}

/* CUDA's numbering is a guess until a device is open. */
static void opened_devices_are_checked(void **state)
{
	struct devices d = {.machine = numbered_machine(),
			    .request = {.kind = DEVICE_CUDA, .n = 2, .number = {2, 3}}};
	const char *address = d.machine->gpus[2].pci->name;

	(void)state;
	assert_int_equal(devices_check(&d, 0, 0, address), 0);
	assert_int_equal(devices_check(&d, 0, 0, ""), 0);
	assert_int_equal(devices_check(&d, 1, 0, address), -ENXIO);
	assert_non_null(strstr(err_msg(), "and not GPU3"));
	build_free(d.machine);
}

/*
 * Simulated devices that follow some GPUs of a machine have the rates of just these, by their
 * numbers.
 */
static void simulated_devices_follow_the_rates_of_their_gpus(void **state)
{
	const struct device_options o = {.device = "host", .gpus = "2,3"};
	static const char from[] = "tests/machines/rtx4090x8-before";
	struct devices all, d;

	(void)state;
	assert_int_equal(devices_choose(&(struct device_options){.device = "host"}, from, 0, &all),
			 0);
	assert_int_equal(devices_choose(&o, from, 0, &d), 0);
	assert_int_equal(d.request.n, 2);
	assert_true(all.request.host.link_gbps[2][3] > 0);
	assert_true(d.request.host.link_gbps[2][3] == all.request.host.link_gbps[2][3]);
	assert_true(d.request.host.link_gbps[0][1] == 0);
	devices_done(&d);
	devices_done(&all);
}

/* ---- signals ---- */

/* Who asks first does not take the answer from the others. */
static void a_signal_is_seen_by_all(void **state)
{
	sigset_t before;
	int fd;

	(void)state;
	assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &before), 0);
	fd = stop_signals_open();
	assert_true(fd >= 0);
	assert_false(stop_signals_seen(fd));
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	for (int i = 0; i < 2; i++)
		assert_true(stop_signals_seen(fd));
	assert_int_equal(read(fd, &(struct signalfd_siginfo){0}, sizeof(struct signalfd_siginfo)),
			 sizeof(struct signalfd_siginfo));
	assert_false(stop_signals_seen(fd));
	assert_false(stop_signals_seen(-1));
	close(fd);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

/* ---- progress ---- */

static void two_steps(void *context)
{
	struct progress p;
	const struct session_ear ear = progress_ear(&p);

	(void)context;
	progress_begin(&p);
	progress_end(&p); /* nothing stands there yet */
	session_tell(&ear, SESSION_RUNS, "%s, %d left", "write-ce", 2);
	session_tell(&ear, SESSION_RUNS, "read-ce, 1 left");
	progress_end(&p);
	progress_end(&p);
}

static void progress_is_one_line(void **state)
{
	char text[256];

	(void)state;
	setenv("TERM", "xterm", 1);
	on_terminal(stderr, two_steps, NULL, text, sizeof(text));
	assert_string_equal(
		text, "\r\033[Konehop: write-ce, 2 left\r\033[Konehop: read-ce, 1 left\r\033[K");
}

/* A line a second there, and both of these come within the first. */
static void progress_has_no_escapes_on_a_dumb_terminal(void **state)
{
	char text[256];

	(void)state;
	setenv("TERM", "dumb", 1);
	on_terminal(stderr, two_steps, NULL, text, sizeof(text));
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpus_have_four_names),
		cmocka_unit_test(what_names_none_is_refused),
		cmocka_unit_test(others_gpus_are_left_out),
		cmocka_unit_test(simulated_devices_have_two_names),
		cmocka_unit_test(pairs_are_of_devices_in_use),
		cmocka_unit_test(opened_devices_are_checked),
		cmocka_unit_test(simulated_devices_follow_the_rates_of_their_gpus),
		cmocka_unit_test(a_signal_is_seen_by_all),
		cmocka_unit_test(progress_is_one_line),
		cmocka_unit_test(progress_has_no_escapes_on_a_dumb_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
