/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lspci's text, of pciutils 3.0 to 3.14: -v, -vv, -vvv, -n, -nn, -D and the rows of -x. What a line
 * does not show stays unknown: lists that end at "<access denied>", fields that older versions do
 * not print.
 */

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ingest/claims.h"
#include "ingest/part_kinds.h"
#include "machine/pci.h"
#include "recording/recording.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES "sys/bus/pci/devices"

/* ---- lines ---- */

/*
 * "41:00.0 VGA compatible controller: ...", "41:00.0 0300: 10de:2684": the length of the address;
 * 0: another line.
 */
static size_t function_at(const struct text_line *l)
{
	const char *s = line_text(l), *rest;
	size_t n = strcspn(s, " ");
	char word[24];
	struct pci_address a;

	if (!isxdigit((unsigned char)*s) || n < 7 || n >= sizeof(word))
		return 0;
	text_copy(word, sizeof(word), s, n);
	if (pci_address_parse(word, &a) < 0)
		return 0;
	rest = s + n + strspn(s + n, " ");
	/* The name of a class ("3D controller" begins with a digit), or its four digits. */
	if (!isupper((unsigned char)*rest) && !text_starts_with(rest, "3D ") &&
	    !(strspn(rest, "0123456789abcdef") == 4 && rest[4] == ':'))
		return 0;
	return strchr(rest, ':') ? n : 0;
}

/* "00: de 10 84 26 ..." and "1a0: ..." */
static bool is_row(const char *s)
{
	size_t n = strspn(s, "0123456789abcdefABCDEF");

	return (n == 2 || n == 3) && s[n] == ':' && s[n + 1] == ' ' &&
	       isxdigit((unsigned char)s[n + 2]) && isxdigit((unsigned char)s[n + 3]) &&
	       (!s[n + 4] || s[n + 4] == ' ');
}

/* Rows of bytes may be below an address alone, or a name that lost its colon. */
static bool is_function(const struct text_line *lines, size_t n)
{
	const char *s = line_text(&lines[0]);
	struct pci_address a;
	char word[24];

	if (function_at(&lines[0]))
		return true;
	text_copy(word, sizeof(word), s, strcspn(s, " "));
	return strcspn(s, " ") < sizeof(word) && pci_address_parse(word, &a) == 0 && n > 1 &&
	       is_row(line_text(&lines[1]));
}

/* lspci's lines on standard error come in between. */
static bool is_complaint(const char *s)
{
	return text_starts_with(s, "pcilib: ") || text_starts_with(s, "lspci: ");
}

/* The line belongs to the function above it: deeper than its address, or a row of bytes. */
static bool belongs(const struct text_line *l, size_t indent)
{
	return line_indent(l) > indent || is_row(line_text(l)) || is_complaint(line_text(l));
}

/*
 * A line that a terminal or mail program wrapped continues at the margin, followed by lspci's own
 * lines. One that looks like a command or a heading does not count.
 */
static bool goes_on(const struct text_line *lines, size_t i, size_t n, size_t indent)
{
	const char *s = line_text(&lines[i]);

	return i + 1 < n &&
	       (islower((unsigned char)*s) || *s == '[' || *s == '(' ||
		isdigit((unsigned char)*s)) &&
	       !strpbrk(s, "$#`") && !line_is_blank(&lines[i + 1]) &&
	       line_indent(&lines[i + 1]) > indent;
}

size_t lspci_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t indent = line_indent(&lines[0]), end = 1, functions = 1;
	bool deep = false;

	if (!is_function(lines, n))
		return 0;
	for (size_t i = 1; i < n; i++) {
		const struct text_line *l = &lines[i];

		if (line_is_blank(l))
			continue;
		if (line_indent(l) == indent && is_function(l, n - i)) {
			functions++;
			deep = false;
		} else if (i > end ||
			   (!belongs(l, indent) && !(deep && goes_on(lines, i, n, indent)))) {
			break; /* lines of a function follow its first without an empty one */
		} else {
			deep = true;
		}
		end = i + 1;
	}
	snprintf(p->about, sizeof(p->about), "%zu %s", functions,
		 text_plural(functions, "function", "functions"));
	return end;
}

