// Does every waiting job say why it waits? The listing is read as a user would, and then the named
// cause is removed in a copy: a replica of the scheduler built from the core's full view with the
// changed facts. The job must start there, or the next cause must come to light. What the core
// itself keeps a job back for (holds, dependencies, begin times, limits of arrays) is held against
// the ledger as well.
#pragma once

#include <cstdint>
#include <vector>

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

  void start();  // looks now and then, from now on
  struct Counts {
    std::uint64_t started = 0, next = 0;  // jobs that moved: started, or showed the next cause
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  using Changes = std::vector<sched::Change>;
  void look();
  void check(const proto::JobRow& row, const Changes& view);
  void check_truth(const proto::JobRow& row, const core::Job& job) const;
  void check_dependencies(const proto::JobRow& row) const;
  // The view without the cause; false: nothing is known about it.
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
