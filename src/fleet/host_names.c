/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/host_names.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/texts.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Longer numbers are text: no range of them is meant. */
#define MOST_DIGITS 9

int host_names_compare(const char *a, const char *b)
{
	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			const char *x = a + strspn(a, "0"), *y = b + strspn(b, "0");
			size_t i = strspn(x, "0123456789"), j = strspn(y, "0123456789");
			int r = i != j ? (i < j ? -1 : 1) : strncmp(x, y, i);

			if (r)
				return r;
			a = x + i;
			b = y + j;
			continue;
		}
		if (*a != *b)
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
		a++;
		b++;
	}
	return *a ? 1 : *b ? -1 : 0;
}

/* ---- reading ---- */

static int refuse(const char *list, const char *why)
{
	return err_set(EINVAL, "'%s': %s; a list of hosts is written gpu-[01-64,70],login1", list,
		       why);
}

/* One name more; texts_add would compare it with all others. */
static int add_name(struct arena *a, struct texts *ret, const char *name)
{
	if (ret->n == HOST_NAMES_MAX)
		return err_set(E2BIG, "more than %d hosts in a list", HOST_NAMES_MAX);
	*ARENA_PUSH(a, ret->items, ret->n) = name;
	return 0;
}

/* "01-64" or "70" of n bytes inside brackets. */
static int add_range(const char *list, const char *range, size_t n, const char *before,
		     size_t before_n, const char *behind, size_t behind_n, struct arena *a,
		     struct texts *ret)
{
	size_t digits = strspn(range, "0123456789"), more;
	unsigned long first, last;
	int r = 0;

	if (!digits || digits > MOST_DIGITS || digits > n)
		return refuse(list, "brackets hold numbers and ranges");
	first = last = strtoul(range, NULL, 10);
	if (digits < n) {
		more = strspn(range + digits + 1, "0123456789");
		if (range[digits] != '-' || !more || more > MOST_DIGITS || digits + 1 + more != n)
			return refuse(list, "brackets hold numbers and ranges");
		last = strtoul(range + digits + 1, NULL, 10);
	}
	if (last < first)
		return refuse(list, "a range ends before it begins");
	for (unsigned long i = first; i <= last && r == 0; i++)
		r = add_name(a, ret,
			     arena_printf(a, "%.*s%0*lu%.*s", (int)before_n, before, (int)digits, i,
					  (int)behind_n, behind));
	return r;
}

/* One name of n bytes, with at most one pair of brackets. */
static int add_item(const char *list, const char *item, size_t n, struct arena *a,
		    struct texts *ret)
{
	const char *open = memchr(item, '[', n), *close = memchr(item, ']', n), *range;
	int r = 0;

	if (!n)
		return refuse(list, "a name is empty");
	if (!open && !close)
		return add_name(a, ret, arena_strndup(a, item, n));
	if (!open || !close || close < open)
		return refuse(list, "brackets do not match");
	if (memchr(close + 1, '[', n - (size_t)(close + 1 - item)))
		return refuse(list, "a name has more than one pair of brackets");
	for (range = open + 1; r == 0 && range <= close; range++) {
		size_t length = strcspn(range, ",]");

		r = add_range(list, range, length, item, (size_t)(open - item), close + 1,
			      n - (size_t)(close + 1 - item), a, ret);
		range += length;
	}
	return r;
}

int host_names_parse(const char *list, struct arena *a, struct texts *ret)
{
	const char *item = list;
	int r = 0;

	for (const char *at = list; r == 0; at++) {
		if (*at == '[')
			at += strcspn(at, "]");
		if (*at && *at != ',')
			continue;
		r = add_item(list, item, (size_t)(at - item), a, ret);
		if (!*at)
			break;
		item = at + 1;
	}
	return r;
}

/* ---- folding ---- */

/* A name around its last number. */
struct parts {
	const char *name;
	size_t before, digits; /* digits 0: it has no number */
};

static struct parts parts_of(const char *name)
{
	size_t end = strlen(name), start;

	while (end && !isdigit((unsigned char)name[end - 1]))
		end--;
	start = end;
	while (start && isdigit((unsigned char)name[start - 1]))
		start--;
	if (end - start > MOST_DIGITS)
		end = start;
	return (struct parts){name, end > start ? start : strlen(name), end - start};
}

static unsigned long number_of(struct parts p)
{
	return strtoul(p.name + p.before, NULL, 10);
}

/* Whether both belong into one pair of brackets. */
static bool alike(struct parts a, struct parts b)
{
	return a.digits && b.digits && a.before == b.before &&
	       strncmp(a.name, b.name, a.before) == 0 &&
	       strcmp(a.name + a.before + a.digits, b.name + b.before + b.digits) == 0;
}

/* Whether b follows a in a range: 09, 10 and 9, 10, but not 9, 010. */
static bool follows(struct parts a, struct parts b)
{
	bool same_width = a.digits == b.digits;
	bool grows = b.digits == a.digits + 1 && b.name[b.before] != '0' &&
		     (a.name[a.before] != '0' || a.digits == 1);

	return (same_width || grows) && number_of(b) == number_of(a) + 1;
}

static int compare_names(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	int r = host_names_compare(x, y);

	return r ? r : strcmp(x, y);
}

static void add_number(struct strbuf *out, struct parts p)
{
	strbuf_add(out, p.name + p.before, p.digits);
}

/* The names from `first` on that belong into one pair of brackets; returns how many. */
static size_t fold_some(const char **names, size_t n, struct strbuf *out)
{
	struct parts first = parts_of(names[0]), last;
	size_t same = 1, i;

	while (same < n && alike(first, parts_of(names[same])))
		same++;
	if (same == 1) {
		strbuf_puts(out, names[0]);
		return 1;
	}
	strbuf_add(out, first.name, first.before);
	for (i = 0; i < same; i++) {
		last = parts_of(names[i]);
		strbuf_putc(out, i ? ',' : '[');
		add_number(out, last);
		first = last;
		while (i + 1 < same && follows(last, parts_of(names[i + 1])))
			last = parts_of(names[++i]);
		if (last.name != first.name) {
			strbuf_putc(out, '-');
			add_number(out, last);
		}
	}
	strbuf_printf(out, "]%s", last.name + last.before + last.digits);
	return same;
}

void host_names_fold(const char **names, size_t n, struct strbuf *out)
{
	qsort(names, n, sizeof(*names), compare_names);
	for (size_t i = 0; i < n;) {
		if (i)
			strbuf_puts(out, ", ");
		i += fold_some(names + i, n - i, out);
	}
}