/* One function. A last one may go on. */
struct text_unit lspci_unit(const struct text_line *lines, size_t n)
{
	const char *address = line_text(&lines[0]);
	size_t end = 1;

	while (end < n && !is_function(&lines[end], n - end))
		end++;
	return (struct text_unit){
		.n = end,
		.subject = text_hash(TEXT_HASH_START, address, strcspn(address, " ")),
		.says = lines_hash(TEXT_HASH_START, lines, end),
	};
}

/* ---- one function ---- */

struct function {
	const struct part *part;
	struct claims *claims;
	char name[PCI_ADDRESS_LEN];
	bool bridge;
	bool extended; /* an extended capability is listed: the list was read */
	bool acs, rebar, ats;
	unsigned capability; /* offset of the current capability */
	bool of_virtual;     /* the current capability is about the BARs of virtual functions */
	bool whole;        /* a line after the capabilities was seen, or another function follows */
	bool flags;        /* Flags: or Control: was seen, so the list of regions is complete */
	bool capabilities; /* some capability line was seen */
	struct pci_bar bars[6];
	unsigned next_bar; /* of those without a number, as -v prints them */
	bool bars_cut;
	struct pci_window memory, prefetch;
	bool memory_known, prefetch_known;
	const struct text_line *bar_line;
};

static struct claim_at at(const struct function *f, const struct text_line *l)
{
	return CLAIM_AT(f->part, l);
}

#define STATE(f, l, name_, value)                                                                  \
	claim_number((f)->claims, at(f, l), value, DEVICES "/%s/stated/" name_, (f)->name)

/* "Foo+" in the line: 1, "Foo-": 0, -1: neither. */
static int flag(const char *s, const char *name)
{
	size_t n = strlen(name);

	for (s = strstr(s, name); s; s = strstr(s + 1, name))
		if (s[n] == '+' || s[n] == '-')
			return s[n] == '+';
	return -1;
}

static void state_flag(const struct function *f, const struct text_line *l, const char *name,
		       const char *text, const char *word)
{
	int value = flag(text, word);

	if (value >= 0)
		claim_number(f->claims, at(f, l), value, DEVICES "/%s/stated/%s", f->name, name);
}

/* "[size=32G]" or "256MB": bytes; 0: no size. */
static uint64_t size_of(const char *s)
{
	char *end;
	uint64_t n = strtoull(s, &end, 10);
	static const char units[] = "KMGTP";
	const char *unit = *end ? strchr(units, *end) : NULL;

	if (end == s || n > (1U << 20))
		return 0;
	return unit ? n << (10 * (unsigned)(unit - units + 1)) : n;
}

/* ---- its first line ---- */

static const struct {
	const char *name;
	unsigned code; /* class and subclass */
} classes[] = {
	{"VGA compatible controller", 0x0300},
	{"3D controller", 0x0302},
	{"Display controller", 0x0380},
	{"PCI bridge", 0x0604},
	{"Host bridge", 0x0600},
	{"ISA bridge", 0x0601},
	{"Bridge", 0x0680},
	{"Infiniband controller", 0x0207},
	{"InfiniBand controller", 0x0207},
	{"Ethernet controller", 0x0200},
	{"Network controller", 0x0280},
	{"Non-Volatile memory controller", 0x0108},
	{"SATA controller", 0x0106},
	{"USB controller", 0x0c03},
	{"Audio device", 0x0403},
};

/* Vendors that rules use, as pci.ids spells them. */
static const struct {
	const char *name;
	unsigned id;
} vendors[] = {
	{"NVIDIA Corporation", 0x10de},
	{"Mellanox Technologies", 0x15b3},
	{"Advanced Micro Devices, Inc.", 0x1022},
	{"Intel Corporation", 0x8086},
	{"Broadcom / LSI", 0x1000},
	{"PLX Technology", 0x10b5},
	{"Microsemi", 0x11f8},
	{"ASPEED Technology", 0x1a03},
};

static void state_class(struct function *f, const struct text_line *l, unsigned code)
{
	char text[16];

	snprintf(text, sizeof(text), "0x%04x00", code);
	claim(f->claims, at(f, l), text, DEVICES "/%s/class", f->name);
	f->bridge = code == 0x0604;
}

