/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of libibverbs that onehop calls, declared here so that building needs no header of it.
 * Names and layouts are the library's, with verbs_ for ibv_; where its headers are installed
 * tests/unit/test_verbs.c compares them. Post and poll are not symbols: the headers call them
 * through a table in the open device.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define VERBS_LIBRARY "libibverbs.so.1"

struct verbs_pd;
struct verbs_srq;
struct verbs_comp_channel;

union verbs_gid {
	uint8_t raw[16];
	uint64_t aligned[2];
};

struct verbs_device {
	void *ops[2];
	int node_type, transport_type;
	char name[64], dev_name[64], dev_path[256], ibdev_path[256];
};

struct verbs_device_attr {
	char fw_ver[64];
	uint64_t node_guid, sys_image_guid, max_mr_size, page_size_cap;
	uint32_t vendor_id, vendor_part_id, hw_ver;
	int max_qp, max_qp_wr;
	unsigned device_cap_flags;
	int max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd, max_qp_rd_atom, max_ee_rd_atom,
		max_res_rd_atom, max_qp_init_rd_atom, max_ee_init_rd_atom, atomic_cap, max_ee,
		max_rdd, max_mw, max_raw_ipv6_qp, max_raw_ethy_qp, max_mcast_grp,
		max_mcast_qp_attach, max_total_mcast_qp_attach, max_ah, max_fmr, max_map_per_fmr,
		max_srq, max_srq_wr, max_srq_sge;
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay, phys_port_cnt;
};

enum verbs_port_state {
	VERBS_PORT_DOWN = 1,
	VERBS_PORT_INIT,
	VERBS_PORT_ARMED,
	VERBS_PORT_ACTIVE,
	VERBS_PORT_DEFER
};
enum verbs_link_layer { VERBS_LINK_UNSPECIFIED, VERBS_LINK_INFINIBAND, VERBS_LINK_ETHERNET };

/* The symbol ibv_query_port fills this up to `flags`, the headers' inline function all of it. */
struct verbs_port_attr {
	int state, max_mtu, active_mtu, gid_tbl_len;
	uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
	uint16_t pkey_tbl_len, lid, sm_lid;
	uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed,
		phys_state, link_layer, flags;
	uint16_t port_cap_flags2;
};

enum verbs_gid_type { VERBS_GID_IB, VERBS_GID_ROCE_V1, VERBS_GID_ROCE_V2 };

struct verbs_gid_entry {
	union verbs_gid gid;
	uint32_t gid_index, port_num;
	uint32_t gid_type; /* enum verbs_gid_type */
	uint32_t ndev_ifindex;
};

enum verbs_access {
	VERBS_LOCAL_WRITE = 1,
	VERBS_REMOTE_WRITE = 2,
	VERBS_REMOTE_READ = 4,
	VERBS_ON_DEMAND = 1 << 6,
	VERBS_RELAXED_ORDERING = 1 << 20, /* ignored if not supported */
};

struct verbs_mr {
	struct verbs_context *context;
	struct verbs_pd *pd;
	void *addr;
	size_t length;
	uint32_t handle, lkey, rkey;
};

struct verbs_cq {
	struct verbs_context *context;
	struct verbs_comp_channel *channel;
	void *cq_context;
	uint32_t handle;
	int cqe;
};

struct verbs_qp_cap {
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};

#define VERBS_QPT_RC 2

struct verbs_qp_init_attr {
	void *qp_context;
	struct verbs_cq *send_cq, *recv_cq;
	struct verbs_srq *srq;
	struct verbs_qp_cap cap;
	int qp_type, sq_sig_all;
};

struct verbs_global_route {
	union verbs_gid dgid;
	uint32_t flow_label;
	uint8_t sgid_index, hop_limit, traffic_class;
};

struct verbs_ah_attr {
	struct verbs_global_route grh;
	uint16_t dlid;
	uint8_t sl, src_path_bits, static_rate, is_global, port_num;
};

enum verbs_qp_state { VERBS_QPS_RESET, VERBS_QPS_INIT, VERBS_QPS_RTR, VERBS_QPS_RTS };

enum verbs_qp_mask {
	VERBS_QP_STATE = 1 << 0,
	VERBS_QP_ACCESS_FLAGS = 1 << 3,
	VERBS_QP_PKEY_INDEX = 1 << 4,
	VERBS_QP_PORT = 1 << 5,
	VERBS_QP_AV = 1 << 7,
	VERBS_QP_PATH_MTU = 1 << 8,
	VERBS_QP_TIMEOUT = 1 << 9,
	VERBS_QP_RETRY_CNT = 1 << 10,
	VERBS_QP_RNR_RETRY = 1 << 11,
	VERBS_QP_RQ_PSN = 1 << 12,
	VERBS_QP_MAX_RD_ATOMIC = 1 << 13,
	VERBS_QP_MIN_RNR_TIMER = 1 << 15,
	VERBS_QP_SQ_PSN = 1 << 16,
	VERBS_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	VERBS_QP_DEST_QPN = 1 << 20,
};

