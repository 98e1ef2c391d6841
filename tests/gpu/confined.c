/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "confined PROGRAM ARGUMENT..." runs a program that is ended, with the call named, as soon as it,
 * or a library that it opens, starts a process, executes a program, creates, truncates, opens for
 * writing only, removes, renames or changes the mode of a file, makes a device node, or loads a
 * module. Opening a device node for reading and writing is allowed: that is how NVML talks to the
 * driver. A program that ends well under it has done none of these. Exits as the program, 99 when
 * it was ended, 98 when this machine has no such filter.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __x86_64__
#error "written for x86-64's system calls"
#endif

#define MAX_FILTER 128

static struct sock_filter filter[MAX_FILTER];
static unsigned short filter_n;

static void add(uint16_t code, uint8_t if_true, uint8_t if_false, uint32_t k)
{
	filter[filter_n++] = (struct sock_filter){code, if_true, if_false, k};
}

static void load(size_t offset)
{
	add(BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void give(uint32_t action)
{
	add(BPF_RET | BPF_K, 0, 0, action);
}

static size_t low_half(int argument)
{
	return offsetof(struct seccomp_data, args) + 8 * (size_t)argument;
}

static void load_number(void)
{
	load(offsetof(struct seccomp_data, nr));
}

static void forbid(uint32_t call)
{
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call);
	give(SECCOMP_RET_TRACE);
}

/* Forbidden when any of `bits` is set in the argument. */
static void forbid_bits(uint32_t call, int argument, uint32_t bits)
{
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, call);
	load(low_half(argument));
	add(BPF_JMP | BPF_JSET | BPF_K, 0, 1, bits);
	give(SECCOMP_RET_TRACE);
	give(SECCOMP_RET_ALLOW);
}

/* Threads are allowed, processes are not. */
static void forbid_processes(void)
{
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_clone);
	load(low_half(0));
	add(BPF_JMP | BPF_JSET | BPF_K, 1, 0, CLONE_THREAD);
	give(SECCOMP_RET_TRACE);
	give(SECCOMP_RET_ALLOW);
	/* Its flags lie in memory; the C library falls back to clone. */
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_clone3);
	give(SECCOMP_RET_ERRNO | ENOSYS);
}

/* Only the one execve that starts the program: its path lies where this program put it. */
static void forbid_programs(const char *path)
{
	uint64_t at = (uint64_t)(uintptr_t)path;

	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 6, SYS_execve);
	load(low_half(0));
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, (uint32_t)at);
	load(low_half(0) + 4);
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)(at >> 32));
	give(SECCOMP_RET_ALLOW);
	give(SECCOMP_RET_TRACE);
}

static const uint32_t forbidden[] = {
	SYS_fork,      SYS_vfork,    SYS_execveat,    SYS_openat2,      SYS_creat,    SYS_mkdir,
	SYS_mkdirat,   SYS_mknod,    SYS_mknodat,     SYS_unlink,       SYS_unlinkat, SYS_rmdir,
	SYS_rename,    SYS_renameat, SYS_renameat2,   SYS_link,         SYS_linkat,   SYS_symlink,
	SYS_symlinkat, SYS_chmod,    SYS_fchmod,      SYS_fchmodat,     SYS_chown,    SYS_fchown,
	SYS_fchownat,  SYS_truncate, SYS_init_module, SYS_finit_module, SYS_mount,    SYS_setxattr,
};

/* O_RDWR alone is how device nodes are used. */
#define WRITING (O_CREAT | O_TRUNC | O_APPEND | O_WRONLY)

static int confine(const char *path)
{
	struct sock_fprog program = {.filter = filter};

	load(offsetof(struct seccomp_data, arch));
	add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64);
	give(SECCOMP_RET_TRACE);
	load_number();
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(*forbidden); i++)
		forbid(forbidden[i]);
	forbid_bits(SYS_open, 1, WRITING);
	forbid_bits(SYS_openat, 2, WRITING);
	forbid_processes();
	forbid_programs(path);
	give(SECCOMP_RET_ALLOW);
	program.len = filter_n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* ---- the parent: lets the program run, and names the first forbidden call ---- */

/* Paths are an argument of most forbidden calls: the first, or the second after a folder. */
static void print_path(pid_t pid, uint64_t at)
{
	char text[256] = "";
	struct iovec local = {text, sizeof(text) - 1}, remote = {(void *)(uintptr_t)at, 255};

	if (at < 4096)
		return;
	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) > 0 && text[0] == '/')
		fprintf(stderr, " %s", text);
}

/* libnvidia-ml names its threads: a write to the process's own memory, in a file's clothes. */
static bool names_own_thread(pid_t pid, uint64_t at)
{
	static const char own[] = "/proc/self/task/";
	char text[sizeof(own)] = "";
	struct iovec local = {text, sizeof(own) - 1},
		     remote = {(void *)(uintptr_t)at, sizeof(own) - 1};

	process_vm_readv(pid, &local, 1, &remote, 1, 0);
	return strcmp(text, own) == 0;
}

static bool may_go_on(pid_t pid, struct user_regs_struct *regs)
{
	if (ptrace(PTRACE_GETREGS, pid, NULL, regs) < 0)
		return false;
	return regs->orig_rax == SYS_openat && names_own_thread(pid, regs->rsi);
}

static void print_call(pid_t pid, const struct user_regs_struct *regs)
{
	fprintf(stderr, "confined: forbidden system call %llu (%llx, %llx, %llx)",
		(unsigned long long)regs->orig_rax, (unsigned long long)regs->rdi,
		(unsigned long long)regs->rsi, (unsigned long long)regs->rdx);
	print_path(pid, regs->rdi);
	print_path(pid, regs->rsi);
	fprintf(stderr, "\n");
}

static int watch(pid_t child)
{
	struct user_regs_struct regs;
	int status, signal;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		if (WIFEXITED(status) && pid == child)
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status) && pid == child)
			return 128 + WTERMSIG(status);
		if (!WIFSTOPPED(status))
			continue;
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8) &&
		    !may_go_on(pid, &regs)) {
			print_call(pid, &regs);
			kill(child, SIGKILL);
			return 99;
		}
		signal = WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP
				 ? 0
				 : WSTOPSIG(status);
		ptrace(PTRACE_SETOPTIONS, pid, NULL,
		       PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
		ptrace(PTRACE_CONT, pid, NULL, signal);
	}
	return 98;
}

int main(int argc, char **argv)
{
	pid_t child;

	if (argc < 2) {
		fprintf(stderr, "usage: confined PROGRAM ARGUMENT...\n");
		return 98;
	}
	child = fork();
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0 ||
		    confine(argv[1]) < 0) {
			fprintf(stderr, "confined: no system call filter here: %s\n",
				strerror(errno));
			_exit(98);
		}
		execv(argv[1], argv + 1);
		fprintf(stderr, "confined: %s: %s\n", argv[1], strerror(errno));
		_exit(98);
	}
	return child < 0 ? 98 : watch(child);
}
