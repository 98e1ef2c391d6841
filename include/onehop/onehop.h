/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libonehop: collective operations between the GPUs of one host.
 *
 * ABI version 0: anything here may change in any release until 1.0.
 *
 * Functions return 0, or a negative errno; onehop_error() then gives one sentence. None of them
 * prints, ends the process or starts another one.
 */
#ifndef ONEHOP_H
#define ONEHOP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ONEHOP_ABI_VERSION 0
#define ONEHOP_RANKS_MAX   8

/*
 * One rank of a communicator. One thread at a time may call functions for it, except onehop_abort
 * and onehop_check, which any thread may call at any time before onehop_close. A pointer to a
 * closed rank is refused by all functions, until another rank is opened at that address. A child of
 * fork() cannot use its parent's ranks: they are refused too, and onehop_close does nothing there.
 */
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
	ONEHOP_FLOAT8_E4M3,
	ONEHOP_FLOAT8_E5M2,
	ONEHOP_TYPE_N
};

/*
 * Ranks are reduced in ascending order, whatever the size and the algorithm: the result has the
 * same bits on every rank and in every run. But where all ranks are in groups of equal size that
 * share a link to the others (GPUs of one socket, or below one PCIe switch) or, where only some
 * pairs are direct, that reach each other, large all-reduces add up each group by itself first,
 * rounded to the element's type, and then the groups: also the same on every rank and in every run.
 * Where groups, also of different sizes, share such a link and all pairs are direct, reduces and
 * reduce-scatters, mostly large ones (but not of floats of 8 and 16 bits), begin with the rank
 * behind the one that gets the result and go round, so that this one comes last: the same in every
 * run too. ONEHOP_FLOAT16 and ONEHOP_BFLOAT16 are reduced as float and rounded once. The two FLOAT8
 * types are reduced as ONEHOP_FLOAT16, which rounds after each rank, and rounded again at the end;
 * what is too large for them becomes their largest finite value. Sums and products of integers
 * wrap. ONEHOP_AVG divides the (wrapped) sum of integers towards zero, and multiplies that of
 * floats by 1 / ranks. With a NaN, or with +0 and -0, ONEHOP_MAX and ONEHOP_MIN give one of the
 * operands, the same one on all ranks. The sum or product of several NaNs is a NaN with the same
 * bits on all ranks, but another size or algorithm may give the bits of another one of them: the
 * only exception to the above.
 */
enum onehop_op { ONEHOP_SUM, ONEHOP_PROD, ONEHOP_MAX, ONEHOP_MIN, ONEHOP_AVG, ONEHOP_OP_N };

/* All zero: the defaults. Used during the call only. */
struct onehop_options {
	unsigned limit_ms; /* how long this rank waits for another one; 0: 30 s */
	int no_p2p;        /* not 0, on any rank: all data goes through the host's memory */
	/*
	 * The path of a table that `onehop tune` wrote; NULL: times are estimated. All ranks use
	 * rank 0's, or estimates if it names none. A table of other GPUs is not used (onehop_expect
	 * shows that). Each rank that names a file reads it: -EINVAL: the file is damaged, and the
	 * sentence names the line; -ENOENT, -EACCES or another error: it cannot be read. The other
	 * ranks then get -ETIMEDOUT at their limit.
	 */
	const char *tune_file;
	/*
	 * A CUcontext for each device that is opened, of that device; NULL, or NULL for a device:
	 * its primary context. They must live until the rank is closed.
	 */
	void *const *contexts;
	/*
	 * Not 0, on all ranks: devices are simulated by threads of this process, on any machine.
	 * Any memory of the process is then the device's. The only stream is NULL. Device numbers
	 * are ignored. Each device has 256 MiB, and so has the host's pinned memory (onehop_alloc).
	 */
	int simulated;
};

/*
 * Opens all ranks in this process: rank i is CUDA device devices[i] (devices NULL: device i). 1 <=
 * n <= ONEHOP_RANKS_MAX. Fills ret[0] to ret[n - 1], each to be closed. options may be NULL. Device
 * memory used: up to 64 MiB per GPU, in addition to the driver's own. What ranks send that have no
 * P2P access to the receiver goes through pinned host memory: up to 103 MiB for all ranks together.
 * -ENODEV: no driver or no such device. -EBUSY: another process uses the device exclusively.
 * -EINVAL: a wrong argument, or the same GPU for two ranks.
 */
