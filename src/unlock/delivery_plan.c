/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/delivery_plan.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/journal.h"
#include "machine/module_torn.h"
#include "support/support.h"
#include "unlock/probe.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

/* Many times build_minutes. */
#define BUILD_S   3600
#define INSTALL_S 1200
#define SAVE_S    600
#define SHORT_S   120

/* What DKMS has of a module for a kernel. Paths are below the root. */
struct dkms_state {
	const char *machine; /* "x86_64": the folder below the kernel's */
	const char *version; /* var/lib/dkms/NAME/VERSION */
	const char *kernel;  /* ..., /KERNEL: what "dkms build" makes */
	const char *modules; /* ..., /x86_64/module */
	const char *link; /* var/lib/dkms/NAME/kernel-KERNEL-x86_64: there while it is installed */
	const char *leads, *elsewhere; /* where it leads while this release is, and to nowhere */
	const char *id;                /* "NAME/VERSION", as dkms takes it */
	bool built, installed;
	bool torn;       /* what is installed is not whole: the power went while it was copied */
	bool edited;     /* and what is built has BAR1 P2P for every chip, and the gate */
	bool other_edit; /* it has the first, and not the second: an earlier onehop's */
};

struct maker {
	const struct delivery_plan_request *r;
	const struct delivery *d;
	struct arena *a;
	struct dkms_state dkms;
	struct step *steps;
	size_t n;
	const char **builds_on; /* as in struct plan */
	size_t builds_on_n;
	const char *back; /* for a person to do */
};

/* ---- steps ---- */

static const char why[] =
	"with it, cards before Hopper can access each other's memory through BAR1";
static const char serves_undo[] = "so that undo needs no compiler, even after an interruption";

static const char *const *copy_words(struct maker *m, const char *const *list)
{
	const char **argv = NULL;
	size_t n = 0;

	for (; *list; list++)
		*ARENA_PUSH(m->a, argv, n) = *list;
	*ARENA_PUSH(m->a, argv, n) = NULL;
	return argv;
}

/* NULL-ended, in the arena. */
#define WORDS(m, ...) copy_words(m, (const char *const[]){__VA_ARGS__, NULL})

/* Valid until the next one is added. */
static struct step *add(struct maker *m, enum step_kind kind, const char *reason, const char *what)
{
	struct step *s = ARENA_PUSH(m->a, m->steps, m->n);

	s->kind = kind;
	s->what = what;
	texts_add(m->a, &s->why, reason);
	return s;
}

static struct step *add_tool(struct maker *m, const char *reason, const char *what,
			     unsigned deadline_s, const char *const *argv)
{
	struct step *s = add(m, STEP_TOOL, reason, what);

	s->argv = argv;
	s->deadline_s = deadline_s;
	return s;
}

/* Run only when undoing, and then if `path` is there; NULL: always. */
static void add_undo(struct maker *m, const char *what, unsigned deadline_s, const char *path,
		     const char *const *argv)
{
	struct step *s = add(m, STEP_TOOL, serves_undo, what);

	s->undo_argv = argv;
	s->undo_if = path;
	s->deadline_s = deadline_s;
}

static const char *absolute(struct maker *m, const char *path)
{
	return arena_printf(m->a, "/%s", path);
}

static void build_on(struct maker *m, const char *path)
{
	*ARENA_PUSH(m->a, m->builds_on, m->builds_on_n) = path;
}

static int add_file(struct maker *m, const char *path, const char *data, size_t size,
		    const char *what)
{
	struct step *s = add(m, STEP_FILE, why, what);
	AUTO_FREE char *old = NULL;
	int r;

	s->target = path;
	s->new = (struct bytes){data, size};
	s->mode = 0644;
	if (m->d->earlier_n) /* it is gone by then */
		return 0;
	r = host_read(m->r->host, path, &old, &s->old.size);
	if (r == -ENOENT) {
		s->old = (struct bytes){0};
		return 0;
	}
	if (r < 0)
		return r;
	if (s->old.size != size || memcmp(old, data, size) != 0)
		return err_set(
			EEXIST,
			"/%s exists with other content: another edited driver is installed; undo it first (onehop history, onehop undo)",
			path);
	s->old.data = data; /* the same */
	build_on(m, path);
	return 0;
}

/* ---- what DKMS has ---- */

static bool is_there(struct maker *m, const char *path)
{
	struct stat st;

	return host_stat(m->r->host, path, &st) == 0;
}

