/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdma/peer_text.c and rdma/peer.c: what two hosts tell each other, and what is not accepted of it.
 */
#include "base/array.h"
#include "base/err.h"
#include "rdma/peer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static int parse(const char *line, struct peer_message *ret)
{
	return peer_parse(line, strlen(line), ret);
}

/* ---- lines ---- */

static void every_word_comes_back(void **state)
{
	(void)state;
	for (int w = 0; w < PEER_WORD_N; w++) {
		AUTO_STRBUF struct strbuf once = {0}, twice = {0};
		struct peer_message m = {.word = (enum peer_word)w,
					 .name = "gpu01",
					 .text = "a sentence = with signs, 100 %",
					 .list = {7, UINT32_MAX},
					 .list_n = 2},
				    back;

		memset(m.v, 0xff, sizeof(m.v)); /* the most that each may be */
		memset(m.address.raw, 0xa5, sizeof(m.address.raw));
		peer_format(&m, &once);
		if (peer_parse(once.text, once.len - 1, &back) < 0)
			fail_msg("%s: %s", once.text, err_msg());
		assert_int_equal(back.word, w);
		peer_format(&back, &twice);
		assert_string_equal(once.text, twice.text);
		assert_true(once.len <= PEER_LINE_MAX);
	}
}

static void the_longest_line_fits(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct peer_message m = {.word = PEER_PORT, .list_n = PEER_LIST_MAX};

	(void)state;
	memset(m.v, 0xff, sizeof(m.v));
	memset(m.list, 0xff, sizeof(m.list));
	memset(m.name, 'n', sizeof(m.name) - 1);
	memset(m.text, 't', sizeof(m.text) - 1);
	peer_format(&m, &b);
	assert_true(b.len < PEER_LINE_MAX);
	assert_int_equal(peer_parse(b.text, b.len - 1, &m), 0);
}

static void what_is_not_a_line_is_named(void **state)
{
	static const struct {
		const char *line, *says;
	} rows[] = {
		{"", "a word that does not exist"},
		{"GET / HTTP/1.0", "a word that does not exist: 'GET'"},
		{"done", "an incomplete line: 'done'"},
		{"done port=64", "a value that is not allowed: 'port=64'"},
		{"done port=-1", "a value that is not allowed"},
		{"done port=+1", "a value that is not allowed"},
		{"done port=0x1", "a value that is not allowed"},
		{"done port=", "a value that is not allowed"},
		{"done port=99999999999999999999999", "a value that is not allowed"},
		{"done port=1 port=1", "something that does not belong there: 'port=1'"},
		{"done port=1 round=1", "something that does not belong there: 'round=1'"},
		{"done  port=1", "something that does not belong there"},
		{"busy text=\033[2J", "a value that is not allowed: 'text=?[2J'"},
		{"onehop-rdma version=1 name=a/b", "a value that is not allowed: 'name=a/b'"},
		{"onehop-rdma version=1 name=", "a value that is not allowed"},
		{"gid index=1 type=2 address=00", "a value that is not allowed"},
		{"gid index=1 type=3 address=00000000000000000000ffff0a000201", "'type=3'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct peer_message m;

		assert_int_equal(parse(rows[i].line, &m), -EPROTO);
		if (!strstr(err_msg(), rows[i].says))
			fail_msg("'%s': %s", rows[i].line, err_msg());
	}
}

static void lists_have_a_limit(void **state)
{
	char line[512] =
		"opened port=0 places=1 out=0 out-key=0 lid=0 mtu=256 outstanding=1 packet=0 "
		"in=0 in-key=0 address=00000000000000000000ffff0a000201 list=1";
	struct peer_message m;

	(void)state;
	for (int i = 1; i < PEER_LIST_MAX; i++)
		strcat(line, ",1");
	assert_int_equal(parse(line, &m), 0);
	assert_int_equal(m.list_n, PEER_LIST_MAX);
	strcat(line, ",1");
	assert_int_equal(parse(line, &m), -EPROTO);
}

static void bad_text_of_our_own_is_cleaned(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct peer_message m = {.word = PEER_HELLO, .name = "no way"};

	(void)state;
	m.v[PEER_K_VERSION] = 1;
	peer_format(&m, &b);
	assert_string_equal(b.text, "onehop-rdma version=1 name=no_way\n");
	b.len = 0;
	m = (struct peer_message){.word = PEER_BYE, .text = "two\nlines"};
	peer_format(&m, &b);
	assert_string_equal(b.text, "bye text=two?lines\n");
}

/* ---- strangers ---- */

static void perftest_is_recognised(void **state)
{
	static const struct {
		char bytes[PERFTEST_HELLO + 1];
		bool is;
	} rows[] = {
		{"6.29\0\0\0\0\0\0\0\0\0\0\0\0", true},
		{"6.06\0\0\0\0\0\0\0\0\0\0\0\0", true},
		{"6.06\0\0\0\0\0\0\0\0\0\0\0x", false},
		{"6.\0\0\0\0\0\0\0\0\0\0\0\0\0\0", false},
		{".29\0\0\0\0\0\0\0\0\0\0\0\0\0", false},
		{"onehop-rdma vers", false},
		{"6.29296.29296.29", false},
		{"6666666666666666", false},
	};
	char release[PERFTEST_HELLO];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(peer_is_perftest(rows[i].bytes, PERFTEST_HELLO, release),
				 rows[i].is);
	assert_true(peer_is_perftest(rows[0].bytes, PERFTEST_HELLO, release));
	assert_string_equal(release, "6.29");
	assert_false(peer_is_perftest(rows[0].bytes, PERFTEST_HELLO - 1, release));
}

/* ---- connections ---- */

static void pair_up(struct peer *p, int *ret_far)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	*p = (struct peer){.fd = fds[0], .address = "there", .heard_us = UINT64_MAX / 2};
	p->sent_us = p->heard_us;
	*ret_far = fds[1];
}

