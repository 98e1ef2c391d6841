/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing an edited driver into this system: what is here, what is in the way, what goes where. */
#pragma once

#include "unlock/requirements.h"

struct arena;
struct download;
struct download_watch;
struct fix_host;
struct source;

enum delivery_way {
	DELIVER_OPTIONS,   /* module options alone */
	DELIVER_INTO_DKMS, /* the driver's own DKMS tree gets the edited core and a patch */
	DELIVER_OWN_DKMS,  /* a DKMS tree of ours, where the driver has none */
	DELIVERY_WAY_N
};

enum check_state {
	CHECK_GOOD,
	CHECK_BAD,  /* it would not work: nothing is begun */
	CHECK_NOTE, /* worth knowing, or not to be seen from here */
	CHECK_STATE_N
};

/* What was looked at before anything is begun: "disk", "41 GB free in ...", and what would help. */
struct delivery_check {
	const char *what, *found;
	enum check_state state;
	const char *remedy; /* commands, a line each; NULL: none */
};

/* A tree that DKMS builds the driver from. */
struct dkms_tree {
	const char *name, *version; /* "nvidia-current-open", "535.261.03" */
	const char *folder;         /* "usr/src/nvidia-current-open-535.261.03", below the root */
	/* It holds the whole release, src/ and kernel-open/: DKMS builds the core too. */
	bool whole;
	const char *module;  /* file name of nvidia.ko in it, "nvidia-current-open" */
	const char *uvm;     /* and of nvidia-uvm.ko; NULL: it builds none */
	const char *package; /* that owns it, "nvidia-open-kernel-dkms"; NULL: none, or not known */
};

/* Who has a device file of the driver open. */
struct gpu_holder {
	int pid;
	const char *name; /* "Xorg" */
	const char *unit; /* systemd unit whose stop frees it, "gdm.service"; NULL: not known */
};

struct delivery_request {
	const char *root; /* of the system, "/"; NULL: a recording, its disks are not looked at */
	const char *sources; /* folder of the tree, absolute; NULL: none was named */
	/* NVIDIA's repository or a mirror, to fetch the tree from where none was named; NULL: no. */
	const char *repository;
	const char *kernel; /* release that modules are for; NULL: the one that runs */
	bool image;         /* no cards are judged, and nothing here runs the driver */
};

/* Ours, by name: a DKMS tree, the core in a tree of the driver's, the patch with it. */
#define DELIVERY_OWN_NAME "onehop-nvidia"
#define DELIVERY_CORE     "nvidia/nv-kernel-onehop.o_binary"
#define DELIVERY_PATCH    "onehop-p2p.patch"

/* All texts are the machine's arena's. Paths of the system are below its root, without the first slash. */
struct delivery {
	enum delivery_way way;
	const char *kernel; /* NULL: not known, which a check says */
	/* of the driver: the tree's, and the one that is installed; NULL: not known */
	const char *release;
	const char *sources;       /* with a download: where it will be */
	struct download *download; /* that has to come first; NULL: none */
	bool built;                /* the tree's core is built and is edited */
	/* In the tree, absolute, be they built or not: nv-kernel.o, nv-modeset-kernel.o. */
	const char *core_built, *modeset_built;
	struct dkms_tree dkms; /* the driver's, or ours; name NULL: neither is of use here */
	const char *core;  /* INTO_DKMS: where the core goes; NULL: nowhere, the tree is whole */
	const char *patch; /* INTO_DKMS: content of patches/onehop-p2p.patch */
	const char *patch_file;
	const char *patch_array; /* INTO_DKMS: content of etc/dkms/NAME-VERSION.conf */
	const char *patch_array_file;
	const char *dkms_conf; /* OWN_DKMS: content of dkms.conf */
	const char *dkms_conf_file;
	bool in_place; /* those texts are there, word for word */
	/* Another edit of onehop's lies there. */
	bool others;
	/* Fixes that brought that in, the last one first: they are undone before this is brought in. */
	const unsigned *earlier;
	size_t earlier_n;
	struct delivery_check *checks;
	size_t check_n;
	bool blocked; /* one of them is bad */
	/* Below the root, there or not yet: DKMS signs with its key. NULL: no module is built. */
	const char *certificate;
	bool enrolled; /* the firmware is known to have it */
	struct gpu_holder *holders;
	size_t holder_n;
	bool holders_known; /* false: processes of others could not be looked at */
};

/*
 * Reads only. `s` is the system's files, `need` what unlock_requirements said of it. A negative errno with a
 * sentence only where nothing can be said at all (the tree cannot be read); everything else is a check.
 */
int delivery_look(const struct delivery_request *r, struct source *s, struct machine *m,
		  const struct unlock_requirements *requirements, struct delivery **ret);

/* Asks the server for delivery.download, where there is one, and says what it answers in that check. */
void delivery_ask_download(const struct delivery_request *r, struct delivery *d,
			   const struct download_watch *w, struct arena *a);

/*
 * Looks whether the tree of --download that was fetched before, delivery.sources, is still what was fetched,
 * and says in the check of the sources where it is not: root runs its makefile.
 */
void delivery_check_fetched(struct fix_host *h, struct delivery *d, struct arena *a);

const char *delivery_way_word(enum delivery_way w); /* "options", "into-dkms", "own-dkms" */
