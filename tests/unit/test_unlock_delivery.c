/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing an edited driver into a system: which way, with which texts, and what is in the way. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/text.h"
#include "build_machine.h"
#include "made_tree.h"
#include "unlock/build.h"
#include "unlock/delivery.h"
#include "unlock/delivery_conf.h"
#include "unlock/delivery_impl.h"

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define RELEASE "999.01"
#define KERNEL  "6.1.0-9-amd64"
#define TREE    "usr/src/nvidia-current-open-" RELEASE
#define RESIZE  "nv_resize_pcie_bars"

static const char from[] = "test";

struct rig {
	char dir[64];
	char *root, *sources;
	struct machine *m;
	struct unlock_requirements requirements;
	struct delivery_request request;
	struct delivery *d;
};

/* ---- a system ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void set_mode(const struct rig *r, const char *path, mode_t mode)
{
	AUTO_FREE char *full = xprintf("%s/%s", r->root, path);

	assert_int_equal(chmod(full, mode), 0);
}

static void put(const struct rig *r, const char *path, const char *text)
{
	made_put(r->root, path, text, strlen(text));
	if (text_starts_with(path, "usr/bin/") || text_starts_with(path, "usr/sbin/"))
		set_mode(r, path, 0755);
}

static void put_link(const struct rig *r, const char *path, const char *target)
{
	AUTO_FREE char *full = xprintf("%s/%s", r->root, path);
	AUTO_FREE char *beside = xprintf("%s.x", path);

	put(r, beside, "");
	assert_int_equal(symlink(target, full), 0);
}

static void drop(const struct rig *r, const char *path)
{
	AUTO_FREE char *full = xprintf("%s/%s", r->root, path);

	assert_int_equal(nftw(full, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Debian's machine: the kernel's compiler and headers, and all tools, are there. */
static void put_system(const struct rig *r)
{
	static const char *const programs[] = {
		"usr/bin/make", "usr/bin/gcc",   "usr/bin/gcc-12", "usr/bin/ld",   "usr/bin/patch",
		"usr/bin/g++",  "usr/sbin/dkms", "usr/bin/tar",    "usr/bin/gzip",
	};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		put(r, programs[i], "");
	put(r, "lib/modules/" KERNEL "/build/Makefile", "");
	put(r, "lib/modules/" KERNEL "/build/.config",
	    "CONFIG_CC_VERSION_TEXT=\"gcc-12 (Debian 12.2.0-14) 12.2.0\"\n");
}

static void set_facts(struct machine *m)
{
	struct nvidia_driver *d = &m->driver;
	struct kernel *k = &m->kernel;

	d->module_version = d->installed_version = d->library_version = fact_str(RELEASE, from);
	k->release = fact_str(KERNEL, from);
	k->distribution_id = fact_str("debian", from);
	k->secure_boot = fact_int_absent(from);
	k->lockdown = fact_int(LOCKDOWN_NONE, from);
	k->compiler_family = fact_str("gcc", from);
	k->installed_compiler_major = fact_int(12, from);
}

