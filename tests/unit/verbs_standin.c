/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libibverbs: NICs whose ports carry data between registered memories of this
 * process, and that fail on demand. As GPU memory it takes what the host back end hands out as a
 * file.
 *
 * A process serves its registered memory to the other processes of this user, as a NIC does: a
 * queue pair's number says which process it is in. So two hosts are two processes.
 *
 * VERBS_STANDIN is read when the devices are listed; words, with blanks between them:
 *	nics=N            so many devices, mlx5_0 and on; 1 by default
 *	ports=N           so many ports of each device; 1 by default, 4 at most
 *	host=N            a part of the addresses; 0 by default
 *	rails             each device has a network of its own; another network's address is never resolved
 *	more=FILE         more such words are in that file, if there is one
 *	FAULT             of all devices, or FAULT@mlx5_3: of one
 * FAULT is one of
 *	open=ERRNO        the device cannot be opened
 *	state=N           of the port, not ACTIVE; no-gid: its table is empty
 *	reg=ERRNO         registering the host's memory, the first two of each protection domain
 *	peer=ERRNO        registering by address what comes third or later: a GPU's
 *	dmabuf=ERRNO      ibv_reg_dmabuf_mr; 93 and 95 are the answers to the probe too
 *	lock=BYTES        more than that at once is ENOMEM, unless it is paged on demand
 *	no-paging         on demand
 *	init=, rtr=, rts=ERRNO   ibv_modify_qp
 *	status=N          of the first completion; those behind it are flushed
 *	silent            nothing ever completes; stuck: posting never returns; die: it ends the process
 *	event=N           is reported with the first failure
 *	write-KIND, read-KIND    what becomes of the data, although all completes:
 *		lost stale shift torn flip zeros outside unflushed; flips: flip, of every second message
 */
#include "rdma/verbs_api.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
	NICS_MAX = 32,
	MRS_MAX = 64,
	QPS_MAX = 256,
	WCS_MAX = 65536,
	PAGE = 4096,
	SLOTS = 65536,
	RECEIVES_MAX = 64
};

#define SHIFT (2ul << 20)
#define TAIL  64

struct nic {
	struct verbs_device device;
	unsigned index;
};

struct region {
	struct verbs_mr mr;
	char *at;      /* where byte 0 is in this process */
	uint64_t iova; /* the address that work requests have for it */
	void *mapped;  /* of a dma-buf */
	size_t mapped_n;
	char *shadow; /* what was written there the first time, or waits for a flush */
	char *waits;  /* per byte: is in the shadow */
	bool live;
};

struct pd {
	struct verbs_context *context;
	unsigned registered;
	uint64_t locked;
};

struct queue {
	struct verbs_qp qp;
	struct verbs_sge receives[RECEIVES_MAX]; /* posted, in order */
	uint64_t receive_ids[RECEIVES_MAX];
	size_t receive_n;
	int state;
	uint32_t peer; /* its number */
	int far;       /* connection to the peer's process; -1: it is in this one */
	bool broken;
};

struct completions {
	struct verbs_cq cq;
	struct verbs_wc *wcs;
	size_t first, n;
};

static struct nic nics[NICS_MAX];
static struct region regions[MRS_MAX];
static struct queue *queues[QPS_MAX];
static char plan[512];
static int live;
static atomic_int written_n;
static unsigned slot; /* of this process; 0: it does not serve yet */
/* Registered memory is used by the threads that serve other processes too. */
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
/* Receive requests and completions too; taken within the other. */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;

/* How many objects are there that were not given back. */
EXPORT int verbs_standin_live(void);
EXPORT int verbs_standin_live(void)
{
	return live;
}

/* Registrations since the devices were last listed, by whether writes may overtake each other. */
static atomic_int registrations[2];
EXPORT int verbs_standin_registered(int relaxed);
EXPORT int verbs_standin_registered(int relaxed)
{
	return registrations[relaxed];
}

/* ---- what is to fail ---- */

/* The value of the fault `word` of this device, or -1; of a word without a value 0. */
static long fault(const struct verbs_context *c, const char *word)
{
	char *copy = strdup(plan), *rest = copy, *each;
	long found = -1;

	while ((each = strsep(&rest, " "))) {
		char *at = strchr(each, '@'), *value;

		if (at)
			*at++ = '\0';
		value = strchr(each, '=');
		if (value)
			*value++ = '\0';
		if (strcmp(each, word) == 0 && (!at || !c || strcmp(at, c->device->name) == 0))
			found = value ? atol(value) : 0;
	}
	free(copy);
	return found;
}

