// SPDX-License-Identifier: Apache-2.0
/* The host back end's memory: a memfd a device, handed to other processes as file descriptor. */
#include "base/err.h"
#include "base/memory_file.h"
#include "device/host_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t pages(uint64_t n)
{
	return (n + HOST_PAGE - 1) / HOST_PAGE * HOST_PAGE;
}

/*
 * Twice as large as its limit, because a page stays free behind every block: what arrives a page
 * off must not spoil others. The file is sparse.
 */
int host_arena_open(struct host_arena *a, uint64_t limit)
{
	a->limit = pages(limit);
	a->mapped = 2 * a->limit;
	a->fd = memory_file(a->mapped);
	if (a->fd < 0)
		return err_sys(-a->fd, "a host device's memory of %lu bytes", limit);
	a->base =
		mmap(NULL, a->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, a->fd, 0);
	if (a->base == MAP_FAILED) {
		a->base = NULL;
		return err_sys(errno, "mapping a host device's memory of %lu bytes", limit);
	}
	return 0;
}

void host_arena_close(struct host_arena *a)
{
	if (a->base)
		munmap(a->base, a->mapped);
	if (a->fd >= 0)
		close(a->fd);
}

static uint64_t end_of(const struct host_block *b)
{
	return b->offset + pages(b->m.size) + HOST_PAGE;
}

/* Puts b where it fits first, a free page behind it. */
static int arena_add(struct host_arena *a, struct host_block *b)
{
	struct host_block **at = &a->blocks;

	for (b->offset = 0; *at && end_of(b) > (*at)->offset; at = &(*at)->next)
		b->offset = end_of(*at);
	if (end_of(b) > a->mapped)
		return err_set(
			ENOMEM,
			"the free memory of a simulated device is too fragmented for %lu bytes",
			b->m.size);
	b->next = *at;
	*at = b;
	a->used += pages(b->m.size);
	return 0;
}

static void arena_remove(struct host_arena *a, struct host_block *b)
{
	struct host_block **at = &a->blocks;

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	a->used -= pages(b->m.size);
	fallocate(a->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)b->offset,
		  (off_t)pages(b->m.size));
}

/* Makes a block like this one, under an id. */
static int keep(struct host_set *h, const struct host_block *like, struct memory *ret)
{
	struct host_block *b = malloc(sizeof(*b));
	int r;

	if (!b)
		return err_set(ENOMEM, "no memory for a handle");
	*b = *like;
	r = host_table_add(&h->blocks, b, &b->m.id);
	if (r == 0 && b->arena >= 0 && (r = arena_add(&h->arenas[b->arena], b)) != 0)
		host_table_drop(&h->blocks, b->m.id);
	if (r != 0)
		free(b);
	else
		*ret = b->m;
	return r;
}

int host_alloc(struct device_set *s, int device, enum memory_kind kind, uint64_t size,
	       struct memory *ret)
{
	struct host_set *h = host_of(s);
	const bool pinned = kind == MEMORY_PINNED || kind == MEMORY_SHARED;
	const bool hosts = pinned || kind == MEMORY_HOST;
	struct host_block like = {.m = {.size = size, .kind = kind, .device = -1, .owner = -1},
				  .arena = hosts ? (int)s->n : device};
	int r = pinned ? 0 : host_check_device(h, device);
	const struct host_arena *a;

	if (r < 0)
		return r;
	if (kind > MEMORY_HOST || size == 0)
		return err_set(EINVAL, "%lu bytes of kind %d cannot be allocated", size, kind);
	a = &h->arenas[like.arena];
	if (size > a->limit || pages(size) > a->limit - a->used)
		return err_set(ENOMEM, "%s has no memory left for %lu bytes: %lu of %lu are free",
			       hosts ? "the host" : s->info[device].name, size, a->limit - a->used,
			       a->limit);
	if (!pinned)
		like.m.device = device;
	if (!hosts)
		like.m.owner = s->info[device].number;
	return keep(h, &like, ret);
}

int host_wrap(struct device_set *s, int device, uint64_t address, uint64_t size, struct memory *ret)
{
	struct host_set *h = host_of(s);
	struct host_block like = {
		.m = {.size = size, .kind = MEMORY_CALLER, .device = device, .owner = -1},
		.arena = -1,
		.base = (char *)address};
	int r = device == -1 ? 0 : host_check_device(h, device);

	if (r < 0)
		return r;
	if (device >= 0)
		like.m.owner = s->info[device].number;
	return keep(h, &like, ret);
}

struct host_block *host_block_of(struct host_set *h, const struct memory *m)
{
	struct host_block *b = host_table_get(&h->blocks, m->id);

