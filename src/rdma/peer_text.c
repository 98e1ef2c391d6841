/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/peer_text.h"

#include "base/array.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "rdma/measure.h"
#include "rdma/region.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- what there is ---- */

static const struct {
	const char *name;
	uint64_t max;
} keys[PEER_KEY_N] = {
	[PEER_K_VERSION] = {"version", 1000000},
	[PEER_K_PORT] = {"port", 63},
	[PEER_K_FROM] = {"from", 63},
	[PEER_K_NUMBER] = {"number", 255},
	[PEER_K_STATE] = {"state", 255},
	[PEER_K_LAYER] = {"layer", 255},
	[PEER_K_MTU] = {"mtu", 4096},
	[PEER_K_LID] = {"lid", 65535},
	[PEER_K_RATE] = {"rate", 100000000}, /* Mb/s: a hundred times today's ports */
	[PEER_K_WRITES] = {"writes", 10000000},
	[PEER_K_READS] = {"reads", 10000000},
	[PEER_K_INDEX] = {"index", 65535},
	[PEER_K_TYPE] = {"type", 2},
	[PEER_K_BYTES] = {"bytes", 8 << 20},
	[PEER_K_LATENCY] = {"latency", 8 << 20},
	[PEER_K_PLACES] = {"places", 65536},
	[PEER_K_DEPTH] = {"depth", 4096},
	[PEER_K_PAIR] = {"pair", 255},
	[PEER_K_LIMIT] = {"limit", 10000},
	[PEER_K_OUTSTANDING] = {"outstanding", 255},
	[PEER_K_PACKET] = {"packet", 0xffffff},
	[PEER_K_OUT] = {"out", UINT64_MAX},
	[PEER_K_OUT_KEY] = {"out-key", UINT32_MAX},
	[PEER_K_IN] = {"in", UINT64_MAX},
	[PEER_K_IN_KEY] = {"in-key", UINT32_MAX},
	[PEER_K_ROUND] = {"round", 127},
	[PEER_K_MEASURE] = {"measure", RDMA_MEASURE_N - 1},
	[PEER_K_DATA] = {"data", RDMA_DATA_WRONG},
	[PEER_K_CHECKED] = {"checked", UINT64_MAX},
	[PEER_K_KIND] = {"kind", WRONG_N - 1},
	[PEER_K_WORDS] = {"words", UINT64_MAX},
	[PEER_K_WRONG] = {"wrong", UINT64_MAX},
	[PEER_K_AT] = {"at", UINT64_MAX},
	[PEER_K_SHIFT] = {"shift", UINT64_MAX},
	[PEER_K_AGO] = {"ago", 127},
	[PEER_K_STEP] = {"step", RDMA_STEP_N - 1},
	[PEER_K_CODE] = {"code", INT32_MAX},
	[PEER_K_VENDOR] = {"vendor", UINT32_MAX},
	[PEER_K_MEDIAN] = {"median", UINT64_MAX},
	[PEER_K_LOW] = {"low", UINT64_MAX},
	[PEER_K_HIGH] = {"high", UINT64_MAX},
	[PEER_K_SAMPLES] = {"samples", 1000000},
	[PEER_K_EXPECTED] = {"expected", UINT64_MAX},
	[PEER_K_TIME] = {"time", 3600},
	[PEER_K_WAY] = {"way", REGION_WAY_N - 1},
	[PEER_K_WAYS] = {"ways", (1 << REGION_WAY_N) - 1},
};

#define K(key) (1ull << PEER_K_##key)
_Static_assert(PEER_KEY_N <= 64, "keys are bits");

#define PLACE_OF_A_SIDE (K(LID) | K(MTU) | K(OUTSTANDING) | K(PACKET) | K(IN) | K(IN_KEY))

