/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/archive_api.h"

#include "base/dl.h"

#include <stddef.h>

#define LIBRARY "libarchive.so.13"

int archive_api_load(struct archive_api *ret)
{
#define ARCHIVE_ROW(member, symbol) {#symbol, offsetof(struct archive_api, member), true},
	static const struct dl_symbol symbols[] = {ARCHIVE_SYMBOLS(ARCHIVE_ROW)};

	return dl_load(LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]), ret);
}
