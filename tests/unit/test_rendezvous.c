/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that find each other, exchange, and what becomes of strangers and of the missing. */
#include "device/presence.h"
#include "device/rendezvous.h"

#include "base/cleanup.h"
#include "base/err.h"

#include "skip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_US   60000000 /* nothing should take as long */
#define SHORT_US  200000   /* for what must time out */
#define ENOUGH_US 3000000  /* for a rank to come, before what must time out */

/* Tests run side by side with those of other builds. */
static const char *key_of(const char *test)
{
	static char key[RENDEZVOUS_KEY_MAX + 1];

	snprintf(key, sizeof(key), "test-%s-%d", test, (int)getpid());
	return key;
}

struct rank_plan {
	struct rendezvous_request request;
	int (*run)(const struct rank_plan *p);
};

/* Ranks 1 .. n-1 in processes of their own, rank 0 here; last comes first. All must answer 0. */
static void run_ranks(const struct rendezvous_request *q, int (*run)(const struct rank_plan *p))
{
	struct rank_plan p = {.request = *q, .run = run};
	pid_t pids[16];
	int status;

	for (int rank = q->n - 1; rank > 0; rank--) {
		p.request.rank = rank;
		pids[rank] = fork();
		assert_true(pids[rank] >= 0);
		if (pids[rank] == 0)
			_exit(-run(&p));
	}
	p.request.rank = 0;
	assert_int_equal(run(&p), 0);
	for (int rank = 1; rank < q->n; rank++) {
		assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

static bool all_of(const unsigned char *p, int value, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] != value)
			return false;
	}
	return true;
}

static int gather_once(struct rendezvous *r, int rank, int n, size_t size)
{
	AUTO_FREE unsigned char *all = calloc((size_t)n, size);
	unsigned char mine[RENDEZVOUS_BLOB_MAX];
	int err;

	memset(mine, 16 + rank, size);
	err = rendezvous_gather(r, mine, size, all);
	for (int i = 0; i < n && err == 0; i++)
		err = all_of(all + (size_t)i * size, 16 + i, size) ? 0 : -EBADMSG;
	return err;
}

static int broadcast_once(struct rendezvous *r, int rank)
{
	unsigned char id[128];
	int err;

	memset(id, rank == 0 ? 77 : 0, sizeof(id));
	err = rendezvous_broadcast(r, id, sizeof(id));
	return err < 0 || all_of(id, 77, sizeof(id)) ? err : -EBADMSG;
}

static int exchange(const struct rank_plan *p)
{
	const struct rendezvous_request *q = &p->request;
	struct rendezvous *r;
	int err = rendezvous_join(q, &r);

	if (err < 0)
		return err;
	err = gather_once(r, q->rank, q->n, 1);
	if (err == 0)
		err = broadcast_once(r, q->rank);
	if (err == 0)
		err = gather_once(r, q->rank, q->n, RENDEZVOUS_BLOB_MAX);
	rendezvous_leave(r);
	return err;
}

static void test_unix(void **state)
{
	(void)state;
	run_ranks(&(struct rendezvous_request){.key = key_of("unix"), .n = 5, .limit_us = LONG_US},
		  exchange);
}

static void test_alone(void **state)
{
	(void)state;
	run_ranks(&(struct rendezvous_request){.key = key_of("alone"), .n = 1, .limit_us = LONG_US},
		  exchange);
}

/* The same key over and over: no process of one meeting gets into the next. */
static int gather_often(const struct rank_plan *p)
{
	const struct rendezvous_request *q = &p->request;
	struct rendezvous *r;
	int all[3], err = 0;

	for (int i = 0; i < 20 && err == 0; i++) {
		int mine = 100 * i + q->rank;

		err = rendezvous_join(q, &r);
		if (err < 0)
			return err;
		err = rendezvous_gather(r, &mine, sizeof(mine), all);
		rendezvous_leave(r);
		for (int k = 0; k < q->n && err == 0; k++)
			err = all[k] == 100 * i + k ? 0 : -EBADMSG;
	}
	return err;
}

static void test_again_and_again(void **state)
{
	(void)state;
	run_ranks(&(struct rendezvous_request){.key = key_of("again"), .n = 3, .limit_us = LONG_US},
		  gather_often);
}

