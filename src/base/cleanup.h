/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that release what they hold at the end of their scope. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define AUTO_FREE   CLEANUP(cleanup_free)
#define AUTO_CLOSE  CLEANUP(cleanup_close)
#define AUTO_FCLOSE CLEANUP(cleanup_fclose)

/* Hands out what an AUTO_ variable holds. */
#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})
