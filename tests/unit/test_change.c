/* SPDX-License-Identifier: Apache-2.0 */
/* change/: equal changes become one, texts are copied, every kind has a word. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "change/change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int set_up(void **state)
{
	static struct change_set set;

	set = (struct change_set){.arena = arena_new()};
	*state = &set;
	return 0;
}

static int tear_down(void **state)
{
	struct change_set *set = *state;

	arena_free(set->arena);
	return 0;
}

static struct change acs(const char *port)
{
	return (struct change){.kind = CHANGE_ACS,
			       .lifetime = CHANGE_NOW,
			       .target = port,
			       .value = {0x1d, 0x11},
			       .opt_in = true};
}

static void add_with_cost(struct change_set *set, struct change c, const char *rule,
			  const char *cost)
{
	c.rules = TEXTS(rule);
	c.reason = TEXTS("why");
	c.cost = TEXTS(cost);
	change_add(set, &c);
}

static void add(struct change_set *set, struct change c, const char *rule)
{
	add_with_cost(set, c, rule, "isolation");
}

static void assert_rules(const struct change_set *set, const char *joined)
{
	AUTO_STRBUF struct strbuf b = {0};

	texts_join(&set->items[0].rules, " ", &b);
	assert_string_equal(strbuf_str(&b), joined);
}

static void texts_are_copied(void **state)
{
	struct change_set *set = *state;
	char port[] = "0000:22:00.0";

	add(set, acs(port), "acs-redirect");
	memset(port, 'x', sizeof(port) - 1);
	assert_int_equal(set->n, 1);
	assert_string_equal(set->items[0].target, "0000:22:00.0");
	assert_int_equal(set->items[0].value.new, 0x11);
	assert_null(set->items[0].name);
}

static void different_ones_stay_apart(void **state)
{
	struct change_set *set = *state;
	struct change c = acs("0000:22:00.0");

	add(set, c, "a");
	add(set, acs("0000:22:01.0"), "a");
	c.value.new = 0x01;
	add(set, c, "a");
	c.bar = 1;
	add(set, c, "a");
	c.new = "text";
	add(set, c, "a");
	c.name = "n";
	add(set, c, "a");
	c.kind = CHANGE_BY_HAND;
	add(set, c, "a");
	assert_int_equal(set->n, 7);
}

static void equal_ones_are_joined(void **state)
{
	struct change_set *set = *state;
	struct change c = acs("0000:22:00.0");

	add(set, c, "acs-redirect");
	add(set, c, "acs-redirect");
	assert_rules(set, "acs-redirect");
	assert_true(set->items[0].opt_in);
	assert_true(texts_have(&set->items[0].cost, "isolation"));

	c.lifetime = CHANGE_KEPT;
	add(set, c, "acs"); /* the start of another's id is another rule */
	assert_rules(set, "acs-redirect acs");
	assert_int_equal(set->items[0].lifetime, CHANGE_LASTING);
	assert_true(set->items[0].opt_in);

	c.opt_in = false;
	add_with_cost(set, c, "other", NULL);
	add(set, acs("0000:22:00.0"), "acs");
	assert_int_equal(set->n, 1);
	assert_rules(set, "acs-redirect acs other");
	assert_false(set->items[0].opt_in);
	assert_int_equal(set->items[0].cost.n, 0);
}

static void many_are_kept_in_order(void **state)
{
	struct change_set *set = *state;

	for (int i = 0; i < 100; i++) {
		char port[16];

		snprintf(port, sizeof(port), "port %d", i);
		add(set, acs(port), "a");
	}
	assert_int_equal(set->n, 100);
	assert_string_equal(set->items[0].target, "port 0");
	assert_string_equal(set->items[57].target, "port 57");
	assert_string_equal(set->items[99].target, "port 99");
}

static void every_kind_has_its_own_word(void **state)
{
	(void)state;
	for (int i = 0; i < CHANGE_KIND_N; i++) {
		assert_non_null(change_kind_word((enum change_kind)i));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(change_kind_word((enum change_kind)i),
						change_kind_word((enum change_kind)k));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(texts_are_copied, set_up, tear_down),
		cmocka_unit_test_setup_teardown(different_ones_stay_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(equal_ones_are_joined, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_are_kept_in_order, set_up, tear_down),
		cmocka_unit_test(every_kind_has_its_own_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
