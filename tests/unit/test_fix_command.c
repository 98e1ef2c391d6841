/* SPDX-License-Identifier: Apache-2.0 */
/* cli/: history and undo on scratch roots that a plan for a recorded machine was applied to. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "check_text.h"
#include "cli/command.h"
#include "diagnose/diagnose.h"
#include "fix/fix.h"
#include "fix/make_plan.h"
#include "json_schema.h"
#include "machine/machine.h"
#include "open_recording.h"
#include "run_command.h"
#include "session/planning.h"

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MACHINE "tests/machines/guest-rdma" /* memlock: files alone can mend it */

/* ---- a scratch root ---- */

static void put(const char *root, const char *path, const char *text)
{
	AUTO_FREE char *whole = xprintf("%s/%s", root, path);
	AUTO_FCLOSE FILE *f = NULL;

	for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(whole, 0755);
		*slash = '/';
	}
	f = fopen(whole, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Where nftw puts what it sees: it has no context. */
static struct strbuf *listing;
static size_t listing_root;

static int list_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	AUTO_FREE char *text = type == FTW_F ? file_text(path) : xstrdup("");

	(void)ftw;
	if (!strstr(path, "/var"))
		strbuf_printf(listing, "%s %o %s\n", path + listing_root, st->st_mode, text);
	return 0;
}

/* Every path, permission and content but the journal's; the caller frees. */
static char *tree(const char *root)
{
	struct strbuf b = {0};

	listing = &b;
	listing_root = strlen(root);
	assert_int_equal(nftw(root, list_one, 16, FTW_PHYS), 0);
	return b.text;
}

struct scratch {
	char root[64];
	char *before;
};

static void scratch_make(struct scratch *s)
{
	snprintf(s->root, sizeof(s->root), "/tmp/onehop-fix-XXXXXX");
	assert_non_null(mkdtemp(s->root));
	put(s->root, "etc/os-release", "ID=debian\n");
	put(s->root, "etc/security/limits.conf", "# nothing\n");
	put(s->root, "etc/systemd/system.conf", "[Manager]\n");
	s->before = tree(s->root);
}

static void scratch_done(struct scratch *s)
{
	nftw(s->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(s->before);
}

/* What `onehop fix --root` does, for a machine that is not this host. */
static void apply(const char *root, unsigned expected)
{
	static const struct machine_request all = {.parts = MACHINE_ALL};
	const struct propose_options options = {0};
	struct plan_request request = {.image = true, .lifetime = CHANGE_LASTING};
	struct change_set changes = {.arena = arena_new()};
	struct fix_host host;
	const struct fix_run run = {.host = &host};
	enum fix_result result;
	unsigned number;
	struct source *s;
	struct machine *m;
	struct topology *t;
	struct diagnosis *d;
	struct plan *p;

	assert_int_equal(open_recording(MACHINE, &s), 0);
	m = machine_read(s, &all);
	t = topology_new(m);
	d = diagnose(t);
	diagnosis_propose(d, &options, &changes);
	request.machine = m;
	assert_int_equal(source_open_root(root, NULL, NULL, &request.source), 0);
	p = plan_make(&request, &changes);
	assert_int_equal(fix_host_open(root, &host), 0);
	if (fix_apply(&run, p, &result, &number) < 0)
		fail_msg("%s", err_msg());
	assert_int_equal(number, expected);
	assert_int_equal(result, expected ? FIX_DONE : FIX_NOTHING);
	fix_host_close(&host);
	plan_free(p);
	source_free(request.source);
	arena_free(changes.arena);
	diagnosis_free(d);
	topology_free(t);
	machine_free(m);
	source_free(s);
}

/* ---- command lines ---- */

static struct result run(const char *line, const char *root)
{
	AUTO_FREE char *whole = xprintf("%s --root %s", line, root);

	return run_command(whole);
}

static void assert_runs(const char *line, const char *root, int code, const char *part)
{
	struct result r CLEANUP(result_done) = run(line, root);

	if (r.code != code || !strstr(r.out, part) || *r.err)
		fail_msg("%s: exit %d, not %d with \"%s\":\n%s%s", line, r.code, code, part, r.out,
			 r.err);
}

static void assert_refused(const char *line, const char *root, const char *part)
{
	struct result r CLEANUP(result_done) = run(line, root);

	if (r.code != EXIT_REFUSED || !strstr(r.err, part) || *r.out)
		fail_msg("%s: exit %d, not 2 with \"%s\":\n%s%s", line, r.code, part, r.out, r.err);
}

static void assert_json(const char *line, const char *root, int code, const char *schema)
{
	struct result r CLEANUP(result_done) = run(line, root);
	json_t *json = json_loads(r.out, 0, NULL);
	AUTO_STRBUF struct strbuf trouble = {0};

	assert_int_equal(r.code, code);
	assert_non_null(json);
	json_schema_check(json, schema, &trouble);
	if (trouble.len)
		fail_msg("%s: %s", line, strbuf_str(&trouble));
	json_decref(json);
}

static void assert_tree(const char *root, const char *expected)
{
	AUTO_FREE char *now = tree(root);

	if (strcmp(now, expected) != 0)
		fail_msg("expected\n%s\nbut it is\n%s", expected, now);
}

/* ---- tests ---- */

static void nothing_was_changed_yet(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};

	(void)state;
	scratch_make(&s);
	assert_runs("history", s.root, 0, "onehop has not changed anything here.\n");
	assert_refused("undo", s.root, "nothing to undo");
	assert_refused("undo --dry-run", s.root, "nothing to undo");
	assert_refused("undo 7", s.root, "there is no fix 7");
	assert_refused("history 7", s.root, "there is no fix 7");
	assert_refused("undo x", s.root, "'x' is not the number of a fix");
	assert_tree(s.root, s.before);
}

