/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: what is written is what is read, errors name the line, identifiers are replaced. */
#include "recording/recording.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "recording/recording_text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct source *parse(const char *text)
{
	struct source *map = source_new_map("test");

	if (recording_parse(text, strlen(text), "m.txt", map) < 0) {
		source_free(map);
		return NULL;
	}
	return map;
}

static char *write_text(struct source *map)
{
	AUTO_FREE struct source_entry *entries = NULL;
	struct strbuf out = {0};
	size_t n;

	entries = source_entries(map, &n);
	recording_write(entries, n, &out);
	return out.text;
}

static void text_is_identity(void **state)
{
	static const char text[] = "onehop recording 1\n"
				   "\n[]\n"
				   "base = no base\n"
				   "kernel-log.txt ! EACCES\n"
				   "\n[.]\n"
				   ".dockerenv ! ENOENT\n"
				   "\n[a]\n"
				   "* b c\\x20d \\x21\n"
				   "\\x23hash = not a comment\n"
				   "\\x2astar = not a list\n"
				   "\\x5bbracket = not a section\n"
				   "b -> ../x = y\n"
				   "empty:\n"
				   "multi:\n\tone\n\t\n\t\ttwo:\n"
				   "none ! ENOENT\n"
				   "strange -> ! EINVAL\n"
				   "text =  a = b \\\\ \\x01:\n"
				   "zero = a\\x00b\n"
				   "\n[a/b]\n"
				   "* ! EACCES\n"
				   "odd ! 133\n";
	struct source *map = parse(text);
	AUTO_FREE char *again = NULL;
	char buf[64];

	(void)state;
	assert_non_null(map);
	assert_int_equal(source_read_line(map, buf, sizeof(buf), "a/text"), 0);
	assert_string_equal(buf, "a = b \\ \x01:");
	assert_int_equal(source_read_line(map, buf, sizeof(buf), "a/none"), -ENOENT);
	assert_int_equal(source_read_line(map, buf, sizeof(buf), "a/never"), -ENODATA);
	assert_int_equal(source_read_line(map, buf, sizeof(buf), "a/b/odd"), -133);
	again = write_text(map);
	assert_string_equal(again, text);
	source_free(map);
}

