/* SPDX-License-Identifier: Apache-2.0 */
/* machine/host.c: kernel, firmware, virtualisation, CPUs, NUMA nodes, limits. */
#include "base/source.h"
#include "base/strbuf.h"
#include "capture/capture_impl.h"
#include "machine/machine.h"
#include "recording/recording.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

static struct machine *read_map(struct source *map)
{
	static const struct machine_request request = {.parts = MACHINE_HOST | MACHINE_NUMA |
								MACHINE_BOOT};
	struct machine *m = machine_read(map, &request);

	source_free(map);
	return m;
}

static struct source *parse(const char *text)
{
	struct source *map = source_new_map("host");
	AUTO_STRBUF struct strbuf whole = {0};

	strbuf_printf(&whole, "onehop recording 1\n%s", text);
	assert_int_equal(recording_parse(whole.text, whole.len, "host", map), 0);
	return map;
}

static struct machine *read_text(const char *text)
{
	return read_map(parse(text));
}

static void put(struct source *map, const char *path, const char *text)
{
	source_put_file(map, path, text, strlen(text));
}

static void kernels_and_their_compilers(void **state)
{
	static const struct {
		const char *version, *release, *compiler, *family;
		int major, dma_buf; /* -1: unknown */
	} rows[] = {
		{"Linux version 6.1.0-56-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian "
		 "12.2.0-14) 12.2.0, GNU ld (GNU Binutils for Debian) 2.40) #1 SMP\n",
		 "6.1.0-56-amd64", "gcc-12 (Debian 12.2.0-14) 12.2.0", "gcc", 12, 1},
		{"Linux version 5.11.0-generic (buildd@lcy02-amd64-045) (gcc (Ubuntu "
		 "11.4.0-1ubuntu1~22.04) 11.4.0, GNU ld (GNU Binutils for Ubuntu) 2.38) #1\n",
		 "5.11.0-generic", "gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "gcc", 11, 0},
		{"Linux version 6.8.0-31-generic (buildd@x) (x86_64-linux-gnu-gcc-13 (Ubuntu "
		 "13.2.0-23ubuntu4) 13.2.0, GNU ld 2.42) #31-Ubuntu SMP\n",
		 "6.8.0-31-generic", "x86_64-linux-gnu-gcc-13 (Ubuntu 13.2.0-23ubuntu4) 13.2.0",
		 "gcc", 13, 1},
		{"Linux version 5.14.0-427.el9.x86_64 (mockbuild@x) (gcc (GCC) 11.4.1 20231218 "
		 "(Red Hat 11.4.1-3), GNU ld version 2.35.2-43.el9) #1 SMP\n",
		 "5.14.0-427.el9.x86_64", "gcc (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3)", "gcc", 11,
		 1},
		{"Linux version 4.18.0-553.el8_10.x86_64 (mockbuild@x) (gcc version 8.5.0 20210514 "
		 "(Red Hat 8.5.0-22) (GCC)) #1 SMP\n",
		 "4.18.0-553.el8_10.x86_64", "gcc version 8.5.0 20210514 (Red Hat 8.5.0-22) (GCC)",
		 "gcc", 8, -1},
		{"Linux version 6.9.0 (me@box) (Debian clang version 16.0.6 (15~deb12u1), Debian "
		 "LLD 16.0.6) #1\n",
		 "6.9.0", "Debian clang version 16.0.6 (15~deb12u1)", "clang", 16, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct source *map = source_new_map("host");
		struct machine *m;
		struct kernel *k;

		put(map, "proc/version", rows[i].version);
		m = read_map(map);
		k = &m->kernel;
		assert_string_equal(k->release.value, rows[i].release);
		assert_string_equal(k->compiler.value, rows[i].compiler);
		assert_string_equal(k->compiler_family.value, rows[i].family);
		assert_int_equal(fact_or(k->compiler_major, -1), rows[i].major);
		assert_int_equal(fact_or(k->dma_buf, -1), rows[i].dma_buf);
		machine_free(m);
	}
}

#define VERSION_12                                                                                 \
	"[proc]\n"                                                                                 \
	"version = Linux version 6.1.0-9-amd64 (x) (gcc-12 (Debian 12.2.0-14) 12.2.0, GNU ld) "    \
	"#1\n"

static void compilers_installed(void **state)
{
	struct machine *m = read_text(VERSION_12 "[usr/bin]\n"
						 "gcc -> gcc-13\n"
						 "gcc-13 -> x86_64-linux-gnu-gcc-13\n"
						 "gcc-12 ! ENOENT\ngcc-12 -> ! ENOENT\n");

	(void)state;
	assert_true(fact_is(m->kernel.installed_compiler_major, 13));
	assert_true(fact_is(m->kernel.exact_compiler, 0));
	machine_free(m);
	m = read_text(VERSION_12 "[usr/bin]\ngcc-12 -> x86_64-linux-gnu-gcc-12\n");
	assert_true(fact_is(m->kernel.installed_compiler_major, 12));
	assert_true(fact_is(m->kernel.exact_compiler, 1));
	machine_free(m);
	/* Fedora: a plain file; the folder of its own files tells the version. */
	m = read_text(VERSION_12 "[usr/bin]\ngcc -> ! EINVAL\n"
				 "[usr/lib/gcc]\n* x86_64-redhat-linux\n"
				 "[usr/lib/gcc/x86_64-redhat-linux]\n* 14\n");
	assert_true(fact_is(m->kernel.installed_compiler_major, 14));
	machine_free(m);
	m = read_text(VERSION_12);
	assert_true(fact_unknown(m->kernel.installed_compiler_major));
	assert_true(fact_unknown(m->kernel.headers));
	machine_free(m);
}

static void no_compiler_is_absent(void **state)
{
	struct source *map = parse(VERSION_12);
	struct machine *m;
	char path[64];

	(void)state;
	source_put_error(map, "usr/bin/gcc", SOURCE_LINK, ENOENT);
	for (int i = 4; i < 30; i++) {
		snprintf(path, sizeof(path), "usr/bin/gcc-%d", i);
		source_put_error(map, path, SOURCE_LINK, ENOENT);
	}
	source_put_error(map, "lib/modules/6.1.0-9-amd64/build/Makefile", SOURCE_LINK, ENOENT);
	m = read_map(map);
	assert_true(fact_absent(m->kernel.installed_compiler_major));
	assert_true(fact_is(m->kernel.exact_compiler, 0));
	assert_true(fact_is(m->kernel.headers, 0));
	machine_free(m);
}

static void lockdown_and_secure_boot(void **state)
{
	static const char variable[] =
		"sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
	struct source *map =
		parse("[sys/kernel/security]\nlockdown = none [integrity] confidentiality\n");
	struct machine *m;

	(void)state;
	source_put_file(map, variable, "\6\0\0\0\1", 5);
	m = read_map(map);
	assert_true(fact_is(m->kernel.lockdown, LOCKDOWN_INTEGRITY));
	assert_true(fact_is(m->kernel.secure_boot, 1));
	machine_free(m);

	map = parse("[sys/kernel/security]\nlockdown = [none] integrity confidentiality\n");
	source_put_error(map, variable, SOURCE_FILE, ENOENT);
	source_put_error(map, "sys/firmware/efi", SOURCE_LINK, ENOENT);
	m = read_map(map);
	assert_true(fact_is(m->kernel.lockdown, LOCKDOWN_NONE));
	assert_true(fact_absent(m->kernel.secure_boot));
	machine_free(m);

	/* EFI, but its variables are not mounted here, as in a container: nobody knows. */
	map = parse("[sys/firmware]\nefi -> ! EINVAL\n");
	source_put_error(map, variable, SOURCE_FILE, ENOENT);
	m = read_map(map);
	assert_true(fact_unknown(m->kernel.secure_boot));
	assert_true(fact_unknown(m->kernel.lockdown));
	machine_free(m);

	map = source_new_map("short");
	source_put_file(map, variable, "\6\0\0\0", 4);
	m = read_map(map);
	assert_true(fact_unknown(m->kernel.secure_boot));
	machine_free(m);
}

static void iommus(void **state)
{
	struct machine *m = read_text("[sys/class/iommu]\n* dmar0 dmar1\n");

	(void)state;
	assert_true(fact_is(m->kernel.iommus, 2));
	assert_string_equal(m->kernel.iommu_names.value, "dmar0 dmar1");
	machine_free(m);
	m = read_text("[sys/class/iommu]\n* ! ENOENT\n");
	assert_true(fact_is(m->kernel.iommus, 0));
	machine_free(m);
	m = read_text("");
	assert_true(fact_unknown(m->kernel.iommus));
	assert_true(fact_unknown(m->kernel.iommu_names));
	machine_free(m);
}

#define CPU(flags)                                                                                 \
	"[proc]\ncpuinfo:\n\tprocessor\t: 0\n\tvendor_id\t: AuthenticAMD\n\tcpu family\t: 25\n"    \
	"\tmodel\t\t: 1\n\tmodel name\t: AMD EPYC 7763 64-Core Processor\n\tflags\t\t: " flags     \
	"\n"

static void hypervisors(void **state)
{
	static const struct {
		const char *text, *name; /* NULL: absent */
	} rows[] = {
		{CPU("fpu sse2"), NULL},
		{CPU("fpu sse2") "[sys/class/dmi/id]\nsys_vendor = Amazon EC2\n", NULL},
		{CPU("fpu hypervisor sse2"), "virtual"},
		{CPU("fpu hypervisor") "[sys/class/dmi/id]\nsys_vendor = QEMU\n", "qemu"},
		{CPU("fpu hypervisor") "[sys/class/dmi/id]\nsys_vendor = Amazon EC2\n", "kvm"},
		{CPU("fpu hypervisor") "[sys/class/dmi/id]\nsys_vendor = VMware, Inc.\n", "vmware"},
		{CPU("hypervisor") "[sys/class/dmi/id]\nsys_vendor = Microsoft Corporation\n"
				   "product_name = Virtual Machine\n",
		 "hyperv"},
		{CPU("hypervisor") "[sys/class/dmi/id]\nsys_vendor = Microsoft Corporation\n"
				   "product_name = Surface\n",
		 "virtual"},
		{CPU("hypervisor") "cmdline = quiet --firecracker-init\n", "firecracker"},
		{CPU("fpu") "[sys/hypervisor]\ntype = xen\n", "xen"},
	};
	struct machine *m;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		m = read_text(rows[i].text);
		if (rows[i].name)
			assert_string_equal(fact_str_or(m->kernel.hypervisor, "?"), rows[i].name);
		else
			assert_true(fact_absent(m->kernel.hypervisor));
		machine_free(m);
	}
	m = read_text("");
	assert_true(fact_unknown(m->kernel.hypervisor));
	machine_free(m);
}

static void containers(void **state)
{
	static const struct {
		const char *text, *name; /* NULL: absent */
	} rows[] = {
		{"[.]\n.dockerenv -> ! EINVAL\n", "docker"},
		{"[run]\n.containerenv -> ! EINVAL\n", "podman"},
		{"[run/systemd]\ncontainer = lxc\n", "lxc"},
		{"[proc/self]\ncgroup = 0::/kubepods.slice/pod1\n", "kubernetes"},
		{"[proc/self]\ncgroup = 0::/\n[proc/self/ns]\npid -> pid:[4026532198]\n",
		 "container"},
		{"[proc/self]\ncgroup = 0::/user.slice\n[proc/self/ns]\npid -> pid:[4026531836]\n",
		 NULL},
	};
	struct source *map;
	struct machine *m;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		m = read_text(rows[i].text);
		if (rows[i].name)
			assert_string_equal(fact_str_or(m->kernel.container, "?"), rows[i].name);
		else
			assert_true(fact_absent(m->kernel.container));
		machine_free(m);
	}
	map = parse("[.]\n.dockerenv -> ! EINVAL\n");
	put(map, "environment.txt", "HOME=/root\nKUBERNETES_SERVICE_HOST=10.0.0.1\n");
	m = read_map(map);
	assert_string_equal(m->kernel.container.value, "kubernetes");
	machine_free(m);
	/* The kernel proves what a file only hints at: `from` tells which of them it was. */
	m = read_text("[.]\n.dockerenv -> ! EINVAL\n[proc/self/ns]\npid -> pid:[4026532198]\n");
	assert_string_equal(m->kernel.container.value, "docker");
	assert_non_null(strstr(m->kernel.container.from, "proc/self/ns/pid"));
	machine_free(m);
	m = read_text("[.]\n.dockerenv -> ! EINVAL\n[proc/self/ns]\npid -> pid:[4026531836]\n");
	assert_string_equal(m->kernel.container.from, "./.dockerenv");
	machine_free(m);
	m = read_text("");
	assert_true(fact_unknown(m->kernel.container));
	machine_free(m);
}