static int make_rig(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	struct made_tree t = {0};

	snprintf(r->dir, sizeof(r->dir), "%s/onehop-delivery-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(r->dir));
	r->root = xprintf("%s/root", r->dir);
	r->sources = xprintf("%s/tree", r->dir);
	r->m = build_two_root_ports();
	set_facts(r->m);
	r->requirements.action = ACTION_PATCH;
	r->request = (struct delivery_request){.root = r->root, .sources = r->sources};
	put_system(r);
	made_up(&t, ERA_590);
	made_write(&t, r->sources, RELEASE);
	made_done(&t);
	*state = r;
	return 0;
}

static int remove_rig(void **state)
{
	struct rig *r = *state;

	nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	build_free(r->m);
	free(r->root);
	free(r->sources);
	free(r);
	return 0;
}

/* ---- a tree of DKMS's ---- */

static const char dkms_conf[] = "PACKAGE_NAME=\"nvidia-current-open\"\n"
				"PACKAGE_VERSION=\"" RELEASE "\"\n"
				"MAKE[0]=\"env X=1 \\\n    make ${jobs+-j$jobs} modules\"\n"
				"BUILT_MODULE_NAME[0]=\"nvidia\"\n"
				"DEST_MODULE_NAME[0]=\"$PACKAGE_NAME\"\n"
				"BUILT_MODULE_NAME[1]=\"nvidia-uvm\"\n"
				"DEST_MODULE_NAME[1]=\"${PACKAGE_NAME}-uvm\"\n";

static const char kbuild[] = "# nv-kernel.o_binary is the core\n"
			     "obj-m += nvidia.o\n"
			     "\n"
			     "NVIDIA_BINARY_OBJECT := $(src)/nvidia/nv-kernel.o_binary\n"
			     "NVIDIA_BINARY_OBJECT_O := nvidia/nv-kernel.o\n";

static void put_in(const struct rig *r, const char *folder, const char *file, const char *text)
{
	AUTO_FREE char *path = xprintf("%s/%s", folder, file);

	put(r, path, text);
}

/* kernel-open's content with a built core: Debian's, Ubuntu's and the run file's packages. */
static void put_prebuilt(const struct rig *r, const char *name, const char *folder,
			 const char *licence)
{
	AUTO_FREE char *nv = xprintf("MODULE_LICENSE(\"%s\");\n", licence);
	AUTO_FREE char *link = xprintf("var/lib/dkms/%s/" RELEASE "/source", name);
	AUTO_FREE char *target = xprintf("/%s", folder);
	AUTO_FREE char *full = xprintf("%s/%s", r->root, folder);
	struct made_tree t = {0};

	made_up(&t, ERA_590);
	made_write_kernel_open(&t, full);
	made_done(&t);
	put_link(r, link, target);
	put_in(r, folder, "dkms.conf", dkms_conf);
	put_in(r, folder, "Kbuild", "ccflags-y += -DNV_VERSION_STRING=\\\"" RELEASE "\\\"\n");
	put_in(r, folder, "nvidia/nvidia.Kbuild", kbuild);
	put_in(r, folder, "nvidia/nv-kernel.o_binary", "core");
	put_in(r, folder, "nvidia/nv.c", nv);
}

static void put_debian(const struct rig *r)
{
	put_prebuilt(r, "nvidia-current-open", TREE, "Dual MIT/GPL");
	put(r, "var/lib/dpkg/info/nvidia-open-kernel-dkms.list",
	    "/.\n/usr\n/usr/src\n/" TREE "\n/" TREE "/dkms.conf\n");
	put(r, "var/lib/dpkg/info/nvidia-other.list", "/usr/src/nvidia-other-1/dkms.conf\n");
}

/* The whole release: Arch's packages, NVIDIA's for Fedora. */
static void put_whole(const struct rig *r)
{
	AUTO_FREE char *folder = xprintf("%s/usr/src/nvidia-open-" RELEASE, r->root);
	struct made_tree t = {0};

	made_up(&t, ERA_590);
	made_write(&t, folder, RELEASE);
	made_done(&t);
	put_link(r, "var/lib/dkms/nvidia-open/" RELEASE "/source", "/usr/src/nvidia-open-" RELEASE);
	put(r, "usr/src/nvidia-open-" RELEASE "/dkms.conf",
	    "BUILT_MODULE_NAME[0]=\"nvidia\"\nBUILT_MODULE_LOCATION[0]=\"kernel-open\"\n");
	put(r, "usr/src/nvidia-open-" RELEASE "/kernel-open/Kbuild",
	    "ccflags-y += -DNV_VERSION_STRING=\\\"" RELEASE "\\\"\n");
	put(r, "usr/src/nvidia-open-" RELEASE "/kernel-open/nvidia/nv.c",
	    "MODULE_LICENSE(\"Dual MIT/GPL\");\n");
}

/* ---- looking ---- */

static void look(struct rig *r)
{
	struct source *s;

	assert_int_equal(source_open_root(r->root, NULL, NULL, &s), 0);
	assert_int_equal(delivery_look(&r->request, s, r->m, &r->requirements, &r->d), 0);
	source_free(s);
}

static const struct delivery_check *check_of(const struct rig *r, const char *what)
{
	for (size_t i = 0; i < r->d->check_n; i++)
		if (strcmp(r->d->checks[i].what, what) == 0)
			return &r->d->checks[i];
	fail_msg("no check '%s'", what);
	return NULL;
}

static void expect(const struct rig *r, const char *what, enum check_state state, const char *part)
{
	const struct delivery_check *c = check_of(r, what);

	if (c->state != state || !strstr(c->found, part))
		fail_msg("%s: state %d, not %d, or '%s' lacks '%s'", what, c->state, state,
			 c->found, part);
	if (state == CHECK_BAD)
		assert_true(r->d->blocked);
}

static bool has_check(const struct rig *r, const char *what)
{
	for (size_t i = 0; i < r->d->check_n; i++)
		if (strcmp(r->d->checks[i].what, what) == 0)
			return true;
	return false;
}

static void expect_remedy(const struct rig *r, const char *what, const char *part)
{
	const struct delivery_check *c = check_of(r, what);

	assert_non_null(c->remedy);
	if (!strstr(c->remedy, part))
		fail_msg("%s: remedy '%s' lacks '%s'", what, c->remedy, part);
}

/* Of a system in order: only what depends on this host's disk may be bad. */
static void expect_no_other_bad(const struct rig *r)
{
	for (size_t i = 0; i < r->d->check_n; i++)
		if (r->d->checks[i].state == CHECK_BAD && strcmp(r->d->checks[i].what, "disk"))
			fail_msg("%s: %s", r->d->checks[i].what, r->d->checks[i].found);
}

/* ---- ways ---- */

static void debian_gets_three_files(void **state)
{
	struct rig *r = *state;

	put_debian(r);
	look(r);
	expect_no_other_bad(r);
	assert_int_equal(r->d->way, DELIVER_INTO_DKMS);
	assert_string_equal(r->d->release, RELEASE);
	assert_string_equal(r->d->kernel, KERNEL);
	assert_string_equal(r->d->dkms.name, "nvidia-current-open");
	assert_string_equal(r->d->dkms.folder, TREE);
	assert_string_equal(r->d->dkms.module, "nvidia-current-open");
	assert_string_equal(r->d->dkms.package, "nvidia-open-kernel-dkms");
	assert_false(r->d->dkms.whole);
	assert_string_equal(r->d->core, TREE "/nvidia/nv-kernel-onehop.o_binary");
	assert_string_equal(r->d->patch_file, TREE "/patches/onehop-p2p.patch");
	assert_string_equal(r->d->patch_array_file,
			    "etc/dkms/nvidia-current-open-" RELEASE ".conf");
	assert_non_null(strstr(r->d->patch, "+++ b/nvidia/nvidia.Kbuild\n"));
	assert_non_null(
		strstr(r->d->patch,
		       "\n+NVIDIA_BINARY_OBJECT := $(src)/nvidia/nv-kernel-onehop.o_binary\n"));
	assert_null(strstr(r->d->patch, "+# nv-kernel"));
	assert_non_null(strstr(r->d->patch, "+++ b/nvidia/nv-pci.c\n"));
	assert_non_null(strstr(r->d->patch, "\n+MODULE_INFO(onehop, \"unlock 2\")"));
	assert_non_null(strstr(r->d->patch, "+++ b/nvidia-uvm/uvm_va_space.c\n"));
	assert_non_null(strstr(r->d->patch, "MODULE_INFO(onehop, \"managed 1\")"));
	assert_non_null(strstr(r->d->patch, "uvm_parent_gpus_are_bar1_peers"));
	assert_null(r->d->dkms_conf);
	assert_false(r->d->in_place);
	assert_false(r->d->built);
	expect(r, "sources", CHECK_GOOD, RELEASE ", cannot be compared with what NVIDIA published");
	expect(r, "override", CHECK_GOOD, "does not exist yet");
	expect(r, "compiler", CHECK_GOOD, "gcc-12, the same as the kernel's");
}

static void a_second_look_finds_ours(void **state)
{
	struct rig *r = *state;

	put_debian(r);
	look(r);
	put(r, r->d->patch_file, r->d->patch);
	put(r, r->d->patch_array_file, r->d->patch_array);
	look(r);
	assert_true(r->d->in_place && !r->d->others);
	put(r, r->d->patch_file, "# of an earlier onehop\n");
	look(r);
	assert_true(r->d->others && !r->d->in_place);
	expect_no_other_bad(r);
	expect(r, "override", CHECK_GOOD, "was written by onehop");
}

/* What DKMS makes of ours, read behind what a dkms.conf assigns: its loop, in bash. */
static void expect_patches(const struct rig *r, const char *conf, const char *want)
{
	static const char loop[] =
		"eval \"$1\"; . \"$2\"; for ((i = 0; i < ${#PATCH[@]}; i++)); do [ ! "
		"\"${PATCH[i]}\" ] || printf \"%s \" \"${PATCH[i]}\"; done";
	AUTO_FREE char *command =
		xprintf("bash -c '%s' - '%s' '%s/%s'", loop, conf, r->root, r->d->patch_array_file);
	char found[256] = "";
	FILE *out = popen(command, "r");

	assert_non_null(out);
	found[fread(found, 1, sizeof(found) - 1, out)] = '\0';
	assert_int_equal(pclose(out), 0);
	assert_string_equal(found, want);
}

static void dkms_takes_our_patch_beside_others(void **state)
{
	struct rig *r = *state;

	put_debian(r);
	look(r);
	put(r, r->d->patch_array_file, r->d->patch_array);
	expect_patches(r, "", "onehop-p2p.patch ");
	expect_patches(r, "PATCH=one", "one onehop-p2p.patch ");
	expect_patches(r, "PATCH[0]=one; PATCH[1]=two", "one two onehop-p2p.patch ");
	expect_patches(r, "PATCH[0]=one; PATCH[2]=two", "one onehop-p2p.patch two ");
	expect_patches(r, "PATCH[3]=one", "onehop-p2p.patch ");
}

static void a_whole_tree_gets_all_edits(void **state)
{
	struct rig *r = *state;

	put_whole(r);
	look(r);
	expect_no_other_bad(r);
	assert_int_equal(r->d->way, DELIVER_INTO_DKMS);
	assert_true(r->d->dkms.whole);
	assert_string_equal(r->d->dkms.module, "nvidia");
	assert_null(r->d->core);
	assert_non_null(strstr(r->d->patch, "+++ b/" SWITCH_FILE "\n"));
	assert_non_null(strstr(r->d->patch, "+++ b/" MARKER_FILE "\n"));
}

static void a_changed_whole_tree_is_refused(void **state)
{
	struct rig *r = *state;

	put_whole(r);
	put(r, "usr/src/nvidia-open-" RELEASE "/" SWITCH_FILE, "int x;\n");
	look(r);
	expect(r, "patch", CHECK_BAD, SWITCH_FILE " is not as in ");
	assert_null(r->d->patch);
}

/* Into the tree of ours. */
static void put_todays_modules(struct rig *r)
{
	static const struct unlock_options none;
	struct unlock *u = NULL;

	assert_int_equal(unlock_open(r->sources, &none, &u), 0);
	for (size_t i = 0; i < u->n; i++) {
		const char *path = u->files[i].path;
		AUTO_FREE char *to = NULL;

		if (strncmp(path, KERNEL_OPEN, strlen(KERNEL_OPEN)) != 0)
			continue;
		to = xprintf("usr/src/onehop-nvidia-" RELEASE "/%s", path + strlen(KERNEL_OPEN));
		put(r, to, u->files[i].after.data);
	}
	unlock_close(u);
}

static void without_a_tree_one_is_made(void **state)
{
	struct rig *r = *state;

	look(r);
	expect_no_other_bad(r);
	assert_int_equal(r->d->way, DELIVER_OWN_DKMS);
	assert_string_equal(r->d->dkms.folder, "usr/src/onehop-nvidia-" RELEASE);
	assert_non_null(strstr(r->d->dkms_conf, "PACKAGE_NAME=\"onehop-nvidia\"\n"));
	assert_non_null(strstr(r->d->dkms_conf, "PACKAGE_VERSION=\"" RELEASE "\"\n"));
	assert_non_null(strstr(r->d->dkms_conf, "\nMAKE[0]=\"env make "));
	assert_non_null(strstr(r->d->dkms_conf, "BUILT_MODULE_NAME[4]=\"nvidia-peermem\"\n"));
	assert_null(strstr(r->d->dkms_conf, "DEST_MODULE_NAME"));
	assert_null(r->d->patch);
	put(r, "usr/src/onehop-nvidia-" RELEASE "/dkms.conf", r->d->dkms_conf);
	put(r, "usr/src/onehop-nvidia-" RELEASE "/nvidia/nv-kernel.o_binary", "core");
	put_link(r, "var/lib/dkms/onehop-nvidia/" RELEASE "/source",
		 "/usr/src/onehop-nvidia-" RELEASE);
	/* Its dkms.conf is that of all edits; what was copied beside it, today's or not. */
	look(r);
	assert_int_equal(r->d->way, DELIVER_OWN_DKMS);
	assert_true(r->d->others && !r->d->in_place);
	put_todays_modules(r);
	look(r);
	assert_true(r->d->in_place && !r->d->others);
	expect_no_other_bad(r);
}

static void options_alone(void **state)
{
	struct rig *r = *state;

	r->requirements.action = ACTION_OPTIONS;
	r->request.sources = NULL;
	drop(r, "usr/bin");
	look(r);
	assert_int_equal(r->d->way, DELIVER_OPTIONS);
	assert_false(r->d->blocked);
	assert_null(r->d->dkms.name);
}

/* ---- files of modules ---- */

static size_t add(unsigned char *image, size_t *at, const void *data, size_t size)
{
	size_t start = (*at + 7) & ~(size_t)7;

	memcpy(image + start, data, size);
	*at = start + size;
	return start;
}

#define ELF_HEAD(sections)                                                                         \
	{                                                                                          \
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},             \
		.e_type = ET_REL, .e_machine = EM_X86_64, .e_version = EV_CURRENT,                 \
		.e_ehsize = sizeof(Elf64_Ehdr), .e_shentsize = sizeof(Elf64_Shdr),                 \
		.e_shnum = (sections), .e_shstrndx = (sections)-1,                                 \
	}

