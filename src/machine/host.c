/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel's surroundings: hypervisor, container, and the limits of this process. */
#include "machine/host_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DMI "sys/class/dmi/id"

/* ---- virtual machines ---- */

/* What a hypervisor writes into the DMI tables; a row with an empty field matches any text. */
static const struct {
	const char *vendor, *product, *name;
} dmi_hypervisors[] = {
	{"QEMU", "", "qemu"},
	{"", "KVM", "kvm"},
	{"KVM", "", "kvm"},
	{"VMware", "", "vmware"},
	{"innotek GmbH", "", "virtualbox"},
	{"", "VirtualBox", "virtualbox"},
	{"Xen", "", "xen"},
	{"Microsoft Corporation", "Virtual Machine", "hyperv"},
	{"Amazon EC2", "", "kvm"},
	{"Google", "Google Compute Engine", "kvm"},
	{"Alibaba Cloud", "", "kvm"},
	{"OpenStack", "", "kvm"},
	{"Red Hat", "", "kvm"},
	{"Parallels", "", "parallels"},
	{"", "BHYVE", "bhyve"},
};

const char *hypervisor_of_dmi(const char *vendor, const char *product)
{
	for (size_t i = 0; i < ARRAY_LEN(dmi_hypervisors); i++)
		if (strstr(vendor, dmi_hypervisors[i].vendor) &&
		    strstr(product, dmi_hypervisors[i].product))
			return dmi_hypervisors[i].name;
	return NULL;
}

static struct fact_str hypervisor_by_dmi(struct reader *r)
{
	struct fact_str vendor = read_str(r, DMI "/sys_vendor");
	struct fact_str product = read_str(r, DMI "/product_name");
	const char *name = hypervisor_of_dmi(fact_str_or(vendor, ""), fact_str_or(product, ""));

	if (name)
		return fact_str(name, DMI);
	return fact_unknown(vendor) ? vendor : fact_str_unknown("DMI names no hypervisor");
}

/* Firecracker has no DMI tables; its guests' command line often carries its name, its ACPI tables
 * (root only) always do. */
static struct fact_str hypervisor_without_dmi(struct reader *r)
{
	AUTO_FREE char *table = NULL;
	size_t size;

	if (strstr(fact_str_or(r->m->kernel.cmdline, ""), "firecracker"))
		return fact_str("firecracker", "proc/cmdline");
	if (source_read(r->s, &table, &size, "sys/firmware/acpi/tables/FACP") == 0 && size > 16 &&
	    memcmp(table + 10, "FIRECK", 6) == 0)
		return fact_str("firecracker", "sys/firmware/acpi/tables/FACP");
	return fact_str("virtual", "the hypervisor flag in proc/cpuinfo");
}

/*
 * CPUID's hypervisor bit decides, as /proc/cpuinfo shows it; DMI only names the kind, because cloud
 * vendors write the same on bare metal. Where CPUs have no such bit (Arm), DMI decides.
 */
static struct fact_str read_hypervisor(struct reader *r, struct fact_str cpuinfo)
{
	struct fact_str type = read_str(r, "sys/hypervisor/type"), name;
	const char *flags;

	if (fact_known(type) && *type.value)
		return type;
	if (!fact_known(cpuinfo))
		return STR_LIKE(cpuinfo);
	flags = cpu_value(r, cpuinfo.value, "flags\t");
	if (*flags && !text_has_word(flags, "hypervisor"))
		return fact_str_absent("no hypervisor flag in proc/cpuinfo");
	name = hypervisor_by_dmi(r);
	return fact_known(name) || !*flags ? name : hypervisor_without_dmi(r);
}

/* ---- containers ---- */

/* Files that a container runtime leaves in the root folder. */
static const struct {
	const char *path, *name;
} container_files[] = {
	{"./.dockerenv", "docker"},
	{"run/.containerenv", "podman"},
	{"./.singularity.d", "apptainer"},
};

/* Words in the names of control groups. */
static const struct {
	const char *word, *name;
} container_groups[] = {
	{"kubepods", "kubernetes"},
	{"docker", "docker"},
	{"libpod", "podman"},
	{"containerd", "containerd"},
	{"/lxc", "lxc"},
	{"machine.slice/systemd-nspawn", "systemd-nspawn"},
};

