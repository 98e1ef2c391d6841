/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), as sha256sum prints it. */
#pragma once

#include <stddef.h>

#define SHA256_TEXT 65 /* with the NUL */

void sha256(const void *data, size_t size, char ret[static SHA256_TEXT]);
