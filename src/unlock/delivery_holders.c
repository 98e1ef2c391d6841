/* SPDX-License-Identifier: Apache-2.0 */
/* Who has a device file of the driver open, and so keeps its modules from being unloaded. */
#include "unlock/delivery_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- one process ---- */

/* 1: it has one open, 0: not, -1: it cannot be looked at. */
static int holds_device(const struct delivery_facts *l, const char *pid)
{
	char **names = NULL;
	size_t n = 0;
	int r = source_list(l->s, &names, &n, "proc/%s/fd", pid), found = 0;

	if (r == -ENOENT)
		return 0; /* it has ended */
	if (r < 0)
		return -1;
	for (size_t i = 0; i < n && !found; i++) {
		AUTO_FREE char *target = NULL;

		if (source_read_link(l->s, &target, "proc/%s/fd/%s", pid, names[i]) == 0)
			found = text_starts_with(target, "/dev/nvidia");
	}
	source_free_names(names, n);
	return found;
}

/* Units end up in commands. */
static bool is_unit(const char *name)
{
	static const char ok[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@-";

	return text_ends_with(name, ".service") && *name != '-' && *name != '.' &&
	       !name[strspn(name, ok)];
}

/*
 * The innermost service of its control group. None of a user's own manager: "systemctl stop" does not
 * reach those.
 */
static const char *unit_of(const struct delivery_facts *l, const char *pid)
{
	AUTO_FREE char *text = delivery_text(l, delivery_format(l, "proc/%s/cgroup", pid), NULL);
	const char *unit = NULL;
	char *rest = text, *line;

	while (rest && (line = strsep(&rest, "\n"))) {
		if (strstr(line, "/user@"))
			return NULL;
		for (char *part; (part = strsep(&line, "/"));)
			if (is_unit(part))
				unit = arena_strdup(l->a, part);
	}
	return unit;
}

static void add_holder(struct delivery_facts *l, const char *pid)
{
	AUTO_FREE char *comm = delivery_text(l, delivery_format(l, "proc/%s/comm", pid), NULL);
	struct gpu_holder *h = ARENA_PUSH(l->a, l->d->holders, l->d->holder_n);

	h->pid = (int)strtol(pid, NULL, 10);
	h->name = comm && *comm ? delivery_printable(l, text_trim(comm)) : "a process";
	h->unit = unit_of(l, pid);
}

/* ---- all of them ---- */

static bool is_pid(const char *name)
{
	return *name >= '1' && *name <= '9' && strlen(name) < 10 &&
	       !name[strspn(name, "0123456789")];
}

/* This process may have them open to read the driver. */
static char *own_pid(const struct delivery_facts *l)
{
	char *pid = NULL;

	return source_read_link(l->s, &pid, "proc/self") == 0 ? pid : NULL;
}

void delivery_find_holders(struct delivery_facts *l)
{
	AUTO_FREE char *own = own_pid(l);
	char **names = NULL;
	size_t n = 0;

	if (source_list(l->s, &names, &n, "proc") < 0)
		return;
	l->d->holders_known = true;
	for (size_t i = 0; i < n; i++) {
		int holds;

		if (!is_pid(names[i]) || (own && strcmp(own, names[i]) == 0))
			continue;
		holds = holds_device(l, names[i]);
		l->d->holders_known &= holds >= 0;
		if (holds > 0)
			add_holder(l, names[i]);
	}
	source_free_names(names, n);
}
