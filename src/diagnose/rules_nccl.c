/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about NCCL's own policy and settings; NCCL is separate from what the hardware can. */
#include "diagnose/rules_nccl.h"

#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- settings ---- */

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

int64_t setting_number(const struct machine *m, const char *name, int64_t otherwise)
{
	const struct setting *s = machine_setting(m, name);
	int64_t value;

	return s && read_number(s->value, &value) != NUMBER_EMPTY ? value : otherwise;
}

struct subject subject_setting(struct rule_run *run, const struct setting *s)
{
	return (struct subject){.kind = SUBJECT_SETTING,
				.name = s->name,
				.detail = run_text(run, "(%s)", s->from)};
}

void show_setting(struct rule_run *run, struct finding *f, const struct setting *s)
{
	f->setting = s;
	evidence_text(run, f, s->from, run_text(run, "%s=%s", s->name, s->value));
}

bool setting_is(const struct setting *s, enum variable_kind kind)
{
	const struct variable *v = variable_find(s->name);

	return v && v->kind == kind;
}

int nccl_version(struct rule_run *run)
{
	return fact_known(run->m->nccl.version) ? nccl_version_number(run->m->nccl.version.value)
						: 0;
}

const char *nccl_text(struct rule_run *run, int version)
{
	char buf[32];

	return run_text(run, "NCCL %s", nccl_version_format(version, buf, sizeof(buf)));
}

void evidence_nccl(struct rule_run *run, struct finding *f)
{
	struct fact_int version = run->m->nccl.version;
	char buf[32];

	if (fact_known(version))
		finding_evidence(run, f, FACT_WHY(version), "NCCL version", "%s",
				 nccl_version_format(nccl_version(run), buf, sizeof(buf)));
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
	enum nccl_path nearest, farthest;
	enum nccl_path limit;
	bool driver_unknown;
	size_t initiator, target; /* the first pair with driver_unknown */
	/* why one of the paths may not work at all; NULL: nothing */
	const struct chain_link *doubt;
};

/* Apart from distance, which is what the level is about. */
static const struct chain_link *path_doubt(const struct path *p)
{
	for (enum chain_step s = CHAIN_PATH; s < CHAIN_NCCL; s++)
		if (p->chain[s].state == CHAIN_POSSIBLE &&
		    p->chain[s].reason != REASON_CROSS_SOCKET)
			return &p->chain[s];
	return NULL;
}

/* Pairs that the driver allows and NCCL's level does not, for one reason. */
static struct refused refused_by_level(struct rule_run *run, enum chain_reason reason)
{
	struct refused r = {.pairs = pair_set_new(run), .nearest = NCCL_PATH_N};

	FOR_EACH_GPU_PAIR (i, j, run) {
		const struct path *p = pair_path(run, i, j);
		const struct chain_link *l = &p->chain[CHAIN_NCCL];

		/* No level of distance excludes NVLink: observed-nvlink-unused reports it. */
		if (l->reason != reason || (reason == REASON_NCCL_STAGED && path_is_nvlink(p)))
			continue;
		if (p->chain[CHAIN_DRIVER].state == CHAIN_UNKNOWN && !r.driver_unknown) {
			r.driver_unknown = true;
			r.initiator = i;
			r.target = j;
		}
		if (!driver_allows(p))
			continue;
		pair_set_add(&r.pairs, i, j);
		if (!r.doubt)
			r.doubt = path_doubt(p);
		r.limit = (enum nccl_path)l->value2;
		if ((enum nccl_path)l->value > r.farthest)
			r.farthest = (enum nccl_path)l->value;
		if ((enum nccl_path)l->value < r.nearest)
			r.nearest = (enum nccl_path)l->value;
	}
	return r;
}

/* Whether a setting keeps NCCL from a level that it has by itself. */
static bool default_suffices(const struct rule_run *run, enum nccl_path needed)
{
	bool sure = false;

	return machine_setting(run->m, "NCCL_P2P_LEVEL") &&
	       nccl_p2p_default(run->m, &sure) >= needed && sure;
}