/*
 * A module file that says this of itself, "key=value" ended by a NUL each; and depmod's line of it.
 */
static void put_module(const struct rig *r, const char *path, const char *info, size_t size)
{
	static const char names[] = "\0.modinfo";
	AUTO_FREE char *file = xprintf("lib/modules/" KERNEL "/%s", path);
	AUTO_FREE char *dep = xprintf("%s: kernel/drivers/acpi/video.ko.zst\n", path);
	Elf64_Ehdr head = ELF_HEAD(3);
	Elf64_Shdr s[3] = {{0}};
	unsigned char image[1024] = {0};
	size_t at = sizeof(head);

	s[1] = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_name = 1, .sh_size = size};
	s[1].sh_offset = add(image, &at, info, size);
	s[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_size = sizeof(names)};
	s[2].sh_offset = add(image, &at, names, sizeof(names));
	head.e_shoff = add(image, &at, s, sizeof(s));
	memcpy(image, &head, sizeof(head));
	made_put(r->root, file, (const char *)image, at);
	put(r, "lib/modules/" KERNEL "/modules.dep", dep);
}

/* ---- images ---- */

static void an_image_has_a_kernel_of_its_own(void **state)
{
	struct rig *r = *state;

	r->request.image = true;
	r->requirements.action = ACTION_UNKNOWN;
	r->m->driver.module_version = fact_str("1.2", from); /* of the host that prepares it */
	r->m->kernel.release = fact_str("5.0.0-host", from);
	put_debian(r);
	look(r);
	expect_no_other_bad(r);
	assert_string_equal(r->d->kernel, KERNEL);
	put(r, "lib/modules/6.1.0-10-amd64/x", "");
	look(r);
	expect(r, "kernel", CHECK_BAD, "unknown");
	r->request.kernel = "6.1.0-10-amd64";
	look(r);
	expect(r, "kernel", CHECK_GOOD, "6.1.0-10-amd64");
	expect(r, "headers", CHECK_BAD, "are not installed");
	expect_remedy(r, "headers", "sudo apt install linux-headers-6.1.0-10-amd64");
}

#define APT_CONF "etc/apt/apt.conf.d/20auto-upgrades"

/*
 * What upgrades by itself would bring the stock modules back: its packages are named, by the real
 * list.
 */
static void upgrades_that_nobody_asks_for(void **state)
{
	struct rig *r = *state;

	put_debian(r);
	look(r);
	expect(r, "automatic upgrades", CHECK_GOOD, "sudo apt-mark hold nvidia-open-kernel-dkms");
	put(r, "usr/bin/unattended-upgrade", "");
	put(r, APT_CONF,
	    "APT::Periodic::Update-Package-Lists \"1\";\n"
	    "APT::Periodic::Unattended-Upgrade \"1\";\n");
	look(r);
	expect(r, "automatic upgrades", CHECK_NOTE, "unattended-upgrades is active");
	expect_remedy(r, "automatic upgrades", "sudo apt-mark hold nvidia-open-kernel-dkms");
	/* the library, too: it has to stay of the modules' release */
	put(r, "usr/lib/x86_64-linux-gnu/libcuda.so." RELEASE, "");
	put(r, "var/lib/dpkg/info/libcuda1:amd64.list",
	    "/usr/lib/x86_64-linux-gnu/libcuda.so." RELEASE "\n");
	put(r, "var/lib/dpkg/status",
	    "Package: other\nStatus: hold ok installed\n\n"
	    "Package: libcuda1\nStatus: hold ok installed\nArchitecture: amd64\n\n"
	    "Package: nvidia-open-kernel-dkms\nStatus: install ok installed\n");
	look(r);
	expect_remedy(r, "automatic upgrades", "apt-mark hold nvidia-open-kernel-dkms");
	assert_null(strstr(check_of(r, "automatic upgrades")->remedy, "libcuda1"));
	put(r, "var/lib/dpkg/status",
	    "Package: libcuda1\nStatus: hold ok installed\n\n"
	    "Package: nvidia-open-kernel-dkms\nStatus: hold ok installed\n");
	look(r);
	expect(r, "automatic upgrades", CHECK_GOOD,
	       "nvidia-open-kernel-dkms libcuda1: on hold already");
	assert_null(check_of(r, "automatic upgrades")->remedy);
	/* a later file counts more */
	put(r, "var/lib/dpkg/status", "");
	put(r, "etc/apt/apt.conf.d/90mine", "  APT::Periodic::Unattended-Upgrade \"0\";\n");
	look(r);
	expect(r, "automatic upgrades", CHECK_GOOD, "none are automatic");
}

/* Prebuilt modules are their package's, by the folder that it puts their parts in. */
static void the_package_of_prebuilt_modules(void **state)
{
	static const char open[] = "license=Dual MIT/GPL\0version=" RELEASE;
	struct module nvidia = {
		.name = "nvidia",
		.file = fact_str("kernel/nvidia-999-open/nvidia.ko", from),
	};
	struct rig *r = *state;

	r->m->modules = &nvidia;
	r->m->module_n = 1;
	put_module(r, "kernel/nvidia-999-open/nvidia.ko", open, sizeof(open));
	put(r, "var/lib/dpkg/info/linux-modules-nvidia-999-open-" KERNEL ".list",
	    "/lib/modules/" KERNEL "/kernel/nvidia-999-open/bits/nv.o\n");
	put(r, "usr/bin/unattended-upgrade", "");
	put(r, APT_CONF, "APT::Periodic::Unattended-Upgrade \"1\";\n");
	look(r);
	expect_remedy(r, "automatic upgrades",
		      "sudo apt-mark hold linux-modules-nvidia-999-open-" KERNEL);
	drop(r, "var/lib/dpkg/info");
	look(r);
	expect(r, "automatic upgrades", CHECK_NOTE, "no package of the driver was found");
	r->m->modules = NULL;
	r->m->module_n = 0;
}

