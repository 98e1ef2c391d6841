/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that put a block of lines between two marks into a file that is a person's too. The block alone is
 * the fix's: lines that came around it since stay, and do not keep the block there.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/step_impl.h"

#include <string.h>

/* What follows the mark in its line: the file may have ended there without a line end when somebody added to it. */
static void keep_behind_end(const char *line, size_t n, struct strbuf *ret)
{
	const size_t mark = strlen(STEP_BLOCK_END);

	if (n > mark)
		strbuf_add(ret, line + mark, n - mark + (line[n] == '\n'));
}

bool step_block_remove(const char *text, struct strbuf *ret)
{
	const char *line = NULL;
	bool ours = false;
	size_t n;

	while (text_next_line(&line, &n, text)) {
		ours |= text_starts_with(line, STEP_BLOCK_BEGIN);
		if (!ours)
			strbuf_add(ret, line, n + (line[n] == '\n'));
		if (ours && text_starts_with(line, STEP_BLOCK_END)) {
			keep_behind_end(line, n, ret);
			ours = false;
		}
	}
	if (ret->len && ret->text[ret->len - 1] != '\n')
		strbuf_putc(ret, '\n');
	return !ours;
}

static bool has_block(const char *text)
{
	const char *line = NULL;
	size_t n;

	while (text && text_next_line(&line, &n, text))
		if (text_starts_with(line, STEP_BLOCK_BEGIN))
			return true;
	return false;
}

static int read_text(struct fix_host *h, const struct step *s, char **ret)
{
	size_t size;
	int r = host_read(h, s->target, ret, &size);

	return r == -ENOENT ? 0 : r;
}

static int put(struct fix_host *h, const struct step *s, const char *now, const char *rest)
{
	const bool gone = !*rest && !s->old.data;
	const struct host_change c = {
		.seen = {now, strlen(now)},
		.put = {gone ? NULL : rest, gone ? 0 : strlen(rest)},
		.mode = 0600,
		.for_boot = s->for_boot,
		.going_back = true,
	};
	int r = host_change(h, s->target, &c);

	return r < 0 ? r : 0;
}

/* The lines around it stay, whatever they are. */
static int take_out(struct fix_host *h, const struct step *s)
{
	AUTO_FREE char *now = NULL;
	AUTO_STRBUF struct strbuf rest = {0};
	int r = read_text(h, s, &now);

	if (r < 0 || !has_block(now))
		return r;
	if (!step_block_remove(now, &rest))
		return err_set(EINVAL,
			       "/%s has no line \"" STEP_BLOCK_END
			       "\" any more: delete what follows \"" STEP_BLOCK_BEGIN "\" yourself",
			       s->target);
	return put(h, s, now, strbuf_str(&rest));
}

static int undo_block(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	enum step_state state;
	int r = step_file_ops.read_state(h, s, &state, NULL);

	if (r == 0)
		r = state == STEP_IS_NEW ? step_file_ops.undo(h, s, output) : take_out(h, s);
	return r;
}

static int apply_block(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	enum step_state state = STEP_IS_NEW;
	int r = step_file_ops.apply(h, s, output);

	if (r == 0)
		r = step_file_ops.read_state(h, s, &state, NULL);
	if (r == 0 && state != STEP_IS_NEW)
		return err_set(EIO, "/%s is not what was written to it", s->target);
	return r;
}

static char *rest_of_block(const struct step *s, const char *text)
{
	AUTO_STRBUF struct strbuf rest = {0};

	(void)s;
	step_block_remove(text, &rest);
	return xstrdup(strbuf_str(&rest));
}

static int settle_block(struct fix_host *h, const struct step *s)
{
	return step_settle_parts(h, s, s->target, rest_of_block);
}

static int tidy_block(struct fix_host *h, const struct step *s)
{
	return step_file_ops.tidy(h, s);
}

static int read_state_block(struct fix_host *h, const struct step *s, enum step_state *ret,
			    char **ret_now)
{
	return step_file_ops.read_state(h, s, ret, ret_now);
}

static int prepare_block(struct fix_host *h, struct arena *a, struct step *s)
{
	return step_file_ops.prepare(h, a, s);
}

const struct step_ops step_block_ops = {
	.word = "block",
	.in_image = true,
	.by_parts = true,
	.reads_back = true,
	.read_state = read_state_block,
	.prepare = prepare_block,
	.apply = apply_block,
	.undo = undo_block,
	.settle = settle_block,
	.tidy = tidy_block,
};
