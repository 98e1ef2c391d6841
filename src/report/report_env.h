/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `onehop env`: what to set for communication libraries, as a document, as JSON and in the forms
 * that programs read.
 */
#pragma once

#include "report/report.h"

struct advice;
struct script_setting;
struct tune_use;
struct variable;

/* What a script sets to something that only shows when it runs. */
struct env_unread {
	const char *file; /* NULL: no script */
	const struct script_setting *settings;
	size_t n; /* of which only those without a value count */
};

void report_env(struct document *out, const struct diagnosis *d, const struct advice *a,
		const struct env_unread *unread, bool verbose);
json_t *report_env_json(const struct diagnosis *d, const struct advice *a,
			const struct env_unread *unread);

/* `env --explain NAME`. */
void report_variable(struct document *out, const struct variable *v);

/*
 * `env --shim`: the NCCL shim on a machine with two GPUs or more. `tuned`: times of its GPUs, or
 * why there are none.
 */
void report_env_shim(struct document *out, const struct topology *t, const struct tune_use *tuned);

/* Only what is needed for sure is in these, and nothing else. */
void format_env_shell(const struct advice *a, struct strbuf *out); /* export NAME=VALUE */
void format_env_conf(const struct advice *a,
		     struct strbuf *out); /* lines of nccl.conf: NCCL's alone */
void format_env_k8s(const struct advice *a, struct strbuf *out); /* env: of a container */
/*
 * A process for each GPU, bound to the CPUs next to it: lines of a rank file of Open MPI, or the
 * option of srun. -ENODATA with a sentence: there is no GPU, or the CPUs next to one are unknown.
 */
int format_env_mpirun(const struct topology *t, struct strbuf *out);
int format_env_srun(const struct topology *t, struct strbuf *out);
