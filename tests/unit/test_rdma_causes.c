/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentences of bench rdma: what each errno, completion status and kind of wrong data means,
 * where to look and what to do, compared with tests/support/rdma-causes.txt. ONEHOP_BLESS=1 writes
 * it; the diff is reviewed like code.
 */
#include "base/strbuf.h"
#include "check_text.h"
#include "rdma/failure.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN "tests/support/rdma-causes.txt"

static void add(struct strbuf *out, const struct rdma_cause *c, unsigned about)
{
	static const struct {
		unsigned bit;
		const char *text;
	} known[] = {
		{RDMA_ABOUT_HOST, "memory of the host"},
		{RDMA_ABOUT_SELF, "the port sent to itself"},
		{RDMA_ABOUT_REACHED, "small messages arrived before"},
		{RDMA_ABOUT_LINK, "its port lost the link"},
		{RDMA_ABOUT_ON_DEMAND, "paged on demand"},
	};

	strbuf_printf(out, "%s, %d: %s", rdma_step_text(c->step), c->code, c->word);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (about & known[i].bit)
			strbuf_printf(out, "; %s", known[i].text);
	strbuf_printf(out, "%s\n\t%s\n\tlook: %s\n\tdo: %s\n",
		      c->cuts ? "; nothing more passes" : "", c->cause, c->evidence, c->remedy);
}

static void write_golden(const char *text)
{
	FILE *f = fopen(GOLDEN, "w");

	assert_non_null(f);
	assert_int_equal(fputs(text, f) < 0, 0);
	assert_int_equal(fclose(f), 0);
}

static void sentences_are_known(void **state)
{
	struct strbuf out = {0};
	char *golden;

	(void)state;
	for (size_t i = 0; i < rdma_cause_n; i++)
		add(&out, &rdma_causes[i], 0);
	for (size_t i = 0; i < rdma_special_n; i++)
		add(&out, &rdma_specials[i].cause, rdma_specials[i].about);
	if (getenv("ONEHOP_BLESS"))
		write_golden(strbuf_str(&out));
	golden = file_text(GOLDEN);
	if (strcmp(golden, strbuf_str(&out)) != 0)
		fail_msg("sentences differ from " GOLDEN
			 ": ONEHOP_BLESS=1 %s, and look at the diff",
			 "build/tests/unit/test_rdma_causes");
	free(golden);
	strbuf_done(&out);
}

/* Two codes that one sentence explains cannot be told apart by who reads it. */
static void each_code_has_its_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < rdma_cause_n; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(rdma_causes[i].cause, rdma_causes[k].cause) == 0)
				fail_msg("%s and %s have one sentence", rdma_causes[i].word,
					 rdma_causes[k].word);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sentences_are_known),
		cmocka_unit_test(each_code_has_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
