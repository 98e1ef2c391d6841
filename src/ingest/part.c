/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/part.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/text.h"
#include "ingest/part_kinds.h"

#include <stdio.h>
#include <string.h>

/*
 * Ends with a NULL name. The first that matches reads the lines. A kind comes before others that
 * could match its first line too: dmesg lines can contain anything, and a debug log of NCCL may
 * contain the table of its run.
 */
static const struct part_kind part_kinds[] = {
	{"lspci", lspci_match, lspci_decode, PART_STATES, .first = "0123456789abcdefABCDEF",
	 .unit = lspci_unit, .missing = {"sys/bus/pci/devices"},
	 .gives =
		 "PCI functions with ids, BARs, bridge windows, links, ACS, Resizable BAR, NUMA node, IOMMU group, driver; -v, -vv, -vvv, -n, -nn, -D and -x to -xxxx in any combination"},
	{"lspci -t", lspci_tree_match, lspci_tree_decode, PART_STATES, .first = "-",
	 .missing = {"stated/pci-tree"},
	 .gives =
		 "the bridges above each function; with -v also the GPUs and their models; -tn too"},
	{"nvidia-smi", smi_table_match, smi_table_decode, PART_STATES, .first = "|+\xe2",
	 .missing = {"gpu", "stated/all-gpus"},
	 .gives = "GPUs with number, address, model and memory; versions of driver and CUDA"},
	{"nvidia-smi -q", smi_query_match, smi_query_decode, PART_STATES,
	 .missing = {"gpu", "stated/all-gpus"},
	 .gives =
		 "the same, BAR1, PCIe link, MIG, compute mode, display, fabric; whole, or sections of memory"},
	{"nvidia-smi -q -x", smi_xml_match, smi_query_decode, PART_STATES, .first = "<",
	 .missing = {"gpu", "stated/all-gpus"}, .keep = smi_xml_keep, .gives = "the same, as XML"},
	{"nvidia-smi topo -m", smi_topo_match, smi_topo_decode, PART_STATES, .first = "GN",
	 .gives =
		 "distance and NVLinks of each pair of GPUs, NUMA nodes; NICs by the names of its legend, and their distance to each GPU"},
	{"nvidia-smi topo -p2p", smi_p2p_match, smi_p2p_decode, PART_STATES, .first = "GN",
	 .gives =
		 "the driver's answer for each pair of GPUs; the output does not name the capability (r, w, n, a, p), so keep the command above it"},
	{"nvidia-smi nvlink -e or -c", smi_counters_match, smi_counters_decode, PART_STATES,
	 .observe = smi_counters_observe, .first = "GL", .missing = {"gpu"},
	 .gives = "errors that NVLinks counted, and links without P2P"},
	{"nvidia-smi -L or nvlink", smi_list_match, smi_list_decode, PART_STATES, .first = "G",
	 .missing = {"gpu"}, .gives = "models; which NVLinks are up (nvlink -s)"},
	{"kernel log", kernel_lines_match, kernel_lines_decode, PART_STATES,
	 .observe = kernel_lines_observe, .host = kernel_lines_host, .keep = kernel_lines_keep,
	 .unit = kernel_lines_unit, .keeps_some = true, .missing = {"stated/whole-kernel-log"},
	 .gives =
		 "Xid, AER, IOMMU faults, BARs; kernel release and command line from the first lines of its last boot; whether the board is that of a virtual machine; what differs between its last two boots; dmesg, journalctl -k, syslog or /dev/kmsg in any of their forms, also JSON (dmesg -J, journalctl -o json) and fields (journalctl -o verbose, -o export)"},
	{"/proc/cmdline", cmdline_match, cmdline_decode, PART_STATES, .missing = {"proc/cmdline"},
	 .gives = "kernel parameters"},
	{"/proc/driver/nvidia/version", driver_version_match, driver_version_decode, PART_STATES,
	 .first = "N", .gives = "the driver's version, and whether its modules are the open ones"},
	{"/proc/driver/nvidia/params", driver_params_match, driver_params_decode, PART_STATES,
	 .first = "RE", .missing = {"proc/driver/nvidia/params"}, .gives = "the driver's options"},
	{"/proc/driver/nvidia/gpus/*/information", gpu_information_match, gpu_information_decode,
	 PART_STATES, .first = "M", .gives = "GPUs with address and model"},
	{"lsmod", lsmod_match, lsmod_decode, PART_STATES, .missing = {"proc/modules"},
	 .gives = "loaded modules"},
	{"lsmod, empty", lsmod_none_match, NULL, PART_STATES, .observe = lsmod_none_observe,
	 .prompt_below = true, .gives = "that a command searched for a module and found none"},
	{"modinfo", modinfo_match, modinfo_decode, PART_STATES, .first = "f",
	 .missing = {"stated/modinfo"}, .gives = "modules on disk"},
	{"uname -a", uname_match, uname_decode, PART_STATES, .host = uname_host, .first = "L",
	 .gives = "the kernel; also /proc/version"},
	{"lscpu", lscpu_match, lscpu_decode, PART_STATES, .first = "ACOVBMTSFHLN",
	 .missing = {"proc/cpuinfo", "sys/hypervisor/type"},
	 .gives = "model of the CPU, sockets, hypervisor; in English"},
	{"collect_env", collect_env_match, collect_env_decode, PART_STATES,
	 .observe = collect_env_observe, .first = "NCPG[", .missing = {"gpu/driver"},
	 .gives =
		 "versions of the driver, the kernel and NCCL, and the GPUs; of PyTorch, vLLM, and SGLang's check_env"},
	{"environment variables", environment_match, environment_decode, PART_STATES,
	 .first = "NCUVTeds-",
	 .gives = "variables of NCCL, CUDA and other libraries, NAME=VALUE, also after export"},
	{"launcher of DeepSpeed", deepspeed_match, deepspeed_decode, PART_STATES, .first = "[",
	 .gives = "the variables of NCCL that it prints"},
	{"command with variables", launch_match, launch_decode, PART_STATES,
	 .observe = launch_observe, .keep = launch_keep,
	 .gives =
		 "variables that docker run -e, podman, apptainer --env, kubectl, mpirun -x and srun --export set; nothing else of these lines is kept"},
	{"variables of a container", manifest_match, manifest_decode, PART_STATES,
	 .first = "NCUOGT-", .gives = "NAME: VALUE of compose, kubectl describe and env: of a pod"},
	{"labels of a node", node_labels_match, node_labels_decode, PART_STATES,
	 .keep = node_labels_keep,
	 .gives = "of kubectl describe node, or get node -o yaml: GPUs with model, and the driver"},
	{"kernel of a node", node_kernel_match, node_kernel_decode, PART_STATES, .first = "Kk",
	 .gives = "of kubectl describe node, or docker info"},
	{"topology of NCCL", nccl_topology_match, nccl_topology_decode, PART_STATES, .first = "<",
	 .keep = nccl_topology_keep,
	 .gives =
		 "of a dump of NCCL_TOPO_DUMP_FILE: GPUs and NICs with their ids, and the links that NCCL plans with; of the file of NCCL_TOPO_FILE: what it says, compared with the machine"},
	{"ibstat", ibstat_match, ibstat_decode, PART_STATES, .first = "C", .keep = ibstat_keep,
	 .missing = {"sys/class/infiniband", "stated/all-nics"},
	 .gives = "NICs, and state, rate and link layer of their ports"},
	{"ibstatus", ibstatus_match, ibstatus_decode, PART_STATES, .first = "I",
	 .keep = ibstat_keep, .missing = {"sys/class/infiniband", "stated/all-nics"},
	 .gives = "the same"},
	{"ibv_devinfo", ibv_devinfo_match, ibv_devinfo_decode, PART_STATES, .first = "h",
	 .keep = ibv_devinfo_keep, .missing = {"sys/class/infiniband", "stated/all-nics"},
	 .gives = "the same, and with -v the GIDs"},
	{"rdma link", rdma_link_match, rdma_link_decode, PART_STATES, .first = "l0123456789",
	 .missing = {"sys/class/infiniband", "stated/all-nics"}, .gives = "the state of ports"},
	{"ibdev2netdev", ibdev2netdev_match, ibdev2netdev_decode, PART_STATES,
	 .missing = {"sys/class/infiniband", "stated/all-nics"},
	 .gives = "NICs; with -v their addresses"},
	{"show_gids", show_gids_match, show_gids_decode, PART_STATES, .first = "D",
	 .missing = {"sys/class/infiniband", "stated/all-nics"}, .gives = "the GIDs of RoCE ports"},
	{"ofed_info", ofed_info_match, ofed_info_decode, PART_STATES, .first = "MO",
	 .gives = "the OFED or DOCA that is installed"},
	{"perftest", perftest_match, perftest_decode, PART_STATES, .observe = perftest_observe,
	 .first = "RSAiLCP[",
	 .gives =
		 "the NIC of ib_write_bw and the like, the GPU whose memory it used, and the rate; the time of a message of ib_write_lat and the like"},
	{"df of /dev/shm", df_match, df_decode, PART_STATES, .first = "Fstn",
	 .gives =
		 "the size of the shared memory and what is free, of the container in which it ran"},
	{"limit of locked memory", memlock_match, memlock_decode, PART_STATES, .first = "mM",
	 .gives = "of ulimit -a or /proc/PID/limits, for the process that they are about"},
	{"rmmod or modprobe", kmod_match, NULL, PART_STATES, .observe = kmod_observe,
	 .first = "rmi",
	 .gives = "modules that are in use, not signed, or built for another kernel"},
	{"nvidia-smi, failed", smi_failed_match, NULL, PART_STATES, .observe = smi_failed_observe,
	 .first = "FNU",
	 .gives =
		 "that it does not reach the driver, has another version, finds no GPU, or cannot open one"},
	{"dcgmi", dcgm_match, NULL, PART_STATES, .observe = dcgm_observe, .first = "|+",
	 .gives =
		 "tests of dcgmi diag that failed, on which GPUs and why; NVLinks that dcgmi health reports as down"},
	{"dcgmi nvlink", dcgm_links_match, dcgm_links_decode, PART_STATES, .first = "g",
	 .gives = "which NVLinks are up (dcgmi nvlink --link-status)"},
	{"vLLM or SGLang", engine_match, NULL, PART_STATES, .observe = engine_observe,
	 .gives = "why the engine does not use its own all-reduce"},
	{"simpleP2P", simple_p2p_match, NULL, PART_STATES, .observe = simple_p2p_observe,
	 .first = "[E", .gives = "copies that returned wrong data; peer access of each pair"},
	{"p2pBandwidthLatencyTest", p2p_test_match, NULL, PART_FIGURES,
	 .gives =
		 "peer access, bandwidth and latency of each pair, as with --observed; also pairs to which TensorRT-LLM found no access"},
	{"nvbandwidth", nvbandwidth_match, NULL, PART_FIGURES, .first = "nR",
	 .gives = "bandwidth of each pair and of the links to the host, as with --observed"},
	{"nvbandwidth -j", nvbandwidth_json_match, NULL, PART_FIGURES, .first = "{",
	 .gives = "the same"},
	{"P2P cache of vLLM", vllm_cache_match, NULL, PART_FIGURES, .first = "\"{",
	 .gives =
		 "whether vLLM's own test saw bytes arrive, of each ordered pair, as with --observed"},
	{"nccl-tests", nccl_tests_match, NULL, PART_FIGURES, .first = "#",
	 .gives = "bandwidth of each size, wrong results, as with --observed"},
	{"debug log of NCCL", nccl_lines_match, NULL, PART_LOG, .unit = nccl_lines_unit,
	 .missing = {"stated/whole-nccl-log"},
	 .gives =
		 "how NCCL connected the GPUs, and why; its settings and warnings, as with --observed"},
	{"fabric manager", fabric_match, NULL, PART_STATES, .observe = fabric_observe,
	 .gives =
		 "that it did not start, found no NVSwitch, or saw one fail; from its log, the journal or systemctl status"},
	{"error of a run", run_error_match, NULL, PART_LOG, .unit = run_error_unit,
	 .gives =
		 "errors of PyTorch, NCCL, CUDA, MPI, vLLM, SGLang, TensorRT-LLM and the launchers of PyTorch and DeepSpeed that ended a run"},
	{0},
};

