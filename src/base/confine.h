/* SPDX-License-Identifier: Apache-2.0 */
/* Makes "looking changes nothing" a matter of the kernel's: a thread that can only look. */
#pragma once

/*
 * From here on this thread, and threads that it starts, cannot start programs or processes, nor
 * create, remove, rename, truncate or write-only open files, change modes, make device nodes or
 * links, mount, or load modules: each such system call fails with EPERM. Opening for reading and
 * writing stays possible, which is how device nodes are used. There is no way back; other threads
 * are not concerned. 0, or a negative errno where the kernel or the processor has no such filter.
 */
int confine_thread(void);

/* Calls run(context) in a thread of its own, confined where that is possible, and waits for it. */
void confine_call(void (*run)(void *context), void *context);
