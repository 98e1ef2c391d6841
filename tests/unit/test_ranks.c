/* SPDX-License-Identifier: Apache-2.0 */
/* bench/ranks: the environments that launchers make, as a table. */
#include "base/err.h"
#include "base/text.h"
#include "bench/ranks.h"

#include <cmocka.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

struct sample {
	const char *environment[16];
	struct ranks right;
};

static const struct sample samples[] = {
	{{"PATH=/bin", NULL}, {.size = 1, .hosts = HOSTS_ONE}},
	/* OpenMPI 4.1.4's mpirun -n 2 on one host */
	{{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1",
	  "OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_MCA_ess_base_jobid=1090387969",
	  "PMIX_NAMESPACE=1090387969", "PMIX_RANK=1", NULL},
	 {"OpenMPI", 1, 2, 1, HOSTS_ONE, "OpenMPI.1090387969.1090387969", ""}},
	/* the same on two hosts, with an address */
	{{"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
	  "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=prterun-a-77@1", "ONEHOP_ADDR=a:29600",
	  NULL},
	 {"OpenMPI", 3, 4, 1, HOSTS_SEVERAL, "OpenMPI..prterun-a-77@1", "a:29600"}},
	/* srun --mpi=pmix */
	{{"PMIX_RANK=2", "PMIX_NAMESPACE=slurm.pmix.12.0", "SLURM_PROCID=2", "SLURM_NTASKS=4",
	  "SLURM_STEP_NUM_TASKS=4", "SLURM_LOCALID=2", "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_ID=0",
	  NULL},
	 {"PMIx", 2, 4, 2, HOSTS_ONE, "PMIx.slurm.pmix.12.0.", ""}},
	/* MPICH's Hydra */
	{{"PMI_RANK=1", "PMI_SIZE=3", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=3", "PMI_PORT=a:40001",
	  NULL},
	 {"MPICH", 1, 3, 1, HOSTS_ONE, "MPICH.a:40001.", ""}},
	/* srun over two nodes; NCCL_COMM_ID's port is NCCL's own */
	{{"SLURM_PROCID=5", "SLURM_NTASKS=8", "SLURM_LOCALID=1", "SLURM_NNODES=2",
	  "SLURM_JOB_ID=4711", "SLURM_STEP_ID=2", "NCCL_COMM_ID=10.0.0.1:7000", NULL},
	 {"Slurm", 5, 8, 1, HOSTS_SEVERAL, "Slurm.4711.2", "10.0.0.1:7001"}},
	/* a batch script before srun, or an interactive allocation: one process */
	{{"SLURM_PROCID=0", "SLURM_NTASKS=8", "SLURM_LOCALID=0", "SLURM_JOB_ID=4711", NULL},
	 {.size = 1, .hosts = HOSTS_ONE}},
	/* torchrun's own store listens at MASTER_PORT */
	{{"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=localhost",
	  "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=none", NULL},
	 {"torchrun", 1, 2, 1, HOSTS_ONE, "torchrun.none.29500", "localhost:29501"}},
	/* RANK alone is anybody's, and nobody is to be met where there is one */
	{{"RANK=1", NULL}, {.size = 1, .hosts = HOSTS_ONE}},
	{{"MASTER_PORT=1", "MASTER_ADDR=a", NULL}, {.size = 1, .hosts = HOSTS_ONE}},
	{{"RANK=0", "WORLD_SIZE=1", NULL}, {.size = 1, .hosts = HOSTS_ONE}},
	/* a script in an allocation, not below srun */
	{{"SLURM_NTASKS=8", "SLURM_NNODES=2", NULL}, {.size = 1, .hosts = HOSTS_ONE}},
	/* an address of IPv6; no local rank told */
	{{"PMI_RANK=1", "PMI_SIZE=2", "PMI_PORT=p", "ONEHOP_ADDR=[::1]:9", NULL},
	 {"MPICH", 1, 2, 1, HOSTS_UNKNOWN, "MPICH.p.", "[::1]:9"}},
	/* one process of one: an address that is wrong for us is nobody's business */
	{{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_LOCAL_RANK=0",
	  "PMIX_NAMESPACE=x", "NCCL_COMM_ID=nowhere", NULL},
	 {"OpenMPI", 0, 1, 0, HOSTS_ONE, "OpenMPI..x", ""}},
};