/* "VERSION/KERNEL/x86_64", where the link of the kernel points; NULL: nothing is installed. */
static const char *installed_as(struct maker *m)
{
	AUTO_FREE char *target = NULL;

	if (host_read_link(m->r->host, m->dkms.link, &target) < 0)
		return NULL;
	return arena_strdup(m->a, target);
}

/* What DKMS has built of a module, but for what compressed it. */
static const char *built_module(struct maker *m, const char *name)
{
	return arena_printf(m->a, "%s/%s.ko", m->dkms.modules, name);
}

static bool is_edited(struct maker *m, const char *name)
{
	struct probe p = {0};

	return !name || (probe_file(m->r->host->root_fd, built_module(m, name), m->a, &p) == 0 &&
			 probe_is_good(&p));
}

static bool is_torn(struct maker *m)
{
	AUTO_STRBUF struct strbuf list = {0};

	return module_torn_list(m->r->host->root_fd, m->d->kernel, m->dkms.machine, &list) == 0 &&
	       list.len;
}

static const char *saved_file(struct maker *m)
{
	return arena_printf(m->a, "%s/onehop-saved-%s.tar.gz", m->dkms.version, m->d->kernel);
}

/* As it is once the fixes of an earlier edit are undone; only to be shown, and made again then. */
static void expect_taken_back(struct maker *m)
{
	struct dkms_state *k = &m->dkms;

	k->edited = k->other_edit = false;
	k->built = m->d->way == DELIVER_INTO_DKMS && is_there(m, saved_file(m));
	k->installed &= k->built;
}

static int look_at_dkms(struct maker *m)
{
	const struct dkms_tree *t = &m->d->dkms;
	struct dkms_state *k = &m->dkms;
	struct utsname host;
	const char *active;

	uname(&host);
	k->machine = arena_strdup(m->a, host.machine);
	k->version = arena_printf(m->a, "var/lib/dkms/%s/%s", t->name, t->version);
	k->kernel = arena_printf(m->a, "%s/%s", k->version, m->d->kernel);
	k->modules = arena_printf(m->a, "%s/%s/module", k->kernel, k->machine);
	k->link = arena_printf(m->a, "var/lib/dkms/%s/kernel-%s-%s", t->name, m->d->kernel,
			       k->machine);
	k->id = arena_printf(m->a, "%s/%s", t->name, t->version);
	k->built = is_there(m, k->kernel);
	active = installed_as(m);
	k->leads = arena_printf(m->a, "%s/%s/%s", t->version, m->d->kernel, k->machine);
	k->elsewhere = arena_printf(m->a, "%s/none", t->version);
	/* Elsewhere: a run that was cut off left it so. */
	k->installed =
		active && (strcmp(active, k->leads) == 0 || strcmp(active, k->elsewhere) == 0);
	if (active && !k->installed)
		return err_set(
			EBUSY,
			"DKMS has %s/%s installed for this kernel, and not %s: see dkms status",
			t->name, active, k->id);
	k->torn = k->installed && is_torn(m);
	k->edited = k->built && is_edited(m, t->module) && is_edited(m, t->uvm);
	k->other_edit = k->built && is_edited(m, t->module) && !k->edited;
	if (m->d->earlier_n)
		expect_taken_back(m);
	return 0;
}

/* ---- what is there now, and how it comes back ---- */

/*
 * Told what DKMS has installed ("ln"), DKMS takes away also what a run that was cut off had put there.
 * Told that it is something else, it copies its modules over what is there: with --force alone it would
 * take them away first, and run depmod without any. Another release that was installed since stays.
 *
 * $1 the link, $2 VERSION, $3 NAME, $4 KERNEL, $5 x86_64, $6 the build.
 */
#define IF_OURS(commands) "case $(readlink \"$1\") in \"$2\"/*|\"\") " commands " ;; esac"
/*
 * DKMS knows a module as its own by the version in it, and leaves one where it is that a power cut left
 * torn: that has none any more. Without modinfo nothing is torn.
 */
#define DROP_TORN                                                                                  \
	"! command -v modinfo >/dev/null || for m in \"$6/$5/module\"/*; do for d "                \
	"in " DKMS_FOLDERS "; do "                                                                 \
	"f=\"/lib/modules/$4/$d/${m##*/}\"; "                                                      \
	"[ ! -e \"$f\" ] || [ -n \"$(modinfo -F version \"$f\" 2>/dev/null)\" ] || rm -f -- "      \
	"\"$f\"; "                                                                                 \
	"done; done; "
