/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine/boot_entry.h, fix/boot_entries.h: entries as systemd-boot reads them, their words, whose
 * they are.
 */
#include "fix/boot_entries.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ID    "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"

/* ---- words ---- */

/* Added, found, and taken away again: the same bytes. */
static void words_there_and_back(void **state)
{
	static const struct {
		enum boot_text form;
		const char *text, *with;
	} cases[] = {
		{BOOT_TEXT_ENTRY, "linux /a\noptions root=a ro\n",
		 "linux /a\noptions root=a ro iommu=pt\n"},
		{BOOT_TEXT_ENTRY, "options root=a ro", "options root=a ro iommu=pt"},
		{BOOT_TEXT_ENTRY, "options\troot=a  \t\nlinux /a\n",
		 "options\troot=a iommu=pt  \t\nlinux /a\n"},
		{BOOT_TEXT_ENTRY, "\t options  a\r\nlinux /a\r\n",
		 "\t options  a iommu=pt\r\nlinux /a\r\n"},
		{BOOT_TEXT_ENTRY, "options a\n# options c\noptions b\ntitle d\n",
		 "options a\n# options c\noptions b iommu=pt\ntitle d\n"},
		{BOOT_TEXT_ENTRY, "options \"root=a ro\"\n", "options \"root=a ro iommu=pt\"\n"},
		{BOOT_TEXT_ENTRY, "options root=a -- single\n",
		 "options root=a iommu=pt -- single\n"},
		{BOOT_TEXT_ENTRY, "options a\t-- single\n", "options a iommu=pt\t-- single\n"},
		{BOOT_TEXT_ENTRY, "options a\noptions -- b\n",
		 "options a iommu=pt\noptions -- b\n"},
		{BOOT_TEXT_ENTRY, "options -- single\n", "options iommu=pt -- single\n"},
		{BOOT_TEXT_ENTRY, "options a  -- b\noptions c\n",
		 "options a iommu=pt  -- b\noptions c\n"},
		{BOOT_TEXT_ENTRY, "options dyndbg=\"file x +p\" b\n",
		 "options dyndbg=\"file x +p\" b iommu=pt\n"},
		{BOOT_TEXT_ENTRY, "options xiommu=pt iommu=pt2 iommu=pt,off\n",
		 "options xiommu=pt iommu=pt2 iommu=pt,off iommu=pt\n"},
		{BOOT_TEXT_LINE, "root=a quiet\n", "root=a quiet iommu=pt\n"},
		{BOOT_TEXT_LINE, "root=a quiet", "root=a quiet iommu=pt"},
		{BOOT_TEXT_LINE, "# note\nroot=a  \t\n\n# end\n",
		 "# note\nroot=a iommu=pt  \t\n\n# end\n"},
		{BOOT_TEXT_LINE, "# only a note\n", "# only a note\niommu=pt\n"},
		{BOOT_TEXT_LINE, "# only a note\r\n", "# only a note\r\niommu=pt\r\n"},
		{BOOT_TEXT_LINE, "", "iommu=pt\n"},
		{BOOT_TEXT_LINE, "root=a\nquiet\n", "root=a\nquiet iommu=pt\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		AUTO_STRBUF struct strbuf with = {0}, without = {0}, none = {0};
		enum boot_text form = cases[i].form;

		assert_false(boot_text_has(cases[i].text, form, "iommu=pt"));
		assert_false(boot_text_remove(cases[i].text, form, "iommu=pt", &none));
		assert_int_equal(none.len, 0);
		assert_true(boot_text_add(cases[i].text, form, "iommu=pt", &with));
		assert_string_equal(strbuf_str(&with), cases[i].with);
		assert_true(boot_text_has(with.text, form, "iommu=pt"));
		assert_true(boot_text_remove(with.text, form, "iommu=pt", &without));
		assert_string_equal(strbuf_str(&without), cases[i].text);
	}
}

/* A command line that is not in the entry, or that the kernel would read as one word. */
static void words_that_cannot_be_added(void **state)
{
	static const char *const texts[] = {"linux /uki.efi\n",      "",
					    "options\nlinux /a\n",   "options \t\n",
					    "options \"root=a\nx b", "options a \"b c\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		AUTO_STRBUF struct strbuf with = {0};

		assert_false(boot_text_add(texts[i], BOOT_TEXT_ENTRY, "iommu=pt", &with));
		assert_int_equal(with.len, 0);
	}
}

/* A person's own word of the same name stays: only the last goes. */
static void the_last_of_several_goes(void **state)
{
	AUTO_STRBUF struct strbuf once = {0}, twice = {0};
	AUTO_FREE char *words = NULL;

	(void)state;
	assert_true(boot_text_remove("options iommu=pt a\noptions iommu=pt\n", BOOT_TEXT_ENTRY,
				     "iommu=pt", &once));
	assert_string_equal(once.text, "options iommu=pt a\noptions \n");
	assert_true(boot_text_remove(once.text, BOOT_TEXT_ENTRY, "iommu=pt", &twice));
	assert_string_equal(twice.text, "options a\noptions \n");
	words = boot_text_words(once.text, BOOT_TEXT_ENTRY);
	assert_string_equal(words, "iommu=pt a");
}

static void words_in_quotes_and_behind_dashes(void **state)
{
	AUTO_STRBUF struct strbuf none = {0};

	(void)state;
	/* The kernel takes the quotes away; who wrote them there was a person. */
	assert_true(boot_text_has("options \"iommu=pt\" a", BOOT_TEXT_ENTRY, "iommu=pt"));
	assert_false(
		boot_text_remove("options a \"iommu=pt\" a", BOOT_TEXT_ENTRY, "iommu=pt", &none));
	assert_false(boot_text_has("options x=\"a iommu=pt b\" c", BOOT_TEXT_ENTRY, "iommu=pt"));
	assert_false(boot_text_has("options a -- iommu=pt", BOOT_TEXT_ENTRY, "iommu=pt"));
	assert_false(boot_text_remove("options a -- iommu=pt", BOOT_TEXT_ENTRY, "iommu=pt", &none));
	assert_false(boot_text_has("# options iommu=pt\n#options iommu=pt", BOOT_TEXT_ENTRY,
				   "iommu=pt"));
	assert_false(
		boot_text_has("optionsx iommu=pt\nxoptions iommu=pt", BOOT_TEXT_ENTRY, "iommu=pt"));
	assert_false(boot_text_has("  # iommu=pt", BOOT_TEXT_LINE, "iommu=pt"));
}

#define TWO_PORTS "pci=disable_acs_redir=0000:22:00.0;0000:22:01.0"

/* Quoted, or made longer, by a person: neither found as the word, nor removed. */
static void words_that_a_person_changed(void **state)
{
	static const struct {
		const char *text, *word, *before, *changed;
	} cases[] = {
		{"options a iommu=pt", "iommu=pt", NULL, NULL},
		{"options a iommu=ptx xiommu=pt", "iommu=pt", NULL, NULL},
		{"options a \"iommu=pt\"", "iommu=pt", NULL, "\"iommu=pt\""},
		{"options iommu=pt,strict a", "iommu=pt", NULL, "iommu=pt,strict"},
		{"options iommu=pt,strict a", "iommu=pt", "options iommu=pt,strict", NULL},
		{"options iommu=pt,strict a", "iommu=pt", "options a", "iommu=pt,strict"},
		{"options a -- iommu=pt,strict", "iommu=pt", NULL, NULL},
		{"options pci=noaer,disable_acs_redir=a;b x", "pci=disable_acs_redir=a;b", NULL,
		 "pci=noaer,disable_acs_redir=a;b"},
		{"options pci=disable_acs_redir=a;b;c x", "pci=disable_acs_redir=a;b", NULL,
		 "pci=disable_acs_redir=a;b;c"},
		{"options pci=disable_acs_redir=a;bc x", "pci=disable_acs_redir=a;b", NULL, NULL},
		{"options pci=disable_acs_redir=0000:22:00.0 x", TWO_PORTS, NULL,
		 "pci=disable_acs_redir=0000:22:00.0"},
		{"options pci=disable_acs_redir=22:01.0 x", TWO_PORTS, NULL,
		 "pci=disable_acs_redir=22:01.0"},
		{"options pci=disable_acs_redir=0000:22:01.0;0000:22:00.0 x", TWO_PORTS, NULL,
		 "pci=disable_acs_redir=0000:22:01.0;0000:22:00.0"},
		{"options pci=disable_acs_redir=0000:00:01.1;0000:22:00.0 x", TWO_PORTS, NULL,
		 "pci=disable_acs_redir=0000:00:01.1;0000:22:00.0"},
		{"options pci=disable_acs_redir=0000:22:00.0;0000:00:01.1;0000:22:01.0 x",
		 TWO_PORTS, NULL, "pci=disable_acs_redir=0000:22:00.0;0000:00:01.1;0000:22:01.0"},
		{"options \"pci=noaer,disable_acs_redir=0000:22:01.0\" x", TWO_PORTS, NULL,
		 "\"pci=noaer,disable_acs_redir=0000:22:01.0\""},
		{"options pci=config_acs=x0x00xx@0000:22:01.0 x", TWO_PORTS, NULL,
		 "pci=config_acs=x0x00xx@0000:22:01.0"},
		{"options pci=disable_acs_redir=0000:22:00.0 x",
		 "pci=config_acs=x0x00xx@0000:22:00.0;1xx@pci:0:0", NULL,
		 "pci=disable_acs_redir=0000:22:00.0"},
		{"options pci=disable_acs_redir=0000:22:00.0 x", TWO_PORTS,
		 "options pci=disable_acs_redir=0000:22:00.0", NULL},
		{"options pci=disable_acs_redir=0000:22:02.0 pci=noaer x", TWO_PORTS, NULL, NULL},
		{"options x -- pci=disable_acs_redir=0000:22:00.0", TWO_PORTS, NULL, NULL},
		{"options \"nosplash\" b", "nosplash", NULL, "\"nosplash\""},
		{"options nosplash2 b", "nosplash", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		AUTO_FREE char *changed = boot_text_changed(cases[i].text, BOOT_TEXT_ENTRY,
							    cases[i].word, cases[i].before);

		if (cases[i].changed && !changed)
			fail_msg("%s: not found", cases[i].text);
		else if (cases[i].changed)
			assert_string_equal(changed, cases[i].changed);
		else
			assert_null(changed);
	}
}

/* ---- names and keys ---- */

static void names(void **state)
{
	static const struct {
		const char *name;
		size_t id;
	} cases[] = {
		{"6.1.conf", 3},    {"6.1+3.conf", 3},  {"6.1+2-1.conf", 3}, {"6.1+x.conf", 5},
		{"6.1+.conf", 4},   {"6.1+2-.conf", 6}, {"a+deb+3.conf", 5}, {"a+deb13.conf", 7},
		{"a+0-3.conf", 1},  {".6.1.conf", 0},   {"6.1.conf.bak", 0}, {"6.1.CONF", 3},
		{".a.conf.new", 0}, {"conf", 0},        {".conf", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(boot_entry_id(cases[i].name), cases[i].id);
	assert_true(boot_entry_same("a+3.conf", "a.conf"));
	assert_true(boot_entry_same("a+3.conf", "a+0-3.conf"));
	assert_false(boot_entry_same("a.conf", "ab.conf"));
	assert_false(boot_entry_same("a", "a"));
	assert_int_equal(boot_text_of("efi/loader/entries/a.conf"), BOOT_TEXT_ENTRY);
	assert_int_equal(boot_text_of("loader/entries/a+1.conf"), BOOT_TEXT_ENTRY);
	assert_int_equal(boot_text_of("etc/kernel/cmdline"), BOOT_TEXT_LINE);
	assert_int_equal(boot_text_of("efi/loader/entries/cmdline"), BOOT_TEXT_LINE);
	assert_int_equal(boot_text_of("entries/a.conf"), BOOT_TEXT_LINE);
	assert_int_equal(boot_text_of("a.conf"), BOOT_TEXT_LINE);
}

static void keys(void **state)
{
	static const char text[] = "#title no\ntitle\r\n \ttitle\t\"A system\" \r\ntitle again\n";
	const char *value;
	size_t n;

	(void)state;
	assert_true(boot_entry_get(text, "title", &value, &n));
	assert_int_equal(n, 8);
	assert_memory_equal(value, "A system", 8);
	assert_false(boot_entry_get(text, "linux", &value, &n));
}

/* ---- whose an entry is ---- */

static struct source *map;
static struct arena *arena;

static void put(const char *path, const char *text)
{
	source_put_file(map, path, text, strlen(text));
}

/* An entry, and its name in what becomes the folder's list. */
static void put_listed(struct strbuf *list, const char *name, const char *text)
{
	AUTO_FREE char *path = xprintf("boot/loader/entries/%s", name);

	put(path, text);
	strbuf_printf(list, "%s\n", name);
}

static int system_open(void **state)
{
	(void)state;
	map = source_new_map("host");
	arena = arena_new();
	put("etc/machine-id", ID "\n");
	put("etc/os-release", "PRETTY_NAME=\"Debian 12\"\nID=debian\n");
	source_put_error(map, "etc/machine-info", SOURCE_FILE, ENOENT);
	source_put_error(map, "etc/kernel/entry-token", SOURCE_FILE, ENOENT);
	source_put_error(map, "efi/loader/entries", SOURCE_LIST, ENOENT);
	source_put_error(map, "boot/efi/loader/entries", SOURCE_LIST, ENOENT);
	return 0;
}

static int system_close(void **state)
{
	(void)state;
	source_free(map);
	arena_free(arena);
	return 0;
}

static const struct boot_entry *find(const struct boot_entries *b, const char *name)
{
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->items[i].name, name) == 0)
			return &b->items[i];
	fail_msg("no entry %s", name);
	return NULL;
}

static void whose(void **state)
{
	static const struct {
		const char *name, *text;
		enum boot_entry_kind kind;
	} cases[] = {
		/* By what names one system only. */
		{"x.conf", "machine-id " ID "\nlinux /a\noptions root=UUID=9 ro\n", ENTRY_OURS},
		{"copy.conf", "machine-id " ID "\nlinux /a\noptions root=UUID=1 ro\n",
		 ENTRY_OTHERS},
		{"y.conf", "machine-id " OTHER "\nlinux /a\noptions root=UUID=1 ro\n",
		 ENTRY_OTHERS},
		{ID "-6.1.conf", "linux /a\noptions root=LABEL=7\n", ENTRY_OURS},
		{OTHER "-6.1.conf", "linux /a\noptions root=UUID=1\n", ENTRY_OTHERS},
		{"z.conf", "linux /a\noptions root=UUID=1 systemd.machine_id=" OTHER "\n",
		 ENTRY_OTHERS},
		/* By its root: what runs, and what entries above have. */
		{"arch.conf", "title Arch\nlinux /a\noptions root=UUID=9 rw\n", ENTRY_OURS},
		{"arch2.conf", "title Arch\nlinux /a\noptions rw\noptions root=LABEL=7\n",
		 ENTRY_OURS},
		{"fedora.conf", "title Fedora\nlinux /a\noptions root=UUID=2 ro\n", ENTRY_OTHERS},
		{"snapshot.conf", "linux /a\noptions root=UUID=9 rootflags=subvol=old\n",
		 ENTRY_OTHERS},
		/* Neither: by the distribution. */
		{"gpt-auto.conf", "sort-key debian\nlinux /a\noptions quiet\n", ENTRY_OURS},
		{"gpt-auto2.conf", "sort-key ubuntu\nlinux /a\noptions quiet\n", ENTRY_OTHERS},
		{"titled.conf", "title Debian 12\nlinux /a\noptions quiet\n", ENTRY_OURS},
		{"debian-6.1.conf", "linux /a\noptions quiet\n", ENTRY_OURS},
		{"nothing.conf", "linux /a\noptions quiet\n", ENTRY_OTHERS},
		/* Left as a person made them. */
		{"arch-fallback.conf", "linux /a\noptions root=UUID=9 rw\n", ENTRY_RESCUE},
		{"own1.conf", "title Rescue shell\nlinux /a\noptions root=UUID=9\n", ENTRY_RESCUE},
		{"own2.conf", "linux /a\noptions root=UUID=9 systemd.unit=rescue.target\n",
		 ENTRY_RESCUE},
		{"own3.conf", "linux /a\noptions root=UUID=9 single\n", ENTRY_RESCUE},
		{"own4.conf", "linux /a\noptions root=UUID=9 -- single\n", ENTRY_RESCUE},
		/* Their command line is elsewhere. */
		{"uki.conf", "machine-id " ID "\nuki /a.efi\noptions a\n", ENTRY_SEALED},
		{"sealed.conf", "machine-id " ID "\nefi /a.efi\n", ENTRY_SEALED},
		/* A kernel without parameters, or an image with its own. */
		{"bare.conf", "machine-id " ID "\nlinux /a.efi\n", ENTRY_BARE},
		{"bare1.conf", "machine-id " ID "\nlinux /a\nOPTIONS root=UUID=9\n", ENTRY_BARE},
		/* FAT keeps the case that a name was written with. */
		{"OWN.CONF", "machine-id " ID "\nlinux /a\noptions root=UUID=9\n", ENTRY_OURS},
		{"shell.conf", "title EFI shell\nefi /shell.efi\n", ENTRY_OTHERS},
	};
	AUTO_STRBUF struct strbuf list = {0};
	struct boot_entries b;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		put_listed(&list, cases[i].name, cases[i].text);
	}
	strbuf_puts(&list, ".x.conf.onehop-new\nx.conf.onehop-old\nreadme\n");
	source_put_list(map, "boot/loader/entries", list.text);
	boot_entries_read(map, arena, "root=UUID=9 rw quiet", &b);
	assert_true(b.folder);
	assert_null(b.unread);
	assert_int_equal(b.n, sizeof(cases) / sizeof(*cases));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (find(&b, cases[i].name)->kind != cases[i].kind)
			fail_msg("%s: kind %d, want %d", cases[i].name,
				 (int)find(&b, cases[i].name)->kind, (int)cases[i].kind);
}

/* kernel-install names entries by a token where one is set; another ID may be set for it. */
static void token_and_machine_info(void **state)
{
	struct boot_entries b;

	(void)state;
	put("etc/kernel/entry-token", "server7\n");
	put("etc/machine-info", "KERNEL_INSTALL_MACHINE_ID=" OTHER "\n");
	source_put_list(map, "boot/loader/entries",
			"a.conf\nb.conf\nserver7-6.1.conf\nserver7-6.9.conf\n");
	put("boot/loader/entries/a.conf", "machine-id " OTHER "\nlinux /a\noptions root=b\n");
	put("boot/loader/entries/b.conf", "machine-id " ID "\nlinux /a\noptions root=a\n");
	put("boot/loader/entries/server7-6.1.conf", "linux /a\noptions root=b\n");
	put("boot/loader/entries/server7-6.9.conf", "linux /a\noptions root=of-another\n");
	boot_entries_read(map, arena, NULL, &b);
	assert_int_equal(find(&b, "a.conf")->kind, ENTRY_OURS);
	assert_int_equal(find(&b, "b.conf")->kind, ENTRY_OTHERS);
	assert_int_equal(find(&b, "server7-6.1.conf")->kind, ENTRY_OURS);
	assert_int_equal(find(&b, "server7-6.9.conf")->kind, ENTRY_OTHERS);
	/* Of a disk that does not run nothing but the token is known. */
	source_put_list(map, "boot/loader/entries", "server7-6.9.conf\n");
	boot_entries_read(map, arena, NULL, &b);
	assert_int_equal(find(&b, "server7-6.9.conf")->kind, ENTRY_OURS);
	assert_string_equal(boot_machine_id(map, arena), OTHER);
}

static void what_cannot_be_read(void **state)
{
	struct boot_entries b;

	(void)state;
	source_put_error(map, "boot/loader/entries", SOURCE_LIST, EACCES);
	boot_entries_read(map, arena, NULL, &b);
	assert_false(b.folder);
	assert_string_equal(b.unread, "/boot/loader/entries");
	assert_int_equal(b.error, -EACCES);

	source_put_list(map, "boot/loader/entries", "a.conf\n");
	source_put_error(map, "boot/loader/entries/a.conf", SOURCE_FILE, EIO);
	boot_entries_read(map, arena, NULL, &b);
	assert_true(b.folder);
	assert_int_equal(b.n, 0);
	assert_string_equal(b.unread, "/boot/loader/entries/a.conf");

	/* Another specification's. */
	put("boot/loader/entries.srel", "grub\n");
	boot_entries_read(map, arena, NULL, &b);
	assert_false(b.folder);
	assert_null(b.unread);
}

static void two_partitions(void **state)
{
	struct boot_entries b;

	(void)state;
	put("boot/loader/entries.srel", "type1\n");
	source_put_list(map, "boot/loader/entries", "a.conf\n");
	source_put_list(map, "efi/loader/entries", "b.conf\n");
	put("boot/loader/entries/a.conf", "linux /a\noptions root=a\n");
	put("efi/loader/entries/b.conf", "linux /a\noptions root=a\n");
	boot_entries_read(map, arena, "root=a", &b);
	assert_int_equal(b.n, 2);
	assert_string_equal(find(&b, "b.conf")->path, "efi/loader/entries/b.conf");
	assert_int_equal(find(&b, "a.conf")->kind, ENTRY_OURS);
}

/* An entry of its own, and what is known of its maker. */
static void made_by_kernel_install(void **state)
{
	static const struct {
		const char *name, *text;
		bool made;
	} cases[] = {
		{ID "-6.1.conf",
		 "version 6.1\nmachine-id " ID "\nlinux /" ID "/6.1/linux\noptions root=a\n", true},
		{ID "-6.1+3-1.conf", "version 6.1\nlinux /" ID "/6.1/linux\noptions root=a\n",
		 true},
		{ID "-0-rescue.conf",
		 "version 6.1\nlinux /vmlinuz-0-rescue-" ID "\noptions root=a\n", true},
		/*
		 * Another disk's root=, of the running system: a new one, maybe. Its name is
		 * certain.
		 */
		{ID "-6.2.conf", "version 6.2\nlinux /" ID "/6.2/linux\noptions root=UUID=2\n",
		 true},
		/* A person's copies. */
		{ID "-6.1-copy.conf", "version 6.1\nmachine-id " ID "\nlinux /a\noptions root=a\n",
		 false},
		{"mine.conf", "version 6.1\nmachine-id " ID "\nlinux /a\noptions root=a\n", false},
		{ID "-6.3.conf", "linux /a\noptions root=a\n", false},
		{ID "-6.4.conf", "version 6.4\nlinux /vmlinuz-6.4\noptions root=UUID=1\n", true},
		/*
		 * Each of them edited, so that the version fits: it starts another entry's kernel.
		 */
		{ID "-6.1-own.conf", "version 6.1-own\nlinux /" ID "/6.1/linux\noptions a\n",
		 false},
		{"debian-6.3.conf", "version 6.3\nlinux /" ID "/6.3/linux\noptions root=UUID=1\n",
		 false},
		/* By a token: only with its root=. */
		{"debian-6.1.conf", "version 6.1\nlinux /debian/6.1/linux\noptions root=UUID=1\n",
		 true},
		{"debian-6.2.conf", "version 6.2\nlinux /debian/6.2/linux\noptions root=UUID=2\n",
		 false},
		{OTHER "-6.1.conf",
		 "version 6.1\nlinux /" OTHER "/6.1/linux\noptions root=UUID=1\n", false},
	};
	AUTO_STRBUF struct strbuf list = {0};
	struct boot_entries b;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		put_listed(&list, cases[i].name, cases[i].text);
	}
	source_put_list(map, "boot/loader/entries", list.text);
	boot_entries_read(map, arena, "root=UUID=1 quiet", &b);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (find(&b, cases[i].name)->made != cases[i].made)
			fail_msg("%s: made %d", cases[i].name, !cases[i].made);
}