/* ---- for the kinds ---- */

size_t line_indent(const struct text_line *l)
{
	return strspn(l->text, " ");
}

bool line_is_blank(const struct text_line *l)
{
	return !l->text[line_indent(l)];
}

const char *line_text(const struct text_line *l)
{
	return l->text + line_indent(l);
}

bool line_is_skipped(const struct text_line *l)
{
	const char *s = line_text(l);

	return text_starts_with(s, "```") || text_starts_with(s, "~~~") || *s == '<';
}

#define MARKS "[](){}<>-#*/. "

/* "[... 120 lines cut ...]": behind the dots is nothing, or what they stand for. */
static bool is_dots(const char *s)
{
	static const char *const words[] = {"truncat", "omit", "snip", "more",
					    "skip",    "line", "cut"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasestr(s, words[i]))
			return true;
	return !s[strspn(s, MARKS)];
}

/* "<snip>", "[output truncated]", "--More--" */
static bool is_word(const char *s)
{
	static const char *const words[] = {
		"truncated", "omitted", "output truncated", "snip", "output omitted", "snipped",
		"cut",       "more"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const size_t n = strlen(words[i]);

		if (strncasecmp(s, words[i], n) == 0 && !s[n + strspn(s + n, MARKS)])
			return true;
	}
	return false;
}

