/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about RDMA: what is too old for it, which NIC is near, ports, slots, GIDs. */
#include "base/alloc.h"
#include "diagnose/rules.h"
#include "machine/usable.h"
#include "support/nic.h"
#include "topology/nearest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is too old or not meant for it ---- */

/* gdrdrv (GDRCopy) could not pin GPU memory: NVIDIA's driver answered EINVAL. */
static const struct log_line *pin_refused(struct rule_run *run)
{
	FOR_EACH_IN(struct log_line, l, run->m->log, run->m->log_n)
	if (strstr(l->text, "nvidia_p2p_get_pages") && strstr(l->text, "ret = -22"))
		return l;
	return NULL;
}

static bool all_geforce(struct rule_run *run)
{
	FOR_EACH_GPU (g, run)
		if (!fact_is(card_is_geforce(g), 1))
			return false;
	return run->m->gpu_n > 0;
}

/*
 * The refusal concerns everything that pins GPU memory: NICs, storage, and the CPU's own mappings.
 */
static void heard_pin_refused(struct rule_run *run)
{
	const struct log_line *l = pin_refused(run);
	struct finding *f;

	if (!l || !all_geforce(run))
		return;
	f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(GPUS, "GeForce cards"),
			"NVIDIA's driver refused to pin GPU memory (-22): it does so on " ABOUT
			" for every other device and module, NICs and storage included");
	f->severity = SEVERITY_WARNING;
	finding_evidence(run, f, NULL, "kernel log", "%s", l->text);
	evidence_str(run, f, "GPU0", run->m->gpus[0].model);
}

static enum verdict probe_geforce(struct rule_run *run)
{
	const char *names = NULL;
	struct finding *f;
	size_t n = 0;

	if (run->found) /* seen, which says more */
		return VERDICT_OK;
	if (!has_pci_nic(run))
		return VERDICT_NA;
	FOR_EACH_GPU (g, run) {
		if (!fact_is(card_is_geforce(g), 1))
			continue;
		names = run_list(run, names, run_text(run, "GPU%zu", g->index));
		n++;
	}
	if (!names)
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_CERTAIN, SUBJECT(GPUS, gpu_list_text(run, names, n)),
		"NICs cannot access the memory of GeForce cards: the driver refuses it (-22) "
		"through nvidia-peermem and dma-buf");
	FOR_EACH_GPU (g, run)
		if (fact_is(card_is_geforce(g), 1))
			finding_evidence(run, f, NULL, subject_text(run, subject_gpu(run, g)), "%s",
					 fact_str_or(g->model, "GeForce by its PCI device id"));
	return VERDICT_OK;
}

static enum verdict probe_gpu_old(struct rule_run *run)
{
	struct fact_int cc = card_compute_capability(run->gpu);
	struct finding *f;

	if (!fact_is(card_has_gdr(run->gpu), 0))
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, subject_gpu(run, run->gpu),
			"compute capability %" PRId64 ".%" PRId64 "; GPUDirect RDMA needs 3.5",
			cc.value / 10, cc.value % 10);
	finding_evidence(run, f, FACT_WHY(cc), "compute capability", "%" PRId64 ".%" PRId64,
			 cc.value / 10, cc.value % 10);
	return VERDICT_BAD;
}

static enum verdict probe_driver_old(struct rule_run *run)
{
	struct fact_str version = run->m->driver.module_version;
	int branch = driver_branch(version);
	struct finding *f;

	if (!gdr_wanted(run))
		return VERDICT_NA;
	if (branch <= 0)
		return rule_unknown(run, FACT_WHY(version), "the driver's version");
	if (release_has_peermem(branch) || fact_is(run->m->peermem.legacy_loaded, 1))
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_CERTAIN, SUBJECT(DRIVER, "nvidia module"),
		"driver %s is older than %d and has no nvidia-peermem, and nv_peer_mem is not "
		"loaded",
		version.value, RELEASE_PEERMEM);
	evidence_str(run, f, "module version", version);
	if (gdr_by_dma_buf(run))
		f->severity = SEVERITY_INFO;
	return VERDICT_OK;
}

#define VENDOR_MELLANOX 0x15b3

static enum verdict probe_nic_old(struct rule_run *run)
{
	const struct rdma_device *d = run->nic;
	struct finding *f;

