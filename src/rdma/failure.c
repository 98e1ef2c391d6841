/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/failure.h"

#include "base/array.h"
#include "bench/verify.h"
#include "rdma/verbs_api.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SLOW_MB_S 0.25 /* no link is slower */

/* A kernel-internal errno without a name in user space. */
#define KERNEL_ENOTSUPP 524

static const struct {
	const char *word, *text;
} steps[RDMA_STEP_N] = {
	[RDMA_STEP_NONE] = {"none", "nothing"},
	[RDMA_STEP_LIBRARY] = {"library", "loading libibverbs"},
	[RDMA_STEP_OPEN] = {"open", "opening the NIC"},
	[RDMA_STEP_PORT] = {"port", "the port"},
	[RDMA_STEP_GID] = {"gid", "choosing an address (GID)"},
	[RDMA_STEP_GPU] = {"gpu", "memory of the GPU"},
	[RDMA_STEP_EXPORT] = {"export", "exporting GPU memory as a dma-buf"},
	[RDMA_STEP_REGISTER_HOST] = {"register-host", "registering host memory"},
	[RDMA_STEP_REGISTER_DMABUF] = {"register-dmabuf", "registering GPU memory by dma-buf"},
	[RDMA_STEP_REGISTER_PEER] = {"register-peer", "registering GPU memory by peer memory"},
	[RDMA_STEP_QUEUE] = {"queue", "making queues"},
	[RDMA_STEP_INIT] = {"init", "bringing the queue pair to INIT"},
	[RDMA_STEP_RTR] = {"rtr", "bringing the queue pair to RTR (ready to receive)"},
	[RDMA_STEP_RTS] = {"rts", "bringing the queue pair to RTS (ready to send)"},
	[RDMA_STEP_POST] = {"post", "posting work"},
	[RDMA_STEP_COMPLETION] = {"completion", "the transfer"},
	[RDMA_STEP_WAIT] = {"wait", "waiting for the transfer"},
	[RDMA_STEP_DATA] = {"data", "checking the data"},
	[RDMA_STEP_WORKER] = {"worker", "the measuring process"},
};

