/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces what identifies a machine or its owner by stand-ins, the same one for the same value. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "recording/recording.h"
#include "recording/recording_text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HOSTS = 4096 };

/* ---- patterns ---- */

static bool is_hex(char c)
{
	return isxdigit((unsigned char)c);
}

/* Length of "hhhh<sep>hhhh<sep>..." with groups of the given lengths (0-ended); 0: no match. */
static size_t match_groups(const char *s, const unsigned char *groups, char separator)
{
	size_t at = 0;

	for (; *groups; groups++) {
		for (unsigned i = 0; i < *groups; i++)
			if (!is_hex(s[at++]))
				return 0;
		if (groups[1] && s[at++] != separator)
			return 0;
	}
	/* Part of something longer is something else. */
	return is_hex(s[at]) || (s[at] == separator && is_hex(s[at + 1])) ? 0 : at;
}

static size_t match_uuid(const char *s)
{
	return match_groups(s, (const unsigned char[]){8, 4, 4, 4, 12, 0}, '-');
}

static size_t match_mac(const char *s)
{
	return match_groups(s, (const unsigned char[]){2, 2, 2, 2, 2, 2, 0}, ':');
}

/* As Windows, and some firmware, write it. */
static size_t match_dashed_mac(const char *s)
{
	return match_groups(s, (const unsigned char[]){2, 2, 2, 2, 2, 2, 0}, '-');
}

/* "enx001122334455": systemd's name of a network interface without a place of its own. */
static size_t match_mac_name(const char *s)
{
	static const char *const kinds[] = {"enx", "wlx", "wwx"};
	const size_t prefix = 3;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t n = text_starts_with(s, kinds[i])
				   ? match_groups(s + prefix, (const unsigned char[]){12, 0}, ':')
				   : 0;

		if (n)
			return prefix + n;
	}
	return 0;
}

static size_t match_guid(const char *s)
{
	return match_groups(s, (const unsigned char[]){4, 4, 4, 4, 0}, ':');
}

static size_t match_gid(const char *s)
{
	return match_groups(s, (const unsigned char[]){4, 4, 4, 4, 4, 4, 4, 4, 0}, ':');
}

/* As lspci prints the Device Serial Number. */
static size_t match_serial(const char *s)
{
	return match_groups(s, (const unsigned char[]){2, 2, 2, 2, 2, 2, 2, 2, 0}, '-');
}

/*
 * "94.02.26.48" is the version of a video BIOS: two digits in each group, of which only later ones
 * begin with zero. What begins with 255 is a netmask, or all hosts.
 */
static size_t match_ipv4(const char *s)
{
	bool pairs = s[0] != '0', padded = false;
	size_t at = 0;

	for (int group = 0; group < 4; group++) {
		unsigned value = 0, digits = 0;

		padded |= s[at] == '0' && isdigit((unsigned char)s[at + 1]);
		while (isdigit((unsigned char)s[at]) && digits++ < 3)
			value = 10 * value + (unsigned)(s[at++] - '0');
		pairs &= digits == 2;
		if (!digits || value > 255 || (group == 0 && value == 255) ||
		    (group < 3 && s[at++] != '.'))
			return 0;
	}
	return (pairs && padded) || isalnum((unsigned char)s[at]) || s[at] == '.' ? 0 : at;
}

/*
 * "aa:bb:...": of an Infiniband port 8 bytes, and 20 where its address has a queue pair and a GID.
 */
static size_t match_port_address(const char *s)
{
	const size_t n = strspn(s, "0123456789abcdefABCDEF:");

	for (size_t i = 0; i < n; i++)
		if ((s[i] == ':') != (i % 3 == 2))
			return 0;
	return n == 3 * 8 - 1 || n == 3 * 20 - 1 ? n : 0;
}

/*
 * The groups of an IPv6 address as people write it, with "::" in place of zeros; 0: it is none,
 * else its length.
 */
static size_t read_ipv6(const char *s, unsigned ret[8])
{
	size_t at = 0, n = 0, gap = 8; /* gap: groups in front of "::" */

	memset(ret, 0, 8 * sizeof(*ret));
	while (n < 8 && is_hex(s[at])) {
		const size_t start = at;

		while (is_hex(s[at]))
			ret[n] = ret[n] << 4 | (unsigned)strtoul((char[]){s[at++], 0}, NULL, 16);
		if (at - start > 4)
			return 0;
		n++;
		if (gap == 8 && s[at] == ':' && s[at + 1] == ':') {
			gap = n;
			at += 2;
		} else if (s[at] == ':') {
			at++;
		} else {
			break;
		}
	}
	if (s[at - (at > 0)] == ':' || isalnum((unsigned char)s[at]) || s[at] == '_' ||
	    (gap == 8 ? n < 8 : n == 8))
		return 0;
	if (gap < 8) {
		memmove(ret + 8 - (n - gap), ret + gap, (n - gap) * sizeof(*ret));
		memset(ret + gap, 0, (8 - n) * sizeof(*ret));
	}
	return at;
}

