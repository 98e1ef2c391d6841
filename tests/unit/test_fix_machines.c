/* SPDX-License-Identifier: Apache-2.0 */
/* fix/: plans for recorded machines; applied and undone, or failed anywhere: all is as before */
#include "fix_rig.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/text.h"
#include "check_text.h"
#include "diagnose/diagnose.h"
#include "fix/make_plan.h"
#include "open_recording.h"
#include "report/report_fix.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SEED     20261122
#define FAILURES 8 /* a plan */
#define RELEASE  "6.1.0-56-amd64"
#define WANTS    "etc/systemd/system/multi-user.target.wants"
#define INITRD   "boot/initrd.img-" RELEASE
#define ENTRY    "boot/loader/entries/" RIG_ID "-" RELEASE ".conf"
#define READ     "run/systemd/read"   /* which of onehop's units systemd knows */
#define LIMITS   "run/systemd/limits" /* what it has read of system.conf.d */

/* ---- a root of each kind ---- */

struct file {
	const char *path, *text;
};

static const struct file debian[] = {
	{"etc/os-release", "ID=debian\n"},
	{"etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n"},
	{"etc/modprobe.d/blacklist.conf", "blacklist pcspkr\n"},
	{"etc/security/limits.conf", "# nothing\n"},
	{"etc/systemd/system.conf", "[Manager]\n"},
	{"etc/nccl.conf", "NCCL_DEBUG=WARN\n"},
	{WANTS "/ssh.service", ""},
	{"usr/sbin/grub-mkconfig", "for x in ${sysconfdir}/default/grub.d/*.cfg ; do . $x; done\n"},
	{"usr/bin/grub-script-check", ""},
	{"usr/sbin/update-initramfs", ""},
	{"usr/bin/systemctl", ""},
	{"usr/bin/onehop", ""},
	{"run/systemd/system/.keep", ""},
	{"run/units/ssh.service", ""},
	{"run/persistence", "0"},
	{"sys/module/nvidia/initstate", "live\n"},
};

static const struct file loader[] = {
	{"etc/os-release", "ID=fedora\n"},
	{"etc/kernel/cmdline", "root=/dev/sda1 ro quiet"},
	{"etc/modprobe.d/blacklist.conf", "blacklist pcspkr\n"},
	{"etc/systemd/system.conf", "[Manager]\n"},
	{WANTS "/sshd.service", ""},
	{"usr/lib/systemd/system/nvidia-persistenced.service",
	 "[Service]\nExecStart=/usr/bin/nvidia-persistenced\n"},
	{"usr/bin/kernel-install", ""},
	{"etc/machine-id", RIG_ID "\n"},
	{ENTRY, "title Linux\nlinux /linux\noptions root=/dev/sda1 ro quiet\n"},
	{"usr/bin/dracut", ""},
	{"usr/bin/systemctl", ""},
	{"usr/bin/onehop", ""},
	{"lib/modules/" RELEASE "/vmlinuz", "kernel"},
	{"run/systemd/system/.keep", ""},
	{"run/units/sshd.service", ""},
	{"run/persistence", "0"},
	{"sys/module/nvidia/initstate", "live\n"},
};

static const struct file bare[] = {
	{"etc/hostname", "bare\n"},
	{"run/persistence", "0"},
	{"sys/module/nvidia/initstate", "live\n"},
};

