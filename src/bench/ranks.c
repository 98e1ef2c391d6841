/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/ranks.h"

#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What each launcher sets. Where two names stand the first that is set counts. */
static const struct launcher {
	const char *name;
	const char *within; /* set in processes that it started, and not in scripts around them */
	const char *meets;  /* without it they cannot meet; its other variables are not its alone */
	const char *rank, *size[2], *local_rank;
	const char *local_size, *hosts[2];
	const char *job[2]; /* together they name the job */
} launchers[] = {
	{"OpenMPI",
	 NULL,
	 NULL,
	 "OMPI_COMM_WORLD_RANK",
	 {"OMPI_COMM_WORLD_SIZE"},
	 "OMPI_COMM_WORLD_LOCAL_RANK",
	 "OMPI_COMM_WORLD_LOCAL_SIZE",
	 {NULL},
	 {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"}},
	{"PMIx",
	 NULL,
	 NULL,
	 "PMIX_RANK",
	 {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
	 "SLURM_LOCALID",
	 NULL,
	 {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"},
	 {"PMIX_NAMESPACE"}},
	{"MPICH",
	 NULL,
	 NULL,
	 "PMI_RANK",
	 {"PMI_SIZE"},
	 "MPI_LOCALRANKID",
	 "MPI_LOCALNRANKS",
	 {NULL},
	 {"PMI_PORT"}},
	/* A batch script around srun has SLURM_PROCID=0 too, but is not a step with tasks. */
	{"Slurm",
	 "SLURM_STEP_ID",
	 NULL,
	 "SLURM_PROCID",
	 {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
	 "SLURM_LOCALID",
	 NULL,
	 {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"},
	 {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
	{"torchrun",
	 NULL,
	 "MASTER_PORT",
	 "RANK",
	 {"WORLD_SIZE"},
	 "LOCAL_RANK",
	 "LOCAL_WORLD_SIZE",
	 {NULL},
	 {"TORCHELASTIC_RUN_ID", "MASTER_PORT"}},
};

#define LAUNCHERS (sizeof(launchers) / sizeof(launchers[0]))

static const char *value_of(char *const *environment, const char *name)
{
	size_t n = name ? strlen(name) : 0;

	for (; name && *environment; environment++)
		if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
			return *environment + n + 1;
	return NULL;
}

static const char *first_of(char *const *environment, const char *const names[2])
{
	const char *value = value_of(environment, names[0]);

	return value ? value : value_of(environment, names[1]);
}

static bool number_of(const char *value, int *ret)
{
	uint64_t number;

	if (!value || text_to_u64(value, &number) < 0 || number > INT_MAX)
		return false;
	*ret = (int)number;
	return true;
}

/* ---- the launcher ---- */

/* "" is not set either. */
static bool is_set(char *const *environment, const char *name)
{
	const char *value = value_of(environment, name);

	return value && *value;
}

static bool is_within(const struct launcher *l, char *const *environment)
{
	return !l->within || value_of(environment, l->within);
}

static bool started_by(const struct launcher *l, char *const *environment, struct ranks *r)
{
	return is_within(l, environment) && (!l->meets || is_set(environment, l->meets)) &&
	       number_of(value_of(environment, l->rank), &r->rank) &&
	       number_of(first_of(environment, l->size), &r->size);
}

/*
 * What a launcher sets is there in part. One variable of torchrun's alone is anybody's, such as
 * RANK; and one process of one needs no other.
 */
static int find_missing(const struct launcher *l, char *const *environment)
{
	const char *size = l->size[1] && is_set(environment, l->size[1]) ? l->size[1] : l->size[0];
	const char *const names[] = {l->rank, size, l->meets};
	const char *there = NULL, *missing = NULL;
	int set = 0, n;

	for (size_t i = 0; i < 3 && names[i]; i++) {
		const bool is = is_set(environment, names[i]);
		const char **first = is ? &there : &missing;

		set += is;
		if (!*first)
			*first = names[i];
	}
	if (!missing || (l->meets ? set < 2 : missing == l->rank))
		return 0;
	if (number_of(value_of(environment, size), &n) && n == 1)
		return 0;
	return err_set(EINVAL,
		       "%s: %s is set, but %s is not; --alone runs without the other processes",
		       l->name, there, missing);
}

/* Each process would measure by itself, at the same time as the others. */
static int find_unreadable(char *const *environment)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < LAUNCHERS; i++) {
		const struct launcher *l = &launchers[i];
		const char *rank = value_of(environment, l->rank);
		const char *size = first_of(environment, l->size);

		if (!is_within(l, environment))
			continue;
		r = find_missing(l, environment);
		if (r == 0 && rank && *rank && size && *size &&
		    (!l->meets || is_set(environment, l->meets)))
			r = err_set(EINVAL,
				    "%s: rank '%s' of '%s' is impossible (%s, %s); --alone runs "
				    "without the other processes",
				    l->name, rank, size, l->rank, l->size[0]);
	}
	return r;
}

static enum rank_hosts hosts_of(const struct launcher *l, char *const *environment, int size)
{
	int n;

	if (number_of(value_of(environment, l->local_size), &n))
		return n >= size ? HOSTS_ONE : HOSTS_SEVERAL;
	if (number_of(first_of(environment, l->hosts), &n))
		return n == 1 ? HOSTS_ONE : HOSTS_SEVERAL;
	return HOSTS_UNKNOWN;
}

/* A launcher that names no job is at least the parent of all its processes on a host. */
static void name_job(const struct launcher *l, char *const *environment, struct ranks *r)
{
	const char *first = value_of(environment, l->job[0]);
	const char *second = value_of(environment, l->job[1]);

	if (first || second)
		snprintf(r->job, sizeof(r->job), "%s.%s.%s", l->name, first ? first : "",
			 second ? second : "");
	else
		snprintf(r->job, sizeof(r->job), "%s.parent.%ld", l->name, (long)getppid());
}

static int take(const struct launcher *l, char *const *environment, struct ranks *r)
{
	if (r->size < 1 || r->rank >= r->size)
		return err_set(EINVAL, "%s: rank %d of %d is impossible (%s, %s)", l->name, r->rank,
			       r->size, l->rank, l->size[0]);
	snprintf(r->launcher, sizeof(r->launcher), "%s", l->name);
	r->hosts = r->size == 1 ? HOSTS_ONE : hosts_of(l, environment, r->size);
	if (!number_of(value_of(environment, l->local_rank), &r->local_rank))
		r->local_rank = r->rank;
	name_job(l, environment, r);
	return 0;
}

/* ---- the address ---- */

static int bad_address(const char *variable, const char *value)
{
	return err_set(EINVAL, "%s must be HOST:PORT, not '%s'", variable, value);
}

/* `shift` is added to the port. */
static int set_address(const char *variable, const char *value, int shift, struct ranks *r)
{
	const char *colon = strrchr(value, ':');
	int port, n;

	if (!colon || colon == value || !number_of(colon + 1, &port) || port < 1 ||
	    port + shift > 65535)
		return bad_address(variable, value);
	n = snprintf(r->address, sizeof(r->address), "%.*s:%d", (int)(colon - value), value,
		     port + shift);
	return n < (int)sizeof(r->address) ? 0 : bad_address(variable, value);
}

static int find_address(char *const *environment, struct ranks *r)
{
	const char *own = value_of(environment, "ONEHOP_ADDR");
	const char *host = value_of(environment, "MASTER_ADDR");
	const char *port = value_of(environment, "MASTER_PORT");
	const char *nccl = value_of(environment, "NCCL_COMM_ID");
	char both[300];

	if (own)
		return set_address("ONEHOP_ADDR", own, 0, r);
	if (host && port) {
		snprintf(both, sizeof(both), "%s:%s", host, port);
		return set_address("MASTER_ADDR:MASTER_PORT", both, 1, r);
	}
	return nccl ? set_address("NCCL_COMM_ID", nccl, 1, r) : 0;
}

/* ---- together ---- */

int ranks_read(char *const *environment, struct ranks *ret)
{
	struct ranks r = {.size = 1, .hosts = HOSTS_ONE};
	int e = 0;

	for (size_t i = 0; i < LAUNCHERS; i++) {
		struct ranks found = {0};

		if (!started_by(&launchers[i], environment, &found))
			continue;
		e = take(&launchers[i], environment, &found);
		r = found;
		break;
	}
	if (!*r.launcher && e == 0)
		e = find_unreadable(environment);
	if (e == 0 && r.size > 1)
		e = find_address(environment, &r);
	if (e == 0)
		*ret = r;
	return e;
}

int ranks_can_meet(const struct ranks *r)
{
	if (r->hosts == HOSTS_SEVERAL && !*r->address)
		return err_set(
			EINVAL,
			"the ranks are on several hosts: set ONEHOP_ADDR=HOST:PORT on all of them, an address of rank 0's host (mpirun -x ONEHOP_ADDR)");
	return 0;
}
