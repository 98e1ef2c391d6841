/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the NVIDIA driver from its files: module, flavour, versions, settings, origin. */
#include "machine/gpu_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "machine/module_file.h"
#include "machine/modules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define VERSION    "proc/driver/nvidia/version"
#define PARAMS     "proc/driver/nvidia/params"
#define FABRIC_LOG "var/log/fabricmanager.log"

bool nvidia_driver_value(const char *text, const char *key, char *buf, size_t size)
{
	AUTO_FREE char *prefix = xprintf("%s:", key);
	const char *value;
	size_t n;

	if (!text_after(text, prefix, &value, &n))
		return false;
	if (n >= 2 && value[0] == '"' && value[n - 1] == '"') {
		value++;
		n -= 2;
	}
	text_copy(buf, size, value, n);
	return true;
}

/* "550.90.07", "390.157" */
static bool is_version(const char *s)
{
	return isdigit((unsigned char)*s) && strchr(s, '.') &&
	       s[strspn(s, "0123456789.")] == '\0' && !text_ends_with(s, ".");
}

/* "580.159.04" in the name of a library file: "libcuda.so.580.159.04"; NULL: no version in it. */
static const char *library_version(const char *file)
{
	const char *version = strstr(file, ".so.");

	return version && is_version(version + 4) ? version + 4 : NULL;
}

/* ---- the loaded module ---- */

/*
 * "NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug ..." or
 * "NVIDIA UNIX Open Kernel Module for x86_64  550.90.07  Release Build ..."
 */
static struct fact_str module_version(struct reader *r, const char *nvrm)
{
	AUTO_FREE char *copy = xstrdup(nvrm);
	char *rest = copy;

	for (char *word; (word = strsep(&rest, " \t"));)
		if (is_version(word))
			return fact_str(arena_strdup(r->m->arena, word), VERSION);
	return fact_str_unknown("no version number in " VERSION);
}

static struct fact_int module_flavor(const char *nvrm)
{
	if (strstr(nvrm, "Open Kernel Module"))
		return fact_int(DRIVER_OPEN, VERSION);
	if (strstr(nvrm, "Kernel Module"))
		return fact_int(DRIVER_PROPRIETARY, VERSION);
	return fact_int_unknown("no flavour in " VERSION);
}

/* Which driver is bound to the GPUs if the nvidia module is not loaded. */
static struct fact_int other_flavor(const struct machine *m)
{
	static const struct {
		const char *driver;
		enum driver_flavor flavor;
	} others[] = {
		{"nouveau", DRIVER_NOUVEAU},
		{"nova", DRIVER_NOVA},
		{"nova-core", DRIVER_NOVA},
		{"NovaCore", DRIVER_NOVA},
	};

	for (size_t i = 0; i < m->gpu_n; i++)
		for (size_t k = 0; k < sizeof(others) / sizeof(*others); k++)
			if (strcmp(fact_str_or(m->gpus[i].pci->driver, ""), others[k].driver) == 0)
				return fact_int(others[k].flavor, m->gpus[i].pci->driver.from);
	return fact_int_absent(VERSION);
}

static void read_version(struct reader *r)
{
	struct nvidia_driver *d = &r->m->driver;
	struct fact_str text = read_text(r, VERSION);
	char nvrm[512];

	if (fact_unknown(text)) {
		d->loaded = d->flavor = fact_int_unknown(text.from);
		d->module_version = fact_str_unknown(text.from);
		return;
	}
	if (fact_absent(text)) {
		d->loaded = fact_int(0, text.from);
		d->flavor = other_flavor(r->m);
		d->module_version = fact_str_absent(text.from);
		return;
	}
	d->loaded = fact_int(1, VERSION);
	if (!nvidia_driver_value(text.value, "NVRM version", nvrm, sizeof(nvrm)))
		nvrm[0] = '\0';
	d->flavor = module_flavor(nvrm);
	d->module_version = module_version(r, nvrm);
}

/* ---- its settings ---- */

static struct fact_str param_str(struct reader *r, struct fact_str text, const char *key)
{
	char buf[4096];

	if (!fact_known(text))
		return text;
	if (nvidia_driver_value(text.value, key, buf, sizeof(buf)))
		return fact_str(arena_strdup(r->m->arena, buf), PARAMS);
	/* A text may have lost a line; the file of every driver that knows the key has one. */
	return source_stated(r->s) ? fact_str_unknown(arena_printf(r->m->arena, "%s: %s in " PARAMS,
								   source_stated(r->s), key))
				   : fact_str_absent(PARAMS);
}