/* What is in use: link-local (fe80::, which holds a MAC address), unique local and global ones. */
static size_t match_ipv6(const char *s)
{
	unsigned groups[8];
	size_t n = read_ipv6(s, groups);

	return groups[0] >> 13 == 1 || groups[0] >= 0xfc00 ? n : 0;
}

/* 16 digits, as the kernel prints its own addresses; all ones are not an address. */
static size_t match_kernel_address(const char *s)
{
	size_t n = match_groups(s, (const unsigned char[]){16, 0}, ':');

	return n && strncasecmp(s, "ffff", 4) == 0 && strspn(s, "fF") < n ? n : 0;
}

/* "/home/NAME": the length of the whole. */
static size_t match_home(const char *s)
{
	size_t n = strlen("/home/");

	if (!text_starts_with(s, "/home/"))
		return 0;
	while (s[n] && !strchr("/: \t\n\"'", s[n]))
		n++;
	return n > strlen("/home/") ? n : 0;
}

/* ---- stand-ins ---- */

/* The order of `kinds`, but for the last, which is part of addresses. */
enum kind_index {
	KIND_UUID,
	KIND_PORT_ADDRESS,
	KIND_GID,
	KIND_IPV6,
	KIND_GUID,
	KIND_SERIAL,
	KIND_MAC,
	KIND_DASHED_MAC,
	KIND_MAC_NAME,
	KIND_IPV4,
	KIND_HOME,
	KIND_KERNEL_ADDRESS,
	KIND_NETWORK,
	KIND_N
};

struct seen {
	char *value;
	size_t kind;
	unsigned number;
};

struct redaction {
	struct seen *seen;
	size_t seen_n;
	unsigned next[KIND_N];
	char **hosts; /* names of hosts, without those that are too common a word to replace */
	size_t host_n;
};

/* All zeros are no identifier: an unset GUID. */
static bool is_unset(const char *s, size_t n)
{
	return strspn(s, "0:-.") >= n;
}

static unsigned number_of(struct redaction *r, size_t kind, const char *s, size_t n)
{
	struct seen *new;

	for (size_t i = 0; i < r->seen_n; i++)
		if (r->seen[i].kind == kind && strlen(r->seen[i].value) == n &&
		    strncasecmp(r->seen[i].value, s, n) == 0)
			return r->seen[i].number;
	r->seen = xrealloc(r->seen, r->seen_n + 1, sizeof(*r->seen));
	new = &r->seen[r->seen_n++];
	*new = (struct seen){xstrndup(s, n), kind, ++r->next[kind]};
	return new->number;
}

static void stand_in_uuid(struct redaction *r, const char *s, unsigned number, struct strbuf *out)
{
	(void)r, (void)s;
	strbuf_printf(out, "00000000-0000-0000-0000-%012x", number);
}

static void stand_in_mac(struct redaction *r, const char *s, unsigned number, struct strbuf *out)
{
	(void)r, (void)s;
	strbuf_printf(out, "02:00:00:00:%02x:%02x", number >> 8 & 0xff, number & 0xff);
}

/* The number of the same address with colons: in all its forms it is one. */
static unsigned mac_number(struct redaction *r, const char *s)
{
	char mac[18];

	for (size_t i = 0; i < sizeof(mac) - 1; i++)
		mac[i] = ':';
	mac[sizeof(mac) - 1] = '\0';
	for (size_t digit = 0; digit < 12; s++)
		if (is_hex(*s)) {
			mac[digit / 2 * 3 + digit % 2] = *s;
			digit++;
		}
	return number_of(r, KIND_MAC, mac, sizeof(mac) - 1);
}

static void stand_in_dashed_mac(struct redaction *r, const char *s, unsigned number,
				struct strbuf *out)
{
	number = mac_number(r, s);
	strbuf_printf(out, "02-00-00-00-%02x-%02x", number >> 8 & 0xff, number & 0xff);
}

static void stand_in_mac_name(struct redaction *r, const char *s, unsigned number,
			      struct strbuf *out)
{
	number = mac_number(r, s + 3);
	strbuf_printf(out, "%.3s02000000%02x%02x", s, number >> 8 & 0xff, number & 0xff);
}

static void stand_in_port_address(struct redaction *r, const char *s, unsigned number,
				  struct strbuf *out)
{
	(void)r;
	for (size_t i = match_port_address(s) / 3 - 1; i > 0; i--)
		strbuf_puts(out, "00:");
	strbuf_printf(out, "%02x:%02x", number >> 8 & 0xff, number & 0xff);
}

