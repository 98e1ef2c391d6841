/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/message_data.h"

#include "kernels/pattern.h"

#include <string.h>

#define WORD sizeof(u64)

/* The bytes of a word of the pattern that a message has. */
static size_t word_at(uint64_t bytes, uint64_t at, u64 tag, u64 *ret)
{
	*ret = pattern_word(tag, at / WORD);
	return bytes - at < WORD ? bytes - at : WORD;
}

void message_fill(uint8_t *at, uint64_t bytes, u64 tag)
{
	for (uint64_t i = 0; i < bytes; i += WORD) {
		u64 word;
		size_t n = word_at(bytes, i, tag, &word);

		memcpy(at + i, &word, n);
	}
}

static bool is_all(const uint8_t *got, uint64_t bytes, u64 tag, uint64_t *ret_at)
{
	for (uint64_t i = 0; i < bytes; i += WORD) {
		u64 word;
		size_t n = word_at(bytes, i, tag, &word);

		if (memcmp(got + i, &word, n) != 0) {
			*ret_at = i;
			return false;
		}
	}
	return true;
}

static bool is_zero(const uint8_t *got, uint64_t bytes)
{
	return !got[0] && memcmp(got, got + 1, bytes - 1) == 0;
}

struct wrong message_check(const uint8_t *got, uint64_t bytes, u64 tag, u64 poison)
{
	struct wrong w = {.words = bytes / WORD};
	uint64_t other;

	if (is_all(got, bytes, tag, &w.from_bytes))
		return w;
	w.kind = is_all(got, bytes, poison, &other) ? WRONG_LOST
		 : is_zero(got, bytes)              ? WRONG_ZEROS
		 : is_all(got, bytes, pattern_tag_round_on(tag, PATTERN_ROUNDS - 1), &other)
			 ? WRONG_OLD
			 : WRONG_GARBAGE;
	return w;
}

int message_judge(struct rdma_cell *cell, uint64_t bytes, struct rdma_failure *f)
{
	cell->checked_bytes += bytes;
	cell->data = cell->wrong.kind == WRONG_NOTHING ? RDMA_DATA_RIGHT : RDMA_DATA_WRONG;
	if (cell->data == RDMA_DATA_RIGHT)
		return 0;
	return rdma_fail(
		f, RDMA_STEP_DATA, (int)cell->wrong.kind,
		"a message of %llu bytes completed, but its data is wrong from byte %llu on",
		(unsigned long long)bytes, (unsigned long long)cell->wrong.from_bytes);
}
