/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about the host: guest or container, limits, command line, module building, Secure Boot,
 * persistence. */
#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/rules.h"
#include "machine/container.h"
#include "machine/distribution.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)

/* ---- guest, container ---- */

bool all_pairs_nvlink(const struct rule_run *run)
{
	for (size_t i = 0; i < run->t->gpu_n; i++)
		for (size_t j = 0; j < run->t->gpu_n; j++)
			if (i != j && topology_path(run->t, i, j)->class != PATH_NVLINK)
				return false;
	return run->t->gpu_n > 1;
}

/* Whether what the host hides could matter to anybody here. */
static bool has_pcie_pairs(const struct rule_run *run)
{
	return (run->m->gpu_n > 1 && !all_pairs_nvlink(run)) || run->m->rdma_n;
}

static enum verdict probe_virtual_machine(struct rule_run *run)
{
	struct fact_str hypervisor = run->m->kernel.hypervisor;
	struct finding *f;

	if (fact_unknown(hypervisor))
		return rule_unknown(run, FACT_WHY(hypervisor), "whether this is a guest");
	if (fact_absent(hypervisor))
		return VERDICT_OK;
	if (has_pcie_pairs(run)) {
		f = finding_add(
			run, CONFIDENCE_CERTAIN, SUBJECT(HOST, "host"),
			"in this virtual machine the PCI tree is the hypervisor's; ACS and IOMMU of "
			"the host are not visible");
	} else {
		f = finding_add(
			run, CONFIDENCE_CERTAIN, SUBJECT(HOST, "host"),
			"in this virtual machine ACS and IOMMU of the host are not visible%s",
			run->m->gpu_n > 1 ? "; NVLink does not need them" : "");
		finding_needs_nothing(f);
	}
	evidence_str(run, f, "hypervisor", hypervisor);
	return VERDICT_OK;
}

static enum verdict probe_container(struct rule_run *run)
{
	struct fact_str container = run->m->kernel.container;
	struct fact_int nodes = run->m->driver.device_nodes;
	struct fact_int driven = run->m->driver.gpus_in_proc;
	char sign[64];
	bool some = container_lacks_gpus(run->m);
	struct finding *f;

	if (fact_unknown(container))
		return rule_unknown(run, FACT_WHY(container), "whether this is a container");
	if (fact_absent(container))
		return VERDICT_OK;
	if (some)
		f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(HOST, "container"),
				"this container (%s) has device nodes for %" PRId64 " of %" PRId64
				" GPUs; CUDA cannot map memory of a GPU that it cannot see",
				container.value, nodes.value, driven.value);
	else if (container_is_guess(run->m))
		f = finding_add(
			run, CONFIDENCE_POSSIBLE, SUBJECT(HOST, "host"),
			"this may be a container: the file %s exists, but there is no other sign",
			container_sign(run->m, sign, sizeof(sign)));
	else
		f = finding_add(
			run, CONFIDENCE_CERTAIN, SUBJECT(HOST, "container"),
			"onehop runs in a %s container: it sees the container's processes, network, "
			"/dev/shm and GPUs, not the host's",
			container.value);
	if (!some && container_is_guess(run->m))
		finding_needs_nothing(f);
	evidence_str(run, f, "container", container);
	evidence_int(run, f, "device nodes /dev/nvidia<N>", nodes);
	evidence_int(run, f, "GPUs that the driver runs", driven);
	if (fact_unknown(run->m->log_read))
		finding_evidence(run, f,
				 run->m->log_read.from ? run->m->log_read.from : "no /dev/kmsg",
				 "kernel log", "not readable here");
	return VERDICT_OK;
}

/* ---- shared memory ---- */

/*
 * A connection's segment holds the Simple, LL and LL128 buffers: 9,637,888 bytes as NCCL prints it.
 * A ring and a tree over n GPUs on two channels are the least that NCCL sets up without peer
 * access.
 */
#define NCCL_SEGMENT_BYTES  INT64_C(9637888)
#define CONTAINER_SHM_BYTES (64 * MIB)

static int64_t shm_needed(const struct rule_run *run)
{
	return (int64_t)run->m->gpu_n * 2 * 2 * NCCL_SEGMENT_BYTES;
}

static bool nccl_flag(const struct machine *m, const char *name)
{
	const struct setting *s = machine_setting(m, name);
	int64_t value;

	return s && !text_to_i64(s->value, &value) && value == 1;
}

