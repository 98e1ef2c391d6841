/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libonehop: collective operations between the GPUs of one host.
 *
 * ABI version 0: anything here may change in any release until 1.0.
 *
 * Functions return 0, or a negative errno; onehop_error() then gives one sentence. None of them prints, ends the
 * process or starts another one.
 */
#ifndef ONEHOP_H
#define ONEHOP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ONEHOP_ABI_VERSION 0
#define ONEHOP_RANKS_MAX   8

/* One rank of a communicator. One thread at a time may call functions for it. */
struct onehop_comm;

/* Numbered as in NCCL. */
enum onehop_type {
	ONEHOP_INT8,
	ONEHOP_UINT8,
	ONEHOP_INT32,
	ONEHOP_UINT32,
	ONEHOP_INT64,
	ONEHOP_UINT64,
	ONEHOP_FLOAT16,
	ONEHOP_FLOAT32,
	ONEHOP_FLOAT64,
	ONEHOP_BFLOAT16,
	ONEHOP_TYPE_N
};

/*
 * Ranks are reduced in ascending order, whatever the size and the algorithm: the result has the same
 * bits on every rank and in every run. ONEHOP_FLOAT16 and ONEHOP_BFLOAT16 are reduced as float and
 * rounded once. Sums and products of integers wrap. ONEHOP_AVG divides the (wrapped) sum of integers
 * towards zero, and multiplies that of floats by 1 / ranks. With a NaN, ONEHOP_MAX and ONEHOP_MIN give
 * one of the operands, the same one on all ranks.
 */
enum onehop_op { ONEHOP_SUM, ONEHOP_PROD, ONEHOP_MAX, ONEHOP_MIN, ONEHOP_AVG, ONEHOP_OP_N };

/* All zero: the defaults. */
struct onehop_options {
	unsigned limit_ms; /* how long an operation waits for another rank; 0: 30 s */
	int no_p2p;        /* not 0: all data goes through the host's memory */
};

/*
 * Opens all ranks in this process: rank i is CUDA device devices[i] (devices NULL: device i). 1 <=
 * n <= ONEHOP_RANKS_MAX. Fills ret[0] to ret[n - 1], each to be closed. options may be NULL. Device
 * memory used: up to 65 MiB per GPU, in addition to the driver's own. Where some pair has no P2P
 * access, all data goes through pinned host memory instead: up to 65 MiB for all ranks together.
 * -ENODEV: no driver or no such device. -EBUSY: another process uses the device exclusively.
 */
int onehop_open_all(int n, const int *devices, const struct onehop_options *options,
		    struct onehop_comm **ret);

/*
 * Opens one rank. The others are other processes of this host and user. All pass the same key (1 to 63
 * bytes, used by this run alone), n and options. Waits at most options->limit_ms for the others.
 * device: CUDA's number in this process.
 * -ETIMEDOUT: a rank did not come. -EINVAL or -EPROTO: they disagree.
 */
int onehop_open_rank(const char *key, int rank, int n, int device,
		     const struct onehop_options *options, struct onehop_comm **ret);

/*
 * Operations of this rank that still wait for another one give up. Frees what the communicator
 * holds; for ranks of one process that happens when the last one is closed. Afterwards streams with
 * its operations must not be used, nor graphs with them launched. NULL does nothing.
 */
void onehop_close(struct onehop_comm *comm);

/*
 * The operations below only enqueue work on `stream`, a CUstream (cudaStream_t) of the rank's device
 * and primary context. They can be captured in a graph, which can be launched many times. All ranks
 * call the same operations in the same order, with the same count, type, op and root. Two operations
 * of one communicator must not run at the same time: use one stream, or events between two.
 * Buffers are any memory that kernels of the rank's device can use, at any address, and need not be registered.
 * in == out is allowed. So is out == in + rank * count for onehop_reduce_scatter, and
 * in == out + rank * count for onehop_all_gather (in elements).
 *
 * -EINVAL: a wrong argument; nothing was enqueued. -ETIMEDOUT, -ECANCELED: an earlier operation gave
 * up (see onehop_check), and the communicator cannot be used any more.
 * Ranks that disagree on count, type or op are not detected: they may time out, or results may be wrong.
 */

/* out[i] = reduction of in[i] of all ranks. count: elements of in and of out. */
int onehop_all_reduce(struct onehop_comm *comm, const void *in, void *out, size_t count,
		      enum onehop_type type, enum onehop_op op, void *stream);
/* The same at `root` only. out of other ranks is not used. */
int onehop_reduce(struct onehop_comm *comm, const void *in, void *out, size_t count,
		  enum onehop_type type, enum onehop_op op, int root, void *stream);
/* out[i] = reduction of in[rank * count + i] of all ranks. count: elements of out. */
int onehop_reduce_scatter(struct onehop_comm *comm, const void *in, void *out, size_t count,
			  enum onehop_type type, enum onehop_op op, void *stream);
/* out[r * count + i] = in[i] of rank r. count: elements of in. */
int onehop_all_gather(struct onehop_comm *comm, const void *in, void *out, size_t count,
		      enum onehop_type type, void *stream);
/* out[i] = in[i] of root. count: elements of in and of out. in of other ranks is not used. */
int onehop_broadcast(struct onehop_comm *comm, const void *in, void *out, size_t count,
		     enum onehop_type type, int root, void *stream);
/* out[r * count + i] = in[rank * count + i] of rank r. count: elements for each rank. */
int onehop_all_to_all(struct onehop_comm *comm, const void *in, void *out, size_t count,
		      enum onehop_type type, void *stream);
/* Later work in the stream starts after all ranks have reached this operation. */
int onehop_barrier(struct onehop_comm *comm, void *stream);

/*
 * Whether an operation gave up while it ran; does not wait. 0; -ETIMEDOUT: a rank did not come in time,
 * and the sentence names it; -ECANCELED: the communicator was closed. An operation that gave up still
 * ends its kernel normally, so call this after synchronising the stream.
 */
int onehop_check(struct onehop_comm *comm);

int onehop_rank(const struct onehop_comm *comm);
int onehop_size(const struct onehop_comm *comm);

/* The sentence of this thread's last error; valid until its next call. Never NULL. */
const char *onehop_error(void);

#ifdef __cplusplus
}
#endif
#endif
