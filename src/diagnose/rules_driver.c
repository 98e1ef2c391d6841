/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about NVIDIA's driver: is it there, does it fit together, does it allow peer access. */
#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/rules.h"
#include "machine/container.h"
#include "machine/distribution.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- bound ---- */

/* Drivers that take a GPU from nvidia.ko, and what that means. */
static const struct other_driver {
	const char *name, *module, *is, *remedy; /* module NULL: unknown */
} other_drivers[] = {
	{"nouveau", "nouveau", "the kernel's own open driver, which supports neither CUDA nor P2P",
	 "install NVIDIA's driver; it blacklists nouveau in /etc/modprobe.d (\"blacklist "
	 "nouveau\", \"options nouveau modeset=0\"), then rebuild the initramfs and reboot"},
	{"nova_core", "nova_core",
	 "the kernel's new open driver, which supports neither CUDA nor P2P yet",
	 "put \"blacklist nova_core\" into a file in /etc/modprobe.d, rebuild the initramfs and "
	 "reboot"},
	{"NovaCore", "nova_core",
	 "the kernel's new open driver, which supports neither CUDA nor P2P yet",
	 "put \"blacklist nova_core\" into a file in /etc/modprobe.d, rebuild the initramfs and "
	 "reboot"},
};

static const struct other_driver unknown_driver = {
	NULL, NULL, "which is not NVIDIA's driver",
	"unbind it: echo the GPU's address into unbind of that driver's folder in "
	"/sys/bus/pci/drivers, load nvidia if it is not loaded (`modprobe nvidia`), "
	"and echo the address into /sys/bus/pci/drivers/nvidia/bind"};

/* NULL: no driver but NVIDIA's, or none, holds the GPU for the host. */
static const struct other_driver *other_driver(const struct rule_run *run, const struct gpu *g)
{
	const char *bound = fact_str_or(g->pci->driver, "");

	if (!gpu_has_fault(run->m, g, DEVICE_OTHER_DRIVER))
		return NULL;

	for (size_t i = 0; i < sizeof(other_drivers) / sizeof(other_drivers[0]); i++)
		if (!strcmp(bound, other_drivers[i].name))
			return &other_drivers[i];
	return &unknown_driver;
}

/* With NVIDIA's driver at work for others nothing is left to install. */
static const char *other_remedy(struct rule_run *run, const struct other_driver *o)
{
	if (!o->module || fact_is_not(run->m->driver.loaded, 1))
		return o->remedy;
	return run_text(
		run,
		"put \"blacklist %s\" into a file in /etc/modprobe.d, rebuild the initramfs and "
		"reboot",
		o->module);
}

/* Bound to no driver, or an unknown one. */
static bool wants_nvidia(const struct gpu *g)
{
	return !fact_known(g->pci->driver);
}

/* Of the module's file; else what a library that was installed with it answers. */
static struct fact_str version_on_disk(const struct nvidia_driver *d)
{
	return fact_known(d->installed_version) || !fact_known(d->module_version)
		       ? d->installed_version
		       : d->module_version;
}

static const char *load_remedy(struct rule_run *run)
{
	struct fact_str version = version_on_disk(&run->m->driver);
	const char *own = distribution_driver(distribution_of(&run->m->kernel));

	if (fact_known(version))
		return run_text(
			run,
			"`modprobe nvidia` (version %s is installed); if that fails, the kernel "
			"log says why",
			version.value);
	return own ? own : run->rule->remedy;
}

/* lsmod was searched for the driver's own module, and had none. */
static const struct observed *nvidia_not_listed(const struct rule_run *run)
{
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	if (o->kind == OBSERVED_MESSAGE && o->message == MESSAGE_MODULE_NOT_LISTED &&
	    strcmp(o->text, "nvidia") == 0)
		return o;
	return NULL;
}

/* Another text may be of a time when it was. */
static bool was_loaded(const struct rule_run *run)
{
	return fact_is(run->m->driver.loaded, 1) || fact_known(run->m->driver.module_version);
}

static void heard_no_access(struct rule_run *run)
{
	const struct observed *o = message_heard(run, MESSAGE_NVML_NO_ACCESS);
	struct finding *f;

	if (!o)
		return;
	f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(DRIVER, "driver"),
			"programs may not use the " ABOUT
			": a container has lost its access to the "
			"GPUs, as after `systemctl daemon-reload` on the host");
	finding_remedy(run, f,
		       "start the container again; to keep its access give it the device files by "
		       "name (--device=/dev/nvidia0 and the others), or use CDI; outside of a "
		       "container check `ls -l /dev/nvidia*`");
	evidence_text(run, f, o->from, o->text);
}

static void heard_no_driver(struct rule_run *run)
{
	const struct observed *smi = message_heard(run, MESSAGE_NVML_NO_DRIVER);
	const struct observed *none = nvidia_not_listed(run);
	struct finding *f;

	heard_no_access(run);
	if (!smi && !none)
		return;
	f = finding_add(run,
			was_loaded(run) ? CONFIDENCE_POSSIBLE
			: none          ? CONFIDENCE_CERTAIN
					: CONFIDENCE_LIKELY,
			SUBJECT(DRIVER, "driver"),
			none ? "the " ABOUT "'s module is not loaded%s"
			     : "the " ABOUT "'s module is not loaded, or does not work%s",
			smi ? ": nvidia-smi does not reach it" : "");
	finding_remedy(
		run, f,
		"`sudo modprobe nvidia`, and read what `sudo dmesg | grep -e NVRM -e nvidia` "
		"says then; `dkms status` shows whether the module was built for this kernel");
	if (smi)
		evidence_text(run, f, smi->from, smi->text);
	if (none)
		evidence_text(run, f, none->from, "lsmod shows no nvidia");
}

static enum verdict probe_loaded(struct rule_run *run)
{
	struct fact_int loaded = run->m->driver.loaded;
	size_t waiting = 0;
	struct finding *f;

	if (fact_unknown(loaded))
		return rule_unknown(run, FACT_WHY(loaded), "whether the nvidia module is loaded");
	FOR_EACH_GPU (g, run)
		waiting += wants_nvidia(g) || fact_str_is(g->pci->driver, "nvidia");
	if (fact_is_not(loaded, 0))
		return VERDICT_OK;
	if (!waiting)
		return VERDICT_NA;
	f = finding_add(
		run, CONFIDENCE_CERTAIN, SUBJECT(DRIVER, "driver"),
		"%zu of %zu NVIDIA %s %s not bound to a driver: the nvidia module is not loaded",
		waiting, run->m->gpu_n, text_plural(run->m->gpu_n, "GPU", "GPUs"),
		text_plural(waiting, "is", "are"));
	if (waiting == run->m->gpu_n)
		f->pairs = waiting * (waiting - 1);
	finding_remedy(run, f, "%s", load_remedy(run));
	evidence_yes_no(run, f, "module nvidia loaded", loaded);
	finding_expects(f, "yes");
	evidence_str(run, f, "installed module", run->m->driver.installed_version);
	if (fact_known(run->m->driver.module_version))
		evidence_str(run, f, "installed driver", run->m->driver.module_version);
	FOR_EACH_GPU (g, run)
		evidence_str(run, f, run_text(run, "driver of %s", g->pci->name), g->pci->driver);
	return VERDICT_BAD;
}

/* "nvidia-current/550.90.07 lib/modules/KERNEL/updates/dkms/nvidia.ko" */
static void add_torn(struct rule_run *run, const char *line, size_t n)
{
	const char *blank = memchr(line, ' ', n);
	struct finding *f;

	if (!blank)
		return;
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(DRIVER, "driver"),
			"/%.*s is truncated: parts of the module that DKMS built are missing",
			(int)(line + n - blank - 1), blank + 1);
	finding_remedy(
		run, f,
		"`sudo dkms install --force %.*s -k %s`, then `sudo modprobe nvidia`; if "
		"onehop unlock installed it, `sudo onehop undo` restores the packaged driver",
		(int)(blank - line), line, fact_str_or(run->m->kernel.release, "KERNEL"));
	evidence_yes_no(run, f, "module nvidia loaded", run->m->driver.loaded);
}

static enum verdict probe_torn(struct rule_run *run)
{
	const struct fact_str torn = run->m->driver.torn;
	const char *line = NULL;
	size_t n;

	if (!fact_known(torn))
		return VERDICT_NA;
	while (text_next_line(&line, &n, torn.value))
		add_torn(run, line, n);
	return rule_verdict(run, VERDICT_OK);
}

static void heard_no_gpu(struct rule_run *run)
{
	const struct observed *o = message_heard(run, MESSAGE_NO_GPU_LISTED);

	if (o)
		evidence_text(run,
			      finding_add(run, CONFIDENCE_LIKELY, SUBJECT(DRIVER, "driver"),
					  "the " ABOUT
					  " is loaded and has no GPU: it rejected them, or "
					  "none is there"),
			      o->from, o->text);
}

