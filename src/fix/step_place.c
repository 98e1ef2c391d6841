/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which port a register belongs to, in words that another boot can be held against: bus numbers are
 * given out again at each, and a card more or less moves them.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "fix/step_impl.h"
#include "machine/pci.h"

#include <string.h>

enum {
	CONFIG_VENDOR = 0x00,
	CONFIG_DEVICE = 0x02,
	CONFIG_CLASS = 0x0a, /* 15:8 the class, 7:0 the subclass */
	CLASS_NETWORK = 0x02,
	CLASS_DISPLAY = 0x03,
	NO_ID = 0xffff, /* nothing answers; virtual functions have no ID of their own either */
};

/* ---- where ---- */

/*
 * "pci0000:20/00.0/00.0/01.0": the root bus, then slot and function of each bridge on the way, which
 * the board decides. NULL: the device is not a link, as in no sysfs.
 */
static int find_place(struct fix_host *h, const char *device, char **ret)
{
	AUTO_STRBUF struct strbuf place = {0};
	AUTO_FREE char *link = NULL;
	char *rest, *name;
	int r = step_device_link(h, device, "", &link);

	*ret = NULL;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	rest = strstr(link, "devices/");
	if (!rest)
		return 0;
	for (rest += strlen("devices/"); (name = strsep(&rest, "/"));) {
		struct pci_address a;

		strbuf_puts(&place, place.len ? "/" : "");
		if (pci_address_parse(name, &a) == 0)
			strbuf_printf(&place, "%02x.%x", a.device, a.function);
		else
			strbuf_puts(&place, name);
	}
	*ret = xstrdup(strbuf_str(&place));
	return 0;
}

int step_check_place(struct fix_host *h, const struct step *s)
{
	AUTO_FREE char *place = NULL;
	int r = s->place ? find_place(h, s->target, &place) : 0;

	if (r < 0 || !s->place || (place && strcmp(place, s->place) == 0))
		return r;
	return err_set(ENODEV, "%s is another port now: at %s, not at %s", s->target,
		       place ? place : "no known place", s->place);
}

/* ---- what is below it ---- */

/* *ret NULL: nothing answers there, or it has no IDs. */
static int read_kind(struct fix_host *h, const char *device, char **ret, unsigned *ret_class)
{
	unsigned vendor = NO_ID, id = NO_ID, class = 0;
	int r = host_config_read(h, device, CONFIG_VENDOR, &vendor);

	if (r == 0)
		r = host_config_read(h, device, CONFIG_DEVICE, &id);
	if (r == 0)
		r = host_config_read(h, device, CONFIG_CLASS, &class);
	if (r < 0)
		return r == -ENODEV || r == -ENOENT ? 0 : r;
	if (vendor != NO_ID)
		*ret = xprintf("%04x:%04x", vendor, id);
	*ret_class = class >> 8;
	return 0;
}

/* Of a card with several functions, the first: the others may be switched off. */
static bool is_first_function(const char *device)
{
	struct pci_address a;

	return pci_address_parse(device, &a) == 0 && a.function == 0;
}

/* `inside`: "/0000:22:00.0/". */
static int add_below(struct fix_host *h, const char *device, const char *inside, struct arena *a,
		     struct texts *direct, struct texts *cards)
{
	AUTO_FREE char *link = NULL, *kind = NULL;
	const char *at;
	unsigned class = 0;
	int r = step_device_link(h, device, "", &link);

	at = r == 0 ? strstr(link, inside) : NULL;
	if (!at || !is_first_function(device))
		return r == -ENOENT ? 0 : r;
	r = read_kind(h, device, &kind, &class);
	if (r < 0 || !kind)
		return r;
	if (!direct->n && !strchr(at + strlen(inside), '/'))
		texts_add(a, direct, kind);
	if (class == CLASS_DISPLAY || class == CLASS_NETWORK)
		texts_add(a, cards, kind);
	return 0;
}

/* What is right below, the first, then GPUs and network cards at any depth; a bridge right below is a kind too. */
static int find_below(struct fix_host *h, const char *port, struct arena *a, struct texts *ret)
{
	AUTO_FREE char *inside = xprintf("/%s/", port);
	struct texts cards = {0};
	char **names;
	size_t n;
	int r = host_list(h, STEP_DEVICES, &names, &n);

	*ret = (struct texts){0};
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_below(h, names[i], inside, a, ret, &cards);
	source_free_names(names, n);
	if (ret->n)
		texts_add_all(a, ret, &cards);
	return r;
}

/* The same right below, and of the others none is missing; what came along does not matter. */
static bool is_as_noted(const struct texts *now, const struct texts *noted)
{
	if (!now->n || strcmp(now->items[0], noted->items[0]) != 0)
		return false;
	for (size_t i = 1; i < noted->n; i++)
		if (!texts_have(now, noted->items[i]))
			return false;
	return true;
}

static int refuse_other_devices(const struct step *s, const struct texts *now)
{
	AUTO_STRBUF struct strbuf is = {0}, was = {0};

	texts_join(now, " ", &is);
	texts_join(&s->below, " ", &was);
	return err_set(ENODEV, "%s: %s stays as it is: below that port is %s now, not %s",
		       s->target, s->at, now->n ? strbuf_str(&is) : "nothing", strbuf_str(&was));
}

int step_check_again(struct fix_host *h, const struct step *s)
{
	struct arena *a;
	struct texts now;
	int r;

	if (!s->below.n)
		return 0;
	a = arena_new();
	r = find_below(h, s->target, a, &now);
	if (r == 0 && !is_as_noted(&now, &s->below))
		r = refuse_other_devices(s, &now);
	arena_free(a);
	return r;
}

/* ---- noting both ---- */

int step_note_place(struct fix_host *h, struct arena *a, struct step *s)
{
	AUTO_FREE char *place = NULL;
	int r = find_place(h, s->target, &place);

	if (r == 0 && place)
		r = find_below(h, s->target, a, &s->below);
	if (r == 0 && place)
		s->place = arena_strdup(a, place);
	return r;
}
