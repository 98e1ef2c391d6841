/* SPDX-License-Identifier: Apache-2.0 */
/* struct machine: everything known about one host, each fact with its source. */
#pragma once

#include "machine/fact.h"
#include "machine/pci.h"
#include "result/observation.h"

#include <stddef.h>

struct arena;
struct source;

/* ---- GPUs ---- */

/* NVML's P2P capability indexes and answers (nvml.h nvmlGpuP2PCapsIndex, nvmlGpuP2PStatus). */
enum p2p_cap { P2P_READ, P2P_WRITE, P2P_NVLINK, P2P_ATOMICS, P2P_PCI, P2P_CAP_N };
enum p2p_status {
	P2P_OK,
	P2P_CHIPSET_NOT_SUPPORTED,
	P2P_GPU_NOT_SUPPORTED,
	P2P_TOPOLOGY_NOT_SUPPORTED,
	P2P_DISABLED_BY_REGKEY,
	P2P_NOT_SUPPORTED,
	P2P_STATUS_UNKNOWN,
	P2P_STATUS_N,
};

/* NVML's common ancestor levels (nvmlGpuTopologyLevel_t). */
enum nvml_level {
	NVML_LEVEL_INTERNAL = 0,
	NVML_LEVEL_SINGLE = 10,
	NVML_LEVEL_MULTIPLE = 20,
	NVML_LEVEL_HOSTBRIDGE = 30,
	NVML_LEVEL_NODE = 40,
	NVML_LEVEL_SYSTEM = 50,
};

enum nvlink_remote {
	NVLINK_REMOTE_GPU,
	NVLINK_REMOTE_IBMNPU,
	NVLINK_REMOTE_SWITCH,
	NVLINK_REMOTE_UNKNOWN = 255
};

struct nvlink {
	unsigned index;
	struct fact_int active; /* 0 or 1; absent: the GPU has no such link */
	struct fact_int version;
	struct fact_int remote_type; /* enum nvlink_remote */
	struct fact_str remote;      /* PCI address of the other end */
};

/* nvmlGpuFabricInfo: state 0 not supported, 1 not started, 2 in progress, 3 completed. */
enum fabric_state {
	FABRIC_NOT_SUPPORTED,
	FABRIC_NOT_STARTED,
	FABRIC_IN_PROGRESS,
	FABRIC_COMPLETED
};

#define GPU_NVLINKS 36

struct gpu {
	size_t index;             /* in machine.gpus: PCI order, shown as GPU<index> */
	struct pci_function *pci; /* never NULL */
	struct fact_int nvml_index;
	struct fact_int lost;         /* 1: NVML answers that the GPU is lost; else unknown */
	struct fact_int cuda_ordinal; /* absent: hidden by CUDA_VISIBLE_DEVICES */
	struct fact_int minor;        /* /dev/nvidia<minor> */
	struct fact_str model;        /* "NVIDIA GeForce RTX 4090" */
	struct fact_str uuid, vbios;
	struct fact_int vram_bytes;
	struct fact_int bar1_bytes; /* BAR1 as sized now, from NVML or from the PCI resource */
	struct fact_int compute_capability; /* major * 10 + minor: 89, 90, 120 */
	struct fact_int pcie_gen, pcie_gen_max, pcie_gen_device_max;
	struct fact_int pcie_width, pcie_width_max;
	struct fact_int pcie_replays;
	struct fact_int performance_state; /* 0 .. 15: P0 is full clocks */
	struct fact_int compute_mode;      /* nvmlComputeMode_t; see gpu_compute_mode */
	struct fact_int mig_enabled, display_attached, display_active;
	struct fact_int persistence;
	struct fact_int process_n;    /* processes that use it, as far as NVML shows them */
	struct fact_int gsp_firmware; /* 1: runs on GSP firmware, which the open modules need */
	struct fact_str excluded;     /* /proc/driver/nvidia/gpus/.../information "GPU Excluded" */
	struct fact_int dma_buf;      /* CUDA says that dma-buf export works; unknown until asked */
	struct fact_int numa_id;      /* "GPU NUMA ID", absent on all but coherent machines */

