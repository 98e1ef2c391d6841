/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about what UCX, Open MPI and NVSHMEM are set to, or need as settings, about this machine's
 * NICs.
 */
#include "diagnose/rules_nccl.h"

#include "base/array.h"
#include "base/text.h"
#include "topology/nearest.h"

#include <ctype.h>
#include <string.h>

#define FOR_EACH_OTHER_SETTING(s, run)                                                             \
	FOR_EACH_IN(struct setting, s, (run)->m->settings, (run)->m->setting_n)                    \
	if ((s)->in_force)

/* ---- what has to be set ---- */

static bool is_active(const struct rdma_device *d)
{
	return d->pci && fact_is(nic_active(d), 1);
}

/* Some NIC is active, and of all that are neither name nor driver begins so. */
static bool none_begins(struct rule_run *run, const char *start, bool driver)
{
	bool any = false;

	FOR_EACH_RDMA (d, run) {
		const char *text = driver ? fact_str_or(d->driver, NULL) : d->name;

		if (!is_active(d))
			continue;
		if (!text || text_starts_with(text, start))
			return false;
		any = true;
	}
	return any;
}

static const char *active_names(struct rule_run *run)
{
	const char *names = NULL;

	FOR_EACH_RDMA (d, run)
		if (is_active(d))
			names = run_list(run, names, d->name);
	return names;
}

/* What the names and the drivers of the active NICs are. */
static void evidence_nics(struct rule_run *run, struct finding *f)
{
	FOR_EACH_RDMA (d, run)
		if (is_active(d))
			evidence_str(run, f, run_text(run, "driver of %s", d->name), d->driver);
}

static enum verdict probe_ucx_devices(struct rule_run *run)
{
	static const char name[] = "OMPI_MCA_opal_common_ucx_devices";
	struct finding *f;

	if (machine_setting(run->m, name) || !none_begins(run, "mlx", true))
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_LIKELY, SUBJECT(LIBRARY, "Open MPI"),
		"no active NIC (%s) has a driver whose name begins with mlx; for others Open "
		"MPI prefers its own layers to UCX, and these copy GPU memory through the "
		"host",
		active_names(run));
	evidence_nics(run, f);
	finding_sets(run, f, name, "any");
	return VERDICT_OK;
}

/* The letters that all names of active NICs begin with; "": none. */
static const char *common_letters(struct rule_run *run)
{
	const char *common = NULL;

	FOR_EACH_RDMA (d, run) {
		size_t n = 0;

		if (!is_active(d))
			continue;
		while (isalpha((unsigned char)d->name[n]) && (!common || common[n] == d->name[n]))
			n++;
		common = run_text(run, "%.*s", (int)n, d->name);
	}
	return common ? common : "";
}

static enum verdict probe_hca_prefix(struct rule_run *run)
{
	static const char name[] = "NVSHMEM_HCA_PREFIX";
	const char *letters = common_letters(run);
	struct finding *f;

	if (machine_setting(run->m, name) || !none_begins(run, "mlx5", false))
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(LIBRARY, "NVSHMEM"),
			"no active NIC (%s) has a name that begins with mlx5, and NVSHMEM releases "
			"with that default find none",
			active_names(run));
	evidence_nics(run, f);
	if (*letters)
		finding_sets(run, f, name, letters);
	else
		finding_remedy(
			run, f,
			"give the devices names with a common prefix (udev), or use a release that "
			"accepts all names");
	return VERDICT_OK;
}

/* Every RoCE port that is active has an address, and none an IPv4 one. */
static bool all_ipv6(struct rule_run *run)
{
	bool any = false;

	FOR_EACH_RDMA (d, run)
		for (size_t i = 0; i < d->port_n; i++) {
			const struct rdma_gid *g = rdma_routed_gid(&d->ports[i]);

			if (!port_is_roce(&d->ports[i]))
				continue;
			if (!g || rdma_gid_scope(g) != GID_GLOBAL)
				return false;
			any = true;
		}
	return any;
}

