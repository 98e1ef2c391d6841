/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a run ended, from one line: NCCL src/include/checks.h, init.cc and debug.cc, 2.18 to 2.30;
 * PyTorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, NCCLUtils.cpp and socket.cpp,
 * torch/cuda, torch/distributed/elastic, 2.1 to 2.9; nccl-tests src/common.h; vLLM
 * csrc/custom_all_reduce.cuh and vllm/v1/executor; SGLang managers/scheduler.py.
 */
#include "ingest/nccl_log_impl.h"

#include "base/alloc.h"
#include "base/network.h"
#include "base/text.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Of a process that a signal killed; -2 and -15 come of stopping the run. */
#define DEEPSPEED_SIGNAL "exits with return code = -"
#define TORCHRUN_SIGNAL  "traceback : Signal "

/* ---- numbers and what they are called ---- */

struct result {
	int code;
	const char *name; /* as errors of PyTorch begin; NULL: none is needed */
	const char *words;
};

/* ncclResult_t, nccl.h; the words are ncclGetErrorString's. */
static const struct result nccl_results[] = {
	{1, "ncclUnhandledCudaError: ", "unhandled cuda error"},
	{2, "ncclSystemError: ", "unhandled system error"},
	{3, "ncclInternalError: ", "internal error"},
	{4, "ncclInvalidArgument: ", "invalid argument"},
	{5, "ncclInvalidUsage: ", "invalid usage"},
	{6, "ncclRemoteError: ", "remote process exited or there was a network error"},
};

/* cudaError_t, driver_types.h; the words are cudaGetErrorString's. NCCL up to 2.18 and PyTorch give no
 * number. */
