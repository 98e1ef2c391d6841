/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/efi_variable.h"

#include "base/alloc.h"
#include "base/strbuf.h"

char *efi_lines(const char *file, size_t size)
{
	struct strbuf lines = {0};

	for (size_t i = EFI_ATTRIBUTES; i + 1 < size; i += 2) {
		const char low = file[i], high = file[i + 1];

		if (low || high)
			strbuf_putc(&lines, high || (low & 0x80) || low == '\n' ? '?' : low);
		else
			strbuf_putc(&lines, '\n');
	}
	return lines.text ? lines.text : xstrdup("");
}