static void bad_lines_are_named(void **state)
{
	static const struct {
		const char *text, *message;
	} bad[] = {
		{"", "m.txt:1: is not a recording: the first line is not 'onehop recording 1'"},
		{"onehop recording 2\n",
		 "m.txt:1: is not a recording: the first line is not 'onehop recording 1'"},
		{"onehop recording 1\n[a]\nb\n",
		 "m.txt:3: neither 'NAME = TEXT', 'NAME:', 'NAME -> TARGET' nor 'NAME ! ERRNO'"},
		{"onehop recording 1\n[a\n", "m.txt:2: a section is written [FOLDER]"},
		{"onehop recording 1\n[/etc]\n", "m.txt:2: a folder's name starts without a slash"},
		{"onehop recording 1\n[a/]\n",
		 "m.txt:2: the folder's name has an empty, '.' or '..' part"},
		{"onehop recording 1\n[a//b]\n",
		 "m.txt:2: the folder's name has an empty, '.' or '..' part"},
		{"onehop recording 1\n[./a/b]\n",
		 "m.txt:2: the folder's name has an empty, '.' or '..' part"},
		{"onehop recording 1\n[..]\n",
		 "m.txt:2: the folder's name has an empty, '.' or '..' part"},
		{"onehop recording 1\n[a]\nb/ ! ENOENT\n",
		 "m.txt:3: a name has an empty, '.' or '..' part"},
		{"onehop recording 1\n[a]\nb\\x2f = c\n",
		 "m.txt:3: a name has an empty, '.' or '..' part"},
		{"onehop recording 1\n[a]\n/b = c\n",
		 "m.txt:3: a name has an empty, '.' or '..' part"},
		{"onehop recording 1\n[a]\n- b/../c\n",
		 "m.txt:3: a name has an empty, '.' or '..' part"},
		{"onehop recording 1\n[a]\n.:\n", "m.txt:3: a name has an empty, '.' or '..' part"},
		{"onehop recording 1\n[.]\na/b -> c\n",
		 "m.txt:3: a name has an empty, '.' or '..' part"},
		{"onehop recording 1\n[a\\x00]\n", "m.txt:2: the folder's name holds a NUL byte"},
		{"onehop recording 1\n[a]\nb ! EWHAT\n", "m.txt:3: unknown error name"},
		{"onehop recording 1\n[a]\nb = \\q\n", "m.txt:3: the value has a broken escape"},
		{"onehop recording 1\n* a\n", "m.txt:2: a listing outside any section"},
		{"onehop recording 1\n[a]\n* b \\x0ac\n",
		 "m.txt:3: a listed name holds a NUL byte, a newline or a slash"},
		{"onehop recording 1\n[a]\n* b\\x00c\n",
		 "m.txt:3: a listed name holds a NUL byte, a newline or a slash"},
		{"onehop recording 1\n[a]\n* ../b\n",
		 "m.txt:3: a listed name holds a NUL byte, a newline or a slash"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_null(parse(bad[i].text));
		assert_string_equal(err_msg(), bad[i].message);
	}
}

static void config_space_is_identity(void **state)
{
	static const char path[] = "sys/bus/pci/devices/0000:41:00.0/config";
	struct source *map = source_new_map("a"), *again = source_new_map("b");
	AUTO_STRBUF struct strbuf out = {0};
	AUTO_FREE struct source_entry *entries = NULL;
	AUTO_FREE char *bytes = NULL;
	char config[4096] = {(char)0xde, 0x10};
	size_t n;

	(void)state;
	config[0x123] = 7;
	source_put_file(map, path, config, sizeof(config));
	entries = source_entries(map, &n);
	assert_true(recording_is_config(&entries[0]));
	recording_write_config(&entries[0], &out);
	assert_non_null(strstr(out.text, "\n120: 00 00 00 07 00"));
	assert_int_equal(recording_parse_config_space(out.text, out.len, "c", again), 0);
	assert_int_equal(source_read(again, &bytes, &n, "%s", path), 0);
	assert_int_equal(n, sizeof(config));
	assert_memory_equal(bytes, config, n);
	source_free(map);
	source_free(again);
}

static void archives_and_folders_replay(void **state)
{
	static const char *const names[] = {"/r.tar.gz", "/r.tar.zst", "/r.tar.xz", "/r/"};
	char dir[] = "/tmp/onehop-test-XXXXXX";
	AUTO_FREE char *command = NULL;

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < 4; i++) {
		AUTO_FREE char *path = xprintf("%s%s", dir, names[i]), *first = NULL,
			       *second = NULL;
		struct source *map = parse("onehop recording 1\n[a]\nb = c\n"), *back = NULL;
		char buf[16];

		source_put_file(map, "nvml.json", "{}\n", 3);
		first = write_text(map);
		assert_int_equal(recording_save(map, path, "a note"), 0);
		assert_int_equal(recording_open(path, &back), 0);
		assert_int_equal(source_read_line(back, buf, sizeof(buf), "note.txt"), 0);
		assert_string_equal(buf, "a note");
		assert_int_equal(source_read_line(back, buf, sizeof(buf), "nvml.json"), 0);
		assert_string_equal(buf, "{}");
		source_drop(back, "note.txt");
		second = write_text(back);
		assert_string_equal(first, second);
		assert_int_equal(recording_save(map, path, NULL),
				 -EEXIST); /* nothing is overwritten */
		assert_non_null(strstr(err_msg(), " exists already; choose another name"));
		source_free(map);
		source_free(back);
	}
	for (size_t i = 0; i < 3; i++) {
		AUTO_FREE char *path = xprintf("%s%s", dir, names[i]);

		unlink(path);
	}
	for (const char *const *m =
		     (const char *const[]){"machine.txt", "nvml.json", "note.txt", NULL};
	     *m; m++) {
		AUTO_FREE char *path = xprintf("%s/r/%s", dir, *m);

		unlink(path);
	}
	command = xprintf("%s/r", dir);
	rmdir(command);
	rmdir(dir);
}

