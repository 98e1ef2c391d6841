/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/run_failure.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* IDs in the remedies are those of `onehop check`. */
#define FAULT_MEANS                                                                                \
	"a kernel used an address that its GPU has not mapped: a bug in the program, "             \
	"or a peer mapping that leads elsewhere"
#define FAULT_TODO                                                                                 \
	"check the kernel log for an Xid (rule xid-fault) and run onehop test; if "                \
	"the job runs with NCCL_P2P_DISABLE=1, the peer mappings are the cause"
#define MISUSE_MEANS                                                                               \
	"a kernel used an address in a way that its instruction does not allow: a bug in the "     \
	"program"
#define MISUSE_TODO   "run the program under compute-sanitizer, which names the kernel"
#define MAPPING_MEANS "the driver could not map a peer's memory into the GPU's BAR1 or page tables"
#define MAPPING_TODO                                                                               \
	"run onehop check on the machine: bar1-small and p2p-forced explain why; "                 \
	"until then set NCCL_P2P_DISABLE=1"
#define OTHERS_TODO                                                                                \
	"NCCL_P2P_DISABLE=1 is set, so NCCL did not ask for it: turn off what else uses peer "     \
	"access (vLLM, SGLang: --disable-custom-all-reduce; the program's own option), and check " \
	"that the variable reaches every rank"
#define MAPPINGS_TODO                                                                              \
	"NCCL_P2P_DISABLE=1 is set, so check the kernel log for an Xid (rule xid-fault): only "    \
	"peer access of the program itself is left, besides a bug in it"
#define HARDWARE_TODO "check the kernel log for an Xid (rules xid-memory and xid-nvlink)"

#define SHM_FULL_MEANS "/dev/shm has no room for the segments that ranks of one host share"
#define SHM_FULL_TODO                                                                              \
	"enlarge it: docker run --shm-size=1g or --ipc=host, in Kubernetes an "                    \
	"emptyDir with medium: Memory at /dev/shm (rule shm-size)"

#define RNR_MEANS        "the peer of a NIC does not take what it is sent: its process hangs or has exited"
#define RNR_TODO         "check that rank's log, and with py-spy or gdb where it waits"
#define GPU_MEMORY_MEANS "a GPU has no memory left for the program or for NCCL's buffers"
#define GPU_MEMORY_TODO                                                                            \
	"stop other programs on the GPUs, or make NCCL's buffers smaller "                         \
	"(NCCL_BUFFSIZE, NCCL_MAX_CTAS)"
#define NO_ANSWER_MEANS "a NIC got no answer from its peer: the connection does not work"
#define NO_ANSWER_TODO                                                                             \
	"run onehop check on both machines (rules nccl-gid-index and rdma-port-down), and check "  \
	"the network between them with onehop bench rdma; if it joins only equal-numbered NICs, "  \
	"set NCCL_CROSS_NIC=0"
#define REGISTER_MEANS                                                                             \
	"a NIC could not register memory: the limit of locked memory is too low, or the GPU's "    \
	"memory cannot be shared with it, for lack of a peer-memory module that works or of "      \
	"dma-buf, or because the GPU does not allow it"
#define REGISTER_TODO                                                                              \
	"raise the limit of locked memory (rule memlock); if it works with host memory, or with "  \
	"NCCL_NET_GDR_LEVEL=LOC, load nvidia_peermem (rule peermem-not-loaded)"
#define REGISTER_LOADED_TODO                                                                       \
	"raise the limit of locked memory (rule memlock); if it works with host memory, the "      \
	"module for peer memory is loaded, and does not serve this GPU or this NIC: GeForce "      \
	"cards and vGPUs without this right have none of it (rule gdr-geforce), and it has to "    \
	"fit the NIC's drivers (rules peermem-*)"
#define REFUSED_MEANS                                                                              \
	"a NIC refused the access of its peer: the memory is not registered there, or is no "      \
	"longer what was registered"
#define OWN_MEANS                                                                                   \
	"a NIC refused a transfer of its own rank: the memory is not registered with it, or is no " \
	"longer what was registered"
#define REFUSED_TODO                                                                               \
	"try NCCL_NET_GDR_LEVEL=LOC: if that works, GPU memory and the NIC do not fit (onehop "    \
	"check, rules peermem-*, iommu-translating); else look for an earlier error of that rank"
#define GONE_MEANS "another rank exited, or the connection to it broke"
#define GONE_TODO  "check that rank's log, which shows the cause"
#define UNREACHED_MEANS                                                                            \
	"a rank could not connect to another: that one has not started or has exited, a firewall " \
	"is between them, or they use networks that are not connected"
#define UNREACHED_TODO                                                                             \
	"check the other rank's log; if it waits, set NCCL_SOCKET_IFNAME to an interface that "    \
	"all hosts can reach, and open the ports between them"
