/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `nvidia-smi -q`, 390 to 610: "Label : value" lines, indented by 4 blanks a level. "Total",
 * "Current" and others occur under several headings, so a value is identified by its label and the
 * heading above it. With -x it prints the same as XML, an element a line (nvsmi_device_v10.dtd to
 * v13).
 */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/array.h"
#include "base/text.h"
#include "machine/machine.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines ---- */

/* "GPU 00000000:41:00.0", `<gpu id="00000000:41:00.0">`: the address. */
static bool is_gpu(const char *s, char *address, size_t size)
{
	static const char name[] = "GPU ", element[] = "<gpu id=\"";
	struct pci_address a;

	if (text_starts_with(s, element))
		text_copy(address, size, s + strlen(element), strcspn(s + strlen(element), "\""));
	else if (text_starts_with(s, name) && strlen(s) <= 24)
		text_copy(address, size, s + strlen(name), strlen(s + strlen(name)));
	else
		return false;
	return pci_address_parse(address, &a) == 0;
}

/*
 * "Total : 32768 MiB": the label without blanks behind it, and the value.
 */
static bool split(const char *s, char *label, size_t size, const char **ret_value)
{
	const char *colon = strstr(s, " : ");
	size_t n;

	if (!colon)
		return false;
	n = (size_t)(colon - s);
	while (n && s[n - 1] == ' ')
		n--;
	text_copy(label, size, s, n);
	*ret_value = colon + 3;
	return n > 0;
}

/* "<total>32768 MiB</total>": the name of the element, and its text. */
static bool split_element(const char *s, char *name, size_t size, char *text, size_t text_size)
{
	const size_t n = *s == '<' ? strcspn(s + 1, "<> /") : 0;
	const char *start = s + 1 + n + 1, *end;

	if (!n || s[1 + n] != '>')
		return false;
	end = strstr(start, "</");
	if (!end || strncmp(end + 2, s + 1, n) != 0 || strcmp(end + 2 + n, ">") != 0)
		return false;
	text_copy(name, size, s + 1, n);
	text_copy(text, text_size, start, (size_t)(end - start));
	return true;
}

/* "<bar1_memory_usage>" alone: the name; false: another line. */
static bool is_open_element(const char *s)
{
	return *s == '<' && isalpha((unsigned char)s[1]) && text_ends_with(s, ">") &&
	       !strchr(s + 1, '<') && !text_ends_with(s, "/>");
}

static bool is_top_label(const char *s)
{
	static const char *const labels[] = {"Timestamp ", "Driver Version ", "CUDA Version ",
					     "Attached GPUs "};

	return text_starts_with_any(s, labels, ARRAY_LEN(labels));
}

/* The output of `nvidia-smi -q | grep -A3 BAR1` has only a heading and the lines below it. */
static bool is_heading(const char *s)
{
	return !strcmp(s, "BAR1 Memory Usage") || !strcmp(s, "FB Memory Usage");
}

static bool starts(const struct text_line *lines, size_t n)
{
	const char *s = line_text(&lines[0]);
	char address[32];

	if (strstr(s, "=NVSMI LOG="))
		return true;
	if (is_heading(s) || is_gpu(s, address, sizeof(address)))
		return n > 1 && line_indent(&lines[1]) > line_indent(&lines[0]);
	return false;
}

size_t smi_query_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t indent = line_indent(&lines[0]), end = 1, gpus = 0;
	char address[32];

	if (!starts(lines, n))
		return 0;
	for (size_t i = 0; i < n; i++) {
		const char *s = line_text(&lines[i]);
		bool gpu = is_gpu(s, address, sizeof(address));

		gpus += gpu;
		if (!*s || !strcmp(s, "--"))
			continue;
		if (i && line_indent(&lines[i]) <= indent && !gpu && !is_top_label(s) &&
		    !is_heading(s))
			break;
		end = i + 1;
	}
	if (gpus)
		snprintf(p->about, sizeof(p->about), "%zu %s", gpus,
			 text_plural(gpus, "GPU", "GPUs"));
	else
		snprintf(p->about, sizeof(p->about), "a section");
	return end;
}

/* From "<?xml", "<nvidia_smi_log>" or "<gpu id=" to "</nvidia_smi_log>". */
static bool starts_xml(const struct text_line *lines, size_t n)
{
	enum { HEAD = 4 };
	const char *s = line_text(&lines[0]);
	char address[32];

	if (text_starts_with(s, "<?xml"))
		for (size_t i = 1; i < n && i < HEAD; i++)
			if (text_starts_with(line_text(&lines[i]), "<nvidia_smi_log"))
				return true;
	return text_starts_with(s, "<nvidia_smi_log") || is_gpu(s, address, sizeof(address));
}

