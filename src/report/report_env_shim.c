/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_env.h"

#include "base/strbuf.h"
#include "base/text.h"
#include "collective/faster.h"
#include "collective/operation.h"
#include "machine/usable.h"
#include "report/report_impl.h"
#include "report/shim_path.h"
#include "session/tune_session.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MEMBERS                                                                                    \
	16 /* GPUs that are looked at: more than a host has of those that the shim was measured on */

/* How two ranks reach each other; only sets in which all do so in the same way were measured. */
enum way { WAY_DIRECT, WAY_UNKNOWN, WAY_HOST };

struct shim_view {
	const struct topology *t;
	const struct tune_use *tuned;
	bool no_p2p, no_shm;    /* NCCL's settings, which the shim obeys */
	bool no_driver;         /* CUDA does not start */
	const char *mode;       /* ONEHOP_SHIM of this shell; NULL: not set */
	size_t gpu[MEMBERS], n; /* that can be ranks */
};

static bool setting_is_on(const struct topology *t, const char *name)
{
	const struct setting *s = machine_setting(t->machine, name);

	return s && strtol(s->value, NULL, 0) != 0;
}

/* As plugins/nccl/engine.c decides. */
static bool may_not_use_p2p(const struct topology *t)
{
	const struct setting *level = machine_setting(t->machine, "NCCL_P2P_LEVEL");

	return setting_is_on(t, "NCCL_P2P_DISABLE") ||
	       (level && (strcasecmp(level->value, "LOC") == 0 || strcmp(level->value, "0") == 0));
}

/* As plugins/nccl/shim.c decides. */
static bool is_off(const char *mode)
{
	return mode && *mode && strcasecmp(mode, "on") != 0 && strcmp(mode, "1") != 0 &&
	       strcasecmp(mode, "all") != 0;
}

static struct shim_view look_at(const struct topology *t, const struct tune_use *tuned)
{
	struct shim_view v = {.t = t,
			      .tuned = tuned,
			      .no_p2p = may_not_use_p2p(t),
			      .no_shm = setting_is_on(t, "NCCL_SHM_DISABLE"),
			      .no_driver = path_driver_is_out(topology_path(t, 0, 1)),
			      .mode = t->machine->recorded ? NULL : getenv("ONEHOP_SHIM")};

	for (size_t i = 0; !v.no_driver && !is_off(v.mode) && i < t->gpu_n && v.n < MEMBERS; i++) {
		const struct gpu *g = &t->machine->gpus[t->endpoints[i].index];

		if (!device_faults(t->machine, t->endpoints[i].pci, g) &&
		    !fact_is(g->display_active, 1))
			v.gpu[v.n++] = i;
	}
	return v;
}

static enum way way_of(const struct shim_view *v, size_t a, size_t b)
{
	const enum pair_verdict there = topology_path(v->t, a, b)->verdict,
				back = topology_path(v->t, b, a)->verdict;

	if (v->no_p2p || (there == PAIR_BLOCKED && back == PAIR_BLOCKED))
		return WAY_HOST;
	return there == PAIR_DIRECT && back == PAIR_DIRECT ? WAY_DIRECT : WAY_UNKNOWN;
}

/*
 * How many sets of so many GPUs there are that reach each other in that way; `set` is what was
 * chosen of them so far.
 */
static size_t count_sets(const struct shim_view *v, const size_t *set, unsigned n, unsigned ranks,
			 size_t from, enum way want)
{
	size_t more[FASTER_RANKS_MAX], count = 0;

	if (n == ranks || n == FASTER_RANKS_MAX)
		return 1;
	for (unsigned i = 0; i < n; i++)
		more[i] = set[i];
	for (size_t k = from; k < v->n; k++) {
		bool fits = true;

		more[n] = v->gpu[k];
		for (unsigned i = 0; i < n; i++)
			fits &= way_of(v, more[i], more[n]) == want;
		if (fits)
			count += count_sets(v, more, n + 1, ranks, k + 1, want);
	}
	return count;
}

