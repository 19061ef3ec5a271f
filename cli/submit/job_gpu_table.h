// The options of gbatch, grun and galloc that ask for GPUs; see gpu_options.h.
#pragma once

#include "cli/option.h"
#include "cli/submit/job_setters.h"

namespace gantry::cli {

inline constexpr Option kGpuOptions[] = {
    {.name = "gpus",
     .letter = 'G',
     .arg = Arg::required,
     .value = "[MODEL:]N",
     .help = "GPUs in all, as many on each node; 0.5: a part of one, shared in the tenant",
     .set = call<job::set_gpus_in_all>,
     .env = "GPUS"},
    {.name = "gpus-per-node",
     .arg = Arg::required,
     .value = "[MODEL:]N",
     .help = "GPUs on each node, or a part of one",
     .set = call<job::set_gpus_per_node>,
     .env = "GPUS_PER_NODE"},
    {.name = "gpus-per-task",
     .arg = Arg::required,
     .value = "[MODEL:]N",
     .help = "GPUs for each task",
     .set = call<job::set_gpus_per_task>,
     .env = "GPUS_PER_TASK"},
    {.name = "gres",
     .arg = Arg::required,
     .value = "gpu[:MODEL][:N]|mig:PROFILE[:N]|shard:N|NAME[:N]",
     .help = "GPUs, MIG slices, shards of one GPU, or what else nodes declare, on each node",
     .set = call<job::set_gres>,
     .env = "GRES"},
    {.name = "mem-per-gpu",
     .arg = Arg::required,
     .value = "SIZE",
     .help = "Memory on each node for each of its GPUs",
     .set = call<job::set_mem_per_gpu>,
     .env = "MEM_PER_GPU"},
};

}  // namespace gantry::cli
