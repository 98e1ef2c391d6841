/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the running kernel, its compiler, its boot loader, and the firmware. */
#include "machine/host_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/distribution.h"
#include "machine/efi_variable.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define EFI_GLOBAL "8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define DMI        "sys/class/dmi/id"

/* ---- kernel ---- */

/* "(A (B) C, ...": the length of "A (B) C", up to the comma or parenthesis that ends it. */
static size_t compiler_length(const char *s)
{
	size_t n = 0;
	int depth = 0;

	for (; s[n] && s[n] != '\n'; n++) {
		if (depth == 0 && (s[n] == ',' || s[n] == ')'))
			break;
		depth += (s[n] == '(') - (s[n] == ')');
	}
	return n;
}

/*
 * The first version outside parentheses: 12 in "gcc-12 (Debian 12.2.0-14) 12.2.0", 11 in
 * "gcc (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3)", 17 in "clang version 17.0.6 (https://...)".
 */
int compiler_major(const char *s)
{
	int depth = 0, major, dot;

	for (const char *p = s; *p; p++) {
		depth += (*p == '(') - (*p == ')');
		if (depth || !isdigit((unsigned char)*p) || (p > s && p[-1] != ' '))
			continue;
		dot = 0;
		if (sscanf(p, "%3d.%n", &major, &dot) == 1 && dot)
			return major;
	}
	return -1;
}

/* "Linux version RELEASE (builder) (compiler, linker) #1 SMP ..." */
static void read_version(struct reader *r, struct kernel *k)
{
	struct fact_str text = read_text(r, "proc/version");
	struct arena *a = r->m->arena;
	const char *release, *compiler;
	size_t n;

	k->release = k->compiler = k->compiler_family = text;
	k->compiler_major = INT_LIKE(text);
	if (!fact_known(text))
		return;
	k->compiler = k->compiler_family = fact_str_unknown("proc/version names no compiler");
	k->compiler_major = fact_int_unknown("proc/version names no compiler");
	k->release = fact_str_unknown("proc/version names no release");
	if (!text_after(text.value, "Linux version ", &release, &n) || !n)
		return;
	k->release = fact_str(arena_strndup(a, release, strcspn(release, " \n")), text.from);
	compiler = strstr(release, ") (");
	if (!compiler)
		return;
	compiler += strlen(") (");
	k->compiler = fact_str(arena_strndup(a, compiler, compiler_length(compiler)), text.from);
	k->compiler_family =
		fact_str(strstr(k->compiler.value, "clang") ? "clang" : "gcc", text.from);
	if (compiler_major(k->compiler.value) > 0)
		k->compiler_major = fact_int(compiler_major(k->compiler.value), text.from);
}

/* The number at the end of "gcc-12" or "clang-14"; 0: none. */
static int64_t number_behind(const char *name, const char *family)
{
	size_t n = strlen(family);
	uint64_t v;

	if (strncmp(name, family, n) != 0 || name[n] != '-' || text_to_u64(name + n + 1, &v) < 0)
		return 0;
	return v < 1000 ? (int64_t)v : 0;
}

/* Distributions without numbered names: the version folders of gcc's and clang's own files. */
static int64_t major_from_folders(struct reader *r, const char *folder)
{
	int64_t newest = 0;
	char **names;
	size_t n;

	read_list(r, &names, &n, "%s", folder);
	for (size_t i = 0; i < n; i++) {
		int64_t v = strtol(names[i], NULL, 10);

		newest = v > newest && v < 1000 ? v : newest;
	}
	source_free_names(names, n);
	return newest;
}

static int64_t unnumbered_major(struct reader *r, const char *family)
{
	int64_t newest = 0;
	char **triplets;
	size_t n;

	if (strcmp(family, "clang") == 0)
		return major_from_folders(r, "usr/lib/clang");
	read_list(r, &triplets, &n, "usr/lib/gcc");
	for (size_t i = 0; i < n; i++) {
		const char *folder = arena_printf(r->m->arena, "usr/lib/gcc/%s", triplets[i]);
		int64_t v = major_from_folders(r, folder);

		newest = v > newest ? v : newest;
	}
	source_free_names(triplets, n);
	return newest;
}

