/* SPDX-License-Identifier: Apache-2.0 */
/* machine/modules.c and module_file.c: loaded and installed modules, modprobe.d, peer memory. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "machine/machine.h"
#include "machine/module_file.h"
#include "machine/modules.h"
#include "recording/recording.h"

#include <archive.h>
#include <archive_entry.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define RELEASE    "6.1.0-9-amd64"
#define VERSION    "[proc]\nversion = Linux version " RELEASE " (x) (gcc-12 (Debian) 12.2.0, ld) #1\n"
#define DEP_FOLDER "[lib/modules/" RELEASE "]\nmodules.dep:\n"

static struct source *parse(const char *text)
{
	struct source *map = source_new_map("modules");
	AUTO_STRBUF struct strbuf whole = {0};

	strbuf_printf(&whole, "onehop recording 1\n%s", text);
	assert_int_equal(recording_parse(whole.text, whole.len, "modules", map), 0);
	return map;
}

static struct machine *read_map(struct source *map)
{
	static const struct machine_request request = {.parts = MACHINE_HOST};
	struct machine *m = machine_read(map, &request);

	source_free(map);
	return m;
}

static struct machine *read_text(const char *text)
{
	return read_map(parse(text));
}

static void names_of_files(void **state)
{
	static const char *const rows[][2] = {
		{"updates/dkms/nvidia-peermem.ko.xz", "nvidia_peermem"},
		{"updates/dkms/nvidia-current.ko", "nvidia"},
		{"updates/dkms/nvidia-current-open-modeset.ko", "nvidia_modeset"},
		{"updates/dkms/nvidia-tesla-535-peermem.ko", "nvidia_peermem"},
		{"nvidia-legacy-390xx-drm.ko", "nvidia_drm"},
		{"nvidia_current_peermem", "nvidia_peermem"},
		{"kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko.zst", "mlx5_ib"},
		{"nv-p2p.ko", "nv_p2p"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char buf[64];

		assert_string_equal(module_name_of(rows[i][0], strlen(rows[i][0]), buf,
						   sizeof(buf)),
				    rows[i][1]);
	}
}

static void loaded_modules(void **state)
{
	struct machine *m = read_text(
		"[proc]\nmodules:\n"
		"\tnvidia_uvm 6742016 0 - Live 0x0000000000000000 (POE)\n"
		"\tnvidia 56827904 2 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 (POE)\n"
		"\tnoise\n"
		"\te1000e 290816 0 - Live 0x0000000000000000\n"
		"[sys/module/nvidia]\nversion = 580.159.04\n");
	const struct module *nvidia = machine_module(m, "nvidia");

	(void)state;
	assert_true(fact_is(nvidia->loaded, 1));
	assert_true(fact_is(nvidia->users, 2));
	assert_string_equal(nvidia->used_by.value, "nvidia_uvm nvidia_modeset");
	assert_string_equal(nvidia->version.value, "580.159.04");
	assert_string_equal(machine_module(m, "nvidia_uvm")->used_by.value, "");
	assert_true(fact_is(machine_module(m, "nouveau")->loaded, 0));
	assert_true(fact_is(m->peermem.loaded, 0));
	assert_true(fact_unknown(nvidia->file));
	machine_free(m);
	m = read_text("");
	assert_true(fact_unknown(machine_module(m, "nvidia")->loaded));
	assert_true(fact_unknown(m->peermem.loaded));
	machine_free(m);
}

static void installed_modules(void **state)
{
	struct source *map = parse(
		VERSION
		"modules:\n\tib_core 1 0 - Live 0x0\n" DEP_FOLDER
		"\tkernel/drivers/infiniband/core/ib_core.ko.xz:\n"
		"\tupdates/dkms/nvidia-peermem.ko: kernel/drivers/infiniband/core/ib_core.ko.xz "
		"updates/dkms/nvidia.ko\n"
		"\tupdates/dkms/nvidia.ko:\n");
	static const char nvidia[] = "license=Dual MIT/GPL\nversion=580.159.04\ndepends=\n";
	struct machine *m;

	(void)state;
	source_put_file(map, "modinfo-nvidia.txt", nvidia, strlen(nvidia));
	m = read_map(map);
	assert_string_equal(machine_module(m, "nvidia")->file.value, "updates/dkms/nvidia.ko");
	assert_string_equal(machine_module(m, "nvidia")->license.value, "Dual MIT/GPL");
	assert_string_equal(machine_module(m, "nvidia")->version.value, "580.159.04");
	assert_string_equal(m->peermem.depends.value, "ib_core,nvidia"); /* of the index */
	assert_true(fact_unknown(machine_module(m, "nvidia_peermem")->license));
	assert_true(fact_absent(machine_module(m, "nv_peer_mem")->file));
	assert_string_equal(machine_module(m, "ib_core")->depends.value, "");
	machine_free(m);
}

