// The interface between the node core and the machine: it carries out the core's actions on
// attempts and GPUs. Implementations: real_runtime.h (containers), null_runtime.h (runs nothing,
// for benchmarks), and the simulator's.
//
// It gets every action except RememberEpoch, RememberJob, RememberContact and ReadFile, which the
// daemon carries out itself. Resulting events are appended to `events`, by act() itself or by a
// later poll().
#pragma once

#include <string>
#include <vector>

#include "noded/core/core.h"

namespace gantry::node {

class AttemptRuntime {
 public:
  virtual ~AttemptRuntime() = default;

  [[nodiscard]] virtual std::string name() const = 0;  // "crun 1.8.1"
  // Isolation layers that are off.
  [[nodiscard]] virtual std::vector<std::string> layers_off() const = 0;
  // Returns what earlier daemons left; called once, before act().
  virtual std::vector<Recovered> recover() = 0;
  virtual void act(Instant now, Action&& action, std::vector<Input>& events) = 0;
  // A descriptor that is readable when poll() may have something; -1: poll() never has anything.
  [[nodiscard]] virtual int descriptor() const = 0;
  virtual void poll(Instant now, std::vector<Input>& events) = 0;
  // For a heartbeat: when running attempts last wrote their checkpoint files.
  [[nodiscard]] virtual std::vector<proto::AttemptCheckpoint> checkpoints(Instant now) const {
    (void)now;
    return {};
  }
  // Why nothing may start here, for people; "" = all is well.
  [[nodiscard]] virtual std::string trouble() const { return {}; }
  // The running attempts during which the machine has slept, and for how long.
  [[nodiscard]] virtual std::vector<proto::AttemptSleep> asleep() const { return {}; }
  // What running attempts and their steps have used so far.
  [[nodiscard]] virtual std::vector<proto::AttemptUsage> usage() const { return {}; }
  // The activity of running attempts on their GPUs.
  [[nodiscard]] virtual std::vector<proto::GpuActivity> gpu_activity() const { return {}; }
};

}  // namespace gantry::node
