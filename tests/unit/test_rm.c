/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's resource manager: how it is asked (through a stand-in), what its answers become, and
 * what the rules about P2P through BAR1 make of them. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "capture/capture_impl.h"
#include "diagnose/diagnose.h"
#include "machine/gpu_impl.h"
#include "machine/rm_api.h"
#include "recording/recording.h"

#include "build_machine.h"
#include "support/support.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char here[] = "built by a test";

/* Words as client_resource.c of the driver puts them together. */
enum {
	NVLINK = RM_P2P_NVLINK | RM_P2P_ATOMICS | RM_P2P_READS | RM_P2P_WRITES,
	BAR1 = RM_P2P_PCI_BAR1 | RM_P2P_PCI | RM_P2P_READS | RM_P2P_WRITES,
	MAILBOX = RM_P2P_PROP | RM_P2P_PCI | RM_P2P_READS | RM_P2P_WRITES,
};

/* ---- a stand-in for /dev/nvidiactl ---- */

struct standin {
	unsigned gpus;
	uint32_t caps;    /* of every pair */
	size_t caps_size; /* that it takes */
	uint32_t bad_size_status;
	int open_error;         /* 0 or a negative errno */
	int call_error;         /* of every ioctl */
	uint32_t alloc_status;  /* of the client */
	uint32_t caps_status;   /* of RM_GET_P2P_CAPS_V2 */
	uint32_t ids_status;    /* of RM_GET_ATTACHED_IDS */
	uint16_t slot;          /* of every GPU */
	unsigned interruptions; /* that are left */
	unsigned opened, closed, bad_sizes;
	bool full; /* no end mark in the list of GPUs */
	pthread_mutex_t lock;
};

#define CLIENT 0xc1d00001u

static struct standin with_gpus(unsigned n)
{
	return (struct standin){.gpus = n,
				.caps = BAR1,
				.caps_size = sizeof(struct rm_p2p_caps),
				.bad_size_status = RM_INVALID_ARGUMENT,
				.lock = PTHREAD_MUTEX_INITIALIZER};
}

static uint32_t id_of(unsigned i)
{
	return 0x4100 + (i << 8);
}

static int standin_open(void *context)
{
	struct standin *s = context;

	s->opened++;
	return s->open_error;
}

static void standin_close(void *context)
{
	struct standin *s = context;

	s->closed++;
}

static uint32_t give_ids(const struct standin *s, struct rm_attached_ids *p)
{
	for (unsigned i = 0; i < RM_MAX_GPUS; i++)
		p->gpus[i] = i < s->gpus || s->full ? id_of(i) : RM_NO_GPU;
	return s->ids_status;
}

static uint32_t give_pci(const struct standin *s, struct rm_pci_info *p)
{
	p->domain = 0;
	p->bus = (uint16_t)(p->gpu >> 8);
	p->slot = s->slot;
	return RM_OK;
}

static uint32_t give_caps(struct standin *s, struct rm_p2p_caps *p, size_t size)
{
	static const uint8_t status[RM_INDEX_N] = {0, 0, 5, 5, 5, 5, 0, 5, 0};

	if (size != s->caps_size) {
		s->bad_sizes++;
		return s->bad_size_status;
	}
	if (p->gpu_n != 2 || p->gpus[0] == p->gpus[1] || p->caps)
		return RM_INVALID_ARGUMENT;
	p->caps = s->caps;
	memcpy(p->status, status, sizeof(status));
	p->peer_ids[1] = 3;
	p->peer_ids[2] = 4;
	return s->caps_status;
}

static int control(struct standin *s, struct rm_control *c)
{
	void *p = (void *)(uintptr_t)c->parameters;

	if (c->client != CLIENT || c->object != CLIENT || c->flags)
		c->status = RM_INVALID_ARGUMENT;
	else if (c->command == RM_GET_ATTACHED_IDS && c->parameters_size == 128)
		c->status = give_ids(s, p);
	else if (c->command == RM_GET_PCI_INFO && c->parameters_size == 12)
		c->status = give_pci(s, p);
	else if (c->command == RM_GET_P2P_CAPS_V2)
		c->status = give_caps(s, p, c->parameters_size);
	else
		c->status = RM_NOT_SUPPORTED;
	return 0;
}

static int answer(struct standin *s, unsigned long request, void *argument)
{
	struct rm_alloc *a = argument;

	if (s->interruptions) {
		s->interruptions--;
		return -EINTR;
	}
	if (s->call_error)
		return s->call_error;
	if (request == RM_IOCTL_CONTROL)
		return control(s, argument);
	if (request != RM_IOCTL_ALLOC || a->class != RM_CLASS_CLIENT || a->root || a->parent)
		return -EINVAL;
	a->object = CLIENT;
	a->status = s->alloc_status;
	return 0;
}

