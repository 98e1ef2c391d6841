/* SPDX-License-Identifier: Apache-2.0 */
/* From changes to steps: a table by kind, and the order in which the steps stand. */
#include "fix/make_plan_impl.h"

#include "machine/container.h"

#include <string.h>

/* "firmware setup: ..."; a reason that names the target says it all. */
static void by_hand(struct planner *p, const struct change *c)
{
	const char *what = c->target ? c->target : plan_change_words(p, c);

	if (c->reason.n)
		what = c->stated ? c->reason.items[0]
				 : arena_printf(p->a, "%s: %s", what, c->reason.items[0]);
	plan_manual(p, c->rules, what, "%s", c->new ? c->new : "");
}

/* `host`: of the whole host, so that a container cannot have it for itself. */
static const struct {
	void (*plan)(struct planner *p, const struct change *c);
	bool host;
	unsigned lifetimes; /* those that it can have */
} kinds[CHANGE_KIND_N] = {
	[CHANGE_ACS] = {plan_acs_add, true, CHANGE_LASTING},
	[CHANGE_KERNEL_PARAMETER] = {plan_parameter, true, CHANGE_KEPT},
	[CHANGE_MODULE_OPTION] = {plan_module_option, true, CHANGE_KEPT},
	[CHANGE_REGISTRY_DWORD] = {plan_registry_dword, true, CHANGE_KEPT},
	[CHANGE_MODULE_BLACKLIST] = {plan_module_blacklist, true, CHANGE_KEPT},
	[CHANGE_MODULE_LOAD] = {plan_module_load, true, CHANGE_LASTING},
	[CHANGE_MODULE_UNLOAD] = {plan_module_unload, true, CHANGE_LASTING},
	[CHANGE_BAR_SIZE] = {plan_bar_size, true, CHANGE_NOW},
	[CHANGE_MEMLOCK] = {plan_memlock, true, CHANGE_KEPT},
	[CHANGE_NCCL_SETTING] = {plan_nccl_setting, false, CHANGE_KEPT},
	[CHANGE_PERSISTENCE] = {plan_persistence, true, CHANGE_LASTING},
	[CHANGE_BY_HAND] = {by_hand, false, CHANGE_LASTING},
};

unsigned plan_lifetime(const struct planner *p, const struct change *c)
{
	unsigned wanted = c->lifetime & p->request->lifetime & kinds[c->kind].lifetimes;

	return p->request->image ? wanted & CHANGE_KEPT : wanted;
}

/* ---- changes that are only possibly a help ---- */

/* Of one kind and by the same rules, they are one entry, however many there are. */
static bool goes_with(const struct change *a, const struct change *b)
{
	return b->opt_in && a->kind == b->kind && texts_same(&a->rules, &b->rules);
}

static void plan_opt_in(struct planner *p, const struct change_set *set, size_t first)
{
	const struct change *c = &set->items[first];
	AUTO_STRBUF struct strbuf what = {0}, words = {0};

	for (size_t i = 0; i < first; i++)
		if (goes_with(c, &set->items[i]))
			return;
	for (size_t i = first; i < set->n; i++)
		if (goes_with(c, &set->items[i]))
			strbuf_printf(&what, "%s%s", what.len ? "; " : "",
				      plan_change_words(p, &set->items[i]));
	texts_join(&c->rules, " ", &words);
	plan_manual(p, c->rules, strbuf_str(&what), "`onehop fix %s --apply`", strbuf_str(&words));
}

/* ---- each change ---- */

static bool in_container(const struct planner *p)
{
	return !p->request->image && !p->request->inside && fact_known(p->m->kernel.container) &&
	       !container_is_guess(p->m);
}

static void note_container(struct planner *p)
{
	char sign[64];

	if (!p->request->image && !p->request->inside && container_is_guess(p->m))
		plan_note(
			p,
			"there is a file %s: if this is a container, and not a system installed "
			"from one's files, run this on its host instead, because what it writes here "
			"is not the host's",
			container_sign(p->m, sign, sizeof(sign)));
}

static const char *why_no_lifetime(const struct planner *p)
{
	if (p->request->image && !(p->request->lifetime & CHANGE_KEPT))
		return "--now is for the running system, and the image does not run";
	if (p->request->image)
		return "only a running system can have it, and a reboot takes it away";
	return p->request->lifetime & CHANGE_NOW
		       ? "it takes effect only after a reboot, which --now excludes"
		       : "it lasts only until the next reboot, which --kept excludes";
}

static void plan_change(struct planner *p, const struct change *c)
{
	if (!plan_lifetime(p, c) && c->kind != CHANGE_BY_HAND)
		plan_left_out(p, c->rules, plan_change_words(p, c), "%s", why_no_lifetime(p));
	else if (kinds[c->kind].host && in_container(p))
		plan_change_by_hand(
			p, c,
			"run \"onehop fix --apply\" on the host: this is a container (%s), and "
			"what it would write is not the host's",
			p->m->kernel.container.value);
	else
		kinds[c->kind].plan(p, c);
}

/* The phases one after the other. */
static void put_in_order(struct planner *p)
{
	struct plan *plan = p->plan;

	for (size_t i = 0; i < PHASE_N; i++)
		plan->step_n += p->phases[i].n;
	plan->steps = arena_alloc(p->a, plan->step_n + 1, sizeof(*plan->steps));
	plan->step_n = 0;
	for (size_t i = 0; i < PHASE_N; i++) {
		const struct steps *s = &p->phases[i];

		if (s->n)
			memcpy(plan->steps + plan->step_n, s->items, s->n * sizeof(*s->items));
		plan->step_n += s->n;
	}
}

static void make_steps(struct planner *p, const struct change_set *changes)
{
	for (size_t i = 0; i < changes->n; i++)
		if (changes->items[i].opt_in)
			plan_opt_in(p, changes, i);
		else
			plan_change(p, &changes->items[i]);
	plan_acs_finish(p);
	plan_settings_finish(p);
	plan_module_finish(p);
	plan_boot_finish(p);
	plan_way_finish(p);
	plan_files_finish(p);
	put_in_order(p);
	if (p->plan->step_n)
		note_container(p);
}

struct plan *plan_make(const struct plan_request *r, const struct change_set *changes)
{
	const struct machine_request request = {.parts = MACHINE_BOOT |
							 (r->image ? MACHINE_HOST : 0u)};
	struct machine *read = machine_read(r->source, &request);
	struct plan *plan = plan_new();
	struct planner p = {
		.request = r,
		.m = r->machine,
		.files = r->image ? read : r->machine,
		.s = r->source,
		.plan = plan,
		.a = plan->arena,
	};

	p.file_end = &p.file_list;
	p.line = (struct line_host){&p.files->kernel, &read->boot, r->image};
	make_steps(&p, changes);
	machine_free(read);
	return plan;
}