static bool fails(const struct verbs_context *c, const char *word)
{
	long error = fault(c, word);

	if (error > 0)
		errno = (int)error;
	return error > 0;
}

/* ---- devices ---- */

static void read_more(void)
{
	char *name = strstr(plan, "more="), path[256];
	size_t used = strlen(plan);
	FILE *f;

	if (!name)
		return;
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(name + 5, " "), name + 5);
	f = fopen(path, "re");
	if (!f)
		return;
	plan[used++] = ' ';
	used += fread(plan + used, 1, sizeof(plan) - 1 - used, f);
	plan[used] = '\0';
	fclose(f);
}

static void serve_others(void);

EXPORT struct verbs_device **ibv_get_device_list(int *n);
EXPORT struct verbs_device **ibv_get_device_list(int *n)
{
	const char *text = getenv("VERBS_STANDIN");
	struct verbs_device **list = calloc(NICS_MAX + 1, sizeof(*list));
	long count;

	snprintf(plan, sizeof(plan), "%s", text ? text : "");
	registrations[0] = registrations[1] = 0;
	read_more();
	count = fault(NULL, "nics");
	count = count < 0 ? 1 : count > NICS_MAX ? NICS_MAX : count;
	serve_others();
	for (long i = 0; i < count; i++) {
		nics[i].index = (unsigned)i;
		snprintf(nics[i].device.name, sizeof(nics[i].device.name), "mlx5_%ld", i);
		snprintf(nics[i].device.dev_name, sizeof(nics[i].device.dev_name), "uverbs%ld",
			 i + 4);
		list[i] = &nics[i].device;
	}
	*n = (int)count;
	return list;
}

EXPORT void ibv_free_device_list(struct verbs_device **list);
EXPORT void ibv_free_device_list(struct verbs_device **list)
{
	free(list);
}

EXPORT int ibv_query_device(struct verbs_context *c, struct verbs_device_attr *a);
static int poll_cq(struct verbs_cq *cq, int n, struct verbs_wc *wc);
static int post_send(struct verbs_qp *qp, struct verbs_send_wr *wr, struct verbs_send_wr **bad);
static int post_recv(struct verbs_qp *qp, struct verbs_recv_wr *wr, struct verbs_recv_wr **bad);

static int query_device_ex(struct verbs_context *c, const void *input,
			   struct verbs_device_attr_ex *a, size_t size)
{
	(void)input;
	if (size < sizeof(*a))
		return EINVAL;
	ibv_query_device(c, &a->orig_attr);
	if (fault(c, "no-paging") < 0) {
		a->odp_caps.general_caps = VERBS_ODP;
		a->odp_caps.per_transport_caps.rc_odp_caps = ~0u;
	}
	return 0;
}

EXPORT struct verbs_context *ibv_open_device(struct verbs_device *d);
EXPORT struct verbs_context *ibv_open_device(struct verbs_device *d)
{
	struct verbs_extension *e = calloc(1, sizeof(*e));
	struct verbs_context *c = &e->context;
	int events[2];

	e->query_device_ex = query_device_ex;
	e->sz = sizeof(*e);
	c->abi_compat = VERBS_IS_EXTENDED;

	c->device = d;
	if (fails(c, "open") || pipe2(events, O_CLOEXEC) < 0) {
		free(e);
		return NULL;
	}
	c->ops.poll_cq = poll_cq;
	c->ops.post_send = post_send;
	c->ops.post_recv = post_recv;
	c->async_fd = events[0];
	c->cmd_fd = events[1];
	live++;
	return c;
}

EXPORT int ibv_close_device(struct verbs_context *c);
EXPORT int ibv_close_device(struct verbs_context *c)
{
	close(c->async_fd);
	close(c->cmd_fd);
	free((char *)c - offsetof(struct verbs_extension, context));
	live--;
	return 0;
}

static uint8_t port_n(const struct verbs_context *c)
{
	long n = fault(c, "ports");

	return (uint8_t)(n < 1 ? 1 : n > 4 ? 4 : n);
}

