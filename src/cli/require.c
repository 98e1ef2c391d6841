/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/require.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "session/device_choice.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

const char *const requirement_words[] = {
	[REQUIRE_DIRECT] = "direct", [REQUIRE_RDMA] = "rdma", [REQUIREMENT_N] = NULL};

/* Ordered pairs of two GPUs; of a GPU and a NIC once, from the NIC's side: it reads and writes the GPU's
 * memory. So the verdict line counts them too. */
static bool is_required(const struct topology *t, enum requirement r, const bool *wanted, size_t i,
			size_t j)
{
	bool gpu = t->endpoints[i].kind == ENDPOINT_GPU,
	     other = t->endpoints[j].kind == ENDPOINT_GPU;

	if (i == j || (gpu && !wanted[t->endpoints[i].index]) ||
	    (other && !wanted[t->endpoints[j].index]))
		return false;
	return r == REQUIRE_DIRECT ? gpu && other : !gpu && other;
}

static enum exit_code code_of(const struct requirement_result *n)
{
	if (n->direct + n->undecided < n->pairs)
		return EXIT_FINDING;
	return n->pairs && n->direct == n->pairs ? EXIT_OK : EXIT_NOT_JUDGED;
}

static struct requirement_result judge_one(const struct topology *t, enum requirement r,
					   const bool *wanted)
{
	struct requirement_result n = {.asked = true};

	for (size_t i = 0; i < t->endpoint_n; i++)
		for (size_t j = 0; j < t->endpoint_n; j++) {
			enum pair_verdict v = topology_path(t, i, j)->verdict;

			if (!is_required(t, r, wanted, i, j))
				continue;
			n.pairs++;
			n.direct += v == PAIR_DIRECT;
			n.undecided += v == PAIR_UNDECIDED;
		}
	n.code = code_of(&n);
	return n;
}

static bool is_asked(const struct string_list *words, enum requirement r)
{
	for (size_t i = 0; i < words->n; i++)
		if (strcmp(words->items[i], requirement_words[r]) == 0)
			return true;
	return false;
}

/* What is known not to hold decides before what is unknown. */
static enum exit_code worse(enum exit_code a, enum exit_code b)
{
	if (a == EXIT_FINDING || b == EXIT_FINDING)
		return EXIT_FINDING;
	return a == EXIT_OK ? b : a;
}

int judge_requirements(const struct topology *t, const struct string_list *words, const char *list,
		       struct requirements *ret)
{
	AUTO_FREE bool *wanted = xcalloc(t->gpu_n + 1, sizeof(*wanted));
	struct requirements all = {.code = EXIT_OK};

	if (name_gpus(t->machine, "--gpus", list, wanted) < 0)
		return -EINVAL;
	for (enum requirement r = 0; r < REQUIREMENT_N; r++) {
		if (!is_asked(words, r))
			continue;
		all.each[r] = judge_one(t, r, wanted);
		all.code = worse(all.code, all.each[r].code);
	}
	*ret = all;
	return 0;
}

static void report_one(struct document *out, enum requirement r, const struct requirement_result *n)
{
	const char *what =
		r == REQUIRE_DIRECT ? "ordered pairs of GPUs" : "pairs of a GPU and a NIC";
	size_t not = n->pairs - n->direct - n->undecided;
	char all[TEXT_ALL_SIZE];

	if (!n->pairs)
		document_item(out, STYLE_WARN, 0, "Required:", "there are no %s", what);
	else if (n->code == EXIT_OK)
		document_item(out, STYLE_GOOD, 0, "Required:", "%s %s are direct",
			      text_all(n->pairs, all), what);
	else
		document_item(out, n->code == EXIT_FINDING ? STYLE_BAD : STYLE_WARN, 0, "Required:",
			      "of %zu %s %zu are direct, %zu are not, %zu are undecided", n->pairs,
			      what, n->direct, not, n->undecided);
}

void report_requirements(struct document *out, const struct requirements *all)
{
	for (enum requirement r = 0; r < REQUIREMENT_N; r++)
		if (all->each[r].asked)
			report_one(out, r, &all->each[r]);
}

json_t *requirements_json(const struct requirements *all)
{
	json_t *list = json_array();

	for (enum requirement r = 0; r < REQUIREMENT_N; r++) {
		const struct requirement_result *n = &all->each[r];

		if (!n->asked)
			continue;
		json_array_append_new(list, json_pack("{s:s, s:o, s:I, s:I, s:I}", "requirement",
						      requirement_words[r], "holds",
						      n->code == EXIT_NOT_JUDGED
							      ? json_null()
							      : json_boolean(n->code == EXIT_OK),
						      "pairs", (json_int_t)n->pairs, "direct",
						      (json_int_t)n->direct, "undecided",
						      (json_int_t)n->undecided));
	}
	return list;
}