/* clang-format off */
const struct rdma_cause rdma_causes[] = {
	{RDMA_STEP_LIBRARY, ENOENT, "no-library",
	 "libibverbs is not installed", VERBS_LIBRARY,
	 "install libibverbs1 and ibverbs-providers (Debian, Ubuntu), libibverbs (RHEL, SUSE) or rdma-core (Arch)"},
	{RDMA_STEP_LIBRARY, ENOSYS, "old-library",
	 "libibverbs is older than rdma-core 32", VERBS_LIBRARY, "install rdma-core 34 or later"},

	{RDMA_STEP_OPEN, EACCES, "no-rights",
	 "this user may not open the NIC's file in /dev/infiniband", "the permissions of the files in /dev/infiniband",
	 "run as root, or give group rdma access to these files with a udev rule"},
	{RDMA_STEP_OPEN, EPERM, "no-rights-in-container",
	 "the container's device list lacks the NIC's file in /dev/infiniband", "the container's options",
	 "start the container with --device /dev/infiniband"},
	{RDMA_STEP_OPEN, ENOENT, "no-device-file",
	 "the NIC has no file in /dev/infiniband", "ls /dev/infiniband; is ib_uverbs loaded?",
	 "modprobe ib_uverbs; in a container, add --device /dev/infiniband"},

	{RDMA_STEP_OPEN, ENODEV, "no-such-nic",
	 "the NIC is no longer there: its driver was unloaded, or it was renamed or removed", "ibv_devices, the kernel log",
	 "load its driver, and start again"},

	{RDMA_STEP_PORT, VERBS_PORT_DOWN, "port-down",
	 "the port is DOWN", "ip link, the cable, the switch's port", "bring the link up: ip link set DEVICE up"},
	{RDMA_STEP_PORT, VERBS_PORT_INIT, "no-subnet-manager",
	 "the port waits for a subnet manager (INIT)", "sminfo, ibstat", "start opensm on one host, or the switch's own subnet manager"},
	{RDMA_STEP_PORT, VERBS_PORT_DEFER, "port-defer",
	 "the port restores its link (ACTIVE_DEFER)", "ip link, the cable, the switch's port", "wait until the port is ACTIVE, and start again"},
	{RDMA_STEP_PORT, VERBS_PORT_ARMED, "port-armed",
	 "the subnet manager has not activated the port (ARMED)", "the subnet manager's log", "restart the subnet manager"},
	{RDMA_STEP_GID, ENODATA, "no-gid",
	 "the port has no usable address (GID)", "ip address of the port's network device",
	 "give the port's network device an IP address, and bring it up"},

	{RDMA_STEP_GID, ENOTCONN, "no-common-address",
	 "the two ports have no addresses (GIDs) of one type and family, or one is InfiniBand and the other Ethernet",
	 "onehop bench rdma --list on both hosts", "give both ports an address of the same family"},

	{RDMA_STEP_EXPORT, ENOTSUP, "export-unsupported",
	 "NVIDIA's driver cannot export this GPU's memory as a dma-buf: its kernel modules are not the open ones, or CUDA is older than 11.7",
	 "modinfo -F license nvidia: Dual MIT/GPL is open", "install the open kernel modules, or load nvidia-peermem"},
	{RDMA_STEP_EXPORT, EINVAL, "export-refused",
	 "CUDA refuses to export this range as a dma-buf", RDMA_DRIVER_LOG, "load nvidia-peermem instead"},

	{RDMA_STEP_REGISTER_HOST, ENOMEM, "memlock",
	 "the limit on locked memory is too low (root has none with CAP_IPC_LOCK), or no memory is left for it", "ulimit -l; free -h",
	 "set memlock to unlimited in /etc/security/limits.d; for containers: --ulimit memlock=-1"},
	{RDMA_STEP_REGISTER_HOST, EFAULT, "no-pages",
	 "the address has no pages of ordinary memory", RDMA_DRIVER_LOG, "this is a bug in onehop: please report it"},
	{RDMA_STEP_REGISTER_HOST, EINVAL, "bad-arguments",
	 "the NIC's driver refuses the arguments", RDMA_DRIVER_LOG, "this is probably a bug in onehop: please report it"},

	{RDMA_STEP_REGISTER_DMABUF, EPROTONOSUPPORT, "kernel-without-dmabuf",
	 "this kernel cannot register dma-bufs: it is older than 5.12", "uname -r",
	 "use a newer kernel or DOCA-OFED, or load nvidia-peermem"},
	{RDMA_STEP_REGISTER_DMABUF, EOPNOTSUPP, "nic-without-dmabuf",
	 "the NIC's driver or its library cannot register dma-bufs", "the versions of the NIC's kernel driver and of rdma-core",
	 "update the NIC's driver and rdma-core, or load nvidia-peermem"},
	{RDMA_STEP_REGISTER_DMABUF, ENOSYS, "library-without-dmabuf",
	 "libibverbs is older than rdma-core 34 and has no ibv_reg_dmabuf_mr", VERBS_LIBRARY, "install rdma-core 34 or later"},
	{RDMA_STEP_REGISTER_DMABUF, KERNEL_ENOTSUPP, "topology-refused",
	 "NVIDIA's driver refuses this pair of GPU and NIC (its check of the PCI topology, since 580.65.06)",
	 "the kernel log after \"NVRM: dma-buf attach failed:\"",
	 "put both cards below one PCIe switch; NVreg_GrdmaPciTopoCheckOverride=1 disables the check at your own risk"},
	{RDMA_STEP_REGISTER_DMABUF, ENOMEM, "bar1-full",
	 "the GPU could not map the memory for the NIC: its BAR1 is full, or smaller than the memory", "nvidia-smi -q: BAR1 Memory Usage",
	 "stop other programs that use BAR1, or enable Resizable BAR"},
	{RDMA_STEP_REGISTER_DMABUF, EINVAL, "bad-range",
	 "the NIC's driver refuses this range", RDMA_DRIVER_LOG, "this is probably a bug in onehop: please report it"},
	{RDMA_STEP_REGISTER_DMABUF, EFAULT, "attach-failed",
	 "the NIC could not attach to the dma-buf", RDMA_DRIVER_LOG, "load nvidia-peermem instead"},

	{RDMA_STEP_REGISTER_PEER, EFAULT, "no-peer-memory",
	 "no peer memory client offers this GPU's memory: nvidia-peermem is not loaded or not registered, or the card is a GeForce, which it does not support",
	 "lsmod | grep nvidia_peermem, and its lines in the kernel log", "modprobe nvidia-peermem, or use dma-buf"},
	{RDMA_STEP_REGISTER_PEER, ENOMEM, "peer-memory-mapping",
	 "the NIC's driver could not map the GPU's memory", "nvidia-smi -q: BAR1 Memory Usage; ulimit -l",
	 "stop other programs that use BAR1, or enable Resizable BAR"},
	{RDMA_STEP_REGISTER_PEER, EINVAL, "peer-memory-refused",
	 "nvidia-peermem refuses this memory", RDMA_DRIVER_LOG, "use dma-buf"},

	{RDMA_STEP_QUEUE, ENOMEM, "queue-memory",
	 "no memory for queues: limited by memlock or by the NIC", "ulimit -l; rdma resource",
	 "set memlock to unlimited; stop programs that hold queue pairs"},
	{RDMA_STEP_RTR, ETIMEDOUT, "no-neighbour",
	 "the other port's address cannot be resolved: no answer to ARP, or no route", "ip route get ADDRESS; ip neigh",
	 "give both ports addresses of one subnet, or a route between them", true},
	{RDMA_STEP_RTR, EINVAL, "bad-path",
	 "the NIC refuses the path: MTU, or addresses of two families", "show_gids, ip address",
	 "give both ports addresses of the same family"},
	{RDMA_STEP_RTR, ENODATA, "gid-gone",
	 "the chosen address (GID) no longer exists", "ip address of the port's network device", "try again; another index with --gid"},

	{RDMA_STEP_COMPLETION, VERBS_WC_LOC_QP_OP, "local-queue",
	 "the link went down or the address was removed while data moved; on a real NIC also malformed work requests", "ip link, ip address, the kernel log",
	 "bring the link up, and try again"},
	{RDMA_STEP_COMPLETION, VERBS_WC_LOC_PROT, "local-access",
	 "the NIC could not reach memory on its own side: the platform refused its access to the GPU (ACS, IOMMU, root complex)",
	 "onehop check, and AER lines in the kernel log", "onehop check names the port; put both cards below one PCIe switch"},
	{RDMA_STEP_COMPLETION, VERBS_WC_WR_FLUSH, "flushed",
	 "an earlier error ended this queue pair", "the first error", "see the first error"},
	{RDMA_STEP_COMPLETION, VERBS_WC_REM_INV_REQ, "remote-request",
	 "the other end refused the request: the path MTU of the two ends differs", "ip link: mtu of both ends", "set the same MTU on both ends"},
	{RDMA_STEP_COMPLETION, VERBS_WC_REM_ACCESS, "remote-access",
	 "the other end refused access to its memory", RDMA_DRIVER_LOG, "this is probably a bug in onehop: please report it"},
	{RDMA_STEP_COMPLETION, VERBS_WC_REM_OP, "remote-operation",
	 "the other end could not reach its own memory: the platform refused its access to the GPU (ACS, IOMMU, root complex)",
	 "onehop check, and AER lines in the kernel log", "onehop check names the port; put both cards below one PCIe switch"},
	{RDMA_STEP_COMPLETION, VERBS_WC_RETRY_EXC, "no-answer",
	 "the other end did not answer: it is gone, the address (GID) or VLAN is wrong, UDP port 4791 is blocked, or packets of this size are lost",
	 "ping -M do with the MTU's size; the firewall; rdma statistic", "open UDP port 4791, and compare GID and MTU of both ends", true},
	{RDMA_STEP_COMPLETION, VERBS_WC_RNR_RETRY_EXC, "no-receive",
	 "the other end posted no receive request", "the other end's output", "restart the other end"},
	{RDMA_STEP_WAIT, ETIMEDOUT, "silence",
	 "no completion arrived: packets are lost", "the firewall (UDP port 4791); rdma statistic",
	 "open UDP port 4791; check whether the port's counters increase", true},

	{RDMA_STEP_DATA, WRONG_LOST, "completed-but-absent",
	 "the transfer completed, but no data arrived: a translating IOMMU or the platform drops it",
	 "DMAR or AMD-Vi lines in the kernel log; intel_iommu or amd_iommu on the kernel's command line",
	 "use iommu=pt, and compare dma-buf with peer memory"},
	{RDMA_STEP_DATA, WRONG_ZEROS, "zeros",
	 "the transfer completed, but the data is all zeros: the platform does not answer reads", "AER lines in the kernel log", "put both cards below one PCIe switch"},
	{RDMA_STEP_DATA, WRONG_OLD, "stale",
	 "data of an earlier round: a cache on the path was not flushed", RDMA_DRIVER_LOG, "do not use GPUDirect RDMA with this pair: NCCL_NET_GDR_LEVEL=LOC"},
	{RDMA_STEP_DATA, WRONG_SHIFTED, "displaced",
	 "the right data at the wrong place: the mapping of the GPU's memory is wrong", RDMA_DRIVER_LOG,
	 "do not use GPUDirect RDMA with this pair; report it to NVIDIA"},
	{RDMA_STEP_DATA, WRONG_PARTIAL, "torn",
	 "a part never arrived", RDMA_DRIVER_LOG, "do not use GPUDirect RDMA with this pair; try without relaxed ordering"},
	{RDMA_STEP_DATA, WRONG_OUTSIDE, "outside",
	 "memory around the target was overwritten", RDMA_DRIVER_LOG, "do not use GPUDirect RDMA with this pair"},
	{RDMA_STEP_DATA, WRONG_FOREIGN, "foreign",
	 "another pair's data", RDMA_DRIVER_LOG, "do not use GPUDirect RDMA with this pair"},
	{RDMA_STEP_DATA, WRONG_GARBAGE, "garbage",
	 "corrupted words: bits were flipped", "AER and ECC counters (onehop check)", "reseat the cards; check nvidia-smi -q -d ECC"},

	{RDMA_STEP_WORKER, ETIMEDOUT, "hung",
	 "the process hung and was killed", RDMA_DRIVER_LOG, "check that the GPU and the NIC still work: nvidia-smi, ibstat"},
	{RDMA_STEP_WORKER, ESRCH, "died",
	 "the process exited unexpectedly", "coredumpctl, " RDMA_DRIVER_LOG, "this is a bug: please report it"},
};