/* Each opens a pipe and hands out its reading end; each reads what every other wrote. */
static int exchange_pipes(const struct rank_plan *p)
{
	const struct rendezvous_request *q = &p->request;
	struct rendezvous *r;
	int all[16], ends[2], err = rendezvous_join(q, &r);
	char c;

	if (err < 0)
		return err;
	if (pipe2(ends, O_CLOEXEC) < 0 || write(ends[1], "0123456789abcdef", 16) != 16)
		return -errno;
	err = rendezvous_gather_fd(r, q->rank == 1 ? -1 : ends[0], all);
	/* In turns: pipes are read up. */
	for (int turn = 0; turn < q->n && err == 0; turn++) {
		for (int i = 0; i < q->n && turn == q->rank && err == 0; i++) {
			if (i == 1)
				err = all[i] == -1 ? 0 : -EBADMSG;
			else if (read(all[i], &c, 1) != 1 || c != "0123456789abcdef"[turn] ||
				 !(fcntl(all[i], F_GETFD) & FD_CLOEXEC))
				err = -EBADMSG;
		}
		if (err == 0)
			err = gather_once(r, q->rank, q->n, 8);
	}
	for (int i = 0; i < q->n; i++)
		cleanup_close(&all[i]);
	rendezvous_leave(r);
	return err;
}

static void test_file_descriptors(void **state)
{
	(void)state;
	run_ranks(&(struct rendezvous_request){.key = key_of("fd"), .n = 4, .limit_us = LONG_US},
		  exchange_pipes);
}

/* ---- TCP ---- */

/* A port that nobody listens at; false: this host has no such addresses. */
static bool free_port(const char *host, char *ret, size_t size)
{
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	bool six = host[0] == '[';
	struct sockaddr *a = six ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4;
	socklen_t n = six ? sizeof(a6) : sizeof(a4);
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, a, n) < 0 || getsockname(fd, a, &n) < 0) {
		cleanup_close(&fd);
		return false;
	}
	snprintf(ret, size, "%s:%u", host, ntohs(six ? a6.sin6_port : a4.sin_port));
	close(fd);
	return true;
}

static void test_tcp(void **state)
{
	static const char *const hosts[] = {"127.0.0.1", "[::1]", "localhost"};
	char address[64];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		if (!free_port(hosts[i], address, sizeof(address)))
			continue;
		run_ranks(&(struct rendezvous_request){.key = key_of("tcp"),
						       .address = address,
						       .n = 3,
						       .limit_us = LONG_US},
			  exchange);
	}
}

static int connect_to(const char *address)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_port = htons((uint16_t)strtoul(strchr(address, ':') + 1, NULL, 10));
	while (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		if (errno != ECONNREFUSED)
			return -1;
		usleep(1000);
	}
	return fd;
}

/*
 * Says nothing, rubbish, half a sentence, or comes with another key, more often than there is room.
 */
static int be_strange(const char *address)
{
	const struct rendezvous_request other = {
		.key = "another", .address = address, .rank = 2, .n = 3, .limit_us = SHORT_US};
	char rubbish[300];
	struct rendezvous *r;
	int fds[200];

	memset(rubbish, 'x', sizeof(rubbish));
	for (int i = 0; i < 200; i++) {
		fds[i] = connect_to(address);
		if (fds[i] < 0 ||
		    (i % 3 && send(fds[i], rubbish, i % 3 == 1 ? 20 : 300, MSG_NOSIGNAL) < 0 &&
		     errno != EPIPE && errno != ECONNRESET))
			return 1;
	}
	return rendezvous_join(&other, &r) == -ETIMEDOUT ? 0 : 2;
}

/* Rank 2 comes when the strangers are through. */
static int come_after_strangers(const struct rank_plan *p)
{
	pid_t stranger = fork();
	int status = -1;

	if (stranger == 0)
		_exit(be_strange(p->request.address));
	if (waitpid(stranger, &status, 0) != stranger || status != 0)
		return -EBADMSG;
	return exchange(p);
}

static int exchange_among_strangers(const struct rank_plan *p)
{
	return p->request.rank == 2 ? come_after_strangers(p) : exchange(p);
}

static void test_strangers(void **state)
{
	char address[64];

	(void)state;
	assert_true(free_port("127.0.0.1", address, sizeof(address)));
	run_ranks(&(struct rendezvous_request){.key = key_of("strangers"),
					       .address = address,
					       .n = 3,
					       .limit_us = LONG_US},
		  exchange_among_strangers);
}

/* ---- what goes wrong ---- */

