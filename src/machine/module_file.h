/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a kernel module's file: its .modinfo section, and the names of some functions. */
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
 * Which functions of P2P through BAR1 the nvidia module in memory has, one name per line: the real
 * ones ("..._GH100") and the stubs that chips without them have ("..._395e98"); then "onehop=unlock
 * 1" if it has onehop's mark. The bytes may be converted in place.
 */
int module_file_parse_p2p(void *image, size_t size, struct strbuf *out);

typedef int module_parser(void *image, size_t size, struct strbuf *out);
/*
 * The signs of a gate for managed memory in the nvidia_uvm module in memory: names of functions,
 * one per line, "parm=uvm_bar1_p2p_managed", and onehop's mark, "onehop=managed 1". Empty if there
 * are none. The bytes may be converted in place.
 */
int module_file_parse_uvm(void *image, size_t size, struct strbuf *out);

/*
 * All of the above for any module, after its "name=nvidia_uvm". The bytes may be converted in
 * place.
 */
int module_file_parse_edit(void *image, size_t size, struct strbuf *out);

/*
 * Runs the parser on a file below the folder dir_fd, plain or in a compression that libarchive
 * reads. -EFBIG: compressed and too large.
 */
int module_file_read(int dir_fd, const char *path, module_parser *parser, struct strbuf *out);
/* An ELF file that is open; mapped privately, because a parser may convert it in place. */
int module_file_parse_plain(int fd, size_t size, module_parser *parser, struct strbuf *out);

/* ---- functions of P2P through BAR1, by name ---- */

#define P2P_FUNCTIONS 5

/* Whether this is one of them, real or stub. */
bool p2p_function_is(const char *name, size_t n);
/* For how many of the five functions the text names the real one, and for how many the stub. */
void p2p_functions_count(const char *text, unsigned *ret_real, unsigned *ret_stubs);

/* ---- the gate for managed memory, in nvidia_uvm ---- */

/*
 * The function that onehop's edit puts into nvidia_uvm. It keeps managed memory away from peers
 * that would be reached through BAR1 with page table entries that cannot express it: chips before
 * Hopper.
 */
#define UVM_GATE "onehop_managed_p2p_unsupported"
/* The module parameter of a public edit that has such a gate too: WU-CVGL/cluster-setup docs/05. */
#define UVM_GATE_PARAMETER "uvm_bar1_p2p_managed"

/* Whether this is such a function, onehop's or the public edit's. */
bool uvm_gate_function_is(const char *name, size_t n);
/* Whether a line of the text shows a gate. */
bool uvm_gate_is_in(const char *text);