#define NO_INTERFACE_MEANS "NCCL found no network interface that it may use"
#define NO_INTERFACE_TODO                                                                          \
	"check NCCL_SOCKET_IFNAME (prefixes; = in front: exact names) against `ip -br address`"
#define NIC_FAILED_MEANS "a NIC reported that it, its port or a queue of it failed"
#define NIC_FAILED_TODO                                                                            \
	"check the port (rule rdma-port-down) and the kernel log for mlx5 and AER lines (onehop "  \
	"check does)"
#define MERGED_MEANS                                                                               \
	"NCCL is set to use several NICs as one, and they are not there or cannot be joined"
#define MERGED_TODO                                                                                \
	"unset NCCL_NET_FORCE_MERGE, and set NCCL_NET_MERGE_LEVEL=LOC, which uses each NIC by "    \
	"itself"
#define RESOURCES_MEANS                                                                            \
	"a NIC could not create a queue: the limit of locked memory, or the NIC's own resources, " \
	"are used up"
#define RESOURCES_TODO                                                                             \
	"raise the limit of locked memory (rule memlock), or use fewer queues "                    \
	"(NCCL_IB_QPS_PER_CONNECTION)"
#define TOPOLOGY_MEANS "the topology file that NCCL was given cannot be read"
#define TOPOLOGY_TODO                                                                              \
	"correct or unset NCCL_TOPO_FILE (or NCCL_GRAPH_FILE); also look at "                      \
	"/var/run/nvidia-topologyd/virtualTopology.xml"
#define FOLLOWS_MEANS "a consequence of an earlier error, of this rank or of its peer"
#define FOLLOWS_TODO  "look for the first error in the logs of all ranks"
#define MIXED_MEANS                                                                                \
	"NCCL was given NICs that do not fit together: InfiniBand and RoCE, or different ones on " \
	"the two hosts"
#define MIXED_TODO "select NICs of one kind with NCCL_IB_HCA, the same on all hosts"
#define IMEX_MEANS "NVLink between hosts (MNNVL) is there, and IMEX, which it needs, does not work"
#define IMEX_TODO                                                                                  \
	"check `nvidia-imex-ctl -N` and that the job can open /dev/nvidia-caps-imex-channels; "    \
	"until then NCCL_MNNVL_ENABLE=0"
#define HOST_MEMORY_MEANS "the host, or the job's limit, has no memory left"
#define HOST_MEMORY_TODO  "check `free -m` and the memory limit of the container or job"
#define NVML_MEANS        "NVML cannot be used, which NCCL needs to see NVLinks and P2P"
#define NVML_TODO                                                                                  \
	"check that nvidia-smi works at the same place; a container needs the driver capability "  \
	"'utility' (NVIDIA_DRIVER_CAPABILITIES)"
#define CUDA_OLD_MEANS "the driver is too old for this NCCL"
#define CUDA_OLD_TODO  "update the driver, or use the NCCL that was built for its CUDA version"
#define NO_GPU_MEANS   "the program sees no GPU, or fewer than it uses"
#define NO_GPU_TODO                                                                                 \
	"check CUDA_VISIBLE_DEVICES, the GPUs that the container is given, and `nvidia-smi -L` at " \
	"the same place"
#define VERSIONS_MEANS "the driver's library and its kernel modules do not fit together"
#define VERSIONS_TODO                                                                              \
	"check that both have one version (rule driver-library-version); a container may carry a " \
	"library of its own (cuda-compat), which suits data center cards only"
#define COMPARE_TODO                                                                               \
	"compare what each rank called last (with TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and "          \
	"TORCH_NCCL_DUMP_ON_TIMEOUT=1 PyTorch writes it), and look for an earlier error of the "   \
	"rank that is behind"
#define UDS_MEANS                                                                                  \
	"processes of one host could not pass each other their memory over a Unix socket, as in "  \
	"containers without a common network namespace"
#define UDS_TODO                                                                                   \
	"start the containers with a common network namespace (--net=host), or set "               \
	"NCCL_CUMEM_ENABLE=0"

#define BUS_ERROR_MEANS                                                                               \
	"a process used memory behind which there is nothing: most often /dev/shm is full, rarely a " \
	"GPU has fallen off the bus"
#define BUS_ERROR_TODO SHM_FULL_TODO "; and check the kernel log for an Xid"

#define ENGINE_HANGS_MEANS                                                                            \
	"a worker of the inference engine did not answer in time: a transfer between GPUs hangs, or " \
	"a kernel, or the step takes longer than the limit"
#define ENGINE_HANGS_TODO                                                                          \
	"check the kernel log for an Xid and the stack of each worker (py-spy dump); run onehop "  \
	"test, and the engine once with NCCL_P2P_DISABLE=1 and without its own all-reduce (vLLM, " \
	"SGLang: --disable-custom-all-reduce)"

