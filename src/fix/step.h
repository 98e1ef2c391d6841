/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a plan: one thing that is written or run on this host, with its way back. */
#pragma once

#include "base/texts.h"
#include "fix/host.h"

#include <stdint.h>

struct arena;
struct strbuf;

enum step_kind {
	STEP_FILE,     /* a file gets other content, appears or goes */
	STEP_REGISTER, /* bits of a 16-bit register in PCI configuration space */
	/* a file of sysfs that reads back what was written to it, as a number or text */
	STEP_ATTRIBUTE,
	STEP_BAR_SIZE, /* resourceN_resize, which takes a code and reads back a set of codes */
	STEP_TOOL,     /* a program of the distribution is run */
	/* a file that such a program makes: written next to it, checked, put in place */
	STEP_GENERATED,
	STEP_WORDS, /* the kernel's command line of the next boot, by the program that keeps it */
	STEP_ONE_SHOT, /* the boot loader's entry for the next boot alone, which it clears itself */
	/* words on a kernel command line: a boot entry's, or that of /etc/kernel/cmdline */
	STEP_OPTIONS,
	STEP_BLOCK, /* lines between two marks in a file; its other lines are a person's */
	STEP_ENTRY, /* an entry of a boot partition that is onehop's own */
	STEP_KIND_N
};

/*
 * All texts are the plan's. Paths are relative to the host's root, spelled as base/path.h says.
 *
 *  kind       target               at            old, new
 *  FILE       the file             -             its content; data NULL: no such file
 *  REGISTER   "0000:22:00.0"       "ACS+6"       `value`: 16 bits, of which only `mask` is compared
 *  ATTRIBUTE  the file             -             its text without white space at the ends
 *  BAR_SIZE   "0000:41:00.0"       "1"           `value`: MiB, read from the size of the BAR
 *  TOOL       NULL                 -             -
 *  GENERATED  the file             -             old: its content; new is known only once it is made
 *  WORDS      "rpm-ostree"         "iommu=pt"    "-iommu=pt", "+iommu=pt": not there, there
 *  ONE_SHOT   the file that has it "next_entry"  "", "onehop-trial": the entry's name in GRUB's
 *                                                environment block; or in systemd-boot's EFI variable,
 *                                                "LoaderEntryOneShot"
 *  OPTIONS    the file             "iommu=pt"    its content; `at` are the words that it lacked, and
 *                                                what undo takes away again, whatever is there then
 *  BLOCK      the file             -             its content; undo takes away what is between the marks
 *                                                then, whatever is around it
 *  ENTRY      the file             -             its content, old NULL; undo removes the file, whatever
 *                                                it holds then
 */
