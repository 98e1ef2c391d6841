/* SPDX-License-Identifier: Apache-2.0 */
/* The texts that are added to the driver's: a patch, DKMS's override, a dkms.conf. */
#include "unlock/delivery_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/modules.h"
#include "unlock/unlock_impl.h"

#include <string.h>

#define KBUILD   "nvidia/nvidia.Kbuild"
#define OLD_CORE "nv-kernel.o_binary"
#define NEW_CORE "nv-kernel-onehop.o_binary"

/* ---- a package's tree, whose core is built ---- */

/* The one line that names the core outside comments. */
static int find_core_name(const char *path, const char *text, struct edit *ret)
{
	const char *line = NULL;
	size_t n, found = 0;

	while (text_next_line(&line, &n, text)) {
		const char *at = memmem(line, n, OLD_CORE, strlen(OLD_CORE));

		if (!at || line[strspn(line, " \t")] == '#')
			continue;
		ret->from = (size_t)(at - text);
		ret->to = ret->from + strlen(OLD_CORE);
		ret->text = NEW_CORE;
		found++;
	}
	if (found != 1)
		return err_set(EINVAL,
			       "/%s: expected one line that names " OLD_CORE
			       ", found %zu: this is not a release of NVIDIA's",
			       path, found);
	if (memchr(text, '\r', strlen(text)))
		return err_set(EINVAL, "/%s: lines end in CR LF, not LF", path);
	return 0;
}

static int diff_kbuild(struct delivery_facts *l, struct strbuf *out)
{
	const char *path = delivery_format(l, "%s/" KBUILD, l->d->dkms.folder);
	size_t size = 0;
	AUTO_FREE char *text = delivery_text(l, path, &size);
	struct edit edit;
	int r;

	if (!text)
		return err_set(ENOENT, "/%s cannot be read", path);
	r = find_core_name(path, text, &edit);
	if (r == 0)
		edits_diff(KBUILD, text, size, &edit, 1, out);
	return r;
}

static int read_of_package(void *context, const char *file, struct tree_file *ret)
{
	struct delivery_facts *l = context;
	const char *path = delivery_format(l, "%s/%s", l->d->dkms.folder, file);

	ret->data = delivery_text(l, path, &ret->size);
	return ret->data ? 0 : err_set(ENOENT, "/%s cannot be read", path);
}

static int diff_prebuilt(struct delivery_facts *l, struct strbuf *out)
{
	const char *folder = delivery_format(l, "/%s", l->d->dkms.folder);
	int r = diff_kbuild(l, out);

	return r < 0 ? r : unlock_diff_kernel_open(folder, read_of_package, l, out);
}

/* ---- a whole tree ---- */

/* Its files have to be the release's: what is edited in them is known from the sources alone. */
static int compare_file(struct delivery_facts *l, const struct unlock_file *f)
{
	const char *path = delivery_format(l, "%s/%s", l->d->dkms.folder, f->path);
	size_t size = 0;
	AUTO_FREE char *text = delivery_text(l, path, &size);

	if (!text)
		return err_set(ENOENT, "/%s cannot be read", path);
	if (size == f->before.size && memcmp(text, f->before.data, size) == 0)
		return 0;
	if (size == f->after.size && memcmp(text, f->after.data, size) == 0)
		return err_set(EINVAL,
			       "/%s was edited in place: onehop unlock --tree /%s --revert first",
			       path, l->d->dkms.folder);
	return err_set(EINVAL, "/%s is not as in %s: someone, or another patch, changed it", path,
		       l->d->sources);
}

static int diff_whole(struct delivery_facts *l, struct strbuf *out)
{
	int r = l->u ? 0 : err_set(EINVAL, "it is made from the sources of the release");

	for (size_t i = 0; r == 0 && i < l->u->n; i++)
		r = compare_file(l, &l->u->files[i]);
	if (r == 0)
		unlock_diff(l->u, out);
	return r;
}

/* ---- DKMS's own files ---- */

/*
 * Read by bash behind the tree's dkms.conf. DKMS looks at as many numbers as there are patches, from 0 on:
 * the first free one is among them, which the one behind the last, where += puts it, is not if numbers
 * are left out.
 */
static const char patch_array[] =
	"# Made by onehop unlock: peer-to-peer over PCIe. To take it back: onehop undo\n"
	"onehop=0\n"
	"while [[ ${PATCH[onehop]} ]]; do onehop=$((onehop + 1)); done\n"
	"PATCH[onehop]=\"" DELIVERY_PATCH "\"\n";

static const char *const modules[] = {
	"nvidia", "nvidia-modeset", "nvidia-drm", "nvidia-uvm", "nvidia-peermem",
};

/* "updates/dkms/nvidia-current-uvm.ko.xz" of nvidia_uvm; in an image, of its own kernel. "": none. */
static const char *installed_file(const struct delivery_facts *l, const char *name)
{
	const struct module *m = l->r->image ? NULL : machine_module(l->m, name);
	const char *path;
	size_t n;

	if (l->image_dep && module_find_file(l->image_dep, name, &path, &n))
		return arena_strndup(l->a, path, n);
	return m ? fact_str_or(m->file, "") : "";
}

