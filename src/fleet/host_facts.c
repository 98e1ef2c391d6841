/* SPDX-License-Identifier: Apache-2.0 */
/* From the JSON of check, and from figures, what can be compared with other hosts. */
#include "fleet/fleet.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A switch with more levels than this is a loop in bad input. */
#define MOST_LEVELS 16
#define SLOT_SIZE   64

/* One document that is being read. */
struct reader {
	struct fleet *fleet;
	struct fleet_host *host;
	const json_t *machine, *origins;
	struct arena *scratch;
	struct numbered addresses; /* of its functions */
	const json_t **functions;  /* by the number of the address, from 1; the first of each */
	size_t function_n;
	struct numbered placed; /* addresses that have a slot */
	struct numbered words;  /* names of kernel parameters */
	size_t *word_facts;     /* by the number of the name, from 1: its fact of the host */
	size_t word_n;
};

static void begin_reading(struct reader *r)
{
	const json_t *f;
	size_t i;

	r->scratch = arena_new();
	r->addresses.arena = r->placed.arena = r->words.arena = r->scratch;
	json_array_foreach (json_object_get(r->machine, "pci"), i, f) {
		const char *address = json_string_value(json_object_get(f, "address"));

		if (address && numbered_number(&r->addresses, address) > r->function_n)
			*ARENA_PUSH(r->scratch, r->functions, r->function_n) = f;
	}
}

static void end_reading(struct reader *r)
{
	numbered_done(&r->addresses);
	numbered_done(&r->placed);
	numbered_done(&r->words);
	arena_free(r->scratch);
}

/* ---- values ---- */

static const char *text_of(const json_t *object, const char *member)
{
	const char *s = json_string_value(json_object_get(object, member));

	return s ? s : "";
}

static const char *integer_text(json_int_t v, enum fact_form form, char *buf, size_t size)
{
	char bytes[BYTES_TEXT_SIZE];

	switch (form) {
	case FORM_ACS:
		snprintf(buf, size, "%04llx", (unsigned long long)v);
		break;
	case FORM_BYTES:
		snprintf(buf, size, "%s", v < 0 ? "unlimited" : bytes_text((uint64_t)v, bytes));
		break;
	case FORM_LANES:
		snprintf(buf, size, "x%lld", (long long)v);
		break;
	case FORM_SPEED: /* in units of MT/s */
		snprintf(buf, size, "%g GT/s", (double)v / 1000);
		break;
	case FORM_PLAIN:
		snprintf(buf, size, "%lld", (long long)v);
		break;
	}
	return buf;
}

/* NULL: it is not a value. */
static const char *value_text(const json_t *value, enum fact_form form, char *buf, size_t size)
{
	if (json_is_string(value))
		return json_string_value(value);
	if (json_is_boolean(value))
		return json_is_true(value) ? "yes" : "no";
	return json_is_integer(value) ? integer_text(json_integer_value(value), form, buf, size)
				      : NULL;
}

/* Whether the document says that the machine has no such thing. */
static bool is_absent(const struct reader *r, const json_t *object, const char *member)
{
	const json_t *number = json_object_get(object, "facts");
	const json_t *origin = NULL;

	if (json_is_integer(number) && json_integer_value(number) >= 0)
		origin = json_array_get(r->origins, (size_t)json_integer_value(number));
	return json_object_get(json_object_get(origin, "absent"), member) != NULL;
}

/* The facts of a place; unknown ones stay out. */
static void take(struct reader *r, enum fact_place place, const char *slot, const json_t *object)
{
	char buf[64];

	for (const struct fact_row *row = fact_rows; row->word; row++) {
		const char *value;

		if (row->place != place)
			continue;
		value = value_text(json_object_get(object, row->member), row->form, buf,
				   sizeof(buf));
		if (!value && is_absent(r, object, row->member))
			value = "absent";
		if (value)
			fleet_set_fact(r->fleet, r->host, row, slot, value);
	}
}

/* ---- devices ---- */

static void add_slot(struct reader *r, const char *slot, const char *address)
{
	struct fleet_slot *s = ARENA_PUSH(r->fleet->arena, r->host->slots, r->host->slot_n);

	s->slot = numbered_text(&r->fleet->words, numbered_number(&r->fleet->words, slot));
	s->address = numbered_text(&r->fleet->words, numbered_number(&r->fleet->words, address));
	numbered_number(&r->placed, address);
}

static const json_t *function_at(const struct reader *r, const char *address)
{
	const unsigned number = numbered_find(&r->addresses, address);

	return number && r->functions ? r->functions[number - 1] : NULL;
}

/*
 * The function of a device and the bridges above it: "GPU3", "1 above GPU3". A bridge above several
 * is the first's.
 */
