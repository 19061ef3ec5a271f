// What has to happen by itself. Two things are watched while nothing is on its way between core and
// scheduler:
//
// - nobody sleeps: if a plan made now would start or preempt something, one is made soon, without
//   waiting for an event to come by;
// - who was promised room gets it: a job for which others were told to leave starts within their
//   longest grace, the time that killing takes, and a few seconds of planning; checked when the
//   network is quiet.
#pragma once

#include <map>
#include <optional>

#include "tests/sim/controller.h"

namespace gantry::sim {

class Guarantee {
 public:
  // At most, with something to do: a plan comes when something changes, and every few seconds.
  static constexpr Duration kAsleep = seconds(20);
  static constexpr Duration kKilling = seconds(30);  // from SIGKILL to the exit that is reported

  Guarantee(Queue& queue, Trace& trace, Controller& controller, const Ledger& ledger,
            const Settings& settings)
      : queue_(queue),
        trace_(trace),
        controller_(controller),
        ledger_(ledger),
        settings_(settings) {}

  void start();
  void quiet() { quiet_ = true; }  // the trouble is over
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
  std::map<JobId, Due> due_;  // jobs for which others leave
  std::uint64_t kept_ = 0;
};

}  // namespace gantry::sim