#define COPY_OVER IF_OURS("ln -sfn \"$2/none\" \"$1\" && dkms install --force \"$3/$2\" -k \"$4\"")
#define TAKE_AWAY                                                                                  \
	IF_OURS(DROP_TORN                                                                          \
		"ln -sfn \"$2/$4/$5\" \"$1\" && dkms uninstall \"$3/$2\" -k \"$4\" && rm -f -- "   \
		"\"$1\"")
#define TAKE_BUILD_AWAY TAKE_AWAY " && rm -rf -- \"$6\""

static void undo_by_dkms(struct maker *m, const char *what, const char *path, const char *script)
{
	const struct dkms_state *k = &m->dkms;
	const struct dkms_tree *t = &m->d->dkms;

	add_undo(m, what, INSTALL_S, path,
		 WORDS(m, "sh", "-c", script, "sh", absolute(m, k->link), t->version, t->name,
		       m->d->kernel, k->machine, absolute(m, k->kernel)));
}

/*
 * Installed again from what is saved. That lies where DKMS removes it with the release, and goes when
 * its kernel is gone: then there is nothing to put back.
 */
static void undo_to_saved(struct maker *m, const char *saved)
{
	const struct dkms_state *k = &m->dkms;

	add_undo(m, "remove the saved build", SHORT_S, saved,
		 WORDS(m, "rm", "-f", "--", absolute(m, saved)));
	if (k->installed)
		undo_by_dkms(m, "install the saved build", k->modules, COPY_OVER);
	else
		undo_by_dkms(m, "remove the modules", k->modules, TAKE_AWAY);
	add_undo(m, "restore the saved build", SAVE_S, saved,
		 WORDS(m, "tar", "-C", absolute(m, k->version), "--recursive-unlink", "-xf",
		       absolute(m, saved)));
	add_undo(m, "remove the saved build if its kernel is gone", SHORT_S, saved,
		 WORDS(m, "find", absolute(m, saved), "!", "-exec", "test", "-d",
		       arena_printf(m->a, "/lib/modules/%s/kernel", m->d->kernel), ";", "-delete"));
}

/* On disk, whole, before what it saves is taken away. */
static void save_build(struct maker *m)
{
	const struct dkms_state *k = &m->dkms;
	const char *saved = saved_file(m);
	const char *begun = arena_printf(m->a, "/%s.new", saved);

	undo_to_saved(m, saved);
	add_undo(m, "remove an incomplete copy", SHORT_S, NULL, WORDS(m, "rm", "-f", "--", begun));
	add_tool(m, serves_undo, "save the modules that DKMS has built", SAVE_S,
		 WORDS(m, "tar", "-C", absolute(m, k->version), "-czf", begun, m->d->kernel));
	add_tool(m, serves_undo, "mark the saved copy as complete", SHORT_S,
		 WORDS(m, "mv", "-f", "--", begun, absolute(m, saved)));
	m->back = arena_printf(
		m->a, "tar -C /%s --recursive-unlink -xf /%s && dkms install --force %s -k %s",
		k->version, saved, k->id, m->d->kernel);
}

/*
 * To where DKMS has nothing for this kernel; also what a build that was cut off left. What is built goes
 * only once DKMS has taken it out of the kernel's folder: it is how that is done.
 */
static void undo_to_nothing(struct maker *m)
{
	const struct dkms_state *k = &m->dkms;

	undo_by_dkms(m, "remove the modules and their build", k->kernel, TAKE_BUILD_AWAY);
	m->back = arena_printf(m->a, "dkms uninstall %s -k %s && rm -rf /%s", k->id, m->d->kernel,
			       k->kernel);
}

/* ---- building and installing ---- */

static bool runs_now(const struct maker *m)
{
	const struct machine *machine = m->r->machine;

	return !m->r->image && !fact_is(machine->driver.loaded, 0);
}

static void install(struct maker *m)
{
	struct step *s =
		add_tool(m, why, "install the modules", INSTALL_S,
			 WORDS(m, "dkms", "install", "--force", m->dkms.id, "-k", m->d->kernel));

	s->reboot = runs_now(m);
	texts_add(m->a, &s->cost, "NVIDIA does not support an edited driver");
	texts_add(m->a, &s->cost,
		  "a program that may use one GPU can access the memory of the others");
}

static void look_into(struct maker *m, const char *module, const char *what)
{
	add_tool(m, "modules without the edit are not installed", what, SHORT_S,
		 WORDS(m, "onehop", "unlock", "--probe", absolute(m, built_module(m, module))));
}

