// Which options of a submit were given, apart from their values: Slurm sets some SLURM_* variables
// only for given options, lists GPUs by the option that asked for them, and shows a job's requests.
#pragma once

#include <cstdint>
#include <optional>

#include "common/fields.h"
#include "common/job/asked_tres.h"

namespace gantry {

struct GivenOptions {
  bool tasks = false;
  bool tasks_per_node = false;
  bool cpus_per_task = false;
  bool gres = false;
  bool gpus = false;
  bool gpus_per_node = false;
  bool gpus_per_task = false;  // also by --tres-per-task
  std::optional<std::uint32_t> cpus_per_gpu;
  bool oversubscribe = false;
  std::optional<std::uint32_t> tasks_per_core, threads_per_core;
  AskedTres tres;
  friend bool operator==(const GivenOptions&, const GivenOptions&) = default;
  GANTRY_FIELDS(FIELD(1, tasks), FIELD(2, tasks_per_node), FIELD(3, cpus_per_task), FIELD(4, gres),
                FIELD(5, gpus), FIELD(6, gpus_per_node), FIELD(7, gpus_per_task),
                FIELD(8, cpus_per_gpu), FIELD(9, oversubscribe), FIELD(10, tasks_per_core),
                FIELD(11, threads_per_core), FIELD(17, tres))
};

}  // namespace gantry
