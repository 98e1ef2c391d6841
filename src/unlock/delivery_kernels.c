/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/delivery_kernels.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "unlock/delivery_conf.h"
#include "unlock/probe.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what the plan had built ---- */

struct was_built {
	const char *id, *kernel; /* dkms build ID -k KERNEL */
	const char *below;       /* "x86_64/module/nvidia.ko", below the kernel's folder */
	const char *patch;
};

static bool is_command(const struct step *s, const char *const words[2])
{
	return s->kind == STEP_TOOL && s->argv && strcmp(s->argv[0], words[0]) == 0 && s->argv[1] &&
	       strcmp(s->argv[1], words[1]) == 0;
}

bool delivery_is_build(const struct step *s)
{
	static const char *const build[] = {"dkms", "build"};

	return is_command(s, build);
}

/* "dkms build ID -k KERNEL", and of the first "onehop unlock --probe FILE", nvidia's, what is behind KERNEL in it. */
static bool read_plan(const struct plan *p, struct arena *a, struct was_built *ret)
{
	static const char *const probe[] = {"onehop", "unlock"};

	for (size_t i = 0; i < p->step_n; i++) {
		const struct step *s = &p->steps[i];

		if (s->kind == STEP_FILE && text_ends_with(s->target, "/patches/" DELIVERY_PATCH))
			ret->patch = s->target;
		if (delivery_is_build(s) && s->argv[2] && s->argv[3] && s->argv[4]) {
			ret->id = s->argv[2];
			ret->kernel = s->argv[4];
		}
		if (is_command(s, probe) && s->argv[2] && s->argv[3] && ret->kernel &&
		    !ret->below) {
			const char *kernel = arena_printf(a, "/%s/", ret->kernel);
			const char *at = strstr(s->argv[3], kernel);

			ret->below = at ? at + strlen(kernel) : NULL;
		}
	}
	return ret->patch && ret->id && ret->below && strchr(ret->id, '/');
}

bool delivery_brought(const struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (delivery_is_build(&p->steps[i]))
			return true;
	return false;
}

/* ---- what is left of it ---- */

static bool is_there(struct fix_host *h, const char *path)
{
	struct stat st;

	return host_stat(h, path, &st) == 0;
}

/* Built first: where that fails, what is installed stays. */
static const char *commands(struct fix_host *h, const struct was_built *b, const char *kernel,
			    struct arena *a)
{
	const char *link =
		arena_printf(a, "var/lib/dkms/%.*s/kernel-%s-%.*s", (int)strcspn(b->id, "/"), b->id,
			     kernel, (int)strcspn(b->below, "/"), b->below);
	const char *make =
		arena_printf(a, "sudo rm -rf /var/lib/dkms/%s/%s && sudo dkms build %s -k %s",
			     b->id, kernel, b->id, kernel);

	if (!is_there(h, link))
		return make;
	return arena_printf(a,
			    "%s &&\n  sudo dkms uninstall %s -k %s && sudo dkms install %s -k %s",
			    make, b->id, kernel, b->id, kernel);
}

/* 1, 0; -1: it cannot be read. */
static int is_edited(struct fix_host *h, const char *path, struct arena *a)
{
	struct probe p = {0};

	return probe_file(h->root_fd, path, a, &p) < 0 ? -1 : probe_is_good(&p);
}

size_t delivery_left(struct fix_host *h, const struct plan *undone, struct arena *a,
		     struct left_build **ret)
{
	struct was_built b = {0};
	const char *folder;
	char **names = NULL;
	size_t name_n = 0, n = 0;

	*ret = NULL;
	if (!undone || !read_plan(undone, a, &b) || is_there(h, b.patch))
		return 0;
	folder = arena_printf(a, "var/lib/dkms/%s", b.id);
	if (host_list(h, folder, &names, &name_n) < 0)
		return 0;
	for (size_t i = 0; i < name_n; i++) {
		const char *path = arena_printf(a, "%s/%s/%s", folder, names[i], b.below);
		struct left_build *left;

		if (strcmp(names[i], b.kernel) == 0 || !dkms_is_plain(names[i]) ||
		    is_edited(h, path, a) != 1)
			continue;
		left = ARENA_PUSH(a, *ret, n);
		left->kernel = arena_strdup(a, names[i]);
		left->module = b.id;
		left->how = commands(h, &b, left->kernel, a);
	}
	source_free_names(names, name_n);
	return n;
}

/* ---- before: kernels that have the driver's own ---- */

/* "updates/dkms/nvidia.ko.xz: ..." of the module of that name; NULL: none, or another driver's name. */
static const char *module_path(const char *dep, const char *module, struct arena *a)
{
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, dep)) {
		const char *path = arena_strndup(a, line, strcspn(line, ":\n"));
		const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
		size_t length = strlen(module);

		if (strncmp(name, module, length) == 0 &&
		    strncmp(name + length, ".ko", strlen(".ko")) == 0)
			return path;
	}
	return NULL;
}

/* The driver's own, or those of an edit without the gate for managed memory. */
static bool has_other_modules(struct fix_host *h, const struct delivery *d, const char *kernel,
			      struct arena *a)
{
	const char *const modules[] = {d->dkms.module, d->dkms.uvm};
	const char *folder = arena_printf(a, "lib/modules/%s", kernel), *path;
	AUTO_FREE char *dep = NULL;
	size_t size;

	if (host_read(h, arena_printf(a, "%s/modules.dep", folder), &dep, &size) < 0)
		return false;
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]) && modules[i]; i++) {
		path = module_path(dep, modules[i], a);
		if (path && is_edited(h, arena_printf(a, "%s/%s", folder, path), a) == 0)
			return true;
	}
	return false;
}

static void add_note(struct delivery *d, const char *names, const char *commands, struct arena *a)
{
	struct delivery_check *c = ARENA_PUSH(a, d->checks, d->check_n);

	c->what = "other kernels";
	c->state = CHECK_NOTE;
	c->found = arena_printf(
		a,
		"%s: its modules are the driver's own or have an earlier edit, but the options apply to it too. Before you boot it, install the edited driver for it as well; otherwise P2P is forced without support",
		names);
	c->remedy = arena_strdup(a, commands);
}

void delivery_check_kernels(struct fix_host *h, struct delivery *d, bool image, struct arena *a)
{
	AUTO_STRBUF struct strbuf names = {0}, commands = {0};
	const char *const sources[] = {d->sources, NULL};
	char **kernels = NULL;
	size_t n = 0;

	if (d->way == DELIVER_OPTIONS || !d->kernel || !d->sources || !d->dkms.module ||
	    host_list(h, "lib/modules", &kernels, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(kernels[i], d->kernel) == 0 || !dkms_is_plain(kernels[i]) ||
		    !has_other_modules(h, d, kernels[i], a))
			continue;
		strbuf_printf(&names, "%s%s", names.len ? ", " : "", kernels[i]);
		strbuf_puts(&commands, "sudo onehop unlock --sources ");
		step_command_line(sources, &commands);
		strbuf_printf(&commands, "%s --kernel %s --apply\n", image ? " --image" : "",
			      kernels[i]);
	}
	source_free_names(kernels, n);
	if (names.len)
		add_note(d, strbuf_str(&names), strbuf_str(&commands), a);
}
