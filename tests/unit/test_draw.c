/* SPDX-License-Identifier: Apache-2.0 */
/* topology/draw.c: well-formed, the same every time, nothing on top of anything else, and what is
 * wrong is marked. */
#include "topology/topology.h"

#include "base/alloc.h"
#include "base/markup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "build_machine.h"
#include "judged.h"
#include "open_recording.h"
#include "run_command.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const char from[] = "test";

static void draw(struct machine *m, struct strbuf *out)
{
	struct topology *t = topology_new(m);

	topology_draw_svg(t, &(struct drawing_request){0}, out);
	topology_free(t);
	if (getenv("DRAW_KEEP")) {
		static int n;
		char name[64];
		FILE *f;

		snprintf(name, sizeof(name), "%s-%02d.svg", getenv("DRAW_KEEP"), n++);
		f = fopen(name, "we");
		fputs(strbuf_str(out), f);
		fclose(f);
	}
}

/* ---- XML and geometry ---- */

struct rect {
	int x, y, w, h;
	bool is_box; /* a device, port, host bridge or NVLink bar */
};

static int attribute(const char *tag, size_t n, const char *name)
{
	char key[32];
	const char *at;

	snprintf(key, sizeof(key), " %s=\"", name);
	at = memmem(tag, n, key, strlen(key));
	return at ? (int)strtol(at + strlen(key), NULL, 10) : 0;
}

static bool has_class(const char *tag, size_t n, const char *names)
{
	char key[48];
	const char *end;

	for (; *names; names = *end ? end + 1 : end) {
		end = strchrnul(names, ' ');
		snprintf(key, sizeof(key), "class=\"%.*s\"", (int)(end - names), names);
		if (memmem(tag, n, key, strlen(key)))
			return true;
	}
	return false;
}

/* Tags nest, no stray < or &, no control characters. Collects the rectangles. */
static size_t parse(const char *svg, struct rect *rects, size_t max)
{
	const char *open[16];
	size_t depth = 0, rect_n = 0;

	for (const char *s = svg; *s; s++) {
		const char *end;

		assert_true((unsigned char)*s >= ' ' || *s == '\n');
		if (*s == '&')
			assert_non_null(memchr(s, ';', 6));
		if (*s != '<')
			continue;
		end = strchr(s, '>');
		assert_non_null(end);
		if (s[1] == '/') {
			assert_true(depth > 0);
			depth--;
			assert_memory_equal(open[depth], s + 2, (size_t)(end - s - 2));
		} else if (end[-1] != '/') {
			assert_true(depth < 16);
			open[depth++] = s + 1;
		}
		if (strncmp(s, "<rect", 5) == 0 && rect_n < max) {
			size_t n = (size_t)(end - s);

			rects[rect_n++] =
				(struct rect){attribute(s, n, "x"), attribute(s, n, "y"),
					      attribute(s, n, "width"), attribute(s, n, "height"),
					      has_class(s, n, "o-host o-port o-gpu o-nic o-bar")};
		}
		s = end;
	}
	assert_int_equal(depth, 0);
	return rect_n;
}

static bool overlap(const struct rect *a, const struct rect *b)
{
	return a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h && b->y < a->y + a->h;
}

static bool inside(const struct rect *a, const struct rect *b)
{
	return a->x >= b->x && a->y >= b->y && a->x + a->w <= b->x + b->w &&
	       a->y + a->h <= b->y + b->h;
}

/* Boxes never meet; any other two rectangles are apart or one lies in the other. */
static void check_geometry(const struct rect *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_true(inside(&r[i], &r[0]));
		for (size_t j = 0; j < i; j++) {
			if (!overlap(&r[i], &r[j]))
				continue;
			assert_false(r[i].is_box && r[j].is_box);
			assert_true(inside(&r[i], &r[j]) || inside(&r[j], &r[i]));
		}
	}
}

