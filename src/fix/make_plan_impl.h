/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the planner share; for make_plan.c and plan_*.c only. */
#pragma once

#include "fix/make_plan.h"
#include "fix/own_files.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/texts.h"
#include "machine/distribution.h"
#include "machine/line_keeper.h"
#include "machine/machine.h"

/* Files that others have lines in too, relative to the root. */
#define FILE_NCCL        "etc/nccl.conf"
#define FILE_KERNEL_LINE "etc/kernel/cmdline"

/* The shortest command line that a kernel takes whole is 2048 bytes (COMMAND_LINE_SIZE of x86), with a zero. */
enum { COMMAND_LINE_MAX = 2047 };

/* The order of the steps: what is done at once, then what stays; each later one may need the earlier. */
enum phase {
	PHASE_HARDWARE, /* registers, BARs */
	PHASE_STOP,     /* services stopped, modules unloaded */
	PHASE_START,    /* modules loaded, services started */
	PHASE_SETTINGS, /* files that nothing has to be made again for */
	PHASE_UNITS,
	PHASE_MODULES, /* modprobe's file, in the initramfs too */
	PHASE_BOOT,    /* the kernel's command line */
	PHASE_N
};

/* What something is done for: all of the changes that it serves. */
struct purpose {
	struct texts why, rules, cost;
	bool reboot;
};

/* A file that changes want other content of; several may add to it. */
struct planned_file {
	struct planned_file *next;
	const char *path;
	enum phase phase;
	bool there;
	const char *old; /* "" when it is not there */
	size_t old_size;
	const char *text; /* what it is to hold */
	struct purpose purpose;
};

struct steps {
	struct step *items;
	size_t n;
};

struct acs_port;
struct boot_entry;
struct boot_entries;
struct boot_way;
struct unread;

/* A word of the kernel's command line that is wanted there. */
struct wanted_word {
	const char *word;
	struct purpose purpose;
	bool acs;     /* made from what the line has: plan_acs_word says it for another line */
	bool differs; /* from what a boot entry gets in its place */
};

struct planner {
	const struct plan_request *request;
	const struct machine *m;     /* hardware, and what runs */
	const struct machine *files; /* distribution, modprobe.d: the image's where there is one */
	struct line_host line;       /* who keeps the kernel's command line, by the files of `s` */
	struct source *s;
	struct plan *plan;
	struct arena *a; /* the plan's */
	struct steps phases[PHASE_N];
	struct planned_file *file_list, **file_end;

	struct acs_port *acs;
	size_t acs_n;
	struct wanted_word *words;
	size_t word_n;
	const struct boot_way *way;         /* NULL: not looked for yet */
	const struct boot_entries *entries; /* NULL: not read yet */
	const char *
		line_note; /* on what later kernels get, unless a trial comes first; NULL: nothing */
	const char *dwords; /* "KEY=VALUE;...", wanted in NVreg_RegistryDwords; NULL: none */
	struct purpose dword_purpose;
	bool initramfs; /* holds a module that modprobe's file speaks of */

	struct unread *unread; /* files planned as if they were not there */
	size_t unread_n;
	/* What helps where it does not come up: in the boot menu, and without onehop. */
	const char **way_boot, **way_without;
	size_t way_boot_n, way_without_n;
	const char *way_medium; /* the one of way_boot from another system; NULL: none is */
};

/* ---- plan_text.c: what a plan is made of ---- */

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