static size_t sets_of(const struct shim_view *v, unsigned ranks, enum way want)
{
	return want == WAY_HOST && v->no_shm ? 0 : count_sets(v, NULL, 0, ranks, 0, want);
}

/* ---- the line ---- */

static bool is_tuned(const struct tune_use *u)
{
	return u && u->found;
}

static void add_line(struct document *out, const struct shim_view *v)
{
	AUTO_STRBUF struct strbuf b = {0};

	strbuf_puts(&b, "LD_PRELOAD=" SHIM_PATH "${LD_PRELOAD:+:$LD_PRELOAD}");
	if (is_tuned(v->tuned)) {
		strbuf_puts(&b, " ONEHOP_TUNE_FILE=");
		strbuf_shell_word(&b, v->tuned->path);
	}
	strbuf_puts(&b, " COMMAND\n");
	document_verbatim(out, 0, strbuf_str(&b));
	if (!v->t->machine->recorded && access(SHIM_PATH, R_OK) != 0)
		document_paragraph(out, STYLE_WARN, 0,
				   "That file is not there: `make install` puts it there.");
	document_blank(out);
}

/* ---- what is taken over ---- */

/*
 * libonehop's times on these GPUs; a table has other sizes and is read between them, as the shim
 * does. false: it has none.
 */
static bool add_times(struct document *out, const struct tuned *t, const struct faster *f)
{
	AUTO_STRBUF struct strbuf b = {0};
	char size[BYTES_TEXT_SIZE];
	struct comm_facts facts;
	struct choice c;
	bool slower = false;

	comm_facts_make(f->ranks, f->direct, 128, 1024, &facts);
	operation_count(&facts);
	facts.times = t->times[f->direct ? TUNED_DIRECT : TUNED_HOST];
	for (unsigned i = 0; i < FASTER_RANGES; i++) {
		const struct faster_range *r = &f->ranges[i];

		operation_choose(&facts, f->operation, r->bytes / 4, ELEMENT_FLOAT32, ALGORITHM_N,
				 &c);
		if (!c.measured)
			continue;
		strbuf_printf(&b, "%s%s %.1f us", b.len ? ", " : "", bytes_text(r->bytes, size),
			      c.us);
		if (r->nccl_us > 0)
			strbuf_printf(&b, " (%.2f)", c.us / r->nccl_us);
		slower |= r->nccl_us > 0 && c.us > r->nccl_us;
	}
	if (b.len)
		document_item(
			out, slower ? STYLE_WARN : STYLE_PLAIN, 0, "here",
			"%s, measured by onehop tune on %.10s; in brackets divided by NCCL's time in graphs, which is that of %s",
			strbuf_str(&b), t->date, f->machine);
	return b.len > 0;
}

/* What was measured elsewhere. */
static void add_ranges(struct document *out, const struct faster *f)
{
	AUTO_STRBUF struct strbuf b = {0};
	char size[BYTES_TEXT_SIZE];

	for (unsigned i = 0; i < FASTER_RANGES; i++) {
		const struct faster_range *r = &f->ranges[i];

		strbuf_printf(&b, "%s%.2f", i ? ", " : "", r->least);
		if (r->most > r->least)
			strbuf_printf(&b, " to %.2f", r->most);
		strbuf_printf(&b, " up to %s", bytes_text(r->bytes, size));
	}
	document_item(out, STYLE_PLAIN, 0, "by size", "in graphs there: %s", strbuf_str(&b));
}

