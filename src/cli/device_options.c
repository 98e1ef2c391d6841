/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/device_options.h"

#include "report/report.h"

void devices_tell(const struct devices *d)
{
	if (devices_are_simulated(d))
		fail(EXIT_OK, SIMULATED_TEXT);
	for (size_t i = 0; i < d->chosen.skip_n; i++)
		fail(EXIT_OK, "%s is skipped: %s", d->chosen.skips[i].name,
		     d->chosen.skips[i].reason);
}

int devices_none(const struct devices *d, bool simulated)
{
	devices_tell(d);
	return fail(EXIT_NOT_JUDGED, "%s%s",
		    d->chosen.skip_n ? "no GPU is left to measure"
				     : "this machine has no NVIDIA GPU",
		    simulated && !d->chosen.skip_n ? "; --device host:N uses simulated devices"
						   : "");
}
