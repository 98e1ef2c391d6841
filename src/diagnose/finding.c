/* SPDX-License-Identifier: Apache-2.0 */
/* Findings: what they are about, and their texts. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/rules.h"
#include "diagnose/variables.h"

#include <stdarg.h>
#include <string.h>

/* ---- subjects ---- */

struct subject subject_gpu(struct rule_run *run, const struct gpu *g)
{
	return (struct subject){.kind = SUBJECT_GPU,
				.name = run_text(run, "GPU%zu", g->index),
				.detail = g->pci->name,
				.pci = g->pci};
}

struct subject subject_device(struct rule_run *run, enum subject_kind kind, const char *name,
			      const struct pci_function *f)
{
	if (kind == SUBJECT_NIC)
		return (struct subject){.kind = kind, .name = name, .detail = f->name, .pci = f};
	return (struct subject){.kind = kind,
				.name = run_text(run, "%s %s", name, f->name),
				.pci = f};
}

const char *subject_text(struct rule_run *run, struct subject s)
{
	return s.detail ? run_text(run, "%s %s", s.name, s.detail) : s.name;
}

/* ---- texts ---- */

static const char *other_name(struct arena *a, const struct machine *m, const struct finding *f)
{
	const struct pci_function *other = f->named_n ? f->named[0] : NULL;

	for (size_t i = 0; other && i < m->gpu_n; i++)
		if (m->gpus[i].pci == other)
			return arena_printf(a, "GPU%zu", i);
	return other ? other->name : "another device";
}

/* ABOUT, ABOUT_PCI and OTHER_DEVICE, by their only byte. */
static const char *with_devices(struct arena *a, const struct machine *m, const struct finding *f,
				const char *form)
{
	const char *const devices[] = {NULL, f->about.name,
				       f->about.pci ? f->about.pci->name : f->about.name,
				       other_name(a, m, f)};
	AUTO_STRBUF struct strbuf b = {0};

	for (const char *s = form; *s; s++) {
		if (*s >= *ABOUT && *s <= *OTHER_DEVICE)
			strbuf_puts(&b, devices[(int)*s]);
		else
			strbuf_putc(&b, *s);
	}
	return arena_strdup(a, strbuf_str(&b));
}

void finding_finish(struct arena *a, const struct machine *m, struct finding *f)
{
	f->sentence_form = f->sentence;
	f->remedy_form = f->remedy;
	f->sentence = with_devices(a, m, f, f->sentence_form);
	f->remedy = with_devices(a, m, f, f->remedy_form);
}

void finding_statement(const struct finding *f, struct strbuf *out)
{
	/* Of equal length in both texts, because no device is before it. */
	const size_t n = strcspn(f->sentence_form, ABOUT ABOUT_PCI OTHER_DEVICE);

	if (f->sentence_form[n] == *ABOUT)
		strbuf_printf(out, "%.*s%s%s", (int)n, f->sentence, f->subject,
			      f->sentence + n + strlen(f->about.name));
	else
		strbuf_printf(out, "%s: %s", f->subject, f->sentence);
}

/* ---- for probes ---- */

struct finding *finding_add(struct rule_run *run, enum confidence c, struct subject about,
			    const char *fmt, ...)
{
	struct diagnosis_builder *b = (struct diagnosis_builder *)run->d;
	struct arena *a = b->d.arena;
	struct finding *f = arena_alloc(a, 1, sizeof(*f));
	va_list ap;

	va_start(ap, fmt);
	*f = (struct finding){
		.rule = run->rule,
		.severity = run->rule->severity,
		.confidence = c,
		.about = about,
		.subject = subject_text(run, about),
		.sentence = arena_vprintf(a, fmt, ap),
		.remedy = run->rule->remedy,
		.pci = about.pci,
	};
	va_end(ap);
	*ARENA_PUSH(a, b->found, b->found_n) = f;
	run->found = true;
	return f;
}

void finding_evidence(struct rule_run *run, struct finding *f, const char *from, const char *what,
		      const char *fmt, ...)
{
	struct arena *a = run->d->arena;
	va_list ap;

	va_start(ap, fmt);
	*ARENA_PUSH(a, f->evidence, f->evidence_n) =
		(struct evidence){.what = what, .value = arena_vprintf(a, fmt, ap), .from = from};
	va_end(ap);
}

void finding_expects(struct finding *f, const char *value)
{
	struct evidence *e = &f->evidence[f->evidence_n - 1];

	if (e->value && strcmp(e->value, value) != 0)
		e->expected = value;
}

void finding_remedy(struct rule_run *run, struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	f->remedy = arena_vprintf(run->d->arena, fmt, ap);
	f->nothing_to_do = false;
	va_end(ap);
}

void finding_needs_nothing(struct finding *f)
{
	f->remedy = "nothing to do";
	f->nothing_to_do = true;
}

void finding_names(struct rule_run *run, struct finding *f, const struct pci_function *pci)
{
	if (!pci || pci == f->pci)
		return;
	for (size_t i = 0; i < f->named_n; i++)
		if (f->named[i] == pci)
			return;
	*ARENA_PUSH(run->d->arena, f->named, f->named_n) = pci;
}

void finding_sets(struct rule_run *run, struct finding *f, const char *name, const char *value)
{
	*ARENA_PUSH(run->d->arena, f->variables, f->variable_n) = (struct finding_variable){
		.variable = variable_find(name),
		.value = value,
	};
}

/* ---- for drawings ---- */

const struct draw_note *diagnosis_notes(const struct diagnosis *d, size_t *ret_n)
{
	static const enum chain_state states[SEVERITY_N] = {
		[SEVERITY_WARNING] = CHAIN_POSSIBLE,
		[SEVERITY_ERROR] = CHAIN_BAD,
	};
	struct draw_note *notes = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < d->finding_n; i++) {
		const struct finding *f = &d->findings[i];
		struct draw_note note = {
			.at = f->pci,
			.state = states[f->severity],
			.title = arena_printf(d->arena, "%s: %s: %s [%s]",
					      severity_word(f->severity), f->subject, f->sentence,
					      f->rule->id),
			.rule = f->rule->id,
			.reason = f->rule->reason,
		};

		if (f->severity == SEVERITY_INFO)
			continue;
		if (f->pci || !f->named_n)
			*ARENA_PUSH(d->arena, notes, *ret_n) = note;
		for (size_t k = 0; k < f->named_n; k++) {
			note.at = f->named[k];
			*ARENA_PUSH(d->arena, notes, *ret_n) = note;
		}
	}
	return notes;
}