static void stand_in_guid(struct redaction *r, const char *s, unsigned number, struct strbuf *out)
{
	(void)r, (void)s;
	strbuf_printf(out, "0000:0000:0000:%04x", number & 0xffff);
}

/* An address in the stand-in of its network, so that addresses of one network stay so. */
static void network_stand_in(struct redaction *r, const unsigned char *real, unsigned char *ret)
{
	char network[16], address[20];
	size_t n =
		(size_t)snprintf(network, sizeof(network), "%d.%d.%d", real[0], real[1], real[2]);
	unsigned net = number_of(r, KIND_NETWORK, network, n);

	n = (size_t)snprintf(address, sizeof(address), "%s.%d", network, real[3]);
	ret[0] = net == 1 ? 192 : 198;
	ret[1] = net == 1 ? 0 : 18 + (net >> 8 & 1);
	ret[2] = net == 1 ? 2 : net & 0xff;
	ret[3] = number_of(r, KIND_IPV4, address, n) & 0xff;
}

/* ::ffff:a.b.c.d, of which 169.254/16 are link-local. */
static const char mapped_gid[] = "0000:0000:0000:0000:0000:ffff:";

static void stand_in_mapped(struct redaction *r, const char *s, struct strbuf *out)
{
	unsigned long high = strtoul(s + strlen(mapped_gid), NULL, 16);
	unsigned long low = strtoul(s + strlen(mapped_gid) + 5, NULL, 16);
	unsigned char real[] = {high >> 8 & 0xff, high & 0xff, low >> 8 & 0xff, low & 0xff}, ip[4];

	network_stand_in(r, real, ip);
	strbuf_printf(out, "%s%02x%02x:%02x%02x", mapped_gid, ip[0], ip[1], ip[2], ip[3]);
}

/* Of the first 64 bits; 0: they are the usual ones, "fe80:0000:0000:0000". */
static unsigned subnet_number(struct redaction *r, const char *s)
{
	enum { PREFIX = 19, FIRST = 4 };

	return is_unset(s + FIRST, PREFIX - FIRST) ? 0
						   : number_of(r, KIND_NETWORK, s, PREFIX) & 0xffff;
}

/*
 * What kind of GID it is matters (link-local, mapped IPv4, routable), and its network; who it is
 * does not.
 */
static void stand_in_gid(struct redaction *r, const char *s, unsigned number, struct strbuf *out)
{
	bool mapped = text_starts_with(s, mapped_gid);
	size_t keep = mapped ? strlen(mapped_gid) + 5 : 5;

	if (mapped && !text_starts_with(s + strlen(mapped_gid), "a9fe:")) {
		stand_in_mapped(r, s, out);
		return;
	}
	strbuf_add(out, s, keep);
	for (size_t at = keep; at < 35; at += 5)
		strbuf_printf(out, "%04x:", at == 15 && !mapped ? subnet_number(r, s) : 0);
	strbuf_printf(out, "%04x", number & 0xffff);
}

/* In full, so that it has the stand-in of the same GID as the kernel prints it. */
static void stand_in_ipv6(struct redaction *r, const char *s, unsigned number, struct strbuf *out)
{
	AUTO_STRBUF struct strbuf full = {0};
	unsigned groups[8];

	(void)number;
	read_ipv6(s, groups);
	for (size_t i = 0; i < 8; i++)
		strbuf_printf(&full, "%s%04x", i ? ":" : "", groups[i]);
	stand_in_gid(r, full.text, number_of(r, KIND_GID, full.text, full.len), out);
}

static void stand_in_serial(struct redaction *r, const char *s, unsigned number, struct strbuf *out)
{
	(void)r, (void)s;
	strbuf_printf(out, "00-00-00-00-00-00-%02x-%02x", number >> 8 & 0xff, number & 0xff);
}

static void stand_in_ipv4(struct redaction *r, const char *s, unsigned number, struct strbuf *out)
{
	unsigned char real[4], ip[4];

	(void)number;
	for (int i = 0; i < 4; i++) {
		char *end;

		real[i] = (unsigned char)strtoul(s, &end, 10);
		s = end + (*end == '.');
	}
	network_stand_in(r, real, ip);
	strbuf_printf(out, "%d.%d.%d.%d", ip[0], ip[1], ip[2], ip[3]);
}

static void stand_in_home(struct redaction *r, const char *s, unsigned number, struct strbuf *out)
{
	(void)r, (void)s;
	strbuf_printf(out, "/home/user%u", number);
}

/* As root's own view gives way to anybody's: %pK. */
static void stand_in_kernel_address(struct redaction *r, const char *s, unsigned number,
				    struct strbuf *out)
{
	(void)r, (void)s, (void)number;
	strbuf_printf(out, "%016x", 0);
}

