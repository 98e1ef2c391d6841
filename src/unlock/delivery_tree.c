/* SPDX-License-Identifier: Apache-2.0 */
/* The tree that DKMS builds the driver from: which, of what kind, whose. */
#include "unlock/delivery_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/source.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PACKAGES "var/lib/dpkg/info"

/* ---- what a tree is ---- */

/* The modules' source says its licence: in nv-frontend.c up to 535, in nv.c from 545 on. */
static int is_open(const struct delivery_facts *l, const char *modules)
{
	static const char *const files[] = {"nv-frontend.c", "nv.c"};
	static const char macro[] = "MODULE_LICENSE(\"";

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const char *path = delivery_format(l, "%s/nvidia/%s", modules, files[i]);
		AUTO_FREE char *text = delivery_text(l, path, NULL);
		const char *at = text ? strstr(text, macro) : NULL;

		if (at)
			return text_starts_with(at + strlen(macro), "Dual MIT/GPL\"");
	}
	return -1;
}

/* The release that a tree's Kbuild builds into its modules, "535.261.03"; NULL: none there. */
static const char *release_of(const struct delivery_facts *l, const char *modules)
{
	static const char define[] = "-DNV_VERSION_STRING=\\\"";
	AUTO_FREE char *text = delivery_text(l, delivery_format(l, "%s/Kbuild", modules), NULL);
	const char *at = text ? strstr(text, define) : NULL;

	if (!at)
		return NULL;
	at += strlen(define);
	return arena_strndup(l->a, at, strspn(at, "0123456789."));
}

/* Why a tree of this release is not taken; NULL: it is. */
static const char *why_not(struct delivery_facts *l, const struct dkms_tree *t)
{
	const char *modules =
		t->whole ? delivery_format(l, "%s/kernel-open", t->folder) : t->folder;
	const char *release = release_of(l, modules);
	int open = is_open(l, modules);

	if (open == 0) {
		l->closed = delivery_format(l, "%s/%s", t->name, t->version);
		return NULL;
	}
	if (open < 0)
		return "its sources do not say whether they are of the open modules";
	if (!release || strcmp(release, l->d->release) != 0)
		return delivery_format(l, "its Kbuild is of %s, not of %s",
				       release ? release : "no release", l->d->release);
	return "";
}

/* ---- the list of trees ---- */

/* "535.261.03", or with a package's revision behind it, "535.261.03-1". */
static bool is_version(const char *version, const char *release)
{
	size_t n = strlen(release);

	return strncmp(version, release, n) == 0 && (!version[n] || version[n] == '-');
}

/* Where the link "source" leads, below the root; NULL: nowhere that can be named. */
static const char *folder_of(const struct delivery_facts *l, const char *name, const char *version)
{
	AUTO_FREE char *target = NULL;
	char *clean;

	if (source_read_link(l->s, &target, DKMS_FOLDER "/%s/%s/source", name, version) < 0 ||
	    target[0] != '/')
		return NULL;
	clean = arena_alloc(l->a, strlen(target) + 3, 1);
	path_clean(target, clean);
	for (const char *p = clean; *p; p += *p == '/') {
		AUTO_FREE char *component = xstrndup(p, strcspn(p, "/"));

		if (!dkms_is_plain(component))
			return NULL;
		p += strlen(component);
	}
	return clean;
}

/* Of NVIDIA's driver, open or not: with its core built, or with the core's sources. */
static bool is_driver(const struct delivery_facts *l, struct dkms_tree *t)
{
	const char *const whole = delivery_format(l, "%s/" SWITCH_FILE, t->folder);
	const char *const core = delivery_format(l, "%s/" PREBUILT_CORE, t->folder);

	t->whole = delivery_has(l, whole) == 1 &&
		   delivery_has(l, delivery_format(l, "%s/" MARKER_FILE, t->folder)) == 1;
	return t->whole || delivery_has(l, core) == 1;
}

/* Where there are several, the one that DKMS built for the kernel counts. */
static bool is_better(const struct delivery_facts *l, const struct dkms_tree *t)
{
	return !l->d->dkms.name ||
	       (l->d->kernel && delivery_has(l, delivery_format(l, DKMS_FOLDER "/%s/%s/%s", t->name,
								t->version, l->d->kernel)) == 1);
}

