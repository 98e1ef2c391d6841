// SPDX-License-Identifier: Apache-2.0
#include "collective/live.h"

#include "base/err.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define PLACES 4096u /* a power of two */

/*
 * The only state of the process that this library has: a caller's pointer can be looked up nowhere
 * else. An address is at its own place, or behind it without an empty one between.
 */
static uintptr_t places[PLACES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of who writes */

enum { EMPTY, LEFT }; /* LEFT: there was one */

#define FORKED 1u /* added to an address: of the process that forked this one. No address is odd */

static unsigned place_of(uintptr_t address)
{
	return (unsigned)((address >> 4) * 2654435761u >> 7);
}

static uintptr_t *at(unsigned place)
{
	return &places[place % PLACES];
}

static bool can_be(uintptr_t address)
{
	return address > LEFT && !(address & FORKED);
}

static uintptr_t *find_as(uintptr_t address, uintptr_t entry)
{
	for (unsigned i = 0; i < PLACES; i++) {
		uintptr_t *p = at(place_of(address) + i);
		const uintptr_t there = __atomic_load_n(p, __ATOMIC_ACQUIRE);

		if (there == entry)
			return p;
		if (there == EMPTY)
			return NULL;
	}
	return NULL;
}

static uintptr_t *find(uintptr_t address)
{
	return find_as(address, address);
}

static bool put(uintptr_t address)
{
	for (unsigned i = 0; i < PLACES; i++) {
		uintptr_t *p = at(place_of(address) + i);

		if (*p > LEFT)
			continue;
		__atomic_store_n(p, address, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/*
 * A child of fork() has the memory of communicators, but neither the threads nor the driver's state
 * that belong to them.
 */
static void disown(void)
{
	pthread_mutex_init(&lock, NULL); /* another thread may have held it */
	for (unsigned i = 0; i < PLACES; i++)
		if (places[i] > LEFT)
			places[i] |= FORKED;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, disown);
}

int live_add(const void *comm)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	bool done;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	done = put((uintptr_t)comm);
	pthread_mutex_unlock(&lock);
	return done ? 0 : err_set(EMFILE, "%u communicators are open, and no more can be", PLACES);
}

bool live_remove(const void *comm)
{
	uintptr_t *p;

	pthread_mutex_lock(&lock);
	p = can_be((uintptr_t)comm) ? find((uintptr_t)comm) : NULL;
	if (p)
		__atomic_store_n(p, LEFT, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return p != NULL;
}

bool live_has(const void *comm)
{
	return can_be((uintptr_t)comm) && find((uintptr_t)comm);
}

bool live_was_forked(const void *comm)
{
	return can_be((uintptr_t)comm) && find_as((uintptr_t)comm, (uintptr_t)comm | FORKED);
}
