// A machine and its runtime: the simulated implementation of noded/seam.h. Its records are its
// disk; what runs on it survives its daemon and dies with its power.
//
//   recorded -> preparing -> [held -> starting ->] running -> ended -> (forgotten)
//
// Starts fail or are slow; user code takes its time, ignores signals, or runs out of memory. Shims
// are killed; then PID 1 ends what they watched, and the present or the next daemon writes the
// record. Under fencing each shim ends its attempt when the last contact is too old, with or
// without a daemon.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/proto/attempt.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "noded/seam.h"
#include "tests/sim/check/truth.h"
#include "tests/sim/queue.h"
#include "tests/sim/random.h"
#include "tests/sim/settings.h"

namespace gantry::sim {

class Machine final : public node::AttemptRuntime {
 public:
  Machine(Queue& queue, Random& random, Truth& truth, const Settings& settings,
          const NodeConfig& config, Duration clock_offset);

  // The functions of the seam; a daemon runs between recover() and daemon_died().
  [[nodiscard]] std::string name() const override { return "simulated"; }
  [[nodiscard]] std::vector<std::string> layers_off() const override { return {}; }
  [[nodiscard]] std::vector<proto::AttemptSleep> asleep() const override;
  std::vector<node::Recovered> recover() override;
  void act(Instant now, node::Action&& action, std::vector<node::Input>& events) override;
  [[nodiscard]] int descriptor() const override { return -1; }
  void poll(Instant now, std::vector<node::Input>& events) override;

  std::function<void()> on_event;      // poll() has events
  std::function<void()> on_user_code;  // user code has just started
  // The time that the daemon left for the shims, at which they end their attempts; unset means
  // never.
  void fence_at(std::optional<Instant> at);

  // Faults.
  void daemon_died();
  void power_off();
  // The machine stands still; what was to happen during that time happens when it wakes up.
  void fall_asleep(Duration length, bool clock_stops);
  void wake_up();
  [[nodiscard]] bool sleeps() const { return queue_.now() < awake_from_; }
  void when_awake(std::function<void()> call);  // calls at once if the machine is awake
  [[nodiscard]] Duration slept() const { return slept_; }
  bool kill_a_shim();  // false if there was no shim
  bool break_gpu();    // false if it has no GPU, or one that is broken already
  bool repair_gpus();  // false if no GPU is broken

  [[nodiscard]] Instant clock() const { return queue_.now() + clock_offset_; }
  [[nodiscard]] std::size_t records() const { return attempts_.size(); }
  [[nodiscard]] const NodeConfig& config() const { return config_; }
  [[nodiscard]] const GpuInventory& gpus() const { return gpus_; }  // as its driver reports them

 private:
  enum class Stage : std::uint8_t {
    recorded,
    preparing,
    held,
    starting,
    running,
    without_shim,
    ended
  };
  struct Attempt {
    proto::Launch launch;
    Stage stage = Stage::recorded;
    std::uint64_t serial = 0;  // calls that were scheduled under an older serial are void
    std::optional<Instant> started;
    Duration awake_before{};  // time awake when it started
    node::Exit exit;
  };

  void begin(proto::Launch&& launch, std::vector<node::Input>& events);
  void spawn_soon(const AttemptKey& key);
  void spawn(Attempt& attempt);
  void prepared(Attempt& attempt);
  void run(Attempt& attempt);
  void signal(Attempt& attempt, int number);
  void kill(Attempt& attempt);
  // makes calls that were scheduled for the old stage void
  void enter(Attempt& attempt, Stage stage);
  void end(Attempt& attempt, proto::ExitCause cause, ExitStatus status, std::string message);
  void tell(node::Input event);
  void fence();
  void later(const Attempt& attempt, Duration delay, std::function<void(Attempt&)> call);
  Usage usage(const Attempt& attempt);

  Queue& queue_;
  Random& random_;
  Truth& truth_;
  const Settings& settings_;
  const NodeConfig& config_;
  // A sleep counts as a whole from its beginning, so what is left of it has not passed yet.
  [[nodiscard]] Duration awake() const {
    return std::max(queue_.now(), awake_from_) - Instant{} - slept_;
  }
  Duration clock_offset_;
  Instant awake_from_{};
  Duration slept_{};  // total time asleep
  bool clock_stops_ = false;
  bool daemon_ = false;
  bool rebooted_ = false;
  std::optional<Instant> fence_at_;
  bool watched_ = false;  // fence() will be called
  std::uint64_t next_serial_ = 1;
  std::uint64_t boots_ = 0;
  std::map<AttemptKey, Attempt> attempts_;
  std::vector<node::Input> told_;
  GpuInventory gpus_;
};

}  // namespace gantry::sim
