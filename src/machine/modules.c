/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel modules: what is loaded, what is installed, modprobe's configuration, and peer memory. */
#include "machine/modules.h"

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/read.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* `file`: read the module file's .modinfo too, which means opening it. */
enum ask_file { ASK_NEVER, ASK_ALWAYS, ASK_IF_NOT_LOADED };

static const struct {
	const char *name;
	enum ask_file file;
} interest[] = {
	{"nvidia", ASK_IF_NOT_LOADED}, {"nvidia_peermem", ASK_ALWAYS}, {"nv_peer_mem", ASK_ALWAYS},
	{"nvidia_modeset", ASK_NEVER}, {"nvidia_drm", ASK_NEVER},      {"nvidia_uvm", ASK_NEVER},
	{"nvidia_fs", ASK_NEVER},      {"gdrdrv", ASK_NEVER},          {"nouveau", ASK_NEVER},
	{"nova_core", ASK_NEVER},      {"nova_drm", ASK_NEVER},        {"nvidiafb", ASK_NEVER},
	{"vfio_pci", ASK_NEVER},       {"ib_core", ASK_NEVER},         {"ib_uverbs", ASK_NEVER},
	{"rdma_cm", ASK_NEVER},        {"mlx5_core", ASK_NEVER},       {"mlx5_ib", ASK_NEVER},
	{"mlx4_core", ASK_NEVER},      {"mlx4_ib", ASK_NEVER},         {"irdma", ASK_NEVER},
	{"bnxt_en", ASK_NEVER},        {"bnxt_re", ASK_NEVER},         {"efa", ASK_NEVER},
	{"ionic_rdma", ASK_NEVER},     {"rdma_rxe", ASK_NEVER},        {"siw", ASK_NEVER},
};

/* ---- names ---- */

bool module_is_of_interest(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(interest); i++)
		if (strcmp(interest[i].name, name) == 0)
			return true;
	return false;
}

/*
 * Debian puts the flavour after the first word: nvidia-current-open-peermem, nvidia-tesla-535-uvm,
 * nvidia-legacy-390xx. Returns the rest of the name; s itself if it has no flavour.
 */
static const char *skip_flavour(const char *s)
{
	static const char *const flavours[] = {"_current", "_tesla", "_legacy"};

	for (size_t i = 0; i < ARRAY_LEN(flavours); i++) {
		if (!text_starts_with(s, flavours[i]))
			continue;
		s += strlen(flavours[i]);
		if (*s == '_' && isdigit((unsigned char)s[1]))
			s += 1 + strcspn(s + 1, "_");
		return text_starts_with(s, "_open") ? s + strlen("_open") : s;
	}
	return s;
}

const char *module_name_of(const char *path, size_t n, char *buf, size_t size)
{
	const char *slash = memrchr(path, '/', n), *rest;
	char *nvidia_end = buf + strlen("nvidia"), *dot;

	if (slash) {
		n -= (size_t)(slash + 1 - path);
		path = slash + 1;
	}
	text_copy(buf, size, path, n);
	dot = strstr(buf, ".ko");
	if (dot)
		*dot = '\0';
	for (char *p = buf; *p; p++)
		if (*p == '-')
			*p = '_';
	if (!text_starts_with(buf, "nvidia_"))
		return buf;
	rest = skip_flavour(nvidia_end);
	memmove(nvidia_end, rest, strlen(rest) + 1);
	return buf;
}

/* "updates/dkms/nvidia.ko: kernel/drivers/..." */
bool module_find_file(const char *modules_dep, const char *name, const char **ret, size_t *ret_n)
{
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, modules_dep)) {
		const char *colon = memchr(line, ':', n);
		char buf[64];

		if (!colon)
			continue;
		module_name_of(line, (size_t)(colon - line), buf, sizeof(buf));
		if (strcmp(buf, name) != 0)
			continue;
		*ret = line;
		*ret_n = (size_t)(colon - line);
		return true;
	}
	return false;
}