	if (!gdr_wanted(run))
		return VERDICT_NA;
	if (!d->pci || !nic_lacks_gdr(run->m, d->pci))
		return VERDICT_OK;
	f = finding_here(run, CONFIDENCE_LIKELY,
			 "ConnectX-3 or older (15b3:%04" PRIx64
			 "): nvidia-peermem needs ConnectX-4 or newer, MLNX_OFED 4.9 was the last "
			 "release for this card, and its driver does not support dma-buf",
			 (uint64_t)fact_or(d->pci->device, 0));
	evidence_str(run, f, "firmware", d->firmware);
	return VERDICT_BAD;
}

/* "MLNX_OFED_LINUX-5.4-1.0.3.0" and "5.4-1.0.3" are 504; 0 where nothing like it stands. */
static int ofed_number(const char *text)
{
	const char *p = text + strcspn(text, "0123456789");
	char *end;
	long major = strtol(p, &end, 10);

	return *end == '.' ? (int)(major * 100 + strtol(end + 1, NULL, 10)) : 0;
}

#define OFED_FIRST  300 /* DOCA restarted its numbers at 1 and is new enough */
#define OFED_ENOUGH 501

/* Of the modules that run: an OFED that is only installed does nothing. */
static enum verdict probe_ofed_old(struct rule_run *run)
{
	struct fact_str running = run->m->peermem.ofed_running;
	int number = ofed_number(fact_str_or(running, ""));
	struct finding *f;

	if (!gdr_wanted(run) || fact_absent(running))
		return VERDICT_NA;
	if (!fact_known(running))
		return rule_unknown(run, FACT_WHY(running), "which OFED is loaded");
	/* Registered, as with peerdirect_support=1, is what it is about. */
	if (number < OFED_FIRST || number >= OFED_ENOUGH || fact_is(run->m->peermem.registered, 1))
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(MODULE, "OFED"),
			"MLNX_OFED %d.%d is loaded, but nvidia-peermem needs 5.1 or later",
			number / 100, number % 100);
	evidence_str(run, f, "mlx5_core", running);
	evidence_str(run, f, "OFED installed", run->m->peermem.ofed);
	return VERDICT_OK;
}

/* ---- which NIC is near ---- */

struct near_nic {
	enum path_class class; /* PATH_UNKNOWN: none */
	const char *names;
	size_t n;
};

static struct near_nic nearest(struct rule_run *run, size_t gpu, bool usable_only)
{
	const struct topology *t = run->t;
	struct near_nic best = {.class = topology_nearest_class(t, gpu, usable_only)};

	for (size_t e = t->gpu_n; e < t->endpoint_n; e++) {
		if (!topology_is_nearest(t, gpu, e, best.class, usable_only))
			continue;
		best.names = run_list(run, best.names, run->m->rdma[t->endpoints[e].index].name);
		best.n++;
	}
	return best;
}

/* Some GPU has NICs at different distances, so that choosing matters. */
static bool choice_matters(struct rule_run *run)
{
	size_t nics = run->t->endpoint_n - run->t->gpu_n;

	for (size_t g = 0; g < run->t->gpu_n; g++) {
		struct near_nic best = nearest(run, g, true);

		if (best.class != PATH_UNKNOWN && best.n < nics)
			return true;
	}
	return false;
}

#define NEAREST_LISTED 16

/* "GPU0 mlx5_0 (PIX), GPU1 mlx5_1 (PIX)" */
static const char *nearest_list(struct rule_run *run)
{
	const char *list = NULL;

	for (size_t g = 0; g < run->t->gpu_n && g < NEAREST_LISTED; g++) {
		struct near_nic best = nearest(run, g, true);

		if (best.class != PATH_UNKNOWN)
			list = run_list(run, list,
					run_text(run, "GPU%zu %s (%s)", g, best.names,
						 path_class_word(best.class)));
	}
	list = list ? list : "unknown";
	return run->t->gpu_n > NEAREST_LISTED ? run_text(run, "%s, ... (the first %d of %zu GPUs)",
							 list, NEAREST_LISTED, run->t->gpu_n)
					      : list;
}

/* NICs are equally far only where each distance is known. */
static enum verdict judge_distances(struct rule_run *run)
{
	const struct topology *t = run->t;

