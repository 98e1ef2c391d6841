/* SPDX-License-Identifier: Apache-2.0 */
#include "base/network.h"

#include <arpa/inet.h>
#include <string.h>

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

bool network_is_ipv4(const uint8_t a[static NETWORK_ADDRESS])
{
	return memcmp(a, mapped, sizeof(mapped)) == 0;
}

bool network_parse(const char *text, size_t size, uint8_t ret[static NETWORK_ADDRESS])
{
	char copy[INET6_ADDRSTRLEN];

	if (size >= sizeof(copy))
		return false;
	memcpy(copy, text, size);
	copy[size] = '\0';
	if (inet_pton(AF_INET6, copy, ret) == 1)
		return true;
	if (inet_pton(AF_INET, copy, ret + sizeof(mapped)) != 1)
		return false;
	memcpy(ret, mapped, sizeof(mapped));
	return true;
}

enum network_relation network_compare(const uint8_t a[static NETWORK_ADDRESS],
				      const uint8_t b[static NETWORK_ADDRESS])
{
	const bool ipv4 = network_is_ipv4(a);

	if (ipv4 != network_is_ipv4(b))
		return NETWORK_OTHER_FAMILY;
	if (memcmp(a, b, ipv4 ? 15 : 8) == 0)
		return NETWORK_SAME;
	return ipv4 ? NETWORK_MAYBE_APART : NETWORK_APART;
}

bool network_same(const uint8_t a[static NETWORK_ADDRESS], const uint8_t b[static NETWORK_ADDRESS])
{
	return network_compare(a, b) == NETWORK_SAME;
}
