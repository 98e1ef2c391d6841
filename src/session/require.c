/* SPDX-License-Identifier: Apache-2.0 */
#include "session/require.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "session/device_choice.h"

#include <errno.h>
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

static enum verdict verdict_of(const struct requirement_result *n)
{
	if (n->direct + n->undecided < n->pairs)
		return VERDICT_BAD;
	return n->pairs && n->direct == n->pairs ? VERDICT_OK : VERDICT_UNKNOWN;
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
	n.verdict = verdict_of(&n);
	return n;
}

int judge_requirements(const struct topology *t, const struct texts *words, const char *list,
		       struct requirements *ret)
{
	AUTO_FREE bool *wanted = xcalloc(t->gpu_n + 1, sizeof(*wanted));
	struct requirements all = {.verdict = VERDICT_NA};

	if (name_gpus(t->machine, "--gpus", list, wanted) < 0)
		return -EINVAL;
	for (enum requirement r = 0; r < REQUIREMENT_N; r++) {
		if (!texts_have(words, requirement_words[r]))
			continue;
		all.each[r] = judge_one(t, r, wanted);
		/* What is known not to hold decides before what is unknown. */
		if (all.each[r].verdict > all.verdict)
			all.verdict = all.each[r].verdict;
	}
	*ret = all;
	return 0;
}
