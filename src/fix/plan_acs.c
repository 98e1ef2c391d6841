/* SPDX-License-Identifier: Apache-2.0 */
/* ACS: the registers now, and what clears them at each boot; and sizes of BARs. */
#include "fix/make_plan_impl.h"
#include "machine/acs_parameter.h"
#include "machine/usable.h"

#include <stdio.h>
#include <string.h>

enum { COMMAND_LINE_GUESS = 256 };

struct acs_port {
	const struct change *change;
	const struct pci_function *port;
	unsigned lifetime;
	uint16_t old, new;
	struct acs_kept kept; /* for whom it stays as it is */
};

static const char default_cost[] =
	"devices below this switch are no longer isolated from each other: do not pass any of them to a virtual machine (VFIO)";

/* ---- what is asked for ---- */

static const struct pci_function *find_device(const struct planner *p, const char *name)
{
	struct pci_address address;

	if (!name || pci_address_parse(name, &address) < 0)
		return NULL;
	return pci_find(p->m, address);
}

static bool has_identity(const struct pci_function *f)
{
	return f && fact_known(f->vendor) && fact_known(f->device);
}

static uint32_t identity_of(const struct pci_function *f)
{
	return (uint32_t)f->vendor.value << 16 | (uint32_t)f->device.value;
}

/* A register is written only to the device that was judged. */
static void plan_unknown_device(struct planner *p, const struct change *c)
{
	plan_change_by_hand(
		p, c,
		"run onehop fix on the machine itself: which device is at %s could not be read",
		c->target);
}

void plan_acs_add(struct planner *p, const struct change *c)
{
	struct acs_port port = {
		.change = c,
		.port = find_device(p, c->target),
		.lifetime = plan_lifetime(p, c),
		.old = (uint16_t)c->value.old,
		.new = (uint16_t)c->value.new,
	};

	if (!has_identity(port.port))
		plan_unknown_device(p, c);
	else
		*ARENA_PUSH(p->a, p->acs, p->acs_n) = port;
}

static void purpose_of(struct planner *p, const struct acs_port *a, struct purpose *ret)
{
	purpose_add(p, ret, a->change);
	if (!a->change->cost.n)
		texts_add(p->a, &ret->cost, default_cost);
}

/* ---- ports that stay as they are ---- */

static void say_guest(struct planner *p, const struct pci_function *by, struct texts rules,
		      const char *ports)
{
	plan_manual(p, rules, arena_printf(p->a, "ACS at %s is unchanged", ports),
		    "remove %s from the virtual machine and unbind it from %s, then run this again",
		    by->name, by->driver.value);
	plan_note(
		p,
		"%s is bound to %s, so a virtual machine may use it; ACS at %s isolates it from other devices",
		by->name, by->driver.value, ports);
}

static void say_direct_nic(struct planner *p, const struct pci_function *by, struct texts rules,
			   const char *ports)
{
	plan_left_out(
		p, rules, arena_printf(p->a, "ACS at %s", ports),
		"unchanged: %s is the DMA function of a ConnectX NIC, which needs exact ACS bits on these ports; to check them: `rdma_topo check` (rdma-core 61)",
		by->name);
}

static void refuse(struct planner *p, const struct pci_function *by)
{
	static void (*const say[])(struct planner * p, const struct pci_function *by,
				   struct texts rules, const char *ports) = {
		[ACS_FOR_GUEST] = say_guest,
		[ACS_FOR_DIRECT_NIC] = say_direct_nic,
	};
	enum acs_reason reason = ACS_FREE;
	AUTO_STRBUF struct strbuf ports = {0};
	struct purpose purpose = {0};

	for (size_t i = 0; i < p->acs_n; i++) {
		struct acs_port *a = &p->acs[i];

		if (a->kept.by != by)
			continue;
		reason = a->kept.reason;
		purpose_add(p, &purpose, a->change);
		strbuf_printf(&ports, "%s%s", ports.len ? ", " : "", a->port->name);
	}
	if (ports.len)
		say[reason](p, by, purpose.rules, strbuf_str(&ports));
}

static void refuse_kept(struct planner *p)
{
	for (size_t i = 0; i < p->acs_n; i++)
		p->acs[i].kept = acs_kept(p->m, p->acs[i].port);
	for (size_t i = 0; p->acs_n && i < p->m->pci_n; i++)
		refuse(p, &p->m->pci[i]);
}

/* ---- now ---- */

static bool is_locked_down(const struct planner *p)
{
	return !p->request->image && fact_known(p->m->kernel.lockdown) &&
	       p->m->kernel.lockdown.value != LOCKDOWN_NONE;
}

