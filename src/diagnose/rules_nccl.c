/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about NCCL's own policy and settings; NCCL is told apart from what the hardware can. */
#include "base/text.h"
#include "diagnose/nccl_variables.h"
#include "diagnose/rules.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define V(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))

/* ---- settings ---- */

/* clang-format off */
/* NOLINTNEXTLINE(bugprone-macro-parentheses): s is declared */
#define FOR_EACH_SETTING(s, run) \
	FOR_EACH_IN (struct nccl_setting, s, (run)->m->nccl.settings, (run)->m->nccl.setting_n) \
		if (s->in_force)
/* clang-format on */

/* What strtoll makes of a value, as NCCL_PARAM uses it. */
enum number {
	NUMBER_EMPTY, /* as if not set */
	NUMBER_FINE,
	NUMBER_WORD,  /* no digits: 0 */
	NUMBER_TAIL,  /* digits, and something that is dropped */
	NUMBER_OCTAL, /* a leading 0 */
	NUMBER_RANGE, /* too large: the default */
};

static enum number read_number(const char *value, int64_t *ret)
{
	char *end;

	*ret = 0;
	if (!*value)
		return NUMBER_EMPTY;
	errno = 0;
	*ret = strtoll(value, &end, 0);
	if (errno == ERANGE)
		return NUMBER_RANGE;
	if (end == value)
		return NUMBER_WORD;
	if (*end && !isspace((unsigned char)*end))
		return NUMBER_TAIL;
	return value[0] == '0' && isdigit((unsigned char)value[1]) ? NUMBER_OCTAL : NUMBER_FINE;
}

/* The number in force, or `otherwise`. */
static int64_t setting_number(const struct machine *m, const char *name, int64_t otherwise)
{
	const struct nccl_setting *s = machine_nccl_setting(m, name);
	int64_t value;

	return s && read_number(s->value, &value) != NUMBER_EMPTY ? value : otherwise;
}

static const char *subject_setting(struct rule_run *run, const struct nccl_setting *s)
{
	return run_text(run, "%s (%s)", s->name, s->from);
}

static void show_setting(struct rule_run *run, struct finding *f, const struct nccl_setting *s)
{
	finding_evidence(run, f, "%s=%s (%s)", s->name, s->value, s->from);
}

static bool kind_is(const struct nccl_setting *s, enum nccl_kind kind)
{
	const struct nccl_variable *v = nccl_variable_find(s->name);

	return v && v->kind == kind;
}

/* 0: not known. */
static int nccl_version(struct rule_run *run)
{
	return fact_known(run->m->nccl.version) ? nccl_version_number(run->m->nccl.version.value)
						: 0;
}

/* "NCCL 2.28.9" */
static const char *nccl_text(struct rule_run *run, int version)
{
	char buf[32];

	return run_text(run, "NCCL %s", nccl_version_format(version, buf, sizeof(buf)));
}

static void evidence_version(struct rule_run *run, struct finding *f)
{
	struct fact_int version = run->m->nccl.version;
	char buf[32];

	if (fact_known(version))
		finding_evidence(run, f, "NCCL version: %s (%s)",
				 nccl_version_format(nccl_version(run), buf, sizeof(buf)),
				 FACT_WHY(version));
	else
		evidence_int(run, f, "NCCL version", version);
}

/* ---- what NCCL would do with the pairs ---- */

static const struct path *pair_path(struct rule_run *run, size_t i, size_t j)
{
	return topology_path(run->t, i, j);
}

static bool driver_allows(const struct path *p)
{
	return p->chain[CHAIN_DRIVER].state == CHAIN_OK;
}

struct refused {
	struct pair_set pairs;
	enum nccl_path farthest;
	enum nccl_path limit;
	bool driver_unknown;
};

/* Pairs that the driver allows and NCCL's level does not, for one reason. */
static struct refused refused_by_level(struct rule_run *run, enum chain_reason reason)
{
	struct refused r = {.pairs = pair_set_new(run)};

	FOR_EACH_GPU_PAIR (i, j, run) {
		const struct path *p = pair_path(run, i, j);
		const struct chain_link *l = &p->chain[CHAIN_NCCL];

		if (l->reason != reason)
			continue;
		r.driver_unknown |= p->chain[CHAIN_DRIVER].state == CHAIN_UNKNOWN;
		if (!driver_allows(p))
			continue;
		pair_set_add(&r.pairs, i, j);
		r.limit = (enum nccl_path)l->value2;
		if ((enum nccl_path)l->value > r.farthest)
			r.farthest = (enum nccl_path)l->value;
	}
	return r;
}

static void finish_level(struct rule_run *run, struct finding *f, const struct refused *r)
{
	const struct nccl_setting *set = machine_nccl_setting(run->m, "NCCL_P2P_LEVEL");

	f->pairs = r->pairs.n;
	if (set)
		show_setting(run, f, set);
	else
		finding_evidence(run, f, "NCCL_P2P_LEVEL: not set");
	evidence_version(run, f);
	if (r->farthest == NCCL_PATH_SYS)
		finding_evidence(
			run, f,
			"some of these pairs cross sockets or NUMA nodes: measure with and "
			"without, copies through the host can be as fast when all GPUs talk");
	finding_remedy(run, f, "set NCCL_P2P_LEVEL=%s%s", nccl_path_word(r->farthest),
		       r->farthest == NCCL_PATH_SYS ? ", and measure with and without it" : "");
}

