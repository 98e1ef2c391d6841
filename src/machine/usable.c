/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/usable.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "machine/xid.h"

#include <stdio.h>
#include <string.h>

#define ANY_ID UINT32_MAX /* PCI_ANY_ID */

struct device {
	const struct machine *m;
	const struct pci_function *pci;
	const struct gpu *gpu; /* NULL: a NIC */
};

static bool is_asleep(const struct device *d)
{
	return fact_str_is(d->pci->power_state, "D3cold");
}

/*
 * Nothing could be decoded, although there were bytes: they were all ones. Or the driver found so.
 */
static bool is_off_bus(const struct device *d)
{
	if (d->gpu && fact_is(d->gpu->lost, 1))
		return true;
	return d->pci->config_trouble && !d->pci->config_size && !is_asleep(d);
}

/* Linux drivers/vfio (vfio-pci, mlx5_vfio_pci, ...), pci-stub.c, xen-pciback. */
bool driver_is_for_guests(const char *driver)
{
	return strstr(driver, "vfio") || strstr(driver, "pciback") ||
	       strcmp(driver, "pci-stub") == 0;
}

static bool is_set_aside(const struct device *d)
{
	return driver_is_for_guests(fact_str_or(d->pci->driver, ""));
}

/* The right driver is known only for GPUs. */
static bool is_of_other_driver(const struct device *d)
{
	return d->gpu && fact_known(d->pci->driver) &&
	       strcmp(d->pci->driver.value, "nvidia") != 0 && !is_set_aside(d);
}

/* If the module is not loaded at all, that is the fault, not this device. */
static bool is_unbound(const struct device *d)
{
	return fact_absent(d->pci->driver) && !(d->gpu && fact_is(d->m->driver.loaded, 0));
}

static bool is_excluded(const struct device *d)
{
	return d->gpu && fact_str_is(d->gpu->excluded, "Yes");
}

/* nvmlComputeMode_t; in the exclusive modes one process may still use several GPUs. */
static const struct compute_mode compute_modes[] = {
	[1] = {"exclusive-thread", "one thread of one process may use it"},
	[2] = {"prohibited", "no process may use it"},
	[3] = {"exclusive-process", "one process may use it"},
};

#define PROHIBITED (&compute_modes[2])

const struct compute_mode *gpu_compute_mode(const struct gpu *g)
{
	int64_t mode = fact_or(g->compute_mode, 0);

	return mode > 0 && (size_t)mode < sizeof(compute_modes) / sizeof(compute_modes[0])
		       ? &compute_modes[mode]
		       : NULL;
}

static bool is_prohibited(const struct device *d)
{
	return d->gpu && gpu_compute_mode(d->gpu) == PROHIBITED;
}

static bool awaits_fabric(const struct device *d)
{
	const struct gpu *g = d->gpu;

	return g &&
	       (fact_is(g->fabric_state, FABRIC_NOT_STARTED) ||
		fact_is(g->fabric_state, FABRIC_IN_PROGRESS) ||
		(fact_is(g->fabric_state, FABRIC_COMPLETED) && fact_is_not(g->fabric_status, 0)));
}

static bool is_split(const struct device *d)
{
	return d->gpu && fact_is_not(d->gpu->mig_enabled, 0);
}

static bool (*const faults[DEVICE_FAULT_N])(const struct device *d) = {
	[DEVICE_OFF_BUS] = is_off_bus,
	[DEVICE_ASLEEP] = is_asleep,
	[DEVICE_SET_ASIDE] = is_set_aside,
	[DEVICE_OTHER_DRIVER] = is_of_other_driver,
	[DEVICE_NO_DRIVER] = is_unbound,
	[DEVICE_EXCLUDED] = is_excluded,
	[DEVICE_PROHIBITED] = is_prohibited,
	[DEVICE_FABRIC_NOT_READY] = awaits_fabric,
	[DEVICE_MIG] = is_split,
};

unsigned device_faults(const struct machine *m, const struct pci_function *f, const struct gpu *g)
{
	const struct device d = {m, f, g};
	unsigned found = 0;

	for (int i = 0; i < DEVICE_FAULT_N; i++)
		found |= faults[i](&d) ? 1u << i : 0;
	return found;
}

bool gpu_has_fault(const struct machine *m, const struct gpu *g, enum device_fault fault)
{
	const struct device d = {m, g->pci, g};

	return faults[fault](&d);
}

/* ---- devices of guests ---- */

/* An item of ids= as drivers/vfio/pci/vfio_pci.c takes it and pci_match_one_device compares it. */
struct vfio_id {
	unsigned vendor, device, subsystem_vendor, subsystem_device, class_code, class_mask;
};

static bool parse_id(const char *item, struct vfio_id *ret)
{
	*ret = (struct vfio_id){.subsystem_vendor = ANY_ID, .subsystem_device = ANY_ID};
	return sscanf(item, "%x:%x:%x:%x:%x:%x", &ret->vendor, &ret->device, &ret->subsystem_vendor,
		      &ret->subsystem_device, &ret->class_code, &ret->class_mask) >= 2;
}

