/* SPDX-License-Identifier: Apache-2.0 */
/* Another program's view of libonehop: it links the library and the C library, nothing else. Host devices are
 * opened, memory goes from one to the other, and an error comes back as a sentence. */
#include "base/err.h"
#include "device/device.h"
#include "result/metric.h"

#include <errno.h>
#include <onehop/onehop.h>
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
	       strstr(onehop_error(), "not 0") &&
	       onehop_open_all(2, (const int[]){0, 0}, NULL, comms) == -EINVAL &&
	       strstr(onehop_error(), "both on CUDA device 0") &&
	       onehop_open_rank("", 0, 1, 0, NULL, comms) == -EINVAL &&
	       onehop_open_rank("key", 2, 2, 0, NULL, comms) == -EINVAL &&
	       onehop_all_reduce(NULL, &value, &value, 1, ONEHOP_INT32, ONEHOP_SUM, NULL) ==
		       -EINVAL &&
	       strstr(onehop_error(), "no communicator") && onehop_barrier(NULL, NULL) == -EINVAL &&
	       onehop_check(NULL) == -EINVAL && onehop_rank(NULL) == -EINVAL &&
	       onehop_size(NULL) == -EINVAL;
}

int main(void)
{
	struct device_request *two = request_of(2), *none = request_of(0);
	const struct metric *first = metric_at(PEER_P2P_TEST, 1);
	struct device_set *s = NULL;

	puts("1..5");
	check(device_open(two, &s) == 0, "host devices open");
	check(s && copies(s), "what one sends, the other has");
	device_close(s);
	check(device_open(none, &s) == -EINVAL && strstr(err_msg(), "devices to open: 0"),
	      "a request that cannot be is refused with a sentence");
	check(first && metric_find(first->name) == first && !metric_find("no-such"),
	      "metrics are found by name");
	check(collectives_refuse(), "collectives refuse what cannot be");
	onehop_close(NULL);
	free(two);
	free(none);
	return failed;
}
