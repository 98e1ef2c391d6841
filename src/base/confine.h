/* SPDX-License-Identifier: Apache-2.0 */
/* Makes "looking changes nothing" a matter of the kernel's: a thread that can only look. */
#pragma once

/*
 * Calls run(context) in a thread of its own and waits for it. That thread, and threads that it
 * starts, cannot start programs or processes, nor create, remove, rename, truncate or write-only
 * open files, change modes, make device nodes or links, mount, or load modules: each such system
 * call fails with EPERM. Opening for reading and writing stays possible, which is how device nodes
 * are used. Where the kernel or the processor has no such filter, run is called unconfined.
 */
void confine_call(void (*run)(void *context), void *context);