/* What the module's file is called here: modprobe's lines and the initramfs name it so. */
static const char *file_name(const struct delivery_facts *l, const char *module)
{
	AUTO_FREE char *name = xstrdup(module);
	const char *path, *slash, *dot, *file;

	for (char *p = name; *p; p++)
		*p = *p == '-' ? '_' : *p;
	path = installed_file(l, name);
	slash = strrchr(path, '/');
	file = slash ? slash + 1 : path;
	dot = strstr(file, ".ko");
	if (!dot)
		return module;
	file = arena_strndup(l->a, file, (size_t)(dot - file));
	return dkms_is_plain(file) ? file : module;
}

/*
 * DKMS puts KERNELRELEASE= behind a "make" that a line begins with, which NVIDIA's Makefile takes for
 * being read by Kbuild; hence env.
 */
static const char *own_conf(struct delivery_facts *l)
{
	AUTO_STRBUF struct strbuf b = {0};

	strbuf_printf(
		&b,
		"# Made by onehop unlock: peer-to-peer over PCIe. To take it back: onehop undo\n"
		"PACKAGE_NAME=\"%s\"\n"
		"PACKAGE_VERSION=\"%s\"\n"
		"AUTOINSTALL=\"yes\"\n"
		"MAKE[0]=\"env make ${parallel_jobs+-j$parallel_jobs} KERNEL_UNAME=${kernelver} "
		"modules\"\n"
		"CLEAN=\"true\"\n",
		l->d->dkms.name, l->d->dkms.version);
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		const char *file = file_name(l, modules[i]);

		strbuf_printf(&b, "BUILT_MODULE_NAME[%zu]=\"%s\"\n", i, modules[i]);
		if (strcmp(file, modules[i]) != 0)
			strbuf_printf(&b, "DEST_MODULE_NAME[%zu]=\"%s\"\n", i, file);
		strbuf_printf(&b, "DEST_MODULE_LOCATION[%zu]=\"/updates/dkms\"\n", i);
	}
	return arena_strdup(l->a, strbuf_str(&b));
}

/* ---- both ways ---- */

static bool is_there(const struct delivery_facts *l, const char *path, const char *content)
{
	AUTO_FREE char *text = delivery_text(l, path, NULL);

	return text && content && strcmp(text, content) == 0;
}

static void into_dkms(struct delivery_facts *l)
{
	struct delivery *d = l->d;
	AUTO_STRBUF struct strbuf b = {0};
	int r = d->dkms.whole ? diff_whole(l, &b) : diff_prebuilt(l, &b);

	if (r < 0)
		l->patch_trouble = arena_strdup(l->a, err_msg());
	else
		d->patch = arena_strdup(l->a, strbuf_str(&b));
	d->patch_file = delivery_format(l, "%s/patches/" DELIVERY_PATCH, d->dkms.folder);
	d->patch_array = patch_array;
	d->patch_array_file =
		delivery_format(l, "etc/dkms/%s-%s.conf", d->dkms.name, d->dkms.version);
	if (!d->dkms.whole)
		d->core = delivery_format(l, "%s/" DELIVERY_CORE, d->dkms.folder);
	d->in_place = is_there(l, d->patch_file, d->patch) &&
		      is_there(l, d->patch_array_file, d->patch_array);
	d->others = d->patch && !is_there(l, d->patch_file, d->patch) &&
		    delivery_has(l, d->patch_file) == 1;
}

/* What a tree of ours was copied from; dkms.conf is the same for all edits. */
static bool has_todays_sources(struct delivery_facts *l)
{
	for (size_t i = 0; l->u && i < l->u->n; i++) {
		const struct unlock_file *f = &l->u->files[i];

		if (text_starts_with(f->path, KERNEL_OPEN) &&
		    !is_there(l,
			      delivery_format(l, "%s/%s", l->d->dkms.folder,
					      f->path + strlen(KERNEL_OPEN)),
			      f->after.data))
			return false;
	}
	return true;
}

static void own_dkms(struct delivery_facts *l)
{
	struct delivery *d = l->d;

	if (!d->release)
		return;
	d->dkms = (struct dkms_tree){
		.name = DELIVERY_OWN_NAME,
		.version = d->release,
		.folder = delivery_format(l, "usr/src/" DELIVERY_OWN_NAME "-%s", d->release),
		.module = file_name(l, "nvidia"),
		.uvm = file_name(l, "nvidia-uvm"),
	};
	d->dkms_conf = own_conf(l);
	d->dkms_conf_file = delivery_format(l, "%s/dkms.conf", d->dkms.folder);
	d->in_place = is_there(l, d->dkms_conf_file, d->dkms_conf) && has_todays_sources(l);
	d->others = !d->in_place && delivery_has(l, d->dkms_conf_file) == 1;
}

void delivery_contents(struct delivery_facts *l)
{
	static void (*const make[DELIVERY_WAY_N])(struct delivery_facts *) = {
		[DELIVER_INTO_DKMS] = into_dkms,
		[DELIVER_OWN_DKMS] = own_dkms,
	};

	if (make[l->d->way])
		make[l->d->way](l);
}