/* Every key and part that a word has must be there. */
static const struct {
	const char *name;
	uint64_t keys;
	bool has_name, has_address, has_list, has_text;
} words[PEER_WORD_N] = {
	[PEER_HELLO] = {"onehop-rdma", K(VERSION), .has_name = true},
	[PEER_PORT] = {"port",
		       K(NUMBER) | K(STATE) | K(LAYER) | K(MTU) | K(LID) | K(RATE) | K(WRITES) |
			       K(READS) | K(WAYS),
		       .has_name = true, .has_list = true, .has_text = true},
	[PEER_GID] = {"gid", K(INDEX) | K(TYPE), .has_address = true},
	[PEER_READY] = {"ready", 0},
	[PEER_ALIVE] = {"alive", 0},
	[PEER_BUSY] = {"busy", 0, .has_text = true},
	[PEER_REFUSED] = {"refused", 0, .has_text = true},
	[PEER_BYE] = {"bye", 0, .has_text = true},
	[PEER_OPEN] = {"open",
		       K(PORT) | K(INDEX) | K(BYTES) | K(LATENCY) | K(MEASURE) | K(PLACES) |
			       K(DEPTH) | K(PAIR) | K(LIMIT) | K(TIME) | K(WAY) | PLACE_OF_A_SIDE,
		       .has_address = true, .has_list = true},
	[PEER_PREPARE] = {"prepare", K(PORT) | K(ROUND) | K(MEASURE)},
	[PEER_CHECK] = {"check", K(PORT) | K(ROUND) | K(MEASURE)},
	[PEER_PONG] = {"pong", K(PORT) | K(MEASURE)},
	[PEER_CLOSE] = {"close", K(PORT)},
	[PEER_OPENED] = {"opened", K(PORT) | K(PLACES) | K(OUT) | K(OUT_KEY) | PLACE_OF_A_SIDE,
			 .has_address = true, .has_list = true},
	[PEER_DONE] = {"done", K(PORT)},
	[PEER_CHECKED] = {"checked", K(PORT) | K(DATA) | K(CHECKED) | K(KIND) | K(WORDS) |
					     K(WRONG) | K(AT) | K(SHIFT) | K(AGO)},
	[PEER_FAILED] = {"failed", K(PORT) | K(STEP) | K(CODE) | K(VENDOR), .has_text = true},
	[PEER_REACHED] = {"reached", K(PORT) | K(FROM) | K(STEP) | K(CODE), .has_text = true},
	[PEER_FIGURE] = {"figure",
			 K(PORT) | K(FROM) | K(MEASURE) | K(DATA) | K(CHECKED) | K(MEDIAN) |
				 K(LOW) | K(HIGH) | K(SAMPLES) | K(EXPECTED) | K(STEP) | K(CODE) |
				 K(BYTES) | K(LATENCY) | K(WAY),
			 .has_text = true},
};

/* Parts that are not numbers; as bits after those of the keys. */
#define NAME_KEY    "name"
#define ADDRESS_KEY "address"
#define LIST_KEY    "list"
#define TEXT_KEY    "text"

/* ---- reading ---- */

/* What is left of a line. */
struct rest {
	const char *at;
	size_t n;
};

/* The bytes up to a blank, which is skipped. */
static struct rest take_item(struct rest *r)
{
	const char *blank = memchr(r->at, ' ', r->n);
	struct rest item = {r->at, blank ? (size_t)(blank - r->at) : r->n};
	size_t used = item.n + (blank != NULL);

	r->at += used;
	r->n -= used;
	return item;
}

static bool is_word(const struct rest *r, const char *word)
{
	return r->n == strlen(word) && memcmp(r->at, word, r->n) == 0;
}

/* Decimal digits alone. */
static bool take_number(const char *at, size_t n, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (!n || n > 20)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (at[i] < '0' || at[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(at[i] - '0'), &value))
			return false;
	}
	*ret = value;
	return value <= max;
}

static bool is_name(const char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)at[i]) && !strchr("._-", at[i]))
			return false;
	return n > 0 && n < PEER_NAME_MAX && !memchr(at, '\0', n);
}

static bool is_printable(char c)
{
	return c >= 0x20 && c < 0x7f;
}

