/* SPDX-License-Identifier: Apache-2.0 */
/* Lines in NCCL's own debug output. */
#pragma once

enum say_level { SAY_WARN, SAY_INFO };

/*
 * One line, as NCCL writes it, if NCCL_DEBUG asks for that level: into NCCL_DEBUG_FILE, or else,
 * also if it cannot be opened, to the standard error.
 * Never to the standard output, which belongs to the application. Leaves errno alone.
 */
void say(enum say_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
