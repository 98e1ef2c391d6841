/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unlock/: trees of every era, made from the table itself, are patched and brought back, or refused
 * with nothing written; whatever a kill leaves is told apart and finished.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "made_tree.h"
#include "support/support.h"
#include "unlock/anchor.h"
#include "unlock/unlock.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <spawn.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESIZE "nv_resize_pcie_bars"
#define UVM    KERNEL_OPEN "nvidia-uvm/"

/* ---- scratch folders ---- */

struct scratch {
	char dir[64];
	char *tree;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static int make_scratch(void **state)
{
	struct scratch *s = xcalloc(1, sizeof(*s));

	/* in memory where that can be, since every run waits for the disk */
	snprintf(s->dir, sizeof(s->dir), "%s/onehop-unlock-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	*state = s;
	if (!mkdtemp(s->dir))
		return -1;
	s->tree = xprintf("%s/tree", s->dir);
	return 0;
}

static void remove_folder(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int remove_scratch(void **state)
{
	struct scratch *s = *state;

	remove_folder(s->dir);
	free(s->tree);
	free(s);
	return 0;
}

static void get(const char *dir, const char *path, struct strbuf *out)
{
	AUTO_FREE char *full = xprintf("%s/%s", dir, path);
	AUTO_FCLOSE FILE *f = fopen(full, "re");
	char buf[4096];
	size_t n;

	assert_non_null(f);
	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		strbuf_add(out, buf, n);
}

static void write_release(const struct scratch *s, const struct made_tree *t, const char *release)
{
	remove_folder(s->tree);
	made_write(t, s->tree, release);
}

static void write_tree(const struct scratch *s, const struct made_tree *t)
{
	write_release(s, t, "999.01");
}

static void write_era(const struct scratch *s, enum era era)
{
	struct made_tree t = {0};

	made_up(&t, era);
	write_tree(s, &t);
	made_done(&t);
}

/*
 * Every file and folder of the tree with its content, sorted by path. nftw has no argument for its
 * callback.
 */
static char *walked[256];
static size_t walked_n;

static int walk_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	AUTO_STRBUF struct strbuf b = {0};

	(void)at;
	assert_true(walked_n < sizeof(walked) / sizeof(walked[0]));
	strbuf_printf(&b, "== %s %o\n", path, st->st_mode);
	if (type == FTW_F)
		get("", path, &b);
	walked[walked_n++] = xstrdup(b.text);
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct strbuf snapshot(const struct scratch *s)
{
	struct strbuf b = {0};

	walked_n = 0;
	assert_int_equal(nftw(s->tree, walk_one, 16, FTW_PHYS), 0);
	qsort(walked, walked_n, sizeof(*walked), by_text);
	for (size_t i = 0; i < walked_n; i++) {
		strbuf_puts(&b, walked[i]);
		free(walked[i]);
	}
	return b;
}

static void check_same(const struct scratch *s, const struct strbuf *before)
{
	AUTO_STRBUF struct strbuf now = snapshot(s);

	assert_int_equal(now.len, before->len);
	assert_memory_equal(now.text, before->text, now.len);
}

/* ---- running ---- */

static const struct unlock_options plain = {0};

static void check_state(const struct scratch *s, enum unlock_state want)
{
	struct unlock *u = NULL;

	if (unlock_open(s->tree, &plain, &u) < 0)
		fail_msg("%s", err_msg());
	assert_int_equal(u->state, want);
	unlock_close(u);
}

static size_t run(const struct scratch *s, const struct unlock_options *o, bool apply)
{
	struct unlock *u = NULL;
	size_t replaced;

	if ((apply ? unlock_apply : unlock_revert)(s->tree, o, &u) < 0)
		fail_msg("%s", err_msg());
	replaced = u->replaced;
	unlock_close(u);
	return replaced;
}

/* Nothing is written, and the sentence names these words. */
static void check_refused(const struct scratch *s, const char *word, const char *word2)
{
	AUTO_STRBUF struct strbuf before = snapshot(s);
	struct unlock *u = NULL;

	assert_int_equal(unlock_open(s->tree, &plain, &u), -EINVAL);
	assert_null(u);
	if (!strstr(err_msg(), word) || !strstr(err_msg(), word2))
		fail_msg("'%s' does not name %s and %s", err_msg(), word, word2);
	assert_null(strchr(err_msg(), '\n'));
	assert_int_equal(unlock_apply(s->tree, &plain, &u), -EINVAL);
	assert_null(u);
	check_same(s, &before);
}

static int run_program(char *const *argv)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execvp(argv[0], argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 127);
	return WEXITSTATUS(status);
}

/* ---- tests ---- */

static void every_era_there_and_back(void **state)
{
	struct scratch *s = *state;

	for (unsigned era = 0; era < ERA_N; era++) {
		AUTO_STRBUF struct strbuf before = {0}, after = {0};
		struct unlock *u = NULL;

		write_era(s, era);
		before = snapshot(s);
		if (unlock_open(s->tree, &plain, &u) < 0)
			fail_msg("%s", err_msg());
		assert_int_equal(u->era, era);
		assert_string_equal(u->version, "999.01");
		assert_int_equal(u->state, UNLOCK_STOCK);
		assert_true(u->n >= 3 && u->edit_n >= 8);
		unlock_close(u);
		check_same(s, &before);
		assert_true(run(s, &plain, true) >= 3);
		check_state(s, UNLOCK_PATCHED);
		after = snapshot(s);
		assert_int_equal(run(s, &plain, true), 0);
		check_same(s, &after);
		assert_true(run(s, &plain, false) >= 3);
		check_same(s, &before);
		assert_int_equal(run(s, &plain, false), 0);
		check_same(s, &before);
	}
}

/* Each row of the table holds: one less or one more of its places is refused, by its name. */
static void each_count_is_checked(void **state)
{
	struct scratch *s = *state;

	for (size_t i = 0; i < anchor_n; i++) {
		const struct anchor *a = &anchors[i];
		unsigned era = (unsigned)__builtin_ctz(a->eras);
		struct made_tree t = {0};

		if (a->when != WHEN_ALWAYS || strstr(a->pattern, RESIZE))
			continue;
		made_up(&t, era);
		made_instance(&made_function_of(&t, a->file, a->function)->body, a->pattern);
		write_tree(s, &t);
		check_refused(s, "expected", a->file);
		made_done(&t);
	}
}

static void functions_and_files_that_lack_are_named(void **state)
{
	struct scratch *s = *state;

	for (size_t i = 0; i < anchor_n; i++) {
		const struct anchor *a = &anchors[i];
		unsigned era = (unsigned)__builtin_ctz(a->eras);
		struct made_tree t = {0};

		if (!a->function || a->when != WHEN_ALWAYS || strcmp(a->function, RESIZE) == 0)
			continue;
		made_up(&t, era);
		made_function_of(&t, a->file, a->function)->name = "renamed_function";
		write_tree(s, &t);
		check_refused(s, s->tree, ""); /* or it looks like no era at all */
		made_done(&t);
	}
	write_era(s, ERA_565);
	{
		AUTO_FREE char *path =
			xprintf("%s/%s", s->tree, "src/nvidia/src/libraries/mmu/gmmu_fmt.c");

		assert_int_equal(unlink(path), 0);
	}
	check_refused(s, "has no", "gmmu_fmt.c");
}

/*
 * Content decides, whatever the release is called; where it fits, a new one is edited and said to
 * be not tried.
 */
static void a_release_that_was_not_tried_is_edited(void **state)
{
	struct scratch *s = *state;
	static const struct {
		const char *release;
		bool tried;
	} rows[] = {{"610.43.02", false}, {"595.99", false}, {"595.45.04", true}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct made_tree t = {0};
		struct unlock *u = NULL;

		made_up(&t, ERA_590);
		write_release(s, &t, rows[i].release);
		made_done(&t);
		assert_int_equal(unlock_open(s->tree, &plain, &u), 0);
		assert_int_equal(u->tried, rows[i].tried);
		assert_int_equal(u->era, ERA_590);
		unlock_close(u);
		assert_true(run(s, &plain, true) >= 3);
		check_state(s, UNLOCK_PATCHED);
	}
}

/* A place less: the new release differs, and a known one was changed. */
static void a_release_that_differs_is_refused(void **state)
{
	struct scratch *s = *state;
	static const struct {
		const char *release, *says, *lacks;
	} rows[] = {
		{"610.43.02",
		 "untested with release 610.43.02 and do not fit it; the newest release that is "
		 "known to fit is 595.45.04",
		 "the tree was changed"},
		{"595.45.04", "the tree was changed", "untested"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct made_tree t = {0};

		made_up(&t, ERA_590);
		made_function_of(&t, "src/nvidia/src/kernel/rmapi/nv_gpu_ops.c",
				 "nvGpuOpsBuildExternalAllocPtes")
			->body.len = 0; /* all of its places */
		made_instance(&made_function_of(&t, "src/nvidia/src/kernel/rmapi/nv_gpu_ops.c",
						"nvGpuOpsBuildExternalAllocPtes")
				       ->body,
			      "NvBool isBar1P2PSupported");
		write_release(s, &t, rows[i].release);
		check_refused(s,
			      "in nvGpuOpsBuildExternalAllocPtes of", /* whichever row is first */
			      rows[i].says);
		assert_null(strstr(err_msg(), rows[i].lacks));
		made_done(&t);
	}
}

static void a_release_of_no_known_kind_is_refused(void **state)
{
	struct scratch *s = *state;
	struct made_tree t = {0};

	/* 535's own, in a tree of 590 */
	made_up(&t, ERA_590);
	made_instance(&made_function_of(&t, features[0].file, features[0].function)->body,
		      features[0].pattern);
	write_release(s, &t, "610.43.02");
	made_done(&t);
	check_refused(s, "is of no known kind (has a static BAR1 that asks",
		      "newest release that is known to fit is 595.45.04");
}

/* What it lacks is of no use to anybody: the driver has to be a later one. */
static void a_release_before_all_others_is_refused(void **state)
{
	static const char *const releases[] = {"515.43.04", "525.147.05", "530.41.03"};
	struct scratch *s = *state;

	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		AUTO_FREE char *says = xprintf("release %s is too old for the edits", releases[i]);
		struct made_tree t = {0};

		made_up(&t, ERA_590);
		made_instance(&made_function_of(&t, features[0].file, features[0].function)->body,
			      features[0].pattern);
		write_release(s, &t, releases[i]);
		made_done(&t);
		check_refused(s, says, "install driver 535 or later");
		assert_null(strstr(err_msg(), "newest"));
	}
}

static void odd_text_is_refused(void **state)
{
	static const char path[] = "src/nvidia/src/kernel/rmapi/nv_gpu_ops.c";
	struct scratch *s = *state;
	AUTO_STRBUF struct strbuf text = {0}, crlf = {0};

	write_era(s, ERA_575);
	get(s->tree, path, &text);
	for (size_t i = 0; i < text.len; i++) {
		if (text.text[i] == '\n')
			strbuf_putc(&crlf, '\r');
		strbuf_putc(&crlf, text.text[i]);
	}
	made_put(s->tree, path, crlf.text, crlf.len);
	check_refused(s, "CR LF", path);
	for (size_t size = 0; size < text.len - 3; size += text.len / 7) {
		made_put(s->tree, path, text.text, size);
		check_refused(s, s->tree, "");
	}
}

static void other_folders_are_told_apart(void **state)
{
	struct scratch *s = *state;
	struct unlock *u = NULL;

	assert_int_equal(unlock_open(s->tree, &plain, &u), -ENOENT);
	made_put(s->tree, "readme", "x", 1);
	check_refused(s, "not a tree of NVIDIA's", SWITCH_FILE);
	made_put(s->tree, "nvidia/nv-kernel.o_binary", "x", 1);
	check_refused(s, "prebuilt", "sources");
}

static void links_are_refused(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *path = xprintf("%s/kernel-open/nvidia", s->tree);
	AUTO_FREE char *away = xprintf("%s/away", s->dir);
	struct unlock *u = NULL;

	write_era(s, ERA_580);
	assert_int_equal(rename(path, away), 0);
	assert_int_equal(symlink(away, path), 0);
	assert_int_equal(unlock_apply(s->tree, &plain, &u), -ELOOP);
	assert_non_null(strstr(err_msg(), "link"));
}

/* ---- what others do to a tree of ours ---- */

static void later_changes_are_refused(void **state)
{
	struct scratch *s = *state;
	struct unlock *u = NULL;

	write_era(s, ERA_580);
	run(s, &plain, true);
	made_put(s->tree, SWITCH_FILE, "int x;\n", 7);
	check_refused(s, "changed after", SWITCH_FILE);
	assert_int_equal(unlock_revert(s->tree, &plain, &u), -EINVAL);

	write_era(s, ERA_580);
	run(s, &plain, true);
	made_put(s->tree, STATE_FOLDER "/old/" SWITCH_FILE, "int x;\n", 7);
	check_refused(s, "was changed", STATE_FOLDER "/old/" SWITCH_FILE);

	write_era(s, ERA_580);
	run(s, &plain, true);
	made_put(s->tree, MANIFEST, "{}", 2);
	check_refused(s, MANIFEST, "unpack");
}

static void manifests_lead_nowhere_else(void **state)
{
	struct scratch *s = *state;
	AUTO_STRBUF struct strbuf text = {0}, bad = {0};
	char *at;

	write_era(s, ERA_580);
	run(s, &plain, true);
	get(s->tree, MANIFEST, &text);
	at = strstr(text.text, "kernel-open/");
	assert_non_null(at);
	strbuf_add(&bad, text.text, (size_t)(at - text.text));
	strbuf_printf(&bad, "../away/%s", at);
	made_put(s->tree, MANIFEST, bad.text, bad.len);
	check_refused(s, MANIFEST, "unpack");
}

static void ours_without_a_manifest(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *folder = xprintf("%s/" STATE_FOLDER, s->tree);

	write_era(s, ERA_535);
	run(s, &plain, true);
	remove_folder(folder);
	check_refused(s, "has onehop's edits", "but no " MANIFEST);
}

static int run_shell(const char *command)
{
	return run_program((char *const[]){(char *)"/bin/sh", (char *)"-c", (char *)command, NULL});
}

/* What is printed takes out what --diff and patch put in; NEW is the release unpacked again. */
static void edits_by_patch_are_taken_out_by_patch(void **state)
{
	static const char function[] = "onehop() { \"$ONEHOP\" \"$@\"; }; ";
	struct scratch *s = *state;
	AUTO_FREE char *fresh = xprintf("%s/NEW", s->dir);
	AUTO_FREE char *edit = NULL, *back = NULL;
	AUTO_STRBUF struct strbuf stock = {0};
	struct unlock *u = NULL;

	if (run_shell("command -v patch >/dev/null"))
		skip();
	free(s->tree);
	s->tree = xprintf("%s/it's a tree", s->dir); /* quoted in the command */
	edit = xprintf(
		"cd '%s' && cp -r \"it's a tree\" NEW && %s onehop unlock --tree NEW --diff | "
		"patch -s -p1 -d \"it's a tree\"",
		s->dir, function);
	write_era(s, ERA_580);
	stock = snapshot(s);
	assert_int_equal(run_shell(edit), 0);
	assert_int_equal(unlock_revert(s->tree, &plain, &u), -EINVAL);
	assert_non_null(strstr(err_msg(), "made with --diff and patch"));
	assert_non_null(
		strstr(err_msg(), "unpack release 999.01 into a folder NEW and run: onehop"));
	back = xprintf("cd '%s' && %s %s -s", s->dir, function,
		       strstr(err_msg(), "and run: ") + strlen("and run: "));
	assert_int_equal(run_shell(back), 0);
	check_same(s, &stock);
	remove_folder(fresh);
}

static void one_at_a_time(void **state)
{
	struct scratch *s = *state;
	struct unlock *u = NULL;
	struct tree t;

	write_era(s, ERA_580);
	assert_int_equal(tree_open(s->tree, &t), 0);
	assert_int_equal(tree_lock(&t), 0);
	assert_int_equal(unlock_apply(s->tree, &plain, &u), -EBUSY);
	tree_close(&t);
	assert_int_equal(unlock_apply(s->tree, &plain, &u), 0);
	unlock_close(u);
}

/* ---- what only some releases of a kind have ---- */

static size_t edits_of(const struct scratch *s)
{
	struct unlock *u = NULL;
	size_t n;

	assert_int_equal(unlock_open(s->tree, &plain, &u), 0);
	n = u->edit_n;
	unlock_close(u);
	return n;
}

/*
 * Where what is cached is dropped at unmapping, that is edited, and its place has to be the known
 * one.
 */
static void what_only_some_have_is_edited_there(void **state)
{
	static const char file[] = "kernel-open/nvidia-uvm/uvm_map_external.c";
	struct scratch *s = *state;
	struct made_tree t = {0};
	struct made_function *f;
	size_t edits;

	write_era(s, ERA_580);
	edits = edits_of(s);
	made_up(&t, ERA_580);
	f = made_function_of(&t, file, "uvm_ext_gpu_map_destroy");
	made_instance(&f->body, "uvm_mmu_l2_invalidate(mapped_gpu, aperture)");
	write_tree(s, &t);
	assert_int_equal(edits_of(s), edits + 1);
	f->name = "renamed_function";
	write_tree(s, &t);
	check_refused(s, "expected one function uvm_ext_gpu_map_destroy", file);
	made_done(&t);
}

/* ---- both kinds of kernel ---- */

/* A tree that asks the kernel itself is left to do so. */
static void who_asks_the_kernel_is_left_alone(void **state)
{
	struct scratch *s = *state;
	AUTO_STRBUF struct strbuf text = {0};
	struct made_tree t = {0};
	struct unlock *u = NULL;
	size_t edits;

	write_era(s, ERA_580);
	assert_int_equal(unlock_open(s->tree, &plain, &u), 0);
	assert_false(u->asks_kernel);
	edits = u->edit_n;
	unlock_close(u);

	made_up(&t, ERA_580);
	made_instance(&made_function_of(&t, MARKER_FILE, RESIZE)->body,
		      "pci_resize_resource(pci_dev, NV_GPU_BAR1, requested_size, 0)");
	write_tree(s, &t);
	made_done(&t);
	assert_int_equal(unlock_apply(s->tree, &plain, &u), 0);
	assert_true(u->asks_kernel);
	assert_int_equal(u->edit_n, edits - 2);
	unlock_close(u);
	get(s->tree, MARKER_FILE, &text);
	assert_null(strstr(text.text, "onehop_resize"));
}

/*
 * The made-up nv-pci.c as a program: 0 if it calls its kernel's function once, and with the right
 * values.
 */
static const char program_head[] =
	"#include <stdarg.h>\n"
	"#include <stddef.h>\n"
	"#define NV_PCI_REBAR_GET_POSSIBLE_SIZES_PRESENT\n"
	"#define MODULE_INFO(a, b) static const char a[] __attribute__((used)) = b\n"
	"#define NV_GPU_BAR1 1\n"
	"struct pci_dev { int calls; };\n"
	"static const int NVreg_EnableResizableBar = 1, requested_size = 15;\n";
static const char program_tail[] = "static int nv_resize_pcie_bars(struct pci_dev *pci_dev);\n"
				   "int main(void)\n"
				   "{\n"
				   "	struct pci_dev d = {0};\n"
				   "	nv_resize_pcie_bars(&d);\n"
				   "	return d.calls != 1;\n"
				   "}\n";

#define KERNEL(arguments, more)                                                                    \
	"static int __attribute__((warn_unused_result)) pci_resize_resource(" arguments ")\n"      \
	"{ d->calls += i == 1 && size == 15" more "; return d->calls; }\n"

/*
 * Whether it compiles, without a warning; then it has to run well. Memory file systems may not run
 * programs.
 */
static bool compiles(const struct scratch *s, const char *kernel)
{
	char object[] = "/tmp/onehop-program-XXXXXX";
	AUTO_FREE char *command = xprintf(
		"cc -Wall -Wextra -Werror -Wno-empty-body -Wno-return-type -o \"$0\" %s/" MARKER_FILE,
		s->tree);
	AUTO_FREE char *head = xprintf("%s%s%s", program_head, kernel, program_tail);
	AUTO_CLOSE int fd = mkstemp(object);
	bool ok;

	assert_true(fd >= 0);
	made_put(s->tree, "kernel-open/nvidia/x.h", head, strlen(head));
	ok = run_program((char *const[]){(char *)"/bin/sh", (char *)"-c", command, object, NULL}) ==
	     0;
	close(fd);
	fd = -1;
	if (ok)
		assert_int_equal(run_program((char *const[]){object, NULL}), 0);
	unlink(object);
	return ok;
}

static void one_edit_fits_both_kinds_of_kernel(void **state)
{
	struct scratch *s = *state;

	write_era(s, ERA_565);
	assert_false(compiles(s, KERNEL("struct pci_dev *d, int i, int size, int exclude",
					" && exclude == 0")));
	run(s, &plain, true);
	assert_true(compiles(s, KERNEL("struct pci_dev *d, int i, int size", "")));
	assert_true(compiles(s, KERNEL("struct pci_dev *d, int i, int size, int exclude",
				       " && exclude == 0")));
	/* what nobody has seen yet is not guessed at */
	assert_false(compiles(s, KERNEL("struct pci_dev *d, int i, int size, int x, int y",
					" && x == y")));
	assert_false(compiles(s, KERNEL("struct pci_dev *d, int i, int size, void *exclude",
					" && !exclude")));
}

/* A manifest may say more than is read: an earlier onehop's named the arguments of the kernel. */
static void more_in_a_manifest_is_left_unread(void **state)
{
	static const char more[] = "{ \"pci_resize_resource\": 4,";
	struct scratch *s = *state;
	AUTO_STRBUF struct strbuf before = {0}, text = {0}, other = {0};

	write_era(s, ERA_580);
	before = snapshot(s);
	run(s, &plain, true);
	get(s->tree, MANIFEST, &text);
	assert_int_equal(text.text[0], '{');
	strbuf_printf(&other, "%s%s", more, text.text + 1);
	made_put(s->tree, MANIFEST, other.text, other.len);
	check_state(s, UNLOCK_PATCHED);
	run(s, &plain, false);
	check_same(s, &before);
}

/* ---- edits of another onehop ---- */

/*
 * What onehop of "unlock 1" left: as today, but nvidia-uvm is as released and not in the manifest,
 * and the mark is another.
 */
static void make_first_edition(const struct scratch *s, const char *mark)
{
	AUTO_STRBUF struct strbuf file = {0}, manifest = {0};
	AUTO_FREE char *path = xprintf("%s/" MANIFEST, s->tree);
	char hash[SHA256_TEXT], *at;
	json_t *o, *files, *f;
	size_t i;

	run(s, &plain, true);
	get(s->tree, MARKER_FILE, &file);
	at = strstr(file.text, EDIT_MARK);
	assert_non_null(at);
	memcpy(at, mark, strlen(EDIT_MARK));
	made_put(s->tree, MARKER_FILE, file.text, file.len);
	sha256(file.text, file.len, hash);
	get(s->tree, MANIFEST, &manifest);
	o = json_loads(manifest.text, 0, NULL);
	json_object_del(o, "release");
	files = json_object_get(o, "files");
	for (i = 0; (f = json_array_get(files, i));) {
		const char *name = json_string_value(json_object_get(f, "path"));
		AUTO_FREE char *kept = xprintf(STATE_FOLDER "/old/%s", name);
		AUTO_FREE char *kept_path = xprintf("%s/%s", s->tree, kept);
		AUTO_STRBUF struct strbuf old = {0};

		if (strcmp(name, MARKER_FILE) == 0)
			json_object_set_new(f, "after", json_string(hash));
		if (strncmp(name, UVM, strlen(UVM)) != 0) {
			i++;
			continue;
		}
		get(s->tree, kept, &old);
		made_put(s->tree, name, old.text, old.len);
		unlink(kept_path);
		json_array_remove(files, i);
	}
	assert_int_equal(json_dump_file(o, path, JSON_INDENT(1)), 0);
	json_decref(o);
}

static void earlier_edits_are_replaced(void **state)
{
	struct scratch *s = *state;

	for (unsigned era = 0; era < ERA_N; era++) {
		AUTO_STRBUF struct strbuf stock = {0}, patched = {0};
		struct unlock *u = NULL;

		write_era(s, era);
		stock = snapshot(s);
		run(s, &plain, true);
		patched = snapshot(s);
		write_era(s, era);
		make_first_edition(s, "unlock 1");
		if (unlock_open(s->tree, &plain, &u) < 0)
			fail_msg("%s", err_msg());
		assert_int_equal(u->state, UNLOCK_PATCHED);
		assert_true(u->other_edits && !u->newer_edits);
		unlock_close(u);
		if (unlock_apply(s->tree, &plain, &u) < 0)
			fail_msg("%s", err_msg());
		assert_true(u->taken_back && !u->other_edits && u->replaced == u->n);
		unlock_close(u);
		check_same(s, &patched);
		run(s, &plain, false);
		check_same(s, &stock);
	}
}

/* Its own edit is newer than what would be made: neither is mixed with the other. */
static void later_edits_are_refused(void **state)
{
	struct scratch *s = *state;
	AUTO_STRBUF struct strbuf before = {0}, now = {0};
	struct unlock *u = NULL;

	write_era(s, ERA_590);
	before = snapshot(s);
	make_first_edition(s, "unlock 9");
	now = snapshot(s);
	assert_int_equal(unlock_open(s->tree, &plain, &u), 0);
	assert_true(u->other_edits && u->newer_edits);
	unlock_close(u);
	assert_int_equal(unlock_apply(s->tree, &plain, &u), -EINVAL);
	assert_non_null(strstr(err_msg(), "by a newer onehop"));
	check_same(s, &now);
	run(s, &plain, false);
	check_same(s, &before);
}

static bool is_put(const char *file, const char *what)
{
	for (size_t i = 0; i < anchor_n; i++)
		if (anchors[i].text && strcmp(anchors[i].file, file) == 0 &&
		    strstr(anchors[i].text, what))
			return true;
	return false;
}

/* A machine is judged by what the edits leave in its modules. */
static void what_is_looked_for_is_put_there(void **state)
{
	bool gate = false;

	(void)state;
	assert_true(is_put(MARKER_FILE, "MODULE_INFO(onehop, \"" EDIT_MARK "\")"));
	for (size_t i = 0; i < anchor_n; i++)
		gate |= strncmp(anchors[i].file, UVM, strlen(UVM)) == 0 &&
			is_put(anchors[i].file, "noinline bool " UVM_GATE "(");
	assert_true(gate);
	assert_true(uvm_gate_function_is(UVM_GATE, strlen(UVM_GATE)));
	assert_int_equal(edit_number(EDIT_MARK), 2);
	assert_int_equal(edit_number("managed 1"), 0);
}

/* ---- of which release it is ---- */

#define KBUILD  KERNEL_OPEN "Kbuild"
#define VERSION "src/common/inc/nvUnixVersion.h"

static void put_text(const struct scratch *s, const char *path, const char *text)
{
	made_put(s->tree, path, text, strlen(text));
}

static void two_releases_in_one_tree(void **state)
{
	static const char header[] = "#ifndef __NV_UNIX_VERSION_H__\n"
				     "#define NV_VERSION_STRING               \"%s\"\n";
	struct scratch *s = *state;
	AUTO_FREE char *same = xprintf(header, "999.01"), *other = xprintf(header, "998.02");

	write_era(s, ERA_580);
	put_text(s, KBUILD, "ccflags-y += -DNV_VERSION_STRING=\\\"999.01\\\"\n");
	put_text(s, VERSION, same);
	check_state(s, UNLOCK_STOCK);
	put_text(s, VERSION, other);
	check_refused(s, "mixes two releases: version.mk is of 999.01", VERSION " of 998.02");
	put_text(s, VERSION, same);
	put_text(s, KBUILD, "EXTRA_CFLAGS += -DNV_VERSION_STRING=\\\"998.02\\\"\n");
	check_refused(s, "version.mk is of 999.01", KBUILD " of 998.02");
	/* Two halves, and nothing that says of which the whole is. */
	put_text(s, "version.mk", "# none\n");
	check_refused(s, KBUILD " is of 998.02", VERSION " of 999.01");
}

static void version_that_was_changed_since(void **state)
{
	struct scratch *s = *state;
	AUTO_STRBUF struct strbuf stock = {0};
	struct unlock *u = NULL;

	write_era(s, ERA_580);
	stock = snapshot(s);
	run(s, &plain, true);
	put_text(s, "version.mk", "NVIDIA_VERSION = 998.02\n");
	check_refused(s, "version.mk says 998.02", "said 999.01 when onehop edited");
	put_text(s, "version.mk", "");
	check_refused(s, "version.mk says nothing", "said 999.01");
	/* Every byte of what was edited comes back all the same. */
	assert_int_equal(unlock_revert(s->tree, &plain, &u), 0);
	unlock_close(u);
	put_text(s, "version.mk", "NVIDIA_VERSION = 999.01\n");
	check_same(s, &stock);
}

/* ---- what is no file, and what cannot be written ---- */

static void a_pipe_is_named(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *pipe = xprintf("%s/kernel-open/nvidia/wait.c", s->tree);
	struct unlock *u = NULL;

	write_era(s, ERA_580);
	assert_int_equal(mkfifo(pipe, 0644), 0);
	assert_int_equal(unlock_open(s->tree, &plain, &u), -EINVAL);
	assert_non_null(strstr(err_msg(), "kernel-open/nvidia/wait.c is a named pipe"));
	assert_int_equal(unlock_apply(s->tree, &plain, &u), -EINVAL);
	assert_int_equal(unlink(pipe), 0);
	run(s, &plain, true);
}

static int no_write(void *context, const char *path)
{
	(void)context;
	return err_set(EROFS, "%s: made to be read-only", path);
}

static void reverting_what_is_stock_writes_nothing(void **state)
{
	const struct unlock_options read_only = {.before = no_write};
	struct scratch *s = *state;
	struct unlock *u = NULL;

	write_era(s, ERA_580);
	assert_int_equal(unlock_revert(s->tree, &read_only, &u), 0);
	assert_int_equal(u->replaced, 0);
	unlock_close(u);
	assert_int_equal(unlock_apply(s->tree, &read_only, &u), -EROFS);
	assert_null(strstr(err_msg(), "was changed"));
}

/* As on a full disk: no file may get a byte. */
static void reverting_needs_no_space(void **state)
{
	struct scratch *s = *state;
	AUTO_STRBUF struct strbuf stock = {0};
	int status;
	pid_t pid;

	write_era(s, ERA_580);
	stock = snapshot(s);
	run(s, &plain, true);
	pid = fork();
	if (pid == 0) {
		const struct rlimit none = {0, 0};
		struct unlock *u = NULL;

		signal(SIGXFSZ, SIG_IGN);
		_exit(setrlimit(RLIMIT_FSIZE, &none) < 0 ? 2
							 : unlock_revert(s->tree, &plain, &u) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	check_same(s, &stock);
}

/* make builds a file again only if it is newer than what was built from it. */
static void what_is_reverted_is_newer_than_what_was_built(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *file = xprintf("%s/" SWITCH_FILE, s->tree);
	AUTO_FREE char *kept = xprintf("%s/" STATE_FOLDER "/old/" SWITCH_FILE, s->tree);
	const struct timespec long_ago[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
	struct stat st;

	write_era(s, ERA_580);
	run(s, &plain, true);
	assert_int_equal(utimensat(AT_FDCWD, kept, long_ago, 0), 0);
	assert_int_equal(chmod(file, 0640), 0);
	run(s, &plain, false);
	assert_int_equal(stat(file, &st), 0);
	assert_true(st.st_mtime > long_ago[0].tv_sec);
	assert_int_equal(st.st_mode & 07777, 0640); /* today's */
}

/*
 * A copy made of hard links (cp -al) has the same kept files: none of them changes, and none gets
 * into this tree.
 */
static void a_linked_copy_of_the_tree_stays_as_it_is(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *file = xprintf("%s/" SWITCH_FILE, s->tree);
	AUTO_FREE char *kept = xprintf("%s/" STATE_FOLDER "/old/" SWITCH_FILE, s->tree);
	AUTO_FREE char *linked = xprintf("%s/linked", s->dir);
	AUTO_STRBUF struct strbuf stock = {0};
	struct stat st, other;

	write_era(s, ERA_580);
	stock = snapshot(s);
	run(s, &plain, true);
	assert_int_equal(link(kept, linked), 0);
	run(s, &plain, false);
	check_same(s, &stock);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(stat(linked, &other), 0);
	assert_true(st.st_ino != other.st_ino);
	assert_int_equal(other.st_nlink, 1);
}

static int fails_at_the_switch(void *context, const char *path)
{
	(void)context;
	return strcmp(path, SWITCH_FILE) == 0 ? err_set(EIO, "%s: made to fail", path) : 0;
}

/* Some files are edited by then: the message says so, and how to revert. */
static void a_failure_says_that_the_tree_was_changed(void **state)
{
	const struct unlock_options failing = {.before = fails_at_the_switch};
	struct scratch *s = *state;
	AUTO_STRBUF struct strbuf stock = {0};
	struct unlock *u = NULL;

	write_era(s, ERA_580);
	stock = snapshot(s);
	assert_int_equal(unlock_apply(s->tree, &failing, &u), -EIO);
	assert_non_null(strstr(err_msg(), "made to fail; the tree was changed: "));
	assert_non_null(strstr(err_msg(), "--revert"));
	run(s, &plain, false);
	check_same(s, &stock);
}

/* Nothing that is printed gets into a file that is opened as number 0, 1 or 2. */
static void closed_standard_files_write_nowhere(void **state)
{
	static const char *const words[] = {"--explain", "--apply", "--apply", "--revert"};
	const char *onehop = getenv("ONEHOP");
	struct scratch *s = *state;
	AUTO_STRBUF struct strbuf stock = {0}, edited = {0};

	assert_non_null(onehop);
	write_era(s, ERA_580);
	stock = snapshot(s);
	run(s, &plain, true);
	edited = snapshot(s);
	run(s, &plain, false);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		AUTO_FREE char *command = xprintf("exec '%s' unlock --tree '%s' %s <&- >&- 2>&-",
						  onehop, s->tree, words[i]);
		char *const argv[] = {(char *)"sh", (char *)"-c", command, NULL};
		int status;
		pid_t pid;

		assert_int_equal(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		/* It cannot print; but what was asked of the tree is done. */
		assert_int_equal(WEXITSTATUS(status), i == 0 ? 2 : 0);
		check_same(s, i == 1 || i == 2 ? &edited : &stock);
	}
}

/* ---- kills and failures, at every write ---- */

struct fault {
	unsigned at, n;
	bool kill;
};

static int fault_before(void *context, const char *path)
{
	struct fault *f = context;

	if (f->n++ != f->at)
		return 0;
	if (f->kill)
		_exit(9);
	return err_set(EIO, "%s: made to fail", path);
}

/* Whether the run got to its end. */
static bool run_with_fault(const struct scratch *s, bool apply, unsigned at, bool kill)
{
	struct fault f = {.at = at, .kill = kill};
	struct unlock_options o = {.before = fault_before, .context = &f};
	struct unlock *u = NULL;
	int status;
	pid_t pid;

	if (!kill) {
		int r = (apply ? unlock_apply : unlock_revert)(s->tree, &o, &u);

		unlock_close(u);
		assert_true(r == 0 || r == -EIO);
		return r == 0;
	}
	pid = fork();
	if (pid == 0) {
		int r = (apply ? unlock_apply : unlock_revert)(s->tree, &o, &u);

		_exit(r == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 9));
	return WEXITSTATUS(status) == 0;
}

/*
 * The second run tells what there is; the switch is only thrown when all is in place but the mark,
 * so that what lies there works as before or as patched.
 */
static void check_whole(const struct scratch *s)
{
	struct unlock *u = NULL;
	size_t after = 0, others = 0, others_after = 0;
	bool thrown = false;

	if (unlock_open(s->tree, &plain, &u) < 0)
		fail_msg("%s", err_msg());
	for (size_t i = 0; i < u->n; i++) {
		bool is_switch = strcmp(u->files[i].path, SWITCH_FILE) == 0;
		bool is_mark = strcmp(u->files[i].path, MARKER_FILE) == 0;

		after += u->files[i].is_after;
		thrown |= is_switch && u->files[i].is_after;
		others += !is_switch && !is_mark;
		others_after += !is_switch && !is_mark && u->files[i].is_after;
		assert_false(is_mark && u->files[i].is_after && !thrown);
	}
	assert_int_equal(u->state, after == 0      ? UNLOCK_STOCK
				   : after == u->n ? UNLOCK_PATCHED
						   : UNLOCK_STARTED);
	assert_true(!thrown || others_after == others);
	unlock_close(u);
}

static void faults(const struct scratch *s, bool first_apply, bool then_apply, bool kill)
{
	AUTO_STRBUF struct strbuf stock = {0}, patched = {0};
	bool ended = false;

	write_era(s, ERA_545);
	stock = snapshot(s);
	run(s, &plain, true);
	patched = snapshot(s);
	for (unsigned at = 0; !ended; at++) {
		assert_true(at < 200);
		write_era(s, ERA_545);
		if (!first_apply)
			run(s, &plain, true);
		ended = run_with_fault(s, first_apply, at, kill);
		check_whole(s);
		run(s, &plain, then_apply);
		check_state(s, then_apply ? UNLOCK_PATCHED : UNLOCK_STOCK);
		check_same(s, then_apply ? &patched : &stock);
	}
}

static void killed_at_any_moment(void **state)
{
	for (unsigned i = 0; i < 4; i++)
		faults(*state, i & 1, i & 2, true);
}

static void failing_at_any_moment(void **state)
{
	for (unsigned i = 0; i < 4; i++)
		faults(*state, i & 1, i & 2, false);
}

/*
 * What is left is stock, the first edition, today's, or one of them begun: and the next run
 * completes it.
 */
static void replaced_with_faults(const struct scratch *s, bool kill)
{
	AUTO_STRBUF struct strbuf stock = {0}, patched = {0};
	bool ended = false;
	unsigned at = 0;

	write_era(s, ERA_580);
	stock = snapshot(s);
	run(s, &plain, true);
	patched = snapshot(s);
	for (; !ended; at++) {
		assert_true(at < 200);
		write_era(s, ERA_580);
		make_first_edition(s, "unlock 1");
		ended = run_with_fault(s, true, at, kill);
		if (at % 2) {
			run(s, &plain, false);
			check_same(s, &stock);
			run(s, &plain, true);
		} else {
			run(s, &plain, true);
		}
		check_same(s, &patched);
	}
	assert_true(at > 30);
}

static void replaced_and_cut_off_at_any_moment(void **state)
{
	replaced_with_faults(*state, true);
	replaced_with_faults(*state, false);
}

static int forget_filled(void **state)
{
	(void)state;
	made_forget();
	return 0;
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(every_era_there_and_back),
		TREE_TEST(each_count_is_checked),
		TREE_TEST(functions_and_files_that_lack_are_named),
		TREE_TEST(a_release_that_was_not_tried_is_edited),
		TREE_TEST(a_release_that_differs_is_refused),
		TREE_TEST(a_release_of_no_known_kind_is_refused),
		TREE_TEST(a_release_before_all_others_is_refused),
		TREE_TEST(odd_text_is_refused),
		TREE_TEST(other_folders_are_told_apart),
		TREE_TEST(links_are_refused),
		TREE_TEST(later_changes_are_refused),
		TREE_TEST(manifests_lead_nowhere_else),
		TREE_TEST(ours_without_a_manifest),
		TREE_TEST(edits_by_patch_are_taken_out_by_patch),
		TREE_TEST(one_at_a_time),
		TREE_TEST(what_only_some_have_is_edited_there),
		TREE_TEST(who_asks_the_kernel_is_left_alone),
		TREE_TEST(one_edit_fits_both_kinds_of_kernel),
		TREE_TEST(more_in_a_manifest_is_left_unread),
		TREE_TEST(earlier_edits_are_replaced),
		TREE_TEST(later_edits_are_refused),
		TREE_TEST(what_is_looked_for_is_put_there),
		TREE_TEST(two_releases_in_one_tree),
		TREE_TEST(version_that_was_changed_since),
		TREE_TEST(a_pipe_is_named),
		TREE_TEST(reverting_what_is_stock_writes_nothing),
		TREE_TEST(reverting_needs_no_space),
		TREE_TEST(what_is_reverted_is_newer_than_what_was_built),
		TREE_TEST(a_linked_copy_of_the_tree_stays_as_it_is),
		TREE_TEST(a_failure_says_that_the_tree_was_changed),
		TREE_TEST(closed_standard_files_write_nowhere),
		TREE_TEST(killed_at_any_moment),
		TREE_TEST(failing_at_any_moment),
		TREE_TEST(replaced_and_cut_off_at_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, forget_filled);
}