/* Attributes, then UTF-16. */
#define UTF16_SYSTEMD_BOOT "\6\0\0\0s\0y\0s\0t\0e\0m\0d\0-\0b\0o\0o\0t\0 \0\x32\0"

/* What follows a bare "--" is init's, and sets nothing. */
static void words_for_init(void **state)
{
	static const struct {
		const char *line, *kernel, *init;
	} rows[] = {
		{"ro quiet", "ro quiet", NULL},
		{"ro -- 3 iommu=pt", "ro", "3 iommu=pt"},
		{"ro --", "ro", ""},
		{"ro --x y--", "ro --x y--", NULL},
		{"ro a=\"b -- c\" -- d", "ro a=\"b -- c\"", "d"},
		{"ro -- a -- b", "ro", "a -- b"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_STRBUF struct strbuf text = {0};
		struct machine *m;

		strbuf_printf(&text, "[proc]\ncmdline = %s\n", rows[i].line);
		m = read_text(text.text);
		assert_string_equal(m->kernel.cmdline.value, rows[i].kernel);
		assert_int_equal(fact_known(m->kernel.init_words), rows[i].init != NULL);
		if (rows[i].init)
			assert_string_equal(m->kernel.init_words.value, rows[i].init);
		machine_free(m);
	}
}

static void boot_loaders(void **state)
{
	static const char loader[] =
		"sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
	struct source *map = parse("[proc]\ncmdline = root=/dev/nvme0n1p2 quiet\n");
	struct machine *m = read_text("[proc]\ncmdline = BOOT_IMAGE=/vmlinuz-6.1 ro quiet\n");

	(void)state;
	assert_true(fact_is(m->kernel.boot_loader, BOOT_GRUB));
	machine_free(m);
	source_put_file(map, loader, UTF16_SYSTEMD_BOOT, sizeof(UTF16_SYSTEMD_BOOT) - 1);
	m = read_map(map);
	assert_true(fact_is(m->kernel.boot_loader, BOOT_SYSTEMD_BOOT));
	machine_free(m);
	/* PXE loaders say BOOT_IMAGE= too. */
	m = read_text("[proc]\ncmdline = BOOT_IMAGE=vmlinuz ro\n");
	assert_true(fact_is(m->kernel.boot_loader, BOOT_OTHER));
	machine_free(m);
	m = read_text("[proc]\ncmdline = console=ttyS0\n");
	assert_true(fact_is(m->kernel.boot_loader, BOOT_OTHER));
	machine_free(m);
	m = read_text("");
	assert_true(fact_unknown(m->kernel.boot_loader));
	machine_free(m);
}

static void distribution_and_board(void **state)
{
	struct machine *m = read_text("[etc]\nos-release:\n"
				      "\tPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"
				      "\tVERSION_ID=\"12\"\n\tID=debian\n"
				      "[sys/class/dmi/id]\n"
				      "board_vendor = ASRockRack\nboard_name = ROMED8-2T\n"
				      "bios_version = P3.50\nbios_date = 09/23/2022\n");

	(void)state;
	assert_string_equal(m->kernel.distribution.value, "Debian GNU/Linux 12 (bookworm)");
	assert_string_equal(m->kernel.distribution_id.value, "debian");
	assert_string_equal(m->kernel.board.value, "ASRockRack ROMED8-2T");
	assert_string_equal(m->kernel.bios.value, "P3.50 09/23/2022");
	machine_free(m);
}

/* What is there counts, whatever the distribution; its family counts where nobody could look. */
static void grubby_by_program_then_by_family(void **state)
{
	static const struct {
		const char *text;
		struct fact_int grubby;
	} rows[] = {
		{"[usr/sbin]\ngrubby -> grubby-bls\n[etc]\nos-release:\n\tID=debian\n",
		 {1, FACT_KNOWN}},
		{"[usr/sbin]\ngrubby -> ! ENOENT\n[usr/bin]\ngrubby -> ! ENOENT\n"
		 "[sbin]\ngrubby -> ! ENOENT\n[etc]\nos-release:\n\tID=fedora\n",
		 {0, FACT_KNOWN}},
		{"[etc]\nos-release:\n\tID=nobara\n\tID_LIKE=\"rhel fedora\"\n", {1, FACT_KNOWN}},
		{"[etc]\nos-release:\n\tID=debian\n", {0, FACT_UNKNOWN}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct machine *m = read_text(rows[i].text);

		assert_int_equal(m->kernel.grubby.state, rows[i].grubby.state);
		assert_int_equal(m->kernel.grubby.value, rows[i].grubby.value);
		machine_free(m);
	}
}

/* A pipe among the boot entries is none; what cannot be read is named, with what to do about it. */
static void odd_boot_entries(void **state)
{
	struct machine *m = read_text("[boot/loader/entries]\n* a.conf huge.conf pipe.conf\n"
				      "a.conf:\n\toptions root=a\nhuge.conf ! EFBIG\n"
				      "pipe.conf ! EINVAL\n"
				      "[etc/kernelstub]\nconfiguration ! EINVAL\n");

	(void)state;
	assert_int_equal(m->boot.entry_n, 2);
	assert_string_equal(m->boot.entries[0].options, "root=a");
	assert_null(m->boot.entries[0].unread);
	assert_string_equal(m->boot.entries[1].unread, "/boot/loader/entries/huge.conf");
	assert_int_equal(m->trouble_n, 2);
	for (size_t i = 0; i < m->trouble_n; i++) {
		const char *remedy = m->troubles[i].remedy;

		assert_non_null(strstr(remedy, m->troubles[i].where));
		assert_non_null(strstr(remedy, "it should be a small text file"));
	}
	machine_free(m);
}

static void cpus_and_sockets(void **state)
{
	struct machine *m = read_text(CPU("fpu") "[sys/devices/system/cpu]\nonline = 0-127\n"
						 "[sys/devices/system/cpu/cpu0/topology]\n"
						 "core_siblings_list = 0-31,64-95\n"
						 "[sys/devices/system/cpu/cpu32/topology]\n"
						 "core_siblings_list = 32-63,96-127\n");

	(void)state;
	assert_true(fact_is(m->cpu.vendor, CPU_AMD));
	assert_true(fact_is(m->cpu.family, 25));
	assert_true(fact_is(m->cpu.model, 1));
	assert_string_equal(m->cpu.name.value, "AMD EPYC 7763 64-Core Processor");
	assert_true(fact_is(m->cpu.threads, 128));
	assert_true(fact_is(m->cpu.sockets, 2));
	machine_free(m);
	m = read_text(CPU("fpu") "[sys/devices/system/cpu]\nonline = 5-1,x\n");
	assert_true(fact_unknown(m->cpu.threads));
	assert_true(fact_unknown(m->cpu.sockets));
	machine_free(m);
	/* A whole /proc/cpuinfo tells sockets too. */
	m = read_text(
		"[proc]\ncpuinfo:\n\tphysical id\t: 0\n\t\n\tphysical id\t: 1\n\tphysical id\t: 1\n");
	assert_true(fact_is(m->cpu.sockets, 2));
	machine_free(m);
}

static void numa_nodes(void **state)
{
	struct machine *m = read_text("[sys/devices/system/node]\n"
				      "* has_cpu node0 node10 node2 online\n"
				      "[sys/devices/system/node/node2]\n"
				      "cpulist = 16-23\n"
				      "meminfo:\n\tNode 2 MemTotal:       65789012 kB\n"
				      "\tNode 2 MemFree:        1 kB\n");

	(void)state;
	assert_int_equal(m->node_n, 3);
	assert_int_equal(m->nodes[1].id, 2);
	assert_int_equal(m->nodes[2].id, 10);
	assert_string_equal(m->nodes[1].cpus.value, "16-23");
	assert_true(fact_is(m->nodes[1].memory_kib, 65789012));
	assert_true(fact_unknown(m->nodes[0].memory_kib));
	machine_free(m);
}

static void limits_of_the_process(void **state)
{
	struct source *map = source_new_map("limits");
	struct machine *m;

	(void)state;
	put(map, "process.txt",
	    "uid 0\nconfig_space 1\nmemlock 8388608\nmemlock_hard unlimited\nshm_bytes 67108864\n"
	    "shm_writable yes\n");
	m = read_map(map);
	assert_true(fact_is(m->limits.memlock_bytes, 8388608));
	assert_true(fact_is(m->limits.memlock_hard_bytes, -1));
	assert_true(fact_is(m->limits.shm_bytes, 67108864));
	assert_true(fact_unknown(m->limits.shm_free_bytes));
	assert_true(fact_unknown(m->limits.shm_writable)); /* and a trouble says why */
	assert_int_equal(m->trouble_n, 1);
	machine_free(m);
}

/* Of the machine that runs the test: the form, not the values. */
static int make_live(const char *name, char **ret)
{
	static struct machine_request request = {.parts = MACHINE_HOST | MACHINE_NUMA};
	size_t size;

	for (const struct source_provider *p = live_providers; p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p->make(&request, ret, &size);
	return -ENOSYS;
}

static void live_process(void **state)
{
	AUTO_FREE char *text = NULL, *none = NULL;

	(void)state;
	assert_int_equal(make_live("process.txt", &text), 0);
	assert_int_equal(strncmp(text, "uid ", 4), 0);
	assert_non_null(strstr(text, "\nmemlock "));
	assert_int_equal(make_live("process-env.txt", &none), -ENOENT); /* without --pid */
	assert_int_equal(make_live("nccl-library.txt", &none), -ENOENT);
}

static void live_environment_tells_no_secrets(void **state)
{
	AUTO_FREE char *text = NULL;

	(void)state;
	setenv("NCCL_DEBUG", "INFO\nHOME=/x", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "hidden", 1);
	assert_int_equal(make_live("environment.txt", &text), 0);
	assert_non_null(strstr(text, "NCCL_DEBUG=INFO HOME=/x\n"));
	assert_null(strstr(text, "hidden"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_and_their_compilers),
		cmocka_unit_test(compilers_installed),
		cmocka_unit_test(no_compiler_is_absent),
		cmocka_unit_test(lockdown_and_secure_boot),
		cmocka_unit_test(iommus),
		cmocka_unit_test(hypervisors),
		cmocka_unit_test(containers),
		cmocka_unit_test(words_for_init),
		cmocka_unit_test(boot_loaders),
		cmocka_unit_test(distribution_and_board),
		cmocka_unit_test(grubby_by_program_then_by_family),
		cmocka_unit_test(odd_boot_entries),
		cmocka_unit_test(cpus_and_sockets),
		cmocka_unit_test(numa_nodes),
		cmocka_unit_test(limits_of_the_process),
		cmocka_unit_test(live_process),
		cmocka_unit_test(live_environment_tells_no_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