static const struct root_kind {
	const char *name, *distribution;
	enum boot_loader loader;
	const struct file *files;
	size_t n;
	size_t least; /* plans with steps */
} kinds[] = {
	{"GRUB", "debian", BOOT_GRUB, debian, sizeof(debian) / sizeof(*debian), 35},
	{"systemd-boot", "fedora", BOOT_SYSTEMD_BOOT, loader, sizeof(loader) / sizeof(*loader), 35},
	{"bare", "unknown", BOOT_UNKNOWN, bare, sizeof(bare) / sizeof(*bare), 30},
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* ---- what the rig's programs do not do ---- */

struct world {
	struct rig rig;
	int (*before)(void *context, enum fix_point point, const char *path); /* the rig's */
	const struct plan *plan;
	const struct diagnosis *diagnosis;
	const char *machine, *kind;
	bool named;
	size_t with_steps[KINDS], steps[STEP_KIND_N], taken_back;
};

static int point_inside(struct world *w)
{
	return w->before(&w->rig, POINT_RUN, "inside of a program") < 0;
}

/* A file that a program writes in place, and can be killed in the middle of. */
static int write_in_two(struct world *w, const char *path, const char *text)
{
	AUTO_FREE char *half = xstrndup(text, strlen(text) / 2);

	rig_put(&w->rig, path, half);
	if (point_inside(w))
		return 1;
	rig_put(&w->rig, path, text);
	return 0;
}

/* Made from the two files as the shell would: each line adds its last word. */
static char *grub_config(const struct rig *g)
{
	AUTO_FREE char *own = rig_get(g, "etc/default/grub.d/99-onehop.cfg");
	AUTO_STRBUF struct strbuf b = {0};
	const char *line = NULL, *blank;
	size_t n;

	strbuf_puts(&b, "generated\nlinux root=/dev/sda1 quiet");
	while (own && text_next_line(&line, &n, own)) {
		blank = memchr(line, ' ', n);
		if (text_starts_with(line, "GRUB_CMDLINE_LINUX_DEFAULT=") && blank)
			strbuf_printf(&b, "%.*s", (int)(line + n - 1 - blank), blank);
	}
	strbuf_puts(&b, "\nend\n");
	return xstrdup(b.text);
}

static char *initrd(const struct rig *g)
{
	AUTO_FREE char *own = rig_get(g, "etc/modprobe.d/onehop.conf");

	return xprintf("modprobe.d:\nblacklist pcspkr\n%s", own ? own : "");
}

/* Of the units that onehop may write: which are there, and what they hold. */
static char *units(const struct rig *g)
{
	static const char *const names[] = {"acs", "peermem", "persistence"};
	AUTO_STRBUF struct strbuf b = {0};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		AUTO_FREE char *path = xprintf("etc/systemd/system/onehop-%s.service", names[i]);
		AUTO_FREE char *text = rig_get(g, path);

		strbuf_printf(&b, "%s: %s\n", names[i], text ? text : "-");
	}
	return xstrdup(b.text);
}

static char *limits(const struct rig *g)
{
	AUTO_FREE char *own = rig_get(g, "etc/systemd/system.conf.d/onehop.conf");

	return xprintf("%s", own ? own : "-");
}

static int grub_mkconfig(void *context, const char *const *argv)
{
	struct world *w = context;
	AUTO_FREE char *text = grub_config(&w->rig);

	if (strcmp(argv[1], "-o") != 0 || !text_starts_with(argv[2], w->rig.root))
		return 2;
	return write_in_two(w, argv[2] + strlen(w->rig.root) + 1, text);
}

static int grub_check(void *context, const char *const *argv)
{
	struct world *w = context;
	AUTO_FREE char *text = rig_get(&w->rig, argv[1] + strlen(w->rig.root) + 1);

	return !text || !text_starts_with(text, "generated\n") || !text_ends_with(text, "\nend\n");
}

static int make_initrd(void *context, const char *const *argv)
{
	struct world *w = context;
	AUTO_FREE char *text = initrd(&w->rig);

	(void)argv;
	return write_in_two(w, INITRD, text);
}

/* There or not, as a file of its own. */
static void be_there(struct world *w, const char *path, bool there)
{
	if (there)
		rig_put(&w->rig, path, "");
	else if (rig_exists(&w->rig, path))
		rig_remove(&w->rig, path);
}

static int reload(struct world *w)
{
	AUTO_FREE char *text = units(&w->rig);

	rig_put(&w->rig, READ, text);
	return 0;
}

static int reexec(struct world *w)
{
	AUTO_FREE char *text = limits(&w->rig);

	rig_put(&w->rig, LIMITS, text);
	return reload(w);
}

