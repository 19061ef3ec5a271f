// A step of a placed job, as the controller knows it. Only apply() changes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/asked_tres.h"
#include "common/job/job_state.h"
#include "common/types.h"

namespace gantry::core {

struct StepState {
  StepId id{};
  std::string name;
  std::uint32_t tasks = 0;
  std::uint32_t cpus = 0;
  std::vector<NodeId> nodes;
  Instant started{};
  std::optional<Instant> ended;
  ExitStatus exit;
  Usage usage;
  std::vector<std::vector<std::uint16_t>> cores;  // by node; GPUs that the step has while it runs
  std::vector<std::uint32_t> node_tasks;          // by node
  bool cyclic = false;                            // tasks are numbered round-robin over the nodes
  std::uint32_t block = 0;                        // likewise, in blocks of this many tasks; 0 = not
  std::vector<std::vector<std::uint32_t>>
      ranks;  // by node, if the step named the node of each task
  // What the step has of the job for itself, by node: indexes of GPUs in the grant's devices, and
  // bytes. Empty: it asked for none of its own. With --overlap other steps may have the same.
  std::vector<std::vector<std::uint16_t>> gpus;
  std::vector<std::int64_t> memory;
  Duration time_limit{};        // 0 = no limit of its own
  bool timed_out = false;       // true if its time limit has ended it
  std::uint32_t gpus_seen = 0;  // GPUs that its tasks may use, on all nodes; 0 in older records
  AskedTres tres;               // for listings
  GANTRY_FIELDS(FIELD(1, id), FIELD(2, name), FIELD(3, tasks), FIELD(4, cpus), FIELD(5, nodes),
                FIELD(6, started), FIELD(7, ended), FIELD(8, exit), FIELD(9, usage),
                FIELD(10, cores), FIELD(11, node_tasks), FIELD(12, cyclic), FIELD(13, block),
                FIELD(14, ranks), FIELD(15, gpus), FIELD(16, memory), FIELD(17, time_limit),
                FIELD(18, timed_out), FIELD(27, gpus_seen), FIELD(28, tres))
};

}  // namespace gantry::core