static void finish_level(struct rule_run *run, struct finding *f, const struct refused *r)
{
	const struct setting *set = machine_setting(run->m, "NCCL_P2P_LEVEL");

	finding_names_pairs(run, f, &r->pairs);
	if (set)
		show_setting(run, f, set);
	else
		finding_evidence(run, f, NULL, "NCCL_P2P_LEVEL", "not set");
	evidence_nccl(run, f);
	if (r->farthest == NCCL_PATH_SYS)
		finding_evidence(
			run, f, NULL, "some of these pairs cross sockets or NUMA nodes",
			"measure with and without it: copies through the host can be as fast when "
			"all GPUs communicate");
	if (default_suffices(run, r->farthest))
		finding_remedy(run, f,
			       "unset NCCL_P2P_LEVEL: NCCL then uses P2P up to %s by itself",
			       nccl_path_word(r->farthest));
	else
		finding_remedy(run, f, "set NCCL_P2P_LEVEL=%s%s", nccl_path_word(r->farthest),
			       r->farthest == NCCL_PATH_SYS ? ", and measure with and without it"
							    : "");
	if (r->doubt) {
		char why[512];

		f->severity = SEVERITY_INFO;
		finding_remedy(
			run, f,
			"change nothing until onehop test has shown that the data arrives correctly: "
			"%s; then %s",
			chain_explain(NULL, r->doubt, why, sizeof(why)), f->remedy);
	}
}

/* Not before the data was seen to arrive right. */
static void ask_for_level(struct rule_run *run, struct finding *f, const struct refused *r)
{
	if (!r->doubt && !default_suffices(run, r->farthest))
		finding_sets(run, f, "NCCL_P2P_LEVEL", nccl_path_word(r->farthest));
}

#define LOG_LINES_SHOWN 4

static void evidence_log(struct rule_run *run, struct finding *f, const struct pair_set *pairs)
{
	size_t shown = 0;

	FOR_EACH_GPU_PAIR (i, j, run) {
		const struct chain_link *l = &pair_path(run, i, j)->chain[CHAIN_NCCL];

		if (!pair_set_in(pairs, i, j) || shown++ >= LOG_LINES_SHOWN)
			continue;
		finding_evidence(run, f, l->from, run_text(run, "GPU%zu->GPU%zu", i, j), "%s",
				 l->text);
	}
}

/* A log does not say for sure what made NCCL choose; `onehop log` weighs what it holds. */
static void report_staged(struct rule_run *run, const struct refused *r)
{
	struct finding *f = finding_add(
		run, CONFIDENCE_CERTAIN, SUBJECT(NCCL, "NCCL"),
		ABOUT " did not use P2P for %s, up to %s apart, although the driver allows it",
		pair_set_text(run, &r->pairs), nccl_path_word(r->farthest));

	finish_level(run, f, r);
	evidence_log(run, f, &r->pairs);
	if (r->farthest <= r->limit)
		finding_remedy(
			run, f,
			"pass the log to onehop log, which shows the reason; NCCL_P2P_LEVEL does not "
			"help: NCCL uses P2P up to %s without it",
			nccl_path_word(r->limit));
	else
		finding_remedy(
			run, f,
			"pass the log to onehop log, which shows the reason; if it is the distance, "
			"set NCCL_P2P_LEVEL=%s, and measure with and without it",
			nccl_path_word(r->farthest));
}

static size_t pairs_with(struct rule_run *run, enum chain_step step, enum chain_state state)
{
	size_t n = 0;

	FOR_EACH_GPU_PAIR (i, j, run)
		n += pair_path(run, i, j)->chain[step].state == state;
	return n;
}

/* A setting that leaves NCCL no pair of GPUs, whatever the driver allows. */
static struct finding *report_off(struct rule_run *run, const struct setting *s)
{
	size_t denied = pairs_with(run, CHAIN_DRIVER, CHAIN_BAD);
	size_t all = run->m->gpu_n * (run->m->gpu_n - 1);
	struct finding *f = finding_add(
		run, CONFIDENCE_CERTAIN, subject_setting(run, s),
		denied == all ? "P2P is disabled for NCCL; the driver denies it anyway"
			      : "P2P is disabled for NCCL: GPUs communicate through host memory");

	f->pairs = all - denied;
	if (denied == all)
		f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	return f;
}

