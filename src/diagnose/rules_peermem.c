/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about how GPU memory gets to the NICs: nvidia-peermem and dma-buf. */
#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/rules.h"
#include "machine/distribution.h"
#include "support/nic.h"

#include <string.h>

/* ---- which machines want GPUDirect RDMA ---- */

bool has_pci_nic(struct rule_run *run)
{
	FOR_EACH_RDMA (d, run)
		if (d->pci)
			return true;
	return false;
}

/* Some GPU may do it: the vendor's driver refuses GeForce. */
bool gdr_wanted(struct rule_run *run)
{
	if (!has_pci_nic(run))
		return false;
	FOR_EACH_GPU (g, run)
		if (!fact_is(card_is_geforce(g), 1))
			return true;
	return false;
}

/* Every NIC's driver is known to take it, or to take none. */
static bool all_nics_take_dma_buf(struct rule_run *run, bool takes)
{
	FOR_EACH_RDMA (d, run)
		if (d->pci && !fact_is(nic_takes_dma_buf(run->m, d->pci), takes))
			return false;
	return true;
}

static bool no_nic_takes_dma_buf(struct rule_run *run)
{
	return all_nics_take_dma_buf(run, false);
}

bool gdr_by_dma_buf(struct rule_run *run)
{
	if (!fact_is(run->m->kernel.dma_buf, 1) || no_nic_takes_dma_buf(run))
		return false;
	FOR_EACH_GPU (g, run)
		if (fact_is(gpu_exports_dma_buf(run->m, g), 1))
			return true;
	return false;
}

/* ---- nvidia-peermem: one error message, many causes ---- */

static const struct module *peermem_module(const struct machine *m)
{
	const struct module *mod = machine_module(m, "nvidia_peermem");

	return mod ? mod : machine_module(m, "nvidia_current_peermem");
}

/* The last; none while the module is loaded: earlier log lines about it no longer apply. */
static const struct log_line *find_line(struct rule_run *run, const char *a, const char *b)
{
	const struct log_line *found = NULL;

	if (fact_is(run->m->peermem.loaded, 1))
		return NULL;

	FOR_EACH_IN(struct log_line, l, run->m->log, run->m->log_n)
	if (strstr(l->text, a) && strstr(l->text, b))
		found = l;
	return found;
}

#define API "ib_register_peer_memory_client"

#define CORE_LACKS_API "the running RDMA core is the kernel's own, which lacks the peer-memory API"
#define CORE_REMEDY                                                                                \
	"install DOCA-OFED for this kernel and rebuild the driver's modules, or use "              \
	"dma-buf (needs the open modules and support in kernel and NIC driver)"

static bool built_without_api(struct rule_run *run)
{
	return fact_known(run->m->peermem.depends) && !*run->m->peermem.depends.value;
}

/*
 * Of the modules that modprobe would load first, one is neither the driver's nor the RDMA core's.
 */
static bool brings_api(const char *depends)
{
	for (const char *p = depends; *p; p += strcspn(p, ","), p += *p == ',')
		if (!text_starts_with(p, "nvidia") && !text_starts_with(p, "ib_"))
			return true;
	return false;
}

/* There is nothing for nvidia-peermem to register with: modprobe answers EINVAL. */
static bool core_lacks_api(struct rule_run *run)
{
	const struct peermem *p = &run->m->peermem;

	return fact_is(p->api_in_kernel, 0) && !brings_api(fact_str_or(p->depends, ""));
}

static const struct log_line *symbol_line(struct rule_run *run)
{
	return find_line(run, "disagrees about version of symbol", API);
}

static const struct log_line *unknown_symbol_line(struct rule_run *run)
{
	const struct log_line *l = find_line(run, "Unknown symbol", API);

	return l && !symbol_line(run) ? l : NULL;
}

/* OFED is installed, and this kernel has no modules of it: it was built for another one. */
static bool ofed_for_other_kernel(struct rule_run *run)
{
	const struct peermem *p = &run->m->peermem;

	return fact_known(p->ofed) && !fact_known(p->ofed_running) && fact_is(p->ofed_modules, 0) &&
	       !fact_is(p->api_in_kernel, 1);
}

static bool inbox_core(struct rule_run *run)
{
	const struct peermem *p = &run->m->peermem;

	if (ofed_for_other_kernel(run))
		return false;
	return unknown_symbol_line(run) ||
	       (fact_known(p->ofed) && fact_is(p->api_in_kernel, 0) && !built_without_api(run));
}

