/* SPDX-License-Identifier: Apache-2.0 */
/* struct machine as JSON: tables say which member is called what. */
#include "report/report.h"
#include "report/report_json_facts.h"
#include "report/report_json_impl.h"

#include "diagnose/run_failure.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/markup.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- values ---- */

json_t *json_text(const char *s)
{
	json_t *r = s ? json_string(s) : json_null();

	if (!r) {
		char *copy AUTO_FREE = xstrdup(s);

		text_clean(copy);
		r = json_string(copy);
	}
	return r;
}

json_t *json_known_text(const char *s)
{
	return *s ? json_text(s) : json_null();
}

json_t *json_pci_name(const struct pci_function *f)
{
	return json_text(f ? f->name : NULL);
}

/* ---- words ---- */

/* clang-format off */
static const char *const flavor_words[] = {
	[DRIVER_PROPRIETARY] = "proprietary", [DRIVER_OPEN] = "open",
	[DRIVER_NOUVEAU] = "nouveau", [DRIVER_NOVA] = "nova",
};
static const char *const vendor_words[] = {
	[CPU_OTHER] = "other", [CPU_INTEL] = "intel", [CPU_AMD] = "amd", [CPU_HYGON] = "hygon",
	[CPU_ZHAOXIN] = "zhaoxin", [CPU_ARM] = "arm",
};
static const char *const lockdown_words[] = {
	[LOCKDOWN_NONE] = "none", [LOCKDOWN_INTEGRITY] = "integrity",
	[LOCKDOWN_CONFIDENTIALITY] = "confidentiality",
};
static const char *const boot_words[] = {
	[BOOT_UNKNOWN] = "unknown", [BOOT_GRUB] = "grub", [BOOT_SYSTEMD_BOOT] = "systemd-boot",
	[BOOT_UKI] = "uki", [BOOT_OTHER] = "other",
};
static const char *const compute_mode_words[] = {
	"default", "exclusive-thread", "prohibited", "exclusive-process",
};
static const char *const fabric_words[] = {
	[FABRIC_NOT_SUPPORTED] = "not-supported", [FABRIC_NOT_STARTED] = "not-started",
	[FABRIC_IN_PROGRESS] = "in-progress", [FABRIC_COMPLETED] = "completed",
};
static const char *const remote_words[] = {
	[NVLINK_REMOTE_GPU] = "gpu", [NVLINK_REMOTE_IBMNPU] = "npu", [NVLINK_REMOTE_SWITCH] = "switch",
	[NVLINK_REMOTE_UNKNOWN] = "unknown",
};
static const char *const port_type_words[] = {
	[PCI_PORT_ENDPOINT] = "endpoint", [PCI_PORT_LEGACY_ENDPOINT] = "legacy-endpoint",
	[PCI_PORT_ROOT] = "root-port", [PCI_PORT_UPSTREAM] = "switch-upstream",
	[PCI_PORT_DOWNSTREAM] = "switch-downstream", [PCI_PORT_PCIE_TO_PCI] = "pcie-to-pci",
	[PCI_PORT_PCI_TO_PCIE] = "pci-to-pcie", [PCI_PORT_RC_ENDPOINT] = "root-complex-endpoint",
	[PCI_PORT_RC_EVENT_COLLECTOR] = "root-complex-event-collector",
};
static const char *const gid_words[] = {
	[GID_IB] = "ib", [GID_ROCE_V1] = "roce-v1", [GID_ROCE_V2] = "roce-v2",
};
static const char *const modprobe_words[] = {
	[MODPROBE_BLACKLIST] = "blacklist", [MODPROBE_OPTIONS] = "options",
	[MODPROBE_INSTALL] = "install", [MODPROBE_SOFTDEP] = "softdep",
};
static const char *const log_words[] = {
	[LOG_OTHER] = "other", [LOG_XID] = "xid", [LOG_NVRM] = "nvrm", [LOG_AER] = "aer",
	[LOG_IOMMU_FAULT] = "iommu-fault", [LOG_BAR] = "bar", [LOG_PEERMEM] = "peermem",
	[LOG_MODULE] = "module", [LOG_FABRIC] = "fabric", [LOG_ACS] = "acs",
};
static const char *const origin_words[] = {
	[SETTING_SYSTEM_CONF] = "system-conf", [SETTING_USER_CONF] = "user-conf",
	[SETTING_ENVIRONMENT] = "environment", [SETTING_PROCESS] = "process",
	[SETTING_SCRIPT] = "script",
};
static const char *const observed_words[] = {
	[OBSERVED_PEER_COPY] = "peer-copy", [OBSERVED_PEER_ACCESS] = "peer-access",
	[OBSERVED_BANDWIDTH] = "bandwidth", [OBSERVED_BOTH_WAYS] = "bandwidth-both-ways", [OBSERVED_RATE] = "rate", [OBSERVED_LATENCY] = "latency",
	[OBSERVED_NCCL_TRANSPORT] = "nccl-transport",
	[OBSERVED_RUN_FAILURE] = "run-failure",
	[OBSERVED_NCCL_WARNING] = "nccl-warning",
	[OBSERVED_NCCL_GDR_OFF] = "nccl-gdr-off",
	[OBSERVED_NCCL_GDR_HALF] = "nccl-gdr-one-end",
	[OBSERVED_MESSAGE] = "tool-message",
};
/* clang-format on */