/* Whether there is such a communicator here. */
static bool add_row(struct document *out, const struct shim_view *v, const struct faster *f)
{
	const size_t n = sets_of(v, f->ranks, f->direct ? WAY_DIRECT : WAY_HOST);
	char size[BYTES_TEXT_SIZE];

	if (!n)
		return false;
	document_item(
		out, STYLE_GOOD, 0, "taken over",
		"%s of %u GPUs, %s, up to %s: estimated %.2f to %.2f of NCCL's time, which is what was measured on %s (%zu such %s here)",
		operation_word(f->operation), f->ranks,
		f->direct ? "directly" : "through the host's memory", bytes_text(f->bytes, size),
		f->least, f->most, f->machine, n,
		f->ranks == 2 ? text_plural(n, "pair", "pairs") : text_plural(n, "set", "sets"));
	if (!is_tuned(v->tuned) || v->tuned->table.identity.n != f->ranks ||
	    !add_times(out, &v->tuned->table, f))
		add_ranges(out, f);
	return true;
}

/* What keeps the shim from communicators that it takes over elsewhere. */
static void add_limits(struct document *out, const struct shim_view *v)
{
	if (v->no_driver)
		document_item(out, STYLE_WARN, 0, "driver",
			      "CUDA does not start here, and NCCL does not either (onehop check)");
	else if (is_off(v->mode))
		document_item(out, STYLE_WARN, 0, "settings",
			      "ONEHOP_SHIM=%s of this shell turns it off", v->mode);
	else if (v->n < v->t->gpu_n && v->n < MEMBERS)
		document_item(out, STYLE_WARN, 0, "left to NCCL",
			      "communicators with a GPU that cannot be used, is divided (MIG) or "
			      "shows a desktop: %zu of %zu",
			      v->t->gpu_n - v->n, v->t->gpu_n);
	if (v->no_p2p)
		document_item(out, STYLE_WARN, 0, "settings",
			      "NCCL may not use P2P, so the shim does not either%s",
			      v->no_shm
				      ? ". NCCL_SHM_DISABLE is set too: everything is left to NCCL"
				      : "");
	if (v->mode && strcasecmp(v->mode, "all") == 0)
		document_item(out, STYLE_WARN, 0, "settings",
			      "ONEHOP_SHIM=all of this shell takes over more, also what NCCL was "
			      "measured to be faster at");
}

static void add_left(struct document *out)
{
	document_item(out, STYLE_DIM, 0, "left to NCCL",
		      "other types than float32, float16 and bfloat16, other reductions than sum "
		      "and average, other sizes and operations, communicators of more GPUs or "
		      "hosts. ONEHOP_SHIM=all takes over more, ONEHOP_SHIM=off nothing.");
}

/* How sure the gains are. */
static void add_source(struct document *out, const struct tune_use *u)
{
	if (is_tuned(u))
		document_item(out, STYLE_DIM, 0, "estimated",
			      "the gain: onehop bench nccl --shim measures it");
	else if (u && *u->why)
		document_item(out, STYLE_WARN, 0, "estimated", "%s", u->why);
	else
		document_item(out, STYLE_DIM, 0, "estimated",
			      "nothing was measured on these GPUs: onehop tune measures the times, "
			      "onehop bench nccl --shim the gain");
}

void report_env_shim(struct document *out, const struct topology *t, const struct tune_use *tuned)
{
	const struct shim_view v = look_at(t, tuned);
	const size_t unknown = sets_of(&v, 2, WAY_UNKNOWN);
	size_t rows = 0;

	add_line(out, &v);
	for (size_t i = 0; faster_at(i); i++)
		rows += add_row(out, &v, faster_at(i));
	if (unknown)
		document_item(out, STYLE_WARN, 0, "unknown",
			      "whether %s direct, so nothing can be said of what is taken over "
			      "there (onehop check)",
			      v.n == 2 ? "the pair is" : "some pairs are");
	if (rows)
		add_source(out, tuned);
	else if (!unknown)
		document_item(out, STYLE_WARN, 0, "taken over", "nothing");
	add_limits(out, &v);
	if (!rows)
		return;
	add_left(out);
	document_paragraph(
		out, STYLE_PLAIN, 0,
		"Where NCCL has NVLink multicast (NVLS), these times were not compared with it.");
}