static bool both_modules(struct rule_run *run)
{
	const struct peermem *p = &run->m->peermem;

	return fact_is(p->legacy_loaded, 1) &&
	       (fact_is(p->loaded, 1) || find_line(run, "nv_mem_client_init", "registering"));
}

static bool names_peermem(const char *module)
{
	static const char *const names[] = {"nvidia-peermem", "nvidia_peermem",
					    "nvidia-current-peermem", "nvidia_current_peermem"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(module, names[i]))
			return true;
	return false;
}

static const struct modprobe_line *install_line(struct rule_run *run)
{
	FOR_EACH_IN(struct modprobe_line, l, run->m->modprobe, run->m->modprobe_n)
	if (l->kind == MODPROBE_INSTALL && names_peermem(l->module) &&
	    (strstr(l->text, "/false") || strstr(l->text, "/true")))
		return l;
	return NULL;
}

static const struct log_line *parameter_line(struct rule_run *run)
{
	return find_line(run, "invalid", "peerdirect_support param");
}

/* Then there is nothing to load; gdr-driver-old says so. */
static bool driver_lacks_it(struct rule_run *run)
{
	int release = driver_branch(run->m->driver.module_version);

	return release > 0 && !release_has_peermem(release);
}

static bool explained(struct rule_run *run)
{
	return driver_lacks_it(run) || built_without_api(run) || symbol_line(run) ||
	       inbox_core(run) || ofed_for_other_kernel(run) || install_line(run) ||
	       parameter_line(run) || fact_is(run->m->peermem.legacy_loaded, 1);
}

/* Where dma-buf serves instead, a peer-memory fault is good to know and no more. */
static void weigh_peermem(struct rule_run *run, struct finding *f)
{
	const struct peermem *p = &run->m->peermem;

	evidence_yes_no(run, f, "nvidia_peermem loaded", p->loaded);
	finding_expects(f, "yes");
	evidence_yes_no(run, f, "registered with the RDMA stack", p->registered);
	finding_expects(f, "yes");
	if (fact_known(p->depends))
		finding_evidence(run, f, p->depends.from ? p->depends.from : "module file",
				 "nvidia-peermem depends on", "\"%s\"", p->depends.value);
	evidence_str(run, f, "OFED", p->ofed);
	if (!gdr_by_dma_buf(run))
		return;
	f->severity = SEVERITY_INFO;
	finding_evidence(run, f, NULL, "dma-buf is possible instead",
			 "open modules, kernel with dma-buf MRs");
}

/* All peer-memory rows: without a card or a NIC that could do it they say nothing. */
static bool peermem_matters(struct rule_run *run, enum verdict *ret_v)
{
	*ret_v = VERDICT_NA;
	if (!gdr_wanted(run))
		return false;
	if (fact_unknown(run->m->peermem.loaded)) {
		*ret_v = rule_unknown(run, FACT_WHY(run->m->peermem.loaded),
				      "whether nvidia-peermem is loaded");
		return false;
	}
	*ret_v = VERDICT_OK;
	return true;
}

/* How it gets there without nvidia-peermem. */
static const char *other_way(struct rule_run *run)
{
	if (!gdr_by_dma_buf(run))
		return "NICs use host memory instead";
	return all_nics_take_dma_buf(run, true)
		       ? "NICs use dma-buf for GPU memory instead"
		       : "unknown whether every NIC can use dma-buf for GPU memory instead";
}

static enum verdict probe_not_loaded(struct rule_run *run)
{
	const struct module *mod = peermem_module(run->m);
	bool missing = mod && fact_absent(mod->file), no_core = core_lacks_api(run);
	struct finding *f;
	enum verdict v;

	if (!peermem_matters(run, &v) || fact_is(run->m->peermem.loaded, 1) || explained(run))
		return v;
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(MODULE, "nvidia-peermem"), "%s",
			missing   ? ABOUT " is not installed for this kernel"
			: no_core ? ABOUT " is not loaded, and loading it failed: " CORE_LACKS_API
				  : run_text(run, ABOUT " is not loaded: %s", other_way(run)));
	weigh_peermem(run, f);
	if (no_core) {
		evidence_yes_no(run, f, API " in the kernel", run->m->peermem.api_in_kernel);
		finding_remedy(run, f, "%s", CORE_REMEDY);
	} else if (missing)
		finding_remedy(run, f,
			       "install the driver's modules for this kernel with the RDMA headers "
			       "present, then `modprobe nvidia-peermem`");
	return VERDICT_OK;
}