/* ---- what is loaded ---- */

static struct module *find_module(struct machine *m, const char *name)
{
	for (size_t i = 0; i < m->module_n; i++)
		if (strcmp(m->modules[i].name, name) == 0)
			return &m->modules[i];
	return NULL;
}

/* "nvidia 56827904 2 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 (POE)" */
static void read_loaded_line(struct reader *r, const char *from, const char *line, size_t n)
{
	AUTO_FREE char *text = xstrndup(line, n);
	char *rest = text, *field[4] = {0}, buf[64], *p;
	struct module *module;
	int64_t users;

	for (size_t i = 0; i < ARRAY_LEN(field); i++)
		field[i] = strsep(&rest, " ");
	if (!field[3])
		return;
	module = find_module(r->m, module_name_of(field[0], strlen(field[0]), buf, sizeof(buf)));
	if (!module)
		return;
	module->loaded = fact_int(1, from);
	if (text_to_i64(field[2], &users) == 0)
		module->users = fact_int(users, from);
	for (p = field[3]; *p; p++)
		if (*p == ',')
			*p = ' ';
	p = text_trim(field[3]);
	module->used_by = fact_str(strcmp(p, "-") ? arena_strdup(r->m->arena, p) : "", from);
	module->version = read_str(r, "sys/module/%s/version", field[0]);
}

/* A text may show only part of the list: the modules in it are loaded, others are unknown. */
static void read_stated(struct reader *r, struct module *module)
{
	struct fact_int users = read_int(r, "stated/modules/%s", module->name);

	if (!fact_known(users))
		return;
	module->users = users;
	module->loaded = fact_int(1, users.from);
}

static void read_loaded(struct reader *r)
{
	struct fact_str text = read_text(r, "proc/modules");
	struct machine *m = r->m;
	const char *line = NULL;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(interest); i++) {
		struct module *module = ARENA_PUSH(m->arena, m->modules, m->module_n);

		module->name = interest[i].name;
		module->loaded = fact_known(text) ? fact_int(0, text.from) : INT_LIKE(text);
		module->users = module->loaded;
		module->used_by = STR_LIKE(module->loaded);
		if (fact_known(text))
			module->used_by.value = "";
		module->version = fact_str_unknown("not loaded");
		if (!fact_known(text) && source_stated(r->s))
			read_stated(r, module);
	}
	while (fact_known(text) && text_next_line(&line, &n, text.value))
		read_loaded_line(r, text.from, line, n);
}

/* ---- what is installed ---- */

/*
 * The paths after the colon, as module names: direct and indirect dependencies that depmod found.
 */
static struct fact_str needs_of(struct reader *r, const char *from, const char *rest)
{
	AUTO_STRBUF struct strbuf names = {0};
	char buf[64];

	while (*rest && *rest != '\n') {
		size_t n;

		rest += strspn(rest, " ");
		n = strcspn(rest, " \n");
		if (n)
			strbuf_printf(&names, "%s%s", names.len ? "," : "",
				      module_name_of(rest, n, buf, sizeof(buf)));
		rest += n;
	}
	return fact_str(arena_strdup(r->m->arena, strbuf_str(&names)), from);
}

struct fact_str modinfo_field(struct reader *r, struct fact_str text, const char *module,
			      const char *key)
{
	const char *value, *gap;
	size_t n;

	if (!fact_known(text))
		return text;
	if (text_after(text.value, key, &value, &n))
		return fact_str(arena_strndup(r->m->arena, value, n), text.from);
	if (!source_stated(r->s))
		return fact_str_absent(text.from);
	gap = read_gap(r, arena_printf(r->m->arena, "stated/modinfo/%s", module));
	return fact_str_unknown(gap ? gap : "not in the text's modinfo");
}

