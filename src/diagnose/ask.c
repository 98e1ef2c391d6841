/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/ask.h"

#include "base/array.h"
#include "base/text.h"
#include "diagnose/run_failure.h"
#include "support/card.h"
#include "support/support.h"

#include <string.h>

/* ---- what is missing ---- */

/* Both have NVLinks that are up, and nothing shows where they lead. */
static bool may_be_joined(const struct machine *m, size_t i, size_t j)
{
	return fact_or(m->gpus[i].nvlink_active, 0) > 0 &&
	       fact_or(m->gpus[j].nvlink_active, 0) > 0 &&
	       (!m->pairs || !fact_known(m->pairs[i * m->gpu_n + j].nvlinks));
}

/*
 * Some pair of GPUs is undecided or doubtful, and this step of its chain is unknown. Of pairs that
 * NVLink may join, what is on their way over PCIe matters only once that is known.
 */
static bool any_path(const struct diagnosis *d, enum chain_step step,
		     bool (*is_it)(const struct path *p, enum chain_step step))
{
	const struct topology *t = d->topology;

	for (size_t i = 0; i < t->gpu_n; i++)
		for (size_t j = 0; j < t->gpu_n; j++) {
			const struct path *p = i != j ? topology_path(t, i, j) : NULL;

			if (p && is_it(p, step) && !may_be_joined(t->machine, i, j))
				return true;
		}
	return false;
}

static bool wants_matrix(const struct diagnosis *d)
{
	const struct topology *t = d->topology;

	for (size_t i = 0; i < t->gpu_n; i++)
		for (size_t j = 0; j < t->gpu_n; j++)
			if (i != j && may_be_joined(t->machine, i, j) &&
			    topology_path(t, i, j)->verdict != PAIR_DIRECT &&
			    !path_is_nvlink(topology_path(t, i, j)))
				return true;
	return false;
}

static bool lacks(const struct path *p, enum chain_step step)
{
	return p->verdict != PAIR_DIRECT && p->chain[step].state == CHAIN_UNKNOWN;
}

static bool paths_lack(const struct diagnosis *d, enum chain_step step)
{
	return any_path(d, step, lacks);
}

/* Not only whether NVLink joins them. */
static bool lacks_bridges(const struct path *p, enum chain_step step)
{
	return lacks(p, step) && p->chain[step].reason != REASON_NVLINK_UNKNOWN;
}

static bool lacks_nvlink(const struct path *p, enum chain_step step)
{
	return p->chain[step].reason == REASON_NVLINK_UNKNOWN;
}

/* Whether the machine was observed in a way that `is` accepts. */
static bool any_seen(const struct machine *m, bool (*is)(const struct observed *o))
{
	for (size_t i = 0; i < m->observed_n; i++)
		if (is(&m->observed[i]))
			return true;
	return false;
}

static bool is_failure_of(const struct observed *o, enum run_failure_kind kind)
{
	return o->kind == OBSERVED_RUN_FAILURE && o->failure.kind == kind;
}

/*
 * CUDA's errors that come before any GPU was used: the program, its libraries or the fabric manager
 * is the cause.
 */
static bool is_of_start(const struct observed *o)
{
	static const int codes[] = {1, 2, 34, 35, 100, 101, 802, 803, 804};

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (is_failure_of(o, RUN_CUDA_ERROR) && o->failure.code == codes[i])
			return true;
	return false;
}

/* Why the fabric manager does not run is in the text. */
static bool is_of_manager(const struct observed *o)
{
	return o->kind == OBSERVED_MESSAGE &&
	       (o->message == MESSAGE_FABRIC_VERSION || o->message == MESSAGE_FABRIC_MISSING);
}

static bool is_of_fabric(const struct observed *o)
{
	if (o->kind == OBSERVED_MESSAGE)
		return is_of_manager(o) || o->message == MESSAGE_FABRIC_FAILED ||
		       o->message == MESSAGE_FABRIC_STALE || o->message == MESSAGE_NO_NVSWITCH;
	return is_failure_of(o, RUN_CUDA_ERROR) && o->failure.code == 802;
}

