/* SPDX-License-Identifier: Apache-2.0 */
/* What each GPU of a machine needs for peer-to-peer over PCIe: nothing, options, an edited driver. */
#pragma once

#include "machine/machine.h"

/* Where NVIDIA publishes the sources; each release is a tag. */
#define PUBLIC_REPOSITORY "https://github.com/NVIDIA/open-gpu-kernel-modules"

/* What is to be done; of a machine the first of these that one of its cards has. */
enum unlock_action {
	ACTION_REPLACE,  /* edited modules run whose edit does harm: today's in their place */
	ACTION_PATCH,    /* edited modules, and options */
	ACTION_REBUILD,  /* edited modules run, the next boot loads those on disk, which are not */
	ACTION_RELOAD,   /* edited modules lie on disk: they are to be loaded */
	ACTION_OPTIONS,  /* module options alone */
	ACTION_REFUSED,  /* neither would do: something else has to change first */
	ACTION_UNKNOWN,  /* a fact is missing */
	ACTION_IN_FORCE, /* done */
	ACTION_NOTHING,  /* the driver has it as it is */
	ACTION_N
};

/* Modules have to be edited and built. */
static inline bool action_builds(enum unlock_action n)
{
	return n == ACTION_REPLACE || n == ACTION_PATCH || n == ACTION_REBUILD;
}

static inline bool action_is_none(enum unlock_action n)
{
	return n == ACTION_NOTHING || n == ACTION_IN_FORCE;
}

struct card_requirement {
	const struct gpu *gpu;
	enum unlock_action action;
	bool wants_options;    /* or has them */
	const char *id;        /* of the row of the table that decided: "bar1-small" */
	const char *why;       /* a sentence without its full stop */
	const char *change;    /* refused or unknown: what would have to change; NULL else */
	const char *reference; /* where that stands */
	/* In force or nothing needed, and yet the chain has pairs of it that do not work: which, and
	 * why, a clause; NULL: none. */
	const char *obstacle;
};

/* A command, or lines for a file, and what it is for. */
struct requirement_step {
	const char *what;
	const char *text; /* lines; NULL: `what` says it all */
};

/*
 * One option of module nvidia. NVreg_RegistryDwords holds a list of keys, each of which is an option of
 * its own here; NVreg_RegistryDwordsPerDevice is given whole.
 */
struct requirement_option {
	const char *parameter; /* "NVreg_RegistryDwords" */
	const char *key;       /* "ForceP2P"; NULL: the value is the whole parameter's */
	const char *value;     /* "0x211"; "pci=0000:01:00.0;ForceP2P=0x211;..." */
};

struct unlock_requirements {
	struct card_requirement *cards; /* in the order of machine.gpus */
	size_t n;
	enum unlock_action action; /* of the machine; ACTION_UNKNOWN without GPUs */
	bool obstacle;             /* of one of its cards */
	bool judged;         /* false: there are no two GPUs, or of none could be said anything */
	const char *release; /* of the driver that runs; NULL: not known */
	const char *module;  /* nvidia, as modprobe.d names it here: "nvidia-current-open" */
	/* Line for /etc/modprobe.d that cards need or should keep, with what else is set; NULL: none. */
	const char *options;
	bool per_device; /* it names the cards: others want none, or such a line is there already */
	bool options_set; /* and it is in force for all cards that need it */
	/* the same as data, without the keys of others in a list */
	struct requirement_option *settings;
	size_t setting_n;
	bool can_download; /* its sources are known, so that what is fetched can be checked */
	struct requirement_step *sources; /* where to get the tree; where modules are built */
	size_t source_n;
	struct requirement_step *steps; /* for a person, in order */
	size_t step_n;
	struct requirement_step *back; /* and how to take them back */
	size_t back_n;
	const char **cautions;
	size_t caution_n;
};

/* Pure; in the machine's arena. */
const struct unlock_requirements *unlock_requirements(struct machine *m);

const char *action_word(enum unlock_action n); /* "patch", "in-force", ... */
