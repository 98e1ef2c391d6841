/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that write a file of sysfs: an attribute, or the size of a BAR. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "fix/step_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MIB ((uint64_t)1 << 20)

/* ---- attributes ---- */

static bool is_value(const struct bytes *b, const char *now)
{
	uint64_t wanted, there;

	if (!b->data)
		return false;
	if (strcmp(b->data, now) == 0)
		return true;
	return text_to_u64(b->data, &wanted) == 0 && text_to_u64(now, &there) == 0 &&
	       wanted == there;
}

static int read_state_attribute(struct fix_host *h, const struct step *s, enum step_state *ret,
				char **ret_now)
{
	AUTO_FREE char *text = NULL;
	const char *now;
	size_t size;
	int r = host_read(h, s->target, &text, &size);

	if (r == -ENOENT)
		return err_set(ENODEV, "/%s is not there", s->target);
	if (r < 0)
		return r;
	now = text_trim(text);
	*ret = is_value(&s->new, now)   ? STEP_IS_NEW
	       : is_value(&s->old, now) ? STEP_IS_OLD
					: STEP_IS_OTHER;
	if (ret_now)
		*ret_now = xstrdup(now);
	return 0;
}

static int apply_attribute(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	(void)output;
	return host_attribute_write(h, s->target, s->new.data);
}

static int undo_attribute(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	(void)output;
	return host_attribute_write(h, s->target, s->old.data);
}

const struct step_ops step_attribute_ops = {
	.word = "attribute",
	.in_system = true,
	.read_state = read_state_attribute,
	.apply = apply_attribute,
	.undo = undo_attribute,
};

/* ---- the size of a BAR ---- */

/* Where the device's folder of sysfs is, with `rest` behind; the caller frees. */
static char *device_path(const struct step *s, const char *rest)
{
	return xprintf("sys/bus/pci/devices/%s/%s", s->target, rest);
}

/* Line `at` of the device's `resource`: first and last address, flags. *ret in MiB. */
static int read_bar(struct fix_host *h, const struct step *s, uint64_t *ret)
{
	AUTO_FREE char *path = device_path(s, "resource");
	AUTO_FREE char *text = NULL;
	const char *line = NULL;
	uint64_t index, first, last;
	size_t size, n;
	int r = step_check_device(h, s);

	if (r < 0)
		return r;
	r = host_read(h, path, &text, &size);
	if (r == -ENOENT)
		return err_set(ENODEV, "%s is not there any more", s->target);
	if (r < 0)
		return r;
	if (text_to_u64(s->at, &index) < 0 || index > 5)
		return err_set(EINVAL, "%s: \"%s\" is no number of a BAR", s->target, s->at);
	for (uint64_t i = 0; i <= index; i++)
		if (!text_next_line(&line, &n, text))
			return err_set(EPROTO, "/%s has no line for BAR %s", path, s->at);
	if (sscanf(line, "%" SCNx64 " %" SCNx64, &first, &last) != 2 || last < first)
		return err_set(EPROTO, "/%s: line for BAR %s is not two addresses", path, s->at);
	*ret = last ? (last - first + 1) / MIB : 0;
	return 0;
}

static int read_state_bar(struct fix_host *h, const struct step *s, enum step_state *ret,
			  char **ret_now)
{
	uint64_t now;
	int r = read_bar(h, s, &now);

	if (r < 0)
		return r;
	*ret = now == s->value.new   ? STEP_IS_NEW
	       : now == s->value.old ? STEP_IS_OLD
				     : STEP_IS_OTHER;
	if (ret_now)
		*ret_now = xprintf("%" PRIu64, now);
	return 0;
}

/* The kernel refuses too (EBUSY), but does not say why. */
static int check_unbound(struct fix_host *h, const struct step *s)
{
	AUTO_FREE char *path = device_path(s, "driver");
	struct stat st;
	int r = host_stat(h, path, &st);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	return err_set(EBUSY, "%s: BAR %s cannot be resized while a driver is bound to the device",
		       s->target, s->at);
}

/* What is written to the file: 2^code MiB. */
static int size_code(const struct step *s, unsigned mib, unsigned *ret)
{
	if (!mib || mib & (mib - 1))
		return err_set(EINVAL, "%s: \"%u\" is not a BAR size in MiB", s->target, mib);
	*ret = (unsigned)__builtin_ctz(mib);
	return 0;
}

static int resize(struct fix_host *h, const struct step *s, unsigned mib)
{
	AUTO_FREE char *rest = xprintf("resource%s_resize", s->at);
	AUTO_FREE char *path = device_path(s, rest), *text = NULL;
	unsigned code;
	int r = size_code(s, mib, &code);

	if (r == 0)
		r = step_check_device(h, s);
	if (r == 0)
		r = check_unbound(h, s);
	if (r < 0)
		return r;
	text = xprintf("%u", code);
	r = host_attribute_write(h, path, text);
	if (r == -ENOSPC)
		return err_set(
			ENOSPC,
			"%s: BAR %s cannot become %u MiB: the window of a bridge above has no "
			"room; pci=realloc on the kernel's command line, or the firmware's setting "
			"for large BARs, can make it",
			s->target, s->at, mib);
	if (r == -ENOENT)
		return err_set(ENOENT, "%s: this kernel cannot resize BAR %s (no /%s)", s->target,
			       s->at, path);
	return r;
}

static int apply_bar(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	(void)output;
	return resize(h, s, s->value.new);
}

static int undo_bar(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	(void)output;
	return resize(h, s, s->value.old);
}

const struct step_ops step_bar_size_ops = {
	.word = "bar-size",
	.in_system = true,
	.read_state = read_state_bar,
	.apply = apply_bar,
	.undo = undo_bar,
};
