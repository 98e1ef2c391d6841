/* SPDX-License-Identifier: Apache-2.0 */
/* `nvidia-smi topo -m` and `topo -p2p`: matrices of devices by number. */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/text.h"
#include "machine/machine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 256, MOST_WORDS = MOST_COLUMNS + 16 };

/* "GPU12": 12; -1: it is something else. */
static int gpu_number(const char *word)
{
	char *end;
	long n;

	if (!text_starts_with(word, "GPU") || !isdigit((unsigned char)word[3]))
		return -1;
	n = strtol(word + 3, &end, 10);
	return *end || n >= MOST_COLUMNS ? -1 : (int)n;
}

/* A device of a column or row: a GPU, "NIC0", or a NIC by name, "mlx5_0". */
static bool is_device(const char *word)
{
	return gpu_number(word) >= 0 || text_starts_with(word, "NIC") ||
	       (strchr(word, '_') && isdigit((unsigned char)word[strlen(word) - 1]));
}

/*
 * The words of topo -m's cells, the nearest first, as NVML's levels; -1: "NV4" is a number of
 * links.
 */
static const struct {
	const char *word;
	int level;
} levels[] = {
	{"PIX", NVML_LEVEL_SINGLE},   {"PXB", NVML_LEVEL_MULTIPLE}, {"PHB", NVML_LEVEL_HOSTBRIDGE},
	{"NODE", NVML_LEVEL_NODE},    {"SYS", NVML_LEVEL_SYSTEM},   {"SOC", NVML_LEVEL_SYSTEM},
	{"PSB", NVML_LEVEL_INTERNAL},
};

static int level_of(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		if (strcmp(levels[i].word, word) == 0)
			return levels[i].level;
	return -1;
}

const char *smi_level_word(int64_t level)
{
	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		if (levels[i].level == level)
			return levels[i].word;
	return "?";
}

/* "NV12": 12; 0: another word. */
static unsigned links_of(const char *word)
{
	unsigned n;
	int end = 0;

	return sscanf(word, "NV%3u%n", &n, &end) == 1 && !word[end] && n <= GPU_NVLINKS ? n : 0;
}

static bool is_topo_cell(const char *word)
{
	return strcmp(word, "X") == 0 || level_of(word) >= 0 || links_of(word);
}

static int status_of(const char *word)
{
	for (int i = 0; i < P2P_STATUS_N; i++)
		if (strcmp(p2p_status_code(i), word) == 0)
			return i;
	return -1;
}

static bool is_p2p_cell(const char *word)
{
	return strcmp(word, "X") == 0 || status_of(word) >= 0;
}

/*
 * The option behind -p2p, by which nvidia-smi chooses the capability; the matrix does not name it.
 */
static const struct {
	const char *letter;
	const char *key; /* as in nvml.json */
} capabilities[] = {
	{"r", "read"}, {"w", "write"}, {"n", "nvlink"}, {"a", "atomics"}, {"p", "pci"},
};

static const char *capability_of(const char *command)
{
	const char *s = strstr(command, "-p2p");

	if (!s)
		return NULL;
	s += strlen("-p2p");
	s += strspn(s, " =");
	for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
		if (*s == *capabilities[i].letter && !isalnum((unsigned char)s[1]))
			return capabilities[i].key;
	return NULL;
}

/* ---- the matrix ---- */

struct matrix {
	const char *columns[MOST_COLUMNS];
	size_t column_n;
	size_t gpu_n; /* columns that are GPUs */
};

