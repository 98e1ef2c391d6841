/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What RDMA tools print of NICs: ibstat and ibstatus (infiniband-diags), ibv_devinfo (libibverbs),
 * rdma link (iproute2), ibdev2netdev, show_gids and ofed_info (NVIDIA's OFED and DOCA).
 */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/text.h"
#include "machine/pci.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORTS = 254 };

/* The NIC and port that the lines are about. */
struct nic_lines {
	const struct part *part;
	struct claims *claims;
	char name[NIC_NAME_SIZE];
	unsigned port; /* 0: the lines are about the NIC */
	unsigned lanes;
};

#define PORT_FILE "sys/class/infiniband/%s/ports/%u/"

bool nic_name_read(const char *s, size_t n, char name[NIC_NAME_SIZE])
{
	if (!n || n >= NIC_NAME_SIZE || !isalpha((unsigned char)*s))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("_-.", s[i]))
			return false;
	text_copy(name, NIC_NAME_SIZE, s, n);
	return true;
}

static void begin_nic(struct nic_lines *n, const struct text_line *l)
{
	n->port = n->lanes = 0;
	claim(n->claims, CLAIM_AT(n->part, l), "", "nic/%s/named", n->name);
}

static bool begin_port(struct nic_lines *n, const struct text_line *l, unsigned port)
{
	if (!port || port > PORTS)
		return false;
	n->port = port;
	n->lanes = 0;
	claim(n->claims, CLAIM_AT(n->part, l), "", "nic/%s/port/%u", n->name, port);
	return true;
}

static void claim_port(struct nic_lines *n, const struct text_line *l, const char *file,
		       const char *value)
{
	if (n->port && *value)
		claim(n->claims, CLAIM_AT(n->part, l), value, PORT_FILE "%s", n->name, n->port,
		      file);
}

/* What the lines of each NIC of a part leave out. */
static void claim_extents(const struct part *p, struct claims *c,
			  bool (*starts)(const struct text_line *l, char name[NIC_NAME_SIZE]))
{
	char name[NIC_NAME_SIZE] = "", next[NIC_NAME_SIZE];
	size_t from = 0;

	for (size_t i = 0; i <= p->n; i++) {
		const bool nic = i < p->n && starts(&p->lines[i], next);

		if (!nic && i < p->n)
			continue;
		if (*name)
			claim_extent(c, p, from, i, "sys/class/infiniband/%s", name);
		from = i;
		if (nic)
			memcpy(name, next, sizeof(name));
	}
}

/* ---- values ---- */

/* "Active", "PORT_ACTIVE (4)", "4: ACTIVE", "ACTIVE": as sysfs names it. */
static void put_state(struct nic_lines *n, const struct text_line *l, const char *value)
{
	static const char *const states[] = {"DOWN", "INIT", "ARMED", "ACTIVE"};
	const char *s = text_starts_with(value, "PORT_") ? value + strlen("PORT_") : value;

	if (isdigit((unsigned char)*s) && strchr(s, ':'))
		s = strchr(s, ':') + 1 + strspn(strchr(s, ':') + 1, " ");
	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (strncasecmp(s, states[i], strlen(states[i])) == 0)
			claim_port(n, l, "state", states[i]);
}

static void put_phys_state(struct nic_lines *n, const struct text_line *l, const char *value)
{
	static const char *const states[][2] = {{"LinkUp", "LinkUp"},     {"LINK_UP", "LinkUp"},
						{"Polling", "Polling"},   {"POLLING", "Polling"},
						{"Disabled", "Disabled"}, {"DISABLED", "Disabled"}};

	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (strstr(value, states[i][0])) {
			claim_port(n, l, "phys_state", states[i][1]);
			return;
		}
}

/* "400", "40 (FDR10)", "400 Gb/sec (4X NDR)" */
static void put_rate(struct nic_lines *n, const struct text_line *l, const char *value)
{
	char text[32], *end;
	double gbps = strtod(value, &end);

	if (end == value || !(gbps > 0 && gbps < 1e5))
		return;
	snprintf(text, sizeof(text), "%g Gb/sec", gbps);
	claim_port(n, l, "rate", text);
}

