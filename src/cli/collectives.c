/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/collectives.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/progress.h"
#include "report/document.h"

#include <errno.h>

struct screen {
	const struct collectives_print *print;
	struct progress *progress;
	const struct devices *devices;
	struct strbuf *table; /* all lines, for a page */
	bool lost;            /* a part of the output could not be written, as was said */
};

/* ---- the table, as it comes ---- */

static void print_lines(struct screen *s, const struct collective_arm *arm, const struct strbuf *b)
{
	const struct common_options *common = s->print->common;

	progress_end(s->progress);
	if (arm->off && !s->print->both_arms)
		return;
	strbuf_puts(s->table, strbuf_str(b));
	if (!prints_data(common) && !page_replaces_text(common) && !s->lost)
		s->lost = print_text(b, EXIT_OK) != EXIT_OK;
}

static void show_head(void *context, const struct collective_arm *arm)
{
	struct screen *s = context;
	AUTO_STRBUF struct strbuf b = {0};

	if (devices_are_simulated(s->devices) && !arm->off && !s->print->lines_only)
		report_simulated_devices(&b, arm->result.start.ranks);
	s->print->layout->head(&b, arm);
	print_lines(s, arm, &b);
}

static void show_row(void *context, const struct collective_arm *arm,
		     const struct collective_row *row)
{
	struct screen *s = context;
	AUTO_STRBUF struct strbuf b = {0};

	s->print->layout->row(&b, arm, row, s->print->common->verbose);
	print_lines(s, arm, &b);
}

static void show_foot(void *context, const struct collective_arm *arm)
{
	struct screen *s = context;
	AUTO_STRBUF struct strbuf b = {0};

	if (!s->print->layout->foot)
		return;
	s->print->layout->foot(&b, arm);
	print_lines(s, arm, &b);
}

/* ---- the end ---- */

static int print_verdict(const struct collective_session *s, const struct screen *screen, int code)
{
	const struct collectives_print *print = screen->print;
	struct document *d = new_document(print->common);

	document_title(d, "Collectives");
	print->layout->verdict(d, s, print->common->verbose);
	add_page_figures(d, s->figures);
	document_begin(d, GROUP_FOLD, STYLE_PLAIN, "table", "The table, as it is printed");
	if (document_is_page(d))
		document_verbatim(d, 0, strbuf_str(screen->table));
	document_end(d);
	return show_document(d, print->common, (enum exit_code)code);
}

enum exit_code collectives_code(int err)
{
	static const struct {
		int err;
		enum exit_code code;
	} codes[] = {
		{EINVAL, EXIT_REFUSED},    {ENOENT, EXIT_NOT_JUDGED},
		{ENOSYS, EXIT_NOT_JUDGED}, {ENODEV, EXIT_NOT_JUDGED},
		{EBUSY, EXIT_NOT_JUDGED},  {ENOTSUP, EXIT_NOT_JUDGED},
		{ENOMEM, EXIT_NOT_JUDGED}, {EINTR, EXIT_REFUSED},
		{EACCES, EXIT_NOT_JUDGED}, {EADDRINUSE, EXIT_NOT_JUDGED},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (err == -codes[i].err)
			return codes[i].code;
	return EXIT_FINDING; /* it hung, it died, NCCL failed */
}

static int fail_rank(const struct collective_session *s, int err)
{
	if (s->run.ranks.size > 1)
		return fail(collectives_code(err), "process %d: %s", s->run.ranks.rank, err_msg());
	return fail(collectives_code(err), "%s", err_msg());
}

static int run_session(struct collective_session *s, const struct screen *screen)
{
	const struct collectives_print *print = screen->print;
	int r, code = EXIT_OK;

	if (!s->devices.request.n)
		return devices_none(&s->devices, s->o->engine == ENGINE_ONEHOP && !s->o->against);
	if (s->run.ranks.rank == 0)
		devices_tell(&s->devices);
	progress_begin(screen->progress);
	r = collective_session_run(s);
	progress_end(screen->progress);
	if (r < 0)
		code = fail_rank(s, r);
	else if (nccl_wrong(&s->arms[0].result) > 0 || nccl_wrong(&s->arms[1].result) > 0)
		code = EXIT_FINDING;
	if (s->figures && prints_data(print->common))
		return print_figures(s->figures, print->common, (enum exit_code)code);
	if (screen->lost)
		return EXIT_REFUSED;
	return s->figures && !print->lines_only ? print_verdict(s, screen, code) : code;
}

int collectives_run(const struct collective_choice *choice, const struct collectives_print *print)
{
	struct progress progress;
	const struct session_ear ear = progress_ear(&progress);
	AUTO_STRBUF struct strbuf table = {0};
	struct collective_session s;
	struct screen screen = {print, &progress, &s.devices, &table, false};
	const struct collective_view view = {&screen, show_head, show_row, show_foot};
	int r;

	if (collective_session_begin(&s, choice, &ear, &view) < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = run_session(&s, &screen);
	collective_session_done(&s);
	return r;
}

int collectives_compare(struct collective_choice choice, const struct common_options *common)
{
	const struct collectives_print print = {.both_arms = true,
						.common = common,
						.layout = &collective_layout};

	choice.one_place = true;
	return collectives_run(&choice, &print);
}