static void upgrades_by_dnf(void **state)
{
	static const char timer[] = "etc/systemd/system/timers.target.wants/dnf-automatic.timer";
	struct rig *r = *state;

	r->m->kernel.distribution_id = fact_str("fedora", from);
	put_debian(r);
	look(r);
	assert_false(has_check(r, "automatic upgrades"));
	put(r, timer, "");
	put(r, "etc/dnf/automatic.conf", "[commands]\napply_updates = no\n");
	look(r);
	assert_false(has_check(r, "automatic upgrades"));
	put(r, "etc/dnf/automatic.conf", "[commands]\napply_updates = yes\n");
	look(r);
	expect(r, "automatic upgrades", CHECK_NOTE, "dnf-automatic is active");
	expect_remedy(r, "automatic upgrades", "rpm -qf --qf '%{NAME} ' /" TREE "/dkms.conf");
}

/* Ubuntu's linux-modules-nvidia: no DKMS, modules in a folder of the flavour's. */
static void an_image_with_prebuilt_modules(void **state)
{
	static const char open[] = "license=Dual MIT/GPL\0version=" RELEASE;
	static const char closed[] = "license=NVIDIA\0version=" RELEASE;
	static const char later[] = "license=Dual MIT/GPL\0version=999.02";
	struct rig *r = *state;

	r->request.image = true;
	r->m->kernel.release = fact_str("5.0.0-host", from);
	r->m->driver.module_version = r->m->driver.installed_version = fact_str("1.2", from);
	r->m->driver.library_version = fact_str_absent(from);
	put_module(r, "kernel/nvidia-999-open/nvidia.ko", open, sizeof(open));
	look(r);
	assert_int_equal(r->d->way, DELIVER_OWN_DKMS);
	expect(r, "driver", CHECK_GOOD, RELEASE ", as the module of that kernel says");
	expect(r, "dkms tree", CHECK_GOOD, "onehop adds one");
	expect(r, "upgrades", CHECK_NOTE, "do not fit its libraries");
	put_module(r, "kernel/nvidia-999/nvidia.ko", closed, sizeof(closed));
	look(r);
	expect(r, "dkms tree", CHECK_BAD,
	       "kernel/nvidia-999/nvidia.ko contains the proprietary modules");
	put_module(r, "kernel/nvidia-999-open/nvidia.ko", later, sizeof(later));
	look(r);
	expect(r, "sources", CHECK_BAD, "the module of that kernel is 999.02");
	expect_remedy(r, "sources", "--branch 999.02");
	put_module(r, "kernel/nvidia-999-open/nvidia.ko", open, sizeof(open));
	r->m->driver.library_version = fact_str("999.02", from);
	look(r);
	expect(r, "driver", CHECK_BAD, "the user-space library is 999.02");
}

/* Its modules are named as those of its own kernel are, not as those of the host's. */
static void an_images_modules_keep_their_names(void **state)
{
	static const char info[] = "license=Dual MIT/GPL\0version=" RELEASE;
	struct rig *r = *state;

	r->request.image = true;
	put_module(r, "updates/nvidia-current-open.ko", info, sizeof(info));
	look(r);
	assert_string_equal(r->d->dkms.module, "nvidia-current-open");
	assert_non_null(strstr(r->d->dkms_conf, "DEST_MODULE_NAME[0]=\"nvidia-current-open\""));
}

/* ---- trees that are not taken ---- */

static void the_proprietary_tree_is_told_apart(void **state)
{
	struct rig *r = *state;

	put_prebuilt(r, "nvidia-current", "usr/src/nvidia-current-" RELEASE, "NVIDIA");
	look(r);
	assert_int_equal(r->d->way, DELIVER_OWN_DKMS);
	expect(r, "dkms tree", CHECK_BAD, "nvidia-current/" RELEASE " has the proprietary modules");
	put_debian(r);
	look(r);
	assert_string_equal(r->d->dkms.name, "nvidia-current-open");
	expect(r, "dkms tree", CHECK_NOTE, "proprietary");
}

static void another_release_in_the_folder_is_refused(void **state)
{
	struct rig *r = *state;

	put_debian(r);
	put_in(r, TREE, "Kbuild", "ccflags-y += -DNV_VERSION_STRING=\\\"999.02\\\"\n");
	look(r);
	assert_int_equal(r->d->way, DELIVER_OWN_DKMS);
	expect(r, "dkms tree", CHECK_BAD, "its Kbuild is of 999.02, not of " RELEASE);
}

static void a_tree_that_dkms_was_not_told_of(void **state)
{
	struct rig *r = *state;

	put_debian(r);
	drop(r, "var/lib/dkms");
	look(r);
	expect(r, "dkms tree", CHECK_BAD, "has not been added to DKMS");
	expect_remedy(r, "dkms tree", "sudo dkms add nvidia-current-open/" RELEASE);
}

static void hostile_names_are_refused(void **state)
{
	static const char *const names[] = {"a$(touch x)", "a b", "a\nb", "-a", "a;b", "a'b"};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		AUTO_FREE char *folder = xprintf("var/lib/dkms/%s", names[i]);

		put_prebuilt(r, names[i], "usr/src/any-1", "Dual MIT/GPL");
		look(r);
		assert_int_equal(r->d->way, DELIVER_OWN_DKMS);
		expect(r, "dkms tree", CHECK_BAD, "is not a name");
		assert_null(strchr(check_of(r, "dkms tree")->found, '\n'));
		drop(r, folder);
	}
	put_prebuilt(r, "fine", "usr/src/a b", "Dual MIT/GPL"); /* the link leads to such a name */
	look(r);
	assert_int_equal(r->d->way, DELIVER_OWN_DKMS);
}

static void of_two_trees_the_built_one_is_taken(void **state)
{
	struct rig *r = *state;

	put_debian(r);
	put_prebuilt(r, "zz-open", "usr/src/zz-open-" RELEASE, "Dual MIT/GPL");
	look(r);
	assert_string_equal(r->d->dkms.name, "nvidia-current-open");
	put(r, "var/lib/dkms/zz-open/" RELEASE "/" KERNEL "/x86_64/log/make.log", "");
	look(r);
	assert_string_equal(r->d->dkms.name, "zz-open");
}

/* ---- files that are not as they should be ---- */

static void edit_and_expect(struct rig *r, const char *file, const char *text, const char *what,
			    const char *part)
{
	put_in(r, TREE, file, text);
	look(r);
	expect(r, what, CHECK_BAD, part);
	assert_true(strcmp(what, "patch") != 0 || !r->d->patch);
	drop(r, TREE);
	drop(r, "var/lib/dkms");
	put_debian(r);
}

static void odd_files_are_refused(void **state)
{
	AUTO_STRBUF struct strbuf marked = {0}, twice = {0};
	struct rig *r = *state;

	put_debian(r);
	edit_and_expect(r, "nvidia/nvidia.Kbuild", "obj-m += nvidia.o\n", "patch",
			"expected one line that names nv-kernel.o_binary, found 0");
	strbuf_printf(&twice, "%s%s", kbuild, kbuild);
	edit_and_expect(r, "nvidia/nvidia.Kbuild", twice.text, "patch", "found 2");
	edit_and_expect(r, "nvidia/nvidia.Kbuild", "X := nv-kernel.o_binary\r\n", "patch", "CR LF");
	edit_and_expect(r, "nvidia/nv-pci.c", "int x;\r\n", "patch",
			"/" TREE "/nvidia/nv-pci.c: lines end in CR LF");
	edit_and_expect(r, "nvidia/nv-pci.c", "int x;\n", "patch", "expected");
	strbuf_puts(&marked, "MODULE_INFO(onehop, \"unlock 2\");\n"
			     "static int " RESIZE "(struct pci_dev *pci_dev) {\n}\n");
	edit_and_expect(r, "nvidia/nv-pci.c", marked.text, "patch",
			"/" TREE "/nvidia/nv-pci.c is edited already: onehop's mark is in it");
	edit_and_expect(r, "dkms.conf", "DEST_MODULE_NAME[0]=`id`\nBUILT_MODULE_NAME[0]=nvidia\n",
			"dkms tree", "does not name nvidia.ko");
}