static void build(struct maker *m)
{
	const struct dkms_state *k = &m->dkms;
	const char *kernel = m->d->kernel;

	if (k->built)
		add_tool(m, "DKMS does not build over an existing build",
			 "remove the existing build", SHORT_S,
			 WORDS(m, "rm", "-rf", "--", absolute(m, k->kernel)));
	add_tool(m, why, arena_printf(m->a, "build the modules for %s", kernel), BUILD_S,
		 WORDS(m, "dkms", "build", k->id, "-k", kernel));
	look_into(m, m->d->dkms.module, "check the built module");
	if (m->d->dkms.uvm)
		look_into(m, m->d->dkms.uvm, "check its gate for managed memory");
	if (k->installed)
		add_tool(m, "DKMS would remove them first",
			 "let DKMS overwrite the installed modules", SHORT_S,
			 WORDS(m, "ln", "-sfn", k->elsewhere, absolute(m, k->link)));
	install(m);
}

/* Built and edited already, and only taken out of the kernel's folder since. */
static void install_again(struct maker *m)
{
	undo_by_dkms(m, "remove the modules", m->dkms.modules, TAKE_AWAY);
	m->back = arena_printf(m->a, "dkms uninstall %s -k %s", m->dkms.id, m->d->kernel);
	install(m);
}

/*
 * The fix that brought it in stands, and takes back what is installed. So this one takes back nothing, and
 * has to be undone before that.
 */
static void repair(struct maker *m)
{
	const struct dkms_state *k = &m->dkms;

	add_tool(m, "DKMS would remove them first", "let DKMS overwrite the torn modules", SHORT_S,
		 WORDS(m, "ln", "-sfn", k->elsewhere, absolute(m, k->link)));
	m->back = arena_printf(m->a, "dkms install --force %s -k %s", k->id, m->d->kernel);
	install(m);
}

/* ---- into the driver's own tree ---- */

static const char *files_by_hand(struct maker *m)
{
	const struct delivery *d = m->d;

	return arena_printf(m->a, "rm -f%s%s /%s /%s", d->core ? " /" : "", d->core ? d->core : "",
			    d->patch_file, d->patch_array_file);
}

static int files_into_dkms(struct maker *m)
{
	const struct delivery *d = m->d;
	const bool known = m->r->core;
	int r = 0;

	if (d->core && known)
		r = add_file(m, d->core, m->r->core, m->r->core_size,
			     "put the edited core into the driver's DKMS tree");
	else if (d->core)
		add_tool(m, why,
			 arena_printf(m->a, "copy the edited core, once it is built, to /%s",
				      d->core),
			 SHORT_S, WORDS(m, "install", d->core_built, absolute(m, d->core)));
	if (r == 0)
		r = add_file(m, d->patch_file, d->patch, strlen(d->patch),
			     "add the patch that makes the build use the edited core");
	if (r == 0)
		r = add_file(m, d->patch_array_file, d->patch_array, strlen(d->patch_array),
			     "let DKMS apply it, now and for each new kernel");
	return r;
}

static void build_on_files(struct maker *m)
{
	const struct delivery *d = m->d;

	if (d->core)
		build_on(m, d->core);
	build_on(m, d->patch_file);
	build_on(m, d->patch_array_file);
}

/* The core in place: the patch alone does not say whether it is there. */
static bool core_in_place(struct maker *m)
{
	struct probe p = {0};

	return !m->d->core ||
	       (probe_file(m->r->host->root_fd, m->d->core, m->a, &p) == 0 && p.every_chip);
}

static int into_dkms(struct maker *m)
{
	const bool files = !m->d->in_place || !core_in_place(m);
	int r = 0;

	if (!files && m->dkms.edited && m->dkms.installed && !m->dkms.torn)
		return 0;
	if (m->dkms.edited && files)
		return err_set(
			EEXIST,
			"DKMS has already built %s for this kernel with another edit: undo that first (onehop history, onehop "
			"undo)",
			m->dkms.id);
	if (!files)
		build_on_files(m);
	if (m->dkms.edited && m->dkms.installed) {
		repair(m);
		return 0;
	}
	if (m->dkms.edited) {
		install_again(m);
		return 0;
	}
	/* DKMS builds the driver's own again; an earlier edit, which does harm, never comes back. */
	if (m->dkms.built && !m->dkms.other_edit)
		save_build(m);
	else
		undo_to_nothing(m);
	m->back = arena_printf(m->a, "%s && %s", files_by_hand(m), m->back);
	if (files)
		r = files_into_dkms(m);
	if (r == 0)
		build(m);
	return r;
}