static struct fact_str container_by_environment(struct reader *r)
{
	struct fact_str text = read_text(r, "environment.txt");
	const char *value;
	size_t n;

	if (!fact_known(text))
		return text;
	if (text_after(text.value, "KUBERNETES_SERVICE_HOST=", &value, &n))
		return fact_str("kubernetes", "KUBERNETES_SERVICE_HOST in the environment");
	if (text_after(text.value, "container=", &value, &n) && n)
		return fact_str(arena_strndup(r->m->arena, value, n),
				"container= in the environment");
	return fact_str_absent(text.from);
}

static struct fact_str container_by_file(struct reader *r)
{
	struct fact_str found = read_str(r, "run/systemd/container");

	for (size_t i = 0; !fact_known(found) && i < ARRAY_LEN(container_files); i++) {
		struct fact_int there = read_exists(r, "%s", container_files[i].path);

		if (fact_is(there, 1))
			return fact_str(container_files[i].name, there.from);
	}
	return found;
}

/*
 * A container has by default a process namespace of its own; the first one's number is fixed
 * (PROC_PID_INIT_INO in the kernel's proc_ns.h).
 */
static struct fact_str container_by_kernel(struct reader *r)
{
	struct fact_str groups = read_text(r, "proc/self/cgroup");
	struct fact_str space = read_link_name(r, "proc/self/ns/pid");

	for (size_t i = 0; fact_known(groups) && i < ARRAY_LEN(container_groups); i++)
		if (strstr(groups.value, container_groups[i].word))
			return fact_str(container_groups[i].name, groups.from);
	if (fact_known(space) && strcmp(space.value, "pid:[4026531836]") != 0)
		return fact_str("container", "a process namespace of its own, proc/self/ns/pid");
	if (fact_known(space))
		return fact_str_absent(space.from);
	return fact_known(groups) ? fact_str_absent(groups.from) : STR_LIKE(groups);
}

/*
 * The strongest sign first; the last one can also say "none". A file names the runtime, and the
 * kernel proves it: a disk image made from a container keeps the file, and `from` then names only
 * that.
 */
static struct fact_str read_container(struct reader *r)
{
	struct fact_str found = container_by_environment(r), file, kernel;

	if (fact_known(found))
		return found;
	file = container_by_file(r);
	kernel = container_by_kernel(r);
	if (fact_known(file) && fact_known(kernel))
		return fact_str(file.value, kernel.from);
	return fact_known(file) ? file : kernel;
}

/* ---- limits ---- */

/* A line "key value" of process.txt; "unlimited" is -1. */
static struct fact_int process_number(struct reader *r, struct fact_str text, const char *key)
{
	const char *value, *prefix = arena_printf(r->m->arena, "%s ", key);
	size_t n;
	int64_t v;

	if (!fact_known(text))
		return fact_unknown(text)
			       ? INT_LIKE(text)
			       : fact_int_unknown("facts of the process were not collected");
	if (!text_after(text.value, prefix, &value, &n))
		return fact_int_unknown(arena_printf(r->m->arena, "not in process.txt: %s", key));
	value = arena_strndup(r->m->arena, value, n);
	if (strcmp(value, "unlimited") == 0)
		return fact_int(-1, text.from);
	if (text_to_i64(value, &v) < 0) {
		read_trouble(r, text.from, "%s is '%s', which is not a number", key, value);
		return fact_int_unknown(
			arena_printf(r->m->arena, "no number in process.txt: %s", key));
	}
	return fact_int(v, text.from);
}

static void read_limits(struct reader *r, struct limits *l)
{
	struct fact_str text = read_text(r, "process.txt");

	l->memlock_bytes = process_number(r, text, "memlock");
	l->memlock_hard_bytes = process_number(r, text, "memlock_hard");
	l->shm_bytes = process_number(r, text, "shm_bytes");
	l->shm_free_bytes = process_number(r, text, "shm_free_bytes");
	l->shm_writable = process_number(r, text, "shm_writable");
}

void host_read_all(struct reader *r)
{
	struct fact_str cpuinfo = read_text(r, "proc/cpuinfo");
	struct machine *m = r->m;

	kernel_read(r);
	m->kernel.hypervisor = read_hypervisor(r, cpuinfo);
	m->kernel.container = read_container(r);
	cpu_read(r, cpuinfo);
	read_limits(r, &m->limits);
}