/* The columns, in their order; further words are the headings of affinities. */
static bool read_header(struct arena *a, const struct text_line *l, struct matrix *m)
{
	const char *words[MOST_WORDS];
	size_t n;

	if (!text_starts_with(line_text(l), "GPU") && !text_starts_with(line_text(l), "NIC"))
		return false;
	n = line_words(a, l, words, MOST_WORDS);
	*m = (struct matrix){0};
	for (size_t i = 0; i < n && m->column_n < MOST_COLUMNS && is_device(words[i]); i++) {
		m->columns[m->column_n++] = words[i];
		m->gpu_n += gpu_number(words[i]) >= 0;
	}
	/* "GPU0  X  NV18": a row of a matrix whose header somebody cut off. */
	if (m->column_n < n &&
	    (is_topo_cell(words[m->column_n]) || is_p2p_cell(words[m->column_n])))
		return false;
	return m->gpu_n > 0;
}

/* The matrix of a part, whose words are in the arena; NULL: the part has no header. */
static struct arena *open_matrix(const struct part *p, struct matrix *ret)
{
	struct arena *a = arena_new();

	if (read_header(a, &p->lines[0], ret))
		return a;
	arena_free(a);
	return NULL;
}

/* The cells of a row of device `ret_row`; 0: the line is not a row. */
static size_t read_row(struct arena *a, const struct text_line *l, bool (*is_cell)(const char *),
		       const char **ret_row, const char **cells, size_t max)
{
	const char *words[MOST_WORDS];
	size_t n = line_words(a, l, words, MOST_WORDS), k = 0;

	if (n < 2 || !is_device(words[0]))
		return 0;
	*ret_row = words[0];
	while (k < max && k + 1 < n && is_cell(words[k + 1])) {
		cells[k] = words[k + 1];
		k++;
	}
	return k;
}

/* What follows the n cells of a row is a cell of the other matrix. */
static bool has_other(struct arena *a, const struct text_line *l, size_t n,
		      bool (*is_other)(const char *))
{
	const char *words[MOST_WORDS];

	return line_words(a, l, words, MOST_WORDS) > n + 1 && is_other(words[n + 1]);
}

/* The header, its rows, and a legend; a row that ends early, or GPUs without a row: cut. */
static size_t match_matrix(struct part *p, const struct text_line *lines, size_t n,
			   bool (*is_cell)(const char *), bool (*is_other)(const char *))
{
	struct arena *a;
	const char *cells[MOST_COLUMNS], *row;
	struct matrix m;
	size_t end = 1, rows = 0, k;

	if (!text_starts_with(line_text(&lines[0]), "GPU") &&
	    !text_starts_with(line_text(&lines[0]), "NIC"))
		return 0;
	a = arena_new();
	if (!read_header(a, &lines[0], &m)) {
		arena_free(a);
		return 0;
	}
	while (end < n && line_is_blank(&lines[end]))
		end++;
	while (end < n && (k = read_row(a, &lines[end], is_cell, &row, cells, m.column_n))) {
		/* The first rows show which matrix it is; a later row of another kind ends it. */
		if (has_other(a, &lines[end], k, is_other)) {
			rows = rows > 2 ? rows : 0;
			break;
		}
		rows += gpu_number(row) >= 0;
		p->cut |= k < m.column_n && gpu_number(row) >= 0;
		end++;
	}
	p->cut |= rows < m.gpu_n;
	p->cut_at = p->cut ? lines[end - 1].number : 0;
	snprintf(p->about, sizeof(p->about), "%zu %s", m.gpu_n,
		 text_plural(m.gpu_n, "GPU", "GPUs"));
	arena_free(a);
	return rows ? end : 0;
}

/* "Legend:", "  X    = Self", "NIC Legend:", "  NIC0: mlx5_0", and empty lines between them. */
static size_t legend_end(const struct text_line *lines, size_t from, size_t n)
{
	size_t end = from, last = from;

	for (; end < n; end++) {
		const char *s = line_text(&lines[end]);

		if (!*s)
			continue;
		if (!text_starts_with(s, "Legend") && !text_starts_with(s, "NIC Legend") &&
		    !strstr(s, " = ") && !(text_starts_with(s, "NIC") && strchr(s, ':')))
			break;
		last = end + 1;
	}
	return last;
}

