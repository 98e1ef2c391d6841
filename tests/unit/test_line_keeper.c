/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine/boot.c, machine/line_keeper.c: who keeps the kernel's command line, and what a person
 * does.
 */
#include "machine/line_keeper.h"

#include "base/source.h"
#include "base/strbuf.h"
#include "recording/recording.h"

#include <cmocka.h>
#include <string.h>

#define GRUB         "[proc]\ncmdline = BOOT_IMAGE=/vmlinuz ro\n"
#define LOADER       "[boot/loader]\nloader.conf -> ! EINVAL\n[proc]\ncmdline = ro\n"
#define DEFAULT_LINE "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT "

static struct machine *read_text(const char *text)
{
	static const struct machine_request request = {.parts = MACHINE_HOST | MACHINE_BOOT};
	struct source *map = source_new_map("host");
	AUTO_STRBUF struct strbuf whole = {0};
	struct machine *m;

	strbuf_printf(&whole, "onehop recording 1\n%s", text);
	assert_int_equal(recording_parse(whole.text, whole.len, "host", map), 0);
	m = machine_read(map, &request);
	source_free(map);
	return m;
}

static const struct row {
	const char *files;
	enum line_keeper keeper, in_image;
	const char *says;
} rows[] = {
	{GRUB "[usr/sbin]\ngrub-mkconfig -> ! EINVAL\n", KEEPER_GRUB, KEEPER_GRUB,
	 "as the last line of /etc/default/grub: `" DEFAULT_LINE
	 "a=1 b\"`, then `grub-mkconfig -o /boot/grub/grub.cfg`, and reboot"},
	{GRUB "[usr/sbin]\ngrub2-mkconfig -> ! EINVAL\n", KEEPER_GRUB, KEEPER_GRUB,
	 "`, then `grub2-mkconfig -o /boot/grub2/grub.cfg`, and reboot"},
	{GRUB, KEEPER_GRUB, KEEPER_UNKNOWN, "`, then `update-grub` (Debian, Ubuntu) or `grub2"},
	{GRUB "[usr/sbin]\ngrubby -> ! EINVAL\ngrub2-mkconfig -> ! EINVAL\n", KEEPER_GRUBBY,
	 KEEPER_GRUBBY,
	 "because grubby replaces another a= of an entry; then `grubby --update-kernel=ALL "
	 "--args='a=1 b'`, and reboot"},
	{GRUB "[usr/sbin]\nproxmox-boot-tool -> ! EINVAL\ngrub-mkconfig -> ! EINVAL\n[etc/kernel]\n"
	      "proxmox-boot-uuids -> ! EINVAL\n",
	 KEEPER_PROXMOX_GRUB, KEEPER_PROXMOX_UNSEEN,
	 "a=1 b\"`, then `proxmox-boot-tool refresh`, and"},
	{GRUB "[usr/sbin]\nproxmox-boot-tool -> ! EINVAL\ngrub-mkconfig -> ! EINVAL\n[etc/kernel]\n"
	      "proxmox-boot-uuids -> ! ENOENT\n",
	 KEEPER_GRUB, KEEPER_GRUB, "a=1 b\"`, then `grub-mkconfig"},
	{GRUB
	 "[run]\nostree-booted -> ! EINVAL\n[usr/sbin]\ngrubby -> ! EINVAL\ngrub2-mkconfig -> ! "
	 "EINVAL\n",
	 KEEPER_OSTREE, KEEPER_GRUBBY,
	 "`rpm-ostree kargs --append-if-missing=a=1 --append-if-missing=b`, and reboot"},
	{GRUB "[usr/sbin]\ngrubby -> ! EINVAL\ngrub2-mkconfig -> ! EINVAL\n[boot/loader/entries]\n"
	      "* ostree-1.conf\nostree-1.conf = options root=UUID=1 ostree=/ostree/boot.1/x\n",
	 KEEPER_GRUBBY, KEEPER_OSTREE, "`grubby --update-kernel=ALL"},
	{"[proc]\ncmdline = BOOT_IMAGE=/vmlinuz ostree=/ostree/boot.1/x\n", KEEPER_OSTREE,
	 KEEPER_UNKNOWN, "`rpm-ostree kargs"},
	{LOADER, KEEPER_ENTRIES, KEEPER_UNKNOWN,
	 "add to the options line of the entry in loader/entries on the EFI or boot partition"},
	{LOADER "[etc/kernel]\ncmdline -> ! EINVAL\n", KEEPER_ENTRIES, KEEPER_ENTRIES,
	 "without quotes, a=1 b; then reboot"},
	{LOADER "[usr/bin]\nkernelstub -> ! EINVAL\n[etc/kernel]\ncmdline -> ! EINVAL\n",
	 KEEPER_KERNELSTUB, KEEPER_KERNELSTUB, "`kernelstub -a 'a=1 b'`, and reboot"},
	{LOADER "[etc]\nos-release = ID=pop\n", KEEPER_KERNELSTUB, KEEPER_UNKNOWN,
	 "`kernelstub -a "},
	{LOADER "[usr/sbin]\nproxmox-boot-tool -> ! EINVAL\n[etc/kernel]\ncmdline -> ! EINVAL\n",
	 KEEPER_PROXMOX_ENTRIES, KEEPER_PROXMOX_ENTRIES,
	 "/etc/kernel/cmdline, without quotes, a=1 b; then `proxmox-boot-tool refresh`"},
	/* GRUB's programs are there too: only an image's boot partitions show what starts it. */
	{LOADER
	 "[usr/sbin]\nproxmox-boot-tool -> ! EINVAL\ngrub-mkconfig -> ! EINVAL\n[etc/kernel]\n"
	 "cmdline -> ! EINVAL\nproxmox-boot-uuids -> ! EINVAL\n",
	 KEEPER_PROXMOX_ENTRIES, KEEPER_PROXMOX_UNSEEN,
	 "/etc/kernel/cmdline, without quotes, a=1 b; then `proxmox-boot-tool refresh`"},
	{LOADER "[etc]\nos-release = ID=nixos\n", KEEPER_NIXOS, KEEPER_NIXOS,
	 "add to boot.kernelParams of the system's configuration (/etc/nixos/configuration.nix), "
	 "each in double quotes: \"a=1\" \"b\"; then `nixos-rebuild boot`, and reboot"},
	{GRUB "[etc]\nos-release = ID=opensuse-microos\n[usr/sbin]\ngrub2-mkconfig -> ! EINVAL\n",
	 KEEPER_TRANSACTIONAL, KEEPER_TRANSACTIONAL,
	 "a=1 b\"`, then `transactional-update grub.cfg`, and"},
	{LOADER "[etc]\nos-release = ID=opensuse-aeon\n", KEEPER_TRANSACTIONAL,
	 KEEPER_TRANSACTIONAL, "a=1 b; then `sdbootutil update-all-entries`, and reboot"},
	{"[proc]\ncmdline = ro\n[efi/loader]\nentries -> ! EINVAL\n", KEEPER_UNKNOWN,
	 KEEPER_ENTRIES,
	 "the boot loader is unknown; if it starts what is in loader/entries, add to the options line"},
	{"[proc]\ncmdline = BOOT_IMAGE=vmlinuz ro\n", KEEPER_UNKNOWN, KEEPER_UNKNOWN,
	 "the boot loader is unknown: add a=1 b to the kernel command line in its configuration; "
	 "with GRUB, as the last line of /etc/default/grub: `"},
};