/* What the file states; the kernel may have given the version of the loaded module. */
static void read_modinfo(struct reader *r, struct module *module)
{
	const struct fact_str text = read_text(r, "modinfo-%s.txt", module->name);
	const struct fact_str depends = modinfo_field(r, text, module->name, "depends=");
	const struct fact_str version = modinfo_field(r, text, module->name, "version=");

	module->license = modinfo_field(r, text, module->name, "license=");
	if (fact_known(depends))
		module->depends = depends;
	if (fact_known(version) && !fact_known(module->version))
		module->version = version;
}

static void read_file(struct reader *r, struct fact_str dep, struct module *module,
		      enum ask_file ask)
{
	const char *file;
	size_t n;

	module->file = module->depends = module->license = STR_LIKE(dep);
	if (source_stated(r->s)) {
		module->file = read_str(r, "stated/module-files/%s", module->name);
		read_modinfo(r, module);
	}
	if (!fact_known(dep))
		return;
	if (!module_find_file(dep.value, module->name, &file, &n)) {
		module->file = module->depends = module->license = fact_str_absent(dep.from);
		return;
	}
	module->file = fact_str(arena_strndup(r->m->arena, file, n), dep.from);
	module->depends = needs_of(r, dep.from, file + n + 1);
	module->license = fact_str_unknown("the module's file was not opened");
	if (ask == ASK_ALWAYS || (ask == ASK_IF_NOT_LOADED && fact_is(module->loaded, 0)))
		read_modinfo(r, module);
}

static void read_installed(struct reader *r)
{
	struct fact_str release = r->m->kernel.release, dep = release;

	if (fact_known(release))
		dep = read_text(r, "lib/modules/%s/modules.dep", release.value);
	for (size_t i = 0; i < ARRAY_LEN(interest); i++)
		read_file(r, dep, &r->m->modules[i], interest[i].file);
}

/* ---- modprobe.d ---- */

/* Strongest first: a file hides those of the same name in the folders after its own
 * (modprobe.d(5)). */
static const char *const modprobe_folders[] = {
	"etc/modprobe.d",     "run/modprobe.d", "usr/local/lib/modprobe.d",
	"usr/lib/modprobe.d", "lib/modprobe.d",
};

static const struct {
	const char *word;
	enum modprobe_kind kind;
} modprobe_commands[] = {
	{"blacklist", MODPROBE_BLACKLIST},
	{"options", MODPROBE_OPTIONS},
	{"install", MODPROBE_INSTALL},
	{"softdep", MODPROBE_SOFTDEP},
};

static void read_modprobe_line(struct reader *r, const char *file, unsigned number, char *text)
{
	struct machine *m = r->m;
	char *rest = text_trim(text), *command, *name, buf[64];
	struct modprobe_line *l;

	if (*rest == '#')
		return;
	command = strsep(&rest, " \t");
	rest = rest ? rest + strspn(rest, " \t") : rest;
	name = strsep(&rest, " \t");
	if (!name)
		return;
	module_name_of(name, strlen(name), buf, sizeof(buf));
	for (size_t i = 0; module_is_of_interest(buf) && i < ARRAY_LEN(modprobe_commands); i++) {
		if (strcmp(command, modprobe_commands[i].word) != 0)
			continue;
		l = ARENA_PUSH(m->arena, m->modprobe, m->modprobe_n);
		l->kind = modprobe_commands[i].kind;
		l->module = arena_strdup(m->arena, buf);
		l->text = rest ? arena_strdup(m->arena, text_trim(rest)) : "";
		l->file = file;
		l->line = number;
	}
}

/* A backslash at the end of a line joins the next one to it. */
static void read_modprobe_file(struct reader *r, struct fact_str text)
{
	const char *file = arena_printf(r->m->arena, "/%s", text.from), *line = NULL;
	AUTO_STRBUF struct strbuf joined = {0};
	unsigned number = 0, first = 1;
	size_t n;

	while (text_next_line(&line, &n, text.value)) {
		number++;
		if (!joined.len)
			first = number;
		if (n && line[n - 1] == '\\') {
			strbuf_add(&joined, line, n - 1);
			strbuf_putc(&joined, ' ');
			continue;
		}
		strbuf_add(&joined, line, n);
		if (joined.len)
			read_modprobe_line(r, file, first, joined.text);
		joined.len = 0;
	}
	if (joined.len)
		read_modprobe_line(r, file, first, joined.text);
}

