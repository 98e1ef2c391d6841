/* SPDX-License-Identifier: Apache-2.0 */
/* report/: the document, what check and topo say, JSON against its schema, generated manuals. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "build_machine.h"
#include "check_text.h"
#include "json_schema.h"
#include "open_recording.h"
#include "report/json_layout.h"
#include "report/nccl_table.h"
#include "report/report.h"

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- helpers ---- */

static const char *written(const struct document *d, unsigned width, bool colour, struct strbuf *b)
{
	struct text_format format = {.width = width, .colour = colour};

	document_write_text(d, &format, b);
	return strbuf_str(b);
}

static void assert_writes(struct document *d, unsigned width, bool colour, const char *expected)
{
	AUTO_STRBUF struct strbuf b = {0};

	assert_string_equal(written(d, width, colour, &b), expected);
	document_free(d);
}

static size_t widest_line(const char *text)
{
	size_t widest = 0;

	for (const char *s = text; *s;) {
		size_t n = strcspn(s, "\n");

		if (n > widest)
			widest = n;
		s += n + (s[n] == '\n');
	}
	return widest;
}

/* An interval needs 6 batches. */
static void a_time_without_an_interval(void **state)
{
	struct collective_row row = {
		.bytes = 8, .cell = {{.time_us = 2, .low_us = NAN, .high_us = NAN, .batches = 5}}};
	const struct collective_result r = {.plan = {.relative = 0.01, .iterations = 20},
					    .rows = &row,
					    .row_n = 1};
	struct document *out = document_new();

	(void)state;
	nccl_report_spread(out, &r, true);
	assert_writes(
		out, 120, false,
		"spread  not stable: the one time (95 % interval wider than 1 % of the median); raise --budget\n"
		"  8 B, out of place: 2.00 us, too few batches for an interval, 5 batches of 20\n");
}

/* What check says of a machine that the test built; frees it. */
static char *check_text(struct machine *m, bool verbose)
{
	struct topology *t = topology_new(m);
	struct diagnosis *d = diagnose(t);
	struct document *out = document_new();
	struct strbuf b = {0};

	report_check(out, d, NULL, verbose);
	written(out, 80, false, &b);
	document_free(out);
	diagnosis_free(d);
	topology_free(t);
	build_free(m);
	return b.text;
}

static char *topology_text(struct machine *m)
{
	struct topology *t = topology_new(m);
	struct diagnosis *d = diagnose(t);
	struct document *out = document_new();
	struct strbuf b = {0};

	report_topology(out, d);
	written(out, 80, false, &b);
	document_free(out);
	diagnosis_free(d);
	topology_free(t);
	build_free(m);
	return b.text;
}

/* ---- document ---- */

static void paragraphs_wrap(void **state)
{
	struct document *d = document_new();

	(void)state;
	document_paragraph(d, STYLE_PLAIN, 2, "one two three\nfour  five");
	document_item(d, STYLE_PLAIN, 0, "do:", "a b c d e f g h i j k l m n o p q");
	assert_writes(d, 24, false,
		      "  one two three\n  four five\n"
		      "do:  a b c d e f g h i j\n     k l m n o p q\n");
}

static void long_words_stay_whole(void **state)
{
	struct document *d = document_new();

	(void)state;
	document_paragraph(d, STYLE_PLAIN, 0, "see /sys/bus/pci/devices/0000:41:00.0/config now");
	assert_writes(d, 20, false, "see\n/sys/bus/pci/devices/0000:41:00.0/config\nnow\n");
}

/*
 * A long command stands whole on a line of its own, without quotes and comma; a short one in the
 * sentence.
 */
static void commands_can_be_pasted(void **state)
{
	struct document *d = document_new();

	(void)state;
	document_paragraph(
		d, STYLE_PLAIN, 2,
		"now: `setpci -s 0000:22:00.0 ECAP_ACS+6.w=0011`; to stay: `NAME=\"$NAME "
		"'pci=disable_acs_redir=A;B'\"`, or `update-grub` (`a -b`), and an odd ` quote");
	assert_writes(d, 24, false,
		      "  now:\nsetpci -s 0000:22:00.0 ECAP_ACS+6.w=0011\n  to stay:\n"
		      "NAME=\"$NAME 'pci=disable_acs_redir=A;B'\"\n  or `update-grub`\n"
		      "  (`a -b`), and an odd `\n  quote\n");
}

