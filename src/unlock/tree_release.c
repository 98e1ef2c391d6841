/* SPDX-License-Identifier: Apache-2.0 */
/* Which release a tree is of: what version.mk says, and whether its other parts say the same, and are it. */
#include "unlock/known_sources.h"
#include "unlock/source_hash.h"
#include "unlock/unlock_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/*
 * Each part of a tree names its release once, in all releases from 535.43.02 to 595.45.04: the makefiles,
 * the modules that are built for a kernel, the core. A tree of two parts of two releases compiles, and
 * its modules do not fit each other.
 */
static const struct {
	const char *file, *key;
} places[] = {
	{"version.mk", "NVIDIA_VERSION"},
	{KERNEL_OPEN "Kbuild", "-DNV_VERSION_STRING"},
	{"src/common/inc/nvUnixVersion.h", "NV_VERSION_STRING"},
};

#define PLACES   (sizeof(places) / sizeof(places[0]))
#define TEXT_MAX (1u << 20)

/* KEY = 535.261.03, KEY=\"535.261.03\", KEY "535.261.03"; NULL: no such text. */
static const char *value_in(const char *text, const char *key, struct arena *a)
{
	const char *at = strstr(text, key);

	if (!at)
		return NULL;
	at += strlen(key);
	at += strspn(at, " \t=\\\"");
	return arena_strndup(a, at, strspn(at, "0123456789."));
}

/* NULL: there is no such file, or it does not say. */
static int read_place(const struct tree *t, size_t i, struct arena *a, const char **ret)
{
	struct tree_file f = {0};
	int r = tree_read(t, places[i].file, TEXT_MAX, &f);

	*ret = r == 0 ? value_in(f.data, places[i].key, a) : NULL;
	free(f.data);
	if (*ret && !**ret)
		*ret = NULL;
	return r == -ENOENT ? 0 : r;
}

int tree_release(const struct tree *t, struct arena *a, const char **ret)
{
	const char *said[PLACES], *first = NULL;
	size_t first_at = 0;

	*ret = NULL;
	for (size_t i = 0; i < PLACES; i++) {
		int r = read_place(t, i, a, &said[i]);

		if (r < 0)
			return r;
		if (!said[i])
			continue;
		if (first && strcmp(first, said[i]) != 0)
			return err_set(
				EINVAL,
				"%s mixes two releases: %s is of %s, %s of %s; unpack one release "
				"into an empty folder",
				t->dir, places[first_at].file, first, places[i].file, said[i]);
		if (!first)
			first_at = i;
		first = said[i];
	}
	*ret = said[0];
	return 0;
}

/* ---- by content ---- */

static bool is_hash_of(const struct known_source *k, size_t part, const char *hash)
{
	return k->parts[part] && text_starts_with(hash, k->parts[part]);
}

/* The release whose part has this hash, of those that are known; `own` comes first. NULL: none. */
static const struct known_source *source_with(size_t part, const char *hash,
					      const struct known_source *own)
{
	const struct known_source *known;
	size_t n;

	if (is_hash_of(own, part, hash))
		return own;
	known = known_source_table(&n);
	for (size_t i = 0; i < n; i++)
		if (is_hash_of(&known[i], part, hash))
			return &known[i];
	return NULL;
}

static int refuse_mixture(const struct tree *t, const struct known_source *own, size_t part,
			  const struct known_source *is)
{
	return err_set(EINVAL,
		       "%s mixes two releases: version.mk is of %s, but the files in %s are those "
		       "of %s; unpack one release into an empty folder",
		       t->dir, own->release, source_parts[part], is->release);
}

/* ret_is: the release that the folder is of; NULL: none that is known. -ENOENT: it is not compared. */
static int find_source(const struct tree *t, size_t part, const struct known_source *own,
		       const struct known_source **ret_is)
{
	char hash[SHA256_TEXT];
	int r = own->parts[part] ? source_hash_part(t, source_parts[part], hash) : -ENOENT;

	*ret_is = r == 0 ? source_with(part, hash, own) : NULL;
	if (*ret_is && *ret_is != own)
		return refuse_mixture(t, own, part, *ret_is);
	return r == -EINVAL ? 0 : r; /* a link, or a name that no release has: changed */
}

/*
 * A part that was changed is named, with the folders in it that the edits touch and that differ too: "kernel-open (including
 * nvidia-uvm)". One of them may be another release's.
 */
static int name_changed(const struct tree *t, size_t part, const struct known_source *own,
			struct strbuf *out)
{
	AUTO_FREE char *start = xprintf("%s/", source_parts[part]);
	const char *before = " (including ";

	strbuf_printf(out, "%s%s", out->len ? ", " : "", source_parts[part]);
	for (size_t i = SOURCE_PARTS; i < SOURCE_FOLDERS; i++) {
		const struct known_source *is = NULL;
		int r = -ENOENT;

		if (text_starts_with(source_parts[i], start))
			r = find_source(t, i, own, &is);
		if (r < 0 && r != -ENOENT)
			return r;
		if (r < 0 || is)
			continue;
		strbuf_printf(out, "%s%s", before, source_parts[i] + strlen(start));
		before = ", ";
	}
	strbuf_puts(out, *before == ',' ? ")" : "");
	return 0;
}

/*
 * Somebody's own change to a part is theirs to make (packages patch for newer kernels), and every place is checked
 * as it is. A whole folder of another release is nobody's intent: it compiles, and its modules do not fit each other.
 * A single file of another release cannot be told from a change: no hash of each file is kept.
 */
int tree_check_parts(const struct tree *t, const char *release, struct arena *a,
		     const char **ret_changed)
{
	const struct known_source *own = release ? known_source_find(release) : NULL, *is;
	AUTO_STRBUF struct strbuf changed = {0};

	*ret_changed = NULL;
	for (size_t i = 0; own && i < SOURCE_PARTS; i++) {
		int r = find_source(t, i, own, &is);

		if (r == 0 && !is)
			r = name_changed(t, i, own, &changed);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	if (changed.len)
		*ret_changed = arena_strdup(a, strbuf_str(&changed));
	return 0;
}