static void take_ports(struct reader *r, const char *device, const char *address)
{
	char slot[SLOT_SIZE];
	const json_t *f;

	for (int level = 0; level < MOST_LEVELS && *address && !numbered_find(&r->placed, address);
	     level++) {
		f = function_at(r, address);
		if (!f)
			break;
		if (level)
			snprintf(slot, sizeof(slot), "bridge %d above %.32s", level, device);
		else
			snprintf(slot, sizeof(slot), "%.32s", device);
		add_slot(r, slot, address);
		take(r, PLACE_PORT, slot, f);
		address = text_of(f, "parent");
	}
}

static void take_gpus(struct reader *r)
{
	const json_t *gpus = json_object_get(r->machine, "gpus"), *gpu;
	char slot[SLOT_SIZE];
	size_t i;

	json_array_foreach (gpus, i, gpu) {
		snprintf(slot, sizeof(slot), "GPU%zu", i);
		take_ports(r, slot, text_of(gpu, "pci"));
		take(r, PLACE_GPU, slot, gpu);
	}
}

static void take_nics(struct reader *r)
{
	const json_t *nics = json_object_get(r->machine, "rdma"), *nic, *port;
	size_t i, j;

	json_array_foreach (nics, i, nic) {
		const char *name = text_of(nic, "name");
		const json_t *ports = json_object_get(nic, "ports");
		char slot[SLOT_SIZE];

		take_ports(r, name, text_of(nic, "pci"));
		take(r, PLACE_NIC, name, nic);
		json_array_foreach (ports, j, port) {
			snprintf(slot, sizeof(slot), "%.32s port %lld", name,
				 (long long)json_integer_value(json_object_get(port, "port")));
			take(r, PLACE_NIC_PORT, slot, port);
		}
	}
}

/* ---- the host ---- */

/*
 * Parameters that name this host, its disks or its network, and the kernel's file, whose version is
 * a fact of its own.
 */
static bool is_own_word(const char *name)
{
	static const char *const own[] = {"BOOT_IMAGE", "root",        "resume",
					  "initrd",     "ip",          "ifname",
					  "BOOTIF",     "rd.lvm.lv",   "rd.luks.uuid",
					  "rd.md.uuid", "hostname",    "systemd.hostname",
					  "ds",         "cryptdevice", "systemd.machine_id",
					  "netroot",    "ostree"};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strcmp(own[i], name) == 0)
			return true;
	return false;
}

/* Of a parameter that is given several times, all values, within reason. */
static void add_word(struct reader *r, const char *name, const char *value)
{
	enum { MOST_OF_VALUE = 4096 };
	const unsigned number = numbered_number(&r->words, name);
	AUTO_FREE char *both = NULL;
	struct fleet_fact *f;
	const char *first;

	if (number > r->word_n) {
		*ARENA_PUSH(r->scratch, r->word_facts, r->word_n) = r->host->fact_n;
		fleet_set_fact(r->fleet, r->host, &fact_row_word, name, value);
		return;
	}
	f = &r->host->facts[r->word_facts[number - 1]];
	first = numbered_text(&r->fleet->words, f->value);
	if (strlen(first) + strlen(value) >= MOST_OF_VALUE)
		return;
	both = xprintf("%s %s", first, value);
	f->value = numbered_number(&r->fleet->words, both);
}

static void take_words(struct reader *r, const char *cmdline)
{
	AUTO_FREE char *copy = xstrdup(cmdline);
	char *rest = copy, *word, *value;

	r->host->families |= FAMILY_WORDS;
	while ((word = strtok_r(rest, " \t\n", &rest))) {
		value = strchr(word, '=');
		if (value)
			*value++ = '\0';
		if (!is_own_word(word))
			add_word(r, word, value ? value : "present");
	}
}

static void take_nccl(struct reader *r)
{
	const json_t *settings = json_object_get(json_object_get(r->machine, "nccl"), "settings");
	const json_t *s;
	size_t i;

	if (settings)
		r->host->families |= FAMILY_NCCL;
	json_array_foreach (settings, i, s)
		if (json_is_true(json_object_get(s, "in_force")))
			fleet_set_fact(r->fleet, r->host, &fact_row_nccl, text_of(s, "name"),
				       text_of(s, "value"));
}

static void take_pairs(struct reader *r, const json_t *pairs)
{
	char slot[SLOT_SIZE];
	const json_t *p;
	size_t i;

	json_array_foreach (pairs, i, p) {
		const char *verdict = json_string_value(json_object_get(p, "verdict"));

		if (!verdict)
			continue;
		snprintf(slot, sizeof(slot), "%.24s to %.24s", text_of(p, "initiator"),
			 text_of(p, "target"));
		if (strcmp(verdict, "undecided") != 0)
			fleet_set_fact(r->fleet, r->host, &fact_row_verdict, slot, verdict);
		if (*text_of(p, "class"))
			fleet_set_fact(r->fleet, r->host, &fact_row_class, slot,
				       text_of(p, "class"));
	}
}