static void state_id(const struct function *f, const struct text_line *l, const char *file,
		     unsigned id)
{
	char text[16];

	snprintf(text, sizeof(text), "0x%04x", id);
	claim(f->claims, at(f, l), text, DEVICES "/%s/%s", f->name, file);
}

/* The last "[vvvv:dddd]" of a line, or "vvvv:dddd" alone where -n was given. */
static bool find_ids(const char *s, unsigned *ret_vendor, unsigned *ret_device)
{
	bool found = false;

	for (const char *open = strchr(s, '['); open; open = strchr(open + 1, '[')) {
		int end = 0;
		unsigned v, d;

		if (sscanf(open, "[%4x:%4x]%n", &v, &d, &end) == 2 && end == 11) {
			*ret_vendor = v;
			*ret_device = d;
			found = true;
		}
	}
	return found;
}

/* "NVIDIA Corporation Device 2330 (rev a1)": a device that lspci's list of names lacks. */
static void state_nameless(const struct function *f, const struct text_line *l, const char *s)
{
	const char *word = strstr(s, " Device ");
	unsigned device;
	int end = 0;

	if (word && sscanf(word, " Device %4x%n", &device, &end) == 1 &&
	    end == (int)strlen(" Device 2330") && (!word[end] || word[end] == ' '))
		state_id(f, l, "device", device);
}

/* "AD102 [GeForce RTX 4090] [10de:2684] (rev a1)": the product name. */
static void state_model(const struct function *f, const struct text_line *l, const char *name)
{
	const char *open = strchr(name, '['), *close = open ? strchr(open, ']') : NULL;
	char model[64];

	if (!close || memchr(open, ':', (size_t)(close - open)) || close - open > 60)
		return;
	snprintf(model, sizeof(model), "NVIDIA %.*s", (int)(close - open - 1), open + 1);
	claim(f->claims, at(f, l), model, DEVICES "/%s/stated/model", f->name);
}

static void state_revision(const struct function *f, const struct text_line *l, const char *s)
{
	const char *rev = strstr(s, "(rev ");
	unsigned n;
	char text[16];

	if (!rev || sscanf(rev, "(rev %2x)", &n) != 1)
		return;
	snprintf(text, sizeof(text), "0x%02x", n);
	claim(f->claims, at(f, l), text, DEVICES "/%s/revision", f->name);
}

/* "0300: 10de:2684 (rev a1)" */
static bool read_numbers(struct function *f, const struct text_line *l, const char *s)
{
	unsigned code, vendor, device;
	int end = 0;

	if (sscanf(s, "%4x: %4x:%4x%n", &code, &vendor, &device, &end) != 3 || end != 15)
		return false;
	state_class(f, l, code);
	state_id(f, l, "vendor", vendor);
	state_id(f, l, "device", device);
	return true;
}

/* "VGA compatible controller [0300]: NVIDIA Corporation AD102 [GeForce RTX 4090] [10de:2684]" */
static void read_names(struct function *f, const struct text_line *l, const char *s)
{
	const char *colon = strstr(s, ": ");
	size_t n = colon ? (size_t)(colon - s) : 0;
	unsigned code, vendor, device;
	bool ids;

	if (!colon)
		return;
	if (n > 7 && s[n - 1] == ']' && sscanf(s + n - 6, "[%4x]", &code) == 1) {
		state_class(f, l, code);
	} else {
		for (size_t i = 0; i < ARRAY_LEN(classes); i++)
			if (strlen(classes[i].name) == n && !strncmp(classes[i].name, s, n))
				state_class(f, l, classes[i].code);
	}
	ids = find_ids(colon, &vendor, &device);
	if (ids) {
		state_id(f, l, "vendor", vendor);
		state_id(f, l, "device", device);
	}
	for (size_t i = 0; !ids && i < ARRAY_LEN(vendors); i++)
		if (text_starts_with(colon + 2, vendors[i].name)) {
			vendor = vendors[i].id;
			state_id(f, l, "vendor", vendor);
			state_nameless(f, l, colon + 2);
			ids = true;
		}
	if (ids && vendor == 0x10de && !f->bridge)
		state_model(f, l, colon + 2);
}