/*
 * Asks for usr/bin/gcc-N by name around the kernel's own compiler: a listing of usr/bin would put
 * the names of everything installed into a recording.
 */
static void read_installed_compiler(struct reader *r, struct kernel *k)
{
	enum { AROUND = 6 };
	const char *family = fact_str_or(k->compiler_family, "gcc");
	int64_t middle = fact_or(k->compiler_major, 12), newest = 0;
	struct fact_str link = read_link_name(r, "usr/bin/%s", family);
	bool unnumbered, unsure = false;

	/* readlink gives EINVAL for a plain file, so its number is unknown. */
	unnumbered = fact_unknown(link) && fact_is(read_exists(r, "usr/bin/%s", family), 1);
	if (fact_known(link))
		newest = number_behind(link.value, family);
	for (int64_t v = middle - AROUND; v <= middle + AROUND; v++) {
		struct fact_int there;

		if (v < 4)
			continue;
		there = read_exists(r, "usr/bin/%s-%lld", family, (long long)v);
		if (v == fact_or(k->compiler_major, -1))
			k->exact_compiler = there;
		if (fact_is(there, 1) && v > newest)
			newest = v;
		unsure |= fact_unknown(there);
	}
	if (!newest && (unnumbered || fact_known(link)))
		newest = unnumbered_major(r, family);
	if (newest)
		k->installed_compiler_major = fact_int(newest, "usr/bin");
	else if (unsure || unnumbered || !fact_absent(link))
		k->installed_compiler_major = fact_int_unknown("the compiler's version is unknown");
	else
		k->installed_compiler_major = fact_int_absent(link.from);
	if (!fact_known(k->compiler_major))
		k->exact_compiler = INT_LIKE(k->compiler_major);
}

/* The folder's Makefile, because the link itself stays, dangling, when headers are removed. */
static void read_headers(struct reader *r, struct kernel *k)
{
	k->headers = fact_known(k->release)
			     ? read_exists(r, "lib/modules/%s/build/Makefile", k->release.value)
			     : INT_LIKE(k->release);
}

/* "none [integrity] confidentiality" */
static struct fact_int read_lockdown(struct reader *r)
{
	static const char *const modes[] = {"[none]", "[integrity]", "[confidentiality]"};
	struct fact_str text = read_str(r, "sys/kernel/security/lockdown");

	if (!fact_known(text))
		return INT_LIKE(text);
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (text_has_word(text.value, modes[i]))
			return fact_int((int64_t)i, text.from);
	return fact_int_unknown("sys/kernel/security/lockdown shows no known mode");
}

/* An EFI variable's value: behind four bytes of attributes. The caller frees. */
static int read_efi_variable(struct reader *r, const char *name, char **ret, size_t *ret_size)
{
	AUTO_FREE char *text = NULL;
	size_t size;
	int e = source_read(r->s, &text, &size, EFI_VARIABLES "/%s", name);

	if (e < 0)
		return e;
	if (size <= 4)
		return -EINVAL;
	*ret_size = size - 4;
	*ret = xmalloc(*ret_size);
	memcpy(*ret, text + 4, *ret_size);
	return 0;
}

static struct fact_int read_secure_boot(struct reader *r)
{
	static const char name[] = "SecureBoot-" EFI_GLOBAL;
	AUTO_FREE char *value = NULL;
	struct fact_int efi;
	size_t size;
	int e = read_efi_variable(r, name, &value, &size);

	if (e == 0)
		return fact_int(value[0] == 1, EFI_VARIABLES "/SecureBoot-" EFI_GLOBAL);
	if (e != -ENOENT)
		return fact_int_unknown(read_why(r, e, EFI_VARIABLES "/SecureBoot-" EFI_GLOBAL));
	efi = read_exists(r, "sys/firmware/efi");
	if (fact_is(efi, 0))
		return fact_int_absent(efi.from);
	return fact_int_unknown("the EFI variables are not visible here");
}

