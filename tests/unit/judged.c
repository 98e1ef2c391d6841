/* SPDX-License-Identifier: Apache-2.0 */
#include "judged.h"

#include "build_machine.h"

static struct judged judge(struct machine *m, void (*free_machine)(struct machine *m))
{
	struct judged j = {.m = m, .t = topology_new(m), .free_machine = free_machine};

	j.d = diagnose(j.t);
	return j;
}

struct judged judge_built(struct machine *m)
{
	return judge(m, build_free);
}

struct judged judge_read(struct machine *m)
{
	return judge(m, machine_free);
}

void judged_done(struct judged *j)
{
	diagnosis_free(j->d);
	topology_free(j->t);
	j->free_machine(j->m);
}