	struct nvlink nvlinks[GPU_NVLINKS];
	unsigned nvlink_n;
	struct fact_int nvlink_active; /* links that are up; unknown without NVML */
	struct fact_int fabric_state;  /* enum fabric_state; absent: no NVSwitch fabric */
	struct fact_int fabric_status; /* NVML return code of the registration, 0 is well */
	struct fact_int fabric_health; /* bit mask as NVML gives it */
};

/* How the driver's resource manager (RM) connects two GPUs, which NVML does not report. */
enum rm_connection {
	RM_CONNECTION_NONE,
	RM_CONNECTION_NVLINK,
	RM_CONNECTION_NVLINK_INDIRECT, /* through a CPU with NVLink (POWER9) */
	RM_CONNECTION_C2C,
	RM_CONNECTION_MAILBOX, /* PCIe, through hardware that GeForce cards since Ampere lack */
	RM_CONNECTION_BAR1,    /* PCIe, all of the target's memory in its BAR1 */
	RM_CONNECTION_N,
};

/* RM's answer for two GPUs, the same in both directions. */
struct rm_p2p {
	struct fact_int connection;             /* enum rm_connection */
	struct fact_int reads, writes, atomics; /* 0 or 1 */
	/* the word that holds all bits of the answer (rm_api.h) */
	struct fact_int caps;
};

/*
 * The driver's answers about one ordered pair: row initiator, column target, index i * gpu_n + j.
 */
struct gpu_pair {
	struct fact_int p2p[P2P_CAP_N];  /* enum p2p_status */
	struct fact_int common_ancestor; /* enum nvml_level */
	struct fact_int nvlinks; /* between the two, if only nvidia-smi topo -m is available */
	struct rm_p2p rm;
};

/*
 * Whether the nvidia module has P2P through BAR1 on every chip, as `onehop unlock` makes it: 1, or
 * 0: chips before Hopper have stubs instead. Absent: it has no such function (proprietary modules).
 */
struct bar1_p2p {
	struct fact_int installed, loaded; /* the module's file, the module in the kernel */
	/* onehop's mark in the file, "unlock 2"; absent: not made by onehop */
	struct fact_str mark;
};

/*
 * Whether the nvidia_uvm module keeps managed memory away from peers that it would reach through
 * BAR1 on chips before Hopper: 1, or 0. Absent: it is not installed, or not in the kernel.
 */
struct uvm_gate {
	struct fact_int installed, loaded;
};

enum driver_flavor { DRIVER_PROPRIETARY, DRIVER_OPEN, DRIVER_NOUVEAU, DRIVER_NOVA };

