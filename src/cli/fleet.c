/* SPDX-License-Identifier: Apache-2.0 */
/* onehop fleet: results of many hosts as one picture. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/texts.h"
#include "fleet/fleet.h"
#include "fleet/host_names.h"
#include "ingest/figures_open.h"
#include "ingest/ingest.h"
#include "ingest/text.h"
#include "machine/machine.h"
#include "report/report_fleet.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A result of one host has hundreds of KB, a merged one of a thousand hosts tens of MB. */
#define MAX_DOCUMENT (256u << 20)

struct fleet_options {
	struct common_options common;
	const char *hosts;
};

/* clang-format off */
#define AT(member) offsetof(struct fleet_options, member)
static const struct option fleet_table[] = {
	{"hosts", 0, OPTION_TEXT, AT(hosts), "LIST",
		"report those of these hosts of which there is no result: gpu-[01-64],login1",
		NULL, 0, 0, 0},
	{"verbose", 'v', OPTION_FLAG, AT(common.verbose), NULL,
		"print all lines, and all names of hosts", NULL, 0, 0, 0},
	COMMON_JSON(struct fleet_options),
	COMMON_CSV(struct fleet_options),
	COMMON_PAGE(struct fleet_options),
	COMMON_COLOR(struct fleet_options),
	COMMON_WIDTH(struct fleet_options),
	COMMON_HELP(struct fleet_options),
	OPTIONS_END,
};
/* clang-format on */

/* A file, or a folder that is a recording, and the host that it is about. */
struct document_file {
	const char *path, *host;
	time_t changed;
};

struct file_list {
	struct arena *arena;
	struct document_file *items;
	size_t n;
};

/* ---- which files ---- */

/* "gpu-17" of "gpu-17.check.json" and "gpu-17.tar.gz": what is left without these endings. */
static const char *host_of(struct arena *a, const char *path)
{
	static const char *const endings[] = {".json", ".txt",   ".log",  ".gz",   ".xz",
					      ".zst",  ".tar",   ".tgz",  ".md",   ".check",
					      ".test", ".bench", ".topo", ".fleet"};
	const char *name = strrchr(path, '/');
	char *host = arena_strdup(a, name ? name + 1 : path);
	bool cut = true;

	while (cut) {
		cut = false;
		for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
			size_t n = strlen(host), end = strlen(endings[i]);

			if (n > end && text_ends_with(host, endings[i])) {
				host[n - end] = '\0';
				cut = true;
			}
		}
	}
	return host;
}

static bool exists_below(const char *folder, const char *name)
{
	AUTO_FREE char *path = xprintf("%s/%s", folder, name);
	struct stat st;

	return stat(path, &st) == 0;
}

/* A recorded machine or a copied tree, instead of a folder of results. */
static bool is_machine(const char *folder)
{
	return exists_below(folder, "sys") || exists_below(folder, "proc") ||
	       exists_below(folder, "machine.txt");
}

static void add_file(struct file_list *l, const char *path, const char *host, const struct stat *st)
{
	*ARENA_PUSH(l->arena, l->items, l->n) =
		(struct document_file){arena_strdup(l->arena, path),
				       host ? host : host_of(l->arena, path), st->st_mtime};
}

static int is_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int add_path(struct file_list *l, const char *path, const char *host, int depth);

/* `host`: the folder's own name, below the folder that was named; else each file is a host. */
static int add_folder(struct file_list *l, const char *path, const char *host, int depth)
{
	struct dirent **entries;
	int n = scandir(path, &entries, is_visible, alphasort), r = 0;

	if (n < 0)
		return err_sys(errno, "cannot read the folder %s", path);
	for (int i = 0; i < n; i++) {
		AUTO_FREE char *below = xprintf("%s/%s", path, entries[i]->d_name);

		if (r == 0)
			r = add_path(l, below, host, depth + 1);
		free(entries[i]);
	}
	free(entries);
	return r;
}

/* depth 0: as the user named it. Folders below a host's folder are not results. */
static int add_path(struct file_list *l, const char *path, const char *host, int depth)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return file_unreadable(errno, path);
	if (!S_ISDIR(st.st_mode) || is_machine(path)) {
		add_file(l, path, host, &st);
		return 0;
	}
	return depth > 1 ? 0 : add_folder(l, path, depth ? host_of(l->arena, path) : NULL, depth);
}

