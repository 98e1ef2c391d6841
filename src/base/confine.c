/* SPDX-License-Identifier: Apache-2.0 */
#include "base/confine.h"

#include "base/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE

/* System calls that change something or start something, whatever their arguments. */
static const uint32_t refused[] = {
#ifdef SYS_open /* the calls that newer architectures never had */
	SYS_fork,     SYS_vfork,     SYS_creat,       SYS_mkdir,        SYS_mknod,
	SYS_unlink,   SYS_rmdir,     SYS_rename,      SYS_renameat,     SYS_link,
	SYS_symlink,  SYS_chmod,     SYS_chown,       SYS_lchown,
#endif
	SYS_execve,   SYS_execveat,  SYS_openat2,     SYS_mkdirat,      SYS_mknodat,
	SYS_unlinkat, SYS_renameat2, SYS_linkat,      SYS_symlinkat,    SYS_fchmod,
	SYS_fchmodat, SYS_fchown,    SYS_fchownat,    SYS_truncate,     SYS_ftruncate,
	SYS_setxattr, SYS_mount,     SYS_init_module, SYS_finit_module,
};

/* Open flags that make or change a file. */
#define WRITING (O_CREAT | O_TRUNC | O_APPEND | O_WRONLY)

struct filter {
	struct sock_filter code[128];
	unsigned short n;
};

static void add(struct filter *f, uint16_t code, uint8_t if_true, uint8_t if_false, uint32_t k)
{
	f->code[f->n++] = (struct sock_filter){code, if_true, if_false, k};
}

static void load(struct filter *f, size_t offset)
{
	add(f, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void give(struct filter *f, uint32_t action)
{
	add(f, BPF_RET | BPF_K, 0, 0, action);
}

/* The call fails with `error` when `bits` of its argument are set (or, unless `set`, clear). */
static void refuse_bits(struct filter *f, uint32_t call, unsigned argument, uint32_t bits, bool set,
			int error)
{
	add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, call);
	load(f, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
	add(f, BPF_JMP | BPF_JSET | BPF_K, set ? 0 : 1, set ? 1 : 0, bits);
	give(f, SECCOMP_RET_ERRNO | (uint32_t)error);
	give(f, SECCOMP_RET_ALLOW);
}

static void refuse(struct filter *f, uint32_t call, int error)
{
	add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call);
	give(f, SECCOMP_RET_ERRNO | (uint32_t)error);
}

static void make_filter(struct filter *f)
{
	load(f, offsetof(struct seccomp_data, arch));
	add(f, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCHITECTURE);
	give(f, SECCOMP_RET_ERRNO | EPERM);
	load(f, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		refuse(f, refused[i], EPERM);
	refuse(f, SYS_clone3, ENOSYS); /* its flags lie in memory; the C library falls back */
#ifdef SYS_open
	refuse_bits(f, SYS_open, 1, WRITING, true, EPERM);
#endif
	refuse_bits(f, SYS_openat, 2, WRITING, true, EPERM);
	refuse_bits(f, SYS_clone, 0, CLONE_THREAD, false, EPERM);
	give(f, SECCOMP_RET_ALLOW);
}

static int confine_thread(void)
{
	struct filter f = {.n = 0};
	struct sock_fprog program;

	make_filter(&f);
	program = (struct sock_fprog){.len = f.n, .filter = f.code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return -errno;
	return 0;
}

#else

static int confine_thread(void)
{
	return -ENOSYS;
}

#endif

struct call {
	void (*run)(void *context);
	void *context;
};

static void *run_confined(void *argument)
{
	struct call *c = argument;

	confine_thread(); /* where there is no filter, the caller's own care has to do */
	c->run(c->context);
	return NULL;
}

void confine_call(void (*run)(void *context), void *context)
{
	struct call c = {run, context};
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_confined, &c) == 0)
		pthread_join(thread, NULL);
	else
		run(context);
}