/* Built where no OFED was: the body is compiled out, and nothing is needed any more. */
static void peermem_without_api(void **state)
{
	struct source *map = parse(VERSION "modules:\n\tib_core 1 0 - Live 0x0\n" DEP_FOLDER
					   "\tupdates/dkms/nvidia-peermem.ko:\n");
	static const char modinfo[] = "depends=\nlicense=Dual BSD/GPL\n";
	struct machine *m;

	(void)state;
	source_put_file(map, "modinfo-nvidia_peermem.txt", modinfo, strlen(modinfo));
	source_put_file(map, "peer-memory-symbol.txt", "", 0);
	m = read_map(map);
	assert_true(fact_known(m->peermem.depends));
	assert_string_equal(m->peermem.depends.value, "");
	assert_string_equal(m->peermem.depends.from, "modinfo-nvidia_peermem.txt");
	assert_true(fact_is(m->peermem.api_in_kernel, 0));
	machine_free(m);
}

static void peermem_registered(void **state)
{
	struct machine *m = read_text("[proc]\nmodules:\n"
				      "\tnvidia_peermem 16384 0 - Live 0x0\n"
				      "\tnv_peer_mem 16384 0 - Live 0x0\n"
				      "\tmlx5_core 1 0 - Live 0x0\n"
				      "[sys/module/mlx5_core]\nversion = 24.10-1.1.4\n"
				      "[sys/kernel/mm/memory_peers/nv_mem]\nversion = 1.3\n");

	(void)state;
	assert_true(fact_is(m->peermem.loaded, 1));
	assert_true(fact_is(m->peermem.legacy_loaded, 1));
	assert_true(fact_is(m->peermem.registered, 1));
	assert_true(fact_is(m->peermem.api_in_kernel, 1));
	assert_string_equal(m->peermem.ofed.value, "24.10-1.1.4");
	machine_free(m);
}

#define NOT_REGISTERED                                                                             \
	"[sys/kernel/mm/memory_peers/nv_mem]\nversion ! ENOENT\n"                                  \
	"[sys/kernel/mm/memory_peers/nv_mem_nc]\nversion ! ENOENT\n"

/* nvidia-peermem is loaded and memory_peers is not there. */
static struct machine *without_folder(const char *users_of_core, int registered)
{
	AUTO_FREE char *text = xprintf(
		"[proc]\nmodules:\n\tnvidia_peermem 16384 0 - Live 0x0\n\tib_core 1 1 %s, Live "
		"0x0\n"
		"[sys/class/infiniband]\n* mlx5_0\n"
		"[sys/kernel/mm]\nmemory_peers -> ! ENOENT\n" NOT_REGISTERED,
		users_of_core);
	struct machine *m = read_text(text);

	assert_true(fact_is(m->peermem.listed, 0));
	assert_true(fact_is(m->peermem.registered, registered));
	return m;
}

static void peermem_not_registered(void **state)
{
	struct source *map = parse("[proc]\nmodules:\n\tmlx5_core 1 0 - Live 0x0\n"
				   "[sys/module/mlx5_core]\nversion = 5.0-0\n"
				   "[etc]\nmlnx-release ! ENOENT\n"
				   "[usr/src]\nofa_kernel -> ! ENOENT\n"
				   "[sys/class/infiniband]\n* mlx5_0\n"
				   "[sys/kernel/mm]\nmemory_peers -> ! ENOENT\n" NOT_REGISTERED);
	static const char symbols[] = "t ib_register_peer_memory_client\t[ib_core]\n";
	struct machine *m;

	(void)state;
	source_put_file(map, "peer-memory-symbol.txt", symbols, strlen(symbols));
	m = read_map(map);
	assert_true(fact_is(m->peermem.registered, 0));
	assert_true(fact_is(m->peermem.api_in_kernel, 1));
	assert_true(fact_absent(m->peermem.ofed));
	machine_free(m);
	machine_free(without_folder("nvidia_peermem,ib_uverbs", 1));
	machine_free(without_folder("ib_uverbs", 0));
	/* A core that is built into the kernel has no users to tell. */
	m = read_text("[proc]\nmodules:\n\tnvidia_peermem 16384 0 - Live 0x0\n"
		      "[sys/class/infiniband]\n* ! ENOENT\n"
		      "[sys/kernel/mm]\nmemory_peers -> ! ENOENT\n" NOT_REGISTERED);
	assert_true(fact_unknown(m->peermem.registered));
	assert_true(fact_unknown(m->peermem.api_in_kernel));
	machine_free(m);
}

