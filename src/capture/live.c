/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of virtual files of a live source, and those of the host: kernel log, process,
 * environments, module files.
 */
#include "capture/live.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/state.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "capture/capture_impl.h"
#include "machine/kernel_log.h"
#include "machine/machine.h"
#include "machine/module_file.h"
#include "machine/module_torn.h"
#include "machine/modules.h"
#include "machine/nccl.h"
#include "machine/read.h"
#include "machine/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

/* Hands a buffer's text to the source. */
static int give(struct strbuf *b, char **ret, size_t *ret_size)
{
	*ret_size = b->len;
	*ret = xstrdup(strbuf_str(b));
	return 0;
}

/* The whole of a file of /proc or a module index, NUL-terminated. */
static int slurp_open(int fd, struct strbuf *out)
{
	char buf[65536];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		strbuf_add(out, buf, (size_t)n);
		if (out->len > SOURCE_MAX_FILE)
			return -EFBIG;
	}
	return n < 0 ? -errno : 0;
}

static int slurp(int dir_fd, const char *path, struct strbuf *out)
{
	AUTO_CLOSE int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? -errno : slurp_open(fd, out);
}

/* ---- kernel-log.txt ---- */

enum { LOG_MAX = 4 << 20 };

static void keep_newest(struct strbuf *log)
{
	char *middle;

	if (log->len < LOG_MAX)
		return;
	middle = strchr(log->text + log->len / 2, '\n');
	if (!middle)
		return;
	log->len -= (size_t)(middle + 1 - log->text);
	memmove(log->text, middle + 1, log->len + 1);
}

/* A record "6,1234,567890,-;text\n KEY=VALUE\n" becomes dmesg's "[    0.567890] text". */
static void add_record(struct strbuf *log, const char *record)
{
	const char *text = strchr(record, ';');
	size_t n = strcspn(record, "\n");
	unsigned long long us;

	if (!text || !kernel_log_is_relevant(record, n))
		return;
	if (sscanf(record, "%*u,%*u,%18llu", &us) == 1)
		strbuf_printf(log, "[%5llu.%06llu] ", us / 1000000, us % 1000000);
	strbuf_add(log, text + 1, n - (size_t)(text + 1 - record));
	strbuf_putc(log, '\n');
	keep_newest(log);
}

/* A read gives one record; EPIPE says that the oldest were overwritten meanwhile. */
static int read_kmsg(int fd, struct strbuf *log)
{
	char record[8192 + 1];

	for (;;) {
		ssize_t n = read(fd, record, sizeof(record) - 1);

		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n <= 0)
			return 0;
		record[n] = '\0';
		add_record(log, record);
	}
}

/* The older call, where there is no /dev/kmsg: containers often have none. */
static int read_klog(struct strbuf *log)
{
	enum { SYSLOG_ACTION_READ_ALL = 3, SYSLOG_ACTION_SIZE_BUFFER = 10 };
	int size = klogctl(SYSLOG_ACTION_SIZE_BUFFER, NULL, 0), n;
	AUTO_FREE char *all = NULL;
	const char *line = NULL;
	size_t len;

	if (size <= 0)
		return size < 0 ? -errno : -ENOENT;
	all = xmalloc((size_t)size + 1);
	n = klogctl(SYSLOG_ACTION_READ_ALL, all, size);
	if (n < 0)
		return -errno;
	all[n] = '\0';
	while (text_next_line(&line, &len, all)) {
		if (!kernel_log_is_relevant(line, len))
			continue;
		strbuf_add(log, line, len);
		strbuf_putc(log, '\n');
		keep_newest(log);
	}
	return 0;
}