static enum verdict probe_nvshmem_family(struct rule_run *run)
{
	static const char name[] = "NVSHMEM_IB_ADDR_FAMILY";
	struct finding *f;

	if (machine_setting(run->m, name) || machine_setting(run->m, "NVSHMEM_IB_GID_INDEX") ||
	    !all_ipv6(run))
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_LIKELY, SUBJECT(LIBRARY, "NVSHMEM"),
		"the RoCE ports have no IPv4 address, and by default NVSHMEM looks for one");
	FOR_EACH_RDMA (d, run)
		for (size_t i = 0; i < d->port_n; i++) {
			const struct rdma_gid *g = rdma_routed_gid(&d->ports[i]);

			if (port_is_roce(&d->ports[i]))
				evidence_str(run, f,
					     run_text(run, "GID %u of %s port %u", g->index,
						      d->name, d->ports[i].number),
					     g->gid);
		}
	finding_sets(run, f, name, "AF_INET6");
	return VERDICT_OK;
}

/* NICs for each GPU among the nearest, where they are below common switches; 0: none. */
static size_t rails_of(const struct rule_run *run, size_t gpu)
{
	const struct topology *t = run->t;
	enum path_class class = topology_nearest_class(t, gpu, true);
	size_t nics = 0, gpus = 0, first = NO_NIC;

	if (class > PATH_PXB)
		return 0;
	for (size_t nic = t->gpu_n; nic < t->endpoint_n; nic++)
		if (topology_is_nearest(t, gpu, nic, class, true)) {
			first = first == NO_NIC ? nic : first;
			nics++;
		}
	for (size_t g = 0; g < t->gpu_n; g++)
		gpus += topology_is_nearest(t, g, first, topology_nearest_class(t, g, true), true);
	return gpus ? nics / gpus : 0;
}

#define UCX_RAILS 2

static enum verdict probe_rails(struct rule_run *run)
{
	static const char name[] = "UCX_MAX_RNDV_RAILS";
	size_t rails = 0, gpu = 0, near;
	struct finding *f;

	for (size_t g = 0; g < run->t->gpu_n; g++)
		if (rails_of(run, g) > rails)
			rails = rails_of(run, gpu = g);
	if (rails <= UCX_RAILS || machine_setting(run->m, name))
		return VERDICT_OK;
	near = topology_count_nearest(run->t, gpu, topology_nearest_class(run->t, gpu, true), true);
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(LIBRARY, "UCX"),
			"GPU%zu has %zu equally near NICs%s, but UCX spreads a message over %d",
			gpu, near,
			near > rails
				? run_text(run, ", %zu for each of the GPUs that share them", rails)
				: "",
			UCX_RAILS);
	for (size_t nic = run->t->gpu_n; nic < run->t->endpoint_n; nic++)
		if (topology_is_nearest(run->t, gpu, nic, topology_nearest_class(run->t, gpu, true),
					true))
			finding_evidence(run, f, NULL,
					 run_text(run, "path of GPU%zu to %s", gpu,
						  run->m->rdma[run->t->endpoints[nic].index].name),
					 "%s",
					 path_class_word(topology_path(run->t, gpu, nic)->class));
	finding_sets(run, f, name, run_text(run, "%zu", rails));
	return VERDICT_OK;
}

/* ---- what is set ---- */

static enum verdict probe_library_default(struct rule_run *run)
{
	FOR_EACH_OTHER_SETTING(s, run)
	{
		struct finding *f;

		if (!setting_is_default(s, 0))
			continue;
		f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
				"%s=%s changes nothing: it is %s's default", s->name, s->value,
				library_name(library_of_variable(s->name)));
		show_setting(run, f, s);
		finding_remedy(run, f, "unset %s", s->name);
	}
	return VERDICT_OK;
}

static enum verdict probe_hca_list(struct rule_run *run)
{
	static const char *const names[] = {"NVSHMEM_HCA_LIST", "NVSHMEM_HCA_PE_MAPPING"};
	const struct setting *on = machine_setting(run->m, "NVSHMEM_ENABLE_NIC_PE_MAPPING");

