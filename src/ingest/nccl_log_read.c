/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a NCCL log: NCCL src/init.cc, src/transport/, src/graph/paths.cc, 2.18.1 to 2.30.7.
 */
#include "ingest/nccl_log_impl.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/text.h"
#include "ingest/nccl_tests.h"
#include "ingest/part.h"
#include "ingest/text.h"
#include "machine/nccl.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* One message: "host:pid:tid [cudaDev] NCCL INFO message". */
struct record {
	const char *host; /* "" when a paste lost it */
	int pid, cuda;    /* -1: lost */
	bool warn;
	char *text;
	const char *where;    /* "transport/nvls.cc:223" of a warning; NULL: not shown */
	unsigned line, count; /* the first of `count` that say the same */
};

/* A rank of a communicator. */
struct member {
	int rank, pid, cuda;
	const char *host, *pointer;
	size_t device;
};

struct communicator {
	const char *key; /* equal for all ranks: commId, or parent and colour */
	int nranks;
	unsigned line; /* where it is seen first */
	struct member *members;
	size_t member_n;
	struct nccl_check check;
};

struct parser {
	struct nccl_log *l;
	struct record *records;
	size_t record_n;
	struct communicator *comms;
	size_t comm_n;
	struct { /* connections in the order of the lines; the matrix comes last */
		size_t from, to, comm;
		enum nccl_way way;
		const char *transport;
		const char *host; /* the writer's */
		bool receives;
		unsigned line, count;
	} * connections;
	size_t connection_n;
};

/* How a rank says that it left a communicator, and that it joined one. */
#define LEFT   "Destroy COMPLETE"
#define JOINED "Init COMPLETE"

/* ---- records ---- */

/* The last word of [start, end): where it begins. */
static char *word_start(char *start, char *end)
{
	while (end > start && end[-1] != ' ')
		end--;
	return end;
}

static bool all_digits(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

static int small_number(const char *s)
{
	uint64_t v;

	return all_digits(s) && text_to_u64(s, &v) == 0 && v <= INT_MAX ? (int)v : -1;
}

/* "host:pid:tid", possibly after a prefix of mpirun, ray or a quote without a blank. */
static void read_origin(struct parser *p, const char *token, size_t n, struct record *ret)
{
	char *copy = arena_strndup(p->l->arena, token, n);
	char *tid = strrchr(copy, ':'), *pid;

	if (!tid || !all_digits(tid + 1))
		return;
	*tid = '\0';
	pid = strrchr(copy, ':');
	if (!pid || !all_digits(pid + 1))
		return;
	*pid = '\0';
	ret->pid = small_number(pid + 1);
	for (char *s = copy; *s; s++) {
		if (strchr(":>)]|", *s))
			copy = s + 1;
	}
	ret->host = copy;
}

/* Reads the text before " NCCL INFO" backwards; returns where it starts. */
static char *read_prefix(struct parser *p, char *start, char *end, struct record *ret)
{
	char *open, *token;

	if (ret->warn && end > start && end[-1] != ']') { /* "file.cc:line" */
		char *word = word_start(start, end);

		ret->where = arena_strndup(p->l->arena, word, (size_t)(end - word));
		end = word;
		while (end > start && end[-1] == ' ')
			end--;
	}
	if (end == start || end[-1] != ']')
		return end;
	for (open = end - 1; open > start && *open != '['; open--)
		;
	ret->cuda = small_number(arena_strndup(p->l->arena, open + 1, (size_t)(end - open - 2)));
	while (open > start && open[-1] == ' ')
		open--;
	token = word_start(start, open);
	read_origin(p, token, (size_t)(open - token), ret);
	return token;
}

static const char *find_mark(const char *s, bool *ret_warn)
{
	const char *info = strstr(s, "NCCL INFO "), *warn = strstr(s, "NCCL WARN ");

	*ret_warn = !info || (warn && warn < info);
	return *ret_warn ? warn : info;
}

/*
 * A host's name that runs into the line of another process ("via P2node7") is known from lines that
 * begin with it.
 */
static void mend_host(const struct parser *p, struct record *r, char **start)
{
	for (size_t i = 0; i < p->record_n; i++) {
		const char *host = p->records[i].host;

		if (*host && text_ends_with(r->host, host)) {
			*start += strlen(r->host) - strlen(host);
			r->host = host;
			return;
		}
	}
}

/* A line of several messages is changed; others may have it too. */
static char *own_text(struct parser *p, char *line)
{
	bool warn;
	const char *mark = find_mark(line, &warn);

	return mark && find_mark(mark + strlen("NCCL INFO "), &warn)
		       ? arena_strdup(p->l->arena, line)
		       : line;
}

/*
 * A line can hold several messages if processes wrote into each other's lines: all but the last are
 * then cut short. False: the line is not NCCL's.
 */
static bool read_records(struct parser *p, const struct text_line *l)
{
	char *start = own_text(p, l->text), *mark;
	struct record *previous = NULL;
	bool warn;

	while ((mark = (char *)find_mark(start, &warn))) {
		struct record r = {.host = "",
				   .pid = -1,
				   .cuda = -1,
				   .warn = warn,
				   .line = l->number,
				   .count = 1 + l->alike};
		char *end = mark, *from;

		while (end > start && end[-1] == ' ')
			end--;
		from = read_prefix(p, start, end, &r);
		if (previous && p->record_n < 4096)
			mend_host(p, &r, &from);
		if (previous)
			*from = '\0';
		r.text = start = mark + strlen("NCCL INFO ");
		previous = ARENA_PUSH(p->l->arena, p->records, p->record_n);
		*previous = r;
	}
	return previous;
}

/* ---- fields ---- */

/* The value behind " key ": "rank 3" of "comm 0x1 rank 3 nranks 8"; NULL: no such field. */
static const char *field(struct parser *p, const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *s = strstr(text, key); s; s = strstr(s + 1, key)) {
		if ((s == text || s[-1] == ' ') && s[n] == ' ')
			return arena_strndup(p->l->arena, s + n + 1, strcspn(s + n + 1, " -,"));
	}
	return NULL;
}

