/* SPDX-License-Identifier: Apache-2.0 */
/* What onehop measured, and when: results kept in the state folder, which check weighs. */
#pragma once

#include <stdio.h>

struct figures;
struct machine;

/* This start of the machine; "" when nobody knows. 37 bytes. */
#define BOOT_ID_SIZE 37
void read_boot_id(char buf[static BOOT_ID_SIZE]);
/* "2026-01-31T10:20:30Z" */
#define DATE_SIZE 21
void write_date(char buf[static DATE_SIZE]);

/*
 * Into figures that were measured just now: when, by which onehop and, of GPUs of the machine m (NULL: of
 * none, or of several), under which driver and what NVML calls them.
 */
void figures_stamp(struct figures *f, const struct machine *m);
/*
 * Keeps f in observed.json. Adds to f what lies there of the same start of the machine and driver and was
 * not tested again; boot_id and driver are kept by pointer. 0 or a negative errno with a sentence.
 */
int store_keep(const char *boot_id, const char *driver, struct figures *f);
