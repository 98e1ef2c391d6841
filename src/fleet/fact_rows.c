/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that hosts of the same hardware have in common when all is well. */
#include "fleet/fleet.h"

#include <string.h>

/* clang-format off */
#define VERSION(word, member, title, place) \
	{word, member, title, place, RANK_VERSION, FORM_PLAIN, NULL}
#define IN_FORM(word, member, title, place, form, rules) \
	{word, member, title, place, RANK_OTHER, form, rules}
#define OF_RULES(word, member, title, place, rules) \
	IN_FORM(word, member, title, place, FORM_PLAIN, rules)
#define OTHER(word, member, title, place) OF_RULES(word, member, title, place, NULL)

/* What changes by itself is not here: clocks and link speed at idle, processes, counters. */
const struct fact_row fact_rows[] = {
	IN_FORM("port-acs", "acs_ctl", "ACSCtl", PLACE_PORT, FORM_ACS, "acs-"),
	IN_FORM("port-width", "link_width", "link width", PLACE_PORT, FORM_LANES, "link-"),
	IN_FORM("port-width-max", "link_width_max", "maximum link width", PLACE_PORT, FORM_LANES, "link-"),
	IN_FORM("port-speed-max", "link_speed_max", "maximum link speed", PLACE_PORT, FORM_SPEED, "link-"),
	IN_FORM("port-speed-target", "link_speed_target", "target link speed", PLACE_PORT, FORM_SPEED, "link-"),
	OF_RULES("port-iommu-type", "iommu_type", "IOMMU domain", PLACE_PORT, "iommu-"),
	OF_RULES("port-payload", "payload", "MaxPayload", PLACE_PORT, "payload-"),
	OTHER("port-relaxed-ordering", "relaxed_ordering", "relaxed ordering", PLACE_PORT),
	OTHER("port-ats", "ats_enabled", "ATS", PLACE_PORT),
	OF_RULES("port-driver", "driver", "kernel driver", PLACE_PORT, "driver-bound"),
	OTHER("port-numa", "numa_node", "NUMA node", PLACE_PORT),
	VERSION("gpu-vbios", "vbios", "VBIOS", PLACE_GPU),
	IN_FORM("gpu-vram", "vram_bytes", "memory", PLACE_GPU, FORM_BYTES, NULL),
	IN_FORM("gpu-bar1", "bar1_bytes", "BAR1", PLACE_GPU, FORM_BYTES, "bar1-"),
	OF_RULES("gpu-compute-mode", "compute_mode", "compute mode", PLACE_GPU, "gpu-compute-mode"),
	OF_RULES("gpu-mig", "mig_enabled", "MIG", PLACE_GPU, "gpu-mig"),
	OF_RULES("gpu-persistence", "persistence", "persistence mode", PLACE_GPU, "gpu-persistence"),
	OTHER("gpu-gsp", "gsp_firmware", "GSP firmware", PLACE_GPU),
	OF_RULES("gpu-excluded", "excluded", "exclusion", PLACE_GPU, "gpu-excluded"),
	OF_RULES("gpu-nvlinks", "nvlink_active", "number of active NVLinks", PLACE_GPU, "nvlink-"),
	OF_RULES("gpu-fabric-state", "fabric_state", "fabric state", PLACE_GPU, "nvswitch-"),
	OF_RULES("gpu-fabric-status", "fabric_status", "fabric status", PLACE_GPU, "nvswitch-"),
	VERSION("driver", "module_version", "NVIDIA driver", PLACE_DRIVER),
	OF_RULES("driver-loaded", "loaded", "NVIDIA driver loaded", PLACE_DRIVER, "driver-loaded"),
	VERSION("driver-flavor", "flavor", "flavor of the NVIDIA driver", PLACE_DRIVER),
	VERSION("driver-library", "library_version", "CUDA driver library", PLACE_DRIVER),
	VERSION("driver-installed", "installed_version", "installed NVIDIA driver", PLACE_DRIVER),
	OF_RULES("driver-registry", "registry_dwords", "RegistryDwords of the driver", PLACE_DRIVER, "p2p-"),
	OTHER("driver-resizable-bar", "resizable_bar", "NVreg_EnableResizableBar", PLACE_DRIVER),
	OTHER("driver-hmm", "hmm_disabled", "uvm_disable_hmm", PLACE_DRIVER),
	VERSION("fabric-manager", "fabric_manager_version", "fabric manager", PLACE_DRIVER),
	OTHER("nvswitches", "switches", "number of NVSwitches", PLACE_DRIVER),
	VERSION("kernel", "release", "kernel", PLACE_KERNEL),
	VERSION("distribution", "distribution", "distribution", PLACE_KERNEL),
	VERSION("bios", "bios", "BIOS", PLACE_KERNEL),
	OTHER("lockdown", "lockdown", "kernel lockdown", PLACE_KERNEL),
	OTHER("secure-boot", "secure_boot", "Secure Boot", PLACE_KERNEL),
	OF_RULES("iommus", "iommus", "number of IOMMUs", PLACE_KERNEL, "iommu-"),
	OTHER("hypervisor", "hypervisor", "hypervisor", PLACE_KERNEL),
	OTHER("container", "container", "container", PLACE_KERNEL),
	OTHER("cpu-threads", "threads", "number of logical CPUs", PLACE_CPU),
	VERSION("nic-firmware", "firmware", "firmware", PLACE_NIC),
	VERSION("nic-board", "board_id", "board ID", PLACE_NIC),
	OF_RULES("nic-state", "state", "port state", PLACE_NIC_PORT, "rdma-port"),
	OF_RULES("nic-phys-state", "phys_state", "physical port state", PLACE_NIC_PORT, "rdma-port"),
	OTHER("nic-link-layer", "link_layer", "link layer", PLACE_NIC_PORT),
	OF_RULES("nic-rate", "rate_mbps", "port rate (Mb/s)", PLACE_NIC_PORT, "rdma-port"),
	OF_RULES("peermem", "loaded", "nvidia-peermem loaded", PLACE_PEERMEM, "peermem-"),
	OF_RULES("peermem-registered", "registered", "nvidia-peermem registered", PLACE_PEERMEM, "peermem-"),
	VERSION("ofed", "ofed", "OFED", PLACE_PEERMEM),
	IN_FORM("memlock", "memlock_bytes", "limit of locked memory", PLACE_LIMITS, FORM_BYTES, "memlock"),
	{NULL, NULL, NULL, PLACE_N, RANK_N, FORM_PLAIN, NULL},
};
/* clang-format on */