static void width_counts_characters(void **state)
{
	struct document *d = document_new();

	(void)state;
	document_paragraph(d, STYLE_PLAIN, 0, "äöüäöüäöü äöüäöüäöü x");
	assert_writes(d, 21, false, "äöüäöüäöü äöüäöüäöü x\n");
}

/* A recording must not be able to steer the terminal that shows it. */
static void control_characters_are_shown_as_marks(void **state)
{
	struct document *d = document_new();

	(void)state;
	document_paragraph(d, STYLE_PLAIN, 0, "a\033[2Jb\tc\x7f \xff\xc0\xaf \xc2\x9b.");
	document_paragraph(d, STYLE_PLAIN, 0, "\xe2\x80\xaeleft\xe2\x81\xa9 \xd8\x9c \xe2\x80\xa6");
	document_verbatim(d, 0, "x\rmore");
	assert_writes(d, 0, false, "a?[2Jb c? ??? ??.\n???left??? ?? \xe2\x80\xa6\nx?more\n");
}

static void colours_only_if_asked(void **state)
{
	struct document *d = document_new();
	AUTO_STRBUF struct strbuf b = {0};

	(void)state;
	document_paragraph(d, STYLE_BAD, 0, "bad");
	assert_string_equal(written(d, 0, false, &b), "bad\n");
	assert_writes(d, 0, true, "\033[31mbad\033[0m\n");
}

/* In a time that grows as the text does: with that of its square the test would not end. */
static void long_texts_are_written_whole(void **state)
{
	static const char words[] = "a note of two words ";
	AUTO_STRBUF struct strbuf text = {0}, b = {0};
	struct document *d = document_new();
	size_t letters = 0, wanted = 0;

	(void)state;
	while (text.len < (size_t)8 << 20)
		strbuf_puts(&text, words);
	document_paragraph(d, STYLE_PLAIN, 0, "%s", text.text);
	written(d, 80, false, &b);
	document_free(d);
	for (const char *s = text.text; *s; s++)
		wanted += *s != ' ';
	for (const char *s = b.text; *s; s++)
		letters += *s != ' ' && *s != '\n';
	assert_int_equal(letters, wanted);
	assert_true(widest_line(b.text) <= 80);
}

static void tables_align_and_wrap(void **state)
{
	struct document *d = document_new();

	(void)state;
	document_table(d, 1, 3, 2);
	document_row(d);
	document_cell(d, STYLE_PLAIN, "a");
	document_cell(d, STYLE_PLAIN, "b");
	document_row(d);
	document_cell(d, STYLE_PLAIN, "long");
	document_cell(d, STYLE_PLAIN, "x");
	document_cell(d, STYLE_PLAIN, "%s", "one two three four five six");
	assert_writes(d, 29, false, " a     b\n long  x  one two three four\n          five six\n");
}

/* In a narrow terminal the last cell is not squeezed behind the others, and does not run over. */
static void narrow_tables_break_before_the_last_cell(void **state)
{
	struct document *d = document_new();

	(void)state;
	document_table(d, 0, 2, 2);
	document_row(d);
	document_cell(d, STYLE_PLAIN, "a-name-of-a-rule");
	document_cell(d, STYLE_PLAIN, "one two three four five six seven eight");
	document_row(d);
	document_cell(d, STYLE_PLAIN, "short");
	document_cell(d, STYLE_PLAIN, "fits here");
	assert_writes(d, 30, false,
		      "a-name-of-a-rule\n    one two three four five\n    six seven eight\n"
		      "short             fits here\n");
}

static void blanks_do_not_add_up(void **state)
{
	struct document *d = document_new();

	(void)state;
	document_blank(d);
	document_paragraph(d, STYLE_PLAIN, 0, "a");
	document_blank(d);
	document_blank(d);
	document_paragraph(d, STYLE_PLAIN, 0, "b");
	assert_writes(d, 0, false, "a\n\nb\n");
}

/* ---- check ---- */