static bool take_name(struct rest v, struct peer_message *m)
{
	if (!is_name(v.at, v.n))
		return false;
	memcpy(m->name, v.at, v.n);
	return true;
}

static bool take_text(struct rest v, struct peer_message *m)
{
	if (v.n >= PEER_TEXT_MAX)
		return false;
	for (size_t i = 0; i < v.n; i++)
		if (!is_printable(v.at[i]))
			return false;
	memcpy(m->text, v.at, v.n);
	return true;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_address(struct rest v, struct peer_message *m)
{
	if (v.n != 2 * sizeof(m->address.raw))
		return false;
	for (size_t i = 0; i < sizeof(m->address.raw); i++) {
		int high = hex_digit(v.at[2 * i]), low = hex_digit(v.at[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		m->address.raw[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static bool take_list(struct rest v, struct peer_message *m)
{
	while (v.n) {
		const char *comma = memchr(v.at, ',', v.n);
		size_t n = comma ? (size_t)(comma - v.at) : v.n;
		uint64_t value;

		if (m->list_n == PEER_LIST_MAX || !take_number(v.at, n, UINT32_MAX, &value))
			return false;
		m->list[m->list_n++] = (uint32_t)value;
		v.at += n + (comma != NULL);
		v.n -= n + (comma != NULL);
		if (comma && !v.n)
			return false;
	}
	return true;
}

static const struct line_part {
	const char *name;
	bool (*take)(struct rest v, struct peer_message *m);
} parts[] = {{NAME_KEY, take_name},
	     {ADDRESS_KEY, take_address},
	     {LIST_KEY, take_list},
	     {TEXT_KEY, take_text}};

static bool has_part(enum peer_word w, size_t part)
{
	const bool has[] = {words[w].has_name, words[w].has_address, words[w].has_list,
			    words[w].has_text};

	return has[part];
}

/* All that a line with this word has, as bits: keys, then parts. */
static uint64_t bits_of(enum peer_word w)
{
	uint64_t bits = words[w].keys;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		bits |= has_part(w, i) ? 1ull << (PEER_KEY_N + i) : 0;
	return bits;
}
_Static_assert(PEER_KEY_N + 4 <= 64, "keys and parts are bits");

static int bad(const char *what, const struct rest *item)
{
	char text[48];
	size_t n = item->n < sizeof(text) - 1 ? item->n : sizeof(text) - 1;

	for (size_t i = 0; i < n; i++)
		text[i] = is_printable(item->at[i]) ? item->at[i] : '?';
	text[n] = '\0';
	return err_set(EPROTO, "the peer sent %s: '%s'", what, text);
}

/* The bit of a key or part by its name; 64: there is none. */
static unsigned find_key(const struct rest *name)
{
	unsigned i = 0;

	while (i < PEER_KEY_N && !is_word(name, keys[i].name))
		i++;
	for (size_t k = 0; i == PEER_KEY_N && k < ARRAY_LEN(parts); k++)
		if (is_word(name, parts[k].name))
			return PEER_KEY_N + (unsigned)k;
	return i < PEER_KEY_N ? i : 64;
}

static bool take_value(unsigned key, struct rest v, struct peer_message *m)
{
	return key < PEER_KEY_N ? take_number(v.at, v.n, keys[key].max, &m->v[key])
				: parts[key - PEER_KEY_N].take(v, m);
}

/* Takes one KEY=VALUE; a text is all the rest of the line. */
static int take_pair(struct rest *line, uint64_t wanted, uint64_t *seen, struct peer_message *m)
{
	struct rest before = *line, item = take_item(line);
	const char *equals = memchr(item.at, '=', item.n);
	struct rest name = {item.at, equals ? (size_t)(equals - item.at) : item.n};
	unsigned key = find_key(&name);
	struct rest value;

	if (!equals || key >= 64 || !(wanted >> key & 1) || (*seen >> key & 1))
		return bad("something that does not belong there", &item);
	value = (struct rest){equals + 1, item.n - name.n - 1};
	if (is_word(&name, TEXT_KEY)) {
		value.n = before.n - name.n - 1;
		*line = (struct rest){before.at + before.n, 0};
	}
	if (!take_value(key, value, m))
		return bad("a value that is not allowed", &item);
	*seen |= 1ull << key;
	return 0;
}

int peer_parse(const char *line, size_t n, struct peer_message *ret)
{
	struct rest rest = {line, n}, word = take_item(&rest);
	struct peer_message m = {0};
	uint64_t seen = 0, wanted;
	int r = 0;

	if (n >= PEER_LINE_MAX)
		return err_set(EPROTO, "the peer sent a line of %zu bytes", n);
	while (m.word < PEER_WORD_N && !is_word(&word, words[m.word].name))
		m.word++;
	if (m.word == PEER_WORD_N)
		return bad("a word that does not exist", &word);
	wanted = bits_of(m.word);
	while (r == 0 && rest.n)
		r = take_pair(&rest, wanted, &seen, &m);
	if (r == 0 && seen != wanted)
		r = bad("an incomplete line", &word);
	if (r == 0)
		*ret = m;
	return r;
}

/* ---- writing ---- */

static void put_list(const struct peer_message *m, struct strbuf *b)
{
	strbuf_puts(b, " " LIST_KEY "=");
	for (size_t i = 0; i < m->list_n; i++)
		strbuf_printf(b, "%s%" PRIu32, i ? "," : "", m->list[i]);
}

static void put_address(const struct peer_message *m, struct strbuf *b)
{
	strbuf_puts(b, " " ADDRESS_KEY "=");
	for (size_t i = 0; i < sizeof(m->address.raw); i++)
		strbuf_printf(b, "%02x", m->address.raw[i]);
}

static void put_name(const struct peer_message *m, struct strbuf *b)
{
	strbuf_puts(b, " " NAME_KEY "=");
	if (!*m->name)
		strbuf_putc(b, '-');
	for (const char *c = m->name; *c; c++)
		strbuf_putc(b, is_name(c, 1) ? *c : '_');
}

static void put_text(const struct peer_message *m, struct strbuf *b)
{
	strbuf_puts(b, " " TEXT_KEY "=");
	for (const char *c = m->text; *c; c++)
		strbuf_putc(b, is_printable(*c) ? *c : '?');
}

void peer_format(const struct peer_message *m, struct strbuf *ret)
{
	static void (*const put[])(const struct peer_message *m,
				   struct strbuf *b) = {put_name, put_address, put_list, put_text};

	strbuf_puts(ret, words[m->word].name);
	for (unsigned k = 0; k < PEER_KEY_N; k++)
		if (words[m->word].keys >> k & 1)
			strbuf_printf(ret, " %s=%" PRIu64, keys[k].name,
				      m->v[k] < keys[k].max ? m->v[k] : keys[k].max);
	for (size_t i = 0; i < ARRAY_LEN(put); i++)
		if (has_part(m->word, i))
			put[i](m, ret);
	strbuf_putc(ret, '\n');
}

/* ---- strangers ---- */

bool peer_is_perftest(const char *bytes, size_t n, char ret_release[static PERFTEST_HELLO])
{
	size_t digits = 0, i = 0;

	if (n < PERFTEST_HELLO)
		return false;
	while (i < PERFTEST_HELLO - 1 && bytes[i] >= '0' && bytes[i] <= '9')
		i++;
	if (!i || bytes[i] != '.')
		return false;
	for (i++; i < PERFTEST_HELLO && bytes[i] >= '0' && bytes[i] <= '9'; i++)
		digits++;
	if (!digits || i == PERFTEST_HELLO)
		return false;
	for (size_t k = i; k < PERFTEST_HELLO; k++)
		if (bytes[k])
			return false;
	memset(ret_release, 0, PERFTEST_HELLO);
	memcpy(ret_release, bytes, i);
	return true;
}