bool line_is_omission(const struct text_line *l)
{
	static const char ellipsis[] = "\xe2\x80\xa6";
	enum { LONGEST = 60 };
	const char *start = line_text(l), *s = start + strspn(start, "[](){}<>-#*/ ");

	if (s == start && *s != '.' && !text_starts_with(s, ellipsis))
		return false;
	if (strlen(s) > LONGEST)
		return false;
	if (text_starts_with(s, "...") || text_starts_with(s, ellipsis))
		return is_dots(s + 3);
	return s > start && is_word(s);
}

unsigned part_cut_in(const struct part *p, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (line_is_omission(&p->lines[i]))
			return p->lines[i].number;
	return to == p->n ? p->cut_at : 0;
}

struct text_time line_date(const struct text_line *l)
{
	static const char listed[] = "*** ls: ";
	const char *s = line_text(l), *rest;
	struct text_time t;

	if (text_starts_with(s, listed)) /* "*** ls: -r--r--r-- 1 root root 0 2026-11-22 ..." */
		for (s += strlen(listed); *s && !text_time_at(s, NULL).s; s += strspn(s, " "))
			s += strcspn(s, " ");
	t = text_time_at(s, &rest);
	return s != line_text(l) || !rest[strspn(rest, " ")] ? t : (struct text_time){0};
}