static int make_kernel_log(void *context, char **ret, size_t *ret_size)
{
	AUTO_CLOSE int fd = open("/dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	AUTO_STRBUF struct strbuf log = {0};
	int r = fd < 0 ? -errno : read_kmsg(fd, &log);

	(void)context;
	if (r < 0) {
		log.len = 0;
		r = read_klog(&log);
	}
	return r < 0 ? r : give(&log, ret, ret_size);
}

/* ---- process.txt ---- */

/* pci_read_config() in the kernel asks for this, in the first user namespace, whose number is
 * fixed. */
static bool may_read_config_space(void)
{
	enum { CAP_SYS_ADMIN_BIT = 21 };
	AUTO_STRBUF struct strbuf status = {0};
	unsigned long long effective;
	const char *value;
	char space[64];
	size_t size;
	ssize_t n = readlink("/proc/self/ns/user", space, sizeof(space) - 1);

	if (n > 0) {
		space[n] = '\0';
		if (strcmp(space, "user:[4026531837]") != 0)
			return false;
	}
	if (slurp(AT_FDCWD, "/proc/self/status", &status) < 0 ||
	    !text_after(strbuf_str(&status), "CapEff:", &value, &size))
		return geteuid() == 0;
	return sscanf(value, "%16llx", &effective) == 1 && effective >> CAP_SYS_ADMIN_BIT & 1;
}

static void add_limit(struct strbuf *out, const char *key, rlim_t limit)
{
	if (limit == RLIM_INFINITY)
		strbuf_printf(out, "%s unlimited\n", key);
	else
		strbuf_printf(out, "%s %llu\n", key, (unsigned long long)limit);
}

static int make_process(void *context, char **ret, size_t *ret_size)
{
	AUTO_STRBUF struct strbuf out = {0};
	struct rlimit memlock;
	struct statvfs shm;

	(void)context;
	strbuf_printf(&out, "uid %u\nconfig_space %d\n", (unsigned)geteuid(),
		      may_read_config_space());
	if (getrlimit(RLIMIT_MEMLOCK, &memlock) == 0) {
		add_limit(&out, "memlock", memlock.rlim_cur);
		add_limit(&out, "memlock_hard", memlock.rlim_max);
	}
	if (statvfs("/dev/shm", &shm) == 0)
		strbuf_printf(&out, "shm_bytes %llu\nshm_free_bytes %llu\nshm_writable %d\n",
			      (unsigned long long)shm.f_blocks * shm.f_frsize,
			      (unsigned long long)shm.f_bavail * shm.f_frsize,
			      access("/dev/shm", W_OK) == 0);
	return give(&out, ret, ret_size);
}

/* ---- environment.txt, process-env.txt ---- */

/* Nothing that could be a secret or tells more of a person than this program needs. */
static bool is_wanted_variable(const char *line)
{
	static const char *const names[] = {
		"CUDA_VISIBLE_DEVICES=",
		"CUDA_DEVICE_ORDER=",
		"CUDA_DEVICE_MAX_CONNECTIONS=",
		"NVIDIA_VISIBLE_DEVICES=",
		"NVIDIA_DRIVER_CAPABILITIES=",
		"HOME=",
		"LD_LIBRARY_PATH=",
		"XDG_STATE_HOME=",
		"container=",
		"KUBERNETES_SERVICE_HOST=",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (text_starts_with(line, names[i]))
			return true;
	return library_of_variable(line) < LIBRARY_N;
}

/* A newline inside a value would start another variable. */
static void add_variable(struct strbuf *out, const char *line)
{
	if (!is_wanted_variable(line))
		return;
	for (; *line; line++)
		strbuf_putc(out, *line == '\n' ? ' ' : *line);
	strbuf_putc(out, '\n');
}

static int make_environment(void *context, char **ret, size_t *ret_size)
{
	AUTO_STRBUF struct strbuf out = {0};

	(void)context;
	for (char **e = environ; e && *e; e++)
		add_variable(&out, *e);
	return give(&out, ret, ret_size);
}

static int make_process_environment(void *context, char **ret, size_t *ret_size)
{
	const struct machine_request *request = context;
	AUTO_STRBUF struct strbuf all = {0}, out = {0};
	char path[64];
	int r;

	if (request->pid <= 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/environ", request->pid);
	r = slurp(AT_FDCWD, path, &all);
	if (r < 0)
		return r;
	for (size_t at = 0; at < all.len; at += strlen(all.text + at) + 1)
		add_variable(&out, all.text + at);
	return give(&out, ret, ret_size);
}

/* ---- nccl-library.txt ---- */

/* The path behind the fifth blank-separated field of a line of /proc/PID/maps. */
static bool library_in_maps(const char *maps, char *path, size_t size)
{
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, maps)) {
		const char *slash = memchr(line, '/', n), *name;

		if (!slash)
			continue;
		text_copy(path, size, slash, n - (size_t)(slash - line));
		name = strrchr(path, '/') + 1;
		if (text_starts_with(name, "libnccl.so") || text_starts_with(name, "libnccl-"))
			return true;
	}
	return false;
}

/* The version behind "NCCL version " in n bytes; false if they hold none. */
static bool version_in_bytes(const char *bytes, size_t n, char *version, size_t size)
{
	static const char mark[] = "NCCL version ";
	const char *end = bytes + n;

	while ((bytes = memmem(bytes, (size_t)(end - bytes), mark, strlen(mark)))) {
		bytes += strlen(mark);
		if ((size_t)(end - bytes) < size)
			break; /* it may be cut; the next piece begins with it */
		text_copy(version, size, bytes, strnlen(bytes, size));
		version[strspn(version, "0123456789.")] = '\0';
		if (nccl_version_of(version) > 0)
			return true;
	}
	*version = '\0';
	return false;
}

/* The text that NCCL prints at start-up stands with its constants, in front of its GPU code. */
static void version_in_file(const char *path, char *version, size_t size)
{
	enum { PIECE = 1 << 20, PIECES = 16, OVERLAP = 64 };
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	AUTO_FREE char *bytes = xmalloc(OVERLAP + PIECE);
	size_t kept = 0, n;

	for (int i = 0; f && i < PIECES && (n = fread(bytes + kept, 1, PIECE, f)) > 0; i++) {
		if (version_in_bytes(bytes, kept + n, version, size))
			return;
		n += kept;
		kept = n < OVERLAP ? n : OVERLAP;
		memmove(bytes, bytes + n - kept, kept);
	}
}

static void library_version(int pid, const char *path, char *version, size_t size)
{
	const char *name = strrchr(path, '/') + 1;
	AUTO_FREE char *in_its_root = xprintf("/proc/%d/root%s", pid, path);

	*version = '\0';
	if (nccl_version_of_file(name) > 0)
		text_copy(version, size, name + strlen("libnccl.so."),
			  strlen(name + strlen("libnccl.so.")));
	else
		version_in_file(in_its_root, version, size);
}

static int make_nccl_library(void *context, char **ret, size_t *ret_size)
{
	const struct machine_request *request = context;
	AUTO_STRBUF struct strbuf maps = {0}, out = {0};
	char path[4096], version[32];
	int r;

	if (request->pid <= 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/maps", request->pid);
	r = slurp(AT_FDCWD, path, &maps);
	if (r < 0)
		return r;
	strbuf_printf(&out, "pid %d\n", request->pid);
	if (library_in_maps(strbuf_str(&maps), path, sizeof(path))) {
		library_version(request->pid, path, version, sizeof(version));
		strbuf_printf(&out, "path %s\n", path);
		if (*version)
			strbuf_printf(&out, "version %s\n", version);
	}
	return give(&out, ret, ret_size);
}

/* ---- module files ---- */

static int read_module(const char *name, module_parser *parser, char **ret, size_t *ret_size)
{
	AUTO_STRBUF struct strbuf index = {0}, out = {0};
	AUTO_FREE char *path = NULL;
	struct utsname host;
	const char *file;
	size_t n;
	int r;

	if (uname(&host) < 0)
		return -errno;
	path = xprintf("/lib/modules/%s/modules.dep", host.release);
	r = slurp(AT_FDCWD, path, &index);
	if (r < 0)
		return r;
	if (!module_find_file(strbuf_str(&index), name, &file, &n))
		return -ENOENT;
	free(path);
	path = *file == '/' ? xstrndup(file, n)
			    : xprintf("/lib/modules/%s/%.*s", host.release, (int)n, file);
	r = module_file_read(AT_FDCWD, path, parser, &out);
	return r < 0 ? r : give(&out, ret, ret_size);
}

static int make_modinfo(const char *name, char **ret, size_t *ret_size)
{
	return read_module(name, module_file_parse, ret, ret_size);
}

static int make_modinfo_nvidia(void *context, char **ret, size_t *ret_size)
{
	(void)context;
	return make_modinfo("nvidia", ret, ret_size);
}

static int make_modinfo_peermem(void *context, char **ret, size_t *ret_size)
{
	(void)context;
	return make_modinfo("nvidia_peermem", ret, ret_size);
}

static int make_modinfo_legacy(void *context, char **ret, size_t *ret_size)
{
	(void)context;
	return make_modinfo("nv_peer_mem", ret, ret_size);
}

static int make_p2p_installed(void *context, char **ret, size_t *ret_size)
{
	(void)context;
	return read_module("nvidia", module_file_parse_p2p, ret, ret_size);
}

static int make_uvm_installed(void *context, char **ret, size_t *ret_size)
{
	(void)context;
	return read_module("nvidia_uvm", module_file_parse_uvm, ret, ret_size);
}

static int make_torn_modules(void *context, char **ret, size_t *ret_size)
{
	AUTO_CLOSE int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_STRBUF struct strbuf out = {0};
	struct utsname host;
	int r;

	(void)context;
	if (root < 0 || uname(&host) < 0)
		return -errno;
	r = module_torn_list(root, host.release, host.machine, &out);
	return r < 0 ? r : give(&out, ret, ret_size);
}

/* ---- p2p-functions-loaded.txt, uvm-functions-loaded.txt ---- */

/* "0000000000000000 t kbusGetBar1P2PDmaInfo_395e98	[nvidia]": the kernel keeps the names of all
 * functions of a module that is loaded, and shows them to everybody. */
static int list_functions(bool (*is_wanted)(const char *name, size_t n), char **ret,
			  size_t *ret_size)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/kallsyms", "re");
	AUTO_STRBUF struct strbuf out = {0};
	char line[512];

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		const char *module = strstr(line, "\t[nvidia"), *name = NULL;

		if (module)
			name = memrchr(line, ' ', (size_t)(module - line));
		if (name && is_wanted(name + 1, (size_t)(module - name - 1)))
			strbuf_printf(&out, "%.*s\n", (int)(module - name - 1), name + 1);
	}
	return give(&out, ret, ret_size);
}