size_t smi_topo_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = match_matrix(p, lines, n, is_topo_cell, is_p2p_cell);

	return end ? legend_end(lines, end, n) : 0;
}

size_t smi_p2p_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = match_matrix(p, lines, n, is_p2p_cell, is_topo_cell), used;

	used = strlen(p->about);
	if (!capability_of(p->command))
		snprintf(p->about + used, sizeof(p->about) - used,
			 ", no command above it names the capability");
	return end ? legend_end(lines, end, n) : 0;
}

/* ---- NICs ---- */

/* A label or name that can be part of a path. */
static bool is_path_word(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");

	return n && n < 64 && !s[n];
}

static bool is_nic(const char *word)
{
	return gpu_number(word) < 0 && is_device(word) && is_path_word(word);
}

/* "  NIC0: mlx5_0" of the legend. */
static void claim_nic_name(struct claims *c, struct claim_at at, const struct text_line *l)
{
	const char *s = line_text(l), *colon = strchr(s, ':'), *name;

	if (!text_starts_with(s, "NIC") || !colon ||
	    strspn(s + 3, "0123456789") + 3 != (size_t)(colon - s))
		return;
	name = colon + 1 + strspn(colon + 1, " ");
	if (is_path_word(name) && colon - s < 16)
		claim(c, at, name, "nic/%.*s/name", (int)(colon - s), s);
}

/* The cells of a row of a GPU below the names of NICs; the row of a NIC repeats them. */
static void claim_nic_levels(struct claims *c, struct claim_at at, const struct matrix *m, int row,
			     const char *const *cells, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (is_nic(m->columns[k]) && level_of(cells[k]) >= 0)
			claim_number(c, at, level_of(cells[k]), "nic/%s/level/%d", m->columns[k],
				     row);
}

static void claim_nics(const struct part *p, struct claims *c)
{
	const char *cells[MOST_COLUMNS], *name;
	struct matrix m;
	struct arena *a = open_matrix(p, &m);

	if (!a)
		return;
	for (size_t i = 0; i < m.column_n; i++)
		if (is_nic(m.columns[i]))
			claim(c, CLAIM_AT(p, &p->lines[0]), "", "nic/%s/listed", m.columns[i]);
	for (size_t i = 1; i < p->n; i++) {
		size_t n = read_row(a, &p->lines[i], is_topo_cell, &name, cells, m.column_n);

		if (n && gpu_number(name) >= 0)
			claim_nic_levels(c, CLAIM_AT(p, &p->lines[i]), &m, gpu_number(name), cells,
					 n);
		else if (!n)
			claim_nic_name(c, CLAIM_AT(p, &p->lines[i]), &p->lines[i]);
	}
	arena_free(a);
}

/* ---- what it states ---- */

/* One cell of two GPUs. */
typedef void (*cell_claim)(struct claims *c, struct claim_at at, int row, int column,
			   const char *cell, const void *context);

/* Of a matrix that is cut off: the cells that its rows, with n[] cells each, do not have. */
static void claim_lost_cells(const struct part *p, struct claims *c, const struct matrix *m,
			     const size_t *n, const char *const *keys)
{
	const struct claim_at at = {.file = p->file, .line = p->cut_at};

	for (size_t r = 0; p->cut_at && r < m->column_n; r++) {
		const int row = gpu_number(m->columns[r]);

		for (size_t k = row < 0 ? m->column_n : n[row]; k < m->column_n; k++)
			for (const char *const *key = keys; *key; key++)
				if (gpu_number(m->columns[k]) >= 0)
					claim_cut(c, at, "pair/%s/%d/%d", *key, row,
						  gpu_number(m->columns[k]));
	}
}

