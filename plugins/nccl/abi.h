/* SPDX-License-Identifier: Apache-2.0 */
/* What of NCCL's binary interface is relied on: sizes, numbers, and no more. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum nccl_status {
	NCCL_SUCCESS,
	NCCL_CUDA_ERROR,
	NCCL_SYSTEM_ERROR,
	NCCL_INTERNAL_ERROR,
	NCCL_INVALID_ARGUMENT,
	NCCL_INVALID_USAGE,
	NCCL_REMOTE_ERROR,
	NCCL_IN_PROGRESS,
};

struct nccl_id {
	char bytes[128];
};

struct nccl_team {
	int ranks, rank, stride;
};

struct nccl_multimem {
	void *base;
};

/*
 * Behind each other in every release: how much of the struct the application knows, a magic number,
 * the version that it was compiled for, and whether calls block.
 */
struct nccl_config {
	size_t size;
	unsigned magic, version;
	int blocking;
};
#define NCCL_CONFIG_MAGIC 0xcafebeefu

#define NCCL_SHRINK_ABORT 1 /* operations of the parent are to end first */

/* Only their addresses pass through. */
struct ncclComm;
struct nccl_device_comm;
struct nccl_param;
struct nccl_properties;
struct nccl_requirements;
struct nccl_resource;
struct nccl_sim_info;
struct nccl_wait_signal;
struct nccl_window;
