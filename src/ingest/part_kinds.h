/* SPDX-License-Identifier: Apache-2.0 */
/* The functions in the rows of part_kinds; for part.c and the files that define them. */
#pragma once

#include "ingest/claims.h"
#include "ingest/part.h"
#include "result/observation.h"

#define PART_KIND(name)                                                                            \
	size_t name##_match(struct part *p, const struct text_line *lines, size_t n);              \
	void name##_decode(const struct part *p, struct claims *c)

PART_KIND(lspci); /* lspci.c */
struct text_unit lspci_unit(const struct text_line *lines, size_t n);
PART_KIND(lspci_tree); /* lspci_tree.c */
PART_KIND(smi_table);  /* nvidia_smi.c */
/* "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)" */
bool smi_names_gpu(const char *s);
/* What such a line says of the GPUs that it lists; the number of the last of them. */
unsigned smi_claim_listed(const struct part *p, struct claims *c, const struct text_line *l);
PART_KIND(smi_counters); /* nvidia_smi_counters.c */
void smi_counters_observe(const struct part *p, struct machine *m);
PART_KIND(smi_list);  /* nvidia_smi.c */
PART_KIND(smi_query); /* nvidia_smi_query.c */
size_t smi_xml_match(struct part *p, const struct text_line *lines, size_t n);
const char *smi_xml_keep(const struct part *p, const struct text_line *l, struct arena *a);
PART_KIND(smi_topo); /* nvidia_smi_topo.c */
PART_KIND(smi_p2p);  /* nvidia_smi_topo.c */
/* A level of NVML as the matrix of topo -m has it; "?": no such level. */
const char *smi_level_word(int64_t level);
PART_KIND(kernel_lines); /* kernel_lines.c */
struct text_unit kernel_lines_unit(const struct text_line *lines, size_t n);
const char *kernel_lines_keep(const struct part *p, const struct text_line *l, struct arena *a);
bool kernel_lines_host(const struct part *p, char *buf, size_t size);
void kernel_lines_observe(const struct part *p, struct machine *m); /* kernel_boots.c */
/* What the kernel log is read for. */
enum kernel_line_use {
	KERNEL_LINE_NONE, /* it is not of the kernel log */
	KERNEL_LINE_UNREAD,
	KERNEL_LINE_READ,
	KERNEL_LINE_BOOT, /* a boot begins with it, or it tells a boot from others */
};
enum kernel_line_use kernel_line_use(const struct text_line *l);
/* The message, without its time. */
const char *kernel_line_message(const struct text_line *l);
/* Both name their host, and it is not the same. */
bool kernel_line_is_of_other(const struct text_line *a, const struct text_line *b);
/* "Linux version ...": a boot begins. */
bool kernel_line_is_first(const struct text_line *l);
/* Whether it tells a boot from others. */
bool kernel_line_is_of_boot(const struct text_line *l);
bool uname_host(const struct part *p, char *buf, size_t size);
PART_KIND(lscpu);   /* lscpu.c */
PART_KIND(cmdline); /* host_files.c: */
/*
 * The line below one with parameters of the kernel has more of them, as a terminal or a mail breaks
 * lines.
 */
bool cmdline_goes_on(const struct text_line *l, const struct text_line *below);
/* Parameters of the kernel; `whole`: what is not among them is not set. */
void claim_cmdline_words(struct claims *c, struct claim_at at, const char *words, bool whole);
PART_KIND(driver_version);
PART_KIND(driver_params);
PART_KIND(gpu_information);
PART_KIND(lsmod);
size_t lsmod_none_match(struct part *p, const struct text_line *lines, size_t n);
void lsmod_none_observe(const struct part *p, struct machine *m);
PART_KIND(modinfo);
PART_KIND(uname);
PART_KIND(environment);
PART_KIND(deepspeed);   /* host_files.c */
PART_KIND(collect_env); /* collect_env.c */
void collect_env_observe(const struct part *p, struct machine *m);
PART_KIND(launch); /* container_lines.c: */
const char *launch_keep(const struct part *p, const struct text_line *l, struct arena *a);
PART_KIND(manifest);
PART_KIND(nccl_topology); /* nccl_topology_text.c */
const char *nccl_topology_keep(const struct part *p, const struct text_line *l, struct arena *a);
void launch_observe(const struct part *p, struct machine *m);

/* rdma_texts.c: */
#define NIC_NAME_SIZE 64
/* The n characters are a NIC's name, "mlx5_0". */
bool nic_name_read(const char *s, size_t n, char name[NIC_NAME_SIZE]);
PART_KIND(ibstat);
const char *ibstat_keep(const struct part *p, const struct text_line *l, struct arena *a);
PART_KIND(ibstatus);
PART_KIND(ibv_devinfo);
const char *ibv_devinfo_keep(const struct part *p, const struct text_line *l, struct arena *a);
PART_KIND(rdma_link);
PART_KIND(ibdev2netdev);
PART_KIND(show_gids);
PART_KIND(ofed_info);

PART_KIND(perftest); /* perftest_text.c: */
void perftest_observe(const struct part *p, struct machine *m);

/* node_labels.c: */
PART_KIND(node_labels);
const char *node_labels_keep(const struct part *p, const struct text_line *l, struct arena *a);
PART_KIND(node_kernel);

/* limits_text.c: */
PART_KIND(df);
PART_KIND(memlock);

/* tool_messages.c: */
#define MESSAGE_KIND(name)                                                                         \
	size_t name##_match(struct part *p, const struct text_line *lines, size_t n);              \
	void name##_observe(const struct part *p, struct machine *m)
MESSAGE_KIND(kmod);
MESSAGE_KIND(smi_failed);
MESSAGE_KIND(fabric);
MESSAGE_KIND(engine);
MESSAGE_KIND(simple_p2p);

/* Adds the line; `gpu`: the machine's, -1: it names none. */
struct observed *message_add(struct machine *m, const struct part *p, const struct text_line *l,
			     enum tool_message message, int gpu);
/* The machine's GPU that NVIDIA's tools number so; -1: none. */
int message_gpu(const struct machine *m, unsigned number);
/* For observed_add_failed_test: a test of which the text does not show the GPUs. */
size_t message_all_gpus(const struct machine *m);

/* dcgm_text.c: */
MESSAGE_KIND(dcgm);
PART_KIND(dcgm_links);

/* run_lines.c: what the readers of logs and results decode */
size_t vllm_cache_match(struct part *p, const struct text_line *lines, size_t n);
size_t p2p_test_match(struct part *p, const struct text_line *lines, size_t n);
size_t nvbandwidth_match(struct part *p, const struct text_line *lines, size_t n);
size_t nvbandwidth_json_match(struct part *p, const struct text_line *lines, size_t n);
size_t nccl_tests_match(struct part *p, const struct text_line *lines, size_t n);
size_t nccl_lines_match(struct part *p, const struct text_line *lines, size_t n);
struct text_unit nccl_lines_unit(const struct text_line *lines, size_t n);
size_t run_error_match(struct part *p, const struct text_line *lines, size_t n);
struct text_unit run_error_unit(const struct text_line *lines, size_t n);
