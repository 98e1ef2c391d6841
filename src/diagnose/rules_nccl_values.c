/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about values that guides hand on: what repeats a default, and what costs more than it
 * gives.
 */
#include "diagnose/rules_nccl.h"

#include "base/text.h"
#include "support/nic.h"
#include "topology/nearest.h"
#include "topology/preflight.h"

#include <inttypes.h>
#include <string.h>

/* ---- defaults ---- */

/* NCCL's automatic choice for every GPU here is the same. */
static bool is_automatic(struct rule_run *run, const struct setting *s)
{
	if (strcmp(s->name, "NCCL_NET_GDR_READ") != 0 || strcmp(s->value, "1") != 0 ||
	    !run->m->gpu_n)
		return false;
	FOR_EACH_GPU (g, run)
		if (!fact_is(nccl_reads_card(g), 1))
			return false;
	return true;
}

bool setting_is_default(const struct setting *s, int version)
{
	const struct variable *v = variable_find(s->name);
	const char *normal = v ? variable_normal(v, version) : NULL;
	int64_t value, other;

	if (!normal)
		return false;
	if (v->kind == VARIABLE_LEVEL)
		return nccl_level_parse(s->value) == nccl_level_parse(normal);
	if (v->kind == VARIABLE_INTEGER)
		return text_to_i64(s->value, &value) == 0 && text_to_i64(normal, &other) == 0 &&
		       value == other;
	return strcmp(s->value, normal) == 0;
}

static enum verdict probe_default(struct rule_run *run)
{
	FOR_EACH_SETTING(s, run)
	{
		struct finding *f;

		if (!setting_is_default(s, nccl_version(run)) && !is_automatic(run, s))
			continue;
		f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
				"%s=%s changes nothing: it is NCCL's default", s->name, s->value);
		show_setting(run, f, s);
		finding_remedy(run, f, "unset %s", s->name);
	}
	return VERDICT_OK;
}

/* ---- GPUDirect RDMA ---- */

struct nic_pairs {
	size_t all, beyond;      /* farther than NCCL's default lets a NIC use GPU memory */
	enum nccl_path farthest; /* of these */
};

/* Pairs of a NIC and a GPU that a level adds to those of the default. */
static struct nic_pairs pairs_up_to(const struct rule_run *run, enum nccl_path level)
{
	const struct topology *t = run->t;
	struct nic_pairs n = {.farthest = NCCL_PATH_PXB};

	for (size_t nic = t->gpu_n; nic < t->endpoint_n; nic++) {
		for (size_t g = 0; g < t->gpu_n; g++) {
			const struct path *p = topology_path(t, nic, g);
			enum nccl_path at = nccl_path_of(p);

			n.all++;
			if (at <= NCCL_PATH_PXB || at > level || at == NCCL_PATH_N ||
			    p->verdict == PAIR_BLOCKED)
				continue;
			n.beyond++;
			n.farthest = at > n.farthest ? at : n.farthest;
		}
	}
	return n;
}

