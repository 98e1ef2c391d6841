/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unlock/delivery_plan: its order both ways; with a stand-in for DKMS carried out, failed, killed,
 * undone.
 */
#include "unlock/delivery_plan.h"

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "check_text.h"
#include "fix_rig.h"
#include "json_schema.h"
#include "machine/module_file.h"
#include "report/report_unlock_delivery.h"
#include "unlock/build.h"
#include "unlock/delivery_earlier.h"
#include "unlock/delivery_kernels.h"
#include "unlock/probe.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
/* With the sanitizers a kill costs many times as much. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define STRIDE 39
#else
#define STRIDE 13
#endif

/*
 * Each point runs a dozen programs, and all points take minutes: this variable asks for all of
 * them.
 */
#define ALL_POINTS "ONEHOP_ALL_POINTS"
#define POINTS_MAX 1024

#define NAME     "nvidia-current-open"
#define VERSION  "535.261.03"
#define KERNEL   "6.1.0-56-amd64"
#define SECOND   "6.1.0-57-amd64" /* another kernel, and another release of the driver */
#define UPGRADE  "550.54.14"
#define TREE     "usr/src/" NAME "-" VERSION
#define OWN      "usr/src/" DELIVERY_OWN_NAME "-" VERSION
#define OVERRIDE "etc/dkms/" NAME "-" VERSION ".conf"
#define BUILT    "src/nvidia/_out/Linux_x86_64/nv-kernel.o"
#define MODESET  "src/nvidia-modeset/_out/Linux_x86_64/nv-modeset-kernel.o"
#define LIB      "lib/modules/" KERNEL "/updates/dkms"

/* ---- object files ---- */

static const char *const functions[] = {
	"kbusGetBar1P2PDmaInfo",
	"kbusCreateP2PMappingForBar1P2P",
	"kbusRemoveP2PMappingForBar1P2P",
	"kbusHasPcieBar1P2PMapping",
	"kbusIsPcieBar1P2PMappingSupported",
};

struct object {
	Elf64_Ehdr head;
	Elf64_Shdr sections[4];
	Elf64_Sym symbols[12];
	char names[696];
	uint64_t end; /* sections of a real module lie behind its code */
};

#define WHOLE UINT64_C(0x656c6f6877)

static void add_function(struct object *o, size_t i, size_t *length, const char *name)
{
	o->symbols[i].st_name = (Elf64_Word)*length;
	o->symbols[i].st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
	o->symbols[i].st_shndx = 1;
	*length += (size_t)snprintf(o->names + *length, sizeof(o->names) - *length, "%s", name) + 1;
}

static void add_symbol(struct object *o, size_t i, size_t *length, const char *name,
		       const char *end)
{
	AUTO_FREE char *whole = xprintf("%s_%s", name, end);

	add_function(o, i, length, whole);
}

/* What is built: a stock module, one of the first edit, or one of today's. */
enum edition { STOCK, FIRST, TODAY };

/* With the real functions; and the stubs if it is stock, the gate if it is today's. */
static struct object make_edition(enum edition edition)
{
	const bool edited = edition != STOCK;
	struct object o = {.end = WHOLE};
	size_t n = 1, length = 1;

	memcpy(o.head.e_ident, ELFMAG, SELFMAG);
	o.head.e_ident[EI_CLASS] = ELFCLASS64;
	o.head.e_ident[EI_DATA] = ELFDATA2LSB;
	o.head.e_ident[EI_VERSION] = EV_CURRENT;
	o.head.e_type = ET_REL;
	o.head.e_machine = EM_X86_64;
	o.head.e_version = EV_CURRENT;
	o.head.e_ehsize = sizeof(o.head);
	o.head.e_shentsize = sizeof(o.sections[0]);
	o.head.e_shnum = 4;
	o.head.e_shoff = offsetof(struct object, sections);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		add_symbol(&o, n++, &length, functions[i], "GH100");
		if (!edited)
			add_symbol(&o, n++, &length, functions[i], "395e98");
	}
	if (edition == TODAY)
		add_function(&o, n++, &length, UVM_GATE);
	o.sections[2] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				     .sh_offset = offsetof(struct object, symbols),
				     .sh_size = n * sizeof(o.symbols[0]),
				     .sh_entsize = sizeof(o.symbols[0]),
				     .sh_addralign = 8,
				     .sh_link = 3};
	o.sections[3] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
				     .sh_offset = offsetof(struct object, names),
				     .sh_size = length,
				     .sh_addralign = 1};
	return o;
}

static struct object make_object(bool edited)
{
	return make_edition(edited ? TODAY : STOCK);
}

/* ---- the scratch system ---- */

struct world {
	struct rig rig;
	struct machine *machine;
	struct source *source;
	struct unlock_requirements requirements;
	struct requirement_option settings[2];
	struct delivery delivery;
	struct object core;
	bool build_fails, build_ignores_patch, uninstall_fails, image;
	bool power; /* it goes: what programs have written is followed */
	unsigned torn;
	bool always; /* modules are installed from the first to the last */
	unsigned builds;
	bool first;              /* what is built edited is of the first edit */
	bool noting;             /* the points of a run that goes well are noted */
	bool is_new[POINTS_MAX]; /* by point: to be tried whatever the stride */
	char sites[64][32];
	size_t site_n;
	long point_n;
};

static char *below(const struct world *w, const char *path)
{
	return xprintf("%s/%s", w->rig.root, path);
}