static void healthy_machine_is_short(void **state)
{
	AUTO_FREE char *text = check_text(build_switch(), false);

	(void)state;
	assert_has(text, "\nGPU P2P: both pairs direct over PCIe.\n");
	assert_lacks(text, "GPUs: "); /* all of them are seen by everybody */
	assert_lacks(text, "error ");
	assert_lacks(text, "Recorded");
}

static void blocked_pair_is_marked_and_explained(void **state)
{
	struct machine *m = build_switch();
	AUTO_FREE char *text;

	(void)state;
	pci_find(m, m->gpus[0].pci->parent->address)->acs_ctl = fact_int(0x1d, "test");
	text = check_text(m, false);
	assert_has(text, "GPU0 0000:23:00.0 X     PIX x\n");
	assert_has(text, "[acs-redirect");
	assert_has(text, " do    ");
	assert_has(text, " why   ");
	assert_has(text, " seen  ");
}

static void verdict_comes_before_findings(void **state)
{
	struct machine *m = build_switch();
	AUTO_FREE char *text;
	const char *verdict, *finding, *unseen;

	(void)state;
	pci_find(m, m->gpus[0].pci->parent->address)->acs_ctl = fact_int(0x1d, "test");
	m->log_read = fact_int_unknown("needs root: /dev/kmsg");
	text = check_text(m, false);
	verdict = strstr(text, "GPU P2P: ");
	unseen = strstr(text, "Unknown without root:");
	assert_non_null(verdict);
	assert_non_null(unseen);
	finding = strstr(text, "\nerror ");
	assert_non_null(finding);
	assert_true(verdict < finding);
	assert_true(finding < unseen);
	assert_has(unseen, "Unknown without root: ");
}

static const struct rule small_rule = {
	.id = "small-rule",
	.title = "all is large",
	.why = "Because.",
	.severity = SEVERITY_ERROR,
};

/* Its texts are forms: ABOUT is the GPU. */
static struct finding finding_of(const char *name, const char *address, const char *sentence,
				 const char *remedy)
{
	return (struct finding){
		.rule = &small_rule,
		.severity = SEVERITY_ERROR,
		.confidence = CONFIDENCE_LIKELY,
		.about = {SUBJECT_GPU, name, address, NULL},
		.sentence = sentence,
		.remedy = remedy,
	};
}

/* What check says of these findings alone, on one line. */
static char *findings_text(const struct finding *forms, size_t n, bool verbose)
{
	struct machine *m = build_switch();
	struct topology *t = topology_new(m);
	struct finding *findings = arena_alloc(m->arena, n, sizeof(*findings));
	struct diagnosis d = {.topology = t, .findings = findings, .finding_n = n};
	struct document *out = document_new();
	AUTO_STRBUF struct strbuf b = {0};

	for (size_t i = 0; i < n; i++) {
		findings[i] = forms[i];
		findings[i].subject =
			arena_printf(m->arena, "%s %s", forms[i].about.name, forms[i].about.detail);
		finding_finish(m->arena, m, &findings[i]);
	}
	report_check(out, &d, NULL, verbose);
	written(out, 80, false, &b);
	document_free(out);
	topology_free(t);
	build_free(m);
	return flat(strbuf_str(&b));
}

/* Cards with one fault are one finding with their names, not a paragraph each. */
static void alike_findings_are_told_once(void **state)
{
	const struct finding findings[] = {
		finding_of("GPU0", "0000:23:00.0", "BAR1 of " ABOUT " is small.", "set " ABOUT),
		finding_of("GPU1", "0000:24:00.0", "BAR1 of " ABOUT " is small.", "set " ABOUT),
		finding_of("GPU2", "0000:25:00.0", "BAR1 of " ABOUT " is small.", "set " ABOUT),
	};
	AUTO_FREE char *text = findings_text(findings, 3, false);
	AUTO_FREE char *verbose = findings_text(findings, 3, true);

	(void)state;
	assert_has(text,
		   "error BAR1 of GPU0 0000:23:00.0 is small. (likely) [small-rule] likewise "
		   "GPU1 0000:24:00.0, GPU2 0000:25:00.0 do set GPU0 likewise for the others (-v "
		   "shows them) why Because.");
	assert_has(verbose, "do GPU1 0000:24:00.0: set GPU1 do GPU2 0000:25:00.0: set GPU2");
}