/* nvidia-smi did not work, or lsmod has no driver. */
static bool is_of_driver(const struct observed *o)
{
	static const enum tool_message messages[] = {MESSAGE_NVML_MISMATCH, MESSAGE_NVML_NO_DRIVER,
						     MESSAGE_NVML_NO_ACCESS, MESSAGE_NO_GPU_LISTED,
						     MESSAGE_GPU_NOT_OPENED};

	for (size_t i = 0; i < ARRAY_LEN(messages); i++)
		if (o->kind == OBSERVED_MESSAGE && o->message == messages[i])
			return true;
	return o->kind == OBSERVED_MESSAGE && o->message == MESSAGE_MODULE_NOT_LISTED &&
	       strcmp(o->text, "nvidia") == 0;
}

/* NICs of two hosts do not reach each other. */
static bool is_of_connection(const struct observed *o)
{
	return is_failure_of(o, RUN_NCCL_ERROR) && (strstr(o->failure.what, "Got completion ") ||
						    strstr(o->failure.what, "ibv_modify_qp"));
}

static bool is_of_gpu_and_nic(const struct observed *o)
{
	return o->kind == OBSERVED_NCCL_GDR_OFF || is_failure_of(o, RUN_RDMA_ERROR);
}

static bool is_of_shared_memory(const struct observed *o)
{
	return is_failure_of(o, RUN_NCCL_ERROR) &&
	       (strstr(o->failure.what, "o space left on device") ||
		strstr(o->failure.what, "shared memory segment"));
}

/* NCCL was called wrongly, as with two ranks on one GPU. */
static bool is_of_usage(const struct observed *o)
{
	return is_failure_of(o, RUN_NCCL_ERROR) && o->failure.code == 5;
}

/* A failure that neither a path between GPUs nor a GPU that broke explains. */
static bool is_elsewhere(const struct observed *o)
{
	return is_of_start(o) || is_of_driver(o) || is_of_fabric(o) || is_of_connection(o) ||
	       is_of_gpu_and_nic(o) || is_of_shared_memory(o) || is_of_usage(o) ||
	       is_failure_of(o, RUN_UNREACHED) || o->failure.waits == RUN_WAITS_MIXED;
}

static bool is_nic_rate(const struct observed *o)
{
	return o->kind == OBSERVED_MESSAGE &&
	       (o->message == MESSAGE_NIC_RATE_GPU || o->message == MESSAGE_NIC_RATE_HOST);
}

static bool is_of_perftest(const struct observed *o)
{
	return is_nic_rate(o) ||
	       (o->kind == OBSERVED_MESSAGE &&
		(o->message == MESSAGE_NIC_TIME_GPU || o->message == MESSAGE_NIC_TIME_HOST));
}

/* A NIC moved memory of a GPU. */
static bool is_gpu_moved(const struct observed *o)
{
	return o->kind == OBSERVED_MESSAGE &&
	       (o->message == MESSAGE_NIC_RATE_GPU || o->message == MESSAGE_NIC_TIME_GPU);
}

static bool may_be_a_path(const struct observed *o)
{
	const bool is_answer =
		o->kind == OBSERVED_MESSAGE && o->message == MESSAGE_MODULE_NOT_LISTED;

	return (o->kind == OBSERVED_RUN_FAILURE || o->kind == OBSERVED_MESSAGE) &&
	       !is_elsewhere(o) && !is_of_perftest(o) && !is_answer;
}

/* CUDA refuses peer access, or cannot map a peer's memory. */
static bool is_refusal(const struct observed *o)
{
	static const int codes[] = {205, 217, 711};

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (is_failure_of(o, RUN_CUDA_ERROR) && o->failure.code == codes[i])
			return true;
	return o->kind == OBSERVED_PEER_ACCESS && !o->ok;
}

/* Not a refusal or a lack of room: something broke while it ran. */
static bool may_be_in_the_log(const struct observed *o)
{
	return o->kind == OBSERVED_RUN_FAILURE && o->failure.kind != RUN_NCCL_ERROR &&
	       !is_elsewhere(o) && !is_refusal(o);
}

