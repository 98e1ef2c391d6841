/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/distribution.h"

#include "base/array.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/machine.h"

#include <string.h>

static const struct {
	const char *id;
	enum distribution distribution;
} ids[] = {
	{"debian", DISTRIBUTION_DEBIAN},
	{"ubuntu", DISTRIBUTION_DEBIAN},
	{"linuxmint", DISTRIBUTION_DEBIAN},
	{"pop", DISTRIBUTION_DEBIAN},
	{"elementary", DISTRIBUTION_DEBIAN},
	{"zorin", DISTRIBUTION_DEBIAN},
	{"kali", DISTRIBUTION_DEBIAN},
	{"raspbian", DISTRIBUTION_DEBIAN},
	{"devuan", DISTRIBUTION_DEBIAN},
	{"neon", DISTRIBUTION_DEBIAN},
	{"proxmox", DISTRIBUTION_DEBIAN},
	{"fedora", DISTRIBUTION_FEDORA},
	{"rhel", DISTRIBUTION_FEDORA},
	{"centos", DISTRIBUTION_FEDORA},
	{"rocky", DISTRIBUTION_FEDORA},
	{"almalinux", DISTRIBUTION_FEDORA},
	{"ol", DISTRIBUTION_FEDORA},
	{"amzn", DISTRIBUTION_FEDORA},
	{"opensuse-microos", DISTRIBUTION_TRANSACTIONAL},
	{"opensuse-aeon", DISTRIBUTION_TRANSACTIONAL},
	{"opensuse-kalpa", DISTRIBUTION_TRANSACTIONAL},
	{"opensuse-leap-micro", DISTRIBUTION_TRANSACTIONAL},
	{"sle-micro", DISTRIBUTION_TRANSACTIONAL},
	{"sl-micro", DISTRIBUTION_TRANSACTIONAL},
	{"suse", DISTRIBUTION_SUSE},
	{"opensuse", DISTRIBUTION_SUSE},
	{"opensuse-leap", DISTRIBUTION_SUSE},
	{"opensuse-tumbleweed", DISTRIBUTION_SUSE},
	{"sles", DISTRIBUTION_SUSE},
	{"arch", DISTRIBUTION_ARCH},
	{"manjaro", DISTRIBUTION_ARCH},
	{"endeavouros", DISTRIBUTION_ARCH},
	{"nixos", DISTRIBUTION_NIXOS},
};

static enum distribution find(const char *words)
{
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (text_has_word(words, ids[i].id))
			return ids[i].distribution;
	return DISTRIBUTION_OTHER;
}

enum distribution distribution_of(const struct kernel *k)
{
	const enum distribution by_id = find(fact_str_or(k->distribution_id, ""));

	return by_id ? by_id : find(fact_str_or(k->distribution_like, ""));
}

const struct distribution_habits *distribution_habits(const struct kernel *k)
{
	/* DKMS compares the start of ID= too. */
	static const struct distribution_habits habits[] = {
		{"debian", "nvidia-current", "nvidia-open-gpu-kernel-modules", false, false},
		{"ubuntu", "nvidia", NULL, false, true},
		{"", "nvidia", NULL, true, false},
	};
	const struct distribution_habits *h = habits;

	while (!text_starts_with(fact_str_or(k->distribution_id, ""), h->id))
		h++;
	return h;
}

/* ---- packages ---- */

static const struct {
	const char *install; /* NULL: not known */
	const char *headers; /* before the kernel's release; NULL: named otherwise */
	const char *cxx;     /* of g++ */
	/* one package for make, gcc, g++, ld and patch; NULL: each has its own */
	const char *basics;
	const char *old_peermem;
	const char *gcc, *clang; /* before a major version; NULL: there is one version alone */
} tools[DISTRIBUTION_N] = {
	[DISTRIBUTION_DEBIAN] = {"sudo apt install", "linux-headers-", "g++", NULL,
				 "apt remove nvidia-peer-memory-dkms nvidia-peer-memory", "gcc-",
				 "clang-"},
	[DISTRIBUTION_FEDORA] = {"sudo dnf install", "kernel-devel-", "gcc-c++", NULL,
				 "dnf remove nvidia_peer_memory nvidia-peer-memory-dkms", NULL,
				 NULL},
	[DISTRIBUTION_SUSE] = {"sudo zypper install", NULL, "gcc-c++", NULL,
			       "zypper remove nvidia_peer_memory", NULL, NULL},
	[DISTRIBUTION_ARCH] = {"sudo pacman -S --needed", NULL, NULL, "base-devel", NULL, "gcc",
			       NULL},
};

