/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/words.h"

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "diagnose/diagnose.h"
#include "diagnose/variables.h"
#include "machine/machine.h"
#include "machine/read.h"
#include "session/change_session.h"
#include "session/machine_choice.h"
#include "session/p2p_session.h"
#include "session/rdma_session.h"

#include <stdlib.h>
#include <string.h>

static void add_line(struct strbuf *out, const char *word, const char *description)
{
	if (description)
		strbuf_printf(out, "%s\t%s\n", word, description);
	else
		strbuf_printf(out, "%s\n", word);
}

static void print_rules(struct strbuf *out)
{
	FOR_EACH_RULE (r)
		add_line(out, r->id, r->title);
}

static void print_variables(struct strbuf *out)
{
	for (size_t i = 0; i < variable_n; i++)
		add_line(out, variable_table[i].name,
			 variable_table[i].use ? variable_table[i].use->does : NULL);
}

static void print_faults(struct strbuf *out)
{
	for (enum fault_kind f = FAULT_NONE + 1; f < FAULT_N; f++)
		add_line(out, fault_word(f), NULL);
}

/* ---- what is measured ---- */

static void print_names(struct strbuf *out, const char **(*list)(size_t *ret_n))
{
	size_t n;
	AUTO_FREE const char **names = list(&n);

	for (size_t i = 0; i < n; i++) {
		const struct metric *m = metric_find(names[i]);

		add_line(out, names[i], m ? m->heading : NULL);
	}
}

static void print_p2p_metrics(struct strbuf *out)
{
	print_names(out, p2p_only_words);
}

static void print_rdma_metrics(struct strbuf *out)
{
	print_names(out, rdma_only_words);
}

static void print_memory(struct strbuf *out)
{
	print_names(out, rdma_memory_words);
}

/* ---- of this machine ---- */

/* NULL after an error, which a completion does not show. */
static struct machine *read_host(unsigned parts)
{
	const struct machine_choice live = {0};
	struct machine *m = NULL;

	return machine_choice_read(&live, parts, &m) < 0 ? NULL : m;
}

static void print_gpus(struct strbuf *out)
{
	struct machine *m = read_host(MACHINE_PCI | MACHINE_GPUS);

	for (size_t i = 0; m && i < m->gpu_n; i++)
		strbuf_printf(out, "%zu\t%s %s\n", i, m->gpus[i].pci->name,
			      fact_str_or(m->gpus[i].model, "GPU"));
	machine_free(m);
}

static void print_nics(struct strbuf *out)
{
	struct machine *m = read_host(MACHINE_PCI | MACHINE_RDMA);

	for (size_t i = 0; m && i < m->rdma_n; i++)
		add_line(out, m->rdma[i].name, m->rdma[i].pci ? m->rdma[i].pci->name : NULL);
	machine_free(m);
}

static void print_fixes(struct strbuf *out)
{
	static const struct fix_ear none = {0}; /* nothing is changed, so nothing is heard */
	struct change_session s;

	if (change_session_open(NULL, &none, &s) < 0)
		return;
	if (change_session_read_journal(&s) == 0)
		for (size_t i = 0; i < s.journal_n; i++)
			strbuf_printf(out, "%u\n", s.journal[i].number);
	change_session_close(&s);
}

const struct word_list word_lists[WORDS_N] = {
	[WORDS_RULES] = {"rules", false, print_rules},
	[WORDS_GPUS] = {"gpus", true, print_gpus},
	[WORDS_NICS] = {"nics", true, print_nics},
	[WORDS_P2P_METRICS] = {"p2p-metrics", true, print_p2p_metrics},
	[WORDS_RDMA_METRICS] = {"rdma-metrics", true, print_rdma_metrics},
	[WORDS_MEMORY] = {"memory", true, print_memory},
	[WORDS_FAULTS] = {"faults", false, print_faults},
	[WORDS_VARIABLES] = {"variables", false, print_variables},
	[WORDS_FIXES] = {"fixes", false, print_fixes},
};

const struct word_list *word_list_find(const char *name)
{
	for (enum words w = 0; w < WORDS_N; w++)
		if (word_lists[w].name && strcmp(word_lists[w].name, name) == 0)
			return &word_lists[w];
	return NULL;
}
