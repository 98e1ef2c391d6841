/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads NCCL's settings, their origin and which of them take effect, and which libnccl is
 * installed.
 */
#include "machine/nccl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "machine/nccl_topology.h"
#include "machine/read.h"
#include "machine/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	VALUE_MAX = 1023, /* NCCL truncates names and values of conf files to this */
	SETTINGS_MAX = 4096,
};

/* ---- versions ---- */

int64_t nccl_version_of(const char *text)
{
	unsigned major, minor, patch = 0;

	if (sscanf(text, "%4u.%4u.%4u", &major, &minor, &patch) < 2 || major > 99 || minor > 99 ||
	    patch > 99)
		return -1;
	if (major == 2 && minor <= 8)
		return major * 1000L + minor * 100L + patch;
	return major * 10000L + minor * 100L + patch;
}

int64_t nccl_version_of_file(const char *name)
{
	static const char start[] = "libnccl.so.";
	const char *at = strstr(name, start);

	return at ? nccl_version_of(at + strlen(start)) : -1;
}

/* ---- settings ---- */

/* NAME=VALUE lines of an environment, which may have two virtual names; "" or NULL: not set. */
static const char *variable(struct reader *r, struct fact_str text, const char *name)
{
	const char *prefix = arena_printf(r->m->arena, "%s=", name), *value;
	size_t n;

	if (!fact_known(text) || !text_after(text.value, prefix, &value, &n))
		return "";
	return arena_strndup(r->m->arena, value, n);
}

/* A variable in one of NCCL's files is for NCCL, whatever its name. */
static struct setting *push_setting(struct machine *m, const char *line, enum setting_origin origin)
{
	bool other = origin >= SETTING_ENVIRONMENT && library_of_variable(line) != LIBRARY_NCCL;
	size_t n = other ? m->setting_n : m->nccl.setting_n;

	if (n >= SETTINGS_MAX)
		return NULL;
	return other ? ARENA_PUSH(m->arena, m->settings, m->setting_n)
		     : ARENA_PUSH(m->arena, m->nccl.settings, m->nccl.setting_n);
}

static void add_setting(struct reader *r, const char *line, size_t n, enum setting_origin origin,
			const char *from)
{
	const char *equals = memchr(line, '=', n);
	struct setting *s = equals ? push_setting(r->m, line, origin) : NULL;
	size_t name_n, value_n;

	if (!s)
		return;
	name_n = (size_t)(equals - line);
	value_n = n - name_n - 1;
	s->name = arena_strndup(r->m->arena, line, name_n < VALUE_MAX ? name_n : VALUE_MAX);
	s->value =
		arena_strndup(r->m->arena, equals + 1, value_n < VALUE_MAX ? value_n : VALUE_MAX);
	s->origin = origin;
	s->from = from;
}

static void read_environment(struct reader *r, struct fact_str text, enum setting_origin origin,
			     const char *from)
{
	const char *line = NULL;
	size_t n;

	while (fact_known(text) && text_next_line(&line, &n, text.value))
		if (library_of_variable(line) < LIBRARY_N)
			add_setting(r, line, n, origin, from);
}

/*
 * As NCCL reads it (src/misc/param.cc): lines NAME=VALUE, a # only in the first column, and nothing
 * is trimmed, so that a blank before the = makes another name.
 */
static struct fact_str read_conf(struct reader *r, const char *path, enum setting_origin origin)
{
	struct fact_str text = read_text(r, "%s", path + (*path == '/'));
	const char *line = NULL;
	unsigned number = 0;
	size_t n;

	while (fact_known(text) && text_next_line(&line, &n, text.value)) {
		number++;
		if (n && *line != '#')
			add_setting(r, line, n, origin,
				    arena_printf(r->m->arena, "%s:%u", path, number));
	}
	return text;
}

static void read_user_conf(struct reader *r, struct fact_str environment)
{
	const char *path = variable(r, environment, "NCCL_CONF_FILE");
	const char *home = variable(r, environment, "HOME");
	bool named = *path;
	struct fact_str text;

	if (!named && *home == '/')
		path = arena_printf(r->m->arena, "%s/.nccl.conf", strcmp(home, "/") ? home : "");
	if (*path != '/') /* a relative one is relative to wherever the program will be started */
		return;
	text = read_conf(r, path, SETTING_USER_CONF);
	if (!named || !fact_absent(text))
		return;
	r->m->nccl.conf_missing = path;
	read_trouble(r, "NCCL_CONF_FILE",
		     "%s is not there: NCCL reads neither that file nor ~/.nccl.conf", path);
	r->m->troubles[r->m->trouble_n - 1].remedy = "make that file, or unset NCCL_CONF_FILE";
}

