/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/region.h"

#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define ACCESS (VERBS_LOCAL_WRITE | VERBS_REMOTE_WRITE | VERBS_REMOTE_READ)

static const char *const words[REGION_WAY_N] = {"host", "dma-buf", "peer-memory", "on-demand"};

const char *region_way_word(enum region_way w)
{
	return words[w];
}

/* All of the buffer, by the address of its first byte. */
static uint64_t start_of(const struct buffer *b)
{
	return b->at - BUFFER_GUARD;
}

static size_t size_of(const struct buffer *b)
{
	return b->bytes + 2 * BUFFER_GUARD;
}

static struct verbs_mr *by_address(const struct nic *n, const struct buffer *b, enum region_way way,
				   bool relaxed)
{
	const unsigned access = ACCESS | (way == REGION_ON_DEMAND ? VERBS_ON_DEMAND : 0);
	uint64_t at = start_of(b);

	if (relaxed && n->v->reg_mr_iova2)
		return n->v->reg_mr_iova2(n->pd, (void *)at, size_of(b), at,
					  access | VERBS_RELAXED_ORDERING);
	return n->v->reg_mr(n->pd, (void *)at, size_of(b), (int)access);
}

/* "; 1048576 bytes are wanted, and this process may lock 65536 in all" if that may be the cause. */
static void add_limit(const struct buffer *b, int error, char *buf, size_t size)
{
	struct rlimit limit;

	*buf = '\0';
	if (error == ENOMEM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
	    limit.rlim_cur != RLIM_INFINITY)
		snprintf(buf, size, "; %zu bytes are wanted, and this process may lock %llu in all",
			 size_of(b), (unsigned long long)limit.rlim_cur);
}

static int open_by_address(const struct nic *n, const struct buffer *b, enum region_way way,
			   bool relaxed, struct region *ret, struct rdma_failure *f)
{
	char limit[96];

	errno = 0;
	ret->mr = by_address(n, b, way, relaxed);
	if (ret->mr)
		return 0;
	add_limit(b, errno, limit, sizeof(limit));
	f->about |= way == REGION_ON_DEMAND ? RDMA_ABOUT_ON_DEMAND : 0;
	return rdma_fail(f, way == REGION_PEER ? RDMA_STEP_REGISTER_PEER : RDMA_STEP_REGISTER_HOST,
			 errno, "ibv_reg_mr of %zu bytes by %s answers error %d (%s)%s", size_of(b),
			 n->port.device, errno, strerror(errno), limit);
}

/* Work requests keep using the address, so both kinds of registration are used alike. */
static int open_by_dmabuf(const struct nic *n, const struct buffer *b, bool relaxed,
			  struct region *ret, struct rdma_failure *f)
{
	bool real = b->set->caps & DEVICE_EXPORT_DMABUF;
	struct memory_export e;
	int r, error;

	if (!n->v->reg_dmabuf_mr)
		return rdma_fail(f, RDMA_STEP_REGISTER_DMABUF, ENOSYS,
				 "%s has no ibv_reg_dmabuf_mr", VERBS_LIBRARY);
	r = b->set->ops->export(b->set, &b->memory, real ? EXPORT_DMABUF : EXPORT_FD, &e);
	if (r < 0)
		return rdma_fail(f, RDMA_STEP_EXPORT, -r, "%s", err_msg());
	errno = 0;
	ret->mr = n->v->reg_dmabuf_mr(n->pd, e.offset, size_of(b), start_of(b), e.fd,
				      ACCESS | (relaxed ? VERBS_RELAXED_ORDERING : 0));
	error = errno;
	close(e.fd); /* the registration keeps its own reference */
	if (ret->mr)
		return 0;
	return rdma_fail(f, RDMA_STEP_REGISTER_DMABUF, error,
			 "ibv_reg_dmabuf_mr of %zu bytes by %s answers error %d (%s)", size_of(b),
			 n->port.device, error, strerror(error));
}

int region_open(const struct nic *n, const struct buffer *b, enum region_way way, bool relaxed,
		struct region *ret, struct rdma_failure *f)
{
	*ret = (struct region){.at = b->at};
	return way == REGION_DMABUF ? open_by_dmabuf(n, b, relaxed, ret, f)
				    : open_by_address(n, b, way, relaxed, ret, f);
}

void region_close(const struct nic *n, struct region *r)
{
	if (r->mr)
		n->v->dereg_mr(r->mr);
	*r = (struct region){0};
}
