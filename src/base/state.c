/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The first that is an absolute path. The XDG base directory specification: relative ones are to be ignored. */
static const struct place {
	const char *variable, *below;
} places[] = {{"XDG_STATE_HOME", "/onehop"}, {"HOME", "/.local/state/onehop"}};

static const struct place *find_place(void)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		const char *value = getenv(places[i].variable);

		if (value && *value == '/')
			return &places[i];
	}
	return NULL;
}

char *state_folder(void)
{
	const struct place *p = find_place();

	return p ? xprintf("%s%s", getenv(p->variable), p->below) : NULL;
}

const char *state_variable(void)
{
	const struct place *p = find_place();

	return p ? p->variable : NULL;
}

int state_missing(void)
{
	return err_set(ENOENT, "no place for results: neither XDG_STATE_HOME nor HOME is an "
			       "absolute path");
}

int state_refuse(int err, const char *verb, const char *path)
{
	return err_set(err, "cannot %s %s (the folder comes from %s): %s", verb, path,
		       state_variable(), strerror(err));
}

int state_folder_make(char **ret)
{
	AUTO_FREE char *path = state_folder();

	if (!path)
		return state_missing();
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return state_refuse(errno, "make", path);
		*slash = '/';
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return state_refuse(errno, "make", path);
	*ret = TAKE_PTR(path);
	return 0;
}