/* "4X (2)" */
static void put_width(struct nic_lines *n, const struct text_line *l, const char *value)
{
	char *end;
	unsigned long lanes = strtoul(value, &end, 10);

	(void)l;
	n->lanes = *end == 'X' && lanes <= 16 ? (unsigned)lanes : 0;
}

/* "25.0 Gbps (32)", of one lane */
static void put_speed(struct nic_lines *n, const struct text_line *l, const char *value)
{
	char text[32], *end;
	double gbps = strtod(value, &end);

	if (end == value || !text_starts_with(end, " Gbps") || !n->lanes)
		return;
	snprintf(text, sizeof(text), "%g", gbps * n->lanes);
	put_rate(n, l, text);
}

static void put_link_layer(struct nic_lines *n, const struct text_line *l, const char *value)
{
	if (strcmp(value, "InfiniBand") == 0 || strcmp(value, "Ethernet") == 0)
		claim_port(n, l, "link_layer", value);
}

static void put_firmware(struct nic_lines *n, const struct text_line *l, const char *value)
{
	if (*value)
		claim(n->claims, CLAIM_AT(n->part, l), value, "sys/class/infiniband/%s/fw_ver",
		      n->name);
}

static void put_type(struct nic_lines *n, const struct text_line *l, const char *value)
{
	if (text_starts_with(value, "MT"))
		claim(n->claims, CLAIM_AT(n->part, l), value, "sys/class/infiniband/%s/hca_type",
		      n->name);
}

static void put_board(struct nic_lines *n, const struct text_line *l, const char *value)
{
	if (*value)
		claim(n->claims, CLAIM_AT(n->part, l), value, "sys/class/infiniband/%s/board_id",
		      n->name);
}

/* ---- GIDs ---- */

/*
 * As the kernel writes it: eight groups of four digits. Tools also print "fe80::1",
 * "::ffff:10.0.0.1".
 */
static bool full_gid(const char *s, size_t n, char ret[40])
{
	struct in6_addr a;
	char word[64];
	size_t at = 0;

	if (n >= sizeof(word))
		return false;
	text_copy(word, sizeof(word), s, n);
	if (inet_pton(AF_INET6, word, &a) != 1)
		return false;
	for (size_t i = 0; i < 16; i += 2)
		at += (size_t)snprintf(ret + at, 40 - at, "%s%02x%02x", i ? ":" : "", a.s6_addr[i],
				       a.s6_addr[i + 1]);
	return true;
}

static size_t gid_length(const char *s)
{
	return strspn(s, "0123456789abcdefABCDEF:.");
}

static void put_gid(struct nic_lines *n, const struct text_line *l, unsigned index, const char *gid,
		    bool v2, bool has_type)
{
	char path[64];

	snprintf(path, sizeof(path), "gids/%u", index);
	claim_port(n, l, path, gid);
	snprintf(path, sizeof(path), "gid_attrs/types/%u", index);
	if (has_type)
		claim_port(n, l, path, v2 ? "RoCE v2" : "IB/RoCE v1");
}

/* "GID[  3]:		::ffff:10.1.2.3, RoCE v2" of ibv_devinfo -v */
static bool read_devinfo_gid(const char *s, unsigned *ret_index, char ret_gid[40],
			     const char **ret_rest)
{
	int end = 0;
	size_t n;

	if (sscanf(s, "GID[%4u]:%n", ret_index, &end) != 1 || !end)
		return false;
	s += end + strspn(s + end, " ");
	n = gid_length(s);
	*ret_rest = s + n;
	return full_gid(s, n, ret_gid);
}

/* All of a port's GIDs are in the text, so that what is not there does not exist. */
static void claim_all_gids(struct nic_lines *n, const struct text_line *l)
{
	if (n->port)
		claim_number(n->claims, CLAIM_AT(n->part, l), 1, PORT_FILE "stated/gids", n->name,
			     n->port);
}

/* ---- labels ---- */

struct nic_label {
	const char *label;
	void (*put)(struct nic_lines *n, const struct text_line *l, const char *value);
};

