/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about NVLink and the NVSwitch fabric. */
#include "base/array.h"
#include "diagnose/rules.h"

#include <string.h>

static unsigned link_count(const struct gpu *g)
{
	return g->nvlink_n < GPU_NVLINKS ? g->nvlink_n : GPU_NVLINKS;
}

static unsigned active_links(const struct gpu *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < link_count(g); i++)
		n += fact_is(g->nvlinks[i].active, 1);
	return n;
}

static unsigned known_links(const struct gpu *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < link_count(g); i++)
		n += fact_known(g->nvlinks[i].active);
	return n;
}

static bool links_known(const struct gpu *g)
{
	return known_links(g) > 0;
}

/* Not queried, and the cards are of a kind that is sold on NVSwitch boards. */
static bool may_have_fabric(struct rule_run *run)
{
	FOR_EACH_GPU (g, run)
		if (fact_unknown(g->fabric_state) && card_chip(g) && card_chip(g)->nvswitch)
			return true;
	return false;
}

/* By the PCI device id, else by name: texts may give only that. */
static bool same_model(const struct gpu *a, const struct gpu *b)
{
	if (fact_known(a->pci->device) && fact_known(b->pci->device))
		return a->pci->device.value == b->pci->device.value;
	return fact_known(a->model) && fact_known(b->model) &&
	       strcmp(a->model.value, b->model.value) == 0;
}

/* The best of its peers; the number that this GPU should have too. */
static unsigned best_peer(struct rule_run *run, const struct gpu *g, const struct gpu **ret)
{
	unsigned best = 0;

	*ret = NULL;
	FOR_EACH_GPU (p, run) {
		if (p == g || !same_model(p, g) || active_links(p) <= best)
			continue;
		best = active_links(p);
		*ret = p;
	}
	return best;
}

static const char *inactive_links(struct rule_run *run, const struct gpu *g)
{
	const char *list = NULL;

	for (unsigned i = 0; i < link_count(g); i++)
		if (fact_is(g->nvlinks[i].active, 0))
			list = run_list(run, list, run_text(run, "%u", g->nvlinks[i].index));
	return list ? list : "none";
}

static void report_links(struct rule_run *run, const struct gpu *g, bool fabric)
{
	const struct gpu *peer;
	unsigned active = active_links(g), best = best_peer(run, g, &peer);
	struct finding *f;

	/*
	 * A card without any active link just has no bridge, unless switches should join it. Of a
	 * list that is cut off the rest may be active.
	 */
	if (!links_known(g) || fact_unknown(g->nvlink_active) || active >= best ||
	    (!active && !fabric && !card_board_links(g)))
		return;
	f = finding_add(run, fabric ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY, subject_gpu(run, g),
			"%u of %u NVLinks of " ABOUT " are active, GPU%zu has %u", active,
			link_count(g), peer->index, best);
	f->pairs = 2 * (run->m->gpu_n - 1);
	finding_evidence(run, f, NULL,
			 run_text(run, "NVLinks of GPU%zu that are not active, by number",
				  g->index),
			 "%s (NVML NvLinkState)", inactive_links(run, g));
	finding_evidence(run, f, NULL,
			 run_text(run, "number of active links of GPU%zu", peer->index), "%u",
			 best);
}

/* Fewer than boards with NVSwitches give the model, and the list is not cut off. */
static bool has_too_few(const struct gpu *g)
{
	const unsigned links = card_board_links(g), active = active_links(g);

	return links_known(g) && fact_known(g->nvlink_active) && active < links &&
	       (!active || known_links(g) >= links);
}

/*
 * All GPUs lack some of the links that boards with NVSwitches give them, so that no peer shows it.
 */
static void report_too_few(struct rule_run *run, bool fabric)
{
	const struct gpu *first = &run->m->gpus[0];
	struct finding *f;

	FOR_EACH_GPU (g, run)
		if (!has_too_few(g) || card_board_links(g) != card_board_links(first) ||
		    active_links(g) != active_links(first))
			return;
	if (run->m->gpu_n < 2 || (!active_links(first) && fabric)) /* report_all_down */
		return;
	f = finding_add(run, CONFIDENCE_POSSIBLE, SUBJECT(GPUS, "NVLink"),
			"%s, and boards of %s have %u: links are down, or a partition of a virtual "
			"machine leaves them out",
			active_links(first) ? run_text(run, "%u NVLinks of each GPU are active",
						       active_links(first))
					    : "no NVLink of any GPU is active",
			fact_str_or(first->model, "this model"), card_board_links(first));
	f->severity = SEVERITY_WARNING;
	f->pairs = run->m->gpu_n * (run->m->gpu_n - 1);
	if (known_links(first) >= card_board_links(first))
		finding_evidence(run, f, NULL, "NVLinks of GPU0 that are not active, by number",
				 "%s", inactive_links(run, first));
}

