/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the kernel that modules are for, of its compiler, of who signs them, and of the disks. */
#include "unlock/delivery_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "unlock/requirements_kernel.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the kernel ---- */

/* The release as it is has been built for this kernel: what is known against the two does not hold here. */
static bool was_built(const struct delivery_facts *l)
{
	const struct dkms_tree *t = &l->d->dkms;

	return l->d->way == DELIVER_INTO_DKMS &&
	       delivery_has(l, delivery_format(l, DKMS_FOLDER "/%s/%s/%s", t->name, t->version,
					       l->d->kernel)) == 1;
}

void delivery_check_kernel(struct delivery_facts *l, struct delivery_check *c)
{
	const char *kernel = l->d->kernel, *trouble;
	bool into = l->d->way == DELIVER_INTO_DKMS;

	if (!kernel) {
		delivery_say(c, CHECK_BAD, "the kernel that the modules are for is unknown",
			     "name one: --kernel RELEASE, a folder of /lib/modules");
		return;
	}
	if (delivery_has(l, delivery_format(l, "lib/modules/%s", kernel)) == 0) {
		delivery_say(c, CHECK_BAD,
			     delivery_format(l, "/lib/modules/%s does not exist", kernel), NULL);
		return;
	}
	trouble = l->d->release ? need_kernel_trouble(l->d->release, kernel) : NULL;
	if (!trouble)
		delivery_say(c, CHECK_GOOD, kernel, NULL);
	else if (was_built(l))
		delivery_say(c, CHECK_GOOD,
			     delivery_format(l, "%s, for which DKMS has built this release",
					     kernel),
			     NULL);
	else
		delivery_say(c, into ? CHECK_NOTE : CHECK_BAD,
			     delivery_format(l, "%s: %s%s", kernel, trouble,
					     into ? "; the package may have fixed that" : ""),
			     NULL);
}

/* ---- its headers ---- */

static const char *headers_package(const struct delivery_facts *l)
{
	AUTO_STRBUF struct strbuf b = {0};

	distribution_headers(l->distribution, l->d->kernel, &b);
	return arena_strdup(l->a, strbuf_str(&b));
}

void delivery_check_headers(struct delivery_facts *l, struct delivery_check *c)
{
	int there;

	if (!l->d->kernel)
		return;
	there = delivery_has(l, delivery_format(l, "lib/modules/%s/build/Makefile", l->d->kernel));
	if (there == 0)
		delivery_say(c, CHECK_BAD,
			     delivery_format(l, "the headers of %s are not installed",
					     l->d->kernel),
			     delivery_install_command(l, headers_package(l)));
	else
		delivery_say(c, there < 0 ? CHECK_NOTE : CHECK_GOOD,
			     there < 0 ? "it is unknown whether they are installed"
				       : "they are installed",
			     NULL);
}

/* ---- its compiler ---- */

struct compiler {
	const char *text;    /* "gcc-12 (Debian 12.2.0-14) 12.2.0" */
	const char *program; /* "gcc-12"; what NVIDIA's Makefile takes by itself if it is there */
	int major;           /* -1: not known */
	bool clang;
};

/* Of the headers' configuration; of what runs, if that is the kernel, and they cannot be read. */
static bool find_compiler(struct delivery_facts *l, struct compiler *ret)
{
	static const char key[] = "CONFIG_CC_VERSION_TEXT=\"";
	const char *path = delivery_format(l, "lib/modules/%s/build/.config", l->d->kernel);
	AUTO_FREE char *config = delivery_text(l, path, NULL);
	const char *value = NULL;
	size_t n = 0;

	if (config && text_after(config, key, &value, &n) && n > 1)
		ret->text = delivery_printable(l, arena_strndup(l->a, value, n - 1));
	else if (fact_str_is(l->m->kernel.release, l->d->kernel))
		ret->text = fact_str_or(l->m->kernel.compiler, NULL);
	if (!ret->text)
		return false;
	ret->program = arena_strndup(l->a, ret->text, strcspn(ret->text, " "));
	ret->major = compiler_major(ret->text);
	ret->clang = strstr(ret->text, "clang") != NULL;
	return dkms_is_plain(ret->program);
}