/* An unknown property of a device may match. */
static bool id_fits(unsigned wanted, struct fact_int have)
{
	return wanted == ANY_ID || !fact_is_not(have, (int64_t)wanted);
}

static bool id_matches(const struct vfio_id *id, const struct pci_function *f)
{
	const struct fact_int class_code = f->class_code;

	return id_fits(id->vendor, f->vendor) && id_fits(id->device, f->device) &&
	       id_fits(id->subsystem_vendor, f->subsystem_vendor) &&
	       id_fits(id->subsystem_device, f->subsystem_device) &&
	       (!fact_known(class_code) ||
		!(((unsigned)class_code.value ^ id->class_code) & id->class_mask));
}

/* "10de:2330,10de:2331:ffffffff:...", up to a blank, has the device. */
static bool ids_have(const char *ids, const struct pci_function *f)
{
	const char *end;

	ids += strspn(ids, "\"'");
	end = ids + strcspn(ids, " \t\n\"'");
	while (ids < end) {
		struct vfio_id id;

		if (parse_id(ids, &id) && id_matches(&id, f))
			return true;
		ids += strcspn(ids, ", \t\n\"'");
		ids += ids < end;
	}
	return false;
}

/* Also within a shell assignment. */
static bool begins_word(const char *line, const char *at)
{
	return at == line || strchr(" \t\"'=", at[-1]);
}

/* The words "KEY..." of a line: whether one names the device. */
static bool line_names(const char *line, const char *key, const struct pci_function *f)
{
	for (const char *at = line; (at = strstr(at, key)); at += strlen(key))
		if (begins_word(line, at) && ids_have(at + strlen(key), f))
			return true;
	return false;
}

static bool parameter_names(const char *line, const struct pci_function *f)
{
	return line_names(line, "vfio-pci.ids=", f) || line_names(line, "vfio_pci.ids=", f);
}

bool module_is_vfio(const char *module)
{
	return strcmp(module, "vfio-pci") == 0 || strcmp(module, "vfio_pci") == 0;
}

/* "vfio,vfio-pci", up to a blank or a quote. */
static bool list_has_vfio(const char *list)
{
	AUTO_FREE char *copy = xstrdup(list + strspn(list, "\"'"));
	char *rest = copy, *name;

	copy[strcspn(copy, " \t\n\"'")] = '\0';
	while ((name = strsep(&rest, ",")))
		if (module_is_vfio(name))
			return true;
	return false;
}

/* Of systemd-modules-load and of dracut. */
bool line_loads_vfio(const char *line)
{
	static const char *const keys[] = {"modules_load=", "rd.modules_load=", "rd.driver.pre=",
					   "rd.driver.post="};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		for (const char *at = line; (at = strstr(at, keys[i])); at += strlen(keys[i]))
			if (begins_word(line, at) && list_has_vfio(at + strlen(keys[i])))
				return true;
	return false;
}

static bool claim_names(const struct guest_claim *c, const struct pci_function *f)
{
	if (c->kind == GUEST_OVERRIDE)
		return strcmp(c->text, f->name) == 0;
	return c->kind == GUEST_MODULE ? line_names(c->text, "ids=", f)
				       : parameter_names(c->text, f);
}

/* The file of this system that reserves it for guests; NULL if none that was read does. */
static const char *file_keeping(const struct machine *files, const struct pci_function *f)
{
	for (size_t i = 0; i < files->modprobe_n; i++) {
		const struct modprobe_line *l = &files->modprobe[i];

		if (l->kind == MODPROBE_OPTIONS && module_is_vfio(l->module) &&
		    line_names(l->text, "ids=", f))
			return l->file;
	}
	for (size_t i = 0; i < files->guest_claim_n; i++)
		if (claim_names(&files->guest_claims[i], f))
			return files->guest_claims[i].from;
	return NULL;
}

static const char *kept_for_guests(const struct machine *m, const struct machine *files,
				   const struct pci_function *f)
{
	const char *by;

	if (driver_is_for_guests(fact_str_or(f->driver, "")))
		return f->driver.value;
	if (parameter_names(fact_str_or(m->kernel.cmdline, ""), f))
		return "vfio-pci.ids= on the kernel's command line";
	by = file_keeping(m, f);
	return by || !files ? by : file_keeping(files, f);
}

/*
 * A program chooses the devices, as in "install vfio-pci /sbin/choose"; not one that blocks the
 * module.
 */
static bool runs_program(const struct modprobe_line *l)
{
	return l->kind == MODPROBE_INSTALL && module_is_vfio(l->module) &&
	       !strstr(l->text, "/false") && !strstr(l->text, "/true");
}

/*
 * The file that loads it without naming a device: something else then assigns devices. NULL: none.
 */
