/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that are fetched first: which, from where, and whether they are available. */
#include "unlock/delivery_impl.h"
#include "unlock/download.h"
#include "unlock/known_sources.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"
#include "base/strbuf.h"
#include "fix/step.h"

#include <string.h>

#define CHECK_NAME "download"
/* As git packs 535.43.02 and 595.45.04. */
#define TYPICAL_SIZE "13 to 25 MB"

/* curl comes first: it is the one that goes on with what is there in most places. */
static const char *find_program(const struct delivery_facts *l)
{
	for (size_t i = 0; download_programs[i]; i++)
		if (delivery_has_program(l, download_programs[i]) == 1)
			return download_programs[i];
	return NULL;
}

void delivery_find_download(struct delivery_facts *l)
{
	const char *below = delivery_format(l, SOURCES_FOLDER "/%s", l->installed);
	AUTO_FREE char *folder = NULL;

	if (!l->installed || !l->r->root || delivery_is_options_alone(l))
		return;
	folder = path_below(l->r->root, below);
	l->d->sources = arena_strdup(l->a, folder);
	if (delivery_has(l, below) != 1)
		l->d->download = download_of(l->installed, find_program(l), l->r->repository,
					     l->d->sources, l->a);
}

/* ---- what is said ---- */

/* The same as was asked for, but for where the sources come from. */
static const char *by_hand(const struct delivery_request *r, const char *release, struct arena *a)
{
	AUTO_STRBUF struct strbuf b = {0};
	const char *const kernel[] = {r->kernel, NULL};

	strbuf_printf(&b,
		      "git clone --depth 1 --branch %s " PUBLIC_REPOSITORY "\n"
		      "sudo onehop unlock --sources open-gpu-kernel-modules",
		      release);
	if (r->kernel) {
		strbuf_puts(&b, " --kernel ");
		step_command_line(kernel, &b);
	}
	strbuf_puts(&b, r->image ? " --image --apply" : " --apply");
	return arena_strdup(a, strbuf_str(&b));
}

static const char *what_is_known(const char *release, struct arena *a)
{
	size_t n;
	const struct known_source *known = known_source_table(&n);

	return arena_printf(
		a,
		"%s is not one of the %zu releases, %s to %s, whose files onehop knows, so a "
		"download could not be checked. --sources judges a tree by its content",
		release, n, known[0].release, known[n - 1].release);
}

static const char *what_is_fetched(const struct download *d, struct arena *a)
{
	AUTO_STRBUF struct strbuf size = {0};

	if (d->bytes)
		download_add_size(d->bytes, &size);
	strbuf_puts(&size, d->bytes ? " according to the server" : "typically " TYPICAL_SIZE);
	return arena_printf(
		a, "%s from %s with %s to %s; --apply checks the files before it uses them",
		strbuf_str(&size), d->shown, d->program, d->folder);
}

void delivery_check_download(struct delivery_facts *l, struct delivery_check *c)
{
	const struct download *d = l->d->download;

	if (!d)
		return;
	if (era_is_before_all(d->release))
		delivery_say(c, CHECK_BAD,
			     delivery_format(l, "release %s is too old for the edits", d->release),
			     delivery_format(l, "install driver %s or later", era_names[0].name));
	else if (!d->hash)
		delivery_say(c, CHECK_BAD, what_is_known(d->release, l->a),
			     by_hand(l->r, d->release, l->a));
	else if (!d->program)
		delivery_say(c, CHECK_BAD, "none of curl, wget and git is installed",
			     delivery_install_command(l, "curl"));
	else
		delivery_say(c, CHECK_GOOD, what_is_fetched(d, l->a), NULL);
}

static struct delivery_check *check_named(const struct delivery *d, const char *what)
{
	struct delivery_check *c = d->checks;

	while (strcmp(c->what, what) != 0)
		c++;
	return c;
}

void delivery_check_fetched(struct fix_host *h, struct delivery *d, struct arena *a)
{
	if (!d->sources || d->download || download_check(h, d->release, d->sources) == 0)
		return;
	d->blocked = true;
	delivery_say(check_named(d, "sources"), CHECK_BAD,
		     arena_printf(a, "%s; remove it, and --apply downloads it again", err_msg()),
		     arena_printf(a, "sudo rm -r %s", d->sources));
}

void delivery_ask_download(const struct delivery_request *r, struct delivery *d,
			   const struct download_watch *w, struct arena *a)
{
	struct delivery_check *c;

	if (!d->download || !d->download->hash || !d->download->program)
		return;
	c = check_named(d, CHECK_NAME);
	if (download_ask(d->download, w) == 0) {
		delivery_say(c, CHECK_GOOD, what_is_fetched(d->download, a), NULL);
		return;
	}
	d->blocked = true;
	delivery_say(c, CHECK_BAD,
		     arena_printf(a, "%s is not available: %s", d->download->shown, err_msg()),
		     by_hand(r, d->download->release, a));
}
