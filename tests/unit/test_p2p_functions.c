/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an nvidia module has P2P through BAR1: from its symbols, on disk and in the kernel. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "build_machine.h"
#include "machine/module_file.h"
#include "unlock/probe.h"

#include <archive.h>
#include <archive_entry.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The five, as a release has them: every chip's real function and the stub that older chips get. */
static const char *const stock[] = {
	"kbusGetBar1P2PDmaInfo_GH100",
	"kbusGetBar1P2PDmaInfo_395e98",
	"kbusCreateP2PMappingForBar1P2P_GH100",
	"kbusCreateP2PMappingForBar1P2P_395e98",
	"kbusRemoveP2PMappingForBar1P2P_GH100",
	"kbusRemoveP2PMappingForBar1P2P_395e98",
	"kbusHasPcieBar1P2PMapping_GH100",
	"kbusHasPcieBar1P2PMapping_d69453",
	"kbusIsPcieBar1P2PMappingSupported_GH100",
	"kbusIsPcieBar1P2PMappingSupported_d69453.part.0",
	/* others, which count for nothing */
	"kbusCreateP2PMapping_GP100",
	"kbusGetBar1P2PDmaInfo",
	"kbusHasPcieBar1P2PMapping_DISPATCH",
	"kbusGetBar1P2PDmaInfo_GH1000",
	"xkbusGetBar1P2PDmaInfo_395e98",
	NULL,
};

static const char *const edited[] = {
	"kbusGetBar1P2PDmaInfo_GH100",
	"kbusCreateP2PMappingForBar1P2P_GH100",
	"kbusRemoveP2PMappingForBar1P2P_GH100",
	"kbusHasPcieBar1P2PMapping_GH100",
	"kbusIsPcieBar1P2PMappingSupported_GH100",
	"kbusGetBar1P2PDmaInfo",
	NULL,
};

static const char edited_text[] = "kbusGetBar1P2PDmaInfo_GH100\n"
				  "kbusCreateP2PMappingForBar1P2P_GH100\n"
				  "kbusRemoveP2PMappingForBar1P2P_GH100\n"
				  "kbusHasPcieBar1P2PMapping_GH100\n"
				  "kbusIsPcieBar1P2PMappingSupported_GH100\n";

enum { SECTIONS = 5, IMAGE = 8192 };

static size_t add(unsigned char *image, size_t *at, const void *data, size_t size)
{
	size_t start = (*at + 7) & ~(size_t)7;

	memcpy(image + start, data, size);
	*at = start + size;
	return start;
}

/* A relocatable file with .shstrtab, .modinfo, .symtab and .strtab. */
static size_t build_module(unsigned char *image, const char *const *names, const char *info,
			   size_t info_size)
{
	static const char section_names[] = "\0.shstrtab\0.modinfo\0.symtab\0.strtab";
	Elf64_Shdr s[SECTIONS] = {{0}};
	Elf64_Sym symbols[32] = {{0}};
	char strings[2048] = "";
	size_t n = 1, length = 1, at = sizeof(Elf64_Ehdr);
	Elf64_Ehdr head = {.e_type = ET_REL,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_ehsize = sizeof(head),
			   .e_shentsize = sizeof(*s),
			   .e_shnum = SECTIONS,
			   .e_shstrndx = 1};

	memcpy(head.e_ident, ELFMAG, SELFMAG);
	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_ident[EI_DATA] = ELFDATA2LSB;
	head.e_ident[EI_VERSION] = EV_CURRENT;
	for (; *names; names++, n++) {
		symbols[n].st_name = (Elf64_Word)length;
		symbols[n].st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
		symbols[n].st_shndx = 2;
		length +=
			(size_t)snprintf(strings + length, sizeof(strings) - length, "%s", *names) +
			1;
	}
	s[1] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_STRTAB, .sh_addralign = 1};
	s[1].sh_offset = add(image, &at, section_names, sizeof(section_names));
	s[1].sh_size = sizeof(section_names);
	s[2] = (Elf64_Shdr){.sh_name = 11, .sh_type = SHT_PROGBITS, .sh_addralign = 1};
	s[2].sh_offset = add(image, &at, info, info_size);
	s[2].sh_size = info_size;
	s[3] = (Elf64_Shdr){.sh_name = 20, .sh_type = SHT_SYMTAB, .sh_addralign = 8};
	s[3].sh_offset = add(image, &at, symbols, n * sizeof(*symbols));
	s[3].sh_size = n * sizeof(*symbols);
	s[3].sh_entsize = sizeof(*symbols);
	s[3].sh_link = 4;
	s[4] = (Elf64_Shdr){.sh_name = 28, .sh_type = SHT_STRTAB, .sh_addralign = 1};
	s[4].sh_offset = add(image, &at, strings, length);
	s[4].sh_size = length;
	head.e_shoff = add(image, &at, s, sizeof(s));
	memcpy(image, &head, sizeof(head));
	return at;
}

