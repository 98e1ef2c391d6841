/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/observe.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ingest/figures_open.h"
#include "ingest/log_text.h"
#include "ingest/nccl_log.h"
#include "ingest/text.h"
#include "machine/observed.h"
#include "result/figures.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- GPUs ---- */

static int find_nvml_index(const struct machine *m, int index)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		if (fact_is(m->gpus[i].nvml_index, index))
			return (int)i;
	return -1;
}

static bool one_model(const struct machine *m)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		if (!fact_known(m->gpus[i].pci->device) ||
		    !fact_is(m->gpus[0].pci->device, m->gpus[i].pci->device.value))
			return false;
	return true;
}

/* CUDA numbers GPUs of one model by PCI address, as they are sorted here. */
static int find_cuda_ordinal(const struct machine *m, int ordinal)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		if (fact_is(m->gpus[i].cuda_ordinal, ordinal))
			return (int)i;
	return (size_t)ordinal < m->gpu_n && fact_unknown(m->gpus[ordinal].cuda_ordinal) &&
			       one_model(m)
		       ? ordinal
		       : -1;
}

/* `all`: the result has as many GPUs as the machine, so that CUDA's numbers mean the same. */
static int find_gpu(const struct machine *m, const struct figure_gpu *g, bool all)
{
	const struct gpu *gpu = g->pci ? machine_gpu_at(m, g->pci) : NULL;

	if (g->pci)
		return gpu ? (int)gpu->index : -1;
	if (g->nvml_index >= 0)
		return find_nvml_index(m, g->nvml_index);
	return all && g->cuda_ordinal >= 0 ? find_cuda_ordinal(m, g->cuda_ordinal) : -1;
}

/* The GPUs that texts list without an address, each of which could be any. */
static size_t count_unplaced(const struct machine *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->gpu_n; i++)
		n += m->gpus[i].pci->address.domain == PCI_NO_ADDRESS;
	return n;
}

static int refuse_gpu(const struct machine *m, const char *name, const struct figure_gpu *g,
		      size_t i, size_t n)
{
	size_t unplaced = g->pci ? count_unplaced(m) : 0;

	if (unplaced)
		return err_set(
			ENODEV,
			"%s: is of a GPU %s, but the address of %zu of %zu GPUs is unknown, so it "
			"cannot be assigned: read it with --from, not --observed, or add the "
			"output of nvidia-smi",
			name, g->pci, unplaced, m->gpu_n);
	if (g->pci)
		return err_set(ENODEV, "%s: is of a GPU %s, which this machine does not have", name,
			       g->pci);
	if (n != m->gpu_n)
		return err_set(
			ENODEV,
			"%s: is of %zu GPUs and lacks PCI addresses; this machine has %zu, so "
			"they cannot be assigned",
			name, n, m->gpu_n);
	return err_set(
		ENODEV,
		"%s: without a PCI address its GPU %zu cannot be assigned to a GPU of this machine",
		name, i);
}

/* The machine's GPU for each GPU of a result. */
static int match_gpus(const struct machine *m, const char *name, const struct figure_gpu *gpus,
		      size_t n, int *ret)
{
	for (size_t i = 0; i < n; i++) {
		ret[i] = find_gpu(m, &gpus[i], n == m->gpu_n);
		if (ret[i] < 0)
			return refuse_gpu(m, name, &gpus[i], i, n);
	}
	return 0;
}

/* ---- figures ---- */

/* Simulated GPUs have no PCI address, and could be mistaken for real ones by number alone. */
static int refuse_simulated(const struct figures *f)
{
	for (size_t i = 0; i < f->gpu_n; i++)
		if (!f->gpus[i].pci && text_starts_with(f->tool, "onehop"))
			return err_set(EINVAL, "%s: is not of GPUs%s%s", f->name,
				       *f->note ? ": " : "", f->note);
	return 0;
}

/* Another model in the same place is another machine, or this one before it was rebuilt. */
static int refuse_models(const struct figures *f, const struct machine *m, const int *gpus)
{
	AUTO_STRBUF struct strbuf others = {0};
	struct figures *now = figures_of_machine(m);

	for (size_t i = 0; i < f->gpu_n; i++) {
		const struct figure_gpu *g = &now->gpus[gpus[i]];

		if (!figure_gpu_is(&f->gpus[i], g))
			strbuf_printf(&others, "%sGPU%d %s is %s there and %s here",
				      others.len ? ", " : "", gpus[i], g->pci, f->gpus[i].name,
				      g->name);
	}
	figures_free(now);
	return others.len ? err_set(ENODEV, "%s: is of other GPUs than this machine's: %s", f->name,
				    strbuf_str(&others))
			  : 0;
}

