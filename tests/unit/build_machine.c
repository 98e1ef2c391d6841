/* SPDX-License-Identifier: Apache-2.0 */
/* Machines built by hand for tests. */
#include "build_machine.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>

/* Arrays are as large as they may become, so that pointers into them stay valid. */
enum { MAX_FUNCTIONS = 4608, MAX_GPUS = 64, MAX_NICS = 64, MAX_LINES = 64 };

#define GIB ((int64_t)1 << 30)

static const char from[] = "built by a test";

struct machine *build_machine(void)
{
	struct arena *a = arena_new();
	struct machine *m = arena_alloc(a, 1, sizeof(*m));

	m->arena = a;
	m->source_name = from;
	m->note = m->recorded_by = "";
	m->pci = arena_alloc(a, MAX_FUNCTIONS, sizeof(*m->pci));
	m->gpus = arena_alloc(a, MAX_GPUS, sizeof(*m->gpus));
	m->rdma = arena_alloc(a, MAX_NICS, sizeof(*m->rdma));
	m->log = arena_alloc(a, MAX_LINES, sizeof(*m->log));
	m->observed = arena_alloc(a, MAX_LINES, sizeof(*m->observed));
	m->nccl.settings = arena_alloc(a, MAX_LINES, sizeof(*m->nccl.settings));
	m->root = m->pci_listed = m->rdma_listed = m->log_read = fact_int(1, from);
	m->driver.loaded = fact_int(1, from);
	m->driver.nvml_lists_all = fact_int(1, from);
	m->driver.flavor = fact_int(DRIVER_OPEN, from);
	m->driver.module_version = fact_str("580.159.04", from);
	m->driver.registry_dwords = fact_str("", from);
	m->cpu.vendor = fact_int(CPU_AMD, from);
	m->cpu.family = fact_int(0x17, from);
	m->cpu.model = fact_int(0x31, from);
	m->kernel.iommus = fact_int(0, from);
	m->kernel.release = fact_str("6.1.0-41-amd64", from);
	m->kernel.dma_buf = fact_int(1, from);
	m->driver.grdma_topology_override = fact_int(0, from);
	m->peermem.loaded = m->peermem.registered = fact_int(0, from);
	m->nccl.version = fact_int(22203, from);
	m->environment = fact_int(1, from);
	build_nodes(m, 1, 1);
	return m;
}

void build_free(struct machine *m)
{
	arena_free(m->arena);
}

static void check(bool holds, const char *what, const char *about)
{
	if (holds)
		return;
	fprintf(stderr, "build_machine: %s: %s\n", about, what);
	abort();
}

static struct pci_function *add_function(struct machine *m, const char *address,
					 struct pci_function *parent)
{
	struct pci_function *f = &m->pci[m->pci_n];

	check(m->pci_n < MAX_FUNCTIONS, "too many functions", address);
	check(pci_address_parse(address, &f->address) == 0, "no address", address);
	check(m->pci_n == 0 || pci_address_compare(f[-1].address, f->address) < 0,
	      "not in ascending order", address);
	f->index = m->pci_n++;
	f->name = arena_strdup(m->arena, address);
	f->parent = parent;
	f->depth = parent ? parent->depth + 1 : 0;
	f->root =
		parent ? parent->root
		       : arena_printf(m->arena, "pci%04x:%02x", f->address.domain, f->address.bus);
	f->numa_node = parent ? parent->numa_node : fact_int(0, from);
	f->iommu_group = fact_int_absent(from);
	f->iommu_type = fact_str_absent(from);
	f->link_speed = f->link_speed_max = fact_int(16000, from);
	f->link_width = f->link_width_max = fact_int(16, from);
	f->acs_ctl = fact_int_absent(from);
	f->payload = fact_int(256, from);
	f->config_size = 4096;
	return f;
}

struct pci_function *build_port(struct machine *m, const char *address, struct pci_function *parent,
				enum pci_port_type type)
{
	struct pci_function *f = add_function(m, address, parent);

	f->class_code = fact_int(0x060400, from);
	f->vendor = fact_int(0x1000, from);
	f->device = fact_int(0xc030, from);
	f->port_type = fact_int(type, from);
	if (type == PCI_PORT_ROOT || type == PCI_PORT_DOWNSTREAM)
		f->acs_ctl = fact_int(0, from);
	return f;
}

struct pci_function *build_endpoint(struct machine *m, const char *address,
				    struct pci_function *parent)
{
	struct pci_function *f = add_function(m, address, parent);

	f->port_type = fact_int(PCI_PORT_ENDPOINT, from);
	return f;
}

static void reset_pairs(struct machine *m)
{
	m->pairs = arena_alloc(m->arena, m->gpu_n * m->gpu_n, sizeof(*m->pairs));
	for (int cap = 0; cap < P2P_CAP_N; cap++)
		build_status(m, (enum p2p_cap)cap, cap == P2P_NVLINK ? P2P_NOT_SUPPORTED : P2P_OK);
}

struct gpu *build_gpu(struct machine *m, const char *address, struct pci_function *parent)
{
	struct pci_function *f = build_endpoint(m, address, parent);
	struct gpu *g = &m->gpus[m->gpu_n];

	check(m->gpu_n < MAX_GPUS, "too many GPUs", address);
	f->vendor = fact_int(0x10de, from);
	f->device = fact_int(0x2684, from);
	f->class_code = fact_int(0x030000, from);
	f->driver = fact_str("nvidia", from);
	g->index = m->gpu_n++;
	g->pci = f;
	g->vram_bytes = fact_int(24 * GIB, from);
	g->bar1_bytes = fact_int(32 * GIB, from);
	g->performance_state = fact_int(0, from);
	g->fabric_state = fact_int_absent(from);
	g->numa_id = fact_int_absent(from);
	build_model(g, "NVIDIA GeForce RTX 4090", 89);
	reset_pairs(m);
	return g;
}