struct nvidia_driver {
	struct fact_int loaded;            /* the nvidia module is in the kernel */
	struct fact_str module_version;    /* of the loaded module, "580.159.04" */
	struct fact_int flavor;            /* enum driver_flavor */
	struct fact_str library_version;   /* of libcuda; where none is found, of libnvidia-ml */
	struct fact_str nvml_library;      /* version of libnvidia-ml */
	struct fact_str installed_version; /* of the module file on disk */
	/* "Dual MIT/GPL" is the open flavour, "NVIDIA" the proprietary */
	struct fact_str installed_license;
	struct fact_str
		/* "runfile", "dkms", "distribution", "container"; `from` says how certain it is */
		origin;
	struct fact_int cuda_version; /* 13000: what the driver supports */
	/* known: version of the opened library; unknown: why it was not opened */
	struct fact_str nvml;
	/* 1: NVML has no other GPUs than it lists; unknown of a text that may show only some */
	struct fact_int nvml_lists_all;
	struct fact_int device_nodes;    /* /dev/nvidia<N> that exist */
	struct fact_int gpus_in_proc;    /* GPUs that the module drives, /proc/driver/nvidia/gpus */
	struct fact_str registry_dwords; /* /proc/driver/nvidia/params RegistryDwords */
	struct fact_str registry_dwords_per_device; /* "pci=0000:01:00.0;KEY=1;pci=..." */
	struct bar1_p2p bar1_p2p;
	struct uvm_gate uvm_gate;
	/* Lines "NAME/VERSION PATH" of the modules that DKMS installed and that are torn; "": none. Absent:
	 * they are loaded, so they are whole, or DKMS installed none. */
	struct fact_str torn;
	struct fact_int resizable_bar; /* NVreg_EnableResizableBar */
	/* Heterogeneous memory management (HMM): GPUs reach memory of malloc, and their own memory has
	 * physical addresses for it. */
	/* uvm_disable_hmm of nvidia_uvm; absent: that is not loaded */
	struct fact_int hmm_disabled;
	struct fact_int hmm_placed; /* 1: it has assigned such addresses, /proc/iomem */
	struct fact_int hmm_end;    /* the highest of them */
	struct fact_int grdma_topology_override; /* NVreg_GrdmaPciTopoCheckOverride */
	struct fact_str fabric_manager_version;  /* of the installed nv-fabricmanager */
	/* NVSwitch functions that the driver drives, /proc/driver/nvidia-nvswitch */
	struct fact_int switches;
};

/* ---- RDMA ---- */

enum gid_type { GID_IB, GID_ROCE_V1, GID_ROCE_V2 };

struct rdma_gid {
	unsigned index;
	struct fact_str gid;
	struct fact_int type; /* enum gid_type */
};

/* How far the address of a GID reaches. */
enum gid_scope {
	GID_LINK_LOCAL, /* fe80::/10, or 169.254.0.0/16 in its IPv6 form */
	GID_IPV4,       /* ::ffff:a.b.c.d */
	GID_GLOBAL,     /* any other IPv6 address */
};

struct rdma_port {
	unsigned number;
	struct fact_str state;      /* "ACTIVE", "DOWN", "INIT", "ARMED" */
	struct fact_str phys_state; /* "LinkUp", "Disabled", "Polling" */
	struct fact_str link_layer; /* "InfiniBand", "Ethernet" */
	struct fact_int rate_mbps;  /* 400000 */
	struct rdma_gid *gids;      /* only those in use */
	size_t gid_n;
	struct fact_int gids_listed; /* 1: the table could be read */
};

struct rdma_device {
	size_t index;     /* NIC<index>: order of the kernel's names, mlx5_2 before mlx5_10 */
	const char *name; /* "mlx5_0" */
	struct pci_function *pci; /* NULL: no PCI device (soft RDMA) or unknown */
	struct fact_str firmware, hca_type, board_id, node_guid, driver;
	struct rdma_port *ports;
	size_t port_n;
	struct fact_int
		*levels; /* to each GPU, enum nvml_level, as texts state it; NULL: no text */
};

/* ---- host ---- */

struct numa_node {
	unsigned id;
	struct fact_str cpus; /* cpulist */
	struct fact_int memory_kib;
};

enum cpu_vendor { CPU_OTHER, CPU_INTEL, CPU_AMD, CPU_HYGON, CPU_ZHAOXIN, CPU_ARM };

struct cpu {
	struct fact_int vendor; /* enum cpu_vendor */
	struct fact_int family, model;
	struct fact_str name;
	struct fact_int sockets;
	struct fact_int threads; /* logical CPUs */
	struct fact_str online;  /* cpulist */
};

enum lockdown { LOCKDOWN_NONE, LOCKDOWN_INTEGRITY, LOCKDOWN_CONFIDENTIALITY };
enum boot_loader { BOOT_UNKNOWN, BOOT_GRUB, BOOT_SYSTEMD_BOOT, BOOT_UKI, BOOT_OTHER };