static bool read_first(struct function *f, const struct text_line *l)
{
	const char *s = line_text(l);
	size_t n = strcspn(s, " ");
	char word[24];

	text_copy(word, sizeof(word), s, n);
	if (!claim_function(f->claims, at(f, l), word, f->name))
		return false;
	s += n + strspn(s + n, " ");
	if (!read_numbers(f, l, s))
		read_names(f, l, s);
	state_revision(f, l, s);
	return true;
}

/* ---- regions ---- */

/* "Memory at b2000000 (32-bit, non-prefetchable) [size=16M]", "I/O ports at 3000 [size=128]" */
static void read_bar(struct function *f, const struct text_line *l, const char *s, unsigned index)
{
	const char *size = strstr(s, "[size=");
	struct pci_bar *bar;
	bool wide = strstr(s, "(64-bit") != NULL;

	if (index > 5)
		return;
	bar = &f->bars[index];
	f->next_bar = index + (wide ? 2 : 1);
	if (!f->bar_line)
		f->bar_line = l;
	*bar = (struct pci_bar){
		.start = strtoull(strstr(s, " at ") + 4, NULL, 16),
		.size = size ? size_of(size + 6) : 0,
		.io = text_starts_with(s, "I/O"),
		.is_64bit = wide,
		.prefetchable = strstr(s, " prefetchable") != NULL,
	};
	if (!bar->size) /* without it the region's end is unknown */
		f->bars_cut = true;
}

static bool is_region(const char *s)
{
	return (text_starts_with(s, "Memory at ") || text_starts_with(s, "I/O ports at "));
}

/* "00000000f0000000-00000000f10fffff [size=17M]" or "[disabled]" */
static bool read_window(struct pci_window *w, const char *s)
{
	uint64_t first, last;

	*w = (struct pci_window){0};
	if (strstr(s, "[disabled]") || text_starts_with(s, "None"))
		return true;
	if (sscanf(s, "%" SCNx64 "-%" SCNx64, &first, &last) != 2)
		return false;
	if (last > first)
		*w = (struct pci_window){first, last - first + 1};
	return true;
}

enum { /* flags of a line of sysfs's resource file, include/linux/ioport.h */
       RESOURCE_IO = 0x100,
       RESOURCE_MEM = 0x200,
       RESOURCE_PREFETCH = 0x2000,
       RESOURCE_MEM_64 = 0x100000,
       RESOURCE_UNSET = 0x20000000,
};