static int number_field(struct parser *p, const char *text, const char *key)
{
	const char *s = field(p, text, key);

	return s ? small_number(s) : -1;
}

/* "101d0" is domain 0, bus 0x10, device 0x1d, function 0. */
static const char *address_of_bus_id(struct parser *p, const char *hex)
{
	char *end;
	unsigned long long id = strtoull(hex, &end, 16);

	if (end == hex || *end)
		return NULL;
	return arena_printf(p->l->arena, "%04llx:%02llx:%02llx.%llx", id >> 20, id >> 12 & 0xff,
			    id >> 4 & 0xff, id & 0xf);
}

/* ---- devices ---- */

static bool same_device(const struct nccl_device *a, const struct nccl_device *b)
{
	if (strcmp(a->host, b->host) != 0)
		return false;
	if (a->pci && b->pci)
		return strcmp(a->pci, b->pci) == 0;
	if (a->nvml_index >= 0 && b->nvml_index >= 0)
		return a->nvml_index == b->nvml_index;
	return !a->pci && !b->pci && a->rank == b->rank;
}

/* Another line may fill in what one line leaves open. */
static void learn(struct nccl_device *d, const struct nccl_device *more)
{
	d->pci = d->pci ? d->pci : more->pci;
	d->nvml_index = d->nvml_index >= 0 ? d->nvml_index : more->nvml_index;
	d->cuda_ordinal = d->cuda_ordinal >= 0 ? d->cuda_ordinal : more->cuda_ordinal;
	d->pid = d->pid >= 0 ? d->pid : more->pid;
}

/* SIZE_MAX: there are too many. */
static size_t device_index(struct parser *p, const struct nccl_device *d)
{
	struct nccl_log *l = p->l;

	for (size_t i = 0; i < l->device_n; i++) {
		if (same_device(&l->devices[i], d)) {
			learn(&l->devices[i], d);
			return i;
		}
	}
	if (l->device_n == NCCL_LOG_MAX_DEVICES)
		return SIZE_MAX;
	*ARENA_PUSH(l->arena, l->devices, l->device_n) = *d;
	return l->device_n - 1;
}

/* ---- communicators ---- */

static struct member *member_of(const struct communicator *c, int rank)
{
	for (size_t i = 0; i < c->member_n; i++) {
		if (c->members[i].rank == rank)
			return &c->members[i];
	}
	return NULL;
}

static struct communicator *comm_by_key(struct parser *p, const char *key, int nranks,
					unsigned line)
{
	struct communicator *c;

	for (size_t i = 0; i < p->comm_n; i++) {
		if (p->comms[i].nranks == nranks && strcmp(p->comms[i].key, key) == 0)
			return &p->comms[i];
	}
	c = ARENA_PUSH(p->l->arena, p->comms, p->comm_n);
	c->key = key;
	c->nranks = nranks;
	c->line = line;
	c->check = (struct nccl_check){-1, -1, 0};
	return c;
}

/* The key of the communicator that a process knows by this pointer; "" if there is none. */
static const char *key_of_pointer(const struct parser *p, const struct record *r,
				  const char *pointer)
{
	for (size_t i = p->comm_n; i-- > 0;) {
		const struct communicator *c = &p->comms[i];

		for (size_t k = 0; k < c->member_n; k++) {
			const struct member *m = &c->members[k];

			if (m->pid == r->pid && strcmp(m->host, r->host) == 0 &&
			    strcmp(m->pointer, pointer) == 0)
				return c->key;
		}
	}
	return "";
}

/*
 * The key that all ranks of a communicator share: its commId, or for a split one its parent's, the
 * number of the split, and the colour. Before 2.18 there was neither.
 */
static const char *comm_key(struct parser *p, const struct record *r)
{
	const char *id = field(p, r->text, "commId"), *parent = field(p, r->text, "parent");
	const char *color = field(p, r->text, "color"), *count = field(p, r->text, "splitCount");

	count = count ? count : field(p, r->text, "childCount");
	if (id)
		return id;
	if (!parent)
		return "";
	return arena_printf(p->l->arena, "%s/%s/%s", key_of_pointer(p, r, parent),
			    count ? count : "", color ? color : "");
}

