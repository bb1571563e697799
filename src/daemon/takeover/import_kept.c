/* import_kept.c - warn of settings that a takeover does not apply: sizes, ANA rules and
 * listeners stay as they run.
 *
 * `weft ctl` may have changed them, and hosts rely on them. Each warning names the command that
 * applies the configured value.
 *
 * Invariant: a difference between the configuration and what runs is refused (import_check.c),
 * applied, or warned of here. */
#include <stdio.h>

#include "base/log.h"
#include "base/size.h"
#include "daemon/takeover/frames.h"
#include "daemon/control/methods.h"
#include "daemon/internal.h"

/* --- sizes ------------------------------------------------------------------------------------ */

static void warn_kept_size(json_t *warnings, const char *source, const char *nqn,
			   const struct weft_ns_config *ns)
{
	char runs[32], said[32];

	if (!ns->config_size || ns->config_size == ns->size)
		return;
	weft_size_format(ns->size, runs, sizeof(runs));
	weft_size_format(ns->config_size, said, sizeof(said));
	json_array_append_new(
		warnings,
		json_sprintf("%s namespace %u: its size stays %s, and %s says %s; weft ctl "
			     "namespace-resize nqn=%s nsid=%u size=%s%s changes it",
			     nqn, ns->nsid, runs, source, said, nqn, ns->nsid, said,
			     ns->config_size < ns->size ? " shrink=true" : ""));
}

static void warn_kept_sizes(json_t *warnings, const char *source,
			    const struct weft_subsys_config *subsys)
{
	const struct weft_ns_config *ns = subsys->namespaces.at;

	for (unsigned i = 0; i < subsys->namespaces.count; i++)
		warn_kept_size(warnings, source, subsys->nqn, &ns[i]);
}

/* --- filters, which are applied --------------------------------------------------------------- */

static void tell_filters(const struct weft_subsys_config *subsys)
{
	const struct weft_ns_config *ns = subsys->namespaces.at;

	for (unsigned i = 0; i < subsys->namespaces.count; i++)
		if (ns[i].refiltered)
			weft_info("%s namespace %u: from now on it has delay=%s, error=%s",
				  subsys->nqn, ns[i].nsid,
				  ns[i].spec.delay[0] ? ns[i].spec.delay : "none",
				  ns[i].spec.error[0] ? ns[i].spec.error : "none");
}

/* --- ANA -------------------------------------------------------------------------------------- */

static bool has_rule(const struct weft_items *rules, const struct weft_ana_rule *wanted)
{
	const struct weft_ana_rule *rule = rules->at;

	for (unsigned i = 0; i < rules->count; i++)
		if (weft_ana_rule_same(&rule[i], wanted) && rule[i].state == wanted->state)
			return true;
	return false;
}

/* In any order: no list has two rules for the same group, port and host. */
static bool are_same_rules(const struct weft_items *a, const struct weft_items *b)
{
	const struct weft_ana_rule *rule = a->at;

	for (unsigned i = 0; i < a->count; i++)
		if (!has_rule(b, &rule[i]))
			return false;
	return a->count == b->count;
}

static void warn_kept_rules(json_t *warnings, const char *source,
			    const struct weft_subsys_state *running,
			    const struct weft_subsys_config *subsys)
{
	if (are_same_rules(&running->ana_rules, &subsys->ana))
		return;
	json_array_append_new(
		warnings,
		json_sprintf(
			"%s: its ANA rules stay as they run, and %s has others; weft ctl "
			"ana-set rules=… replace=true sets them, weft ctl status shows which run",
			subsys->nqn, source));
}

/* --- the configuration ------------------------------------------------------------------------ */

void weft_takeover_warn_kept(struct weft_daemon *d, const struct weft_target_state *state)
{
	const char *source = d->doc->file ? d->doc->file : "the command line";
	const struct weft_subsys_state *running = state->subsystems.at;
	json_auto_t *warnings = json_array();

	weft_takeover_warn_listeners(warnings, source, d->config, state);
	for (unsigned i = 0; i < state->subsystems.count; i++) {
		const struct weft_subsys_config *subsys = weft_config_subsys(d->config,
									     running[i].nqn);

		if (!subsys) /* the discovery service */
			continue;
		tell_filters(subsys);
		warn_kept_sizes(warnings, source, subsys);
		warn_kept_rules(warnings, source, &running[i], subsys);
	}
	weft_daemon_log_warnings(warnings);
}
