/* SPDX-License-Identifier: Apache-2.0 */
/* onehop topo: the devices and the paths between them. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "diagnose/diagnose.h"
#include "report/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct topo_options {
	struct common_options common;
	bool matrix;
	int p2p;
	const char *svg;
};

/* In the order of enum p2p_cap. */
static const char *const p2p_letters[] = {"r", "w", "n", "a", "p", NULL};

/* clang-format off */
#define AT(member) offsetof(struct topo_options, member)
static const struct option topo_table[] = {
	COMMON_FROM(struct topo_options),
	COMMON_HOST(struct topo_options),
	COMMON_PID(struct topo_options),
	OPT_FLAG("matrix", matrix, "print exactly what nvidia-smi topo -m prints", .letter = 'm'),
	OPT_CHOICE("p2p", p2p, "r|w|n|a|p", p2p_letters,
		"print exactly what nvidia-smi topo -p2p prints: reads, writes, NVLink, atomics, PCI", .one_dash = true),
	OPT_FILE("svg", svg, "FILE",
		"draw sockets, bridges, GPUs and NICs, with each problem at its location; - "
		"is standard output"),
	COMMON_OBSERVED(struct topo_options),
	COMMON_JSON(struct topo_options),
	COMMON_CSV(struct topo_options),
	COMMON_PAGE(struct topo_options),
	COMMON_COLOR(struct topo_options),
	COMMON_WIDTH(struct topo_options),
	COMMON_HELP(struct topo_options),
	OPTIONS_END,
};
/* clang-format on */

#define IDENTITY     (MACHINE_PCI | MACHINE_GPUS | MACHINE_NVML)
#define MATRIX_PARTS (IDENTITY | MACHINE_NUMA | MACHINE_NVML_LINKS | MACHINE_RDMA)

/* nvidia-smi prints no matrix then either, and fails. */
static int no_matrix(const struct topology *t)
{
	return fail(EXIT_NOT_JUDGED, "no NVIDIA GPU in %s, so there is no matrix",
		    machine_place(t->machine));
}

static int print_matrix(const struct topology *t, const struct topo_options *o)
{
	AUTO_STRBUF struct strbuf b = {0};

	if (!t->gpu_n)
		return no_matrix(t);
	topology_format_matrix(t, peer_escapes(&o->common), &b);
	return print_text(&b, EXIT_OK);
}

static int print_p2p(const struct topology *t, const struct topo_options *o)
{
	AUTO_STRBUF struct strbuf b = {0};

	if (!t->gpu_n)
		return no_matrix(t);
	topology_format_p2p(t, (enum p2p_cap)(o->p2p - 1), peer_escapes(&o->common), &b);
	return print_text(&b, EXIT_OK);
}

/* Without any device there is nothing to show, whatever was printed. */
static enum exit_code topology_code(const struct topology *t)
{
	return t->endpoint_n ? EXIT_OK : EXIT_NOT_JUDGED;
}

static int print_svg(const struct topology *t, const struct topo_options *o)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct diagnosis *d = diagnose(t);
	int r;

	report_drawing(d, false, &b);
	diagnosis_free(d);
	r = save_text(&b, o->svg);
	return r == EXIT_OK ? (int)topology_code(t) : r;
}

static int print_topology(const struct topology *t, const struct topo_options *o)
{
	AUTO_STRBUF struct strbuf csv = {0};
	enum exit_code code = topology_code(t);
	struct diagnosis *d;
	struct document *out;
	int r;

	if (o->common.json)
		return print_json(report_topology_json(t), code);
	if (prints_data(&o->common)) {
		report_topology_csv(&csv, t);
		return print_text(&csv, code);
	}
	d = diagnose(t);
	out = new_document(&o->common);
	report_topology(out, d);
	r = show_document(out, &o->common, code);
	diagnosis_free(d);
	return r;
}

struct view {
	unsigned parts;
	int (*print)(const struct topology *t, const struct topo_options *o);
};

static struct view pick_view(const struct topo_options *o)
{
	if (o->matrix)
		return (struct view){MATRIX_PARTS, print_matrix};
	if (o->p2p)
		return (struct view){IDENTITY | MACHINE_P2P(o->p2p - 1), print_p2p};
	if (o->svg)
		return (struct view){MACHINE_TO_JUDGE, print_svg};
	return (struct view){MACHINE_TO_JUDGE, print_topology};
}

static int run_topo(const void *options, const char *const *args)
{
	const struct topo_options *o = options;
	struct view view = pick_view(o);
	struct topology *t;
	struct machine *m;
	int r;

	(void)args;
	if ((o->matrix != 0) + (o->p2p != 0) + (o->svg != NULL) + o->common.json +
		    (o->common.format != 0) + page_wanted(&o->common) >
	    1)
		return fail(EXIT_REFUSED, "topo prints one thing at a time: -m, -p2p, --svg, "
					  "--json, --format, or --html and --markdown");
	if (o->common.machine.observed.n && view.parts != MACHINE_TO_JUDGE)
		return fail(EXIT_REFUSED, "--observed has no effect on -m and -p2p");
	if (machine_choice_read(&o->common.machine, view.parts, &m) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	t = view.parts == MACHINE_TO_JUDGE ? topology_new(m) : topology_classes(m);
	r = view.print(t, o);
	topology_free(t);
	machine_free(m);
	return r;
}

const struct command command_topo = {
	.name = "topo",
	.args = "",
	.summary = "show how GPUs and NICs are connected, pair by pair",
	.about = "Lists GPUs and RDMA NICs with their links, the matrix of paths between them "
		 "with the verdict of each pair, the expected copy rates, and why pairs are "
		 "not direct.",
	.options = topo_table,
	.size = sizeof(struct topo_options),
	.run = run_topo,
};