static void a_persons_override_stays(void **state)
{
	struct rig *r = *state;

	put_debian(r);
	put(r, "etc/dkms/nvidia-current-open-" RELEASE ".conf", "MAKE[0]=\"mine\"\n");
	look(r);
	expect(r, "override", CHECK_BAD, "was not written by onehop");
	assert_false(r->d->in_place);
}

static void what_dkms_reads_last_may_drop_the_patch(void **state)
{
	static const char *const ends[] = {"", "-x86_64"};
	struct rig *r = *state;

	put_debian(r);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		AUTO_FREE char *path =
			xprintf("etc/dkms/nvidia-current-open-" RELEASE "-" KERNEL "%s.conf",
				ends[i]);

		put(r, path, "# PATCH=(no)\nPATCH+=(own.patch)\n");
		look(r);
		expect(r, "override", CHECK_GOOD, "does not exist yet");
		put(r, path, "MAKE[0]=x\n  PATCH=(own.patch)\n");
		look(r);
		expect(r, "override", CHECK_BAD, path);
		expect_remedy(r, "override", "PATCH+=(");
		drop(r, path);
	}
	put(r, "etc/dkms/nvidia-current-open-" RELEASE "-6.2.conf", "PATCH=(own.patch)\n");
	look(r);
	expect(r, "override", CHECK_GOOD, "does not exist yet");
}

static void where_dkms_moves_modules_it_is_said(void **state)
{
	static const char *const ids[] = {"debian", "ubuntu", "linuxmint", "fedora", "arch"};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		r->m->kernel.distribution_id = fact_str(ids[i], from);
		look(r);
		assert_int_equal(has_check(r, "existing modules"), i > 1);
	}
	expect(r, "existing modules", CHECK_NOTE, "/var/lib/dkms/onehop-nvidia/original_module");
	assert_false(r->d->blocked && check_of(r, "disk")->state != CHECK_BAD);
	put_debian(r); /* its own tree: DKMS's own modules are in the way of none */
	look(r);
	assert_false(has_check(r, "existing modules"));
}

static void a_patch_of_the_package_is_said(void **state)
{
	struct rig *r = *state;

	put_debian(r);
	put_in(r, TREE, "patches/own.patch", "+++ b/nvidia/nv-pci.c\n");
	put(r, "etc/dkms/nvidia-current-open.conf", "PATCH[0]=own.patch\n");
	look(r);
	expect(r, "patch", CHECK_NOTE, "own.patch changes the same files");
}

/* ---- releases ---- */

/* A file with a NUL in it is read to its end, and not past it: the patch does not fit. */
static void a_nul_in_a_file_is_no_end(void **state)
{
	struct rig *r = *state;
	char page[4096] = "int x;\n";

	put_debian(r);
	made_put(r->root, TREE "/nvidia/nv-pci.c", page, sizeof(page));
	look(r);
	expect(r, "patch", CHECK_BAD, "nv-pci.c");
}

static void the_release_has_to_be_that_which_runs(void **state)
{
	struct rig *r = *state;

	r->m->driver.module_version = r->m->driver.installed_version =
		r->m->driver.library_version = fact_str("999.02", from);
	look(r);
	expect(r, "sources", CHECK_BAD,
	       "the tree is " RELEASE ", but the driver that runs is 999.02");
	expect_remedy(r, "sources", "--branch 999.02 ");
}

static void user_space_has_to_agree(void **state)
{
	struct rig *r = *state;

	r->m->driver.library_version = fact_str("999.02", from);
	look(r);
	expect(r, "driver", CHECK_BAD, "user-space library is 999.02");
	r->m->driver.library_version = fact_str(RELEASE, from);
	r->m->driver.installed_version = fact_str("999.02", from);
	look(r);
	expect(r, "driver", CHECK_BAD, RELEASE " runs, but 999.02 is installed");
}

static void sources_are_asked_for_or_refused(void **state)
{
	struct rig *r = *state;

	r->request.sources = NULL;
	look(r);
	expect(r, "sources", CHECK_BAD, "no tree was named");
	expect_remedy(r, "sources", "--branch " RELEASE " ");
	r->request.sources = r->sources;
	made_put(r->sources, SWITCH_FILE, "int x;\n", 7);
	look(r);
	expect(r, "sources", CHECK_BAD, "expected 1 in " SWITCH_FILE);
	r->request.sources = "/nonexistent/tree";
	{
		struct source *s;

		assert_int_equal(source_open_root(r->root, NULL, NULL, &s), 0);
		assert_int_equal(delivery_look(&r->request, s, r->m, &r->requirements, &r->d),
				 -ENOENT);
		source_free(s);
	}
}

static void cards_that_are_refused_block(void **state)
{
	struct rig *r = *state;
	struct card_requirement card = {.action = ACTION_REFUSED,
					.why = "too small",
					.change = "another"};

	r->requirements =
		(struct unlock_requirements){.action = ACTION_REFUSED, .cards = &card, .n = 1};
	look(r);
	expect(r, "cards", CHECK_BAD, "too small");
	expect_remedy(r, "cards", "another");
}

/* ---- the system ---- */

static void tools_that_lack_are_named(void **state)
{
	struct rig *r = *state;

	drop(r, "usr/sbin/dkms");
	drop(r, "usr/bin/g++");
	look(r);
	expect(r, "tools", CHECK_BAD, "missing: dkms, g++");
	expect_remedy(r, "tools", "sudo apt install dkms g++");
	r->m->kernel.distribution_id = fact_str("fedora", from);
	look(r);
	expect_remedy(r, "tools", "sudo dnf install dkms gcc-c++");
	r->m->kernel.distribution_id = fact_str("arch", from);
	look(r);
	expect_remedy(r, "tools", "sudo pacman -S --needed dkms base-devel");
	put_debian(r);
	look(r);
	expect(r, "tools", CHECK_BAD, "missing: dkms");
	assert_null(strstr(check_of(r, "tools")->found, "g++"));
	drop(r, "usr/bin/gzip");
	look(r);
	expect(r, "tools", CHECK_BAD, "missing: dkms, gzip");
	drop(r, "var/lib/dkms");
	drop(r, TREE);
	look(r); /* a tree of its own: nothing is saved */
	assert_null(strstr(check_of(r, "tools")->found, "gzip"));
	put(r, "usr/local/sbin/dkms", ""); /* a plan would not find it */
	look(r);
	expect(r, "tools", CHECK_BAD, "missing: dkms");
}

static void the_kernels_compiler_is_wanted(void **state)
{
	struct rig *r = *state;

	drop(r, "usr/bin/gcc-12");
	r->m->kernel.installed_compiler_major = fact_int(11, from);
	look(r);
	expect(r, "compiler", CHECK_BAD, "gcc 11 is older");
	expect_remedy(r, "compiler", "sudo apt install gcc-12");
	r->m->kernel.installed_compiler_major = fact_int(13, from);
	look(r);
	expect(r, "compiler", CHECK_NOTE, "another gcc");
	r->m->kernel.installed_compiler_major = fact_int(12, from);
	look(r);
	expect(r, "compiler", CHECK_GOOD, "gcc 12");
	put(r, "lib/modules/" KERNEL "/build/.config",
	    "CONFIG_CC_VERSION_TEXT=\"clang version 17.0.6\"\n");
	look(r);
	expect(r, "compiler", CHECK_BAD, "clang version 17.0.6, which is not installed");
	put(r, "usr/bin/clang", "");
	look(r);
	expect(r, "compiler", CHECK_GOOD, "clang, the same as the kernel's");
}

