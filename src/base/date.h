/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as results and journals write them: "2026-01-31T10:20:30Z". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define DATE_SIZE 21

/* Now; "" if unknown. */
void date_now(char buf[static DATE_SIZE]);
/*
 * Whether it is written like that, and is in the calendar. Neither allocates nor depends on the
 * locale or time zone.
 */
bool date_is_one(const char *text);
/* How long ago that was; -1: the text is not a date, or is in the future. */
int64_t date_age_s(const char *text);
bool date_is_ahead(const char *text);
/* When something is made: now, or what SOURCE_DATE_EPOCH says, so that builds and tests repeat. */
void date_to_state(char buf[static DATE_SIZE]);
