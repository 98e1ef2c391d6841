/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Register values that texts state without the bytes: lspci's decoded lines. Each is a file of its
 * own, sys/bus/pci/devices/ADDRESS/stated/NAME, so that what was not printed stays unknown.
 */
#include "machine/pci_impl.h"

#include "base/alloc.h"
#include "base/array.h"

#include <string.h>

#define STATED "sys/bus/pci/devices/%s/stated/%s"

static const struct {
	const char *name;
	size_t offset; /* in struct pci_function */
} registers[] = {
#define REGISTER(name)                                                                             \
	{                                                                                          \
#name, offsetof(struct pci_function, name)                                         \
	}
	REGISTER(port_type),         REGISTER(link_speed_cap), REGISTER(link_width_cap),
	REGISTER(link_speed_target), REGISTER(acs_cap),        REGISTER(acs_ctl),
	REGISTER(acs_offset),        REGISTER(rebar_sizes),    REGISTER(rebar_bar),
	REGISTER(ats_enabled),       REGISTER(payload),        REGISTER(payload_max),
	REGISTER(relaxed_ordering),  REGISTER(secondary_bus),  REGISTER(subordinate_bus),
#undef REGISTER
};

void pci_read_stated(struct reader *r, struct pci_function *f)
{
	if (!source_stated(r->s))
		return;
	for (size_t i = 0; i < ARRAY_LEN(registers); i++) {
		struct fact_int *fact = (struct fact_int *)((char *)f + registers[i].offset);
		struct fact_int stated = read_int(r, STATED, f->name, registers[i].name);

		if (!fact_known(*fact) &&
		    !(fact_unknown(stated) && !fact_why_says_more(stated.from, fact->from)))
			*fact = stated;
	}
	f->listed_as_gpu = fact_is(read_int(r, STATED, f->name, "gpu"), 1);
}

bool pci_stated_parent(struct reader *r, struct pci_function *f, struct pci_address *ret)
{
	struct fact_str parent, root;
	const char *gap;

	if (!source_stated(r->s))
		return false;
	parent = read_str(r, STATED, f->name, "parent");
	root = read_str(r, STATED, f->name, "root");
	if (fact_known(root))
		f->root = root.value;
	f->parent_unknown = fact_unknown(parent) ? parent.from : NULL;
	gap = f->parent_unknown ? read_gap(r, "stated/pci-tree") : NULL;
	if (gap && !fact_why_cut(f->parent_unknown))
		f->parent_unknown = gap;
	return fact_known(parent) && pci_address_parse(parent.value, ret) == 0;
}

/*
 * A text may list a GPU and none of the bridges above it. A function without a bridge above it is
 * on a root bus only if something shows that.
 */
bool pci_stated_on_root_bus(const struct machine *m, const struct pci_function *f)
{
	enum { HOST_BRIDGE = 0x0600 };

	if (f->address.domain == PCI_NO_ADDRESS)
		return false;
	if (f->address.bus == 0 || fact_is(f->port_type, PCI_PORT_ROOT))
		return true;
	for (size_t i = 0; i < m->pci_n; i++) {
		const struct pci_function *x = &m->pci[i];

		if (x->address.domain == f->address.domain && x->address.bus == f->address.bus &&
		    ((fact_known(x->class_code) && x->class_code.value >> 8 == HOST_BRIDGE) ||
		     fact_is(x->port_type, PCI_PORT_ROOT)))
			return true;
	}
	return false;
}

/* A placeholder address is of no use to a reader. */
void pci_name_without_address(struct machine *m)
{
	for (size_t i = 0; i < m->pci_n; i++)
		if (m->pci[i].address.domain == PCI_NO_ADDRESS)
			m->pci[i].name = arena_printf(m->arena,
						      m->pci[i].address.device ? "no-address-nic-%u"
									       : "no-address-%u",
						      m->pci[i].address.bus);
}
