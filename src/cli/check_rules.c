/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check_rules.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "diagnose/rules.h"

enum { LIST_TEXT = 1, LIST_MARKDOWN };
const char *const rule_list_formats[] = {"text", "markdown", "scdoc", NULL};

int check_explain(const char *id, const struct common_options *common)
{
	const struct rule *rule = rule_named(id);
	struct document *d;

	if (!rule)
		return fail(EXIT_REFUSED, "--explain: %s", err_msg());
	if (common->json)
		return print_json(report_rules_json(rule), EXIT_OK);
	d = new_document(common);
	report_rule(d, rule);
	return show_document(d, common, EXIT_OK);
}

static int list_text(const struct common_options *common)
{
	struct document *d = new_document(common);

	report_rule_list(d);
	return show_document(d, common, EXIT_OK);
}

int check_list(int format, const struct common_options *common)
{
	AUTO_STRBUF struct strbuf b = {0};

	if (format == LIST_TEXT)
		return common->json ? print_json(report_rules_json(NULL), EXIT_OK)
				    : list_text(common);
	if (common->json)
		return fail(EXIT_REFUSED, "--list=%s prints no JSON; --list --json does",
			    rule_list_formats[format - 1]);
	if (format == LIST_MARKDOWN)
		report_rules_markdown(&b);
	else
		report_rules_scdoc(&b);
	return print_text(&b, EXIT_OK);
}
