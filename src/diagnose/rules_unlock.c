/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about P2P through BAR1 on cards that have no other way over PCIe: what an edited driver, or
 * one that is made to say yes, really does. */
#include "diagnose/rules.h"

#include <assert.h>
#include <string.h>

static const struct rm_p2p *rm_of(struct rule_run *run, size_t i, size_t j)
{
	static const struct rm_p2p nobody;

	return run->m->pairs ? &machine_pair(run->m, i, j)->rm : &nobody;
}

static bool needs_bar1(struct rule_run *run, size_t i)
{
	return support_of(run->m, &run->m->gpus[i]).way == MECHANISM_BAR1;
}

static bool says_ok(struct rule_run *run, size_t i, size_t j)
{
	const struct gpu_pair *p = run->m->pairs ? machine_pair(run->m, i, j) : NULL;

	return p && (fact_is(p->p2p[P2P_READ], P2P_OK) || fact_is(p->p2p[P2P_WRITE], P2P_OK) ||
		     fact_is(p->rm.reads, 1) || fact_is(p->rm.writes, 1));
}

/* Over PCIe only BAR1 can carry what the driver allows between these two. */
static bool is_bar1_pair(struct rule_run *run, size_t i, size_t j)
{
	const struct path *p = topology_path(run->t, i, j);

	return (needs_bar1(run, i) || needs_bar1(run, j)) && says_ok(run, i, j) &&
	       !(p && path_is_nvlink(p)) &&
	       !fact_is(rm_of(run, i, j)->connection, RM_CONNECTION_NVLINK);
}

/* In texts it may be what was left out, whatever else is known to block the pair. */
static bool answer_unknown(struct rule_run *run, size_t i, size_t j)
{
	const struct gpu_pair *p = run->m->pairs ? machine_pair(run->m, i, j) : NULL;

	if (run->m->text_part_n)
		return !p || (fact_unknown(p->p2p[P2P_READ]) && fact_unknown(p->rm.reads));
	return topology_path(run->t, i, j)->chain[CHAIN_DRIVER].state == CHAIN_UNKNOWN;
}

/* ---- evidence ---- */

static void evidence_rm(struct rule_run *run, struct finding *f, size_t i, size_t j)
{
	const struct rm_p2p *p = rm_of(run, i, j);

	if (fact_known(p->connection))
		finding_evidence(run, f, p->connection.from,
				 run_text(run, "resource manager, GPU%zu and GPU%zu", i, j),
				 "%s, caps 0x%04llx", rm_connection_word(p->connection.value),
				 (unsigned long long)fact_or(p->caps, 0));
	else
		finding_evidence(run, f, FACT_WHY(p->connection),
				 run_text(run, "resource manager, GPU%zu and GPU%zu", i, j),
				 "unknown");
}

static void evidence_driver(struct rule_run *run, struct finding *f)
{
	const struct nvidia_driver *d = &run->m->driver;

	evidence_str(run, f, "module", d->module_version);
	evidence_yes_no(run, f, "the loaded module supports P2P through BAR1 on every chip",
			d->bar1_p2p.loaded);
	evidence_registry(run, f);
}

/* ---- why BAR1 is not what the driver uses ---- */

static bool lacks_open_modules(struct rule_run *run, const struct gpu *g)
{
	(void)g;
	return fact_is(run->m->driver.flavor, DRIVER_PROPRIETARY);
}

static bool has_stubs(struct rule_run *run, const struct gpu *g)
{
	return support_of(run->m, g).mechanism == MECHANISM_BAR1_EDIT;
}

static bool has_small_bar1(struct rule_run *run, const struct gpu *g)
{
	(void)run;
	return support_bar1(g).cover == BAR1_TOO_SMALL;
}

static bool lacks_key(struct rule_run *run, const struct gpu *g)
{
	const struct nvidia_driver *d = &run->m->driver;

	return support_of(run->m, g).mechanism == MECHANISM_BAR1 && fact_known(d->module_version) &&
	       !fact_unknown(d->registry_dwords) && registry_bar1_choice(d, g) == BAR1_NOT_CHOSEN;
}

/* Whether there is anything that a key could choose. */
static bool is_not_seen(struct rule_run *run, const struct gpu *g)
{
	return support_of(run->m, g).mechanism == MECHANISM_UNKNOWN;
}

static bool shares_bar1(struct rule_run *run, const struct gpu *g)
{
	(void)run;
	return fact_is(card_has_console(g), 1);
}