static void undo_restores_every_byte(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};
	AUTO_FREE char *applied = NULL;

	(void)state;
	scratch_make(&s);
	apply(s.root, 1);
	applied = tree(s.root);
	assert_string_not_equal(applied, s.before);
	assert_non_null(strstr(applied, "* soft memlock unlimited"));
	assert_runs("history", s.root, 0, "applied");
	assert_runs("history 1", s.root, 0, "+ * soft memlock unlimited");
	assert_json("history --json", s.root, 0, "history.schema.json");
	assert_runs("undo --dry-run", s.root, 0, "Remove /etc/security/limits.d/onehop.conf");
	assert_json("undo --dry-run --json", s.root, 0, "undo.schema.json");
	assert_tree(s.root, applied);
	assert_runs("undo", s.root, 0, "Fix 1 is undone.");
	assert_tree(s.root, s.before);
	assert_refused("undo 1", s.root, "fix 1 is undone already");
	assert_runs("history", s.root, 0, "undone");
}

static void twice_changes_nothing(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};
	AUTO_FREE char *applied = NULL;

	(void)state;
	scratch_make(&s);
	apply(s.root, 1);
	applied = tree(s.root);
	apply(s.root, 0);
	assert_tree(s.root, applied);
	assert_json("undo --json", s.root, 0, "undo.schema.json");
	assert_tree(s.root, s.before);
}

/* What somebody else wrote since stays; the rest is undone, and the exit status says so. */
static void others_changes_stay(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};
	AUTO_FREE char *path = NULL, *text = NULL, *other = NULL;
	struct stat st;

	(void)state;
	scratch_make(&s);
	apply(s.root, 1);
	put(s.root, "etc/security/limits.d/onehop.conf", "mine\n");
	assert_runs("undo --dry-run", s.root, EXIT_NOT_CHANGED, "changed by something else");
	assert_json("undo --dry-run --json", s.root, EXIT_NOT_CHANGED, "undo.schema.json");
	assert_runs("undo", s.root, EXIT_NOT_CHANGED, "NOT UNDONE");
	path = xprintf("%s/etc/security/limits.d/onehop.conf", s.root);
	other = xprintf("%s/etc/systemd/system.conf.d/onehop.conf", s.root);
	text = file_text(path);
	assert_string_equal(text, "mine\n");
	assert_int_equal(stat(other, &st), -1);
	assert_runs("history", s.root, 0, "undoing, not finished");
}