/* How it is installed: by number where the distribution has such packages. */
static const char *compiler_package(const struct delivery_facts *l, const struct compiler *k)
{
	AUTO_STRBUF struct strbuf b = {0};

	distribution_compiler(l->distribution, k->clang ? "clang" : "gcc", k->major, &b);
	return arena_strdup(l->a, strbuf_str(&b));
}

/* The newest of its family that is here; -1: none, or not known. */
static int installed_major(const struct delivery_facts *l, const struct compiler *k)
{
	const struct kernel *kernel = &l->m->kernel;
	const char *family = k->clang ? "clang" : "gcc";

	if (!fact_str_is(kernel->compiler_family, family))
		return -1;
	return (int)fact_or(kernel->installed_compiler_major, -1);
}

static void check_other_compiler(struct delivery_facts *l, const struct compiler *k,
				 struct delivery_check *c)
{
	int installed = installed_major(l, k);
	const char *install = delivery_install_command(l, compiler_package(l, k));
	const char *with = delivery_format(l, "the kernel was built with %s", k->text);

	if (k->clang)
		delivery_say(c, CHECK_BAD, delivery_format(l, "%s, which is not installed", with),
			     install);
	else if (installed > 0 && installed == k->major)
		delivery_say(c, CHECK_GOOD,
			     delivery_format(l, "gcc %d, the same as the kernel's", installed),
			     NULL);
	else if (installed > 0 && k->major > installed)
		delivery_say(c, CHECK_BAD,
			     delivery_format(l, "%s; gcc %d is older and lacks some of its options",
					     with, installed),
			     install);
	else
		delivery_say(c, CHECK_NOTE,
			     delivery_format(l, "%s; another gcc is used, which usually works",
					     with),
			     delivery_format(l, "%s   # the build then uses it", install));
}

/* "gcc-12" is one compiler; "gcc" is whichever is the usual one. */
static bool names_one(const struct compiler *k)
{
	return k->clang || isdigit((unsigned char)k->program[strlen(k->program) - 1]);
}

void delivery_check_compiler(struct delivery_facts *l, struct delivery_check *c)
{
	struct compiler k = {.major = -1};
	int there;

	if (!l->d->kernel)
		return;
	if (!find_compiler(l, &k)) {
		delivery_say(c, CHECK_NOTE, "the compiler that built the kernel is unknown", NULL);
		return;
	}
	there = names_one(&k) ? delivery_has_program(l, k.program) : 0;
	if (there > 0)
		delivery_say(c, CHECK_GOOD,
			     delivery_format(l, "%s, the same as the kernel's", k.program), NULL);
	else if (there < 0)
		delivery_say(
			c, CHECK_NOTE,
			delivery_format(
				l, "it is unknown whether %s, the kernel's compiler, is installed",
				k.program),
			NULL);
	else
		check_other_compiler(l, &k, c);
}

/* ---- signatures ---- */

#define MOK_LIST "MokListRT"

/* Certificates that shim lets the kernel trust, as the firmware's variables hold them. */
static const char *const mok_lists[] = {
	"sys/firmware/efi/mok-variables/" MOK_LIST,
	"sys/firmware/efi/efivars/" MOK_LIST "-605dab50-e046-4300-abb6-3dd810dd8b23",
};

/*
 * Where DKMS puts its key where nobody names one, below the root, and what makes it; first for all, then
 * for Ubuntu, where DKMS takes no other, and without that program does not sign.
 */
static const struct usual_key {
	const char *certificate, *program, *make;
	const char *package; /* of the program; NULL: DKMS's own */
} usual_keys[] = {
	{DKMS_FOLDER "/mok.pub", "dkms", "sudo dkms generate_mok", NULL},
	{"var/lib/shim-signed/mok/MOK.der", "update-secureboot-policy",
	 "sudo update-secureboot-policy --new-key", "shim-signed"},
};

static bool signs_with_shim_key(const struct delivery_facts *l)
{
	return distribution_habits(&l->m->kernel)->signs_with_shim_key;
}

static const struct usual_key *usual_key(const struct delivery_facts *l)
{
	return &usual_keys[signs_with_shim_key(l)];
}

