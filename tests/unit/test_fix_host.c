/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fix/host*.c and child_run: writes that are whole or not there, and paths that lead nowhere else.
 */
#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/host.h"

#include "skip.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#define OTHER_USER 65534

/* ---- a scratch root ---- */

struct scratch {
	char root[64];
	struct fix_host host;
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

	umask(022);
	memcpy(s->root, "/tmp/onehop-host-XXXXXX", sizeof("/tmp/onehop-host-XXXXXX"));
	*state = s;
	return mkdtemp(s->root) ? fix_host_open(s->root, &s->host) : -1;
}

static int remove_scratch(void **state)
{
	struct scratch *s = *state;

	fix_host_close(&s->host);
	nftw(s->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(s);
	return 0;
}

/* A path below the scratch root; the caller frees. */
static char *below(const struct scratch *s, const char *path)
{
	return xprintf("%s/%s", s->root, path);
}

static void folder(const struct scratch *s, const char *path, mode_t mode)
{
	AUTO_FREE char *whole = below(s, path);

	assert_true(mkdir(whole, 0755) == 0 || errno == EEXIST);
	assert_int_equal(chmod(whole, mode), 0);
}

static void put(const struct scratch *s, const char *path, const char *text)
{
	AUTO_FREE char *whole = below(s, path);
	AUTO_FCLOSE FILE *f = fopen(whole, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

static void link_to(const struct scratch *s, const char *target, const char *path)
{
	AUTO_FREE char *whole = below(s, path);

	assert_int_equal(symlink(target, whole), 0);
}

static void assert_holds(const struct scratch *s, const char *path, const char *text)
{
	AUTO_FREE char *whole = below(s, path);
	AUTO_FCLOSE FILE *f = fopen(whole, "re");
	char buf[8192];

	assert_non_null(f);
	buf[fread(buf, 1, sizeof(buf) - 1, f)] = '\0';
	assert_string_equal(buf, text);
}

static bool exists(const struct scratch *s, const char *path)
{
	AUTO_FREE char *whole = below(s, path);
	struct stat st;

	return lstat(whole, &st) == 0;
}

static struct stat status_of(const struct scratch *s, const char *path)
{
	AUTO_FREE char *whole = below(s, path);
	struct stat st;

	assert_int_equal(lstat(whole, &st), 0);
	return st;
}

/* All names in a folder, a blank between them. */
static void assert_names(struct scratch *s, const char *path, const char *expected)
{
	AUTO_STRBUF struct strbuf b = {0};
	char **names;
	size_t n;

	assert_int_equal(host_list(&s->host, path, &names, &n), 0);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&b, i ? " %s" : "%s", names[i]);
	source_free_names(names, n);
	assert_string_equal(strbuf_str(&b), expected);
}

static int replace(struct scratch *s, const char *path, const char *text)
{
	return host_replace(&s->host, path, text, strlen(text), 0644);
}

static struct bytes bytes_of(const char *text)
{
	return (struct bytes){text, text ? strlen(text) : 0};
}

/* From what is there to `text`. */
static int change_now(struct scratch *s, const char *path, const char *text, bool for_boot)
{
	AUTO_FREE char *data = NULL;
	struct host_change c = {.put = bytes_of(text), .mode = 0644, .for_boot = for_boot};

	host_read(&s->host, path, &data, &c.seen.size);
	c.seen.data = data;
	return host_change(&s->host, path, &c);
}

static int change(struct scratch *s, const char *path, const char *text)
{
	return change_now(s, path, text, false);
}

static int change_for_boot(struct scratch *s, const char *path, const char *text)
{
	return change_now(s, path, text, true);
}

static int settle(struct scratch *s, const char *path, const char *seen, const char *put)
{
	const struct host_change c = {.seen = bytes_of(seen), .put = bytes_of(put)};

	return host_settle(&s->host, path, &c);
}

static int read_to_nothing(struct scratch *s, const char *path)
{
	AUTO_FREE char *data = NULL;
	size_t size;

	return host_read(&s->host, path, &data, &size);
}

static void assert_said(const char *what)
{
	if (!strstr(err_msg(), what))
		fail_msg("\"%s\" is not in: %s", what, err_msg());
}

/* ---- reading and writing ---- */

static void files_come_and_go(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *data = NULL;
	size_t size;

	assert_true(s->host.image);
	assert_int_equal(read_to_nothing(s, "etc/modprobe.d/onehop.conf"), -ENOENT);
	umask(077);
	assert_int_equal(replace(s, "etc/modprobe.d/onehop.conf", "options a b=1\n"), 0);
	umask(022);
	assert_int_equal(status_of(s, "etc/modprobe.d").st_mode & 07777, 0755);
	assert_int_equal(status_of(s, "etc/modprobe.d/onehop.conf").st_mode & 07777, 0644);
	assert_int_equal(host_read(&s->host, "etc/modprobe.d/onehop.conf", &data, &size), 0);
	assert_int_equal(size, 14);
	assert_string_equal(data, "options a b=1\n");
	assert_names(s, "etc/modprobe.d", "onehop.conf");
	assert_int_equal(host_remove(&s->host, "etc/modprobe.d/onehop.conf"), 0);
	assert_int_equal(host_remove(&s->host, "etc/modprobe.d/onehop.conf"), 0);
	assert_int_equal(host_remove(&s->host, "no/such/folder"), 0);
	assert_names(s, "etc/modprobe.d", "");
	assert_int_equal(replace(s, "./.top", "x"), 0);
	assert_holds(s, ".top", "x");
}

static void paths_that_are_none(void **state)
{
	static const char *const paths[] = {"", "/", ".", "etc/", "etc/../x", "..", "etc/x/.."};
	struct scratch *s = *state;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		assert_int_equal(replace(s, paths[i], "x"), -EINVAL);
	folder(s, "etc", 0755);
	folder(s, "etc/x", 0755);
	put(s, "etc/file", "f");
	assert_int_equal(replace(s, "etc/x", "x"), -EISDIR);
	assert_int_equal(replace(s, "etc/file/x", "x"), -ENOTDIR);
	assert_said("etc/file/x");
	assert_names(s, "etc", "file x");
}

/* Sets it if the file system has such a thing. */
static bool set_attribute(const struct scratch *s, const char *path, const char *name,
			  const void *value, size_t size)
{
	AUTO_FREE char *whole = below(s, path);

	if (setxattr(whole, name, value, size, 0) == 0)
		return true;
	assert_int_equal(errno, ENOTSUP);
	return false;
}

static ssize_t attribute_of(const struct scratch *s, const char *path, const char *name, char *buf,
			    size_t size)
{
	AUTO_FREE char *whole = below(s, path);

	return getxattr(whole, name, buf, size);
}

static void owner_and_permissions_stay(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *whole = below(s, "etc/f");
	struct stat before, after;

	folder(s, "etc", 0755);
	put(s, "etc/f", "old");
	assert_int_equal(chmod(whole, 0750), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(whole, 0, 7), 0);
	before = status_of(s, "etc/f");
	assert_int_equal(replace(s, "etc/f", "new"), 0);
	after = status_of(s, "etc/f");
	assert_holds(s, "etc/f", "new");
	assert_int_not_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_uid, before.st_uid);
	assert_int_equal(after.st_gid, before.st_gid);
	assert_names(s, "etc", "f");
}

static void attributes_stay(void **state)
{
	struct scratch *s = *state;
	char value[16];

	folder(s, "etc", 0755);
	put(s, "etc/f", "old");
	if (!set_attribute(s, "etc/f", "user.onehop", "label", 5))
		SKIP("no attributes on this file system");
	assert_int_equal(replace(s, "etc/f", "new"), 0);
	assert_holds(s, "etc/f", "new");
	assert_int_equal(attribute_of(s, "etc/f", "user.onehop", value, sizeof(value)), 5);
	assert_memory_equal(value, "label", 5);
	assert_int_equal(change_for_boot(s, "etc/f", "newer"), 0);
	assert_int_equal(attribute_of(s, "etc/f", "user.onehop", value, sizeof(value)), 5);
}

/* A folder's default access list is not for a file that stands there without one. */
static void access_lists_are_the_old_files(void **state)
{
	static const struct {
		uint32_t version;
		struct {
			uint16_t tag, permissions;
			uint32_t id;
		} entries[5];
	} list = {2,
		  {{0x01, 6, UINT32_MAX},   /* owner */
		   {0x02, 6, OTHER_USER},   /* a user */
		   {0x04, 4, UINT32_MAX},   /* group */
		   {0x10, 6, UINT32_MAX},   /* mask */
		   {0x20, 4, UINT32_MAX}}}; /* others */
	struct scratch *s = *state;
	char value[64];

	folder(s, "etc", 0755);
	put(s, "etc/f", "old");
	if (!set_attribute(s, "etc", "system.posix_acl_default", &list, sizeof(list)))
		SKIP("no lists of access rights on this file system");
	put(s, "etc/inherits", "");
	assert_true(attribute_of(s, "etc/inherits", "system.posix_acl_access", value,
				 sizeof(value)) > 0);
	assert_int_equal(replace(s, "etc/f", "new"), 0);
	assert_int_equal(attribute_of(s, "etc/f", "system.posix_acl_access", value, sizeof(value)),
			 -1);
	assert_int_equal(status_of(s, "etc/f").st_mode & 07777, 0644);
}

static void lines_are_appended(void **state)
{
	struct scratch *s = *state;
	int fd = -1;

	assert_int_equal(host_append(&s->host, "var/log.jsonl", "one\n", 4), 0);
	assert_int_equal(host_append(&s->host, "var/log.jsonl", "two\n", 4), 0);
	assert_holds(s, "var/log.jsonl", "one\ntwo\n");
	assert_int_equal(status_of(s, "var/log.jsonl").st_mode & 07777, 0600);
	assert_int_equal(host_open_own(&s->host, "var/log.jsonl", &fd), 0);
	close(fd);
	assert_int_equal(host_open_own(&s->host, "var/lock", &fd), 0);
	close(fd);
	assert_names(s, "var", "lock log.jsonl");
	link_to(s, "log.jsonl", "var/link");
	assert_int_equal(host_append(&s->host, "var/link", "three\n", 6), -ELOOP);
	assert_int_equal(host_open_own(&s->host, "var/link", &fd), -ELOOP);
	assert_holds(s, "var/log.jsonl", "one\ntwo\n");
}

/* ---- hostile trees ---- */

static void last_component_is_no_link(void **state)
{
	struct scratch *s = *state;

	folder(s, "etc", 0755);
	put(s, "secret", "s");
	link_to(s, "../secret", "etc/conf");
	link_to(s, "nowhere", "etc/dangling");
	assert_int_equal(replace(s, "etc/conf", "x"), -ELOOP);
	assert_said("etc/conf is a symbolic link to ../secret");
	assert_int_equal(replace(s, "etc/dangling", "x"), -ELOOP);
	assert_int_equal(change_for_boot(s, "etc/conf", "x"), -ELOOP);
	assert_int_equal(host_remove(&s->host, "etc/conf"), -ELOOP);
	assert_int_equal(read_to_nothing(s, "etc/conf"), -ELOOP);
	assert_holds(s, "secret", "s");
	assert_names(s, "etc", "conf dangling");
}

/* Links in folders lead somewhere, but never out of the root. */
static void links_on_the_way_stay_inside(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *outside = below(s, "outside");
	struct fix_host inner;

	folder(s, "outside", 0755);
	folder(s, "image", 0755);
	folder(s, "image/etc", 0755);
	folder(s, "image/real", 0755);
	link_to(s, "../real", "image/etc/relative");
	link_to(s, "/real", "image/etc/absolute");
	link_to(s, "../../../../../../real", "image/etc/climbing");
	link_to(s, "../../outside", "image/etc/escape");
	link_to(s, outside, "image/etc/absolute_escape");
	AUTO_FREE char *root = below(s, "image");
	assert_int_equal(fix_host_open(root, &inner), 0);
	assert_int_equal(host_replace(&inner, "etc/relative/a", "1", 1, 0644), 0);
	assert_int_equal(host_replace(&inner, "etc/absolute/b", "2", 1, 0644), 0);
	assert_int_equal(host_replace(&inner, "etc/climbing/c", "3", 1, 0644), 0);
	assert_names(s, "image/real", "a b c");
	/* What they name is missing inside, and is made there. */
	assert_int_equal(host_replace(&inner, "etc/escape/d", "4", 1, 0644), 0);
	assert_int_equal(host_replace(&inner, "etc/absolute_escape/e", "5", 1, 0644), 0);
	assert_names(s, "image/outside", "d");
	assert_names(s, "outside", "");
	fix_host_close(&inner);
}

/*
 * What a link leads to may only be unmounted, so that is no missing file; behind what it leads to,
 * one is missing.
 */
static void links_to_nothing(void **state)
{
	struct scratch *s = *state;

	folder(s, "etc", 0755);
	folder(s, "real", 0755);
	link_to(s, "gone/deep", "etc/broken");
	link_to(s, "../etc/broken", "real/nested");
	link_to(s, "../real", "etc/works");
	assert_int_equal(read_to_nothing(s, "etc/broken/a"), -ENOLINK);
	assert_said("etc/broken/a: link broken on the way leads to nothing");
	assert_int_equal(read_to_nothing(s, "real/nested/b/a"), -ENOLINK);
	assert_said("link nested on the way");
	assert_int_equal(read_to_nothing(s, "etc/works/nested/a"), -ENOLINK);
	assert_int_equal(read_to_nothing(s, "etc/works/a"), -ENOENT);
	assert_int_equal(read_to_nothing(s, "etc/works/b/a"), -ENOENT);
	assert_int_equal(read_to_nothing(s, "etc/none/a"), -ENOENT);
	folder(s, "sys", 0755);
	link_to(s, "gone", "sys/device");
	assert_int_equal(read_to_nothing(s, "sys/device/config"), -ENOENT);
}

static void loops_end(void **state)
{
	struct scratch *s = *state;

	link_to(s, "b", "a");
	link_to(s, "a", "b");
	link_to(s, "self/x", "self");
	assert_int_equal(replace(s, "a/f", "x"), -ELOOP);
	assert_said("a/f: more than 40 symbolic links");
	assert_int_equal(replace(s, "self/f", "x"), -ELOOP);
	assert_int_equal(read_to_nothing(s, "a/f"), -ELOOP);
}

static void as_many_links_as_the_kernel_follows(void **state)
{
	struct scratch *s = *state;
	char name[16], target[16];

	folder(s, "l0", 0755);
	for (int i = 1; i <= 41; i++) {
		snprintf(name, sizeof(name), "l%d", i);
		snprintf(target, sizeof(target), "l%d", i - 1);
		link_to(s, target, name);
	}
	assert_int_equal(replace(s, "l40/f", "x"), 0);
	assert_int_equal(replace(s, "l41/f", "y"), -ELOOP);
	assert_holds(s, "l0/f", "x");
}

static void what_others_can_write_is_left_alone(void **state)
{
	static const mode_t modes[] = {0777, 01777, 0702};
	struct scratch *s = *state;
	AUTO_FREE char *whole = below(s, "etc/f");

	folder(s, "etc", 0755);
	put(s, "etc/f", "old");
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		folder(s, "etc", modes[i]);
		assert_int_equal(replace(s, "etc/f", "new"), -EPERM);
		assert_said("every user can write to");
		assert_int_equal(host_remove(&s->host, "etc/f"), -EPERM);
		assert_int_equal(read_to_nothing(s, "etc/f"), -EPERM);
	}
	folder(s, "etc", 0755);
	assert_int_equal(chmod(whole, 0666), 0);
	assert_int_equal(replace(s, "etc/f", "new"), -EPERM);
	assert_holds(s, "etc/f", "old");
	assert_names(s, "etc", "f");
}