#define LOG_LINES_SHOWN 4

static void evidence_log(struct rule_run *run, struct finding *f, const struct pair_set *pairs)
{
	size_t shown = 0;

	FOR_EACH_GPU_PAIR (i, j, run) {
		const struct chain_link *l = &pair_path(run, i, j)->chain[CHAIN_NCCL];

		if (!pair_set_in(pairs, i, j) || shown++ >= LOG_LINES_SHOWN)
			continue;
		finding_evidence(run, f, "GPU%zu->GPU%zu: %s (seen in %s)", i, j, l->text, l->from);
	}
}

/* A log does not say for sure what made NCCL choose; `onehop log` weighs what it holds. */
static void report_staged(struct rule_run *run, const struct refused *r)
{
	struct finding *f = finding_add(run, CONFIDENCE_CERTAIN, "NCCL",
					"NCCL was seen not to use P2P for %s, up to %s apart, "
					"although the driver allows it",
					pair_set_text(run, &r->pairs), nccl_path_word(r->farthest));

	finish_level(run, f, r);
	evidence_log(run, f, &r->pairs);
	finding_remedy(run, f,
		       "give the log to onehop log, which says why; if it is the distance, set "
		       "NCCL_P2P_LEVEL=%s, and measure with and without it",
		       nccl_path_word(r->farthest));
}

static enum verdict probe_level(struct rule_run *run)
{
	struct refused seen = refused_by_level(run, REASON_NCCL_STAGED);
	struct refused sure = refused_by_level(run, REASON_NCCL_LEVEL);
	struct refused maybe = refused_by_level(run, REASON_NCCL_DEPENDS);
	int version = nccl_version(run);
	struct finding *f;

	if (seen.pairs.n)
		report_staged(run, &seen);
	if (sure.pairs.n) {
		f = finding_add(
			run, CONFIDENCE_CERTAIN, "NCCL",
			"%s uses P2P up to %s only; %s up to %s apart, so it copies through "
			"host memory although the driver allows P2P",
			version ? nccl_text(run, version) : "NCCL", nccl_path_word(sure.limit),
			run_text(run, "%s %s", pair_set_text(run, &sure.pairs),
				 sure.pairs.n == 1 ? "is" : "are"),
			nccl_path_word(sure.farthest));
		finish_level(run, f, &sure);
	}
	if (maybe.pairs.n) {
		f = finding_add(
			run, CONFIDENCE_POSSIBLE, "NCCL",
			"NCCL from 2.23 on uses P2P up to PXB only on most machines; %s are up "
			"to %s apart and would go through host memory (NCCL's version is not "
			"known here)",
			pair_set_text(run, &maybe.pairs), nccl_path_word(maybe.farthest));
		f->severity = SEVERITY_INFO;
		finish_level(run, f, &maybe);
	}
	if (!run->found && (sure.driver_unknown || maybe.driver_unknown))
		return rule_unknown(run, "whether the driver allows P2P: %s",
				    FACT_WHY(run->m->driver.nvml));
	return VERDICT_OK;
}

/* The level that all pairs need which the driver allows and NCCL refuses; NCCL_PATH_N: none. */
static enum nccl_path level_needed(struct rule_run *run)
{
	static const enum chain_reason reasons[] = {REASON_NCCL_STAGED, REASON_NCCL_LEVEL,
						    REASON_NCCL_DEPENDS};
	enum nccl_path level = NCCL_PATH_N;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		struct refused r = refused_by_level(run, reasons[i]);

		if (r.pairs.n && (level == NCCL_PATH_N || r.farthest > level))
			level = r.farthest;
	}
	return level;
}

#define COST_SYS                                                                                   \
	"between sockets copies through the host can be as fast when all GPUs talk: measure with " \
	"and without it (onehop bench nccl)"

/* A person's own setting is theirs to change; NCCL's system-wide file would be the weaker anyway. */
static void propose_level(struct rule_run *run, struct change_set *out)
{
	const struct nccl_setting *set = machine_nccl_setting(run->m, "NCCL_P2P_LEVEL");
	enum nccl_path level = level_needed(run);

	if (!propose_wanted(run) || level == NCCL_PATH_N)
		return;
	if (set)
		propose_by_hand(run, out, subject_setting(run, set),
				"set NCCL_P2P_LEVEL=%s there instead of %s", nccl_path_word(level),
				set->value);
	else
		propose(run, out,
			(struct change){
				.kind = CHANGE_NCCL_SETTING,
				.lifetime = CHANGE_LASTING,
				.name = "NCCL_P2P_LEVEL",
				.new = nccl_path_word(level),
				.reason = run_text(run,
						   "NCCL then uses P2P between GPUs that are up to "
						   "%s apart, as the driver allows",
						   nccl_path_word(level)),
				.cost = level == NCCL_PATH_SYS ? COST_SYS : NULL,
			});
}

