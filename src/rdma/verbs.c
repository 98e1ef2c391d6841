/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/verbs_api.h"

#include "base/array.h"
#include "base/dl.h"

int verbs_load(struct verbs *ret)
{
#define VERBS_ROW(member, symbol, required, result, arguments)                                     \
	{symbol, offsetof(struct verbs, member), required},
	static const struct dl_symbol symbols[] = {VERBS_SYMBOLS(VERBS_ROW)};
#undef VERBS_ROW

	return dl_load(VERBS_LIBRARY, symbols, ARRAY_LEN(symbols), ret);
}
