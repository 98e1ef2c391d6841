/* SPDX-License-Identifier: Apache-2.0 */
/* Who upgrades packages here without being asked, and which of them would bring the stock modules back. */
#include "unlock/delivery_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- is it on? ---- */

/* As systemctl enable leaves it; a link to /dev/null, which masks a unit, is in another folder. */
static bool is_timer_on(const struct delivery_facts *l, const char *timer)
{
	const char *wants = delivery_format(l, "etc/systemd/system/timers.target.wants/%s", timer);
	const char *mask = delivery_format(l, "etc/systemd/system/%s", timer);

	return delivery_has(l, wants) == 1 && delivery_has(l, mask) != 1;
}

/* The value of `APT::Periodic::Unattended-Upgrade "1";`, in days; the last one counts, -1: not set. */
static int periodic_of(const struct delivery_facts *l, const char *path)
{
	static const char key[] = "APT::Periodic::Unattended-Upgrade";
	AUTO_FREE char *text = delivery_text(l, path, NULL);
	const char *line = NULL;
	int days = -1;
	size_t n;

	while (text && text_next_line(&line, &n, text)) {
		AUTO_FREE char *copy = xstrndup(line, n);
		const char *s = text_trim(copy), *value;

		if (!text_starts_with(s, key))
			continue;
		value = strchr(s, '"');
		days = value ? (int)strtol(value + 1, NULL, 10) : days;
	}
	return days;
}

static bool is_unattended(const struct delivery_facts *l)
{
	static const char folder[] = "etc/apt/apt.conf.d";
	char **names = NULL;
	int days = 0;
	size_t n = 0;

	if (delivery_has_program(l, "unattended-upgrade") != 1 ||
	    source_list(l->s, &names, &n, "%s", folder) < 0)
		return false;
	for (size_t i = 0; i < n; i++) { /* in the order of their names, as apt reads them */
		int own = periodic_of(l, delivery_format(l, "%s/%s", folder, names[i]));

		days = own >= 0 ? own : days;
	}
	source_free_names(names, n);
	return days > 0;
}

/* automatic.conf says whether packages are installed or only fetched; one timer installs always. */
static bool is_dnf_automatic(const struct delivery_facts *l)
{
	static const char *const files[] = {"etc/dnf/automatic.conf",
					    "etc/dnf/dnf5-plugins/automatic.conf"};
	bool installs = is_timer_on(l, "dnf-automatic-install.timer");

	if (!is_timer_on(l, "dnf-automatic.timer") && !is_timer_on(l, "dnf5-automatic.timer"))
		return installs;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		AUTO_FREE char *text = delivery_text(l, files[i], NULL);
		const char *line = NULL;
		size_t n;

		while (text && text_next_line(&line, &n, text)) {
			AUTO_FREE char *copy = xstrndup(line, n);
			const char *s = text_trim(copy);

			if (text_starts_with(s, "apply_updates"))
				installs |=
					strstr(s, "yes") || strstr(s, "true") || strstr(s, "= 1");
		}
	}
	return installs;
}

static const struct service {
	const char *name;
	enum distribution distribution;
	bool (*is_on)(const struct delivery_facts *l);
} services[] = {
	{"unattended-upgrades", DISTRIBUTION_DEBIAN, is_unattended},
	{"dnf-automatic", DISTRIBUTION_FEDORA, is_dnf_automatic},
};

static const char *service_that_is_on(const struct delivery_facts *l)
{
	for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++)
		if (services[i].distribution == l->distribution && services[i].is_on(l))
			return services[i].name;
	return NULL;
}

/* ---- packages ---- */

/* What an upgrade would replace: files of the system, below the root; NULL: none of the kind. */
struct parts {
	const char *items[3];
	size_t n;
};

static void add_part(struct parts *p, const char *path)
{
	if (path && p->n < sizeof(p->items) / sizeof(p->items[0]))
		p->items[p->n++] = path;
}

/* Ubuntu's packages of prebuilt modules hold the parts that nvidia.ko is linked from, in its folder. */
static const char *folder_of_module(const struct delivery_facts *l)
{
	const struct module *m = l->r->image ? NULL : machine_module(l->m, "nvidia");
	const char *file = m ? fact_str_or(m->file, NULL) : NULL;
	const char *slash = file ? strrchr(file, '/') : NULL;

	if (!slash || !l->d->kernel || strstr(file, "updates/"))
		return NULL;
	return delivery_format(l, "lib/modules/%s/%.*s/", l->d->kernel, (int)(slash - file), file);
}

