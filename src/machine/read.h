/* SPDX-License-Identifier: Apache-2.0 */
/* How readers turn files into facts; one place decides what known, absent and unknown mean. */
#pragma once

#include "base/array.h"
#include "base/source.h"
#include "machine/machine.h"

/* An unknown fact with the reason of `of`, for a value from the same place. */
#define INT_LIKE(of) ((struct fact_int){0, (of).state, (of).from})
#define STR_LIKE(of) ((struct fact_str){NULL, (of).state, (of).from})

/* The arguments of a reader function. */
struct reader {
	struct machine *m;
	struct source *s;
	const struct machine_request *request;
	struct driver_wait *wait; /* NVML's and RM's answers on their way, NULL: ask when needed */
};

/*
 * A file that holds one number or one text. Missing: absent. No permission: unknown ("needs root:
 * PATH"). Not in the recording: unknown. Not a number: unknown, and a trouble is noted.
 */
struct fact_int read_int(struct reader *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
struct fact_str read_str(struct reader *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The last component of a link's target: ".../drivers/nvidia" gives "nvidia". */
struct fact_str read_link_name(struct reader *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* 1 when the path can be looked up as a file, link or folder, known 0 (not absent) when it is
 * missing. */
struct fact_int read_exists(struct reader *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Names in a folder, for counting and walking; the state tells whether it could be listed. */
struct fact_int read_list(struct reader *r, char ***ret_names, size_t *ret_n, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* A whole text file into the arena. */
struct fact_str read_text(struct reader *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * The reason for an unknown fact, from a source's errno; NULL for -ENOENT. Allocated in the arena.
 */
const char *read_why(struct reader *r, int error, const char *path);
/*
 * That a text was cut off where it would state the path: a reason (fact.h). NULL: nothing shows
 * that.
 */
const char *read_gap(const struct reader *r, const char *path);
/*
 * nvml.json and rm.json. NVML is slow, so machine_read starts the query first and reads everything
 * else meanwhile.
 */
struct fact_str read_nvml(struct reader *r);
struct fact_str read_rm(struct reader *r);
void read_trouble(struct reader *r, const char *where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- the readers, one file each, called by machine_read in this order ---- */

void pci_read_all(struct reader *r);      /* pci.c */
void numa_read(struct reader *r);         /* cpu.c */
void host_read_all(struct reader *r);     /* host.c, kernel.c, cpu.c */
void boot_read(struct reader *r);         /* boot.c */
void modules_read(struct reader *r);      /* modules.c: modules, modprobe.d, peer memory */
void guest_claims_read(struct reader *r); /* guest_claims.c: files that give devices to vfio-pci */
void gpu_read(struct reader *r);          /* gpu.c: driver files, nvml.json, rm.json */
void rdma_read(struct reader *r);         /* rdma.c */
void rdma_read_levels(struct reader *r);
void kernel_log_read(struct reader *r); /* kernel_log.c */
void nccl_read(struct reader *r);       /* nccl.c: environment, conf files, --pid */
void observed_read(struct reader *r);   /* observed.c; the GPUs are read before */
void applied_read(struct reader *r);    /* applied.c: what `onehop fix` left in force */

/*
 * Virtual files of a live source (capture/live.c lists them); a recording keeps each as a file of
 * that name:
 *   nvml.json        what NVML answered (nvml_capture.c writes it, nvml_decode.c reads it)
 *   nvml-p2p.json    of a live machine only: NVML's word on all pairs, where RM has none
 *   rm.json          what the driver's resource manager answered (rm_capture.c, rm_decode.c)
 *   kernel-log.txt   the kernel log's lines about GPUs, PCI, IOMMU, RDMA, oldest first
 *   process.txt      "key value" lines: uid, config_space (1: may read beyond 64 bytes), memlock,
 *                    memlock_hard (bytes or "unlimited"), shm_bytes, shm_free_bytes, shm_writable
 *   environment.txt  NAME=VALUE lines: NCCL_*, CUDA_*, NVIDIA_* and a few more, of this process
 *   process-env.txt  the same of --pid N; absent without --pid
 *   nccl-library.txt "pid", "path" and "version" lines of the libnccl that --pid N has mapped
 *   modinfo-NAME.txt "key=value" lines of a module file's .modinfo section
 *   p2p-functions-file.txt, p2p-functions-loaded.txt: the names of the functions of P2P through BAR1 that
 *                    the nvidia module has, on disk (with a line "onehop=" if onehop made it) and in
 *                    the kernel; at most ten lines
 *   uvm-functions-file.txt, uvm-functions-loaded.txt: the same of nvidia_uvm, for its gate for managed
 *                    memory (machine/module_file.h); at most a few lines; empty: it has none
 *   torn-modules.txt NVIDIA's modules for this kernel that DKMS installed and that are torn, a line each
 *                    (machine/module_torn.h); empty: none is
 *   peer-memory-symbol.txt the kernel's symbols for peer memory clients; empty: it has none
 *   observed*.json   what earlier runs of onehop found (kept_runs in machine/observed.h), and under which
 *                    conditions; the files of these names in $XDG_STATE_HOME/onehop
 */
