// SPDX-License-Identifier: Apache-2.0
#include "collective/exchange.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "kernels/args.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_BYTES 16

/* What each rank tells the others. All bytes are set, so that parts can be compared. */
struct hello {
	char version[16];
	char boot[40];    /* of the kernel: differs between hosts */
	uint64_t network; /* the namespace, within which sockets find each other */
	uint64_t user;
	char key[RENDEZVOUS_KEY_MAX + 1]; /* rank 0's is used */
};

static const struct {
	size_t offset, size;
	int error;
	const char *what;
} parts[] = {
#define PART(member, error, what)                                                                  \
	{                                                                                          \
		offsetof(struct hello, member), sizeof(((struct hello *)0)->member), error, what   \
	}
	PART(version, EPROTO, "has another version of libonehop"),
	PART(boot, EXDEV, "is on another host"),
	PART(network, EXDEV, "is in another network namespace"),
	PART(user, EXDEV, "is of another user"),
#undef PART
};

static void read_boot(char *buf, size_t size)
{
	AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);

	buf[n > 0 ? n : 0] = '\0';
}

static int make_key(char *ret, size_t size)
{
	unsigned char random[KEY_BYTES];
	size_t at = (size_t)snprintf(ret, size, "onehop-");

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_sys(errno, "random bytes for the key of a communicator");
	for (size_t i = 0; i < sizeof(random); i++)
		at += (size_t)snprintf(ret + at, size - at, "%02x", random[i]);
	return 0;
}

static int make_hello(struct hello *ret)
{
	struct stat network;

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->version, sizeof(ret->version), "%s", ONEHOP_VERSION);
	read_boot(ret->boot, sizeof(ret->boot));
	ret->network = stat("/proc/self/ns/net", &network) == 0 ? network.st_ino : 0;
	ret->user = geteuid();
	return make_key(ret->key, sizeof(ret->key));
}

static int compare(const struct hello *all, int n)
{
	for (int i = 1; i < n; i++)
		for (size_t k = 0; k < sizeof(parts) / sizeof(*parts); k++)
			if (memcmp((const char *)&all[i] + parts[k].offset,
				   (const char *)&all[0] + parts[k].offset, parts[k].size) != 0)
				return err_set(parts[k].error, "rank %d %s than rank 0", i,
					       parts[k].what);
	return 0;
}

int exchange_key(exchange_gather *gather, void *context, int rank, int n,
		 char ret[static RENDEZVOUS_KEY_MAX + 1])
{
	struct hello mine, all[COLLECTIVE_RANKS_MAX];
	int made, r;

	if (n < 1 || n > COLLECTIVE_RANKS_MAX)
		return err_set(EINVAL, "the number of ranks must be 1 to %d, not %d",
			       COLLECTIVE_RANKS_MAX, n);
	made = make_hello(&mine);
	r = gather(context, &mine, sizeof(mine), all);
	if (r < 0)
		return err_set(-r, "rank %d: the caller's exchange between the ranks failed", rank);
	if (made < 0)
		return made;
	r = compare(all, n);
	if (r < 0)
		return r;
	if (!memchr(all[0].key, '\0', sizeof(all[0].key)) || !all[0].key[0])
		return err_set(EPROTO, "rank 0 has no key for the communicator");
	memcpy(ret, all[0].key, sizeof(all[0].key));
	return 0;
}
