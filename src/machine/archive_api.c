/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/archive_api.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/dl.h"
#include "base/err.h"

#include <errno.h>
#include <stddef.h>

#define LIBRARY "libarchive.so.13"

int archive_api_load(struct archive_api *ret)
{
#define ARCHIVE_ROW(member, symbol) {#symbol, offsetof(struct archive_api, member), true},
	static const struct dl_symbol symbols[] = {ARCHIVE_SYMBOLS(ARCHIVE_ROW)};
	AUTO_FREE char *why = NULL;
	int r = dl_load(LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]), ret);

	if (r != -ENOENT)
		return r;
	why = xstrdup(err_msg());
	return err_set(ENOENT, "archives need libarchive, which cannot be loaded: %s", why);
}