/* A fix of one file, whatever rules say. */
static void apply_file(const char *root, const char *path, const char *old, const char *new)
{
	struct plan *p = plan_new();
	struct step *s = ARENA_PUSH(p->arena, p->steps, p->step_n);
	struct fix_host host;
	const struct fix_run run = {.host = &host};
	enum fix_result result;
	unsigned number;

	*s = (struct step){.kind = STEP_FILE,
			   .target = path,
			   .old = {old, old ? strlen(old) : 0},
			   .new = {new, strlen(new)},
			   .mode = 0644,
			   .what = "write a file",
			   .why = TEXTS("a test")};
	assert_int_equal(fix_host_open(root, &host), 0);
	if (fix_apply(&run, p, &result, &number) < 0)
		fail_msg("%s", err_msg());
	assert_int_equal(result, FIX_DONE);
	fix_host_close(&host);
	plan_free(p);
}

/* A limit on the size of files (ulimit -f) is an error of a write, and ends nobody. */
static void a_limit_on_files_is_an_error(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};
	const struct rlimit limit = {8192, 8192};
	char old[20001];
	AUTO_FREE char *path = NULL, *text = NULL;
	int status;
	pid_t child;

	(void)state;
	memset(old, 'a', sizeof(old) - 1);
	old[sizeof(old) - 1] = '\0';
	scratch_make(&s);
	put(s.root, "etc/big", old);
	apply_file(s.root, "etc/big", old, "1\n");
	child = fork();
	if (child == 0) {
		AUTO_FREE char *line = xprintf("undo --json --root %s", s.root);

		redirect_stream(stdout, "/dev/null");
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(run_line(line));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EXIT_NOT_CHANGED);
	assert_runs("undo", s.root, 0, "Fix 1 is undone.");
	path = xprintf("%s/etc/big", s.root);
	text = file_text(path);
	assert_string_equal(text, old);
}

/* ---- file systems that are not mounted ---- */

#define FSTAB                                                                                      \
	"# a comment\n/dev/sda2 / ext4 defaults 0 1\nUUID=12\\04034 /var/ ext4 defaults 0 2\n"     \
	"LABEL=ESP /boot/efi vfat umask=0077 0 1\n/dev/sda3 none swap sw 0 0\n"

static void not_mounted_is_not_nothing(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};
	AUTO_FREE char *var = NULL, *aside = NULL, *why = NULL;

	(void)state;
	scratch_make(&s);
	apply_file(s.root, "etc/one", NULL, "1\n");
	apply_file(s.root, "boot/efi/loader/one.conf", NULL, "1\n");
	put(s.root, "etc/fstab", FSTAB);
	assert_runs("undo --dry-run", s.root, 0, "Remove /boot/efi/loader/one.conf");

	/* As from a rescue system that has mounted the root alone. */
	var = xprintf("%s/var", s.root);
	aside = xprintf("%s.var", s.root);
	why = xprintf("%s is not mounted, and %s/etc/fstab has UUID=12 34 there: mount it first",
		      var, s.root);
	assert_int_equal(rename(var, aside), 0);
	assert_int_equal(mkdir(var, 0755), 0);
	assert_refused("undo", s.root, why);
	assert_refused("undo --dry-run", s.root, why);
	assert_refused("undo 1", s.root, why);
	assert_refused("history", s.root, why);
	assert_int_equal(rmdir(var), 0); /* nothing was written there */
	assert_refused("undo", s.root, why);
	assert_int_equal(rename(aside, var), 0);
	assert_runs("undo 1 --dry-run", s.root, 0, "Remove /etc/one");
}

