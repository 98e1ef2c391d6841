/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/probe.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/module_file.h"
#include "unlock/source_hash.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX ((off_t)512 << 20)
#define MARK     "onehop="
#define UVM      "nvidia_uvm"

/* An object file has no .modinfo, where name and mark would be: what its functions are is said before that. */
static int parse(void *image, size_t size, struct strbuf *out)
{
	int r = module_file_parse_edit(image, size, out);

	return r == -EINVAL && out->len ? 0 : r;
}

static bool is_elf(int fd)
{
	char start[4];

	return pread(fd, start, sizeof(start), 0) == sizeof(start) &&
	       memcmp(start, "\177ELF", sizeof(start)) == 0;
}

static int read_one(int dir_fd, const char *path, struct strbuf *out)
{
	AUTO_CLOSE int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EINVAL;
	if (!is_elf(fd))
		return module_file_read(dir_fd, path, parse, out);
	return st.st_size > FILE_MAX ? -EFBIG
				     : module_file_parse_plain(fd, (size_t)st.st_size, parse, out);
}

static const char *mark_of(const char *text, struct arena *a)
{
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, text))
		if (n > strlen(MARK) && text_starts_with(line, MARK))
			return arena_strndup(a, line + strlen(MARK), n - strlen(MARK));
	return NULL;
}

/* By the name that it gives itself; an object file has none, and is recognised by its gate. */
static bool is_uvm(const char *text)
{
	const char *name;
	size_t n;

	if (text_after(text, "name=", &name, &n))
		return n == strlen(UVM) && memcmp(name, UVM, n) == 0;
	return uvm_gate_is_in(text);
}

#define WANTED "a kernel module or an object file"

static int refuse(int dir_fd, const char *path)
{
	AUTO_CLOSE int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && source_special_kind(st.st_mode))
		return err_set(EINVAL, "%s is %s, not " WANTED, path,
			       source_special_kind(st.st_mode));
	return file_refuse(fd, path, WANTED " with symbols");
}

static int failed(int r, int dir_fd, const char *path)
{
	static const struct {
		int error;
		const char *why;
	} reasons[] = {
		{ENOENT, "there is no such file"},
		{EFBIG, "it is larger than a module is"},
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (r == -reasons[i].error)
			return err_set(-r, "%s: %s", path, reasons[i].why);
	return r == -EINVAL ? refuse(dir_fd, path) : file_unreadable(-r, path);
}

int probe_file(int dir_fd, const char *path, struct arena *a, struct probe *ret)
{
	static const char *const endings[] = {"", ".xz", ".zst", ".gz"};
	AUTO_STRBUF struct strbuf text = {0};
	struct probe p = {0};
	int r = -ENOENT;

	for (size_t i = 0; r == -ENOENT && i < sizeof(endings) / sizeof(endings[0]); i++) {
		p.file = arena_printf(a, "%s%s", path, endings[i]);
		r = read_one(dir_fd, p.file, &text);
	}
	if (r < 0)
		return failed(r, dir_fd, r == -ENOENT ? path : p.file);
	p.kind = is_uvm(strbuf_str(&text)) ? PROBE_UVM : PROBE_CORE;
	p2p_functions_count(strbuf_str(&text), &p.real, &p.stubs);
	p.mark = mark_of(strbuf_str(&text), a);
	p.every_chip = p.real == P2P_FUNCTIONS && p.stubs == 0;
	p.gate = uvm_gate_is_in(strbuf_str(&text));
	*ret = p;
	return 0;
}

bool probe_is_good(const struct probe *p)
{
	return p->kind == PROBE_UVM ? p->gate : p->every_chip;
}
