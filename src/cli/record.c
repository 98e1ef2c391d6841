/* SPDX-License-Identifier: Apache-2.0 */
/* onehop record: writes what onehop reads from a machine into a file, to be checked elsewhere. */
#include "cli/command.h"

#include "base/err.h"
#include "base/source.h"
#include "base/text.h"
#include "ingest/ingest.h"
#include "machine/machine.h"
#include "recording/recording.h"
#include "report/document.h"

#include <inttypes.h>
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
	OPT_TEXT("note", note, "TEXT",
		"describe the machine and why it was recorded; shown by check -v"),
	OPT_FLAG("keep-identifiers", keep_identifiers,
		"do not replace serial numbers, UUIDs, GUIDs, MAC and IP addresses, host "
		"names"),
	COMMON_PID(struct record_options),
	OPT_LIST("from", common.machine.from, "FILE",
		"copy this recording or these texts instead of reading the host; - is standard "
		"input; repeatable"),
	COMMON_HOST(struct record_options),
	COMMON_COLOR(struct record_options),
	COMMON_WIDTH(struct record_options),
	COMMON_HELP(struct record_options),
	OPTIONS_END,
};
/* clang-format on */

static int capture(const struct record_options *o, struct source *map, struct machine **ret)
{
	int r = machine_choice_check(&o->common.machine);

	return r < 0 ? r
		     : ingest_record(o->common.machine.from.items, o->common.machine.from.n,
				     o->common.machine.host, o->common.machine.pid, map, ret);
}

static void add_size(struct document *out, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
		document_paragraph(out, STYLE_PLAIN, 2, "size: %" PRId64 " KiB",
				   ((int64_t)st.st_size + 1023) / 1024);
}

static void add_contents(struct document *out, const struct machine *m)
{
	document_paragraph(out, STYLE_PLAIN, 2,
			   "contents: %zu PCI %s, %zu %s, %zu RDMA %s, %zu kernel log %s", m->pci_n,
			   text_plural(m->pci_n, "function", "functions"), m->gpu_n,
			   text_plural(m->gpu_n, "GPU", "GPUs"), m->rdma_n,
			   text_plural(m->rdma_n, "device", "devices"), m->log_n,
			   text_plural(m->log_n, "line", "lines"));
	if (!fact_known(m->driver.nvml) && m->gpu_n)
		document_paragraph(out, STYLE_WARN, 2, "missing: NVML data (%s)",
				   m->driver.nvml.from ? m->driver.nvml.from : "not queried");
	if (fact_is(m->root, 0))
		document_paragraph(
			out, STYLE_WARN, 2,
			"missing: PCI registers beyond the first 64 bytes (ACS, link capabilities); to include them, record as root");
	if (!fact_is(m->log_read, 1))
		document_paragraph(out, STYLE_WARN, 2, "missing: the kernel log (%s)",
				   m->log_read.from ? m->log_read.from : "not read");
}

static int print_summary(const struct record_options *o, const char *path, const struct machine *m)
{
	struct document *out = document_new();

	document_paragraph(out, STYLE_STRONG, 0, "%s: written", path);
	add_contents(out, m);
	document_paragraph(
		out, STYLE_PLAIN, 2, "identifiers: %s",
		o->keep_identifiers
			? "not replaced"
			: "replaced (serial numbers, UUIDs, GUIDs, MAC and IP addresses, host names)");
	add_size(out, path);
	document_paragraph(out, STYLE_PLAIN, 2, "to check it: onehop check --from %s", path);
	return show_document(out, &o->common, EXIT_OK);
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
							      : print_summary(o, args[0], m);
	}
	machine_free(m);
	source_free(map);
	return r;
}

const struct command command_record = {
	.name = "record",
	.args = "FILE",
	.words = WORDS_FILES,
	.summary = "record this machine in a file, to be checked elsewhere",
	.about =
		"FILE ends in .tar.gz, .tar.zst, .tar.xz, .tar or, for a folder of plain text, in "
		"/. The recording contains only what onehop reads, with identifiers replaced. Existing files are never overwritten.",
	.options = record_table,
	.size = sizeof(struct record_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_record,
};
