// The nodes on which this plan looks for places of a class, and what the class has in common with
// others: nodes by flavor and reservation window, the jobs beside which it may run, and the number
// of its request (request_keys.h).
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

  // The nodes of the choice; for a job that names a reservation, only the nodes of its window, for
  // which Windows::speak_for() must have been called. Valid until the next call.
  [[nodiscard]] const Bits& nodes_for(const JobClass& c, const NodeChoice& choice);
  // True if some choice of the class holds all these nodes. A change of the documents may have
  // separated the nodes of a reservation.
  [[nodiscard]] bool may_use(const JobClass& c, const std::vector<Share>& shares) const;
  // The jobs beside which a job of the user may run; nullopt if there is nothing to check.
  [[nodiscard]] std::optional<Neighbours> neighbours_of(const JobClass& c,
                                                        std::uint32_t user) const;
  // Searches a place with find_place() on `nodes` for a job with this number (NamesakesApart):
  // first without the nodes of jobs from which it is kept apart, and with them if that finds none.
  // `hopeful` is as in find_place().
  [[nodiscard]] std::optional<std::vector<Share>> place_for(std::uint32_t namesake,
                                                            const JobClass& c, const Bits& nodes,
                                                            const Neighbours* neighbours,
                                                            Bits* hopeful);
  [[nodiscard]] GpuScores* scores();  // null: no node has GPUs
  // Nodes of the choice except those that a job of the turn's class found too small; the search may
  // remove more. Null in the first search of a line, or if nodes are not the same for all its jobs.
  Bits* hopeful(LineTurn& turn, const NodeChoice& choice);
  // The number of the class's request for the choice (one of Eligible::flavors_of()). kNone if its
  // result says nothing about other classes.
  std::uint32_t request_of(JobClass& c, const NodeChoice& choice);
  // The same without limit and flavor, for a class with one choice; nullopt if there are several.
  std::optional<std::uint32_t> demand_id_of(JobClass& c);

 private:
  Draft& d_;
  std::unordered_map<std::uint64_t, Bits> hopeful_;  // by class and nodes
  Bits in_window_;                                   // temporary memory of nodes_for()
  [[nodiscard]] std::optional<Bits> kept_apart(std::uint32_t own, const Bits& nodes) const;
};

}  // namespace gantry::sched
