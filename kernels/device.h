/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The platform interface of kernels: a body for the GPU (OpenCL C, PTX) and one for the host (C),
 * where a block has few threads, as a rule one.
 */
#pragma once

#include "kernels/args.h"

/* The object of `type` at an address given as a number. */
#define AT(type, address) (*(GLOBAL type *)(address))

#ifdef __OPENCL_C_VERSION__

#define GLOBAL       __global
#define ROLLED       _Pragma("nounroll") /* for loops: every instruction has to be fetched */
#define KERNEL(name) __kernel void name(const struct name##_args a)

typedef u32 vector16 __attribute__((ext_vector_type(4)));

static inline u32 thread_id(void)
{
	return __nvvm_read_ptx_sreg_tid_x();
}

static inline u32 thread_count(void)
{
	return __nvvm_read_ptx_sreg_ntid_x();
}

static inline u32 block_id(void)
{
	return __nvvm_read_ptx_sreg_ctaid_x();
}

static inline u32 block_count(void)
{
	return __nvvm_read_ptx_sreg_nctaid_x();
}

static inline void block_barrier(void)
{
	__asm__ volatile("bar.sync 0;" ::: "memory");
}

/* A barrier that returns in every thread whether `mine` was non-zero in any thread of the block. */
static inline u32 block_any(u32 mine)
{
	u32 any;

	__asm__ volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.u32 p, %1, 0;\n\tbar.red.or.pred q, 0, "
			 "p;\n\tselp.u32 %0, 1, 0, q;\n\t}"
			 : "=r"(any)
			 : "r"(mine)
			 : "memory");
	return any;
}

/*
 * A barrier that returns thread 0's value, at most 32, in every thread of the block, which has
 * whole warps.
 */
static inline u32 block_first(u32 value)
{
	u32 n;

	__asm__ volatile(
		"{\n\t.reg .pred p;\n\t.reg .u32 v;\n\tshfl.sync.idx.b32 v, %1, 0, 31, 0xffffffff;\n\t"
		"setp.gt.u32 p, v, %2;\n\tbar.red.popc.u32 %0, 0, p;\n\t}"
		: "=r"(n)
		: "r"(value), "r"(thread_id())
		: "memory");
	return n;
}

static inline u32 load_acquire(u64 address)
{
	u32 v;

	__asm__ volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
	return v;
}

static inline void store_release(u64 address, u32 v)
{
	__asm__ volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}

/* Plain loads and stores, which a cache may serve. */
static inline vector16 load_vector(u64 address)
{
	return AT(const vector16, address);
}

static inline void store_vector(u64 address, vector16 v)
{
	AT(vector16, address) = v;
}

/* Data that others have written and a flag has announced: bypasses this multiprocessor's cache. */
static inline vector16 load_vector_system(u64 address)
{
	u32 a, b, c, d;

	__asm__ volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
			 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
			 : "l"(address)
			 : "memory");
	return (vector16)(a, b, c, d);
}

/* Its halves arrive whole, in whatever order. */
static inline vector16 load_halves(u64 address)
{
	return load_vector_system(address);
}

static inline void store_halves(u64 address, vector16 v)
{
	__asm__ volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address),
			 "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])
			 : "memory");
}

static inline void store_u64(u64 address, u64 v)
{
	__asm__ volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(address), "l"(v) : "memory");
}

static inline u64 load_u64(u64 address)
{
	u64 v;

	__asm__ volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(address) : "memory");
	return v;
}

static inline void add_u64(u64 address, u64 v)
{
	__asm__ volatile("red.global.add.u64 [%0], %1;" ::"l"(address), "l"(v) : "memory");
}

static inline void add_system(u64 address, u32 v)
{
	__asm__ volatile("red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(address), "r"(v)
			 : "memory");
}

static inline void min_u64(u64 address, u64 v)
{
	__asm__ volatile("red.global.min.u64 [%0], %1;" ::"l"(address), "l"(v) : "memory");
}

static inline void max_u64(u64 address, u64 v)
{
	__asm__ volatile("red.global.max.u64 [%0], %1;" ::"l"(address), "l"(v) : "memory");
}

static inline void fence_system(void)
{
	__asm__ volatile("fence.acq_rel.sys;" ::: "memory");
}

static inline u64 time_ns(void)
{
	u64 t;

	__asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
	return t;
}

static inline u64 time_ticks(void)
{
	u64 t;

	__asm__ volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
	return t;
}

/* The number of polls of a flag between two reads of the clock and the abort word. */
#define POLLS_PER_LOOK 1024

static inline float half_to_float(u32 bits)
{
	float f;

	__asm__("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"((unsigned short)bits));
	return f;
}