struct step {
	enum step_kind kind;
	const char *target, *at;
	struct bytes old, new;
	struct {
		unsigned old, new;
	} value; /* REGISTER, BAR_SIZE */
	/*
	 * OPTIONS of /etc/kernel/cmdline: names of the boot entries that were there. From those that
	 * kernel-install made of that file since undo takes the words too. NULL: no entries are made from it.
	 */
	const char *const *known;
	/* OPTIONS with `known`: the machine ID and kernel-install's token, as they were. NULL: not noted. */
	const char *const *own_names;
	/* The same, by step_prepare: names of unified kernel images that had words of the step before. NULL: not noted. */
	const char *const *known_images;
	/*
	 * WORDS, once its undo has begun: of each word of `at`, the copies that are somebody else's, one in a
	 * command line being the fix's. Only what is more than that is taken away, however often that is tried.
	 * NULL: not noted.
	 */
	const unsigned *keep;
	uint16_t mask; /* REGISTER */
	/* REGISTER, BAR_SIZE: vendor << 16 | device that must be at the address */
	uint32_t identity;
	/*
	 * REGISTER, by step_prepare: where the device is, bus numbers aside ("pci0000:20/00.0/01.0"),
	 * and the kinds of what is below it, right below first ("15b3:1979", "10de:2330"). NULL and none:
	 * nobody noted it.
	 */
	const char *place;
	struct texts below;
	/* FILE, GENERATED: of the copies that the journal has of them; NULL: none, or not noted there. */
	const char *old_sha256, *new_sha256;
	unsigned mode; /* FILE that appears or goes: its permissions, 0644 */
	/* FILE: the first folder on its way that was not there; by step_prepare */
	const char *made;
	/*
	 * TOOL, GENERATED, ONE_SHOT: the program (a name, looked up in the host's usual folders) and its words,
	 * NULL-ended; NULL: nothing is run in that direction, so that a step before and one after a
	 * FILE regenerate what depends on it in both directions. GENERATED: the word STEP_OUTPUT stands
	 * for the file to write. Undoing goes past errors: programs of one plan must not depend on
	 * each other, but for what needed_by_undo says.
	 */
	const char *const *argv, *const *undo_argv;
	/* TOOL: paths; the program of that direction is run only while its path is there. NULL:
	 * always. */
	const char *argv_if, *undo_if;
	/*
	 * FILE, TOOL: a link by which systemd starts the unit, and that was not there before. Of an image
	 * undo takes it away if it leads to the unit, because no program is run there. NULL: none.
	 */
	const char *link;
	/*
	 * GENERATED: passes if the new file is well formed; ONE_SHOT: prints nothing if the boot
	 * loader can clear it; NULL: none.
	 */
	const char *const *check_argv;
	/* GENERATED: what the new file must (not) hold; NULL: whatever */
	const char *expect, *expect_not;
	/*
	 * GENERATED: lines of the old content that its program makes from none of the files as they were,
	 * so that they are lost; NULL-ended. By fix_foresee, fix_foresee_undo; NULL: none, or not checked.
	 * ONE_SHOT, in the journal: those that confirming the trial was to lose when it began.
	 */
	const char *const *dropped;
	/*
	 * GENERATED, by fix_foresee, and not in the journal: what its program makes of the files as the steps before it
	 * leave them; else why that is unknown. Both NULL: it was not asked for.
	 */
	struct bytes foreseen;
	const char *unforeseen;
	const char *fails; /* that way too: why the step would fail; NULL: not known to */
	unsigned deadline_s;

	/* For people, in the plan and later in the journal. */
	/* "write /etc/modprobe.d/onehop.conf"; of a step that only runs when the fix is undone, what it does then. */
	const char *what;
	struct texts why;   /* what the change is for */
	struct texts rules; /* ids; none for what only serves another step */
	struct texts cost;  /* what is given up; none: nothing */
	bool reboot;        /* in force only after a reboot */
	bool again_at_boot; /* REGISTER: onehop does it again at each boot */
	bool passing;       /* TOOL: what it does is gone with a reboot */
	bool for_boot;      /* FILE: a boot loader reads it, with a driver that knows no journal */
	bool trial;         /* of a trial boot: taken back when the fix is confirmed */
	/* FILE, TOOL: steps behind it are undone with what it made, so it stays until all of them are. */
	bool needed_by_undo;
	bool to_do; /* it was not set yet when the fix began; journals of before do not say so */
};

#define STEP_OUTPUT "{output}"
/* How the first and the last line of a BLOCK begin. */
#define STEP_BLOCK_BEGIN "### BEGIN onehop"
#define STEP_BLOCK_END   "### END onehop"

struct plan_manual {
	const char *what, *how; /* what a person has to do, and the exact words */
	struct texts rules;
};

/* A change that is wanted, and that no step makes: it is not already set either. */
struct plan_left_out {
	struct texts what;
	const char *why;
	struct texts rules;
};

/* What is wanted in force after a reboot, so that `check` can tell: "kernel-parameter", "iommu=pt". */
struct plan_wanted {
	const char *kind, *value;
};