static void write_part(struct world *w, const char *path, const struct object *o, size_t size)
{
	AUTO_FREE char *whole = below(w, path);
	AUTO_CLOSE int fd = -1;

	rig_put(&w->rig, path, "");
	fd = open(whole, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_true(fd >= 0 && write(fd, o, size) == (ssize_t)size);
}

static void write_object(struct world *w, const char *path, const struct object *o)
{
	write_part(w, path, o, sizeof(*o));
}

/* How much of it there is: a power cut may have left it torn. */
static size_t read_object(struct world *w, const char *path, struct object *ret)
{
	AUTO_FREE char *whole = below(w, path);
	AUTO_CLOSE int fd = open(whole, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	*ret = (struct object){0};
	assert_true(fd >= 0);
	n = read(fd, ret, sizeof(*ret));
	assert_true(n >= 0);
	return (size_t)n;
}

static void put_object(struct world *w, const char *path, bool edited)
{
	const struct object o = make_object(edited);

	write_object(w, path, &o);
}

/* "535.261.03" is 535. As modinfo, it finds nothing in what is torn. */
static unsigned release_of(struct world *w, const char *path)
{
	struct object o;
	size_t n = read_object(w, path, &o);

	return n == sizeof(o) && o.end == WHOLE ? o.head.e_flags : 0;
}

static bool is_edited(struct world *w, const char *path)
{
	struct arena *a = arena_new();
	struct probe p = {0};
	bool edited = probe_file(w->rig.host.root_fd, path, a, &p) == 0 && p.every_chip;

	arena_free(a);
	return edited;
}

static void link_to(struct world *w, const char *target, const char *path)
{
	AUTO_FREE char *whole = below(w, path);
	AUTO_FREE char *beside = xprintf("%.*s/x", (int)(strrchr(path, '/') - path), path);

	rig_put(&w->rig, beside, ""); /* the folders on its way */
	rig_remove(&w->rig, beside);
	unlink(whole);
	assert_int_equal(symlink(target, whole), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void remove_tree(const struct world *w, const char *path)
{
	AUTO_FREE char *whole = below(w, path);

	nftw(whole, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* nftw has no context. */
static struct strbuf *listing;
static size_t listing_root;

static int list_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	AUTO_FREE char *data = xcalloc((size_t)st->st_size + 1, 1);
	const char *name = path + listing_root;
	unsigned sum = 0;

	(void)at;
	if (text_starts_with(name, "/var/lib/onehop"))
		return 0;
	if (type == FTW_SL) {
		assert_true(readlink(path, data, (size_t)st->st_size) >= 0);
	} else if (type == FTW_F) {
		AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

		assert_int_equal(read(fd, data, (size_t)st->st_size), st->st_size);
		for (off_t i = 0; i < st->st_size; i++)
			sum = sum * 31 + (unsigned char)data[i];
	}
	strbuf_printf(listing, "%s %o %u %s\n", name, st->st_mode, sum,
		      type == FTW_SL || st->st_size < 200 ? data : "");
	return 0;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every path, permission and content, sorted: but for the journal. */
static char *tree_of(const struct world *w)
{
	AUTO_STRBUF struct strbuf all = {0}, sorted = {0};
	AUTO_FREE char **lines = NULL;
	size_t n = 0;

	listing = &all;
	listing_root = strlen(w->rig.root);
	assert_int_equal(nftw(w->rig.root, list_one, 16, FTW_PHYS), 0);
	for (char *rest = all.text, *line; (line = strsep(&rest, "\n"));) {
		lines = xrealloc(lines, n + 1, sizeof(*lines));
		lines[n++] = line;
	}
	qsort(lines, n, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&sorted, "%s\n", lines[i]);
	return xstrdup(strbuf_str(&sorted));
}

static void assert_same(const char *now, const char *expected)
{
	size_t same = 0;

	if (strcmp(now, expected) == 0)
		return;
	while (now[same] && now[same] == expected[same])
		same++;
	while (same && now[same - 1] != '\n')
		same--;
	fail_msg("expected\n%.300s\nbut there is\n%.300s", expected + same, now + same);
}

static void assert_tree(const struct world *w, const char *expected)
{
	AUTO_FREE char *now = tree_of(w);

	assert_same(now, expected);
}

/* ---- DKMS, as 3.0.10 and 3.2 do it ---- */

static const char *const module_names[] = {"nvidia", "nvidia-uvm"};
static const char *const kernels[] = {KERNEL, SECOND};

/* Whether no point was of this site yet. */
static bool is_new_site(struct world *w, const char *site)
{
	size_t i = 0;

	while (i < w->site_n && strcmp(w->sites[i], site) != 0)
		i++;
	if (i < w->site_n)
		return false;
	assert_in_range(i, 0, sizeof(w->sites) / sizeof(w->sites[0]) - 1);
	snprintf(w->sites[w->site_n++], sizeof(w->sites[0]), "%s", site);
	return true;
}

/* Of a site the first point is always tried. NULL: inside a program, whose points are all tried. */
static void note_point(struct world *w, const char *site)
{
	long n = w->rig.points;

	if (!w->noting)
		return;
	assert_in_range(n, 0, POINTS_MAX - 1);
	w->is_new[n] = !site || is_new_site(w, site);
	w->point_n = n + 1;
}

static void begin_noting(struct world *w)
{
	memset(w->is_new, 0, sizeof(w->is_new)); /* what another case tried is not new */
	w->point_n = 0;
	w->noting = true;
	rig_fail(&w->rig, -1, 0);
}

/* The next point to try; behind the last one that was noted, each. */
static long point_after(const struct world *w, long n, long stride)
{
	if (getenv(ALL_POINTS))
		return n + 1;
	for (n++; n < w->point_n && n % stride && !w->is_new[n];)
		n++;
	return n;
}

static int before_point(void *context, enum fix_point point, const char *path)
{
	const char *what = strstr(path, "var/lib/onehop/") ? "journal" : "file";
	struct world *w = context;
	AUTO_FREE char *site = xprintf("%u %s", point, point == POINT_RUN ? path : what);

	note_point(w, site);
	return rig_point(&w->rig);
}

/* A moment at which a program fails, or is killed with everything. */
static bool stops_here(struct world *w)
{
	struct rig *g = &w->rig;
	long point;

	note_point(w, NULL);
	point = g->points++;
	for (size_t i = 0; w->always && i < 2; i++) {
		AUTO_FREE char *path = xprintf(LIB "/%s.ko", i ? module_names[i] : NAME);

		if (!rig_exists(g, path))
			fail_msg("/%s is not there", path);
	}
	if (g->fail_at < 0 || (g->stays ? point < g->fail_at : point != g->fail_at))
		return false;
	if (g->kill)
		raise(SIGKILL);
	return true;
}

struct dkms {
	struct world *w;
	const char *name, *version, *kernel;
	char *base, *modules, *link, *leads, *source;
};

static char *module_file(const struct dkms *k, bool installed, size_t i)
{
	const char *end = strcmp(k->name, NAME) == 0 && i == 0 ? NAME : module_names[i];

	if (installed)
		return xprintf("lib/modules/%s/updates/dkms/%s.ko", k->kernel, end);
	return xprintf("%s/%s.ko", k->modules, end);
}

static bool is_built(const struct dkms *k)
{
	for (size_t i = 0; i < 2; i++) {
		AUTO_FREE char *path = module_file(k, false, i);

		if (!rig_exists(&k->w->rig, path))
			return false;
	}
	return true;
}

static bool leads_to(struct world *w, const char *link, const char *target)
{
	AUTO_FREE char *now = NULL;

	return host_read_link(&w->rig.host, link, &now) == 0 && strcmp(now, target) == 0;
}

static bool is_installed(const struct dkms *k)
{
	return is_built(k) && leads_to(k->w, k->link, k->leads);
}

static bool has_conf(const struct dkms *k)
{
	AUTO_FREE char *conf = xprintf("%s/dkms.conf", k->source);

	return rig_exists(&k->w->rig, conf);
}

/* What the sources are, patched or not, decides what is built. */
static int source_is_edited(struct dkms *k, bool *ret)
{
	AUTO_FREE char *patch = xprintf("%s/patches/" DELIVERY_PATCH, k->source);
	AUTO_FREE char *core = xprintf("%s/" DELIVERY_CORE, k->source);
	AUTO_FREE char *own = xprintf("%s/nvidia/nv-kernel.o_binary", k->source);
	AUTO_FREE char *conf = xprintf("etc/dkms/%s-%s.conf", k->name, k->version);

	if (!has_conf(k))
		return 4;
	*ret = is_edited(k->w, own);
	if (!rig_exists(&k->w->rig, conf))
		return 0;
	if (!rig_exists(&k->w->rig, patch))
		return 5;
	*ret = (k->w->delivery.dkms.whole || is_edited(k->w, core)) && !k->w->build_ignores_patch;
	return 0;
}

static int dkms_build(struct dkms *k)
{
	AUTO_FREE char *log = xprintf("var/lib/dkms/%s/%s/build/make.log", k->name, k->version);
	AUTO_FREE char *kept = xprintf("%s/log/make.log", k->base);
	struct object o;
	bool edited = false;
	int r = source_is_edited(k, &edited);

	if (rig_exists(&k->w->rig, k->base))
		return 3;
	if (r)
		return r;
	k->w->builds++;
	if (k->w->build_fails) {
		rig_put(&k->w->rig, log, "one\nnv-pci.c:223: error: too few arguments\n");
		return 10;
	}
	rig_put(&k->w->rig, kept, "built\n");
	o = make_edition(!edited ? STOCK : k->w->first ? FIRST : TODAY);
	o.head.e_flags = (Elf64_Word)strtoul(k->version, NULL, 10);
	for (size_t i = 0; i < 2; i++) {
		AUTO_FREE char *path = module_file(k, false, i);

		if (stops_here(k->w))
			return 1;
		write_object(k->w, path, &o);
	}
	return stops_here(k->w);
}

/* It knows what it has installed by the version of the modules. */
static int dkms_uninstall(struct dkms *k)
{
	if (!is_installed(k))
		return 0;
	if (k->w->uninstall_fails)
		return 5;
	if (!has_conf(k))
		return 4;
	for (size_t i = 0; i < 2; i++) {
		AUTO_FREE char *path = module_file(k, true, i), *own = module_file(k, false, i);

		if (stops_here(k->w))
			return 1;
		if (rig_exists(&k->w->rig, path) && release_of(k->w, path) == release_of(k->w, own))
			rig_remove(&k->w->rig, path);
	}
	rig_remove(&k->w->rig, k->link);
	return stops_here(k->w);
}

static int dkms_install(struct dkms *k)
{
	int r = is_built(k) ? dkms_uninstall(k) : dkms_build(k);

	for (size_t i = 0; r == 0 && i < 2; i++) {
		AUTO_FREE char *from = module_file(k, false, i), *to = module_file(k, true, i);
		struct object o;
		size_t n = read_object(k->w, from, &o);

		r = stops_here(k->w);
		write_part(k->w, to, &o, r ? n / 2 : n); /* a full disk takes a part */
		r = r ? r : stops_here(k->w);
	}
	if (r == 0)
		link_to(k->w, k->leads, k->link);
	return r;
}

static int dkms_add(struct dkms *k)
{
	AUTO_FREE char *link = xprintf("var/lib/dkms/%s/%s/source", k->name, k->version);
	AUTO_FREE char *target = xprintf("/%s", k->source);

	if (rig_exists(&k->w->rig, link))
		return 3;
	link_to(k->w, target, link);
	return stops_here(k->w);
}

/* A build that was cut off is none, and stays. */
static int dkms_unbuild(struct dkms *k)
{
	int r = is_built(k) && !has_conf(k) ? 4 : dkms_uninstall(k);

	if (r == 0 && is_built(k))
		remove_tree(k->w, k->base);
	return r;
}

static void dkms_begin(struct dkms *k)
{
	k->base = xprintf("var/lib/dkms/%s/%s/%s", k->name, k->version, k->kernel);
	k->modules = xprintf("%s/x86_64/module", k->base);
	k->link = xprintf("var/lib/dkms/%s/kernel-%s-x86_64", k->name, k->kernel);
	k->leads = xprintf("%s/%s/x86_64", k->version, k->kernel);
	k->source = xprintf("usr/src/%s-%s", k->name, k->version);
}

static void dkms_end(struct dkms *k)
{
	free(k->base);
	free(k->modules);
	free(k->link);
	free(k->leads);
	free(k->source);
}

/* From all kernels. */
static int dkms_remove(struct dkms *k)
{
	AUTO_FREE char *version = xprintf("var/lib/dkms/%s/%s", k->name, k->version);
	AUTO_FREE char *name = xprintf("var/lib/dkms/%s", k->name), *whole = below(k->w, name);
	bool left = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < 2; i++) {
		struct dkms one = {.w = k->w, .name = k->name, .version = k->version};

		one.kernel = kernels[i];
		dkms_begin(&one);
		r = dkms_unbuild(&one);
		left |= rig_exists(&k->w->rig, one.base);
		dkms_end(&one);
	}
	if (r == 0 && !left) {
		remove_tree(k->w, version);
		rmdir(whole);
	}
	return r ? r : stops_here(k->w);
}

static const char *kernel_of(const char *const *argv)
{
	for (; *argv; argv++)
		if (strcmp(*argv, "-k") == 0)
			return argv[1];
	return KERNEL;
}

static int run_dkms(struct world *w, const char *const *argv)
{
	static const struct {
		const char *action;
		int (*run)(struct dkms *k);
	} actions[] = {{"build", dkms_build},
		       {"install", dkms_install},
		       {"uninstall", dkms_uninstall},
		       {"add", dkms_add},
		       {"remove", dkms_remove}};
	const char *id = strcmp(argv[2], "--force") == 0 ? argv[3] : argv[2];
	AUTO_FREE char *name = xstrndup(id, strcspn(id, "/"));
	struct dkms k = {.w = w, .name = name, .version = strchr(id, '/') + 1};
	int r = 99;

	k.kernel = kernel_of(argv);
	dkms_begin(&k);
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (strcmp(argv[1], actions[i].action) == 0)
			r = stops_here(w) ? 1 : actions[i].run(&k);
	dkms_end(&k);
	return r;
}

/* ---- what is on the disk ---- */

/* nftw has no context. */
static FILE *disk_list;
static struct world *disk_of;

static bool is_of_onehop(const struct world *w, const char *path)
{
	static const char *const parts[] = {"/var/lib/onehop/", ".onehop-swap", DELIVERY_PATCH,
					    OVERRIDE,           "onehop.conf",  DELIVERY_CORE,
					    "/dkms.conf"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(path + strlen(w->rig.root), parts[i]))
			return true;
	return false;
}

static int note_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)path;
	(void)at;
	if (type == FTW_F)
		fprintf(disk_list, "%ju %jd.%09ld\n", (uintmax_t)st->st_ino,
			(intmax_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	return 0;
}

static char *disk_path(const struct world *w)
{
	return xprintf("%s.disk", w->rig.root);
}

/* A program ended, and its runner has brought to the disk what it wrote. */
static void note_disk(struct world *w)
{
	AUTO_FREE char *path = disk_path(w);

	disk_list = fopen(path, "we");
	assert_non_null(disk_list);
	assert_int_equal(nftw(w->rig.root, note_one, 16, FTW_PHYS), 0);
	assert_int_equal(fclose(disk_list), 0);
}

/* Nothing of it, half of it, or zeros from the middle on. */
static int tear_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	AUTO_FREE char *list = disk_path(disk_of), *text = NULL;
	AUTO_FREE char *line = xprintf("%ju %jd.%09ld\n", (uintmax_t)st->st_ino,
				       (intmax_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);

	(void)at;
	if (type != FTW_F || is_of_onehop(disk_of, path))
		return 0;
	text = file_text(list);
	if (strstr(text, line))
		return 0;
	disk_of->torn++;
	assert_int_equal(truncate(path, disk_of->torn % 3 ? st->st_size / 2 : 0), 0);
	if (disk_of->torn % 3 == 1)
		assert_int_equal(truncate(path, st->st_size), 0);
	return 0;
}

/* What programs wrote since, and nobody waited for. */
static void lose_power(struct world *w)
{
	disk_of = w;
	assert_int_equal(nftw(w->rig.root, tear_one, 16, FTW_PHYS), 0);
}

/* ---- the other programs ---- */

static int run_probe(struct world *w, const char *const *argv)
{
	assert_string_equal(argv[1], "unlock");
	assert_string_equal(argv[2], "--probe");
	return !is_edited(w, argv[3] + 1);
}

static int run_initramfs(struct world *w, const char *const *argv)
{
	AUTO_FREE char *options = rig_get(&w->rig, "etc/modprobe.d/onehop.conf");
	AUTO_FREE char *text =
		xprintf("%s%s\n", options ? options : "",
			is_edited(w, LIB "/" NAME ".ko") || is_edited(w, LIB "/nvidia.ko")
				? "edited"
				: "stock");

	(void)argv;
	if (stops_here(w))
		return 1;
	rig_put(&w->rig, "boot/initrd", text);
	return 0;
}

/* tar, rm, cp, ln, find, install: the real ones, on paths below the root. */
static int run_real(struct world *w, const char *const *argv, int *ret_status)
{
	AUTO_FREE char *program = xprintf("/usr/bin/%s", argv[0]);
	AUTO_STRBUF struct strbuf output = {0};
	const char *mapped[24] = {0};
	int r;

	for (size_t i = 0; argv[i]; i++)
		mapped[i] = i && argv[i][0] == '/' ? below(w, argv[i] + 1) : xstrdup(argv[i]);
	r = child_run(program, mapped, 60, &output, ret_status);
	for (size_t i = 0; mapped[i]; i++)
		free((char *)mapped[i]);
	if (*ret_status)
		print_message("%s: %s\n", argv[0], strbuf_str(&output));
	return r;
}

/* What has no version any more DKMS would leave where it is. */
static void drop_torn(struct world *w, const char *id, const char *kernel)
{
	AUTO_FREE char *name = xstrndup(id, strcspn(id, "/"));
	const struct dkms k = {.name = name, .kernel = kernel};

	for (size_t i = 0; i < 2; i++) {
		AUTO_FREE char *path = module_file(&k, true, i);

		if (rig_exists(&w->rig, path) && release_of(w, path) == 0)
			rig_remove(&w->rig, path);
	}
}

/* Unless another release is installed: ln -sfn ... LINK && dkms ACTION NAME/VERSION -k KERNEL */
static int run_if_ours(struct world *w, const char *const *words, bool install)
{
	AUTO_FREE char *id = xprintf("%s/%s", words[2], words[1]), *now = NULL;
	AUTO_FREE char *mine = xprintf("%s/", words[1]);
	AUTO_FREE char *leads = xprintf("%s/%s/%s", words[1], words[3], words[4]);
	AUTO_FREE char *elsewhere = xprintf("%s/none", words[1]);
	const char *const dkms[] = {"dkms",
				    install ? "install" : "uninstall",
				    install ? "--force" : id,
				    install ? id : "-k",
				    install ? "-k" : words[3],
				    install ? words[3] : NULL,
				    NULL};
	const char *link = words[0] + 1;
	int r = host_read_link(&w->rig.host, link, &now);

	if (r == 0 && !text_starts_with(now, mine))
		return 0;
	if (stops_here(w))
		return 1;
	if (!install)
		drop_torn(w, id, words[3]);
	link_to(w, install ? elsewhere : leads, link);
	r = run_dkms(w, dkms);
	if (r == 0 && !install && rig_exists(&w->rig, link))
		rig_remove(&w->rig, link);
	return r;
}

static int remove_both(struct world *w, const char *a, const char *b)
{
	const char *const rm[] = {"rm", "-rf", "--", a, b, NULL};
	int status = 1;

	if (!stops_here(w))
		run_real(w, rm, &status);
	return status;
}

static int run_remove(struct world *w, const char *const *words)
{
	const char *const dkms[] = {"dkms", "remove", words[0], NULL};
	AUTO_FREE char *source = xprintf("%s/source", words[2] + 1);
	int r;

	if (!rig_exists(&w->rig, source))
		return 0;
	drop_torn(w, words[0], words[3]);
	r = run_dkms(w, dkms);
	return r ? r : remove_both(w, words[1], words[2]);
}

/* sh -c '...' sh WORDS: the text itself is run by tests/cli/unlock_command. */
static int run_shell(struct world *w, const char *const *argv)
{
	static const char drops_torn[] = "$(modinfo -F version \"$f\" 2>/dev/null)\" ] || rm -f";
	const char *const *words = argv + 4;
	int r;

	if (strstr(argv[2], "dkms remove \"$1\" --all && rm -rf -- \"$2\" \"$3\"")) {
		assert_non_null(strstr(argv[2], drops_torn));
		return run_remove(w, words);
	}
	assert_true(text_starts_with(argv[2], "case $(readlink \"$1\") in \"$2\"/*|\"\") "));
	if (strstr(argv[2], "dkms install --force \"$3/$2\" -k \"$4\""))
		return run_if_ours(w, words, true);
	assert_non_null(strstr(argv[2], drops_torn));
	assert_non_null(strstr(argv[2], "dkms uninstall \"$3/$2\" -k \"$4\" && rm -f -- \"$1\""));
	r = run_if_ours(w, words, false);
	return r || !strstr(argv[2], "rm -rf -- \"$6\"") ? r : remove_both(w, words[5], words[5]);
}

static int runner(void *context, const char *const *argv, unsigned deadline_s,
		  struct strbuf *output, int *ret_status)
{
	static const struct {
		const char *name;
		int (*run)(struct world *w, const char *const *argv);
	} programs[] = {{"dkms", run_dkms},
			{"onehop", run_probe},
			{"sh", run_shell},
			{"update-initramfs", run_initramfs}};
	struct world *w = context;
	size_t i = 0;
	int r = 0;

	assert_true(deadline_s > 0);
	while (i < sizeof(programs) / sizeof(programs[0]) && strcmp(argv[0], programs[i].name) != 0)
		i++;
	if (i == sizeof(programs) / sizeof(programs[0])) {
		r = run_real(w, argv, ret_status);
	} else {
		*ret_status = programs[i].run(w, argv);
		strbuf_printf(output, "%s %s: %d\n", argv[0], argv[1], *ret_status);
	}
	if (r == 0 && *ret_status == 0 && w->power)
		note_disk(w);
	return r;
}

/* ---- scenes ---- */

static void dkms(struct world *w, const char *action, const char *id, const char *kernel)
{
	const char *const argv[] = {"dkms", action, id, "-k", kernel, NULL};
	AUTO_STRBUF struct strbuf output = {0};
	int status;

	assert_int_equal(w->rig.host.run(w, argv, 10, &output, &status), 0);
	assert_int_equal(status, 0);
}

static void put_driver(struct world *w, const char *version, bool built)
{
	AUTO_FREE char *conf = xprintf("usr/src/" NAME "-%s/dkms.conf", version);
	AUTO_FREE char *core = xprintf("usr/src/" NAME "-%s/nvidia/nv-kernel.o_binary", version);
	AUTO_FREE char *id = xprintf(NAME "/%s", version);

	rig_put(&w->rig, conf, "PACKAGE_NAME=" NAME "\n");
	put_object(w, core, false);
	dkms(w, "add", id, KERNEL);
	if (built)
		dkms(w, "install", id, KERNEL);
}

static void put_kernel(struct world *w, const char *kernel)
{
	AUTO_FREE char *dep = xprintf("lib/modules/%s/modules.dep", kernel);
	AUTO_FREE char *module = xprintf("lib/modules/%s/kernel/fs.ko", kernel);
	AUTO_FREE char *other = xprintf("lib/modules/%s/updates/dkms/other.ko", kernel);

	rig_put(&w->rig, dep, "");
	rig_put(&w->rig, module, "");
	rig_put(&w->rig, other, "");
}

static void scene(struct world *w, bool driver, bool built)
{
	w->build_fails = w->build_ignores_patch = w->uninstall_fails = w->image = w->first = false;
	w->always = false;
	rig_reset(&w->rig);
	rig_fail(&w->rig, -1, 0);
	rig_listen(&w->rig);
	rig_put(&w->rig, "etc/os-release", "ID=debian\n");
	rig_put(&w->rig, "usr/sbin/update-initramfs", "");
	rig_put(&w->rig, "usr/sbin/dkms", "");
	rig_put(&w->rig, "usr/src/others/file", "");
	rig_put(&w->rig, "var/lib/dkms/dkms_dbversion", "2.0.0\n");
	rig_put(&w->rig, "home/tree/kernel-open/Kbuild", "# Kbuild\n");
	rig_put(&w->rig, "home/tree/kernel-open/nvidia/nv-pci.c", "edited\n");
	rig_put(&w->rig, "home/tree/kernel-open/nvidia-modeset/nvkms.c", "as it is\n");
	put_kernel(w, KERNEL);
	rig_put(&w->rig, "boot/initrd", "stock\n");
	put_object(w, "home/tree/" BUILT, true);
	put_object(w, "home/tree/" MODESET, false);
	if (driver)
		put_driver(w, VERSION, built);
	w->builds = 0;
}

static void deliver_into(struct world *w)
{
	w->delivery = (struct delivery){
		.way = DELIVER_INTO_DKMS,
		.kernel = KERNEL,
		.release = VERSION,
		.sources = "/home/tree",
		.built = true,
		.core_built = "/home/tree/" BUILT,
		.dkms = {.name = NAME,
			 .version = VERSION,
			 .folder = TREE,
			 .module = NAME,
			 .uvm = "nvidia-uvm"},
		.core = TREE "/" DELIVERY_CORE,
		.patch = "--- a/x\n+++ b/x\n",
		.patch_file = TREE "/patches/" DELIVERY_PATCH,
		.patch_array = "PATCH+=(\"" DELIVERY_PATCH "\")\n",
		.patch_array_file = OVERRIDE,
	};
}

/* DKMS builds the core too: only the patch is brought. */
static void deliver_whole(struct world *w)
{
	deliver_into(w);
	w->delivery.dkms.whole = true;
	w->delivery.built = false;
	w->delivery.core = NULL;
}

static void deliver_own(struct world *w)
{
	w->delivery = (struct delivery){
		.way = DELIVER_OWN_DKMS,
		.kernel = KERNEL,
		.release = VERSION,
		.sources = "/home/tree",
		.built = true,
		.core_built = "/home/tree/" BUILT,
		.modeset_built = "/home/tree/" MODESET,
		.dkms = {.name = DELIVERY_OWN_NAME,
			 .version = VERSION,
			 .folder = OWN,
			 .module = "nvidia",
			 .uvm = "nvidia-uvm"},
		.dkms_conf = "PACKAGE_NAME=" DELIVERY_OWN_NAME "\n",
		.dkms_conf_file = OWN "/dkms.conf",
	};
}

/* `rm` takes away what was begun to be saved, and what was saved; `sh` asks DKMS in a script. */
#define CORE       "file " TREE "/" DELIVERY_CORE "\n"
#define PATCH      "file " TREE "/patches/" DELIVERY_PATCH "\n"
#define ARRAY      "file " OVERRIDE "\n"
#define OWN_CONF   "file " OWN "/dkms.conf\n"
#define SAVE       "tar \nmv \n"
#define SAVED_BACK "rm \nfind \ntar \nsh dkms install\nrm \n"
#define BUILD      "dkms build\nonehop --probe\nonehop --probe\n"
#define INSTALL    "dkms install\n" OPTIONS "update-initramfs \n"
#define OPTIONS    "file etc/modprobe.d/onehop.conf\n"

/* All the same but for what is there to begin with. */
static const struct {
	const char *name;
	bool driver, built;
	void (*deliver)(struct world *w);
	const char *forward, *back; /* as order_of has it */
} cases[] = {
	{"into what DKMS has installed", true, true, deliver_into,
	 SAVE CORE PATCH ARRAY "rm \n" BUILD "ln \n" INSTALL,
	 OPTIONS ARRAY PATCH CORE SAVED_BACK "update-initramfs \n"},
	{"into a tree that is not built", true, false, deliver_into, CORE PATCH ARRAY BUILD INSTALL,
	 OPTIONS ARRAY PATCH CORE "sh dkms uninstall\nupdate-initramfs \n"},
	{"as a tree of our own", false, false, deliver_own,
	 "cp \nchmod \ninstall \ninstall \n" OWN_CONF "dkms add\n" BUILD INSTALL,
	 OPTIONS "ln \nsh dkms remove\nfind \nrmdir \n" OWN_CONF "rm \nupdate-initramfs \n"},
	/* No core is put there, and none is built here. */
	{"into a tree of the whole release", true, true, deliver_whole,
	 SAVE PATCH ARRAY "rm \n" BUILD "ln \n" INSTALL,
	 OPTIONS ARRAY PATCH SAVED_BACK "update-initramfs \n"},
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

static void begin(struct world *w, size_t i)
{
	scene(w, cases[i].driver, cases[i].built);
	cases[i].deliver(w);
}

static int try_plan(struct world *w, struct plan **ret)
{
	static const struct machine_request host = {.parts = MACHINE_HOST};
	struct delivery_plan_request r = {.delivery = &w->delivery,
					  .requirements = &w->requirements,
					  .host = &w->rig.host,
					  .core = (const char *)&w->core,
					  .core_size = sizeof(w->core)};

	machine_free(w->machine);
	source_free(w->source);
	assert_int_equal(source_open_root(w->rig.root, NULL, NULL, &w->source), 0);
	w->machine = machine_read(w->source, &host);
	if (w->image)
		w->machine->kernel.container = fact_str("chroot", "test");
	r.image = w->image;
	r.machine = w->machine;
	r.source = w->source;
	return delivery_plan(&r, ret);
}

/* Its texts are the machine's: it is gone before the next one is made. */
static struct plan *make_plan(struct world *w)
{
	struct plan *p = NULL;

	if (try_plan(w, &p) < 0)
		fail_msg("plan: %s", err_msg());
	return p;
}

static enum fix_result apply(struct world *w, struct plan *p)
{
	enum fix_result result;
	unsigned number;

	if (fix_apply(&w->rig.run, p, &result, &number) < 0)
		fail_msg("apply: %s", err_msg());
	return result;
}

static void undo(struct world *w)
{
	enum fix_result result;
	unsigned number;

	if (fix_undo(&w->rig.run, 0, &result, &number) < 0)
		fail_msg("undo: %s", err_msg());
	if (result != FIX_DONE)
		fail_msg("undo: %s", strbuf_str(&w->rig.texts));
}

static int make_world(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	rig_open(&w->rig, 7);
	w->rig.host.run = runner;
	w->rig.host.run_context = w;
	w->rig.host.before = before_point;
	w->rig.host.before_context = w;
	w->core = make_object(true);
	w->settings[0] = (struct requirement_option){"NVreg_RegistryDwords", "ForceP2P", "0x11"};
	w->settings[1] = (struct requirement_option){"NVreg_RegistryDwords", "RMForceP2PType", "2"};
	w->requirements = (struct unlock_requirements){.action = ACTION_PATCH,
						       .settings = w->settings,
						       .setting_n = 2};
	*state = w;
	return 0;
}

static int remove_world(void **state)
{
	struct world *w = *state;

	machine_free(w->machine);
	source_free(w->source);
	rig_close(&w->rig);
	free(w);
	return 0;
}

/* ---- the order ---- */

/* What a step's program is told first, where that says what it does. */
static const char *order_word(const char *const *argv)
{
	static const char *const actions[] = {"dkms install", "dkms uninstall", "dkms remove"};

	if (strcmp(argv[0], "dkms") == 0)
		return argv[1];
	if (strcmp(argv[0], "onehop") == 0)
		return argv[2];
	for (size_t i = 0; i < 3 && strcmp(argv[0], "sh") == 0; i++)
		if (strstr(argv[2], actions[i]))
			return actions[i];
	return "";
}

/* "dkms build", "file etc/...", in one direction. */
static char *order_of(const struct plan *p, bool undoing)
{
	struct strbuf b = {0};

	for (size_t k = 0; k < p->step_n; k++) {
		const struct step *s = &p->steps[undoing ? p->step_n - 1 - k : k];
		const char *const *argv = undoing ? s->undo_argv : s->argv;

		if (s->kind == STEP_FILE)
			strbuf_printf(&b, "file %s\n", s->target);
		else if (argv)
			strbuf_printf(&b, "%s %s\n", argv[0], order_word(argv));
	}
	return b.text;
}

static void order(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < CASES; i++) {
		AUTO_FREE char *there = NULL, *and_back = NULL;
		AUTO_PLAN struct plan *p = NULL;

		begin(w, i);
		p = make_plan(w);
		there = order_of(p, false);
		and_back = order_of(p, true);
		assert_string_equal(there, cases[i].forward);
		assert_string_equal(and_back, cases[i].back);
		assert_true(plan_needs_reboot(p));
		assert_true(p->way_back_n > 0);
		assert_int_equal(p->builds_on_n, 0);
	}
}

/* DKMS looks options up by the name of the module's file. */
static void options_by_the_files_name(void **state)
{
	struct world *w = *state;
	AUTO_FREE char *text = NULL;
	AUTO_PLAN struct plan *p = NULL;

	begin(w, 0);
	p = make_plan(w);
	assert_int_equal(apply(w, p), FIX_DONE);
	text = rig_get(&w->rig, "etc/modprobe.d/onehop.conf");
	assert_non_null(
		strstr(text,
		       "options nvidia NVreg_RegistryDwords=\"ForceP2P=0x11;RMForceP2PType=2\"\n"));
	assert_non_null(strstr(text, "options " NAME
				     " NVreg_RegistryDwords=\"ForceP2P=0x11;RMForceP2PType=2\"\n"));
}

/* In a chroot there are no cards to say what they need, and what looks like a container is none. */
static void options_in_an_image(void **state)
{
	struct world *w = *state;
	AUTO_FREE char *text = NULL;
	AUTO_PLAN struct plan *p = NULL;

	begin(w, 0);
	w->image = true;
	p = make_plan(w);
	assert_int_equal(p->manual_n, 0);
	assert_int_equal(apply(w, p), FIX_DONE);
	text = rig_get(&w->rig, "etc/modprobe.d/onehop.conf");
	assert_non_null(strstr(text, "NVreg_RegistryDwords=\"ForceP2P=0x11;RMForceP2PType=2\"\n"));
}

/* ---- carried out ---- */

static void assert_delivered(struct world *w, size_t i)
{
	const char *module = cases[i].driver ? LIB "/" NAME ".ko" : LIB "/nvidia.ko";
	AUTO_FREE char *initrd = rig_get(&w->rig, "boot/initrd");

	if (!is_edited(w, module))
		fail_msg("%s: the installed module is not edited", cases[i].name);
	assert_non_null(strstr(initrd, "edited"));
	assert_non_null(strstr(initrd, "ForceP2P=0x11"));
}

static void apply_and_undo(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < CASES; i++) {
		AUTO_FREE char *before = NULL;
		AUTO_PLAN struct plan *p = NULL;

		begin(w, i);
		before = tree_of(w);
		p = make_plan(w);
		w->always = cases[i].built; /* at no moment are there none */
		assert_int_equal(apply(w, p), FIX_DONE);
		assert_delivered(w, i);
		assert_int_equal(w->builds, 1);
		undo(w);
		assert_tree(w, before);
		assert_int_equal(w->builds, 1); /* no compiler was needed to go back */
	}
}

/*
 * Taken out of the kernel's folder by a person, and brought in again: what was saved first stays
 * it.
 */
static void applied_again_and_undone_twice(void **state)
{
	struct world *w = *state;
	AUTO_FREE char *before = NULL;
	AUTO_PLAN struct plan *p = NULL, *again = NULL;

	begin(w, 0);
	before = tree_of(w);
	p = make_plan(w);
	assert_int_equal(apply(w, p), FIX_DONE);
	dkms(w, "uninstall", NAME "/" VERSION, KERNEL);
	w->delivery.in_place = true;
	again = make_plan(w);
	assert_int_equal(apply(w, again), FIX_DONE);
	assert_delivered(w, 0);
	assert_int_equal(w->builds, 1);
	undo(w);
	undo(w);
	assert_tree(w, before);
}

/* A disk that lost what it said it had: the fix is done, and the module is not whole. */
static void torn_afterwards(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < CASES; i++) {
		const char *module = cases[i].driver ? LIB "/" NAME ".ko" : LIB "/nvidia.ko";
		AUTO_FREE char *before = NULL;
		AUTO_PLAN struct plan *p = NULL, *again = NULL, *none = NULL;
		struct object o;

		begin(w, i);
		before = tree_of(w);
		p = make_plan(w);
		assert_int_equal(apply(w, p), FIX_DONE);
		w->delivery.in_place = true;
		read_object(w, module, &o);
		write_part(w, module, &o, sizeof(o) / 2);
		again = make_plan(w);
		assert_int_equal(apply(w, again), FIX_DONE);
		assert_delivered(w, i);
		assert_true(release_of(w, module) > 0);
		assert_int_equal(w->builds, 1);
		none = make_plan(w);
		assert_int_equal(none->step_n, 0);
		undo(w); /* the repair, which leaves all as it is */
		assert_delivered(w, i);
		write_part(w, module, &o, 0);
		undo(w);
		assert_tree(w, before);
	}
}

/* As a package's upgrade leaves it: DKMS has forgotten the release, and its sources are gone. */
static void undo_after_an_upgrade(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < 2; i++) {
		AUTO_PLAN struct plan *p = NULL;

		begin(w, i);
		p = make_plan(w);
		assert_int_equal(apply(w, p), FIX_DONE);
		dkms(w, "remove", NAME "/" VERSION, KERNEL);
		remove_tree(w, "var/lib/dkms/" NAME);
		remove_tree(w, TREE);
		undo(w);
		assert_false(rig_exists(&w->rig, OVERRIDE));
		assert_false(rig_exists(&w->rig, "var/lib/dkms/" NAME));
	}
}

/*
 * What DKMS could not take away stays on its record, and a tree of ours, which it does that by,
 * where it is: so that it can be tried again.
 */
static void uninstall_that_fails(void **state)
{
	struct world *w = *state;

	for (size_t i = 1; i < 3; i++) {
		const char *module = cases[i].driver ? LIB "/" NAME ".ko" : LIB "/nvidia.ko";
		AUTO_FREE char *before = NULL;
		AUTO_PLAN struct plan *p = NULL;
		enum fix_result result;
		unsigned number;

		begin(w, i);
		before = tree_of(w);
		p = make_plan(w);
		assert_int_equal(apply(w, p), FIX_DONE);
		w->uninstall_fails = true;
		for (size_t k = 0; k < 2; k++) {
			assert_int_equal(fix_undo(&w->rig.run, 0, &result, &number), 0);
			assert_int_equal(result, FIX_NOT_ROLLED_BACK);
			assert_true(rig_exists(&w->rig, module));
			assert_int_equal(rig_exists(&w->rig, OWN "/dkms.conf"), !cases[i].driver);
		}
		w->uninstall_fails = false;
		undo(w);
		assert_tree(w, before);
	}
}

/* ---- two of them ---- */

static void refused(struct world *w, unsigned number, const char *path)
{
	AUTO_FREE char *what = xprintf("fix 2 builds on /%s, which fix 1 made: undo 2 first", path);
	enum fix_result result;
	unsigned none;

	assert_int_equal(fix_undo(&w->rig.run, number, &result, &none), -EBUSY);
	assert_string_equal(err_msg(), what);
}

/* For another kernel: of the first's files and options nothing is left to do, and all is needed. */
static void two_kernels(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < CASES; i++) {
		AUTO_FREE char *before = NULL, *between = NULL;
		AUTO_PLAN struct plan *p = NULL, *other = NULL;

		begin(w, i);
		put_kernel(w, SECOND);
		if (cases[i].built)
			dkms(w, "install", NAME "/" VERSION, SECOND);
		before = tree_of(w);
		p = make_plan(w);
		assert_int_equal(apply(w, p), FIX_DONE);
		between = tree_of(w);
		w->delivery.kernel = SECOND;
		w->delivery.in_place = true;
		other = make_plan(w);
		assert_int_equal(apply(w, other), FIX_DONE);
		assert_delivered(w, i);
		refused(w, 1,
			w->delivery.core  ? w->delivery.core
			: cases[i].driver ? w->delivery.patch_file
					  : OWN "/dkms.conf");
		undo(w);
		assert_tree(w, between);
		undo(w);
		assert_tree(w, before);
	}
}

/* Another release, while DKMS still has the first: its modules stay when that is undone. */
static void two_releases(void **state)
{
	static const char tree[] = "usr/src/" NAME "-" UPGRADE;
	struct world *w = *state;
	AUTO_PLAN struct plan *p = NULL, *other = NULL;
	AUTO_FREE char *link = NULL;

	begin(w, 0);
	p = make_plan(w);
	assert_int_equal(apply(w, p), FIX_DONE);
	put_driver(w, UPGRADE, true);
	w->delivery.release = w->delivery.dkms.version = UPGRADE;
	w->delivery.dkms.folder = tree;
	w->delivery.core = "usr/src/" NAME "-" UPGRADE "/" DELIVERY_CORE;
	w->delivery.patch_file = "usr/src/" NAME "-" UPGRADE "/patches/" DELIVERY_PATCH;
	w->delivery.patch_array_file = "etc/dkms/" NAME "-" UPGRADE ".conf";
	w->always = true;
	other = make_plan(w);
	assert_int_equal(apply(w, other), FIX_DONE);
	assert_true(is_edited(w, LIB "/" NAME ".ko"));
	refused(w, 1, "etc/modprobe.d/onehop.conf");
	undo(w);
	undo(w);
	assert_false(is_edited(w, LIB "/" NAME ".ko"));
	assert_int_equal(release_of(w, LIB "/" NAME ".ko"), 550);
	assert_int_equal(host_read_link(&w->rig.host,
					"var/lib/dkms/" NAME "/kernel-" KERNEL "-x86_64", &link),
			 0);
	assert_string_equal(link, UPGRADE "/" KERNEL "/x86_64");
	assert_false(rig_exists(&w->rig, TREE "/" DELIVERY_CORE));
}

/* Options of before, which are the ones that are wanted; and other ones after it. */
static void options_before_and_after(void **state)
{
	struct world *w = *state;
	AUTO_PLAN struct plan *options = NULL, *p = NULL, *changed = NULL;
	AUTO_FREE char *before = NULL;
	enum fix_result result;
	unsigned number;

	begin(w, 0);
	before = tree_of(w);
	w->delivery.way = DELIVER_OPTIONS;
	options = make_plan(w);
	assert_int_equal(apply(w, options), FIX_DONE);
	deliver_into(w);
	p = make_plan(w);
	assert_int_equal(apply(w, p), FIX_DONE);
	refused(w, 1, "etc/modprobe.d/onehop.conf");
	w->settings[0].value = "0x211";
	w->delivery.in_place = true;
	changed = make_plan(w);
	assert_int_equal(apply(w, changed), FIX_DONE);
	w->settings[0].value = "0x11";
	assert_int_equal(fix_undo(&w->rig.run, 1, &result, &number), -EBUSY);
	assert_string_equal(err_msg(),
			    "fix 3 changed /etc/modprobe.d/onehop.conf after it: undo 3 first");
	undo(w);
	undo(w);
	undo(w);
	assert_tree(w, before);
}

/* ---- what is there already, or in the way ---- */

/* Something is in the way: there may be no patch, no name of a module, no sources. */
static void blocked_has_no_steps(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < CASES; i++) {
		AUTO_PLAN struct plan *p = NULL;

		begin(w, i);
		w->delivery.blocked = true;
		w->delivery.patch = w->delivery.sources = w->delivery.dkms.module = NULL;
		p = make_plan(w);
		assert_int_equal(p->step_n, 0);
	}
}

