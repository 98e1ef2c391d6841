/* SPDX-License-Identifier: Apache-2.0 */
#include "fix_rig.h"

#include "base/alloc.h"
#include "base/err.h"
#include "fix/boot_entries.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Whatever goes wrong here is not what is tested: it ends the program. */
static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "rig: %s: %s\n", what, strerror(errno));
	abort();
}

unsigned rig_random(struct rig *g, unsigned below)
{
	g->random = g->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(g->random >> 33) % below;
}

unsigned rig_rounds(const char *name, unsigned otherwise)
{
	const char *given = getenv(name);
	char *end = NULL;
	unsigned long n = given ? strtoul(given, &end, 10) : otherwise;

	if (given && (*end || n == 0 || n > UINT_MAX)) {
		fprintf(stderr, "rig: $%s=%s: a number from 1 to %u is needed\n", name, given,
			UINT_MAX);
		abort();
	}
	return (unsigned)n;
}

/* ---- files ---- */

static char *below(const struct rig *g, const char *path)
{
	return xprintf("%s/%s", g->root, path);
}

static void make_folders(const struct rig *g, const char *path)
{
	AUTO_FREE char *whole = below(g, path);

	for (char *s = whole + strlen(g->root) + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		must(mkdir(whole, 0755) == 0 || errno == EEXIST, whole);
		*s = '/';
	}
}

/* Makes the folders too. */
static void put_bytes(const struct rig *g, const char *path, const void *data, size_t n)
{
	static const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
	AUTO_FREE char *whole = below(g, path);
	AUTO_CLOSE int fd = open(whole, flags, 0644);

	if (fd < 0 && errno == ENOENT) {
		make_folders(g, path);
		fd = open(whole, flags, 0644);
	}
	must(fd >= 0 && write(fd, data, n) == (ssize_t)n, whole);
}

void rig_put(const struct rig *g, const char *path, const char *text)
{
	put_bytes(g, path, text, strlen(text));
}

void rig_remove(const struct rig *g, const char *path)
{
	AUTO_FREE char *whole = below(g, path);

	must(remove(whole) == 0, whole);
}

bool rig_exists(const struct rig *g, const char *path)
{
	AUTO_FREE char *whole = below(g, path);
	struct stat st;

	return lstat(whole, &st) == 0;
}