/* Older results first, so that newer ones replace them. */
static int compare_files(const void *a, const void *b)
{
	const struct document_file *x = a, *y = b;

	if (x->changed != y->changed)
		return x->changed < y->changed ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* ---- reading them ---- */

/* A machine becomes what check --json prints of it, so that both are compared by the same facts. */
static int add_machine(struct fleet *f, const char *path, const char *choice, const char *host)
{
	struct machine *m;
	struct topology *t;
	struct diagnosis *d;
	json_t *json;
	int r = ingest_machine(&path, 1, choice, 0, MACHINE_TO_JUDGE, &m);

	if (r < 0)
		return r;
	t = topology_new(m);
	d = diagnose(t);
	json = report_check_json(d);
	r = fleet_add_check(f, host, json);
	json_decref(json);
	diagnosis_free(d);
	topology_free(t);
	machine_free(m);
	return r;
}

/* Recordings, copied trees, and texts of one host or of several, which then have their own names. */
static int add_machines(struct fleet *f, const struct document_file *file)
{
	int r = add_machine(f, file->path, NULL, file->host);
	struct texts hosts = {0};
	struct arena *a;

	if (r != -EXDEV)
		return r;
	a = arena_new();
	r = ingest_hosts(&file->path, 1, a, &hosts);
	for (size_t i = 0; r == 0 && i < hosts.n; i++)
		r = add_machine(f, file->path, hosts.items[i], hosts.items[i]);
	arena_free(a);
	return r;
}

static int add_figures(struct fleet *f, const struct document_file *file, const struct strbuf *text)
{
	struct figures *figures;
	int r = figures_parse(strbuf_str(text), text->len, file->path, &figures);

	if (r < 0)
		return r;
	fleet_add_figures(f, file->host, figures);
	figures_free(figures);
	return 0;
}

static const char *command_of(const json_t *json)
{
	const char *s = json_string_value(json_object_get(json, "command"));

	return s ? s : "";
}

/* 1: it is JSON of another kind. */
static int add_json(struct fleet *f, const struct document_file *file, const struct strbuf *text)
{
	json_t *json = json_loadb(strbuf_str(text), text->len, 0, NULL);
	int r = 1;

	if (json && strcmp(command_of(json), "check") == 0)
		r = fleet_add_check(f, file->host, json);
	else if (json && strcmp(command_of(json), "fleet") == 0)
		r = fleet_add_fleet(f, json);
	json_decref(json);
	return r < 0 ? err_wrap(r, "%s", file->path) : r;
}

static int add_document(struct fleet *f, const struct document_file *file)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct stat st;
	int r;

	if (stat(file->path, &st) == 0 && S_ISDIR(st.st_mode))
		return add_machines(f, file);
	r = text_read_file(file->path, MAX_DOCUMENT, &text);
	if (r < 0)
		return add_machines(f, file); /* compressed: a recording, perhaps */
	if (text.len && strbuf_str(&text)[0] == '{') {
		r = add_json(f, file, &text);
		if (r <= 0)
			return r;
	}
	if (figures_recognise(strbuf_str(&text), text.len))
		return add_figures(f, file, &text);
	strbuf_done(&text);
	text = (struct strbuf){0};
	return add_machines(f, file);
}

/* ---- the command ---- */

static enum exit_code code_of(const struct fleet *f)
{
	if (fleet_has_outliers(f))
		return EXIT_FINDING;
	return f->group_n && f->groups[0].host_n >= FLEET_ENOUGH && !f->trouble_n ? EXIT_OK
										  : EXIT_NOT_JUDGED;
}

static int print_fleet(const struct fleet *f, const struct fleet_options *o)
{
	AUTO_STRBUF struct strbuf csv = {0};
	struct document *out;

	if (o->common.json)
		return print_json(report_fleet_json(f), code_of(f));
	if (prints_data(&o->common)) {
		report_fleet_csv(&csv, f);
		return print_text(&csv, code_of(f));
	}
	out = new_document(&o->common);
	report_fleet(out, f, o->common.verbose);
	return show_document(out, &o->common, code_of(f));
}

/* A file that cannot be read is named, and the others are compared. */
static void read_files(struct fleet *f, struct file_list *l)
{
	if (l->n)
		qsort(l->items, l->n, sizeof(*l->items), compare_files);
	for (size_t i = 0; i < l->n; i++)
		if (add_document(f, &l->items[i]) < 0)
			fleet_trouble(f, "%s", err_msg());
}

static int list_files(struct file_list *l, const char *const *args)
{
	int r = 0;

	for (size_t i = 0; r == 0 && args[i]; i++)
		r = add_path(l, args[i], NULL, 0);
	return r < 0 || l->n ? r : err_set(ENOENT, "%s: no results in this folder", args[0]);
}

static int run_fleet(const void *options, const char *const *args)
{
	const struct fleet_options *o = options;
	struct fleet *f = fleet_new();
	struct file_list files = {.arena = f->arena};
	struct texts hosts = {0};
	int r;

	if (o->hosts && host_names_parse(o->hosts, f->arena, &hosts) < 0) {
		r = fail(EXIT_REFUSED, "--hosts: %s", err_msg());
	} else if (list_files(&files, args) < 0) {
		r = fail(EXIT_NOT_JUDGED, "%s", err_msg());
	} else {
		read_files(f, &files);
		fleet_compare(f, o->hosts ? &hosts : NULL);
		r = print_fleet(f, o);
	}
	fleet_free(f);
	return r;
}

const struct command command_fleet = {
	.name = "fleet",
	.args = "DIR|FILE...",
	.words = WORDS_FILES,
	.summary = "compare many hosts: which differs from the others, and in what",
	.about =
		"Reads results of onehop check --json, test --json and bench --json, recordings, texts, "
		"and results of onehop fleet --json. In a folder, each file is a host, named as the file "
		"without its endings (gpu-17.check.json), and each folder is a host with several results. "
		"Hosts of the same hardware are compared with each other. Exit status 1: a host differs "
		"from a majority, is slow, failed a test, or is missing.",
	.options = fleet_table,
	.size = sizeof(struct fleet_options),
	.min_args = 1,
	.max_args = MAX_ARGS,
	.run = run_fleet,
	.names_hosts = true,
};
