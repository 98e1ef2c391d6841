/* SPDX-License-Identifier: Apache-2.0 */
/* Registry keys that switch BAR1 P2P on, put among those that are set already. */
#include "unlock/requirements_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "support/support.h"

#include <string.h>

/* ---- items of a list "KEY=1;KEY=2;pci=0000:01:00.0;KEY=3" ---- */

struct item {
	const char *text;
	size_t n;
};

static bool next_item(const char **list, struct item *ret)
{
	*list += strspn(*list, ";");
	*ret = (struct item){*list, strcspn(*list, ";")};
	*list += ret->n;
	return ret->n > 0;
}

/* What a recording holds gets into commands only if a shell has nothing to read in it. */
static bool is_harmless(struct item i)
{
	static const char ok[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+=:-";

	return strspn(i.text, ok) >= i.n && memchr(i.text, '=', i.n);
}

/* One of those that this release's options are made of; what may be lacking, only if it is wrong. */
static bool is_ours(struct item item, int branch)
{
	const struct registry_key *keys;
	size_t n;

	keys = registry_key_table(&n);
	for (size_t i = 0; i < n; i++) {
		size_t k = strlen(keys[i].key);
		char text[32];
		int64_t value;

		if (!registry_key_counts(&keys[i], branch) || item.n <= k ||
		    strncasecmp(item.text, keys[i].key, k) != 0 || item.text[k] != '=')
			continue;
		text_copy(text, sizeof(text), item.text + k + 1, item.n - k - 1);
		return !keys[i].may_lack || text_to_i64(text, &value) < 0 ||
		       !registry_key_is_good(&keys[i], fact_int(value, NULL));
	}
	return false;
}

static void add_item(struct strbuf *out, struct item i)
{
	strbuf_printf(out, "%s%.*s", out->len ? ";" : "", (int)i.n, i.text);
}

/* ---- what a card is to have ---- */

/* Its keys, and 0 for one that is set to what this release must not have. */
static void add_keys(const struct machine *m, const struct gpu *g, struct strbuf *out)
{
	int branch = driver_branch(m->driver.module_version);
	const struct registry_key *keys;
	size_t n;

	strbuf_printf(out, "%s%s", out->len ? ";" : "", release_find(branch)->keys);
	keys = registry_key_table(&n);
	for (size_t i = 0; i < n; i++) {
		struct fact_int value = driver_gpu_dword(&m->driver, g, keys[i].key);

		if (keys[i].may_lack && registry_key_counts(&keys[i], branch) &&
		    fact_known(value) && !registry_key_is_good(&keys[i], value))
			strbuf_printf(out, ";%s=0", keys[i].key);
	}
}

/* ---- one setting for all ---- */

static void add_global(const struct machine *m, const struct unlock_requirements *n,
		       struct strbuf *out)
{
	AUTO_FREE char *now = driver_registry_list(m->driver.registry_dwords);
	const char *list = now;
	struct item item;

	add_keys(m, n->cards[0].gpu, out);
	while (next_item(&list, &item))
		if (is_harmless(item) && !is_ours(item, driver_branch(m->driver.module_version)))
			add_item(out, item);
}

static void push_option(struct machine *m, struct unlock_requirements *n, const char *parameter,
			struct item key, const char *value)
{
	struct requirement_option *o = ARENA_PUSH(m->arena, n->settings, n->setting_n);

	*o = (struct requirement_option){.parameter = parameter,
					 .key = key.n ? arena_strndup(m->arena, key.text, key.n)
						      : NULL,
					 .value = arena_strdup(m->arena, value)};
}

static void push_global(struct machine *m, struct unlock_requirements *n)
{
	AUTO_STRBUF struct strbuf keys = {0};
	const char *list;
	struct item item;

	add_keys(m, n->cards[0].gpu, &keys);
	list = strbuf_str(&keys);
	while (next_item(&list, &item)) {
		size_t k = (size_t)((const char *)memchr(item.text, '=', item.n) - item.text);
		AUTO_FREE char *value = xstrndup(item.text + k + 1, item.n - k - 1);

		push_option(m, n, PARAMETER_DWORDS, (struct item){item.text, k}, value);
	}
}

/* ---- a setting that names cards ---- */

static bool is_device(struct item i)
{
	return i.n > 4 && strncmp(i.text, "pci=", 4) == 0;
}

/* The card that "pci=..." names, of those that go through BAR1; n->n: none. */
static size_t card_of(const struct unlock_requirements *n, struct item i)
{
	AUTO_FREE char *address = xstrndup(i.text + 4, i.n - 4);
	size_t k = 0;

	while (k < n->n &&
	       !(n->cards[k].wants_options && driver_names_gpu(address, n->cards[k].gpu)))
		k++;
	return k;
}

static void add_card(const struct machine *m, const struct card_requirement *c, struct strbuf *out)
{
	strbuf_printf(out, "%spci=%s", out->len ? ";" : "", c->gpu->pci->name);
	add_keys(m, c->gpu, out);
}

/*
 * What is set now, with ours put where its card is named, and the other cards of ours behind. What
 * comes before the first card belongs to none: the driver skips it.
 */
static void add_per_device(const struct machine *m, const struct unlock_requirements *n,
			   struct strbuf *out)
{
	AUTO_FREE char *now = driver_registry_list(m->driver.registry_dwords_per_device);
	AUTO_FREE bool *done = xcalloc(n->n, sizeof(*done));
	int branch = driver_branch(m->driver.module_version);
	const char *list = now;
	size_t card = n->n;
	bool named = false;
	struct item item;

	while (next_item(&list, &item)) {
		if (!is_harmless(item))
			continue;
		if (is_device(item)) {
			named = true;
			card = card_of(n, item);
			if (card == n->n || done[card])
				add_item(out, item);
			else
				add_card(m, &n->cards[card], out);
			if (card < n->n)
				done[card] = true;
		} else if (named && (card == n->n || !is_ours(item, branch))) {
			add_item(out, item);
		}
	}
	for (size_t i = 0; i < n->n; i++)
		if (n->cards[i].wants_options && !done[i])
			add_card(m, &n->cards[i], out);
}

/* A key of ours there outweighs the setting for all. */
static bool has_ours_per_device(const struct machine *m, const struct unlock_requirements *n)
{
	AUTO_FREE char *now = driver_registry_list(m->driver.registry_dwords_per_device);
	const char *list = now;
	size_t card = n->n;
	struct item item;

	while (next_item(&list, &item)) {
		if (is_device(item))
			card = card_of(n, item);
		else if (card < n->n && is_ours(item, driver_branch(m->driver.module_version)))
			return true;
	}
	return false;
}

/* ---- all of it ---- */

bool requirement_sets_for_all(const struct machine *m)
{
	AUTO_FREE char *now = driver_registry_list(m->driver.registry_dwords);
	const char *list = now;
	struct item item;

	while (next_item(&list, &item))
		if (is_ours(item, driver_branch(m->driver.module_version)))
			return true;
	return false;
}

void requirement_options(struct machine *m, struct unlock_requirements *n)
{
	AUTO_STRBUF struct strbuf b = {0};
	size_t some = 0;

	n->options_set = true;
	for (size_t i = 0; i < n->n; i++) {
		if (!n->cards[i].wants_options)
			continue;
		some++;
		n->options_set &= fact_is(registry_keys_good(&m->driver, n->cards[i].gpu), 1);
	}
	if (!some || !driver_release(&m->driver)->keys) {
		n->options_set = false;
		return;
	}
	n->per_device = some < n->n || has_ours_per_device(m, n);
	if (n->per_device) {
		add_per_device(m, n, &b);
		push_option(m, n, PARAMETER_DWORDS_PER_DEVICE, (struct item){0}, strbuf_str(&b));
	} else {
		add_global(m, n, &b);
		push_global(m, n);
	}
	n->module = requirement_file_name(m, "nvidia", "nvidia");
	n->options = arena_printf(m->arena, "options %s %s=\"%s\"", n->module,
				  n->settings[0].parameter, strbuf_str(&b));
}
