/* SPDX-License-Identifier: Apache-2.0 */
/* Devices with memory of their own: GPUs through CUDA, simulated ones (threads), or either in
 * a process of its own. */
#pragma once

#include "kernels/args.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Errors: a negative errno and one sentence (base/err.h) that names call, device and reason.
 *	-EACCES     peer access is refused
 *	-ENOMEM     the device has no memory left
 *	-ETIMEDOUT  a deadline passed; what was enqueued may still be running
 *	-ENOTSUP    this back end cannot (see caps)
 *	-ESRCH      the worker process died, or was killed by this process
 *	-EOWNERDEAD the worker process was killed from outside: by a person, a program or the kernel (no memory)
 *	-EIO        the device reported a fault; the set is of no more use
 * Nothing here aborts the process: this layer is part of libonehop.
 */

enum device_cap {
	DEVICE_EXPORT_FD = 1 << 0,     /* MEMORY_EXPORTABLE as file descriptor */
	DEVICE_EXPORT_IPC = 1 << 1,    /* MEMORY_DEVICE as a blob */
	DEVICE_EXPORT_DMABUF = 1 << 2, /* for NICs */
	DEVICE_PEER_SWITCH =
		1 << 3,         /* peer access can be turned on and off; off: copies are staged */
	DEVICE_GRAPHS = 1 << 4, /* capture and launch of graphs */
	DEVICE_NATIVE = 1 << 5, /* make_current and native streams: NCCL can be called */
	DEVICE_COPY_ENGINES = 1 << 6, /* copies are done by other hardware than kernels */
};

struct device_info {
	char name[96];
	char pci[16]; /* "0000:41:00.0", "" without */
	int number;   /* in the run: what the caller numbered it, unique over all sets of a run */
	int ordinal;  /* CUDA's, in this process; -1: none */
	unsigned sm;  /* compute capability times 10: 90 */
	unsigned blocks;  /* multiprocessors: how many blocks run at once */
	unsigned threads; /* per block, at most */
	/*
	 * Of one multiprocessor, that run at once in blocks of the kernels of sends and receives; 0:
	 * kernels of collectives are not loaded.
	 */
	unsigned resident_threads;
	unsigned copy_engines;
	/* not 0: it shows a desktop, and kernels that run for seconds are ended */
	unsigned ends_kernels;
	uint64_t memory_bytes, free_bytes; /* when opened */
};

/* The drivers end a kernel after 2 s at the soonest. */
#define DEVICE_KERNEL_LIMIT_US 1500000

/* How long a kernel there may wait for something, at most limit_us. */
static inline uint64_t device_kernel_limit_us(const struct device_info *info, uint64_t limit_us)
{
	bool less = info->ends_kernels && limit_us > DEVICE_KERNEL_LIMIT_US;

	return less ? DEVICE_KERNEL_LIMIT_US : limit_us;
}

enum memory_kind {
	MEMORY_DEVICE,       /* the device's, plain */
	MEMORY_EXPORTABLE,   /* the device's, can be handed to another process */
	MEMORY_PINNED,       /* the host's, seen by every device of the set */
	MEMORY_SHARED,       /* the same, can be handed to another process as file descriptor */
	MEMORY_COMPRESSIBLE, /* like exportable memory; the device may keep it compressed */
	/* the host's, made by the driver like exportable memory; seen by `device` only */
	MEMORY_HOST,
	MEMORY_IMPORTED, /* another process's; owner tells which device's */
	MEMORY_CALLER,   /* wrapped: never freed here */
};

/* A value, no pointer of this process: it can be sent to another one. */
struct memory {
	uint64_t id; /* the back end's */
	uint64_t size;
	int32_t device; /* index in the set that may use it; -1: host memory */
	int32_t owner;  /* device_info.number of the device whose memory it is; -1: the host's */
	uint32_t kind;  /* enum memory_kind */
};

/* How memory goes to another process: a file descriptor (sent along), a blob, or both. */
enum export_kind { EXPORT_FD, EXPORT_IPC, EXPORT_DMABUF };

struct memory_export {
	uint32_t kind; /* enum export_kind */
	int32_t owner;
	uint64_t size, offset;
	int fd; /* -1: none. The receiver of an export closes it */
	unsigned char blob[64];
};

struct stream {
	uint64_t id;
	int32_t device; /* index in the set */
};

struct event {
	uint64_t id;
	int32_t device;
};

struct graph {
	uint64_t id;
	int32_t device;
};

