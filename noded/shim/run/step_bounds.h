// The limits of a step's tasks on this node: its own time limit, and its memory if the kernel does
// not count memory for steps (v2). A step that exceeds them is ended, and its starter is told.
#pragma once

#include <cstdint>
#include <string>

#include "noded/shim/io/step_io.h"
#include "noded/shim/process/step_tasks.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

class StepBounds {
 public:
  StepBounds(const Shim& shim, const StepRequest& request) : shim_(shim), request_(request) {}

  // The tasks run from now on. `dir` is the step's directory.
  void begin(std::string dir);
  void look_at_limit();  // rereads the limit, which may have changed; it counts from begin()
  // Milliseconds until look() has something to do; -1 = never.
  [[nodiscard]] int pause() const;
  void look(StepTasks& tasks, StepIo& io);
  void say_cancelled(StepIo& io) const;  // by an order of the node

  [[nodiscard]] bool timed_out() const { return timed_out_; }
  [[nodiscard]] bool out_of_memory() const { return out_of_memory_; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }  // bytes; 0 = not measured

 private:
  void look_at_memory(StepIo& io);
  void look_at_time(StepTasks& tasks, StepIo& io);
  void end_all() const;
  void say(StepIo& io, const std::string& what) const;

  const Shim& shim_;
  const StepRequest& request_;
  std::string dir_;
  Instant began_{};
  std::optional<Instant> end_;     // end of the time limit, by timer_clock(); then of the patience
  std::optional<Instant> sample_;  // time of the next memory measurement
  std::int64_t peak_ = 0;
  bool timed_out_ = false;
  bool out_of_memory_ = false;
};

// What a shim can still reach once its container or its step's tasks run: its job's records and
// cgroup, and nothing else of the machine. So an attacker who takes over a shim then can change no
// other file.

// Gives up the rest with Landlock, if the kernel has it. A shim with further work at the job's end
// keeps everything: with an epilog, which is a program of the operator, with files to stage out,
// and with a scratch directory, for which it looks for deleted files in all processes of the job.
void keep_only_what_a_shim_needs(const Shim& shim);
// The same for the shim of a step, which has no such work: tasks and output files are open.
void keep_only_what_a_step_needs(const Shim& shim);

}  // namespace gantry::runtime