struct plan {
	struct arena *arena;
	struct step *steps;
	size_t step_n;
	struct plan_manual *manual;
	size_t manual_n;
	struct plan_left_out *left_out; /* not in the journal */
	size_t left_out_n;
	struct plan_wanted *wanted;
	size_t wanted_n;
	/*
	 * Of a plan with a trial boot: what is done when it is confirmed, as it would be now (not in
	 * the journal: it is planned again then), and what a healthy boot has as well: "driver"
	 * "0000:41:00.0 nvidia", "link" "eno1"; "failed" "x.service" failed before.
	 */
	struct step *on_confirm;
	size_t on_confirm_n;
	struct plan_wanted *baseline;
	size_t baseline_n;
	const char *no_trial; /* why there is none although one is wanted; NULL: no such reason */
	bool trial_unseen; /* that is a file which could not be read: root may find that there can be one */
	const char *
		unconfirmed; /* why no unit will confirm the trial; NULL: one will, or there is no trial */
	/* one sentence each: conflicting parameters and where they stand, ... */
	const char **notes;
	size_t note_n;
	const char **way_back; /* one line each: every way, and how without onehop */
	size_t way_back_n;
	/* the first of them, in a line; NULL: none; not in the journal */
	const char *way_back_line;
	/* Files that are as this plan wants them already, and those that a trial changes once it is
	 * confirmed: a fix that made one is not undone before this one. */
	const char **builds_on;
	size_t builds_on_n;
};

/* The text without what is between the marks. False: the last one is missing, and the rest too. */
bool step_block_remove(const char *text, struct strbuf *ret);

struct plan *plan_new(void);
void plan_free(struct plan *p);
bool plan_needs_reboot(const struct plan *p);
/* Its kernel parameters are for one boot until they are confirmed. */
bool plan_has_trial(const struct plan *p);
/* A file that is made again loses lines that somebody wrote into it. */
bool plan_drops_lines(const struct plan *p);
/* The first step, or the first that confirms its trial, that would fail; NULL: none is known to. */
const struct step *plan_failing_step(const struct plan *p);
/* Something to do, for onehop or for a person. */
bool plan_has_work(const struct plan *p);
/* Steps that do something when the plan is carried out; the others only serve undoing. */
size_t plan_doing_steps(const struct plan *p);
const struct step *plan_first_step(const struct plan *p); /* of them; NULL: there is none */
bool step_does(const struct step *s);                     /* when carried out */
bool step_undoes(const struct step *s);                   /* when undone */

/* ---- carrying out one step ---- */

enum step_state {
	STEP_IS_OLD,
	STEP_IS_NEW,
	STEP_IS_OTHER, /* neither: somebody else changed it */
	STEP_NOT_SEEN, /* a TOOL leaves nothing to look at */
	STEP_STATE_N
};

/*
 * Each returns 0 or a negative errno with a sentence that names the target; -ENODEV: no such device,
 * or another one at its address. `output` gets what a program printed. `ret_now` (may be NULL): what
 * is there, for messages, malloc'ed; NULL: nothing.
 * step_apply and step_undo write, and read back what they wrote; they do not look first. What is
 * there already (a register of a device that was taken out, a resource that a reboot gave back) is
 * the caller's to judge by step_read_state. Only the undo of GENERATED looks: what was installed is
 * replaced by the old bytes, anything else is made again by undo_argv.
 * -EBUSY of a step with content: another program has changed the file, or has it open to write; what that
 * one wrote stays, and nothing was changed.
 */
int step_read_state(struct fix_host *h, const struct step *s, enum step_state *ret, char **ret_now);
/* Before anything is written: -EBUSY if a virtual machine relies on what step_apply, which asks too,
 * would change. */
int step_allowed(struct fix_host *h, const struct step *s);
/* Before a register is done again at another boot: -ENODEV with a sentence if what is below the port
 * is of another kind than it was. */