struct rdma_device *build_nic(struct machine *m, const char *address, struct pci_function *parent,
			      const char *name)
{
	struct pci_function *f = build_endpoint(m, address, parent);
	struct rdma_device *r = &m->rdma[m->rdma_n];

	check(m->rdma_n < MAX_NICS, "too many NICs", address);
	f->vendor = fact_int(0x15b3, from);
	f->device = fact_int(0x1021, from);
	f->class_code = fact_int(0x020700, from);
	f->driver = fact_str("mlx5_core", from);
	r->index = m->rdma_n++;
	r->name = arena_strdup(m->arena, name);
	r->pci = f;
	r->ports = arena_alloc(m->arena, 1, sizeof(*r->ports));
	r->port_n = 1;
	r->ports[0].number = 1;
	r->ports[0].state = fact_str("ACTIVE", from);
	return r;
}

void build_nodes(struct machine *m, unsigned n, unsigned sockets)
{
	m->nodes = arena_alloc(m->arena, n, sizeof(*m->nodes));
	m->node_n = n;
	for (unsigned i = 0; i < n; i++) {
		m->nodes[i].id = i;
		m->nodes[i].cpus =
			fact_str(arena_printf(m->arena, "%u-%u", i * 8, i * 8 + 7), from);
	}
	m->cpu.sockets = fact_int(sockets, from);
}

void build_model(struct gpu *g, const char *model, int capability)
{
	g->model = fact_str(model, from);
	g->compute_capability = fact_int(capability, from);
}

void build_nvlinks(struct gpu *g, unsigned n, enum nvlink_remote type, const char *remote)
{
	for (unsigned i = 0; i < n; i++) {
		struct nvlink *l = &g->nvlinks[g->nvlink_n];

		l->index = g->nvlink_n++;
		l->active = fact_int(1, from);
		l->remote_type = fact_int(type, from);
		l->remote = fact_str(remote, from);
	}
	g->nvlink_active = fact_int(g->nvlink_n, from);
}

void build_status(struct machine *m, enum p2p_cap cap, enum p2p_status status)
{
	for (size_t i = 0; i < m->gpu_n * m->gpu_n; i++)
		m->pairs[i].p2p[cap] = fact_int(status, from);
}

void build_setting(struct machine *m, const char *name, const char *value)
{
	struct setting *s = &m->nccl.settings[m->nccl.setting_n++];

	*s = (struct setting){name, value, SETTING_ENVIRONMENT, "environment", true};
}

void build_observed(struct machine *m, enum observed_kind kind, int initiator, int target, bool ok)
{
	struct observed *o = &m->observed[m->observed_n++];

	*o = (struct observed){.kind = kind,
			       .initiator = initiator,
			       .target = target,
			       .ok = ok,
			       .from = "output.txt:7"};
}

void build_log(struct machine *m, enum log_kind kind, struct pci_function *f)
{
	struct log_line *l = &m->log[m->log_n++];

	*l = (struct log_line){.kind = kind, .pci = f, .severity = "", .text = ""};
}

void build_iommu(struct machine *m, const char *type)
{
	m->kernel.iommus = fact_int(1, from);
	for (size_t i = 0; i < m->pci_n; i++) {
		m->pci[i].iommu_group = fact_int((int64_t)i, from);
		m->pci[i].iommu_type = fact_str(type, from);
	}
}

struct machine *build_two_root_ports(void)
{
	struct machine *m = build_machine();
	struct pci_function *a = build_port(m, "0000:00:01.0", NULL, PCI_PORT_ROOT);
	struct pci_function *b = build_port(m, "0000:00:02.0", NULL, PCI_PORT_ROOT);

	build_gpu(m, "0000:01:00.0", a);
	build_gpu(m, "0000:02:00.0", b);
	return m;
}

struct machine *build_switch(void)
{
	struct machine *m = build_machine();
	struct pci_function *root = build_port(m, "0000:20:01.0", NULL, PCI_PORT_ROOT);
	struct pci_function *up = build_port(m, "0000:21:00.0", root, PCI_PORT_UPSTREAM);
	struct pci_function *a = build_port(m, "0000:22:00.0", up, PCI_PORT_DOWNSTREAM);
	struct pci_function *b = build_port(m, "0000:22:01.0", up, PCI_PORT_DOWNSTREAM);

	build_gpu(m, "0000:23:00.0", a);
	build_gpu(m, "0000:24:00.0", b);
	return m;
}

struct machine *build_root_ports(unsigned n, unsigned nodes, unsigned sockets)
{
	struct machine *m = build_machine();

	build_nodes(m, nodes, sockets);
	for (unsigned i = 0; i < n; i++) {
		unsigned bus = 0x10 + i * (0xe0 / n);
		char port[PCI_ADDRESS_LEN], gpu[PCI_ADDRESS_LEN];
		struct pci_function *f;

		snprintf(port, sizeof(port), "0000:%02x:01.1", bus & 0xff);
		snprintf(gpu, sizeof(gpu), "0000:%02x:00.0", (bus + 1) & 0xff);
		f = build_port(m, port, NULL, PCI_PORT_ROOT);
		f->numa_node = fact_int(i * nodes / n, from);
		build_gpu(m, gpu, f);
	}
	return m;
}