	if (!b)
		err_set(EINVAL, "memory %lu does not (or no longer) belong to this set", m->id);
	return b;
}

int host_check_range(const struct memory *m, uint64_t offset, uint64_t n)
{
	if (offset <= m->size && n <= m->size - offset)
		return 0;
	return err_set(EINVAL, "%lu bytes at %lu are not within memory of %lu bytes", n, offset,
		       m->size);
}

int host_free(struct device_set *s, const struct memory *m)
{
	struct host_set *h = host_of(s);
	struct host_block *b = host_block_of(h, m);

	if (!b)
		return -EINVAL;
	if (b->arena >= 0)
		arena_remove(&h->arenas[b->arena], b);
	if (b->window) {
		host_flaw_keep(h, b);
		host_window_free(h, b->window);
	}
	host_table_drop(&h->blocks, m->id);
	free(b);
	return 0;
}

char *host_real(struct host_set *h, const struct host_block *b)
{
	return b->arena >= 0 ? h->arenas[b->arena].base + b->offset : b->base;
}

/*
 * Through a window that changes nothing a device sees memory where its owner does, so that
 * ThreadSanitizer, which compares addresses, knows both as one.
 */
static char *seen_base(const struct host_set *h, const struct host_peer *p, int arena)
{
	const bool plain = p->window->fault == FAULT_NONE && p->window->gbps <= 0;

	return plain ? h->arenas[arena].base : p->window->base;
}

char *host_seen(struct host_set *h, const struct host_block *b, int device)
{
	const struct host_peer *p;

	if (b->arena < 0 || b->arena == device || (size_t)b->arena == h->set.n)
		return host_real(h, b);
	p = &h->peers[(size_t)device * h->set.n + (size_t)b->arena];
	return p->on ? seen_base(h, p, b->arena) + b->offset : NULL;
}

/* All memory of the process is a simulated device's, but for the page that NULL is in. */
int host_memory_at(struct device_set *s, int device, uint64_t address, uint64_t *ret_begin,
		   uint64_t *ret_end)
{
	const int r = host_check_device(host_of(s), device);

	if (r < 0)
		return r;
	if (address < HOST_PAGE)
		return err_set(EFAULT, "there is no memory at 0x%lx", address);
	*ret_begin = HOST_PAGE;
	*ret_end = UINT64_MAX;
	return 0;
}

int host_address(struct device_set *s, const struct memory *m, int device, uint64_t *ret)
{
	struct host_set *h = host_of(s);
	const struct host_block *b = host_block_of(h, m);
	int r = host_check_device(h, device);
	char *at;

	if (!b || r < 0)
		return -EINVAL;
	at = host_seen(h, b, device);
	if (!at)
		return err_set(EACCES, "%s has no peer access to %s", s->info[device].name,
			       s->info[b->arena].name);
	*ret = (uint64_t)at;
	return 0;
}

/* Which kinds of memory go how; both are file descriptors here. */
static const bool goes[][MEMORY_CALLER + 1] = {
	[EXPORT_FD] = {[MEMORY_EXPORTABLE] = true,
		       [MEMORY_PINNED] = true,
		       [MEMORY_SHARED] = true,
		       [MEMORY_COMPRESSIBLE] = true,
		       [MEMORY_HOST] = true},
	[EXPORT_IPC] = {[MEMORY_DEVICE] = true},
};

static int check_kind(uint32_t kind)
{
	if (kind == EXPORT_FD || kind == EXPORT_IPC)
		return 0;
	return err_set(
		ENOTSUP,
		"memory of simulated devices can be shared only as a file descriptor or by IPC");
}

/* What the blob of an export holds. */
struct origin {
	uint64_t id;
	uint32_t kind; /* enum memory_kind */
	int32_t maker; /* device_info.number of a device of the set that made it */
};

_Static_assert(sizeof(struct origin) <= sizeof(((struct memory_export *)0)->blob), "memory_export");

int host_export(struct device_set *s, const struct memory *m, enum export_kind kind,
		struct memory_export *ret)
{
	struct host_set *h = host_of(s);
	const struct host_block *b = host_block_of(h, m);
	int fd, r = check_kind(kind);

