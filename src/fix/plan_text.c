/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan is made of: steps, entries for people, and why each is there. */
#include "fix/make_plan_impl.h"

#include "base/markup.h"

#include <stdarg.h>
#include <string.h>

/* Names of files may be in it, and the journal holds UTF-8 only. */
#define FORMAT(p, fmt)                                                                             \
	({                                                                                         \
		va_list ap_;                                                                       \
		va_start(ap_, fmt);                                                                \
		char *text_ = arena_vprintf((p)->a, fmt, ap_);                                     \
		va_end(ap_);                                                                       \
		text_clean(text_);                                                                 \
		text_;                                                                             \
	})

static void add_once(struct planner *p, const char ***list, size_t *n, const char *text)
{
	for (size_t i = 0; i < *n; i++)
		if (strcmp((*list)[i], text) == 0)
			return;
	*ARENA_PUSH(p->a, *list, *n) = text;
}

void plan_note(struct planner *p, const char *fmt, ...)
{
	add_once(p, &p->plan->notes, &p->plan->note_n, FORMAT(p, fmt));
}

void plan_way_boot(struct planner *p, const char *fmt, ...)
{
	add_once(p, &p->way_boot, &p->way_boot_n, FORMAT(p, fmt));
}

void plan_way_without(struct planner *p, const char *fmt, ...)
{
	add_once(p, &p->way_without, &p->way_without_n, FORMAT(p, fmt));
}

void plan_way_from_medium(struct planner *p, const char *why)
{
	p->way_medium = arena_printf(
		p->a,
		"start another system, such as a live medium, and mount this one at " WAY_MEDIUM
		" (%s)",
		why);
	add_once(p, &p->way_boot, &p->way_boot_n, p->way_medium);
}

void plan_way_finish(struct planner *p)
{
	struct plan *plan = p->plan;
	const char *undo = p->way_boot_n && p->way_boot[0] == p->way_medium
				   ? "`onehop undo --root " WAY_MEDIUM "`"
				   : "`onehop undo`";

	if (p->way_boot_n)
		plan->way_back_line = arena_printf(p->a, "%s; then %s", p->way_boot[0], undo);
	else if (p->way_without_n)
		plan->way_back_line = "`onehop undo` (also works from a rescue shell)";
	for (size_t i = 0; i < p->way_boot_n; i++)
		add_once(p, &plan->way_back, &plan->way_back_n,
			 arena_printf(p->a, "%s%s", i ? "or " : "", p->way_boot[i]));
	if (p->way_boot_n || p->way_without_n)
		add_once(p, &plan->way_back, &plan->way_back_n,
			 arena_printf(p->a, "%sundo the fix: %s", p->way_boot_n ? "then " : "",
				      undo));
	for (size_t i = 0; i < p->way_without_n; i++)
		add_once(p, &plan->way_back, &plan->way_back_n,
			 arena_printf(p->a, "%s without onehop: %s", i ? "and" : "or,",
				      p->way_without[i]));
}

static void add_manual(struct planner *p, struct texts rules, const char *what, const char *how)
{
	struct plan_manual *m = p->plan->manual;

	for (size_t i = 0; i < p->plan->manual_n; i++)
		if (strcmp(m[i].what, what) == 0 && strcmp(m[i].how, how) == 0)
			return;
	m = ARENA_PUSH(p->a, p->plan->manual, p->plan->manual_n);
	m->what = arena_strdup(p->a, what);
	m->how = how;
	texts_add_all(p->a, &m->rules, &rules);
}

void plan_manual(struct planner *p, struct texts rules, const char *what, const char *fmt, ...)
{
	add_manual(p, rules, what, FORMAT(p, fmt));
}

void plan_words_by_hand(struct planner *p, const char *fmt, ...)
{
	const struct purpose purpose = plan_words_purpose(p);
	AUTO_STRBUF struct strbuf what = {0};

	strbuf_printf(&what, "add %s to the kernel command line", plan_words(p));
	if (purpose.why.n)
		strbuf_puts(&what, ": ");
	texts_join(&purpose.why, "; ", &what);
	add_manual(p, purpose.rules, strbuf_str(&what), FORMAT(p, fmt));
}

void plan_change_by_hand(struct planner *p, const struct change *c, const char *fmt, ...)
{
	AUTO_STRBUF struct strbuf words = {0};

	strbuf_puts(&words, plan_change_words(p, c));
	if (c->reason.n)
		strbuf_puts(&words, ": ");
	texts_join(&c->reason, "; ", &words);
	add_manual(p, c->rules, strbuf_str(&words), FORMAT(p, fmt));
}

void plan_want(struct planner *p, const char *kind, const char *fmt, ...)
{
	struct plan_wanted *w;

	/* There only registers are onehop's to set, and nobody keeps those. */
	if (plan_etc_is_generated(p))
		return;
	w = ARENA_PUSH(p->a, p->plan->wanted, p->plan->wanted_n);
	w->kind = kind;
	w->value = FORMAT(p, fmt);
}

/* ---- a change in words ---- */

