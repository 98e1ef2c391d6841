/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many elements an array has; not for pointers. */
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
