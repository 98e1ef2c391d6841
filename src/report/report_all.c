/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop report` prints: a machine, all its results, and what changed between them. */
#include "report/report_impl.h"

#include "base/alloc.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* How many results from `first` on are of one tool. */
static size_t count_of_tool(struct figures *const *results, size_t n, size_t first)
{
	size_t k = first + 1;

	while (k < n && strcmp(results[k]->tool, results[first]->tool) == 0)
		k++;
	return k - first;
}

static void add_results(struct document *out, struct figures *const *results, size_t n)
{
	char anchor[48];

	for (size_t i = 0; i < n; i++) {
		snprintf(anchor, sizeof(anchor), "result-%zu", i + 1);
		document_blank(out);
		document_section(out, anchor, "%s%s%s", results[i]->tool,
				 *results[i]->when ? ", " : "", results[i]->when);
		report_figures(out, results[i]);
	}
}

/* From the oldest to the newest of each tool. */
static void add_changes(struct document *out, struct figures *const *results, size_t n)
{
	bool any = false;

	for (size_t i = 0, k; i < n; i += k) {
		struct comparison *c;

		k = count_of_tool(results, n, i);
		if (k < 2)
			continue;
		if (!any)
			document_section(out, "changes", "What changed");
		any = true;
		document_blank(out);
		c = comparison_new(results[i], results[i + k - 1]);
		report_comparison(out, c);
		comparison_free(c);
	}
}

void report_all(struct document *out, const struct diagnosis *d, const struct check_fixes *fixes,
		struct figures *const *results, size_t n, const struct texts *left_out)
{
	if (d)
		report_check_body(out, d, fixes, false);
	else
		document_title(out, "%zu %s", n, text_plural(n, "result", "results"));
	if (left_out->n)
		document_blank(out);
	for (size_t i = 0; i < left_out->n; i++)
		document_item(out, STYLE_DIM, 0, "Not used:", "%s; the verdict ignores it",
			      left_out->items[i]);
	add_changes(out, results, n);
	add_results(out, results, n);
	if (!n) {
		document_blank(out);
		document_item(out, STYLE_DIM, 0, "results", "%s",
			      "none kept: onehop test and onehop bench p2p leave theirs for this "
			      "report");
	}
	if (d)
		report_check_details(out, d, false);
}