/* ---- a tree of our own ---- */

static void copy_sources(struct maker *m, const char *folder)
{
	const struct delivery *d = m->d;

	add_undo(m, arena_printf(m->a, "remove %s", folder), SAVE_S, NULL,
		 WORDS(m, "rm", "-rf", "--", folder));
	m->steps[m->n - 1].needed_by_undo = true; /* "dkms remove" reads dkms.conf */
	add_tool(m, why, arena_printf(m->a, "copy the edited modules to %s", folder), SAVE_S,
		 WORDS(m, "cp", "-rT", "--preserve=timestamps", "--",
		       arena_printf(m->a, "%s/kernel-open", d->sources), folder));
	add_tool(m, "root builds from it for each new kernel", "make it writable only by root",
		 SHORT_S, WORDS(m, "chmod", "-R", "go-w,a-s", folder));
	add_tool(m, why, "copy the edited core there", SHORT_S,
		 WORDS(m, "install", "-m", "644", "--", d->core_built,
		       arena_printf(m->a, "%s/nvidia/nv-kernel.o_binary", folder)));
	add_tool(m, why, "copy the core of nvidia-modeset there", SHORT_S,
		 WORDS(m, "install", "-m", "644", "--", d->modeset_built,
		       arena_printf(m->a, "%s/nvidia-modeset/nv-modeset-kernel.o_binary", folder)));
}

/*
 * Some releases of DKMS say that all is well where dkms.conf is not there, and remove nothing.
 * $1 NAME/VERSION, $2 the link, $3 what DKMS has of the release, $4 to $6 as above.
 */
static const char remove_tree[] =
	"[ ! -L \"$3/source\" ] || { " DROP_TORN
	"ls \"$3/source/dkms.conf\" && dkms remove \"$1\" --all && rm -rf -- \"$2\" \"$3\"; }";

static void register_tree(struct maker *m)
{
	const struct dkms_state *k = &m->dkms;
	const char *source = arena_printf(m->a, "/%s/source", k->version);

	/* What "dkms remove" leaves of a build that was cut off. */
	add_undo(m, "remove its folder below /var/lib/dkms, if it is empty", SHORT_S,
		 arena_printf(m->a, "var/lib/dkms/%s", m->d->dkms.name),
		 WORDS(m, "rmdir", "--ignore-fail-on-non-empty", "--",
		       arena_printf(m->a, "/var/lib/dkms/%s", m->d->dkms.name)));
	add_undo(m, "remove an incomplete entry in DKMS", SHORT_S, k->version,
		 WORDS(m, "find", absolute(m, k->version), "-maxdepth", "0", "!", "-exec", "test",
		       "-L", source, ";", "-exec", "rm", "-rf", "--", "{}", "+"));
	add_undo(m, "have DKMS remove the tree, from all kernels", INSTALL_S, k->version,
		 WORDS(m, "sh", "-c", remove_tree, "sh", k->id, absolute(m, k->link),
		       absolute(m, k->version), m->d->kernel, k->machine, absolute(m, k->kernel)));
	add_undo(m, "record in DKMS what is installed", SHORT_S, k->modules,
		 WORDS(m, "ln", "-sfn", k->leads, absolute(m, k->link)));
	add_tool(m, why, "add it to DKMS", SHORT_S, WORDS(m, "dkms", "add", k->id));
	m->back =
		arena_printf(m->a, "dkms remove %s --all && rm -rf /%s", k->id, m->d->dkms.folder);
}

static int own_tree(struct maker *m)
{
	const struct delivery *d = m->d;
	const char *conf = arena_printf(m->a, "%s/dkms.conf", d->dkms.folder);
	const bool there = !d->earlier_n && is_there(m, d->dkms.folder);
	int r = 0;

	if (there && d->in_place && m->dkms.edited && m->dkms.installed && !m->dkms.torn)
		return 0;
	if (there && !d->in_place)
		return err_set(
			EEXIST,
			"/%s exists with other content: another edited driver is installed; undo it first (onehop history, onehop undo)",
			d->dkms.folder);
	if (!there) {
		copy_sources(m, absolute(m, d->dkms.folder));
		r = add_file(m, conf, d->dkms_conf, strlen(d->dkms_conf), "write its dkms.conf");
		m->steps[m->n - 1].needed_by_undo = true;
	} else {
		build_on(m, conf);
	}
	if (r < 0)
		return r;
	if (there && m->dkms.edited && m->dkms.installed) {
		repair(m);
		return 0;
	}
	if (m->dkms.edited) {
		install_again(m);
		return 0;
	}
	if (d->earlier_n || !is_there(m, m->dkms.version))
		register_tree(m);
	else if (m->dkms.built)
		save_build(m);
	else
		undo_to_nothing(m);
	build(m);
	return 0;
}