static enum verdict probe_shm_size(struct rule_run *run)
{
	const struct limits *l = &run->m->limits;
	int64_t needed = shm_needed(run);
	bool small = fact_known(l->shm_bytes) &&
		     (l->shm_bytes.value < needed || l->shm_bytes.value <= CONTAINER_SHM_BYTES);
	bool full = fact_known(l->shm_free_bytes) && l->shm_free_bytes.value < needed;
	struct finding *f;

	if (nccl_flag(run->m, "NCCL_SHM_DISABLE"))
		return VERDICT_NA;
	if (!fact_known(l->shm_bytes))
		return rule_unknown(run, FACT_WHY(l->shm_bytes), "size of /dev/shm");
	if (!small && !full)
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_LIKELY, SUBJECT(HOST, "/dev/shm"),
		small ? ABOUT " is %s; NCCL needs about %s for %zu GPUs without peer access"
		      : ABOUT " has %s free; NCCL needs about %s for %zu GPUs without peer access",
		run_bytes(run, (uint64_t)(small ? l->shm_bytes : l->shm_free_bytes).value),
		run_bytes(run, (uint64_t)needed), run->m->gpu_n);
	evidence_bytes(run, f, "size of /dev/shm", l->shm_bytes);
	evidence_bytes(run, f, "free space", l->shm_free_bytes);
	if (!small)
		finding_remedy(run, f,
			       "delete what finished jobs left behind: ls -l /dev/shm/nccl-*");
	else if (!fact_known(run->m->kernel.container) && !fact_unknown(run->m->kernel.container))
		finding_remedy(run, f, "`mount -o remount,size=50%% /dev/shm`");
	return VERDICT_OK;
}

static enum verdict probe_shm_writable(struct rule_run *run)
{
	struct fact_int writable = run->m->limits.shm_writable;
	struct finding *f;

	if (!fact_known(writable))
		return rule_unknown(run, FACT_WHY(writable), "whether /dev/shm can be written");
	if (writable.value)
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(HOST, "/dev/shm"),
			ABOUT
			" is not writable: NCCL cannot create the segments that GPUs without peer "
			"access use, whatever its size");
	evidence_yes_no(run, f, "/dev/shm writable", writable);
	finding_expects(f, "yes");
	return VERDICT_OK;
}

/* ---- locked memory ---- */

#define MEMLOCK_ENOUGH (64 * MIB)

static enum verdict probe_memlock(struct rule_run *run)
{
	struct fact_int soft = run->m->limits.memlock_bytes;
	struct finding *f;

	if (!fact_known(soft))
		return rule_unknown(run, FACT_WHY(soft), "the limit of locked memory");
	if (soft.value < 0 || soft.value >= MEMLOCK_ENOUGH)
		return VERDICT_OK;
	f = finding_add(
		run, fact_is(run->m->root, 1) ? CONFIDENCE_POSSIBLE : CONFIDENCE_CERTAIN,
		SUBJECT(HOST, "memlock"),
		"the limit of locked memory is %s; RDMA registration of larger host buffers "
		"fails with 'Cannot allocate memory'%s",
		run_bytes(run, (uint64_t)soft.value),
		fact_is(run->m->root, 1) ? " (root itself is exempt, other users' programs are not)"
					 : "");
	if (fact_is(run->m->root, 1))
		f->severity = SEVERITY_INFO;
	evidence_bytes(run, f, "RLIMIT_MEMLOCK, soft", soft);
	evidence_bytes(run, f, "RLIMIT_MEMLOCK, hard", run->m->limits.memlock_hard_bytes);
	if (fact_known(run->m->kernel.container))
		finding_remedy(run, f, "start the container with `--ulimit memlock=-1`");
	return VERDICT_OK;
}

/*
 * Also where the finding is lowered, as root: the exempt one is who makes the change, the others
 * are whom it is for. A container's limit is not the container's to raise.
 */
/* Root's own limit says little of other users': then it is only offered. */
static bool is_guess(const struct rule_run *run)
{
	FOR_EACH_FINDING (f, run)
		if (f->rule == run->rule && f->severity > SEVERITY_INFO)
			return false;
	return true;
}

static void propose_memlock(struct rule_run *run, struct change_set *out)
{
	if (fact_known(run->m->kernel.container) && !container_is_guess(run->m))
		return;
	propose(run, out,
		(struct change){
			.kind = CHANGE_MEMLOCK,
			.lifetime = CHANGE_KEPT,
			.reason = TEXTS(
				"programs can then register as much memory with a NIC as they need"),
			.cost = TEXTS("any user's process can lock all memory of the machine"),
			.opt_in = is_guess(run),
		});
}

/* ---- command line ---- */

/* How a kernel takes the parameter shows in its log. */
enum override_state { OVERRIDE_UNSEEN, OVERRIDE_IN_FORCE, OVERRIDE_IGNORED };