/* To the nearest, ties to even. */
static inline u32 float_to_half(float f)
{
	unsigned short bits;

	__asm__("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(f));
	return bits;
}

static inline void relax(u32 polls)
{
	(void)polls;
}

static inline u32 device_closing(void)
{
	return 0;
}

#else

#include "kernels/native.h"

#include <sched.h>
#include <time.h>

#define GLOBAL
#define ROLLED
#define KERNEL(name) static void name##_kernel(const struct name##_args a)

typedef u32 vector16 __attribute__((vector_size(16)));

static inline u32 thread_id(void)
{
	return native_block.thread;
}

static inline u32 thread_count(void)
{
	return native_block.team ? native_team_size(native_block.team) : 1;
}

static inline u32 block_id(void)
{
	return native_block.id;
}

static inline u32 block_count(void)
{
	return native_block.count;
}

static inline void block_barrier(void)
{
	if (native_block.team)
		native_team_meet(native_block.team);
}

static inline u32 block_first(u32 value)
{
	return native_block.team ? native_team_first(native_block.team, value) : value;
}

static inline u32 block_any(u32 mine)
{
	return native_block.team ? native_team_any(native_block.team, mine) : mine;
}

static inline u32 load_acquire(u64 address)
{
	return __atomic_load_n((u32 *)address, __ATOMIC_ACQUIRE);
}

static inline void store_release(u64 address, u32 v)
{
	if (native_block.flaw)
		native_flaw_release(native_block.flaw, address);
	__atomic_store_n((u32 *)address, v, __ATOMIC_RELEASE);
}

/* Applies the simulated flaw, if any, of the device that owns the address. */
static inline vector16 load_vector(u64 address)
{
	return AT(const vector16,
		  native_block.flaw ? native_flaw_load(native_block.flaw, address) : address);
}

static inline void store_vector(u64 address, vector16 v)
{
	if (!native_block.flaw || !native_flaw_store(native_block.flaw, address, &v))
		AT(vector16, address) = v;
}

static inline vector16 load_vector_system(u64 address)
{
	return load_vector(address);
}

static inline vector16 load_halves(u64 address)
{
	const u64 low = __atomic_load_n((u64 *)address, __ATOMIC_RELAXED);
	const u64 high = __atomic_load_n((u64 *)(address + 8), __ATOMIC_RELAXED);
	const vector16 v = {(u32)low, (u32)(low >> 32), (u32)high, (u32)(high >> 32)};

	return v;
}

static inline void store_halves(u64 address, vector16 v)
{
	__atomic_store_n((u64 *)address, v[0] | (u64)v[1] << 32, __ATOMIC_RELAXED);
	__atomic_store_n((u64 *)(address + 8), v[2] | (u64)v[3] << 32, __ATOMIC_RELAXED);
}

static inline void store_u64(u64 address, u64 v)
{
	__atomic_store_n((u64 *)address, v, __ATOMIC_RELAXED);
}

static inline u64 load_u64(u64 address)
{
	return __atomic_load_n((u64 *)address, __ATOMIC_RELAXED);
}

static inline void add_u64(u64 address, u64 v)
{
	__atomic_fetch_add((u64 *)address, v, __ATOMIC_RELAXED);
}

static inline void add_system(u64 address, u32 v)
{
	if (!native_block.flaw || !native_flaw_loses_add(native_block.flaw, address))
		__atomic_fetch_add((u32 *)address, v, __ATOMIC_RELAXED);
}

static inline void min_u64(u64 address, u64 v)
{
	u64 old = __atomic_load_n((u64 *)address, __ATOMIC_RELAXED);

	while (v < old && !__atomic_compare_exchange_n((u64 *)address, &old, v, 1, __ATOMIC_RELAXED,
						       __ATOMIC_RELAXED))
		;
}

static inline void max_u64(u64 address, u64 v)
{
	u64 old = __atomic_load_n((u64 *)address, __ATOMIC_RELAXED);

	while (v > old && !__atomic_compare_exchange_n((u64 *)address, &old, v, 1, __ATOMIC_RELAXED,
						       __ATOMIC_RELAXED))
		;
}

/*
 * Release and acquire at the flags replace the GPU's system fence here; ThreadSanitizer does not
 * know fences.
 */
static inline void fence_system(void)
{
}

static inline u64 time_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

static inline u64 time_ticks(void)
{
	return time_ns();
}

#define POLLS_PER_LOOK 16

static inline float half_to_float(u32 bits)
{
	const u32 sign = (bits & 0x8000) << 16, fraction = bits & 0x3ff;
	u32 exponent = bits >> 10 & 0x1f, wide;
	float f;

	if (exponent == 0) { /* a multiple of 2^-24 */
		f = (float)fraction * 0x1p-24f;
		return sign ? -f : f;
	}
	exponent = exponent == 0x1f ? 0xff : exponent + 112;
	wide = sign | exponent << 23 | fraction << 13;
	__builtin_memcpy(&f, &wide, sizeof(f));
	return f;
}

/* To the nearest, ties to even. */
static inline u32 float_to_half(float f)
{
	u32 wide, sign, size;

	__builtin_memcpy(&wide, &f, sizeof(wide));
	sign = wide >> 16 & 0x8000;
	size = wide & 0x7fffffff;
	if (size > 0x7f800000) /* a NaN: as GPUs write it */
		return 0x7fff;
	if (size >= 0x477ff000) /* rounds beyond the largest */
		return sign | 0x7c00;
	if (size < 0x38800000) { /* a multiple of 2^-24: adding 0.5 rounds to one */
		__builtin_memcpy(&f, &size, sizeof(f));
		f += 0.5f;
		__builtin_memcpy(&size, &f, sizeof(size));
		return sign | (size - 0x3f000000);
	}
	size += 0xfff + (size >> 13 & 1);
	return sign | ((size - 0x38000000) >> 13);
}

/*
 * Other threads may need this core to make progress. A thread that yields runs after all busy ones,
 * a time slice each; a thread that wakes up runs before them, so only short waits yield.
 */
#define POLLS_AWAKE    8
#define NAP_NS         20000

static inline void relax(u32 polls)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	if (polls < POLLS_AWAKE)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

static inline u32 device_closing(void)
{
	return __atomic_load_n(native_block.closing, __ATOMIC_ACQUIRE);
}

#endif

/* Index of this thread in the grid, and how many there are: for loops that stride over the grid. */
static inline u64 grid_id(void)
{
	return (u64)block_id() * thread_count() + thread_id();
}

static inline u64 grid_count(void)
{
	return (u64)block_count() * thread_count();
}

static inline float float_of_bits(u32 bits)
{
	union {
		u32 bits;
		float value;
	} u = {bits};

	return u.value;
}

static inline u32 bits_of_float(float value)
{
	union {
		float value;
		u32 bits;
	} u = {value};

	return u.bits;
}

static inline u64 bits_of_double(double value)
{
	union {
		double value;
		u64 bits;
	} u = {value};

	return u.bits;
}

static inline double double_of_bits(u64 bits)
{
	union {
		u64 bits;
		double value;
	} u = {bits};

	return u.value;
}

/*
 * A wait with a deadline. abort: address of the word that ends it, 0: none. The time is first read
 * after POLLS_PER_LOOK polls, because reading it takes as long as a short wait.
 */
struct patience {
	u64 limit_ns, abort;
	u64 deadline_ns; /* 0: not read yet */
	u32 polls;
};

static inline struct patience patience_of(u64 limit_ns, u64 abort)
{
	const struct patience p = {limit_ns, abort, 0, 0};

	return p;
}

static inline u32 patience_check_time(struct patience *p)
{
	const u64 now = time_ns();

	if (!p->deadline_ns)
		p->deadline_ns = p->limit_ns < ~0ul - now ? now + p->limit_ns : ~0ul;
	return now > p->deadline_ns ? WAIT_TIMED_OUT : WAIT_RUNNING;
}

/* Between two polls: WAIT_RUNNING, or why to give up. */
static inline u32 patience_look(struct patience *p)
{
	if (++p->polls % POLLS_PER_LOOK)
		return WAIT_RUNNING;
	if (device_closing() || (p->abort && load_acquire(p->abort)))
		return WAIT_ABORTED;
	return patience_check_time(p);
}

/* Waits until the flag is at `value` or past it; flags count upwards and may wrap. */
static inline u32 wait_for(u64 flag, u32 value, struct patience *p)
{
	u32 end = WAIT_RUNNING;

	for (u32 polls = 0; (int)(load_acquire(flag) - value) < 0; polls++) {
		relax(polls);
		if ((end = patience_look(p)) != WAIT_RUNNING)
			return end;
	}
	return WAIT_DONE;
}

/* How a wait ended for the whole block, whose threads waited for different things. */
static inline u32 block_end(u32 end)
{
	if (!block_any(end != WAIT_DONE))
		return WAIT_DONE;
	if (block_any(end == WAIT_DISAGREED))
		return WAIT_DISAGREED;
	return block_any(end == WAIT_ABORTED) ? WAIT_ABORTED : WAIT_TIMED_OUT;
}
