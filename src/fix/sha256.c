/* SPDX-License-Identifier: Apache-2.0 */
#include "fix/sha256.h"

#include <nettle/sha2.h>
#include <stdint.h>
#include <stdio.h>

void sha256(const void *data, size_t size, char ret[static SHA256_TEXT])
{
	struct sha256_ctx context;
	uint8_t digest[SHA256_DIGEST_SIZE];

	sha256_init(&context);
	sha256_update(&context, size, data);
	sha256_digest(&context, sizeof(digest), digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}