static int too_many(const struct parser *p)
{
	return err_set(E2BIG, "%s: more than %d GPUs; give the log of fewer hosts", p->l->name,
		       NCCL_LOG_MAX_DEVICES);
}

static int add_member(struct parser *p, struct communicator *c, const struct member *m,
		      const struct nccl_device *d)
{
	struct member *known = member_of(c, m->rank);
	size_t device;

	if (known)
		return 0;
	device = device_index(p, d);
	if (device == SIZE_MAX)
		return too_many(p);
	known = ARENA_PUSH(p->l->arena, c->members, c->member_n);
	*known = *m;
	known->device = device;
	return 0;
}

/* "... comm 0x1 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1000 commId 0x2 - Init COMPLETE" */
static int read_member(struct parser *p, const struct record *r)
{
	int rank = number_field(p, r->text, "rank"), nranks = number_field(p, r->text, "nranks");
	const char *pointer = field(p, r->text, "comm"), *bus_id = field(p, r->text, "busId");
	struct member m = {.rank = rank,
			   .pid = r->pid,
			   .host = r->host,
			   .pointer = pointer,
			   .cuda = number_field(p, r->text, "cudaDev")};
	struct nccl_device d = {.host = r->host,
				.pid = r->pid,
				.rank = rank,
				.cuda_ordinal = m.cuda,
				.nvml_index = number_field(p, r->text, "nvmlDev")};

	if (rank < 0 || nranks <= rank || !pointer || !bus_id)
		return 0;
	d.pci = address_of_bus_id(p, bus_id);
	return add_member(p, comm_by_key(p, comm_key(p, r), nranks, r->line), &m, &d);
}

static bool is_member_line(const char *text)
{
	return strstr(text, "comm 0x") && strstr(text, " nranks ") &&
	       (strstr(text, JOINED) || strstr(text, "Init START"));
}

/* ---- connections ---- */

/* "3[2]": rank 3 on NVML device 2, up to 2.18.1 on the device with this busId. */
struct end {
	int rank;
	const char *bracket;
};

static bool literal(const char **s, const char *text)
{
	if (!text_starts_with(*s, text))
		return false;
	*s += strlen(text);
	return true;
}

static bool number(const char **s, int *ret)
{
	char *end;
	unsigned long v = isdigit((unsigned char)**s) ? strtoul(*s, &end, 10) : ULONG_MAX;

	if (v > INT_MAX)
		return false;
	*ret = (int)v;
	*s = end;
	return true;
}

static bool read_end(struct parser *p, const char **s, struct end *ret)
{
	size_t n;

	if (!number(s, &ret->rank) || !literal(s, "["))
		return false;
	n = strspn(*s, "0123456789abcdef");
	ret->bracket = arena_strndup(p->l->arena, *s, n);
	*s += n;
	return n && literal(s, "]");
}

/* The first match at the start of a transport's text decides; a truncated line does not count. */
static enum nccl_way way_of(const char *transport)
{
	static const struct {
		const char *start;
		enum nccl_way way;
	} starts[] = {
		{"P2P/direct pointer", NCCL_WAY_DIRECT},
		{"P2P/indirect/", NCCL_WAY_RELAYED},
		{"P2P/CUMEM", NCCL_WAY_PEER},
		{"P2P/IPC", NCCL_WAY_PEER},
		{"P2P/MNNVL", NCCL_WAY_PEER},
		{"SHM/direct", NCCL_WAY_HOST},
		{"SHM/CE", NCCL_WAY_HOST},
		{"NET/", NCCL_WAY_NIC_HOST},
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (!text_starts_with(transport, starts[i].start))
			continue;
		if (starts[i].way == NCCL_WAY_NIC_HOST && strstr(transport, "/GDRDMA"))
			return NCCL_WAY_NIC_GDR;
		return starts[i].way;
	}
	return NCCL_WAY_NONE;
}

static bool bracket_fits(struct parser *p, const char *bracket, const struct nccl_device *d)
{
	const char *pci = address_of_bus_id(p, bracket);

	return d->nvml_index < 0 || small_number(bracket) == d->nvml_index ||
	       (pci && d->pci && strcmp(pci, d->pci) == 0);
}

/* Whether `self`, who wrote the line, and `other` can be ranks of c. */
static bool comm_fits(struct parser *p, const struct communicator *c, const struct record *r,
		      const struct end *self, const struct end *other)
{
	const struct member *m = member_of(c, self->rank), *o = member_of(c, other->rank);

	if (!m || other->rank >= c->nranks || (r->cuda >= 0 && m->cuda >= 0 && r->cuda != m->cuda))
		return false;
	if (*r->host && (r->pid != m->pid || strcmp(r->host, m->host) != 0))
		return false;
	return !o || bracket_fits(p, other->bracket, &p->l->devices[o->device]);
}