static const char *file_loading(const struct machine *files)
{
	for (size_t i = 0; i < files->modprobe_n; i++)
		if (runs_program(&files->modprobe[i]))
			return files->modprobe[i].file;
	for (size_t i = 0; i < files->guest_claim_n; i++)
		if (files->guest_claims[i].kind == GUEST_MODULE &&
		    !strstr(files->guest_claims[i].text, "ids="))
			return files->guest_claims[i].from;
	return NULL;
}

struct guest_use guest_use(const struct machine *m, const struct machine *files)
{
	struct guest_use use = {0};

	for (size_t i = 0; i < m->pci_n && !use.by; i++)
		use = (struct guest_use){&m->pci[i], kept_for_guests(m, files, &m->pci[i])};
	if (use.by)
		return use;
	if (line_loads_vfio(fact_str_or(m->kernel.cmdline, "")))
		return (struct guest_use){NULL, "the kernel's command line"};
	use = (struct guest_use){NULL, file_loading(m)};
	if (!use.by && files)
		use.by = file_loading(files);
	return use;
}

/* Its upstream port: what one port redirects keeps devices below the others apart too. */
static const struct pci_function *switch_of(const struct pci_function *port)
{
	return port->parent ? port->parent : port;
}

static bool is_guest_below(const struct pci_function *f, const struct pci_function *port)
{
	return f->parent && driver_is_for_guests(fact_str_or(f->driver, "")) &&
	       pci_is_below(f->parent, switch_of(port));
}

static const struct pci_function *root_of(const struct pci_function *f)
{
	while (f->parent)
		f = f->parent;
	return f;
}

/* mlx5's table of functions for "data direct", and rdma_topo's. */
bool pci_is_direct_nic(const struct pci_function *f)
{
	return fact_is(f->vendor, 0x15b3) && fact_is(f->device, 0x2100);
}

static bool is_direct_nic_beside(const struct pci_function *f, const struct pci_function *port)
{
	return pci_is_direct_nic(f) && f->parent && root_of(f) == root_of(port);
}

struct acs_kept acs_kept(const struct machine *m, const struct pci_function *port)
{
	for (size_t i = 0; i < m->pci_n; i++)
		if (is_guest_below(&m->pci[i], port))
			return (struct acs_kept){ACS_FOR_GUEST, &m->pci[i]};
	for (size_t i = 0; i < m->pci_n; i++)
		if (is_direct_nic_beside(&m->pci[i], port))
			return (struct acs_kept){ACS_FOR_DIRECT_NIC, &m->pci[i]};
	return (struct acs_kept){ACS_FREE, NULL};
}

/* ---- kernel log ---- */

static enum log_proof xid_proof(const struct log_line *l)
{
	const struct xid *x = fact_known(l->code) ? xid_find(l->code.value) : NULL;

	return x && (!x->proof_text || strstr(l->text, x->proof_text)) ? x->proof : PROOF_NONE;
}

enum log_proof log_line_proof(const struct log_line *l)
{
	static const struct {
		const char *text;
		enum log_proof proof;
	} texts[] = {
		{"RmInitAdapter failed", PROOF_GPU_NOT_STARTED},
		{"PCI I/O region assigned to your NVIDIA device is invalid", PROOF_GPU_NO_BAR},
		{"BAR0 is 0M", PROOF_GPU_NO_BAR},
		{"BAR1 is 0M", PROOF_GPU_NO_BAR},
		{"peer DMA address", PROOF_PEER_MISALIGNED},
	};

	if (l->kind == LOG_XID && xid_proof(l))
		return xid_proof(l);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strstr(l->text, texts[i].text))
			return texts[i].proof;
	return PROOF_NONE;
}

/* ---- ports ---- */

struct fact_int nic_active(const struct rdma_device *d)
{
	struct fact_int active = d->port_n ? fact_int(0, "port state")
					   : fact_int_unknown("its ports could not be listed");

	for (size_t i = 0; i < d->port_n; i++) {
		struct fact_str state = d->ports[i].state;

		if (fact_str_is(state, "ACTIVE"))
			return fact_int(1, state.from);
		if (!fact_known(state))
			active = fact_int_unknown(FACT_WHY(state));
	}
	return active;
}

/* ---- NVSwitch ---- */

static bool links_to_switch(const struct gpu *g)
{
	for (unsigned i = 0; i < g->nvlink_n && i < GPU_NVLINKS; i++)
		if (fact_is(g->nvlinks[i].active, 1) &&
		    fact_is(g->nvlinks[i].remote_type, NVLINK_REMOTE_SWITCH))
			return true;
	return false;
}

bool machine_has_nvswitch(const struct machine *m)
{
	if (fact_or(m->driver.switches, 0) > 0)
		return true;
	for (size_t i = 0; i < m->gpu_n; i++)
		if (links_to_switch(&m->gpus[i]) ||
		    fact_is_not(m->gpus[i].fabric_state, FABRIC_NOT_SUPPORTED))
			return true;
	return false;
}
