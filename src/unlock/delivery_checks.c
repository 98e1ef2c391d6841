/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked at before anything is begun, as a table. */
#include "unlock/build.h"
#include "unlock/delivery_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void delivery_say(struct delivery_check *c, enum check_state state, const char *found,
		  const char *remedy)
{
	c->state = state;
	c->found = found;
	c->remedy = remedy;
}

/* ---- cards and driver ---- */

static const struct card_requirement *first_card(const struct delivery_facts *l,
						 enum unlock_action action)
{
	for (size_t i = 0; i < l->requirements->n; i++)
		if (l->requirements->cards[i].action == action)
			return &l->requirements->cards[i];
	return NULL;
}

static void check_cards(struct delivery_facts *l, struct delivery_check *c)
{
	static const struct {
		enum check_state state;
		const char *found; /* NULL: what is said of the first such card */
	} words[ACTION_N] = {
		[ACTION_REPLACE] = {CHECK_GOOD, "the running edited modules have to be replaced"},
		[ACTION_PATCH] = {CHECK_GOOD, "they need edited modules and module options"},
		[ACTION_REBUILD] = {CHECK_GOOD,
				    "the edited modules run now, but the next boot loads others"},
		[ACTION_RELOAD] = {CHECK_NOTE,
				   "the edited modules are installed: reboot to load them"},
		[ACTION_OPTIONS] = {CHECK_GOOD, "they need only module options"},
		[ACTION_REFUSED] = {CHECK_BAD, NULL},
		[ACTION_UNKNOWN] = {CHECK_BAD, NULL},
		[ACTION_IN_FORCE] = {CHECK_NOTE, "P2P is already in effect"},
		[ACTION_NOTHING] = {CHECK_BAD,
				    "the stock driver supports P2P on these cards: nothing to do"},
	};
	const struct card_requirement *card = first_card(l, l->requirements->action);
	const char *found = words[l->requirements->action].found;

	if (l->r->image) {
		delivery_say(c, CHECK_NOTE, "this is an image, so no cards are judged", NULL);
		return;
	}
	if (!found)
		found = card ? card->why : "fewer than two GPUs could be judged";
	delivery_say(c, words[l->requirements->action].state, found, card ? card->change : NULL);
}

static const char *clone_command(const struct delivery_facts *l, const char *release)
{
	return delivery_format(l, "git clone --depth 1 --branch %s " PUBLIC_REPOSITORY, release);
}

static void check_driver(struct delivery_facts *l, struct delivery_check *c)
{
	const struct nvidia_driver *d = &l->m->driver;
	const char *runs = l->r->image ? NULL : fact_str_or(d->module_version, NULL);
	const char *disk = fact_str_or(d->installed_version, l->installed);
	const char *library = fact_str_or(d->library_version, l->installed);

	if (!l->installed)
		delivery_say(c, CHECK_NOTE, "no NVIDIA driver was found", NULL);
	else if (runs && disk && strcmp(runs, disk) != 0)
		delivery_say(c, CHECK_BAD,
			     delivery_format(l, "%s runs, but %s is installed: reboot to load it",
					     runs, disk),
			     "sudo reboot");
	else if (strcmp(library, l->installed) != 0)
		delivery_say(c, CHECK_BAD,
			     delivery_format(l, "the user-space library is %s, but %s is %s",
					     library, l->installed_from, l->installed),
			     "install the same release of both first");
	else
		delivery_say(c, CHECK_GOOD,
			     delivery_format(l, "%s, as %s says", l->installed, l->installed_from),
			     NULL);
}

/* ---- sources ---- */

static const char *where_to_get(const struct delivery_facts *l)
{
	AUTO_STRBUF struct strbuf b = {0};

	for (size_t i = 0; i < l->requirements->source_n; i++)
		if (l->requirements->sources[i].text)
			strbuf_printf(&b, "%s%s", b.len ? "\n" : "",
				      l->requirements->sources[i].text);
	if (b.len)
		return arena_strdup(l->a, strbuf_str(&b));
	return l->installed ? clone_command(l, l->installed) : NULL;
}