/* LOC, or 0 of the old scale: only what a GPU does with itself. NULL: some other level is set. */
static const struct setting *level_loc(const struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_P2P_LEVEL");

	return s && nccl_level_parse(s->value) == NCCL_PATH_LOC ? s : NULL;
}

/*
 * What a log shows of pairs beyond the level is the level at work: one finding with the other
 * pairs.
 */
static bool merge_seen(struct rule_run *run, const struct refused *seen, struct refused *sure)
{
	if (!seen->pairs.n || !sure->pairs.n || seen->nearest <= sure->limit)
		return false;
	FOR_EACH_GPU_PAIR (i, j, run) {
		if (pair_set_in(&seen->pairs, i, j))
			pair_set_add(&sure->pairs, i, j);
	}
	sure->farthest = seen->farthest > sure->farthest ? seen->farthest : sure->farthest;
	sure->doubt = sure->doubt ? sure->doubt : seen->doubt;
	return true;
}

/*
 * A log that shows P2P beyond the level is of a run that had another, from a setting not seen here.
 */
static void weigh_seen_beyond(struct rule_run *run, struct finding *f, enum nccl_path limit)
{
	FOR_EACH_GPU_PAIR (i, j, run) {
		const struct chain_link *l = &pair_path(run, i, j)->chain[CHAIN_NCCL];

		if (l->reason != REASON_NCCL_SEEN || l->value <= (int64_t)limit)
			continue;
		f->severity = SEVERITY_INFO;
		f->sentence = run_text(
			run,
			"%s; yet a run used P2P for GPU%zu->GPU%zu (%s): that run had another setting",
			f->sentence, i, j, l->from);
		return;
	}
}

/* `logged`: those of the pairs that a log shows, NULL: none. */
static void report_sure(struct rule_run *run, const struct refused *r,
			const struct pair_set *logged)
{
	int version = nccl_version(run);
	char number[32];
	struct finding *f = finding_add(
		run, CONFIDENCE_CERTAIN, SUBJECT(NCCL, "NCCL"),
		ABOUT "%s%s uses P2P only up to %s, but %s %s up to %s apart, so it copies through "
		      "host memory although the driver allows P2P",
		version ? " " : "",
		version ? nccl_version_format(version, number, sizeof(number)) : "",
		nccl_path_word(r->limit), pair_set_text(run, &r->pairs),
		r->pairs.n == 1 ? "is" : "are", nccl_path_word(r->farthest));

	finish_level(run, f, r);
	ask_for_level(run, f, r);
	weigh_seen_beyond(run, f, r->limit);
	if (logged)
		evidence_log(run, f, logged);
}

/* What NCCL's default depends on, and is unknown. */
static const char *level_depends_on(struct rule_run *run)
{
	bool version = fact_known(run->m->nccl.version), maker = fact_known(run->m->cpu.vendor);

	return maker     ? "NCCL's version"
	       : version ? "the CPU vendor"
			 : "NCCL's version and the CPU vendor";
}

static void report_maybe(struct rule_run *run, const struct refused *r)
{
	bool version = fact_known(run->m->nccl.version);
	struct finding *f = finding_add(
		run, CONFIDENCE_POSSIBLE, SUBJECT(NCCL, "NCCL"),
		ABOUT " may go through host memory for %s, up to %s apart: whether it uses P2P "
		      "beyond PXB depends on %s, unknown here%s",
		pair_set_text(run, &r->pairs), nccl_path_word(r->farthest), level_depends_on(run),
		version ? "" : " (from 2.23 on it does not on most machines)");

	f->severity = SEVERITY_INFO;
	finish_level(run, f, r);
	ask_for_level(run, f, r);
	if (!fact_known(run->m->cpu.vendor))
		evidence_str(run, f, "CPU", run->m->cpu.name);
}

/* Why it is unknown whether the driver allows P2P for a pair: the unknown status. */
static const char *driver_unknown_why(const struct rule_run *run, const struct refused *r)
{
	static const enum p2p_cap caps[] = {P2P_READ, P2P_WRITE};
	const struct gpu_pair *p = machine_pair(run->m, r->initiator, r->target);

	for (size_t i = 0; p && i < sizeof(caps) / sizeof(caps[0]); i++)
		if (!fact_known(p->p2p[caps[i]]))
			return FACT_WHY(p->p2p[caps[i]]);
	return "NVML answers 'unknown'";
}

