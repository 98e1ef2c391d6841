/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/config_space.h"

#include <string.h>

/* Offsets of the PCI Express 6.0 Base Specification, section 7.5 and 7.6 to 7.8. */
enum {
	CAP_EXPRESS = 0x10,
	EXT_AER = 0x0001,
	EXT_ACS = 0x000d,
	EXT_ATS = 0x000f,
	EXT_REBAR = 0x0015,

	HEADER_SIZE = 64,
	PCI_SIZE = 256,
	EXPRESS_SIZE = 4096,
};

struct bytes {
	const uint8_t *data;
	size_t size;
};

static uint8_t u8(const struct bytes *b, size_t at)
{
	return at < b->size ? b->data[at] : 0;
}

static uint16_t u16(const struct bytes *b, size_t at)
{
	return (uint16_t)(u8(b, at) | u8(b, at + 1) << 8);
}

static uint32_t u32(const struct bytes *b, size_t at)
{
	return u16(b, at) | (uint32_t)u16(b, at + 2) << 16;
}

static uint32_t bits(uint32_t value, unsigned high, unsigned low)
{
	return value >> low & ((1u << (high - low + 1)) - 1);
}

/*
 * Offset of a capability, 0 if there is none. A list longer than the space has room for is a loop;
 * a pointer below 0x40 leads into the header. Both end the walk and are reported.
 */
static size_t find_capability(struct pci_function *f, const struct bytes *b, uint8_t id)
{
	size_t at = u8(b, 0x34) & ~3u;

	if (!(u16(b, 0x06) & 0x10)) /* Status: Capabilities List */
		return 0;
	for (unsigned n = 0; at; n++) {
		if (n > (PCI_SIZE - HEADER_SIZE) / 4) {
			f->config_trouble = "the capability list loops";
			return 0;
		}
		if (at < HEADER_SIZE) {
			f->config_trouble = "the capability list leads into the header";
			return 0;
		}
		if (at + 1 >= b->size)
			return 0;
		if (u8(b, at) == id)
			return at;
		at = u8(b, at + 1) & ~3u;
	}
	return 0;
}

static size_t find_extended(struct pci_function *f, const struct bytes *b, uint16_t id)
{
	size_t at = PCI_SIZE;

	for (unsigned n = 0; at; n++) {
		uint32_t head = u32(b, at);

		if (n > (EXPRESS_SIZE - PCI_SIZE) / 4) {
			f->config_trouble = "the extended capability list loops";
			return 0;
		}
		if (head == 0 || head == 0xffffffff)
			return 0;
		if ((head & 0xffff) == id)
			return at;
		at = head >> 20 & ~3u;
		if (at && at < PCI_SIZE) {
			f->config_trouble =
				"the extended capability list leads out of extended space";
			return 0;
		}
	}
	return 0;
}

/* Link speed codes of LnkCap, LnkSta and LnkCtl2 in MT/s. */
static struct fact_int speed_fact(uint32_t code, const char *from)
{
	static const int mtps[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};

	if (code == 0 || code >= sizeof(mtps) / sizeof(*mtps))
		return fact_int_unknown("reserved link speed code");
	return fact_int(mtps[code], from);
}

static struct fact_int width_fact(uint32_t width, const char *from)
{
	return width ? fact_int(width, from) : fact_int_unknown("link width reads 0: link down");
}

static void keep_known(struct fact_int *f, struct fact_int value)
{
	if (!fact_known(*f))
		*f = value;
}

static void decode_header(struct pci_function *f, const struct bytes *b)
{
	uint8_t type = u8(b, 0x0e) & 0x7f;

	keep_known(&f->vendor, fact_int(u16(b, 0), "config space 00h"));
	keep_known(&f->device, fact_int(u16(b, 2), "config space 02h"));
	keep_known(&f->revision, fact_int(u8(b, 8), "config space 08h"));
	keep_known(&f->class_code, fact_int(u32(b, 8) >> 8, "config space 09h"));
	f->is_multifunction = fact_int(u8(b, 0x0e) >> 7, "config space 0Eh");
	if (type == 0) {
		keep_known(&f->subsystem_vendor, fact_int(u16(b, 0x2c), "config space 2Ch"));
		keep_known(&f->subsystem_device, fact_int(u16(b, 0x2e), "config space 2Eh"));
	}
	if (type == 1) {
		f->secondary_bus = fact_int(u8(b, 0x19), "config space 19h");
		f->subordinate_bus = fact_int(u8(b, 0x1a), "config space 1Ah");
	}
}