/* framework.conf and the files of its folder, which are read behind it. */
static const char *named_certificate(struct delivery_facts *l)
{
	static const char folder[] = "etc/dkms/framework.conf.d";
	AUTO_FREE char *text = delivery_text(l, "etc/dkms/framework.conf", NULL);
	struct dkms_conf conf = {0};
	char **names = NULL;
	size_t n = 0;

	if (text)
		dkms_conf_read(text, l->a, &conf);
	if (source_list(l->s, &names, &n, "%s", folder) == 0) {
		for (size_t i = 0; i < n; i++) {
			const char *path = delivery_format(l, "%s/%s", folder, names[i]);
			AUTO_FREE char *more =
				text_ends_with(path, ".conf") ? delivery_text(l, path, NULL) : NULL;

			if (more)
				dkms_conf_read(more, l->a, &conf);
		}
		source_free_names(names, n);
	}
	return conf.certificate && conf.certificate[0] == '/' ? conf.certificate + 1 : NULL;
}

/* The one that DKMS signs with, below the root, there or not. */
static const char *find_certificate(struct delivery_facts *l)
{
	const char *named = named_certificate(l), *usual = usual_key(l)->certificate;

	if (named && delivery_has(l, named) == 1)
		return delivery_printable(l, named);
	for (size_t i = 0;
	     !signs_with_shim_key(l) && i < sizeof(usual_keys) / sizeof(usual_keys[0]); i++)
		if (delivery_has(l, usual) != 1 && delivery_has(l, usual_keys[i].certificate) == 1)
			return usual_keys[i].certificate;
	return usual;
}

static bool is_enrolled(struct delivery_facts *l, const char *certificate)
{
	size_t key_size = 0;
	AUTO_FREE char *key = delivery_text(l, certificate, &key_size);

	for (size_t i = 0; key && key_size && i < sizeof(mok_lists) / sizeof(mok_lists[0]); i++) {
		size_t size = 0;
		AUTO_FREE char *list = delivery_text(l, mok_lists[i], &size);

		if (list && memmem(list, size, key, key_size))
			return true;
	}
	return false;
}

/* Commands, a line each; "": it is there. */
static const char *make_key(const struct delivery_facts *l, const char *key)
{
	const struct usual_key *k = usual_key(l);

	if (delivery_has(l, key) == 1)
		return "";
	if (!k->package || delivery_has_program(l, k->program) != 0)
		return delivery_format(l, "%s\n", k->make);
	return delivery_format(l, "%s\n%s\n", delivery_install_command(l, k->package), k->make);
}

static void check_key(struct delivery_facts *l, const char *why, struct delivery_check *c)
{
	const char *key = l->d->certificate;

	if (delivery_has_program(l, "openssl") == 0)
		delivery_say(c, CHECK_BAD,
			     delivery_format(l, "%s, and DKMS signs with openssl: missing", why),
			     delivery_install_command(l, "openssl"));
	else if (l->d->enrolled)
		delivery_say(c, CHECK_GOOD,
			     delivery_format(l, "%s; DKMS signs with /%s, which the firmware knows",
					     why, key),
			     NULL);
	else
		delivery_say(
			c, CHECK_NOTE,
			delivery_format(
				l,
				"%s, and the firmware is not known to have DKMS's key: the modules "
				"would not load",
				why),
			delivery_format(
				l,
				"%ssudo mokutil --import /%s   # asks for a password, once\n"
				"sudo reboot   # at the console: Enroll MOK, that password",
				make_key(l, key), key));
}

void delivery_check_signature(struct delivery_facts *l, struct delivery_check *c)
{
	const struct kernel *k = &l->m->kernel;

	l->d->certificate = find_certificate(l);
	l->d->enrolled = is_enrolled(l, l->d->certificate);
	if (l->r->image)
		delivery_say(
			c, CHECK_NOTE,
			"an image: it is unknown whether Secure Boot will be on where it boots",
			NULL);
	else if (fact_is(k->secure_boot, 1))
		check_key(l, "Secure Boot is on", c);
	else if (fact_known(k->lockdown) && !fact_is(k->lockdown, LOCKDOWN_NONE))
		check_key(l, "the kernel is locked down", c);
	else if (fact_unknown(k->secure_boot))
		delivery_say(c, CHECK_NOTE, "it is unknown whether Secure Boot is on", NULL);
	else
		delivery_say(c, CHECK_GOOD, "the kernel loads unsigned modules", NULL);
}