static int systemctl(void *context, const char *const *argv)
{
	struct world *w = context;
	static const struct {
		const char *word;
		bool on, kept;
	} words[] = {{"enable", true, true},
		     {"disable", false, true},
		     {"start", true, false},
		     {"stop", false, false}};
	bool now = argv[2] && strcmp(argv[2], "--now") == 0;
	const char *unit = argv[1] && argv[2] ? argv[2 + now] : NULL;
	AUTO_FREE char *wanted = xprintf(WANTS "/%s", unit ? unit : "");
	AUTO_FREE char *runs = xprintf("run/units/%s", unit ? unit : "");

	if (strcmp(argv[1], "daemon-reload") == 0)
		return reload(w);
	if (strcmp(argv[1], "daemon-reexec") == 0)
		return reexec(w);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strcmp(argv[1], words[i].word) != 0 || !unit)
			continue;
		if (words[i].kept) {
			be_there(w, wanted, words[i].on);
			reload(w);
		}
		if (point_inside(w)) /* enabled, and then the start fails */
			return 1;
		if (now || !words[i].kept)
			be_there(w, runs, words[i].on);
		return 0;
	}
	return 2;
}

/* As the kernel names its folder. */
static void set_module(struct world *w, const char *module, bool loaded)
{
	AUTO_FREE char *folder = xprintf("sys/module/%s", module), *file = NULL;

	for (char *c = folder; *c; c++)
		*c = *c == '-' ? '_' : *c;
	file = xprintf("%s/initstate", folder);
	be_there(w, file, loaded);
	if (!loaded && rig_exists(&w->rig, folder))
		rig_remove(&w->rig, folder);
}

static int modprobe(void *context, const char *const *argv)
{
	struct world *w = context;

	if (point_inside(w))
		return 1;
	set_module(w, argv[1], true);
	return 0;
}

static int rmmod(void *context, const char *const *argv)
{
	struct world *w = context;

	if (point_inside(w))
		return 1;
	set_module(w, argv[1], false);
	return 0;
}

static int nvidia_smi(void *context, const char *const *argv)
{
	struct world *w = context;

	if (strcmp(argv[1], "-pm") != 0)
		return 2;
	rig_put(&w->rig, "run/persistence", argv[2]);
	return point_inside(w);
}

static int runner(void *context, const char *const *argv, unsigned deadline_s,
		  struct strbuf *output, int *ret_status)
{
	static const struct stand_in programs[] = {{"grub-mkconfig", grub_mkconfig},
						   {"grub-script-check", grub_check},
						   {"update-initramfs", make_initrd},
						   {"dracut", make_initrd},
						   {"systemctl", systemctl},
						   {"modprobe", modprobe},
						   {"rmmod", rmmod},
						   {"nvidia-smi", nvidia_smi},
						   {NULL}};

	(void)deadline_s;
	return rig_run(programs, context, argv, output, ret_status);
}

/* ---- devices ---- */

static void put_bar(const struct rig *g, const struct step *s, uint64_t mib)
{
	AUTO_FREE char *path = xprintf("sys/bus/pci/devices/%s/resource", s->target);
	AUTO_STRBUF struct strbuf b = {0};
	const uint64_t start = UINT64_C(0x380000000000);

	for (int i = *s->at - '0'; i > 0; i--)
		strbuf_puts(&b, "0x0 0x0 0x0\n");
	strbuf_printf(&b, "0x%" PRIx64 " 0x%" PRIx64 " 0x14220c\n", start, start + (mib << 20) - 1);
	rig_put(g, path, b.text);
}

/* The kernel: who writes resourceN_resize finds the other size. The file keeps what was written. */
static void resize(struct rig *g, const struct step *s)
{
	AUTO_FREE char *path = xprintf("sys/bus/pci/devices/%s/resource", s->target);
	AUTO_FREE char *before = rig_get(g, path), *now = NULL;

	put_bar(g, s, s->value.new);
	now = rig_get(g, path);
	if (strcmp(before, now) == 0)
		put_bar(g, s, s->value.old);
}

static int before(void *context, enum fix_point point, const char *path)
{
	struct world *w = context;
	int r = w->before(&w->rig, point, path);

	for (size_t i = 0; r == 0 && w->plan && i < w->plan->step_n; i++) {
		const struct step *s = &w->plan->steps[i];

		if (s->kind == STEP_BAR_SIZE && point == POINT_REGISTER &&
		    strstr(path, s->target) && text_ends_with(path, "_resize"))
			resize(&w->rig, s);
	}
	return r;
}

