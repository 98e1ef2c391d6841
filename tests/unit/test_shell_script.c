/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest/shell_script.c: what a script sets, read and not run; and what that makes of a machine's
 * settings.
 */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "build_machine.h"
#include "ingest/shell_script.h"

#include <cmocka.h>
#include <string.h>

static bool capital(const char *name)
{
	return *name >= 'A' && *name <= 'Z';
}

/* The settings as "NAME=VALUE@LINE ", "NAME=?@LINE " where the value is not known. */
static void expect(const char *script, const char *settings)
{
	struct arena *arena = arena_new();
	struct script_setting *s;
	struct strbuf got = {0};
	size_t n;

	shell_script_parse(arena, script, strlen(script), capital, &s, &n);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&got, "%s=%s@%u ", s[i].name, s[i].value ? s[i].value : "?",
			      s[i].line);
	assert_string_equal(strbuf_str(&got), settings);
	strbuf_done(&got);
	arena_free(arena);
}

static void places(void **state)
{
	(void)state;
	expect("export A=1\nB=2 prog C=3\n", "A=1@1 B=2@2 C=3@2 ");
	expect("export A=1 B=2; D=4&&E=5", "A=1@1 B=2@1 D=4@1 E=5@1 ");
	expect("mpirun -np 2 -x A=1 -xB=2 ./a", "A=1@1 B=2@1 ");
	expect("docker run -e A=1 --env=B=2 --env C=3 image", "A=1@1 B=2@1 C=3@1 ");
	expect("srun --export=ALL,A=1,B=2 ./a", "A=1@1 B=2@1 ");
	expect("#SBATCH --export=A=1\n# export B=2\nC=3 # D=4\n", "A=1@1 C=3@3 ");
	expect("setenv A 1\nsetenv B 'two words'\n", "A=1@1 B=two words@2 ");
	expect("(A=1)\n{ B=2; }\n", "A=1@1 B=2@2 ");
	expect("[ \"$A\" = 1 ] && echo dd if=x of=y", "");
	expect("a=1 1A=2 A-B=3 =4 --other=A=1 A+=2", "");
}

static void the_last_counts(void **state)
{
	(void)state;
	expect("A=1\nB=1\nA=2\n", "B=1@2 A=2@3 ");
	expect("A=1\nunset A B\nC=1\n", "C=1@3 ");
	expect("A=1; unset A; A=3", "A=3@1 ");
	expect("A=1\nA=$X\n", "A=?@2 ");
	expect("A=$X\nA=1\n", "A=1@2 ");
	expect("if x; then A=1; else A=2; fi", "A=2@1 "); /* branches are not followed */
	expect("A=\n", "A=@1 ");
}

static void quotes_in_expansions(void **state)
{
	(void)state;
	expect("D=\"$(cd \"$(dirname \"$0\")\" && pwd)\"\nexport A=1\npython \"$D/x\"\n",
	       "D=?@1 A=1@2 ");
	expect("D=\"${B:-\"x\"}\"\nA=1\n", "D=?@1 A=1@2 ");
	expect("D=\"`basename \"$0\"`\"\nA=1\n", "D=?@1 A=1@2 ");
	expect("D=\"$(\"\nA=1\n", "D=?@1 A=1@2 ");
	expect("D=\"\\$(\"\nA=1\n", "D=$(@1 A=1@2 ");
}

static void quotes(void **state)
{
	(void)state;
	expect("A='1 2' B=\"3 4\" C=5\\ 6 D=a'b'\"c\"d\n", "A=1 2@1 B=3 4@1 C=5 6@1 D=abcd@1 ");
	expect("A=\"a\\\"b\\\\c\\d\"", "A=a\"b\\c\\d@1 ");
	expect("A='$X' B='`x`'", "A=$X@1 B=`x`@1 ");
	expect("A=\"$X\" B=${Y:-z w} C=$(cmd A=9 | x) D=`date +A=8` E=$X",
	       "A=?@1 B=?@1 C=?@1 D=?@1 E=?@1 ");
	expect("A='1\n2'\nB=3\n", "A=1\n2@1 B=3@3 ");
	expect("A=1\\\n2 \\\nB=3\n", "A=12@1 B=3@3 ");
	expect("echo 'A=1' \"B=2\"", ""); /* words that are quoted whole set nothing */
	expect("echo don't; A=1\n", "A=1@1 ");
	/* Nor do words of commands that set nothing. */
	expect("echo export A=1; printf '%s' A=2\n[ A=3 ] && test A=4 | grep B=5\n", "");
	expect("A=1 echo B=2; C=3 ./job D=4\n", "A=1@1 C=3@1 D=4@1 ");
	expect("A=$( B=2", "A=?@1 B=2@1 ");
}

static void texts_in_the_script(void **state)
{
	(void)state;
	expect("cat <<EOF >x\nA=1 don't\nEOF\nB=2\n", "B=2@4 ");
	expect("cat <<-'E'\n\tA=1\n\tE\nB=2\n", "B=2@4 ");
	expect("cat <<EOF\nA=1\n", "A=1@2 "); /* never ends */
	expect("cat <<END.1\nA=1\nEND\nA=2\nEND.1\nB=2\n", "B=2@6 ");
	expect("cat <<'END OF IT'\nA=1\nEND OF IT\nB=2\n", "B=2@4 ");
	expect("cat << \"E-F\" >x\nA=1\nE-F\nB=2\n", "B=2@4 ");
	expect("cat <<E\"O\"F\nA=1\nEOF\nB=2\n", "B=2@4 ");
	expect("cat <<\\! | sh\nA=1\n!\nB=2\n", "B=2@4 ");
	expect("cat <<''\nA=1\n\nB=2\n", "B=2@4 ");
	expect("cat <<A <<B\nX=1\nA\nY=1\nB\nZ=2\n", "Z=2@6 ");
	expect("cat <<E\n\tE\nA=1\nE\nB=2\n", "B=2@5 "); /* only <<- takes tabs off */
	expect("cat <<< x\nA=1\n", "A=1@2 ");
}

/* The script's settings take the place of the environment's, and stand before those of files. */
static void settings_of_a_machine(void **state)
{
	static const struct script_setting script[] = {
		{"NCCL_DEBUG", "INFO", 3},
		{"UCX_TLS", "rc", 4},
		{"NCCL_ALGO", NULL, 5},
	};
	struct machine *m = build_machine();

	(void)state;
	build_setting(m, "NCCL_IB_HCA", "mlx5_0");
	build_setting(m, "NCCL_DEBUG", "WARN");
	m->nccl.settings[1].origin = SETTING_SYSTEM_CONF;
	m->nccl.settings[1].from = "/etc/nccl.conf:1";
	shell_script_settings(m, "job.sh", script, 3);
	assert_null(machine_setting(m, "NCCL_IB_HCA"));
	assert_null(machine_setting(m, "NCCL_ALGO"));
	assert_string_equal(machine_setting(m, "NCCL_DEBUG")->value, "INFO");
	assert_string_equal(machine_setting(m, "NCCL_DEBUG")->from, "job.sh:3");
	assert_int_equal(machine_setting(m, "NCCL_DEBUG")->origin, SETTING_SCRIPT);
	assert_string_equal(machine_setting(m, "UCX_TLS")->value, "rc");
	assert_int_equal(m->nccl.setting_n, 2);
	assert_int_equal(m->setting_n, 1);
	build_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(the_last_counts),
		cmocka_unit_test(quotes),
		cmocka_unit_test(quotes_in_expansions),
		cmocka_unit_test(texts_in_the_script),
		cmocka_unit_test(settings_of_a_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