static void identifiers_are_replaced(void **state)
{
	struct source *map = source_new_map("x");
	char buf[256];
	char config[4096] = {0};
	AUTO_FREE char *bytes = NULL;
	size_t n;

	(void)state;
#define PUT(path, text) source_put_file(map, path, text, strlen(text))
	PUT("proc/sys/kernel/hostname", "box17\n");
	PUT("proc/cmdline",
	    "root=UUID=3f0a1b2c-1111-2222-3333-444455556666 ip=10.1.2.3 host=box17 x=box170\n");
	PUT("a/uuid", "GPU-3f0a1b2c-1111-2222-3333-444455556666\n");
	PUT("a/gid", "fe80:0000:0000:0000:0e42:a1ff:fe12:3456\n");
	PUT("a/subnet", "fe80:0000:0000:0007:0e42:a1ff:fe12:3456\n");
	PUT("a/mapped", "0000:0000:0000:0000:0000:ffff:0a01:0203\n");
	PUT("a/near", "0000:0000:0000:0000:0000:ffff:0a01:0204\n");
	PUT("a/rail", "0000:0000:0000:0000:0000:ffff:0a01:0303\n");
	PUT("a/local", "0000:0000:0000:0000:0000:ffff:a9fe:0303\n");
	PUT("a/unset", "0000:0000:0000:0000\n");
	PUT("a/guid", "0c42:a103:0012:3456\n");
	PUT("a/mac", "link 0c:42:a1:12:34:56 up\n");
	PUT("a/version", "95.02.26.40 0000:41:00.0 pci0000:40\n");
	PUT("environment.txt", "HOME=/home/alice\nNCCL_COMM_ID=10.1.2.3:99\nV=94.02.26.48\n");
	PUT("home/alice/.nccl.conf", "NCCL_DEBUG=INFO\n");
	PUT("proc/modules", "nvidia 1 0 - Live 0xffffffffc080c000 (OE)\n");
	PUT("a/ones", "0xffffffffffffffff ffffffffc080c0001 fffffffc080c000\n");
	PUT("a/trace", "RIP: [<ffff8881002f3c40>] at 0xFFFF8881002F3C40.\n");
	source_put_error(map, "home/bob/.nccl.conf", SOURCE_FILE, ENOENT);
	config[0x100] = 3; /* device serial number */
	config[0x104] = 0x55;
	source_put_file(map, "sys/bus/pci/devices/0000:01:00.0/config", config, sizeof(config));
	recording_redact(map);
#define GIVES(path, text)                                                                          \
	assert_int_equal(source_read_line(map, buf, sizeof(buf), path), 0);                        \
	assert_string_equal(buf, text)
	GIVES("proc/cmdline",
	      "root=UUID=00000000-0000-0000-0000-000000000001 ip=192.0.2.1 host=host x=box170");
	GIVES("a/uuid", "GPU-00000000-0000-0000-0000-000000000001");
	GIVES("a/gid", "fe80:0000:0000:0000:0000:0000:0000:0001");
	GIVES("a/subnet", "fe80:0000:0000:0003:0000:0000:0000:0006");
	/* The same address and the same network as in environment.txt below, whatever the form. */
	GIVES("a/mapped", "0000:0000:0000:0000:0000:ffff:c000:0201");
	GIVES("a/near", "0000:0000:0000:0000:0000:ffff:c000:0202");
	GIVES("a/rail", "0000:0000:0000:0000:0000:ffff:c612:0203");
	GIVES("a/local", "0000:0000:0000:0000:0000:ffff:a9fe:0002");
	GIVES("a/unset", "0000:0000:0000:0000");
	GIVES("a/guid", "0000:0000:0000:0001");
	GIVES("a/mac", "link 02:00:00:00:00:01 up");
	GIVES("a/version", "95.02.26.40 0000:41:00.0 pci0000:40");
	GIVES("environment.txt", "HOME=/home/user1\nNCCL_COMM_ID=192.0.2.1:99\nV=94.02.26.48");
	GIVES("proc/modules", "nvidia 1 0 - Live 0x0000000000000000 (OE)");
	GIVES("a/ones", "0xffffffffffffffff ffffffffc080c0001 fffffffc080c000");
	GIVES("a/trace", "RIP: [<0000000000000000>] at 0x0000000000000000.");
	assert_int_equal(source_read(map, &bytes, &n, "sys/bus/pci/devices/0000:01:00.0/config"),
			 0);
	assert_int_equal(bytes[0x104], 0);
	GIVES("home/user1/.nccl.conf", "NCCL_DEBUG=INFO");
	assert_int_equal(source_read_line(map, buf, sizeof(buf), "home/alice/.nccl.conf"),
			 -ENODATA);
	assert_int_equal(source_read_line(map, buf, sizeof(buf), "home/user2/.nccl.conf"), -ENOENT);
	source_free(map);
}

