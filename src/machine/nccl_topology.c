/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/nccl_topology.h"

#include "base/alloc.h"
#include "base/text.h"
#include "machine/read.h"
#include "machine/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 4096, DEPTH_MAX = 64, VALUE_MAX = 64 };

/* ---- what NCCL plans with ---- */

/* Matched by their start, in this order; 100 Mbit/s per lane. */
static const struct {
	const char *speed;
	int rate;
} speeds[] = {
	{"2.5 GT/s", 15},        {"5 GT/s", 30},          {"8 GT/s", 60},
	{"16 GT/s", 120},        {"32 GT/s", 240},        {"2.5 GT/s PCIe", 15},
	{"5.0 GT/s PCIe", 30},   {"8.0 GT/s PCIe", 60},   {"16.0 GT/s PCIe", 120},
	{"32.0 GT/s PCIe", 240}, {"64.0 GT/s PCIe", 480},
};

enum { UNKNOWN_RATE = 60, UNKNOWN_WIDTH = 16, WIDTH_MAX = 32 };

static int rate_of(const char *speed)
{
	for (size_t i = 0; i < ARRAY_LEN(speeds); i++)
		if (text_starts_with(speed, speeds[i].speed))
			return speeds[i].rate;
	return 0;
}

bool nccl_knows_speed(const char *speed)
{
	return rate_of(speed) > 0;
}

double nccl_link_gbps(const char *speed, int width)
{
	int rate = rate_of(speed);

	return (rate ? rate : UNKNOWN_RATE) * (width > 0 ? width : UNKNOWN_WIDTH) / 80.0;
}

bool nccl_device_is_gpu(const struct nccl_topology_device *d)
{
	return text_starts_with(d->class, "0x03");
}

bool nccl_device_is_nic(const struct nccl_topology_device *d)
{
	return text_starts_with(d->class, "0x02");
}

/* ---- XML ---- */

struct xml {
	struct arena *a;
	const char *from;
	struct nccl_topology *t;
	size_t open[DEPTH_MAX]; /* devices whose element has not ended, by number + 1 */
	size_t depth;
};

/*
 * The value of an attribute of the element that starts at s and ends before `end`; NULL: it has
 * none.
 */
static const char *attribute(struct xml *x, const char *s, const char *end, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = s; (at = memmem(at, (size_t)(end - at), name, n)); at += n) {
		const char *value = at + n + 2, *stop;

		if (at == s || !isspace((unsigned char)at[-1]) || end - at < (ptrdiff_t)n + 3 ||
		    at[n] != '=' || (at[n + 1] != '"' && at[n + 1] != '\''))
			continue;
		stop = memchr(value, at[n + 1], (size_t)(end - value));
		if (!stop || stop - value > VALUE_MAX)
			return NULL;
		return arena_strndup(x->a, value, (size_t)(stop - value));
	}
	return NULL;
}

/* The same, "" where there is none. */
static const char *text_of(struct xml *x, const char *s, const char *end, const char *name)
{
	const char *value = attribute(x, s, end, name);

	return value ? value : "";
}

/* As NCCL counts them; -1: not given. */
static int number_of(struct xml *x, const char *s, const char *end, const char *name)
{
	const char *value = attribute(x, s, end, name);
	long n = value ? strtol(value, NULL, 0) : -1;

	return n < -1 || n > 1 << 20 ? -1 : (int)n;
}

static void add_device(struct xml *x, const char *s, const char *end)
{
	struct nccl_topology *t = x->t;
	const char *busid = attribute(x, s, end, "busid");
	struct pci_address address;
	char name[PCI_ADDRESS_LEN];
	int width = number_of(x, s, end, "link_width");

	if (!busid || t->n >= DEVICES_MAX || pci_address_parse(busid, &address) < 0)
		return;
	pci_address_format(address, name);
	*ARENA_PUSH(x->a, t->devices, t->n) = (struct nccl_topology_device){
		.address = arena_strdup(x->a, name),
		.class = text_of(x, s, end, "class"),
		.vendor = text_of(x, s, end, "vendor"),
		.device = text_of(x, s, end, "device"),
		.speed = attribute(x, s, end, "link_speed"),
		.width = width > WIDTH_MAX ? 0 : width,
		.gpu_index = -1,
	};
}

/* <gpu>, <nic>, <net> of the device that is open. */
static void note_use(struct xml *x, const char *s, const char *end, bool gpu)
{
	size_t open = x->depth && x->depth <= DEPTH_MAX ? x->open[x->depth - 1] : 0;
	struct nccl_topology_device *d = open ? &x->t->devices[open - 1] : NULL;

	if (!d)
		return;
	d->used = true;
	x->t->dumped |= gpu;
	if (gpu)
		d->gpu_index = number_of(x, s, end, "dev");
}

static bool is_element(const char *s, const char *end, const char *name)
{
	size_t n = strlen(name);

	return (size_t)(end - s) >= n && memcmp(s, name, n) == 0 &&
	       ((size_t)(end - s) == n || isspace((unsigned char)s[n]) || s[n] == '/');
}

static void open_device(struct xml *x, const char *s, const char *end)
{
	size_t before = x->t->n;

	add_device(x, s, end);
	if (end[-1] == '/')
		return;
	if (x->depth < DEPTH_MAX)
		x->open[x->depth] = x->t->n > before ? x->t->n : 0;
	x->depth++;
}

/* An element from behind its "<" to before its ">". */
static void read_element(struct xml *x, const char *s, const char *end)
{
	if (is_element(s, end, "pci"))
		open_device(x, s, end);
	else if (is_element(s, end, "/pci") && x->depth)
		x->depth--;
	else if (is_element(s, end, "gpu"))
		note_use(x, s, end, true);
	else if (is_element(s, end, "net"))
		note_use(x, s, end, false);
	else if (is_element(s, end, "system"))
		x->depth = 0;
}

void nccl_topology_parse(struct arena *a, const char *xml, const char *from,
			 struct nccl_topology *t)
{
	struct xml x = {.a = a, .from = from, .t = t};

	t->from = from;
	for (const char *s = xml; (s = strchr(s, '<')); s++) {
		const char *end = s + strcspn(s, ">");

		if (!*end)
			break;
		read_element(&x, s + 1, end);
	}
}

/* ---- the machine's ---- */

/*
 * Where the fabric manager of a virtual machine's host puts one; NCCL reads it if no variable names
 * another.
 */
static const char virtual_topology[] = "/var/run/nvidia-topologyd/virtualTopology.xml";

static const char *file_of(struct reader *r)
{
	const struct setting *s = machine_setting(r->m, "NCCL_TOPO_FILE");

	return s && *s->value ? s->value : virtual_topology;
}

void nccl_topology_read(struct reader *r)
{
	struct fact_str text = read_text(r, NCCL_TOPOLOGY_TEXT);
	const char *path = file_of(r);

	/* A relative one is relative to wherever the program will be started. */
	if (!fact_known(text) && *path == '/')
		text = read_text(r, "%s", path + 1);
	if (fact_known(text))
		nccl_topology_parse(r->m->arena, text.value, text.from, &r->m->nccl.topology);
}
