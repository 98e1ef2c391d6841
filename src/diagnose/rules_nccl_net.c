/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about the settings by which NCCL uses the network: lists of devices, RoCE addresses, peer
 * memory.
 */
#include "base/network.h"
#include "diagnose/rules_nccl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists of devices ---- */

/* The list behind its marks; [^][=]. */
static const char *list_body(const char *value, bool *ret_exclude, bool *ret_exact)
{
	*ret_exclude = *value == '^';
	value += *ret_exclude;
	*ret_exact = *value == '=';
	return value + *ret_exact;
}

#define ANY_PORT 0

/* "mlx5_0" or "mlx5_0:1"; without "=" in front of the list, "mlx5_1" is mlx5_10 too. */
static bool entry_has(const char *entry, size_t n, bool exact, const char *device, unsigned port)
{
	const char *colon = memchr(entry, ':', n);
	size_t len = colon ? (size_t)(colon - entry) : n;

	if (!n || strncmp(entry, device, len) != 0 || (exact && device[len]))
		return false;
	return !colon || port == ANY_PORT || strtoul(colon + 1, NULL, 10) == port;
}

static bool list_has(const char *body, bool exact, const char *device, unsigned port)
{
	for (const char *p = body; *p;) {
		size_t n = strcspn(p, ",");

		if (entry_has(p, n, exact, device, port))
			return true;
		p += n + (p[n] == ',');
	}
	return false;
}

enum nccl_use nccl_port_use(const struct rule_run *run, const struct rdma_device *d, unsigned port)
{
	const struct setting *s = machine_setting(run->m, "NCCL_IB_HCA");
	bool exclude, exact, listed;
	const char *body;

	if (setting_number(run->m, "NCCL_IB_DISABLE", 0) != 0)
		return NCCL_LEAVES;
	body = list_body(s ? s->value : "", &exclude, &exact);
	/* A list without a name holds each device: "" leaves out none and "^" all (matchIfList). */
	if (!body[strspn(body, ",")])
		return exclude ? NCCL_LEAVES : NCCL_MAY_USE;
	listed = list_has(body, exact, d->name, port);
	if (exclude)
		return listed ? NCCL_LEAVES : NCCL_MAY_USE;
	return listed ? NCCL_NAMES : NCCL_LEAVES;
}

/* ---- RoCE addresses ---- */

static const struct rdma_gid *find_gid(const struct rdma_port *p, int64_t index)
{
	for (size_t i = 0; i < p->gid_n; i++)
		if (p->gids[i].index == index)
			return &p->gids[i];
	return NULL;
}

#define GID_AUTOMATIC NCCL_RELEASE(2, 21, 5)

/* From 2.21 on NCCL looks for an address of one family, IPv4 unless told, and stays at index 0 where
 * a port has none (ncclIbGetGidIndex). */
static bool wants_ipv6(const struct machine *m)
{
	const struct setting *s = machine_setting(m, "NCCL_IB_ADDR_FAMILY");

	return s && strcmp(s->value, "AF_INET6") == 0;
}

/* The index that NCCL uses at a port; -1: it finds a good one by itself. */
static int64_t gid_index(struct rule_run *run, const struct rdma_port *p)
{
	int64_t index = setting_number(run->m, "NCCL_IB_GID_INDEX", -1);
	const struct rdma_gid *right = rdma_routed_gid(p);
	int version = nccl_version(run);

	if (index >= 0)
		return index;
	if (version && version < GID_AUTOMATIC)
		return 0;
	return right && rdma_gid_scope(right) == GID_GLOBAL && !wants_ipv6(run->m) ? 0 : -1;
}

/* What is wrong with this index at this port; NULL: nothing, or unknown. */
static const char *gid_fault(const struct rdma_port *p, int64_t index)
{
	const struct rdma_gid *gid = find_gid(p, index);

	if (!port_is_roce(p))
		return NULL;
	if (!gid)
		return fact_is(p->gids_listed, 1) ? "is empty" : NULL;
	if (fact_is_not(gid->type, GID_ROCE_V2))
		return "is a v1 GID, which is not routed";
	return fact_known(gid->type) && rdma_gid_scope(gid) == GID_LINK_LOCAL && rdma_routed_gid(p)
		       ? "is a link-local v2 GID, which is not routed"
		       : NULL;
}

