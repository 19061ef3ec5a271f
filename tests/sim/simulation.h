// Each seed is one history. Faults happen for a while, then everything is repaired. Then every job
// must end within kPatience, all capacity must be free, nothing may be left on any machine, and the
// history must contain what happened.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "common/proto/history.h"
#include "common/proto/job_query.h"
#include "tests/sim/check/guarantee.h"
#include "tests/sim/check/reasons.h"
#include "tests/sim/faults.h"

namespace gantry::sim {

struct Summary {
  std::uint64_t hash = 0;
  std::uint64_t lines = 0, events = 0, turns = 0;
  std::uint64_t jobs = 0, runs = 0, lives = 0;
  Duration length{};
  std::string tenancy;  // a description
};

class Simulation {
 public:
  static constexpr Duration kPatience = hours(24);
  static constexpr Duration kStandstill = hours(4);  // a history without events for this long fails

  // A broken property ends the process.
  Simulation(std::uint64_t seed, With with, bool print);
  Summary run();

 private:
  void connect();
  void mend();
  void operate();  // does what an operator does from time to time after the trouble
  void operate_on(const core::Job& job);
  void give_up_on(const proto::JobRow& row);
  bool never_fits(const core::Job& job);
  [[nodiscard]] bool all_ended() const;
  void wait_for_all();
  std::string reason_of(JobId job);  // the reason in words, if the job waits
  void check_nothing_held();
  void check_nothing_kept();
  void check_history();
  void check_history_of(JobId id, const Account& account,
                        const std::map<JobId, std::vector<proto::HistoryRow>>& rows);
  [[noreturn]] void broken(const std::string& promise) { trace_.broken(queue_.now(), promise); }

  static constexpr Instant kBegin{1'767'225'600'000'000};  // 2026-01-01T00:00:00Z
  Trace trace_;
  Random random_;
  Settings settings_;
  Queue queue_;
  Network network_;
  Truth truth_;
  Ledger ledger_;
  Controller controller_;
  Clients clients_;
  std::vector<std::unique_ptr<Node>> nodes_;
  Faults faults_;
  Reasons reasons_;
  Guarantee guarantee_;
  Instant mended_{};
  std::set<JobId> given_up_;  // jobs that can never start
};

}  // namespace gantry::sim
