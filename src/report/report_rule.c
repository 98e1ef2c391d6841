/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules: one explained, all listed, for people and as JSON, and the two manuals made from the
 * table.
 */
#include "report/report_json_impl.h"

#include "base/strbuf.h"
#include "base/text.h"

#include <string.h>

/* `word` is for programs and stays. */
static const struct {
	const char *word, *text;
} blocks[] = {
	[BLOCKS_NOTHING] = {"nothing", "blocks nothing, information only"},
	[BLOCKS_SPEED] = {"speed", "costs speed"},
	[BLOCKS_SOME] = {"some", "blocks some pairs or directions, or makes data doubtful"},
	[BLOCKS_ALL] = {"all", "blocks everything until it is fixed"},
	[BLOCKS_RUN] = {"run", "ended a run"},
};

static const struct {
	unsigned need;
	const char *word, *text;
} needs[] = {
	{NEEDS_GPU, "gpu", "a GPU"},
	{NEEDS_TWO_GPUS, "two-gpus", "two GPUs"},
	{NEEDS_RDMA, "rdma", "an RDMA device"},
	{NEEDS_DRIVER, "driver", "the nvidia module loaded"},
	{NEEDS_CONFIG_SPACE, "config-space", "PCI configuration space (root)"},
	{NEEDS_NVML, "nvml", "NVML"},
	{NEEDS_LOG, "kernel-log", "the kernel log (often root)"},
	{NEEDS_TREE, "pci-tree", "the bridges above the GPUs"},
};

static const char *needs_text(const struct rule *rule, struct strbuf *b)
{
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		if (rule->needs & needs[i].need)
			strbuf_printf(b, "%s%s", b->len ? ", " : "", needs[i].text);
	}
	return b->len ? strbuf_str(b) : "nothing special";
}

static const char *text_or(const char *s, const char *otherwise)
{
	return s && *s ? s : otherwise;
}

void report_rule(struct document *out, const struct rule *rule)
{
	struct strbuf b AUTO_STRBUF = {0};

	document_heading(out, "%s: %s", rule->id, rule->title);
	document_blank(out);
	document_item(out, STYLE_STRONG, 0, "why:      ", "%s", rule->why);
	document_item(out, STYLE_STRONG, 0, "do:       ", "%s",
		      text_or(rule->remedy, "see the finding"));
	document_item(out, STYLE_STRONG, 0, "severity: ", "%s; %s", severity_word(rule->severity),
		      blocks[rule->blocks].text);
	document_item(out, STYLE_STRONG, 0, "needs:    ", "%s", needs_text(rule, &b));
	document_item(out, STYLE_STRONG, 0, "reference:", "%s", text_or(rule->reference, "none"));
}

void report_rule_list(struct document *out)
{
	document_table(out, 0, 3, 2);
	FOR_EACH_RULE (r) {
		document_row(out);
		document_cell(out, STYLE_STRONG, "%s", r->id);
		document_cell(out, STYLE_PLAIN, "%s", severity_word(r->severity));
		document_cell(out, STYLE_PLAIN, "%s", r->title);
	}
}

/* ---- JSON ---- */

static json_t *needs_json(const struct rule *rule)
{
	json_t *words = json_array();

	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		if (rule->needs & needs[i].need)
			json_array_append_new(words, json_string(needs[i].word));
	}
	return words;
}

static json_t *rule_json(const struct rule *rule)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "id", rule->id, "title",
			 rule->title, "severity", severity_word(rule->severity), "blocks",
			 blocks[rule->blocks].word, "needs", needs_json(rule), "why",
			 json_text(rule->why), "remedy", json_text(rule->remedy), "reference",
			 json_text(rule->reference));
}

json_t *report_rules_json(const struct rule *only)
{
	json_t *o = json_head("check"), *rules = json_array();

	FOR_EACH_RULE (r) {
		if (!only || r == only)
			json_array_append_new(rules, rule_json(r));
	}
	json_object_set_new(o, "rules", rules);
	return o;
}

/* ---- manuals ---- */

/* Characters that would mean something to the writer of the manual get a backslash. */
static void add_escaped(struct strbuf *out, const char *s, const char *special)
{
	for (; *s; s++) {
		if (strchr(special, *s))
			strbuf_putc(out, '\\');
		strbuf_putc(out, *s == '\n' ? ' ' : *s);
	}
}

/* How a manual writes a rule. */
struct manual {
	const char *special; /* characters that it gives a meaning */
	/*
	 * Before a rule's id, between that and the title, after the title; of a field: of name and
	 * text.
	 */
	const char *id, *title, *title_end;
	const char *field, *text, *text_end;
};

static void add_field(struct strbuf *out, const struct manual *m, const char *name,
		      const char *text)
{
	strbuf_printf(out, "%s%s%s", m->field, name, m->text);
	add_escaped(out, text, m->special);
	strbuf_puts(out, m->text_end);
}

static void add_rules(struct strbuf *out, const struct manual *m)
{
	FOR_EACH_RULE (r) {
		struct strbuf needed AUTO_STRBUF = {0}, severity AUTO_STRBUF = {0};

		strbuf_printf(&severity, "%s; %s", severity_word(r->severity),
			      blocks[r->blocks].text);
		strbuf_printf(out, "%s%s%s", m->id, r->id, m->title);
		add_escaped(out, r->title, m->special);
		strbuf_puts(out, m->title_end);
		add_field(out, m, "Why", r->why);
		add_field(out, m, "Do", text_or(r->remedy, "see the finding"));
		add_field(out, m, "Severity", severity.text);
		add_field(out, m, "Needs", needs_text(r, &needed));
		add_field(out, m, "Reference", text_or(r->reference, "none"));
	}
}

void report_rules_markdown(struct strbuf *out)
{
	static const struct manual markdown = {"\\`*_<>[]|#", "\n## ", "\n\n", "\n\n",
					       "- **",        ":** ",  "\n"};

	strbuf_puts(out,
		    "# Rules\n\n"
		    "Made from the table in `src/diagnose/` by `tools/generate`; do not edit.\n"
		    "Each title is the good state; a finding says how a machine differs.\n");
	add_rules(out, &markdown);
}

void report_rules_scdoc(struct strbuf *out)
{
	static const struct manual scdoc = {"\\*_#", "*", "*\n\t", "\n\n", "\t*", ":* ", "\n\n"};

	strbuf_puts(
		out,
		"onehop-rules(7)\n\n# NAME\n\nonehop-rules - what onehop check looks for\n\n"
		"# DESCRIPTION\n\nEach rule is named by an ID, which *onehop check --explain* and "
		"*--ignore* take,\nand a title that states the good case.\n\n# RULES\n\n");
	add_rules(out, &scdoc);
	strbuf_puts(out, "# SEE ALSO\n\n*onehop*(1), *onehop-check*(1)\n");
}