/* With its ACS capability where the rig's devices have it. */
static void put_device(const struct rig *g, const struct step *s)
{
	static const uint8_t first[] = {0x01, 0x00, 0x82, 0x14}, second[] = {0x0d, 0x00, 0x01, 0};
	AUTO_FREE char *path = xprintf("sys/bus/pci/devices/%s/config", s->target);
	AUTO_FREE char *whole = xprintf("%s/%s", g->root, path);
	AUTO_FCLOSE FILE *f = NULL;
	uint8_t config[4096] = {(uint8_t)(s->identity >> 16), (uint8_t)(s->identity >> 24),
				(uint8_t)s->identity, (uint8_t)(s->identity >> 8)};

	memcpy(config + 0x100, first, sizeof(first));
	memcpy(config + 0x148, second, sizeof(second));
	rig_put(g, path, "");
	f = fopen(whole, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(config, 1, sizeof(config), f), sizeof(config));
}

static void put_bar_device(const struct rig *g, const struct step *s)
{
	AUTO_FREE char *path =
		xprintf("sys/bus/pci/devices/%s/resource%s_resize", s->target, s->at);
	AUTO_FREE char *code = xprintf("%d", s->value.old ? __builtin_ctz(s->value.old) : 0);

	put_device(g, s);
	put_bar(g, s, s->value.old);
	rig_put(g, path, code);
}

/* What the step expects to find and no root has; a module that is to go has to be there. */
static void prepare(struct world *w, const struct step *s)
{
	if (s->kind == STEP_REGISTER) {
		put_device(&w->rig, s);
		rig_set_register(&w->rig, s->target, s->value.old);
	} else if (s->kind == STEP_BAR_SIZE) {
		put_bar_device(&w->rig, s);
	} else if (s->kind == STEP_ATTRIBUTE) {
		rig_put(&w->rig, s->target, s->old.data);
	} else if (s->kind == STEP_TOOL && s->argv && strcmp(s->argv[0], "rmmod") == 0) {
		set_module(w, s->argv[1], true);
	}
}

/* ---- a plan ---- */

static void put_made(struct world *w, const char *path, char *(*make)(const struct rig *))
{
	AUTO_FREE char *text = make(&w->rig);

	rig_put(&w->rig, path, text);
}

/* The rig's are systemd-boot's. */
static void remove_entries(struct world *w)
{
	static const char *const paths[] = {RIG_ENTRY,    RIG_COUNTED, "efi/loader/entries",
					    "efi/loader", "efi",       RIG_LINE};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		rig_remove(&w->rig, paths[i]);
}

static void make_root(struct world *w, const struct root_kind *k)
{
	rig_reset(&w->rig);
	if (k->loader != BOOT_SYSTEMD_BOOT)
		remove_entries(w);
	for (size_t i = 0; i < k->n; i++)
		rig_put(&w->rig, k->files[i].path, k->files[i].text);
	put_made(w, INITRD, initrd);
	put_made(w, READ, units);
	put_made(w, LIMITS, limits);
	if (k->loader == BOOT_GRUB) {
		put_made(w, "boot/grub/grub.cfg", grub_config);
		return;
	}
	rig_remove(&w->rig, "boot/grub/grub.cfg");
	rig_remove(&w->rig, "boot/grub");
}

static struct plan *make_plan(struct world *w, const struct machine *m,
			      const struct change_set *changes)
{
	struct plan_request request = {.machine = m, .lifetime = CHANGE_LASTING};
	struct plan *p;

	assert_int_equal(source_open_root(w->rig.root, NULL, NULL, &request.source), 0);
	p = plan_make(&request, changes);
	source_free(request.source);
	return p;
}

static void assert_tree(struct world *w, const char *expected, const char *after)
{
	AUTO_FREE char *difference = rig_tree_differs(&w->rig, expected);

	if (difference)
		fail_msg("%s on %s, %s, %s: %s\nthe last run told:\n%s", w->machine, w->kind,
			 w->named ? "all rules named" : "no rules named", after, difference,
			 strbuf_str(&w->rig.texts));
}

static enum fix_result apply(struct world *w, struct plan *p)
{
	enum fix_result result = FIX_NOT_ROLLED_BACK;
	unsigned number;

	if (fix_apply(&w->rig.run, p, &result, &number) < 0)
		fail_msg("apply %s on %s: %s", w->machine, w->kind, err_msg());
	return result;
}