static const struct kind {
	size_t (*match)(const char *s); /* length of the identifier that starts here, 0: none */
	void (*stand_in)(struct redaction *r, const char *s, unsigned number, struct strbuf *out);
	bool settings_only; /* elsewhere it is more likely a version */
	bool behind_colon;  /* "eth0:10.1.2.3": what is in front of a colon is another word */
	bool many_forms;    /* the stand-in takes the number of the one form; it gets 0 */
} kinds[] = {
	{match_uuid, stand_in_uuid},
	{match_port_address, stand_in_port_address},
	{match_gid, stand_in_gid},
	{match_ipv6, stand_in_ipv6, .many_forms = true},
	{match_guid, stand_in_guid},
	{match_serial, stand_in_serial},
	{match_mac, stand_in_mac},
	{match_dashed_mac, stand_in_dashed_mac, .many_forms = true},
	{match_mac_name, stand_in_mac_name, .many_forms = true},
	{match_ipv4, stand_in_ipv4, .settings_only = true, .behind_colon = true,
	 .many_forms = true},
	{match_home, stand_in_home, .settings_only = true},
	{match_kernel_address, stand_in_kernel_address},
};

_Static_assert(sizeof(kinds) / sizeof(*kinds) == KIND_NETWORK, "a row of each kind");

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* ".corp.example.org" behind the name of a host; 0: there is none, or a file's ending. */
static size_t domain_length(const char *s)
{
	size_t n = 0, labels = 0, k = 0;

	while (s[n] == '.' && isalnum((unsigned char)s[n + 1])) {
		for (k = 1; isalnum((unsigned char)s[n + k]) || s[n + k] == '-';)
			k++;
		n += k;
		labels++;
	}
	return labels > 1 && isalpha((unsigned char)s[n - 1]) ? n : 0;
}

/*
 * The length of the longest name that starts at text + at, with its domain, and its number from 0;
 * 0: none does.
 */
static size_t match_host(const struct redaction *r, const char *text, size_t at, size_t *ret_number)
{
	size_t longest = 0;

	if (at && is_word(text[at - 1]))
		return 0;
	for (size_t i = 0; i < r->host_n; i++) {
		size_t n = strlen(r->hosts[i]);

		if (n > longest && strncmp(text + at, r->hosts[i], n) == 0 &&
		    !is_word(text[at + n])) {
			*ret_number = i;
			longest = n;
		}
	}
	return longest ? longest + domain_length(text + at + longest) : 0;
}

/* "host" for the only one; the hosts of a log have to stay distinct. */
static void stand_in_host(struct strbuf *out, const struct redaction *r, size_t number)
{
	if (r->host_n == 1)
		strbuf_puts(out, "host");
	else
		strbuf_printf(out, "host%zu", number + 1);
}

/* ---- what a label in front of it makes an identifier ---- */

static const struct label {
	const char *name;       /* in any case */
	const char *separators; /* one of them follows */
	const char *prefix;     /* the value begins with it */
	bool secret;            /* whatever it is; an identifier has a digit */
} labels[] = {
	{"serial number", ":=>", ""}, /* nvidia-smi -q, dmidecode */
	{"serialnumber", ":=>", ""},  /* the kernel, of USB devices */
	{"serial_number", ":=>", ""},
	{"\"serial\"", ":", ""},
	{"serial", "=>", ""}, /* nvidia-smi -x; not "Serial: 8250/16550 driver" */
	{"guid", ":=", "0x"}, /* ibstat, a topology of NCCL */
	{"host_hash", "=", "0x"},
	{"luks.key", "=", "", true}, /* rd.luks.key= too */
	{"password", "=", "", true},
	{"passwd", "=", "", true},
	{"passphrase", "=", "", true},
	{"secret", "=", "", true},
	{"token", "=", "", true},
	{"api_key", "=", "", true},
	/* Of lspci's Vital Product Data; some vendors put the serial number there too. */
	{"vendor specific", ":", "", true},
	{"asset tag", ":", "", true},
};

/* Where its value starts; 0: it is not at s. */
static size_t label_length(const struct label *l, const char *s)
{
	size_t n = strlen(l->name), prefix = strlen(l->prefix);

	if (tolower((unsigned char)*s) != *l->name || strncasecmp(s, l->name, n) != 0)
		return 0;
	n += strspn(s + n, "\" \t");
	if (!s[n] || !strchr(l->separators, s[n]))
		return 0;
	n++;
	n += strspn(s + n, "\"' \t");
	return strncasecmp(s + n, l->prefix, prefix) == 0 ? n + prefix : 0;
}