static void read_iommus(struct reader *r, struct kernel *k)
{
	AUTO_STRBUF struct strbuf joined = {0};
	char **names;
	size_t n;

	k->iommus = read_list(r, &names, &n, "sys/class/iommu");
	if (fact_absent(k->iommus)) /* a kernel without IOMMU support translates nothing */
		k->iommus = fact_int(0, k->iommus.from);
	k->iommu_names = STR_LIKE(k->iommus);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&joined, "%s%s", i ? " " : "", names[i]);
	source_free_names(names, n);
	if (fact_known(k->iommus))
		k->iommu_names.value = arena_strdup(r->m->arena, strbuf_str(&joined));
}

/* dma-buf memory regions came with 5.12; RHEL 8 carries them back to its 4.18. */
static struct fact_int judge_dma_buf(const struct kernel *k)
{
	unsigned major, minor;

	if (!fact_known(k->release))
		return INT_LIKE(k->release);
	if (sscanf(k->release.value, "%u.%u", &major, &minor) != 2)
		return fact_int_unknown("the kernel release does not start with a version");
	if (major > 5 || (major == 5 && minor >= 12))
		return fact_int(1, "kernel release");
	if (strstr(k->release.value, ".el"))
		return fact_int_unknown("a distribution kernel with backported features");
	return fact_int(0, "kernel release");
}

/* Where a bare "--" is; NULL if there is none. Blanks in double quotes do not end a word. */
static const char *find_dashes(const char *line)
{
	bool quoted = false, starts = true;

	for (const char *c = line; *c; c++) {
		bool blank = !quoted && isspace((unsigned char)*c);

		if (starts && strncmp(c, "--", 2) == 0 && (!c[2] || isspace((unsigned char)c[2])))
			return c;
		quoted ^= *c == '"';
		starts = blank;
	}
	return NULL;
}

static void read_cmdline(struct reader *r, struct kernel *k)
{
	struct fact_str line = read_str(r, "proc/cmdline");
	const struct fact_str part = fact_unknown(line) && source_stated(r->s)
					     ? read_str(r, "stated/cmdline-part")
					     : line;
	const char *dashes;

	k->cmdline_whole = fact_known(line) ? fact_int(1, line.from) : INT_LIKE(line);
	if (!fact_known(line) && fact_known(part))
		line = part;
	dashes = fact_known(line) ? find_dashes(line.value) : NULL;
	k->cmdline = line;
	k->init_words = fact_known(line) ? fact_str_absent(line.from) : line;
	if (!dashes)
		return;
	k->cmdline.value =
		text_trim(arena_strndup(r->m->arena, line.value, (size_t)(dashes - line.value)));
	k->init_words = fact_str(dashes + 2 + strspn(dashes + 2, " \t"), line.from);
}

static void read_kernel(struct reader *r, struct kernel *k)
{
	read_version(r, k);
	read_installed_compiler(r, k);
	read_headers(r, k);
	read_cmdline(r, k);
	k->lockdown = read_lockdown(r);
	k->secure_boot = read_secure_boot(r);
	read_iommus(r, k);
	k->dma_buf = judge_dma_buf(k);
}

/* ---- firmware and boot ---- */

/* "vendor board", or whichever of the two exists. */
static struct fact_str read_pair(struct reader *r, const char *first, const char *second)
{
	struct fact_str a = read_str(r, DMI "/%s", first), b = read_str(r, DMI "/%s", second);

	if (!fact_known(a) || !fact_known(b))
		return fact_known(a) ? a : b;
	return fact_str(arena_printf(r->m->arena, "%s %s", a.value, b.value), a.from);
}

static const struct {
	const char *variable, *word;
	enum boot_loader loader;
} boot_marks[] = {
	{EFI_LOADER_VARIABLE("StubInfo"), "systemd-stub", BOOT_UKI},
	{EFI_LOADER_VARIABLE("LoaderInfo"), "systemd-boot", BOOT_SYSTEMD_BOOT},
	{EFI_LOADER_VARIABLE("LoaderInfo"), "GRUB", BOOT_GRUB},
};