	for (size_t g = 0; g < t->gpu_n; g++)
		for (size_t e = t->gpu_n; e < t->endpoint_n; e++)
			if (topology_path(t, g, e)->class == PATH_UNKNOWN)
				return rule_unknown(run, NULL, "the path from GPU%zu to %s", g,
						    run->m->rdma[t->endpoints[e].index].name);
	return VERDICT_OK;
}

static enum verdict probe_assignment(struct rule_run *run)
{
	struct finding *f;

	if (run->t->endpoint_n == run->t->gpu_n)
		return VERDICT_NA;
	if (!choice_matters(run))
		return judge_distances(run);
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(NICS, "NICs"), "nearest to each GPU: %s",
			nearest_list(run));
	for (size_t g = 0; g < run->t->gpu_n; g++) {
		struct near_nic best = nearest(run, g, true);

		if (best.class != PATH_UNKNOWN)
			finding_evidence(run, f, NULL, run_text(run, "GPU%zu", g), "%s (%s)",
					 best.names, path_class_word(best.class));
	}
	return VERDICT_OK;
}

/* What uses RDMA here, as far as it shows: NCCL is set to, or did. NULL: nothing. */
static const char *rdma_user(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_IB_HCA");

	FOR_EACH_RDMA (d, run)
		for (size_t i = 0; i < d->port_n; i++)
			if (nccl_port_use(run, d, d->ports[i].number) == NCCL_NAMES)
				return run_text(run, "NCCL_IB_HCA=%s names %s (%s)", s->value,
						d->name, s->from);
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	if (o->kind == OBSERVED_NCCL_TRANSPORT && strncmp(o->text, "NET/IB", 6) == 0)
		return run_text(run, "NCCL used %s (%s)", o->text, o->from);
	return NULL;
}

/* A NIC's place matters where GPU memory goes through it. */
static void weigh_nic(struct rule_run *run, struct finding *f)
{
	const char *user = rdma_user(run);

	if (user)
		finding_evidence(run, f, NULL, "in use", "%s", user);
	else
		finding_evidence(
			run, f, NULL, "no RDMA use is known here",
			"NCCL_IB_HCA names no NIC, and no NCCL run is known to have used one");
	if (!user || !gdr_wanted(run))
		f->severity = SEVERITY_INFO;
}

static void report_nic_down(struct rule_run *run, size_t gpu, const struct near_nic *near,
			    const struct near_nic *used)
{
	struct finding *f =
		finding_add(run, CONFIDENCE_CERTAIN, subject_gpu(run, &run->m->gpus[gpu]),
			    "the NIC next to it (%s, %s) has no active port; %s", near->names,
			    path_class_word(near->class),
			    used->names
				    ? run_text(run, "the nearest with an active port is %s (%s)",
					       used->names, path_class_word(used->class))
				    : "no other NIC has one");
	finding_evidence(run, f, NULL, run_text(run, "state of the ports of %s", near->names),
			 "none is ACTIVE");
	finding_remedy(run, f, "connect and enable the port of %s", near->names);
	weigh_nic(run, f);
}

#define FAR_NAMED 4

static enum verdict probe_far(struct rule_run *run)
{
	bool *is_far = arena_alloc(run->d->arena, run->t->gpu_n + 1, sizeof(*is_far));
	const char *far = NULL;
	struct finding *f;
	size_t far_n = 0;

	if (run->t->endpoint_n == run->t->gpu_n)
		return VERDICT_NA;
	for (size_t g = 0; g < run->t->gpu_n; g++) {
		struct near_nic near = nearest(run, g, false), used = nearest(run, g, true);

		if (near.class == PATH_SYS) {
			far = run_list(run, far, run_text(run, "GPU%zu", g));
			is_far[g] = true;
			far_n++;
		} else if (near.class < used.class) {
			report_nic_down(run, g, &near, &used);
		}
	}
	if (!far)
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(NICS, "NICs"),
			"%s reach%s every NIC only across CPU sockets or NUMA nodes (SYS): about "
			"half the bandwidth, and NCCL does not use GPUDirect RDMA at that distance",
			far_n > FAR_NAMED ? run_text(run, "%zu of %zu GPUs", far_n, run->t->gpu_n)
					  : far,
			far_n == 1 ? "es" : "");
	FOR_EACH_GPU (g, run) {
		if (is_far[g->index])
			finding_names(run, f, g->pci);
		evidence_int(run, f, run_text(run, "NUMA node of GPU%zu", g->index),
			     g->pci->numa_node);
	}
	FOR_EACH_RDMA (d, run)
		if (d->pci)
			evidence_int(run, f, run_text(run, "NUMA node of %s", d->name),
				     d->pci->numa_node);
	weigh_nic(run, f);
	return VERDICT_OK;
}

