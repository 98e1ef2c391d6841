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

/* A proposal may give NULL for what it has none of. */
static bool has_text(const struct texts *l)
{
	return l->n && l->items[0];
}

static void merge(struct change_set *set, struct change *into, const struct change *c)
{
	texts_add_all(set->arena, &into->rules, &c->rules);
	into->lifetime |= c->lifetime;
	into->opt_in &= c->opt_in;
	if (!has_text(&c->cost))
		into->cost = (struct texts){0};
}

static struct texts copy_texts(struct arena *a, const struct texts *l)
{
	struct texts copy = {0};

	texts_add_all(a, &copy, l);
	return copy;
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
	x = ARENA_PUSH(set->arena, set->items, set->n);
	*x = *c;
	x->target = copy_text(set->arena, c->target);
	x->name = copy_text(set->arena, c->name);
	x->new = copy_text(set->arena, c->new);
	x->rules = copy_texts(set->arena, &c->rules);
	x->reason = copy_texts(set->arena, &c->reason);
	x->cost = copy_texts(set->arena, &c->cost);
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