static enum verdict probe_bound(struct rule_run *run)
{
	const struct gpu *g = run->gpu;
	const struct other_driver *o = other_driver(run, g);
	struct finding *f;

	if (o) {
		f = finding_here(run, CONFIDENCE_CERTAIN, ABOUT " is bound to %s, %s",
				 g->pci->driver.value, o->is);
		finding_remedy(run, f, "%s", other_remedy(run, o));
	} else if (gpu_has_fault(run->m, g, DEVICE_NO_DRIVER)) {
		f = finding_here(
			run, CONFIDENCE_CERTAIN,
			ABOUT
			" is bound to no driver although the nvidia module is loaded; the module "
			"rejected it, or is set to ignore it");
	} else {
		return VERDICT_OK;
	}
	evidence_str(run, f, run_text(run, "driver of %s", g->pci->name), g->pci->driver);
	finding_expects(f, "nvidia");
	evidence_str(run, f, "excluded by the driver", g->excluded);
	return VERDICT_BAD;
}

static void propose_bound(struct rule_run *run, struct change_set *out)
{
	FOR_EACH_GPU (g, run) {
		const struct other_driver *o = other_driver(run, g);

		if (o && o->module)
			propose(run, out,
				(struct change){
					.kind = CHANGE_MODULE_BLACKLIST,
					.lifetime = CHANGE_KEPT,
					.target = o->module,
					.reason = TEXTS(run_text(
						run, "%s then leaves the GPUs to NVIDIA's driver",
						o->module)),
					.cost = TEXTS(
						"until NVIDIA's driver is installed, a screen on these GPUs stays in the "
						"mode that the firmware set"),
				});
		else if (o || gpu_has_fault(run->m, g, DEVICE_NO_DRIVER))
			propose_by_hand(run, out, subject_text(run, subject_gpu(run, g)), "%s",
					o ? o->remedy : run->rule->remedy);
	}
}

/*
 * modprobe does nothing for a card while the module is loaded, and an override keeps others off it.
 */
static const char *bind_commands(struct rule_run *run)
{
	const char *load = fact_is(run->m->driver.loaded, 1) ? "" : "`modprobe nvidia`, ";

	return run_text(run,
			"%s`echo > /sys/bus/pci/devices/" ABOUT_PCI
			"/driver_override`, `echo " ABOUT_PCI
			" > /sys/bus/pci/drivers/nvidia/bind`",
			load);
}

static enum verdict probe_passthrough(struct rule_run *run)
{
	const struct pci_function *pci = run->gpu->pci;
	struct finding *f;

	if (!gpu_has_fault(run->m, run->gpu, DEVICE_SET_ASIDE))
		return VERDICT_OK;
	f = finding_here(
		run, CONFIDENCE_CERTAIN,
		ABOUT " is bound to %s: it is reserved for a virtual machine, so the host cannot "
		      "use it",
		pci->driver.value);
	finding_remedy(run, f,
		       "if a guest uses it, leave it as it is; otherwise: `echo " ABOUT_PCI
		       " > /sys/bus/pci/drivers/%s/unbind`, %s, and remove its ID from "
		       "vfio-pci.ids= or /etc/modprobe.d",
		       pci->driver.value, bind_commands(run));
	evidence_str(run, f, run_text(run, "driver of %s", pci->name), pci->driver);
	finding_expects(f, "nvidia");
	return VERDICT_BAD;
}

static enum verdict probe_excluded(struct rule_run *run)
{
	if (!gpu_has_fault(run->m, run->gpu, DEVICE_EXCLUDED))
		return VERDICT_OK;
	evidence_str(run,
		     finding_here(run, CONFIDENCE_CERTAIN,
				  "the driver is set to exclude " ABOUT " (NVreg_ExcludedGpus)"),
		     "GPU Excluded", run->gpu->excluded);
	return VERDICT_BAD;
}

/* ---- alive ---- */

static void heard_not_opened(struct rule_run *run)
{
	const struct observed *o = message_heard(run, MESSAGE_GPU_NOT_OPENED);

	if (o)
		evidence_text(run,
			      finding_add(run, CONFIDENCE_LIKELY, SUBJECT(DRIVER, "driver"),
					  "the " ABOUT
					  " cannot open a GPU: it no longer responds, or "
					  "the driver gave it up after an error"),
			      o->from, o->text);
}

static enum verdict probe_alive(struct rule_run *run)
{
	const struct pci_function *p = run->gpu->pci;
	bool cold = gpu_has_fault(run->m, run->gpu, DEVICE_ASLEEP);
	bool lost = fact_is(run->gpu->lost, 1);
	struct finding *f;

	if (!cold && !gpu_has_fault(run->m, run->gpu, DEVICE_OFF_BUS))
		return run->m->text_part_n && !p->config_size
			       ? rule_unknown(run, "not in the text", "the registers of GPU%zu",
					      run->gpu->index)
			       : VERDICT_OK;
	f = finding_here(
		run, CONFIDENCE_CERTAIN,
		lost ? ABOUT
			" is reported lost by the driver: it has fallen off the bus or no longer "
			"responds"
		: cold ? ABOUT " is in D3cold: it is powered off and does not respond"
		       : ABOUT
			" does not respond to configuration reads (all ones): it has fallen off the "
			"bus");
	if (cold && !lost) {
		f->severity = SEVERITY_INFO;
		finding_remedy(
			run, f,
			"any use wakes it up; to keep it awake: `echo on > /sys/bus/pci/devices/" ABOUT_PCI
			"/power/control`");
	}
	evidence_str(run, f, run_text(run, "power_state of %s", p->name), p->power_state);
	if (lost)
		evidence_text(run, f, NULL, run->gpu->lost.from);
	if (p->config_trouble)
		evidence_text(run, f, NULL,
			      run_text(run, "config space of %s %s", p->name, p->config_trouble));
	return VERDICT_BAD;
}

/*
 * The kernel log, or what the device is bound to, says why: those rules do, and the chain blocks
 * its pairs.
 */
static bool is_unusable(struct rule_run *run, const struct gpu *g)
{
	for (size_t j = 0; j < run->m->gpu_n; j++) {
		const struct chain_link *l =
			&topology_path(run->t, g->index, j)->chain[CHAIN_DEVICE];

		if (j != g->index && l->state == CHAIN_BAD && l->at == g->pci)
			return true;
	}
	return false;
}

static enum verdict probe_listed(struct rule_run *run)
{
	const struct gpu *g = run->gpu;
	struct finding *f;

	if (container_lacks_gpus(run->m)) /* the rule container says so */
		return VERDICT_NA;
	/* Of a text nvidia-smi may have listed it without saying where it is. */
	if (fact_known(g->nvml_index) || g->pci->listed_as_gpu ||
	    !fact_str_is(g->pci->driver, "nvidia") || is_unusable(run, g))
		/* A text of nvidia-smi lists no GPU that nvidia-smi does not list. */
		return fact_known(run->m->pci_listed)
			       ? VERDICT_OK
			       : rule_unknown(run, FACT_WHY(run->m->pci_listed),
					      "PCI devices could not be listed");
	if (!fact_known(run->m->driver.nvml_lists_all))
		return rule_unknown(run, FACT_WHY(run->m->driver.nvml_lists_all),
				    "whether NVML lists %s", g->pci->name);
	/* Who pastes a text may have left out lines of it. */
	f = finding_here(
		run, run->m->text_part_n ? CONFIDENCE_LIKELY : CONFIDENCE_CERTAIN,
		ABOUT " is bound to nvidia, but NVML does not list it, so CUDA and NCCL cannot see "
		      "it here");
	finding_evidence(run, f, NULL, "NVML", "%s", FACT_WHY(g->nvml_index));
	evidence_str(run, f, run_text(run, "driver of %s", g->pci->name), g->pci->driver);
	evidence_int(run, f, "device nodes /dev/nvidia<N>", run->m->driver.device_nodes);
	return VERDICT_BAD;
}

static struct finding *report_trouble(struct rule_run *run, struct subject about, const char *what)
{
	struct finding *f = finding_add(run, CONFIDENCE_CERTAIN, about, "%s", what);

	finding_evidence(run, f, NULL, f->subject, "%s", what);
	return f;
}

static void report_file(struct rule_run *run, const struct trouble *t)
{
	struct finding *f = report_trouble(run, SUBJECT(FILE, t->where), t->what);

	if (t->settled)
		f->severity = SEVERITY_INFO;
	if (t->remedy)
		finding_remedy(run, f, "%s", t->remedy);
}

