/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/strbuf.h"
#include "fix/step_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- programs leave nothing to look at ---- */

static int read_state_tool(struct fix_host *h, const struct step *s, enum step_state *ret,
			   char **ret_now)
{
	(void)h;
	(void)s;
	*ret = STEP_NOT_SEEN;
	if (ret_now)
		*ret_now = NULL;
	return 0;
}

/* `path` NULL: always. Not run, because the path is not there, is not a failure. */
static int run_if(struct fix_host *h, const char *path, const char *const *argv,
		  unsigned deadline_s, struct strbuf *output)
{
	struct stat st;

	if (!argv)
		return 0;
	if (!path || host_stat(h, path, &st) != -ENOENT)
		return host_run(h, argv, deadline_s, output);
	strbuf_printf(output, "%s was not run: there is no /%s\n", argv[0], path);
	return 0;
}

static int apply_tool(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	return run_if(h, s->argv_if, s->argv, s->deadline_s, output);
}

static int undo_tool(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	return run_if(h, s->undo_if, s->undo_argv, s->deadline_s, output);
}

static const struct step_ops tool_ops = {
	.word = "tool",
	.program = true,
	.read_state = read_state_tool,
	.apply = apply_tool,
	.undo = undo_tool,
};

/* ---- all kinds ---- */

static const struct step_ops *const kinds[STEP_KIND_N] = {
	[STEP_FILE] = &step_file_ops,
	[STEP_REGISTER] = &step_register_ops,
	[STEP_ATTRIBUTE] = &step_attribute_ops,
	[STEP_BAR_SIZE] = &step_bar_size_ops,
	[STEP_TOOL] = &tool_ops,
	[STEP_GENERATED] = &step_generated_ops,
	[STEP_WORDS] = &step_words_ops,
	[STEP_ONE_SHOT] = &step_one_shot_ops,
	[STEP_OPTIONS] = &step_options_ops,
	[STEP_BLOCK] = &step_block_ops,
	[STEP_ENTRY] = &step_entry_ops,
};

const char *step_kind_word(enum step_kind k)
{
	return kinds[k]->word;
}

int step_kind_parse(const char *word, enum step_kind *ret)
{
	for (unsigned k = 0; k < STEP_KIND_N; k++)
		if (strcmp(word, kinds[k]->word) == 0) {
			*ret = k;
			return 0;
		}
	return err_set(EINVAL, "%s: no kind of step", word);
}

bool step_has_content(const struct step *s)
{
	return s->kind == STEP_FILE || s->kind == STEP_GENERATED || s->kind == STEP_OPTIONS ||
	       s->kind == STEP_BLOCK || s->kind == STEP_ENTRY;
}

bool step_is_program(const struct step *s)
{
	return kinds[s->kind]->program;
}

bool step_is_volatile(const struct step *s)
{
	return kinds[s->kind]->in_system;
}

bool step_in_memory(const struct step *s)
{
	return kinds[s->kind]->in_system && !kinds[s->kind]->in_file;
}

bool step_in_image(const struct step *s)
{
	return kinds[s->kind]->in_image;
}

bool step_by_parts(const struct step *s)
{
	return kinds[s->kind]->by_parts;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool step_same_target(const struct step *a, const struct step *b)
{
	return a->kind == b->kind && a->target && same_text(a->target, b->target) &&
	       same_text(a->at, b->at);
}

/* ---- carrying out ---- */

int step_read_state(struct fix_host *h, const struct step *s, enum step_state *ret, char **ret_now)
{
	if (ret_now)
		*ret_now = NULL;
	return kinds[s->kind]->read_state(h, s, ret, ret_now);
}

int step_allowed(struct fix_host *h, const struct step *s)
{
	return kinds[s->kind]->allow ? kinds[s->kind]->allow(h, s) : 0;
}

int step_prepare(struct fix_host *h, struct arena *a, struct step *s)
{
	return kinds[s->kind]->prepare ? kinds[s->kind]->prepare(h, a, s) : 0;
}

int step_prepare_undo(struct fix_host *h, struct arena *a, struct step *s)
{
	return kinds[s->kind]->prepare_undo ? kinds[s->kind]->prepare_undo(h, a, s) : 0;
}

int step_make(struct fix_host *h, struct arena *a, struct step *s, struct strbuf *output)
{
	return kinds[s->kind]->make ? kinds[s->kind]->make(h, a, s, output) : 0;
}

int step_settle(struct fix_host *h, const struct step *s)
{
	return kinds[s->kind]->settle ? kinds[s->kind]->settle(h, s) : 0;
}

int step_tidy(struct fix_host *h, const struct step *s)
{
	return kinds[s->kind]->tidy ? kinds[s->kind]->tidy(h, s) : 0;
}

int step_holds_own(struct fix_host *h, const struct step *s)
{
	return kinds[s->kind]->holds_own ? kinds[s->kind]->holds_own(h, s) : 1;
}

struct step step_to_side(const struct step *s, enum step_side side)
{
	struct step ret = *s;

	ret.old = ret.new = side == STEP_NEW_SIDE ? s->new : s->old;
	ret.value.old = ret.value.new = side == STEP_NEW_SIDE ? s->value.new : s->value.old;
	return ret;
}

/* What was written is there now, as far as it can be seen. */
static int read_back(struct fix_host *h, const struct step *s, enum step_side expected)
{
	AUTO_STRBUF struct strbuf text = {0};
	AUTO_FREE char *now = NULL;
	const struct step wanted = step_to_side(s, expected); /* the two may look the same */
	enum step_state state;
	int r;

	if (h->rehearsal || step_is_program(s) || kinds[s->kind]->reads_back)
		return 0;
	r = step_read_state(h, &wanted, &state, &now);
	if (r < 0 || state == STEP_IS_NEW)
		return r;
	step_difference(s, expected, now, &text);
	return err_set(EIO, "%s, right after it was written", strbuf_str(&text));
}

int step_apply(struct fix_host *h, struct step *s, struct strbuf *output)
{
	int r = kinds[s->kind]->apply(h, s, output);

	return r < 0 ? r : read_back(h, s, STEP_NEW_SIDE);
}

int step_undo(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	int r = kinds[s->kind]->undo(h, s, output);

	return r < 0 ? r : read_back(h, s, STEP_OLD_SIDE);
}