int onehop_open_all(int n, const int *devices, const struct onehop_options *options,
		    struct onehop_comm **ret);

/*
 * Opens one rank. The others are processes, or other threads, of this host and user; one thread
 * cannot open two ranks, because the call waits for all of them, at most options->limit_ms. All
 * pass the same key (1 to 63 bytes, used by this run alone) and n. device: CUDA's number in this
 * process.
 * -ETIMEDOUT: a rank did not come. -EINVAL: a wrong argument, or two ranks are on one GPU. -EPROTO:
 * a rank has another n than rank 0. -EEXIST: two claim to be one rank. The rank with another n, or
 * the later one of the two, gets its error at once, the others only at the limit, and only if a
 * rank is missing then: otherwise they open. A rank too many that comes after all have come gets
 * -ETIMEDOUT at its limit.
 */
int onehop_open_rank(const char *key, int rank, int n, int device,
		     const struct onehop_options *options, struct onehop_comm **ret);

/* How ranks reach each other before there is a communicator. */
struct onehop_exchange {
	/*
	 * Gives `size` bytes of every rank (at most 4096, the same on all) to all of them, in the
	 * order of ranks: n * size bytes in `all`. 0, or a negative errno, which ends the opening.
	 * Called from the thread that opens.
	 */
	int (*all_gather)(void *context, const void *mine, size_t size, void *all);
	void *context; /* the caller's */
};

/*
 * The same, where the caller can already exchange data between the ranks instead of agreeing on a
 * key. Calls all_gather exactly once, on every rank, also on those that fail (but for -EINVAL
 * because of n or exchange).
 * -EXDEV: a rank is on another host, in another network namespace, or of another user; -EPROTO: a
 * rank has another version of libonehop. All ranks get that error at once, without waiting for the
 * limit.
 */
int onehop_open_exchange(const struct onehop_exchange *exchange, int rank, int n, int device,
			 const struct onehop_options *options, struct onehop_comm **ret);

/*
 * Aborts this rank (see onehop_abort). Frees what the communicator holds; for ranks of one process
 * that happens when the last one is closed. Afterwards streams with its operations must not be
 * used, nor graphs with them launched. NULL does nothing.
 */
void onehop_close(struct onehop_comm *comm);

/*
 * All operations of this rank that wait for another one, now or later, give up within a
 * millisecond, also in graphs. Operations that are enqueued later fail with -ECANCELED. Other ranks
 * do not learn of it: they wait for this one until their limit and then report that it did not take
 * part (-ETIMEDOUT), unless they are aborted too. Frees nothing: call onehop_close afterwards. Does
 * not wait, not even for a thread that is enqueueing.
 */
int onehop_abort(struct onehop_comm *comm);

/*
 * The operations below only enqueue work on `stream`, a CUstream (cudaStream_t) of the rank's
 * device and context. NULL is the context's default stream. They can be captured in a graph, which
 * can be launched many times. All ranks call the same operations in the same order, with the same
 * count, type, op and root. Two operations of one communicator must not run at the same time: use
 * one stream, or events between two.
 * Buffers are any memory that kernels of the rank's device can use, at any address, and need not be
 * registered. in == out is allowed, except for onehop_all_gather, where it must be
 * in == out + rank * count (in elements). So is out == in + rank * count for onehop_reduce_scatter.
 * Where they overlap otherwise the call is -EINVAL. count may be 0; buffers may then be NULL.
 *
 * -EINVAL: a wrong argument, memory that the device cannot use, or a closed communicator; nothing
 * was enqueued.
 * -ETIMEDOUT, -ECANCELED: an earlier operation gave up (see onehop_check), and the communicator
 * cannot be used any more.
 * -EPROTO: ranks disagree on the operation, count, type, op or root. Of two ranks that disagree,
 * the later one to call gets this error and enqueues nothing; on all others onehop_check and later
 * calls return it, and kernels that wait give up. The sentence has both calls. Operations that are
 * captured are compared in the order of their capture, so all ranks capture the same ones in the
 * same order. Graphs that ranks launch in different orders are not detected.
 * A rank that is 4096 operations ahead of another one (32768 captured ones) waits for it, at most
 * limit_ms.
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
 * Sends count elements to rank peer, or receives them from it. The n-th send of a rank to another
 * one meets the n-th receive there, in the order of the calls (in a group: of one stream). Only
 * these two ranks take part. A large send may wait until its receive runs; a small one may end
 * before its receive has started (the sizes: docs/collectives.md). So ranks that exchange data put
 * both directions into one group: those move at the same time. What a group receives into must not
 * overlap another buffer of its sends and receives; that is not checked. At most 96 of one
 * communicator and stream in a group. A rank may send to itself in a group that also receives it.
 * Where the numbers of bytes differ, the later of the two calls is -EPROTO, and onehop_check on all
 * ranks.
 */
