/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as threads that call NCCL's functions on the host back end, and check what comes out. */
#pragma once

#include "nccl/functions.h"

#include "device/device.h"

#include <pthread.h>
#include <stdbool.h>

#define RIG_RANKS   4
#define RIG_STREAMS 3

enum rig_operation {
	RIG_ALL_REDUCE,
	RIG_REDUCE,
	RIG_REDUCE_SCATTER,
	RIG_ALL_GATHER,
	RIG_BROADCAST,
	RIG_BCAST,
	RIG_ALL_TO_ALL,
	RIG_OPERATIONS
};

struct rig;
struct rig_use; /* a call under way, with its memory */

struct rank {
	struct rig *rig;
	struct ncclComm *comm;
	int me, n; /* in it */
	struct device_set *set;
	struct stream streams[RIG_STREAMS];
	void *native[RIG_STREAMS];
	int another; /* RIG_NAME_TAKEN: a descriptor */
	char error[256];
};

struct rig {
	int n;
	struct rank ranks[RIG_RANKS];
	struct nccl_id id;
	pthread_barrier_t barrier;
	_Atomic(unsigned long) calls, zeros; /* collectives called, and those of no element */
	unsigned reached;                    /* what the stand-in had counted before */
};

struct rig *rig_new(int n);
void rig_free(struct rig *g);

enum rig_way {
	RIG_SHIM,
	RIG_LAST_WITHOUT, /* the last rank calls the real functions */
	RIG_NOT_BLOCKING,
	RIG_NAME_TAKEN, /* somebody else announces the last rank */
};

/* What goes wrong in this process while it makes its communicator. */
struct rig_trouble {
	/* What the shim's device of this rank is like; `every`: of all ranks. */
	struct rig_device {
		int rank;
		bool every;
		bool refused;     /* the memory of other ranks */
		uint64_t bytes;   /* of its memory; 0: enough */
		const char *name; /* NULL: as it is */
		const char *pci;  /* the same */
		unsigned desktop; /* it shows one */
	} device;
	bool little_memory;   /* hardly any is left */
	unsigned allocation;  /* this one fails, from 1; 0: none */
	unsigned descriptors; /* so many can still be opened; 0: no limit */
	bool small_files;     /* less in a file than a simulated device has of memory */
};
extern struct rig_trouble rig_trouble;

enum rig_taken { RIG_NONE, RIG_ALL, RIG_ALL_OR_NONE };

/*
 * All ranks make a communicator and run `what`, each in its thread; what is left of the
 * communicator is destroyed.
 */
void rig_run_all(struct rig *g, void (*what)(struct rank *r), enum rig_way way);
/* One rank, in a process of its own; its exit status. */
int rig_process(const struct nccl_id *id, int me, int n, void (*what)(struct rank *r),
		enum rig_taken taken);

/* Another communicator for the rank. */
void rig_set(struct rank *r, struct ncclComm *comm);
/* Starts a call. A failure is kept in the rank. */
struct rig_use *rig_start(struct rank *r, int stream, enum rig_operation o, size_t count, int type,
			  int op, int root, bool in_place);
/* Waits and compares. */
void rig_finish(struct rank *r, struct rig_use *u);
/* Waits, whatever came out. */
void rig_drop(struct rank *r, struct rig_use *u);
/* All of it; NCCL's status. */
int rig_run(struct rank *r, int stream, enum rig_operation o, size_t count, int type, int op,
	    int root, bool in_place);

void rig_check(struct rank *r, int status);
void rig_fail(struct rank *r, const char *what);
/* Prints the reasons. */
bool rig_failed(const struct rig *g);
unsigned long rig_calls(const struct rig *g);
/* How many collectives the stand-in has seen since rig_new, those of no element left out. */
unsigned long rig_reached(void);

/* How many locks this thread has taken, those of libraries left out. */
unsigned long rig_locks(void);

/* A random program of groups, splits, aborts, destroys and calls that all ranks run. */
bool rig_random(unsigned seed, unsigned rounds);
/* The same, as these bytes say. */
bool rig_play(const unsigned char *bytes, size_t n);