/* In the order in which they rule each other out. */
static const struct cause {
	bool (*holds)(struct rule_run *run, const struct gpu *g);
	const char *what, *remedy;
	bool or_unforced; /* taking ForceP2P out would do too, if it is set */
} causes[] = {
	{lacks_open_modules,
	 "the proprietary modules do not support P2P through BAR1 for this card",
	 "install the open modules; `onehop unlock` shows whether this machine can "
	 "use P2P through BAR1",
	 true},
	{has_stubs, "the loaded module has only stubs for P2P through BAR1",
	 "install modules that support P2P through BAR1 (`onehop unlock`)", true},
	{has_small_bar1, "BAR1 does not cover the memory, so the driver cannot map all of it",
	 "make BAR1 as large as the memory (onehop check --explain bar1-small)", true},
	{is_not_seen, "unknown whether the loaded module supports P2P through BAR1", MAILBOX_UNSEEN,
	 true},
	{lacks_key, "no registry key selects BAR1 instead of mailboxes",
	 "set the options that `onehop unlock` prints for this machine (RMPcieP2PType=1, before "
	 "driver 575 RMForceP2PType=2, for both cards of each pair), rebuild the initramfs and "
	 "reload the module",
	 false},
	{shares_bar1,
	 "a screen or console on the card uses BAR1 space that the mapping of the "
	 "card's memory needs",
	 "use another card, or the BMC, for the screen (firmware setup: primary "
	 "display)",
	 false},
};

static const struct cause *cause_for(struct rule_run *run, const struct gpu *g)
{
	for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++)
		if (causes[i].holds(run, g))
			return &causes[i];
	return NULL;
}

static bool is_one_sided(struct rule_run *run, size_t i, size_t j)
{
	return registry_keys_one_sided(&run->m->driver, &run->m->gpus[i], &run->m->gpus[j]);
}

/* Where all else that BAR1 takes is there. */
static const struct cause one_side = {
	NULL,
	"the registry keys are set for only one card of the pair, and the driver "
	"reads the key that selects BAR1 from the card with the lower number",
	"set the same keys for both cards (NVreg_RegistryDwordsPerDevice; `onehop "
	"unlock` prints the line), rebuild the initramfs and reload the module",
	true,
};

/* Of the two, the card that needs BAR1 and lacks something first. */
static const struct cause *cause_for_pair(struct rule_run *run, size_t i, size_t j)
{
	const struct cause *c = NULL;

	if (needs_bar1(run, j))
		c = cause_for(run, &run->m->gpus[j]);
	if (!c && needs_bar1(run, i))
		c = cause_for(run, &run->m->gpus[i]);
	return (!c || c->holds == lacks_key) && is_one_sided(run, i, j) ? &one_side : c;
}

/* ---- mailboxes that are not there ---- */

static bool is_forced(struct rule_run *run, size_t i, size_t j)
{
	return driver_forced_p2p(&run->m->driver, &run->m->gpus[i]) ||
	       driver_forced_p2p(&run->m->driver, &run->m->gpus[j]);
}

static void report_mailbox(struct rule_run *run)
{
	const struct pair_set *set = run->pairs;
	const size_t i = run->initiator, j = run->target;
	const struct cause *c = cause_for_pair(run, i, j);
	struct finding *f = finding_here(
		run, CONFIDENCE_CERTAIN,
		"the " ABOUT
		" allows P2P for %s through a mailbox, which GeForce cards do not have, so "
		"copies are lost or read as zero%s%s",
		pair_set_text(run, set), c ? ": " : "", c ? c->what : "");

	finding_names_pairs(run, f, set);
	if (c)
		finding_remedy(
			run, f, "%s%s", c->remedy,
			c->or_unforced && is_forced(run, i, j)
				? "; until then remove ForceP2P from the driver's options in /etc/modprobe.d"
				: "");
	evidence_rm(run, f, i, j);
	evidence_str(run, f, run_text(run, "GPU%zu", j), run->m->gpus[j].model);
	evidence_bytes(run, f, "BAR1", run->m->gpus[j].bar1_bytes);
	evidence_bytes(run, f, "memory", run->m->gpus[j].vram_bytes);
	evidence_driver(run, f);
}