/* The subject is named once, where the sentence names it first. */
static void a_sentence_about_its_subject_has_it_whole(void **state)
{
	const struct finding findings[] = {
		finding_of("GPU0", "0000:23:00.0", ABOUT " is lost; see " ABOUT, "reboot"),
		finding_of("GPU1", "0000:24:00.0", "the " ABOUT " that is lost", "reboot"),
	};
	AUTO_FREE char *text = findings_text(findings, 2, false);

	(void)state;
	assert_has(text, "error GPU0 0000:23:00.0 is lost; see GPU0 (likely)");
	assert_has(text, "] the GPU1 0000:24:00.0 that is lost");
}

/* A value that differs is never folded away. */
static void different_findings_stay_apart(void **state)
{
	const struct finding findings[] = {
		finding_of("GPU0", "0000:23:00.0", "BAR1 is 256 MiB", "mend it"),
		finding_of("GPU1", "0000:24:00.0", "BAR1 is 512 MiB", "mend it"),
	};
	AUTO_FREE char *text = findings_text(findings, 2, false);

	(void)state;
	assert_has(text, "GPU1 0000:24:00.0: BAR1 is 512 MiB");
	assert_has(text, "do mend it why Because.");
}

/* What is only good to know is counted by name; -v has all of it. */
static void notes_are_counted(void **state)
{
	struct finding findings[] = {
		finding_of("GPU0", "0000:23:00.0", "it is warm", "cool it"),
		finding_of("GPU1", "0000:24:00.0", "it is warm", "cool it"),
	};
	AUTO_FREE char *text = NULL, *verbose = NULL;

	(void)state;
	findings[0].severity = findings[1].severity = SEVERITY_INFO;
	text = findings_text(findings, 2, false);
	verbose = findings_text(findings, 2, true);
	assert_has(text, " 1 note: small-rule (-v shows it)");
	assert_lacks(text, "cool it");
	assert_has(verbose, "do cool it");
	assert_lacks(verbose, "1 note");
}

static void eight_gpus_fit_80_columns(void **state)
{
	AUTO_FREE char *check = NULL, *topo = topology_text(build_root_ports(8, 8, 2));
	struct machine *m = build_root_ports(8, 8, 2);

	(void)state;
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	check = check_text(m, false);
	assert_has(check, "GPU7 ");
	assert_true(widest_line(check) <= 80);
	assert_true(widest_line(topo) <= 80);
}

static void many_gpus_are_summed_up(void **state)
{
	struct machine *m = build_root_ports(16, 2, 2);
	AUTO_FREE char *text;

	(void)state;
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	text = check_text(m, false);
	assert_has(text, "ordered GPU pairs");
	assert_true(widest_line(text) <= 80);
}

static void numbering_is_mapped_where_it_differs(void **state)
{
	struct machine *m = build_switch();
	AUTO_FREE char *text, *one_line;

	(void)state;
	m->gpus[0].nvml_index = fact_int(1, "test");
	m->gpus[0].cuda_ordinal = fact_int_absent("CUDA_VISIBLE_DEVICES=0");
	text = check_text(m, false);
	one_line = flat(text);
	assert_has(one_line, "GPU0 is nvidia-smi 1, hidden from CUDA");
}

static void no_gpu_shows_the_platform(void **state)
{
	struct machine *m = build_machine();
	AUTO_FREE char *text;

	(void)state;
	build_port(m, "0000:00:01.0", NULL, PCI_PORT_ROOT);
	m->pci_listed = fact_int(1, "test");
	text = check_text(m, false);
	assert_has(text, "no NVIDIA GPU");
	assert_has(text, "PCI:    1 function, 1 of them a bridge\n");
	assert_has(text, "ACS:    1 of 1 bridges support it; redirecting (ACSCtl): none\n");
}

/* ---- topo ---- */

static void topology_says_why(void **state)
{
	struct machine *m = build_switch();
	AUTO_FREE char *text;

	(void)state;
	pci_find(m, m->gpus[0].pci->parent->address)->acs_ctl = fact_int(0x1d, "test");
	text = topology_text(m);
	assert_has(text, "PCI address");
	assert_has(text, "32 GiB");
	assert_has(text, "Obstacles between GPUs\n");
	assert_has(text, "blocked   ACSCtl of ");
	assert_has(text, "GPU0->GPU1");
	assert_has(text, "GB/s one way");
}