static void check_release(struct delivery_facts *l, struct delivery_check *c)
{
	const struct unlock *u = l->u;

	if (!u->version || !l->d->release || strcmp(u->version, l->d->release) != 0)
		delivery_say(c, CHECK_BAD, "version.mk names no release", where_to_get(l));
	else if (l->installed && strcmp(u->version, l->installed) != 0)
		delivery_say(c, CHECK_BAD,
			     delivery_format(l, "the tree is %s, but %s is %s", u->version,
					     l->installed_from, l->installed),
			     clone_command(l, l->installed));
	else if (u->other_edits)
		delivery_say(
			c, CHECK_NOTE,
			delivery_format(
				l,
				"%s, edited by an earlier onehop: --apply reverts that and makes "
				"the present edits",
				u->version),
			NULL);
	else if (u->state == UNLOCK_STARTED)
		delivery_say(c, CHECK_NOTE,
			     delivery_format(
				     l, "%s, an earlier run was interrupted: --apply completes it",
				     u->version),
			     NULL);
	else if (u->changed)
		delivery_say(
			c, CHECK_NOTE,
			delivery_format(
				l,
				"%s, but changed: differs from the release in %s. If neither you nor a "
				"package did that, unpack the release again",
				u->version, u->changed),
			NULL);
	else
		delivery_say(c, CHECK_GOOD,
			     delivery_format(l, "%s, %s%s", u->version,
					     u->state == UNLOCK_PATCHED ? "edited by onehop"
					     : u->tried                 ? "as released"
							: "cannot be compared with what NVIDIA "
							  "published: its files are unknown",
					     l->d->built ? ", its core is built" : ""),
			     NULL);
}

static void check_sources(struct delivery_facts *l, struct delivery_check *c)
{
	if (l->d->download)
		return;
	if (!l->d->sources)
		delivery_say(c, CHECK_BAD,
			     l->r->repository
				     ? "no NVIDIA driver was found here, so the release to "
				       "download is unknown: install its open kernel "
				       "modules first"
				     : "no tree was named (--sources DIR)",
			     where_to_get(l));
	else if (!l->u)
		delivery_say(c, CHECK_BAD, l->refused, where_to_get(l));
	else if (l->u->newer_edits)
		delivery_say(c, CHECK_BAD,
			     "the tree was edited by a newer onehop: use that version",
			     delivery_format(l, "onehop unlock --tree %s --revert", l->d->sources));
	else
		check_release(l, c);
}

/* Whether anybody has run it: this release, edited, or any of its kind on a card. */
static void check_tried(struct delivery_facts *l, struct delivery_check *c)
{
	const struct unlock *u = l->u;
	const char *untested = NULL;

	if (!u)
		return;
	if (era_untested(u->era))
		untested = delivery_format(
			l, "edited drivers of this kind (%s to %s) are untested on any card",
			era_names[u->era].first, era_names[u->era].last);
	if (!u->tried && u->version)
		delivery_say(
			c, CHECK_NOTE,
			delivery_format(
				l,
				"untested with this release (%s): every place is as in %s to %s; "
				"run onehop test%s%s",
				u->version, era_names[u->era].first, era_names[u->era].last,
				untested ? "; " : "", untested ? untested : ""),
			NULL);
	else if (untested)
		delivery_say(c, CHECK_NOTE, delivery_format(l, "%s: run onehop test", untested),
			     NULL);
}

/* ---- DKMS ---- */

static void check_ostree(struct delivery_facts *l, struct delivery_check *c)
{
	if (delivery_has(l, "run/ostree-booted") == 1)
		delivery_say(c, CHECK_BAD, "/usr is an image (ostree): DKMS cannot write there",
			     "layer the modules as a package of your own");
}