/* ---- the driver's own look at the PCI tree ---- */

/* From a NIC to a GPU; the other way has the same answer. */
static const struct chain_link *export_link(struct rule_run *run, size_t gpu, size_t nic)
{
	return &topology_path(run->t, nic, gpu)->chain[CHAIN_DRIVER];
}

static enum verdict probe_export(struct rule_run *run)
{
	const struct topology *t = run->t;
	const char *names = NULL;
	struct finding *f;
	size_t pairs = 0;

	if (t->endpoint_n == t->gpu_n)
		return VERDICT_NA;
	for (size_t g = 0; g < t->gpu_n; g++)
		for (size_t n = t->gpu_n; n < t->endpoint_n; n++)
			if (export_link(run, g, n)->reason == REASON_RDMA_GATE) {
				names = run_list(
					run, names,
					run_text(run, "GPU%zu and %s", g,
						 run->m->rdma[t->endpoints[n].index].name));
				pairs++;
			}
	if (!pairs)
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(DRIVER, "driver"),
			"the " ABOUT
			" does not export GPU memory to NICs that share no bridge with the GPU "
			"(errno 524): %s",
			pairs > FAR_NAMED ? run_text(run, "%zu of %zu GPU-NIC paths", pairs,
						     t->gpu_n * (t->endpoint_n - t->gpu_n))
					  : names);
	for (size_t g = 0; g < t->gpu_n; g++)
		for (size_t n = t->gpu_n; n < t->endpoint_n; n++)
			if (export_link(run, g, n)->reason == REASON_RDMA_GATE) {
				finding_names(run, f, t->endpoints[g].pci);
				finding_names(run, f, t->endpoints[n].pci);
			}
	if (fact_is(run->m->driver.grdma_topology_override, 2))
		finding_remedy(
			run, f,
			"remove NVreg_GrdmaPciTopoCheckOverride=2 from /etc/modprobe.d, rebuild the "
			"initramfs and reboot");
	evidence_int(run, f, "GrdmaPciTopoCheckOverride", run->m->driver.grdma_topology_override);
	evidence_str(run, f, "CPU", run->m->cpu.name);
	weigh_nic(run, f);
	return VERDICT_BAD;
}

/* ---- ports ---- */

static bool port_is(const struct rdma_port *p, const char *state)
{
	return fact_str_is(p->state, state);
}

static bool same_slot(const struct pci_function *a, const struct pci_function *b)
{
	return a && b && a->address.domain == b->address.domain &&
	       a->address.bus == b->address.bus && a->address.device == b->address.device;
}

/* The card of d, which may be a device for each of its ports, has another port that works. */
static bool card_has_active(struct rule_run *run, const struct rdma_device *d)
{
	FOR_EACH_RDMA (other, run)
		if ((other == d || same_slot(d->pci, other->pci)) && fact_is(nic_active(other), 1))
			return true;
	return false;
}

/*
 * What NCCL makes of a port that is not active. Without a list it takes every port that is, so a
 * card with no such port is lost to it; the second port of a card that works is mostly meant to be
 * empty. *ret_lost: NCCL would use the port.
 */
static const char *port_use(struct rule_run *run, const struct rdma_device *d,
			    const struct rdma_port *p, bool *ret_lost)
{
	enum nccl_use use = nccl_port_use(run, d, p->number);

	*ret_lost = use == NCCL_NAMES || (use == NCCL_MAY_USE && !card_has_active(run, d));
	if (use == NCCL_NAMES)
		return "NCCL_IB_HCA names it, so NCCL skips it silently";
	if (use == NCCL_LEAVES)
		return "NCCL is set not to use it";
	return *ret_lost ? "NCCL would use it, and this card has no other port"
			 : "another port of the card is active";
}