static size_t pairs_with(struct rule_run *run, enum chain_step step, enum chain_state state)
{
	size_t n = 0;

	FOR_EACH_GPU_PAIR (i, j, run)
		n += pair_path(run, i, j)->chain[step].state == state;
	return n;
}

static enum verdict probe_disabled(struct rule_run *run)
{
	const struct nccl_setting *s = machine_nccl_setting(run->m, "NCCL_P2P_DISABLE");
	size_t denied = pairs_with(run, CHAIN_DRIVER, CHAIN_BAD);
	size_t all = run->m->gpu_n * (run->m->gpu_n - 1);
	struct finding *f;

	if (setting_number(run->m, "NCCL_P2P_DISABLE", 0) != 1)
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			denied == all
				? "P2P is switched off for NCCL; the driver denies it anyway"
				: "P2P is switched off for NCCL: GPUs talk through host memory");
	f->pairs = all - denied;
	if (denied == all)
		f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* ---- numbers ---- */

static bool means_no(const char *word)
{
	static const char *const words[] = {"false", "no", "off", "none", "disable", "disabled"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(word, words[i]))
			return true;
	return false;
}

/* Bytes of "4M", "1MB", "2GiB"; 0 where it is no size. */
static int64_t size_of(const char *value)
{
	static const char units[] = "KMG";
	char *end;
	int64_t n = strtoll(value, &end, 10);
	const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;

	if (!unit || n <= 0 || n > INT64_MAX >> 30)
		return 0;
	if (end[1] && strcasecmp(end + 1, "b") != 0 && strcasecmp(end + 1, "ib") != 0)
		return 0;
	return n << 10 * (unit - units + 1);
}

static void report_word(struct rule_run *run, const struct nccl_setting *s)
{
	const char *effect = text_ends_with(s->name, "_DISABLE") ? "nothing is disabled"
			     : text_ends_with(s->name, "_ENABLE")
				     ? "it is switched off, the opposite of what it says"
				     : "the word has no meaning of its own";
	struct finding *f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
					"%s=%s: NCCL reads a number here and takes a word as 0: %s",
					s->name, s->value, effect);

	show_setting(run, f, s);
	if (text_ends_with(s->name, "_DISABLE") || text_ends_with(s->name, "_ENABLE"))
		finding_remedy(run, f, "set %s=1", s->name);
	else
		finding_remedy(run, f, "unset %s, or give a number", s->name);
}

static void report_digits(struct rule_run *run, const struct nccl_setting *s, enum number state,
			  int64_t value)
{
	int64_t meant = state == NUMBER_OCTAL ? strtoll(s->value, NULL, 10) : size_of(s->value);
	struct finding *f;

	if (state == NUMBER_RANGE)
		f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
				"%s=%s is out of range: NCCL keeps its default", s->name, s->value);
	else
		f = finding_add(
			run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			state == NUMBER_OCTAL
				? "%s=%s: a number with a leading 0 is octal, NCCL reads %" PRId64
				: "%s=%s: NCCL stops at the first character that is no digit and "
				  "reads %" PRId64,
			s->name, s->value, value);
	show_setting(run, f, s);
	if (meant > 0)
		finding_remedy(run, f, "set %s=%" PRId64, s->name, meant);
}

static enum verdict probe_number(struct rule_run *run)
{
	FOR_EACH_SETTING(s, run)
	{
		int64_t value;
		enum number state;

		if (!kind_is(s, NCCL_INTEGER))
			continue;
		state = read_number(s->value, &value);
		if (state == NUMBER_WORD && !means_no(s->value))
			report_word(run, s);
		else if (state == NUMBER_TAIL || state == NUMBER_OCTAL || state == NUMBER_RANGE)
			report_digits(run, s, state, value);
	}
	return VERDICT_OK;
}

/* clang-format off */
static const struct {
	const char *name;
	int64_t min, max;
	const char *what;
} ranges[] = {
	{"NCCL_P2P_DISABLE",             0,   1, "only 1 disables"},
	{"NCCL_SHM_DISABLE",             0,   1, "only 1 disables"},
	{"NCCL_IB_TIMEOUT",              0,  31, "the NIC's field has 5 bits"},
	{"NCCL_IB_RETRY_CNT",            0,   7, "the NIC's field has 3 bits"},
	{"NCCL_IB_QPS_PER_CONNECTION",   1, 128, "NCCL has room for 128"},
	{"NCCL_IB_TC",                  -1, 255, "the traffic class has 8 bits"},
	{"NCCL_IB_SL",                  -1,  15, "the service level has 4 bits"},
	{"NCCL_IB_ROCE_VERSION_NUM",     1,   2, "there are RoCE v1 and v2"},
	{"NCCL_IB_PCI_RELAXED_ORDERING", 0,   2, "0 off, 1 on, 2 where the NIC can"},
	{"NCCL_CROSS_NIC",               0,   2, "0 never, 1 always, 2 where it helps"},
	{"NCCL_SHM_LOCALITY",            1,   2, "1 sender's side, 2 receiver's"},
};
/* clang-format on */