static char *redacted(const char *path, const char *text)
{
	struct source *map = source_new_map("x");
	char *bytes = NULL;
	size_t n;

	source_put_file(map, path, text, strlen(text));
	recording_redact(map);
	assert_int_equal(source_read(map, &bytes, &n, "%s", path), 0);
	source_free(map);
	return bytes;
}

/* Each form alone: what it is replaced by, also when that is redacted once more. */
static void forms_of_identifiers(void **state)
{
	static const char log[] = "kernel-log.txt", line[] = "proc/cmdline", texts[] = "texts.txt";
	static const struct {
		const char *path, *text, *want;
	} rows[] = {
		{texts, "Serial Number: 1650522003820\n", "Serial Number: 0000000000000\n"},
		{texts, "|   Serial Number     : N/A\n", "|   Serial Number     : N/A\n"},
		{texts, "\tSerial Number:\tS4-A7.c\n", "\tSerial Number:\t00-00.0\n"},
		{texts, "<serial>165A</serial>\n", "<serial>0000</serial>\n"},
		{line, "root=/dev/sda1 rd.luks.key=hunter2 ro\n",
		 "root=/dev/sda1 rd.luks.key=0000000 ro\n"},
		{texts, "|HF_TOKEN=hf_Abc,d x\n", "|HF_TOKEN=00_000,0 x\n"},
		{texts, "|RuntimeError: NCCL error in: x\n|a.DistBackendError: NCCL error in: x\n",
		 "|RuntimeError: NCCL error in: x\n|a.DistBackendError: NCCL error in: x\n"},
		{log, "r8152 2-1:1.0 enx0c42a1123456: 0c:42:a1:12:34:56 0C-42-A1-12-34-56\n",
		 "r8152 2-1:1.0 enx020000000001: 02:00:00:00:00:01 02-00-00-00-00-01\n"},
		{log, "usb 1-1: SerialNumber: AB12\n", "usb 1-1: SerialNumber: 0000\n"},
		{log, "a: serial=K7, ok\n", "a: serial=00, ok\n"},
		{log, "board_serial='K7' ok\n", "board_serial='00' ok\n"},
		{log, "Serial: 8250/16550 driver\n", "Serial: 8250/16550 driver\n"},
		{"nvml.json", "{\"serial\": \"K77\"}\n", "{\"serial\": \"000\"}\n"},
		{texts, "\tNode GUID: 0x0c42a10300123456\n", "\tNode GUID: 0x0000000000000000\n"},
		{"topology.xml", "guid=\"0xa088c20300e1a258\" host_hash=\"0x16fe\"\n",
		 "guid=\"0x0000000000000000\" host_hash=\"0x0000\"\n"},
		{"a", "at 0c:42:a1:03:00:12:34:56 up\n", "at 00:00:00:00:00:00:00:01 up\n"},
		{"a", "00:00:10:49:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:12:34:56\n",
		 "00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:01\n"},
		{"a", "fe80::e42:a1ff:fe12:3456\n", "fe80:0000:0000:0000:0000:0000:0000:0001\n"},
		{"a", "fe80:0:0:0:e42:a1ff:fe12:3456%eth0\n",
		 "fe80:0000:0000:0000:0000:0000:0000:0001%eth0\n"},
		{"a", "fe80:0000:0000:0000:0e42:a1ff:fe12:3456 fe80::e42:a1ff:fe12:3456\n",
		 "fe80:0000:0000:0000:0000:0000:0000:0001 fe80:0000:0000:0000:0000:0000:0000:0001\n"},
		{"environment.txt", "NCCL_COMM_ID=[2001:db8::7]:99\n",
		 "NCCL_COMM_ID=[2001:0000:0000:0001:0000:0000:0000:0001]:99\n"},
		{"a", "(fe80::), c10d::add, std::fade::2, 0000:41:00.0, 12:34:56\n",
		 "(fe80::), c10d::add, std::fade::2, 0000:41:00.0, 12:34:56\n"},
		{"environment.txt", "A=010.001.002.003 B=10.1.2.3 C=01.2.3.4\n",
		 "A=192.0.2.1 B=192.0.2.1 C=198.18.2.2\n"},
		{"environment.txt", "V=94.02.26.48 M=255.255.255.0\n",
		 "V=94.02.26.48 M=255.255.255.0\n"},
		{line, "ip=10.1.2.3::10.1.2.1:255.255.240.0:box17:eth0:off x=box17 y=box170\n",
		 "ip=192.0.2.1::192.0.2.2:255.255.240.0:host:eth0:off x=host y=box170\n"},
		{line, "ip=[fe80::1]:[fe80::2]::64:box17.site.org:eth0:none\n",
		 "ip=[fe80:0000:0000:0000:0000:0000:0000:0001]:[fe80:0000:0000:0000:0000:0000:0000:0002]::64:host:eth0:none\n"},
		{line, "ip=eth0:dhcp zip=1:2:3:4:word\n", "ip=eth0:dhcp zip=1:2:3:4:word\n"},
		{line, "root=/dev/nfs nfsroot=nas2.site.org:/srv/nas2 ip=dhcp\n",
		 "root=/dev/nfs nfsroot=host:/srv/nas2 ip=dhcp\n"},
		{line, "netroot=nfs:nas2:/srv\n", "netroot=nfs:host:/srv\n"},
		{line, "nfsroot=/srv/a:b\n", "nfsroot=/srv/a:b\n"},
		{line, "pci=config_acs=xx010x1@pci:1000:c030\n",
		 "pci=config_acs=xx010x1@pci:1000:c030\n"},
		{"proc/version", "Linux version 6.8.0 (me@box17) (gcc 13)\n",
		 "Linux version 6.8.0 (user1@host) (gcc 13)\n"},
		{log, "pci 0000:01:00.0: quirk on resume of device 1, resume\n",
		 "pci 0000:01:00.0: quirk on resume of device 1, resume\n"},
		{log, "Command line: ro ip=::::box17\n", "Command line: ro ip=::::host\n"},
		{"proc/version", "Linux version 6.1 (debian-kernel@lists.debian.org)\n",
		 "Linux version 6.1 (debian-kernel@lists.debian.org)\n"},
		{texts, "systemd: user@1000.service\n", "systemd: user@1000.service\n"},
		{texts, "|root@box17:~# a\n|me@box17.site.org:~$ b\n",
		 "|root@host1:~# a\n|user1@host2:~$ b\n"},
		{texts, "|NCCL WARN x : Connect to box2.site.org<50000> failed, ib0:10.1.2.3<0>\n",
		 "|NCCL WARN x : Connect to host<50000> failed, ib0:192.0.2.1<0>\n"},
		{texts, "|remote peer box2<50000> a %eth0<50000> std::array<1000> x<9>\n",
		 "|remote peer host<50000> a %eth0<50000> std::array<1000> x<9>\n"},
		{texts, "|Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000\n",
		 "|Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000\n"},
		{texts, "|#  Rank  0 Group  0 Pid   4242 on   box2 device  0 [0x01] NVIDIA A100\n",
		 "|#  Rank  0 Group  0 Pid   4242 on   host device  0 [0x01] NVIDIA A100\n"},
		{texts, "|x: trying to connect to (box2.site.org, 29500).\n",
		 "|x: trying to connect to (host, 29500).\n"},
		{texts, "|failed to connect to [box2]:29500 (errno)\n",
		 "|failed to connect to [host]:29500 (errno)\n"},
		{texts, "|rank 1 with PID 0 on node box2 exited on signal 9\n",
		 "|rank 1 with PID 0 on node host exited on signal 9\n"},
		{texts, "|NCCL_COMM_ID=box2:99\n|NCCL_HOSTID=box2\n|tcp://box2:1\n",
		 "|NCCL_COMM_ID=host:99\n|NCCL_HOSTID=host\n|tcp://host:1\n"},
		{texts, "|NCCL INFO NCCL_COMM_ID set by environment to box2:99\n",
		 "|NCCL INFO NCCL_COMM_ID set by environment to host:99\n"},
		{texts, "|see https://alice:hunter2@git.org/x, https://git.org/y\n",
		 "|see https://00000:0000000@git.org/x, https://git.org/y\n"},
		{texts, "|[V3] Vendor specific: 7a5EAB-1\n|[V0] Vendor specific:\n",
		 "|[V3] Vendor specific: 000000-0\n|[V0] Vendor specific:\n"},
		{log, "Linux version 6.8.0 (alice@box17) (gcc) in /home/alice/x /home/bob\n",
		 "Linux version 6.8.0 (user1@host) (gcc) in /home/user1/x /home/user2\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		AUTO_FREE char *once = redacted(rows[i].path, rows[i].text);
		AUTO_FREE char *twice = redacted(rows[i].path, once);

		assert_string_equal(once, rows[i].want);
		assert_string_equal(twice, once);
	}
}

/* Firmware variables are not text: what stands behind a NUL byte stays, and is looked at too. */
static void bytes_survive_redaction(void **state)
{
	static const char raw[] = "\6\0\0\0b\0o\0 00000000-0000-4000-8000-00000000000a";
	static const char want[] = "\6\0\0\0b\0o\0 00000000-0000-0000-0000-000000000001";
	struct source *map = source_new_map("x"), *again;
	AUTO_FREE char *bytes = NULL, *text = NULL;
	size_t n;

	(void)state;
	source_put_file(map, "a/variable", raw, sizeof(raw) - 1);
	recording_redact(map);
	text = write_text(map);
	again = parse(text);
	assert_non_null(again);
	assert_int_equal(source_read(again, &bytes, &n, "a/variable"), 0);
	assert_int_equal(n, sizeof(want)); /* and the newline that a text ends with */
	assert_memory_equal(bytes, want, sizeof(want) - 1);
	source_free(map);
	source_free(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_identity),
		cmocka_unit_test(bad_lines_are_named),
		cmocka_unit_test(config_space_is_identity),
		cmocka_unit_test(archives_and_folders_replay),
		cmocka_unit_test(identifiers_are_replaced),
		cmocka_unit_test(forms_of_identifiers),
		cmocka_unit_test(bytes_survive_redaction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
