/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/card.h"

#include <string.h>

/*
 * Device ids by chip, as pci.ids lists them. From Ampere on each graphics chip has a block of 0x80
 * ids of which the first 0x30 are consumer cards.
 */
/* clang-format off */
static const struct chip {
	uint16_t first, last;
	uint8_t compute_capability;
	bool graphics; /* the chip is sold as GeForce too */
} chips[] = {
	{0x1d80, 0x1dff,  70, false}, /* GV100 */
	{0x1e00, 0x1fff,  75, false}, /* TU10x: ids of GeForce and others are mixed */
	{0x2080, 0x20ff,  80, false}, /* GA100 */
	{0x2180, 0x21ff,  75, false}, /* TU116, TU117 */
	{0x2200, 0x227f,  86, true},  /* GA102 */
	{0x2300, 0x237f,  90, false}, /* GH100 */
	{0x2400, 0x25ff,  86, true},  /* GA103 to GA107 */
	{0x2680, 0x28ff,  89, true},  /* AD10x */
	{0x2900, 0x29ff, 100, false}, /* GB100, GB102 */
	{0x2b80, 0x2fff, 120, true},  /* GB20x */
	{0x3180, 0x31ff, 103, false}, /* GB110 */
};
/* clang-format on */

static const struct chip *find_chip(const struct gpu *g)
{
	int64_t id = fact_or(g->pci->device, -1);

	for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++)
		if (id >= chips[i].first && id <= chips[i].last)
			return &chips[i];
	return NULL;
}

struct fact_int card_compute_capability(const struct gpu *g)
{
	const struct chip *c = find_chip(g);

	if (fact_known(g->compute_capability))
		return g->compute_capability;
	return c ? fact_int(c->compute_capability, "PCI device id")
		 : fact_int_unknown("a PCI device id that is not in the list of chips");
}

struct fact_int card_is_geforce(const struct gpu *g)
{
	const struct chip *c = find_chip(g);

	if (fact_known(g->model))
		return fact_int(strstr(g->model.value, "GeForce") != NULL, g->model.from);
	if (!c)
		return fact_int_unknown("a PCI device id that is not in the list of chips");
	return fact_int(c->graphics && (fact_or(g->pci->device, 0) & 0x7f) < 0x30, "PCI device id");
}

struct fact_int card_needs_bar1(const struct gpu *g)
{
	struct fact_int geforce = card_is_geforce(g), cc = card_compute_capability(g);

	if (!fact_is(geforce, 1))
		return geforce;
	if (!fact_known(cc))
		return cc;
	return fact_int(cc.value == 86 || cc.value == 89 || cc.value == 120, geforce.from);
}

struct fact_int card_has_console(const struct gpu *g)
{
	return fact_is(g->display_active, 1) ? g->display_active : g->pci->boot_vga;
}
