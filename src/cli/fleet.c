/* SPDX-License-Identifier: Apache-2.0 */
/* onehop fleet: results of many hosts as one picture. */
#include "cli/command.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/texts.h"
#include "cli/fleet_files.h"
#include "fleet/host_names.h"
#include "report/report_fleet.h"

struct fleet_options {
	struct common_options common;
	const char *hosts;
};

/* clang-format off */
#define AT(member) offsetof(struct fleet_options, member)
static const struct option fleet_table[] = {
	OPT_TEXT("hosts", hosts, "LIST",
		"report those of these hosts of which there is no result: gpu-[01-64],login1"),
	OPT_FLAG("verbose", common.verbose,
		"print all lines, and all names of hosts", .letter = 'v'),
	COMMON_JSON(struct fleet_options),
	COMMON_CSV(struct fleet_options),
	COMMON_PAGE(struct fleet_options),
	COMMON_COLOR(struct fleet_options),
	COMMON_WIDTH(struct fleet_options),
	COMMON_HELP(struct fleet_options),
	OPTIONS_END,
};
/* clang-format on */

static enum exit_code code_of(const struct fleet *f)
{
	if (fleet_has_outliers(f))
		return EXIT_FINDING;
	return f->group_n && f->groups[0].host_n >= FLEET_ENOUGH && !f->troubles.n
		       ? EXIT_OK
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

static int run_fleet(const void *options, const char *const *args)
{
	const struct fleet_options *o = options;
	struct fleet *f = fleet_new();
	struct fleet_files files = {.arena = f->arena};
	struct texts hosts = {0};
	int r;

	if (o->hosts && host_names_parse(o->hosts, f->arena, &hosts) < 0) {
		r = fail(EXIT_REFUSED, "--hosts: %s", err_msg());
	} else if (fleet_files_find(&files, args) < 0) {
		r = fail(EXIT_NOT_JUDGED, "%s", err_msg());
	} else {
		fleet_files_read(f, &files);
		for (size_t i = 0; i < hosts.n; i++)
			fleet_expect(f, hosts.items[i]);
		fleet_compare(f);
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