/* Already reported for the device, by this rule or by gpu-alive. */
static bool is_config_trouble(struct rule_run *run, const char *where)
{
	FOR_EACH_PCI (f, run)
		if (f->config_trouble && strstr(where, f->name) && text_ends_with(where, "/config"))
			return true;
	return false;
}

static enum verdict probe_readable(struct rule_run *run)
{
	const struct machine *m = run->m;

	for (size_t i = 0; i < m->trouble_n; i++)
		if (!is_config_trouble(run, m->troubles[i].where))
			report_file(run, &m->troubles[i]);
	FOR_EACH_PCI (f, run)
		if (f->config_trouble && !(pci_is_gpu(f) && !f->config_size))
			report_trouble(run,
				       subject_device(run, SUBJECT_DEVICE, "config space of", f),
				       f->config_trouble);
	return rule_verdict(run, VERDICT_OK);
}

/* ---- versions and flavour ---- */

static bool differ(struct fact_str a, struct fact_str b)
{
	return fact_known(a) && fact_known(b) && strcmp(a.value, b.value) != 0;
}

/* The file is onehop's and of the release that runs: a new release was installed next to it. */
static bool is_kept_edited(const struct nvidia_driver *d)
{
	return fact_known(d->bar1_p2p.mark) && fact_known(d->installed_version) &&
	       !differ(d->installed_version, d->module_version);
}

/* What does not start. NVML's alone keeps no program from CUDA. */
static struct finding *report_library(struct rule_run *run, enum library_fit fit)
{
	const struct nvidia_driver *d = &run->m->driver;
	bool nvml_fits = fact_known(d->nvml_library) && !driver_nvml_differs(d);
	struct finding *f = finding_add(
		run, fit == LIBRARY_MAY_FIT ? CONFIDENCE_LIKELY : CONFIDENCE_CERTAIN,
		SUBJECT(DRIVER, "driver"), "the loaded module is %s, %s %s: %s",
		d->module_version.value,
		fit == LIBRARY_FITS ? "NVML's library is"
		: nvml_fits         ? "CUDA's library is"
				    : "the user-space libraries are",
		fit == LIBRARY_FITS ? d->nvml_library.value : d->library_version.value,
		fit == LIBRARY_FITS ? "NVML cannot start, so nvidia-smi and NCCL cannot either"
		: fit == LIBRARY_MAY_FIT
			? "CUDA cannot start, unless this library is from the compatibility package "
			  "(cuda-compat)"
		: nvml_fits ? "CUDA cannot start"
			    : "CUDA and NVML cannot start");

	if (fit != LIBRARY_REFUSES)
		f->severity = SEVERITY_WARNING;
	return f;
}

static void heard_mismatch(struct rule_run *run)
{
	const struct observed *o = message_heard(run, MESSAGE_NVML_MISMATCH);
	struct finding *f;

	if (!o)
		return;
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(DRIVER, "driver"),
			"the " ABOUT "'s libraries have another version than the loaded module, so "
			"that neither nvidia-smi nor CUDA works");
	evidence_text(run, f, o->from, o->text);
	evidence_str(run, f, "loaded module", run->m->driver.module_version);
}

static enum verdict probe_library(struct rule_run *run)
{
	const struct nvidia_driver *d = &run->m->driver;
	enum library_fit fit = driver_library_fit(d);
	struct finding *f;

	if (fact_unknown(d->module_version))
		return rule_unknown(run, FACT_WHY(d->module_version), "the module's version");
	if (fact_unknown(d->library_version))
		return rule_unknown(run, FACT_WHY(d->library_version), "the libraries' version");
	if (fit == LIBRARY_FITS && !driver_nvml_differs(d))
		return VERDICT_OK;
	f = report_library(run, fit);
	if (differ(d->installed_version, d->module_version) &&
	    !differ(d->installed_version, d->library_version))
		finding_remedy(
			run, f,
			"the module on disk is already %s: reboot, or stop all programs that use the "
			"GPUs and reload it: `modprobe -r nvidia_uvm nvidia_drm nvidia_modeset "
			"nvidia; modprobe nvidia`",
			d->installed_version.value);
	else if (is_kept_edited(d))
		finding_remedy(
			run, f,
			"the module on disk is still the one that onehop edited, of version %s: "
			"`sudo onehop undo`, and reboot; then `onehop unlock` for %s",
			d->installed_version.value, d->library_version.value);
	evidence_str(run, f, "module", d->module_version);
	finding_expects(f, d->library_version.value);
	evidence_str(run, f, "library", d->library_version);
	if (differ(d->library_version, d->nvml_library))
		evidence_str(run, f, "NVML's library", d->nvml_library);
	evidence_str(run, f, "module on disk", d->installed_version);
	return VERDICT_BAD;
}

static void evidence_flavor(struct rule_run *run, struct finding *f)
{
	static const char *const words[] = {
		[DRIVER_PROPRIETARY] = "proprietary",
		[DRIVER_OPEN] = "open",
		[DRIVER_NOUVEAU] = "nouveau",
		[DRIVER_NOVA] = "nova",
	};

	evidence_word(run, f, "kind of modules", run->m->driver.flavor, words,
		      sizeof(words) / sizeof(words[0]));
}

static bool is_open_license(struct fact_str license)
{
	return strstr(fact_str_or(license, ""), "GPL") != NULL;
}

static enum verdict probe_installed(struct rule_run *run)
{
	const struct nvidia_driver *d = &run->m->driver;
	bool version = differ(d->installed_version, d->module_version);
	bool flavor = fact_known(d->installed_license) && fact_known(d->flavor) &&
		      is_open_license(d->installed_license) != fact_is(d->flavor, DRIVER_OPEN);
	struct finding *f;

	/* Module and libraries are installed together; the file on disk is read only if they
	 * differ. */
	if (fact_unknown(d->installed_version) && fact_known(d->library_version) &&
	    fact_known(d->module_version) && !differ(d->library_version, d->module_version))
		return VERDICT_OK;
	if (fact_unknown(d->installed_version))
		return rule_unknown(run, FACT_WHY(d->installed_version),
				    "the installed module's version");
	if (!version && !flavor)
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(DRIVER, "driver"),
			"the kernel runs nvidia %s (%s), but %s (%s) is on disk: the installed "
			"module is not in use",
			fact_str_or(d->module_version, "of unknown version"),
			fact_is(d->flavor, DRIVER_OPEN) ? "open" : "proprietary",
			fact_str_or(d->installed_version, "another"),
			is_open_license(d->installed_license) ? "open" : "proprietary");
	evidence_str(run, f, "loaded module", d->module_version);
	finding_expects(f, fact_str_or(d->installed_version, "unknown"));
	evidence_str(run, f, "module on disk", d->installed_version);
	evidence_str(run, f, "licence of the module on disk", d->installed_license);
	return VERDICT_BAD;
}

/* What was installed meanwhile cannot run before the old modules are gone. */
static void heard_busy(struct rule_run *run)
{
	const struct observed *o = message_heard(run, MESSAGE_MODULE_BUSY);
	struct finding *f;

	if (!o)
		return;
	f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(DRIVER, "driver"),
			"the " ABOUT "'s modules could not be unloaded because they are in use: a "
			"module that was installed since is not in effect");
	evidence_text(run, f, o->from, o->text);
	evidence_str(run, f, "loaded module", run->m->driver.module_version);
}

/* Why this GPU wants the open modules; NULL: it does not. */
static const char *wants_open(const struct gpu *g, size_t gpu_n, enum severity *ret)
{
	if (card_chip(g) && card_chip(g)->modules == CHIP_OPEN) {
		*ret = SEVERITY_ERROR;
		return "is a Blackwell card, which only the open modules support";
	}
	if (gpu_n > 1 && fact_is(card_needs_bar1(g), 1)) {
		*ret = SEVERITY_WARNING;
		return "gets P2P only from edited open modules";
	}
	return NULL;
}

/* The open modules begin with Turing. */
static void report_too_old(struct rule_run *run)
{
	struct finding *f =
		finding_here(run, CONFIDENCE_CERTAIN,
			     "the open modules are loaded, but " ABOUT
			     " (%s) is older than Turing and needs the proprietary modules",
			     fact_str_or(run->gpu->model, "10de device"));

	finding_remedy(run, f,
		       "install the proprietary modules of a release that still has this chip (up "
		       "to 580)");
	evidence_flavor(run, f);
	evidence_str(run, f, "module", run->m->driver.module_version);
}

static enum verdict probe_open(struct rule_run *run)
{
	const struct nvidia_driver *d = &run->m->driver;
	const bool proprietary = fact_is(d->flavor, DRIVER_PROPRIETARY);
	enum severity severity;
	const char *why = wants_open(run->gpu, run->m->gpu_n, &severity);
	struct finding *f;

