/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/module_file.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/archive_api.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
	COMPRESSED_MAX = 40 << 20, /* the largest that takes less than about a second */
	IMAGE_MAX = 512 << 20,
};

/* ---- ELF ---- */

static bool is_key_of_interest(const char *s, size_t n)
{
	static const char *const keys[] = {"name",    "version",  "license",
					   "depends", "vermagic", "srcversion"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		size_t k = strlen(keys[i]);

		if (n > k && s[k] == '=' && memcmp(s, keys[i], k) == 0)
			return true;
	}
	return false;
}

/* "key=value" strings, each ended by a NUL. */
static void add_strings(const char *s, size_t size, struct strbuf *out)
{
	const char *end = s + size;

	while (s < end) {
		size_t n = strnlen(s, (size_t)(end - s));

		if (is_key_of_interest(s, n)) {
			for (size_t i = 0; i < n; i++)
				strbuf_putc(out, s[i] == '\n' ? ' ' : s[i]);
			strbuf_putc(out, '\n');
		}
		s += n + 1;
	}
}

/* Passes the bytes of .modinfo to the parser. */
static int walk_modinfo(Elf *elf, void (*add)(const char *, size_t, struct strbuf *),
			struct strbuf *out)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names) < 0)
		return -EINVAL;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;
		Elf_Data *data;
		GElf_Shdr head;

		if (!gelf_getshdr(section, &head))
			continue;
		name = elf_strptr(elf, names, head.sh_name);
		if (!name || strcmp(name, ".modinfo") != 0 || head.sh_type == SHT_NOBITS)
			continue;
		data = elf_rawdata(section, NULL);
		if (!data || !data->d_buf)
			return -EINVAL;
		add(data->d_buf, data->d_size, out);
		return 0;
	}
	return -EINVAL;
}

static int add_modinfo(Elf *elf, struct strbuf *out)
{
	return walk_modinfo(elf, add_strings, out);
}

/* "parm=uvm_bar1_p2p_managed:what it does" of MODULE_PARM_DESC */
static const char parameter[] = "parm=" UVM_GATE_PARAMETER;

/* MODULE_INFO(onehop, "..."), and a parameter that shows a gate. */
static void add_marker_strings(const char *s, size_t size, struct strbuf *out)
{
	static const char key[] = "onehop=";
	const char *end = s + size;

	for (size_t n; s < end; s += n + 1) {
		n = strnlen(s, (size_t)(end - s));
		if (n > strlen(parameter) && memcmp(s, parameter, strlen(parameter)) == 0 &&
		    s[strlen(parameter)] == ':')
			strbuf_printf(out, "%s\n", parameter);
		if (n <= strlen(key) || memcmp(s, key, strlen(key)) != 0)
			continue;
		for (size_t i = 0; i < n; i++)
			strbuf_putc(out, s[i] == '\n' ? ' ' : s[i]);
		strbuf_putc(out, '\n');
	}
}

static int add_marker(Elf *elf, struct strbuf *out)
{
	return walk_modinfo(elf, add_marker_strings, out);
}

/* ---- the functions of P2P through BAR1 ---- */

/* Slots of the chips' function table, 535 to 595; facts: g_kern_bus_nvoc.c. */
static const char *const p2p_functions[P2P_FUNCTIONS] = {
	"kbusGetBar1P2PDmaInfo",
	"kbusCreateP2PMappingForBar1P2P",
	"kbusRemoveP2PMappingForBar1P2P",
	"kbusHasPcieBar1P2PMapping",
	"kbusIsPcieBar1P2PMappingSupported",
};

/*
 * The rest of a name of n bytes after the name of function i and "_"; NULL if it is another name.
 */
static const char *suffix_of(size_t i, const char *name, size_t n, size_t *ret_n)
{
	size_t k = strlen(p2p_functions[i]);

	if (n <= k || memcmp(name, p2p_functions[i], k) != 0 || name[k] != '_')
		return NULL;
	*ret_n = n - k - 1;
	return name + k + 1;
}

/* Generated stubs end in six hexadecimal digits, "_395e98"; the real ones in the chip, "_GH100". */
static bool is_stub(const char *suffix, size_t n)
{
	size_t digits = 0;

	while (digits < n && strchr("0123456789abcdef", suffix[digits]))
		digits++;
	return digits == 6 && (n == 6 || suffix[6] == '.');
}

bool p2p_function_is(const char *name, size_t n)
{
	const char *suffix;
	size_t k;

	for (size_t i = 0; i < P2P_FUNCTIONS; i++)
		if ((suffix = suffix_of(i, name, n, &k)))
			return is_stub(suffix, k) || (k == 5 && memcmp(suffix, "GH100", 5) == 0);
	return false;
}

void p2p_functions_count(const char *text, unsigned *ret_real, unsigned *ret_stubs)
{
	const char *line = NULL, *suffix;
	unsigned real = 0, stubs = 0; /* a bit for each function */
	size_t n, k;

	while (text_next_line(&line, &n, text))
		for (size_t i = 0; i < P2P_FUNCTIONS; i++)
			if (p2p_function_is(line, n) && (suffix = suffix_of(i, line, n, &k)))
				*(is_stub(suffix, k) ? &stubs : &real) |= 1u << i;
	*ret_real = (unsigned)__builtin_popcount(real);
	*ret_stubs = (unsigned)__builtin_popcount(stubs);
}

/* ---- the gate for managed memory ---- */