/* The last one begun before the line, else the next one (2.18 may print it only afterwards). */
static struct communicator *find_comm(struct parser *p, const struct record *r,
				      const struct end *self, const struct end *other)
{
	struct communicator *next = NULL;

	for (size_t i = p->comm_n; i-- > 0;) {
		struct communicator *c = &p->comms[i];

		if (!comm_fits(p, c, r, self, other))
			continue;
		if (c->line <= r->line)
			return c;
		next = c;
	}
	return next ? next : comm_by_key(p, "no init line", INT_MAX, r->line);
}

/* The device at one end, created from this line if no other line described it. */
static int end_device(struct parser *p, struct communicator *c, const struct end *e,
		      const char *host, const struct record *writer, size_t *ret)
{
	bool is_bus_id = strlen(e->bracket) > 3;
	struct nccl_device d = {.host = host,
				.pid = writer ? writer->pid : -1,
				.rank = e->rank,
				.cuda_ordinal = writer ? writer->cuda : -1,
				.nvml_index = is_bus_id ? -1 : small_number(e->bracket),
				.pci = is_bus_id ? address_of_bus_id(p, e->bracket) : NULL};
	struct member m = {
		.rank = e->rank, .pid = d.pid, .host = host, .pointer = "", .cuda = d.cuda_ordinal};
	int r = add_member(p, c, &m, &d);

	if (r == 0)
		*ret = member_of(c, e->rank)->device;
	return r;
}

/* The writer's host; P2P and SHM do not leave it, so it is the other's too. */
static int add_connection(struct parser *p, const struct record *r, const struct end *from,
			  const struct end *to, bool receives, const char *transport)
{
	const struct end *self = receives ? to : from, *other = receives ? from : to;
	struct communicator *c = find_comm(p, r, self, other);
	enum nccl_way way = way_of(transport);
	const char *host = way < NCCL_WAY_NIC_GDR ? r->host : "";
	size_t a, b = 0;
	int e = end_device(p, c, self, r->host, r, &a);

	if (e == 0)
		e = end_device(p, c, other, host, NULL, &b);
	if (e < 0 || a == b)
		return e;
	*ARENA_PUSH(p->l->arena, p->connections, p->connection_n) =
		(__typeof__(*p->connections)){.from = receives ? b : a,
					      .to = receives ? a : b,
					      .comm = (size_t)(c - p->comms),
					      .way = way,
					      .transport = transport,
					      .host = r->host,
					      .receives = receives,
					      .line = r->line,
					      .count = r->count};
	return 0;
}

/* "Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA"; the "/0" and [send] may lack. */
static int read_channel(struct parser *p, const struct record *r)
{
	const char *s = r->text;
	struct end from, to;
	bool receives = false;
	int ignored;

	if (!literal(&s, "Channel ") || !number(&s, &ignored))
		return 0;
	if (literal(&s, "/") && !number(&s, &ignored))
		return 0;
	if (!literal(&s, " : ") || !read_end(p, &s, &from) || !literal(&s, " -> ") ||
	    !read_end(p, &s, &to))
		return 0;
	if (!literal(&s, " [send]"))
		receives = literal(&s, " [receive]");
	if (!literal(&s, " via ") || way_of(s) == NCCL_WAY_NONE)
		return 0;
	return add_connection(p, r, &from, &to, receives, s);
}

/* ---- who wrote a line ---- */

/* In its communicator: the last one begun. */
static const struct member *writer_of(const struct parser *p, const struct record *r,
				      struct communicator **ret)
{
	const struct member *next = NULL;

	*ret = NULL;
	for (size_t i = p->comm_n; i-- > 0;) {
		struct communicator *c = &p->comms[i];

		for (size_t k = 0; k < c->member_n; k++) {
			const struct member *m = &c->members[k];

			if (m->pid != r->pid || m->cuda != r->cuda || strcmp(m->host, r->host) != 0)
				continue;
			*ret = c;
			next = m;
			if (c->line <= r->line)
				return m;
		}
	}
	return next;
}

/* ---- how it ended ---- */

#define MAX_NOTES 256

static bool same_failure(const struct run_failure *a, const struct run_failure *b)
{
	return a->kind == b->kind && a->rank == b->rank && a->code == b->code &&
	       a->sequence == b->sequence && strcmp(a->what, b->what) == 0;
}

/*
 * PyTorch writes the same of a rank several times. `m`: the rank that wrote the line, NULL if
 * unknown.
 */
static void add_failure(struct parser *p, struct run_failure f, const struct member *m,
			unsigned line, unsigned count)
{
	struct nccl_log *l = p->l;

	if (m && f.rank < 0)
		f.rank = m->rank;
	for (size_t i = 0; i < l->failure_n; i++) {
		if (same_failure(&l->failures[i].failure, &f)) {
			l->failures[i].count += count;
			return;
		}
	}
	if (l->failure_n == MAX_NOTES) {
		l->left_out += count;
		return;
	}
	*ARENA_PUSH(l->arena, l->failures, l->failure_n) = (struct nccl_log_failure){
		.failure = f, .device = m ? (int)m->device : -1, .line = line, .count = count};
}