/* INIT and ARMED: the cable is fine, and nobody has configured the port. */
static enum verdict probe_port_down(struct rule_run *run)
{
	const struct rdma_port *p = run->port;
	bool waits = port_is(p, "INIT") || port_is(p, "ARMED"), lost;
	bool closed = port_is(p, "DOWN") && fact_str_is(p->phys_state, "LinkUp") &&
		      fact_str_is(p->link_layer, "InfiniBand");
	const char *use = port_use(run, run->nic, p, &lost);
	struct finding *f;

	if (!fact_known(p->state))
		return rule_unknown(run, NULL, "no port's state could be read");
	if (port_is(p, "ACTIVE"))
		return VERDICT_OK;
	f = finding_here(
		run, CONFIDENCE_CERTAIN,
		waits ? "the port is %s (%s): the link is up, but no subnet manager has configured it"
		: closed ? "the port is %s (%s): the cable is fine, but nobody has opened the port"
			 : "the port is %s (%s): it carries no traffic",
		p->state.value, fact_str_or(p->phys_state, "physical state unknown"));
	evidence_str(run, f, "state", p->state);
	finding_expects(f, "ACTIVE");
	evidence_str(run, f, "physical state", p->phys_state);
	evidence_str(run, f, "link layer", p->link_layer);
	evidence_text(run, f, NULL, use);
	if (waits)
		finding_remedy(run, f, "start a subnet manager (opensm, or the one in the switch)");
	if (closed)
		finding_remedy(
			run, f,
			"a virtual function: on its host let it follow the port (`ip link set dev "
			"PORT vf N state auto`); else start a subnet manager (opensm, or the one in "
			"the switch)");
	if (!lost)
		f->severity = SEVERITY_INFO;
	return VERDICT_BAD;
}

/* What a port of the chip can at most; a card may be sold for less. Gb/s. */
/* clang-format off */
static const struct {
	uint16_t device;
	int gbps;
	const char *name;
} chips[] = {
	{0x1011,  56, "Connect-IB"},     {0x1013, 100, "ConnectX-4"},    {0x1015,  50, "ConnectX-4 Lx"},
	{0x1017, 100, "ConnectX-5"},     {0x1019, 100, "ConnectX-5 Ex"}, {0x101b, 200, "ConnectX-6"},
	{0x101d, 200, "ConnectX-6 Dx"},  {0x101f,  50, "ConnectX-6 Lx"}, {0x1021, 400, "ConnectX-7"},
	{0x1023, 800, "ConnectX-8"},     {0xa2d6, 200, "BlueField-2"},   {0xa2dc, 400, "BlueField-3"},
};
/* clang-format on */

static const char *rated(const struct pci_function *f, int *ret_gbps)
{
	for (size_t i = 0; f && i < sizeof(chips) / sizeof(chips[0]); i++)
		if (fact_is(f->vendor, VENDOR_MELLANOX) && fact_is(f->device, chips[i].device)) {
			*ret_gbps = chips[i].gbps;
			return chips[i].name;
		}
	return NULL;
}

/* Gb/s of the narrowest link from the function up to the CPU; 0: unknown. */
static double slot_gbps(const struct pci_function *f)
{
	double least = 0;

	for (; f; f = f->parent) {
		double gbps;

		if (!fact_known(f->link_speed) || !fact_known(f->link_width))
			continue;
		gbps = 8 * pci_link_gbps(f->link_speed.value, f->link_width.value);
		if (gbps > 0 && (least == 0 || gbps < least))
			least = gbps;
	}
	return least;
}

/* A card of the same make in this machine runs a port faster. */
static const struct rdma_device *faster_twin(struct rule_run *run, const struct rdma_device *d,
					     int64_t rate, int64_t *ret_rate)
{
	FOR_EACH_RDMA (other, run) {
		if (!fact_known(d->board_id) || !fact_known(other->board_id) ||
		    strcmp(d->board_id.value, other->board_id.value) != 0)
			continue;
		for (size_t i = 0; i < other->port_n; i++) {
			if (!port_is(&other->ports[i], "ACTIVE"))
				continue;
			*ret_rate = fact_or(other->ports[i].rate_mbps, 0);
			if (*ret_rate > rate)
				return other;
		}
	}
	return NULL;
}

