/* SPDX-License-Identifier: Apache-2.0 */
/* A machine as files that people can read, send and replay; the format is in docs/recording.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct source;

/*
 * The virtual file that keeps the lines of texts which a recording was made from
 * (ingest/kept_text.h has its format).
 */
#define RECORDING_TEXTS "texts.txt"

/*
 * Opens what --from names: a folder with machine.txt, a folder that is a copied tree (sys/, proc/),
 * or an archive of either kind of member (any format and compression that libarchive reads). 0, or
 * a negative errno with one sentence that names file and place.
 */
int recording_open(const char *path, struct source **ret);
/* Writes a map: into a folder if path ends in '/' or is one, else one archive (.tar.gz, .tar.zst,
 * ...). */
int recording_save(struct source *map, const char *path, const char *note);

/* The text form of a map, machine.txt; `base` resolves "base NAME" lines and may be NULL. */
int recording_parse(const char *text, size_t size, const char *file, struct source *map);
/* Config space in lspci's dump form: fills sys/bus/pci/devices/ADDRESS/config entries of the map.
 */
int recording_parse_config_space(const char *text, size_t size, const char *file,
				 struct source *map);

/* Replaces serial numbers, UUIDs, GUIDs, MACs, IP addresses and host names by stable stand-ins, in
 * place. */
void recording_redact(struct source *map);

/*
 * The same for texts that are made from a machine: the same stand-in for the same value, for as
 * long as the redaction lives. `host`: a host's name, "" for none. Addresses that could be versions
 * stay unless they are of a private network, or have a number that versions do not reach.
 */
struct redaction;
struct strbuf;
struct redaction *redaction_new(const char *host);
void redaction_text(struct redaction *r, const char *text, struct strbuf *out);
void redaction_free(struct redaction *r); /* NULL does nothing */
