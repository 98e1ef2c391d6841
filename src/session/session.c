/* SPDX-License-Identifier: Apache-2.0 */
#include "session/session.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "result/figures.h"
#include "session/store.h"

#include <math.h>
#include <stdarg.h>

/* Below it, the pace of the first parts says little. */
#define PACE_KNOWN_S 1

static void tell(const struct session_ear *ear, enum session_word w, const struct strbuf *b)
{
	ear->hear(ear->context, w, strbuf_str(b));
}

void session_tell(const struct session_ear *ear, enum session_word w, const char *fmt, ...)
{
	AUTO_STRBUF struct strbuf b = {0};
	va_list ap;

	va_start(ap, fmt);
	strbuf_vprintf(&b, fmt, ap);
	va_end(ap);
	tell(ear, w, &b);
}

/* "12 s", "4 min", "2 h": rounded up, so that it is not 0. */
static void add_time(struct strbuf *out, double s)
{
	if (s < 90)
		strbuf_printf(out, "%.0f s", ceil(s));
	else if (s < 90.0 * 60)
		strbuf_printf(out, "%.0f min", ceil(s / 60));
	else
		strbuf_printf(out, "%.0f h", ceil(s / 3600));
}

void session_pace_text(const struct session_pace *p, double elapsed_s, struct strbuf *out)
{
	double done = p->total - p->left;

	if (p->total <= 0)
		return;
	strbuf_printf(out, ": %.0f %%", floor(100 * done / p->total));
	if (done <= 0 || p->left <= 0 || elapsed_s < PACE_KNOWN_S)
		return;
	strbuf_puts(out, ", about ");
	add_time(out, elapsed_s / done * p->left);
	strbuf_puts(out, " left");
}

void session_tell_left(const struct session_ear *ear, struct session_pace *p, double left,
		       const char *fmt, ...)
{
	AUTO_STRBUF struct strbuf b = {0};
	double now = clock_s();
	va_list ap;

	if (left > p->left)
		*p = (struct session_pace){now, left, left};
	p->left = left;
	va_start(ap, fmt);
	strbuf_vprintf(&b, fmt, ap);
	va_end(ap);
	session_pace_text(p, now - p->begun_s, &b);
	tell(ear, SESSION_RUNS, &b);
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