/* A look that found something in the way may lack what the steps are made of: then there are none. */
static bool is_whole(const struct delivery *d)
{
	if (d->download && d->way == DELIVER_INTO_DKMS && !d->patch)
		return false; /* it is made from the sources */
	if (!d->blocked || d->way == DELIVER_OPTIONS)
		return true;
	if (d->others && !d->earlier_n)
		return false; /* a check says what is in the way */
	if (!d->dkms.name || !d->dkms.module || !d->kernel || !d->sources)
		return false;
	return d->way == DELIVER_INTO_DKMS ? d->patch && d->patch_array : d->dkms_conf != NULL;
}

static int add_modules(struct maker *m)
{
	static int (*const ways[DELIVERY_WAY_N])(struct maker *) = {
		[DELIVER_INTO_DKMS] = into_dkms,
		[DELIVER_OWN_DKMS] = own_tree,
	};
	int r;

	if (!ways[m->d->way] || !m->d->dkms.name || !m->d->kernel)
		return 0;
	r = look_at_dkms(m);
	return r < 0 ? r : ways[m->d->way](m);
}

/* ---- options ---- */

static void add_key(struct change_set *set, const char *parameter, const char *key,
		    const char *value)
{
	const struct change c = {
		.kind = key ? CHANGE_REGISTRY_DWORD : CHANGE_MODULE_OPTION,
		.lifetime = CHANGE_KEPT,
		.target = "nvidia",
		.name = key ? key : parameter,
		.new = value,
		.reason = TEXTS(
			"the driver enables peer-to-peer over PCIe only if its options request it"),
	};

	change_add(set, &c);
}

/* "ForceP2P=0x211;RMPcieP2PType=1" */
static void add_list(struct arena *a, struct change_set *set, const char *list)
{
	char *rest = arena_strdup(a, list), *item;

	while ((item = strsep(&rest, ";"))) {
		char *equals = strchr(item, '=');

		if (!equals)
			continue;
		*equals = '\0';
		add_key(set, NULL, item, equals + 1);
	}
}

static void add_options(const struct delivery_plan_request *r, struct change_set *set)
{
	const char *release = r->delivery->release;
	const char *list =
		release ? release_find(driver_branch(fact_str(release, "")))->keys : NULL;

	if (r->image && list)
		add_list(set->arena, set, list);
	for (size_t i = 0; !r->image && i < r->requirements->setting_n; i++)
		add_key(set, r->requirements->settings[i].parameter,
			r->requirements->settings[i].key, r->requirements->settings[i].value);
}

/* ---- all of it ---- */

int delivery_plan(const struct delivery_plan_request *r, struct plan **ret)
{
	struct maker m = {.r = r, .d = r->delivery, .a = r->machine->arena};
	struct plan_request request = {.machine = r->machine,
				       .source = r->source,
				       .inside = r->image,
				       .lifetime = CHANGE_LASTING};
	struct change_set changes = {0};
	int result;

	if (!is_whole(r->delivery)) {
		*ret = plan_new();
		return 0;
	}
	result = add_modules(&m);
	if (result < 0)
		return result;
	changes.arena = arena_new();
	add_options(r, &changes);
	request.modules = m.steps;
	request.module_n = m.n;
	request.modules_back = m.n ? m.back : NULL;
	request.nvidia_file = r->delivery->dkms.name ? r->delivery->dkms.module : NULL;
	*ret = plan_make(&request, &changes);
	arena_free(changes.arena);
	for (size_t i = 0; m.n && i < m.builds_on_n; i++)
		*ARENA_PUSH((*ret)->arena, (*ret)->builds_on, (*ret)->builds_on_n) = m.builds_on[i];
	return 0;
}

const char *delivery_build_log(const struct delivery_plan_request *r)
{
	const struct dkms_tree *t = &r->delivery->dkms;

	if (r->delivery->way == DELIVER_OPTIONS || !t->name)
		return NULL;
	return arena_printf(r->machine->arena, "var/lib/dkms/%s/%s/build/make.log", t->name,
			    t->version);
}
