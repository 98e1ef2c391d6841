/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about what `onehop fix` changed: is it in effect? */
#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/rules.h"

#include <inttypes.h>
#include <string.h>

/* What is there instead; in_effect 1, 0, or unknown: nobody can tell. */
struct effect {
	struct fact_int in_effect;
	const char *name;  /* "iommu=pt", "NVreg_EnableResizableBar=1" */
	const char *where; /* what was looked at, for evidence */
	const char *value; /* and what it holds */
};

bool fix_pending(const struct rule_run *run, enum applied_kind kind, const char *target)
{
	FOR_EACH_IN(struct applied, a, run->m->applied, run->m->applied_n)
	{
		if ((a->kind == kind ||
		     (a->kind == APPLIED_TRIAL && kind == APPLIED_KERNEL_PARAMETER)) &&
		    fact_is(a->same_boot, 1) && strcmp(a->target, target) == 0)
			return true;
	}
	return false;
}

/* ---- kernel parameters ---- */

/* Boot loaders put words with a semicolon into quotes, which the kernel takes off. */
static const char *without_quotes(struct rule_run *run, const char *text)
{
	AUTO_STRBUF struct strbuf b = {0};

	for (; *text; text++)
		if (*text != '"')
			strbuf_putc(&b, *text);
	return run_text(run, "%s", strbuf_str(&b));
}

static struct effect parameter_effect(struct rule_run *run, const struct applied *a)
{
	struct fact_str line = run->m->kernel.cmdline;
	struct effect e = {.name = a->target,
			   .where = "kernel command line",
			   .value = fact_str_or(line, "")};

	if (!fact_known(line))
		e.in_effect = fact_int_unknown(FACT_WHY(line));
	else
		e.in_effect = fact_int(text_has_word(without_quotes(run, line.value),
						     without_quotes(run, a->target)),
				       line.from);
	if (fact_is(e.in_effect, 0) && fact_unknown(run->m->kernel.cmdline_whole))
		e.in_effect = fact_int_unknown(FACT_WHY(run->m->kernel.cmdline_whole));
	return e;
}

/* Whether this boot has it or not, it is not in effect for good. */
static struct effect trial_effect(struct rule_run *run, const struct applied *a)
{
	struct effect e = parameter_effect(run, a);

	if (fact_known(e.in_effect))
		e.in_effect.value = 0;
	return e;
}

/* ---- module options ---- */

/* One "KEY=0x11" of RegistryDwords. */
static struct fact_int dword_effect(const struct nvidia_driver *d, const char *word)
{
	const char *value = strchr(word, '=');
	char key[64];
	struct fact_int now;
	uint64_t want;

	if (!value || text_to_u64(value + 1, &want) < 0)
		return fact_int_unknown(
			"the list of changes contains something that is not a number");
	text_copy(key, sizeof(key), word, (size_t)(value - word));
	now = driver_registry_dword(d, key);
	if (fact_unknown(now))
		return now;
	return fact_int(fact_is(now, (int64_t)want), now.from);
}

static struct fact_int dwords_effect(const struct nvidia_driver *d, const char *list)
{
	struct fact_int all = fact_int(1, d->registry_dwords.from);
	char word[128];

	for (size_t n; *list && fact_is(all, 1); list += n + (list[n] == ';')) {
		n = strcspn(list, ";");
		text_copy(word, sizeof(word), list, n);
		if (n)
			all = dword_effect(d, word);
	}
	return all;
}

static struct fact_int resizable_effect(const struct nvidia_driver *d, const char *value)
{
	int64_t want;

	if (!fact_known(d->resizable_bar) || text_to_i64(value, &want) < 0)
		return fact_int_unknown(FACT_WHY(d->resizable_bar));
	return fact_int(d->resizable_bar.value == want, d->resizable_bar.from);
}

/* Of other options the driver does not say what it was given. */
static const struct {
	const char *start;
	struct fact_int (*effect)(const struct nvidia_driver *d, const char *value);
} options[] = {
	{"NVreg_EnableResizableBar=", resizable_effect},
	{"NVreg_RegistryDwords=", dwords_effect},
};

static struct effect uvm_option_effect(struct rule_run *run, const struct applied *a)
{
	struct fact_int off = run->m->driver.hmm_disabled;
	bool ours = strcmp(a->value, "uvm_disable_hmm=1") == 0;