	if (fact_unknown(d->flavor))
		return rule_unknown(run, FACT_WHY(d->flavor), "open or proprietary modules");
	if (!proprietary && support_undriven(run->m, run->gpu))
		report_too_old(run);
	if (!proprietary || !why)
		return VERDICT_OK;
	f = finding_here(run, CONFIDENCE_CERTAIN,
			 "the proprietary modules are loaded, but " ABOUT " (%s) %s",
			 fact_str_or(run->gpu->model, "10de device"), why);
	f->severity = severity;
	evidence_flavor(run, f);
	evidence_str(run, f, "module", d->module_version);
	return VERDICT_BAD;
}

/* ---- what the driver says of pairs ---- */

/* Denials of reads only, of writes only, and of both need different answers. */
/* ..._ALONE: the answer for the other direction is unknown. */
enum denied {
	DENIED_BOTH,
	DENIED_READ,
	DENIED_WRITE,
	DENIED_READ_ALONE,
	DENIED_WRITE_ALONE,
	DENIED_N
};

static const char *const denied_words[DENIED_N] = {"reads and writes", "reads", "writes", "reads",
						   "writes"};

static struct fact_int pair_fact(struct rule_run *run, size_t i, size_t j, enum p2p_cap cap)
{
	return run->m->pairs ? machine_pair(run->m, i, j)->p2p[cap]
			     : fact_int_unknown("the driver was not queried");
}

static enum p2p_status pair_status(struct rule_run *run, size_t i, size_t j, enum p2p_cap cap)
{
	return (enum p2p_status)fact_or(pair_fact(run, i, j, cap), P2P_STATUS_UNKNOWN);
}

/* A denial that is the market's, not the machine's: another rule explains it. */
static struct fact_int geforce_denial(struct rule_run *run, size_t i, size_t j, enum p2p_status s)
{
	return support_geforce_denial(&run->m->gpus[i], &run->m->gpus[j], s);
}

static bool is_geforce_denial(struct rule_run *run, size_t i, size_t j, enum p2p_status s)
{
	return fact_is(geforce_denial(run, i, j, s), 1);
}

/* OK only when the driver answered for every pair. */
static enum verdict pair_answered(struct rule_run *run, size_t i, size_t j)
{
	for (enum p2p_cap cap = P2P_READ; cap <= P2P_WRITE; cap++)
		if (pair_status(run, i, j, cap) == P2P_STATUS_UNKNOWN)
			return rule_unknown(run, FACT_WHY(pair_fact(run, i, j, cap)),
					    "the P2P status of GPU%zu->GPU%zu", i, j);
	return VERDICT_OK;
}

static enum verdict pairs_verdict(struct rule_run *run)
{
	FOR_EACH_GPU_PAIR (i, j, run)
		if (pair_answered(run, i, j) != VERDICT_OK)
			return VERDICT_UNKNOWN;
	return VERDICT_OK;
}

static enum denied denied_of(enum p2p_status read, enum p2p_status write, enum p2p_status status)
{
	if (read == status && write == status)
		return DENIED_BOTH;
	if (read == status)
		return write == P2P_STATUS_UNKNOWN ? DENIED_READ_ALONE : DENIED_READ;
	return read == P2P_STATUS_UNKNOWN ? DENIED_WRITE_ALONE : DENIED_WRITE;
}

/* Of the pairs that may be denied as GeForce cards, and of those that are surely not. */
static void collect_denied(struct rule_run *run, enum p2p_status status, bool may_be_geforce,
			   struct pair_set sets[DENIED_N])
{
	FOR_EACH_GPU_PAIR (i, j, run) {
		enum p2p_status read = pair_status(run, i, j, P2P_READ);
		enum p2p_status write = pair_status(run, i, j, P2P_WRITE);
		struct fact_int geforce = geforce_denial(run, i, j, status);

		if ((read != status && write != status) || fact_is(geforce, 1) ||
		    fact_known(geforce) == may_be_geforce)
			continue;
		pair_set_add(&sets[denied_of(read, write, status)], i, j);
	}
}

/* One finding for each way in which the driver gives this status; `why` tells what it stands for.
 */
/* ---- where a registry key was set ---- */

/* "/etc/modprobe.d/nvidia.conf:3"; NULL: nothing that was read sets it. */
static const char *place_of_key(struct rule_run *run, const char *key)
{
	FOR_EACH_IN(struct modprobe_line, l, run->m->modprobe, run->m->modprobe_n)
	if (l->kind == MODPROBE_OPTIONS && text_starts_with(l->module, "nvidia") &&
	    strstr(l->text, key))
		return run_text(run, "%s:%u", l->file, l->line);
	if (strstr(fact_str_or(run->m->kernel.cmdline, ""), key))
		return "the kernel command line, nvidia.NVreg_RegistryDwords=";
	return NULL;
}

/* The key that runs was taken out of the files since the module was loaded. */
static void remedy_of_key(struct rule_run *run, struct finding *f, const char *key)
{
	if (run->m->modprobe_n && !place_of_key(run, key))
		finding_remedy(
			run, f,
			"reboot: no file in modprobe.d sets %s any more, but the module was loaded "
			"while one did; if the value is still set after the reboot, rebuild the "
			"initramfs, which has copies of these files",
			key);
}

/* ---- one code, one rule ---- */

#define GEFORCE_FIRST                                                                              \
	"look at the models first: `nvidia-smi -L`. For GeForce cards see rule p2p-geforce "       \
	"(onehop check --explain p2p-geforce); for others `onehop check` on the machine, or with " \
	"that output, says what helps"

/* A row's argument. */
struct denial {
	enum p2p_status status;
	const char *why[DENIED_N]; /* what it stands for */
	/* What helps against this denial of these pairs; NULL: what the rule says. */
	const char *(*remedy)(struct rule_run *run, const struct pair_set *set);
};

/* Of one of the two kinds of pairs. */
static void report_denied(struct rule_run *run, bool may_be_geforce)
{
	const struct denial *d = run->rule->argument;
	struct pair_set sets[DENIED_N];

	for (size_t k = 0; k < DENIED_N; k++)
		sets[k] = pair_set_new(run);
	collect_denied(run, d->status, may_be_geforce, sets);
	for (size_t k = 0; k < DENIED_N; k++) {
		struct finding *f;

		if (!sets[k].n)
			continue;
		f = finding_add(run, may_be_geforce ? CONFIDENCE_POSSIBLE : CONFIDENCE_CERTAIN,
				SUBJECT(DRIVER, "driver"),
				"the " ABOUT " refuses P2P %s between %s with %s: %s%s",
				denied_words[k], pair_set_text(run, &sets[k]),
				p2p_status_code(d->status), d->why[k],
				may_be_geforce ? ". A model is unknown: of GeForce cards the "
						 "driver says it on any machine"
					       : "");
		f->pair_map = sets[k].in;
		finding_names_pairs(run, f, &sets[k]);
		finding_evidence(run, f, NULL,
				 run_text(run, "nvidia-smi topo -p2p %s",
					  k == DENIED_WRITE || k == DENIED_WRITE_ALONE ? "w" : "r"),
				 "%s on %s", p2p_status_code(d->status),
				 pair_set_text(run, &sets[k]));
		evidence_str(run, f, "module", run->m->driver.module_version);
		evidence_str(run, f, "CPU", run->m->cpu.name);
		if (may_be_geforce)
			finding_remedy(run, f, GEFORCE_FIRST);
		else if (d->remedy)
			finding_remedy(run, f, "%s", d->remedy(run, &sets[k]));
		if (d->status == P2P_DISABLED_BY_REGKEY)
			remedy_of_key(run, f, "ForceP2P=");
	}
}

/* Of the whole machine: a pair is in one of several findings. */
static enum verdict probe_status(struct rule_run *run)
{
	report_denied(run, false);
	report_denied(run, true);
	return pairs_verdict(run);
}

/* "ForceP2P=0x211", as this release wants it. */
static const char *force_words(struct rule_run *run)
{
	const char *keys = driver_release(&run->m->driver)->keys;

	return keys ? run_text(run, "\"%.*s\"", (int)strcspn(keys, ";"), keys)
		    : "\"ForceP2P=0x211\" (0x11 before driver 565)";
}

/* Why the key that overrides the lists must not be set for this card; NULL: it may. */
static const char *no_forcing(const struct rule_run *run, const struct gpu *g, bool *ret_none)
{
	struct support s = support_of(run->m, g);
	struct bar1_state b = support_bar1(g);

	*ret_none |= s.way == MECHANISM_NONE;
	return support_forcing(&s, &b) == FORCING_FINE ? NULL : s.why;
}

