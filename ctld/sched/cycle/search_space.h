// Where a class of jobs may be looked for in this plan, and what it has in common with others:
// nodes by flavor and window, whom it may have beside it, and the number of what it asks
// (request_keys.h).
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "ctld/sched/cycle/draft.h"
#include "ctld/sched/nodes/neighbours.h"

namespace gantry::sched {

class SearchSpace {
 public:
  explicit SearchSpace(Draft& draft) : d_(draft) {}

  // The nodes of the choice; of a job that names a reservation those of its window, for which
  // Windows::speak_for() must have been called. Valid until the next call.
  [[nodiscard]] const Bits& nodes_for(const JobClass& c, const NodeChoice& choice);
  // Does some choice of the class hold all these nodes? A change of the documents may have parted
  // the nodes of a reservation.
  [[nodiscard]] bool may_use(const JobClass& c, const std::vector<Share>& shares) const;
  // Whom a job of the user may have beside it; nullopt: that need not be asked.
  [[nodiscard]] std::optional<Neighbours> neighbours_of(const JobClass& c,
                                                        std::uint32_t user) const;
  [[nodiscard]] GpuScores* scores();  // null: no node has GPUs
  // Nodes of the choice that jobs of the turn's class have not yet found too small; the search may
  // take more out. Null: the first search of a line, or nodes are not the same for all its jobs.
  Bits* hopeful(LineTurn& turn, const NodeChoice& choice);
  // The number of what the class asks of the choice (one of Eligible::flavors_of()); kNone: whether
  // it finds a place says nothing of others.
  std::uint32_t request_of(JobClass& c, const NodeChoice& choice);
  // The same without limit and flavor, for a class with one choice; nullopt: as kNone.
  std::optional<std::uint32_t> demand_id_of(JobClass& c);

 private:
  Draft& d_;
  std::unordered_map<std::uint64_t, Bits> hopeful_;  // by class and nodes
  Bits in_window_;                                   // scratch of nodes_for()
};

}  // namespace gantry::sched