#define GDRCOPY_MEANS "NCCL is set to use GDRCopy, which does not work"
#define GDRCOPY_TODO                                                                               \
	"load its module (gdrdrv) of the version of its library, or unset NCCL_GDRCOPY_ENABLE"
#define RANKS_MEANS "the processes do not agree on the number of ranks, or two have the same rank"
#define RANKS_TODO                                                                                 \
	"check the launcher: WORLD_SIZE and RANK, and that no process of an earlier run is left"
#define TREE_MEANS                                                                                 \
	"what the system or the topology file shows of the PCI tree does not fit together"
#define TREE_TODO                                                                                  \
	"unset NCCL_TOPO_FILE; in a virtual machine or container check that all of /sys is visible"

/*
 * What NCCL warns of, by what its line holds; the first row counts. NCCL 2.18 to 2.30, src (WARN).
 */
#define WARNED(in_what, meaning, todo)                                                             \
	{                                                                                          \
		RUN_NCCL_ERROR, -1, meaning, todo, in_what                                         \
	}

#define SLOW_LINK_MEANS                                                                            \
	"a link between a GPU and the rest of the machine is slower than the test expects"
#define SLOW_LINK_TODO                                                                             \
	"compare Speed and Width of LnkSta with LnkCap in sudo lspci -vvv, for the GPU and each "  \
	"bridge above it; onehop bench measures the paths"