/* Of equal length, for tables; "N/A" and the like, without a digit, stay. */
static size_t clear_labelled(const char *s, struct strbuf *out)
{
	size_t start = 0, n;
	bool secret = false;

	for (size_t i = 0; !start && i < sizeof(labels) / sizeof(*labels); i++) {
		start = label_length(&labels[i], s);
		secret = labels[i].secret;
	}
	n = start ? strcspn(s + start, secret ? " \t\r\n\"'" : " \t\r\n\"'<>,;|") : 0;
	if (!n || (!secret && strcspn(s + start, "0123456789") >= n))
		return 0;
	strbuf_add(out, s, start);
	for (size_t i = 0; i < n; i++)
		strbuf_putc(out, isalnum((unsigned char)s[start + i]) ? '0' : s[start + i]);
	return start + n;
}

/* ---- who it was ---- */

/*
 * Whose user names are in kernels and modules as they are delivered: the host is the distributor's.
 */
static bool is_builder(const char *user, size_t n)
{
	static const char *const builders[] = {"build", "buildd", "debian-kernel", "dvs-builder",
					       "geeko", "linux",  "mockbuild",     "nixbld"};

	for (size_t i = 0; i < sizeof(builders) / sizeof(*builders); i++)
		if (strlen(builders[i]) == n && strncmp(user, builders[i], n) == 0)
			return true;
	return false;
}

static bool is_of_user(char c)
{
	return is_word(c) || c == '.';
}

/* "alice" of "alice@HOST" for a host that is replaced; root is nobody's name. */
static size_t match_user(const struct redaction *r, const char *text, size_t at)
{
	size_t n = 0, host;

	if (at && (is_of_user(text[at - 1]) || text[at - 1] == '/'))
		return 0;
	while (is_of_user(text[at + n]))
		n++;
	if (!n || text[at + n] != '@' || is_builder(text + at, n) ||
	    (n == 4 && memcmp(text + at, "root", n) == 0))
		return 0;
	return match_host(r, text, at + n + 1, &host) ? n : 0;
}

/* With the number of "/home/alice". */
static void stand_in_user(struct redaction *r, const char *user, size_t n, struct strbuf *out)
{
	AUTO_STRBUF struct strbuf home = {0};

	strbuf_printf(&home, "/home/%.*s", (int)n, user);
	strbuf_printf(out, "user%u", number_of(r, KIND_HOME, home.text, home.len));
}

/* "://alice:password@": how long it is; 0: there is none here. */
static size_t match_login(const char *s)
{
	const size_t start = strlen("://");
	size_t n;

	if (!text_starts_with(s, "://"))
		return 0;
	n = start + strcspn(s + start, "@/ \t\r\n\"'<>");
	return s[n] == '@' && n > start ? n : 0;
}

static void clear_login(const char *s, size_t n, struct strbuf *out)
{
	for (size_t i = 0; i < n; i++)
		strbuf_putc(out, isalnum((unsigned char)s[i]) ? '0' : s[i]);
}

/* One identifier at text + at: its stand-in goes to out; returns its length, 0 for none. */
static size_t replace_one(struct redaction *r, const char *text, size_t at, bool settings,
			  struct strbuf *out)
{
	bool inside = at && (is_hex(text[at - 1]) ||
			     (strchr(":.-", text[at - 1]) && at > 1 && is_hex(text[at - 2])));
	size_t host, n = match_host(r, text, at, &host);

	if (n) {
		stand_in_host(out, r, host);
		return n;
	}
	n = match_login(text + at);
	if (n) {
		clear_login(text + at, n, out);
		return n;
	}
	n = match_user(r, text, at);
	if (n) {
		stand_in_user(r, text + at, n, out);
		return n;
	}
	n = clear_labelled(text + at, out);
	if (n)
		return n;
	for (size_t k = 0; k < KIND_NETWORK; k++) {
		if ((kinds[k].settings_only && !settings) ||
		    (inside && text[at] != '/' && !(kinds[k].behind_colon && text[at - 1] == ':')))
			continue;
		n = kinds[k].match(text + at);
		if (n && is_unset(text + at, n)) {
			strbuf_add(out, text + at, n);
			return n;
		}
		if (n) {
			kinds[k].stand_in(r, text + at,
					  kinds[k].many_forms ? 0 : number_of(r, k, text + at, n),
					  out);
			return n;
		}
	}
	return 0;
}

/* "GPU-" before a UUID is a word's end, not the inside of a longer identifier. Firmware variables
 * hold NUL bytes, at which patterns end. */
static void redact_text(struct redaction *r, const char *text, size_t size, bool settings,
			struct strbuf *out)
{
	size_t at = 0;

	while (at < size) {
		size_t n = replace_one(r, text, at, settings, out);

		if (!n)
			strbuf_putc(out, text[at++]);
		at += n;
	}
}

/* Files in which four numbers with dots are an address. */
static bool holds_settings(const char *path)
{
	static const char *const names[] = {"environment.txt", "process-env.txt", "proc/cmdline",
					    "kernel-log.txt",  "etc/nccl.conf",   ".nccl.conf",
					    RECORDING_TEXTS};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (text_ends_with(path, names[i]))
			return true;
	return false;
}