/* /var is a link to a file system that is not mounted. */
static void not_mounted_behind_a_link(void **state)
{
	static const char *const links[] = {"data/var", "/data/./var", "../data/var"};
	struct scratch s CLEANUP(scratch_done) = {0};
	AUTO_FREE char *var = NULL, *data = NULL, *aside = NULL, *why = NULL;

	(void)state;
	scratch_make(&s);
	apply_file(s.root, "etc/one", NULL, "1\n");
	put(s.root, "etc/fstab", "/dev/sda5 /data ext4 defaults 0 2\n");
	put(s.root, "data/x", "");
	var = xprintf("%s/var", s.root);
	data = xprintf("%s/data", s.root);
	aside = xprintf("%s/data/var", s.root);
	why = xprintf("%s is not mounted", data);
	assert_int_equal(rename(var, aside), 0);
	free(aside);
	aside = xprintf("%s/aside", s.root);
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
		assert_int_equal(symlink(links[i], var), 0);
		assert_runs("undo 1 --dry-run", s.root, 0, "Remove /etc/one");
		assert_int_equal(rename(data, aside), 0);
		assert_int_equal(mkdir(data, 0755), 0);
		assert_refused("undo", s.root, why);
		assert_int_equal(rmdir(data), 0);
		assert_refused("undo", s.root, why);
		assert_int_equal(rename(aside, data), 0);
		assert_int_equal(unlink(var), 0);
	}
}

/* Partitions that are found by their types are in no fstab. */
static void empty_folders_are_not_mounted(void **state)
{
	static const char *const folders[] = {"boot", "var"};
	struct scratch s CLEANUP(scratch_done) = {0};

	(void)state;
	scratch_make(&s);
	put(s.root, "boot/grub/grub.cfg", "");
	apply_file(s.root, "boot/grub/custom.cfg", NULL, "1\n");
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		AUTO_FREE char *folder = xprintf("%s/%s", s.root, folders[i]);
		AUTO_FREE char *aside = xprintf("%s/aside", s.root);
		AUTO_FREE char *why =
			xprintf("/%s of the system in %s is empty", folders[i], s.root);

		assert_int_equal(rename(folder, aside), 0);
		assert_int_equal(mkdir(folder, 0755), 0);
		assert_refused("undo", s.root, why);
		assert_refused("undo --dry-run", s.root, why);
		assert_int_equal(rmdir(folder), 0); /* nothing was written there */
		assert_int_equal(rename(aside, folder), 0);
	}
	assert_runs("undo", s.root, 0, "Fix 1 is undone.");
}

static void no_fix_is_undone_where_its_disk_is_missing(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};
	AUTO_FREE char *esp = NULL, *loader = NULL, *aside = NULL, *why = NULL;

	(void)state;
	scratch_make(&s);
	apply_file(s.root, "etc/one", NULL, "1\n");
	apply_file(s.root, "boot/efi/loader/one.conf", NULL, "1\n");
	put(s.root, "etc/fstab", FSTAB);
	esp = xprintf("%s/boot/efi", s.root);
	loader = xprintf("%s/boot/efi/loader", s.root);
	aside = xprintf("%s/loader", s.root);
	why = xprintf("%s is not mounted, and %s/etc/fstab has LABEL=ESP there", esp, s.root);
	assert_int_equal(rename(loader, aside), 0);
	assert_refused("undo", s.root, why);
	assert_refused("undo 2 --dry-run", s.root, why);
	assert_runs("undo 1", s.root, 0, "Fix 1 is undone."); /* it has nothing there */
	assert_int_equal(rename(aside, loader), 0);
	assert_runs("undo", s.root, 0, "Fix 2 is undone.");
}

static void bad_roots_are_refused(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};
	AUTO_FREE char *file = NULL;

	(void)state;
	scratch_make(&s);
	file = xprintf("%s/etc/os-release", s.root);
	assert_refused("history", "/nowhere/at/all", "/nowhere/at/all: No such file");
	assert_refused("undo", file, "Not a directory");
	put(s.root, "var/lib/onehop/fixes/1/plan.json", "{\"version\": 99}\n");
	assert_refused("undo", s.root, "fixes/1");
	assert_tree(s.root, s.before);
}

