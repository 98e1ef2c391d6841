/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/distribution.h"

#include "base/text.h"
#include "machine/machine.h"

#include <string.h>

static const struct {
	const char *id;
	enum distribution distribution;
} ids[] = {
	{"debian", DISTRIBUTION_DEBIAN},
	{"ubuntu", DISTRIBUTION_DEBIAN},
	{"linuxmint", DISTRIBUTION_DEBIAN},
	{"pop", DISTRIBUTION_DEBIAN},
	{"elementary", DISTRIBUTION_DEBIAN},
	{"zorin", DISTRIBUTION_DEBIAN},
	{"kali", DISTRIBUTION_DEBIAN},
	{"raspbian", DISTRIBUTION_DEBIAN},
	{"devuan", DISTRIBUTION_DEBIAN},
	{"neon", DISTRIBUTION_DEBIAN},
	{"proxmox", DISTRIBUTION_DEBIAN},
	{"fedora", DISTRIBUTION_FEDORA},
	{"rhel", DISTRIBUTION_FEDORA},
	{"centos", DISTRIBUTION_FEDORA},
	{"rocky", DISTRIBUTION_FEDORA},
	{"almalinux", DISTRIBUTION_FEDORA},
	{"ol", DISTRIBUTION_FEDORA},
	{"amzn", DISTRIBUTION_FEDORA},
	{"opensuse-microos", DISTRIBUTION_TRANSACTIONAL},
	{"opensuse-aeon", DISTRIBUTION_TRANSACTIONAL},
	{"opensuse-kalpa", DISTRIBUTION_TRANSACTIONAL},
	{"opensuse-leap-micro", DISTRIBUTION_TRANSACTIONAL},
	{"sle-micro", DISTRIBUTION_TRANSACTIONAL},
	{"sl-micro", DISTRIBUTION_TRANSACTIONAL},
	{"suse", DISTRIBUTION_SUSE},
	{"opensuse", DISTRIBUTION_SUSE},
	{"opensuse-leap", DISTRIBUTION_SUSE},
	{"opensuse-tumbleweed", DISTRIBUTION_SUSE},
	{"sles", DISTRIBUTION_SUSE},
	{"arch", DISTRIBUTION_ARCH},
	{"nixos", DISTRIBUTION_NIXOS},
};

static enum distribution find(const char *words)
{
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (text_has_word(words, ids[i].id))
			return ids[i].distribution;
	return DISTRIBUTION_OTHER;
}

enum distribution distribution_of(const struct kernel *k)
{
	const enum distribution by_id = find(fact_str_or(k->distribution_id, ""));

	return by_id ? by_id : find(fact_str_or(k->distribution_like, ""));
}