	if (on && strcmp(on->value, "1") == 0)
		return VERDICT_OK;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct setting *s = machine_setting(run->m, names[i]);
		struct finding *f;

		if (!s || !*s->value)
			continue;
		f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
				"%s has no effect without NVSHMEM_ENABLE_NIC_PE_MAPPING=1",
				s->name);
		show_setting(run, f, s);
	}
	return VERDICT_OK;
}

static bool has_device(const struct rule_run *run, const char *name, size_t n)
{
	FOR_EACH_RDMA (d, run)
		if (strncmp(d->name, name, n) == 0 && !d->name[n])
			return true;
	return false;
}

/* "mlx5_0:1" is an RDMA device's port; a name without one may be a network device's. */
static enum verdict probe_net_devices(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "UCX_NET_DEVICES");

	if (!s || *s->value == '^')
		return VERDICT_OK;
	for (const char *p = s->value; *p && !run->found;) {
		size_t n = strcspn(p, ","), name = strcspn(p, ":,");
		struct finding *f;

		if (name < n && !has_device(run, p, name)) {
			f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
					"UCX_NET_DEVICES=%s: RDMA device %.*s does not exist",
					s->value, (int)name, p);
			show_setting(run, f, s);
		}
		p += n + (p[n] == ',');
	}
	return VERDICT_OK;
}

static enum verdict probe_tls(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "UCX_TLS");
	struct finding *f;

	if (!s || !*s->value || *s->value == '^' || strstr(s->value, "cuda") ||
	    text_list_has(s->value, ",", "all", 3))
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_LIKELY, subject_setting(run, s),
			"UCX_TLS=%s excludes the transports for GPU memory (cuda): UCX fails or "
			"crashes on GPU memory",
			s->value);
	show_setting(run, f, s);
	finding_remedy(run, f, "unset UCX_TLS, or set UCX_TLS=%s,cuda", s->value);
	return VERDICT_OK;
}

static enum verdict probe_openib(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "OMPI_MCA_btl");
	struct finding *f;

	if (!s || *s->value == '^' || !text_list_has(s->value, ",", "openib", 6))
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_LIKELY, subject_setting(run, s),
			"OMPI_MCA_btl=%s selects openib, which Open MPI 5.0 removed", s->value);
	show_setting(run, f, s);
	return VERDICT_OK;
}

/*
 * What is wrong with a name of n bytes in a list of network devices; NULL: nothing that is known.
 */
static const char *ifname_fault(const struct rule_run *run, const char *name, size_t n)
{
	return !n                             ? "an empty name is not a device"
	       : *name == '^' || *name == '=' ? "the marks ^ and = are NCCL's; Gloo takes whole "
						"names, and no device has this one"
	       : has_device(run, name, n) ? "this is an RDMA device, and Gloo needs the name of "
					    "a network device"
					  : NULL;
}

static enum verdict probe_gloo_ifname(struct rule_run *run)
{
	FOR_EACH_OTHER_SETTING(s, run)
	{
		const char *fault = NULL;
		struct finding *f;

		if (library_of_variable(s->name) != LIBRARY_GLOO || !*s->value)
			continue;
		for (const char *p = s->value; p && !fault;) {
			size_t n = strcspn(p, ",");

			fault = ifname_fault(run, p, n);
			p = p[n] ? p + n + 1 : NULL;
		}
		if (!fault)
			continue;
		f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s), "%s=%s: %s",
				s->name, s->value, fault);
		show_setting(run, f, s);
	}
	return VERDICT_OK;
}

/* ---- the table ---- */

#define UCX_CONF    "UCX, ucx_info -cf"
#define NVSHMEM_ENV "NVSHMEM documentation, environment variables"