struct kernel {
	struct fact_str release; /* "6.1.0-56-amd64" */
	/* as /proc/version names it: "gcc-12 (Debian 12.2.0-14) 12.2.0" */
	struct fact_str compiler;
	struct fact_int compiler_major;  /* 12 */
	struct fact_str compiler_family; /* "gcc", "clang" */
	/* the newest gcc or clang of that family in /usr/bin; absent: none */
	struct fact_int installed_compiler_major;
	struct fact_int exact_compiler; /* 1: /usr/bin/gcc-<major> exists */
	struct fact_int headers;        /* 1: /lib/modules/RELEASE/build exists */
	struct fact_str cmdline;        /* up to a "--": the kernel's own words */
	struct fact_int cmdline_whole;  /* unknown: what is not in it may be set all the same */
	struct fact_str init_words;     /* after it: for init; absent: none */
	struct fact_int lockdown;       /* enum lockdown */
	struct fact_int secure_boot;    /* efivar SecureBoot; absent: no EFI */
	struct fact_int iommus;         /* entries of /sys/class/iommu; 0: no translation at all */
	struct fact_str iommu_names;    /* "dmar0 dmar1", "ivhd0" */
	struct fact_int dma_buf;        /* 1: kernel >= 5.12 with dma-buf MRs */
	struct fact_str hypervisor;     /* "kvm", "vmware", "firecracker"; absent: bare metal */
	struct fact_str container; /* "docker", "kubernetes", "lxc", "podman"; absent: none seen */
	struct fact_int boot_loader;     /* enum boot_loader */
	struct fact_int grubby;          /* 1: GRUB's entries have a folder, which grubby changes */
	struct fact_str distribution;    /* os-release PRETTY_NAME */
	struct fact_str distribution_id; /* "debian", "ubuntu", "fedora" */
	struct fact_str distribution_like; /* "rhel centos fedora"; absent: none */
	struct fact_str board;             /* DMI vendor and board name */
	struct fact_str bios;              /* DMI version and date */
	struct fact_str boot_id;           /* of this start of the machine */
};

/* Programs that make or change boot entries. */
enum boot_program {
	BOOT_GRUB_MKCONFIG,
	BOOT_GRUB2_MKCONFIG,
	BOOT_PROXMOX_TOOL,
	BOOT_KERNELSTUB,
	BOOT_PROGRAM_N
};

/* A file of /boot/loader/entries, where GRUB reads them too (Boot Loader Specification). */
struct grub_entry {
	const char *file;    /* "/boot/loader/entries/1.conf" */
	const char *options; /* its words, and those in GRUB variables */
	/* the part that could not be read: the file, "$kernelopts"; NULL: none */
	const char *unread;
};

/* Files that show which tool manages the kernel command line; line_keeper.h evaluates them. */
struct boot {
	struct fact_int programs[BOOT_PROGRAM_N]; /* 1: it exists */
	struct fact_int kernel_line;              /* 1: /etc/kernel/cmdline exists */
	struct fact_int entries_folder;           /* 1: a boot partition has loader/entries */
	struct fact_int proxmox_partitions;       /* 1: it has boot partitions of its own */
	struct fact_int ostree;                   /* 1: the running system is one of its trees */
	struct fact_str kernelstub;               /* its stored options, separated by one blank */
	struct grub_entry *entries;
	size_t entry_n;
};

struct module {
	const char *name;       /* as in /proc/modules: underscores */
	struct fact_int loaded; /* refcount in users */
	struct fact_int users;
	struct fact_str used_by; /* blank-separated */
	struct fact_str version;
	struct fact_str file;    /* path below /lib/modules/RELEASE; absent: not installed */
	struct fact_str depends; /* from .modinfo: comma-separated, "" when empty */
	struct fact_str license;
};

