// SPDX-License-Identifier: Apache-2.0
/* Latencies: a chain of dependent loads, and a flag that goes back and forth. */
#include "kernels/device.h"

KERNEL(chain)
{
	const u64 n = a.bytes / a.stride;

	for (u64 i = grid_id(); i < n; i += grid_count())
		AT(u64, a.buffer + i * a.stride) = a.seen_as + (i + 1 < n ? i + 1 : 0) * a.stride;
}

#ifdef __OPENCL_C_VERSION__
#define IS_ADDRESS(p)                                                                              \
	1 /* a comparison would be part of what is measured; the GPU reports wild ones */
#else
#define IS_ADDRESS(p) ((p) != 0)
#endif

KERNEL(chase)
{
	u64 p = a.buffer;

	if (block_id() != a.block || thread_id())
		return;
	for (u64 i = 0; i < a.steps && IS_ADDRESS(p); i++)
		p = AT(const u64, p);
	store_u64(a.end, p);
}

/* One round of the one that sends first, or of the one that answers: enum wait_end. */
static inline u32 turn(const struct ping_pong_args *a, u32 count, struct patience *p)
{
	u32 end;

	if (a->first)
		store_release(a->theirs, count);
	end = wait_for(a->mine, count, p);
	if (end == WAIT_DONE && !a->first)
		store_release(a->theirs, count);
	return end;
}

KERNEL(ping_pong)
{
	struct patience p = patience_of(a.limit_ns, a.abort);
	u64 ns = time_ns(), ticks = time_ticks(), rounds = 0, last = ticks;
	u32 end = WAIT_DONE;

	if (grid_id())
		return;
	while (rounds < a.rounds && (end = turn(&a, (u32)rounds + 1, &p)) == WAIT_DONE) {
		const u64 now = time_ticks();

		if (a.ticks)
			AT(u64, a.ticks + rounds * 8) = now - last;
		last = now;
		if (rounds++ == 0) { /* which waited for the other kernel to start */
			ns = time_ns();
			ticks = last = time_ticks();
		}
	}
	store_u64(a.report + __builtin_offsetof(struct ping_pong_report, rounds), rounds);
	store_u64(a.report + __builtin_offsetof(struct ping_pong_report, ticks), last - ticks);
	store_u64(a.report + __builtin_offsetof(struct ping_pong_report, ns), time_ns() - ns);
	fence_system();
	store_u64(a.report + __builtin_offsetof(struct ping_pong_report, end), end);
}
