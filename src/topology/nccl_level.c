/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's distance scale and the levels up to which it uses peer access. */
#include "topology/topology_impl.h"

#include <stdlib.h>
#include <string.h>

static const char *const words[NCCL_PATH_N] = {
	"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS",
};

const char *nccl_path_word(enum nccl_path p)
{
	return (unsigned)p < NCCL_PATH_N ? words[p] : "?";
}

enum nccl_path nccl_path_of(const struct path *p)
{
	static const enum nccl_path of[PATH_CLASS_N] = {
		[PATH_SELF] = NCCL_PATH_LOC, [PATH_NVLINK] = NCCL_PATH_NVL,
		[PATH_PIX] = NCCL_PATH_PIX,  [PATH_PXB] = NCCL_PATH_PXB,
		[PATH_PHB] = NCCL_PATH_PHB,  [PATH_NODE] = NCCL_PATH_PHB,
		[PATH_SYS] = NCCL_PATH_SYS,  [PATH_UNKNOWN] = NCCL_PATH_N,
	};

	return fact_unknown(p->nvlinks) ? NCCL_PATH_N : of[p->class];
}

/* ncclGetLevel: an exact name, else a number of the old scale when the text starts with a digit. */
int nccl_level_parse(const char *value)
{
	static const enum nccl_path old[] = {NCCL_PATH_LOC, NCCL_PATH_PIX, NCCL_PATH_PXB,
					     NCCL_PATH_PHB, NCCL_PATH_SYS, NCCL_PATH_SYS};
	const long last = sizeof(old) / sizeof(*old) - 1;
	long n;

	for (int i = 0; i < NCCL_PATH_N; i++)
		if (strcmp(value, words[i]) == 0)
			return i;
	if (*value < '0' || *value > '9')
		return -1;
	n = strtol(value, NULL, 0);
	return (int)old[n > last ? last : n];
}

/* The setting's level, or -1 when it is not set or NCCL would ignore it. */
static int level_setting(const struct machine *m, const char *name)
{
	const struct setting *s = machine_setting(m, name);

	return s ? nccl_level_parse(s->value) : -1;
}

/* Read with strtol, base 0: "true" is 0 and disables nothing. */
bool nccl_p2p_disabled(const struct machine *m)
{
	const struct setting *s = machine_setting(m, "NCCL_P2P_DISABLE");

	return s && strtol(s->value, NULL, 0) == 1;
}

/* Up to 2.22: everywhere but on Intel, Zhaoxin and ARM. */
static enum nccl_path default_before_2_23(int64_t vendor)
{
	return vendor == CPU_INTEL || vendor == CPU_ZHAOXIN || vendor == CPU_ARM ? NCCL_PATH_PXB
										 : NCCL_PATH_SYS;
}

/* From 2.23: switches only, but for at most two GPUs of an AMD machine. */
static enum nccl_path default_since_2_23(int64_t vendor, size_t gpu_n)
{
	return vendor == CPU_AMD && gpu_n <= 2 ? NCCL_PATH_SYS : NCCL_PATH_PXB;
}

enum nccl_path nccl_p2p_default(const struct machine *m, bool *ret_sure)
{
	int64_t vendor = fact_or(m->cpu.vendor, CPU_OTHER);
	bool vendor_known = fact_known(m->cpu.vendor), today;
	enum nccl_path before = default_before_2_23(vendor);
	enum nccl_path since = default_since_2_23(vendor, m->gpu_n);

	today = !fact_known(m->nccl.version) || m->nccl.version.value >= 22300;
	*ret_sure = (vendor_known || (fact_known(m->nccl.version) && today && m->gpu_n > 2)) &&
		    (fact_known(m->nccl.version) || before == since);
	return today ? since : before;
}

enum nccl_path nccl_p2p_level(const struct machine *m, bool *ret_sure)
{
	int level = level_setting(m, "NCCL_P2P_LEVEL");

	*ret_sure = true;
	if (nccl_p2p_disabled(m))
		return NCCL_PATH_LOC;
	return level >= 0 ? (enum nccl_path)level : nccl_p2p_default(m, ret_sure);
}

enum nccl_path nccl_gdr_level(const struct machine *m)
{
	int level = level_setting(m, "NCCL_NET_GDR_LEVEL");

	return level >= 0 ? (enum nccl_path)level : NCCL_PATH_PXB;
}