static void groups_and_other_users(void **state)
{
	if (geteuid() != 0)
		SKIP("only root can change groups");

	struct scratch *s = *state;
	AUTO_FREE char *etc = below(s, "etc"), *file = below(s, "etc/f");

	folder(s, "etc", 0775);
	put(s, "etc/f", "old");
	assert_int_equal(chmod(file, 0664), 0);
	assert_int_equal(replace(s, "etc/f", "new"), 0); /* group 0 is root's */
	assert_int_equal(chown(etc, 0, 7), 0);
	assert_int_equal(replace(s, "etc/f", "x"), -EPERM);
	assert_said("group 7 can write to");
	folder(s, "etc", 0755);
	assert_int_equal(chown(file, OTHER_USER, 0), 0);
	assert_int_equal(replace(s, "etc/f", "x"), -EPERM);
	assert_said("etc/f belongs to user 65534");
	assert_int_equal(chown(file, 0, 0), 0);
	assert_int_equal(chown(etc, OTHER_USER, 0), 0);
	assert_int_equal(replace(s, "etc/f", "x"), -EPERM);
	assert_said("folder etc on the way");
	assert_int_equal(chown(etc, 0, 0), 0);
	assert_holds(s, "etc/f", "new");
	assert_names(s, "etc", "f");
}