static enum verdict probe_range(struct rule_run *run)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct nccl_setting *s = machine_nccl_setting(run->m, ranges[i].name);
		struct finding *f;
		int64_t value;

		if (!s || read_number(s->value, &value) != NUMBER_FINE)
			continue;
		if (value >= ranges[i].min && value <= ranges[i].max)
			continue;
		f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
				"%s=%s has no meaning: %s", s->name, s->value, ranges[i].what);
		show_setting(run, f, s);
		finding_remedy(run, f, "give %" PRId64 " to %" PRId64 ", or unset it",
			       ranges[i].min, ranges[i].max);
	}
	return VERDICT_OK;
}

/* ---- levels ---- */

/* The level that somebody meant; NULL: no idea. */
static const char *level_meant(const char *value)
{
	if (!strcasecmp(value, "NODE"))
		return "PHB"; /* nvidia-smi's word; NCCL counts it as PHB */
	for (int i = 0; i < NCCL_PATH_N; i++)
		if (!strcasecmp(value, nccl_path_word((enum nccl_path)i)))
			return nccl_path_word((enum nccl_path)i);
	for (int i = 0; i < NCCL_PATH_N; i++)
		if (nccl_name_distance(value, nccl_path_word((enum nccl_path)i)) == 1)
			return nccl_path_word((enum nccl_path)i);
	return NULL;
}

static enum verdict probe_level_name(struct rule_run *run)
{
	FOR_EACH_SETTING(s, run)
	{
		const char *meant;
		struct finding *f;

		if (!kind_is(s, NCCL_LEVEL) || !*s->value || nccl_level_parse(s->value) >= 0)
			continue;
		meant = level_meant(s->value);
		f = finding_add(
			run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			"%s=%s is no level that NCCL knows: it is ignored without a word in the "
			"log, and the default stays",
			s->name, s->value);
		show_setting(run, f, s);
		if (meant)
			finding_remedy(run, f, "set %s=%s", s->name, meant);
	}
	return VERDICT_OK;
}

/* The scale that one guide prints, the wrong way round: 0 LOC, 1 SYS, 2 PHB, 3 PXB, 4 and 5 PIX. */
static const enum nccl_path reversed[] = {NCCL_PATH_LOC, NCCL_PATH_SYS, NCCL_PATH_PHB,
					  NCCL_PATH_PXB, NCCL_PATH_PIX, NCCL_PATH_PIX};

/* The level leaves out a pair of GPUs, or for GPUDirect RDMA every NIC of a GPU. */
static bool level_too_narrow(struct rule_run *run, const char *name, enum nccl_path level)
{
	bool nics = strcmp(name, "NCCL_P2P_LEVEL") != 0;
	size_t first = nics ? run->t->gpu_n : 0, last = nics ? run->t->endpoint_n : run->t->gpu_n;

	for (size_t g = 0; g < run->t->gpu_n; g++) {
		enum nccl_path nearest = NCCL_PATH_N;

		for (size_t e = first; e < last; e++) {
			enum nccl_path p =
				e == g ? NCCL_PATH_N : nccl_path_of(pair_path(run, g, e));

			if (!nics && p != NCCL_PATH_N && p > level)
				return true;
			if (p < nearest)
				nearest = p;
		}
		if (nics && nearest != NCCL_PATH_N && nearest > level)
			return true;
	}
	return false;
}

static enum verdict probe_level_number(struct rule_run *run)
{
	FOR_EACH_SETTING(s, run)
	{
		enum nccl_path level, guide;
		struct finding *f;
		int64_t value;

		if (!kind_is(s, NCCL_LEVEL) || !isdigit((unsigned char)*s->value))
			continue;
		read_number(s->value, &value);
		level = (enum nccl_path)nccl_level_parse(s->value);
		guide = value >= 0 && value <= 5 ? reversed[value] : level;
		if (guide == level)
			continue;
		f = finding_add(
			run, CONFIDENCE_POSSIBLE, subject_setting(run, s),
			"%s=%s means %s to NCCL; a guide that prints the scale the other way "
			"round calls it %s",
			s->name, s->value, nccl_path_word(level), nccl_path_word(guide));
		if (guide < level || !level_too_narrow(run, s->name, level))
			f->severity = SEVERITY_INFO;
		show_setting(run, f, s);
		finding_remedy(run, f, "write the name: %s=%s, or %s if that was meant", s->name,
			       nccl_path_word(level), nccl_path_word(guide));
	}
	return VERDICT_OK;
}

/* ---- names and versions ---- */

