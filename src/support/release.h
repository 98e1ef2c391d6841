/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver release knows of P2P: its registry keys and their good values, and its traps. */
#pragma once

#include "machine/machine.h"

/* Releases are named by their first number, 580 of "580.159.04". A row holds up to the next one. */
struct release {
	int from;
	/* that switch P2P through BAR1 on, "ForceP2P=0x211;..."; NULL: not known */
	const char *keys;
	/* RMForceP2PType=2 chooses BAR1, for every GPU and in place of NVLink; later releases have
	 * RMPcieP2PType for that, and 2 means NVLink alone. */
	bool old_type;
	/* The CPU's mappings of memory need room in BAR1 in addition to the static mapping of all of it. */
	bool cpu_needs_room;
	/* With ForceP2P the resource manager reports BAR1 whether or not anything is mapped. */
	bool forced_caps;
	/* On any card: no owner of one has published results with a driver that was edited so. */
	bool untested;
	/* BAR1 maps memory behind what a console holds, and peers are not told. */
	bool console_shifts;
	/* onehop's edit, from mark 2 on, has the driver refuse a pair that has neither mailboxes nor
	 * BAR1, whatever ForceP2P says. */
	bool edit_denies;
	/* the resource manager writes page table entries for BAR1 peers itself */
	bool bar1_entries;
	bool uvm_bar1; /* the unified-memory module knows BAR1 peers */
};

/* Never NULL: before the first release that was read, a row without keys. */
const struct release *release_find(int release);
const struct release *release_table(size_t *ret_n);
/* Releases whose sources were read. Others are judged by what they contain, and said to be not tried. */
bool release_tried(int release);
/* The newest of them. */
int release_newest(void);

const struct release *driver_release(const struct nvidia_driver *d);

/* ---- registry keys ---- */

/* What a key must hold for P2P through BAR1. */
struct registry_key {
	const char *key;
	int from, to;            /* releases */
	int64_t mask, low, high; /* value & mask is from low to high */
	bool may_lack;           /* 0 is as if it were not set */
};

const struct registry_key *registry_key_table(size_t *ret_n);
bool registry_key_counts(const struct registry_key *k, int release);
bool registry_key_is_good(const struct registry_key *k, struct fact_int value);
/* Every key of this release has a good value for this card: 1, 0, or unknown. */
struct fact_int registry_keys_good(const struct nvidia_driver *d, const struct gpu *g);

/* Which way over PCIe the keys ask for. */
enum bar1_choice {
	BAR1_NOT_CHOSEN,
	BAR1_AUTO,   /* where it can be mapped; mailboxes, where the card has them, otherwise */
	BAR1_CHOSEN, /* and nothing else */
};

enum bar1_choice registry_bar1_choice(const struct nvidia_driver *d, const struct gpu *g);
/* RMForceP2PType asks for NVLink alone, in a release whose predecessors meant BAR1 by that value. */
bool registry_means_nvlink(const struct nvidia_driver *d, const struct gpu *g);

/* The keys that force P2P or choose BAR1 are not the same for these two. The driver takes the first from
 * either card and the second from the one that it numbers first. */
bool registry_keys_one_sided(const struct nvidia_driver *d, const struct gpu *a,
			     const struct gpu *b);

/* A pair of cards of which one has no mailbox, and the other no keys, is refused by the modules that run
 * or, with `edited`, by those that onehop would make; without that the driver says yes to it. */
bool driver_denies_half_pairs(const struct nvidia_driver *d, bool edited);

/* ---- CUDA's library ---- */

/*
 * It works with the module of its own release. One of a later branch may be of the compatibility package,
 * which works with older modules and leaves NVML's library as it was.
 */
enum library_fit {
	LIBRARY_FITS,
	/* or nothing tells that it does not */ LIBRARY_MAY_FIT,
	LIBRARY_REFUSES
};

enum library_fit driver_library_fit(const struct nvidia_driver *d);
/* NVML's library is of another release than the module, too or alone. */
bool driver_nvml_differs(const struct nvidia_driver *d);

/* ---- lock-ups ---- */

/* A machine that locked up with edited modules, as its owner reported it: a hint, not a proof. */
struct lockup {
	int release;      /* of the driver */
	int kernel;       /* and the kernel's major number; later ones count too */
	const char *what; /* a clause */
	const char *reference;
};

/* NULL: none is known for this kernel, "7.0.4+deb14-amd64"; or, with NULL, for any. */
const struct lockup *driver_lockup(const struct nvidia_driver *d, const char *kernel);

/* ---- onehop's edits ---- */

/*
 * The mark "onehop=unlock N" that this onehop puts into the nvidia modules that it edits. Those of a
 * smaller N have faults that later edits do not have: docs/unlock.md. It counts with each change of the edits.
 */
#define EDIT_MARK "unlock 2"

/* "unlock 12" is 12; 0: it is not such a mark. What follows the number does not count. */
int edit_number(const char *mark);

/*
 * The edit of the module on disk is an earlier onehop's: 1, or 0, also where onehop made none.
 * Unknown if not collected.
 */
struct fact_int driver_edit_is_old(const struct nvidia_driver *d);

/* The module that runs is edited, the one that the next boot takes is not. */
bool driver_loses_edit(const struct nvidia_driver *d);

/* ---- other traits of releases ---- */

/* The resource manager's "pcie-bar1" for these two means that BAR1 can be used. */
bool driver_means_bar1(const struct machine *m, size_t initiator, size_t target);
#define RELEASE_OPEN    515
#define RELEASE_PEERMEM 470
bool release_has_open_modules(int release);
bool release_has_peermem(int release); /* the package brings nvidia-peermem */
/* NVIDIA's driver looks at the PCI tree before it exports GPU memory: from 580.65.06 on, the first 580. */
bool release_checks_grdma(int release);
bool release_explains_dr(int release); /* nvidia-smi's legend has a line for DR */