static void check_drawing(struct machine *m)
{
	AUTO_STRBUF struct strbuf out = {0}, again = {0};
	static struct rect rects[4096];
	size_t n, boxes = 0;

	draw(m, &out);
	draw(m, &again);
	assert_string_equal(strbuf_str(&out), strbuf_str(&again));
	n = parse(strbuf_str(&out), rects, sizeof(rects) / sizeof(*rects));
	check_geometry(rects, n);
	for (size_t i = 0; i < n; i++)
		boxes += rects[i].is_box;
	assert_true(boxes >= m->gpu_n + m->rdma_n);
}

static size_t count(struct machine *m, const char *what)
{
	AUTO_STRBUF struct strbuf out = {0};
	size_t n = 0;

	draw(m, &out);
	for (const char *s = strstr(strbuf_str(&out), what); s; s = strstr(s + 1, what))
		n++;
	return n;
}

/* ---- machines ---- */

/* Two switches with two GPUs and a NIC each; everything that can be wrong is. */
static struct machine *two_switches(void)
{
	struct machine *m = build_machine();

	build_nodes(m, 2, 2);
	for (unsigned i = 0; i < 2; i++) {
		unsigned bus = 0x20 + i * 0x40;
		struct pci_function *root, *up, *down[3];
		char address[PCI_ADDRESS_LEN];

		snprintf(address, sizeof(address), "0000:%02x:01.1", bus);
		root = build_port(m, address, NULL, PCI_PORT_ROOT);
		root->numa_node = fact_int(i, from);
		snprintf(address, sizeof(address), "0000:%02x:00.0", bus + 1);
		up = build_port(m, address, root, PCI_PORT_UPSTREAM);
		for (unsigned j = 0; j < 3; j++) {
			snprintf(address, sizeof(address), "0000:%02x:%02x.0", bus + 2, j);
			down[j] = build_port(m, address, up, PCI_PORT_DOWNSTREAM);
			down[j]->acs_ctl = fact_int(i ? 0 : 0x1d, from);
		}
		for (unsigned j = 0; j < 3; j++) {
			snprintf(address, sizeof(address), "0000:%02x:00.0", bus + 3 + j);
			if (j < 2)
				build_gpu(m, address, down[j]);
			else
				build_nic(m, address, down[j], i ? "mlx5_1" : "mlx5_0");
		}
	}
	return m;
}

static void make_wrong(struct machine *m)
{
	build_iommu(m, "DMA");
	m->gpus[1].bar1_bytes = fact_int(256 << 20, from);
	m->gpus[2].pci->link_width = fact_int(4, from);
	m->gpus[3].pci->link_speed = fact_int(2500, from);
	m->gpus[3].performance_state = fact_int(8, from);
}

static void good_machines(void **state)
{
	static const unsigned sizes[] = {2, 3, 4, 8, 16, 64};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct machine *m =
			build_root_ports(sizes[i], sizes[i] > 4 ? 8 : 1, sizes[i] > 4 ? 2 : 1);

		check_drawing(m);
		build_free(m);
	}
}

static void switches(void **state)
{
	struct machine *m = two_switches();

	(void)state;
	check_drawing(m);
	make_wrong(m);
	check_drawing(m);
	assert_int_equal(count(m, "PCIe switch"), 2);
	build_free(m);
}

/* Ports with several marks are taller than the one GPU below them. */
static void nested_switches(void **state)
{
	struct machine *m = build_machine();
	struct pci_function *f = NULL;
	char address[PCI_ADDRESS_LEN];

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		snprintf(address, sizeof(address), "0000:%02x:00.0", 0x10 + i);
		f = build_port(m, address, f,
			       !i      ? PCI_PORT_ROOT
			       : i % 2 ? PCI_PORT_UPSTREAM
				       : PCI_PORT_DOWNSTREAM);
		f->acs_ctl = fact_int(0x7f, from);
		if (i % 2 == 0)
			continue;
		snprintf(address, sizeof(address), "0000:%02x:01.0", 0x10 + i);
		build_nic(m, address, m->pci[m->pci_n - 2].parent, "mlx5_0");
	}
	build_gpu(m, "0000:20:00.0", f);
	build_gpu(m, "0000:21:00.0", NULL);
	check_drawing(m);
	build_free(m);
}