static enum verdict probe_port_slow(struct rule_run *run)
{
	const struct rdma_device *d = run->nic;
	const struct rdma_port *p = run->port;
	int64_t rate = fact_or(p->rate_mbps, 0), twin_rate = 0;
	const struct rdma_device *twin;
	struct finding *f = NULL;
	const char *chip;
	int gbps = 0;

	if (!port_is(p, "ACTIVE") || rate <= 0)
		return VERDICT_OK;
	twin = faster_twin(run, d, rate, &twin_rate);
	chip = rated(d->pci, &gbps);
	if (twin)
		f = finding_here(run, CONFIDENCE_LIKELY,
				 "the port runs at %" PRId64 " Gb/s, the same card %s at %" PRId64
				 " Gb/s",
				 rate / 1000, twin->name, twin_rate / 1000);
	else if (chip && rate * 2 <= gbps * INT64_C(1000) && slot_gbps(d->pci) * 500 > (double)rate)
		f = finding_here(
			run, CONFIDENCE_POSSIBLE,
			"the port runs at %" PRId64
			" Gb/s; the chip (%s) supports up to %d and the slot carries %.0f Gb/s",
			rate / 1000, chip, gbps, slot_gbps(d->pci));
	if (!f)
		return VERDICT_OK;
	if (!twin)
		f->severity = SEVERITY_INFO;
	evidence_int(run, f, "rate, Mb/s", p->rate_mbps);
	evidence_str(run, f, "board", d->board_id);
	return VERDICT_BAD;
}

/* Mb/s of the active ports in the slot of d; also the fastest one's. */
static int64_t slot_rate(struct rule_run *run, const struct rdma_device *d, int64_t *ret_fastest)
{
	int64_t sum = 0;

	*ret_fastest = 0;
	FOR_EACH_RDMA (other, run)
		for (size_t i = 0; same_slot(d->pci, other->pci) && i < other->port_n; i++) {
			int64_t rate = fact_or(other->ports[i].rate_mbps, 0);

			if (!port_is(&other->ports[i], "ACTIVE"))
				continue;
			sum += rate;
			if (rate > *ret_fastest)
				*ret_fastest = rate;
		}
	return sum;
}

static bool first_in_slot(struct rule_run *run, const struct rdma_device *d)
{
	FOR_EACH_RDMA (other, run) {
		if (other == d)
			return true;
		if (same_slot(d->pci, other->pci))
			return false;
	}
	return true;
}

static enum verdict probe_slot_slow(struct rule_run *run)
{
	const struct rdma_device *d = run->nic;
	int64_t fastest, sum;
	struct finding *f;
	double slot;
	char buf[32];

	if (fact_known(run->m->kernel.hypervisor))
		return rule_unknown(run, NULL,
				    "a guest does not see the real links of its devices");
	if (!d->pci || !first_in_slot(run, d))
		return VERDICT_OK;
	sum = slot_rate(run, d, &fastest);
	slot = slot_gbps(d->pci);
	if (slot == 0 || (double)sum <= slot * 1000)
		return VERDICT_OK;
	f = finding_here(run, CONFIDENCE_CERTAIN,
			 "its active ports need %" PRId64
			 " Gb/s, but its PCIe path carries %.0f Gb/s before packet headers",
			 sum / 1000, slot);
	if ((double)fastest <= slot * 1000)
		f->severity = SEVERITY_INFO; /* only both ports at once are held up */
	finding_evidence(run, f, NULL, run_text(run, "link of %s", d->pci->name), "%s",
			 pci_link_format(d->pci->link_speed, d->pci->link_width, buf, sizeof(buf)));
	finding_evidence(run, f, NULL, "supported", "%s",
			 pci_link_format(d->pci->link_speed_max, d->pci->link_width_max, buf,
					 sizeof(buf)));
	return VERDICT_BAD;
}

/* ---- RoCE ---- */

/* A text may show the GIDs of a port, and not its state. */
bool port_is_roce(const struct rdma_port *p)
{
	return (port_is(p, "ACTIVE") || fact_unknown(p->state)) &&
	       fact_str_is(p->link_layer, "Ethernet");
}

/* A type that onehop does not know may be v2. */
static size_t count_v2(const struct rdma_port *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->gid_n; i++)
		n += !fact_is_not(p->gids[i].type, GID_ROCE_V2);
	return n;
}

