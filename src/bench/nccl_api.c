/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/nccl_api.h"

#include "base/dl.h"
#include "base/err.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NCCL_SO "libnccl.so.2"

static const struct dl_symbol symbols[] = {
#define NCCL_ROW(member, required, result, parameters)                                             \
	{"nccl" #member, offsetof(struct nccl_api, member), required},
	NCCL_SYMBOLS(NCCL_ROW)
#undef NCCL_ROW
};

/* ---- where it may be ---- */

/* A wheel (nvidia-nccl-cu12 and its like) below a Python prefix. */
#define WHEEL(python) "/" python "/*-packages/nvidia/nccl/lib/" NCCL_SO

/* Patterns below the folder that the variable names; NULL: from the root. The first that is there
 * is taken, so that what the user activated comes first. */
static const struct place {
	const char *variable, *pattern;
} places[] = {
	{"VIRTUAL_ENV", WHEEL("lib/python3*")},
	{"CONDA_PREFIX", WHEEL("lib/python3*")},
	{"CONDA_PREFIX", "/lib/" NCCL_SO},
	{"NCCL_HOME", "/lib/" NCCL_SO},
	{"CUDA_HOME", "/lib64/" NCCL_SO},
	{NULL, "/usr/lib/*-linux-gnu/" NCCL_SO},
	{NULL, "/usr/lib64/" NCCL_SO},
	{NULL, "/usr/local/lib/" NCCL_SO},
	{NULL, "/usr/local/cuda/lib64/" NCCL_SO},
	{"HOME", WHEEL(".local/lib/python3*")},
	{NULL, WHEEL("usr/local/lib/python3*")},
	{NULL, WHEEL("usr/local/lib64/python3*")},
	{NULL, WHEEL("usr/lib/python3*")},
	{NULL, WHEEL("usr/lib64/python3*")},
	{NULL, WHEEL("opt/*/lib/python3*")},
	{NULL, WHEEL("opt/*/.venv/lib/python3*")},
	{NULL, "/opt/*/lib/" NCCL_SO},
};

/* Below its folder, or "" when the variable is not set or names no absolute folder. */
static void place_pattern(const struct place *p, char *buf, size_t size)
{
	const char *folder = p->variable ? getenv(p->variable) : "";

	*buf = '\0';
	if (folder && (!p->variable || *folder == '/'))
		snprintf(buf, size, "%s%s", folder, p->pattern);
}

static bool find_place(const struct place *p, char *buf, size_t size)
{
	char pattern[PATH_MAX];
	glob_t found;
	bool there;

	place_pattern(p, pattern, sizeof(pattern));
	if (!*pattern || glob(pattern, 0, NULL, &found) != 0)
		return false;
	there = found.gl_pathc > 0 &&
		(size_t)snprintf(buf, size, "%s", found.gl_pathv[found.gl_pathc - 1]) < size;
	globfree(&found);
	return there;
}

/* ---- loading ---- */

static int load_from(const char *soname, struct nccl_api *api)
{
	return dl_load(soname, symbols, sizeof(symbols) / sizeof(symbols[0]), api);
}

/* A name without a slash would be looked for where the loader looks. */
static int load_file(const char *path, struct nccl_api *api)
{
	char *real = realpath(path, NULL);
	int r = real ? load_from(real, api) : err_sys(errno, "%s", path);

	free(real);
	return r;
}

static int load_any(struct nccl_api *api)
{
	char path[PATH_MAX];
	int r = load_from(NCCL_SO, api);

	for (size_t i = 0; r == -ENOENT && i < sizeof(places) / sizeof(places[0]); i++)
		if (find_place(&places[i], path, sizeof(path)))
			r = load_from(path, api);
	if (r == -ENOENT)
		return err_set(
			ENOENT,
			"no " NCCL_SO
			" by the loader, in the usual folders or in a Python wheel (pip install "
			"nvidia-nccl-cu12 brings one; --nccl PATH names one)");
	return r;
}

/* Which file the functions came from. */
static void note_path(struct nccl_api *api)
{
	void *function;
	char *real;
	Dl_info info;

	memcpy(&function, &api->GetVersion, sizeof(function));
	if (!dladdr(function, &info) || !info.dli_fname)
		return;
	real = realpath(info.dli_fname, NULL);
	snprintf(api->path, sizeof(api->path), "%s", real ? real : info.dli_fname);
	free(real);
}

int nccl_load(const char *path, struct nccl_api *ret)
{
	struct nccl_api api = {0};
	int r = path ? load_file(path, &api) : load_any(&api);

	if (r < 0)
		return r;
	note_path(&api);
	r = api.GetVersion(&api.version);
	if (r != NCCL_SUCCESS)
		return err_set(EIO, "ncclGetVersion of %s: %s", api.path, api.GetErrorString(r));
	*ret = api;
	return 0;
}

static int too_old(const struct nccl_api *api, const char *lacks, const char *since)
{
	char version[32];

	nccl_version_text(api->version, version, sizeof(version));
	return err_set(ENOTSUP, "NCCL %s (%s) has no %s; NCCL %s and later have", version,
		       api->path, lacks, since);
}

int nccl_has_windows(const struct nccl_api *api)
{
	if (api->MemAlloc && api->MemFree && api->CommWindowRegister && api->CommWindowDeregister)
		return 0;
	return too_old(api, "symmetric windows", "2.27");
}

int nccl_has_float8(const struct nccl_api *api)
{
	return api->version >= 22400 ? 0 : too_old(api, "8-bit floats", "2.24");
}

/* Up to 2.8 the minor version counted hundreds and the major thousands. */
void nccl_version_text(int version, char *buf, size_t size)
{
	int major = version < 10000 ? version / 1000 : version / 10000;
	int minor = version < 10000 ? version % 1000 / 100 : version % 10000 / 100;

	snprintf(buf, size, "%d.%d.%d", major, minor, version % 100);
}
