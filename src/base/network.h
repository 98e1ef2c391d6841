/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as GIDs hold them: 16 bytes, an IPv4 address as ::ffff:a.b.c.d. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NETWORK_ADDRESS = 16 };

/* "10.0.1.5", "::ffff:10.0.1.5", "fe80::1", "0000:0000:...": false: not an address. */
bool network_parse(const char *text, size_t size, uint8_t ret[static NETWORK_ADDRESS]);
bool network_is_ipv4(const uint8_t a[static NETWORK_ADDRESS]);
/*
 * Whether both are in one network, as far as addresses show it: the first 24 bits of IPv4 addresses are the
 * same, or the first 64 of others, which are an InfiniBand subnet too.
 */
bool network_same(const uint8_t a[static NETWORK_ADDRESS], const uint8_t b[static NETWORK_ADDRESS]);
