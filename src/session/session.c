/* SPDX-License-Identifier: Apache-2.0 */
#include "session/session.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "result/figures.h"
#include "session/store.h"

#include <stdarg.h>

void session_tell(const struct session_ear *ear, enum session_word w, const char *fmt, ...)
{
	AUTO_STRBUF struct strbuf b = {0};
	va_list ap;

	va_start(ap, fmt);
	strbuf_vprintf(&b, fmt, ap);
	va_end(ap);
	ear->hear(ear->context, w, strbuf_str(&b));
}

int session_begin(const struct device_options *o, const char *from, unsigned parts,
		  struct devices *ret)
{
	int r = devices_choose(o, from, parts, ret);

	return r < 0 ? r : devices_lock(ret);
}

void session_keep(const struct session_ear *ear, const struct devices *d, const struct machine *m,
		  struct figures *f)
{
	bool ours = m && !devices_are_simulated(d);

	figures_stamp(f, ours ? m : NULL);
	if (ours && store_keep(f) < 0)
		session_tell(ear, SESSION_NOTE,
			     "the results could not be saved for onehop check: %s", err_msg());
}