static void decode_matrix(const struct part *p, struct claims *c, bool (*is_cell)(const char *),
			  cell_claim put, const void *context, const char *const *keys)
{
	const char *cells[MOST_COLUMNS], *name;
	size_t cell_n[MOST_COLUMNS] = {0};
	struct matrix m;
	struct arena *a = open_matrix(p, &m);

	if (!a)
		return;
	for (size_t i = 0; i < m.column_n; i++)
		if (gpu_number(m.columns[i]) >= 0)
			claim_gpu(c, CLAIM_AT(p, &p->lines[0]), (unsigned)gpu_number(m.columns[i]));
	for (size_t i = 1; i < p->n; i++) {
		size_t n = read_row(a, &p->lines[i], is_cell, &name, cells, m.column_n);
		int row = n ? gpu_number(name) : -1;

		if (row >= 0)
			cell_n[row] = n;
		for (size_t k = 0; row >= 0 && k < n; k++) {
			int column = gpu_number(m.columns[k]);

			if (column >= 0 && column != row)
				put(c, CLAIM_AT(p, &p->lines[i]), row, column, cells[k], context);
		}
	}
	claim_lost_cells(p, c, &m, cell_n, keys);
	arena_free(a);
}

/* NVLinks hide the PCIe path between the two. */
static void claim_level(struct claims *c, struct claim_at at, int row, int column, const char *cell,
			const void *context)
{
	(void)context;
	if (strcmp(cell, "X") == 0)
		return;
	claim_number(c, at, links_of(cell), "pair/nvlinks/%d/%d", row, column);
	if (level_of(cell) >= 0)
		claim_number(c, at, level_of(cell), "pair/level/%d/%d", row, column);
}

/* The CPUs of each GPU, "24-31,88-95", and its node; some say N/A, or leave both out. */
static void claim_affinity(const struct part *p, struct claims *c)
{
	struct matrix m;
	struct arena *a = strstr(p->lines[0].text, "NUMA Affinity") ? open_matrix(p, &m) : NULL;

	if (!a)
		return;
	for (size_t i = 1; i < p->n; i++) {
		const char *words[MOST_WORDS];
		size_t n = line_words(a, &p->lines[i], words, MOST_WORDS);
		int row = n ? gpu_number(words[0]) : -1;
		int64_t node;

		if (row >= 0 && n >= m.column_n + 3 &&
		    text_to_i64(words[m.column_n + 2], &node) == 0)
			claim_number(c, CLAIM_AT(p, &p->lines[i]), node, "gpu/#%d/numa_node", row);
	}
	arena_free(a);
}

/*
 * It lists all GPUs that nvidia-smi has, so that another size is another machine's, or a
 * container's.
 */
static void claim_size(const struct part *p, struct claims *c)
{
	struct matrix m;
	struct arena *a = p->cut ? NULL : open_matrix(p, &m);

	if (!a)
		return;
	claim_number(c, CLAIM_AT(p, &p->lines[0]), (int64_t)m.gpu_n, "identity/matrix");
	arena_free(a);
}

void smi_topo_decode(const struct part *p, struct claims *c)
{
	static const char *const keys[] = {"nvlinks", "level", NULL};

	decode_matrix(p, c, is_topo_cell, claim_level, NULL, keys);
	claim_size(p, c);
	claim_affinity(p, c);
	claim_nics(p, c);
}

static void claim_status(struct claims *c, struct claim_at at, int row, int column,
			 const char *cell, const void *context)
{
	if (context && strcmp(cell, "X") != 0)
		claim_number(c, at, status_of(cell), "pair/p2p-%s/%d/%d", (const char *)context,
			     row, column);
}

void smi_p2p_decode(const struct part *p, struct claims *c)
{
	const char *capability = capability_of(p->command);
	char key[32];
	const char *const keys[] = {capability ? key : NULL, NULL};

	/* Without the capability the matrix still lists the GPUs. */
	snprintf(key, sizeof(key), "p2p-%s", capability ? capability : "");
	decode_matrix(p, c, is_p2p_cell, claim_status, capability, keys);
}
