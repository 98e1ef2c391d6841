/* SPDX-License-Identifier: Apache-2.0 */
/* The store: results in the state folder, which check uses. */
#pragma once

struct figures;
struct machine;

/* The boot ID of the running system; "" if unknown. 37 bytes. */
#define BOOT_ID_SIZE 37
void read_boot_id(char buf[static BOOT_ID_SIZE]);

/*
 * Records in new figures the time and the version of onehop and, for GPUs of the machine m, what
 * they were measured under. NULL: simulated devices, or GPUs of several hosts.
 */
void figures_stamp(struct figures *f, const struct machine *m);
/*
 * Writes stamped figures of this machine to the store's file of their tool. Before, adds to f what
 * that file holds and f does not replace, if it was measured under the same conditions. 0 or a
 * negative errno with a sentence.
 */
int store_keep(struct figures *f);

/*
 * The same for this result alone, in a file of its own: of several hosts, or of a run that goes on.
 */
int store_write_figures(const char *file, const struct figures *f);
/*
 * Writes the text as a file of the state folder, whole or not at all. 0 or a negative errno with a
 * sentence.
 */
int store_write(const char *file, const char *text);