int step_check_again(struct fix_host *h, const struct step *s);
/* Notes what undoing, and doing it again, have to know and only the host knows: permissions, folders
 * that are missing, where a port is. */
int step_prepare(struct fix_host *h, struct arena *a, struct step *s);
/* Before each try of an undo: notes what it has to leave, and a later try could not tell from the step's own. */
int step_prepare_undo(struct fix_host *h, struct arena *a, struct step *s);
/* GENERATED: makes and checks the new content, which the caller journals before step_apply installs
 * it. The others: nothing. */
int step_make(struct fix_host *h, struct arena *a, struct step *s, struct strbuf *output);
int step_apply(struct fix_host *h, struct step *s, struct strbuf *output);
int step_undo(struct fix_host *h, const struct step *s, struct strbuf *output);
/* Before the state of a step is read in which a run was killed: what that left next to its file. */
int step_settle(struct fix_host *h, const struct step *s);
/* Removes what the step has made besides its target. */
int step_tidy(struct fix_host *h, const struct step *s);

bool step_has_content(const struct step *s); /* FILE, GENERATED: old and new are a file's bytes */
bool step_is_program(const struct step *s);  /* TOOL, GENERATED */
bool step_is_volatile(const struct step *s); /* of the running system only: gone with a reboot */
bool step_in_memory(const struct step *s);   /* volatile, and in no file: no image has it */
bool step_in_image(const struct step *s);    /* can be done in an image: FILE, OPTIONS */
/* WORDS, OPTIONS: it is undone by what is there then, whatever else the target holds by now. */
bool step_by_parts(const struct step *s);
/* Whether both are about the same file, register, ... */
bool step_same_target(const struct step *a, const struct step *b);
bool step_has_value(const struct step *s); /* REGISTER, BAR_SIZE: old and new are numbers */
/* A value as the journal and people have it: "001d", or "256" MiB. */
void step_value_text(const struct step *s, unsigned value, struct strbuf *out);
/* The reverse: 0 or -EINVAL. */
int step_value_parse(const struct step *s, const char *text, unsigned *ret);

enum step_side { STEP_OLD_SIDE, STEP_NEW_SIDE };

/* The same step with only that side, as old and as new: what reads as new has it. */
struct step step_to_side(const struct step *s, enum step_side side);
/* One sentence without a full stop: what is there instead of the old or new content. */
void step_difference(const struct step *s, enum step_side expected, const char *now,
		     struct strbuf *out);
/*
 * Of what is neither as before nor as it was left: whether any of it is as the step wrote it. 1, 0 or a negative errno; 0 only
 * where a person has made something else of all of it.
 */
int step_holds_own(struct fix_host *h, const struct step *s);
/* Of STEP_OPTIONS that finds nothing to undo: where kernel-install would bring its words back; "": nowhere. */
void step_options_warning(struct fix_host *h, const struct step *s, struct strbuf *out);
/* Takes `words`, some of the step's, out of the entries that were made since, and leaves all else as it is. */
int step_options_take_since(struct fix_host *h, const struct step *s, const char *words,
			    struct strbuf *output);
/* FILE: "it still has "LINE" and 2 more lines of the fix"; nothing if no line of its own is in `now`. */
void step_remainder(const struct step *s, const char *now, struct strbuf *out);

const char *step_kind_word(enum step_kind k); /* "file", "register", ... */
int step_kind_parse(const char *word, enum step_kind *ret);
/* "pci=...": a step's words as a person would type them, quoted where a shell needs it. */
void step_command_line(const char *const *argv, struct strbuf *out);
/* The step's argv or undo_argv as a person would type it: STEP_OUTPUT is the file itself. */
void step_command(const struct step *s, const char *const *argv, struct strbuf *out);

/* WORDS: how many words it has. */
size_t step_word_count(const struct step *s);
/* WORDS: all that the kind has, to add these words by this program. */
void step_words_set(struct arena *a, struct step *s, const char *program, const char *const *words,
		    size_t n);