/* *ret_n: its size. */
static char *get_bytes(const char *whole, size_t *ret_n)
{
	AUTO_CLOSE int fd = open(whole, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *text;

	if (fd < 0)
		return NULL;
	must(fstat(fd, &st) == 0, whole);
	text = xcalloc((size_t)st.st_size + 1, 1);
	must(read(fd, text, (size_t)st.st_size) == st.st_size, whole);
	*ret_n = (size_t)st.st_size;
	return text;
}

char *rig_get(const struct rig *g, const char *path)
{
	AUTO_FREE char *whole = below(g, path);
	size_t n;

	return get_bytes(whole, &n);
}

char *rig_unchained(const char *log)
{
	static const char key[] = ",\"chain\":\"";
	AUTO_STRBUF struct strbuf plain = {0};
	const char *at;

	while ((at = strstr(log, key))) {
		strbuf_add(&plain, log, (size_t)(at - log));
		log = strchr(at + strlen(key), '"') + 1;
	}
	strbuf_puts(&plain, log);
	return xstrdup(strbuf_str(&plain));
}

static char *config_path(const struct rig *g, const char *device)
{
	return xprintf("%s/sys/bus/pci/devices/%s/config", g->root, device);
}

#define ACS_AT 0x148 /* the second capability of the list */

unsigned rig_register(const struct rig *g, const char *device)
{
	AUTO_FREE char *whole = config_path(g, device);
	AUTO_CLOSE int fd = open(whole, O_RDONLY | O_CLOEXEC);
	uint8_t b[2];

	must(fd >= 0 && pread(fd, b, 2, ACS_AT + 6) == 2, whole);
	return b[0] | (unsigned)b[1] << 8;
}

void rig_set_register(const struct rig *g, const char *device, unsigned value)
{
	AUTO_FREE char *whole = config_path(g, device);
	AUTO_CLOSE int fd = open(whole, O_WRONLY | O_CLOEXEC);
	const uint8_t b[2] = {(uint8_t)value, (uint8_t)(value >> 8)};

	must(fd >= 0 && pwrite(fd, b, 2, ACS_AT + 6) == 2, whole);
}

/* ---- the tree as text ---- */

/* As a text that no other bytes have: of registers most are zeros. */
static void add_bytes(const char *data, size_t n, struct strbuf *out)
{
	for (size_t i = 0; i < n; i++) {
		size_t zeros = 0;

		while (i + zeros < n && !data[i + zeros])
			zeros++;
		if (zeros)
			strbuf_printf(out, "\\0{%zu}", zeros);
		else if ((data[i] >= ' ' && data[i] < 0x7f && data[i] != '\\') || data[i] == '\n')
			strbuf_putc(out, data[i]);
		else
			strbuf_printf(out, "\\x%02x", (unsigned char)data[i]);
		i += zeros ? zeros - 1 : 0;
	}
	strbuf_putc(out, '\n');
}

static bool is_left_out(const char *path)
{
	const char *old = strstr(path, HOST_OLD);

	/* A copy that is kept of an entry is gone when that is replaced. */
	return strcmp(path, JOURNAL_FOLDER) == 0 || (old && !strstr(old, ".conf"));
}

static void add_tree(const struct rig *g, const char *path, struct strbuf *out);

static void add_one(const struct rig *g, const char *path, struct strbuf *out)
{
	AUTO_FREE char *whole = below(g, path), *data = NULL;
	struct stat st;
	size_t n = 0;

	if (is_left_out(path))
		return;
	must(lstat(whole, &st) == 0, whole);
	strbuf_printf(out, "%s %o %u %u\n", path, st.st_mode, st.st_uid, st.st_gid);
	if (S_ISDIR(st.st_mode)) {
		add_tree(g, path, out);
		return;
	}
	data = get_bytes(whole, &n);
	add_bytes(data, n, out);
}

static void add_tree(const struct rig *g, const char *path, struct strbuf *out)
{
	AUTO_FREE char *whole = below(g, path);
	struct dirent **entries;
	int n = scandir(whole, &entries, NULL, alphasort);

	must(n >= 0, whole);
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		AUTO_FREE char *child = xprintf("%s%s%s", path, *path ? "/" : "", name);

		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
			add_one(g, child, out);
		free(entries[i]);
	}
	free(entries);
}

char *rig_tree(const struct rig *g)
{
	AUTO_STRBUF struct strbuf b = {0};

	add_tree(g, "", &b);
	return xstrdup(strbuf_str(&b));
}

char *rig_tree_differs(const struct rig *g, const char *expected)
{
	AUTO_FREE char *now = rig_tree(g);
	size_t same = 0;

	if (strcmp(now, expected) == 0)
		return NULL;
	while (now[same] && now[same] == expected[same])
		same++;
	while (same && now[same - 1] != '\n')
		same--;
	return xprintf("expected\n%.400s\nbut there is\n%.400s", expected + same, now + same);
}

/* ---- what must not be ---- */

size_t rig_second_names(const struct rig *g, const char *path)
{
	AUTO_FREE char *whole = below(g, path), *start = NULL;
	char *slash = strrchr(whole, '/');
	struct dirent **entries;
	size_t found = 0;
	int n;

	start = xprintf("%s" HOST_OLD, slash + 1);
	*slash = '\0';
	n = scandir(whole, &entries, NULL, alphasort);
	must(n >= 0, whole);
	for (int i = 0; i < n; i++) {
		found += strncmp(entries[i]->d_name, start, strlen(start)) == 0;
		free(entries[i]);
	}
	free(entries);
	return found;
}

static bool is_one_of(const struct plan *p, const char *path, const char *content, size_t size)
{
	for (size_t i = 0; i < p->step_n; i++) {
		const struct step *s = &p->steps[i];
		const struct bytes *both[] = {&s->old, &s->new};

		if ((s->kind != STEP_FILE && s->kind != STEP_OPTIONS && s->kind != STEP_BLOCK &&
		     s->kind != STEP_ENTRY) ||
		    strcmp(s->target, path) != 0)
			continue;
		for (int k = 0; k < 2; k++)
			if (content ? both[k]->data && both[k]->size == size &&
					      memcmp(both[k]->data, content, size) == 0
				    : !both[k]->data)
				return true;
	}
	return false;
}

