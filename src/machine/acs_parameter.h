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

/* Whether the kernel supports disable_acs_redir= (4.19) and config_acs= (6.11). */
bool acs_parameter_known(const struct kernel *k);
bool acs_config_known(const struct kernel *k);

/*
 * The value in one argument, "A;B" of "pci=noaer,disable_acs_redir=A;B"; NULL if it has none. The
 * caller frees it.
 */
char *acs_parameter_of_word(const char *word);

/*
 * The effective value on a command line: the last one before "--"; NULL if there is none. The
 * caller frees it.
 */
char *acs_parameter_of_line(const char *line);

/*
 * Whether the kernel clears the redirect bits of this port for such a value. The kernel accepts
 * addresses with and without a domain, paths of bridges ("00:01.0/00.0") and "pci:VENDOR:DEVICE",
 * and stops at the first item that it cannot parse. Exported for tests.
 */
bool acs_parameter_names(const char *value, const struct pci_function *port);

/* The same for config_acs=, "BITS@A;BITS@B". */
char *acs_config_of_word(const char *word);
char *acs_config_of_line(const char *line);

/* Bits of ACSCtl: those in `mask` are set or cleared; the others keep the firmware's value. */
struct acs_bits {
	uint16_t mask, set;
};

/* What such a value sets on this port, from the first item that matches. False if none matches. */
bool acs_config_names(const char *value, const struct pci_function *port, struct acs_bits *ret);

/*
 * Whether the two, either of which may be NULL, clear all redirect bits of the port. config_acs=
 * comes second in the kernel and starts from the firmware's value: if it names a port, it alone
 * decides.
 */
bool acs_parameters_clear(const char *disable, const char *config, const struct pci_function *port);

/*
 * The one word that clears the redirects of all these ports and keeps what the two values, either
 * of which may be NULL, set for other ports: config_acs= if that names one of the ports.
 */
void acs_word(const char *disable, const char *config, const struct pci_function *const *ports,
	      size_t n, struct strbuf *out);

/*
 * Appends the items of `value` (an item or a list; NULL adds nothing) that the list "A;B" lacks.
 * Addresses get their domain. Items that the kernel cannot parse, or that a shell would interpret,
 * are left out.
 */
void acs_list_add(struct strbuf *list, const char *value);

/*
 * Whether two words "pci=..." name one device, in either of the two lists and in any place there.
 */
bool acs_words_share(const char *a, const char *b);
