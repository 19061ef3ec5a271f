// Options of a submit whose being given matters, beside the value that they set elsewhere: Slurm
// sets some SLURM_* variables only for an option that was given, lists GPUs by the option that
// asked, and shows what a job has asked for.
#pragma once

#include <cstdint>
#include <optional>

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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "tasks", s.tasks);
    v(2, "tasks_per_node", s.tasks_per_node);
    v(3, "cpus_per_task", s.cpus_per_task);
    v(4, "gres", s.gres);
    v(5, "gpus", s.gpus);
    v(6, "gpus_per_node", s.gpus_per_node);
    v(7, "gpus_per_task", s.gpus_per_task);
    v(8, "cpus_per_gpu", s.cpus_per_gpu);
    v(9, "oversubscribe", s.oversubscribe);
    v(10, "tasks_per_core", s.tasks_per_core);
    v(11, "threads_per_core", s.threads_per_core);
    v(17, "tres", s.tres);
  }
};

}  // namespace gantry