static void undo(struct world *w)
{
	enum fix_result result = FIX_NOT_ROLLED_BACK;
	unsigned number;

	if (fix_undo(&w->rig.run, 0, &result, &number) < 0)
		fail_msg("undo %s on %s: %s", w->machine, w->kind, err_msg());
	if (result != FIX_DONE)
		fail_msg("undo %s on %s:\n%s", w->machine, w->kind, strbuf_str(&w->rig.texts));
}

/* Returns how many points there are on the way. */
static unsigned there_and_back(struct world *w, struct plan *p, const char *old)
{
	bool programs = rig_only_programs(p);
	AUTO_FREE char *new = NULL;
	enum fix_result again;
	long points;

	rig_fail(&w->rig, -1, 0);
	if (apply(w, p) != FIX_DONE)
		fail_msg("apply %s on %s:\n%s", w->machine, w->kind, strbuf_str(&w->rig.texts));
	points = w->rig.points;
	new = rig_tree(&w->rig);
	assert_string_not_equal(new, old);
	again = apply(w, p);
	assert_int_equal(again, programs ? FIX_DONE : FIX_NOTHING);
	assert_tree(w, new, "applied twice");
	if (programs) /* nothing tells that they ran, so they ran again: a fix of its own */
		undo(w);
	undo(w);
	assert_tree(w, old, "undone");
	return (unsigned)points;
}

static void fail_at(struct world *w, struct plan *p, const char *old, unsigned point)
{
	static const int errors[] = {EIO, ENOSPC, EROFS, EDQUOT};
	enum fix_result result = FIX_NOT_ROLLED_BACK;
	AUTO_FREE char *after = xprintf("failed at point %u", point);
	unsigned number;
	int r;

	rig_fail(&w->rig, point, errors[rig_random(&w->rig, 4)]);
	r = fix_apply(&w->rig.run, p, &result, &number);
	assert_true(w->rig.points > point);
	assert_tree(w, old, after);
	if (r == 0 && result != FIX_ROLLED_BACK)
		fail_msg("%s on %s, %s: %d\n%s", w->machine, w->kind, after, (int)result,
			 strbuf_str(&w->rig.texts));
	w->taken_back += r == 0;
}

/* ---- what is said of it ---- */

/* Takes the document. */
static void check_words(const struct world *w, struct document *d)
{
	const struct text_format format = {.width = 100000};
	AUTO_STRBUF struct strbuf b = {0};
	AUTO_FREE char *at_fault = NULL;

	document_write_text(d, &format, &b);
	document_free(d);
	at_fault = leftover(strbuf_str(&b));
	if (at_fault)
		fail_msg("%s on %s, %s, says: %s", w->machine, w->kind,
			 w->named ? "all rules named" : "no rules named", at_fault);
}

static void check_report(const struct world *w, const struct machine *m,
			 const struct change_set *changes, struct plan *p, bool verbose)
{
	struct machine host = *m;
	const struct plan_report r = {.plan = p,
				      .changes = changes,
				      .machine = &host,
				      .apply_words = "onehop fix --apply",
				      .judged = true,
				      .diagnosis = w->diagnosis,
				      .verbose = verbose};
	const struct journal_entry e = {.number = 1, .date = "2026-11-22T01:02:03Z", .plan = p};
	AUTO_FREE enum step_state *look = xcalloc(p->step_n + 1, sizeof(*look));
	AUTO_FREE char **now = xcalloc(p->step_n + 1, sizeof(*now));
	struct document *d = document_new();

	host.recorded = false; /* its note is a person's text */
	report_plan(d, &r);
	check_words(w, d);
	for (size_t i = 0; i < p->step_n; i++)
		look[i] = STEP_IS_NEW;
	d = document_new();
	report_undo_plan(d, &(struct fix_outcome){.entry = &e, .look = look, .now = now}, verbose);
	check_words(w, d);
}

static void check_plan(struct world *w, const struct root_kind *k, const struct machine *m,
		       const struct change_set *changes)
{
	AUTO_FREE char *old = NULL;
	unsigned points = 0;

	make_root(w, k);
	for (int round = 0; round <= FAILURES; round++) {
		struct plan *p = make_plan(w, m, changes);

		for (size_t i = 0; round == 0 && i < p->step_n; i++) {
			prepare(w, &p->steps[i]);
			w->steps[p->steps[i].kind]++;
		}
		for (int verbose = 0; round == 0 && verbose < 2; verbose++)
			check_report(w, m, changes, p, verbose);
		w->with_steps[k - kinds] += round == 0 && p->step_n;
		old = old ? old : rig_tree(&w->rig);
		w->plan = p;
		if (p->step_n && round == 0)
			points = there_and_back(w, p, old);
		else if (p->step_n)
			fail_at(w, p, old, rig_random(&w->rig, points));
		w->plan = NULL;
		rig_forget(&w->rig);
		plan_free(p);
	}
}

