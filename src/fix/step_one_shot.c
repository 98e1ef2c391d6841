/* SPDX-License-Identifier: Apache-2.0 */
/* The boot loader's entry for the next boot alone: looked at in its file or EFI variable, set by its own program. */
#include "base/alloc.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/step_impl.h"
#include "machine/efi_variable.h"

#include <string.h>

/* ---- where it is kept ---- */

/* The variable's value in GRUB's environment block; "" if it has none. The caller frees. */
static char *block_value(const char *block, size_t size, const char *name)
{
	AUTO_FREE char *key = xprintf("%s=", name);
	const char *value;
	size_t n;

	(void)size;
	return text_after(block, key, &value, &n) ? xstrndup(value, n) : xstrdup("");
}

/* The block without the variable, as long as before: GRUB fills it up with "#". The caller frees. */
static char *block_without(const char *block, size_t size, const char *name)
{
	AUTO_FREE char *key = xprintf("%s=", name);
	struct strbuf left = {0};
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, block))
		if (!text_starts_with(line, key))
			strbuf_add(&left, line, n + (line[n] == '\n'));
	while (left.len < size)
		strbuf_putc(&left, '#');
	return left.text ? left.text : xstrdup("");
}

/* Of an EFI variable, which is a file of its own. */
static char *efi_value(const char *file, size_t size, const char *name)
{
	AUTO_FREE char *lines = efi_lines(file, size);

	(void)name;
	return xstrndup(lines, strcspn(lines, "\n"));
}

static const struct place {
	const char *at;
	char *(*value)(const char *file, size_t size, const char *name);
	char *(*without)(const char *file, size_t size,
			 const char *name); /* NULL: in no file of a disk */
} places[] = {
	{"next_entry", block_value, block_without},
	{"LoaderEntryOneShot", efi_value, NULL},
};

/* NULL with a sentence: of a later onehop. */
static const struct place *place_of(const struct step *s)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (strcmp(places[i].at, s->at) == 0)
			return &places[i];
	err_set(EINVAL, "%s: no boot loader that is known has it", s->at);
	return NULL;
}

/* ---- looking ---- */

static int read_value(struct fix_host *h, const struct step *s, char **ret)
{
	const struct place *place = place_of(s);
	AUTO_FREE char *file = NULL;
	size_t size;
	int r = place ? host_read(h, s->target, &file, &size) : -EINVAL;

	if (r < 0 && r != -ENOENT)
		return r;
	*ret = r == 0 ? place->value(file, size, s->at) : xstrdup("");
	return 0;
}

static int read_state_one_shot(struct fix_host *h, const struct step *s, enum step_state *ret,
			       char **ret_now)
{
	AUTO_FREE char *value = NULL;
	int r = read_value(h, s, &value);

	if (r < 0)
		return r;
	*ret = strcmp(value, s->new.data) == 0   ? STEP_IS_NEW
	       : strcmp(value, s->old.data) == 0 ? STEP_IS_OLD
						 : STEP_IS_OTHER;
	if (ret_now)
		*ret_now = TAKE_PTR(value);
	return 0;
}

/* ---- doing ---- */

/* The first line of words alone: warnings have a colon. NULL: there is none. */
static const char *first_words(const char *text, size_t *ret_n)
{
	const char *line = NULL;

	while (text_next_line(&line, ret_n, text))
		if (*ret_n && !memchr(line, ':', *ret_n))
			return line;
	return NULL;
}

/* An entry that the boot loader cannot clear would be for every boot. */
static int allow_one_shot(struct fix_host *h, const struct step *s)
{
	AUTO_STRBUF struct strbuf output = {0};
	int r = s->check_argv ? host_run(h, s->check_argv, s->deadline_s, &output) : 0;
	const char *words;
	size_t n;

	if (r < 0)
		return r;
	words = first_words(strbuf_str(&output), &n);
	if (!words)
		return 0;
	return err_set(
		EOPNOTSUPP,
		"/%s is on %.*s, where the boot loader cannot write: the entry for the next boot "
		"would stay for all boots",
		s->target, (int)n, words);
}

static int apply_one_shot(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	int r = allow_one_shot(h, s);

	return r < 0 ? r : host_run(h, s->argv, s->deadline_s, output);
}

/* Its program is not run on a system that does not run; the next boot counts all the same. */
static int clear_in_image(struct fix_host *h, const struct step *s)
{
	const struct place *place = place_of(s);
	AUTO_FREE char *block = NULL, *left = NULL;
	struct host_change c = {.going_back = true};
	size_t size;
	int r = place ? host_read(h, s->target, &block, &size) : -EINVAL;

	if (r < 0 || !place->without)
		return r == -ENOENT ? 0 : r;
	left = place->without(block, size, s->at);
	c.seen = (struct bytes){block, size};
	c.put = (struct bytes){left, size};
	r = host_change(h, s->target, &c);
	return r < 0 ? r : 0;
}

static int undo_one_shot(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	if (h->image)
		return clear_in_image(h, s);
	return host_run(h, s->undo_argv, s->deadline_s, output);
}

const struct step_ops step_one_shot_ops = {
	.word = "one-shot",
	.in_system = true, /* the next boot clears it */
	.in_file = true,
	.read_state = read_state_one_shot,
	.allow = allow_one_shot,
	.apply = apply_one_shot,
	.undo = undo_one_shot,
};
