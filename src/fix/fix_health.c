/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a boot is as healthy as the one before it: devices, network links, units of systemd. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/fix_impl.h"

#include <string.h>

#define UNITS_WAIT_S 60

/* ---- units ---- */

/* "x.service loaded failed failed ..." a line; false: systemd does not say. */
static bool failed_units(struct fix_host *h, struct strbuf *out)
{
	static const char *const argv[] = {"systemctl",   "list-units", "--failed", "--plain",
					   "--no-legend", "--full",     NULL};

	return host_run(h, argv, UNITS_WAIT_S, out) == 0;
}

static bool has_row(const struct plan *p, const char *kind, const char *value, size_t n)
{
	for (size_t i = 0; i < p->baseline_n; i++)
		if (strcmp(p->baseline[i].kind, kind) == 0 && strlen(p->baseline[i].value) == n &&
		    memcmp(p->baseline[i].value, value, n) == 0)
			return true;
	return false;
}

void fix_note_failed_units(struct fix_host *h, struct plan *p)
{
	AUTO_STRBUF struct strbuf units = {0};
	const char *line = NULL;
	size_t n;

	if (!failed_units(h, &units))
		return;
	while (text_next_line(&line, &n, strbuf_str(&units))) {
		size_t name = strcspn(line, " \n");
		struct plan_wanted *row;

		if (!name)
			continue;
		row = ARENA_PUSH(p->arena, p->baseline, p->baseline_n);
		row->kind = "failed";
		row->value = arena_strndup(p->arena, line, name);
	}
}

void fix_trial_units(struct fix_host *h, const struct journal_entry *e, struct strbuf *out)
{
	AUTO_STRBUF struct strbuf units = {0};
	const char *line = NULL;
	size_t n;

	if (!failed_units(h, &units)) {
		strbuf_puts(out, "systemd does not say which units failed\n");
		return;
	}
	while (text_next_line(&line, &n, strbuf_str(&units))) {
		size_t name = strcspn(line, " \n");

		if (name && !has_row(e->plan, "failed", line, name))
			strbuf_printf(out, "%.*s failed, and had not before the trial\n", (int)name,
				      line);
	}
}

/* ---- devices and links ---- */

/* "0000:41:00.0 nvidia" */
static void check_driver(struct fix_host *h, const char *value, struct strbuf *out)
{
	const size_t device = strcspn(value, " ");
	const char *driver = value + device + (value[device] == ' '), *slash;
	AUTO_FREE char *path = xprintf("sys/bus/pci/devices/%.*s/driver", (int)device, value);
	AUTO_FREE char *link = NULL;

	if (host_read_link(h, path, &link) < 0) {
		strbuf_printf(out, "%.*s has no driver, and had %s before the trial\n", (int)device,
			      value, driver);
		return;
	}
	slash = strrchr(link, '/');
	if (strcmp(slash ? slash + 1 : link, driver) != 0)
		strbuf_printf(out, "%.*s has driver %s, and had %s before the trial\n", (int)device,
			      value, slash ? slash + 1 : link, driver);
}

/* "eno1" */
static void check_link(struct fix_host *h, const char *value, struct strbuf *out)
{
	AUTO_FREE char *path = xprintf("sys/class/net/%s/operstate", value), *state = NULL;
	size_t size;
	int r = host_read(h, path, &state, &size);

	if (r < 0 || strcmp(text_trim(state), "up") != 0)
		strbuf_printf(out, "network link %s is %s, and was up before the trial\n", value,
			      r < 0 ? "not there" : text_trim(state));
}

static const struct {
	const char *kind;
	void (*check)(struct fix_host *h, const char *value, struct strbuf *out);
} checks[] = {{"driver", check_driver}, {"link", check_link}};

void fix_trial_devices(struct fix_host *h, const struct journal_entry *e, struct strbuf *out)
{
	const struct plan *p = e->plan;

	for (size_t i = 0; i < p->baseline_n; i++)
		for (size_t k = 0; k < sizeof(checks) / sizeof(*checks); k++)
			if (strcmp(p->baseline[i].kind, checks[k].kind) == 0)
				checks[k].check(h, p->baseline[i].value, out);
}