	return (struct effect){.in_effect = ours && fact_known(off)
						    ? off
						    : fact_int_unknown(
							      ours ? FACT_WHY(off)
								   : "not reported by the driver"),
			       .name = run_text(run, "%s %s", a->target, a->value),
			       .where = "parameters of module nvidia-uvm",
			       .value =
				       fact_is(off, 1) ? "uvm_disable_hmm Y" : "uvm_disable_hmm N"};
}

static struct effect option_effect(struct rule_run *run, const struct applied *a)
{
	const struct nvidia_driver *d = &run->m->driver;
	const char *value = without_quotes(run, a->value);
	struct effect e = {.in_effect = fact_int_unknown("not reported by the driver"),
			   .name = run_text(run, "%s %s", a->target, value),
			   .where = "parameters of module nvidia",
			   .value = run_text(run,
					     "RegistryDwords \"%s\", EnableResizableBar %" PRId64,
					     fact_str_or(d->registry_dwords, ""),
					     fact_or(d->resizable_bar, -1))};

	if (strcmp(a->target, "nvidia-uvm") == 0)
		return uvm_option_effect(run, a);
	if (strcmp(a->target, "nvidia") != 0)
		return e;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (text_starts_with(value, options[i].start))
			e.in_effect = options[i].effect(d, value + strlen(options[i].start));
	return e;
}

static struct effect dword_set_effect(struct rule_run *run, const struct applied *a)
{
	const struct nvidia_driver *d = &run->m->driver;

	return (struct effect){.in_effect = dword_effect(d, a->value),
			       .name = a->value,
			       .where = "registry keys of module nvidia",
			       .value = fact_str_or(d->registry_dwords, "")};
}

/* nova_core registers its driver as NovaCore. */
static bool drives(const char *module, const struct gpu *g)
{
	const char *bound = fact_str_or(g->pci->driver, "");

	return !strcmp(bound, module) ||
	       (!strcmp(module, "nova_core") && !strcmp(bound, "NovaCore"));
}

/* A module that no GPU is bound to is out of the way, loaded or not. */
static struct effect blacklist_effect(struct rule_run *run, const struct applied *a)
{
	struct effect e = {.in_effect = fact_int(1, "no GPU is bound to it"),
			   .name = run_text(run, "the blacklist of %s", a->target),
			   .where = "driver of a GPU",
			   .value = a->target};

	FOR_EACH_GPU (g, run) {
		if (fact_unknown(g->pci->driver) && fact_is(e.in_effect, 1))
			e.in_effect = fact_int_unknown(FACT_WHY(g->pci->driver));
		if (drives(a->target, g))
			e.in_effect = fact_int(0, g->pci->driver.from);
	}
	return e;
}

/* ---- what is neither in force nor gone ---- */

static struct effect open_effect(struct rule_run *run, const struct applied *a)
{
	return (struct effect){.in_effect = fact_int(0, a->from),
			       .name = run_text(run, "fix %u", a->fix),
			       .where = "state in the list of changes",
			       .value = a->target};
}

/* ---- ACS ---- */

/* Of the register only the bits that the fix cleared count. */
static struct effect acs_effect(struct rule_run *run, const struct applied *a)
{
	struct effect e = {.in_effect = fact_int_unknown("the port no longer exists"),
			   .name = run_text(run, "ACS of port %s", a->target),
			   .where = run_text(run, "ACSCtl of %s", a->target)};
	struct pci_address address;
	const struct pci_function *f;

	if (pci_address_parse(a->target, &address) < 0 || !(f = pci_find(run->m, address)))
		return e;
	if (!fact_known(f->acs_ctl)) {
		e.in_effect = fact_int_unknown(FACT_WHY(f->acs_ctl));
		return e;
	}
	e.in_effect = fact_int(!(f->acs_ctl.value & PCI_ACS_REDIRECTS), f->acs_ctl.from);
	e.value = run_text(run, "%04x", (unsigned)f->acs_ctl.value);
	return e;
}

/* ---- the rule ---- */

static struct finding *report_due(struct rule_run *run, const struct applied *a, const char *name)
{
	struct finding *f =
		finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(FIX, run_text(run, "fix %u", a->fix)),
			    "%s (" ABOUT ") is not in effect yet: a reboot is pending", name);

	finding_remedy(run, f, "reboot");
	return f;
}

static struct finding *report_lost(struct rule_run *run, const struct applied *a, const char *name)
{
	struct finding *f =
		finding_add(run, CONFIDENCE_LIKELY, SUBJECT(FIX, run_text(run, "fix %u", a->fix)),
			    "%s (" ABOUT
			    ") is not in effect although the machine was rebooted since: after "
			    "a power failure the first boot may still use the old files",
			    name);

