/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `onehop unlock --sources` prints: the checks, how the driver is installed, and what is left
 * to do.
 */
#pragma once

#include "report/report_fix.h"
#include "unlock/delivery.h"
#include "unlock/delivery_kernels.h"
#include "unlock/probe.h"

struct delivery_report {
	const struct delivery *delivery;
	const struct machine *machine;
	bool image; /* as in struct delivery_request */
	bool work;  /* the plan has steps; manual steps follow them */
};

/* Before the plan: the way of installing, and the checks. */
void report_delivery(struct document *out, const struct delivery_report *r);
/*
 * After the plan: programs that use the GPUs, the key of Secure Boot, reboot; nothing if there is
 * no work.
 */
void report_delivery_after(struct document *out, const struct delivery_report *r);
/* The plan's object with `delivery` in it; takes the reference. */
json_t *report_delivery_json(const struct delivery_report *r, json_t *plan);

/* After the outcome of `onehop undo`; nothing if there are none. */
void report_left_builds(struct document *out, const struct left_build *left, size_t n);
/* The same for downloaded sources; `folder` NULL: none. */
void report_left_sources(struct document *out, const char *folder);
/* undo's object with `left_builds` and `left_sources` in it; takes the reference. */
json_t *report_left_json(const struct left_build *left, size_t n, const char *sources,
			 json_t *undo);

/* --probe: a line. */
void report_probe_file(struct document *out, const struct probe *p);
json_t *report_probe_json(const struct probe *p);
