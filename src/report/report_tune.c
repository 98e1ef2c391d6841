/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_collective.h"

#include "base/array.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "collective/operation.h"
#include "report/document.h"
#include "report/report_impl.h"
#include "report/report_json_impl.h"

static const struct {
	enum tuned_kind kind;
	const char *text;
	bool p2p;
} kinds[] = {{TUNED_DIRECT, "with P2P", true},
	     {TUNED_MIXED, "with P2P where pairs have it", true},
	     {TUNED_HOST, "without P2P", false}};

/* ALGORITHM_N: nothing was measured there. */
static enum algorithm fastest(const struct tuned_times *t, unsigned operation, unsigned size)
{
	enum algorithm best = ALGORITHM_N;

	for (unsigned a = 0; a < ALGORITHM_N; a++) {
		const uint32_t ns = t->ns[operation][a][size];

		if (ns && (best == ALGORITHM_N || ns < t->ns[operation][best][size]))
			best = (enum algorithm)a;
	}
	return best;
}

/*
 * "up to 16 KiB flagged-1, up to 64 MiB piped-2": of consecutive sizes with the same algorithm the last
 * is named.
 */
static void add_ranges(struct strbuf *out, const struct tuned_times *t, unsigned operation)
{
	enum algorithm before = ALGORITHM_N;
	char bytes[BYTES_TEXT_SIZE];
	unsigned last = 0;

	for (unsigned s = 0; s < TUNED_SIZES; s++) {
		const enum algorithm a = fastest(t, operation, s);

		if (a == ALGORITHM_N)
			continue;
		if (before != ALGORITHM_N && a != before)
			strbuf_printf(out, "up to %s %s, ", bytes_text(tuned_size(last), bytes),
				      algorithm_word(before));
		before = a;
		last = s;
	}
	if (before == ALGORITHM_N)
		strbuf_puts(out, "not measured");
	else
		strbuf_printf(out, "up to %s %s", bytes_text(tuned_size(last), bytes),
			      algorithm_word(before));
}

static void add_fastest(struct document *out, const struct tuned_times *t, const char *text)
{
	document_heading(out, "Fastest algorithm by size, %s", text);
	document_table(out, 2, 2, 2);
	for (unsigned o = 0; o < OPERATION_N; o++) {
		AUTO_STRBUF struct strbuf b = {0};

		add_ranges(&b, t, o);
		document_row(out);
		document_cell(out, STYLE_PLAIN, "%s", operation_word((enum operation)o));
		document_cell(out, STYLE_PLAIN, "%s", strbuf_str(&b));
	}
	document_blank(out);
}

/* ---- all times ---- */

static void add_size(struct document *out, const struct tuned_times *t, unsigned operation,
		     unsigned size)
{
	char bytes[BYTES_TEXT_SIZE];

	document_row(out);
	document_cell(out, STYLE_PLAIN, "%s", bytes_text(tuned_size(size), bytes));
	for (unsigned a = 0; a < ALGORITHM_N; a++) {
		const uint32_t ns = t->ns[operation][a][size];

		if (ns)
			document_cell(out,
				      a == fastest(t, operation, size) ? STYLE_GOOD : STYLE_PLAIN,
				      "%.2f", ns / 1e3);
		else
			document_cell(out, STYLE_DIM, "-");
	}
}

static void add_times(struct document *out, const struct tune_session *s, enum tuned_kind kind,
		      const char *text)
{
	const struct tuned_times *t = &s->table.times[kind];

	for (unsigned o = 0; o < OPERATION_N; o++) {
		document_blank(out);
		document_heading(out, "%s %s, us", operation_word((enum operation)o), text);
		document_table(out, 2, 1 + ALGORITHM_N, 2);
		document_row(out);
		document_cell(out, STYLE_STRONG, "size");
		for (unsigned a = 0; a < ALGORITHM_N; a++)
			document_cell(out, STYLE_STRONG, "%s", algorithm_word((enum algorithm)a));
		for (unsigned size = 0; size < s->sizes; size++)
			if (fastest(t, o, size) != ALGORITHM_N)
				add_size(out, t, o, size);
	}
}

/* ---- how far ---- */

/* The largest size that any operation was measured at; something was. */
static unsigned last_size(const struct tuned_times *t)
{
	unsigned last = 0;

	for (unsigned s = 0; s < TUNED_SIZES; s++)
		for (unsigned o = 0; o < OPERATION_N; o++)
			if (fastest(t, o, s) != ALGORITHM_N)
				last = s;
	return last;
}

/* Why there are no larger sizes; "": the run ended at its largest. */
static const char *why_no_larger(const struct tune_session *s, bool all)
{
	if (!all)
		return "; larger sizes did not fit into the time (--budget) or into memory";
	return devices_are_simulated(&s->devices) ? "; simulated devices are measured no further"
						  : "";
}