	finding_remedy(
		run, f,
		a->kind == APPLIED_KERNEL_PARAMETER
			? "reboot once more; if it is still not in effect, check which boot entry is "
			  "used, and with which command line"
			: "reboot once more; if it is still not in effect, look for a stale copy of "
			  "modprobe.d in the initramfs, and for a later line that sets the same option "
			  "(`modprobe -c`)");
	return f;
}

static struct finding *report_missing(struct rule_run *run, const struct applied *a,
				      const char *name)
{
	return fact_is(a->same_boot, 0) ? report_lost(run, a, name) : report_due(run, a, name);
}

static struct finding *report_unfinished(struct rule_run *run, const struct applied *a,
					 const char *name)
{
	const bool undoing = strcmp(a->target, "undoing") == 0;
	struct finding *f = finding_add(
		run, CONFIDENCE_LIKELY, SUBJECT(FIX, name),
		undoing ? ABOUT
			" is undone only in part: its undo was interrupted, or a step of it failed"
			: ABOUT
			" was interrupted before it was complete, unless onehop is making it right now");

	finding_remedy(run, f, "`onehop undo %u`%s", a->fix,
		       undoing ? " tries again; `onehop history` shows what failed" : "");
	return f;
}

static struct finding *report_undone(struct rule_run *run, const struct applied *a,
				     const char *name)
{
	struct finding *f = finding_add(
		run, CONFIDENCE_CERTAIN, SUBJECT(FIX, name),
		ABOUT " is undone, but some of its changes stay in effect until the next reboot");

	(void)a;
	finding_remedy(run, f, "reboot");
	return f;
}

/* A boot that bypassed the boot loader (kexec, a rescue medium) leaves its one-time entry set. */
static bool trial_waits(const struct rule_run *run, const struct applied *a)
{
	return !fact_is(a->same_boot, 0) || fact_is(run->m->trial_set, 1);
}

/* Before its boot somebody has set the boot loader otherwise. */
static bool is_displaced(const struct rule_run *run, const struct applied *a)
{
	return fact_is(a->same_boot, 1) && fact_is(run->m->trial_set, 0);
}

static struct finding *report_trial(struct rule_run *run, const struct applied *a, const char *name)
{
	struct subject about = SUBJECT(FIX, run_text(run, "fix %u", a->fix));
	struct finding *f;

	if (fact_is(a->same_boot, 0) && fact_is(parameter_effect(run, a).in_effect, 1)) {
		f = finding_add(run, CONFIDENCE_CERTAIN, about,
				"%s is on trial in this boot: the next boot reverts it unless it "
				"is confirmed",
				name);
		finding_remedy(run, f, "`onehop fix --confirm`");
	} else if (is_displaced(run, a)) {
		f = finding_add(
			run, CONFIDENCE_CERTAIN, about,
			"%s is on trial, but the boot loader is no longer set to use it at the next boot: somebody has changed that since",
			name);
		finding_remedy(
			run, f,
			"`onehop undo %u`, then `onehop fix --apply` sets it for the next boot again",
			a->fix);
	} else if (trial_waits(run, a)) {
		f = finding_add(run, CONFIDENCE_CERTAIN, about,
				"%s is on trial: the next boot uses it once", name);
		finding_remedy(run, f, "reboot to try it");
	} else if (fact_unknown(run->m->trial_set)) {
		f = finding_add(
			run, CONFIDENCE_CERTAIN, about,
			"%s is on trial, and this boot is without it: the trial was not confirmed, or "
			"is still to come",
			name);
		finding_remedy(run, f, "`sudo onehop history` shows which");
	} else {
		f = finding_add(
			run, CONFIDENCE_CERTAIN, about,
			"the trial boot was not confirmed: the machine runs without %s, as before",
			name);
		finding_remedy(
			run, f,
			"`onehop undo %u` undoes the rest of it; to try it again: `onehop fix "
			"--apply`",
			a->fix);
	}
	return f;
}

/* Root ports are changed only if their rule is named. */
static bool is_root_port(const struct rule_run *run, const char *port)
{
	struct pci_address address;
	const struct pci_function *f =
		pci_address_parse(port, &address) < 0 ? NULL : pci_find(run->m, address);

	return f && fact_is(f->port_type, PCI_PORT_ROOT);
}