/* All of them down on a machine that is built around NVSwitches. */
static void report_all_down(struct rule_run *run)
{
	struct finding *f;

	FOR_EACH_GPU (g, run)
		if (!links_known(g) || active_links(g))
			return;
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(GPUS, "NVLink"),
			"no NVLink is active on any GPU (%zu in all), although the machine has an "
			"NVSwitch fabric",
			run->m->gpu_n);
	f->pairs = run->m->gpu_n * (run->m->gpu_n - 1);
	FOR_EACH_GPU (g, run)
		finding_evidence(run, f, NULL, run_text(run, "GPU%zu", g->index),
				 "links %s inactive (NVML NvLinkState)", inactive_links(run, g));
}

/* Of the whole machine: links that are all down are one finding. */
static enum verdict probe_links(struct rule_run *run)
{
	bool fabric = machine_has_nvswitch(run->m), any = false;

	FOR_EACH_GPU (g, run)
		any |= links_known(g);
	FOR_EACH_GPU (g, run)
		if (!any && fact_unknown(g->nvlink_active))
			return rule_unknown(run, FACT_WHY(g->nvlink_active),
					    "the NVLinks of GPU%zu", g->index);
	if (!any)
		return VERDICT_NA;
	FOR_EACH_GPU (g, run)
		report_links(run, g, fabric);
	report_too_few(run, fabric);
	if (fabric)
		report_all_down(run);
	return VERDICT_OK;
}

/* ---- fabric ---- */

/* What is the matter with a GPU that the fabric has not admitted. */
static const char *fabric_fault(struct rule_run *run, const struct gpu *g)
{
	if (fact_is(g->fabric_state, FABRIC_NOT_STARTED))
		return "has not started to register with the NVSwitch fabric";
	if (fact_is(g->fabric_state, FABRIC_IN_PROGRESS))
		return "is still registering with the NVSwitch fabric";
	return run_text(run, "was rejected by the NVSwitch fabric (status %lld)",
			(long long)g->fabric_status.value);
}

static void advise_fabric(struct rule_run *run, struct finding *f, const struct gpu *g)
{
	const struct nvidia_driver *d = &run->m->driver;
	const struct module *umad = machine_module(run->m, "ib_umad");
	const char *subnet = !card_needs_nvlsm(g) ? ""
			     : umad && fact_is(umad->loaded, 1)
				     ? ", and nvlsm, which NVLink 5 needs"
				     : ", and nvlsm, which NVLink 5 needs; load ib_umad first "
				       "(`modprobe ib_umad`, and its name in /etc/modules-load.d)";

	if (fact_absent(d->fabric_manager_version))
		finding_remedy(run, f,
			       "no fabric manager is installed: install nvidia-fabricmanager of "
			       "version %s%s; then `systemctl enable --now nvidia-fabricmanager`",
			       fact_str_or(d->module_version, "the driver"), subnet);
	else if (*subnet)
		finding_remedy(run, f,
			       "find the cause: `journalctl -u nvidia-fabricmanager`; install "
			       "nvidia-fabricmanager of the driver's version%s; then `systemctl "
			       "enable --now nvidia-fabricmanager`",
			       subnet);
}

static enum verdict probe_fabric(struct rule_run *run)
{
	static const char *const state_words[] = {
		[FABRIC_NOT_SUPPORTED] = "not supported",
		[FABRIC_NOT_STARTED] = "not started",
		[FABRIC_IN_PROGRESS] = "in progress",
		[FABRIC_COMPLETED] = "completed",
	};
	const struct nvidia_driver *d = &run->m->driver;
	const struct gpu *g = run->gpu;
	struct finding *f;