static void take_rules(struct reader *r, const json_t *rules)
{
	const json_t *rule;
	size_t i;

	json_array_foreach (rules, i, rule) {
		const char *outcome = text_of(rule, "outcome");

		if (*outcome && strcmp(outcome, "unknown") != 0)
			fleet_set_fact(r->fleet, r->host, &fact_row_rule, text_of(rule, "id"),
				       outcome);
	}
}

static void add_finding(struct reader *r, const json_t *finding, const char *address)
{
	struct numbered *w = &r->fleet->words;

	*ARENA_PUSH(r->fleet->arena, r->host->findings, r->host->finding_n) =
		(struct fleet_finding){
			numbered_text(w, numbered_number(w, text_of(finding, "rule"))),
			numbered_text(w, numbered_number(w, text_of(finding, "severity"))),
			numbered_text(w, numbered_number(w, address)),
		};
}

static void take_findings(struct reader *r, const json_t *findings)
{
	const json_t *f, *device;
	size_t i, j;

	json_array_foreach (findings, i, f) {
		const json_t *devices = json_object_get(f, "devices");

		if (!json_array_size(devices))
			add_finding(r, f, "");
		json_array_foreach (devices, j, device)
			if (json_is_string(device))
				add_finding(r, f, json_string_value(device));
	}
}

/* ---- the hardware ---- */

/* "10de:2330" of a device; of one whose function was not seen, its driver: "NIC of mlx5_core". */
static void add_id(const struct reader *r, const json_t *device, const char *kind,
		   struct strbuf *out)
{
	const json_t *f = function_at(r, text_of(device, "pci"));
	const json_t *vendor = json_object_get(f, "vendor"), *id = json_object_get(f, "device");

	if (json_is_integer(vendor) && json_is_integer(id))
		strbuf_printf(out, "%04llx:%04llx", (unsigned long long)json_integer_value(vendor),
			      (unsigned long long)json_integer_value(id));
	else if (*text_of(device, "driver"))
		strbuf_printf(out, "%s of %s", kind, text_of(device, "driver"));
	else
		strbuf_printf(out, "unknown %s", kind);
}

/* Runs of equal devices. GPUs are named by model where it is known, else by their IDs. */
static void add_devices(const struct reader *r, const char *list, const char *member,
			const char *kind, struct fleet_hardware *hardware)
{
	const json_t *devices = json_object_get(r->machine, list), *device;
	const bool nic = strcmp(kind, "NIC") == 0;
	const size_t first = hardware->device_n;
	size_t i;

	json_array_foreach (devices, i, device) {
		struct fleet_devices *last = hardware->device_n > first
						     ? &hardware->devices[hardware->device_n - 1]
						     : NULL;
		AUTO_STRBUF struct strbuf name = {0};

		if (*text_of(device, member))
			strbuf_puts(&name, text_of(device, member));
		else
			add_id(r, device, kind, &name);
		if (last && strcmp(strbuf_str(&name), last->name) == 0)
			last->n++;
		else
			fleet_hardware_add(r->fleet, hardware, nic, 1, strbuf_str(&name));
	}
	if (hardware->device_n == first)
		fleet_hardware_add(r->fleet, hardware, nic, 0, kind);
}

static void set_hardware(struct reader *r)
{
	const json_t *kernel = json_object_get(r->machine, "kernel");
	const json_t *cpu = json_object_get(r->machine, "cpu");
	AUTO_STRBUF struct strbuf platform = {0};
	struct fleet_hardware hardware = {0};

	add_devices(r, "gpus", "model", "GPU", &hardware);
	add_devices(r, "rdma", "hca_type", "NIC", &hardware);
	strbuf_puts(&platform, *text_of(cpu, "name") ? text_of(cpu, "name") : "unknown CPU");
	if (*text_of(kernel, "board"))
		strbuf_printf(&platform, ", %s", text_of(kernel, "board"));
	if (*text_of(kernel, "hypervisor"))
		strbuf_printf(&platform, ", virtual machine (%s)", text_of(kernel, "hypervisor"));
	hardware.platform = strbuf_str(&platform);
	r->host->hardware = fleet_hardware(r->fleet, hardware);
}