/* The text shows that a module is installed, and that lsmod did not list it. */
static const struct observed *installed_not_listed(struct rule_run *run)
{
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		const struct module *mod =
			o->kind == OBSERVED_MESSAGE && o->message == MESSAGE_MODULE_NOT_LISTED &&
					strstr(o->text, "peer")
				? machine_module(run->m, o->text)
				: NULL;

		if (mod && fact_known(mod->file) && !fact_known(mod->loaded))
			return o;
	}
	return NULL;
}

static void heard_not_listed(struct rule_run *run)
{
	const struct observed *o = installed_not_listed(run);
	const struct peermem *p = &run->m->peermem;
	struct finding *f;

	if (!o || fact_is(p->loaded, 1) || fact_is(p->legacy_loaded, 1))
		return;
	f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(MODULE, o->text),
			ABOUT " is installed but not loaded: NICs use host memory instead");
	finding_remedy(run, f,
		       "`modprobe %s`; to load it at each boot: `echo %s > "
		       "/etc/modules-load.d/%s.conf`",
		       o->text, o->text, o->text);
	evidence_text(run, f, o->from, run_text(run, "lsmod shows no %s", o->text));
	evidence_str(run, f, "module file", machine_module(run->m, o->text)->file);
}

static const char *why_not_registered(struct rule_run *run)
{
	const struct peermem *p = &run->m->peermem;

	if (core_lacks_api(run))
		return CORE_LACKS_API;
	if (fact_is(p->registered, 0) && strcmp(p->registered.from, "proc/modules") == 0)
		return "it does not use the RDMA core";
	return "the RDMA core's list of clients contains neither nv_mem nor nv_mem_nc";
}

static enum verdict probe_not_registered(struct rule_run *run)
{
	const struct peermem *p = &run->m->peermem;
	struct finding *f;
	enum verdict v;

	if (!peermem_matters(run, &v))
		return v;
	if (!fact_is(p->loaded, 1))
		return VERDICT_NA;
	if (fact_unknown(p->registered))
		return rule_unknown(run, FACT_WHY(p->registered),
				    "whether nvidia-peermem is registered");
	if (fact_is(p->registered, 1) || both_modules(run))
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(MODULE, "nvidia-peermem"),
			ABOUT " is loaded but not registered: %s", why_not_registered(run));
	weigh_peermem(run, f);
	evidence_yes_no(run, f, API " in the kernel", p->api_in_kernel);
	if (core_lacks_api(run))
		finding_remedy(run, f, "%s", CORE_REMEDY);
	return VERDICT_OK;
}

static enum verdict probe_no_api(struct rule_run *run)
{
	struct finding *f;
	enum verdict v;

	if (!peermem_matters(run, &v))
		return v;
	if (!built_without_api(run) || fact_known(run->m->peermem.ofed))
		return v;
	f = finding_add(
		run, CONFIDENCE_CERTAIN, SUBJECT(MODULE, "nvidia-peermem"),
		ABOUT " was built without the peer-memory interface: modprobe fails with 'Invalid "
		      "argument' and the kernel logs nothing");
	weigh_peermem(run, f);
	return VERDICT_OK;
}

static enum verdict probe_before_ofed(struct rule_run *run)
{
	struct finding *f;
	enum verdict v;

	if (!peermem_matters(run, &v))
		return v;
	if (!built_without_api(run) || !fact_known(run->m->peermem.ofed) ||
	    ofed_for_other_kernel(run))
		return v;
	f = finding_add(
		run, CONFIDENCE_CERTAIN, SUBJECT(MODULE, "nvidia-peermem"),
		"OFED %s is installed, but nvidia-peermem was built before it and does "
		"nothing: modprobe fails with 'Invalid argument' and the kernel logs nothing",
		run->m->peermem.ofed.value);
	weigh_peermem(run, f);
	return VERDICT_OK;
}

static enum verdict probe_conflict(struct rule_run *run)
{
	const struct log_line *l = find_line(run, "nv_mem_client_init", "registering");
	struct finding *f;
	enum verdict v;