static enum override_state override_seen(struct rule_run *run, const char **ret_line)
{
	FOR_EACH_IN(struct log_line, l, run->m->log, run->m->log_n)
	{
		*ret_line = l->text;
		if (strstr(l->text, "ACS overrides enabled"))
			return OVERRIDE_IN_FORCE;
		if (strstr(l->text, "Unknown kernel command line") &&
		    strstr(l->text, "pcie_acs_override"))
			return OVERRIDE_IGNORED;
	}
	*ret_line = NULL;
	return OVERRIDE_UNSEEN;
}

static enum verdict probe_acs_override(struct rule_run *run)
{
	static const struct {
		enum confidence confidence;
		enum severity severity;
		const char *what;
	} said[] = {
		[OVERRIDE_UNSEEN] =
			{CONFIDENCE_LIKELY, SEVERITY_WARNING,
			 "a stock kernel ignores it; a patched one claims isolation that the hardware "
			 "does not provide"},
		[OVERRIDE_IN_FORCE] =
			{CONFIDENCE_CERTAIN, SEVERITY_WARNING,
			 "this kernel is patched to honor it: IOMMU groups appear isolated although "
			 "the hardware is not"},
		[OVERRIDE_IGNORED] = {CONFIDENCE_CERTAIN, SEVERITY_INFO,
				      "this kernel does not support it and ignores it"},
	};
	struct fact_str cmdline = run->m->kernel.cmdline;
	enum override_state state;
	const char *line;
	struct finding *f;

	if (!fact_known(cmdline))
		return rule_unknown(run, FACT_WHY(cmdline), "the kernel's command line");
	if (!text_has_word(cmdline.value, "pcie_acs_override="))
		return VERDICT_OK;
	state = override_seen(run, &line);
	f = finding_add(run, said[state].confidence, SUBJECT(HOST, "pcie_acs_override="),
			"the kernel was booted with pcie_acs_override=: %s; it clears no ACS bit "
			"that redirects peer traffic",
			said[state].what);
	f->severity = said[state].severity;
	evidence_str(run, f, "command line", cmdline);
	if (line)
		finding_evidence(run, f, NULL, "kernel log", "%s", line);
	return VERDICT_OK;
}

/* ---- building modules ---- */

/* Somebody will want to build the driver: it is missing, or it is stock on cards that need an edit.
 */
static bool build_is_near(struct rule_run *run)
{
	if (fact_is(run->m->driver.loaded, 0) || fact_absent(run->m->driver.loaded))
		return true;
	FOR_EACH_GPU (g, run)
		if (run->m->gpu_n > 1 && fact_is(card_needs_bar1(g), 1))
			return true;
	return false;
}

static enum verdict probe_compiler(struct rule_run *run)
{
	const struct kernel *k = &run->m->kernel;
	const char *family = fact_str_or(k->compiler_family, "gcc");
	struct finding *f;

	if (!build_is_near(run))
		return VERDICT_NA;
	if (!fact_known(k->compiler_major) || fact_unknown(k->installed_compiler_major))
		return rule_unknown(run, FACT_WHY(k->compiler_major),
				    "compilers of the kernel and of this host");
	if (fact_is(k->exact_compiler, 1) ||
	    fact_is(k->installed_compiler_major, k->compiler_major.value))
		return VERDICT_OK;
	if (fact_absent(k->installed_compiler_major))
		f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(HOST, "compiler"),
				"no %s is installed; modules for this kernel need %s %" PRId64,
				family, family, k->compiler_major.value);
	else
		f = finding_add(
			run, CONFIDENCE_POSSIBLE, SUBJECT(HOST, "compiler"),
			"the kernel was built with %s %" PRId64 ", but %s %" PRId64
			" is installed; another major version may reject the kernel's flags",
			family, k->compiler_major.value, family, k->installed_compiler_major.value);
	evidence_str(run, f, "kernel built with", k->compiler);
	evidence_int(run, f, "installed major version", k->installed_compiler_major);
	finding_remedy(run, f, "install %s-%" PRId64 " and build with CC=%s-%" PRId64 "", family,
		       k->compiler_major.value, family, k->compiler_major.value);
	return VERDICT_OK;
}

static const char *headers_command(struct rule_run *run, enum distribution d)
{
	AUTO_STRBUF struct strbuf package = {0}, command = {0};

	distribution_headers(d, run->m->kernel.release.value, &package);
	distribution_install(d, strbuf_str(&package), &command);
	return run_text(run, "%s", strbuf_str(&command));
}