int figures_observe(const struct figures *f, struct machine *m)
{
	AUTO_FREE int *gpus = xcalloc(f->gpu_n + 1, sizeof(*gpus));
	int r = refuse_simulated(f);

	if (r == 0)
		r = match_gpus(m, f->name, f->gpus, f->gpu_n, gpus);
	if (r == 0)
		r = refuse_models(f, m, gpus);
	if (r < 0)
		return r;
	r = observed_add_figures(m, f, gpus, false);
	if (!r)
		return err_set(EINVAL,
			       "%s: is a result of %s without figures for single pairs of GPUs",
			       f->name, f->tool);
	weighed_add(m, f, gpus, false)->observed_n = (size_t)r;
	return r;
}

/* ---- NCCL's log ---- */

static int add_transport(const struct nccl_log *l, const struct nccl_pair *p, struct machine *m,
			 int initiator, int target)
{
	struct observed *o;

	if (initiator == target || initiator < 0 || target < 0 || nccl_pair_way(p) == NCCL_WAY_NONE)
		return 0;
	o = observed_add(m, OBSERVED_NCCL_TRANSPORT, initiator, target,
			 arena_printf(m->arena, "%s:%u", l->name, p->line));
	o->ok = nccl_way_is_p2p(nccl_pair_way(p));
	o->text = arena_strdup(m->arena, p->transports);
	return 1;
}

static int add_transports(const struct nccl_log *l, struct machine *m, const int *gpus)
{
	int n = 0;

	for (size_t i = 0; i < l->device_n; i++)
		for (size_t j = 0; j < l->device_n; j++)
			if (i != j)
				n += add_transport(l, nccl_log_pair(l, i, j), m, gpus[i], gpus[j]);
	return n;
}

/*
 * `gpus`: the machine's GPU of each device, -1: it is in another host; NULL: a log of several
 * hosts, whose GPUs need not be known here.
 */
static int add_failures(const struct nccl_log *l, struct machine *m, const int *gpus)
{
	size_t first = m->observed_n;

	for (size_t i = 0; i < l->failure_n; i++) {
		const struct nccl_log_failure *x = &l->failures[i];
		struct observed *o;

		if (gpus && x->device >= 0 && gpus[x->device] < 0)
			continue;
		if (gpus && nccl_log_one_host(l) && l->device_n > 1 &&
		    x->failure.kind == RUN_TEST_FAILED) {
			observed_add_failed_test(m, gpus, l->device_n, x->failure.what,
						 arena_printf(m->arena, "%s:%u", l->name, x->line));
			continue;
		}
		o = observed_add(m, OBSERVED_RUN_FAILURE,
				 gpus && x->device >= 0 ? gpus[x->device] : -1, -1,
				 arena_printf(m->arena, "%s:%u", l->name, x->line));

		o->failure = x->failure;
		o->failure.what = arena_strdup(m->arena, x->failure.what);
		if (x->failure.where)
			o->failure.where = arena_strdup(m->arena, x->failure.where);
		if (x->failure.own_gid)
			o->failure.own_gid = arena_strdup(m->arena, x->failure.own_gid);
		if (x->failure.peer_gid)
			o->failure.peer_gid = arena_strdup(m->arena, x->failure.peer_gid);
	}
	return (int)(m->observed_n - first);
}

static int add_warnings(const struct nccl_log *l, struct machine *m)
{
	for (size_t i = 0; i < l->warnings.n; i++) {
		const struct nccl_log_note *note = &l->warnings.items[i];
		struct observed *o =
			observed_add(m, OBSERVED_NCCL_WARNING, -1, -1,
				     arena_printf(m->arena, "%s:%u", l->name, note->line));

		o->text = arena_strdup(m->arena, note->text);
	}
	return (int)l->warnings.n;
}

static int add_gdr_off(const struct nccl_log *l, const struct nccl_log_notes *notes,
		       struct machine *m)
{
	size_t first = m->observed_n;

	for (size_t i = 0; i < notes->n; i++) {
		const struct nccl_log_note *note = &notes->items[i];

		if (!strstr(note->text, "GPU Direct RDMA Disabled"))
			continue;
		observed_add(m, OBSERVED_NCCL_GDR_OFF, -1, -1,
			     arena_printf(m->arena, "%s:%u", l->name, note->line))
			->text = arena_strdup(m->arena, note->text);
	}
	return (int)(m->observed_n - first);
}

static bool only_gdr(const struct nccl_end *e)
{
	return e->gdr && !e->host;
}

static bool only_host(const struct nccl_end *e)
{
	return e->host && !e->gdr;
}

/* The end of a connection that does not use GPUDirect RDMA, while the other does; NULL: none. */
static const struct nccl_end *end_without_gdr(const struct nccl_pair *p)
{
	if (only_gdr(&p->sender) && only_host(&p->receiver))
		return &p->receiver;
	return only_gdr(&p->receiver) && only_host(&p->sender) ? &p->sender : NULL;
}

