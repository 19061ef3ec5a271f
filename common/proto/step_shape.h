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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "nodes", s.nodes);
    v(2, "tasks", s.tasks);
    v(3, "tasks_per_node", s.tasks_per_node);
    v(4, "cpus_per_task", s.cpus_per_task);
    v(5, "nodelist", s.nodelist);
    v(6, "overlap", s.overlap);
    v(7, "exclusive", s.exclusive);
    v(8, "cyclic", s.cyclic);
    v(9, "overcommit", s.overcommit);
    v(10, "plane", s.plane);
    v(11, "hosts", s.hosts);
    v(12, "excluded", s.excluded);
    v(13, "memory_per_node", s.memory_per_node);
    v(14, "memory_per_cpu", s.memory_per_cpu);
    v(15, "gpus", s.gpus);
    v(16, "gpus_per_node", s.gpus_per_node);
    v(17, "gpus_per_task", s.gpus_per_task);
    v(18, "time_limit", s.time_limit);
    v(19, "all_cores", s.all_cores);
    v(20, "gpu_model", s.gpu_model);
    v(21, "pack", s.pack);
    v(30, "tres", s.tres);
  }
};

}  // namespace gantry::proto
