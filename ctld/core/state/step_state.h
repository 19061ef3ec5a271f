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
  std::vector<std::vector<std::uint16_t>> cores;  // by node; the step's own while it runs
  std::vector<std::uint32_t> node_tasks;          // by node
  bool cyclic = false;                            // tasks are numbered round-robin over the nodes
  std::uint32_t block = 0;                        // the same, so many at a time; 0 = not
  std::vector<std::vector<std::uint32_t>>
      ranks;  // by node, if the step named the node of each task
  // What it has of the job for itself, by node: places of GPUs in the grant's devices, and bytes.
  // Empty: it asked for none of its own. With --overlap others may have the same.
  std::vector<std::vector<std::uint16_t>> gpus;
  std::vector<std::int64_t> memory;
  Duration time_limit{};        // 0 = none of its own
  bool timed_out = false;       // which has ended it
  std::uint32_t gpus_seen = 0;  // GPUs that its tasks may use, on all nodes; 0 of older records
  AskedTres tres;               // for listings
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "id", s.id);
    v(2, "name", s.name);
    v(3, "tasks", s.tasks);
    v(4, "cpus", s.cpus);
    v(5, "nodes", s.nodes);
    v(6, "started", s.started);
    v(7, "ended", s.ended);
    v(8, "exit", s.exit);
    v(9, "usage", s.usage);
    v(10, "cores", s.cores);
    v(11, "node_tasks", s.node_tasks);
    v(12, "cyclic", s.cyclic);
    v(13, "block", s.block);
    v(14, "ranks", s.ranks);
    v(15, "gpus", s.gpus);
    v(16, "memory", s.memory);
    v(17, "time_limit", s.time_limit);
    v(18, "timed_out", s.timed_out);
    v(27, "gpus_seen", s.gpus_seen);
    v(28, "tres", s.tres);
  }
};

}  // namespace gantry::core