/* ---- tables of facts ---- */

/* Each is named as the member is. */
#define INT(type, member)                                                                          \
	{                                                                                          \
#member, FIELD_INT, offsetof(type, member), NULL, 0, NULL                          \
	}
#define FLAG(type, member)                                                                         \
	{                                                                                          \
#member, FIELD_FLAG, offsetof(type, member), NULL, 0, NULL                         \
	}
#define STR(type, member)                                                                          \
	{                                                                                          \
#member, FIELD_STR, offsetof(type, member), NULL, 0, NULL                          \
	}
#define WORD(type, member, table)                                                                  \
	{                                                                                          \
#member, FIELD_WORD, offsetof(type, member), table,                                \
			sizeof(table) / sizeof(*(table)), NULL                                     \
	}
#define NAMED(type, member, names)                                                                 \
	{                                                                                          \
#member, FIELD_NAMED, offsetof(type, member), NULL, 0, names                       \
	}
#define END                                                                                        \
	{                                                                                          \
		0                                                                                  \
	}

/* clang-format off */
static const struct field pci_fields[] = {
	INT(struct pci_function, vendor), INT(struct pci_function, device),
	INT(struct pci_function, class_code), INT(struct pci_function, revision),
	INT(struct pci_function, subsystem_vendor), INT(struct pci_function, subsystem_device),
	STR(struct pci_function, driver), INT(struct pci_function, numa_node),
	STR(struct pci_function, local_cpus), INT(struct pci_function, iommu_group),
	STR(struct pci_function, iommu_type), FLAG(struct pci_function, enabled),
	FLAG(struct pci_function, boot_vga), STR(struct pci_function, power_state),
	INT(struct pci_function, link_speed), INT(struct pci_function, link_speed_max),
	INT(struct pci_function, link_width), INT(struct pci_function, link_width_max),
	INT(struct pci_function, rebar_sizes), INT(struct pci_function, rebar_bar),
	INT(struct pci_function, secondary_bus), INT(struct pci_function, subordinate_bus),
	WORD(struct pci_function, port_type, port_type_words),
	INT(struct pci_function, link_speed_cap), INT(struct pci_function, link_width_cap),
	INT(struct pci_function, link_speed_target), INT(struct pci_function, acs_cap),
	INT(struct pci_function, acs_ctl), INT(struct pci_function, acs_offset),
	INT(struct pci_function, payload_max), INT(struct pci_function, payload),
	FLAG(struct pci_function, relaxed_ordering), FLAG(struct pci_function, atomic_routing),
	INT(struct pci_function, atomic_completer),
	FLAG(struct pci_function, atomic_requester_enabled),
	FLAG(struct pci_function, atomic_egress_blocked), FLAG(struct pci_function, ats_enabled),
	INT(struct pci_function, aer_uncorrectable), INT(struct pci_function, aer_correctable),
	FLAG(struct pci_function, is_multifunction), END,
};
static const struct field gpu_fields[] = {
	INT(struct gpu, nvml_index), INT(struct gpu, cuda_ordinal), INT(struct gpu, minor),
	STR(struct gpu, model), STR(struct gpu, uuid), STR(struct gpu, vbios),
	INT(struct gpu, vram_bytes), INT(struct gpu, bar1_bytes),
	INT(struct gpu, compute_capability), INT(struct gpu, pcie_gen),
	INT(struct gpu, pcie_gen_max), INT(struct gpu, pcie_gen_device_max),
	INT(struct gpu, pcie_width), INT(struct gpu, pcie_width_max), INT(struct gpu, pcie_replays),
	INT(struct gpu, performance_state), WORD(struct gpu, compute_mode, compute_mode_words),
	FLAG(struct gpu, mig_enabled), FLAG(struct gpu, display_attached),
	FLAG(struct gpu, display_active), FLAG(struct gpu, persistence), INT(struct gpu, process_n),
	FLAG(struct gpu, gsp_firmware), STR(struct gpu, excluded), FLAG(struct gpu, dma_buf),
	INT(struct gpu, numa_id), INT(struct gpu, nvlink_active),
	WORD(struct gpu, fabric_state, fabric_words), INT(struct gpu, fabric_status),
	INT(struct gpu, fabric_health), END,
};
static const struct field nvlink_fields[] = {
	FLAG(struct nvlink, active), INT(struct nvlink, version),
	WORD(struct nvlink, remote_type, remote_words), STR(struct nvlink, remote), END,
};
static const struct field driver_fields[] = {
	FLAG(struct nvidia_driver, loaded), STR(struct nvidia_driver, module_version),
	WORD(struct nvidia_driver, flavor, flavor_words), STR(struct nvidia_driver, library_version),
	STR(struct nvidia_driver, installed_version), STR(struct nvidia_driver, installed_license),
	STR(struct nvidia_driver, origin), INT(struct nvidia_driver, cuda_version),
	STR(struct nvidia_driver, nvml), INT(struct nvidia_driver, device_nodes),
	INT(struct nvidia_driver, gpus_in_proc), STR(struct nvidia_driver, registry_dwords),
	INT(struct nvidia_driver, resizable_bar), FLAG(struct nvidia_driver, hmm_disabled),
	FLAG(struct nvidia_driver, hmm_placed), INT(struct nvidia_driver, hmm_end), INT(struct nvidia_driver, grdma_topology_override),
	STR(struct nvidia_driver, fabric_manager_version), INT(struct nvidia_driver, switches), END,
};
#define P2P(name, cap) {name, FIELD_NAMED, offsetof(struct gpu_pair, p2p[cap]), NULL, 0, p2p_status_code}
static const struct field gpu_pair_fields[] = {
	P2P("read", P2P_READ), P2P("write", P2P_WRITE), P2P("nvlink", P2P_NVLINK),
	P2P("atomics", P2P_ATOMICS), P2P("pci", P2P_PCI), INT(struct gpu_pair, common_ancestor), END,
};
static const struct field rm_fields[] = {
	NAMED(struct rm_p2p, connection, rm_connection_word), FLAG(struct rm_p2p, reads),
	FLAG(struct rm_p2p, writes), FLAG(struct rm_p2p, atomics), INT(struct rm_p2p, caps), END,
};
static const struct field rdma_fields[] = {
	STR(struct rdma_device, firmware), STR(struct rdma_device, hca_type),
	STR(struct rdma_device, board_id), STR(struct rdma_device, node_guid),
	STR(struct rdma_device, driver), END,
};
static const struct field port_fields[] = {
	STR(struct rdma_port, state), STR(struct rdma_port, phys_state),
	STR(struct rdma_port, link_layer), INT(struct rdma_port, rate_mbps),
	FLAG(struct rdma_port, gids_listed), END,
};
static const struct field gid_fields[] = {
	STR(struct rdma_gid, gid), WORD(struct rdma_gid, type, gid_words), END,
};
static const struct field node_fields[] = {
	STR(struct numa_node, cpus), INT(struct numa_node, memory_kib), END,
};
static const struct field cpu_fields[] = {
	WORD(struct cpu, vendor, vendor_words), INT(struct cpu, family), INT(struct cpu, model),
	STR(struct cpu, name), INT(struct cpu, sockets), INT(struct cpu, threads),
	STR(struct cpu, online), END,
};
static const struct field kernel_fields[] = {
	STR(struct kernel, release), STR(struct kernel, compiler),
	INT(struct kernel, compiler_major), STR(struct kernel, compiler_family),
	INT(struct kernel, installed_compiler_major), FLAG(struct kernel, exact_compiler),
	FLAG(struct kernel, headers), STR(struct kernel, cmdline),
	WORD(struct kernel, lockdown, lockdown_words), FLAG(struct kernel, secure_boot),
	INT(struct kernel, iommus), STR(struct kernel, iommu_names), FLAG(struct kernel, dma_buf),
	STR(struct kernel, hypervisor), STR(struct kernel, container),
	WORD(struct kernel, boot_loader, boot_words), FLAG(struct kernel, grubby), STR(struct kernel, distribution),
	STR(struct kernel, distribution_id), STR(struct kernel, board), STR(struct kernel, bios), END,
};
static const struct field module_fields[] = {
	FLAG(struct module, loaded), INT(struct module, users), STR(struct module, used_by),
	STR(struct module, version), STR(struct module, file), STR(struct module, depends),
	STR(struct module, license), END,
};
static const struct field limits_fields[] = {
	INT(struct limits, memlock_bytes), INT(struct limits, memlock_hard_bytes),
	INT(struct limits, shm_bytes), INT(struct limits, shm_free_bytes),
	FLAG(struct limits, shm_writable), END,
};
static const struct field nccl_fields[] = {
	STR(struct nccl, library), INT(struct nccl, version), INT(struct nccl, pid), END,
};
static const struct field peermem_fields[] = {
	FLAG(struct peermem, loaded), FLAG(struct peermem, listed),
	FLAG(struct peermem, registered), FLAG(struct peermem, legacy_loaded),
	STR(struct peermem, depends), FLAG(struct peermem, api_in_kernel),
	STR(struct peermem, ofed), STR(struct peermem, ofed_running),
	FLAG(struct peermem, ofed_modules), STR(struct peermem, ofed_kernel), END,
};
static const struct field machine_fields[] = {
	FLAG(struct machine, root), FLAG(struct machine, pci_listed),
	FLAG(struct machine, rdma_listed), FLAG(struct machine, log_read), END,
};
/* clang-format on */