static struct fact_int param_int(struct reader *r, struct fact_str text, const char *key)
{
	struct fact_str s = param_str(r, text, key);
	int64_t value;

	if (!fact_known(s))
		return (struct fact_int){0, s.state, s.from};
	if (text_to_i64(s.value, &value) < 0) {
		read_trouble(r, PARAMS, "%s is '%s', which is not a number", key, s.value);
		return fact_int_unknown("no number in " PARAMS);
	}
	return fact_int(value, PARAMS);
}

static void read_params(struct reader *r)
{
	struct nvidia_driver *d = &r->m->driver;
	struct fact_str text = read_text(r, PARAMS);

	d->registry_dwords = param_str(r, text, "RegistryDwords");
	d->registry_dwords_per_device = param_str(r, text, "RegistryDwordsPerDevice");
	/* Keys may be in the line that a text has lost. */
	if (fact_unknown(d->registry_dwords_per_device) && fact_str_is(d->registry_dwords, ""))
		d->registry_dwords = d->registry_dwords_per_device;
	d->resizable_bar = param_int(r, text, "EnableResizableBar");
	d->grdma_topology_override = param_int(r, text, "GrdmaPciTopoCheckOverride");
}

/* ---- heterogeneous memory management ---- */

#define IOMEM       "proc/iomem"
#define DISABLE_HMM "sys/module/nvidia_uvm/parameters/uvm_disable_hmm"

static struct fact_int read_flag(struct reader *r, const char *path)
{
	struct fact_str s = read_str(r, "%s", path);

	if (!fact_known(s))
		return INT_LIKE(s);
	if (strlen(s.value) == 1 && strchr("YN10", *s.value))
		return fact_int(*s.value == 'Y' || *s.value == '1', s.from);
	read_trouble(r, path, "is '%s', neither Y nor N", s.value);
	return fact_int_unknown(s.from);
}

/* " 7fe000000000-7fffffffffff : nvidia-uvm-hmm", once for each GPU; zeros unless root reads it. */
static void read_hmm_places(struct reader *r, struct fact_str text)
{
	struct nvidia_driver *d = &r->m->driver;
	const char *line = NULL;
	uint64_t last = 0;
	bool placed = false;
	size_t n;

	d->hmm_placed = d->hmm_end = INT_LIKE(text);
	if (!fact_known(text))
		return;
	while (text_next_line(&line, &n, text.value)) {
		const char *dash = memchr(line, '-', n);
		uint64_t end;

		if (!dash || !memmem(line, n, "nvidia-uvm-hmm", 14))
			continue;
		placed = true;
		end = strtoull(dash + 1, NULL, 16);
		last = end > last && end <= INT64_MAX ? end : last;
	}
	d->hmm_placed = fact_int(placed, text.from);
	d->hmm_end = last     ? fact_int((int64_t)last, text.from)
		     : placed ? fact_int_unknown(FACT_NEEDS_ROOT ": " IOMEM)
			      : fact_int_absent(text.from);
}

static void read_hmm(struct reader *r)
{
	struct nvidia_driver *d = &r->m->driver;

	if (!fact_is(d->loaded, 1)) {
		d->hmm_disabled = d->hmm_placed = d->hmm_end =
			fact_int_unknown("the nvidia module is not loaded");
		return;
	}
	d->hmm_disabled = read_flag(r, DISABLE_HMM);
	read_hmm_places(r, read_text(r, IOMEM));
}

int driver_branch(struct fact_str version)
{
	return fact_known(version) ? (int)strtol(version.value, NULL, 10) : -1;
}

/* ---- registry keys ---- */

/* Quotes come from a shell, or from a file written for one. */
char *driver_registry_list(struct fact_str list)
{
	char *copy = xstrdup(fact_str_or(list, "")), *to = copy;

	for (const char *s = copy; *s; s++)
		if (!strchr(" \t\n\v\f\r\"", *s))
			*to++ = *s;
	*to = '\0';
	return copy;
}

bool driver_names_gpu(const char *text, const struct gpu *g)
{
	struct pci_address address;
	char name[PCI_ADDRESS_LEN + 8];

	snprintf(name, sizeof(name), "%s%s", text, strchr(text, '.') ? "" : ".0");
	return pci_address_parse(name, &address) == 0 &&
	       pci_address_compare(address, g->pci->address) == 0;
}