static void launchers_are_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		const struct ranks *right = &samples[i].right;
		struct ranks r;

		if (ranks_read((char *const *)samples[i].environment, &r) != 0)
			fail_msg("sample %zu: %s", i, err_msg());
		if (r.rank != right->rank || r.size != right->size ||
		    r.local_rank != right->local_rank || r.hosts != right->hosts ||
		    strcmp(r.launcher, right->launcher) != 0 || strcmp(r.job, right->job) != 0 ||
		    strcmp(r.address, right->address) != 0)
			fail_msg("sample %zu: '%s' %d of %d, local %d, hosts %d, job %s, at '%s'",
				 i, r.launcher, r.rank, r.size, r.local_rank, (int)r.hosts, r.job,
				 r.address);
	}
}

/* Without a name for the job the processes' common parent stands for it. */
static void a_job_without_a_name(void **state)
{
	static const char *const environment[] = {"PMI_RANK=0", "PMI_SIZE=2", NULL};
	struct ranks r;

	(void)state;
	assert_int_equal(ranks_read((char *const *)environment, &r), 0);
	assert_true(text_starts_with(r.job, "MPICH.parent."));
}

static void nonsense_is_refused(void **state)
{
	static const struct {
		const char *environment[5], *says;
	} bad[] = {
		{{"RANK=1", "WORLD_SIZE=2", NULL},
		 "torchrun: RANK is set, but MASTER_PORT is not; --alone runs without"},
		{{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=", NULL},
		 "RANK is set, but MASTER_PORT is not"},
		{{"RANK=1", "MASTER_ADDR=a", "MASTER_PORT=1", NULL},
		 "RANK is set, but WORLD_SIZE is not"},
		{{"WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1", NULL},
		 "WORLD_SIZE is set, but RANK is not"},
		{{"PMI_RANK=0", NULL}, "MPICH: PMI_RANK is set, but PMI_SIZE is not"},
		{{"OMPI_COMM_WORLD_RANK=0", NULL}, "but OMPI_COMM_WORLD_SIZE is not"},
		{{"SLURM_STEP_ID=0", "SLURM_PROCID=0", NULL}, "but SLURM_STEP_NUM_TASKS is not"},
		{{"PMI_RANK=2", "PMI_SIZE=2", NULL}, "rank 2 of 2"},
		{{"PMI_RANK=0", "PMI_SIZE=0", NULL}, "rank 0 of 0"},
		{{"RANK=x", "WORLD_SIZE=2", "MASTER_PORT=1", NULL}, "torchrun: rank 'x' of '2'"},
		{{"PMI_RANK=0", "PMI_SIZE=99999999999", NULL}, "rank '0' of '99999999999'"},
		{{"PMI_RANK=0", "PMI_SIZE=2", "ONEHOP_ADDR=nowhere", NULL}, "ONEHOP_ADDR"},
		{{"PMI_RANK=0", "PMI_SIZE=2", "ONEHOP_ADDR=a:0", NULL}, "HOST:PORT"},
		{{"PMI_RANK=0", "PMI_SIZE=2", "NCCL_COMM_ID=a:65535", NULL}, "NCCL_COMM_ID"},
		{{"PMI_RANK=0", "PMI_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=x", NULL}, "a:x"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ranks r = {.size = 77};

		assert_int_equal(ranks_read((char *const *)bad[i].environment, &r), -EINVAL);
		assert_int_equal(r.size, 77);
		if (!strstr(err_msg(), bad[i].says))
			fail_msg("'%s' does not say %s", err_msg(), bad[i].says);
	}
}

static void several_hosts_want_an_address(void **state)
{
	struct ranks r = {.size = 2, .hosts = HOSTS_SEVERAL};

	(void)state;
	assert_int_equal(ranks_can_meet(&r), -EINVAL);
	assert_non_null(strstr(err_msg(), "ONEHOP_ADDR"));
	r.address[0] = 'a';
	assert_int_equal(ranks_can_meet(&r), 0);
	r = (struct ranks){.size = 2, .hosts = HOSTS_UNKNOWN};
	assert_int_equal(ranks_can_meet(&r), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launchers_are_known),
		cmocka_unit_test(a_job_without_a_name),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(several_hosts_want_an_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