static const char *user_space_library(const struct delivery_facts *l)
{
	static const char *const folders[] = {
		"usr/lib/x86_64-linux-gnu",
		"usr/lib/x86_64-linux-gnu/nvidia/current",
		"usr/lib/aarch64-linux-gnu",
		"usr/lib64",
	};

	for (size_t i = 0; l->d->release && i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *path =
			delivery_format(l, "%s/libcuda.so.%s", folders[i], l->d->release);

		if (delivery_has(l, path) == 1)
			return path;
	}
	return NULL;
}

static struct parts parts_of_driver(const struct delivery_facts *l)
{
	struct parts p = {.n = 0};

	if (l->d->way == DELIVER_INTO_DKMS && l->d->dkms.folder)
		add_part(&p, delivery_format(l, "%s/dkms.conf", l->d->dkms.folder));
	add_part(&p, folder_of_module(l));
	add_part(&p, user_space_library(l));
	return p;
}

/* "hold" among the wants of dpkg's list: "Status: hold ok installed". */
static bool is_held(const char *status, const char *package)
{
	AUTO_FREE char *start = xprintf("Package: %s\n", package);

	for (const char *at = status; (at = strstr(at, start)); at++) {
		const char *end = strstr(at, "\n\n"), *line = strstr(at, "\nStatus: ");

		if ((at == status || at[-1] == '\n') && line && (!end || line < end))
			return text_starts_with(line + 1, "Status: hold ");
	}
	return false;
}

struct packages {
	const char *all, *loose; /* blank between them; loose: not on hold */
};

static const char *with_word(const struct delivery_facts *l, const char *list, const char *word)
{
	if (list && text_has_word(list, word))
		return list;
	return list ? delivery_format(l, "%s %s", list, word) : word;
}

static struct packages debian_packages(const struct delivery_facts *l)
{
	AUTO_FREE char *status = delivery_text(l, "var/lib/dpkg/status", NULL);
	struct parts p = parts_of_driver(l);
	struct packages ret = {NULL, NULL};

	for (size_t i = 0; i < p.n; i++) {
		const char *owner = delivery_owner(l, p.items[i]);

		if (!owner)
			continue;
		ret.all = with_word(l, ret.all, owner);
		if (!status || !is_held(status, owner))
			ret.loose = with_word(l, ret.loose, owner);
	}
	return ret;
}

/* rpm's database is not a text: the command asks it. */
static const char *fedora_command(const struct delivery_facts *l)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct parts p = parts_of_driver(l);

	for (size_t i = 0; i < p.n; i++)
		strbuf_printf(&b, " /%s", p.items[i]);
	return b.len ? delivery_format(l, "sudo dnf versionlock add $(rpm -qf --qf '%%{NAME} '%s)",
				       strbuf_str(&b))
		     : NULL;
}

/* ---- the check ---- */

#define BRINGS_BACK "a new release of the driver brings the stock modules back"

static void check_debian(struct delivery_facts *l, struct delivery_check *c, const char *service)
{
	struct packages p = debian_packages(l);
	const char *hold = p.loose ? delivery_format(l, "sudo apt-mark hold %s", p.loose) : NULL;

	if (!p.all && service)
		delivery_say(c, CHECK_NOTE,
			     delivery_format(l,
					     "%s is active, and " BRINGS_BACK
					     "; no package of the driver was found to hold",
					     service),
			     NULL);
	else if (p.all && !p.loose)
		delivery_say(c, CHECK_GOOD,
			     delivery_format(l, "%s: on hold already%s%s", p.all,
					     service ? ", so they stay although it is active: "
						     : "",
					     service ? service : ""),
			     NULL);
	else if (service)
		delivery_say(c, CHECK_NOTE,
			     delivery_format(l,
					     "%s is active, and " BRINGS_BACK
					     ": hold its packages (%s)",
					     service, p.loose),
			     hold);
	else if (p.all)
		delivery_say(c, CHECK_GOOD,
			     delivery_format(l,
					     "none are automatic; a manual upgrade " BRINGS_BACK
					     " unless it is held: %s",
					     hold),
			     NULL);
}

void delivery_check_automatic(struct delivery_facts *l, struct delivery_check *c)
{
	const char *service = service_that_is_on(l);

	if (l->distribution == DISTRIBUTION_DEBIAN)
		check_debian(l, c, service);
	else if (service)
		delivery_say(c, CHECK_NOTE,
			     delivery_format(l,
					     "%s is active, and " BRINGS_BACK ": hold its packages",
					     service),
			     fedora_command(l));
}