#define AT " rootflags=subvol=@"

/* The running root, as others may spell it; and what is certainly another one. */
static void roots_by_device(void **state)
{
	static const struct {
		const char *name, *text;
		enum boot_entry_kind kind;
	} cases[] = {
		{"part.conf", "linux /a\noptions root=PARTUUID=AB-01" AT "\n", ENTRY_OURS},
		{"node.conf", "linux /a\noptions root=/dev/nvme0n1p2" AT "\n", ENTRY_OURS},
		{"link.conf", "linux /a\noptions root=/dev/disk/by-uuid/1" AT "\n", ENTRY_OURS},
		{"label.conf", "linux /a\noptions root=LABEL=root" AT "\n", ENTRY_OURS},
		{"other.conf", "linux /a\noptions root=LABEL=other" AT "\n", ENTRY_OTHERS},
		{"unknown.conf", "linux /a\noptions root=LABEL=unplugged" AT "\n", ENTRY_OTHERS},
		{"flags.conf", "linux /a\noptions root=UUID=1 rootflags=subvol=/@,noatime\n",
		 ENTRY_OURS},
		/* With this machine's ID: the root decides where it is certain. */
		{ID "-1.conf", "linux /a\noptions root=PARTUUID=ab-01" AT "\n", ENTRY_OURS},
		{ID "-2.conf", "linux /a\noptions root=UUID=2" AT "\n", ENTRY_OTHERS},
		{ID "-3.conf", "linux /a\noptions root=LABEL=other" AT "\n", ENTRY_OTHERS},
		{ID "-4.conf", "linux /a\noptions root=LABEL=unplugged-too" AT "\n", ENTRY_OURS},
		{ID "-5.conf", "linux /a\noptions quiet\n", ENTRY_OURS},
		{ID "-6.conf", "linux /a\noptions root=UUID=1 rootflags=subvol=@snapshots/1\n",
		 ENTRY_OTHERS},
	};
	AUTO_STRBUF struct strbuf list = {0};
	struct boot_entries b;

	(void)state;
	source_put_link(map, "dev/disk/by-uuid/1", "../../nvme0n1p2");
	source_put_link(map, "dev/disk/by-partuuid/ab-01", "../../nvme0n1p2");
	source_put_link(map, "dev/disk/by-label/root", "../../nvme0n1p2");
	source_put_link(map, "dev/disk/by-label/other", "../../nvme1n1p2");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		put_listed(&list, cases[i].name, cases[i].text);
	}
	source_put_list(map, "boot/loader/entries", list.text);
	boot_entries_read(map, arena, "root=UUID=1 rootflags=subvol=@ quiet", &b);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (find(&b, cases[i].name)->kind != cases[i].kind)
			fail_msg("%s: kind %d, want %d", cases[i].name,
				 (int)find(&b, cases[i].name)->kind, (int)cases[i].kind);
}

