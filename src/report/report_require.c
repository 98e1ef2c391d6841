/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "report/report.h"
#include "session/require.h"

static void report_one(struct document *out, enum requirement r, const struct requirement_result *n)
{
	const char *what =
		r == REQUIRE_DIRECT ? "ordered pairs of GPUs" : "pairs of a GPU and a NIC";
	size_t not = n->pairs - n->direct - n->undecided;
	char all[TEXT_ALL_SIZE];

	if (!n->pairs)
		document_item(out, STYLE_WARN, 0, "Required:", "there are no %s", what);
	else if (n->verdict == VERDICT_OK)
		document_item(out, STYLE_GOOD, 0, "Required:", "%s %s are direct",
			      text_all(n->pairs, all), what);
	else
		document_item(out, n->verdict == VERDICT_BAD ? STYLE_BAD : STYLE_WARN, 0,
			      "Required:",
			      "of %zu %s %zu are direct, %zu are not, %zu are undecided", n->pairs,
			      what, n->direct, not, n->undecided);
}

void report_requirements(struct document *out, const struct requirements *all)
{
	for (enum requirement r = 0; r < REQUIREMENT_N; r++)
		if (all->each[r].asked)
			report_one(out, r, &all->each[r]);
}

json_t *report_requirements_json(const struct requirements *all)
{
	json_t *list = json_array();

	for (enum requirement r = 0; r < REQUIREMENT_N; r++) {
		const struct requirement_result *n = &all->each[r];

		if (!n->asked)
			continue;
		json_array_append_new(list,
				      json_pack("{s:s, s:o, s:I, s:I, s:I}", "requirement",
						requirement_words[r], "holds",
						n->verdict == VERDICT_UNKNOWN
							? json_null()
							: json_boolean(n->verdict == VERDICT_OK),
						"pairs", (json_int_t)n->pairs, "direct",
						(json_int_t)n->direct, "undecided",
						(json_int_t)n->undecided));
	}
	return list;
}