static void secure_boot_wants_a_key(void **state)
{
	struct rig *r = *state;

	r->m->kernel.secure_boot = fact_int(1, from);
	look(r);
	expect(r, "signature", CHECK_BAD, "openssl");
	put(r, "usr/bin/openssl", "");
	look(r);
	expect(r, "signature", CHECK_NOTE, "the modules would not load");
	expect_remedy(r, "signature",
		      "dkms generate_mok\nsudo mokutil --import /var/lib/dkms/mok.pub");
	put(r, "var/lib/dkms/mok.pub", "a certificate");
	look(r);
	assert_null(strstr(check_of(r, "signature")->remedy, "generate_mok"));
	put(r, "sys/firmware/efi/mok-variables/MokListRT", "list a certificate end");
	look(r);
	expect(r, "signature", CHECK_GOOD, "/var/lib/dkms/mok.pub, which the firmware knows");
	put(r, "etc/dkms/framework.conf", "mok_certificate=\"/root/own.der\"\n");
	put(r, "root/own.der", "another one");
	look(r);
	expect(r, "signature", CHECK_NOTE, "not known to have");
	expect_remedy(r, "signature", "--import /root/own.der");
	assert_string_equal(r->d->certificate, "root/own.der");
	assert_false(r->d->enrolled);
	r->m->kernel.secure_boot = fact_int_absent(from);
	r->m->kernel.lockdown = fact_int(LOCKDOWN_INTEGRITY, from);
	look(r);
	expect(r, "signature", CHECK_NOTE, "locked down");
	put(r, "etc/dkms/framework.conf.d/x.conf", "mok_certificate=/root/last.der\n");
	put(r, "root/last.der", "st a cert");
	look(r);
	assert_string_equal(r->d->certificate, "root/last.der");
	assert_true(r->d->enrolled);
}

static void ubuntu_has_a_key_of_its_own(void **state)
{
	struct rig *r = *state;

	r->m->kernel.secure_boot = fact_int(1, from);
	r->m->kernel.distribution_id = fact_str("ubuntu", from);
	put(r, "usr/bin/openssl", "");
	look(r);
	expect_remedy(r, "signature",
		      "sudo apt install shim-signed\n"
		      "sudo update-secureboot-policy --new-key\n"
		      "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der");
	put(r, "usr/sbin/update-secureboot-policy", "");
	look(r);
	assert_null(strstr(check_of(r, "signature")->remedy, "apt install"));
	/* DKMS makes that one anew there, and does not take another that lies at hand. */
	put(r, "var/lib/dkms/mok.pub", "a certificate");
	put(r, "sys/firmware/efi/mok-variables/MokListRT", "list a certificate end");
	look(r);
	expect(r, "signature", CHECK_NOTE, "not known to have");
	put(r, "var/lib/shim-signed/mok/MOK.der", "another");
	put(r, "sys/firmware/efi/mok-variables/MokListRT", "list a certificate end");
	look(r);
	expect(r, "signature", CHECK_NOTE, "not known to have");
	assert_string_equal(r->d->certificate, "var/lib/shim-signed/mok/MOK.der");
	assert_null(strstr(check_of(r, "signature")->remedy, "--new-key"));
	r->m->kernel.distribution_id = fact_str("debian", from);
	look(r);
	expect(r, "signature", CHECK_GOOD, "/var/lib/dkms/mok.pub");
}

static void a_kernel_that_is_known_not_to_do(void **state)
{
	struct rig *r = *state;
	struct made_tree t = {0};

	made_up(&t, ERA_590);
	made_write(&t, r->sources, "570.211.01");
	made_done(&t);
	r->m->driver.module_version = r->m->driver.installed_version =
		r->m->driver.library_version = fact_str("570.211.01", from);
	r->request.kernel = "6.19.1";
	put(r, "lib/modules/6.19.1/build/Makefile", "");
	look(r);
	expect(r, "kernel", CHECK_BAD, "570");
	r->request.kernel = "6.20 $(id)";
	look(r);
	expect(r, "kernel", CHECK_BAD, "unknown");
}

/* Without a block of its own. */
static void make_large(const struct rig *r, const char *path, off_t size)
{
	AUTO_FREE char *full = xprintf("%s/%s", r->root, path);

	assert_int_equal(truncate(full, size), 0);
}

static void rooms_are_those_of_the_file_systems(void **state)
{
	struct rig *r = *state;
	struct statvfs v;
	uint64_t device, other;
	int64_t bytes;

	assert_int_equal(disk_free(r->root, "var/lib/not/there", &bytes, &device), 0);
	assert_int_equal(statvfs(r->root, &v), 0);
	assert_true(llabs(bytes - (int64_t)v.f_bavail * (int64_t)v.f_frsize) < INT64_C(1) << 32);
	assert_int_equal(disk_free("", "/proc", &bytes, &other), 0);
	assert_int_equal(bytes, 0);
	assert_true(other != device);
	assert_true(disk_free("/nonexistent", "x/y", &bytes, &device) < 0);
	put(r, "boot/initrd.img-" KERNEL, "");
	make_large(r, "boot/initrd.img-" KERNEL, (off_t)1 << 50);
	look(r);
	expect(r, "disk", CHECK_BAD, " 11259");
	drop(r, "boot");
	r->request.root = "/proc"; /* nothing is free there, ever */
	look(r);
	expect(r, "disk", CHECK_BAD, "0.0 GB free");
	r->request.root = NULL;
	look(r);
	expect(r, "disk", CHECK_NOTE, "a recording");
}

static void time_is_shared_by_cpus(void **state)
{
	struct rig *r = *state;

	r->m->cpu.threads = fact_int(4, from);
	look(r);
	expect(r, "time", CHECK_GOOD,
	       "about 4 min to build on 4 CPUs: 2 for the core, 2 for the modules");
	r->m->cpu.threads = fact_int(2, from);
	look(r);
	expect(r, "time", CHECK_GOOD,
	       "about 7 min to build on 2 CPUs: 4 for the core, 3 for the modules");
}

static void the_boot_image_may_hold_it(void **state)
{
	struct rig *r = *state;

	put(r, "etc/initramfs-tools/modules", "# nvidia\n");
	look(r);
	expect(r, "boot image", CHECK_GOOD, "do not name the driver");
	put(r, "etc/dracut.conf.d/x.conf", "force_drivers+=\" nvidia \"\n");
	look(r);
	expect(r, "boot image", CHECK_NOTE, "/etc/dracut.conf.d/x.conf");
}

static void ostree_is_refused(void **state)
{
	struct rig *r = *state;

	put(r, "run/ostree-booted", "");
	look(r);
	expect(r, "system", CHECK_BAD, "ostree");
}

/* ---- the core ---- */

/* An object file with functions of these names, one behind the other, each ended by a NUL. */
static size_t build_object(unsigned char *image, const char *names, size_t size)
{
	enum { SECTIONS = 3 };
	Elf64_Shdr s[SECTIONS] = {{0}};
	Elf64_Sym symbols[16] = {{0}};
	size_t n = 1, at = sizeof(Elf64_Ehdr);
	Elf64_Ehdr head = ELF_HEAD(SECTIONS);

	for (size_t i = 1; i < size; i += strlen(names + i) + 1, n++) {
		symbols[n].st_name = (Elf64_Word)i;
		symbols[n].st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
		symbols[n].st_shndx = 1;
	}
	s[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_addralign = 8, .sh_link = 2};
	s[1].sh_offset = add(image, &at, symbols, n * sizeof(*symbols));
	s[1].sh_size = n * sizeof(*symbols);
	s[1].sh_entsize = sizeof(*symbols);
	s[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_addralign = 1};
	s[2].sh_offset = add(image, &at, names, size);
	s[2].sh_size = size;
	head.e_shoff = add(image, &at, s, sizeof(s));
	memcpy(image, &head, sizeof(head));
	return at;
}

#define FOUR                                                                                       \
	"\0kbusGetBar1P2PDmaInfo_GH100\0kbusCreateP2PMappingForBar1P2P_GH100\0"                    \
	"kbusRemoveP2PMappingForBar1P2P_GH100\0kbusHasPcieBar1P2PMapping_GH100\0"

static void put_core(const struct rig *r, const char *names, size_t size)
{
	unsigned char image[4096] = {0};
	const char *path = r->d->core_built + strlen(r->sources) + 1;

	made_put(r->sources, path, (const char *)image, build_object(image, names, size));
}