/* An array member made by `make` from each element. */
#define SET_ARRAY(object, name, make, array, n)                                                    \
	do {                                                                                       \
		json_t *list_ = json_array();                                                      \
		for (size_t i_ = 0; i_ < (n); i_++)                                                \
			json_array_append_new(list_, make(&(array)[i_]));                          \
		json_object_set_new(object, name, list_);                                          \
	} while (0)

/* The same of elements that have facts. */
#define SET_FACTS(object, name, make, array, n, origins)                                           \
	do {                                                                                       \
		json_t *list_ = json_array();                                                      \
		for (size_t i_ = 0; i_ < (n); i_++)                                                \
			json_array_append_new(list_, make(&(array)[i_], origins));                 \
		json_object_set_new(object, name, list_);                                          \
	} while (0)

/* Members whose values origins name: see json_add_facts. */
#define OWN(...) ((const char *const[]){__VA_ARGS__, NULL})

static json_t *facts(const struct field *fields, const void *of, struct json_origins *o)
{
	return json_add_facts(json_object(), o, fields, of, NULL);
}

/* ---- PCI ---- */

static json_t *range(uint64_t start, uint64_t size)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, start);
	return json_pack("{s:s, s:I}", "start", text, "size", (json_int_t)size);
}

static json_t *bars_json(const struct pci_function *f)
{
	json_t *bars;

	if (!f->bars_known)
		return json_null();
	bars = json_array();
	for (int i = 0; i < 6; i++) {
		const struct pci_bar *b = &f->bars[i];
		json_t *bar;

		if (!b->size)
			continue;
		bar = range(b->start, b->size);
		json_object_set_new(bar, "bar", json_integer(i));
		json_object_set_new(bar, "io", json_boolean(b->io));
		json_object_set_new(bar, "is_64bit", json_boolean(b->is_64bit));
		json_object_set_new(bar, "prefetchable", json_boolean(b->prefetchable));
		json_object_set_new(bar, "assigned", json_boolean(b->assigned));
		json_array_append_new(bars, bar);
	}
	return bars;
}