static enum verdict probe_gdr_far(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_NET_GDR_LEVEL");
	int level = s ? nccl_level_parse(s->value) : -1;
	struct nic_pairs n;
	struct finding *f;

	if (level <= NCCL_PATH_PXB)
		return VERDICT_OK;
	n = pairs_up_to(run, (enum nccl_path)level);
	if (n.beyond)
		f = finding_add(
			run, CONFIDENCE_POSSIBLE, subject_setting(run, s),
			"NCCL_NET_GDR_LEVEL=%s (%s) makes NCCL use GPUDirect RDMA on %zu of %zu "
			"GPU-NIC pairs that are up to %s apart, for which it uses host memory by "
			"default",
			s->value, nccl_path_word((enum nccl_path)level), n.beyond, n.all,
			nccl_path_word(n.farthest));
	else
		f = finding_add(
			run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			"NCCL_NET_GDR_LEVEL=%s (%s) has no effect here: no GPU and NIC beyond PXB, "
			"NCCL's default, can use GPUDirect RDMA",
			s->value, nccl_path_word((enum nccl_path)level));
	if (!n.beyond)
		f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* 0 on cards whose memory NICs read by default. */
static enum verdict probe_gdr_read(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_NET_GDR_READ");
	size_t cards = 0;
	struct finding *f;

	if (!s || setting_number(run->m, s->name, -2) != 0)
		return VERDICT_OK;
	FOR_EACH_GPU (g, run)
		cards += fact_is(nccl_reads_card(g), 1) && !fact_is(card_is_geforce(g), 1);
	if (!cards)
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			"NCCL_NET_GDR_READ=0: data that %zu %s is copied through host memory first",
			cards, text_plural(cards, "GPU sends", "GPUs send"));
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* dma-buf switched off, and nothing else for some pairs. */
static enum verdict probe_dma_buf_disabled(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_DMABUF_ENABLE");
	const struct topology *t = run->t;
	size_t lost = 0;
	struct finding *f;

	if (!s || setting_number(run->m, s->name, 1) != 0)
		return VERDICT_OK;
	for (size_t g = 0; g < t->gpu_n; g++)
		for (size_t nic = t->gpu_n; nic < t->endpoint_n; nic++) {
			struct preflight p = topology_preflight(t, g, nic);

			lost += p.dma_buf.state == CHAIN_OK && p.peermem.state == CHAIN_BAD;
		}
	if (!lost)
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_CERTAIN, subject_setting(run, s),
		"NCCL_DMABUF_ENABLE=%s disables GPUDirect RDMA on %zu of %zu GPU-NIC pairs, "
		"which nvidia-peermem does not serve",
		s->value, lost, t->gpu_n * (t->endpoint_n - t->gpu_n));
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* ---- lists of NICs ---- */

static bool nccl_may_use(const struct rule_run *run, const struct rdma_device *d)
{
	for (size_t i = 0; i < d->port_n; i++)
		if (fact_str_is(d->ports[i].state, "ACTIVE") &&
		    nccl_port_use(run, d, d->ports[i].number) != NCCL_LEAVES)
			return true;
	return false;
}

/*
 * The nearest NICs of a GPU that the list leaves out, by name; NULL: none. *ret_class: what it is
 * left with.
 */
static const char *left_out(struct rule_run *run, size_t gpu, enum path_class *ret_class)
{
	const struct topology *t = run->t;
	enum path_class near = topology_nearest_class(t, gpu, true);
	const char *names = NULL;

	*ret_class = PATH_UNKNOWN;
	for (size_t nic = t->gpu_n; nic < t->endpoint_n; nic++) {
		const struct rdma_device *d = &run->m->rdma[t->endpoints[nic].index];
		enum path_class class = topology_path(t, gpu, nic)->class;

		if (nccl_may_use(run, d))
			*ret_class = class < *ret_class ? class : *ret_class;
		else if (topology_is_nearest(t, gpu, nic, near, true))
			names = run_list(run, names, d->name);
	}
	return names;
}

static enum verdict probe_near_left(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_IB_HCA");
	const char *gpus = NULL, *names = NULL;
	enum path_class near = PATH_UNKNOWN, left = PATH_UNKNOWN;
	struct finding *f;
	size_t n = 0;

	if (!s || setting_number(run->m, "NCCL_IB_DISABLE", 0) != 0)
		return VERDICT_OK;
	for (size_t g = 0; g < run->t->gpu_n; g++) {
		enum path_class class, nearest = topology_nearest_class(run->t, g, true);
		const char *out = left_out(run, g, &class);

		/* With nothing left, nccl-ib-hca says so. */
		if (!out || class == PATH_UNKNOWN)
			continue;
		if (!n++ || class > left) {
			names = out;
			near = nearest;
			left = class;
		}
		gpus = run_list(run, gpus, run_text(run, "GPU%zu", g));
	}
	if (!n)
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_POSSIBLE, subject_setting(run, s),
		left > near
			? "NCCL_IB_HCA=%s excludes %s, the nearest NICs of %s (%s), which use more "
			  "distant NICs (%s)"
			: "NCCL_IB_HCA=%s excludes %s, which %s would also use (%s)",
		s->value, names, gpu_list_text(run, gpus, n), path_class_word(near),
		path_class_word(left));
	if (left <= near)
		f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* A device that an entry of the list names by the beginning of its name only. */
static const struct rdma_device *also_meant(struct rule_run *run, const char *entry, size_t n)
{
	const struct rdma_device *other = NULL;
	bool exact = false;

	FOR_EACH_RDMA (d, run) {
		if (strncmp(d->name, entry, n) != 0)
			continue;
		if (d->name[n])
			other = d;
		else
			exact = true;
	}
	return exact ? other : NULL;
}

static enum verdict probe_prefix(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_IB_HCA");
	const char *p = s ? s->value : "";

	p += *p == '^';
	if (*p == '=')
		return VERDICT_OK;
	for (size_t n; *p && !run->found; p += n + (p[n] == ',')) {
		const struct rdma_device *other;
		struct finding *f;

		n = strcspn(p, ",");
		other = also_meant(run, p, strcspn(p, ":,"));
		if (!other)
			continue;
		f = finding_add(run, CONFIDENCE_LIKELY, subject_setting(run, s),
				"NCCL_IB_HCA=%s: each name is a prefix, so %.*s also selects %s",
				s->value, (int)strcspn(p, ":,"), p, other->name);
		show_setting(run, f, s);
		finding_remedy(run, f, "set NCCL_IB_HCA=%s=%s", *s->value == '^' ? "^" : "",
			       s->value + (*s->value == '^'));
	}
	return VERDICT_OK;
}

/* ---- time, class, log ---- */

#define TIMEOUT_MOST 22

static enum verdict probe_timeout(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_IB_TIMEOUT");
	int64_t value = setting_number(run->m, "NCCL_IB_TIMEOUT", -1);
	double seconds;
	struct finding *f;

	if (!s || value < 0 || value > 31 || (value && value <= TIMEOUT_MOST))
		return VERDICT_OK;
	seconds = 4.096e-6 * (double)(UINT64_C(1) << value);
	if (!value)
		f = finding_add(
			run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			"NCCL_IB_TIMEOUT=0 makes a NIC wait forever: if a peer is gone, the job "
			"hangs without an error");
	else
		f = finding_add(
			run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			"NCCL_IB_TIMEOUT=%s makes a NIC wait %.0f s for each of 7 tries: a missing "
			"peer is reported after %.0f s",
			s->value, seconds, 7 * seconds);
	if (value)
		f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	return VERDICT_OK;
}

static bool has_roce(struct rule_run *run)
{
	FOR_EACH_RDMA (d, run)
		for (size_t i = 0; i < d->port_n; i++)
			if (port_is_roce(&d->ports[i]))
				return true;
	return false;
}

/* DSCP is above the two bits of ECN. */
static enum verdict probe_traffic_class(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_IB_TC");
	int64_t value = setting_number(run->m, "NCCL_IB_TC", -1);
	struct finding *f;

	if (!s || value <= 0 || value > 255 || !has_roce(run))
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_POSSIBLE, subject_setting(run, s),
			"NCCL_IB_TC=%s sends with DSCP %" PRId64
			"%s: correct only if the switches map that DSCP to their lossless class",
			s->value, value >> 2, value & 3 ? ", ECN on" : "");
	show_setting(run, f, s);
	return VERDICT_OK;
}