/* ---- the disks ---- */

#define MB ((int64_t)1000 * 1000)

/* What is written where; places on one file system share its room. */
struct room {
	const char *root, *path;
	const char *shown;
	int64_t need, free;
	uint64_t device;
};

#define ROOMS 5

static void add_room(const struct delivery_facts *l, struct room *rooms, size_t *n,
		     const char *path, int64_t need)
{
	rooms[(*n)++] = (struct room){.root = l->r->root,
				      .path = path,
				      .shown = delivery_format(l, "/%s", path),
				      .need = need};
}

/* A new boot image is written next to the old one, which names the kernel; 0: not found. */
static int64_t boot_image_size(const struct delivery_facts *l)
{
	static const char *const starts[] = {"initrd.img-", "initramfs-", "initrd-"};
	static const char *const ends[] = {"", ".img", ""};
	struct stat st;

	for (size_t i = 0; l->d->kernel && i < sizeof(starts) / sizeof(starts[0]); i++) {
		const char *path = delivery_format(l, "%s/boot/%s%s%s", l->r->root, starts[i],
						   l->d->kernel, ends[i]);

		if (stat(path, &st) == 0)
			return st.st_size;
	}
	return 0;
}

/*
 * DKMS copies the tree, 0.2 GB of a package's, and builds in the copy; what it makes is installed, and
 * what it made before is kept, as is the core.
 */
static size_t list_rooms(const struct delivery_facts *l, struct room rooms[ROOMS])
{
	bool whole = l->d->way == DELIVER_INTO_DKMS && l->d->dkms.whole;
	int64_t image = boot_image_size(l);
	int64_t tree = (l->d->download ? 300 : 0) + (l->d->built || whole ? 0 : 500);
	size_t n = 0;

	if (l->d->sources && tree)
		rooms[n++] = (struct room){.root = "",
					   .path = l->d->sources,
					   .shown = l->d->sources,
					   .need = tree * MB};
	add_room(l, rooms, &n, DKMS_FOLDER, (whole ? 800 : 500) * MB);
	add_room(l, rooms, &n, "lib/modules", 100 * MB);
	add_room(l, rooms, &n, "var/lib/onehop", 100 * MB);
	if (image)
		add_room(l, rooms, &n, "boot", image);
	return n;
}

/* All that is written to the file system of this room. */
static int64_t need_beside(const struct room *rooms, size_t n, const struct room *r)
{
	int64_t need = 0;

	for (size_t i = 0; i < n; i++)
		if (rooms[i].device == r->device)
			need += rooms[i].need;
	return need;
}

/* What is short is said; else the room of the build. */
static void judge_rooms(struct delivery_facts *l, const struct room *rooms, size_t n,
			struct delivery_check *c)
{
	for (size_t i = 0; i < n; i++) {
		int64_t need = need_beside(rooms, n, &rooms[i]);
		bool is_short = rooms[i].free < need;

		if (i && !is_short)
			continue;
		delivery_say(c, is_short ? CHECK_BAD : CHECK_GOOD,
			     delivery_format(l, "%s has %.1f GB free, %.1f GB are needed",
					     rooms[i].shown, (double)rooms[i].free / 1e9,
					     (double)need / 1e9),
			     NULL);
		if (is_short)
			return;
	}
}

void delivery_check_disk(struct delivery_facts *l, struct delivery_check *c)
{
	struct room rooms[ROOMS];
	size_t n;

	if (!l->r->root) {
		delivery_say(c, CHECK_NOTE, "a recording does not show how much room there is",
			     NULL);
		return;
	}
	n = list_rooms(l, rooms);
	for (size_t i = 0; i < n; i++) {
		int r = disk_free(rooms[i].root, rooms[i].path, &rooms[i].free, &rooms[i].device);

		if (r < 0) {
			delivery_say(c, CHECK_NOTE,
				     delivery_format(l, "%s: %s", rooms[i].shown, strerror(-r)),
				     NULL);
			return;
		}
	}
	judge_rooms(l, rooms, n, c);
}
