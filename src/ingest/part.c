/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/part.h"

#include "base/alloc.h"
#include "base/text.h"
#include "ingest/part_kinds.h"

#include <string.h>

/*
 * Ends with a NULL name. The first that matches reads the lines. A kind comes before others that
 * could match its first line too: dmesg lines can contain anything, and a debug log of NCCL may
 * contain the table of its run.
 */
static const struct part_kind part_kinds[] = {
	{"lspci", lspci_match, lspci_decode, PART_STATES, .first = "0123456789abcdefABCDEF"},
	{"lspci -t", lspci_tree_match, lspci_tree_decode, PART_STATES, .first = "-"},
	{"nvidia-smi", smi_table_match, smi_table_decode, PART_STATES, .first = "|+\xe2"},
	{"nvidia-smi -q", smi_query_match, smi_query_decode, PART_STATES},
	{"nvidia-smi topo -m", smi_topo_match, smi_topo_decode, PART_STATES, .first = "GN"},
	{"nvidia-smi topo -p2p", smi_p2p_match, smi_p2p_decode, PART_STATES, .first = "GN"},
	{"nvidia-smi -L or nvlink", smi_list_match, smi_list_decode, PART_STATES, .first = "G"},
	{"kernel log", kernel_lines_match, kernel_lines_decode, PART_STATES,
	 .observe = kernel_lines_observe, .host = kernel_lines_host, .keep = kernel_lines_keep},
	{"/proc/cmdline", cmdline_match, cmdline_decode, PART_STATES},
	{"/proc/driver/nvidia/version", driver_version_match, driver_version_decode, PART_STATES,
	 .first = "N"},
	{"/proc/driver/nvidia/params", driver_params_match, driver_params_decode, PART_STATES,
	 .first = "RE"},
	{"/proc/driver/nvidia/gpus/*/information", gpu_information_match, gpu_information_decode,
	 PART_STATES, .first = "M"},
	{"lsmod", lsmod_match, lsmod_decode, PART_STATES},
	{"lsmod, empty", lsmod_none_match, NULL, PART_STATES, .observe = lsmod_none_observe,
	 .prompt_below = true},
	{"modinfo", modinfo_match, modinfo_decode, PART_STATES, .first = "f"},
	{"uname -a", uname_match, uname_decode, PART_STATES, .host = uname_host, .first = "L"},
	{"environment variables", environment_match, environment_decode, PART_STATES,
	 .first = "NCUVTeds-"},
	{"command with variables", launch_match, launch_decode, PART_STATES,
	 .observe = launch_observe, .keep = launch_keep},
	{"variables of a container", manifest_match, manifest_decode, PART_STATES,
	 .first = "NCUOGT-"},
	{"topology of NCCL", nccl_topology_match, nccl_topology_decode, PART_STATES, .first = "<",
	 .keep = nccl_topology_keep},
	{"rmmod or modprobe", kmod_match, NULL, PART_STATES, .observe = kmod_observe,
	 .first = "rmi"},
	{"dcgmi", dcgm_match, NULL, PART_STATES, .observe = dcgm_observe, .first = "|+"},
	{"simpleP2P", simple_p2p_match, NULL, PART_STATES, .observe = simple_p2p_observe,
	 .first = "["},
	{"p2pBandwidthLatencyTest", p2p_test_match, NULL, PART_FIGURES},
	{"nccl-tests", nccl_tests_match, NULL, PART_FIGURES, .first = "#"},
	{"debug log of NCCL", nccl_lines_match, NULL, PART_LOG},
	{"fabric manager", fabric_match, NULL, PART_STATES, .observe = fabric_observe},
	{"error of a run", run_error_match, NULL, PART_LOG},
	{0},
};

/* ---- for the kinds ---- */

size_t line_indent(const struct text_line *l)
{
	return strspn(l->text, " ");
}

bool line_is_blank(const struct text_line *l)
{
	return !l->text[line_indent(l)];
}

const char *line_text(const struct text_line *l)
{
	return l->text + line_indent(l);
}

bool line_is_skipped(const struct text_line *l)
{
	const char *s = line_text(l);

	return text_starts_with(s, "```") || text_starts_with(s, "~~~") || *s == '<';
}

size_t line_words(struct arena *a, const struct text_line *l, const char **words, size_t max)
{
	char *rest = arena_strdup(a, line_text(l)), *word;
	size_t n = 0;

	while (n < max && (word = strsep(&rest, " ")))
		if (*word)
			words[n++] = word;
	return n;
}

const char *line_value(const struct text_line *l, const char *key)
{
	const char *s = line_text(l);
	size_t n = strlen(key);

	if (strncmp(s, key, n) != 0)
		return NULL;
	s += n;
	s += strspn(s, " ");
	return *s == ':' ? s + 1 + strspn(s + 1, " ") : NULL;
}

/* ---- finding them ---- */

/* "> > text" of a mail or a comment: marks that tools never print at the start of a line. */
static void peel_quote(struct text_line *l)
{
	char *s = l->text;

	for (;;) {
		char *mark = s + strspn(s, " ");

		if (*mark != '>')
			break;
		s = mark + 1;
	}
	if (s != l->text && *s == ' ')
		s++;
	l->text = s;
}

/*
 * The line above a part, apart from fences and empty lines, shows its origin: a command or a
 * heading.
 */
static const struct text_line *command_above(const struct text_line *lines, size_t i, size_t used)
{
	enum { NEAR = 4 };

	for (size_t k = 0; k < NEAR && i > used; k++) {
		const struct text_line *l = &lines[--i];

		if (!line_is_blank(l) && !line_is_skipped(l))
			return l;
	}
	return NULL;
}

static bool match(struct part *p, const struct text_line *lines, size_t n)
{
	const char first = *line_text(lines);

	for (const struct part_kind *k = part_kinds; k->name; k++) {
		if (k->first && !strchr(k->first, first))
			continue;
		p->kind = k;
		p->n = k->match(p, lines, n);
		p->lines = lines;
		if (p->n)
			return true;
		p->cut = false;
		p->about[0] = '\0';
	}
	return false;
}

struct part *parts_find(struct arena *a, const char *file, struct text_line *lines, size_t n,
			size_t *ret_n)
{
	struct part *parts = NULL;
	size_t used = 0;

	*ret_n = 0;
	for (size_t i = 0; i < n; i++)
		peel_quote(&lines[i]);
	for (size_t i = 0; i < n;) {
		const struct text_line *above = command_above(lines, i, used);
		struct part p = {
			.file = file,
			.command = above ? line_text(above) : "",
			.command_line = above,
		};

		if (line_is_blank(&lines[i]) || !match(&p, lines + i, n - i)) {
			i++;
			continue;
		}
		*ARENA_PUSH(a, parts, *ret_n) = p;
		i += p.n;
		used = i;
	}
	return parts;
}
