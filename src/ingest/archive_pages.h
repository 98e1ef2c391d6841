/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in archives: nvidia-bug-report.log.gz, a sosreport, a zip of logs. */
#pragma once

#include <stddef.h>

struct pasted;

/*
 * Adds every text of the archive: the file itself if it is only compressed, else its members.
 * Nothing is written and no name is opened; links and archives inside it are skipped. *ret_n: the
 * number of parts that were recognised. 0 or a negative errno with a sentence.
 */
int archive_pages_add(const char *path, struct pasted *t, size_t *ret_n);