/* ---- failing and killed writes ---- */

struct trap {
	int left; /* points that still pass */
	int kind; /* only this one counts; -1: all */
	bool kills;
	bool sprung;
};

static int spring(void *context, enum fix_point point, const char *path)
{
	struct trap *t = context;

	assert_true(path && *path);
	if (t->kind >= 0 && (int)point != t->kind)
		return 0;
	if (t->left-- > 0)
		return 0;
	t->sprung = true;
	if (t->kills)
		kill(getpid(), SIGKILL);
	return -EIO;
}

static void set_trap(struct scratch *s, struct trap *t)
{
	s->host.before = t ? spring : NULL;
	s->host.before_context = t;
}

typedef int write_fn(struct scratch *s, const char *path, const char *text);

static int append(struct scratch *s, const char *path, const char *text)
{
	return host_append(&s->host, path, text, strlen(text));
}

/* The last point, behind the rename, is the only one that leaves the new file. */
static void fail_at_each_point(struct scratch *s, write_fn *write, int least)
{
	int n;

	for (n = 0;; n++) {
		struct trap t = {.left = n, .kind = -1};
		int r;

		put(s, "etc/f", "old");
		set_trap(s, &t);
		r = write(s, "etc/f", "new");
		set_trap(s, NULL);
		if (!t.sprung) {
			assert_int_equal(r, 0);
			assert_holds(s, "etc/f", "new");
			break;
		}
		assert_int_equal(r, -EIO);
		assert_said("etc/f");
		if (n < least)
			assert_holds(s, "etc/f", "old");
		else
			assert_holds(s, "etc/f", "new");
		if (n < least)
			assert_names(s, "etc", "f");
		assert_int_equal(host_forget_old(&s->host, "etc/f"), 0);
	}
	assert_int_equal(n, least + 1);
	assert_int_equal(host_forget_old(&s->host, "etc/f"), 0);
	assert_names(s, "etc", "f");
}

static void each_point_fails(void **state)
{
	struct scratch *s = *state;

	folder(s, "etc", 0755);
	/* open, write, fsync, rename; then fsync of the folder */
	fail_at_each_point(s, replace, 4);
	/* open, write, fsync, rename, exchange, compare, unlink; then fsync of the folder */
	fail_at_each_point(s, change, 7);
	/* the same with another name instead of the unlink */
	fail_at_each_point(s, change_for_boot, 7);
}

static void failed_append_leaves_nothing(void **state)
{
	struct scratch *s = *state;

	folder(s, "var", 0755);
	for (int n = 0; n < 4; n++) {
		struct trap t = {.left = n, .kind = -1};

		set_trap(s, &t);
		assert_int_equal(append(s, "var/log", "line\n"), -EIO);
		set_trap(s, NULL);
		assert_names(s, "var", "");
	}
	assert_int_equal(append(s, "var/log", "first\n"), 0);
	for (int n = 0; n < 3; n++) {
		struct trap t = {.left = n, .kind = -1};

		set_trap(s, &t);
		assert_int_equal(append(s, "var/log", "line\n"), -EIO);
		set_trap(s, NULL);
		assert_holds(s, "var/log", "first\n");
	}
}

static void failed_removal_and_folder(void **state)
{
	struct scratch *s = *state;
	struct trap unlink_fails = {.kind = POINT_UNLINK}, open_fails = {.kind = POINT_OPEN};

	folder(s, "etc", 0755);
	put(s, "etc/f", "old");
	set_trap(s, &unlink_fails);
	assert_int_equal(host_remove(&s->host, "etc/f"), -EIO);
	set_trap(s, &open_fails);
	assert_int_equal(replace(s, "etc/new/f", "x"), -EIO);
	set_trap(s, NULL);
	assert_holds(s, "etc/f", "old");
	assert_names(s, "etc", "f");
}