char *rig_torn(const struct rig *g, const struct plan *p)
{
	static const char start[] = "generated\nlinux root=/dev/sda1 ", end[] = "\nend\n";
	AUTO_FREE char *grub = rig_get(g, "boot/grub/grub.cfg");

	for (size_t i = 0; i < p->step_n; i++) {
		const struct step *s = &p->steps[i];
		AUTO_FREE char *whole = NULL, *now = NULL;
		size_t n = 0;

		if (s->kind != STEP_FILE && s->kind != STEP_OPTIONS && s->kind != STEP_BLOCK &&
		    s->kind != STEP_ENTRY)
			continue;
		whole = below(g, s->target);
		now = get_bytes(whole, &n);
		if (!is_one_of(p, s->target, now, n))
			return xprintf("%s is neither old nor new: %s", s->target, now ? now : "-");
	}
	if (!grub || strncmp(grub, start, strlen(start)) != 0 || strlen(grub) < strlen(end) ||
	    strcmp(grub + strlen(grub) - strlen(end), end) != 0)
		return xprintf("boot/grub/grub.cfg is torn: %s", grub ? grub : "-");
	return NULL;
}

/* ---- points ---- */

static int at_point(struct rig *g)
{
	long point = g->points++;

	if (g->write && point == g->write_at) {
		g->wrote = true;
		g->write(g);
	}
	if (g->fail_at < 0 || (g->stays ? point < g->fail_at : point != g->fail_at))
		return 0;
	if (g->kill)
		raise(SIGKILL);
	return -g->error;
}

static int before(void *context, enum fix_point point, const char *path)
{
	(void)point;
	(void)path;
	return at_point(context);
}

void rig_fail(struct rig *g, long n, int error)
{
	g->points = 0;
	g->fail_at = n;
	g->error = error;
	g->stays = false;
}

void rig_write_at(struct rig *g, long n, void (*write)(struct rig *g))
{
	g->points = 0;
	g->write_at = n;
	g->write = write;
	g->wrote = false;
}

void rig_fail_from(struct rig *g, long n, int error)
{
	rig_fail(g, n, error);
	g->stays = true;
}

static void report(void *context, enum fix_event event, const struct journal_entry *e,
		   const struct step *s, const char *text)
{
	struct rig *g = context;

	(void)e;
	g->events[event]++;
	strbuf_printf(&g->texts, "%s: %s\n", s && s->what ? s->what : "-", text ? text : "-");
}

void rig_listen(struct rig *g)
{
	memset(g->events, 0, sizeof(g->events));
	strbuf_done(&g->texts);
	g->texts = (struct strbuf){0};
}

/* ---- programs ---- */

/* What both generators make of their configuration. */
static char *generated_of(const char *config)
{
	return xprintf("generated\nlinux root=/dev/sda1 %s\nend\n", config ? config : "");
}

char *rig_grub_text(const struct rig *g)
{
	AUTO_FREE char *config = rig_get(g, "etc/default/gen.cfg");
	AUTO_FREE char *kernel = rig_get(g, "etc/default/kernel");
	AUTO_FREE char *words =
		xprintf("%s%s%s%s%.*s", config ? config : "", kernel ? "\nkernel " : "",
			kernel ? kernel : "", g->language ? "\n\tset lang=" : "",
			(int)strcspn(g->language ? g->language : "", "."),
			g->language ? g->language : "");

	return generated_of(words);
}

int rig_point(struct rig *g)
{
	return at_point(g);
}

/* In two writes, with a point between them: a program can be cut short too. */
static int write_in_two(struct rig *g, const char *whole, const char *text)
{
	AUTO_CLOSE int fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t half = strlen(text) / 2;

	must(fd >= 0 && write(fd, text, half) == (ssize_t)half, whole);
	if (at_point(g) < 0)
		return 1;
	must(write(fd, text + half, strlen(text) - half) >= 0, whole);
	return 0;
}

static int run_grub(void *context, const char *const *argv)
{
	struct rig *g = context;
	AUTO_FREE char *text = rig_grub_text(g);

	return write_in_two(g, argv[1], text);
}

static int run_check(void *context, const char *const *argv)
{
	size_t n;
	AUTO_FREE char *text = get_bytes(argv[1], &n);

	(void)context;
	return !text || strncmp(text, "generated\n", 10) != 0 || !strstr(text, "\nend\n");
}

