/* SPDX-License-Identifier: Apache-2.0 */
#include "change/change.h"

#include "base/alloc.h"

#include <string.h>

/* Two that would do the same. A NULL is an empty text. */
static bool same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static struct change *find_equal(struct change_set *set, const struct change *c)
{
	for (size_t i = 0; i < set->n; i++) {
		struct change *x = &set->items[i];

		if (x->kind == c->kind && same_text(x->target, c->target) &&
		    same_text(x->name, c->name) && same_text(x->new, c->new) &&
		    x->value.new == c->value.new && x->bar == c->bar)
			return x;
	}
	return NULL;
}

/* `list` is "a, b"; `id` one of these. */
static bool lists_rule(const char *list, const char *id)
{
	size_t n = strlen(id);

	for (const char *p = list; p; p = strchr(p, ' ')) {
		p += strspn(p, " ");
		if (strncmp(p, id, n) == 0 && (!p[n] || p[n] == ','))
			return true;
	}
	return false;
}

static const char *join_rules(struct arena *a, const char *list, const char *id)
{
	if (!id || (list && lists_rule(list, id)))
		return list;
	return list ? arena_printf(a, "%s, %s", list, id) : arena_strdup(a, id);
}

static void merge(struct change_set *set, struct change *into, const struct change *c)
{
	into->rule = join_rules(set->arena, into->rule, c->rule);
	into->lifetime |= c->lifetime;
	into->opt_in &= c->opt_in;
	if (!c->cost)
		into->cost = NULL;
}

static const char *copy_text(struct arena *a, const char *text)
{
	return text ? arena_strdup(a, text) : NULL;
}

void change_add(struct change_set *set, const struct change *c)
{
	struct change *x = find_equal(set, c);

	if (x) {
		merge(set, x, c);
		return;
	}
	if (set->n == set->size) {
		struct change *items;

		set->size = set->size ? 2 * set->size : 8;
		items = arena_alloc(set->arena, set->size, sizeof(*items));
		if (set->n)
			memcpy(items, set->items, set->n * sizeof(*items));
		set->items = items;
	}
	x = &set->items[set->n++];
	*x = *c;
	x->target = copy_text(set->arena, c->target);
	x->name = copy_text(set->arena, c->name);
	x->new = copy_text(set->arena, c->new);
	x->rule = copy_text(set->arena, c->rule);
	x->reason = copy_text(set->arena, c->reason);
	x->cost = copy_text(set->arena, c->cost);
}

const char *change_kind_word(enum change_kind k)
{
	static const char *const words[CHANGE_KIND_N] = {
		[CHANGE_ACS] = "acs",
		[CHANGE_KERNEL_PARAMETER] = "kernel-parameter",
		[CHANGE_MODULE_OPTION] = "module-option",
		[CHANGE_REGISTRY_DWORD] = "registry-dword",
		[CHANGE_MODULE_BLACKLIST] = "module-blacklist",
		[CHANGE_MODULE_LOAD] = "module-load",
		[CHANGE_MODULE_UNLOAD] = "module-unload",
		[CHANGE_BAR_SIZE] = "bar-size",
		[CHANGE_MEMLOCK] = "memlock",
		[CHANGE_NCCL_SETTING] = "nccl-setting",
		[CHANGE_PERSISTENCE] = "persistence",
		[CHANGE_BY_HAND] = "by-hand",
	};

	return words[k];
}