static bool is_half_known(const struct machine *m, size_t first, const char *host)
{
	for (size_t i = first; i < m->observed_n; i++)
		if (m->observed[i].kind == OBSERVED_NCCL_GDR_HALF &&
		    strcmp(m->observed[i].text, host) == 0)
			return true;
	return false;
}

static int add_links(const struct nccl_log *l, const struct nccl_log_notes *notes,
		     enum tool_message message, struct machine *m)
{
	for (size_t i = 0; i < notes->n; i++) {
		const struct nccl_log_note *note = &notes->items[i];
		struct observed *o =
			observed_add(m, OBSERVED_MESSAGE, -1, -1,
				     arena_printf(m->arena, "%s:%u", l->name, note->line));

		o->message = message;
		o->text = arena_strdup(m->arena, note->text);
		(void)sscanf(note->text, "+ PCI[%7lf]", &o->value);
	}
	return (int)notes->n;
}

/* Each host once. */
static int add_gdr_half(const struct nccl_log *l, struct machine *m)
{
	size_t first = m->observed_n;

	for (size_t i = 0; i < l->device_n * l->device_n; i++) {
		const struct nccl_end *e = end_without_gdr(&l->pairs[i]);

		if (e && !is_half_known(m, first, e->name))
			observed_add(m, OBSERVED_NCCL_GDR_HALF, -1, -1,
				     arena_printf(m->arena, "%s:%u", l->name, e->host))
				->text = arena_strdup(m->arena, e->name);
	}
	return (int)(m->observed_n - first);
}

/* The version that ran overrides the installed one: frameworks ship their own NCCL. */
static void take_version(const struct nccl_log *l, struct machine *m)
{
	struct fact_int was = m->nccl.version;
	const char *from = arena_strdup(m->arena, l->name);

	if (l->version_number < 0)
		return;
	if (fact_is_not(was, l->version_number))
		from = arena_printf(m->arena, "%s; %s is of another version", l->name,
				    fact_str_or(m->nccl.library, FACT_WHY(was)));
	m->nccl.version = fact_int(l->version_number, from);
}

/* Of several logs each must show its end. */
static void take_end(const struct nccl_log *l, struct machine *m)
{
	if (l->cut_at)
		m->nccl.ended = fact_int_unknown(
			arena_printf(m->arena, FACT_CUT "%s:%u", l->name, l->cut_at));
	else if (l->open_end)
		m->nccl.ended =
			fact_int_unknown(arena_printf(m->arena, "%s %s", l->name, l->open_end));
	else if (!m->nccl.ended.from)
		m->nccl.ended = fact_int(1, arena_strdup(m->arena, l->name));
}

/*
 * The settings that NCCL used in that run, including its conf files, override those of this
 * environment.
 */
static void take_settings(const struct nccl_log *l, struct machine *m)
{
	for (size_t i = 0; i < l->setting_n; i++) {
		const struct nccl_log_setting *s = &l->settings[i];

		for (size_t k = 0; k < m->nccl.setting_n; k++)
			if (strcmp(m->nccl.settings[k].name, s->name) == 0)
				m->nccl.settings[k].in_force = false;
		*ARENA_PUSH(m->arena, m->nccl.settings, m->nccl.setting_n) = (struct setting){
			.name = arena_strdup(m->arena, s->name),
			.value = arena_strdup(m->arena, s->value),
			.origin = SETTING_PROCESS,
			.from = arena_printf(m->arena, "%s:%u", l->name, s->line),
			.in_force = true,
		};
	}
}

/*
 * The machine's GPU of each device of the host, -1 for those of others. Returns how many devices
 * the host has; -ENODEV: the machine does not have one of them.
 */
static int match_devices(const struct nccl_log *l, const char *host, const struct machine *m,
			 int *ret)
{
	AUTO_FREE struct figure_gpu *names = xcalloc(l->device_n + 1, sizeof(*names));
	AUTO_FREE int *found = xcalloc(l->device_n + 1, sizeof(*found));
	size_t n = 0;
	int r;

	for (size_t i = 0; i < l->device_n; i++)
		if (nccl_log_is_of(l, i, host))
			names[n++] =
				(struct figure_gpu){.pci = l->devices[i].pci,
						    .nvml_index = l->devices[i].nvml_index,
						    .cuda_ordinal = l->devices[i].cuda_ordinal};
	r = match_gpus(m, l->name, names, n, found);
	if (r < 0)
		return r;
	for (size_t i = 0, k = 0; i < l->device_n; i++)
		ret[i] = nccl_log_is_of(l, i, host) ? found[k++] : -1;
	return (int)n;
}