bool line_is_date(const struct text_line *l)
{
	return line_date(l).s != 0;
}

size_t line_words(struct arena *a, const struct text_line *l, const char **words, size_t max)
{
	char *rest = arena_strdup(a, line_text(l)), *word;
	size_t n = 0;

	while (n < max && (word = strsep(&rest, " ")))
		if (*word)
			words[n++] = word;
	return n;
}

const char *line_value(const struct text_line *l, const char *key)
{
	const char *s = line_text(l);
	size_t n = strlen(key);

	if (strncmp(s, key, n) != 0)
		return NULL;
	s += n;
	s += strspn(s, " ");
	return *s == ':' ? s + 1 + strspn(s + 1, " ") : NULL;
}

bool part_kind_at(size_t i, const char **ret_name, const char **ret_gives)
{
	if (i >= ARRAY_LEN(part_kinds) - 1)
		return false;
	*ret_name = part_kinds[i].name;
	*ret_gives = part_kinds[i].gives;
	return true;
}

/* ---- units ---- */

uint64_t lines_hash(uint64_t before, const struct text_line *lines, size_t n)
{
	/* The NUL too: the end of a line counts. */
	for (size_t i = 0; i < n; i++)
		if (!line_is_blank(&lines[i]))
			before = text_hash(before, lines[i].text, strlen(lines[i].text) + 1);
	return before;
}

struct text_unit part_unit(const struct part *p, size_t at)
{
	const size_t n = p->n - at;

	if (p->kind->unit)
		return p->kind->unit(p->lines + at, n);
	return (struct text_unit){.n = n,
				  .subject = text_hash(TEXT_HASH_START, p->kind->name,
						       strlen(p->kind->name)),
				  .says = lines_hash(TEXT_HASH_START, p->lines + at, n)};
}

/* ---- finding them ---- */

/* "> > text" of a mail or a comment: marks that tools never print at the start of a line. */
static void peel_quote(struct text_line *l)
{
	char *s = l->text;

	for (;;) {
		char *mark = s + strspn(s, " ");

		if (*mark != '>')
			break;
		s = mark + 1;
	}
	if (s != l->text && *s == ' ')
		s++;
	l->text = s;
}

/*
 * The line above a part, apart from fences, empty lines and a date, shows its origin: a command or
 * a heading.
 */