/* A rank of the largest communicator, when all of them are in one. */
static const struct member *member_of_rank(const struct parser *p, int rank)
{
	const struct communicator *largest = NULL;

	for (size_t i = 0; i < p->comm_n; i++)
		if (!largest || p->comms[i].member_n > largest->member_n)
			largest = &p->comms[i];
	return largest && rank >= 0 ? member_of(largest, rank) : NULL;
}

/* Of another program: "[rank3]: ... Watchdog caught ...". */
static void read_other(struct parser *p, const struct text_line *l)
{
	struct run_failure f;

	if (nccl_failure_read(p->l->arena, l->text, NCCL_LINE_OTHER, &f))
		add_failure(p, f, member_of_rank(p, f.rank), l->number, 1 + l->alike);
}

/*
 * The failure read last, if it is a result of NCCL without a reason, in lines of the same error;
 * NULL: none.
 */
static const struct nccl_log_failure *unexplained(const struct nccl_log *l,
						  const struct text_line *said)
{
	enum { NEAR = 8 }; /* lines of one error */
	const struct nccl_log_failure *last = l->failure_n ? &l->failures[l->failure_n - 1] : NULL;

	return last && last->failure.kind == RUN_NCCL_ERROR && last->failure.code > 0 &&
			       last->line + NEAR >= said->number && last->line <= said->number
		       ? last
		       : NULL;
}

/*
 * PyTorch's errors end with "Last error:" and the warning of NCCL's that led to them, which
 * replaces them.
 */
static bool read_last_error(struct parser *p, const struct text_line *said)
{
	struct nccl_log *l = p->l;
	const struct nccl_log_failure *last;
	struct run_failure f;

	if (!nccl_line_is_reason(said->text))
		return false;
	if (!nccl_failure_read(l->arena, said->text, NCCL_LINE_WARN, &f)) {
		if (!unexplained(l, said))
			return false;
		nccl_failure_say(l->arena, said->text, &f);
	}
	while ((last = unexplained(l, said))) {
		f.rank = last->failure.rank >= 0 ? last->failure.rank : f.rank;
		l->failure_n--;
	}
	add_failure(p, f, member_of_rank(p, f.rank), said->number, 1 + said->alike);
	return true;
}

/* All of an error of PyTorch's in one line. False: it is another line. */
static bool read_whole_error(struct parser *p, const struct text_line *l)
{
	struct text_line before = *l, said = *l;

	if (!nccl_line_last_error(p->l->arena, l->text, &before.text, &said.text))
		return false;
	read_other(p, &before);
	if (!read_last_error(p, &said))
		read_other(p, &said);
	return true;
}

static void read_others(struct parser *p, const struct text_line *lines, size_t n)
{
	bool last_error = false;

	for (size_t i = 0; i < n; i++) {
		if (!*lines[i].text)
			continue;
		if (!read_whole_error(p, &lines[i]) &&
		    (!last_error || !read_last_error(p, &lines[i])))
			read_other(p, &lines[i]);
		last_error = nccl_line_announces(lines[i].text);
	}
}

/* The table of nccl-tests that the log holds. */
static void add_wrong_results(struct parser *p, const struct text_line *others, size_t n)
{
	unsigned line = nccl_tests_wrong_line(others, n);
	const struct run_failure f = {.kind = RUN_TEST_FAILED,
				      .rank = -1,
				      .code = -1,
				      .sequence = -1,
				      .what = "nccl-tests found wrong values"};

	if (line)
		add_failure(p, f, NULL, line, 1);
}

/* ---- other facts in the log ---- */

static int add_note(struct parser *p, struct nccl_log_notes *notes, const struct record *r)
{
	struct nccl_log_note *note;

	for (size_t i = 0; i < notes->n; i++) {
		if (strcmp(notes->items[i].text, r->text) == 0) {
			notes->items[i].count += r->count;
			return 0;
		}
	}
	if (notes->n == MAX_NOTES) {
		p->l->left_out += r->count;
		return 0;
	}
	note = ARENA_PUSH(p->l->arena, notes->items, notes->n);
	*note = (struct nccl_log_note){arena_strdup(p->l->arena, r->text), r->line, r->count};
	return 0;
}

/* "NCCL_P2P_LEVEL set by environment to PXB", with a full stop in some versions. */
static int read_setting(struct parser *p, const struct record *r)
{
	static const char middle[] = " set by environment to ";
	const char *s = strstr(r->text, middle), *value = s + strlen(middle);
	struct nccl_log *l = p->l;
	struct nccl_log_setting new;

	new.name = arena_strndup(l->arena, r->text, (size_t)(s - r->text));
	new.value =
		arena_strndup(l->arena, value, strlen(value) - (size_t)text_ends_with(value, "."));
	new.line = r->line;
	for (size_t i = 0; i < l->setting_n; i++) {
		if (strcmp(l->settings[i].name, new.name) == 0 &&
		    strcmp(l->settings[i].value, new.value) == 0)
			return 0;
	}
	if (l->setting_n < MAX_NOTES)
		*ARENA_PUSH(l->arena, l->settings, l->setting_n) = new;
	else
		l->left_out += r->count;
	return 0;
}