/* The lists are not asked below one switch; ForceP2P overrides them, and says yes for any card. */
static const char *chipset_remedy(struct rule_run *run, const struct pair_set *set)
{
	bool apart = false, none = false;
	const char *not_forced = NULL, *move = NULL;

	FOR_EACH_GPU_PAIR (i, j, run) {
		const char *why;

		if (!pair_set_in(set, i, j))
			continue;
		why = no_forcing(run, &run->m->gpus[i], &none);
		not_forced = not_forced ? not_forced : why;
		why = no_forcing(run, &run->m->gpus[j], &none);
		not_forced = not_forced ? not_forced : why;
		apart |= !topology_path(run->t, i, j)->common;
	}
	if (none)
		return run_text(run, "nothing on the host, and do not set ForceP2P: %s",
				not_forced);
	if (apart && fact_known(run->m->kernel.hypervisor))
		move = "put both GPUs below one PCIe switch of the virtual machine, whose bridges are "
		       "emulated (QEMU: x3130-upstream and xio3130-downstream), where the driver's "
		       "lists are not used";
	else if (apart)
		move = "move both GPUs below one PCIe switch, where the driver's lists are not used";
	if (not_forced)
		return run_text(run, "%s; do not set ForceP2P: %s",
				move ? move : "`onehop test` shows what these cards can do",
				not_forced);
	return run_text(run,
			"%s%sset NVreg_RegistryDwords=%s, which overrides the lists, then run "
			"`onehop test` to check that the data arrives correctly",
			move ? move : "", move ? "; or " : "", force_words(run));
}

static const char *gpu_remedy(struct rule_run *run, const struct pair_set *set)
{
	FOR_EACH_GPU_PAIR (i, j, run)
		if (pair_set_in(set, i, j) &&
		    (!fact_known(run->m->gpus[i].model) || !fact_known(run->m->gpus[j].model) ||
		     strcmp(run->m->gpus[i].model.value, run->m->gpus[j].model.value) != 0))
			return "pair cards of the same model; no setting on the host changes this answer";
	return "the cards are already of one model, and no setting changes this answer: "
	       "look for NVRM lines in the kernel log, or try another driver release";
}

/* Pairs that the driver denies too are other rules'. */
static bool is_of_two_generations(struct rule_run *run, size_t i, size_t j)
{
	const struct path *p = topology_path(run->t, i, j);
	enum p2p_status read = pair_status(run, i, j, P2P_READ);

	return p->chain[CHAIN_DRIVER].reason == REASON_DRIVER_GENERATION &&
	       (read == P2P_OK || read == P2P_STATUS_UNKNOWN);
}

static enum verdict generation_known(struct rule_run *run, const struct gpu *g)
{
	struct fact_int cc = card_compute_capability(g);

	return fact_known(cc)
		       ? VERDICT_OK
		       : rule_unknown(run, FACT_WHY(cc), "the generation of GPU%zu", g->index);
}

enum verdict generations_known(struct rule_run *run)
{
	FOR_EACH_GPU (g, run)
		if (generation_known(run, g) != VERDICT_OK)
			return VERDICT_UNKNOWN;
	return VERDICT_OK;
}

static enum verdict probe_generation(struct rule_run *run)
{
	const struct gpu *gpus = run->m->gpus;

	if (is_of_two_generations(run, run->initiator, run->target))
		return VERDICT_BAD;
	return generation_known(run, &gpus[run->initiator]) == VERDICT_OK
		       ? generation_known(run, &gpus[run->target])
		       : VERDICT_UNKNOWN;
}

static void report_generation(struct rule_run *run)
{
	struct finding *f =
		finding_add(run, CONFIDENCE_LIKELY, SUBJECT(GPUS, "GPUs"),
			    "the " ABOUT
			    " of %s are of different generations: the CUDA library refuses such "
			    "pairs, whatever the kernel modules allow",
			    pair_set_text(run, run->pairs));

	f->pairs = run->pairs->n;
	f->pair_map = run->pairs->in;
	FOR_EACH_GPU (g, run) {
		struct fact_int cc = card_compute_capability(g);

		finding_evidence(run, f, FACT_WHY(cc),
				 run_text(run, "compute capability of GPU%zu", g->index),
				 "%" PRId64 ".%" PRId64, cc.value / 10, cc.value % 10);
	}
}

/* Of cards for which a release has P2P through BAR1 as it is: no edit is for them. */
static const char *native_words(struct rule_run *run, int from)
{
	const struct nvidia_driver *d = &run->m->driver;
	bool early = fact_known(d->module_version) && driver_branch(d->module_version) < from;

	return run_text(
		run,
		"%s%s: from driver %d on the open modules support P2P through BAR1 for these "
		"cards, and registry keys enable it (`onehop unlock`); BAR1 must cover the "
		"memory. Then run `onehop test` to check that the data arrives correctly.",
		early ? run_text(run, "install driver %d or later", from)
		: fact_is(d->flavor, DRIVER_PROPRIETARY)
			? "replace the proprietary modules by the open ones of this version"
			: "set the driver's keys",
		early ? " with its open kernel modules" : "", from);
}

/* The release that has it as it is for all GPUs of the set; 0: some need an edit. */
static int native_from(struct rule_run *run, const struct pair_set *set)
{
	int from = 0;

	FOR_EACH_GPU_PAIR (i, j, run) {
		int a = support_native_from(&run->m->gpus[i]);
		int b = support_native_from(&run->m->gpus[j]);

		if (!pair_set_in(set, i, j))
			continue;
		if (!a || !b)
			return 0;
		from = a > b ? a : b;
	}
	return from;
}

static const char *unlock_words(struct rule_run *run)
{
	const char *with = fact_is(run->m->driver.flavor, DRIVER_PROPRIETARY)
				   ? "replaces the proprietary modules by open kernel modules"
				   : "installs open kernel modules";

	return run_text(
		run,
		"`sudo onehop unlock --download --apply`, which %s of this driver version that "
		"are edited for P2P through BAR1 (`onehop unlock` shows what this machine needs "
		"and changes nothing); BAR1 must cover the memory. Then run `onehop test` to "
		"check that the data arrives correctly.",
		with);
}

/* Of the first GPU that the finding is about. */
static void evidence_model(struct rule_run *run, struct finding *f, const struct pair_set *set)
{
	FOR_EACH_GPU_PAIR (i, j, run)
		if (pair_set_in(set, i, j)) {
			evidence_str(run, f, run_text(run, "GPU%zu", i), run->m->gpus[i].model);
			return;
		}
}

/*
 * What the driver answers for them is unknown, and it may be one that says yes though P2P does not
 * work.
 */
static bool may_be_misreported(struct rule_run *run, size_t i, size_t j)
{
	const struct nvidia_driver *d = &run->m->driver;

	return support_may_misreport(d, &run->m->gpus[i]) &&
	       support_may_misreport(d, &run->m->gpus[j]) &&
	       pair_status(run, i, j, P2P_READ) == P2P_STATUS_UNKNOWN &&
	       pair_status(run, i, j, P2P_WRITE) == P2P_STATUS_UNKNOWN;
}

/* Without the driver's answer and, perhaps, its version: texts that do not show them. */
static void heard_misreport(struct rule_run *run)
{
	const struct nvidia_driver *d = &run->m->driver;
	struct pair_set set = pair_set_new(run);
	struct finding *f;

	if (fact_is(d->loaded, 0))
		return;
	FOR_EACH_GPU_PAIR (i, j, run)
		if (may_be_misreported(run, i, j))
			pair_set_add(&set, i, j);
	if (!set.n)
		return;
	f = finding_add(run, CONFIDENCE_POSSIBLE, SUBJECT(DRIVER, "driver"),
			"NVIDIA's " ABOUT " has no P2P over PCIe for %s; before " MISREPORT_FIXED
			" it allows P2P all the same, and copies return wrong data",
			pair_set_text(run, &set));
	f->severity = SEVERITY_WARNING;
	f->pair_map = set.in;
	finding_names_pairs(run, f, &set);
	finding_remedy(
		run, f,
		"check the version (`cat /proc/driver/nvidia/version`); install " MISREPORT_FIXED
		" or later if it is older, and until then set NCCL_P2P_DISABLE=1 and copy "
		"through host memory");
	evidence_model(run, f, &set);
	evidence_str(run, f, "module", d->module_version);
}

static enum verdict probe_geforce(struct rule_run *run)
{
	const size_t i = run->initiator, j = run->target;

	for (enum p2p_cap cap = P2P_READ; cap <= P2P_WRITE; cap++)
		if (is_geforce_denial(run, i, j, pair_status(run, i, j, cap)))
			return VERDICT_BAD;
	return pair_answered(run, i, j);
}