static void second_time_there_is_nothing(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < CASES; i++) {
		AUTO_PLAN struct plan *p = NULL, *again = NULL;

		begin(w, i);
		p = make_plan(w);
		assert_int_equal(apply(w, p), FIX_DONE);
		w->delivery.in_place = true;
		again = make_plan(w);
		assert_int_equal(again->step_n, 0);
	}
}

/* A kernel that came later and was not built for: only programs are left to do. */
static void files_in_place_and_not_built(void **state)
{
	struct world *w = *state;
	AUTO_PLAN struct plan *p = NULL, *again = NULL;
	AUTO_FREE char *order = NULL;

	begin(w, 1);
	p = make_plan(w);
	assert_int_equal(apply(w, p), FIX_DONE);
	remove_tree(w, "var/lib/dkms/" NAME "/" VERSION "/" KERNEL);
	remove_tree(w, "var/lib/dkms/" NAME "/kernel-" KERNEL "-x86_64");
	w->delivery.in_place = true;
	again = make_plan(w);
	order = order_of(again, false);
	assert_string_equal(order, BUILD "dkms install\nupdate-initramfs \n");
	assert_int_equal(apply(w, again), FIX_DONE);
	assert_delivered(w, 1);
}

static void another_delivery_is_in_the_way(void **state)
{
	struct world *w = *state;
	struct plan *p = NULL;

	begin(w, 0);
	rig_put(&w->rig, TREE "/patches/" DELIVERY_PATCH, "another\n");
	assert_int_equal(try_plan(w, &p), -EEXIST);
	assert_non_null(strstr(err_msg(), DELIVERY_PATCH));
	begin(w, 2);
	rig_put(&w->rig, OWN "/dkms.conf", "another\n");
	assert_int_equal(try_plan(w, &p), -EEXIST);
	begin(w, 0);
	link_to(w, "1.2.3/" KERNEL "/x86_64", "var/lib/dkms/" NAME "/kernel-" KERNEL "-x86_64");
	assert_int_equal(try_plan(w, &p), -EBUSY);
	assert_null(p);
}