static void nvlinks(void **state)
{
	struct machine *m = build_root_ports(8, 2, 2);

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		build_model(&m->gpus[i], "NVIDIA H200", 90);
		build_nvlinks(&m->gpus[i], 18, NVLINK_REMOTE_SWITCH, "");
	}
	check_drawing(m);
	assert_int_equal(count(m, ">NV18<"), 8);
	assert_int_equal(count(m, "class=\"o-bar\""), 1);
	build_free(m);
}

/* Bridges between 0-2, 1-3: the bars stand beside each other. */
static void nvlink_bridges(void **state)
{
	struct machine *m = build_root_ports(4, 1, 1);

	(void)state;
	for (size_t i = 0; i < 4; i++)
		build_nvlinks(&m->gpus[i], 4, NVLINK_REMOTE_GPU, m->gpus[(i + 2) % 4].pci->name);
	check_drawing(m);
	assert_int_equal(count(m, "class=\"o-bar\""), 2);
	build_free(m);
}

static void marks_are_where_it_is_wrong(void **state)
{
	struct machine *m = two_switches();

	(void)state;
	m->gpus[0].pci->acs_ctl = fact_int(0x1d, from); /* decides nothing */
	make_wrong(m);
	assert_int_equal(count(m, "ACS 001d: RR CR<"), 3);
	assert_int_equal(count(m, ">x BAR1 256 MiB<"), 1);
	assert_int_equal(count(m, " IOMMU translates<"), 6);
	assert_int_equal(count(m, "16.0 GT/s x4 of x16"), 1);
	assert_int_equal(count(m, "16.0 GT/s x16, idle"), 1);
	assert_int_equal(count(m, "sends peer requests up to the root complex</title>"), 3);
	build_free(m);
}

static void hostile_text(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	build_model(&m->gpus[0], "<script>\"&\x01\xff]]>", 89);
	build_model(&m->gpus[1], "A model whose name is far too long for the box that it stands in",
		    89);
	m->nodes[0].cpus = fact_str("0-\x1b<", from);
	check_drawing(m);
	assert_int_equal(count(m, "<script"), 0);
	assert_int_equal(count(m, "A model whose name is far too lo..<"), 1);
	build_free(m);
}

static void nothing_to_draw(void **state)
{
	struct machine *m = build_machine();

	(void)state;
	check_drawing(m);
	assert_int_equal(count(m, "No GPU"), 1);
	build_free(m);
}

/* ---- recorded machines: what check names is marked where it is ---- */

/* The first rectangle behind s. */
static struct rect rect_behind(const char *s)
{
	const char *tag = strstr(s, "<rect"), *end = tag ? strchr(tag, '>') : NULL;
	size_t n;

	assert_non_null(end);
	n = (size_t)(end - tag);
	return (struct rect){attribute(tag, n, "x"), attribute(tag, n, "y"),
			     attribute(tag, n, "width"), attribute(tag, n, "height"), false};
}

/* The box with this address in it; false: it is not drawn. */
static bool find_box(const char *svg, const char *address, struct rect *ret)
{
	AUTO_FREE char *text = xprintf(">%s</text>", address);
	const char *at = strstr(svg, text), *tag;

	if (!at)
		return false;
	for (tag = at; strncmp(tag, "<text", 5) != 0;)
		tag--;
	*ret = (struct rect){attribute(tag, (size_t)(at - tag), "x"),
			     attribute(tag, (size_t)(at - tag), "y"), 1, 1, false};
	for (const char *s = strstr(svg, "<rect"); s; s = strstr(s + 1, "<rect")) {
		struct rect r = rect_behind(s);

		if (has_class(s, (size_t)(strchr(s, '>') - s), "o-port o-gpu o-nic") &&
		    inside(ret, &r)) {
			*ret = r;
			return true;
		}
	}
	return false;
}