/* "CNS, GNS": how the driver denies these pairs. */
static const char *denial_codes(struct rule_run *run, const struct pair_set *set)
{
	bool codes[P2P_STATUS_N] = {false};
	const char *list = NULL;

	FOR_EACH_GPU_PAIR (i, j, run) {
		for (enum p2p_cap cap = P2P_READ; cap <= P2P_WRITE; cap++) {
			enum p2p_status s = pair_status(run, i, j, cap);

			if (pair_set_in(set, i, j) && is_geforce_denial(run, i, j, s))
				codes[s] = true;
		}
	}
	for (size_t s = 0; s < P2P_STATUS_N; s++)
		if (codes[s])
			list = run_list(run, list, p2p_status_code((int64_t)s));
	return list;
}

static void report_geforce(struct rule_run *run)
{
	const struct pair_set *set = run->pairs;
	const char *list = denial_codes(run, set);
	struct finding *f =
		finding_here(run, CONFIDENCE_CERTAIN,
			     "the " ABOUT " refuses P2P over PCIe on GeForce cards: %s for %s",
			     list, pair_set_text(run, set));

	finding_names_pairs(run, f, set);
	finding_remedy(run, f, "%s",
		       native_from(run, set) ? native_words(run, native_from(run, set))
					     : unlock_words(run));
	finding_evidence(run, f, NULL, run_text(run, "P2P status of %s", pair_set_text(run, set)),
			 "%s", list);
	evidence_model(run, f, set);
	evidence_str(run, f, "module", run->m->driver.module_version);
	evidence_flavor(run, f);
}

/* ---- forced capabilities ---- */

/* Why P2P cannot work on this card although the driver says yes; NULL: it may. */
static const char *missing_mechanism(struct rule_run *run, const struct gpu *g,
				     enum confidence *ret)
{
	struct support s = support_of(run->m, g);
	struct bar1_state b = support_bar1(g);
	enum forcing forcing = support_forcing(&s, &b);

	*ret = forcing == FORCING_LOSES_DATA ? CONFIDENCE_CERTAIN : CONFIDENCE_POSSIBLE;
	if (forcing == FORCING_FINE)
		return NULL;
	if (s.mechanism == MECHANISM_NONE || s.mechanism == MECHANISM_BAR1_EDIT ||
	    b.cover != BAR1_TOO_SMALL)
		return s.why;
	return run_text(run, "BAR1 (%s) does not cover the memory (%s)",
			run_bytes(run, (uint64_t)b.size),
			fact_known(g->vram_bytes) ? run_bytes(run, (uint64_t)g->vram_bytes.value)
						  : "size unknown");
}

bool p2p_forced_for_certain(struct rule_run *run, const struct gpu *g)
{
	enum confidence c;

	return driver_forced_p2p(&run->m->driver, g) && missing_mechanism(run, g, &c) &&
	       c == CONFIDENCE_CERTAIN;
}

/* The driver's resource manager says how it connects GPU g with each other GPU, so that nothing has
 * to be guessed: p2p-mailbox judges it. */
static bool rm_settles(struct rule_run *run, const struct gpu *g)
{
	for (size_t j = 0; run->m->pairs && j < run->m->gpu_n; j++) {
		const struct gpu_pair *p = machine_pair(run->m, g->index, j);

		if (j != g->index && (!fact_known(p->rm.connection) ||
				      (p->rm.connection.value == RM_CONNECTION_BAR1 &&
				       !driver_means_bar1(run->m, g->index, j))))
			return false;
	}
	return run->m->pairs != NULL;
}

static enum verdict probe_forced(struct rule_run *run)
{
	const struct nvidia_driver *d = &run->m->driver;
	const struct gpu *g = run->gpu;
	int64_t force = driver_forced_p2p(d, g);
	enum confidence c;
	const char *why = missing_mechanism(run, g, &c);
	struct finding *f;

	if (fact_unknown(d->registry_dwords))
		return rule_unknown(run, FACT_WHY(d->registry_dwords),
				    "the driver's registry keys");
	if (!force || !why || (c == CONFIDENCE_POSSIBLE && rm_settles(run, g)))
		return VERDICT_OK;
	f = finding_here(run, c,
			 "ForceP2P=0x%llx makes the driver allow P2P for " ABOUT
			 ", but %s: copies may be lost",
			 (unsigned long long)force, why);
	if (c == CONFIDENCE_POSSIBLE)
		f->severity = SEVERITY_WARNING;
	remedy_of_key(run, f, "ForceP2P=");
	evidence_registry(run, f);
	evidence_bytes(run, f, "BAR1", g->bar1_bytes);
	evidence_bytes(run, f, "memory", g->vram_bytes);
	evidence_str(run, f, "module", d->module_version);
	if (fact_known(d->bar1_p2p.loaded))
		evidence_yes_no(run, f, "the loaded module supports P2P through BAR1 on every chip",
				d->bar1_p2p.loaded);
	return VERDICT_BAD;
}

/* What a reboot makes of it. */
static const char *lost_at_boot(struct rule_run *run)
{
	FOR_EACH_GPU (g, run) {
		int64_t force = driver_forced_p2p(&run->m->driver, g);

		if (force)
			return run_text(
				run, "ForceP2P=0x%llx is set, but the driver lacks the mechanism",
				(unsigned long long)force);
	}
	return "the driver lacks the mechanism";
}

/* The module that runs is edited; the file that the next boot takes is not any more. */
static enum verdict probe_unlock_kept(struct rule_run *run)
{
	const struct nvidia_driver *d = &run->m->driver;
	struct finding *f;

	if (!fact_is(d->bar1_p2p.loaded, 1))
		return VERDICT_NA;
	if (fact_unknown(d->bar1_p2p.installed))
		return rule_unknown(run, FACT_WHY(d->bar1_p2p.installed), "the module on disk");
	if (!fact_is(d->bar1_p2p.installed, 0))
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(DRIVER, "driver"),
			"the loaded module supports P2P through BAR1 on every chip, but the one on "
			"disk only has stubs: after a reboot %s",
			lost_at_boot(run));
	evidence_yes_no(run, f, "the loaded module supports P2P through BAR1 on every chip",
			d->bar1_p2p.loaded);
	evidence_yes_no(run, f, "the module on disk supports it", d->bar1_p2p.installed);
	finding_expects(f, "yes");
	evidence_registry(run, f);
	return VERDICT_BAD;
}

static bool asks_for_nvlink(struct rule_run *run)
{
	FOR_EACH_GPU (g, run)
		if (registry_means_nvlink(&run->m->driver, g))
			return true;
	return false;
}

/* p2p_caps.c: the key is asked for BAR1, NVLink and C2C, not for mailboxes. */
static bool every_pair_has_a_way(struct rule_run *run)
{
	FOR_EACH_GPU_PAIR (i, j, run)
		if (topology_path(run->t, i, j)->chain[CHAIN_DRIVER].state != CHAIN_OK)
			return false;
	return true;
}

static enum verdict probe_force_type(struct rule_run *run)
{
	const struct nvidia_driver *d = &run->m->driver;
	bool served = every_pair_has_a_way(run);
	struct finding *f;

	if (fact_unknown(d->registry_dwords))
		return rule_unknown(run, FACT_WHY(d->registry_dwords),
				    "the driver's registry keys");
	if (!asks_for_nvlink(run))
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_CERTAIN, SUBJECT(DRIVER, "driver"),
		"RMForceP2PType=2 makes driver %s use NVLink only: until 570 the value meant "
		"BAR1, and 575 renumbered it%s",
		d->module_version.value,
		served ? "; NVLink connects every pair, so nothing is lost" : "");
	if (served)
		f->severity = SEVERITY_INFO;
	remedy_of_key(run, f, "RMForceP2PType");
	evidence_registry(run, f);
	return VERDICT_BAD;
}

/* ---- modes ---- */

static enum verdict probe_compute_mode(struct rule_run *run)
{
	const struct compute_mode *mode = gpu_compute_mode(run->gpu);
	struct finding *f;

	if (!mode)
		return VERDICT_OK;
	f = finding_here(run, CONFIDENCE_CERTAIN, ABOUT " is in compute mode %s: %s", mode->word,
			 mode->who);
	if (!gpu_has_fault(run->m, run->gpu, DEVICE_PROHIBITED)) {
		f->pairs = 0;
		f->severity = SEVERITY_INFO;
	}
	finding_remedy(run, f, "`nvidia-smi -i " ABOUT_PCI " -c 0`");
	finding_evidence(run, f, run->gpu->compute_mode.from, "compute mode", "%s", mode->word);
	finding_expects(f, "default");
	return VERDICT_BAD;
}

static enum verdict probe_mig(struct rule_run *run)
{
	struct finding *f;