/* ---- what undo leaves ---- */

static void assert_valid(json_t *json, const char *schema)
{
	AUTO_STRBUF struct strbuf trouble = {0};

	json_schema_check(json, schema, &trouble);
	assert_string_equal(strbuf_str(&trouble), "");
	json_decref(json);
}

#define LATER "6.1.0-99-amd64"
#define OLDER "6.1.0-10-amd64"

static size_t left_of(struct world *w, const struct plan *p, struct left_build **ret)
{
	return delivery_left(&w->rig.host, p, w->machine->arena, ret);
}

/* A stock build of an older kernel is no concern, nor is anything while the patch is there. */
static void kernels_that_are_left(void **state)
{
	static const char built[] = "var/lib/dkms/" NAME "/" VERSION "/";
	struct world *w = *state;
	AUTO_FREE char *later = xprintf("%s" LATER "/x86_64/module/" NAME ".ko", built);
	AUTO_FREE char *older = xprintf("%s" OLDER "/x86_64/module/" NAME ".ko", built);
	const struct fix_outcome none = {.undo = true};
	AUTO_PLAN struct plan *p = NULL;
	struct left_build *left;

	for (size_t i = 0; i < CASES; i++) {
		begin(w, i);
		put_object(w, older, false);
		plan_free(p);
		p = make_plan(w);
		assert_int_equal(apply(w, p), FIX_DONE);
		put_object(w, later, true);
		assert_int_equal(left_of(w, p, &left), 0);
		undo(w);
		assert_int_equal(left_of(w, p, &left), cases[i].driver ? 1 : 0);
	}
	begin(w, 0);
	plan_free(p);
	p = make_plan(w);
	put_object(w, later, true);
	link_to(w, VERSION "/" LATER "/x86_64", "var/lib/dkms/" NAME "/kernel-" LATER "-x86_64");
	assert_int_equal(left_of(w, p, &left), 1);
	assert_string_equal(left->kernel, LATER);
	assert_string_equal(left->module, NAME "/" VERSION);
	assert_string_equal(left->how, "sudo rm -rf /var/lib/dkms/" NAME "/" VERSION "/" LATER
				       " && sudo dkms build " NAME "/" VERSION " -k " LATER
				       " &&\n  sudo dkms uninstall " NAME "/" VERSION " -k " LATER
				       " && sudo dkms install " NAME "/" VERSION " -k " LATER);
	assert_valid(report_left_json(left, 1, "/var/cache/onehop/sources",
				      report_undo_json(&none)),
		     "undo.schema.json");
}