/* The index that is right at every RoCE port that NCCL uses; -1: they differ, or one has none. */
static int64_t right_index(struct rule_run *run)
{
	int64_t index = -1;

	FOR_EACH_RDMA (d, run)
		for (size_t i = 0; i < d->port_n; i++) {
			const struct rdma_port *p = &d->ports[i];
			const struct rdma_gid *right = rdma_routed_gid(p);

			if (!port_is_roce(p) || nccl_port_use(run, d, p->number) == NCCL_LEAVES)
				continue;
			if (!right || (index >= 0 && index != right->index))
				return -1;
			index = right->index;
		}
	return index;
}

static void gid_remedy(struct rule_run *run, struct finding *f, const struct setting *s,
		       const struct rdma_gid *right)
{
	const char *unset = s ? "unset NCCL_IB_GID_INDEX" : "leave NCCL_IB_GID_INDEX unset";
	int version = nccl_version(run);
	int64_t index = right_index(run);

	if (rdma_gid_scope(right) == GID_GLOBAL)
		unset = run_text(run, "%s and set NCCL_IB_ADDR_FAMILY=AF_INET6", unset);
	if (rdma_gid_scope(right) == GID_GLOBAL && (!version || version >= GID_AUTOMATIC))
		finding_sets(run, f, "NCCL_IB_ADDR_FAMILY", "AF_INET6");
	else if (version && version < GID_AUTOMATIC && index >= 0)
		finding_sets(run, f, "NCCL_IB_GID_INDEX", run_text(run, "%" PRId64, index));
	if (version >= GID_AUTOMATIC)
		finding_remedy(run, f, "%s: %s then selects index %u by itself", unset,
			       nccl_text(run, version), right->index);
	else if (index >= 0)
		finding_remedy(run, f,
			       "set NCCL_IB_GID_INDEX=%" PRId64 "; with NCCL 2.21 or newer %s",
			       index, unset);
	else
		finding_remedy(
			run, f,
			"with NCCL 2.21 or newer %s: no index is right for every port, here it is %u",
			unset, right->index);
}

/* Why it is this index where nobody set it. */
static const char *index_reason(struct rule_run *run, const struct setting *s)
{
	int version = nccl_version(run);

	if (s && setting_number(run->m, s->name, -1) >= 0)
		return "";
	return version && version < GID_AUTOMATIC ? " (automatic from 2.21 on)"
						  : " (it looks for IPv4 addresses)";
}

static void report_gid(struct rule_run *run, const struct setting *s, const struct rdma_device *d,
		       const struct rdma_port *p)
{
	int64_t index = gid_index(run, p);
	const char *fault = index < 0 ? NULL : gid_fault(p, index);
	const struct rdma_gid *right = rdma_routed_gid(p);
	struct finding *f;

	if (!fault)
		return;
	f = finding_add(run, CONFIDENCE_LIKELY,
			s ? subject_setting(run, s) : SUBJECT(SETTING, "NCCL_IB_GID_INDEX"),
			"at %s port %u NCCL uses GID index %" PRId64 "%s, which %s%s", d->name,
			p->number, index, index_reason(run, s), fault,
			right ? run_text(run, "; the routed v2 GID is index %u", right->index)
			      : "");
	f->pci = d->pci;
	if (s)
		show_setting(run, f, s);
	if (right) {
		finding_evidence(run, f, FACT_WHY(right->gid),
				 run_text(run, "GID %u of %s port %u", right->index, d->name,
					  p->number),
				 "%s, RoCE v2", right->gid.value);
		gid_remedy(run, f, s, right);
	}
	evidence_nccl(run, f);
}

