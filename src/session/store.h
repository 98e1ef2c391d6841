/* SPDX-License-Identifier: Apache-2.0 */
/* The store: results in the state folder, which check weighs. */
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
 * Records in new figures the time and the version of onehop and, for GPUs of the machine m, the driver and
 * the NVML indexes. NULL: stand-ins, or GPUs of several hosts.
 */
void figures_stamp(struct figures *f, const struct machine *m);
/*
 * Writes f to observed.json. Before, adds to f what the file holds from the same boot and driver and f does
 * not replace. f keeps boot_id and driver by pointer. 0 or a negative errno with a sentence.
 */
int store_keep(const char *boot_id, const char *driver, struct figures *f);
