/* SPDX-License-Identifier: Apache-2.0 */
/* What a system needs so that an edited driver gets into it: which way, which texts, what is in the way. */
#include "unlock/delivery_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/module_file.h"
#include "machine/modules.h"
#include "unlock/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __aarch64__
#define OUTPUT "_out/Linux_aarch64"
#else
#define OUTPUT "_out/Linux_x86_64"
#endif
#define CORE    "src/nvidia/" OUTPUT "/nv-kernel.o"
#define MODESET "src/nvidia-modeset/" OUTPUT "/nv-modeset-kernel.o"

const char *delivery_way_word(enum delivery_way w)
{
	static const char *const words[DELIVERY_WAY_N] = {
		[DELIVER_OPTIONS] = "options",
		[DELIVER_INTO_DKMS] = "into-dkms",
		[DELIVER_OWN_DKMS] = "own-dkms",
	};

	return words[w];
}

/* ---- reading ---- */

int delivery_has(const struct delivery_facts *l, const char *path)
{
	AUTO_FREE char *target = NULL;
	int r = source_read_link(l->s, &target, "%s", path);

	if (r == 0 || r == -EINVAL)
		return 1;
	return r == -ENOENT || r == -ENOTDIR ? 0 : -1;
}

char *delivery_text(const struct delivery_facts *l, const char *path, size_t *ret_size)
{
	char *text = NULL;
	size_t size;

	if (source_read(l->s, &text, ret_size ? ret_size : &size, "%s", path) < 0)
		return NULL;
	return text;
}

const char *delivery_format(const struct delivery_facts *l, const char *fmt, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, fmt);
	text = arena_vprintf(l->a, fmt, ap);
	va_end(ap);
	return text;
}

const char *delivery_printable(const struct delivery_facts *l, const char *text)
{
	char *copy = arena_strdup(l->a, text);

	for (char *p = copy; *p; p++)
		*p = *p < ' ' || *p == 0x7f ? '?' : *p;
	return copy;
}

/* ---- the sources ---- */

/* Not older than any file of the core that was edited: else it was built before. */
static bool is_newer(const struct unlock *u, const char *path)
{
	struct stat built, source;

	if (fstatat(u->tree.fd, path, &built, 0) < 0)
		return false;
	for (size_t i = 0; i < u->n; i++) {
		if (text_starts_with(u->files[i].path, KERNEL_OPEN))
			continue;
		if (fstatat(u->tree.fd, u->files[i].path, &source, 0) < 0 ||
		    source.st_mtim.tv_sec > built.st_mtim.tv_sec)
			return false;
	}
	return true;
}

/* A tree that was brought into the driver's own DKMS tree before has no part of the display modules. */
static bool is_built(const struct delivery_facts *l)
{
	const struct unlock *u = l->u;
	struct probe p;

	if (l->d->way == DELIVER_OWN_DKMS && faccessat(u->tree.fd, MODESET, R_OK, 0) < 0)
		return false;
	return u->state == UNLOCK_PATCHED && !u->other_edits && is_newer(u, CORE) &&
	       probe_file(u->tree.fd, CORE, l->a, &p) == 0 && p.every_chip;
}

static bool is_release(const char *version)
{
	return version && *version && !version[strspn(version, "0123456789.")] &&
	       dkms_is_plain(version);
}

static int open_sources(struct delivery_facts *l)
{
	static const struct unlock_options options;
	int r;

	if (!l->d->sources)
		return 0;
	l->d->core_built = delivery_format(l, "%s/" CORE, l->d->sources);
	l->d->modeset_built = delivery_format(l, "%s/" MODESET, l->d->sources);
	if (l->d->download)
		return 0;
	r = unlock_open(l->d->sources, &options, &l->u);
	if (r == -EINVAL)
		l->refused = arena_strdup(l->a, err_msg());
	else if (r < 0)
		return r;
	return 0;
}

/* ---- the release, the kernel ---- */

/* "version=570.211.01" in what the module's file says of itself */
static const char *value_of(struct delivery_facts *l, const char *text, const char *key)
{
	const char *value;
	size_t n;

	return text_after(text, key, &value, &n) ? arena_strndup(l->a, value, n) : NULL;
}

