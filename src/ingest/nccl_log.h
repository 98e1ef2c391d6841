/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's debug log (NCCL_DEBUG=INFO), 2.18 to 2.30: how ranks reach each other, and why not by P2P.
 */
#pragma once

#include "result/run_failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct text_line;
struct text_unit;

/* How one GPU sends to another, best first. */
enum nccl_way {
	NCCL_WAY_NONE,     /* no line shows it */
	NCCL_WAY_DIRECT,   /* P2P within one process */
	NCCL_WAY_PEER,     /* P2P between processes: CUMEM, IPC, MNNVL */
	NCCL_WAY_RELAYED,  /* P2P through a third GPU */
	NCCL_WAY_HOST,     /* SHM: through host memory */
	NCCL_WAY_NIC_GDR,  /* NET, the NIC reads and writes the GPU's memory */
	NCCL_WAY_NIC_HOST, /* NET through host memory */
	NCCL_WAY_N,
};

/* Why a pair within one host does not use P2P. */
enum nccl_reason {
	NCCL_REASON_NONE, /* it uses P2P, or spans hosts, or is unknown */
	NCCL_REASON_ENVIRONMENT,
	NCCL_REASON_LEVEL,     /* the driver allows it, NCCL's distance limit does not */
	NCCL_REASON_DRIVER,    /* the driver or NVML refuses */
	NCCL_REASON_CONTAINER, /* not even /dev/shm is shared */
	NCCL_REASON_UNKNOWN,   /* the log does not say */
	NCCL_REASON_N,
};

/* A GPU as the log names it; several ranks of several communicators may use it. */
struct nccl_device {
	const char *host;                  /* "" when no line says */
	int nvml_index, cuda_ordinal, pid; /* -1: unknown */
	const char *pci;                   /* "0000:41:00.0", NULL: unknown */
	int rank;                          /* in the first communicator that it was seen in */
};

/* "Check P2P Type": what NCCL found for all pairs of a communicator. -1: no line says. */
struct nccl_check {
	int direct; /* isAllDirectP2p, intraNodeP2pSupport: every pair uses P2P */
	int cuda;   /* isAllCudaP2p: the driver allows it for every pair */
	unsigned line;
};

struct nccl_pair {
	unsigned connections[NCCL_WAY_N]; /* lines, so channels and connections, of each way */
	/* Which lines of a connection between hosts each end wrote, and where it runs; 0: none. */
	struct nccl_end {
		unsigned gdr, host; /* the NIC gets the GPU's memory, and a copy in host memory */
		const char *name;   /* "node1", "" */
	} sender, receiver;
	const char *transports;  /* what the lines say: "P2P/CUMEM, SHM/direct/direct" */
	unsigned line;           /* the first of them; 0: none */
	struct nccl_check check; /* of the communicator of that line */
	enum nccl_reason reason;
	bool certain;         /* the log proves the reason; else it is likely */
	unsigned evidence[4]; /* lines that the reason rests on; 0: no more */
};

/* "NAME set by environment to VALUE" */
struct nccl_log_setting {
	const char *name, *value;
	unsigned line;
};

/* A line worth showing, once, however often it is in the log. */
struct nccl_log_note {
	const char *text;
	unsigned line, count;
};

struct nccl_log_notes {
	struct nccl_log_note *items;
	size_t n;
};

/* How the run failed, once for each rank that says so. */
struct nccl_log_failure {
	struct run_failure failure;
	int device; /* index in devices, -1: not given */
	unsigned line, count;
};

/*
 * How many calls onehop's NCCL shim took over, and passed on although it takes over others: each
 * rank of a communicator counts its own.
 */
struct nccl_log_shim_calls {
	size_t begun; /* ranks that said that they take over */
	size_t ended; /* ranks that counted */
	int64_t taken, passed;
	int64_t least, most; /* taken by one of them */
	unsigned line;       /* the first that counts */
};