static json_t *windows_json(const struct pci_function *f)
{
	if (!f->windows_known)
		return json_null();
	return json_pack("{s:o, s:o}", "memory", range(f->window.start, f->window.size),
			 "prefetchable", range(f->prefetch_window.start, f->prefetch_window.size));
}

static json_t *pci_json(const struct pci_function *f, struct json_origins *origins)
{
	json_t *o = json_pack("{s:o, s:o, s:o, s:I, s:o}", "address", json_text(f->name), "parent",
			      json_pci_name(f->parent), "root", json_text(f->root), "config_size",
			      (json_int_t)f->config_size, "config_trouble",
			      json_text(f->config_trouble));

	json_add_facts(o, origins, pci_fields, f, OWN("address", "iommu_group"));
	json_object_set_new(o, "bars", bars_json(f));
	json_object_set_new(o, "windows", windows_json(f));
	return o;
}

/* ---- GPUs ---- */

static json_t *nvlink_json(const struct nvlink *l, struct json_origins *origins)
{
	return json_add_facts(json_pack("{s:i}", "link", (int)l->index), origins, nvlink_fields, l,
			      NULL);
}

static json_t *gpu_json(const struct gpu *g, struct json_origins *origins)
{
	json_t *o = json_pack("{s:I, s:o}", "index", (json_int_t)g->index, "pci",
			      json_pci_name(g->pci));

	json_add_facts(o, origins, gpu_fields, g, OWN("pci"));
	SET_FACTS(o, "nvlinks", nvlink_json, g->nvlinks,
		  g->nvlink_n < GPU_NVLINKS ? g->nvlink_n : GPU_NVLINKS, origins);
	return o;
}