/* Splits "KEY=VALUE"; the driver skips what has no key, no value, or more than one "=". */
static bool split_pair(char *pair, char **ret_value)
{
	char *equals = strchr(pair, '=');

	if (!equals || equals == pair || !equals[1] || strchr(equals + 1, '='))
		return false;
	*equals = '\0';
	*ret_value = equals + 1;
	return true;
}

/*
 * The value of KEY in "KEY=0x11;OTHER=1", or, with a GPU, in what follows its address in
 * "pci=0000:01:00.0;KEY=1;pci=0000:02:00.0;KEY=2". Each pair overwrites the one before, so the last
 * one counts: open-gpu-kernel-modules rm_parse_option_string (osapi.c),
 * nv_parse_per_device_option_string (os-registry.c), RmWriteRegistryDword (registry.c), 535 to 595.
 */
static struct fact_int last_dword(struct fact_str list, const struct gpu *g, const char *key)
{
	struct fact_int ret = fact_int_absent(list.from);
	AUTO_FREE char *copy = driver_registry_list(list);
	char *rest = copy, *pair, *value;
	bool counts = !g;
	int64_t n;

	while ((pair = strsep(&rest, ";"))) {
		if (!split_pair(pair, &value))
			continue;
		if (g && strcmp(pair, "pci") == 0)
			counts = driver_names_gpu(value, g);
		else if (counts && strcasecmp(pair, key) == 0)
			ret = text_to_i64(value, &n) < 0 ? fact_int_unknown("no number in " PARAMS)
							 : fact_int(n, list.from);
	}
	return ret;
}

struct fact_int driver_registry_dword(const struct nvidia_driver *d, const char *key)
{
	struct fact_str dwords = d->registry_dwords;

	if (!fact_known(dwords))
		return (struct fact_int){0, dwords.state, dwords.from};
	return last_dword(dwords, NULL, key);
}

struct fact_int driver_gpu_dword(const struct nvidia_driver *d, const struct gpu *g,
				 const char *key)
{
	struct fact_int own = last_dword(d->registry_dwords_per_device, g, key);

	return fact_absent(own) ? driver_registry_dword(d, key) : own;
}

int64_t driver_forced_p2p(const struct nvidia_driver *d, const struct gpu *g)
{
	int64_t force = fact_or(driver_gpu_dword(d, g, "ForceP2P"), 0);

	return (force & 3) == 1 || (force >> 4 & 3) == 1 ? force : 0;
}

/* ---- the user-space library ---- */

static const char *const library_folders[] = {
	"usr/lib/x86_64-linux-gnu",
	"usr/lib/x86_64-linux-gnu/nvidia/current",
	"usr/lib/aarch64-linux-gnu",
	"usr/lib64",
	"usr/lib",
	"usr/lib64/nvidia",
	"usr/local/nvidia/lib64",
	"run/opengl-driver/lib",
};

/*
 * The versioned file that NAME.so.1 leads to, in the first of the usual folders that has one.
 * Absent: none has.
 */
static struct fact_str find_library(struct reader *r, const char *name)
{
	struct fact_str none = fact_str_absent(name);

	for (size_t i = 0; i < sizeof(library_folders) / sizeof(*library_folders); i++) {
		struct fact_str link = read_link_name(r, "%s/%s.so.1", library_folders[i], name);
		const char *version = library_version(fact_str_or(link, ""));

		if (version)
			return fact_str(version, link.from);
		if (fact_unknown(link))
			none = link;
		else if (fact_known(link)) /* to another link, which is not followed */
			none = fact_str_unknown(link.from);
	}
	return none;
}

static void read_library(struct reader *r)
{
	struct nvidia_driver *d = &r->m->driver;
	struct fact_str cuda = find_library(r, "libcuda");
	struct fact_str nvml = find_library(r, "libnvidia-ml");

	d->nvml_library = nvml;
	d->library_version = fact_known(cuda) || !fact_known(nvml) ? cuda : nvml;
}

/* ---- where it came from ---- */

/* The first sign found decides. */
static const struct {
	const char *path, *origin;
} origin_signs[] = {
	{"usr/bin/nvidia-uninstall", "runfile"},
	{"var/lib/dkms/nvidia", "dkms"},
	{"var/lib/dkms/nvidia-open", "dkms"},
	{"var/lib/dkms/nvidia-current", "dkms"},
	{"var/lib/dkms/nvidia-current-open", "dkms"},
	{"usr/share/doc/nvidia-driver", "distribution"},
	{"usr/share/doc/nvidia-kernel-common", "distribution"},
	{"usr/share/licenses/nvidia-utils", "distribution"},
	{"usr/share/licenses/nvidia-driver", "distribution"},
	{"var/log/nvidia-installer.log", "runfile"}, /* weak: it outlives an uninstallation */
};