static void damage_hides_nothing(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};

	(void)state;
	scratch_make(&s);
	apply_file(s.root, "etc/one", NULL, "1\n");
	apply_file(s.root, "etc/two", NULL, "2\n");
	apply_file(s.root, "etc/three", NULL, "3\n");
	put(s.root, "var/lib/onehop/fixes/2/plan.json", "rubbish");
	assert_runs("history", s.root, EXIT_NOT_JUDGED,
		    "The journal of fix 2 is damaged: /var/lib/onehop/fixes/2");
	assert_runs("history", s.root, EXIT_NOT_JUDGED, "applied");
	assert_runs("history 2", s.root, EXIT_NOT_JUDGED, "is not valid JSON");
	assert_runs("history 3", s.root, 0, "etc/three");
	assert_json("history --json", s.root, EXIT_NOT_JUDGED, "history.schema.json");
	assert_refused("undo 2", s.root, "fixes/2/plan.json is not valid JSON");
	assert_refused("undo 1 --dry-run", s.root, "fix 2 may have changed the same after fix 1");
	assert_refused("undo 1", s.root, "fix 2 may have changed the same after fix 1");
	assert_runs("undo 3", s.root, 0, "Fix 3 is undone.");
}

/*
 * A person has settled it: nothing is in the way, and the list does not call for anything any more.
 */
static void forgotten_damage_is_settled(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};
	struct result now CLEANUP(result_done) = {0};

	(void)state;
	scratch_make(&s);
	apply_file(s.root, "etc/one", NULL, "1\n");
	put(s.root, "var/lib/onehop/fixes/1/plan.json", "rubbish");
	assert_runs("history", s.root, EXIT_NOT_JUDGED, "damaged");
	assert_runs("undo --forget 1", s.root, 0, "Fix 1 is closed");
	assert_runs("history", s.root, 0, "forgotten");
	now = run("history", s.root);
	assert_null(strstr(now.out, "damaged"));
	assert_runs("history 1", s.root, 0, "forgotten");
	assert_json("history --json", s.root, 0, "history.schema.json");
}

/* What the damaged fix did is unknown; what is onehop's alone, and of no other fix, is named. */
static void forgotten_damage_names_what_is_left(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};
	struct result now CLEANUP(result_done) = {0};
	AUTO_FREE char *left = NULL, *other = NULL;

	(void)state;
	scratch_make(&s);
	apply_file(s.root, "etc/default/grub.d/99-onehop.cfg", NULL, "1\n");
	apply_file(s.root, "etc/modprobe.d/onehop.conf", NULL, "2\n");
	put(s.root, "var/lib/onehop/fixes/1/plan.json", "rubbish");
	left = xprintf("%s/etc/default/grub.d/99-onehop.cfg", s.root);
	other = xprintf("%s/etc/modprobe.d/onehop.conf", s.root);
	now = run("undo --forget 1 --width 250", s.root);
	assert_non_null(strstr(now.out, "Fix 1 is closed"));
	assert_non_null(strstr(now.out, left));
	assert_null(strstr(now.out, other));
}

static void forgotten_damage_in_json(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};

	(void)state;
	scratch_make(&s);
	apply_file(s.root, "etc/modprobe.d/onehop.conf", NULL, "2\n");
	put(s.root, "var/lib/onehop/fixes/1/plan.json", "rubbish");
	assert_json("undo --forget 1 --json", s.root, 0, "undo.schema.json");
	assert_runs("undo 1 --json", s.root, EXIT_REFUSED, "\"left_files\": []");
}