/* What would have to be known of the first pair of which it is not: the path, or the driver's word,
 * and where NCCL's default decides, what that depends on. */
static enum verdict level_unknown(struct rule_run *run, const struct refused *sure,
				  const struct refused *maybe)
{
	const struct refused *r = sure->driver_unknown ? sure : maybe;

	if (r->driver_unknown)
		return rule_unknown(run, driver_unknown_why(run, r),
				    "whether the driver allows P2P for GPU%zu->GPU%zu%s%s",
				    r->initiator, r->target, r == maybe ? ", and " : "",
				    r == maybe ? level_depends_on(run) : "");
	FOR_EACH_GPU_PAIR (i, j, run) {
		const struct path *p = pair_path(run, i, j);

		if (p->chain[CHAIN_NCCL].state != CHAIN_UNKNOWN ||
		    p->chain[CHAIN_DRIVER].state == CHAIN_BAD)
			continue;
		if (fact_unknown(p->nvlinks))
			return rule_unknown(run, FACT_WHY(p->nvlinks),
					    "whether NVLink joins GPU%zu and GPU%zu", i, j);
		return rule_unknown(run, "no PCIe path between them is known",
				    "how far GPU%zu and GPU%zu are apart", i, j);
	}
	return VERDICT_OK;
}

static enum verdict probe_level(struct rule_run *run)
{
	struct refused seen = refused_by_level(run, REASON_NCCL_STAGED);
	struct refused sure = refused_by_level(run, REASON_NCCL_LEVEL);
	struct refused maybe = refused_by_level(run, REASON_NCCL_DEPENDS);
	const struct setting *loc = level_loc(run);
	bool merged;

	if (loc && !nccl_p2p_disabled(run->m)) {
		finding_remedy(run, report_off(run, loc),
			       "unset NCCL_P2P_LEVEL: LOC allows no pair of GPUs");
		return VERDICT_OK;
	}
	merged = merge_seen(run, &seen, &sure);
	/* NCCL_P2P_DISABLE explains them, and has a rule of its own. */
	if (seen.pairs.n && !merged && !nccl_p2p_disabled(run->m))
		report_staged(run, &seen);
	if (sure.pairs.n)
		report_sure(run, &sure, merged ? &seen.pairs : NULL);
	if (maybe.pairs.n)
		report_maybe(run, &maybe);
	return run->found ? VERDICT_OK : level_unknown(run, &sure, &maybe);
}

/* NCCL copies through the host between these two, and the distance can be why. */
static bool is_too_far(const struct path *p)
{
	const struct chain_link *l = &p->chain[CHAIN_NCCL];

	if (!driver_allows(p))
		return false;
	return l->reason == REASON_NCCL_LEVEL || l->reason == REASON_NCCL_DEPENDS ||
	       (l->reason == REASON_NCCL_STAGED && l->value > l->value2);
}

/*
 * The level with which NCCL leaves out no pair for its distance, nor one that it was seen to use;
 * NCCL_PATH_N: distance keeps none.
 */
static enum nccl_path level_needed(struct rule_run *run)
{
	enum nccl_path needed = NCCL_PATH_LOC;
	bool any = false;

	FOR_EACH_GPU_PAIR (i, j, run) {
		const struct path *p = pair_path(run, i, j);
		const struct chain_link *l = &p->chain[CHAIN_NCCL];
		bool far = is_too_far(p);

		any |= far;
		if ((far || l->reason == REASON_NCCL_SEEN) && (enum nccl_path)l->value > needed &&
		    l->value < NCCL_PATH_N)
			needed = (enum nccl_path)l->value;
	}
	return any && !nccl_p2p_disabled(run->m) ? needed : NCCL_PATH_N;
}

#define COST_SYS                                                                                   \
	"between sockets copies through the host can be as fast when all GPUs "                    \
	"communicate: measure with and without it (onehop bench nccl)"

/*
 * A person's own setting is theirs to change; NCCL's system-wide file would be the weaker anyway.
 */