static struct fact_str find_origin(struct reader *r)
{
	const struct module *module = machine_module(r->m, "nvidia");
	const char *file = module ? fact_str_or(module->file, "") : "", *why = NULL;

	if (fact_known(r->m->kernel.container))
		return fact_str("container", r->m->kernel.container.from);
	for (size_t i = 0; i < sizeof(origin_signs) / sizeof(*origin_signs); i++) {
		struct fact_int there = read_exists(r, "%s", origin_signs[i].path);

		if (fact_is(there, 1))
			return fact_str(origin_signs[i].origin, there.from);
		if (fact_unknown(there))
			why = there.from;
	}
	if (strstr(file, "/dkms/"))
		return fact_str("dkms", module->file.from);
	if (*file && !strstr(file, "kernel/drivers/video/")) /* where the runfile puts it */
		return fact_str("distribution", module->file.from);
	return fact_str_unknown(why ? why : "no sign of an installer or a package");
}

/* ---- the module on disk ---- */

static bool versions_differ(const struct nvidia_driver *d)
{
	return fact_known(d->module_version) && fact_known(d->library_version) &&
	       strcmp(d->module_version.value, d->library_version.value) != 0;
}

/* The file is large, so it is opened only to explain why the versions differ. */
static void read_installed(struct reader *r)
{
	const struct module *module = machine_module(r->m, "nvidia");
	struct nvidia_driver *d = &r->m->driver;
	struct fact_str text;

	if (module && fact_absent(module->file)) {
		d->installed_version = d->installed_license = fact_str_absent(module->file.from);
	} else if (module && fact_is(module->loaded, 0)) {
		d->installed_version = module->version;
		d->installed_license = module->license;
	} else if (versions_differ(d)) {
		text = read_text(r, "modinfo-nvidia.txt");
		d->installed_version = modinfo_field(r, text, "nvidia", "version=");
		d->installed_license = modinfo_field(r, text, "nvidia", "license=");
	} else {
		d->installed_version = d->installed_license =
			fact_str_unknown("the module's file was not opened");
	}
}

/* ---- P2P through BAR1 ---- */

static struct fact_int has_p2p(struct reader *r, struct fact_str text)
{
	unsigned real, stubs;

	if (!fact_known(text))
		return INT_LIKE(text);
	p2p_functions_count(text.value, &real, &stubs);
	if (stubs)
		return fact_int(0, text.from);
	if (real == P2P_FUNCTIONS)
		return fact_int(1, text.from);
	if (!real)
		return fact_int_absent(text.from);
	return fact_int_unknown(arena_printf(r->m->arena, "only %u of %d functions are in %s", real,
					     P2P_FUNCTIONS, text.from));
}

/* Other NVIDIA cards officially support P2P over PCIe; a reader does not judge what they can do. */
static bool may_be_geforce(const struct gpu *g)
{
	return !fact_known(g->model) || strstr(g->model.value, "GeForce");
}

/* The driver allows P2P with another such card, because of a registry key or an edited source. */
static bool is_allowed(const struct machine *m, size_t i)
{
	for (size_t j = 0; j < m->gpu_n; j++)
		if (i != j && may_be_geforce(&m->gpus[j]) &&
		    fact_is(m->pairs[i * m->gpu_n + j].p2p[P2P_READ], P2P_OK) &&
		    !fact_is(m->pairs[i * m->gpu_n + j].p2p[P2P_NVLINK], P2P_OK))
			return true;
	return false;
}

/* It matters only for cards for which NVIDIA's own module has no P2P. */
static bool wants_p2p_functions(const struct reader *r)
{
	const struct machine *m = r->m;

	if (r->request->parts & MACHINE_MODULE_FILE)
		return m->gpu_n > 0;
	for (size_t i = 0; i < m->gpu_n; i++)
		if (may_be_geforce(&m->gpus[i]) &&
		    (driver_forced_p2p(&m->driver, &m->gpus[i]) || is_allowed(m, i)))
			return true;
	return false;
}

/* ---- the gate for managed memory ---- */

#define GATE_PARAMETER "sys/module/nvidia_uvm/parameters/" UVM_GATE_PARAMETER

static struct fact_int has_gate(struct fact_str text)
{
	return fact_known(text) ? fact_int(uvm_gate_is_in(text.value), text.from) : INT_LIKE(text);
}