static void lines_come_in_pieces_and_several_at_once(void **state)
{
	struct peer_message m;
	struct peer p;
	int far;

	(void)state;
	pair_up(&p, &far);
	assert_int_equal(write(far, "done po", 7), 7);
	assert_int_equal(peer_pump(&p), 0);
	assert_int_equal(peer_next(&p, &m), 0);
	assert_int_equal(write(far, "rt=3\nalive\nrea", 14), 14);
	assert_int_equal(peer_pump(&p), 0);
	assert_int_equal(peer_next(&p, &m), 1);
	assert_int_equal(m.word, PEER_DONE);
	assert_int_equal(m.v[PEER_K_PORT], 3);
	assert_int_equal(peer_next(&p, &m), 1);
	assert_int_equal(m.word, PEER_ALIVE);
	assert_int_equal(peer_next(&p, &m), 0);
	close(far);
	assert_int_equal(peer_pump(&p), 0);
	assert_int_equal(peer_next(&p, &m), -ECONNRESET);
	assert_string_equal(err_msg(), "there closed the connection");
	peer_close(&p);
}

static void a_perftest_server_is_named(void **state)
{
	struct peer_message m;
	struct peer p;
	int far;

	(void)state;
	pair_up(&p, &far);
	assert_int_equal(write(far, "6.06\0\0\0\0\0\0\0\0\0\0\0\0", 16), 16);
	assert_int_equal(peer_pump(&p), 0);
	assert_int_equal(peer_next(&p, &m), -EPROTO);
	assert_non_null(strstr(err_msg(), "there runs perftest 6.06"));
	close(far);
	peer_close(&p);
}

static void silence_has_an_end(void **state)
{
	struct peer p;
	int far;

	(void)state;
	pair_up(&p, &far);
	p.heard_us = 0;
	assert_int_equal(peer_pump(&p), -ETIMEDOUT);
	assert_non_null(strstr(err_msg(), "there has been silent for 5 s"));
	close(far);
	peer_close(&p);
}

static void addresses_to_listen_at(void **state)
{
	char at[PEER_PLACE_MAX];
	struct peer p;
	int fd;

	(void)state;
	assert_int_equal(peer_listen("127.0.0.1:0", &peer_onehop, &fd, at), 0);
	assert_memory_equal(at, "127.0.0.1:", 10);
	assert_int_equal(peer_accept(fd, &p), 0);
	close(fd);
	assert_int_equal(peer_listen("", &peer_onehop, &fd, at), -EINVAL);
	assert_int_equal(peer_listen("127.0.0.1:port", &peer_onehop, &fd, at), -EINVAL);
	assert_int_equal(peer_listen("192.0.2.1:0", &peer_onehop, &fd, at),
			 -EADDRNOTAVAIL); /* not of this host */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_word_comes_back),
		cmocka_unit_test(the_longest_line_fits),
		cmocka_unit_test(what_is_not_a_line_is_named),
		cmocka_unit_test(lists_have_a_limit),
		cmocka_unit_test(bad_text_of_our_own_is_cleaned),
		cmocka_unit_test(perftest_is_recognised),
		cmocka_unit_test(lines_come_in_pieces_and_several_at_once),
		cmocka_unit_test(a_perftest_server_is_named),
		cmocka_unit_test(silence_has_an_end),
		cmocka_unit_test(addresses_to_listen_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
