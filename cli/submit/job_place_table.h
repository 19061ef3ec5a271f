// The options that say where a job may run; part of job_option_table.h.
#pragma once

#include "cli/option.h"
#include "cli/submit/job_setters.h"

namespace gantry::cli {

inline constexpr Option kPlaceOptions[] = {
    {.name = "anti-affinity",
     .arg = Arg::required,
     .value = "KEY[:LEVEL[:N]]",
     .help =
         "Keep away from my other jobs of this key: at most N (default 1) of their nodes in one "
         "domain of the level, node (default) or one of the topology",
     .set = call<job::set_anti_affinity>},
    {.name = "constraint",
     .letter = 'C',
     .arg = Arg::required,
     .value = "FEATURES",
     .help = "Features that nodes must have: a, a&b, a|b",
     .set = call<job::set_constraint>,
     .env = "CONSTRAINT"},
    {.name = "exclude",
     .letter = 'x',
     .arg = Arg::required,
     .value = "NODES",
     .help = "Not on these nodes",
     .set = call<job::set_exclude>},
    {.name = "exclusive",
     .arg = Arg::optional,
     .value = "user|tenant",
     .help = "Whole nodes, shared with no other job; or only with those of its user, or tenant",
     .set = call<job::set_exclusive>,
     .env = "EXCLUSIVE"},
    {.name = "gpu-model",
     .arg = Arg::required,
     .value = "MODEL,...",
     .help = "Only GPUs of these models, the first that is free in this order",
     .set = call<job::set_gpu_models>},
    {.name = "licenses",
     .letter = 'L',
     .arg = Arg::required,
     .value = "NAME[:N],...",
     .help = "Licences of the cluster that the job holds while it runs (default 1 each)",
     .set = call<job::set_licenses>},
    {.name = "nodelist",
     .letter = 'w',
     .arg = Arg::required,
     .value = "NODES",
     .help = "These nodes at least",
     .set = call<job::set_nodelist>},
    {.name = "reservation",
     .arg = Arg::required,
     .value = "NAME",
     .help = "On nodes that this reservation has, and in its time (gctl reservations)",
     .set = call<job::spec_word<&JobSpec::reservation>>,
     .env = "RESERVATION"},
    {.name = "spread",
     .arg = Arg::required,
     .value = "LEVEL[:N]",
     .help =
         "At most N (default 1) nodes of this job, or tasks of this array, in one domain of the "
         "level: node, or one of the topology",
     .set = call<job::set_spread>},
    {.name = "tolerate",
     .arg = Arg::required,
     .value = "TAINT,...",
     .help = "May run on nodes with these taints",
     .set = call<job::set_tolerations>},
    {.name = "topology",
     .arg = Arg::required,
     .value = "[WISH:]LEVEL",
     .help = "All nodes within one domain of this level; the wish is required (default), preferred "
             "or balanced",
     .set = call<job::set_topology>},
};

}  // namespace gantry::cli