/* ---- what fails ---- */

static void assert_taken_back(struct world *w, struct plan *p, const char *before, const char *what)
{
	rig_listen(&w->rig);
	assert_int_equal(apply(w, p), FIX_ROLLED_BACK);
	if (!strstr(strbuf_str(&w->rig.texts), what))
		fail_msg("no \"%s\" in: %s", what, strbuf_str(&w->rig.texts));
	remove_tree(w, "var/lib/dkms/" NAME "/" VERSION "/build"); /* DKMS keeps it, with the log */
	assert_tree(w, before);
}

static void build_that_fails(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < CASES; i++) {
		AUTO_FREE char *before = NULL;
		AUTO_PLAN struct plan *p = NULL;

		begin(w, i);
		before = tree_of(w);
		p = make_plan(w);
		w->build_fails = true;
		assert_taken_back(w, p, before, "dkms failed with status 10");
	}
}

/* What was built is looked into before it is installed. */
static void probe_that_fails(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < CASES; i++) {
		AUTO_FREE char *before = NULL;
		AUTO_PLAN struct plan *p = NULL;

		if (!cases[i].driver)
			continue; /* there is no patch */
		begin(w, i);
		before = tree_of(w);
		p = make_plan(w);
		w->build_ignores_patch = true;
		assert_taken_back(w, p, before, "onehop failed with status 1");
	}
}