/* In the order of KERNELS (kernels/args.h). A struct kernel is a machine's (machine/machine.h). */
enum device_kernel {
#define KERNEL_ID(name) KERNEL_##name,
	KERNELS(KERNEL_ID)
#undef KERNEL_ID
		KERNEL_N
};

struct launch {
	enum device_kernel kernel;
	unsigned blocks, threads; /* threads: clipped to device_info.threads */
	const void *args;         /* struct NAME_args; copied */
	size_t args_size;
	/*
	 * A block may wait for any other, so all have to run at once. A GPU does that where there
	 * is room for all of them; the host back end otherwise runs device_info.blocks at a time.
	 */
	bool together;
};

struct device_set;

/*
 * What a back end does. No slot is NULL; what it cannot do answers -ENOTSUP. Device arguments are
 * indexes in the set. Everything that takes a stream only enqueues; it neither allocates nor waits,
 * so that it may be captured in a graph. A set may be used by one thread at a time.
 */
struct device_ops {
	const char *name;                    /* "cuda", "host", "worker" */
	void (*close)(struct device_set *s); /* waits for nothing that hangs */

	/* Whether the driver says that `initiator` can reach `target`'s memory. */
	int (*can_access)(struct device_set *s, int initiator, int target, bool *ret);
	/*
	 * Whether kernels there may use atomic operations in the memory of the GPU at that PCI
	 * address: over NVLink they may, over PCIe not.
	 */
	int (*atomics)(struct device_set *s, int device, const char *pci, bool *ret);
	/* Turns peer access on or off for MEMORY_DEVICE and MEMORY_EXPORTABLE of the set. */
	int (*peer_access)(struct device_set *s, int initiator, int target, bool on);

	int (*alloc)(struct device_set *s, int device, enum memory_kind kind, uint64_t size,
		     struct memory *ret);
	/* The caller's own memory, of `device` or (-1) of the host. */
	int (*wrap)(struct device_set *s, int device, uint64_t address, uint64_t size,
		    struct memory *ret);
	int (*free)(struct device_set *s, const struct memory *m);
	/*
	 * Around an address of the caller's: what was allocated together, as far as that is known.
	 * -EFAULT: kernels on `device` cannot use it.
	 */
	int (*memory_at)(struct device_set *s, int device, uint64_t address, uint64_t *ret_begin,
			 uint64_t *ret_end);
	/* The address of byte 0 as kernels on `device` see it. */
	int (*address)(struct device_set *s, const struct memory *m, int device, uint64_t *ret);
	int (*export)(struct device_set *s, const struct memory *m, enum export_kind kind,
		      struct memory_export *ret);
	/* For use by `device`; does not take over e->fd. */
	int (*import)(struct device_set *s, int device, const struct memory_export *e,
		      struct memory *ret);
	/*
	 * Between memory and the caller's, at once and not ordered with streams; waits. Meant for
	 * flags, reports and tables, at most 64 KiB.
	 */
	int (*read)(struct device_set *s, const struct memory *m, uint64_t offset, void *to,
		    size_t n);
	int (*write)(struct device_set *s, const struct memory *m, uint64_t offset,
		     const void *from, size_t n);

	int (*stream_new)(struct device_set *s, int device, struct stream *ret);
	int (*stream_wrap)(struct device_set *s, int device, void *native, struct stream *ret);
	int (*stream_free)(struct device_set *s, struct stream stream);
	/* Until all that was enqueued is done, at most limit_us; reports faults of what ran. */
	int (*wait)(struct device_set *s, struct stream stream, uint64_t limit_us);
	int (*event_new)(struct device_set *s, int device, struct event *ret);
	int (*event_free)(struct device_set *s, struct event e);
	int (*event_record)(struct device_set *s, struct stream stream, struct event e);
	int (*event_wait)(struct device_set *s, struct stream stream, struct event e);
	/* Both done; microseconds. */
	int (*event_elapsed)(struct device_set *s, struct event from, struct event to,
			     double *ret_us);

	/*
	 * By the copy engine of the stream's device, which may be the target (pull) or the origin
	 * (push). Without peer access it is staged through the host.
	 */
	int (*copy)(struct device_set *s, struct stream stream, const struct memory *target,
		    uint64_t target_offset, const struct memory *origin, uint64_t origin_offset,
		    uint64_t bytes);
	/*
	 * How long the last copy took to be enqueued, in the process that did it, us; 0 before the
	 * first.
	 */
	int (*enqueue_time)(struct device_set *s, double *ret_us);
	int (*launch)(struct device_set *s, struct stream stream, const struct launch *l);