	if (!machine_has_nvswitch(run->m))
		return may_have_fabric(run)
			       ? rule_unknown(run, NULL, "whether there is an NVSwitch fabric")
			       : VERDICT_NA;
	if (fact_unknown(g->fabric_state) && card_chip(g) && card_chip(g)->fabric)
		return rule_unknown(run, FACT_WHY(g->fabric_state), "the fabric state of GPU%zu",
				    g->index);
	if (!gpu_has_fault(run->m, g, DEVICE_FABRIC_NOT_READY))
		return VERDICT_OK;
	f = finding_here(run, CONFIDENCE_CERTAIN,
			 ABOUT
			 " %s: CUDA cannot start on it (error 802, system not yet initialized)",
			 fabric_fault(run, g));
	advise_fabric(run, f, g);
	evidence_word(run, f, "fabric state", g->fabric_state, state_words,
		      sizeof(state_words) / sizeof(state_words[0]));
	finding_expects(f, state_words[FABRIC_COMPLETED]);
	evidence_int(run, f, "fabric status", g->fabric_status);
	evidence_str(run, f, "fabric manager", d->fabric_manager_version);
	return VERDICT_BAD;
}

static enum verdict probe_manager(struct rule_run *run)
{
	const struct nvidia_driver *d = &run->m->driver;
	struct finding *f;

	if (!machine_has_nvswitch(run->m))
		return VERDICT_NA;
	if (!fact_known(d->fabric_manager_version))
		return fact_absent(d->fabric_manager_version)
			       ? VERDICT_NA
			       : rule_unknown(run, FACT_WHY(d->fabric_manager_version),
					      "the fabric manager's version");
	if (!fact_known(d->module_version))
		return rule_unknown(run, NULL, "the module's version");
	if (!strcmp(d->fabric_manager_version.value, d->module_version.value))
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(DRIVER, "fabric manager"),
			"the " ABOUT " has version %s, the driver %s: it refuses to start",
			d->fabric_manager_version.value, d->module_version.value);
	f->pairs = run->m->gpu_n * (run->m->gpu_n - 1);
	finding_remedy(run, f,
		       "install nvidia-fabricmanager of version %s, then `systemctl restart "
		       "nvidia-fabricmanager`",
		       d->module_version.value);
	evidence_str(run, f, "fabric manager", d->fabric_manager_version);
	evidence_str(run, f, "module", d->module_version);
	return VERDICT_BAD;
}

/* ---- what tools report ---- */

/* Cards of this model have links to a bridge alone, which need not be there. */
static bool is_bridge_card(const struct gpu *g)
{
	return g && (strstr(fact_str_or(g->model, ""), "PCIe") ||
		     strstr(fact_str_or(g->model, ""), "NVL"));
}

/* Links of a card without a bridge are down, and nothing is wrong. */
static void heard_links(struct rule_run *run)
{
	const struct observed *o = message_heard(run, MESSAGE_NVLINK_DOWN);
	const struct gpu *g = o && o->initiator >= 0 ? &run->m->gpus[o->initiator] : NULL;
	struct finding *f;

	if (!o || (g && active_links(g)))
		return;
	if (machine_has_nvswitch(run->m) || !is_bridge_card(g)) {
		f = finding_add(run, CONFIDENCE_POSSIBLE,
				g ? subject_gpu(run, g) : SUBJECT(GPUS, "NVLink"),
				"a health check reports NVLinks of %s as down: without an NVLink "
				"bridge or NVSwitches that is normal, otherwise links are missing",
				g ? ABOUT : "a GPU");
		finding_remedy(run, f, "check which links are up: `nvidia-smi nvlink -s`");
	} else {
		f = finding_add(run, CONFIDENCE_LIKELY, subject_gpu(run, g),
				"a health check reports NVLinks of " ABOUT
				" as down: the links of a PCIe card without an NVLink bridge are "
				"always down, so nothing is wrong");
		f->severity = SEVERITY_INFO;
		finding_needs_nothing(f);
	}
	evidence_text(run, f, o->from, o->text);
}

/* What nvidia-smi nvlink -e and -c say of links, of each GPU by itself. */
static const struct {
	enum tool_message message;
	enum severity severity;
	enum confidence confidence;
	const char *sentence, *remedy;
} link_reports[] = {
	{MESSAGE_NVLINK_RETRAINED, SEVERITY_WARNING, CONFIDENCE_LIKELY,
	 "lost their training and recovered: a bridge, cable or module "
	 "that does not fit well, or one that begins to fail",
	 "look for Xid 74 in the kernel log; reseat the bridge or the module, and compare the count "
	 "after another run"},
	{MESSAGE_NVLINK_REPEATED, SEVERITY_INFO, CONFIDENCE_POSSIBLE,
	 "sent data again: a few errors are normal, a count that grows in "
	 "each run is not",
	 "compare the count after another run: `nvidia-smi nvlink -e`"},
	{MESSAGE_NVLINK_NO_P2P, SEVERITY_WARNING, CONFIDENCE_POSSIBLE,
	 "offer no P2P, as the driver says",
	 "check what it says of each pair: `nvidia-smi topo -p2p n`"},
};