static const struct nccl_variable *meant_variable(struct rule_run *run, const char *name)
{
	char *upper = (char *)run_text(run, "%s", name);
	const struct nccl_variable *v;

	for (char *p = upper; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	v = nccl_variable_find(upper);
	return v ? v : nccl_variable_near(name);
}

static enum verdict probe_unknown(struct rule_run *run)
{
	FOR_EACH_SETTING(s, run)
	{
		const struct nccl_variable *meant;
		struct finding *f;

		if (nccl_variable_find(s->name) || nccl_variable_is_foreign(s->name) ||
		    text_starts_with(s->name, "RCCL_"))
			continue;
		meant = meant_variable(run, s->name);
		if (!meant &&
		    (!text_starts_with(s->name, "NCCL_") || nccl_variable_has_family(s->name)))
			continue;
		f = finding_add(run, CONFIDENCE_POSSIBLE, subject_setting(run, s),
				meant ? "NCCL reads no variable %s; perhaps %s was meant"
				      : "NCCL reads no variable %s as far as onehop knows",
				s->name, meant ? meant->name : "");
		show_setting(run, f, s);
		if (meant)
			finding_remedy(
				run, f,
				"take %s out, which does nothing; if %s=%s is meant, set that",
				s->name, meant->name, s->value);
		else
			f->severity = SEVERITY_INFO;
	}
	return VERDICT_OK;
}

static void report_gone(struct rule_run *run, const struct nccl_setting *s,
			const struct nccl_variable *v, int version)
{
	struct finding *f =
		finding_add(run, version ? CONFIDENCE_CERTAIN : CONFIDENCE_POSSIBLE,
			    subject_setting(run, s), "%s does nothing from %s on%s", s->name,
			    nccl_text(run, v->until),
			    version ? run_text(run, ", and this is %s", nccl_text(run, version))
				    : " (the version in use is not known)");

	if (!version)
		f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	finding_remedy(run, f, "unset %s%s%s", s->name, v->note ? ": " : "",
		       v->note ? v->note : "");
}

static void report_too_new(struct rule_run *run, const struct nccl_setting *s,
			   const struct nccl_variable *v, int version)
{
	struct finding *f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
					"%s is read from %s on; this is %s and ignores it", s->name,
					nccl_text(run, v->since), nccl_text(run, version));

	show_setting(run, f, s);
	finding_remedy(run, f, "use %s or newer, or unset %s", nccl_text(run, v->since), s->name);
}

static enum verdict probe_version(struct rule_run *run)
{
	int version = nccl_version(run);

	FOR_EACH_SETTING(s, run)
	{
		const struct nccl_variable *v = nccl_variable_find(s->name);

		if (v && v->until && (!version || version >= v->until))
			report_gone(run, s, v, version);
		else if (v && version && v->since > version)
			report_too_new(run, s, v, version);
	}
	return VERDICT_OK;
}

static enum verdict probe_deprecated(struct rule_run *run)
{
	int version = nccl_version(run);

	FOR_EACH_SETTING(s, run)
	{
		const struct nccl_variable *v = nccl_variable_find(s->name);
		struct finding *f;

		if (!v || !v->deprecated || (version && version < v->deprecated))
			continue;
		f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
				"%s is deprecated since %s", s->name,
				nccl_text(run, v->deprecated));
		show_setting(run, f, s);
		if (v->note)
			finding_remedy(run, f, "unset %s: %s", s->name, v->note);
	}
	return VERDICT_OK;
}

/* ---- RoCE addresses ---- */

static bool is_roce(const struct rdma_port *p)
{
	return fact_str_is(p->state, "ACTIVE") && fact_str_is(p->link_layer, "Ethernet");
}

static const struct rdma_gid *find_gid(const struct rdma_port *p, int64_t index)
{
	for (size_t i = 0; i < p->gid_n; i++)
		if (p->gids[i].index == index)
			return &p->gids[i];
	return NULL;
}

/* What is wrong with this index at this port; NULL: nothing, or nobody knows. */
static const char *gid_fault(const struct rdma_port *p, int64_t index)
{
	const struct rdma_gid *gid = find_gid(p, index);

	if (!is_roce(p) || !fact_is(p->gids_listed, 1))
		return NULL;
	if (!gid)
		return "is empty";
	return fact_is_not(gid->type, GID_ROCE_V2) ? "is not a v2 GID" : NULL;
}

static void report_gid(struct rule_run *run, const struct nccl_setting *s, int64_t index)
{
	FOR_EACH_RDMA (d, run)
		for (size_t i = 0; i < d->port_n; i++) {
			const char *fault = gid_fault(&d->ports[i], index);
			struct finding *f;

			if (!fault)
				continue;
			f = finding_add(run, CONFIDENCE_LIKELY,
					s ? subject_setting(run, s) : "NCCL_IB_GID_INDEX",
					"NCCL uses GID index %" PRId64 "%s, which %s at %s port %u",
					index, s ? "" : " unless told (automatic from 2.21 on)",
					fault, d->name, d->ports[i].number);
			f->pci = d->pci;
			if (s)
				show_setting(run, f, s);
			evidence_version(run, f);
		}
}

static bool any_roce(struct rule_run *run)
{
	FOR_EACH_RDMA (d, run)
		for (size_t i = 0; i < d->port_n; i++)
			if (is_roce(&d->ports[i]))
				return true;
	return false;
}

static enum verdict probe_gid_index(struct rule_run *run)
{
	const struct nccl_setting *s = machine_nccl_setting(run->m, "NCCL_IB_GID_INDEX");
	int64_t index = setting_number(run->m, "NCCL_IB_GID_INDEX", -1);
	int version = nccl_version(run);
	struct finding *f;

	if (!any_roce(run))
		return VERDICT_NA;
	if (!s && version && version < NCCL_RELEASE(2, 21, 5))
		index = 0;
	if (index < 0)
		return VERDICT_OK;
	report_gid(run, s, index);
	if (run->found || !s || (version && version < NCCL_RELEASE(2, 21, 5)))
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_POSSIBLE, subject_setting(run, s),
		"NCCL_IB_GID_INDEX=%s is fixed by hand; NCCL from 2.21 on picks the v2 GID of "
		"each port by itself, and an index moves when addresses change",
		s->value);
	f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* ---- switches that turn things off ---- */