/* Whether a stronger folder holds a file of the same name; with /lib a link to /usr/lib each is
 * seen twice. */
static bool is_hidden(char **seen, size_t seen_n, const char *name)
{
	for (size_t i = 0; i < seen_n; i++)
		if (strcmp(seen[i], name) == 0)
			return true;
	return false;
}

static void read_modprobe(struct reader *r)
{
	struct arena *a = r->m->arena;
	char **seen = NULL;
	size_t seen_n = 0;

	for (size_t i = 0; i < ARRAY_LEN(modprobe_folders); i++) {
		char **names;
		size_t n;

		read_list(r, &names, &n, "%s", modprobe_folders[i]);
		for (size_t k = 0; k < n; k++) {
			struct fact_str text;

			if (!text_ends_with(names[k], ".conf") || is_hidden(seen, seen_n, names[k]))
				continue;
			*ARENA_PUSH(a, seen, seen_n) = arena_strdup(a, names[k]);
			text = read_text(r, "%s/%s", modprobe_folders[i], names[k]);
			if (fact_known(text))
				read_modprobe_file(r, text);
		}
		source_free_names(names, n);
	}
}

/* ---- peer memory ---- */

#define PEERS "sys/kernel/mm/memory_peers"

static struct fact_int read_listed(struct reader *r)
{
	static const char *const clients[] = {"nv_mem", "nv_mem_nc"};

	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		struct fact_str version = read_str(r, PEERS "/%s/version", clients[i]);

		if (fact_known(version))
			return fact_int(1, version.from);
		if (fact_unknown(version))
			return INT_LIKE(version);
	}
	return fact_int(0, PEERS);
}

/* Whether nvidia_peermem uses a module. */
static struct fact_int peermem_uses(const struct machine *m, const char *name)
{
	const struct module *module = machine_module(m, name);
	const char *p;

	if (!fact_is(module->loaded, 1))
		return fact_int_unknown(arena_printf(m->arena, "%s is not loaded", name));
	for (p = module->used_by.value; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");
		char buf[64];

		if (strcmp(module_name_of(p, n, buf, sizeof(buf)), "nvidia_peermem") == 0)
			return fact_int(1, module->used_by.from);
		p += n;
	}
	return fact_int(0, module->used_by.from);
}

/*
 * The RDMA core creates the folder with its first client and removes it with the last, but only on
 * kernels that export mm_kobj (OFED's configure, HAVE_MM_KOBJ_EXPORTED): a missing folder may mean
 * either. nvidia-peermem does not start where it cannot register (nv_mem_client_init), and its one
 * use of the core is to register. So if it is loaded and uses a core with the interface, it has
 * registered.
 */
static struct fact_int read_registered(struct reader *r, const struct peermem *p)
{
	struct fact_int folder, core, verbs;

	if (!fact_is(p->listed, 0))
		return p->listed;
	if (!fact_is(p->loaded, 1))
		return p->loaded;
	folder = read_exists(r, PEERS);
	if (!fact_is(folder, 0))
		return fact_is(folder, 1) ? fact_int(0, folder.from) : folder;
	if (fact_is(p->api_in_kernel, 0))
		return p->api_in_kernel;
	core = peermem_uses(r->m, "ib_core");
	verbs = peermem_uses(r->m, "ib_uverbs");
	return fact_is(verbs, 1) ? verbs : core;
}

/* The kernel's symbols are many, so they are looked through only where the answer matters. */
static struct fact_int read_api(struct reader *r, const struct peermem *p, bool has_file)
{
	struct fact_int devices;
	struct fact_str symbols;
	char **names;
	size_t n;

