/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/run_failure.h"

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
#define MAPPING_MEANS "the driver could not map a peer's memory into the GPU's BAR1 or page tables"
#define MAPPING_TODO                                                                               \
	"run onehop check on the machine: bar1-small and p2p-forced explain why; "                 \
	"until then set NCCL_P2P_DISABLE=1"
#define HARDWARE_TODO "check the kernel log for an Xid (rules xid-memory and xid-nvlink)"

#define SHM_FULL_MEANS "/dev/shm has no room for the segments that ranks of one host share"
#define SHM_FULL_TODO                                                                              \
	"enlarge it: docker run --shm-size=1g or --ipc=host, in Kubernetes an "                    \
	"emptyDir with medium: Memory at /dev/shm (rule shm-size)"

static const struct run_failure_meaning meanings[] = {
	{RUN_TEST_FAILED, -1,
	 "a test got wrong data or failed with an error, and does not show which pair "
	 "is the cause",
	 "run onehop test, which checks each GPU and each pair; until then do not "
	 "trust results from these GPUs"},
	{RUN_CUDA_ERROR, 2, "a GPU has no memory left for the program or for NCCL's buffers",
	 "stop other programs on the GPUs, or make NCCL's buffers smaller "
	 "(NCCL_BUFFSIZE, NCCL_MAX_CTAS)"},
	{RUN_CUDA_ERROR, 205, MAPPING_MEANS, MAPPING_TODO},
	{RUN_CUDA_ERROR, 214, "a GPU's memory had an uncorrectable error", HARDWARE_TODO},
	{RUN_CUDA_ERROR, 217, "CUDA refuses peer access between GPUs for which NCCL relied on it",
	 "run onehop check on the machine: the driver and CUDA disagree, or the ranks "
	 "see other GPUs than NCCL assumes; until then set NCCL_P2P_DISABLE=1"},
	{RUN_CUDA_ERROR, 220, "an NVLink transfer was corrupted and could not be repeated",
	 HARDWARE_TODO},
	{RUN_CUDA_ERROR, 700, FAULT_MEANS, FAULT_TODO},
	{RUN_CUDA_ERROR, 711, MAPPING_MEANS, MAPPING_TODO},
	{RUN_CUDA_ERROR, 716, FAULT_MEANS, FAULT_TODO},
	{RUN_CUDA_ERROR, 717, FAULT_MEANS, FAULT_TODO},
	{RUN_CUDA_ERROR, 719, FAULT_MEANS, FAULT_TODO},
	{RUN_CUDA_ERROR, 802, "the GPUs are connected by NVSwitches that are not set up",
	 "start the fabric manager of the driver's version (rule fabric-manager)"},
	{RUN_CUDA_ERROR, -1, "a CUDA call or kernel failed and left the GPU in an error state",
	 "check the kernel log for an Xid at the same time (onehop check does), and "
	 "run onehop test"},
	{RUN_NCCL_ERROR, 1, "a CUDA call within NCCL failed",
	 "find the line with \"Cuda failure\" in the log, which names it"},
	{RUN_NCCL_ERROR, 2, "a system call failed: shared memory, a socket or a NIC",
	 "find the warning before it in the log, and run onehop check on the machine "
	 "(rules shm-size, shm-writable, memlock)"},
	{RUN_NCCL_ERROR, 5, "NCCL was called incorrectly",
	 "check the program: two ranks on one GPU, or ranks that call different "
	 "collectives"},
	{RUN_NCCL_ERROR, 6, "another rank exited, or the connection to it broke",
	 "check that rank's log, which shows the cause"},
	{RUN_NCCL_ERROR, -1, SHM_FULL_MEANS, SHM_FULL_TODO, "o space left on device"},
	{RUN_NCCL_ERROR, -1, "NCCL cannot write to /dev/shm, where ranks of one host exchange data",
	 "make it writable for the job's user (mode 1777; a container has its own "
	 "/dev/shm), and remove files nccl-* that another user left; onehop check on "
	 "the machine shows which (rule shm-writable)",
	 "shm_open failed"},
	{RUN_NCCL_ERROR, -1, SHM_FULL_MEANS " or could not be created there",
	 SHM_FULL_TODO "; the error before it in the log shows why",
	 "creating shared memory segment"},
	{RUN_NCCL_ERROR, -1,
	 "a NIC could not register memory: the limit of locked memory is too low, or, "
	 "for GPU memory, there is no peer-memory module and no dma-buf",
	 "raise the limit of locked memory (rule memlock); if NCCL_NET_GDR_LEVEL=LOC "
	 "works, load nvidia_peermem (rule peermem-not-loaded)",
	 "ibv_reg_mr"},
	{RUN_NCCL_ERROR, -1, "a NIC got no answer from its peer: the connection does not work",
	 "run onehop check on both machines (rule nccl-gid-index), and check the "
	 "network between them",
	 "status=12"},
	{RUN_NCCL_ERROR, -1, "a NIC got no answer from its peer: the connection does not work",
	 "run onehop check on both machines (rule nccl-gid-index), and check the "
	 "network between them",
	 "with error 12"},
	{RUN_NCCL_ERROR, -1, "a GPU no longer responds",
	 "check the kernel log for an Xid (onehop check does), and reboot the machine",
	 "GPU is lost"},
	{RUN_NCCL_ERROR, -1, "NVML's library and the loaded kernel module have different versions",
	 "load the module of the installed version, for example by a reboot",
	 "Driver/library version mismatch"},
	{RUN_NCCL_ERROR, -1, "the ranks use different NCCL versions",
	 "use one NCCL version for all ranks; the line names both", "Mismatched NCCL version"},
	{RUN_NCCL_ERROR, -1, "NCCL gave up for the reason in the line",
	 "run onehop check on the machine (rules shm-size, shm-writable and memlock among others)"},
	{RUN_CRASHED, -1, "a process was killed by a signal, which ended the other ranks too",
	 "check the kernel log for an Xid at the same time and the stack trace of the "
	 "process; after a bus error run onehop check (rule shm-size)"},
	{RUN_TIMED_OUT, -1,
	 "a collective did not finish in time: a transfer hangs, or a rank never "
	 "reached it",
	 "if all ranks wait in the same operation, run onehop test, which finds pairs "
	 "that hang; if they wait in different ones, check the program; a rank that "
	 "is missing here exited earlier"},
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
	       (m->in_what && !strstr(f->what, m->in_what)))
		m++;
	return m;
}

const char *run_failure_text(const struct run_failure *f, char *buf, size_t size)
{
	static const char *const names[RUN_FAILURE_KIND_N] = {
		[RUN_TEST_FAILED] = "test failed",        [RUN_CUDA_ERROR] = "CUDA error",
		[RUN_CRASHED] = "process died",           [RUN_NCCL_ERROR] = "NCCL error",
		[RUN_TIMED_OUT] = "collective timed out", [RUN_ABORTED] = "communicator aborted",
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
		[RUN_CRASHED] = "crashed",         [RUN_NCCL_ERROR] = "nccl-error",
		[RUN_TIMED_OUT] = "timed-out",     [RUN_ABORTED] = "aborted",
	};

	return words[kind];
}