static const struct run_failure_meaning meanings[] = {
	{RUN_TEST_FAILED, -1, SLOW_LINK_MEANS, SLOW_LINK_TODO, "andwidth"},
	{RUN_TEST_FAILED, -1, SLOW_LINK_MEANS, SLOW_LINK_TODO, "PCIe link is running at"},
	{RUN_TEST_FAILED, -1,
	 "a test got wrong data or failed with an error, and does not show which pair "
	 "is the cause",
	 "run onehop test, which checks each GPU and each pair; until then do not "
	 "trust results from these GPUs"},
	{RUN_CUDA_ERROR, 1, "a CUDA call did not accept what it was given",
	 "the lines around it show which call; onehop check on the machine shows what it may depend "
	 "on (rules nvswitch-fabric and shm-size among others)"},
	{RUN_CUDA_ERROR, 2, GPU_MEMORY_MEANS, GPU_MEMORY_TODO},
	{RUN_CUDA_ERROR, 34,
	 "the program loads a libcuda.so that is only for linking, not the driver's",
	 "remove folders named stubs from LD_LIBRARY_PATH and from the program's run path, and check "
	 "with ldd or LD_DEBUG=libs that libcuda.so.1 is the driver's"},
	{RUN_CUDA_ERROR, 35, CUDA_OLD_MEANS, CUDA_OLD_TODO},
	{RUN_CUDA_ERROR, 100, NO_GPU_MEANS, NO_GPU_TODO},
	{RUN_CUDA_ERROR, 101, NO_GPU_MEANS, NO_GPU_TODO},
	{RUN_CUDA_ERROR, 205, MAPPING_MEANS, MAPPING_TODO, .without_p2p = OTHERS_TODO},
	{RUN_CUDA_ERROR, 214, "a GPU's memory had an uncorrectable error", HARDWARE_TODO},
	{RUN_CUDA_ERROR, 217,
	 "CUDA refuses peer access between GPUs for which the program or NCCL relied on it",
	 "run onehop check on the machine, or `nvidia-smi topo -p2p r` at the same place: the driver "
	 "refuses it, or the ranks see other GPUs than was assumed; until then use no P2P: "
	 "NCCL_P2P_DISABLE=1, and the program's own option",
	 .without_p2p = OTHERS_TODO},
	{RUN_CUDA_ERROR, 220, "an NVLink transfer was corrupted and could not be repeated",
	 HARDWARE_TODO},
	{RUN_CUDA_ERROR, 700, FAULT_MEANS, FAULT_TODO, .without_p2p = MAPPINGS_TODO},
	{RUN_CUDA_ERROR, 711, MAPPING_MEANS, MAPPING_TODO, .without_p2p = OTHERS_TODO},
	{RUN_CUDA_ERROR, 716, MISUSE_MEANS, MISUSE_TODO},
	{RUN_CUDA_ERROR, 717, MISUSE_MEANS, MISUSE_TODO},
	{RUN_CUDA_ERROR, 719,
	 "an exception ended a kernel: it used memory that is not its own, ran into a trap of the "
	 "program itself, as after a time-out in the kernel, or the GPU has a fault",
	 "check the kernel log for an Xid (rules xid-*), look for messages of the program just before "
	 "it, and run onehop test"},
	{RUN_CUDA_ERROR, 802, "the GPUs are connected by NVSwitches that are not set up",
	 "start the fabric manager of the driver's version (rules nvswitch-fabric and fabric-manager-version)"},
	{RUN_CUDA_ERROR, 803, VERSIONS_MEANS, VERSIONS_TODO},
	{RUN_CUDA_ERROR, 804, VERSIONS_MEANS, VERSIONS_TODO},
	{RUN_CUDA_ERROR, 999,
	 "CUDA could not start: most often the kernel module nvidia_uvm or its device file is "
	 "missing, or no longer works, as after a suspend",
	 "check `ls -l /dev/nvidia-uvm` and `lsmod | grep nvidia_uvm` at the same place; reload it "
	 "(modprobe -r nvidia_uvm, modprobe nvidia_uvm), in a container start it again"},
	{RUN_CUDA_ERROR, -1, "a CUDA call or kernel failed",
	 "check the kernel log for an Xid at the same time (onehop check does), and "
	 "run onehop test"},
	{RUN_NCCL_ERROR, 1, "a CUDA call within NCCL failed",
	 "find the line with \"Cuda failure\" in the log, which names it"},
	{RUN_NCCL_ERROR, 2, "a system call failed: shared memory, a socket or a NIC",
	 "find the warning before it in the log, and run onehop check on the machine "
	 "(rules shm-size, shm-writable, memlock)"},
	{RUN_NCCL_ERROR, 5, "two ranks use one GPU",
	 "check that each rank selects a GPU of its own (torch.cuda.set_device(LOCAL_RANK), or "
	 "CUDA_VISIBLE_DEVICES of each process), and that no host has more ranks than GPUs",
	 "Duplicate GPU detected"},
	{RUN_NCCL_ERROR, 5, "NCCL was called incorrectly",
	 "check the program: two ranks on one GPU, or ranks that call different "
	 "collectives"},
	{RUN_NCCL_ERROR, 6, GONE_MEANS, GONE_TODO},
	{RUN_NCCL_ERROR, -1, SHM_FULL_MEANS, SHM_FULL_TODO, "o space left on device"},
	{RUN_NCCL_ERROR, -1, "NCCL cannot write to /dev/shm, where ranks of one host exchange data",
	 "make it writable for the job's user (mode 1777; a container has its own "
	 "/dev/shm), and remove files nccl-* that another user left; onehop check on "
	 "the machine shows which (rule shm-writable)",
	 "shm_open failed"},
	{RUN_NCCL_ERROR, -1, SHM_FULL_MEANS " or could not be created there",
	 SHM_FULL_TODO "; the error before it in the log shows why",
	 "creating shared memory segment"},
	{RUN_NCCL_ERROR, -1, REGISTER_MEANS, REGISTER_TODO, "ibv_reg_mr",
	 .with_peermem = REGISTER_LOADED_TODO},
	{RUN_RDMA_ERROR, -1, REGISTER_MEANS,
	 REGISTER_TODO
	 "; GeForce cards and vGPUs without this right have neither (rule gdr-geforce); "
	 "perftest uses dma-buf only with --use_cuda_dmabuf",
	 .with_peermem = REGISTER_LOADED_TODO},
	WARNED("RNR_RETRY_EXC", RNR_MEANS, RNR_TODO),
	WARNED("RETRY_EXC", NO_ANSWER_MEANS, NO_ANSWER_TODO),
	WARNED("WR_FLUSH", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("REM_ACCESS", REFUSED_MEANS, REFUSED_TODO),
	WARNED("REM_INV_REQ", REFUSED_MEANS, REFUSED_TODO),
	WARNED("LOC_PROT", OWN_MEANS, REFUSED_TODO),
	WARNED("status=12", NO_ANSWER_MEANS, NO_ANSWER_TODO),
	WARNED("with error 12", NO_ANSWER_MEANS, NO_ANSWER_TODO),
	WARNED("status=13", RNR_MEANS, RNR_TODO),
	WARNED("with error 13", RNR_MEANS, RNR_TODO),
	WARNED("status=10", REFUSED_MEANS, REFUSED_TODO),
	WARNED("with error 10", REFUSED_MEANS, REFUSED_TODO),
	WARNED("status=9 ", REFUSED_MEANS, REFUSED_TODO),
	WARNED("with error 9,", REFUSED_MEANS, REFUSED_TODO),
	WARNED("status=4 ", OWN_MEANS, REFUSED_TODO),
	WARNED("with error 4,", OWN_MEANS, REFUSED_TODO),
	WARNED("status=5 ", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("with error 5,", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("Got completion ", "a NIC ended a transfer with an error",
	       "the line has the status (ibv_wc_status of verbs.h); run onehop check on both machines"),
	WARNED("ibv_modify_qp",
	       "two NICs could not be connected: their GIDs, networks or paths do not fit",
	       "run onehop check on both machines (rules roce-gid and nccl-gid-index)"),
	WARNED("ibv_create_", RESOURCES_MEANS, RESOURCES_TODO),
	WARNED("ibv_alloc_pd", RESOURCES_MEANS, RESOURCES_TODO),
	WARNED("ibv_post_", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("async fatal event", NIC_FAILED_MEANS, NIC_FAILED_TODO),
	WARNED("async error event", NIC_FAILED_MEANS, NIC_FAILED_TODO),
	WARNED("encountered a fatal error", NIC_FAILED_MEANS, NIC_FAILED_TODO),
	WARNED("failed devices out of", NIC_FAILED_MEANS, NIC_FAILED_TODO),
	WARNED("Got CQE with error", "a NIC ended a transfer with an error",
	       "look for a line with its status; run onehop check on both machines"),
	WARNED("mlx5dv_create_qp", RESOURCES_MEANS, RESOURCES_TODO),
	WARNED("Unable to open device", "a NIC cannot be opened",
	       "a container needs /dev/infiniband and its limit of locked memory raised; check `ibv_devinfo` there"),
	WARNED("Unable to query", "a NIC cannot be queried",
	       "check `ibv_devinfo` at the same place"),
	WARNED("link_layer", MIXED_MEANS, MIXED_TODO),
	WARNED("incompatible devices", MIXED_MEANS, MIXED_TODO),
	WARNED("incompatible with the local", MIXED_MEANS, MIXED_TODO),
	WARNED("Detected mixed local", MIXED_MEANS, MIXED_TODO),
	WARNED("Failed to bind NVLink SHARP",
	       "NVLink multicast (NVLS) could not be set up: the fabric's state is stale, or its multicast groups are used up",
	       "check Fabric in `nvidia-smi -q` (rule nvswitch-fabric), and restart the fabric manager with no job running; until then NCCL_NVLS_ENABLE=0"),
	WARNED("MNNVL (", IMEX_MEANS, IMEX_TODO),
	WARNED("MNNVL is not supported",
	       "NCCL_MNNVL_ENABLE=1 demands NVLink between hosts, which this system does not offer",
	       "unset NCCL_MNNVL_ENABLE; on a system that has it check `nvidia-imex-ctl -N`, and Fabric in `nvidia-smi -q`"),
	WARNED("exceeds device/fn",
	       "a kernel of NCCL needs more shared memory than the GPU has: this NCCL is not built for it, or a program uses part of the GPU",
	       "use an NCCL that is built for the GPU's architecture, and check MPS limits; NCCL_BUFFSIZE does not change it"),
	WARNED("find any local path",
	       "NCCL sees no way from a GPU to any network device: its picture of the PCI tree lacks NICs",
	       TREE_TODO),
	WARNED("different NUMA domains", MERGED_MEANS, MERGED_TODO),
	WARNED("TOPO/NET : ", MERGED_MEANS, MERGED_TODO),
	WARNED("Only matched ", MERGED_MEANS, MERGED_TODO),
	WARNED("fused NIC", MERGED_MEANS, MERGED_TODO),
	WARNED("port pair found", "NCCL_COMM_ID is not an address and a port",
	       "write it as HOST:PORT or [IPv6]:PORT, or unset it: launchers of PyTorch and MPI do not need it"),
	WARNED("port> pair found", "NCCL_COMM_ID is not an address and a port",
	       "write it as HOST:PORT or [IPv6]:PORT, or unset it: launchers of PyTorch and MPI do not need it"),
	WARNED("captured in a graph if", CUDA_OLD_MEANS, CUDA_OLD_TODO),
	WARNED("CUDA context on device",
	       "a second CUDA context on the GPU failed: its memory is used up, or it allows one process only",
	       GPU_MEMORY_TODO "; check the compute mode (rule gpu-compute-mode)"),
	WARNED("socket progress error", GONE_MEANS, GONE_TODO),
	WARNED("version mismatch with remote peer", "the ranks use different NCCL versions",
	       "use one NCCL version for all ranks; the line names both"),
	WARNED("Connection closed by remote peer", GONE_MEANS, GONE_TODO),
	WARNED("o route to host", UNREACHED_MEANS, UNREACHED_TODO),
	WARNED("onnection refused", UNREACHED_MEANS, UNREACHED_TODO),
	WARNED("onnection timed out", UNREACHED_MEANS, UNREACHED_TODO),
	WARNED("exceeded retries", UNREACHED_MEANS, UNREACHED_TODO),
	WARNED("exceeded timeouts", UNREACHED_MEANS, UNREACHED_TODO),
	WARNED("exceeded error retry count", UNREACHED_MEANS, UNREACHED_TODO),
	WARNED("onnect to ", UNREACHED_MEANS, UNREACHED_TODO),
	WARNED("PollConnect", UNREACHED_MEANS, UNREACHED_TODO),
	WARNED("onnection reset by peer", GONE_MEANS, GONE_TODO),
	WARNED("interface found", NO_INTERFACE_MEANS, NO_INTERFACE_TODO),
	WARNED("oo many open files", "the limit of open files is used up",
	       "raise it for the job: ulimit -n 1048576, or LimitNOFILE= of the service"),
	WARNED("oo many connections", "more ranks than this NCCL handles connected to one process",
	       "check that the ranks per host are as intended"),
	WARNED("hread creation failed", "the limit of processes or threads is used up",
	       "raise ulimit -u, or the limit of pids of the container"),
	WARNED("wrong magic",
	       "something that is not a rank of this job connected to it: a port scan, or another job",
	       "use separate ports or networks for jobs, or ignore it if the job went on"),
	WARNED("wrong type", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("truncated", "ranks called different operations, or with different sizes",
	       "check the program: operation, type and size have to be the same on all ranks"),
	WARNED("collective mismatch", "ranks called different operations, or with different sizes",
	       "check the program: operation, type and size have to be the same on all ranks"),
	WARNED("P2P is disabled between NVLINK",
	       "the driver refuses P2P between GPUs that NVLink joins, and NCCL gives up",
	       "check `nvidia-smi topo -p2p r`, `nvidia-smi nvlink -s` and, with NVSwitch, the fabric manager; NCCL_IGNORE_DISABLED_P2P=1 goes on without their NVLinks"),
	WARNED("No transport found",
	       "NCCL may use neither P2P nor shared memory nor a network between two ranks",
	       "unset NCCL_SHM_DISABLE and NCCL_NET_DISABLE_INTRA (onehop env), and check the lines above it"),
	WARNED("failed to peer with device",
	       "CUDA refuses peer access between GPUs for which NCCL relied on it",
	       "run onehop check on the machine; until then set NCCL_P2P_DISABLE=1"),
	WARNED("cudaIpcGetMemHandle", "CUDA cannot share memory between processes",
	       "share the PID and IPC namespaces of the containers (--ipc=host --pid=host), or set NCCL_P2P_DISABLE=1"),
	WARNED("UDS: ", UDS_MEANS, UDS_TODO),
	WARNED("XML ", TOPOLOGY_MEANS, TOPOLOGY_TODO),
	WARNED("CUDA Driver version found", CUDA_OLD_MEANS, CUDA_OLD_TODO),
	WARNED("compiled with too old version of NCCL", "the program was built for another NCCL",
	       "build it with the NCCL that it runs with"),
	WARNED("missing symbol", CUDA_OLD_MEANS, CUDA_OLD_TODO),
	WARNED("due to old driver", CUDA_OLD_MEANS, CUDA_OLD_TODO),
	WARNED("libnvidia-ml", NVML_MEANS, NVML_TODO),
	WARNED("Failed to find CUDA library",
	       "libcuda.so.1, which comes with the driver, cannot be loaded",
	       "in a container, start it with GPUs (--gpus all); else install the driver"),
	WARNED("Error: network ", "NCCL_NET names a network that is not there",
	       "unset NCCL_NET, or check that the plug-in's library is found (NCCL_NET_PLUGIN, LD_LIBRARY_PATH)"),
	WARNED("to malloc", HOST_MEMORY_MEANS, HOST_MEMORY_TODO),
	WARNED("malloc(", HOST_MEMORY_MEANS, HOST_MEMORY_TODO),
	WARNED("llocation failed", HOST_MEMORY_MEANS, HOST_MEMORY_TODO),
	WARNED("to CUDA malloc", GPU_MEMORY_MEANS, GPU_MEMORY_TODO),
	WARNED("to CUDA calloc", GPU_MEMORY_MEANS, GPU_MEMORY_TODO),
	WARNED("to CUDA host alloc", HOST_MEMORY_MEANS, HOST_MEMORY_TODO),
	WARNED("[Service thread]", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("[Proxy ", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("commReclaim", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("SetAsyncError", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("Socket recv failed", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("ailed to extend", SHM_FULL_MEANS, SHM_FULL_TODO),
	WARNED("ould not map", SHM_FULL_MEANS, SHM_FULL_TODO),
	WARNED("nvmlDevice", NVML_MEANS, NVML_TODO),
	WARNED("GDRCOPY", GDRCOPY_MEANS, GDRCOPY_TODO),
	WARNED("gdr_", GDRCOPY_MEANS, GDRCOPY_TODO),
	WARNED("NCCL_OOB_NET_IFNAME", NO_INTERFACE_MEANS, NO_INTERFACE_TODO),
	WARNED("mismatch in ", RANKS_MEANS, RANKS_TODO),
	WARNED("has already checked in", RANKS_MEANS, RANKS_TODO),
	WARNED("no algorithm/protocol",
	       "NCCL_ALGO or NCCL_PROTO leaves no way to do this operation",
	       "unset NCCL_ALGO and NCCL_PROTO (onehop env)"),
	WARNED("getting address info", "the name of a host cannot be resolved",
	       "check NCCL_COMM_ID or MASTER_ADDR, and `getent hosts NAME`"),
	WARNED("Add NVLink error", TREE_MEANS, TREE_TODO),
	WARNED("could not find CPU", TREE_MEANS, TREE_TODO),
	WARNED("Link error", TREE_MEANS, TREE_TODO),
	WARNED("C2c error", TREE_MEANS, TREE_TODO),
	WARNED("initialize any NET plugin",
	       "no network could be used, neither a plug-in nor NCCL's own",
	       "see the lines above it; NCCL_NET_PLUGIN=none leaves only NCCL's own"),
	WARNED("merg", MERGED_MEANS, MERGED_TODO),
	WARNED("has no transport for",
	       "NCCL may use neither P2P nor shared memory nor a network between two ranks",
	       "unset NCCL_SHM_DISABLE and NCCL_NET_DISABLE_INTRA (onehop env), and check the lines above it"),
	WARNED("Accept failed", UNREACHED_MEANS, UNREACHED_TODO),
	WARNED("Call to ", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("Proxy", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("AsyncJob", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("commDestroy", FOLLOWS_MEANS, FOLLOWS_TODO),
	WARNED("shared memory", "a segment of shared memory could not be mapped or removed",
	       "check /dev/shm (rules shm-size and shm-writable), and remove files nccl-* that earlier runs left"),
	{RUN_NCCL_ERROR, -1, "a GPU no longer responds",
	 "check the kernel log for an Xid (onehop check does), and reboot the machine",
	 "GPU is lost"},
	{RUN_NCCL_ERROR, -1, "NVML's library and the loaded kernel module have different versions",
	 "load the module of the installed version, for example by a reboot",
	 "Driver/library version mismatch"},
	WARNED("nvmlInit", NVML_MEANS, NVML_TODO),
	{RUN_NCCL_ERROR, -1, "the ranks use different NCCL versions",
	 "use one NCCL version for all ranks; the line names both", "Mismatched NCCL version"},
	{RUN_NCCL_ERROR, 3, "NCCL gave up, and the text does not say why",
	 "find the NCCL WARN line before it; without one run it again with NCCL_DEBUG=INFO"},
	{RUN_NCCL_ERROR, -1, "NCCL gave up for the reason in the line",
	 "run onehop check on the machine (rules shm-size, shm-writable and memlock among others)"},
	{RUN_UNREACHED, -1,
	 "the port at which the ranks of PyTorch meet is in use, as by a run that has not ended",
	 "end that run, or use another port (--master_port, MASTER_PORT)", "failed to listen"},
	{RUN_UNREACHED, -1,
	 "a rank of PyTorch did not reach the one at which all meet, or that one exited: no GPU was "
	 "used yet",
	 "check the log of rank 0 first; then MASTER_ADDR and MASTER_PORT, that rank 0's host answers "
	 "there, and that all ranks start within the time"},
	{RUN_CRASHED, -1, BUS_ERROR_MEANS, BUS_ERROR_TODO, "Bus error"},
	{RUN_CRASHED, -1, BUS_ERROR_MEANS, BUS_ERROR_TODO, "SIGBUS"},
	{RUN_CRASHED, -1,
	 "a process was killed from outside, most often because the host's memory ran out",
	 "check the kernel log for 'Out of memory' or 'oom-kill' at the same time, and the "
	 "memory limit of the container or the job",
	 "ignal 9"},
	{RUN_CRASHED, -1, "a process was killed by a signal, which ended the other ranks too",
	 "check the kernel log for an Xid at the same time and the stack trace of the "
	 "process; after a bus error run onehop check (rule shm-size)"},
	{RUN_TIMED_OUT, -1,
	 "a call of CUDA or NCCL does not return, so that not even PyTorch's watchdog goes on: a GPU "
	 "or the driver does not respond, or the program holds Python's lock in such a call",
	 "check the kernel log for an Xid (onehop check does), look at the stacks with py-spy or gdb, "
	 "and run onehop test",
	 "watchdog got stuck"},
	{RUN_TIMED_OUT, -1, ENGINE_HANGS_MEANS, ENGINE_HANGS_TODO, "RPC call to"},
	{RUN_TIMED_OUT, -1, ENGINE_HANGS_MEANS, ENGINE_HANGS_TODO, "atchdog timeout"},
	{.kind = RUN_TIMED_OUT,
	 .code = -1,
	 .waits = RUN_WAITS_MIXED,
	 .meaning =
		 "the ranks wait in different operations, which never ends if they are of one group: the "
		 "program lets them call different collectives",
	 .todo = COMPARE_TODO},
	{.kind = RUN_TIMED_OUT,
	 .code = -1,
	 .waits = RUN_WAITS_BEHIND,
	 .meaning =
		 "a rank waits in an earlier collective than others, which, if they are of one group, have "
		 "left it: the program lets the ranks call different ones, or the last transfer to that "
		 "rank hangs",
	 .todo = COMPARE_TODO "; if all called the same, run onehop test"},
	{.kind = RUN_TIMED_OUT,
	 .code = -1,
	 .waits = RUN_WAITS_SAME,
	 .meaning =
		 "the ranks that are shown wait in the same collective: a transfer hangs, or a rank "
		 "that is not shown never reached it",
	 .todo = "check the log of every rank that is not shown; if all of them wait, run onehop test, "
		 "which finds pairs that hang, and check the kernel log for an Xid"},
	{RUN_TIMED_OUT, -1,
	 "a collective did not finish in time: a transfer hangs, or a rank never "
	 "reached it",
	 "if all ranks wait in the same operation, run onehop test, which finds pairs "
	 "that hang; if they wait in different ones, check the program; a rank that "
	 "is missing here exited earlier"},
	{RUN_GAVE_UP, -1,
	 "a process ended itself, as programs do after an error that they cannot handle",
	 "look for the error above it, of this rank or of another; without one the stack trace of the "
	 "process tells"},
	{RUN_ABORTED, -1,
	 "a communicator was aborted: by the program after an error, or at its end; "
	 "destroy_process_group() of PyTorch before 2.6 aborts too",
	 "look for an earlier error in the logs of all ranks; without one the run may "
	 "have ended normally"},
};

const struct run_failure_meaning *run_failure_find(const struct run_failure *f)
{
	const struct run_failure_meaning *m = meanings;

	while (m->kind != f->kind || (m->code >= 0 && m->code != f->code) ||
	       (m->in_what && !strstr(f->what, m->in_what)) || (m->waits && m->waits != f->waits))
		m++;
	return m;
}

const char *run_failure_todo(const struct run_failure_meaning *m, struct run_failure_facts known)
{
	if (known.p2p_off && m->without_p2p)
		return m->without_p2p;
	return known.peermem && m->with_peermem ? m->with_peermem : m->todo;
}

/* A consequence, or NCCL's result without the warning that led to it. */
bool run_failure_is_vague(const struct run_failure *f)
{
	static const char *const consequences[] = {FOLLOWS_MEANS, GONE_MEANS};
	const struct run_failure_meaning *m = run_failure_find(f);

	for (size_t i = 0; i < ARRAY_LEN(consequences); i++)
		if (strcmp(m->meaning, consequences[i]) == 0)
			return true;
	return f->kind == RUN_NCCL_ERROR && !m->in_what && f->code != 5;
}

bool run_failure_follows(const struct run_failure *f)
{
	return run_failure_is_vague(f) || f->kind == RUN_TIMED_OUT || f->kind == RUN_GAVE_UP ||
	       f->kind == RUN_ABORTED;
}

const char *run_failure_text(const struct run_failure *f, char *buf, size_t size)
{
	static const char *const names[RUN_FAILURE_KIND_N] = {
		[RUN_TEST_FAILED] = "test failed",        [RUN_CUDA_ERROR] = "CUDA error",
		[RUN_RDMA_ERROR] = "RDMA error",          [RUN_CRASHED] = "process died",
		[RUN_UNREACHED] = "ranks did not meet",   [RUN_NCCL_ERROR] = "NCCL error",
		[RUN_TIMED_OUT] = "collective timed out", [RUN_GAVE_UP] = "process died",
		[RUN_ABORTED] = "communicator aborted",
	};
	char number[32] = "";

	if (f->code >= 0)
		snprintf(number, sizeof(number), " %d", f->code);
	else if (f->sequence >= 0)
		snprintf(number, sizeof(number), ", sequence %" PRId64, f->sequence);
	snprintf(buf, size, "%s%s%s%s", names[f->kind], number, *f->what ? ", " : "", f->what);
	return buf;
}

const char *run_failure_word(enum run_failure_kind kind)
{
	static const char *const words[RUN_FAILURE_KIND_N] = {
		[RUN_TEST_FAILED] = "test-failed", [RUN_CUDA_ERROR] = "cuda-error",
		[RUN_RDMA_ERROR] = "rdma-error",   [RUN_CRASHED] = "crashed",
		[RUN_UNREACHED] = "unreached",     [RUN_NCCL_ERROR] = "nccl-error",
		[RUN_TIMED_OUT] = "timed-out",     [RUN_GAVE_UP] = "crashed",
		[RUN_ABORTED] = "aborted",
	};

	return words[kind];
}