/* The Device Serial Number extended capability (PCIe 6.0, 7.9.3): 8 bytes behind the header. */
static void clear_serial_number(char *config, size_t size)
{
	size_t at = 0x100;

	for (unsigned n = 0; n < 960 && at >= 0x100 && at + 12 <= size; n++) {
		const unsigned char *p = (const unsigned char *)config + at;
		uint32_t head = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				(uint32_t)p[3] << 24;

		if ((head & 0xffff) == 0x0003)
			memset(config + at + 4, 0, 8);
		at = head >> 20 & ~3u;
	}
}

/* ---- serial numbers in texts ---- */

/* A dump of configuration space as lspci prints it: its bytes, and where each is in the text. */
struct printed_dump {
	char config[4096];
	char *at[4096]; /* two digits; NULL: not printed */
	size_t size;
};

static char byte_at(const char *digits)
{
	return (char)strtoul((const char[]){digits[0], digits[1], '\0'}, NULL, 16);
}

/* "100: 03 00 01 00 ...": false: the line is not the next row. */
static bool add_row(struct printed_dump *d, char *line)
{
	char *s = line + strspn(line, "| "), *end;
	size_t at = strtoul(s, &end, 16);

	if (end - s < 2 || end - s > 3 || end[0] != ':' || at != d->size || at % 16 || at >= 4096)
		return false;
	for (s = end + 1; *s == ' ' && is_hex(s[1]) && is_hex(s[2]) && d->size < at + 16; s += 3) {
		d->at[d->size] = s + 1;
		d->config[d->size++] = byte_at(s + 1);
	}
	return d->size > at;
}

static void clear_serial_of_dump(struct printed_dump *d)
{
	static const char digits[] = "0123456789abcdef";

	clear_serial_number(d->config, d->size);
	for (size_t i = 0; i < d->size; i++) {
		unsigned char c = (unsigned char)d->config[i];

		if (byte_at(d->at[i]) == d->config[i])
			continue;
		d->at[i][0] = digits[c >> 4];
		d->at[i][1] = digits[c & 15];
	}
	d->size = 0;
}

static void clear_serials(char *text)
{
	AUTO_FREE struct printed_dump *d = xcalloc(1, sizeof(*d));

	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (add_row(d, line))
			continue;
		clear_serial_of_dump(d);
		add_row(d, line);
	}
	clear_serial_of_dump(d);
}

/* A path can name its owner too: home/alice/.nccl.conf. The caller frees. */
static char *redacted_path(struct redaction *r, const char *path)
{
	AUTO_STRBUF struct strbuf slashed = {0}, out = {0};

	if (!text_starts_with(path, "home/"))
		return xstrdup(path);
	strbuf_printf(&slashed, "/%s", path); /* as the pattern expects */
	redact_text(r, strbuf_str(&slashed), slashed.len, true, &out);
	return xstrdup(strbuf_str(&out) + 1);
}

static void put_redacted(struct source *map, struct redaction *r, const struct source_entry *e,
			 const char *data, size_t size)
{
	AUTO_FREE char *path = redacted_path(r, e->path);

	if (strcmp(path, e->path) != 0)
		source_drop(map, e->path);
	else if (e->error || (size == e->size && memcmp(data, e->data, size) == 0))
		return;
	if (e->error)
		source_put_error(map, path, e->kind, e->error);
	else if (e->kind == SOURCE_LINK)
		source_put_link(map, path, data);
	else if (e->kind == SOURCE_LIST)
		source_put_list(map, path, data);
	else
		source_put_file(map, path, data, size);
}

static void redact_entry(struct source *map, struct redaction *r, const struct source_entry *e)
{
	AUTO_STRBUF struct strbuf out = {0};

	strbuf_add(&out, "", 0);
	if (recording_is_config(e)) {
		strbuf_add(&out, e->data, e->size);
		clear_serial_number(out.text, out.len);
	} else if (!e->error) {
		redact_text(r, e->data, e->size, holds_settings(e->path), &out);
		if (strcmp(e->path, RECORDING_TEXTS) == 0)
			clear_serials(out.text);
	}
	put_redacted(map, r, e, strbuf_str(&out), out.len);
}

/* ---- names of hosts ---- */

/* Names so common that replacing them would garble other texts. */
static bool is_common(const char *name)
{
	static const char *const common[] = {"localhost", "host", "debian", "ubuntu", "fedora",
					     "linux",     "root", "nvidia", "gpu",    "node"};

	for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
		if (strcasecmp(name, common[i]) == 0)
			return true;
	return strlen(name) < 3;
}