/* %T target, %N name, %W new; of the values %o old and %w new in hexadecimal, %O and %V in decimal; %B bar. */
static const char *const change_words[CHANGE_KIND_N] = {
	[CHANGE_ACS] = "%T: ACS control %o -> %w",
	[CHANGE_KERNEL_PARAMETER] = "kernel parameter %T",
	[CHANGE_MODULE_OPTION] = "option %N=%W of the module %T",
	[CHANGE_REGISTRY_DWORD] = "registry key %N=%W of the driver",
	[CHANGE_MODULE_BLACKLIST] = "keep the module %T from loading automatically",
	[CHANGE_MODULE_LOAD] = "load the module %T",
	[CHANGE_MODULE_UNLOAD] = "unload the module %T and keep it from loading",
	[CHANGE_BAR_SIZE] = "%T: BAR%B %O MiB -> %V MiB",
	[CHANGE_MEMLOCK] = "let processes lock memory without a limit",
	[CHANGE_NCCL_SETTING] = "NCCL setting %N=%W",
	[CHANGE_PERSISTENCE] = "keep the driver initialized while no program uses the GPUs",
	[CHANGE_BY_HAND] = "%T",
};

static void add_part(struct strbuf *b, const struct change *c, char letter)
{
	const char *text = letter == 'T' ? c->target : letter == 'N' ? c->name : c->new;

	switch (letter) {
	case 'o':
		strbuf_printf(b, "%04x", c->value.old);
		break;
	case 'w':
		strbuf_printf(b, "%04x", c->value.new);
		break;
	case 'O':
		strbuf_printf(b, "%u", c->value.old);
		break;
	case 'V':
		strbuf_printf(b, "%u", c->value.new);
		break;
	case 'B':
		strbuf_printf(b, "%u", c->bar);
		break;
	default:
		strbuf_puts(b, text ? text : "?");
	}
}

const char *plan_change_words(struct planner *p, const struct change *c)
{
	AUTO_STRBUF struct strbuf text = {0};

	for (const char *w = change_words[c->kind]; *w; w++)
		if (*w == '%')
			add_part(&text, c, *++w);
		else
			strbuf_putc(&text, *w);
	return arena_strdup(p->a, strbuf_str(&text));
}

/* ---- purposes ---- */

void plan_left_out(struct planner *p, struct texts rules, const char *what, const char *fmt, ...)
{
	const char *why = FORMAT(p, fmt);
	struct plan_left_out *l = NULL;

	for (size_t i = 0; i < p->plan->left_out_n; i++)
		if (strcmp(p->plan->left_out[i].why, why) == 0)
			l = &p->plan->left_out[i];
	if (!l) {
		l = ARENA_PUSH(p->a, p->plan->left_out, p->plan->left_out_n);
		l->why = why;
	}
	texts_add(p->a, &l->what, what);
	texts_add_all(p->a, &l->rules, &rules);
}

void purpose_join(struct planner *p, struct purpose *to, const struct purpose *from)
{
	texts_add_all(p->a, &to->why, &from->why);
	texts_add_all(p->a, &to->rules, &from->rules);
	texts_add_all(p->a, &to->cost, &from->cost);
	to->reboot |= from->reboot;
}

void purpose_add(struct planner *p, struct purpose *to, const struct change *c)
{
	const struct purpose from = {.why = c->reason, .rules = c->rules, .cost = c->cost};

	purpose_join(p, to, &from);
}

/* ---- steps ---- */

const char *const *plan_argv(struct planner *p, const char *first, ...)
{
	const char **argv = NULL;
	size_t n = 0;
	va_list ap;

	va_start(ap, first);
	for (const char *word = first; word; word = va_arg(ap, const char *))
		*ARENA_PUSH(p->a, argv, n) = word;
	va_end(ap);
	*ARENA_PUSH(p->a, argv, n) = NULL;
	return argv;
}

static struct step *add_step(struct planner *p, enum phase phase, enum step_kind kind,
			     const struct purpose *purpose, const char *what)
{
	struct steps *list = &p->phases[phase];
	struct step *s = ARENA_PUSH(p->a, list->items, list->n);

	s->kind = kind;
	s->what = what;
	texts_add_all(p->a, &s->why, &purpose->why);
	texts_add_all(p->a, &s->rules, &purpose->rules);
	texts_add_all(p->a, &s->cost, &purpose->cost);
	s->reboot = purpose->reboot;
	return s;
}

struct step *plan_step(struct planner *p, enum phase phase, enum step_kind kind,
		       const struct purpose *purpose, const char *fmt, ...)
{
	return add_step(p, phase, kind, purpose, FORMAT(p, fmt));
}

/* "chroot /mnt update-initramfs -u" */
static void tool_by_hand(struct planner *p, const struct tool *t, const struct purpose *purpose,
			 const char *what)
{
	const char *const chroot[] = {"chroot", source_name(p->s), NULL};
	AUTO_STRBUF struct strbuf line = {0};

	if (!t->argv)
		return;
	step_command_line(chroot, &line);
	strbuf_putc(&line, ' ');
	step_command_line(t->argv, &line);
	add_manual(p, purpose->rules, what,
		   arena_printf(p->a, "in the system image, e.g. by chroot: `%s`", line.text));
}

void plan_tool(struct planner *p, enum phase phase, const struct tool *t,
	       const struct purpose *purpose, const char *fmt, ...)
{
	const char *what = FORMAT(p, fmt);
	struct step *s;

	if (p->request->image) {
		tool_by_hand(p, t, purpose, what);
		return;
	}
	s = add_step(p, phase, STEP_TOOL, purpose, what);
	s->argv = t->argv;
	s->undo_argv = t->undo_argv;
	s->argv_if = t->argv_if;
	s->undo_if = t->undo_if;
	s->link = t->link;
	s->passing = t->passing;
	s->deadline_s = t->deadline_s ? t->deadline_s : 60;
}