static void the_core_is_built_if_it_has_the_edits(void **state)
{
	static const char stubs[] = FOUR "kbusIsPcieBar1P2PMappingSupported_395e98";
	static const char real[] = FOUR "kbusIsPcieBar1P2PMappingSupported_GH100";
	static const struct unlock_options options;
	const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct rig *r = *state;
	struct unlock *u;

	look(r);
	put_core(r, real, sizeof(real));
	look(r);
	assert_false(r->d->built); /* whatever it has: the tree is as released */
	assert_int_equal(unlock_apply(r->sources, &options, &u), 0);
	unlock_close(u);
	put_core(r, stubs, sizeof(stubs));
	look(r);
	assert_false(r->d->built);
	put_core(r, real, sizeof(real));
	look(r);
	assert_int_equal(r->d->way, DELIVER_OWN_DKMS);
	assert_false(r->d->built); /* which needs the display modules' part, too */
	put_debian(r);
	look(r);
	assert_int_equal(r->d->way, DELIVER_INTO_DKMS);
	assert_true(r->d->built);
	drop(r, "var/lib/dkms");
	drop(r, TREE);
	made_put(r->sources, r->d->modeset_built + strlen(r->sources) + 1, "", 0);
	look(r);
	assert_int_equal(r->d->way, DELIVER_OWN_DKMS);
	assert_true(r->d->built);
	expect(r, "sources", CHECK_GOOD, "edited by onehop, its core is built");
	assert_int_equal(utimensat(AT_FDCWD, r->d->core_built, old, 0), 0);
	look(r);
	assert_false(r->d->built); /* of before the edits */
}

static bool note_files(void *context, const struct build_progress *p)
{
	*(unsigned *)context = p->files;
	return true;
}

/* Longer than what is read of the log at once. */
static void a_long_line_is_passed(void **state)
{
	static const char makefile[] = "all:\n\t@echo ' [ nvidia ]  CC  a.c'\n"
				       "\t@printf '%050000d\\n' 0\n"
				       "\t@echo ' [ nvidia ]  CC  b.c'\n\t@false\n";
	struct rig *r = *state;
	AUTO_STRBUF struct strbuf last = {0};
	AUTO_FREE char *folder = xprintf("%s/built", r->dir);
	unsigned files = 0;
	const struct build_request request = {.sources = folder,
					      .jobs = 1,
					      .progress = note_files,
					      .context = &files,
					      .arena = r->m->arena};

	made_put(folder, "src/nvidia/Makefile", makefile, strlen(makefile));
	assert_int_equal(build_core(&request, &last), -EIO);
	assert_int_equal(files, 2);
}

/* ---- who holds the GPU ---- */

static void put_process(const struct rig *r, const char *pid, const char *target,
			const char *cgroup)
{
	AUTO_FREE char *fd = xprintf("proc/%s/fd/7", pid);
	AUTO_FREE char *comm = xprintf("proc/%s/comm", pid);
	AUTO_FREE char *group = xprintf("proc/%s/cgroup", pid);

	put_link(r, fd, target);
	put(r, comm, "Xo\033rg\n");
	put(r, group, cgroup);
}

static void holders_are_named(void **state)
{
	struct rig *r = *state;

	put_process(r, "12", "/dev/nvidia0", "0::/system.slice/gdm.service\n");
	put_process(r, "34", "/dev/nvidia-uvm",
		    "0::/user.slice/user-1.slice/user@1.service/a.service\n");
	put_process(r, "56", "/dev/null", "0::/system.slice/none.service\n");
	put_process(r, "78", "/dev/nvidiactl", "0::/system.slice/a$(id).service\n");
	put_process(r, "90", "/dev/nvidiactl", "0::/system.slice/self.service\n");
	put_link(r, "proc/self", "90");
	look(r);
	assert_int_equal(r->d->holder_n, 3);
	assert_true(r->d->holders_known);
	assert_int_equal(r->d->holders[0].pid, 12);
	assert_string_equal(r->d->holders[0].name, "Xo?rg");
	assert_string_equal(r->d->holders[0].unit, "gdm.service");
	assert_null(r->d->holders[1].unit);
	assert_null(r->d->holders[2].unit);
}

static void a_recording_does_not_know(void **state)
{
	struct rig *r = *state;
	struct source *s = source_new_map("recording");

	r->request.root = NULL;
	r->m->kernel.compiler = fact_str("gcc-12 (Debian 12.2.0-14) 12.2.0", from);
	assert_int_equal(delivery_look(&r->request, s, r->m, &r->requirements, &r->d), 0);
	source_free(s);
	assert_false(r->d->holders_known);
	expect(r, "dkms tree", CHECK_NOTE, "cannot be read");
	expect(r, "tools", CHECK_NOTE, "unknown");
	expect(r, "headers", CHECK_NOTE, "unknown");
	expect(r, "compiler", CHECK_NOTE,
	       "it is unknown whether gcc-12, the kernel's compiler, is installed");
}

/* ---- dkms.conf ---- */

static void confs_are_read_without_running_them(void **state)
{
	static const char text[] = "# BUILT_MODULE_NAME[0]=\"no\"\n"
				   "A=one\n"
				   "BUILT_MODULE_NAME[0]=\"nvidia\"\r\n"
				   "BUILT_MODULE_NAME[1]='b$A'\n"
				   "BUILT_MODULE_NAME[2]=c${A}\n"
				   "DEST_MODULE_NAME[2]=$(rm -rf x)\n"
				   "BUILT_MODULE_NAME[3]=d; DEST_MODULE_NAME[3]=e\n"
				   "  DEST_MODULE_NAME[0]=\"$A-$B\"\n"
				   "BUILT_MODULE_NAME[99999999]=x\n"
				   "BUILT_MODULE_NAME[70]=x\n"
				   "PATCH=(one \"two\")\n"
				   "PATCH+=(three)\n"
				   "PATCH[9]=\"four\"\n"
				   "export PACKAGE_VERSION=1\n"
				   "DEST_MODULE_NAME[1]=\"unended\n";
	struct arena *a = arena_new();
	struct dkms_conf c = {0};

	(void)state;
	dkms_conf_read(text, a, &c);
	assert_int_equal(c.module_n, 4);
	assert_string_equal(c.modules[1].built, "b$A");
	assert_string_equal(dkms_conf_dest(&c, "cone"), "?");
	assert_string_equal(dkms_conf_dest(&c, "d"), "d");
	assert_string_equal(dkms_conf_dest(&c, "b$A"), "?");
	assert_null(dkms_conf_dest(&c, "other"));
	assert_int_equal(c.patch_n, 4);
	assert_string_equal(c.patches[3], "four");
	assert_string_equal(c.version, "1");
	arena_free(a);
}

static int forget(void **state)
{
	(void)state;
	made_forget();
	return 0;
}

#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, make_rig, remove_rig)

/* ---- what nobody has run yet ---- */