static bool variable_has(struct reader *r, const char *path, const char *word)
{
	AUTO_FREE char *file = NULL, *lines = NULL;
	size_t size;

	if (source_read(r->s, &file, &size, "%s", path) < 0)
		return false;
	lines = efi_lines(file, size);
	return strcasestr(lines, word) != NULL;
}

/* syslinux and PXE set BOOT_IMAGE= too, with a name that GRUB never uses. */
static bool is_grub_line(const char *line)
{
	static const char key[] = "BOOT_IMAGE=";
	const char *at = text_has_word(line, key) ? strstr(line, key) : NULL;

	return at && (at[strlen(key)] == '/' || at[strlen(key)] == '(');
}

/*
 * The kernel command line identifies GRUB; other boot loaders identify themselves in EFI variables.
 */
static struct fact_int read_boot_loader(struct reader *r)
{
	const struct fact_str *cmdline = &r->m->kernel.cmdline;
	struct fact_int conf;

	if (is_grub_line(fact_str_or(*cmdline, "")))
		return fact_int(BOOT_GRUB, "BOOT_IMAGE= in proc/cmdline");
	for (size_t i = 0; i < ARRAY_LEN(boot_marks); i++)
		if (variable_has(r, boot_marks[i].variable, boot_marks[i].word))
			return fact_int(boot_marks[i].loader, boot_marks[i].variable);
	conf = read_exists(r, "boot/loader/loader.conf");
	if (fact_is(conf, 1))
		return fact_int(BOOT_SYSTEMD_BOOT, conf.from);
	if (!fact_known(*cmdline) || fact_unknown(r->m->kernel.cmdline_whole))
		return fact_int_unknown(FACT_WHY(r->m->kernel.cmdline_whole));
	return fact_int(BOOT_OTHER, "neither BOOT_IMAGE= nor systemd-boot's marks");
}

/* os-release: shell assignments, quoted where needed. */
static struct fact_str os_release(struct reader *r, struct fact_str text, const char *key)
{
	const char *value;
	size_t n;

	if (!fact_known(text))
		return text;
	if (!text_after(text.value, key, &value, &n))
		return fact_str_absent(text.from);
	if (n >= 2 && (*value == '"' || *value == '\'') && value[n - 1] == *value) {
		value++;
		n -= 2;
	}
	return fact_str(arena_strndup(r->m->arena, value, n), text.from);
}

/* Decided by whether the program exists; by the distribution if that could not be read. */
static struct fact_int read_grubby(struct reader *r)
{
	static const char *const folders[] = {"usr/sbin", "usr/bin", "sbin"};
	struct fact_int there = fact_int(0, "no grubby in usr/sbin, usr/bin and sbin");

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		struct fact_int here = read_exists(r, "%s/grubby", folders[i]);

		if (fact_is(here, 1))
			return here;
		if (fact_unknown(here))
			there = here;
	}
	return fact_unknown(there) && distribution_of(&r->m->kernel) == DISTRIBUTION_FEDORA
		       ? fact_int(1, r->m->kernel.distribution_id.from)
		       : there;
}

static void read_firmware(struct reader *r, struct kernel *k)
{
	struct fact_str release = read_text(r, "etc/os-release");

	k->boot_loader = read_boot_loader(r);
	k->distribution = os_release(r, release, "PRETTY_NAME=");
	k->distribution_id = os_release(r, release, "ID=");
	k->distribution_like = os_release(r, release, "ID_LIKE=");
	k->grubby = read_grubby(r);
	k->board = read_pair(r, "board_vendor", "board_name");
	k->bios = read_pair(r, "bios_version", "bios_date");
	k->boot_id = read_str(r, "proc/sys/kernel/random/boot_id");
}

void kernel_read(struct reader *r)
{
	read_kernel(r, &r->m->kernel);
	read_firmware(r, &r->m->kernel);
}