static bool has_unknown_gid(const struct rdma_port *p)
{
	for (size_t i = 0; i < p->gid_n; i++)
		if (!fact_known(p->gids[i].type))
			return true;
	return false;
}

static enum verdict probe_roce_gid(struct rule_run *run)
{
	const struct rdma_port *p = run->port;
	bool hidden = fact_known(run->m->kernel.container);
	size_t v2 = count_v2(p);
	struct finding *f;

	if (!port_is_roce(p))
		return VERDICT_NA;
	if (!fact_is(p->gids_listed, 1))
		return rule_unknown(run, NULL, "the ports' GID tables could not be read");
	if (rdma_routed_gid(p) || has_unknown_gid(p))
		return VERDICT_OK;
	f = finding_here(
		run, hidden ? CONFIDENCE_POSSIBLE : CONFIDENCE_CERTAIN,
		v2 ? "the RoCE port has only link-local v2 GIDs (%zu of %zu): routers do not "
		     "forward them, and NCCL, which looks for an address, stays at index 0"
		   : "the RoCE port has no v2 GID (%zu of %zu): it cannot be routed to, and NCCL "
		     "finds no address for it",
		v2, p->gid_n);
	for (size_t i = 0; i < p->gid_n; i++)
		finding_evidence(run, f, FACT_WHY(p->gids[i].gid),
				 run_text(run, "GID %u", p->gids[i].index), "%s, %s",
				 p->gids[i].gid.value,
				 fact_is(p->gids[i].type, GID_ROCE_V2) ? "RoCE v2" : "RoCE v1");
	if (hidden)
		evidence_text(run, f, NULL, "in a container GIDs of the host's network are hidden");
	return VERDICT_BAD;
}

/* ---- the table ---- */