static enum verdict probe_gid_index(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_IB_GID_INDEX");
	int version = nccl_version(run);
	bool roce = false;
	struct finding *f;

	FOR_EACH_RDMA (d, run)
		for (size_t i = 0; i < d->port_n; i++) {
			if (!port_is_roce(&d->ports[i]))
				continue;
			roce = true;
			if (nccl_port_use(run, d, d->ports[i].number) != NCCL_LEAVES)
				report_gid(run, s, d, &d->ports[i]);
		}
	if (!roce)
		return VERDICT_NA;
	if (run->found || !s || setting_number(run->m, s->name, -1) < 0 ||
	    (version && version < GID_AUTOMATIC))
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_POSSIBLE, subject_setting(run, s),
			"NCCL_IB_GID_INDEX=%s is a fixed setting; NCCL from 2.21 on selects the v2 "
			"GID of each port by itself, and an index can change with the addresses",
			s->value);
	f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* ---- InfiniBand switched off ---- */

static bool active_port_of(struct rule_run *run, const char *link_layer)
{
	FOR_EACH_RDMA (d, run)
		for (size_t i = 0; i < d->port_n; i++)
			if (fact_str_is(d->ports[i].state, "ACTIVE") &&
			    fact_str_is(d->ports[i].link_layer, link_layer))
				return true;
	return false;
}

static enum verdict probe_ib_disabled(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_IB_DISABLE");
	struct finding *f;

	if (setting_number(run->m, "NCCL_IB_DISABLE", 0) == 0)
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			"NCCL does not use the machine's RDMA devices and communicates with other "
			"machines over TCP sockets");
	if (!active_port_of(run, "InfiniBand"))
		f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* ---- what the lists say ---- */

static enum verdict probe_list_marks(struct rule_run *run)
{
	FOR_EACH_SETTING(s, run)
	{
		bool exclude, exact;
		const char *body;
		struct finding *f;

		if (!setting_is(s, VARIABLE_LIST))
			continue;
		body = list_body(s->value, &exclude, &exact);
		if (!strpbrk(body, "^="))
			continue;
		f = finding_add(
			run, CONFIDENCE_LIKELY, subject_setting(run, s),
			"%s=%s: the marks ^ and = are recognized only once, before the whole list; "
			"elsewhere they are part of a name, and no device has such a name",
			s->name, s->value);
		show_setting(run, f, s);
		finding_remedy(run, f, "use the marks once: %s=%s%sNAME,NAME", s->name,
			       exclude ? "^" : "", exact || strchr(body, '=') ? "=" : "");
	}
	return VERDICT_OK;
}

/* A device whose ports are unknown is matched by its name alone. */
static bool leaves_device(const struct rule_run *run, const struct rdma_device *d)
{
	for (size_t i = 0; i < d->port_n; i++)
		if (nccl_port_use(run, d, d->ports[i].number) != NCCL_LEAVES)
			return false;
	return d->port_n || nccl_port_use(run, d, ANY_PORT) == NCCL_LEAVES;
}

/* "mlx5_0:1", as the list would name it. */
static const char *list_ports(struct rule_run *run, const char *names, const struct rdma_device *d)
{
	for (size_t i = 0; i < d->port_n; i++)
		names = run_list(run, names,
				 run_text(run, "%s:%u", d->name, (unsigned)d->ports[i].number));
	return d->port_n ? names : run_list(run, names, d->name);
}

