/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several processes this one is, as its launcher says, and where they can meet. */
#pragma once

enum rank_hosts { HOSTS_UNKNOWN, HOSTS_ONE, HOSTS_SEVERAL };

/* A value: it is sent to a worker as it is. */
struct ranks {
	char launcher[16]; /* "OpenMPI", "torchrun"; "": none, one process */
	int rank, size;
	int local_rank; /* on its host */
	enum rank_hosts hosts;
	char job[128];     /* the same for all, and for no other job on a host */
	char address[256]; /* "host:port" where rank 0 can be met over TCP; "": not told */
};

/*
 * From an environment (NAME=VALUE, NULL-ended): OpenMPI's mpirun, PMIx below srun, MPICH's and
 * Intel's mpirun, srun, torchrun; the first that tells both rank and number. None: rank 0 of 1.
 * The address is ONEHOP_ADDR, or else the port after MASTER_ADDR:MASTER_PORT or NCCL_COMM_ID, which
 * are listened on themselves. 0, or -EINVAL with a sentence: also where what is set is not a
 * number, or only a part of it is set. (RANK alone is anybody's.)
 */
int ranks_read(char *const *environment, struct ranks *ret);

/* 0; -EINVAL with a sentence: some are on other hosts and there is no address. */
int ranks_can_meet(const struct ranks *r);