static int standin_call(void *context, unsigned long request, void *argument)
{
	struct standin *s = context;
	int r;

	pthread_mutex_lock(&s->lock);
	r = answer(s, request, argument);
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* ---- a machine with GPUs at 0000:<41 + i>:00.0 ---- */

static void put(struct source *map, const char *path, const char *text)
{
	source_put_file(map, path, text, strlen(text));
}

static struct source *machine_with(unsigned gpus)
{
	struct source *map = source_new_map("test");
	char names[1024] = "";

	for (unsigned i = 0; i < gpus; i++) {
		AUTO_FREE char *f = xprintf("sys/bus/pci/devices/0000:%x:00.0", 0x41 + i);
		AUTO_FREE char *vendor = xprintf("%s/vendor", f), *device = xprintf("%s/device", f);
		AUTO_FREE char *class = xprintf("%s/class", f);

		put(map, vendor, "0x10de\n");
		put(map, device, "0x2684\n");
		put(map, class, "0x030000\n");
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "0000:%x:00.0\n",
			 0x41 + i);
	}
	source_put_list(map, "sys/bus/pci/devices", names);
	put(map, "proc/driver/nvidia/version",
	    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.105.08  Release Build\n");
	return map;
}

/* Asks the stand-in, and puts what comes of it into the machine. */
static char *ask(struct source *map, struct standin *s)
{
	const struct rm_device device = {standin_open, standin_call, standin_close, s};
	char *text = NULL;
	size_t size = 0;

	rm_capture_from(map, &device, &text, &size);
	assert_int_equal(strlen(text), size);
	source_put_file(map, "rm.json", text, size);
	return text;
}

static struct machine *read_parts(struct source *map, unsigned parts)
{
	struct machine_request request = {.parts = MACHINE_PCI | MACHINE_GPUS | parts};
	struct machine *m = machine_read(map, &request);

	source_free(map);
	return m;
}

static struct machine *ask_and_read(unsigned gpus, struct standin *s)
{
	struct source *map = machine_with(gpus);

	free(ask(map, s));
	return read_parts(map, MACHINE_RM);
}

/* ---- asking ---- */

static void every_pair_is_answered_both_ways(void **state)
{
	struct standin s = with_gpus(4);
	struct machine *m = ask_and_read(4, &s);

	(void)state;
	assert_int_equal(s.opened, 1);
	assert_int_equal(s.closed, 1);
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < 4; j++) {
			const struct rm_p2p *p = &machine_pair(m, i, j)->rm;

			if (i == j) {
				assert_true(fact_unknown(p->connection));
				continue;
			}
			assert_true(fact_is(p->connection, RM_CONNECTION_BAR1));
			assert_true(fact_is(p->reads, 1));
			assert_true(fact_is(p->writes, 1));
			assert_true(fact_is(p->atomics, 0));
			assert_true(fact_is(p->caps, BAR1));
		}
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
}

static void document_keeps_all_that_was_said(void **state)
{
	struct source *map = machine_with(2);
	struct standin s = with_gpus(2);
	AUTO_FREE char *text = ask(map, &s);

	(void)state;
	assert_string_equal(
		text,
		"{\"gpus\": [\"0000:41:00.0\", \"0000:42:00.0\"],\n \"pairs\": [\n"
		"  {\"gpus\": [0, 1], \"caps\": 8259, \"status\": [0, 0, 5, 5, 5, 5, 0, 5, 0], "
		"\"peer_ids\": [3, 4]}\n"
		" ]}\n");
	source_free(map);
}

/* Before 550 the parameters were shorter, and RM takes no other size. */
static void older_releases_are_asked_in_their_size(void **state)
{
	static const uint32_t refusals[] = {RM_INVALID_ARGUMENT, RM_INVALID_PARAM_STRUCT};
	struct standin s;
	struct machine *m;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		s = with_gpus(3);
		s.caps_size = RM_P2P_CAPS_SIZE_535;
		s.bad_size_status = refusals[i];
		m = ask_and_read(3, &s);
		assert_int_equal(s.bad_sizes, 1);
		assert_true(fact_is(machine_pair(m, 2, 0)->rm.connection, RM_CONNECTION_BAR1));
		machine_free(m);
	}
	s = with_gpus(2);
	s.caps_size = sizeof(struct rm_p2p_caps) + 4; /* a release to come */
	m = ask_and_read(2, &s);
	assert_true(fact_unknown(machine_pair(m, 0, 1)->rm.connection));
	assert_non_null(strstr(machine_pair(m, 0, 1)->rm.connection.from, "status 0x1f"));
	machine_free(m);
}

