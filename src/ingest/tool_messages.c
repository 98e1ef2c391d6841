/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of tools that show how something went: rmmod and modprobe (kmod), the fabric manager in
 * its log, the journal and systemctl, nvidia-smi, vLLM and SGLang (custom_all_reduce.py), simpleP2P
 * of the CUDA samples.
 */
#include "ingest/part_kinds.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/text.h"
#include "machine/observed.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* A line with all of these texts has this meaning; the first row that fits counts. */
struct mark {
	const char *texts[3];
	enum tool_message message;
};

static bool has_all(const char *s, const struct mark *m)
{
	for (size_t i = 0; i < ARRAY_LEN(m->texts) && m->texts[i]; i++)
		if (!strstr(s, m->texts[i]))
			return false;
	return true;
}

static const struct mark *mark_of(const char *s, const struct mark *marks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (has_all(s, &marks[i]))
			return &marks[i];
	return NULL;
}

struct observed *message_add(struct machine *m, const struct part *p, const struct text_line *l,
			     enum tool_message message, int gpu)
{
	struct observed *o = observed_add(m, OBSERVED_MESSAGE, gpu, -1,
					  arena_printf(m->arena, "%s:%u", p->file, l->number));

	o->message = message;
	o->text = arena_strdup(m->arena, line_text(l));
	return o;
}

static void add_marked(struct machine *m, const struct part *p, const struct mark *marks, size_t n)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct mark *mark = mark_of(p->lines[i].text, marks, n);

		if (mark)
			message_add(m, p, &p->lines[i], mark->message, -1);
	}
}

int message_gpu(const struct machine *m, unsigned number)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		if (fact_is(m->gpus[i].nvml_index, number))
			return (int)i;
	return -1;
}

size_t message_all_gpus(const struct machine *m)
{
	return m->gpu_n > 1 ? m->gpu_n : 2;
}

/* ---- rmmod, modprobe, insmod (kmod tools/) ---- */

static const struct mark kmod_marks[] = {
	{{"Module nvidia", " is in use"}, MESSAGE_MODULE_BUSY},
	{{"could not insert", "Key was rejected by service"}, MESSAGE_MODULE_UNSIGNED},
	{{"could not insert", "Required key not available"}, MESSAGE_MODULE_UNSIGNED},
	{{"could not insert", "Unknown symbol in module"}, MESSAGE_MODULE_MISFIT},
	{{"could not insert", "Exec format error"}, MESSAGE_MODULE_MISFIT},
	{{"could not insert", "Invalid module format"}, MESSAGE_MODULE_MISFIT},
};

static bool is_kmod(const struct text_line *l)
{
	static const char *const starts[] = {
		"rmmod: ERROR: ",    "modprobe: ERROR: ",        "insmod: ERROR: ",
		"modprobe: FATAL: ", "insmod: could not insert",
	};

	return text_starts_with_any(line_text(l), starts, ARRAY_LEN(starts));
}

size_t kmod_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 0;

	(void)p;
	while (end < n && is_kmod(&lines[end]))
		end++;
	return end;
}

void kmod_observe(const struct part *p, struct machine *m)
{
	add_marked(m, p, kmod_marks, ARRAY_LEN(kmod_marks));
}

/* ---- nvidia-smi that does not work (its strings and NVML's, 470 to 580) ---- */

static const struct mark smi_marks[] = {
	{{"Failed to initialize NVML: ", "version mismatch"}, MESSAGE_NVML_MISMATCH},
	{{"Failed to initialize NVML: ", "Driver Not Loaded"}, MESSAGE_NVML_NO_DRIVER},
	{{"Failed to initialize NVML: ", "Unknown Error"}, MESSAGE_NVML_NO_ACCESS},
	{{"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"},
	 MESSAGE_NVML_NO_DRIVER},
	{{"Unable to determine the device handle for ", "GPU"}, MESSAGE_GPU_NOT_OPENED},
	{{"No devices were found"}, MESSAGE_NO_GPU_LISTED},
};