size_t smi_xml_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 1, gpus = 0;
	char address[32];

	if (*line_text(&lines[0]) != '<' || !starts_xml(lines, n))
		return 0;
	for (size_t i = 0; i < n && !p->ended; i++) {
		const char *s = line_text(&lines[i]);

		if (!*s)
			continue;
		/*
		 * The only texts that have lines of their own, "None", are below the element's
		 * start.
		 */
		if (*s != '<' && !is_open_element(line_text(&lines[i - 1])))
			break;
		gpus += is_gpu(s, address, sizeof(address));
		p->ended = text_starts_with(s, "</nvidia_smi_log>");
		end = i + 1;
	}
	p->cut_at = p->ended ? 0 : lines[end - 1].number;
	p->cut = !p->ended;
	snprintf(p->about, sizeof(p->about), "%zu %s", gpus, text_plural(gpus, "GPU", "GPUs"));
	return end;
}

/* ---- values ---- */

/* A number in the text's own unit, "32768 MiB", "16x", "P8"; -1: there is none. */
static int64_t number_of(const char *s)
{
	char *end;
	long long n;

	s += *s == 'P';
	if (!isdigit((unsigned char)*s))
		return -1;
	n = strtoll(s, &end, 10);
	return n > INT32_MAX ? -1 : n;
}

static int64_t bytes_of(const char *s)
{
	int64_t mib = number_of(s);

	return mib >= 0 && strstr(s, " MiB") ? mib << 20 : -1;
}

static int64_t word_of(const char *s, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (words[i] && strcmp(words[i], s) == 0)
			return (int64_t)i;
	return -1;
}

static int64_t yes_of(const char *s)
{
	static const char *const words[] = {"Disabled", "Enabled", "No", "Yes"};
	int64_t i = word_of(s, words, ARRAY_LEN(words));

	return i < 0 ? -1 : i % 2;
}

static int64_t compute_mode_of(const char *s)
{
	static const char *const words[] = {"Default", "Exclusive_Thread", "Prohibited",
					    "Exclusive_Process"};

	return word_of(s, words, ARRAY_LEN(words));
}

static int64_t fabric_state_of(const char *s)
{
	static const char *const words[] = {
		[FABRIC_NOT_STARTED] = "Not Started",
		[FABRIC_IN_PROGRESS] = "In Progress",
		[FABRIC_COMPLETED] = "Completed",
	};

	return word_of(s, words, ARRAY_LEN(words));
}

static int64_t success_of(const char *s)
{
	return strcmp(s, "Success") == 0 ? 0 : -1;
}

/* ---- labels ---- */

static const struct label {
	const char *above; /* the heading; NULL: the GPU's own labels */
	const char *label;
	const char *parent, *element;     /* the same in XML */
	const char *key;                  /* as in nvml.json */
	int64_t (*number)(const char *s); /* NULL: a text */
	bool none;                        /* "N/A" means that the GPU does not have it */
} labels[] = {
	{NULL, "Product Name", NULL, "product_name", "model", NULL, false},
	{NULL, "GPU UUID", NULL, "uuid", "uuid", NULL, false},
	{NULL, "VBIOS Version", NULL, "vbios_version", "vbios", NULL, false},
	{NULL, "Minor Number", NULL, "minor_number", "minor", number_of, false},
	{NULL, "Display Mode", NULL, "display_mode", "display_attached", yes_of, false},
	{NULL, "Display Attached", NULL, "display_attached", "display_attached", yes_of, false},
	{NULL, "Display Active", NULL, "display_active", "display_active", yes_of, false},
	{NULL, "Persistence Mode", NULL, "persistence_mode", "persistence", yes_of, false},
	{NULL, "Compute Mode", NULL, "compute_mode", "compute_mode", compute_mode_of, false},
	{NULL, "Performance State", NULL, "performance_state", "performance_state", number_of,
	 false},
	{"MIG Mode", "Current", "mig_mode", "current_mig", "mig_enabled", yes_of, true},
	{"FB Memory Usage", "Total", "fb_memory_usage", "total", "vram_bytes", bytes_of, false},
	{"BAR1 Memory Usage", "Total", "bar1_memory_usage", "total", "bar1_bytes", bytes_of, false},
	{"PCIe Generation", "Max", "pcie_gen", "max_link_gen", "pcie_gen_max", number_of, false},
	{"PCIe Generation", "Current", "pcie_gen", "current_link_gen", "pcie_gen", number_of,
	 false},
	{"PCIe Generation", "Device Max", "pcie_gen", "max_device_link_gen", "pcie_gen_device_max",
	 number_of, false},
	{"Link Width", "Max", "link_widths", "max_link_width", "pcie_width_max", number_of, false},
	{"Link Width", "Current", "link_widths", "current_link_width", "pcie_width", number_of,
	 false},
	{"Fabric", "State", "fabric", "state", "fabric_state", fabric_state_of, true},
	{"Fabric", "Status", "fabric", "status", "fabric_status", success_of, false},
};