static int make_p2p_loaded(void *context, char **ret, size_t *ret_size)
{
	(void)context;
	return list_functions(p2p_function_is, ret, ret_size);
}

static int make_uvm_loaded(void *context, char **ret, size_t *ret_size)
{
	(void)context;
	return list_functions(uvm_gate_function_is, ret, ret_size);
}

/* ---- peer-memory-symbol.txt ---- */

static int make_peer_memory_symbol(void *context, char **ret, size_t *ret_size)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/kallsyms", "re");
	AUTO_STRBUF struct strbuf out = {0};
	char line[512];

	(void)context;
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		const char *symbol = strchr(line, ' ');

		/* Without the address, which is nobody's business. */
		if (symbol && strstr(symbol, "ib_register_peer_memory_client"))
			strbuf_puts(&out, symbol + 1);
	}
	return give(&out, ret, ret_size);
}

/* ---- results of earlier runs ---- */

static int read_kept(int root_fd, const char *name, char **ret, size_t *ret_size)
{
	AUTO_FREE char *folder = state_folder(), *path = NULL;
	AUTO_STRBUF struct strbuf out = {0};
	AUTO_CLOSE int fd = -1;
	int r;

	(void)root_fd;
	if (!folder)
		return -ENOENT;
	path = xprintf("%s/%s", folder, name);
	fd = state_open(path);
	r = fd < 0 ? fd : slurp_open(fd, &out);
	/*
	 * The home of a service is often /dev/null: no folder is there. Who sets the other means
	 * one.
	 */
	if (r == -ENOTDIR && strcmp(state_variable(), "HOME") == 0)
		return -ENOENT;
	return r < 0 ? r : give(&out, ret, ret_size);
}