	if (!peermem_matters(run, &v))
		return v;
	if (!fact_is(run->m->peermem.legacy_loaded, 1))
		return v;
	f = finding_add(run, both_modules(run) ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY,
			SUBJECT(MODULE, "nv_peer_mem"),
			"the old module nv_peer_mem is loaded and uses the name nv_mem: "
			"nvidia-peermem %s",
			both_modules(run) ? "could not register with it loaded"
					  : "would fail with 'Invalid argument'");
	weigh_peermem(run, f);
	if (l)
		finding_evidence(run, f, NULL, "kernel log", "%s", l->text);
	if (!both_modules(run))
		f->severity = SEVERITY_INFO;
	return VERDICT_OK;
}

static enum verdict probe_symbols(struct rule_run *run)
{
	const struct log_line *l = symbol_line(run);
	struct finding *f;
	enum verdict v;

	if (!peermem_matters(run, &v) || !l)
		return v;
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(MODULE, "nvidia-peermem"),
			ABOUT " was built for another OFED: the symbol versions of the peer-memory "
			      "interface differ and modprobe fails with 'Invalid argument'");
	finding_evidence(run, f, NULL, "kernel log", "%s", l->text);
	weigh_peermem(run, f);
	return VERDICT_OK;
}

static enum verdict probe_inbox_core(struct rule_run *run)
{
	const struct log_line *l = unknown_symbol_line(run);
	struct finding *f;
	enum verdict v;

	if (!peermem_matters(run, &v) || !inbox_core(run))
		return v;
	f = finding_add(
		run, l ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY, SUBJECT(MODULE, "ib_core"),
		"the running ib_core is the kernel's own, without the peer-memory interface "
		"that nvidia-peermem was built for%s",
		fact_known(run->m->peermem.ofed) ? "; OFED's is installed, but not loaded" : "");
	if (l)
		finding_evidence(run, f, NULL, "kernel log", "%s", l->text);
	evidence_yes_no(run, f, API " in the kernel", run->m->peermem.api_in_kernel);
	weigh_peermem(run, f);
	return VERDICT_OK;
}

static enum verdict probe_ofed_kernel(struct rule_run *run)
{
	const struct peermem *p = &run->m->peermem;
	const struct module *core = machine_module(run->m, "ib_core");
	struct finding *f;
	enum verdict v;

	if (!peermem_matters(run, &v))
		return v;
	if (!fact_known(p->ofed))
		return fact_absent(p->ofed)
			       ? VERDICT_NA
			       : rule_unknown(run, FACT_WHY(p->ofed), "whether OFED is installed");
	if (!ofed_for_other_kernel(run))
		return fact_unknown(p->ofed_modules) ? rule_unknown(run, FACT_WHY(p->ofed_modules),
								    "which modules this kernel has")
						     : VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(MODULE, "OFED"),
			ABOUT
			" is installed, but Linux %s has none of its modules%s: the kernel's own "
			"ib_core runs, which has no interface for nvidia-peermem",
			fact_str_or(run->m->kernel.release, "(release unknown)"),
			fact_known(p->ofed_kernel)
				? run_text(run, "; they were built for %s", p->ofed_kernel.value)
				: "");
	if (core)
		evidence_str(run, f, "ib_core of this kernel", core->file);
	evidence_str(run, f, "OFED built for", p->ofed_kernel);
	weigh_peermem(run, f);
	return VERDICT_OK;
}

static enum verdict probe_modprobe(struct rule_run *run)
{
	const struct modprobe_line *install = install_line(run);
	const struct log_line *parameter = parameter_line(run);
	struct finding *f;
	enum verdict v;

	if (!peermem_matters(run, &v))
		return v;
	if (install) {
		f = finding_add(run, CONFIDENCE_CERTAIN,
				SUBJECT(FILE, run_text(run, "%s:%u", install->file, install->line)),
				"modprobe runs '%s' instead of loading nvidia-peermem",
				install->text);
		finding_remedy(run, f, "remove line %u of %s, then `modprobe nvidia-peermem`",
			       install->line, install->file);
		weigh_peermem(run, f);
	}
	if (parameter) {
		f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(MODULE, "nvidia-peermem"),
				ABOUT
				" was given a peerdirect_support value that it does not support");
		finding_evidence(run, f, NULL, "kernel log", "%s", parameter->text);
		weigh_peermem(run, f);
	}
	return VERDICT_OK;
}

