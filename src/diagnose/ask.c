/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/ask.h"

#include "base/array.h"
#include "base/text.h"
#include "support/card.h"

/* ---- what is missing ---- */

/* Some pair of GPUs is undecided or doubtful, and this step of its chain is unknown. */
static bool any_path(const struct diagnosis *d, enum chain_step step,
		     bool (*is_it)(const struct path *p, enum chain_step step))
{
	const struct topology *t = d->topology;

	for (size_t i = 0; i < t->gpu_n; i++)
		for (size_t j = 0; j < t->gpu_n; j++) {
			const struct path *p = i != j ? topology_path(t, i, j) : NULL;

			if (p && is_it(p, step))
				return true;
		}
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

static bool lacks_nvlink(const struct path *p, enum chain_step step)
{
	return p->chain[step].reason == REASON_NVLINK_UNKNOWN;
}

/* Of a machine without a known pair nothing but the missing fact counts. */
static bool no_pairs(const struct diagnosis *d)
{
	return d->topology->gpu_n < 2 && fact_unknown(d->topology->machine->pci_listed);
}

/* NCCL or a fault of it concerns the network. */
static bool talks_of_network(const struct machine *m)
{
	if (m->rdma_n)
		return true;
	for (size_t i = 0; i < m->nccl.setting_n; i++)
		if (text_starts_with(m->nccl.settings[i].name, "NCCL_IB_") ||
		    text_starts_with(m->nccl.settings[i].name, "NCCL_NET_"))
			return true;
	return false;
}

static bool wants_peermem(const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;

	return fact_unknown(m->peermem.loaded) && talks_of_network(m);
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

/* P2P of GeForce cards over PCIe depends on the registry keys of the driver; a model may be unknown. */
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
	       paths_lack(d, CHAIN_PATH);
}

static bool wants_status(const struct diagnosis *d)
{
	return no_pairs(d) || paths_lack(d, CHAIN_DRIVER);
}

#define IOMMU_LINES "sudo dmesg | grep -i -e iommu -e DMAR -e AMD-Vi"

/* What explains most real faults first (the causes of tests/incidents); each asks for its own facts. */
static const struct {
	bool (*wanted)(const struct diagnosis *d);
	struct question question;
} rows[] = {
	{wants_keys,
	 {"cat /proc/driver/nvidia/params",
	  "which P2P mechanism the registry keys of the driver select"}},
	{wants_peermem,
	 {"lsmod | grep -e peermem -e nv_peer_mem",
	  "whether NICs can reach GPU memory through the module"}},
	{wants_nccl_log,
	 {"NCCL_DEBUG=INFO YOUR_COMMAND 2>&1 | grep NCCL",
	  "how NCCL connects each pair of GPUs, and why not by P2P"}},
	{wants_nvlink, {"nvidia-smi nvlink -s", "which NVLinks are up"}},
	{wants_iommu_all,
	 {"cat /proc/cmdline; " IOMMU_LINES, "whether an IOMMU translates peer traffic"}},
	{wants_iommu_log, {IOMMU_LINES, "whether an IOMMU translates peer traffic"}},
	{wants_registers,
	 {"sudo lspci -vvv", "ACS, the size of BAR1, and the bridges between the GPUs"}},
	{wants_status, {"nvidia-smi topo -p2p r", "which pairs the driver allows"}},
};

size_t diagnosis_ask(const struct diagnosis *d, struct question ret[static QUESTIONS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows) && n < QUESTIONS_MAX; i++)
		if (rows[i].wanted(d))
			ret[n++] = rows[i].question;
	return n;
}