struct nccl_log {
	struct arena *arena; /* owns everything below */
	const char *name;
	const char *version;         /* "2.28.9+cuda13.0", "" when no line says */
	int64_t version_number;      /* 22809; -1: unknown */
	size_t communicators, ranks; /* ranks of the largest */
	struct nccl_device *devices; /* by host, then PCI address or index */
	size_t device_n;
	struct nccl_pair *pairs; /* device_n * device_n: row sends to column */
	struct nccl_check check; /* the worst of all communicators */
	struct nccl_log_setting *settings;
	size_t setting_n;
	struct nccl_log_failure *failures; /* causes before what follows, then by line */
	size_t failure_n;
	/* Warnings that are not failures are in `warnings`. */
	struct nccl_log_notes warnings, refusals, channels, choices, network, gdr, nvls;
	struct nccl_log_notes shim; /* what onehop's NCCL shim says that it does, and why not */
	struct nccl_log_shim_calls shim_calls;
	/* PCIe links whose speed NCCL assumes, and those that it plans with as hardly any. */
	struct nccl_log_notes guessed_links, slow_links;
	/* Why the lines do not show a whole run that ended well; NULL: they do. */
	const char *open_end;
	unsigned cut_at; /* the line behind which the text lacks some; 0: nothing shows that */
	bool reduced;    /* the log is large: not all lines of NCCL without a meaning were kept */
	bool lost;       /* nor all that have one */
	size_t lines;    /* of NCCL, those it could not place among them */
	size_t left_out; /* lines of failures and notes, of which there were too many different ones */
};

bool nccl_log_recognise(const char *text, size_t size);
bool nccl_log_recognise_lines(const struct text_line *lines, size_t n);
/*
 * The text has a NUL after its size bytes. -EINVAL with a sentence if no line is NCCL's or shows
 * how NCCL failed. `name` is for messages. nccl_log_free.
 */
int nccl_log_parse(const char *text, size_t size, const char *name, struct nccl_log **ret);
/* The same of n lines. */
int nccl_log_parse_lines(const struct text_line *lines, size_t n, const char *name,
			 struct nccl_log **ret);
/* Not all lines that matter were kept of the text. */
void nccl_log_mark_lost(struct nccl_log *l);
void nccl_log_mark_cut(struct nccl_log *l, unsigned line);
/* The same of a file, "-" being standard input. */
int nccl_log_open(const char *path, struct nccl_log **ret);
/* The same of one that was read: whether it has such a log, and that log. */
struct log_text;
bool nccl_log_is_in(const struct log_text *t);
int nccl_log_of(const struct log_text *t, const char *name, struct nccl_log **ret);
void nccl_log_free(struct nccl_log *l); /* NULL is fine */

/* More GPUs than this are refused: give the log of fewer hosts. */
#define NCCL_LOG_MAX_DEVICES 512

const struct nccl_pair *nccl_log_pair(const struct nccl_log *l, size_t from, size_t to);
/* The worst path of the pair's connections; NCCL_WAY_NONE if unknown. */
enum nccl_way nccl_pair_way(const struct nccl_pair *p);
bool nccl_way_is_p2p(enum nccl_way way);
/* Whether both are known to be in one host. */
bool nccl_log_same_host(const struct nccl_log *l, size_t from, size_t to);
/* Whether all of its GPUs are in one host, as far as the lines say. */
bool nccl_log_one_host(const struct nccl_log *l);
/* Whether the device is in this host; NULL: in the only one of the log. */
bool nccl_log_is_of(const struct nccl_log *l, size_t device, const char *host);
const char *nccl_way_word(enum nccl_way way);          /* "direct", "nic-gdr", "none" */
const char *nccl_reason_word(enum nccl_reason reason); /* "level" */

/* The number of ordered pairs within hosts in the log, and how many of them use P2P. */
struct nccl_log_counts {
	size_t pairs, p2p;
	size_t across, gdr; /* pairs between hosts, and those with GPUDirect RDMA */
	size_t reasons[NCCL_REASON_N];
};

void nccl_log_count(const struct nccl_log *l, struct nccl_log_counts *ret);

/* A line of NCCL's that nothing is read from. */
bool nccl_log_line_is_unread(const char *line);
/* A line of NCCL's in a large log. */
struct text_unit nccl_log_unit(const struct text_line *l);
/* Equal for lines of a program that say the same of how a run failed. */
uint64_t nccl_failure_hash(const char *line);
/* "Last error:": the line below it is a warning of NCCL's. */
bool nccl_line_announces(const char *line);
/* The same with the warning in one line, and what is in front of it; false: it is another line. */
bool nccl_line_last_error(struct arena *a, const char *line, char **ret_before, char **ret_said);
/*
 * Whether the line is source of a Python program that would raise an error, as tracebacks repeat
 * it.
 */
bool nccl_line_is_source(const char *line);
