/* SPDX-License-Identifier: Apache-2.0 */
/* machine/nccl.c: who sets what, what counts, which library. */
#include "base/source.h"
#include "machine/machine.h"
#include "machine/nccl.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

static void put(struct source *map, const char *path, const char *text)
{
	source_put_file(map, path, text, strlen(text));
}

static struct machine *read_map(struct source *map)
{
	static const struct machine_request request = {.parts = MACHINE_HOST};
	struct machine *m = machine_read(map, &request);

	source_free(map);
	return m;
}

static void versions(void **state)
{
	(void)state;
	assert_int_equal(nccl_version_of("2.28.9"), 22809);
	assert_int_equal(nccl_version_of("2.28.9+cuda13.0"), 22809);
	assert_int_equal(nccl_version_of("2.8.4"), 2804);
	assert_int_equal(nccl_version_of("2.9"), 20900);
	assert_int_equal(nccl_version_of("two"), -1);
	assert_int_equal(nccl_version_of_file("libnccl.so.2.18.3"), 21803);
	assert_int_equal(nccl_version_of_file("libnccl.so.2"), -1);
}

static const struct setting *in_force(const struct machine *m, const char *name)
{
	const struct setting *s = machine_setting(m, name);

	assert_non_null(s);
	return s;
}

/* NCCL sets what is not set yet: environment, then the user's file, then the system's. */
static void stronger_origins_win(void **state)
{
	struct source *map = source_new_map("nccl");
	struct machine *m;

	(void)state;
	put(map, "environment.txt", "HOME=/home/user1\nNCCL_P2P_LEVEL=SYS\nnccl_debug=INFO\n");
	put(map, "home/user1/.nccl.conf", "NCCL_P2P_LEVEL=PIX\nNCCL_DEBUG=WARN\nNCCL_DEBUG=INFO\n");
	put(map, "etc/nccl.conf",
	    "# ours\n#NCCL_IB_DISABLE=1\nNCCL_DEBUG=TRACE\n\nNCCL_SHM_DISABLE =1\nNCCL_ALGO\n"
	    "NCCL_SHM_DISABLE=0=x");
	m = read_map(map);
	assert_string_equal(in_force(m, "NCCL_P2P_LEVEL")->value, "SYS");
	assert_int_equal(in_force(m, "NCCL_P2P_LEVEL")->origin, SETTING_ENVIRONMENT);
	assert_string_equal(in_force(m, "NCCL_DEBUG")->value, "WARN");
	assert_string_equal(in_force(m, "NCCL_DEBUG")->from, "/home/user1/.nccl.conf:2");
	assert_string_equal(in_force(m, "nccl_debug")->value, "INFO");
	/* Nothing is trimmed: another name. */
	assert_string_equal(in_force(m, "NCCL_SHM_DISABLE ")->value, "1");
	assert_string_equal(in_force(m, "NCCL_SHM_DISABLE")->value, "0=x");
	assert_string_equal(in_force(m, "NCCL_SHM_DISABLE")->from, "/etc/nccl.conf:7");
	assert_int_equal(in_force(m, "NCCL_SHM_DISABLE")->origin, SETTING_SYSTEM_CONF);
	assert_null(machine_setting(m, "NCCL_IB_DISABLE"));
	assert_null(machine_setting(m, "HOME"));
	assert_int_equal(m->nccl.setting_n, 8);
	machine_free(m);
}

static void conf_file_by_name(void **state)
{
	struct source *map = source_new_map("nccl");
	struct machine *m;

	(void)state;
	put(map, "environment.txt", "HOME=/root\nNCCL_CONF_FILE=/opt/nccl.conf\n");
	put(map, "root/.nccl.conf", "NCCL_DEBUG=WARN\n");
	put(map, "opt/nccl.conf", "NCCL_DEBUG=INFO\n");
	m = read_map(map);
	assert_string_equal(in_force(m, "NCCL_DEBUG")->value, "INFO");
	assert_int_equal(in_force(m, "NCCL_DEBUG")->origin, SETTING_USER_CONF);
	machine_free(m);
}

static void a_process(void **state)
{
	struct source *map = source_new_map("nccl");
	struct machine *m;

	(void)state;
	put(map, "environment.txt", "HOME=/root\nNCCL_DEBUG=WARN\n");
	put(map, "process-env.txt", "HOME=/home/user1\nNCCL_P2P_DISABLE=1\n");
	put(map, "home/user1/.nccl.conf", "NCCL_ALGO=Ring\n");
	put(map, "nccl-library.txt",
	    "pid 4711\npath /opt/venv/nvidia/nccl/lib/libnccl.so.2\nversion 2.28.9\n");
	m = read_map(map);
	assert_string_equal(in_force(m, "NCCL_P2P_DISABLE")->from, "/proc/4711/environ");
	assert_int_equal(in_force(m, "NCCL_P2P_DISABLE")->origin, SETTING_PROCESS);
	assert_string_equal(in_force(m, "NCCL_ALGO")->value, "Ring");
	assert_null(machine_setting(m, "NCCL_DEBUG")); /* our own shell's */
	assert_true(fact_is(m->nccl.pid, 4711));
	assert_true(fact_is(m->nccl.version, 22809));
	assert_string_equal(m->nccl.library.value, "/opt/venv/nvidia/nccl/lib/libnccl.so.2");
	machine_free(m);
	map = source_new_map("nccl");
	put(map, "nccl-library.txt", "pid 4711\n");
	source_put_link(map, "usr/lib64/libnccl.so.2", "libnccl.so.2.20.5");
	m = read_map(map);
	assert_true(fact_unknown(m->nccl.library)); /* the system's is not the process's */
	machine_free(m);
}

static void library_in_usual_folders(void **state)
{
	struct source *map = source_new_map("nccl");
	struct machine *m;

	(void)state;
	source_put_error(map, "nccl-library.txt", SOURCE_FILE, ENOENT);
	source_put_link(map, "usr/lib64/libnccl.so.2", "libnccl.so.2.20.5");
	m = read_map(map);
	assert_string_equal(m->nccl.library.value, "/usr/lib64/libnccl.so.2");
	assert_true(fact_is(m->nccl.version, 22005));
	assert_true(fact_absent(m->nccl.pid));
	machine_free(m);
	map = source_new_map("nccl");
	put(map, "environment.txt", "LD_LIBRARY_PATH=rel:/opt/nccl/lib:/x\n");
	source_put_link(map, "usr/lib64/libnccl.so.2", "libnccl.so.2.20.5");
	source_put_error(map, "opt/nccl/lib/libnccl.so.2", SOURCE_LINK, EINVAL);
	m = read_map(map);
	assert_string_equal(m->nccl.library.value, "/opt/nccl/lib/libnccl.so.2");
	assert_true(fact_unknown(m->nccl.version));
	machine_free(m);
	m = read_map(source_new_map("nothing"));
	assert_true(fact_unknown(m->nccl.library));
	assert_int_equal(m->nccl.setting_n, 0);
	machine_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test(stronger_origins_win),
		cmocka_unit_test(conf_file_by_name),
		cmocka_unit_test(a_process),
		cmocka_unit_test(library_in_usual_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
