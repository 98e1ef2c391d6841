/* SPDX-License-Identifier: Apache-2.0 */
/* pci=disable_acs_redir=, as the kernel reads it: parse_args, pci_setup and pci_dev_str_match of Linux. */
#pragma once

#include <stdbool.h>

struct pci_function;
struct strbuf;

#define ACS_PARAMETER "pci=disable_acs_redir="

/* The value of one argument, "A;B" of "pci=noaer,disable_acs_redir=A;B"; NULL: it has none. To free. */
char *acs_parameter_of_word(const char *word);

/* The value that counts of a command line: the last before a "--"; NULL: there is none. To free. */
char *acs_parameter_of_line(const char *line);

/*
 * Whether the kernel clears the redirect bits of this port for such a value. It knows addresses with and
 * without a domain, paths of bridges ("00:01.0/00.0") and "pci:VENDOR:DEVICE", and ends the list at the
 * first item that it cannot read.
 */
bool acs_parameter_names(const char *value, const struct pci_function *port);

/*
 * Adds to the list "A;B" what it lacks of `value`, an item or such a list; NULL: nothing. Addresses get
 * their domain. What the kernel cannot read is left out, and what a shell would take for its own.
 */
void acs_list_add(struct strbuf *list, const char *value);
