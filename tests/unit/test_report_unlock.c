/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `onehop unlock` says: JSON against its schemas, and what the text leaves out unless it is
 * asked for.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "build_machine.h"
#include "json_schema.h"
#include "report/report_unlock.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define GIB ((int64_t)1 << 30)

static const char from[] = "test";

static void assert_valid(json_t *json, const char *schema, const char *what)
{
	AUTO_STRBUF struct strbuf trouble = {0};

	assert_non_null(json);
	json_schema_check(json, schema, &trouble);
	if (trouble.len)
		fail_msg("%s against %s: %s", what, schema, strbuf_str(&trouble));
	json_decref(json);
}

static char *text_of(const struct machine *m, const struct unlock_requirements *n, bool by_hand)
{
	const struct text_format format = {.width = 1000};
	struct document *d = document_new();
	AUTO_STRBUF struct strbuf out = {0};

	report_unlock_requirements(d, m, n, by_hand);
	document_write_text(d, &format, &out);
	document_free(d);
	return xstrdup(strbuf_str(&out));
}

/* ---- a machine ---- */

/* Two cards whose modules have the mechanism or not; loaded, installed: -1 not known. */
static struct machine *build(const char *release, int loaded, int installed)
{
	struct machine *m = build_two_root_ports();

	for (size_t i = 0; i < m->gpu_n; i++) {
		m->gpus[i].vram_bytes = fact_int(24 * GIB, from);
		m->gpus[i].bar1_bytes = fact_int(32 * GIB, from);
		build_model(&m->gpus[i], "NVIDIA GeForce RTX 4090", 89);
	}
	m->driver.module_version = release ? fact_str(release, from) : fact_str_unknown(from);
	m->driver.registry_dwords = fact_str("", from);
	m->driver.registry_dwords_per_device = fact_str_absent(from);
	m->driver.bar1_p2p.loaded = loaded < 0 ? fact_int_unknown(from) : fact_int(loaded, from);
	m->driver.bar1_p2p.installed =
		installed < 0 ? fact_int_unknown(from) : fact_int(installed, from);
	return m;
}

static const struct {
	const char *release;
	int loaded, installed;
	bool mixed;
	enum unlock_action action;
	const char *has, *lacks; /* in the text without the commands for doing it by hand */
} cases[] = {
	{"580.105.08", 0, 0, false, ACTION_PATCH, "--sources open-gpu-kernel-modules --apply",
	 "sudo tee"},
	{"580.105.08", 0, 0, false, ACTION_PATCH, "sudo onehop unlock --download --apply",
	 "sudo tee"},
	{"610.43.02", 0, 0, false, ACTION_PATCH, "--sources open-gpu-kernel-modules --apply",
	 "--download"},
	{"580.105.08", 0, 0, true, ACTION_PATCH, "NVreg_RegistryDwordsPerDevice", "sudo tee"},
	{"580.105.08", 1, 1, false, ACTION_OPTIONS, "onehop unlock --apply", "sudo tee"},
	/* onehop does not reload modules: the commands are there in any case */
	{"580.105.08", 0, 1, false, ACTION_RELOAD, "Do these yourself", "--explain"},
	{"525.60.11", 0, 0, false, ACTION_REFUSED, "525.60.11 is too old", "--sources"},
	{NULL, -1, -1, false, ACTION_UNKNOWN, "not enough could be read", "--sources"},
};

static void machines(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine *m = build(cases[i].release, cases[i].loaded, cases[i].installed);
		AUTO_FREE char *brief = NULL, *whole = NULL;
		const struct unlock_requirements *n;

		if (cases[i].mixed)
			build_model(build_gpu(m, "0000:05:00.0", NULL), "NVIDIA A10", 86);
		n = unlock_requirements(m);
		assert_int_equal(n->action, cases[i].action);
		assert_valid(report_unlock_requirements_json(m, n), "unlock.schema.json",
			     action_word(n->action));
		brief = text_of(m, n, false);
		whole = text_of(m, n, true);
		if (!strstr(brief, cases[i].has) || strstr(brief, cases[i].lacks))
			fail_msg("%s, and not %s: %s", cases[i].has, cases[i].lacks, brief);
		assert_int_equal(strstr(whole, "sudo tee") != NULL,
				 n->action <= ACTION_OPTIONS && n->action != ACTION_REFUSED);
		assert_null(strstr(whole, "--explain"));
		build_free(m);
	}
}

static void no_pair(void **state)
{
	struct machine *m = build_machine();

	(void)state;
	assert_valid(report_unlock_requirements_json(m, unlock_requirements(m)),
		     "unlock.schema.json", "no GPU");
	build_free(m);
}

/* ---- a tree ---- */

struct made_file {
	struct unlock_edit rows[32];
	struct edit edits[32];
};

/* Every edit of an era, as if each were the only thing in its file. */
static struct unlock *made_tree(struct arena *a, enum era era)
{
	struct unlock *u = arena_alloc(a, 1, sizeof(*u));

	u->arena = a;
	u->era = era;
	u->tree.dir = arena_strdup(a, "/tree");
	for (size_t i = 0; i < anchor_n; i++) {
		struct made_file *made = arena_alloc(a, 1, sizeof(*made));
		struct unlock_check *c;

		if (!(anchors[i].eras >> era & 1))
			continue;
		c = ARENA_PUSH(a, u->checks, u->check_n);
		*c = (struct unlock_check){&anchors[i], anchors[i].count};
		if (!anchors[i].text)
			continue;
		made->rows[0] = (struct unlock_edit){&anchors[i], 7};
		made->edits[0] = (struct edit){1, 1, anchors[i].text};
		*ARENA_PUSH(a, u->files, u->n) = (struct unlock_file){
			.path = anchors[i].file,
			.before = {.data = arena_strdup(a, "a\nb\n"), .size = 4},
			.before_hash = "00",
			.edits = made->edits,
			.rows = made->rows,
			.n = 1,
		};
		u->edit_n++;
	}
	return u;
}

static void trees(void **state)
{
	(void)state;
	for (unsigned era = 0; era < ERA_N; era++) {
		struct arena *a = arena_new();
		struct unlock *u = made_tree(a, era);

		assert_true(u->n > 5);
		for (unsigned mode = UNLOCK_PLAN; mode <= UNLOCK_REVERT; mode++) {
			json_t *json = report_unlock_json(u, mode);

			assert_int_equal(json_object_get(json, "diff") != NULL,
					 mode == UNLOCK_DIFF);
			assert_int_equal(json_is_null(json_object_get(json, "era")),
					 mode == UNLOCK_REVERT);
			assert_valid(json, "unlock-tree.schema.json", era_names[era].name);
		}
		arena_free(a);
	}
}

/* The schema is one that can be broken. */
static void a_member_less_or_more(void **state)
{
	static const char *const members[] = {"found", "checks", "other"};
	struct arena *a = arena_new();
	const struct unlock *u = made_tree(a, ERA_565);

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		AUTO_STRBUF struct strbuf trouble = {0};
		json_t *json = report_unlock_json(u, UNLOCK_PLAN);

		if (json_object_del(json, members[i]) < 0)
			json_object_set_new(json, members[i], json_true());
		json_schema_check(json, "unlock-tree.schema.json", &trouble);
		assert_non_null(strstr(strbuf_str(&trouble), members[i]));
		json_decref(json);
	}
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machines),
		cmocka_unit_test(no_pair),
		cmocka_unit_test(trees),
		cmocka_unit_test(a_member_less_or_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