static int worst(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void add_check(struct nccl_check *to, const struct nccl_check *c)
{
	bool tells_more =
		to->line == 0 || (c->cuda >= 0 && c->cuda < to->cuda) || c->direct < to->direct;

	to->direct = worst(to->direct, c->direct);
	to->cuda = worst(to->cuda, c->cuda);
	to->line = tells_more ? c->line : to->line;
}

/* "Check P2P Type isAllDirectP2p 0 directMode 0 isAllCudaP2p 1" */
static int read_check(struct parser *p, const struct record *r)
{
	struct nccl_check c = {number_field(p, r->text, "isAllDirectP2p"),
			       number_field(p, r->text, "isAllCudaP2p"), r->line};
	struct communicator *comm;

	writer_of(p, r, &comm);
	if (c.direct < 0) /* 2.24 to 2.26 */
		c.direct = number_field(p, r->text, "intraNodeP2pSupport");
	if (c.direct < 0)
		return 0;
	add_check(&p->l->check, &c);
	if (comm)
		add_check(&comm->check, &c);
	return 0;
}

static void read_version(struct parser *p, const char *line)
{
	static const char mark[] = "NCCL version ";
	const char *s = strstr(line, mark);
	int64_t version = s ? nccl_version_of(s + strlen(mark)) : -1;

	if (version < 0 || *p->l->version)
		return;
	s += strlen(mark);
	p->l->version = arena_strndup(p->l->arena, s, strcspn(s, " ,"));
	p->l->version_number = version;
}

/* The slowest link that a GPU or a NIC of a server has is faster: 2.5 GT/s x16. */
#define SLOWEST_LINK_GBPS 3.0

/* "+ PCI[24.0] - GPU/0-1000 (0)" of the topology that NCCL plans with. */
static int read_graph(struct parser *p, const struct record *r)
{
	const char *s = strstr(r->text, "PCI[");
	double gbps;
	int n = 0;

	if (sscanf(s, "PCI[%7lf] - %n", &gbps, &n) != 1 || !n || gbps >= SLOWEST_LINK_GBPS)
		return 0;
	return text_starts_with(s + n, "GPU/") || text_starts_with(s + n, "NIC/")
		       ? add_note(p, &p->l->slow_links, r)
		       : 0;
}

/* "took over 20 calls, passed on 3": false if it is something else. */
static bool read_shim_calls(struct parser *p, const char *text, const struct record *r)
{
	struct nccl_log_shim_calls *calls = &p->l->shim_calls;
	long long taken, passed;

	if (sscanf(text, "took over %15lld call%*[s,] passed on %15lld", &taken, &passed) != 2 ||
	    taken < 0 || passed < 0)
		return false;
	calls->least = calls->ended && calls->least < taken ? calls->least : taken;
	calls->most = calls->most > taken ? calls->most : taken;
	calls->ended += r->count;
	calls->taken += taken * r->count;
	calls->passed += passed * r->count;
	calls->line = calls->line ? calls->line : r->line;
	return true;
}

/*
 * "onehop: comm 0x55d0 rank 0 nranks 2: takes over ...": ranks write the same, so it is kept once,
 * without the rank. Their counts are added up.
 */
static int read_shim(struct parser *p, const struct record *r)
{
	const char *rest = strstr(r->text, ": ") + 2, *end;
	struct record said = *r;

	end = text_starts_with(rest, "comm ") ? strstr(rest, ": ") : NULL;
	said.text = (char *)(end ? end + 2 : rest);
	if (end && !r->warn && read_shim_calls(p, said.text, r))
		return 0;
	if (end && !r->warn && text_starts_with(said.text, "takes over ") &&
	    memmem(rest, (size_t)(end - rest), " nranks ", 8))
		p->l->shim_calls.begun += r->count;
	return r->warn ? 0 : add_note(p, &p->l->shim, &said); /* warnings are among NCCL's */
}

/* Messages by their start or by a text that they contain; a note goes where `notes` says. */
#define NOTES(member) offsetof(struct nccl_log, member)
static const struct message {
	const char *text;
	bool at_start;
	size_t notes;
	int (*read)(struct parser *p, const struct record *r); /* NULL: a note */
} messages[] = {
	{"onehop: ", true, 0, read_shim},
	{"Channel ", true, 0, read_channel},
	{"Check P2P Type ", true, 0, read_check},
	{" set by environment to ", false, 0, read_setting},
	{"P2P is disabled between ", true, NOTES(refusals), NULL},
	{"Could not enable P2P between ", true, NOTES(refusals), NULL},
	{"peer query failed between ", true, NOTES(refusals), NULL},
	{" coll channels, ", false, NOTES(channels), NULL},
	{" Bytes -> ", false, NOTES(choices), NULL},
	{"NET/IB : ", true, NOTES(network), NULL},
	{"NET/Socket : ", true, NOTES(network), NULL},
	{"Using network ", true, NOTES(network), NULL},
	{"GPU Direct RDMA ", true, NOTES(gdr), NULL},
	{"DMA-BUF is available", true, NOTES(gdr), NULL},
	{"NVLS multicast support ", true, NOTES(nvls), NULL},
	/* Of NCCL's dictionaries only the one of link speeds ends so (src/graph/topo.cc). */
	{"in dictionary, falling back to 60", false, NOTES(guessed_links), NULL},
	{"+ PCI[", true, 0, read_graph},
};

static bool is_read(const char *text)
{
	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++) {
		const char *s = strstr(text, messages[i].text);

		if (s && (s == text || !messages[i].at_start))
			return true;
	}
	return is_member_line(text) || strstr(text, LEFT) ||
	       nccl_failure_is_in(text, NCCL_LINE_INFO);
}

