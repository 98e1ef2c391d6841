/* SPDX-License-Identifier: Apache-2.0 */
#include "session/deliver_session.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/machine.h"
#include "unlock/build.h"
#include "unlock/delivery_earlier.h"
#include "unlock/delivery_kernels.h"
#include "unlock/delivery_plan.h"
#include "unlock/download.h"
#include "unlock/unlock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In a log, the progress of a build is a line this often. */
#define LOG_EVERY_S 30

void deliver_session_done(struct deliver_session *d)
{
	plan_free(d->plan);
	free(d->core);
	machine_free(d->machine);
	source_free(d->source);
	free(d->sources);
}

/* ---- reading the machine ---- */

static enum ending read_machine(struct deliver_session *d)
{
	if (d->o->sources && !d->sources && !(d->sources = realpath(d->o->sources, NULL))) {
		err_set(errno, "--sources %s: %s", d->o->sources, strerror(errno));
		return ENDED_UNDECIDED;
	}
	if (machine_choice_read(d->from, UNLOCK_PARTS, &d->machine) < 0 ||
	    source_open_root("/", NULL, NULL, &d->source) < 0)
		return ENDED_UNDECIDED;
	d->requirements = unlock_requirements(d->machine);
	return ENDED_WELL;
}

/* The first card whose action is that of the machine. */
static const struct card_requirement *deciding_card(const struct unlock_requirements *n)
{
	size_t i = 0;

	while (n->cards[i].action != n->action)
		i++;
	return &n->cards[i];
}

static enum ending refuse_without_pair(const struct unlock_requirements *n)
{
	return ended_refused("%s: there is no pair to unlock; nothing was changed",
			     n->n ? "there is one NVIDIA GPU here" : "no NVIDIA GPU was found");
}

/* Nothing is fetched for a machine without a GPU, unless it is only an image. */
static bool has_nothing_to_fetch_for(const struct deliver_session *d)
{
	return d->o->download && !d->o->image && !d->requirements->n;
}

/* Without sources only options can be set. */
static enum ending check_options_alone(const struct deliver_session *d)
{
	const struct unlock_requirements *n = d->requirements;

	if (d->o->sources || d->o->download)
		return ENDED_WELL;
	if (n->n < 2)
		return refuse_without_pair(n);
	if (n->action == ACTION_REFUSED || n->action == ACTION_UNKNOWN)
		return ended_refused("GPU%zu: %s; nothing was changed (see: onehop unlock)",
				     deciding_card(n)->gpu->index, deciding_card(n)->why);
	if (action_builds(n->action))
		return ended_refused(
			"the driver must be edited, and its sources are missing; nothing was changed (add --download, or --sources DIR with release%s%s)",
			n->release ? " " : "", n->release ? n->release : "");
	return ENDED_WELL;
}

static const char *repository_of(const struct deliver_choice *o)
{
	if (!o->download)
		return NULL;
	return o->mirror ? o->mirror : PUBLIC_REPOSITORY;
}

static struct delivery_request request_of(const struct deliver_session *d)
{
	const bool named = d->o->sources || d->again; /* the download is complete by then */

	return (struct delivery_request){.root = "/",
					 .sources = named ? d->sources : NULL,
					 .repository = named ? NULL : repository_of(d->o),
					 .kernel = d->o->kernel,
					 .image = d->o->image};
}

static enum ending look(struct deliver_session *d)
{
	const struct delivery_request request = request_of(d);
	enum ending end = check_options_alone(d);
	int r;

	if (end != ENDED_WELL)
		return end;
	r = delivery_look(&request, d->source, d->machine, d->requirements, &d->delivery);
	if (r < 0)
		return r == -EINVAL ? ENDED_REFUSED : ENDED_UNDECIDED;
	if (!d->sources && d->delivery->sources)
		d->sources = xstrdup(d->delivery->sources);
	if (request.repository)
		delivery_check_fetched(&d->fix->host, d->delivery, d->machine->arena);
	delivery_check_kernels(&d->fix->host, d->delivery, d->o->image, d->machine->arena);
	delivery_check_earlier(&d->fix->host, d->delivery, d->fix->journal, d->fix->journal_n,
			       d->machine->arena);
	return ENDED_WELL;
}

/* ---- the plan ---- */

/* Whether the core must be built here. A DKMS tree of the whole release lets DKMS build it. */
static bool wants_core(const struct delivery *d)
{
	return d->way == DELIVER_OWN_DKMS || (d->way == DELIVER_INTO_DKMS && d->core);
}