/* What p2p-forced says of these two for certain is not said again. */
static bool is_reported(struct rule_run *run, size_t i, size_t j)
{
	return p2p_forced_for_certain(run, &run->m->gpus[i]) ||
	       p2p_forced_for_certain(run, &run->m->gpus[j]);
}

/* The resource manager's answer for this pair would tell for certain. */
static bool may_use_mailbox(struct rule_run *run, size_t i, size_t j)
{
	return needs_bar1(run, i) && needs_bar1(run, j) &&
	       !fact_known(rm_of(run, i, j)->connection) &&
	       !path_is_nvlink(topology_path(run->t, i, j));
}

/* A test of copies used P2P between cards that have no mailboxes, and got wrong data. */
static void heard_wrong_copy(struct rule_run *run)
{
	const struct observed *o = message_heard(run, MESSAGE_COPY_WRONG);
	struct pair_set set = pair_set_new(run);
	struct finding *f;

	if (!o)
		return;
	FOR_EACH_GPU_PAIR (i, j, run)
		if (may_use_mailbox(run, i, j))
			pair_set_add(&set, i, j);
	if (!set.n)
		return;
	f = finding_add(run, CONFIDENCE_POSSIBLE, SUBJECT(DRIVER, "driver"),
			"the " ABOUT " allows P2P and copies return wrong data: it uses mailboxes, "
			"which these GeForce cards lack, or P2P through BAR1 is not complete");
	finding_names_pairs(run, f, &set);
	evidence_text(run, f, o->from, o->text);
	evidence_str(run, f, "GPU0", run->m->gpus[0].model);
	evidence_str(run, f, "module", run->m->driver.module_version);
}

static enum verdict probe_mailbox(struct rule_run *run)
{
	struct fact_int connection = rm_of(run, run->initiator, run->target)->connection;

	if (!is_bar1_pair(run, run->initiator, run->target) ||
	    is_reported(run, run->initiator, run->target))
		return VERDICT_NA;
	if (!fact_known(connection))
		return rule_unknown(run, FACT_WHY(connection), "how the driver connects the GPUs");
	return connection.value == RM_CONNECTION_MAILBOX ? VERDICT_BAD : VERDICT_OK;
}

/* ---- keys on one side of a pair ---- */

/* One of them needs BAR1, and CUDA would pair them over PCIe. */
static bool may_need_keys(struct rule_run *run, size_t i, size_t j)
{
	const struct path *p = topology_path(run->t, i, j);

	return (needs_bar1(run, i) || needs_bar1(run, j)) &&
	       card_same_generation(&run->m->gpus[i], &run->m->gpus[j]) && !path_is_nvlink(p) &&
	       !fact_is(rm_of(run, i, j)->connection, RM_CONNECTION_NVLINK);
}

/*
 * p2p-mailbox tells it of pairs that the driver leads astray, and BAR1 in use needs no more keys.
 */
static bool rm_tells(struct rule_run *run, size_t i, size_t j)
{
	struct fact_int connection = rm_of(run, i, j)->connection;

	return (fact_is(connection, RM_CONNECTION_MAILBOX) && says_ok(run, i, j)) ||
	       (fact_is(connection, RM_CONNECTION_BAR1) && driver_means_bar1(run->m, i, j));
}

static bool any_allowed(struct rule_run *run, const struct pair_set *set)
{
	FOR_EACH_GPU_PAIR (i, j, run)
		if (pair_set_in(set, i, j) && says_ok(run, i, j))
			return true;
	return false;
}

static void report_one_side(struct rule_run *run)
{
	const struct pair_set *set = run->pairs;
	const bool allowed = any_allowed(run, set);
	struct finding *f = finding_here(
		run, allowed ? CONFIDENCE_LIKELY : CONFIDENCE_CERTAIN,
		"the registry keys for P2P through BAR1 are set for only one card of %s: %s",
		pair_set_text(run, set),
		allowed ? "ForceP2P on either card makes the driver allow P2P, but unless the card "
			  "with the lower number has the key that selects BAR1, the driver uses a "
			  "mailbox and data is lost"
			: "the driver refuses the pair");

	if (!allowed)
		f->severity = SEVERITY_INFO;
	finding_names_pairs(run, f, set);
	for (size_t k = 0; k < 2; k++) {
		const struct gpu *g = &run->m->gpus[k ? run->target : run->initiator];

		finding_evidence(run, f, NULL,
				 run_text(run, "GPU%zu, %s", g->index,
					  fact_str_or(g->model, "model unknown")),
				 "ForceP2P %s, BAR1 %s",
				 driver_forced_p2p(&run->m->driver, g) ? "set" : "not set",
				 registry_bar1_choice(&run->m->driver, g) == BAR1_NOT_CHOSEN
					 ? "not chosen"
					 : "chosen");
	}
	evidence_registry(run, f);
}