static bool active_port_of(struct rule_run *run, const char *link_layer)
{
	FOR_EACH_RDMA (d, run)
		for (size_t i = 0; i < d->port_n; i++)
			if (fact_str_is(d->ports[i].state, "ACTIVE") &&
			    fact_str_is(d->ports[i].link_layer, link_layer))
				return true;
	return false;
}

static enum verdict probe_ib_disabled(struct rule_run *run)
{
	const struct nccl_setting *s = machine_nccl_setting(run->m, "NCCL_IB_DISABLE");
	struct finding *f;

	if (setting_number(run->m, "NCCL_IB_DISABLE", 0) == 0)
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_CERTAIN, subject_setting(run, s),
		"NCCL leaves the machine's RDMA devices alone and talks to other machines over "
		"TCP sockets");
	if (!active_port_of(run, "InfiniBand"))
		f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	return VERDICT_OK;
}

static enum verdict probe_shm_disabled(struct rule_run *run)
{
	const struct nccl_setting *s = machine_nccl_setting(run->m, "NCCL_SHM_DISABLE");
	size_t without = 0;
	struct finding *f;

	if (setting_number(run->m, "NCCL_SHM_DISABLE", 0) != 1)
		return VERDICT_OK;
	FOR_EACH_GPU_PAIR (i, j, run) {
		const struct path *p = pair_path(run, i, j);

		without += p->chain[CHAIN_DRIVER].state == CHAIN_BAD ||
			   p->chain[CHAIN_NCCL].state == CHAIN_BAD;
	}
	f = finding_add(
		run, CONFIDENCE_CERTAIN, subject_setting(run, s),
		without ? "shared memory is switched off for NCCL: %zu pairs without P2P go over "
			  "the network, inside one machine"
			: "shared memory is switched off for NCCL (%zu pairs would need it)",
		without);
	f->pairs = without;
	if (!without)
		f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	return VERDICT_OK;
}

static enum verdict probe_ignore_disabled(struct rule_run *run)
{
	const struct nccl_setting *s = machine_nccl_setting(run->m, "NCCL_IGNORE_DISABLED_P2P");
	size_t denied = pairs_with(run, CHAIN_DRIVER, CHAIN_BAD);
	struct finding *f;

	if (setting_number(run->m, "NCCL_IGNORE_DISABLED_P2P", 0) == 0)
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_CERTAIN, subject_setting(run, s),
		denied ? "NCCL is told to be silent where P2P is refused, and the driver refuses "
			 "it for %zu pairs"
		       : "NCCL is told to be silent where P2P is refused (%zu pairs now)",
		denied);
	f->pairs = denied;
	if (!denied)
		f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	return VERDICT_OK;
}

static enum verdict probe_topo_file(struct rule_run *run)
{
	const struct nccl_setting *s = machine_nccl_setting(run->m, "NCCL_TOPO_FILE");
	struct finding *f;

	if (!s || !*s->value)
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_CERTAIN, subject_setting(run, s),
		"NCCL takes the machine's wiring from %s, not from the machine: distances that "
		"onehop shows may not be the ones it works with",
		s->value);
	show_setting(run, f, s);
	if (fact_known(run->m->kernel.hypervisor))
		finding_evidence(run, f,
				 "guest of %s: providers ship such a file for their own "
				 "machine types",
				 run->m->kernel.hypervisor.value);
	return VERDICT_OK;
}

/* ---- lists of devices ---- */

/* The list behind its marks; [^][=]. */
static const char *list_body(const char *value, bool *ret_exclude, bool *ret_exact)
{
	*ret_exclude = *value == '^';
	value += *ret_exclude;
	*ret_exact = *value == '=';
	return value + *ret_exact;
}

static enum verdict probe_list_marks(struct rule_run *run)
{
	FOR_EACH_SETTING(s, run)
	{
		bool exclude, exact;
		const char *body;
		struct finding *f;

		if (!kind_is(s, NCCL_LIST))
			continue;
		body = list_body(s->value, &exclude, &exact);
		if (!strpbrk(body, "^="))
			continue;
		f = finding_add(
			run, CONFIDENCE_LIKELY, subject_setting(run, s),
			"%s=%s: the marks ^ and = count once, before the whole list; later they "
			"are part of a name that no device has",
			s->name, s->value);
		show_setting(run, f, s);
		finding_remedy(run, f, "write the marks once: %s=%s%sNAME,NAME", s->name,
			       exclude ? "^" : "", exact || strchr(body, '=') ? "=" : "");
	}
	return VERDICT_OK;
}

static bool entry_matches(const char *entry, size_t n, bool exact, const char *device)
{
	const char *colon = memchr(entry, ':', n);
	size_t len = colon ? (size_t)(colon - entry) : n;

	return !strncmp(entry, device, len) && (!exact || !device[len]);
}