/* --dry-run refuses what the undo would refuse, and nothing else. */
static void dry_run_sees_later_fixes(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};

	(void)state;
	scratch_make(&s);
	apply_file(s.root, "etc/one", NULL, "1\n");
	apply_file(s.root, "etc/one", "1\n", "2\n");
	apply_file(s.root, "etc/three", NULL, "3\n");
	assert_refused("undo 1", s.root, "fix 2 changed /etc/one after it: undo 2 first");
	assert_refused("undo 1 --dry-run", s.root, "fix 2 changed /etc/one after it: undo 2 first");
	assert_json("undo 1 --json", s.root, EXIT_REFUSED, "undo.schema.json");
	assert_json("undo 1 --dry-run --json", s.root, EXIT_REFUSED, "undo.schema.json");
	assert_runs("undo 2 --dry-run", s.root, 0, "Restore /etc/one");
	assert_runs("undo 2", s.root, 0, "Fix 2 is undone.");
	assert_runs("undo 1 --dry-run", s.root, 0, "Remove /etc/one");
	assert_runs("undo 1", s.root, 0, "Fix 1 is undone.");
}

static void recordings_are_never_applied(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};

	(void)state;
	scratch_make(&s);
	assert_refused("fix --apply --from " MACHINE, s.root, "--apply cannot be used with --from");
	assert_refused("fix memlok", s.root, "fix: no rule 'memlok'; did you mean memlock?");
	assert_runs("fix memlock --from " MACHINE, s.root, EXIT_FINDING,
		    "+ * soft memlock unlimited");
	assert_json("fix --json --from " MACHINE, s.root, EXIT_FINDING, "fix.schema.json");
	assert_tree(s.root, s.before);
}

/* ---- what must not stop it ---- */

/* Runs the program itself; `prepare` in the child, before. Returns its exit status. */
static int run_program(const char *root, void (*prepare)(const char *root))
{
	const char *program = getenv("ONEHOP");
	int status;
	pid_t pid;

	assert_non_null(program);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prepare(root);
		execl(program, program, "undo", "--root", root, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The child's standard streams: this terminal, and its own to be stopped by. */
static void take_terminal(int master)
{
	int fd;

	setsid();
	fd = open(ptsname(master), O_RDWR);
	for (int i = 0; i <= STDERR_FILENO; i++)
		dup2(fd, i);
}

/* At a terminal, with `answer` typed in before it is asked for; what is printed goes to `ret`. */
static int at_terminal(const char *root, const char *option, const char *answer, char *ret,
		       size_t size)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), status;
	size_t at = 0;
	ssize_t n;
	pid_t pid;

	assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	assert_int_equal(write(master, answer, strlen(answer)), strlen(answer));
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		take_terminal(master);
		execl(getenv("ONEHOP"), "onehop", "undo", "--root", root, option, NULL);
		_exit(127);
	}
	/* Until EIO: nobody writes any more. */
	while (at < size - 1 && (n = read(master, ret + at, size - 1 - at)) > 0)
		at += (size_t)n;
	ret[at] = '\0';
	close(master);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void a_person_is_asked(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};
	AUTO_FREE char *applied = NULL;
	static const char *const no[] = {"n\n", "\n", "yesterday\n", "\x04"};
	char said[8192];

	(void)state;
	scratch_make(&s);
	apply(s.root, 1);
	applied = tree(s.root);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		assert_int_equal(at_terminal(s.root, NULL, no[i], said, sizeof(said)),
				 EXIT_REFUSED);
		assert_non_null(strstr(said, "Remove /etc/security/limits.d/onehop.conf"));
		assert_non_null(strstr(said, "Undo fix 1? [y/N] "));
		assert_non_null(strstr(said, "nothing was changed"));
		assert_tree(s.root, applied);
	}
	assert_int_equal(at_terminal(s.root, NULL, "Yes\n", said, sizeof(said)), 0);
	assert_non_null(strstr(said, "Fix 1 is undone."));
	assert_tree(s.root, s.before);
}

