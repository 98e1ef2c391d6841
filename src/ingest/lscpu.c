/* SPDX-License-Identifier: Apache-2.0 */
/* lscpu, by itself or within collect_env: the CPU's model, its sockets, and the hypervisor. */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/array.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

#define PLURAL                                                                                     \
	"("                                                                                        \
	"s)" /* as lscpu writes it */

/* util-linux sys-utils/lscpu.c, 2.23 to 2.41. Newer ones indent by what belongs to what. */
static const struct key {
	const char *name;
	const char *answer; /* of claims.h; NULL: it is only known to be a line of lscpu */
	bool own;           /* only lscpu prints it */
} keys[] = {
	{"Architecture", NULL, false},
	{"CPU op-mode" PLURAL, NULL, true},
	{"Address sizes", NULL, false},
	{"Byte Order", NULL, false},
	{"CPU" PLURAL, NULL, true},
	{"On-line CPU" PLURAL " list", NULL, true},
	{"Off-line CPU" PLURAL " list", NULL, true},
	{"Vendor ID", "vendor_id", false},
	{"BIOS Vendor ID", NULL, false},
	{"Model name", "model name", false},
	{"BIOS Model name", NULL, false},
	{"BIOS CPU family", NULL, false},
	{"CPU family", "cpu family", false},
	{"Model", "model", false},
	{"Thread" PLURAL " per core", NULL, true},
	{"Core" PLURAL " per socket", NULL, true},
	{"Core" PLURAL " per cluster", NULL, true},
	{"Socket" PLURAL, "sockets", true},
	{"Cluster" PLURAL, NULL, true},
	{"Stepping", NULL, false},
	{"Frequency boost", NULL, false},
	{"CPU" PLURAL " scaling MHz", NULL, true},
	{"CPU MHz", NULL, false},
	{"CPU max MHz", NULL, false},
	{"CPU min MHz", NULL, false},
	{"BogoMIPS", NULL, false},
	{"Flags", "flags", false},
	{"Virtualization", NULL, false},
	{"Virtualization type", NULL, false},
	{"Hypervisor vendor", "hypervisor", true},
	{"Hypervisor", NULL, false},
	{"L1d cache", NULL, false},
	{"L1i cache", NULL, false},
	{"L2 cache", NULL, false},
	{"L3 cache", NULL, false},
	{"NUMA node" PLURAL, NULL, true},
};

static const struct key *key_of(const struct text_line *l, const char **ret)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if ((*ret = line_value(l, keys[i].name)))
			return &keys[i];
	return NULL;
}

/*
 * Headings of newer releases: "Virtualization features:", and lines below them that are not read.
 */
static bool is_other(const struct text_line *l)
{
	static const char *const starts[] = {"Virtualization features:",
					     "Caches (sum of all):",
					     "NUMA:",
					     "NUMA node",
					     "Vulnerabilit",
					     "L1d:",
					     "L1i:",
					     "L2:",
					     "L3:"};

	return text_starts_with_any(line_text(l), starts, ARRAY_LEN(starts));
}

/* Two lines, of which one is lscpu's alone; below its command one line is enough. */
size_t lscpu_match(struct part *p, const struct text_line *lines, size_t n)
{
	bool own = strstr(p->command, "lscpu");
	size_t end = 0, known = own;
	const char *value;

	for (size_t i = 0; i < n; i++) {
		const struct key *k = key_of(&lines[i], &value);

		if (!k && (!i || !is_other(&lines[i])))
			break;
		own |= k && k->own;
		known += k != NULL;
		end = i + 1;
	}
	return own && known > 1 ? end : 0;
}

/*
 * More lines follow in every output: one that ends here was wrapped or cut, and a flag that it
 * lacks may be set.
 */
static bool is_cut(const struct part *p, size_t i, const struct key *k)
{
	return strcmp(k->name, "Flags") == 0 && i + 1 == p->n;
}

void lscpu_decode(const struct part *p, struct claims *c)
{
	const char *value;

	for (size_t i = 0; i < p->n; i++) {
		const struct key *k = key_of(&p->lines[i], &value);

		if (k && k->answer && *value && strcmp(value, "-") != 0 && !is_cut(p, i, k))
			claim(c, CLAIM_AT(p, &p->lines[i]), value, "cpu/%s", k->answer);
	}
}
