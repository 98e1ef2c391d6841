// SPDX-License-Identifier: Apache-2.0
/*
 * Flaws of a path that only a kernel meets while it runs, for the host back end: a cache that an
 * acquire does not empty, stores that a flag overtakes, wrong addresses.
 */
#include "kernels/native_flaw.h"

#include <stdlib.h>
#include <string.h>

#define LINE 16ul   /* bytes of a load or store */
#define PAGE 4096ul /* how far loads go astray */
/* Cached ones, or stores that wait. */
#define LINES 1024

/* Of one block: as a multiprocessor has a cache and a queue of stores of its own. */
struct native_block_flaw {
	struct native_flaw flaw;
	struct {
		_Alignas(16) unsigned char bytes[LINE];
		u64 address; /* 0: empty */
	} lines[LINES];
	u64 held; /* overtake: how many of them wait, oldest first */
	u64 adds; /* lossy */
};

struct native_block_flaw *native_flaw_new(const struct native_flaw *flaw)
{
	struct native_block_flaw *f = NULL;

	if (flaw && flaw->kind != NATIVE_FLAW_NONE)
		f = aligned_alloc(LINE, (sizeof(*f) + LINE - 1) / LINE * LINE);
	if (!f)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->flaw = *flaw;
	return f;
}

static int is_meant(const struct native_block_flaw *f, enum native_flaw_kind kind, u64 address)
{
	return f->flaw.kind == kind && address >= f->flaw.from && address + LINE <= f->flaw.to;
}

/* Direct mapped, and never emptied. */
static u64 load_cached(struct native_block_flaw *f, u64 address)
{
	const u64 i = address / LINE % LINES;

	if (f->lines[i].address != address) {
		memcpy(f->lines[i].bytes, (const void *)address, LINE);
		f->lines[i].address = address;
	}
	return (u64)f->lines[i].bytes;
}

u64 native_flaw_load(struct native_block_flaw *f, u64 address)
{
	if (is_meant(f, NATIVE_CACHED, address))
		return load_cached(f, address);
	if (is_meant(f, NATIVE_ASTRAY, address) && is_meant(f, NATIVE_ASTRAY, address + PAGE))
		return address + PAGE;
	return address;
}

static void store_held(struct native_block_flaw *f)
{
	for (u64 i = 0; i < f->held; i++)
		memcpy((void *)f->lines[i].address, f->lines[i].bytes, LINE);
	f->held = 0;
}

int native_flaw_store(struct native_block_flaw *f, u64 address, const void *bytes)
{
	if (!is_meant(f, NATIVE_OVERTAKE, address))
		return 0;
	if (f->held == LINES)
		store_held(f);
	f->lines[f->held].address = address;
	memcpy(f->lines[f->held++].bytes, bytes, LINE);
	return 1;
}

int native_flaw_loses_add(struct native_block_flaw *f, u64 address)
{
	return is_meant(f, NATIVE_LOSSY, address) && f->adds++ % 16 == 15;
}

void native_flaw_release(struct native_block_flaw *f, u64 address)
{
	if (is_meant(f, NATIVE_OVERTAKE, address))
		store_held(f);
}

void native_flaw_free(struct native_block_flaw *f)
{
	if (f)
		store_held(f);
	free(f);
}