static enum verdict probe_headers(struct rule_run *run)
{
	const struct kernel *k = &run->m->kernel;
	const enum distribution d = distribution_of(k);
	const char *release = fact_str_or(k->release, "this kernel");
	struct finding *f;

	if (!build_is_near(run))
		return VERDICT_NA;
	if (fact_unknown(k->headers))
		return rule_unknown(run, FACT_WHY(k->headers), "kernel headers");
	if (fact_is(k->headers, 1))
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_CERTAIN, SUBJECT(HOST, "kernel headers"),
		"the headers of %s are not installed: no module can be built for this kernel",
		release);
	evidence_yes_no(run, f, "headers installed", k->headers);
	finding_expects(f, "yes");
	if (fact_known(k->release) && d)
		finding_remedy(run, f, "`%s`", headers_command(run, d));
	else if (fact_known(k->release))
		finding_remedy(run, f, "Debian, Ubuntu: `%s`; Fedora, RHEL: `%s`",
			       headers_command(run, DISTRIBUTION_DEBIAN),
			       headers_command(run, DISTRIBUTION_FEDORA));
	return VERDICT_OK;
}

/* ---- Secure Boot ---- */

static enum verdict probe_lockdown(struct rule_run *run)
{
	static const char *const words[] = {"none", "integrity", "confidentiality"};
	const struct kernel *k = &run->m->kernel;
	bool locked = fact_known(k->lockdown) && k->lockdown.value > LOCKDOWN_NONE &&
		      k->lockdown.value <= LOCKDOWN_CONFIDENTIALITY;
	struct finding *f;

	if (fact_unknown(k->lockdown) && fact_unknown(k->secure_boot))
		return rule_unknown(run, FACT_WHY(k->lockdown), "Secure Boot and lockdown");
	if (!locked && !fact_is(k->secure_boot, 1))
		return VERDICT_OK;
	if (locked)
		f = finding_add(
			run, CONFIDENCE_CERTAIN, SUBJECT(HOST, "kernel"),
			"lockdown=%s: unsigned modules are rejected, and writes by setpci fail "
			"although it exits with 0",
			words[k->lockdown.value]);
	else
		f = finding_add(
			run, CONFIDENCE_LIKELY, SUBJECT(HOST, "kernel"),
			"Secure Boot is on: modules that are not signed with a key from the firmware "
			"or the machine owner may be rejected");
	evidence_word(run, f, "lockdown", k->lockdown, words, sizeof(words) / sizeof(words[0]));
	evidence_yes_no(run, f, "Secure Boot on", k->secure_boot);
	return VERDICT_OK;
}

/* ---- persistence ---- */

/* With nvidia-persistenced NVML says "on" too, so this is all there is to ask. */
static enum verdict probe_persistence(struct rule_run *run)
{
	const char *names = NULL;
	struct finding *f;
	size_t n = 0;

	FOR_EACH_GPU (g, run)
		if (fact_is(g->persistence, 0) && n++ < 8)
			names = run_list(run, names, run_text(run, "GPU%zu", g->index));
	if (n) {
		f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(DRIVER, "driver"),
				"the " ABOUT " deinitializes %s while no program uses %s",
				gpu_list_text(run, names, n), n == 1 ? "it" : "them");
		FOR_EACH_GPU (g, run) {
			evidence_yes_no(run, f,
					run_text(run, "persistence mode of %s", g->pci->name),
					g->persistence);
			finding_expects(f, "yes");
		}
	}
	return VERDICT_OK;
}

static void propose_persistence(struct rule_run *run, struct change_set *out)
{
	propose(run, out,
		(struct change){
			.kind = CHANGE_PERSISTENCE,
			.lifetime = CHANGE_LASTING,
			.reason = TEXTS(
				"GPUs then stay initialized, and keep their settings, while no program uses "
				"them"),
			.cost = TEXTS("idle GPUs draw a few watts more than deinitialized ones"),
		});
}

/* ---- the table ---- */