static enum verdict probe_dma_buf(struct rule_run *run)
{
	const struct machine *m = run->m;
	bool kernel = fact_is(m->kernel.dma_buf, 1), nics = no_nic_takes_dma_buf(run);
	int release = driver_branch(m->driver.module_version);
	struct finding *f;

	if (!gdr_wanted(run))
		return VERDICT_NA;
	if (gdr_by_dma_buf(run))
		return VERDICT_OK;
	if (fact_unknown(m->kernel.dma_buf))
		return rule_unknown(run, FACT_WHY(m->kernel.dma_buf), "the kernel's version");
	if (kernel && !nics && fact_unknown(m->driver.flavor))
		return rule_unknown(run, FACT_WHY(m->driver.flavor),
				    "whether the driver's modules are the open ones");
	f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(MODULE, "dma-buf"),
			"GPU memory cannot be passed to a NIC as dma-buf: %s",
			!kernel ? "the kernel is older than 5.12"
			: nics  ? "the NICs' drivers do not support it in this kernel"
				: "the driver's modules are the proprietary ones");
	evidence_yes_no(run, f, "kernel with dma-buf MRs", m->kernel.dma_buf);
	evidence_str(run, f, "driver", m->driver.module_version);
	if (!kernel || nics)
		finding_remedy(run, f, "use a %s, or nvidia-peermem",
			       !kernel ? "kernel from 5.12 on"
				       : "newer kernel or the vendor's driver");
	else if (release > 0 && !release_has_open_modules(release))
		finding_remedy(run, f,
			       "update the driver to %d or newer, with its open kernel modules",
			       RELEASE_OPEN);
	return VERDICT_OK;
}

/* ---- what changes it ---- */

/* The name for modprobe: Debian's package calls it nvidia-current-peermem. */
static const char *peermem_name(const struct rule_run *run)
{
	const struct module *mod = peermem_module(run->m);

	return mod && !strcmp(mod->name, "nvidia_current_peermem") ? "nvidia-current-peermem"
								   : "nvidia-peermem";
}

static void propose_load(struct rule_run *run, struct change_set *out)
{
	propose(run, out,
		(struct change){
			.kind = CHANGE_MODULE_LOAD,
			.lifetime = CHANGE_LASTING,
			.target = peermem_name(run),
			.reason = TEXTS(
				"NICs then read and write GPU memory without copies through the host"),
		});
}

static void propose_not_loaded(struct rule_run *run, struct change_set *out)
{
	const struct module *mod = peermem_module(run->m);

	if (propose_wanted(run) && !(mod && fact_absent(mod->file)) && !core_lacks_api(run))
		propose_load(run, out);
}

static void propose_conflict(struct rule_run *run, struct change_set *out)
{
	const char *remove;

	if (!propose_wanted(run))
		return;
	propose(run, out,
		(struct change){
			.kind = CHANGE_MODULE_UNLOAD,
			.lifetime = CHANGE_LASTING,
			.target = "nv_peer_mem",
			.reason = TEXTS(
				"nvidia-peermem can then register the name that both modules use"),
		});
	propose_load(run, out);
	remove = distribution_remove_old_peermem(distribution_of(&run->m->kernel));
	propose_by_hand(
		run, out, "nv_peer_mem",
		"remove its package%s%s%s; otherwise /etc/init.d/nv_peer_mem loads it again "
		"at the next boot",
		remove ? ": `" : " ",
		remove ? remove : "(nvidia-peer-memory or nvidia_peer_memory)", remove ? "`" : "");
}

/* The commands that build the loaded or installed driver's modules once more. */
static const char *rebuild_words(struct rule_run *run)
{
	const struct nvidia_driver *d = &run->m->driver;
	struct fact_str version =
		fact_known(d->installed_version) ? d->installed_version : d->module_version;
	const char *v = fact_str_or(version, "VERSION");
	const char *name = distribution_habits(&run->m->kernel)->dkms_driver;

	if (fact_str_is(d->origin, "dkms"))
		return run_text(
			run,
			"`dkms build --force %s/%s && dkms install --force %s/%s` (names as `dkms "
			"status` shows them)",
			name, v, name, v);
	if (fact_str_is(d->origin, "runfile"))
		return run_text(run, "`sh NVIDIA-Linux-$(uname -m)-%s.run -K`", v);
	return run_text(
		run,
		"reinstall the driver's package (`apt install --reinstall`, `dnf "
		"reinstall`), or where dkms builds it: `dkms build --force nvidia/%s && dkms "
		"install --force nvidia/%s`",
		v, v);
}