/* A tree that was not added to DKMS would build the same module files. */
static const char *unknown_tree(struct delivery_facts *l)
{
	const char *end = delivery_format(l, "-%s", l->d->release), *found = NULL;
	char **names = NULL;
	size_t n = 0;

	if (source_list(l->s, &names, &n, "usr/src") < 0)
		return NULL;
	for (size_t i = 0; i < n && !found; i++)
		if (text_ends_with(names[i], end) && dkms_is_plain(names[i]) &&
		    !text_starts_with(names[i], DELIVERY_OWN_NAME "-") &&
		    delivery_has(l, delivery_format(l, "usr/src/%s/" PREBUILT_CORE, names[i])) == 1)
			found = arena_strdup(l->a, names[i]);
	source_free_names(names, n);
	return found;
}

static void check_own_tree(struct delivery_facts *l, struct delivery_check *c)
{
	const char *unknown = l->d->release ? unknown_tree(l) : NULL;

	if (l->closed)
		delivery_say(
			c, CHECK_BAD,
			delivery_format(l, "%s has the proprietary modules of this release",
					l->closed),
			"install the package with the open modules of the same release instead");
	else if (l->odd)
		delivery_say(c, CHECK_BAD, l->odd, NULL);
	else if (l->image_closed)
		delivery_say(
			c, CHECK_BAD,
			delivery_format(l, "%s contains the proprietary modules", l->image_closed),
			"install the package with the open modules of the same release instead");
	else if (unknown)
		delivery_say(c, CHECK_BAD,
			     delivery_format(l, "/usr/src/%s has not been added to DKMS", unknown),
			     delivery_format(l, "sudo dkms add %.*s/%s",
					     (int)(strlen(unknown) - strlen(l->d->release) - 1),
					     unknown, l->d->release));
	else
		delivery_say(c, CHECK_GOOD, "DKMS has no tree of this release: onehop adds one",
			     NULL);
}

static void check_tree(struct delivery_facts *l, struct delivery_check *c)
{
	const struct dkms_tree *t = &l->d->dkms;

	if (l->hostile)
		delivery_say(c, CHECK_BAD,
			     delivery_format(l,
					     "'%s' in /" DKMS_FOLDER
					     " is not a name that a module can have",
					     l->hostile),
			     NULL);
	else if (!l->dkms_listed && l->d->release)
		delivery_say(c, CHECK_NOTE, "/" DKMS_FOLDER " cannot be read from here", NULL);
	else if (l->d->way != DELIVER_INTO_DKMS)
		check_own_tree(l, c);
	else if (!t->module)
		delivery_say(c, CHECK_BAD,
			     delivery_format(l, "/%s/dkms.conf does not name nvidia.ko", t->folder),
			     NULL);
	else
		delivery_say(c, l->closed ? CHECK_NOTE : CHECK_GOOD,
			     delivery_format(l, "%s/%s in /%s%s%s%s%s", t->name, t->version,
					     t->folder, t->package ? ", of " : "",
					     t->package ? t->package : "",
					     l->closed ? "; the proprietary modules are there too: "
						       : "",
					     l->closed ? l->closed : ""),
			     NULL);
}

/* Whether a text names a file that our patch changes. */
static bool names_a_file(const struct delivery_facts *l, const char *text)
{
	static const char head[] = "+++ b/";
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, l->d->patch)) {
		if (text_starts_with(line, head) &&
		    memmem(text, strlen(text), line + strlen(head), n - strlen(head)))
			return true;
	}
	return false;
}

/* A patch of the tree's own that changes a file of ours, by its name; NULL: none does. */
static const char *other_patch(struct delivery_facts *l)
{
	for (size_t i = 0; l->d->patch && i < l->conf.patch_n; i++) {
		const char *name = l->conf.patches[i];
		AUTO_FREE char *text = NULL;

		if (strcmp(name, DELIVERY_PATCH) == 0)
			continue;
		text = delivery_text(l,
				     delivery_format(l, "%s/patches/%s", l->d->dkms.folder, name),
				     NULL);
		if (text && names_a_file(l, text))
			return delivery_printable(l, name);
	}
	return NULL;
}