static bool put_label(struct nic_lines *n, const struct text_line *l,
		      const struct nic_label *labels, size_t label_n)
{
	for (size_t i = 0; i < label_n; i++) {
		const char *value = line_value(l, labels[i].label);

		if (!value)
			continue;
		if (*n->name)
			labels[i].put(n, l, value);
		return true;
	}
	return false;
}

/* Lines that are deeper than the first, and empty ones between; `starts` begins another NIC. */
static size_t deeper_lines(const struct text_line *lines, size_t n,
			   bool (*starts)(const struct text_line *l, char name[NIC_NAME_SIZE]))
{
	char name[NIC_NAME_SIZE];
	size_t end = 1;

	for (size_t i = 1; i < n; i++) {
		if (line_is_blank(&lines[i]))
			continue;
		if (line_indent(&lines[i]) <= line_indent(&lines[0]) && !starts(&lines[i], name))
			break;
		end = i + 1;
	}
	return end;
}

static void count_nics(struct part *p, const struct text_line *lines, size_t n,
		       bool (*starts)(const struct text_line *l, char name[NIC_NAME_SIZE]))
{
	char name[NIC_NAME_SIZE];
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += starts(&lines[i], name);
	snprintf(p->about, sizeof(p->about), "%zu %s", count, text_plural(count, "NIC", "NICs"));
}

static size_t match_nics(struct part *p, const struct text_line *lines, size_t n,
			 bool (*starts)(const struct text_line *l, char name[NIC_NAME_SIZE]))
{
	char name[NIC_NAME_SIZE];

	if (!starts(&lines[0], name))
		return 0;
	n = deeper_lines(lines, n, starts);
	count_nics(p, lines, n, starts);
	return n;
}

/* What identifies a NIC is not read, so a recording does not keep it. */
static const char *keep_no_guids(const struct part *p, const struct text_line *l, struct arena *a)
{
	const char *s = line_text(l), *colon = strchr(s, ':');

	(void)p;
	if (!colon || !(strcasestr(s, "guid") || strcasestr(s, "lid:") || strcasestr(s, "gid:")))
		return l->text;
	return arena_strndup(a, l->text, (size_t)(colon + 1 - l->text));
}

/* ---- ibstat ---- */

/* "CA 'mlx5_0'" */
static bool starts_ibstat(const struct text_line *l, char name[NIC_NAME_SIZE])
{
	const char *s = line_text(l);

	if (!text_starts_with(s, "CA '"))
		return false;
	s += strlen("CA '");
	return s[strcspn(s, "'")] == '\'' && nic_name_read(s, strcspn(s, "'"), name);
}

size_t ibstat_match(struct part *p, const struct text_line *lines, size_t n)
{
	return match_nics(p, lines, n, starts_ibstat);
}

void ibstat_decode(const struct part *p, struct claims *c)
{
	static const struct nic_label labels[] = {
		{"CA type", put_type}, {"Firmware version", put_firmware},
		{"State", put_state},  {"Physical state", put_phys_state},
		{"Rate", put_rate},    {"Link layer", put_link_layer},
	};
	struct nic_lines n = {.part = p, .claims = c};

	for (size_t i = 0; i < p->n; i++) {
		const struct text_line *l = &p->lines[i];
		unsigned port;

		if (starts_ibstat(l, n.name))
			begin_nic(&n, l);
		else if (*n.name && sscanf(line_text(l), "Port %3u:", &port) == 1)
			begin_port(&n, l, port);
		else
			put_label(&n, l, labels, ARRAY_LEN(labels));
	}
	claim_extents(p, c, starts_ibstat);
}

const char *ibstat_keep(const struct part *p, const struct text_line *l, struct arena *a)
{
	return keep_no_guids(p, l, a);
}

/* ---- ibstatus ---- */

/* "Infiniband device 'mlx5_0' port 1 status:" */
static bool read_ibstatus(const struct text_line *l, char name[NIC_NAME_SIZE], unsigned *ret_port)
{
	static const char start[] = "Infiniband device '";
	const char *s = line_text(l);
	size_t n;

	if (!text_starts_with(s, start))
		return false;
	s += strlen(start);
	n = strcspn(s, "'");
	return s[n] == '\'' && sscanf(s + n, "' port %3u status", ret_port) == 1 &&
	       nic_name_read(s, n, name);
}