/* In an image the machine's facts are of the kernel that runs: its own module, by what modprobe takes. */
static void read_image_module(struct delivery_facts *l)
{
	AUTO_FREE char *dep = NULL;
	AUTO_STRBUF struct strbuf text = {0};
	AUTO_CLOSE int root = -1;
	const char *path, *licence;
	size_t n;

	if (!l->r->image || !l->r->root || !l->d->kernel)
		return;
	dep = delivery_text(l, delivery_format(l, "lib/modules/%s/modules.dep", l->d->kernel),
			    NULL);
	if (!dep)
		return;
	l->image_dep = arena_strdup(l->a, dep);
	if (!module_find_file(l->image_dep, "nvidia", &path, &n))
		return;
	path = delivery_format(l, "lib/modules/%s/%.*s", l->d->kernel, (int)n, path);
	root = open(l->r->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || module_file_read(root, path, module_file_parse, &text) < 0)
		return;
	l->image_version = value_of(l, strbuf_str(&text), "version=");
	licence = value_of(l, strbuf_str(&text), "license=");
	if (licence && strcmp(licence, "NVIDIA") == 0)
		l->image_closed = delivery_format(l, "/%s", path);
}

static void find_installed(struct delivery_facts *l)
{
	const struct nvidia_driver *d = &l->m->driver;
	enum { HERE = 1, IMAGE = 2 }; /* what runs is not the image's */
	const struct {
		const char *version, *from;
		int where;
	} places[] = {
		{fact_str_or(d->module_version, NULL), "the driver that runs", HERE},
		{fact_str_or(d->installed_version, NULL), "the module that is installed", HERE},
		{l->image_version, "the module of that kernel", IMAGE},
		{fact_str_or(d->library_version, NULL), "the user-space library", HERE | IMAGE},
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !l->installed; i++) {
		if (!(places[i].where & (l->r->image ? IMAGE : HERE)) ||
		    !is_release(places[i].version))
			continue;
		l->installed = places[i].version;
		l->installed_from = places[i].from;
	}
}

/* The one that is worked with. */
static void choose_release(struct delivery_facts *l)
{
	l->d->release = l->u && is_release(l->u->version) ? arena_strdup(l->a, l->u->version)
							  : l->installed;
}

/* In an image the kernel that runs is another system's: its only one counts. */
static const char *only_kernel(struct delivery_facts *l)
{
	char **names = NULL;
	const char *only = NULL;
	size_t n = 0;

	if (source_list(l->s, &names, &n, "lib/modules") < 0)
		return NULL;
	if (n == 1)
		only = arena_strdup(l->a, names[0]);
	source_free_names(names, n);
	return only;
}

static void find_kernel(struct delivery_facts *l)
{
	const char *kernel = l->r->kernel;

	if (!kernel)
		kernel = l->r->image ? only_kernel(l) : fact_str_or(l->m->kernel.release, NULL);
	if (kernel && dkms_is_plain(kernel))
		l->d->kernel = arena_strdup(l->a, kernel);
}

/* ---- all of it ---- */

bool delivery_is_options_alone(const struct delivery_facts *l)
{
	return !l->r->image && l->requirements->action == ACTION_OPTIONS;
}

static void find_way(struct delivery_facts *l)
{
	if (delivery_is_options_alone(l))
		return; /* DELIVER_OPTIONS */
	l->d->way = DELIVER_OWN_DKMS;
	if (l->d->release)
		delivery_find_tree(l);
	if (l->d->dkms.name)
		l->d->way = DELIVER_INTO_DKMS;
}

int delivery_look(const struct delivery_request *r, struct source *s, struct machine *m,
		  const struct unlock_requirements *requirements, struct delivery **ret)
{
	struct delivery_facts l = {
		.r = r, .s = s, .m = m, .requirements = requirements, .a = m->arena};
	int e;

	l.d = arena_alloc(l.a, 1, sizeof(*l.d));
	l.distribution = distribution_of(&m->kernel);
	find_kernel(&l);
	read_image_module(&l);
	find_installed(&l);
	if (r->sources)
		l.d->sources = arena_strdup(l.a, r->sources);
	else if (r->repository)
		delivery_find_download(&l);
	e = open_sources(&l);
	if (e < 0)
		return e;
	choose_release(&l);
	find_way(&l);
	l.d->built = l.u && is_built(&l);
	delivery_contents(&l);
	if (!r->image)
		delivery_find_holders(&l);
	delivery_checks(&l);
	unlock_close(l.u);
	*ret = l.d;
	return 0;
}