/* ---- killed ---- */

/* `p` NULL: while it undoes. */
static bool is_killed(struct world *w, struct plan *p, long n)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		enum fix_result result;
		unsigned number;

		rig_fail(&w->rig, n, 0);
		w->rig.kill = true;
		if (p)
			fix_apply(&w->rig.run, p, &result, &number);
		else
			fix_undo(&w->rig.run, 0, &result, &number);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

static void recover(struct world *w)
{
	size_t n;
	int lock;

	rig_listen(&w->rig);
	assert_int_equal(journal_lock(&w->rig.host, 0, &lock), 0);
	if (fix_recover(&w->rig.run, &n) < 0)
		fail_msg("recover: %s", err_msg());
	close(lock);
	if (w->rig.events[FIX_UNDO_FAILED])
		fail_msg("recover: %s", strbuf_str(&w->rig.texts));
}

/* Of a system that was begun. */
static void note_apply(struct world *w)
{
	AUTO_PLAN struct plan *p = make_plan(w);

	begin_noting(w);
	assert_int_equal(apply(w, p), FIX_DONE);
	w->noting = false;
}

static void note_undo(struct world *w)
{
	AUTO_PLAN struct plan *p = make_plan(w);

	assert_int_equal(apply(w, p), FIX_DONE);
	begin_noting(w);
	undo(w);
	w->noting = false;
}