/* ---- files of which only a part is wanted ---- */

/* The first CPU's block. The kernel writes the file as it is read, so the others cost nothing. */
static int read_cpuinfo(int root_fd, const char *path, char **ret, size_t *ret_size)
{
	AUTO_CLOSE int fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC);
	char buf[16384], *end;
	size_t size = 0;

	if (fd < 0)
		return -errno;
	do {
		ssize_t n = read(fd, buf + size, sizeof(buf) - 1 - size);

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
		buf[size] = '\0';
	} while (!strstr(buf, "\n\n") && size < sizeof(buf) - 1);
	buf[size] = '\0';
	end = strstr(buf, "\n\n");
	if (end)
		end[1] = '\0';
	*ret = xstrdup(buf);
	*ret_size = strlen(buf);
	return 0;
}

/* The index of thousands of modules, cut to the lines of those that matter. */
static int read_modules_dep(int root_fd, const char *path, char **ret, size_t *ret_size)
{
	AUTO_STRBUF struct strbuf all = {0}, out = {0};
	const char *line = NULL;
	size_t n;
	int r = slurp(root_fd, path, &all);

	if (r < 0)
		return r;
	while (text_next_line(&line, &n, strbuf_str(&all))) {
		const char *colon = memchr(line, ':', n);
		char name[64];

		if (!colon || !module_is_of_interest(module_name_of(line, (size_t)(colon - line),
								    name, sizeof(name))))
			continue;
		strbuf_add(&out, line, n);
		strbuf_putc(&out, '\n');
	}
	return give(&out, ret, ret_size);
}