struct verbs_qp_attr {
	int qp_state, cur_qp_state, path_mtu, path_mig_state;
	uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
	unsigned qp_access_flags;
	struct verbs_qp_cap cap;
	struct verbs_ah_attr ah_attr, alt_ah_attr;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer,
		port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout;
	uint32_t rate_limit;
};

struct verbs_qp {
	struct verbs_context *context;
	void *qp_context;
	struct verbs_pd *pd;
	struct verbs_cq *send_cq, *recv_cq;
	struct verbs_srq *srq;
	uint32_t handle, qp_num;
	int state, qp_type;
};

struct verbs_sge {
	uint64_t addr;
	uint32_t length, lkey;
};

enum verbs_opcode {
	VERBS_WR_WRITE = 0,
	VERBS_WR_WRITE_WITH_IMM = 1,
	VERBS_WR_SEND = 2,
	VERBS_WR_READ = 4
};
enum verbs_send_flags { VERBS_SIGNALED = 2, VERBS_INLINE = 8 };

struct verbs_send_wr {
	uint64_t wr_id;
	struct verbs_send_wr *next;
	struct verbs_sge *sg_list;
	int num_sge, opcode;
	unsigned send_flags;
	uint32_t imm_data;
	struct {
		uint64_t remote_addr;
		uint32_t rkey;
	} rdma;
	/* of atomics, datagrams, windows: room that the library may read */
	uint64_t other_kinds[9];
};

struct verbs_recv_wr {
	uint64_t wr_id;
	struct verbs_recv_wr *next;
	struct verbs_sge *sg_list;
	int num_sge;
};

enum verbs_status {
	VERBS_WC_SUCCESS,
	VERBS_WC_LOC_LEN,
	VERBS_WC_LOC_QP_OP,
	VERBS_WC_LOC_EEC_OP,
	VERBS_WC_LOC_PROT,
	VERBS_WC_WR_FLUSH,
	VERBS_WC_MW_BIND,
	VERBS_WC_BAD_RESP,
	VERBS_WC_LOC_ACCESS,
	VERBS_WC_REM_INV_REQ,
	VERBS_WC_REM_ACCESS,
	VERBS_WC_REM_OP,
	VERBS_WC_RETRY_EXC,
	VERBS_WC_RNR_RETRY_EXC,
};

struct verbs_wc {
	uint64_t wr_id;
	int status, opcode;
	uint32_t vendor_err, byte_len, imm_data, qp_num, src_qp;
	unsigned wc_flags;
	uint16_t pkey_index, slid;
	uint8_t sl, dlid_path_bits;
};

enum verbs_event_type {
	VERBS_EVENT_CQ_ERR,
	VERBS_EVENT_QP_FATAL,
	VERBS_EVENT_QP_REQ_ERR,
	VERBS_EVENT_QP_ACCESS_ERR,
	VERBS_EVENT_DEVICE_FATAL = 8,
	VERBS_EVENT_PORT_ACTIVE,
	VERBS_EVENT_PORT_ERR,
	VERBS_EVENT_LID_CHANGE,
	VERBS_EVENT_SM_CHANGE = 13,
	VERBS_EVENT_CLIENT_REREGISTER = 17,
	VERBS_EVENT_GID_CHANGE,
};

struct verbs_async_event {
	union {
		void *object;
		int port_num;
	} element;
	int event_type;
};

/* Only the slots that onehop calls have types. */
struct verbs_context_ops {
	void *before_poll[11];
	int (*poll_cq)(struct verbs_cq *cq, int n, struct verbs_wc *wc);
	void *between[13];
	int (*post_send)(struct verbs_qp *qp, struct verbs_send_wr *wr, struct verbs_send_wr **bad);
	int (*post_recv)(struct verbs_qp *qp, struct verbs_recv_wr *wr, struct verbs_recv_wr **bad);
	void *behind[5];
};

struct verbs_context {
	struct verbs_device *device;
	struct verbs_context_ops ops;
	int cmd_fd, async_fd, num_comp_vectors;
	pthread_mutex_t mutex;
	void *abi_compat;
};