static json_t *driver_pair_json(const struct machine *m, size_t i, size_t j,
				struct json_origins *origins)
{
	const struct gpu_pair *p = machine_pair(m, i, j);
	json_t *o = json_pack("{s:I, s:I}", "initiator", (json_int_t)i, "target", (json_int_t)j);

	json_add_facts(o, origins, gpu_pair_fields, p, NULL);
	json_object_set_new(o, "resource_manager", facts(rm_fields, &p->rm, origins));
	return o;
}

static json_t *driver_json(const struct machine *m, struct json_origins *origins)
{
	json_t *o = facts(driver_fields, &m->driver, origins);
	json_t *pairs = json_array();

	for (size_t i = 0; m->pairs && i < m->gpu_n; i++) {
		for (size_t j = 0; j < m->gpu_n; j++) {
			if (i != j)
				json_array_append_new(pairs, driver_pair_json(m, i, j, origins));
		}
	}
	json_object_set_new(o, "pairs", pairs);
	return o;
}

/* ---- RDMA ---- */

static json_t *gid_json(const struct rdma_gid *g, struct json_origins *origins)
{
	return json_add_facts(json_pack("{s:i}", "index", (int)g->index), origins, gid_fields, g,
			      NULL);
}

static json_t *port_json(const struct rdma_port *p, struct json_origins *origins)
{
	json_t *o = json_pack("{s:i}", "port", (int)p->number);

	json_add_facts(o, origins, port_fields, p, NULL);
	SET_FACTS(o, "gids", gid_json, p->gids, p->gid_n, origins);
	return o;
}

static json_t *rdma_json(const struct rdma_device *r, struct json_origins *origins)
{
	json_t *o = json_pack("{s:I, s:o, s:o}", "index", (json_int_t)r->index, "name",
			      json_text(r->name), "pci", json_pci_name(r->pci));

	json_add_facts(o, origins, rdma_fields, r, OWN("name"));
	SET_FACTS(o, "ports", port_json, r->ports, r->port_n, origins);
	return o;
}

/* ---- the rest of the host ---- */

static json_t *module_json(const struct module *m, struct json_origins *origins)
{
	return json_add_facts(json_pack("{s:o}", "name", json_text(m->name)), origins,
			      module_fields, m, OWN("name"));
}

static json_t *modprobe_json(const struct modprobe_line *l)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:i}", "kind", modprobe_words[l->kind], "module",
			 json_text(l->module), "text", json_text(l->text), "file",
			 json_text(l->file), "line", (int)l->line);
}

static json_t *log_json(const struct log_line *l)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "kind", log_words[l->kind], "time_us",
			 l->time_us < 0 ? json_null() : json_integer(l->time_us), "pci",
			 json_pci_name(l->pci), "code", json_known_int(l->code), "severity",
			 json_text(l->severity), "text", json_text(l->text));
}

static json_t *setting_json(const struct setting *s)
{
	return json_pack("{s:o, s:o, s:s, s:o, s:b}", "name", json_text(s->name), "value",
			 json_text(s->value), "origin", origin_words[s->origin], "from",
			 json_text(s->from), "in_force", (int)s->in_force);
}

json_t *run_failure_json(const struct run_failure *f)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:s}", "kind", run_failure_word(f->kind),
			 "rank", f->rank < 0 ? json_null() : json_integer(f->rank), "code",
			 f->code < 0 ? json_null() : json_integer(f->code), "sequence",
			 f->sequence < 0 ? json_null() : json_integer(f->sequence), "what",
			 json_text(f->what), "meaning", run_failure_find(f)->meaning);
}