/* modprobe.d lines: what, which file, which line. */
enum modprobe_kind { MODPROBE_BLACKLIST, MODPROBE_OPTIONS, MODPROBE_INSTALL, MODPROBE_SOFTDEP };

struct modprobe_line {
	enum modprobe_kind kind;
	const char *module, *text, *file;
	unsigned line;
};

/* A file that makes vfio-pci claim devices at the next boot, for virtual machines. */
enum guest_claim_kind {
	GUEST_PARAMETER, /* text: a kernel command line, or a line that it is generated from */
	GUEST_MODULE,    /* text: vfio-pci's options where it is loaded; "": it has none there */
	GUEST_OVERRIDE,  /* text: the device, "0000:41:00.0" */
};

struct guest_claim {
	enum guest_claim_kind kind;
	const char *text;
	const char *from; /* "/etc/default/grub" */
};

enum log_kind {
	LOG_OTHER,
	LOG_XID,         /* code, address; detail */
	LOG_NVRM,        /* any other NVRM line */
	LOG_AER,         /* address; severity in detail */
	LOG_IOMMU_FAULT, /* address; DMAR or AMD-Vi */
	LOG_BAR,         /* a BAR or window that could not be assigned */
	LOG_PEERMEM,     /* nvidia-peermem, nv_peer_mem, ib_register_peer_memory_client */
	LOG_MODULE,      /* version disagreements, unknown symbols, signatures, lockdown */
	LOG_FABRIC,      /* nvidia-nvswitch, fabric */
	LOG_ACS,         /* ACS quirks and overrides */
};

struct log_line {
	enum log_kind kind;
	int64_t time_us;          /* since boot; -1: not in the line */
	struct pci_function *pci; /* the device that it names, NULL: none or not in the tree */
	struct fact_int code;     /* Xid number, AER error bits */
	const char *severity;     /* AER: "corrected", "nonfatal", "fatal"; "" else */
	const char *text;         /* without time stamp */
};

struct limits {
	struct fact_int memlock_bytes; /* soft limit of this process; -1: unlimited */
	struct fact_int memlock_hard_bytes;
	struct fact_int shm_bytes, shm_free_bytes; /* /dev/shm */
	struct fact_int shm_writable;
};

/* Where a setting comes from, weakest first. */
enum setting_origin {
	SETTING_SYSTEM_CONF,
	SETTING_USER_CONF,
	SETTING_ENVIRONMENT,
	SETTING_PROCESS,
	SETTING_SCRIPT,
};

/* A variable that a communication library reads. */
struct setting {
	const char *name, *value;
	enum setting_origin origin;
	const char *from; /* "/etc/nccl.conf:3", "environment", "/proc/4711/environ", "job.sh:12" */
	bool in_force;    /* no stronger origin sets the same name */
};

/* A PCI device of a topology that NCCL wrote, or that it is given in a file. */
struct nccl_topology_device {
	const char *address;                 /* "0000:41:00.0" */
	const char *class, *vendor, *device; /* "0x030200", "0x10de"; "": not given */
	const char *speed; /* "32.0 GT/s PCIe", "": unknown to NCCL; NULL: not given */
	int width;         /* lanes, 0: unknown to NCCL; -1: not given */
	bool used;         /* a rank's GPU, or a NIC with a network interface */
	int gpu_index;     /* NVML's, -1: none */
};

struct nccl_topology {
	struct nccl_topology_device *devices;
	size_t n;
	const char *from; /* NULL: there is none */
	bool dumped;      /* NCCL wrote it; else it is a file that NCCL is given */
};

struct nccl {
	struct setting *settings;
	size_t setting_n;
	const char *
		conf_missing; /* file that NCCL_CONF_FILE names and that is not there; NULL: none */
	struct fact_str library; /* path of the libnccl that is (with --pid) or would be used */
	struct fact_int version; /* 22809 for 2.28.9 */
	struct fact_int pid;     /* --pid N */
	/*
	 * 1: every log that was read is of a whole run, to its good end; no `from`: none was read.
	 */
	struct fact_int ended;
	struct nccl_topology topology;
};