const struct rule rules_rdma[] = {
	{
		.id = "gdr-geforce",
		.title = "Every GPU supports GPUDirect RDMA",
		.why = "NVIDIA's driver supports it on workstation and data center cards only.",
		.remedy =
			"no fix exists with NVIDIA's stock driver: copy through host memory, or use "
			"a workstation or data center card",
		.reference = "NVIDIA/gdrcopy#206, #139",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = GDR_NEEDS,
		.probe = probe_geforce,
		.heard = heard_pin_refused,
	},
	{
		.id = "gdr-gpu-old",
		.title = "Every GPU is new enough for GPUDirect RDMA",
		.why = "Support begins with the second Kepler generation.",
		.remedy = "copy through host memory",
		.reference = "NVIDIA GPUDirect RDMA documentation, supported systems",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU | NEEDS_RDMA,
		.scope = SCOPE_GPU,
		.probe = probe_gpu_old,
	},
	{
		.id = "gdr-export",
		.title = "The driver exports GPU memory to every NIC",
		.why = "On chipsets known not to forward peer traffic between root ports, the "
		       "driver refuses NICs that share no bridge with the GPU; data then goes "
		       "through host memory.",
		.remedy =
			"move the NIC below the GPU's switch; or, if the host bridge does forward "
			"peer traffic, load the nvidia module with NVreg_GrdmaPciTopoCheckOverride=1 "
			"and check the data that arrives",
		.reference = "kernel-open/nvidia/nv-pci.c (nv_grdma_pci_topology_supported) of "
			     "NVIDIA/open-gpu-kernel-modules",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = GDR_NEEDS,
		.probe = probe_export,
	},
	{
		.id = "gdr-driver-old",
		.title = "The driver is new enough to include nvidia-peermem",
		.why = "Before branch 470 the module was a separate project, nv_peer_mem.",
		.remedy = "update the driver to 470 or newer; with an older one build nv_peer_mem "
			  "(Mellanox/nv_peer_memory)",
		.reference = "NVIDIA GPUDirect RDMA documentation; Mellanox/nv_peer_memory README",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = GDR_NEEDS,
		.probe = probe_driver_old,
	},
	{
		.id = "gdr-nic-old",
		.title = "Every NIC is new enough for nvidia-peermem",
		.why = "The drivers of older NICs support neither today's peer-memory interface nor "
		       "dma-buf.",
		.remedy = "use a ConnectX-4 or newer; with this NIC use MLNX_OFED 4.9 and "
			  "nvidia-peermem peerdirect_support=1",
		.reference = "NVIDIA GPUDirect RDMA documentation; MLNX_OFED 4.9 LTS release notes",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = GDR_NEEDS,
		.scope = SCOPE_NIC,
		.probe = probe_nic_old,
	},
	{
		.id = "gdr-ofed-old",
		.title = "The loaded OFED is new enough for nvidia-peermem",
		.why = "The interface changed with 5.1; registration fails with older releases.",
		.remedy = "update to MLNX_OFED 5.1 or DOCA-OFED; with 4.9 load nvidia-peermem with "
			  "peerdirect_support=1",
		.reference = "NVIDIA GPUDirect RDMA documentation; " PEERMEM_SOURCE,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = GDR_NEEDS,
		.probe = probe_ofed_old,
	},
	{
		.id = "nic-assignment",
		.title = "All NICs are equally far from each GPU, so the choice does not matter",
		.why = "Traffic between a GPU and a NIC below the same switch does not touch the "
		       "CPU; a distant NIC costs bandwidth and loads the links between sockets.",
		.remedy =
			"NCCL selects NICs this way by itself; for perftest, MPI and UCX specify the "
			"NIC of the list (ib_write_bw -d NIC, UCX_NET_DEVICES=NIC:1)",
		.reference = "NVIDIA/nccl src/graph/paths.cc; perftest#241",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU | NEEDS_RDMA,
		.probe = probe_assignment,
	},
	{
		.id = "nic-far",
		.title = "Every GPU has a NIC on its own socket",
		.why = "Reads and writes of GPU memory across sockets or NUMA nodes are slow, and "
		       "NCCL does not use GPUDirect RDMA there (NCCL_NET_GDR_LEVEL is PXB). A note "
		       "only, where no use of the NICs is known.",
		.remedy = "move one NIC to each GPU's socket, ideally below the same switch",
		.reference = "perftest#241; NVIDIA/nccl src/graph/paths.cc",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_GPU | NEEDS_RDMA,
		.probe = probe_far,
	},
	{
		.id = "rdma-port-down",
		.title = "Every RDMA port is active",
		.why = "A port that is down carries no traffic, and NCCL skips it without an error. "
		       "That matters if NCCL_IB_HCA names it or its card has no other port; an "
		       "unconnected second port is only a note.",
		.remedy = "check the cable and the switch port; `ip link set DEV up` for RoCE; "
			  "`ibstat` shows the state",
		.reference = "InfiniBand Architecture Specification 1.4, 14.2.5.6 (PortInfo)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_RDMA,
		.scope = SCOPE_PORT,
		.probe = probe_port_down,
		.one_is_enough = true,
	},
	{
		.id = "rdma-port-slow",
		.title = "Every RDMA port runs at the speed of similar ports",
		.why = "A bad cable or a switch port with a lower setting leaves bandwidth unused.",
		.remedy = "check the cable and the switch port's speed (`mlxlink -d DEV -m` shows "
			  "lanes, errors and what both ends support)",
		.reference = "Linux Documentation/ABI/stable/sysfs-class-infiniband (rate)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_RDMA,
		.scope = SCOPE_PORT,
		.probe = probe_port_slow,
	},
	{
		.id = "rdma-slot-slow",
		.title = "Every NIC's PCIe path carries the full rate of its ports",
		.why = "The slower of port and slot limits the rate.",
		.remedy =
			"move the card to a slot with more lanes or a newer generation; check that "
			"the firmware setup does not limit the slot",
		.reference = "PCI Express 6.0, 1.2; Linux Documentation/ABI/testing/sysfs-bus-pci",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_RDMA,
		.scope = SCOPE_NIC,
		.probe = probe_slot_slow,
	},
	{
		.id = "roce-gid",
		.title = "Every RoCE port has a routed v2 GID",
		.why = "Switches route RoCE v2, and NCCL looks for it. A routed v2 GID exists once "
		       "the network device has an IP address; without one there is at most the "
		       "link-local GID (fe80::).",
		.remedy =
			"give the port's network device an IP address and bring it up; check with "
			"show_gids or /sys/class/infiniband/DEV/ports/N/gid_attrs/types",
		.reference =
			"NVIDIA/nccl#426; Linux Documentation/ABI/stable/sysfs-class-infiniband",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_RDMA,
		.scope = SCOPE_PORT,
		.probe = probe_roce_gid,
		.one_is_enough = true,
	},
	{0},
};