#define NO_LINK(step, code) \
	{RDMA_ABOUT_LINK, {step, code, "link-down", \
	 "the port lost its link while data moved", "ip link, the cable, the switch's port, the kernel log", "bring the link up, and try again", true}}
#define SELF_LOOK "the kernel log; rdma statistic; ip link of the port's network device"
#define SELF_DO "try another address (--gid INDEX), and measure with another host (onehop bench rdma --listen ADDRESS there)"
#define HOST_DO "use iommu=pt, and another driver or firmware of the NIC; do not use this NIC with this host until its data is right"
#define HOST_DATA(code, word, cause) \
	{RDMA_ABOUT_HOST, {RDMA_STEP_DATA, code, word, cause, \
	 "DMAR, AMD-Vi and AER lines in the kernel log; intel_iommu or amd_iommu on the kernel's command line", HOST_DO}}
#define NO_PAGING(code) \
	{RDMA_ABOUT_ON_DEMAND, {RDMA_STEP_REGISTER_HOST, code, "no-on-demand-paging", \
	 "the NIC or its driver has no on-demand paging (ODP)", "ibv_devinfo -v: odp_caps", "register memory as usual: leave out --memory-by on-demand"}}
const struct rdma_special rdma_specials[] = {
	NO_PAGING(EINVAL),
	NO_PAGING(EOPNOTSUPP),

	NO_LINK(RDMA_STEP_COMPLETION, VERBS_WC_RETRY_EXC),
	NO_LINK(RDMA_STEP_WAIT, ETIMEDOUT),

	{RDMA_ABOUT_REACHED, {RDMA_STEP_COMPLETION, VERBS_WC_RETRY_EXC, "no-answer",
	 "the other end no longer answers, although small messages arrived before: packets of the full MTU are lost, the other end is gone, or a firewall blocks UDP port 4791 by now",
	 "ping -M do with the MTU's size; rdma statistic", "set one MTU on both hosts and on the switches; where it is right, look for what drops packets", true}},
	{RDMA_ABOUT_REACHED, {RDMA_STEP_WAIT, ETIMEDOUT, "silence",
	 "no completion arrived, although small messages did before: packets of the full MTU are lost, or a firewall blocks UDP port 4791 by now",
	 "ping -M do with the MTU's size; rdma statistic", "set one MTU on both hosts and on the switches; where it is right, look for what drops packets", true}},

	{RDMA_ABOUT_SELF, {RDMA_STEP_RTR, ETIMEDOUT, "no-neighbour",
	 "the port's own address cannot be resolved", "ip address and ip link of the port's network device",
	 "bring the port's network device up, or try another address (--gid INDEX)", true}},
	{RDMA_ABOUT_SELF, {RDMA_STEP_COMPLETION, VERBS_WC_RETRY_EXC, "no-answer",
	 "the port does not receive what it sends to itself; no cable, switch or firewall is on that way", SELF_LOOK, SELF_DO, true}},
	{RDMA_ABOUT_SELF, {RDMA_STEP_WAIT, ETIMEDOUT, "silence",
	 "no completion arrived: the port does not receive what it sends to itself, or its driver hangs", SELF_LOOK, SELF_DO, true}},

	{RDMA_ABOUT_HOST, {RDMA_STEP_COMPLETION, VERBS_WC_LOC_PROT, "local-access",
	 "the NIC could not reach memory of its own host: the IOMMU or the root complex refused its access",
	 "AER, DMAR and AMD-Vi lines in the kernel log", HOST_DO}},
	{RDMA_ABOUT_HOST, {RDMA_STEP_COMPLETION, VERBS_WC_REM_OP, "remote-operation",
	 "the NIC at the other end could not reach memory of its own host: the IOMMU or the root complex refused its access",
	 "AER, DMAR and AMD-Vi lines in that host's kernel log", HOST_DO}},

	HOST_DATA(WRONG_LOST, "completed-but-absent",
		  "the transfer completed, but no data arrived: a translating IOMMU or the platform drops it"),
	HOST_DATA(WRONG_ZEROS, "zeros", "the transfer completed, but the data is all zeros: the platform does not answer the NIC's reads"),
	HOST_DATA(WRONG_OLD, "stale", "data of an earlier round: a cache on the path was not flushed"),
	HOST_DATA(WRONG_SHIFTED, "displaced", "the right data at the wrong place: the NIC's mapping of the memory is wrong"),
	HOST_DATA(WRONG_PARTIAL, "torn", "a part never arrived"),
	HOST_DATA(WRONG_OUTSIDE, "outside", "memory around the target was overwritten"),
	HOST_DATA(WRONG_FOREIGN, "foreign", "another pair's data"),
};
/* clang-format on */
const size_t rdma_cause_n = ARRAY_LEN(rdma_causes);
const size_t rdma_special_n = ARRAY_LEN(rdma_specials);