static void propose_no_api(struct rule_run *run, struct change_set *out)
{
	if (propose_wanted(run))
		propose_by_hand(
			run, out, "nvidia-peermem",
			"install DOCA-OFED first, then rebuild the driver's modules: %s; or use "
			"dma-buf instead: open kernel modules and Linux 5.12 or newer",
			rebuild_words(run));
}

static void propose_rebuild(struct rule_run *run, struct change_set *out)
{
	if (propose_wanted(run))
		propose_by_hand(
			run, out, "nvidia-peermem",
			"rebuild the driver's modules for the installed OFED: %s; then `modprobe %s`",
			rebuild_words(run), peermem_name(run));
}

static void propose_ofed_core(struct rule_run *run, struct change_set *out)
{
	const struct initramfs_tool *t = distribution_initramfs(distribution_of(&run->m->kernel));
	AUTO_STRBUF struct strbuf initramfs = {0};

	if (!propose_wanted(run))
		return;
	if (t)
		initramfs_command(t, fact_str_or(run->m->kernel.release, "$(uname -r)"),
				  &initramfs);
	if (fact_known(run->m->peermem.ofed))
		propose_by_hand(
			run, out, "ib_core",
			"load OFED's own: `depmod -a`, %s%s%s, reboot (or `/etc/init.d/openibd "
			"restart`); `modinfo -n ib_core` then names a file below updates or extra",
			t ? "`" : "", t ? strbuf_str(&initramfs) : "rebuild the initramfs",
			t ? "`" : "");
	else
		propose_by_hand(
			run, out, "ib_core",
			"reinstall DOCA-OFED for this kernel, or rebuild the driver's modules for "
			"the kernel's own ib_core and use dma-buf: %s",
			rebuild_words(run));
}

static void propose_ofed_build(struct rule_run *run, struct change_set *out)
{
	const char *release = fact_str_or(run->m->kernel.release, "$(uname -r)");

	if (propose_wanted(run))
		propose_by_hand(
			run, out, "OFED",
			"build its modules for this kernel: `dkms autoinstall -k %s` where dkms has "
			"mlnx-ofed-kernel, otherwise `mlnxofedinstall --add-kernel-support`; then "
			"rebuild the driver's modules: %s",
			release, rebuild_words(run));
}

/* ---- the table ---- */

#define PEERMEM_WHY                                                                                \
	"Several different faults make loading nvidia-peermem fail with the same "                 \
	"'Invalid argument'. Without it and without dma-buf, NICs access GPU memory "              \
	"only through copies in host memory. "