static void heard_of_links(struct rule_run *run)
{
	heard_links(run);
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		const struct gpu *g = o->initiator >= 0 ? &run->m->gpus[o->initiator] : NULL;

		for (size_t i = 0; i < ARRAY_LEN(link_reports); i++) {
			struct finding *f;

			if (o->kind != OBSERVED_MESSAGE || o->message != link_reports[i].message)
				continue;
			f = finding_add(run, link_reports[i].confidence,
					g ? subject_gpu(run, g) : SUBJECT(GPUS, "NVLink"),
					"NVLinks of %s %s", g ? ABOUT : "a GPU",
					link_reports[i].sentence);
			f->severity = link_reports[i].severity;
			finding_remedy(run, f, "%s", link_reports[i].remedy);
			evidence_text(run, f, o->from, o->text);
		}
	}
}

/* A call of CUDA in NCCL's set-up of multicast through NVSwitches. */
static const struct observed *failed_multicast(struct rule_run *run)
{
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	if (o->kind == OBSERVED_RUN_FAILURE && o->failure.kind == RUN_CUDA_ERROR &&
	    o->failure.where && strstr(o->failure.where, "nvls"))
		return o;
	return NULL;
}

/* `o`: NCCL's error; `stale`: the fabric manager's line; one of them may be NULL. */
static void report_multicast(struct rule_run *run, const struct observed *o,
			     const struct observed *stale)
{
	struct finding *f = finding_add(
		run, stale ? CONFIDENCE_LIKELY : CONFIDENCE_POSSIBLE,
		SUBJECT(GPUS, "NVSwitch fabric"),
		"%s could not set up multicast through the NVSwitches (NVLS): the GPUs and the "
		"fabric manager are %sout of step, as after a restart of one without the other",
		o ? "NCCL" : "a program", stale ? "" : "probably ");

	finding_remedy(run, f,
		       "stop all GPU programs and the fabric manager, reset GPUs and NVSwitches "
		       "(`nvidia-smi -r`), then start the fabric manager (`systemctl start "
		       "nvidia-fabricmanager`), or reboot; until then set NCCL_NVLS_ENABLE=0");
	if (o)
		evidence_text(run, f, o->from,
			      run_text(run, "%s: CUDA error %d, %s", o->failure.where,
				       o->failure.code, o->failure.what));
	if (stale)
		evidence_text(run, f, stale->from, stale->text);
}

static void report_no_switch(struct rule_run *run, const struct observed *o)
{
	struct finding *f =
		finding_add(run, CONFIDENCE_LIKELY, SUBJECT(DRIVER, "fabric manager"),
			    "the " ABOUT
			    " found no NVSwitch to manage and ended: it serves only machines with "
			    "NVSwitches, and others work without it");

	f->severity = SEVERITY_INFO;
	finding_needs_nothing(f);
	evidence_text(run, f, o->from, o->text);
}

static void report_switch(struct rule_run *run, const struct observed *o, bool fatal)
{
	struct finding *f = finding_add(
		run, CONFIDENCE_LIKELY, SUBJECT(DRIVER, "fabric manager"),
		"the " ABOUT " saw an NVSwitch report %s",
		fatal ? "a fatal error: the jobs that use it end, and its NVLinks stay unusable"
		      : "an error from which it recovers");

	if (!fatal)
		f->severity = SEVERITY_WARNING;
	finding_remedy(
		run, f,
		"look the number up among the SXids of NVIDIA's Fabric Manager User Guide, and check "
		"`nvidia-smi nvlink -e`%s",
		fatal ? "; stop all jobs and reset GPUs and NVSwitches (`nvidia-smi -r`), or reboot"
		      : "");
	evidence_text(run, f, o->from, o->text);
}

/* An NVSwitch is a bridge of NVIDIA's of no other kind (class 0680). */
static bool lists_nvswitch(const struct machine *m)
{
	enum { NVIDIA = 0x10de, OTHER_BRIDGE = 0x0680 };

	for (size_t i = 0; i < m->pci_n; i++)
		if (fact_is(m->pci[i].vendor, NVIDIA) &&
		    fact_or(m->pci[i].class_code, 0) >> 8 == OTHER_BRIDGE)
			return true;
	return machine_has_nvswitch(m);
}

