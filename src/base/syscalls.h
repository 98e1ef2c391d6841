/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of system calls that glibc 2.31 does not name. */
#pragma once

#include <sys/syscall.h>

#ifndef SYS_openat2
#define SYS_openat2 437 /* Linux 5.6; the same on every architecture */
#endif