static void add_register(struct planner *p, const struct acs_port *a, bool again)
{
	struct purpose purpose = {0};
	struct step *s;

	purpose_of(p, a, &purpose);
	s = plan_step(p, PHASE_HARDWARE, STEP_REGISTER, &purpose,
		      "set ACS control of %s from %04x to %04x", a->port->name, a->old, a->new);
	s->target = arena_strdup(p->a, a->port->name);
	s->at = "ACS+6";
	s->value.old = a->old;
	s->value.new = a->new;
	s->mask = a->old ^ a->new;
	s->identity = identity_of(a->port);
	s->again_at_boot = again;
}

static bool is_wanted(const struct acs_port *a, unsigned lifetime)
{
	return !a->kept.by && (a->lifetime & lifetime);
}

static bool runs_already(struct planner *p);

/* What the parameter will do waits for the reboot; what it does not do is not done. */
static void locked_down(struct planner *p, const struct acs_port *a)
{
	static const char why[] =
		"the kernel is locked down (Secure Boot), so registers cannot be written: only the parameter " ACS_PARAMETER
		" works, from the next boot on";

	if (is_wanted(a, CHANGE_KEPT) && !runs_already(p))
		plan_note(p, "%s", why);
	else
		plan_left_out(p, a->change->rules, plan_change_words(p, a->change), "%s", why);
}

static void add_registers(struct planner *p, bool kept_by_unit)
{
	for (size_t i = 0; i < p->acs_n; i++) {
		const struct acs_port *a = &p->acs[i];

		if (!is_wanted(a, CHANGE_NOW) || a->old == a->new)
			continue;
		if (is_locked_down(p))
			locked_down(p, a);
		else
			add_register(p, a, kept_by_unit && is_wanted(a, CHANGE_KEPT));
	}
}

/* ---- at each boot: the parameter ---- */

/* What the command line of the next boot says so far. */
struct said {
	const struct kernel *kernel; /* that boots with it */
	struct strbuf disable;
	char *config; /* the last, which counts; NULL: none */
};

static void said_done(struct said *s)
{
	strbuf_done(&s->disable);
	free(s->config);
}

static void take_config(struct said *s, char *value)
{
	if (!value || !acs_config_known(s->kernel)) {
		free(value);
		return;
	}
	free(s->config);
	s->config = value;
}

static void add_word(void *context, const char *word, const char *file, unsigned line)
{
	AUTO_FREE char *value = acs_parameter_of_word(word);
	struct said *s = context;

	(void)line;
	if (file && strcmp(file, "/proc/cmdline") == 0)
		return;
	acs_list_add(&s->disable, value);
	take_config(s, acs_config_of_word(word));
}

static const char *running_line(const struct planner *p)
{
	return p->request->image ? "" : fact_str_or(p->m->kernel.cmdline, "");
}

/* The ports that a parameter is to clear, in the arena. */
static const struct pci_function **kept_ports(struct planner *p, size_t *ret_n)
{
	const struct pci_function **ports = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < p->acs_n; i++)
		if (is_wanted(&p->acs[i], CHANGE_KEPT))
			*ARENA_PUSH(p->a, ports, *ret_n) = p->acs[i].port;
	return ports;
}

static const char *word_beside(struct planner *p, const struct said *said)
{
	AUTO_STRBUF struct strbuf word = {0};
	size_t n;
	const struct pci_function **ports = kept_ports(p, &n);

	acs_word(strbuf_str(&said->disable), said->config, ports, n, &word);
	return arena_strdup(p->a, strbuf_str(&word));
}

static void hear_line(struct said *said, const char *line)
{
	AUTO_FREE char *disable = acs_parameter_of_line(line);

	acs_list_add(&said->disable, disable);
	take_config(said, acs_config_of_line(line));
}

/* All words of the line count as others' wish, though of disable_acs_redir= the kernel takes the last alone. */
static void hear_words(struct planner *p, struct said *said, const char *line)
{
	plan_each_word_of(p, line, add_word, said);
}

static bool is_grubby(struct planner *p)
{
	return plan_boot_way(p)->keeper == KEEPER_GRUBBY;
}

/* Each entry of GRUB's that is a file has its own line, and grubby gives all of them one word. */
static bool hear_entries(struct planner *p, struct said *said)
{
	const struct boot *b = p->line.b;
	const char *first = NULL;

	for (size_t i = 0; i < b->entry_n; i++) {
		CLEANUP(said_done) struct said own = {.kernel = said->kernel};
		const char *word;

		hear_words(p, &own, b->entries[i].options);
		word = word_beside(p, &own);
		first = first ? first : word;
		if (strcmp(word, first) != 0)
			return false;
	}
	if (b->entry_n)
		hear_words(p, said, b->entries[0].options);
	return true;
}