static void interrupted_calls_are_made_again(void **state)
{
	struct standin s = with_gpus(2);
	struct machine *m;

	(void)state;
	s.interruptions = 3;
	m = ask_and_read(2, &s);
	assert_true(fact_is(machine_pair(m, 0, 1)->rm.connection, RM_CONNECTION_BAR1));
	machine_free(m);
}

static void refusals_are_unknown_with_their_reason(void **state)
{
	static const struct {
		struct standin s;
		const char *why;
	} rows[] = {
		{{.open_error = -EACCES}, "/dev/nvidiactl: Permission denied"},
		{{.open_error = -ENOENT}, "/dev/nvidiactl: No such file or directory"},
		{{.call_error = -ENOTTY}, "no client of the resource manager: Inappropriate ioctl"},
		{{.alloc_status = RM_INSUFFICIENT_PERMISSIONS}, "status 0x1b"},
		{{.alloc_status = 0xffffffff}, "Protocol error"},
		{{.ids_status = RM_NOT_SUPPORTED}, "GPU_GET_ATTACHED_IDS: status 0x56"},
		{{.caps_status = RM_INVALID_ARGUMENT}, "P2P_CAPS_V2: status 0x1f"},
		{{.slot = 32}, "GPU_GET_PCI_INFO: Protocol error"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct standin s = rows[i].s;
		const struct rm_p2p *p;
		struct machine *m;

		s.gpus = 2;
		s.caps_size = sizeof(struct rm_p2p_caps);
		s.bad_size_status = RM_INVALID_PARAM_STRUCT;
		pthread_mutex_init(&s.lock, NULL);
		m = ask_and_read(2, &s);
		p = &machine_pair(m, 0, 1)->rm;
		assert_true(fact_unknown(p->connection) && fact_unknown(p->reads) &&
			    fact_unknown(p->caps));
		if (!strstr(p->connection.from, rows[i].why))
			fail_msg("'%s' lacks '%s'", p->connection.from, rows[i].why);
		assert_int_equal(s.closed, s.open_error ? 0 : 1);
		machine_free(m);
	}
}

/* Opening the node would load the module. */
static void absent_module_is_not_touched(void **state)
{
	struct source *map = machine_with(2);
	struct standin s = with_gpus(2);
	AUTO_FREE char *text = NULL;
	struct machine *m;

	(void)state;
	source_put_error(map, "proc/driver/nvidia/version", SOURCE_FILE, ENOENT);
	text = ask(map, &s);
	assert_int_equal(s.opened, 0);
	m = read_parts(map, MACHINE_RM);
	assert_string_equal(machine_pair(m, 0, 1)->rm.connection.from,
			    "resource manager: the nvidia module is not loaded");
	machine_free(m);
}

static void gpus_that_are_not_started_stay_unknown(void **state)
{
	struct standin s = with_gpus(2);
	struct machine *m = ask_and_read(3, &s);

	(void)state;
	assert_true(fact_is(machine_pair(m, 1, 0)->rm.connection, RM_CONNECTION_BAR1));
	assert_string_equal(machine_pair(m, 0, 2)->rm.connection.from,
			    "the driver has not started GPU2 0000:43:00.0");
	assert_string_equal(machine_pair(m, 2, 1)->rm.connection.from,
			    "the driver has not started GPU2 0000:43:00.0");
	machine_free(m);
	s = with_gpus(1);
	m = ask_and_read(2, &s);
	assert_string_equal(machine_pair(m, 0, 1)->rm.connection.from,
			    "the driver has not started GPU1 0000:42:00.0");
	machine_free(m);
	s = with_gpus(0);
	m = ask_and_read(2, &s);
	assert_true(fact_unknown(machine_pair(m, 0, 1)->rm.connection));
	machine_free(m);
}

/* A list without an end mark, and more GPUs than sysfs shows (a container). */
static void full_list_is_taken_and_no_more(void **state)
{
	struct standin s = with_gpus(0);
	struct machine *m;

	(void)state;
	s.full = true;
	m = ask_and_read(3, &s);
	assert_true(fact_is(machine_pair(m, 2, 1)->rm.connection, RM_CONNECTION_BAR1));
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
}

/* ---- decoding ---- */

static void words_become_connections(void **state)
{
	static const struct {
		uint32_t caps;
		int connection; /* -1: unknown */
		bool reads, writes, atomics;
	} rows[] = {
		{0, RM_CONNECTION_NONE, false, false, false},
		{NVLINK, RM_CONNECTION_NVLINK, true, true, true},
		{BAR1, RM_CONNECTION_BAR1, true, true, false},
		{BAR1 | RM_P2P_ATOMICS, RM_CONNECTION_BAR1, true, true, true},
		{MAILBOX, RM_CONNECTION_MAILBOX, true, true, false},
		{MAILBOX & ~RM_P2P_READS, RM_CONNECTION_MAILBOX, false, true, false},
		{RM_P2P_C2C | RM_P2P_READS | RM_P2P_WRITES, RM_CONNECTION_C2C, true, true, false},
		{0x780, RM_CONNECTION_NVLINK_INDIRECT, true, true, true},
		{BAR1 | MAILBOX, -1, true, true, false},
		{RM_P2P_PCI | RM_P2P_READS, -1, true, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct standin s = with_gpus(2);
		const struct rm_p2p *p;
		struct machine *m;

		s.caps = rows[i].caps;
		m = ask_and_read(2, &s);
		p = &machine_pair(m, 1, 0)->rm;
		if (rows[i].connection < 0)
			assert_true(fact_unknown(p->connection));
		else
			assert_true(fact_is(p->connection, rows[i].connection));
		assert_true(fact_is(p->reads, rows[i].reads));
		assert_true(fact_is(p->writes, rows[i].writes));
		assert_true(fact_is(p->atomics, rows[i].atomics));
		assert_true(fact_is(p->caps, rows[i].caps));
		machine_free(m);
	}
}

static void strange_documents_tell_nothing(void **state)
{
	static const char *const documents[] = {
		"{}",
		"{\"gpus\": 7, \"pairs\": {\"a\": 1}}",
		"{\"gpus\": [\"0000:41:00.0\", 4], \"pairs\": [{\"gpus\": [0, 1], \"caps\": 3}]}",
		"{\"gpus\": [\"0000:41:00.0\", \"0000:42:00.0\"], \"pairs\": [7, {\"gpus\": [0]}, "
		"{\"gpus\": [-1, 1e9], \"caps\": 1}, {\"gpus\": [0, 99], \"caps\": 1}]}",
		"{\"gpus\": [\"0000:41:00.0\", \"0000:42:00.0\"], \"pairs\": [{\"gpus\": [0, 1], "
		"\"caps\": 99999999999}]}",
		"{\"gpus\": [\"0000:41:00.0\", \"0000:42:00.0\"], \"pairs\": [{\"gpus\": [0, 1], "
		"\"caps\": \"8259\"}]}",
		"{\"gpus\": [\"0000:41:00.0\", \"0000:41:00.0\"], \"pairs\": [{\"gpus\": [0, 1], "
		"\"caps\": 8259}]}",
		"{\"gpus\": [\"0000:41:00.0\", \"0000:42:00.0\"], \"pairs\": [{\"gpus\": [0, 1], "
		"\"refused\": -9223372036854775808}]}",
		"{\"unavailable\": 3}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(documents) / sizeof(*documents); i++) {
		struct source *map = machine_with(2);
		struct machine *m;

		put(map, "rm.json", documents[i]);
		m = read_parts(map, MACHINE_RM);
		if (!fact_unknown(machine_pair(m, 0, 1)->rm.connection))
			fail_msg("%s tells a connection", documents[i]);
		assert_non_null(machine_pair(m, 0, 1)->rm.connection.from);
		/* Without a list of GPUs it is refused with a reason. */
		assert_int_equal(m->trouble_n, strstr(documents[i], "\"gpus\": [") ? 0 : 1);
		machine_free(m);
	}
}

static void malformed_document_is_a_trouble(void **state)
{
	struct source *map = machine_with(2);
	struct machine *m;

	(void)state;
	put(map, "rm.json", "{\"gpus\": [\n\n]");
	m = read_parts(map, MACHINE_RM);
	assert_int_equal(m->trouble_n, 1);
	assert_string_equal(m->troubles[0].where, "rm.json:3");
	assert_string_equal(machine_pair(m, 0, 1)->rm.reads.from, "rm.json is malformed");
	machine_free(m);
}

static void what_was_not_asked_or_recorded_is_unknown(void **state)
{
	struct source *map = machine_with(2);
	struct machine *m;

	(void)state;
	put(map, "rm.json", "no JSON at all");
	m = read_parts(map, 0);
	assert_string_equal(machine_pair(m, 0, 1)->rm.connection.from,
			    "the resource manager was not queried");
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
	m = read_parts(machine_with(2), MACHINE_RM);
	assert_string_equal(machine_pair(m, 0, 1)->rm.connection.from,
			    "not in the recording: rm.json");
	machine_free(m);
}

/* Asked in the background beside NVML, and once: a recording keeps it. */
static void recording_holds_the_answer(void **state)
{
	struct machine_request request = {.parts = MACHINE_ALL};
	struct source *map = machine_with(2), *kept = source_new_map("kept"), *tee;
	struct standin s = with_gpus(2);
	AUTO_FREE char *text = ask(map, &s), *again = NULL;
	struct machine *m;
	size_t size;

	(void)state;
	tee = source_new_tee(map, kept);
	m = machine_read(tee, &request);
	assert_true(fact_is(machine_pair(m, 0, 1)->rm.connection, RM_CONNECTION_BAR1));
	machine_free(m);
	source_free(tee);
	source_free(map);
	assert_int_equal(source_read(kept, &again, &size, "rm.json"), 0);
	assert_string_equal(again, text);
	m = machine_read(kept, &request);
	assert_true(fact_is(machine_pair(m, 1, 0)->rm.connection, RM_CONNECTION_BAR1));
	machine_free(m);
	source_free(kept);
}

/* ---- rules ---- */

static void set_rm(struct machine *m, uint32_t caps, enum rm_connection connection)
{
	for (size_t i = 0; i < m->gpu_n * m->gpu_n; i++)
		m->pairs[i].rm = (struct rm_p2p){
			.connection = fact_int(connection, here),
			.reads = fact_int((caps & RM_P2P_READS) != 0, here),
			.writes = fact_int((caps & RM_P2P_WRITES) != 0, here),
			.atomics = fact_int(0, here),
			.caps = fact_int(caps, here),
		};
}

/* The rule's verdict; its finding's sentence must hold `says` where it is bad. */
static void expect(const struct machine *m, const char *id, enum verdict want, const char *says)
{
	struct topology *t = topology_new(m);
	struct diagnosis *d = diagnose(t);
	bool found = false;

	for (size_t i = 0; i < d->outcome_n; i++)
		if (!strcmp(d->outcomes[i].rule->id, id))
			assert_string_equal(verdict_word(d->outcomes[i].verdict),
					    verdict_word(want));
	for (size_t i = 0; i < d->finding_n; i++) {
		const struct finding *f = &d->findings[i];

		if (strcmp(f->rule->id, id))
			continue;
		found = true;
		assert_true(*f->remedy && f->evidence_n);
		if (says && !strstr(f->sentence, says))
			fail_msg("'%s' lacks '%s'", f->sentence, says);
	}
	assert_true(found == (want == VERDICT_BAD));
	diagnosis_free(d);
	topology_free(t);
}

static struct machine *edited(const char *version)
{
	struct machine *m = build_two_root_ports();

	m->driver.module_version = fact_str(version, here);
	m->driver.flavor = fact_int(DRIVER_OPEN, here);
	m->driver.registry_dwords = fact_str("", here);
	m->driver.bar1_p2p.loaded = fact_int(1, here);
	for (size_t i = 0; i < m->gpu_n; i++)
		m->gpus[i].pci->boot_vga = fact_int(0, here);
	return m;
}

static void dead_mailbox_is_an_error(void **state)
{
	struct machine *m = edited("580.105.08");

	(void)state;
	set_rm(m, BAR1, RM_CONNECTION_BAR1);
	expect(m, "p2p-mailbox", VERDICT_OK, NULL);
	set_rm(m, MAILBOX, RM_CONNECTION_MAILBOX);
	expect(m, "p2p-mailbox", VERDICT_BAD, "no registry key selects BAR1");
	m->driver.registry_dwords = fact_str("RMPcieP2PType=1", here);
	m->gpus[1].pci->boot_vga = fact_int(1, here);
	expect(m, "p2p-mailbox", VERDICT_BAD, "a screen or console");
	m->gpus[0].bar1_bytes = m->gpus[1].bar1_bytes = fact_int(256 << 20, here);
	expect(m, "p2p-mailbox", VERDICT_BAD, "BAR1 does not cover the memory");
	m->driver.bar1_p2p.loaded = fact_int(0, here);
	expect(m, "p2p-mailbox", VERDICT_BAD, "stubs");
	build_free(m);
}

static void mailbox_of_a_card_that_has_one_is_fine(void **state)
{
	struct machine *m = edited("580.105.08");

	(void)state;
	set_rm(m, MAILBOX, RM_CONNECTION_MAILBOX);
	for (size_t i = 0; i < m->gpu_n; i++)
		build_model(&m->gpus[i], "NVIDIA RTX 6000 Ada Generation", 89);
	expect(m, "p2p-mailbox", VERDICT_NA, NULL);
	build_free(m);
}

/* Keys of one card: whether anything is lost depends on which card the driver numbers first. */
static void keys_on_one_side(void **state)
{
	static const char id[] = "p2p-keys-one-side";
	struct machine *m = edited("580.105.08");
	const char *first = m->gpus[0].pci->name, *second = m->gpus[1].pci->name;

	(void)state;
	build_model(&m->gpus[1], "NVIDIA RTX 6000 Ada Generation", 89);
	expect(m, id, VERDICT_OK, NULL);
	m->driver.registry_dwords = fact_str("", here);
	m->driver.registry_dwords_per_device =
		fact_str(arena_printf(m->arena, "pci=%s;ForceP2P=0x211;RMPcieP2PType=1", first),
			 here);
	expect(m, id, VERDICT_BAD, "the driver uses a mailbox");
	set_rm(m, MAILBOX, RM_CONNECTION_MAILBOX);
	expect(m, id, VERDICT_OK, NULL);
	expect(m, "p2p-mailbox", VERDICT_BAD, "for only one card of the pair");
	set_rm(m, BAR1, RM_CONNECTION_BAR1);
	expect(m, id, VERDICT_OK, NULL);
	set_rm(m, MAILBOX, RM_CONNECTION_NONE);
	build_status(m, P2P_READ, P2P_NOT_SUPPORTED);
	build_status(m, P2P_WRITE, P2P_NOT_SUPPORTED);
	m->pairs[1].rm.reads = m->pairs[1].rm.writes = fact_int(0, here);
	m->pairs[2].rm.reads = m->pairs[2].rm.writes = fact_int(0, here);
	expect(m, id, VERDICT_BAD, "the driver refuses the pair");
	m->driver.registry_dwords_per_device = fact_str(
		arena_printf(
			m->arena,
			"pci=%s;ForceP2P=0x211;RMPcieP2PType=1;pci=%s;ForceP2P=0x11;RMPcieP2PType=1",
			first, second),
		here);
	expect(m, id, VERDICT_OK, NULL);
	build_model(&m->gpus[0], "NVIDIA RTX 6000 Ada Generation", 89);
	expect(m, id, VERDICT_NA, NULL);
	build_free(m);
}

static void unasked_or_refused_pairs_are_not_judged(void **state)
{
	struct machine *m = edited("580.105.08");

	(void)state;
	expect(m, "p2p-mailbox", VERDICT_UNKNOWN, NULL);
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	build_status(m, P2P_WRITE, P2P_CHIPSET_NOT_SUPPORTED);
	expect(m, "p2p-mailbox", VERDICT_NA, NULL);
	build_free(m);
}

/* One cause, one finding: what p2p-forced knows, p2p-mailbox does not repeat, and the reverse. */
static void forced_is_told_once(void **state)
{
	struct machine *m = edited("580.105.08");

	(void)state;
	m->driver.registry_dwords = fact_str("ForceP2P=0x211", here);
	m->driver.bar1_p2p.loaded = fact_int(0, here);
	set_rm(m, MAILBOX, RM_CONNECTION_MAILBOX);
	expect(m, "p2p-forced", VERDICT_BAD, "stubs");
	expect(m, "p2p-mailbox", VERDICT_NA, NULL);
	m->driver.bar1_p2p.loaded = fact_int_unknown("test");
	expect(m, "p2p-forced", VERDICT_OK, NULL);
	expect(m, "p2p-mailbox", VERDICT_BAD, "unknown whether");
	set_rm(m, BAR1, RM_CONNECTION_BAR1);
	expect(m, "p2p-forced", VERDICT_OK, NULL);
	m->driver.module_version = fact_str("550.90.07", here); /* looks at ForceP2P first */
	expect(m, "p2p-forced", VERDICT_BAD, "is unknown");
	build_free(m);
}

static void mailbox_blocks_the_pair(void **state)
{
	struct machine *m = edited("580.105.08");
	struct topology *t;

	(void)state;
	set_rm(m, MAILBOX, RM_CONNECTION_MAILBOX);
	t = topology_new(m);
	assert_int_equal(topology_path(t, 0, 1)->chain[CHAIN_DRIVER].reason, REASON_DRIVER_MAILBOX);
	assert_int_equal(topology_path(t, 0, 1)->verdict, PAIR_BLOCKED);
	topology_free(t);
	/* Forced, and RM says that BAR1 can be used: no doubt is left. */
	m->driver.registry_dwords = fact_str("ForceP2P=0x211", here);
	m->driver.bar1_p2p.loaded = fact_int_unknown("test");
	set_rm(m, BAR1, RM_CONNECTION_BAR1);
	t = topology_new(m);
	assert_int_equal(topology_path(t, 0, 1)->chain[CHAIN_DRIVER].state, CHAIN_OK);
	topology_free(t);
	build_free(m);
}

static void console_shifts_bar1_on_two_branches(void **state)
{
	static const struct {
		const char *version;
		enum verdict verdict;
	} rows[] = {
		{"560.35.03", VERDICT_NA},  {"565.77", VERDICT_NA},    {"570.86.16", VERDICT_BAD},
		{"575.64.05", VERDICT_BAD}, {"580.65.06", VERDICT_NA}, {"595.45.04", VERDICT_NA},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct machine *m = edited(rows[i].version);

		m->driver.bar1_p2p.mark = fact_str_absent(here);
		m->gpus[0].pci->boot_vga = fact_int(1, here);
		expect(m, "unlock-console", rows[i].verdict, "GPU0");
		build_free(m);
	}
}

static void expect_exposure(const struct machine *m, size_t i, size_t j, enum chain_reason reason,
			    enum pair_verdict verdict)
{
	struct topology *t = topology_new(m);
	const struct path *p = topology_path(t, i, j);

	assert_string_equal(chain_reason_word(p->chain[CHAIN_EXPOSURE].reason),
			    chain_reason_word(reason));
	assert_string_equal(pair_verdict_word(p->verdict), pair_verdict_word(verdict));
	topology_free(t);
}

/* Those who reach into the BAR1 that the console shifts, and not the way back. */
static void console_makes_pairs_doubtful(void **state)
{
	struct machine *m = edited("570.86.16");

	(void)state;
	m->driver.bar1_p2p.mark = fact_str_absent(here);
	m->gpus[1].display_active = fact_int(1, here);
	expect_exposure(m, 0, 1, REASON_BAR1_SHIFTED, PAIR_SUSPECT);
	expect_exposure(m, 1, 0, REASON_EXPOSED_BAR1, PAIR_DIRECT);
	m->driver.bar1_p2p.mark = fact_str_unknown("test");
	expect_exposure(m, 0, 1, REASON_BAR1_SHIFT_UNKNOWN, PAIR_UNDECIDED);
	build_free(m);
}

static void console_matters_for_foreign_edits_only(void **state)
{
	struct machine *m = edited("570.86.16");

	(void)state;
	m->driver.bar1_p2p.mark = fact_str_absent(here);
	expect(m, "unlock-console", VERDICT_OK, NULL);
	m->gpus[1].display_active = fact_int(1, here);
	expect(m, "unlock-console", VERDICT_BAD, "GPU1");
	m->driver.bar1_p2p.mark = fact_str(EDIT_MARK, here);
	expect(m, "unlock-console", VERDICT_OK, NULL);
	m->driver.bar1_p2p.mark = fact_str_unknown("test");
	expect(m, "unlock-console", VERDICT_UNKNOWN, NULL);
	m->driver.bar1_p2p.loaded = fact_int_unknown("test");
	expect(m, "unlock-console", VERDICT_UNKNOWN, NULL);
	m->driver.bar1_p2p.loaded = fact_int(0, here);
	expect(m, "unlock-console", VERDICT_NA, NULL);
	build_free(m);
}

static void add_fault(struct machine *m)
{
	build_log(m, LOG_XID, m->gpus[0].pci);
	m->log[m->log_n - 1].code = fact_int(31, here);
	m->log[m->log_n - 1].text = "MMU Fault: ENGINE CE3 FAULT_INFO_TYPE_UNSUPPORTED_KIND";
	m->log_read = fact_int(1, here);
}

static void half_done_unlock_names_what_is_missing(void **state)
{
	struct machine *m = edited("550.90.07");

	(void)state;
	m->log_read = fact_int(1, here);
	expect(m, "unlock-half-done", VERDICT_OK, NULL);
	add_fault(m);
	expect(m, "unlock-half-done", VERDICT_BAD, "nv_gpu_ops.c");
	build_log(m, LOG_NVRM, NULL);
	m->log[1].text = "NVRM: nvAssertFailed: Assertion failed: x @ field_desc.h:272";
	expect(m, "unlock-half-done", VERDICT_BAD, "gmmu_fmt.c");
	m->driver.bar1_p2p.loaded = fact_int(0, here);
	expect(m, "unlock-half-done", VERDICT_BAD, "stubs");
	m->driver.bar1_p2p.loaded = fact_int(1, here);
	set_rm(m, MAILBOX, RM_CONNECTION_MAILBOX);
	expect(m, "unlock-half-done", VERDICT_BAD, "no registry key selects BAR1");
	build_free(m);
}

static void lost_copies_tell_of_it_too(void **state)
{
	struct machine *m = edited("550.90.07");

	(void)state;
	m->log_read = fact_int(1, here);
	build_observed(m, OBSERVED_PEER_COPY, 0, 1, false);
	m->observed[0].text = "shifted";
	expect(m, "unlock-half-done", VERDICT_OK, NULL);
	m->observed[0].text = "zeros";
	expect(m, "unlock-half-done", VERDICT_BAD, "no checked copy arrived");
	build_model(&m->gpus[1], "NVIDIA RTX 6000 Ada Generation", 89);
	expect(m, "unlock-half-done", VERDICT_OK, NULL);
	build_free(m);
}

/* Two cards of an edited driver, which the driver connects through BAR1. */
static struct machine *managed(const char *version, int capability, const char *model)
{
	struct machine *m = edited(version);

	for (size_t i = 0; i < m->gpu_n; i++)
		build_model(&m->gpus[i], model, capability);
	for (size_t i = 0; i < m->gpu_n * m->gpu_n; i++)
		m->pairs[i].rm.connection = fact_int(RM_CONNECTION_BAR1, here);
	m->driver.uvm_gate.loaded = m->driver.uvm_gate.installed = fact_int(0, here);
	return m;
}

static struct machine *managed_4090(const char *version)
{
	return managed(version, 89, "NVIDIA GeForce RTX 4090");
}

static void managed_memory_without_a_gate(void **state)
{
	static const char id[] = "uvm-managed";
	struct machine *m = managed_4090("595.45.04");

	(void)state;
	expect(m, id, VERDICT_BAD, "both GPUs and managed memory (or HMM)");
	m->driver.uvm_gate.installed = fact_int(1, here); /* it waits for a reboot */
	expect(m, id, VERDICT_BAD, NULL);
	m->driver.uvm_gate.loaded = fact_int(1, here);
	expect(m, id, VERDICT_OK, NULL);
	/* It is not in the kernel: what would be loaded counts. */
	m->driver.uvm_gate.loaded = fact_int_absent(here);
	expect(m, id, VERDICT_OK, NULL);
	m->driver.uvm_gate.installed = fact_int(0, here);
	expect(m, id, VERDICT_BAD, NULL);
	m->driver.uvm_gate.installed = fact_int_absent(here);
	expect(m, id, VERDICT_NA, NULL);
	m->driver.uvm_gate.loaded = fact_int_unknown("test");
	expect(m, id, VERDICT_UNKNOWN, NULL);
	m->driver.uvm_gate.loaded = fact_int(0, here);
	m->driver.bar1_p2p.loaded = fact_int_unknown("test");
	expect(m, id, VERDICT_UNKNOWN, NULL);
	m->driver.bar1_p2p.loaded = fact_int(0, here);
	expect(m, id, VERDICT_NA, NULL);
	m->driver.flavor = fact_int(DRIVER_PROPRIETARY, here);
	expect(m, id, VERDICT_NA, NULL);
	build_free(m);
	m = managed_4090("550.90.07");
	expect(m, id, VERDICT_BAD, "enables peer access");
	build_free(m);
}

/* Blackwell's page tables name such a peer; and what the driver refuses is not used. */
static void managed_memory_that_needs_no_gate(void **state)
{
	struct machine *m = managed("595.45.04", 120, "NVIDIA GeForce RTX 5090");

	(void)state;
	expect(m, "uvm-managed", VERDICT_NA, NULL);
	build_free(m);
	m = managed_4090("595.45.04");
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	build_status(m, P2P_WRITE, P2P_CHIPSET_NOT_SUPPORTED);
	expect(m, "uvm-managed", VERDICT_NA, NULL);
	build_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(managed_memory_without_a_gate),
		cmocka_unit_test(managed_memory_that_needs_no_gate),
		cmocka_unit_test(every_pair_is_answered_both_ways),
		cmocka_unit_test(document_keeps_all_that_was_said),
		cmocka_unit_test(older_releases_are_asked_in_their_size),
		cmocka_unit_test(interrupted_calls_are_made_again),
		cmocka_unit_test(refusals_are_unknown_with_their_reason),
		cmocka_unit_test(absent_module_is_not_touched),
		cmocka_unit_test(gpus_that_are_not_started_stay_unknown),
		cmocka_unit_test(full_list_is_taken_and_no_more),
		cmocka_unit_test(words_become_connections),
		cmocka_unit_test(strange_documents_tell_nothing),
		cmocka_unit_test(malformed_document_is_a_trouble),
		cmocka_unit_test(what_was_not_asked_or_recorded_is_unknown),
		cmocka_unit_test(recording_holds_the_answer),
		cmocka_unit_test(dead_mailbox_is_an_error),
		cmocka_unit_test(mailbox_of_a_card_that_has_one_is_fine),
		cmocka_unit_test(keys_on_one_side),
		cmocka_unit_test(unasked_or_refused_pairs_are_not_judged),
		cmocka_unit_test(forced_is_told_once),
		cmocka_unit_test(mailbox_blocks_the_pair),
		cmocka_unit_test(console_shifts_bar1_on_two_branches),
		cmocka_unit_test(console_makes_pairs_doubtful),
		cmocka_unit_test(console_matters_for_foreign_edits_only),
		cmocka_unit_test(half_done_unlock_names_what_is_missing),
		cmocka_unit_test(lost_copies_tell_of_it_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