const struct rule rules_host[] = {
	{
		.id = "virtual-machine",
		.title = "The machine is not a guest, so its PCI tree is the real one",
		.why = "A hypervisor shows each GPU below an emulated port. The distances, ACS and "
		       "IOMMU that matter for peer traffic are the host's and not visible, and the "
		       "driver may refuse P2P because it does not recognize the emulated chipset.",
		.remedy = "run onehop on the host to check ACS, IOMMU and Resizable BAR",
		.reference = "noonghunna/club-3090#884; NVIDIA/nccl documentation, NCCL_TOPO_FILE",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU,
		.probe = probe_virtual_machine,
	},
	{
		.id = "container",
		.title = "onehop runs on the host, not in a container",
		.why = "A container may lack device nodes, has its own /dev/shm and network, and no "
		       "kernel log. CUDA's peer access needs every GPU visible in each process, and "
		       "NCCL treats two containers with different /dev/shm as two machines.",
		.remedy =
			"give every container all GPUs (--gpus all) and share /dev/shm (--ipc=host); "
			"run onehop on the host to see the rest",
		.reference = "NVIDIA/nccl#324",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU,
		.probe = probe_container,
	},
	{
		.id = "shm-size",
		.title = "/dev/shm has room for NCCL's shared segments",
		.why = "NCCL connects GPUs without peer access through segments in /dev/shm, one "
		       "for each connection and channel. Without room it fails at start with 'No "
		       "space left on device'; Docker's default is 64 MiB.",
		.remedy =
			"start the container with `--shm-size=1g` (or `--ipc=host`); in Kubernetes "
			"mount a volume of medium Memory at /dev/shm",
		.reference = "pytorch/ci-infra#490, NVIDIA/nccl#290",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_shm_size,
	},
	{
		.id = "shm-writable",
		.title = "/dev/shm is writable",
		.why = "NCCL creates its shared segments as files in /dev/shm and fails at once if "
		       "it cannot.",
		.remedy = "chmod 1777 /dev/shm",
		.reference = "NVIDIA/nccl#328",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_shm_writable,
	},
	{
		.id = "memlock",
		.title = "Processes may lock enough memory for RDMA",
		.why = "Memory that a NIC reads or writes is locked, and the kernel counts it "
		       "against RLIMIT_MEMLOCK.",
		.remedy = "put '* soft memlock unlimited' and '* hard memlock unlimited' into "
			  "/etc/security/limits.d/rdma.conf and log in again; for services set "
			  "LimitMEMLOCK=infinity",
		.reference = "NVIDIA/nccl documentation, troubleshooting; ib_umem_get() in Linux",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_RDMA,
		.probe = probe_memlock,
		.propose = propose_memlock,
	},
	{
		.id = "acs-override",
		.title = "pcie_acs_override= is not on the kernel command line",
		.why = "Stock kernels do not have this parameter. Kernels patched for it only claim "
		       "that devices are isolated: a guest can then access memory that it must not, "
		       "and peer traffic is redirected as before.",
		.remedy =
			"remove it from the command line; acs-redirect and acs-root-port say how to "
			"clear ACS redirects",
		.reference = "Linux Documentation/admin-guide/kernel-parameters.txt "
			     "(pci=disable_acs_redir)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_CMDLINE,
		.probe = probe_acs_override,
	},
	{
		.id = "kernel-compiler",
		.title = "The compiler that built the kernel is installed",
		.why = "Kernel modules are built with the kernel's own flags; a compiler of another "
		       "major version may not support them, or may build modules that the kernel "
		       "rejects.",
		.remedy = "install the compiler that built the kernel",
		.reference = "Linux Documentation/kbuild/modules.rst",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU,
		.probe = probe_compiler,
	},
	{
		.id = "kernel-headers",
		.title = "The headers of the running kernel are installed",
		.why = "Without them neither NVIDIA's driver nor an edited one can be built for "
		       "this kernel.",
		.remedy = "install the headers of the running kernel",
		.reference = "Linux Documentation/kbuild/modules.rst",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU,
		.probe = probe_headers,
	},
	{
		.id = "secure-boot",
		.title = "Secure Boot and lockdown do not restrict modules and setpci",
		.why = "Under lockdown a module that you built yourself cannot be loaded, and a "
		       "write by setpci has no effect although it reports success.",
		.remedy =
			"sign the modules and enroll the key (`mokutil --import`), read registers "
			"back after setpci, or disable Secure Boot in the firmware setup",
		.reference = "man 7 kernel_lockdown",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU,
		.probe = probe_lockdown,
	},
	{
		.id = "gpu-persistence",
		.title = "The driver keeps idle GPUs initialized",
		.why = "Otherwise the first program waits for the GPUs to initialize, which takes "
		       "seconds on large boards, and settings (clocks, power limits, compute mode) "
		       "are lost whenever the last program exits.",
		.remedy = "`systemctl enable --now nvidia-persistenced`; without that program: "
			  "`nvidia-smi -pm 1` after each boot",
		.reference =
			"NVIDIA driver README, \"Using the nvidia-persistenced utility\"; nvml.h "
			"nvmlDeviceGetPersistenceMode",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU | NEEDS_DRIVER | NEEDS_NVML,
		.probe = probe_persistence,
		.fact = GPU_FACT(persistence, "the persistence mode"),
		.propose = propose_persistence,
	},
	{0},
};