static void test_missing(void **state)
{
	struct rendezvous_request q = {.key = key_of("missing"), .n = 3, .limit_us = SHORT_US};
	struct rendezvous *r = NULL;

	(void)state;
	assert_int_equal(rendezvous_join(&q, &r), -ETIMEDOUT);
	assert_non_null(strstr(err_msg(), "rank 1 of 3 did not join"));
	q.rank = 2;
	assert_int_equal(rendezvous_join(&q, &r), -ETIMEDOUT);
	assert_non_null(strstr(err_msg(), "rank 0 of 3 did not open"));
	q.key = "a\033[2J\nb";
	assert_int_equal(rendezvous_join(&q, &r), -ETIMEDOUT);
	assert_string_equal(err_msg(), "rank 0 of 3 did not open 'a?[2J?b'");
	assert_null(r);
}

/* Rank 0, which gives up as `want` says. */
static void *first_who_gives_up(void *context)
{
	struct rendezvous *r = NULL;

	return (void *)(intptr_t)rendezvous_join(context, &r);
}

/*
 * Rank 1 comes, rank 2 does not. Another one may have come in vain: rank 1 is told that by rank 0,
 * which is not to blame.
 */
static void one_who_came(int other, int other_n, int want, const char *sentence)
{
	struct rendezvous_request q = {.key = key_of("came"), .n = 3, .limit_us = ENOUGH_US};
	struct rendezvous_request one = q, vain = q;
	struct rendezvous *r = NULL, *none = NULL;
	char mine = 1, all[3];
	pthread_t thread;
	void *end;

	one.rank = 1;
	one.limit_us = LONG_US;
	vain.rank = other;
	vain.n = other_n;
	vain.limit_us = LONG_US;
	assert_int_equal(pthread_create(&thread, NULL, first_who_gives_up, &q), 0);
	assert_int_equal(rendezvous_join(&one, &r), 0);
	if (other_n)
		assert_int_equal(rendezvous_join(&vain, &none), want);
	assert_int_equal(rendezvous_gather(r, &mine, 1, all), want);
	assert_non_null(strstr(err_msg(), sentence));
	rendezvous_leave(r);
	pthread_join(thread, &end);
	assert_int_equal((int)(intptr_t)end, want);
}

static void test_one_who_came(void **state)
{
	(void)state;
	one_who_came(0, 0, -ETIMEDOUT, "rank 2 of 3 did not join at");
	one_who_came(2, 4, -EPROTO, "rank 0 expects a total of 3 ranks, but rank 2 a total of 4");
}

static void *first_of_two(void *context)
{
	const struct rendezvous_request *q = context;
	struct rendezvous *r = NULL;
	int err = rendezvous_join(q, &r);
	int all[3], mine = 0;

	if (err == 0)
		err = rendezvous_gather(r, &mine, sizeof(mine), all);
	rendezvous_leave(r);
	return (void *)(intptr_t)err;
}

/* Rank 0 in a thread; `wrong` is refused with `want`, then the right one comes and goes. */
static void refuse(const struct rendezvous_request *wrong, int want, const char *sentence)
{
	struct rendezvous_request q = {.key = wrong->key,
				       .address = wrong->address,
				       .n = 3,
				       .limit_us = LONG_US};
	struct rendezvous *one = NULL, *two = NULL, *bad = NULL;
	pthread_t thread;
	void *end;

	assert_int_equal(pthread_create(&thread, NULL, first_of_two, &q), 0);
	struct rendezvous_request other = q;
	other.rank = 1;
	assert_int_equal(rendezvous_join(&other, &one), 0);
	assert_int_equal(rendezvous_join(wrong, &bad), want);
	assert_non_null(strstr(err_msg(), sentence));
	assert_null(bad);
	other.rank = 2;
	assert_int_equal(rendezvous_join(&other, &two), 0);
	rendezvous_leave(two); /* rank 0 finds out in its exchange */
	rendezvous_leave(one);
	pthread_join(thread, &end);
	assert_int_equal((int)(intptr_t)end, -ECONNRESET);
}

static void test_refused(void **state)
{
	(void)state;
	refuse(&(struct rendezvous_request){.key = key_of("refused"),
					    .rank = 1,
					    .n = 3,
					    .limit_us = LONG_US},
	       -EEXIST, "claim to be rank 1");
	refuse(&(struct rendezvous_request){.key = key_of("refused"),
					    .rank = 1,
					    .n = 2,
					    .limit_us = LONG_US},
	       -EPROTO, "rank 0 expects a total of 3 ranks, but rank 1 a total of 2");
	refuse(&(struct rendezvous_request){.key = key_of("refused"), .n = 3, .limit_us = LONG_US},
	       -EEXIST, "claim to be rank 0");
	refuse(&(struct rendezvous_request){.key = key_of("refused"), .n = 4, .limit_us = LONG_US},
	       -EEXIST, "claim to be rank 0");
}