static void same_reason_is_one_line(void **state)
{
	struct machine *m = build_root_ports(8, 1, 1);
	AUTO_FREE char *text = NULL, *one_line = NULL;
	const char *first;

	(void)state;
	for (size_t i = 0; i < 8; i++)
		m->gpus[i].bar1_bytes = fact_int(256 << 20, "test");
	text = topology_text(m);
	one_line = flat(text);
	first = strstr(one_line, "blocked BAR1 of ");
	assert_non_null(first);
	assert_has(first, "; likewise at ");
	assert_has(first, "(all 56 pairs)");
	assert_null(strstr(first + 1, "blocked BAR1 of "));
}

/* ---- JSON ---- */

static void assert_valid(json_t *json, const char *schema, const char *what)
{
	AUTO_STRBUF struct strbuf trouble = {0};

	assert_non_null(json);
	json_schema_check(json, schema, &trouble);
	if (trouble.len)
		fail_msg("%s against %s: %s", what, schema, strbuf_str(&trouble));
	json_decref(json);
}

static void assert_json_valid(const struct machine *m, const char *what)
{
	struct topology *t = topology_new(m);
	struct diagnosis *d = diagnose(t);

	assert_valid(report_check_json(d), "check.schema.json", what);
	assert_valid(report_topology_json(t), "topo.schema.json", what);
	diagnosis_free(d);
	topology_free(t);
}