bool nccl_log_line_is_unread(const char *line)
{
	static const char mark[] = "NCCL INFO ";
	const char *text = strstr(line, mark);

	if (!text)
		return false;
	text += strlen(mark);
	/* Lines of several ranks may have been written into each other. */
	return !strstr(text, "NCCL ") && !strstr(line, "NCCL WARN ") && !is_read(text);
}

/* Channels of one connection differ in their number. */
static const char *behind_channel(const char *text)
{
	const char *behind = text_starts_with(text, "Channel ") ? strstr(text, " : ") : NULL;

	return behind ? behind : text;
}

static uint64_t record_hash(const struct record *r)
{
	const int numbers[] = {r->pid, r->cuda, r->warn};
	const char *said = behind_channel(r->text);
	uint64_t h = text_hash(TEXT_HASH_START, numbers, sizeof(numbers));

	h = text_hash(h, r->host, strlen(r->host) + 1);
	return text_hash(h, said, strlen(said) + 1);
}

struct text_unit nccl_log_unit(const struct text_line *l)
{
	struct nccl_log log = {.arena = arena_new()};
	struct parser p = {.l = &log};
	struct text_unit u = {.n = 1};

	/* Messages that were written into each other are kept. */
	if (read_records(&p, l) && p.record_n == 1) {
		const struct record *r = &p.records[0];

		u.begins = is_member_line(r->text);
		u.failure = r->warn || nccl_failure_is_in(r->text, NCCL_LINE_INFO);
		u.subject = u.begins ? 0 : record_hash(r);
	}
	arena_free(log.arena);
	return u;
}

static bool read_failure(struct parser *p, const struct record *r)
{
	enum nccl_line line = r->warn ? NCCL_LINE_WARN : NCCL_LINE_INFO;
	struct communicator *comm;
	struct run_failure f;

	if (!nccl_failure_read(p->l->arena, r->text, line, &f))
		return false;
	f.where = r->where;
	add_failure(p, f, writer_of(p, r, &comm), r->line, r->count);
	return true;
}

static int read_message(struct parser *p, const struct record *r)
{
	int e = !read_failure(p, r) && r->warn ? add_note(p, &p->l->warnings, r) : 0;

	for (size_t i = 0; e == 0 && i < sizeof(messages) / sizeof(*messages); i++) {
		const struct message *m = &messages[i];
		const char *s = strstr(r->text, m->text);

		if (!s || (m->at_start && s != r->text))
			continue;
		return m->read ? m->read(p, r) : add_note(p, (void *)((char *)p->l + m->notes), r);
	}
	return e;
}

/* ---- the matrix ---- */

struct order {
	const struct nccl_device *device;
	size_t old;
};

static int compare_devices(const void *a, const void *b)
{
	const struct nccl_device *x = ((const struct order *)a)->device;
	const struct nccl_device *y = ((const struct order *)b)->device;
	int r = strcmp(x->host, y->host);

	if (r == 0 && x->pci && y->pci)
		r = strcmp(x->pci, y->pci);
	else if (r == 0)
		r = (x->nvml_index > y->nvml_index) - (x->nvml_index < y->nvml_index);
	return r ? r : (x->rank > y->rank) - (x->rank < y->rank);
}

/* Sorts the devices; new_index[old] is where each went. */
static void sort_devices(struct nccl_log *l, size_t *new_index)
{
	struct order *order = arena_alloc(l->arena, l->device_n + 1, sizeof(*order));
	struct nccl_device *sorted = arena_alloc(l->arena, l->device_n + 1, sizeof(*sorted));

	for (size_t i = 0; i < l->device_n; i++)
		order[i] = (struct order){&l->devices[i], i};
	qsort(order, l->device_n, sizeof(*order), compare_devices);
	for (size_t i = 0; i < l->device_n; i++) {
		sorted[i] = *order[i].device;
		new_index[order[i].old] = i;
	}
	l->devices = sorted;
	for (size_t i = 0; i < l->failure_n; i++)
		if (l->failures[i].device >= 0)
			l->failures[i].device = (int)new_index[l->failures[i].device];
}

static int compare_failures(const void *a, const void *b)
{
	const struct nccl_log_failure *x = a, *y = b;
	int r = (x->failure.kind > y->failure.kind) - (x->failure.kind < y->failure.kind);

	r = r ? r : (x->line > y->line) - (x->line < y->line);
	return r ? r : (x->failure.rank > y->failure.rank) - (x->failure.rank < y->failure.rank);
}

