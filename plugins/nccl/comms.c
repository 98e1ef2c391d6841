// SPDX-License-Identifier: Apache-2.0
#include "nccl/comms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 64u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct comm *buckets[BUCKETS];

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
 * A count of the calls would not be the same on ranks that were excluded before. Without it two communicators may have one
 * key, but not at the same time: all their ranks have met under it before NCCL lets any of them make the second one.
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

static struct comm **bucket_of(const struct ncclComm *handle)
{
	return &buckets[((uintptr_t)handle >> 6) % BUCKETS];
}

static struct comm **find(const struct ncclComm *handle)
{
	struct comm **at = bucket_of(handle);

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

struct comm *comms_remove(const struct ncclComm *handle)
{
	struct comm **at, *c;

	pthread_mutex_lock(&lock);
	at = find(handle);
	c = *at;
	if (c)
		*at = c->next;
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
	at = bucket_of(c->handle);
	c->next = *at;
	*at = c;
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

/* NCCL's communicators do not work in a child, and neither do GPUs: what belongs to them is left alone. */
static void after_fork_in_child(void)
{
	memset(buckets, 0, sizeof(buckets));
	atomic_store(&comms_engines, 0);
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