EXPORT int ibv_query_device(struct verbs_context *c, struct verbs_device_attr *a)
{
	*a = (struct verbs_device_attr){.fw_ver = "28.43.1014",
					.phys_port_cnt = port_n(c),
					.max_qp_wr = 8192,
					.max_qp_rd_atom = 16,
					.max_qp_init_rd_atom = 16};
	return 0;
}

/* A port of 400 Gb/s Ethernet with the packets of jumbo frames. */
EXPORT int ibv_query_port(struct verbs_context *c, uint8_t port, struct verbs_port_attr *a);
EXPORT int ibv_query_port(struct verbs_context *c, uint8_t port, struct verbs_port_attr *a)
{
	long state = fault(c, "state");

	if (port < 1 || port > port_n(c))
		return EINVAL;
	a->state = state > 0 ? (int)state : VERBS_PORT_ACTIVE;
	a->active_mtu = 5;
	a->active_speed = 128;
	a->active_width = 2;
	a->gid_tbl_len = 4;
	a->link_layer = VERBS_LINK_ETHERNET;
	return 0;
}

/* The order of mlx5: link-local v1 and v2, IPv4 v1 and v2. */
EXPORT ssize_t _ibv_query_gid_table(struct verbs_context *c, struct verbs_gid_entry *e, size_t max,
				    uint32_t flags, size_t entry_size);