static enum verdict probe_ib_hca(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_IB_HCA");
	const char *names = NULL;
	struct finding *f;

	/* Where NCCL_IB_DISABLE leaves them out, nccl-ib-disabled says so. */
	if (!s || setting_number(run->m, "NCCL_IB_DISABLE", 0) != 0)
		return VERDICT_OK;
	FOR_EACH_RDMA (d, run)
		if (!leaves_device(run, d))
			return VERDICT_OK;
	if (fact_unknown(run->m->rdma_listed))
		return rule_unknown(run, FACT_WHY(run->m->rdma_listed), "RDMA devices");
	FOR_EACH_RDMA (d, run)
		names = list_ports(run, names, d);
	f = finding_add(run, CONFIDENCE_LIKELY, subject_setting(run, s),
			"NCCL_IB_HCA=%s excludes every RDMA port of this machine (%s): NCCL falls "
			"back to TCP sockets",
			s->value, names);
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* ---- distance ---- */

/* Pairs of a NIC and a GPU that the default level would leave to GPUDirect RDMA. */
static bool level_forbids(const struct path *p)
{
	const struct chain_link *l = &p->chain[CHAIN_NCCL];

	return p->verdict != PAIR_BLOCKED && l->reason == REASON_NCCL_LEVEL &&
	       l->value <= NCCL_PATH_PXB;
}

static enum verdict probe_gdr_level(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_NET_GDR_LEVEL");
	const struct topology *t = run->t;
	size_t forbidden = 0, pairs = 0;
	struct finding *f;

	if (!s || t->endpoint_n == t->gpu_n)
		return VERDICT_OK;
	for (size_t nic = t->gpu_n; nic < t->endpoint_n; nic++)
		for (size_t g = 0; g < t->gpu_n; g++, pairs++)
			forbidden += level_forbids(topology_path(t, nic, g));
	if (!forbidden)
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			"NCCL_NET_GDR_LEVEL=%s disables GPUDirect RDMA on %zu of %zu GPU-NIC pairs "
			"for which NCCL would use it by default",
			s->value, forbidden, pairs);
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* ---- peer memory ---- */

/* A log shows it, where nobody could see the list of clients. */
static bool gdr_seen_off(const struct rule_run *run)
{
	for (size_t i = 0; i < run->m->observed_n; i++)
		if (run->m->observed[i].kind == OBSERVED_NCCL_GDR_OFF)
			return true;
	return false;
}

/* NCCL knows dma-buf since 2.13. */
static enum verdict probe_old_peermem(struct rule_run *run)
{
	const struct peermem *p = &run->m->peermem;
	int version = nccl_version(run);
	bool dma_buf = version >= NCCL_RELEASE(2, 13, 0) && gdr_by_dma_buf(run);
	char number[32];
	struct finding *f;
	/* NCCL's line about its HCAs shows as much as a list of devices. */
	enum verdict v =
		gdr_seen_off(run) ? VERDICT_OK : rule_needs_met(run, NEEDS_GPU | NEEDS_RDMA);

	if (v != VERDICT_OK)
		return v;
	if (!version)
		return rule_unknown(run, FACT_WHY(run->m->nccl.version), "NCCL's version");
	if (version >= NCCL_RELEASE(2, 23, 4) || fact_is_not(p->loaded, 1) ||
	    fact_absent(p->loaded) || fact_is(p->listed, 1) || fact_absent(p->listed))
		return VERDICT_OK;
	if (!fact_known(p->loaded))
		return rule_unknown(run, FACT_WHY(p->loaded), "nvidia-peermem");
	if (fact_unknown(p->listed) && !gdr_seen_off(run))
		return rule_unknown(run, FACT_WHY(p->listed), "the list of peer-memory clients");
	f = finding_add(
		run, CONFIDENCE_LIKELY, SUBJECT(NCCL, "NCCL"),
		ABOUT " %s looks only for nv_mem below /sys/kernel/mm/memory_peers, does not find "
		      "nvidia-peermem there and uses %s",
		nccl_version_format(version, number, sizeof(number)),
		dma_buf ? "dma-buf instead" : "no GPUDirect RDMA");
	if (dma_buf)
		f->severity = SEVERITY_INFO;
	evidence_yes_no(run, f, "nvidia_peermem loaded", p->loaded);
	evidence_yes_no(run, f, "listed in memory_peers", p->listed);
	evidence_nccl(run, f);
	return VERDICT_OK;
}

/* ---- rails: networks that join only equal-numbered NICs ---- */

/* Of two GIDs as text; what is not an address shows as little as one of another family. */
static enum network_relation compare(const char *a, const char *b)
{
	uint8_t x[NETWORK_ADDRESS], y[NETWORK_ADDRESS];

	return network_parse(a, strlen(a), x) && network_parse(b, strlen(b), y)
		       ? network_compare(x, y)
		       : NETWORK_OTHER_FAMILY;
}

static bool may_be_apart(enum network_relation r)
{
	return r == NETWORK_APART || r == NETWORK_MAYBE_APART;
}

/* The address whose network tells which others a port reaches without a route; NULL: unknown. */
static const struct rdma_gid *rail_gid(const struct rdma_port *p)
{
	if (port_is_roce(p))
		return rdma_routed_gid(p);
	return fact_str_is(p->link_layer, "InfiniBand") ? find_gid(p, 0) : NULL;
}

/* A port that NCCL uses: the i-th; NULL: there are no more. */
static const struct rdma_port *used_port(const struct rule_run *run, size_t i,
					 const struct rdma_device **ret)
{
	FOR_EACH_RDMA (d, run)
		for (size_t k = 0; k < d->port_n; k++) {
			if (nccl_port_use(run, d, d->ports[k].number) == NCCL_LEAVES ||
			    (fact_known(d->ports[k].state) &&
			     !fact_str_is(d->ports[k].state, "ACTIVE")) ||
			    i--)
				continue;
			*ret = d;
			return &d->ports[k];
		}
	return NULL;
}

/*
 * Nobody answered, as where no route leads: ibv_modify_qp found no neighbour, or sends were
 * repeated in vain. What the kernel refuses at once (22, Invalid argument) has another cause.
 */
static bool is_unanswered(const char *what)
{
	static const char *const marks[] = {"Connection timed out", "No route to host",
					    "Network is unreachable", "status=12 ", "RETRY_EXC"};

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (strstr(what, marks[i]))
			return true;
	return false;
}

/* It failed between two networks, or may have. */
static bool crosses(const struct observed *o)
{
	return o->kind == OBSERVED_RUN_FAILURE && o->failure.own_gid && o->failure.peer_gid &&
	       is_unanswered(o->failure.what) &&
	       may_be_apart(compare(o->failure.own_gid, o->failure.peer_gid));
}

/*
 * The peer's network is that of another NIC of this machine, or of the near end of another
 * connection that failed: so both are rails of the same hosts. Where each host has networks of its
 * own, it is not.
 */
static bool is_of_other_rail(struct rule_run *run, const struct observed *o)
{
	const struct rdma_device *d;
	const struct rdma_port *p;

	for (size_t i = 0; (p = used_port(run, i, &d)); i++)
		if (rail_gid(p) &&
		    compare(rail_gid(p)->gid.value, o->failure.peer_gid) == NETWORK_SAME)
			return true;
	FOR_EACH_IN(struct observed, x, run->m->observed, run->m->observed_n)
	{
		if (crosses(x) && compare(x->failure.own_gid, o->failure.peer_gid) == NETWORK_SAME)
			return true;
	}
	return false;
}

#define ALL_HOSTS "on all hosts; or join the networks by routes, also for RDMA"

/* What keeps NCCL from crossing; it is of no use where it is set. */
static void rail_remedy(struct rule_run *run, struct finding *f)
{
	if (setting_number(run->m, "NCCL_PXN_DISABLE", 0) != 0) {
		finding_remedy(run, f,
			       "unset NCCL_PXN_DISABLE and set NCCL_CROSS_NIC=0 " ALL_HOSTS);
		finding_sets(run, f, "NCCL_CROSS_NIC", "0");
	} else if (setting_number(run->m, "NCCL_CROSS_NIC", 2) == 0) {
		finding_remedy(
			run, f,
			"use communicators that have the same GPUs on each host, as NCCL_CROSS_NIC=0 "
			"avoids other connections only where it can; or join the networks by routes");
	} else {
		finding_sets(run, f, "NCCL_CROSS_NIC", "0");
	}
}

static void show_port(struct rule_run *run, struct finding *f, const struct rdma_device *d,
		      const struct rdma_port *p)
{
	const struct rdma_gid *gid = rail_gid(p);

	finding_evidence(run, f, FACT_WHY(gid->gid),
			 run_text(run, "GID %u of %s port %u", gid->index, d->name, p->number),
			 "%s", gid->gid.value);
}

#define MASKED " (unless their mask is shorter than /24)"

static void report_crossed(struct rule_run *run, const struct observed *o)
{
	bool rails = is_of_other_rail(run, o);
	bool apart = compare(o->failure.own_gid, o->failure.peer_gid) == NETWORK_APART;
	struct finding *f =
		finding_add(run, rails ? CONFIDENCE_LIKELY : CONFIDENCE_POSSIBLE,
			    SUBJECT(NCCL, "NCCL"),
			    ABOUT
			    " connected NICs of two networks%s, %s and %s, and nobody answered: %s",
			    apart ? "" : MASKED, o->failure.own_gid, o->failure.peer_gid,
			    rails ? "the networks seem to join only NICs of the same rail"
				  : "no route for RDMA may join them");

	evidence_text(run, f, o->from, o->failure.what);
	rail_remedy(run, f);
	evidence_nccl(run, f);
}

/* Settings with which NCCL connects NICs of different rails. */
static const struct crossing {
	const char *name;
	int64_t value, otherwise;
	const char *what;
	enum severity severity;
} crossings[] = {
	{"NCCL_CROSS_NIC", 1, 2, "rings leave a host by another NIC than they entered by",
	 SEVERITY_WARNING},
	{"NCCL_PXN_DISABLE", 1, 0,
	 "a GPU whose NIC is on another rail sends there directly, not through a GPU of that rail",
	 SEVERITY_INFO},
};

/* Whether it is set; NCCL's defaults stay on a rail where they can. */
static bool is_set(const struct rule_run *run, const struct crossing *c)
{
	return setting_number(run->m, c->name, c->otherwise) == c->value;
}

static void report_crossing(struct rule_run *run, const struct crossing *c,
			    enum network_relation relation)
{
	const struct setting *s = machine_setting(run->m, c->name);
	const struct rdma_device *d;
	const struct rdma_port *p;
	struct finding *f;

	if (!s || !is_set(run, c))
		return;
	f = finding_add(run, CONFIDENCE_POSSIBLE, subject_setting(run, s),
			"%s=%s: %s, and each NIC is in a network of its own%s: where no route "
			"joins these, connections fail",
			s->name, s->value, c->what, relation == NETWORK_APART ? "" : MASKED);
	f->severity = c->severity;
	finding_remedy(run, f,
		       "unset %s, or see with onehop bench rdma that each NIC reaches each NIC of "
		       "other hosts",
		       c->name);
	show_setting(run, f, s);
	for (size_t i = 0; (p = used_port(run, i, &d)); i++)
		show_port(run, f, d, p);
}

/* The least apart that two ports are that are used; unknown: an address is. */
static enum verdict judge_apart(struct rule_run *run, enum network_relation *ret)
{
	const struct rdma_device *a, *b;
	const struct rdma_port *p, *q;
	size_t i;

	*ret = NETWORK_APART;
	for (i = 0; (p = used_port(run, i, &a)); i++) {
		if (!rail_gid(p))
			return rule_unknown(run, FACT_WHY(p->gids_listed),
					    "the network of %s port %u", a->name, p->number);
		for (size_t k = 0; k < i && (q = used_port(run, k, &b)); k++) {
			enum network_relation r =
				compare(rail_gid(p)->gid.value, rail_gid(q)->gid.value);

			if (!may_be_apart(r))
				*ret = NETWORK_SAME;
			else if (r < *ret)
				*ret = r;
		}
	}
	if (i < 2)
		*ret = NETWORK_SAME;
	return VERDICT_OK;
}

static enum verdict probe_rails(struct rule_run *run)
{
	enum network_relation apart = NETWORK_SAME;
	enum verdict v;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (!run->found && crosses(o))
			report_crossed(run, o);
	}
	if (run->found)
		return VERDICT_BAD;
	v = rule_needs_met(run, NEEDS_RDMA | NEEDS_SETTINGS);
	if (v == VERDICT_OK && !is_set(run, &crossings[0]) && !is_set(run, &crossings[1]))
		return VERDICT_OK;
	if (v == VERDICT_OK)
		v = judge_apart(run, &apart);
	if (v != VERDICT_OK)
		return v;
	for (size_t i = 0; may_be_apart(apart) && i < sizeof(crossings) / sizeof(*crossings); i++)
		report_crossing(run, &crossings[i], apart);
	return VERDICT_OK;
}