static void add_host(struct redaction *r, const char *name, size_t n)
{
	AUTO_FREE char *copy = xstrndup(name, n);

	if (is_common(copy) || r->host_n >= MAX_HOSTS)
		return;
	for (size_t i = 0; i < r->host_n; i++)
		if (strcmp(r->hosts[i], copy) == 0)
			return;
	r->hosts = xrealloc(r->hosts, r->host_n + 1, sizeof(*r->hosts));
	r->hosts[r->host_n++] = xstrdup(copy);
}

/*
 * "RuntimeError: NCCL error ...", "torch.distributed.DistBackendError: NCCL error": an exception of
 * Python.
 */
static bool is_exception(const char *name, size_t n)
{
	static const char *const ends[] = {"Error", "Exception", "Warning", "Interrupt"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		const size_t k = strlen(ends[i]);

		if (n >= k && strncmp(name + n - k, ends[i], k) == 0)
			return true;
	}
	return false;
}

/* Where a name of a host ends. */
static size_t host_length(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || (s[n] && strchr("._-", s[n])))
		n++;
	return n;
}

/*
 * "HOST:1234:1240 [0] NCCL INFO": as every line of NCCL begins, behind what a launcher may put
 * there.
 */
static void add_host_of_nccl(struct redaction *r, const char *line)
{
	const char *mark = strstr(line, " NCCL "), *s, *end;

	if (!mark)
		return;
	end = memrchr(line, '[', (size_t)(mark - line));
	end = end ? end : mark;
	for (s = end; s > line && (s[-1] == ' ' || isdigit((unsigned char)s[-1]) || s[-1] == ':');
	     s--)
		;
	while (s > line && (isalnum((unsigned char)s[-1]) || strchr("._-", s[-1])))
		s--;
	if (s[host_length(s)] == ':' && !is_exception(s, host_length(s)))
		add_host(r, s, host_length(s));
}

/* The word behind `key`. */
static void add_host_behind(struct redaction *r, const char *line, const char *key,
			    const char *also)
{
	const char *s = strstr(line, key);

	if (!s || !strstr(line, also))
		return;
	s += strlen(key);
	s += strspn(s, " ");
	add_host(r, s, host_length(s));
}

/* "Nov 22 09:40:35 HOST kernel: " */
static void add_host_of_journal(struct redaction *r, const char *line)
{
	const char *mark = strstr(line, " kernel: "), *s = mark;

	while (s && s > line && s[-1] != ' ' && s[-1] != '|')
		s--;
	if (mark && s > line && memchr(line, ':', (size_t)(s - line)) &&
	    !strchr("[]0123456789", *s))
		add_host(r, s, (size_t)(mark - s));
}

/* A name of a host starts here, and not a number or an address. */
static void add_host_at(struct redaction *r, const char *s)
{
	const size_t n = host_length(s);

	for (size_t i = 0; i < n; i++)
		if (isalpha((unsigned char)s[i])) {
			add_host(r, s, n);
			return;
		}
}

/* "root@HOST:~#", "(root@HOST)"; not user@1000.service, nor config_acs=101x@pci:10de:1234. */
static void add_hosts_of_users(struct redaction *r, const char *line)
{
	for (const char *at = line; (at = strchr(at, '@')); at++) {
		const char *user = at, *host = at + 1;
		const size_t n = host_length(host);

		while (user > line && (isalnum((unsigned char)user[-1]) || strchr("._-", user[-1])))
			user--;
		if (user == at || (user > line && !strchr(" \t([<|\"'", user[-1])) ||
		    is_builder(user, (size_t)(at - user)) ||
		    (n > 8 && strncmp(host + n - 8, ".service", 8) == 0))
			continue;
		add_host_at(r, host);
	}
}

/* Behind a field of "ip=" in which an IPv6 address is in brackets; NULL: it was the last. */
static const char *next_ip_field(const char *s)
{
	if (*s == '[')
		s += strcspn(s, "] \t\n");
	s += strcspn(s, ": \t\n\"'");
	return *s == ':' ? s + 1 : NULL;
}

/* ip=CLIENT:SERVER:GATEWAY:NETMASK:HOST:..., nfsroot=SERVER:/... of a kernel's command line. */
static void add_hosts_of_boot(struct redaction *r, const char *line)
{
	static const char *const servers[] = {"nfsroot=", "root=nfs:", "root=nfs4:"};
	const char *s;

	for (const char *word = line; (word = strstr(word, "ip=")); word += 3) {
		s = word == line || strchr(" \t\"'", word[-1]) ? word + 3 : NULL;
		for (int field = 0; s && field < 4; field++)
			s = next_ip_field(s);
		if (s)
			add_host_at(r, s);
	}
	for (size_t i = 0; i < sizeof(servers) / sizeof(*servers); i++) {
		s = strstr(line, servers[i]);
		s = s ? s + strlen(servers[i]) : "";
		if (s[host_length(s)] == ':')
			add_host_at(r, s);
	}
}