/* Other programs find no devices either: the last one needs the command above it. */
size_t smi_failed_match(struct part *p, const struct text_line *lines, size_t n)
{
	const struct mark *m = mark_of(line_text(&lines[0]), smi_marks, ARRAY_LEN(smi_marks));
	size_t end = 1;

	if (!m || !text_starts_with(line_text(&lines[0]), m->texts[0]) ||
	    (m->message == MESSAGE_NO_GPU_LISTED && !strstr(p->command, "nvidia-smi")))
		return 0;
	while (end < n && text_starts_with(line_text(&lines[end]), "NVML library version: "))
		end++;
	return end;
}

void smi_failed_observe(const struct part *p, struct machine *m)
{
	add_marked(m, p, smi_marks, ARRAY_LEN(smi_marks));
}

/* ---- fabric manager ---- */

static const struct mark fabric_marks[] = {
	{{"NV_WARN_NOTHING_TO_DO"}, MESSAGE_NO_NVSWITCH},
	{{"fabric manager", "don't match with driver version"}, MESSAGE_FABRIC_VERSION},
	{{"Unit nvidia-fabricmanager", "could not be found"}, MESSAGE_FABRIC_MISSING},
	{{"Failed to start", "abric manager"}, MESSAGE_FABRIC_FAILED},
	{{"Failed to start", "nvidia-fabricmanager"}, MESSAGE_FABRIC_FAILED},
	{{"Active: failed"}, MESSAGE_FABRIC_FAILED},
	{{"Job for nvidia-fabricmanager", " failed because"}, MESSAGE_FABRIC_FAILED},
	{{"failed to find the GPU handle", "multicast team"}, MESSAGE_FABRIC_STALE},
	{{"detected NVSwitch fatal error"}, MESSAGE_SWITCH_FATAL},
	{{"detected NVSwitch non-fatal error"}, MESSAGE_SWITCH_ERROR},
};

/* "[Feb 27 2025 15:10:02] [ERROR] [tid 12727] ..." of its own log, and lines that go on. */
static bool is_of_fabric_log(const struct text_line *l)
{
	const char *s = line_text(l);

	return (*s == '[' && strstr(s, "] [tid ")) ||
	       text_starts_with(s, "Message payload details");
}

static bool is_fabric(const struct text_line *l)
{
	static const char *const names[] = {"nv-fabricmanager", "nvidia-fabricmanager",
					    "NVIDIA fabric manager", "NVIDIA Fabric Manager",
					    "fabric manager NVIDIA GPU driver interface"};

	if (is_of_fabric_log(l))
		return true;
	if (!strstr(l->text, "abric")) /* as nearly every line */
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strstr(l->text, names[i]))
			return true;
	return false;
}

/* "     Active: failed (Result: exit-code)" of systemctl status */
static bool is_unit_line(const struct text_line *l)
{
	static const char *const keys[] = {"Loaded", "Active", "Process", "Main PID", "Tasks",
					   "Memory", "CPU",    "CGroup",  "Docs",     "Duration"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (line_value(l, keys[i]))
			return true;
	return false;
}

/* A command about it does not count. */
size_t fabric_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 1;

	(void)p;
	if (!is_fabric(&lines[0]) || strpbrk(lines[0].text, "$#`"))
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (line_is_blank(&lines[i]))
			continue;
		if (!is_fabric(&lines[i]) && !is_unit_line(&lines[i]))
			break;
		end = i + 1;
	}
	return end == 1 && !mark_of(lines[0].text, fabric_marks, ARRAY_LEN(fabric_marks)) ? 0 : end;
}

void fabric_observe(const struct part *p, struct machine *m)
{
	add_marked(m, p, fabric_marks, ARRAY_LEN(fabric_marks));
}

/* ---- vLLM and SGLang ---- */

