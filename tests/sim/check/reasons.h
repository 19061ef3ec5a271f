// Checks that every waiting job shows the true reason. The listing is read as a user would read it.
// Then the named cause is removed in a copy: a replica of the scheduler is built from the core's
// full view with the changed facts. There the job must start, or have another cause. Reasons of the
// core itself (holds, dependencies, begin times, limits of arrays) are compared with the ledger as
// well.
#pragma once

#include <cstdint>
#include <vector>

#include "common/proto/job_query.h"
#include "ctld/sched/change.h"
#include "tests/sim/controller.h"

namespace gantry::sim {

class Reasons {
 public:
  Reasons(Queue& queue, Trace& trace, Controller& controller, const Ledger& ledger,
          const Settings& settings)
      : queue_(queue),
        trace_(trace),
        controller_(controller),
        ledger_(ledger),
        settings_(settings) {}

  void start();  // looks from time to time from now on
  struct Counts {
    // jobs that started without the cause, and jobs that showed another one
    std::uint64_t started = 0, next = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  using Changes = std::vector<sched::Change>;
  void look();
  void check(const proto::JobRow& row, const Changes& view);
  void check_truth(const proto::JobRow& row, const core::Job& job) const;
  void check_dependencies(const proto::JobRow& row) const;
  // Removes the cause from the view; returns false if nothing is known about it.
  bool remove_cause(const proto::JobRow& row, const core::Job& job, Changes& view) const;
  void more_room(const core::Job& job, Changes& view) const;
  void raise_quota(const proto::JobRow& row, Changes& view) const;
  [[noreturn]] void wrong(const proto::JobRow& row, std::string_view what) const;

  Queue& queue_;
  Trace& trace_;
  Controller& controller_;
  const Ledger& ledger_;
  const Settings& settings_;
  Counts counts_;
};

}  // namespace gantry::sim
