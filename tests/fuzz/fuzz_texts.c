/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text that people paste, from its bytes to the machine that its parts state: every kind of part.
 */
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "ingest/part_hosts.h"
#include "ingest/pasted.h"
#include "machine/machine.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct machine_request request = {.parts = MACHINE_ALL};
	AUTO_STRBUF struct strbuf text = {0};
	struct pasted *t = pasted_new("fuzz");
	struct text_hosts hosts;
	struct source *s;
	struct machine *m;

	strbuf_add(&text, (const char *)data, size);
	pasted_add(t, "fuzz", strbuf_str(&text), text.len);
	pasted_hosts(t, &hosts);
	if (hosts.n)
		pasted_choose(t, hosts.items[0].name);
	s = pasted_source(t);
	m = machine_read(s, &request);
	pasted_complete(t, m);
	machine_free(m);
	source_free(s);
	pasted_free(t);
	return 0;
}