static enum verdict probe_one_side(struct rule_run *run)
{
	const size_t i = run->initiator, j = run->target;
	struct fact_str keys = run->m->driver.registry_dwords;

	if (!may_need_keys(run, i, j))
		return VERDICT_NA;
	if (fact_unknown(keys))
		return rule_unknown(run, FACT_WHY(keys), "the driver's registry keys");
	return is_one_sided(run, i, j) && !rm_tells(run, i, j) ? VERDICT_BAD : VERDICT_OK;
}

/* ---- a console at the start of BAR1 ---- */

/* The driver's own line, where it is printed: "Static bar1 mapped offset 0x1800000 size ...". */
static const struct log_line *offset_line(struct rule_run *run)
{
	static const char mark[] = "Static bar1 mapped offset 0x";

	FOR_EACH_IN(struct log_line, l, run->m->log, run->m->log_n)
	{
		const char *at = strstr(l->text, mark);

		if (at &&
		    strspn(at + strlen(mark), "0") < strspn(at + strlen(mark), "0123456789abcdef"))
			return l;
	}
	return NULL;
}

static void report_console(struct rule_run *run, const struct gpu *g, const struct pair_set *set)
{
	const struct log_line *l = offset_line(run);
	struct finding *f = finding_add(
		run, l ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY, subject_gpu(run, g),
		"a console occupies the start of BAR1 of " ABOUT
		", and the loaded edited modules are not onehop's: public edits of driver %d "
		"count from the start of BAR1, so peers write to the wrong place, or peer "
		"access is refused (CUDA error 205)",
		driver_branch(run->m->driver.module_version));
	f->pairs = set->n;
	f->pair_map = set->in;
	evidence_yes_no(run, f, run_text(run, "boot_vga of %s", g->pci->name), g->pci->boot_vga);
	evidence_yes_no(run, f, "display active", g->display_active);
	evidence_str(run, f, "onehop's mark in the module file", run->m->driver.bar1_p2p.mark);
	evidence_driver(run, f);
	if (l)
		finding_evidence(run, f, NULL, "kernel log", "%s", l->text);
}

/* The pairs that reach into this GPU's BAR1 and whose exposure is judged so. */
static struct pair_set pairs_exposed(struct rule_run *run, const struct gpu *g,
				     enum chain_reason reason)
{
	struct pair_set set = pair_set_new(run);
	size_t j = g->index;

	for (size_t i = 0; i < run->m->gpu_n; i++)
		if (i != j && says_ok(run, i, j) &&
		    topology_path(run->t, i, j)->chain[CHAIN_EXPOSURE].reason == reason)
			pair_set_add(&set, i, j);
	return set;
}

static enum verdict probe_console(struct rule_run *run)
{
	const struct nvidia_driver *d = &run->m->driver;
	bool allowed = false;

	FOR_EACH_GPU_PAIR (i, j, run)
		allowed |= is_bar1_pair(run, i, j);
	if (!allowed || !driver_release(d)->console_shifts || fact_is(d->bar1_p2p.loaded, 0))
		return VERDICT_NA;
	FOR_EACH_GPU (g, run) {
		struct pair_set set = pairs_exposed(run, g, REASON_BAR1_SHIFTED);

		if (set.n)
			report_console(run, g, &set);
	}
	FOR_EACH_GPU (g, run)
		if (!run->found && pairs_exposed(run, g, REASON_BAR1_SHIFT_UNKNOWN).n)
			return rule_unknown(run, FACT_WHY(support_console_shifts(d, g)),
					    "whether a console shifts BAR1 of GPU%zu", g->index);
	return rule_verdict(run, VERDICT_OK);
}

/* ---- BAR1 in windows ---- */

/* Checked data went into GPU j's memory over PCIe. */
static bool is_proven_target(struct rule_run *run, size_t j)
{
	for (size_t i = 0; i < run->m->gpu_n; i++) {
		const struct path *p = i == j ? NULL : topology_path(run->t, i, j);

		if (p && !path_is_nvlink(p) &&
		    p->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_WORKS)
			return true;
	}
	return false;
}

