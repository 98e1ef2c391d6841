/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources of the releases look like, and what is edited in each kind, as tables. */
#pragma once

#include "machine/module_file.h"

#include <stdbool.h>
#include <stddef.h>

/* Named after the first release of its kind; which one a tree is, its content decides. */
enum era { ERA_535, ERA_545, ERA_565, ERA_575, ERA_580, ERA_590, ERA_N };

#define ERAS(a, b) (((1u << ((b) + 1)) - 1) & ~((1u << (a)) - 1)) /* from a to b */
#define ALL_ERAS   ERAS(ERA_535, ERA_590)

/* Something that some eras have and others do not. */
struct feature {
	const char *file, *function; /* function NULL: anywhere in the file */
	const char *pattern;
	const char *what; /* for people: "static BAR1 for Turing and later" */
	unsigned eras;
};

/* When a row counts, besides its eras: by what else the tree holds. */
enum condition {
	WHEN_ALWAYS,
	/* the tree does not ask the kernel itself how many arguments pci_resize_resource has */
	WHEN_NOT_ASKED,
	WHEN_BAR1_LINK, /* its managed-memory driver tells peers through BAR1 from others */
	WHEN_NO_BAR1_LINK,
	/* ... and drops what a GPU has cached of a peer when that is unmapped */
	WHEN_UNMAP_INVALIDATES,
	WHEN_N
};

struct condition_test {
	const char *file, *function, *pattern; /* as a feature's */
	bool is_there;
};
extern const struct condition_test condition_tests[WHEN_N];

struct anchor {
	const char *id;
	const char *file, *function;
	const char *pattern;
	unsigned count; /* how often it must be there */
	unsigned eras;
	enum condition when;
	/*
	 * What is put at the pattern's @, NULL: nothing, the row is only checked. A newline is followed
	 * by the white space of the line on which the pattern begins.
	 */
	const char *text;
	const char *why; /* of an edit: what it is for; of a check: what another count means */
};

extern const struct feature features[];
extern const size_t feature_n;
extern const struct anchor anchors[];
extern const size_t anchor_n;

struct era_name {
	const char *name;         /* "565" */
	const char *first, *last; /* releases of which it is known; for people only */
};
extern const struct era_name era_names[ERA_N];
/* The registry keys that trees of this era need. */
const char *era_keys(enum era e);
/* On any card; see struct release. */
bool era_untested(enum era e);
/* Whether no era has such a release, because it is too old. Only for advice: content decides. NULL: unknown, false. */
bool era_is_before_all(const char *release);

/* The file whose change switches everything on: it is replaced after all others but MARKER_FILE. */
#define SWITCH_FILE "src/nvidia/generated/g_kern_bus_nvoc.c"
/* What packages without the sources of the core have, too; its rows are those of all eras. */
#define KERNEL_OPEN "kernel-open/"
/* The file that gets the mark in the module. */
#define MARKER_FILE KERNEL_OPEN "nvidia/nv-pci.c"
/* What a tree of ours holds there, even if its manifest is lost. */
#define MARKER_PATTERN "MODULE_INFO ( onehop ,"
/* In nvidia-uvm.ko, where the edits are that keep managed memory off peers that it cannot encode. */
#define MANAGED_FUNCTION UVM_GATE
/* What a package's tree without the sources of the core has instead. */
#define PREBUILT_CORE "nvidia/nv-kernel.o_binary"