static void a_person_may_say_yes_before(void **state)
{
	struct scratch s CLEANUP(scratch_done) = {0};
	char said[8192];

	(void)state;
	scratch_make(&s);
	apply(s.root, 1);
	assert_int_equal(at_terminal(s.root, "--yes", "", said, sizeof(said)), 0);
	assert_null(strstr(said, "[y/N]"));
	assert_non_null(strstr(said, "Undoing fix 1 of "));
	assert_null(strstr(said, "would")); /* it does */
	assert_non_null(strstr(said, "Fix 1 is undone."));
	assert_tree(s.root, s.before);
}

/* Nobody reads any more: the first write raises SIGPIPE. */
static void close_reader(const char *root)
{
	int ends[2];

	(void)root;
	if (pipe(ends) < 0)
		_exit(126);
	close(ends[0]);
	dup2(ends[1], STDOUT_FILENO);
	dup2(ends[1], STDERR_FILENO);
}

static void close_output(const char *root)
{
	(void)root;
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
}

static void fill_output(const char *root)
{
	int fd = open("/dev/full", O_WRONLY);

	(void)root;
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
}

/* Ctrl-C and a lost session that came before the first step: pending, as if in the middle. */
static void send_signals(const char *root)
{
	AUTO_FREE char *path = xprintf("%s/said", root);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGINT);
	raise(SIGHUP);
	dup2(fd, STDOUT_FILENO);
}

static void nothing_stops_an_undo(void **state)
{
	static void (*const ways[])(const char *root) = {close_reader, close_output, fill_output,
							 send_signals};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct scratch s CLEANUP(scratch_done) = {0};
		AUTO_FREE char *path = NULL, *said = NULL;

		scratch_make(&s);
		apply(s.root, 1);
		assert_int_equal(run_program(s.root, ways[i]), 0);
		path = xprintf("%s/said", s.root);
		said = ways[i] == send_signals ? file_text(path) : NULL;
		unlink(path);
		assert_tree(s.root, s.before);
		assert_runs("history", s.root, 0, "undone"); /* the journal holds nothing else */
		if (said)
			assert_has(said, "A signal to stop came. The change was finished first");
	}
}

/* ---- what a unit may run as root ---- */

/* /tmp is anybody's, however the file in it is. */
static void program_of_root_alone(void **state)
{
	char folder[] = "/tmp/onehop-program-XXXXXX";
	AUTO_FREE char *path = NULL;
	struct stat root, proc;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	path = xprintf("%s/onehop", folder);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_false(is_roots_alone(path));
	unlink(path);
	assert_false(is_roots_alone(path));
	rmdir(folder);
	assert_false(is_roots_alone("/proc/self/exe"));
	assert_false(is_roots_alone("proc/uptime"));
	/* As a namespace of users shows it, nothing is root's. */
	assert_int_equal(stat("/", &root) | stat("/proc", &proc), 0);
	assert_int_equal(is_roots_alone("/proc/uptime"),
			 root.st_uid == 0 && !(root.st_mode & 022) && proc.st_uid == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(program_of_root_alone),
		cmocka_unit_test(nothing_was_changed_yet),
		cmocka_unit_test(undo_restores_every_byte),
		cmocka_unit_test(twice_changes_nothing),
		cmocka_unit_test(others_changes_stay),
		cmocka_unit_test(not_mounted_is_not_nothing),
		cmocka_unit_test(not_mounted_behind_a_link),
		cmocka_unit_test(empty_folders_are_not_mounted),
		cmocka_unit_test(no_fix_is_undone_where_its_disk_is_missing),
		cmocka_unit_test(bad_roots_are_refused),
		cmocka_unit_test(damage_hides_nothing),
		cmocka_unit_test(forgotten_damage_is_settled),
		cmocka_unit_test(forgotten_damage_names_what_is_left),
		cmocka_unit_test(forgotten_damage_in_json),
		cmocka_unit_test(dry_run_sees_later_fixes),
		cmocka_unit_test(recordings_are_never_applied),
		cmocka_unit_test(a_limit_on_files_is_an_error),
		cmocka_unit_test(a_person_is_asked),
		cmocka_unit_test(a_person_may_say_yes_before),
		cmocka_unit_test(nothing_stops_an_undo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