/* Not edited, though they are its own. */
static void what_cannot_be_replaced(void **state)
{
	AUTO_FREE char *name = xprintf("%0*d.conf", 240, 1);
	AUTO_FREE char *path = xprintf("boot/loader/entries/%s", name);
	AUTO_FREE char *list = xprintf("link.conf\nfifo.conf\nhuge.conf\n%s\n", name);
	struct boot_entries b;

	(void)state;
	put("boot/loader/entries/link.conf", "linux /a\noptions root=a\n");
	source_put_link(map, "boot/loader/entries/link.conf", "../../a.conf");
	source_put_error(map, "boot/loader/entries/fifo.conf", SOURCE_FILE, EINVAL);
	source_put_error(map, "boot/loader/entries/huge.conf", SOURCE_FILE, EFBIG);
	put(path, "linux /a\noptions root=a\n");
	source_put_list(map, "boot/loader/entries", list);
	boot_entries_read(map, arena, "root=a", &b);
	assert_null(b.unread);
	assert_int_equal(b.n, 3);
	assert_string_equal(find(&b, "link.conf")->why_not, "is a symbolic link");
	assert_int_equal(find(&b, "huge.conf")->kind, ENTRY_OTHERS);
	assert_non_null(strstr(find(&b, name)->why_not, "too long a name"));
}

