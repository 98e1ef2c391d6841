/* SPDX-License-Identifier: Apache-2.0 */
#include "session/store.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/state.h"
#include "bench/test_figures.h"
#include "machine/observed.h"
#include "result/figures_json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void read_boot_id(char buf[static BOOT_ID_SIZE])
{
	AUTO_FCLOSE FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f || !fgets(buf, BOOT_ID_SIZE, f))
		*buf = '\0';
	buf[strcspn(buf, "\n")] = '\0';
}

void write_date(char buf[static DATE_SIZE])
{
	time_t now = time(NULL);
	struct tm t;

	if (!gmtime_r(&now, &t) || !strftime(buf, DATE_SIZE, "%Y-%m-%dT%H:%M:%SZ", &t))
		*buf = '\0';
}

void figures_stamp(struct figures *f, const struct machine *m)
{
	char date[DATE_SIZE];

	write_date(date);
	f->when = arena_strdup(f->arena, date);
	f->program = ONEHOP_VERSION;
	if (!m)
		return;
	f->driver = arena_strdup(f->arena, fact_str_or(m->driver.module_version, ""));
	figures_number_gpus(f, m);
}

/* What earlier runs found under the same conditions; NULL: nothing. */
static struct figures *earlier(const char *boot_id, const char *driver, const char *path)
{
	json_t *json = json_load_file(path, 0, NULL);
	struct figures *f = NULL;

	if (json && figures_from_json(json, path, &f) == 0 &&
	    (strcmp(f->boot_id, boot_id) != 0 || strcmp(f->driver, driver) != 0)) {
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

/* Whole or not at all. */
static int write_whole(const char *path, json_t *doc)
{
	AUTO_FREE char *text = json_dumps(doc, JSON_INDENT(1)), *beside = xprintf("%s.new", path);
	AUTO_CLOSE int fd = -1;

	if (!text)
		return err_set(EINVAL, "%s does not fit into JSON", path);
	unlink(beside);
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd) < 0 ||
	    rename(beside, path) < 0)
		return state_refuse(errno ? errno : EIO, "write", path);
	return 0;
}

int store_keep(const char *boot_id, const char *driver, struct figures *f)
{
	AUTO_FREE char *folder = NULL, *path = NULL;
	struct figures *past;
	json_t *doc;
	int e = state_folder_make(&folder);

	if (e < 0)
		return e;
	path = xprintf("%s/observed.json", folder);
	past = earlier(boot_id, driver, path);
	drop_not_opened(f);
	if (past)
		figures_keep_earlier(f, past);
	figures_free(past);
	f->boot_id = boot_id;
	f->driver = driver;
	doc = figures_to_json(f);
	e = write_whole(path, doc);
	json_decref(doc);
	return e;
}