static const struct mark engine_marks[] = {
	{{"Custom allreduce is disabled because", "more than two PCIe-only GPUs"},
	 MESSAGE_ENGINE_PCIE_ONLY},
	{{"Custom allreduce is disabled because", "lacks GPU P2P capability"},
	 MESSAGE_ENGINE_NO_P2P},
};

/* Each of its workers prints the line, with its own prefix. */
size_t engine_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 0;

	(void)p;
	while (end < n && strstr(lines[end].text, "ustom allreduce") &&
	       mark_of(lines[end].text, engine_marks, ARRAY_LEN(engine_marks)))
		end++;
	return end;
}

void engine_observe(const struct part *p, struct machine *m)
{
	add_marked(m, p, engine_marks, ARRAY_LEN(engine_marks));
}

/* ---- simpleP2P ---- */

static bool is_simple_p2p(const struct text_line *l)
{
	static const char *const starts[] = {"Checking ",
					     "CUDA-capable device",
					     "Peer-to-Peer ",
					     "Enabling ",
					     "Allocating ",
					     "Creating ",
					     "cudaMemcpyPeer",
					     "Preparing ",
					     "Run kernel ",
					     "Copy data back ",
					     "Verification error",
					     "Disabling ",
					     "Shutting down",
					     "Test ",
					     "GPU",
					     "Two or more ",
					     "Support for UVA ",
					     "Both GPUs can support"};

	return text_starts_with_any(line_text(l), starts, ARRAY_LEN(starts));
}

/*
 * The answers of CUDA in between are read like those of p2pBandwidthLatencyTest (p2p_test.c), as a
 * part of their own.
 */
size_t simple_p2p_match(struct part *p, const struct text_line *lines, size_t n)
{
	const char *s = line_text(&lines[0]);
	const bool copies = text_starts_with(s, "Enabling peer access between GPU");
	size_t end = 1;

	if (!copies && (*s != '[' || !strstr(s, "simpleP2P") || !strstr(s, "Starting")))
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (line_is_blank(&lines[i]))
			continue;
		if (!is_simple_p2p(&lines[i]))
			break;
		end = i + 1;
		if (text_starts_with(line_text(&lines[i]), "Test "))
			break;
	}
	p->cut = copies && !text_starts_with(line_text(&lines[end - 1]), "Test ");
	return end;
}

/*
 * "Enabling peer access between GPU0 and GPU1...": which pair it chose; false: the text does not
 * show.
 */
static bool chosen_pair(const struct part *p, const struct machine *m, int ret[2])
{
	unsigned a, b;

	for (size_t i = 0; i < p->n; i++) {
		if (sscanf(line_text(&p->lines[i]),
			   "Enabling peer access between GPU%3u and GPU%3u", &a, &b) != 2)
			continue;
		ret[0] = message_gpu(m, a);
		ret[1] = message_gpu(m, b);
		return ret[0] >= 0 && ret[1] >= 0 && ret[0] != ret[1];
	}
	return false;
}

/*
 * It compares what came back, after copies both ways and kernels on both GPUs that read from the
 * other: a failure is wrong data, of either direction. It says the same where CUDA offers no pair,
 * before it copies anything.
 */
void simple_p2p_observe(const struct part *p, struct machine *m)
{
	const struct text_line *last = &p->lines[p->n - 1];
	bool copied = false;
	int pair[2];

	for (size_t i = 0; i < p->n; i++)
		copied |= text_starts_with(line_text(&p->lines[i]), "Copy data back ");
	if (!copied || !text_starts_with(line_text(last), "Test failed"))
		return;
	message_add(m, p, last, MESSAGE_COPY_WRONG, -1);
	observed_add_failed_test(m, pair, chosen_pair(p, m, pair) ? 2 : message_all_gpus(m),
				 "simpleP2P read back wrong data",
				 arena_printf(m->arena, "%s:%u", p->file, last->number));
}