static void ofed_that_runs_and_ofed_that_is_installed(void **state)
{
	struct machine *m =
		read_text("[proc]\nversion = Linux version 6.8.0-60-generic (a@b) (gcc) #1\n"
			  "modules:\n\tmlx5_core 1 0 - Live 0x0\n\tib_core 1 0 - Live 0x0\n"
			  "[lib/modules/6.8.0-60-generic]\nmodules.dep:\n"
			  "\tkernel/drivers/infiniband/core/ib_core.ko.zst:\n"
			  "[sys/module/mlx5_core]\nversion ! ENOENT\n"
			  "[etc]\nmlnx-release = MLNX_OFED_LINUX-4.9-6.0.6.0\n"
			  "[usr/src/ofa_kernel]\ndefault -> x86_64/6.8.0-59-generic\n");

	(void)state;
	assert_true(fact_absent(m->peermem.ofed_running));
	assert_string_equal(m->peermem.ofed.value, "MLNX_OFED_LINUX-4.9-6.0.6.0");
	assert_true(fact_is(m->peermem.ofed_modules, 0));
	assert_string_equal(m->peermem.ofed_kernel.value, "6.8.0-59-generic");
	machine_free(m);
	m = read_text("[proc]\nversion = Linux version 5.14.0 (a@b) (gcc) #1\nmodules:\n"
		      "[lib/modules/5.14.0]\nmodules.dep:\n"
		      "\tweak-updates/mlnx-ofa_kernel/drivers/infiniband/core/ib_core.ko:\n"
		      "[usr/src/ofa_kernel]\ndefault -> /etc/alternatives/ofa_kernel_headers\n");
	assert_true(fact_absent(m->peermem.ofed_running));
	assert_string_equal(m->peermem.ofed.value, "of unknown version");
	assert_true(fact_is(m->peermem.ofed_modules, 1));
	assert_true(fact_unknown(m->peermem.ofed_kernel));
	machine_free(m);
}

static void modprobe_lines(void **state)
{
	struct machine *m =
		read_text("[etc/modprobe.d]\n* gpu.conf README peer.conf\n"
			  "gpu.conf:\n"
			  "\t# blacklist nvidia\n"
			  "\toptions nvidia NVreg_RegistryDwords=\"ForceP2P=0x11\" \\\\\n"
			  "\t  NVreg_EnableResizableBar=1\n"
			  "\tblacklist   nouveau\n"
			  "\toptions snd_hda_intel power_save=1\n"
			  "\talias char-major-195* nvidia\n"
			  "README = blacklist nvidia\n"
			  "peer.conf = install nvidia-peermem /bin/false\n"
			  "[lib/modprobe.d]\n* gpu.conf other.conf\n"
			  "gpu.conf = blacklist nova_core\n"
			  "other.conf = softdep nvidia-current post: nvidia-uvm\n");

	(void)state;
	assert_int_equal(m->modprobe_n, 4);
	assert_int_equal(m->modprobe[0].kind, MODPROBE_OPTIONS);
	assert_string_equal(m->modprobe[0].module, "nvidia");
	assert_int_equal(m->modprobe[0].line, 2);
	assert_non_null(strstr(m->modprobe[0].text, "ForceP2P=0x11"));
	assert_non_null(strstr(m->modprobe[0].text, "NVreg_EnableResizableBar=1"));
	assert_int_equal(m->modprobe[1].kind, MODPROBE_BLACKLIST);
	assert_string_equal(m->modprobe[1].module, "nouveau");
	assert_int_equal(m->modprobe[1].line, 4);
	assert_int_equal(m->modprobe[2].kind, MODPROBE_INSTALL);
	assert_string_equal(m->modprobe[2].module, "nvidia_peermem");
	assert_string_equal(m->modprobe[2].text, "/bin/false");
	assert_string_equal(m->modprobe[2].file, "/etc/modprobe.d/peer.conf");
	/* /etc's gpu.conf hides /lib's. */
	assert_int_equal(m->modprobe[3].kind, MODPROBE_SOFTDEP);
	assert_string_equal(m->modprobe[3].module, "nvidia");
	machine_free(m);
}