static bool starts_ibstatus(const struct text_line *l, char name[NIC_NAME_SIZE])
{
	unsigned port;

	return read_ibstatus(l, name, &port);
}

size_t ibstatus_match(struct part *p, const struct text_line *lines, size_t n)
{
	return match_nics(p, lines, n, starts_ibstatus);
}

void ibstatus_decode(const struct part *p, struct claims *c)
{
	static const struct nic_label labels[] = {
		{"state", put_state},
		{"phys state", put_phys_state},
		{"rate", put_rate},
		{"link_layer", put_link_layer},
	};
	struct nic_lines n = {.part = p, .claims = c};
	unsigned port;

	for (size_t i = 0; i < p->n; i++) {
		if (!read_ibstatus(&p->lines[i], n.name, &port)) {
			put_label(&n, &p->lines[i], labels, ARRAY_LEN(labels));
			continue;
		}
		begin_nic(&n, &p->lines[i]);
		begin_port(&n, &p->lines[i], port);
	}
	claim_extents(p, c, starts_ibstatus);
}

/* ---- ibv_devinfo ---- */

/* "hca_id:	mlx5_0" */
static bool starts_devinfo(const struct text_line *l, char name[NIC_NAME_SIZE])
{
	const char *value = line_value(l, "hca_id");

	return value && nic_name_read(value, strlen(value), name);
}

size_t ibv_devinfo_match(struct part *p, const struct text_line *lines, size_t n)
{
	return match_nics(p, lines, n, starts_devinfo);
}

static void put_part_id(struct nic_lines *n, const struct text_line *l, const char *value)
{
	char type[32];

	snprintf(type, sizeof(type), "MT%.8s", value);
	if (strspn(value, "0123456789") == strlen(value) && *value)
		put_type(n, l, type);
}

static void put_devinfo_line(struct nic_lines *n, const struct text_line *l)
{
	static const struct nic_label labels[] = {
		{"fw_ver", put_firmware},       {"vendor_part_id", put_part_id},
		{"board_id", put_board},        {"state", put_state},
		{"phys_state", put_phys_state}, {"active_width", put_width},
		{"active_speed", put_speed},    {"link_layer", put_link_layer},
	};
	const char *rest;
	unsigned index;
	char gid[40];

	if (read_devinfo_gid(line_text(l), &index, gid, &rest))
		put_gid(n, l, index, gid, strstr(rest, "RoCE v2") != NULL,
			strstr(rest, "RoCE v") != NULL);
	else
		put_label(n, l, labels, ARRAY_LEN(labels));
}

void ibv_devinfo_decode(const struct part *p, struct claims *c)
{
	struct nic_lines n = {.part = p, .claims = c};
	bool gids = false;

	for (size_t i = 0; i < p->n; i++) {
		const struct text_line *l = &p->lines[i];
		const char *port = line_value(l, "port");
		char name[NIC_NAME_SIZE];
		bool nic = starts_devinfo(l, name);

		/* What follows a port's GIDs shows that they were not cut off. */
		if ((nic || port) && gids)
			claim_all_gids(&n, l);
		gids = !nic && !port && (gids || text_starts_with(line_text(l), "GID["));
		if (nic) {
			text_copy(n.name, sizeof(n.name), name, strlen(name));
			begin_nic(&n, l);
		} else if (port && *n.name) {
			begin_port(&n, l, (unsigned)strtoul(port, NULL, 10));
		} else if (*n.name) {
			put_devinfo_line(&n, l);
		}
	}
	claim_extents(p, c, starts_devinfo);
}

/* GIDs in full, as recordings replace them. */
const char *ibv_devinfo_keep(const struct part *p, const struct text_line *l, struct arena *a)
{
	const char *rest;
	unsigned index;
	char gid[40];

	if (read_devinfo_gid(line_text(l), &index, gid, &rest))
		return arena_printf(a, "%*sGID[%3u]: %s%s", (int)line_indent(l), "", index, gid,
				    rest);
	return keep_no_guids(p, l, a);
}

/* ---- rdma link ---- */

