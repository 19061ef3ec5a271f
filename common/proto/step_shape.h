// What a step asks for: how many tasks, on which nodes of its job, with which cores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/asked_tres.h"
#include "common/time/time.h"

namespace gantry::proto {

struct StepShape {
  std::uint32_t nodes = 0;  // 0 = as many as needed
  std::uint32_t tasks = 0;  // 0 = the job's
  std::optional<std::uint32_t> tasks_per_node;
  std::uint32_t cpus_per_task = 0;    // 0 = the job's
  std::vector<std::string> nodelist;  // -w
  bool overlap = false;               // may share cores with other steps
  bool exclusive = false;             // only cores that no other step has; without them: busy
  bool cyclic = false;                // tasks are numbered round the nodes, not node by node
  bool overcommit = false;            // more tasks than cores: they share all that there are
  // Tasks are dealt and numbered round the nodes, so many at a time; 0 = as `cyclic` says.
  std::uint32_t plane = 0;
  std::vector<std::string> hosts;     // the node of each task, by its rank; none = they are dealt
  std::vector<std::string> excluded;  // -x
  std::int64_t memory_per_node = 0;   // bytes for the step on each node; 0 = what the job has
  std::int64_t memory_per_cpu = 0;    // bytes for each core of the step; 0 = the same
  // GPUs of the step alone, out of the job's; all unset: its tasks see all of the job's.
  std::optional<std::uint32_t> gpus, gpus_per_node, gpus_per_task;
  std::string gpu_model;   // "" = any; "a100|h100": one of them
  Duration time_limit{};   // 0 = the job's
  bool pack = false;       // its nodes are filled one by one; its tasks are not dealt evenly
  AskedTres tres;          // for listings
  bool all_cores = false;  // a launcher's step: the tasks share all cores of the job on their node
  GANTRY_FIELDS(FIELD(1, nodes), FIELD(2, tasks), FIELD(3, tasks_per_node), FIELD(4, cpus_per_task),
                FIELD(5, nodelist), FIELD(6, overlap), FIELD(7, exclusive), FIELD(8, cyclic),
                FIELD(9, overcommit), FIELD(10, plane), FIELD(11, hosts), FIELD(12, excluded),
                FIELD(13, memory_per_node), FIELD(14, memory_per_cpu), FIELD(15, gpus),
                FIELD(16, gpus_per_node), FIELD(17, gpus_per_task), FIELD(18, time_limit),
                FIELD(19, all_cores), FIELD(20, gpu_model), FIELD(21, pack), FIELD(30, tres))
};

}  // namespace gantry::proto
