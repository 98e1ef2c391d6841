/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers at the next boot: done again at the port that they were planned for, and at no other.
 */
#include "fix_rig.h"

#include "base/alloc.h"
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BOOT_2     "22222222-2222-3333-4444-555555555555\n"
#define FOLDER     "sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0"
#define PORT       FOLDER "/" RIG_DEVICE
#define SWITCH     PORT "/0000:24:00.0"
#define GPU        SWITCH "/0000:25:00.0/0000:26:00.0"
#define SECOND_GPU SWITCH "/0000:25:01.0/0000:27:00.0"
#define AUDIO      SWITCH "/0000:25:00.0/0000:26:00.1"
#define DRIVE      SWITCH "/0000:25:02.0/0000:28:00.0"

/* Registers 0 to 11: IDs, what does not matter here, subclass and class. */
#define CONFIG(ids, class) ids "......" class
#define IS_BRIDGE          CONFIG("\x4c\x10\x32\x82", "\x04\x06")
#define IS_OTHER_BRIDGE    CONFIG("\x4c\x10\x33\x82", "\x04\x06")
#define IS_GPU             CONFIG("\xde\x10\x84\x26", "\x02\x03")
#define IS_OTHER_GPU       CONFIG("\xde\x10\x30\x23", "\x02\x03")
#define IS_AUDIO           CONFIG("\xde\x10\xba\x22", "\x03\x04")
#define IS_DRIVE           CONFIG("\x4d\x14\x0a\xa8", "\x08\x01")
#define IS_VIRTUAL         CONFIG("\xff\xff\xff\xff", "\x02\x03")

static int make_rig(void **state)
{
	return rig_setup(state, 20261122);
}

static enum fix_result apply(struct rig *g, struct plan *p)
{
	enum fix_result result;
	unsigned number;

	if (fix_apply(&g->run, p, &result, &number) < 0)
		fail_msg("%s", err_msg());
	return result;
}

static enum fix_result undo(struct rig *g, unsigned number)
{
	enum fix_result result;

	if (fix_undo(&g->run, number, &result, &number) < 0)
		fail_msg("%s", err_msg());
	return result;
}

#define assert_said(s)                                                                             \
	do {                                                                                       \
		if (!strstr(err_msg(), s))                                                         \
			fail_msg("\"%s\" says nothing of \"%s\"", err_msg(), s);                   \
	} while (0)

/* ---- a tree of sysfs ---- */

static char *link_path(const char *folder)
{
	return xprintf("sys/bus/pci/devices/%s", strrchr(folder, '/') + 1);
}

static void link_device(const struct rig *g, const char *folder)
{
	AUTO_FREE char *at = link_path(folder), *whole = xprintf("%s/%s", g->root, at);
	AUTO_FREE char *target = xprintf("../../../../%s", folder);

	assert_int_equal(symlink(target, whole), 0);
}

static void put_device(const struct rig *g, const char *folder, const char *config)
{
	AUTO_FREE char *path = xprintf("%s/config", folder), *link = link_path(folder);

	rig_put(g, path, config);
	if (!rig_exists(g, link))
		link_device(g, folder);
}

static void take_out(const struct rig *g, const char *folder)
{
	AUTO_FREE char *config = xprintf("%s/config", folder), *link = link_path(folder);

	rig_remove(g, link);
	rig_remove(g, config);
}

/* Its folder goes there; its link leads there. */
static void move_port(const struct rig *g, const char *folder)
{
	AUTO_FREE char *link = link_path(folder), *from = xprintf("%s/%s", g->root, link);
	AUTO_FREE char *to = xprintf("%s/%s", g->root, folder), *real = realpath(from, NULL);
	AUTO_FREE char *made = xprintf("%s/x", folder);
	bool is_link = strcmp(real, from) != 0;

	rig_put(g, made, "");
	rig_remove(g, made);
	rig_remove(g, folder);
	assert_int_equal(rename(real, to), 0);
	if (is_link)
		rig_remove(g, link);
	link_device(g, folder);
}

/*
 * The port of the rig, a switch below it, two GPUs of a kind below that, one with its audio, a
 * drive.
 */
static void put_tree(const struct rig *g)
{
	move_port(g, PORT);
	put_device(g, SWITCH, IS_BRIDGE);
	put_device(g, GPU, IS_GPU);
	put_device(g, AUDIO, IS_AUDIO);
	put_device(g, SECOND_GPU, IS_GPU);
	put_device(g, DRIVE, IS_DRIVE);
}

static void start_again(const struct rig *g)
{
	rig_put(g, "proc/sys/kernel/random/boot_id", BOOT_2);
	rig_set_register(g, RIG_DEVICE, 0x001d);
}

static void fix_port(struct rig *g)
{
	AUTO_PLAN struct plan *p = plan_new();

	rig_acs(p, RIG_DEVICE, "001d", "0011")->again_at_boot = true;
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x0011);
}

/* ---- what may change, and what may not ---- */

static void nothing(const struct rig *g)
{
	(void)g;
}

static void more_of_it(const struct rig *g)
{
	put_device(g, SWITCH "/0000:25:03.0/0000:29:00.0", IS_GPU);
	put_device(g, SWITCH "/0000:25:04.0/0000:2a:00.0", IS_OTHER_GPU);
	put_device(g, SWITCH "/0000:25:00.0/0000:26:02.0", IS_VIRTUAL);
}

static void less_of_it(const struct rig *g)
{
	take_out(g, AUDIO);
	take_out(g, DRIVE);
	take_out(g, SECOND_GPU);
}