/* The distinct texts, device numbers and all, up to a few. */
/* What one end of a connection between hosts says of itself. */
static void add_end(struct nccl_end *e, enum nccl_way way, const char *host, unsigned line)
{
	unsigned *at = way == NCCL_WAY_NIC_GDR ? &e->gdr : &e->host;

	if (way < NCCL_WAY_NIC_GDR)
		return;
	*at = *at ? *at : line;
	e->name = host;
}

static void add_transport(struct nccl_log *l, struct nccl_pair *pair, const char *transport)
{
	if (!pair->transports)
		pair->transports = arena_strdup(l->arena, transport);
	else if (!strstr(pair->transports, transport) && strlen(pair->transports) < 200)
		pair->transports = arena_printf(l->arena, "%s, %s", pair->transports, transport);
}

static void fill_pairs(struct parser *p)
{
	struct nccl_log *l = p->l;
	size_t *new_index = arena_alloc(l->arena, l->device_n + 1, sizeof(*new_index));

	sort_devices(l, new_index);
	l->pairs = arena_alloc(l->arena, l->device_n * l->device_n + 1, sizeof(*l->pairs));
	for (size_t i = 0; i < l->device_n * l->device_n; i++)
		l->pairs[i].check = (struct nccl_check){-1, -1, 0};
	for (size_t i = 0; i < p->connection_n; i++) {
		size_t from = new_index[p->connections[i].from];
		size_t to = new_index[p->connections[i].to];
		struct nccl_pair *pair = &l->pairs[from * l->device_n + to];

		pair->connections[p->connections[i].way] += p->connections[i].count;
		pair->line = pair->line ? pair->line : p->connections[i].line;
		add_check(&pair->check, &p->comms[p->connections[i].comm].check);
		add_end(p->connections[i].receives ? &pair->receiver : &pair->sender,
			p->connections[i].way, p->connections[i].host, p->connections[i].line);
		add_transport(l, pair, p->connections[i].transport);
	}
	for (size_t i = 0; i < l->device_n * l->device_n; i++)
		l->pairs[i].transports = l->pairs[i].transports ? l->pairs[i].transports : "";
}

/* ---- the end ---- */

static size_t count_records(const struct parser *p, const char *text)
{
	size_t n = 0;

	for (size_t i = 0; i < p->record_n; i++)
		n += strstr(p->records[i].text, text) ? p->records[i].count : 0;
	return n;
}

/* nccl-tests prints it last, and not after an error. */
static bool ends_table(const struct text_line *others, size_t n)
{
	for (size_t i = n; i > 0; i--)
		if (strstr(others[i - 1].text, "# Avg bus bandwidth"))
			return true;
	return false;
}

/*
 * A log without an error may be of a run without one, or have lost that line: only a log that
 * begins where NCCL begins, and in which each rank that joined a communicator left it, tells them
 * apart.
 */
static const char *open_end(const struct parser *p, const struct text_line *others, size_t n)
{
	size_t joined = count_records(p, JOINED), left = count_records(p, LEFT);

	if (!*p->l->version)
		return "begins after NCCL's start";
	if (ends_table(others, n) || (left && left >= joined))
		return NULL;
	return left ? arena_printf(p->l->arena, "ends before %zu of %zu ranks left NCCL",
				   joined - left, joined)
		    : "ends before a rank left NCCL";
}

static void compare_waits(struct nccl_log *l)
{
	struct run_failure **failures = arena_alloc(l->arena, l->failure_n + 1, sizeof(*failures));

	if (l->left_out)
		return; /* another rank may wait elsewhere */
	for (size_t i = 0; i < l->failure_n; i++)
		failures[i] = &l->failures[i].failure;
	run_failures_compare(failures, l->failure_n);
}

/* ---- the whole ---- */

int nccl_log_read(struct nccl_log *l, struct text_line *lines, size_t n)
{
	struct parser p = {.l = l};
	size_t other_n = 0;
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		read_version(&p, lines[i].text);
		if (!read_records(&p, &lines[i]))
			lines[other_n++] = lines[i];
	}
	/* Ranks first: up to 2.21 the log prints them after the connections. */
	for (size_t i = 0; i < p.record_n && r == 0; i++) {
		if (is_member_line(p.records[i].text))
			r = read_member(&p, &p.records[i]);
	}
	for (size_t i = 0; i < p.record_n && r == 0; i++)
		r = read_message(&p, &p.records[i]);
	if (r < 0)
		return r;
	read_others(&p, lines, other_n);
	l->open_end = open_end(&p, lines, other_n);
	l->lines = count_records(&p, "");
	l->communicators = p.comm_n;
	for (size_t i = 0; i < p.comm_n; i++)
		l->ranks = p.comms[i].member_n > l->ranks ? p.comms[i].member_n : l->ranks;
	fill_pairs(&p);
	add_wrong_results(&p, lines, other_n);
	if (l->failure_n)
		qsort(l->failures, l->failure_n, sizeof(*l->failures), compare_failures);
	compare_waits(l);
	return 0;
}