/* GRUB's files make one line. Where only a shell could tell which, all that they say is taken for it. */
static bool hear_grub(struct planner *p, struct said *said)
{
	const char *line = plan_grub_line(p);

	if (line) {
		hear_words(p, said, line);
		return true;
	}
	plan_each_word(p, add_word, said);
	return !said->config;
}

/*
 * What the next boot's command line says so far. Only the last such parameter counts, so the one to
 * be added has to name what others name already. Each boot entry of systemd-boot gets the word that
 * goes with its own line; this is the running kernel's. NULL, or a reason why one word would be
 * wrong.
 */
static const char *hear(struct planner *p, struct said *said)
{
	const char *line = plan_is_systemd_boot(p) ? plan_loader_line(p) : NULL;

	if (line)
		hear_line(said, line);
	else if (is_grubby(p) && !hear_entries(p, said))
		return "the boot entries set ACS differently, and grubby would set the same pci= in all";
	else if (plan_is_grub(p) && !is_grubby(p) && !hear_grub(p, said))
		return "pci=config_acs= is in GRUB's files, and whether it takes effect depends on shell code";
	/* It may still have ports of a fix that was undone since. */
	if (!line && !plan_has_boot_files(p) && !(is_grubby(p) && p->line.b->entry_n))
		hear_line(said, running_line(p));
	return NULL;
}

static const char *parameter(struct planner *p, const char **ret_why)
{
	CLEANUP(said_done) struct said said = {.kernel = &p->m->kernel};

	*ret_why = hear(p, &said);
	return word_beside(p, &said);
}

/* Whether a line clears, for that kernel, all ports that are to be kept so. */
static bool clears_all(struct planner *p, const struct kernel *kernel, const char *line)
{
	AUTO_FREE char *disable = acs_parameter_of_line(line);
	AUTO_FREE char *config = acs_config_known(kernel) ? acs_config_of_line(line) : NULL;
	size_t n;
	const struct pci_function **ports = kept_ports(p, &n);

	for (size_t i = 0; i < n; i++)
		if (!acs_parameters_clear(disable, config, ports[i]))
			return false;
	return true;
}

const char *plan_acs_word(struct planner *p, const struct kernel *kernel, const char *line)
{
	CLEANUP(said_done) struct said said = {.kernel = kernel};

	if (clears_all(p, kernel, line))
		return NULL;
	hear_line(&said, line);
	return word_beside(p, &said);
}

/* The running kernel's command line has all of them. */
static bool runs_already(struct planner *p)
{
	return clears_all(p, &p->m->kernel, running_line(p));
}

/* An image's kernel is not the running one. */
static bool kernel_knows(const struct planner *p)
{
	return p->request->image || acs_parameter_known(&p->m->kernel);
}

static bool fits(const struct planner *p, const char *word)
{
	size_t now = fact_known(p->m->kernel.cmdline) ? strlen(p->m->kernel.cmdline.value)
						      : COMMAND_LINE_GUESS;

	return now + 1 + strlen(word) <= COMMAND_LINE_MAX;
}

/* Why the boot loader is not asked; NULL: it can be. */
static const char *why_no_parameter(struct planner *p, const char *word)
{
	if (!kernel_knows(p))
		return "this kernel is older than 4.19 and does not support pci=disable_acs_redir=";
	if (!fits(p, word))
		return "the parameter for all these ports does not fit into the kernel's command line";
	if (plan_boot_way(p)->by_hand)
		return "onehop cannot change this boot loader's command line";
	return plan_word_why_not(p, word);
}

static void want_rows(struct planner *p)
{
	for (size_t i = 0; i < p->acs_n; i++)
		if (is_wanted(&p->acs[i], CHANGE_KEPT))
			plan_want(p, "acs", "%s %04x", p->acs[i].port->name, p->acs[i].new);
}

/* ---- at each boot: a unit ---- */

/*
 * Until udev has bound drivers: one of those that give a device to virtual machines forbids it. It may
 * time out, or not be there.
 */
static const char *settle(struct planner *p)
{
	return plan_exists(p, "usr/bin/udevadm") == THERE_NO
		       ? "-/bin/udevadm settle --timeout=60"
		       : "-/usr/bin/udevadm settle --timeout=60";
}