static int run_initrd(void *context, const char *const *argv)
{
	struct rig *g = context;
	AUTO_FREE char *config = rig_get(g, "etc/modprobe.d/x.conf");
	AUTO_FREE char *text = generated_of(config), *whole = below(g, "boot/initrd");

	(void)argv;
	return write_in_two(g, whole, text);
}

static int run_switch(void *context, const char *const *argv)
{
	struct rig *g = context;
	if (at_point(g) < 0)
		return 1;
	rig_put(g, "run/switch", argv[1]);
	return 0;
}

int rig_run(const struct stand_in *programs, void *context, const char *const *argv,
	    struct strbuf *output, int *ret_status)
{
	for (; programs->name; programs++)
		if (strcmp(argv[0], programs->name) == 0) {
			*ret_status = programs->run(context, argv);
			strbuf_printf(output, "%s ran\n", argv[0]);
			return 0;
		}
	return err_set(ENOENT, "%s: no such program", argv[0]);
}

static int runner(void *context, const char *const *argv, unsigned deadline_s,
		  struct strbuf *output, int *ret_status);

/*
 * "unshare --mount --propagation private", then "sh -ec SCRIPT onehop FILE STAGE FOLDER NAME" for
 * each file, then the program: the file is there while the program runs.
 */
static int run_unshare(void *context, const char *const *argv)
{
	const struct rig *g = context;
	const char *const *program = argv + 4;
	AUTO_FREE char *path = NULL, *old = NULL, *new = NULL;
	AUTO_STRBUF struct strbuf output = {0};
	size_t old_n, new_n;
	int status, r;

	if (strcmp(program[0], "sh") != 0)
		return runner(context, program, 0, &output, &status) < 0 ? 127 : status;
	path = xprintf("%s/%s", program[6], program[7]);
	old = get_bytes(path, &old_n);
	new = get_bytes(program[4], &new_n);
	put_bytes(g, path + strlen(g->root) + 1, new, new_n);
	r = run_unshare(context, program + 4);
	if (old)
		put_bytes(g, path + strlen(g->root) + 1, old, old_n);
	else
		remove(path);
	return r;
}

/* "env -u LC_ALL LANG=...", then the program in that language. */
static int run_env(void *context, const char *const *argv)
{
	static const char lang[] = "LANG=";
	struct rig *g = context;
	AUTO_STRBUF struct strbuf output = {0};
	int status, r;

	must(strcmp(argv[1], "-u") == 0 && strcmp(argv[2], "LC_ALL") == 0, argv[1]);
	must(strncmp(argv[3], lang, strlen(lang)) == 0, argv[3]);
	g->language = argv[3] + strlen(lang);
	r = runner(context, argv + 4, 0, &output, &status);
	g->language = NULL;
	return r < 0 ? 127 : status;
}

static int runner(void *context, const char *const *argv, unsigned deadline_s,
		  struct strbuf *output, int *ret_status)
{
	static const struct stand_in programs[] = {{"make-grub", run_grub},
						   {"unshare", run_unshare},
						   {"check-grub", run_check},
						   {"make-initrd", run_initrd},
						   {"switch", run_switch},
						   {"env", run_env},
						   {NULL}};

	(void)deadline_s;
	return rig_run(programs, context, argv, output, ret_status);
}

/* ---- the scratch root ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	return at->level ? remove(path) : 0;
}

static void put_device(const struct rig *g, const char *device)
{
	static const uint8_t start[] = {0xde, 0x10, 0x01, 0x22};
	/* Advanced error reporting, then ACS. */
	static const uint8_t first[] = {0x01, 0x00, 0x82, 0x14},
			     second[] = {0x0d, 0x00, 0x01, 0x00};
	AUTO_FREE char *path = xprintf("sys/bus/pci/devices/%s/config", device);
	uint8_t config[4096] = {0};

	memcpy(config, start, sizeof(start));
	memcpy(config + 0x100, first, sizeof(first));
	memcpy(config + ACS_AT, second, sizeof(second));
	config[ACS_AT + 6] = 0x1d;
	put_bytes(g, path, config, sizeof(config));
}