/* What is in front of the name of another host, and what may follow it. */
static const struct peer_form {
	const char *before, *after;
} peer_forms[] = {
	{"connect to (", ","}, /* PyTorch's store */
	{"connect to [", "]"},
	{"tcp://", ":/"},
	{" on node ", " ,."}, /* mpirun */
	{"NCCL_COMM_ID=", ":"},
	{"NCCL_COMM_ID [", ":"},
	{"NCCL_COMM_ID set by environment to ", ":"},
	{"NCCL_HOSTID=", " \""},
	{"NCCL_HOSTID set by environment to ", " "},
};

static void add_host_of_peer(struct redaction *r, const char *line, const struct peer_form *form)
{
	for (const char *s = line; (s = strstr(s, form->before));) {
		size_t n;

		s += strlen(form->before);
		n = host_length(s);
		if (!s[n] || strchr(form->after, s[n]))
			add_host_at(r, s);
	}
}

/*
 * "Connect to HOST<50000>", as NCCL writes an address; a port below 1000 is none that it listens
 * on.
 */
static void add_hosts_with_port(struct redaction *r, const char *line)
{
	enum { DIGITS = 4 };

	for (const char *at = line; (at = strchr(at, '<')); at++) {
		const char *s = at;
		const size_t digits = strspn(at + 1, "0123456789");

		while (s > line && (isalnum((unsigned char)s[-1]) || strchr("._-", s[-1])))
			s--;
		if (digits >= DIGITS && at[1 + digits] == '>' && s > line && s[-1] == ' ')
			add_host_at(r, s);
	}
}

/* Texts of people name hosts in the forms of their tools, too. */
static void find_hosts_of_text(struct redaction *r, const char *line)
{
	for (size_t i = 0; i < sizeof(peer_forms) / sizeof(*peer_forms); i++)
		add_host_of_peer(r, line, &peer_forms[i]);
	add_hosts_with_port(r, line);
	add_host_of_nccl(r, line);
	add_host_behind(r, line, "|Linux ", " #");
	if (strstr(line, " Pid ")) /* nccl-tests; "both on CUDA device 1000" names no host */
		add_host_behind(r, line, " on ", " device ");
	add_host_of_journal(r, line);
}

static void find_hosts_of(struct source *map, struct redaction *r, const char *path)
{
	AUTO_FREE char *text = NULL;
	const char *line = NULL;
	size_t size, n;

	if (source_read(map, &text, &size, "%s", path) < 0)
		return;
	while (text_next_line(&line, &n, text)) {
		AUTO_FREE char *copy = xstrndup(line, n);

		if (strcmp(path, RECORDING_TEXTS) == 0)
			find_hosts_of_text(r, copy);
		add_hosts_of_users(r, copy);
		add_hosts_of_boot(r, copy);
	}
}

static void find_hosts(struct source *map, struct redaction *r)
{
	static const char *const paths[] = {RECORDING_TEXTS, "proc/cmdline", "proc/version",
					    "proc/driver/nvidia/version", "kernel-log.txt"};
	char host[256];

	if (source_read_line(map, host, sizeof(host), "proc/sys/kernel/hostname") >= 0)
		add_host(r, host, strlen(host));
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		find_hosts_of(map, r, paths[i]);
}

static void redaction_done(struct redaction *r)
{
	for (size_t i = 0; i < r->seen_n; i++)
		free(r->seen[i].value);
	free(r->seen);
	for (size_t i = 0; i < r->host_n; i++)
		free(r->hosts[i]);
	free(r->hosts);
}

void recording_redact(struct source *map)
{
	AUTO_FREE struct source_entry *entries = NULL;
	struct redaction r = {0};
	size_t n;

	find_hosts(map, &r);
	entries = source_entries(map, &n);
	for (size_t i = 0; i < n; i++)
		redact_entry(map, &r, &entries[i]);
	redaction_done(&r);
}

/* ---- texts that are made from a machine ---- */

struct redaction *redaction_new(const char *host)
{
	struct redaction *r = xcalloc(1, sizeof(*r));

	add_host(r, host, strlen(host));
	return r;
}

void redaction_free(struct redaction *r)
{
	if (r)
		redaction_done(r);
	free(r);
}

/* 10.0.0.1, 192.168.0.1 and 203.0.113.7, and not 24.10.0.7, which is a release of OFED. */
static bool is_surely_address(const char *s)
{
	unsigned first;

	if (!match_ipv4(s) || sscanf(s, "%3u.", &first) != 1)
		return false;
	return first == 10 || first >= 100;
}

void redaction_text(struct redaction *r, const char *text, struct strbuf *out)
{
	for (size_t at = 0; text[at];) {
		bool settings = text[at] == '/' || is_surely_address(text + at);
		size_t n = replace_one(r, text, at, settings, out);

		if (!n)
			strbuf_putc(out, text[at++]);
		at += n;
	}
}
