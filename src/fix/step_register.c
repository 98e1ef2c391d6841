/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that change bits of a 16-bit register in a device's configuration space. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/step_impl.h"

#include <stdlib.h>
#include <string.h>

enum {
	CONFIG_VENDOR = 0x00,
	CONFIG_DEVICE = 0x02,
	EXTENDED_START = 0x100,
	CONFIG_END = 0x1000,
	EXTENDED_MOST = (CONFIG_END - EXTENDED_START) / 8, /* a capability has at least 8 bytes */
};

/* Names of extended capabilities (PCIe 6.0, 7.9.1) that `at` may begin with. */
static const struct {
	const char *name;
	unsigned id;
} capabilities[] = {{"ACS", 0x000d}};

int step_check_device(struct fix_host *h, const struct step *s)
{
	unsigned vendor = 0, device = 0, wanted_vendor = s->identity >> 16;
	unsigned wanted_device = s->identity & 0xffff;
	int r = host_config_read(h, s->target, CONFIG_VENDOR, &vendor);

	if (r == 0)
		r = host_config_read(h, s->target, CONFIG_DEVICE, &device);
	if (r == -ENOENT || r == -ENODEV || (r == 0 && vendor == 0xffff))
		return err_set(ENODEV, "%s is not there any more", s->target);
	if (r < 0)
		return r;
	if (vendor != wanted_vendor || device != wanted_device)
		return err_set(ENODEV, "%s is another device now: %04x:%04x, not %04x:%04x",
			       s->target, vendor, device, wanted_vendor, wanted_device);
	return step_check_place(h, s);
}

/* ---- where it is ---- */

static int find_capability(struct fix_host *h, const struct step *s, unsigned id, unsigned *ret)
{
	unsigned at = EXTENDED_START;

	for (unsigned i = 0; i < EXTENDED_MOST && at >= EXTENDED_START && at < CONFIG_END; i++) {
		unsigned now = 0, next = 0;
		int r = host_config_read(h, s->target, at, &now);

		if (r == 0)
			r = host_config_read(h, s->target, at + 2, &next);
		if (r < 0)
			return r;
		if (now == id) {
			*ret = at;
			return 0;
		}
		if (now == 0xffff)
			break;
		at = next >> 4 & 0xffc; /* bits 31:20; the lowest two are reserved */
	}
	return err_set(ENXIO, "%s has no %s in its configuration space", s->target, s->at);
}

static int find_register(struct fix_host *h, const struct step *s, unsigned *ret)
{
	for (size_t i = 0; i < sizeof(capabilities) / sizeof(*capabilities); i++) {
		size_t n = strlen(capabilities[i].name);
		uint64_t offset;
		unsigned at;
		int r;

		if (strncmp(s->at, capabilities[i].name, n) != 0 || s->at[n] != '+')
			continue;
		if (text_to_u64(s->at + n + 1, &offset) < 0 || offset > 0xff || offset % 2)
			break;
		r = find_capability(h, s, capabilities[i].id, &at);
		if (r < 0)
			return r;
		*ret = at + (unsigned)offset;
		return 0;
	}
	return err_set(EINVAL, "%s: \"%s\" is no register that is known", s->target, s->at);
}

/* ---- looking and writing ---- */

static int read_register(struct fix_host *h, const struct step *s, unsigned *ret_at,
			 unsigned *ret_value)
{
	int r = step_check_device(h, s);

	if (r < 0)
		return r;
	r = find_register(h, s, ret_at);
	return r < 0 ? r : host_config_read(h, s->target, *ret_at, ret_value);
}

static int read_state_register(struct fix_host *h, const struct step *s, enum step_state *ret,
			       char **ret_now)
{
	AUTO_STRBUF struct strbuf text = {0};
	unsigned at, now;
	int r = read_register(h, s, &at, &now);

	if (r < 0)
		return r;
	*ret = ((now ^ s->value.new) & s->mask) == 0   ? STEP_IS_NEW
	       : ((now ^ s->value.old) & s->mask) == 0 ? STEP_IS_OLD
						       : STEP_IS_OTHER;
	step_value_text(s, now, &text);
	if (ret_now)
		*ret_now = xstrdup(text.text);
	return 0;
}

/* "integrity" or "confidentiality": the kernel lets nobody write configuration space. */
static const char *lockdown(struct fix_host *h)
{
	static const char *const levels[] = {"integrity", "confidentiality"};
	AUTO_FREE char *text = NULL;
	size_t size;

	if (host_read(h, "sys/kernel/security/lockdown", &text, &size) < 0)
		return NULL;
	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
		AUTO_FREE char *chosen = xprintf("[%s]", levels[i]);

		if (strstr(text, chosen))
			return levels[i];
	}
	return NULL;
}

static int refused(struct fix_host *h, const struct step *s, int r, unsigned now)
{
	AUTO_FREE char *why = xstrdup(r < 0 ? err_msg() : "");
	const char *level = lockdown(h);

	if (level)
		return err_set(
			EPERM,
			"%s: %s cannot be written: the kernel is locked down (%s), as it is with "
			"Secure Boot",
			s->target, s->at, level);
	if (r < 0)
		return err_set(-r, "%s", why);
	return err_set(EIO, "%s: %s does not take the value that is written to it, it reads %04x",
		       s->target, s->at, now);
}

/* The bits of the mask; the others as they are now. */
static int write_bits(struct fix_host *h, const struct step *s, unsigned value)
{
	unsigned at, now;
	int r = read_register(h, s, &at, &now);

	if (r < 0)
		return r;
	value = (now & ~(unsigned)s->mask) | (value & s->mask);
	r = host_config_write(h, s->target, at, value);
	if (h->rehearsal)
		return r;
	if (r == 0)
		r = host_config_read(h, s->target, at, &now);
	if (r < 0 || (now & s->mask) != (value & s->mask))
		return refused(h, s, r, now);
	return 0;
}

/* Bits of ACS that are set keep devices apart. */
static int allow_register(struct fix_host *h, const struct step *s)
{
	unsigned at, now;
	int r = read_register(h, s, &at, &now);

	if (r < 0)
		return r;
	return now & ~s->value.new & s->mask ? step_check_guests(h, s) : 0;
}

static int apply_register(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	int r = allow_register(h, s);

	(void)output;
	return r < 0 ? r : write_bits(h, s, s->value.new);
}

static int undo_register(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	(void)output;
	return write_bits(h, s, s->value.old);
}

const struct step_ops step_register_ops = {
	.word = "register",
	.in_system = true,
	.read_state = read_state_register,
	.prepare = step_note_place,
	.allow = allow_register,
	.apply = apply_register,
	.undo = undo_register,
};