static void write_sources(const struct rig *r, enum era era, const char *release)
{
	struct made_tree t = {0};

	nftw(r->sources, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	made_up(&t, era);
	made_write(&t, r->sources, release);
	made_done(&t);
	r->m->driver.module_version = r->m->driver.installed_version =
		r->m->driver.library_version = fact_str(arena_strdup(r->m->arena, release), from);
}

static void what_was_not_tried_is_said(void **state)
{
	struct rig *r = *state;
	static const struct {
		enum era era;
		const char *release;
		const char *has, *lacks; /* NULL: nothing is said */
	} rows[] = {
		{ERA_590, "610.43.02",
		 "untested with this release (610.43.02): every place is as in 590.44.01 to "
		 "595.45.04",
		 "untested on any card"},
		{ERA_535, "535.299.01", "untested with this release (535.299.01): ", "\n"},
		{ERA_535, "535.299.01", "untested on any card", "\n"},
		{ERA_535, "535.288.01",
		 "this kind (535.43.02 to 535.288.01) are untested on any card",
		 "untested with this"},
		{ERA_575, "575.64.05", "untested on any card", "untested with this"},
		{ERA_545, "550.163.01", NULL, NULL},
		{ERA_590, "595.45.04", NULL, NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool said = false;

		write_sources(r, rows[i].era, rows[i].release);
		look(r);
		expect_no_other_bad(r);
		for (size_t k = 0; k < r->d->check_n; k++)
			said |= strcmp(r->d->checks[k].what, "tried") == 0;
		assert_int_equal(said, rows[i].has != NULL);
		if (!said)
			continue;
		expect(r, "tried", CHECK_NOTE, rows[i].has);
		assert_null(strstr(check_of(r, "tried")->found, rows[i].lacks));
	}
}

/* ---- sources that are fetched ---- */

#define PUBLISHED "595.45.04"
#define FETCHED   "var/cache/onehop/sources/" PUBLISHED

/* --download, on a machine with a release that is known. */
static void want_download(struct rig *r)
{
	struct nvidia_driver *d = &r->m->driver;

	d->module_version = d->installed_version = d->library_version = fact_str(PUBLISHED, from);
	r->request.sources = NULL;
	r->request.repository = PUBLIC_REPOSITORY;
}

static void a_download_is_named_first(void **state)
{
	struct rig *r = *state;
	AUTO_FREE char *folder = xprintf("%s/" FETCHED, r->root);

	want_download(r);
	put(r, "usr/bin/git", "");
	put(r, "usr/bin/wget", "");
	look(r);
	expect_no_other_bad(r);
	expect(r, "download", CHECK_GOOD,
	       "typically 13 to 25 MB from " PUBLIC_REPOSITORY "/archive/refs/tags/" PUBLISHED
	       ".tar.gz with wget to ");
	expect(r, "download", CHECK_GOOD, folder);
	assert_string_equal(r->d->sources, folder);
	assert_string_equal(r->d->release, PUBLISHED);
	assert_int_equal(r->d->way, DELIVER_OWN_DKMS);
	assert_false(r->d->built);
	put(r, "usr/bin/curl", "");
	look(r);
	expect(r, "download", CHECK_GOOD, "with curl");
	set_mode(r, "usr/bin/curl", 0644);
	look(r);
	expect(r, "download", CHECK_GOOD, "with wget");
	drop(r, "usr/bin/curl");
	drop(r, "usr/bin/wget");
	look(r);
	expect(r, "download", CHECK_GOOD, "from " PUBLIC_REPOSITORY " with git");
}

static void without_a_program_it_says_which(void **state)
{
	struct rig *r = *state;

	want_download(r);
	look(r);
	expect(r, "download", CHECK_BAD, "none of curl, wget and git is installed");
	expect_remedy(r, "download", "sudo apt install curl");
}

static void what_was_fetched_is_taken(void **state)
{
	struct rig *r = *state;
	AUTO_FREE char *folder = xprintf("%s/" FETCHED, r->root);
	struct made_tree t = {0};

	want_download(r);
	made_up(&t, ERA_590);
	made_write(&t, folder, PUBLISHED);
	made_done(&t);
	look(r);
	expect_no_other_bad(r);
	expect(r, "sources", CHECK_NOTE, PUBLISHED ", but changed"); /* it is made up */
	assert_string_equal(r->d->sources, folder);
	assert_null(r->d->download);
}

static void a_part_of_a_tree_is_none(void **state)
{
	struct rig *r = *state;

	want_download(r);
	put(r, "usr/bin/curl", "");
	put(r, FETCHED ".part/archive", "half");
	put(r, FETCHED ".part/tree/version.mk", "NVIDIA_VERSION = " PUBLISHED "\n");
	look(r);
	expect(r, "download", CHECK_GOOD, "with curl");
}

/* It cannot be checked, so it is not fetched; what a person fetched goes by its content. */
static void an_unknown_release_is_not_fetched(void **state)
{
	struct rig *r = *state;

	want_download(r);
	put(r, "usr/bin/curl", "");
	r->m->driver.module_version = r->m->driver.installed_version =
		r->m->driver.library_version = fact_str("610.43.02", from);
	look(r);
	expect(r, "download", CHECK_BAD,
	       "610.43.02 is not one of the 144 releases, 535.43.02 to 595.45.04");
	expect_remedy(r, "download", "git clone --depth 1 --branch 610.43.02 " PUBLIC_REPOSITORY);
	expect_remedy(r, "download",
		      "sudo onehop unlock --sources open-gpu-kernel-modules --apply");
	r->m->driver.module_version = r->m->driver.installed_version =
		r->m->driver.library_version = fact_str("530.41.03", from);
	look(r);
	expect(r, "download", CHECK_BAD, "release 530.41.03 is too old for the edits");
	expect_remedy(r, "download", "install driver 535 or later");
	r->m->driver.module_version = r->m->driver.installed_version =
		r->m->driver.library_version = fact_str_unknown(from);
	look(r);
	expect(r, "sources", CHECK_BAD,
	       "no NVIDIA driver was found here, so the release to download is unknown");
}

static void options_need_no_download(void **state)
{
	struct rig *r = *state;

	want_download(r);
	r->requirements.action = ACTION_OPTIONS;
	look(r);
	assert_int_equal(r->d->way, DELIVER_OPTIONS);
	assert_null(r->d->download);
}

/* The patch of a whole tree is made from the sources: until they are here it is not judged. */
static void a_whole_tree_waits_for_the_sources(void **state)
{
	struct rig *r = *state;

	want_download(r);
	put_whole(r);
	r->m->driver.module_version = r->m->driver.installed_version =
		r->m->driver.library_version = fact_str(RELEASE, from);
	put(r, "usr/bin/curl", "");
	look(r);
	assert_int_equal(r->d->way, DELIVER_INTO_DKMS);
	assert_null(r->d->patch);
	for (size_t i = 0; i < r->d->check_n; i++)
		assert_string_not_equal(r->d->checks[i].what, "patch");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(debian_gets_three_files),
		RIG_TEST(a_second_look_finds_ours),
		RIG_TEST(dkms_takes_our_patch_beside_others),
		RIG_TEST(a_whole_tree_gets_all_edits),
		RIG_TEST(a_changed_whole_tree_is_refused),
		RIG_TEST(without_a_tree_one_is_made),
		RIG_TEST(what_was_not_tried_is_said),
		RIG_TEST(a_download_is_named_first),
		RIG_TEST(without_a_program_it_says_which),
		RIG_TEST(what_was_fetched_is_taken),
		RIG_TEST(a_part_of_a_tree_is_none),
		RIG_TEST(an_unknown_release_is_not_fetched),
		RIG_TEST(options_need_no_download),
		RIG_TEST(a_whole_tree_waits_for_the_sources),
		RIG_TEST(options_alone),
		RIG_TEST(an_image_has_a_kernel_of_its_own),
		RIG_TEST(upgrades_that_nobody_asks_for),
		RIG_TEST(the_package_of_prebuilt_modules),
		RIG_TEST(upgrades_by_dnf),
		RIG_TEST(an_image_with_prebuilt_modules),
		RIG_TEST(an_images_modules_keep_their_names),
		RIG_TEST(the_proprietary_tree_is_told_apart),
		RIG_TEST(another_release_in_the_folder_is_refused),
		RIG_TEST(a_tree_that_dkms_was_not_told_of),
		RIG_TEST(hostile_names_are_refused),
		RIG_TEST(of_two_trees_the_built_one_is_taken),
		RIG_TEST(odd_files_are_refused),
		RIG_TEST(a_persons_override_stays),
		RIG_TEST(what_dkms_reads_last_may_drop_the_patch),
		RIG_TEST(where_dkms_moves_modules_it_is_said),
		RIG_TEST(a_patch_of_the_package_is_said),
		RIG_TEST(a_nul_in_a_file_is_no_end),
		RIG_TEST(the_release_has_to_be_that_which_runs),
		RIG_TEST(user_space_has_to_agree),
		RIG_TEST(sources_are_asked_for_or_refused),
		RIG_TEST(cards_that_are_refused_block),
		RIG_TEST(tools_that_lack_are_named),
		RIG_TEST(the_kernels_compiler_is_wanted),
		RIG_TEST(secure_boot_wants_a_key),
		RIG_TEST(ubuntu_has_a_key_of_its_own),
		RIG_TEST(a_kernel_that_is_known_not_to_do),
		RIG_TEST(rooms_are_those_of_the_file_systems),
		RIG_TEST(time_is_shared_by_cpus),
		RIG_TEST(the_boot_image_may_hold_it),
		RIG_TEST(ostree_is_refused),
		RIG_TEST(the_core_is_built_if_it_has_the_edits),
		RIG_TEST(a_long_line_is_passed),
		RIG_TEST(holders_are_named),
		RIG_TEST(a_recording_does_not_know),
		cmocka_unit_test(confs_are_read_without_running_them),
	};

	return cmocka_run_group_tests(tests, NULL, forget);
}