/* A static mapping of all memory is what other edits make, and it cannot be larger than BAR1. */
static enum verdict probe_windows(struct rule_run *run)
{
	const struct gpu *first = NULL;
	const char *names = NULL;
	struct finding *f;
	size_t n = 0;

	FOR_EACH_GPU (g, run) {
		if (!needs_bar1(run, g->index) || support_bar1(g).cover != BAR1_TOO_SMALL ||
		    !is_proven_target(run, g->index))
			continue;
		first = first ? first : g;
		names = run_list(run, names, run_text(run, "GPU%zu", g->index));
		n++;
	}
	if (!first && !run->m->observed_n)
		return VERDICT_NA;
	if (!first)
		return generations_known(run);
	f = finding_add(
		run, CONFIDENCE_LIKELY, SUBJECT(GPUS, "BAR1"),
		ABOUT " of %s (%s) does not cover the memory (%s), but checked copies arrived: the "
		      "driver maps BAR1 in windows, one for each allocation that peers use, as "
		      "public edits for such cards do; together the windows cannot exceed BAR1",
		gpu_list_text(run, names, n), run_bytes(run, (uint64_t)support_bar1(first).size),
		run_bytes(run, (uint64_t)fact_or(first->vram_bytes, 0)));
	f->pci = first->pci;
	evidence_bytes(run, f, "BAR1", first->bar1_bytes);
	evidence_bytes(run, f, "memory", first->vram_bytes);
	evidence_driver(run, f);
	return VERDICT_BAD;
}

/* ---- what is reported of edited modules ---- */

static bool any_bar1_pair(struct rule_run *run)
{
	FOR_EACH_GPU_PAIR (i, j, run)
		if (is_bar1_pair(run, i, j))
			return true;
	return false;
}

static enum verdict probe_lockup(struct rule_run *run)
{
	const struct nvidia_driver *d = &run->m->driver;
	struct fact_str kernel = run->m->kernel.release;
	const struct lockup *l;
	struct finding *f;

	if (!fact_is(d->bar1_p2p.loaded, 1) || !any_bar1_pair(run))
		return VERDICT_NA;
	if (!fact_known(kernel) && driver_lockup(d, NULL))
		return rule_unknown(run, FACT_WHY(kernel), "the kernel's release");
	l = driver_lockup(d, fact_str_or(kernel, ""));
	if (!l)
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_POSSIBLE, SUBJECT(HOST, "kernel"),
		"with edited modules of driver %d, %s (%s); the cause is unknown, so this is only "
		"a note",
		l->release, l->what, l->reference);
	evidence_str(run, f, "kernel", kernel);
	evidence_driver(run, f);
	return VERDICT_BAD;
}

static enum verdict probe_custom(struct rule_run *run)
{
	struct pair_set set = pair_set_new(run);
	struct finding *f;

	FOR_EACH_GPU_PAIR (i, j, run)
		if (is_bar1_pair(run, i, j) &&
		    !fact_is(rm_of(run, i, j)->connection, RM_CONNECTION_MAILBOX))
			pair_set_add(&set, i, j);
	if (fact_is(run->m->driver.bar1_p2p.loaded, 0))
		return VERDICT_OK;
	if (generations_known(run) != VERDICT_OK)
		return VERDICT_UNKNOWN;
	FOR_EACH_GPU_PAIR (i, j, run)
		if (!set.n && (needs_bar1(run, i) || needs_bar1(run, j)) &&
		    answer_unknown(run, i, j))
			return rule_unknown(run, FACT_WHY(run->m->driver.nvml),
					    "the P2P status of GPU%zu->GPU%zu", i, j);
	if (!set.n)
		return VERDICT_OK;
	if (!fact_is(run->m->driver.bar1_p2p.loaded, 1))
		return VERDICT_NA;
	f = finding_add(
		run, CONFIDENCE_POSSIBLE, SUBJECT(RESULT, "inference engines"),
		"vLLM's own all-reduce reads peer memory through BAR1 on %s (it disables "
		"itself for more than two GPUs without NVLink). With it, wrong output and "
		"resets were reported where NCCL worked on the same path. The same symptoms "
		"occurred with stock drivers, and once with P2P off and a loose cable, so a "
		"failure does not prove that the edit is wrong",
		pair_set_text(run, &set));
	f->pair_map = set.in;
	evidence_driver(run, f);
	return VERDICT_BAD;
}