static const struct text_line *command_above(const struct text_line *lines, size_t i, size_t used)
{
	enum { NEAR = 4 };

	for (size_t k = 0; k < NEAR && i > used; k++) {
		const struct text_line *l = &lines[--i];

		if (!line_is_blank(l) && !line_is_skipped(l) && !line_is_date(l))
			return l;
	}
	return NULL;
}

/*
 * What the lines within the part and the one below it show: each kind knows by itself which end its
 * output has.
 */
static void find_cut(struct part *p, const struct text_line *lines, size_t n)
{
	const struct text_line *last = &lines[p->n - 1];
	size_t below = p->n;

	while (below < n && (line_is_blank(&lines[below]) || line_is_skipped(&lines[below])) &&
	       !line_is_omission(&lines[below]))
		below++;
	if (!p->cut_at && !p->ended && p->kind->missing[0] &&
	    ((last->open && !p->torn) || (below < n && line_is_omission(&lines[below]))))
		p->cut_at = last->number;
	p->cut |= p->cut_at || part_cut_in(p, 0, p->n);
}

/*
 * "Timestamp : Sun Nov 22 09:40:35 2026" of nvidia-smi -q, the same of -x, or a log's first line.
 */
static struct text_time own_time(const struct part *p)
{
	enum { FIRST_LINES = 4 };

	for (size_t i = 0; i < p->n && i < FIRST_LINES; i++) {
		static const char element[] = "<timestamp>";
		const char *s = line_text(&p->lines[i]);
		const char *stamp = text_starts_with(s, element)
					    ? s + strlen(element)
					    : line_value(&p->lines[i], "Timestamp");

		if (stamp)
			return text_time_at(stamp, NULL);
	}
	return text_time_at(line_text(&p->lines[0]), NULL);
}

/* The output says it, or the lines between the part above and this one. */
static struct text_time find_time(const struct part *p, const struct text_line *lines, size_t i,
				  size_t used)
{
	enum { NEAR = 4 };
	struct text_time t = own_time(p);

	for (size_t k = 0; k < NEAR && i > used && !t.s; k++)
		t = line_date(&lines[--i]);
	return t;
}

/* Rows of the table, one after the other. */
struct rows {
	const struct part_kind *first, *end;
};

static bool match(struct part *p, const struct rows *rows, const struct text_line *lines, size_t n)
{
	const char first = *line_text(lines);

	for (const struct part_kind *k = rows->first; k < rows->end; k++) {
		if (k->first && !strchr(k->first, first))
			continue;
		p->kind = k;
		p->n = k->match(p, lines, n);
		p->lines = lines;
		if (p->n) {
			find_cut(p, lines, n);
			return true;
		}
		p->cut = p->ended = p->torn = false;
		p->cut_at = 0;
		p->about[0] = '\0';
	}
	return false;
}

bool line_is_short(const struct text_line *l)
{
	const char *s = line_text(l);

	return *s != '{' && (!s[0] || !s[1] || !s[2]);
}

void parts_peel(struct text_line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		peel_quote(&lines[i]);
}

static struct part *find(struct arena *a, const struct rows *rows, const char *file,
			 struct text_line *lines, size_t n, size_t *ret_n)
{
	struct part *parts = NULL;
	size_t used = 0;

	*ret_n = 0;
	parts_peel(lines, n);
	for (size_t i = 0; i < n;) {
		const struct text_line *above;
		struct part p;

		if (line_is_short(&lines[i])) {
			i++;
			continue;
		}
		above = command_above(lines, i, used);
		p = (struct part){
			.file = file,
			.command = above ? line_text(above) : "",
			.command_line = above,
		};
		if (!match(&p, rows, lines + i, n - i)) {
			i++;
			continue;
		}
		p.time = find_time(&p, lines, i, used);
		*ARENA_PUSH(a, parts, *ret_n) = p;
		i += p.n;
		used = i;
	}
	return parts;
}

struct part *parts_find(struct arena *a, const char *file, struct text_line *lines, size_t n,
			size_t *ret_n)
{
	static const struct rows all = {part_kinds, part_kinds + ARRAY_LEN(part_kinds) - 1};

	return find(a, &all, file, lines, n, ret_n);
}

struct part *parts_of_kind(struct arena *a, size_t kind, const char *file, struct text_line *lines,
			   size_t n, size_t *ret_n)
{
	const struct rows one = {part_kinds + kind, part_kinds + kind + 1};

	return find(a, &one, file, lines, n, ret_n);
}