/* systemd-boot reads up to the zero byte. */
static void a_zero_byte(void **state)
{
	static const char text[] = "linux /a\noptions root=a\n\0version 6.1\n";
	struct boot_entries b;

	(void)state;
	source_put_list(map, "boot/loader/entries", "a.conf\nzeros.conf\n");
	source_put_file(map, "boot/loader/entries/a.conf", text, sizeof(text));
	source_put_file(map, "boot/loader/entries/zeros.conf", "\0\0", 2);
	boot_entries_read(map, arena, "root=a", &b);
	assert_null(b.unread);
	assert_int_equal(find(&b, "a.conf")->kind, ENTRY_OURS);
	assert_string_equal(find(&b, "a.conf")->text, "linux /a\noptions root=a\n");
	assert_string_equal(find(&b, "a.conf")->why_not, "has a zero byte in it");
	assert_int_equal(find(&b, "zeros.conf")->kind, ENTRY_OTHERS);
}

/* The journal cannot hold such a name; the other entries are changed all the same. */
static void names_that_are_no_text(void **state)
{
	static const char *const names[] = {"Gro\xdf.conf", "a\tb.conf",
					    "Gr\303\266\303\237e.conf"};
	AUTO_STRBUF struct strbuf list = {0};
	struct boot_entries b;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = xprintf("boot/loader/entries/%s", names[i]);

		strbuf_printf(&list, "%s\n", names[i]);
		source_put_file(map, path, "linux /a\noptions root=a\n", 24);
	}
	source_put_list(map, "boot/loader/entries", list.text);
	boot_entries_read(map, arena, "root=a", &b);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *why = find(&b, names[i])->why_not;

		if (i < 2)
			assert_string_equal(
				why, "has a name that is not UTF-8, or with control characters");
		else
			assert_null(why);
	}
}