static void add_resource(struct strbuf *out, uint64_t start, uint64_t size, unsigned flags)
{
	if (size)
		strbuf_printf(out, "0x%016" PRIx64 " 0x%016" PRIx64 " 0x%016x\n", start,
			      start + size - 1, flags);
	else
		strbuf_puts(out, "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
}

static void add_bar(struct strbuf *out, const struct pci_bar *b)
{
	add_resource(out, b->start, b->size,
		     (b->io ? RESOURCE_IO : RESOURCE_MEM) |
			     (b->prefetchable ? RESOURCE_PREFETCH : 0u) |
			     (b->is_64bit ? RESOURCE_MEM_64 : 0u) |
			     (b->start ? 0u : RESOURCE_UNSET));
}

/* In the form of sysfs's resource file: six BARs, the ROM, and of a bridge its windows. */
static void state_resources(const struct function *f)
{
	AUTO_STRBUF struct strbuf out = {0};

	if (!f->bar_line || f->bars_cut || !f->flags || !(f->capabilities || f->whole))
		return;
	if (f->bridge && (!f->memory_known || !f->prefetch_known))
		return;
	for (size_t i = 0; i < 6; i++)
		add_bar(&out, &f->bars[i]);
	add_resource(&out, 0, 0, 0);
	if (f->bridge) {
		add_resource(&out, 0, 0, 0);
		add_resource(&out, f->memory.start, f->memory.size, RESOURCE_MEM);
		add_resource(&out, f->prefetch.start, f->prefetch.size,
			     RESOURCE_MEM | RESOURCE_PREFETCH);
		add_resource(&out, 0, 0, 0);
	}
	claim(f->claims, at(f, f->bar_line), strbuf_str(&out), DEVICES "/%s/resource", f->name);
}

/* ---- lines of a function, by what they begin with ---- */

static void read_region(struct function *f, const struct text_line *l, const char *s)
{
	char *rest;
	unsigned long index = strtoul(s, &rest, 10);

	rest += strspn(rest, ": ");
	if (text_starts_with(rest, "[virtual] "))
		rest += strlen("[virtual] ");
	if (is_region(rest))
		read_bar(f, l, rest, (unsigned)index);
	else
		f->bars_cut = true;
}

static void read_flags(struct function *f, const struct text_line *l, const char *s)
{
	(void)l;
	(void)s;
	f->flags = true;
}

/*
 * "Flags: bus master, fast devsel, latency 0, IRQ 377, NUMA node 0, IOMMU group 24": the form of
 * -v.
 */
static void read_short_flags(struct function *f, const struct text_line *l, const char *s)
{
	const char *node = strstr(s, "NUMA node "), *group = strstr(s, "IOMMU group ");
	char text[32];

	f->flags = true;
	if (node)
		claim_number(f->claims, at(f, l), strtol(node + 10, NULL, 10),
			     DEVICES "/%s/numa_node", f->name);
	if (group) {
		snprintf(text, sizeof(text), "../../../kernel/iommu_groups/%ld",
			 strtol(group + 12, NULL, 10));
		claim_link(f->claims, at(f, l), text, DEVICES "/%s/iommu_group", f->name);
	}
}

static void read_numa(struct function *f, const struct text_line *l, const char *s)
{
	claim_number(f->claims, at(f, l), strtol(s, NULL, 10), DEVICES "/%s/numa_node", f->name);
}

static void read_group(struct function *f, const struct text_line *l, const char *s)
{
	char text[64];

	snprintf(text, sizeof(text), "../../../kernel/iommu_groups/%ld", strtol(s, NULL, 10));
	claim_link(f->claims, at(f, l), text, DEVICES "/%s/iommu_group", f->name);
}

static void read_driver(struct function *f, const struct text_line *l, const char *s)
{
	char text[96];

	f->whole = true;
	snprintf(text, sizeof(text), "../../../bus/pci/drivers/%.60s", s);
	claim_link(f->claims, at(f, l), text, DEVICES "/%s/driver", f->name);
}

static void read_modules(struct function *f, const struct text_line *l, const char *s)
{
	(void)l;
	(void)s;
	f->whole = true;
}

static void read_subsystem(struct function *f, const struct text_line *l, const char *s)
{
	unsigned vendor, device;

	if (!find_ids(s, &vendor, &device) && sscanf(s, "%4x:%4x", &vendor, &device) != 2)
		return;
	state_id(f, l, "subsystem_vendor", vendor);
	state_id(f, l, "subsystem_device", device);
}

static void read_buses(struct function *f, const struct text_line *l, const char *s)
{
	unsigned primary, secondary, subordinate;

	f->bridge = true;
	if (!f->bar_line)
		f->bar_line = l;
	if (sscanf(s, "primary=%2x, secondary=%2x, subordinate=%2x", &primary, &secondary,
		   &subordinate) != 3)
		return;
	STATE(f, l, "secondary_bus", secondary);
	STATE(f, l, "subordinate_bus", subordinate);
}

static void read_memory_window(struct function *f, const struct text_line *l, const char *s)
{
	(void)l;
	f->memory_known = read_window(&f->memory, s);
}

static void read_prefetch_window(struct function *f, const struct text_line *l, const char *s)
{
	(void)l;
	f->prefetch_known = read_window(&f->prefetch, s);
}

static const struct {
	const char *name;
	enum pci_port_type type;
} port_types[] = {
	{"Legacy Endpoint", PCI_PORT_LEGACY_ENDPOINT},
	{"Root Complex Integrated Endpoint", PCI_PORT_RC_ENDPOINT},
	{"Root Complex Event Collector", PCI_PORT_RC_EVENT_COLLECTOR},
	{"Endpoint", PCI_PORT_ENDPOINT},
	{"Root Port", PCI_PORT_ROOT},
	{"Upstream Port", PCI_PORT_UPSTREAM},
	{"Downstream Port", PCI_PORT_DOWNSTREAM},
	{"PCI-Express to PCI/PCI-X Bridge", PCI_PORT_PCIE_TO_PCI},
	{"PCI/PCI-X to PCI-Express Bridge", PCI_PORT_PCI_TO_PCIE},
};

/* "[60] Express (v2) Root Port (Slot+), MSI 00", "[148 v1] Access Control Services" */
static void read_capability(struct function *f, const struct text_line *l, const char *s)
{
	char *rest;

	f->capabilities = true;
	if (*s != '[')
		return; /* <access denied> */
	f->capability = (unsigned)strtoul(s + 1, &rest, 16);
	if (*rest == ' ') /* a version: of an extended one */
		f->extended = true;
	if (strstr(s, "] Express"))
		for (size_t i = 0; i < ARRAY_LEN(port_types); i++)
			if (strstr(s, port_types[i].name)) {
				STATE(f, l, "port_type", port_types[i].type);
				break;
			}
	f->acs |= strstr(s, "Access Control Services") != NULL;
	f->of_virtual = strstr(s, "Virtual Resizable BAR") != NULL;
	f->rebar |= strstr(s, "Resizable BAR") && !f->of_virtual;
	f->ats |= strstr(s, "Address Translation Service") != NULL;
	if (strstr(s, "Access Control Services"))
		STATE(f, l, "acs_offset", f->capability);
}

/* The number behind a word, as in "Speed 16GT/s" or "MaxPayload 256 bytes"; 0: there is none. */
static double number_behind(const char *s, const char *word)
{
	const char *p = strstr(s, word);

	return p ? strtod(p + strlen(word), NULL) : 0;
}

static void state_speed(const struct function *f, const struct text_line *l, const char *name,
			double gtps)
{
	if (gtps > 0 && gtps < 1000)
		claim_number(f->claims, at(f, l), (int64_t)(gtps * 1000 + 0.5),
			     DEVICES "/%s/stated/%s", f->name, name);
}

static void state_sysfs_link(const struct function *f, const struct text_line *l, const char *which,
			     double gtps, double width)
{
	char text[32];

	if (gtps > 0 && gtps < 1000) {
		snprintf(text, sizeof(text), "%.1f GT/s PCIe", gtps);
		claim(f->claims, at(f, l), text, DEVICES "/%s/%s_link_speed", f->name, which);
	}
	if (width > 0 && width <= 32)
		claim_number(f->claims, at(f, l), (int64_t)width, DEVICES "/%s/%s_link_width",
			     f->name, which);
}

static void read_link_capability(struct function *f, const struct text_line *l, const char *s)
{
	double gtps = number_behind(s, "Speed "), width = number_behind(s, "Width x");

	state_speed(f, l, "link_speed_cap", gtps);
	if (width > 0 && width <= 32)
		STATE(f, l, "link_width_cap", (int64_t)width);
	state_sysfs_link(f, l, "max", gtps, width);
}

static void read_link_status(struct function *f, const struct text_line *l, const char *s)
{
	state_sysfs_link(f, l, "current", number_behind(s, "Speed "), number_behind(s, "Width x"));
}

static void read_link_control2(struct function *f, const struct text_line *l, const char *s)
{
	state_speed(f, l, "link_speed_target", number_behind(s, "Target Link Speed: "));
}

static void read_payload(struct function *f, const struct text_line *l, const char *s)
{
	double bytes = number_behind(s, "MaxPayload ");

	if (bytes >= 128 && bytes <= 4096)
		claim_number(f->claims, at(f, l), (int64_t)bytes, DEVICES "/%s/stated/%s", f->name,
			     text_starts_with(line_text(l), "DevCap") ? "payload_max" : "payload");
}

/*
 * The line behind DevCtl's: "RlxdOrd+ ExtTag+ ...", then "MaxPayload 256 bytes, MaxReadReq 512
 * bytes".
 */
static void read_ordering(struct function *f, const struct text_line *l, const char *s)
{
	(void)s;
	state_flag(f, l, "relaxed_ordering", line_text(l), "RlxdOrd");
}

static void read_payload_control(struct function *f, const struct text_line *l, const char *s)
{
	double bytes = strtod(s, NULL);

	if (bytes >= 128 && bytes <= 4096)
		STATE(f, l, "payload", (int64_t)bytes);
}

/* The bits in the order of the register; if a line lacks one, the whole register stays unknown. */
static int64_t acs_bits(const char *s)
{
	static const char *const names[] = {"SrcValid",    "TransBlk",   "ReqRedir",   "CmpltRedir",
					    "UpstreamFwd", "EgressCtrl", "DirectTrans"};
	int64_t bits = 0;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int value = flag(s, names[i]);

		if (value < 0)
			return -1;
		bits |= (int64_t)value << i;
	}
	return bits;
}