static struct pci_window window_of(uint64_t base, uint64_t limit)
{
	limit |= 0xfffff; /* windows have a granularity of 1 MiB */
	return base > limit ? (struct pci_window){0}
			    : (struct pci_window){.start = base, .size = limit - base + 1};
}

static void decode_windows(struct pci_function *f, const struct bytes *b)
{
	uint64_t base = (uint64_t)(u16(b, 0x24) & 0xfff0) << 16;
	uint64_t limit = (uint64_t)(u16(b, 0x26) & 0xfff0) << 16;

	if ((u8(b, 0x0e) & 0x7f) != 1 || f->windows_known)
		return;
	if ((u16(b, 0x24) & 0xf) == 1) {
		base |= (uint64_t)u32(b, 0x28) << 32;
		limit |= (uint64_t)u32(b, 0x2c) << 32;
	}
	f->prefetch_window = window_of(base, limit);
	f->window = window_of((uint64_t)(u16(b, 0x20) & 0xfff0) << 16,
			      (uint64_t)(u16(b, 0x22) & 0xfff0) << 16);
	f->windows_known = true;
}

static void decode_express(struct pci_function *f, const struct bytes *b, size_t at)
{
	uint32_t devcap = u32(b, at + 0x04), lnkcap = u32(b, at + 0x0c);
	uint32_t devcap2 = u32(b, at + 0x24);
	uint16_t devctl = u16(b, at + 0x08), lnksta = u16(b, at + 0x12);
	uint16_t devctl2 = u16(b, at + 0x28);

	f->port_type = fact_int(bits(u16(b, at + 2), 7, 4), "PCI Express Capabilities");
	f->payload_max = fact_int(128 << bits(devcap, 2, 0), "DevCap");
	f->payload = fact_int(128 << bits(devctl, 7, 5), "DevCtl");
	f->relaxed_ordering = fact_int(bits(devctl, 4, 4), "DevCtl");
	f->link_speed_cap = speed_fact(bits(lnkcap, 3, 0), "LnkCap");
	f->link_width_cap = width_fact(bits(lnkcap, 9, 4), "LnkCap");
	keep_known(&f->link_speed, speed_fact(bits(lnksta, 3, 0), "LnkSta"));
	keep_known(&f->link_width, width_fact(bits(lnksta, 9, 4), "LnkSta"));
	keep_known(&f->link_speed_max, f->link_speed_cap);
	keep_known(&f->link_width_max, f->link_width_cap);
	f->link_speed_target = speed_fact(bits(u16(b, at + 0x30), 3, 0), "LnkCtl2");
	f->atomic_routing = fact_int(bits(devcap2, 6, 6), "DevCap2");
	f->atomic_completer = fact_int(bits(devcap2, 9, 7), "DevCap2");
	f->atomic_requester_enabled = fact_int(bits(devctl2, 6, 6), "DevCtl2");
	f->atomic_egress_blocked = fact_int(bits(devctl2, 7, 7), "DevCtl2");
}

static struct fact_int *express_facts(struct pci_function *f, size_t i)
{
	struct fact_int *all[] = {
		&f->port_type,
		&f->payload_max,
		&f->payload,
		&f->relaxed_ordering,
		&f->link_speed_cap,
		&f->link_width_cap,
		&f->link_speed_target,
		&f->atomic_routing,
		&f->atomic_completer,
		&f->atomic_requester_enabled,
		&f->atomic_egress_blocked,
	};

	return i < sizeof(all) / sizeof(*all) ? all[i] : NULL;
}

