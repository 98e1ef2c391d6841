/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine/module_torn: what a power cut leaves of a copied module is told from another build of it.
 */
#include "machine/module_torn.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "fix_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define KERNEL "6.1.0-56-amd64"
#define BUILD  "var/lib/dkms/nvidia-current/550.90.07/" KERNEL "/x86_64/module"
#define PLACE  "lib/modules/" KERNEL "/updates/dkms"
#define SIZE   20000

struct tree {
	struct rig rig;
	char built[SIZE], here[2 * SIZE];
};

static void write_file(const struct tree *t, const char *path, const char *data, size_t size)
{
	AUTO_FREE char *whole = xprintf("%s/%s", t->rig.root, path);
	AUTO_CLOSE int fd = -1;

	rig_put(&t->rig, path, "");
	fd = open(whole, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_true(fd >= 0 && write(fd, data, size) == (ssize_t)size);
}

/* What is found with so much of `here` in the module's place. */
static int look(struct tree *t, size_t size, struct strbuf *out)
{
	write_file(t, PLACE "/nvidia.ko", t->here, size);
	return module_torn_list(t->rig.host.root_fd, KERNEL, "x86_64", out);
}

static void assert_torn(struct tree *t, size_t size, bool torn)
{
	AUTO_STRBUF struct strbuf out = {0};

	assert_int_equal(look(t, size, &out), 0);
	assert_string_equal(strbuf_str(&out),
			    torn ? "nvidia-current/550.90.07 " PLACE "/nvidia.ko\n" : "");
	memcpy(t->here, t->built, SIZE);
}

static void what_is_missing_is_torn(void **state)
{
	static const size_t sizes[] = {0, 1, 4095, 4096, 4097, SIZE / 2, SIZE - 1};
	struct tree *t = *state;

	assert_torn(t, SIZE, false);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		assert_torn(t, sizes[i], true);
	for (size_t at = 0; at < SIZE; at += 4096) {
		memset(t->here + at, 0, SIZE - at < 4096 ? SIZE - at : 4096);
		assert_torn(t, SIZE, true);
	}
	memset(t->here, 0, SIZE);
	assert_torn(t, SIZE, true);
	memset(t->here + 4096, 0, 4096);
	assert_torn(t, SIZE / 2, true);
}

static void another_build_is_not(void **state)
{
	struct tree *t = *state;

	t->here[5000] ^= 1;
	assert_torn(t, SIZE, false);
	t->here[0] ^= 1;
	assert_torn(t, SIZE / 2, false); /* stripped */
	memset(t->here, 0, 4096);
	t->here[5000] ^= 1;
	assert_torn(t, SIZE, false);
	assert_torn(t, SIZE + 1, false); /* signed where it is */
	memset(t->here + 4096, 0, 4096);
	assert_torn(t, 2 * SIZE, false);
}

static void only_what_is_installed_counts(void **state)
{
	struct tree *t = *state;
	AUTO_STRBUF struct strbuf out = {0};

	write_file(t, BUILD "/other.ko", t->built, SIZE); /* not NVIDIA's */
	write_file(t, PLACE "/other.ko", "", 0);
	write_file(t, BUILD "/nvidia-uvm.ko.xz", t->built, SIZE);
	write_file(t, "lib/modules/" KERNEL "/extra/nvidia-uvm.ko.xz", "", 0);
	assert_int_equal(look(t, SIZE, &out), 0);
	assert_string_equal(strbuf_str(&out), "nvidia-current/550.90.07 lib/modules/" KERNEL
					      "/extra/nvidia-uvm.ko.xz\n");
	out.len = 0;
	out.text[0] = '\0';
	assert_int_equal(module_torn_list(t->rig.host.root_fd, "6.9", "x86_64", &out), 0);
	rig_remove(&t->rig, "var/lib/dkms/nvidia-current/kernel-" KERNEL "-x86_64");
	assert_int_equal(module_torn_list(t->rig.host.root_fd, KERNEL, "x86_64", &out), 0);
	assert_string_equal(strbuf_str(&out), "");
}

static void without_dkms(void **state)
{
	struct tree *t = *state;
	AUTO_STRBUF struct strbuf out = {0};

	rig_reset(&t->rig);
	assert_int_equal(module_torn_list(t->rig.host.root_fd, KERNEL, "x86_64", &out), -ENOENT);
}

static int make_tree(void **state)
{
	static struct tree tree;
	struct tree *t = &tree;
	AUTO_FREE char *link = NULL;

	rig_open(&t->rig, 1);
	for (size_t i = 0; i < SIZE; i++)
		t->built[i] = (char)(i * 7 + i / 256 + 1);
	memset(t->here, 1, sizeof(t->here));
	memcpy(t->here, t->built, SIZE);
	write_file(t, BUILD "/nvidia.ko", t->built, SIZE);
	link = xprintf("%s/var/lib/dkms/nvidia-current/kernel-" KERNEL "-x86_64", t->rig.root);
	assert_int_equal(symlink("550.90.07/" KERNEL "/x86_64", link), 0);
	*state = t;
	return 0;
}

static int remove_tree(void **state)
{
	struct tree *t = *state;

	rig_close(&t->rig);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_tree, remove_tree)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_missing_is_torn),
		TEST(another_build_is_not),
		TEST(only_what_is_installed_counts),
		TEST(without_dkms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