/* ---- module files ---- */

static const char modinfo[] = "license=Dual MIT/GPL\0parm=a:b\0version=1.0\nx\0depends=";

/* A minimal ELF file: header, names, .modinfo, three section headers. */
static size_t build_elf(unsigned char *image)
{
	static const char names[] = "\0.shstrtab\0.modinfo";
	Elf64_Shdr sections[3] = {{0}};
	Elf64_Ehdr head = {.e_type = ET_REL,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_ehsize = sizeof(head),
			   .e_shentsize = sizeof(*sections),
			   .e_shnum = 3,
			   .e_shstrndx = 1};
	size_t at = sizeof(head);

	memcpy(head.e_ident, ELFMAG, SELFMAG);
	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_ident[EI_DATA] = ELFDATA2LSB;
	head.e_ident[EI_VERSION] = EV_CURRENT;
	sections[1] = (Elf64_Shdr){.sh_name = 1,
				   .sh_type = SHT_STRTAB,
				   .sh_offset = at,
				   .sh_size = sizeof(names),
				   .sh_addralign = 1};
	memcpy(image + at, names, sizeof(names));
	at += sizeof(names);
	sections[2] = (Elf64_Shdr){.sh_name = 11,
				   .sh_type = SHT_PROGBITS,
				   .sh_offset = at,
				   .sh_size = sizeof(modinfo),
				   .sh_addralign = 1};
	memcpy(image + at, modinfo, sizeof(modinfo));
	at = (at + sizeof(modinfo) + 7) & ~7ul;
	head.e_shoff = at;
	memcpy(image, &head, sizeof(head));
	memcpy(image + at, sections, sizeof(sections));
	return at + sizeof(sections);
}

static const char wanted[] = "license=Dual MIT/GPL\nversion=1.0 x\ndepends=\n";

static void module_in_memory(void **state)
{
	AUTO_STRBUF struct strbuf out = {0};
	_Alignas(8) unsigned char image[1024] = {0};
	char text[] = "no ELF file";
	size_t size = build_elf(image);

	(void)state;
	assert_int_equal(module_file_parse(image, size, &out), 0);
	assert_string_equal(strbuf_str(&out), wanted);
	for (size_t n = 1; n < size; n++) { /* cut anywhere, it is refused or read, and no more */
		AUTO_STRBUF struct strbuf rest = {0};
		AUTO_FREE char *copy = malloc(n);

		memcpy(copy, image, n);
		if (module_file_parse(copy, n, &rest) == 0)
			assert_true(rest.len <= strlen(wanted));
	}
	assert_int_equal(module_file_parse(text, strlen(text), &out), -EINVAL);
}

static void module_in_a_file(void **state)
{
	char folder[] = "/tmp/onehop-test-XXXXXX";
	_Alignas(8) unsigned char image[1024] = {0};
	AUTO_STRBUF struct strbuf plain = {0}, packed = {0}, none = {0};
	struct archive_entry *entry = archive_entry_new();
	struct archive *a = archive_write_new();
	size_t size = build_elf(image);
	int dir, fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dir, "m.ko", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, image, size), size);
	close(fd);
	fd = openat(dir, "m.ko.xz", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	archive_write_add_filter_xz(a);
	archive_write_set_format_raw(a);
	assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_write_header(a, entry);
	assert_int_equal(archive_write_data(a, image, size), size);
	archive_entry_free(entry);
	archive_write_free(a);
	close(fd);
	assert_int_equal(module_file_read(dir, "m.ko", module_file_parse, &plain), 0);
	assert_string_equal(strbuf_str(&plain), wanted);
	assert_int_equal(module_file_read(dir, "m.ko.xz", module_file_parse, &packed), 0);
	assert_string_equal(strbuf_str(&packed), wanted);
	assert_int_equal(module_file_read(dir, "n.ko", module_file_parse, &none), -ENOENT);
	unlinkat(dir, "m.ko", 0);
	unlinkat(dir, "m.ko.xz", 0);
	close(dir);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_files),
		cmocka_unit_test(loaded_modules),
		cmocka_unit_test(installed_modules),
		cmocka_unit_test(peermem_without_api),
		cmocka_unit_test(peermem_registered),
		cmocka_unit_test(ofed_that_runs_and_ofed_that_is_installed),
		cmocka_unit_test(peermem_not_registered),
		cmocka_unit_test(modprobe_lines),
		cmocka_unit_test(module_in_memory),
		cmocka_unit_test(module_in_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