/* True: it got to its end before point n. */
static bool killed_at(struct scratch *s, write_fn *write, int n)
{
	struct trap t = {.left = n, .kind = -1, .kills = true};
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		set_trap(s, &t);
		_exit(write(s, "etc/f", "new") == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGKILL);
	else
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFEXITED(status);
}

static void kill_at_each_point(struct scratch *s, write_fn *write, bool there_before)
{
	bool done = false;

	for (int n = 0; !done; n++) {
		AUTO_FREE char *data = NULL;
		size_t size;
		int r;

		assert_int_equal(host_remove(&s->host, "etc/f"), 0);
		if (there_before)
			put(s, "etc/f", "old");
		done = killed_at(s, write, n);
		r = host_read(&s->host, "etc/f", &data, &size);
		if (r == 0)
			assert_true((strcmp(data, "old") == 0 && there_before && !done) ||
				    strcmp(data, "new") == 0);
		else
			assert_true(r == -ENOENT && !there_before && !done);
		assert_int_equal(settle(s, "etc/f", there_before ? "old" : NULL, "new"), 0);
		assert_int_equal(host_forget_old(&s->host, "etc/f"), 0);
		assert_names(s, "etc", r == 0 ? "f" : "");
	}
}

static void killed_at_each_point(void **state)
{
	struct scratch *s = *state;

	folder(s, "etc", 0755);
	kill_at_each_point(s, replace, true);
	kill_at_each_point(s, replace, false);
	kill_at_each_point(s, change, true);
	kill_at_each_point(s, change, false);
	kill_at_each_point(s, change_for_boot, true);
	kill_at_each_point(s, change_for_boot, false);
}

/* Also a hostile one: what has the name is removed, not written through. */
static void rest_of_a_killed_run_is_removed(void **state)
{
	struct scratch *s = *state;

	folder(s, "etc", 0755);
	put(s, "victim", "v");
	put(s, "etc/f", "old");
	link_to(s, "../victim", "etc/.f.onehop-new");
	assert_int_equal(replace(s, "etc/f", "new"), 0);
	assert_holds(s, "victim", "v");
	assert_holds(s, "etc/f", "new");
	assert_names(s, "etc", "f");
}

/* ---- other programs ---- */

#define THEIRS "another program's\n"

static void write_in_place(const struct scratch *s)
{
	put(s, "etc/f", THEIRS);
}

static void write_and_rename(const struct scratch *s)
{
	AUTO_FREE char *from = below(s, "etc/t"), *to = below(s, "etc/f");

	put(s, "etc/t", THEIRS);
	assert_int_equal(rename(from, to), 0);
}

static void add_a_line(const struct scratch *s)
{
	AUTO_FREE char *path = below(s, "etc/f");
	AUTO_FCLOSE FILE *f = fopen(path, "ae");

	assert_non_null(f);
	assert_true(fputs(THEIRS, f) >= 0);
}

/* Writes at its n-th point, and ends the process at the next one, if it is to. */
struct other {
	const struct scratch *s;
	void (*write)(const struct scratch *s);
	int left;
	bool wrote, kills, no_exchange;
};

static int other_at_point(void *context, enum fix_point point, const char *path)
{
	struct other *o = context;

	(void)path;
	if (o->wrote && o->kills)
		kill(getpid(), SIGKILL);
	if (o->left-- == 0) {
		o->write(o->s);
		o->wrote = true;
	}
	return o->no_exchange && point == POINT_EXCHANGE ? -EINVAL : 0;
}

static void set_other(struct scratch *s, struct other *o)
{
	s->host.before = o ? other_at_point : NULL;
	s->host.before_context = o;
}

static const struct {
	const char *seen, *put;
	bool for_boot;
} changes[] = {{"old", "new", false},
	       {"old", "new", true},
	       {NULL, "new", false},
	       {"old", NULL, false}};

static int make_change(struct scratch *s, size_t i)
{
	const struct host_change c = {.seen = bytes_of(changes[i].seen),
				      .put = bytes_of(changes[i].put),
				      .mode = 0644,
				      .for_boot = changes[i].for_boot};

	return host_change(&s->host, "etc/f", &c);
}

static void start_change(struct scratch *s, size_t i)
{
	assert_int_equal(host_forget_old(&s->host, "etc/f"), 0);
	assert_int_equal(host_remove(&s->host, "etc/f"), 0);
	if (changes[i].seen)
		put(s, "etc/f", changes[i].seen);
}

static void assert_theirs(struct scratch *s, int n)
{
	AUTO_FREE char *data = NULL;
	size_t size;
	int r = host_read(&s->host, "etc/f", &data, &size);

	if (r < 0 || !strstr(data, THEIRS))
		fail_msg("written at point %d, it is lost: %s", n, r < 0 ? err_msg() : data);
}

/* 0: the change has fewer points; it came to its end. */
static int written_at(struct scratch *s, size_t i, void (*write)(const struct scratch *s), int n,
		      bool no_exchange)
{
	struct other o = {s, write, n, .no_exchange = no_exchange};
	int r;

	start_change(s, i);
	set_other(s, &o);
	r = make_change(s, i);
	set_other(s, NULL);
	if (!o.wrote) {
		assert_int_equal(r, no_exchange && changes[i].seen && changes[i].put);
		return 0;
	}
	assert_true(r == -EBUSY || r >= 0);
	if (r < 0)
		assert_said("another program has changed");
	assert_theirs(s, n);
	assert_false(exists(s, "etc/.f.onehop-swap"));
	assert_false(exists(s, "etc/.f.onehop-new"));
	return 1;
}

static void (*const writers[])(const struct scratch *s) = {write_in_place, write_and_rename,
							   add_a_line};

static void what_others_write_is_never_lost(void **state)
{
	struct scratch *s = *state;

	folder(s, "etc", 0755);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		for (size_t k = 0; k < sizeof(writers) / sizeof(*writers); k++)
			for (int no_exchange = 0; no_exchange < 2; no_exchange++)
				for (int n = 0; written_at(s, i, writers[k], n, no_exchange); n++)
					;
}

