/* SPDX-License-Identifier: Apache-2.0 */
#include "pasted_machine.h"

#include "base/source.h"
#include "ingest/pasted.h"

#include <string.h>

struct machine *machine_of_texts(const char *const *texts, size_t n)
{
	static const struct machine_request request = {.parts = MACHINE_ALL};
	struct pasted *t = pasted_new("paste");
	struct machine *m;
	struct source *s;

	for (size_t i = 0; i < n; i++) {
		const char name[] = {(char)('a' + i), '\0'};

		pasted_add(t, name, texts[i], strlen(texts[i]));
	}
	s = pasted_source(t);
	m = machine_read(s, &request);
	pasted_complete(t, m);
	source_free(s);
	pasted_free(t);
	return m;
}

bool has_trouble(const struct machine *m, const char *words)
{
	for (size_t i = 0; i < m->trouble_n; i++)
		if (strstr(m->troubles[i].what, words))
			return true;
	return false;
}
