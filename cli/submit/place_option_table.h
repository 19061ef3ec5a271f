// The options that say what a job needs and where it may run; see submit_option.h.
#pragma once

#include "cli/submit/job_setters.h"
#include "cli/submit/submit_option.h"

namespace gantry::cli {

inline constexpr SubmitOption kPlaceOptionTable[] = {
    {.option = takes("anti-affinity", "KEY[:LEVEL[:N]]",
                     "Keep away from my other jobs of this key: at most N (default 1) of their "
                     "nodes in one domain of the level, node (default) or one of the topology",
                     call<job::set_anti_affinity>),
     .families = Families::gantry},
    {.option = takes("constraint", 'C', "FEATURES", "Features that nodes must have: a, a&b, a|b",
                     call<job::set_constraint>)
                   .from_env("CONSTRAINT"),
     .slurm = {.value = "LIST"}},
    {.option = takes("exclude", 'x', "NODES", "Not on these nodes", call<job::set_exclude>)},
    {.option =
         may_take(
             "exclusive", "user|tenant",
             "Whole nodes, shared with no other job; or only with those of its user, or tenant",
             call<job::set_exclusive>)
             .from_env("EXCLUSIVE"),
     .slurm = {.value = "user",
               .help = "Whole nodes, shared with no other job; or only with those of its user"}},
    {.option = takes("gpu-model", "MODEL,...",
                     "Only GPUs of these models, the first that is free in this order",
                     call<job::set_gpu_models>),
     .families = Families::gantry},
    {.option = takes("gpu-names", "uuid|index",
                     "How CUDA_VISIBLE_DEVICES names whole GPUs: by UUID (default), or by the "
                     "numbers that CUDA gives them in the job, from 0 on",
                     call<job::set_gpu_names>),
     .slurm = {.help = "How CUDA_VISIBLE_DEVICES names whole GPUs: by UUID, or by the numbers that "
                       "CUDA gives them in the job, from 0 on (default)"}},
    {.option = takes("gpus", 'G', "[MODEL:]N",
                     "GPUs in all, as even on its nodes as may be; 0.5: a part of one, shared in "
                     "the tenant",
                     call<job::set_gpus_in_all>)
                   .from_env("GPUS"),
     .slurm = {.help = "GPUs in all, as even on its nodes as may be"}},
    {.option = takes("gpus-per-node", "[MODEL:]N", "GPUs on each node, or a part of one",
                     call<job::set_gpus_per_node>)
                   .from_env("GPUS_PER_NODE"),
     .slurm = {.help = "GPUs on each node"}},
    {.option =
         takes("gpus-per-task", "[MODEL:]N", "GPUs for each task", call<job::set_gpus_per_task>)
             .from_env("GPUS_PER_TASK")},
    {.option =
         takes("gres", "gpu[:MODEL][:N]|mig:PROFILE[:N]|shard:N|NAME[:N]",
               "GPUs, MIG slices, shards of one GPU, or what else nodes declare, on each node",
               call<job::set_gres>)
             .from_env("GRES"),
     .slurm = {.value = "gpu[:MODEL][:N]",
               .help = "GPUs, or with mig:PROFILE[:N] MIG slices, on each node"}},
    {.option = takes("licenses", 'L', "NAME[:N],...",
                     "Licences of the cluster that the job holds while it runs (default 1 each)",
                     call<job::set_licenses>)},
    {.option = takes("mem", "SIZE", "Memory on each node: 2G, 500M", call<job::set_mem>)
                   .from_env("MEM_PER_NODE"),
     .slurm =
         {.help = "Memory on each node, in MB or with K, M, G, T; 0 is all, and so the whole nodes",
          .set = call<job::set_mem_or_all>}},
    {.option = takes("mem-per-cpu", "SIZE", "Memory for each core", call<job::set_mem_per_cpu>)
                   .from_env("MEM_PER_CPU")},
    {.option = takes("mem-per-gpu", "SIZE", "Memory on each node for each of its GPUs",
                     call<job::set_mem_per_gpu>)
                   .from_env("MEM_PER_GPU")},
    {.option = takes("mincpus", "N", "Cores on each node at least", call<job::set_min_cpus>)},
    {.option = takes("nodelist", 'w', "NODES", "These nodes at least", call<job::set_nodelist>)},
    {.option = takes("nodes", 'N', "MIN[-MAX]", "Number of nodes", call<job::set_nodes>)},
    {.option = flag("overcommit", 'O',
                    "The tasks on a node share the cores of one task, however many there are; in a "
                    "job: start more tasks than there are cores",
                    call<job::set_overcommit>)
                   .from_env("OVERCOMMIT")},
    {.option = takes("reservation", "NAME",
                     "On nodes that this reservation has, and in its time (gctl reservations)",
                     call<job::spec_word<&JobSpec::reservation>>)
                   .from_env("RESERVATION"),
     .slurm = {.help = "On nodes of this reservation, and in its time"}},
    {.option = takes("spread", "LEVEL[:N]",
                     "At most N (default 1) nodes of this job, or tasks of this array, in one "
                     "domain of the level: node, or one of the topology",
                     call<job::set_spread>),
     .families = Families::gantry},
    {.option = takes("tmp", "SIZE", "Scratch space on each node", call<job::set_tmp>)},
    {.option = takes("tolerate", "TAINT,...", "May run on nodes with these taints",
                     call<job::set_tolerations>),
     .families = Families::gantry},
    {.option = takes("topology", "[WISH:]LEVEL",
                     "All nodes within one domain of this level; the wish is required (default), "
                     "preferred or balanced",
                     call<job::set_topology>),
     .families = Families::gantry},
};

}  // namespace gantry::cli