/* Of a system that does not run its fstab says the root. */
static void root_of_fstab(void **state)
{
	static const struct {
		const char *name, *text;
		enum boot_entry_kind kind;
	} cases[] = {
		{"own.conf", "linux /a\noptions root=UUID=1 rootflags=subvol=@\n", ENTRY_OURS},
		{"old.conf", "linux /a\noptions root=UUID=1 rootflags=subvol=old\n", ENTRY_OTHERS},
		{"other.conf", "linux /a\noptions root=UUID=2\n", ENTRY_OTHERS},
		{ID "-1.conf", "linux /a\noptions root=UUID=1 rootflags=subvol=/@\n", ENTRY_OURS},
		/* A copy of the disk. */
		{ID "-2.conf", "linux /a\noptions root=UUID=2 rootflags=subvol=@\n", ENTRY_OTHERS},
	};
	AUTO_STRBUF struct strbuf list = {0};
	struct boot_entries b;

	(void)state;
	put("etc/fstab", "# disk\nUUID=9 /home ext4 defaults 0 2\n"
			 "UUID=1 / btrfs rw,noatime,subvol=/@ 0 0\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		put_listed(&list, cases[i].name, cases[i].text);
	source_put_list(map, "boot/loader/entries", list.text);
	boot_entries_read(map, arena, NULL, &b);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (find(&b, cases[i].name)->kind != cases[i].kind)
			fail_msg("%s: kind %d, want %d", cases[i].name,
				 (int)find(&b, cases[i].name)->kind, (int)cases[i].kind);
}

/* The same partition at /boot and at /efi is one; two with other entries are two. */
static void a_partition_that_is_mounted_twice(void **state)
{
	struct boot_entries b;

	(void)state;
	source_put_list(map, "boot/loader/entries", "a.conf\nb.conf\n");
	source_put_list(map, "efi/loader/entries", "a.conf\nb.conf\n");
	put("boot/loader/entries/a.conf", "linux /a\noptions root=a\n");
	put("boot/loader/entries/b.conf", "linux /b\noptions root=a\n");
	put("efi/loader/entries/a.conf", "linux /a\noptions root=a\n");
	put("efi/loader/entries/b.conf", "linux /b\noptions root=a\n");
	boot_entries_read(map, arena, "root=a", &b);
	assert_int_equal(b.n, 2);
	assert_string_equal(b.items[0].path, "boot/loader/entries/a.conf");
	put("efi/loader/entries/b.conf", "linux /b\noptions root=a quiet\n");
	boot_entries_read(map, arena, "root=a", &b);
	assert_int_equal(b.n, 4);
}

#define SYSTEM_TEST(f) cmocka_unit_test_setup_teardown(f, system_open, system_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_there_and_back),
		cmocka_unit_test(words_that_cannot_be_added),
		cmocka_unit_test(the_last_of_several_goes),
		cmocka_unit_test(words_in_quotes_and_behind_dashes),
		cmocka_unit_test(words_that_a_person_changed),
		cmocka_unit_test(names),
		cmocka_unit_test(keys),
		SYSTEM_TEST(whose),
		SYSTEM_TEST(token_and_machine_info),
		SYSTEM_TEST(what_cannot_be_read),
		SYSTEM_TEST(two_partitions),
		SYSTEM_TEST(made_by_kernel_install),
		SYSTEM_TEST(roots_by_device),
		SYSTEM_TEST(what_cannot_be_replaced),
		SYSTEM_TEST(a_zero_byte),
		SYSTEM_TEST(names_that_are_no_text),
		SYSTEM_TEST(root_of_fstab),
		SYSTEM_TEST(a_partition_that_is_mounted_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