/* systemd's answer is about this machine; whether it needs the service depends on its switches. */
static void report_no_manager(struct rule_run *run, const struct observed *o)
{
	struct finding *f =
		finding_add(run, lists_nvswitch(run->m) ? CONFIDENCE_CERTAIN : CONFIDENCE_POSSIBLE,
			    SUBJECT(DRIVER, "fabric manager"),
			    "the " ABOUT
			    " is not installed: on a machine with NVSwitches CUDA then fails with "
			    "error 802");

	finding_remedy(
		run, f,
		"install the fabric manager of exactly the driver's version "
		"(nvidia-fabricmanager), then `systemctl enable --now nvidia-fabricmanager`. In a "
		"virtual machine the host's fabric manager decides.");
	evidence_text(run, f, o->from, o->text);
}

static void heard_version(struct rule_run *run)
{
	const struct observed *o = message_heard(run, MESSAGE_FABRIC_VERSION);

	if (o)
		evidence_text(run,
			      finding_add(run, CONFIDENCE_CERTAIN,
					  SUBJECT(DRIVER, "fabric manager"),
					  "the " ABOUT
					  " did not start: it has another version than the "
					  "driver"),
			      o->from, o->text);
}

static void heard_fabric(struct rule_run *run)
{
	const struct observed *fatal = message_heard(run, MESSAGE_SWITCH_FATAL);
	const struct observed *error = message_heard(run, MESSAGE_SWITCH_ERROR);
	const struct observed *none = message_heard(run, MESSAGE_NO_NVSWITCH);
	const struct observed *failed = message_heard(run, MESSAGE_FABRIC_FAILED);
	const struct observed *missing = message_heard(run, MESSAGE_FABRIC_MISSING);
	const struct observed *multicast = failed_multicast(run);
	const struct observed *stale = message_heard(run, MESSAGE_FABRIC_STALE);

	if (fatal || error)
		report_switch(run, fatal ? fatal : error, fatal != NULL);
	if (multicast || stale)
		report_multicast(run, multicast, stale);
	if (none && !machine_has_nvswitch(run->m))
		report_no_switch(run, none);
	else if (missing)
		report_no_manager(run, missing);
	else if (failed && !message_heard(run, MESSAGE_FABRIC_VERSION))
		evidence_text(run,
			      finding_add(run, CONFIDENCE_POSSIBLE,
					  SUBJECT(DRIVER, "fabric manager"),
					  "the " ABOUT
					  " did not start: on a machine with NVSwitches "
					  "CUDA then fails with error 802"),
			      failed->from, failed->text);
}

const struct rule rules_nvlink[] = {
	{
		.id = "nvlink-up",
		.title = "Every GPU has as many active NVLinks as its peers, without errors",
		.why = "Missing links reduce the bandwidth, or send the pair over PCIe. A link with "
		       "errors sends data again, and may be about to fail.",
		.remedy =
			"look for NVLink lines and Xid 74 in the kernel log; reseat the bridge or "
			"the module, power-cycle, then replace it",
		.reference =
			"nvml.h nvmlDeviceGetNvLinkState; NVIDIA/nccl#340; cards without a bridge: "
			"NVIDIA/NVSentinel#1481",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER | NEEDS_NVML,
		.probe = probe_links,
		.heard = heard_of_links,
	},
	{
		.id = "nvswitch-fabric",
		.title = "Every GPU is registered with the NVSwitch fabric",
		.why = "Until it is registered, CUDA fails on the GPU, alone or with others.",
		.remedy =
			"find the cause: `journalctl -u nvidia-fabricmanager`; then `systemctl "
			"enable --now nvidia-fabricmanager`. In a virtual machine the host's fabric "
			"manager decides.",
		.reference = "nvml.h nvmlGpuFabricInfo_t; Fabric Manager User Guide; "
			     "spectrocloud/CanvOS#700; "
			     "NVIDIA/nccl-tests#264, #276; NVIDIA/gpu-operator#610",
		.ends_runs = true,
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.needs = NEEDS_GPU | NEEDS_DRIVER | NEEDS_NVML,
		.scope = SCOPE_GPU,
		.probe = probe_fabric,
		.heard = heard_fabric,
	},
	{
		.id = "fabric-manager-version",
		.title = "The fabric manager has the driver's version",
		.why = "It requires exactly the same version and stops otherwise; the fabric then "
		       "stays down after the next reboot.",
		.remedy = "install nvidia-fabricmanager of the driver's version",
		.reference = "Fabric Manager User Guide, \"Installing Fabric Manager\"; "
			     "NVIDIA/gpu-operator#544",
		.ends_runs = true,
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.needs = NEEDS_GPU | NEEDS_DRIVER,
		.probe = probe_manager,
		.heard = heard_version,
	},
	{0},
};