/* ---- machines ---- */

/* The machine with the system of this root. */
static struct machine *recorded(const char *name, const struct root_kind *k)
{
	static const struct machine_request all = {.parts = MACHINE_ALL};
	static const char here[] = "set by a test";
	AUTO_FREE char *path = xprintf("tests/machines/%s", name);
	struct source *s = NULL;
	struct machine *m;

	assert_int_equal(open_recording(path, &s), 0);
	m = machine_read(s, &all);
	source_free(s);
	m->kernel.boot_loader = fact_int(k->loader, here);
	m->kernel.distribution_id = fact_str(k->distribution, here);
	m->kernel.release = fact_str(RELEASE, here);
	if (!fact_known(m->kernel.lockdown))
		m->kernel.lockdown = fact_int(LOCKDOWN_NONE, here);
	return m;
}

static void check_machine(struct world *w, const struct root_kind *k)
{
	struct machine *m = recorded(w->machine, k);
	struct topology *t = topology_new(m);
	struct diagnosis *d = diagnose(t);
	AUTO_FREE const char **ids = NULL;
	size_t n = 0;

	w->diagnosis = d;
	FOR_EACH_RULE (r) {
		ids = xrealloc(ids, n + 1, sizeof(*ids));
		ids[n++] = r->id;
	}
	for (int named = 0; named < 2; named++) {
		struct propose_options o = {.rules = ids, .rule_n = named ? n : 0};
		struct change_set changes = {.arena = arena_new()};

		w->named = named;
		diagnosis_propose(d, &o, &changes);
		check_plan(w, k, m, &changes);
		arena_free(changes.arena);
	}
	diagnosis_free(d);
	topology_free(t);
	machine_free(m);
}

static int world_open(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	rig_open(&w->rig, SEED);
	w->before = w->rig.host.before;
	w->rig.host.before = before;
	w->rig.host.before_context = w;
	w->rig.host.run = runner;
	w->rig.host.run_context = w;
	*state = w;
	return 0;
}

static int world_close(void **state)
{
	struct world *w = *state;

	rig_close(&w->rig);
	free(w);
	return 0;
}

/* Else it would hold because there was nothing to do. */
static void check_counts(const struct world *w)
{
	static const enum step_kind made[] = {STEP_FILE, STEP_REGISTER,  STEP_BAR_SIZE,
					      STEP_TOOL, STEP_GENERATED, STEP_OPTIONS};
	size_t all = 0;

	for (size_t i = 0; i < KINDS; i++) {
		print_message("# %s: %zu plans with steps\n", kinds[i].name, w->with_steps[i]);
		assert_true(w->with_steps[i] >= kinds[i].least);
		all += w->with_steps[i];
	}
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		print_message("# %s: %zu steps\n", step_kind_word(made[i]), w->steps[made[i]]);
		assert_true(w->steps[made[i]] > 0);
	}
	print_message("# taken back: %zu\n", w->taken_back);
	assert_true(w->taken_back > all);
}

static void every_machine_on_every_root(void **state)
{
	struct world *w = *state;
	struct source *s = NULL;
	char **names = NULL;
	size_t n;

	assert_int_equal(source_open_root("tests", NULL, NULL, &s), 0);
	assert_int_equal(source_list(s, &names, &n, "machines"), 0);
	for (size_t i = 0; i < n; i++) {
		char line[8];

		if (source_read_line(s, line, sizeof(line), "machines/%s/note.txt", names[i]) < 0)
			continue;
		w->machine = names[i];
		for (size_t k = 0; k < KINDS; k++) {
			w->kind = kinds[k].name;
			check_machine(w, &kinds[k]);
		}
	}
	source_free_names(names, n);
	source_free(s);
	check_counts(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_machine_on_every_root, world_open,
						world_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
