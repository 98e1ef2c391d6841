/* SPDX-License-Identifier: Apache-2.0 */
/* pci=disable_acs_redir= on a kernel's command line, and the ports that it names. */
#include "machine/acs_parameter.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
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
 * The next argument; NULL: no more. Blanks inside double quotes are part of it. The kernel strips quotes
 * around a whole argument and around a value right behind the first '=', and keeps all others.
 */
static char *next_argument(const char **at)
{
	bool inside = false, quoted, value_quoted;
	const char *start = *at, *end, *equals = NULL;
	char *text, *value;

	start += strspn(start, " \t\n");
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

char *acs_parameter_of_word(const char *word)
{
	static const char pci[] = "pci=", key[] = "disable_acs_redir=";
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

char *acs_parameter_of_line(const char *line)
{
	char *last = NULL;

	for (;;) {
		AUTO_FREE char *word = next_argument(&line);
		char *value;

		/* What follows "--" is for the first program. */
		if (!word || strcmp(word, "--") == 0)
			return last;
		value = acs_parameter_of_word(word);
		if (!value)
			continue;
		free(last);
		last = value;
	}
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

bool acs_parameter_names(const char *value, const struct pci_function *port)
{
	AUTO_FREE char *copy = xstrdup(value);
	char *rest = copy, *item;

	while ((item = strsep(&rest, ";"))) {
		struct device_id id;

		if (!is_valid(item))
			return false;
		if (parse_id(item, &id) ? id_matches(&id, port) : path_matches(item, port))
			return true;
	}
	return false;
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