const struct fact_row fact_row_word = {
	"kernel-parameter", NULL, "kernel parameter", PLACE_WORD, RANK_OTHER, FORM_PLAIN, "iommu-"};
const struct fact_row fact_row_nccl = {"nccl-variable", NULL,       "NCCL setting", PLACE_NCCL,
				       RANK_OTHER,      FORM_PLAIN, "nccl-"};
const struct fact_row fact_row_rule = {"rule",    NULL,       "rule", PLACE_RULE,
				       RANK_RULE, FORM_PLAIN, NULL};
const struct fact_row fact_row_verdict = {"pair-verdict", NULL,       "verdict", PLACE_PAIR,
					  RANK_PAIR,      FORM_PLAIN, NULL};
const struct fact_row fact_row_class = {"pair-path", NULL,       "path", PLACE_PAIR,
					RANK_PAIR,   FORM_PLAIN, NULL};

const struct fact_row *fact_row_find(const char *word)
{
	static const struct fact_row *const named[] = {&fact_row_word, &fact_row_nccl,
						       &fact_row_rule, &fact_row_verdict,
						       &fact_row_class};

	for (const struct fact_row *r = fact_rows; r->word; r++)
		if (strcmp(r->word, word) == 0)
			return r;
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (strcmp(named[i]->word, word) == 0)
			return named[i];
	return NULL;
}
