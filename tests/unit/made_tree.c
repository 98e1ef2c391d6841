/* SPDX-License-Identifier: Apache-2.0 */
#include "made_tree.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "unlock/anchor.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define RESIZE "nv_resize_pcie_bars"

struct made_function *made_function_of(struct made_tree *t, const char *file, const char *name)
{
	struct made_function *f = t->functions;

	for (; f < t->functions + t->n; f++) {
		if (strcmp(f->file, file) == 0 &&
		    (!f->name ? !name : name && strcmp(f->name, name) == 0))
			return f;
	}
	assert_true(t->n < sizeof(t->functions) / sizeof(t->functions[0]));
	t->functions[t->n++] = (struct made_function){.file = file, .name = name};
	return f;
}

void made_render(const struct made_tree *t, const char *file, struct strbuf *out)
{
	strbuf_puts(out, "/* made up: { ( \" */\n#include \"x.h\"\n\n");
	for (const struct made_function *f = t->functions; f < t->functions + t->n; f++) {
		if (strcmp(f->file, file) != 0)
			continue;
		if (f->name && strcmp(f->name, RESIZE) == 0)
			strbuf_puts(out, "static int " RESIZE "(struct pci_dev *pci_dev) {\n");
		else
			strbuf_printf(out, "NV_STATUS\n%s\n(\n    int made_up\n)\n{\n",
				      f->name ? f->name : "made_up_function");
		strbuf_printf(out, "%s}\n\n", strbuf_str(&f->body));
	}
}

static size_t count_now(const struct made_tree *t, const char *file, const char *function,
			const char *pattern)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct pattern *p = pattern_new(pattern);
	struct scope scope;
	struct lexed x;
	size_t n;

	made_render(t, file, &b);
	assert_int_equal(lex(strbuf_str(&b), b.len, &x), 0);
	scope = scope_all(&x);
	if (function)
		assert_int_equal(function_find(&x, function, &scope), 1);
	n = pattern_count(p, &x, scope, NULL);
	lexed_done(&x);
	pattern_free(p);
	return n;
}

/* C that the pattern matches, with the brackets that it lacks. */
void made_instance(struct strbuf *out, const char *pattern)
{
	char open[16];
	size_t n = 0, more = 0, braces = 0;

	for (const char *s = pattern; *s; s++) {
		more += *s == ')' ? 1 : *s == '(' ? (size_t)-1 : 0;
		braces += *s == '}' ? 1 : *s == '{' ? (size_t)-1 : 0;
	}
	strbuf_puts(out, "    ");
	for (; braces > 0 && braces < 16; braces--)
		open[n++] = '{', strbuf_putc(out, '{');
	for (; more > 0 && more < 16; more--)
		open[n++] = '(', strbuf_putc(out, '(');
	for (const char *s = pattern; *s; s++) {
		if (strncmp(s, "$6", 2) == 0) {
			strbuf_puts(out, "0a1b2c");
			s++;
		} else if (strncmp(s, "$args", 5) == 0) {
			strbuf_puts(out, "made, (up)");
			s += 4;
		} else if (*s != '@') {
			strbuf_putc(out, *s);
		}
		if (strchr("({[", *s))
			open[n++] = *s;
		else if (strchr(")}]", *s) && n)
			n--;
	}
	while (n)
		strbuf_putc(out, open[--n] == '(' ? ')' : open[n] == '{' ? '}' : ']');
	strbuf_puts(out, ";\n");
}

static void add_pattern(struct made_tree *t, const char *file, const char *function,
			const char *pattern, unsigned count)
{
	struct made_function *f;

	if (strstr(pattern, RESIZE)) {
		made_function_of(t, file, RESIZE);
		return;
	}
	f = made_function_of(t, file, function);
	for (size_t n = count_now(t, file, function, pattern); n < count; n++)
		made_instance(&f->body, pattern);
}

static void fill(struct made_tree *t, enum era era)
{
	for (size_t i = 0; i < anchor_n; i++) {
		if (anchors[i].eras & 1u << era)
			add_pattern(t, anchors[i].file, anchors[i].function, anchors[i].pattern,
				    anchors[i].count);
	}
	for (size_t i = 0; i < feature_n; i++) {
		if (features[i].eras & 1u << era)
			add_pattern(t, features[i].file, features[i].function, features[i].pattern,
				    1);
	}
}

/* Filling takes a while: each era is filled once and copied. */
static struct made_tree filled[ERA_N];

void made_up(struct made_tree *t, enum era era)
{
	if (!filled[era].n)
		fill(&filled[era], era);
	*t = filled[era];
	for (size_t i = 0; i < t->n; i++) {
		t->functions[i].body = (struct strbuf){0};
		strbuf_puts(&t->functions[i].body, strbuf_str(&filled[era].functions[i].body));
	}
}

void made_done(struct made_tree *t)
{
	for (size_t i = 0; i < t->n; i++)
		strbuf_done(&t->functions[i].body);
	t->n = 0;
}

void made_put(const char *dir, const char *path, const char *content, size_t size)
{
	AUTO_FREE char *full = xprintf("%s/%s", dir, path);
	AUTO_FCLOSE FILE *f = NULL;

	for (char *s = full + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
		*s = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(content, 1, size, f), size);
}

void made_write(const struct made_tree *t, const char *dir, const char *release)
{
	AUTO_FREE char *version = xprintf("NVIDIA_VERSION = %s\n", release);

	made_put(dir, "version.mk", version, strlen(version));
	for (size_t i = 0; i < t->n; i++) {
		AUTO_STRBUF struct strbuf b = {0};

		made_render(t, t->functions[i].file, &b);
		made_put(dir, t->functions[i].file, b.text, b.len);
	}
}

void made_write_kernel_open(const struct made_tree *t, const char *dir)
{
	for (size_t i = 0; i < t->n; i++) {
		const char *file = t->functions[i].file;
		AUTO_STRBUF struct strbuf b = {0};

		if (strncmp(file, KERNEL_OPEN, strlen(KERNEL_OPEN)) != 0)
			continue;
		made_render(t, file, &b);
		made_put(dir, file + strlen(KERNEL_OPEN), b.text, b.len);
	}
}

void made_forget(void)
{
	for (unsigned era = 0; era < ERA_N; era++)
		made_done(&filled[era]);
}
