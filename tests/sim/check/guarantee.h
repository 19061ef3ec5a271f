// Checks two things that must happen by themselves, at times when no message is on its way between
// core and scheduler:
//
// - No job sleeps: if a plan made now would start or preempt something, such a plan is made soon,
//   without another event.
// - A job for which victims were told to leave starts within their longest grace, the time of
//   killing and a few seconds of planning. This is checked when the network is quiet.
#pragma once

#include <map>
#include <optional>

#include "tests/sim/controller.h"

namespace gantry::sim {

class Guarantee {
 public:
  // The longest time without a plan when there is something to do: a plan is made when something
  // changes, and every few seconds.
  static constexpr Duration kAsleep = seconds(20);
  static constexpr Duration kKilling = seconds(30);  // from SIGKILL to the report of the exit

  Guarantee(Queue& queue, Trace& trace, Controller& controller, const Ledger& ledger,
            const Settings& settings)
      : queue_(queue),
        trace_(trace),
        controller_(controller),
        ledger_(ledger),
        settings_(settings) {}

  void start();
  void quiet() { quiet_ = true; }  // called when the faults are over
  [[nodiscard]] std::uint64_t kept() const { return kept_; }

 private:
  void look();
  void look_for_sleepers();
  void look_for_promises();

  struct Wish {
    Instant since{};
    std::string what;
    std::uint64_t turns = 0;
  };
  Queue& queue_;
  Trace& trace_;
  Controller& controller_;
  const Ledger& ledger_;
  const Settings& settings_;
  bool quiet_ = false;
  std::optional<Wish> wish_;
  struct Due {
    Instant by{};
    Attempt attempt{};
    std::uint64_t life = 0;
  };
  std::map<JobId, Due> due_;  // jobs for which victims leave
  std::uint64_t kept_ = 0;
};

}  // namespace gantry::sim