	if (!gpu_has_fault(run->m, run->gpu, DEVICE_MIG))
		return VERDICT_OK;
	f = finding_here(run, CONFIDENCE_CERTAIN,
			 ABOUT " is in MIG mode: its instances have no P2P, over NVLink or PCIe");
	finding_remedy(run, f, "while no job uses it: `nvidia-smi -i " ABOUT_PCI " -mig 0`");
	evidence_yes_no(run, f, "MIG mode on", run->gpu->mig_enabled);
	finding_expects(f, "no");
	return VERDICT_BAD;
}

/* text: how the key starts. */
static void propose_without_key(struct rule_run *run, struct change_set *out)
{
	const char *place = place_of_key(run, run->rule->text);

	FOR_EACH_FINDING (f, run)
		if (f->rule == run->rule)
			propose_by_hand(run, out,
					place ? place : "NVreg_RegistryDwords of module nvidia",
					"%s", f->remedy);
}

#define P2P_CAPS                                                                                   \
	"open-gpu-kernel-modules src/nvidia/src/kernel/platform/p2p/p2p_caps.c; nvml.h "           \
	"nvmlGpuP2PStatus_t"

const struct rule rules_driver[] = {
	{
		.id = "module-torn",
		.turn = TURN_START,
		.title = "The driver's modules on disk are complete",
		.why = "DKMS copies modules and does not wait until they are on disk. After a power "
		       "failure seconds later they can be truncated or filled with zeros, and the "
		       "kernel rejects them.",
		.remedy =
			"reinstall what DKMS built: `dkms install --force NAME/VERSION -k KERNEL` "
			"(dkms status lists them)",
		.reference = "dkms(8); Linux Documentation/admin-guide/ext4.rst, auto_da_alloc",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU,
		.probe = probe_torn,
	},
	{
		.id = "driver-loaded",
		.turn = TURN_EARLY,
		.title = "NVIDIA's kernel module is loaded",
		.why = "Without it no program can use the GPUs.",
		.remedy = "install NVIDIA's driver with its open kernel modules from the "
			  "distribution (Debian: nvidia-open-kernel-dkms, Ubuntu: "
			  "nvidia-driver-NNN-open), then `modprobe nvidia`",
		.reference = "NVIDIA driver README, \"Installing the NVIDIA driver\"",
		.ends_runs = true,
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.needs = NEEDS_GPU,
		.probe = probe_loaded,
		.heard = heard_no_driver,
	},
	{
		.id = "driver-bound",
		.title = "Every GPU is bound to NVIDIA's driver",
		.why = "A GPU that is bound to another driver, or to none, has no P2P. One such "
		       "card made the driver report CNS for the other GPUs too.",
		.remedy =
			"look for \"NVRM\" lines about this GPU in the kernel log (dmesg), which say "
			"why it was rejected",
		.reference = "Documentation/ABI/testing/sysfs-bus-pci; "
			     "aikitoria/open-gpu-kernel-modules#24",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_GPU,
		.scope = SCOPE_GPU,
		.probe = probe_bound,
		.heard = heard_no_gpu,
		.fact = PCI_FACT(driver, "the driver"),
		.propose = propose_bound,
	},
	{
		.id = "gpu-passed-through",
		.title = "No GPU is reserved for a virtual machine",
		.why = "A GPU bound to vfio-pci belongs to a guest; the host cannot use it.",
		.remedy = "unbind it from vfio-pci, unless a guest needs it",
		.reference = "Documentation/driver-api/vfio.rst",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.reason = REASON_DEVICE_SET_ASIDE,
		.needs = NEEDS_GPU,
		.scope = SCOPE_GPU,
		.probe = probe_passthrough,
		.fact = PCI_FACT(driver, "the driver"),
	},
	{
		.id = "gpu-excluded",
		.title = "The driver excludes no GPU",
		.why = "An excluded GPU is visible on the bus, but no program can use it.",
		.remedy =
			"remove its UUID from NVreg_ExcludedGpus in /etc/modprobe.d and reload the "
			"module",
		.reference = "kernel-open/nvidia/nv-reg.h, NVreg_ExcludedGpus",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.reason = REASON_DEVICE_EXCLUDED,
		.needs = NEEDS_GPU | NEEDS_DRIVER,
		.scope = SCOPE_GPU,
		.probe = probe_excluded,
		.fact = GPU_FACT(excluded, "the driver's information file"),
	},
	{
		.id = "gpu-alive",
		.title = "Every GPU responds on the bus",
		.why = "A GPU that has fallen off the bus stays lost until a reset or power cycle, "
		       "and jobs that use it hang.",
		.remedy = "look for Xid 79 in the kernel log; power-cycle the machine, then check "
			  "power cables, seating and riser",
		.reference = "PCIe 6.0, 2.3.2 (all ones for an unsupported request); NVIDIA Xid 79",
		.ends_runs = true,
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_GPU,
		.scope = SCOPE_GPU,
		.probe = probe_alive,
		.heard = heard_not_opened,
	},
	{
		.id = "machine-readable",
		.title = "All devices could be read",
		.why = "What cannot be read is judged as unknown; the reason may itself be the "
		       "fault.",
		.remedy = "compare with lspci -vvv of the device, or with the content of the file",
		.reference = "PCIe 6.0, 7.5 and 7.6 (layout of the capability lists)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.probe = probe_readable,
	},
	{
		.id = "driver-library-version",
		.title = "The module and the libraries of the driver have the same version",
		.why = "CUDA and NVML do not work with a module of another version.",
		.remedy = "reboot to load the module of the installed version; if the mismatch "
			  "remains, reinstall driver and libraries from one source",
		.reference = "NVRM: \"API mismatch\"; aikitoria/open-gpu-kernel-modules#10",
		.ends_runs = true,
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.needs = NEEDS_GPU | NEEDS_DRIVER,
		.probe = probe_library,
		.heard = heard_mismatch,
	},
	{
		.id = "driver-module-current",
		.title = "The loaded module is the installed one",
		.why = "An updated or edited module has no effect until the old one is unloaded. A "
		       "stale copy in the initramfs survives even a reboot.",
		.remedy = "reboot; if it remains, rebuild the initramfs (`update-initramfs -u`, "
			  "`dracut -f`) and look for a second copy: `modinfo -n nvidia`",
		.reference = "modprobe(8); tinygrad/open-gpu-kernel-modules#21",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_GPU | NEEDS_DRIVER,
		.probe = probe_installed,
		.heard = heard_busy,
	},
	{
		.id = "driver-open-modules",
		.title = "The open modules are loaded where they are required",
		.why = "Blackwell needs the open modules. BAR1 P2P on GeForce needs edited open "
		       "modules, and only the open modules export dma-buf.",
		.remedy = "install the open modules of the same version (" DISTRIBUTION_OPEN_MODULES
			  ") and reboot",
		.reference = "NVIDIA driver README, \"Open Linux Kernel Modules\"",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.needs = NEEDS_GPU | NEEDS_DRIVER,
		.scope = SCOPE_GPU,
		.probe = probe_open,
	},
	{
		.id = "p2p-geforce",
		.title = "The driver supports P2P on these GeForce cards",
		.why = "NVIDIA enables P2P over PCIe on workstation and data center cards only; all "
		       "transfers go through host memory. The status code, usually CNS, blames the "
		       "chipset, which is not at fault.",
		.remedy =
			"`onehop unlock` shows what this machine needs for P2P and installs nothing "
			"without --apply; BAR1 must cover the memory",
		.reference = P2P_CAPS "; pytorch/pytorch#96600",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER | NEEDS_NVML,
		.scope = SCOPE_PAIR,
		.probe = probe_geforce,
		.report = report_geforce,
		.heard = heard_misreport,
	},
	{
		.id = "p2p-chipset",
		.title = "The driver accepts the chipset for P2P (no CNS)",
		.why = "CNS means that NVIDIA's lists of chipsets and CPUs lack this one. Transfers "
		       "go through host memory.",
		.remedy =
			"move both GPUs below one PCIe switch, where the lists are not used; or, for "
			"cards that support P2P over PCIe (docs/support.md), set "
			"NVreg_RegistryDwords=\"ForceP2P=0x211\" (0x11 before driver 565), then run "
			"`onehop test` to check that the data arrives correctly",
		.reference = P2P_CAPS
		" NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED; src/kernel/gpu/bus/p2p_caps.c (CPU types "
		"RYZEN, XEON_SPR)",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER | NEEDS_NVML,
		.probe = probe_status,
		.argument =
			&(const struct denial){
				.status = P2P_CHIPSET_NOT_SUPPORTED,
				.why =
					{
						("this host bridge is not in the driver's list of chipsets, and the GPUs "
						 "share no PCIe switch"),
						("this CPU is not in the driver's list for peer reads; writes are allowed, "
						 "and the board is not at fault"),
						"this host bridge is not in the driver's list of chipsets",
						("this host bridge is not in the driver's list of chipsets, or this CPU is not in "
						 "its list for peer reads; `nvidia-smi topo -p2p w` shows which"),
						"this host bridge is not in the driver's list of chipsets",
					},
				.remedy = chipset_remedy,
			},
	},
	{
		.id = "p2p-gpu",
		.title = "The driver supports P2P for every pair of models (no GNS)",
		.why = "GNS comes from the cards' own firmware or from their combination: P2P works "
		       "only between cards of one generation.",
		.remedy =
			"pair cards of the same model; no setting on the host changes this answer",
		.reference = P2P_CAPS
		" NVML_P2P_STATUS_GPU_NOT_SUPPORTED; aikitoria/open-gpu-kernel-modules#40",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER | NEEDS_NVML,
		.probe = probe_status,
		.argument =
			&(const struct denial){
				.status = P2P_GPU_NOT_SUPPORTED,
				.why =
					{
						"the cards' firmware does not offer P2P for this model or this pair of models",
						"the cards' firmware does not offer reads",
						"the cards' firmware does not offer writes",
						"the cards' firmware does not offer reads",
						"the cards' firmware does not offer writes",
					},
				.remedy = gpu_remedy,
			},
	},
	{
		.id = "p2p-generation",
		.title = "All GPUs are of one generation",
		.why = "CUDA allows P2P only between cards of one generation. The kernel modules "
		       "may report more.",
		.remedy =
			"pair cards of one generation, or exclude the odd one (CUDA_VISIBLE_DEVICES)",
		.reference = "aikitoria/open-gpu-kernel-modules#12, #28, #40",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS,
		.scope = SCOPE_PAIR,
		.probe = probe_generation,
		.report = report_generation,
	},
	{
		.id = "p2p-topology",
		.title = "The driver accepts the location of the GPUs (no TNS)",
		.why = "Intel's I/O hubs of the 5520 generation do not forward peer traffic to each "
		       "other.",
		.remedy = "move the GPUs to slots of the same I/O hub (the same socket)",
		.reference = P2P_CAPS " NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER | NEEDS_NVML,
		.probe = probe_status,
		.argument =
			&(const struct denial){
				.status = P2P_TOPOLOGY_NOT_SUPPORTED,
				.why =
					{
						("the GPUs are below two old Intel I/O hubs, which do not forward traffic to "
						 "each other"),
						"the I/O hubs do not answer reads from each other",
						"the I/O hubs do not forward writes to each other",
						"the I/O hubs do not answer reads from each other",
						"the I/O hubs do not forward writes to each other",
					},
			},
	},
	{
		.id = "p2p-regkey",
		.title = "No registry key disables P2P (no DR)",
		.why = "DR means that P2P is disabled in the driver's settings, by an administrator "
		       "or by a vendor's default.",
		.remedy =
			"remove ForceP2P from NVreg_RegistryDwords in /etc/modprobe.d (or set 0x211; "
			"0x11 before driver 565), rebuild the initramfs and reload the module",
		.reference = P2P_CAPS " NVML_P2P_STATUS_DISABLED_BY_REGKEY; kernel_bif.c",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER | NEEDS_NVML,
		.probe = probe_status,
		.argument =
			&(const struct denial){
				.status = P2P_DISABLED_BY_REGKEY,
				.why =
					{
						"a registry key disables it (a 0 field in ForceP2P)",
						"a registry key disables reads (ForceP2P bits 1:0)",
						"a registry key disables writes (ForceP2P bits 5:4)",
						"a registry key disables reads (ForceP2P bits 1:0)",
						"a registry key disables writes (ForceP2P bits 5:4)",
					},
			},
		.propose = propose_without_key,
		.text = "ForceP2P=",
	},
	{
		.id = "p2p-not-supported",
		.title = "The driver finds a path between every two GPUs (no NS)",
		.why = "NS is the driver's generic refusal.",
		.remedy =
			"look for NVRM lines in the kernel log; in a virtual machine, configure the "
			"hypervisor to put both GPUs into one P2P clique",
		.reference = P2P_CAPS " NVML_P2P_STATUS_NOT_SUPPORTED",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER | NEEDS_NVML,
		.probe = probe_status,
		.argument =
			&(const struct denial){
				.status = P2P_NOT_SUPPORTED,
				.why =
					{
						("the driver finds no path between these two GPUs, usually because the "
						 "chipset was not set up in time or one of them is a mobile part"),
						"it has no path for reads",
						"it has no path for writes",
						"it has no path for reads",
						"it has no path for writes",
					},
			},
	},
	{
		.id = "p2p-forced",
		.title = "P2P is not forced on where the cards lack the mechanism",
		.why = "The driver then reports OK and programs use P2P, but data is lost or reads "
		       "as zero, or the GPU faults (Xid 31, CUDA error 205).",
		.remedy =
			"remove ForceP2P from NVreg_RegistryDwords in /etc/modprobe.d until the "
			"mechanism exists (see rules p2p-geforce and bar1-small), then run `onehop "
			"test` to check that the data arrives correctly",
		.reference = "open-gpu-kernel-modules kernel_bif.c _kbifInitRegistryOverrides, "
			     "p2p_caps.c _kp2pCapsCheckStatusOverridesForPcie; "
			     "tinygrad/open-gpu-kernel-modules#16",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_ALL,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER,
		.scope = SCOPE_GPU,
		.probe = probe_forced,
		.propose = propose_without_key,
		.text = "ForceP2P=",
	},
	{
		.id = "unlock-kept",
		.title = "The edited module is also the one on disk",
		.why = "A package upgrade, or DKMS on a new kernel, restores NVIDIA's module. The "
		       "options that force P2P remain, and then force it without the mechanism.",
		.remedy =
			"before the next boot: build the edited modules for the version on disk "
			"(onehop unlock prints how), or remove ForceP2P from NVreg_RegistryDwords in "
			"/etc/modprobe.d",
		.reference = "open-gpu-kernel-modules g_kern_bus_nvoc.c; modprobe(8)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER,
		.probe = probe_unlock_kept,
	},
	{
		.id = "p2p-force-type",
		.title = "RMForceP2PType has the meaning that the guide assumed",
		.why = "Driver 575 renumbered its values: 2 meant BAR1 and now means NVLink, which "
		       "disables P2P through BAR1. Cards with mailboxes ignore the key and keep P2P "
		       "over PCIe.",
		.remedy =
			"remove RMForceP2PType; for BAR1 set RMPcieP2PType=1 (driver 575 and later)",
		.reference = "open-gpu-kernel-modules kernel_bif.c, nvrm_registry.h "
			     "NV_REG_STR_RM_FORCE_P2P_TYPE (535 to 595)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_ALL,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER,
		.probe = probe_force_type,
		.propose = propose_without_key,
		.text = "RMForceP2PType",
	},
	{
		.id = "gpu-listed",
		.title = "NVML lists every GPU that is bound to nvidia",
		.why = "NVML omits a GPU that the driver could not initialize, or whose device node "
		       "is missing or inaccessible to this user. Programs then use fewer GPUs.",
		.remedy =
			"in a container: give it access to the GPU; otherwise look for NVRM lines "
			"about this GPU in the kernel log, and check its /dev/nvidia<N>",
		.reference = "nvml.h nvmlDeviceGetCount",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_GPU | NEEDS_DRIVER | NEEDS_NVML,
		.scope = SCOPE_GPU,
		.probe = probe_listed,
	},
	{
		.id = "gpu-compute-mode",
		.title = "Every GPU is in the default compute mode",
		.why = "In any other mode a second process, or every process, is refused: NCCL and "
		       "tests cannot start.",
		.remedy = "`nvidia-smi -c 0`",
		.reference = "nvidia-smi(1), COMPUTE MODE; nvml.h nvmlComputeMode_t",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.reason = REASON_DEVICE_PROHIBITED,
		.needs = NEEDS_GPU | NEEDS_DRIVER | NEEDS_NVML,
		.scope = SCOPE_GPU,
		.probe = probe_compute_mode,
		.fact = GPU_FACT(compute_mode, "the compute mode"),
	},
	{
		.id = "gpu-mig",
		.title = "No GPU is in MIG mode",
		.why = "MIG instances have no P2P, neither over NVLink nor over PCIe.",
		.remedy = "`nvidia-smi -mig 0`",
		.reference = "NVIDIA MIG User Guide, \"Application considerations\"",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.reason = REASON_DEVICE_MIG,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER | NEEDS_NVML,
		.scope = SCOPE_GPU,
		.probe = probe_mig,
		.fact = GPU_FACT(mig_enabled, "the MIG mode"),
	},
	{0},
};