int nccl_log_observe_host(const struct nccl_log *l, const char *host, struct machine *m)
{
	AUTO_FREE int *gpus = xcalloc(l->device_n + 1, sizeof(*gpus));
	size_t first = m->observed_n;
	bool one = nccl_log_one_host(l), known = one || host;
	int n = known ? match_devices(l, host, m, gpus) : 0;

	if (n < 0)
		return n;
	n = known ? add_transports(l, m, gpus) : 0;
	n += add_failures(l, m, known ? gpus : NULL) + add_warnings(l, m);
	n += add_gdr_off(l, &l->network, m) + add_gdr_off(l, &l->gdr, m) + add_gdr_half(l, m);
	n += add_links(l, &l->guessed_links, MESSAGE_LINK_GUESSED, m);
	n += add_links(l, &l->slow_links, MESSAGE_LINK_PLANNED, m);
	for (; first < m->observed_n; first++)
		m->observed[first].run.tool = "NCCL";
	take_end(l, m);
	if (one) {
		take_version(l, m);
		take_settings(l, m);
	}
	if (n)
		return n;
	if (!known)
		return err_set(
			EINVAL,
			"%s: is a log of several hosts; it does not show which of them is this "
			"machine",
			l->name);
	return err_set(EINVAL,
		       "%s: no line of this NCCL log shows how GPUs reach each other; set "
		       "NCCL_DEBUG=INFO",
		       l->name);
}

int nccl_log_observe(const struct nccl_log *l, struct machine *m)
{
	return nccl_log_observe_host(l, NULL, m);
}

static bool was_told(const struct nccl_log *l)
{
	for (size_t i = 0; i < l->setting_n; i++)
		if (text_starts_with(l->settings[i].name, "NCCL_P2P_") ||
		    text_starts_with(l->settings[i].name, "NCCL_SHM_"))
			return true;
	return false;
}

static void add_way(struct figures *f, const struct nccl_log *l, size_t i, size_t j)
{
	const struct nccl_pair *p = nccl_log_pair(l, i, j);
	int initiator = figures_gpu_at(f, l->devices[i].pci);
	int target = figures_gpu_at(f, l->devices[j].pci);

	if (initiator < 0 || target < 0 || initiator == target || nccl_pair_way(p) == NCCL_WAY_NONE)
		return;
	figures_add(f, METRIC_NCCL_P2P, initiator, target, nccl_way_is_p2p(nccl_pair_way(p)))
		->kind = arena_strdup(f->arena, p->transports);
}

void nccl_log_add_figures(const struct nccl_log *l, struct figures *f)
{
	if (!nccl_log_one_host(l) || was_told(l))
		return;
	for (size_t i = 0; i < l->device_n; i++)
		for (size_t j = 0; j < l->device_n; j++)
			if (i != j)
				add_way(f, l, i, j);
}

/* ---- files ---- */

static int observe_figures(const struct strbuf *text, const char *path, struct machine *m)
{
	struct figures *f = NULL;
	int r = figures_parse_each(strbuf_str(text), text->len, path, &f);

	if (r == 0)
		r = figures_observe(f, m);
	figures_free(f);
	return r;
}

static int observe_log(const struct log_text *t, const char *path, struct machine *m)
{
	struct nccl_log *l = NULL;
	int r = nccl_log_of(t, path, &l);

	if (r == 0)
		r = nccl_log_observe(l, m);
	nccl_log_free(l);
	return r;
}

/*
 * The log of a run often contains the table that it printed: whatever has facts about pairs counts.
 * If the log is about other GPUs than this machine's, so is the table.
 */
static int observe_file(const char *path, struct machine *m)
{
	const char *name = text_file_name(path);
	CLEANUP(log_text_done) struct log_text t = {0};
	const struct strbuf *text = &t.text;
	int r = log_text_read(path, &t);

	if (r < 0)
		return r;
	if (nccl_log_is_in(&t)) {
		r = observe_log(&t, name, m);
		if (r >= 0 || r == -ENODEV)
			return r;
		log_text_join(&t);
		return figures_recognise(strbuf_str(text), text->len)
			       ? observe_figures(text, name, m)
			       : r;
	}
	log_text_join(&t);
	if (figures_recognise(strbuf_str(text), text->len))
		return observe_figures(text, name, m);
	return text_refuse(
		strbuf_str(&t.head), t.head.len, name,
		"a result of onehop, p2pBandwidthLatencyTest, nvbandwidth -j or a debug log of NCCL");
}

int observe_files(const char *const *paths, size_t n, struct machine *m)
{
	for (size_t i = 0; i < n; i++) {
		int r = observe_file(paths[i], m);

		if (r < 0)
			return r;
	}
	return 0;
}
