/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions by the words of os-release: what family one belongs to, who may write its files, and what
 * its packages and tools are called. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct kernel;
struct strbuf;

enum distribution {
	DISTRIBUTION_OTHER,
	DISTRIBUTION_DEBIAN,
	DISTRIBUTION_FEDORA,
	DISTRIBUTION_SUSE,
	DISTRIBUTION_ARCH,
	DISTRIBUTION_NIXOS, /* /etc, boot entries and units are made from configuration.nix */
	DISTRIBUTION_TRANSACTIONAL, /* SUSE with a read-only /usr and /boot: each change is a snapshot */
	DISTRIBUTION_N
};

/* By ID=, else by the first word of ID_LIKE= that is known. */
enum distribution distribution_of(const struct kernel *k);

/* Each adds to `out`. */

/* "sudo apt install PACKAGES"; of an unknown family a sentence. */
void distribution_install(enum distribution d, const char *packages, struct strbuf *out);
/* The package with the headers of a kernel: "linux-headers-6.1.0-13-amd64". */
void distribution_headers(enum distribution d, const char *release, struct strbuf *out);
/* The package of gcc or clang in this major version; 0: any. */
void distribution_compiler(enum distribution d, const char *family, int major, struct strbuf *out);
/* The package of a program that builds need: "gcc-c++" for g++. */
const char *distribution_package(enum distribution d, const char *program);
/* "apt remove nvidia-peer-memory-dkms nvidia-peer-memory": of nv_peer_mem. NULL: not known. */
const char *distribution_remove_old_peermem(enum distribution d);

/* A program that rebuilds initramfs images. */
struct initramfs_tool {
	const char *program;
	/*
	 * For the kernel that boots next, which is not the one that runs if a newer one was installed; and for
	 * all, since yet another may have been, and in an image none runs. dracut can do only the running
	 * one's or all. `one`: for the kernel whose release follows; NULL: it can only do all.
	 */
	const char *const *next, *const *all;
	const char *one;
	unsigned
		distributions; /* that have it where the programs cannot be listed: 1 << enum distribution */
};

extern const struct initramfs_tool initramfs_tools[];
extern const size_t initramfs_tool_n;
/* NULL: of NixOS, or not known. */
const struct initramfs_tool *distribution_initramfs(enum distribution d);
/* "update-initramfs -u -k RELEASE" */
void initramfs_command(const struct initramfs_tool *t, const char *release, struct strbuf *out);