/*
 * Of two processes that are rank 0 the later one knows at once; the first one and who has come to
 * it, when they give up.
 */
static void test_two_first(void **state)
{
	char address[64];

	(void)state;
	one_who_came(0, 3, -EEXIST, "rank 2 of 3 did not join at");
	assert_non_null(strstr(err_msg(), "but two processes claim to be rank 0"));
	assert_true(free_port("127.0.0.1", address, sizeof(address)));
	refuse(&(struct rendezvous_request){.key = key_of("refused"),
					    .address = address,
					    .n = 3,
					    .limit_us = LONG_US},
	       -EEXIST, "claim to be rank 0");
}

/* Ranks 0 and 2 of three; rank 1 is silent, or has gone. Both learn that it is rank 1. */
struct trio {
	struct rendezvous *of[3];
	bool descriptors; /* what they exchange */
	int want;
};

static int exchange_in_trio(const struct trio *t, int rank)
{
	char mine = 1, all[3];
	int fds[3];

	return t->descriptors ? rendezvous_gather_fd(t->of[rank], -1, fds)
			      : rendezvous_gather(t->of[rank], &mine, 1, all);
}

static bool blames(const struct trio *t, int rank)
{
	const char *sentence = t->want == -ETIMEDOUT ? "does not answer" : "closed its connection";
	bool right = true;

	for (int again = 0; again < 2; again++)
		right &= exchange_in_trio(t, rank) == t->want && strstr(err_msg(), "rank 1 of 3") &&
			 strstr(err_msg(), sentence);
	return right;
}

static void *first_of_trio(void *context)
{
	const struct trio *t = context;
	const bool right = blames(t, 0);

	rendezvous_leave(t->of[0]);
	return (void *)(intptr_t)right;
}

struct joining {
	struct rendezvous_request q;
	struct rendezvous *ret;
};

static void *join_one(void *context)
{
	struct joining *j = context;

	return (void *)(intptr_t)rendezvous_join(&j->q, &j->ret);
}

/*
 * Only rank 0 has a limit for later calls that can be reached, so that rank 2 is told. late: when
 * rank 0 has gone already.
 */
static void lose_one(bool gone, bool descriptors, bool late)
{
	struct trio t = {.descriptors = descriptors, .want = gone ? -ECONNRESET : -ETIMEDOUT};
	const char *key = key_of("lost");
	struct joining j[3];
	pthread_t threads[3];
	void *end;

	for (int i = 0; i < 3; i++) {
		j[i] = (struct joining){.q = {.key = key,
					      .rank = i,
					      .n = 3,
					      .limit_us = LONG_US,
					      .later_us = i ? LONG_US : SHORT_US}};
		assert_int_equal(pthread_create(&threads[i], NULL, join_one, &j[i]), 0);
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &end);
		assert_null(end);
		t.of[i] = j[i].ret;
	}
	if (gone)
		rendezvous_leave(t.of[1]);
	assert_int_equal(pthread_create(&threads[0], NULL, first_of_trio, &t), 0);
	if (late)
		pthread_join(threads[0], &end);
	assert_true(blames(&t, 2));
	if (!late)
		pthread_join(threads[0], &end);
	assert_non_null(end);
	rendezvous_leave(t.of[2]);
	if (!gone)
		rendezvous_leave(t.of[1]);
}

static void test_lost(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++)
		lose_one(i & 1, i & 2, i & 4);
}

static int gather_size(const struct rank_plan *p, size_t size, int want)
{
	char mine[64] = {0}, all[128];
	struct rendezvous *r;
	int err = rendezvous_join(&p->request, &r);

	if (err < 0)
		return err;
	err = rendezvous_gather(r, mine, size, all);
	rendezvous_leave(r);
	return err == want ? 0 : -EBADMSG;
}

static int gather_unlike(const struct rank_plan *p)
{
	bool first = p->request.rank == 0;

	return gather_size(p, first ? 64 : 32, first ? -EPROTO : -ECONNRESET);
}

static void test_sizes_differ(void **state)
{
	(void)state;
	run_ranks(&(struct rendezvous_request){.key = key_of("sizes"), .n = 2, .limit_us = LONG_US},
		  gather_unlike);
}

