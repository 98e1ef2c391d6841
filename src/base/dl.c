/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dl.h"

#include "base/err.h"

#include <errno.h>
#include <string.h>

#ifdef ONEHOP_READER
/* A static program would need the very C library that it was built with. */
int dl_load(const char *soname, const struct dl_symbol *symbols, size_t n, void *base)
{
	(void)symbols;
	(void)n;
	(void)base;
	return err_set(ENOENT, "%s: this build of onehop, the reader, opens no libraries", soname);
}
#else

#include <dlfcn.h>

int dl_load(const char *soname, const struct dl_symbol *symbols, size_t n, void *base)
{
	void *lib = dlopen(soname, RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return err_set(ENOENT, "%s", dlerror());
	for (size_t i = 0; i < n; i++) {
		void *p = dlsym(lib, symbols[i].name);

		if (!p && symbols[i].required)
			return err_set(ENOSYS, "%s has no symbol %s", soname, symbols[i].name);
		memcpy((char *)base + symbols[i].offset, &p, sizeof(p));
	}
	return 0;
}
#endif
