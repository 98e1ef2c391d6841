/* SPDX-License-Identifier: Apache-2.0 */
/* What a rehearsal would write, as answers to who reads the files then. */
#include "fix/host_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"

#include <errno.h>
#include <string.h>

/* The folder's names, as they would be by now. */
static int names_by_now(struct fix_host *h, const char *folder, char ***ret, size_t *ret_n)
{
	return source_entry_of(h->would, folder, SOURCE_LIST)
		       ? source_list(h->would, ret, ret_n, "%s", folder)
		       : host_list(h, folder, ret, ret_n);
}

static void note_name(struct fix_host *h, const char *path, bool there)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	AUTO_FREE char *folder = xstrndup(path, slash ? (size_t)(slash - path) : 0);
	AUTO_STRBUF struct strbuf left = {0};
	char **names = NULL;
	size_t n = 0;

	if (names_by_now(h, folder, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) != 0 && !strchr(names[i], '\n'))
			strbuf_printf(&left, "%s\n", names[i]);
	if (there)
		strbuf_printf(&left, "%s\n", name);
	source_free_names(names, n);
	source_put_list(h->would, folder, strbuf_str(&left));
}

/* Whether something is there is asked as for a link: of a file that is EINVAL. */
void host_would_write(struct fix_host *h, const char *path, const struct bytes *content)
{
	if (!h->would)
		return;
	if (content->data)
		source_put_file(h->would, path, content->data, content->size);
	else
		source_put_error(h->would, path, SOURCE_FILE, ENOENT);
	source_put_error(h->would, path, SOURCE_LINK, content->data ? EINVAL : ENOENT);
	note_name(h, path, content->data != NULL);
}

void host_would_unlink(struct fix_host *h, const char *path)
{
	host_would_write(h, path, &(struct bytes){0});
}

/* Several registers of one device are in one file. */
void host_would_patch(struct fix_host *h, const char *path, size_t at, const void *bytes, size_t n)
{
	AUTO_FREE char *data = NULL;
	size_t size = 0;
	int r = -ENOENT;

	if (h->would && source_entry_of(h->would, path, SOURCE_FILE))
		r = source_read(h->would, &data, &size, "%s", path);
	else if (h->would)
		r = host_read(h, path, &data, &size);
	if (r < 0 || at + n > size)
		return;
	memcpy(data + at, bytes, n);
	source_put_file(h->would, path, data, size);
}

void host_would_remove_folder(struct fix_host *h, const char *path)
{
	char **names = NULL;
	size_t n = 0;

	if (!h->would || names_by_now(h, path, &names, &n) < 0)
		return;
	source_free_names(names, n);
	if (n)
		return;
	host_would_unlink(h, path);
	source_put_error(h->would, path, SOURCE_LIST, ENOENT);
}