/* The advice is a sentence's middle: no capital, no full stop. */
static void keepers(void **state)
{
	static const char *const words[] = {"a=1", "b"};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct machine *m = read_text(rows[i].files);
		struct line_host h = {&m->kernel, &m->boot, false};
		AUTO_STRBUF struct strbuf how = {0};

		assert_int_equal(line_keeper(&h), rows[i].keeper);
		line_advice(&h, words, 2, &how);
		if (!strstr(strbuf_str(&how), rows[i].says))
			fail_msg("row %zu: no \"%s\" in:\n%s", i, rows[i].says, strbuf_str(&how));
		assert_int_equal(strchr(strbuf_str(&how), '\0')[-1] == '.', 0);
		h.image = true;
		assert_int_equal(line_keeper(&h), rows[i].in_image);
		machine_free(m);
	}
}

static void lists_in_quotes(void **state)
{
	static const char *const word = "pci=disable_acs_redir=0000:22:00.0;0000:22:01.0";
	static const struct {
		const char *files, *why_not, *says;
	} lists[] = {
		{GRUB, NULL,
		 "with these quotes (GRUB and shells end a command at a bare ;): `" DEFAULT_LINE
		 "'pci=disable_acs_redir=0000:22:00.0;0000:22:01.0'\"`"},
		{GRUB "[usr/sbin]\ngrubby -> ! EINVAL\n", "the ; between several ports", NULL},
		{GRUB "[run]\nostree-booted -> ! EINVAL\n", "the ; between several ports", NULL},
		{LOADER, NULL,
		 "without quotes, pci=disable_acs_redir=0000:22:00.0;0000:22:01.0; then"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		struct machine *m = read_text(lists[i].files);
		const struct line_host h = {&m->kernel, &m->boot, false};
		AUTO_STRBUF struct strbuf how = {0}, why = {0};

		line_why_not(&h, word, &why);
		assert_int_equal(why.len > 0, lists[i].why_not != NULL);
		if (lists[i].why_not)
			assert_non_null(strstr(why.text, lists[i].why_not));
		line_advice(&h, &word, 1, &how);
		if (lists[i].says)
			assert_non_null(strstr(how.text, lists[i].says));
		machine_free(m);
	}
}

#define GRUBBY(line)                                                                               \
	"[proc]\ncmdline = BOOT_IMAGE=/vmlinuz " line "\n[usr/sbin]\ngrubby -> ! EINVAL\n"
#define ENTRIES "[boot/loader/entries]\n* 1.conf\n"

/* What grubby would take away, and undo not bring back, is a person's to decide. */
static void grubby_loses_nothing(void **state)
{
	static const struct {
		const char *files;
		bool has;
		const char *why_not;
	} entries[] = {
		{GRUBBY("ro") ENTRIES "1.conf = options root=a iommu=pt\n", true, NULL},
		{GRUBBY("ro") ENTRIES "1.conf = options root=a iommux=1\n", false, NULL},
		{GRUBBY("ro") ENTRIES "1.conf = options iommu=soft\n", false,
		 "grubby would replace iommu=soft of /boot/loader/entries/1.conf, and undo could not"},
		{GRUBBY("ro") ENTRIES "1.conf = options-x iommu=pt\n", false, NULL},
		{GRUBBY("ro") ENTRIES
		 "* 1.conf 2.conf\n1.conf = options iommu=pt\n2.conf = options ro\n",
		 false, "some boot entries have iommu=pt and others do not"},
		{GRUBBY("ro") ENTRIES "1.conf = options $kernelopts\n[boot/grub2]\n"
				      "grubenv = kernelopts=root=a iommu=nopt\n",
		 false, "grubby would replace iommu=nopt of"},
		{GRUBBY("ro") ENTRIES "1.conf = options $kernelopts\n", false,
		 "$kernelopts could not be read"},
		{GRUBBY("ro"), false, "/boot/loader/entries could not be read"},
		{GRUBBY("ro iommu=nopt"), false,
		 "grubby would replace iommu=nopt of the running command line"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		struct machine *m = read_text(entries[i].files);
		const struct line_host h = {&m->kernel, &m->boot, false};
		AUTO_STRBUF struct strbuf why = {0};

		assert_int_equal(grubby_has(&m->boot, "iommu=pt"), entries[i].has);
		line_why_not(&h, "iommu=pt", &why);
		assert_int_equal(why.len > 0, entries[i].why_not != NULL);
		if (entries[i].why_not && !strstr(why.text, entries[i].why_not))
			fail_msg("row %zu: no \"%s\" in:\n%s", i, entries[i].why_not, why.text);
		machine_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keepers),
		cmocka_unit_test(lists_in_quotes),
		cmocka_unit_test(grubby_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