/* A text shows only the variables that its author chose. In a recording the list is complete. */
static struct fact_int environment_of(struct reader *r, struct fact_str environment)
{
	if (!source_stated(r->s))
		return fact_int(1, environment.from);
	return fact_int_unknown(fact_known(environment)
					? "the text shows only some of its variables"
					: FACT_WHY(environment));
}

/* With --pid that process's environment counts instead of this one's. */
static void read_settings(struct reader *r)
{
	struct fact_str process = read_text(r, "process-env.txt"), environment;
	struct nccl *nccl = &r->m->nccl;

	if (fact_known(process)) {
		environment = process;
		read_environment(r, process, SETTING_PROCESS,
				 fact_known(nccl->pid)
					 ? arena_printf(r->m->arena, "/proc/%lld/environ",
							(long long)nccl->pid.value)
					 : process.from);
	} else {
		environment = read_text(r, "environment.txt");
		read_environment(r, environment, SETTING_ENVIRONMENT, "environment");
	}
	r->m->environment = environment_of(r, environment);
	read_user_conf(r, environment);
	read_conf(r, "/etc/nccl.conf", SETTING_SYSTEM_CONF);
	settings_judge(nccl->settings, nccl->setting_n);
	settings_judge(r->m->settings, r->m->setting_n);
}

/* ---- the library ---- */

static const char *const library_folders[] = {
	"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/local/lib",
	"usr/local/cuda/lib64",     "usr/local/cuda/lib",
};

/* The link's target shows the version: libnccl.so.2 -> libnccl.so.2.28.9. */
static bool find_library(struct reader *r, const char *folder)
{
	struct nccl *nccl = &r->m->nccl;
	const char *path = arena_printf(r->m->arena, "%s/libnccl.so.2", folder);
	AUTO_FREE char *target = NULL;
	int e = source_read_link(r->s, &target, "%s", path);
	int64_t version;

	if (e != 0 && e != -EINVAL) /* EINVAL: there, but no link */
		return false;
	version = target ? nccl_version_of_file(target) : -1;
	nccl->library = fact_str(arena_printf(r->m->arena, "/%s", path), path);
	nccl->version = version > 0 ? fact_int(version, path)
				    : fact_int_unknown("the library's name contains no version");
	return true;
}

static bool find_library_in_path(struct reader *r, const char *folders)
{
	AUTO_FREE char *list = xstrdup(folders);
	char *rest = list, *folder;

	while ((folder = strsep(&rest, ":")))
		if (*folder == '/' && find_library(r, folder + 1))
			return true;
	return false;
}

static void look_for_library(struct reader *r)
{
	struct fact_str environment = read_text(r, "environment.txt");
	struct nccl *nccl = &r->m->nccl;

	if (find_library_in_path(r, variable(r, environment, "LD_LIBRARY_PATH")))
		return;
	for (size_t i = 0; i < ARRAY_LEN(library_folders); i++)
		if (find_library(r, library_folders[i]))
			return;
	nccl->library =
		fact_str_unknown("no libnccl in the usual folders; frameworks ship their own");
	nccl->version = INT_LIKE(nccl->library);
}

/* "key value" lines: pid, path, version. */
static const char *library_value(struct reader *r, struct fact_str text, const char *key)
{
	const char *value;
	size_t n;

	if (!fact_known(text) || !text_after(text.value, key, &value, &n))
		return "";
	return arena_strndup(r->m->arena, value, n);
}

static void read_library(struct reader *r)
{
	struct fact_str text = read_text(r, "nccl-library.txt");
	const char *path = library_value(r, text, "path ");
	const char *version = library_value(r, text, "version ");
	struct nccl *nccl = &r->m->nccl;
	int64_t number;

	if (text_to_i64(library_value(r, text, "pid "), &number) == 0)
		nccl->pid = fact_int(number, text.from);
	else
		nccl->pid = fact_int_absent("no --pid");
	if (!*path && fact_known(nccl->pid)) {
		nccl->library = fact_str_unknown(
			"the process has no libnccl mapped; it may be linked statically");
		nccl->version = INT_LIKE(nccl->library);
	} else if (!*path) {
		look_for_library(r);
	} else {
		number = nccl_version_of(version);
		nccl->library = fact_str(path, text.from);
		nccl->version = number > 0 ? fact_int(number, text.from)
					   : fact_int_unknown("the library shows no version");
	}
}

void nccl_read(struct reader *r)
{
	read_library(r);
	read_settings(r);
	nccl_topology_read(r);
}
