/* SPDX-License-Identifier: Apache-2.0 */
#include "session/advice_session.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "machine/machine.h"
#include "topology/topology.h"

#include <errno.h>

static int read_script(struct advice_session *s, const char *script)
{
	AUTO_FREE char *why = NULL;
	int r = shell_script_read(s->machine, script, &s->settings, &s->setting_n);

	if (r < 0) {
		why = xstrdup(err_msg());
		return err_set(-r, "--script: %s", why);
	}
	shell_script_settings(s->machine, script, s->settings, s->setting_n);
	return 0;
}

enum ending advice_session_begin(struct advice_session *s, const struct machine_choice *from,
				 const char *script)
{
	*s = (struct advice_session){0};
	if (machine_choice_read(from, MACHINE_TO_JUDGE, &s->machine) < 0)
		return ENDED_UNDECIDED;
	if (script && read_script(s, script) < 0)
		return ENDED_UNDECIDED;
	s->topology = topology_new(s->machine);
	s->diagnosis = diagnose(s->topology);
	s->advice = advice_new(s->diagnosis);
	return ENDED_WELL;
}

void advice_session_done(struct advice_session *s)
{
	if (s->diagnosis)
		diagnosis_free(s->diagnosis);
	if (s->topology)
		topology_free(s->topology);
	machine_free(s->machine);
}
