/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distributions by os-release: the family, who may write its files, and the names of its packages
 * and tools.
 */
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
	/* SUSE with a read-only /usr and /boot: each change is a snapshot */
	DISTRIBUTION_TRANSACTIONAL,
	DISTRIBUTION_N
};

/* By ID=, else by the first known word of ID_LIKE=. */
enum distribution distribution_of(const struct kernel *k);

/* What differs within a family, so that ID= alone decides. */
struct distribution_habits {
	const char *id;            /* how ID= starts */
	const char *dkms_driver;   /* the driver's name in dkms status */
	const char *driver_source; /* source package of the open modules; NULL: none */
	bool dkms_moves_modules;   /* DKMS moves modules that are there before its own */
	bool signs_with_shim_key;  /* DKMS signs with the key of shim-signed, not one of its own */
};

/* Never NULL. */
const struct distribution_habits *distribution_habits(const struct kernel *k);

/* Where the open modules come from, for texts that know no machine. */
#define DISTRIBUTION_OPEN_MODULES                                                                  \
	"Debian: nvidia-open-kernel-dkms; Ubuntu: nvidia-driver-NNN-open; run file: "              \
	"--kernel-module-type=open"

/* How the driver is installed where it is not a package: a clause. NULL: as anywhere else. */
const char *distribution_driver(enum distribution d);

/* Each adds to `out`. */

/* "sudo apt install PACKAGES"; for an unknown family a sentence. */
void distribution_install(enum distribution d, const char *packages, struct strbuf *out);
/* The package with the headers of a kernel: "linux-headers-6.1.0-13-amd64". */
void distribution_headers(enum distribution d, const char *release, struct strbuf *out);
/* The package of gcc or clang in this major version; 0: any. */
void distribution_compiler(enum distribution d, const char *family, int major, struct strbuf *out);
/* The package of a build tool: "gcc-c++" for g++. */
const char *distribution_package(enum distribution d, const char *program);
/* "apt remove nvidia-peer-memory-dkms nvidia-peer-memory": of nv_peer_mem. NULL if unknown. */
const char *distribution_remove_old_peermem(enum distribution d);

/* A program that rebuilds initramfs images. */
struct initramfs_tool {
	const char *program;
	/*
	 * The commands rebuild for all kernels: the one that boots next may be newer than the
	 * running one, and in an image none runs. dracut can rebuild only for the running one or
	 * for all. `one`: for the kernel whose release follows; NULL if the program can only
	 * rebuild all.
	 */
	const char *const *next, *const *all;
	const char *one;
	/* that have it where the programs cannot be listed: 1 << enum distribution */
	unsigned distributions;
};

extern const struct initramfs_tool initramfs_tools[];
extern const size_t initramfs_tool_n;
/* NULL on NixOS, or if unknown. */
const struct initramfs_tool *distribution_initramfs(enum distribution d);
/* "update-initramfs -u -k RELEASE" */
void initramfs_command(const struct initramfs_tool *t, const char *release, struct strbuf *out);