static void check_patch(struct delivery_facts *l, struct delivery_check *c)
{
	const char *other = other_patch(l);

	if (l->d->download && l->d->dkms.whole)
		return; /* it is made from the sources */
	if (l->patch_trouble)
		delivery_say(c, CHECK_BAD, l->patch_trouble, "install the driver's package again");
	else if (other)
		delivery_say(
			c, CHECK_NOTE,
			delivery_format(
				l,
				"the tree's own patch %s changes the same files: if the two conflict, dkms build fails and nothing is installed",
				other),
			NULL);
	else
		delivery_say(c, CHECK_GOOD, "it applies to the driver's own files", NULL);
}

/* A list of patches of its own: "+=" leaves ours in. */
static bool sets_patches(const char *text)
{
	const char *line = NULL;
	size_t n;

	while (text && text_next_line(&line, &n, text)) {
		const char *at = line + strspn(line, " \t");

		if (text_starts_with(at, "PATCH=") || text_starts_with(at, "PATCH["))
			return true;
	}
	return false;
}

/* What DKMS reads last, behind ours, where it is about the kernel; NULL: none that drops our patch. */
static const char *last_word(struct delivery_facts *l)
{
	static const char *const ends[] = {"", "-x86_64", "-aarch64"};
	const struct dkms_tree *t = &l->d->dkms;

	for (size_t i = 0; l->d->kernel && i < sizeof(ends) / sizeof(ends[0]); i++) {
		const char *path = delivery_format(l, "etc/dkms/%s-%s-%s%s.conf", t->name,
						   t->version, l->d->kernel, ends[i]);
		AUTO_FREE char *text = delivery_text(l, path, NULL);

		if (sets_patches(text))
			return path;
	}
	return NULL;
}

/* The file that DKMS reads behind the tree's dkms.conf may be a person's. */
static void check_override(struct delivery_facts *l, struct delivery_check *c)
{
	const char *path = l->d->patch_array_file, *last = last_word(l);
	AUTO_FREE char *text = delivery_text(l, path, NULL);
	int there = delivery_has(l, path);

	if (last)
		delivery_say(
			c, CHECK_BAD,
			delivery_format(
				l,
				"/%s is read last and replaces PATCH, so onehop's patch would not be applied",
				last),
			delivery_format(l, "write PATCH+=(...) in /%s", last));
	else if (there == 0)
		delivery_say(c, CHECK_GOOD, delivery_format(l, "/%s does not exist yet", path),
			     NULL);
	else if (there < 0 || !text)
		delivery_say(c, there < 0 ? CHECK_NOTE : CHECK_BAD,
			     delivery_format(l, "/%s cannot be read", path), NULL);
	else if (text_starts_with(text, "# Made by onehop unlock"))
		delivery_say(c, CHECK_GOOD, delivery_format(l, "/%s was written by onehop", path),
			     NULL);
	else
		delivery_say(
			c, CHECK_BAD, delivery_format(l, "/%s was not written by onehop", path),
			delivery_format(l, "sudo mv /%s /etc/dkms/%s.conf   # DKMS reads that too",
					path, l->d->dkms.name));
}

/*
 * DKMS puts modules that are there already away, wherever they lie, and takes them for its own place
 * when it puts them back; on Debian and Ubuntu, by their ID alone, it leaves them.
 */
static void check_moved(struct delivery_facts *l, struct delivery_check *c)
{
	if (!distribution_habits(&l->m->kernel)->dkms_moves_modules || !l->installed)
		return;
	delivery_say(
		c, CHECK_NOTE,
		"DKMS moves them to /" DKMS_FOLDER "/" DELIVERY_OWN_NAME
		"/original_module; undo puts them into DKMS's own folder (updates or extra), where they take precedence over the modules of a later driver",
		"after undo, install the driver's own package or run file again");
}

/* Ours are first in depmod's order, so they stay in front of what a package brings later. */
static void check_upgrades(struct delivery_facts *l, struct delivery_check *c)
{
	(void)l;
	delivery_say(
		c, CHECK_NOTE,
		"these modules take precedence over those of a later driver release, and do not fit its libraries: before or after such an upgrade, undo this fix",
		"sudo onehop undo");
}