static void keep_by_unit(struct planner *p, const struct purpose *purpose)
{
	const struct unit unit = {
		.name = UNIT_ACS,
		.about = "ACS registers set by \"onehop fix\"",
		.early = true,
		.condition = "/var/lib/onehop",
		.first = settle(p),
		.start = arena_printf(p->a, "%s fix --at-boot", plan_own_program(p)),
	};

	plan_unit(p, &unit, purpose);
}

/* ---- which of the two ---- */

/* A unit does the registers again that the journal has, so there have to be some. */
static bool unit_can(struct planner *p)
{
	for (size_t i = 0; i < p->acs_n; i++)
		if (is_wanted(&p->acs[i], CHANGE_KEPT) &&
		    (!is_wanted(&p->acs[i], CHANGE_NOW) || p->acs[i].old == p->acs[i].new))
			return false;
	return !p->request->image && !is_locked_down(p) && plan_has_systemd(p) &&
	       !plan_etc_is_generated(p);
}

/* The unit would do, and only a program that it may run is missing. */
static bool lacks_program(struct planner *p)
{
	if (!unit_can(p) || plan_own_program(p))
		return false;
	plan_manual(
		p, NO_RULES, "set ACS at each boot with a systemd unit",
		"run this again with an onehop installed where only root can write, such as /usr/bin/onehop: " UNIT_ACS
		" runs it as root at each boot");
	return true;
}

static bool join_kept(struct planner *p, struct purpose *ret)
{
	for (size_t i = 0; i < p->acs_n; i++)
		if (is_wanted(&p->acs[i], CHANGE_KEPT))
			purpose_of(p, &p->acs[i], ret);
	return ret->rules.n || ret->why.n;
}

static void keep_by_parameter(struct planner *p, const char *word, const char *why,
			      const struct purpose *purpose)
{
	const bool by_hand = plan_boot_way(p)->by_hand;

	if (why && (!by_hand || !kernel_knows(p) || !fits(p, word))) {
		plan_manual(
			p, purpose->rules, "ACS after a reboot", "%s; %s", why,
			p->request->image
				? "run `onehop fix` in that system, once it runs: a unit may set the registers at each boot"
			: is_locked_down(p)
				? "and a locked-down kernel (Secure Boot) allows nothing else"
				: "run `onehop fix` again after each boot");
		return;
	}
	if (text_starts_with(word, ACS_CONFIG))
		plan_note(
			p,
			"the kernel's command line has config_acs=, which overrides disable_acs_redir=: the bits for these ports are added in front of it");
	plan_word_add(p, word, purpose)->acs = true;
	if (!by_hand)
		want_rows(p);
}

/* Returns whether a unit keeps the registers. */
static bool keep(struct planner *p)
{
	struct purpose purpose = {0};
	const char *word, *why;

	if (!join_kept(p, &purpose))
		return false;
	if (runs_already(p)) {
		plan_note(p, "the running kernel already has pci=%s= for these ports",
			  strstr(running_line(p), "config_acs=") ? "config_acs"
								 : "disable_acs_redir");
		return false;
	}
	word = parameter(p, &why);
	why = why ? why : why_no_parameter(p, word);
	if (!why || !unit_can(p) || lacks_program(p)) {
		keep_by_parameter(p, word, why, &purpose);
		return false;
	}
	plan_note(p, "ACS is kept by a systemd unit, not by a kernel parameter: %s", why);
	keep_by_unit(p, &purpose);
	want_rows(p);
	return true;
}

void plan_acs_finish(struct planner *p)
{
	refuse_kept(p);
	add_registers(p, keep(p));
}

/* ---- sizes of BARs ---- */

void plan_bar_size(struct planner *p, const struct change *c)
{
	const struct pci_function *f = find_device(p, c->target);
	struct purpose purpose = {0};
	struct step *s;

	if (!has_identity(f)) {
		plan_unknown_device(p, c);
		return;
	}
	if (!fact_absent(f->driver)) {
		plan_left_out(
			p, c->rules, plan_change_words(p, c),
			"it cannot be resized while %s is bound to it: stop the programs that use it, unbind it (/sys/bus/pci/devices/ADDRESS/driver/unbind), and run this again",
			fact_str_or(f->driver, "a driver"));
		return;
	}
	purpose_add(p, &purpose, c);
	s = plan_step(p, PHASE_HARDWARE, STEP_BAR_SIZE, &purpose,
		      "resize BAR%u of %s from %u MiB to %u MiB", c->bar, f->name, c->value.old,
		      c->value.new);
	s->target = arena_strdup(p->a, f->name);
	s->at = arena_printf(p->a, "%u", c->bar);
	s->value.old = c->value.old;
	s->value.new = c->value.new;
	s->identity = identity_of(f);
}
