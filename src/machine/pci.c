/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/pci.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/config_space.h"
#include "machine/pci_impl.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES "sys/bus/pci/devices"

enum { VENDOR_NVIDIA = 0x10de };

/* Flags of a line of sysfs's resource file (include/linux/ioport.h). */
enum {
	RESOURCE_IO = 0x100,
	RESOURCE_PREFETCH = 0x2000,
	RESOURCE_MEM_64 = 0x100000,
	RESOURCE_UNSET = 0x20000000,
};

/* ---- addresses ---- */

static int hex_part(const char **s, size_t max_digits, char end, uint32_t *ret)
{
	uint32_t v = 0;
	size_t n = 0;

	for (; isxdigit((unsigned char)**s); (*s)++, n++) {
		int c = tolower((unsigned char)**s);

		v = v << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	if (n == 0 || n > max_digits || **s != end)
		return -1;
	if (end)
		(*s)++;
	*ret = v;
	return 0;
}

int pci_address_parse(const char *s, struct pci_address *ret)
{
	uint32_t domain = 0, bus, device, function;
	const char *colon = strchr(s, ':');

	if (colon && strchr(colon + 1, ':') && hex_part(&s, 8, ':', &domain) < 0)
		return -EINVAL;
	if (hex_part(&s, 2, ':', &bus) < 0 || hex_part(&s, 2, '.', &device) < 0 ||
	    hex_part(&s, 1, '\0', &function) < 0 || device > 31 || function > 7)
		return -EINVAL;
	*ret = (struct pci_address){domain, (uint8_t)bus, (uint8_t)device, (uint8_t)function};
	return 0;
}

static uint64_t sort_key(struct pci_address a)
{
	return (uint64_t)a.domain << 24 | (uint64_t)a.bus << 16 | (uint64_t)a.device << 8 |
	       a.function;
}

int pci_address_compare(struct pci_address a, struct pci_address b)
{
	uint64_t x = sort_key(a), y = sort_key(b);

	return (x > y) - (x < y);
}

const char *pci_address_format(struct pci_address a, char buf[static PCI_ADDRESS_LEN])
{
	snprintf(buf, PCI_ADDRESS_LEN, "%04x:%02x:%02x.%x", a.domain, a.bus, a.device & 0x1fu,
		 a.function & 7u);
	return buf;
}

/* ---- what sysfs says of one function ---- */

static struct fact_int read_speed(struct reader *r, const char *name, const char *file)
{
	struct fact_str text = read_str(r, DEVICES "/%s/%s", name, file);
	double gtps;
	char *end;

	if (!fact_known(text))
		return (struct fact_int){0, text.state, text.from};
	gtps = strtod(text.value, &end);
	if (end == text.value || gtps <= 0 || gtps > 1000)
		return fact_int_unknown("the kernel reports 'Unknown'");
	return fact_int((int64_t)(gtps * 1000 + 0.5), text.from);
}

static struct fact_int read_width(struct reader *r, const char *name, const char *file)
{
	struct fact_int width = read_int(r, DEVICES "/%s/%s", name, file);

	if (fact_is(width, 0) || fact_is(width, 255))
		return fact_int_unknown("the kernel does not know the width");
	return width;
}

static void read_bar(struct pci_bar *bar, uint64_t start, uint64_t end, uint64_t flags)
{
	if (!flags || end < start)
		return;
	bar->start = start;
	bar->size = end - start + 1;
	bar->io = flags & RESOURCE_IO;
	bar->is_64bit = flags & RESOURCE_MEM_64;
	bar->prefetchable = flags & RESOURCE_PREFETCH;
	bar->assigned = start && !(flags & RESOURCE_UNSET);
}

static void read_window(struct pci_window *w, const uint64_t line[3])
{
	if (line[2] && line[1] >= line[0] && line[0])
		*w = (struct pci_window){line[0], line[1] - line[0] + 1};
}

/*
 * sysfs's resource file: one line "start end flags" a resource. The first six are the BARs; of a
 * bridge the last four are its windows: I/O, memory, prefetchable memory, and one that only CardBus
 * uses. With SR-IOV both have lines for it in between, so the number of lines does not tell a
 * bridge.
 */
static void read_resources(struct reader *r, struct pci_function *f)
{
	struct fact_str text = read_text(r, DEVICES "/%s/resource", f->name);
	uint64_t lines[32][3];
	const char *line = NULL;
	size_t n = 0, len;

	f->bars_from = text.from;
	if (!fact_known(text))
		return;
	while (n < 32 && text_next_line(&line, &len, text.value)) {
		unsigned long long v[3];
		char buf[128];

		text_copy(buf, sizeof(buf), line, len);
		if (sscanf(buf, "%llx %llx %llx", &v[0], &v[1], &v[2]) != 3) {
			read_trouble(r, text.from, "line %zu is not a resource: '%s'", n + 1,
				     arena_strdup(r->m->arena, buf));
			return;
		}
		for (size_t i = 0; i < 3; i++)
			lines[n][i] = v[i];
		n++;
	}
	for (size_t i = 0; i < 6 && i < n; i++)
		read_bar(&f->bars[i], lines[i][0], lines[i][1], lines[i][2]);
	f->bars_known = n >= 6;
	if (n >= 11 && pci_is_bridge(f)) {
		read_window(&f->window, lines[n - 3]);
		read_window(&f->prefetch_window, lines[n - 2]);
		f->windows_known = true;
	}
}

static void read_identity(struct reader *r, struct pci_function *f)
{
	f->vendor = read_int(r, DEVICES "/%s/vendor", f->name);
	f->device = read_int(r, DEVICES "/%s/device", f->name);
	f->class_code = read_int(r, DEVICES "/%s/class", f->name);
	f->revision = read_int(r, DEVICES "/%s/revision", f->name);
	f->subsystem_vendor = read_int(r, DEVICES "/%s/subsystem_vendor", f->name);
	f->subsystem_device = read_int(r, DEVICES "/%s/subsystem_device", f->name);
}

static void read_link(struct reader *r, struct pci_function *f)
{
	f->link_speed = read_speed(r, f->name, "current_link_speed");
	f->link_speed_max = read_speed(r, f->name, "max_link_speed");
	f->link_width = read_width(r, f->name, "current_link_width");
	f->link_width_max = read_width(r, f->name, "max_link_width");
}

static void read_iommu(struct reader *r, struct pci_function *f)
{
	struct fact_str group = read_link_name(r, DEVICES "/%s/iommu_group", f->name);
	int64_t number;

	f->iommu_group = (struct fact_int){0, group.state, group.from};
	f->iommu_type = (struct fact_str){NULL, group.state, group.from};
	if (!fact_known(group))
		return;
	if (text_to_i64(group.value, &number) < 0) {
		f->iommu_group = fact_int_unknown("the IOMMU group has no number");
		f->iommu_type = fact_str_unknown("the IOMMU group has no number");
		return;
	}
	f->iommu_group.value = number;
	f->iommu_type = read_str(r, "sys/kernel/iommu_groups/%s/type", group.value);
}

/*
 * Bridges route, GPUs and network devices are what is routed to; the rest is not used, and reading
 * costs 12 us a register in a virtual machine. If only the text of lspci is known, the registers
 * alone show what a function is, so they are always read.
 */
static bool wants_config_space(const struct reader *r, const struct pci_function *f)
{
	enum { NETWORK = 0x02, BRIDGE = 0x06 };

	if (!fact_known(f->class_code))
		return true;
	return (r->request->parts & MACHINE_CONFIG_SPACE) &&
	       (f->class_code.value >> 16 == NETWORK || f->class_code.value >> 16 == BRIDGE ||
		pci_is_gpu(f));
}

static void read_config_space(struct reader *r, struct pci_function *f)
{
	struct arena *a = r->m->arena;
	AUTO_FREE char *bytes = NULL;
	const char *path = arena_printf(a, DEVICES "/%s/config", f->name), *why;
	size_t size = 0;
	int e;

	if (!wants_config_space(r, f)) {
		config_space_decode(f, NULL, 0, "not read: not a GPU, network device or bridge");
		return;
	}
	e = source_read(r->s, &bytes, &size, "%s", path);
	if (e == 0)
		why = size < 256
			      ? arena_printf(a, FACT_NEEDS_ROOT ": %s beyond %zu bytes", path, size)
			      : "the kernel exposes no extended configuration space";
	else
		why = read_why(r, e, path);
	config_space_decode(f, (const uint8_t *)bytes, e == 0 ? size : 0,
			    why ? why : "no configuration space");
	if (e == 0 && f->config_trouble)
		read_trouble(r, path, "%s", f->config_trouble);
}

/* ---- the tree ---- */

/*
 * sysfs's link contains the path from the root bus: .../pci0000:20/0000:20:00.0/0000:21:00.0. The
 * last pciDDDD:BB is the root bus (VMD has one of its own below a function).
 */
static void parent_from_link(struct reader *r, struct pci_function *f,
			     struct pci_address *ret_parent, bool *ret_has_parent)
{
	AUTO_FREE char *target = NULL;
	char *part, *rest, *last = NULL;
	struct pci_address a;

	*ret_has_parent = false;
	if (source_read_link(r->s, &target, DEVICES "/%s", f->name) < 0)
		return;
	rest = target;
	while ((part = strsep(&rest, "/"))) {
		if (text_starts_with(part, "pci") && strchr(part, ':')) {
			f->root = arena_strdup(r->m->arena, part);
			last = NULL;
		} else if (strcmp(part, f->name) == 0) {
			break;
		} else {
			last = part;
		}
	}
	if (f->root && last && pci_address_parse(last, &a) == 0) {
		*ret_parent = a;
		*ret_has_parent = true;
	}
}

static int by_secondary_bus(const void *a, const void *b)
{
	const struct pci_function *x = *(struct pci_function *const *)a;
	const struct pci_function *y = *(struct pci_function *const *)b;

	if (x->address.domain != y->address.domain)
		return x->address.domain < y->address.domain ? -1 : 1;
	return (int)x->secondary_bus.value - (int)y->secondary_bus.value;
}

/* Without sysfs the bridges' bus numbers tell the parent: the bridge whose secondary bus it is on.
 */
static void parents_from_buses(struct reader *r)
{
	struct machine *m = r->m;
	AUTO_FREE struct pci_function **bridges = xcalloc(m->pci_n + 1, sizeof(*bridges));
	size_t n = 0;

	for (size_t i = 0; i < m->pci_n; i++)
		if (fact_known(m->pci[i].secondary_bus) && m->pci[i].secondary_bus.value)
			bridges[n++] = &m->pci[i];
	qsort(bridges, n, sizeof(*bridges), by_secondary_bus);
	for (size_t i = 0; i < m->pci_n; i++) {
		struct pci_function *f = &m->pci[i], key = {.address = f->address}, *k = &key;
		struct pci_function **found;

		if (f->root)
			continue;
		key.secondary_bus = fact_int(f->address.bus, "");
		found = bsearch(&k, bridges, n, sizeof(*bridges), by_secondary_bus);
		if (found && (*found)->address.bus < f->address.bus)
			f->parent = *found;
	}
	for (size_t i = 0; i < m->pci_n; i++) {
		struct pci_function *f = &m->pci[i], *top = f;

		while (top->parent)
			top = top->parent;
		if (!f->root &&
		    (!source_stated(r->s) || top->root || pci_stated_on_root_bus(m, top)))
			f->root = top->root ? top->root
					    : arena_printf(m->arena, "pci%04x:%02x",
							   top->address.domain, top->address.bus);
	}
}

/* Parents have lower bus numbers, so depths can be counted upwards; a foreign tree may say
 * otherwise. */
static void count_depths(struct machine *m)
{
	for (size_t i = 0; i < m->pci_n; i++) {
		struct pci_function *f = &m->pci[i];

		for (const struct pci_function *p = f->parent; p; p = p->parent)
			f->depth++;
	}
}

struct pci_function *pci_find(const struct machine *m, struct pci_address a)
{
	size_t low = 0, high = m->pci_n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int c = pci_address_compare(m->pci[middle].address, a);

		if (c == 0)
			return &m->pci[middle];
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static void link_tree(struct reader *r)
{
	struct machine *m = r->m;

	for (size_t i = 0; i < m->pci_n; i++) {
		struct pci_function *f = &m->pci[i], *parent;
		struct pci_address a;
		bool has_parent;

		parent_from_link(r, f, &a, &has_parent);
		if (!has_parent && !pci_stated_parent(r, f, &a))
			continue;
		parent = pci_find(m, a);
		/*
		 * A bridge's bus number is lower than its children's; anything else could be a
		 * loop.
		 */
		if (parent && parent->address.domain == f->address.domain &&
		    parent->address.bus < f->address.bus)
			f->parent = parent;
		else
			read_trouble(r, f->name, "its parent in sysfs is not a bridge above it");
	}
	parents_from_buses(r);
	count_depths(m);
}

/* ---- all of it ---- */

static int by_address(const void *a, const void *b)
{
	return pci_address_compare(((const struct pci_function *)a)->address,
				   ((const struct pci_function *)b)->address);
}

static void list_functions(struct reader *r)
{
	struct machine *m = r->m;
	char **names;
	size_t n;

	m->pci_listed = read_list(r, &names, &n, DEVICES);
	m->pci = arena_alloc(m->arena, n ? n : 1, sizeof(*m->pci));
	for (size_t i = 0; i < n; i++) {
		struct pci_function *f = &m->pci[m->pci_n];
		char canonical[PCI_ADDRESS_LEN];

		if (pci_address_parse(names[i], &f->address) < 0 ||
		    strcmp(pci_address_format(f->address, canonical), names[i]) != 0) {
			read_trouble(r, DEVICES, "'%s' is not a PCI address", names[i]);
			continue;
		}
		f->name = arena_strdup(m->arena, names[i]);
		m->pci_n++;
	}
	source_free_names(names, n);
	if (source_stated(r->s) &&
	    fact_known(m->pci_listed)) /* how many more there are is unknown */
		m->pci_listed = fact_int_unknown("a text may show only some of the devices");
	qsort(m->pci, m->pci_n, sizeof(*m->pci), by_address);
}

/*
 * Some driver is bound to some device of every host: at least to a bridge or a disk. A tree without
 * any such link was copied without its links.
 */
static void distrust_drivers(struct machine *m)
{
	for (size_t i = 0; i < m->pci_n; i++)
		if (!fact_absent(m->pci[i].driver))
			return;
	for (size_t i = 0; i < m->pci_n; i++)
		m->pci[i].driver = fact_str_unknown(
			"no device has a link to its driver: the copy may lack links");
}

void pci_read_all(struct reader *r)
{
	list_functions(r);
	for (size_t i = 0; i < r->m->pci_n; i++) {
		struct pci_function *f = &r->m->pci[i];

		f->index = i;
		read_identity(r, f);
		read_link(r, f);
		read_resources(r, f);
		read_iommu(r, f);
		f->driver = read_link_name(r, DEVICES "/%s/driver", f->name);
		f->numa_node = read_int(r, DEVICES "/%s/numa_node", f->name);
		f->local_cpus = read_str(r, DEVICES "/%s/local_cpulist", f->name);
		f->enabled = read_int(r, DEVICES "/%s/enable", f->name);
		f->boot_vga = read_int(r, DEVICES "/%s/boot_vga", f->name);
		f->power_state = read_str(r, DEVICES "/%s/power_state", f->name);
		read_config_space(r, f);
		pci_read_stated(r, f);
	}
	distrust_drivers(r->m);
	link_tree(r);
}

/* ---- questions ---- */

bool pci_is_bridge(const struct pci_function *f)
{
	return fact_known(f->class_code) && f->class_code.value >> 8 == 0x0604;
}

bool pci_is_below(const struct pci_function *f, const struct pci_function *bridge)
{
	while (f && f != bridge)
		f = f->parent;
	return f != NULL;
}

bool pci_faces_down(const struct pci_function *f)
{
	if (fact_known(f->port_type))
		return f->port_type.value == PCI_PORT_ROOT ||
		       f->port_type.value == PCI_PORT_DOWNSTREAM;
	return pci_is_bridge(f) && f->depth % 2 == 0;
}

bool pci_is_gpu(const struct pci_function *f)
{
	if (!fact_is(f->vendor, VENDOR_NVIDIA))
		return false;
	return fact_known(f->class_code)
		       ? f->class_code.value >> 8 == 0x0300 || f->class_code.value >> 8 == 0x0302
		       : f->listed_as_gpu;
}

const struct pci_bar *pci_gpu_bar1(const struct pci_function *f)
{
	return f->bars[0].is_64bit ? &f->bars[2] : &f->bars[1];
}

bool pci_bar_lacks_address(const struct pci_function *f, size_t i)
{
	const struct pci_bar *bar = &f->bars[i];

	if (!f->bars_known)
		return false;
	if (bar->size)
		return !bar->assigned && !bar->io;
	return pci_is_gpu(f) && (i == 0 || (f->bars[0].size && bar == pci_gpu_bar1(f)));
}

/* Line coding: 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, flits of 242 in 256 bytes at 64 GT/s.
 */
double pci_link_gbps(int64_t speed_mtps, int64_t width)
{
	double coding = speed_mtps <= 5000 ? 0.8 : speed_mtps <= 32000 ? 128.0 / 130 : 242.0 / 256;

	return (double)speed_mtps * (double)width * coding / 8000;
}

const char *pci_link_format(struct fact_int speed, struct fact_int width, char *buf, size_t size)
{
	char gtps[32] = "?", lanes[32] = "?";

	if (fact_known(speed))
		snprintf(gtps, sizeof(gtps), "%.1f GT/s", (double)speed.value / 1000);
	if (fact_known(width))
		snprintf(lanes, sizeof(lanes), "%lld", (long long)width.value);
	snprintf(buf, size, "%s x%s", gtps, lanes);
	return buf;
}

const struct pci_acs_bit pci_acs_bits[PCI_ACS_BIT_N] = {
	{PCI_ACS_SV, "SV", "source validation"},     {PCI_ACS_TB, "TB", "translation blocking"},
	{PCI_ACS_RR, "RR", "request redirect"},      {PCI_ACS_CR, "CR", "completion redirect"},
	{PCI_ACS_UF, "UF", "upstream forwarding"},   {PCI_ACS_EC, "EC", "egress control"},
	{PCI_ACS_DT, "DT", "direct translated P2P"},
};

void pci_acs_text(int64_t bits, struct strbuf *out)
{
	const char *between = "";

	for (size_t i = 0; i < PCI_ACS_BIT_N; i++) {
		if (!(bits & pci_acs_bits[i].bit))
			continue;
		strbuf_printf(out, "%s%s (%s)", between, pci_acs_bits[i].name,
			      pci_acs_bits[i].code);
		between = ", ";
	}
}