static const struct result cuda_results[] = {
	{1, NULL, "invalid argument"},
	{2, NULL, "out of memory"},
	{34, NULL, "CUDA driver is a stub library"},
	{35, NULL, "CUDA driver version is insufficient for CUDA runtime version"},
	{46, NULL, "CUDA-capable device(s) is/are busy or unavailable"},
	{100, NULL, "no CUDA-capable device is detected"},
	{101, NULL, "invalid device ordinal"},
	{205, NULL, "mapping of buffer object failed"},
	{214, NULL, "uncorrectable ECC error encountered"},
	{217, NULL, "peer access is not supported between these two devices"},
	{220, NULL, "uncorrectable NVLink error detected during the execution"},
	{304, NULL, "OS call failed or operation not supported on this OS"},
	{400, NULL, "invalid resource handle"},
	{700, NULL, "an illegal memory access was encountered"},
	{702, NULL, "the launch timed out and was terminated"},
	{711, NULL, "peer mapping resources exhausted"},
	{716, NULL, "misaligned address"},
	{717, NULL, "operation not supported on global/shared address space"},
	{719, NULL, "unspecified launch failure"},
	{801, NULL, "operation not supported"},
	{802, NULL, "system not yet initialized"},
	{803, NULL, "system has unsupported display driver / cuda driver combination"},
	{804, NULL, "forward compatibility was attempted on non supported HW"},
	{999, NULL, "unknown error"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The result whose words the text holds; NULL: none. */
static const struct result *result_in(const struct result *table, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(text, table[i].words) || (table[i].name && strstr(text, table[i].name)))
			return &table[i];
	return NULL;
}

/* ---- pieces of a line ---- */

/* The number after a key; -1 if the key is missing or its value is not a number. */
static int64_t number_behind(const char *text, const char *key)
{
	const char *s = strstr(text, key);
	uint64_t v;
	char digits[20];
	size_t n;

	if (!s)
		return -1;
	s += strlen(key);
	n = strspn(s, "0123456789");
	if (!n || n >= sizeof(digits))
		return -1;
	text_copy(digits, sizeof(digits), s, n);
	return text_to_u64(digits, &v) == 0 && v <= INT64_MAX ? (int64_t)v : -1;
}

static int small_behind(const char *text, const char *key)
{
	int64_t v = number_behind(text, key);

	return v <= INT_MAX ? (int)v : -1;
}

/* The text between a key and the first mark that ends it. */
static const char *piece_behind(struct arena *a, const char *text, const char *key,
				const char *ends)
{
	const char *s = strstr(text, key);

	return s ? arena_strndup(a, s + strlen(key), strcspn(s + strlen(key), ends)) : "";
}

/* The address after a key, which other words may follow too; NULL: none does. */
static const char *address_behind(struct arena *a, const char *text, const char *key)
{
	uint8_t raw[NETWORK_ADDRESS];

	for (const char *s = text; (s = strstr(s, key));) {
		size_t n;

		s += strlen(key);
		s += strspn(s, " ");
		n = strspn(s, "0123456789abcdefABCDEF:.");
		if (network_parse(s, n, raw))
			return arena_strndup(a, s, n);
	}
	return NULL;
}

/* "[rank3]:", "[Rank 3]", "comm 0x1 rank 3 nranks 8" */
static int rank_of(const char *text)
{
	static const char *const keys[] = {"[rank", "[Rank ", " rank "};

	for (size_t i = 0; i < COUNT(keys); i++) {
		int rank = small_behind(text, keys[i]);

		if (rank >= 0)
			return rank;
	}
	return -1;
}

/* ---- how a line is read ---- */

/*
 * "[rank13]:[E...] [Rank 1] Watchdog caught ...: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, ...)": the
 * launcher's number of the rank, and the one in its group.
 */
static void read_time_out(struct arena *a, const char *text, struct run_failure *ret)
{
	const int in_group = small_behind(text, "[Rank ");

	ret->of_group = in_group >= 0 && in_group != ret->rank;
	ret->sequence = number_behind(text, "SeqNum=");
	ret->what = piece_behind(a, text, "OpType=", ",)");
}

/*
 * "Cuda failure 700 'an illegal memory access was encountered'", "CUDA error: misaligned address",
 * "code=802(...)" of the CUDA samples, "cuda runtime error (802) : ..." of PyTorch before 1.10.
 */
static void read_cuda(struct arena *a, const char *text, struct run_failure *ret)
{
	static const char *const keys[] = {"failure ", " code=", "cuda runtime error ("};
	const struct result *r = result_in(cuda_results, COUNT(cuda_results), text);

	for (size_t i = 0; i < COUNT(keys) && ret->code < 0; i++)
		ret->code = small_behind(text, keys[i]);
	if (ret->code < 0 && r)
		ret->code = r->code;
	ret->what = r ? r->words : piece_behind(a, text, "'", "'");
}

static void read_nccl(struct arena *a, const char *text, struct run_failure *ret)
{
	const struct result *r = result_in(nccl_results, COUNT(nccl_results), text);

	ret->code = r ? r->code : -1;
	ret->what = r ? r->words : arena_strdup(a, text);
}

/*
 * "..., local GID index 3, local GID ::ffff:10.0.1.5, remote GID ::ffff:10.0.2.6" of ibv_modify_qp
 * (misc/ibvwrap.cc, 2.24); "... localGid fe80::1 remoteGidsfe80::2 hca mlx5_0" of a completion
 * (transport/net_ib.cc, 2.19).
 */
static void read_gids(struct arena *a, const char *text, struct run_failure *ret)
{
	const char *own = address_behind(a, text, "local GID ");
	const char *peer = address_behind(a, text, "remote GID ");

	ret->own_gid = own ? own : address_behind(a, text, "localGid ");
	ret->peer_gid = peer ? peer : address_behind(a, text, "remoteGids");
}

/* NCCL's own sentence says more than its result code. PyTorch may have its rank in front. */
static void read_sentence(struct arena *a, const char *text, struct run_failure *ret)
{
	const char *end = text_starts_with(text, "[rank") ? strstr(text, "]: ") : NULL;

	ret->what = arena_strdup(a, end ? end + strlen("]: ") : text);
	read_gids(a, text, ret);
}

/*
 * Warnings that NCCL prints before it returns ncclInvalidUsage; the first rank in them is the one
 * that prints it.
 */
static void read_usage(struct arena *a, const char *text, struct run_failure *ret)
{
	ret->code = 5;
	read_sentence(a, text, ret);
}

#define DUPLICATE "Duplicate GPU detected"

/* Other programs quote it, and some versions of NCCL return another result with it. */
static void read_duplicate(struct arena *a, const char *text, struct run_failure *ret)
{
	const char *s = strstr(text, DUPLICATE);

	ret->code = 5;
	ret->what = arena_strndup(a, s, strcspn(s, "\\\"'`"));
}

/* "[node:4100] Signal: Segmentation fault (11)" of Open MPI, "Caught signal 11 (...)" of UCX */
static void read_signal(struct arena *a, const char *text, struct run_failure *ret)
{
	const char *s = strstr(text, "ignal");

	while (s > text && s[-1] != ' ' && s[-1] != ']')
		s--;
	ret->what = arena_strdup(a, s);
}

/*
 * "[ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python', ...] exits with return code = -9":
 * of DeepSpeed's launcher, minus the signal.
 */
static void read_return_code(struct arena *a, const char *text, struct run_failure *ret)
{
	static const char *const names[] = {
		[6] = "Aborted", [7] = "Bus error", [9] = "Killed", [11] = "Segmentation fault"};
	const char *last = text, *next;
	int signal;

	while ((next = strstr(last + 1, DEEPSPEED_SIGNAL)))
		last = next;
	signal = small_behind(last, DEEPSPEED_SIGNAL);

	ret->what = signal >= 0 && signal < (int)COUNT(names) && names[signal]
			    ? arena_printf(a, "signal %d (%s)", signal, names[signal])
			    : arena_printf(a, "signal %d", signal);
}

/* What torch.cuda says instead of CUDA, when it counts no GPU. */
static void read_no_gpu(struct arena *a, const char *text, struct run_failure *ret)
{
	(void)a;
	(void)text;
	ret->code = 100;
	ret->what = "no CUDA-capable device is detected";
}

/*
 * Of a watchdog that does not name a collective: what it waited for, without what is in front of
 * it.
 */
static void read_watchdog(struct arena *a, const char *text, struct run_failure *ret)
{
	static const char *const starts[] = {"watchdog got stuck for ", "atchdog timeout (",
					     "RPC call to "};

	for (size_t i = 0; i < COUNT(starts); i++) {
		const char *s = strstr(text, starts[i]);

		if (!s)
			continue;
		while (s > text && s[-1] != ' ')
			s--;
		ret->what = arena_strndup(a, s, strcspn(s, ".,("));
		return;
	}
}

/* The sentence of PyTorch's store about how ranks meet, without the names of its exceptions. */
static void read_store(struct arena *a, const char *text, struct run_failure *ret)
{
	const char *s = strstr(text, "Error: ");

	ret->what = arena_strdup(a, s ? s + strlen("Error: ") : text);
}

static void read_nothing(struct arena *a, const char *text, struct run_failure *ret)
{
	(void)a;
	(void)text;
	(void)ret;
}

/* The first text found in a line decides, so the more specific ones come first. */
static const struct mark {
	const char *text;
	unsigned places; /* of enum nccl_line */
	bool of_nccl;    /* only NCCL, nccl-tests and PyTorch write it: tells a log */
	enum run_failure_kind kind;
	void (*read)(struct arena *a, const char *text, struct run_failure *ret);
} marks[] = {
	{"Watchdog caught collective operation timeout", NCCL_LINE_OTHER, true, RUN_TIMED_OUT,
	 read_time_out},
	{"watchdog got stuck for ", NCCL_LINE_OTHER, true, RUN_TIMED_OUT, read_watchdog},
	{"atchdog timeout (self.watchdog_timeout=", NCCL_LINE_OTHER, true, RUN_TIMED_OUT,
	 read_watchdog},
	{"TimeoutError: RPC call to ", NCCL_LINE_OTHER, true, RUN_TIMED_OUT, read_watchdog},
	{"The client socket has timed out", NCCL_LINE_OTHER, true, RUN_UNREACHED, read_store},
	{"The client socket has failed to connect", NCCL_LINE_OTHER, true, RUN_UNREACHED,
	 read_store},
	{"The server socket has failed to listen", NCCL_LINE_OTHER, true, RUN_UNREACHED,
	 read_store},
	{"via c10d key-value store by key", NCCL_LINE_OTHER, true, RUN_UNREACHED, read_store},
	{"process group in store based barrier", NCCL_LINE_OTHER, true, RUN_UNREACHED, read_store},
	{"Cuda failure ", NCCL_LINE_WARN | NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_cuda},
	{"Test CUDA failure ", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_cuda},
	{"thread terminated with exception: CUDA error: ", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR,
	 read_cuda},
	{"RuntimeError: CUDA error: ", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_cuda},
	{"AcceleratorError: CUDA error: ", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_cuda},
	{"cuda runtime error (", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_cuda},
	{"CUDA runtime error in ", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_cuda},
	{"CUDA error at ", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_cuda},
	{"UCX  ERROR cu", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_cuda},
	{"CUDART error: ", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_cuda},
	{"Failed: Cuda error ", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_cuda},
	{"from cudaGetDeviceCount()", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_cuda},
	{"CUDA unknown error - ", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_cuda},
	{"CUDA out of memory. Tried to allocate", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_cuda},
	{"No CUDA GPUs are available", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR, read_no_gpu},
	{"Found no NVIDIA driver on your system", NCCL_LINE_OTHER, true, RUN_CUDA_ERROR,
	 read_no_gpu},
	{"failed to open CUDA IPC handle", NCCL_LINE_WARN, true, RUN_CUDA_ERROR, read_cuda},
	{"CUDA error: ", NCCL_LINE_OTHER, false, RUN_CUDA_ERROR, read_cuda},
	{"Couldn't allocate MR", NCCL_LINE_OTHER, true, RUN_RDMA_ERROR, read_sentence},
	{"ibv_reg_mr failed", NCCL_LINE_OTHER, true, RUN_RDMA_ERROR, read_sentence},
	{"UCX  ERROR ibv_reg_", NCCL_LINE_OTHER, true, RUN_RDMA_ERROR, read_sentence},
	{DUPLICATE, NCCL_LINE_WARN | NCCL_LINE_OTHER, true, RUN_NCCL_ERROR, read_duplicate},
	{"NCCL error: ", NCCL_LINE_OTHER, true, RUN_NCCL_ERROR, read_nccl},
	{"RuntimeError: NCCL Error ", NCCL_LINE_OTHER, true, RUN_NCCL_ERROR, read_nccl},
	{"NCCL error in: ", NCCL_LINE_OTHER, true, RUN_NCCL_ERROR, read_nccl},
	{"Failed, NCCL error ", NCCL_LINE_OTHER, true, RUN_NCCL_ERROR, read_nccl},
	{"Test NCCL failure ", NCCL_LINE_OTHER, true, RUN_NCCL_ERROR, read_nccl},
	{"ncclUnhandledCudaError: ", NCCL_LINE_OTHER, true, RUN_NCCL_ERROR, read_nccl},
	{"ncclSystemError: ", NCCL_LINE_OTHER, true, RUN_NCCL_ERROR, read_nccl},
	{"ncclInternalError: ", NCCL_LINE_OTHER, true, RUN_NCCL_ERROR, read_nccl},
	{"ncclInvalidUsage: ", NCCL_LINE_OTHER, true, RUN_NCCL_ERROR, read_nccl},
	{"ncclRemoteError: ", NCCL_LINE_OTHER, true, RUN_NCCL_ERROR, read_nccl},
	{"Signal: Segmentation fault", NCCL_LINE_OTHER, false, RUN_CRASHED, read_signal},
	{"Signal: Bus error", NCCL_LINE_OTHER, false, RUN_CRASHED, read_signal},
	{"exited on signal 11 (", NCCL_LINE_OTHER, true, RUN_CRASHED, read_signal},
	{"exited on signal 9 (", NCCL_LINE_OTHER, true, RUN_CRASHED, read_signal},
	{"exited on signal 7 (", NCCL_LINE_OTHER, true, RUN_CRASHED, read_signal},
	{"exited on signal 6 (", NCCL_LINE_OTHER, true, RUN_GAVE_UP, read_signal},
	{"exited on signal ", NCCL_LINE_OTHER, false, RUN_CRASHED, read_signal},
	{"Caught signal 6 ", NCCL_LINE_OTHER, false, RUN_GAVE_UP, read_signal},
	{"Caught signal ", NCCL_LINE_OTHER, false, RUN_CRASHED, read_signal},
	{" is killed by signal: Aborted", NCCL_LINE_OTHER, true, RUN_GAVE_UP, read_signal},
	{" is killed by signal: ", NCCL_LINE_OTHER, true, RUN_CRASHED, read_signal},
	{TORCHRUN_SIGNAL "11 (", NCCL_LINE_OTHER, true, RUN_CRASHED, read_signal},
	{TORCHRUN_SIGNAL "9 (", NCCL_LINE_OTHER, true, RUN_CRASHED, read_signal},
	{TORCHRUN_SIGNAL "7 (", NCCL_LINE_OTHER, true, RUN_CRASHED, read_signal},
	{TORCHRUN_SIGNAL "6 (", NCCL_LINE_OTHER, true, RUN_GAVE_UP, read_signal},
	{DEEPSPEED_SIGNAL "11", NCCL_LINE_OTHER, true, RUN_CRASHED, read_return_code},
	{DEEPSPEED_SIGNAL "9", NCCL_LINE_OTHER, true, RUN_CRASHED, read_return_code},
	{DEEPSPEED_SIGNAL "7", NCCL_LINE_OTHER, true, RUN_CRASHED, read_return_code},
	{DEEPSPEED_SIGNAL "6", NCCL_LINE_OTHER, true, RUN_GAVE_UP, read_return_code},
	{"NCCL communicator was aborted", NCCL_LINE_OTHER, true, RUN_ABORTED, read_nothing},
	{"ncclCommAbort", NCCL_LINE_INFO | NCCL_LINE_WARN | NCCL_LINE_OTHER, true, RUN_ABORTED,
	 read_nothing},
	{" - Abort COMPLETE", NCCL_LINE_INFO, true, RUN_ABORTED, read_nothing},
	{"No transport found", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"P2P is disabled between NVLINK", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"Got completion ", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"rror", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"ailed", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"ailure", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"imed out", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"imeout", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"ismatch", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"Unable to open device", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"Unable to query ", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"Connection closed ", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"exceeded ", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"exceeds device/fn", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"socketPollConnect", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"different link_layer", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"MNNVL is not supported", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"find any local path", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"different NUMA domains", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"Only matched ", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"fused NIC", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{":port pair found", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{">:<port> pair found", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"captured in a graph if", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"nterface found", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"essage truncated", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"ultiple ranks ", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_usage},
	{"ultiple Ranks ", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_usage},
	{"MNNVL (", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"async fatal event", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"oo many connections", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"Driver version found is", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"XML Parse", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"XML Topology has", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"XML Graph has", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"XML Import", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"Could not open XML", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"Detected mixed local", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"verify NCCL_OOB_NET_IFNAME", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"has already checked in", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"has no transport for", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"incompatible devices", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
	{"incompatible with the local", NCCL_LINE_WARN, true, RUN_NCCL_ERROR, read_sentence},
};

/*
 * NCCL warns that it copies a buffer that it could not register, or uses another NIC, or that a NIC
 * reported an event ("Got async event : port error"), and returns no error.
 */
static bool goes_on(const char *text, enum nccl_line line)
{
	return line == NCCL_LINE_WARN &&
	       (strstr(text, "register userbuff") || strstr(text, "marked as failed") ||
		strstr(text, "Got async event"));
}

/*
 * `raise RuntimeError(f"NCCL error: {error_str}")`: a traceback repeats the program's source above
 * the error, which it does not say yet.
 */
bool nccl_line_is_source(const char *text)
{
	static const char raise[] = "raise ";

	for (const char *s = text; (s = strstr(s, raise));) {
		const char *name = s + strlen(raise);
		size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.");

		if ((s == text || s[-1] == ' ') && n && name[n] == '(')
			return !strstr(name, "\\n"); /* a whole traceback in one line */
		s = name;
	}
	return false;
}

bool nccl_failure_read(struct arena *a, const char *text, enum nccl_line line,
		       struct run_failure *ret)
{
	if (goes_on(text, line) || (line == NCCL_LINE_OTHER && nccl_line_is_source(text)))
		return false;
	for (size_t i = 0; i < COUNT(marks); i++) {
		if (!(marks[i].places & line) || !strstr(text, marks[i].text))
			continue;
		*ret = (struct run_failure){.kind = marks[i].kind,
					    .rank = rank_of(text),
					    .code = -1,
					    .sequence = -1,
					    .what = ""};
		marks[i].read(a, text, ret);
		return true;
	}
	return false;
}

bool nccl_line_is_reason(const char *text)
{
	/* What PyTorch and Python print where NCCL gave no sentence. */
	static const char *const others[] = {"Unknown NCCL Error",
					     "Exception raised from",
					     "Traceback (",
					     "File \"",
					     "frame #",
					     "ERROR"};

	for (size_t i = 0; i < COUNT(others); i++)
		if (strstr(text, others[i]))
			return false;
	for (size_t i = 0; i < COUNT(nccl_results); i++)
		if (nccl_results[i].name && strstr(text, nccl_results[i].name))
			return false;
	return strchr(text, ' ');
}

void nccl_failure_say(struct arena *a, const char *text, struct run_failure *ret)
{
	*ret = (struct run_failure){.kind = RUN_NCCL_ERROR,
				    .rank = small_behind(text, "[rank"),
				    .code = -1,
				    .sequence = -1,
				    .what = ""};
	read_sentence(a, text, ret);
}

/* What same_failure of nccl_log_read.c compares, and what else is shown. */
static uint64_t failure_hash(const struct run_failure *f)
{
	const int64_t numbers[] = {f->kind, f->rank, f->code, f->sequence, f->of_group};
	const char *const texts[] = {f->what, f->own_gid ? f->own_gid : "",
				     f->peer_gid ? f->peer_gid : ""};
	uint64_t h = text_hash(TEXT_HASH_START, numbers, sizeof(numbers));

	for (size_t i = 0; i < COUNT(texts); i++)
		h = text_hash(h, texts[i], strlen(texts[i]) + 1);
	return h;
}

uint64_t nccl_failure_hash(const char *line)
{
	struct arena *a = arena_new();
	struct run_failure f;
	const uint64_t h = nccl_failure_read(a, line, NCCL_LINE_OTHER, &f)
				   ? failure_hash(&f)
				   : text_hash(TEXT_HASH_START, line, strlen(line));

	arena_free(a);
	return h;
}

#define LAST_ERROR "Last error:"

bool nccl_line_announces(const char *line)
{
	const char *s = strstr(line, LAST_ERROR);

	return s && !s[strlen(LAST_ERROR) + strspn(s + strlen(LAST_ERROR), " ")];
}

/* A program that prints the text of the error as a literal has "\n" for its line breaks. */
bool nccl_line_last_error(struct arena *a, const char *line, char **ret_before, char **ret_said)
{
	const char *mark = strstr(line, LAST_ERROR), *s = mark ? mark + strlen(LAST_ERROR) : "",
		   *end;

	s += strspn(s, " ");
	if (text_starts_with(s, "\\n"))
		s += strlen("\\n");
	if (!*s)
		return false;
	end = strstr(s, "\\n");
	*ret_before = arena_strndup(a, line, (size_t)(mark - line));
	*ret_said = arena_strndup(a, s, end ? (size_t)(end - s) : strlen(s));
	return true;
}

bool nccl_failure_is_in(const char *text, enum nccl_line line)
{
	for (size_t i = 0; i < COUNT(marks); i++)
		if (marks[i].places & line && strstr(text, marks[i].text))
			return true;
	return false;
}

/* Each text of the marks that count here has one of these. */
static bool names_library(const char *text, size_t size)
{
	static const char *const names[] = {
		"NCCL",           "nccl",          "CUDA",          "Cuda",
		"Watchdog",       "watchdog_time", "RPC call to",   "cuda runtime error (",
		"UCX  ERROR",     "allocate MR",   "ibv_reg_mr",    "sigkill_handler",
		" socket has ",   "based barrier", "NVIDIA driver", " by signal: ",
		"mpirun noticed", TORCHRUN_SIGNAL};

	for (size_t i = 0; i < COUNT(names); i++)
		if (memmem(text, size, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Any program may print an error of CUDA's in its own words, but then CUDA's are in it too. */
static bool says_cuda_words(const char *text, size_t size)
{
	for (size_t i = 0; i < COUNT(cuda_results); i++)
		if (memmem(text, size, cuda_results[i].words, strlen(cuda_results[i].words)))
			return true;
	return false;
}

bool nccl_failure_recognise(const char *text, size_t size)
{
	if (!names_library(text, size))
		return false;
	for (size_t i = 0; i < COUNT(marks); i++)
		if ((marks[i].of_nccl ||
		     (marks[i].read == read_cuda && says_cuda_words(text, size))) &&
		    marks[i].places & NCCL_LINE_OTHER &&
		    memmem(text, size, marks[i].text, strlen(marks[i].text)))
			return true;
	return false;
}