/* ---- managed memory ---- */

/* The driver lets these two reach each other, and nvidia_uvm cannot make entries for that. */
static bool is_gate_pair(struct rule_run *run, size_t i, size_t j)
{
	bool by_bar1 =
		is_bar1_pair(run, i, j) ||
		(says_ok(run, i, j) && fact_is(rm_of(run, i, j)->connection, RM_CONNECTION_BAR1));

	return by_bar1 &&
	       (card_needs_uvm_gate(&run->m->gpus[i]) || card_needs_uvm_gate(&run->m->gpus[j]));
}

/* From 590 on the pair is made as soon as a process has both GPUs; before, by peer access. */
static const char *who_is_hit(const struct rule_run *run)
{
	return driver_release(&run->m->driver)->uvm_bar1
		       ? "one process that uses both GPUs and managed memory (or HMM)"
		       : "one process that enables peer access and uses managed memory";
}

static void report_managed(struct rule_run *run)
{
	const struct pair_set *set = run->pairs;
	const struct nvidia_driver *d = &run->m->driver;
	struct finding *f = finding_here(
		run,
		release_tried(driver_branch(d->module_version)) ? CONFIDENCE_CERTAIN
								: CONFIDENCE_LIKELY,
		"the " ABOUT
		" is edited for P2P through BAR1, and nvidia_uvm has no gate that keeps "
		"managed memory away from it on %s: %s is enough for page table entries that "
		"point to wrong memory, or for Xid 31 and then Xid 154 on all GPUs, which "
		"only a reboot clears",
		pair_set_text(run, set), who_is_hit(run));

	finding_names_pairs(run, f, set);
	if (fact_is(d->uvm_gate.installed, 1))
		finding_remedy(
			run, f,
			"reboot: the nvidia_uvm on disk has the gate, the loaded one does not");
	evidence_yes_no(run, f, "the loaded nvidia_uvm has the gate", d->uvm_gate.loaded);
	finding_expects(f, "yes");
	evidence_yes_no(run, f, "the one on disk has it", d->uvm_gate.installed);
	finding_expects(f, "yes");
	evidence_str(run, f, "onehop's mark in the file of nvidia", d->bar1_p2p.mark);
	evidence_driver(run, f);
}

static enum verdict probe_managed(struct rule_run *run)
{
	const struct nvidia_driver *d = &run->m->driver;
	struct fact_int gate = driver_uvm_gate(d);

	if (!is_gate_pair(run, run->initiator, run->target) ||
	    !(support_module_kinds(d) & 1U << MODULE_EDITED))
		return VERDICT_NA;
	if (!fact_is(d->bar1_p2p.loaded, 1))
		return rule_unknown(run, FACT_WHY(d->bar1_p2p.loaded),
				    "whether the loaded nvidia module is edited");
	if (fact_unknown(gate))
		return rule_unknown(run, FACT_WHY(gate),
				    "whether nvidia_uvm has the gate for managed memory");
	if (fact_is(gate, 0))
		return VERDICT_BAD;
	return fact_known(gate) ? VERDICT_OK : VERDICT_NA;
}

/* ---- for rules_log.c: what an unfinished edit lacks ---- */

static bool any_mailbox(struct rule_run *run, const struct gpu *g)
{
	for (size_t j = 0; j < run->m->gpu_n; j++)
		if (j != g->index &&
		    fact_is(rm_of(run, g->index, j)->connection, RM_CONNECTION_MAILBOX))
			return true;
	return false;
}

const char *unlock_lacks(struct rule_run *run, const struct gpu *g, bool overflow)
{
	const struct nvidia_driver *d = &run->m->driver;
	const struct cause *c;

	if (!g || !needs_bar1(run, g->index))
		return NULL;
	c = cause_for(run, g);
	if (any_mailbox(run, g))
		return c ? c->what : "the driver uses a mailbox for peers, not BAR1";
	if (lacks_open_modules(run, g) || has_stubs(run, g) || has_small_bar1(run, g))
		return c->what;
	if (overflow)
		return "the driver writes a peer's address into a field for peers that ends at 128 "
		       "GiB: the edit of the page table entry's address is missing (gmmu_fmt.c)";
	if (support_of(run->m, g).mechanism == MECHANISM_NONE)
		return support_of(run->m, g).why;
	if (fact_is(d->bar1_p2p.loaded, 1) && fact_known(d->module_version) &&
	    !driver_release(d)->bar1_entries)
		return "the functions for P2P through BAR1 exist, but the edit that makes page "
		       "table entries point at BAR1 is missing (nv_gpu_ops.c)";
	return NULL;
}

