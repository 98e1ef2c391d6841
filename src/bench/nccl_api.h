/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's binary interface, as far as it is used here (nccl.h, 2.4 to 2.30), and where libnccl is
 * found.
 */
#pragma once

#include <limits.h>
#include <stddef.h>

struct ncclComm;
struct nccl_window;

#define NCCL_SYMMETRIC_WINDOW 1 /* NCCL_WIN_COLL_SYMMETRIC */

#define NCCL_UNIQUE_ID_BYTES 128

/* Passed by value, so that its layout is part of the interface. */
struct nccl_unique_id {
	char internal[NCCL_UNIQUE_ID_BYTES];
};

/* ncclResult_t, ncclDataType_t and ncclRedOp_t are ints; the last two are numbered as enum
 * element_type and enum reduce_op (kernels/args.h). */
enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };

/* clang-format off */
/*
 * X(member, required, result, parameters): the symbol is "nccl" and the member. Streams are CUDA's.
 */
#define NCCL_SYMBOLS(X) \
	X(GetVersion, true, int, (int *version)) \
	X(GetUniqueId, true, int, (struct nccl_unique_id *id)) \
	X(CommInitRank, true, int, (struct ncclComm **comm, int n, struct nccl_unique_id id, int rank)) \
	X(CommDestroy, true, int, (struct ncclComm *comm)) \
	X(CommAbort, true, int, (struct ncclComm *comm)) \
	X(CommGetAsyncError, true, int, (struct ncclComm *comm, int *result)) \
	X(GetErrorString, true, const char *, (int result)) \
	X(GetLastError, false, const char *, (struct ncclComm *comm)) /* 2.13 */ \
	X(GroupStart, true, int, (void)) \
	X(GroupEnd, true, int, (void)) \
	X(AllReduce, true, int, (const void *send, void *recv, size_t count, int type, int op, \
				 struct ncclComm *comm, void *stream)) \
	X(AllGather, true, int, (const void *send, void *recv, size_t count, int type, \
				 struct ncclComm *comm, void *stream)) \
	X(ReduceScatter, true, int, (const void *send, void *recv, size_t count, int type, int op, \
				     struct ncclComm *comm, void *stream)) \
	X(Broadcast, true, int, (const void *send, void *recv, size_t count, int type, int root, \
				 struct ncclComm *comm, void *stream)) \
	X(Reduce, true, int, (const void *send, void *recv, size_t count, int type, int op, int root, \
			      struct ncclComm *comm, void *stream)) \
	X(Send, true, int, (const void *send, size_t count, int type, int peer, \
			    struct ncclComm *comm, void *stream)) \
	X(Recv, true, int, (void *recv, size_t count, int type, int peer, \
			    struct ncclComm *comm, void *stream)) \
	X(AlltoAll, false, int, (const void *send, void *recv, size_t count, int type, \
				 struct ncclComm *comm, void *stream)) /* 2.28 */ \
	X(MemAlloc, false, int, (void **ret, size_t size)) /* 2.19, with the next */ \
	X(MemFree, false, int, (void *memory)) \
	X(CommWindowRegister, false, int, (struct ncclComm *comm, void *memory, size_t size, \
					   struct nccl_window **ret, int flags)) /* 2.27, with the next */ \
	X(CommWindowDeregister, false, int, (struct ncclComm *comm, struct nccl_window *window))
/* clang-format on */

struct nccl_api {
#define NCCL_MEMBER(member, required, result, parameters) result(*member) parameters;
	NCCL_SYMBOLS(NCCL_MEMBER)
#undef NCCL_MEMBER
	char path[PATH_MAX]; /* of the library that was loaded */
	int version;         /* 22809 */
};

/*
 * Loads `path`; NULL: libnccl.so.2 as the loader finds it, then in the usual folders and Python
 * wheels. 0, or -ENOENT (there is none), -ENOSYS (it lacks a symbol), -EIO (it cannot be asked)
 * with a sentence.
 */
int nccl_load(const char *path, struct nccl_api *ret);

/* Whether it has windows of memory for symmetric kernels: 0, or -ENOTSUP with a sentence. */
int nccl_has_windows(const struct nccl_api *api);

/* Whether it has 8-bit floats: 0, or -ENOTSUP with a sentence. */
int nccl_has_float8(const struct nccl_api *api);

/* 22809 as "2.28.9". */
void nccl_version_text(int version, char *buf, size_t size);
