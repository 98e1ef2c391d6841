/* SPDX-License-Identifier: Apache-2.0 */
/* topology/draw.c: well-formed, the same every time, nothing on top of anything else, and what is
 * wrong is marked. */
#include "topology/topology.h"

#include "base/strbuf.h"
#include "build_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char from[] = "test";

static void draw(struct machine *m, struct strbuf *out)
{
	struct topology *t = topology_new(m);

	topology_draw_svg(t, out);
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

/* Tags nest, no stray < or &, only ASCII. Collects the rectangles. */
static size_t parse(const char *svg, struct rect *rects, size_t max)
{
	const char *open[16];
	size_t depth = 0, rect_n = 0;

	for (const char *s = svg; *s; s++) {
		const char *end;

		assert_true((*s >= ' ' && *s <= '~') || *s == '\n');
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
					      has_class(s, n, "host port gpu nic bar")};
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
	assert_int_equal(count(m, "class=\"bar\""), 1);
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
	assert_int_equal(count(m, "class=\"bar\""), 2);
	build_free(m);
}

static void marks_are_where_it_is_wrong(void **state)
{
	struct machine *m = two_switches();

	(void)state;
	m->gpus[0].pci->acs_ctl = fact_int(0x1d, from); /* decides nothing */
	make_wrong(m);
	assert_int_equal(count(m, "ACS 001d: RR CR<"), 3);
	assert_int_equal(count(m, ">BAR1 256 MiB<"), 1);
	assert_int_equal(count(m, ">IOMMU translates<"), 6);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_machines),   cmocka_unit_test(switches),
		cmocka_unit_test(nested_switches), cmocka_unit_test(nvlinks),
		cmocka_unit_test(nvlink_bridges),  cmocka_unit_test(marks_are_where_it_is_wrong),
		cmocka_unit_test(hostile_text),    cmocka_unit_test(nothing_to_draw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