static void propose_level(struct rule_run *run, struct change_set *out)
{
	const struct setting *set = machine_setting(run->m, "NCCL_P2P_LEVEL");
	enum nccl_path level = level_needed(run);

	if (!propose_wanted(run))
		return;
	if (level_loc(run))
		propose_by_hand(
			run, out, subject_text(run, subject_setting(run, set)),
			"unset NCCL_P2P_LEVEL there, or set it to the distance of the pairs; %s "
			"allows none",
			set->value);
	else if (level == NCCL_PATH_N)
		return;
	else if (default_suffices(run, level))
		propose_by_hand(run, out, subject_text(run, subject_setting(run, set)),
				"unset NCCL_P2P_LEVEL there: NCCL then uses P2P up to %s by itself",
				nccl_path_word(level));
	else if (set)
		propose_by_hand(run, out, subject_text(run, subject_setting(run, set)),
				"set NCCL_P2P_LEVEL=%s there instead of %s", nccl_path_word(level),
				set->value);
	else
		propose(run, out,
			(struct change){
				.kind = CHANGE_NCCL_SETTING,
				.lifetime = CHANGE_LASTING,
				.name = "NCCL_P2P_LEVEL",
				.new = nccl_path_word(level),
				.reason = TEXTS(run_text(
					run,
					"NCCL then uses P2P between GPUs up to %s apart, as the driver allows",
					nccl_path_word(level))),
				.cost = TEXTS(level == NCCL_PATH_SYS ? COST_SYS : NULL),
			});
}

static enum verdict probe_disabled(struct rule_run *run)
{
	if (nccl_p2p_disabled(run->m))
		report_off(run, machine_setting(run->m, "NCCL_P2P_DISABLE"));
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

/* Bytes of "4M", "1MB", "2GiB"; 0 if it is not a size. */
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

static void report_word(struct rule_run *run, const struct setting *s)
{
	const char *effect = text_ends_with(s->name, "_DISABLE") ? "nothing is disabled"
			     : text_ends_with(s->name, "_ENABLE")
				     ? "the feature is off, the opposite of what the setting says"
				     : "the word has no special meaning";
	struct finding *f =
		finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			    "%s=%s: NCCL expects a number here and reads a word as 0: %s", s->name,
			    s->value, effect);

	show_setting(run, f, s);
	if (text_ends_with(s->name, "_DISABLE") || text_ends_with(s->name, "_ENABLE"))
		finding_remedy(run, f, "set %s=1", s->name);
	else
		finding_remedy(run, f, "unset %s, or give a number", s->name);
}

static void report_digits(struct rule_run *run, const struct setting *s, enum number state,
			  int64_t value)
{
	int64_t meant = state == NUMBER_OCTAL ? strtoll(s->value, NULL, 10) : size_of(s->value);
	struct finding *f;

	if (state == NUMBER_RANGE)
		f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
				"%s=%s is out of range: NCCL uses its default", s->name, s->value);
	else
		f = finding_add(
			run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			state == NUMBER_OCTAL
				? "%s=%s: a number with a leading 0 is octal, so NCCL reads %" PRId64
				: "%s=%s: NCCL stops at the first character that is not a digit and reads %" PRId64,
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

		if (!setting_is(s, VARIABLE_INTEGER))
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
	{"NCCL_IB_QPS_PER_CONNECTION",   1, 128, "NCCL supports at most 128"},
	{"NCCL_IB_TC",                  -1, 255, "the traffic class has 8 bits"},
	{"NCCL_IB_SL",                  -1,  15, "the service level has 4 bits"},
	{"NCCL_IB_ROCE_VERSION_NUM",     1,   2, "there are RoCE v1 and v2"},
	{"NCCL_IB_PCI_RELAXED_ORDERING", 0,   2, "0 off, 1 on, 2 where the NIC supports it"},
	{"NCCL_CROSS_NIC",               0,   2, "0 never, 1 always, 2 where it helps"},
	{"NCCL_SHM_LOCALITY",            1,   2, "1 sender's side, 2 receiver's"},
};
/* clang-format on */