/*
 * "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0"; before iproute2 5.0 "1/1:
 * mlx5_0/1: state ..."
 */
static bool read_rdma_link(const struct text_line *l, char name[NIC_NAME_SIZE], unsigned *ret_port)
{
	const char *s = line_text(l);
	int start = 0;
	size_t n;

	(void)sscanf(s, "%*4u/%*4u: %n", &start);
	if (!start && !text_starts_with(s, "link "))
		return false;
	s += start ? (size_t)start : strlen("link ");
	n = strcspn(s, "/ ");
	return s[n] == '/' && sscanf(s + n, "/%3u", ret_port) == 1 && strstr(s, " state ") &&
	       nic_name_read(s, n, name);
}

/* Lines of which each is about one port. */
static size_t match_lines(struct part *p, const struct text_line *lines, size_t n,
			  bool (*is_one)(const struct text_line *l))
{
	size_t end = 0;

	while (end < n && is_one(&lines[end]))
		end++;
	snprintf(p->about, sizeof(p->about), "%zu %s", end, text_plural(end, "port", "ports"));
	return end;
}

static bool is_rdma_link(const struct text_line *l)
{
	char name[NIC_NAME_SIZE];
	unsigned port;

	return read_rdma_link(l, name, &port);
}

size_t rdma_link_match(struct part *p, const struct text_line *lines, size_t n)
{
	return match_lines(p, lines, n, is_rdma_link);
}

void rdma_link_decode(const struct part *p, struct claims *c)
{
	struct nic_lines n = {.part = p, .claims = c};

	for (size_t i = 0; i < p->n; i++) {
		const struct text_line *l = &p->lines[i];
		const char *state = strstr(l->text, " state "), *phys;
		unsigned port;

		if (!read_rdma_link(l, n.name, &port))
			continue;
		begin_nic(&n, l);
		begin_port(&n, l, port);
		put_state(&n, l, state + strlen(" state "));
		phys = strstr(l->text, " physical_state ");
		if (phys)
			put_phys_state(&n, l, phys);
	}
}

/* ---- ibdev2netdev ---- */

/*
 * "mlx5_0 port 1 ==> ib0 (Up)"; with -v "0000:17:00.0 mlx5_0 (MT4129 - MCX75510AAS) ... fw
 * 28.39.1002 port 1 (ACTIVE) ==> ib0 (Up)". ret_address: "" without -v.
 */
static bool read_netdev(const struct text_line *l, char name[NIC_NAME_SIZE], unsigned *ret_port,
			char ret_address[PCI_ADDRESS_LEN])
{
	const char *s = line_text(l), *port = strstr(s, " port ");
	struct pci_address a;
	char word[NIC_NAME_SIZE];
	size_t n = strcspn(s, " ");

	*ret_address = '\0';
	if (!port || !strstr(port, " ==> ") || sscanf(port, " port %3u", ret_port) != 1)
		return false;
	if (n < sizeof(word) && memchr(s, ':', n)) {
		text_copy(word, sizeof(word), s, n);
		if (pci_address_parse(word, &a) < 0)
			return false;
		pci_address_format(a, ret_address);
		s += n + strspn(s + n, " ");
		n = strcspn(s, " ");
	}
	return nic_name_read(s, n, name);
}

static bool is_netdev(const struct text_line *l)
{
	char name[NIC_NAME_SIZE], address[PCI_ADDRESS_LEN];
	unsigned port;

	return read_netdev(l, name, &port, address);
}

size_t ibdev2netdev_match(struct part *p, const struct text_line *lines, size_t n)
{
	return match_lines(p, lines, n, is_netdev);
}

void ibdev2netdev_decode(const struct part *p, struct claims *c)
{
	struct nic_lines n = {.part = p, .claims = c};

	for (size_t i = 0; i < p->n; i++) {
		const struct text_line *l = &p->lines[i];
		char address[PCI_ADDRESS_LEN], name[PCI_ADDRESS_LEN];
		unsigned port;

		if (!read_netdev(l, n.name, &port, address))
			continue;
		begin_nic(&n, l);
		begin_port(&n, l, port);
		if (*address && claim_function(c, CLAIM_AT(p, l), address, name))
			claim(c, CLAIM_AT(p, l), name, "nic/%s/pci", n.name);
	}
}

