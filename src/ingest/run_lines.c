/* SPDX-License-Identifier: Apache-2.0 */
/* Where the output of tests and the logs of runs begin and end; their own readers decode them. */
#include "ingest/part_kinds.h"

#include "base/array.h"
#include "base/text.h"
#include "ingest/nccl_log.h"
#include "ingest/nvbandwidth_text.h"
#include "ingest/p2p_test.h"
#include "ingest/vllm_cache.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- p2pBandwidthLatencyTest ---- */

/* "  0   1.10   2.83", "   D\D     0      1", "   GPU     0      1" */
static bool is_matrix_line(const char *s)
{
	return text_starts_with(s, "D\\D") || text_starts_with(s, "GPU ") ||
	       text_starts_with(s, "CPU ") ||
	       (isdigit((unsigned char)*s) && strspn(s, "0123456789. -infa") == strlen(s));
}

static bool is_test_line(const char *s)
{
	static const char *const words[] = {
		"[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]",
		"Device: ",
		"Device=",
		"***NOTE:",
		"So you can see lesser Bandwidth",
		"NOTE: The CUDA Samples",
		"P2P Connectivity Matrix",
	};

	return text_starts_with_any(s, words, ARRAY_LEN(words)) ||
	       p2p_test_recognise(s, strlen(s)) || is_matrix_line(s);
}

size_t p2p_test_match(struct part *p, const struct text_line *lines, size_t n)
{
	const char *s = line_text(&lines[0]);
	size_t end = 1;

	if (text_starts_with(s, "Peer access from "))
		snprintf(p->about, sizeof(p->about), "peer access in simpleP2P");
	if (p2p_test_is_refusal(s))
		snprintf(p->about, sizeof(p->about), "peer access in TensorRT-LLM");
	if (!text_starts_with(s, "[P2P (Peer-to-Peer)") &&
	    !text_starts_with(s, "P2P Connectivity") && !p2p_test_recognise(s, strlen(s)))
		return 0;
	for (size_t i = 1; i < n; i++) {
		s = line_text(&lines[i]);
		if (!*s)
			continue;
		if (!is_test_line(s))
			break;
		end = i + 1;
	}
	return end;
}

/* ---- nvbandwidth ---- */

size_t nvbandwidth_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 1;

	(void)p;
	if (!nvbandwidth_begins(line_text(&lines[0])))
		return 0;
	for (size_t i = 1; i < n; i++) {
		const char *s = line_text(&lines[i]);

		if (!nvbandwidth_goes_on(s))
			/* The name of the host is on a line of its own above the devices. */
			if (strchr(s, ' ') || i + 1 == n ||
			    !text_starts_with(line_text(&lines[i + 1]), "Device "))
				break;
		end = *s ? i + 1 : end;
	}
	return end;
}

/* By how much a line changes the depth of brackets outside of strings. */
static int depth_change(const char *s)
{
	bool quoted = false;
	int depth = 0;

	for (; *s; s++)
		if (*s == '\\' && quoted && s[1])
			s++;
		else if (*s == '"')
			quoted = !quoted;
		else if (!quoted)
			depth += (*s == '{' || *s == '[') - (*s == '}' || *s == ']');
	return depth;
}

/* From the brace that opens the object to the one that closes it. */
size_t nvbandwidth_json_match(struct part *p, const struct text_line *lines, size_t n)
{
	const char *name =
		n > 1 && !line_text(&lines[0])[1] ? line_text(&lines[1]) : line_text(&lines[0]) + 1;
	int depth = 0;

	if (*line_text(&lines[0]) != '{' ||
	    !text_starts_with(name + strspn(name, " "), "\"nvbandwidth\""))
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (line_is_skipped(&lines[i]))
			break;
		depth += depth_change(lines[i].text);
		if (depth <= 0)
			return i + 1;
	}
	p->cut = true;
	return 1;
}

/* ---- vLLM ---- */

/* Lines of the file, or all of it in one line. */
size_t vllm_cache_match(struct part *p, const struct text_line *lines, size_t n)
{
	const char *s = line_text(&lines[0]);
	size_t end = 0;

	if (*s == '{') {
		p->cut = !strchr(s, '}');
		return vllm_cache_begins(s + 1) ? 1 : 0;
	}
	while (end < n && vllm_cache_begins(line_text(&lines[end])))
		end++;
	p->cut = end == n || *line_text(&lines[end]) != '}';
	return end && !p->cut ? end + 1 : end;
}

/* ---- nccl-tests ---- */

/* "#       size         count      type   redop ..." and rows of numbers below it. */
size_t nccl_tests_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 1;

	(void)p;
	if (*line_text(&lines[0]) != '#' ||
	    !(strstr(lines[0].text, "nThread") || strstr(lines[0].text, "Collective test") ||
	      (strstr(lines[0].text, "size") && strstr(lines[0].text, "count"))))
		return 0;
	for (size_t i = 1; i < n; i++) {
		const char *s = line_text(&lines[i]);

		if (!*s)
			continue;
		if (*s != '#' && !isdigit((unsigned char)*s))
			break;
		end = i + 1;
	}
	return end;
}

/* ---- NCCL ---- */

static bool is_nccl_line(const struct text_line *l)
{
	return strstr(l->text, " NCCL INFO ") || strstr(l->text, " NCCL WARN ") ||
	       text_starts_with(line_text(l), "NCCL INFO ") ||
	       text_starts_with(line_text(l), "NCCL WARN ") ||
	       text_starts_with(line_text(l), "NCCL version ");
}

size_t nccl_lines_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 1;

	if (!is_nccl_line(&lines[0]))
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (line_is_blank(&lines[i]))
			continue;
		if (!is_nccl_line(&lines[i]))
			break;
		end = i + 1;
	}
	snprintf(p->about, sizeof(p->about), "%zu %s", end, text_plural(end, "line", "lines"));
	return end;
}

struct text_unit nccl_lines_unit(const struct text_line *lines, size_t n)
{
	(void)n;
	return line_is_blank(lines) ? (struct text_unit){.n = 1} : nccl_log_unit(lines);
}

/* One line of PyTorch, a test or mpirun that shows how a run failed. */
size_t run_error_match(struct part *p, const struct text_line *lines, size_t n)
{
	(void)p;
	if (n > 1 && nccl_line_announces(lines[0].text) && !line_is_blank(&lines[1]))
		return 2;
	return !nccl_line_is_source(lines[0].text) &&
			       nccl_log_recognise(lines[0].text, strlen(lines[0].text))
		       ? 1
		       : 0;
}

struct text_unit run_error_unit(const struct text_line *lines, size_t n)
{
	return (struct text_unit){
		.n = n,
		.subject = n > 1 ? lines_hash(TEXT_HASH_START, lines, n)
				 : nccl_failure_hash(lines[0].text),
		.failure = true,
	};
}
