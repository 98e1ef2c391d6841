/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of delivery.h share. */
#pragma once

#include "machine/distribution.h"
#include "unlock/delivery.h"
#include "unlock/delivery_conf.h"
#include "unlock/dkms.h"
#include "unlock/unlock.h"

struct delivery_facts {
	const struct delivery_request *r;
	struct source *s;
	struct machine *m;
	const struct unlock_requirements *requirements;
	struct arena *a; /* the machine's */
	struct delivery *d;
	enum distribution distribution;
	struct unlock *u;    /* the sources; NULL: none, or refused */
	const char *refused; /* why they were; NULL: they were not */
	const char *installed,
		*installed_from; /* release of the driver that is here; NULL: not known */
	/* Of an image's kernel: its modules.dep, its nvidia module's release, its path if it is closed. */
	const char *image_dep, *image_version, *image_closed;

	/* What the search for a DKMS tree found. */
	struct dkms_conf conf;     /* of the tree that was taken */
	bool dkms_listed;          /* the system's list of trees could be read, or there is none */
	const char *closed;        /* a tree of the proprietary modules of this release */
	const char *hostile;       /* a name that is not plain, printable */
	const char *odd;           /* a tree of this release, and why it is not taken */
	const char *patch_trouble; /* why the patch for it cannot be made */
};

/* ---- delivery_facts.c ---- */

/* Options are all that the cards need: no tree comes into it. */
bool delivery_is_options_alone(const struct delivery_facts *l);

/* Whether something is there, file, folder or link: 1, 0, or -1 if it cannot be told. */
int delivery_has(const struct delivery_facts *l, const char *path);
/* A text of the system; NULL: not there, or not readable. The caller frees. */
char *delivery_text(const struct delivery_facts *l, const char *path, size_t *ret_size);
const char *delivery_format(const struct delivery_facts *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A text with what is not printable replaced. */
const char *delivery_printable(const struct delivery_facts *l, const char *text);

/* ---- delivery_tree.c ---- */

void delivery_find_tree(struct delivery_facts *l);
/* dpkg's package that a file is of, or, with a slash at its end, files of a folder; without the first
 * slash. NULL: none of the driver's. */
const char *delivery_owner(const struct delivery_facts *l, const char *path);

/* ---- delivery_patch.c: contents of the files ---- */

void delivery_contents(struct delivery_facts *l);

/* ---- delivery_checks.c ---- */

void delivery_checks(struct delivery_facts *l);
void delivery_say(struct delivery_check *c, enum check_state state, const char *found,
		  const char *remedy);
/* In the folders that hold a system's programs; as delivery_has. */
int delivery_has_program(const struct delivery_facts *l, const char *name);
/* The distribution's command that installs packages. */
const char *delivery_install_command(const struct delivery_facts *l, const char *packages);

/* ---- delivery_system.c: checks of the kernel, its compiler, its signatures, the disks ---- */

void delivery_check_kernel(struct delivery_facts *l, struct delivery_check *c);
void delivery_check_headers(struct delivery_facts *l, struct delivery_check *c);
void delivery_check_compiler(struct delivery_facts *l, struct delivery_check *c);
void delivery_check_signature(struct delivery_facts *l, struct delivery_check *c);
void delivery_check_disk(struct delivery_facts *l, struct delivery_check *c);

/* ---- delivery_download.c ---- */

/* The tree that --download means, once the release is known: fetched before, or to be fetched. */
void delivery_find_download(struct delivery_facts *l);
void delivery_check_download(struct delivery_facts *l, struct delivery_check *c);

/* ---- delivery_upgrades.c ---- */

void delivery_check_automatic(struct delivery_facts *l, struct delivery_check *c);

/* ---- delivery_disk.c ---- */

/*
 * Free bytes for root on the file system of a path below a root, or of the nearest folder above it
 * that is there; *ret_device tells file systems apart. A negative errno.
 */
int disk_free(const char *root, const char *path, int64_t *ret_bytes, uint64_t *ret_device);

/* ---- delivery_holders.c ---- */

void delivery_find_holders(struct delivery_facts *l);
