/* SPDX-License-Identifier: Apache-2.0 */
/* Another program's view of libonehop: it links the library and the C library, nothing else. Host devices are
 * opened, memory goes from one to the other, and an error comes back as a sentence. */
#include "base/arena.h"
#include "base/err.h"
#include "device/device.h"
#include "result/comparison.h"

#include <errno.h>
#include <onehop/onehop.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES    4096u
#define LIMIT_US 60000000u

static int number;
static bool failed;

static void check(bool right, const char *what)
{
	printf("%sok %d - %s\n", right ? "" : "not ", ++number, what);
	if (!right)
		printf("# %s\n", err_msg());
	failed |= !right;
}

static struct device_request *request_of(size_t n)
{
	struct device_request *q = calloc(1, sizeof(*q));

	if (!q)
		exit(1);
	q->kind = DEVICE_HOST;
	q->n = n;
	for (int i = 0; i < (int)n && i < DEVICE_MAX; i++)
		q->number[i] = i;
	return q;
}

/* What device 0 holds is copied to device 1, and read there. */
static bool copies(struct device_set *s)
{
	const struct device_ops *o = s->ops;
	unsigned char sent[BYTES], got[BYTES] = {0};
	struct memory from, to;
	struct stream stream;

	memset(sent, 0x5a, sizeof(sent));
	return o->alloc(s, 0, MEMORY_DEVICE, BYTES, &from) == 0 &&
	       o->alloc(s, 1, MEMORY_DEVICE, BYTES, &to) == 0 &&
	       o->stream_new(s, 0, &stream) == 0 && o->peer_access(s, 0, 1, true) == 0 &&
	       o->write(s, &from, 0, sent, BYTES) == 0 &&
	       o->copy(s, stream, &to, 0, &from, 0, BYTES) == 0 &&
	       o->wait(s, stream, LIMIT_US) == 0 && o->read(s, &to, 0, got, BYTES) == 0 &&
	       memcmp(sent, got, BYTES) == 0;
}

/* With GPUs or without: no crash, and a sentence for each error. */
static bool collectives_refuse(void)
{
	struct onehop_comm *comms[ONEHOP_RANKS_MAX];
	int value = 0;

	return onehop_open_all(0, NULL, NULL, comms) == -EINVAL &&
	       strstr(onehop_error(), "onehop_open_all: ") == onehop_error() &&
	       strstr(onehop_error(), "not 0") &&
	       onehop_open_all(2, (const int[]){0, 0}, NULL, comms) == -EINVAL &&
	       strstr(onehop_error(), "both on CUDA device 0") &&
	       onehop_open_rank("", 0, 1, 0, NULL, comms) == -EINVAL &&
	       strstr(onehop_error(), "onehop_open_rank: ") == onehop_error() &&
	       onehop_open_rank("key", 2, 2, 0, NULL, comms) == -EINVAL &&
	       onehop_all_reduce(NULL, &value, &value, 1, ONEHOP_INT32, ONEHOP_SUM, NULL) ==
		       -EINVAL &&
	       strstr(onehop_error(), "no communicator") && onehop_barrier(NULL, NULL) == -EINVAL &&
	       onehop_check(NULL) == -EINVAL && onehop_abort(NULL) == -EINVAL &&
	       onehop_wait(NULL, NULL) == -EINVAL && onehop_rank(NULL) == -EINVAL &&
	       onehop_size(NULL) == -EINVAL;
}

/* ---- results ---- */

static void jump(void *context)
{
	longjmp(*(jmp_buf *)context, 1);
}

static void fill(struct figures *f, double rate)
{
	for (int i = 0; i < 8; i++) {
		char pci[16];

		snprintf(pci, sizeof(pci), "0000:%02x:00.0", (unsigned)i + 1);
		figures_add_gpu(f, pci, "NVIDIA H200", i);
	}
	for (int n = 0; n < 2; n++)
		for (int i = 0; i < 64; i++)
			figures_add(f, METRIC_WRITE_CE, i / 8, i % 8, rate + i);
	figures_add(f, "of-a-later-version", 0, 1, rate);
	figures_merge(f);
}

/* Two results and their comparison, in arenas that hold at most that many bytes. False: that is not enough. */
static bool compares(size_t most, bool *ret_right)
{
	struct arena *volatile arenas[3] = {NULL};
	volatile bool done = false;
	jmp_buf lacking;

	if (setjmp(lacking) == 0) {
		const struct comparison *c;
		struct figures *before, *after;

		for (int i = 0; i < 3; i++)
			if (!(arenas[i] = arena_new_with(jump, &lacking, most)))
				exit(1);
		before = figures_new_in(arenas[0], "before", "use");
		fill(before, 100);
		after = figures_new_in(arenas[1], "after", "use");
		fill(after, 50);
		c = comparison_new_in(arenas[2], before, after);
		figures_keep_earlier(after, before);
		*ret_right = before->row_n == 65 && c->counts[TREND_WORSE] == 64 &&
			     c->gpus_gone == 0 && after->row_n == 65;
		done = true;
	}
	for (int i = 0; i < 3; i++)
		arena_free(arenas[i]);
	return done;
}

/* Whatever the limit: a result, or a jump that leaves nothing behind, which sanitizers would find. */
static bool survives_every_lack(void)
{
	size_t lacks = 0;
	bool right = false;

	for (size_t most = 1; !compares(most, &right); most += 1009)
		lacks++;
	return right && lacks > 3;
}

int main(void)
{
	struct device_request *two = request_of(2), *none = request_of(0);
	const struct metric *first = metric_at(PEER_P2P_TEST, 1);
	struct device_set *s = NULL;

	puts("1..6");
	check(device_open(two, &s) == 0, "host devices open");
	check(s && copies(s), "what one sends, the other has");
	device_close(s);
	check(device_open(none, &s) == -EINVAL && strstr(err_msg(), "devices to open: 0"),
	      "a request that cannot be is refused with a sentence");
	check(first && metric_find(first->name) == first && !metric_find("no-such"),
	      "metrics are found by name");
	check(survives_every_lack(),
	      "results and their comparison end in a jump without memory, and are right with enough");
	check(collectives_refuse(), "collectives refuse what cannot be");
	onehop_close(NULL);
	free(two);
	free(none);
	return failed;
}
