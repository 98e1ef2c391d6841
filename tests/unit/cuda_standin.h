/* SPDX-License-Identifier: Apache-2.0 */
/* What a test tells the stand-in for the CUDA driver to be, and what it then counts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct cuda_standin {
	int devices;
	size_t memory_bytes; /* of each; 0: no limit */
	int desktop;         /* the device that shows one, by CUDA's number; -1: none */
	bool no_peers;
	bool nvlink;          /* between all */
	bool no_compression;  /* the devices offer none */
	bool not_compressed;  /* they do, and memory is plain all the same */
	bool reads_pageable;  /* the devices use any memory of the process */
	bool no_created_host; /* an old driver, which creates memory of devices only */
	const char *fail;     /* exported name of the function that fails; "*": any; NULL: none */
	unsigned fail_nth;
	int fail_result;
	int fault;           /* not 0: what every call answers, as after a fault of the GPU */
	const char *jit_log; /* what a failing compilation writes */
	/* Runs a kernel; true: it does not end as long as `running` is set. */
	bool (*launch)(const char *name, const void *args, unsigned blocks, unsigned threads);
	bool running;

	/* counted */
	unsigned calls; /* that could fail, since fail was set to "*" or to their name */
	unsigned inits, direct_copies, staged_copies, loaded_functions;
	int policy; /* of memory, of the thread that last asked for pinned memory; -1: not known */
	unsigned hangs; /* calls that would have waited for a kernel that does not end */
	int depth;      /* of the stack of contexts */
	/* what there is now */
	int contexts, modules, allocations, pinned, registered, handles, ranges, mappings, opened;
	int streams, events, graphs, instances;
};

/* Exported by the stand-in as "cuda_standin". */
