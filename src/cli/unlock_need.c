/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/unlock_need.h"

#include "base/err.h"
#include "machine/machine.h"
#include "report/report_unlock.h"
#include "session/deliver_session.h"

int show_requirements(const struct machine *m, const struct unlock_requirements *n,
		      const struct common_options *common, bool by_hand)
{
	const bool well = action_is_none(n->action) && !n->obstacle;
	enum exit_code code = !n->judged ? EXIT_NOT_JUDGED : well ? EXIT_OK : EXIT_FINDING;
	struct document *d;

	if (common->json)
		return print_json(report_unlock_requirements_json(m, n), code);
	d = document_new();
	report_unlock_requirements(d, m, n, by_hand);
	return show_document(d, common, code);
}

int unlock_need(const struct common_options *common, bool by_hand)
{
	struct machine *m;
	int r;

	if (machine_choice_read(&common->machine, UNLOCK_PARTS, &m) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	r = show_requirements(m, unlock_requirements(m), common, by_hand);
	machine_free(m);
	return r;
}
