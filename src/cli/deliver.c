/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/deliver.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "cli/fix_context.h"
#include "cli/progress.h"
#include "report/report_unlock.h"
#include "report/report_unlock_delivery.h"
#include "unlock/build.h"
#include "unlock/delivery_earlier.h"
#include "unlock/delivery_kernels.h"
#include "unlock/delivery_plan.h"
#include "unlock/download.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Without a terminal, progress is a line in a log this often. */
#define LOG_EVERY_S 30

struct delivery_session {
	const struct deliver_options *o;
	struct fix_context *s;
	char *sources; /* absolute path, present or future */
	struct source *source;
	struct machine *machine;
	const struct unlock_requirements *requirements;
	struct delivery *delivery;
	bool again; /* an earlier edit was undone, and everything was read again */
	char *core; /* once it is built */
	size_t core_size;
	struct plan *plan;
	struct progress progress;
	unsigned waited; /* seconds for the server's answer */
	double shown_s;  /* build time of the current part when progress was last shown */
};

static void delivery_session_done(struct delivery_session *d)
{
	plan_free(d->plan);
	free(d->core);
	machine_free(d->machine);
	source_free(d->source);
	free(d->sources);
}

/* ---- what is needed ---- */

static bool nothing_is_missing(enum unlock_action n)
{
	return n == ACTION_NOTHING || n == ACTION_IN_FORCE;
}

int show_requirements(const struct machine *m, const struct unlock_requirements *n,
		      const struct common_options *common, bool by_hand)
{
	const bool well = nothing_is_missing(n->action) && !n->obstacle;
	enum exit_code code = !n->judged ? EXIT_NOT_JUDGED : well ? EXIT_OK : EXIT_FINDING;
	struct document *d;

	if (common->json)
		return print_json(report_unlock_requirements_json(m, n), code);
	d = document_new();
	report_unlock_requirements(d, m, n, by_hand);
	code = (enum exit_code)print_document(d, common, code);
	document_free(d);
	return (int)code;
}

/* ---- reading the machine ---- */