static const char plain_info[] = "license=Dual MIT/GPL\0version=595.45.04";
static const char marked_info[] = "license=Dual MIT/GPL\0onehop=unlock 1\0version=595.45.04";

static void symbols_of_a_module(void **state)
{
	_Alignas(8) unsigned char image[IMAGE] = {0};
	AUTO_STRBUF struct strbuf a = {0}, b = {0}, c = {0}, d = {0};
	AUTO_FREE char *marked = xprintf("%sonehop=unlock 1\n", edited_text);
	size_t size = build_module(image, stock, plain_info, sizeof(plain_info));
	unsigned real, stubs;
	char text[] = "no ELF file";

	(void)state;
	assert_int_equal(module_file_parse_p2p(image, size, &a), 0);
	p2p_functions_count(strbuf_str(&a), &real, &stubs);
	assert_int_equal(real, 5);
	assert_int_equal(stubs, 5);
	assert_null(strstr(strbuf_str(&a), "GH1000"));
	assert_null(strstr(strbuf_str(&a), "GP100"));
	assert_null(strstr(strbuf_str(&a), "onehop"));
	size = build_module(image, edited, plain_info, sizeof(plain_info));
	assert_int_equal(module_file_parse_p2p(image, size, &b), 0);
	assert_string_equal(strbuf_str(&b), edited_text);
	size = build_module(image, edited, marked_info, sizeof(marked_info));
	assert_int_equal(module_file_parse_p2p(image, size, &c), 0);
	assert_string_equal(strbuf_str(&c), marked);
	assert_int_equal(module_file_parse_p2p(text, strlen(text), &d), -EINVAL);
}

/* nvidia_uvm: onehop's gate, that of a public edit, or none; and what only looks like one. */
static void gate_of_a_module(void **state)
{
	static const char *const gated[] = {UVM_GATE ".isra.0", "uvm_va_space_create", NULL};
	static const char *const of_others[] = {"uvm_parent_gpus_bar1_managed_unsupported", NULL};
	static const char *const none[] = {"uvm_va_space_create", UVM_GATE "_x", "x" UVM_GATE,
					   NULL};
	static const char marked[] = "name=nvidia_uvm\0onehop=managed 1";
	static const char parameter[] = "parm=" UVM_GATE_PARAMETER ":what it does";
	static const char others[] = "parm=" UVM_GATE_PARAMETER "s:x\0parm=uvm_disable_hmm:y";
	static const struct {
		const char *const *names;
		const char *info;
		size_t size;
		const char *text;
		bool gate;
	} cases[] = {
		{gated, marked, sizeof(marked), UVM_GATE ".isra.0\nonehop=managed 1\n", true},
		{of_others, plain_info, sizeof(plain_info),
		 "uvm_parent_gpus_bar1_managed_unsupported\n", true},
		{none, parameter, sizeof(parameter), "parm=" UVM_GATE_PARAMETER "\n", true},
		{none, others, sizeof(others), "", false},
		{edited, marked, sizeof(marked), "onehop=managed 1\n", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_Alignas(8) unsigned char image[IMAGE] = {0};
		AUTO_STRBUF struct strbuf out = {0};
		size_t size = build_module(image, cases[i].names, cases[i].info, cases[i].size);

		assert_int_equal(module_file_parse_uvm(image, size, &out), 0);
		assert_string_equal(strbuf_str(&out), cases[i].text);
		assert_int_equal(uvm_gate_is_in(strbuf_str(&out)), cases[i].gate);
	}
}

/* Cut anywhere, it is refused or read, and no more. */
static void symbols_of_a_broken_module(void **state)
{
	_Alignas(8) unsigned char image[IMAGE] = {0};
	size_t size = build_module(image, stock, marked_info, sizeof(marked_info));

	(void)state;
	for (size_t n = 1; n < size; n += 7) {
		AUTO_STRBUF struct strbuf rest = {0};
		AUTO_FREE char *copy = xmalloc(n);
		unsigned real, stubs;

		memcpy(copy, image, n);
		if (module_file_parse_p2p(copy, n, &rest) < 0)
			continue;
		p2p_functions_count(strbuf_str(&rest), &real, &stubs);
		assert_true(real <= 5 && stubs <= 5);
	}
}

static void write_packed(int dir, const char *name, int (*filter)(struct archive *),
			 const void *image, size_t size)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct archive_entry *entry = archive_entry_new();
	struct archive *a = archive_write_new();

	assert_true(fd >= 0);
	if (filter)
		assert_int_equal(filter(a), ARCHIVE_OK);
	archive_write_set_format_raw(a);
	assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_write_header(a, entry);
	assert_int_equal(archive_write_data(a, image, size), size);
	archive_entry_free(entry);
	archive_write_free(a);
	close(fd);
}