void distribution_install(enum distribution d, const char *packages, struct strbuf *out)
{
	if (tools[d].install)
		strbuf_printf(out, "%s %s", tools[d].install, packages);
	else
		strbuf_printf(out, "install %s with the distribution's package manager", packages);
}

/*
 * They are named by the kernel flavour, the end of its release: "6.12.10-1-lts",
 * "6.4.0-150600.23-default".
 */
static const struct {
	enum distribution distribution;
	const char *kind, *package;
} kind_headers[] = {
	{DISTRIBUTION_ARCH, "-lts", "linux-lts-headers"},
	{DISTRIBUTION_ARCH, "-zen", "linux-zen-headers"},
	{DISTRIBUTION_ARCH, "-hardened", "linux-hardened-headers"},
	{DISTRIBUTION_ARCH, "", "linux-headers"},
	{DISTRIBUTION_SUSE, "", "kernel-default-devel"},
};

void distribution_headers(enum distribution d, const char *release, struct strbuf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(kind_headers); i++)
		if (kind_headers[i].distribution == d && strstr(release, kind_headers[i].kind)) {
			strbuf_puts(out, kind_headers[i].package);
			return;
		}
	strbuf_printf(out, "%s%s", tools[d].headers ? tools[d].headers : "the headers of ",
		      release);
}

void distribution_compiler(enum distribution d, const char *family, int major, struct strbuf *out)
{
	const char *start = strcmp(family, "clang") == 0 ? tools[d].clang : tools[d].gcc;

	if (start && major > 0)
		strbuf_printf(out, "%s%d", start, major);
	else
		strbuf_puts(out, family);
}

const char *distribution_package(enum distribution d, const char *program)
{
	static const char *const basic[] = {"make", "gcc", "g++", "ld", "patch"};

	for (size_t i = 0; tools[d].basics && i < ARRAY_LEN(basic); i++)
		if (strcmp(program, basic[i]) == 0)
			return tools[d].basics;
	if (strcmp(program, "g++") == 0 && tools[d].cxx)
		return tools[d].cxx;
	return strcmp(program, "ld") == 0 ? "binutils" : program;
}

const char *distribution_remove_old_peermem(enum distribution d)
{
	return tools[d].old_peermem;
}

const char *distribution_driver(enum distribution d)
{
	return d == DISTRIBUTION_NIXOS
		       ? "set nixpkgs.config.allowUnfree = true, services.xserver.videoDrivers = "
			 "[ \"nvidia\" ] and hardware.nvidia.open = true in the system's "
			 "configuration (/etc/nixos/configuration.nix), then `nixos-rebuild boot`, "
			 "and reboot"
		       : NULL;
}

/* ---- the initramfs ---- */

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

const struct initramfs_tool initramfs_tools[] = {
	/* Its dracut's output is read-only: it works in a snapshot. */
	{"transactional-update", WORDS("transactional-update", "initrd"),
	 WORDS("transactional-update", "initrd"), NULL, 1u << DISTRIBUTION_TRANSACTIONAL},
	{"update-initramfs", WORDS("update-initramfs", "-u"),
	 WORDS("update-initramfs", "-u", "-k", "all"), "update-initramfs -u -k",
	 1u << DISTRIBUTION_DEBIAN},
	{"dracut", WORDS("dracut", "--regenerate-all", "--force"),
	 WORDS("dracut", "--regenerate-all", "--force"), "dracut -f --kver",
	 1u << DISTRIBUTION_FEDORA | 1u << DISTRIBUTION_SUSE},
	{"mkinitcpio", WORDS("mkinitcpio", "-P"), WORDS("mkinitcpio", "-P"), NULL,
	 1u << DISTRIBUTION_ARCH},
};

const size_t initramfs_tool_n = ARRAY_LEN(initramfs_tools);

const struct initramfs_tool *distribution_initramfs(enum distribution d)
{
	for (size_t i = 0; i < initramfs_tool_n; i++)
		if (initramfs_tools[i].distributions & 1u << d)
			return &initramfs_tools[i];
	return NULL;
}

void initramfs_command(const struct initramfs_tool *t, const char *release, struct strbuf *out)
{
	if (t->one) {
		strbuf_printf(out, "%s %s", t->one, release);
		return;
	}
	for (size_t i = 0; t->all[i]; i++)
		strbuf_printf(out, "%s%s", i ? " " : "", t->all[i]);
}
