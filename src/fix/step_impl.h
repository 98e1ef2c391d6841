/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of step share; for step*.c only. */
#pragma once

#include "fix/step.h"

/* NULL: this kind has nothing to do there. */
struct step_ops {
	const char *word;
	bool program, in_system; /* in_system: of the running system only, gone with a reboot */
	bool in_file;            /* in_system, but in a file, which an image has too */
	bool in_image; /* a file below the root, so that it can be done in a mounted image too */
	bool by_parts; /* goes by parts of what is there: some of them are not drift when undoing */
	bool reads_back; /* by itself, in both directions */
	int (*read_state)(struct fix_host *h, const struct step *s, enum step_state *ret,
			  char **ret_now);
	int (*prepare)(struct fix_host *h, struct arena *a, struct step *s);
	int (*prepare_undo)(struct fix_host *h, struct arena *a, struct step *s);
	int (*allow)(struct fix_host *h, const struct step *s);
	int (*make)(struct fix_host *h, struct arena *a, struct step *s, struct strbuf *output);
	int (*apply)(struct fix_host *h, const struct step *s, struct strbuf *output);
	int (*undo)(struct fix_host *h, const struct step *s, struct strbuf *output);
	/* What a run that was killed in this step left next to its file. */
	int (*settle)(struct fix_host *h, const struct step *s);
	int (*tidy)(struct fix_host *h, const struct step *s);
	int (*holds_own)(struct fix_host *h, const struct step *s); /* NULL: always */
};

/* Runs argv with the file at `path`, below the root, in place of STEP_OUTPUT. */
int step_run_filled(struct fix_host *h, const struct step *s, const char *const *argv,
		    const char *path, struct strbuf *output);
/* 0, or -EIO with a sentence: it is not what a GENERATED step's program is to make in that direction. */
int step_check_made(const struct step *s, bool undoing, const char *data, size_t size);
/* As a word of a grub.cfg's own entries (grub_own_entries): what is around it does not belong to it. */
bool step_holds_word(const char *text, const char *word);

extern const struct step_ops step_file_ops, step_generated_ops, step_words_ops, step_options_ops,
	step_block_ops, step_entry_ops;
extern const struct step_ops step_register_ops, step_bar_size_ops, step_attribute_ops;
extern const struct step_ops step_one_shot_ops;

/*
 * The same of a step that goes by parts of a text: `rest` gives a text without what is the step's, and the caller frees that.
 * Two texts that differ only by the step's parts are both its own, whoever has edited the rest before. `path`: of the file by now.
 */
typedef char *rest_of(const struct step *s, const char *text);
int step_settle_parts(struct fix_host *h, const struct step *s, const char *path, rest_of *rest);

/* Notes the first folder on the way to the target that is not there: NULL if all are. */
int step_note_made(struct fix_host *h, struct arena *a, struct step *s);
/* Removes the folders that were made for a new file, from the innermost on, while they are empty. */
int step_remove_made(struct fix_host *h, const struct step *s);

/* -ENXIO with a sentence: the folder of a boot partition is not there. */
int step_not_mounted(const char *folder);
#define STEP_DEVICES "sys/bus/pci/devices"
/* The link of a device's folder of sysfs, or below it ("/driver"); -ENOENT: there is none, or it is not
 * a link. The caller frees. */
int step_device_link(struct fix_host *h, const char *device, const char *rest, char **ret);
/* -ENODEV with a sentence if there is no device, or another one than the step is about. */
int step_check_device(struct fix_host *h, const struct step *s);
/* Notes the step's place and what is below it, as far as sysfs shows it. */
int step_note_place(struct fix_host *h, struct arena *a, struct step *s);
/* -ENODEV with a sentence if the address leads to another place than was noted. */
int step_check_place(struct fix_host *h, const struct step *s);
/*
 * -EBUSY with a sentence if a device below the switch of the port `target` is bound to a driver that
 * gives it to virtual machines. Looked at in sysfs; where its folders are not links, there is none.
 */
int step_check_guests(struct fix_host *h, const struct step *s);