/* ---- tools ---- */

enum use {
	USE_ALWAYS,
	USE_CPP,  /* display modules' and the core's C++: not where those are built already */
	USE_SAVE, /* what DKMS has built is put away first, and put back when undone */
};

struct tool {
	const char *program;
	enum use use;
};

static const struct tool tools[] = {
	{"make", USE_ALWAYS}, {"gcc", USE_ALWAYS}, {"ld", USE_ALWAYS}, {"patch", USE_ALWAYS},
	{"dkms", USE_ALWAYS}, {"g++", USE_CPP},    {"tar", USE_SAVE},  {"gzip", USE_SAVE},
};

/* What lies there may be a program that was switched off by its permissions; one that is not seen counts. */
static bool is_switched_off(const struct delivery_facts *l, const char *path)
{
	AUTO_FREE char *full = l->r->root ? path_below(l->r->root, path) : NULL;
	struct stat st;

	return full && stat(full, &st) == 0 && !(S_ISREG(st.st_mode) && st.st_mode & S_IXUSR);
}

int delivery_has_program(const struct delivery_facts *l, const char *name)
{
	int found = 0;

	for (size_t i = 0; host_program_folders[i]; i++) {
		const char *path = delivery_format(l, "%s/%s", host_program_folders[i], name);
		int there = delivery_has(l, path);

		if (there == 1 && !is_switched_off(l, path))
			return 1;
		found = there < 0 ? -1 : found;
	}
	return found;
}

const char *delivery_install_command(const struct delivery_facts *l, const char *packages)
{
	AUTO_STRBUF struct strbuf b = {0};

	distribution_install(l->distribution, packages, &b);
	return arena_strdup(l->a, strbuf_str(&b));
}

static bool is_used(const struct delivery_facts *l, enum use use)
{
	const bool own = l->d->way == DELIVER_OWN_DKMS;

	return use == USE_ALWAYS || (use == USE_CPP && (own || l->d->dkms.whole)) ||
	       (use == USE_SAVE && !own);
}

static void check_tools(struct delivery_facts *l, struct delivery_check *c)
{
	AUTO_STRBUF struct strbuf missing = {0}, packages = {0};
	bool unsure = false;

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		const char *package = distribution_package(l->distribution, tools[i].program);
		int there =
			is_used(l, tools[i].use) ? delivery_has_program(l, tools[i].program) : 1;

		unsure |= there < 0;
		if (there != 0)
			continue;
		strbuf_printf(&missing, "%s%s", missing.len ? ", " : "", tools[i].program);
		if (!text_has_word(strbuf_str(&packages), package))
			strbuf_printf(&packages, "%s%s", packages.len ? " " : "", package);
	}
	if (missing.len)
		delivery_say(c, CHECK_BAD, delivery_format(l, "missing: %s", strbuf_str(&missing)),
			     delivery_install_command(l, strbuf_str(&packages)));
	else if (unsure)
		delivery_say(c, CHECK_NOTE,
			     "it is unknown whether make, gcc, ld, patch and dkms are installed",
			     NULL);
	else
		delivery_say(c, CHECK_GOOD, "make, gcc, ld, patch and dkms are installed", NULL);
}

/* ---- the boot image, the time ---- */

/* A file that puts modules into the boot image by name; comments do not count. */
static bool names_nvidia(const struct delivery_facts *l, const char *path)
{
	AUTO_FREE char *text = delivery_text(l, path, NULL);
	const char *line = NULL;
	size_t n;

	while (text && text_next_line(&line, &n, text)) {
		AUTO_FREE char *copy = xstrndup(line, n);

		copy[strcspn(copy, "#")] = '\0';
		if (strstr(copy, "nvidia") && !strstr(copy, "omit_drivers"))
			return true;
	}
	return false;
}