/* The compiler may have changed the arguments and the name of a function, "NAME.isra.0". */
static bool is_name(const char *name, size_t n, const char *want)
{
	size_t k = strlen(want);

	return n >= k && memcmp(name, want, k) == 0 && (n == k || name[k] == '.');
}

bool uvm_gate_function_is(const char *name, size_t n)
{
	return is_name(name, n, UVM_GATE) ||
	       is_name(name, n, "uvm_parent_gpus_bar1_managed_unsupported");
}

bool uvm_gate_is_in(const char *text)
{
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, text))
		if (uvm_gate_function_is(line, n) || is_name(line, n, parameter))
			return true;
	return false;
}

/* ---- symbols ---- */

typedef bool name_test(const char *name, size_t n);

static void add_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *head, name_test *is_wanted,
			struct strbuf *out)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n = data && head->sh_entsize ? data->d_size / head->sh_entsize : 0;
	GElf_Sym symbol;

	for (size_t i = 0; i < n && i <= INT_MAX && gelf_getsym(data, (int)i, &symbol); i++) {
		const char *name = elf_strptr(elf, head->sh_link, symbol.st_name);

		/* Skips functions that are only called here, and names of files. */
		if (!name || symbol.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		if (is_wanted(name, strlen(name)))
			strbuf_printf(out, "%s\n", name);
	}
}

static int add_functions(Elf *elf, name_test *is_wanted, struct strbuf *out)
{
	Elf_Scn *section = NULL;
	int r = -EINVAL;

	if (elf_kind(elf) != ELF_K_ELF)
		return -EINVAL;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr head;

		if (!gelf_getshdr(section, &head) || head.sh_type != SHT_SYMTAB)
			continue;
		add_symbols(elf, section, &head, is_wanted, out);
		r = 0;
	}
	return r;
}

static int add_p2p_functions(Elf *elf, struct strbuf *out)
{
	return add_functions(elf, p2p_function_is, out);
}

static int add_uvm_functions(Elf *elf, struct strbuf *out)
{
	return add_functions(elf, uvm_gate_function_is, out);
}

static bool is_edited_function(const char *name, size_t n)
{
	return p2p_function_is(name, n) || uvm_gate_function_is(name, n);
}

static int add_edited_functions(Elf *elf, struct strbuf *out)
{
	return add_functions(elf, is_edited_function, out);
}

/* ---- either ---- */

static int parse(void *image, size_t size, int (*add)(Elf *, struct strbuf *), struct strbuf *out)
{
	Elf *elf;
	int r;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -EINVAL;
	elf = elf_memory(image, size);
	if (!elf)
		return -EINVAL;
	r = add(elf, out);
	elf_end(elf);
	return r;
}

int module_file_parse(void *image, size_t size, struct strbuf *out)
{
	return parse(image, size, add_modinfo, out);
}

int module_file_parse_p2p(void *image, size_t size, struct strbuf *out)
{
	int r = parse(image, size, add_p2p_functions, out);

	return r < 0 ? r : parse(image, size, add_marker, out);
}

int module_file_parse_uvm(void *image, size_t size, struct strbuf *out)
{
	int r = parse(image, size, add_uvm_functions, out);

	return r < 0 ? r : parse(image, size, add_marker, out);
}

int module_file_parse_edit(void *image, size_t size, struct strbuf *out)
{
	int r;

	module_file_parse(image, size, out); /* reads raw bytes, and converts none */
	r = parse(image, size, add_edited_functions, out);
	return r < 0 ? r : parse(image, size, add_marker, out);
}

/* ---- files ---- */

int module_file_parse_plain(int fd, size_t size, module_parser *parser, struct strbuf *out)
{
	void *image = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	int r;

	if (image == MAP_FAILED)
		return -errno;
	r = parser(image, size, out);
	munmap(image, size);
	return r;
}

static int unpack(const struct archive_api *api, struct archive *a, struct strbuf *image)
{
	struct archive_entry *entry;
	const void *block;
	la_int64_t offset;
	size_t n;
	int r;

	if (api->read_next_header(a, &entry) != ARCHIVE_OK)
		return -EINVAL;
	while ((r = api->read_data_block(a, &block, &n, &offset)) == ARCHIVE_OK) {
		if (image->len + n > IMAGE_MAX)
			return -EFBIG;
		strbuf_add(image, block, n);
	}
	return r == ARCHIVE_EOF && image->len ? 0 : -EINVAL;
}

static int parse_compressed(int fd, module_parser *parser, struct strbuf *out)
{
	AUTO_STRBUF struct strbuf image = {0};
	struct archive_api api;
	struct archive *a;
	int r = archive_api_load(&api);

	if (r < 0)
		return r;
	a = api.read_new();
	if (!a)
		return -ENOMEM;
	r = -EINVAL;
	api.read_filter_xz(a);
	api.read_filter_gzip(a);
	api.read_filter_zstd(a);
	api.read_format_raw(a);
	if (api.read_open_fd(a, fd, 65536) == ARCHIVE_OK)
		r = unpack(&api, a, &image);
	api.read_free(a);
	return r < 0 ? r : parser(image.text, image.len, out);
}

int module_file_read(int dir_fd, const char *path, module_parser *parser, struct strbuf *out)
{
	AUTO_CLOSE int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EINVAL;
	if (text_ends_with(path, ".ko"))
		return st.st_size > IMAGE_MAX
			       ? -EFBIG
			       : module_file_parse_plain(fd, (size_t)st.st_size, parser, out);
	return st.st_size > COMPRESSED_MAX ? -EFBIG : parse_compressed(fd, parser, out);
}
