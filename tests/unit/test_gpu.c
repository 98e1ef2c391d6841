/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs: what the driver's files say, what NVML says (asked through a stand-in), and how CUDA
 * numbers them. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "capture/capture_impl.h"
#include "machine/gpu_impl.h"
#include "machine/nvml_api.h"
#include "nvml_standin.h"

#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define DEVICES "sys/bus/pci/devices/"
#define QUICK   (MACHINE_PCI | MACHINE_GPUS | MACHINE_NVML | MACHINE_NVML_LINKS)

/* ---- a machine with n GPUs at 0000:<41 + i>:00.0 ---- */

static void put(struct source *map, const char *path, const char *text)
{
	source_put_file(map, path, text, strlen(text));
}

static __attribute__((format(printf, 3, 4))) void put_at(struct source *map, const char *text,
							 const char *fmt, ...)
{
	char path[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	put(map, path, text);
}

static void put_there(struct source *map, const char *path)
{
	source_put_error(map, path, SOURCE_LINK, EINVAL); /* there, but no link */
}

static struct source *bare_gpus(unsigned n)
{
	struct source *map = source_new_map("test");
	struct strbuf names = {0};

	for (unsigned i = 0; i < n; i++) {
		strbuf_printf(&names, "0000:%x:00.0\n", 0x41 + i);
		put_at(map, "0x10de\n", DEVICES "0000:%x:00.0/vendor", 0x41 + i);
		put_at(map, "0x2335\n", DEVICES "0000:%x:00.0/device", 0x41 + i);
		put_at(map, "0x030200\n", DEVICES "0000:%x:00.0/class", 0x41 + i);
	}
	source_put_list(map, "sys/bus/pci/devices", strbuf_str(&names));
	strbuf_done(&names);
	return map;
}

#define NVRM_OPEN                                                                                  \
	"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  "     \
	"(dvs-builder@U22-I3-AE18-23-3)  Tue Sep 16 22:00:00 UTC 2025\n"                           \
	"GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"

static void put_driver(struct source *map, unsigned n)
{
	struct strbuf names = {0};

	put(map, "proc/driver/nvidia/version", NVRM_OPEN);
	put(map, "proc/driver/nvidia/params",
	    "EnableResizableBar: 0\nGrdmaPciTopoCheckOverride: 1\nRegistryDwords: "
	    "\"ForceP2P=0x11;RMForceP2PType=1\"\nRegistryDwordsPerDevice: \"\"\n");
	put_there(map, "dev/nvidiactl");
	put_there(map, "usr/bin/nvidia-modprobe");
	for (unsigned i = 0; i < n; i++) {
		char text[512], node[32];

		strbuf_printf(&names, "0000:%x:00.0\n", 0x41 + i);
		snprintf(text, sizeof(text),
			 "Model: \t\t NVIDIA H200\nIRQ:   \t\t 60\nGPU UUID: \t "
			 "GPU-0000000%u-0000-0000-0000-000000000000\nVideo BIOS: \t "
			 "96.00.bc.00.01\nBus Location: \t 0000:%x:00.0\nDevice Minor: \t %u\nGPU "
			 "Firmware: \t 580.159.04\nGPU Excluded:\t No\n",
			 i, 0x41 + i, n - 1 - i);
		put_at(map, text, "proc/driver/nvidia/gpus/0000:%x:00.0/information", 0x41 + i);
		snprintf(node, sizeof(node), "dev/nvidia%u", i);
		put_there(map, node);
	}
	source_put_list(map, "proc/driver/nvidia/gpus", strbuf_str(&names));
	strbuf_done(&names);
}

static struct machine *read_machine(struct source *map, unsigned parts)
{
	struct machine_request request = {.parts = parts};
	struct machine *m = xcalloc(1, sizeof(*m));
	struct reader r = {.m = m, .s = map, .request = &request};

	m->arena = arena_new();
	pci_read_all(&r);
	gpu_read(&r);
	source_free(map);
	return m;
}

static void done(struct machine *m)
{
	arena_free(m->arena);
	free(m);
}

static bool has_trouble(const struct machine *m, const char *where, const char *what)
{
	for (size_t i = 0; i < m->trouble_n; i++)
		if (strstr(m->troubles[i].where, where) && strstr(m->troubles[i].what, what))
			return true;
	return false;
}

/* ---- the stand-in ---- */

static char *standin_path(bool old)
{
	const char *folder = getenv("NVML_STANDIN_DIR");

	return xprintf("%s/nvml_standin%s.so", folder ? folder : ".", old ? "_old" : "");
}

static struct nvml_standin *standin(bool old, unsigned devices, unsigned links)
{
	AUTO_FREE char *path = standin_path(old);
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	struct nvml_standin *s = library ? dlsym(library, "nvml_standin") : NULL;

	if (!s) {
		fprintf(stderr, "%s: %s\n", path, dlerror());
		abort();
	}
	*s = (struct nvml_standin){.devices = devices, .links = links, .broken = -1};
	return s;
}

/* What NVML would tell of the machine, put into it. */
static void ask_standin(struct source *map, bool old, unsigned parts)
{
	AUTO_FREE char *path = standin_path(old), *text = NULL;
	size_t size;

	nvml_capture_from(map, path, parts, &text, &size);
	assert_int_equal(strlen(text), size);
	source_put_file(map, "nvml.json", text, size);
}

static struct machine *read_with_standin(unsigned n, bool old, unsigned parts)
{
	struct source *map = bare_gpus(n);

	put_driver(map, n);
	put(map, "environment.txt", "");
	ask_standin(map, old, parts);
	return read_machine(map, parts);
}

/* ---- the driver's files ---- */

static void driver_files_are_read(void **state)
{
	struct source *map = bare_gpus(2);
	struct machine *m;

	(void)state;
	put_driver(map, 2);
	source_put_link(map, "usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.580.159.04");
	m = read_machine(map, QUICK);
	assert_int_equal(m->gpu_n, 2);
	assert_true(fact_is(m->driver.loaded, 1));
	assert_true(fact_is(m->driver.flavor, DRIVER_OPEN));
	assert_string_equal(m->driver.module_version.value, "580.159.04");
	assert_string_equal(m->driver.library_version.value, "580.159.04");
	assert_string_equal(m->driver.registry_dwords.value, "ForceP2P=0x11;RMForceP2PType=1");
	assert_true(fact_is(m->driver.resizable_bar, 0));
	assert_true(fact_is(m->driver.grdma_topology_override, 1));
	assert_true(fact_is(m->driver.gpus_in_proc, 2));
	assert_true(fact_is(m->driver.device_nodes, 2));
	assert_string_equal(m->gpus[1].model.value, "NVIDIA H200");
	assert_string_equal(m->gpus[1].excluded.value, "No");
	assert_true(fact_is(m->gpus[1].minor, 0));
	assert_true(fact_is(m->gpus[1].gsp_firmware, 1));
	done(m);
}

/* HMM's addresses: the last counts; zeros are what somebody who is not root gets to see. */
static void hmm_is_read(void **state)
{
	static const struct {
		const char *parameter, *iomem; /* NULL: not there */
		int disabled, placed;          /* -1: not known, -2: absent */
		int64_t end;
	} cases[] = {
		{"N\n",
		 "  7fe000000000-7fefffffffff : nvidia-uvm-hmm\n"
		 "  7fd000000000-7fdfffffffff : nvidia-uvm-hmm\n",
		 0, 1, 0x7fefffffffff},
		{"Y\n", "", 1, 0, -2},
		{"N\n", "00000000-00000000 : nvidia-uvm-hmm\n", 0, 1, -1},
		{NULL, "", -2, 0, -2},
		{"perhaps\n", "", -1, 0, -2},
		{"N\n", "nvidia-uvm-hmm", 0, 1, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static const char path[] = "sys/module/nvidia_uvm/parameters/uvm_disable_hmm";
		struct source *map = bare_gpus(1);
		const struct nvidia_driver *d;
		struct machine *m;

		put_driver(map, 1);
		if (cases[i].parameter)
			put(map, path, cases[i].parameter);
		else
			source_put_error(map, path, SOURCE_FILE, ENOENT);
		put(map, "proc/iomem", cases[i].iomem);
		m = read_machine(map, QUICK);
		d = &m->driver;
		if (cases[i].disabled >= 0)
			assert_true(fact_is(d->hmm_disabled, cases[i].disabled));
		else
			assert_true(cases[i].disabled == -2 ? fact_absent(d->hmm_disabled)
							    : fact_unknown(d->hmm_disabled));
		assert_true(fact_is(d->hmm_placed, cases[i].placed));
		if (cases[i].end >= 0)
			assert_true(fact_is(d->hmm_end, cases[i].end));
		else
			assert_true(cases[i].end == -2 ? fact_absent(d->hmm_end)
						       : fact_unknown(d->hmm_end));
		done(m);
	}
}

static void version_lines_of_every_era(void **state)
{
	static const struct {
		const char *text, *version;
		int flavor;
	} rows[] = {
		{"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 "
		 "UTC 2023\n",
		 "535.104.05", DRIVER_PROPRIETARY},
		{"NVRM version: NVIDIA UNIX aarch64 Kernel Module  390.157  Wed Oct 12\n",
		 "390.157", DRIVER_PROPRIETARY},
		{"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.90.07  Release "
		 "Build\n",
		 "550.90.07", DRIVER_OPEN},
		{"NVRM version: something else\n", NULL, -1},
		{"", NULL, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct source *map = bare_gpus(1);
		struct machine *m;

		put(map, "proc/driver/nvidia/version", rows[i].text);
		m = read_machine(map, QUICK);
		assert_true(fact_is(m->driver.loaded, 1));
		if (rows[i].version) {
			assert_string_equal(m->driver.module_version.value, rows[i].version);
			assert_true(fact_is(m->driver.flavor, rows[i].flavor));
		} else {
			assert_true(fact_unknown(m->driver.module_version));
			assert_true(fact_unknown(m->driver.flavor));
		}
		done(m);
	}
}

static void fabric_manager_tells_its_version_in_its_log(void **state)
{
	static const struct {
		const char *log, *version;
	} rows[] = {
		{"Fabric Manager version is : 580.95.05\n", "580.95.05"},
		{"[Oct 02 2025 10:00:00] [INFO] [tid 1] Fabric Manager version is : 570.86.15\n"
		 "[Oct 02 2025 10:00:00] [INFO] [tid 1] Dumping all the configurable items\n"
		 "[Nov 02 2025 10:00:00] [INFO] [tid 9] Fabric Manager version is : 580.95.05\r\n",
		 "580.95.05"},
		{"Fabric Manager version is : ", NULL},
		{"Fabric Manager version is : unknown\n", NULL},
		{"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct source *map = bare_gpus(1);
		struct machine *m;

		put_there(map, "usr/bin/nv-fabricmanager");
		put(map, "var/log/fabricmanager.log", rows[i].log);
		m = read_machine(map, QUICK);
		if (rows[i].version)
			assert_string_equal(m->driver.fabric_manager_version.value,
					    rows[i].version);
		else
			assert_true(fact_unknown(m->driver.fabric_manager_version));
		done(m);
	}
}

static void fabric_manager_without_log_is_unknown(void **state)
{
	struct source *map = bare_gpus(1);
	struct machine *m;

	(void)state;
	put_there(map, "usr/bin/nv-fabricmanager");
	source_put_error(map, "var/log/fabricmanager.log", SOURCE_FILE, ENOENT);
	m = read_machine(map, QUICK);
	assert_true(fact_unknown(m->driver.fabric_manager_version));
	done(m);
	map = bare_gpus(1);
	source_put_error(map, "usr/bin/nv-fabricmanager", SOURCE_LINK, ENOENT);
	m = read_machine(map, QUICK);
	assert_true(fact_absent(m->driver.fabric_manager_version));
	done(m);
}

static void absent_driver_is_known_to_be_absent(void **state)
{
	struct source *map = bare_gpus(1);
	struct machine *m;

	(void)state;
	source_put_error(map, "proc/driver/nvidia/version", SOURCE_FILE, ENOENT);
	source_put_link(map, DEVICES "0000:41:00.0/driver", "../../../bus/pci/drivers/nouveau");
	ask_standin(map, false, MACHINE_ALL);
	m = read_machine(map, MACHINE_ALL);
	assert_true(fact_is(m->driver.loaded, 0));
	assert_true(fact_absent(m->driver.module_version));
	assert_true(fact_is(m->driver.flavor, DRIVER_NOUVEAU));
	assert_true(fact_unknown(m->driver.nvml));
	assert_string_equal(m->driver.nvml.from, "NVML: the nvidia module is not loaded");
	assert_true(fact_unknown(m->gpus[0].model));
	assert_true(fact_unknown(m->gpus[0].cuda_ordinal));
	assert_string_equal(m->gpus[0].vram_bytes.from, "NVML: the nvidia module is not loaded");
	done(m);
}

static void unrecorded_is_unknown_not_absent(void **state)
{
	struct machine *m = read_machine(bare_gpus(2), MACHINE_ALL);

	(void)state;
	assert_true(fact_unknown(m->driver.loaded));
	assert_true(fact_unknown(m->driver.flavor));
	assert_true(fact_unknown(m->driver.library_version));
	assert_true(fact_unknown(m->driver.origin));
	assert_true(fact_unknown(m->driver.nvml));
	assert_true(fact_unknown(m->gpus[0].nvlink_active));
	assert_true(fact_unknown(m->pairs[1].p2p[P2P_READ]));
	assert_non_null(m->pairs[1].p2p[P2P_READ].from);
	assert_int_equal(m->trouble_n, 0);
	done(m);
}

static void libraries_that_differ_are_both_known(void **state)
{
	struct source *map = bare_gpus(1);
	struct machine *m;

	(void)state;
	put_driver(map, 1);
	source_put_link(map, "usr/lib/x86_64-linux-gnu/libcuda.so.1",
			"/etc/alternatives/glx--libcuda.so.1-x86_64-linux-gnu");
	source_put_link(map, "usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1",
			"libcuda.so.550.54.14");
	source_put_link(map, "usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.580.159.04");
	m = read_machine(map, QUICK);
	assert_string_equal(m->driver.library_version.value, "550.54.14");
	assert_string_equal(m->driver.nvml_library.value, "580.159.04");
	done(m);
}

/* Only then the large module file is opened: it tells whether a reboot is all that is missing. */
static void module_on_disk_is_read_when_versions_differ(void **state)
{
	static const struct {
		const char *library, *installed;
	} rows[] = {{"libcuda.so.590.48.01", "590.48.01"}, {"libcuda.so.580.159.04", NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct source *map = bare_gpus(1);
		struct machine *m;

		put_driver(map, 1);
		source_put_link(map, "usr/lib64/libcuda.so.1", rows[i].library);
		put(map, "modinfo-nvidia.txt", "license=Dual MIT/GPL\nversion=590.48.01\n");
		m = read_machine(map, QUICK);
		if (rows[i].installed)
			assert_string_equal(m->driver.installed_version.value, rows[i].installed);
		else
			assert_true(fact_unknown(m->driver.installed_version));
		done(m);
	}
}

static void origin_is_the_first_sign(void **state)
{
	struct source *map = bare_gpus(1);
	struct machine *m;

	(void)state;
	source_put_error(map, "usr/bin/nvidia-uninstall", SOURCE_LINK, ENOENT);
	put_there(map, "var/lib/dkms/nvidia");
	put_there(map, "var/log/nvidia-installer.log");
	m = read_machine(map, QUICK);
	assert_string_equal(m->driver.origin.value, "dkms");
	done(m);
}

/* ---- asking NVML ---- */

static void h200_pair_is_joined_by_18_links(void **state)
{
	struct nvml_standin *s = standin(false, 2, 18);
	struct machine *m;

	(void)state;
	s->on_switch = true;
	m = read_with_standin(2, false, MACHINE_ALL);
	for (unsigned i = 0; i < 2; i++) {
		const struct gpu *g = &m->gpus[i];

		assert_true(fact_is(g->nvml_index, i));
		assert_int_equal(g->nvlink_n, 18);
		assert_true(fact_is(g->nvlink_active, 18));
		assert_true(fact_is(g->nvlinks[17].remote_type, NVLINK_REMOTE_SWITCH));
		assert_true(fact_is(g->nvlinks[17].version, 6));
		assert_true(fact_is(g->fabric_state, FABRIC_COMPLETED));
		assert_true(fact_is(g->fabric_status, 0));
		assert_true(fact_is(g->fabric_health, 0x155));
		assert_true(fact_is(g->vram_bytes, 150754820096));
		assert_true(fact_is(g->compute_capability, 90));
		assert_true(fact_is(g->mig_enabled, 0));
		assert_true(fact_is(g->compute_mode, 3));
		assert_true(fact_is(g->process_n, 2)); /* 200 is listed twice */
		assert_true(fact_absent(g->numa_id) || fact_unknown(g->numa_id));
		assert_true(fact_unknown(g->performance_state)); /* 32 means unknown */
		assert_true(fact_is(g->cuda_ordinal, i));
	}
	assert_true(fact_unknown(m->pairs[1].common_ancestor)); /* NVSwitch: not asked */
	assert_true(fact_is(m->pairs[1].p2p[P2P_READ], P2P_CHIPSET_NOT_SUPPORTED));
	/* Asked once: the driver answers for the set of the two. */
	assert_true(fact_is(m->pairs[2].p2p[P2P_READ], P2P_CHIPSET_NOT_SUPPORTED));
	assert_true(fact_unknown(m->pairs[0].p2p[P2P_READ]));
	assert_string_equal(m->driver.nvml.value, "13.580.159.04");
	assert_string_equal(m->driver.library_version.value, "580.159.04");
	assert_true(fact_is(m->driver.cuda_version, 13000));
	assert_int_equal(s->remote_calls, 0);
	assert_int_equal(s->inits, 1);
	assert_int_equal(m->trouble_n, 0);
	done(m);
}

/* What `topo -m` waits for. */
static void topology_needs_few_calls(void **state)
{
	struct nvml_standin *s = standin(false, 4, 18);
	struct machine *m;

	(void)state;
	s->on_switch = true;
	m = read_with_standin(4, false, QUICK);
	assert_int_equal(s->ancestor_calls, 0);
	assert_int_equal(s->p2p_calls, 0);
	assert_int_equal(s->remote_calls, 0);
	/* 4 of the library, 4 of each GPU: handle, address, two reads of fields */
	assert_int_equal(s->calls, 4 + 4 * 4);
	assert_true(fact_is(m->gpus[3].nvlink_active, 18));
	assert_true(fact_unknown(m->gpus[3].vram_bytes));
	assert_string_equal(m->gpus[3].vram_bytes.from, "not queried from NVML");
	done(m);
}

/* The driver's answers to reading and writing are one where NVSwitch joins the GPUs. */
static void behind_switches_a_pair_is_asked_once(void **state)
{
	struct nvml_standin *s = standin(false, 4, 18);
	struct machine *m;

	(void)state;
	s->on_switch = true;
	m = read_with_standin(4, false, QUICK | MACHINE_NVML_P2P);
	assert_int_equal(s->p2p_calls, 6);
	assert_true(fact_is(m->pairs[1].p2p[P2P_READ], P2P_CHIPSET_NOT_SUPPORTED));
	assert_true(fact_is(m->pairs[1].p2p[P2P_WRITE], P2P_CHIPSET_NOT_SUPPORTED));
	assert_true(fact_is(m->pairs[4 + 2].p2p[P2P_WRITE], P2P_OK));
	assert_true(fact_unknown(m->pairs[1].p2p[P2P_ATOMICS]));
	done(m);
	s = standin(false, 4, 18);
	m = read_with_standin(4, false, QUICK | MACHINE_NVML_P2P);
	assert_int_equal(s->p2p_calls, 4 * 6); /* reads, writes, atomics, PCIe */
	assert_true(fact_is(m->pairs[1].p2p[P2P_WRITE], P2P_OK));
	done(m);
}

/* One answer of RM's holds all capabilities of a pair, so that NVML is not asked for them too. */
static void pairs_are_asked_of_rm_alone(void **state)
{
	static const char rm[] =
		"{\"gpus\": [\"0000:41:00.0\", \"0000:42:00.0\"], \"pairs\": [{\"gpus\": [0, 1], "
		"\"caps\": 67, \"status\": [0, 4, 5, 3, 5, 5, 2, 5, 5], \"peer_ids\": [0, 0]}]}";
	struct nvml_standin *s = standin(false, 2, 0);
	struct source *map = bare_gpus(2);
	struct machine *m;

	(void)state;
	put_driver(map, 2);
	put(map, "rm.json", rm);
	ask_standin(map, false, MACHINE_TO_JUDGE);
	assert_int_equal(s->p2p_calls, 0);
	m = read_machine(map, MACHINE_TO_JUDGE);
	for (size_t pair = 1; pair < 3; pair++) {
		assert_true(fact_is(m->pairs[pair].p2p[P2P_READ], P2P_OK));
		assert_true(fact_is(m->pairs[pair].p2p[P2P_WRITE], P2P_DISABLED_BY_REGKEY));
		assert_true(fact_is(m->pairs[pair].p2p[P2P_NVLINK], P2P_NOT_SUPPORTED));
		assert_true(fact_is(m->pairs[pair].p2p[P2P_ATOMICS], P2P_TOPOLOGY_NOT_SUPPORTED));
		assert_true(fact_is(m->pairs[pair].p2p[P2P_PCI], P2P_GPU_NOT_SUPPORTED));
	}
	done(m);
}

/* Of a driver whose RM refuses the question NVML is asked after all, for every capability. */
static void pairs_that_rm_refuses_are_asked_of_nvml(void **state)
{
	static const char rm[] =
		"{\"gpus\": [\"0000:41:00.0\", \"0000:42:00.0\"], \"pairs\": [{\"gpus\": [0, 1], "
		"\"refused\": 31}]}";
	AUTO_FREE char *path = standin_path(false), *text = NULL;
	struct source *map = bare_gpus(2);
	struct machine *m;
	size_t size;

	(void)state;
	standin(false, 2, 0);
	put_driver(map, 2);
	put(map, "rm.json", rm);
	ask_standin(map, false, MACHINE_TO_JUDGE);
	nvml_capture_from(map, path, MACHINE_P2P_ALL, &text, &size);
	source_put_file(map, "nvml-p2p.json", text, size);
	m = read_machine(map, MACHINE_TO_JUDGE);
	for (int cap = 0; cap < P2P_CAP_N; cap++)
		assert_true(fact_known(m->pairs[1].p2p[cap]));
	assert_true(fact_is(m->pairs[1].p2p[P2P_READ], P2P_CHIPSET_NOT_SUPPORTED));
	assert_true(fact_is(m->pairs[1].p2p[P2P_WRITE], P2P_OK));
	assert_true(fact_unknown(m->pairs[1].rm.connection));
	done(m);
}

/* It takes 2 ms a GPU, and only tells why a link is slower than it can be. */
static void performance_state_is_asked_of_slow_links_only(void **state)
{
	static const char *const now[] = {"16.0 GT/s PCIe\n", "2.5 GT/s PCIe\n"};
	struct nvml_standin *s = standin(false, 1, 0);
	unsigned calls[2];

	(void)state;
	for (size_t slow = 0; slow < 2; slow++) {
		struct source *map = bare_gpus(1);

		put_driver(map, 1);
		put(map, "sys/bus/pci/devices/0000:41:00.0/current_link_speed", now[slow]);
		put(map, "sys/bus/pci/devices/0000:41:00.0/max_link_speed", "16.0 GT/s PCIe\n");
		s->calls = 0;
		ask_standin(map, false, MACHINE_TO_JUDGE);
		calls[slow] = s->calls;
		source_free(map);
	}
	assert_int_equal(calls[1], calls[0] + 1);
}

/* What `topo -p2p r` waits for. */
static void one_capability_needs_few_calls(void **state)
{
	struct nvml_standin *s = standin(false, 4, 18);
	struct machine *m;

	(void)state;
	m = read_with_standin(4, false,
			      MACHINE_PCI | MACHINE_GPUS | MACHINE_NVML | MACHINE_P2P(P2P_WRITE));
	assert_int_equal(s->p2p_calls, 6);
	assert_int_equal(s->calls, 4 + 4 * 2 + 6);
	assert_true(fact_known(m->pairs[1].p2p[P2P_WRITE]));
	assert_true(fact_unknown(m->pairs[1].p2p[P2P_READ]));
	done(m);
}

static void bridge_links_name_the_other_gpu(void **state)
{
	struct nvml_standin *s = standin(false, 4, 4);
	struct machine *m;

	(void)state;
	m = read_with_standin(4, false, QUICK);
	assert_int_equal(s->ancestor_calls, 6); /* each unordered pair once */
	assert_true(fact_is(m->pairs[1].common_ancestor, NVML_LEVEL_MULTIPLE));
	assert_true(fact_is(m->pairs[4].common_ancestor, NVML_LEVEL_MULTIPLE));
	assert_true(fact_is(m->pairs[3 * 4 + 1].common_ancestor, NVML_LEVEL_SYSTEM));
	assert_int_equal(m->gpus[0].nvlink_n, 4);
	assert_true(fact_is(m->gpus[0].nvlinks[3].remote_type, NVLINK_REMOTE_GPU));
	assert_string_equal(m->gpus[0].nvlinks[3].remote.value, "0000:42:00.0");
	assert_true(fact_unknown(m->pairs[1].p2p[P2P_NVLINK]));
	done(m);
}

static void hidden_remotes_make_it_ask_for_the_pair(void **state)
{
	struct nvml_standin *s = standin(false, 3, 18);
	struct machine *m;

	(void)state;
	s->hide_remotes = true;
	m = read_with_standin(3, false, QUICK);
	assert_int_equal(s->p2p_calls, 3);
	assert_true(fact_is(m->pairs[1].p2p[P2P_NVLINK], P2P_OK));
	assert_true(fact_unknown(m->pairs[1].p2p[P2P_READ]));
	assert_true(fact_unknown(m->gpus[0].nvlinks[0].remote));
	done(m);
}

static void gpu_without_links_has_none(void **state)
{
	struct nvml_standin *s = standin(false, 2, 0);
	struct machine *m;

	(void)state;
	m = read_with_standin(2, false, MACHINE_ALL);
	assert_true(fact_absent(m->gpus[0].nvlink_active) || fact_is(m->gpus[0].nvlink_active, 0));
	assert_int_equal(m->gpus[0].nvlink_n, 0);
	assert_true(fact_absent(m->gpus[0].fabric_state));
	done(m);

	s->refuse_fields = true;
	m = read_with_standin(2, false, MACHINE_ALL);
	assert_int_equal(m->gpus[0].nvlink_n, 0);
	assert_false(fact_known(m->gpus[0].nvlink_active));
	done(m);
}

static void refused_fields_are_asked_link_by_link(void **state)
{
	struct nvml_standin *s = standin(false, 2, 18);
	struct machine *m;

	(void)state;
	s->on_switch = true;
	s->refuse_fields = true;
	m = read_with_standin(2, false, MACHINE_ALL);
	assert_true(fact_is(m->gpus[1].nvlink_active, 18));
	assert_true(fact_is(m->gpus[1].nvlinks[17].remote_type, NVLINK_REMOTE_SWITCH));
	assert_true(fact_is(m->gpus[1].nvlinks[17].version, 6));
	done(m);
}

static void old_library_is_asked_by_old_names(void **state)
{
	struct nvml_standin *s = standin(true, 2, 6);
	struct machine *m;

	(void)state;
	s->on_switch = true;
	m = read_with_standin(2, true, MACHINE_ALL);
	assert_true(fact_is(m->gpus[1].nvml_index, 1));
	assert_true(fact_is(m->gpus[1].nvlink_active, 6));
	assert_true(fact_is(m->gpus[1].fabric_state, FABRIC_IN_PROGRESS));
	assert_true(fact_unknown(m->gpus[1].fabric_status));
	assert_true(fact_unknown(m->gpus[1].fabric_health));
	assert_true(fact_is(m->gpus[1].process_n, 2));
	assert_true(fact_is(m->driver.cuda_version, 13000));
	assert_true(fact_unknown(m->gpus[1].pcie_gen_device_max));
	assert_string_equal(m->gpus[1].pcie_gen_device_max.from,
			    "nvmlDeviceGetGpuMaxPcieLinkGeneration: Function Not Found");
	done(m);
}

static void refusals_are_absent_or_unknown_by_what_they_mean(void **state)
{
	struct nvml_standin *s = standin(false, 1, 0);
	struct machine *m;

	(void)state;
	s->refuse_state = true;
	m = read_with_standin(1, false, MACHINE_ALL);
	assert_true(fact_absent(m->gpus[0].mig_enabled));
	assert_true(fact_unknown(m->gpus[0].pcie_gen));
	assert_string_equal(m->gpus[0].pcie_gen.from,
			    "nvmlDeviceGetCurrPcieLinkGeneration: Not Supported");
	assert_true(fact_is(m->gpus[0].gsp_firmware, 1)); /* /proc knows what NVML refuses */
	done(m);
}

static void broken_gpu_leaves_the_others(void **state)
{
	struct nvml_standin *s = standin(false, 3, 18);
	struct machine *m;

	(void)state;
	s->broken = 1;
	m = read_with_standin(3, false, MACHINE_ALL);
	assert_true(has_trouble(m, "NVML GPU 1", "GPU is lost"));
	assert_true(fact_unknown(m->gpus[1].nvml_index));
	assert_string_equal(m->gpus[1].vram_bytes.from, "NVML does not list 0000:42:00.0");
	assert_true(fact_is(m->gpus[2].nvml_index, 2));
	assert_true(fact_is(m->pairs[2].p2p[P2P_WRITE], P2P_OK));
	assert_string_equal(m->pairs[1].p2p[P2P_WRITE].from, "NVML does not list 0000:42:00.0");
	assert_true(fact_absent(m->gpus[1].cuda_ordinal));
	assert_true(fact_is(m->gpus[2].cuda_ordinal, 1));
	done(m);
}

static void version_mismatch_is_said(void **state)
{
	struct nvml_standin *s = standin(false, 1, 0);
	struct machine *m;

	(void)state;
	s->init_result = 18;
	m = read_with_standin(1, false, MACHINE_ALL);
	assert_string_equal(m->driver.nvml.from, "NVML: nvmlInit: Driver/library version mismatch");
	assert_true(fact_is(m->driver.loaded, 1));
	assert_string_equal(m->gpus[0].model.value, "NVIDIA H200");
	done(m);
}

static void unlisted_by_sysfs_is_a_trouble(void **state)
{
	struct source *map = bare_gpus(1);
	struct machine *m;

	(void)state;
	standin(false, 2, 0);
	put_driver(map, 1);
	ask_standin(map, false, MACHINE_ALL);
	m = read_machine(map, MACHINE_ALL);
	assert_int_equal(m->gpu_n, 1);
	assert_true(has_trouble(m, "NVML GPU 1", "0000:42:00.0"));
	done(m);
}

/* ---- staying out ---- */

static void assert_stays_out(struct source *map, const char *because)
{
	struct nvml_standin *s = standin(false, 1, 0);
	AUTO_FREE char *path = standin_path(false), *text = NULL;
	size_t size;
	json_t *doc;

	nvml_capture_from(map, path, MACHINE_ALL, &text, &size);
	doc = json_loads(text, 0, NULL);
	assert_non_null(doc);
	assert_string_equal(json_string_value(json_object_get(doc, "unavailable")), because);
	assert_int_equal(s->calls, 0);
	json_decref(doc);
	source_free(map);
}

static void nothing_is_opened_that_would_change_the_machine(void **state)
{
	struct source *map = bare_gpus(2);

	(void)state;
	source_put_error(map, "proc/driver/nvidia/version", SOURCE_FILE, ENOENT);
	assert_stays_out(map, "the nvidia module is not loaded");

	map = bare_gpus(2);
	put_driver(map, 2);
	source_put_error(map, "dev/nvidiactl", SOURCE_LINK, ENOENT);
	assert_stays_out(map, "/dev/nvidiactl is missing, and opening NVML would try to make it");

	map = bare_gpus(2);
	put_driver(map, 2);
	source_put_error(map, "dev/nvidia1", SOURCE_LINK, ENOENT);
	assert_stays_out(map, "/dev/nvidia1 is missing, and opening NVML would try to make it");
}

/* A container that was given one of two GPUs: nobody there could make the other node. */
static void container_with_some_nodes_is_opened(void **state)
{
	struct source *map = bare_gpus(2);
	struct machine *m;

	(void)state;
	standin(false, 2, 0);
	put_driver(map, 2);
	source_put_error(map, "dev/nvidia1", SOURCE_LINK, ENOENT);
	source_put_error(map, "usr/bin/nvidia-modprobe", SOURCE_LINK, ENOENT);
	ask_standin(map, false, MACHINE_ALL);
	m = read_machine(map, MACHINE_ALL);
	assert_true(fact_known(m->driver.nvml));
	assert_true(fact_is(m->driver.device_nodes, 1));
	done(m);
}

static void missing_library_is_a_reason(void **state)
{
	struct source *map = bare_gpus(1);
	AUTO_FREE char *text = NULL;
	size_t size;

	(void)state;
	put_driver(map, 1);
	nvml_capture_from(map, "/nonexistent/libnvidia-ml.so.1", MACHINE_ALL, &text, &size);
	assert_non_null(strstr(text, "unavailable"));
	assert_non_null(strstr(text, "/nonexistent/libnvidia-ml.so.1"));
	source_free(map);
}

/* ---- documents that nobody should have written ---- */

static void any_document_is_survived(void **state)
{
	static const char *const documents[] = {
		"",
		"{",
		"[]",
		"null",
		"{}",
		"{\"gpus\": 3}",
		"{\"gpus\": [3, null, [], {}, {\"address\": 4}, {\"address\": \"x\"}]}",
		"{\"gpus\": [{\"address\": \"0000:41:00.0\", \"vram_bytes\": -1, \"model\": 7,  "
		"\"links\": {\"state\": 1}, \"link_count\": 99999999999}]}",
		"{\"gpus\": [{\"address\": \"0000:41:00.0\", \"links\": [1, [], null, {\"state\":  "
		" \"up\", \"remote\": \"ffffffff:ff:ff.0\"}]}], \"p2p\": [], \"common_ancestor\": "
		"{}}",
		"{\"gpus\": [{\"address\": \"0000:41:00.0\"}, {\"address\": \"0000:42:00.0\"}],  "
		"\"common_ancestor\": [[null, 17]], \"p2p\": {\"read\": [[0, 99], 4]}}",
		"{\"unavailable\": 5}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(documents) / sizeof(*documents); i++) {
		struct source *map = bare_gpus(2);
		struct machine *m;

		put_driver(map, 2);
		put(map, "nvml.json", documents[i]);
		m = read_machine(map, MACHINE_ALL);
		assert_int_equal(m->gpu_n, 2);
		/* Who lists GPUs was asked; a document without a list is refused. */
		assert_int_equal(fact_known(m->driver.nvml),
				 strstr(documents[i], "\"gpus\": [") != NULL);
		if (!fact_known(m->driver.nvml) && documents[i][0])
			assert_true(m->trouble_n > 0);
		assert_true(fact_unknown(m->gpus[0].vram_bytes));
		assert_true(fact_unknown(m->gpus[0].nvlink_active));
		assert_true(fact_unknown(m->pairs[1].p2p[P2P_READ]));
		assert_true(fact_unknown(m->pairs[1].common_ancestor));
		done(m);
	}
}

/* A document of another tool, or of a library that refused to name its version. */
static void version_of_the_library_may_be_missing(void **state)
{
	static const char *const documents[] = {
		"{\"gpus\": [{\"address\": \"0000:41:00.0\", \"vram_bytes\": 7}]}",
		"{\"library\": {\"refused\": 2, \"says\": \"no\"},  \"gpus\": [{\"address\": "
		"\"0000:41:00.0\", \"vram_bytes\": 7}]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(documents) / sizeof(*documents); i++) {
		struct source *map = bare_gpus(1);
		struct machine *m;

		put(map, "nvml.json", documents[i]);
		m = read_machine(map, MACHINE_ALL);
		assert_string_equal(fact_str_or(m->driver.nvml, ""), "of unknown version");
		assert_int_equal(fact_or(m->gpus[0].vram_bytes, 0), 7);
		done(m);
	}
}

static void malformed_document_names_the_place(void **state)
{
	struct source *map = bare_gpus(1);
	struct machine *m;

	(void)state;
	put(map, "nvml.json", "{\"gpus\": [\n\n]");
	m = read_machine(map, MACHINE_ALL);
	assert_true(has_trouble(m, "nvml.json:3", ""));
	assert_string_equal(m->driver.nvml.from, "nvml.json is malformed");
	done(m);
}

static void two_entries_for_one_gpu_are_a_trouble(void **state)
{
	struct source *map = bare_gpus(1);
	struct machine *m;

	(void)state;
	put(map, "nvml.json",
	    "{\"gpus\": [{\"address\": \"0000:41:00.0\", \"vram_bytes\": 1}, {\"address\": "
	    "\"00000000:41:00.0\", \"vram_bytes\": 2}]}");
	m = read_machine(map, MACHINE_ALL);
	assert_true(fact_is(m->gpus[0].vram_bytes, 1));
	assert_true(has_trouble(m, "NVML GPU 1", "already"));
	done(m);
}

#define NO_BAR         "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
#define BAR_16M        "0x00000000f0000000 0x00000000f0ffffff 0x0000000000040200\n"
#define BAR_16M_64BIT  "0x0000005000000000 0x0000005000ffffff 0x000000000014220c\n"
#define BAR_256M_64BIT "0x0000004000000000 0x000000400fffffff 0x000000000014220c\n"

static void bar1_comes_from_pci_without_nvml(void **state)
{
	static const char *const resources[] = {
		BAR_16M BAR_256M_64BIT NO_BAR NO_BAR NO_BAR NO_BAR,
		BAR_16M_64BIT NO_BAR BAR_256M_64BIT NO_BAR NO_BAR NO_BAR, /* Hopper */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(resources) / sizeof(*resources); i++) {
		struct source *map = bare_gpus(1);
		struct machine *m;

		put(map, DEVICES "0000:41:00.0/resource", resources[i]);
		m = read_machine(map, MACHINE_ALL);
		assert_true(fact_is(m->gpus[0].bar1_bytes, 256 << 20));
		done(m);
	}
}

/* ---- CUDA's numbers ---- */

#define HIDDEN  (-1)
#define UNKNOWN (-2)

static void cuda_numbers_gpus_as_its_variables_say(void **state)
{
	static const struct {
		const char *environment;
		bool mixed;
		int ordinal[3];
	} rows[] = {
		{"", false, {0, 1, 2}},
		{"", true, {UNKNOWN, UNKNOWN, UNKNOWN}},
		{"CUDA_DEVICE_ORDER=PCI_BUS_ID\n", true, {0, 1, 2}},
		{"CUDA_DEVICE_ORDER=FASTEST_FIRST\n", true, {UNKNOWN, UNKNOWN, UNKNOWN}},
		{"CUDA_VISIBLE_DEVICES=2,0\n", false, {1, HIDDEN, 0}},
		{"CUDA_VISIBLE_DEVICES=2,0\n", true, {UNKNOWN, UNKNOWN, UNKNOWN}},
		{"CUDA_DEVICE_ORDER=PCI_BUS_ID\nCUDA_VISIBLE_DEVICES= 1 \n",
		 true,
		 {HIDDEN, 0, HIDDEN}},
		{"CUDA_VISIBLE_DEVICES=1,7,0\n", false, {HIDDEN, 0, HIDDEN}},
		{"CUDA_VISIBLE_DEVICES=0,-1,1\n", false, {0, HIDDEN, HIDDEN}},
		{"CUDA_VISIBLE_DEVICES=\n", false, {HIDDEN, HIDDEN, HIDDEN}},
		{"CUDA_VISIBLE_DEVICES=NoDevFiles\n", false, {HIDDEN, HIDDEN, HIDDEN}},
		{"CUDA_VISIBLE_DEVICES=0,0\n", false, {UNKNOWN, UNKNOWN, UNKNOWN}},
		{"CUDA_VISIBLE_DEVICES=GPU-00000002,GPU-00000000-0000\n", true, {1, HIDDEN, 0}},
		{"CUDA_VISIBLE_DEVICES=GPU-0\n", false, {HIDDEN, HIDDEN, HIDDEN}}, /* ambiguous */
		{"CUDA_VISIBLE_DEVICES=MIG-1234\n", false, {UNKNOWN, UNKNOWN, UNKNOWN}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct source *map = bare_gpus(3);
		struct machine *m;

		standin(false, 3, 0);
		put_driver(map, 3);
		ask_standin(map, false, QUICK);
		put(map, "environment.txt", rows[i].environment);
		if (rows[i].mixed)
			put(map, DEVICES "0000:42:00.0/device", "0x2684\n");
		m = read_machine(map, QUICK);
		for (unsigned k = 0; k < 3; k++) {
			struct fact_int f = m->gpus[k].cuda_ordinal;
			int got = fact_known(f) ? (int)f.value : fact_absent(f) ? HIDDEN : UNKNOWN;

			if (got != rows[i].ordinal[k])
				fail_msg("row %zu GPU%u: %d, not %d (%s)", i, k, got,
					 rows[i].ordinal[k], f.from);
		}
		done(m);
	}
}

static void mig_leaves_cuda_numbers_unknown(void **state)
{
	struct source *map = bare_gpus(1);
	struct machine *m;

	(void)state;
	put(map, "environment.txt", "");
	put(map, "nvml.json",
	    "{\"library\": \"13.1.2\", \"gpus\": [{\"address\": \"0000:41:00.0\", \"mig_enabled\": "
	    "1}]}");
	m = read_machine(map, MACHINE_ALL);
	assert_true(fact_unknown(m->gpus[0].cuda_ordinal));
	done(m);
}

/* nvmlReturn_t 15, to whichever question. */
static void lost_is_lost(void **state)
{
	struct source *map = bare_gpus(1);
	struct machine *m;

	(void)state;
	put(map, "environment.txt", "");
	put(map, "nvml.json",
	    "{\"library\": \"13.1.2\", \"gpus\": [{\"address\": \"0000:41:00.0\", \"mig_enabled\": "
	    "{\"refused\": 3}, \"vram_bytes\": {\"refused\": 15, \"says\": \"GPU is lost\"}}]}");
	m = read_machine(map, MACHINE_ALL);
	assert_true(fact_is(m->gpus[0].lost, 1));
	done(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(driver_files_are_read),
		cmocka_unit_test(lost_is_lost),
		cmocka_unit_test(hmm_is_read),
		cmocka_unit_test(version_lines_of_every_era),
		cmocka_unit_test(fabric_manager_tells_its_version_in_its_log),
		cmocka_unit_test(fabric_manager_without_log_is_unknown),
		cmocka_unit_test(absent_driver_is_known_to_be_absent),
		cmocka_unit_test(unrecorded_is_unknown_not_absent),
		cmocka_unit_test(libraries_that_differ_are_both_known),
		cmocka_unit_test(module_on_disk_is_read_when_versions_differ),
		cmocka_unit_test(origin_is_the_first_sign),
		cmocka_unit_test(h200_pair_is_joined_by_18_links),
		cmocka_unit_test(topology_needs_few_calls),
		cmocka_unit_test(behind_switches_a_pair_is_asked_once),
		cmocka_unit_test(pairs_are_asked_of_rm_alone),
		cmocka_unit_test(pairs_that_rm_refuses_are_asked_of_nvml),
		cmocka_unit_test(performance_state_is_asked_of_slow_links_only),
		cmocka_unit_test(one_capability_needs_few_calls),
		cmocka_unit_test(bridge_links_name_the_other_gpu),
		cmocka_unit_test(hidden_remotes_make_it_ask_for_the_pair),
		cmocka_unit_test(gpu_without_links_has_none),
		cmocka_unit_test(refused_fields_are_asked_link_by_link),
		cmocka_unit_test(old_library_is_asked_by_old_names),
		cmocka_unit_test(refusals_are_absent_or_unknown_by_what_they_mean),
		cmocka_unit_test(broken_gpu_leaves_the_others),
		cmocka_unit_test(version_mismatch_is_said),
		cmocka_unit_test(unlisted_by_sysfs_is_a_trouble),
		cmocka_unit_test(nothing_is_opened_that_would_change_the_machine),
		cmocka_unit_test(container_with_some_nodes_is_opened),
		cmocka_unit_test(missing_library_is_a_reason),
		cmocka_unit_test(any_document_is_survived),
		cmocka_unit_test(version_of_the_library_may_be_missing),
		cmocka_unit_test(malformed_document_names_the_place),
		cmocka_unit_test(two_entries_for_one_gpu_are_a_trouble),
		cmocka_unit_test(bar1_comes_from_pci_without_nvml),
		cmocka_unit_test(cuda_numbers_gpus_as_its_variables_say),
		cmocka_unit_test(mig_leaves_cuda_numbers_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