int onehop_send(struct onehop_comm *comm, const void *in, size_t count, enum onehop_type type,
		int peer, void *stream);
int onehop_recv(struct onehop_comm *comm, void *out, size_t count, enum onehop_type type, int peer,
		void *stream);

/*
 * What this thread calls between the two is checked at once, and enqueued by the last
 * onehop_group_end (groups may be nested), for any number of communicators and streams: first the
 * operations of all ranks, in the order of the calls, then the sends and receives, wherever they
 * were called among them. Those of one communicator and stream become one kernel. Where several
 * communicators have some, all ranks call the first one of each in the same order. Buffers must not
 * change until then. What the group holds of a communicator that this thread closes before its end
 * is dropped.
 * onehop_group_end: the error of the first operation that could not be enqueued; those behind it
 * are not, and the communicator should be aborted. If a call in the group failed, nothing is
 * enqueued, and this returns the error of that call (of the last one that failed).
 */
int onehop_group_start(void);
int onehop_group_end(void);

/*
 * Whether an operation gave up while it ran, of this rank or of another one; does not wait. 0;
 * -ETIMEDOUT: a rank did not come in time, and the sentence names it, and the last operation in
 * which it took part if that is known. A rank that came too late gets this too: the others do not
 * wait any more. -EPROTO: ranks called different things; -ECANCELED: this rank was aborted.
 * An operation that gave up still ends its kernel normally, so call this after synchronising the
 * stream.
 */
int onehop_check(struct onehop_comm *comm);

/*
 * Waits until all that was enqueued in the stream is done, at most twice the limit of an operation;
 * then onehop_check.
 */
int onehop_wait(struct onehop_comm *comm, void *stream);

int onehop_rank(const struct onehop_comm *comm);
int onehop_size(const struct onehop_comm *comm);

/* What an operation costs, as far as it is known. The same on all ranks, whatever their buffers. */
struct onehop_expected {
	double time_us;        /* on the GPU, in a graph */
	int measured;          /* not 0: from the table of `onehop tune`; else estimated */
	const char *algorithm; /* "piped-2"; static */
};

enum onehop_operation {
	ONEHOP_ALL_REDUCE,
	ONEHOP_REDUCE,
	ONEHOP_REDUCE_SCATTER,
	ONEHOP_ALL_GATHER,
	ONEHOP_BROADCAST,
	ONEHOP_ALL_TO_ALL,
	ONEHOP_OPERATION_N
};

/*
 * count: as in the operation's function. op: not used where nothing is reduced.
 * -EINVAL: no such operation; -ENOTSUP: this communicator cannot run it with that type, op or
 * count.
 */
int onehop_expect(const struct onehop_comm *comm, enum onehop_operation operation, size_t count,
		  enum onehop_type type, enum onehop_op op, struct onehop_expected *ret);

/* Memory that this rank allocated for staging and flags, until it is closed. */
struct onehop_memory {
	size_t device_bytes; /* on its GPU */
	size_t host_bytes;   /* pinned */
};
int onehop_memory_used(const struct onehop_comm *comm, struct onehop_memory *ret);

/*
 * Memory that this host and the rank's device use at one address: pinned memory of the host. Freed
 * when the communicator is closed. -ENOMEM.
 */
int onehop_alloc(struct onehop_comm *comm, size_t size, void **ret);

/* The sentence of this thread's last error; valid until its next call. Never NULL. */
const char *onehop_error(void);

#ifdef __cplusplus
}
#endif
#endif