static enum verdict probe_range(struct rule_run *run)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct setting *s = machine_setting(run->m, ranges[i].name);
		struct finding *f;
		int64_t value;

		if (!s || read_number(s->value, &value) != NUMBER_FINE)
			continue;
		if (value >= ranges[i].min && value <= ranges[i].max)
			continue;
		f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
				"%s=%s is out of range: %s", s->name, s->value, ranges[i].what);
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

		if (!setting_is(s, VARIABLE_LEVEL) || !*s->value || nccl_level_parse(s->value) >= 0)
			continue;
		meant = level_meant(s->value);
		f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
				"NCCL has no level %s=%s: it uses the default and logs no message",
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

		if (!setting_is(s, VARIABLE_LEVEL) || !isdigit((unsigned char)*s->value))
			continue;
		read_number(s->value, &value);
		level = (enum nccl_path)nccl_level_parse(s->value);
		guide = value >= 0 && value <= 5 ? reversed[value] : level;
		if (guide == level)
			continue;
		f = finding_add(
			run, CONFIDENCE_POSSIBLE, subject_setting(run, s),
			"%s=%s means %s to NCCL; a guide that lists the scale in reverse order calls "
			"it %s",
			s->name, s->value, nccl_path_word(level), nccl_path_word(guide));
		if (guide < level || !level_too_narrow(run, s->name, level))
			f->severity = SEVERITY_INFO;
		show_setting(run, f, s);
		finding_remedy(run, f, "use the name: %s=%s, or %s if that was intended", s->name,
			       nccl_path_word(level), nccl_path_word(guide));
	}
	return VERDICT_OK;
}

/* ---- names and versions ---- */

static const struct variable *meant_variable(struct rule_run *run, const char *name)
{
	char *upper = (char *)run_text(run, "%s", name);
	const struct variable *v;

	for (char *p = upper; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	v = variable_find(upper);
	return v ? v : variable_near(name);
}

static enum verdict probe_unknown(struct rule_run *run)
{
	FOR_EACH_SETTING(s, run)
	{
		const struct variable *meant;
		struct finding *f;

		if (variable_find(s->name) || nccl_variable_is_foreign(s->name) ||
		    text_starts_with(s->name, "RCCL_"))
			continue;
		meant = meant_variable(run, s->name);
		if (!meant &&
		    (!text_starts_with(s->name, "NCCL_") || nccl_variable_has_family(s->name)))
			continue;
		f = finding_add(run, CONFIDENCE_POSSIBLE, subject_setting(run, s),
				meant ? "NCCL has no variable " ABOUT "; possibly %s was intended"
				      : "NCCL has no variable " ABOUT " that onehop knows of",
				meant ? meant->name : "");
		show_setting(run, f, s);
		if (meant)
			finding_remedy(
				run, f,
				"unset %s, which has no effect; if you intend %s=%s, set that",
				s->name, meant->name, s->value);
		else
			f->severity = SEVERITY_INFO;
	}
	return VERDICT_OK;
}

static void report_gone(struct rule_run *run, const struct setting *s, const struct variable *v,
			int version)
{
	struct finding *f =
		finding_add(run, version ? CONFIDENCE_CERTAIN : CONFIDENCE_POSSIBLE,
			    subject_setting(run, s), ABOUT " has no effect from %s on%s",
			    nccl_text(run, v->until),
			    version ? run_text(run, ", and this is %s", nccl_text(run, version))
				    : " (the version in use is unknown)");

	if (!version)
		f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	finding_remedy(run, f, "unset %s%s%s", s->name, v->note ? ": " : "",
		       v->note ? v->note : "");
}

static void report_too_new(struct rule_run *run, const struct setting *s, const struct variable *v,
			   int version)
{
	struct finding *f =
		finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			    ABOUT " is supported from %s on; this is %s, which ignores it",
			    nccl_text(run, v->since), nccl_text(run, version));

	show_setting(run, f, s);
	finding_remedy(run, f, "use %s or newer, or unset %s", nccl_text(run, v->since), s->name);
}

static enum verdict probe_version(struct rule_run *run)
{
	int version = nccl_version(run);

	FOR_EACH_SETTING(s, run)
	{
		const struct variable *v = variable_find(s->name);

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
		const struct variable *v = variable_find(s->name);
		struct finding *f;

		if (!v || !v->deprecated || (version && version < v->deprecated))
			continue;
		f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
				ABOUT " is deprecated since %s", nccl_text(run, v->deprecated));
		show_setting(run, f, s);
		if (v->note)
			finding_remedy(run, f, "unset %s: %s", s->name, v->note);
	}
	return VERDICT_OK;
}