/* The line that stands for a finding in the title of a mark. */
static char *title_of(const struct finding *f)
{
	AUTO_FREE char *plain = xprintf("%s: %s: %s [%s]", severity_word(f->severity), f->subject,
					f->sentence, f->rule->id);
	struct strbuf b = {0};

	markup_add(&b, plain, strlen(plain));
	return b.text;
}

static bool is_marked_at(const char *svg, const struct finding *f, const struct pci_function *pci)
{
	AUTO_FREE char *title = title_of(f), *id = xprintf("[%s]", f->rule->id);
	const char *at = strstr(svg, title);
	struct rect box, mark;

	if (!pci || !find_box(svg, pci->name, &box))
		return strstr(svg, id) != NULL; /* in the list below, a line for each rule */
	for (; at; at = strstr(at + 1, title)) {
		mark = rect_behind(at);
		if (inside(&mark, &box))
			return true;
	}
	/* One of more than there is room for. */
	for (at = svg; (at = strstr(at, "onehop check lists them</title>")); at++) {
		mark = rect_behind(at);
		if (inside(&mark, &box))
			return true;
	}
	return false;
}

static bool is_marked(const char *svg, const struct finding *f)
{
	for (size_t i = 0; i < f->named_n; i++)
		if (!is_marked_at(svg, f, f->named[i]))
			return false;
	return (!f->pci && f->named_n) || is_marked_at(svg, f, f->pci);
}

/* Returns how many findings name a device. */
static size_t check_marks(const char *path)
{
	AUTO_FREE char *line = xprintf("topo --svg - --from %s", path);
	struct result r CLEANUP(result_done) = run_command(line);
	const struct machine_request request = {.parts = MACHINE_TO_JUDGE};
	static struct rect rects[4096];
	struct judged j CLEANUP(judged_done) = {0};
	struct source *s;
	size_t n = 0;

	assert_int_equal(open_recording(path, &s), 0);
	j = judge_read(machine_read(s, &request));
	source_free(s);
	check_geometry(rects, parse(r.out, rects, sizeof(rects) / sizeof(*rects)));
	for (size_t i = 0; i < j.d->finding_n; i++) {
		const struct finding *f = &j.d->findings[i];

		if (f->severity == SEVERITY_INFO)
			continue;
		if (!is_marked(r.out, f))
			fail_msg("%s: no mark for %s at %s: %s", path, f->rule->id, f->subject,
				 f->sentence);
		n += f->pci || f->named_n;
	}
	return n;
}

static void findings_are_marked_at_their_devices(void **state)
{
	DIR *d = opendir("tests/machines");
	const struct dirent *e;
	size_t n = 0;

	(void)state;
	assert_non_null(d);
	while ((e = readdir(d))) {
		AUTO_FREE char *path = xprintf("tests/machines/%s", e->d_name);
		AUTO_FREE char *note = xprintf("%s/note.txt", path);
		struct stat st;

		if (stat(note, &st) == 0)
			n += check_marks(path);
	}
	closedir(d);
	assert_true(n > 50);
}

/* Devices that a finding names besides its subject, or without having one. */
static const struct {
	const char *machine, *rule, *device;
} named[] = {
	{"made-up-4090-milan", "link-even", "GPU2"},
	{"made-up-4090-milan", "link-even", "GPU6"},
	{"made-up-4090-genoa-48g", "link-even", "GPU5"},
	{"guest-workstation4", "bar1-window", "0000:00:04.0"},
	{"made-up-bar1-realloc", "bar1-window", "0000:00:01.1"},
	{"guest-chipset", "gpu-behind-chipset", "0000:03:00.0"},
	{"guest-rdma", "gpu-behind-chipset", "0000:03:00.0"},
	{"made-up-nic-far-used", "nic-far", "GPU0"},
	{"made-up-nic-far-used", "nic-far", "GPU1"},
	{"made-up-old-xeon", "host-bridge", "GPU0"},
	{"made-up-old-xeon", "host-bridge", "GPU1"},
	{"made-up-observed-slow", "observed-slow", "GPU0"},
	{"made-up-observed-fails", "observed-fails", "GPU1"},
	{"made-up-gdr-gpu-old", "gdr-gpu-old", "GPU0"},
	{"made-up-fix-due", "fix-in-effect", "0000:22:00.0"},
};