/* On-demand paging: the NIC asks for a page when it needs it, and nothing is pinned. */
enum verbs_odp { VERBS_ODP = 1 };
enum verbs_odp_transport {
	VERBS_ODP_SEND = 1 << 0,
	VERBS_ODP_RECV = 1 << 1,
	VERBS_ODP_WRITE = 1 << 2,
	VERBS_ODP_READ = 1 << 3,
};

/* The first members; the call gets their size. */
struct verbs_device_attr_ex {
	struct verbs_device_attr orig_attr;
	uint32_t comp_mask;
	struct {
		uint64_t general_caps;
		struct {
			uint32_t rc_odp_caps, uc_odp_caps, ud_odp_caps;
		} per_transport_caps;
	} odp_caps;
};

/* What the library has before a context whose abi_compat is VERBS_IS_EXTENDED, from here on. */
struct verbs_extension {
	int (*query_device_ex)(struct verbs_context *c, const void *input,
			       struct verbs_device_attr_ex *a, size_t size);
	void *behind[10];
	uint64_t placeholder;
	size_t sz; /* of all there is, from its own beginning to the context's end */
	struct verbs_context context;
};
#define VERBS_IS_EXTENDED ((void *)UINTPTR_MAX)

/*
 * X(member, symbol, required, result, arguments). _ibv_query_gid_table came with rdma-core 32,
 * ibv_reg_dmabuf_mr with 34.
 */
/* clang-format off */
#define VERBS_SYMBOLS(X) \
	X(get_device_list,  "ibv_get_device_list",  true,  struct verbs_device **, (int *n)) \
	X(free_device_list, "ibv_free_device_list", true,  void, (struct verbs_device **list)) \
	X(open_device,      "ibv_open_device",      true,  struct verbs_context *, (struct verbs_device *d)) \
	X(close_device,     "ibv_close_device",     true,  int, (struct verbs_context *c)) \
	X(query_device,     "ibv_query_device",     true,  int, (struct verbs_context *c, struct verbs_device_attr *a)) \
	X(query_port,       "ibv_query_port",       true,  int, (struct verbs_context *c, uint8_t port, struct verbs_port_attr *a)) \
	X(query_gid_table,  "_ibv_query_gid_table", true,  ssize_t, (struct verbs_context *c, struct verbs_gid_entry *e, size_t max, uint32_t flags, size_t entry_size)) \
	X(alloc_pd,         "ibv_alloc_pd",         true,  struct verbs_pd *, (struct verbs_context *c)) \
	X(dealloc_pd,       "ibv_dealloc_pd",       true,  int, (struct verbs_pd *pd)) \
	X(reg_mr,           "ibv_reg_mr",           true,  struct verbs_mr *, (struct verbs_pd *pd, void *at, size_t n, int access)) \
	X(reg_mr_iova2,     "ibv_reg_mr_iova2",     false, struct verbs_mr *, (struct verbs_pd *pd, void *at, size_t n, uint64_t iova, unsigned access)) \
	X(reg_dmabuf_mr,    "ibv_reg_dmabuf_mr",    false, struct verbs_mr *, (struct verbs_pd *pd, uint64_t offset, size_t n, uint64_t iova, int fd, int access)) \
	X(dereg_mr,         "ibv_dereg_mr",         true,  int, (struct verbs_mr *mr)) \
	X(create_cq,        "ibv_create_cq",        true,  struct verbs_cq *, (struct verbs_context *c, int n, void *context, struct verbs_comp_channel *channel, int vector)) \
	X(destroy_cq,       "ibv_destroy_cq",       true,  int, (struct verbs_cq *cq)) \
	X(create_qp,        "ibv_create_qp",        true,  struct verbs_qp *, (struct verbs_pd *pd, struct verbs_qp_init_attr *a)) \
	X(modify_qp,        "ibv_modify_qp",        true,  int, (struct verbs_qp *qp, struct verbs_qp_attr *a, int mask)) \
	X(destroy_qp,       "ibv_destroy_qp",       true,  int, (struct verbs_qp *qp)) \
	X(get_async_event,  "ibv_get_async_event",  true,  int, (struct verbs_context *c, struct verbs_async_event *e)) \
	X(ack_async_event,  "ibv_ack_async_event",  true,  void, (struct verbs_async_event *e)) \
	X(event_type_str,   "ibv_event_type_str",   true,  const char *, (int event)) \
	X(wc_status_str,    "ibv_wc_status_str",    true,  const char *, (int status))
/* clang-format on */

struct verbs {
#define VERBS_POINTER(member, symbol, required, result, arguments) result(*member) arguments;
	VERBS_SYMBOLS(VERBS_POINTER)
#undef VERBS_POINTER
};

/* 0, -ENOENT (no such library) or -ENOSYS (too old a one), with a sentence. */
int verbs_load(struct verbs *ret);
