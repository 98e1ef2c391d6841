// SPDX-License-Identifier: Apache-2.0
#include "nccl/comms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACE_BITS 8
#define PLACES     (1u << PLACE_BITS)
#define CACHE_LINE 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct comm *buckets[PLACES];

/*
 * What decides of calls, read without the lock. A communicator has one of two places, or none if
 * both are taken: then its calls take the lock. A place is nobody's to free: who reads it while
 * another thread aborts the communicator passes on, or looks again with the lock.
 */
static struct place {
	_Alignas(CACHE_LINE) _Atomic(const struct ncclComm *) handle;
	_Atomic(struct engine_facts) facts;
	atomic_ulong passed;
} places[PLACES];

atomic_uint comms_engines;

/* ---- keys ---- */

/* FNV-1a. */
static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 0x100000001b3u;
	return h;
}

struct comms_key comms_key(const struct comms_key *parent, const void *bytes, size_t n)
{
	uint64_t a = 0xcbf29ce484222325u, b = 0x84222325cbf29ce4u;
	struct comms_key key;

	if (parent) {
		a = hash(a, parent->text, sizeof(parent->text));
		b = hash(b, parent->text, sizeof(parent->text));
	}
	a = hash(a, bytes, n);
	b = hash(hash(b, &n, sizeof(n)), bytes, n);
	memset(&key, 0, sizeof(key)); /* it is hashed as a whole */
	snprintf(key.text, sizeof(key.text), "shim-%016lx%016lx", (unsigned long)a,
		 (unsigned long)b);
	return key;
}

bool comms_child_key(const struct ncclComm *handle, int color, struct comms_key *ret)
{
	struct comm *c = comms_get(handle);
	struct {
		unsigned split;
		int color;
	} which = {.color = color};

	if (!c)
		return false;
	pthread_mutex_lock(&lock);
	which.split = c->splits++;
	pthread_mutex_unlock(&lock);
	*ret = comms_key(&c->key, &which, sizeof(which));
	comms_put(c);
	return true;
}

/*
 * A count of the calls would not be the same on ranks that were excluded before. Without it two
 * communicators may have one key, but not at the same time: all their ranks have met under it
 * before NCCL lets any of them make the second one.
 */
bool comms_shrunk_key(const struct ncclComm *handle, const int *excluded, int n,
		      struct comms_key *ret)
{
	static const char kind[] = "shrunk";
	struct comm *c = comms_get(handle);

	if (!c || n < 0 || !excluded) {
		comms_put(c);
		return false;
	}
	*ret = comms_key(&c->key, kind, sizeof(kind));
	*ret = comms_key(ret, excluded, (size_t)n * sizeof(*excluded));
	comms_put(c);
	return true;
}

/* ---- the table ---- */

/* Handles are often at the same place of a page. */
static size_t hash_of(const struct ncclComm *handle)
{
	return (size_t)((uintptr_t)handle * 0x9e3779b97f4a7c15u >> (64 - PLACE_BITS));
}

static struct comm **find(const struct ncclComm *handle)
{
	struct comm **at = &buckets[hash_of(handle)];

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

struct comm *comms_get(const struct ncclComm *handle)
{
	struct comm *c;

	pthread_mutex_lock(&lock);
	c = *find(handle);
	if (c)
		atomic_fetch_add(&c->refs, 1);
	pthread_mutex_unlock(&lock);
	return c;
}

void comms_put(struct comm *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	engine_close(c->engine);
	free(c);
}

/* Of the two for this handle the one that has `what`. NULL: neither has. */
static struct place *find_place(const struct ncclComm *handle, const struct ncclComm *what)
{
	struct place *p = &places[hash_of(handle)], *other = &places[hash_of(handle) ^ 1];

	if (atomic_load_explicit(&p->handle, memory_order_acquire) == what)
		return p;
	return atomic_load_explicit(&other->handle, memory_order_acquire) == what ? other : NULL;
}

/* With the lock held. */
static void take_place(const struct comm *c)
{
	struct place *p = c->engine ? find_place(c->handle, NULL) : NULL;

	if (!p)
		return;
	atomic_store_explicit(&p->facts, engine_facts(c->engine), memory_order_relaxed);
	atomic_store_explicit(&p->passed, 0, memory_order_relaxed);
	atomic_store_explicit(&p->handle, c->handle, memory_order_release);
}

static void leave_place(const struct comm *c)
{
	struct place *p = find_place(c->handle, c->handle);

	if (!p)
		return;
	atomic_store_explicit(&p->handle, NULL, memory_order_release);
	engine_passed(c->engine, atomic_load_explicit(&p->passed, memory_order_relaxed));
}

bool comms_leave(const struct ncclComm *handle, enum onehop_operation operation, size_t count,
		 int type, int op, int root)
{
	struct place *p = handle ? find_place(handle, handle) : NULL;
	unsigned long passed;

	if (!p || !engine_leaves(atomic_load_explicit(&p->facts, memory_order_relaxed), operation,
				 count, type, op, root))
		return false;
	passed = atomic_load_explicit(&p->passed, memory_order_relaxed);
	atomic_store_explicit(&p->passed, passed + 1, memory_order_relaxed);
	return true;
}

struct comm *comms_remove(const struct ncclComm *handle)
{
	struct comm **at, *c;

	pthread_mutex_lock(&lock);
	at = find(handle);
	c = *at;
	if (c) {
		*at = c->next;
		leave_place(c);
	}
	pthread_mutex_unlock(&lock);
	if (c && c->engine)
		atomic_fetch_sub(&comms_engines, 1);
	return c;
}

struct comm *comms_new(struct ncclComm *handle, const struct comms_key *key)
{
	struct comm *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->handle = handle;
	c->key = *key;
	atomic_init(&c->refs, 1);
	return c;
}

void comms_add(struct comm *c)
{
	struct comm **at;

	comms_put(comms_remove(c->handle));
	if (c->engine)
		atomic_fetch_add(&comms_engines, 1);
	pthread_mutex_lock(&lock);
	at = &buckets[hash_of(c->handle)];
	c->next = *at;
	*at = c;
	take_place(c);
	pthread_mutex_unlock(&lock);
}

/* ---- fork ---- */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/*
 * NCCL's communicators do not work in a child, and neither do GPUs: what belongs to them is left
 * alone.
 */
static void after_fork_in_child(void)
{
	memset(buckets, 0, sizeof(buckets));
	for (size_t i = 0; i < PLACES; i++)
		atomic_store_explicit(&places[i].handle, NULL, memory_order_relaxed);
	atomic_store(&comms_engines, 0);
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
