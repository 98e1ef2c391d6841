/* SPDX-License-Identifier: Apache-2.0 */
/* The commands as a table, and what they share. */
#pragma once

#include "cli/option.h"
#include "report/report.h"
#include "session/ending.h"
#include "session/machine_choice.h"

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

/* In the order of color_words. */
enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };
extern const char *const color_words[];

/* Choices of --format where there is no other. */
#define FORMAT_CSV "csv"
extern const char *const csv_only[];

/* Stands first in every command's struct of options. */
struct common_options {
	struct machine_choice machine;
	int width;
	bool json, verbose, help;
	int format;       /* 1 + index in the choices of its row; 0: the command's own */
	int color;        /* 1 + enum color; 0: not given */
	const char *html; /* a file; NULL: none */
	bool markdown, keep_identifiers;
	const struct command *command; /* the one that runs */
};

/* clang-format off */
/* Rows that commands put into their tables; TYPE has a member `common`. */
#define COMMON_FROM(TYPE)  {"from", 0, OPTION_LIST, offsetof(TYPE, common.machine.from), "FILE", \
	"read this recording, copied tree or text instead of the host; - is standard " \
	"input; repeatable for several texts of one machine", NULL, 0, 0, 0}
#define COMMON_HOST(TYPE)  {"host", 0, OPTION_TEXT, offsetof(TYPE, common.machine.host), "NAME", \
	"with --from: of texts of several hosts, read those of this one", NULL, 0, 0, 0}
#define COMMON_PID(TYPE)   {"pid", 0, OPTION_NUMBER, offsetof(TYPE, common.machine.pid), "N", \
	"take NCCL's settings and library from the running process N", NULL, 0, 0, 0}
#define COMMON_OBSERVED(TYPE) {"observed", 0, OPTION_LIST, offsetof(TYPE, common.machine.observed), "FILE", \
	"also use this result: JSON of onehop test or bench p2p, the output of " \
	"p2pBandwidthLatencyTest or nvbandwidth -j, a debug log of NCCL; repeatable", NULL, 0, 0, 0}, \
	{"no-observed", 0, OPTION_FLAG, offsetof(TYPE, common.machine.no_store), NULL, \
	"ignore results that onehop test and bench left in the state folder", NULL, 0, 0, 0}
#define COMMON_JSON(TYPE)  {"json", 0, OPTION_FLAG, offsetof(TYPE, common.json), NULL, \
	"print JSON (schema " JSON_SCHEMA_TEXT ", see docs/json.md)", NULL, 0, 0, 0}
#define COMMON_FORMAT(TYPE, words, help_text) \
	{"format", 0, OPTION_CHOICE, offsetof(TYPE, common.format), "NAME", help_text, words, 0, 0, 0}
#define COMMON_CSV(TYPE)   COMMON_FORMAT(TYPE, csv_only, "csv: the table for a spreadsheet (see docs/csv.md)")
#define COMMON_PAGE(TYPE)  {"html", 0, OPTION_FILE, offsetof(TYPE, common.html), "FILE", \
	"also write the report as one HTML file that needs nothing else; - is standard output, " \
	"instead of the text", NULL, 0, 0, 0}, \
	{"markdown", 0, OPTION_FLAG, offsetof(TYPE, common.markdown), NULL, \
	"print Markdown for an issue or a forum, at most 60,000 characters", NULL, 0, 0, 0}, \
	{"keep-identifiers", 0, OPTION_FLAG, offsetof(TYPE, common.keep_identifiers), NULL, \
	"with --html or --markdown: keep serial numbers, UUIDs, addresses and host names", \
	NULL, 0, 0, 0}
#define COMMON_COLOR(TYPE) {"color", 0, OPTION_CHOICE, offsetof(TYPE, common.color), "WHEN", \
	"use colors always, never or auto: on a terminal, unless NO_COLOR is set (auto)", color_words, 0, 0, 0}
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
	const struct option_rule *rules; /* which of them go together; NULL: all do */
	size_t size;                     /* of the struct that the options fill */
	size_t min_args, max_args;
	int (*run)(const void *options, const char *const *args);
	bool hidden;
	bool names_hosts; /* its pages keep names of hosts, which they are about */
	enum words words; /* what its arguments are */
};

/* Words that are not options: as many as there may be rules, or hosts of a fleet. */
#define MAX_ARGS 4096

extern const struct command command_check, command_test, command_topo, command_tune, command_record,
	command_compare, command_report, command_env, command_log, command_completion,
	command_worker, command_bench_p2p, command_bench_nccl, command_bench_collective,
	command_bench_rdma, command_nccl_worker, command_rdma_worker, command_fix, command_undo,
	command_history, command_unlock, command_fleet;
/* Those without a manual, named for tests. */
extern const struct command command_help, command_version;
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

/* What a judgement is as an exit code. */
enum exit_code verdict_code(enum verdict v);
/* How a session ended. */
enum exit_code ending_code(enum ending e);
/* Of two runs: a failure to print outweighs a finding, and a finding what could not be judged. */
int worse_code(int a, int b);

/* Whether what is written there is a terminal that understands escape sequences. */
bool terminal_escapes(int fd);
/*
 * Whether a copy of a peer's layout has its escapes: scripts get the peer's exact bytes, a person
 * at a terminal that understands none, or who asked for no colours, gets none.
 */
bool peer_escapes(const struct common_options *c);

/* This host's name; "" if it has none. */
void this_host(char *buf, size_t size);
/* An empty document; a page too, if --html or --markdown asks for one. */
struct document *new_document(const struct common_options *c);
bool page_wanted(const struct common_options *c);
/* A page takes the place of the text on standard output. */
bool page_replaces_text(const struct common_options *c);
/* Writes those that were asked for; 0, or the exit code after a message. */
int print_pages(const struct document *d, const struct common_options *c);
/*
 * Writes the text to a file, which it names on stderr, or to standard output for "-"; returns
 * EXIT_OK, or says why it could not.
 */
int save_text(const struct strbuf *b, const char *path);
/* Each prints and returns `code`, or says why it could not. */
int show_document(struct document *d, const struct common_options *c,
		  enum exit_code code); /* and frees it */
int print_text(const struct strbuf *b, enum exit_code code);
/* Whether --format names this one. */
bool format_is(const struct common_options *c, const char *name);
/* JSON or CSV: data for programs, and nothing else on standard output. */
bool prints_data(const struct common_options *c);
struct figures;
/* As JSON or CSV. */
int print_figures(const struct figures *f, const struct common_options *c, enum exit_code code);
struct json_t;
int print_json(struct json_t *json, enum exit_code code); /* takes the reference */

/* ---- help.c ---- */

/* --help of a command, NULL: of the program. */
int print_help(const struct command *c, const struct common_options *common);
/* Of the first word of two-word commands, "bench". */
int print_group_help(const char *group, const struct common_options *common);
/* --formats; `markdown`: as docs/texts.md has it. */
int print_formats(bool markdown);

/* ---- refuse.c ---- */

/* "bench": two-word commands begin so. */
bool command_is_group(const char *name);
/* No row has the first one or two of these words as its name. */
int refuse_command(const char *const *words, size_t n);
/*
 * After an error of command_parse. `named`: the command was, by a word; `unexpected`: an argument
 * too many, NULL: an option is wrong.
 */
int refuse_words(const struct command *c, bool named, char *const *words, size_t n,
		 const char *unexpected);

/* Completions for a shell, from the tables; here for tests of them. */
void completion_bash(struct strbuf *out);
void completion_zsh(struct strbuf *out);
void completion_fish(struct strbuf *out);
