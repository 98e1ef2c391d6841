// SPDX-License-Identifier: Apache-2.0
#include "nccl/real.h"

#include "nccl/functions.h"
#include "nccl/say.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * No lock is held while the loader runs, because what it loads may call NCCL. Threads that look at
 * the same time find the same library.
 */
static _Atomic(void *) library;
static atomic_bool told[NCCL_FUNCTION_N];

_Atomic(void *) real_pointers[NCCL_FUNCTION_N];

/* By which a copy of this library knows another one. */
REAL_EXPORT extern const char onehop_nccl_shim[];
const char onehop_nccl_shim[] = ONEHOP_VERSION;

static bool is_real(void *handle)
{
	return handle && dlsym(handle, "ncclGetVersion") && !dlsym(handle, "onehop_nccl_shim");
}

/* Opened by its path, so that it stays while its functions are used, whoever closes it. */
static void *open_loaded(const char *path)
{
	void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);

	if (is_real(handle))
		return handle;
	if (handle)
		dlclose(handle);
	return NULL;
}

/* Behind this library in the order of the loader: where the program links NCCL. */
static void *next_one(void)
{
	void *function = dlsym(RTLD_NEXT, "ncclGetVersion");
	Dl_info where;

	return function && dladdr(function, &where) && where.dli_fname
		       ? open_loaded(where.dli_fname)
		       : NULL;
}

struct loaded {
	char **paths;
	size_t n, room;
};

static int note_path(struct dl_phdr_info *info, size_t size, void *context)
{
	struct loaded *l = context;
	const size_t more = l->room ? 2 * l->room : 64;
	char **bigger = l->n < l->room ? l->paths : realloc(l->paths, more * sizeof(*bigger));
	char *path = bigger && *info->dlpi_name ? strdup(info->dlpi_name) : NULL;

	(void)size;
	if (!bigger)
		return 0;
	l->room = l->n < l->room ? l->room : more;
	l->paths = bigger;
	if (path)
		l->paths[l->n++] = path;
	return 0;
}

static bool is_named_nccl(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strncmp(slash ? slash + 1 : path, "libnccl.so", 10) == 0;
}

/* Not only one that it needs. */
static bool contains_nccl(void *handle, const char *path)
{
	void *function = dlsym(handle, "ncclGetVersion");
	Dl_info where;

	return function && dladdr(function, &where) && where.dli_fname &&
	       strcmp(where.dli_fname, path) == 0;
}

/*
 * Python loads NCCL where only those that need it see it. A library may also contain it: it asks
 * for functions that it exports by name, so that its calls come here.
 */
static void *loaded_one(void)
{
	struct loaded l = {0};
	void *found = NULL;

	dl_iterate_phdr(note_path, &l);
	for (size_t i = 0; i < l.n && !found; i++)
		if (is_named_nccl(l.paths[i]))
			found = open_loaded(l.paths[i]);
	for (size_t i = 0; i < l.n && !found; i++) {
		found = open_loaded(l.paths[i]);
		if (found && !contains_nccl(found, l.paths[i])) {
			dlclose(found);
			found = NULL;
		}
	}
	for (size_t i = 0; i < l.n; i++)
		free(l.paths[i]);
	free(l.paths);
	return found;
}

static const char not_loaded[] = "libnccl.so.2 is not loaded. Set ONEHOP_NCCL_LIBRARY to its path";
static _Atomic(const char *) why = not_loaded;

static void *named_one(void)
{
	const char *path = getenv("ONEHOP_NCCL_LIBRARY");
	static atomic_bool said;
	void *handle;

	if (!path || !*path)
		return NULL;
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (is_real(handle))
		return handle;
	if (!atomic_exchange(&said, true))
		say(SAY_WARN, "ONEHOP_NCCL_LIBRARY=%s: %s", path,
		    handle ? "not NCCL" : "cannot be loaded");
	atomic_store(&why, handle ? "the file of ONEHOP_NCCL_LIBRARY is not NCCL"
				  : "the file of ONEHOP_NCCL_LIBRARY cannot be loaded");
	if (handle)
		dlclose(handle);
	return NULL;
}

static void *find_library(void)
{
	void *found = atomic_load(&library), *none = NULL;

	if (found)
		return found;
	found = next_one();
	if (!found)
		found = loaded_one();
	if (!found)
		found = named_one();
	if (found && !atomic_compare_exchange_strong(&library, &none, found)) {
		dlclose(found);
		found = none;
	}
	return found;
}

void *real_find(unsigned function)
{
	void *handle = find_library(), *p;

	if (!handle)
		return NULL;
	p = dlsym(handle, real_rows[function].name);
	if (!p)
		p = dlsym(handle, real_rows[function].name + 1); /* built without profiling */
	atomic_store_explicit(&real_pointers[function], p, memory_order_release);
	return p;
}

static int real_version(void)
{
	GetVersion_function *f = real_GetVersion();
	int version = 0;

	return f && f(&version) == NCCL_SUCCESS ? version : 0;
}

const char *real_reason(void)
{
	return atomic_load(&library) ? "the NCCL in use lacks this function" : atomic_load(&why);
}

void real_missing(unsigned function)
{
	const struct real_row *row = &real_rows[function];
	int has;

	if (atomic_exchange(&told[function], true))
		return;
	if (!atomic_load(&library)) {
		say(SAY_WARN, "%s: %s", row->name + 1, real_reason());
		return;
	}
	has = real_version();
	say(SAY_WARN, "%s: NCCL %d.%d.%d, which is loaded, does not have it; NCCL %d.%d.%d does",
	    row->name + 1, has / 10000, has / 100 % 100, has % 100, row->version / 10000,
	    row->version / 100 % 100, row->version % 100);
}