/* At each point; what the next run finds it takes back, and all is as it was, or all is done. */
static void killed_anywhere(struct world *w, size_t i)
{
	AUTO_FREE char *before = NULL;
	bool killed = true;
	long n = 0;

	begin(w, i);
	before = tree_of(w);
	note_apply(w);
	for (; killed; n = point_after(w, n, STRIDE)) {
		AUTO_PLAN struct plan *p = NULL;
		AUTO_FREE char *now = NULL;

		begin(w, i);
		p = make_plan(w);
		killed = is_killed(w, p, n);
		recover(w);
		now = tree_of(w);
		if (strstr(now,
			   "/etc/modprobe.d/onehop.conf")) { /* its last lines were all that lacked */
			assert_delivered(w, i);
			undo(w);
		}
		assert_tree(w, before);
	}
	assert_true(n > 60);
}

/* The power goes at a point: what was copied, and is not on the disk, is torn. */
static void power_goes_anywhere(struct world *w, size_t i, bool undoing)
{
	AUTO_FREE char *before = NULL;
	bool killed = true;
	unsigned torn = w->torn;

	begin(w, i);
	before = tree_of(w);
	if (undoing)
		note_undo(w);
	else
		note_apply(w);
	for (long n = 0; killed; n = point_after(w, n, 2 * STRIDE)) {
		AUTO_PLAN struct plan *p = NULL;

		begin(w, i);
		p = make_plan(w);
		if (undoing)
			assert_int_equal(apply(w, p), FIX_DONE);
		w->power = true;
		note_disk(w);
		killed = is_killed(w, undoing ? NULL : p, n);
		w->power = false;
		lose_power(w);
		recover(w);
		if (rig_exists(&w->rig,
			       "etc/modprobe.d/onehop.conf")) { /* nothing, or all, is done */
			assert_delivered(w, i);
			undo(w);
		}
		assert_tree(w, before);
	}
	print_message("# %s%s: %u torn files\n", cases[i].name, undoing ? ", undone" : "",
		      w->torn - torn);
	assert_true(undoing || w->torn - torn > 5);
}

static void power_goes(void **state)
{
	for (size_t i = 0; i < CASES; i++)
		power_goes_anywhere(*state, i, false);
}

static void power_goes_while_it_undoes(void **state)
{
	for (size_t i = 0; i < CASES; i++)
		power_goes_anywhere(*state, i, true);
}

/* What was said of it holds, and once there is room it can be taken back. */
static void assert_claim(struct world *w, size_t i, int r, enum fix_result result,
			 const char *before)
{
	remove_tree(w, "var/lib/dkms/" NAME "/" VERSION "/build");
	rig_fail(&w->rig, -1, 0);
	if (r < 0 || result == FIX_ROLLED_BACK) {
		assert_tree(w, before);
		return;
	}
	if (result == FIX_DONE)
		assert_delivered(w, i);
	undo(w);
	assert_tree(w, before);
}

static void fails_anywhere(struct world *w, size_t i, bool stays)
{
	AUTO_FREE char *before = NULL;
	bool reached = true;

	begin(w, i);
	before = tree_of(w);
	note_apply(w);
	for (long n = 0; reached; n = point_after(w, n, 2 * STRIDE)) {
		AUTO_PLAN struct plan *p = NULL;
		enum fix_result result = FIX_NOTHING;
		unsigned number;
		int r;

		begin(w, i);
		p = make_plan(w);
		if (stays)
			rig_fail_from(&w->rig, n, ENOSPC);
		else
			rig_fail(&w->rig, n, EIO);
		r = fix_apply(&w->rig.run, p, &result, &number);
		reached = w->rig.points > n;
		assert_claim(w, i, r, result, before);
	}
}

static void errors_anywhere(void **state)
{
	for (size_t i = 0; i < CASES; i++)
		fails_anywhere(*state, i, false);
}

static void full_disks(void **state)
{
	for (size_t i = 0; i < CASES; i++)
		fails_anywhere(*state, i, true);
}

static void undo_killed_anywhere(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < CASES; i++) {
		bool killed = true;
		long n = 0;

		begin(w, i);
		note_undo(w);
		for (; killed; n = point_after(w, n, STRIDE)) {
			AUTO_FREE char *before = NULL;
			AUTO_PLAN struct plan *p = NULL;

			begin(w, i);
			before = tree_of(w);
			p = make_plan(w);
			assert_int_equal(apply(w, p), FIX_DONE);
			killed = is_killed(w, NULL, n);
			recover(w);
			if (rig_exists(&w->rig, "etc/modprobe.d/onehop.conf"))
				undo(w); /* it had not begun */
			assert_tree(w, before);
		}
		assert_true(n > 30);
	}
}

static void killed_into_installed(void **state)
{
	killed_anywhere(*state, 0);
}

static void killed_into_unbuilt(void **state)
{
	killed_anywhere(*state, 1);
}

static void killed_into_whole(void **state)
{
	killed_anywhere(*state, 3);
}

static void killed_own(void **state)
{
	killed_anywhere(*state, 2);
}

/* ---- an earlier edit ---- */

static bool has_gate(struct world *w, const char *path)
{
	struct arena *a = arena_new();
	struct probe p = {0};
	bool gate = probe_file(w->rig.host.root_fd, path, a, &p) == 0 && p.gate;

	arena_free(a);
	return gate;
}

/* As onehop of the first edit left it. */
static void deliver_first(struct world *w, size_t i)
{
	AUTO_PLAN struct plan *p = NULL;

	begin(w, i);
	w->first = true;
	w->delivery.dkms.uvm = NULL;
	w->delivery.patch = "--- a/old\n+++ b/old\n";
	p = make_plan(w);
	assert_int_equal(apply(w, p), FIX_DONE);
	w->first = false;
}

/* Today's, in front of what is there; false: it is blocked. */
static bool look_at_earlier(struct world *w, size_t i)
{
	const char *path = cases[i].driver ? TREE "/patches/" DELIVERY_PATCH : OWN "/dkms.conf";
	struct journal_entry *entries = NULL;
	size_t n = 0;

	cases[i].deliver(w);
	w->delivery.others = rig_exists(&w->rig, path) && !has_gate(w, LIB "/nvidia-uvm.ko");
	w->delivery.in_place = rig_exists(&w->rig, path) && !w->delivery.others;
	assert_int_equal(journal_read(&w->rig.host, &entries, &n), 0);
	delivery_check_earlier(&w->rig.host, &w->delivery, entries, n, w->machine->arena);
	journal_free(entries, n);
	return !w->delivery.blocked;
}

/* What onehop unlock --apply does, behind recovery. */
static void replace(struct world *w, size_t i)
{
	AUTO_PLAN struct plan *p = NULL;
	enum fix_result result;
	unsigned number;

	assert_true(look_at_earlier(w, i));
	for (size_t k = 0; k < w->delivery.earlier_n; k++) {
		assert_int_equal(fix_undo(&w->rig.run, w->delivery.earlier[k], &result, &number),
				 0);
		assert_int_equal(result, FIX_DONE);
	}
	assert_true(look_at_earlier(w, i));
	assert_int_equal(w->delivery.earlier_n, 0);
	p = make_plan(w);
	if (p->step_n)
		assert_int_equal(apply(w, p), FIX_DONE);
}

/* Options of the earlier edit are there until that is undone: no step sets them yet. */
static void assert_shown(const char *shown, const char *forward)
{
	const char *options = strstr(forward, OPTIONS);
	AUTO_FREE char *expected =
		xprintf("%.*s%s", (int)(options - forward), forward, options + strlen(OPTIONS));

	assert_string_equal(shown, expected);
}

