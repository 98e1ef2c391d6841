/* SPDX-License-Identifier: Apache-2.0 */
/* From a diagnosis to the plan of `onehop fix`. */
#include "session/planning.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "fix/make_plan.h"
#include "ingest/ingest.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The files that the plan is about: of an image, of the recording, or of the running system. */
static int open_source(const struct planning *how, struct source **ret)
{
	if (how->source) {
		*ret = how->source;
		return 0;
	}
	if (how->from->from.n && !how->root)
		return ingest_open_all(how->from->from.items, how->from->from.n, how->from->host,
				       ret);
	return source_open_root(how->root ? how->root : "/", NULL, NULL, ret);
}

/* ---- the program ---- */

bool is_roots_alone(const char *path)
{
	AUTO_FREE char *at = xstrdup(path);
	struct stat st;

	for (;;) {
		char *slash = strrchr(at, '/');

		if (lstat(*at ? at : "/", &st) < 0 || S_ISLNK(st.st_mode) || st.st_uid != 0 ||
		    st.st_mode & (S_IWGRP | S_IWOTH))
			return false;
		if (!*at)
			return true;
		if (!slash)
			return false;
		*slash = '\0';
	}
}

/* A unit runs this very program as root. NULL: it must not. A recording has the program where packages
 * put it. */
static const char *own_program(const struct planning *how, char path[static PATH_MAX])
{
	ssize_t n;

	if (how->root)
		return NULL;
	if (how->from->from.n)
		return "/usr/bin/onehop";
	n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	if (n <= 0)
		return NULL;
	path[n] = '\0';
	return is_roots_alone(path) ? path : NULL;
}

/* What the system that boots next has in its files; NULL: nothing depends on it. */
static struct machine *read_guests(const struct planning *how, struct source *s)
{
	const struct machine_request request = {.parts = MACHINE_GUESTS |
							 (how->root ? MACHINE_HOST : 0u)};

	return how->propose.iommu_off ? machine_read(s, &request) : NULL;
}

int planned_make(const struct planning *how, const struct diagnosis *d, struct planned *ret)
{
	char program[PATH_MAX];
	struct plan_request request = {.machine = d->topology->machine,
				       .image = how->root != NULL,
				       .trial = how->trial,
				       .lifetime = how->lifetime};
	struct propose_options propose = how->propose;
	struct planned p = {.changes.arena = arena_new()};
	struct machine *guests;
	int r = open_source(how, &request.source);

	p.made.arena = p.changes.arena;
	if (r < 0) {
		planned_done(&p);
		return r;
	}
	propose.files = guests = read_guests(how, request.source);
	diagnosis_propose(d, &propose, &p.changes);
	machine_free(guests);
	for (size_t i = 0; i < p.changes.n; i++)
		if (!p.changes.items[i].opt_in)
			change_add(&p.made, &p.changes.items[i]);
	request.program = own_program(how, program);
	p.plan = plan_make(&request, &p.made);
	if (request.source != how->source)
		source_free(request.source);
	*ret = p;
	return 0;
}

void planned_done(struct planned *p)
{
	plan_free(p->plan);
	arena_free(p->changes.arena);
	*p = (struct planned){0};
}
