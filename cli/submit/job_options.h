// The options that describe a job, as gbatch, grun and galloc have them. A command joins them with
// its own options by join().
#pragma once

#include "cli/submit/access_option_table.h"
#include "cli/submit/job_option_table.h"
#include "cli/submit/place_option_table.h"
#include "cli/submit/refused_option_table.h"

namespace gantry::cli {

inline constexpr auto kJobOptions =
    in_order(Family::gantry,
             {"account",
              "begin",
              "chdir",
              "checkpoint-file",
              "comment",
              "container-image",
              "container-mounts",
              "container-workdir",
              "container-writable",
              "cpus-per-task",
              "dataset",
              "deadline",
              "dependency",
              "export",
              "hold",
              "identity",
              "io",
              "job-name",
              "kill-on-invalid-dep",
              "labels",
              "mem",
              "mem-per-cpu",
              "mail-type",
              "mail-user",
              "net",
              "network",
              "nice",
              "no-requeue",
              "nodes",
              "ntasks",
              "ntasks-per-node",
              "partition",
              "priority",
              "priority-class",
              "requeue",
              "sandbox",
              "secret",
              "signal",
              "stage-in",
              "stage-out",
              "tenant-class",
              "time",
              "tmp",
              "type",
              "anti-affinity",
              "constraint",
              "exclude",
              "exclusive",
              "gpu-model",
              "gpu-names",
              "licenses",
              "mincpus",
              "nodelist",
              "overcommit",
              "reservation",
              "spread",
              "tolerate",
              "topology",
              "gpus",
              "gpus-per-node",
              "gpus-per-task",
              "gres",
              "mem-per-gpu"},
             {}, kJobOptionTable, kPlaceOptionTable, kAccessOptionTable);

// Gantry refuses these options of Slurm, with the reason, and never ignores them.
inline constexpr auto kRefusedJobOptions = all_in<Family::gantry, kRefusedOptionTable>();

// Commands that start no tasks themselves refuse these options.
inline constexpr Option kRefusedStepOptions[] = {refuses("gpu-bind", kAllGpus)};

}  // namespace gantry::cli