static struct finding *report_acs(struct rule_run *run, const struct applied *a, const char *name)
{
	bool started = fact_is(a->same_boot, 0);
	struct finding *f = finding_add(
		run, CONFIDENCE_CERTAIN, SUBJECT(PORT, run_text(run, "port %s", a->target)),
		"ACS of " ABOUT " redirects again, although fix %u cleared it: %s", a->fix,
		started ? "nothing cleared it at boot, or it was set again since (by hotplug or a "
			  "reset)"
			: "it was set again, for example by hotplug or a reset");

	(void)name;
	FOR_EACH_PCI (p, run)
		if (strcmp(p->name, a->target) == 0)
			finding_names(run, f, p);
	finding_remedy(run, f, "`onehop fix %s--apply`%s",
		       is_root_port(run, a->target) ? "acs-root-port " : "",
		       started ? "; `systemctl status onehop-acs` shows whether it ran at boot"
			       : "");
	return f;
}

static const struct {
	struct effect (*effect)(struct rule_run *run, const struct applied *a);
	struct finding *(*report)(struct rule_run *run, const struct applied *a, const char *name);
} kinds[APPLIED_KIND_N] = {
	[APPLIED_KERNEL_PARAMETER] = {parameter_effect, report_missing},
	[APPLIED_TRIAL] = {trial_effect, report_trial},
	[APPLIED_MODULE_OPTION] = {option_effect, report_missing},
	[APPLIED_REGISTRY_DWORD] = {dword_set_effect, report_missing},
	[APPLIED_MODULE_BLACKLIST] = {blacklist_effect, report_missing},
	[APPLIED_UNFINISHED] = {open_effect, report_unfinished},
	[APPLIED_UNDONE] = {open_effect, report_undone},
	[APPLIED_ACS] = {acs_effect, report_acs},
};

/* Of two fixes that cleared the same port the later one is reported. */
static bool is_covered_later(const struct machine *m, const struct applied *a)
{
	for (const struct applied *b = a + 1; b < m->applied + m->applied_n; b++)
		if (a->kind == APPLIED_ACS && b->kind == a->kind && !strcmp(a->target, b->target))
			return true;
	return false;
}

/* A recording of before there was `onehop fix` says nothing, and nothing was changed then. */
static enum verdict probe_in_effect(struct rule_run *run)
{
	const struct machine *m = run->m;
	bool unknown = false;

	if (!m->applied_n)
		return fact_unknown(m->applied_listed) && !m->recorded
			       ? rule_unknown(run, FACT_WHY(m->applied_listed),
					      "what onehop fix changed on this machine")
			       : VERDICT_NA;
	FOR_EACH_IN(struct applied, a, m->applied, m->applied_n)
	{
		struct effect e = kinds[a->kind].effect(run, a);
		struct finding *f;

		if (is_covered_later(m, a))
			continue;
		if (fact_unknown(e.in_effect) && !unknown)
			rule_unknown(run, FACT_WHY(e.in_effect), "whether %s (fix %u) is in effect",
				     e.name, a->fix);
		unknown |= fact_unknown(e.in_effect);
		if (!fact_is(e.in_effect, 0))
			continue;
		f = kinds[a->kind].report(run, a, e.name);
		finding_evidence(run, f, FACT_WHY(e.in_effect), e.where, "%s", e.value);
		finding_evidence(run, f, NULL, "list of changes", "%s", a->from);
	}
	return !run->found && unknown ? VERDICT_UNKNOWN : VERDICT_OK;
}

/*
 * What is about registers, and so names their ports, the rules of ACS propose; the rest is a
 * reboot.
 */
static void propose_in_effect(struct rule_run *run, struct change_set *out)
{
	FOR_EACH_FINDING (f, run)
		if (f->rule == run->rule && !f->named_n)
			propose(run, out,
				(struct change){.kind = CHANGE_BY_HAND,
						.lifetime = CHANGE_LASTING,
						.target = f->subject,
						.new = f->remedy,
						.reason = TEXTS(f->sentence),
						.stated = true});
	run->found = true;
}

const struct rule rules_fix[] = {
	{
		.id = "fix-in-effect",
		.turn = TURN_START,
		.title = "What onehop fix changed is in effect",
		.why = "A change has no effect while it waits for a reboot, is missing from the "
		       "boot entry, or was reverted by the kernel.",
		.remedy =
			"reboot; `onehop history` shows what was changed, `onehop undo` undoes it",
		.reference = "man onehop-fix; Documentation/admin-guide/kernel-parameters.txt",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.probe = probe_in_effect,
		.propose = propose_in_effect,
	},
	{0},
};