/* ---- switches that turn things off ---- */

static enum verdict probe_shm_disabled(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_SHM_DISABLE");
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
		without ? "shared memory is disabled for NCCL: %zu GPU pairs without P2P go over the "
			  "network inside one machine"
			: "shared memory is disabled for NCCL (%zu GPU pairs would need it)",
		without);
	f->pairs = without;
	if (!without)
		f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	return VERDICT_OK;
}

static enum verdict probe_ignore_disabled(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_IGNORE_DISABLED_P2P");
	size_t denied = pairs_with(run, CHAIN_DRIVER, CHAIN_BAD);
	struct finding *f;

	if (setting_number(run->m, "NCCL_IGNORE_DISABLED_P2P", 0) == 0)
		return VERDICT_OK;
	f = finding_add(
		run, CONFIDENCE_CERTAIN, subject_setting(run, s),
		denied ? "NCCL is set to ignore refused P2P silently, and the driver refuses it for "
			 "%zu GPU pairs"
		       : "NCCL is set to ignore refused P2P silently (%zu GPU pairs now)",
		denied);
	f->pairs = denied;
	if (!denied)
		f->severity = SEVERITY_INFO;
	show_setting(run, f, s);
	return VERDICT_OK;
}

static enum verdict probe_topo_file(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_TOPO_FILE");
	struct finding *f;

	if (!s || !*s->value)
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_CERTAIN, subject_setting(run, s),
			"NCCL reads the topology from %s, not from the machine: it may use other "
			"distances than onehop shows",
			s->value);
	show_setting(run, f, s);
	/* Only a guest needs one, whose own PCI tree does not show the machine's. */
	if (!fact_known(run->m->kernel.hypervisor))
		f->severity = SEVERITY_WARNING;
	else
		finding_evidence(run, f, NULL,
				 run_text(run, "guest of %s", run->m->kernel.hypervisor.value),
				 "cloud providers ship such a file for their own machine types");
	return VERDICT_OK;
}

/* ---- known traps ---- */

static enum verdict probe_proto(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_PROTO");
	struct finding *f;

	if (!s || strchr(s->value, '^') || !strcasestr(s->value, "LL128") || all_pairs_nvlink(run))
		return VERDICT_OK;
	f = finding_add(run, CONFIDENCE_POSSIBLE, subject_setting(run, s),
			"NCCL_PROTO=%s forces LL128, which needs 128-byte stores to arrive whole: "
			"guaranteed on NVLink, not on PCIe, where NCCL disables it by itself",
			s->value);
	show_setting(run, f, s);
	return VERDICT_OK;
}

/* ---- the table ---- */

#define NCCL_PARAM_C "NVIDIA/nccl src/misc/param.cc"
#define NCCL_PATHS_C "NVIDIA/nccl src/graph/paths.cc"

