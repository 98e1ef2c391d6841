/* SPDX-License-Identifier: Apache-2.0 */
/* Opens whatever a person hands over with --from: a recording, a copied tree, or a tool's text. */
#pragma once

struct machine;
struct source;

/*
 * A folder or archive goes to recording_open; a text is recognised by its content: an `lspci -x`
 * dump becomes a source with PCI facts only, all others unknown.
 * 0, or a negative errno with one sentence that names file and place.
 */
int ingest_open(const char *path, struct source **ret);
/*
 * Reads it, or with NULL the live host: `parts` as in struct machine_request, NCCL's settings as process
 * `pid` has them (0: any). 0 or a negative errno with a sentence; a machine that nobody has is -E2BIG.
 */
int ingest_machine(const char *from, int pid, unsigned parts, struct machine **ret);
