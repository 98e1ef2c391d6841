/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *state_folder(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	/* The XDG base directory specification: relative ones are to be ignored. */
	if (state && *state == '/')
		return xprintf("%s/onehop", state);
	return home && *home == '/' ? xprintf("%s/.local/state/onehop", home) : NULL;
}

int state_folder_make(char **ret)
{
	AUTO_FREE char *path = state_folder();

	if (!path)
		return err_set(ENOENT,
			       "no place for results: neither XDG_STATE_HOME nor HOME is an "
			       "absolute path");
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return err_sys(errno, "make %s", path);
		*slash = '/';
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(errno, "make %s", path);
	*ret = TAKE_PTR(path);
	return 0;
}
