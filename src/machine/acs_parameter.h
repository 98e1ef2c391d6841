/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pci=disable_acs_redir= and pci=config_acs=, as the kernel reads them: parse_args, pci_setup,
 * pci_dev_str_match and __pci_config_acs of Linux.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel;
struct pci_function;
struct strbuf;

#define ACS_PARAMETER "pci=disable_acs_redir="
#define ACS_CONFIG    "pci=config_acs="

/* Whether the kernel knows the one (4.19) and the other (6.11). */
bool acs_parameter_known(const struct kernel *k);
bool acs_config_known(const struct kernel *k);

/* The value of one argument, "A;B" of "pci=noaer,disable_acs_redir=A;B"; NULL: it has none. To free. */
char *acs_parameter_of_word(const char *word);

/* The value that counts of a command line: the last before a "--"; NULL: there is none. To free. */
char *acs_parameter_of_line(const char *line);

/*
 * Whether the kernel clears the redirect bits of this port for such a value. It knows addresses with and
 * without a domain, paths of bridges ("00:01.0/00.0") and "pci:VENDOR:DEVICE", and ends the list at the
 * first item that it cannot read. Here for tests.
 */
bool acs_parameter_names(const char *value, const struct pci_function *port);

/* The same of config_acs=, "BITS@A;BITS@B". */
char *acs_config_of_word(const char *word);
char *acs_config_of_line(const char *line);

/* Bits of ACSCtl: `mask` those that are set or cleared; the others get what firmware set. */
struct acs_bits {
	uint16_t mask, set;
};

/* What such a value gives this port: by the first item that fits. False: nothing. */
bool acs_config_names(const char *value, const struct pci_function *port, struct acs_bits *ret);

/*
 * Whether the two, either of which may be NULL, clear all redirect bits of the port. config_acs= comes
 * second in the kernel and begins at what firmware set: where it names a port, it alone counts.
 */
bool acs_parameters_clear(const char *disable, const char *config, const struct pci_function *port);

/*
 * The one word that clears the redirects of all these ports and keeps what the two values, either of
 * which may be NULL, say of others: config_acs= if that has a say over one of the ports.
 */
void acs_word(const char *disable, const char *config, const struct pci_function *const *ports,
	      size_t n, struct strbuf *out);

/*
 * Adds to the list "A;B" what it lacks of `value`, an item or such a list; NULL: nothing. Addresses get
 * their domain. What the kernel cannot read is left out, and what a shell would take for its own.
 */
void acs_list_add(struct strbuf *list, const char *value);

/* Whether two words "pci=..." name one device, in either of the two lists and in any place there. */
bool acs_words_share(const char *a, const char *b);
