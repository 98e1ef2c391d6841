/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel module's file says of itself: its .modinfo section, and some of its functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct strbuf;

/*
 * Appends the "key=value" lines of interest (name, version, license, depends, vermagic, srcversion)
 * of a module in memory, which may be anything. 0 or -EINVAL. The bytes are not changed.
 */
int module_file_parse(void *image, size_t size, struct strbuf *out);
/*
 * Which functions of P2P through BAR1 the nvidia module in memory has, a name a line: the real ones
 * ("..._GH100") and the stubs that chips without them have ("..._395e98"); then "onehop=unlock 1" if
 * it has onehop's mark. The bytes may be converted in place.
 */
int module_file_parse_p2p(void *image, size_t size, struct strbuf *out);

typedef int module_parser(void *image, size_t size, struct strbuf *out);
/*
 * What the parser finds in a file below the folder dir_fd: plain, or compressed with what libarchive
 * reads. -EFBIG: compressed, and larger than is worth the time.
 */
int module_file_read(int dir_fd, const char *path, module_parser *parser, struct strbuf *out);

/* ---- functions of P2P through BAR1, by name ---- */

#define P2P_FUNCTIONS 5

/* One of them, real or a stub. */
bool p2p_function_is(const char *name, size_t n);
/* Of how many of the five functions the lines of a text name the real one, and of how many the stub. */
void p2p_functions_count(const char *text, unsigned *ret_real, unsigned *ret_stubs);