/* Named functions prove that the module is loaded; an empty list proves nothing. */
static struct fact_int gate_loaded(struct reader *r, const struct module *uvm)
{
	struct fact_str parameter;
	struct fact_int gate;

	if (fact_is(uvm->loaded, 0))
		return fact_int_absent(uvm->loaded.from);
	parameter = read_str(r, GATE_PARAMETER);
	gate = fact_known(parameter) ? fact_int(1, parameter.from)
				     : has_gate(read_text(r, "uvm-functions-loaded.txt"));
	return fact_is(gate, 0) && !fact_is(uvm->loaded, 1) ? uvm->loaded : gate;
}

static void uvm_gate_read(struct reader *r)
{
	const struct module *uvm = machine_module(r->m, "nvidia_uvm");
	struct uvm_gate *g = &r->m->driver.uvm_gate;

	if (!uvm)
		return;
	g->loaded = gate_loaded(r, uvm);
	g->installed = fact_absent(uvm->file) ? fact_int_absent(uvm->file.from)
					      : has_gate(read_text(r, "uvm-functions-file.txt"));
}

/* ---- both modules ---- */

/* A comparison reads all of them. A loaded module was complete when it was loaded. */
static void torn_read(struct reader *r)
{
	const struct module *uvm = machine_module(r->m, "nvidia_uvm");

	if (!r->m->gpu_n || (fact_is(r->m->driver.loaded, 1) && uvm && fact_is(uvm->loaded, 1)))
		r->m->driver.torn = fact_str_absent("proc/modules");
	else
		r->m->driver.torn = read_text(r, "torn-modules.txt");
}

void bar1_p2p_read(struct reader *r)
{
	const struct module *module = machine_module(r->m, "nvidia");
	struct bar1_p2p *p = &r->m->driver.bar1_p2p;
	struct fact_str text;

	p->installed = p->loaded = fact_int_unknown("the module's file was not opened");
	p->mark = fact_str_unknown(p->installed.from);
	r->m->driver.uvm_gate = (struct uvm_gate){p->installed, p->installed};
	torn_read(r);
	if (!wants_p2p_functions(r))
		return;
	uvm_gate_read(r);
	if (fact_is(r->m->driver.loaded, 1))
		p->loaded = has_p2p(r, read_text(r, "p2p-functions-loaded.txt"));
	else
		p->loaded = fact_int_unknown("the nvidia module is not loaded");
	if (module && fact_absent(module->file)) {
		p->installed = fact_int_absent(module->file.from);
		p->mark = fact_str_absent(module->file.from);
		return;
	}
	text = read_text(r, "p2p-functions-file.txt");
	p->installed = has_p2p(r, text);
	p->mark = modinfo_field(r, text, "nvidia", "onehop=");
}

/* ---- NVSwitch ---- */

/* The fabric manager logs its version at each start; the last one counts. */
static struct fact_str manager_version(struct reader *r)
{
	static const char mark[] = "Fabric Manager version is : ";
	struct fact_str log = read_text(r, FABRIC_LOG);
	const char *last = NULL, *next = fact_str_or(log, "");
	char version[32];

	if (fact_unknown(log))
		return log;
	while ((next = strstr(next, mark)))
		last = next += strlen(mark);
	if (last)
		text_copy(version, sizeof(version), last, strcspn(last, " \t\r\n"));
	if (!last || !is_version(version))
		return fact_str_unknown("no version in " FABRIC_LOG
					": run nv-fabricmanager --version");
	return fact_str(arena_strdup(r->m->arena, version), FABRIC_LOG);
}

static void read_fabric(struct reader *r)
{
	struct nvidia_driver *d = &r->m->driver;
	struct fact_int manager = read_exists(r, "usr/bin/nv-fabricmanager");
	char **names;
	size_t n;

	d->switches = read_list(r, &names, &n, "proc/driver/nvidia-nvswitch/devices");
	source_free_names(names, n);
	if (fact_is(manager, 1))
		d->fabric_manager_version = manager_version(r);
	else if (fact_is(manager, 0))
		d->fabric_manager_version = fact_str_absent(manager.from);
	else
		d->fabric_manager_version = fact_str_unknown(manager.from);
}

void nvidia_driver_read(struct reader *r)
{
	read_version(r);
	read_params(r);
	read_hmm(r);
	read_library(r);
	r->m->driver.origin = find_origin(r);
	read_installed(r);
	read_fabric(r);
}