static const char *file_naming_nvidia(struct delivery_facts *l)
{
	static const char *const files[] = {"etc/initramfs-tools/modules", "etc/mkinitcpio.conf",
					    "etc/dracut.conf"};
	static const char *const folders[] = {"etc/dracut.conf.d", "etc/mkinitcpio.conf.d"};
	const char *found = NULL;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (names_nvidia(l, files[i]))
			return files[i];
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !found; i++) {
		char **names = NULL;
		size_t n = 0;

		if (source_list(l->s, &names, &n, "%s", folders[i]) < 0)
			continue;
		for (size_t k = 0; k < n && !found; k++) {
			const char *path = delivery_format(l, "%s/%s", folders[i], names[k]);

			found = names_nvidia(l, path) ? delivery_printable(l, path) : NULL;
		}
		source_free_names(names, n);
	}
	return found;
}

static void check_boot_image(struct delivery_facts *l, struct delivery_check *c)
{
	const char *file = file_naming_nvidia(l);

	if (file)
		delivery_say(c, CHECK_NOTE,
			     delivery_format(
				     l, "/%s puts the driver into the initramfs, so it is rebuilt",
				     file),
			     NULL);
	else
		delivery_say(c, CHECK_GOOD, "the settings of the initramfs do not name the driver",
			     NULL);
}

static void check_time(struct delivery_facts *l, struct delivery_check *c)
{
	int64_t cpus = fact_or(l->m->cpu.threads, 0);
	int core = build_minutes(BUILD_CORE, cpus), modules = build_minutes(BUILD_MODULES, cpus);
	const char *on = cpus > 0 ? delivery_format(l, "%d %s", (int)cpus,
						    text_plural((size_t)cpus, "CPU", "CPUs"))
				  : "one CPU";
	const char *found;

	if (l->d->built && !l->d->dkms.whole)
		found = delivery_format(l, "about %d min to build the modules on %s", modules, on);
	else
		found = delivery_format(
			l, "about %d min to build on %s: %d for the core, %d for the modules",
			core + modules, on, core, modules);
	delivery_say(c, CHECK_GOOD, found, NULL);
}

/* ---- the table ---- */

#define ALL   (1u << DELIVER_OPTIONS | 1u << DELIVER_INTO_DKMS | 1u << DELIVER_OWN_DKMS)
#define BUILD (1u << DELIVER_INTO_DKMS | 1u << DELIVER_OWN_DKMS)
#define INTO  (1u << DELIVER_INTO_DKMS)
#define OWN   (1u << DELIVER_OWN_DKMS)

static const struct row {
	const char *what;
	unsigned ways;
	/* Leaves `found` as it is where the row has nothing to say. */
	void (*look)(struct delivery_facts *l, struct delivery_check *c);
} rows[] = {
	{"cards", ALL, check_cards},
	{"system", BUILD, check_ostree},
	{"driver", BUILD, check_driver},
	{"download", BUILD, delivery_check_download},
	{"sources", BUILD, check_sources},
	{"tried", BUILD, check_tried},
	{"dkms tree", BUILD, check_tree},
	{"patch", INTO, check_patch},
	{"override", INTO, check_override},
	{"existing modules", OWN, check_moved},
	{"upgrades", OWN, check_upgrades},
	{"automatic upgrades", BUILD, delivery_check_automatic},
	{"tools", BUILD, check_tools},
	{"kernel", BUILD, delivery_check_kernel},
	{"headers", BUILD, delivery_check_headers},
	{"compiler", BUILD, delivery_check_compiler},
	{"disk", BUILD, delivery_check_disk},
	{"signature", BUILD, delivery_check_signature},
	{"boot image", ALL, check_boot_image},
	{"time", BUILD, check_time},
};

void delivery_checks(struct delivery_facts *l)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct delivery_check c = {.what = rows[i].what};

		if (!(rows[i].ways & 1u << l->d->way))
			continue;
		rows[i].look(l, &c);
		if (!c.found)
			continue;
		*ARENA_PUSH(l->a, l->d->checks, l->d->check_n) = c;
		l->d->blocked |= c.state == CHECK_BAD;
	}
}
