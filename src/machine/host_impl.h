/* SPDX-License-Identifier: Apache-2.0 */
/* The readers behind host_read_all; for host.c, kernel.c and cpu.c only. */
#pragma once

#include "machine/read.h"

/* Version, compiler, command line, lockdown, IOMMUs; boot loader, distribution, DMI. */
void kernel_read(struct reader *r);
/* From the text of /proc/cpuinfo. */
void cpu_read(struct reader *r, struct fact_str cpuinfo);
/* The value of "key\t: value" in the first CPU's block of that text; "" when there is none. */
const char *cpu_value(struct reader *r, const char *text, const char *key);