EXPORT ssize_t _ibv_query_gid_table(struct verbs_context *c, struct verbs_gid_entry *e, size_t max,
				    uint32_t flags, size_t entry_size)
{
	const struct nic *n = (const struct nic *)c->device;
	long host = fault(c, "host");
	uint32_t entries = 4u * port_n(c);

	(void)flags;
	if (fault(c, "no-gid") >= 0)
		return 0;
	/* Its length goes to the kernel in 16 bits. */
	if (max < entries || max * entry_size > UINT16_MAX || entry_size != sizeof(*e))
		return -EINVAL;
	for (uint32_t i = 0; i < entries; i++) {
		e[i] = (struct verbs_gid_entry){.gid_index = i % 4,
						.port_num = i / 4 + 1,
						.gid_type = i % 2 ? VERBS_GID_ROCE_V2
								  : VERBS_GID_ROCE_V1};
		if (i % 4 < 2)
			memcpy(e[i].gid.raw, "\xfe\x80\0\0\0\0\0\0\x52\x54\0\xff\xfe\x12\x34\x56",
			       16);
		else
			memcpy(e[i].gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\x02\0", 16);
		e[i].gid.raw[15] =
			(uint8_t)(n->index + 1 + i / 4 * 32 + (host > 0 ? 64 * host : 0));
		if (i % 4 >= 2 && fault(c, "rails") >= 0)
			e[i].gid.raw[14] = (uint8_t)n->index;
	}
	return entries;
}

/* ---- events ---- */

static void report(struct verbs_context *c)
{
	long event = fault(c, "event");
	struct verbs_async_event e = {.event_type = (int)event};

	if (event >= 0 && write(c->cmd_fd, &e, sizeof(e)) != sizeof(e))
		abort();
}

EXPORT int ibv_get_async_event(struct verbs_context *c, struct verbs_async_event *e);
EXPORT int ibv_get_async_event(struct verbs_context *c, struct verbs_async_event *e)
{
	return read(c->async_fd, e, sizeof(*e)) == sizeof(*e) ? 0 : -1;
}

EXPORT void ibv_ack_async_event(struct verbs_async_event *e);
EXPORT void ibv_ack_async_event(struct verbs_async_event *e)
{
	(void)e;
}

EXPORT const char *ibv_event_type_str(int event);
EXPORT const char *ibv_event_type_str(int event)
{
	return event == VERBS_EVENT_DEVICE_FATAL ? "local catastrophic error"
	       : event == VERBS_EVENT_PORT_ERR   ? "port error"
						 : "another event";
}

EXPORT const char *ibv_wc_status_str(int status);
EXPORT const char *ibv_wc_status_str(int status)
{
	return status == VERBS_WC_RETRY_EXC ? "transport retry counter exceeded" : "an error";
}

/* ---- memory ---- */

EXPORT struct verbs_pd *ibv_alloc_pd(struct verbs_context *c);
EXPORT struct verbs_pd *ibv_alloc_pd(struct verbs_context *c)
{
	struct pd *pd = calloc(1, sizeof(*pd));

	pd->context = c;
	live++;
	return (struct verbs_pd *)pd;
}

EXPORT int ibv_dealloc_pd(struct verbs_pd *pd);
EXPORT int ibv_dealloc_pd(struct verbs_pd *pd)
{
	free(pd);
	live--;
	return 0;
}

static struct region *region_new(struct pd *pd, uint64_t iova, size_t n)
{
	struct region *r = regions;

	pthread_mutex_lock(&memory_lock);
	while (r->live)
		r++;
	*r = (struct region){.live = true, .iova = iova, .at = (char *)iova};
	r->mr = (struct verbs_mr){.context = pd->context,
				  .pd = (struct verbs_pd *)pd,
				  .length = n,
				  .lkey = 0x1000u + (uint32_t)(r - regions),
				  .rkey = 0x1000u + (uint32_t)(r - regions)};
	r->shadow = calloc(1, n);
	r->waits = calloc(1, n);
	live++;
	pthread_mutex_unlock(&memory_lock);
	return r;
}

static bool over_limit(struct pd *pd, size_t n)
{
	long limit = fault(pd->context, "lock");

	pd->locked += n;
	if (limit <= 0 || pd->locked <= (uint64_t)limit)
		return false;
	pd->locked -= n;
	errno = ENOMEM;
	return true;
}

EXPORT struct verbs_mr *ibv_reg_mr(struct verbs_pd *opaque, void *at, size_t n, int access);
EXPORT struct verbs_mr *ibv_reg_mr(struct verbs_pd *opaque, void *at, size_t n, int access)
{
	struct pd *pd = (struct pd *)opaque;

	bool on_demand = access & VERBS_ON_DEMAND;

	if (on_demand && fault(pd->context, "no-paging") >= 0) {
		errno = EINVAL;
		return NULL;
	}
	if ((!on_demand && over_limit(pd, n)) ||
	    fails(pd->context, pd->registered < 2 ? "reg" : "peer"))
		return NULL;
	pd->registered++;
	registrations[!!(access & VERBS_RELAXED_ORDERING)]++;
	return &region_new(pd, (uint64_t)at, n)->mr;
}

EXPORT struct verbs_mr *ibv_reg_mr_iova2(struct verbs_pd *pd, void *at, size_t n, uint64_t iova,
					 unsigned access);
EXPORT struct verbs_mr *ibv_reg_mr_iova2(struct verbs_pd *pd, void *at, size_t n, uint64_t iova,
					 unsigned access)
{
	(void)iova;
	return ibv_reg_mr(pd, at, n, (int)access);
}

/*
 * The kernel's order: the operation, then the arguments, then the file, then the exporter's word.
 */
EXPORT struct verbs_mr *ibv_reg_dmabuf_mr(struct verbs_pd *opaque, uint64_t offset, size_t n,
					  uint64_t iova, int fd, int access);
EXPORT struct verbs_mr *ibv_reg_dmabuf_mr(struct verbs_pd *opaque, uint64_t offset, size_t n,
					  uint64_t iova, int fd, int access)
{
	struct pd *pd = (struct pd *)opaque;
	long error = fault(pd->context, "dmabuf");
	struct region *r;
	char *at;

	errno = (int)error;
	if (error == EPROTONOSUPPORT || error == EOPNOTSUPP)
		return NULL;
	errno = fd < 0 ? EBADF : offset % PAGE != iova % PAGE ? EINVAL : (int)error;
	if (fd < 0 || errno > 0)
		return NULL;
	at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
	if (at == MAP_FAILED)
		return NULL;
	registrations[!!(access & VERBS_RELAXED_ORDERING)]++;
	r = region_new(pd, iova, n);
	pthread_mutex_lock(&memory_lock);
	r->at = r->mapped = at;
	r->mapped_n = n;
	pthread_mutex_unlock(&memory_lock);
	return &r->mr;
}

EXPORT int ibv_dereg_mr(struct verbs_mr *mr);
EXPORT int ibv_dereg_mr(struct verbs_mr *mr)
{
	struct region *r = (struct region *)mr;

	pthread_mutex_lock(&memory_lock);
	((struct pd *)mr->pd)->locked -= r->mapped ? 0 : mr->length;
	((struct pd *)mr->pd)->registered -= !r->mapped;
	if (r->mapped)
		munmap(r->mapped, r->mapped_n);
	free(r->shadow);
	free(r->waits);
	r->live = false;
	live--;
	pthread_mutex_unlock(&memory_lock);
	return 0;
}

/* ---- queues ---- */

EXPORT struct verbs_cq *ibv_create_cq(struct verbs_context *c, int n, void *context,
				      struct verbs_comp_channel *channel, int vector);
EXPORT struct verbs_cq *ibv_create_cq(struct verbs_context *c, int n, void *context,
				      struct verbs_comp_channel *channel, int vector)
{
	struct completions *q = calloc(1, sizeof(*q));

	(void)channel, (void)vector;
	q->cq = (struct verbs_cq){.context = c, .cq_context = context, .cqe = n};
	q->wcs = calloc(WCS_MAX, sizeof(*q->wcs));
	live++;
	return &q->cq;
}

EXPORT int ibv_destroy_cq(struct verbs_cq *cq);
EXPORT int ibv_destroy_cq(struct verbs_cq *cq)
{
	struct completions *q = (struct completions *)cq;

	free(q->wcs);
	free(q);
	live--;
	return 0;
}

EXPORT struct verbs_qp *ibv_create_qp(struct verbs_pd *pd, struct verbs_qp_init_attr *a);
EXPORT struct verbs_qp *ibv_create_qp(struct verbs_pd *pd, struct verbs_qp_init_attr *a)
{
	struct queue *q;
	uint32_t number = 0;

	while (number < QPS_MAX && queues[number])
		number++;
	if (number == QPS_MAX) {
		errno = ENOMEM;
		return NULL;
	}
	q = queues[number] = calloc(1, sizeof(*q));
	q->far = -1;
	q->qp = (struct verbs_qp){.context = ((struct pd *)pd)->context,
				  .pd = pd,
				  .send_cq = a->send_cq,
				  .recv_cq = a->recv_cq,
				  .qp_num = slot << 8 | number,
				  .qp_type = a->qp_type};
	live++;
	return &q->qp;
}

EXPORT int ibv_destroy_qp(struct verbs_qp *qp);
EXPORT int ibv_destroy_qp(struct verbs_qp *qp)
{
	struct queue *q = (struct queue *)qp;

	queues[qp->qp_num & 0xff] = NULL;
	if (q->far >= 0)
		close(q->far);
	free(qp);
	live--;
	return 0;
}

/* Whether the address of another port is in this one's network. */
static bool can_meet(struct verbs_context *c, const struct verbs_ah_attr *path)
{
	const struct nic *n = (const struct nic *)c->device;

	return fault(c, "rails") < 0 || path->grh.dgid.raw[0] == 0xfe ||
	       path->grh.dgid.raw[14] == n->index;
}

/* Refuses what a NIC refuses: a step out of order, a path without an address, seven tries. */
EXPORT int ibv_modify_qp(struct verbs_qp *qp, struct verbs_qp_attr *a, int mask);
EXPORT int ibv_modify_qp(struct verbs_qp *qp, struct verbs_qp_attr *a, int mask)
{
	static const char *const words[] = {"", "init", "rtr", "rts"};
	struct queue *q = (struct queue *)qp;

	if (!(mask & VERBS_QP_STATE) || a->qp_state != q->state + 1)
		return EINVAL;
	if (a->qp_state == VERBS_QPS_RTR && (!a->ah_attr.is_global || !(mask & VERBS_QP_AV)))
		return EINVAL;
	if (a->qp_state == VERBS_QPS_RTS && a->retry_cnt > 6)
		return EINVAL;
	if (fails(qp->context, words[a->qp_state]))
		return errno;
	if (a->qp_state == VERBS_QPS_RTR && !can_meet(qp->context, &a->ah_attr))
		return ETIMEDOUT;
	if (a->qp_state == VERBS_QPS_RTR)
		q->peer = a->dest_qp_num;
	q->state = a->qp_state;
	return 0;
}

/* ---- data ---- */

static struct region *find(uint32_t key, uint64_t at, uint64_t n)
{
	struct region *r = &regions[(key - 0x1000u) % MRS_MAX];

	return key >= 0x1000u && r->live && at >= r->iova && n <= r->mr.length &&
			       at - r->iova <= r->mr.length - n
		       ? r
		       : NULL;
}

static bool has_data_fault(const struct verbs_context *c, bool read, const char *kind)
{
	char word[32];

	snprintf(word, sizeof(word), "%s-%s", read ? "read" : "write", kind);
	return fault(c, word) >= 0;
}

/* What is on its way arrives at the latest when it is read from outside. */
static void settle(struct region *r)
{
	for (size_t i = 0; i < r->mr.length; i++)
		if (r->waits[i]) {
			r->at[i] = r->shadow[i];
			r->waits[i] = 0;
		}
}

/* The data of the first time, again and again. */
static void put_stale(struct region *r, uint64_t offset, const char *from, uint64_t n)
{
	if (!r->waits[offset]) {
		memcpy(r->shadow + offset, from, n);
		r->waits[offset] = 1;
	}
	memcpy(r->at + offset, r->shadow + offset, n);
}

/*
 * As a NIC writes without relaxed ordering: who sees the last byte sees all others. memcpy writes
 * in any order.
 */
static void put_in_order(char *to, const char *from, uint64_t n)
{
	memcpy(to, from, n - 1);
	__atomic_store_n(to + n - 1, from[n - 1], __ATOMIC_RELEASE);
}

static void put_flipped(char *to, const char *from, uint64_t n)
{
	char *copy = malloc(n);

	memcpy(copy, from, n);
	copy[n / 2] ^= 4;
	put_in_order(to, copy, n);
	free(copy);
}

static void put(const struct verbs_context *c, bool read, struct region *r, uint64_t offset,
		const char *from, uint64_t n)
{
	char *to = r->at + offset;
	int number = ++written_n;

	if (has_data_fault(c, read, "lost"))
		return;
	if (has_data_fault(c, read, "zeros")) {
		memset(to, 0, n);
	} else if (has_data_fault(c, read, "stale")) {
		put_stale(r, offset, from, n);
	} else if (has_data_fault(c, read, "shift")) {
		if (offset + SHIFT + n <= r->mr.length)
			memcpy(to + SHIFT, from, n);
	} else if (has_data_fault(c, read, "torn")) {
		memcpy(to, from, n > TAIL ? n - TAIL : 0);
	} else if (has_data_fault(c, read, "unflushed")) {
		memcpy(r->shadow + offset, from, n);
		memset(r->waits + offset, 1, n);
	} else if ((has_data_fault(c, read, "flips") && number % 2) ||
		   (has_data_fault(c, read, "flip") && number % 16 == 7)) {
		put_flipped(to, from, n);
	} else if (n) {
		put_in_order(to, from, n);
	}
	if (has_data_fault(c, read, "outside"))
		memset(r->at + 8, 0x77, 8);
}

static void tell(struct verbs_cq *cq, uint32_t number, uint64_t id, int status)
{
	struct completions *q = (struct completions *)cq;

	pthread_mutex_lock(&queue_lock);
	if (q->n == WCS_MAX)
		abort();
	q->wcs[(q->first + q->n++) % WCS_MAX] = (struct verbs_wc){.wr_id = id,
								  .status = status,
								  .vendor_err = status ? 0x81 : 0,
								  .qp_num = number};
	pthread_mutex_unlock(&queue_lock);
}

static void complete(struct verbs_qp *qp, const struct verbs_send_wr *wr, int status)
{
	if (wr->send_flags & VERBS_SIGNALED || status != VERBS_WC_SUCCESS)
		tell(qp->send_cq, qp->qp_num, wr->wr_id, status);
}

/* ---- receive requests ---- */

static int post_recv(struct verbs_qp *qp, struct verbs_recv_wr *wr, struct verbs_recv_wr **bad)
{
	struct queue *q = (struct queue *)qp;
	int r = 0;

	*bad = wr;
	pthread_mutex_lock(&queue_lock);
	if (q->receive_n == RECEIVES_MAX) {
		r = ENOMEM;
	} else {
		q->receives[q->receive_n] = *wr->sg_list;
		q->receive_ids[q->receive_n++] = wr->wr_id;
	}
	pthread_mutex_unlock(&queue_lock);
	return r;
}

/* The first receive request of a queue of this process. */
static bool take_receive(struct queue *q, struct verbs_sge *ret, uint64_t *ret_id)
{
	bool has;

	pthread_mutex_lock(&queue_lock);
	has = q && q->receive_n;
	if (has) {
		*ret = q->receives[0];
		*ret_id = q->receive_ids[0];
		q->receive_n--;
		memmove(q->receives, q->receives + 1, q->receive_n * sizeof(*q->receives));
		memmove(q->receive_ids, q->receive_ids + 1, q->receive_n * sizeof(*q->receive_ids));
	}
	pthread_mutex_unlock(&queue_lock);
	return has;
}

/* ---- memory of other processes ---- */

/*
 * What one process asks of another, with the data behind a write, or behind the answer to a read.
 */
struct errand {
	uint64_t at, n;
	uint32_t key, queue; /* of the far side */
	int opcode;
};

static bool send_all(int fd, const void *data, size_t n)
{
	for (const char *at = data; n;) {
		ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		at += sent;
		n -= (size_t)sent;
	}
	return true;
}

static bool receive_all(int fd, void *data, size_t n)
{
	for (char *at = data; n;) {
		ssize_t got = recv(fd, at, n, 0);

		if (got <= 0)
			return false;
		at += got;
		n -= (size_t)got;
	}
	return true;
}

/*
 * The far side of a transfer, in the process that has the memory: a status, and the data of a read.
 */
static int reach_region(const struct errand *e, char *data)
{
	struct region *r;
	int status = VERBS_WC_SUCCESS;

	pthread_mutex_lock(&memory_lock);
	r = find(e->key, e->at, e->n);
	if (!r) {
		status = VERBS_WC_REM_ACCESS;
	} else if (e->opcode == VERBS_WR_READ) {
		if (has_data_fault(r->mr.context, false, "unflushed"))
			settle(r);
		memcpy(data, r->at + (e->at - r->iova), e->n);
	} else {
		put(r->mr.context, false, r, e->at - r->iova, data, e->n);
	}
	pthread_mutex_unlock(&memory_lock);
	return status;
}

/*
 * A message has no address: it goes to the first receive request. A write with a number uses one up
 * too.
 */
static int reach_memory(const struct errand *e, char *data)
{
	struct queue *q = queues[e->queue & 0xff];
	bool told = e->opcode == VERBS_WR_SEND || e->opcode == VERBS_WR_WRITE_WITH_IMM;
	struct errand to = *e;
	struct verbs_sge into;
	uint64_t id = 0;
	int status;

	if (told && !take_receive(q, &into, &id))
		return VERBS_WC_RNR_RETRY_EXC;
	if (e->opcode == VERBS_WR_SEND) {
		to.at = into.addr;
		to.key = into.lkey;
	}
	status = reach_region(&to, data);
	if (told)
		tell(q->qp.recv_cq, q->qp.qp_num, id, status);
	return status;
}

static bool run_errand(int fd, const struct errand *e, char *data)
{
	int status;

	bool read = e->opcode == VERBS_WR_READ;

	if (!read && !receive_all(fd, data, e->n))
		return false;
	status = reach_memory(e, data);
	return send_all(fd, &status, sizeof(status)) &&
	       (!read || status || send_all(fd, data, e->n));
}

enum { ERRAND_MAX = 8 << 20 };

static void *serve_one(void *context)
{
	int fd = (int)(intptr_t)context;
	char *data = malloc(ERRAND_MAX);
	struct errand e;

	while (receive_all(fd, &e, sizeof(e)) && e.n <= ERRAND_MAX && run_errand(fd, &e, data))
		;
	free(data);
	close(fd);
	return NULL;
}

static void *serve_all(void *context)
{
	int listener = (int)(intptr_t)context, fd;
	pthread_t thread;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		if (pthread_create(&thread, NULL, serve_one, (void *)(intptr_t)fd) == 0)
			pthread_detach(thread);
	return NULL;
}

static socklen_t slot_address(unsigned number, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1,
					    "verbs-standin/%u/%u", getuid(), number));
}