static struct fact_int *extended_facts(struct pci_function *f, size_t i)
{
	struct fact_int *all[] = {
		&f->acs_cap,   &f->acs_ctl,     &f->acs_offset,        &f->rebar_sizes,
		&f->rebar_bar, &f->ats_enabled, &f->aer_uncorrectable, &f->aer_correctable,
	};

	return i < sizeof(all) / sizeof(*all) ? all[i] : NULL;
}

typedef struct fact_int *(*fact_list)(struct pci_function *f, size_t i);

static void set_all(struct pci_function *f, fact_list list, struct fact_int value)
{
	struct fact_int *fact;

	for (size_t i = 0; (fact = list(f, i)); i++)
		*fact = value;
}

/* Each entry is 8 bytes: capability, control (7.8.6). NVIDIA's BAR1 is index 1, or 2 behind a
 * 64-bit BAR0. */
static void decode_rebar(struct pci_function *f, const struct bytes *b, size_t at)
{
	unsigned entries = bits(u32(b, at + 8), 7, 5);

	for (size_t i = 0; i < entries && i < 6; i++) {
		uint32_t cap = u32(b, at + 4 + 8 * i), ctl = u32(b, at + 8 + 8 * i);
		uint64_t sizes = (uint64_t)cap >> 4 | (uint64_t)(ctl >> 16) << 28;

		if (i && bits(ctl, 2, 0) != 1 && bits(ctl, 2, 0) != 2)
			continue;
		f->rebar_bar = fact_int(bits(ctl, 2, 0), "Resizable BAR control");
		f->rebar_sizes = fact_int((int64_t)sizes, "Resizable BAR capability");
	}
}

static void decode_extended(struct pci_function *f, const struct bytes *b)
{
	size_t at;

	set_all(f, extended_facts, fact_int_absent("no such extended capability"));
	at = find_extended(f, b, EXT_ACS);
	if (at) {
		f->acs_cap = fact_int(bits(u16(b, at + 4), 6, 0), "ACSCap");
		f->acs_ctl = fact_int(bits(u16(b, at + 6), 6, 0), "ACSCtl");
		f->acs_offset = fact_int((int64_t)at, "ACS capability");
	}
	at = find_extended(f, b, EXT_REBAR);
	if (at)
		decode_rebar(f, b, at);
	at = find_extended(f, b, EXT_ATS);
	if (at)
		f->ats_enabled = fact_int(bits(u16(b, at + 6), 15, 15), "ATSCtl");
	at = find_extended(f, b, EXT_AER);
	if (at) {
		f->aer_uncorrectable = fact_int(u32(b, at + 0x04), "UESta");
		f->aer_correctable = fact_int(u32(b, at + 0x10), "CESta");
	}
}

static bool is_all_ones(const struct bytes *b)
{
	for (size_t i = 0; i < b->size && i < HEADER_SIZE; i++)
		if (b->data[i] != 0xff)
			return false;
	return true;
}

void config_space_decode(struct pci_function *f, const uint8_t *bytes, size_t size,
			 const char *why_short)
{
	const struct bytes b = {bytes, size < EXPRESS_SIZE ? size : EXPRESS_SIZE};
	struct fact_int unread = fact_int_unknown(why_short);
	size_t express;

	f->config_size = b.size;
	set_all(f, express_facts, unread);
	set_all(f, extended_facts, unread);
	if (b.size < HEADER_SIZE)
		return;
	if (is_all_ones(&b)) {
		f->config_trouble =
			"reads all ones: the device has fallen off the bus or is powered down";
		f->config_size = 0;
		return;
	}
	decode_header(f, &b);
	decode_windows(f, &b);
	if (b.size < PCI_SIZE)
		return;
	express = find_capability(f, &b, CAP_EXPRESS);
	if (express)
		decode_express(f, &b, express);
	else
		set_all(f, express_facts, fact_int_absent("no PCI Express capability"));
	if (express && b.size < EXPRESS_SIZE)
		return; /* extended space exists, unread */
	decode_extended(f, &b);
}