/* Kernel and user-space pieces of GPUDirect RDMA. */
struct peermem {
	struct fact_int loaded;        /* module nvidia_peermem (or nvidia_current_peermem) */
	struct fact_int listed;        /* /sys/kernel/mm/memory_peers/nv_mem or nv_mem_nc */
	struct fact_int registered;    /* a client of the RDMA core, listed or not */
	struct fact_int legacy_loaded; /* nv_peer_mem */
	struct fact_str depends; /* of the module file; "" : built without the peer-memory API */
	struct fact_int api_in_kernel; /* ib_register_peer_memory_client in /proc/kallsyms */
	struct fact_str ofed;          /* version of the MLNX_OFED or DOCA that is installed */
	/* version of the loaded mlx5_core; absent: the kernel's own */
	struct fact_str ofed_running;
	struct fact_int ofed_modules; /* 1: ib_core of this kernel is OFED's, 0: the kernel's own */
	struct fact_str ofed_kernel;  /* the release that OFED's modules were last built for */
};

/* ---- changes by `onehop fix` that should be in force, from its own list ---- */

enum applied_kind {
	APPLIED_KERNEL_PARAMETER, /* target: "iommu=pt" */
	APPLIED_MODULE_OPTION,    /* target: module; value: "NVreg_EnableResizableBar=1" */
	APPLIED_REGISTRY_DWORD,   /* target: "nvidia"; value: "ForceP2P=0x11" */
	APPLIED_MODULE_BLACKLIST, /* target: module */
	APPLIED_TRIAL,            /* target: "iommu=pt", for one boot until it is confirmed */
	APPLIED_UNFINISHED,       /* target: "applying" or "undoing" */
	APPLIED_UNDONE,           /* of this boot, which still has its changes; target: "reboot" */
	APPLIED_ACS,              /* target: port "0000:22:00.0"; value: ACS control, "0011" */
	APPLIED_KIND_N
};

struct applied {
	unsigned fix; /* its number in the journal */
	enum applied_kind kind;
	const char *target, *value; /* value "" where the kind has none */
	struct fact_int same_boot;  /* 1: the machine was not restarted since */
	const char *from;           /* "var/lib/onehop/in-force:2" */
};

/* A result that was read: from this machine's store, or from a file that the user named. */
struct weighed {
	struct observed_run run;
	const char *from;  /* the file; for the store its folder, "" in a recording */
	bool kept;         /* from the store */
	int64_t age_s;     /* -1: unknown, or from a recording */
	bool ahead;        /* its date is in the future: a result of the store is then ignored */
	size_t observed_n; /* number of observations that it added to machine.observed */
	/* What has changed since. A result of the store is then stale and ignored. */
	struct changed changed;
};

/* Something that could not be read or made sense of; shown as a finding, never fatal. */
struct trouble {
	const char *where;  /* path, register, call */
	const char *what;   /* one sentence */
	const char *remedy; /* NULL: the user has to look */
	bool settled;       /* only good to know */
};

/* Lines of a text that the machine was read from. */
struct text_part {
	const char *file;
	const char *name;  /* "nvidia-smi topo -m"; NULL: unknown, not used */
	const char *about; /* "8 GPUs", "" */
	unsigned first, last;
	bool cut;        /* not all of what the tool printed */
	unsigned cut_at; /* the line behind which it is cut off; 0: nothing shows that it is */
};

struct machine {
	struct arena *arena; /* owns everything below */

	const char *source_name; /* "/", or the recording's file name */
	bool recorded;
	const char *note;        /* the recording's note, may be "" */
	const char *recorded_by; /* "onehop 0.1.0", "" for a live machine */
	/* 1: facts were read with privilege over config space and kernel log */
	struct fact_int root;