	if (!b)
		return -EINVAL;
	if (r < 0)
		return r;
	if (!goes[kind][b->m.kind])
		return err_set(EINVAL, "memory %lu is not exportable", m->id);
	fd = fcntl(h->arenas[b->arena].fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(errno, "exporting memory %lu", m->id);
	*ret = (struct memory_export){.kind = kind,
				      .owner = b->m.owner,
				      .size = b->m.size,
				      .offset = b->offset,
				      .fd = fd};
	memcpy(ret->blob,
	       &(struct origin){m->id, b->m.kind,
				s->info[b->m.device < 0 ? 0 : b->m.device].number},
	       sizeof(struct origin));
	return 0;
}

static int check_export(const struct memory_export *e, uint64_t *ret_file_size)
{
	struct stat st;
	int r = check_kind(e->kind);

	if (r < 0)
		return r;
	if (fstat(e->fd, &st) < 0)
		return err_sys(errno, "the file descriptor of memory to import");
	if (e->size == 0 || e->offset > (uint64_t)st.st_size ||
	    e->size > (uint64_t)st.st_size - e->offset)
		return err_set(EINVAL, "imported memory exceeds its file of %ld bytes",
			       (long)st.st_size);
	*ret_file_size = (uint64_t)st.st_size;
	return 0;
}

/*
 * What is wrong with memory as the initiator sees it: some faults only one kind of memory has. The
 * host's own lies on no way between devices, and has no other fault.
 */
static enum fault_kind fault_of(const struct host_set *h, int initiator,
				const struct memory_export *e, const struct origin *o)
{
	static const struct {
		enum fault_kind fault;
		enum memory_kind kind;
		enum fault_kind is; /* what it comes to */
	} rows[] = {{FAULT_COMPTAG, MEMORY_COMPRESSIBLE, FAULT_MIRROR},
		    {FAULT_PACKED, MEMORY_COMPRESSIBLE, FAULT_PACKED},
		    {FAULT_HOST_SHIFT, MEMORY_HOST, FAULT_DISPLACE}};
	enum fault_kind fault = host_fault(h, initiator, o->maker);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].fault == fault)
			return rows[i].kind == o->kind ? rows[i].is : FAULT_NONE;
	return e->owner < 0 ? FAULT_NONE : host_fault(h, initiator, e->owner);
}

int host_import(struct device_set *s, int device, const struct memory_export *e, struct memory *ret)
{
	struct host_set *h = host_of(s);
	struct host_block like = {.m = {.size = e->size,
					.kind = MEMORY_IMPORTED,
					.device = device,
					.owner = e->owner},
				  .arena = -1,
				  .offset = e->offset};
	uint64_t file_size = 0, offset = e->offset;
	struct origin origin;
	int r = host_check_device(h, device);

	memcpy(&origin, e->blob, sizeof(origin));
	if (r == 0)
		r = check_export(e, &file_size);
	if (r == 0)
		r = host_window_new(h, e->fd, file_size, s->info[device].number, e->owner,
				    fault_of(h, s->info[device].number, e, &origin), &like.window);
	if (r != 0)
		return r;
	like.made_as = origin.id;
	if (e->kind == EXPORT_IPC && like.window->fault == FAULT_IPC_OFFSET)
		offset = 0;
	like.base = host_flaw_recall(h, &like, like.window->base + offset);
	if ((r = keep(h, &like, ret)) < 0)
		host_window_free(h, like.window);
	return r;
}

/*
 * Word by word where both ends allow it, since kernels may be writing: a flag is seen whole, and
 * what was written before it is seen too.
 */
static void transfer(char *to, const char *from, size_t n, bool from_device)
{
	for (; n && (uintptr_t)(from_device ? from : to) % 4; n--)
		*to++ = *from++;
	for (; n >= 4; n -= 4, to += 4, from += 4) {
		u32 word;

		if (from_device) {
			word = __atomic_load_n((const u32 *)from, __ATOMIC_ACQUIRE);
			memcpy(to, &word, 4);
		} else {
			memcpy(&word, from, 4);
			__atomic_store_n((u32 *)to, word, __ATOMIC_RELEASE);
		}
	}
	while (n--)
		*to++ = *from++;
}

static int locate(struct device_set *s, const struct memory *m, uint64_t offset, size_t n,
		  char **ret)
{
	struct host_set *h = host_of(s);
	const struct host_block *b = host_block_of(h, m);
	int r;

	if (!b)
		return -EINVAL;
	r = host_check_range(&b->m, offset, n);
	if (r == 0)
		*ret = host_real(h, b) + offset;
	return r;
}

int host_memory_read(struct device_set *s, const struct memory *m, uint64_t offset, void *to,
		     size_t n)
{
	char *at;
	int r = locate(s, m, offset, n, &at);

	if (r == 0)
		transfer(to, at, n, true);
	return r;
}

int host_memory_write(struct device_set *s, const struct memory *m, uint64_t offset,
		      const void *from, size_t n)
{
	char *at;
	int r = locate(s, m, offset, n, &at);

	if (r == 0)
		transfer(at, from, n, false);
	return r;
}
