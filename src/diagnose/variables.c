/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables that communication libraries read. NCCL's names, kinds, versions and defaults:
 * NVIDIA/nccl at its tags 2.3.5 to 2.30.7, where NCCL_PARAM and its getenv calls name them;
 * deprecations: docs/userguide/source/env.rst there. The others': openucx/ucx src/uct/ib and
 * src/ucp/core, open-mpi/ompi opal/mca/common/ucx, NVIDIA/nvshmem
 * src/modules/transport/common/env_defs.h, and PyTorch's ProcessGroupGloo.
 */
#include "diagnose/variables.h"

#include "base/err.h"

#include <errno.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define V(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))

/* does, needed, harms, value when nobody sets it, the same before a release, that release */
#define USE(...)                                                                                   \
	&(const struct variable_use)                                                               \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* clang-format off */
const struct variable variable_table[] = {
	{"GLOO_SOCKET_IFNAME", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("the one network device that Gloo (PyTorch) uses",
		    "the host name resolves to the loopback address, and jobs use several "
		    "machines",
		    "a name that other machines do not have",
		    NULL, NULL, 0)},
	{"NCCL_AGG_CHANNEL_SIZE", VARIABLE_INTEGER, V(2, 10, 3), 0, V(2, 20, 3), NULL},
	{"NCCL_ALGO", VARIABLE_FREE, V(2, 5, 6), 0, 0, NULL},
	{"NCCL_ALLGATHERV_ENABLE", VARIABLE_INTEGER, V(2, 29, 2), 0, 0, NULL},
	{"NCCL_ALLOC_P2P_NET_LL_BUFFERS", VARIABLE_INTEGER, V(2, 14, 3), 0, 0, NULL},
	{"NCCL_BUFFSIZE", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("bytes of each buffer through which a channel copies",
		    NULL,
		    "more memory for each channel, and buffers that no longer fit into caches",
		    "4194304", NULL, 0)},
	{"NCCL_CGA_CLUSTER_SIZE", VARIABLE_INTEGER, V(2, 15, 1), 0, 0, NULL},
	{"NCCL_CHECKS_DISABLE", VARIABLE_INTEGER, 0, 0, V(2, 3, 5), "NCCL_CHECK_MODE replaces it"},
	{"NCCL_CHECK_MODE", VARIABLE_FREE, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_CHECK_POINTERS", VARIABLE_INTEGER, 0, V(2, 29, 7), 0, "NCCL_CHECK_MODE=DEBUG_LOCAL replaces it"},
	{"NCCL_CHUNK_SIZE", VARIABLE_INTEGER, V(2, 12, 7), 0, 0, NULL},
	{"NCCL_COLLNET_ENABLE", VARIABLE_INTEGER, V(2, 6, 4), 0, 0, NULL},
	{"NCCL_COLLNET_NODE_THRESHOLD", VARIABLE_INTEGER, V(2, 9, 9), 0, 0, NULL},
	{"NCCL_COMM_BLOCKING", VARIABLE_INTEGER, V(2, 14, 3), 0, 0, NULL},
	{"NCCL_COMM_ID", VARIABLE_FREE, 0, 0, 0, NULL},
	{"NCCL_COMM_SHRINK_SHARE_RESOURCES", VARIABLE_INTEGER, V(2, 27, 3), 0, 0, NULL},
	{"NCCL_COMM_SPLIT_SHARE_RESOURCES", VARIABLE_INTEGER, V(2, 18, 1), 0, 0, NULL},
	{"NCCL_CONF_FILE", VARIABLE_FILE, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_CONNECT_ROUND_MAX_PEERS", VARIABLE_INTEGER, V(2, 19, 4), 0, 0, NULL},
	{"NCCL_CREATE_THREAD_CONTEXT", VARIABLE_INTEGER, V(2, 13, 4), 0, V(2, 30, 7), "no replacement"},
	{"NCCL_CROSS_NIC", VARIABLE_INTEGER, V(2, 5, 6), 0, 0, NULL,
		USE("whether rings may enter and leave a machine through different NICs",
		    "0 where NICs of different rails cannot reach each other",
		    "1 where rails are separate networks",
		    "2", NULL, 0)},
	{"NCCL_CTA_POLICY", VARIABLE_FREE, V(2, 27, 3), 0, 0, NULL},
	{"NCCL_CUDA_PATH", VARIABLE_FILE, V(2, 13, 4), 0, V(2, 21, 5), "no replacement"},
	{"NCCL_CUMEM_ENABLE", VARIABLE_INTEGER, V(2, 18, 1), 0, 0, NULL},
	{"NCCL_CUMEM_HOST_ENABLE", VARIABLE_INTEGER, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_DEBUG", VARIABLE_FREE, 0, 0, 0, NULL},
	{"NCCL_DEBUG_FILE", VARIABLE_FILE, 0, 0, 0, NULL},
	{"NCCL_DEBUG_SUBSYS", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("which parts of NCCL write to its log",
		    "to trace one part",
		    "without INIT the log does not show the path of each pair",
		    NULL, NULL, 0)},
	{"NCCL_DEBUG_TIMESTAMP_FORMAT", VARIABLE_FREE, V(2, 26, 2), 0, 0, NULL},
	{"NCCL_DEBUG_TIMESTAMP_LEVELS", VARIABLE_FREE, V(2, 26, 2), 0, 0, NULL},
	{"NCCL_DEV_API_JIT", VARIABLE_INTEGER, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_DISABLE_MEM_MANAGER", VARIABLE_INTEGER, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_DMABUF_ENABLE", VARIABLE_INTEGER, V(2, 13, 4), 0, 0, NULL,
		USE("lets NCCL register GPU memory as dma-buf",
		    "0 where data sent through dma-buf was wrong and nvidia-peermem works",
		    "0 without nvidia-peermem disables GPUDirect RDMA",
		    "1", NULL, 0)},
	{"NCCL_ELASTIC_BUFFER_REGISTER", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_ENABLE_VERSION_CHECK", VARIABLE_INTEGER, V(2, 29, 2), 0, 0, NULL},
	{"NCCL_ENV_PLUGIN", VARIABLE_FREE, V(2, 28, 7), 0, 0, NULL},
	{"NCCL_GDAKI_USE_RELIABLE_DB", VARIABLE_INTEGER, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_GDRCOPY_ENABLE", VARIABLE_INTEGER, V(2, 9, 6), 0, 0, NULL},
	{"NCCL_GDRCOPY_FIFO_ENABLE", VARIABLE_INTEGER, V(2, 9, 6), 0, 0, NULL},
	{"NCCL_GDRCOPY_FLUSH_ENABLE", VARIABLE_INTEGER, V(2, 9, 6), 0, 0, NULL},
	{"NCCL_GDRCOPY_SYNC_ENABLE", VARIABLE_INTEGER, V(2, 12, 7), 0, 0, NULL},
	{"NCCL_GDRCOPY_TAIL_ENABLE", VARIABLE_INTEGER, V(2, 9, 6), 0, V(2, 12, 7), NULL},
	{"NCCL_GDR_FLUSH_DISABLE", VARIABLE_INTEGER, 0, 0, 0, NULL},
	{"NCCL_GIN_CONNECTION_RAIL", VARIABLE_FREE, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_GIN_COUNTER_POOL_SIZE", VARIABLE_INTEGER, V(2, 28, 7), 0, V(2, 30, 3), NULL},
	{"NCCL_GIN_ENABLE", VARIABLE_INTEGER, V(2, 28, 7), 0, 0, NULL},
	{"NCCL_GIN_ERROR_QUERY_SEC", VARIABLE_INTEGER, V(2, 28, 7), 0, 0, NULL},
	{"NCCL_GIN_EXCLUSIVE_CONTEXTS", VARIABLE_INTEGER, V(2, 29, 7), 0, V(2, 30, 3), NULL},
	{"NCCL_GIN_GDAKI_MAX_DEST_RD_ATOMIC", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_GIN_GDAKI_MAX_QP_RD_ATOMIC", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_GIN_GDAKI_NIC_HANDLER", VARIABLE_INTEGER, V(2, 28, 7), 0, 0, NULL},
	{"NCCL_GIN_GDAKI_QP_DEPTH", VARIABLE_INTEGER, V(2, 28, 7), 0, 0, NULL},
	{"NCCL_GIN_IB_TC", VARIABLE_INTEGER, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_GIN_NCONNECTIONS", VARIABLE_INTEGER, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_GIN_NCONTEXTS", VARIABLE_INTEGER, V(2, 28, 7), 0, V(2, 30, 3), NULL},
	{"NCCL_GIN_PLUGIN", VARIABLE_FREE, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_GIN_PLUGIN_REF_COUNT", VARIABLE_INTEGER, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_GIN_PROXY_QUEUE_SIZE", VARIABLE_INTEGER, V(2, 28, 7), 0, 0, NULL},
	{"NCCL_GIN_SIGNAL_POOL_SIZE", VARIABLE_INTEGER, V(2, 28, 7), 0, V(2, 30, 3), NULL},
	{"NCCL_GIN_TYPE", VARIABLE_INTEGER, V(2, 28, 7), 0, 0, NULL},
	{"NCCL_GRAPH_DUMP_FILE", VARIABLE_FILE, V(2, 6, 4), 0, 0, NULL},
	{"NCCL_GRAPH_DUMP_FILE_RANK", VARIABLE_INTEGER, V(2, 6, 4), 0, 0, NULL},
	{"NCCL_GRAPH_FILE", VARIABLE_FILE, V(2, 6, 4), 0, 0, NULL},
	{"NCCL_GRAPH_HELPER_DISABLE", VARIABLE_INTEGER, V(2, 11, 4), 0, 0, NULL},
	{"NCCL_GRAPH_MIXING_SUPPORT", VARIABLE_INTEGER, V(2, 13, 4), 0, 0, NULL},
	{"NCCL_GRAPH_REGISTER", VARIABLE_INTEGER, V(2, 11, 4), 0, 0, NULL},
	{"NCCL_GRAPH_STREAM_ORDERING", VARIABLE_INTEGER, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_GROUP_CUDA_STREAM", VARIABLE_INTEGER, 0, 0, 0, NULL},
	{"NCCL_HOSTID", VARIABLE_FREE, V(2, 5, 6), 0, 0, NULL},
	{"NCCL_IBVERBS_LIB", VARIABLE_FILE, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_IB_ADAPTIVE_ROUTING", VARIABLE_INTEGER, V(2, 16, 2), 0, 0, NULL},
	{"NCCL_IB_ADDR_FAMILY", VARIABLE_FREE, V(2, 21, 5), 0, 0, NULL,
		USE("address family of the RoCE port addresses",
		    "AF_INET6 where the ports have no IPv4 address",
		    "AF_INET6 where they have one",
		    "AF_INET", NULL, 0)},
	{"NCCL_IB_ADDR_RANGE", VARIABLE_FREE, V(2, 21, 5), 0, 0, NULL},
	{"NCCL_IB_AR_THRESHOLD", VARIABLE_INTEGER, V(2, 6, 4), 0, 0, NULL},
	{"NCCL_IB_CUDA_SUPPORT", VARIABLE_INTEGER, 0, 0, V(2, 4, 2), "NCCL_NET_GDR_LEVEL replaces it"},
	{"NCCL_IB_DATA_DIRECT", VARIABLE_INTEGER, V(2, 27, 3), 0, 0, NULL,
		USE("lets NCCL use the DMA function of a Direct NIC",
		    "0 where registration fails with errno 524",
		    NULL,
		    "1", NULL, 0)},
	{"NCCL_IB_DEVICE_PCI_ORDER", VARIABLE_INTEGER, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_IB_DISABLE", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("1 ignores RDMA devices and uses TCP",
		    "to compare with TCP",
		    "GPUs of different machines communicate over sockets, through host memory",
		    "0", NULL, 0)},
	{"NCCL_IB_ECE_ENABLE", VARIABLE_INTEGER, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_IB_FIFO_TC", VARIABLE_INTEGER, V(2, 22, 3), 0, 0, NULL},
	{"NCCL_IB_GDR_LEVEL", VARIABLE_FREE, 0, 0, V(2, 4, 2), "NCCL_NET_GDR_LEVEL replaces it"},
	{"NCCL_IB_GID_INDEX", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("which entry of a RoCE port's GID table is used",
		    "before 2.21, which uses entry 0; later where the automatic choice fails",
		    "the driver defines the order of the table, and entries move when addresses "
		    "change: 3 is right only on some cards",
		    "-1", "0", V(2, 21, 5))},
	{"NCCL_IB_HCA", VARIABLE_LIST, 0, 0, 0, NULL,
		USE("the RDMA ports that NCCL may use",
		    "to exclude ports of storage or management networks, or ports that failed a "
		    "test",
		    "a list of one NIC on a machine with several; without = before the list "
		    "mlx5_1 also selects mlx5_10",
		    NULL, NULL, 0)},
	{"NCCL_IB_MERGE_NICS", VARIABLE_INTEGER, V(2, 20, 3), 0, 0, NULL,
		USE("combines the ports of a card into one device",
		    "0 where the ports belong to different rails",
		    NULL,
		    "1", NULL, 0)},
	{"NCCL_IB_MERGE_VFS", VARIABLE_INTEGER, V(2, 18, 1), 0, 0, NULL},
	{"NCCL_IB_MQP_RETRY_ALL", VARIABLE_INTEGER, V(2, 24, 3), 0, 0, NULL},
	{"NCCL_IB_MQP_RETRY_CNT", VARIABLE_INTEGER, V(2, 24, 3), 0, 0, NULL},
	{"NCCL_IB_MQP_RETRY_SLEEP_MSEC", VARIABLE_INTEGER, V(2, 24, 3), 0, 0, NULL},
	{"NCCL_IB_OOO_RQ", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_IB_PCI_RELAXED_ORDERING", VARIABLE_INTEGER, V(2, 12, 7), 0, 0, NULL,
		USE("whether the NIC may reorder writes",
		    "0 where a measurement shows a loss",
		    "never needed to enable it: 2 does so where the NIC supports it",
		    "2", NULL, 0)},
	{"NCCL_IB_PKEY", VARIABLE_INTEGER, V(2, 8, 3), 0, 0, NULL},
	{"NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS", VARIABLE_INTEGER, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_IB_QPS_PER_CONNECTION", VARIABLE_INTEGER, V(2, 10, 3), 0, 0, NULL,
		USE("queue pairs per connection",
		    "where a network that hashes flows was measured to carry more with several",
		    "more queue pairs than the NIC caches",
		    "1", NULL, 0)},
	{"NCCL_IB_QUERY_PORT_SPEED", VARIABLE_INTEGER, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_IB_RECEIVER_SIDE_MATCHING_SCHEME", VARIABLE_INTEGER, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_IB_RESILIENCY_PORT_FAILOVER", VARIABLE_INTEGER, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS", VARIABLE_INTEGER, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY", VARIABLE_INTEGER, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_IB_RESILIENCY_PORT_RECOVERY", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_IB_RETRY_CNT", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("how often a NIC retransmits a packet",
		    NULL,
		    "less than 7 drops connections earlier; 7 is the maximum",
		    "7", NULL, 0)},
	{"NCCL_IB_RETURN_ASYNC_EVENTS", VARIABLE_INTEGER, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_IB_ROCE_VERSION_NUM", VARIABLE_INTEGER, V(2, 21, 5), 0, 0, NULL,
		USE("which RoCE version a port's GID must have",
		    NULL,
		    "1 is not routed",
		    "2", NULL, 0)},
	{"NCCL_IB_ROUTABLE_FLID_GID_INDEX", VARIABLE_INTEGER, V(2, 22, 3), 0, 0, NULL},
	{"NCCL_IB_SL", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("the InfiniBand service level",
		    "where the subnet manager assigns NCCL's traffic its own level",
		    "a level without a lane loses packets",
		    "-1", "0", V(2, 26, 2))},
	{"NCCL_IB_SPLIT_DATA_ON_QPS", VARIABLE_INTEGER, V(2, 18, 1), 0, 0, NULL,
		USE("splits each message over the queue pairs",
		    NULL,
		    "small pieces cost more",
		    "0", "1", V(2, 20, 3))},
	{"NCCL_IB_SUBNET_AWARE_ROUTING", VARIABLE_INTEGER, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_IB_SUBNET_PREFIX_LEN", VARIABLE_INTEGER, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_IB_TC", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("the traffic class of RoCE packets: DSCP * 4, and 2 for ECN",
		    "where the switches' lossless class is known",
		    "any class but the switches' lossless one: packets are dropped under load",
		    "-1", "0", V(2, 26, 2))},
	{"NCCL_IB_TIMEOUT", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("how long a NIC waits for an answer: 4.096 us * 2^N, seven times",
		    "22 on large networks whose links flap",
		    "23 and more: a dead peer is reported after minutes; 0 waits forever",
		    "20", "18", V(2, 23, 4))},
	{"NCCL_IB_USE_INLINE", VARIABLE_INTEGER, V(2, 8, 3), 0, 0, NULL},
	{"NCCL_IB_WARN_RAIL_LOCAL", VARIABLE_INTEGER, V(2, 24, 3), 0, 0, NULL},
	{"NCCL_IGNORE_COLLNET_MISMATCH", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_IGNORE_CPU_AFFINITY", VARIABLE_INTEGER, V(2, 4, 6), 0, 0, NULL},
	{"NCCL_IGNORE_DISABLED_P2P", VARIABLE_INTEGER, V(2, 12, 7), 0, 0, NULL,
		USE("1 hides messages where P2P is refused",
		    NULL,
		    "hides that NVLink or P2P does not work",
		    "0", NULL, 0)},
	{"NCCL_IGNORE_NET_MISMATCH", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_COLL_POOL_SIZE", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_COMM_POOL_SIZE", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_DUMP_COLL_RING_SIZE", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_DUMP_DIR", VARIABLE_FILE, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_DUMP_P2P_RING_SIZE", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", VARIABLE_FREE, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", VARIABLE_INTEGER, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_DUMP_VERBOSE", VARIABLE_FREE, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_ENABLE", VARIABLE_FREE, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_ENABLE_P2P", VARIABLE_FREE, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_P2P_POOL_SIZE", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_POOL_GROW", VARIABLE_FREE, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_PROM_DUMP", VARIABLE_FREE, V(2, 29, 3), 0, 0, NULL},
	{"NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING", VARIABLE_FREE, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_IPC_USE_ABSTRACT_SOCKET", VARIABLE_INTEGER, V(2, 29, 2), 0, 0, NULL},
	{"NCCL_L1_SHARED_MEMORY_CARVEOUT", VARIABLE_INTEGER, V(2, 12, 10), 0, 0, NULL},
	{"NCCL_LAUNCH_MODE", VARIABLE_FREE, 0, V(2, 9, 6), 0, "use its default, PARALLEL"},
	{"NCCL_LAUNCH_ORDER_IMPLICIT", VARIABLE_INTEGER, V(2, 26, 2), 0, 0, NULL},
	{"NCCL_LAUNCH_RACE_FATAL", VARIABLE_INTEGER, V(2, 26, 2), 0, 0, NULL},
	{"NCCL_LEGACY_CUDA_REGISTER", VARIABLE_INTEGER, V(2, 24, 3), 0, 0, NULL},
	{"NCCL_LL128_BUFFSIZE", VARIABLE_INTEGER, V(2, 7, 3), 0, 0, NULL},
	{"NCCL_LL128_C2C", VARIABLE_INTEGER, V(2, 27, 3), 0, 0, NULL},
	{"NCCL_LL128_NTHREADS", VARIABLE_INTEGER, V(2, 5, 6), 0, 0, NULL},
	{"NCCL_LL_BUFFSIZE", VARIABLE_INTEGER, V(2, 7, 3), 0, 0, NULL},
	{"NCCL_LL_THRESHOLD", VARIABLE_INTEGER, 0, 0, V(2, 5, 6), "NCCL_PROTO replaces it"},
	{"NCCL_LOCAL_REGISTER", VARIABLE_INTEGER, V(2, 19, 1), 0, 0, NULL},
	{"NCCL_LSA_TEAM_SIZE", VARIABLE_INTEGER, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_MAX_CTAS", VARIABLE_INTEGER, V(2, 17, 1), 0, 0, NULL},
	{"NCCL_MAX_NCHANNELS", VARIABLE_INTEGER, V(2, 5, 6), V(2, 17, 1), 0, "NCCL_MAX_CTAS replaces it"},
	{"NCCL_MAX_NRINGS", VARIABLE_INTEGER, 0, V(2, 5, 6), 0, "NCCL_MAX_CTAS replaces it"},
	{"NCCL_MAX_P2P_NCHANNELS", VARIABLE_INTEGER, V(2, 7, 3), 0, 0, NULL},
	{"NCCL_MEM_SYNC_DOMAIN", VARIABLE_INTEGER, V(2, 16, 2), 0, 0, NULL},
	{"NCCL_MIN_CTAS", VARIABLE_INTEGER, V(2, 17, 1), 0, 0, NULL},
	{"NCCL_MIN_NCHANNELS", VARIABLE_INTEGER, V(2, 5, 6), V(2, 17, 1), 0, "NCCL_MIN_CTAS replaces it"},
	{"NCCL_MIN_NRINGS", VARIABLE_INTEGER, 0, V(2, 5, 6), 0, "NCCL_MIN_CTAS replaces it"},
	{"NCCL_MIN_P2P_NCHANNELS", VARIABLE_INTEGER, V(2, 7, 3), 0, 0, NULL},
	{"NCCL_MLOPART_RDMA_ENABLE", VARIABLE_INTEGER, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_MNNVL", VARIABLE_INTEGER, V(2, 20, 3), 0, V(2, 21, 5), "NCCL_MNNVL_ENABLE replaces it"},
	{"NCCL_MNNVL_CLIQUE_ID", VARIABLE_INTEGER, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_MNNVL_CROSS_CLIQUE", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_MNNVL_ENABLE", VARIABLE_INTEGER, V(2, 21, 5), 0, 0, NULL},
	{"NCCL_MNNVL_RAIL_PER_HOST", VARIABLE_INTEGER, V(2, 28, 7), 0, 0, NULL},
	{"NCCL_MNNVL_SCATTER_NETS_ENABLE", VARIABLE_INTEGER, V(2, 27, 5), 0, 0, NULL},
	{"NCCL_MNNVL_UUID", VARIABLE_INTEGER, V(2, 25, 1), 0, 0, NULL},
	{"NCCL_MULTI_RANK_GPU_ENABLE", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_MULTI_SEGMENT_REGISTER", VARIABLE_INTEGER, V(2, 29, 2), 0, 0, NULL},
	{"NCCL_NCCL_ALLOC_P2P_NET_LL_BUFFERS", VARIABLE_INTEGER, V(2, 14, 3), 0, V(2, 16, 5), "write one NCCL_"},
	{"NCCL_NCHANNELS_PER_NET_PEER", VARIABLE_INTEGER, V(2, 12, 7), 0, 0, NULL},
	{"NCCL_NET", VARIABLE_FREE, V(2, 10, 3), 0, 0, NULL},
	{"NCCL_NETDEVS_POLICY", VARIABLE_FREE, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_NET_DISABLE_INTRA", VARIABLE_INTEGER, V(2, 12, 7), 0, 0, NULL},
	{"NCCL_NET_FORCE_FLUSH", VARIABLE_INTEGER, V(2, 15, 1), 0, 0, NULL},
	{"NCCL_NET_FORCE_MERGE", VARIABLE_FREE, V(2, 24, 3), 0, 0, NULL},
	{"NCCL_NET_GDR_C2C", VARIABLE_INTEGER, V(2, 26, 2), 0, 0, NULL},
	{"NCCL_NET_GDR_LEVEL", VARIABLE_LEVEL, V(2, 4, 2), 0, 0, NULL,
		USE("the distance up to which NCCL lets a NIC access a GPU's memory",
		    "PHB or SYS only where a measurement shows that distant GPU memory is as "
		    "fast as host memory, in both directions, with correct data",
		    "PHB and SYS lead through the CPU, whose reads of GPU memory can be slow or "
		    "fail; numbers are an old scale where 5 is SYS",
		    "PXB", NULL, 0)},
	{"NCCL_NET_GDR_MLOPART", VARIABLE_INTEGER, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_NET_GDR_READ", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("whether NICs read GPU memory when they send",
		    "0 where reads of GPU memory were measured to be slow; 1 on cards before "
		    "Ampere where they were measured to be fast",
		    "0 on Ampere and later: sent data goes through host memory",
		    "-2", NULL, 0)},
	{"NCCL_NET_MERGE_LEVEL", VARIABLE_FREE, V(2, 24, 3), 0, 0, NULL,
		USE("the distance up to which NICs are combined into one device",
		    "LOC where the ports of a card belong to different rails",
		    NULL,
		    "PORT", NULL, 0)},
	{"NCCL_NET_MERGE_POLICY", VARIABLE_FREE, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_NET_OPTIONAL_RECV_COMPLETION", VARIABLE_INTEGER, V(2, 24, 3), 0, 0, NULL},
	{"NCCL_NET_OVERHEAD", VARIABLE_INTEGER, V(2, 18, 1), 0, 0, NULL},
	{"NCCL_NET_PLUGIN", VARIABLE_FREE, V(2, 11, 4), 0, 0, NULL},
	{"NCCL_NET_PLUGIN_REF_COUNT", VARIABLE_INTEGER, V(2, 26, 2), 0, 0, NULL},
	{"NCCL_NET_SHARED_BUFFERS", VARIABLE_INTEGER, V(2, 8, 3), 0, 0, NULL},
	{"NCCL_NET_SHARED_COMMS", VARIABLE_INTEGER, V(2, 12, 7), 0, 0, NULL},
	{"NCCL_NO_CACHE", VARIABLE_FREE, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_NSOCKS_PERTHREAD", VARIABLE_INTEGER, V(2, 4, 8), 0, 0, NULL},
	{"NCCL_NTHREADS", VARIABLE_INTEGER, 0, 0, 0, NULL},
	{"NCCL_NUM_RMA_CTX", VARIABLE_INTEGER, V(2, 29, 2), 0, 0, NULL},
	{"NCCL_NVB_DISABLE", VARIABLE_INTEGER, V(2, 9, 9), 0, 0, NULL},
	{"NCCL_NVB_PRECONNECT", VARIABLE_INTEGER, V(2, 9, 9), 0, 0, NULL},
	{"NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", VARIABLE_INTEGER, V(2, 27, 3), 0, 0, NULL},
	{"NCCL_NVLSTREE_MAX_CHUNKSIZE", VARIABLE_INTEGER, V(2, 20, 3), 0, 0, NULL},
	{"NCCL_NVLS_CHUNKSIZE", VARIABLE_INTEGER, V(2, 21, 5), 0, 0, NULL},
	{"NCCL_NVLS_ENABLE", VARIABLE_INTEGER, V(2, 17, 1), 0, 0, NULL},
	{"NCCL_NVLS_NCHANNELS", VARIABLE_INTEGER, V(2, 17, 1), 0, 0, NULL},
	{"NCCL_NVTX_DISABLE", VARIABLE_INTEGER, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_OOB_NET_ENABLE", VARIABLE_INTEGER, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_OOB_NET_IFNAME", VARIABLE_LIST, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_P2P_DIRECT_DISABLE", VARIABLE_INTEGER, V(2, 12, 12), 0, 0, NULL},
	{"NCCL_P2P_DISABLE", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("1 disables P2P",
		    "to test whether P2P is the cause of a problem",
		    "all copies between GPUs go through host memory",
		    "0", NULL, 0)},
	{"NCCL_P2P_EPOCH_ENABLE", VARIABLE_INTEGER, V(2, 29, 2), 0, 0, NULL},
	{"NCCL_P2P_LEVEL", VARIABLE_LEVEL, 0, 0, 0, NULL,
		USE("the distance up to which GPUs access each other's memory",
		    "where the driver allows P2P for pairs beyond NCCL's own limit",
		    "LOC and levels below the pairs' distance disable P2P; NODE, lower case and "
		    "typos have no effect",
		    NULL, NULL, 0)},
	{"NCCL_P2P_LL_THRESHOLD", VARIABLE_INTEGER, V(2, 14, 3), 0, 0, NULL},
	{"NCCL_P2P_MAX_PEERS", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_P2P_NET_CHUNKSIZE", VARIABLE_INTEGER, V(2, 14, 3), 0, 0, NULL},
	{"NCCL_P2P_NVL_CHUNKSIZE", VARIABLE_INTEGER, V(2, 16, 2), 0, 0, NULL},
	{"NCCL_P2P_PCI_CHUNKSIZE", VARIABLE_INTEGER, V(2, 16, 2), 0, 0, NULL},
	{"NCCL_P2P_PER_CHANNEL_NET_BW", VARIABLE_INTEGER, V(2, 29, 2), 0, 0, NULL},
	{"NCCL_P2P_PXN_LEVEL", VARIABLE_INTEGER, V(2, 12, 7), 0, 0, NULL,
		USE("when a distant NIC is reached through another GPU",
		    NULL,
		    "0 needs every NIC to reach every rail",
		    "2", NULL, 0)},
	{"NCCL_P2P_READ_ENABLE", VARIABLE_INTEGER, V(2, 7, 3), 0, 0, NULL},
	{"NCCL_P2P_SCHEDULE_GROUP_SIZE", VARIABLE_INTEGER, V(2, 28, 7), 0, 0, NULL},
	{"NCCL_P2P_USE_CUDA_MEMCPY", VARIABLE_INTEGER, V(2, 13, 4), 0, 0, NULL},
	{"NCCL_PARAM_DUMP_ALL", VARIABLE_FREE, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_PAT_ENABLE", VARIABLE_INTEGER, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_PROFILER_CE_POLLER_INTERVAL_MICROSECONDS", VARIABLE_INTEGER, V(2, 29, 3), 0, 0, NULL},
	{"NCCL_PROFILER_CE_TIMING", VARIABLE_FREE, V(2, 29, 3), 0, 0, NULL},
	{"NCCL_PROFILER_PLUGIN", VARIABLE_FREE, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_PROFILE_CE_BATCH_POOL_SIZE", VARIABLE_INTEGER, V(2, 29, 3), 0, 0, NULL},
	{"NCCL_PROFILE_CE_COLL_POOL_SIZE", VARIABLE_INTEGER, V(2, 29, 3), 0, 0, NULL},
	{"NCCL_PROFILE_CE_SYNC_POOL_SIZE", VARIABLE_INTEGER, V(2, 29, 3), 0, 0, NULL},
	{"NCCL_PROFILE_COLL_API_POOL_SIZE", VARIABLE_INTEGER, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_PROFILE_COLL_POOL_SIZE", VARIABLE_INTEGER, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_PROFILE_DUMP_FILE", VARIABLE_FILE, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_PROFILE_EVENT_MASK", VARIABLE_FREE, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_PROFILE_GROUP_API_POOL_SIZE", VARIABLE_INTEGER, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_PROFILE_GROUP_POOL_SIZE", VARIABLE_INTEGER, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_PROFILE_KERNEL_LAUNCH_POOL_SIZE", VARIABLE_INTEGER, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_PROFILE_P2P_API_POOL_SIZE", VARIABLE_INTEGER, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_PROFILE_P2P_POOL_SIZE", VARIABLE_INTEGER, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_PROFILE_PROXY_CTRL_POOL_SIZE", VARIABLE_INTEGER, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_PROFILE_PROXY_DETACH_POOL_SIZE", VARIABLE_INTEGER, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_PROGRESS_APPENDOP_FREQ", VARIABLE_INTEGER, V(2, 16, 5), 0, 0, NULL},
	{"NCCL_PROTO", VARIABLE_FREE, V(2, 5, 6), 0, 0, NULL},
	{"NCCL_PROXY_APPEND_BATCH_SIZE", VARIABLE_INTEGER, V(2, 16, 2), 0, 0, NULL},
	{"NCCL_PROXY_CPUSET", VARIABLE_FREE, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_PROXY_DUMP_SIGNAL", VARIABLE_INTEGER, V(2, 14, 3), 0, 0, NULL},
	{"NCCL_PROXY_PROFILE", VARIABLE_FREE, V(2, 12, 7), 0, V(2, 23, 4), "NCCL_PROFILER_PLUGIN replaces it"},
	{"NCCL_PXN_C2C", VARIABLE_INTEGER, V(2, 27, 3), 0, 0, NULL},
	{"NCCL_PXN_DISABLE", VARIABLE_INTEGER, V(2, 12, 7), 0, 0, NULL,
		USE("1 keeps NCCL from reaching a NIC through the GPU next to it",
		    NULL,
		    "1 where rails do not reach each other",
		    "0", NULL, 0)},
	{"NCCL_RAS_ADDR", VARIABLE_FREE, V(2, 24, 3), 0, 0, NULL},
	{"NCCL_RAS_ENABLE", VARIABLE_INTEGER, V(2, 24, 3), 0, 0, NULL},
	{"NCCL_RAS_TIMEOUT_FACTOR", VARIABLE_INTEGER, V(2, 24, 3), 0, 0, NULL},
	{"NCCL_REPORT_CONNECT_PROGRESS", VARIABLE_INTEGER, V(2, 19, 4), 0, 0, NULL},
	{"NCCL_RINGS", VARIABLE_FREE, 0, 0, V(2, 5, 6), "NCCL_GRAPH_FILE replaces it"},
	{"NCCL_RMA_DISABLE", VARIABLE_INTEGER, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_RMA_PLUGIN", VARIABLE_FREE, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_RMA_PLUGIN_REF_COUNT", VARIABLE_INTEGER, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_RMA_PROXY_DUMP_SIGNAL", VARIABLE_INTEGER, V(2, 29, 2), 0, 0, NULL},
	{"NCCL_RMA_PROXY_QUEUE_SIZE", VARIABLE_INTEGER, V(2, 29, 2), 0, 0, NULL},
	{"NCCL_RUNTIME_CONNECT", VARIABLE_INTEGER, V(2, 22, 3), 0, 0, NULL,
		USE("connects pairs at their first use",
		    NULL,
		    "0 connects all pairs at the start",
		    "1", NULL, 0)},
	{"NCCL_SET_CPU_STACK_SIZE", VARIABLE_INTEGER, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_SET_STACK_SIZE", VARIABLE_INTEGER, V(2, 9, 6), 0, 0, NULL},
	{"NCCL_SET_THREAD_NAME", VARIABLE_FREE, V(2, 12, 7), 0, 0, NULL},
	{"NCCL_SHADOW_MEMPOOL_MAX_SIZE", VARIABLE_INTEGER, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_SHARED_BUFF_COUNT", VARIABLE_INTEGER, V(2, 8, 3), 0, V(2, 9, 6), NULL},
	{"NCCL_SHM_DISABLE", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("1 disables shared memory",
		    "to test whether shared memory is the cause of a problem",
		    "pairs without P2P go over the network, inside one machine",
		    "0", NULL, 0)},
	{"NCCL_SHM_LOCALITY", VARIABLE_INTEGER, V(2, 13, 4), 0, 0, NULL,
		USE("which side holds buffers in shared memory: 1 sender, 2 receiver",
		    NULL,
		    NULL,
		    "2", NULL, 0)},
	{"NCCL_SHM_MEMCPY_MODE", VARIABLE_INTEGER, V(2, 13, 4), 0, V(2, 30, 7), "no replacement"},
	{"NCCL_SHM_USE_CUDA_MEMCPY", VARIABLE_INTEGER, V(2, 13, 4), 0, V(2, 30, 7), "no replacement"},
	{"NCCL_SINGLE_PROC_MEM_REG_ENABLE", VARIABLE_INTEGER, V(2, 28, 3), 0, 0, NULL},
	{"NCCL_SINGLE_RING_THRESHOLD", VARIABLE_INTEGER, 0, 0, V(2, 3, 5), "no replacement"},
	{"NCCL_SOCKET_FAMILY", VARIABLE_FREE, 0, 0, 0, NULL},
	{"NCCL_SOCKET_IFNAME", VARIABLE_LIST, 0, 0, 0, NULL,
		USE("the network devices for NCCL's own connections",
		    "where NCCL selects a device that does not reach the other machines",
		    "a name that other machines do not have; without = before it eth1 also "
		    "selects eth10",
		    NULL, NULL, 0)},
	{"NCCL_SOCKET_INLINE", VARIABLE_INTEGER, V(2, 27, 3), 0, 0, NULL},
	{"NCCL_SOCKET_MAGIC", VARIABLE_FREE, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_SOCKET_MIN_TASKSIZE", VARIABLE_INTEGER, V(2, 27, 3), 0, 0, NULL},
	{"NCCL_SOCKET_NTHREADS", VARIABLE_INTEGER, V(2, 4, 8), 0, 0, NULL},
	{"NCCL_SOCKET_POLL_TIMEOUT_MSEC", VARIABLE_INTEGER, V(2, 29, 2), 0, 0, NULL},
	{"NCCL_SOCKET_RCVBUF", VARIABLE_INTEGER, V(2, 27, 3), 0, 0, NULL},
	{"NCCL_SOCKET_RETRY_CNT", VARIABLE_INTEGER, V(2, 24, 3), 0, 0, NULL},
	{"NCCL_SOCKET_RETRY_SLEEP_MSEC", VARIABLE_INTEGER, V(2, 24, 3), 0, 0, NULL},
	{"NCCL_SOCKET_SNDBUF", VARIABLE_INTEGER, V(2, 27, 3), 0, 0, NULL},
	{"NCCL_SYM_CE_THRESHOLD", VARIABLE_INTEGER, V(2, 29, 2), 0, 0, NULL},
	{"NCCL_SYM_CTAS", VARIABLE_INTEGER, V(2, 27, 3), 0, 0, NULL},
	{"NCCL_SYM_GIN_KERNELS_ENABLE", VARIABLE_INTEGER, V(2, 29, 7), 0, 0, NULL},
	{"NCCL_SYM_KERNEL", VARIABLE_FREE, V(2, 27, 3), 0, 0, NULL},
	{"NCCL_SYM_NOWIN_ENABLE", VARIABLE_INTEGER, V(2, 29, 2), 0, 0, NULL},
	{"NCCL_SYM_REUSE_SYSMEM_HANDLES", VARIABLE_INTEGER, V(2, 30, 4), 0, 0, NULL},
	{"NCCL_SYM_RS_GIN_CHUNK_SIZE", VARIABLE_INTEGER, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_SYM_TMA_ENABLE", VARIABLE_INTEGER, V(2, 30, 3), 0, 0, NULL},
	{"NCCL_THREAD_THRESHOLD", VARIABLE_INTEGER, 0, 0, V(2, 5, 6), "NCCL_THREAD_THRESHOLDS replaces it"},
	{"NCCL_THREAD_THRESHOLDS", VARIABLE_FREE, V(2, 5, 6), 0, 0, NULL},
	{"NCCL_TOPO_DUMP_FILE", VARIABLE_FILE, V(2, 6, 4), 0, 0, NULL},
	{"NCCL_TOPO_DUMP_FILE_RANK", VARIABLE_INTEGER, V(2, 6, 4), 0, 0, NULL},
	{"NCCL_TOPO_FILE", VARIABLE_FILE, V(2, 6, 4), 0, 0, NULL},
	{"NCCL_TOPO_SPLIT_MLOPART", VARIABLE_INTEGER, V(2, 30, 7), 0, 0, NULL},
	{"NCCL_TREE_THRESHOLD", VARIABLE_INTEGER, V(2, 4, 2), 0, V(2, 5, 6), "NCCL_ALGO replaces it"},
	{"NCCL_TUNER_CONFIG_FILE", VARIABLE_FILE, V(2, 27, 5), 0, 0, NULL},
	{"NCCL_TUNER_PLUGIN", VARIABLE_FREE, V(2, 19, 1), 0, 0, NULL},
	{"NCCL_UID_STAGGER_RATE", VARIABLE_INTEGER, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_UID_STAGGER_THRESHOLD", VARIABLE_INTEGER, V(2, 23, 4), 0, 0, NULL},
	{"NCCL_UNPACK_DOUBLE_NCHANNELS", VARIABLE_INTEGER, V(2, 22, 3), 0, 0, NULL},
	{"NCCL_WARN_ENABLE_DEBUG_INFO", VARIABLE_FREE, V(2, 19, 4), 0, 0, NULL},
	{"NCCL_WIN_ENABLE", VARIABLE_INTEGER, V(2, 27, 3), 0, 0, NULL,
		USE("registers windows of memory for symmetric kernels",
		    NULL,
		    "0 gives up the fastest kernels",
		    "1", NULL, 0)},
	{"NCCL_WIN_STRIDE", VARIABLE_INTEGER, V(2, 27, 3), 0, 0, NULL},
	{"NCCL_WORK_ARGS_BYTES", VARIABLE_INTEGER, V(2, 22, 3), 0, 0, NULL},
	{"NCCL_WORK_FIFO_BYTES", VARIABLE_INTEGER, V(2, 22, 3), 0, 0, NULL},
	{"NCCL_WORK_FIFO_DEPTH", VARIABLE_INTEGER, V(2, 13, 4), 0, V(2, 22, 3), "NCCL_WORK_FIFO_BYTES replaces it"},
	{"NVSHMEM_ENABLE_NIC_PE_MAPPING", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("1 makes NVSHMEM read NVSHMEM_HCA_LIST and NVSHMEM_HCA_PE_MAPPING",
		    "where one of these is set",
		    NULL,
		    "0", NULL, 0)},
	{"NVSHMEM_HCA_LIST", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("the RDMA ports that NVSHMEM may use",
		    "to exclude ports",
		    "has no effect without NVSHMEM_ENABLE_NIC_PE_MAPPING=1",
		    NULL, NULL, 0)},
	{"NVSHMEM_HCA_PE_MAPPING", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("which RDMA port each processing element uses",
		    "NVSHMEM does not select the nearest by itself",
		    "has no effect without NVSHMEM_ENABLE_NIC_PE_MAPPING=1",
		    NULL, NULL, 0)},
	{"NVSHMEM_HCA_PREFIX", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("the prefix of the names of the RDMA devices",
		    "where the names do not begin with mlx5, and the release accepts only those",
		    NULL,
		    NULL, NULL, 0)},
	{"NVSHMEM_IB_ADDR_FAMILY", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("address family of the RoCE port addresses",
		    "AF_INET6 where the ports have no IPv4 address",
		    "AF_INET6 where they have one",
		    "AF_INET", NULL, 0)},
	{"NVSHMEM_IB_DISABLE_DMABUF", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("1 keeps NVSHMEM from registering GPU memory as dma-buf",
		    "where data sent through dma-buf was wrong and nvidia-peermem works",
		    "1 without nvidia-peermem",
		    "0", NULL, 0)},
	{"NVSHMEM_IB_GID_INDEX", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("which entry of a RoCE port's GID table is used",
		    "where the automatic choice fails",
		    "entries move when addresses change",
		    "-1", NULL, 0)},
	{"OMPI_MCA_btl", VARIABLE_LIST, 0, 0, 0, NULL,
		USE("the byte transfer layers that Open MPI may use",
		    NULL,
		    "Open MPI 5.0 removed openib: UCX replaces it",
		    NULL, NULL, 0)},
	{"OMPI_MCA_opal_common_ucx_devices", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("drivers of devices for which Open MPI prefers UCX",
		    "any where the name of the NICs' driver does not begin with mlx",
		    NULL,
		    "mlx*", NULL, 0)},
	{"OMPI_MCA_pml", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("the layer that carries Open MPI's messages",
		    "ucx, to fail rather than run without UCX",
		    "ob1 copies GPU memory through host memory",
		    NULL, NULL, 0)},
	{"TP_SOCKET_IFNAME", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("the network device that PyTorch's TensorPipe uses",
		    "like GLOO_SOCKET_IFNAME",
		    NULL,
		    NULL, NULL, 0)},
	{"UCX_DISTANCE_BW", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("the bandwidth that UCX assumes for each distance",
		    "where a measured figure differs much from UCX's",
		    NULL,
		    "auto", NULL, 0)},
	{"UCX_IB_GID_INDEX", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("which entry of a RoCE port's GID table is used",
		    "where the automatic choice fails",
		    "entries move when addresses change",
		    "auto", NULL, 0)},
	{"UCX_IB_GPU_DIRECT_RDMA", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("whether NICs use GPU memory",
		    "yes, to fail rather than copy through the host",
		    "no: all data goes through the host",
		    "try", NULL, 0)},
	{"UCX_IB_TRAFFIC_CLASS", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("the traffic class of RoCE packets; on RoCE auto is 106",
		    "where the switches' lossless class is another one",
		    NULL,
		    "auto", NULL, 0)},
	{"UCX_MAX_RMA_RAILS", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("NICs over which one write or read is spread",
		    "where more than one NIC is equally near to a GPU and one-sided traffic "
		    "matters",
		    NULL,
		    "1", NULL, 0)},
	{"UCX_MAX_RNDV_RAILS", VARIABLE_INTEGER, 0, 0, 0, NULL,
		USE("NICs over which one large message is spread",
		    "where more than two NICs are equally near to a GPU",
		    NULL,
		    "2", NULL, 0)},
	{"UCX_NET_DEVICES", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("the network devices that UCX may use",
		    "to exclude devices",
		    "one list for all processes keeps GPUs from their nearest NICs",
		    "all", NULL, 0)},
	{"UCX_TLS", VARIABLE_FREE, 0, 0, 0, NULL,
		USE("the transports that UCX may use",
		    "to find a fault",
		    "a list without cuda (cuda_copy, cuda_ipc): GPU memory cannot be sent",
		    "all", NULL, 0)},
};
/* clang-format on */

const size_t variable_n = sizeof(variable_table) / sizeof(variable_table[0]);

/* Whole names, or beginnings where they end in '_'. */
static const char *const foreign[] = {
	"NCCL_ASYNC_ERROR_HANDLING", /* PyTorch up to 2.2; TORCH_NCCL_... since */
	"NCCL_BLOCKING_WAIT",
	"NCCL_DESYNC_DEBUG",
	"NCCL_ENABLE_TIMING",
	"NCCL_TRACE_BUFFER_SIZE",
	"NCCL_AVOID_RECORD_STREAMS",
	"NCCL_HOME", /* builds */
	"NCCL_ROOT",
	"NCCL_ROOT_DIR",
	"NCCL_INCLUDE_DIR",
	"NCCL_INCLUDE_DIRS",
	"NCCL_LIB_DIR",
	"NCCL_LIBRARY",
	"NCCL_LIBRARIES",
	"NCCL_VERSION",    /* NVIDIA's container images */
	"NCCL_PLUGIN_P2P", /* nccl-rdma-sharp-plugins */
	"NCCL_IBEXT_DISABLE",
	"NCCL_SHARP_",
	"NCCL_UCX_",
	"NCCL_FASTRAK_", /* Google's network plugins */
	"NCCL_GPUDIRECTTCPX_",
	"NCCL_SHIMNET_",
	"NCCL_TESTS_", /* nccl-tests */
	"NCCL_DOCA_",
};

static int compare_name(const void *name, const void *variable)
{
	return strcmp(name, ((const struct variable *)variable)->name);
}

const struct variable *variable_find(const char *name)
{
	return bsearch(name, variable_table, variable_n, sizeof(variable_table[0]), compare_name);
}

bool nccl_variable_is_foreign(const char *name)
{
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		size_t n = strlen(foreign[i]);
		bool prefix = foreign[i][n - 1] == '_';

		if (prefix ? !strncmp(name, foreign[i], n) : !strcmp(name, foreign[i]))
			return true;
	}
	return false;
}

bool nccl_variable_has_family(const char *name)
{
	const char *end = strncmp(name, "NCCL_", 5) ? NULL : strchr(name + 5, '_');
	size_t n = end ? (size_t)(end - name) + 1 : 0;

	for (size_t i = 0; n && i < variable_n; i++)
		if (!strncmp(name, variable_table[i].name, n))
			return true;
	return false;
}

#define NAME_MAX_LEN 80

static unsigned min_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Optimal string alignment, three rows at a time. */
unsigned nccl_name_distance(const char *a, const char *b)
{
	unsigned rows[3][NAME_MAX_LEN + 1];
	size_t an = strlen(a), bn = strlen(b);

	if (an > NAME_MAX_LEN || bn > NAME_MAX_LEN)
		return NAME_MAX_LEN;
	for (size_t j = 0; j <= bn; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= an; i++) {
		unsigned *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= bn; j++) {
			row[j] = min_of(min_of(row[j - 1], up[j]) + 1,
					up[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min_of(row[j], up2[j - 2] + 1);
		}
	}
	return rows[an % 3][bn];
}

const struct variable *variable_near(const char *name)
{
	const struct variable *best = NULL;
	unsigned least = 3;

	for (size_t i = 0; i < variable_n; i++) {
		unsigned d = nccl_name_distance(name, variable_table[i].name);

		if (library_of_variable(variable_table[i].name) == LIBRARY_NCCL && d && d < least) {
			least = d;
			best = &variable_table[i];
		}
	}
	return best;
}

const struct variable *variable_named(const char *name)
{
	const struct variable *v = variable_find(name), *near = v ? NULL : variable_near(name);

	if (!v)
		err_set(ENOENT, "onehop knows no variable '%s'%s%s%s", name,
			near ? "; did you mean " : "", near ? near->name : "", near ? "?" : "");
	return v;
}

const char *variable_normal(const struct variable *v, int version)
{
	const struct variable_use *u = v->use;

	if (!u || !u->before)
		return u ? u->normal : NULL;
	return !version ? NULL : version < u->changed ? u->before : u->normal;
}

const char *variable_kind_word(enum variable_kind kind)
{
	static const char *const words[VARIABLE_KIND_N] = {"integer", "level", "list", "file",
							   "words"};

	return (unsigned)kind < VARIABLE_KIND_N ? words[kind] : "?";
}

int nccl_version_number(int64_t version)
{
	if (version >= 10000)
		return (int)version;
	return V((int)(version / 1000), (int)(version / 100 % 10), (int)(version % 100));
}

const char *nccl_version_format(int number, char *buf, size_t size)
{
	snprintf(buf, size, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
	return buf;
}