/* False: it has fewer points, and came to its end. */
static bool written_and_killed_at(struct scratch *s, size_t i,
				  void (*write)(const struct scratch *s), int n)
{
	struct other o = {s, write, n, .kills = true};
	int status;
	pid_t pid;

	start_change(s, i);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		set_other(s, &o);
		make_change(s, i);
		_exit(o.wrote ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
		return false;
	if (settle(s, "etc/f", changes[i].seen, changes[i].put) < 0)
		fail_msg("%s", err_msg());
	assert_theirs(s, n);
	assert_false(exists(s, "etc/.f.onehop-swap"));
	return true;
}

static void nor_by_a_run_that_is_killed(void **state)
{
	struct scratch *s = *state;

	folder(s, "etc", 0755);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		for (size_t k = 0; k < sizeof(writers) / sizeof(*writers); k++)
			for (int n = 0; written_and_killed_at(s, i, writers[k], n); n++)
				;
}

/*
 * Of no run that is known to have been killed: what has the name of its rest is somebody's, or an
 * attack.
 */
static void a_stray_file_is_left_alone(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *swap = below(s, "etc/.f.onehop-swap");

	folder(s, "etc", 0755);
	put(s, "victim", "v");
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		for (int link = 0; link < 2; link++) {
			start_change(s, i);
			if (link)
				link_to(s, "../victim", "etc/.f.onehop-swap");
			else
				put(s, "etc/.f.onehop-swap", "stray");
			assert_int_equal(make_change(s, i), -EEXIST);
			assert_said(".f.onehop-swap is next to ");
			if (changes[i].seen)
				assert_holds(s, "etc/f", "old");
			else
				assert_false(exists(s, "etc/f"));
			assert_holds(s, "etc/.f.onehop-swap", link ? "v" : "stray");
			assert_int_equal(unlink(swap), 0);
		}
}

/* A link was never a file of this run's, nor what came out of its place. */
static void a_link_is_never_brought_back(void **state)
{
	struct scratch *s = *state;

	folder(s, "etc", 0755);
	put(s, "victim", "v");
	put(s, "etc/f", "new");
	link_to(s, "../victim", "etc/.f.onehop-swap");
	assert_int_equal(settle(s, "etc/f", "new", "old"), -EEXIST);
	assert_holds(s, "etc/f", "new");
}

/* Not every file system has them: then nobody can tell. */
static void need_leases(const struct scratch *s)
{
	AUTO_FREE char *path = below(s, "etc/f");
	AUTO_CLOSE int fd = -1;

	put(s, "etc/f", "old");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		SKIP("no leases on this file system");
}

static void what_is_open_to_write_is_left_alone(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *path = below(s, "etc/f");
	int fd;

	folder(s, "etc", 0755);
	need_leases(s);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		if (!changes[i].seen)
			continue;
		start_change(s, i);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(make_change(s, i), -EBUSY);
		assert_said("etc/f open to write");
		assert_holds(s, "etc/f", "old");
		assert_int_equal(write(fd, "OLD", 3), 3);
		close(fd);
		assert_holds(s, "etc/f", "OLD");
		assert_names(s, "etc", "f");
	}
}

/* It had found the old file before the new one was in its place, and waits for the lease. */
static void come_late(const struct scratch *s)
{
	AUTO_FREE char *path = below(s, "etc/.f.onehop-swap");

	if (access(path, F_OK) == 0)
		assert_int_equal(open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC), -1);
}

static void who_comes_late_gets_the_old_file(void **state)
{
	struct scratch *s = *state;

	folder(s, "etc", 0755);
	need_leases(s);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		/* compare, and unlink or link, are the last two before the fsync of the folder */
		for (int n = changes[i].put ? 5 : 1;
		     changes[i].seen && n < (changes[i].put ? 7 : 3); n++) {
			struct other o = {s, come_late, n};

			start_change(s, i);
			set_other(s, &o);
			assert_int_equal(make_change(s, i), -EBUSY);
			set_other(s, NULL);
			assert_holds(s, "etc/f", "old");
			assert_names(s, "etc", "f");
		}
	}
}

static void forbid(const struct scratch *s)
{
	AUTO_FREE char *path = below(s, "etc/f");

	assert_int_equal(chmod(path, 0600), 0);
}

static void permissions_that_others_set_stay(void **state)
{
	struct scratch *s = *state;
	struct other o = {.wrote = true};

	folder(s, "etc", 0755);
	for (int n = 0; o.wrote; n++) {
		o = (struct other){s, forbid, n};
		start_change(s, 0);
		set_other(s, &o);
		make_change(s, 0);
		set_other(s, NULL);
		assert_int_equal(status_of(s, "etc/f").st_mode & 07777, o.wrote ? 0600 : 0644);
	}
}

/* ---- a second name for boot loaders ---- */

static void old_file_keeps_a_name_until_the_next_boot(void **state)
{
	struct scratch *s = *state;
	ino_t first, second;

	folder(s, "boot", 0755);
	put(s, "boot/grub.cfg", "one");
	first = status_of(s, "boot/grub.cfg").st_ino;
	assert_int_equal(change_for_boot(s, "boot/grub.cfg", "two"), 0);
	second = status_of(s, "boot/grub.cfg").st_ino;
	assert_names(s, "boot", "grub.cfg grub.cfg.onehop-old");
	assert_int_equal(status_of(s, "boot/grub.cfg.onehop-old").st_ino, first);
	assert_holds(s, "boot/grub.cfg.onehop-old", "one");
	/* Again before a boot: the loader's driver may still see either. */
	assert_int_equal(change_for_boot(s, "boot/grub.cfg", "three"), 0);
	assert_int_equal(status_of(s, "boot/grub.cfg.onehop-old").st_ino, first);
	assert_int_equal(status_of(s, "boot/grub.cfg.onehop-old-2").st_ino, second);
	assert_holds(s, "boot/grub.cfg", "three");
	assert_int_equal(host_forget_old(&s->host, "boot/grub.cfg"), 0);
	assert_names(s, "boot", "grub.cfg");
	assert_int_equal(host_forget_old(&s->host, "boot/grub.cfg"), 0);
	assert_int_equal(host_forget_old(&s->host, "no/such"), 0);
}

/* Undo takes no room: what has a second name changes places with what is there. */
static void what_is_kept_is_put_back(void **state)
{
	struct scratch *s = *state;
	ino_t first, second;

	folder(s, "boot", 0755);
	put(s, "boot/f", "one");
	first = status_of(s, "boot/f").st_ino;
	assert_int_equal(change_for_boot(s, "boot/f", "two"), 0);
	second = status_of(s, "boot/f").st_ino;
	for (int i = 0; i < 40; i++) {
		assert_int_equal(change_for_boot(s, "boot/f", "one"), 0);
		assert_int_equal(status_of(s, "boot/f").st_ino, first);
		assert_int_equal(change_for_boot(s, "boot/f", "two"), 0);
		assert_int_equal(status_of(s, "boot/f").st_ino, second);
	}
	assert_names(s, "boot", "f f.onehop-old");
	/* Only if it is what is wanted. */
	put(s, "boot/f.onehop-old", "One");
	assert_int_equal(change_for_boot(s, "boot/f", "one"), 0);
	assert_holds(s, "boot/f", "one");
	assert_holds(s, "boot/f.onehop-old", "One");
	assert_names(s, "boot", "f f.onehop-old f.onehop-old-2");
}

static void names_for_old_files_end(void **state)
{
	struct scratch *s = *state;
	int r = 0, n;

	folder(s, "boot", 0755);
	put(s, "boot/f", "0");
	for (n = 0; r == 0 && n < 100; n++) {
		char text[16];

		snprintf(text, sizeof(text), "%d", n);
		r = change_for_boot(s, "boot/f", text);
	}
	assert_int_equal(r, -EMLINK);
	assert_said("boot/f was replaced 16 times");
	assert_holds(s, "boot/f", "15");
	/* Going back is always possible. */
	assert_int_equal(host_change(&s->host, "boot/f",
				     &(struct host_change){.seen = bytes_of("15"),
							   .put = bytes_of("new"),
							   .for_boot = true,
							   .going_back = true}),
			 0);
	assert_holds(s, "boot/f.onehop-old-17", "15");
	assert_false(exists(s, "boot/.f.onehop-new"));
	assert_int_equal(host_forget_old(&s->host, "boot/f"), 0);
	assert_names(s, "boot", "f");
}

