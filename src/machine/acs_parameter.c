/* SPDX-License-Identifier: Apache-2.0 */
/* pci=disable_acs_redir= on a kernel's command line, and the ports that it names. */
#include "machine/acs_parameter.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/machine.h"
#include "machine/pci.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the command line ---- */

static char *without_last_quote(char *text)
{
	size_t n = strlen(text);

	if (n && text[n - 1] == '"')
		text[n - 1] = '\0';
	return text;
}

/*
 * The next argument; NULL: no more. Blanks inside double quotes are part of it. The kernel strips
 * quotes around a whole argument and around a value right behind the first '=', and keeps all
 * others.
 */
static char *next_argument(const char **at)
{
	bool inside = false, quoted, value_quoted;
	const char *start = *at, *end, *equals = NULL;
	char *text, *value;

	while (isspace((unsigned char)*start))
		start++;
	if (!*start)
		return NULL;
	quoted = *start == '"';
	start += quoted;
	inside = quoted;
	for (end = start; *end && (inside || !isspace((unsigned char)*end)); end++) {
		if (*end == '=' && !equals)
			equals = end;
		inside ^= *end == '"';
	}
	*at = end;
	text = xstrndup(start, (size_t)(end - start));
	value = equals ? text + (equals - start) + 1 : NULL;
	value_quoted = equals && *value == '"';
	if (value_quoted)
		memmove(value, value + 1, strlen(value));
	return quoted || value_quoted ? without_last_quote(text) : text;
}

static char *option_of_word(const char *word, const char *key)
{
	static const char pci[] = "pci=";
	const char *found = NULL;

	if (!text_starts_with(word, pci))
		return NULL;
	for (word += strlen(pci); *word; word += *word == ',') {
		if (text_starts_with(word, key))
			found = word + strlen(key);
		word += strcspn(word, ",");
	}
	return found ? xstrndup(found, strcspn(found, ",")) : NULL;
}

static char *option_of_line(const char *line, const char *key)
{
	char *last = NULL;

	for (;;) {
		AUTO_FREE char *word = next_argument(&line);
		char *value;

		/* Words after "--" are arguments of init. */
		if (!word || strcmp(word, "--") == 0)
			return last;
		value = option_of_word(word, key);
		if (!value)
			continue;
		free(last);
		last = value;
	}
}

#define DISABLE "disable_acs_redir="
#define CONFIG  "config_acs="

char *acs_parameter_of_word(const char *word)
{
	return option_of_word(word, DISABLE);
}

char *acs_parameter_of_line(const char *line)
{
	return option_of_line(line, DISABLE);
}

char *acs_config_of_word(const char *word)
{
	return option_of_word(word, CONFIG);
}

char *acs_config_of_line(const char *line)
{
	return option_of_line(line, CONFIG);
}

/* ---- kernels ---- */

/* An unknown release is assumed to be new enough. */
static bool is_at_least(const struct kernel *k, unsigned major, unsigned minor)
{
	unsigned a, b;

	if (!fact_known(k->release) || sscanf(k->release.value, "%u.%u", &a, &b) != 2)
		return true;
	return a > major || (a == major && b >= minor);
}

bool acs_parameter_known(const struct kernel *k)
{
	return is_at_least(k, 4, 19);
}

bool acs_config_known(const struct kernel *k)
{
	return is_at_least(k, 6, 11);
}

/* ---- one item of the list ---- */

struct device_id {
	unsigned vendor, device, subsystem_vendor, subsystem_device; /* 0: any */
};

static bool parse_id(const char *item, struct device_id *ret)
{
	int n;

	*ret = (struct device_id){0};
	if (!text_starts_with(item, "pci:"))
		return false;
	n = sscanf(item, "pci:%4x:%4x:%4x:%4x", &ret->vendor, &ret->device, &ret->subsystem_vendor,
		   &ret->subsystem_device);
	if (n < 4)
		ret->subsystem_vendor = ret->subsystem_device = 0;
	return n >= 2;
}

