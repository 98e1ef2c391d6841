/* SPDX-License-Identifier: Apache-2.0 */
/* onehop record: writes what onehop reads of a machine into a file that it can judge elsewhere. */
#include "cli/command.h"

#include "base/err.h"
#include "base/source.h"
#include "ingest/ingest.h"
#include "machine/machine.h"
#include "recording/recording.h"
#include "report/document.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct record_options {
	struct common_options common;
	bool keep_identifiers;
	const char *note;
};

/* clang-format off */
#define AT(member) offsetof(struct record_options, member)
static const struct option record_table[] = {
	{"note", 0, OPTION_TEXT, AT(note), "TEXT",
		"a description of the machine and why it was recorded, shown by check", NULL, 0, 0, 0},
	{"keep-identifiers", 0, OPTION_FLAG, AT(keep_identifiers), NULL,
		"do not replace serial numbers, UUIDs, GUIDs, MAC and IP addresses, host "
		"names",
		NULL, 0, 0, 0},
	COMMON_PID(struct record_options),
	{"from", 0, OPTION_LIST, AT(common.from), "FILE",
		"copy this recording, or what these texts state, instead of reading the host; repeatable", NULL,
		0, 0, 0},
	COMMON_COLOR(struct record_options),
	COMMON_WIDTH(struct record_options),
	COMMON_HELP(struct record_options),
	OPTIONS_END,
};
/* clang-format on */

static int capture(const struct record_options *o, struct source *map, struct machine **ret)
{
	int r = check_pid(&o->common);

	return r < 0 ? r
		     : ingest_record(o->common.from.items, o->common.from.n, o->common.pid, map,
				     ret);
}

static void add_size(struct document *out, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
		document_paragraph(out, STYLE_PLAIN, 2, "size: %" PRId64 " KiB",
				   ((int64_t)st.st_size + 1023) / 1024);
}

static void add_contents(struct document *out, const struct machine *m, size_t entries)
{
	document_paragraph(
		out, STYLE_PLAIN, 2,
		"holds: %zu PCI functions, %zu GPUs, %zu RDMA devices, %zu kernel log lines; %zu "
		"files, links and folders in all",
		m->pci_n, m->gpu_n, m->rdma_n, m->log_n, entries);
	if (!fact_known(m->driver.nvml) && m->gpu_n)
		document_paragraph(out, STYLE_WARN, 2, "lacks: what NVML says (%s)",
				   m->driver.nvml.from ? m->driver.nvml.from : "not queried");
	if (fact_is(m->root, 0))
		document_paragraph(
			out, STYLE_WARN, 2,
			"lacks: PCI registers beyond 64 bytes (ACS and link capabilities); record as "
			"root to include them");
	if (!fact_is(m->log_read, 1))
		document_paragraph(out, STYLE_WARN, 2, "lacks: the kernel log (%s)",
				   m->log_read.from ? m->log_read.from : "not read");
}

static int print_summary(const struct record_options *o, const char *path, const struct machine *m,
			 const struct source *map)
{
	struct document *out = document_new();
	size_t n;
	int r;

	free(source_entries(map, &n));
	document_paragraph(out, STYLE_STRONG, 0, "%s: written", path);
	add_contents(out, m, n);
	document_paragraph(
		out, STYLE_PLAIN, 2, "identifiers: %s",
		o->keep_identifiers
			? "not replaced"
			: "serial numbers, UUIDs, GUIDs, MAC and IP addresses and host names were "
			  "replaced");
	add_size(out, path);
	document_paragraph(out, STYLE_PLAIN, 2, "to check it: onehop check --from %s", path);
	r = print_document(out, &o->common, EXIT_OK);
	document_free(out);
	return r;
}

static int run_record(const void *options, const char *const *args)
{
	const struct record_options *o = options;
	static const char recorded_by[] = "onehop " ONEHOP_VERSION "\n";
	struct source *map = source_new_map(args[0]);
	struct machine *m = NULL;
	int r;

	if (capture(o, map, &m) < 0) {
		r = fail(EXIT_NOT_JUDGED, "%s", err_msg());
	} else {
		if (!o->keep_identifiers)
			recording_redact(map);
		source_put_file(map, "recorded-by.txt", recorded_by, strlen(recorded_by));
		r = recording_save(map, args[0], o->note) < 0 ? fail(EXIT_REFUSED, "%s", err_msg())
							      : print_summary(o, args[0], m, map);
	}
	machine_free(m);
	source_free(map);
	return r;
}

const struct command command_record = {
	.name = "record",
	.args = "FILE",
	.summary = "write what onehop reads from this machine into a file, to be checked "
		   "elsewhere",
	.about = "FILE ends in .tar.gz, .tar.zst, .tar.xz, .tar or, for a folder of plain text, in "
		 "/. It holds only what onehop reads; identifiers are replaced. Existing files are "
		 "never overwritten.",
	.options = record_table,
	.size = sizeof(struct record_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_record,
};