enum { MOST_LEVELS = 16 };

struct query {
	const struct part *part;
	struct claims *claims;
	char gpu[32]; /* "0000:41:00.0", "~2": the third without a name; "": none yet */
	bool xml;
	size_t gpu_n, unnamed_n;
	int64_t attached; /* -1: the text does not say */
	struct {
		size_t indent;
		const char *text;
	} headings[MOST_LEVELS];
	size_t heading_n;
};

static void put_heading(struct query *q, size_t indent, const char *text)
{
	while (q->heading_n && q->headings[q->heading_n - 1].indent >= indent)
		q->heading_n--;
	if (!text || q->heading_n == MOST_LEVELS)
		return;
	q->headings[q->heading_n].indent = indent;
	q->headings[q->heading_n++].text = text;
}

static const char *heading(const struct query *q)
{
	return q->heading_n ? q->headings[q->heading_n - 1].text : NULL;
}

/* MIG instances have memory of their own, under the same labels. */
static bool in_slice(const struct query *q)
{
	for (size_t i = 0; i < q->heading_n; i++)
		if (text_starts_with(q->headings[i].text, q->xml ? "mig_device>" : "MIG Device"))
			return true;
	return false;
}

/* Of XML the heading has the end of its tag. */
static bool is_heading_of(const struct query *q, const char *above, const char *text)
{
	const size_t n = above && text ? strlen(above) : 0;

	if (!above || !text)
		return above == text;
	return strncmp(text, above, n) == 0 && strcmp(text + n, q->xml ? ">" : "") == 0;
}

/* NULL: nothing is read from it. */
static const struct label *find_label(const struct query *q, const char *name)
{
	const char *above = heading(q);

	for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
		const struct label *l = &labels[i];

		if (strcmp(q->xml ? l->element : l->label, name) == 0 &&
		    is_heading_of(q, q->xml ? l->parent : l->above, above))
			return l;
	}
	return NULL;
}

/* "0x20B010DE", in XML "20B010DE": of the device and NVIDIA. */
static void claim_device_id(struct query *q, struct claim_at at, const char *value)
{
	const unsigned long both = strtoul(value, NULL, 16);
	char id[16];

	if ((both & 0xffff) != 0x10de || both > UINT32_MAX || *q->gpu == '~')
		return;
	snprintf(id, sizeof(id), "0x%04lx", both >> 16);
	claim(q->claims, at, id, "sys/bus/pci/devices/%s/device", q->gpu);
}

static void read_value(struct query *q, const struct text_line *line, const char *name,
		       const char *value)
{
	struct claim_at at = CLAIM_AT(q->part, line);
	const struct label *l = find_label(q, name);
	int64_t number;

	if (is_heading_of(q, q->xml ? "pci" : "PCI", heading(q)) &&
	    !strcmp(name, q->xml ? "pci_device_id" : "Device Id"))
		claim_device_id(q, at, value);
	if (!l)
		return;
	number = l->number ? l->number(value) : -1;
	if (l->none && !strcmp(value, "N/A"))
		claim_absent(q->claims, at, "gpu/%s/%s", q->gpu, l->key);
	else if (l->number && number >= 0)
		claim_number(q->claims, at, number, "gpu/%s/%s", q->gpu, l->key);
	else if (!l->number && isalnum((unsigned char)*value) && strcmp(value, "N/A") &&
		 !strstr(value, "Unknown Error"))
		claim(q->claims, at, value, "gpu/%s/%s", q->gpu, l->key);
}

/* By number only where all GPUs are in the text: nvidia-smi lists them in that order. */
static void start_gpu(struct query *q, const struct text_line *line, const char *address)
{
	struct claim_at at = CLAIM_AT(q->part, line);
	char name[20];

	q->heading_n = 0;
	if (!claim_function(q->claims, at, address, name))
		return;
	text_copy(q->gpu, sizeof(q->gpu), name, strlen(name));
	claim_nvidia(q->claims, at, name);
	if (q->attached == (int64_t)q->gpu_n)
		claim_gpu_at(q->claims, at, (unsigned)q->unnamed_n, name);
	q->unnamed_n++;
}