static enum verdict probe_debug_subsys(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_DEBUG_SUBSYS");
	bool exclude = s && *s->value == '^';
	struct finding *f;

	if (!s || !*s->value)
		return VERDICT_OK;
	if (exclude ? !strstr(s->value, "INIT") && !strstr(s->value, "ALL")
		    : strstr(s->value, "INIT") || strstr(s->value, "ALL"))
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			"NCCL_DEBUG_SUBSYS=%s excludes INIT, so the log does not show rings, trees "
			"and the path of each pair",
			s->value);
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* ---- the table ---- */

const struct rule rules_nccl_values[] = {
	{
		.id = "nccl-default",
		.title = "No NCCL variable repeats a default",
		.why = "It has no effect today and hides a better default of a later release.",
		.remedy = "unset it",
		.reference = NCCL_ENV "; NVIDIA/nccl, NCCL_PARAM at its tags",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_default,
	},
	{
		.id = "nccl-gdr-far",
		.title = "NCCL_NET_GDR_LEVEL leaves distant GPU-NIC pairs to host memory",
		.why = "Beyond PCIe switches the path leads through the CPU. There, reads of GPU "
		       "memory can be slow or fail (Intel client CPUs), while host memory works. By "
		       "default NCCL uses GPUDirect RDMA up to PXB.",
		.remedy =
			"unset NCCL_NET_GDR_LEVEL, unless a measurement on this machine shows that "
			"GPU memory is as fast as host memory at that distance, in both directions",
		.reference = "NVIDIA/nccl src/graph/paths.cc (ncclTopoCheckGdr); "
			     "NVIDIA/open-gpu-kernel-modules#1253",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_GPU | NEEDS_RDMA,
		.probe = probe_gdr_far,
	},
	{
		.id = "nccl-gdr-read",
		.title = "NICs may read GPU memory to send it",
		.why = "From Ampere on NCCL allows that. With 0 each message is first copied to "
		       "host memory.",
		.remedy =
			"unset NCCL_NET_GDR_READ, unless reads of GPU memory were measured to be slow",
		.reference = "NVIDIA/nccl src/graph/paths.cc (ncclTopoCheckGdr); " NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_GPU | NEEDS_RDMA,
		.probe = probe_gdr_read,
	},
	{
		.id = "nccl-dmabuf-disabled",
		.title = "NCCL may use dma-buf where nvidia-peermem is missing",
		.why = "Either of the two registers GPU memory with a NIC. Without both NCCL copies "
		       "through host memory.",
		.remedy = "unset NCCL_DMABUF_ENABLE",
		.reference = "NVIDIA/nccl src/transport/net_ib/gdr.cc; " NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_GPU | NEEDS_RDMA,
		.probe = probe_dma_buf_disabled,
	},
	{
		.id = "nccl-hca-near",
		.title = "NCCL_IB_HCA includes the nearest NICs of each GPU",
		.why = "NCCL selects the nearest NIC of each GPU by itself. A list written for "
		       "another machine, or for one GPU, sends the others through distant NICs.",
		.remedy =
			"unset NCCL_IB_HCA, or use ^= to exclude only the ports that serve another "
			"purpose",
		.reference = "NVIDIA/nccl src/graph/topo.cc (ncclTopoGetLocalNet); " NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_GPU | NEEDS_RDMA,
		.probe = probe_near_left,
	},
	{
		.id = "nccl-hca-prefix",
		.title = "NCCL_IB_HCA selects no device by accident",
		.why = "Without = before the list, each name is a prefix.",
		.remedy = "put = before the list",
		.reference = NCCL_ENV " (NCCL_IB_HCA)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_RDMA,
		.probe = probe_prefix,
	},
	{
		.id = "nccl-ib-timeout",
		.title = "NCCL reports a dead peer within minutes",
		.why = "A NIC waits 4.096 us * 2^N, seven times, before it gives up; 0 waits "
		       "forever.",
		.remedy = "unset NCCL_IB_TIMEOUT; 22 suits large networks whose links flap",
		.reference = "InfiniBand Architecture Specification 1.4, 9.7.6.1.3; " NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_timeout,
	},
	{
		.id = "nccl-traffic-class",
		.title = "NCCL's traffic class has its default",
		.why = "RoCE needs a class in which switches drop no packets. The switches' "
		       "configuration defines that class; a value from a guide belongs to another "
		       "network.",
		.remedy =
			"compare it with the switches' configuration; without one, unset NCCL_IB_TC",
		.reference = "RFC 2474; " NCCL_ENV " (NCCL_IB_TC)",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_RDMA,
		.probe = probe_traffic_class,
	},
	{
		.id = "nccl-debug-subsys",
		.title = "NCCL's log shows the path of each pair",
		.why = "The lines that show it belong to INIT.",
		.remedy = "unset NCCL_DEBUG_SUBSYS, or add INIT",
		.reference = NCCL_ENV " (NCCL_DEBUG_SUBSYS)",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_debug_subsys,
	},
	{0},
};