static bool parse_device(const char *text, struct pci_address *ret)
{
	unsigned domain = 0, bus, slot, function;
	char rest;

	if (sscanf(text, "%x:%x:%x.%x%c", &domain, &bus, &slot, &function, &rest) != 4) {
		domain = 0;
		if (sscanf(text, "%x:%x.%x%c", &bus, &slot, &function, &rest) != 3)
			return false;
	}
	*ret = (struct pci_address){.domain = domain,
				    .bus = (uint8_t)bus,
				    .device = (uint8_t)slot,
				    .function = (uint8_t)function};
	return bus <= 0xff && slot <= 0x1f && function <= 7;
}

static bool id_fits(unsigned wanted, struct fact_int have)
{
	return !wanted || fact_is(have, (int64_t)wanted);
}

static bool id_matches(const struct device_id *id, const struct pci_function *f)
{
	return id_fits(id->vendor, f->vendor) && id_fits(id->device, f->device) &&
	       id_fits(id->subsystem_vendor, f->subsystem_vendor) &&
	       id_fits(id->subsystem_device, f->subsystem_device);
}

/* "00:01.0/00.0/01.0": the last is the port, and each before it the bridge above. */
static bool path_matches(const char *item, const struct pci_function *f)
{
	AUTO_FREE char *path = xstrdup(item);
	struct pci_address address;
	char *slash, rest;

	for (; (slash = strrchr(path, '/')); *slash = '\0') {
		unsigned slot, function;

		if (!f || sscanf(slash, "/%x.%x%c", &slot, &function, &rest) != 2 ||
		    slot != f->address.device || function != f->address.function)
			return false;
		f = f->parent;
	}
	return f && parse_device(path, &address) && pci_address_compare(address, f->address) == 0;
}

static bool is_valid(const char *item)
{
	AUTO_FREE char *path = xstrdup(item);
	struct pci_address address;
	struct device_id id;
	char *slash, rest;

	if (text_starts_with(item, "pci:"))
		return parse_id(item, &id);
	for (; (slash = strrchr(path, '/')); *slash = '\0') {
		unsigned slot, function;

		if (sscanf(slash, "/%x.%x%c", &slot, &function, &rest) != 2)
			return false;
	}
	return parse_device(path, &address);
}

static bool names(const char *item, const struct pci_function *port)
{
	struct device_id id;

	return parse_id(item, &id) ? id_matches(&id, port) : path_matches(item, port);
}

bool acs_parameter_names(const char *value, const struct pci_function *port)
{
	AUTO_FREE char *copy = xstrdup(value);
	char *rest = copy, *item;

	while ((item = strsep(&rest, ";"))) {
		if (!is_valid(item))
			return false;
		if (names(item, port))
			return true;
	}
	return false;
}

/* ---- pci=config_acs= ---- */

enum { ACS_BIT_N = 7 }; /* SV, TB, RR, CR, UF, EC, DT, from the right */

/* "101xx0x@ADDRESS": *ret is the device. False: the kernel cannot read it. */
static bool parse_bits(const char *item, struct acs_bits *ret, const char **ret_device)
{
	const char *at = strchr(item, '@');

	*ret = (struct acs_bits){0};
	for (size_t i = 0; at && at - i > item; i++) {
		char c = at[-1 - (ptrdiff_t)i];

		if (!strchr("01xX", c) || (i >= ACS_BIT_N && strchr("01", c)))
			return false;
		if (c == '0' || c == '1')
			ret->mask |= (uint16_t)(1u << i);
		if (c == '1')
			ret->set |= (uint16_t)(1u << i);
	}
	*ret_device = at ? at + 1 : NULL;
	return at && is_valid(*ret_device);
}

bool acs_config_names(const char *value, const struct pci_function *port, struct acs_bits *ret)
{
	AUTO_FREE char *copy = xstrdup(value);
	char *rest = copy, *item;

	while ((item = strsep(&rest, ";"))) {
		const char *device;

		if (!parse_bits(item, ret, &device))
			return false;
		if (names(device, port))
			return true;
	}
	return false;
}

bool acs_parameters_clear(const char *disable, const char *config, const struct pci_function *port)
{
	struct acs_bits bits;

	if (config && acs_config_names(config, port, &bits))
		return (bits.mask & ~bits.set & PCI_ACS_REDIRECTS) == PCI_ACS_REDIRECTS;
	return disable && acs_parameter_names(disable, port);
}