/* Those with this mark. */
static void keep_lines(const char *text, const char *mark, struct strbuf *out)
{
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, text)) {
		if (!memmem(line, n, mark, strlen(mark)))
			continue;
		strbuf_add(out, line, n);
		strbuf_putc(out, '\n');
	}
}

/* Only what HMM has placed: the rest of a host's memory map does not get into a recording. */
static int read_iomem(int root_fd, const char *path, char **ret, size_t *ret_size)
{
	AUTO_STRBUF struct strbuf all = {0}, out = {0};
	int r = slurp(root_fd, path, &all);

	if (r < 0)
		return r;
	keep_lines(strbuf_str(&all), "nvidia-uvm-hmm", &out);
	return give(&out, ret, ret_size);
}

/*
 * The lines with the fabric manager's version, which it writes at each start, from the newest part
 * of a log that may have grown to a gigabyte since.
 */
static int read_fabric_log(int root_fd, const char *path, char **ret, size_t *ret_size)
{
	enum { NEWEST = 1 << 20 };
	AUTO_CLOSE int fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	AUTO_STRBUF struct strbuf out = {0};
	AUTO_FREE char *text = NULL;
	struct stat st;
	ssize_t size;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	text = xmalloc(NEWEST + 1);
	size = pread(fd, text, NEWEST, st.st_size > NEWEST ? st.st_size - NEWEST : 0);
	if (size < 0)
		return -errno;
	text[size] = '\0';
	keep_lines(text, "Fabric Manager version is", &out);
	return give(&out, ret, ret_size);
}

/* clang-format off */
const struct source_provider live_providers[] = {
	{"kernel-log.txt",             make_kernel_log,          NULL},
	{"process.txt",                make_process,             NULL},
	{"environment.txt",            make_environment,         NULL},
	{"process-env.txt",            make_process_environment, NULL},
	{"nccl-library.txt",           make_nccl_library,        NULL},
	{"modinfo-nvidia.txt",         make_modinfo_nvidia,      NULL},
	{"modinfo-nvidia_peermem.txt", make_modinfo_peermem,     NULL},
	{"modinfo-nv_peer_mem.txt",    make_modinfo_legacy,      NULL},
	{"p2p-functions-file.txt",     make_p2p_installed,       NULL},
	{"p2p-functions-loaded.txt",   make_p2p_loaded,          NULL},
	{"uvm-functions-file.txt",     make_uvm_installed,       NULL},
	{"uvm-functions-loaded.txt",   make_uvm_loaded,          NULL},
	{"torn-modules.txt",           make_torn_modules,        NULL},
	{"peer-memory-symbol.txt",     make_peer_memory_symbol,  NULL},
	{"nvml.json",                  nvml_capture,             NULL},
	{"nvml-p2p.json",              nvml_capture_p2p,         NULL},
	{"rm.json",                    rm_capture,               NULL},
	{"*observed.json",             NULL,                     read_kept},
	{"*observed-p2p.json",         NULL,                     read_kept},
	{"*observed-nccl.json",        NULL,                     read_kept},
	{"*/config",                   NULL,                     live_read_config},
	{"*proc/cpuinfo",              NULL,                     read_cpuinfo},
	{"*proc/iomem",                NULL,                     read_iomem},
	{"*/modules.dep",              NULL,                     read_modules_dep},
	{"*var/log/fabricmanager.log", NULL,                     read_fabric_log},
	{NULL,                         NULL,                     NULL},
};
/* clang-format on */

int machine_open_live(const struct machine_request *request, struct source **ret)
{
	return source_open_root("/", live_providers, (void *)request, ret);
}