const struct rule rules_nccl[] = {
	{
		.id = "nccl-level",
		.title = "NCCL uses P2P for every pair for which the driver allows it",
		.why = "NCCL copies through host memory beyond its own distance limit, whatever the "
		       "driver allows. From 2.23 on the limit is PCIe switches (PXB); only AMD "
		       "machines with two GPUs have a higher one. NCCL's PHB includes nvidia-smi's "
		       "NODE.",
		.remedy =
			"set NCCL_P2P_LEVEL to the distance of the pairs (SYS for all), and measure "
			"with and without it",
		.reference = NCCL_PATHS_C "; NVIDIA/nccl#1829, #2080",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS | NEEDS_SETTINGS,
		.probe = probe_level,
		.propose = propose_level,
	},
	{
		.id = "nccl-p2p-disabled",
		.title = "P2P is not disabled for NCCL",
		.why = "NCCL_P2P_DISABLE=1 overrides NCCL_P2P_LEVEL. It is a common workaround that "
		       "stays in scripts after its cause is gone.",
		.remedy =
			"unset NCCL_P2P_DISABLE; if programs then hang, see rules acs-redirect and "
			"iommu-translating",
		.reference = NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS | NEEDS_SETTINGS,
		.probe = probe_disabled,
	},
	{
		.id = "nccl-number",
		.title = "Numeric NCCL variables contain numbers",
		.why = "NCCL reads them with strtoll: 'true', 'on' and 'yes' are 0, '4M' is 4, "
		       "'010' is 8, and it prints no warning.",
		.remedy = "use a decimal number; 1 for yes",
		.reference = NCCL_PARAM_C,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_number,
	},
	{
		.id = "nccl-range",
		.title = "Numeric NCCL variables are within their range",
		.why = "A number outside the range is truncated, rejected by the NIC, or ignored.",
		.remedy = "use a number within the range, or unset the variable",
		.reference = NCCL_ENV "; InfiniBand Architecture Specification 1.4, 12.7",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_range,
	},
	{
		.id = "nccl-level-name",
		.title = "NCCL recognizes the levels that are set",
		.why = "NCCL recognizes only the exact names LOC, NVL, PIX, PXB, PHB and SYS. It "
		       "ignores lower case, NODE and typos without a log message.",
		.remedy = "use one of LOC, NVL, PIX, PXB, PHB, SYS",
		.reference = NCCL_PATHS_C " (ncclGetLevel)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_level_name,
	},
	{
		.id = "nccl-level-number",
		.title = "NCCL levels are set by name",
		.why = "Numbers are an old form: 0 LOC, 1 PIX, 2 PXB, 3 PHB, 4 and 5 SYS. One guide "
		       "lists them in reverse order, so 1, intended as SYS, allows the least.",
		.remedy = "use the name of the level",
		.reference = NCCL_PATHS_C " (levelsOldToNew)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_SETTINGS,
		.probe = probe_level_number,
	},
	{
		.id = "nccl-unknown-variable",
		.title = "NCCL recognizes every variable that is set for it",
		.why = "A misspelled variable has no effect, and nothing reports it.",
		.remedy = "check the name",
		.reference = NCCL_ENV "; NERSC/podman-hpc#136",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_unknown,
	},
	{
		.id = "nccl-variable-version",
		.title = "The NCCL in use supports every variable that is set",
		.why = "Variables come and go with versions; NCCL ignores those that its version "
		       "does not have.",
		.remedy = "unset it, or use a version that supports it",
		.reference = "NVIDIA/nccl, tags 2.3.5 to 2.30.7",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_version,
	},
	{
		.id = "nccl-deprecated",
		.title = "No deprecated NCCL variable is set",
		.why = "It still works, and will be removed.",
		.remedy = "use its replacement",
		.reference = NCCL_ENV,
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_deprecated,
	},
	{
		.id = "nccl-shm-disabled",
		.title = "NCCL may use shared memory",
		.why = "Without shared memory, pairs without P2P can only use the network.",
		.remedy = "unset NCCL_SHM_DISABLE; if /dev/shm is too small, enlarge it",
		.reference = NCCL_ENV,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS | NEEDS_SETTINGS,
		.probe = probe_shm_disabled,
	},
	{
		.id = "nccl-ignore-disabled",
		.title = "NCCL reports where P2P is refused",
		.why = "NCCL_IGNORE_DISABLED_P2P hides that NVLink or P2P does not work, and the "
		       "bandwidth is lost silently.",
		.remedy = "unset NCCL_IGNORE_DISABLED_P2P",
		.reference = NCCL_PATHS_C,
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_TWO_GPUS | NEEDS_SETTINGS,
		.probe = probe_ignore_disabled,
	},
	{
		.id = "nccl-topo-file",
		.title = "NCCL detects the machine's topology by itself",
		.why = "A file for another machine type, or for several nodes, sends traffic over "
		       "the wrong devices.",
		.remedy =
			"unset NCCL_TOPO_FILE unless the file describes exactly this machine type",
		.reference = "Azure/azurehpc-health-checks#142; " NCCL_ENV,
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_SETTINGS,
		.probe = probe_topo_file,
	},
	{
		.id = "nccl-proto",
		.title = "LL128 is not forced on PCIe",
		.why = "NVIDIA's guide warns about corrupted data where LL128 is forced on "
		       "platforms that do not support it.",
		.remedy = "unset NCCL_PROTO",
		.reference = NCCL_ENV " (NCCL_PROTO)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_TWO_GPUS | NEEDS_SETTINGS,
		.probe = probe_proto,
	},
	{0},
};