	/* Whether what is enqueued there goes into a graph, whoever began that. */
	int (*capturing)(struct device_set *s, struct stream stream, bool *ret);
	/* The first launch of a graph makes it executable, which takes time. */
	int (*capture_begin)(struct device_set *s, struct stream stream);
	int (*capture_end)(struct device_set *s, struct stream stream, struct graph *ret);
	int (*graph_launch)(struct device_set *s, struct stream stream, struct graph g);
	int (*graph_free)(struct device_set *s, struct graph g);

	/* For other libraries in this process: the device's context becomes the thread's. */
	int (*make_current)(struct device_set *s, int device);
	int (*stream_native)(struct device_set *s, struct stream stream, void **ret);
};

/* Back ends put it first in their own struct. */
struct device_set {
	const struct device_ops *ops;
	size_t n;
	struct device_info *info; /* n */
	unsigned caps;            /* enum device_cap, of all of them */
};

/* ---- what to open ---- */

/* The back ends that open devices of their own. */
enum device_kind { DEVICE_CUDA, DEVICE_HOST, DEVICE_KIND_N };

/* Faults that the host back end can show on the way between two devices, for tests and
 * demonstrations. */
enum fault_kind {
	FAULT_NONE,
	FAULT_MIRROR,   /* writes go to a private copy, which the writer reads back */
	FAULT_DISPLACE, /* data arrives a page off */
	FAULT_STALE,    /* reads and writes show the data of the time before */
	FAULT_TORN,     /* the tail of each transfer is missing */
	FAULT_LOST,     /* writes vanish, reads give zeros */
	FAULT_HANG,     /* transfers and stores never end */
	FAULT_REFUSE,   /* peer access is refused */
	FAULT_SLOW,     /* a hundredth of the rate */
	/* Those that copies and single kernels do not meet: */
	FAULT_CACHED, /* what a kernel has read once it reads again as it was, whatever flags say */
	FAULT_REPLAY, /* kernels of a graph read a page off from its second launch on */
	FAULT_OVERTAKE, /* a kernel's stores come later than a flag that goes another way */
	FAULT_REREAD,   /* what was read is read again as it was, until the host has waited */
	FAULT_REMAP, /* memory allocated in the place of old memory shows what the old one held */
	FAULT_IPC_OFFSET, /* memory taken by IPC begins where the allocator's own begins */
	FAULT_LATE,    /* what a copy writes comes once the host has waited, whatever flags say */
	FAULT_HOLE,    /* a page close to the end of memory is not what others see there */
	FAULT_LOSSY,   /* atomic additions get lost, which is not a failure */
	FAULT_COMPTAG, /* compressible memory leads to other memory */
	FAULT_PACKED,  /* who reads compressible memory gets the bytes as they are kept */
	FAULT_HOST_SHIFT, /* MEMORY_HOST is a page off */
	FAULT_N
};

struct fault {
	enum fault_kind kind;
	int initiator, target; /* device_info.number; -1: every */
};

#define DEVICE_MAX 64

/* What the simulated devices of the host back end are like. */
struct host_options {
	struct fault fault;
	uint64_t memory_bytes; /* of each device, 0: 256 MiB */
	unsigned blocks;       /* that run at once; 0: as many as there are cores for */
	unsigned threads;      /* of a block; 0: one. They really run, all at once */
	/* GB/s of each ordered pair's link by number, 0: as fast as it goes. */
	float link_gbps[DEVICE_MAX][DEVICE_MAX];
};

/* A value: it is sent to the worker as it is. */
struct device_request {
	enum device_kind kind;
	/* the kernels of collective operations are wanted too, which takes a second */
	bool collectives;
	size_t n;
	int ordinal[DEVICE_MAX]; /* CUDA's */
	int number[DEVICE_MAX];  /* becomes device_info.number */
	/* CUcontexts of this process, which must outlive the set; 0: the primary one. */
	uint64_t context[DEVICE_MAX];
	struct host_options host; /* DEVICE_HOST's; CUDA never looks at them */
};

const char *fault_word(enum fault_kind f); /* "mirror" */
/* FAULT_N: no such word. */
enum fault_kind fault_parse(const char *word);

/* In this process. */
int device_open(const struct device_request *r, struct device_set **ret);
static inline void device_close(struct device_set *s)
{
	if (s)
		s->ops->close(s);
}
