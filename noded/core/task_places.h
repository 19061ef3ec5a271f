// The CPUs and NUMA nodes on which the tasks of a step run here, from --cpu-bind and --mem-bind and
// the step's CPUs. The function is pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/job/task_bind.h"
#include "common/proto/steps.h"
#include "common/result.h"

namespace gantry::node {

struct TaskPlaces {
  std::vector<std::vector<std::uint16_t>> cpus;  // by task
  std::vector<std::vector<std::uint16_t>> mems;  // by task: NUMA nodes; none = all
  std::vector<std::string> notes;  // by task, if a binding is verbose; see StepRequest
};

struct StepHere {
  std::string node;
  std::vector<std::uint16_t> cpus;                 // in the order in which tasks get them
  bool bind_tasks = false;                         // each task has an even share of `cpus`
  std::vector<std::uint32_t> ranks;                // ranks of the tasks here
  std::map<std::uint16_t, std::uint32_t> sockets;  // socket of each of the machine's CPUs
  std::map<std::uint16_t, std::uint16_t> numa;     // NUMA nodes of the machine's CPUs
};

// The notes are Slurm's lines: "cpu-bind=MAP - n1, task  0  0 [{pid}]: mask 0x1 set".
// invalid_argument: a task would be bound to a CPU that the step does not have here.
Result<TaskPlaces> task_places(const TaskBind& cpu, const TaskBind& mem, const StepHere& here);

// The second part of Slurm's --distribution: the order in which the tasks of a step get the step's
// cores on this node. The function is pure.

// Returns the cores in an order such that task i of `tasks` gets the i-th share of them. Each share
// has cores.size() / tasks cores; remaining cores come last. With `cyclic` the cores of a task are
// of one socket while that socket has enough left, and the next task takes the next socket. With
// `fcyclic` each next core is of the next socket. A core without an entry in `socket_of` counts as
// one of socket 0.
std::vector<std::uint16_t> order_cores(CoreOrder order, std::vector<std::uint16_t> cores,
                                       const std::map<std::uint16_t, std::uint32_t>& socket_of,
                                       std::size_t tasks);

}  // namespace gantry::node