static int read_machine(struct delivery_session *d)
{
	if (d->o->sources && !d->sources && !(d->sources = realpath(d->o->sources, NULL)))
		return fail(EXIT_NOT_JUDGED, "--sources %s: %s", d->o->sources, strerror(errno));
	if (load_observed(d->o->common, d->o->observed, UNLOCK_PARTS, &d->machine) < 0 ||
	    source_open_root("/", NULL, NULL, &d->source) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	d->requirements = unlock_requirements(d->machine);
	return 0;
}

/* The first card whose action is that of the machine. */
static const struct card_requirement *deciding_card(const struct unlock_requirements *n)
{
	size_t i = 0;

	while (n->cards[i].action != n->action)
		i++;
	return &n->cards[i];
}

static int refuse_without_pair(const struct unlock_requirements *n)
{
	return fail(EXIT_REFUSED, "%s: there is no pair to unlock; nothing was changed",
		    n->n ? "there is one NVIDIA GPU here" : "no NVIDIA GPU was found");
}

/* Nothing is fetched for a machine without a GPU, unless it is only an image. */
static bool has_nothing_to_fetch_for(const struct delivery_session *d)
{
	return d->o->download && !d->o->image && !d->requirements->n;
}

/* Without sources only options can be set. 0, or an exit code after a message. */
static int check_options_alone(const struct delivery_session *d)
{
	const struct unlock_requirements *n = d->requirements;

	if (d->o->sources || d->o->download)
		return 0;
	if (n->n < 2)
		return refuse_without_pair(n);
	if (n->action == ACTION_REFUSED || n->action == ACTION_UNKNOWN)
		return fail(EXIT_REFUSED, "GPU%zu: %s; nothing was changed (see: onehop unlock)",
			    deciding_card(n)->gpu->index, deciding_card(n)->why);
	if (action_builds(n->action))
		return fail(
			EXIT_REFUSED,
			"the driver must be edited, and its sources are missing; nothing was changed (add --download, or --sources DIR with release%s%s)",
			n->release ? " " : "", n->release ? n->release : "");
	return 0;
}

static const char *repository_of(const struct deliver_options *o)
{
	if (!o->download)
		return NULL;
	return o->mirror ? o->mirror : PUBLIC_REPOSITORY;
}

static struct delivery_request request_of(const struct delivery_session *d)
{
	const bool named = d->o->sources || d->again; /* the download is complete by then */

	return (struct delivery_request){.root = "/",
					 .sources = named ? d->sources : NULL,
					 .repository = named ? NULL : repository_of(d->o),
					 .kernel = d->o->kernel,
					 .image = d->o->image};
}

static int look(struct delivery_session *d)
{
	const struct delivery_request request = request_of(d);
	int r = check_options_alone(d);

	if (r)
		return r;
	r = delivery_look(&request, d->source, d->machine, d->requirements, &d->delivery);
	if (r < 0)
		return fail(r == -EINVAL ? EXIT_REFUSED : EXIT_NOT_JUDGED, "%s", err_msg());
	if (!d->sources && d->delivery->sources)
		d->sources = xstrdup(d->delivery->sources);
	if (request.repository)
		delivery_check_fetched(&d->s->host, d->delivery, d->machine->arena);
	delivery_check_kernels(&d->s->host, d->delivery, d->o->image, d->machine->arena);
	delivery_check_earlier(&d->s->host, d->delivery, d->s->journal, d->s->journal_n,
			       d->machine->arena);
	return 0;
}

/* ---- the plan ---- */

/* Whether the core must be built here. A DKMS tree of the whole release lets DKMS build it. */
static bool wants_core(const struct delivery *d)
{
	return d->way == DELIVER_OWN_DKMS || (d->way == DELIVER_INTO_DKMS && d->core);
}

static int read_core(struct delivery_session *d)
{
	AUTO_CLOSE int fd = -1;
	int r;

	if (d->core || !wants_core(d->delivery) || !d->delivery->built)
		return 0;
	fd = open(d->delivery->core_built, O_RDONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : fd_read_all(fd, DELIVERY_CORE_MAX, &d->core, &d->core_size);
	return r < 0 ? err_sys(-r, "%s", d->delivery->core_built) : 0;
}

static struct delivery_plan_request plan_request_of(const struct delivery_session *d)
{
	return (struct delivery_plan_request){.delivery = d->delivery,
					      .requirements = d->requirements,
					      .machine = d->machine,
					      .source = d->source,
					      .host = &d->s->host,
					      .core = d->core,
					      .core_size = d->core_size,
					      .image = d->o->image};
}

static int make_plan(struct delivery_session *d)
{
	struct delivery_plan_request request;
	int r = read_core(d);

	plan_free(d->plan);
	d->plan = NULL;
	request = plan_request_of(d);
	if (r == 0)
		r = delivery_plan(&request, &d->plan);
	if (r < 0)
		return fail(EXIT_REFUSED, "%s; nothing was changed", err_msg());
	d->s->build_log = delivery_build_log(&request);
	return 0;
}

static bool has_steps(const struct delivery_session *d)
{
	return d->plan && plan_doing_steps(d->plan) > 0;
}

/* ---- printing ---- */

static void add_option(struct strbuf *b, const char *option, const char *value)
{
	const char *argv[] = {value, NULL};

	if (!value)
		return;
	strbuf_printf(b, " %s ", option);
	step_command_line(argv, b);
}

/* "onehop unlock --sources DIR --apply": the command that applies this plan. */
static const char *apply_words(const struct delivery_session *d)
{
	AUTO_STRBUF struct strbuf b = {0};
	AUTO_FREE char *mirror = d->o->mirror ? download_hide(d->o->mirror, d->o->mirror) : NULL;

	strbuf_puts(&b, "onehop unlock");
	add_option(&b, "--sources", d->o->sources);
	if (d->o->download)
		strbuf_puts(&b, " --download");
	add_option(&b, "--mirror", mirror);
	add_option(&b, "--kernel", d->o->kernel);
	strbuf_puts(&b, d->o->image ? " --image --apply" : " --apply");
	return arena_strdup(d->machine->arena, strbuf_str(&b));
}

static struct plan_report plan_report_of(const struct delivery_session *d)
{
	return (struct plan_report){
		.plan = d->plan,
		.machine = d->machine,
		.journal = d->s->journal,
		.journal_n = d->s->journal_n,
		.journal_unread = d->s->journal_unread,
		.apply_words = d->o->apply ? NULL : apply_words(d),
		.is_root = fix_context_may_write(d->s),
		.judged = true,
		.verbose = d->o->common->verbose,
	};
}

static struct delivery_report delivery_report_of(const struct delivery_session *d)
{
	return (struct delivery_report){.delivery = d->delivery,
					.machine = d->machine,
					.image = d->o->image,
					.work = has_steps(d) && !d->delivery->blocked};
}

static enum exit_code judge(const struct delivery_session *d)
{
	if (d->delivery->blocked)
		return d->o->apply ? EXIT_REFUSED : EXIT_FINDING;
	return plan_has_work(d->plan) ? EXIT_FINDING : EXIT_OK;
}

static int print_text_report(const struct delivery_session *d, enum exit_code code)
{
	const struct delivery_report r = delivery_report_of(d);
	const struct plan_report p = plan_report_of(d);
	struct document *out = document_new();

	report_delivery(out, &r);
	/* A plan that cannot be applied would only hide what has to be fixed first. */
	if (!d->delivery->blocked)
		report_plan(out, &p);
	report_delivery_after(out, &r);
	code = (enum exit_code)print_document(out, d->o->common, code);
	document_free(out);
	return (int)code;
}

static int show(const struct delivery_session *d, enum exit_code code)
{
	const struct delivery_report r = delivery_report_of(d);
	const struct plan_report p = plan_report_of(d);

	if (!d->o->common->json)
		return print_text_report(d, code);
	return print_json(report_delivery_json(&r, report_plan_json(&p, NULL)), code);
}

/* ---- the sources, where they are fetched ---- */

static bool on_download(void *context, int64_t bytes)
{
	struct delivery_session *d = context;
	int64_t all = d->delivery->download->bytes;
	AUTO_STRBUF struct strbuf sizes = {0};

	if (d->s->quiet)
		return !fix_context_was_signalled();
	download_add_size(bytes, &sizes);
	if (all >= bytes && all) { /* the announced size may be too small */
		strbuf_puts(&sizes, " of ");
		download_add_size(all, &sizes);
	}
	progress_show(&d->progress, "downloading: %s", strbuf_str(&sizes));
	return !fix_context_was_signalled();
}

/* A server that is silent is waited for: once it takes a while, a line says so. */
static bool on_asking(void *context, int64_t bytes)
{
	struct delivery_session *d = context;

	(void)bytes;
	if (!d->s->quiet && ++d->waited == 2)
		progress_show(&d->progress, "waiting for an answer from %s",
			      d->delivery->download->shown);
	return true;
}

static void ask_download(struct delivery_session *d)
{
	const struct download_watch watch = {.progress = on_asking, .context = d};
	const struct delivery_request request = request_of(d);

	progress_begin(&d->progress);
	delivery_ask_download(&request, d->delivery, &watch, d->machine->arena);
	progress_end(&d->progress);
}

/* Refused or interrupted; any other error means that the change failed. */
static enum exit_code failure(int r)
{
	return r == -EINVAL || r == -EBUSY || r == -EFBIG || r == -ECANCELED ? EXIT_REFUSED
									     : EXIT_NOT_CHANGED;
}

/* After the download continue as with --sources: read the tree and plan again. */
static int download(struct delivery_session *d)
{
	const struct download_watch watch = {.progress = on_download, .context = d};
	const struct download *what = d->delivery->download;
	int r;

	if (!d->s->quiet)
		printf("Downloading %s\n", what->url);
	fflush(stdout);
	progress_begin(&d->progress);
	r = download_fetch(&d->s->host, what, &watch);
	progress_end(&d->progress);
	if (r < 0)
		return fail(failure(r), "%s; the system was not changed", err_msg());
	if (!d->s->quiet)
		printf("%s: sources of %s, verified against NVIDIA's release\n", what->folder,
		       what->release);
	r = look(d);
	return r ? r : make_plan(d);
}

/* ---- the core ---- */

static bool on_progress(void *context, const struct build_progress *p)
{
	struct delivery_session *d = context;
	bool due = terminal_escapes(STDERR_FILENO) || p->seconds - d->shown_s >= LOG_EVERY_S ||
		   p->seconds < d->shown_s; /* the next part */

	if (due)
		d->shown_s = p->seconds;
	if (due && !d->s->quiet)
		progress_show(&d->progress, "building %s: %u %s compiled in %.0f s", p->part,
			      p->files, text_plural(p->files, "file", "files"), p->seconds);
	return !fix_context_was_signalled();
}

static int edit_tree(struct delivery_session *d)
{
	static const struct unlock_options none = {0};
	struct unlock *u = NULL;
	int r = unlock_apply(d->sources, &none, &u);

	if (r < 0)
		return fail(failure(r), "%s", err_msg());
	if (!d->s->quiet)
		printf("%s: %zu %s edited, %s\n", d->sources, u->n,
		       text_plural(u->n, "file", "files"),
		       u->taken_back ? "after reverting the edits of an earlier onehop"
		       : u->replaced ? "now"
				     : "as before");
	fflush(stdout);
	unlock_close(u);
	return 0;
}

static int build_failed(const struct delivery_session *d, int r, const struct strbuf *last)
{
	AUTO_FREE char *why = xstrdup(err_msg());

	if (last->len)
		fprintf(stderr, "%s%s", last->text, last->text[last->len - 1] == '\n' ? "" : "\n");
	return fail(failure(r),
		    "%s; the system was not changed, but the sources in %s are edited "
		    "(to restore them: onehop unlock --tree %s --revert)",
		    why, d->sources, d->sources);
}

/* Edits the tree and builds its core. This does not change the system. */
static int build(struct delivery_session *d)
{
	AUTO_STRBUF struct strbuf last = {0};
	const bool own = d->delivery->way == DELIVER_OWN_DKMS;
	const struct build_request request = {
		.sources = d->sources,
		.core = d->delivery->core_built,
		.modeset = own ? d->delivery->modeset_built : NULL,
		.progress = on_progress,
		.context = d,
		.arena = d->machine->arena,
	};
	int r;

	if (d->delivery->built || !wants_core(d->delivery))
		return 0;
	r = edit_tree(d);
	if (r)
		return r;
	if (!d->s->quiet)
		printf("Building its core: about %d min, log in %s/%s\n",
		       build_minutes(BUILD_CORE, fact_or(d->machine->cpu.threads, 0)), d->sources,
		       BUILD_LOG);
	fflush(stdout);
	progress_begin(&d->progress);
	r = build_core(&request, &last);
	progress_end(&d->progress);
	if (r < 0)
		return build_failed(d, r, &last);
	d->delivery->built = true;
	return make_plan(d);
}

static int refuse(const struct delivery_session *d)
{
	int r = show(d, EXIT_REFUSED);

	return d->o->common->json
		       ? r
		       : fail(EXIT_REFUSED,
			      "fix the checks marked BAD above first; nothing was changed");
}

/* ---- an earlier edit ---- */

static int undo_one(struct delivery_session *d, unsigned number)
{
	struct fix_run run = fix_context_run(d->s);
	enum fix_result result = FIX_NOT_ROLLED_BACK;
	unsigned none;
	int r = fix_undo(&run, number, &result, &none);

	if (r == 0 && result == FIX_DONE)
		return 0;
	return fail(
		EXIT_NOT_CHANGED,
		"fix %u could not be undone%s%s; nothing else was changed (see: onehop history %u)",
		number, r < 0 ? ": " : "", r < 0 ? err_msg() : "", number);
}

/*
 * Undoes the earlier edits, which restores the driver's own modules, and reads the system again.
 */
static int undo_earlier(struct delivery_session *d)
{
	const unsigned *earlier = d->delivery->earlier;
	size_t n = d->delivery->earlier_n;
	int r = 0;

	if (!n)
		return 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = undo_one(d, earlier[i]);
	fix_context_read_journal(d->s);
	if (r)
		return r;
	if (!d->s->quiet)
		printf("\n");
	fflush(stdout);
	d->s->events = NULL; /* they belong to the fix that was undone */
	d->s->event_n = 0;
	d->again = true;
	plan_free(d->plan); /* before the machine, which owns its texts */
	d->plan = NULL;
	machine_free(d->machine);
	source_free(d->source);
	d->machine = NULL;
	d->source = NULL;
	r = read_machine(d);
	if (r == 0)
		r = look(d);
	if (r == 0 && d->delivery->blocked)
		r = refuse(d);
	return r ? r : make_plan(d);
}

/* ---- carrying it out ---- */

static int print_outcome_json(const struct delivery_session *d, const struct fix_outcome *o)
{
	const struct delivery_report r = delivery_report_of(d);
	const struct plan_report p = plan_report_of(d);
	enum exit_code code = outcome_code(o);
	int printed = print_json(report_delivery_json(&r, report_plan_json(&p, o)), code);

	return code ? (int)code : printed;
}

static int carry_out(struct delivery_session *d)
{
	struct fix_outcome o;
	int r;

	fix_context_hold_signals();
	r = build(d);
	if (r)
		return r;
	if (fix_context_was_signalled())
		return fail(EXIT_REFUSED, "interrupted; the system was not changed");
	r = undo_earlier(d);
	if (r)
		return r;
	o = fix_context_carry_out(d->s, d->plan);
	if (d->o->common->json)
		return print_outcome_json(d, &o);
	printf("\n");
	return finish_outcome(d->s, &o);
}

static int check_root(const struct delivery_session *d)
{
	return fix_context_may_write(d->s)
		       ? 0
		       : fail(EXIT_REFUSED, "--apply needs root; nothing was changed");
}

/* The plan is printed first. If that fails, nothing is changed. */
static int apply(struct delivery_session *d)
{
	int r;

	if (d->delivery->blocked)
		return refuse(d);
	if (!has_steps(d))
		return show(d, judge(d));
	r = check_root(d);
	if (r == 0 && !d->o->common->json) {
		r = show(d, EXIT_OK);
		printf("\n");
	}
	return r ? r : carry_out(d);
}

/* Prints the plan before the download. Prints it again only if the sources changed it. */
static int download_and_apply(struct delivery_session *d)
{
	bool planned = has_steps(d);
	int r = check_root(d);

	if (r == 0 && !d->o->common->json) {
		r = show(d, EXIT_OK);
		printf("\n");
	}
	fix_context_hold_signals();
	if (r == 0)
		r = download(d);
	if (r)
		return r;
	return planned && !d->delivery->blocked ? carry_out(d) : apply(d);
}

/* Recovery comes first, because it changes what is read. */
static int deliver_on(struct delivery_session *d)
{
	int r = d->o->apply ? fix_context_recover(d->s) : 0;

	if (r == 0)
		r = read_machine(d);
	if (r == 0 && d->o->apply && has_nothing_to_fetch_for(d))
		return refuse_without_pair(d->requirements);
	if (r == 0 && !d->o->sources &&
	    (has_nothing_to_fetch_for(d) ||
	     (d->requirements->judged && nothing_is_missing(d->requirements->action))))
		return show_requirements(d->machine, d->requirements, d->o->common, false);
	if (r == 0)
		r = look(d);
	if (r == 0 && !d->delivery->blocked)
		ask_download(d);
	if (r == 0)
		r = make_plan(d);
	if (r)
		return r;
	if (!d->o->apply)
		return show(d, judge(d));
	return d->delivery->download && !d->delivery->blocked ? download_and_apply(d) : apply(d);
}

int deliver(const struct deliver_options *o)
{
	struct fix_context s;
	CLEANUP(delivery_session_done) struct delivery_session d = {.o = o, .s = &s};
	int r = fix_context_open(o->common, NULL, &s);

	if (r)
		return r;
	fix_context_read_journal(&s);
	/* With --sources something is always written. Without, it depends on the machine. */
	if (o->apply && o->sources)
		r = check_root(&d);
	if (r == 0)
		r = deliver_on(&d);
	fix_context_close(&s);
	return r;
}