static void recorded_machines_give_valid_json(void **state)
{
	static const struct machine_request all = {.parts = MACHINE_ALL};
	DIR *folder = opendir("tests/machines");
	struct dirent *e;
	size_t n = 0;

	(void)state;
	assert_non_null(folder);
	while ((e = readdir(folder))) {
		AUTO_FREE char *path = xprintf("tests/machines/%s", e->d_name);
		struct source *s;
		struct machine *m;
		struct stat st;

		if (e->d_name[0] == '.' || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		assert_int_equal(open_recording(path, &s), 0);
		m = machine_read(s, &all);
		assert_json_valid(m, path);
		machine_free(m);
		source_free(s);
		n++;
	}
	closedir(folder);
	assert_true(n > 0);
}

/* Each fact is stated once: no member of the document grows with what others already say. */
static void json_of_four_gpus_is_small(void **state)
{
	static const struct machine_request all = {.parts = MACHINE_ALL};
	AUTO_STRBUF struct strbuf b = {0};
	struct topology *t;
	struct diagnosis *d;
	struct machine *m;
	struct source *s;
	json_t *json;

	(void)state;
	assert_int_equal(open_recording("tests/machines/h200x4", &s), 0);
	m = machine_read(s, &all);
	t = topology_new(m);
	d = diagnose(t);
	json = report_check_json(d);
	assert_int_equal(json_lay_out(&b, json), 0);
	assert_in_range(b.len, 1, 60000);
	json_decref(json);
	diagnosis_free(d);
	topology_free(t);
	machine_free(m);
	source_free(s);
}

/* What recordings may not hold: NICs with GIDs, NVLinks, settings, log lines, observations. */
static void built_machine_gives_valid_json(void **state)
{
	static struct rdma_gid gid = {.index = 3};
	static struct rdma_port port = {.number = 1, .gids = &gid, .gid_n = 1};
	struct machine *m = build_switch();

	(void)state;
	gid.gid = fact_str("fe80::1", "test");
	gid.type = fact_int(GID_ROCE_V2, "test");
	build_nic(m, "0000:61:00.0", NULL, "mlx5_0");
	m->rdma[0].ports = &port;
	m->rdma[0].port_n = 1;
	build_nvlinks(&m->gpus[0], 4, NVLINK_REMOTE_SWITCH, "0000:c4:00.0");
	build_setting(m, "NCCL_P2P_LEVEL", "SYS");
	build_observed(m, OBSERVED_PEER_COPY, 0, 1, true);
	build_log(m, LOG_XID, m->gpus[0].pci);
	assert_json_valid(m, "built machine");
	build_free(m);
}

static void validator_can_fail(void **state)
{
	struct machine *m = build_switch();
	struct topology *t = topology_new(m);
	json_t *json = report_topology_json(t);
	AUTO_STRBUF struct strbuf extra = {0}, wrong = {0}, missing = {0};

	(void)state;
	json_object_set_new(json, "surprise", json_true());
	json_schema_check(json, "topo.schema.json", &extra);
	assert_has(strbuf_str(&extra), "surprise: not in the schema");
	json_object_del(json, "surprise");
	json_object_set_new(json_array_get(json_object_get(json, "ways"), 0), "nvlinks",
			    json_string("4"));
	json_schema_check(json, "topo.schema.json", &wrong);
	assert_string_equal(strbuf_str(&wrong), "$.ways[0].nvlinks: wrong type");
	json_object_del(json, "machine");
	json_schema_check(json, "topo.schema.json", &missing);
	assert_string_equal(strbuf_str(&missing), "$: machine");
	json_decref(json);
	topology_free(t);
	build_free(m);
}

static json_t *topology_json(const struct machine *m)
{
	struct topology *t = topology_new(m);
	json_t *json = report_topology_json(t);

	topology_free(t);
	return json;
}

static const json_t *gpu_of(const json_t *json, size_t i)
{
	return json_array_get(json_object_get(json_object_get(json, "machine"), "gpus"), i);
}

/* What the document says of where a fact of a GPU was read, or why it is not known. */
static const char *origin_of(const json_t *json, size_t gpu, const char *state, const char *fact)
{
	json_int_t n = json_integer_value(json_object_get(gpu_of(json, gpu), "facts"));
	json_t *origins = json_array_get(json_object_get(json, "facts"), (size_t)n);

	const json_t *source = json_object_get(json_object_get(origins, state), fact);
	const json_t *sources = json_object_get(json, "sources");

	return source ? json_string_value(
				json_array_get(sources, (size_t)json_integer_value(source)))
		      : NULL;
}

/* Unknown is not there, and its reason is; it is never 0. */
static void unknown_facts_have_no_value(void **state)
{
	struct machine *m = build_switch();
	json_t *json;

	(void)state;
	m->gpus[0].bar1_bytes = fact_int_unknown("not collected");
	m->gpus[0].vram_bytes = fact_int_absent("here");
	m->gpus[0].minor = fact_int(0, "there");
	json = topology_json(m);
	assert_null(json_object_get(gpu_of(json, 0), "bar1_bytes"));
	assert_string_equal(origin_of(json, 0, "unknown", "bar1_bytes"), "not collected");
	assert_null(json_object_get(gpu_of(json, 0), "vram_bytes"));
	assert_string_equal(origin_of(json, 0, "absent", "vram_bytes"), "here");
	assert_int_equal(json_integer_value(json_object_get(gpu_of(json, 0), "minor")), 0);
	assert_string_equal(origin_of(json, 0, "known", "minor"), "there");
	assert_null(origin_of(json, 0, "known", "bar1_bytes"));
	json_decref(json);
	build_free(m);
}

/* What differs in the GPU's own address alone is said once. */
static void facts_read_alike_share_their_origins(void **state)
{
	struct machine *m = build_root_ports(3, 1, 1);
	json_t *json;

	(void)state;
	assert_true(m->gpu_n > 2);
	for (size_t i = 0; i < m->gpu_n; i++) {
		m->gpus[i].minor = fact_int((int64_t)i, arena_printf(m->arena, "proc/%s/minor",
								     m->gpus[i].pci->name));
	}
	m->gpus[2].minor.from = "elsewhere";
	json = topology_json(m);
	assert_string_equal(origin_of(json, 0, "known", "minor"), "proc/{pci}/minor");
	assert_true(json_equal(json_object_get(gpu_of(json, 0), "facts"),
			       json_object_get(gpu_of(json, 1), "facts")));
	assert_string_equal(origin_of(json, 2, "known", "minor"), "elsewhere");
	json_decref(json);
	build_free(m);
}

/* Each pair's way and chain are those of its path, though many pairs refer to the same entries. */
static void pairs_refer_to_what_they_share(void **state)
{
	struct machine *m = build_switch();
	struct topology *t = topology_new(m);
	json_t *json = report_topology_json(t), *pair;
	json_t *links = json_object_get(json, "links"), *ways = json_object_get(json, "ways");
	size_t i, referred = 0;

	(void)state;
	json_array_foreach (json_object_get(json, "pairs"), i, pair) {
		size_t from = i / (t->endpoint_n - 1), to = i % (t->endpoint_n - 1);
		const struct path *p = topology_path(t, from, to + (to >= from));
		json_t *chain = json_object_get(pair, "chain"), *way;
		size_t at = 0;

		way = json_array_get(ways,
				     (size_t)json_integer_value(json_object_get(pair, "way")));
		assert_string_equal(json_string_value(json_object_get(way, "target_port")),
				    p->target_port->name);
		for (int s = 0; s < CHAIN_STEP_N; s++) {
			json_t *number = json_array_get(chain, at), *link;

			if (p->chain[s].state == CHAIN_NA)
				continue;
			link = json_array_get(links, (size_t)json_integer_value(number));
			assert_string_equal(json_string_value(json_object_get(link, "step")),
					    chain_step_word((enum chain_step)s));
			assert_string_equal(json_string_value(json_object_get(link, "reason")),
					    chain_reason_word(p->chain[s].reason));
			at++;
		}
		assert_int_equal(json_array_size(chain), at);
		referred += at;
	}
	assert_true(json_array_size(links) < referred);
	json_decref(json);
	topology_free(t);
	build_free(m);
}

static void json_survives_broken_text(void **state)
{
	struct machine *m = build_switch();
	json_t *json;

	(void)state;
	m->gpus[0].model = fact_str("RTX\xff 4090", "a file\xff");
	json = topology_json(m);
	assert_string_equal(json_string_value(json_object_get(gpu_of(json, 0), "model")),
			    "RTX? 4090");
	assert_string_equal(origin_of(json, 0, "known", "model"), "a file?");
	json_decref(json);
	build_free(m);
}

/* Short values are on one line, and the text means the same as the value. */
static void json_is_laid_out_by_lines(void **state)
{
	json_t *value = json_pack("{s:[{s:i, s:n}, []], s:{}, s:f, s:s}", "list", "a", 1, "b",
				  "empty", "rate", 1.5, "text", "\"quoted\"\n");
	AUTO_STRBUF struct strbuf line = {0}, lines = {0};
	AUTO_FREE char *letters = xmalloc(301);
	json_t *again;

	(void)state;
	assert_int_equal(json_lay_out(&line, value), 0);
	assert_string_equal(
		strbuf_str(&line),
		"{\"list\": [{\"a\": 1, \"b\": null}, []], \"empty\": {}, \"rate\": 1.5, \"text\": "
		"\"\\\"quoted\\\"\\n\"}");
	memset(letters, 'x', 300);
	letters[300] = '\0';
	json_array_append_new(json_object_get(value, "list"), json_string(letters));
	assert_int_equal(json_lay_out(&lines, value), 0);
	assert_has(strbuf_str(&lines),
		   "{\n \"list\": [\n  {\"a\": 1, \"b\": null},\n  [],\n  \"xxx");
	assert_has(strbuf_str(&lines), "xxx\"\n ],\n \"empty\": {},\n \"rate\": 1.5,\n");
	again = json_loads(strbuf_str(&lines), 0, NULL);
	assert_true(json_equal(again, value));
	json_decref(again);
	json_decref(value);
}

/* Lines of check --watch go to a terminal as reports do. */
static void json_holds_nothing_that_a_terminal_obeys(void **state)
{
	json_t *value = json_pack("{s:s}", "text",
				  "\xc2\x9b"
				  "31m\x7f \xc3\xa9");
	AUTO_STRBUF struct strbuf line = {0}, laid_out = {0};

	(void)state;
	assert_int_equal(json_line(&line, value), 0);
	assert_string_equal(line.text, "{\"text\":\"\\u009b31m\\u007f \xc3\xa9\"}");
	assert_int_equal(json_lay_out(&laid_out, value), 0);
	assert_string_equal(laid_out.text, "{\"text\": \"\\u009b31m\\u007f \xc3\xa9\"}");
	json_decref(value);
}

/* Wherever the line is full: within a key, a separator or a value. */
static void lines_that_are_full_lose_nothing(void **state)
{
	(void)state;
	for (size_t n = 100; n < 220; n++) {
		AUTO_FREE char *letters = xmalloc(n + 1);
		AUTO_STRBUF struct strbuf b = {0};
		json_t *value, *again;

		memset(letters, 'x', n);
		letters[n] = '\0';
		value = json_pack("{s:s, s:i, s:[i, {s:n}]}", "first", letters, "facts", 9, "list",
				  1, "none");
		assert_int_equal(json_lay_out(&b, value), 0);
		again = json_loads(strbuf_str(&b), 0, NULL);
		assert_true(json_equal(again, value));
		json_decref(again);
		json_decref(value);
	}
}

/* ---- rules ---- */

static void assert_generated(const char *path, const struct strbuf *expected)
{
	AUTO_FREE char *text = file_text(path);

	if (strcmp(text, strbuf_str(expected)) != 0)
		fail_msg("%s is not what the table of rules gives; run tools/generate", path);
}

static void manuals_are_up_to_date(void **state)
{
	AUTO_STRBUF struct strbuf markdown = {0}, scdoc = {0};

	(void)state;
	report_rules_markdown(&markdown);
	report_rules_scdoc(&scdoc);
	assert_generated("docs/rules.md", &markdown);
	assert_generated("man/onehop-rules.7.scd", &scdoc);
}

static void every_rule_can_be_explained(void **state)
{
	(void)state;
	FOR_EACH_RULE (r) {
		struct document *d = document_new();
		AUTO_STRBUF struct strbuf b = {0};

		report_rule(d, r);
		assert_has(written(d, 400, false, &b), r->id);
		assert_has(strbuf_str(&b), "why:");
		assert_lacks(strbuf_str(&b), "(null)");
		document_free(d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paragraphs_wrap),
		cmocka_unit_test(long_words_stay_whole),
		cmocka_unit_test(commands_can_be_pasted),
		cmocka_unit_test(width_counts_characters),
		cmocka_unit_test(control_characters_are_shown_as_marks),
		cmocka_unit_test(colours_only_if_asked),
		cmocka_unit_test(long_texts_are_written_whole),
		cmocka_unit_test(tables_align_and_wrap),
		cmocka_unit_test(narrow_tables_break_before_the_last_cell),
		cmocka_unit_test(blanks_do_not_add_up),
		cmocka_unit_test(healthy_machine_is_short),
		cmocka_unit_test(blocked_pair_is_marked_and_explained),
		cmocka_unit_test(verdict_comes_before_findings),
		cmocka_unit_test(alike_findings_are_told_once),
		cmocka_unit_test(a_sentence_about_its_subject_has_it_whole),
		cmocka_unit_test(different_findings_stay_apart),
		cmocka_unit_test(notes_are_counted),
		cmocka_unit_test(eight_gpus_fit_80_columns),
		cmocka_unit_test(many_gpus_are_summed_up),
		cmocka_unit_test(numbering_is_mapped_where_it_differs),
		cmocka_unit_test(no_gpu_shows_the_platform),
		cmocka_unit_test(topology_says_why),
		cmocka_unit_test(same_reason_is_one_line),
		cmocka_unit_test(recorded_machines_give_valid_json),
		cmocka_unit_test(json_of_four_gpus_is_small),
		cmocka_unit_test(built_machine_gives_valid_json),
		cmocka_unit_test(validator_can_fail),
		cmocka_unit_test(unknown_facts_have_no_value),
		cmocka_unit_test(facts_read_alike_share_their_origins),
		cmocka_unit_test(pairs_refer_to_what_they_share),
		cmocka_unit_test(json_is_laid_out_by_lines),
		cmocka_unit_test(json_holds_nothing_that_a_terminal_obeys),
		cmocka_unit_test(lines_that_are_full_lose_nothing),
		cmocka_unit_test(a_time_without_an_interval),
		cmocka_unit_test(json_survives_broken_text),
		cmocka_unit_test(manuals_are_up_to_date),
		cmocka_unit_test(every_rule_can_be_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