static void test_wrong_requests(void **state)
{
	static const struct rendezvous_request wrong[] = {
		{.key = NULL, .n = 1},
		{.key = "", .n = 1},
		{.key = "0123456789012345678901234567890123456789012345678901234567890123", .n = 1},
		{.key = "k", .n = 0},
		{.key = "k", .n = 2, .rank = 2},
		{.key = "k", .n = 2, .rank = -1},
		{.key = "k", .n = RENDEZVOUS_RANK_MAX + 1},
		{.key = "k", .n = 2, .address = "nowhere"},
		{.key = "k", .n = 2, .address = "127.0.0.1:"},
		{.key = "k", .n = 2, .address = ":1"},
		{.key = "k", .n = 2, .address = "::1:7"},
		{.key = "k", .n = 2, .address = "127.0.0.1:http"},
	};
	struct rendezvous *r = NULL;
	char all[8];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(rendezvous_join(&wrong[i], &r), -EINVAL);
		assert_null(r);
	}
	assert_int_equal(
		rendezvous_join(&(struct rendezvous_request){.key = key_of("size"), .n = 1}, &r),
		0);
	assert_int_equal(rendezvous_gather(r, "", 0, all), -EINVAL);
	assert_int_equal(rendezvous_broadcast(r, all, RENDEZVOUS_BLOB_MAX + 1), -EINVAL);
	rendezvous_leave(r);
}

/* Lets the first who comes wait for an answer until he goes, and is rank 0 only then. */
static void *late_first(void *context)
{
	const struct rendezvous_request *q = context;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct rendezvous *r = NULL;
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "onehop/%u/%s", getuid(), q->key);
	int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), guest;
	char byte;
	int err;

	if (bind(door, (struct sockaddr *)&a, (socklen_t)(3 + n)) < 0 || listen(door, 1) < 0)
		return (void *)(intptr_t)-errno;
	guest = accept4(door, NULL, NULL, SOCK_CLOEXEC);
	while (read(guest, &byte, 1) == 1)
		;
	close(guest);
	close(door);
	err = rendezvous_join(q, &r);
	rendezvous_leave(r);
	return (void *)(intptr_t)err;
}

/* What takes the connection and is silent is not waited for until the end. */
static void test_silence(void **state)
{
	struct rendezvous_request q = {.key = key_of("silence"), .n = 2, .limit_us = LONG_US};
	struct rendezvous_request other = q;
	struct rendezvous *r = NULL;
	pthread_t thread;
	void *end;

	(void)state;
	other.rank = 1;
	assert_int_equal(pthread_create(&thread, NULL, late_first, &q), 0);
	assert_int_equal(rendezvous_join(&other, &r), 0);
	pthread_join(thread, &end);
	assert_int_equal((int)(intptr_t)end, 0);
	rendezvous_leave(r);
}

/* Where this process may become another user: whose name it is, is not asked. */
/* As long as somebody has it; ranks of other keys and beyond the number are not counted. */
static void test_presence(void **state)
{
	int zero = presence_announce("presence", 0), two = presence_announce("presence", 2), other;

	(void)state;
	assert_true(zero >= 0 && two >= 0);
	other = presence_announce("presences", 1);
	assert_true(other >= 0);
	assert_int_equal(presence_announce("presence", 2), -EADDRINUSE);
	assert_int_equal(presence_count("presence", 3), 2);
	assert_int_equal(presence_count("presence", 2), 1);
	close(zero);
	assert_int_equal(presence_count("presence", 3), 1);
	close(two);
	close(other);
	assert_int_equal(presence_count("presence", 3), 0);
}

static void test_other_user(void **state)
{
	const struct rendezvous_request q = {.key = key_of("user"),
					     .rank = 1,
					     .n = 2,
					     .limit_us = LONG_US};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct rendezvous *r = NULL;
	int fd, n, status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		SKIP("only root can play another user");
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "onehop/%u/%s", getuid(), q.key);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid = fork();
	if (pid == 0) {
		/* Credentials of a listener are those at listen(). */
		if (setuid(12345) < 0 || bind(fd, (struct sockaddr *)&a, (socklen_t)(3 + n)) < 0 ||
		    listen(fd, 1) < 0)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(rendezvous_join(&q, &r), -EACCES);
	assert_non_null(strstr(err_msg(), "user 12345"));
	assert_null(r);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unix),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_again_and_again),
		cmocka_unit_test(test_file_descriptors),
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_one_who_came),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_two_first),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_sizes_differ),
		cmocka_unit_test(test_wrong_requests),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_other_user),
		cmocka_unit_test(test_presence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