/* Memory behind which there is nothing: /dev/shm is full, or a GPU is gone. */
static bool is_bus_error(const struct observed *o)
{
	return is_failure_of(o, RUN_CRASHED) &&
	       (strstr(o->failure.what, "Bus error") || strstr(o->failure.what, "SIGBUS"));
}

/*
 * Of a machine without a known pair nothing but the missing fact counts, unless all that was seen
 * to fail is something else.
 */
static bool no_pairs(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;

	return d->topology->gpu_n < 2 && fact_unknown(m->pci_listed) &&
	       (!any_seen(m, is_elsewhere) || any_seen(m, may_be_a_path));
}

/* NCCL or a fault of it concerns the network. */
static bool talks_of_network(const struct machine *m)
{
	const struct setting *off = machine_setting(m, "NCCL_IB_DISABLE");

	if (m->rdma_n || any_seen(m, is_of_gpu_and_nic))
		return true;
	if (off && strcmp(off->value, "0") != 0)
		return false;
	for (size_t i = 0; i < m->nccl.setting_n; i++)
		if (&m->nccl.settings[i] != off &&
		    (text_starts_with(m->nccl.settings[i].name, "NCCL_IB_") ||
		     text_starts_with(m->nccl.settings[i].name, "NCCL_NET_")))
			return true;
	return false;
}

static bool wants_peermem(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;

	return fact_unknown(m->peermem.loaded) && talks_of_network(m) &&
	       !any_seen(m, is_gpu_moved); /* that NIC reaches it */
}

/* NCCL or containers are spoken of, and no line of NCCL shows how GPUs reach each other. */
static bool wants_nccl_log(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;
	bool wanted = false;

	for (size_t i = 0; i < m->observed_n; i++) {
		const struct observed *o = &m->observed[i];

		if (o->kind == OBSERVED_NCCL_TRANSPORT)
			return false;
		wanted |= o->kind == OBSERVED_MESSAGE && o->message == MESSAGE_CHOSEN_GPUS;
	}
	return wanted;
}

/* NCCL's result alone: the warning that led to it is not in the text. */
static bool lacks_reason(const struct observed *o)
{
	return o->kind == OBSERVED_RUN_FAILURE && o->failure.kind == RUN_NCCL_ERROR &&
	       o->failure.code > 0 && run_failure_is_vague(&o->failure);
}

static bool has_reason(const struct observed *o)
{
	return o->kind == OBSERVED_NCCL_TRANSPORT || o->kind == OBSERVED_NCCL_WARNING ||
	       (o->kind == OBSERVED_RUN_FAILURE && !run_failure_is_vague(&o->failure));
}

static bool wants_reason(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;

	return any_seen(m, lacks_reason) && !any_seen(m, has_reason);
}

/*
 * P2P of GeForce cards over PCIe depends on the registry keys of the driver; a model may be
 * unknown.
 */
static bool wants_keys(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;

	if (!fact_unknown(m->driver.registry_dwords) || !fact_is(m->driver.flavor, DRIVER_OPEN))
		return false;
	for (size_t i = 0; i < m->gpu_n; i++)
		if (!fact_is(card_is_geforce(&m->gpus[i]), 0))
			return true;
	return false;
}

/*
 * A denial by the driver that says nothing of the machine if the cards are GeForce, and their
 * models are unknown.
 */
static bool wants_models(const struct diagnosis *d)
{
	const struct topology *t = d->topology;
	const struct machine *m = t->machine;

	for (size_t i = 0; m->pairs && i < t->gpu_n; i++)
		for (size_t j = 0; j < t->gpu_n; j++)
			for (enum p2p_cap cap = P2P_READ; i != j && cap <= P2P_WRITE; cap++) {
				struct fact_int s = m->pairs[i * t->gpu_n + j].p2p[cap];

				if (fact_known(s) &&
				    !fact_known(support_geforce_denial(&m->gpus[i], &m->gpus[j],
								       (enum p2p_status)s.value)))
					return true;
			}
	return false;
}

/* Some chips have no NVLink at all. */
static bool any_may_have_nvlink(const struct machine *m)
{
	for (size_t i = 0; i < m->gpu_n; i++) {
		const struct chip *c = card_chip(&m->gpus[i]);
		enum card_class class =
			(enum card_class)fact_or(card_class(&m->gpus[i]), CARD_CLASS_N);

		if (!c || chip_has_nvlink(c, class))
			return true;
	}
	return false;
}

