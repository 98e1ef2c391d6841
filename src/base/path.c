/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include "base/alloc.h"
#include "base/text.h"

#include <string.h>

static bool is_dots(const char *component, size_t n, const char *dots)
{
	return n == strlen(dots) && memcmp(component, dots, n) == 0;
}

/* The end of what is left of start..end without its last component. */
static char *drop_component(char *start, char *end)
{
	while (end > start && *--end != '/')
		;
	return end;
}

/* Appends to what begins at `start`; returns the new end. */
static char *add_component(char *start, char *end, const char *component, size_t n)
{
	if (is_dots(component, n, ".."))
		return drop_component(start, end);
	if (n == 0 || is_dots(component, n, "."))
		return end;
	if (end > start)
		*end++ = '/';
	memcpy(end, component, n);
	return end + n;
}

void path_clean(const char *path, char *ret)
{
	char *start = ret + strlen("./"), *end = start;
	bool flat = !strchr(path, '/');

	while (*path) {
		size_t n = strcspn(path, "/");

		end = add_component(start, end, path, n);
		path += n + (path[n] == '/');
	}
	*end = '\0';
	if (end > start && (flat || strchr(start, '/'))) {
		memmove(ret, start, (size_t)(end - start) + 1);
		return;
	}
	ret[0] = '.';
	ret[1] = end > start ? '/' : '\0';
}

bool path_is_clean(const char *path)
{
	const char *rest = text_starts_with(path, "./") ? path + 2 : path;

	if (strcmp(path, ".") == 0)
		return true;
	if (rest != path && strchr(rest, '/'))
		return false;
	for (;;) {
		size_t n = strcspn(rest, "/");

		if (n == 0 || is_dots(rest, n, ".") || is_dots(rest, n, ".."))
			return false;
		if (!rest[n])
			return true;
		rest += n + 1;
	}
}

char *path_below(const char *root, const char *path)
{
	return xprintf("%s/%s", strcmp(root, "/") == 0 ? "" : root, path);
}