static int read_core(struct deliver_session *d)
{
	AUTO_CLOSE int fd = -1;
	int r;

	if (d->core || !wants_core(d->delivery) || !d->delivery->built)
		return 0;
	fd = open(d->delivery->core_built, O_RDONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : fd_read_all(fd, DELIVERY_CORE_MAX, &d->core, &d->core_size);
	return r < 0 ? err_sys(-r, "%s", d->delivery->core_built) : 0;
}

static struct delivery_plan_request plan_request_of(const struct deliver_session *d)
{
	return (struct delivery_plan_request){.delivery = d->delivery,
					      .requirements = d->requirements,
					      .machine = d->machine,
					      .source = d->source,
					      .host = &d->fix->host,
					      .core = d->core,
					      .core_size = d->core_size,
					      .image = d->o->image};
}

static enum ending make_plan(struct deliver_session *d)
{
	struct delivery_plan_request request;
	int r = read_core(d);

	plan_free(d->plan);
	d->plan = NULL;
	request = plan_request_of(d);
	if (r == 0)
		r = delivery_plan(&request, &d->plan);
	if (r < 0) {
		AUTO_FREE char *why = xstrdup(err_msg());

		return ended_refused("%s; nothing was changed", why);
	}
	d->fix->build_log = delivery_build_log(&request);
	return ENDED_WELL;
}

bool deliver_session_has_steps(const struct deliver_session *d)
{
	return d->plan && plan_doing_steps(d->plan) > 0;
}

/* ---- the sources, where they are fetched ---- */

static bool on_download(void *context, int64_t bytes)
{
	struct deliver_session *d = context;
	int64_t all = d->delivery->download->bytes;
	AUTO_STRBUF struct strbuf sizes = {0};

	download_add_size(bytes, &sizes);
	if (all >= bytes && all) { /* the announced size may be too small */
		strbuf_puts(&sizes, " of ");
		download_add_size(all, &sizes);
		session_tell_left(d->ear, &d->pace, (double)(all - bytes), "downloading %s",
				  strbuf_str(&sizes));
	} else {
		session_tell(d->ear, SESSION_RUNS, "downloading: %s", strbuf_str(&sizes));
	}
	return !change_session_was_signalled();
}

/* A server that is silent is waited for: once it takes a while, a line says so. */
static bool on_asking(void *context, int64_t bytes)
{
	struct deliver_session *d = context;

	(void)bytes;
	if (++d->waited == 2)
		session_tell(d->ear, SESSION_RUNS, "waiting for an answer from %s",
			     d->delivery->download->shown);
	return true;
}

static void ask_download(struct deliver_session *d)
{
	const struct download_watch watch = {.progress = on_asking, .context = d};
	const struct delivery_request request = request_of(d);

	delivery_ask_download(&request, d->delivery, &watch, d->machine->arena);
}

/* Refused or interrupted; any other error means that the change failed. */
static enum ending failure(int r)
{
	return r == -EINVAL || r == -EBUSY || r == -EFBIG || r == -ECANCELED ? ENDED_REFUSED
									     : ENDED_FAILED;
}

/* After the download continue as with --sources: read the tree and plan again. */
enum ending deliver_session_fetch(struct deliver_session *d)
{
	const struct download_watch watch = {.progress = on_download, .context = d};
	const struct download *what = d->delivery->download;
	enum ending end;
	int r;

	session_tell(d->ear, SESSION_DONE, "Downloading %s", what->url);
	r = download_fetch(&d->fix->host, what, &watch);
	if (r < 0) {
		AUTO_FREE char *why = xstrdup(err_msg());

		err_set(-r, "%s; the system was not changed", why);
		return failure(r);
	}
	session_tell(d->ear, SESSION_DONE, "%s: sources of %s, verified against NVIDIA's release",
		     what->folder, what->release);
	end = look(d);
	return end == ENDED_WELL ? make_plan(d) : end;
}

/* ---- the core ---- */

static bool on_build(void *context, const struct build_progress *p)
{
	struct deliver_session *d = context;
	bool due = !d->to_log || p->seconds - d->shown_s >= LOG_EVERY_S ||
		   p->seconds < d->shown_s; /* the next part */

	if (due) {
		d->shown_s = p->seconds;
		session_tell(d->ear, SESSION_RUNS, "building %s: %u %s compiled in %.0f s", p->part,
			     p->files, text_plural(p->files, "file", "files"), p->seconds);
	}
	return !change_session_was_signalled();
}

static enum ending edit_tree(struct deliver_session *d)
{
	static const struct unlock_options none = {0};
	struct unlock *u = NULL;
	int r = unlock_apply(d->sources, &none, &u);

	if (r < 0)
		return failure(r);
	session_tell(d->ear, SESSION_DONE, "%s: %zu %s edited, %s", d->sources, u->n,
		     text_plural(u->n, "file", "files"),
		     u->taken_back ? "after reverting the edits of an earlier onehop"
		     : u->replaced ? "now"
				   : "as before");
	unlock_close(u);
	return ENDED_WELL;
}

static enum ending build_failed(const struct deliver_session *d, int r, const struct strbuf *last)
{
	AUTO_FREE char *why = xstrdup(err_msg());

	if (last->len)
		session_tell(d->ear, SESSION_LOG, "%s", last->text);
	err_set(-r,
		"%s; the system was not changed, but the sources in %s are edited "
		"(to restore them: onehop unlock --tree %s --revert)",
		why, d->sources, d->sources);
	return failure(r);
}

static enum ending build(struct deliver_session *d)
{
	AUTO_STRBUF struct strbuf last = {0};
	const bool own = d->delivery->way == DELIVER_OWN_DKMS;
	const struct build_request request = {
		.sources = d->sources,
		.core = d->delivery->core_built,
		.modeset = own ? d->delivery->modeset_built : NULL,
		.progress = on_build,
		.context = d,
		.arena = d->machine->arena,
	};
	int r;

	session_tell(d->ear, SESSION_DONE, "Building its core: about %d min, log in %s/%s",
		     build_minutes(BUILD_CORE, fact_or(d->machine->cpu.threads, 0)), d->sources,
		     BUILD_LOG);
	r = build_core(&request, &last);
	if (r < 0)
		return build_failed(d, r, &last);
	d->delivery->built = true;
	return make_plan(d);
}

enum ending deliver_session_build(struct deliver_session *d)
{
	enum ending end = ENDED_WELL;

	if (!d->delivery->built && wants_core(d->delivery)) {
		end = edit_tree(d);
		if (end == ENDED_WELL)
			end = build(d);
	}
	if (end == ENDED_WELL && change_session_was_signalled())
		return ended_refused("interrupted; the system was not changed");
	return end;
}

/* ---- an earlier edit ---- */

static enum ending undo_one(struct deliver_session *d, unsigned number)
{
	struct fix_run run = change_session_run(d->fix);
	enum fix_result result = FIX_NOT_ROLLED_BACK;
	AUTO_FREE char *why = NULL;
	unsigned none;
	int r = fix_undo(&run, number, &result, &none);

	if (r == 0 && result == FIX_DONE)
		return ENDED_WELL;
	why = r < 0 ? xstrdup(err_msg()) : NULL;
	err_set(EIO,
		"fix %u could not be undone%s%s; nothing else was changed (see: onehop history %u)",
		number, why ? ": " : "", why ? why : "", number);
	return ENDED_FAILED;
}

enum ending deliver_session_undo_earlier(struct deliver_session *d)
{
	const unsigned *earlier = d->delivery->earlier;
	size_t n = d->delivery->earlier_n;
	enum ending end = ENDED_WELL;

	if (!n)
		return ENDED_WELL;
	for (size_t i = 0; i < n && end == ENDED_WELL; i++)
		end = undo_one(d, earlier[i]);
	change_session_read_journal(d->fix);
	if (end != ENDED_WELL)
		return end;
	session_tell(d->ear, SESSION_DONE, "%s", "");
	change_session_drop_events(d->fix); /* they belong to the fix that was undone */
	d->again = true;
	plan_free(d->plan); /* before the machine, which owns its texts */
	d->plan = NULL;
	machine_free(d->machine);
	source_free(d->source);
	d->machine = NULL;
	d->source = NULL;
	d->fix->build_log = NULL;
	end = read_machine(d);
	if (end == ENDED_WELL)
		end = look(d);
	return end == ENDED_WELL && !d->delivery->blocked ? make_plan(d) : end;
}

/* ---- all together ---- */

/* Nothing is missing, or nothing could be done about it. */
static bool ends_at_requirements(const struct deliver_session *d)
{
	return !d->o->sources &&
	       (has_nothing_to_fetch_for(d) ||
		(d->requirements->judged && action_is_none(d->requirements->action)));
}

enum ending deliver_session_begin(struct deliver_session *d)
{
	enum ending end = read_machine(d);

	if (end != ENDED_WELL)
		return end;
	if (d->o->apply && has_nothing_to_fetch_for(d))
		return refuse_without_pair(d->requirements);
	if (ends_at_requirements(d))
		return ENDED_WELL;
	end = look(d);
	if (end != ENDED_WELL)
		return end;
	if (!d->delivery->blocked)
		ask_download(d);
	return make_plan(d);
}