const struct rule rules_peermem[] = {
	{
		.id = "peermem-not-loaded",
		.title = "nvidia-peermem is loaded",
		.why = "Without it and without dma-buf, NICs access GPU memory only through copies "
		       "in host memory: a third of the bandwidth, or less.",
		.remedy =
			"`modprobe nvidia-peermem`; to load it at each boot: `echo nvidia-peermem > "
			"/etc/modules-load.d/nvidia-peermem.conf`",
		.reference = "NVIDIA/nccl#897, NVIDIA/nccl-tests#152, Mellanox/nv_peer_memory#46",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = GDR_NEEDS,
		.probe = probe_not_loaded,
		.heard = heard_not_listed,
		.propose = propose_not_loaded,
	},
	{
		.id = "peermem-not-registered",
		.title = "nvidia-peermem is registered with the RDMA stack",
		.why = "The module only forwards requests; it works only as a registered client of "
		       "the RDMA core. /sys/kernel/mm/memory_peers shows that, if the kernel allows "
		       "OFED to create it; the folder exists only while a client is registered.",
		.remedy = "reload it after the RDMA stack: `rmmod nvidia_peermem && modprobe "
			  "nvidia-peermem`; it registers or fails to load",
		.reference = PEERMEM_SOURCE " (nv_mem_client_init); NVIDIA/nccl#1676",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = GDR_NEEDS,
		.probe = probe_not_registered,
	},
	{
		.id = "peermem-no-api",
		.title = "nvidia-peermem was built with the peer-memory interface",
		.why = PEERMEM_WHY
		"The interface belongs to OFED or DOCA; kernel.org kernels lack it, and a "
		"module built without it only returns the error.",
		.remedy =
			"use dma-buf (open modules, kernel 5.12 or newer), or install DOCA-OFED and "
			"then rebuild the driver's modules",
		.reference = PEERMEM_SOURCE,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = GDR_NEEDS,
		.probe = probe_no_api,
		.propose = propose_no_api,
	},
	{
		.id = "peermem-before-ofed",
		.title = "The driver was built after OFED was installed",
		.why = PEERMEM_WHY
		"The driver's build looks for OFED's headers and compiles an empty "
		"nvidia-peermem without them.",
		.remedy =
			"rebuild the driver's modules now that OFED is installed: `dkms remove` and "
			"`dkms install` of the nvidia module, or run the installer again",
		.reference = "NVIDIA/open-gpu-kernel-modules#630; conftest.sh there",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = GDR_NEEDS,
		.probe = probe_before_ofed,
		.propose = propose_rebuild,
	},
	{
		.id = "peermem-conflict",
		.title = "nv_peer_mem and nvidia-peermem are not both installed",
		.why = PEERMEM_WHY "Both register the client name nv_mem, and only one can.",
		.remedy = "`rmmod nv_peer_mem`, remove the package nvidia-peer-memory (or "
			  "/etc/init.d/nv_peer_mem and its dkms module), then `modprobe "
			  "nvidia-peermem`",
		.reference = "Mellanox/nv_peer_memory; " PEERMEM_SOURCE,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = GDR_NEEDS,
		.probe = probe_conflict,
		.propose = propose_conflict,
	},
	{
		.id = "peermem-symbols",
		.title = "nvidia-peermem was built for the running OFED",
		.why = PEERMEM_WHY "An OFED update changes the checksum of its interface.",
		.remedy = "rebuild the driver's modules (`dkms remove` and `dkms install` of the "
			  "nvidia module)",
		.reference = "NVIDIA/open-gpu-kernel-modules#630, Mellanox/nv_peer_memory#63",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = GDR_NEEDS,
		.probe = probe_symbols,
		.propose = propose_rebuild,
	},
	{
		.id = "peermem-inbox-core",
		.title = "The running RDMA core is the one nvidia-peermem was built for",
		.why = "If OFED was installed after the drivers were loaded, or the initramfs "
		       "contains the kernel's own modules, the running RDMA core lacks the "
		       "interface.",
		.remedy =
			"`/etc/init.d/openibd restart`, or update the initramfs and reboot; check "
			"with `modinfo -n ib_core`",
		.reference = "NVIDIA/gpu-operator#2868; " PEERMEM_SOURCE,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = GDR_NEEDS,
		.probe = probe_inbox_core,
		.propose = propose_ofed_core,
	},
	{
		.id = "peermem-ofed-kernel",
		.title = "OFED has modules for the running kernel",
		.why = PEERMEM_WHY
		"OFED's modules are built for one kernel; after a kernel update the kernel's "
		"own ib_core is loaded, without the interface.",
		.remedy =
			"build OFED's modules for this kernel: `dkms autoinstall`, otherwise "
			"`mlnxofedinstall --add-kernel-support`; or boot the kernel that they were "
			"built for",
		.reference = "Mellanox/nv_peer_memory#39; MLNX_OFED user manual "
			     "(mlnx_add_kernel_support.sh)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = GDR_NEEDS,
		.probe = probe_ofed_kernel,
		.propose = propose_ofed_build,
	},
	{
		.id = "peermem-modprobe",
		.title = "modprobe.d allows nvidia-peermem to load",
		.why = PEERMEM_WHY
		"The line is an install line that runs /bin/false, or a parameter that the "
		"module does not support; a blacklist line has no effect here.",
		.remedy = "`grep -r peermem /etc/modprobe.d /lib/modprobe.d`, and remove the line",
		.reference = "man 5 modprobe.d; " PEERMEM_SOURCE,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = GDR_NEEDS,
		.probe = probe_modprobe,
	},
	{
		.id = "dma-buf",
		.title = "GPU memory can be passed to the NICs as dma-buf",
		.why = "dma-buf is the path without nvidia-peermem and OFED: NCCL uses it from 2.13 "
		       "on where kernel, driver and NIC support it.",
		.remedy = "install the open kernel modules of the same driver version",
		.reference = "NVIDIA GPUDirect RDMA documentation; NVIDIA/nccl#1412",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = GDR_NEEDS,
		.probe = probe_dma_buf,
	},
	{0},
};