static void all_named_devices_are_marked(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++) {
		AUTO_FREE char *line =
			xprintf("topo --svg - --from tests/machines/%s", named[i].machine);
		AUTO_FREE char *id = xprintf("[%s]", named[i].rule);
		struct result r CLEANUP(result_done) = run_command(line);
		struct rect box, mark;
		bool found = false;

		assert_true(find_box(r.out, named[i].device, &box));
		for (const char *at = r.out; !found && (at = strstr(at, id)); at++) {
			mark = rect_behind(at);
			found = inside(&mark, &box);
		}
		if (!found)
			fail_msg("%s: %s is not marked for %s", named[i].machine, named[i].device,
				 named[i].rule);
	}
}

/*
 * What stands in a box fits it: see check_geometry; the model is the name that the text gives too.
 */
static void texts_are_those_of_check(void **state)
{
	struct result r CLEANUP(result_done) =
		run_command("topo --svg - --from tests/machines/guest-vfio");

	(void)state;
	assert_non_null(strstr(r.out, "H100 SXM5"));
	assert_null(strstr(r.out, "model unknown"));
}

static struct draw_note note(const struct pci_function *at, enum chain_state state,
			     const char *rule, const char *title)
{
	return (struct draw_note){.at = at, .state = state, .rule = rule, .title = title};
}

/*
 * Five rules fit a box, with all their notes; the others are counted. Each rule is explained below,
 * outside of pages.
 */
static void notes_of_others(void **state)
{
	struct machine *m = build_two_root_ports();
	struct topology *t = topology_new(m);
	const struct pci_function *gpu = m->gpus[0].pci;
	const struct draw_note notes[] = {
		note(gpu, CHAIN_POSSIBLE, "one", "warning: one"),
		note(gpu, CHAIN_BAD, "two", "error: two <&>"),
		note(gpu, CHAIN_BAD, "two", "error: two again"),
		note(gpu, CHAIN_BAD, "three", "error: three"),
		note(gpu, CHAIN_POSSIBLE, "four", "warning: four"),
		note(gpu, CHAIN_BAD, "five", "error: five"),
		note(gpu, CHAIN_BAD, "six", "error: six"),
		note(gpu, CHAIN_BAD, "seven", "error: seven"),
		note(NULL, CHAIN_BAD, "driver", "error: the driver: all of it"),
	};
	struct drawing_request request = {.notes = notes, .note_n = sizeof(notes) / sizeof(*notes)};
	AUTO_STRBUF struct strbuf out = {0}, in_page = {0};
	static struct rect rects[256];

	(void)state;
	topology_draw_svg(t, &request, &out);
	check_geometry(rects, parse(out.text, rects, 256));
	assert_non_null(
		strstr(out.text, "<title>error: two &lt;&amp;&gt;\nerror: two again</title>"));
	assert_non_null(strstr(out.text, ">x two (2)<"));
	assert_non_null(strstr(out.text, " and 2 more<"));
	assert_null(strstr(out.text, ">x six<"));
	assert_non_null(strstr(out.text, ">error: six<"));
	assert_non_null(strstr(out.text, ">error: two &lt;&amp;&gt; (and 1 more)<"));
	assert_non_null(strstr(out.text, ">error: the driver: all of it<"));
	request.in_page = true;
	topology_draw_svg(t, &request, &in_page);
	assert_null(strstr(in_page.text, ">error: six<"));
	assert_non_null(strstr(in_page.text, ">error: the driver: all of it<"));
	topology_free(t);
	build_free(m);
}

/* ---- many devices ---- */

/* Switches with two GPUs and a NIC each. */
static struct machine *many_switches(unsigned n)
{
	struct machine *m = build_machine();