static json_t *observed_json(const struct observed *o)
{
	return json_pack(
		"{s:s, s:i, s:i, s:b, s:b, s:f, s:f, s:f, s:I, s:I, s:o, s:o, s:o, s:o, s:o}",
		"kind", observed_words[o->kind], "initiator", o->initiator, "target", o->target,
		"ok", (int)o->ok, "pulled", (int)o->pulled, "value", o->value, "low", o->low,
		"high", o->high, "samples", (json_int_t)o->samples, "bytes", (json_int_t)o->bytes,
		"tool", json_text(o->run.tool), "when", json_text(o->run.when), "text",
		json_text(o->text), "from", json_text(o->from), "failure",
		o->kind == OBSERVED_RUN_FAILURE ? run_failure_json(&o->failure) : json_null());
}

static json_t *weighed_json(const struct weighed *w)
{
	static const char *const words[CONDITION_N] = {"driver", "driver-registry",
						       "kernel", "bios",
						       "boot",   "gpu",
						       "wiring"};
	bool changed = w->changed.what < CONDITION_N;

	return json_pack("{s:o, s:o, s:o, s:b, s:o, s:I, s:o, s:o, s:o}", "tool",
			 json_text(w->run.tool), "when", json_text(w->run.when), "from",
			 json_text(w->from), "kept", (int)w->kept, "age_s",
			 w->age_s < 0 ? json_null() : json_integer(w->age_s), "observed",
			 (json_int_t)w->observed_n, "changed",
			 changed ? json_string(words[w->changed.what]) : json_null(), "was",
			 json_text(w->changed.was), "is", json_text(w->changed.is));
}

static json_t *text_part_json(const struct text_part *p)
{
	json_t *o = json_pack("{ss ss? ss si si sb}", "file", p->file, "name", p->name, "about",
			      p->about, "first_line", (int)p->first, "last_line", (int)p->last,
			      "cut", p->cut);

	if (p->cut_at)
		json_object_set_new(o, "cut_at", json_integer(p->cut_at));
	return o;
}

static json_t *trouble_json(const struct trouble *t)
{
	return json_pack("{s:o, s:o}", "where", json_text(t->where), "what", json_text(t->what));
}

static json_t *node_json(const struct numa_node *n, struct json_origins *origins)
{
	return json_add_facts(json_pack("{s:i}", "id", (int)n->id), origins, node_fields, n, NULL);
}

static json_t *nccl_json(const struct nccl *n, struct json_origins *origins)
{
	json_t *o = facts(nccl_fields, n, origins);

	SET_ARRAY(o, "settings", setting_json, n->settings, n->setting_n);
	return o;
}

json_t *machine_json(const struct machine *m, struct json_origins *origins)
{
	json_t *o = json_pack("{s:o, s:b, s:o, s:o}", "source", json_text(m->source_name),
			      "recorded", (int)m->recorded, "note", json_text(m->note),
			      "recorded_by", json_text(m->recorded_by));

	json_add_facts(o, origins, machine_fields, m, NULL);
	SET_FACTS(o, "gpus", gpu_json, m->gpus, m->gpu_n, origins);
	json_object_set_new(o, "driver", driver_json(m, origins));
	SET_FACTS(o, "rdma", rdma_json, m->rdma, m->rdma_n, origins);
	SET_FACTS(o, "pci", pci_json, m->pci, m->pci_n, origins);
	SET_FACTS(o, "numa", node_json, m->nodes, m->node_n, origins);
	json_object_set_new(o, "cpu", facts(cpu_fields, &m->cpu, origins));
	json_object_set_new(o, "kernel", facts(kernel_fields, &m->kernel, origins));
	SET_FACTS(o, "modules", module_json, m->modules, m->module_n, origins);
	SET_ARRAY(o, "modprobe", modprobe_json, m->modprobe, m->modprobe_n);
	SET_ARRAY(o, "log", log_json, m->log, m->log_n);
	json_object_set_new(o, "limits", facts(limits_fields, &m->limits, origins));
	json_object_set_new(o, "nccl", nccl_json(&m->nccl, origins));
	json_object_set_new(o, "peermem", facts(peermem_fields, &m->peermem, origins));
	SET_ARRAY(o, "observed", observed_json, m->observed, m->observed_n);
	SET_ARRAY(o, "weighed", weighed_json, m->weighed, m->weighed_n);
	if (m->text_part_n)
		SET_ARRAY(o, "texts", text_part_json, m->text_parts, m->text_part_n);
	SET_ARRAY(o, "troubles", trouble_json, m->troubles, m->trouble_n);
	return o;
}
