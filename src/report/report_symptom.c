/* SPDX-License-Identifier: Apache-2.0 */
/* What could cause a symptom: for people and as JSON. */
#include "diagnose/symptom.h"
#include "report/report.h"
#include "report/report_json_impl.h"

#include "base/cleanup.h"
#include "base/strbuf.h"

static const char *const effects[SYMPTOM_N] = {
	[SYMPTOM_HANG] = "hang",          [SYMPTOM_WRONG_DATA] = "return wrong data",
	[SYMPTOM_SLOW] = "be slow",       [SYMPTOM_CRASH] = "crash",
	[SYMPTOM_REFUSED] = "be refused",
};

static void add_suspect(struct document *out, const struct suspect *s, size_t number)
{
	AUTO_STRBUF struct strbuf label = {0};

	strbuf_printf(&label, "%zu", number);
	document_item(out, s->finding ? STYLE_BAD : STYLE_STRONG, 2, strbuf_str(&label), "%s [%s]",
		      s->cause, s->id);
	if (s->finding) {
		AUTO_STRBUF struct strbuf sentence = {0};

		finding_statement(s->finding, &sentence);
		document_item(out, STYLE_PLAIN, 5, "found ", "%s (%s) [%s]", strbuf_str(&sentence),
			      confidence_word(s->finding->confidence), s->finding->rule->id);
		document_item(out, STYLE_STRONG, 5, "do    ", "%s", s->finding->remedy);
	} else if (s->open) {
		document_item(out, STYLE_DIM, 5, "open  ", "unknown: %s [%s]", s->open->what,
			      s->open->rule->id);
	}
	document_item(out, STYLE_STRONG, 5, "decide", "`%s`: %s", s->decide.command,
		      s->decide.tells);
}

void report_symptom(struct document *out, const struct diagnosis *d, int symptom, int a, int b)
{
	struct suspect suspects[SUSPECTS_MAX];
	size_t n = diagnosis_suspects(d, (enum symptom)symptom, a, b, suspects);

	if (a >= 0)
		document_heading(out,
				 "What can make transfers between GPU%d and GPU%d %s, the most "
				 "likely first",
				 a, b, effects[symptom]);
	else
		document_heading(out,
				 "What can make transfers between GPUs %s, the most likely first",
				 effects[symptom]);
	for (size_t i = 0; i < n; i++)
		add_suspect(out, &suspects[i], i + 1);
	if (!n)
		document_paragraph(
			out, STYLE_PLAIN, 2,
			"the facts of this machine exclude every cause that onehop knows");
}

static json_t *suspect_json(const struct suspect *s)
{
	AUTO_STRBUF struct strbuf sentence = {0};

	if (s->finding)
		finding_statement(s->finding, &sentence);
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:{s:s, s:s}}", "id", s->id, "cause",
			 s->cause, "confidence",
			 s->finding ? json_string(confidence_word(s->finding->confidence))
				    : json_null(),
			 "rule", s->finding ? json_string(s->finding->rule->id) : json_null(),
			 "finding", s->finding ? json_text(strbuf_str(&sentence)) : json_null(),
			 "unknown", s->open ? json_text(s->open->what) : json_null(), "decide",
			 "command", s->decide.command, "tells", s->decide.tells);
}

json_t *report_symptom_json(const struct diagnosis *d, int symptom, int a, int b)
{
	struct suspect suspects[SUSPECTS_MAX];
	size_t n = diagnosis_suspects(d, (enum symptom)symptom, a, b, suspects);
	json_t *causes = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(causes, suspect_json(&suspects[i]));
	return json_pack("{s:s, s:o, s:o}", "symptom", symptom_words[symptom], "pair",
			 a >= 0 ? json_pack("[i, i]", a, b) : json_null(), "causes", causes);
}
