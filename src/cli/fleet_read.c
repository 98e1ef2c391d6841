/* SPDX-License-Identifier: Apache-2.0 */
/* A file with results of a host, as a part of a fleet. */
#include "cli/fleet_files.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/texts.h"
#include "ingest/figures_open.h"
#include "ingest/ingest.h"
#include "ingest/text.h"
#include "machine/machine.h"
#include "report/report.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

/* A result of one host has hundreds of KB, a merged one of a thousand hosts tens of MB. */
#define MAX_DOCUMENT (256u << 20)

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

/*
 * Recordings, copied trees, and texts of one host or of several, which then have their own names.
 */
static int add_machines(struct fleet *f, const struct fleet_file *file)
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

static int add_figures(struct fleet *f, const struct fleet_file *file, const struct strbuf *text)
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
static int add_json(struct fleet *f, const struct fleet_file *file, const struct strbuf *text)
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

static int add_document(struct fleet *f, const struct fleet_file *file)
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

void fleet_files_read(struct fleet *f, const struct fleet_files *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (add_document(f, &l->items[i]) < 0)
			fleet_trouble(f, "%s", err_msg());
}
