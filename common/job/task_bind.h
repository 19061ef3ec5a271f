// To which CPUs and to which memory of a node the tasks of a step there are bound: the values of
// Slurm's --cpu-bind and --mem-bind. Tasks count from 0 on each node; CPUs and NUMA nodes have the
// numbers that the node's kernel gives them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/result.h"

namespace gantry {

struct TaskBind {
  enum class Kind : std::uint8_t {
    usual = 0,   // CPUs: each task has cores of its own. Memory: all that the job may use
    none = 1,    // all CPUs that the step, or the job, may use
    rank = 2,    // task i: the CPU or NUMA node that is number i of the step's
    map = 3,     // task i: set i of `sets`, of single CPUs or NUMA nodes
    mask = 4,    // task i: set i of `sets`
    socket = 5,  // CPUs: all of the step's on the sockets of the task's own cores
    numa = 6,    // CPUs: all of the step's on the NUMA nodes of the task's own cores
    local = 7,   // memory: of the NUMA nodes of the task's CPUs
  };
  Kind kind = Kind::usual;
  bool verbose = false;  // each task prints its binding on its standard error
  bool prefer = false;   // memory: other may be used if that is full
  std::vector<std::vector<std::uint16_t>> sets{};  // after the last one the first is used again
  friend bool operator==(const TaskBind&, const TaskBind&) = default;
  GANTRY_FIELDS(FIELD(1, kind), FIELD(2, verbose), FIELD(3, prefer), FIELD(4, sets))
};
GANTRY_NAMES(TaskBind::Kind, {usual, "usual"}, {none, "none"}, {rank, "rank"}, {map, "map"},
             {mask, "mask"}, {socket, "socket"}, {numa, "numa"}, {local, "local"})

// "verbose,map_cpu:0,1*2", "mask_cpu:0x3,0xc", "none", "rank", "cores", "threads", "sockets",
// "ldoms", "quiet". Cores are given whole, so that cores and threads come to the same.
Result<TaskBind> parse_cpu_bind(std::string_view text);
// "verbose,map_mem:0,1", "mask_mem:0x1", "none", "rank", "local", "prefer", "nosort".
Result<TaskBind> parse_mem_bind(std::string_view text);

// Checks a binding received over the wire: maps and masks must have sets that are not empty.
Result<void> check_task_bind(const TaskBind& bind);

}  // namespace gantry
