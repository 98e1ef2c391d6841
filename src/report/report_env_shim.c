/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_env.h"

#include "base/text.h"
#include "collective/faster.h"
#include "collective/operation.h"
#include "report/report_impl.h"
#include "report/shim_path.h"

#include <unistd.h>

static void add_line(struct document *out, const struct topology *t)
{
	document_paragraph(out, STYLE_STRONG, 0, "LD_PRELOAD=%s COMMAND", SHIM_PATH);
	if (!t->machine->recorded && access(SHIM_PATH, R_OK) != 0)
		document_paragraph(out, STYLE_WARN, 0,
				   "That file is not there: `make install` puts it there.");
	document_blank(out);
}

/* How many unordered pairs of GPUs have such a path; undecided pairs are neither. */
static size_t count_pairs(const struct topology *t, bool direct)
{
	size_t n = 0;

	for (size_t i = 0; i < t->gpu_n; i++)
		for (size_t j = 0; j < i; j++) {
			enum pair_verdict a = topology_path(t, i, j)->verdict,
					  b = topology_path(t, j, i)->verdict;

			n += direct ? a == PAIR_DIRECT && b == PAIR_DIRECT
				    : a == PAIR_BLOCKED || b == PAIR_BLOCKED;
		}
	return n;
}

static void add_row(struct document *out, const struct topology *t, const struct faster *f)
{
	const size_t n = count_pairs(t, f->direct);
	char size[BYTES_TEXT_SIZE];

	if (n)
		document_item(
			out, STYLE_GOOD, 0, "taken over",
			"%s of %u GPUs, %s, up to %s: %.2f to %.2f of NCCL's time, measured on %s (pairs here: %zu)",
			operation_word(f->operation), f->ranks,
			f->direct ? "directly" : "through the host's memory",
			bytes_text(f->bytes, size), f->least, f->most, f->machine, n);
}

void report_env_shim(struct document *out, const struct topology *t)
{
	add_line(out, t);
	for (size_t i = 0; faster_at(i); i++)
		add_row(out, t, faster_at(i));
	if (!count_pairs(t, true) && !count_pairs(t, false))
		document_item(out, STYLE_WARN, 0, "unknown",
			      "whether any pair is direct, so nothing can be said of what is taken "
			      "over (onehop check)");
	document_item(out, STYLE_DIM, 0, "left to NCCL",
		      "other types than float32, float16 and bfloat16, other reductions than sum "
		      "and average, other sizes and operations, communicators of more GPUs or "
		      "hosts. ONEHOP_SHIM=all takes over more, ONEHOP_SHIM=off nothing.");
	document_paragraph(
		out, STYLE_PLAIN, 0,
		"Where NCCL has NVLink multicast (NVLS), these times were not compared with it.");
}