static void claim_driver(struct query *q, const struct text_line *line, const char *version)
{
	if (version && isdigit((unsigned char)*version))
		claim(q->claims, CLAIM_AT(q->part, line), version, "gpu/driver");
}

/* Elements that have others end with a line of their own. */
static void read_element(struct query *q, const struct text_line *line)
{
	const char *s = line_text(line);
	char name[64], text[128];

	if (split_element(s, name, sizeof(name), text, sizeof(text))) {
		if (!*q->gpu && !strcmp(name, "driver_version"))
			claim_driver(q, line, text);
		if (*q->gpu && !in_slice(q))
			read_value(q, line, name, text);
	} else if (text_starts_with(s, "</")) {
		q->heading_n -= q->heading_n > 0;
	} else if (*q->gpu && is_open_element(s) && q->heading_n < MOST_LEVELS) {
		q->headings[q->heading_n++].text = s + 1;
	}
}

static void read_line(struct query *q, const struct text_line *line)
{
	const char *s = line_text(line), *value;
	char label[64], address[32];

	if (is_gpu(s, address, sizeof(address))) {
		start_gpu(q, line, address);
		return;
	}
	if (q->xml) {
		read_element(q, line);
		return;
	}
	if (is_heading(s) && q->gpu_n == 0) /* of a GPU without a name */
		if (heading(q) == NULL || line_indent(line) <= q->headings[0].indent)
			snprintf(q->gpu, sizeof(q->gpu), "~%s%zu", s[0] == 'B' ? "bar1-" : "fb-",
				 q->unnamed_n++);
	claim_driver(q, line, line_value(line, "Driver Version"));
	if (!split(s, label, sizeof(label), &value)) {
		put_heading(q, line_indent(line), s);
		return;
	}
	put_heading(q, line_indent(line), NULL);
	if (*q->gpu && !in_slice(q))
		read_value(q, line, label, value);
}

/* What each GPU's lines leave out. */
static void claim_extents(const struct part *p, struct claims *c)
{
	char address[32], name[PCI_ADDRESS_LEN] = "";
	size_t from = 0;

	for (size_t i = 0; i <= p->n; i++) {
		const bool gpu =
			i < p->n && is_gpu(line_text(&p->lines[i]), address, sizeof(address));
		struct pci_address a;

		if (!gpu && i < p->n)
			continue;
		if (*name)
			claim_extent(c, p, from, i, "gpu/%s", name);
		from = i;
		if (gpu && pci_address_parse(address, &a) == 0)
			pci_address_format(a, name);
	}
}

/* "Attached GPUs : 4", "<attached_gpus>4</attached_gpus>"; -1: another line. */
static int64_t attached_in(const struct text_line *line)
{
	static const char element[] = "<attached_gpus>";
	const char *n = line_value(line, "Attached GPUs"), *s = line_text(line);

	n = text_starts_with(s, element) ? s + strlen(element) : n;
	return n ? number_of(n) : -1;
}

void smi_query_decode(const struct part *p, struct claims *c)
{
	struct query q = {.part = p,
			  .claims = c,
			  .xml = *line_text(&p->lines[0]) == '<',
			  .attached = -1};
	char address[32];

	for (size_t i = 0; i < p->n; i++) {
		const int64_t n = attached_in(&p->lines[i]);

		q.gpu_n += is_gpu(line_text(&p->lines[i]), address, sizeof(address));
		if (n >= 0)
			q.attached = n;
	}
	if (q.gpu_n && q.attached == (int64_t)q.gpu_n)
		claim_number(c, CLAIM_AT(p, &p->lines[0]), 1, "stated/all-gpus");
	for (size_t i = 0; i < p->n; i++)
		if (!line_is_blank(&p->lines[i]))
			read_line(&q, &p->lines[i]);
	claim_extents(p, c);
}

/* All that is not read may be private, as the names of programs. */
const char *smi_xml_keep(const struct part *p, const struct text_line *l, struct arena *a)
{
	static const char *const tops[] = {"timestamp", "driver_version", "attached_gpus",
					   "pci_device_id"};
	char name[64], text[128];

	(void)p;
	(void)a;
	if (!split_element(line_text(l), name, sizeof(name), text, sizeof(text)))
		return l->text;
	for (size_t i = 0; i < ARRAY_LEN(tops); i++)
		if (strcmp(name, tops[i]) == 0)
			return l->text;
	for (size_t i = 0; i < ARRAY_LEN(labels); i++)
		if (strcmp(name, labels[i].element) == 0)
			return l->text;
	return "";
}