int fleet_add_check(struct fleet *f, const char *host, const json_t *check)
{
	struct reader r = {.fleet = f,
			   .machine = json_object_get(check, "machine"),
			   .origins = json_object_get(check, "facts")};
	const json_t *root = json_object_get(r.machine, "root");
	const json_t *kernel = json_object_get(r.machine, "kernel");

	if (!json_is_object(r.machine) || !json_is_array(r.origins))
		return err_set(EINVAL, "not a whole result of onehop check --json: it has no "
				       "machine");
	begin_reading(&r);
	r.host = fleet_host(f, host);
	r.host->documents++;
	r.host->checked = true;
	fleet_forget_facts(r.host);
	r.host->root = json_is_boolean(root) ? json_is_true(root) : -1;
	take_gpus(&r);
	take_nics(&r);
	take(&r, PLACE_DRIVER, "", json_object_get(r.machine, "driver"));
	take(&r, PLACE_KERNEL, "", kernel);
	take(&r, PLACE_PEERMEM, "", json_object_get(r.machine, "peermem"));
	take(&r, PLACE_LIMITS, "", json_object_get(r.machine, "limits"));
	take(&r, PLACE_CPU, "", json_object_get(r.machine, "cpu"));
	if (json_is_string(json_object_get(kernel, "cmdline")))
		take_words(&r, text_of(kernel, "cmdline"));
	take_nccl(&r);
	take_pairs(&r, json_object_get(check, "pairs"));
	take_rules(&r, json_object_get(check, "rules"));
	take_findings(&r, json_object_get(check, "findings"));
	set_hardware(&r);
	end_reading(&r);
	return 0;
}

/* ---- figures ---- */

/* The place of each GPU of a result in the order of addresses, which check has. */
static int *places_of(const struct figures *f)
{
	int *places = xcalloc(f->gpu_n + 1, sizeof(*places));

	for (size_t i = 0; i < f->gpu_n; i++) {
		places[i] = (int)i;
		for (size_t j = 0; j < f->gpu_n; j++)
			if (!f->gpus[j].pci || !f->gpus[i].pci)
				return places;
	}
	for (size_t i = 0; i < f->gpu_n; i++) {
		places[i] = 0;
		for (size_t j = 0; j < f->gpu_n; j++)
			places[i] += strcmp(f->gpus[j].pci, f->gpus[i].pci) < 0;
	}
	return places;
}

static int place(const int *places, const struct figures *f, int gpu)
{
	return gpu >= 0 && (size_t)gpu < f->gpu_n ? places[gpu] : gpu;
}

/* A check that passes now makes an earlier failure of it a thing of the past. */
static void drop_failure(struct fleet_host *h, const struct figure *row, int initiator, int target)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->failure_n; i++) {
		const struct fleet_failure *f = &h->failures[i];

		if (strcmp(f->what, row->what) != 0 || f->initiator != initiator ||
		    f->target != target)
			h->failures[kept++] = *f;
	}
	h->failure_n = kept;
}

static void add_failure(struct fleet *fleet, struct fleet_host *h, const struct figure *row,
			int initiator, int target)
{
	*ARENA_PUSH(fleet->arena, h->failures, h->failure_n) =
		(struct fleet_failure){arena_strdup(fleet->arena, row->what),
				       arena_strdup(fleet->arena, row->kind), initiator, target};
}

static void add_row(struct fleet *fleet, struct fleet_host *h, const struct figures *f,
		    const struct figure *row, const int *places)
{
	struct figure_key key = {.what = row->what,
				 .metric = row->metric,
				 .initiator = place(places, f, row->initiator),
				 .target = place(places, f, row->target),
				 .bytes = row->bytes,
				 .nic = row->nic,
				 .peer = row->peer,
				 .memory = row->memory,
				 .queues = row->queues,
				 .higher_is_better = row->higher_is_better,
				 .unit = row->unit};

	if (row->metric && row->metric->must_hold)
		drop_failure(h, row, key.initiator, key.target);
	if (figure_is_failure(row))
		add_failure(fleet, h, row, key.initiator, key.target);
	else if (figure_measured(row) && row->metric && row->metric->shape != SHAPE_YES_NO)
		fleet_set_reading(fleet, h,
				  (struct fleet_reading){fleet_figure_key(fleet, &key), row->median,
							 row->low, row->high, row->expected});
}

/* Of a host that no check described. */
static void set_figures_hardware(struct fleet *fleet, struct fleet_host *h, const struct figures *f)
{
	struct fleet_hardware hardware = {.platform = "no check"};
	const char *name = f->gpu_n ? f->gpus[0].name : "GPU";

	if (h->checked)
		return;
	fleet_hardware_add(fleet, &hardware, false, (unsigned)f->gpu_n,
			   name ? name : "unknown GPU");
	h->hardware = fleet_hardware(fleet, hardware);
}

void fleet_add_figures(struct fleet *fleet, const char *host, const struct figures *f)
{
	struct fleet_host *h = fleet_host(fleet, host);
	AUTO_FREE int *places = places_of(f);

	h->documents++;
	set_figures_hardware(fleet, h, f);
	for (size_t i = 0; i < f->row_n; i++)
		add_row(fleet, h, f, &f->rows[i], places);
}
