/* SPDX-License-Identifier: Apache-2.0 */
#include "session/store.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/date.h"
#include "base/err.h"
#include "base/file.h"
#include "base/state.h"
#include "bench/test_figures.h"
#include "machine/observed.h"
#include "result/figures_json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void read_boot_id(char buf[static BOOT_ID_SIZE])
{
	AUTO_FCLOSE FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f || !fgets(buf, BOOT_ID_SIZE, f))
		*buf = '\0';
	buf[strcspn(buf, "\n")] = '\0';
}

void figures_stamp(struct figures *f, const struct machine *m)
{
	char date[DATE_SIZE];

	date_now(date);
	f->when = arena_strdup(f->arena, date);
	f->program = ONEHOP_VERSION;
	if (m)
		figures_note_machine(f, m);
}

static bool still_holds(const struct figures *past, const struct figures *now)
{
	AUTO_FREE int *gpus = xcalloc(past->gpu_n + 1, sizeof(*gpus));

	for (size_t i = 0; i < past->gpu_n; i++)
		gpus[i] = figures_gpu_at(now, past->gpus[i].pci);
	return figures_changed(past, now, gpus, true).what == CONDITION_N;
}

/* What earlier runs found under the same conditions; NULL: nothing. */
static struct figures *earlier(const struct figures *now, const char *path)
{
	AUTO_CLOSE int fd = state_open(path);
	json_t *json = fd < 0 ? NULL : json_loadfd(fd, 0, NULL);
	struct figures *f = NULL;

	if (json && figures_from_json(json, path, &f) == 0 && !still_holds(f, now)) {
		figures_free(f);
		f = NULL;
	}
	json_decref(json);
	return f;
}

/* A GPU that could not be opened was not tested. */
static void drop_not_opened(struct figures *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->row_n; i++)
		if (strcmp(f->rows[i].kind, TEST_NOT_OPENED) != 0)
			f->rows[kept++] = f->rows[i];
	f->row_n = kept;
}

int store_write(const char *file, const char *text)
{
	AUTO_FREE char *folder = NULL, *path = NULL, *staged = NULL;
	int r = state_folder_make(&folder);

	if (r < 0)
		return r;
	path = xprintf("%s/%s", folder, file);
	staged = xprintf("%s.new", path);
	r = file_replace(path, staged, text, strlen(text), 0600);
	return r < 0 ? state_refuse(-r, "write", path) : 0;
}

/* Kept for compare: check weighs none of it. */
static const struct kept_run unweighed[] = {
	{"onehop bench rdma", "rdma.json"},
	{"onehop bench collective", "collective.json"},
	{"onehop bench nccl --shim", "shim.json"},
};

static const char *file_of(const char *tool)
{
	size_t i = 0;

	for (size_t k = 0; k < ARRAY_LEN(unweighed); k++)
		if (strcmp(tool, unweighed[k].tool) == 0)
			return unweighed[k].file;
	while (i + 1 < KEPT_RUN_N && strcmp(kept_runs[i].tool, tool) != 0)
		i++;
	return kept_runs[i].file;
}

static int figures_text(const struct figures *f, const char *path, char **ret)
{
	json_t *doc = figures_to_json(f);

	*ret = json_dumps(doc, JSON_INDENT(1));
	json_decref(doc);
	return *ret ? 0 : err_set(EINVAL, "%s cannot be written as JSON", path);
}

int store_write_figures(const char *file, const struct figures *f)
{
	AUTO_FREE char *text = NULL;
	int r = figures_text(f, file, &text);

	return r < 0 ? r : store_write(file, text);
}

int store_keep(struct figures *f)
{
	AUTO_FREE char *folder = NULL, *path = NULL;
	struct figures *past;
	int e = state_folder_make(&folder);

	if (e < 0)
		return e;
	path = xprintf("%s/%s", folder, file_of(f->tool));
	past = earlier(f, path);
	drop_not_opened(f);
	if (past)
		figures_keep_earlier(f, past);
	figures_free(past);
	return store_write_figures(file_of(f->tool), f);
}
