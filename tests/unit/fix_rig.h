/* SPDX-License-Identifier: Apache-2.0 */
/* A scratch root to be changed by fix/, plans for it, and failures at any point. */
#pragma once

#include "base/strbuf.h"
#include "fix/fix.h"

#define RIG_DEVICE    "0000:22:00.0"
#define RIG_OTHER     "0000:23:00.0"
#define RIG_KNOB      "sys/kernel/knob"
#define RIG_ID        "0123456789abcdef0123456789abcdef"
#define RIG_ENTRY     "efi/loader/entries/" RIG_ID "-6.1.conf"
#define RIG_COUNTED   "efi/loader/entries/" RIG_ID "-6.2+3.conf" /* by boot counting */
#define RIG_OWN_ENTRY "efi/loader/entries/_-onehop-trial.conf"
#define RIG_LINE      "etc/kernel/cmdline"

struct rig {
	char root[64];
	struct fix_host host;
	struct fix_run run;
	uint64_t random; /* state of the generator */

	/* What happens at the point that is number fail_at, from 0 on; -1: nothing. */
	long points, fail_at;
	bool stays; /* from there on all of them, as with a disk that is full */
	bool kill;  /* not an error, but SIGKILL */
	int error;

	/*
	 * Another program, that is at work right before the point that is number write_at; -1:
	 * none.
	 */
	long write_at;
	void (*write)(struct rig *g);
	bool wrote;

	const char *language; /* that "make-grub" runs in; NULL: none */

	/* What was told. */
	size_t events[FIX_EVENT_N];
	struct strbuf texts; /* one line each */
};

void rig_open(struct rig *g, uint64_t seed); /* with rig_reset */
void rig_close(struct rig *g);
/* For a test's setup and teardown: *state is a rig of its own. 0. */
int rig_setup(void **state, uint64_t seed);
int rig_teardown(void **state);
/* The tree as it was: files, devices, boot ID; no journal. */
void rig_reset(struct rig *g);
/* The journal and second names go; all else is as it was already. */
void rig_forget(struct rig *g);
unsigned rig_random(struct rig *g, unsigned below);
/* The number in the environment variable `name`; `otherwise` if it is not set. */
unsigned rig_rounds(const char *name, unsigned otherwise);
/* From now on the n-th point fails; -1: none. */
void rig_fail(struct rig *g, long n, int error);
void rig_fail_from(struct rig *g, long n, int error); /* all from the n-th on */
/* From now on another program writes right before the n-th point. */
void rig_write_at(struct rig *g, long n, void (*write)(struct rig *g));
void rig_listen(struct rig *g); /* forgets what was told */

void rig_put(const struct rig *g, const char *path, const char *text);
void rig_remove(const struct rig *g, const char *path);
bool rig_exists(const struct rig *g, const char *path);
char *rig_get(const struct rig *g, const char *path); /* NULL: not there */
/* A log as it was before its lines were chained; the caller frees. */
char *rig_unchained(const char *log);
unsigned rig_register(const struct rig *g, const char *device);
void rig_set_register(const struct rig *g, const char *device, unsigned value);
/* How many second names (HOST_OLD) the file has. */
size_t rig_second_names(const struct rig *g, const char *path);
/* Which of the plan's files is neither old nor new, byte for byte; NULL: none. The caller frees. */
char *rig_torn(const struct rig *g, const struct plan *p);
/* All there is, with content, permissions and owners; not the journal nor second names. */
char *rig_tree(const struct rig *g);
/* Where it is not as `expected`, from the first line that differs on; NULL: it is. */
char *rig_tree_differs(const struct rig *g, const char *expected);

/*
 * Runs it in a child that is killed at its n-th point. False: it has fewer, and came to its end;
 * ends the test program if it came to another one.
 */
bool rig_run_killed(struct rig *g, struct plan *p, void (*run)(struct rig *g, struct plan *p),
		    long n);

#define AUTO_PLAN CLEANUP(rig_drop_plan)
void rig_drop_plan(struct plan **p);

/* ---- programs ---- */

/* A program of the host, by its name; gives its exit status. */
struct stand_in {
	const char *name;
	int (*run)(void *context, const char *const *argv);
};

/* What "make-grub" makes of the files there are; the caller frees. */
char *rig_grub_text(const struct rig *g);

/* A moment of a stand-in at which it can be cut short: negative if it is to fail. */
int rig_point(struct rig *g);
/* As a fix_runner does; the table is NULL-name ended. */
int rig_run(const struct stand_in *programs, void *context, const char *const *argv,
	    struct strbuf *output, int *ret_status);

/* ---- plans; texts are copied ---- */

struct step *rig_file(struct plan *p, const char *path, const char *old, const char *new);
struct step *rig_acs(struct plan *p, const char *device, const char *old, const char *new);
struct step *rig_attribute(struct plan *p, const char *old, const char *new);
/* A program that sets run/switch; undone by setting it back. */
struct step *rig_switch(struct plan *p, const char *old, const char *new);
/* etc/modprobe.d/x.conf between two runs of the program that makes boot/initrd from it in place. */
void rig_initrd(struct plan *p, const char *old, const char *new);
/*
 * etc/default/gen.cfg between two steps that make boot/grub/grub.cfg, which names etc/kernel too.
 */
void rig_grub(const struct rig *g, struct plan *p, const char *old, const char *new);
/* Adds the words to all of the rig's entries, and to etc/kernel/cmdline, as those texts are now. */
void rig_words(const struct rig *g, struct plan *p, const char *words);
/* 1 to 12 steps and brackets over all of the above; on FAT, or not. */
struct plan *rig_random_plan(struct rig *g);
/* One of each, and a file that changes twice, one in new folders, one that goes. */
struct plan *rig_rich_plan(struct rig *g);
bool rig_only_programs(const struct plan *p);