static void buses_moved(const struct rig *g)
{
	move_port(g, "sys/devices/pci0000:20/0000:20:01.0/0000:2f:00.0/" RIG_DEVICE);
	rig_remove(g, "sys/bus/pci/devices/0000:24:00.0");
	rig_remove(g, "sys/bus/pci/devices/0000:26:00.0");
	link_device(g,
		    "sys/devices/pci0000:20/0000:20:01.0/0000:2f:00.0/" RIG_DEVICE "/0000:24:00.0");
	link_device(g, "sys/devices/pci0000:20/0000:20:01.0/0000:2f:00.0/" RIG_DEVICE
		       "/0000:24:00.0/0000:25:00.0/0000:26:00.0");
}

static void other_cards(const struct rig *g)
{
	put_device(g, GPU, IS_OTHER_GPU);
	put_device(g, SECOND_GPU, IS_OTHER_GPU);
}

static void other_switch(const struct rig *g)
{
	put_device(g, SWITCH, IS_OTHER_BRIDGE);
}

static void empty(const struct rig *g)
{
	less_of_it(g);
	take_out(g, GPU);
	take_out(g, SWITCH);
}

static void a_card_fell_off(const struct rig *g)
{
	put_device(g, SWITCH, IS_VIRTUAL);
}

static void other_slot(const struct rig *g)
{
	move_port(g, "sys/devices/pci0000:20/0000:20:02.0/0000:21:00.0/" RIG_DEVICE);
}

static void other_root(const struct rig *g)
{
	move_port(g, "sys/devices/pci0000:21/0000:21:01.0/0000:2f:00.0/" RIG_DEVICE);
}

static void less_deep(const struct rig *g)
{
	move_port(g, "sys/devices/pci0000:20/" RIG_DEVICE);
}

static const struct {
	const char *name;
	void (*change)(const struct rig *g);
	const char *said; /* NULL: done again */
} cases[] = {
	{"nothing changed", nothing, NULL},
	{"more below it", more_of_it, NULL},
	{"less below it, one of its kind is left", less_of_it, NULL},
	{"other bus numbers", buses_moved, NULL},
	{"cards of another kind", other_cards,
	 RIG_DEVICE
	 ": ACS+6 stays as it is: below that port is 104c:8232 10de:2330 now, not 104c:8232 "
	 "10de:2684"},
	{"another switch", other_switch, "is 104c:8233 10de:2684 now, not 104c:8232 10de:2684"},
	{"nothing below it", empty, "is nothing now, not 104c:8232 10de:2684"},
	{"what is below does not answer", a_card_fell_off, "is nothing now, not 104c:8232"},
	{"another slot", other_slot,
	 RIG_DEVICE
	 " is another port now: at pci0000:20/02.0/00.0/00.0, not at pci0000:20/01.0/00.0/00.0"},
	{"another root", other_root, "at pci0000:21/01.0/00.0/00.0, not at pci0000:20/"},
	{"less deep", less_deep, "at pci0000:20/00.0, not at pci0000:20/"},
};

static void test_same_port_only(void **state)
{
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t n;

		rig_reset(g);
		put_tree(g);
		fix_port(g);
		start_again(g);
		cases[i].change(g);
		print_message("%s\n", cases[i].name);
		assert_int_equal(fix_at_boot(&g->run, &n), cases[i].said ? -ENODEV : 0);
		assert_int_equal(n, !cases[i].said);
		assert_int_equal(g->events[FIX_STEP_FAILED], cases[i].said ? 1 : 0);
		assert_int_equal(rig_register(g, RIG_DEVICE), cases[i].said ? 0x001d : 0x0011);
		if (cases[i].said)
			assert_said(cases[i].said);
	}
}

/* A port of two stays what it was: it is done, whatever becomes of the other. */
static void test_others_are_done(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	size_t n;

	put_tree(g);
	rig_acs(p, RIG_DEVICE, "001d", "0011")->again_at_boot = true;
	rig_acs(p, RIG_OTHER, "001d", "0011")->again_at_boot = true;
	assert_int_equal(apply(g, p), FIX_DONE);
	start_again(g);
	rig_set_register(g, RIG_OTHER, 0x001d);
	other_cards(g);
	assert_int_equal(fix_at_boot(&g->run, &n), -ENODEV);
	assert_int_equal(n, 1);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x001d);
	assert_int_equal(rig_register(g, RIG_OTHER), 0x0011);
}

/* ---- undoing ---- */

/* Bits of a port that is another now are not set: it is another's how they are. */
static void test_undo_elsewhere(void **state)
{
	struct rig *g = *state;

	put_tree(g);
	fix_port(g);
	rig_put(g, "proc/sys/kernel/random/boot_id", BOOT_2);
	other_slot(g);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_int_equal(g->events[FIX_UNDO_SKIPPED], 1);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x0011);
}

/* What is below it is no reason: bits that are set keep devices apart. */
static void test_undo_with_other_cards(void **state)
{
	struct rig *g = *state;

	put_tree(g);
	fix_port(g);
	empty(g);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x001d);
}

/* ---- two fixes ---- */

/* The later one knows the machine as it is now; undone, it leaves the earlier one in force. */
static void test_later_fix_counts(void **state)
{
	struct rig *g = *state;
	size_t n;

	put_tree(g);
	fix_port(g);
	rig_set_register(g, RIG_DEVICE, 0x001d);
	other_cards(g);
	assert_int_equal(fix_at_boot(&g->run, &n), -ENODEV);
	fix_port(g);
	start_again(g);
	assert_int_equal(fix_at_boot(&g->run, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x0011);
	assert_int_equal(undo(g, 2), FIX_DONE);
	start_again(g);
	assert_int_equal(fix_at_boot(&g->run, &n), -ENODEV);
	assert_said("not 104c:8232 10de:2684");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_rig, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_same_port_only),   TEST(test_others_are_done),
		TEST(test_undo_elsewhere),   TEST(test_undo_with_other_cards),
		TEST(test_later_fix_counts),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
