/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kubectl describe node, and get node -o yaml, show of GPUs: the labels of NVIDIA's GPU
 * feature discovery (NVIDIA/k8s-device-plugin internal/lm), and the kernel.
 */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/*
 * "nvidia.com/gpu.count=8", "nvidia.com/gpu.count: "8"": the value in `ret`; false: another label.
 */
static bool read_label(const struct text_line *l, const char *key, char ret[96])
{
	const char *s = strstr(l->text, "nvidia.com/");
	const size_t n = strlen(key);

	if (!s || !text_starts_with(s + strlen("nvidia.com/"), key))
		return false;
	s += strlen("nvidia.com/") + n;
	if (*s != '=' && *s != ':')
		return false;
	s += 1 + strspn(s + 1, " \"'");
	text_copy(ret, 96, s, strcspn(s, " \"'"));
	return *ret;
}

/*
 * "Labels: beta.kubernetes.io/arch=amd64", " nvidia.com/gpu.count=8"
 */
static bool is_label(const struct text_line *l)
{
	const char *s = line_text(l);
	size_t n;

	if (text_starts_with(s, "Labels:"))
		s += strlen("Labels:") + strspn(s + strlen("Labels:"), " ");
	n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./-_");
	return n && memchr(s, '/', n) && (s[n] == '=' || s[n] == ':');
}

static bool is_of_gpus(const struct text_line *l)
{
	char value[96];

	return read_label(l, "gpu.product", value) || read_label(l, "gpu.count", value);
}

/* From the first label to the last, of all that a node has; those about GPUs are among them. */
size_t node_labels_match(struct part *p, const struct text_line *lines, size_t n)
{
	bool found = false;
	size_t end = 0;

	(void)p;
	for (; end < n && is_label(&lines[end]); end++)
		found |= is_of_gpus(&lines[end]);
	return found ? end : 0;
}

/* Other labels name the node, its zone and its owner. */
const char *node_labels_keep(const struct part *p, const struct text_line *l, struct arena *a)
{
	(void)p;
	(void)a;
	return strstr(l->text, "nvidia.com/") ? l->text : "omitted/label=";
}

/*
 * "NVIDIA-H100-80GB-HBM3": labels have no blanks. The names of modules and of older PCIe cards have
 * hyphens: "NVIDIA A100-SXM4-80GB", "Tesla V100-PCIE-32GB". Shared and split GPUs have an ending of
 * their own.
 */
static void spell_model(char *s)
{
	char *end = strstr(s, "-SHARED"), *mig = strstr(s, "-MIG-");

	if (end)
		*end = '\0';
	if (mig && (!end || mig < end))
		*mig = '\0';
	for (char *c = s; *c; c++) {
		const bool before = text_starts_with(c, "-SXM") || text_starts_with(c, "-PCIE");
		const char *word = c;

		while (word > s && word[-1] != '-' && word[-1] != ' ')
			word--;
		if (*c == '-' && !before && !text_starts_with(word, "SXM") &&
		    !text_starts_with(word, "PCIE"))
			*c = ' ';
	}
}

static void claim_gpus(const struct part *p, struct claims *c, const struct text_line *count,
		       const struct text_line *product)
{
	char value[96] = "", model[96] = "";
	unsigned n = 0;

	if (!count || !read_label(count, "gpu.count", value) || sscanf(value, "%3u", &n) != 1)
		return;
	if (product && read_label(product, "gpu.product", model))
		spell_model(model);
	for (unsigned i = 0; i < n && i < 256; i++) {
		claim_gpu(c, CLAIM_AT(p, count), i);
		if (*model)
			claim(c, CLAIM_AT(p, product), model, "gpu/#%u/model", i);
	}
}

void node_labels_decode(const struct part *p, struct claims *c)
{
	const struct text_line *count = NULL, *product = NULL;
	char value[96], major[96] = "", minor[96] = "", rev[96] = "", driver[300];

	for (size_t i = 0; i < p->n; i++) {
		const struct text_line *l = &p->lines[i];

		if (read_label(l, "gpu.count", value))
			count = l;
		else if (read_label(l, "gpu.product", value))
			product = l;
		else if (read_label(l, "cuda.driver-version.full", value))
			claim(c, CLAIM_AT(p, l), value, "gpu/driver");
		else if (read_label(l, "cuda.driver.major", value))
			text_copy(major, sizeof(major), value, strlen(value));
		else if (read_label(l, "cuda.driver.minor", value))
			text_copy(minor, sizeof(minor), value, strlen(value));
		else if (read_label(l, "cuda.driver.rev", value))
			text_copy(rev, sizeof(rev), value, strlen(value));
	}
	if (*major && *minor && *rev) {
		snprintf(driver, sizeof(driver), "%s.%s.%s", major, minor, rev);
		claim(c, CLAIM_AT(p, &p->lines[0]), driver, "gpu/driver");
	}
	claim_gpus(p, c, count, product);
}

/* ---- System Info ---- */

static const char *kernel_of(const struct text_line *l)
{
	const char *v = line_value(l, "Kernel Version");

	v = v ? v : line_value(l, "kernelVersion");
	return v && isdigit((unsigned char)*v) && strchr(v, '.') && !strchr(v, ' ') ? v : NULL;
}

size_t node_kernel_match(struct part *p, const struct text_line *lines, size_t n)
{
	(void)p;
	(void)n;
	return kernel_of(&lines[0]) != NULL;
}

void node_kernel_decode(const struct part *p, struct claims *c)
{
	char text[160];

	snprintf(text, sizeof(text), "Linux version %.120s", kernel_of(&p->lines[0]));
	claim(c, CLAIM_AT(p, &p->lines[0]), text, "proc/version");
}
