/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions by the words of os-release: what family one belongs to, and who may write its files. */
#pragma once

#include <stdbool.h>

struct kernel;

enum distribution {
	DISTRIBUTION_OTHER,
	DISTRIBUTION_DEBIAN,
	DISTRIBUTION_FEDORA,
	DISTRIBUTION_SUSE,
	DISTRIBUTION_ARCH,
	DISTRIBUTION_NIXOS, /* /etc, boot entries and units are made from configuration.nix */
	DISTRIBUTION_TRANSACTIONAL, /* SUSE with a read-only /usr and /boot: each change is a snapshot */
};

/* By ID=, else by the first word of ID_LIKE= that is known. */
enum distribution distribution_of(const struct kernel *k);