/* ---- a list for the parameter ---- */

void acs_list_add(struct strbuf *list, const char *value)
{
	static const char known[] = "0123456789abcdefABCDEF:./pci";
	AUTO_FREE char *copy = value ? xstrdup(value) : NULL;
	char *rest = copy, *text;

	while ((text = strsep(&rest, ";"))) {
		const char *item = text;
		struct pci_address address;
		char name[PCI_ADDRESS_LEN];

		if (!is_valid(item) || item[strspn(item, known)])
			continue;
		if (pci_address_parse(item, &address) == 0)
			item = pci_address_format(address, name);
		if (!text_list_has(strbuf_str(list), ";", item, strlen(item)))
			strbuf_printf(list, "%s%s", list->len ? ";" : "", item);
	}
}

/* The bits as given, with the redirect bits cleared. */
static void add_cleared(struct strbuf *list, struct acs_bits bits, const struct pci_function *port)
{
	bits.mask |= PCI_ACS_REDIRECTS;
	bits.set &= (uint16_t)~PCI_ACS_REDIRECTS;
	strbuf_puts(list, list->len ? ";" : "");
	for (unsigned i = ACS_BIT_N; i-- > 0;)
		strbuf_putc(list, !(bits.mask >> i & 1) ? 'x' : bits.set >> i & 1 ? '1' : '0');
	strbuf_printf(list, "@%s", port->name);
}

/*
 * The existing value, up to the first character that the kernel cannot parse or a shell would
 * interpret.
 */
static void add_config(struct strbuf *list, const char *value)
{
	static const char known[] = "0123456789abcdefABCDEF:./pcixX@";
	AUTO_FREE char *copy = xstrdup(value);
	char *rest = copy, *item;

	while ((item = strsep(&rest, ";"))) {
		struct acs_bits bits;
		const char *device;

		if (!parse_bits(item, &bits, &device) || item[strspn(item, known)])
			return;
		if (!text_list_has(strbuf_str(list), ";", item, strlen(item)))
			strbuf_printf(list, ";%s", item);
	}
}

static bool has_say(const char *config, const struct pci_function *const *ports, size_t n)
{
	struct acs_bits bits;

	for (size_t i = 0; config && i < n; i++)
		if (acs_config_names(config, ports[i], &bits))
			return true;
	return false;
}

void acs_word(const char *disable, const char *config, const struct pci_function *const *ports,
	      size_t n, struct strbuf *out)
{
	AUTO_STRBUF struct strbuf list = {0};

	if (!has_say(config, ports, n)) {
		acs_list_add(&list, disable);
		for (size_t i = 0; i < n; i++)
			acs_list_add(&list, ports[i]->name);
		strbuf_printf(out, ACS_PARAMETER "%s", strbuf_str(&list));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct acs_bits bits;

		if (!acs_config_names(config, ports[i], &bits))
			bits = (struct acs_bits){0};
		add_cleared(&list, bits, ports[i]);
	}
	add_config(&list, config);
	strbuf_printf(out, ACS_CONFIG "%s", strbuf_str(&list));
}

/* ---- two words ---- */

/* The devices of both lists, "A;B", each with its domain. */
static void add_devices(struct strbuf *list, const char *word)
{
	AUTO_FREE char *disable = acs_parameter_of_word(word), *config = acs_config_of_word(word);
	char *rest = config, *item;

	acs_list_add(list, disable);
	while ((item = strsep(&rest, ";"))) {
		char *at = strchr(item, '@');

		acs_list_add(list, at ? at + 1 : NULL);
	}
}

bool acs_words_share(const char *a, const char *b)
{
	AUTO_STRBUF struct strbuf of_a = {0}, of_b = {0};

	add_devices(&of_a, a);
	add_devices(&of_b, b);
	for (const char *at = strbuf_str(&of_b); *at; at += *at == ';') {
		const size_t n = strcspn(at, ";");

		if (text_list_has(strbuf_str(&of_a), ";", at, n))
			return true;
		at += n;
	}
	return false;
}