static bool list_matches_any(struct rule_run *run, const char *body, bool exact)
{
	for (const char *p = body; *p;) {
		size_t n = strcspn(p, ",");

		FOR_EACH_RDMA (d, run)
			if (n && entry_matches(p, n, exact, d->name))
				return true;
		p += n + (p[n] == ',');
	}
	return false;
}

static enum verdict probe_ib_hca(struct rule_run *run)
{
	const struct nccl_setting *s = machine_nccl_setting(run->m, "NCCL_IB_HCA");
	const char *body, *names = NULL;
	bool exclude, exact;
	struct finding *f;

	if (!s || !*s->value)
		return VERDICT_OK;
	body = list_body(s->value, &exclude, &exact);
	if (exclude || !*body || list_matches_any(run, body, exact))
		return VERDICT_OK;
	FOR_EACH_RDMA (d, run)
		names = run_list(run, names, d->name);
	f = finding_add(
		run, CONFIDENCE_LIKELY, subject_setting(run, s),
		"NCCL_IB_HCA=%s names no RDMA device of this machine (%s): NCCL falls back to "
		"TCP sockets",
		s->value, names);
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* ---- known traps ---- */

static enum verdict probe_old_peermem(struct rule_run *run)
{
	const struct peermem *p = &run->m->peermem;
	int version = nccl_version(run);
	struct finding *f;

	if (!version)
		return rule_unknown(run, "NCCL's version: %s", FACT_WHY(run->m->nccl.version));
	if (version >= NCCL_RELEASE(2, 23, 4) || !fact_is(p->loaded, 1) ||
	    !fact_is(p->registered, 0))
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_LIKELY, "NCCL",
			"%s looks for nv_mem below /sys/kernel/mm/memory_peers only, does not find "
			"nvidia-peermem there and uses no GPUDirect RDMA",
			nccl_text(run, version));
	evidence_yes_no(run, f, "nvidia_peermem loaded", p->loaded);
	evidence_yes_no(run, f, "listed in memory_peers", p->registered);
	evidence_version(run, f);
	return VERDICT_OK;
}

static enum verdict probe_proto(struct rule_run *run)
{
	const struct nccl_setting *s = machine_nccl_setting(run->m, "NCCL_PROTO");
	struct finding *f;

	if (!s || strchr(s->value, '^') || !strcasestr(s->value, "LL128") || all_pairs_nvlink(run))
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_POSSIBLE, subject_setting(run, s),
		"NCCL_PROTO=%s forces LL128, which relies on 128 byte stores arriving whole: true "
		"on NVLink, not promised on PCIe, where NCCL leaves it out by itself",
		s->value);
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* ---- the table ---- */

#define NCCL_ENV     "NCCL user guide, environment variables"
#define NCCL_PARAM_C "NVIDIA/nccl src/misc/param.cc"
#define NCCL_PATHS_C "NVIDIA/nccl src/graph/paths.cc"

