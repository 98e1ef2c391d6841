/* SPDX-License-Identifier: Apache-2.0 */
/* The commands as a table, and what they share. */
#pragma once

#include "cli/option.h"
#include "report/report.h"

struct diagnosis;
struct document;
struct machine;
struct source;
struct strbuf;

/* The same for every command. */
enum exit_code {
	EXIT_OK = 0,
	EXIT_FINDING = 1,     /* a finding of severity warning or above; --fail-on adjusts */
	EXIT_REFUSED = 2,     /* wrong usage, or refused */
	EXIT_NOT_JUDGED = 3,  /* could not be decided, bad input, or no memory is left */
	EXIT_NOT_CHANGED = 4, /* a change failed */
};

/* Stands first in every command's struct of options. */
struct common_options {
	struct string_list from;
	const char *host; /* of texts of several hosts; NULL: none is chosen */
	int pid, width;
	bool json, no_color, verbose, help;
};

/* Which results are weighed. */
struct observed_options {
	struct string_list files;
	bool no_store;
};

/* clang-format off */
/* Rows that commands put into their tables; TYPE has a member `common`. */
#define COMMON_FROM(TYPE)  {"from", 0, OPTION_LIST, offsetof(TYPE, common.from), "FILE", \
	"read this recording, copied tree or text instead of the host; - is standard " \
	"input; repeatable for several texts of one machine", NULL, 0, 0, 0}
#define COMMON_HOST(TYPE)  {"host", 0, OPTION_TEXT, offsetof(TYPE, common.host), "NAME", \
	"with --from: of texts of several hosts, read those of this one", NULL, 0, 0, 0}
#define COMMON_PID(TYPE)   {"pid", 0, OPTION_NUMBER, offsetof(TYPE, common.pid), "N", \
	"take NCCL's settings and library from the running process N", NULL, 0, 0, 0}
/* TYPE has a member `observed`, a struct observed_options. */
#define COMMON_OBSERVED(TYPE) {"observed", 0, OPTION_LIST, offsetof(TYPE, observed.files), "FILE", \
	"also use this result: JSON of onehop test or bench p2p, the output of " \
	"p2pBandwidthLatencyTest or nvbandwidth -j, a debug log of NCCL; repeatable", NULL, 0, 0, 0}, \
	{"no-observed", 0, OPTION_FLAG, offsetof(TYPE, observed.no_store), NULL, \
	"ignore results that onehop test and bench left in the state folder", NULL, 0, 0, 0}
#define COMMON_JSON(TYPE)  {"json", 0, OPTION_FLAG, offsetof(TYPE, common.json), NULL, \
	"print JSON (schema " JSON_SCHEMA_TEXT ", see docs/json.md)", NULL, 0, 0, 0}
#define COMMON_COLOR(TYPE) {"no-color", 0, OPTION_FLAG, offsetof(TYPE, common.no_color), NULL, \
	"do not use colors; NO_COLOR in the environment does the same", NULL, 0, 0, 0}
#define COMMON_WIDTH(TYPE) {"width", 0, OPTION_NUMBER, offsetof(TYPE, common.width), "N", \
	"wrap at N columns, at least 40 (default: $COLUMNS, the terminal's width, or 80)", NULL, 0, 0, 0}
#define COMMON_VERBOSE(TYPE) {"verbose", 'v', OPTION_FLAG, offsetof(TYPE, common.verbose), NULL, \
	"print more details", NULL, 0, 0, 0}
#define COMMON_HELP(TYPE)  {"help", 'h', OPTION_FLAG, offsetof(TYPE, common.help), NULL, \
	"explain this command", NULL, 0, 0, 0}
#define OPTIONS_END        {0}
/* clang-format on */

struct command {
	const char *name;
	const char *args;    /* as --help names them, "" for none */
	const char *summary; /* one line */
	const char *about;   /* a paragraph */
	const struct option *options;
	size_t size; /* of the struct that the options fill */
	size_t min_args, max_args;
	int (*run)(const void *options, const char *const *args);
	bool hidden;
	enum words words; /* what its arguments are */
};

/* Words that are not options: as many as there may be rules. */
#define MAX_ARGS 256

extern const struct command command_check, command_test, command_topo, command_tune, command_record,
	command_compare, command_env, command_log, command_completion, command_worker,
	command_bench_p2p, command_bench_nccl, command_bench_collective, command_bench_rdma,
	command_nccl_worker, command_rdma_worker, command_fix, command_undo, command_history,
	command_unlock;
/* The one without a manual, named for tests. */
extern const struct command command_help;
extern const struct command *const commands[]; /* in the order of --help; NULL-ended */

/*
 * The row whose name the first of n words are, "bench nccl" being two; NULL: none. *ret_used is how
 * many they were. Here for tests.
 */
const struct command *command_find(const char *const *words, size_t n, size_t *ret_used);
/* Whether the name starts with this word and has another; then *ret_rest is that. */
bool command_in_group(const struct command *c, const char *group, const char **ret_rest);

/* The whole program but for main(). */
int cli_main(int argc, char **argv);

/*
 * A command's words without running it: fills `values` of c->size zeroed bytes, and args as
 * options_parse() does. For tests too.
 */
int command_parse(const struct command *c, char *const *words, size_t n, void *values,
		  const char **args);

/* ---- for commands ---- */

/* One line on stderr, "onehop: ..."; returns the code. */
int fail(enum exit_code code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --pid names a process of this host, and one that runs. 0 or a negative errno with a sentence. */
int check_pid(const struct common_options *c);
/* Reads the live host, or what --from names. 0 or a negative errno with a sentence. */
int load_machine(const struct common_options *c, unsigned parts, struct machine **ret);

/* The same with the results that are to be weighed. */
int load_observed(const struct common_options *c, const struct observed_options *o, unsigned parts,
		  struct machine **ret);

/* The same, and the source that the machine was read from, owned by the caller. */
int load_observed_source(const struct common_options *c, const struct observed_options *o,
			 unsigned parts, struct machine **ret, struct source **ret_source);

/* "OPTION: no rule 'ID'; did you mean ...?"; returns the code. */
int no_rule(const char *option, const char *id);
/* False: there was nothing to judge, or GPU pairs of which not one could be decided. */
bool machine_was_judged(const struct diagnosis *d);

/* Whether what is written there is a terminal that understands escape sequences. */
bool terminal_escapes(int fd);
/*
 * Whether a copy of a peer's layout has its escapes: scripts get the peer's exact bytes, a person at a
 * terminal that understands none, or who asked for no colours, gets none.
 */
bool peer_escapes(const struct common_options *c);

/* Each prints and returns `code`, or says why it could not. */
int print_document(const struct document *d, const struct common_options *c, enum exit_code code);
int print_text(const struct strbuf *b, enum exit_code code);
struct json_t;
int print_json(struct json_t *json, enum exit_code code); /* takes the reference */

/* --help of one command, or of the program. */
void command_help_text(struct document *out, const struct command *c);
void program_help_text(struct document *out);
/* Of the first word of two-word commands, "bench". */
void group_help_text(struct document *out, const char *group);
/* Completions for a shell, from the tables; here for tests of them. */
void completion_bash(struct strbuf *out);
void completion_zsh(struct strbuf *out);