	struct pci_function *pci; /* sorted by address */
	size_t pci_n;
	struct fact_int pci_listed; /* 1: /sys/bus/pci could be read */

	struct gpu *gpus; /* by PCI address */
	size_t gpu_n;
	struct gpu_pair *pairs; /* gpu_n * gpu_n; NULL without GPUs */
	struct nvidia_driver driver;

	struct rdma_device *rdma;
	size_t rdma_n;
	struct fact_int rdma_listed; /* absent: no RDMA stack */

	struct numa_node *nodes;
	size_t node_n;
	struct cpu cpu;
	struct kernel kernel;
	struct boot boot;
	struct module *modules;
	size_t module_n;
	struct modprobe_line *modprobe;
	size_t modprobe_n;
	struct guest_claim *guest_claims; /* with MACHINE_GUESTS */
	size_t guest_claim_n;
	struct log_line *log;
	size_t log_n;
	struct fact_int log_read; /* 1: the kernel log could be read */
	/* It has more lines about devices than are in `log`: older ones, or any. */
	bool log_lacks_older, log_lacks_some;
	struct limits limits;
	struct nccl nccl;
	struct setting *settings; /* of other libraries than NCCL: UCX, Open MPI, NVSHMEM, Gloo */
	size_t setting_n;
	struct fact_int environment; /* 1: these and NCCL's are all that the environment sets */
	struct peermem peermem;

	struct observed *observed;
	size_t observed_n;
	struct weighed *weighed;
	size_t weighed_n;

	struct applied *applied;
	size_t applied_n;
	struct fact_int applied_listed; /* 1: the list could be read; absent: nothing was changed */
	/*
	 * 1: the boot loader is set to start a trial's entry next. Read only if there is a trial.
	 */
	struct fact_int trial_set;

	struct text_part *text_parts; /* of a machine that was read from texts, in their order */
	size_t text_part_n;

	struct trouble *troubles;
	size_t trouble_n;
};

/* What to read, so that a command does not wait for facts that it does not use. */
enum machine_part {
	MACHINE_PCI = 1 << 0,
	MACHINE_CONFIG_SPACE = 1 << 1,
	MACHINE_GPUS = 1 << 2, /* from the driver's files */
	MACHINE_NVML = 1 << 3, /* also from NVML: names and order */
	/* also what decides peer access: 2 ms per pair and capability; with MACHINE_RM per pair */
	MACHINE_NVML_P2P = 1 << 4,
	MACHINE_NVML_STATE = 1 << 5, /* also memory, modes, processes, clocks, fabric */
	MACHINE_RDMA = 1 << 6,
	MACHINE_HOST = 1 << 7, /* CPU, kernel, boot, modules, limits, NCCL, peer memory */
	MACHINE_LOG = 1 << 8,
	MACHINE_NUMA = 1 << 9,
	MACHINE_NVML_LINKS = 1 << 10, /* NVLink, and topology levels where there is none */
	MACHINE_P2P_ALL = ((1 << P2P_CAP_N) - 1)
			  << 16,        /* each capability of each pair, see below */
	MACHINE_NVML_DETAILS = 1 << 21, /* with MACHINE_NVML_STATE: what no rule uses */
	/* nvidia's, which is large: whether it has P2P through BAR1 */
	MACHINE_MODULE_FILE = 1 << 22,
	MACHINE_BOOT = 1 << 24,   /* which tool manages the kernel command line */
	MACHINE_GUESTS = 1 << 25, /* which files give devices to virtual machines: for fix alone */
	MACHINE_OBSERVED = 1 << 26, /* results in the store; needs the GPUs too */
	MACHINE_RM = 1 << 23, /* how GPUs are connected, from the resource manager of the driver */
	MACHINE_NVML_ANY = MACHINE_NVML | MACHINE_NVML_P2P | MACHINE_NVML_STATE |
			   MACHINE_NVML_LINKS | MACHINE_P2P_ALL,
	MACHINE_TO_JUDGE = ((1 << 11) - 1) | MACHINE_RM | MACHINE_BOOT | MACHINE_OBSERVED,
	MACHINE_ALL =
		MACHINE_TO_JUDGE | MACHINE_P2P_ALL | MACHINE_NVML_DETAILS | MACHINE_MODULE_FILE,
};