	if (fact_is(p->listed, 1))
		return p->listed;
	devices = read_list(r, &names, &n, "sys/class/infiniband");
	source_free_names(names, n);
	if (!has_file && !(fact_known(devices) && n))
		return fact_int_unknown(
			"not read: there is neither an RDMA device nor a peer memory module");
	symbols = read_text(r, "peer-memory-symbol.txt");
	if (!fact_known(symbols))
		return INT_LIKE(symbols);
	return fact_int(strstr(symbols.value, "ib_register_peer_memory_client") != NULL,
			"proc/kallsyms");
}

/*
 * OFED's and DOCA's driver versions have a build number after the dash, "24.10-1.1.4"; the kernel's
 * own had "5.0-0" or have none.
 */
static bool is_ofed_version(const char *version)
{
	unsigned a, b, c, d;

	return sscanf(version, "%u.%u-%u.%u", &a, &b, &c, &d) == 4;
}

/* mlx5_core shows the version that is loaded; the kernel's own has none, or one of another form. */
static struct fact_str ofed_running(const struct module *mlx5)
{
	if (!fact_is(mlx5->loaded, 1))
		return fact_is(mlx5->loaded, 0) ? fact_str_absent(mlx5->loaded.from)
						: STR_LIKE(mlx5->loaded);
	if (fact_known(mlx5->version) && !is_ofed_version(mlx5->version.value))
		return fact_str_absent(mlx5->version.from);
	return mlx5->version;
}

static struct fact_str read_ofed(struct reader *r, const struct peermem *p)
{
	struct fact_str release;
	struct fact_int tree;

	if (fact_known(p->ofed_running))
		return p->ofed_running;
	release = read_str(r, "etc/mlnx-release");
	if (fact_known(release) && *release.value)
		return release;
	tree = read_exists(r, "usr/src/ofa_kernel");
	if (fact_is(tree, 1))
		return fact_str("of unknown version", tree.from);
	if (fact_is(p->ofed_modules, 1))
		return fact_str("of unknown version", p->ofed_modules.from);
	if (fact_unknown(tree))
		return STR_LIKE(tree);
	return fact_str_absent("neither mlx5_core's version nor usr/src/ofa_kernel");
}

/*
 * Modules that do not come with the kernel are in other folders: updates, extra, weak-updates. A
 * core that is built in has no file.
 */
static struct fact_int ofed_modules(const struct module *core)
{
	if (fact_unknown(core->file))
		return INT_LIKE(core->file);
	return fact_int(fact_known(core->file) && !text_starts_with(core->file.value, "kernel/"),
			core->file.from);
}

/*
 * "default -> 6.2.0-36-generic", also by way of "x86_64/"; Debian's goes to alternatives instead.
 */
static struct fact_str ofed_kernel(struct reader *r)
{
	struct fact_str link = read_link_name(r, "usr/src/ofa_kernel/default");

	if (fact_known(link) && !isdigit((unsigned char)*link.value))
		return fact_str_unknown("usr/src/ofa_kernel/default names no kernel");
	return link;
}

static void read_peermem(struct reader *r)
{
	const struct module *module = find_module(r->m, "nvidia_peermem");
	const struct module *legacy = find_module(r->m, "nv_peer_mem");
	struct peermem *p = &r->m->peermem;

	p->loaded = module->loaded;
	p->legacy_loaded = legacy->loaded;
	p->depends = module->depends;
	p->listed = read_listed(r);
	p->api_in_kernel = read_api(r, p, fact_known(module->file) || fact_known(legacy->file));
	p->registered = read_registered(r, p);
	p->ofed_running = ofed_running(find_module(r->m, "mlx5_core"));
	p->ofed_modules = ofed_modules(find_module(r->m, "ib_core"));
	p->ofed = read_ofed(r, p);
	p->ofed_kernel = fact_known(p->ofed) ? ofed_kernel(r) : STR_LIKE(p->ofed);
}

void modules_read(struct reader *r)
{
	read_loaded(r);
	read_installed(r);
	read_modprobe(r);
	read_peermem(r);
}
