/* SPDX-License-Identifier: Apache-2.0 */
/* machine/distribution.c: families by os-release, and what their packages and tools are called. */
#include "base/strbuf.h"
#include "machine/distribution.h"
#include "machine/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void habits(void **state)
{
	static const struct {
		const char *id, *dkms_driver;
		bool source, moves, shim;
	} rows[] = {
		{"debian", "nvidia-current", true, false, false},
		{"ubuntu", "nvidia", false, false, true},
		{"linuxmint", "nvidia", false, true, false},
		{"fedora", "nvidia", false, true, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct kernel k = {.distribution_id = fact_str(rows[i].id, "os-release")};
		const struct distribution_habits *h = distribution_habits(&k);

		assert_string_equal(h->dkms_driver, rows[i].dkms_driver);
		assert_int_equal(h->driver_source != NULL, rows[i].source);
		assert_int_equal(h->dkms_moves_modules, rows[i].moves);
		assert_int_equal(h->signs_with_shim_key, rows[i].shim);
	}
	assert_string_equal(distribution_habits(&(const struct kernel){0})->dkms_driver, "nvidia");
}

static void families(void **state)
{
	static const struct {
		const char *id, *like;
		enum distribution wanted;
	} rows[] = {
		{"ubuntu", "debian", DISTRIBUTION_DEBIAN},
		{"tuxedo", "ubuntu debian", DISTRIBUTION_DEBIAN},
		{"rocky", "rhel centos fedora", DISTRIBUTION_FEDORA},
		{"endeavouros", "arch", DISTRIBUTION_ARCH},
		{"sles", "suse", DISTRIBUTION_SUSE},
		{"opensuse-microos", "suse opensuse", DISTRIBUTION_TRANSACTIONAL},
		{"void", NULL, DISTRIBUTION_OTHER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct kernel k = {
			.distribution_id = fact_str(rows[i].id, "test"),
			.distribution_like = rows[i].like ? fact_str(rows[i].like, "test")
							  : fact_str_absent("test"),
		};

		assert_int_equal(distribution_of(&k), rows[i].wanted);
	}
}

static void headers_and_how_to_install_them(void **state)
{
	static const struct {
		enum distribution d;
		const char *release, *wanted;
	} rows[] = {
		{DISTRIBUTION_DEBIAN, "6.1.0-13-amd64",
		 "sudo apt install linux-headers-6.1.0-13-amd64"},
		{DISTRIBUTION_FEDORA, "6.8.5-301.fc40.x86_64",
		 "sudo dnf install kernel-devel-6.8.5-301.fc40.x86_64"},
		{DISTRIBUTION_ARCH, "6.12.10-1-lts", "sudo pacman -S --needed linux-lts-headers"},
		{DISTRIBUTION_ARCH, "6.12.10-arch1-1", "sudo pacman -S --needed linux-headers"},
		{DISTRIBUTION_SUSE, "6.4.0-150600.23-default",
		 "sudo zypper install kernel-default-devel"},
		{DISTRIBUTION_OTHER, "6.1.0",
		 "install the headers of 6.1.0 with the distribution's package manager"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		AUTO_STRBUF struct strbuf package = {0}, command = {0};

		distribution_headers(rows[i].d, rows[i].release, &package);
		distribution_install(rows[i].d, strbuf_str(&package), &command);
		assert_string_equal(strbuf_str(&command), rows[i].wanted);
	}
}

static void packages_of_programs(void **state)
{
	AUTO_STRBUF struct strbuf debian = {0}, fedora = {0};

	(void)state;
	assert_string_equal(distribution_package(DISTRIBUTION_DEBIAN, "ld"), "binutils");
	assert_string_equal(distribution_package(DISTRIBUTION_FEDORA, "g++"), "gcc-c++");
	assert_string_equal(distribution_package(DISTRIBUTION_ARCH, "ld"), "base-devel");
	assert_string_equal(distribution_package(DISTRIBUTION_ARCH, "dkms"), "dkms");
	distribution_compiler(DISTRIBUTION_DEBIAN, "clang", 16, &debian);
	assert_string_equal(strbuf_str(&debian), "clang-16");
	distribution_compiler(DISTRIBUTION_FEDORA, "gcc", 12, &fedora);
	assert_string_equal(strbuf_str(&fedora), "gcc");
}

static void the_initramfs(void **state)
{
	static const struct {
		enum distribution d;
		const char *wanted; /* NULL: none is known */
	} rows[] = {
		{DISTRIBUTION_DEBIAN, "update-initramfs -u -k 6.1.0"},
		{DISTRIBUTION_SUSE, "dracut -f --kver 6.1.0"},
		{DISTRIBUTION_ARCH, "mkinitcpio -P"},
		{DISTRIBUTION_TRANSACTIONAL, "transactional-update initrd"},
		{DISTRIBUTION_NIXOS, NULL},
		{DISTRIBUTION_OTHER, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct initramfs_tool *t = distribution_initramfs(rows[i].d);
		AUTO_STRBUF struct strbuf command = {0};

		assert_int_equal(t != NULL, rows[i].wanted != NULL);
		if (!t)
			continue;
		initramfs_command(t, "6.1.0", &command);
		assert_string_equal(strbuf_str(&command), rows[i].wanted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(families),
		cmocka_unit_test(habits),
		cmocka_unit_test(headers_and_how_to_install_them),
		cmocka_unit_test(packages_of_programs),
		cmocka_unit_test(the_initramfs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
