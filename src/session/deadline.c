/* SPDX-License-Identifier: Apache-2.0 */
#include "session/deadline.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/waits.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <time.h>

static void *keep(void *p)
{
	struct deadline *d = p;
	struct timespec left = {.tv_sec = d->seconds};
	AUTO_STRBUF struct strbuf text = {0};
	char file[PATH_MAX];

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
	strbuf_printf(&text, "not done after %d s: ", d->seconds);
	if (waits_for_file(file, sizeof(file)))
		strbuf_printf(&text, "waiting for %s", file);
	else
		strbuf_puts(&text, atomic_load(&d->doing));
	d->late(d->context, strbuf_str(&text));
	return NULL;
}

int deadline_start(struct deadline *d)
{
	pthread_attr_t detached;
	pthread_t thread;
	int e;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	e = pthread_create(&thread, &detached, keep, d);
	pthread_attr_destroy(&detached);
	return e ? err_sys(e, "cannot start a thread") : 0;
}