/* --probe tells the modules apart by their names; an object file has none. */
static void probed_by_its_kind(void **state)
{
	static const char *const gate[] = {UVM_GATE, NULL}, *const none[] = {"uvm_init", NULL};
	static const char uvm[] = "name=nvidia_uvm", core[] = "name=nvidia\0onehop=unlock 2";
	const struct {
		const char *const *names;
		const char *info;
		size_t size;
		enum probe_kind kind;
		bool good;
	} cases[] = {
		{gate, uvm, sizeof(uvm), PROBE_UVM, true},
		{none, uvm, sizeof(uvm), PROBE_UVM, false},
		{edited, uvm, sizeof(uvm), PROBE_UVM, false},
		{gate, plain_info, sizeof(plain_info), PROBE_UVM, true},
		{edited, core, sizeof(core), PROBE_CORE, true},
		{stock, core, sizeof(core), PROBE_CORE, false},
		{gate, core, sizeof(core), PROBE_CORE, false},
	};
	char folder[] = "/tmp/onehop-test-XXXXXX";
	struct arena *a = arena_new();
	int dir;

	(void)state;
	assert_non_null(mkdtemp(folder));
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_Alignas(8) unsigned char image[IMAGE] = {0};
		size_t size = build_module(image, cases[i].names, cases[i].info, cases[i].size);
		struct probe p = {0};

		write_packed(dir, "one.ko", NULL, image, size);
		assert_int_equal(probe_file(dir, "one.ko", a, &p), 0);
		assert_int_equal(p.kind, cases[i].kind);
		assert_int_equal(probe_is_good(&p), cases[i].good);
		unlinkat(dir, "one.ko", 0);
	}
	arena_free(a);
	close(dir);
	rmdir(folder);
}

static void symbols_of_compressed_files(void **state)
{
	static const struct {
		const char *name;
		int (*filter)(struct archive *);
	} files[] = {
		{"nvidia.ko", NULL},
		{"nvidia.ko.xz", archive_write_add_filter_xz},
		{"nvidia.ko.gz", archive_write_add_filter_gzip},
		{"nvidia.ko.zst", archive_write_add_filter_zstd},
	};
	_Alignas(8) unsigned char image[IMAGE] = {0};
	size_t size = build_module(image, edited, plain_info, sizeof(plain_info));
	char folder[] = "/tmp/onehop-test-XXXXXX";
	int dir;

	(void)state;
	assert_non_null(mkdtemp(folder));
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		AUTO_STRBUF struct strbuf out = {0};

		write_packed(dir, files[i].name, files[i].filter, image, size);
		assert_int_equal(module_file_read(dir, files[i].name, module_file_parse_p2p, &out),
				 0);
		assert_string_equal(strbuf_str(&out), edited_text);
		unlinkat(dir, files[i].name, 0);
	}
	close(dir);
	rmdir(folder);
}

/* ---- as facts ---- */

static void put(struct source *map, const char *path, const char *text)
{
	source_put_file(map, path, text, strlen(text));
}