static bool wants_nvlink(const struct diagnosis *d)
{
	return any_may_have_nvlink(d->topology->machine) && any_path(d, CHAIN_PATH, lacks_nvlink);
}

static bool wants_iommu(const struct diagnosis *d)
{
	return paths_lack(d, CHAIN_IOMMU) ||
	       (no_pairs(d) && fact_unknown(d->topology->machine->kernel.iommus));
}

static bool wants_iommu_log(const struct diagnosis *d)
{
	return wants_iommu(d) && fact_known(d->topology->machine->kernel.cmdline);
}

static bool wants_iommu_all(const struct diagnosis *d)
{
	return wants_iommu(d) && !fact_known(d->topology->machine->kernel.cmdline);
}

static bool wants_registers(const struct diagnosis *d)
{
	return no_pairs(d) || paths_lack(d, CHAIN_SWITCH) || paths_lack(d, CHAIN_EXPOSURE) ||
	       any_path(d, CHAIN_PATH, lacks_bridges);
}

/* The driver's answer of this kind, about a pair for which its answers do not suffice. */
static bool lacks_answer(const struct diagnosis *d, enum p2p_cap cap)
{
	const struct topology *t = d->topology;
	const struct machine *m = t->machine;

	for (size_t i = 0; i < t->gpu_n; i++)
		for (size_t j = 0; j < t->gpu_n; j++)
			if (i != j && lacks(topology_path(t, i, j), CHAIN_DRIVER) &&
			    (!m->pairs || !fact_known(m->pairs[i * t->gpu_n + j].p2p[cap])))
				return true;
	return false;
}

static bool wants_status(const struct diagnosis *d)
{
	return no_pairs(d) || lacks_answer(d, P2P_READ);
}

/* Reads are allowed, and nothing says that about writes. */
static bool wants_write_status(const struct diagnosis *d)
{
	return !wants_status(d) && lacks_answer(d, P2P_WRITE);
}

static bool wants_log(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;

	return !m->log_n && !fact_is(m->log_read, 1) && any_seen(m, may_be_in_the_log);
}

/*
 * The kernel log says why the driver does not work; what is in the way of data does not matter yet.
 */
static bool wants_driver_log(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;

	return !m->log_n && !fact_is(m->log_read, 1) && any_seen(m, is_of_driver);
}

static bool wants_fabric(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;

	return any_seen(m, is_of_fabric) && !any_seen(m, is_of_manager);
}

static bool knows_ports(const struct machine *m)
{
	for (size_t i = 0; i < m->rdma_n; i++)
		for (size_t k = 0; k < m->rdma[i].port_n; k++)
			if (fact_known(m->rdma[i].ports[k].state))
				return true;
	return false;
}

static bool wants_ports(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;

	return !knows_ports(m) && any_seen(m, is_of_connection);
}

static bool wants_port_rates(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;

	return !knows_ports(m) && any_seen(m, is_nic_rate);
}

/* The distance between the GPUs and the NICs that perftest used. */
static bool wants_nic_paths(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;

	return any_seen(m, is_of_perftest) && m->rdma_n &&
	       (!m->rdma[0].levels || !m->gpu_n || fact_unknown(m->rdma[0].levels[0])) &&
	       (!m->rdma[0].pci || m->rdma[0].pci->address.domain == PCI_NO_ADDRESS);
}

static bool wants_shared_memory(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;

	return fact_unknown(m->limits.shm_bytes) && any_seen(m, is_bus_error);
}

/*
 * vLLM says that CUDA refuses peer access, or that its own test of it failed: the driver's answer
 * tells which.
 */
static bool may_be_refusal(const struct observed *o)
{
	return is_refusal(o) ||
	       (o->kind == OBSERVED_MESSAGE && o->message == MESSAGE_ENGINE_NO_P2P);
}

/* What was refused is asked before what could be in the way of data. */
static bool wants_answer(const struct diagnosis *d)
{
	return any_seen(d->topology->machine, may_be_refusal) &&
	       (d->topology->gpu_n < 2 || lacks_answer(d, P2P_READ));
}