/* ---- file systems that do not take it ---- */

/* write() stops short at the limit, and fails the next time. */
static void file_that_may_not_grow(void **state)
{
	struct scratch *s = *state;
	struct rlimit old, small;
	char big[5000];
	int r, appended;

	folder(s, "etc", 0755);
	put(s, "etc/f", "old");
	memset(big, 'x', sizeof(big));
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){1000, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = host_replace(&s->host, "etc/f", big, sizeof(big), 0644);
	appended = r == -EFBIG ? host_append(&s->host, "etc/f", big, sizeof(big)) : 0;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(appended, -EFBIG);
	assert_said("etc/f");
	assert_holds(s, "etc/f", "old");
	assert_names(s, "etc", "f");
}

/* A file system of 64 KiB in a mount namespace of this process. False: not allowed here. */
static bool mount_small(const struct scratch *s)
{
	AUTO_FREE char *path = below(s, "small");

	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("onehop", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=0755") == 0;
}

/* Up to its last byte. */
static int fill_up(const struct scratch *s, const char *path)
{
	AUTO_FREE char *whole = below(s, path);
	AUTO_CLOSE int fd = open(whole, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	const char block[4096] = {0};

	assert_true(fd >= 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	return -errno;
}

static void full_and_read_only_file_systems(void **state)
{
	struct scratch *s = *state;

	folder(s, "small", 0755);
	if (!mount_small(s))
		SKIP("mounting is not allowed: full and read-only file systems");

	AUTO_FREE char *small = below(s, "small"), *big = xcalloc(1 << 20, 1);

	/* The old descriptor is of the old namespace. */
	fix_host_close(&s->host);
	assert_int_equal(fix_host_open(s->root, &s->host), 0);
	put(s, "small/f", "old");
	assert_int_equal(host_replace(&s->host, "small/f", big, 1 << 20, 0644), -ENOSPC);
	assert_said("small/f: no space is left on ");
	assert_int_equal(host_append(&s->host, "small/f", big, 1 << 20), -ENOSPC);
	assert_int_equal(host_append(&s->host, "small/g", big, 1 << 20), -ENOSPC);
	assert_holds(s, "small/f", "old");
	assert_names(s, "small", "f");
	/* What is kept goes back where nothing can be written. */
	assert_int_equal(change_for_boot(s, "small/f", "new"), 0);
	assert_int_equal(fill_up(s, "small/full"), -ENOSPC);
	assert_int_equal(change_for_boot(s, "small/f", "other"), -ENOSPC);
	assert_said("small/f: no space is left on ");
	assert_holds(s, "small/f", "new");
	assert_int_equal(change_for_boot(s, "small/f", "old"), 0);
	assert_holds(s, "small/f", "old");
	assert_names(s, "small", "f f.onehop-old full");
	assert_int_equal(host_remove(&s->host, "small/full"), 0);
	assert_int_equal(host_forget_old(&s->host, "small/f"), 0);
	assert_int_equal(mount(NULL, small, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_int_equal(replace(s, "small/f", "new"), -EROFS);
	assert_said("small/f: Read-only file system");
	assert_int_equal(replace(s, "small/x/y", "new"), -EROFS);
	assert_int_equal(change_for_boot(s, "small/f", "new"), -EROFS);
	assert_int_equal(host_remove(&s->host, "small/f"), -EROFS);
	assert_int_equal(append(s, "small/f", "new"), -EROFS);
	assert_said("/small/f: Read-only file system: `mount -o remount,rw ");
	assert_said("/small` first");
	assert_holds(s, "small/f", "old");
	assert_int_equal(umount(small), 0);

	/* A bind mount is of its parent's device. */
	assert_int_equal(mount(small, small, NULL, MS_BIND, NULL), 0);
	assert_int_equal(mount(NULL, small, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_int_equal(append(s, "small/f", "new"), -EROFS);
	assert_said("/small` first");
	assert_int_equal(umount(small), 0);
}

/* GRUB's scripts say it in the language of grub.cfg: the file system itself tells. */
static void a_program_fills_the_disk(void **state)
{
	struct scratch *s = *state;
	const char *const fills[] = {
		"sh", "-c", "cat /dev/zero >/boot/x 2>/dev/null; echo 'Kein Platz mehr'; exit 1",
		NULL};
	const char *const fails[] = {"sh", "-c", "rm /boot/x; echo no; exit 1", NULL};
	struct fix_host h;

	folder(s, "small", 0755);
	if (!mount_small(s) || mount("onehop", "/boot", "tmpfs", 0, "size=64k") != 0)
		SKIP("mounting is not allowed: a full /boot");

	AUTO_FREE char *small = below(s, "small");

	assert_int_equal(fix_host_open("/", &h), 0);
	assert_int_equal(host_run(&h, fills, 60, NULL), -EIO);
	assert_string_equal(
		err_msg(),
		"sh failed with status 1: Kein Platz mehr; no space is left on /boot: remove a "
		"kernel that is not needed any more, with the package manager");
	assert_int_equal(host_run(&h, fails, 60, NULL), -EIO);
	assert_string_equal(err_msg(), "sh failed with status 1: no");
	fix_host_close(&h);
	assert_int_equal(umount("/boot"), 0);
	assert_int_equal(umount(small), 0);
}

/* ---- configuration space and attributes ---- */

static void forge_device(struct scratch *s)
{
	AUTO_FREE char *config = NULL;

	folder(s, "sys", 0755);
	folder(s, "sys/bus", 0755);
	folder(s, "sys/bus/pci", 0755);
	folder(s, "sys/bus/pci/devices", 0755);
	folder(s, "sys/devices", 0755);
	folder(s, "sys/devices/pci0000:20", 0755);
	folder(s, "sys/devices/pci0000:20/0000:22:00.0", 0755);
	link_to(s, "../../../devices/pci0000:20/0000:22:00.0", "sys/bus/pci/devices/0000:22:00.0");
	put(s, "sys/devices/pci0000:20/0000:22:00.0/config", "");
	config = below(s, "sys/devices/pci0000:20/0000:22:00.0/config");
	assert_int_equal(truncate(config, 4096), 0);
	put(s, "sys/devices/pci0000:20/0000:22:00.0/attr", "32768\n");
}

static void registers_are_two_bytes(void **state)
{
	struct scratch *s = *state;
	struct trap t = {.kind = POINT_REGISTER};
	AUTO_FREE char *config = below(s, "sys/bus/pci/devices/0000:22:00.0/config");
	unsigned value = 1;

	forge_device(s);
	assert_int_equal(host_config_read(&s->host, "0000:22:00.0", 0x106, &value), -EPERM);
	s->host.image = false;
	assert_int_equal(host_config_read(&s->host, "0000:22:00.0", 0x106, &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(host_config_write(&s->host, "0000:22:00.0", 0x106, 0x1d02), 0);
	assert_int_equal(host_config_read(&s->host, "0000:22:00.0", 0x106, &value), 0);
	assert_int_equal(value, 0x1d02);
	assert_int_equal(host_config_read(&s->host, "0000:22:00.0", 0x104, &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(host_config_read(&s->host, "0000:22:00.0", 0x108, &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(status_of(s, "sys/devices/pci0000:20/0000:22:00.0/config").st_size, 4096);
	set_trap(s, &t);
	assert_int_equal(host_config_write(&s->host, "0000:22:00.0", 0x106, 0), -EIO);
	set_trap(s, NULL);
	assert_int_equal(truncate(config, 64), 0);
	assert_int_equal(host_config_read(&s->host, "0000:22:00.0", 0x106, &value),
			 geteuid() == 0 ? -ENODATA : -EACCES);
	assert_int_equal(value, 0);
}

static void registers_that_are_none(void **state)
{
	static const char *const devices[] = {
		"",
		"0000:22:00",
		"0000:22:00.8",
		"0000:22:00.0/",
		"../../x",
		"000:22:00.0",
		"0000:22:0g.0",
		"0000:2:00.00",
		"0000:22:00.00",
		"0000:2:000.0",
		"0000:22-00.0",
		"0000:22:00.0 ",
		"000G:22:00.0",
		"0000:22:00.-",
	};
	struct scratch *s = *state;
	unsigned value;

	forge_device(s);
	s->host.image = false;
	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
		assert_int_equal(host_config_read(&s->host, devices[i], 0, &value), -EINVAL);
		assert_int_equal(host_config_write(&s->host, devices[i], 0, 0), -EINVAL);
	}
	assert_int_equal(host_config_read(&s->host, "0000:22:00.0", 3, &value), -EINVAL);
	assert_int_equal(host_config_read(&s->host, "0000:22:00.0", 4096, &value), -EINVAL);
	assert_int_equal(host_config_write(&s->host, "0000:22:00.0", 4, 0x10000), -EINVAL);
	assert_int_equal(host_config_read(&s->host, "0000:23:00.0", 4, &value), -ENODEV);
	assert_int_equal(host_config_write(&s->host, "10000:23:00.0", 4, 1), -ENODEV);
}

static void attributes_are_not_made(void **state)
{
	static const char attr[] = "sys/bus/pci/devices/0000:22:00.0/attr";
	struct scratch *s = *state;
	struct trap t = {.kind = POINT_REGISTER};

	forge_device(s);
	assert_int_equal(host_attribute_write(&s->host, attr, "256"), -EPERM);
	s->host.image = false;
	assert_int_equal(host_attribute_write(&s->host, attr, "256"), 0);
	assert_holds(s, attr, "256");
	set_trap(s, &t);
	assert_int_equal(host_attribute_write(&s->host, attr, "512"), -EIO);
	set_trap(s, NULL);
	assert_holds(s, attr, "256");
	assert_int_equal(host_attribute_write(&s->host, "sys/bus/none", "1"), -ENOENT);
	assert_false(exists(s, "sys/bus/none"));
}

/* ---- programs ---- */

static int run(const char *script, unsigned deadline_s, struct strbuf *output, int *ret_status)
{
	const char *const argv[] = {"sh", "-c", script, NULL};

	return child_run("/bin/sh", argv, deadline_s, output, ret_status);
}

static void output_and_status(void **state)
{
	static const struct {
		const char *script, *output;
		int status;
	} cases[] = {
		{"echo one; echo two >&2; echo three", "one\ntwo\nthree\n", 0},
		{"exit 3", "", 3},
		{"kill -KILL $$", "", 128 + SIGKILL},
		{"printf 'a\\0b'", "a?b", 0},
		{"readlink /proc/self/fd/0", "/dev/null\n", 0},
		{"cat", "", 0},
		/* process group and session are its own */
		{"read -r a b c d e f g </proc/$$/stat; [ $a = $e ] && [ $a = $f ] && echo own",
		 "own\n", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		AUTO_STRBUF struct strbuf b = {0};
		int status = -1;

		assert_int_equal(run(cases[i].script, 60, &b, &status), 0);
		assert_string_equal(strbuf_str(&b), cases[i].output);
		assert_int_equal(status, cases[i].status);
	}
}

static void environment_is_clean(void **state)
{
	const char *const argv[] = {"env", NULL};
	AUTO_STRBUF struct strbuf b = {0};
	int status = -1;

	(void)state;
	assert_int_equal(setenv("ONEHOP_TEST", "leaks", 1), 0);
	assert_int_equal(child_run("/usr/bin/env", argv, 60, &b, &status), 0);
	assert_int_equal(unsetenv("ONEHOP_TEST"), 0);
	assert_int_equal(status, 0);
	assert_string_equal(strbuf_str(&b), "PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"
					    "HOME=/root\n"
					    "LC_ALL=C.UTF-8\n"
					    "DEBIAN_FRONTEND=noninteractive\n"
					    "SYSTEMD_PAGER=\n"
					    "TERM=dumb\n");
}

static void long_output_keeps_head_and_tail(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};
	int status = -1;

	(void)state;
	strbuf_puts(&b, "before ");
	assert_int_equal(run("echo head; head -c 3000000 /dev/zero | tr '\\0' x; echo tail", 60, &b,
			     &status),
			 0);
	assert_int_equal(status, 0);
	assert_true(text_starts_with(strbuf_str(&b), "before head\nxxx"));
	assert_true(text_ends_with(strbuf_str(&b), "xxxtail\n"));
	assert_non_null(strstr(strbuf_str(&b), "x\n[2737866 bytes left out]\nx"));
	assert_int_equal(b.len, 7 + CHILD_OUTPUT_MAX + strlen("\n[2737866 bytes left out]\n"));
}

/* Gone, or dead and not yet waited for by whoever adopted it. */
static bool is_dead(pid_t pid)
{
	AUTO_FREE char *path = xprintf("/proc/%d/stat", (int)pid);
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	char stat[512] = "", *end;

	if (!f || !fgets(stat, sizeof(stat), f))
		return true;
	end = strrchr(stat, ')');
	return end && (end[2] == 'Z' || end[2] == 'X');
}

/* Its files are closed a moment before it counts as dead. */
static bool dies(pid_t pid)
{
	for (int i = 0; i < 6000 && !is_dead(pid); i++)
		usleep(10000);
	return is_dead(pid);
}

static pid_t number_in(const struct strbuf *b)
{
	uint64_t n = 0;

	assert_int_equal(text_to_u64(strbuf_str(b), &n), 0);
	assert_true(n > 1);
	return (pid_t)n;
}

/* It has ended when it exits, whoever else holds its output. */
static void what_it_leaves_is_not_waited_for(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};
	int status = -1;
	pid_t left;

	(void)state;
	assert_int_equal(run("sleep 1000 & echo $!", 0, &b, &status), 0);
	assert_int_equal(status, 0);
	left = number_in(&b);
	assert_false(is_dead(left));
	assert_int_equal(kill(left, SIGKILL), 0);
}

/*
 * A script that does not end by itself says its number first: with one that is killed before that,
 * it is tried longer.
 */
static unsigned run_until_killed(const char *script, struct strbuf *output)
{
	unsigned deadline_s = 1;
	int status = -1;

	assert_int_equal(run(script, deadline_s, output, &status), -ETIMEDOUT);
	while (!*strbuf_str(output) && deadline_s < 60) {
		deadline_s *= 4;
		assert_int_equal(run(script, deadline_s, output, &status), -ETIMEDOUT);
	}
	assert_int_equal(status, -1);
	return deadline_s;
}

static void deadline_ends_all_of_it(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};
	unsigned deadline_s = run_until_killed("sleep 1000 & echo $!; wait", &b);
	AUTO_FREE char *says =
		xprintf("/bin/sh did not exit within %u s and was killed", deadline_s);

	(void)state;
	assert_said(says);
	assert_true(dies(number_in(&b)));
}

static void deadline_kills_what_ignores_it(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};

	(void)state;
	run_until_killed("trap '' TERM; echo $$; while :; do sleep 1; done", &b);
	assert_true(dies(number_in(&b)));
}

static void missing_programs(void **state)
{
	const char *const argv[] = {"x", NULL};
	AUTO_STRBUF struct strbuf b = {0};
	int status = -1;

	(void)state;
	assert_int_equal(child_run("/nonexistent/x", argv, 1, &b, &status), -ENOENT);
	assert_said("/nonexistent/x");
	assert_int_equal(child_run("/etc/passwd", argv, 1, &b, &status), -EACCES);
	assert_int_equal(status, -1);
}

static void programs_of_the_host(void **state)
{
	const char *const fine[] = {"true", NULL}, *const none[] = {"onehop-no-such", NULL};
	const char *const by_path[] = {"/bin/true", NULL};
	const char *const bad[] = {"sh", "-c", "echo first; echo '  last words '; echo; exit 3",
				   NULL};
	const char *const full[] = {
		"sh", "-c", "echo 'cat: write error: No space left on device'; echo sorry; exit 1",
		NULL};
	AUTO_STRBUF struct strbuf b = {0};
	struct fix_host h;

	(void)state;
	assert_int_equal(fix_host_open("/", &h), 0);
	assert_false(h.image);
	assert_int_equal(host_run(&h, fine, 60, NULL), 0);
	assert_int_equal(host_run(&h, none, 60, NULL), -ENOENT);
	assert_said("onehop-no-such");
	assert_int_equal(host_run(&h, by_path, 60, NULL), -ENOENT);
	assert_int_equal(host_run(&h, bad, 60, &b), -EIO);
	assert_string_equal(err_msg(), "sh failed with status 3: last words");
	assert_string_equal(strbuf_str(&b), "first\n  last words \n\n");
	/* The cause, whatever came after it. */
	assert_int_equal(host_run(&h, full, 60, NULL), -EIO);
	assert_string_equal(
		err_msg(),
		"sh failed with status 1 because the disk is full: cat: write error: No space left on device");
	fix_host_close(&h);
}

static int count_runs(void *context, const char *const *argv, unsigned deadline_s,
		      struct strbuf *output, int *ret_status)
{
	unsigned *n = context;

	assert_string_equal(argv[0], "update-grub");
	assert_int_equal(deadline_s, 7);
	strbuf_puts(output, "said");
	*ret_status = 0;
	++*n;
	return 0;
}

static void a_test_can_run_instead(void **state)
{
	const char *const argv[] = {"update-grub", NULL};
	struct scratch *s = *state;
	struct trap t = {.kind = POINT_RUN};
	AUTO_STRBUF struct strbuf b = {0};
	unsigned n = 0;

	s->host.run = count_runs;
	s->host.run_context = &n;
	assert_int_equal(host_run(&s->host, argv, 7, &b), -EPERM); /* an image */
	s->host.image = false;
	set_trap(s, &t);
	assert_int_equal(host_run(&s->host, argv, 7, &b), -EIO);
	set_trap(s, NULL);
	assert_int_equal(n, 0);
	assert_int_equal(host_run(&s->host, argv, 7, &b), 0);
	assert_int_equal(n, 1);
	assert_string_equal(strbuf_str(&b), "said");
}

static void roots_that_are_none(void **state)
{
	struct fix_host h;

	(void)state;
	assert_int_equal(fix_host_open("/nonexistent", &h), -ENOENT);
	assert_int_equal(fix_host_open("/etc/passwd", &h), -ENOTDIR);
	assert_said("/etc/passwd");
}

#define SCRATCH(test) cmocka_unit_test_setup_teardown(test, make_scratch, remove_scratch)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH(files_come_and_go),
		SCRATCH(paths_that_are_none),
		SCRATCH(owner_and_permissions_stay),
		SCRATCH(attributes_stay),
		SCRATCH(access_lists_are_the_old_files),
		SCRATCH(lines_are_appended),
		SCRATCH(last_component_is_no_link),
		SCRATCH(links_on_the_way_stay_inside),
		SCRATCH(links_to_nothing),
		SCRATCH(loops_end),
		SCRATCH(as_many_links_as_the_kernel_follows),
		SCRATCH(what_others_can_write_is_left_alone),
		SCRATCH(groups_and_other_users),
		SCRATCH(each_point_fails),
		SCRATCH(failed_append_leaves_nothing),
		SCRATCH(failed_removal_and_folder),
		SCRATCH(killed_at_each_point),
		SCRATCH(rest_of_a_killed_run_is_removed),
		SCRATCH(what_others_write_is_never_lost),
		SCRATCH(nor_by_a_run_that_is_killed),
		SCRATCH(a_stray_file_is_left_alone),
		SCRATCH(a_link_is_never_brought_back),
		SCRATCH(what_is_open_to_write_is_left_alone),
		SCRATCH(who_comes_late_gets_the_old_file),
		SCRATCH(permissions_that_others_set_stay),
		SCRATCH(old_file_keeps_a_name_until_the_next_boot),
		SCRATCH(what_is_kept_is_put_back),
		SCRATCH(names_for_old_files_end),
		SCRATCH(file_that_may_not_grow),
		SCRATCH(full_and_read_only_file_systems),
		SCRATCH(a_program_fills_the_disk),
		SCRATCH(registers_are_two_bytes),
		SCRATCH(registers_that_are_none),
		SCRATCH(attributes_are_not_made),
		cmocka_unit_test(output_and_status),
		cmocka_unit_test(environment_is_clean),
		cmocka_unit_test(long_output_keeps_head_and_tail),
		cmocka_unit_test(what_it_leaves_is_not_waited_for),
		cmocka_unit_test(deadline_ends_all_of_it),
		cmocka_unit_test(deadline_kills_what_ignores_it),
		cmocka_unit_test(missing_programs),
		cmocka_unit_test(programs_of_the_host),
		SCRATCH(a_test_can_run_instead),
		cmocka_unit_test(roots_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