/* ---- the table ---- */

const struct rule rules_nccl_net[] = {
	{
		.id = "nccl-gid-index",
		.title = "NCCL uses a routed v2 GID on every RoCE port",
		.why = "RoCE v2 is routed by the address of the GID. With a v1, link-local or empty "
		       "entry, connections fail with completion status 12 (retries exceeded).",
		.remedy = "with NCCL 2.21 or newer unset NCCL_IB_GID_INDEX; before, set it to the "
			  "index of the v2 GID of the IPv4 address (show_gids)",
		.reference = "NVIDIA/nccl#426, src/transport/net_ib (ncclIbGetGidIndex); " NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_RDMA,
		.probe = probe_gid_index,
	},
	{
		.id = "nccl-ib-disabled",
		.title = "NCCL may use the RDMA devices",
		.why = "Sockets are several times slower and do not support GPUDirect RDMA.",
		.remedy = "unset NCCL_IB_DISABLE",
		.reference = NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_RDMA,
		.probe = probe_ib_disabled,
	},
	{
		.id = "nccl-list-marks",
		.title = "The marks in NCCL's device lists come first",
		.why = "The syntax is [^][=]name,name: one ^ excludes and one = requires whole "
		       "names, for the whole list.",
		.remedy = "use the marks once, before the first name",
		.reference = "NVIDIA/nccl-tests#150; " NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_list_marks,
	},
	{
		.id = "nccl-ib-hca",
		.title = "NCCL_IB_HCA allows at least one RDMA port",
		.why = "Without an allowed port NCCL has no RDMA device and uses sockets.",
		.remedy = "name devices from `ls /sys/class/infiniband`, exclude fewer, or unset "
			  "NCCL_IB_HCA",
		.reference = NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_RDMA,
		.probe = probe_ib_hca,
	},
	{
		.id = "nccl-gdr-level",
		.title = "NCCL_NET_GDR_LEVEL allows GPUDirect RDMA for nearby GPUs and NICs",
		.why = "Beyond this distance NCCL copies through host memory. The default limit is "
		       "PCIe switches (PXB); LOC allows no pair.",
		.remedy = "unset NCCL_NET_GDR_LEVEL, or set it to the distance of the pairs",
		.reference = "NVIDIA/nccl src/graph/paths.cc (ncclTopoCheckGdr); " NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_GPU | NEEDS_RDMA,
		.probe = probe_gdr_level,
	},
	{
		.id = "nccl-old-peermem",
		.title = "NCCL is new enough to detect nvidia-peermem",
		.why = "Up to 2.22.3 NCCL checks only the sysfs entry of the old nv_peer_mem; one "
		       "run dropped from 180 to 10 GB/s.",
		.remedy = "use NCCL 2.23.4 or newer",
		.reference = "NVIDIA/nccl#1676",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.probe = probe_old_peermem,
	},
	{
		.id = "nccl-rails",
		.title = "No setting or connection of NCCL crosses rails that may be separate",
		.why = "NCCL does not detect which NICs of two hosts reach each other. In a network "
		       "that joins only equal-numbered NICs (rails), a connection between two "
		       "others times out in ibv_modify_qp, or ends with completion status 12.",
		.remedy = "set NCCL_CROSS_NIC=0 " ALL_HOSTS,
		.reference = "NVIDIA/nccl#2013, NVIDIA/nccl#2193, ROCm/rccl#1303; " NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.probe = probe_rails,
	},
	{0},
};
