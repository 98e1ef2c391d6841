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
/* What two addresses show of their networks; the length of a network's mask is not in them. */
enum network_relation {
	NETWORK_SAME, /* the first 24 bits of IPv4 addresses are the same, or the first 64 of others */
	NETWORK_MAYBE_APART, /* those of IPv4 addresses are not: apart unless the mask is shorter */
	NETWORK_APART,       /* those of others are not: two networks, or InfiniBand subnets */
	NETWORK_OTHER_FAMILY, /* nothing: the NICs speak different protocols */
};
enum network_relation network_compare(const uint8_t a[static NETWORK_ADDRESS],
				      const uint8_t b[static NETWORK_ADDRESS]);
bool network_same(const uint8_t a[static NETWORK_ADDRESS], const uint8_t b[static NETWORK_ADDRESS]);