void evidence_unlock(struct rule_run *run, struct finding *f, const struct gpu *g)
{
	if (!g || !needs_bar1(run, g->index))
		return;
	for (size_t j = 0; j < run->m->gpu_n; j++)
		if (j != g->index && fact_known(rm_of(run, g->index, j)->connection)) {
			evidence_rm(run, f, g->index, j);
			break;
		}
	evidence_driver(run, f);
}

/* An engine says that it does not use its own all-reduce. */
static void heard_engine(struct rule_run *run)
{
	const struct observed *policy = message_heard(run, MESSAGE_ENGINE_PCIE_ONLY);
	const struct observed *none = message_heard(run, MESSAGE_ENGINE_NO_P2P);
	struct finding *f;

	if (policy) {
		f = finding_add(
			run, CONFIDENCE_LIKELY, SUBJECT(LIBRARY, "vLLM or SGLang"),
			ABOUT
			" does not use its own all-reduce, because more than two GPUs are not "
			"all joined by NVLink: that is its policy and no fault; NCCL does the "
			"work, by P2P where it may");
		finding_needs_nothing(f);
		evidence_text(run, f, policy->from, policy->text);
	}
	if (none) {
		f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(LIBRARY, "vLLM or SGLang"),
				ABOUT
				" does not use its own all-reduce: CUDA offers no P2P between its "
				"GPUs, or its own test saw wrong data, now or when it last ran");
		f->severity = SEVERITY_WARNING;
		finding_remedy(
			run, f,
			"check `nvidia-smi topo -p2p r`; its test runs once and stays in "
			"~/.cache/vllm/gpu_p2p_access_cache_for_*.json: remove that file after a "
			"change of driver or firmware; onehop test checks the data of every pair");
		evidence_text(run, f, none->from, none->text);
	}
}

