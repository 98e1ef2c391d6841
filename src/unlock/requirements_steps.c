/* SPDX-License-Identifier: Apache-2.0 */
/* Where the sources are, what a person has to do, and what to mind, once the options are known. */
#include "unlock/build.h"
#include "unlock/dkms.h"
#include "unlock/known_sources.h"
#include "unlock/requirements_impl.h"
#include "unlock/requirements_kernel.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/distribution.h"
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#define TREE          "open-gpu-kernel-modules"
#define OPTIONS_FILE  "/etc/modprobe.d/onehop-p2p.conf"
#define FIX_FILE      "/etc/modprobe.d/onehop.conf" /* of onehop fix */
#define OVERRIDE_FILE "/etc/depmod.d/onehop-p2p.conf"

/* Of what a recording holds, only this gets into a command. */
static bool is_plain(const char *s, size_t n)
{
	static const char ok[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+~=-";

	return n && strspn(s, ok) >= n;
}

const char *requirement_file_name(struct machine *m, const char *module, const char *otherwise)
{
	const struct module *k = machine_module(m, module);
	const char *path = k ? fact_str_or(k->file, "") : "", *slash = strrchr(path, '/'), *dot;

	path = slash ? slash + 1 : path;
	dot = strstr(path, ".ko");
	if (!dot || !is_plain(path, (size_t)(dot - path)))
		return otherwise;
	return arena_strndup(m->arena, path, (size_t)(dot - path));
}

/* ---- steps ---- */

struct steps {
	struct machine *m;
	struct requirement_step *items;
	size_t n;
};

static void add_step(struct steps *s, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void add_step(struct steps *s, const char *what, const char *fmt, ...)
{
	struct requirement_step *step = ARENA_PUSH(s->m->arena, s->items, s->n);
	AUTO_STRBUF struct strbuf b = {0};
	va_list ap;

	va_start(ap, fmt);
	strbuf_vprintf(&b, fmt, ap);
	va_end(ap);
	*step = (struct requirement_step){what,
					  b.len ? arena_strdup(s->m->arena, strbuf_str(&b)) : NULL};
}

static const char *kernel_of(const struct machine *m)
{
	const char *release = fact_str_or(m->kernel.release, "");

	return is_plain(release, strlen(release)) ? release : "$(uname -r)";
}

static void add_sources(struct machine *m, struct unlock_requirements *n)
{
	struct steps s = {.m = m};
	const char *package = distribution_habits(&m->kernel)->driver_source;
	const char *name = requirement_file_name(m, "nvidia", "nvidia");

	add_step(&s, "check out the tag of this release in NVIDIA's public repository",
		 "git clone --depth 1 --branch %s " PUBLIC_REPOSITORY " " TREE, n->release);
	if (package && text_starts_with(name, "nvidia-"))
		add_step(&s, "or get Debian's source package, if it has this release",
			 "apt source %s\n"
			 "mv %s-%s " TREE,
			 package, package, n->release);
	n->can_download = known_source_find(n->release);
	n->sources = s.items;
	n->source_n = s.n;
}

static void add_headers(struct steps *s)
{
	const enum distribution d = distribution_of(&s->m->kernel);
	AUTO_STRBUF struct strbuf package = {0}, command = {0};

	if (!fact_is(s->m->kernel.headers, 0))
		return;
	distribution_headers(d, kernel_of(s->m), &package);
	distribution_install(d, strbuf_str(&package), &command);
	add_step(s, "install the headers of the running kernel", "%s",
		 d ? strbuf_str(&command) : "");
}

/* With the compiler that the kernel was built with, where there is one of that version. */
static void add_build(struct steps *s)
{
	const struct kernel *k = &s->m->kernel;
	AUTO_FREE char *cc = NULL;

	if (fact_str_is(k->compiler_family, "gcc") && fact_is(k->exact_compiler, 1))
		cc = xprintf(" CC=gcc-%d", (int)fact_or(k->compiler_major, 0));
	add_step(s, "edit the tree (all places are checked before anything is written)",
		 "onehop unlock --tree " TREE " --apply");
	add_step(
		s,
		arena_printf(
			s->m->arena,
			"build: about %d minutes on 2 cores, 0.5 GB of disk; needs make, gcc and g++",
			build_minutes(BUILD_CORE, 2) + build_minutes(BUILD_MODULES, 2)),
		"make -C " TREE " -j\"$(nproc)\" modules%s", cc ? cc : "");
}

static const struct {
	const char *module, *file;
} kernel_modules[] = {
	{"nvidia", "nvidia"},
	{"nvidia_modeset", "nvidia-modeset"},
	{"nvidia_drm", "nvidia-drm"},
	{"nvidia_uvm", "nvidia-uvm"},
	{"nvidia_peermem", "nvidia-peermem"},
};

#define KERNEL_MODULES (sizeof(kernel_modules) / sizeof(kernel_modules[0]))

/* Next to the stock modules, which stay; a line for depmod makes modprobe prefer them. */
static void add_install(struct steps *s)
{
	AUTO_STRBUF struct strbuf copy = {0}, override = {0};
	struct machine *m = s->m;

	for (size_t i = 0; i < KERNEL_MODULES; i++) {
		const char *name =
			requirement_file_name(m, kernel_modules[i].module, kernel_modules[i].file);

		strbuf_printf(&copy,
			      "%ssudo install -D -m 644 " TREE
			      "/kernel-open/%s.ko /lib/modules/%s/updates/onehop/%s.ko",
			      i ? "\n" : "", kernel_modules[i].file, kernel_of(m), name);
		strbuf_printf(&override, " 'override %s * updates/onehop'", name);
	}
	add_step(s, "install the modules next to the stock ones, which stay unchanged", "%s",
		 strbuf_str(&copy));
	if (fact_is(m->kernel.secure_boot, 1))
		add_step(s,
			 "Secure Boot is on: sign them with a key that the firmware knows (mokutil "
			 "--import asks for a password and a reboot, once)",
			 "sudo mokutil --import /" DKMS_CERTIFICATE "\n"
			 "for f in /lib/modules/%s/updates/onehop/*.ko; do sudo "
			 "/lib/modules/%s/build/scripts/sign-file sha256 /" DKMS_KEY
			 " /" DKMS_CERTIFICATE " \"$f\"; done",
			 kernel_of(m), kernel_of(m));
	add_step(s, "make modprobe prefer them",
		 "sudo mkdir -p /etc/depmod.d\n"
		 "printf '%%s\\n'%s | sudo tee " OVERRIDE_FILE "\nsudo depmod %s",
		 strbuf_str(&override), kernel_of(m));
}

static void add_initramfs(struct steps *s)
{
	const struct initramfs_tool *t = distribution_initramfs(distribution_of(&s->m->kernel));
	AUTO_STRBUF struct strbuf command = {0};

	if (t)
		initramfs_command(t, kernel_of(s->m), &command);
	add_step(
		s,
		t ? "rebuild the initramfs, which may contain the modules and their options"
		  : "rebuild the initramfs, if there is one: it may contain the modules and their options",
		"%s%s", t ? "sudo " : "", strbuf_str(&command));
}

static void add_steps(struct machine *m, struct unlock_requirements *n)
{
	struct steps s = {.m = m};

	if (action_builds(n->action)) {
		add_headers(&s);
		add_build(&s);
		add_install(&s);
	}
	if (!n->options_set)
		add_step(&s, "set the options", "printf '%%s\\n' '%s' | sudo tee " OPTIONS_FILE,
			 n->options);
	add_initramfs(&s);
	add_step(&s, "reboot, then check that it is in effect and that data is correct",
		 "onehop unlock\nonehop test");
	n->steps = s.items;
	n->step_n = s.n;
}

static void add_back(struct machine *m, struct unlock_requirements *n)
{
	struct steps s = {.m = m};

	add_step(&s, "remove the options", "sudo rm -f " OPTIONS_FILE);
	if (action_builds(n->action) || n->action == ACTION_RELOAD)
		add_step(&s, "remove the modules",
			 "sudo rm -rf " OVERRIDE_FILE " /lib/modules/%s/updates/onehop\n"
			 "sudo depmod %s",
			 kernel_of(m), kernel_of(m));
	add_initramfs(&s);
	add_step(&s, "reboot", "%s", "");
	n->back = s.items;
	n->back_n = s.n;
}

/* ---- cautions ---- */

static void add_caution(struct machine *m, struct unlock_requirements *n, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void add_caution(struct machine *m, struct unlock_requirements *n, const char *fmt, ...)
{
	AUTO_STRBUF struct strbuf b = {0};
	va_list ap;

	va_start(ap, fmt);
	strbuf_vprintf(&b, fmt, ap);
	va_end(ap);
	*ARENA_PUSH(m->arena, n->cautions, n->caution_n) = arena_strdup(m->arena, strbuf_str(&b));
}

/* Some edits need no options: the module that runs decides then. */
static bool any_needs_gate(const struct machine *m, const struct unlock_requirements *n)
{
	for (size_t i = 0; i < n->n; i++) {
		const struct gpu *g = n->cards[i].gpu;

		if (card_needs_uvm_gate(g) &&
		    (n->cards[i].wants_options || support_of(m, g).mechanism == MECHANISM_BAR1))
			return true;
	}
	return false;
}

static void caution_gate(struct machine *m, struct unlock_requirements *n)
{
	struct fact_int gate = driver_uvm_gate(&m->driver);

	if (fact_is(m->driver.bar1_p2p.loaded, 1) && any_needs_gate(m, n) && fact_unknown(gate))
		add_caution(
			m, n,
			"whether nvidia_uvm keeps managed memory away from peers could not be read (%s): do not use managed memory on these cards until that is known",
			FACT_WHY(gate));
}

/* An edit is of one release, all else of a branch. */
static bool is_tried(const struct machine *m, const struct unlock_requirements *n)
{
	if (action_builds(n->action) && n->release)
		return known_source_find(n->release);
	return release_tried(driver_branch(m->driver.module_version));
}

static void caution_driver(struct machine *m, struct unlock_requirements *n)
{
	const struct nvidia_driver *d = &m->driver;

	if (driver_loses_edit(d) && n->action != ACTION_REBUILD)
		add_caution(
			m, n,
			"the module on disk has only stubs again, as after a package upgrade: P2P is lost at the next boot, and the options remain (see onehop check)");
	if (action_builds(n->action) && !fact_known(d->flavor))
		add_caution(
			m, n,
			"it is unknown whether the open modules are loaded; the proprietary ones "
			"cannot be edited");
	if (fact_known(d->library_version) && n->release &&
	    strcmp(d->library_version.value, n->release) != 0)
		add_caution(
			m, n,
			"the user-space libraries have version %s, the module has %s: fix that first, and use the sources of that release",
			d->library_version.value, n->release);
	if (action_builds(n->action) && driver_release(d)->untested)
		add_caution(
			m, n,
			"edited drivers of the type of %s are untested on any card: no owner has "
			"published results; run onehop test",
			n->release);
	if (!is_tried(m, n))
		add_caution(
			m, n, "%s is untested: %s", n->release,
			action_builds(n->action)
				? "onehop unlock --tree checks the sources, and refuses them if a place differs"
				: "run onehop test");
	for (size_t i = 0; i < n->n; i++)
		if (n->cards[i].wants_options && !support_of(m, n->cards[i].gpu).chip_tried)
			add_caution(m, n, "the chip of GPU%zu is untested: run onehop test",
				    n->cards[i].gpu->index);
}

/* A person's setting; onehop sets it for no card. */
static void caution_static_bar1(struct machine *m, struct unlock_requirements *n)
{
	AUTO_STRBUF struct strbuf small = {0};

	if (!fact_is(driver_registry_dword(&m->driver, "RMForceStaticBar1"), 1))
		return;
	for (size_t i = 0; i < n->n; i++)
		if (support_bar1(n->cards[i].gpu).cover == BAR1_TOO_SMALL)
			strbuf_printf(&small, "%sGPU%zu", small.len ? ", " : " (here ",
				      n->cards[i].gpu->index);
	if (small.len)
		strbuf_puts(&small, ")");
	add_caution(
		m, n,
		"RMForceStaticBar1=1 is set for all cards (" PARAMETER_DWORDS
		"): a card whose BAR1 is smaller than its memory%s does not start with it; set it only for the cards that need it, in " PARAMETER_DWORDS_PER_DEVICE,
		strbuf_str(&small));
}

static void caution_build(struct machine *m, struct unlock_requirements *n)
{
	const char *kernel = fact_str_or(m->kernel.release, NULL), *trouble = NULL;

	if (action_builds(n->action) && n->release && kernel)
		trouble = need_kernel_trouble(n->release, kernel);
	if (trouble)
		add_caution(m, n, "as released, %s", trouble);
}

/* Options outlive a kernel; modules are for one. */
static void caution_kernels(struct machine *m, struct unlock_requirements *n)
{
	if (action_builds(n->action))
		add_caution(
			m, n,
			"modules fit one kernel and one driver release, options apply to all: DKMS builds for a new kernel; modules that you built yourself must be rebuilt before it boots, or " OPTIONS_FILE
			" removed");
}

static void caution_host(struct machine *m, struct unlock_requirements *n)
{
	size_t translated = 0;

	for (size_t i = 0; i < n->n; i++)
		translated +=
			n->cards[i].wants_options &&
			text_starts_with(fact_str_or(n->cards[i].gpu->pci->iommu_type, ""), "DMA");
	if (translated)
		add_caution(m, n,
			    "the IOMMU translates for %zu of these cards: boot with iommu=pt (see "
			    "onehop fix)",
			    translated);
	if (action_builds(n->action) && fact_is_not(m->kernel.lockdown, LOCKDOWN_NONE) &&
	    !fact_is(m->kernel.secure_boot, 1))
		add_caution(m, n, "the kernel is locked down: it only loads signed modules");
	if (action_builds(n->action) && fact_is(m->kernel.exact_compiler, 0))
		add_caution(m, n, "the kernel was built with %s, which is not installed",
			    fact_str_or(m->kernel.compiler, "another compiler"));
}

/* "NVreg_RegistryDwords=", and not that of NVreg_RegistryDwordsPerDevice. */
static bool sets(const char *text, const char *parameter)
{
	size_t n = strlen(parameter);

	for (const char *at = text; (at = strstr(at, parameter)); at += n)
		if (at[n] == '=')
			return true;
	return false;
}

/* A parameter that is given twice counts as it was given last; ours has what it holds now. */
static void caution_twice(struct machine *m, struct unlock_requirements *n, const char *parameter)
{
	for (size_t i = 0; i < m->modprobe_n; i++) {
		const struct modprobe_line *l = &m->modprobe[i];

		if (l->kind == MODPROBE_OPTIONS && sets(l->text, parameter) &&
		    strcmp(l->file, OPTIONS_FILE) != 0 && strcmp(l->file, FIX_FILE) != 0)
			add_caution(
				m, n,
				"%s:%u also sets %s, and the last setting counts: remove that line",
				l->file, l->line, parameter);
	}
	if (sets(fact_str_or(m->kernel.cmdline, ""), parameter))
		add_caution(
			m, n,
			"the kernel's command line sets %s, which overrides modprobe.d: remove it",
			parameter);
}

static void caution_settings(struct machine *m, struct unlock_requirements *n)
{
	caution_twice(m, n, n->settings[0].parameter);
	if (!n->per_device)
		return;
	if (requirement_sets_for_all(m))
		add_caution(
			m, n,
			PARAMETER_DWORDS
			" sets P2P keys for all cards, also those that must not have them: remove them");
	if (fact_unknown(m->driver.registry_dwords_per_device))
		add_caution(m, n,
			    "the present value of " PARAMETER_DWORDS_PER_DEVICE
			    " could not be read (%s): add the entries of other cards after these",
			    FACT_WHY(m->driver.registry_dwords_per_device));
}

static void caution_generations(struct machine *m, struct unlock_requirements *n)
{
	const struct gpu *first = NULL;

	for (size_t i = 0; i < n->n; i++) {
		const struct gpu *g = n->cards[i].gpu;

		if (!n->cards[i].wants_options || !fact_known(card_compute_capability(g)))
			continue;
		if (first && !card_same_generation(first, g)) {
			add_caution(
				m, n,
				"the cards are of different generations: P2P works only between cards of one generation, because CUDA's library refuses the others");
			return;
		}
		first = g;
	}
}

void requirement_steps(struct machine *m, struct unlock_requirements *n)
{
	caution_static_bar1(m, n);
	caution_gate(m, n);
	if (!n->options)
		return;
	caution_driver(m, n);
	caution_generations(m, n);
	caution_host(m, n);
	caution_build(m, n);
	caution_kernels(m, n);
	if (n->action > ACTION_OPTIONS)
		return;
	caution_settings(m, n);
	if (action_builds(n->action))
		add_sources(m, n);
	add_steps(m, n);
	add_back(m, n);
}