/* One capability of each pair. */
#define MACHINE_P2P(cap) (1u << (16 + (cap)))

struct machine_request {
	unsigned parts; /* enum machine_part */
	int pid;        /* process whose NCCL settings are read; 0: none */
};

/*
 * More than any machine has: the driver supports 32 GPUs (NV_MAX_DEVICES). A file that claims more
 * would waste time and memory, which grow with the square of the number of GPUs.
 */
enum { MACHINE_MOST_GPUS = 256, MACHINE_MOST_FUNCTIONS = 16384 };

/*
 * Reads a machine from a source; always succeeds: what could not be read becomes an unknown fact or
 * a trouble. The source may be closed afterwards.
 */
struct machine *machine_read(struct source *s, const struct machine_request *request);
/* Of the text by which a kernel names its compiler; -1: unknown. */
int compiler_major(const char *s);
void machine_free(struct machine *m);
/* For a sentence: the name of its recording, or "this machine". */
const char *machine_place(const struct machine *m);
/* The GPU with this address, "0000:41:00.0"; NULL: none has it. */
const struct gpu *machine_gpu_at(const struct machine *m, const char *pci);

/* The hypervisor whose virtual machines call themselves so in their DMI tables; NULL: none. */
const char *hypervisor_of_dmi(const char *vendor, const char *product);

const struct gpu_pair *machine_pair(const struct machine *m, size_t initiator, size_t target);
/* The scope of a GID with a known text. */
enum gid_scope rdma_gid_scope(const struct rdma_gid *g);
/* The GID that a RoCE port is reached by through routers: v2, an IPv4 address before an IPv6 one, the
 * lowest index first. NULL: it has none. */
const struct rdma_gid *rdma_routed_gid(const struct rdma_port *p);
const struct module *machine_module(const struct machine *m, const char *name); /* NULL: unknown */
/* The effective setting of that name, of any library. */
const struct setting *machine_setting(const struct machine *m, const char *name);
/* The first number of a driver version, 580 of "580.159.04"; -1: unknown. */
int driver_branch(struct fact_str version);
/* The value of KEY in the driver's RegistryDwords, "KEY=0x11;OTHER=1": the last one counts. Absent:
 * it is not set. */
struct fact_int driver_registry_dword(const struct nvidia_driver *d, const char *key);
/* A list of keys as the driver walks it, without blanks; malloc'ed, "" if it is unknown. */
char *driver_registry_list(struct fact_str list);
/* Whether "pci=TEXT" of RegistryDwordsPerDevice means this GPU: "bus:slot", "domain:bus:slot" or
 * "domain:bus:slot.function" (open-gpu-kernel-modules os-registry.c, pci_str_to_bdf). */
bool driver_names_gpu(const char *text, const struct gpu *g);
/* The value as a GPU gets it: its own in RegistryDwordsPerDevice, else that of all. */
struct fact_int driver_gpu_dword(const struct nvidia_driver *d, const struct gpu *g,
				 const char *key);
/*
 * A GPU's ForceP2P when it forces reads (bits 1:0) or writes (5:4) on; 0: it does not, or is
 * unknown. In a pair either GPU's value counts (open-gpu-kernel-modules p2p_caps.c
 * _kp2pCapsCheckStatusOverridesForPcie).
 */
int64_t driver_forced_p2p(const struct nvidia_driver *d, const struct gpu *g);
/* Names of enum values, in messages and JSON. */
const char *p2p_status_code(int64_t status);        /* "OK", "CNS", ... "U" */
const char *rm_connection_word(int64_t connection); /* "pcie-bar1", "none" */