/* The plan that is shown before is the one that is carried out once the earlier edit is undone. */
static void earlier_edit_is_replaced(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < CASES; i++) {
		AUTO_FREE char *before = NULL, *shown = NULL;
		AUTO_PLAN struct plan *p = NULL;

		begin(w, i);
		before = tree_of(w);
		deliver_first(w, i);
		assert_delivered(w, i);
		assert_false(has_gate(w, LIB "/nvidia-uvm.ko"));
		assert_true(look_at_earlier(w, i));
		assert_int_equal(w->delivery.earlier_n, 1);
		assert_int_equal(w->delivery.earlier[0], 1);
		p = make_plan(w);
		shown = order_of(p, false);
		assert_shown(shown, cases[i].forward);
		replace(w, i);
		assert_delivered(w, i);
		assert_true(has_gate(w, LIB "/nvidia-uvm.ko"));
		undo(w);
		assert_tree(w, before);
	}
}

/*
 * Of several kernels all are undone, the last first; what else changed the same file is in the way.
 */
static void earlier_edits_of_two_kernels(void **state)
{
	struct world *w = *state;
	AUTO_PLAN struct plan *other = NULL, *options = NULL;
	AUTO_FREE char *before = NULL;

	begin(w, 0);
	put_kernel(w, SECOND);
	before = tree_of(w);
	deliver_first(w, 0);
	put_kernel(w, SECOND);
	w->first = true;
	w->delivery.kernel = SECOND;
	w->delivery.in_place = true;
	other = make_plan(w);
	assert_int_equal(apply(w, other), FIX_DONE);
	w->first = false;
	assert_true(look_at_earlier(w, 0));
	assert_int_equal(w->delivery.earlier_n, 2);
	assert_int_equal(w->delivery.earlier[0], 2);
	assert_int_equal(w->delivery.earlier[1], 1);
	w->delivery.way = DELIVER_OPTIONS;
	w->settings[0].value = "0x211";
	options = make_plan(w);
	assert_int_equal(apply(w, options), FIX_DONE);
	w->settings[0].value = "0x11";
	assert_false(look_at_earlier(w, 0));
	assert_non_null(strstr(w->delivery.checks[0].found, "undo 3 first"));
	undo(w);
	replace(w, 0);
	assert_delivered(w, 0);
	undo(w);
	assert_tree(w, before);
}

/* Without its journal nobody knows how it came in. */
static void earlier_edit_of_no_fix(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < CASES; i += 2) {
		deliver_first(w, i);
		remove_tree(w, "var/lib/onehop/fixes");
		assert_false(look_at_earlier(w, i));
		assert_non_null(strstr(w->delivery.checks[0].remedy,
				       cases[i].driver ? "dkms install --force" : "dkms remove"));
	}
}

static bool replace_is_killed(struct world *w, size_t i, long n)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		rig_fail(&w->rig, n, 0);
		w->rig.kill = true;
		replace(w, i);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

/* Whatever is left, the next run completes it, and undo leads to the driver's own modules. */
static void replace_killed_anywhere(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < 3; i += 2) {
		AUTO_FREE char *before = NULL;
		bool killed = true;
		long n = 0;

		begin(w, i);
		before = tree_of(w);
		deliver_first(w, i);
		begin_noting(w);
		replace(w, i);
		w->noting = false;
		for (; killed; n = point_after(w, n, 2 * STRIDE)) {
			deliver_first(w, i);
			killed = replace_is_killed(w, i, n);
			recover(w);
			replace(w, i);
			assert_delivered(w, i);
			assert_true(has_gate(w, LIB "/nvidia-uvm.ko"));
			undo(w);
			assert_tree(w, before);
		}
		assert_true(n > 90);
	}
}

/* ---- what is printed ---- */

static void printed(void **state)
{
	static const struct delivery_check checks[] = {{"disk", "41 GB free", CHECK_GOOD, NULL},
						       {"tools", "missing: patch", CHECK_BAD,
							"sudo apt install patch\n"}};
	static const struct gpu_holder holders[] = {{7, "Xorg", "gdm.service"},
						    {9, "python", NULL}};
	static const struct text_format format = {.width = 80};
	struct world *w = *state;
	AUTO_PLAN struct plan *p = NULL;
	AUTO_STRBUF struct strbuf text = {0};
	struct delivery_report r = {.delivery = &w->delivery, .work = true};
	struct plan_report plan = {.judged = true};
	struct document *d = document_new();

	begin(w, 0);
	p = make_plan(w);
	w->delivery.checks = (struct delivery_check *)checks;
	w->delivery.check_n = 2;
	w->delivery.blocked = w->delivery.holders_known = true;
	w->delivery.holders = (struct gpu_holder *)holders;
	w->delivery.holder_n = 2;
	r.machine = plan.machine = w->machine;
	plan.plan = p;
	assert_valid(report_delivery_json(&r, report_plan_json(&plan, NULL)),
		     "unlock-delivery.schema.json");
	report_delivery(d, &r);
	report_plan(d, &plan);
	report_delivery_after(d, &r);
	document_write_text(d, &format, &text);
	document_free(d);
	assert_non_null(strstr(text.text, "BAD  tools: missing: patch"));
	assert_non_null(strstr(text.text, "binary: "));
	assert_non_null(strstr(text.text, "sudo systemctl stop gdm.service"));
	assert_non_null(strstr(text.text, "# stop python (pid 9)"));
}

/* ---- the core ---- */

static bool count_ticks(void *context, const struct build_progress *p)
{
	*(unsigned *)context = p->files;
	return true;
}

static int build_with(struct world *w, const char *makefile, struct strbuf *last, unsigned *files)
{
	AUTO_FREE char *sources = below(w, "home/tree"), *core = below(w, "home/tree/" BUILT);
	struct arena *a = arena_new();
	const struct build_request r = {.sources = sources,
					.core = core,
					.jobs = 1,
					.progress = count_ticks,
					.context = files,
					.arena = a};
	int result;

	rig_put(&w->rig, "home/tree/src/nvidia/Makefile", makefile);
	result = build_core(&r, last);
	arena_free(a);
	return result;
}

static void core_is_built(void **state)
{
	struct world *w = *state;
	AUTO_STRBUF struct strbuf last = {0};
	AUTO_FREE char *log = NULL;
	unsigned files = 0;

	begin(w, 2);
	assert_int_equal(build_with(w,
				    "all:\n\t@echo ' [ nvidia   ]  CC           a.c'\n"
				    "\t@echo ' [ nvidia   ]  CC           b.c'\n",
				    &last, &files),
			 0);
	assert_int_equal(files, 2);
	assert_string_equal(strbuf_str(&last), "");
	log = rig_get(&w->rig, "home/tree/" BUILD_LOG);
	assert_non_null(strstr(log, "b.c"));
}

static void core_is_not_built(void **state)
{
	struct world *w = *state;
	AUTO_STRBUF struct strbuf last = {0}, none = {0};
	unsigned files = 0;

	begin(w, 2);
	assert_int_equal(build_with(w, "all:\n\t@echo a.c:1: error: no\n\t@false\n", &last, &files),
			 -EIO);
	assert_non_null(strstr(last.text, "a.c:1: error: no"));
	assert_non_null(strstr(err_msg(), BUILD_LOG));
	/* From sources that are not edited. */
	put_object(w, "home/tree/" BUILT, false);
	assert_int_equal(build_with(w, "all:\n\t@true\n", &none, &files), -EUCLEAN);
}

static void one_file_probed(void **state)
{
	struct world *w = *state;
	struct arena *a = arena_new();
	struct probe p = {0};
	int root = w->rig.host.root_fd;

	begin(w, 0);
	assert_int_equal(probe_file(root, "home/tree/" BUILT, a, &p), 0);
	assert_true(p.every_chip);
	assert_valid(report_probe_json(&p), "unlock-probe.schema.json");
	assert_int_equal(probe_file(root, "home/tree/" MODESET, a, &p), 0);
	assert_false(p.every_chip);
	assert_int_equal(p.stubs, 5);
	assert_int_equal(probe_file(root, "boot/initrd", a, &p), -EINVAL);
	assert_int_equal(probe_file(root, "boot/nothing", a, &p), -ENOENT);
	arena_free(a);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_world, remove_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(order),
		TEST(options_by_the_files_name),
		TEST(options_in_an_image),
		TEST(apply_and_undo),
		TEST(applied_again_and_undone_twice),
		TEST(torn_afterwards),
		TEST(undo_after_an_upgrade),
		TEST(uninstall_that_fails),
		TEST(two_kernels),
		TEST(two_releases),
		TEST(options_before_and_after),
		TEST(blocked_has_no_steps),
		TEST(second_time_there_is_nothing),
		TEST(files_in_place_and_not_built),
		TEST(another_delivery_is_in_the_way),
		TEST(kernels_that_are_left),
		TEST(build_that_fails),
		TEST(probe_that_fails),
		TEST(killed_into_installed),
		TEST(killed_into_unbuilt),
		TEST(killed_into_whole),
		TEST(killed_own),
		TEST(power_goes),
		TEST(power_goes_while_it_undoes),
		TEST(errors_anywhere),
		TEST(full_disks),
		TEST(undo_killed_anywhere),
		TEST(earlier_edit_is_replaced),
		TEST(earlier_edits_of_two_kernels),
		TEST(earlier_edit_of_no_fix),
		TEST(replace_killed_anywhere),
		TEST(printed),
		TEST(core_is_built),
		TEST(core_is_not_built),
		TEST(one_file_probed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