const char *rdma_step_text(enum rdma_step s)
{
	return steps[s].text;
}

static const struct rdma_cause *find(const struct rdma_failure *f)
{
	for (size_t i = 0; i < rdma_special_n; i++) {
		const struct rdma_special *s = &rdma_specials[i];

		if (s->cause.step == f->step && s->cause.code == f->code &&
		    (s->about & f->about) == s->about)
			return &s->cause;
	}
	for (size_t i = 0; i < rdma_cause_n; i++)
		if (rdma_causes[i].step == f->step && rdma_causes[i].code == f->code)
			return &rdma_causes[i];
	return NULL;
}

const struct rdma_cause *rdma_cause_of(const struct rdma_failure *f)
{
	return f->step == RDMA_STEP_NONE ? NULL : find(f);
}

const char *rdma_failure_word(const struct rdma_failure *f)
{
	const struct rdma_cause *c = rdma_cause_of(f);

	return f->step == RDMA_STEP_NONE ? "" : c ? c->word : steps[f->step].word;
}

bool rdma_is_alike(const struct rdma_failure *a, const struct rdma_failure *b)
{
	return a->step == b->step && a->code == b->code && rdma_cause_of(a) == rdma_cause_of(b);
}

bool rdma_cuts(const struct rdma_failure *f)
{
	const struct rdma_cause *c = rdma_cause_of(f);

	return c && c->cuts;
}

int rdma_fail(struct rdma_failure *f, enum rdma_step step, int code, const char *fmt, ...)
{
	va_list ap;

	if (f->step != RDMA_STEP_NONE)
		return -EIO;
	f->step = step;
	f->code = code;
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	return -EIO;
}

void rdma_add_slowest(struct rdma_failure *f, uint64_t bytes, uint64_t limit_us)
{
	size_t used = strlen(f->text);
	double mb_s = (double)bytes / (double)limit_us;

	if (f->step == RDMA_STEP_WAIT && mb_s >= SLOW_MB_S)
		snprintf(f->text + used, sizeof(f->text) - used,
			 "; a link slower than %.1f MB/s takes longer for %llu bytes", mb_s,
			 (unsigned long long)bytes);
}
