/* SPDX-License-Identifier: Apache-2.0 */
/* session/rdma_log.c: which lines of the kernel log came during a run. */
#include "base/source.h"
#include "session/rdma_log.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What a log with this text adds; NULL: it cannot be read. */
static void take(struct rdma_log *l, const char *text, bool old)
{
	static const struct machine_request request = {.parts = MACHINE_LOG};
	struct source *map = source_new_map("log");
	struct machine *m;

	if (text)
		source_put_file(map, "kernel-log.txt", text, strlen(text));
	else
		source_put_error(map, "kernel-log.txt", SOURCE_FILE, EPERM);
	m = machine_read(map, &request);
	source_free(map);
	if (old)
		log_tail_take(&l->tail, m, NULL, NULL);
	else
		rdma_log_take(l, m);
	machine_free(m);
}

#define BEFORE "[   10.000000] mlx5_core 0000:41:00.0: firmware version: 28.39.1002\n"
#define REFUSED                                                                                    \
	"[   20.000000] NVRM: dma-buf attach failed: PCI topology not supported for dma-buf\n"

static void only_new_lines_are_kept(void **state)
{
	struct rdma_log l = {0};

	(void)state;
	log_tail_open(&l.tail);
	take(&l, BEFORE, true);
	assert_int_equal(l.n, 0);
	take(&l, BEFORE REFUSED "[   21.000000] usb 1-1: new device\n", false);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.lines[0],
			    "NVRM: dma-buf attach failed: PCI topology not supported for dma-buf");
	take(&l, BEFORE REFUSED, false);
	assert_int_equal(l.n, 1);
	assert_null(l.tail.unread);
	rdma_log_done(&l);
}

static void a_flood_is_counted(void **state)
{
	struct rdma_log l = {0};
	char text[4096] = "";

	(void)state;
	log_tail_open(&l.tail);
	take(&l, "", true);
	for (int i = 0; i < RDMA_LOG_MAX + 3; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "[   %d.000000] NVRM: dma-buf attach failed: again\n", 30 + i);
	take(&l, text, false);
	assert_int_equal(l.n, RDMA_LOG_MAX);
	assert_int_equal(l.more, 3);
	rdma_log_done(&l);
}

static void a_log_that_cannot_be_read_says_why(void **state)
{
	struct rdma_log l = {0};

	(void)state;
	log_tail_open(&l.tail);
	take(&l, NULL, true);
	assert_non_null(l.tail.unread);
	assert_int_equal(l.n, 0);
	rdma_log_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_new_lines_are_kept),
		cmocka_unit_test(a_flood_is_counted),
		cmocka_unit_test(a_log_that_cannot_be_read_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