	build_nodes(m, 2, 2);
	for (unsigned i = 0; i < n; i++) {
		struct pci_function *up, *down[3];
		char address[PCI_ADDRESS_LEN];

		snprintf(address, sizeof(address), "%04x:00:01.0", i);
		up = build_port(m, address, NULL, PCI_PORT_ROOT);
		up->numa_node = fact_int(i % 2, from);
		snprintf(address, sizeof(address), "%04x:01:00.0", i);
		up = build_port(m, address, up, PCI_PORT_UPSTREAM);
		for (unsigned j = 0; j < 3; j++) {
			snprintf(address, sizeof(address), "%04x:02:%02x.0", i, j);
			down[j] = build_port(m, address, up, PCI_PORT_DOWNSTREAM);
			down[j]->acs_ctl = fact_int(0x1d, from);
		}
		for (unsigned j = 0; j < 3; j++) {
			snprintf(address, sizeof(address), "%04x:%02x:00.0", i, 3 + j);
			if (j < 2)
				build_gpu(m, address, down[j]);
			else
				build_nic(m, address, down[j], "mlx5_0");
		}
	}
	return m;
}

/*
 * What is the same as something before it is folded, what differs is not, and all keep their marks.
 */
static void same_switches_are_folded(void **state)
{
	struct machine *m = many_switches(6);
	size_t marks = 0;

	(void)state;
	check_drawing(m);
	assert_int_equal(count(m, "with all below it the same as"), 5);
	assert_int_equal(count(m, ">0005:02:00.0<"), 1);
	marks = count(m, "sends peer requests up to the root complex</title>");
	assert_int_equal(marks, 6 * 3);
	m->gpus[7].pci->link_width = fact_int(4, from);
	check_drawing(m);
	assert_int_equal(count(m, "with all below it the same as"), 4);
	assert_int_equal(count(m, "16.0 GT/s x4 of x16"), 1);
	build_free(m);
	m = many_switches(5); /* 15 devices */
	assert_int_equal(count(m, "with all below it the same as"), 0);
	build_free(m);
}

/* Where GPUs of many sockets are joined by NVLink, they keep their place at a bar. */
static void nvlinks_are_not_folded(void **state)
{
	struct machine *m = many_switches(12);

	(void)state;
	for (size_t i = 0; i < m->gpu_n; i++) {
		build_model(&m->gpus[i], "NVIDIA H200", 90);
		build_nvlinks(&m->gpus[i], 18, NVLINK_REMOTE_SWITCH, "");
	}
	check_drawing(m);
	assert_int_equal(count(m, "with all below it the same as"), 0);
	assert_int_equal(count(m, ">NV18<"), m->gpu_n);
	build_free(m);
}

static void check_shape(struct machine *m, const char *what)
{
	AUTO_STRBUF struct strbuf out = {0};
	int width, height;

	draw(m, &out);
	width = attribute(out.text, 200, "width");
	height = attribute(out.text, 200, "height");
	if (height > 3000 || height > 3 * width)
		fail_msg("%s: %d x %d", what, width, height);
	build_free(m);
}

static void large_drawings_are_not_towers(void **state)
{
	(void)state;
	check_shape(build_root_ports(64, 8, 2), "64 GPUs at root ports");
	check_shape(many_switches(32), "64 GPUs below switches");
	check_shape(build_root_ports(16, 1, 1), "16 GPUs of one node");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(findings_are_marked_at_their_devices),
		cmocka_unit_test(all_named_devices_are_marked),
		cmocka_unit_test(texts_are_those_of_check),
		cmocka_unit_test(notes_of_others),
		cmocka_unit_test(same_switches_are_folded),
		cmocka_unit_test(nvlinks_are_not_folded),
		cmocka_unit_test(large_drawings_are_not_towers),
		cmocka_unit_test(good_machines),
		cmocka_unit_test(switches),
		cmocka_unit_test(nested_switches),
		cmocka_unit_test(nvlinks),
		cmocka_unit_test(nvlink_bridges),
		cmocka_unit_test(marks_are_where_it_is_wrong),
		cmocka_unit_test(hostile_text),
		cmocka_unit_test(nothing_to_draw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