const struct rule rules_unlock[] = {
	{
		.id = "p2p-mailbox",
		.title = "P2P does not use mailboxes that the cards lack",
		.why = "GeForce cards since Ampere lack the mailboxes that the driver uses for "
		       "peers unless it uses BAR1. If P2P is forced, the driver reports OK, CUDA "
		       "enables peer access, and the data is lost.",
		.remedy =
			"`onehop unlock` shows what the driver lacks, and the kernel log shows why "
			"it could not map BAR1 (\"NVRM: kbus...\"); until it uses BAR1, remove "
			"ForceP2P from NVreg_RegistryDwords in /etc/modprobe.d, if it is set",
		.reference = "open-gpu-kernel-modules ctrl0000system.h "
			     "NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2 (PROP, PCI_BAR1), p2p_caps.c "
			     "_kp2pCapsGetStatusOverPcieBar1; aikitoria/open-gpu-kernel-modules#9",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER,
		.scope = SCOPE_PAIR,
		.probe = probe_mailbox,
		.report = report_mailbox,
		.heard = heard_wrong_copy,
	},
	{
		.id = "p2p-keys-one-side",
		.title = "Registry keys for P2P through BAR1 are set for both cards of a pair",
		.why = "ForceP2P on either card of a pair makes the driver allow P2P, but it reads "
		       "the key that selects BAR1 only from the card with the lower number. With "
		       "keys on one side, the result depends on the order of the cards: BAR1, or a "
		       "mailbox that GeForce cards lack.",
		.remedy = "set the same keys for both cards (NVreg_RegistryDwordsPerDevice; "
			  "`onehop unlock` prints the line) or for neither, rebuild the initramfs "
			  "and reload the module",
		.reference =
			"open-gpu-kernel-modules p2p_caps.c "
			"_kp2pCapsCheckStatusOverridesForPcie, _kp2pCapsGetStatusOverPcieBar1 (535 "
			"to 595)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER,
		.scope = SCOPE_PAIR,
		.probe = probe_one_side,
		.report = report_one_side,
	},
	{
		.id = "unlock-console",
		.title = "No console shifts BAR1 under an edit that ignores it",
		.why = "If the boot console uses the first megabytes of BAR1, drivers 570 and 575 "
		       "map the memory after them. Public edits of these releases assume that "
		       "memory starts at the start of BAR1: peers read and write some megabytes off.",
		.remedy =
			"install modules that onehop edited (`onehop unlock`), which account for it, "
			"or driver 580 or later; or use another card, or the BMC, for the console "
			"(firmware setup: primary display); then run `onehop test` to check that the "
			"data arrives correctly",
		.reference = "open-gpu-kernel-modules 570 to 575, kern_bus_tu102.c "
			     "kbusEnableStaticBar1Mapping_TU102 (startOffset); "
			     "aikitoria/open-gpu-kernel-modules 570.86.16-p2p nv_gpu_ops.c",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER,
		.probe = probe_console,
	},
	{
		.id = "bar1-windows",
		.title = "P2P through BAR1 does not depend on windows that can run out",
		.why = "Where BAR1 is smaller than the memory, everything that peers map must fit "
		       "into BAR1 at one time. Engines that share single buffers (NCCL, PyTorch "
		       "from 2.8 on) fit; cudaDeviceEnablePeerAccess maps all allocations of a "
		       "process. onehop's own edit maps all memory at once, so it refuses such "
		       "cards.",
		.remedy =
			"set NCCL_LOCAL_REGISTER=0 and NCCL_GRAPH_REGISTER=0, do not share managed "
			"memory with peers, and watch \"BAR1 Memory Usage\" (`nvidia-smi -q`) while "
			"a job holds memory: with windows it stays constant, and it rises with the "
			"memory if all of it is mapped",
		.reference = "Duanyll/open-gpu-kernel-modules docs/48g-4090-p2p; "
			     "WU-CVGL/cluster-setup docs/05_GPU_P2P_GeForce_and_CMP.md",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER,
		.probe = probe_windows,
	},
	{
		.id = "kernel-lockup",
		.title = "No lock-up is reported for edited modules of this release on this kernel",
		.why = "Some machines with edited modules locked up after an update to a newer "
		       "kernel. The cause is unknown.",
		.remedy =
			"if the machine locks up or resets, first boot an older kernel (Linux 6.12 "
			"or 6.17)",
		.reference = "aikitoria/open-gpu-kernel-modules#28; noonghunna/club-3090#1332",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER,
		.probe = probe_lockup,
	},
	{
		.id = "custom-all-reduce",
		.title = "No inference engine's own all-reduce uses edited modules",
		.why = "Unlike NCCL, vLLM's custom all-reduce reads the peer's memory in its own "
		       "kernels and signals by flags in it. Over BAR1 of GeForce cards there are "
		       "unexplained reports of wrong output and resets.",
		.remedy =
			"if an engine's output is wrong, or it hangs or resets the machine, start it "
			"with --disable-custom-all-reduce (disable_custom_all_reduce=True), which "
			"keeps NCCL's P2P, and run `onehop test` to check the paths",
		.reference =
			"noonghunna/club-3090#922, #1332, #751; "
			"NVIDIA/open-gpu-kernel-modules#1257; aikitoria/open-gpu-kernel-modules#21",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER,
		.probe = probe_custom,
		.heard = heard_engine,
	},
	{
		.id = "uvm-managed",
		.title = "An edited driver keeps managed memory away from P2P through BAR1",
		.why = "The unified-memory module (nvidia_uvm) uses what the edited nvidia module "
		       "offers, but before Hopper its page tables cannot express it: entries point "
		       "into the card's own memory or to wrong addresses. On real RTX 4090s, "
		       "managed memory that migrated between two GPUs caused Xid 31 (unsupported "
		       "aperture) and then Xid 154 (reboot required) on all GPUs. One process with "
		       "two GPUs is enough, from driver 590 on even if it never requested peer "
		       "access.",
		.remedy =
			"sudo onehop unlock --download --apply, which replaces the edit by one with "
			"a gate (without a network: `onehop unlock` shows how), then reboot; until "
			"then use no managed memory on these cards, or remove ForceP2P from "
			"NVreg_RegistryDwords in /etc/modprobe.d",
		.reference = "open-gpu-kernel-modules kernel-open/nvidia-uvm uvm_turing_mmu.c "
			     "make_pte_turing, uvm_gpu.c parent_gpu_peer_aperture; "
			     "WU-CVGL/cluster-setup docs/05_GPU_P2P_GeForce_and_CMP.md",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER,
		.scope = SCOPE_PAIR,
		.probe = probe_managed,
		.report = report_managed,
	},
	{0},
};
