/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of hosts: any JSON as six of them and as a merged result, compared, printed, written and
 * read again.
 */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "fleet/fleet.h"
#include "report/document.h"
#include "report/report_fleet.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_fleet(const struct fleet *f)
{
	static const struct text_format plain = {0};
	AUTO_STRBUF struct strbuf text = {0};
	struct document *d = document_new();

	report_fleet(d, f, true);
	document_write_text(d, &plain, &text);
	document_free(d);
}

static void read_again(const struct fleet *f)
{
	json_t *json = report_fleet_json(f);
	struct fleet *again = fleet_new();

	if (fleet_add_fleet(again, json) == 0)
		fleet_compare(again);
	fleet_free(again);
	json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"a1", "a2", "a03", "b", "c[", "7"};
	json_t *json = json_loadb((const char *)data, size, 0, NULL);
	struct fleet *f;

	if (!json)
		return 0;
	f = fleet_new();
	(void)!fleet_add_fleet(f, json);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)!fleet_add_check(f, names[i], json);
	fleet_compare(f);
	print_fleet(f);
	read_again(f);
	fleet_free(f);
	json_decref(json);
	return 0;
}