static void read_acs(struct function *f, const struct text_line *l, const char *s)
{
	int64_t bits = acs_bits(s);

	if (bits >= 0)
		claim_number(f->claims, at(f, l), bits, DEVICES "/%s/stated/%s", f->name,
			     text_starts_with(line_text(l), "ACSCap") ? "acs_cap" : "acs_ctl");
}

/*
 * "BAR 1: current size: 256MB, supported: 64MB 128MB 256MB": bit n is 2^n MiB. A mask of 0 prints
 * no "supported". NVIDIA's BAR1 is index 1, or 2 behind a BAR0 of 64 bits.
 */
static void read_rebar(struct function *f, const struct text_line *l, const char *s)
{
	char *rest;
	unsigned long index = strtoul(s, &rest, 10);
	const char *sizes = strstr(rest, "supported:");
	int64_t mask = 0;

	if (!text_starts_with(rest, ": current size: ") || (index != 1 && index != 2) ||
	    f->of_virtual)
		return;
	for (sizes = sizes ? sizes + strlen("supported:") : ""; *(sizes += strspn(sizes, " "));
	     sizes += strcspn(sizes, " ")) {
		uint64_t mib = size_of(sizes) >> 20;

		if (mib && !(mib & (mib - 1)) && mib <= (1ULL << 40))
			mask |= (int64_t)mib;
	}
	STATE(f, l, "rebar_bar", (int64_t)index);
	STATE(f, l, "rebar_sizes", mask);
}