static void add_measured(struct document *out, const struct tune_session *s)
{
	AUTO_STRBUF struct strbuf b = {0};
	char bytes[BYTES_TEXT_SIZE];
	bool all = true, ends_table = false;

	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		const enum tuned_kind kind = kinds[k].kind;

		if (!s->measured[kind])
			continue;
		const uint64_t last = tuned_size(last_size(&s->table.times[kind]));

		ends_table |= last == tuned_size(TUNED_SIZES - 1);
		all &= last >= s->run.plan.max_bytes;
		strbuf_printf(&b, "%s up to %s, ", kinds[k].text, bytes_text(last, bytes));
	}
	document_item(out, all ? STYLE_PLAIN : STYLE_WARN, 0, "measured", "%sin %.1f s%s",
		      strbuf_str(&b), s->run_s, why_no_larger(s, all));
	document_item(out, STYLE_PLAIN, 0, "larger",
		      "up to four times the largest measured size of an operation, its times are "
		      "extrapolated; above that, estimates are used%s",
		      ends_table ? ", unless that size is the largest of the table" : "");
}

/* ---- together ---- */

static void add_devices(struct document *out, const struct tune_session *s)
{
	const struct devices *d = &s->devices;

	if (devices_are_simulated(d))
		add_simulated(out, d->request.n);
	for (size_t k = 0; !devices_are_simulated(d) && k < d->request.n; k++)
		document_item(out, STYLE_PLAIN, 0, k ? "" : "devices", "%s", d->chosen.names[k]);
	add_skips(out, d->chosen.skips, d->chosen.skip_n);
}

void report_tune(struct document *out, const struct tune_session *s, bool verbose)
{
	add_devices(out, s);
	document_blank(out);
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		if (s->measured[kinds[k].kind])
			add_fastest(out, &s->table.times[kinds[k].kind], kinds[k].text);
	document_paragraph(out, STYLE_DIM, 2,
			   "sizes are count times the size of an element; all_gather, "
			   "reduce_scatter and all_to_all have that much for each rank%s",
			   verbose ? ". -: the algorithm is not for this operation, or not for "
				     "this size"
				   : "");
	for (size_t k = 0; verbose && k < ARRAY_LEN(kinds); k++)
		if (s->measured[kinds[k].kind])
			add_times(out, s, kinds[k].kind, kinds[k].text);
	document_blank(out);
	if (s->measured[TUNED_MIXED])
		document_item(out, STYLE_WARN, 0, "P2P",
			      "some pair has none, so its data went through the host's memory");
	else if (!s->measured[TUNED_DIRECT])
		document_item(out, STYLE_WARN, 0, "P2P",
			      "no pair has it, so all data went through the host's memory");
	document_item(out, STYLE_GOOD, 0, "data", "correct in all measurements");
	add_measured(out, s);
	document_item(out, STYLE_PLAIN, 0, "saved", "%s; onehop bench collective uses it", s->path);
}

/* ---- JSON ---- */

static json_t *devices_json(const struct tuned_identity *id)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < id->n; i++)
		json_array_append_new(all, json_pack("{s:o, s:o}", "name",
						     json_known_text(id->device[i].key), "uuid",
						     json_known_text(id->device[i].uuid)));
	return all;
}

static json_t *paths_json(const struct tuned_identity *id)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < id->n; i++)
		for (unsigned j = 0; j < id->n; j++)
			if (i != j)
				json_array_append_new(all,
						      json_pack("{s:i, s:i, s:o}", "from", (int)i,
								"to", (int)j, "class",
								json_known_text(id->path[i][j])));
	return all;
}

static json_t *times_json(const struct tuned_times *t, unsigned operation, unsigned size)
{
	json_t *us = json_object();

	for (unsigned a = 0; a < ALGORITHM_N; a++)
		if (t->ns[operation][a][size])
			json_object_set_new(us, algorithm_word((enum algorithm)a),
					    json_real(t->ns[operation][a][size] / 1e3));
	return us;
}

static void append_times(json_t *all, const struct tuned_times *t, bool p2p)
{
	for (unsigned o = 0; o < OPERATION_N; o++)
		for (unsigned size = 0; size < TUNED_SIZES; size++) {
			const enum algorithm a = fastest(t, o, size);

			if (a == ALGORITHM_N)
				continue;
			json_array_append_new(all, json_pack("{s:b, s:s, s:I, s:s, s:o}", "p2p",
							     (int)p2p, "operation",
							     operation_word((enum operation)o),
							     "bytes", (json_int_t)tuned_size(size),
							     "fastest", algorithm_word(a), "us",
							     times_json(t, o, size)));
		}
}

json_t *report_tune_json(const struct tune_session *s)
{
	json_t *o = json_head("tune"), *times = json_array();

	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		append_times(times, &s->table.times[kinds[k].kind], kinds[k].p2p);
	json_object_set_new(o, "measured", json_text(s->table.date));
	json_object_set_new(o, "driver", json_known_text(s->table.identity.driver));
	json_object_set_new(o, "simulated", json_boolean(devices_are_simulated(&s->devices)));
	json_object_set_new(o, "devices", devices_json(&s->table.identity));
	json_object_set_new(o, "paths", paths_json(&s->table.identity));
	json_object_set_new(o, "times", times);
	json_object_set_new(o, "seconds", json_real(s->run_s));
	json_object_set_new(o, "file", json_text(s->path));
	return o;
}