void rig_reset(struct rig *g)
{
	AUTO_FREE char *grub = generated_of("quiet"), *initrd = generated_of("options x=1");

	nftw(g->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	rig_put(g, "etc/a.conf", "a\n");
	rig_put(g, "etc/b.conf", "b 1\nb 2\n");
	rig_put(g, "etc/default/gen.cfg", "quiet");
	rig_put(g, "etc/modprobe.d/x.conf", "options x=1");
	rig_put(g, "boot/grub/grub.cfg", grub);
	rig_put(g, "boot/initrd", initrd);
	rig_put(g, "run/switch", "off");
	rig_put(g, RIG_KNOB, "auto");
	rig_put(g, "etc/machine-id", RIG_ID "\n");
	rig_put(g, RIG_ENTRY, "title One\nlinux /6.1/linux\noptions root=a quiet\n");
	rig_put(g, RIG_COUNTED, "title Two\nlinux /6.2/linux\noptions root=a\noptions quiet\n");
	rig_put(g, RIG_LINE, "root=a quiet\n");
	rig_put(g, "proc/cmdline", "root=a quiet\n");
	rig_put(g, "proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n");
	make_folders(g, "var/lib/");
	rig_write_at(g, -1, NULL);
	put_device(g, RIG_DEVICE);
	put_device(g, RIG_OTHER);
	rig_fail(g, -1, 0);
	rig_listen(g);
}

void rig_forget(struct rig *g)
{
	AUTO_FREE char *journal = below(g, JOURNAL_FOLDER);

	if (nftw(journal, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0)
		rmdir(journal);
	host_forget_old(&g->host, "boot/grub/grub.cfg");
	host_forget_old(&g->host, RIG_ENTRY);
	host_forget_old(&g->host, RIG_COUNTED);
	rig_fail(g, -1, 0);
	rig_write_at(g, -1, NULL);
	rig_listen(g);
}

void rig_open(struct rig *g, uint64_t seed)
{
	struct stat st;
	bool shm =
		stat("/dev/shm", &st) == 0 && S_ISDIR(st.st_mode) && access("/dev/shm", W_OK) == 0;

	*g = (struct rig){.random = seed, .fail_at = -1};
	umask(022);
	/* In memory if there is such a place: what is brought to disk thousands of times. */
	snprintf(g->root, sizeof(g->root), "%s/onehop-fix-XXXXXX", shm ? "/dev/shm" : "/tmp");
	must(mkdtemp(g->root) != NULL, g->root);
	must(fix_host_open(g->root, &g->host) == 0, g->root);
	g->host.all_fat = true;
	g->host.image = false; /* it stands in for a running system */
	g->host.run = runner;
	g->host.run_context = g;
	g->host.before = before;
	g->host.before_context = g;
	g->run = (struct fix_run){&g->host, report, g, 0};
	rig_reset(g);
}

void rig_close(struct rig *g)
{
	nftw(g->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	remove(g->root);
	fix_host_close(&g->host);
	strbuf_done(&g->texts);
}

int rig_setup(void **state, uint64_t seed)
{
	struct rig *g = xcalloc(1, sizeof(*g));

	rig_open(g, seed);
	*state = g;
	return 0;
}

int rig_teardown(void **state)
{
	rig_close(*state);
	free(*state);
	return 0;
}

bool rig_run_killed(struct rig *g, struct plan *p, void (*run)(struct rig *g, struct plan *p),
		    long n)
{
	int status;
	pid_t child = fork();

	must(child >= 0, "fork");
	if (child == 0) {
		rig_fail(g, n, 0);
		g->kill = true;
		run(g, p);
		_exit(0);
	}
	must(waitpid(child, &status, 0) == child, "waitpid");
	must(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL,
	     "a run that is to be killed ends in another way");
	return !WIFEXITED(status);
}

void rig_drop_plan(struct plan **p)
{
	plan_free(*p);
}

/* ---- steps ---- */

static struct bytes bytes_of(struct plan *p, const char *text)
{
	return (struct bytes){text ? arena_strdup(p->arena, text) : NULL, text ? strlen(text) : 0};
}

static struct step *add(struct plan *p, enum step_kind kind, const char *target, const char *old,
			const char *new)
{
	struct step *s = ARENA_PUSH(p->arena, p->steps, p->step_n);

	s->kind = kind;
	s->target = target ? arena_strdup(p->arena, target) : NULL;
	s->old = bytes_of(p, old);
	s->new = bytes_of(p, new);
	s->what = arena_printf(p->arena, "%s %s", step_kind_word(kind), target ? target : "");
	texts_add(p->arena, &s->why, "a test");
	s->deadline_s = 10;
	return s;
}

/* Up to two words; NULL-ended. */
static const char *const *words(struct plan *p, const char *program, const char *word)
{
	const char **argv = arena_alloc(p->arena, 3, sizeof(*argv));

	argv[0] = program;
	argv[1] = word ? arena_strdup(p->arena, word) : NULL;
	return argv;
}

struct step *rig_file(struct plan *p, const char *path, const char *old, const char *new)
{
	struct step *s = add(p, STEP_FILE, path, old, new);

	s->mode = 0644;
	return s;
}

struct step *rig_acs(struct plan *p, const char *device, const char *old, const char *new)
{
	struct step *s = add(p, STEP_REGISTER, device, NULL, NULL);

	s->value.old = (unsigned)strtoul(old, NULL, 16);
	s->value.new = (unsigned)strtoul(new, NULL, 16);
	s->at = "ACS+6";
	s->mask = 0x002c;
	s->identity = 0x10de2201;
	return s;
}

struct step *rig_attribute(struct plan *p, const char *old, const char *new)
{
	return add(p, STEP_ATTRIBUTE, RIG_KNOB, old, new);
}

struct step *rig_switch(struct plan *p, const char *old, const char *new)
{
	struct step *s = add(p, STEP_TOOL, NULL, NULL, NULL);

	s->argv = words(p, "switch", new);
	s->undo_argv = words(p, "switch", old);
	return s;
}

void rig_initrd(struct plan *p, const char *old, const char *new)
{
	add(p, STEP_TOOL, NULL, NULL, NULL)->undo_argv = words(p, "make-initrd", NULL);
	rig_file(p, "etc/modprobe.d/x.conf", old, new);
	add(p, STEP_TOOL, NULL, NULL, NULL)->argv = words(p, "make-initrd", NULL);
}

void rig_grub(const struct rig *g, struct plan *p, const char *old, const char *new)
{
	AUTO_FREE char *cfg = rig_get(g, "boot/grub/grub.cfg");
	struct step *s = add(p, STEP_GENERATED, "boot/grub/grub.cfg", cfg, NULL);

	s->undo_argv = words(p, "make-grub", STEP_OUTPUT);
	s->check_argv = words(p, "check-grub", STEP_OUTPUT);
	rig_file(p, "etc/default/gen.cfg", old, new);
	s = add(p, STEP_GENERATED, "boot/grub/grub.cfg", cfg, NULL);
	s->argv = words(p, "make-grub", STEP_OUTPUT);
	s->check_argv = words(p, "check-grub", STEP_OUTPUT);
	if (new)
		s->expect = arena_strndup(p->arena, new, strcspn(new, " \n"));
}

static const char *const lines[] = {RIG_ENTRY, RIG_COUNTED, RIG_LINE};

static char *with_words(const char *text, const char *path, const char *words)
{
	AUTO_FREE char *copy = xstrdup(words);
	char *rest = copy, *word, *now = xstrdup(text);

	while ((word = strsep(&rest, " "))) {
		AUTO_STRBUF struct strbuf next = {0};

		boot_text_add(now, boot_text_of(path), word, &next);
		free(now);
		now = xstrdup(next.text);
	}
	return now;
}

void rig_words(const struct rig *g, struct plan *p, const char *words)
{
	static const char *const known[] = {RIG_ID "-6.1.conf", RIG_ID "-6.2+3.conf", NULL};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		AUTO_FREE char *old = rig_get(g, lines[i]);
		AUTO_FREE char *new = with_words(old, lines[i], words);
		struct step *s = add(p, STEP_OPTIONS, lines[i], old, new);

		s->at = arena_strdup(p->arena, words);
		s->known = boot_text_of(lines[i]) == BOOT_TEXT_LINE ? known : NULL;
	}
}

/* An entry of onehop's own, which is not there. */
static void rig_own_entry(struct plan *p)
{
	add(p, STEP_ENTRY, RIG_OWN_ENTRY, NULL, "title onehop\nlinux /6.1/linux\noptions root=a\n");
}

/* ---- plans ---- */

/* What is there once the steps so far are done. */
struct future {
	struct plan *plan;
	char *files[5], *x_conf, *knob, *acs[2];
	bool switched, grub, words, own_entry;
};

static const char *const files[] = {"etc/a.conf", "etc/b.conf", "etc/e.conf", "etc/new/c.conf",
				    "etc/new/deep/d.conf"};
static const char *const devices[] = {RIG_DEVICE, RIG_OTHER};

static char *random_text(struct rig *g)
{
	return xprintf("text %u\nof onehop %u\n", rig_random(g, 1000), rig_random(g, 1000));
}

static void become(char **now, char *new)
{
	free(*now);
	*now = new;
}

static void add_file(struct rig *g, struct future *f)
{
	unsigned i = rig_random(g, 5);
	char *new = f->files[i] && rig_random(g, 4) == 0 ? NULL : random_text(g);

	rig_file(f->plan, files[i], f->files[i], new);
	become(&f->files[i], new);
}

static void add_acs(struct rig *g, struct future *f)
{
	unsigned i = rig_random(g, 2);
	char *new = xprintf("%04x", rig_random(g, 0x40));

	rig_acs(f->plan, devices[i], f->acs[i], new);
	become(&f->acs[i], new);
}

static void add_attribute(struct rig *g, struct future *f)
{
	char *new = xprintf("%u", rig_random(g, 3));

	rig_attribute(f->plan, f->knob, new);
	become(&f->knob, new);
}

static void add_switch(struct rig *g, struct future *f)
{
	(void)g;
	/* Once: undoing goes past errors, so a program may be undone before one that ran later. */
	if (!f->switched)
		rig_switch(f->plan, "off", "on");
	f->switched = true;
}

static void add_initrd(struct rig *g, struct future *f)
{
	char *new = random_text(g);

	rig_initrd(f->plan, f->x_conf, new);
	become(&f->x_conf, new);
}

/* Once: what it makes is not known before, so that a second could not say what it stands on. */
static void add_grub(struct rig *g, struct future *f)
{
	AUTO_FREE char *new = xprintf("iommu=pt n=%u", rig_random(g, 1000));

	if (!f->grub)
		rig_grub(g, f->plan, "quiet", new);
	f->grub = true;
}

/* Once: the texts of the steps are those of before the plan. */
static void add_words(struct rig *g, struct future *f)
{
	if (!f->words)
		rig_words(g, f->plan, rig_random(g, 2) ? "iommu=pt" : "iommu=pt pci=realloc");
	f->words = true;
}

/* Once: it is new. */
static void add_own_entry(struct rig *g, struct future *f)
{
	(void)g;
	if (!f->own_entry)
		rig_own_entry(f->plan);
	f->own_entry = true;
}

static void future_done(struct future *f)
{
	for (size_t i = 0; i < 5; i++)
		free(f->files[i]);
	free(f->x_conf);
	free(f->knob);
	free(f->acs[0]);
	free(f->acs[1]);
}

struct plan *rig_random_plan(struct rig *g)
{
	static void (*const adders[])(struct rig *, struct future *) = {
		add_file,   add_file,   add_file, add_file,  add_acs,       add_attribute,
		add_switch, add_initrd, add_grub, add_words, add_own_entry,
	};
	CLEANUP(future_done)
	struct future f = {.plan = plan_new()};
	unsigned n = 1 + rig_random(g, 12);

	f.files[0] = xstrdup("a\n");
	f.files[1] = xstrdup("b 1\nb 2\n");
	f.x_conf = xstrdup("options x=1");
	f.knob = xstrdup("auto");
	f.acs[0] = xstrdup("001d");
	f.acs[1] = xstrdup("001d");
	g->host.all_fat = rig_random(g, 2);
	while (n--)
		adders[rig_random(g, sizeof(adders) / sizeof(*adders))](g, &f);
	return f.plan;
}

struct plan *rig_rich_plan(struct rig *g)
{
	struct plan *p = plan_new();

	rig_acs(p, RIG_DEVICE, "001d", "0011")->again_at_boot = true;
	rig_file(p, "etc/a.conf", "a\n", "a\nmore\n");
	rig_file(p, "etc/new/deep/d.conf", NULL, "d\n");
	rig_initrd(p, "options x=1", "options x=2");
	rig_grub(g, p, "quiet", "iommu=pt quiet");
	rig_words(g, p, "iommu=pt pci=realloc");
	rig_own_entry(p);
	rig_file(p, "etc/a.conf", "a\nmore\n", "a\nstill more\n");
	rig_file(p, "etc/b.conf", "b 1\nb 2\n", NULL);
	rig_attribute(p, "auto", "1");
	rig_switch(p, "off", "on");
	return p;
}

bool rig_only_programs(const struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (!step_is_program(&p->steps[i]))
			return false;
	return true;
}