static void read_ats(struct function *f, const struct text_line *l, const char *s)
{
	state_flag(f, l, "ats_enabled", s, "Enable");
}

/* The device has fallen off the bus or is powered down: all its registers read ones. */
static void read_unknown_header(struct function *f, const struct text_line *l, const char *s)
{
	char ones[64];

	(void)s;
	memset(ones, 0xff, sizeof(ones));
	claim_bytes(f->claims, at(f, l), ones, sizeof(ones), DEVICES "/%s/config", f->name);
}

static const struct line_kind {
	const char *start;
	void (*read)(struct function *f, const struct text_line *l, const char *rest);
} line_kinds[] = {
	{"Control: ", read_flags},
	{"Flags: ", read_short_flags},
	{"Subsystem: ", read_subsystem},
	{"NUMA node: ", read_numa},
	{"IOMMU group: ", read_group},
	{"Region ", read_region},
	{"Bus: ", read_buses},
	{"Memory behind bridge: ", read_memory_window},
	{"Prefetchable memory behind bridge: ", read_prefetch_window},
	{"Capabilities: ", read_capability},
	{"LnkCap:", read_link_capability},
	{"LnkSta:", read_link_status},
	{"LnkCtl2:", read_link_control2},
	{"DevCap:", read_payload},
	{"RlxdOrd", read_ordering},
	{"MaxPayload ", read_payload_control},
	{"ACSCap:", read_acs},
	{"ACSCtl:", read_acs},
	{"ATSCtl:", read_ats},
	{"BAR ", read_rebar},
	{"!!! Unknown header type", read_unknown_header},
	{"Kernel driver in use: ", read_driver},
	{"Kernel modules: ", read_modules},
};