static void consider(struct delivery_facts *l, const char *name, const char *version)
{
	struct dkms_tree t = {.name = name, .version = version};
	const char *why;

	if (!dkms_is_plain(name) || !dkms_is_plain(version)) {
		l->hostile = delivery_printable(l, name);
		return;
	}
	t.folder = folder_of(l, name, version);
	if (!t.folder || !is_driver(l, &t))
		return;
	why = why_not(l, &t);
	if (why && *why)
		l->odd = delivery_format(l, "%s/%s: %s", name, version, why);
	if (!why || *why || !is_better(l, &t))
		return;
	l->d->dkms = t;
	l->d->dkms.name = arena_strdup(l->a, name);
	l->d->dkms.version = arena_strdup(l->a, version);
}

static void consider_all(struct delivery_facts *l, const char *name)
{
	char **versions = NULL;
	size_t n = 0;

	if (strcmp(name, DELIVERY_OWN_NAME) == 0 ||
	    source_list(l->s, &versions, &n, DKMS_FOLDER "/%s", name) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (is_version(versions[i], l->d->release))
			consider(l, name, versions[i]);
	source_free_names(versions, n);
}

/* ---- what is known of the one that was taken ---- */

static void read_conf(struct delivery_facts *l)
{
	struct dkms_tree *t = &l->d->dkms;
	const char *const files[] = {
		delivery_format(l, "%s/dkms.conf", t->folder),
		delivery_format(l, "etc/dkms/%s.conf", t->name),
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		AUTO_FREE char *text = delivery_text(l, files[i], NULL);

		if (text)
			dkms_conf_read(text, l->a, &l->conf);
	}
	t->module = dkms_conf_dest(&l->conf, "nvidia");
	if (t->module && !dkms_is_plain(t->module))
		t->module = NULL;
	t->uvm = dkms_conf_dest(&l->conf, "nvidia-uvm");
	if (t->uvm && !dkms_is_plain(t->uvm))
		t->uvm = NULL;
}

/* "nvidia-open-kernel-dkms.list", or with ":amd64" */
static const char *package_of_list(const struct delivery_facts *l, const char *file)
{
	const char *name = arena_strndup(l->a, file, strcspn(file, ":"));

	if (strchr(file, ':'))
		return name;
	return arena_strndup(l->a, file, strlen(file) - strlen(".list"));
}

/* A line of the list is the path, also behind "/usr"; a path that ends in / is a folder's: any file below. */
static bool lists(const char *text, const char *path)
{
	const char *line = NULL;
	bool below = text_ends_with(path, "/");
	size_t n, k = strlen(path);

	while (text_next_line(&line, &n, text)) {
		const char *at =
			n > 4 && strncmp(line, "/usr/", 5) == 0 && !text_starts_with(path, "usr/")
				? line + 5
				: line + 1;
		size_t left = n - (size_t)(at - line);

		if (n && *line == '/' && left >= k && strncmp(at, path, k) == 0 &&
		    (below || left == k))
			return true;
	}
	return false;
}

const char *delivery_owner(const struct delivery_facts *l, const char *path)
{
	const char *owner = NULL;
	char **names = NULL;
	size_t n = 0;

	if (source_list(l->s, &names, &n, PACKAGES) < 0)
		return NULL;
	for (size_t i = 0; i < n && !owner; i++) {
		AUTO_FREE char *text = NULL;

		if ((!strstr(names[i], "nvidia") && !strstr(names[i], "cuda")) ||
		    !text_ends_with(names[i], ".list"))
			continue;
		text = delivery_text(l, delivery_format(l, PACKAGES "/%s", names[i]), NULL);
		if (text && lists(text, path) && dkms_is_plain(package_of_list(l, names[i])))
			owner = package_of_list(l, names[i]);
	}
	source_free_names(names, n);
	return owner;
}

void delivery_find_tree(struct delivery_facts *l)
{
	char **names = NULL;
	size_t n = 0;
	int r = source_list(l->s, &names, &n, DKMS_FOLDER);

	l->dkms_listed = r == 0 || r == -ENOENT;
	for (size_t i = 0; r == 0 && i < n; i++)
		consider_all(l, names[i]);
	if (r == 0)
		source_free_names(names, n);
	if (!l->d->dkms.name)
		return;
	read_conf(l);
	l->d->dkms.package =
		delivery_owner(l, delivery_format(l, "%s/dkms.conf", l->d->dkms.folder));
}
