/* SPDX-License-Identifier: Apache-2.0 */
#include "pasted_machine.h"

#include "base/source.h"
#include "ingest/pasted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct machine *machine_of(struct pasted *t)
{
	static const struct machine_request request = {.parts = MACHINE_ALL};
	struct source *s = pasted_source(t);
	struct machine *m = machine_read(s, &request);

	pasted_complete(t, m);
	source_free(s);
	pasted_free(t);
	return m;
}

struct machine *machine_of_texts(const char *const *texts, size_t n)
{
	struct pasted *t = pasted_new("paste");

	for (size_t i = 0; i < n; i++) {
		const char name[] = {(char)('a' + i), '\0'};

		pasted_add(t, name, texts[i], strlen(texts[i]));
	}
	return machine_of(t);
}

struct machine *machine_of_host(const char *text, size_t n, const char *host)
{
	struct pasted *t = pasted_new("paste");

	pasted_add(t, "a", text, n);
	assert_int_equal(pasted_choose(t, host), 0);
	return machine_of(t);
}

bool has_trouble(const struct machine *m, const char *words)
{
	for (size_t i = 0; i < m->trouble_n; i++)
		if (strstr(m->troubles[i].what, words))
			return true;
	return false;
}