static void read_line(struct function *f, const struct text_line *l)
{
	const char *s = line_text(l);

	for (size_t i = 0; i < ARRAY_LEN(line_kinds); i++)
		if (text_starts_with(s, line_kinds[i].start)) {
			line_kinds[i].read(f, l, s + strlen(line_kinds[i].start));
			return;
		}
	if (is_region(s))
		read_bar(f, l, s, f->next_bar);
}

/*
 * An extended capability that is missing in a complete list is absent. The list of the last
 * function in a text may have been cut, unless a line that comes after the list was seen.
 */
static void state_absent(const struct function *f, const struct text_line *first)
{
	static const struct {
		const char *names[3];
		size_t has; /* offset in struct function */
	} lists[] = {
		{{"acs_cap", "acs_ctl", "acs_offset"}, offsetof(struct function, acs)},
		{{"rebar_sizes", "rebar_bar"}, offsetof(struct function, rebar)},
		{{"ats_enabled"}, offsetof(struct function, ats)},
	};

	if (!f->extended || !f->whole || !f->flags)
		return;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (size_t k = 0; k < 3 && lists[i].names[k]; k++)
			if (!*(const bool *)((const char *)f + lists[i].has))
				claim_absent(f->claims, at(f, first), DEVICES "/%s/stated/%s",
					     f->name, lists[i].names[k]);
}

/* The n lines of one function, its own first; another function may come after them. */
static void decode_function(const struct part *p, struct claims *c, size_t from, size_t n)
{
	struct function f = {.part = p, .claims = c, .whole = from + n < p->n};
	const struct text_line *lines = p->lines + from;

	if (!read_first(&f, &lines[0]))
		return;
	for (size_t i = 1; i < n; i++)
		read_line(&f, &lines[i]);
	state_resources(&f);
	f.whole &= !part_cut_in(p, from, from + n);
	state_absent(&f, &lines[0]);
	claim_extent(c, p, from, from + n, DEVICES "/%s", f.name);
	claim_whole(c, DEVICES "/%s/stated/parent", f.name); /* bridges are listed above it */
}

/* ---- rows of bytes ---- */

enum { ROW_BYTES = 16 };

/* A row that is cut off may end within a byte. */
static bool is_whole_row(const char *s)
{
	size_t bytes = 0;

	for (s = strchr(s, ':') + 1; *s == ' ' && strspn(s + 1, "0123456789abcdefABCDEF") == 2;
	     s += 3)
		bytes++;
	return bytes == ROW_BYTES;
}

/* The rows of a function in the form of a recording's config-space.txt, which is lspci's. */
static void decode_rows(const struct part *p, struct claims *c, const struct text_line *lines,
			size_t n)
{
	AUTO_STRBUF struct strbuf text = {0};
	AUTO_FREE struct source_entry *entries = NULL;
	struct source *map;
	size_t entry_n = 0, rows = 0;

	strbuf_printf(&text, "%s\n", line_text(&lines[0]));
	for (size_t i = 1; i < n; i++) {
		const char *s = line_text(&lines[i]);

		/*
		 * Behind a row that the text has lost, or a part of, nothing is known to be where
		 * it should be.
		 */
		if (!is_row(s) || !is_whole_row(s) || strtoul(s, NULL, 16) != rows * ROW_BYTES)
			continue;
		strbuf_printf(&text, "%s\n", s);
		rows++;
	}
	if (!rows)
		return;
	map = source_new_map(p->file);
	if (recording_parse_config_space(strbuf_str(&text), text.len, p->file, map) == 0)
		entries = source_entries(map, &entry_n);
	for (size_t i = 0; i < entry_n; i++)
		claim_bytes(c, CLAIM_AT(p, &lines[0]), entries[i].data, entries[i].size, "%s",
			    entries[i].path);
	source_free(map);
}

void lspci_decode(const struct part *p, struct claims *c)
{
	size_t from = 0;

	for (size_t i = 1; i <= p->n; i++) {
		if (i < p->n && !is_function(&p->lines[i], p->n - i))
			continue;
		decode_function(p, c, from, i - from);
		decode_rows(p, c, p->lines + from, i - from);
		from = i;
	}
}