/* Once: takes the first free slot. */
static void serve_others(void)
{
	int fd = slot ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t thread;

	for (unsigned i = 0; fd >= 0 && i < SLOTS; i++) {
		unsigned number = ((unsigned)getpid() + i) % (SLOTS - 1) + 1;
		struct sockaddr_un a;
		socklen_t size = slot_address(number, &a);

		if (bind(fd, (struct sockaddr *)&a, size) < 0)
			continue;
		if (listen(fd, 64) < 0 ||
		    pthread_create(&thread, NULL, serve_all, (void *)(intptr_t)fd) != 0)
			abort();
		pthread_detach(thread);
		slot = number;
		return;
	}
}

/* A NIC's retries, of a process that is gone or does not answer. */
static bool far_open(struct queue *q)
{
	const struct timeval patience = {.tv_usec = 500000};
	struct sockaddr_un a;
	socklen_t size = slot_address(q->peer >> 8, &a);

	if (q->far >= 0)
		return true;
	q->far = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(q->far, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(q->far, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return connect(q->far, (struct sockaddr *)&a, size) == 0;
}

/* With the near side's memory locked by nobody: the far side may be this very process's peer. */
static int send_errand(struct queue *q, const struct verbs_send_wr *wr, char *data)
{
	const struct errand e = {.at = wr->rdma.remote_addr,
				 .n = wr->sg_list->length,
				 .key = wr->rdma.rkey,
				 .queue = q->peer,
				 .opcode = wr->opcode};
	bool read = e.opcode == VERBS_WR_READ;
	int status;

	if (!far_open(q) || !send_all(q->far, &e, sizeof(e)) ||
	    (!read && !send_all(q->far, data, e.n)) ||
	    !receive_all(q->far, &status, sizeof(status)) ||
	    (read && !status && !receive_all(q->far, data, e.n)))
		return VERBS_WC_RETRY_EXC;
	return status;
}

/* ---- work requests ---- */

/* To or from the near side's memory. */
static int copy_near(struct verbs_qp *qp, const struct verbs_send_wr *wr, char *data)
{
	bool read = wr->opcode == VERBS_WR_READ;
	uint64_t n = wr->sg_list->length;
	struct region *local;

	pthread_mutex_lock(&memory_lock);
	local = find(wr->sg_list->lkey, wr->sg_list->addr, n);
	if (local && read)
		put(qp->context, true, local, wr->sg_list->addr - local->iova, data, n);
	else if (local)
		memcpy(data, local->at + (wr->sg_list->addr - local->iova), n);
	pthread_mutex_unlock(&memory_lock);
	return local ? VERBS_WC_SUCCESS : VERBS_WC_LOC_PROT;
}

/* Reads see all that was written there before on the same queue. */
static int carry(struct verbs_qp *qp, const struct verbs_send_wr *wr)
{
	struct queue *q = (struct queue *)qp;
	bool read = wr->opcode == VERBS_WR_READ;
	const struct errand e = {wr->rdma.remote_addr, wr->sg_list->length, wr->rdma.rkey, q->peer,
				 wr->opcode};
	char *data = malloc(e.n);
	int status = read ? VERBS_WC_SUCCESS : copy_near(qp, wr, data);

	if (status == VERBS_WC_SUCCESS)
		status = q->peer >> 8 == slot ? reach_memory(&e, data) : send_errand(q, wr, data);
	if (status == VERBS_WC_SUCCESS && read)
		status = copy_near(qp, wr, data);
	free(data);
	return status;
}

/* Before the completion that says why, which a NIC may do too. */
static void flush_receives(struct queue *q)
{
	struct verbs_sge into;
	uint64_t id = 0;

	while (take_receive(q, &into, &id))
		tell(q->qp.recv_cq, q->qp.qp_num, id, VERBS_WC_WR_FLUSH);
}

static int post_send(struct verbs_qp *qp, struct verbs_send_wr *wr, struct verbs_send_wr **bad)
{
	struct queue *q = (struct queue *)qp;
	long status = fault(qp->context, "status");
	int outcome;

	*bad = wr;
	if (q->state != VERBS_QPS_RTS || (q->peer >> 8 == slot && !queues[q->peer & 0xff]))
		return EINVAL;
	while (fault(qp->context, "stuck") >= 0)
		pause();
	if (fault(qp->context, "die") >= 0)
		abort();
	for (; wr; wr = wr->next) {
		if (fault(qp->context, "silent") >= 0)
			continue;
		if (status > 0 && !q->broken)
			report(qp->context);
		outcome = q->broken ? VERBS_WC_WR_FLUSH : status > 0 ? (int)status : carry(qp, wr);
		if (outcome != VERBS_WC_SUCCESS)
			flush_receives(q);
		complete(qp, wr, outcome);
		q->broken = q->broken || outcome != VERBS_WC_SUCCESS;
	}
	return 0;
}

static int poll_cq(struct verbs_cq *cq, int n, struct verbs_wc *wc)
{
	struct completions *q = (struct completions *)cq;
	int i;

	pthread_mutex_lock(&queue_lock);
	for (i = 0; i < n && q->n; i++, q->n--) {
		wc[i] = q->wcs[q->first];
		q->first = (q->first + 1) % WCS_MAX;
	}
	pthread_mutex_unlock(&queue_lock);
	return i;
}