static void put_card(struct source *map)
{
	source_put_list(map, "sys/bus/pci/devices", "0000:01:00.0");
	put(map, "sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
	put(map, "sys/bus/pci/devices/0000:01:00.0/device", "0x2684\n");
	put(map, "sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n");
	put(map, "proc/driver/nvidia/version",
	    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.45.04  Release\n");
}

/* One GeForce card and the open driver; what the two probes say, NULL: not collected. */
static struct machine *read_driver(const char *file, const char *loaded, const char *params,
				   unsigned parts)
{
	struct machine_request request = {.parts = parts};
	struct source *map = source_new_map("test");
	struct machine *m;

	put_card(map);
	put(map, "proc/driver/nvidia/params", params);
	if (file)
		put(map, "p2p-functions-file.txt", file);
	if (loaded)
		put(map, "p2p-functions-loaded.txt", loaded);
	m = machine_read(map, &request);
	source_free(map);
	return m;
}

#define PARTS (MACHINE_PCI | MACHINE_GPUS | MACHINE_HOST)

static void facts_of_a_driver(void **state)
{
	static const char stub[] = "kbusHasPcieBar1P2PMapping_d69453\n";
	AUTO_FREE char *half = xprintf("%s%s", edited_text, stub);
	AUTO_FREE char *marked = xprintf("%sonehop=unlock 1\n", edited_text);
	const struct {
		const char *text;
		enum fact_state state;
		int64_t value;
		const char *mark;
	} cases[] = {
		{edited_text, FACT_KNOWN, 1, NULL},
		{marked, FACT_KNOWN, 1, "unlock 1"},
		{half, FACT_KNOWN, 0, NULL},
		{"", FACT_ABSENT, 0, NULL},
		{NULL, FACT_UNKNOWN, 0, NULL},
		{"kbusHasPcieBar1P2PMapping_GH100\n", FACT_UNKNOWN, 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine *m =
			read_driver(cases[i].text, cases[i].text, "", PARTS | MACHINE_MODULE_FILE);
		const struct bar1_p2p *p = &m->driver.bar1_p2p;

		assert_int_equal(p->installed.state, cases[i].state);
		assert_int_equal(p->loaded.state, cases[i].state);
		assert_int_equal(p->installed.value, cases[i].value);
		assert_int_equal(p->loaded.value, cases[i].value);
		if (cases[i].mark)
			assert_string_equal(fact_str_or(p->mark, ""), cases[i].mark);
		else
			assert_int_equal(p->mark.state, cases[i].text ? FACT_ABSENT : FACT_UNKNOWN);
		assert_non_null(p->installed.from);
		machine_free(m);
	}
}

/* For judging, the file is opened only where P2P is forced on a card that has no other way. */
static void looked_for_where_it_matters(void **state)
{
	struct machine *m = read_driver(edited_text, edited_text, "RegistryDwords: \"\"\n", PARTS);

	(void)state;
	assert_true(fact_unknown(m->driver.bar1_p2p.loaded));
	machine_free(m);
	m = read_driver(edited_text, edited_text, "RegistryDwords: \"ForceP2P=0x211\"\n", PARTS);
	assert_true(fact_is(m->driver.bar1_p2p.loaded, 1));
	machine_free(m);
}

/* One GeForce card, edited; what is said of nvidia_uvm, NULL: not collected. */
struct uvm_said {
	const char *modules, *dep, *file, *loaded, *parameter;
	struct fact_int want_loaded, want_installed; /* `from` is not compared */
};

static struct machine *read_uvm(const struct uvm_said *u)
{
	struct machine_request request = {.parts = PARTS | MACHINE_MODULE_FILE};
	struct source *map = source_new_map("test");
	struct machine *m;

	put_card(map);
	put(map, "proc/version", "Linux version 6.1.0 (a@b) (gcc 12.2.0) #1\n");
	if (u->modules)
		put(map, "proc/modules", u->modules);
	if (u->dep)
		put(map, "lib/modules/6.1.0/modules.dep", u->dep);
	if (u->file)
		put(map, "uvm-functions-file.txt", u->file);
	if (u->loaded)
		put(map, "uvm-functions-loaded.txt", u->loaded);
	if (u->parameter)
		put(map, "sys/module/nvidia_uvm/parameters/" UVM_GATE_PARAMETER, u->parameter);
	m = machine_read(map, &request);
	source_free(map);
	return m;
}

static void facts_of_the_gate(void **state)
{
	static const char in[] = "nvidia_uvm 1 0 - Live 0x0\n", out[] = "ext4 1 0 - Live 0x0\n";
	static const char dep[] = "updates/nvidia-uvm.ko:\n", gate[] = UVM_GATE "\n";
	static const struct fact_int yes = {1, FACT_KNOWN, NULL}, no = {0, FACT_KNOWN, NULL},
				     none = {0, FACT_ABSENT, NULL}, what = {0};
	const struct uvm_said cases[] = {
		{in, dep, gate, gate, NULL, yes, yes},
		{in, dep, "", "", NULL, no, no},
		{in, dep, gate, "", NULL, no, yes},
		{in, dep, "", "", "0\n", yes, no}, /* a public edit that has the parameter */
		{out, dep, gate, NULL, NULL, none, yes},
		{out, "", NULL, NULL, NULL, none, none},
		{NULL, NULL, NULL, NULL, NULL, what, what}, /* an old recording */
		{NULL, NULL, NULL, gate, NULL, yes, what},
		{NULL, NULL, NULL, "", NULL, what, what}, /* is it there at all? */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine *m = read_uvm(&cases[i]);
		const struct uvm_gate *g = &m->driver.uvm_gate;

		if (g->loaded.state != cases[i].want_loaded.state ||
		    g->loaded.value != cases[i].want_loaded.value ||
		    g->installed.state != cases[i].want_installed.state ||
		    g->installed.value != cases[i].want_installed.value)
			fail_msg("case %zu: loaded %d %d, installed %d %d", i, g->loaded.state,
				 (int)g->loaded.value, g->installed.state, (int)g->installed.value);
		assert_non_null(g->loaded.from);
		assert_non_null(g->installed.from);
		machine_free(m);
	}
}

static void dwords_of_one_gpu(void **state)
{
	struct machine *m = build_two_root_ports();
	struct nvidia_driver *d = &m->driver;

	(void)state;
	d->registry_dwords = fact_str("RMPcieP2PType=2;Other=5", "params");
	d->registry_dwords_per_device =
		fact_str("pci=0000:01:00.0;ForceP2P=0x211;RMPcieP2PType=1;pci=02:00.0;ForceP2P=0",
			 "params");
	assert_true(fact_is(driver_gpu_dword(d, &m->gpus[0], "ForceP2P"), 0x211));
	assert_true(fact_is(driver_gpu_dword(d, &m->gpus[0], "RMPcieP2PType"), 1));
	assert_true(fact_is(driver_gpu_dword(d, &m->gpus[1], "ForceP2P"), 0));
	assert_true(fact_is(driver_gpu_dword(d, &m->gpus[1], "RMPcieP2PType"), 2));
	assert_true(fact_is(driver_gpu_dword(d, &m->gpus[1], "Other"), 5));
	assert_true(fact_absent(driver_gpu_dword(d, &m->gpus[1], "P2P")));
	build_free(m);
}

/* Each pair is written over the one of before, and what is none is skipped. */
static void last_dword_counts(void **state)
{
	struct machine *m = build_two_root_ports();
	struct nvidia_driver *d = &m->driver;

	(void)state;
	d->registry_dwords = fact_str(
		"Other=5; FORCEp2p = 0x1 ;ForceP2P=0x11;ForceP2P=;Other=1=2;XForceP2P=0x3;=4",
		"params");
	d->registry_dwords_per_device = fact_str(
		"ForceP2P=7;pci=0000:01:00.0;ForceP2P=0x1;A=1;ForceP2P=0x21;pci=02:00;A=2;pci=nowhere;A=3;PCI=0000:02:00.0;A=4;pci=0000:01:00;ForceP2P=0x211;pci=0000:77:00.0;ForceP2P=0;A=5",
		"params");
	assert_true(fact_is(driver_registry_dword(d, "ForceP2P"), 0x11));
	assert_true(fact_is(driver_registry_dword(d, "Other"), 5));
	assert_true(fact_is(driver_gpu_dword(d, &m->gpus[0], "ForceP2P"), 0x211));
	assert_true(fact_is(driver_gpu_dword(d, &m->gpus[0], "A"), 1));
	assert_true(fact_is(driver_gpu_dword(d, &m->gpus[1], "ForceP2P"), 0x11));
	assert_true(fact_is(driver_gpu_dword(d, &m->gpus[1], "A"), 2));
	d->registry_dwords_per_device = fact_str("pci=01:00.0;ForceP2P=1;ForceP2P=x", "params");
	assert_true(fact_unknown(driver_gpu_dword(d, &m->gpus[0], "ForceP2P")));
	build_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_of_a_module),
		cmocka_unit_test(gate_of_a_module),
		cmocka_unit_test(probed_by_its_kind),
		cmocka_unit_test(facts_of_the_gate),
		cmocka_unit_test(symbols_of_a_broken_module),
		cmocka_unit_test(symbols_of_compressed_files),
		cmocka_unit_test(facts_of_a_driver),
		cmocka_unit_test(looked_for_where_it_matters),
		cmocka_unit_test(dwords_of_one_gpu),
		cmocka_unit_test(last_dword_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