const struct rule rules_libraries[] = {
	{
		.id = "openmpi-ucx-devices",
		.title = "Open MPI selects UCX for this machine's NICs by itself",
		.why = "It checks the names of their drivers and recognizes only mlx*.",
		.remedy = "set OMPI_MCA_opal_common_ucx_devices=any for Open MPI programs",
		.reference = "open-mpi/ompi opal/mca/common/ucx/common_ucx.c",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_RDMA,
		.probe = probe_ucx_devices,
	},
	{
		.id = "nvshmem-hca-prefix",
		.title = "NVSHMEM finds this machine's NICs by name",
		.why = "It uses only devices whose names begin with NVSHMEM_HCA_PREFIX.",
		.remedy = "set NVSHMEM_HCA_PREFIX to the prefix of the names",
		.reference = NVSHMEM_ENV,
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU | NEEDS_RDMA,
		.probe = probe_hca_prefix,
	},
	{
		.id = "nvshmem-ipv6",
		.title = "The RoCE ports have addresses of the family that NVSHMEM looks for",
		.why = "NVSHMEM looks for an IPv4 address and otherwise uses a GID that is not "
		       "routed.",
		.remedy = "set NVSHMEM_IB_ADDR_FAMILY=AF_INET6",
		.reference = NVSHMEM_ENV,
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU | NEEDS_RDMA,
		.probe = probe_nvshmem_family,
	},
	{
		.id = "ucx-rails",
		.title = "UCX uses all NICs that are nearest to a GPU",
		.why = "By default it spreads a large message over two NICs.",
		.remedy = "set UCX_MAX_RNDV_RAILS to the number of nearest NICs",
		.reference = UCX_CONF " (UCX_MAX_RNDV_RAILS)",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU | NEEDS_RDMA,
		.probe = probe_rails,
	},
	{
		.id = "library-default",
		.title = "No variable of UCX, Open MPI or NVSHMEM repeats a default",
		.why = "It has no effect today and hides a better default of a later release.",
		.remedy = "unset it",
		.reference = UCX_CONF "; " NVSHMEM_ENV,
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_library_default,
	},
	{
		.id = "nvshmem-hca-list",
		.title = "NVSHMEM reads the list of NICs that is set for it",
		.why = "It reads the list only if NVSHMEM_ENABLE_NIC_PE_MAPPING is set.",
		.remedy = "set NVSHMEM_ENABLE_NIC_PE_MAPPING=1, or unset the list",
		.reference = NVSHMEM_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_hca_list,
	},
	{
		.id = "ucx-net-devices",
		.title = "UCX_NET_DEVICES names existing devices",
		.why = "UCX warns about others and goes on without them, in the end over TCP.",
		.remedy =
			"name devices from `ls /sys/class/infiniband`, or unset UCX_NET_DEVICES: UCX "
			"selects the nearest NICs of each GPU by itself",
		.reference = UCX_CONF " (UCX_NET_DEVICES)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_RDMA,
		.probe = probe_net_devices,
	},
	{
		.id = "ucx-tls",
		.title = "UCX_TLS includes the transports for GPU memory",
		.why = "Without them it treats GPU memory as host memory.",
		.remedy = "unset UCX_TLS, or add cuda to it",
		.reference = "openucx/ucx docs/source/faq.md (CUDA)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_GPU | NEEDS_SETTINGS,
		.probe = probe_tls,
	},
	{
		.id = "openmpi-openib",
		.title = "Open MPI does not select openib",
		.why = "UCX has replaced it.",
		.remedy = "unset OMPI_MCA_btl",
		.reference = "Open MPI 5.0 release notes",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_openib,
	},
	{
		.id = "gloo-ifname",
		.title = "GLOO_SOCKET_IFNAME and TP_SOCKET_IFNAME name network devices",
		.why = "PyTorch's Gloo and TensorPipe use TCP through the devices with exactly these "
		       "names, and fail where one does not exist.",
		.remedy =
			"name a device of `ip -br address` that reaches the other machines, without "
			"marks",
		.reference = "pytorch/pytorch torch/csrc/distributed/c10d (ProcessGroupGloo)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_gloo_ifname,
	},
	{0},
};
