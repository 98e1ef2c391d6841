/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of fixes: any plan.json and log.jsonl, divided by a line "----". */
#include "base/strbuf.h"
#include "fix/journal_impl.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DIVIDER "----\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As of a fix whose plan is damaged. */
static void glance(const char *log, size_t size)
{
	struct journal_entry e = {.damage = -1};

	journal_log_glance(log, size, &e);
	if (strlen(e.date) >= sizeof(e.date) || strlen(e.last_boot_id) >= sizeof(e.last_boot_id) ||
	    !fix_state_word(e.state))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_STRBUF struct strbuf command = {0};
	const char *plan = (const char *)data;
	const char *divider = memmem(plan, size, DIVIDER, strlen(DIVIDER));
	size_t plan_size = divider ? (size_t)(divider - plan) : size;
	const char *log = divider ? divider + strlen(DIVIDER) : plan + size;
	struct journal_entry e;

	glance(log, size - (size_t)(log - plan));
	if (journal_parse(plan, plan_size, log, size - (size_t)(log - plan), "1", &e) < 0)
		return 0;
	for (size_t i = 0; i < e.plan->step_n; i++) {
		const struct step *s = &e.plan->steps[i];

		if (s->argv)
			step_command_line(s->argv, &command);
		step_difference(s, STEP_OLD_SIDE, s->target, &command);
		strbuf_puts(&command, step_mark_word(e.marks[i]));
	}
	journal_free_entry(&e);
	return 0;
}