void plan_note(struct planner *p, const char *fmt, ...) PRINTF_LIKE(2, 3); /* each sentence once */
void plan_manual(struct planner *p, struct texts rules, const char *what, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
void plan_want(struct planner *p, const char *kind, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Rules of what no rule wants. */
#define NO_RULES ((struct texts){0})
/* Something that is wanted, and not made; those with the same reason become one. */
void plan_left_out(struct planner *p, struct texts rules, const char *what, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
/* What to do in the boot menu where it does not come up; then how to take it back without onehop. */
void plan_way_boot(struct planner *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
void plan_way_without(struct planner *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* That undo is run on the tree at WAY_MEDIUM then. */
void plan_way_from_medium(struct planner *p, const char *why);
#define WAY_MEDIUM "/mnt"
void plan_way_finish(struct planner *p);
/* A by-hand entry for a change that cannot be made here. */
void plan_change_by_hand(struct planner *p, const struct change *c, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* "0000:22:00.0: ACS control 001d -> 0011" */
const char *plan_change_words(struct planner *p, const struct change *c);

void purpose_add(struct planner *p, struct purpose *to, const struct change *c);
void purpose_join(struct planner *p, struct purpose *to, const struct purpose *from);

/* NULL-ended. */
const char *const *plan_argv(struct planner *p, const char *first, ...) __attribute__((sentinel));
/* Valid until the next step of that phase is added. */
struct step *plan_step(struct planner *p, enum phase phase, enum step_kind kind,
		       const struct purpose *purpose, const char *fmt, ...) PRINTF_LIKE(5, 6);

/* There while systemd runs: of a disk that is only mounted, nothing has to be reloaded. */
#define PLAN_SYSTEMD_RUNS "run/systemd/system"

struct tool {
	const char *const *argv, *const *undo_argv; /* NULL: nothing in that direction */
	const char *argv_if, *undo_if, *link;       /* as struct step's */
	unsigned deadline_s;                        /* 0: 60 */
	bool passing;                               /* gone with a reboot */
};

/* In an image: what it would do, as a line for a person. */
void plan_tool(struct planner *p, enum phase phase, const struct tool *t,
	       const struct purpose *purpose, const char *fmt, ...) PRINTF_LIKE(5, 6);

/* ---- plan_files.c: what the host holds ---- */

enum there { THERE_NO, THERE_YES, THERE_UNKNOWN };

enum there plan_exists(struct planner *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
enum there plan_has_program(struct planner *p, const char *name);
/* The text of a file in the plan's arena; NULL: not there, or unknown; then *ret_there says. */
const char *plan_read(struct planner *p, enum there *ret_there, const char *path);
enum distribution plan_distribution(struct planner *p);
bool plan_is_debian_like(struct planner *p);
/* NixOS: files below /etc and units are a person's to configure, not onehop's to write. */
bool plan_etc_is_generated(struct planner *p);
bool plan_has_systemd(struct planner *p);
/* Whether something starts the unit at boot: a link in a folder .wants, or of a script in rcN.d. */
enum there plan_is_enabled(struct planner *p, const char *unit);

/*
 * The planned file of that path, with its old content; the same one for the same path. NULL: it is
 * there but holds no text, and what goes into it is left out.
 */
struct planned_file *plan_file(struct planner *p, const char *path, enum phase phase);
/* The same for a drop-in of onehop's own: an empty one begins with the header and `about`. */
struct planned_file *plan_drop_in(struct planner *p, const char *path, enum phase phase,
				  const char *about);
/*
 * Puts the line where one stands that starts with `key` (and ends there, goes on with a blank, or
 * key ends in '='), else at the end; NULL: takes those away.
 */
void plan_file_set_line(struct planner *p, struct planned_file *f, const char *key,
			const char *line);
/* The rest of the first such line, in the arena; NULL: none. */
const char *plan_file_line(struct planner *p, const struct planned_file *f, const char *key);
bool plan_file_changes(const struct planned_file *f);
/* Its step, if it changes. */
void plan_file_step(struct planner *p, const struct planned_file *f);
/* "sys/module/nvidia_peermem": what is there while it is loaded. */
const char *plan_module_folder(struct planner *p, const char *module);

/* One note for all files that could not be read. */
void plan_files_finish(struct planner *p);

#define PLAN_HEADER "# Written by onehop. \"onehop undo\" removes it.\n"

/* ---- the kinds of change ---- */

/* plan_acs.c */
void plan_acs_add(struct planner *p, const struct change *c);
void plan_acs_finish(struct planner *p);
/* The word that a kernel's command line needs in addition to what it has; NULL: it has it. */
const char *plan_acs_word(struct planner *p, const struct kernel *kernel, const char *line);
void plan_bar_size(struct planner *p, const struct change *c);

/* plan_boot.c: whether and how the kernel's command line can be changed here */
struct boot_way {
	enum line_keeper keeper;
	bool (*can)(struct planner *p);  /* NULL: always */
	void (*plan)(struct planner *p); /* all of the planner's words at once */
	bool by_hand;
	/* Plans a boot with all of the words. One clause: why there can be none; NULL: it is planned.
	 * May be NULL. */
	const char *(*trial)(struct planner *p);
	const char *why_no_trial; /* such a clause where `trial` is NULL; NULL: onehop has none */
};

/* GRUB's versions sort such entries in different ways, and start the first where they find no default. */
#define PLAN_NO_TRIAL_BLS                                                                          \
	"a copy of a boot entry that is a file (blscfg) might become GRUB's default"

const struct boot_way *plan_boot_way(struct planner *p);
/* One clause: why this word is a person's to add; NULL: it can be added. */
const char *plan_word_why_not(struct planner *p, const char *word);
void plan_boot_by_hand(struct planner *p);
struct wanted_word *plan_word_add(struct planner *p, const char *word,
				  const struct purpose *purpose);
/* A word that is not the same one in all boot entries. */
bool plan_words_differ(const struct planner *p);
void plan_parameter(struct planner *p, const struct change *c);
void plan_boot_finish(struct planner *p);
/* "iommu=pt pci=...", and what all of them are for. */
const char *plan_words(struct planner *p);
struct purpose plan_words_purpose(struct planner *p);
/* An entry for a person: how to set the kernel parameters, and why. */
void plan_words_by_hand(struct planner *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void plan_words_want(struct planner *p);
void plan_words_by(struct planner *p, const char *program);
/* "(hold Space at power-on if it is hidden)", behind the words "boot menu". */
const char *plan_menu_hint(struct planner *p);
/* "press e on the entry in the boot menu and ...", for that boot only; where the menu cannot edit, what else helps. */
void plan_way_edit(struct planner *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Takes a word out of the list, which is somewhere already. */
void plan_word_drop(struct planner *p, size_t i);

/* plan_trial.c: one boot with the words before they stay */
struct trial_start {
	size_t step_n, way_boot_n, way_without_n; /* before the words were planned */
};
struct trial_start plan_trial_start(const struct planner *p);
/* Keeps what was planned since for confirmation, and plans the trial in its place, if one is wanted. */
void plan_trial_finish(struct planner *p, const struct trial_start *start);
/* Steps of the trial; the unit that confirms it comes with them. */
const char *plan_trial_grub(struct planner *p);
const char *plan_trial_loader(struct planner *p); /* plan_trial_loader.c: systemd-boot */
/* The name of what systemd-boot starts by itself; of an unknown menu, what runs. NULL: unknown. */
const char *plan_loader_default(struct planner *p);
/* Seconds until a kernel that panics starts the machine again, without the parameters. */
#define TRIAL_PANIC "panic=30"
struct mount {
	const char *device, *type; /* "254:2", "ext4" */
	bool read_only;
};
/* Where an absolute path is; of those that are as deep, the last counts. */
bool plan_find_mount(struct planner *p, const char *path, struct mount *ret);

/* plan_cmdline.c: what the command line and the files that it comes from hold */
typedef void word_visitor(void *context, const char *word, const char *file, unsigned line);
/* What the boot loader's files will say, then the running line; `file` is absolute. "--" ends a line's. */
void plan_each_word(struct planner *p, word_visitor *visit, void *context);
/* Whether those files have a "--", behind which GRUB would put all that is added. */
bool plan_boot_has_dashes(struct planner *p, const char **ret_file, unsigned *ret_line);
/* /etc/default/grub and its drop-ins, below the root, in the order in which they are read. */
void plan_each_grub_file(struct planner *p, void (*visit)(void *context, const char *path),
			 void *context);
/* The words of a text up to a "--", as plan_each_word gives them; `file` NULL. */
void plan_each_word_of(struct planner *p, const char *text, word_visitor *visit, void *context);
/* The word is on that command line, and no later one is against it. */
bool plan_word_counts(struct planner *p, const char *line, const char *word);
/* Words that are on the running line, and count, need no step. */
bool plan_word_runs(struct planner *p, const char *word);
/* Notes about words that are against this one, with file and line. */
void plan_word_conflicts(struct planner *p, const char *word, struct texts rules);
bool plan_words_conflict(const char *word, const char *other);
bool plan_is_grub(struct planner *p);
bool plan_is_systemd_boot(struct planner *p);
bool plan_is_ostree(struct planner *p);
/* Whether a line other than a comment has this very word. */
bool plan_text_has_word(struct planner *p, const char *text, const char *word);
/* Whether plan_each_word found the boot loader's files, so that the running line adds nothing. */
bool plan_has_boot_files(struct planner *p);

/* plan_grubby.c */
void plan_grubby(struct planner *p);

/* plan_grub.c */
struct grub {
	const char *mkconfig, *check, *config;
	const char *reboot, *editenv, *probe;
};

/* The one whose programs are there, or most likely are. */
const struct grub *plan_grub_here(struct planner *p);
bool plan_grub_reads_drop_ins(struct planner *p);
void plan_grub_refresh(struct planner *p);
void plan_grub_drop_in(struct planner *p);
/* Takes out the words that a person's files have already, and says what they wait for. */
void plan_grub_drop_theirs(struct planner *p);

/* plan_grub_line.c */
/* What entries get of GRUB's files as these are now, in the order of the line; NULL: only a shell could tell. */
const char *plan_grub_line(struct planner *p);

/* plan_loader.c: systemd-boot */
/* The entries of the boot partitions, read once. */
const struct boot_entries *plan_boot_entries(struct planner *p);
bool plan_loader_has_entries(struct planner *p);
/* The command line that the running kernel's entry has, or else another of this system's; NULL: none. */
const char *plan_loader_line(struct planner *p);
/* Has kernel-install not read the trial boot's command line; `started` is the entry that it copies. */
void plan_loader_trial_line(struct planner *p, const struct boot_entry *started);
/* A value of its configuration, loader.conf; "": it has none. */
const char *plan_loader_setting(struct planner *p, const char *key);
void plan_loader_proxmox(struct planner *p);
void plan_loader_entries(struct planner *p);

/* plan_module.c */
void plan_module_option(struct planner *p, const struct change *c);
void plan_registry_dword(struct planner *p, const struct change *c);
void plan_module_blacklist(struct planner *p, const struct change *c);
void plan_module_unload(struct planner *p, const struct change *c);
void plan_module_finish(struct planner *p);

/* plan_unit.c */
struct unit {
	const char *name, *about;      /* "onehop-acs.service", and what it is for */
	const char *after, *condition; /* NULL: none */
	const char *first, *start, *stop;
	const char *nix; /* what of configuration.nix has the same effect */
	bool waits;      /* for something: what starts it does not wait for its end */
	bool early;      /* before all ordinary services */
	bool now;        /* started at once too */
};

/*
 * Onehop as ExecStart= names it: the program of the request, if it is installed. Never another one that is
 * found on the disk: that may be another version, or lead to a file that somebody else can replace. NULL: it
 * is not.
 */
const char *plan_own_program(struct planner *p);
void plan_unit(struct planner *p, const struct unit *u, const struct purpose *purpose);
void plan_module_load(struct planner *p, const struct change *c);
void plan_persistence(struct planner *p, const struct change *c);

/* plan_settings.c */
void plan_memlock(struct planner *p, const struct change *c);
void plan_nccl_setting(struct planner *p, const struct change *c);
void plan_settings_finish(struct planner *p);

/* What of the change is wanted here: its lifetime below the request's mask; nothing now in an image. */
unsigned plan_lifetime(const struct planner *p, const struct change *c);