/* ---- show_gids ---- */

static bool is_gids_header(const struct text_line *l)
{
	const char *s = line_text(l);

	return text_starts_with(s, "DEV") && strstr(s, "PORT") && strstr(s, "INDEX") &&
	       strstr(s, "GID");
}

static bool is_gids_end(const struct text_line *l)
{
	return text_starts_with(line_text(l), "n_gids_found=");
}

/* "mlx5_0  1  3  0000:...:ffff:0a01:0203  10.1.2.3  v2  eth0" */
static bool read_gid_row(const struct text_line *l, char name[NIC_NAME_SIZE], unsigned *ret_port,
			 unsigned *ret_index, char ret_gid[40], bool *ret_v2)
{
	const char *s = line_text(l);
	size_t n = strcspn(s, " ");
	int end = 0;

	if (!nic_name_read(s, n, name) ||
	    sscanf(s + n, " %3u %4u %n", ret_port, ret_index, &end) != 2 || !end)
		return false;
	s += n + (size_t)end;
	n = gid_length(s);
	*ret_v2 = strstr(s, " v2") != NULL;
	return (strstr(s, " v1") || *ret_v2) && full_gid(s, n, ret_gid);
}

static bool is_gid_row(const struct text_line *l)
{
	char name[NIC_NAME_SIZE], gid[40];
	unsigned port, index;
	bool v2;

	return read_gid_row(l, name, &port, &index, gid, &v2);
}

size_t show_gids_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 1, rows = 0;

	if (!is_gids_header(&lines[0]))
		return 0;
	for (; end < n &&
	       (is_gid_row(&lines[end]) || text_starts_with(line_text(&lines[end]), "---"));
	     end++)
		rows += is_gid_row(&lines[end]);
	p->cut = end == n || !is_gids_end(&lines[end]);
	p->ended = !p->cut;
	p->cut_at = p->cut ? lines[end - 1].number : 0;
	snprintf(p->about, sizeof(p->about), "%zu %s", rows, text_plural(rows, "GID", "GIDs"));
	return end + !p->cut;
}

void show_gids_decode(const struct part *p, struct claims *c)
{
	struct nic_lines n = {.part = p, .claims = c};

	for (size_t i = 0; i < p->n; i++) {
		const struct text_line *l = &p->lines[i];
		unsigned port, index;
		char gid[40];
		bool v2;

		if (!read_gid_row(l, n.name, &port, &index, gid, &v2))
			continue;
		begin_nic(&n, l);
		if (!begin_port(&n, l, port))
			continue;
		put_gid(&n, l, index, gid, v2, true);
		if (v2) /* of RoCE only; InfiniBand's are listed as v1 too */
			put_link_layer(&n, l, "Ethernet");
		if (!p->cut)
			claim_all_gids(&n, &p->lines[0]);
	}
}

/* ---- ofed_info ---- */

/* "MLNX_OFED_LINUX-24.10-0.7.0.0:", "OFED-internal-25.01-0.6.0:" */
static size_t ofed_length(const struct text_line *l)
{
	static const char *const starts[] = {"MLNX_OFED_LINUX-", "OFED-internal-"};
	const char *s = line_text(l);

	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		size_t n = strlen(starts[i]);

		if (text_starts_with(s, starts[i]) && isdigit((unsigned char)s[n]))
			return n + strspn(s + n, "0123456789.-");
	}
	return 0;
}

size_t ofed_info_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t length = ofed_length(&lines[0]);
	const char *rest = line_text(&lines[0]) + length;

	(void)n;
	if (!length || (*rest && !strchr(": ", *rest)))
		return 0;
	snprintf(p->about, sizeof(p->about), "%.*s", (int)length, line_text(&lines[0]));
	return 1;
}

void ofed_info_decode(const struct part *p, struct claims *c)
{
	char release[NIC_NAME_SIZE];

	text_copy(release, sizeof(release), line_text(&p->lines[0]), ofed_length(&p->lines[0]));
	claim(c, CLAIM_AT(p, &p->lines[0]), release, "etc/mlnx-release");
}