/*
 * Whether memory of a GPU can be shared at all depends on the card, the driver's kind and the
 * kernel.
 */
static bool wants_driver(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;

	return any_seen(m, is_of_gpu_and_nic) &&
	       (!m->gpu_n || !fact_known(m->gpus[0].model) || !fact_known(m->driver.flavor));
}

#define READ_STATUS "nvidia-smi topo -p2p r"
#define NCCL_LINES  "NCCL_DEBUG=INFO YOUR_COMMAND 2>&1 | grep NCCL"
#define IOMMU_LINES "sudo dmesg | grep -i -e iommu -e DMAR -e AMD-Vi"

/*
 * What explains most real faults first (the causes of tests/incidents); each asks for its own
 * facts.
 */
static const struct {
	bool (*wanted)(const struct diagnosis *d);
	struct question question;
} rows[] = {
	{wants_log,
	 {"sudo dmesg -T | grep -e NVRM -e AER -e fault",
	  "whether a GPU, its link or the IOMMU reported a fault at that time (Xid)"}},
	{wants_driver_log,
	 {"sudo dmesg | grep -e NVRM -e nvidia; lspci -nnk -d 10de:",
	  "why the driver does not work, and which driver has each GPU"}},
	{wants_reason, {NCCL_LINES, "why NCCL gave up: its warning before the error"}},
	{wants_fabric,
	 {"lspci -nn -d 10de:; systemctl status nvidia-fabricmanager --no-pager",
	  "whether there are NVSwitches, and why the fabric manager does not run"}},
	{wants_ports,
	 {"ibv_devinfo -v", "of both hosts: which ports are up, and with which addresses (GIDs)"}},
	{wants_shared_memory,
	 {"df -h /dev/shm", "in the container of the job: whether its shared memory is full"}},
	{wants_answer, {READ_STATUS, "which pairs the driver allows"}},
	{wants_models,
	 {"nvidia-smi -L", "the models: of GeForce cards the driver refuses P2P on any machine"}},
	{wants_port_rates, {"ibstat", "the rate of the NIC's ports, which perftest should reach"}},
	{wants_nic_paths,
	 {"nvidia-smi topo -m", "how far the NIC is from the GPU whose memory it moved"}},
	{wants_keys,
	 {"cat /proc/driver/nvidia/params",
	  "which P2P mechanism the registry keys of the driver select"}},
	{wants_peermem,
	 {"lsmod | grep -e peermem -e nv_peer_mem",
	  "whether NICs can reach GPU memory through the module"}},
	{wants_driver,
	 {"cat /proc/driver/nvidia/version; nvidia-smi -L; uname -a",
	  "whether card, driver and kernel can share GPU memory with a NIC (dma-buf)"}},
	{wants_nccl_log, {NCCL_LINES, "how NCCL connects each pair of GPUs, and why not by P2P"}},
	{wants_nvlink, {"nvidia-smi nvlink -s", "which NVLinks are up"}},
	{wants_matrix, {"nvidia-smi topo -m", "which GPUs the NVLinks join"}},
	{wants_iommu_all,
	 {"cat /proc/cmdline; " IOMMU_LINES, "whether an IOMMU translates peer traffic"}},
	{wants_iommu_log, {IOMMU_LINES, "whether an IOMMU translates peer traffic"}},
	{wants_registers,
	 {"sudo lspci -vvv", "ACS, the size of BAR1, and the bridges between the GPUs"}},
	{wants_status, {READ_STATUS, "which pairs the driver allows"}},
	{wants_write_status,
	 {"nvidia-smi topo -p2p w", "which pairs the driver allows to write to each other"}},
};

static bool is_asked(const struct question *asked, size_t n, const char *command)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(asked[i].command, command) == 0)
			return true;
	return false;
}

size_t diagnosis_ask(const struct diagnosis *d, struct question ret[static QUESTIONS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows) && n < QUESTIONS_MAX; i++)
		if (rows[i].wanted(d) && !is_asked(ret, n, rows[i].question.command))
			ret[n++] = rows[i].question;
	return n;
}