const struct rule rules_nccl[] = {
	{
		.id = "nccl-level",
		.title = "NCCL uses P2P for every pair for which the driver allows it",
		.why = "NCCL has a distance of its own beyond which it copies through host memory, "
		       "whatever the driver allows. From 2.23 on it ends at PCIe switches (PXB); "
		       "only "
		       "AMD machines with two GPUs go further. Its PHB includes nvidia-smi's NODE.",
		.remedy = "set NCCL_P2P_LEVEL to the distance of the pairs (SYS for all), and "
			  "measure with and without it",
		.reference = NCCL_PATHS_C "; NVIDIA/nccl#1829, #2080",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_level,
		.propose = propose_level,
	},
	{
		.id = "nccl-p2p-disabled",
		.title = "P2P is not switched off for NCCL",
		.why = "NCCL_P2P_DISABLE=1 outweighs NCCL_P2P_LEVEL. It is a common stopgap that "
		       "stays "
		       "in scripts after its cause is gone.",
		.remedy = "unset NCCL_P2P_DISABLE; if that hangs, look at rules acs-redirect and "
			  "iommu-translating",
		.reference = NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_disabled,
	},
	{
		.id = "nccl-number",
		.title = "NCCL variables that take a number hold one",
		.why = "NCCL reads them with strtoll: 'true', 'on' and 'yes' are 0, '4M' is 4, "
		       "'010' is "
		       "8, and no warning is printed.",
		.remedy = "write a decimal number; 1 for yes",
		.reference = NCCL_PARAM_C,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = 0,
		.probe = probe_number,
	},
	{
		.id = "nccl-range",
		.title = "NCCL variables hold numbers that mean something",
		.why = "A number outside is cut, refused by the NIC, or does nothing.",
		.remedy = "give a number of the range, or unset the variable",
		.reference = NCCL_ENV "; InfiniBand Architecture Specification 1.4, 12.7",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = 0,
		.probe = probe_range,
	},
	{
		.id = "nccl-level-name",
		.title = "NCCL knows the levels that are set",
		.why = "Levels are compared letter by letter: LOC, NVL, PIX, PXB, PHB, SYS. Lower "
		       "case, "
		       "NODE and typing errors are dropped, and the log does not say so.",
		.remedy = "write one of LOC, NVL, PIX, PXB, PHB, SYS",
		.reference = NCCL_PATHS_C " (ncclGetLevel)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = 0,
		.probe = probe_level_name,
	},
	{
		.id = "nccl-level-number",
		.title = "NCCL levels are written by name",
		.why = "Numbers are an old form: 0 LOC, 1 PIX, 2 PXB, 3 PHB, 4 and 5 SYS. A guide "
		       "prints "
		       "them in the reverse order, so that 1, meant as SYS, allows the least.",
		.remedy = "write the name of the level",
		.reference = NCCL_PATHS_C " (levelsOldToNew)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = 0,
		.probe = probe_level_number,
	},
	{
		.id = "nccl-unknown-variable",
		.title = "NCCL reads every variable that is set for it",
		.why = "A misspelt variable is not an error for anybody: it does nothing.",
		.remedy = "check the name",
		.reference = NCCL_ENV "; NERSC/podman-hpc#136",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = 0,
		.probe = probe_unknown,
	},
	{
		.id = "nccl-variable-version",
		.title = "The NCCL in use reads every variable that is set",
		.why = "Variables come and go with versions; one that is gone or not there yet is "
		       "ignored.",
		.remedy = "unset it, or use a version that reads it",
		.reference = "NVIDIA/nccl, tags 2.3.5 to 2.30.7",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = 0,
		.probe = probe_version,
	},
	{
		.id = "nccl-deprecated",
		.title = "No deprecated NCCL variable is set",
		.why = "It works still, and will be dropped.",
		.remedy = "use what replaces it",
		.reference = NCCL_ENV,
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = 0,
		.probe = probe_deprecated,
	},
	{
		.id = "nccl-gid-index",
		.title = "NCCL uses a v2 GID of every RoCE port",
		.why = "With a wrong index packets are not routed, and connections end with "
		       "completion "
		       "status 12 (retries exceeded).",
		.remedy = "with NCCL 2.21 or newer unset NCCL_IB_GID_INDEX; before, set it to the "
			  "index "
			  "of the v2 GID of the IPv4 address (show_gids)",
		.reference = "NVIDIA/nccl#426; " NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_RDMA,
		.probe = probe_gid_index,
	},
	{
		.id = "nccl-ib-disabled",
		.title = "NCCL may use the RDMA devices",
		.why = "Sockets are several times slower, and there is no GPUDirect RDMA over "
		       "them.",
		.remedy = "unset NCCL_IB_DISABLE",
		.reference = NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_RDMA,
		.probe = probe_ib_disabled,
	},
	{
		.id = "nccl-shm-disabled",
		.title = "NCCL may use shared memory",
		.why = "Pairs without P2P have only the network left then.",
		.remedy = "unset NCCL_SHM_DISABLE; if /dev/shm is too small, make it larger",
		.reference = NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_shm_disabled,
	},
	{
		.id = "nccl-ignore-disabled",
		.title = "NCCL says where P2P is refused",
		.why = "NCCL_IGNORE_DISABLED_P2P hides that NVLink or P2P does not work, and the "
		       "speed is "
		       "lost in silence.",
		.remedy = "unset NCCL_IGNORE_DISABLED_P2P",
		.reference = NCCL_PATHS_C,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_ignore_disabled,
	},
	{
		.id = "nccl-topo-file",
		.title = "NCCL finds the machine's wiring by itself",
		.why = "A file made for another machine type, or for several nodes, sends traffic "
		       "over "
		       "the wrong devices.",
		.remedy = "unset NCCL_TOPO_FILE unless the file was made for exactly this machine "
			  "type",
		.reference = "Azure/azurehpc-health-checks#142; " NCCL_ENV,
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_GPU,
		.probe = probe_topo_file,
	},
	{
		.id = "nccl-list-marks",
		.title = "NCCL's lists of devices have their marks in front",
		.why = "[^][=]name,name: one ^ excludes and one = wants whole names, for the whole "
		       "list.",
		.remedy = "write the marks once, before the first name",
		.reference = "NVIDIA/nccl-tests#150; " NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = 0,
		.probe = probe_list_marks,
	},
	{
		.id = "nccl-ib-hca",
		.title = "NCCL_IB_HCA names RDMA devices that exist",
		.why = "Without a match NCCL has no RDMA device and uses sockets.",
		.remedy = "name devices of `ls /sys/class/infiniband`, or unset NCCL_IB_HCA",
		.reference = NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_RDMA,
		.probe = probe_ib_hca,
	},
	{
		.id = "nccl-old-peermem",
		.title = "NCCL is new enough to find nvidia-peermem",
		.why = "Up to 2.22.3 NCCL knows only the sysfs entry of the old nv_peer_mem; one "
		       "run "
		       "fell from 180 to 10 GB/s.",
		.remedy = "use NCCL 2.23.4 or newer",
		.reference = "NVIDIA/nccl#1676",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_GPU | NEEDS_RDMA,
		.probe = probe_old_peermem,
	},
	{
		.id = "nccl-proto",
		.title = "LL128 is not forced on PCIe",
		.why = "NVIDIA's guide warns of corrupted data where LL128 is forced on platforms "
		       "that do "
		       "not support it.",
		.remedy = "unset NCCL_PROTO",
		.reference = NCCL_ENV " (NCCL_PROTO)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_proto,
	},
};
