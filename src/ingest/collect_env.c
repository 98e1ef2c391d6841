/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of PyTorch's torch/utils/collect_env.py, which vLLM's has too, and of SGLang's
 * check_env.py, that other tools do not print. The matrix and the list of GPUs that they contain
 * are nvidia-smi's.
 */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/text.h"
#include "machine/machine.h"
#include "machine/nccl.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* "550.90.12" */
static bool is_driver_version(const char *s)
{
	unsigned major, minor;

	return sscanf(s, "%3u.%3u", &major, &minor) == 2 && major >= 100;
}

static const char *driver_version(const struct text_line *l)
{
	const char *v = line_value(l, "Nvidia driver version");

	v = v ? v : line_value(l, "CUDA Driver Version");
	return v && is_driver_version(v) ? v : NULL;
}

/*
 * "Linux-6.8.0-47-generic-x86_64-with-glibc2.35" of Python's platform.platform(): the length of the
 * release; 0: none.
 */
static size_t release_length(const char *s)
{
	static const char *const machines[] = {"-x86_64-", "-aarch64-", "-ppc64le-"};

	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		const char *end = strstr(s, machines[i]);

		if (end)
			return (size_t)(end - s);
	}
	return 0;
}

static const char *kernel_release(const struct text_line *l)
{
	const char *v = line_value(l, "Python platform");

	if (!v || !text_starts_with(v, "Linux-"))
		return NULL;
	v += strlen("Linux-");
	return isdigit((unsigned char)*v) && release_length(v) ? v : NULL;
}

/*
 * "[pip3] nvidia-nccl-cu12==2.21.5", "[conda] nvidia-nccl-cu12 2.21.5 pypi_0 pypi": -1: another
 * line
 */
static int64_t nccl_version_in(const struct text_line *l)
{
	const char *s = strstr(line_text(l), "nvidia-nccl-cu");

	if (!s || *line_text(l) != '[')
		return -1;
	s += strcspn(s, " =");
	return nccl_version_of(s + strspn(s, " ="));
}

/* "GPU 0,1,2: NVIDIA H100 80GB HBM3" of SGLang: the model; NULL: another line */
static const char *model_of_several(const struct text_line *l)
{
	const char *s = line_text(l);
	size_t n;

	if (!text_starts_with(s, "GPU "))
		return NULL;
	s += strlen("GPU ");
	n = strspn(s, "0123456789,");
	return n && memchr(s, ',', n) && text_starts_with(s + n, ": ") ? s + n + 2 : NULL;
}

static bool belongs(const struct text_line *l)
{
	return driver_version(l) || kernel_release(l) || nccl_version_in(l) > 0 ||
	       model_of_several(l);
}

/*
 * The driver's version comes some lines behind the platform, with the GPUs between: the number of
 * the line behind which the page has a mark or ends before it; 0: it goes on.
 */
static unsigned find_break(const struct text_line *lines, size_t from, size_t n)
{
	enum { LINES_BETWEEN = 32 };

	if (!kernel_release(&lines[from - 1]))
		return 0;
	for (size_t i = from; i < n && i < from + LINES_BETWEEN; i++) {
		if (driver_version(&lines[i]))
			return 0;
		if (line_is_omission(&lines[i]) || lines[i].open)
			return lines[i].number - line_is_omission(&lines[i]);
	}
	return 0;
}

size_t collect_env_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 0;

	while (end < n && belongs(&lines[end]))
		end++;
	if (end)
		p->cut_at = find_break(lines, end, n);
	return end;
}

static void claim_gpus(struct claims *c, struct claim_at at, const char *numbers, const char *model)
{
	for (const char *s = numbers; *s && *s != ':'; s += *s == ',') {
		unsigned index;

		if (sscanf(s, "%3u", &index) != 1 || index > 255)
			return;
		claim_gpu(c, at, index);
		claim(c, at, model, "gpu/#%u/model", index);
		s += strspn(s, "0123456789");
	}
}

void collect_env_decode(const struct part *p, struct claims *c)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct text_line *l = &p->lines[i];
		const char *driver = driver_version(l), *release = kernel_release(l);
		const char *model = model_of_several(l);
		char text[128];

		if (driver) {
			text_copy(text, sizeof(text), driver, strspn(driver, "0123456789."));
			claim(c, CLAIM_AT(p, l), text, "gpu/driver");
		}
		if (release) {
			snprintf(text, sizeof(text), "Linux version %.*s",
				 (int)release_length(release), release);
			claim(c, CLAIM_AT(p, l), text, "proc/version");
		}
		if (model)
			claim_gpus(c, CLAIM_AT(p, l), line_text(l) + strlen("GPU "), model);
	}
}

/* What PyTorch loads; a log of NCCL shows what was loaded. */
void collect_env_observe(const struct part *p, struct machine *m)
{
	for (size_t i = 0; i < p->n; i++) {
		int64_t version = nccl_version_in(&p->lines[i]);

		if (version > 0 && !fact_known(m->nccl.version))
			m->nccl.version = fact_int(version, arena_printf(m->arena, "%s:%u", p->file,
									 p->lines[i].number));
	}
}
